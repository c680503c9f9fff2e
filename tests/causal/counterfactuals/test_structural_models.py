"""Structural models: equations, interventions, fits, and counterfactuals by inversion, twin networks and draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
import markovia.distributions as dist
from markovia.causal.counterfactuals.affine import affine
from markovia.causal.counterfactuals.noises import Empirical
from markovia.errors import (
    DuplicateName,
    ImpossibleEvidence,
    IncompleteModel,
    InvalidArgument,
    UnknownVariable,
    UnsupportedModel,
)


def log_example():
    m = mk.StructuralModel()
    m.add("x", dist.Normal(0, 1))
    m.add("y", lambda x, e: np.log(x + e + 3), noise=dist.Normal(0, 1))
    return m


def test_the_log_example_has_its_noise_its_counterfactual_and_its_prediction():
    m = log_example()
    facts = {"x": -1, "y": 0.4}
    assert m.noises(facts)["y"] == pytest.approx(-0.508175, abs=5e-7)
    answer = m.counterfactual("y", given=facts, do={"x": 0})
    assert answer.mean() == pytest.approx(0.913015, abs=5e-7)
    assert answer.sd() == 0.0
    assert answer.info.exact
    assert m["y"](x=0, e=0) == pytest.approx(1.098612, abs=5e-7)


def george():
    """Smoking yellows fingers and makes cough; each has a noise of its own."""
    m = mk.StructuralModel()
    m.add("smoking", p=[0.7, 0.3])
    m.add("fingers", lambda smoking, e: np.where(e == 1, 1 - smoking, smoking), noise=[0.9, 0.1], states=2)
    m.add(
        "cough",
        lambda smoking, e: np.maximum(smoking * (e != 2), (e == 1) * 1),
        noise=[0.7, 0.1, 0.2],
        states=2,
    )
    return m


def test_one_model_answers_all_three_rungs():
    m = george()
    # seeing: P(smoking | fingers) = .27/.34, cough .8 among smokers and .1 otherwise
    assert m.query("cough", given={"fingers": 1})[1] == pytest.approx((0.27 * 0.8 + 0.07 * 0.1) / 0.34)
    # doing: yellow paint makes nobody cough
    assert m.do(fingers=1).query("cough")[1] == pytest.approx(0.3 * 0.8 + 0.7 * 0.1)
    # imagining: George has clean fingers and coughs; with yellow ones he would still cough
    assert m.counterfactual("cough", given={"fingers": 0, "cough": 1}, do={"fingers": 1})[1] == pytest.approx(
        1.0
    )
    # had he not smoked: his cough may be the one that comes without smoking (e = 1), given that he smokes and coughs
    seen = m.counterfactual("cough", given={"smoking": 1, "cough": 1}, do={"smoking": 0})
    assert seen[1] == pytest.approx(0.1 / 0.8)


def test_the_network_has_explicit_noises_and_answers_as_the_model():
    m = george()
    bn = m.network()
    assert bn.variables == ["smoking", "e_fingers", "fingers", "e_cough", "cough"]
    for facts in ({}, {"fingers": 1}, {"cough": 1, "fingers": 0}):
        assert bn.query("smoking", given=facts).allclose(m.query("smoking", given=facts))
    ask = {"given": {"fingers": 0, "cough": 1}, "do": {"smoking": 0}}
    assert bn.counterfactual("cough", **ask).allclose(m.counterfactual("cough", **ask))


@pytest.mark.parametrize("kind", ["monotone", "independent"])
def test_tables_with_a_finite_mechanism_have_a_network_with_the_same_counterfactuals(kind):
    bn = mk.BayesianNetwork("a->b->c; a->c", states={"b": 3}, tables="random", seed=4)
    m = mk.StructuralModel.from_network(bn, mechanism=kind)
    explicit = m.network()
    ask = {"given": {"c": 1, "a": 0}, "do": {"a": 1}}
    expected = bn.counterfactual("c", mechanism=kind, **ask)
    assert m.counterfactual("c", **ask).allclose(expected)
    assert explicit.counterfactual("c", **ask).allclose(expected)
    assert "no mechanism had to be chosen" in explicit.counterfactual("c", **ask).info.note


def test_a_gumbel_mechanism_has_no_finite_network():
    bn = mk.BayesianNetwork("a->b", tables="random", seed=0)
    with pytest.raises(UnsupportedModel, match="gumbel"):
        mk.StructuralModel.from_network(bn, mechanism="gumbel").network()


def linear_model():
    m = mk.StructuralModel()
    m.add("x", dist.Normal(1, 2))
    m.add("y", lambda x, e: 2 * x + e, noise=dist.Normal(0, 1))
    m.add("z", mk.LinearGaussian(1.0, {"x": -1.0, "y": 0.5}, 4.0))
    return m


def test_linear_gaussian_equations_are_seen_and_answered_in_closed_form():
    m = linear_model()
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(1, {}, 4))
    bn.add("y", mk.LinearGaussian(0, {"x": 2}, 1))
    bn.add("z", mk.LinearGaussian(1, {"x": -1, "y": 0.5}, 4))
    ask = {"given": {"z": 2.0, "x": 0.0}, "do": {"x": 3.0}}
    ours, theirs = m.counterfactual(["y", "z"], **ask), bn.counterfactual(["y", "z"], **ask)
    assert ours.info.exact
    assert ours.allclose(theirs, atol=1e-8)
    assert ours.mean("z") == pytest.approx(2.0)  # the direct and the indirect path cancel
    assert m.network().query("z").allclose(bn.query("z"), atol=1e-8)


def test_draws_agree_with_the_closed_form():
    """The same linear model with a Gaussian noise that is not recognised, so that noises are drawn."""
    m, twin = linear_model(), mk.StructuralModel()
    twin.add("x", dist.Normal(1, 2))
    twin.add("y", lambda x, e: 2 * x + np.arcsinh(np.sinh(e)), noise=dist.Normal(0, 1))
    twin.add("z", lambda x, y, e: 1 - x + 0.5 * y + np.cbrt(e**3) * 2, noise=dist.Normal(0, 1))
    ask = {"given": {"z": 2.0}, "do": {"x": 3.0}}
    exact = m.counterfactual("y", **ask)
    drawn = twin.counterfactual("y", **ask, draws=20_000, seed=0)
    assert not drawn.info.exact
    assert drawn.mean() == pytest.approx(exact.mean(), abs=4 * exact.sd() / np.sqrt(10_000))
    assert drawn.sd() == pytest.approx(exact.sd(), rel=0.05)


def test_shifts_new_functions_and_new_distributions_keep_the_unit():
    m = linear_model()
    facts = {"x": 1.0, "y": 2.5, "z": 0.0}
    assert m.counterfactual("z", given=facts, shift={"y": 2.0}).mean() == pytest.approx(1.0)
    assert m.counterfactual("y", given=facts, do={"y": lambda x, e: x - e}).mean() == pytest.approx(0.5)
    assert m.counterfactual("y", given=facts, shift={"x": 1.0}).mean() == pytest.approx(4.5)
    fresh = m.counterfactual("y", given=facts, do={"x": dist.Normal(0, 1)})
    assert fresh.mean() == pytest.approx(0.5)
    assert fresh.sd() == pytest.approx(2.0)
    assert m.do(y=lambda x, e: -x).query("y", given={"x": 2.0}).mean() == pytest.approx(-2.0)


def test_the_same_interventions_on_a_model_of_draws():
    m = mk.StructuralModel()
    m.add("x", dist.Laplace(0, 1))
    m.add("y", lambda x, e: np.tanh(x + e), noise=dist.Laplace(0, 1))
    facts = {"x": 0.3, "y": float(np.tanh(0.8))}
    assert m.noises(facts)["y"] == pytest.approx(0.5)
    assert m.counterfactual("y", given=facts, shift={"x": 0.2}).mean() == pytest.approx(np.tanh(1.0))
    assert m.counterfactual("y", given=facts, do={"y": lambda x, e: x * e}).mean() == pytest.approx(0.15)
    fresh = m.counterfactual("y", given=facts, do={"x": dist.Laplace(5, 0.001)}, seed=0)
    assert fresh.mean() == pytest.approx(np.tanh(5.5), abs=1e-4)


def test_an_equation_with_two_noises_that_give_the_value_weighs_both():
    m = mk.StructuralModel()
    m.add("x", p=[0.5, 0.5])
    m.add("y", lambda x, e: (e - 1) ** 2 + 0 * x, noise=dist.Normal(0, 1))
    m.add("z", lambda y, e: np.where(e > 0, 1, 0), noise=dist.Normal(0, 1), states=2)
    drawn = m.noises({"x": 0, "y": 1.0}, draws=20_000, seed=0)["y"]
    share = np.exp(-0.0) / (np.exp(-0.0) + np.exp(-2.0))  # roots 0 and 2, equal slopes
    assert np.unique(drawn.round(9)).tolist() == [0.0, 2.0]
    assert (drawn < 1).mean() == pytest.approx(share, abs=0.015)


def test_states_behind_continuous_noises_are_explained_by_draws():
    m = mk.StructuralModel()
    m.add("x", dist.Normal(0, 1))
    m.add("t", lambda x, e: np.where(x + e > 0, "yes", "no"), noise=dist.Normal(0, 1), states=["no", "yes"])
    answer = m.counterfactual("t", given={"x": 0.5, "t": "no"}, do={"x": 1.0}, seed=0, draws=50_000)
    from scipy.special import ndtr

    expected = (ndtr(-0.5) - ndtr(-1.0)) / ndtr(-0.5)
    assert answer["yes"] == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("kind", ["monotone", "gumbel", "independent"])
def test_draws_of_a_mechanism_agree_with_its_exact_coupling(kind):
    bn = mk.BayesianNetwork("a->b->c", states={"a": 3, "b": 3}, tables="random", seed=7)
    exact = bn.counterfactual("b", given={"b": 1, "c": 0}, do={"a": 2}, mechanism=kind)
    m = mk.StructuralModel.from_network(bn, mechanism=kind)
    m.add("w", lambda b, e: 1.0 * b + e, noise=dist.Laplace(0, 1))  # the rest is drawn because of it
    from markovia.causal.counterfactuals.unit_draws import answer_by_draws

    changed = m.do(a=2)
    answer = answer_by_draws(
        m._all(), changed._all(), {"a"}, ["b"], {"b": 1, "c": 0}, 40_000, np.random.default_rng(0)
    )
    np.testing.assert_allclose(answer.values, exact.values, atol=4 * 0.5 / np.sqrt(20_000))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_samples_have_the_distribution_of_the_network(seed):
    bn = mk.BayesianNetwork("a->b->c; a->c", states={"b": 3}, tables="random", seed=seed)
    frame = mk.StructuralModel.from_network(bn, mechanism="gumbel").sample(4000, seed=seed)
    seen = (frame["c"] == 1).mean()
    assert abs(seen - bn.query("c")[1]) < 5 * 0.5 / np.sqrt(4000)


def test_networks_of_functions_answer_by_quantiles_and_say_so():
    bn = mk.BayesianNetwork()
    bn.add("a", dist.Normal(0, 1))
    bn.add("b", lambda a: dist.LogNormal(a, 0.5))
    answer = bn.counterfactual("b", given={"a": 1.0, "b": 2.0}, do={"a": 0.0})
    assert answer.mean() == pytest.approx(2 * np.exp(-1))
    assert "quantiles" in answer.info.note


def test_a_fit_keeps_the_residual_of_a_row_in_the_other_world():
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    y = np.sin(2 * x) + rng.uniform(-0.3, 0.3, size=800)
    model = mk.StructuralModel("x->y").fit(
        {"x": x, "y": y}, regressor=RandomForestRegressor(50, min_samples_leaf=10)
    )
    answer = model.counterfactual("y", given={"x": 0.5, "y": np.sin(1.0) + 0.2}, do={"x": -0.5})
    assert answer.mean() == pytest.approx(np.sin(-1.0) + 0.2, abs=0.15)
    assert answer.info.exact
    linear = mk.StructuralModel("x->y").fit({"x": x, "y": 2 * x + y - np.sin(2 * x)})
    frame = linear.do(x=0.5).sample(2000, seed=1)
    assert frame["y"].mean() == pytest.approx(1.0, abs=0.03)
    assert frame["y"].std() == pytest.approx(0.6 / np.sqrt(12), rel=0.15)


def test_a_fit_with_states_finds_the_probabilities_of_the_rows():
    bn = mk.BayesianNetwork("a->b", tables="random", seed=3)
    bn.rename_states("a", ["u", "v"])
    bn.rename_states("b", ["p", "q"])
    frame = bn.sample(4000, seed=0)
    m = mk.StructuralModel("a->b").fit(frame)
    seen = frame.groupby("a", observed=True)["b"].apply(lambda c: (c == "q").mean())
    for a in ("u", "v"):
        assert m.query("b", given={"a": a})["q"] == pytest.approx(seen[a], abs=2e-3)
    # a monotone pair: the row stays in its quantile
    p = {a: m.query("b", given={"a": a})["q"] for a in "uv"}
    expected = min(1.0, p["v"] / p["u"]) if p["v"] < p["u"] else 1.0
    assert m.counterfactual("b", given={"a": "u", "b": "q"}, do={"a": "v"})["q"] == pytest.approx(
        expected, abs=1e-6
    )


def test_the_kernel_estimate_of_residuals_is_a_density():
    noise = Empirical(np.random.default_rng(0).normal(2.0, 3.0, size=2000))
    at = np.linspace(-12, 16, 4001)
    density = np.exp(noise.log_prob(at))
    assert np.trapezoid(density, at) == pytest.approx(1.0, abs=2e-3)
    assert density[np.abs(at - 2).argmin()] == pytest.approx(1 / (3 * np.sqrt(2 * np.pi)), rel=0.1)


def test_linearity_is_seen_only_where_it_is_there():
    assert affine(lambda x, e: 3 - 2 * (x - e) / 4, {}, ["x", "e"]).terms == {"x": -0.5, "e": 0.5}
    for f in (
        lambda x: np.log(x), lambda x: x * x, lambda x: abs(x), lambda x: x if x > 0 else 0, lambda x: 1 / x,
        lambda x: x**2, lambda x: np.where(x > 0, x, 0), lambda x: np.maximum(x, 0), lambda x: float(x),
    ):  # fmt: skip
        assert affine(f, {}, ["x"]) is None


def test_bad_equations_get_one_sentence():
    m = log_example()
    with pytest.raises(DuplicateName):
        m.add("x", dist.Normal(0, 1))
    with pytest.raises(InvalidArgument, match="neither a variable"):
        m.add("z", lambda x, q: x + q)
    with pytest.raises(InvalidArgument, match="2 arguments"):
        m.add("z", lambda x, q, r: x + q, noise=dist.Normal(0, 1))
    with pytest.raises(UnknownVariable):
        m.counterfactual("w", given={"x": 0})
    with pytest.raises(UnknownVariable):
        m.do(w=1)
    with pytest.raises(IncompleteModel, match="fit"):
        mk.StructuralModel("a->b").sample(3)
    with pytest.raises(InvalidArgument, match="missing"):
        mk.StructuralModel("a->b").fit({"a": [1.0, np.nan], "b": [1.0, 2.0]})
    with pytest.raises(InvalidArgument, match="undefined"):
        m.counterfactual("y", given={"y": 0.4}, do={"x": -2}, seed=0)
    m.add("s", lambda x, e: np.where(x > 0, 5, 7), noise=dist.Normal(0, 1), states=[5, 6])
    with pytest.raises(InvalidArgument, match="none of its states"):
        m.sample(20, seed=0)


def test_facts_that_no_noise_explains_are_impossible():
    m = mk.StructuralModel()
    m.add("x", dist.Uniform(0, 1))
    m.add("y", lambda x, e: x + e**2, noise=dist.Normal(0, 1))
    with pytest.raises(ImpossibleEvidence):
        m.counterfactual("y", given={"x": 0.5, "y": 0.2}, do={"x": 0.1})


@pytest.mark.parametrize("shape", ["affine in the noise", "by its roots"])
def test_a_noise_that_is_stretched_by_its_parents_weighs_them_by_the_density_of_the_value(shape):
    """y = (1 + x^2) e with x hidden: the posterior of x has the factor 1 / (1 + x^2) of the change of variables."""
    m = mk.StructuralModel()
    m.add("x", dist.Normal(0, 1))
    if shape == "by its roots":
        m.add("y", lambda x, e: (1 + x**2) * np.sinh(np.arcsinh(e)), noise=dist.Normal(0, 1))
    else:
        m.add("y", lambda x, e: (1 + x**2) * e, noise=dist.Normal(0, 1))
    answer = m.query("x", given={"y": 3.0}, draws=40_000, seed=0)
    at = np.linspace(-6, 6, 4001)
    density = np.exp(-0.5 * at**2 - 0.5 * (3.0 / (1 + at**2)) ** 2) / (1 + at**2)
    expected = np.sqrt((at**2 * density).sum() / density.sum())
    assert answer.sd() == pytest.approx(expected, rel=0.03)


def test_soft_facts_weigh_draws_as_they_weigh_tables():
    bn = mk.BayesianNetwork("a->b->c", tables="random", seed=9)
    m = mk.StructuralModel.from_network(bn)
    m.add("w", lambda c, e: c + np.tanh(e), noise=dist.Laplace(0, 1))
    ask = {"given": {"c": [0.9, 0.2], "b": 1}}
    drawn = m.query(["c", "w"], **ask, draws=40_000, seed=0)["c"]
    np.testing.assert_allclose(drawn.values, bn.query("c", **ask).values, atol=4 * 0.5 / np.sqrt(30_000))


def test_identified_effects_are_evaluated_on_a_structural_model():
    m = mk.causal.examples.yellow_fingers()
    effect = mk.causal.identify(m, treatment="fingers", outcome="cough", given=())
    found = effect.evaluate(m, fingers="yellow")
    assert found["yes"] == pytest.approx(m.do(fingers="yellow").query("cough")["yes"])
    age = mk.causal.examples.cholesterol()
    lowered = mk.causal.identify(age, treatment="exercise", outcome="cholesterol")
    assert lowered.evaluate(age, exercise=6.0).mean() == pytest.approx(
        age.do(exercise=6).query("cholesterol").mean()
    )
