import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from file_fuzz import flips, must_hold, peak_memory, shuffled_tokens, truncations
from markovia.errors import ParseError, UnsupportedModel
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.io.native.native_json import read_json, write_json
from markovia.local import (
    AtLeast,
    Count,
    Logistic,
    Max,
    Min,
    NoisyAnd,
    NoisyMax,
    NoisyMin,
    NoisyOr,
    OrGate,
    Softmax,
    Sum,
    XorGate,
)
from model_strategies import bayesian_networks, markov_networks


def demo():
    bn = mk.BayesianNetwork(name='dé "mo"')
    bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    bn.add("on", states=[False, True], parents=["rain"], p=[[1 / 3, 2 / 3], [0.1, 0.9]])
    bn.add("die", states=[3, 1, -2], parents=["on", "rain"], p="random")
    bn.properties = {"author": "me; you", "": "x"}
    bn.node_properties = {"rain": {"position": "(1, 2)"}}
    return bn


def same(a, b):
    assert type(a) is type(b)
    assert a.variables == b.variables
    assert [a.variable(n) for n in a.variables] == [b.variable(n) for n in b.variables]
    assert (a.name, a.properties, a.node_properties) == (b.name, b.properties, b.node_properties)
    if isinstance(a, mk.BayesianNetwork):
        for n in a.variables:
            assert a.parents(n) == b.parents(n)
            assert a.has_table(n) == b.has_table(n)
            if a.has_table(n):
                assert type(a[n]) is type(b[n])
                assert np.array_equal(a[n].values, b[n].values)
    else:
        assert [f.names for f in a.factors] == [f.names for f in b.factors]
        assert all(np.array_equal(f.values, g.values) for f, g in zip(a.factors, b.factors, strict=True))
    return True


def test_a_network_survives_with_every_type_and_bit():
    bn = demo()
    twin = read_json(write_json(bn))
    assert same(bn, twin)
    assert [type(s) for s in twin.states("on")] == [bool, bool]


def test_the_file_is_plain_versioned_json():
    content = json.loads(write_json(demo()))
    assert (content["format"], content["version"], content["kind"]) == ("markovia", 1, "bayesian-network")
    assert content["variables"][2] == {"name": "die", "states": [3, 1, -2]}
    assert content["conditionals"][1]["rows"] == [[1 / 3, 2 / 3], [0.1, 0.9]]


@given(bayesian_networks())
@settings(max_examples=40, deadline=None)
def test_bayesian_networks_survive_a_round_trip(bn):
    assert same(bn, read_json(write_json(bn)))


@pytest.mark.parametrize("kind", [mk.MarkovNetwork, mk.FactorGraph])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_factor_models_survive_a_round_trip(kind, data):
    model = data.draw(markov_networks(kind=kind))
    assert same(model, read_json(write_json(model)))


def test_nodes_without_tables_and_empty_models_survive():
    bn = mk.BayesianNetwork("a->b{x|y|z}<-c; d[4]")
    bn.replace("b", "random")
    assert same(bn, read_json(write_json(bn)))
    for model in (
        mk.BayesianNetwork(),
        mk.MarkovNetwork(),
        mk.FactorGraph({"a": 2}, [mk.Factor.scalar(2.0)]),
    ):
        assert same(model, read_json(write_json(model)))


