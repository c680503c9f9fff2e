"""A clique tree and where all its tables lie, packed into one array: the program that propagation runs.

One array in, one array out keeps the cost of a call from Python at a microsecond, which is what a small network takes.
The program starts with a header (sizes, then where each section begins); `section` cuts out a part.
"""

import numpy as np

from markovia.kernels.clique_trees.clique_trees import clique_tree, renumber, separators_are_contained, settle
from markovia.kernels.clique_trees.elimination import adjacency, search_order
from markovia.kernels.clique_trees.helper_cliques import group
from markovia.kernels.clique_trees.strided import spread
from markovia.kernels.kernel import kernel

KEPT = 1 << 13
"""Entries up to which a clique's table is stored."""
HUGE = 1e13
"""Entries above which a tree is only described, not laid out."""

# sizes in the header
N_CLIQUES, N_FACTORS, N_SLOTS, N_VALUES, N_FACTOR_VALUES, N_TABLES, N_MARGINALS = 0, 1, 2, 3, 4, 5, 6
LARGEST_SEPARATOR, MOST_OPERANDS, MOST_AXES, SECTIONS = 7, 8, 9, 10
# sections
CLIQUE_START, CLIQUE, N_SEPARATOR, PARENT, CHILD_START, CHILDREN, FACTOR_START, FACTORS = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
)
SLOT_START, SLOT_CLIQUES, AXIS_START, AXIS_SLOT, AXIS_STRIDE, AXIS_SOURCE, FACTOR_AT = (
    8,
    9,
    10,
    11,
    12,
    13,
    14,
)
TABLE_AT, MESSAGE_AT, MARGINAL_AT, CARD, ORDER, SLOT, HOME, FACTOR_HOME, N_SECTIONS = (
    15,
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
)


@kernel
def section(program, i):
    """Return one section of a program."""
    return program[program[SECTIONS + i] : program[SECTIONS + i + 1]]


@kernel
def grouped(keys, n):
    """Return the items of each key as (start, items): a counting sort that skips negative keys."""
    start = np.zeros(n + 1, np.int64)
    for k in keys:
        if k >= 0:
            start[k + 1] += 1
    for k in range(n):
        start[k + 1] += start[k]
    place = start[:n].copy()
    items = np.empty(start[n], np.int64)
    for i in range(len(keys)):
        k = keys[i]
        if k >= 0:
            items[place[k]] = i
            place[k] += 1
    return start, items


@kernel
def compile_program(scope_start, scope, card, stage, share, most, given):
    """Search an elimination order (or take the given one), build its clique tree and lay it out.

    Returns `(program, total of all clique tables, the largest)`. See `search_order` for `share` and `most`; `given` is empty
    for a search.
    """
    n = len(card)
    order = np.empty(n, np.int64)
    if len(given) == n and n > 0:
        order[:] = given
    elif n > 0:
        active = np.ones(n, np.bool_)
        start, neighbours = adjacency(n, scope_start, scope, active)
        search_order(start, neighbours, np.log2(card.astype(np.float64)), stage, active, share, most, order)
    slot, clique_start, clique, n_separator, parent, home, factor_home = clique_tree(
        n, scope_start, scope, order
    )
    cards = card[order]
    n_cliques = len(parent)
    total = 0.0
    largest = 0.0
    for c in range(n_cliques):
        size = 1.0
        for i in range(clique_start[c], clique_start[c + 1]):
            size *= cards[clique[i]]
        total += size
        largest = max(largest, size)
    settle(scope_start, scope, slot, cards, clique_start, clique, n_separator, parent, factor_home)
    n_factors = len(factor_home)
    # factors: axes sorted by slot, last first, as in the cliques
    axis_slot = np.empty(len(scope), np.int64)
    axis_stride = np.empty(len(scope), np.int64)
    axis_source = np.empty(len(scope), np.int64)
    factor_at = np.zeros(n_factors, np.int64)
    at = 0
    for f in range(n_factors):
        first = scope_start[f]
        size = scope_start[f + 1] - first
        for i in range(size):
            s = slot[scope[first + i]]
            j = first + i - 1
            while j >= first and axis_slot[j] < s:
                axis_slot[j + 1] = axis_slot[j]
                axis_source[j + 1] = axis_source[j]
                j -= 1
            axis_slot[j + 1] = s
            axis_source[j + 1] = i
        step = 1
        for j in range(first + size - 1, first - 1, -1):
            axis_stride[j] = step
            step *= cards[axis_slot[j]]
        factor_at[f] = at
        at += step
    n_factor_values = at
    if largest >= 2048.0 and total <= HUGE:
        clique_start, clique, n_separator, parent = group(
            scope_start, axis_slot, cards, clique_start, clique, n_separator, parent, factor_home
        )
        n_cliques = len(parent)
    clique_start, clique, n_separator, parent = renumber(
        clique_start, clique, n_separator, parent, home, factor_home
    )
    if not separators_are_contained(clique_start, clique, n_separator, parent):
        raise AssertionError
    child_start, children = grouped(parent, n_cliques)
    factor_start, factors = grouped(factor_home, n_cliques)
    slot_start, places = grouped(clique, n)
    owner = np.empty(len(clique), np.int64)
    for c in range(n_cliques):
        for i in range(clique_start[c], clique_start[c + 1]):
            owner[i] = c
    slot_cliques = owner[places]
    marginal_at = np.zeros(n + 1, np.int64)
    for v in range(n):
        marginal_at[v + 1] = marginal_at[v] + cards[v]
    at += marginal_at[n]
    table_at = np.full(n_cliques, -1, np.int64)
    message_at = np.zeros(n_cliques + 1, np.int64)
    largest_separator = 1
    most_operands = 1
    most_axes = 1
    tables = 0
    for c in range(n_cliques):
        separator = 1
        size = 1
        first = clique_start[c]
        n_axes = clique_start[c + 1] - first
        if total <= HUGE:
            for i in range(n_axes):
                size *= cards[clique[first + i]]
                if i < n_separator[c]:
                    separator *= cards[clique[first + i]]
            if size <= KEPT:
                table_at[c] = tables
                tables += size
        message_at[c] = at
        at += separator
        largest_separator = max(largest_separator, separator)
        most_axes = max(most_axes, n_axes)
        operands = (
            factor_start[c + 1]
            - factor_start[c]
            + child_start[c + 1]
            - child_start[c]
            + n_axes
            - n_separator[c]
        )
        most_operands = max(most_operands, operands)
    message_at[n_cliques] = at
    parts = (
        clique_start, clique, n_separator, parent, child_start, children, factor_start, factors, slot_start,
        slot_cliques, scope_start, axis_slot, axis_stride, axis_source, factor_at, table_at, message_at, marginal_at,
        cards, order, slot, home, factor_home,
    )  # fmt: skip
    length = SECTIONS + N_SECTIONS + 1
    for part in parts:
        length += len(part)
    program = np.empty(length, np.int64)
    program[N_CLIQUES] = n_cliques
    program[N_FACTORS] = n_factors
    program[N_SLOTS] = n
    program[N_VALUES] = at
    program[N_FACTOR_VALUES] = n_factor_values
    program[N_TABLES] = tables
    program[N_MARGINALS] = marginal_at[n]
    program[LARGEST_SEPARATOR] = largest_separator
    program[MOST_OPERANDS] = most_operands
    program[MOST_AXES] = most_axes
    at = SECTIONS + N_SECTIONS + 1
    k = 0
    for part in parts:
        program[SECTIONS + k] = at
        program[at : at + len(part)] = part
        at += len(part)
        k += 1
    program[SECTIONS + k] = at
    return program, total, largest


