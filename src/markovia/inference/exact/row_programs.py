"""Laying out a clique tree for rows of data.

Method: variables that every row observes are cut out before the order is searched, so they widen no clique;
conditionals that no row needs are dropped; a single target is eliminated last, which puts it into the root, where it is
read off without a pass down. Factors get maximum one. The axes of a table that every row observes come first, the
others follow in the order of the cliques.
Reference: Lauritzen & Spiegelhalter (1988); Shachter (1986) for barren variables.
Cost: one order search and one copy of the tables. `markovia.inference.choosing.evidence_rows` keeps programs with the model.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.exact.device_rows import DeviceRows
from markovia.inference.exact.tree_plan import TreeStructure, plan_for, scope_of
from markovia.inference.problem import Piece, Problem
from markovia.kernels.clique_trees.program_sections import FACTOR_HOME, SLOT
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.threads import in_parallel, thread_count

MISSING = -1
"""The state code of a missing cell."""
ROOM = 1 << 22
"""Entries of a thread's room at most; a row that needs more is asked of the engine."""
WRITTEN_OUT = 1 << 22
"""Entries up to which a structured conditional is written out as a table."""

Ran: TypeAlias = tuple[Array, Array, NDArray[np.int8]]
"""Log masses, posteriors and statuses of rows."""