@pytest.mark.parametrize(
    "model",
    [
        NoisyOr({"a": 0.9, "b": 0.3}, leak=0.01),
        NoisyOr({"a": 1.0, "b": 0.3}, on={"b": "no"}),
        NoisyAnd({"a": 0.9, "b": 0.3}),
        NoisyMax({"a": [[1, 0], [0.25, 0.75]], "b": [[1, 0], [0.5, 0.5]]}, leak=[0.9, 0.1]),
        NoisyMin({"a": [[1, 0], [0.25, 0.75]], "b": [[0, 1], [0.5, 0.5]]}),
        Logistic({"a": 1.5, "b": {"yes": -0.5}}, bias=0.1),
        Softmax({False: {"a": 1.0}, True: {"b": {"no": -1.0}}}, bias={True: 0.5}),
        OrGate("a", "b"),
        XorGate("a", "b"),
        AtLeast(1, "a", "b"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_structured_conditionals_keep_their_class_and_parameters(model):
    bn = mk.BayesianNetwork()
    bn.add("a", states=["no", "yes"], p=[0.5, 0.5])
    bn.add("b", states=["no", "yes"], p=[0.5, 0.5])
    bn.add("c", model, states=[False, True])
    twin = read_json(write_json(bn))
    assert same(bn, twin)
    assert twin["c"].n_parameters == bn["c"].n_parameters
    assert "rows" not in json.loads(write_json(bn))["conditionals"][2]


@pytest.mark.parametrize(
    "model", [Sum("a", "b"), Max("a", "b"), Min("a", "b"), Count("a", "b", of=2)], ids=repr
)
def test_arithmetic_children_survive(model):
    bn = mk.BayesianNetwork()
    bn.add("a", states=[1, 2, 3], p=[0.5, 0.25, 0.25])
    bn.add("b", states=[2, -1], p=[0.5, 0.5])
    bn.add("c", model)
    assert same(bn, read_json(write_json(bn)))


def test_a_noisy_or_of_hundreds_of_parents_is_stored_by_its_parameters():
    bn = mk.BayesianNetwork()
    for i in range(300):
        bn.add(f"d{i}", states=["no", "yes"], p=[0.99, 0.01])
    bn.add("f", NoisyOr({f"d{i}": 0.1 + i / 1000 for i in range(300)}, leak=0.001), states=["no", "yes"])
    text = write_json(bn)
    assert len(text) < 100_000
    twin = read_json(text)
    assert np.array_equal(twin["f"].parameters().strengths, bn["f"].parameters().strengths)


@pytest.mark.parametrize(
    "graph",
    [
        mk.graphs.DAG([("b", "a"), ("a", "c")], nodes=["z"]),
        mk.graphs.UndirectedGraph([("a", "b"), ("b", "c")], nodes=["z"]),
        MixedGraph(["a --> b", "b <-> c", "c o-o d", "d o-> e", "e --- f", "a <-> b"], nodes=["z"]),
        mk.graphs.DAG(),
    ],
    ids=lambda g: type(g).__name__,
)
def test_graphs_survive(graph):
    twin = read_json(write_json(graph))
    assert type(twin) is type(graph)
    assert twin.nodes == graph.nodes
    assert twin.edges == graph.edges


def test_what_is_no_model_is_refused():
    with pytest.raises(UnsupportedModel, match="int"):
        write_json(7)


def broken(change):
    content = json.loads(write_json(demo()))
    change(content)
    return json.dumps(content, indent=1)


@pytest.mark.parametrize(
    ("change", "path", "wanted"),
    [
        (lambda c: c.update(format="other"), "$.format", "markovia"),
        (lambda c: c.update(version=2), "$.version", "version 1"),
        (lambda c: c.update(version=True), "$.version", "version"),
        (lambda c: c.update(kind="hmm"), "$.kind", "'dag'"),
        (lambda c: c.pop("variables"), "$", "'variables'"),
        (lambda c: c.update(propertys={}), "$.propertys", "did you mean 'properties'"),
        (lambda c: c.update(name=3), "$.name", "a string"),
        (lambda c: c["properties"].update(a=1), "$.properties.a", "a string"),
        (lambda c: c["node_properties"].update(fog={}), "$.node_properties.fog", "no 'fog'"),
        (lambda c: c["variables"].append({"name": "rain", "states": 2}), "$.variables[3].name", "new"),
        (lambda c: c["variables"][0].update(states=["no", "no"]), "$.variables[0].states", "repeat"),
        (lambda c: c["variables"][0].update(states=[1.5]), "$.variables[0].states", "a list of states"),
        (lambda c: c["variables"][0].update(states=10**12), "$.variables[0].states", "1,048,576"),
        (lambda c: c["conditionals"].pop(), "$.conditionals", "'die'"),
        (lambda c: c["conditionals"].append(c["conditionals"][0]), "$.conditionals[3]", "two for 'rain'"),
        (
            lambda c: c["conditionals"][1].update(parents=["rian"]),
            "$.conditionals[1].parents[0]",
            "name of a variable",
        ),
        (
            lambda c: c["conditionals"][1].update(parents=["rain", "rain"]),
            "$.conditionals[1].parents",
            "different",
        ),
        (
            lambda c: c["conditionals"][0].update(parents=["on"], rows=[[1, 0]] * 2),
            "$.conditionals",
            "acyclic",
        ),
        (lambda c: c["conditionals"][1]["rows"].pop(), "$.conditionals[1].rows", "2 rows"),
        (lambda c: c["conditionals"][1]["rows"][1].pop(), "$.conditionals[1].rows[1]", "2 probabilities"),
        (
            lambda c: c["conditionals"][1]["rows"].__setitem__(1, ["0.5", 0.5]),
            "$.conditionals[1].rows[1][0]",
            "a number",
        ),
        (
            lambda c: c["conditionals"][1]["rows"].__setitem__(1, [True, 0.5]),
            "$.conditionals[1].rows[1][0]",
            "a number",
        ),
        (
            lambda c: c["conditionals"][1]["rows"].__setitem__(1, [10**400, 0.5]),
            "$.conditionals[1].rows[1][0]",
            "ordinary",
        ),
        (
            lambda c: c["conditionals"][1].update(model="Magic", parameters={}),
            "$.conditionals[1].model",
            "NoisyOr",
        ),
        (
            lambda c: c["conditionals"][1].update(
                model="NoisyOrConditional", parameters={"strengths": [2], "leak": 0, "on": [1]}
            ),
            "$.conditionals[1].parameters",
            "from 0 to 1",
        ),
        (
            lambda c: c["conditionals"][1].update(
                model="DeterministicConditional",
                parameters={"combine": "add", "contributions": [[[0], [5]]], "outcomes": [0], "codes": [0]},
            ),
            "$.conditionals[1].parameters.outcomes",
            "come out",
        ),
    ],
)
def test_schema_errors_name_the_path_and_its_line(change, path, wanted):
    text = broken(change)
    with pytest.raises(ParseError) as caught:
        read_json(text, "m.json")
    assert f"{path}: " in str(caught.value)
    assert wanted in str(caught.value)
    last = path.rsplit(".", 1)[-1].split("[")[0]
    if last != "$":
        lines = text.split("\n")[: caught.value.line]
        assert any(f'"{last}"' in line for line in lines), "the line lies at or after the key"


def test_a_row_that_is_no_distribution_is_reported_at_its_line():
    text = broken(lambda c: c["conditionals"][1].update(rows=[[0.5, 0.5], [0.9, 0.9]]))
    with pytest.raises(ParseError, match=r"sum to 1\.8") as caught:
        read_json(text)
    assert text.split("\n")[caught.value.line - 1 + 1].strip().startswith("0.9")


@pytest.mark.parametrize(
    ("text", "line", "column", "wanted"),
    [
        ("", 1, 1, "object"),
        ("[1, 2]", 1, 1, "object"),
        ('{"format": "markovia",\n "version" 1}', 2, 12, "delimiter"),
        ('{"format": "markovia"', 1, 22, "delimiter"),
        ('{"a": NaN}', 1, 7, "NaN"),
        ('{"a": 1, "a": 2}', 1, 2, "twice"),
        ('{"a": ' + "9" * 5000 + "}", 1, 7, "ordinary"),
        ('{"a": ' + "[" * 200_000, 1, 1, "nested"),
        ('{"a": ' * 200_000, 1, 1, "nested"),
    ],
)
def test_syntax_errors_have_a_line_and_a_column(text, line, column, wanted):
    with pytest.raises(ParseError, match=wanted) as caught:
        read_json(text)
    assert (caught.value.line, caught.value.column) == (line, column)


# -- damage --------------------------------------------------------------------------------------------------------

MODELS = [
    write_json(demo()),
    write_json(mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[30, 5], [1, 10]])])),
    write_json(MixedGraph(["a --> b", "b <-> c"])),
    write_json(read_json(write_json(mk.BayesianNetwork("a->b")))),
]


