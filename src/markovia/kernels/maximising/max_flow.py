"""Maximum flow and minimum cut in graphs with a source, a sink and many short paths, as in images.

Method: Boykov and Kolmogorov (2004): two search trees grow from the source and the sink; where they touch, flow is
pushed along the path, and what lost its parent looks for another one. Reference: "An experimental comparison of
min-cut/max-flow algorithms for energy minimization in vision". Cost: no good bound in theory, close to linear on
grids.

Arcs come in pairs: `rev[a]` goes the other way. Those leaving node i are `first[i] : first[i + 1]`. `terminal[i]`
is what is left of the arc from the source (positive) or to the sink (negative). Capacities may be infinite.
"""

from math import inf

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointer, pointers

FREE, SOURCE, SINK = 0, 1, 2
NONE, ROOT, ORPHAN = np.int64(-1), np.int64(-2), np.int64(-3)
DONE = np.int64(-2)
# places in `state`
ACTIVE_FIRST, ACTIVE_COUNT, ORPHAN_FIRST, ORPHAN_COUNT, TIME, CURRENT, STARTED = 0, 1, 2, 3, 4, 5, 6
STATE_SIZE = 8
FAR = np.int64(1 << 30)


@kernel(bare=True)
def link_arcs(tails, heads, first, fill, head, rev, place):
    """Fill in first, head, rev and, for each pair, the place of the arc from its tail to its head.

    `first` is zero at the start; `fill` is room for a number a node.
    """
    m, n = len(tails), len(fill)
    tails, heads, first, fill, head, rev, place = pointers((tails, heads, first, fill, head, rev, place))
    for k in range(m):
        first[tails[k] + 1] += 1
        first[heads[k] + 1] += 1
    for i in range(n):
        fill[i] = first[i]
        first[i + 1] += first[i]
    for k in range(m):
        i, j = tails[k], heads[k]
        a, b = fill[i], fill[j]
        if i == j:
            b += 1
        fill[i] += 1
        fill[j] += 1
        head[a], head[b] = j, i
        rev[a], rev[b] = b, a
        place[k] = a


