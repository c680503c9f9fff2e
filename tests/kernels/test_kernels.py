"""The compiled parts of the junction tree, each against a plain computation of the same thing."""

from itertools import combinations, pairwise
from math import log2, prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import given as sampled
from hypothesis import strategies as st
from numba import njit
from numpy.lib.stride_tricks import as_strided

from markovia.graphs.triangulation.elimination import eliminate, follow
from markovia.inference.exact.tree_plan import TreePlan
from markovia.kernels.clique_trees import program_sections as tree_program
from markovia.kernels.clique_trees.clique_trees import NO_ROOM, find_cliques, settle, workspace
from markovia.kernels.clique_trees.elimination import find_order
from markovia.kernels.clique_trees.program_sections import section
from markovia.kernels.clique_trees.strided import ADD, MULTIPLY, SET, add_rows, spread_rows, walk
from markovia.kernels.clique_trees.tree_program import LARGE, compile_program, load_tables
from markovia.kernels.pointers import beyond, pointer

seeds = st.integers(0, 2**32 - 1)
NAMES = ["min-fill", "weighted-min-fill", "min-weight"]


# -- random structures -------------------------------------------------------------------------------------------


def random_structure(rng, most=14, least_card=1):
    """Return (card, scopes); some variables are in no scope, some scopes are empty or repeat each other."""
    n = int(rng.integers(1, most + 1))
    card = rng.integers(least_card, 5, size=n)
    scopes = []
    for _ in range(int(rng.integers(0, 2 * n + 1))):
        size = int(rng.integers(0, min(4, n) + 1))
        scopes.append([int(v) for v in rng.permutation(n)[:size]])
    return card.astype(np.int64), scopes


def flat(scopes):
    start = np.cumsum([0, *(len(s) for s in scopes)]).astype(np.int64)
    return start, np.array([v for s in scopes for v in s], dtype=np.int64)


def neighbours_of(n, scopes):
    near = [set() for _ in range(n)]
    for scope in scopes:
        for u, v in combinations(scope, 2):
            near[u].add(v)
            near[v].add(u)
    return near


def order_by(heuristic, card, scopes, noisy=0, stage=None, limit=np.inf):
    """Return (order, total) of one pass; `noisy` counts the passes with noise of this heuristic."""
    start, scope = flat(scopes)
    stage = np.zeros(len(card), dtype=np.int64) if stage is None else np.array(stage, dtype=np.int64)
    first = NAMES.index(heuristic) + 3 * noisy
    order, total, length = find_order(start, scope, card, stage, 0.0, 0.0, first, limit)
    if total < np.inf:
        steps = follow(neighbours_of(len(card), scopes), order.tolist())
        assert length == sum(len(around) + 1 for _, around in steps)
    return order.tolist(), total


def table_total(card, steps):
    return sum(int(card[v]) * prod(int(card[u]) for u in around) for v, around in steps)


def scores(graph, v, logs, heuristic):
    around = graph[v]
    if heuristic == "min-weight":
        return logs[v] + sum(logs[u] for u in around)
    missing = [(u, w) for u, w in combinations(sorted(around), 2) if w not in graph[u]]
    return len(missing) if heuristic == "min-fill" else sum(logs[u] + logs[w] for u, w in missing)


# -- elimination orders ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heuristic", NAMES)
@sampled(seed=seeds)
@settings(max_examples=60)
def test_every_step_of_a_greedy_order_eliminates_a_vertex_of_least_score(heuristic, seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng, 18, least_card=2)
    order, total = order_by(heuristic, card, scopes)
    graph = neighbours_of(len(card), scopes)
    assert sorted(order) == list(range(len(card)))
    assert total == pytest.approx(table_total(card, follow(graph, order)), rel=1e-12)
    logs = [log2(c) for c in card]
    left = set(order)
    for v in order:
        found = {u: scores(graph, u, logs, heuristic) for u in left}
        assert found[v] <= min(found.values()) + 1e-9
        for u in graph[v]:
            graph[u] |= graph[v]
            graph[u] -= {u, v}
        left.discard(v)


