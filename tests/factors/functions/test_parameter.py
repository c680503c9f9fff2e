"""Parameters beside the nodes of a network: what they may be, how functions get them, and how they are kept."""

import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import (
    DuplicateName,
    IncompleteModel,
    InvalidArgument,
    ParseError,
    UnknownArgument,
    UnsupportedModel,
)
from markovia.factors.functions.parameter import ModuleSkeleton, PlatedModule


def line_mean(x, slope, scale):
    return dist.Normal(slope * x, scale)


def line():
    m = mk.BayesianNetwork()
    m.add("slope", mk.Parameter(0.0))
    m.add("scale", mk.Parameter(1.0, support="positive"))
    m.add("x", mk.Input(), plate="row")
    m.add("y", line_mean, plate="row")
    return m


def pixels(z, decoder):
    return dist.Bernoulli(logits=decoder(z))


def code(x, encoder):
    return dist.Normal(*encoder(x))


def autoencoder():
    m = mk.BayesianNetwork()
    m.add("decoder", mk.Parameter(mk.networks.mlp(2, 5, hidden=6, layers=1)))
    m.add("encoder", mk.Parameter(mk.networks.gaussian_mlp(5, 2, hidden=6, layers=1)))
    m.add("z", dist.Normal(0, 1), size=2, plate="row")
    m.add("x", pixels, plate="row")
    m.guide("z", code)
    return m


BITS = (np.random.default_rng(0).random((40, 5)) < 0.4).astype(float)


def test_parameters_of_a_line_are_its_least_squares():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = 1.7 * x + 0.5 * rng.normal(size=300)
    m = line().fit({"x": x, "y": y}, epochs=300, seed=0, learning_rate=0.02, precision="float64")
    slope = x @ y / (x @ x)
    assert abs(m.parameters["slope"] - slope) < 0.02
    assert abs(m.parameters["scale"] - np.std(y - slope * x)) < 0.03


def test_parameters_are_no_variables_and_names_are_used_once():
    m = line()
    assert m.variables == ["x", "y"]
    assert list(m.parameters) == ["slope", "scale"]
    assert m.parents("y") == ["x"]
    with pytest.raises(DuplicateName, match="already has a parameter 'slope'"):
        m.add("slope", dist.Normal(0, 1))
    with pytest.raises(InvalidArgument, match="'slope' is a parameter, which fit learns"):
        m.log_evidence(given={"x": [1.0], "y": [1.0], "slope": 2.0})
    copied = m.copy()
    copied.fit({"x": [1.0, 2.0], "y": [2.0, 4.0]}, epochs=2, seed=0)
    assert m.parameters["slope"] == 0.0 != copied.parameters["slope"]


def test_a_failed_fit_leaves_the_parameters():
    m = line()
    with pytest.raises(UnknownArgument, match="did you mean 'epochs'"):
        m.fit({"x": [1.0], "y": [1.0]}, epoch=3)
    with pytest.raises(InvalidArgument, match="prior= is for networks of tables"):
        m.fit({"x": [1.0], "y": [1.0]}, prior="bdeu")
    assert m.parameters["slope"] == 0.0
    assert m.fit_ is None
    with pytest.raises(UnknownArgument, match="for networks with parameters"):
        mk.BayesianNetwork("a->b").fit({"a": [0, 1], "b": [0, 1]}, epochs=3)


def test_values_outside_the_support_are_refused():
    with pytest.raises(InvalidArgument, match="outside its support"):
        mk.Parameter(-1.0, support="positive")
    with pytest.raises(InvalidArgument, match="support= is"):
        mk.Parameter(1.0, support="negative")
    with pytest.raises(InvalidArgument, match=r"a parameter is a number, an array, a module.*not str"):
        mk.Parameter("a")


def test_a_recipe_is_no_model_before_it_is_trained():
    with pytest.raises(IncompleteModel, match=r"'decoder' is a recipe \(mlp\(2, 5.*call fit first"):
        autoencoder().sample(2, given={"row": 3})


