"""One row of data after the other through a clique tree: log masses and posteriors.

Method: every row cuts its observed variables out of the tables. What is left of a clique runs over its missing
variables alone; a factor with none left is one number and goes straight into the row's mass. Conditionals whose child
is missing and not needed are dropped. Messages go up through all cliques, and down only to those that the row asks
about. Tables of a row lie one after the other in a work array: few missing cells touch few cache lines.
Reference: Lauritzen & Spiegelhalter (1988), with evidence cut out instead of multiplied in.
Cost: for each row the axes of all factors, and the sum of the clique tables that its missing cells leave.
A row whose tables outgrow the work array, or whose products may leave the range of doubles, gets a status that says so.
"""

from collections import namedtuple

import numpy as np

from markovia.kernels.clique_trees.strided import gather, spread
from markovia.kernels.kernel import kernel

HOT = {"_nrt": False}
"""Without reference counts: they are atomic, and counting all arrays of a tree in every call takes most of a row's
time. Such a function must not allocate; `answer_rows` does that for all rows at once."""

DONE, IMPOSSIBLE, OUT_OF_RANGE, TOO_LARGE = 0, 1, 2, 3
SMALL, LARGE = 1e-100, 1e100
"""Between these a running product is kept as it is; outside, its log is taken."""
UNWATCHED = 1e-270
"""The least product that a table may hold without being looked at after every factor."""
SPREAD = 1e-145
"""The least entry of a watched table relative to its largest."""

RowTree = namedtuple(
    "RowTree",
    "column card clique_start clique place n_separator parent child_start children factor_start fixed_start "
    "fixed_column fixed_stride axis_start axis_slot axis_place axis_stride factor_at factor_low values target_start "
    "target_slot target_column target_card target_at barren_slot barren_factor mentions",
)
"""A clique tree over the variables that some row misses.

`column` says where a slot's codes are (-1: nowhere), `place` where a separator's axis is in the parent clique. Factors
are sorted by clique; those without open variables come last, as do targets that every row observes. `fixed_*` are the
axes of factors that every row observes, `axis_*` the others. `barren_*` lists conditionals that are dropped where their
child is missing and nothing else needs it, children before parents; `mentions` counts the other factors of each slot.
"""
Work = namedtuple(
    "Work",
    "code dims rank strides offsets source message_at message_size least table_at posterior_at asked dropped mentions "
    "length step index",
)


@kernel
def _work(tree):
    """Return the scratch arrays of a thread."""
    n, k = len(tree.parent), len(tree.card)
    axes, operands = 1, 1
    for c in range(n):
        axes = max(axes, tree.clique_start[c + 1] - tree.clique_start[c])
        count = (
            tree.factor_start[c + 1] - tree.factor_start[c] + tree.child_start[c + 1] - tree.child_start[c]
        )
        operands = max(operands, count)
    ints = np.int64
    return Work(
        np.empty(k, ints),
        np.empty(axes, ints),
        np.empty(axes, ints),
        np.zeros((operands, axes), ints),
        np.empty(operands, ints),
        np.empty(operands, np.bool_),
        np.empty(n, ints),
        np.empty(n, ints),
        np.empty(n),
        np.empty(n, ints),
        np.empty(n, ints),
        np.empty(n, np.bool_),
        np.zeros(len(tree.factor_at), np.bool_),
        np.empty(k, ints),
        np.empty(axes, ints),
        np.empty(axes, ints),
        np.empty(axes, ints),
    )


@kernel(inline="always", **HOT)
def _fold(mass, logs, t):
    """Multiply a positive number into a product that is kept as mass * exp(logs)."""
    if t < SMALL or t > LARGE:
        logs += np.log(t)
    else:
        mass *= t
        if mass < SMALL or mass > LARGE:
            logs += np.log(mass)
            mass = 1.0
    return mass, logs


@kernel(**HOT)
def _spread(assign, big, at, m, small, x, row, work):
    """Set or multiply an operand into a table over `m` axes."""
    if m == 1:
        s = work.strides[row, 0]
        for i in range(work.dims[0]):
            t = small[x + i * s]
            big[at + i] = t if assign else big[at + i] * t
    elif m == 2:
        s0, s1 = work.strides[row, 0], work.strides[row, 1]
        for _ in range(work.dims[0]):
            for j in range(work.dims[1]):
                t = small[x + j * s1]
                big[at] = t if assign else big[at] * t
                at += 1
            x += s0
    else:
        spread(
            assign, big, at, work.dims, 0, m, small, x, work.strides, row, work.length, work.step, work.index
        )


@kernel(**HOT)
def _watch(floats, at, size):
    """Look at a table for zeros and range; return (status, what it was divided by)."""
    peak = 0.0
    least = np.inf
    for i in range(at, at + size):
        t = floats[i]
        if t > 0.0:
            least = min(least, t)
            peak = max(peak, t)
    if peak == 0.0:
        return IMPOSSIBLE, 1.0
    if least < SPREAD * min(1.0, peak):
        return OUT_OF_RANGE, 1.0
    if peak > 1e-50:
        return DONE, 1.0
    for i in range(at, at + size):
        floats[i] /= peak
    return DONE, peak


