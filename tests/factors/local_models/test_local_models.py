import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia import Variable
from markovia.errors import InvalidArgument, InvalidTable, TooLarge, UnknownState, UnknownVariable
from markovia.factors.tables.table_forms import as_conditional
from markovia.factors.tables.variable import State
from markovia.local import (
    AndGate,
    AtLeast,
    Conditional,
    Count,
    Exists,
    ForAll,
    LocalModel,
    Logistic,
    Max,
    Min,
    NoisyAnd,
    NoisyMax,
    NoisyMin,
    NoisyOr,
    NotGate,
    OrGate,
    Softmax,
    Sum,
    XorGate,
)

PROBABILITY = st.floats(0.0, 1.0)


def binary(*names: str) -> tuple[Variable, ...]:
    return tuple(Variable(name, ["no", "yes"]) for name in names)


EFFECT = Variable("effect", ["no", "yes"])


def all_rows(parents: tuple[Variable, ...]) -> list[np.ndarray]:
    return [axis.ravel() for axis in np.indices([len(p) for p in parents])]


def assert_rows_agree_with_table(conditional: Conditional) -> None:
    """The table, the row-wise log probabilities and single rows tell the same story."""
    rows = all_rows(conditional.parents)
    size = conditional.n_rows
    table = conditional.values.reshape(size, -1)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-12)
    for child in range(len(conditional.variable)):
        logs = conditional.log_prob(np.full(size, child), rows)
        np.testing.assert_allclose(np.exp(logs), table[:, child], atol=1e-12)


# -- noisy-or and noisy-and -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(PROBABILITY, min_size=0, max_size=4), PROBABILITY)
def test_noisy_or_is_one_minus_the_product_of_inhibitions(strengths: list[float], leak: float) -> None:
    names = "abcd"[: len(strengths)]
    recipe = NoisyOr(dict(zip(names, strengths, strict=True)), leak=leak)
    table = recipe.bind(EFFECT, binary(*names))
    for states in product([0, 1], repeat=len(names)):
        off = (1 - leak) * np.prod([1 - s for s, x in zip(strengths, states, strict=True) if x])
        np.testing.assert_allclose(table.values[states], [off, 1 - off], atol=1e-12)
    assert_rows_agree_with_table(table)


@settings(max_examples=60, deadline=None)
@given(st.lists(PROBABILITY, min_size=0, max_size=4), PROBABILITY)
def test_noisy_and_is_the_noisy_or_of_everything_negated(strengths: list[float], leak: float) -> None:
    names = "abcd"[: len(strengths)]
    weights = dict(zip(names, strengths, strict=True))
    conjunction = NoisyAnd(weights, leak=leak).bind(EFFECT, binary(*names)).values
    disjunction = NoisyOr(weights, leak=leak).bind(EFFECT, binary(*names)).values
    np.testing.assert_allclose(conjunction, np.flip(disjunction), atol=1e-12)


def test_strength_one_without_leak_gives_the_plain_gates() -> None:
    parents = binary("a", "b", "c")
    weights = dict.fromkeys("abc", 1.0)
    np.testing.assert_array_equal(
        NoisyOr(weights).bind(EFFECT, parents).values, OrGate().bind(EFFECT, parents).values
    )
    np.testing.assert_array_equal(
        NoisyAnd(weights).bind(EFFECT, parents).values, AndGate().bind(EFFECT, parents).values
    )


@pytest.mark.parametrize(
    ("maker", "recipe"), [("addNoisyORNet", NoisyOr), ("addNoisyORCompound", NoisyOr.compound)]
)
def test_both_leaky_forms_agree_with_pyagrum(maker: str, recipe: type[NoisyOr]) -> None:
    gum = pytest.importorskip("pyagrum")
    strengths, leak = {"a": 0.9, "b": 0.35, "c": 0.6}, 0.15
    peer = gum.BayesNet()
    parents = {name: peer.add(gum.LabelizedVariable(name, "", 2)) for name in strengths}
    child = getattr(peer, maker)(gum.LabelizedVariable("effect", "", 2), leak)
    for name, strength in strengths.items():
        peer.addWeightedArc(parents[name], child, strength)
    ours = recipe(strengths, leak).bind(EFFECT, binary(*strengths)).values
    for states in product([0, 1], repeat=3):
        theirs = peer.cpt(child)[dict(zip(strengths, states, strict=True))]
        np.testing.assert_allclose(ours[states], theirs, atol=1e-6)


