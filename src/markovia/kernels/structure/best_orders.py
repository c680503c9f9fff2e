"""Searching orders of variables for the best directed graph, on flat lists of parent sets.

All costs are losses (`ParentSetLosses`), so they are sums of small numbers that are never negative; a set of variables has
one bit for each.

- `spread_sets`, `best_last`: dynamic programming over subsets.
- `fill_pattern`: the least loss of a group's variables that are yet to be placed, for every subset of the group.
- `shortest_path`: A* over subsets in the order they are filled. A variable whose best parents are all placed is placed at
  once.
- `improve_orders`: local search by moving one variable to another place.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel

HASH = np.uint64(0x9E3779B97F4A7C15)


@inner(_nrt=False)
def _loss(x, placed, sets):
    """Return x's least loss with parents among those placed."""
    for i in range(sets.start[x], sets.start[x + 1]):
        if sets.masks[i] & ~placed == 0:
            return sets.losses[i]
    return np.inf


@kernel(_nrt=False)
def spread_sets(x, m, sets, table):
    """Fill in `table` (2^(m - 1),) with x's least loss for every subset of the other variables (numbered without x)."""
    start, masks, losses = sets
    for u in range(len(table)):
        table[u] = np.inf
    low = (1 << x) - 1
    for i in range(start[x], start[x + 1]):
        at = (masks[i] & low) | (masks[i] >> (x + 1) << x)
        if losses[i] < table[at]:
            table[at] = losses[i]
    for b in range(m - 1):
        bit = 1 << b
        for base in range(0, len(table), 2 * bit):
            for u in range(base, base + bit):
                if table[u] < table[u + bit]:
                    table[u + bit] = table[u]


@kernel(_nrt=False)
def best_last(m, tables, best, last, begin, end):
    """Fill in the least loss of the subsets `begin..end`, and which variable comes last in it.

    `tables` (m, 2^(m - 1)) as `spread_sets` fills them, `best` and `last` (2^m,).
    """
    for w in range(begin, end):
        least, which = np.inf, -1
        for x in range(m):
            if w >> x & 1:
                rest = w ^ (1 << x)
                cost = best[rest] + tables[x, (rest & ((1 << x) - 1)) | (rest >> (x + 1) << x)]
                if cost < least:
                    least, which = cost, x
        best[w] = least
        last[w] = which


@kernel(_nrt=False)
def fill_pattern(shift, size, full, sets, table):
    """Fill in for every subset of the variables `shift..shift + size` the least loss of placing them, all others placed.

    `table` (2^size,).
    """
    table[0] = 0.0
    for u in range(1, len(table)):
        placed = full & ~(u << shift)
        least = np.inf
        for b in range(size):
            if u >> b & 1:
                cost = table[u ^ (1 << b)]
                if cost < least:
                    cost += _loss(b + shift, placed, sets)
                    if cost < least:
                        least = cost
        table[u] = least


@kernel(_nrt=False)
def close_set(placed, m, sets):
    """Place every variable whose best parents are placed, as often as there is one; return the larger set."""
    more = True
    while more:
        more = False
        for x in range(m):
            if not placed >> x & 1 and sets.masks[sets.start[x]] & ~placed == 0:
                placed |= 1 << x
                more = True
    return placed


@inner(_nrt=False)
def _find(mask, nodes):
    """Return the slot of a set, or the empty one where it belongs."""
    slots, node_mask = nodes.slots, nodes.mask
    room = len(slots) - 1
    at = np.int64((np.uint64(mask) * HASH) >> np.uint64(20)) & room
    while slots[at] >= 0 and node_mask[slots[at]] != mask:
        at = (at + 1) & room
    return at


@kernel(_nrt=False)
def fill_slots(n, nodes):
    """Enter the first n nodes into an empty hash table."""
    for i in range(n):
        nodes.slots[_find(nodes.mask[i], nodes)] = i


@inner(_nrt=False)
def _push(heap_f, heap_i, n, f, i):
    while n > 0:
        up = (n - 1) >> 1
        if heap_f[up] <= f:
            break
        heap_f[n], heap_i[n] = heap_f[up], heap_i[up]
        n = up
    heap_f[n], heap_i[n] = f, i


@inner(_nrt=False)
def _pop(heap_f, heap_i, n):
    """Take the first away; n is the number of entries before."""
    n -= 1
    f, i = heap_f[n], heap_i[n]
    at = 0
    while 2 * at + 1 < n:
        down = 2 * at + 1
        if down + 1 < n and heap_f[down + 1] < heap_f[down]:
            down += 1
        if heap_f[down] >= f:
            break
        heap_f[at], heap_i[at] = heap_f[down], heap_i[down]
        at = down
    heap_f[at], heap_i[at] = f, i


