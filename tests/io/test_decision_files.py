"""Decisions and utilities in files: GeNIe, Hugin, Netica, XMLBIF and native JSON, both ways, names and orders kept."""

import itertools
import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.errors import ParseError, UnsupportedModel
from markovia.io import dumps, loads
from random_diagrams import best_policy, policies, random_diagram

HOLDING = ("net", "xdsl", "dne", "xmlbif", "json")
REFUSING = ("bif", "uai", "dsc", "dagitty", "lavaan", "pomdp")
NASTY = ["a b", "x;y", 'say "hi"', "<tag>", "&amp;", "100%", "µ", "日本", "-1", " ", "a\nb", "node", "utility", "decision",
         "potential", "markovia_allowed", "1.5", "A" * 70]  # fmt: skip

# the umbrella of Shachter (1986): 70 without the forecast, 77 with it
UMBRELLA = {
    "net": """net { node_size = (80 40); }
        utility U { label = "Satisfaction"; }
        decision Umbrella { states = ("take" "leave"); }
        node Weather { states = ("sunny" "rainy"); }
        node Forecast { states = ("sunny" "cloudy" "rainy"); }
        potential (U | Weather Umbrella) { data = ((20 100) (70 0)); }
        potential (Weather) { data = (0.7 0.3); }
        potential (Forecast | Weather) { data = ((0.7 0.2 0.1) (0.15 0.25 0.6)); }
        potential (Umbrella | Forecast) { }""",
    "xdsl": """<smile version="1.0" id="umbrella"><nodes>
        <cpt id="Weather"><state id="sunny"/><state id="rainy"/><probabilities>0.7 0.3</probabilities></cpt>
        <cpt id="Forecast"><state id="sunny"/><state id="cloudy"/><state id="rainy"/><parents>Weather</parents>
          <probabilities>0.7 0.2 0.1 0.15 0.25 0.6</probabilities></cpt>
        <decision id="Umbrella"><state id="take"/><state id="leave"/><parents>Forecast</parents></decision>
        <utility id="U"><parents>Weather Umbrella</parents><utilities>20 100 70 0</utilities></utility>
        </nodes></smile>""",
    "dne": """// ~->[DNET-1]->~
        bnet umbrella {
        node Weather { kind = NATURE; discrete = TRUE; chance = CHANCE; states = (sunny, rainy); parents = ();
          probs = (0.7, 0.3); };
        node Forecast { kind = NATURE; discrete = TRUE; chance = CHANCE; states = (sunny, cloudy, rainy);
          parents = (Weather); probs = ((0.7, 0.2, 0.1), (0.15, 0.25, 0.6)); };
        node Umbrella { kind = DECISION; discrete = TRUE; states = (take, leave); parents = (Forecast); };
        node U { kind = UTILITY; discrete = FALSE; chance = DETERMIN; parents = (Weather, Umbrella);
          functable =
            // take   leave   // Weather
              ((20,     100),   // sunny
               (70,     0));    // rainy
          title = "Satisfaction"; };
        };""",
    "xmlbif": """<BIF VERSION="0.3"><NETWORK><NAME>umbrella</NAME>
        <VARIABLE TYPE="nature"><NAME>Weather</NAME><OUTCOME>sunny</OUTCOME><OUTCOME>rainy</OUTCOME></VARIABLE>
        <VARIABLE TYPE="nature"><NAME>Forecast</NAME><OUTCOME>sunny</OUTCOME><OUTCOME>cloudy</OUTCOME>
          <OUTCOME>rainy</OUTCOME></VARIABLE>
        <VARIABLE TYPE="decision"><NAME>Umbrella</NAME><OUTCOME>take</OUTCOME><OUTCOME>leave</OUTCOME></VARIABLE>
        <VARIABLE TYPE="utility"><NAME>U</NAME></VARIABLE>
        <DEFINITION><FOR>Weather</FOR><TABLE>0.7 0.3</TABLE></DEFINITION>
        <DEFINITION><FOR>Forecast</FOR><GIVEN>Weather</GIVEN><TABLE>0.7 0.2 0.1 0.15 0.25 0.6</TABLE></DEFINITION>
        <DEFINITION><FOR>Umbrella</FOR><GIVEN>Forecast</GIVEN></DEFINITION>
        <DEFINITION><FOR>U</FOR><GIVEN>Weather</GIVEN><GIVEN>Umbrella</GIVEN><TABLE>20 100 70 0</TABLE></DEFINITION>
        </NETWORK></BIF>""",
}  # fmt: skip


