"""What places have in common: covariances of slopes and integrals, conditioning in steps, factors and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.factors.covariances.process import GP
from markovia.inference.densities.program.process_places import (
    Conditioned,
    LinearSight,
    covariance,
    jittered_factor,
    mean,
    normal_log_density,
    read_place,
    same_place,
    whitening_factor,
)
from markovia.runtime.double_precision import x64

k = mk.covariances
rng = np.random.default_rng(0)
PROCESS = {"f": GP(1.5 * k.RBF(length=0.9), mean=lambda x: jnp.sin(x))}
X, Z = rng.normal(size=4), rng.normal(size=3)


def value(x):
    return read_place("value", [np.asarray(x)], None, "f")


def test_arguments_become_rows():
    assert read_place("value", [2.0]).shape == ()
    assert read_place("value", [X]).x.shape == (4, 1)
    both = read_place("value", [X, np.arange(4)])
    assert both.x.shape == (4, 2)
    assert both.x[2].tolist() == [X[2], 2.0]
    assert read_place("value", [X, 1]).x[:, 1].tolist() == [1.0] * 4
    assert read_place("grad", [np.ones((4, 2))]).size == 8
    with pytest.raises(InvalidArgument, match="as one array"):
        read_place("grad", [X, X])
    with pytest.raises(InvalidArgument, match="no finite number, in row 1"):
        read_place("value", [np.array([0.0, np.nan])])
    assert same_place(value(X), value(X.copy()))
    assert not same_place(value(X), value(X + 1))
    assert not same_place(value(X), read_place("grad", [X], None, "f"))


@pytest.mark.slow
def test_slopes_are_limits_of_differences():
    step = 1e-5
    slope = read_place("grad", [X], None, "f")
    found = covariance(PROCESS, slope, value(Z), np)
    wanted = (
        covariance(PROCESS, value(X + step), value(Z), np)
        - covariance(PROCESS, value(X - step), value(Z), np)
    ) / (2 * step)
    assert found == pytest.approx(wanted, abs=1e-8)
    both = covariance(PROCESS, slope, None, np)
    other = read_place("grad", [X], None, "f")
    turned = [
        (covariance(PROCESS, value(X + step), other, np) - covariance(PROCESS, value(X - step), other, np))
        / (2 * step)
    ]
    assert both == pytest.approx(turned[0], abs=1e-8)
    assert both == pytest.approx(both.T)
    assert mean(PROCESS, slope, np) == pytest.approx(np.cos(X), abs=1e-12)


def test_integrals_are_sums():
    area = read_place("integral", [np.array([-1.0, 0.0]), np.array([2.0, 1.0])], None, "f")
    t, w = np.polynomial.legendre.leggauss(80)
    rows = [(-1.0, 2.0), (0.0, 1.0)]
    points = [(0.5 * (b - a) * t + 0.5 * (a + b), 0.5 * (b - a) * w) for a, b in rows]
    cross = [w @ covariance(PROCESS, value(x), value(Z), np) for x, w in points]
    assert covariance(PROCESS, area, value(Z), np) == pytest.approx(np.array(cross), abs=1e-12)
    own = [[v @ covariance(PROCESS, value(x), value(y), np) @ u for y, u in points] for x, v in points]
    assert covariance(PROCESS, area, None, np) == pytest.approx(np.array(own), abs=1e-12)
    assert mean(PROCESS, area, np) == pytest.approx(
        [np.cos(-1.0) - np.cos(2.0), 1.0 - np.cos(1.0)], abs=1e-12
    )


def test_different_functions_have_nothing_in_common():
    two = {**PROCESS, "g": GP(k.RBF(length=1.0))}
    assert not covariance(two, value(X), read_place("value", [Z], None, "g"), np).any()


@pytest.mark.parametrize("xp", [np, pytest.param(jnp, marks=pytest.mark.slow)])
def test_conditioning_in_steps_is_conditioning_at_once(xp):
    with x64():
        y = xp.asarray(np.sin(X))
        noise = xp.asarray([0.1, 0.2, 0.1, 0.3])
        whole = Conditioned(PROCESS, LinearSight([(value(X), None)], y, noise), xp)
        steps = Conditioned(PROCESS, xp=xp)
        for rows in (slice(0, 1), slice(1, 3), slice(3, 4)):
            steps.learn(LinearSight([(value(X[rows]), None)], y[rows], noise[rows]))
        for joint in (True, False):
            (a, A), (b, B) = (c.moments(value(Z), joint=joint) for c in (whole, steps))
            assert np.asarray(a) == pytest.approx(np.asarray(b), abs=1e-12)
            assert np.asarray(A) == pytest.approx(np.asarray(B), abs=1e-12)
        assert float(whole.log_prob) == pytest.approx(float(steps.log_prob), abs=1e-12)


def test_values_that_were_drawn_are_known_from_then_on():
    process = Conditioned(PROCESS, xp=np)
    first = process.extend(value(X), rng.normal(size=4))
    again, _ = process.moments(value(X))
    assert again == pytest.approx(first, abs=1e-4)
    several = Conditioned(PROCESS, xp=np)
    assert several.extend(value(X), rng.normal(size=(4, 7))).shape == (4, 7)
    assert several.extend(value(Z), rng.normal(size=(3, 7))).shape == (3, 7)


def test_factors_of_singular_matrices_have_as_little_added_as_will_do():
    K = np.ones((3, 3))
    for found in (jittered_factor(K, 1.0)[0], np.asarray(_in_x64(whitening_factor, K, 1.0))):
        assert found @ found.T == pytest.approx(K, abs=1e-8)
    worse = K - 5e-8 * np.eye(3)
    found, jitter = jittered_factor(worse, 1.0)
    assert jitter == pytest.approx(1e-7)
    assert np.isfinite(found).all()
    assert np.asarray(_in_x64(whitening_factor, worse, 1.0)) == pytest.approx(found, rel=1e-6)
    with pytest.raises(InvalidArgument, match="smallest eigenvalue is -1"):
        jittered_factor(-np.eye(2), 1.0)


def _in_x64(function, *arguments):
    with x64():
        return function(*(jnp.asarray(a) for a in arguments))


@pytest.mark.slow
def test_derivatives_of_factor_and_density_are_those_of_the_plain_formulas():
    A = rng.normal(size=(4, 4))
    with x64():
        S, away = jnp.asarray(A @ A.T + np.eye(4)), jnp.asarray(rng.normal(size=4))
        W = jnp.asarray(rng.normal(size=(4, 4)))

        def plain(away, S):
            L = jnp.linalg.cholesky(S)
            white = jax.scipy.linalg.solve_triangular(L, away, lower=True)
            return -0.5 * white @ white - jnp.log(jnp.diagonal(L)).sum() - 2 * jnp.log(2 * jnp.pi)

        for found, wanted in zip(
            jax.grad(normal_log_density, (0, 1))(away, S), jax.grad(plain, (0, 1))(away, S), strict=True
        ):
            both = (
                np.asarray(v) + np.asarray(v).T if v.ndim == 2 else np.asarray(v) for v in (found, wanted)
            )
            assert next(both) == pytest.approx(next(both), abs=1e-12)
        ours = jax.grad(lambda S: jnp.vdot(W, whitening_factor(S, 0.0)))(S)
        theirs = jax.grad(lambda S: jnp.vdot(W, jnp.linalg.cholesky(S)))(S)
        assert np.asarray(ours + ours.T) == pytest.approx(np.asarray(theirs + theirs.T), abs=1e-10)