@kernel(bare=True)
def push_flow(slices, eps, n, arcs, flows, trees, queues):
    """Push flow along up to `slices` paths and return the flow; `state[CURRENT]` is DONE when no path is left.

    A flow that is infinite has no finite cut. Residual capacities up to `eps` count as none.
    """
    first, head, rev = pointers(arcs)
    cap, terminal = pointers(flows)
    tree, parent, stamp, dist = pointers(trees)
    ring, orphans, waiting, state = pointers(queues)
    flow = 0.0
    # both trees begin with the nodes that have spare capacity to a terminal
    if state[STARTED] == 0:
        state[STARTED] = 1
        state[CURRENT] = NONE
        for i in range(n):
            parent[i] = NONE
            if terminal[i] > eps:
                tree[i] = SOURCE
            elif terminal[i] < -eps:
                tree[i] = SINK
            else:
                continue
            parent[i] = ROOT
            dist[i] = 1
            ring[state[ACTIVE_COUNT]] = i
            state[ACTIVE_COUNT] += 1
            waiting[i] = 1
    af, ac = state[ACTIVE_FIRST], state[ACTIVE_COUNT]
    of, oc = state[ORPHAN_FIRST], state[ORPHAN_COUNT]
    time, current = state[TIME], state[CURRENT]
    paths = 0
    while paths < slices:
        # the next node that may grow
        i = current
        current = NONE
        if i == NONE or parent[i] == NONE:
            i = NONE
            while ac > 0:
                j = ring[af]
                af = af + 1 if af + 1 < n else 0
                ac -= 1
                waiting[j] = 0
                if parent[j] != NONE:
                    i = j
                    break
            if i == NONE:
                current = DONE
                break
        # grow: take in free neighbours, until an arc leads to the other tree
        middle = -1
        side = tree[i]
        for a in range(first[i], first[i + 1]):
            r = rev[a]
            if (cap[a] if side == SOURCE else cap[r]) <= eps:
                continue
            j = head[a]
            if parent[j] == NONE:
                tree[j] = side
                parent[j] = r
                stamp[j] = stamp[i]
                dist[j] = dist[i] + 1
                if waiting[j] == 0:
                    waiting[j] = 1
                    at = af + ac
                    ring[at if at < n else at - n] = j
                    ac += 1
            elif tree[j] != side:
                middle = a if side == SOURCE else r
                break
            elif stamp[j] <= stamp[i] and dist[j] > dist[i]:
                parent[j] = r
                stamp[j] = stamp[i]
                dist[j] = dist[i] + 1
        time += 1
        if middle < 0:
            continue
        current = i
        paths += 1
        # the least capacity on the path
        least = cap[middle]
        s = head[rev[middle]]
        j = s
        while parent[j] != ROOT:
            p = parent[j]
            if cap[rev[p]] < least:
                least = cap[rev[p]]
            j = head[p]
        if terminal[j] < least:
            least = terminal[j]
        t = head[middle]
        j = t
        while parent[j] != ROOT:
            p = parent[j]
            if cap[p] < least:
                least = cap[p]
            j = head[p]
        if -terminal[j] < least:
            least = -terminal[j]
        if least == inf:
            current = DONE
            flow = inf
            break
        # push as much along the path; an arc that is full cuts the node below it off its tree
        flow += least
        cap[middle] -= least
        cap[rev[middle]] += least
        for half in range(2):
            j = s if half == 0 else t
            while True:
                p = parent[j]
                if p == ROOT:
                    if half == 0:
                        terminal[j] -= least
                        spent = terminal[j] <= eps
                    else:
                        terminal[j] += least
                        spent = terminal[j] >= -eps
                    if spent:
                        parent[j] = ORPHAN
                        of = of - 1 if of > 0 else n - 1
                        orphans[of] = j
                        oc += 1
                    break
                down = rev[p] if half == 0 else p
                cap[down] -= least
                cap[rev[down]] += least
                up = head[p]
                if cap[down] <= eps:
                    parent[j] = ORPHAN
                    of = of - 1 if of > 0 else n - 1
                    orphans[of] = j
                    oc += 1
                j = up
        # orphans look for another parent whose path leads to a terminal
        while oc > 0:
            o = orphans[of]
            of = of + 1 if of + 1 < n else 0
            oc -= 1
            side = tree[o]
            best, best_d = -1, FAR
            # a parent in the same tree with spare capacity; distances are trusted where the stamp is of this time
            for a in range(first[o], first[o + 1]):
                if (cap[rev[a]] if side == SOURCE else cap[a]) <= eps:
                    continue
                j = head[a]
                if tree[j] != side or parent[j] == NONE:
                    continue
                d = 0
                while True:
                    if stamp[j] == time:
                        d += dist[j]
                        break
                    p = parent[j]
                    d += 1
                    if p == ROOT:
                        stamp[j] = time
                        dist[j] = 1
                        break
                    if p < ROOT or p == NONE:  # an orphan, or free
                        d = FAR
                        break
                    j = head[p]
                if d >= FAR:
                    continue
                if d < best_d:
                    best, best_d = a, d
                j = head[a]
                while stamp[j] != time:
                    stamp[j] = time
                    dist[j] = d
                    d -= 1
                    j = head[parent[j]]
            # adopt the nearest; without any, the node is free, its children are orphans and its neighbours may grow again
            if best >= 0:
                parent[o] = best
                stamp[o] = time
                dist[o] = best_d + 1
                continue
            for a in range(first[o], first[o + 1]):
                j = head[a]
                if tree[j] != side or parent[j] == NONE:
                    continue
                if (cap[rev[a]] if side == SOURCE else cap[a]) > eps and waiting[j] == 0:
                    waiting[j] = 1
                    at = af + ac
                    ring[at if at < n else at - n] = j
                    ac += 1
                if parent[j] >= 0 and head[parent[j]] == o:
                    parent[j] = ORPHAN
                    at = of + oc
                    orphans[at if at < n else at - n] = j
                    oc += 1
            parent[o] = NONE
            tree[o] = FREE
    state[ACTIVE_FIRST], state[ACTIVE_COUNT] = af, ac
    state[ORPHAN_FIRST], state[ORPHAN_COUNT] = of, oc
    state[TIME], state[CURRENT] = time, current
    return flow


@kernel(bare=True)
def move_costs(labels, tables, pairs, arcs, cap, terminal):
    """Fill in the capacities of a move in which variable i takes label zero[i] or one[i]; `now` is its present choice.

    `labels` are zero, one and now, `pairs` the ends of each table and its first stride.
    The cut puts i on the source side for label zero. Pairs whose four costs are not submodular are truncated so
    that the true cost cannot rise: a present cost is lowered, or an absent one raised. Returns how many were.
    """
    n, n_pairs = len(terminal), len(pairs[0])
    zero, one, now = pointers(labels)
    starts, unary, table_ptr, costs = pointers(tables)
    left, right, stride = pointers(pairs)
    place, rev = pointers(arcs)
    cap, terminal = pointer(cap), pointer(terminal)
    truncated = 0
    for i in range(n):
        terminal[i] = unary[starts[i] + one[i]] - unary[starts[i] + zero[i]]
    for k in range(n_pairs):
        i, j = left[k], right[k]
        base, s = table_ptr[k], stride[k]
        a = costs[base + zero[i] * s + zero[j]]
        b = costs[base + zero[i] * s + one[j]]
        c = costs[base + one[i] * s + zero[j]]
        d = costs[base + one[i] * s + one[j]]
        weight = b + c - a - d
        if weight < 0:
            if weight < -1e-9 * (1.0 + abs(a) + abs(b) + abs(c) + abs(d)):
                truncated += 1
            if now[i] == now[j]:
                if now[i] == 0:
                    a += weight
                else:
                    d += weight
            elif now[i] == 0:
                c -= weight
            else:
                b -= weight
            weight = 0.0
        terminal[i] += c - a
        terminal[j] += d - c
        cap[place[k]] = weight
        cap[rev[place[k]]] = 0.0
    return truncated
