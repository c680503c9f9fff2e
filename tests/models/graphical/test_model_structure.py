"""Treewidth, elimination orders and junction trees of models, against networkx and against all orders."""

import re
from itertools import combinations, permutations
from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st
from networkx.algorithms.approximation import treewidth_min_fill_in

import markovia as mk
from markovia.graphs import UndirectedGraph, cycle, grid, treewidth_of_order, triangulate
from markovia.graphs.triangulation.treewidth import exact_treewidth
from markovia.models.graphical import exact_cost

HEURISTICS = ["min-degree", "min-fill", "min-weight", "weighted-min-fill"]
seeds = st.integers(0, 2**32 - 1)


def random_model(seed, most=10):
    """Return a Bayesian network, a Markov network or a factor graph, possibly in several parts."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    cards = {f"x{i}": int(c) for i, c in enumerate(rng.integers(1, 4, size=n))}
    if seed % 3 == 0:
        bn = mk.BayesianNetwork()
        for i, (name, card) in enumerate(cards.items()):
            parents = [f"x{j}" for j in rng.permutation(i)[: rng.integers(0, 4)]]
            bn.add(name, states=card, parents=parents, p="uniform")
        return bn
    scopes = [[f"x{i}" for i in rng.permutation(n)[: rng.integers(1, min(3, n) + 1)]] for _ in range(n)]
    factors = [
        mk.Factor([mk.Variable(v, range(cards[v])) for v in s], rng.random([cards[v] for v in s]) + 0.1)
        for s in scopes
    ]
    mn = mk.MarkovNetwork(cards, factors)
    return mn if seed % 3 == 1 else mn.to_factor_graph()


def moral(model):
    graph = nx.Graph()
    graph.add_nodes_from(model.variables)
    for piece in model.pieces():
        graph.add_edges_from(combinations(piece.names, 2))
    return graph


def filled(graph, order):
    """Return the graph with the edges that eliminating in this order adds."""
    left, full = graph.copy(), graph.copy()
    for node in order:
        new = list(combinations(left.neighbors(node), 2))
        left.add_edges_from(new)
        full.add_edges_from(new)
        left.remove_node(node)
    return full


@pytest.fixture(params=[False, True], ids=["greedy", "searched"])
def kernels(request, monkeypatch):
    """Look with the Python heuristics, and with the compiled search."""
    monkeypatch.setattr(exact_cost, "kernels_loaded", lambda: request.param)
    monkeypatch.setattr(exact_cost, "kernels_on_disk", lambda: request.param)
    return request.param


# -- elimination orders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heuristic", [*HEURISTICS, "auto"])
@sampled(seed=seeds)
@settings(max_examples=40)
def test_an_order_names_every_variable_once_and_leaves_out_what_is_observed(heuristic, seed):
    model = random_model(seed)
    assert sorted(model.elimination_order(heuristic)) == sorted(model.variables)
    rng = np.random.default_rng(seed)
    observed = rng.permutation(model.variables)[: len(model) // 2].tolist()
    rest = set(model.variables) - set(observed)
    assert set(model.elimination_order(heuristic, given=observed)) == rest
    given = {n: model.states(n)[0] for n in observed}
    assert model.elimination_order(heuristic, given=given) == model.elimination_order(
        heuristic, given=observed
    )


@sampled(seed=seeds)
@settings(max_examples=40)
def test_a_named_heuristic_is_that_of_the_graph_and_auto_is_the_best_of_them(seed):
    model = random_model(seed)
    graph = UndirectedGraph.from_cliques([p.names for p in model.pieces()], nodes=model.variables)
    weights = {n: len(model.states(n)) for n in model.variables}
    graph = UndirectedGraph(graph.edges, nodes=model.variables)
    totals = []
    for heuristic in HEURISTICS:
        order = model.elimination_order(heuristic)
        assert order == triangulate(graph, heuristic, weights=weights).order
        totals.append(table_entries(graph, order, weights))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_cost, "kernels_loaded", lambda: False)
        assert table_entries(graph, model.elimination_order(), weights) == min(totals)
        patch.setattr(exact_cost, "kernels_loaded", lambda: True)
        plan = mk.engines.JunctionTree().plan(model._problem(None))
        assert model.elimination_order() == [model.variables[i] for i in plan.order]


def table_entries(graph, order, weights):
    return sum(prod(weights[n] for n in c) for c in mk.graphs.elimination_cliques(graph, order))


def test_soft_evidence_does_not_take_a_variable_out():
    bn = mk.examples.asia()
    given = {"xray": [0.9, 0.2], "dysp": mk.Not("no"), "smoke": "yes"}
    order = bn.elimination_order("min-fill", given=given)
    assert {"xray", "dysp"} <= set(order)
    assert "smoke" not in order


def test_orders_are_what_variable_elimination_and_the_junction_tree_take():
    bn = mk.examples.asia()
    order = bn.elimination_order("min-weight")
    expected = bn.query("lung", engine="enumeration")
    for engine in (mk.engines.JunctionTree(order=order), mk.engines.VariableElimination(order=order)):
        assert bn.query("lung", engine=engine).allclose(expected)


@pytest.mark.parametrize(
    ("ask", "error", "text"),
    [
        (
            lambda m: m.elimination_order("min-file"),
            mk.errors.InvalidArgument,
            "unknown order heuristic 'min-file'",
        ),
        (lambda m: m.junction_tree("best"), mk.errors.InvalidArgument, "unknown order heuristic 'best'"),
        (lambda m: m.elimination_order(given=["smok"]), mk.errors.UnknownVariable, "did you mean 'smoke'"),
        (
            lambda m: m.elimination_order(given={"smoke": "maybe"}),
            mk.errors.UnknownState,
            "unknown state 'maybe'",
        ),
        (
            lambda m: m.junction_tree(order=["smoke"]),
            mk.errors.InvalidArgument,
            "every node once; it lacks asia",
        ),
        (lambda m: m.junction_tree(order=["smok"]), mk.errors.UnknownVariable, "did you mean 'smoke'"),
        (lambda m: m.elimination_order(evidence={}), mk.errors.UnknownArgument, "it is given= here"),
    ],
)
def test_bad_requests_say_what_is_wrong(ask, error, text):
    with pytest.raises(error, match=re.escape(text)):
        ask(mk.examples.asia())


# -- junction trees ----------------------------------------------------------------------------------------------


def check_junction_tree(model, tree, full):
    """Compare with networkx: maximal cliques of a chordal completion, and a maximum spanning tree of them."""
    assert nx.is_chordal(full)
    assert {frozenset(c) for c in tree.cliques} == {frozenset(c) for c in nx.find_cliques(full)}
    assert len(tree.edges) == len(tree.cliques) - 1
    assert tree.has_running_intersection()
    joined = nx.Graph()
    joined.add_nodes_from(range(len(tree.cliques)))
    for a, b in combinations(joined.nodes, 2):
        joined.add_edge(a, b, weight=len(set(tree.cliques[a]) & set(tree.cliques[b])))
    heaviest = nx.maximum_spanning_tree(joined).size(weight="weight")
    assert sum(map(len, tree.separators)) == heaviest
    own = nx.Graph(tree.edges)
    for name in model.variables:
        holding = [k for k, c in enumerate(tree.cliques) if name in c]
        assert len(holding) == 1 or nx.is_connected(own.subgraph(holding))
    assert tree.width == max(map(len, tree.cliques)) - 1
    assert tree.total_entries() == sum(prod(len(model.states(n)) for n in c) for c in tree.cliques)
    for piece in model.pieces():
        assert set(piece.names) <= set(tree.cliques[tree.home(piece.names)])


@sampled(seed=seeds)
@settings(max_examples=60)
def test_a_junction_tree_of_an_order_has_the_cliques_of_its_filled_graph(seed):
    model = random_model(seed)
    order = np.random.default_rng(seed).permutation(model.variables).tolist()
    check_junction_tree(model, model.junction_tree(order=order), filled(moral(model), order))


@pytest.mark.parametrize("heuristic", [*HEURISTICS, "auto"])
@sampled(seed=seeds)
@settings(max_examples=30)
def test_a_junction_tree_is_a_maximum_spanning_tree_of_maximal_cliques(heuristic, seed):
    model = random_model(seed)
    graph = moral(model)
    tree = model.junction_tree(heuristic)
    full = graph if nx.is_chordal(graph) else filled(graph, model.elimination_order(heuristic))
    check_junction_tree(model, tree, full)


def test_the_junction_tree_of_the_chest_clinic_is_the_published_one(kernels):
    tree = mk.examples.asia().junction_tree()
    assert tree.width == 2
    assert tree.total_entries() == 40
    assert {frozenset(c) for c in tree.cliques} >= {
        frozenset(c)
        for c in (
            ["asia", "tub"],
            ["tub", "lung", "either"],
            ["either", "xray"],
            ["bronc", "either", "dysp"],
        )
    }


def test_models_in_parts_and_empty_models_have_trees(kernels):
    parts = mk.BayesianNetwork("a->b; c->d", tables="uniform")
    tree = parts.junction_tree()
    assert tree.cliques == (("a", "b"), ("c", "d"))
    assert tree.separators == ((),)
    empty = mk.BayesianNetwork()
    assert (empty.treewidth(), empty.elimination_order(), empty.junction_tree().cliques) == (0, [], ())
    assert empty.junction_tree().total_entries() == 0


def test_networks_without_tables_are_looked_at_too(kernels):
    bn = mk.BayesianNetwork("a->c<-b; c->d")
    assert bn.treewidth() == 2
    assert sorted(bn.elimination_order()) == ["a", "b", "c", "d"]
    assert {frozenset(c) for c in bn.junction_tree().cliques} == {frozenset("abc"), frozenset("cd")}


def test_looking_at_a_tree_does_not_change_the_model():
    mn = mk.examples.misconception()
    before = mn.undirected_graph
    mn.junction_tree()
    mn.elimination_order(given=["A"])
    assert mn.undirected_graph == before


def test_a_junction_tree_plots_itself():
    tree = mk.examples.asia().junction_tree("min-fill")
    axes = tree.plot(title="asia")
    texts = {t.get_text().replace("\n", " ") for t in axes.texts}
    assert {", ".join(c) for c in tree.cliques} <= texts
    assert {", ".join(s) for s in tree.separators} <= texts
    assert axes.get_title() == "asia"


def test_a_tree_of_a_graph_needs_the_numbers_of_states():
    tree = mk.graphs.junction_tree(cycle(4))
    with pytest.raises(mk.errors.InvalidArgument, match="needs the number of states"):
        tree.total_entries()
    names = sorted({n for c in tree.cliques for n in c})
    with pytest.raises(mk.errors.InvalidArgument, match=f"lacks the number of states of '{names[0]}'"):
        tree.total_entries(dict.fromkeys(names[1:], 2))
    assert tree.total_entries(dict.fromkeys(names, 3)) == 54
    assert mk.graphs.junction_tree(cycle(4), states=dict.fromkeys(names, 3)) == tree


# -- treewidth ---------------------------------------------------------------------------------------------------


def random_graph(rng, most):
    n = int(rng.integers(1, most + 1))
    names = [f"v{i}" for i in range(n)]
    density = rng.random()
    return UndirectedGraph([e for e in combinations(names, 2) if rng.random() < density], nodes=names)


@sampled(seed=seeds)
@settings(max_examples=60)
def test_the_proved_treewidth_is_the_least_width_of_all_orders(seed):
    graph = random_graph(np.random.default_rng(seed), 6)
    least = min(treewidth_of_order(graph, order) for order in permutations(graph.nodes))
    assert exact_treewidth(graph) == least
    assert exact_treewidth(graph, at_most=least) == least


@sampled(seed=seeds)
@settings(max_examples=40)
def test_the_width_found_is_a_bound_that_no_order_of_networkx_beats_by_proof(seed):
    model = random_model(seed, 12)
    width = model.treewidth()
    proved = model.treewidth(exact=True)
    assert proved <= width
    assert proved <= max(treewidth_min_fill_in(moral(model))[0], 0)
    assert width <= max(
        treewidth_of_order(UndirectedGraph.from_networkx(moral(model)), model.elimination_order("min-fill")),
        0,
    )
    if nx.is_chordal(moral(model)):
        assert width == proved == max(map(len, nx.find_cliques(moral(model)))) - 1


@pytest.mark.parametrize(("rows", "columns"), [(2, 7), (3, 6), (4, 5), (5, 5)])
def test_a_grid_is_as_wide_as_its_shorter_side(rows, columns, kernels):
    model = mk.generators.ising_grid(rows, columns, coupling=0.3)
    assert model.treewidth() >= rows
    assert model.treewidth(exact=True) == rows


def test_known_graphs_have_their_treewidth(kernels):
    petersen = nx.relabel_nodes(nx.petersen_graph(), str)
    assert exact_treewidth(UndirectedGraph.from_networkx(petersen)) == 4
    assert exact_treewidth(cycle(9)) == 2
    assert exact_treewidth(mk.graphs.complete(7)) == 6
    for width in (1, 3, 5):
        assert exact_treewidth(mk.graphs.random_k_tree(14, width, seed=width)) == width
    assert mk.generators.random_tree_network(50, seed=0).treewidth() == 1


def test_a_proof_that_takes_too_long_is_given_up_with_bounds():
    with pytest.raises(
        mk.errors.TooLarge, match=r"between \d+ and 7; proving it takes more than 1,000 steps"
    ):
        exact_treewidth(grid(7, 7), at_most=7, max_steps=1000)
