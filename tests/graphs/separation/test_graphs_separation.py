"""Separation in directed and undirected graphs, trails, and separating sets."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument, InvalidGraph, UnknownVariable
from markovia.graphs import (
    DAG,
    UndirectedGraph,
    all_minimal_separators,
    d_separated,
    grid,
    is_active,
    minimal_separator,
    open_trails,
    reachable,
    separated,
    trails,
)

ASIA = DAG(
    [
        ("asia", "tub"),
        ("smoke", "lung"),
        ("smoke", "bronc"),
        ("tub", "either"),
        ("lung", "either"),
        ("either", "xray"),
        ("either", "dysp"),
        ("bronc", "dysp"),
    ]
)


@st.composite
def dags(draw: st.DrawFn, smallest: int = 2, largest: int = 6) -> DAG:
    n = draw(st.integers(smallest, largest))
    names = [f"n{i}" for i in range(n)]
    pairs = list(combinations(names, 2))
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    return DAG([pair for k, pair in enumerate(pairs) if bits >> k & 1], nodes=draw(st.permutations(names)))


@st.composite
def questions(draw: st.DrawFn, names: list[str]) -> tuple[list[str], list[str], list[str]]:
    roles = draw(st.lists(st.sampled_from("xyz-"), min_size=len(names), max_size=len(names)))
    return tuple([n for n, r in zip(names, roles, strict=True) if r == role] for role in "xyz")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_three_methods_and_networkx_agree_on_random_graphs(data):
    g = data.draw(dags())
    x, y, z = data.draw(questions(g.nodes))
    answers = {m: d_separated(g, x, y, z, method=m) for m in ("bayes-ball", "moral", "trails")}
    expected = nx.is_d_separator(g.to_networkx(), set(x), set(y), set(z)) if x and y else True
    assert set(answers.values()) == {expected}, answers


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_verdict_of_pyagrum_is_the_same(data):
    gum = pytest.importorskip("pyagrum")
    g = data.draw(dags())
    a, b = g.nodes[:2]
    z = data.draw(st.lists(st.sampled_from(g.nodes[2:]), unique=True)) if len(g) > 2 else []
    bn = gum.BayesNet()
    for name in g:
        bn.add(gum.LabelizedVariable(name, name, 2))
    for tail, head in g.edges:
        bn.addArc(tail, head)
    assert d_separated(g, a, b, z) == bn.isIndependent(a, b, z)


@settings(deadline=None)
@given(st.data())
def test_reachable_is_what_is_not_separated(data):
    g = data.draw(dags())
    x = g.nodes[0]
    z = data.draw(st.lists(st.sampled_from(g.nodes[1:]), unique=True))
    expected = {n for n in g if n not in z and (n == x or not d_separated(g, x, n, z, method="moral"))}
    assert reachable(g, x, z) == expected


@pytest.mark.parametrize("method", ["bayes-ball", "moral", "trails"])
def test_chain_fork_and_collider(method):
    cascade = DAG([("x", "y"), ("y", "z")])
    fork = DAG([("y", "x"), ("y", "z")])
    collider = DAG([("x", "y"), ("z", "y"), ("y", "w")])
    for g in (cascade, fork):
        assert not d_separated(g, "x", "z", method=method)
        assert d_separated(g, "x", "z", "y", method=method)
    assert d_separated(collider, "x", "z", method=method)
    assert not d_separated(collider, "x", "z", "y", method=method)
    assert not d_separated(collider, "x", "z", "w", method=method)


@pytest.mark.parametrize("method", ["bayes-ball", "moral", "trails"])
def test_rules_for_overlapping_sets(method):
    g = DAG([("a", "b"), ("b", "c")])
    assert not d_separated(g, "a", "a", method=method)
    assert not d_separated(g, ["a", "b"], ["b", "c"], method=method)
    assert d_separated(g, "a", "a", given="a", method=method)
    assert d_separated(g, ["a", "b"], ["b", "c"], given="b", method=method)
    assert d_separated(g, "b", "c", given="b", method=method)
    assert d_separated(g, [], "c", method=method)
    assert d_separated(g, (n for n in "a"), (n for n in "c"), (n for n in "b"), method=method)


def test_bad_questions_are_refused():
    for method in ("bayes-ball", "moral", "trails"):
        with pytest.raises(UnknownVariable, match="did you mean 'smoke'"):
            d_separated(ASIA, "smokes", "lung", method=method)
        with pytest.raises(UnknownVariable):
            d_separated(ASIA, "smoke", "lung", given="nope", method=method)
    with pytest.raises(InvalidArgument, match="bayes-ball"):
        d_separated(ASIA, "smoke", "lung", method="magic")
    with pytest.raises(UnknownVariable):
        separated(grid(2, 2), "x0_0", "x9_9")


def test_a_three_by_three_grid_separates_rows():
    g = grid(3, 3)
    y = [f"x{r}_{c}" for r in range(3) for c in range(3)]
    rest = [n for n in y if n not in (y[0], y[1], y[3])]
    assert separated(g, y[0], rest, given=[y[1], y[3]])
    assert separated(g, y[0], y[2], given=[n for n in y if n not in (y[0], y[2])])
    assert separated(g, y[:3], y[6:], given=y[3:6])
    assert not separated(g, y[:3], y[6:], given=y[3:5])
    assert not separated(g, "x0_0", ["x0_0", "x2_2"])


@settings(deadline=None)
@given(st.data())
def test_undirected_separation_agrees_with_removing_nodes(data):
    g = data.draw(dags()).skeleton()
    x, y, z = data.draw(questions(g.nodes))
    rest = g.to_networkx()
    rest.remove_nodes_from(z)
    assert separated(g, x, y, z) == (not any(nx.has_path(rest, a, b) for a in x for b in y))


def test_an_open_trail_says_why():
    (trail,) = open_trails(ASIA, "asia", "xray")
    assert str(trail) == "asia -> tub -> either -> xray"
    assert [j.kind for j in trail.junctions] == ["chain", "chain"]
    assert trail.arrows == ("->", "->", "->")
    (opened,) = open_trails(ASIA, "tub", "smoke", given=["xray", "bronc"])
    assert str(opened) == "tub -> either <- lung <- smoke"
    assert [(j.node, j.kind, j.witness) for j in opened.junctions] == [
        ("either", "collider", "xray"),
        ("lung", "chain", None),
    ]
    assert "above the observed xray" in opened.explain()
    assert opened.blocked_by == []


def test_a_blocked_trail_says_where():
    found = {str(t): t for t in trails(ASIA, "tub", "smoke", given="lung")}
    assert found["tub -> either <- lung <- smoke"].blocked_by == ["either", "lung"]
    long = found["tub -> either -> dysp <- bronc <- smoke"]
    assert long.blocked_by == ["dysp"]
    assert "neither it nor a descendant is observed: blocked" in long.explain()
    end = trails(ASIA, "asia", "tub", given="tub")[0]
    assert end.blocked_by == ["tub"]
    assert not end.is_open
    assert "tub is an end and observed" in end.explain()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_open_trails_are_exactly_the_open_ones_among_all_simple_paths(data):
    g = data.draw(dags())
    x, y = g.nodes[:2]
    z = data.draw(st.lists(st.sampled_from(g.nodes), unique=True))
    paths = {tuple(p) for p in nx.all_simple_paths(g.to_networkx().to_undirected(), x, y)}
    every = trails(g, x, y, z, limit=10_000)
    assert {t.nodes for t in every} == paths
    assert len(every) == len(paths)
    assert [len(t.nodes) for t in every] == sorted(len(t.nodes) for t in every)
    open_ones = open_trails(g, x, y, z, limit=10_000)
    assert {t.nodes for t in open_ones} == {t.nodes for t in every if t.is_open}
    assert [len(t.nodes) for t in open_ones] == sorted(len(t.nodes) for t in open_ones)
    for t in every:
        assert is_active(g, t, z) == is_active(g, t.nodes, z) == t.is_open == _is_open(g, t.nodes, set(z))


def _is_open(g: DAG, path: tuple[str, ...], z: set[str]) -> bool:
    if path[0] in z or path[-1] in z:
        return False
    for a, b, c in zip(path, path[1:], path[2:], strict=False):
        if g.has_edge(a, b) and g.has_edge(c, b):
            if not z & g.descendants(b, include_self=True):
                return False
        elif b in z:
            return False
    return True


def test_the_limit_bounds_the_number_of_trails_even_where_there_are_exponentially_many():
    layers = [f"l{i}_{k}" for i in range(30) for k in range(3)]
    g = DAG(
        [(f"l{i}_{j}", f"l{i + 1}_{k}") for i in range(29) for j in range(3) for k in range(3)], nodes=layers
    )
    found = open_trails(g, "l0_0", "l29_0", limit=5)
    assert len(found) == 5
    assert {len(t.nodes) for t in found} == {30}
    assert open_trails(g, "l0_0", "l29_0", limit=0) == []


def test_what_is_not_a_trail_is_refused():
    with pytest.raises(InvalidArgument, match="twice"):
        open_trails(ASIA, "asia", "asia")
    with pytest.raises(InvalidGraph, match="not adjacent"):
        is_active(ASIA, ["asia", "xray"])
    with pytest.raises(InvalidGraph, match="different nodes"):
        is_active(ASIA, ["asia", "tub", "asia"])
    with pytest.raises(UnknownVariable):
        open_trails(ASIA, "asia", "xrays")


def _is_separator(g: DAG | UndirectedGraph, x: str, y: str, z: set[str]) -> bool:
    return d_separated(g, x, y, z) if isinstance(g, DAG) else separated(g, x, y, z)


def _brute_force_minimal(g: DAG | UndirectedGraph, x: str, y: str, allowed: list[str]) -> list[set[str]]:
    good = [
        set(z)
        for k in range(len(allowed) + 1)
        for z in combinations(allowed, k)
        if _is_separator(g, x, y, set(z))
    ]
    return [z for z in good if not any(other < z for other in good)]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_minimal_separators_agree_with_brute_force(data):
    dag = data.draw(dags())
    for g in (dag, dag.skeleton()):
        x, y, *others = g.nodes
        within = data.draw(st.none() | st.lists(st.sampled_from(g.nodes), unique=True))
        allowed = [n for n in others if within is None or n in within]
        expected = _brute_force_minimal(g, x, y, allowed)
        one = minimal_separator(g, x, y, within=within)
        assert (one is None) == (not expected)
        assert one is None or one in expected
        found = all_minimal_separators(g, x, y, within=within)
        assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
        assert [len(s) for s in found] == sorted(len(s) for s in found)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_separator_with_required_nodes_is_minimal_among_those_that_contain_them(data):
    g = data.draw(dags(smallest=3))
    x, y, *others = g.nodes
    required = set(data.draw(st.lists(st.sampled_from(others), unique=True)))
    good = [
        z
        for k in range(len(others) + 1)
        for z in map(set, combinations(others, k))
        if required <= z and d_separated(g, x, y, z)
    ]
    found = minimal_separator(g, x, y, including=required)
    assert (found is None) == (not good)
    assert found is None or (found in good and not any(z < found for z in good))


def test_separating_a_set_from_itself_is_refused():
    with pytest.raises(InvalidArgument, match="share 'lung'"):
        minimal_separator(ASIA, ["lung", "tub"], "lung")
    with pytest.raises(InvalidArgument, match="including"):
        minimal_separator(ASIA, "lung", "asia", including="lung")


def test_observing_a_collider_does_not_separate():
    assert all_minimal_separators(ASIA, "asia", "dysp", largest=1) == [{"tub"}]
    assert {"either", "bronc"} in all_minimal_separators(ASIA, "asia", "dysp")


def test_semi_supervised_examples():
    # labels y independent of the inputs' parameters only if x causes y
    causal = DAG([("pi", "x"), ("x", "y"), ("w", "y")])
    generative = DAG([("theta", "y"), ("y", "x"), ("theta", "x")])
    assert d_separated(causal, "pi", "w", given="x")
    assert not d_separated(generative, "theta", "y", given="x")
