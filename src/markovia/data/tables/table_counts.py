"""Tables of counts from rows in memory.

Method: tables that share variables or are small are counted as one larger table in the nearest cache and summed out
afterwards, so that a row is counted a few times and not once for each table. A missing cell is one more state of its
column while counting. Rows are shared between threads. Compiled code does it (`markovia.kernels.counting`), NumPy where
the data are too few to wait for it. Tables with far more cells than rows are counted by hashing, or by sorting.
Cost: rows times merged tables; the number of threads does not change the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.clock import now
from markovia.runtime.threads import in_parallel

MERGED_CELLS = 4096
"""The largest table that several small ones are merged into: it stays in the first cache."""
ROWS_A_CELL = 64
"""A merged table has at most one cell for so many rows."""
WIDENED_CELLS = 2**20
"""Above this size, rows that miss a cell are taken out first instead of being counted as a further state."""
LOOKED_AT = 32
"""Groups that a table is tried with, of the latest and of those with each of its columns."""
PART_ROWS = 2**17
"""What one thread counts at a time."""
PART_CELLS = 2**20
"""With more cells than this, threads share the tables and not the rows."""
LOAD_SECONDS, COMPILE_SECONDS = 0.5, 6.0
"""What NumPy may spend in a process before the compiled code is loaded, or compiled for this and later runs."""
NUMPY_SECONDS = 4e-9
"""What NumPy takes for one cell of data, about."""
BLOCK = 2**16

_numpy_spent = 0.0


@dataclass(frozen=True)
class Merged:
    """One table that is counted: its columns with their sizes, and the asked tables it holds."""

    columns: tuple[int, ...]
    shape: tuple[int, ...]
    holds: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)


def count_codes(
    codes: Codes,
    weights: Array | None,
    cards: Sequence[int],
    gaps: Sequence[bool],
    scopes: Sequence[Sequence[int]],
) -> list[Array]:
    """Return a dense table of counts for each scope (column numbers); rows that miss a cell of it do not count.

    Parameters
    ----------
    codes
        One row a column of data, 8-bit or 32-bit; -1 is missing.
    weights
        One number a data row, or None.
    cards
        The number of states of each column.
    gaps
        Whether each column misses some cell.
    scopes
        The columns of each table, in the order of its axes.
    """
    n_rows = codes.shape[1]
    widened = [c + bool(g) for c, g in zip(cards, gaps, strict=True)]
    results: list[Array] = [np.zeros(0)] * len(scopes)
    together = []
    for t, scope in enumerate(scopes):
        if any(gaps[c] for c in scope) and prod(widened[c] for c in scope) > WIDENED_CELLS:
            picked = codes[np.array(scope, dtype=np.intp)]
            whole = (picked >= 0).all(axis=0)
            rest = np.ascontiguousarray(picked[:, whole])
            left = None if weights is None else weights[whole]
            own = [cards[c] for c in scope]
            results[t] = count_codes(rest, left, own, [False] * len(scope), [range(len(scope))])[0]
        else:
            together.append(t)
    tables = merged([scopes[t] for t in together], widened, min(MERGED_CELLS, n_rows // ROWS_A_CELL))
    for table, counted in zip(tables, _count(codes, weights, gaps, tables), strict=True):
        for place in table.holds:
            scope = scopes[together[place]]
            found = _summed_out(counted, table.columns, scope)
            found = found[tuple(slice(1, None) if gaps[c] else slice(None) for c in scope)]
            results[together[place]] = np.ascontiguousarray(found, dtype=np.float64)
    return results


def merged(scopes: Sequence[Sequence[int]], cards: Sequence[int], limit: int) -> list[Merged]:
    """Put tables together where their union has at most `limit` cells, the largest first, where it grows least.

    A table looks at the latest groups, and at the latest that have one of its columns, so the work is linear in the tables.
    """
    sizes = [prod(cards[c] for c in scope) for scope in scopes]
    groups: list[tuple[set[int], int, list[int]]] = []
    having: dict[int, list[int]] = {}
    for t in sorted(range(len(scopes)), key=lambda t: -sizes[t]):
        best, least = -1, float("inf")
        near = {g for c in scopes[t] for g in having.get(c, ())[-LOOKED_AT:]}
        near.update(range(max(0, len(groups) - LOOKED_AT), len(groups)))
        for g in sorted(near):
            columns, size, _ = groups[g]
            growth = prod(cards[c] for c in scopes[t] if c not in columns)
            if growth == 1 or (size * growth <= limit and growth < least):
                best, least = g, growth
                if growth == 1:
                    break
        if best < 0:
            best, fresh = len(groups), set(scopes[t])
            groups.append((fresh, sizes[t], [t]))
        else:
            columns, size, holds = groups[best]
            fresh = set(scopes[t]) - columns
            groups[best] = (columns | set(scopes[t]), size * int(least), [*holds, t])
        for c in fresh:
            having.setdefault(c, []).append(best)
    made = []
    for columns, _, holds in groups:
        order = tuple(scopes[holds[0]]) if len(holds) == 1 else tuple(sorted(columns))
        made.append(Merged(order, tuple(cards[c] for c in order), tuple(holds)))
    return made


def _summed_out(table: Any, columns: Sequence[int], scope: Sequence[int]) -> Any:
    """Sum a table over the columns outside the scope and put its axes in the scope's order."""
    if tuple(columns) == tuple(scope):
        return table
    left = table.sum(axis=tuple(i for i, c in enumerate(columns) if c not in scope))
    kept = [c for c in columns if c in scope]
    return left.transpose([kept.index(c) for c in scope])