def test_a_compound_strength_is_the_probability_with_the_leak_included() -> None:
    table = NoisyOr.compound({"a": 0.7, "b": 0.4}, leak=0.1).bind(EFFECT, binary("a", "b"))
    np.testing.assert_allclose(table.row(a="yes", b="no")[1], 0.7)
    np.testing.assert_allclose(table.row(a="no", b="no")[1], 0.1)
    with pytest.raises(InvalidArgument, match="cannot be below it"):
        NoisyOr.compound({"a": 0.05}, leak=0.1)


def test_on_chooses_the_state_that_acts() -> None:
    weather = Variable("weather", ["sun", "rain", "snow"])
    switch = Variable("switch", ["on", "off"])
    table = NoisyOr({"weather": 0.5, "switch": 0.8}, on={"weather": "rain", "switch": "on"}).bind(
        EFFECT, (weather, switch)
    )
    np.testing.assert_allclose(table.row(weather="snow", switch="off"), [1, 0])
    np.testing.assert_allclose(table.row(weather="rain", switch="on"), [0.1, 0.9])
    assert table.parameters().on == (1, 0)


def test_noisy_or_takes_parents_in_any_order_and_keeps_its_parameters() -> None:
    a, b = binary("a", "b")
    recipe = NoisyOr({"a": 0.9, "b": 0.3}, leak=0.01)
    forward, backward = recipe.bind(EFFECT, (a, b)), recipe.bind(EFFECT, (b, a))
    assert forward.allclose(backward)
    assert backward.parameters().strengths.tolist() == [0.3, 0.9]
    assert forward.parameters().leak == 0.01
    assert forward.n_parameters == 3
    assert NoisyOr({"a": 0.9, "b": 0.3}).bind(EFFECT, (a, b)).n_parameters == 2


def qmr_finding(n: int, first: float = 0.02) -> tuple[Conditional, np.ndarray]:
    strengths = np.linspace(first, 0.5, n)
    names = [f"disease {i}" for i in range(n)]
    recipe = NoisyOr(dict(zip(names, strengths, strict=True)), leak=0.001)
    return recipe.bind(EFFECT, binary(*names)), strengths


def test_two_hundred_parents_need_no_table() -> None:
    finding, strengths = qmr_finding(200)
    rng = np.random.default_rng(0)
    present = (rng.random((200, 4000)) < 0.02).astype(int)
    expected = np.log1p(-0.001) + present.T @ np.log1p(-strengths)
    np.testing.assert_allclose(finding.log_prob(np.zeros(4000, int), list(present)), expected, rtol=1e-12)
    drawn = finding.sample(list(present), 4000, rng)
    np.testing.assert_allclose(drawn.mean(), 1 - np.exp(expected).mean(), atol=0.03)
    assert finding.n_parameters == 201
    assert "194 more" in repr(finding)
    assert "201 parameters" in repr(finding)
    assert finding.row(**{p.name: "no" for p in finding.parents})[1] == pytest.approx(0.001)
    with pytest.raises(TooLarge, match="200 parents"):
        _ = finding.values


def test_large_noisy_ors_compare_by_their_parameters() -> None:
    one, _ = qmr_finding(100)
    same, _ = qmr_finding(100)
    other, _ = qmr_finding(100, first=0.03)
    assert one.allclose(same)
    assert not one.allclose(other)
    assert not one.allclose(one.rebound(Variable("renamed", ["no", "yes"]), one.parents))


