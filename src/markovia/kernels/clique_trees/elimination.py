"""Greedy elimination orders in compiled code.

Method: repeatedly eliminate the vertex of lowest score and join its neighbours. Scores: fewest fill edges, smallest weighted
fill, smallest table; noise breaks ties at random and perturbs scores for restarts. A fill edge changes the score of its ends
and of their common neighbours, by what is found in one walk over the neighbours of one end; nothing is counted again. A
tournament holds the vertex of lowest score.
Cost: near linear in the size of the filled graph; a 1,000-vertex network takes a few milliseconds.
"""

from math import inf, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointers

Ints = NDArray[np.int64]

MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT = 0, 1, 2
"""The first passes of a search; later ones are these with noise."""
TIE = 1e-6
"""How far ties are broken at random: an order that comes from all sides makes a tree that runs in several threads."""
HOME = "markovia.kernels.clique_trees.elimination:search_order"
SMALL = 64
"""Vertices up to which a pass takes milliseconds without compiled code."""
NO_ROOM = -1.0
"""Instead of a total: the work arrays are too short."""


@kernel(bare=True)
def search_order(scopes, stage, first, share, most, limit, order, work, numbers):
    """Try several heuristics, then perturbed restarts; write the best order found.

    `scopes` are where each scope begins (scopes + 1,), the vertices of scopes, and the states of each vertex (n,). Returns
    the total of its table sizes (infinity if no order stays below `limit`, `NO_ROOM` if the search has to be called again
    with more room), and the total length of its cliques. Vertices of a smaller `stage` come first, those of a negative one
    are left out. Pass 0 is min-fill, 1 weighted-min-fill, 2 min-weight; later passes are these with noise; `first` is the
    one to begin with. The search goes on while the next pass would keep its steps below `share` times the best total so
    far, and below `most`: what it may cost grows with what it may save. It ends at a fifth of that if the last four passes
    found nothing better. Counting steps instead of seconds makes plans reproducible.

    `work` has room for `9 n + 2` numbers, twice the number of vertices rounded up to a power of two, and the lists of
    neighbours; `numbers` for `7 n + 1`.
    """
    n, n_scopes, end = len(scopes[2]), len(scopes[0]) - 1, len(work)
    scope_start, scope, card = pointers(scopes)
    stage, order, pool, logs = pointers((stage, order, work, numbers))
    leaves = 1
    while leaves < n:
        leaves *= 2
    near, begin, size, room = pool, beyond(pool, n + 1), beyond(pool, 2 * n + 1), beyond(pool, 3 * n + 1)
    old, mark, ring = beyond(pool, 4 * n + 1), beyond(pool, 5 * n + 1), beyond(pool, 6 * n + 1)
    queue, trial, winner = beyond(pool, 7 * n + 1), beyond(pool, 8 * n + 2), beyond(pool, 9 * n + 2)
    weight, score, key = beyond(logs, n), beyond(logs, 2 * n), beyond(logs, 3 * n)
    known = beyond(logs, 4 * n + 1)
    vertices = 0
    for v in range(n):
        mark[v] = -1
        ring[v] = 0
        size[v] = 0
        logs[v] = log2(card[v]) if card[v] > 1 else 1e-3
        if stage[v] >= 0:
            vertices += 1
    # who shares a scope with whom: lists with repetitions, which are then taken out
    for f in range(n_scopes):
        for i in range(scope_start[f], scope_start[f + 1]):
            size[scope[i]] += scope_start[f + 1] - scope_start[f]
    used = 9 * n + 2 + 2 * leaves
    for v in range(n):
        begin[v] = used
        used += size[v]
        size[v] = 0
    if used > end:
        return NO_ROOM, 0
    for f in range(n_scopes):
        for i in range(scope_start[f], scope_start[f + 1]):
            v = scope[i]
            for j in range(scope_start[f], scope_start[f + 1]):
                u = scope[j]
                if u != v and stage[u] >= 0 and stage[v] >= 0:
                    pool[begin[v] + size[v]] = u
                    size[v] += 1
    last = 9 * n + 2 + 2 * leaves
    for v in range(n):
        near[v] = last
        for i in range(begin[v], begin[v] + size[v]):
            u = pool[i]
            if mark[u] != v:
                mark[u] = v
                pool[last] = u
                last += 1
    near[n] = last
    seen = 0
    stamp = n
    steps = last
    latest = first
    length = 0
    k = first
    while True:
        kind = k % 3
        filling = kind != MIN_WEIGHT
        noise = 0.0 if k < 3 else 1e-9 + 0.03 * ((k // 3) % 8)
        state = k
        # the lists of this pass, with some room to grow
        used = last
        for v in range(n):
            d = near[v + 1] - near[v]
            if used + d + 4 > end:
                return NO_ROOM, 0
            begin[v] = used
            size[v] = d
            room[v] = d + 4
            for i in range(d):
                pool[used + i] = pool[near[v] + i]
            used += d + 4
            steps += d + 4
            weight[v] = 0.5 if kind == MIN_FILL else logs[v]
        # scores in the whole graph, worked out once for each kind: what eliminating a vertex fills in, or its table
        if not seen & (1 << kind):
            seen |= 1 << kind
            for v in range(n):
                s = 0.0 if filling else weight[v]
                stamp += 1
                whole = 0.0
                for i in range(near[v], near[v + 1]):
                    mark[pool[i]] = stamp
                    whole += weight[pool[i]]
                if filling:
                    for i in range(near[v], near[v + 1]):
                        u = pool[i]
                        missing = near[v + 1] - near[v] - 1
                        for j in range(near[u], near[u + 1]):
                            if mark[pool[j]] == stamp:
                                missing -= 1
                        s += missing * weight[u]
                        steps += near[u + 1] - near[u]
                else:
                    s += whole
                known[kind * n + v] = s
        # a tournament over all vertices: those of an earlier stage first, then small scores, ties and noise at random
        key[n] = inf
        for v in range(leaves):
            winner[leaves + v] = v if v < n else n
            if v < n:
                score[v] = known[kind * n + v]
                state = state * 6364136223846793005 + 1442695040888963407
                r = ((state >> 11) & 9007199254740991) * (1.0 / 9007199254740992.0)
                key[v] = stage[v] * 1e12 + score[v] * (1.0 + noise * r) + TIE * r if stage[v] >= 0 else inf
        for i in range(leaves - 1, 0, -1):
            winner[i] = winner[2 * i + 1] if key[winner[2 * i + 1]] < key[winner[2 * i]] else winner[2 * i]
        total = 0.0
        found = 0
        done = 0
        while done < vertices:
            # eliminate the winner; its clique is itself and its neighbours
            v = winner[1]
            first_near, d = begin[v], size[v]
            last_near = first_near + d
            entries = 1.0 * card[v]
            for i in range(first_near, last_near):
                entries *= card[pool[i]]
            total += entries
            if total > limit:
                break
            trial[done] = v
            done += 1
            found += d + 1
            # take v out of the lists of its neighbours, the ring
            stamp += 1
            inside = stamp
            queue[0] = v
            key[v] = inf
            waiting = 1
            for i in range(first_near, last_near):
                u = pool[i]
                ring[u] = inside
                queue[waiting] = u
                waiting += 1
                j = begin[u]
                while pool[j] != v:
                    j += 1
                size[u] -= 1
                old[u] = size[u]
                pool[j] = pool[begin[u] + size[u]]
                if not filling:
                    score[u] -= weight[v]
            complete = filling and score[v] < 1e-6
            for i in range(first_near, last_near):
                # u loses the pairs of v and its neighbours outside the ring
                u = pool[i]
                stamp += 1
                mark[u] = stamp
                outside = 0.0
                others = 0
                for j in range(begin[u], begin[u] + old[u]):
                    x = pool[j]
                    mark[x] = stamp
                    if ring[x] != inside:
                        outside += weight[x]
                        others += 1
                steps += old[u]
                if filling:
                    score[u] -= others * weight[v] + outside
                if complete:
                    continue
                steps += d
                for m in range(i + 1, last_near):
                    w = pool[m]
                    if mark[w] == stamp:
                        continue
                    # a fill edge from u to w: each gains its pairs with what only the other one sees outside the ring,
                    # and common neighbours lose the pair
                    if filling:
                        pair = weight[u] + weight[w]
                        gain = others * weight[w] + outside
                        steps += old[w]
                        for j in range(begin[w], begin[w] + old[w]):
                            x = pool[j]
                            if mark[x] == stamp:
                                score[x] -= pair
                                if ring[x] != inside:
                                    gain -= weight[w] + weight[x]
                                    if ring[x] != -inside:
                                        ring[x] = -inside
                                        queue[waiting] = x
                                        waiting += 1
                            elif ring[x] != inside:
                                score[w] += weight[u] + weight[x]
                        score[u] += gain
                    else:
                        score[u] += weight[w]
                        score[w] += weight[u]
                    # write the edge into both lists; a list that is full moves to the end, with room to double
                    p = u
                    q = w
                    for _ in range(2):
                        if size[p] == room[p]:
                            need = 2 * size[p] + 4
                            if used + need > end:
                                return NO_ROOM, 0
                            for j in range(size[p]):
                                pool[used + j] = pool[begin[p] + j]
                            begin[p] = used
                            room[p] = need
                            used += need
                        pool[begin[p] + size[p]] = q
                        size[p] += 1
                        p = w
                        q = u
            # play the matches again of all whose score changed
            for i in range(waiting):
                x = queue[i]
                if i > 0:
                    state = state * 6364136223846793005 + 1442695040888963407
                    r = ((state >> 11) & 9007199254740991) * (1.0 / 9007199254740992.0)
                    key[x] = stage[x] * 1e12 + score[x] * (1.0 + noise * r) + TIE * r
                j = (leaves + x) >> 1
                while j > 0:
                    a = winner[2 * j]
                    if key[winner[2 * j + 1]] < key[a]:
                        a = winner[2 * j + 1]
                    if a == winner[j] and a != x:
                        break
                    winner[j] = a
                    j >>= 1
        # a better order than the best so far
        if done == vertices and (total < limit or k == first):
            if total < 0.99 * limit:
                latest = k
            limit = total
            length = found
            for i in range(vertices):
                order[i] = trial[i]
        # go on only while another pass would cost little beside what it may save
        k += 1
        allowed = share * limit if share * limit < most else most
        expected = steps * (1.0 + 1.0 / (k - first))
        if expected > allowed or (k - latest > 4 and expected > 0.2 * allowed):
            return limit if length > 0 or vertices == 0 else inf, length


def find_order(
    scope_start: Ints,
    scope: Ints,
    card: Ints,
    stage: Ints,
    share: float,
    most: float,
    first: int = MIN_FILL,
    limit: float = inf,
) -> tuple[Ints, float, int]:
    """Search an elimination order; return `(order, total of its table sizes, total length of its cliques)`.

    Whole numbers of 64 bits all through; see `search_order` for the rest.
    """
    from markovia.kernels.plain_code import either

    n = len(card)
    order = np.empty(n, np.int64)
    if n == 0:
        return order, 0.0, 0
    room = 15 * n + 64 + 24 * len(scope)
    numbers = np.empty(7 * n + 1)

    def search(run: Any, most: float) -> tuple[float, int]:
        size = room
        while True:
            given = ((scope_start, scope, card), stage, first, share, most, limit, order)
            total, length = run(*given, np.empty(size, np.int64), numbers)
            if total != NO_ROOM:
                return total, length
            size *= 4

    # a first pass tells what all may cost; for a small graph plain code is done before a compiler would be
    run = either(HOME, 300.0 * len(scope)) if n <= SMALL else search_order
    if run is not search_order:
        total, length = search(run, 0.0)
        steps = most if total == inf else min(share * total, most)
        if steps == 0.0:
            return order, total, length
        run = either(HOME, 6.0 * steps)
    return order, *search(run, most)


def wider_than(scope_start: Ints, scope: Ints, card: Ints, bits: float) -> bool:
    """Say whether eliminating by smallest tables makes more than 2**bits entries; stops as soon as it does."""
    stage = np.zeros(len(card), np.int64)
    return find_order(scope_start, scope, card, stage, 0.0, 0.0, MIN_WEIGHT, 2.0**bits)[1] == inf