@sampled(seed=seeds)
@settings(max_examples=40)
def test_greedy_orders_on_forests_are_those_of_the_python_heuristics_in_width(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    scopes = [[int(rng.integers(v)), v] for v in range(1, n) if rng.random() < 0.9]
    card = np.full(n, 2, dtype=np.int64)
    graph = neighbours_of(n, scopes)
    for heuristic in NAMES:
        order, total = order_by(heuristic, card, scopes)
        steps = eliminate(graph, heuristic)
        assert max(len(around) for _, around in follow(graph, order)) == (1 if scopes else 0)
        assert total == table_total(card, steps)


@sampled(seed=seeds)
@settings(max_examples=40)
def test_orders_with_noise_are_orders_and_repeat_for_the_same_seed(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng)
    graph = neighbours_of(len(card), scopes)
    noisy = 1 + seed % 1000
    order, total = order_by("min-fill", card, scopes, noisy)
    assert sorted(order) == list(range(len(card)))
    assert total == pytest.approx(table_total(card, follow(graph, order)), rel=1e-12)
    assert order_by("min-fill", card, scopes, noisy)[0] == order


def test_stages_come_one_after_the_other_and_a_passed_limit_gives_up():
    card = np.array([2, 3, 2, 3, 2, 3], dtype=np.int64)
    scopes = [[i, (i + 1) % 6] for i in range(6)]
    stage = [1, 0, 1, 0, 0, 1]
    order, total = order_by("min-fill", card, scopes, stage=stage)
    assert [stage[v] for v in order] == [0, 0, 0, 1, 1, 1]
    assert np.isfinite(total)
    assert order_by("min-fill", card, scopes, limit=total / 4)[1] == np.inf


def test_vertices_that_are_left_out_join_nobody():
    card = np.array([2, 3, 9, 5, 7], dtype=np.int64)
    start, scope = flat([[0, 1, 2], [2, 1], [3], [], [3, 0], [0, 3], [2, 4]])
    stage = np.array([0, 0, -1, 0, 0], dtype=np.int64)
    order, total, length = find_order(start, scope, card, stage, 0.0, 0.0)
    graph = [{1, 3}, {0}, set(), {0}, set()]
    steps = follow(graph, order[:4].tolist())
    assert sorted(order[:4].tolist()) == [0, 1, 3, 4]
    assert (total, length) == (table_total(card, steps), sum(len(around) + 1 for _, around in steps))


@sampled(seed=seeds, share=st.sampled_from([0.0, 1.0, 1e4]))
@settings(max_examples=40)
def test_a_search_is_never_worse_than_min_fill_and_more_of_it_never_hurts(seed, share):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng, 20, least_card=2)
    n = len(card)
    start, scope = flat(scopes)
    stage = np.zeros(n, dtype=np.int64)
    order, best, _ = find_order(start, scope, card, stage, share, 1e6)
    assert best == pytest.approx(
        table_total(card, follow(neighbours_of(n, scopes), order.tolist())), rel=1e-12
    )
    assert best <= order_by("min-fill", card, scopes)[1]
    longer = find_order(start, scope, card, stage, 10 * share, 1e7)[1]
    assert longer <= best


def test_a_thousand_vertices_are_ordered_as_well_as_by_the_python_heuristic():
    rng = np.random.default_rng(5)
    scopes = [
        [v, *rng.choice(np.arange(max(0, v - 20), v), size=2, replace=False).tolist()] for v in range(2, 1000)
    ]
    card = np.full(1000, 2, dtype=np.int64)
    graph = neighbours_of(1000, scopes)
    order, _ = order_by("min-fill", card, scopes)
    ours = max(len(a) for _, a in follow(graph, order))
    theirs = max(len(a) for _, a in eliminate(graph, "min-fill"))
    assert ours <= theirs + 3


# -- clique trees ------------------------------------------------------------------------------------------------


def parts_of(start, items):
    return [items[a:b].tolist() for a, b in pairwise(start)]