def assert_same(one, two):
    assert list(one.variables) == list(two.variables)
    for name in one.variables:
        assert one.variable(name) == two.variable(name)
        assert one.parents(name) == two.parents(name)
        assert one.has_table(name) == two.has_table(name)
        if one.has_table(name):
            a, b = one[name], two[name]
            assert type(a) is type(b)
            assert a.allclose(b, atol=0.0)
    assert one.name == two.name
    assert one.properties == two.properties
    assert one.node_properties == two.node_properties


@pytest.mark.parametrize("form", UMBRELLA)
def test_a_file_of_the_format_is_the_umbrella(form):
    bn = loads(UMBRELLA[form])
    assert bn.decisions == ["Umbrella"]
    assert bn.utilities == ["U"]
    assert bn["U"].amount(Weather="sunny", Umbrella="leave") == 100
    assert bn["U"].amount(Weather="rainy", Umbrella="take") == 70
    policy = bn.decide()
    assert policy.value == pytest.approx(77.0)
    assert bn.expected_utility({"Umbrella": "leave"}) == pytest.approx(70.0)
    assert policy.act("Umbrella", Forecast="rainy") == "take"


@pytest.mark.parametrize("form", HOLDING)
def test_amounts_of_different_sizes_keep_their_axes(form):
    bn = mk.BayesianNetwork()
    bn.add("a", [0.5, 0.5])
    bn.add("b", [0.2, 0.3, 0.5])
    bn.add("d", mk.Decision(5), parents=["b"])
    bn.add("u", mk.Utility(np.arange(30.0).reshape(3, 5, 2)), parents=["b", "d", "a"])
    bn.add("alone", mk.Utility(7.25))
    again = loads(dumps(bn, form), form)
    assert_same(again, bn)
    for b, d, a in itertools.product(range(3), range(5), range(2)):
        assert again["u"].amount(a=a, b=b, d=d) == 10 * b + 2 * d + a
    assert again["alone"].worth == 7.25


@st.composite
def named_diagrams(draw):
    seed = draw(st.integers(0, 10**6))
    bn = random_diagram(seed, n_chance=2, n_decisions=2, n_utilities=2, restricted=draw(st.booleans()))
    old = list(bn.variables)
    new = draw(st.lists(st.sampled_from(NASTY), min_size=len(old), max_size=len(old), unique=True))
    names = {o: n for o, n in zip(old, new, strict=True) if draw(st.booleans())}
    taken = set(old) - set(names)
    bn.rename({o: n for o, n in names.items() if n not in taken})
    for name in bn.variables:
        if name not in bn.utilities and draw(st.booleans()):
            k = len(bn.variable(name))
            bn.rename_states(
                name, draw(st.sampled_from([NASTY[:k], list(range(5, 5 + k)), ["", *NASTY[4 : 3 + k]]]))
            )
        if draw(st.booleans()):
            bn.node_properties[name] = {"label": draw(st.sampled_from(NASTY)), "a b": "c"}
    bn.name = draw(st.sampled_from(["", "n", *NASTY]))
    return bn


@pytest.mark.parametrize("form", HOLDING)
@settings(max_examples=25, deadline=None)
@given(bn=named_diagrams())
def test_a_round_trip_keeps_names_orders_tables_and_the_answer(form, bn):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = dumps(bn, form)
    again = loads(text, form)
    assert_same(again, bn)
    assert again.decide().value == bn.decide().value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert dumps(again, form) == text


@pytest.mark.parametrize("seed", range(6))
def test_a_diagram_read_back_has_the_value_of_the_best_of_all_policies(seed):
    bn = random_diagram(seed, restricted=seed % 2 == 1)
    if policies(bn) > 20_000:
        pytest.skip("too many policies to try")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = [loads(dumps(bn, form), form) for form in HOLDING]
    for one in again:
        assert one.decide().value == pytest.approx(best_policy(bn), rel=1e-9, abs=1e-9)


