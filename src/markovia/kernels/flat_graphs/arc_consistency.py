"""States that can occur: arc consistency on tables with zeros, and a search for one configuration of positive weight."""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import short_uniform


@inner
def revise(f, cards, starts, scope_ptr, scope, table_ptr, values, dom, seen, at, gone):
    """Find the states of a factor's variables that no positive entry supports; return how many, positions in `gone`."""
    s0, s1 = scope_ptr[f], scope_ptr[f + 1]
    k = s1 - s0
    width = 0
    for a in range(k):
        at[a] = 0
        width += cards[scope[s0 + a]]
    for x in range(width):
        seen[x] = 0
    for entry in range(table_ptr[f], table_ptr[f + 1]):
        if values[entry] > 0.0:
            alive = True
            for a in range(k):
                if dom[starts[scope[s0 + a]] + at[a]] == 0:
                    alive = False
                    break
            if alive:
                base = 0
                for a in range(k):
                    seen[base + at[a]] = 1
                    base += cards[scope[s0 + a]]
        a = k - 1
        while a >= 0:
            at[a] += 1
            if at[a] < cards[scope[s0 + a]]:
                break
            at[a] = 0
            a -= 1
    found = 0
    base = 0
    for a in range(k):
        i = scope[s0 + a]
        for x in range(cards[i]):
            if dom[starts[i] + x] == 1 and seen[base + x] == 0:
                gone[found] = starts[i] + x
                found += 1
        base += cards[i]
    return found


@kernel
def propagate(
    n_queued,
    queue,
    queued,
    cards,
    starts,
    owner,
    scope_ptr,
    scope,
    table_ptr,
    values,
    edge_ptr,
    edges,
    edge_factor,
    has_zero,
    dom,
    left,
    trail,
    n_trail,
    seen,
    at,
    gone,
):
    """Remove unsupported states until nothing changes; return the length of the trail, negative if a variable ran out.

    `queue[:n_queued]` holds the factors to look at first; removed states are written to `trail`.
    """
    head, tail = 0, n_queued
    room = len(queue)
    waiting = n_queued
    failed = False
    while waiting > 0:
        f = queue[head]
        head = (head + 1) % room
        waiting -= 1
        queued[f] = 0
        if failed:
            continue
        found = revise(f, cards, starts, scope_ptr, scope, table_ptr, values, dom, seen, at, gone)
        for g in range(found):
            state = gone[g]
            i = owner[state]
            dom[state] = 0
            left[i] -= 1
            trail[n_trail] = state
            n_trail += 1
            if left[i] == 0:
                failed = True
            for e in range(edge_ptr[i], edge_ptr[i + 1]):
                other = edge_factor[edges[e]]
                if other != f and queued[other] == 0 and has_zero[other] == 1:
                    queued[other] = 1
                    queue[tail % room] = other
                    tail = (tail + 1) % room
                    waiting += 1
    return -n_trail - 1 if failed else n_trail


@kernel
def zero_free(cards, starts, scope_ptr, scope, table_ptr, values, has_zero, dom, at):
    """Say whether every combination of states still in `dom` has positive weight."""
    for f in range(len(table_ptr) - 1):
        if has_zero[f] == 0:
            continue
        s0 = scope_ptr[f]
        k = scope_ptr[f + 1] - s0
        for a in range(k):
            at[a] = 0
        for entry in range(table_ptr[f], table_ptr[f + 1]):
            if values[entry] == 0.0:
                alive = True
                for a in range(k):
                    if dom[starts[scope[s0 + a]] + at[a]] == 0:
                        alive = False
                        break
                if alive:
                    return False
            a = k - 1
            while a >= 0:
                at[a] += 1
                if at[a] < cards[scope[s0 + a]]:
                    break
                at[a] = 0
                a -= 1
    return True


@kernel
def search(
    cards,
    starts,
    owner,
    unary,
    scope_ptr,
    scope,
    table_ptr,
    values,
    edge_ptr,
    edges,
    edge_factor,
    has_zero,
    dom,
    left,
    random,
    max_nodes,
    scan,
    queue,
    queued,
    seen,
    at,
    gone,
):
    """Fix one variable after the other, with arc consistency and backtracking, until each has one state.

    Returns 1 if `dom` now holds one configuration, 0 if there is none, -1 if `max_nodes` were not enough.
    """
    n = len(cards)
    trail = np.empty(len(dom) + 1, np.int64)
    mark = np.empty(n + 1, np.int64)
    chosen = np.empty(n + 1, np.int64)
    n_trail, level, nodes, first = 0, 0, 0, 0
    while True:
        best, fewest, ties = -1, 0, 0.0
        if n <= scan:
            for i in range(n):
                if left[i] > 1 and edge_ptr[i] < edge_ptr[i + 1]:
                    if best < 0 or left[i] < fewest:
                        best, fewest, ties = i, left[i], 1.0
                    elif left[i] == fewest:
                        ties += 1.0
                        if short_uniform(random) * ties < 1.0:
                            best = i
        if best < 0:
            if n <= scan or level == 0:
                first = 0
            for i in range(first, n):
                if left[i] > 1:
                    best = i
                    break
            if best < 0:
                for i in range(n):
                    if left[i] > 1:
                        best = i
                        break
            first = max(best, 0)
        if best < 0:
            return 1
        nodes += 1
        if nodes > max_nodes:
            return -1
        total = 0.0
        for x in range(cards[best]):
            if dom[starts[best] + x] == 1:
                total += unary[starts[best] + x]
        want = short_uniform(random) * total
        state = -1
        for x in range(cards[best]):
            if dom[starts[best] + x] == 1:
                state = starts[best] + x
                want -= unary[starts[best] + x]
                if want < 0.0:
                    break
        mark[level] = n_trail
        chosen[level] = state
        level += 1
        for x in range(cards[best]):
            other = starts[best] + x
            if dom[other] == 1 and other != state:
                dom[other] = 0
                left[best] -= 1
                trail[n_trail] = other
                n_trail += 1
        changed = best
        while True:
            waiting = 0
            for e in range(edge_ptr[changed], edge_ptr[changed + 1]):
                f = edge_factor[edges[e]]
                if has_zero[f] == 1 and queued[f] == 0:
                    queued[f] = 1
                    queue[waiting] = f
                    waiting += 1
            ended = propagate(
                waiting,
                queue,
                queued,
                cards,
                starts,
                owner,
                scope_ptr,
                scope,
                table_ptr,
                values,
                edge_ptr,
                edges,
                edge_factor,
                has_zero,
                dom,
                left,
                trail,
                n_trail,
                seen,
                at,
                gone,
            )
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
                    dom[trail[n_trail]] = 1
                    left[owner[trail[n_trail]]] += 1
                refuted = chosen[level]
                dom[refuted] = 0
                changed = owner[refuted]
                left[changed] -= 1
                trail[n_trail] = refuted
                n_trail += 1
                alive = left[changed] > 0
            first = 0
