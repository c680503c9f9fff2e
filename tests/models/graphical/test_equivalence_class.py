"""A network that is one member of a learned class: what all members agree on is answered, the rest is refused."""

import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.errors import InvalidGraph, NotIdentifiable, ParseError
from markovia.graphs import DAG, MixedGraph
from markovia.graphs.kinds.equivalence import cpdag, equivalence_class
from markovia.io import dumps, loads
from markovia.plotting.graph_plot import model_scene
from markovia.structure.task.result import LearnedStructure

NAMES = ["d", "a", "c", "b"]


@st.composite
def networks(draw):
    """Return a small network with random tables, some variables of three states, in no particular order."""
    order = draw(st.permutations(NAMES))
    pairs = [(order[i], order[j]) for i in range(4) for j in range(i + 1, 4)]
    edges = [pair for pair in pairs if draw(st.booleans())]
    states = {n: draw(st.integers(2, 3)) for n in NAMES}
    graph = DAG(edges, nodes=NAMES)
    return mk.BayesianNetwork(graph, states=states, tables="random", seed=draw(st.integers(0, 10_000)))


def joint_of(network):
    return network.query(NAMES).values if network.variables else np.ones(())


def after_setting(joint, graph, setting):
    """Return the joint after an intervention by the truncated product, for one graph that the joint factorises by."""
    result = joint.copy()
    for name in setting:
        axes = [NAMES.index(n) for n in (*graph.parents(name), name)]
        family = joint.sum(axis=tuple(k for k in range(4) if k not in axes), keepdims=True)
        result = result / (family / family.sum(axis=NAMES.index(name), keepdims=True))
    for name, code in setting.items():
        axis = NAMES.index(name)
        result = np.where(
            np.arange(joint.shape[axis]).reshape([-1 if k == axis else 1 for k in range(4)]) == code,
            result,
            0,
        )
    return result


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(), st.data())
def test_setting_variables_is_answered_exactly_where_all_graphs_of_the_class_agree(network, data):
    known = cpdag(network.graph)
    network.equivalence_class = known if known.undirected_edges() else None
    chosen = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    setting = {n: data.draw(st.integers(0, len(network.variable(n)) - 1)) for n in chosen}
    joint = joint_of(network)
    answers = [after_setting(joint, member, setting) for member in equivalence_class(network.graph)]
    agree = all(np.allclose(answers[0], other, atol=1e-9) for other in answers[1:])
    if not agree:
        with pytest.raises(NotIdentifiable, match="without a direction"):
            network.do(setting)
    else:
        done = network.do(setting)
        np.testing.assert_allclose(joint_of(done), answers[0], atol=1e-12)
        left = done.equivalence_class
        assert {frozenset(e) for e in known.undirected_edges() if not {*e} & {*chosen}} == (
            set() if left is None else {frozenset(e) for e in left.undirected_edges()}
        )


@pytest.fixture
def learned():
    """Return a network of three states with an undirected part, and its class; its variables are in no order."""
    network = mk.BayesianNetwork(
        "c->b; c->a; e->d; a->d; d->f", states={"a": 3, "c": 3}, tables="random", seed=5
    )
    network.equivalence_class = cpdag(network.graph)
    return network


def test_the_fit_of_a_learned_class_leaves_its_undirected_edges_without_a_direction():
    rows = mk.examples.asia().sample(4000, seed=3)
    for method in ("ges", "pc"):
        found = mk.learn_structure(rows, method)
        assert found.graph.undirected_edges()
        assert found.fit().equivalence_class == found.graph
    assert mk.learn_structure(rows, "hill-climb").fit().equivalence_class is None


def test_the_class_of_numbers_survives_the_fit():
    rng = np.random.default_rng(2)
    x = rng.normal(3, 2, 1000)
    found = mk.learn_structure(pd.DataFrame({"y": 0.7 * x + rng.normal(0, 0.5, 1000), "x": x}), "ges")
    network = found.fit()
    assert found.graph.undirected_edges()
    assert network.equivalence_class == found.graph
    with pytest.raises(NotIdentifiable, match="without a direction"):
        network.do(x=4.0)


def test_states_come_before_numbers_within_the_class():
    table = pd.DataFrame({"x": [0.1, 2.3, 0.4, 1.9, 2.2, 0.2], "g": ["u", "v", "u", "v", "v", "u"]})
    data = read_mixed(table, names=["x", "g"])
    found = LearnedStructure(MixedGraph(["x --- g"]), "by hand", data=data)
    network = found.fit()
    assert network.edges == [("g", "x")]
    assert network.equivalence_class == found.graph


