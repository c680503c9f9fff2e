"""Simulation-based calibration: it passes engines that are right and sees those that are not."""

import matplotlib as mpl
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.models.graphical.calibration import EngineCalibration

mpl.use("agg")
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("ranks", "fine"),
    [
        (RNG.integers(0, 100, size=400), True),
        (np.clip(RNG.normal(49.5, 18, size=400), 0, 99).astype(int), False),  # a hill: too wide
        ((100 * RNG.beta(0.6, 0.6, size=400)).astype(int), False),  # a bowl: too narrow
        ((100 * RNG.beta(1.4, 1.0, size=400)).astype(int), False),  # a slope: biased
    ],
)
def test_uneven_ranks_are_seen(ranks, fine):
    found = EngineCalibration({"mu": ranks, "other": RNG.integers(0, 100, size=400)}, 99, "nuts")
    assert found.calibrated is fine
    assert ("NOT" in repr(found)) is not fine
    axes = found.plot(bins=10)
    assert [ax.get_title() for ax in axes.flat] == ["mu", "other"]
    assert found.to_pandas().shape == (400, 2)


def normal(known_sd=1.0):
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 1))
    m.add("y", lambda mu: dist.Normal(mu, known_sd), plate="row")
    return m


class Overconfident(mk.engines.Laplace):
    """Halves every deviation from the mean."""

    def draw(self, density):
        from dataclasses import replace

        drawn = super().draw(density)
        mean = drawn.draws["mu"].mean()
        return replace(drawn, draws={"mu": mean + 0.5 * (drawn.draws["mu"] - mean)})


@pytest.mark.slow
def test_an_engine_that_is_too_sure_is_caught():
    right = mk.calibrate(normal(), "y", given={"row": 4}, simulations=60, engine="laplace", seed=1)
    wrong = mk.calibrate(normal(), "y", given={"row": 4}, simulations=60, engine=Overconfident(), seed=1)
    assert right.calibrated
    assert not wrong.calibrated


def hierarchy():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 1))
    m.add("tau", dist.HalfNormal(1))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="group")
    m.add("y", lambda theta: dist.Normal(theta, 1.0), plate=["group", "row"])
    return m, {"group": 3, "row": 4}


def counts():
    m = mk.BayesianNetwork()
    m.add("rate", dist.Gamma(2.0, 1.0))
    m.add("y", lambda rate: dist.Poisson(rate), plate="row")
    return m, {"row": 5}


def mixture():
    m = mk.BayesianNetwork()
    m.add("w", dist.Beta(2, 2))
    m.add("z", lambda w: dist.Bernoulli(w), plate="row")
    m.add("y", lambda z: dist.Normal(3.0 * z, 1.0), plate="row")
    return m, {"row": 10}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("make", [hierarchy, counts, mixture])
@pytest.mark.parametrize("engine", ["nuts", "gibbs", "smc"])
def test_samplers_are_calibrated(make, engine):
    m, given = make()
    found = mk.calibrate(m, "y", given=given, simulations=150, engine=engine, targets=_targets(m))
    assert found.calibrated, repr(found)


def _targets(m):
    return [n for n in m.variables if n not in ("y", "z")]


def test_what_it_refuses():
    with pytest.raises(InvalidArgument, match="answered exactly"):
        mk.calibrate(mk.examples.sprinkler(), "wet")
    with pytest.raises(InvalidArgument, match="20 or more"):
        mk.calibrate(normal(), "y", given={"row": 4}, simulations=5)
