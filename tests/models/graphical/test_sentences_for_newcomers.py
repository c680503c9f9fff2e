"""What a newcomer writes first: it works, or one sentence in the newcomer's own words says what to write."""

import math

import numpy as np
import pytest
import scipy.stats

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, InvalidEvidence, UnsupportedModel


def noisy(prior):
    model = mk.BayesianNetwork()
    model.add("b", prior)
    model.add("y", lambda b: dist.Normal(b, 2.0), plate="row")
    return model


def mixed():
    model = mk.BayesianNetwork()
    model.add("z", states=["a", "b"], p=[0.5, 0.5])
    model.add("x", lambda z: dist.Normal(z, 1.0))
    return model


@pytest.mark.parametrize("engine", ["auto", "laplace"])
def test_a_flat_prior_gives_the_likelihood_alone(engine):
    seen = np.array([1e3, 2e3, 6e3])
    post = noisy(mk.Flat()).query("b", given={"y": seen}, engine=engine)
    assert post.mean("b") == pytest.approx(3e3, rel=1e-3)
    assert post.sd("b") == pytest.approx(2.0 / math.sqrt(3), rel=0.1)


def test_a_flat_prior_is_not_drawn_from_but_its_posterior_is():
    with pytest.raises(UnsupportedModel, match=r"'b' has an improper prior.* give it a distribution"):
        noisy(mk.Flat()).sample(3, given={"row": 2})
    assert noisy(mk.Flat()).sample(3, given={"b": 1.0, "row": 2})["y"].shape == (3, 2)


@pytest.mark.parametrize(
    ("form", "match"),
    [
        (scipy.stats.norm(), r"'x' has a distribution of scipy, norm; .* dist\.Normal\("),
        (scipy.stats.poisson, r"scipy, poisson; .* dist\.Poisson\("),
        (scipy.stats.multivariate_normal([0, 0]), r"dist\.MultivariateNormal\("),
        (5.0, r"'x' is to be 5.0, .* given=\{'x': 5.0\}, or say dist.Delta\(5.0\)"),
        (np.int64(3), "which is a number and no distribution"),
    ],
)
def test_what_is_no_distribution_here_is_refused_with_what_is(form, match):
    with pytest.raises(InvalidArgument, match=match):
        mk.BayesianNetwork().add("x", form)


@pytest.mark.parametrize("kind", ["bif", "xmlbif", "net", "xdsl", "dsc", "dne", "uai"])
def test_formats_of_tables_say_that_they_hold_no_numbers(kind):
    with pytest.raises(
        UnsupportedModel, match=rf"{kind} files hold tables .* 'x' is a number; save it as \.json"
    ):
        mk.io.dumps(mixed(), kind)


def test_a_table_with_a_number_for_a_parent_is_to_be_a_function():
    model = mixed()
    with pytest.raises(
        UnsupportedModel, match=r"rows for 'x', which is a number; .*lambda x: dist\.Bernoulli"
    ):
        model.add("c", states=["u", "v"], p=[[0.5, 0.5]], parents=["x"])
    model.add("c", lambda x: dist.Bernoulli(logits=x))
    assert model.parents("c") == ["x"]


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda a: dist.Normal(np.sin(a), 1.0), r"'y' cannot be compiled: .* use jnp\.sin"),
        (lambda a: dist.Normal(math.exp(a), 1.0), r"use jnp\.exp"),
        (lambda a: dist.Normal(float(a), 1.0), r"float\(\) on a value .* import jax\.numpy as jnp"),
    ],
)
def test_numpy_in_a_function_is_told_to_be_jax(function, match):
    model = mk.BayesianNetwork()
    model.add("a", dist.Normal(0.0, 1.0))
    model.add("y", function)
    with pytest.raises(InvalidArgument, match=match) as said:
        model.query("a", given={"y": 0.3})
    assert "\n" not in str(said.value)


def test_numpy_in_a_particle_filter_is_told_likewise():
    model = mk.series.ParticleFilter(
        dist.Normal(0, 1), lambda x: dist.Normal(np.cos(x), 1), lambda x: dist.Normal(x, 1)
    )
    with pytest.raises(InvalidArgument, match=r"transition= cannot be compiled: .* use jnp\.cos"):
        model.filter([1.0, 2.0])


def test_soft_evidence_on_states_is_a_plain_dict():
    with pytest.raises(InvalidEvidence, match=r"given as they are: \{'yes': 0.8, 'no': 0.2\}, without Soft"):
        mk.Soft({"yes": 0.8, "no": 0.2})
    sprinkler = mk.examples.sprinkler()
    soft = sprinkler.query("rain", given={"wet": {"yes": 0.8, "no": 0.2}})
    assert soft["yes"] > sprinkler.query("rain")["yes"]


