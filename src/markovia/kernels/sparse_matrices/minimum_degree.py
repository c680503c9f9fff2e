"""Elimination orders of large sparse symmetric matrices: approximate minimum degree on a quotient graph.

Method: Amestoy, Davis, Duff (1996). An eliminated vertex becomes an element, the set of its neighbours, instead of a clique
of fill edges; elements that a new one covers are absorbed, vertices that cannot be told apart are treated as one, and the
degree of a vertex is bounded from above by the sizes of its elements outside the newest one.
Cost: near linear in the number of entries; memory for the entries and the elements, never for the fill.
When to use: hundreds of thousands of vertices, where min-fill on the filled graph takes too long.
"""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def minimum_degree(start, near):
    """Return an elimination order of the graph whose vertex v has the neighbours `near[start[v]:start[v + 1]]`.

    Both directions of an edge are listed, and no vertex is its own neighbour.
    """
    n = len(start) - 1
    pool = np.empty(len(near) + len(near) // 2 + n + 16, np.int64)
    pool[: len(near)] = near
    used = len(near)
    begin = start[:n].copy()
    size = np.empty(n, np.int64)  # of the list of a vertex: elements first, then vertices
    elements = np.zeros(n, np.int64)  # how many of the list are elements
    weight = np.ones(
        n, np.int64
    )  # vertices that a vertex stands for; 0 once it is eliminated or joined to another
    joined = np.full(n, -1, np.int64)
    alive = np.zeros(n, np.bool_)  # elements that are not absorbed
    covered = np.zeros(n, np.int64)  # vertices in an element, by weight
    degree = np.empty(n, np.int64)
    head = np.full(n + 1, -1, np.int64)  # vertices by degree, in doubly linked lists
    after = np.full(n, -1, np.int64)
    before = np.full(n, -1, np.int64)
    mark = np.zeros(n, np.int64)
    outside = np.zeros(n, np.int64)
    stamp_of = np.zeros(n, np.int64)
    bucket = np.full(n, -1, np.int64)
    next_alike = np.full(n, -1, np.int64)
    key = np.zeros(n, np.int64)
    rank = np.full(n, -1, np.int64)
    stamp = 0
    for v in range(n):
        size[v] = start[v + 1] - start[v]
        degree[v] = size[v]
    for v in range(n - 1, -1, -1):
        d = degree[v]
        after[v] = head[d]
        if head[d] >= 0:
            before[head[d]] = v
        head[d] = v
    eliminated = 0
    least = 0
    steps = 0
    while eliminated < n:
        while head[least] < 0:
            least += 1
        p = head[least]
        head[least] = after[p]
        if after[p] >= 0:
            before[after[p]] = -1
        # the new element: all neighbours of p, through elements or not
        stamp += 1
        mark[p] = stamp
        room = 0
        for i in range(begin[p], begin[p] + size[p]):
            x = pool[i]
            room += size[x] if i < begin[p] + elements[p] else 1
        if used + room > len(pool):
            more = np.empty(2 * len(pool) + room, np.int64)
            more[:used] = pool[:used]
            pool = more
        first = used
        mass = 0
        for i in range(begin[p], begin[p] + size[p]):
            x = pool[i]
            if i < begin[p] + elements[p]:
                if not alive[x]:
                    continue
                alive[x] = False
                low, high = begin[x], begin[x] + size[x]
            else:
                low, high = i, i + 1
            for k in range(low, high):
                v = pool[k]
                if weight[v] > 0 and mark[v] != stamp:
                    mark[v] = stamp
                    pool[used] = v
                    used += 1
                    mass += weight[v]
        last = used
        eliminated += weight[p]
        alive[p] = True
        rank[p] = steps
        steps += 1
        # by how much elements reach beyond the new one
        for k in range(first, last):
            v = pool[k]
            if before[v] >= 0:
                after[before[v]] = after[v]
            else:
                head[degree[v]] = after[v]
            if after[v] >= 0:
                before[after[v]] = before[v]
            before[v] = -1
            for i in range(begin[v], begin[v] + elements[v]):
                e = pool[i]
                if not alive[e]:
                    continue
                if stamp_of[e] != stamp:
                    stamp_of[e] = stamp
                    outside[e] = covered[e]
                outside[e] -= weight[v]
        for k in range(first, last):
            v = pool[k]
            at = begin[v]
            bound = 0
            code = p
            for i in range(begin[v], begin[v] + elements[v]):
                e = pool[i]
                if alive[e]:
                    if outside[e] > 0:
                        bound += outside[e]
                        code += e
                        pool[at] = e
                        at += 1
                    else:
                        alive[e] = False
            kept = at
            for i in range(begin[v] + elements[v], begin[v] + size[v]):
                u = pool[i]
                if weight[u] > 0 and mark[u] != stamp:
                    bound += weight[u]
                    code += u
                    pool[at] = u
                    at += 1
            if bound == 0:  # nothing but the new element: eliminated along with p
                eliminated += weight[v]
                mass -= weight[v]
                weight[p] += weight[v]
                weight[v] = 0
                joined[v] = p
                continue
            if at > kept:
                pool[at] = pool[kept]
            pool[kept] = p
            at += 1
            elements[v] = kept + 1 - begin[v]
            size[v] = at - begin[v]
            degree[v] = min(degree[v] + mass, bound + mass)
            key[v] = code % n
        # vertices with equal lists are treated as one
        for k in range(first, last):
            v = pool[k]
            if weight[v] > 0:
                next_alike[v] = bucket[key[v]]
                bucket[key[v]] = v
        for k in range(first, last):
            v = pool[k]
            if weight[v] == 0 or bucket[key[v]] < 0:
                continue
            i = bucket[key[v]]
            bucket[key[v]] = -1
            while i >= 0 and next_alike[i] >= 0:
                stamp += 1
                for t in range(begin[i], begin[i] + size[i]):
                    mark[pool[t]] = stamp
                previous = i
                j = next_alike[i]
                while j >= 0:
                    same = size[j] == size[i] and elements[j] == elements[i]
                    if same:
                        for t in range(begin[j], begin[j] + size[j]):
                            if mark[pool[t]] != stamp:
                                same = False
                                break
                    following = next_alike[j]
                    if same:
                        weight[i] += weight[j]
                        degree[i] -= weight[j]
                        weight[j] = 0
                        joined[j] = i
                        next_alike[previous] = following
                    else:
                        previous = j
                    j = following
                i = next_alike[i]
        weight[p] = 0
        at = first
        for k in range(first, last):
            v = pool[k]
            if weight[v] == 0:
                continue
            pool[at] = v
            at += 1
            d = max(min(degree[v] - weight[v], n - eliminated - weight[v]), 0)
            degree[v] = d
            after[v] = head[d]
            if head[d] >= 0:
                before[head[d]] = v
            head[d] = v
            least = min(least, d)
        begin[p] = first
        size[p] = at - first
        used = at
        covered[p] = mass
        alive[p] = at > first
    # a vertex comes with the one that it was joined to
    count = np.zeros(steps + 1, np.int64)
    for v in range(n):
        root = v
        while joined[root] >= 0:
            root = joined[root]
        rank[v] = rank[root]
        count[rank[v] + 1] += 1
    for k in range(steps):
        count[k + 1] += count[k]
    order = np.empty(n, np.int64)
    for v in range(n):
        order[count[rank[v]]] = v
        count[rank[v]] += 1
    return order
