"""Annealed orders: their trees stay trees of buckets, move for move, plain and compiled."""

import numpy as np
import pytest

from markovia.graphs.triangulation.elimination import follow
from markovia.inference.exact import long_order_search as search
from markovia.kernels.clique_trees.annealing_records import BEST, DONE, TOTAL
from markovia.kernels.clique_trees.order_annealing import anneal
from markovia.kernels.plain_code import plain_code


def random_graph(seed, n=14, edges=30):
    rng = np.random.default_rng(seed)
    adjacency = [set() for _ in range(n)]
    for _ in range(edges):
        a, b = rng.choice(n, 2, replace=False)
        adjacency[a].add(int(b))
        adjacency[b].add(int(a))
    return adjacency, rng.integers(2, 5, n), rng.integers(0, 2, n)


def start(adjacency, card, stage, limit=np.inf):
    """An annealing from the order of the numbers, the first stage in front."""
    order = np.argsort(stage, kind="stable")
    return search._annealing(adjacency, card, stage, order, search.OrderCost(limit=limit)).copy(
        seed=1, thread=0
    )


def go_on(run, one, end, largest=8.0, limit=np.inf):
    run(one.tree, one.room, one.random, one.sums, one.longest, end, 1e5, 0.2, 0.001, largest, limit, 0.25)


def costs_of(adjacency, card, order, limit):
    costs = np.zeros(len(card))
    for v, ring in follow(adjacency, list(order)):
        message = float(np.prod(card[list(ring)], dtype=float))
        costs[v] = card[v] * message * (1.0 + 0.25 * np.log2(max(1.0, message / limit)))
    return costs


def order_of(tree):
    """Children before parents, and the first stage in front."""
    depth = np.zeros(len(tree.parent), int)
    for v in range(len(depth)):
        u = v
        while tree.parent[u] >= 0:
            u = tree.parent[u]
            depth[v] += 1
    return sorted(range(len(depth)), key=lambda v: (tree.stage[v], -depth[v]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [np.inf, 64.0])
def test_the_tree_is_that_of_its_order_after_any_number_of_moves(seed, limit):
    adjacency, card, stage = random_graph(seed)
    one = start(adjacency, card, stage, limit)
    t = one.tree
    first = one.sums[BEST]
    for end in range(500, 20_000, 500):
        go_on(anneal, one, float(end), limit=limit)
        order = order_of(t)
        rank = {v: i for i, v in enumerate(order)}
        for v, ring in follow(adjacency, order):
            assert set(t.ring[v, : t.size[v]].tolist()) == ring
            assert t.parent[v] == min(ring, key=rank.get, default=-1)
            children, c = [], t.first[v]
            while c >= 0:
                assert t.before[c] == (children[-1] if children else -1)
                children.append(int(c))
                c = t.after[c]
            assert sorted(children) == np.flatnonzero(t.parent == v).tolist()
        costs = costs_of(adjacency, card, order, limit)
        assert np.allclose(t.cost, costs)
        assert one.sums[TOTAL] == pytest.approx(costs.sum())
        best = t.best[np.argsort(stage[t.best], kind="stable")]
        assert costs_of(adjacency, card, best, limit).sum() == pytest.approx(one.sums[BEST])
        assert end <= one.sums[DONE] < end + 5000
    assert one.sums[BEST] < first


def test_plain_and_compiled_moves_are_the_same():
    adjacency, card, stage = random_graph(7)
    one, other = start(adjacency, card, stage), start(adjacency, card, stage)
    go_on(anneal, one, 2e4)
    go_on(plain_code(search.HOME), other, 2e4)
    assert np.array_equal(one.tree.parent, other.tree.parent)
    assert np.array_equal(one.tree.best, other.tree.best)
    assert np.allclose(one.sums, other.sums)


def test_parts_of_more_than_one_word_and_of_the_whole_tree():
    adjacency, card, stage = random_graph(3, n=150, edges=260)
    one = start(adjacency, card, 0 * stage)
    first = one.sums[BEST]
    assert one.room.some.shape == (3,)
    go_on(anneal, one, 3e6, largest=150.0)
    assert costs_of(adjacency, card, one.tree.best, np.inf).sum() == pytest.approx(one.sums[BEST])
    assert one.sums[BEST] < first / 100