@kernel(_nrt=False)
def shortest_path(m, sets, groups, upper, steps, nodes):
    """Expand up to `steps` sets; return 0 if no path is cheaper than `upper`, 1 with a path, 2 for room, 3 for time.

    Takes `ParentSetLosses`, `PatternDatabase` and `SubsetNodes`.
    """
    heap_f, heap_i, state = nodes.heap_f, nodes.heap_i, nodes.state
    full = (1 << m) - 1
    for _ in range(steps):
        if state[1] == 0 or heap_f[0] >= upper:
            return 0
        if state[0] + m > len(nodes.mask) or state[1] + m > len(heap_f):
            return 2
        # the cheapest open set; one that was reached again more cheaply has a second entry, which comes too late
        i = heap_i[0]
        _pop(heap_f, heap_i, state[1])
        state[1] -= 1
        if nodes.done[i]:
            continue
        nodes.done[i] = 1
        state[3] += 1
        placed = nodes.mask[i]
        if placed == full:
            state[2] = i
            return 1
        for x in range(m):
            if placed >> x & 1:
                continue
            cost = nodes.cost[i] + _loss(x, placed, sets)
            if cost >= upper:
                continue
            after = close_set(placed | 1 << x, m, sets)
            at = _find(after, nodes)
            j = nodes.slots[at]
            if j >= 0:
                if nodes.done[j] or cost >= nodes.cost[j]:
                    continue
            else:
                # what is left costs at least the sum over groups, each placed after all others
                bound = 0.0
                for k in range(len(groups.shift)):
                    left = (full & ~after) >> groups.shift[k] & ((1 << groups.size[k]) - 1)
                    bound += groups.losses[groups.start[k] + left]
                if cost + bound >= upper:
                    continue
                j = state[0]
                state[0] += 1
                nodes.slots[at] = j
                nodes.mask[j] = after
                nodes.bound[j] = bound
                nodes.done[j] = 0
            nodes.cost[j] = cost
            nodes.origin[j] = i
            if cost + nodes.bound[j] < upper:
                _push(heap_f, heap_i, state[1], cost + nodes.bound[j], j)
                state[1] += 1
    return 3


@inner(_nrt=False)
def _climb(order, m, sets, own):
    """Move single variables while that lowers the loss; return the loss."""
    placed = np.int64(0)
    total = 0.0
    for k in range(m):
        own[k] = _loss(order[k], placed, sets)
        total += own[k]
        placed |= np.int64(1) << order[k]
    better = True
    while better:
        better = False
        for k in range(m):
            x = order[k]
            least, where = 0.0, k
            before = np.int64(0)
            for j in range(k):
                before |= np.int64(1) << order[j]
            gain = 0.0  # forwards in time: x goes before order[j]
            placed = before
            now = own[k]
            for j in range(k - 1, -1, -1):
                y = order[j]
                placed ^= np.int64(1) << y
                gain += _loss(y, placed | np.int64(1) << x, sets) - own[j]
                change = gain + _loss(x, placed, sets) - now
                if change < least - 1e-9:
                    least, where = change, j
            gain = 0.0  # backwards: x goes after order[j]
            placed = before
            for j in range(k + 1, m):
                y = order[j]
                gain += _loss(y, placed, sets) - own[j]
                placed |= np.int64(1) << y
                change = gain + _loss(x, placed, sets) - now
                if change < least - 1e-9:
                    least, where = change, j
            if where != k:
                better = True
                step = 1 if where > k else -1
                for j in range(k, where, step):
                    order[j] = order[j + step]
                order[where] = x
                placed = np.int64(0)
                total = 0.0
                for j in range(m):
                    own[j] = _loss(order[j], placed, sets)
                    total += own[j]
                    placed |= np.int64(1) << order[j]
    return total


@kernel(_nrt=False)
def improve_orders(order, m, sets, kicks, starts, trial, own):
    """Climb from an order, from the orders `starts`, then again and again from the best with a few variables moved.

    `kicks[r]` are places, in pairs from and to; `starts` (orders, m). `order` (m,) becomes the best; its loss is returned.
    `trial` (m,) and `own` (m,) are room for an order and its losses.
    """
    best = _climb(order, m, sets, own)
    for r in range(len(starts)):
        for j in range(m):
            trial[j] = starts[r, j]
        loss = _climb(trial, m, sets, own)
        if loss < best:
            best = loss
            for j in range(m):
                order[j] = trial[j]
    for r in range(len(kicks)):
        for j in range(m):
            trial[j] = order[j]
        for k in range(0, kicks.shape[1], 2):
            a, b = kicks[r, k], kicks[r, k + 1]
            x = trial[a]
            step = 1 if b > a else -1
            for j in range(a, b, step):
                trial[j] = trial[j + step]
            trial[b] = x
        loss = _climb(trial, m, sets, own)
        if loss <= best:
            best = loss
            for j in range(m):
                order[j] = trial[j]
    return best
