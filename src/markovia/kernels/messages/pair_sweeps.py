"""Sums of products between variables and tables over two variables, the most frequent case.

Buffers as in `messages.py`. Each table is contracted in one pass with loops of its own that also normalise and store.
"""

from math import log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers

TINY = 1e-100
"""Products below it are scaled up."""


@kernel(bare=True)
def sweep_pairs(graph, limits, order, backward, buffers, log_z):
    """Let nodes send as `messages.sweeps` does, where every factor is a table over two variables."""
    damping, tolerance, rounds = limits
    nodes, weigh = len(order), len(log_z) > 0
    g, order, log_z = pointers(graph), pointer(order), pointer(log_z)
    m, n, work, _ = pointers(buffers)
    moved = 0.0
    for r in range(rounds):
        moved = 0.0
        for i in range(nodes):
            node = order[nodes - 1 - i] if backward else order[i]
            if node >= 0:
                gather_sums(g, node, m, n, work)
                continue
            f = -1 - node
            e = g.scope_ptr[f]
            if weigh:
                a, b, row = g.at[e], g.at[e + 1], g.table_ptr[f]
                total = 0.0
                for s in range(b - a):
                    for t in range(g.at[e + 2] - b):
                        total += n[a + s] * g.values[row] * n[b + t]
                        row += 1
                log_z[f] = log(total)
                continue
            step = send_pair(g, damping, g.table_ptr[f], e, n, m, work)
            if step < 0.0:
                return r + 1, -1.0
            moved = max(moved, step)
        if moved < tolerance:
            return r + 1, moved
    return rounds, moved


@inner(bare=True)
def gather_sums(g, v, m, n, room):
    """Compute the messages from one variable to all its factors: products of all messages but one."""
    k = g.cards[v]
    u = g.starts[v]
    first = g.edge_ptr[v]
    last = g.edge_ptr[v + 1]
    many = last - first > 4
    for s in range(k):
        room[s] = g.unary[u + s]
    for p in range(first, last):
        o = g.at[g.edges[p]]
        for s in range(k):
            n[o + s] = room[s]
            room[s] *= m[o + s]
        if many:
            rescale(room, 0, k)
    for s in range(k):
        room[s] = 1.0
    for p in range(last - 1, first - 1, -1):
        o = g.at[g.edges[p]]
        for s in range(k):
            n[o + s] *= room[s]
            room[s] *= m[o + s]
        if many:
            rescale(room, 0, k)
        rescale(n, o, k)


@inner(bare=True)
def rescale(x, o, k):
    """Divide a message by its largest entry if that is tiny."""
    top = x[o]
    for s in range(1, k):
        top = max(top, x[o + s])
    if 0.0 < top < TINY:
        for s in range(k):
            x[o + s] /= top


@inner(bare=True)
def send_pair(g, damping, t, e, n, m, work):
    """Send both messages of a table over two variables, of edges e and e + 1; return the larger move, or -1."""
    a, b, values = g.at[e], g.at[e + 1], g.values
    ka, kb = b - a, g.at[e + 2] - b
    if ka == 4 and kb == 4:
        return _pair_of_four(damping, t, a, b, values, n, m)
    if ka == 2 and kb == 2:
        return _pair_of_two(damping, t, a, b, values, n, m)
    return _pair_of_any(g, damping, t, e, n, m, work)


