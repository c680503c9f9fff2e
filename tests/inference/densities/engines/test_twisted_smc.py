"""Missing entries of diffusions whose network is exact: conditionals of normal distributions and mixtures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

import markovia as mk
import markovia.distributions as dist
from markovia.errors import MarkoviaError, Unanswered, UnsupportedModel
from markovia.factors.networks.diffusion_laws import noise_levels

STEPS = 50


class ExactNoise(eqx.Module):
    """The noise that is expected in an element of a mixture of normal distributions with one covariance."""

    means: np.ndarray
    cov: np.ndarray
    shape: tuple = eqx.field(static=True, default=(2,))

    def __call__(self, x, t):
        at = noise_levels("cosine", STEPS)
        i = jnp.round(t * STEPS).astype(int)
        a, s = jnp.asarray(at.signal)[i], jnp.asarray(at.noise)[i]
        wide = a**2 * self.cov + s**2 * jnp.eye(2)
        off = x - a * self.means
        scaled = jnp.linalg.solve(wide, off.T).T
        return s * jax.nn.softmax(-0.5 * jnp.sum(off * scaled, axis=1)) @ scaled


def exact_network(means, cov, **settings):
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(ExactNoise(np.asarray(means, float), np.asarray(cov, float))))
    settings = {"prediction": "noise", "variance": "fixed large", **settings}
    m.add("x", lambda net: mk.deep.Diffusion.distribution(net, steps=STEPS, **settings), plate="row")
    return m


COV = np.array([[1.0, 0.8], [0.8, 1.0]])


@pytest.mark.slow
def test_conditionals_of_a_normal_distribution():
    m = exact_network([[0.0, 0.0]], COV)
    rows = np.array([[0.5, np.nan], [np.nan, -1.5], [np.nan, np.nan], [0.3, 0.9]])
    engine = mk.engines.TwistedSMC(particles=2000, draws=2000)
    post = m.query("x", given={"x": rows}, missing="impute", engine=engine)
    x = np.asarray(post.draws["x"])[0]
    assert x.shape == (2000, 4, 2)
    assert (x[:, 0, 0] == 0.5).all()
    assert (x[:, 1, 1] == -1.5).all()
    np.testing.assert_allclose(x[:, 3], [[0.3, 0.9]] * 2000)
    assert abs(x[:, 0, 1].mean() - 0.4) < 0.06
    assert abs(x[:, 1, 0].mean() + 1.2) < 0.06
    assert abs(x[:, 0, 1].std() / 0.6 - 1) < 0.06
    assert abs(x[:, 1, 0].std() / 0.6 - 1) < 0.06
    np.testing.assert_allclose(np.cov(x[:, 2].T), COV, atol=0.12)
    # the densities of what was seen, nearly those of the elements themselves
    details = post.info.details
    exact = [
        norm(0, 1).logpdf(0.5),
        norm(0, 1).logpdf(-1.5),
        0.0,
        multivariate_normal([0, 0], COV).logpdf(rows[3]),
    ]
    np.testing.assert_allclose(details.log_evidence, exact, atol=0.12)
    assert details.effective_draws.min() > 200
    assert (details.least_effective <= details.effective_draws).all()
    many = mk.engines.Amortised(proposals=50_000, seed=0)
    # with the exact denoiser the bound is nearly tight, and the chain's law nearly that of the elements
    assert m.log_evidence({"x": rows[3:]}, by="row", engine=many)[0] == pytest.approx(exact[3], abs=0.03)


@pytest.mark.slow
def test_conditionals_of_a_mixture_have_both_modes():
    means, width = np.array([[-1.0, -1.0], [1.0, 0.0], [-1.0, 1.5]]), 0.05
    m = exact_network(means, width * np.eye(2), location=(10.0, 0.0), scale=(5.0, 0.1))
    given = 10.0 + 5.0 * -0.95
    engine = mk.engines.TwistedSMC(particles=3000, draws=3000, seed=2)
    post = m.query("x", given={"x": np.array([[given, np.nan]])}, missing="impute", engine=engine)
    x = np.asarray(post.draws["x"])[0, :, 0, 1] / 0.1
    share = norm(means[:, 0], width**0.5).pdf(-0.95)
    share /= share.sum()
    assert abs((x > 0.25).mean() - share[2]) < 0.05
    for k, mine in ((0, x < 0.25), (2, x >= 0.25)):
        assert abs(x[mine].mean() - means[k, 1]) < 0.04
        assert abs(x[mine].std() / width**0.5 - 1) < 0.08
    exact = logsumexp(norm(means[:, 0], width**0.5).logpdf(-0.95)) - np.log(3) - np.log(5.0)
    assert abs(post.info.log_evidence - exact) < 0.15


@pytest.mark.slow
def test_auto_picks_it_and_seeds_repeat():
    m = exact_network([[0.0, 0.0]], COV)
    given = {"x": np.array([[0.5, np.nan]])}
    one, two = (m.query("x", given=given, missing="impute") for _ in range(2))
    assert one.info.engine == "twisted-smc"
    np.testing.assert_array_equal(one.draws["x"], two.draws["x"])


def test_what_it_does_not_answer():
    m = exact_network([[0.0, 0.0]], COV)
    complete, gaps = {"x": np.zeros((1, 2))}, {"x": np.array([[0.5, np.nan]])}
    with pytest.raises(Unanswered, match="draws missing entries of a diffusion"):
        m.log_evidence(complete, engine="twisted-smc")
    with pytest.raises(UnsupportedModel, match="fit needs complete rows"):
        m.log_evidence(gaps, by="row")
    with pytest.raises(MarkoviaError, match="twisted-smc"):
        m.query("x", given=gaps, missing="impute", engine="nuts")
    m.add("z", lambda x: dist.Normal(x[..., 0], 1.0), plate="row")
    with pytest.raises(UnsupportedModel, match="nothing depends on it; here is 'z'"):
        m.query("x", given=gaps, missing="impute", engine="twisted-smc")