class RowProgram:
    """A clique tree compiled for a batch: which columns it reads and which targets it writes."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        tree: Ints,
        values: Array,
        low: Array,
        width: int,
        log_scale: float,
        radix: Ints | None,
        entries: float,
    ) -> None:
        self.pieces = pieces
        self.tree = tree
        self.values = values
        self.low = low
        self.width = width
        self.log_scale = log_scale
        self.radix = radix
        self.room = int(tree[0]) + int(min(3.0 * entries + 64.0, ROOM))

    def run(self, codes: NDArray[np.int32]) -> Ran:
        """Return log masses, posteriors and statuses of rows of state codes."""
        from markovia.kernels.clique_trees.evidence_rows import NUMBERS, answer_rows, room_for

        n = len(codes)
        out = np.empty(n * self.width)
        log_mass = np.empty(n)
        status = np.empty(n, dtype=np.int8)
        share = max(128, -(-n // (4 * thread_count())))
        packed = (self.tree, self.values, self.low)

        work = room_for(self.tree[: len(NUMBERS)].tolist())

        def part(first: int, room: tuple[Ints, Array]) -> None:
            last = min(n, first + share)
            answer_rows(packed, codes, first, last, room, self.width, (out, log_mass, status))

        in_parallel(part, range(0, n, share), lambda: (np.empty(work, dtype=np.int64), np.empty(self.room)))
        return log_mass + self.log_scale, out.reshape(n, self.width), status

    def run_on_gpu(self, codes: Codes) -> Ran:
        """Answer as `run` does, on the GPU; the processor takes the rows that are too much for it.

        Raises
        ------
        DeviceFailure
            If the GPU fails.
        """
        log_mass, found, status = self._on_gpu.run(codes)
        left = np.flatnonzero(status > 1)
        if len(left):
            log_mass[left], found[left], status[left] = self.run(codes[left].astype(np.int32))
        return log_mass, found, status

    @cached_property
    def _on_gpu(self) -> DeviceRows:
        return DeviceRows(self)


def compile_rows(
    problem: Problem, targets: Sequence[str], columns: Sequence[str], always: Sequence[bool], effort: float
) -> RowProgram | None:
    """Lay out the clique tree of the variables that some row misses; None if a table cannot be loaded."""
    pieces = problem.relevant([*targets, *columns])
    scopes = [scope_of(p) for p in pieces]
    if any(
        prod(len(v) for v in scope) > WRITTEN_OUT and _structured(p)
        for p, scope in zip(pieces, scopes, strict=True)
    ):
        return None
    column_of = {n: i for i, n in enumerate(columns)}
    fixed = {n for n, observed in zip(columns, always, strict=True) if observed}
    needed = {v.name: v for scope in scopes for v in scope}
    needed.update({v.name: v for v in problem.unmentioned()})
    needed.update({t: problem.variables[t] for t in targets})
    names = [n for n in needed if n not in fixed]
    ids = {n: i for i, n in enumerate(names)}
    structure = TreeStructure(
        [len(needed[n]) for n in names], [[ids[v.name] for v in scope if v.name in ids] for scope in scopes]
    )
    frame = _Cliques(structure, [ids[t] for t in targets if t in ids], effort)
    loaded = _Factors(pieces, scopes, ids, frame, column_of)
    if loaded.log_scale is None:
        return None
    barren = _Barren(pieces, scopes, targets, ids, frame, loaded)
    column = np.full(len(names), MISSING, dtype=np.int64)
    for n, i in ids.items():
        column[frame.slot[i]] = column_of.get(n, MISSING)
    width = sum(len(problem.variables[t]) for t in targets)
    return RowProgram(
        problem.pieces,
        _row_tree(frame, loaded, column, _Targets(problem.variables, targets, ids, frame, column_of), barren),
        loaded.values,
        np.array(loaded.low, dtype=np.float64),
        width,
        loaded.log_scale,
        _radix([problem.variables[n] for n in columns]),
        frame.entries,
    )


class _Cliques:
    """The cliques of the open variables, as flat arrays."""

    def __init__(self, structure: TreeStructure, last: list[int], effort: float) -> None:
        empty = np.empty(0, dtype=np.int64)
        self.start = np.zeros(1, dtype=np.int64)
        self.slots = self.n_separator = self.parent = self.card = self.home = self.slot = empty
        self.factor_home = np.full(len(structure.scope_start) - 1, -1, dtype=np.int64)
        self.entries = 0.0
        if len(structure.card):
            plan = plan_for(structure, effort=effort)
            if len(last) == 1:
                rooted = plan_for(structure, last=last, effort=effort)
                plan = rooted if rooted.total <= 2.0 * plan.total else plan
            self.start, self.slots = plan.clique_start, plan.clique
            self.n_separator, self.parent, self.card = plan.n_separator, plan.parent, plan.card
            self.slot, self.home, self.factor_home = plan.section(SLOT), plan.home, plan.section(FACTOR_HOME)
            self.entries = plan.total
        slots: list[int] = self.slots.tolist()
        starts: list[int] = self.start.tolist()
        self.place_of = [{s: i for i, s in enumerate(slots[low:high])} for low, high in pairwise(starts)]
        place = [-1] * len(slots)
        for c, (p, width) in enumerate(zip(self.parent.tolist(), self.n_separator.tolist(), strict=True)):
            for i in range(starts[c], starts[c] + width):
                place[i] = self.place_of[p][slots[i]]
        self.place = np.array(place, dtype=np.int64)


class _Factors:
    """The tables, those of factors with maximum one, sorted by clique, axes that every row observes first."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        scopes: Sequence[Sequence[Variable]],
        ids: dict[str, int],
        frame: _Cliques,
        column_of: dict[str, int],
    ) -> None:
        n = len(frame.parent)
        homes = np.where(frame.factor_home < 0, n, frame.factor_home)
        self.order: list[int] = np.argsort(homes, kind="stable").tolist()
        self.start = np.searchsorted(homes[self.order], np.arange(n + 2)).astype(np.int64)
        self.fixed: list[tuple[int, int]] = []
        self.axes: list[tuple[int, int, int]] = []
        self.fixed_start, self.axis_start, self.at, self.low = [0], [0], [0], []
        self.log_scale: float | None = 0.0
        tables = []
        for f in self.order:
            scope = scopes[f]
            inner = [a for a, v in enumerate(scope) if v.name in ids]
            inner.sort(key=lambda a: -frame.slot[ids[scope[a].name]])
            outer = [a for a, v in enumerate(scope) if v.name not in ids]
            values = pieces[f].values.transpose([*outer, *inner])
            strides = np.cumprod([1, *values.shape[:0:-1]])[::-1].tolist()
            for a, stride in zip(outer, strides, strict=False):
                self.fixed.append((column_of[scope[a].name], stride))
            for a, stride in zip(inner, strides[len(outer) :], strict=False):
                slot = int(frame.slot[ids[scope[a].name]])
                self.axes.append((slot, frame.place_of[homes[f]][slot], stride))
            self.fixed_start.append(len(self.fixed))
            self.axis_start.append(len(self.axes))
            self.at.append(self.at[-1] + values.size)
            flat = values.ravel()
            top = float(flat.max(initial=0.0)) if isinstance(pieces[f], Factor) else 1.0
            least = float(flat[flat > 0].min(initial=np.inf))
            if top == 0.0 or least / top < 1e-300:
                self.log_scale = None
                return
            self.log_scale += float(np.log(top))
            self.low.append(least / top)
            tables.append(flat / top)
        self.values = np.concatenate(tables) if tables else np.empty(0)