@inner(bare=True)
def _pair_of_four(damping, t, oa, ob, values, n, m):
    """Send both messages of a table over two variables of four states; return the larger move, or -1."""
    x, y, v = beyond(n, oa), beyond(n, ob), beyond(values, t)
    a0, a1, a2, a3 = x[0], x[1], x[2], x[3]
    b0, b1, b2, b3 = y[0], y[1], y[2], y[3]
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    r0 = v0 * b0 + v1 * b1 + v2 * b2 + v3 * b3
    c0, c1, c2, c3 = v0 * a0, v1 * a0, v2 * a0, v3 * a0
    v0, v1, v2, v3 = v[4], v[5], v[6], v[7]
    r1 = v0 * b0 + v1 * b1 + v2 * b2 + v3 * b3
    c0, c1, c2, c3 = c0 + v0 * a1, c1 + v1 * a1, c2 + v2 * a1, c3 + v3 * a1
    v0, v1, v2, v3 = v[8], v[9], v[10], v[11]
    r2 = v0 * b0 + v1 * b1 + v2 * b2 + v3 * b3
    c0, c1, c2, c3 = c0 + v0 * a2, c1 + v1 * a2, c2 + v2 * a2, c3 + v3 * a2
    v0, v1, v2, v3 = v[12], v[13], v[14], v[15]
    r3 = v0 * b0 + v1 * b1 + v2 * b2 + v3 * b3
    c0, c1, c2, c3 = c0 + v0 * a3, c1 + v1 * a3, c2 + v2 * a3, c3 + v3 * a3
    ra = (r0 + r1) + (r2 + r3)
    rb = (c0 + c1) + (c2 + c3)
    if not (ra > 0.0 and rb > 0.0):
        return -1.0
    ra = 1.0 / ra
    rb = 1.0 / rb
    r0 *= ra
    r1 *= ra
    r2 *= ra
    r3 *= ra
    c0 *= rb
    c1 *= rb
    c2 *= rb
    c3 *= rb
    d0 = m[oa] - r0
    d1 = m[oa + 1] - r1
    d2 = m[oa + 2] - r2
    d3 = m[oa + 3] - r3
    e0 = m[ob] - c0
    e1 = m[ob + 1] - c1
    e2 = m[ob + 2] - c2
    e3 = m[ob + 3] - c3
    m[oa] = r0 + damping * d0 if r0 > 0.0 else 0.0
    m[oa + 1] = r1 + damping * d1 if r1 > 0.0 else 0.0
    m[oa + 2] = r2 + damping * d2 if r2 > 0.0 else 0.0
    m[oa + 3] = r3 + damping * d3 if r3 > 0.0 else 0.0
    m[ob] = c0 + damping * e0 if c0 > 0.0 else 0.0
    m[ob + 1] = c1 + damping * e1 if c1 > 0.0 else 0.0
    m[ob + 2] = c2 + damping * e2 if c2 > 0.0 else 0.0
    m[ob + 3] = c3 + damping * e3 if c3 > 0.0 else 0.0
    left = max(max(abs(d0), abs(d1)), max(abs(d2), abs(d3)))
    return max(left, max(max(abs(e0), abs(e1)), max(abs(e2), abs(e3))))


@inner(bare=True)
def _pair_of_two(damping, t, oa, ob, values, n, m):
    """Send both messages of a table over two variables of two states; return the larger move, or -1."""
    r0 = values[t] * n[ob] + values[t + 1] * n[ob + 1]
    r1 = values[t + 2] * n[ob] + values[t + 3] * n[ob + 1]
    c0 = values[t] * n[oa] + values[t + 2] * n[oa + 1]
    c1 = values[t + 1] * n[oa] + values[t + 3] * n[oa + 1]
    if not (r0 + r1 > 0.0 and c0 + c1 > 0.0):
        return -1.0
    ra = 1.0 / (r0 + r1)
    rb = 1.0 / (c0 + c1)
    d0 = m[oa] - r0 * ra
    d1 = m[oa + 1] - r1 * ra
    e0 = m[ob] - c0 * rb
    e1 = m[ob + 1] - c1 * rb
    m[oa] = r0 * ra + damping * d0 if r0 > 0.0 else 0.0
    m[oa + 1] = r1 * ra + damping * d1 if r1 > 0.0 else 0.0
    m[ob] = c0 * rb + damping * e0 if c0 > 0.0 else 0.0
    m[ob + 1] = c1 * rb + damping * e1 if c1 > 0.0 else 0.0
    return max(max(abs(d0), abs(d1)), max(abs(e0), abs(e1)))


@inner(bare=True)
def _pair_of_any(g, damping, t, e, n, m, work):
    """Send both messages of a table over two variables in one pass over it; return the larger move, or -1."""
    oa, ob, values = g.at[e], g.at[e + 1], g.values
    ka, kb = ob - oa, g.at[e + 2] - ob
    total = 0.0
    for j in range(kb):
        work[j] = 0.0
    for i in range(ka):
        row = t + i * kb
        a = n[oa + i]
        s = 0.0
        for j in range(kb):
            s += values[row + j] * n[ob + j]
            work[j] += values[row + j] * a
        work[kb + i] = s
        total += s
    other = 0.0
    for j in range(kb):
        other += work[j]
    if not (total > 0.0 and other > 0.0):
        return -1.0
    total = 1.0 / total
    other = 1.0 / other
    moved = 0.0
    for i in range(ka):
        fresh = work[kb + i] * total
        d = m[oa + i] - fresh
        m[oa + i] = fresh + damping * d if fresh > 0.0 else 0.0
        moved = max(moved, abs(d))
    for j in range(kb):
        fresh = work[j] * other
        d = m[ob + j] - fresh
        m[ob + j] = fresh + damping * d if fresh > 0.0 else 0.0
        moved = max(moved, abs(d))
    return moved
