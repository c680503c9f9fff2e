"""Covariances of products: what they are in the space of weights, by explicit features and by quadrature."""

import numpy as np
import pytest

import markovia as mk

k = mk.covariances
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))


def test_a_polynomial_covariance_is_the_product_of_explicit_features():
    def features(x):  # of (x.z + 1)^2 in two columns
        a, b = x.T
        r = 2**0.5
        return np.column_stack([np.ones(len(x)), r * a, r * b, a**2, r * a * b, b**2])

    np.testing.assert_allclose(
        k.Polynomial(2, 1.0, 1.0).value(X, Z), features(X) @ features(Z).T, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        k.Polynomial(3, 0.5, 2.0).value(X, Z), (k.Linear(2.0) + 0.5).value(X, Z) ** 3, rtol=1e-12
    )


def test_weight_space_is_function_space():
    """Bayesian linear regression with weights N(0, I) is the process with k = 1 + x z."""
    x, y, new, noise = rng.normal(size=8), rng.normal(size=8), np.array([-1.0, 0.3, 4.0]), 0.37
    cov = k.Constant(1.0) + k.Linear(1.0)
    K = cov.value(x[:, None]) + noise * np.eye(8)
    cross = cov.value(new[:, None], x[:, None])
    mean, spread = (
        cross @ np.linalg.solve(K, y),
        cov.value(new[:, None]) - cross @ np.linalg.solve(K, cross.T),
    )
    phi, at = np.column_stack([np.ones(8), x]), np.column_stack([np.ones(3), new])
    S = np.linalg.inv(np.eye(2) + phi.T @ phi / noise)
    np.testing.assert_allclose(mean, at @ S @ phi.T @ y / noise, rtol=1e-12)
    np.testing.assert_allclose(spread, at @ S @ at.T, rtol=1e-12)


@pytest.mark.slow
def test_a_network_with_that_process_is_one_with_normal_weights():
    x, y, new = rng.normal(size=8), rng.normal(size=8), np.array([-1.0, 0.3, 4.0])
    m, line = mk.BayesianNetwork(), mk.BayesianNetwork()
    line.add("a", mk.distributions.Normal(0.0, 1.0))
    line.add("b", mk.distributions.Normal(0.0, 1.0))
    line.add("x", mk.Input(), plate="row")
    line.add("y", lambda a, b, x: mk.distributions.Normal(a + b * x, 0.6), plate="row")
    m.add("f", mk.GP(k.Constant(1.0) + k.Linear(1.0)))
    m.add("y", lambda f, x: mk.distributions.Normal(f(x), 0.6), plate="row")
    post = m.query("f", given={"x": x, "y": y}).at(new)
    weights = line.query(["a", "b"], given={"x": x, "y": y})
    np.testing.assert_allclose(post.mean(), weights.mean("a") + weights.mean("b") * new, rtol=1e-9)


def test_a_linear_mean_with_a_vague_prior_is_generalised_least_squares():
    x, y = np.linspace(0.0, 5.0, 12), rng.normal(size=12)
    rest, H = k.RBF(0.8) + k.White(0.3), np.column_stack([np.ones(12), x])
    K = rest.value(x[:, None])
    beta = np.linalg.solve(H.T @ np.linalg.solve(K, H), H.T @ np.linalg.solve(K, y))
    whole = k.Constant(1e7) + k.Linear(1e7)
    found = whole.value([[20.0]], x[:, None]) @ np.linalg.solve(whole.value(x[:, None]) + K, y)
    assert found.item() == pytest.approx(float(beta @ [1.0, 20.0]), rel=1e-5)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_an_arc_cosine_covariance_is_the_mean_over_random_hidden_units(order):
    """2 E[s(w.u) s(w.v)] with s(t) = max(t, 0)^order, by quadrature over the angle of w in the plane of u and v."""
    weight, bias = 0.7, 0.4
    found = k.ArcCosine(order, weight, bias).value(X, Z)
    U, V = (np.column_stack([A * weight**0.5, np.full(len(A), bias**0.5)]) for A in (X, Z))
    for i, u in enumerate(U):
        for j, v in enumerate(V):
            c = u @ v / np.linalg.norm(u) / np.linalg.norm(v)
            angle = np.arccos(c)
            # both are positive where the direction of w is within a right angle of both
            t, w = np.polynomial.legendre.leggauss(40)
            t, w = 0.5 * (np.pi - angle) * (t + 1) + angle - np.pi / 2, 0.5 * (np.pi - angle) * w
            ring = np.sum(w * (np.cos(t) * np.cos(t - angle)) ** order) / (2 * np.pi)
            radius = (1.0, 2.0, 8.0)[order]  # E of the squared length of two normal numbers, to the order
            sizes = (np.linalg.norm(u) * np.linalg.norm(v)) ** order
            assert found[i, j] == pytest.approx(2 * ring * radius * sizes, rel=1e-9)


def test_brownian_motion_has_independent_increments_and_starts_at_zero():
    t = np.array([[-1.0], [0.5], [1.0], [2.5], [4.0]])
    K = k.Brownian(1.5, start=0.5).value(t)
    assert not K[:2].any()
    steps = np.diff(np.eye(5), axis=0) @ K @ np.diff(np.eye(5), axis=0).T
    np.testing.assert_allclose(steps, 1.5 * np.diag([0.0, 0.5, 1.5, 1.5]), atol=1e-12)


def test_a_line_is_zero_at_its_offset():
    assert k.Linear(2.0, offset=[1.0, -2.0]).value([[1.0, -2.0]])[0, 0] == 0.0
