"""Coordinate ascent on the evidence lower bound of a product of independent distributions.

`logs` are the logs of the tables one after the other; a distribution that gives a zero entry no mass does not feel it
(0 times minus infinity is 0).
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def expected(f, a, cards, starts, scope_ptr, scope, table_ptr, logs, q, buffer, out):
    """Write to `out` the expectation of one log table for each state of the variable at place `a` of its scope."""
    s0, s1 = scope_ptr[f], scope_ptr[f + 1]
    t0 = table_ptr[f]
    size = table_ptr[f + 1] - t0
    for o in range(size):
        buffer[o] = logs[t0 + o]
    for b in range(s1 - s0 - 1, a, -1):  # sum out the last axis, again and again
        j = scope[s0 + b]
        c = cards[j]
        size //= c
        for o in range(size):
            total = 0.0
            for y in range(c):
                p = q[starts[j] + y]
                if p > 0.0:
                    total += p * buffer[o * c + y]
            buffer[o] = total
    for b in range(a):  # then the first
        j = scope[s0 + b]
        c = cards[j]
        size //= c
        for o in range(size):
            total = 0.0
            for y in range(c):
                p = q[starts[j] + y]
                if p > 0.0:
                    total += p * buffer[y * size + o]
            buffer[o] = total
    for o in range(size):
        out[o] = buffer[o]


@kernel
def update(
    order,
    cards,
    starts,
    log_unary,
    scope_ptr,
    scope,
    table_ptr,
    logs,
    edge_ptr,
    edges,
    edge_factor,
    q,
    buffer,
    row,
    out,
):
    """Set the distribution of each variable in `order` to its best given the others; return the largest change."""
    change = 0.0
    for i in order:
        c = cards[i]
        s = starts[i]
        for x in range(c):
            row[x] = log_unary[s + x]
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            edge = edges[e]
            f = edge_factor[edge]
            s0 = scope_ptr[f]
            if scope_ptr[f + 1] - s0 == 2:  # in place: a call costs more than a pair's table
                j = scope[2 * s0 + 1 - edge]
                mine = 1 if edge > s0 else cards[j]
                other = c if edge > s0 else 1
                for x in range(c):
                    total = 0.0
                    for y in range(cards[j]):
                        p = q[starts[j] + y]
                        if p > 0.0:
                            total += p * logs[table_ptr[f] + x * mine + y * other]
                    row[x] += total
                continue
            expected(f, edge - s0, cards, starts, scope_ptr, scope, table_ptr, logs, q, buffer, out)
            for x in range(c):
                row[x] += out[x]
        top = row[0]
        for x in range(1, c):
            top = max(top, row[x])
        if top == -np.inf:
            continue
        total = 0.0
        for x in range(c):
            row[x] = np.exp(row[x] - top)
            total += row[x]
        for x in range(c):
            p = row[x] / total
            change = max(change, abs(p - q[s + x]))
            q[s + x] = p
    return change


@kernel
def bound_of_variables(cards, starts, log_unary, q):
    """Return the expected log weights of single variables plus their entropies."""
    total = 0.0
    for x in range(len(q)):
        p = q[x]
        if p > 0.0:
            total += p * (log_unary[x] - np.log(p))
    return total


@kernel
def bound_of_factors(first, last, cards, starts, scope_ptr, scope, table_ptr, logs, q, buffer, out):
    """Return the expected logs of some tables."""
    total = 0.0
    for f in range(first, last):
        s0 = scope_ptr[f]
        if scope_ptr[f + 1] - s0 == 2:
            i, j = scope[s0], scope[s0 + 1]
            for x in range(cards[i]):
                for y in range(cards[j]):
                    p = q[starts[i] + x] * q[starts[j] + y]
                    if p > 0.0:
                        total += p * logs[table_ptr[f] + x * cards[j] + y]
            continue
        expected(f, 0, cards, starts, scope_ptr, scope, table_ptr, logs, q, buffer, out)
        i = scope[scope_ptr[f]]
        for x in range(cards[i]):
            p = q[starts[i] + x]
            if p > 0.0:
                total += p * out[x]
    return total


@kernel
def ascend(
    order,
    cards,
    starts,
    log_unary,
    scope_ptr,
    scope,
    table_ptr,
    logs,
    edge_ptr,
    edges,
    edge_factor,
    q,
    buffer,
    row,
    out,
    tolerance,
    trace,
):
    """Make up to `len(trace)` sweeps, the bound after each in `trace`; return how many and the last change."""
    change = 0.0
    n_factors = len(table_ptr) - 1
    for sweep in range(len(trace)):
        change = update(
            order,
            cards,
            starts,
            log_unary,
            scope_ptr,
            scope,
            table_ptr,
            logs,
            edge_ptr,
            edges,
            edge_factor,
            q,
            buffer,
            row,
            out,
        )
        trace[sweep] = bound_of_variables(cards, starts, log_unary, q) + bound_of_factors(
            0, n_factors, cards, starts, scope_ptr, scope, table_ptr, logs, q, buffer, out
        )
        if change <= tolerance:
            return sweep + 1, change
    return len(trace), change
