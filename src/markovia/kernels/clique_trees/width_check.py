"""How wide a graph is, told quickly: eliminate by least degree and stop as soon as a clique is too large."""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def widest_clique(pointers, others, bits, limit):
    """Return the size, in bits, of the largest clique of a least-degree elimination, or of the first over the limit.

    `others[pointers[v] : pointers[v + 1]]` are the neighbours of v in increasing order; `bits` holds the log2 of the
    number of states of each node.
    """
    n = len(bits)
    pool = np.empty(2 * len(others) + 1024, dtype=np.int64)
    pool[: len(others)] = others
    used = len(others)
    begin = pointers[:n].copy()
    size = pointers[1:] - pointers[:n]
    room = size.copy()
    top = 1
    for v in range(n):
        top = max(top, size[v] + 1)
    head = np.full(n + 1, -1, dtype=np.int64)  # lists of nodes by degree
    after = np.full(n, -1, dtype=np.int64)
    before = np.full(n, -1, dtype=np.int64)
    for v in range(n - 1, -1, -1):
        d = size[v]
        after[v] = head[d]
        if head[d] >= 0:
            before[head[d]] = v
        head[d] = v
    merged = np.empty(n, dtype=np.int64)
    largest = 0.0
    least = 0
    for _ in range(n):
        while head[least] < 0:
            least += 1
        v = head[least]
        head[least] = after[v]
        if after[v] >= 0:
            before[after[v]] = -1
        degree = size[v]
        clique = bits[v]
        for k in range(degree):
            clique += bits[pool[begin[v] + k]]
        largest = max(largest, clique)
        if clique > limit:
            return largest
        for k in range(degree):
            u = pool[begin[v] + k]
            i, j, m = 0, 0, 0
            while i < size[u] or j < degree:  # both lists are in order
                if j >= degree or (i < size[u] and pool[begin[u] + i] <= pool[begin[v] + j]):
                    w = pool[begin[u] + i]
                    if j < degree and pool[begin[v] + j] == w:
                        j += 1
                    i += 1
                else:
                    w = pool[begin[v] + j]
                    j += 1
                if w != u and w != v:
                    merged[m] = w
                    m += 1
            if m != size[u]:
                d = size[u]
                if before[u] >= 0:
                    after[before[u]] = after[u]
                else:
                    head[d] = after[u]
                if after[u] >= 0:
                    before[after[u]] = before[u]
                before[u] = -1
                after[u] = head[m]
                if head[m] >= 0:
                    before[head[m]] = u
                head[m] = u
                least = min(least, m)
            if m > room[u]:
                if used + 2 * m > len(pool):
                    wider = np.empty(2 * len(pool) + 2 * m, dtype=np.int64)
                    wider[:used] = pool[:used]
                    pool = wider
                begin[u] = used
                room[u] = 2 * m
                used += 2 * m
            size[u] = m
            for i in range(m):
                pool[begin[u] + i] = merged[i]
    return largest
