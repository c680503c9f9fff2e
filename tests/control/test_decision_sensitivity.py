"""Values and advice by one number, against deciding anew, and against the enumeration of all policies."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovia as mk
from markovia.control.table_numbers import numbers_of, read_number
from markovia.inference.decisions.diagrams.value_lines import PolicyLine, upper_envelope
from random_diagrams import best_policy, policies, random_diagram


def oil():
    bn = mk.BayesianNetwork()
    bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    bn.add("test", mk.Decision(["yes", "no"]))
    none = [0, 0, 0, 1]
    rows = [[[0.6, 0.3, 0.1, 0], none], [[0.3, 0.4, 0.3, 0], none], [[0.1, 0.4, 0.5, 0], none]]
    bn.add("result", rows, states=["none", "open", "closed", "untested"], parents=["oil", "test"])
    bn.add("drill", mk.Decision(["yes", "no"]), parents=["test", "result"])
    bn.add("cost", mk.Utility({"yes": -10, "no": 0}), parents=["test"])
    bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
    return bn


def at(bn, parameter, x):
    pieces = list(bn.pieces())
    return mk.BayesianNetwork.from_conditionals(read_number(pieces, parameter).pieces_at(pieces, x))


def a_number(bn, seed):
    """Return a random number of a diagram that decisions may depend on, as a user names it."""
    rng = np.random.default_rng(seed)
    numbers = [
        n for n in numbers_of(list(bn.pieces()), None) if n.what == "amount" or len(n.node.variable) > 1
    ]
    number = numbers[rng.integers(len(numbers))]
    states = {p.name: p.states[i] for p, i in zip(number.node.parents, number.at, strict=False)}
    own = () if number.what == "amount" else (number.node.variable.states[number.at[-1]],)
    return (number.name, *own, states)


def check_against_deciding(bn, parameter, low=None, high=None, truth=None, **how):
    found = bn.decision_sensitivity(parameter, low, high, **how)
    decide = truth or (lambda other: other.decide(**how).value)
    given_names = how.get("given")
    risk = how.get("risk", 0.0)
    for x in np.linspace(found.low, found.high, 9).tolist():
        other = at(bn, parameter, x)
        best = decide(other)
        assert found.value(x) == pytest.approx(best, rel=1e-7, abs=1e-7)
        followed = other.follow(found.policy(x)).expected_utility(given=given_names, risk=risk)
        assert followed == pytest.approx(best, rel=1e-7, abs=1e-7)
    for x, (a, b) in zip(
        found.thresholds.tolist(), zip(found.pieces, found.pieces[1:], strict=False), strict=True
    ):
        assert a.value_high == pytest.approx(b.value_low, rel=1e-7, abs=1e-7)
        middle = 0.5 * (b.low + b.high)
        worse = at(bn, parameter, middle).follow(a.policy).expected_utility(given=given_names, risk=risk)
        assert worse < found.value(middle)  # the advice did flip
        assert a.high == x
    return found


def test_the_threshold_of_the_oil_well_is_that_of_the_closed_form():
    bn = mk.BayesianNetwork()
    bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    bn.add("drill", mk.Decision(["yes", "no"]))
    bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
    found = bn.decision_sensitivity(("oil", "dry"))
    assert found.thresholds.tolist() == pytest.approx([110 / 180])
    assert found.pieces[0].line == pytest.approx((110, -180))
    assert found.pieces[1].line == pytest.approx((0, 0))
    assert found.exact
    assert found.current == 0.5
    assert found.value(np.array([0.0, 0.5, 1.0])).tolist() == pytest.approx([110, 20, 0])
    assert "drill: yes -> no" in str(found)


def test_the_test_pays_up_to_its_worth():
    found = oil().decision_sensitivity(("cost", {"test": "yes"}), -30, 0)
    assert found.thresholds.tolist() == pytest.approx([-12.5])
    assert found.changes[0][0] == "test: no -> yes"


@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_the_best_of_all_policies(seed):
    bn = random_diagram(
        seed, n_chance=3, n_decisions=1 + seed % 2, zeros=seed % 3 == 0, restricted=seed % 5 == 0
    )
    if policies(bn) > 3_000:
        pytest.skip("too many policies to try")
    found = check_against_deciding(bn, a_number(bn, seed), truth=best_policy)
    assert found.exact


@pytest.mark.parametrize("seed", range(12))
def test_perfect_recall_is_remembered(seed):
    bn = random_diagram(500 + seed, n_chance=3, n_decisions=2)
    try:
        bn.decide(memory="perfect")
    except mk.errors.InvalidArgument:
        pytest.skip("no order of the decisions")
    check_against_deciding(bn, a_number(bn, seed), memory="perfect")


@pytest.mark.parametrize("risk", [0.05, -0.05])
@pytest.mark.parametrize("seed", range(8))
def test_certainty_equivalents_are_followed_too(seed, risk):
    bn = random_diagram(700 + seed, n_chance=3, n_decisions=1)
    check_against_deciding(bn, a_number(bn, seed), risk=risk)


@pytest.mark.parametrize("seed", range(16))
def test_evidence_that_the_number_makes_more_or_less_probable_bends_the_pieces_but_not_the_advice(seed):
    bn = random_diagram(900 + seed, n_chance=4, n_decisions=1)
    free = [
        n
        for n in bn.variables
        if n[0] == "c" and not any(n in bn.graph.descendants([d]) for d in bn.decisions)
    ]
    if not free:
        pytest.skip("nothing to know")
    parameter = (free[0], 0, dict.fromkeys(bn.parents(free[0]), 0))
    if any(q in bn.decisions for q in bn.parents(free[0])):
        pytest.skip("a row that a decision chooses")
    check_against_deciding(
        bn, parameter, 0.1, 0.9, given={free[-1]: 1}, truth=lambda o: o.decide(given={free[-1]: 1}).value
    )


@pytest.mark.parametrize("seed", range(12))
def test_evidence_and_risk_go_together(seed):
    bn = random_diagram(5000 + seed, n_chance=4, n_decisions=1)
    free = [
        n
        for n in bn.variables
        if n[0] == "c" and not any(n in bn.graph.descendants([d]) for d in bn.decisions)
    ]
    assert free
    parameter = a_number(bn, seed)
    ends = (0.05, 0.95) if len(parameter) == 3 else (None, None)
    check_against_deciding(bn, parameter, *ends, given={free[-1]: 1}, risk=(0.05, -0.05)[seed % 2])


def test_evidence_that_is_impossible_at_an_end_is_named():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add("y", [[1, 0], [0, 1]], parents=["x"])
    bn.add("d", mk.Decision(2))
    bn.add("u", mk.Utility([[0, 1], [1, 0]]), parents=["x", "d"])
    with pytest.raises(mk.errors.InvalidArgument, match="impossible where P"):
        bn.decision_sensitivity(("x", 0), given={"y": 1})
    assert bn.decision_sensitivity(("x", 0), 0.0, 0.5, given={"y": 1}).value(0.2) == pytest.approx(1.0)


def test_a_bent_piece_has_no_line():
    bn = oil()
    found = bn.decision_sensitivity(("oil", "dry"), 0.1, 0.9, risk=0.01)
    assert all(piece.line is None for piece in found.pieces)


@given(st.integers(0, 10**6), st.sampled_from([1e-9, 1e-3, 1e6, 1e9]))
def test_another_unit_moves_no_threshold(seed, unit):
    bn = random_diagram(seed % 1000, n_chance=2, n_decisions=1)
    scaled = bn.copy()
    for u in bn.utilities:
        scaled.replace(u, mk.Utility(bn[u].worth * unit), parents=bn.parents(u))
    parameter = next((n, 0, dict.fromkeys(bn.parents(n), 0)) for n in bn.variables if n[0] == "c")
    a, b = bn.decision_sensitivity(parameter), scaled.decision_sensitivity(parameter)
    assert b.thresholds == pytest.approx(a.thresholds, abs=1e-7)
    assert b.value(0.3) == pytest.approx(unit * a.value(0.3), rel=1e-7, abs=1e-9 * unit)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=12), st.randoms())
def test_the_upper_envelope_is_the_largest_line_whatever_tie_is_taken(ends, random):
    lines = [PolicyLine(float(a), float(b), {}) for a, b in ends]

    def best(place):
        top = max(line.height(place) for line in lines)
        return random.choice([line for line in lines if line.height(place) >= top - 1e-12])

    pieces = upper_envelope(best)
    assert pieces[0].first == 0.0
    assert pieces[-1].last == 1.0
    for a, b in itertools.pairwise(pieces):
        assert a.last == b.first
        assert b.line.end - b.line.start > a.line.end - a.line.start
    for place in np.linspace(0, 1, 41).tolist():
        own = [p.line.height(place) for p in pieces if p.first <= place <= p.last]
        assert own == pytest.approx([max(line.height(place) for line in lines)] * len(own), abs=1e-8)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 33])
def test_every_tangent_of_a_parabola_is_a_piece(count):
    touched = (np.arange(count) + 0.5) / count
    lines = [PolicyLine(-t * t, 2 * t - t * t, {}) for t in touched.tolist()]
    pieces = upper_envelope(lambda place: max(lines, key=lambda line: line.height(place)))
    assert [p.line for p in pieces] == lines
    assert [p.last for p in pieces] == pytest.approx([*((touched[1:] + touched[:-1]) / 2), 1.0])


def test_a_local_optimum_is_said_to_be_one():
    bn = mk.BayesianNetwork()  # the pigs: what was treated is forgotten, and no order of solution exists
    ill = [0.9, 0.1]
    bn.add("h1", ill)
    for t in (1, 2, 3):
        bn.add(f"t{t}", [[0.9, 0.1], [0.2, 0.8]], parents=[f"h{t}"])
        bn.add(f"d{t}", mk.Decision(2), parents=[f"t{t}"])
        bn.add(f"c{t}", mk.Utility([0, -100]), parents=[f"d{t}"])
        bn.add(f"h{t + 1}", [[[0.8, 0.2], [0.9, 0.1]], [[0.1, 0.9], [0.5, 0.5]]], parents=[f"h{t}", f"d{t}"])
    bn.add("price", mk.Utility([1000, 300]), parents=["h4"])
    found = bn.decision_sensitivity(("price", {"h4": 1}), 100, 900, nodes=1)
    assert not found.exact
    assert found.gap > 0
    assert "local optima" in str(found)
    whole = bn.decision_sensitivity(("price", {"h4": 1}), 250, 350)
    assert whole.value(300.0) == pytest.approx(726.8121)


def test_a_row_that_was_certain_is_shared_evenly():
    bn = mk.BayesianNetwork()
    bn.add("x", [1.0, 0.0, 0.0])
    bn.add("d", mk.Decision(2))
    bn.add("u", mk.Utility([[1, 0], [0, 2], [0, 4]]), parents=["x", "d"])
    found = bn.decision_sensitivity(("x", 0))
    assert found.value(0.0) == pytest.approx(3.0)
    assert found.thresholds.tolist() == pytest.approx([0.75])


def test_a_linear_and_a_multiplicative_form_have_lines_and_others_are_refused():
    bn = oil()
    bn.add("total", mk.Utility(lambda cost, gain: 2 * cost + gain))
    found = check_against_deciding(bn, ("gain", {"oil": "wet", "drill": "yes"}))
    assert not found.exact  # linear wherever it was tried, which proves nothing of a function
    bn.replace("total", mk.Utility(lambda cost, gain: cost + np.sign(gain) * gain**2))
    with pytest.raises(mk.errors.UnsupportedModel, match="tornado"):
        bn.decision_sensitivity(("gain", {"oil": "wet", "drill": "yes"}))
    bn = mk.BayesianNetwork()
    bn.add("state", [0.4, 0.6])
    bn.add("treat", mk.Decision(3), parents=["state"])
    bn.add("cost", mk.Utility([1.0, 0.6, 0.0]), parents=["treat"])
    bn.add("life", mk.Utility([[0.0, 0.7, 1.0], [0.5, 0.6, 0.9]]), parents=["state", "treat"])
    bn.add("total", mk.Utility(mk.control.multiplicative({"cost": 0.4, "life": 0.5})))
    assert check_against_deciding(bn, ("life", {"state": 0, "treat": 1}), 0.0, 1.0).exact


@pytest.mark.parametrize(
    ("parameter", "how", "words"),
    [
        ("oil", {}, "is named by"),
        (("oil",), {}, "which probability"),
        (("oil", "dry"), {"low": -0.5}, "between low=0 and high=1"),
        (("oil", "dry"), {"low": 0.5, "high": 0.2}, "between low=0 and high=1"),
        (("cost", {"test": "yes"}), {"low": 1.0, "high": 1.0}, "below high="),
        (("gain", {"oil": "dry"}), {}, "needs a state of 'drill'"),
        (("drill", "yes"), {}, "is a decision"),
        (("oil", "dri"), {}, "did you mean 'dry'"),
        (("oill", "dry"), {}, "did you mean 'oil'"),
        (("oil", "dry"), {"memory": "all"}, "memory="),
        (("oil", "dry"), {"temperature": 1}, "temperature"),
    ],
)
def test_what_cannot_be_varied_is_said(parameter, how, words):
    with pytest.raises(mk.MarkoviaError, match=words):
        oil().decision_sensitivity(parameter, **how)


def test_values_outside_the_range_are_refused():
    found = oil().decision_sensitivity(("oil", "dry"), 0.2, 0.6)
    with pytest.raises(mk.errors.InvalidArgument, match="widen"):
        found.value(0.7)


def test_a_tornado_has_the_values_of_deciding_anew_in_the_order_of_their_swings():
    bn = oil()
    table = mk.control.tornado(bn, change=0.2)
    assert table.value == pytest.approx(22.5)
    assert table.exact
    swings = [bar.swing for bar in table]
    assert swings == sorted(swings, reverse=True)
    by_label = {bar.label: bar for bar in table}
    bar = by_label["gain(oil=soaking, drill=yes)"]
    for x, value in ((160, bar.value_low), (240, bar.value_high)):
        assert at(bn, ("gain", {"oil": "soaking", "drill": "yes"}), x).decide().value == pytest.approx(value)
    assert not bar.flips
    assert by_label["P(oil=dry)"].flips
    assert by_label["P(oil=dry)"].low == pytest.approx(0.4)
    zero = by_label["gain(oil=dry, drill=no)"]
    assert (zero.low, zero.high) == pytest.approx((-40, 40))
    assert "P(result=untested | oil=dry, test=yes)" not in by_label  # what is impossible stays so


def test_a_tornado_flips_where_another_policy_is_better():
    bn = oil()
    base = bn.decide()
    for bar in mk.control.tornado(bn, ["oil", "cost"], change=0.3):
        better = []
        for x, value in ((bar.low, bar.value_low), (bar.high, bar.value_high)):
            name = (
                ("oil", bar.label[6:-1])
                if bar.label.startswith("P(")
                else ("cost", {"test": bar.label[10:-1]})
            )
            better.append(value - at(bn, name, x).follow(base).expected_utility())
        assert bar.flips == (max(better) > 1e-6)


def test_tornado_takes_curved_forms_and_named_numbers():
    bn = oil()
    bn.add("total", mk.Utility(lambda cost, gain: cost + np.sign(gain) * gain**2))
    table = mk.control.tornado(bn, [("gain", {"oil": "wet", "drill": "yes"}), "cost"])
    assert {bar.label for bar in table} == {"gain(oil=wet, drill=yes)", "cost(test=yes)", "cost(test=no)"}
    assert len(table.to_pandas()) == 3


def test_pictures_are_drawn():
    import matplotlib

    matplotlib.use("agg")
    bn = oil()
    assert bn.decision_sensitivity(("oil", "dry")).plot(title="t").get_title() == "t"
    ax = mk.control.tornado(bn, ["oil"]).plot()
    assert len(ax.get_yticks()) == 3
