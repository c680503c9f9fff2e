"""States that can occur: arc consistency on tables with zeros, and a search for one configuration of positive weight."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointers
from markovia.kernels.random_numbers import uniform
from markovia.runtime.array_types import Ints


class ConsistencyWork(NamedTuple):
    """What the kernels below write to, and two marks.

    `dom` says for each state whether it is left, `left` how many of a variable are, `owner` whose a state is; `has_zero`
    marks factors with zeros, `queue` and `queued` those to look at, and `trail` lists the states removed.
    """

    dom: NDArray[np.int8]
    left: Ints
    owner: Ints
    has_zero: NDArray[np.int8]
    queue: Ints
    queued: NDArray[np.int8]
    trail: Ints
    seen: NDArray[np.int8]
    at: Ints
    gone: Ints


@inner(bare=True)
def _revise(g, f, w):
    """Find the states of a factor's variables that no positive entry supports; return how many, positions in `gone`."""
    s0, s1 = g.scope_ptr[f], g.scope_ptr[f + 1]
    k = s1 - s0
    width = 0
    for a in range(k):
        w.at[a] = 0
        width += g.cards[g.scope[s0 + a]]
    for x in range(width):
        w.seen[x] = 0
    for entry in range(g.table_ptr[f], g.table_ptr[f + 1]):
        if g.values[entry] > 0.0:
            alive = True
            for a in range(k):
                if w.dom[g.starts[g.scope[s0 + a]] + w.at[a]] == 0:
                    alive = False
                    break
            if alive:
                base = 0
                for a in range(k):
                    w.seen[base + w.at[a]] = 1
                    base += g.cards[g.scope[s0 + a]]
        a = k - 1
        while a >= 0:
            w.at[a] += 1
            if w.at[a] < g.cards[g.scope[s0 + a]]:
                break
            w.at[a] = 0
            a -= 1
    found = 0
    base = 0
    for a in range(k):
        i = g.scope[s0 + a]
        for x in range(g.cards[i]):
            if w.dom[g.starts[i] + x] == 1 and w.seen[base + x] == 0:
                w.gone[found] = g.starts[i] + x
                found += 1
        base += g.cards[i]
    return found


@kernel(bare=True)
def propagate(graph, work, n_queued, n_trail):
    """Remove unsupported states until nothing changes, as `_propagate` does."""
    return _propagate(pointers(graph), pointers(work), len(work.queue), n_queued, n_trail)


@inner(bare=True)
def _propagate(g, w, room, n_queued, n_trail):
    """Remove unsupported states until nothing changes; return the length of the trail, negative if a variable ran out.

    `w.queue[:n_queued]` holds the factors to look at first; removed states are written to `trail`.
    """
    head, tail = 0, n_queued
    waiting = n_queued
    failed = False
    while waiting > 0:
        f = w.queue[head]
        head = (head + 1) % room
        waiting -= 1
        w.queued[f] = 0
        if failed:
            continue
        found = _revise(g, f, w)
        for k in range(found):
            state = w.gone[k]
            i = w.owner[state]
            w.dom[state] = 0
            w.left[i] -= 1
            w.trail[n_trail] = state
            n_trail += 1
            if w.left[i] == 0:
                failed = True
            for e in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
                other = g.edge_factor[g.edges[e]]
                if other != f and w.queued[other] == 0 and w.has_zero[other] == 1:
                    w.queued[other] = 1
                    w.queue[tail % room] = other
                    tail = (tail + 1) % room
                    waiting += 1
    return -n_trail - 1 if failed else n_trail


