"""Kernels of Markov processes against matrix exponentials, dense normal densities and differences."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import gammainc
from scipy.stats import multivariate_normal

from markovia.kernels.plain_code import plain_code
from markovia.kernels.sequences import markov_process

HOME = "markovia.kernels.sequences.markov_process:"
RNG = np.random.default_rng(0)


def both(name):
    return [getattr(markov_process, name), plain_code(HOME + name)]


def room(s, vectors):
    return [np.full(s, np.nan) for _ in range(vectors)] + [np.full((s, s), np.nan) for _ in range(2)]


def process(s, n, rng=RNG):
    """Return A, Q, P0 and H of a process that is not stationary, and the covariance of its values."""
    A = 0.8 * np.linalg.qr(rng.standard_normal((n - 1, s, s)))[0]
    roots = rng.standard_normal((n, s, s))
    Q, P0, H = roots[1:] @ roots[1:].swapaxes(1, 2), roots[0] @ roots[0].T + np.eye(s), rng.standard_normal(s)
    P, K = P0, np.empty((n, n))
    for i in range(n):
        ahead = P @ H
        for j in range(i, n):
            K[i, j] = K[j, i] = H @ ahead
            ahead = A[j] @ ahead if j < n - 1 else ahead
        P = A[i] @ P @ A[i].T + Q[i] if i < n - 1 else P
    return A, Q, P0, H, K


def value(filter_, A, Q, P0, H, noise, y):
    n, s = len(y), len(H)
    seen = np.isfinite(y).astype(np.int8)
    arrays = [np.zeros((n, s)), np.zeros((n, s, s)), np.zeros(n), np.zeros(n)]
    found = filter_(A, Q, P0, H, noise, y, seen, True, *arrays, *room(s, 3))
    return found, (seen, *arrays)


@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_the_filter_gives_the_density_of_all_values_together(s):
    A, Q, P0, H, K = process(s, 7)
    y = RNG.standard_normal(7)
    y[[0, 3]] = np.nan
    there = np.isfinite(y)
    expected = multivariate_normal.logpdf(y[there], np.zeros(5), K[np.ix_(there, there)] + 0.3 * np.eye(5))
    for filter_ in both("markov_filter"):
        (found, at), _ = value(filter_, A, Q, P0, H, 0.3, y)
        assert found == pytest.approx(expected, abs=1e-10)
        assert at == -1
        empty = [np.zeros((0, s)), np.zeros((0, s, s)), np.zeros(0), np.zeros(0)]
        assert filter_(A, Q, P0, H, 0.3, y, there.astype(np.int8), False, *empty, *room(s, 3))[
            0
        ] == pytest.approx(found)


def test_a_value_that_repeats_what_is_known_is_found():
    A, Q, P0, H, _ = process(2, 4)
    A[1], Q[1] = np.eye(2), 0.0
    for filter_ in both("markov_filter"):
        assert value(filter_, A, Q, P0, H, 0.0, np.zeros(4))[0][1] == 2


@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_the_backward_pass_gives_derivatives_by_all_matrices(s):
    A, Q, P0, H, K = process(s, 6)
    y, noise, h = RNG.standard_normal(6), 0.3, 1e-6
    y[2] = np.nan
    density = lambda *changed: value(plain_code(HOME + "markov_filter"), *changed)[0][0]  # noqa: E731
    _, kept = value(both("markov_filter")[0], A, Q, P0, H, noise, y)
    for backward in both("markov_backward"):
        r, N, by_A, by_Q = np.empty((6, s)), np.empty((6, s, s)), np.empty((5, s, s)), np.empty((5, s, s))
        by_noise = backward(A, H, *kept, r, N, by_A, by_Q, *room(s, 3))
        slope = (density(A, Q, P0, H, noise + h, y) - density(A, Q, P0, H, noise - h, y)) / (2 * h)
        assert by_noise == pytest.approx(slope, rel=1e-5, abs=1e-7)
        for t in (0, 2, 4):
            for i, j in np.ndindex(s, s):
                away = np.zeros_like(A)
                away[t, i, j] = h
                slope = (density(A + away, Q, P0, H, noise, y) - density(A - away, Q, P0, H, noise, y)) / (
                    2 * h
                )
                assert by_A[t, i, j] == pytest.approx(slope, rel=1e-4, abs=1e-6)
                sym = 0.5 * (away + away.swapaxes(1, 2))
                slope = (density(A, Q + sym, P0, H, noise, y) - density(A, Q - sym, P0, H, noise, y)) / (
                    2 * h
                )
                assert by_Q[t, i, j] == pytest.approx(slope, rel=1e-4, abs=1e-6)
        # the smoothed mean of each value, and its variance, are those of the dense normal
        there = np.isfinite(y)
        gain = np.linalg.solve(K[np.ix_(there, there)] + noise * np.eye(5), K[there]).T
        _, means, covs, _, _ = kept
        np.testing.assert_allclose(
            means @ H + np.einsum("tij,j,ti->t", covs, H, r), gain @ y[there], atol=1e-10
        )
        left = np.einsum("i,tij,j->t", H, covs, H) - np.einsum("i,tij,tjk,tkl,l->t", H, covs, N, covs, H)
        np.testing.assert_allclose(left, np.diag(K - gain @ K[there]), atol=1e-10)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_moves_of_a_matern_process_are_exponentials_and_incomplete_gamma_functions(degree):
    from math import comb

    from markovia.factors.covariances.markov_form import _matern

    s, a = degree + 1, np.array([0.0, 1e-12, 1e-3, 0.7, 2.9, 3.1, 40.0, 1e9])
    _, steps = _matern(degree)
    F = np.eye(s, k=1)
    F[-1] = [-comb(s, j) for j in range(s)]
    moves, (dA, dQ), at = steps(a / np.sqrt(2.0 * degree + 1.0), True)
    np.testing.assert_allclose(at, a)
    for t, step in enumerate(a):
        np.testing.assert_allclose(moves.A[t], expm(F * min(step, 700.0)), atol=1e-12)
        np.testing.assert_allclose(moves.P0 - moves.A[t] @ moves.P0 @ moves.A[t].T, moves.Q[t], atol=1e-13)
    if degree == 0:
        np.testing.assert_allclose(moves.Q[:, 0, 0], gammainc(1, 2.0 * a), rtol=1e-14)
    up, down = (steps(x / np.sqrt(2.0 * degree + 1.0), False)[0] for x in (a[3:6] + 1e-6, a[3:6] - 1e-6))
    np.testing.assert_allclose(dA[3:6], (up.A - down.A) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(dQ[3:6], (up.Q - down.Q) / 2e-6, atol=1e-8)
    # tiny steps keep their digits: the leading entry of Q is q a^(2 degree + 1) / ((2 degree + 1) degree!^2)
    assert moves.Q[1, -1, -1] == pytest.approx(dQ[0, -1, -1] * 1e-12, rel=1e-9)


def test_states_are_carried_back_through_gains_and_kept_where_they_are_fixed():
    gains, states = RNG.standard_normal((3, 2, 2)), RNG.standard_normal((4, 5, 2))
    for carry in both("backward_states"):
        found = states.copy()
        carry(gains, np.array([0, 1, 0, 0], np.int8), found)
        third = states[2] + states[3] @ gains[2].T
        np.testing.assert_allclose(found[2], third)
        np.testing.assert_allclose(found[1], states[1])
        np.testing.assert_allclose(found[0], states[0] + states[1] @ gains[0].T)
