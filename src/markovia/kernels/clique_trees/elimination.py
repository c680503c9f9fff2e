"""Greedy elimination orders in compiled code.

Method: repeatedly eliminate the vertex of lowest score and join its neighbours. Four scores: fewest neighbours, fewest
fill edges, smallest table, smallest weighted fill; noise breaks ties at random or perturbs scores for restarts. Scores
are kept up to date by what an elimination changed (fill edges lower the score of common neighbours), in a binary heap.
Cost: near linear in the size of the filled graph; a 1,000-vertex network takes a few milliseconds.
"""

import numpy as np

from markovia.kernels.kernel import kernel

MIN_DEGREE, MIN_FILL, MIN_WEIGHT, WEIGHTED_MIN_FILL = 0, 1, 2, 3


@kernel
def adjacency(n, scope_start, scope, active):
    """Return the neighbours of every active vertex as (start, list): who shares a scope with whom."""
    bound = 0
    for f in range(len(scope_start) - 1):
        size = scope_start[f + 1] - scope_start[f]
        bound += size * (size - 1)
    count = np.zeros(n + 1, np.int64)
    for f in range(len(scope_start) - 1):
        active_here = 0
        for i in range(scope_start[f], scope_start[f + 1]):
            if active[scope[i]]:
                active_here += 1
        for i in range(scope_start[f], scope_start[f + 1]):
            if active[scope[i]]:
                count[scope[i] + 1] += active_here - 1
    for v in range(n):
        count[v + 1] += count[v]
    raw = np.empty(count[n], np.int32)
    place = count[:n].copy()
    for f in range(len(scope_start) - 1):
        for i in range(scope_start[f], scope_start[f + 1]):
            v = scope[i]
            if not active[v]:
                continue
            for j in range(scope_start[f], scope_start[f + 1]):
                u = scope[j]
                if u != v and active[u]:
                    raw[place[v]] = u
                    place[v] += 1
    seen = np.full(n, -1, np.int32)
    start = np.zeros(n + 1, np.int64)
    kept = 0
    for v in range(n):
        start[v] = kept
        for i in range(count[v], count[v + 1]):
            u = raw[i]
            if seen[u] != v:
                seen[u] = v
                raw[kept] = u
                kept += 1
    start[n] = kept
    return start, raw[:kept].copy()


@kernel
def _sift_up(heap, where, key, i):
    v = heap[i]
    while i > 0:
        up = (i - 1) >> 1
        if key[heap[up]] <= key[v]:
            break
        heap[i] = heap[up]
        where[heap[i]] = i
        i = up
    heap[i] = v
    where[v] = i


@kernel
def _sift_down(heap, where, key, i, size):
    v = heap[i]
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        if down + 1 < size and key[heap[down + 1]] < key[heap[down]]:
            down += 1
        if key[heap[down]] >= key[v]:
            break
        heap[i] = heap[down]
        where[heap[i]] = i
        i = down
    heap[i] = v
    where[v] = i


