"""Draws of the unconstrained vector from its prior: they have the density that the program says."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64

N = 20_000


def density_of(model, given=None, reparameterize="auto", missing="refuse"):
    return program_of(model._problem(given, missing=missing), reparameterize).density


def drawn(density, n=N):
    """Return draws of u and their log prior densities."""
    with x64():
        data = jax.tree.map(jnp.asarray, density.data)
        u = jax.jit(jax.vmap(lambda key: density.prior(key, data)))(
            jax.random.split(jax.random.PRNGKey(0), n)
        )
        logs = jax.jit(jax.vmap(lambda v: density.log_prior(v, data)))(u)
    return np.asarray(u), np.asarray(logs)


def check(density):
    """For draws of p, the mean of q / p is one for every density q: here normal ones within p's bulk."""
    u, logs = drawn(density)
    assert u.shape == (N, density.size)
    cov = np.atleast_2d(np.cov(u[: N // 2].T))
    for shift in (0.0, 0.4):
        q = stats.multivariate_normal(u.mean(axis=0) + shift * np.sqrt(np.diag(cov)), 0.4 * cov)
        ratio = np.exp(q.logpdf(u) - logs)
        error = ratio.std() / np.sqrt(N)
        assert error < 0.04
        assert ratio.mean() == pytest.approx(1.0, abs=4.5 * error)


def hierarchy():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(1, 2))
    m.add("tau", dist.Gamma(3.0, 2.0))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate={"school": 3})
    m.add("y", lambda theta: dist.Normal(theta, 1.0), plate="school")
    return m, {"y": np.array([0.5, 1.0, 2.5])}


@pytest.mark.slow
def test_one_bounded_quantity_has_its_distribution_through_the_bijection():
    m = mk.BayesianNetwork()
    m.add("p", dist.Beta(2.0, 3.0))
    u, _ = drawn(density_of(m))
    assert stats.kstest(1 / (1 + np.exp(-u[:, 0])), stats.beta(2, 3).cdf).pvalue > 1e-3


@pytest.mark.parametrize("reparameterize", ["all", pytest.param("none", marks=pytest.mark.slow)])
def test_a_hierarchy_has_its_density_centred_or_not(reparameterize):
    m, given = hierarchy()
    density = density_of(m, given, reparameterize)
    u, _ = drawn(density, 2000)
    if reparameterize == "all":  # distances from the mean in units of the deviation
        assert stats.kstest(u[:, 2:].ravel(), stats.norm.cdf).pvalue > 1e-3
    check(density)


@pytest.mark.slow
def test_supports_of_parents_simplexes_orders_chains_and_states_have_their_densities():
    m = mk.BayesianNetwork()
    m.add("high", dist.Uniform(1.0, 2.0))
    m.add("x", lambda high: dist.Uniform(0.0, high))
    m.add("w", dist.Dirichlet([2.0, 3.0, 4.0]))
    m.add("cut", dist.Ordered(dist.Normal(0, 1), size=2))
    check(density_of(m))
    m = mk.BayesianNetwork()
    m.add("z", [0.4, 0.6])
    m.add("mu", lambda z: dist.Normal(jnp.array([-0.5, 0.5])[z], 1.0))
    m.add(
        "x", lambda before, mu: dist.Normal(0.5 * before + mu, 1.0), plate={"t": 3}, previous={"before": "x"},
        first=lambda mu: dist.Normal(mu, 2.0),
    )  # fmt: skip
    check(density_of(m))


def test_observed_parents_stay_as_they_are():
    m = mk.BayesianNetwork()
    m.add("a", dist.Normal(0, 1))
    m.add("b", lambda a: dist.Normal(3 * a, 0.1))
    u, _ = drawn(density_of(m, {"a": 2.0}), 2000)
    assert stats.kstest(u[:, 0], stats.norm(6, 0.1).cdf).pvalue > 1e-3


def test_priors_that_cannot_be_drawn_from_are_told_apart():
    m, given = hierarchy()
    inside = density_of(m, {**given, "mu": mk.Interval(0, 1)})
    assert inside.prior is None
    with x64():
        assert 0 < float(inside.constrain(np.full(inside.size, 3.0), inside.data)["mu"]) < 1
    assert density_of(m, {**given, "mu": mk.Soft(dist.Normal(0, 1))}).prior is not None
    assert density_of(m, {"theta": np.array([1.0, np.nan, 0.0])}, missing="impute").prior is None
    flat = mk.BayesianNetwork()
    flat.add("mu", dist.ImproperUniform(dist.constraints.real, (), ()))
    flat.add("y", lambda mu: dist.Normal(mu, 1.0))
    assert density_of(flat, {"y": 1.0}).prior is None
    walk = mk.BayesianNetwork()
    walk.add(
        "x",
        lambda before: dist.Normal(before, 1.0),
        plate={"t": 3},
        previous={"before": "x"},
        first=mk.Flat(),
    )
    assert density_of(walk).prior is None
    unlike = mk.BayesianNetwork()
    unlike.add("cut", dist.Ordered(dist.Normal(np.array([0.0, 1.0]), 1.0)))
    assert density_of(unlike).prior is None


@pytest.mark.slow
def test_sequential_monte_carlo_has_the_evidence_of_the_closed_form():
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 3))
    m.add("group", lambda mu: dist.Normal(mu, 2.0), plate={"school": 2})
    m.add("y", lambda group, at: dist.Normal(group[at], 1.0), plate="row")
    given = {"row": pd.DataFrame({"y": [0.5, 1.5, -1.0, 2.0, 1.0], "at": [0, 0, 1, 1, 1]})}
    exact = m.log_evidence(given=given)
    post = m.query("mu", given=given, engine=mk.engines.SMC(seed=1))
    error = post.info.details.log_mass_error
    assert abs(post.info.log_evidence - exact) < 4 * error
    assert error < 0.06


