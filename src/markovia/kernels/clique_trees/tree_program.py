"""A clique tree and where all its tables lie, packed into one array: the program that propagation runs.

One array in, one array out keeps the cost of a call from Python at a microsecond, which is what a small network takes.
The program starts with a header (sizes, then where each section begins); see `program_sections` for what there is.
"""

from itertools import accumulate
from math import inf, log, log2, nan

import numpy as np

from markovia.kernels.clique_trees import program_sections as at
from markovia.kernels.clique_trees.clique_trees import NO_ROOM, find_cliques, parts, settle, workspace
from markovia.kernels.clique_trees.elimination import Ints, find_order
from markovia.kernels.clique_trees.strided import SET, walk
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

HUGE = 1e13
"""Entries above which a tree is only described, not laid out."""
LARGE = 2048.0
"""Entries of a clique from which `helper_cliques` are worth loading."""


def compile_program(
    scope_start: Ints,
    scope: Ints,
    card: Ints,
    stage: Ints,
    share: float,
    most: float,
    given: Ints | None = None,
) -> tuple[Ints, float, float]:
    """Search an elimination order (or take the given one), build its clique tree and lay it out.

    Returns `(program, total of all clique tables, the largest)`. See `find_order` for the arguments.
    """
    n, n_factors = len(card), len(scope_start) - 1
    if given is None:
        order, _, room = find_order(scope_start, scope, card, stage, share, most)
    else:
        order, room = given, 4 * len(scope)
    room += n
    sizes = np.empty(2 * n + n_factors)
    while True:
        work = workspace(n, n_factors, room)
        count, end, length, total, largest = find_cliques(scope_start, scope, card, order, work, sizes)
        if count != NO_ROOM:
            break
        room *= 4
    settle(n, scope_start, scope, work, sizes, count)
    if largest >= LARGE and total <= HUGE:
        from markovia.kernels.clique_trees.helper_cliques import group

        first, most_cliques = 2 * n + n_factors, 2 * n + n_factors
        stops = work[first + most_cliques :][:count]
        longest = int((stops - work[first:][:count]).max())
        work = np.concatenate((work, np.empty((n + n_factors) // 2 * longest, np.int64)))
        entries = np.empty(n + n_factors)
        count, longer = group(n, (scope_start, scope, card), order, work, sizes, entries, count, end)
        length += longer - end
    s = len(scope)
    lengths = (
        at.BODY, count + 1, length, count, count, count + 1, count, count + 1, n_factors, n + 1, length, n_factors + 1,
        s, s, s, n_factors, count, count + 1, n + 1, n, n, n, n, n_factors,
    )  # fmt: skip
    starts = list(accumulate(lengths))
    program = np.zeros(starts[-1], np.int64)
    program[at.SECTIONS : at.BODY] = starts
    program[at.N_CLIQUES : at.N_SLOTS + 1] = count, n_factors, n
    _lay_out(scope_start, scope, card, order, work, total <= HUGE, program)
    return program, total, largest


@inner(bare=True)
def _sort_by_key(keys, n_keys, n, start, items):
    """Write the items of each key: a counting sort that skips negative keys."""
    for k in range(n + 1):
        start[k] = 0
    for i in range(n_keys):
        if keys[i] >= 0:
            start[keys[i]] += 1
    last = 0
    for k in range(n):
        last += start[k]
        start[k] = last
    start[n] = last
    for i in range(n_keys - 1, -1, -1):
        k = keys[i]
        if k >= 0:
            start[k] -= 1
            items[start[k]] = i


@kernel(bare=True)
def _lay_out(scope_start, scope, card, order, work, placed, program):
    """Write a program, cliques renumbered: children first, and every subtree a range that ends with its root."""
    p = pointer(program)
    scope_start, scope, card, order = pointer(scope_start), pointer(scope), pointer(card), pointer(order)
    count, n_factors, n = p[at.N_CLIQUES], p[at.N_FACTORS], p[at.N_SLOTS]
    made = parts(pointer(work), n, n_factors)
    head, following, number = made.spare, beyond(made.spare, count), beyond(made.spare, 2 * count)
    stack, sequence = beyond(made.spare, 3 * count), beyond(made.spare, 4 * count)
    section = beyond(p, at.SECTIONS)
    # depth first from the roots, numbers given from the last one down
    top = 0
    for c in range(count):
        head[c] = -1
    for c in range(count):
        above = made.parent[c]
        if above < 0:
            stack[top] = c
            top += 1
        else:
            following[c] = head[above]
            head[above] = c
    left = count
    while top > 0:
        top -= 1
        c = stack[top]
        left -= 1
        number[c] = left
        sequence[left] = c
        k = head[c]
        while k >= 0:
            stack[top] = k
            top += 1
            k = following[k]
    # slots: variables in the order of elimination, and where their posteriors lie
    cards, slots = beyond(p, section[at.CARD]), beyond(p, section[at.SLOT])
    homes, marginal_at = beyond(p, section[at.HOME]), beyond(p, section[at.MARGINAL_AT])
    marginals = 0
    for v in range(n):
        cards[v] = card[order[v]]
        p[section[at.ORDER] + v] = order[v]
        slots[v] = made.slot[v]
        homes[v] = number[made.home[v]]
        marginal_at[v] = marginals
        marginals += cards[v]
    marginal_at[n] = marginals
    # factors: axes sorted by slot, last first, as in the cliques
    axis_slot, axis_source = beyond(p, section[at.AXIS_SLOT]), beyond(p, section[at.AXIS_SOURCE])
    axis_stride, axis_start = beyond(p, section[at.AXIS_STRIDE]), beyond(p, section[at.AXIS_START])
    factor_home, factor_at = beyond(p, section[at.FACTOR_HOME]), beyond(p, section[at.FACTOR_AT])
    values = 0
    axis_start[0] = 0
    for f in range(n_factors):
        first, last = scope_start[f], scope_start[f + 1]
        axis_start[f + 1] = last
        for i in range(first, last):
            s = slots[scope[i]]
            j = i
            while j > first and axis_slot[j - 1] < s:
                axis_slot[j] = axis_slot[j - 1]
                axis_source[j] = axis_source[j - 1]
                j -= 1
            axis_slot[j] = s
            axis_source[j] = i - first
        step = 1
        for j in range(last - 1, first - 1, -1):
            axis_stride[j] = step
            step *= cards[axis_slot[j]]
        factor_at[f] = values
        values += step
        factor_home[f] = number[made.factor_home[f]] if made.factor_home[f] >= 0 else -1
    p[at.N_FACTOR_VALUES] = values
    values += marginals
    # cliques
    clique_start, clique = beyond(p, section[at.CLIQUE_START]), beyond(p, section[at.CLIQUE])
    n_separator, parent = beyond(p, section[at.N_SEPARATOR]), beyond(p, section[at.PARENT])
    child_start, factor_start = beyond(p, section[at.CHILD_START]), beyond(p, section[at.FACTOR_START])
    table_at, message_at = beyond(p, section[at.TABLE_AT]), beyond(p, section[at.MESSAGE_AT])
    owner = beyond(made.pool, 0)
    last = 0
    clique_start[0] = 0
    for c in range(count):
        old = sequence[c]
        for i in range(made.begin[old], made.stop[old]):
            clique[last] = made.pool[i]
            last += 1
        clique_start[c + 1] = last
        n_separator[c] = made.n_separator[old]
        parent[c] = number[made.parent[old]] if made.parent[old] >= 0 else -1
    # children and factors of each clique, and cliques of each slot
    _sort_by_key(parent, count, count, child_start, beyond(p, section[at.CHILDREN]))
    _sort_by_key(factor_home, n_factors, count, factor_start, beyond(p, section[at.FACTORS]))
    slot_cliques = beyond(p, section[at.SLOT_CLIQUES])
    _sort_by_key(clique, last, n, beyond(p, section[at.SLOT_START]), slot_cliques)
    # where tables and messages lie, and the room that the largest of each takes
    tables = 0
    largest_separator = 1
    most_operands = 1
    most_axes = 1
    most_shares = 0
    largest_block = 1
    longest_row = 1
    for c in range(count):
        separator = 1
        size = 1
        first = clique_start[c]
        n_axes = clique_start[c + 1] - first
        for i in range(n_axes):
            owner[first + i] = c
            if placed:
                size *= cards[clique[first + i]]
            if i == n_separator[c] - 1:
                separator = size
        table_at[c] = -1
        if placed and size <= at.KEPT:
            table_at[c] = tables
            tables += size
        if size > largest_block:
            largest_block = size if size < at.BLOCK else at.BLOCK
        longest_row = size // separator if size // separator > longest_row else longest_row
        message_at[c] = values
        values += separator
        operands = (
            factor_start[c + 1]
            - factor_start[c]
            + child_start[c + 1]
            - child_start[c]
            + n_axes
            - n_separator[c]
        )
        largest_separator = separator if separator > largest_separator else largest_separator
        most_operands = operands if operands > most_operands else most_operands
        most_axes = n_axes if n_axes > most_axes else most_axes
    message_at[count] = values
    for c in range(count):
        shares = 0
        for i in range(child_start[c], child_start[c + 1]):
            k = p[section[at.CHILDREN] + i]
            shares += message_at[k + 1] - message_at[k]
        most_shares = shares if shares > most_shares else most_shares
    for i in range(last):
        slot_cliques[i] = owner[slot_cliques[i]]
    p[at.N_VALUES] = values
    p[at.N_TABLES] = tables
    p[at.N_MARGINALS] = marginals
    p[at.LARGEST_SEPARATOR] = largest_separator
    p[at.MOST_OPERANDS] = most_operands
    p[at.MOST_AXES] = most_axes
    p[at.MOST_SHARES] = most_shares
    p[at.LARGEST_BLOCK] = largest_block
    p[at.LONGEST_ROW] = longest_row


@kernel(bare=True)
def load_tables(program, raw, values, low, work):
    """Copy a model's tables, which lie one after the other in `raw`, into `values` with sorted axes and maximum one.

    Writes log2 of the least positive entry of each to `low`; returns the log of the product of the maxima, minus infinity
    if a table is all zero, and not-a-number if a table spans more than doubles can. `work` has six times the most axes.
    """
    p = pointer(program)
    raw, values, low, work = pointer(raw), pointer(values), pointer(low), pointer(work)
    section = beyond(p, at.SECTIONS)
    axis_start, axis_slot = beyond(p, section[at.AXIS_START]), beyond(p, section[at.AXIS_SLOT])
    axis_source, factor_at = beyond(p, section[at.AXIS_SOURCE]), beyond(p, section[at.FACTOR_AT])
    card = beyond(p, section[at.CARD])
    most = p[at.MOST_AXES]
    dims, strides, source, scratch = work, beyond(work, most), beyond(work, 2 * most), beyond(work, 3 * most)
    log_scale = 0.0
    lost = 0.0
    possible = True
    in_range = True
    for f in range(p[at.N_FACTORS]):
        first = axis_start[f]
        n_axes = axis_start[f + 1] - first
        for a in range(n_axes):
            dims[a] = card[axis_slot[first + a]]
            source[axis_source[first + a]] = dims[a]
        size = 1
        for a in range(n_axes - 1, -1, -1):
            d = source[a]
            source[a] = size
            size *= d
        for a in range(n_axes):
            strides[a] = source[axis_source[first + a]]
        table = beyond(values, factor_at[f])
        walk(SET, table, beyond(raw, factor_at[f]), n_axes, dims, strides, scratch)
        top = 0.0
        least = inf
        for i in range(size):
            t = table[i]
            if t > 0.0:
                least = t if t < least else least
                top = t if t > top else top
        if top == 0.0:
            low[f] = 0.0
            possible = False
            continue
        low[f] = log2(least) - log2(top)
        if low[f] < -960.0:
            in_range = False
        if top != 1.0:
            for i in range(size):
                table[i] /= top
            term = log(top) - lost
            total = log_scale + term
            lost = (total - log_scale) - term  # what the sum rounds off is added next time
            log_scale = total
    if not possible:
        return -inf
    return log_scale if in_range else nan
