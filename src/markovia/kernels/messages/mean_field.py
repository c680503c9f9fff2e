"""Coordinate ascent on the evidence lower bound of a product of independent distributions.

The graph's tables are logs; a distribution that gives a zero entry no mass does not feel it
(0 times minus infinity is 0).
"""

from math import exp, inf, log

from markovia.kernels.expected_logs import expected, slopes
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer, pointers


@inner(bare=True)
def _bound(g, n_states, first, last, q, buffer, out):
    """Return what `bound` does."""
    total = 0.0
    if first == 0:
        for x in range(n_states):
            p = q[x]
            if p > 0.0:
                total += p * (g.unary[x] - log(p))
    for f in range(first, last):
        s0 = g.scope_ptr[f]
        if g.scope_ptr[f + 1] - s0 == 2:
            i, j = g.scope[s0], g.scope[s0 + 1]
            for x in range(g.cards[i]):
                for y in range(g.cards[j]):
                    p = q[g.starts[i] + x] * q[g.starts[j] + y]
                    if p > 0.0:
                        total += p * g.values[g.table_ptr[f] + x * g.cards[j] + y]
            continue
        expected(g, f, 0, q, buffer, out)
        i = g.scope[g.scope_ptr[f]]
        for x in range(g.cards[i]):
            p = q[g.starts[i] + x]
            if p > 0.0:
                total += p * out[x]
    return total


@kernel(bare=True)
def bound(graph, first, last, q, buffer, row, out):
    """Return the expected logs of some tables; with the first one also those of single variables plus their entropies."""
    n_states = len(q)
    return _bound(pointers(graph), n_states, first, last, pointer(q), pointer(buffer), pointer(out))


@kernel(bare=True)
def ascend(graph, order, q, buffer, row, out, tolerance, trace):
    """Set the distribution of each variable in `order` to its best given the others, in up to `len(trace)` sweeps.

    Writes the bound after each sweep to `trace`; with no room there, makes one sweep. Returns the sweeps made and the
    largest change in the last one.
    """
    n, n_states, n_factors, rounds = len(order), len(q), len(graph.table_ptr) - 1, len(trace)
    g = pointers(graph)
    order, q, buffer, row, out, trace = pointers((order, q, buffer, row, out, trace))
    change = 0.0
    for sweep in range(max(rounds, 1)):
        change = 0.0
        for k in range(n):
            i = order[k]
            c = g.cards[i]
            s = g.starts[i]
            slopes(g, i, q, buffer, row, out)
            top = row[0]
            for x in range(1, c):
                top = max(top, row[x])
            if top == -inf:
                continue
            total = 0.0
            for x in range(c):
                row[x] = exp(row[x] - top)
                total += row[x]
            for x in range(c):
                p = row[x] / total
                change = max(change, abs(p - q[s + x]))
                q[s + x] = p
        if rounds > 0:
            trace[sweep] = _bound(g, n_states, 0, n_factors, q, buffer, out)
        if change <= tolerance:
            return sweep + 1, change
    return max(rounds, 1), change