def line():
    model = mk.BayesianNetwork()
    model.add("slope", dist.Normal(0.0, 1.0))
    model.add("y", lambda slope, x: dist.Normal(slope * x, 1.0), plate="row")
    return model


def test_a_plate_is_as_long_as_the_constants_of_its_functions():
    assert line().sample(5, given={"x": np.arange(4.0)})["y"].shape == (5, 4)
    assert line().sample(5, given={"x": np.arange(4.0), "row": 4})["y"].shape == (5, 4)
    with pytest.raises(InvalidArgument, match=r"plates are row \(3\)"):
        line().sample(5, given={"x": np.arange(4.0), "row": 3})


def test_constants_that_disagree_do_not_say_how_long_a_plate_is():
    model = line()
    model.replace("y", lambda slope, x, knots: dist.Normal(slope * x + knots.sum(), 1.0))
    with pytest.raises(mk.errors.IncompleteModel, match=r"how long plate 'row' is .* given=\{'row': 10\}"):
        model.sample(5, given={"x": np.arange(4.0), "knots": np.ones(3)})


def test_the_best_numbers_have_a_density_and_the_best_states_a_probability():
    model = mk.BayesianNetwork()
    model.add("z", states=["a", "b"], p=[0.3, 0.7])
    model.add("x", mk.LinearGaussian(0.0, variance=1e-6))
    best = model.map(targets=["x"])
    assert repr(best).endswith(f"log density {best.log_posterior:.6g} given the evidence)")
    assert best.log_posterior == pytest.approx(-0.5 * math.log(2 * math.pi * 1e-6))
    assert repr(model.map(targets=["z"])).endswith("p = 0.7 given the evidence)")


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_precision_that_is_not_positive_definite_is_refused_when_it_is_given(unit):
    with pytest.raises(
        InvalidArgument, match=r"not positive definite: its entry .* for 'a' and 'b' must be below"
    ):
        mk.GaussianMarkovNetwork(unit * np.array([[1.0, 2.0], [2.0, 1.0]]), names=["a", "b"])
    frustrated = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    with pytest.raises(InvalidArgument, match="make its diagonal larger"):
        mk.GaussianMarkovNetwork(unit * frustrated)
    fine = mk.GaussianMarkovNetwork(unit * np.array([[1.0, 0.5], [0.5, 1.0]]), names=["a", "b"])
    assert fine.query("a").var() == pytest.approx(4 / 3 / unit)


def with_numbers():
    m = mk.BayesianNetwork()
    m.add("d", states=["a", "b"], p=[0.2, 0.8])
    m.add("x", mk.LinearGaussian(0, {}, 1))
    m.add(
        "y", {"a": mk.LinearGaussian(0, {"x": 1}, 1), "b": mk.LinearGaussian(1, {"x": 1}, 1)}, parents=["d"]
    )
    return m


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda m: m.states("x"), r"query\('x'\) says how it is distributed"),
        (lambda m: m.rename_states("x", ["a", "b"]), "no states to rename"),
        (lambda m: m.joint(), r"the joint table is one of states, and 'x'"),
        (lambda m: m.junction_tree(), "clique trees and their costs are of tables, and 'x'"),
        (lambda m: m.add_edge("x", "d"), "the table of 'd' cannot have rows for 'x'"),
        (lambda m: m.add_edge("d", "x"), r"replace\('x', ...\) gives it one with 'd'"),
    ],
)
def test_what_numbers_have_not_is_said_in_the_words_of_the_question(ask, match):
    with pytest.raises(UnsupportedModel, match=match):
        ask(with_numbers())


def test_filling_tables_leaves_numbers_as_they_are():
    m = with_numbers()
    before = m["y"]
    m.fill("uniform")
    assert m["d"].values.tolist() == [0.5, 0.5]
    assert m["y"] is before
    numbers = mk.BayesianNetwork()
    numbers.add("x", mk.LinearGaussian(0, {}, 1))
    with pytest.raises(UnsupportedModel, match=r"fill\(\) is for tables"):
        numbers.fill("uniform")


def test_functions_that_are_all_observed_have_their_density_for_evidence():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(0, 1))
    m.add("y", lambda x: dist.Normal(x, 2))
    normal = scipy.stats.norm
    both = normal.logpdf(1.0) + normal(1.0, 2.0).logpdf(3.0)
    assert m.log_evidence(given={"x": 1.0, "y": 3.0}) == pytest.approx(both)
    apart = normal.logpdf(1.0) + normal(0.0, 5**0.5).logpdf(3.0)
    assert float(m.conflict({"x": 1.0, "y": 3.0})) == pytest.approx(apart - both)