class _Targets:
    """The targets sorted by the clique that removes them; those that every row observes come last."""

    def __init__(
        self,
        variables: Mapping[str, Variable],
        targets: Sequence[str],
        ids: dict[str, int],
        frame: _Cliques,
        column_of: dict[str, int],
    ) -> None:
        n = len(frame.parent)
        listed = []
        at = 0
        for t in targets:
            slot = int(frame.slot[ids[t]]) if t in ids else -1
            card = len(variables[t])
            listed.append((int(frame.home[slot]) if slot >= 0 else n, slot, column_of.get(t, -1), card, at))
            at += card
        listed.sort()
        rows = np.array(listed, dtype=np.int64).reshape(-1, 5)
        self.start = np.searchsorted(rows[:, 0], np.arange(n + 1)).astype(np.int64)
        self.slot, self.column, self.card, self.at = (rows[:, i].copy() for i in range(1, 5))


class _Barren:
    """Conditionals that a row may drop, children before parents, and how many other factors mention each slot."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        scopes: Sequence[Sequence[Variable]],
        targets: Sequence[str],
        ids: dict[str, int],
        frame: _Cliques,
        factors: _Factors,
    ) -> None:
        slot_of = {n: int(frame.slot[i]) for n, i in ids.items()}
        number = {f: i for i, f in enumerate(factors.order)}
        own: dict[str, list[int]] = {}
        mentioned: dict[str, list[int]] = {n: [] for n in ids}
        for f, (piece, scope) in enumerate(zip(pieces, scopes, strict=True)):
            child = piece.variable.name if isinstance(piece, Conditional) else None
            if child in ids:
                own.setdefault(str(child), []).append(f)
            for v in scope:
                if v.name in ids and v.name != child:
                    mentioned[v.name].append(f)
        can = {n: fs[0] for n, fs in own.items() if len(fs) == 1 and n not in targets}
        waiting = {n: len(fs) for n, fs in mentioned.items()}
        ready = [n for n in can if waiting[n] == 0]
        self.listed: list[tuple[int, int]] = []
        while ready:
            name = ready.pop()
            self.listed.append((slot_of[name], number[can[name]]))
            for v in scopes[can[name]]:
                if v.name != name and v.name in ids:
                    waiting[v.name] -= 1
                    if waiting[v.name] == 0 and v.name in can:
                        ready.append(v.name)
        self.mentions = np.zeros(len(ids), dtype=np.int64)
        for n, fs in mentioned.items():
            self.mentions[slot_of[n]] = len(fs)


def _row_tree(frame: _Cliques, factors: _Factors, column: Ints, targets: _Targets, barren: _Barren) -> Ints:
    """Pack the tree; see `markovia.kernels.clique_trees.evidence_rows`."""
    from markovia.kernels.clique_trees.evidence_rows import NUMBERS

    n = len(frame.parent)
    by_parent = np.argsort(frame.parent, kind="stable")[int((frame.parent < 0).sum()) :]
    child_start = np.searchsorted(frame.parent[by_parent], np.arange(n + 1))
    fixed = np.array(factors.fixed, dtype=np.int64).reshape(-1, 2)
    axes = np.array(factors.axes, dtype=np.int64).reshape(-1, 3)
    droppable = np.array(barren.listed, dtype=np.int64).reshape(-1, 2)
    sections = (
        column, frame.card, frame.start, frame.slots, frame.place, frame.n_separator, frame.parent, child_start,
        by_parent, factors.start, factors.fixed_start, *fixed.T, factors.axis_start, *axes.T, factors.at,
        targets.start, targets.slot, targets.column, targets.card, targets.at, *droppable.T, barren.mentions,
    )  # fmt: skip
    operands = np.diff(factors.start)[:n] + np.diff(child_start)
    numbers = (
        n, len(column), len(factors.order), len(targets.slot), len(droppable),
        int(np.diff(frame.start).max(initial=1)), int(operands.max(initial=1)),
    )  # fmt: skip
    assert len(numbers) == len(NUMBERS)
    starts = np.cumsum([len(NUMBERS) + len(sections), *map(len, sections)])[:-1]
    return np.concatenate((numbers, starts, *sections)).astype(np.int64)


def _ints(numbers: Iterable[int]) -> Ints:
    return np.array(list(numbers), dtype=np.int64)


def _radix(variables: Sequence[Variable]) -> Ints | None:
    """Return weights that make one number of a row's codes, None if it would not fit."""
    weights = [1]
    for v in variables:
        weights.append(weights[-1] * (len(v) + 1))
    return _ints(weights[:-1]) if weights[-1] < 2**62 else None


def _structured(piece: Piece) -> bool:
    return not isinstance(piece, Factor | ConditionalTable)
