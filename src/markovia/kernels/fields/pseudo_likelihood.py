"""The pseudo-likelihood of rows under log tables, and its derivative with respect to every table entry.

Arrays are those of `field_records`; log tables and slopes are pairs of single cells and cells of tables. Where the
neighbours of a variable have few joint states, rows are counted once by these (*cases*), and a value costs no pass over the
rows.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def count_cases(low, high, codes, weights, cards, blankets, start, out):
    """Count the rows of variables listed[low:high] by the states of their neighbours and their own."""
    listed, blanket_ptr, blanket, blanket_stride = blankets
    n_rows = codes.shape[1]
    for v in range(low, high):
        i = listed[v]
        card = cards[i]
        for r in range(n_rows):
            at = np.int64(codes[i, r])
            for b in range(blanket_ptr[v], blanket_ptr[v + 1]):
                at += card * blanket_stride[b] * np.int64(codes[blanket[b], r])
            out[start[v] + at] += weights[r]


@kernel
def place_cases(layout, blankets, case_ptr, case_state, place_ptr, places):
    """Write for each case and each table of its variable where the table's entries begin, the variable's state at 0."""
    cards, _, scope_ptr, scope, strides, table_ptr, edge_ptr, edge_factor, _ = layout
    listed, blanket_ptr, blanket, blanket_stride = blankets
    state = np.zeros(len(cards), np.int64)
    for v in range(len(listed)):
        i = listed[v]
        degree = edge_ptr[i + 1] - edge_ptr[i]
        for c in range(case_ptr[v], case_ptr[v + 1]):
            for b in range(blanket_ptr[v], blanket_ptr[v + 1]):
                state[blanket[b]] = (case_state[c] // blanket_stride[b]) % cards[blanket[b]]
            at = place_ptr[v] + (c - case_ptr[v]) * degree
            for p in range(degree):
                f = edge_factor[edge_ptr[i] + p]
                offset = table_ptr[f]
                for m in range(scope_ptr[f], scope_ptr[f + 1]):
                    if scope[m] != i:
                        offset += strides[m] * state[scope[m]]
                places[at + p] = offset


@kernel
def cases_value(low, high, layout, cases, log_tables, logits, slopes):
    """Add the derivatives of the negative log pseudo-likelihood of variables listed[low:high]; return its value."""
    listed, case_ptr, place_ptr, places, count_ptr, counts = cases
    cards, starts, edge_ptr, edge_stride = layout.cards, layout.starts, layout.edge_ptr, layout.edge_stride
    single, tables = log_tables
    single_slope, table_slope = slopes
    total = 0.0
    for v in range(low, high):
        i = listed[v]
        card = cards[i]
        start = starts[i]
        first = edge_ptr[i]
        degree = edge_ptr[i + 1] - first
        for c in range(case_ptr[v], case_ptr[v + 1]):
            at = place_ptr[v] + (c - case_ptr[v]) * degree
            own = count_ptr[v] + (c - case_ptr[v]) * card
            top = -np.inf
            n = 0.0
            for k in range(card):
                logit = single[start + k]
                for p in range(degree):
                    logit += tables[places[at + p] + k * edge_stride[first + p]]
                logits[k] = logit
                top = max(top, logit)
                n += counts[own + k]
            mass = 0.0
            for k in range(card):
                mass += exp(logits[k] - top)
            whole = top + log(mass)
            for k in range(card):
                count = counts[own + k]
                if count > 0.0:
                    total += count * (whole - logits[k])
                slope = n * exp(logits[k] - whole) - count
                single_slope[start + k] += slope
                for p in range(degree):
                    table_slope[places[at + p] + k * edge_stride[first + p]] += slope
    return total


@kernel
def rows_value(low, high, layout, chosen, data, rows, log_tables, room, slopes):
    """As `cases_value`, for variables chosen[low:high] and rows by number.

    `data` are codes (variables, all rows) and weights (all rows,); the room is for the states of a variable and for its
    tables.
    """
    codes, weights = data
    logits, place = room
    cards, starts, scope_ptr, scope, strides, table_ptr, edge_ptr, edge_factor, edge_stride = layout
    single, tables = log_tables
    single_slope, table_slope = slopes
    total = 0.0
    for v in range(low, high):
        i = chosen[v]
        card = cards[i]
        start = starts[i]
        first = edge_ptr[i]
        degree = edge_ptr[i + 1] - first
        for r in rows:
            for p in range(degree):
                f = edge_factor[first + p]
                offset = table_ptr[f]
                for m in range(scope_ptr[f], scope_ptr[f + 1]):
                    if scope[m] != i:
                        offset += strides[m] * np.int64(codes[scope[m], r])
                place[p] = offset
            top = -np.inf
            for k in range(card):
                logit = single[start + k]
                for p in range(degree):
                    logit += tables[place[p] + k * edge_stride[first + p]]
                logits[k] = logit
                top = max(top, logit)
            mass = 0.0
            for k in range(card):
                mass += exp(logits[k] - top)
            whole = top + log(mass)
            x = np.int64(codes[i, r])
            n = weights[r]
            total += n * (whole - logits[x])
            for k in range(card):
                slope = n * exp(logits[k] - whole)
                if k == x:
                    slope -= n
                single_slope[start + k] += slope
                for p in range(degree):
                    table_slope[place[p] + k * edge_stride[first + p]] += slope
    return total
