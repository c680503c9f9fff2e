"""Full conditionals found from Markov blankets, and the blocks they are made of."""

import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.closed_forms.closed_form import as_elements
from markovia.inference.densities.closed_forms.conditional_conjugacy import find_blocks
from markovia.inference.densities.closed_forms.conjugate_blocks import (
    FAMILIES,
    DirichletBlock,
    NormalBlock,
    ScalarBlock,
)
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64

RNG = np.random.default_rng(0)
Y, GROUP = RNG.normal(size=30), RNG.integers(5, size=30)


def kinds(model, evidence):
    found = find_blocks(program_of(model._problem(evidence), "none"))
    said = {}
    for block in found.blocks:
        kind = block.family.name if isinstance(block, ScalarBlock) else type(block).__name__
        said[tuple(block.shapes)] = kind
    return said, found


def test_a_hierarchy_has_normal_gamma_and_inverse_gamma_conditionals():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.Gamma(2.0, 1.0))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate={"group": 5})
    m.add("v", dist.InverseGamma(2.0, 1.0))
    m.add("y", lambda theta, v, g: dist.Normal(theta[g], v**0.5), plate="row")
    m.add("odd", dist.HalfCauchy(1.0))
    m.add("x", lambda odd: dist.Normal(0, odd), plate="row")
    said, found = kinds(m, {"y": Y, "g": GROUP, "x": Y})
    assert said == {("mu", "theta"): "NormalBlock", ("tau",): "gamma", ("v",): "inverse-gamma"}
    assert found.rest == ("odd",)


def test_a_mixture_is_conjugate_given_its_states():
    m = mk.BayesianNetwork()
    m.add("w", lambda: dist.Dirichlet(np.ones(3)))
    m.add("mu", dist.Normal(0, 5), plate={"k": 3})
    m.add("z", lambda w: dist.Categorical(w), plate="row")
    m.add("y", lambda z, mu: dist.Normal(mu[z], 1.0), plate="row")
    said, found = kinds(m, {"y": Y})
    assert said == {("w",): "DirichletBlock", ("mu",): "NormalBlock"}
    assert found.blocks[1].diagonal


def test_what_gradients_cannot_see_is_no_conjugate_block():
    m = mk.BayesianNetwork()
    m.add("when", dist.Normal(0, 1))
    m.add("y", lambda when, t: dist.Normal(1.0 * (t > when), 1.0), plate="row")
    m.add("limit", dist.Gamma(2.0, 0.1))
    m.add("u", lambda limit: dist.Uniform(0, limit), plate="row")
    m.add("a", dist.Normal(0, 1))
    m.add("b", dist.Normal(0, 1))
    m.add("ab", lambda a, b: dist.Normal(a * b, 1.0), plate="row")
    said, found = kinds(m, {"y": Y, "t": RNG.normal(size=30), "u": np.abs(Y) / 100, "ab": Y})
    assert said == {("a",): "NormalBlock", ("b",): "NormalBlock"}  # each given the other, not together
    assert found.rest == ("when", "limit")


PARAMETERS = {
    "gamma": (lambda a, b: (a - 1, -b), lambda a, b: stats.gamma(a, scale=1 / b)),
    "inverse-gamma": (lambda a, b: (-a - 1, -b), lambda a, b: stats.invgamma(a, scale=b)),
    "beta": (lambda a, b: (a - 1, b - 1), stats.beta),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_family_has_the_density_entropy_and_points_of_its_distribution(name):
    import jax.numpy as jnp

    natural, theirs = PARAMETERS[name]
    a, b = np.array([0.7, 3.0, 25.0]), np.array([2.0, 0.5, 4.0])
    block = ScalarBlock({"x": (3,)}, FAMILIES[name])
    truth = theirs(a, b)
    with x64():
        eta = tuple(map(jnp.asarray, natural(a, b)))
        x = jnp.asarray(truth.ppf(0.4))
        assert float(block.log_density({"x": x}, eta)) == pytest.approx(truth.logpdf(np.asarray(x)).sum())
        assert float(block.entropy(eta)) == pytest.approx(truth.entropy().sum())
        points = np.asarray(block.points(eta)["x"])
    element = as_elements(block, eta)
    assert np.allclose(element.a, a)
    assert np.allclose(element.b, b)
    for statistic, expected in zip(
        block.family.statistics(points), block.family.expected(jnp.asarray(a), jnp.asarray(b)), strict=True
    ):
        assert np.allclose(statistic.mean(axis=0), np.asarray(expected), rtol=1e-5)
    first = [
        float(truth.expect(lambda v: block.family.statistics(np.float64(v))[0]))
        for truth in map(theirs, a, b)
    ]
    assert np.allclose(block.family.statistics(points)[0].mean(axis=0), first, rtol=1e-5)


@pytest.mark.slow
def test_points_on_a_simplex_have_the_expected_logs():
    import jax.numpy as jnp
    from scipy.special import digamma

    alpha = np.array([[0.5, 2.0, 7.0, 1.0], [30.0, 2.0, 0.1, 5.0]])
    block = DirichletBlock({"x": (2, 4)})
    with x64():
        points = np.asarray(block.points(jnp.asarray(alpha - 1))["x"])
        entropy = float(block.entropy(jnp.asarray(alpha - 1)))
    assert np.allclose(points.sum(axis=-1), 1.0)
    expected = digamma(alpha) - digamma(alpha.sum(axis=-1, keepdims=True))
    assert np.allclose(np.log(points).mean(axis=0), expected)
    assert entropy == pytest.approx(sum(stats.dirichlet(a).entropy() for a in alpha))


def test_normal_points_have_mean_and_covariance():
    import jax.numpy as jnp

    half = RNG.normal(size=(4, 4))
    precision, h = half @ half.T + np.eye(4), RNG.normal(size=4)
    block = NormalBlock({"a": (), "b": (3,)}, diagonal=False)
    with x64():
        found = block.points((jnp.asarray(h), jnp.asarray(precision)))
        entropy = float(block.entropy((jnp.asarray(h), jnp.asarray(precision))))
    points = np.column_stack([found["a"], found["b"]])
    covariance = np.linalg.inv(precision)
    assert np.allclose(points.mean(axis=0), covariance @ h)
    gap = points - points.mean(axis=0)
    assert np.allclose(gap.T @ gap / len(points), covariance)
    assert entropy == pytest.approx(stats.multivariate_normal(cov=covariance).entropy())
