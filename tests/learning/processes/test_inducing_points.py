"""Inducing points against exact processes and dense formulas: SGPR, FITC, DTC and SoR."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import Sum
from markovia.learning.processes.evidence_ascent import maximise_evidence
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.learning.processes.inducing_points import (
    DTC,
    FITC,
    SGPR,
    Placed,
    SoR,
    chosen_places,
    given_places,
)
from process_checks import check_slopes, dense, free

k = mk.covariances
KINDS = (SGPR, FITC, DTC, SoR)
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 4.0, (25, 2))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.3 * RNG.standard_normal(25)
Z = RNG.uniform(-1.0, 5.0, (6, 2))
WHOLE = 1.7 * k.RBF([1.0, 2.0]) + k.White(0.1)


def fitted():
    return (
        k.Scaled(free(1.5), k.RBF(free([1.0, 2.0]))) + k.Matern32(free(2.0), columns=[1]) + k.White(free(0.2))
    )


def textbook(kind, X, y, P, Z, covariance, noise, jitter=0.0):
    """Return value, mean and covariance by the formulas of Quinonero-Candela and Rasmussen, with dense matrices."""
    Kuu = covariance.value(P) + jitter * np.eye(len(P))
    Q = lambda A, B: covariance.value(A, P) @ np.linalg.solve(Kuu, covariance.value(P, B))  # noqa: E731
    left = covariance.diagonal(X) - np.diag(Q(X, X))
    S = Q(X, X) + np.diag(noise + (left if kind is FITC else 0.0 * left))
    value = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + len(y) * np.log(2.0 * np.pi))
    value -= 0.5 * left.sum() / noise if kind is SGPR else 0.0
    prior = Q(Z, Z) if kind is SoR else covariance.value(Z, Z)
    return value, Q(Z, X) @ np.linalg.solve(S, y), prior - Q(Z, X) @ np.linalg.solve(S, Q(X, Z))


@pytest.mark.parametrize("kind", KINDS)
def test_points_at_the_data_are_exact(kind):
    k12 = 1.7 * k.Matern12([1.0, 2.0]) + k.White(0.1)  # well conditioned, so that no jitter is needed
    method = kind(X, Y, inducing=X, jitter=0.0)
    value, mean, cov = dense(k12, X, Y, Z)
    assert method.evidence(k12)[0] == pytest.approx(value, abs=1e-8)
    at = method.posterior(k12).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=1e-8)
    if kind is not SoR:
        np.testing.assert_allclose(at.cov(), cov, atol=1e-8)
        np.testing.assert_allclose(at.sd(), np.sqrt(np.diag(cov)), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_points_are_the_textbook_with_dense_matrices(kind):
    P = X[::4]
    method = kind(X, Y, inducing=P, jitter=1e-10)
    value, mean, cov = textbook(kind, X, Y, P, Z, WHOLE.parts[0], 0.1)
    assert method.evidence(WHOLE)[0] == pytest.approx(value, abs=1e-6)
    at = method.posterior(WHOLE).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=1e-7)
    np.testing.assert_allclose(at.cov(), cov, atol=1e-7)
    np.testing.assert_allclose(at.sd(), np.sqrt(np.diag(cov)), atol=1e-7)
    assert at.info.mass_bound == ("lower" if kind is SGPR else None)


def test_the_bound_is_below_the_evidence_and_rises_with_every_point():
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(X)
        values = [SGPR(X, Y, inducing=rows[:m]).evidence(WHOLE)[0] for m in range(1, 26, 4)]
        assert (np.diff(values) > 0.0).all()
        assert values[-1] <= ExactEvidence(X, Y).evidence(WHOLE)[0] + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_differences(kind):
    check_slopes(kind(X, Y, inducing=X[::3]), fitted(), rtol=2e-5)


@pytest.mark.parametrize("kind", [SGPR, FITC, DTC])
def test_gradients_by_the_places_are_those_of_differences(kind):
    method, P = kind(X, Y, inducing=6), X[::5]
    covariance = Sum(Placed(P, np.array([1.0, 2.0]), fitted().parts[0]), k.White(free(0.2)))
    check_slopes(method, covariance, rtol=1e-4, atol=1e-4)


def test_moving_the_points_climbs_higher():
    start = fitted().with_values({"white.variance": 0.1}, keep=True)
    stay, moved = (SGPR(X, Y, inducing=4, choice="rows", move=move) for move in (False, True))
    one, two = (method.fit(start, max_iter=15) for method in (stay, moved))
    assert two.log_evidence > one.log_evidence + 0.5
    # the places are kept: the value is that of the method after the fit
    assert moved.evidence(two.covariance)[0] == pytest.approx(two.log_evidence, abs=1e-6)


@pytest.mark.parametrize("kind", [SGPR, FITC])
def test_units_and_the_order_of_rows_change_nothing(kind):
    at = kind(X, Y, inducing=8, choice="variance").posterior(WHOLE).at(Z)
    order = RNG.permutation(25)
    other = kind(X[order], Y[order], inducing=8, choice="variance").posterior(WHOLE).at(Z)
    np.testing.assert_allclose(other.mean(), at.mean(), rtol=1e-6)
    for unit in (1e-9, 1e9):
        scaled = 1.7 * unit**2 * k.RBF([unit, 2.0 * unit]) + k.White(0.1 * unit**2)
        moved = kind(X * unit, Y * unit, inducing=8, choice="variance").posterior(scaled).at(Z * unit)
        np.testing.assert_allclose(moved.mean() / unit, at.mean(), rtol=1e-6)
        np.testing.assert_allclose(moved.sd() / unit, at.sd(), rtol=1e-6)


def test_blocks_and_threads_change_no_number(monkeypatch):
    from markovia.learning.processes import low_rank_evidence

    rows, y = np.tile(X, (20, 1)), np.tile(Y, 20)
    covariance, method = fitted(), SGPR(rows, y, inducing=X[::4])
    whole, slopes = method.evidence(covariance)
    monkeypatch.setattr(low_rank_evidence, "CELLS", 64 * 7)  # blocks of 64 rows
    blocks, by_blocks = method.evidence(covariance)
    assert blocks == pytest.approx(whole, rel=1e-12)
    for key, slope in slopes.items():
        np.testing.assert_allclose(by_blocks[key], slope, rtol=1e-8)
    for threads in ("1", "3"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        again, by_threads = method.evidence(covariance)
        assert again == blocks
        assert all(np.array_equal(by_threads[key], slope) for key, slope in by_blocks.items())
    monkeypatch.setattr(low_rank_evidence, "KEPT", 0)  # blocks made anew in the second pass
    again, anew = method.evidence(covariance)
    assert again == blocks
    assert all(np.allclose(anew[key], slope, rtol=1e-12) for key, slope in by_blocks.items())


@pytest.mark.parametrize("kind", [SGPR, SoR])
def test_functions_that_are_drawn_have_the_posterior_s_moments(kind):
    post = kind(X, Y, inducing=10).posterior(WHOLE)
    drawn = post.draws(1_200, seed=1)
    values, at = drawn(Z), post.at(Z)
    error = at.sd() / np.sqrt(1_200)
    assert (np.abs(values.mean(axis=0) - at.mean()) < 4.5 * error + 1e-12).all()
    # besides the draws, the prior is made of random features
    np.testing.assert_allclose(np.cov(values.T), at.cov(), atol=0.2 * at.cov().max())
    np.testing.assert_array_equal(drawn(Z[:2]), values[:, :2])


def test_points_are_chosen_where_least_is_known():
    rows = np.array([[0.0], [0.0], [0.1], [1.0], [9.0]])
    assert chosen_places(rows, k.RBF(1.0), 3).ravel().tolist() == [0.0, 9.0, 1.0]
    assert len(chosen_places(rows, k.RBF(1.0), 10)) == 4  # equal rows count once
    assert len(chosen_places(rows, k.Constant(1.0), 10)) == 1  # one point says everything
    assert len(chosen_places(X, k.RBF(1.0), 7, "kmeans", 0)) == 7
    assert given_places([[1.0], [1.0]], 1).tolist() == [[1.0]]


def test_fits_find_nearly_what_the_exact_fit_finds():
    rng = np.random.default_rng(3)
    X, start = rng.uniform(0.0, 8.0, (60, 1)), (k.Scaled(None, k.RBF()) + k.White())
    y = np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(60)
    start = start.started(X, y)
    few = SGPR(X, y, inducing=30).fit(start)
    best = maximise_evidence(ExactEvidence(X, y), start)
    assert few.converged
    assert best.log_evidence - 0.5 < few.log_evidence <= best.log_evidence + 1e-6


def test_rows_in_thousands_begin_with_some_of_them():
    rng = np.random.default_rng(4)
    X = rng.uniform(0.0, 8.0, (900, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(900)
    start = (k.Scaled(None, k.RBF()) + k.White()).started(X, y)
    found = SGPR(X, y, inducing=25, first=200).fit(start)
    whole = SGPR(X, y, inducing=25).fit(start)
    assert found.log_evidence == pytest.approx(whole.log_evidence, abs=0.5)
    assert found.covariance.hypers()["white.variance"].value == pytest.approx(0.04, rel=0.2)


def test_one_row_equal_rows_and_a_constant_column():
    k1 = k.RBF(1.0) + k.White(0.1)
    assert SGPR([[1.0]], [0.5]).posterior(k1).at([1.0]).mean() == pytest.approx(0.5 / 1.1, abs=1e-6)
    same = SGPR(np.ones((5, 1)), np.arange(5.0))
    assert same.evidence(k1)[0] == pytest.approx(
        dense(k1, np.ones((5, 1)), np.arange(5.0), np.ones((1, 1)))[0], abs=1e-5
    )
    flat = np.column_stack([X[:, 0], np.full(25, 3.0)])
    assert np.isfinite(SGPR(flat, Y, inducing=5, choice="kmeans").evidence(WHOLE)[0])


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"inducing": 0}, "inducing= is a number"), ({"inducing": 2.5}, "inducing= is a number"),
     ({"inducing": [[1.0]]}, "2 columns"), ({"choice": "best"}, "choice= is one of")],
)  # fmt: skip
def test_bad_settings_are_said(settings, said):
    with pytest.raises(InvalidArgument, match=said):
        SGPR(X, Y, **settings)


@pytest.mark.parametrize(
    ("covariance", "said"),
    [(k.RBF(1.0), "noise of a positive variance"), (k.White(1.0), "noise alone"),
     (k.RBF(1.0) * k.White(1.0) + k.White(1.0), "not inside")],
)  # fmt: skip
def test_noise_is_a_summand(covariance, said):
    with pytest.raises(InvalidArgument, match=said):
        SGPR(X, Y).evidence(covariance)


def test_targets_that_are_no_numbers_are_said():
    with pytest.raises(InvalidArgument, match="not a finite number"):
        SGPR(X, np.where(np.arange(25) == 3, np.nan, Y))
    with pytest.raises(InvalidArgument, match="25 rows of inputs and 24 targets"):
        SGPR(X, Y[1:])
