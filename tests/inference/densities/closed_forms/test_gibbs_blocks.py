"""Gibbs sampling of numbers against exact moments."""

import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.engines.density_chains import DensityChainDetails
from markovia.inference.densities.program.density import standard_normal
from markovia.inference.markov_chains.diagnostics import mcse


@pytest.fixture(scope="module")
def everything():
    """A model with each part of a sweep: a conjugate block, a Metropolis step, states that are drawn."""
    m = mk.BayesianNetwork()
    m.add("w", dist.Beta(2.0, 3.0))
    m.add("mu", dist.Normal(0.0, 2.0))
    m.add("sigma", dist.HalfNormal(1.0))
    m.add("z", lambda w: dist.Bernoulli(w), plate="row")
    m.add("y", lambda z, mu, sigma: dist.Normal(mu + 2.0 * z, sigma), plate="row")
    y = np.array([-0.5, 0.3, 2.2, 1.7])
    engine = mk.engines.BlockGibbs(draws=2000, chains=2, thin=4, seed=1)
    return m.query(["w", "mu", "sigma"], given={"y": y}, engine=engine), y


def by_quadrature(y):
    """Return mean and deviation of w, mu, sigma, and the probability that each z is 1."""
    w, mu, sigma = np.linspace(0.01, 0.99, 40), np.linspace(-6, 6, 81), np.linspace(0.02, 5, 80)
    W, M, S = np.meshgrid(w, mu, sigma, indexing="ij")
    logs = stats.beta(2, 3).logpdf(W) + stats.norm(0, 2).logpdf(M) - 0.5 * S**2
    ones = []
    for value in y:
        one, zero = W * stats.norm.pdf(value, M + 2, S), (1 - W) * stats.norm.pdf(value, M, S)
        with np.errstate(all="ignore"):
            logs = logs + np.log(one + zero)
            ones.append(np.nan_to_num(one / (one + zero)))
    p = np.exp(logs - logs.max())
    p /= p.sum()
    moments = {}
    for name, values in zip(("w", "mu", "sigma"), (W, M, S), strict=True):
        mean = (p * values).sum()
        moments[name] = mean, np.sqrt((p * (values - mean) ** 2).sum())
    return moments, [(p * one).sum() for one in ones]


def test_a_sweep_has_the_exact_moments(everything):
    post, y = everything
    moments, ones = by_quadrature(y)
    for name, (mean, sd) in moments.items():
        assert abs(post.mean(name) - mean) < 4 * mcse(post.draws[name]) + 1e-3
        assert post.sd(name) == pytest.approx(sd, rel=0.07)
    assert np.allclose(np.asarray(post["z"])[:, 1], ones, atol=0.02)
    assert post.info.engine == "gibbs"
    assert not post.info.exact
    assert isinstance(post.info.details, DensityChainDetails)
    assert 0.3 < post.info.details.acceptance < 0.6


@pytest.mark.slow
def test_known_conditionals_give_nearly_independent_draws():
    m = mk.BayesianNetwork()
    m.add("tau", dist.Gamma(2.0, 1.0))
    m.add("mu", lambda tau: dist.Normal(1.0, (3 * tau) ** -0.5))
    m.add("y", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate="row")
    y = np.random.default_rng(0).normal(2, 1.5, size=20)
    exact = m.query(["mu", "tau"], given={"y": y}, engine="conjugate")
    post = m.query(["mu", "tau"], given={"y": y}, engine="gibbs")
    for name in ("mu", "tau"):
        assert abs(post.mean(name) - exact.mean(name)) < 4 * mcse(post.draws[name])
        assert post.sd(name) == pytest.approx(exact.sd(name), rel=0.05)
    assert post.summary()["ess_bulk"].min() > 2500


def test_a_bare_density_has_no_nodes():
    with pytest.raises(mk.errors.UnsupportedModel, match="nodes of a model"):
        mk.engines.BlockGibbs(draws=10, warmup=0, chains=1).draw(standard_normal(1))
