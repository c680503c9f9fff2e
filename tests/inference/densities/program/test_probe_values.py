"""Values that functions are tried with: in the supports, from the prior where that is not enough, never made up."""

import warnings
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.inference.densities.draws.density_engine import log_densities
from markovia.inference.densities.program.compiled_functions import at_points
from markovia.inference.densities.program.probe_values import probe
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64


def program(model, given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing here fits by accident
        return program_of(model._problem(given), **options)


ROWS = np.random.default_rng(2).normal(size=(3, 2)) * [1.0, 2.0] + [0.5, -1.0]

SUPPORTS = {
    "factor": (
        lambda: dist.LKJCholesky(2, 1.5),
        lambda v: dist.MultivariateNormal(jnp.zeros(2), scale_tril=v),
    ),
    "correlation": (lambda: dist.LKJ(2, 0.7), lambda v: dist.MultivariateNormal(jnp.zeros(2), v)),
    "precision": (
        lambda: dist.Wishart(4.5, jnp.array([[1.0, 0.3], [0.3, 2.0]])),
        lambda v: dist.MultivariateNormal(jnp.ones(2), precision_matrix=v),
    ),
    "covariance": (
        lambda: dist.InverseGamma(3.0, 2.0).expand([2]).to_event(1),
        lambda v: dist.MultivariateNormal(jnp.ones(2), covariance_matrix=jnp.diag(v)),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ("factor", "covariance"))) for n in SUPPORTS]
)
def test_matrices_are_tried_inside_their_support(name):
    prior, child = SUPPORTS[name]
    m = mk.BayesianNetwork()
    m.add("v", prior())
    m.add("y", child, plate="row")
    found = program(m, {"y": ROWS})
    site = found.layout.sites["v"]
    with x64():
        for attempt in range(4):
            assert np.all(site.support(probe(found.layout, found.nodes, attempt)["v"])), attempt


def test_numbers_are_tried_where_functions_of_them_hold():
    m = mk.BayesianNetwork()
    m.add("w", dist.Uniform(5, 10))
    m.add("far", dist.Normal(100.0, 1.0))
    m.add("low", lambda w: dist.Uniform(w, 2 * w))
    m.add("y", lambda w: dist.Gamma(w - 4, 1.5), plate="row")
    m.add("x", lambda far, low: dist.Gamma(far - 90, low - 4), plate="row")
    found = program(m, {"y": ROWS[:, 0] ** 2, "x": ROWS[:, 1] ** 2 + 0.1})
    tried = [probe(found.layout, found.nodes, k) for k in range(4)]
    for values in tried:
        assert 5 < values["w"] < 10
        assert values["w"] < values["low"] < 2 * values["w"]
    assert all(abs(values["far"] - 100) < 5 for values in tried[1::2])  # draws of the prior
    assert len({float(values["w"]) for values in tried}) == 4


def test_a_function_that_holds_nowhere_is_refused_with_its_own_words():
    m = mk.BayesianNetwork()
    m.add("s", dist.HalfNormal(1.0))
    m.add("y", lambda s: dist.Normal(0.0, -s), plate="row")
    with pytest.raises(InvalidArgument, match=r"function of 'y' failed when called with s .*scale"):
        program(m, {"y": ROWS[:, 0]})


def test_functions_of_others_are_computed_and_missing_entries_lie_in_the_support():
    m = mk.BayesianNetwork()
    m.add("a", dist.Beta(2.0, 3.0), plate={"k": 3})
    m.add("twice", lambda a: 2 * a, plate="k")
    m.add("x", dist.Gamma(2.0, 1.0), plate="row")
    m.add("y", lambda x, twice: dist.Gamma(x, twice[2]), plate="row")
    x = np.array([1.5, np.nan, 0.25, np.nan])
    found = program_of(m._problem({"x": x, "y": x[[0, 2, 2, 0]]}, missing="impute"))
    for attempt in range(2):
        values = probe(found.layout, found.nodes, attempt)
        np.testing.assert_allclose(values["twice"], 2 * values["a"])
        assert (values["x"] > 0).all()
        assert values["x"][[0, 2]].tolist() == [1.5, 0.25]


