"""Changing one variable at a time while that helps, on flat factor graphs."""

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointers

FORBIDDEN = -1e18
"""Stands for the log of zero in sums, so that fewer impossible tables are better than more."""
ROUNDS = 1000


@kernel(bare=True)
def climb(graph, codes, held, scores, queue, queued):
    """Set each variable to its best state given the others until nothing changes; return the changes made.

    The graph's tables are logs. `scores`, `queue` and `queued` are room: for the states of a variable, and for a number
    and a zero a variable.
    """
    n = len(codes)
    g = pointers(graph)
    codes, held, scores, queue, queued = pointers((codes, held, scores, queue, queued))
    first, count = 0, 0
    for i in range(n):
        if not held[i]:
            queue[count] = i
            queued[i] = 1
            count += 1
    changes = 0
    while count > 0 and changes < ROUNDS * n:
        i = queue[first]
        first = first + 1 if first + 1 < n else 0
        count -= 1
        queued[i] = 0
        card, begin = g.cards[i], g.starts[i]
        for x in range(card):
            scores[x] = max(g.unary[begin + x], FORBIDDEN)
        for k in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
            own = g.edges[k]
            f = g.edge_factor[own]
            at = g.table_ptr[f]
            for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                if e != own:
                    at += codes[g.scope[e]] * g.strides[e]
            for x in range(card):
                scores[x] += max(g.values[at + x * g.strides[own]], FORBIDDEN)
        best = codes[i]
        for x in range(card):
            if scores[x] > scores[best] + 1e-12 * (1.0 + abs(scores[best])):
                best = x
        if best == codes[i]:
            continue
        codes[i] = best
        changes += 1
        for k in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
            f = g.edge_factor[g.edges[k]]
            for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                j = g.scope[e]
                if j != i and not queued[j] and not held[j]:
                    queued[j] = 1
                    at = first + count
                    queue[at if at < n else at - n] = j
                    count += 1
    return changes
