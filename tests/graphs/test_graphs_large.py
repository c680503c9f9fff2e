"""A hundred thousand nodes: linear work stays feasible and nothing recurses.

Work that has become quadratic would take hours here and so not go unnoticed.
"""

import pytest

from markovia.errors import CycleError
from markovia.graphs import (
    DAG,
    BipartiteGraph,
    MixedGraph,
    chain,
    cpdag,
    d_separated,
    extend,
    greedy_colouring,
    is_chordal,
    junction_tree,
    maximal_cliques_chordal,
    minimal_separator,
    open_trails,
    perfect_elimination_order,
    random_dag,
    random_tree,
    reachable,
    separated,
    star,
    to_directed,
)

N = 100_000
LAST = f"x{N - 1}"


@pytest.fixture(scope="module")
def long_chain() -> DAG:
    return chain(N, directed=True)


@pytest.fixture(scope="module")
def sparse() -> DAG:
    return random_dag(N, max_parents=3, seed=0)


@pytest.mark.slow
def test_a_long_chain(long_chain):
    assert long_chain.topological_order() == long_chain.nodes
    assert len(long_chain.ancestors(LAST)) == N - 1
    assert long_chain.moral_graph().n_edges == N - 1
    assert len(long_chain.connected_components()) == 1
    assert long_chain.is_tree()
    middle = f"x{N // 2}"
    for method in ("bayes-ball", "moral"):
        assert not d_separated(long_chain, "x0", LAST, method=method)
        assert d_separated(long_chain, "x0", LAST, given=middle, method=method)
    assert len(reachable(long_chain, "x0", given=middle)) == N // 2


@pytest.mark.slow
def test_a_sparse_random_graph(sparse):
    order = sparse.topological_order()
    assert order == sparse.nodes
    moral = sparse.moral_graph()
    assert moral.n_edges >= sparse.n_edges
    assert sum(map(len, sparse.connected_components())) == N
    z = [f"x{i}" for i in range(0, N, 7)][1:]
    z = [n for n in z if n not in ("x1", "x2")]
    assert d_separated(sparse, "x1", "x2", z) == d_separated(sparse, "x1", "x2", z, method="moral")
    assert sparse.copy() == sparse
    sparse.latent_projection(["x5"])


def test_a_cycle_of_all_nodes_is_reported():
    edges = [(f"x{i}", f"x{(i + 1) % N}") for i in range(N)]
    with pytest.raises(CycleError) as caught:
        DAG(edges)
    assert len(caught.value.cycle) == N + 1


def test_growing_a_chain_edge_by_edge_in_either_direction():
    forward, backward = DAG(), DAG()
    for i in range(20_000):
        forward.add_edge(f"x{i}", f"x{i + 1}")
        backward.add_edge(f"x{i + 1}", f"x{i}")
    assert forward.n_edges == backward.n_edges == 20_000
    with pytest.raises(CycleError):
        forward.add_edge("x20000", "x0")


@pytest.mark.slow
def test_editing_and_converting_a_large_graph(long_chain):
    g = long_chain.copy()
    g.remove_nodes([f"x{i}" for i in range(0, N, 2)])
    assert g.n_edges == 0
    assert len(DAG.from_parents({n: long_chain.parents(n) for n in long_chain})) == N
    assert len(MixedGraph.from_dag(long_chain)) == N


@pytest.mark.slow
def test_chordal_work_on_a_large_tree():
    n = N // 4
    tree = random_tree(n, seed=0)
    assert tree.is_tree()
    assert is_chordal(tree)
    assert len(maximal_cliques_chordal(tree)) == n - 1
    assert perfect_elimination_order(tree, last="x7")[-1] == "x7"
    jt = junction_tree(tree)
    assert jt.width == 1
    assert jt.has_running_intersection()
    assert not to_directed(tree).v_structures()
    assert separated(tree, "x0", f"x{n - 1}", given=tree.neighbors("x0"))
    assert max(greedy_colouring(tree).values()) == 1


@pytest.mark.slow
def test_hubs_are_not_quadratic():
    hub = star(N // 4)
    assert len(junction_tree(hub).cliques) == N // 4 - 1
    assert len(hub.maximal_cliques()) == N // 4 - 1
    naive = DAG([("class", f"x{i}") for i in range(N)])
    assert len(naive.markov_blanket("x5")) == 1
    assert d_separated(naive, "x5", "x9", given="class")
    assert minimal_separator(naive, "x5", "x9") == {"class"}
    assert BipartiteGraph([("class", f"x{i}") for i in range(N)]).is_tree()


@pytest.mark.slow
def test_equivalence_and_trails_on_a_large_chain(long_chain):
    completed = cpdag(chain(N // 4, directed=True))
    assert completed.directed_edges() == []
    assert extend(completed).n_edges == N // 4 - 1
    (trail,) = open_trails(long_chain, "x0", "x500")
    assert len(trail.nodes) == 501
