"""Covariances of inputs that went through a function, that change at a place, and of functions of one's own."""

import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.runtime.double_precision import x64

k = mk.covariances
P = mk.Parameter
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))


def test_the_identity_changes_nothing_and_a_warp_is_the_covariance_of_what_comes_out():
    cov = k.Matern32(0.7)
    np.testing.assert_array_equal(k.Warped(cov, lambda x: x).value(X, Z), cov.value(X, Z))
    np.testing.assert_array_equal(
        k.Warped(cov, lambda x: x[0] * x[1]).value(X), cov.value((X[:, 0] * X[:, 1])[:, None])
    )


def test_a_mask_goes_to_the_function_and_another_to_what_it_returns():
    whole = k.Warped(k.RBF(1.0, columns=1), lambda x: jnp.stack([x, 2.0 * x]).ravel(), columns=0)
    np.testing.assert_allclose(whole.value(X), k.RBF(1.0).value(2.0 * X[:, :1]), rtol=1e-13)
    slope = whole.input_gradient(X, Z, np.ones((6, 4)))
    assert slope.shape == X.shape
    assert not slope[:, 1].any()


def test_a_linear_covariance_of_features_is_their_product():
    def features(x):
        return jnp.concatenate([jnp.ones(1), x, x**2])

    phi = np.column_stack([np.ones(6), X, X**2])
    np.testing.assert_allclose(k.Warped(k.Linear(0.5), features).value(X), 0.5 * phi @ phi.T, rtol=1e-12)


def test_the_numbers_of_a_module_are_one_hyper_parameter():
    net = mk.networks.mlp(2, 3, hidden=4)
    cov = k.Warped(k.RBF(P(1.0)), P(net))
    started = cov.started(X, X[:, 0])
    weights = started.free()["warped.weights"]
    assert weights.value.shape == (2 * 4 + 4 + 4 * 4 + 4 + 4 * 3 + 3,)
    module = net.build(0)
    with x64():
        through = np.stack([module(row) for row in jnp.asarray(X)])
    np.testing.assert_allclose(started.value(X), k.RBF(1.0).value(through), rtol=1e-5)
    fixed = k.Warped(k.RBF(P(1.0)), P(module, fixed=True))
    assert list(fixed.free()) == ["rbf.length"]
    assert list(k.Warped(k.RBF(P(1.0)), module).free()) == ["rbf.length"]


@pytest.mark.slow
def test_a_recurrent_network_sees_a_row_as_a_history():
    net = mk.networks.gru(1, 2, hidden=3).build(0)
    histories = rng.normal(size=(5, 4))
    cov = k.Warped(k.RBF(P(1.0)), P(net), shape=(4, 1))
    with x64():
        last = np.stack([net(row[:, None])[-1] for row in jnp.asarray(histories)])
    np.testing.assert_allclose(cov.value(histories), k.RBF(1.0).value(last), rtol=1e-6)
    K, pull = cov.forward(histories)
    W = rng.normal(size=K.shape)
    slopes = pull(W)[id(cov), "weights"]
    now, step = cov.free()["warped.weights"].value, 1e-4 * rng.normal(size=slopes.shape)
    up, down = (
        np.vdot(W, cov.with_values({"warped.weights": now + s * step}).value(histories)) for s in (1, -1)
    )
    assert slopes @ step == pytest.approx((up - down) / 2, rel=1e-5)


def test_before_and_after_a_change_there_is_one_covariance_each():
    cov = k.Changepoint(k.RBF(1.0), 4.0 * k.Matern12(0.5), at=10.0, steepness=8.0)
    early, late = np.linspace(0.0, 4.0, 5)[:, None], np.linspace(16.0, 20.0, 5)[:, None]
    np.testing.assert_allclose(cov.value(early), k.RBF(1.0).value(early), rtol=1e-12)
    np.testing.assert_allclose(cov.value(late), 4.0 * k.Matern12(0.5).value(late), rtol=1e-12)
    assert np.abs(cov.value(early, late)).max() < 1e-15
    s = 1 / (1 + np.exp(-8.0 * (np.array([9.9, 10.2]) - 10.0)))
    near = np.array([[9.9], [10.2]])
    expected = np.outer(1 - s, 1 - s) * k.RBF(1.0).value(near) + np.outer(s, s) * 4.0 * k.Matern12(0.5).value(
        near
    )
    np.testing.assert_allclose(cov.value(near), expected, rtol=1e-12)
    assert np.isfinite(cov.value([[-1e6], [1e6]])).all()


def cosine_of_products(x, z):
    return jnp.cos(3.0 * x @ z)


def test_a_function_that_is_no_covariance_is_refused_with_its_fault():
    with pytest.raises(
        InvalidArgument, match=r"FromFunction\(cosine_of_products\) is no covariance: its smallest"
    ):
        k.FromFunction(cosine_of_products).value(X)
    with pytest.raises(InvalidArgument, match="it is not symmetric"):
        k.FromFunction(lambda x, z: (x @ z) * jnp.exp(z[0])).value(X)
    with pytest.raises(InvalidArgument, match="it is nan between rows"):
        k.FromFunction(lambda x, z: jnp.log(x @ z)).value(X)
    # one row alone does not show it, and is not the last look
    cov = k.FromFunction(lambda x, z: -(x - z) @ (x - z) + 1.0)
    cov.value(X[:1])
    with pytest.raises(InvalidArgument, match="is no covariance"):
        cov.forward(X)


def test_a_function_in_numpy_is_told_what_to_use():
    with pytest.raises(
        InvalidArgument, match=r"the function of FromFunction\(.*\) cannot be compiled: it calls NumPy's"
    ):
        k.FromFunction(lambda x, z: np.exp(-((x - z) ** 2).sum())).value(X)
    with pytest.raises(InvalidArgument, match=r"the function of Warped.* cannot be compiled"):
        k.Warped(k.RBF(1.0), np.sin).value(X)


def test_a_function_of_ones_own_is_what_it_says():
    cov = k.FromFunction(lambda x, z, length: jnp.exp(-0.5 * jnp.sum((x - z) ** 2) / length**2), length=0.8)
    np.testing.assert_allclose((2.0 * cov).value(X, Z), 2.0 * k.RBF(0.8).value(X, Z), rtol=1e-12)
