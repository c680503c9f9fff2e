"""Changing one variable at a time while that helps, on flat factor graphs."""

from markovia.kernels.kernel import kernel

FORBIDDEN = -1e18
"""Stands for the log of zero in sums, so that fewer impossible tables are better than more."""
ROUNDS = 1000


@kernel(_nrt=False)
def climb(
    codes,
    held,
    starts,
    log_unary,
    scope_ptr,
    scope,
    strides,
    table_ptr,
    log_values,
    edge_ptr,
    edges,
    edge_factor,
    scores,
    queue,
    queued,
):
    """Set each variable to its best state given the others until nothing changes; return the changes made.

    `scores`, `queue` and `queued` are room: for the states of a variable, and for a number and a flag a variable, false.
    """
    n = len(codes)
    first, count = 0, 0
    for i in range(n):
        if not held[i]:
            queue[count] = i
            queued[i] = True
            count += 1
    changes = 0
    while count > 0 and changes < ROUNDS * n:
        i = queue[first]
        first = first + 1 if first + 1 < n else 0
        count -= 1
        queued[i] = False
        card = starts[i + 1] - starts[i]
        for x in range(card):
            scores[x] = max(log_unary[starts[i] + x], FORBIDDEN)
        for k in range(edge_ptr[i], edge_ptr[i + 1]):
            e = edges[k]
            f = edge_factor[e]
            at = table_ptr[f]
            for o in range(scope_ptr[f], scope_ptr[f + 1]):
                if o != e:
                    at += codes[scope[o]] * strides[o]
            for x in range(card):
                scores[x] += max(log_values[at + x * strides[e]], FORBIDDEN)
        best = codes[i]
        for x in range(card):
            if scores[x] > scores[best] + 1e-12 * (1.0 + abs(scores[best])):
                best = x
        if best == codes[i]:
            continue
        codes[i] = best
        changes += 1
        for k in range(edge_ptr[i], edge_ptr[i + 1]):
            f = edge_factor[edges[k]]
            for o in range(scope_ptr[f], scope_ptr[f + 1]):
                j = scope[o]
                if j != i and not queued[j] and not held[j]:
                    queued[j] = True
                    at = first + count
                    queue[at if at < n else at - n] = j
                    count += 1
    return changes
