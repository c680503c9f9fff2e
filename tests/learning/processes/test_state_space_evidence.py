"""Markov covariances in linear time against dense matrices: evidence, gradient, moments, draws, at any inputs."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.evidence_ascent import maximise_evidence
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.learning.processes.state_space_evidence import StateSpaceEvidence
from process_checks import check_slopes, dense, differences, free, slopes

k = mk.covariances
RNG = np.random.default_rng(0)
UNSORTED = RNG.uniform(0.0, 6.0, (18, 1))
REPEATED = np.concatenate([UNSORTED, UNSORTED[:4], UNSORTED[:2]])
GAPS = np.cumsum(np.array([0.3, 1e-9, 0.2, 1e6, 0.1, 1e-5, 50.0, 0.0, 1e12, 0.4]))[:, None]
NEW = np.array([[-3.0], [0.1], [2.0], [2.0], [5.9], [80.0], [UNSORTED[3, 0]]])


def covariances():
    return {
        "matern12": k.Scaled(free(1.3), k.Matern12(free(0.7))),
        "matern32": k.Scaled(free(1.3), k.Matern32(free(0.7))),
        "matern52": k.Scaled(free(1.3), k.Matern52(free([0.7]))),
        "cosine": k.Cosine(free(2.0)) + k.Matern12(free(3.0)),
        "sum": k.Matern52(free(0.7)) + k.Scaled(free(0.4), k.Matern12(free(3.0))) + k.Constant(free(0.5)),
        "product": k.Scaled(free(2.0), k.Matern32(free(1.5)) * k.Cosine(free(1.1))),
        "product of sums": (k.Matern12(free(0.7)) + k.Constant(free(0.3)))
        * k.Matern32(free(2.0))
        * k.Constant(1.2),
    }


@pytest.mark.parametrize("rows", [UNSORTED, REPEATED], ids=["unsorted", "repeated"])
@pytest.mark.parametrize("name", covariances())
def test_it_is_the_dense_process(name, rows):
    y = np.sin(rows[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(len(rows))
    covariance = covariances()[name] + k.White(free(0.2))
    value, mean, cov = dense(covariance, rows, y, NEW)
    method = StateSpaceEvidence(rows, y)
    found, by = method.evidence(covariance)
    assert found == pytest.approx(value, abs=1e-9)
    at = method.posterior(covariance).at(NEW)
    np.testing.assert_allclose(at.mean(), mean, atol=1e-9)
    np.testing.assert_allclose(at.sd() ** 2, np.diag(cov), atol=1e-9)
    np.testing.assert_allclose(at.cov(), cov, atol=1e-9)
    for key, slope in slopes(ExactEvidence(rows, y).evidence(covariance)[1], covariance).items():
        np.testing.assert_allclose(slopes(by, covariance)[key], slope, rtol=1e-7, atol=1e-8, err_msg=key)


def test_gradients_are_those_of_differences():
    y = np.sin(UNSORTED[:, 0])
    for covariance in list(covariances().values())[4:]:
        check_slopes(StateSpaceEvidence(UNSORTED, y), covariance + k.White(free(0.2)))


@pytest.mark.parametrize("name", ["matern12", "matern32", "matern52"])
def test_steps_of_any_size_are_exact(name):
    y = np.linspace(-1.0, 1.0, 10)
    covariance = covariances()[name] + k.White(free(0.2))
    method = StateSpaceEvidence(GAPS, y)

    def textbook(
        made,
    ):  # the differences of inputs have their digits; the inputs over the length have lost them
        apart = (GAPS - GAPS.T).reshape(-1, 1)
        K = made.parts[0].value(apart, [[0.0]]).reshape(10, 10) + made.parts[1].number("variance") * np.eye(
            10
        )
        return multivariate_normal.logpdf(y, np.zeros(10), K)

    assert method.evidence(covariance)[0] == pytest.approx(textbook(covariance), rel=1e-12)
    found = slopes(method.evidence(covariance)[1], covariance)
    for key, slope in differences(textbook, covariance).items():
        np.testing.assert_allclose(found[key], slope, rtol=1e-6, atol=1e-7, err_msg=key)


def test_targets_that_are_missing_are_left_out():
    y = np.sin(UNSORTED[:, 0])
    gaps = np.where(np.arange(18) % 3 == 0, np.nan, y)
    whole = covariances()["matern52"] + k.White(free(0.1))
    there = np.isfinite(gaps)
    one, by = StateSpaceEvidence(UNSORTED, gaps).evidence(whole)
    two, expected = StateSpaceEvidence(UNSORTED[there], y[there]).evidence(whole)
    assert one == pytest.approx(two, abs=1e-10)
    for key, slope in slopes(expected, whole).items():
        np.testing.assert_allclose(slopes(by, whole)[key], slope, rtol=1e-8)
    nothing = StateSpaceEvidence(UNSORTED, np.full(18, np.nan))
    assert nothing.evidence(whole)[0] == 0.0
    assert nothing.posterior(whole).at([1.0]).sd()[0] == pytest.approx(1.3**0.5)


def test_one_row_and_other_units():
    one = k.Matern32(1.0) + k.White(0.1)
    at = StateSpaceEvidence([2.0], [1.1]).posterior(one).at([2.0, 3.0])
    assert at.mean()[0] == pytest.approx(1.0)
    y = np.sin(UNSORTED[:, 0])
    base = StateSpaceEvidence(UNSORTED, y).posterior(1.7 * k.Matern52(0.8) + k.White(0.1)).at(NEW)
    for unit in (1e-9, 1e9):
        whole = 1.7 * unit**2 * k.Matern52(0.8 * unit) + k.White(0.1 * unit**2)
        at = StateSpaceEvidence(UNSORTED * unit, y * unit).posterior(whole).at(NEW * unit)
        np.testing.assert_allclose(at.mean() / unit, base.mean(), rtol=1e-8)
        np.testing.assert_allclose(at.sd() / unit, base.sd(), rtol=1e-7)


def test_without_noise_the_function_goes_through_its_values():
    y = np.sin(UNSORTED[:, 0])
    at = StateSpaceEvidence(UNSORTED, y).posterior(k.Matern32(1.0)).at(UNSORTED)
    np.testing.assert_allclose(at.mean(), y, atol=1e-9)
    assert at.sd().max() < 1e-6
    with pytest.raises(InvalidArgument, match="repeats others"):
        StateSpaceEvidence(REPEATED, np.zeros(len(REPEATED))).posterior(k.Matern32(1.0))
    with pytest.raises(np.linalg.LinAlgError):  # which an ascent turns back from
        StateSpaceEvidence(REPEATED, np.zeros(len(REPEATED))).evidence(k.Matern32(1.0))


def test_a_column_is_picked_among_several():
    rows = np.column_stack([RNG.normal(size=18), UNSORTED[:, 0]])
    y = np.sin(UNSORTED[:, 0])
    whole = k.Matern32(0.7, columns=[1]) + k.White(0.1)
    assert StateSpaceEvidence(rows, y).evidence(whole)[0] == pytest.approx(
        dense(whole, rows, y, rows)[0], abs=1e-9
    )
    with pytest.raises(InvalidArgument, match="runs along one input"):
        StateSpaceEvidence(rows, y).evidence(k.Matern32(0.7) + k.White(0.1))
    with pytest.raises(InvalidArgument, match="no Markov process"):
        StateSpaceEvidence(UNSORTED, y).evidence(k.RBF(1.0) + k.White(0.1))


def test_functions_that_are_drawn_have_the_posterior_s_moments():
    y = np.sin(UNSORTED[:, 0])
    covariance = 1.3 * k.Matern32(0.9) + k.White(0.1)
    post = StateSpaceEvidence(UNSORTED, y).posterior(covariance)
    drawn, n = post.draws(6_000, seed=0), 6_000
    one = drawn(NEW[:3])
    every = drawn(NEW)  # further inputs, between those that were asked for
    np.testing.assert_array_equal(every[:, :3], one)
    np.testing.assert_array_equal(every[:, 2], every[:, 3])
    at = post.at(NEW)
    assert (np.abs(every.mean(axis=0) - at.mean()) < 4.5 * at.sd() / np.sqrt(n)).all()
    cov, sd = at.cov(), at.sd()
    error = np.sqrt((np.outer(sd, sd) ** 2 + cov**2) / n)
    assert (np.abs(np.cov(every.T) - cov) < 4.5 * error + 1e-12).all()


def test_fits_are_those_of_the_exact_process():
    rng = np.random.default_rng(2)
    rows = rng.uniform(0.0, 12.0, (60, 1))
    y = np.sin(rows[:, 0]) + 0.2 * rng.standard_normal(60)
    start = (k.Scaled(None, k.Matern52()) + k.White()).started(rows, y)
    one, two = (maximise_evidence(kind(rows, y), start) for kind in (StateSpaceEvidence, ExactEvidence))
    assert one.converged
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-5)


def test_plain_code_and_compiled_code_give_the_same_numbers():
    from markovia.kernels.compiled_code import preferred

    y = np.sin(REPEATED[:, 0])
    whole = covariances()["product of sums"] + k.White(free(0.2))
    plain = StateSpaceEvidence(REPEATED, y).evidence(whole)
    with preferred():
        compiled = StateSpaceEvidence(REPEATED, y).evidence(whole)
    assert plain[0] == pytest.approx(compiled[0], rel=1e-12)
    for name, slope in slopes(plain[1], whole).items():
        np.testing.assert_allclose(slopes(compiled[1], whole)[name], slope, rtol=1e-9)