def _count(codes: Codes, weights: Array | None, gaps: Sequence[bool], tables: Sequence[Merged]) -> list[Any]:
    strides, bases = [], []
    for table in tables:
        steps = [prod(table.shape[k + 1 :]) for k in range(len(table.shape))]
        strides.append(steps)
        bases.append(sum(s for s, c in zip(steps, table.columns, strict=True) if gaps[c]))
    kernel = kernel_for(codes.shape[1] * sum(1 + len(t.columns) for t in tables))
    if kernel is None:
        return _with_numpy(codes, weights, tables, strides, bases)
    starts = np.cumsum([0, *(t.size for t in tables)]).astype(np.int64)
    scope_start = np.cumsum([0, *(len(t.columns) for t in tables)]).astype(np.int64)
    columns = np.array([c for t in tables for c in t.columns], dtype=np.int64)
    flat_strides = np.array([s for steps in strides for s in steps], dtype=np.int64)
    base = np.array(bases, dtype=np.int64)
    n_rows, n_cells = codes.shape[1], int(starts[-1])

    def run(first: int, last: int, low: int, high: int, out: Any) -> None:
        ends = slice(low, high + 1)
        chosen = (scope_start[ends], columns, flat_strides, base[low:high], starts[ends])
        if weights is None:
            kernel.count_tables(codes, first, last, *chosen, out)
        else:
            kernel.weigh_tables(codes, weights, first, last, *chosen, out)

    kind = np.uint32 if weights is None else np.float64
    if n_rows <= PART_ROWS:
        out = np.zeros(n_cells, dtype=kind)
        run(0, n_rows, 0, len(tables), out)
    elif n_cells <= min(PART_CELLS, n_rows // 4):
        out = _by_rows(run, n_rows, n_cells, len(tables), kind, weights is None)
    else:
        out = np.zeros(n_cells, dtype=kind)
        in_parallel(lambda t, _: run(0, n_rows, t, t + 1, out), range(len(tables)), lambda: None)
    return [
        out[a:b].reshape(t.shape).astype(np.float64)
        for a, b, t in zip(starts[:-1], starts[1:], tables, strict=True)
    ]


def _by_rows(run: Any, n_rows: int, n_cells: int, n_tables: int, kind: Any, whole: bool) -> Any:
    """Count stretches of rows in threads; whole numbers in one room a thread, weights in one a stretch.

    Sums of weights depend on the order, so stretches are fixed by the data and added in their order.
    """
    parts = -(-n_rows // PART_ROWS)
    if not whole:
        parts = min(parts, 16)
    edges = [n_rows * i // parts for i in range(parts + 1)]
    rooms: list[Any] = []

    def room() -> Any:
        made = np.zeros(n_cells, dtype=kind)
        rooms.append(made)
        return made

    def stretch(i: int, out: Any) -> Any:
        if not whole:
            out = np.zeros(n_cells, dtype=kind)
        run(edges[i], edges[i + 1], 0, n_tables, out)
        return None if whole else out

    found = in_parallel(stretch, range(parts), room if whole else lambda: None)
    total = np.zeros(n_cells, dtype=np.float64)
    for part in rooms if whole else found:
        total += part
    return total


def _with_numpy(
    codes: Codes,
    weights: Array | None,
    tables: Sequence[Merged],
    strides: Sequence[Sequence[int]],
    bases: Sequence[int],
) -> list[Array]:
    global _numpy_spent
    start = now()
    results = [np.zeros(table.size) for table in tables]
    for first in range(0, codes.shape[1], BLOCK):
        last = min(first + BLOCK, codes.shape[1])
        for table, steps, base, out in zip(tables, strides, bases, results, strict=True):
            index = np.full(last - first, base, dtype=np.intp)
            for column, step in zip(table.columns, steps, strict=True):
                index += codes[column, first:last] * np.intp(step)
            own = None if weights is None else weights[first:last]
            if table.size > 4 * BLOCK:
                np.add.at(out, index, 1.0 if own is None else own)
            else:
                out += np.bincount(index, own, minlength=table.size)
    _numpy_spent += now() - start
    return [out.reshape(table.shape) for out, table in zip(results, tables, strict=True)]


def kernel_for(cells: int) -> Any:
    """Return the compiled code, or None where NumPy is done with so many cells before it would be there."""
    from markovia.kernels.compiled_code import worth_loading

    plain = _numpy_spent + cells * NUMPY_SECONDS
    if not worth_loading("markovia.kernels.counting:count_tables", plain, LOAD_SECONDS, COMPILE_SECONDS):
        return None
    from markovia.kernels import counting

    return counting


def distinct_rows(
    codes: Codes,
    weights: Array | None,
    cards: Sequence[int],
    keep_gaps: bool = False,
    kind: type[np.signedinteger[Any]] = np.int64,
) -> tuple[NDArray[Any], Array]:
    """Return the different columns of `codes`, one row each, sorted, and the weight of each.

    Columns of `codes` that miss a cell are left out, or kept with -1 in its place.
    """
    if not keep_gaps:
        whole = (codes >= 0).all(axis=0)
        if not whole.all():
            codes = codes[:, whole]
            weights = None if weights is None else weights[whole]
    shift = int(keep_gaps)
    n_rows = codes.shape[1]
    # the keys are numbers below `radix`; where the next column would make them too large they are numbered anew
    keys, radix = np.zeros(n_rows, dtype=np.int64), 1
    books: list[tuple[list[int], Ints | None]] = []
    pending: list[int] = []
    for k, card in enumerate(cards):
        if radix * (card + shift) >= 2**62:
            known, keys = np.unique(keys, return_inverse=True)
            books.append((pending, known))
            pending, radix = [], len(known)
        keys = keys * (card + shift) + (codes[k] + shift)
        radix *= card + shift
        pending.append(k)
    books.append((pending, None))
    found, totals = _counted_keys(keys, weights)
    rows = np.empty((len(found), len(cards)), dtype=kind)
    rest = found
    for columns, numbered in reversed(books):
        if numbered is not None:
            rest = numbered[rest]
        for k in reversed(columns):
            rest, code = np.divmod(rest, cards[k] + shift)
            rows[:, k] = code - shift
    return rows, totals


def _counted_keys(keys: Ints, weights: Array | None) -> tuple[Ints, Array]:
    """Return the distinct keys in order, and how often each occurs or what its rows weigh."""
    kernel = kernel_for(16 * len(keys))
    if kernel is None:
        known, places = np.unique(keys, return_inverse=True)
        return known, np.bincount(places, weights, minlength=len(known)).astype(np.float64)
    none = np.zeros(0) if weights is None else weights
    slots = 1 << 16
    held_keys, held_weights = np.full(slots, -1, dtype=np.int64), np.zeros(slots)
    done, held = kernel.count_keys(keys, none, 0, 0, held_keys, held_weights)
    while done < len(keys):
        used = held_keys >= 0
        old, old_weights = held_keys[used], held_weights[used]
        slots *= 4
        held_keys, held_weights = np.full(slots, -1, dtype=np.int64), np.zeros(slots)
        _, held = kernel.count_keys(old, old_weights, 0, 0, held_keys, held_weights)
        done, held = kernel.count_keys(keys, none, done, held, held_keys, held_weights)
    used = held_keys >= 0
    known, totals = held_keys[used], held_weights[used]
    order = np.argsort(known, kind="stable")
    return known[order], totals[order]