def filled_cliques(n, scopes, order):
    """Return the maximal cliques of the graph that eliminating in this order fills in, by networkx."""
    graph = nx.Graph()
    graph.add_nodes_from(order)
    near = neighbours_of(n, [[v for v in s if v in set(order)] for s in scopes])
    for v, around in follow(near, order):
        graph.add_edges_from((v, u) for u in around)
    assert nx.is_chordal(graph)
    return {frozenset(c) for c in nx.find_cliques(graph)}


class Made:
    """A tree in the making, as arrays."""

    def __init__(self, card, scopes, order):
        self.n, self.start, self.scope = len(card), *flat(scopes)
        self.sizes = np.empty(2 * self.n + len(scopes))
        room = self.n
        while True:
            self.work = workspace(self.n, len(scopes), room)
            found = find_cliques(self.start, self.scope, card, order, self.work, self.sizes)
            if found[0] != NO_ROOM:
                break
            room += 7
        self.count, _, self.length, self.total, self.largest = found

    def parts(self):
        n, n_factors = self.n, len(self.start) - 1
        most = 2 * n + n_factors
        slot, home, factor_home = np.split(self.work[:most].copy(), [n, 2 * n])
        begin, stop, n_separator, parent = self.work[most : 5 * most].reshape(4, most)[:, : self.count]
        pool = self.work[9 * n + 3 * n_factors + 7 * most :]
        cliques = [pool[a:b] for a, b in zip(begin, stop, strict=True)]
        assert sum(map(len, cliques)) == self.length
        starts = np.cumsum([0, *map(len, cliques)])
        return slot, starts, np.concatenate(cliques), n_separator.copy(), parent.copy(), home, factor_home


def check_tree(n, scopes, order, slot, clique_start, clique, n_separator, parent, home, factor_home):
    cliques = parts_of(clique_start, clique)
    by_name = [frozenset(order[s] for s in c) for c in cliques]
    assert len(set(by_name)) == len(by_name)
    assert set(by_name) == filled_cliques(n, scopes, order)
    assert all(c == sorted(c, reverse=True) for c in cliques)
    carried = dict.fromkeys(range(len(order)), 0)
    for c, p in enumerate(parent.tolist()):
        separator = set(cliques[c][: n_separator[c]])
        if p < 0:
            assert not separator
            continue
        assert separator == set(cliques[c]) & set(cliques[p])
        for s in separator:
            carried[s] += 1
    for s in range(
        len(order)
    ):  # on a forest, k cliques are connected exactly if k - 1 edges carry the variable
        assert carried[s] == sum(s in c for c in cliques) - 1
        assert s in cliques[home[s]][n_separator[home[s]] :]
    assert slot.tolist() == [order.index(v) if v in order else -1 for v in range(n)]
    for f, scope in enumerate(scopes):
        left = {order.index(v) for v in scope if v in order}
        assert left <= set(cliques[factor_home[f]]) if left else factor_home[f] == -1


@sampled(seed=seeds)
@settings(max_examples=100)
def test_cliques_are_the_maximal_ones_of_the_filled_graph_with_running_intersection(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng)
    n = len(card)
    order = rng.permutation(n).astype(np.int64)
    made = Made(card, scopes, order)
    tree = made.parts()
    check_tree(n, scopes, order.tolist(), *tree)
    assert all(p > c or p < 0 for c, p in enumerate(tree[4].tolist()))
    sizes = [prod(card[order[c]].tolist()) for c in parts_of(*tree[1:3])]
    assert made.sizes[: made.count].tolist() == sizes
    assert (made.total, made.largest) == (sum(sizes), max(sizes))


