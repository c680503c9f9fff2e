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
from collections.abc import Sequence
from math import inf, log

from markovia.kernels.clique_trees.strided import ADD, MULTIPLY, SET, walk
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers

DONE, IMPOSSIBLE, OUT_OF_RANGE, TOO_LARGE = 0, 1, 2, 3
SMALL, LARGE = 1e-100, 1e100
"""Between these a running product is kept as it is; outside, its log is taken."""
UNWATCHED = 1e-270
"""The least product that a table may hold without being looked at after every factor."""
SPREAD = 1e-145
"""The least entry of a watched table relative to its largest."""

NUMBERS = ("n_cliques", "n_slots", "n_factors", "n_targets", "n_barren", "axes", "operands")
SECTIONS = (
    "column", "card", "clique_start", "clique", "place", "n_separator", "parent", "child_start", "children",
    "factor_start", "fixed_start", "fixed_column", "fixed_stride", "axis_start", "axis_slot", "axis_place",
    "axis_stride", "factor_at", "target_start", "target_slot", "target_column", "target_card", "target_at",
    "barren_slot", "barren_factor", "mentions",
)  # fmt: skip
"""The parts of a clique tree over the variables that some row misses, packed into one array: first the numbers, then where
each section begins, then the sections.

`column` says where a slot's codes are (-1: nowhere), `place` where a separator's axis is in the parent clique. Factors
are sorted by clique; those without open variables come last, as do targets that every row observes. `fixed_*` are the
axes of factors that every row observes, `axis_*` the others. `barren_*` lists conditionals that are dropped where their
child is missing and nothing else needs it, children before parents; `mentions` counts the other factors of each slot.
"""
RowTree = namedtuple("RowTree", (*NUMBERS, *SECTIONS))  # type: ignore[misc]
Work = namedtuple(
    "Work",
    "code mentions message_at message_size table_at posterior_at asked dropped dims rank scratch offsets source strides "
    "least",
)


def room_for(numbers: Sequence[int]) -> int:
    """Return how many whole numbers a thread needs for its work."""
    n_cliques, n_slots, n_factors, _, _, axes, operands = numbers
    return 2 * n_slots + 5 * n_cliques + n_factors + 5 * axes + operands * (axes + 2)


@inner(bare=True)
def _tree_of(p):
    at = beyond(p, 7)
    return RowTree(
        p[0], p[1], p[2], p[3], p[4], p[5], p[6], beyond(p, at[0]), beyond(p, at[1]), beyond(p, at[2]), beyond(p, at[3]),
        beyond(p, at[4]), beyond(p, at[5]), beyond(p, at[6]), beyond(p, at[7]), beyond(p, at[8]), beyond(p, at[9]),
        beyond(p, at[10]), beyond(p, at[11]), beyond(p, at[12]), beyond(p, at[13]), beyond(p, at[14]), beyond(p, at[15]),
        beyond(p, at[16]), beyond(p, at[17]), beyond(p, at[18]), beyond(p, at[19]), beyond(p, at[20]), beyond(p, at[21]),
        beyond(p, at[22]), beyond(p, at[23]), beyond(p, at[24]), beyond(p, at[25]),
    )  # fmt: skip


@inner(bare=True)
def _work_of(tree, ints, least):
    n, k, axes, operands = tree.n_cliques, tree.n_slots, tree.axes, tree.operands
    by_clique = beyond(ints, 2 * k)
    dropped = beyond(by_clique, 5 * n)
    dims = beyond(dropped, tree.n_factors)
    offsets = beyond(dims, 5 * axes)
    return Work(
        ints,
        beyond(ints, k),
        by_clique,
        beyond(by_clique, n),
        beyond(by_clique, 2 * n),
        beyond(by_clique, 3 * n),
        beyond(by_clique, 4 * n),
        dropped,
        dims,
        beyond(dims, axes),
        beyond(dims, 2 * axes),
        offsets,
        beyond(offsets, operands),
        beyond(offsets, 2 * operands),
        least,
    )


@inner(bare=True)
def _fold(mass, logs, t):
    """Multiply a positive number into a product that is kept as mass * exp(logs)."""
    if t < SMALL or t > LARGE:
        logs += log(t)
    else:
        mass *= t
        if mass < SMALL or mass > LARGE:
            logs += log(mass)
            mass = 1.0
    return mass, logs