@kernel(**HOT)
def _free_axes(c, tree, work):
    """Write the lengths of a clique's missing axes and their ranks; return how many there are."""
    begin = tree.clique_start[c]
    m = 0
    for i in range(begin, tree.clique_start[c + 1]):
        v = tree.clique[i]
        if work.code[v] < 0:
            work.rank[i - begin] = m
            work.dims[m] = tree.card[v]
            m += 1
    return m


@kernel(**HOT)
def _message_strides(child, row, m, tree, work):
    """Write the strides of a child's message along the missing axes of its parent."""
    for a in range(m):
        work.strides[row, a] = 0
    begin = tree.clique_start[child]
    step = 1
    for i in range(begin + tree.n_separator[child] - 1, begin - 1, -1):
        v = tree.clique[i]
        if work.code[v] < 0:
            work.strides[row, work.rank[tree.place[i]]] = step
            step *= tree.card[v]


@kernel(**HOT)
def _collect_row(r, tree, codes, work, floats):
    """Pass messages up for one row; return (status, log of the mass)."""
    values = tree.values
    n = len(tree.parent)
    mass = 1.0
    logs = 0.0
    top = 0
    for f in range(tree.factor_start[n], tree.factor_start[n + 1]):
        x = tree.factor_at[f]
        for j in range(tree.fixed_start[f], tree.fixed_start[f + 1]):
            x += tree.fixed_stride[j] * codes[r, tree.fixed_column[j]]
        if values[x] == 0.0:
            return IMPOSSIBLE, -np.inf
        mass, logs = _fold(mass, logs, values[x])
    for c in range(n):
        begin = tree.clique_start[c]
        edge = begin + tree.n_separator[c]
        m = 0
        size = 1
        separator = 1
        for i in range(begin, tree.clique_start[c + 1]):
            v = tree.clique[i]
            if work.code[v] < 0:
                work.rank[i - begin] = m
                work.dims[m] = tree.card[v]
                m += 1
                size *= tree.card[v]
                if i < edge:
                    separator = size
                if size > len(floats):
                    return TOO_LARGE, 0.0
        k = 0
        low = 1.0
        for f in range(tree.factor_start[c], tree.factor_start[c + 1]):
            if work.dropped[f]:
                continue
            x = tree.factor_at[f]
            for j in range(tree.fixed_start[f], tree.fixed_start[f + 1]):
                x += tree.fixed_stride[j] * codes[r, tree.fixed_column[j]]
            for a in range(m):
                work.strides[k, a] = 0
            table = False
            for j in range(tree.axis_start[f], tree.axis_start[f + 1]):
                code = work.code[tree.axis_slot[j]]
                if code >= 0:
                    x += tree.axis_stride[j] * code
                else:
                    work.strides[k, work.rank[tree.axis_place[j]]] = tree.axis_stride[j]
                    table = True
            if table:
                work.offsets[k] = x
                work.source[k] = False
                low *= tree.factor_low[f]
                k += 1
            elif values[x] == 0.0:
                return IMPOSSIBLE, -np.inf
            else:
                mass, logs = _fold(mass, logs, values[x])
        work.message_size[c] = separator
        if m == 0:
            continue
        for i in range(tree.child_start[c], tree.child_start[c + 1]):
            child = tree.children[i]
            if work.message_size[child] > 1:
                _message_strides(child, k, m, tree, work)
                work.offsets[k] = work.message_at[child]
                work.source[k] = True
                low *= work.least[child]
                k += 1
        if top + size + 2 * separator > len(floats):
            return TOO_LARGE, 0.0
        if k == 0:
            for i in range(top, top + size):
                floats[i] = 1.0
        for o in range(k):
            if work.source[o]:
                _spread(o == 0, floats, top, m, floats, work.offsets[o], o, work)
            else:
                _spread(o == 0, floats, top, m, values, work.offsets[o], o, work)
            if low < UNWATCHED:
                status, taken = _watch(floats, top, size)
                if status != DONE:
                    return status, -np.inf
                if taken != 1.0:
                    mass, logs = _fold(mass, logs, taken)
        out = top + size if work.asked[c] else top
        rest = size // separator
        x = top
        peak = 0.0
        for s in range(separator):
            t = 0.0
            for _ in range(rest):
                t += floats[x]
                x += 1
            floats[out + s] = t
            peak = max(peak, t)
        if peak == 0.0:
            return IMPOSSIBLE, -np.inf
        mass, logs = _fold(mass, logs, peak)
        inverse = 1.0 / peak
        if work.asked[c]:
            for i in range(top, top + size):
                floats[i] *= inverse
            work.table_at[c] = top
            if separator > 1:
                work.asked[tree.parent[c]] = True
        work.message_at[c] = out
        if separator > 1:
            least = 1.0
            for s in range(out, out + separator):
                t = floats[s] * inverse
                floats[s] = t
                if t > 0.0:
                    least = min(least, t)
            work.least[c] = least
            top = out + separator
            if work.asked[c]:
                work.posterior_at[c] = top
                top += separator
        elif work.asked[c]:
            top = out
    return DONE, logs + np.log(mass)


