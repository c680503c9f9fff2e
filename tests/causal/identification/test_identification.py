"""Identification: formulas against truncated factorisation on full models, rules, derivations, printing and errors."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import markovia as mk
from causal_worlds import NAMES, admgs, full_model, gaussian_model, random_admg
from markovia.causal.identification.evaluation import FormulaTables
from markovia.errors import (
    CycleError,
    InvalidArgument,
    NoOverlap,
    NotIdentifiable,
    ParseError,
    Unanswered,
    UnknownVariable,
)
from markovia.graphs import MixedGraph
from markovia.graphs.causal.admg import Admg

NAPKIN = "w1 -> w2 -> x -> y; w1 <-> x; w1 <-> y"
TWO_DOORS = "x -> z1 -> z2 -> y; x <-> z2; z1 <-> y"


def roles(data, graph, given=False):
    names = data.draw(st.permutations(graph.nodes))
    x = names[: data.draw(st.integers(1, max(1, len(names) - 2)))][:2]
    rest = [n for n in names if n not in x]
    y = rest[: data.draw(st.integers(1, len(rest)))][:2]
    z = [n for n in rest if n not in y][: data.draw(st.integers(1, 2))] if given else []
    return x, y, z


def agrees(estimand, model, seed):
    """Compare the formula with the full model after the intervention, at all treatments and one condition."""
    rng = np.random.default_rng(seed)
    conditions = {n: int(rng.integers(len(model.states(n)))) for n in estimand.given}
    for values in np.ndindex(*(len(model.states(n)) for n in estimand.treatment)):
        do = dict(zip(estimand.treatment, map(int, values), strict=True))
        found = estimand.evaluate(model, do, given=conditions)
        truth = model.do(do).query(list(estimand.outcome), given=conditions or None)
        np.testing.assert_allclose(found.values, truth.values, atol=1e-10)


@given(admgs(), st.data())
@settings(max_examples=120, deadline=None)
def test_the_formula_on_the_observed_distribution_equals_the_intervened_full_model(graph, data):
    x, y, _ = roles(data, graph)
    try:
        estimand = mk.causal.identify(graph, treatment=x, outcome=y)
    except NotIdentifiable:
        assume(False)
    agrees(estimand, full_model(graph, 1), 1)


@given(admgs(smallest=3), st.data())
@settings(max_examples=80, deadline=None)
def test_conditional_effects_equal_the_intervened_full_model_given_the_conditions(graph, data):
    x, y, z = roles(data, graph, given=True)
    assume(z)
    try:
        estimand = mk.causal.identify(graph, treatment=x, outcome=y, given=z)
    except NotIdentifiable:
        assume(False)
    agrees(estimand, full_model(graph, 2, states=2), 2)


def by_id_alone(graph, x, y, z=()):
    from markovia.causal.identification.identify import _by_id
    from markovia.causal.problem import Problem

    return _by_id(Problem.of(graph, x, y, z))


@given(admgs(), st.data())
@settings(max_examples=120, deadline=None)
def test_the_complete_algorithm_finds_a_formula_wherever_a_simple_rule_does_and_they_agree(graph, data):
    x, y, _ = roles(data, graph)
    try:
        simple = mk.causal.identify(graph, treatment=x, outcome=y)
    except NotIdentifiable:
        with pytest.raises(NotIdentifiable):
            by_id_alone(graph, x, y)
        return
    agrees(by_id_alone(graph, x, y), full_model(graph, 3), 3)
    agrees(simple, full_model(graph, 3, states=3 if len(graph) < 5 else 2), 3)


@given(admgs(largest=5), st.data())
@settings(max_examples=60, deadline=None)
def test_linear_gaussian_models_are_answered_exactly(graph, data):
    x, y, z = roles(data, graph, given=data.draw(st.booleans()) and len(graph) > 2)
    model = gaussian_model(graph, 4)
    do, conditions = dict.fromkeys(x, 1.5), dict.fromkeys(z, -0.5)
    try:
        estimand = mk.causal.identify(graph, treatment=x, outcome=y, given=z)
    except NotIdentifiable:
        assume(False)
    found = estimand.evaluate(model, do, given=conditions)
    truth = model.do(do).query(y, given=conditions or None)
    for name in y:
        assert found.mean(name) == pytest.approx(truth.mean(name), abs=1e-6)
        assert found.sd(name) == pytest.approx(truth.sd(name), abs=1e-6)
    assert found.info.exact


def hard_questions(seed, wanted, n=5):
    """Yield graphs and questions that adjustment does not answer and ID does, and their estimands."""
    rng = np.random.default_rng(seed)
    while wanted:
        graph = random_admg(rng, n, arrows=0.6, joined=0.3)
        x, y = NAMES[int(rng.integers(n - 1))], NAMES[n - 1]
        try:
            estimand = mk.causal.identify(graph, treatment=x, outcome=y)
        except NotIdentifiable:
            continue
        if estimand.rule in ("front-door", "id"):
            wanted -= 1
            yield graph, estimand


def test_questions_that_adjustment_does_not_answer_are_answered_as_the_full_model_answers_them():
    rules = set()
    for seed, (graph, estimand) in enumerate(hard_questions(3, 40)):
        model = full_model(graph, seed)
        agrees(estimand, model, seed)
        agrees(by_id_alone(graph, estimand.treatment, estimand.outcome), model, seed)
        rules.add(estimand.rule)
    assert rules == {"front-door", "id"}


def test_a_condition_is_set_instead_of_seen_where_setting_the_treatment_allows_it():
    """P(d | do(b), c) with b <-> c: only after b is cut from above may c be set, and then it has no effect."""
    graph = mk.causal.read_graph("a -> b; a -> d; b -> c; b <-> c; b -> d")
    estimand = by_id_alone(graph, "b", "d", "c")
    agrees(estimand, full_model(graph, 17), 17)
    steps = estimand.derivation().steps
    assert str(steps[0]).splitlines()[0] == "P(d | do(b), c) = P(d | do(b, c))"


@pytest.mark.slow
def test_thousands_of_random_questions_are_answered_as_the_full_model_answers_them():
    rng = np.random.default_rng(5)
    answered = 0
    for seed in range(1500):
        graph = random_admg(rng, int(rng.integers(4, 7)))
        names = list(rng.permutation(graph.nodes))
        x, y, z = names[:1], names[1:2], names[2 : 2 + int(rng.integers(0, 2))]
        try:
            estimand = mk.causal.identify(graph, treatment=x, outcome=y, given=z)
        except NotIdentifiable:
            continue
        answered += 1
        agrees(estimand, full_model(graph, seed), seed)
    assert answered > 800


# -- derivations ---------------------------------------------------------------------------------------------------


@given(admgs(largest=5), st.data())
@settings(max_examples=80, deadline=None)
def test_every_step_of_a_derivation_has_the_separations_it_needs_and_holds_on_the_full_model(graph, data):
    x, y, z = roles(data, graph, given=data.draw(st.booleans()) and len(graph) > 2)
    make = data.draw(st.sampled_from([mk.causal.identify, None]))
    try:
        estimand = make(graph, treatment=x, outcome=y, given=z) if make else by_id_alone(graph, x, y, z)
    except NotIdentifiable:
        assume(False)
    assume(estimand.rule != "adjustment")
    masked, model = Admg.of(graph), full_model(graph, 6)
    derivation = estimand.derivation()
    assert derivation.steps[-1].right == estimand.expression or estimand.rule in ("back-door", "front-door")
    for step in derivation:
        for separation in step.separations:
            assert separation.holds(masked), f"{step}"
        left, right = FormulaTables(model).value(step.left, {}), FormulaTables(model).value(step.right, {})
        everything = list(dict.fromkeys((*left.names, *right.names)))
        ones = mk.factors.product([left.apply(np.ones_like), right.apply(np.ones_like)])
        np.testing.assert_allclose(
            (left * ones).transpose(everything).values, (right * ones).transpose(everything).values, atol=1e-9
        )


def test_a_derivation_prints_rule_by_rule():
    text = str(mk.causal.identify("x -> z -> y; x <-> y", treatment="x", outcome="y").derivation())
    assert text.startswith("1. P(y | do(x)) = Σ_z P(z | do(x)) P(y | do(x), z)\n   sum over z\n2. ")
    assert "rule 2: z ⊥ y | x without the edges into x and out of z" in text
    assert re.findall(r"rule \d", text) == ["rule 2", "rule 2", "rule 3", "rule 3", "rule 2"]


# -- worked examples -----------------------------------------------------------------------------------------------


def test_the_front_door_gives_29_and_61_where_the_conditional_gives_20_and_70():
    bn = mk.BayesianNetwork()
    bn.add("u", states=2, p=[0.5, 0.5])
    bn.add("x", states=2, parents=["u"], p=[[0.8, 0.2], [0.2, 0.8]])
    bn.add("z", states=2, parents=["x"], p=[[0.9, 0.1], [0.1, 0.9]])
    bn.add("y", states=2, parents=["z", "u"], p=[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]])
    estimand = mk.causal.identify(bn, treatment="x", outcome="y", latent="u")
    assert estimand.rule == "front-door"
    assert estimand.mediators == ("z",)
    assert [round(estimand.evaluate(bn, x=x)[1], 10) for x in (0, 1)] == [0.29, 0.61]
    assert [round(bn.query("y", given={"x": x})[1], 10) for x in (0, 1)] == [0.2, 0.7]


def test_kidney_stones_of_charig_are_turned_round_by_adjustment_for_their_size():
    rows = {
        ("A", "small"): (81, 87),
        ("A", "large"): (192, 263),
        ("B", "small"): (234, 270),
        ("B", "large"): (55, 80),
    }
    bn = mk.BayesianNetwork()
    total = sum(n for _, n in rows.values())
    sizes = {s: sum(n for (_, size), (_, n) in rows.items() if size == s) for s in ("small", "large")}
    bn.add("size", states=["small", "large"], p=[sizes[s] / total for s in sizes])
    share = {s: rows["A", s][1] / sizes[s] for s in sizes}
    bn.add("treatment", states=["A", "B"], parents=["size"], p=[[share[s], 1 - share[s]] for s in sizes])
    cured = {key: k / n for key, (k, n) in rows.items()}
    table = [[[1 - cured[t, s], cured[t, s]] for t in "AB"] for s in sizes]
    bn.add("cured", states=["no", "yes"], parents=["size", "treatment"], p=table)
    estimand = mk.causal.identify(bn, treatment="treatment", outcome="cured")
    assert estimand.adjustment == ("size",)
    found = {t: estimand.evaluate(bn, treatment=t)["yes"] for t in "AB"}
    assert {t: round(p, 4) for t, p in found.items()} == {"A": 0.8325, "B": 0.7789}
    assert round(bn.query("cured", given={"treatment": "A"})["yes"], 4) == 0.78
    assert round(bn.query("cured", given={"treatment": "B"})["yes"], 4) == 0.8257


@pytest.mark.parametrize(
    ("text", "x", "y", "rule"),
    [
        ("z -> x -> y; z -> y", "x", "y", "back-door"),
        ("x -> y", "y", "x", "no effect"),
        ("x -> z -> y; x <-> y", "x", "y", "front-door"),
        (NAPKIN, "x", "y", "id"),
        (TWO_DOORS, "x", "y", "id"),
    ],
)
def test_the_rule_is_the_simplest_that_applies(text, x, y, rule):
    assert mk.causal.identify(text, treatment=x, outcome=y).rule == rule


def test_the_napkin_is_identified_by_a_quotient_that_does_not_depend_on_what_is_averaged():
    estimand = mk.causal.identify(NAPKIN, treatment="x", outcome="y")
    assert "/" in str(estimand.expression)
    assert estimand.expression.free == {"x", "y"}
    agrees(estimand, full_model(mk.causal.read_graph(NAPKIN), 7, states=3), 7)


# -- not identified ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "x", "y", "hedge"),
    [
        ("x -> y; x <-> y", "x", "y", ({"x", "y"}, {"y"})),
        ("x -> z -> y; x <-> z", "x", "y", ({"x", "z"}, {"z"})),
        ("w -> x -> z -> y; x <-> y; w <-> y; w <-> z", "x", "y", ({"w", "x", "z", "y"}, {"y"})),
        ("z -> x -> y; x <-> y", "x", "y", ({"x", "y"}, {"y"})),
    ],
)
def test_a_hedge_proves_that_an_effect_is_not_identified(text, x, y, hedge):
    with pytest.raises(NotIdentifiable, match="is not identified: hidden causes join") as error:
        mk.causal.identify(text, treatment=x, outcome=y)
    assert error.value.hedge == hedge


@given(admgs(), st.data())
@settings(max_examples=150, deadline=None)
def test_two_models_that_agree_on_all_that_is_observed_differ_in_an_effect_that_is_not_identified(
    graph, data
):
    x, y, _ = roles(data, graph)
    try:
        mk.causal.identify(graph, treatment=x, outcome=y)
    except NotIdentifiable:
        one, two = mk.causal.counterexample(graph, treatment=x, outcome=y)
        seen = [m.query(graph.nodes).values for m in (one, two)]
        np.testing.assert_allclose(*seen, atol=1e-12)
        done = [m.do(dict.fromkeys(x, 0)).query(y).values for m in (one, two)]
        assert np.abs(done[0] - done[1]).max() > 0.1
        for model in (one, two):
            assert (
                mk.causal.read_graph(model, latent=[n for n in model.variables if n not in graph]) is not None
            )
            assert set(model.edges) <= set(_allowed(graph))
        return
    with pytest.raises(InvalidArgument, match="is identified"):
        mk.causal.counterexample(graph, treatment=x, outcome=y)


def check_conditional_counterexample(graph, x, y, z):
    """Return whether there is a pair: the same on all observed, different at a condition that is possible in both."""
    try:
        mk.causal.identify(graph, treatment=x, outcome=y, given=z)
    except NotIdentifiable:
        one, two = mk.causal.counterexample(graph, treatment=x, outcome=y, given=z)
        np.testing.assert_allclose(one.query(graph.nodes).values, two.query(graph.nodes).values, atol=1e-12)
        joints = [
            m.do(dict.fromkeys(x, 0)).query([*y, *z]).factor().transpose([*z, *y]).values for m in (one, two)
        ]
        shape = [len(one.states(n)) for n in z]
        first, second = (j.reshape(int(np.prod(shape)), -1) for j in joints)
        possible = (first.sum(axis=1) > 1e-9) & (second.sum(axis=1) > 1e-9)
        apart = [
            a / a.sum(keepdims=True) - b / b.sum(keepdims=True)
            for a, b in zip(first[possible], second[possible], strict=True)
        ]
        assert max(np.abs(d).max() for d in apart) > 0.1
        assert all(set(m.edges) <= set(_allowed(graph)) for m in (one, two))
        return True
    with pytest.raises(InvalidArgument, match="is identified"):
        mk.causal.counterexample(graph, treatment=x, outcome=y, given=z)
    return False


@given(admgs(smallest=3, largest=5), st.data())
@settings(max_examples=100, deadline=None)
def test_two_models_differ_in_a_conditional_effect_that_is_not_identified(graph, data):
    x, y, z = roles(data, graph, given=True)
    assume(z)
    check_conditional_counterexample(graph, x, y, z)


@pytest.mark.parametrize(
    ("text", "z"),
    [
        ("x -> z; x <-> z; z <-> y", "z"),  # only z shows the hedge, and its hidden cause tells y
        ("x -> z; x <-> z; z <- w -> y", "z"),
        ("x -> z; x <-> z; z <-> w; w <-> y; w -> v", ("z", "v")),  # through a collider above what is given
        ("x -> z; x <-> z; z <-> w; w <-> y", ("z", "w")),
        ("x -> z; x <-> z; z <- y", "z"),
        ("x -> y; x <-> y; x <-> z", "z"),  # z shows the coin that the outcome hears
    ],
)
def test_what_is_given_shows_the_hedge_only_together_with_the_outcome(text, z):
    assert check_conditional_counterexample(mk.causal.read_graph(text), ["x"], ["y"], [*z])


@pytest.mark.slow
def test_thousands_of_conditional_effects_are_identified_or_have_their_pair_of_models():
    rng = np.random.default_rng(13)
    pairs = 0
    for _ in range(1500):
        graph = random_admg(rng, int(rng.integers(3, 6)), joined=float(rng.uniform(0.2, 0.6)))
        names = list(rng.permutation(graph.nodes))
        k = int(rng.integers(1, len(names) - 1))
        pairs += check_conditional_counterexample(graph, names[:1], names[1:2], names[2 : 2 + k])
    assert pairs > 400


def _allowed(graph):
    return [
        *graph.directed_edges(),
        *((f"U({a},{b})", e) for a, b in graph.bidirected_edges() for e in (a, b)),
    ]


def test_tian_and_pearls_condition_is_the_one_for_effects_on_everything():
    rng = np.random.default_rng(8)
    for _ in range(200):
        graph = random_admg(rng, int(rng.integers(2, 6)))
        x = str(rng.choice(graph.nodes))
        others = [n for n in graph.nodes if n != x]
        try:
            by_id_alone(graph, x, others)
            identified = True
        except NotIdentifiable:
            identified = False
        assert mk.causal.tian_pearl(graph, x) == identified
        y = str(rng.choice(others))
        if mk.causal.tian_pearl(graph, x, y):
            mk.causal.identify(graph, treatment=x, outcome=y)


# -- experiments ---------------------------------------------------------------------------------------------------


def test_an_experiment_on_another_variable_identifies_what_observation_does_not():
    text = "z -> x -> y; z <-> x; x <-> y"
    with pytest.raises(NotIdentifiable):
        mk.causal.identify(text, treatment="x", outcome="y")
    graph = mk.causal.read_graph("x -> w -> y; x <-> w; x <-> y")
    with pytest.raises(NotIdentifiable):
        mk.causal.identify(graph, treatment="x", outcome="y")
    known = [{"do": ["w"]}, {}]
    with pytest.raises(NotIdentifiable):
        mk.causal.identify(graph, treatment="x", outcome="y", available=known)
    estimand = mk.causal.identify(
        graph, treatment="x", outcome="y", available=[{"do": ["w"]}, {"do": "x", "see": "w"}]
    )
    assert estimand.rule == "gid"
    assert str(estimand.expression) == "Σ_w P(w | do(x)) P(y | do(w))"
    agrees(estimand, full_model(graph, 9), 9)


@given(admgs(largest=5), st.data())
@settings(max_examples=80, deadline=None)
def test_formulas_from_experiments_equal_the_intervened_full_model(graph, data):
    x, y, _ = roles(data, graph)
    known = [
        {"do": data.draw(st.lists(st.sampled_from(graph.nodes), unique=True, max_size=2))} for _ in range(3)
    ]
    try:
        estimand = mk.causal.identify(graph, treatment=x, outcome=y, available=known)
    except NotIdentifiable:
        assume(False)
    done = {frozenset(regime["do"]) for regime in known}
    for term in estimand.expression.terms():
        assert any(set(term.do) <= regime for regime in done)
    agrees(estimand, full_model(graph, 10), 10)


def other_population(graph, model, differs, seed):
    """The same model with other tables at some observed nodes."""
    other = full_model(graph, seed)
    return mk.BayesianNetwork.from_conditionals(
        [other[n] if n in differs else model[n] for n in model.variables]
    )


@given(admgs(largest=5), st.data())
@settings(max_examples=100, deadline=None)
def test_transported_formulas_equal_the_intervened_target_population(graph, data):
    x, y, _ = roles(data, graph)
    differs = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True, max_size=2))
    source = [
        {"do": data.draw(st.lists(st.sampled_from(graph.nodes), unique=True, max_size=2))} for _ in range(2)
    ]
    target = data.draw(st.sampled_from([[{}], []]))
    try:
        estimand = mk.causal.transport(
            graph, treatment=x, outcome=y, differs=differs, source=source, target=target
        )
    except NotIdentifiable:
        assume(False)
    model = full_model(graph, 12)
    models = {"target": model, "source": other_population(graph, model, differs, 13)}
    for values in np.ndindex(*[2] * len(x)):
        do = dict(zip(x, map(int, values), strict=True))
        found = estimand.evaluate(models, do)
        np.testing.assert_allclose(found.values, model.do(do).query(y).values, atol=1e-10)
    for step in estimand.derivation():
        for separation in step.separations:
            assert separation.holds(Admg.of(graph)), f"{step}"
        left, right = (
            FormulaTables({"": model, **models}).value(side, {}) for side in (step.left, step.right)
        )
        ones = mk.factors.product([left.apply(np.ones_like), right.apply(np.ones_like)])
        names = list(ones.names)
        np.testing.assert_allclose(
            (left * ones).transpose(names).values, (right * ones).transpose(names).values, atol=1e-9
        )


def test_what_differs_in_the_outcome_itself_is_not_transported():
    with pytest.raises(NotIdentifiable):
        mk.causal.transport("x -> y; x <-> y", treatment="x", outcome="y", differs="y")


def test_a_formula_over_populations_needs_a_model_of_each():
    estimand = mk.causal.transport("x -> y <- z; x <-> y", treatment="x", outcome="y", differs="z")
    model = full_model(mk.causal.read_graph("x -> y <- z; x <-> y"), 1)
    with pytest.raises(InvalidArgument, match="a model of the population 'source'"):
        estimand.evaluate({"target": model}, x=0)


def test_treatments_over_time_give_the_g_formula():
    text = "a1 -> l -> a2 -> y; a1 -> y; l -> y; l <-> y"
    estimand = mk.causal.identify(text, treatment=["a1", "a2"], outcome="y")
    assert str(estimand.expression) == "Σ_l P(l | a1) P(y | a1, l, a2)"
    agrees(estimand, full_model(mk.causal.read_graph(text), 14), 14)


def test_what_an_experiment_set_without_bearing_on_the_outcome_is_not_mentioned():
    text = "z -> x -> y; z <-> y; x <-> y; z <-> x"
    estimand = mk.causal.identify(text, treatment="x", outcome="y", available=[{"do": ["x", "z"]}])
    assert str(estimand.expression) == "P(y | do(x))"
    agrees(estimand, full_model(mk.causal.read_graph(text), 15), 15)


def test_a_name_that_was_only_ever_set_may_have_any_value():
    text = "a -> b -> c -> d; a -> e; b -> e; b <-> e; c <-> e"
    estimand = mk.causal.identify(
        text, treatment="c", outcome="d", available=[{"do": ["a", "b"]}, {"do": ["b", "d"]}]
    )
    assert str(estimand).splitlines()[0] == "P(d | do(c)) = P(d | do(b), c)"
    assert str(estimand).endswith("for any value of b")
    agrees(estimand, full_model(mk.causal.read_graph(text), 16), 16)


def test_an_experiment_on_the_treatment_itself_answers_at_once():
    estimand = mk.causal.identify("x -> y; x <-> y", treatment="x", outcome="y", available=[{"do": ["x"]}])
    assert str(estimand.expression) == "P(y | do(x))"


def test_unknown_regimes_are_refused():
    with pytest.raises(InvalidArgument, match="what is available is written"):
        mk.causal.identify("x -> y", treatment="x", outcome="y", available=[{"set": ["x"]}])
    with pytest.raises(UnknownVariable, match="'w'"):
        mk.causal.identify("x -> y", treatment="x", outcome="y", available=[{"do": ["w"]}])


# -- positivity, mixed models, bad input ---------------------------------------------------------------------------


def no_overlap(p_z=0.5):
    bn = mk.BayesianNetwork()
    bn.add("z", states=["a", "b"], p=[1 - p_z, p_z])
    bn.add("x", states=["no", "yes"], parents=["z"], p=[[0.5, 0.5], [1.0, 0.0]])
    bn.add(
        "y", states=["no", "yes"], parents=["x", "z"], p=[[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]]
    )
    return bn


def test_a_condition_of_probability_zero_that_matters_is_named():
    estimand = mk.causal.identify("z -> x -> y; z -> y", treatment="x", outcome="y")
    seen = mk.BayesianNetwork()
    joint = no_overlap().query(["y", "x", "z"])
    seen.add("z", states=["a", "b"], p=joint.marginal("z").values)
    rows = joint.factor().conditional("x", "z")
    seen.add("x", states=["no", "yes"], parents=["z"], p=rows.values)
    # the same distribution with y above x and z: its table of y says nothing about x=yes, z=b
    turned = mk.BayesianNetwork()
    turned.add("y", states=["no", "yes"], p=joint.marginal("y").values)
    turned.add("x", states=["no", "yes"], parents=["y"], p=joint.factor().conditional("x", "y").values)
    turned.add(
        "z", states=["a", "b"], parents=["y", "x"], p=joint.factor().conditional("z", ["y", "x"]).values
    )
    with pytest.raises(
        NoOverlap, match=r"P\(y \| x, z\) is needed where x='yes', z='b', which has probability zero"
    ):
        estimand.evaluate(turned, x="yes")
    assert estimand.evaluate(turned, x="no")["yes"] == pytest.approx(0.5 * 0.1 + 0.5 * 0.6)


def test_a_condition_of_probability_zero_without_weight_does_no_harm():
    estimand = mk.causal.identify("z -> x -> y; z -> y", treatment="x", outcome="y")
    joint = no_overlap(p_z=0.0).query(["y", "x", "z"])
    turned = mk.BayesianNetwork()
    turned.add("y", states=["no", "yes"], p=joint.marginal("y").values)
    turned.add("x", states=["no", "yes"], parents=["y"], p=joint.factor().conditional("x", "y").values)
    turned.add(
        "z", states=["a", "b"], parents=["y", "x"], p=joint.factor().conditional("z", ["y", "x"]).values
    )
    assert estimand.evaluate(turned, x="yes")["yes"] == pytest.approx(0.7)


def test_a_treatment_that_never_occurs_is_named():
    bn = mk.BayesianNetwork()
    bn.add("x", states=["no", "yes"], p=[1.0, 0.0])
    bn.add("z", states=["no", "yes"], parents=["x"], p=[[0.5, 0.5], [0.5, 0.5]])
    bn.add("y", states=["no", "yes"], parents=["z"], p=[[0.5, 0.5], [0.1, 0.9]])
    estimand = mk.causal.identify("x -> y", treatment="x", outcome="y")
    with pytest.raises(NoOverlap, match="x='yes'"):
        estimand.evaluate(bn, x="yes")


def test_numbers_and_states_mix_where_the_outcome_is_the_number():
    bn = mk.BayesianNetwork()
    bn.add("z", states=["a", "b"], p=[0.3, 0.7])
    bn.add("x", states=["no", "yes"], parents=["z"], p=[[0.8, 0.2], [0.4, 0.6]])
    cells = {(x, z): mk.LinearGaussian(b, {}, 1.0) for x, z, b in (
        ("no", "a", 0), ("no", "b", 1), ("yes", "a", 2), ("yes", "b", 5))}  # fmt: skip
    bn.add("y", cells, parents=["x", "z"])
    estimand = mk.causal.identify(bn, treatment="x", outcome="y")
    found = estimand.evaluate(bn, x="yes")
    truth = bn.do(x="yes").query("y")
    assert found.mean() == pytest.approx(0.3 * 2 + 0.7 * 5)
    assert found.sd() == pytest.approx(truth.sd())
    assert found.cdf(3.0) == pytest.approx(truth.cdf(3.0))


def test_a_number_among_states_that_has_no_exact_value_is_refused_with_a_way_out():
    bn = mk.BayesianNetwork()
    bn.add("z", mk.LinearGaussian(0, {}, 1.0))
    bn.add("x", states=["no", "yes"], p=[0.5, 0.5])
    bn.add(
        "y",
        {"no": mk.LinearGaussian(0, {"z": 1.0}, 1.0), "yes": mk.LinearGaussian(1, {"z": 2.0}, 1.0)},
        parents=["x"],
    )
    estimand = mk.causal.identify("z -> x -> y; z -> y", treatment="x", outcome="y")
    found = estimand.evaluate(bn, x="yes")
    assert found.mean() == pytest.approx(1.0)
    estimand = mk.causal.identify("x -> z -> y; x <-> y", treatment="x", outcome="y")
    with pytest.raises(Unanswered, match=r"model\.sample"):
        estimand.evaluate(bn, x="yes")


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        ({"treatment": "x", "outcome": "x"}, InvalidArgument, "has no effect on itself"),
        ({"treatment": "q", "outcome": "y"}, UnknownVariable, "unknown variable 'q'"),
        ({"treatment": "x", "outcome": "y", "given": "x"}, InvalidArgument, "both treatment and given"),
        (
            {"treatment": "x", "outcome": "y", "latent": "y"},
            InvalidArgument,
            "latent and cannot be the outcome",
        ),
        ({"treatment": (), "outcome": "y"}, InvalidArgument, "at least one treatment"),
    ],
)
def test_bad_questions_get_one_sentence(question, error, words):
    with pytest.raises(error, match=words):
        mk.causal.identify("z -> x -> y; z -> y", **question)


def test_bad_graphs_get_one_sentence():
    with pytest.raises(ParseError, match="no directed cycle"):
        mk.causal.identify("x -> y -> x", treatment="x", outcome="y")
    with pytest.raises(CycleError):
        mk.causal.identify("x -> y -> x; x <-> y", treatment="x", outcome="y")
    with pytest.raises(InvalidArgument, match="a causal graph is"):
        mk.causal.identify(3, treatment="x", outcome="y")


def test_values_have_to_be_said_for_what_is_asked():
    bn = mk.examples.sprinkler()
    estimand = mk.causal.identify(bn, treatment="sprinkler", outcome="wet", given="rain")
    with pytest.raises(InvalidArgument, match="needs a value of 'sprinkler'"):
        estimand.evaluate(bn)
    with pytest.raises(InvalidArgument, match="needs a value of 'rain'"):
        estimand.evaluate(bn, sprinkler="yes")
    with pytest.raises(InvalidArgument, match="'wet' is no treatment"):
        estimand.evaluate(bn, wet="yes", sprinkler="yes")
    with pytest.raises(mk.errors.UnknownState):
        estimand.evaluate(bn, sprinkler="perhaps", given={"rain": "yes"})
    with pytest.raises(UnknownVariable):
        estimand.evaluate(
            mk.BayesianNetwork("wet->rain", tables="random"), sprinkler="yes", given={"rain": "yes"}
        )


# -- what an estimand says -----------------------------------------------------------------------------------------


def test_an_estimand_prints_as_text_and_latex():
    estimand = mk.causal.identify(TWO_DOORS, treatment="x", outcome="y")
    assert str(estimand).splitlines() == [
        "P(y | do(x)) = Σ_{z1,z2} P(z1 | x) P(y | x, z1, z2) Σ_x' P(x') P(z2 | x', z1)",
        "by c-component factorisation (ID)",
    ]
    assert estimand.latex() == (
        r"P(y \mid \mathrm{do}(x)) = \sum_{z_{1},z_{2}} P(z_{1} \mid x) \, P(y \mid x, z_{1}, z_{2}) \, "
        r"\sum_{x'} P(x') \, P(z_{2} \mid x', z_{1})"
    )
    quotient = mk.causal.identify(NAPKIN, treatment="x", outcome="y")
    assert r"\frac{" in quotient.latex()


@given(admgs(largest=5))
@settings(max_examples=60, deadline=None)
def test_testable_implications_hold_and_cover_every_pair_that_can_be_separated(graph):
    from markovia.causal.identification.estimand import implied_independencies

    found = implied_independencies(Admg.of(graph))
    for statement in found:
        assert graph.m_separated(statement.x, statement.y, statement.given)
    pairs = {frozenset(s.x | s.y) for s in found}
    for a, b in combinations(graph.nodes, 2):
        rest = [n for n in graph.nodes if n not in (a, b)]
        separable = any(
            graph.m_separated(a, b, z) for k in range(len(rest) + 1) for z in combinations(rest, k)
        )
        assert separable == (frozenset((a, b)) in pairs)


def test_assumptions_name_overlap_and_what_is_not_drawn():
    said = mk.causal.identify("z -> x -> y; z -> y", treatment="x", outcome="y").assumptions
    assert any("no two variables have a common cause" in s for s in said)
    assert any("every combination of x, z" in s for s in said)


def test_classes_of_graphs_are_answered_by_adjustment_in_all_members():
    cpdag = MixedGraph(["a --- x", "x --> y", "b --> y", "a --- b"])
    with pytest.raises(NotIdentifiable):
        mk.causal.identify(MixedGraph(["x --- y"]), treatment="x", outcome="y")
    pag = MixedGraph(["a o-> x", "b o-> x", "x --> y"])
    assert mk.causal.identify(pag, treatment="x", outcome="y").adjustment == ()
    assert len(cpdag) == 4


def as_pyagrum(gum, graph, joint):
    """The observed distribution in topological order, with the arrows that are not causal marked so."""
    peer = gum.BayesNet()
    for k, name in enumerate(graph.nodes):
        peer.add(gum.RangeVariable(name, name, 0, 1))
        for before in graph.nodes[:k]:
            peer.addArc(before, name)
    for k, name in enumerate(graph.nodes):
        table = joint.marginal(graph.nodes[: k + 1]).conditional(name, graph.nodes[:k])
        for at in np.ndindex(*table.shape):
            peer.cpt(name)[dict(zip(table.names, map(int, at), strict=True))] = float(table.values[at])
    causal = gum.CausalModel(peer)
    for a, b in graph.bidirected_edges():
        causal.addLatentVariable(f"u{a}{b}", (a, b), True)
    for a, b in combinations(graph.nodes, 2):
        if (a, b) not in graph.directed_edges():
            causal.assumeSpurious(a, b)
    return causal


def test_pyagrum_identifies_the_same_effects_with_the_same_numbers():
    gum = pytest.importorskip("pyagrum")
    rng = np.random.default_rng(11)
    verdicts = []
    for seed in range(40):
        graph = random_admg(rng, 4, joined=0.45)
        x, y = map(str, rng.choice(graph.nodes, 2, replace=False))
        model = full_model(graph, seed)
        causal = as_pyagrum(gum, graph, model.query(graph.nodes).factor())
        _, theirs, _ = gum.causalImpact(causal, on=y, doing=x)
        verdicts.append(theirs is not None)
        if theirs is None:
            with pytest.raises(NotIdentifiable):
                mk.causal.identify(graph, treatment=x, outcome=y)
            continue
        estimand = mk.causal.identify(graph, treatment=x, outcome=y)
        for value in (0, 1):
            ours = estimand.evaluate(model, {x: value})
            for state in (0, 1):
                cell = {y: state, x: value} if x in theirs.names else {y: state}
                assert ours[state] == pytest.approx(theirs[cell])
    assert {True, False} == set(verdicts)


def test_adjustment_in_a_class_of_graphs_is_derived_in_one_step():
    found = mk.causal.identify(
        MixedGraph(["a --> x", "b --> x", "x --> y", "a --> y"]), treatment=["x", "a"], outcome="y"
    )
    assert found.derivation()
    graph = mk.graphs.cpdag(mk.graphs.DAG([("z", "w"), ("w", "x"), ("v", "x"), ("x", "y"), ("w", "y")]))
    assert graph.undirected_edges()
    found = mk.causal.identify(graph, treatment="x", outcome="y")
    assert found.rule == "adjustment"
    assert "adjustment criterion: w meets no causal path" in str(found.derivation())