@inner(bare=True)
def _multiply_in(fresh, big, m, small, strides, work):
    """Set or multiply an operand into a table over `m` axes."""
    if m == 1:
        for i in range(work.dims[0]):
            t = small[i * strides[0]]
            big[i] = t if fresh else big[i] * t
    elif m == 2:
        at = 0
        for i in range(work.dims[0]):
            for j in range(work.dims[1]):
                t = small[i * strides[0] + j * strides[1]]
                big[at] = t if fresh else big[at] * t
                at += 1
    else:
        walk(SET if fresh else MULTIPLY, big, small, m, work.dims, strides, work.scratch)


@inner(bare=True)
def _watch(floats, at, size):
    """Look at a table for zeros and range; return (status, what it was divided by)."""
    peak = 0.0
    least = inf
    for i in range(at, at + size):
        t = floats[i]
        if t > 0.0:
            least = t if t < least else least
            peak = t if t > peak else peak
    if peak == 0.0:
        return IMPOSSIBLE, 1.0
    if least < SPREAD * (peak if peak < 1.0 else 1.0):
        return OUT_OF_RANGE, 1.0
    if peak > 1e-50:
        return DONE, 1.0
    for i in range(at, at + size):
        floats[i] /= peak
    return DONE, peak


@inner(bare=True)
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


@inner(bare=True)
def _message_strides(child, m, tree, work, strides):
    """Write the strides of a child's message along the missing axes of its parent."""
    for a in range(m):
        strides[a] = 0
    begin = tree.clique_start[child]
    step = 1
    for i in range(begin + tree.n_separator[child] - 1, begin - 1, -1):
        v = tree.clique[i]
        if work.code[v] < 0:
            strides[work.rank[tree.place[i]]] = step
            step *= tree.card[v]


@inner(bare=True)
def _collect_row(tree, codes, work, values, factor_low, floats, room):
    """Pass messages up for one row; return (status, log of the mass)."""
    n = tree.n_cliques
    mass = 1.0
    logs = 0.0
    top = 0
    # factors over columns that every row observes: one number each
    for f in range(tree.factor_start[n], tree.factor_start[n + 1]):
        x = tree.factor_at[f]
        for j in range(tree.fixed_start[f], tree.fixed_start[f + 1]):
            x += tree.fixed_stride[j] * codes[tree.fixed_column[j]]
        if values[x] == 0.0:
            return IMPOSSIBLE, -inf
        mass, logs = _fold(mass, logs, values[x])
    for c in range(n):
        # the axes of the clique that are missing here; observed ones fall away
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
                if size > room:
                    return TOO_LARGE, 0.0
        # its factors, with the row's states put in: tables to multiply, or numbers that join the mass
        k = 0
        low = 1.0
        for f in range(tree.factor_start[c], tree.factor_start[c + 1]):
            if work.dropped[f]:
                continue
            x = tree.factor_at[f]
            for j in range(tree.fixed_start[f], tree.fixed_start[f + 1]):
                x += tree.fixed_stride[j] * codes[tree.fixed_column[j]]
            strides = beyond(work.strides, k * tree.axes)
            for a in range(m):
                strides[a] = 0
            table = False
            for j in range(tree.axis_start[f], tree.axis_start[f + 1]):
                code = work.code[tree.axis_slot[j]]
                if code >= 0:
                    x += tree.axis_stride[j] * code
                else:
                    strides[work.rank[tree.axis_place[j]]] = tree.axis_stride[j]
                    table = True
            if table:
                work.offsets[k] = x
                work.source[k] = 0
                low *= factor_low[f]
                k += 1
            elif values[x] == 0.0:
                return IMPOSSIBLE, -inf
            else:
                mass, logs = _fold(mass, logs, values[x])
        work.message_size[c] = separator
        if m == 0:
            continue
        # messages of its children; those without a separator are in the mass already
        for i in range(tree.child_start[c], tree.child_start[c + 1]):
            child = tree.children[i]
            if work.message_size[child] > 1:
                _message_strides(child, m, tree, work, beyond(work.strides, k * tree.axes))
                work.offsets[k] = work.message_at[child]
                work.source[k] = 1
                low *= work.least[child]
                k += 1
        if top + size + 2 * separator > room:
            return TOO_LARGE, 0.0
        # multiply; the table is watched where entries may get too small
        if k == 0:
            for i in range(top, top + size):
                floats[i] = 1.0
        for o in range(k):
            small = floats if work.source[o] else values
            small = beyond(small, work.offsets[o])
            _multiply_in(o == 0, beyond(floats, top), m, small, beyond(work.strides, o * tree.axes), work)
            if low < UNWATCHED:
                status, taken = _watch(floats, top, size)
                if status != DONE:
                    return status, -inf
                if taken != 1.0:
                    mass, logs = _fold(mass, logs, taken)
        # sum onto the separator; over the table itself, unless the way down needs that
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
            peak = t if t > peak else peak
        if peak == 0.0:
            return IMPOSSIBLE, -inf
        mass, logs = _fold(mass, logs, peak)
        inverse = 1.0 / peak
        # keep the table for the way down, and ask the parent for its belief
        if work.asked[c]:
            for i in range(top, top + size):
                floats[i] *= inverse
            work.table_at[c] = top
            if separator > 1:
                work.asked[tree.parent[c]] = 1
        work.message_at[c] = out
        if separator > 1:
            least = 1.0
            for s in range(out, out + separator):
                t = floats[s] * inverse
                floats[s] = t
                if t > 0.0:
                    least = t if t < least else least
            work.least[c] = least
            top = out + separator
            if work.asked[c]:
                work.posterior_at[c] = top
                top += separator
        elif work.asked[c]:
            top = out
    return DONE, logs + log(mass)