def test_causal_questions_of_the_network_are_those_of_its_class(learned):
    known = learned.equivalence_class
    for x, y in product("abcdef", repeat=2):
        if x == y:
            continue
        sets = mk.causal.adjustment_sets(known, x, y)
        assert mk.causal.adjustment_sets(learned, x, y) == sets
        if sets:
            assert mk.causal.identify(learned, treatment=x, outcome=y).adjustment in sets
        else:
            with pytest.raises(NotIdentifiable):
                mk.causal.identify(learned, treatment=x, outcome=y)
    assert mk.causal.adjustment_sets(learned, "c", "d") == []
    assert mk.causal.adjustment_sets(learned.graph, "c", "d")


def test_what_would_have_been_and_equations_need_one_graph(learned):
    with pytest.raises(NotIdentifiable, match="what would have been"):
        learned.counterfactual("f", given={"d": 1}, do={"d": 0})
    with pytest.raises(NotIdentifiable, match="equations"):
        mk.StructuralModel.from_network(learned)
    with pytest.raises(NotIdentifiable, match="arrow"):
        mk.causal.arrow_strength(learned, "d")
    learned.equivalence_class = None
    assert learned.counterfactual("f", given={"d": 1}, do={"d": 0}) is not None


def test_a_second_intervention_is_refused_as_the_first_would_have_been(learned):
    once = learned.do(d=1)
    assert once.equivalence_class.undirected_edges() == learned.equivalence_class.undirected_edges()
    with pytest.raises(NotIdentifiable, match="c --- a"):
        once.do(a=0)


def test_names_copies_parts_and_files_keep_the_class(learned):
    before = learned.equivalence_class
    assert learned.copy().equivalence_class == before
    part = learned.subnetwork(["a", "c", "b"])
    assert {frozenset(e) for e in part.equivalence_class.undirected_edges()} == {
        frozenset("ca"),
        frozenset("cb"),
    }
    assert loads(dumps(learned, "json"), "json").equivalence_class == before
    learned.add("g", states=2, parents=["f"], p=[[0.3, 0.7], [0.6, 0.4]])
    learned.rename({"a": "first", "c": "third"})
    now = learned.equivalence_class
    assert {frozenset(e) for e in now.undirected_edges()} == {
        frozenset({"third", "b"}),
        frozenset({"third", "first"}),
    }
    assert ("f", "g") in now.directed_edges()
    learned.rename_states("first", ["x", "y", "z"])
    assert learned.equivalence_class == now


def test_an_edit_of_the_edges_takes_the_directions_as_they_stand(learned):
    other = learned.copy()
    learned.add_edge("e", "f")
    assert learned.equivalence_class is None
    other.replace("b", p=[0.4, 0.6], parents=[])
    assert other.equivalence_class is None


def test_a_class_that_the_network_is_no_member_of_is_refused(learned):
    for edges in (["c --- b"], ["b --> c", "c --- a", "e --> d", "a --> d", "d --> f"],
                  ["c --- b", "c --- a", "e --> d", "a --> d", "d <-> f"]):  # fmt: skip
        with pytest.raises(InvalidGraph, match="no member"):
            learned.equivalence_class = MixedGraph(edges, nodes="abcdef")


def test_a_file_with_an_undirected_pair_that_is_no_edge_says_where(learned):
    text = json.loads(dumps(learned, "json"))
    assert {frozenset(e) for e in text["undirected"]} == {frozenset("cb"), frozenset("ca")}
    for bad in (["b", "f"], ["b"], ["b", "nobody"], [1, 2]):
        text["undirected"][1] = bad
        with pytest.raises(ParseError, match=r"undirected\[1\]"):
            loads(json.dumps(text), "json")


def test_a_format_of_one_graph_warns_that_the_class_is_lost(learned):
    with pytest.warns(UserWarning, match="json keeps the class"):
        dumps(learned, "bif")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dumps(learned, "json")
    with pytest.warns(UserWarning, match="only the graph"):
        text = dumps(learned, "dagitty")
    assert loads(text, "dagitty") == learned.equivalence_class


def test_a_class_is_compared_and_drawn_without_the_arrows_that_nothing_settles(learned):
    assert mk.graphs.compare_graphs(learned, learned.equivalence_class).shd == 0
    assert mk.graphs.compare_graphs(learned, cpdag(learned.graph)).shd == 0
    text = mk.plotting.to_dot(learned)
    lines = {line.strip() for line in text.splitlines() if "arrowhead=none" in line}
    assert {line.split(" [")[0] for line in lines} <= {f'"{x}" -> "{y}"' for x in "abc" for y in "abc"}
    assert len(lines) == 2
    scene, _ = model_scene(learned)
    marks = {
        (scene.nodes[e.a].name, scene.nodes[e.b].name): (e.mark_a.value, e.mark_b.value) for e in scene.edges
    }
    assert sorted(marks.values()).count(("-", "-")) == 2
    assert marks["d", "f"] == ("-", ">")