@kernel(**HOT)
def _distribute_row(tree, work, floats, out, at):
    """Pass beliefs down to the cliques that are asked about; write the posteriors of missing targets to `out[at:]`."""
    for c in range(len(tree.parent) - 1, -1, -1):
        if not work.asked[c]:
            continue
        m = _free_axes(c, tree, work)
        if m == 0:
            continue
        table = work.table_at[c]
        size = 1
        for a in range(m):
            size *= work.dims[a]
        separator = work.message_size[c]
        if separator > 1:
            below, message = work.posterior_at[c], work.message_at[c]
            rest = size // separator
            x = table
            for s in range(separator):
                t = floats[message + s]
                ratio = floats[below + s] / t if t > 0.0 else 0.0
                for _ in range(rest):
                    floats[x] *= ratio
                    x += 1
        for i in range(tree.child_start[c], tree.child_start[c + 1]):
            child = tree.children[i]
            if not work.asked[child] or work.message_size[child] == 1:
                continue
            below = work.posterior_at[child]
            for s in range(below, below + work.message_size[child]):
                floats[s] = 0.0
            _message_strides(child, 0, m, tree, work)
            gather(
                floats,
                table,
                work.dims,
                0,
                m,
                floats,
                below,
                work.strides,
                0,
                work.length,
                work.step,
                work.index,
            )
        for k in range(tree.target_start[c], tree.target_start[c + 1]):
            v = tree.target_slot[k]
            if work.code[v] >= 0:
                continue
            for a in range(m):
                work.strides[0, a] = 0
            for i in range(tree.clique_start[c], tree.clique_start[c + 1]):
                if tree.clique[i] == v:
                    work.strides[0, work.rank[i - tree.clique_start[c]]] = 1
            first = at + tree.target_at[k]
            gather(
                floats,
                table,
                work.dims,
                0,
                m,
                out,
                first,
                work.strides,
                0,
                work.length,
                work.step,
                work.index,
            )
            total = 0.0
            for i in range(first, first + tree.target_card[k]):
                total += out[i]
            for i in range(first, first + tree.target_card[k]):
                out[i] /= total


@kernel(**HOT)
def _drop_barren(tree, work):
    """Drop conditionals that sum to one here: the child is missing, not asked for, and nothing else mentions it."""
    for v in range(len(tree.mentions)):
        work.mentions[v] = tree.mentions[v]
    for i in range(len(tree.barren_slot)):
        v = tree.barren_slot[i]
        f = tree.barren_factor[i]
        drop = work.code[v] < 0 and work.mentions[v] == 0
        work.dropped[f] = drop
        if drop:
            work.code[v] = 0
            for j in range(tree.axis_start[f], tree.axis_start[f + 1]):
                work.mentions[tree.axis_slot[j]] -= 1


@kernel(**HOT)
def _answer_rows(tree, work, codes, first, last, floats, width, out, log_mass, status):
    """Answer rows one after the other."""
    n = len(tree.parent)
    n_targets = len(tree.target_slot)
    for r in range(first, last):
        for v in range(len(tree.card)):
            code = -1
            if tree.column[v] >= 0:
                code = codes[r, tree.column[v]]
            if tree.card[v] == 1:
                code = 0
            work.code[v] = code
        _drop_barren(tree, work)
        for c in range(n):
            work.asked[c] = False
            for k in range(tree.target_start[c], tree.target_start[c + 1]):
                if work.code[tree.target_slot[k]] < 0:
                    work.asked[c] = True
        found, log_mass[r] = _collect_row(r, tree, codes, work, floats)
        status[r] = found
        if found != DONE or n_targets == 0:
            continue
        at = r * width
        for i in range(at, at + width):
            out[i] = 0.0
        for k in range(n_targets):
            code = (
                codes[r, tree.target_column[k]] if tree.target_slot[k] < 0 else work.code[tree.target_slot[k]]
            )
            if code >= 0:
                out[at + tree.target_at[k] + code] = 1.0
        _distribute_row(tree, work, floats, out, at)


@kernel
def answer_rows(tree, codes, first, last, floats, width, out, log_mass, status):
    """Answer rows `first..last` of a matrix of state codes (-1: missing).

    Writes the log of each row's mass, the posteriors of its targets (`width` numbers a row in the flat `out`), and a
    status. `floats` is this thread's room for tables.
    """
    work = _work(tree)
    _answer_rows(tree, work, codes, first, last, floats, width, out, log_mass, status)