@sampled(seed=seeds)
@settings(max_examples=100)
def test_settling_keeps_cliques_and_separators_and_never_makes_parents_larger(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng)
    n = len(card)
    order = rng.permutation(n).astype(np.int64)
    made = Made(card, scopes, order)
    slot, clique_start, clique, n_separator, parent, home, factor_home = made.parts()
    cliques = parts_of(clique_start, clique)
    cards = card[order]
    sizes = {tuple(c): prod(cards[c].tolist()) for c in cliques}
    before = {
        tuple(c): (k, sizes[tuple(cliques[p])] if p >= 0 else None)
        for c, k, p in zip(cliques, n_separator.tolist(), parent.tolist(), strict=True)
    }
    homes = [tuple(cliques[f]) if f >= 0 else None for f in factor_home]
    settle(n, made.start, made.scope, made.work, made.sizes, made.count)
    check_tree(n, scopes, order.tolist(), *made.parts())
    assume(made.largest < LARGE)  # no helper cliques
    stage = np.zeros(n, dtype=np.int64)
    program, _, _ = compile_program(made.start, made.scope, card, stage, 0.0, 0.0, order)
    sections = [tree_program.CLIQUE_START, tree_program.CLIQUE, tree_program.N_SEPARATOR, tree_program.PARENT]
    settled = [section(program, i) for i in sections]
    home, factor_home = (section(program, i) for i in (tree_program.HOME, tree_program.FACTOR_HOME))
    check_tree(n, scopes, order.tolist(), slot, *settled, home, factor_home)
    after = parts_of(*settled[:2])
    for c, k, p in zip(after, settled[2].tolist(), settled[3].tolist(), strict=True):
        same_k, size = before[tuple(c)]
        assert k == same_k
        assert (p < 0) == (size is None)
        assert p < 0 or sizes[tuple(after[p])] <= size
    for old, new in zip(homes, factor_home.tolist(), strict=True):
        assert (old is None) == (new < 0)
        assert old is None or sizes[tuple(after[new])] <= sizes[old]
    # a subtree is a run of numbers that ends with its top, so that it can be handed to a thread
    first = list(range(len(after)))
    count = [1] * len(after)
    for c, p in enumerate(settled[3].tolist()):
        if p >= 0:
            first[p] = min(first[p], first[c])
            count[p] += count[c]
    assert all(c - first[c] + 1 == count[c] for c in range(len(after)))


# -- programs ----------------------------------------------------------------------------------------------------


