"""Mean field over the missing cells of many rows at once, the observed cells held where they are.

Each row has a product of distributions of its missing variables. A sweep sets one of them after the other to the best there
is for the others: proportional to the exponential of the expected log tables around it, which never lowers the row's
bound. Rows are independent: call the kernel from several threads with different ranges.
Cost of a sweep: for each missing cell the entries of the tables around it, times their axes.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def _weight(e, f, without, layout, q):
    """Return the probability of entry e of table f under a row's q, one variable left out (-1 for none)."""
    w = 1.0
    for m in range(layout.scope_ptr[f], layout.scope_ptr[f + 1]):
        j = layout.scope[m]
        if j != without:
            w *= q[layout.starts[j] + (e // layout.strides[m]) % layout.cards[j]]
    return w


@kernel
def clamped_mean_field(low, high, sweeps, tolerance, rows, layout, log_tables, q, scores, bounds, counts):
    """Improve the distributions `q` (rows, single cells) of rows low ... high - 1, and count what they expect.

    `rows` are codes (rows, variables), -1 where missing, and weights; `layout` is a `FieldArrays`; `log_tables` and `counts`
    are pairs of single cells and cells of tables. Writes each row's bound on the log of its mass, minus infinity where a
    product of distributions that rules out every configuration of weight zero was not found.
    """
    codes, weight = rows
    single, tables = log_tables
    single_count, table_count = counts
    n, n_tables = len(layout.cards), len(layout.table_ptr) - 1
    for r in range(low, high):
        own = q[r]
        fine = True
        for _ in range(sweeps):
            change = 0.0
            for i in range(n):
                if codes[r, i] >= 0:
                    continue
                card, start = layout.cards[i], layout.starts[i]
                for k in range(card):
                    scores[k] = single[start + k]
                for p in range(layout.edge_ptr[i], layout.edge_ptr[i + 1]):
                    f, stride = layout.edge_factor[p], layout.edge_stride[p]
                    first = layout.table_ptr[f]
                    for e in range(layout.table_ptr[f + 1] - first):
                        w = _weight(e, f, i, layout, own)
                        if w > 0.0:  # zero times minus infinity is zero here
                            scores[(e // stride) % card] += w * tables[first + e]
                top = -np.inf
                for k in range(card):
                    top = max(top, scores[k])
                if top == -np.inf:
                    fine = False
                    break
                mass = 0.0
                for k in range(card):
                    scores[k] = exp(scores[k] - top)
                    mass += scores[k]
                for k in range(card):
                    x = scores[k] / mass
                    change = max(change, abs(x - own[start + k]))
                    own[start + k] = x
            if not fine or change <= tolerance:
                break
        # the bound is the expected log weight plus the entropy of what is missing
        value = 0.0
        for i in range(n):
            for k in range(layout.starts[i], layout.starts[i + 1]):
                x = own[k]
                if x > 0.0:
                    value += x * single[k]
                    if codes[r, i] < 0:
                        value -= x * log(x)
                    single_count[k] += weight[r] * x
        for f in range(n_tables):
            first = layout.table_ptr[f]
            for e in range(layout.table_ptr[f + 1] - first):
                w = _weight(e, f, -1, layout, own)
                if w > 0.0:
                    value += w * tables[first + e]
                    table_count[first + e] += weight[r] * w
        bounds[r] = value if fine else -np.inf