def test_pyagrum_reads_what_is_written_and_writes_what_is_read(tmp_path):
    gum = pytest.importorskip("pyagrum")
    bn = random_diagram(11, n_chance=3, n_decisions=1, n_utilities=2)
    path = tmp_path / "diagram.bifxml"
    mk.save(bn, path)
    theirs = gum.InfluenceDiagram()
    theirs.loadBIFXML(str(path))
    for name in bn.utilities:
        axes = list(reversed(theirs.utility(name).names))
        ours = np.transpose(bn[name].worth, [bn.parents(name).index(a) for a in axes if a != name])
        np.testing.assert_allclose(np.squeeze(theirs.utility(name).toarray()), np.squeeze(ours))
    theirs.saveBIFXML(str(path))
    again = mk.load(path)
    assert {*again.decisions} == {*bn.decisions}
    assert {*again.utilities} == {*bn.utilities}
    assert again.decide().value == pytest.approx(bn.decide().value, rel=1e-4)  # it writes six digits


def test_what_is_allowed_travels_in_a_mark_with_a_warning():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add(
        "d", mk.Decision(["l", "m", "r"], allowed=[[True, True, False], [False, True, True]]), parents=["x"]
    )
    bn.add("u", mk.Utility([3, 2, 1]), parents=["d"])
    for form in ("net", "xdsl", "dne", "xmlbif"):
        with pytest.warns(UserWarning, match="do not say what is forbidden"):
            text = dumps(bn, form)
        assert "110 011" in text
        assert loads(text, form).decide().value == pytest.approx(2.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loads(dumps(bn, "json")).decide().value == pytest.approx(2.5)


@pytest.mark.parametrize("mark", ["110", "110 01x", "000 011", "110 0111"])
def test_a_broken_mark_is_refused(mark):
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add("d", mk.Decision(3, allowed=[[True, True, False], [False, True, True]]), parents=["x"])
    with pytest.warns(UserWarning, match="forbidden"):
        text = dumps(bn, "net").replace("110 011", mark)
    with pytest.raises(ParseError, match="'d'"):
        loads(text, "net")


@pytest.mark.parametrize("form", REFUSING)
def test_other_formats_refuse_and_name_those_that_can(form):
    bn = random_diagram(0)
    with pytest.raises(UnsupportedModel, match=r"\.json"):
        dumps(bn, form)


def test_weighted_utilities_are_a_mau_for_genie_and_a_form_in_json():
    bn = mk.BayesianNetwork()
    bn.add("d", mk.Decision(["a", "b"]))
    bn.add("cost", mk.Utility([1, 2]), parents=["d"])
    bn.add("life", mk.Utility([1, -2]), parents=["d"])
    bn.add("all", mk.Utility(mk.Quadratic({}, linear={"cost": 2, "life": 0.5})))
    text = dumps(bn, "xdsl")
    assert "<mau id=" in text
    assert "<weights>2.0 0.5</weights>" in text
    for form in ("xdsl", "json"):
        again = loads(dumps(bn, form), form)
        assert again.decide().value == bn.decide().value == pytest.approx(3.0)
        assert again["all"].allclose(bn["all"])
    for form in ("net", "dne", "xmlbif"):
        with pytest.raises(UnsupportedModel, match=r"'all' is worth a function .* save it as \.xdsl"):
            dumps(bn, form)
    plain = loads(text.replace("<weights>2.0 0.5</weights>", ""))
    assert plain["all"].amount(cost=1, life=3) == 4
    bn.replace("all", mk.Utility(lambda cost, life: cost * life))
    for form in ("xdsl", "json"):
        with pytest.raises(UnsupportedModel, match=r"mk\.Quadratic"):
            dumps(bn, form)


def test_numbers_to_choose_and_quadratic_worths_are_native():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(0, {}, 1))
    bn.add("u", mk.Decision(), parents=["x"])
    bn.add(
        "miss", mk.Utility(mk.Quadratic({"x": -1, "u": -1, ("x", "u"): 1.5}, linear={"u": 0.25}, constant=3))
    )
    again = loads(dumps(bn, "json"))
    assert again["miss"].form == bn["miss"].form
    assert again["u"].kind == "decision"
    assert again.decide().value == pytest.approx(bn.decide().value, rel=1e-12)
    with pytest.raises(UnsupportedModel, match="is a number"):
        dumps(bn, "xdsl")
    bn.replace("miss", mk.Utility(lambda x, u: -((x - u) ** 2)))
    with pytest.raises(UnsupportedModel, match="files hold no functions"):
        dumps(bn, "json")