def test_a_tiny_leak_is_not_lost_in_rounding() -> None:
    table = NoisyOr({"a": 0.5}, leak=1e-20).bind(EFFECT, binary("a"))
    assert table.log_prob(np.array([1]), [np.array([0])])[0] == pytest.approx(np.log(1e-20))


def test_draws_of_a_noisy_or_follow_its_rows() -> None:
    table = NoisyOr({"a": 0.7, "b": 0.2}, leak=0.1).bind(EFFECT, binary("a", "b"))
    rng = np.random.default_rng(3)
    for row in product([0, 1], repeat=2):
        drawn = table.sample([np.full(20000, code) for code in row], 20000, rng)
        assert drawn.mean() == pytest.approx(table.values[row][1], abs=0.012)


def test_rebound_renames_and_pickles() -> None:
    a, b = binary("a", "b")
    table = NoisyOr({"a": 0.9, "b": 0.3}).bind(EFFECT, (a, b))
    renamed = table.rebound(Variable("alarm", 2), (Variable("x", 2), Variable("y", 2)))
    assert renamed.names == ("x", "y", "alarm")
    np.testing.assert_array_equal(renamed.values, table.values)
    assert pickle.loads(pickle.dumps(table)).allclose(table)
    assert not table.values.flags.writeable


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NoisyOr({"a": 1.2}), "strength of 'a'.*between 0 and 1"),
        (lambda: NoisyOr({"a": 0.2}, leak=-0.1), "leak.*between 0 and 1"),
        (lambda: NoisyOr({"a": "high"}), "strength of 'a'.*not a number"),  # type: ignore[dict-item]
        (lambda: NoisyOr({"a": float("nan")}), "must be finite"),
        (lambda: NoisyOr([0.2, 0.3]), "takes a mapping"),  # type: ignore[arg-type]
        (lambda: NoisyOr({"a": 0.2}, on={"b": "yes"}), "unknown variable 'b'"),
        (lambda: AtLeast("a"), "number of parents first"),  # type: ignore[arg-type]
        (lambda: AndGate("a", "a"), "twice"),
        (lambda: Logistic({"a": 1.0}, bias=float("inf")), "must be finite"),
    ],
)
def test_bad_parameters_are_named(make: object, message: str) -> None:
    with pytest.raises((InvalidArgument, UnknownVariable), match=message):
        make()  # type: ignore[operator]


def test_parents_that_do_not_fit_are_named_with_the_nearest_name() -> None:
    a, b = binary("burglary", "quake")
    with pytest.raises(UnknownVariable, match=r"'burglry'.*did you mean 'burglary'"):
        NoisyOr({"burglry": 0.9, "quake": 0.1}).bind(EFFECT, (a, b))
    with pytest.raises(InvalidArgument, match="says nothing about its parent 'quake'"):
        NoisyOr({"burglary": 0.9}).bind(EFFECT, (a, b))
    with pytest.raises(InvalidArgument, match="two states"):
        NoisyOr({"burglary": 0.9}).bind(Variable("effect", 3), (a,))
    with pytest.raises(InvalidArgument, match="use NoisyMax"):
        NoisyOr({"level": 0.9}).bind(EFFECT, (Variable("level", 3),))
    with pytest.raises(UnknownState, match="'maybe'"):
        NoisyOr({"quake": 0.9}, on={"quake": "maybe"}).bind(EFFECT, (b,))
    with pytest.raises(InvalidTable, match="different variables"):
        NoisyOr({"effect": 0.9}).bind(EFFECT, (EFFECT,))


# -- noisy-max and noisy-min ------------------------------------------------------------------------------


def extremum_of_effects(tables: list[np.ndarray], leak: np.ndarray, pick: type) -> np.ndarray:
    """Add up every combination of single effects: the definition, at exponential cost."""
    k = len(leak)
    shape = [len(t) for t in tables]
    result = np.zeros([*shape, k])
    for states in np.ndindex(*shape):
        for effects in product(range(k), repeat=len(tables) + 1):
            weight = leak[effects[-1]]
            for table, state, effect in zip(tables, states, effects[:-1], strict=True):
                weight *= table[state, effect]
            result[states][pick(effects)] += weight
    return result


