"""Messages between the variables and the factors of a factor graph, in flat buffers, and their schedules.

Of `MessageBuffers`, `m` are the messages from factors to variables and `n` those from variables to factors. `kind` is 0 for
sums of products, 1 for the same in logarithms and 2 for maxima in logarithms. In kind 0 messages add up to one, in kind 1
their exponentials do, in kind 2 their largest entry is zero.

The graph is a `ListedGraph`, with logs in place of weights unless the kind is 0.
"""

from math import exp, inf, log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.messages.factor_messages import factor_messages
from markovia.kernels.messages.pair_sweeps import TINY, gather_sums, rescale, send_pair
from markovia.kernels.pointers import pointer, pointers


@inner(bare=True)
def _gather_logs(g, v, m, n, room):
    """Compute the messages from one variable to all its factors in logarithms: sums of all messages but one."""
    k = g.cards[v]
    u = g.starts[v]
    first = g.edge_ptr[v]
    last = g.edge_ptr[v + 1]
    for s in range(k):
        room[s] = g.unary[u + s]
    for p in range(first, last):
        o = g.at[g.edges[p]]
        for s in range(k):
            n[o + s] = room[s]
            room[s] += m[o + s]
    for s in range(k):
        room[s] = 0.0
    for p in range(last - 1, first - 1, -1):
        o = g.at[g.edges[p]]
        for s in range(k):
            n[o + s] += room[s]
            room[s] += m[o + s]


@inner(bare=True)
def _log_dot(kind, x, a, y, b, k):
    """Return the log of the sum of products of two messages."""
    if kind == 0:
        total = 0.0
        for s in range(k):
            total += x[a + s] * y[b + s]
        return log(total) if total > 0.0 else -inf
    top = -inf
    for s in range(k):
        top = max(top, x[a + s] + y[b + s])
    if top == -inf or kind == 2:
        return top
    total = 0.0
    for s in range(k):
        total += exp(x[a + s] + y[b + s] - top)
    return top + log(total)


@inner(bare=True)
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
    top = -inf
    for s in range(k):
        top = max(top, work[w + s])
    if top == -inf:
        for s in range(k):
            m[o + s] = -inf
        return -1.0
    if kind == 1:
        total = 0.0
        for s in range(k):
            total += exp(work[w + s] - top)
        top += log(total)
    for s in range(k):
        fresh = work[w + s] - top
        old = m[o + s]
        moved = max(moved, abs(exp(fresh) - exp(old)))
        m[o + s] = fresh + damping * (old - fresh) if damping > 0.0 and fresh > -inf else fresh
    return moved


@inner(bare=True)
def _send(g, kind, damping, f, work, m):
    """Store the messages of one factor; return the largest move, or -1 if one vanished."""
    first = g.scope_ptr[f]
    moved = 0.0
    for e in range(first, g.scope_ptr[f + 1]):
        step = _commit(kind, damping, g.at[e], g.at[e + 1] - g.at[e], work, g.at[e] - g.at[first], m)
        if step < 0.0:
            return -1.0
        moved = max(moved, step)
    return moved


@kernel(bare=True)
def sweeps(graph, kind, limits, order, backward, buffers, log_z):
    """Let nodes send in the given order (or from its end), in so many rounds: v is a variable, -1 - f a factor.

    Returns the rounds made and the largest move of the last one, or -1 if a message vanished. If `log_z` is not
    empty, factors do not send but write there the log of their total weight under the incoming messages.
    """
    damping, tolerance, rounds = limits
    nodes, weigh, n_dense = len(order), len(log_z) > 0, len(graph.table_ptr) - 1
    g, order, log_z = pointers(graph), pointer(order), pointer(log_z)
    m, n, work, stack = pointers(buffers)
    fast = kind == 0 and not weigh
    moved = 0.0
    for r in range(rounds):
        moved = 0.0
        for i in range(nodes):
            node = order[nodes - 1 - i] if backward else order[i]
            if node >= 0:
                if kind == 0:
                    gather_sums(g, node, m, n, work)
                else:
                    _gather_logs(g, node, m, n, work)
                continue
            f = -1 - node
            if fast and f < n_dense and g.scope_ptr[f + 1] - g.scope_ptr[f] == 2:
                step = send_pair(g, damping, g.table_ptr[f], g.scope_ptr[f], n, m, work)
                if step < 0.0:
                    return r + 1, -1.0
                moved = max(moved, step)
                continue
            shift = factor_messages(g, kind, f, n_dense, n, work, stack)
            if weigh:
                first = g.scope_ptr[f]
                log_z[f] = _log_dot(kind, work, 0, n, g.at[first], g.at[first + 1] - g.at[first]) + shift
                continue
            step = _send(g, kind, damping, f, work, m)
            if step < 0.0:
                return r + 1, -1.0
            moved = max(moved, step)
        if moved < tolerance:
            return r + 1, moved
    return rounds, moved