def test_a_function_of_states_is_saved_as_its_table():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add("d", mk.Decision(["a", "b"]))
    bn.add("u", mk.Utility(lambda x, d: x * 3.5 - (d == "b")))
    again = loads(dumps(bn, "json"))
    np.testing.assert_array_equal(again["u"].worth, [[0, -1], [3.5, 2.5]])


def test_processes_keep_decisions_and_utilities():
    p = mk.DynamicBayesianNetwork()
    moves = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))
    p.add("s", moves, states=3, parents=["s@-1", "move@-1"], initial=[1, 0, 0])
    p.add("move", mk.Decision(2), parents=["s"])
    p.add("r", mk.Utility(np.arange(6.0).reshape(3, 2)), parents=["s", "move"])
    again = loads(dumps(p, "json"))
    assert again.decide(discount=0.9).value == p.decide(discount=0.9).value
    assert again.transition["move"].kind == "decision"
    assert again.transition["r"].kind == "utility"
    assert pickle.loads(pickle.dumps(p)).decide(discount=0.9).value == p.decide(discount=0.9).value


def test_pickles_and_zips_keep_diagrams(tmp_path):
    bn = random_diagram(3, restricted=True)
    assert_same(pickle.loads(pickle.dumps(bn)), bn)
    mk.save(bn, tmp_path / "d.mkz")
    assert_same(mk.load(tmp_path / "d.mkz"), bn)


def test_nodes_without_amounts_or_tables_stay_without():
    for form, text in {
        "net": 'net {} node a { states = ("x" "y"); } utility u { } decision d { states = ("l" "r"); }',
        "xdsl": '<smile version="1.0" id="n"><nodes><cpt id="a"><state id="x"/><state id="y"/></cpt><utility id="u"/>'
        '<decision id="d"><state id="l"/><state id="r"/></decision></nodes></smile>',
    }.items():
        bn = loads(text, form)
        assert bn.decisions == ["d"]
        assert not bn.has_table("u")
        assert not bn.has_table("a")
        again = loads(dumps(bn, form), form)
        assert [again.has_table(n) for n in ("a", "u", "d")] == [False, False, True]
        assert again.variable("u") == bn.variable("u")
        assert_same(loads(dumps(bn, "json")), bn)


def test_a_policy_that_a_program_stored_with_a_decision_is_not_a_table():
    text = UMBRELLA["net"].replace(
        "(Umbrella | Forecast) { }", "(Umbrella | Forecast) { data = ((1 0) (0 1) (1 0)); }"
    )
    assert loads(text)["Umbrella"].kind == "decision"
    text = UMBRELLA["dne"].replace("(Forecast); };", "(Forecast); probs = ((1,0),(0,1),(1,0)); };")
    assert loads(text)["Umbrella"].kind == "decision"