@pytest.mark.parametrize("text", MODELS)
def test_truncated_files_are_refused(text):
    assert all(must_hold(read_json, cut) for cut in truncations(text.rstrip(), 200))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("text", MODELS)
def test_damaged_files_give_a_model_or_a_parse_error(text, seed):
    damaged = [*flips(text, 200, seed), *shuffled_tokens(text, 200, seed)]
    assert sum(must_hold(read_json, d) for d in damaged) > len(damaged) // 3


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "states", "rows", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    "name",
    "properties",
    "node_properties",
    "variables",
    "conditionals",
    "factors",
    "nodes",
    "edges",
    "kind",
]


@given(st.sampled_from(MODELS), st.sampled_from(KEYS), junk)
@settings(max_examples=200, deadline=None)
def test_any_value_in_the_wrong_place_gives_a_model_or_a_parse_error(text, key, value):
    must_hold(read_json, json.dumps({**json.loads(text), key: value}))
    for part in ("variables", "conditionals", "factors"):
        for field in json.loads(text).get(part, [{}])[0]:
            content = json.loads(text)
            content[part][0][field] = value
            must_hold(read_json, json.dumps(content))


@given(
    junk,
    st.sampled_from(
        ["NoisyOrConditional", "NoisyMaxConditional", "LogisticConditional", "DeterministicConditional"]
    ),
)
@settings(max_examples=100, deadline=None)
def test_any_parameters_give_a_model_or_a_parse_error(value, kind):
    content = json.loads(write_json(demo()))
    content["conditionals"][1] = {"variable": "on", "parents": ["rain"], "model": kind, "parameters": value}
    must_hold(read_json, json.dumps(content))
    names = [
        "strengths",
        "leak",
        "on",
        "start",
        "contributions",
        "n_parameters",
        "combine",
        "outcomes",
        "codes",
    ]
    for name in names:
        content["conditionals"][1]["parameters"] = {name: value}
        must_hold(read_json, json.dumps(content))


@pytest.mark.slow
def test_megabytes_of_nonsense_are_refused_in_time_and_space():
    for head in ("", '{"format": "markovia", "version": 1, "kind": "dag", "nodes": ['):
        for piece in ("[", "{", '"', "1,", '"a",', "\\", "x", ' "a": '):
            text = head + piece * (5_000_000 // len(piece))
            assert must_hold(read_json, text)
    with peak_memory() as peak:
        head = '{"format": "markovia", "version": 1, "kind": "markov-network", "factors": [], "variables": ['
        many = ",".join(f'{{"name": "v{i}", "states": 1000000}}' for i in range(100))
        assert must_hold(read_json, f"{head}{many}]}}", seconds=60)
    assert peak() < 500e6


@pytest.mark.slow
def test_a_hundred_megabytes_of_nonsense_are_refused_in_time():
    for head in ("", '{"format": "markovia", "nodes": ['):
        for piece in ("[", '"', "1,", "x"):
            assert must_hold(read_json, head + piece * (100_000_000 // len(piece)), seconds=60)