def test_a_vector_as_long_as_the_plate_is_no_accident():
    m = mk.BayesianNetwork()
    m.add("p", dist.Dirichlet(np.array([1.0, 2.0, 0.5])))
    m.add("c", dist.Ordered(dist.Normal(0.0, 1.0), size=3))
    m.add("y", lambda p: dist.Categorical(p), plate="row")
    m.add("z", lambda c: dist.OrderedLogistic(0.3, c), plate="row")
    found = program(m, {"y": np.array([0, 2, 2]), "z": np.array([3, 1, 0])})
    assert found.density.size == 5


# -- discrete latents that index --------------------------------------------------------------------------------------


def at_random(found, n=3):
    points = np.random.default_rng(9).uniform(-1, 1, (n, found.density.size))
    values = at_points(
        found.density, "constrained", lambda key, u, data: found.density.constrain(u, data), points
    )
    jacobians = at_points(
        found.density, "jacobian", lambda key, u, data: found.density.log_jacobian(u, data), points
    )
    return log_densities(found.density, points) - jacobians, values


GROUP = np.array([0, 1, 2, 1, 1, 0, 2])
Y = np.array([0.3, -2.0, 1.1, 0.4, 3.0, -0.7, 0.05])


def test_a_group_s_state_that_indexes_a_scale_is_summed_out():
    m = mk.BayesianNetwork()
    m.add("s", dist.Gamma(2.0, 1.5), plate={"k": 2})
    m.add("c", dist.Categorical(np.array([0.3, 0.7])), plate={"group": 3})
    m.add("y", lambda s, c, g: dist.Normal(0.2, s[c[g]]), plate="row")
    logs, values = at_random(program(m, {"y": Y, "g": GROUP}))
    for k, found in enumerate(logs):
        s = values["s"][k]
        exact = stats.gamma.logpdf(s, 2, scale=1 / 1.5).sum() + logsumexp(
            [
                np.log(np.array([0.3, 0.7])[list(c)]).sum()
                + stats.norm.logpdf(Y, 0.2, s[np.array(c)[GROUP]]).sum()
                for c in product(range(2), repeat=3)
            ]
        )
        assert found == pytest.approx(exact, rel=1e-10)


def test_a_group_s_state_that_indexes_rows_of_a_simplex_is_summed_out():
    said = np.array([0, 2, 1, 1, 2, 0, 2])
    m = mk.BayesianNetwork()
    m.add("p", dist.Dirichlet(np.array([1.0, 2.0, 0.5])), plate={"k": 2})
    m.add("c", dist.Categorical(np.array([0.6, 0.4])), plate={"group": 3})
    m.add("y", lambda p, c, g: dist.Categorical(p[c[g]]), plate="row")
    logs, values = at_random(program(m, {"y": said, "g": GROUP}))
    for k, found in enumerate(logs):
        p = values["p"][k]
        exact = sum(stats.dirichlet.logpdf(row, [1.0, 2.0, 0.5]) for row in p)
        for group in range(3):
            mine = said[group == GROUP]
            exact += logsumexp(np.log([0.6, 0.4]) + np.log(p[:, mine]).sum(axis=1))
        assert found == pytest.approx(exact, rel=1e-10)


def test_the_evidence_of_an_lkj_prior_is_the_integral_over_its_correlation():
    m = mk.BayesianNetwork()
    m.add("L", dist.LKJCholesky(2, 1.5))
    m.add("y", lambda L: dist.MultivariateNormal(jnp.zeros(2), scale_tril=L), plate="row")
    found = program(m, {"y": ROWS})
    u = np.linspace(-9, 9, 2001)[:, None]
    mine = np.exp(log_densities(found.density, u)).sum() * 18 / 2000

    def there(rho):
        prior = stats.beta.pdf((rho + 1) / 2, 1.5, 1.5) / 2
        return prior * np.exp(stats.multivariate_normal.logpdf(ROWS, [0, 0], [[1, rho], [rho, 1]]).sum())

    assert mine == pytest.approx(quad(there, -1, 1)[0], rel=1e-6)
