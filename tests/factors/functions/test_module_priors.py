"""Modules whose numbers have a prior: latent quantities, inferred by every engine that infers numbers."""

import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import DuplicateName
from markovia.factors.functions.parameter import ModuleSkeleton

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X @ [1.0, -2.0] + 0.5 + 0.7 * RNG.normal(size=40)
# Bayesian linear regression: weights (2), then the bias
DESIGN = np.c_[X, np.ones(40)]
PRECISION = DESIGN.T @ DESIGN / 0.49 + np.eye(3) / 4.0
MEAN, COVARIANCE = np.linalg.solve(PRECISION, DESIGN.T @ Y / 0.49), np.linalg.inv(PRECISION)
LINEAR = mk.networks.mlp(2, "scalar", layers=0, hidden=1)
GIVEN = {"x": X, "y": Y}


def response(x, net):
    return dist.Normal(net(x), 0.7)


def regression(module=LINEAR):
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(module, prior=dist.Normal(0, 2)))
    m.add("x", mk.Input(), plate="row")
    m.add("y", response, plate="row")
    return m


def test_a_linear_module_is_bayesian_linear_regression():
    m = regression()
    assert m.variables == ["net", "x", "y"]
    assert m.parameters == {}
    exact = m.query("net", given=GIVEN)
    assert exact.info.engine == "conjugate"
    np.testing.assert_allclose(exact.mean("net"), MEAN, atol=1e-8)
    np.testing.assert_allclose(exact.sd("net"), np.sqrt(np.diag(COVARIANCE)), atol=1e-8)
    spread = DESIGN @ DESIGN.T * 4.0 + 0.49 * np.eye(40)
    evidence = -0.5 * (Y @ np.linalg.solve(spread, Y) + np.linalg.slogdet(2 * np.pi * spread)[1])
    assert m.log_evidence(given=GIVEN) == pytest.approx(evidence, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "close"),
    [
        (mk.engines.Laplace(), 0.01),
        (mk.engines.NUTS(draws=400, warmup=300, chains=2, seed=0), 0.03),
        (mk.engines.ADVI(seed=0), 0.03),
        (mk.engines.SGLD(draws=600, chains=2, batch=20, seed=0), 0.05),
    ],
)
def test_every_engine_on_densities_finds_it(engine, close):
    post = regression().query("net", given=GIVEN, engine=engine)
    np.testing.assert_allclose(post.mean("net"), MEAN, atol=close)
    wide = 0.5 if engine.name == "advi" else 0.25  # which leaves correlations out
    np.testing.assert_allclose(post.sd("net"), np.sqrt(np.diag(COVARIANCE)), rtol=wide)


def test_predictions_go_through_the_posterior():
    m = regression()
    post = m.query("net", given=GIVEN)
    new = np.array([[0.0, 0.0], [3.0, -3.0]])
    drawn = m.sample(4000, given=post, inputs={"x": new}, seed=0)["y"]
    at = np.c_[new, np.ones(2)]
    np.testing.assert_allclose(np.mean(drawn, axis=0), at @ MEAN, atol=0.06)
    wanted = np.sqrt(np.einsum("ij,jk,ik->i", at, COVARIANCE, at) + 0.49)
    np.testing.assert_allclose(np.std(drawn, axis=0), wanted, rtol=0.05)


def test_a_bare_module_is_what_a_recipe_is_and_can_be_set():
    linear = eqx.nn.Linear(2, "scalar", key=jax.random.PRNGKey(3))
    m = regression(linear)
    np.testing.assert_allclose(m.query("net", given=GIVEN).mean("net"), MEAN, atol=1e-8)
    fixed = m.do(net=np.array([1.0, 2.0, 3.0]))
    drawn = fixed.sample(3000, given={"x": np.ones((1, 2))}, seed=0)["y"]
    assert np.mean(drawn) == pytest.approx(6.0, abs=0.06)
    with pytest.raises(DuplicateName):
        m.add("net", mk.Parameter(LINEAR))


def test_it_is_kept_in_files_and_pickles(tmp_path):
    m = regression()
    m.save(tmp_path / "bayes.mkz")
    m.save(tmp_path / "bayes.json")
    twins = [mk.load(tmp_path / "bayes.mkz"), mk.load(tmp_path / "bayes.json"), pickle.loads(pickle.dumps(m))]
    for twin in twins:
        np.testing.assert_array_equal(
            twin.query("net", given=GIVEN).mean("net"), m.query("net", given=GIVEN).mean("net")
        )


def test_the_density_of_a_network_with_a_hidden_layer():
    recipe = mk.networks.mlp(2, "scalar", hidden=3, layers=1)
    m = regression(recipe)
    module = recipe.build(5)
    vector = ModuleSkeleton.of(module).vector(module)
    said = jax.vmap(module)(jnp.asarray(X))
    by_hand = dist.Normal(0, 2).log_prob(vector).sum() + dist.Normal(said, 0.7).log_prob(Y).sum()
    assert m.log_prob({**GIVEN, "net": vector}) == pytest.approx(float(by_hand), rel=1e-5)
