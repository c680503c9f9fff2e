"""Flows: every layer against its Jacobian, its inverse and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.runtime.double_precision import x64

F = mk.flows
SMALL = {"layers": 2, "hidden": 6, "depth": 1}
CASES = {
    "planar": F.planar(3, layers=2, context=2),
    "planar alone": F.planar(2, layers=2),
    "radial": F.radial(3, layers=2, context=2),
    "linear": F.linear(3),
    "RealNVP": F.coupling(3, **SMALL, context=2, mixing="linear"),
    "NICE": F.coupling(2, **SMALL, kind="additive"),
    "spline": F.coupling(3, **SMALL, kind="spline", bins=4, context=2),
    "one number": F.coupling(1, **SMALL, kind="spline", bins=4),
    "MAF": F.autoregressive(3, **SMALL, context=2),
    "IAF": F.autoregressive(3, **SMALL, inverse=True),
    "spline MAF": F.autoregressive(3, **SMALL, kind="spline", bins=4),
    "made": F.made(3, law="gaussian", hidden=6, depth=1, context=2),
    "nade": F.nade(3, law="gaussian", hidden=6, context=2),
    "glow": F.glow((4, 4), hidden=3, steps=2, context=2),
    "glow of three channels": F.glow((3, 2, 4), hidden=3, steps=1, levels=1),
    "continuous": F.continuous(2, hidden=6, depth=1, steps=32, context=2),
}


def shaken(recipe, by=0.3, seed=1):
    """Return a module of a recipe with numbers that are far from where it starts."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda a: a + by * rng.normal(size=a.shape) if hasattr(a, "dtype") else a, recipe.build(0)
    )


@pytest.mark.parametrize("name", CASES)
def test_round_trip_and_determinants(name):
    with x64():
        flow = shaken(CASES[name])
        context = (jnp.array([0.3, -1.0]),) if flow.context_size else ()
        u = jnp.asarray(np.random.default_rng(0).normal(size=flow.event_shape))

        @jax.jit
        def both(u):
            x, log_det = flow.forward(u, *context)
            back, log_back = flow.inverse(x, *context)
            there = jax.jacfwd(lambda u: flow.forward(u, *context)[0])(u)
            here = jax.jacfwd(lambda x: flow.inverse(x, *context)[0])(x)
            return back, log_det, log_back, there, here

        back, log_det, log_back, there, here = map(np.asarray, both(u))
        close = 2e-4 if name == "continuous" else 1e-9
        np.testing.assert_allclose(back, u, atol=close)
        k = u.size
        np.testing.assert_allclose(log_det, np.linalg.slogdet(there.reshape(k, k))[1], atol=close)
        np.testing.assert_allclose(log_back, np.linalg.slogdet(here.reshape(k, k))[1], atol=close)
        assert (
            name == "NICE" or abs(log_det) > 1e-3
        )  # a test that the numbers were shaken enough to say something
        if name == "NICE":
            assert log_det == 0


@pytest.mark.slow
def test_gradients_of_inverses_that_are_solved():
    """The planar inverse is found by halving; derivatives by its argument and numbers go through, the second, too."""
    with x64():
        flow = shaken(CASES["planar alone"])
        x = jnp.array([0.4, -1.1])

        def density(x):
            return flow.log_prob(x)

        both = jax.jit(jax.vmap(lambda x: (density(x), jax.grad(density)(x), jax.hessian(density)(x))))
        step = 1e-5
        value, first, second = both(x + step * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]))
        for i in (0, 1):
            high, low = 1 + 2 * i, 2 + 2 * i
            np.testing.assert_allclose(first[0][i], (value[high] - value[low]) / (2 * step), rtol=1e-6)
            np.testing.assert_allclose(
                second[0][i], (first[high] - first[low]) / (2 * step), rtol=1e-5, atol=1e-8
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["planar alone", "NICE", "spline of two", "continuous of two", "one number"])
def test_densities_integrate_to_one(name):
    more = {
        "spline of two": F.coupling(2, **SMALL, kind="spline", bins=4, reach=3.0),
        "continuous of two": F.continuous(2, hidden=6, depth=1, steps=16),
    }
    with x64():
        flow = shaken({**CASES, **more}[name])
        side = np.linspace(-10, 10, 1001 if flow.shape == (1,) else 251)
        grid = np.stack(np.meshgrid(*[side] * flow.shape[0]), -1).reshape(-1, flow.shape[0])
        total = (
            np.exp(jax.jit(jax.vmap(lambda x: flow.log_prob(x)))(grid)).sum()
            * (side[1] - side[0]) ** flow.shape[0]
        )
        assert abs(total - 1) < (2e-3 if "spline" in name or name == "one number" else 2e-4)


