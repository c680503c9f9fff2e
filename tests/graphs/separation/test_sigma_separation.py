"""Sigma- and d-separation of graphs with cycles against their definitions, path by path."""

from itertools import combinations, pairwise, permutations, product

import networkx as nx
import numpy as np
import pytest

from markovia.errors import InvalidGraph
from markovia.graphs import DAG, Mark, MixedGraph, d_separated, sigma_separated


def blocked(graph, x, y, given, sigma):
    """Say by the definition whether every path is blocked."""
    directed = nx.DiGraph(graph.directed_edges())
    directed.add_nodes_from(graph.nodes)
    loop = {v: k for k, part in enumerate(nx.strongly_connected_components(directed)) for v in part}
    above = set(given).union(*(nx.ancestors(directed, v) for v in given))
    inner = [v for v in graph.nodes if v not in (x, y)]
    for path in ((x, *m, y) for k in range(len(inner) + 1) for m in permutations(inner, k)):
        for marks in product(*(graph.marks(u, v) for u, v in pairwise(path))):
            middle = zip(path, path[1:], path[2:], marks, marks[1:], strict=False)
            if all(is_open(*part, loop, above, given, sigma) for part in middle):
                return False
    return True


def is_open(u, v, w, before, after, loop, above, given, sigma):
    arrives, leaves = before[1], after[0]
    if arrives is Mark.ARROW and leaves is Mark.ARROW:
        return v in above
    if v not in given:
        return True
    outwards = (arrives is Mark.TAIL and loop[u] != loop[v]) or (leaves is Mark.TAIL and loop[w] != loop[v])
    return sigma and not outwards


def test_both_separations_agree_with_their_definitions_on_graphs_with_cycles():
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(25):
        names = [*"abcd"]
        edges = [f"{u} --> {v}" for u, v in permutations(names, 2) if rng.random() < 0.15]
        edges += [f"{u} <-> {v}" for u, v in combinations(names, 2) if rng.random() < 0.1]
        graph = MixedGraph(["a --> b", "b --> c", "c --> b", "d --> c", *edges], nodes=names)
        for x, y in combinations(names, 2):
            rest = [v for v in names if v not in (x, y)]
            for given in (c for k in range(3) for c in combinations(rest, k)):
                weak, strong = sigma_separated(graph, x, y, given), graph.m_separated(x, y, given)
                assert weak == blocked(graph, x, y, given, sigma=True)
                assert strong == blocked(graph, x, y, given, sigma=False)
                assert strong >= weak
                differ += weak != strong
    assert differ >= 5


def test_without_cycles_it_is_d_separation_and_bad_edges_are_refused():
    rng = np.random.default_rng(1)
    names = [*"abcdef"]
    for _ in range(10):
        dag = DAG([e for e in combinations(names, 2) if rng.random() < 0.4], nodes=names)
        for x, y in combinations(names, 2):
            given = [v for v in names if v not in (x, y) and rng.random() < 0.4]
            assert sigma_separated(dag, x, y, given) == d_separated(dag, x, y, given)
    assert not sigma_separated(dag, "a", "a")
    assert sigma_separated(dag, "a", "a", given="a")
    for edge in ("a --- b", "a o-> b"):
        with pytest.raises(InvalidGraph, match="directed and bidirected"):
            sigma_separated(MixedGraph([edge]), "a", "b")
