"""Forward and backward recursions of one hidden chain in logarithms, for what rescaled sums would lose.

Arrays are those of `hidden_chain`; start and tables are logarithms. Cost: steps times k squared exponentials.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def _log_sum(terms):
    top = -np.inf
    for v in terms:
        top = max(top, v)
    if top == -np.inf:
        return top
    total = 0.0
    for v in terms:
        total += exp(v - top)
    return top + log(total)


@kernel
def log_recursions(a, b, start, tables, moves, logs, codes, before, after):
    """Write log p(x_a ... x_t-1, z_t) and log p(x_t+1 ... | z_t) of steps a ... b-1 into `before` and `after`."""
    k = len(start)
    shared = len(moves) == 1
    terms = np.empty(k)
    for t in range(a, b):
        m = moves[0] if shared else moves[t]
        for j in range(k):
            if t == a:
                before[0, j] = start[j]
                continue
            for i in range(k):
                terms[i] = before[t - a - 1, i] + logs[codes[t - 1], i] + tables[m, i, j]
            before[t - a, j] = _log_sum(terms)
    for i in range(k):
        after[b - 1 - a, i] = 0.0
    for t in range(b - 2, a - 1, -1):
        m = moves[0] if shared else moves[t + 1]
        for i in range(k):
            for j in range(k):
                terms[j] = tables[m, i, j] + logs[codes[t + 1], j] + after[t + 1 - a, j]
            after[t - a, i] = _log_sum(terms)