def test_samples_follow_the_density():
    """The share of draws in each cell of a grid is the integral of the density over it."""
    with x64():
        flow = shaken(F.coupling(1, **SMALL, kind="spline", bins=6), by=0.6)
        x = np.asarray(flow.distribution().sample(jax.random.PRNGKey(3), (20_000,)))[:, 0]
        edges = np.linspace(-4, 4, 17)
        fine = np.linspace(-4, 4, 1601)
        density = np.exp(np.asarray(jax.jit(jax.vmap(lambda x: flow.log_prob(x)))(fine[:, None])))
        shares = np.add.reduceat(density[:-1] + density[1:], np.arange(0, 1600, 100)) * 0.0025
        counts = np.histogram(x, edges)[0]
        errors = (counts - 20_000 * shares) / np.sqrt(20_000 * shares + 1)
        assert np.abs(errors).max() < 4


def test_a_bend_makes_two_modes():
    """One planar layer that stretches space at its middle splits a Gaussian in two."""
    with x64():
        flow = F.planar(1, layers=1).build(0)
        flow = jax.tree.map(lambda a: jnp.asarray([[4.0, 1.5, 0.0]]) if a.shape == (1, 3) else 0 * a, flow)
        density = np.asarray(jax.jit(jax.vmap(lambda x: flow.log_prob(x)))(np.linspace(-4, 4, 9)[:, None]))
        peaks = [i for i in range(1, 8) if density[i] > max(density[i - 1], density[i + 1])]
        assert len(peaks) == 2


def test_a_linear_flow_is_a_gaussian():
    with x64():
        flow = shaken(F.linear(3))
        norm, mixing = flow.layer.layers
        lower, upper = mixing.factors()
        back = np.asarray(lower @ upper)
        np.testing.assert_allclose(np.linalg.slogdet(back)[1], np.sum(mixing.log_diagonal), atol=1e-12)
        there = np.linalg.inv(back)
        mean, spread = there @ np.asarray(norm.shift), there @ np.diag(np.exp(norm.log_scale))
        from scipy.stats import multivariate_normal

        x = np.array([0.3, -0.2, 1.0])
        np.testing.assert_allclose(
            flow.log_prob(x), multivariate_normal(mean, spread @ spread.T).logpdf(x), rtol=1e-10
        )


@pytest.mark.parametrize("name", ["made", "nade"])
def test_masks_make_jacobians_triangular(name):
    with x64():
        net = shaken(
            F.made(4, hidden=7, context=2) if name == "made" else F.nade(4, hidden=7, context=2)
        ).network
        x, c = jnp.linspace(-1, 1, 4), jnp.array([0.3, -1.0])
        looks, told = jax.jit(jax.jacfwd(lambda x, c: net(x, c)[0], argnums=(0, 1)))(x, c)
        assert not np.triu(looks).any()
        assert np.count_nonzero(looks) == 6  # and none is cut that need not be
        assert np.all(np.abs(told) > 0)


def test_estimated_traces_are_unbiased():
    with x64():
        recipe = F.continuous(3, hidden=6, depth=1, steps=8, trace="estimate")
        estimated, exact = shaken(recipe), shaken(F.continuous(3, hidden=6, depth=1, steps=8))
        x = jnp.array([0.3, -0.6, 0.1])
        draws = np.asarray(
            jax.jit(jax.vmap(lambda k: estimated.bound(k, x)))(jax.random.split(jax.random.PRNGKey(0), 4000))
        )
        assert draws.std() > 1e-3
        assert abs(draws.mean() - float(exact.log_prob(x))) < 4 * draws.std() / np.sqrt(4000)
        with pytest.raises(UnsupportedModel, match="no density"):
            estimated.distribution().log_prob(x)


def test_a_spline_is_the_identity_outside_and_flat_at_its_ends():
    with x64():
        flow = shaken(F.coupling(1, layers=1, hidden=4, kind="spline", reach=2.0), by=1.0)
        u = jnp.array([[-7.0], [2.0], [9.0], [2 - 1e-7], [-2 + 1e-7], [0.3]])
        x, log_det = jax.jit(jax.vmap(lambda u: flow.forward(u)))(u)
        np.testing.assert_allclose(x[:5], u[:5], atol=1e-6)
        np.testing.assert_allclose(log_det[:5], 0, atol=1e-4)
        assert abs(log_det[5]) > 1e-3


def test_bad_settings_and_shapes():
    with pytest.raises(InvalidArgument, match="kind= is one of affine, additive, spline"):
        F.coupling(2, kind="cubic")
    with pytest.raises(InvalidArgument, match="multiples of 4"):
        F.glow((6, 6), levels=2)
    with pytest.raises(InvalidArgument, match="shape= of a picture"):
        F.glow((8,))
    with pytest.raises(InvalidArgument, match="layers"):
        F.coupling(2, layers=0)
    with pytest.raises(InvalidArgument, match="kernel= is odd"):
        F.pixel_cnn((4, 4), kernel=2)
    flow = F.coupling(2, **SMALL, context=3).build(0)
    with pytest.raises(
        InvalidArgument,
        match=r"coupling is a law of elements of shape \(2,\) given 3 .* shape \(3,\) given 2",
    ):
        flow.log_prob(np.zeros(3), np.zeros(2))
