"""Non-centred and whitened quantities: the same density in other coordinates, chosen where few data inform them."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.draws.density_engine import DensityEngine
from markovia.inference.densities.engines.density_chains import DensityChainDetails
from markovia.inference.densities.program.compiled_functions import at_points
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.densities.program.program import program_of
from markovia.inference.result import Record

X = np.array([0.0, 0.15, 0.4, 0.45, 0.9])
K = 1.3**2 * np.exp(-0.5 * ((X[:, None] - X) / 0.3) ** 2) + 1e-6 * np.eye(5)
COUNTS = np.array([2, 0, 5, 1, 3])


def field(rows=1):
    """A Gaussian process written by hand: a latent vector with correlations, each element with `rows` counts."""
    m = mk.BayesianNetwork()
    m.add("level", dist.Normal(0.4, 1.0))
    m.add("f", lambda level: dist.MultivariateNormal(level * np.ones(5), covariance_matrix=K))
    m.add("y", lambda f, at: dist.Poisson(jnp.exp(f[at])), plate="row")
    at = np.tile(np.arange(5), rows)
    return m, {"y": np.tile(COUNTS, rows), "at": at}


def by_hand(level, f, counts, at):
    total = stats.norm.logpdf(level, 0.4, 1.0) + stats.multivariate_normal.logpdf(f, level * np.ones(5), K)
    return total + stats.poisson.logpmf(counts, np.exp(f[at])).sum()


@pytest.mark.slow
@pytest.mark.parametrize("reparameterize", ["auto", "none"])
def test_a_whitened_vector_has_the_same_density(reparameterize):
    m, given = field()
    program = program_of(m._problem(given), reparameterize)
    density = program.density
    points = np.random.default_rng(1).normal(size=(4, density.size))

    def look(key, u, data):
        env, _ = program.environment(u, data)
        back = program.free(env)
        return density.log_prob(u, data) - density.log_jacobian(u, data), density.constrain(u, data), back

    found, values, back = at_points(density, "look", look, points)
    for k in range(4):
        exact = by_hand(values["level"][k], values["f"][k], given["y"], given["at"])
        assert found[k] == pytest.approx(exact, rel=1e-8)
    np.testing.assert_allclose(back, points, atol=1e-6)
    if reparameterize == "auto":
        root = np.linalg.cholesky(K)
        np.testing.assert_allclose(values["f"], points[:, :1] + points[:, 1:] @ root.T, atol=1e-10)
        jacobian = at_points(density, "jacobian", lambda key, u, d: density.log_jacobian(u, d), points)
        np.testing.assert_allclose(jacobian, np.log(np.diag(root)).sum(), rtol=1e-10)


@pytest.mark.slow
def test_vectors_and_expanded_scales_are_whitened_where_few_data_inform_them():
    for rows, whitened in ((1, True), (5, True), (6, False)):
        m, given = field(rows)
        program = program_of(m._problem(given))
        assert program.layout.sites["f"].centred is not whitened, rows
        assert [s.name for s in program.centred] == ([] if whitened else ["f"])
    m = mk.BayesianNetwork()
    m.add("tau", dist.HalfNormal(2.0))
    m.add("b", lambda tau: dist.Normal(1.0, tau).expand([3]).to_event(1))
    m.add("t", lambda tau: dist.MultivariateStudentT(4.0, np.zeros(2), tau * np.eye(2)), plate={"k": 2})
    m.add("y", lambda b: dist.Normal(b[0], 1.0), plate="row")
    found = program_of(m._problem({"y": np.array([1.0, 2.0])}))
    assert [n for n, s in found.layout.sites.items() if not s.centred] == ["b", "t"]

    def flat(u, data):
        return jnp.concatenate([jnp.ravel(x) for x in found.constrain(u, data).values()])

    def look(key, u, data):
        env, jacobians = found.environment(u, data)
        total = sum(jacobians.values())
        exact = jnp.linalg.slogdet(jax.jacobian(flat)(u, data))[1]
        return found.log_density(u, data) - total, {n: env[n] for n in ("tau", "b", "t")}, total, exact

    points = np.random.default_rng(2).normal(size=(3, found.density.size))
    logs, values, jacobians, exact = at_points(found.density, "look", look, points)
    np.testing.assert_allclose(jacobians, exact, rtol=1e-9)
    for k in range(3):
        tau, b, t = (values[n][k] for n in ("tau", "b", "t"))
        exact = stats.halfnorm.logpdf(tau, scale=2) + stats.norm.logpdf(b, 1, tau).sum()
        exact += stats.multivariate_t.logpdf(t, np.zeros(2), tau**2 * np.eye(2), df=4).sum()
        assert logs[k] == pytest.approx(exact + stats.norm.logpdf([1.0, 2.0], b[0]).sum(), rel=1e-9)


@dataclass(frozen=True, kw_only=True)
class Astray(DensityEngine):
    """An engine whose trajectories diverge, or whose chains disagree."""

    divergences: int = 3
    r_hat: float = 1.0

    name: ClassVar[str] = "astray"

    def draw(self, density):
        details = DensityChainDetails(1, 4, 0, self.divergences, 0.5, 0.1, 1.0, self.r_hat, 4.0, 1.0, 0.0)
        record = Record(converged=False, advice="they went astray", details=details)
        points = np.zeros((1, 4, density.size))
        found = at_points(density, "c", lambda key, u, data: density.constrain(u, data), points)
        return DensityDraws(
            points, found, DrawStats(np.zeros((1, 4)), diverging=np.ones((1, 4), bool)), record
        )


@pytest.mark.parametrize(
    "how", [{"divergences": 3}, {"divergences": 0, "r_hat": 1.2}], ids=["diverged", "disagree"]
)
def test_a_vector_that_is_not_whitened_is_named_where_chains_go_astray(how):
    m, given = field()
    with pytest.warns(mk.errors.ConvergenceWarning, match=r"astray; 'f' can be sampled non-centred: repara"):
        m.query("f", given=given, engine=Astray(reparameterize="none", **how))
    with pytest.warns(mk.errors.ConvergenceWarning) as caught:
        post = m.query("f", given=given, engine=Astray())
    assert "non-centred:" not in str(caught[0].message)
    assert post.info.note == "f sampled non-centred"


@pytest.mark.slow
def test_a_gaussian_process_with_counts_is_sampled_without_divergences():
    x = np.linspace(0, 1, 40)
    kernel = np.exp(-0.5 * ((x[:, None] - x) / 0.15) ** 2) + 1e-6 * np.eye(40)
    counts = np.random.default_rng(3).poisson(np.exp(np.sin(6 * x) + 1))
    m = mk.BayesianNetwork()
    m.add("f", dist.MultivariateNormal(np.zeros(40), covariance_matrix=kernel))
    m.add("y", lambda f: dist.Poisson(jnp.exp(f + 1.0)).to_event(1))
    engine = mk.engines.NUTS(draws=500, warmup=500, chains=2, seed=1)
    post = m.query("f", given={"y": counts}, engine=engine)
    assert post.info.details.divergences == 0
    assert post.info.converged
    with pytest.warns(mk.errors.ConvergenceWarning, match="'f' can be sampled non-centred"):
        m.query("f", given={"y": counts}, engine=replace(engine, reparameterize="none"))