@kernel(bare=True)
def zero_free(graph, work):
    """Say whether every combination of states still in `dom` has positive weight."""
    n_factors = len(graph.table_ptr) - 1
    g, w = pointers(graph), pointers(work)
    for f in range(n_factors):
        if w.has_zero[f] == 0:
            continue
        s0 = g.scope_ptr[f]
        k = g.scope_ptr[f + 1] - s0
        for a in range(k):
            w.at[a] = 0
        for entry in range(g.table_ptr[f], g.table_ptr[f + 1]):
            if g.values[entry] == 0.0:
                alive = True
                for a in range(k):
                    if w.dom[g.starts[g.scope[s0 + a]] + w.at[a]] == 0:
                        alive = False
                        break
                if alive:
                    return False
            a = k - 1
            while a >= 0:
                w.at[a] += 1
                if w.at[a] < g.cards[g.scope[s0 + a]]:
                    break
                w.at[a] = 0
                a -= 1
    return True


@kernel(bare=True)
def search(graph, work, random, max_nodes, scan, mark, chosen):
    """Fix one variable after the other, with arc consistency and backtracking, until each has one state.

    Returns 1 if `dom` now holds one configuration, 0 if there is none, -1 if `max_nodes` were not enough.
    """
    n, room = len(graph.cards), len(work.queue)
    g, w = pointers(graph), pointers(work)
    random, mark, chosen = pointers((random, mark, chosen))
    n_trail, level, nodes, first = 0, 0, 0, 0
    while True:
        # the variable with fewest states left, ties at random; in large graphs the next one that has several
        best, fewest, ties = -1, 0, 0.0
        if n <= scan:
            for i in range(n):
                if w.left[i] > 1 and g.edge_ptr[i] < g.edge_ptr[i + 1]:
                    if best < 0 or w.left[i] < fewest:
                        best, fewest, ties = i, w.left[i], 1.0
                    elif w.left[i] == fewest:
                        ties += 1.0
                        if uniform(random) * ties < 1.0:
                            best = i
        if best < 0:
            if n <= scan or level == 0:
                first = 0
            for i in range(first, n):
                if w.left[i] > 1:
                    best = i
                    break
            if best < 0:
                for i in range(n):
                    if w.left[i] > 1:
                        best = i
                        break
            first = max(best, 0)
        if best < 0:
            return 1
        nodes += 1
        if nodes > max_nodes:
            return -1
        # one of its states in proportion to its weight; the others are ruled out, and written down to take that back
        total = 0.0
        for x in range(g.cards[best]):
            if w.dom[g.starts[best] + x] == 1:
                total += g.unary[g.starts[best] + x]
        want = uniform(random) * total
        state = -1
        for x in range(g.cards[best]):
            if w.dom[g.starts[best] + x] == 1:
                state = g.starts[best] + x
                want -= g.unary[g.starts[best] + x]
                if want < 0.0:
                    break
        mark[level] = n_trail
        chosen[level] = state
        level += 1
        for x in range(g.cards[best]):
            other = g.starts[best] + x
            if w.dom[other] == 1 and other != state:
                w.dom[other] = 0
                w.left[best] -= 1
                w.trail[n_trail] = other
                n_trail += 1
        # consequences; where a variable loses its last state, go back to the last choice and rule that state out
        changed = best
        while True:
            waiting = 0
            for e in range(g.edge_ptr[changed], g.edge_ptr[changed + 1]):
                f = g.edge_factor[g.edges[e]]
                if w.has_zero[f] == 1 and w.queued[f] == 0:
                    w.queued[f] = 1
                    w.queue[waiting] = f
                    waiting += 1
            ended = _propagate(g, w, room, waiting, n_trail)
            if ended >= 0:
                n_trail = ended
                break
            n_trail = -ended - 1
            alive = False
            while not alive:
                if level == 0:
                    return 0
                level -= 1
                while n_trail > mark[level]:
                    n_trail -= 1
                    w.dom[w.trail[n_trail]] = 1
                    w.left[w.owner[w.trail[n_trail]]] += 1
                refuted = chosen[level]
                w.dom[refuted] = 0
                changed = w.owner[refuted]
                w.left[changed] -= 1
                w.trail[n_trail] = refuted
                n_trail += 1
                alive = w.left[changed] > 0
            first = 0