def test_a_module_is_applied_to_every_element_of_the_plates():
    linear = eqx.nn.Linear(3, 3, key=jax.random.PRNGKey(0))
    rows = np.random.default_rng(0).normal(size=(3, 2, 3))
    mapped = PlatedModule(linear, "net", ("row", "t"), (3, 2))
    np.testing.assert_allclose(mapped(rows), rows @ linear.weight.T + linear.bias, atol=1e-6)
    # one axis of length one is spread over the plate
    np.testing.assert_allclose(mapped(rows[:, :1]), np.repeat(mapped(rows)[:, :1], 2, axis=1), atol=1e-6)
    with pytest.raises(
        InvalidArgument, match=r"applied along row \(3\), t \(2\) and gets an array of shape \(3,\)"
    ):
        mapped(rows[0, 0])


def test_numbers_of_a_module_go_to_a_vector_and_back():
    module = mk.networks.gaussian_mlp(3, 2, hidden=4, layers=1).build(0)
    skeleton = ModuleSkeleton.of(module)
    twin = skeleton.module(skeleton.vector(module))
    at = jnp.ones(3)
    np.testing.assert_allclose(twin(at)[0], module(at)[0], rtol=1e-6)
    assert skeleton.size == 3 * 4 + 4 + 4 * 4 + 4


def test_a_trained_model_is_saved_pickled_and_loaded(tmp_path):
    m = autoencoder()
    m.fit({"x": BITS}, epochs=3, batch=10, seed=0)
    before = m.log_evidence(given={"x": BITS[:4]}, by="row")
    m.save(tmp_path / "vae.json")
    for twin in (mk.load(tmp_path / "vae.json"), pickle.loads(pickle.dumps(m))):
        np.testing.assert_allclose(twin.log_evidence(given={"x": BITS[:4]}, by="row"), before, atol=1e-12)
        assert twin._guides.keys() == {"z"}
    m.add("own", mk.Parameter(eqx.nn.Linear(2, 2, key=jax.random.PRNGKey(0))))
    m.save(tmp_path / "own.json")  # the numbers alone
    with pytest.raises(ParseError, match="the module 'own' of class Linear"):
        mk.load(tmp_path / "own.json")


def test_the_same_seed_gives_the_same_parameters():
    found = [autoencoder().fit({"x": BITS}, epochs=2, batch=16, seed=s) for s in (0, 0, 1)]
    vectors = [ModuleSkeleton.of(m.parameters["decoder"]).vector(m.parameters["decoder"]) for m in found]
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])
    assert found[0].fit_.method == "evidence lower bound"
    assert len(found[0].fit_.history) == 2


def test_what_has_no_guide_is_named():
    m = autoencoder()
    m._guides = {}
    with pytest.raises(UnsupportedModel, match=r"'z' is latent, one for each row.*m\.guide\('z'"):
        m.fit({"x": BITS}, epochs=1, seed=0)
    m.guide("z", lambda x: dist.Normal(x[:, :3], 1.0))
    with pytest.raises(InvalidArgument, match="proposes values of shape"):
        m.fit({"x": BITS}, epochs=1, seed=0)


def test_an_array_with_a_prior_is_inferred():
    m = mk.BayesianNetwork()
    m.add("w", mk.Parameter(np.zeros(2), prior=dist.Normal(0, 1)))
    m.add("y", lambda w: dist.Normal(w.sum(), 1.0))
    assert m.variables == ["w", "y"]
    np.testing.assert_allclose(m.query("w", given={"y": 3.0}).mean("w"), [1.0, 1.0], atol=1e-6)


def test_one_row_and_batches_larger_than_the_data_are_learned_from():
    m = autoencoder().fit({"x": BITS[:1]}, epochs=3, batch=64, seed=0)
    assert np.isfinite(m.log_evidence(given={"x": BITS[:1]}, by="row")).all()
