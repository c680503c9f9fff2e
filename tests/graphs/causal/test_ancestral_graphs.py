"""Maximal ancestral graphs against d-separation given the selected nodes, for every set, on random graphs."""

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs import DAG, MixedGraph, d_separated, inducing_path, maximal_ancestral_graph


def subsets(names):
    return [c for k in range(len(names) + 1) for c in combinations(names, k)]


def random_case(rng, n=8):
    names = [str(v) for v in rng.permutation([f"v{i}" for i in range(n)])]
    dag = DAG([(a, b) for a, b in combinations(names, 2) if rng.random() < 0.3], nodes=names)
    chosen = int(rng.integers(0, 3))
    role = rng.permutation(["latent"] * 2 + ["selected"] * chosen + ["seen"] * (n - 2 - chosen))
    return dag, *(
        [v for v, r in zip(names, role, strict=True) if r == kind] for kind in ("latent", "selected", "seen")
    )


def test_m_separation_is_d_separation_given_the_selected_nodes_for_every_set():
    rng = np.random.default_rng(3)
    undirected = bidirected = 0
    for _ in range(60):
        dag, latent, selected, seen = random_case(rng)
        mag = maximal_ancestral_graph(dag, latent, selected)
        assert mag.is_mag()
        assert set(mag.nodes) == set(seen)
        undirected += len(mag.undirected_edges())
        bidirected += len(mag.bidirected_edges())
        for a, b in combinations(seen, 2):
            for given in subsets([v for v in seen if v not in (a, b)]):
                assert mag.m_separated(a, b, given) == d_separated(dag, a, b, [*given, *selected])
    assert min(undirected, bidirected) > 10  # both kinds of edge were met


def test_an_edge_stands_for_an_inducing_path_whose_inner_nodes_are_latent_or_ancestral_colliders():
    rng = np.random.default_rng(4)
    lengths = set()
    for _ in range(60):
        dag, latent, selected, seen = random_case(rng, 6)
        mag = maximal_ancestral_graph(dag, latent, selected)
        for a, b in combinations(seen, 2):
            path = inducing_path(dag, a, b, latent, selected)
            inner = [v for v in dag if v not in (a, b)]
            routes = [(a, *m, b) for k in range(5) for m in permutations(inner, k)]
            every = [route for route in routes if induces(dag, route, latent, selected)]
            assert bool(path) == bool(every) == mag.adjacent(a, b)
            if path:
                assert tuple(path) in every
                assert len(path) == len(every[0])
                lengths.add(len(path))
    assert max(lengths) >= 4


def induces(dag, path, latent, selected):
    """Say by the definition whether a sequence of nodes is an inducing path."""
    if any(not dag.has_edge(u, v) and not dag.has_edge(v, u) for u, v in pairwise(path)):
        return False
    above = dag.ancestors([path[0], path[-1], *selected], include_self=True)
    return all(
        v in above if dag.has_edge(u, v) and dag.has_edge(w, v) else v in latent
        for u, v, w in zip(path, path[1:], path[2:], strict=False)
    )


def test_hiding_in_two_steps_and_an_ancestral_graph_that_is_not_maximal():
    rng = np.random.default_rng(5)
    for _ in range(20):
        dag, latent, selected, _ = random_case(rng)
        at_once = maximal_ancestral_graph(dag, latent, selected)
        assert maximal_ancestral_graph(maximal_ancestral_graph(dag, latent), selected=selected) == at_once
        assert maximal_ancestral_graph(maximal_ancestral_graph(dag, selected=selected), latent) == at_once
        assert maximal_ancestral_graph(dag.latent_projection(latent), selected=selected) == at_once
    # no set separates a from d, although they are not adjacent: the missing edge is bidirected
    gap = MixedGraph(["a <-> b", "b <-> c", "c <-> d", "b --> d", "c --> a"])
    assert gap.is_ancestral()
    assert not gap.is_mag()
    assert maximal_ancestral_graph(gap) == MixedGraph([*gap.edges, "a <-> d"])


def test_roles_of_a_text_are_read_and_bad_questions_are_one_sentence():
    text = "dag { u [latent]; s [selected]; u -> {a b}; {b c} -> s }"
    assert maximal_ancestral_graph(text) == MixedGraph(["b --> a", "b --- c"])
    assert maximal_ancestral_graph("a -> b <- c") == MixedGraph(["a --> b", "c --> b"])
    with pytest.raises(InvalidArgument, match="both latent and selected"):
        maximal_ancestral_graph(text, latent="s")
    with pytest.raises(InvalidArgument, match="two observed nodes"):
        inducing_path(text, "a", "u")
    with pytest.raises(InvalidGraph, match="directed cycle"):
        maximal_ancestral_graph(MixedGraph(["a --> b", "b --> c", "c --> a"]))
    with pytest.raises(InvalidGraph, match="circle"):
        maximal_ancestral_graph(MixedGraph(["a o-> b"]))
    with pytest.raises(mk.errors.UnknownVariable):
        maximal_ancestral_graph(text, latent="q")
