"""Messages between the variables and the factors of a factor graph, in flat buffers, and their schedules.

`m` holds the messages from factors to variables and `n` those from variables to factors; the message of edge e lies at
`at[e] : at[e + 1]`, the edges of a factor one after the other. `kind` is 0 for sums of products, 1 for the same in
logarithms and 2 for maxima in logarithms. In kind 0 messages add up to one, in kind 1 their exponentials do, in kind 2
their largest entry is zero.

The tuple `ints` is (cards, starts, scope_ptr, scope, table_ptr, edge_ptr, edges, at, entry_ptr, code_ptr, codes,
edge_factor) and `floats` (unary, values, logs); see `inference/message_graph.py`.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.messages.factor_messages import factor_messages
from markovia.kernels.messages.pair_sweeps import TINY, gather_sums, rescale, send_pair
from markovia.kernels.uncounted_arrays import bare_floats, bare_ints


@inner
def _gather_logs(v, cards, starts, unary, edge_ptr, edges, at, m, n, room):
    """Compute the messages from one variable to all its factors in logarithms: sums of all messages but one."""
    k = cards[v]
    u = starts[v]
    first = edge_ptr[v]
    last = edge_ptr[v + 1]
    for s in range(k):
        room[s] = unary[u + s]
    for p in range(first, last):
        o = at[edges[p]]
        for s in range(k):
            n[o + s] = room[s]
            room[s] += m[o + s]
    for s in range(k):
        room[s] = 0.0
    for p in range(last - 1, first - 1, -1):
        o = at[edges[p]]
        for s in range(k):
            n[o + s] += room[s]
            room[s] += m[o + s]


@inner
def _log_dot(kind, x, a, y, b, k):
    """Return the log of the sum of products of two messages."""
    if kind == 0:
        total = 0.0
        for s in range(k):
            total += x[a + s] * y[b + s]
        return np.log(total) if total > 0.0 else -np.inf
    top = -np.inf
    for s in range(k):
        top = max(top, x[a + s] + y[b + s])
    if top == -np.inf or kind == 2:
        return top
    total = 0.0
    for s in range(k):
        total += np.exp(x[a + s] + y[b + s] - top)
    return top + np.log(total)


@inner
def _commit(kind, damping, o, k, work, w, m):
    """Normalise, damp and store one message; return how far it moved in probability, or -1 if it vanished."""
    moved = 0.0
    if kind == 0:
        total = 0.0
        for s in range(k):
            total += work[w + s]
        if not total > 0.0:
            for s in range(k):
                m[o + s] = 0.0
            return -1.0
        scale = 1.0 / total
        if damping == 0.0:
            for s in range(k):
                fresh = work[w + s] * scale
                moved = max(moved, abs(fresh - m[o + s]))
                m[o + s] = fresh
            return moved
        for s in range(k):
            fresh = work[w + s] * scale
            moved = max(moved, abs(fresh - m[o + s]))
            m[o + s] = fresh + damping * (m[o + s] - fresh) if fresh > 0.0 else 0.0
        return moved
    top = -np.inf
    for s in range(k):
        top = max(top, work[w + s])
    if top == -np.inf:
        for s in range(k):
            m[o + s] = -np.inf
        return -1.0
    if kind == 1:
        total = 0.0
        for s in range(k):
            total += np.exp(work[w + s] - top)
        top += np.log(total)
    for s in range(k):
        fresh = work[w + s] - top
        old = m[o + s]
        moved = max(moved, abs(np.exp(fresh) - np.exp(old)))
        m[o + s] = fresh + damping * (old - fresh) if damping > 0.0 and fresh > -np.inf else fresh
    return moved


@inner
def _send(kind, damping, f, scope_ptr, at, work, m):
    """Store the messages of one factor; return the largest move, or -1 if one vanished."""
    first = scope_ptr[f]
    moved = 0.0
    for e in range(first, scope_ptr[f + 1]):
        step = _commit(kind, damping, at[e], at[e + 1] - at[e], work, at[e] - at[first], m)
        if step < 0.0:
            return -1.0
        moved = max(moved, step)
    return moved


@kernel
def sweeps(
    kind, damping, tolerance, rounds, n_dense, order, backward, ints, floats, m, n, work, stack, log_z
):
    """Let nodes send in the given order (or from its end), in so many rounds: v is a variable, -1 - f a factor.

    Returns the rounds made and the largest move of the last one, or -1 if a message vanished. If `log_z` is not
    empty, factors do not send but write there the log of their total weight under the incoming messages.
    """
    cards, starts, scope_ptr = bare_ints(ints[0]), bare_ints(ints[1]), bare_ints(ints[2])
    table_ptr, edge_ptr, edges = bare_ints(ints[4]), bare_ints(ints[5]), bare_ints(ints[6])
    at, entry_ptr, code_ptr, codes = (
        bare_ints(ints[7]),
        bare_ints(ints[8]),
        bare_ints(ints[9]),
        bare_ints(ints[10]),
    )
    unary, values, logs = bare_floats(floats[0]), bare_floats(floats[1]), bare_floats(floats[2])
    m, n, work, stack = bare_floats(m), bare_floats(n), bare_floats(work), bare_ints(stack)
    fast = kind == 0 and len(log_z) == 0
    moved = 0.0
    for r in range(rounds):
        moved = 0.0
        for i in range(len(order)):
            node = order[len(order) - 1 - i] if backward else order[i]
            if node >= 0:
                if kind == 0:
                    gather_sums(node, cards, starts, unary, edge_ptr, edges, at, m, n, work)
                else:
                    _gather_logs(node, cards, starts, unary, edge_ptr, edges, at, m, n, work)
                continue
            f = -1 - node
            if fast and f < n_dense and scope_ptr[f + 1] - scope_ptr[f] == 2:
                step = send_pair(damping, table_ptr[f], scope_ptr[f], at, values, n, m, work)
                if step < 0.0:
                    return r + 1, -1.0
                moved = max(moved, step)
                continue
            shift = factor_messages(
                kind,
                f,
                n_dense,
                scope_ptr,
                table_ptr,
                values,
                at,
                entry_ptr,
                code_ptr,
                codes,
                logs,
                n,
                work,
                stack,
            )
            if len(log_z) > 0:
                first = scope_ptr[f]
                log_z[f] = _log_dot(kind, work, 0, n, at[first], at[first + 1] - at[first]) + shift
                continue
            step = _send(kind, damping, f, scope_ptr, at, work, m)
            if step < 0.0:
                return r + 1, -1.0
            moved = max(moved, step)
        if moved < tolerance:
            return r + 1, moved
    return rounds, moved


@kernel
def residual(kind, damping, tolerance, n_dense, steps, heap, place, urgency, ints, floats, m, n, work, stack):
    """Update the factor whose incoming messages changed most, again and again; return the updates and the urgency left.

    `heap` holds the factors as a binary heap on `urgency`, `place` where each one is in it. An urgency is what the
    incoming messages have moved since the factor last sent.
    """
    cards, starts, scope_ptr, scope = (
        bare_ints(ints[0]),
        bare_ints(ints[1]),
        bare_ints(ints[2]),
        bare_ints(ints[3]),
    )
    table_ptr, edge_ptr, edges = bare_ints(ints[4]), bare_ints(ints[5]), bare_ints(ints[6])
    at, entry_ptr, code_ptr, codes = (
        bare_ints(ints[7]),
        bare_ints(ints[8]),
        bare_ints(ints[9]),
        bare_ints(ints[10]),
    )
    edge_factor = bare_ints(ints[11])
    unary, values, logs = bare_floats(floats[0]), bare_floats(floats[1]), bare_floats(floats[2])
    m, n, work, stack = bare_floats(m), bare_floats(n), bare_floats(work), bare_ints(stack)
    heap, place, urgency = bare_ints(heap), bare_ints(place), bare_floats(urgency)
    for step in range(steps):
        f = heap[0]
        if urgency[f] < tolerance:
            return step, urgency[f]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            _to_one(kind, e, scope[e], cards, starts, unary, edge_ptr, edges, at, m, n)
        factor_messages(
            kind,
            f,
            n_dense,
            scope_ptr,
            table_ptr,
            values,
            at,
            entry_ptr,
            code_ptr,
            codes,
            logs,
            n,
            work,
            stack,
        )
        urgency[f] = 0.0
        own = 0.0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            moved = _commit(kind, damping, at[e], at[e + 1] - at[e], work, at[e] - at[scope_ptr[f]], m)
            if moved < 0.0:
                return step + 1, -1.0
            own = max(own, damping * moved)
            v = scope[e]
            if moved <= 0.0:
                continue
            for p in range(edge_ptr[v], edge_ptr[v + 1]):
                g = edge_factor[edges[p]]
                if g != f:
                    urgency[g] += moved * (1.0 - damping)
                    _sift(heap, place, urgency, g)
        urgency[f] = own
        _sift(heap, place, urgency, f)
    return steps, urgency[heap[0]]


@inner
def _to_one(kind, e, v, cards, starts, unary, edge_ptr, edges, at, m, n):
    """Compute the message from a variable to one factor."""
    k = cards[v]
    o = at[e]
    for s in range(k):
        n[o + s] = unary[starts[v] + s]
    for p in range(edge_ptr[v], edge_ptr[v + 1]):
        if edges[p] == e:
            continue
        i = at[edges[p]]
        if kind > 0:
            for s in range(k):
                n[o + s] += m[i + s]
        else:
            for s in range(k):
                n[o + s] *= m[i + s]
            rescale(n, o, k)


@inner
def _sift(heap, place, urgency, f):
    """Move a factor to where its urgency belongs."""
    i = place[f]
    mine = urgency[f]
    while i > 0 and urgency[heap[(i - 1) // 2]] < mine:
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i
        i = (i - 1) // 2
    while True:
        child = 2 * i + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and urgency[heap[child + 1]] > urgency[heap[child]]:
            child += 1
        if urgency[heap[child]] <= mine:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = f
    place[f] = i


@kernel
def beliefs(kind, ints, floats, m, out):
    """Write the belief of every variable, adding up to one (or with maximum one), into out.

    Returns the sum over variables of the log of what was divided out; minus infinity if one vanished.
    """
    cards, starts, _, _, _, edge_ptr, edges, at, _, _, _, _ = ints
    unary = floats[0]
    total = 0.0
    for v in range(len(cards)):
        k = cards[v]
        u = starts[v]
        shift = 0.0
        for s in range(k):
            out[u + s] = unary[u + s]
        for p in range(edge_ptr[v], edge_ptr[v + 1]):
            o = at[edges[p]]
            if kind > 0:
                for s in range(k):
                    out[u + s] += m[o + s]
            else:
                top = 0.0
                for s in range(k):
                    out[u + s] *= m[o + s]
                    top = max(top, out[u + s])
                if 0.0 < top < TINY:
                    shift += np.log(top)
                    for s in range(k):
                        out[u + s] /= top
        if kind > 0:
            top = -np.inf
            for s in range(k):
                top = max(top, out[u + s])
            if top == -np.inf:
                return -np.inf
            shift = top
            for s in range(k):
                out[u + s] = np.exp(out[u + s] - top)
        mass = 0.0
        for s in range(k):
            mass += out[u + s]
        if not mass > 0.0:
            return -np.inf
        total += shift + np.log(mass)
        if kind < 2:
            for s in range(k):
                out[u + s] /= mass
    return total


@kernel
def log_edges(kind, ints, m, n):
    """Return the sum over edges of the log of the total of both messages multiplied; minus infinity if one is zero."""
    at = ints[7]
    total = 0.0
    for e in range(len(at) - 1):
        share = _log_dot(kind, m, at[e], n, at[e], at[e + 1] - at[e])
        if share == -np.inf:
            return -np.inf
        total += share
    return total


@kernel
def breadth_first(scope_ptr, scope, edge_ptr, edges, edge_factor):
    """Return all nodes of a factor graph in breadth-first order (v a variable, -1 - f a factor) and the number of parts."""
    n = len(edge_ptr) - 1
    m = len(scope_ptr) - 1
    order = np.empty(n + m, np.int64)
    seen = np.zeros(n + m, np.bool_)
    parts = 0
    end = 0
    for root in range(n):
        if seen[root]:
            continue
        parts += 1
        seen[root] = True
        begin = end
        order[end] = root
        end += 1
        while begin < end:
            node = order[begin]
            begin += 1
            if node >= 0:
                for p in range(edge_ptr[node], edge_ptr[node + 1]):
                    f = edge_factor[edges[p]]
                    if not seen[n + f]:
                        seen[n + f] = True
                        order[end] = -1 - f
                        end += 1
            else:
                for e in range(scope_ptr[-1 - node], scope_ptr[-node]):
                    if not seen[scope[e]]:
                        seen[scope[e]] = True
                        order[end] = scope[e]
                        end += 1
    return order, parts