@pytest.mark.parametrize(("recipe", "pick"), [(NoisyMax, max), (NoisyMin, min)])
@pytest.mark.parametrize("seed", range(5))
def test_noisy_extrema_match_their_definition(recipe: type[NoisyMax], pick: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    child = Variable("effect", ["none", "some", "much"])
    parents = (Variable("a", 3), Variable("b", 2))
    tables = [rng.dirichlet(np.ones(3), size=len(p)) for p in parents]
    tables[0][0] = [1.0, 0.0, 0.0]
    tables[1][1] = [0.0, 0.0, 1.0]
    leak = rng.dirichlet(np.ones(3))
    table = recipe({"a": tables[0], "b": tables[1]}, leak=leak).bind(child, parents)
    np.testing.assert_allclose(table.values, extremum_of_effects(tables, leak, pick), atol=1e-12)
    assert_rows_agree_with_table(table)


def test_without_leak_nothing_is_added() -> None:
    a, child = Variable("a", 2), Variable("effect", 3)
    rows = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    for recipe in (NoisyMax, NoisyMin):
        np.testing.assert_allclose(recipe({"a": rows}).bind(child, (a,)).values, rows, atol=1e-12)


def test_noisy_or_is_a_noisy_max_of_two_states() -> None:
    parents = binary("a", "b")
    graded = NoisyMax({"a": [[1, 0], [0.1, 0.9]], "b": {"no": [1, 0], "yes": [0.7, 0.3]}}, leak=[0.99, 0.01])
    plain = NoisyOr({"a": 0.9, "b": 0.3}, leak=0.01)
    one, other = graded.bind(EFFECT, parents), plain.bind(EFFECT, parents)
    assert one.allclose(other)
    assert one.n_parameters == other.n_parameters == 3


def test_noisy_max_names_the_row_that_is_no_distribution() -> None:
    flu, child = Variable("flu", ["no", "mild"]), Variable("fever", 3)
    with pytest.raises(InvalidTable, match=r"effect of 'flu' on 'fever' for flu='mild' is \[0.5, 0.4, 0.0\]"):
        NoisyMax({"flu": [[1, 0, 0], [0.5, 0.4, 0]]}).bind(child, (flu,))
    with pytest.raises(InvalidTable, match=r"needs \(2, 3\)"):
        NoisyMax({"flu": [[1, 0], [0.5, 0.5]]}).bind(child, (flu,))
    with pytest.raises(InvalidTable, match="no row for flu='mild'"):
        NoisyMax({"flu": {"no": [1, 0, 0]}}).bind(child, (flu,))
    with pytest.raises(InvalidTable, match="leak"):
        NoisyMax({"flu": [[1, 0, 0], [0, 1, 0]]}, leak=[0.5, 0.5]).bind(child, (flu,))


# -- gates and arithmetic ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("gate", "truth"),
    [
        (AndGate(), all),
        (OrGate(), any),
        (XorGate(), lambda bits: sum(bits) % 2 == 1),
        (AtLeast(2), lambda bits: sum(bits) >= 2),
        (Exists(of="no"), lambda bits: not all(bits)),
        (ForAll(of="no"), lambda bits: not any(bits)),
    ],
)
def test_gates_have_their_truth_tables(gate: LocalModel, truth: object, n: int) -> None:
    parents = binary(*"abcd"[:n])
    table = gate.bind(EFFECT, parents)
    for bits in product([False, True], repeat=n):
        code = int(truth(bits))  # type: ignore[operator]
        assert table.values[tuple(map(int, bits))][code] == 1.0
    assert table.n_parameters == 0
    assert_rows_agree_with_table(table)


