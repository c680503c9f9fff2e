"""Long searches find the best orders of small graphs, good ones of larger graphs, and the same ones again."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovia.graphs.triangulation.elimination import follow, greedy_order
from markovia.inference.exact import long_order_search as search
from markovia.inference.exact.long_order_search import OrderCost, long_search

FREE = OrderCost(bucket=0.0)


def neighbours(scopes, n):
    adjacency = [set() for _ in range(n)]
    for scope in scopes:
        for v in scope:
            adjacency[v].update(scope)
    return [near - {v} for v, near in enumerate(adjacency)]


def buckets(scopes, cards, order):
    """The entries of all buckets and of all messages."""
    messages = np.array(
        [
            np.prod([float(cards[u]) for u in ring])
            for _, ring in follow(neighbours(scopes, len(cards)), order)
        ]
    )
    return messages * [cards[v] for v in order], messages


def grid(rows, columns):
    right = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    return right + [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]


@given(st.integers(0, 2**32 - 1))
def test_the_best_order_of_a_small_graph_is_found(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    cards = rng.integers(1, 6, n).tolist()
    scopes = [
        tuple(rng.choice(n, rng.integers(1, min(n, 3) + 1), replace=False).tolist()) for _ in range(n + 1)
    ]
    last = [v for v in range(n) if rng.random() < 0.2]
    found = long_search(scopes, cards, 5e3, FREE, last)
    assert sorted(found) == list(range(n))
    assert set(found[n - len(last) :]) == set(last)
    least = min(
        buckets(scopes, cards, order)[0].sum()
        for order in permutations(range(n))
        if set(order[n - len(last) :]) == set(last)
    )
    assert buckets(scopes, cards, found)[0].sum() == pytest.approx(least)


def test_a_grid_gets_an_order_far_better_than_greedy_ones():
    scopes, cards = grid(14, 14), [2] * 196
    found = buckets(scopes, cards, long_search(scopes, cards, 2e7, FREE))[0]
    greedy = buckets(scopes, cards, greedy_order(neighbours(scopes, 196)))[0]
    assert found.sum() < greedy.sum() / 2
    assert found.sum() < 2.0**20.2


def test_wide_grids_start_level_by_level():
    names = np.random.default_rng(0).permutation(484).tolist()
    scopes, cards = [(names[a], names[b]) for a, b in grid(22, 22)], [2] * 484
    found = buckets(scopes, cards, long_search(scopes, cards, 0.0, FREE))[0]
    assert found.max() <= 2.0**24
    assert buckets(scopes, cards, greedy_order(neighbours(scopes, 484)))[0].sum() > 4 * found.sum()


def test_the_same_seed_gives_the_same_order_and_another_one_another(monkeypatch):
    monkeypatch.setenv("MARKOVIA_THREADS", "2")
    scopes, cards = grid(9, 9), [3] * 81
    one, again, other = (long_search(scopes, cards, 1e6, FREE, seed=seed) for seed in (0, 0, 1))
    assert one == again
    assert one != other


def test_more_threads_find_nothing_worse(monkeypatch):
    scopes, cards = grid(10, 10), np.random.default_rng(0).integers(2, 5, 100).tolist()
    totals = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        totals.append(buckets(scopes, cards, long_search(scopes, cards, 5e5, FREE))[0].sum())
    assert totals[1] <= totals[0]


def test_messages_beyond_the_limit_are_avoided_where_that_is_cheap():
    rng = np.random.default_rng(1)
    scopes = [tuple(rng.choice(30, 2, replace=False).tolist()) for _ in range(60)]
    cards = rng.integers(2, 7, 30).tolist()
    entries, messages = buckets(scopes, cards, long_search(scopes, cards, 3e5, FREE))
    cost = OrderCost(bucket=0.0, limit=messages.max() / 2, over=10.0)
    others, smaller = buckets(scopes, cards, long_search(scopes, cards, 3e5, cost))
    assert smaller.max() < messages.max()
    assert entries.sum() < others.sum() < 1.2 * entries.sum()


def test_no_search_where_the_buckets_themselves_cost_more(monkeypatch):
    scopes, cards = grid(6, 6), [2] * 36
    monkeypatch.setattr(search, "either", None)  # no move is made
    found = long_search(scopes, cards, 1e9, OrderCost(bucket=1e9))
    assert sorted(found) == list(range(36))


def test_graphs_beyond_hope_are_given_up_at_once(monkeypatch):
    monkeypatch.setattr(search, "either", None)
    n = 130
    scopes = [(a, b) for a in range(n) for b in range(a)]
    assert sorted(long_search(scopes, [2] * n, 1e9, FREE, last=[3])[:-1]) == [v for v in range(n) if v != 3]


def test_a_time_limit_ends_the_search_with_what_there_is():
    scopes, cards = grid(12, 12), [2] * 144
    found = long_search(scopes, cards, 1e15, FREE, time_limit=0.05)
    assert sorted(found) == list(range(144))


def test_no_tables_and_single_variables():
    assert long_search([], []) == []
    assert long_search([], [2, 3], last=[0]) == [1, 0]
    assert sorted(long_search([(0,), (1, 2), ()], [2, 2, 2])) == [0, 1, 2]
