"""Region graphs: counting numbers, parents and children, join graphs, loops; relations and mini-buckets."""

from itertools import combinations, product

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.message_passing.cluster_tables import (
    Domain,
    Relation,
    maximal,
    mini_buckets,
    supports,
)
from markovia.inference.message_passing.region_graph import (
    bethe_regions,
    chordless_cycles,
    chosen_clusters,
    join_edges,
    region_graph,
    separators,
)
from model_strategies import random_case


def graph_of(model, given=None):
    return flat_graph(model._problem(given or {}, "junction-tree"))


def blocks_of(rows, columns):
    return [
        [(i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)] for i in range(rows - 1) for j in range(columns - 1)
    ]


def test_blocks_of_a_grid_have_kikuchis_counting_numbers():
    regions = region_graph([[f"{i}{j}" for i, j in block] for block in blocks_of(4, 4)])
    counts = {"".join(sorted(r, key=str)): c for r, c in zip(regions.regions, regions.counts, strict=True)}
    assert regions.n_outer == 9
    inner_edges = [c for r, c in zip(regions.regions, regions.counts, strict=True) if len(r) == 2]
    assert inner_edges == [-1] * 12
    assert {counts["11"], counts["12"], counts["21"], counts["22"]} == {1}
    for i, j in product(range(4), range(4)):
        assert regions.total([f"{i}{j}"]) == 1
    regions.check([["00", "01"], ["11", "21"]])


def test_the_region_graph_of_the_yedidia_freeman_weiss_example():
    # the 3x3 grid 123/456/789: four blocks, edges 25, 45, 56, 58 count -1, the centre counts 1
    regions = region_graph([[1, 2, 4, 5], [2, 3, 5, 6], [4, 5, 7, 8], [5, 6, 8, 9]])
    found = dict(zip(regions.regions, regions.counts, strict=True))
    assert {frozenset(e): -1 for e in ([2, 5], [4, 5], [5, 6], [5, 8])}.items() <= found.items()
    assert found[frozenset([5])] == 1
    assert len(found) == 9
    centre = regions.regions.index(frozenset([5]))
    assert {regions.regions[p] for p in regions.parents[centre]} == {
        frozenset(e) for e in ([2, 5], [4, 5], [5, 6], [5, 8])
    }
    assert all(centre in regions.children[p] for p in regions.parents[centre])


@pytest.mark.parametrize("seed", range(30))
def test_every_variable_and_every_cluster_counts_once(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    clusters = [rng.permutation(n)[: rng.integers(1, 5)].tolist() for _ in range(rng.integers(1, 9))]
    regions = region_graph(clusters)
    for cluster in clusters:
        for k in range(1, len(cluster) + 1):
            for inside in combinations(cluster, k):
                assert regions.total(inside) == 1
    for r, region in enumerate(regions.regions):
        above = [c for s, c in zip(regions.regions, regions.counts, strict=True) if region < s]
        assert regions.counts[r] == 1 - sum(above)


def test_a_factor_outside_all_clusters_is_refused():
    with pytest.raises(mk.errors.InvalidArgument, match=r"count .* 0 times"):
        region_graph([["a", "b"], ["b", "c"]]).check([["a", "c"]])


def test_bethe_regions_count_a_variable_one_less_its_factors():
    regions = bethe_regions(4, [[0, 1], [1, 2], [1, 3], [2, 3]])
    found = dict(zip(regions.regions, regions.counts, strict=True))
    assert found[frozenset([1])] == -2
    assert found[frozenset([2])] == found[frozenset([3])] == -1
    assert frozenset([0]) not in found
    regions.check([[0, 1], [2, 3]])
    assert sorted(s.counting for s in separators(regions)) == [-2, -1, -1]


def test_loops_are_found_without_chords_and_once_each():
    ring = [{(i - 1) % 6, (i + 1) % 6} for i in range(6)]
    assert chordless_cycles(ring, 6) == [(0, 1, 2, 3, 4, 5)]
    assert chordless_cycles(ring, 5) == []
    ring[0].add(3)
    ring[3].add(0)
    assert sorted(map(sorted, chordless_cycles(ring, 6))) == [[0, 1, 2, 3], [0, 3, 4, 5]]


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 4), (5, 5)])
def test_the_blocks_of_a_grid_are_detected(rows, columns):
    graph = graph_of(mk.generators.ising_grid(rows, columns, coupling=0.3))
    found = chosen_clusters(graph, "blocks", 4)
    assert len(found) == (rows - 1) * (columns - 1)
    assert all(len(c) == 4 for c in found)