def test_gates_imply_boolean_states_and_take_any_parents() -> None:
    assert list(OrGate().default_states()) == [False, True]
    assert OrGate().parent_names is None
    assert OrGate("a", "b").parent_names == ("a", "b")
    assert isinstance(OrGate(), LocalModel)


def test_not_gate_wants_one_parent() -> None:
    with pytest.raises(InvalidArgument, match="one parent"):
        NotGate().bind(EFFECT, binary("a", "b"))


def test_an_or_of_a_hundred_parents_draws_without_a_table() -> None:
    parents = binary(*(f"p{i}" for i in range(100)))
    gate = OrGate().bind(EFFECT, parents)
    codes = [np.array([0, i == 50]).astype(int) for i in range(100)]
    assert gate.sample(codes, 2, np.random.default_rng(0)).tolist() == [0, 1]
    assert gate.log_prob(np.array([0, 0]), codes).tolist() == [0.0, -np.inf]


@pytest.mark.parametrize(
    ("recipe", "function"),
    [(Sum(), sum), (Min(), min), (Max(), max), (Count(of=2), lambda xs: xs.count(2))],
)
def test_arithmetic_children_are_functions_of_their_parents(recipe: LocalModel, function: object) -> None:
    parents = (Variable("a", [1, 2, 3]), Variable("b", [-1, 2]), Variable("c", [0, 2, 7]))
    child = Variable("result", recipe.implied_states(parents))  # type: ignore[attr-defined]
    table = recipe.bind(child, parents)
    for states in product(*(p.states for p in parents)):
        codes = tuple(p.index(s) for p, s in zip(parents, states, strict=True))
        assert table.values[codes][child.index(function(list(states)))] == 1.0  # type: ignore[operator]
    assert_rows_agree_with_table(table)


def test_a_sum_over_many_dice_has_every_total() -> None:
    dice = tuple(Variable(f"d{i}", range(1, 7)) for i in range(50))
    assert list(Sum().implied_states(dice)) == list(range(50, 301))
    total = Variable("total", range(50, 301))
    codes = [np.array([0, 5]) for _ in dice]
    assert Sum().bind(total, dice).sample(codes, 2, np.random.default_rng(0)).tolist() == [0, 250]


def test_the_order_of_words_decides_a_maximum() -> None:
    sites = tuple(Variable(n, ["low", "medium", "high"]) for n in "ab")
    assert list(Max().implied_states(sites)) == ["low", "medium", "high"]
    risk = Variable("risk", ["high", "medium", "low"])
    assert Max().bind(risk, sites).row(a="low", b="high").tolist() == [1, 0, 0]
    assert Min().bind(risk, sites).row(a="low", b="high").tolist() == [0, 0, 1]


def test_a_result_that_is_no_state_is_named() -> None:
    dice = (Variable("a", [1, 2]), Variable("b", [1, 2]))
    with pytest.raises(InvalidArgument, match="the sum can be 4, which is no state of 'total'"):
        Sum().bind(Variable("total", [2, 3]), dice)
    with pytest.raises(InvalidArgument, match="integer states; 'c' has the state 'low'"):
        Sum().bind(Variable("total", 5), (Variable("c", ["low", "high"]),))
    with pytest.raises(InvalidArgument, match="'c' has larger"):
        Sum().bind(Variable("total", 5), (Variable("c", [10**30, 1]),))
    with pytest.raises(InvalidArgument, match="at least one parent"):
        Sum().bind(Variable("total", 5), ())
    with pytest.raises(InvalidArgument, match="choose it with of="):
        Count().bind(Variable("n", 3), (Variable("a", 3),))


def test_arithmetic_and_gates_agree_with_plain_functions_of_the_parents() -> None:
    parents = (Variable("a", [0, 1, 2]), Variable("b", [0, 1]))
    child = Variable("c", 4)
    by_function = as_conditional(child, parents, lambda a, b: a + b)
    assert as_conditional(child, parents, Sum("a", "b")).allclose(by_function)