@kernel
def sliced_entries(program, code):
    """Return the total of all clique tables with the observed slots (code 0 or more) cut out."""
    clique_start, clique, card = (
        section(program, CLIQUE_START),
        section(program, CLIQUE),
        section(program, CARD),
    )
    total = 0.0
    for c in range(len(clique_start) - 1):
        size = 1.0
        for i in range(clique_start[c], clique_start[c + 1]):
            if code[clique[i]] < 0:
                size *= card[clique[i]]
        total += size
    return total


@kernel
def load_tables(program, raw, values, low):
    """Copy a model's tables, which lie one after the other in `raw`, into `values` with sorted axes and maximum one.

    Writes log2 of the least positive entry of each to `low`; returns the log of the product of the maxima, minus infinity
    if a table is all zero, and not-a-number if a table spans more than doubles can.
    """
    axis_start, axis_slot = section(program, AXIS_START), section(program, AXIS_SLOT)
    axis_source, factor_at = section(program, AXIS_SOURCE), section(program, FACTOR_AT)
    card = section(program, CARD)
    log_scale = 0.0
    most = 1
    for f in range(len(factor_at)):
        most = max(most, axis_start[f + 1] - axis_start[f])
    dims = np.empty(most, np.int64)
    source = np.empty(most, np.int64)
    strides = np.empty((1, most), np.int64)
    work = np.empty((3, most), np.int64)
    length, step, index = work[0], work[1], work[2]
    lost = 0.0
    possible = True
    in_range = True
    for f in range(len(factor_at)):
        first = axis_start[f]
        n_axes = axis_start[f + 1] - first
        for a in range(n_axes):
            source[axis_source[first + a]] = card[axis_slot[first + a]]
        along = 1
        for a in range(n_axes - 1, -1, -1):
            d = source[a]
            source[a] = along
            along *= d
        for a in range(n_axes):
            dims[a] = card[axis_slot[first + a]]
            strides[0, a] = source[axis_source[first + a]]
        at = factor_at[f]
        size = along
        spread(True, values, at, dims, 0, n_axes, raw, at, strides, 0, length, step, index)
        top = 0.0
        least = np.inf
        for i in range(at, at + size):
            t = values[i]
            if t > 0.0:
                least = min(least, t)
                top = max(top, t)
        if top == 0.0:
            low[f] = 0.0
            possible = False
            continue
        low[f] = np.log2(least) - np.log2(top)
        if low[f] < -960.0:
            in_range = False
        if top != 1.0:
            for i in range(at, at + size):
                values[i] /= top
            term = np.log(top) - lost
            total = log_scale + term
            lost = (total - log_scale) - term  # what the sum rounds off is added next time
            log_scale = total
    if not possible:
        return -np.inf
    return log_scale if in_range else np.nan