# -- what is summed out --------------------------------------------------------------------------------------------


def test_a_support_that_depends_on_a_state_that_is_summed_out_is_refused():
    for limits in (
        lambda z: dist.Uniform(0.0, 1.0 + z),
        lambda z: dist.Normal(0, 1) if z else dist.Gamma(2, 1),
    ):
        m = mk.BayesianNetwork()
        m.add("z", [0.5, 0.5])
        m.add("x", limits)
        with pytest.raises(mk.errors.UnsupportedModel, match="the support of 'x' depends on 'z'"):
            density_of(m)
        assert density_of(m, {"z": 1}).size == 1
    m.add("up", lambda z, x: 2.0 * z + 0.0 * x)
    m.add("w", lambda up, x: dist.Uniform(0.0, 1.0 + up))
    with pytest.raises(mk.errors.UnsupportedModel, match="the support of 'w' depends on 'z'"):
        density_of(m, {"x": 0.5})


def test_a_hierarchy_under_a_state_that_is_summed_out_is_sampled_centred():
    m = mk.BayesianNetwork()
    m.add("z", [0.3, 0.7])
    m.add("tau", dist.HalfNormal(1.0))
    m.add("theta", lambda z, tau: dist.Normal(3.0 * z, tau))
    density = density_of(m, reparameterize="all")
    with x64():
        found = density.log_prior(np.array([0.2, 1.0]), {})
    scale = np.exp(0.2)
    mixed = 0.3 * stats.norm(0, scale).pdf(1.0) + 0.7 * stats.norm(3, scale).pdf(1.0)
    assert float(found) == pytest.approx(np.log(mixed) + stats.halfnorm.logpdf(scale) + 0.2, rel=1e-10)


@pytest.mark.slow
def test_a_distribution_of_whole_numbers_keeps_its_values():
    m = mk.BayesianNetwork()
    m.add("die", dist.DiscreteUniform(1, 6))
    m.add("y", lambda die: dist.Normal(die, 1.0))
    assert m.states("die") == [1, 2, 3, 4, 5, 6]
    weights = stats.norm(np.arange(1, 7), 1.0).pdf(3.0)
    np.testing.assert_allclose(m.query("die", given={"y": 3.0}).values, weights / weights.sum(), rtol=1e-10)