@kernel(bare=True)
def residual(graph, kind, limits, queue, buffers):
    """Update the factor whose incoming messages changed most, again and again; return the updates and the urgency left."""
    damping, tolerance, steps = limits
    n_factors, n_dense = len(queue.heap), len(graph.table_ptr) - 1
    g = pointers(graph)
    heap, place, urgency = pointers(queue)
    m, n, work, stack = pointers(buffers)
    for step in range(steps):
        f = heap[0]
        if urgency[f] < tolerance:
            return step, urgency[f]
        for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
            _to_one(g, kind, e, g.scope[e], m, n)
        factor_messages(g, kind, f, n_dense, n, work, stack)
        urgency[f] = 0.0
        own = 0.0
        for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
            moved = _commit(
                kind, damping, g.at[e], g.at[e + 1] - g.at[e], work, g.at[e] - g.at[g.scope_ptr[f]], m
            )
            if moved < 0.0:
                return step + 1, -1.0
            own = max(own, damping * moved)
            v = g.scope[e]
            if moved <= 0.0:
                continue
            for p in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
                other = g.edge_factor[g.edges[p]]
                if other != f:
                    urgency[other] += moved * (1.0 - damping)
                    _sift(heap, place, urgency, n_factors, other)
        urgency[f] = own
        _sift(heap, place, urgency, n_factors, f)
    return steps, urgency[heap[0]]


@inner(bare=True)
def _to_one(g, kind, e, v, m, n):
    """Compute the message from a variable to one factor."""
    k = g.cards[v]
    o = g.at[e]
    for s in range(k):
        n[o + s] = g.unary[g.starts[v] + s]
    for p in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
        if g.edges[p] == e:
            continue
        i = g.at[g.edges[p]]
        if kind > 0:
            for s in range(k):
                n[o + s] += m[i + s]
        else:
            for s in range(k):
                n[o + s] *= m[i + s]
            rescale(n, o, k)


@inner(bare=True)
def _sift(heap, place, urgency, n, f):
    """Move a factor to where its urgency belongs."""
    i = place[f]
    mine = urgency[f]
    while i > 0 and urgency[heap[(i - 1) // 2]] < mine:
        heap[i] = heap[(i - 1) // 2]
        place[heap[i]] = i
        i = (i - 1) // 2
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and urgency[heap[child + 1]] > urgency[heap[child]]:
            child += 1
        if urgency[heap[child]] <= mine:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = f
    place[f] = i


@kernel(bare=True)
def beliefs(graph, kind, m, out):
    """Write the belief of every variable, adding up to one (or with maximum one), into out.

    Returns the sum over variables of the log of what was divided out; minus infinity if one vanished.
    """
    variables = len(graph.cards)
    g, m, out = pointers(graph), pointer(m), pointer(out)
    total = 0.0
    for v in range(variables):
        k = g.cards[v]
        u = g.starts[v]
        shift = 0.0
        for s in range(k):
            out[u + s] = g.unary[u + s]
        for p in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            o = g.at[g.edges[p]]
            if kind > 0:
                for s in range(k):
                    out[u + s] += m[o + s]
            else:
                top = 0.0
                for s in range(k):
                    out[u + s] *= m[o + s]
                    top = max(top, out[u + s])
                if 0.0 < top < TINY:
                    shift += log(top)
                    for s in range(k):
                        out[u + s] /= top
        if kind > 0:
            top = -inf
            for s in range(k):
                top = max(top, out[u + s])
            if top == -inf:
                return -inf
            shift = top
            for s in range(k):
                out[u + s] = exp(out[u + s] - top)
        mass = 0.0
        for s in range(k):
            mass += out[u + s]
        if not mass > 0.0:
            return -inf
        total += shift + log(mass)
        if kind < 2:
            for s in range(k):
                out[u + s] /= mass
    return total


@kernel(bare=True)
def breadth_first(graph, order, seen):
    """Write all nodes of a factor graph in breadth-first order (v a variable, -1 - f a factor); return the number of parts.

    `seen` holds a zero for each node.
    """
    n = len(graph.cards)
    g, order, seen = pointers(graph), pointer(order), pointer(seen)
    parts = 0
    end = 0
    for root in range(n):
        if seen[root]:
            continue
        parts += 1
        seen[root] = 1
        begin = end
        order[end] = root
        end += 1
        while begin < end:
            node = order[begin]
            begin += 1
            if node >= 0:
                for p in range(g.edge_ptr[node], g.edge_ptr[node + 1]):
                    f = g.edge_factor[g.edges[p]]
                    if not seen[n + f]:
                        seen[n + f] = 1
                        order[end] = -1 - f
                        end += 1
            else:
                for e in range(g.scope_ptr[-1 - node], g.scope_ptr[-node]):
                    if not seen[g.scope[e]]:
                        seen[g.scope[e]] = 1
                        order[end] = g.scope[e]
                        end += 1
    return parts