# -- logistic and softmax ---------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5))
def test_logistic_adds_up_log_odds(bias: float, slope: float, shift: float) -> None:
    dose, sex = Variable("dose", [0, 1, 3]), Variable("sex", ["f", "m"])
    table = Logistic({"dose": slope, "sex": {"m": shift}}, bias=bias).bind(EFFECT, (dose, sex))
    for d, s in product(dose.states, sex.states):
        assert isinstance(d, int)
        odds = bias + slope * d + (shift if s == "m" else 0.0)
        np.testing.assert_allclose(table.row(dose=d, sex=s)[1], 1 / (1 + np.exp(-odds)), rtol=1e-9)
    assert_rows_agree_with_table(table)
    assert table.n_parameters == 3


def test_logistic_tails_keep_their_logarithm() -> None:
    table = Logistic({"a": -2000.0}).bind(EFFECT, (Variable("a", 2),))
    assert table.log_prob(np.array([1]), [np.array([1])])[0] == pytest.approx(-2000.0)


def test_one_weight_for_three_words_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="mapping from its states 'r', 'g', 'b'"):
        Logistic({"color": 1.0}).bind(EFFECT, (Variable("color", ["r", "g", "b"]),))
    with pytest.raises(UnknownState, match="did you mean 'r'"):
        Logistic({"color": {"R": 1.0}}).bind(EFFECT, (Variable("color", ["r", "g", "b"]),))


def test_softmax_normalises_exponential_scores() -> None:
    age, income = Variable("age", ["young", "old"]), Variable("income", [0, 1, 2])
    child = Variable("car", ["mini", "suv", "van"])
    recipe = Softmax(
        {"suv": {"income": 0.7}, "van": {"age": {"old": 1.5}, "income": -0.2}}, bias={"mini": 0.3}
    )
    table = recipe.bind(child, (age, income))
    for a, i in product(age.states, (0, 1, 2)):
        scores = np.array([0.3, 0.7 * i, (1.5 if a == "old" else 0.0) - 0.2 * i])
        np.testing.assert_allclose(table.row(age=a, income=i), np.exp(scores) / np.exp(scores).sum())
    assert_rows_agree_with_table(table)
    assert recipe.parent_names == ("income", "age")
    assert table.n_parameters == 2 * (1 + 1 + 1)


def test_softmax_of_two_states_is_logistic() -> None:
    a = Variable("a", [0, 1, 2])
    assert np.allclose(
        Softmax({"yes": {"a": 1.3}}, bias={"yes": -0.4}).bind(EFFECT, (a,)).values,
        Logistic({"a": 1.3}, bias=-0.4).bind(EFFECT, (a,)).values,
    )


def test_softmax_names_an_unknown_child_state() -> None:
    with pytest.raises(UnknownState, match="did you mean 'yes'"):
        Softmax({"Yes": {"a": 1.0}}).bind(EFFECT, (Variable("a", 2),))


@pytest.mark.parametrize(
    "recipe",
    [
        NoisyOr({"a": 0.2}),
        NoisyMax({"a": [[1, 0], [0, 1]]}),
        Logistic({"a": 1.0}),
        Softmax({"yes": {"a": 1.0}}),
    ],
)
def test_every_recipe_is_a_local_model_that_names_its_parents(recipe: LocalModel) -> None:
    assert isinstance(recipe, LocalModel)
    assert recipe.parent_names == ("a",)
    a = Variable("a", 2)
    assert isinstance(as_conditional(EFFECT, (a,), recipe), Conditional)


def test_a_row_needs_a_state_of_every_parent() -> None:
    table = NoisyOr({"a": 0.2, "b": 0.4}).bind(EFFECT, binary("a", "b"))
    wrong: dict[str, State] = {"a": "yes", "bb": "no"}
    with pytest.raises(UnknownVariable, match="did you mean 'b'"):
        table.row(**wrong)
    with pytest.raises(InvalidArgument, match="state for 'b'"):
        table.row(a="yes")
