"""Covariances of one column as Markov processes: moves that give the covariance back, from tiny steps to huge ones."""

import numpy as np
import pytest
from scipy.linalg import expm

import markovia as mk

k = mk.covariances
P = mk.Parameter
MADE = {
    "matern 1/2": lambda: k.Matern12(P(0.7)),
    "matern 3/2": lambda: k.Matern32(P(1.3)),
    "matern 5/2": lambda: P(2.0) * k.Matern52(P([0.9])),
    "cosine": lambda: k.Cosine(P(1.7)),
    "constant": lambda: k.Constant(P(0.4)) + k.Matern12(P(1.0)),
    "sum": lambda: P(1.5) * k.Matern32(P(0.5)) + P(0.2) * k.Matern52(P(3.0)),
    "product": lambda: k.Matern32(P(2.0)) * P(1.4) * k.Cosine(P(1.1)),
    "both": lambda: (k.Matern12(P(1.0)) + k.Cosine(P(2.0))) * k.Matern32(P(1.5)) + k.Constant(P(0.3)),
    "a part that is there twice": lambda: (lambda part: part * part + part)(k.Matern12(P(0.8))),
}
x = np.sort(np.random.default_rng(0).uniform(0.0, 3.0, 12))
x[5] = x[4]  # a step of zero


def joint(form, x):
    """The covariance of the function at sorted inputs, from the moves alone."""
    A, Q = form.transition(np.diff(x))
    P_t, n = form.P0, len(x)
    K = np.zeros((n, n))
    for i in range(n):
        ahead = P_t
        for j in range(i, n):
            K[i, j] = K[j, i] = form.H @ ahead @ form.H
            if j < n - 1:
                ahead = A[j] @ ahead
        if i < n - 1:
            P_t = A[i] @ P_t @ A[i].T + Q[i]
    return K


@pytest.mark.parametrize("name", MADE)
def test_the_moves_give_the_covariance_back(name):
    cov = MADE[name]()
    np.testing.assert_allclose(joint(cov.state_space(), x), cov.value(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", MADE)
def test_steps_leave_the_start_as_it_is_and_noise_is_never_negative(name):
    form = MADE[name]().state_space()
    dt = np.concatenate([[0.0], 10.0 ** np.arange(-12.0, 9.0), [0.37, 1.9, 2.6]])
    A, Q = form.transition(dt)
    size = np.abs(form.P0).max()
    np.testing.assert_allclose(
        A @ form.P0 @ A.swapaxes(1, 2) + Q, np.broadcast_to(form.P0, Q.shape), atol=1e-14 * size
    )
    np.testing.assert_array_equal(Q, Q.swapaxes(1, 2))
    for one in Q:  # scaled, so that a tiny step's is looked at with its own digits
        d = np.sqrt(np.diagonal(one))
        kept = d > 0
        if kept.any():
            assert np.linalg.eigvalsh(one[np.ix_(kept, kept)] / np.outer(d[kept], d[kept]))[0] > -1e-12


@pytest.mark.parametrize("name", MADE)
def test_weights_on_the_moves_are_pulled_back_as_differences_say(name):
    cov, dt, h = MADE[name](), np.array([0.0, 0.03, 0.4, 2.5]), 1e-6
    moves, pull = cov.state_space().forward(dt)
    weights = type(moves)(*(np.random.default_rng(1).normal(size=part.shape) for part in moves))
    found, free = pull(weights), cov.free()
    assert set(found) == {(id(hyper.part), hyper.name) for hyper in free.values()}
    for name_, hyper in free.items():
        ends = []
        for sign in (1.0, -1.0):
            moved = cov.with_values({name_: hyper.value + sign * h}).state_space().forward(dt, False)[0]
            ends.append(sum(np.vdot(w, part) for w, part in zip(weights, moved, strict=True)))
        slope = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(
            found[id(hyper.part), hyper.name], slope, rtol=1e-6, atol=1e-7, err_msg=name_
        )


@pytest.mark.parametrize(("cov", "order"), [(k.Matern12(0.7), 1), (k.Matern32(0.7), 2), (k.Matern52(0.7), 3)])
def test_moves_are_exponentials_of_the_companion_matrix(cov, order):
    lam = np.sqrt(2 * order - 1) / 0.7
    F = np.eye(order, k=1)
    F[-1] = (
        [-c for c in np.poly1d([1.0, 1.0]) ** order][:order]
        if order == 1
        else -np.poly([-1.0] * order)[:0:-1]
    )
    A, _ = cov.state_space().transition([0.3])
    np.testing.assert_allclose(A[0], expm(lam * 0.3 * F), rtol=1e-12)


def test_matern_three_halves_is_the_closed_form_of_its_noise():
    from scipy.special import gammainc

    dt = np.array([1e-9, 1e-3, 0.4, 3.0])
    a = 3**0.5 / 1.3 * dt
    Q = k.Matern32(1.3).state_space().transition(dt)[1]
    # in units where the second state is the derivative over lambda
    np.testing.assert_allclose(Q[:, 0, 0], gammainc(3, 2 * a), rtol=1e-12)
    np.testing.assert_allclose(Q[:, 0, 1], 2 * a**2 * np.exp(-2 * a), rtol=1e-12)
    np.testing.assert_allclose(Q[:, 1, 1], gammainc(3, 2 * a) + 4 * a * np.exp(-2 * a), rtol=1e-12)


def test_it_runs_along_the_one_column_that_its_parts_look_at():
    assert (k.Matern12(1.0, columns=2) + k.Matern32(1.0, columns=2)).state_space().column == 2
    assert (k.Matern12(1.0, columns=2) + k.Constant(1.0)).state_space().column == 2
    assert k.Matern12(1.0).state_space().column is None
    assert (k.Matern12(1.0, columns=0) + k.Matern12(1.0, columns=1)).state_space() is None


@pytest.mark.parametrize(
    "cov",
    [
        k.RBF(1.0),
        k.Matern32([1.0, 2.0]),
        k.Matern32(1.0, columns=[0, 1]),
        k.Periodic(1.0, 1.0),
        k.Matern12(1.0) + k.Linear(1.0),
        k.Matern12(1.0) + k.White(1.0),
        2.0 * k.RationalQuadratic(1.0, 1.0),
    ],
)
def test_what_is_no_such_process_says_so(cov):
    assert cov.state_space() is None
