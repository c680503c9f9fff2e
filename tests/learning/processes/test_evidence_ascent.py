"""The ascent of the evidence: tops, starts, priors, supports, and what it says of itself."""

import os
import signal

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.learning.processes.evidence_ascent import Coordinates, fit_evidence, maximise_evidence
from markovia.learning.processes.exact_evidence import ExactEvidence

k = mk.covariances


class Peaks:
    """An evidence of one positive number with two tops, 1 at e^0 and 2 at e^4."""

    name, exact, X = "peaks", True, ()

    def __init__(self, X=None, y=None):
        self.asked = 0

    def evidence(self, covariance):
        self.asked += 1
        (hyper,) = covariance.free().values()
        z = np.log(hyper.value)
        first, second = np.exp(-0.5 * z**2), 2.0 * np.exp(-0.5 * (z - 4.0) ** 2)
        return first + second, {(id(hyper.part), hyper.name): (-z * first - (z - 4.0) * second) / hyper.value}


@pytest.fixture
def start():
    return k.White(mk.Parameter(0.0).with_value(np.asarray(1.2)))


def test_a_start_finds_its_own_top_and_restarts_find_the_best(start):
    found = maximise_evidence(Peaks(), start)
    assert found.converged
    assert found.objective == pytest.approx(1.0, abs=1e-3)
    several = maximise_evidence(Peaks(), start, restarts=8, seed=0)
    assert several.objective == pytest.approx(2.0, abs=1e-3)
    assert len(several.starts) == 9
    assert max(one.objective for one in several.starts) == several.objective
    again = maximise_evidence(Peaks(), start, restarts=8, seed=0)
    assert [one.objective for one in again.starts] == [one.objective for one in several.starts]


def test_known_starts_are_tried_by_name(start):
    found = maximise_evidence(Peaks(), start, starts=[{"white.variance": 40.0}])
    assert found.objective == pytest.approx(2.0, abs=1e-3)
    with pytest.raises(InvalidArgument, match="length' is not fitted"):
        maximise_evidence(Peaks(), start, starts=[{"rbf.length": 1.0}])


def test_no_step_leaves_the_start_and_says_so(start):
    found = maximise_evidence(Peaks(), start, max_iter=1)
    assert (found.converged, found.reason) == (False, "steps")


def test_an_interrupt_and_a_time_limit_keep_the_best_so_far(start):
    class Interrupting(Peaks):
        def evidence(self, covariance):
            if self.asked == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return super().evidence(covariance)

    found = maximise_evidence(Interrupting(), start, restarts=3, seed=0)
    assert found.reason == "interrupted"
    assert found.objective >= 0.9
    method = Peaks()
    assert maximise_evidence(method, start, restarts=50, time_limit=1e-9).reason == "time limit"
    assert method.asked == 1


@pytest.mark.slow
def test_a_prior_moves_the_top_by_its_density():
    X = np.linspace(0.0, 5.0, 15).reshape(-1, 1)
    y = np.sin(X[:, 0])
    for prior in (
        dist.LogNormal(0.0, 0.1),
        dist.Gamma(3.0, 2.0),
        dist.HalfNormal(0.5),
        dist.InverseGamma(3.0, 1.0),
    ):
        length = mk.Parameter(1.0, support="positive", prior=prior)
        found = maximise_evidence(ExactEvidence(X, y), k.RBF(length) + k.White(0.01))
        at = found.covariance.free()["rbf.length"].value
        assert found.objective - found.log_evidence == pytest.approx(float(prior.log_prob(at)), abs=1e-5)

        def objective(z, prior=prior):
            value = ExactEvidence(X, y).evidence(k.RBF(float(np.exp(z))) + k.White(0.01))[0]
            return value + float(prior.log_prob(np.exp(z)))

        z, h = float(np.log(at)), 1e-3
        assert abs(objective(z + h) - objective(z - h)) / (2.0 * h) < 0.02


def test_coordinates_go_back_and_forth_whatever_the_support():
    covariance = k.RBF(mk.Parameter([0.5, 3.0])) + k.White(mk.Parameter(0.2))
    coordinates = Coordinates(covariance)
    point = coordinates.read({"white.variance": 0.7})
    values = coordinates.values(point)
    assert values["white.variance"] == pytest.approx(0.7)
    np.testing.assert_allclose(values["rbf.length"], [0.5, 3.0])
    with pytest.raises(InvalidArgument, match="cannot be fitted from"):
        coordinates.read({"white.variance": 0.0})


def test_fixed_numbers_are_one_value_and_their_matrix_has_to_be_one():
    X = np.zeros((3, 1))
    found = maximise_evidence(ExactEvidence(X, np.ones(3)), k.RBF(1.0) + k.White(0.1))
    assert (found.evaluations, found.converged) == (1, True)

    class Broken(Peaks):
        def evidence(self, covariance):
            raise np.linalg.LinAlgError

    with pytest.raises(InvalidArgument, match="not positive definite"):
        maximise_evidence(Broken(), k.White(1.0))


def test_a_method_that_fits_itself_does():
    class Own(Peaks):
        def fit(self, covariance, **ascent):
            return covariance, ascent

    assert fit_evidence(Own(), "it", restarts=3) == ("it", {"restarts": 3})