@sampled(seed=seeds)
@settings(max_examples=60)
def test_a_program_lays_everything_out_without_overlap(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng)
    n = len(card)
    start, scope = flat(scopes)
    stage = np.zeros(n, dtype=np.int64)
    program, total, largest = compile_program(start, scope, card, stage, 0.1, 1e6)
    part = [section(program, i) for i in range(tree_program.N_SECTIONS)]
    order, slot, cards = part[tree_program.ORDER], part[tree_program.SLOT], part[tree_program.CARD]
    assert order[slot].tolist() == list(range(n))
    assert cards.tolist() == card[order].tolist()
    cliques = parts_of(part[tree_program.CLIQUE_START], part[tree_program.CLIQUE])
    sizes = [prod(cards[c].tolist()) for c in cliques]
    removes = [len(c) > k for c, k in zip(cliques, part[tree_program.N_SEPARATOR].tolist(), strict=True)]
    counted = [size for size, own in zip(sizes, removes, strict=True) if own]  # helper cliques remove nothing
    assert (total, largest) == (sum(counted), max(counted))
    plan = TreePlan(program, total, largest)
    assert plan.entries_given(np.full(n, -1, dtype=np.int64)) == sum(sizes)
    code = np.where(rng.random(n) < 0.5, 0, -1)
    assert plan.entries_given(code) == sum(prod(int(cards[s]) for s in c if code[s] < 0) for c in cliques)
    parent = part[tree_program.PARENT].tolist()
    assert parts_of(part[tree_program.CHILD_START], part[tree_program.CHILDREN]) == [
        [k for k, p in enumerate(parent) if p == c] for c in range(len(cliques))
    ]
    homes = part[tree_program.FACTOR_HOME].tolist()
    assert parts_of(part[tree_program.FACTOR_START], part[tree_program.FACTORS]) == [
        [f for f, h in enumerate(homes) if h == c] for c in range(len(cliques))
    ]
    assert parts_of(part[tree_program.SLOT_START], part[tree_program.SLOT_CLIQUES]) == [
        [c for c, members in enumerate(cliques) if s in members] for s in range(n)
    ]
    separators = [
        prod(cards[c[:k]].tolist())
        for c, k in zip(cliques, part[tree_program.N_SEPARATOR].tolist(), strict=True)
    ]
    factor_sizes = [prod(card[s].tolist()) for s in scopes]
    pieces = [
        *zip(part[tree_program.FACTOR_AT].tolist(), factor_sizes, strict=True),
        (program[tree_program.N_FACTOR_VALUES], int(card.sum())),
        *zip(part[tree_program.MESSAGE_AT].tolist()[:-1], separators, strict=True),
    ]
    end = 0
    for at, size in pieces:
        assert at == end
        end += size
    assert end == program[tree_program.N_VALUES]
    assert program[tree_program.LARGEST_SEPARATOR] == max(separators)
    assert program[tree_program.MOST_AXES] == max(map(len, cliques))
    assert np.diff(part[tree_program.MARGINAL_AT]).tolist() == cards.tolist()
    separators_below = [
        sum(separators[k] for k, p in enumerate(parent) if p == c) for c in range(len(cliques))
    ]
    assert program[tree_program.MOST_SHARES] == max(separators_below)
    assert program[tree_program.LARGEST_BLOCK] == min(tree_program.BLOCK, max(sizes))
    rows = [size // separator for size, separator in zip(sizes, separators, strict=True)]
    assert program[tree_program.LONGEST_ROW] == max(rows)
    kept = [
        (at, size) for at, size in zip(part[tree_program.TABLE_AT].tolist(), sizes, strict=True) if at >= 0
    ]
    assert len(kept) == sum(size <= tree_program.KEPT for size in sizes)
    assert kept == list(
        zip(np.cumsum([0, *(s for _, s in kept)]).tolist(), [s for _, s in kept], strict=False)
    )


@sampled(seed=seeds)
@settings(max_examples=60)
def test_loaded_tables_have_sorted_axes_and_maximum_one(seed):
    rng = np.random.default_rng(seed)
    card, scopes = random_structure(rng, 6)
    start, scope = flat(scopes)
    program, _, _ = compile_program(start, scope, card, np.zeros(len(card), dtype=np.int64), 0.1, 1e6)
    slot = section(program, tree_program.SLOT)
    tables = [rng.random(card[s]) * (rng.random(card[s]) < 0.8) * 10.0 ** rng.integers(-5, 6) for s in scopes]
    raw = np.concatenate([np.ravel(t) for t in tables]) if tables else np.empty(0)
    values = np.full(int(program[tree_program.N_VALUES]), np.nan)
    low = np.empty(len(scopes))
    work = np.empty(6 * int(program[tree_program.MOST_AXES]), dtype=np.int64)
    scale = load_tables(program, raw, values, low, work)
    tops = [float(np.max(t)) for t in tables]
    if min(tops, default=1.0) == 0.0:
        assert scale == -np.inf
        return
    assert scale == pytest.approx(sum(np.log(tops)), abs=1e-12)
    for f, (table, top) in enumerate(zip(tables, tops, strict=True)):
        axes = sorted(range(len(scopes[f])), key=lambda a, f=f: -slot[scopes[f][a]])
        at = section(program, tree_program.FACTOR_AT)[f]
        expected = np.transpose(table, axes).ravel() / top
        assert np.allclose(values[at : at + expected.size], expected, rtol=1e-15)
        assert low[f] == pytest.approx(log2(expected[expected > 0].min()), abs=1e-9)


def test_a_table_that_spans_more_than_doubles_can_is_reported():
    start, scope = flat([[0]])
    card = np.array([2], dtype=np.int64)
    program, _, _ = compile_program(start, scope, card, np.zeros(1, dtype=np.int64), 0.1, 1e6)
    values, low, work = (
        np.empty(int(program[tree_program.N_VALUES])),
        np.empty(1),
        np.empty(6, dtype=np.int64),
    )
    assert np.isnan(load_tables(program, np.array([1e-300, 1e300]), values, low, work))
    assert load_tables(program, np.array([1e-300, 1e-299]), values, low, work) == pytest.approx(
        np.log(1e-299)
    )


# -- strided loops -----------------------------------------------------------------------------------------------


def random_view(rng):
    """Return (dims, strides of a smaller table, its size): axes of 1, 2, 3 and more, some missing, some permuted."""
    n = int(rng.integers(0, 8))
    dims = rng.choice([1, 1, 2, 2, 3, 3, 4, 5], size=n).astype(np.int64)
    has = rng.random(n) < 0.6
    axes = [a for a in range(n) if has[a]]
    if rng.random() < 0.3:
        axes = rng.permutation(axes).astype(int).tolist()
    strides = np.zeros(n, dtype=np.int64)
    step = 1
    for a in reversed(axes):
        strides[a] = step
        step *= int(dims[a])
    return dims, strides, step


def seen_through(small, offset, dims, strides):
    return as_strided(small[offset:], shape=dims.tolist(), strides=(strides * small.itemsize).tolist())


@njit
def walked(what, big, at, small, offset, dims, strides):
    scratch = np.empty(3 * len(dims) + 1, dtype=np.int64)
    walk(
        what,
        beyond(pointer(big), at),
        beyond(pointer(small), offset),
        len(dims),
        pointer(dims),
        pointer(strides),
        pointer(scratch),
    )
    return len(scratch)


@njit
def rows_walked(what, big, b, rows, inner, small, y, s2, s):
    if what == ADD:
        add_rows(beyond(pointer(big), b), rows, inner, beyond(pointer(small), y), s2, s)
    else:
        spread_rows(what, beyond(pointer(big), b), rows, inner, beyond(pointer(small), y), s2, s)


@sampled(seed=seeds, assign=st.booleans())
@settings(max_examples=300)
def test_spreading_a_table_is_numpy_broadcasting(seed, assign):
    rng = np.random.default_rng(seed)
    dims, strides, size = random_view(rng)
    at, offset, skipped = (int(k) for k in rng.integers(0, 4, size=3))
    skipped = min(skipped, len(dims))
    small = rng.random(offset + size)
    inner = prod(dims[skipped:].tolist())
    big = rng.random(at + inner + 2)
    view = seen_through(small, offset, dims[skipped:], strides[skipped:])
    expected = big.copy()
    expected[at : at + inner] = view.ravel() * (1.0 if assign else expected[at : at + inner])
    walked(
        SET if assign else MULTIPLY, big, at, small, offset, dims[skipped:].copy(), strides[skipped:].copy()
    )
    assert np.array_equal(big, expected)


@sampled(seed=seeds)
@settings(max_examples=300)
def test_gathering_a_table_sums_the_axes_that_the_smaller_one_lacks(seed):
    rng = np.random.default_rng(seed)
    dims, strides, size = random_view(rng)
    at, offset = (int(k) for k in rng.integers(0, 4, size=2))
    big = rng.random(at + prod(dims.tolist()) + 1)
    small = rng.random(offset + size + 1)
    expected = small.copy()
    places = seen_through(np.arange(len(small)), offset, dims, strides)
    np.add.at(expected, places.ravel(), big[at : at + places.size])
    walked(ADD, big, at, small, offset, dims, strides)
    assert np.allclose(small, expected, rtol=1e-13, atol=0.0)


@sampled(seed=seeds)
@settings(max_examples=200)
def test_rows_of_every_length_and_step_are_set_multiplied_and_added(seed):
    rng = np.random.default_rng(seed)
    rows, inner = int(rng.integers(1, 6)), int(rng.choice([1, 2, 3, 4, 17]))
    s2, s = (int(k) for k in rng.choice([0, 1, 2, 3, 20], size=2))
    b, y = (int(k) for k in rng.integers(0, 4, size=2))
    places = y + s2 * np.arange(rows)[:, None] + s * np.arange(inner)[None, :]
    small = rng.random(int(places.max()) + 1)
    big = rng.random(b + rows * inner + 1)
    taken = small[places].ravel()
    for what, expected in ((SET, taken), (MULTIPLY, big[b:-1] * taken)):
        found = big.copy()
        rows_walked(what, found, b, rows, inner, small, y, s2, s)
        assert np.array_equal(found[b:-1], expected)
        assert np.array_equal(found[:b], big[:b])
        assert found[-1] == big[-1]
    expected = small.copy()
    np.add.at(expected, places.ravel(), big[b:-1])
    rows_walked(ADD, big, b, rows, inner, small, y, s2, s)
    assert np.allclose(small, expected, rtol=1e-13, atol=0.0)