@kernel
def greedy_order(start, neighbours, logs, stage, active, heuristic, noise, seed, limit, order, effort):
    """Fill `order` with an elimination order of the active vertices; return the total of its table sizes.

    `logs` holds log2 of the number of states; `stage` (small whole numbers) puts vertices of a smaller stage first. With
    `noise` zero ties go to the lower vertex; otherwise scores are perturbed by that relative amount and ties are random.
    Gives up with infinity once the total passes `limit`. Adds the steps taken to `effort[0]`.
    """
    n = len(logs)
    begin = np.empty(n, np.int64)
    length = np.zeros(n, np.int32)
    room = np.zeros(n, np.int32)
    used = 0
    for v in range(n):
        size = start[v + 1] - start[v]
        begin[v] = used
        length[v] = size
        room[v] = size + 4
        used += room[v]
    pool = np.empty(2 * used + 64, np.int32)
    for v in range(n):
        for i in range(length[v]):
            pool[begin[v] + i] = neighbours[start[v] + i]
    filling = heuristic == 1 or heuristic == 3
    weighted = heuristic == 3
    mark = np.full(n, -1, np.int64)
    inside = np.full(n, -1, np.int64)
    stamp = 0
    score = np.zeros(n)
    key = np.zeros(n)
    heap = np.empty(n, np.int32)
    where = np.full(n, -1, np.int32)
    remaining = 0
    countable = True  # a weighted score of zero means no fill edge, unless some weight is zero
    for v in range(n):
        if weighted and active[v] and logs[v] == 0.0:
            countable = False
    steps = used
    state = np.uint64(seed) * np.uint64(2862933555777941757) + np.uint64(3037000493)
    # first scores
    for v in range(n):
        if not active[v]:
            continue
        s = 0.0
        if filling:
            stamp += 1
            for i in range(length[v]):
                mark[pool[begin[v] + i]] = stamp
            for i in range(length[v]):
                u = pool[begin[v] + i]
                steps += length[u]
                if weighted:
                    linked = 0.0
                    total = 0.0
                    for j in range(length[u]):
                        if mark[pool[begin[u] + j]] == stamp:
                            linked += 1.0
                            total += logs[pool[begin[u] + j]]
                    s -= total + linked * logs[u]
                    s += (length[v] - 1) * logs[u]
                else:
                    for j in range(length[u]):
                        if mark[pool[begin[u] + j]] == stamp:
                            s -= 1.0
            if weighted:
                whole = 0.0
                for i in range(length[v]):
                    whole += logs[pool[begin[v] + i]]
                s += (length[v] - 1) * whole
                s *= 0.5
            else:
                s = 0.5 * (s + length[v] * (length[v] - 1.0))
        elif heuristic == 0:
            s = length[v]
        else:
            s = logs[v]
            for i in range(length[v]):
                s += logs[pool[begin[v] + i]]
        score[v] = s
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        r = (state >> np.uint64(11)) * (1.0 / 9007199254740992.0)
        key[v] = stage[v] * 1e12 + (s * (1.0 + noise * r) + 1e-6 * r if noise > 0 else s)
        heap[remaining] = v
        where[v] = remaining
        remaining += 1
    for i in range(remaining // 2 - 1, -1, -1):
        _sift_down(heap, where, key, i, remaining)
    total_size = 0.0
    done = 0
    while remaining > 0:
        v = heap[0]
        remaining -= 1
        if remaining > 0:
            heap[0] = heap[remaining]
            where[heap[0]] = 0
            _sift_down(heap, where, key, 0, remaining)
        where[v] = -1
        order[done] = v
        done += 1
        size = logs[v]
        d = length[v]
        b = begin[v]
        for i in range(d):
            size += logs[pool[b + i]]
        total_size += 2.0**size
        if total_size > limit:
            effort[0] += steps
            return np.inf
        # take v out, join its neighbours
        stamp += 1
        ring = stamp
        for i in range(d):
            inside[pool[b + i]] = ring
        complete = filling and countable and score[v] < 1e-9
        for i in range(d):
            u = pool[b + i]
            bu = begin[u]
            steps += length[u] + d
            for j in range(length[u]):
                if pool[bu + j] == v:
                    length[u] -= 1
                    pool[bu + j] = pool[bu + length[u]]
                    break
        if not complete:
            for i in range(d):
                u = pool[b + i]
                stamp += 1
                bu = begin[u]
                for j in range(length[u]):
                    mark[pool[bu + j]] = stamp
                mark[u] = stamp
                for k in range(i + 1, d):
                    w = pool[b + k]
                    if mark[w] == stamp:
                        continue
                    # a fill edge u - w: common neighbours outside the ring lose one missing edge
                    if filling:
                        steps += length[w]
                        loss = logs[u] + logs[w] if weighted else 1.0
                        bw = begin[w]
                        for j in range(length[w]):
                            x = pool[bw + j]
                            if mark[x] == stamp and inside[x] != ring:
                                score[x] -= loss
                                if where[x] >= 0:
                                    key[x] -= loss
                                    _sift_up(heap, where, key, where[x])
                    for side in range(2):
                        p = u if side == 0 else w
                        q = w if side == 0 else u
                        if length[p] == room[p]:
                            need = 2 * room[p] + 4
                            if used + need > len(pool):
                                grown = np.empty(2 * len(pool) + need, np.int32)
                                grown[:used] = pool[:used]
                                pool = grown
                            for j in range(length[p]):
                                pool[used + j] = pool[begin[p] + j]
                            begin[p] = used
                            room[p] = need
                            used += need
                        pool[begin[p] + length[p]] = q
                        length[p] += 1
        # the ring's own scores
        for i in range(d):
            u = pool[b + i]
            bu = begin[u]
            s = 0.0
            if heuristic == 0:
                s = length[u]
            elif heuristic == 2:
                s = logs[u]
                for j in range(length[u]):
                    s += logs[pool[bu + j]]
            elif complete:
                # no edge was added: u loses the pairs (v, x) that were missing
                s = score[u]
                for j in range(length[u]):
                    x = pool[bu + j]
                    if inside[x] != ring:
                        s -= logs[v] + logs[x] if weighted else 1.0
            else:
                stamp += 1
                whole = 0.0
                for j in range(length[u]):
                    mark[pool[bu + j]] = stamp
                    whole += logs[pool[bu + j]]
                s = (length[u] - 1) * whole if weighted else 0.5 * length[u] * (length[u] - 1.0)
                linked = 0.0
                for j in range(length[u]):
                    x = pool[bu + j]
                    bx = begin[x]
                    count = 0
                    steps += length[x]
                    for k in range(length[x]):
                        if mark[pool[bx + k]] == stamp:
                            count += 1
                    linked += count * logs[x] if weighted else 0.5 * count
                s -= linked
            score[u] = s
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            r = (state >> np.uint64(11)) * (1.0 / 9007199254740992.0)
            old = key[u]
            key[u] = stage[u] * 1e12 + (s * (1.0 + noise * r) + 1e-6 * r if noise > 0 else s)
            if key[u] < old:
                _sift_up(heap, where, key, where[u])
            else:
                _sift_down(heap, where, key, where[u], remaining)
    effort[0] += steps
    return total_size


@kernel
def search_order(start, neighbours, logs, stage, active, share, most, order):
    """Try several heuristics, then perturbed restarts; write the best order found and return its total.

    Pass 0 is min-fill, 1 weighted-min-fill, 2 min-weight; later passes are these with noise. The search goes on while the
    next pass would keep its steps below `share` times the best total so far, and below `most`: what it may cost grows with
    what it may save. It ends at a fifth of that if the last four passes found nothing better. Counting steps instead of
    seconds makes plans reproducible.
    """
    trial = np.empty(len(order), order.dtype)
    effort = np.zeros(1)
    best = np.inf
    k = 0
    latest = 0
    while True:
        kind = k % 3
        heuristic = 1
        if kind == 1:
            heuristic = 3
        elif kind == 2:
            heuristic = 2
        noise = 0.0 if k < 3 else 1e-9 + 0.03 * ((k // 3) % 8)
        total = greedy_order(start, neighbours, logs, stage, active, heuristic, noise, k, best, trial, effort)
        if total < best or k == 0:
            if total < 0.99 * best:
                latest = k
            best = total
            order[:] = trial
        k += 1
        allowed = min(most, share * best)
        next_effort = effort[0] * (1.0 + 1.0 / k)
        if next_effort > allowed or (k - latest > 4 and next_effort > 0.2 * allowed):
            return best