@inner(bare=True)
def _distribute_row(tree, work, floats, out):
    """Pass beliefs down to the cliques that are asked about; write the posteriors of missing targets to `out`."""
    for c in range(tree.n_cliques - 1, -1, -1):
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
            _message_strides(child, m, tree, work, work.strides)
            walk(ADD, beyond(floats, table), beyond(floats, below), m, work.dims, work.strides, work.scratch)
        for k in range(tree.target_start[c], tree.target_start[c + 1]):
            v = tree.target_slot[k]
            if work.code[v] >= 0:
                continue
            for a in range(m):
                work.strides[a] = 0
            for i in range(tree.clique_start[c], tree.clique_start[c + 1]):
                if tree.clique[i] == v:
                    work.strides[work.rank[i - tree.clique_start[c]]] = 1
            found = beyond(out, tree.target_at[k])
            walk(ADD, beyond(floats, table), found, m, work.dims, work.strides, work.scratch)
            total = 0.0
            for i in range(tree.target_card[k]):
                total += found[i]
            for i in range(tree.target_card[k]):
                found[i] /= total


@inner(bare=True)
def _drop_barren(tree, work):
    """Drop conditionals that sum to one here: the child is missing, not asked for, and nothing else mentions it."""
    for v in range(tree.n_slots):
        work.mentions[v] = tree.mentions[v]
    for i in range(tree.n_barren):
        v = tree.barren_slot[i]
        f = tree.barren_factor[i]
        drop = work.code[v] < 0 and work.mentions[v] == 0
        work.dropped[f] = 1 if drop else 0
        if drop:
            work.code[v] = 0
            for j in range(tree.axis_start[f], tree.axis_start[f + 1]):
                work.mentions[tree.axis_slot[j]] -= 1


@kernel(bare=True)
def answer_rows(packed, codes, first, last, room, width, found):
    """Answer rows `first..last` of a matrix of state codes (-1: missing).

    `packed` is the program, the values of all factors and the least of each; the room of this thread whole numbers
    (`room_for`) and numbers, one a clique and then for tables. Found are the posteriors of each row's targets (`width`
    numbers a row, flat), the log of its mass, and a status.
    """
    _, numbers = room
    columns, left = codes.shape[1], len(numbers)
    program, values, factor_low = pointers(packed)
    ints, floats = pointers(room)
    out, log_mass, status = pointers(found)
    codes = pointer(codes)
    tree = _tree_of(program)
    work = _work_of(tree, ints, floats)
    floats = beyond(floats, tree.n_cliques)
    left -= tree.n_cliques
    for f in range(tree.n_factors):
        work.dropped[f] = 0
    for r in range(first, last):
        row = beyond(codes, r * columns)
        for v in range(tree.n_slots):
            work.code[v] = -1
            if tree.column[v] >= 0:
                work.code[v] = row[tree.column[v]]
            if tree.card[v] == 1:
                work.code[v] = 0
        _drop_barren(tree, work)
        for c in range(tree.n_cliques):
            work.asked[c] = 0
            for k in range(tree.target_start[c], tree.target_start[c + 1]):
                if work.code[tree.target_slot[k]] < 0:
                    work.asked[c] = 1
        ended, log_mass[r] = _collect_row(tree, row, work, values, factor_low, floats, left)
        status[r] = ended
        if ended != DONE or tree.n_targets == 0:
            continue
        answer = beyond(out, r * width)
        for i in range(width):
            answer[i] = 0.0
        for k in range(tree.n_targets):
            v = tree.target_slot[k]
            code = row[tree.target_column[k]] if v < 0 else work.code[v]
            if code >= 0:
                answer[tree.target_at[k] + code] = 1.0
        _distribute_row(tree, work, floats, answer)