@pytest.mark.parametrize(
    ("form", "old", "new", "words"),
    [
        ("net", "((20 100) (70 0))", "(20 100 70)", "expected 4 amounts for 'U', found 3"),
        ("net", "(Weather) { data = (0.7 0.3)", "(Weather | U) { data = (0.7 0.3)", "found the utility 'U'"),
        ("net", "(Umbrella | Forecast)", "(Umbrella | U)", "found the utility 'U'"),
        ("net", "100", "1e999", "amounts are finite"),
        ("xdsl", "20 100 70 0", "20 100 70 0 0", "expected 4 amounts for 'U', found 5"),
        ("xdsl", "20 100 70 0", "20 much 70 0", "much"),
        ("xdsl", "<utility id", "<equation id", "<equation> nodes are not supported"),
        ("dne", "(20,     100)", "(20,     take)", "expected an amount, found 'take'"),
        ("dne", "kind = UTILITY", "kind = ASSUME", "expected NATURE, DECISION or UTILITY"),
        ("xmlbif", "<TABLE>20 100 70 0<", "<TABLE>20 100 70<", "expected 4 amounts"),
        ("xmlbif", 'TYPE="utility"', 'TYPE="worth"', "nature, decision or utility"),
    ],
)
def test_malformed_files_are_refused_with_the_place(form, old, new, words):
    text = UMBRELLA[form]
    assert old in text
    tail = "</utility>", "</equation>"
    changed = text.replace(old, new).replace(*tail) if "equation" in new else text.replace(old, new)
    with pytest.raises(ParseError, match=r":\d+:\d+: ") as error:
        loads(changed, form)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mau_weighs_utilities_and_nothing_else():
    text = UMBRELLA["xdsl"].replace(
        "</nodes>", "<mau id='M'><parents>U Weather</parents><weights>1 1</weights></mau></nodes>"
    )
    with pytest.raises(ParseError, match="expected utilities to be weighed by 'M', found 'Weather'"):
        loads(text)
    text = UMBRELLA["xdsl"].replace(
        "</nodes>", "<mau id='M'><parents>U</parents><weights>1 1</weights></mau></nodes>"
    )
    with pytest.raises(ParseError, match="expected 1 weights"):
        loads(text)
    text = UMBRELLA["xdsl"].replace(
        "</nodes>", "<mau id='M'><parents>U</parents><expressions>M=U</expressions></mau></nodes>"
    )
    with pytest.raises(ParseError, match="expected weights"):
        loads(text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"amounts": [20.0, 100.0, 70.0, 0.0]', '"amounts": [20.0, 100.0]', "expected 4 amounts"),
        ('"amounts": [20.0, 100.0, 70.0, 0.0]', '"amounts": [20.0, "x", 70.0, 0.0]', "expected a number"),
        ('"amounts": [20.0, 100.0, 70.0, 0.0]', '"terms": [], "linear": {"Sun": 1}, "constant": 0', "found 'Sun'"),
        ('"domain": "utility"', '"domain": "util"', "expected states, or one of the domains"),
        ('"model": "DecisionNode", "parameters": {}', '"model": "DecisionNode", "parameters": {"allowed": [[true, true]]}',
         "expected 3 rows of 2 truth values"),
        ('"model": "DecisionNode", "parameters": {}', '"model": "UtilityNode", "parameters": {"amounts": []}',
         "expected the domain 'utility'"),
        ('"model": "DecisionNode"', '"model": "Choice"', "expected one of"),
    ],
)  # fmt: skip
def test_native_files_are_checked(old, new, words):
    text = dumps(loads(UMBRELLA["xdsl"]), "json")
    assert old in text
    with pytest.raises(ParseError) as error:
        loads(text.replace(old, new))
    assert words in str(error.value)
    json.loads(text)


def test_unknown_kinds_of_nodes_are_never_written_as_tables():
    coin = mk.BayesianNetwork()
    coin.add("x", [0.25, 0.75])

    class Odd(type(coin["x"])):
        kind = "odd"

    odd = mk.BayesianNetwork.from_conditionals([Odd.of(coin.variable("x"), (), coin["x"].values)])
    for form in (*HOLDING, "bif", "uai", "dsc"):
        with pytest.raises(UnsupportedModel, match="kind 'odd'"):
            dumps(odd, form)


def test_graphs_for_networkx_say_what_is_decided():
    nx = pytest.importorskip("networkx")
    bn = loads(UMBRELLA["xdsl"])
    graph = mk.io.to_networkx(bn, tables=True)
    assert isinstance(graph, nx.DiGraph)
    assert graph.nodes["Umbrella"]["decision"]
    assert graph.nodes["U"]["domain"] == "utility"
    assert graph.nodes["U"]["table"].tolist() == [[20, 100], [70, 0]]
    assert "table" not in graph.nodes["Umbrella"]
    for door, module in ((mk.io.to_pyagrum, "pyagrum"), (mk.io.to_pgmpy, "pgmpy")):
        pytest.importorskip(module)
        with pytest.raises(UnsupportedModel, match="hold no decisions"):
            door(bn)