def test_clusters_with_unknown_names_are_refused():
    graph = graph_of(mk.generators.ising_grid(2, 2, coupling=0.3))
    with pytest.raises(mk.errors.UnknownVariable):
        chosen_clusters(graph, [["nobody"]], 4)


@pytest.mark.parametrize("seed", range(25))
def test_each_variable_is_linked_to_a_tree_in_a_join_graph(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 10))
    scopes = [tuple(rng.permutation(n)[: rng.integers(1, 5)].tolist()) for _ in range(8)]
    links, _ = join_edges(scopes, rng.integers(1, 4, size=n).tolist())
    for i in range(n):
        holders = {c for c, s in enumerate(scopes) if i in s}
        mine = [link.clusters for link in links if i in link.scope]
        assert all(set(pair) <= holders for pair in mine)
        if holders:
            assert len(mine) == len(holders) - 1
            reached = {min(holders)}
            while more := {c for pair in mine if reached & set(pair) for c in pair} - reached:
                reached |= more
            assert reached == holders


@pytest.mark.parametrize("seed", range(40))
def test_unbounded_mini_buckets_are_a_junction_tree(seed):
    graph = graph_of(random_case(seed, max_entries=3000).model)
    order = np.random.default_rng(seed).permutation(len(graph.variables))
    domain = Domain(graph.cards, order)
    clusters, whole = mini_buckets(domain, supports(graph, domain), float("inf"))
    assert whole
    assert join_edges([c.scope for c in maximal(clusters)], domain.cards)[1]


@pytest.mark.parametrize("seed", range(40))
def test_joins_of_relations_equal_sets_of_configurations(seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr("markovia.inference.message_passing.cluster_tables.DIRECT", 4)
    rng = np.random.default_rng(seed)
    domain = Domain(rng.integers(1, 4, size=6), rng.permutation(6))

    def random_relation():
        scope = domain.sort(rng.permutation(6)[: rng.integers(1, 5)].tolist())
        keep = rng.random(domain.space(scope)) < 0.6
        keys = np.flatnonzero(keep)
        return Relation(scope, None if keep.all() else keys, len(keys))

    def configurations(relation):
        keys = np.arange(relation.size) if relation.keys is None else relation.keys
        steps = domain.strides(relation.scope)
        return {
            tuple(sorted((i, int(k) // steps[i] % domain.cards[i]) for i in relation.scope)) for k in keys
        }

    a, b = random_relation(), random_relation()
    joined = domain.joined(a, b, float("inf"))
    merged = {
        tuple(sorted({**dict(x), **dict(y)}.items()))
        for x in configurations(a)
        for y in configurations(b)
        if all(dict(x).get(i, s) == s for i, s in y)
    }
    assert configurations(joined) == merged
    assert joined.size == len(merged)
    if len(joined.scope) > 1:
        last = joined.scope[-1]
        shorter = {tuple(p for p in x if p[0] != last) for x in merged}
        assert configurations(domain.without_last(joined)) == shorter


def test_mini_buckets_respect_their_bound():
    graph = graph_of(mk.generators.ising_grid(6, 6, coupling=0.3))
    domain = Domain(graph.cards, np.arange(36))
    for bound in (4, 16, 64):
        clusters, whole = mini_buckets(domain, supports(graph, domain), bound)
        assert max(c.size for c in clusters) == bound
        assert not whole
