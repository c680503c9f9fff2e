"""Log tables of a flat graph averaged over independent distributions of the variables: mean field, and relaxations.

A distribution that gives a zero entry no mass does not feel it (0 times minus infinity is 0).
"""

from markovia.kernels.kernel import inner


@inner(bare=True)
def expected(g, f, a, q, buffer, out):
    """Write to `out` the expectation of one log table for each state of the variable at place `a` of its scope."""
    s0, s1 = g.scope_ptr[f], g.scope_ptr[f + 1]
    t0 = g.table_ptr[f]
    size = g.table_ptr[f + 1] - t0
    for o in range(size):
        buffer[o] = g.values[t0 + o]
    for b in range(s1 - s0 - 1, a, -1):  # sum out the last axis, again and again
        j = g.scope[s0 + b]
        c = g.cards[j]
        size //= c
        for o in range(size):
            total = 0.0
            for y in range(c):
                p = q[g.starts[j] + y]
                if p > 0.0:
                    total += p * buffer[o * c + y]
            buffer[o] = total
    for b in range(a):  # then the first
        j = g.scope[s0 + b]
        c = g.cards[j]
        size //= c
        for o in range(size):
            total = 0.0
            for y in range(c):
                p = q[g.starts[j] + y]
                if p > 0.0:
                    total += p * buffer[y * size + o]
            buffer[o] = total
    for o in range(size):
        out[o] = buffer[o]


@inner(bare=True)
def slopes(g, i, q, buffer, row, out):
    """Write to `row` the expected logs of all tables around variable i, for each of its states."""
    c = g.cards[i]
    for x in range(c):
        row[x] = g.unary[g.starts[i] + x]
    for e in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
        edge = g.edges[e]
        f = g.edge_factor[edge]
        s0 = g.scope_ptr[f]
        if g.scope_ptr[f + 1] - s0 == 2:  # in place: a call costs more than a pair's table
            j = g.scope[2 * s0 + 1 - edge]
            mine = 1 if edge > s0 else g.cards[j]
            other = c if edge > s0 else 1
            for x in range(c):
                total = 0.0
                for y in range(g.cards[j]):
                    p = q[g.starts[j] + y]
                    if p > 0.0:
                        total += p * g.values[g.table_ptr[f] + x * mine + y * other]
                row[x] += total
            continue
        expected(g, f, edge - s0, q, buffer, out)
        for x in range(c):
            row[x] += out[x]
