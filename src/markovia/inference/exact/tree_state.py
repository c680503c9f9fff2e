"""Running a compiled clique tree: evidence in, beliefs out, only what changed computed again.

A `TreeState` owns the buffers of one evaluation: upward messages, small clique tables, posteriors of separators and
variables, and flags for what is out of date. It belongs to one thread at a time. A small tree runs in one compiled call.
In a large one, subtrees run side by side in threads, and the large cliques above them are split between threads.
"""

from collections.abc import Iterator, Sequence
from math import fsum, log, log2, prod

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.evidence import Finding, Findings
from markovia.inference.exact.cut_tables import CutFactor, CutTables
from markovia.inference.exact.tree_plan import SPLIT, CompiledTree
from markovia.kernels.clique_trees.program_sections import (
    KEPT,
    LONGEST_ROW,
    N_VALUES,
    SLOT_CLIQUES,
    SLOT_START,
)
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel, thread_count

Room = tuple[Array, Ints]
LIST_AT = 3
"""The run of a tree at which its mostly-zero cliques are listed."""
LISTED = 0.3
"""The share of non-zero entries below which a clique is run from its support."""
DONE, IMPOSSIBLE, OUT_OF_RANGE = 0, 1, 2
"""What a run reports; as in `markovia.kernels.clique_trees.propagation`."""
ALL, NOTHING, AS_MARKED = -1, -2, -3
"""What may be wanted instead of a slot; as there."""
_NO_CODES = np.empty(0, dtype=np.int64)


class OutOfRange(Exception):
    """A product may leave the range of doubles; compute with logarithms."""


class TreeState:
    """Buffers and evidence of one evaluation of a tree, for sums or for maxima."""

    def __init__(self, tree: CompiledTree, maximise: bool = False) -> None:
        from markovia.kernels.clique_trees.propagation import run
        from markovia.kernels.clique_trees.tree_program import load_tables

        plan = tree.plan
        program = plan.program
        self._run = run
        self.tree = tree
        self.plan = plan
        self.maximise = maximise
        n_floats, n_ints, n_flags, _, _ = plan.lengths
        n, _, k, n_values, n_factor_values, n_tables, n_marginals, *_ = plan.header
        floats = np.empty(n_floats)
        ints = np.empty(n_ints, dtype=np.int64)
        ints.fill(-1)
        flags = np.zeros(n_flags, dtype=np.int8)
        at = n_values + n_tables
        self.tables_at = n_values
        self.posterior_at = at
        at += n_values - n_factor_values - n_marginals
        self.marginals: Array = floats[at : at + n_marginals]
        at += n_marginals
        self.log_scale: Array = floats[at : at + n]
        self._soft_base = n_factor_values
        self._floats = floats
        self.code: Ints = ints[:k]
        self._soft_at: Ints = ints[k:]
        self._dirty = flags[:n]
        self._dirty.fill(1)
        self._wanted = flags[4 * n :]
        self.packed = (program, floats, ints, flags)
        self._own = self.room()
        self._low: Array = floats[at + 2 * n : n_floats - k]
        self._factor_scale: float = load_tables(program, tree.raw, floats, self._low, self._own[1])
        self._uncut_scale = self._factor_scale
        self._cut_scale: dict[int, float] = {}
        self._cut_tables = CutTables(plan)
        self._soft_scale = 0.0
        self._soft_in_use = False
        self._in_range = True
        self.findings: Findings = {}

    # -- evidence ------------------------------------------------------------------------------------------------

    def set_evidence(self, findings: Findings) -> None:
        """Take over findings, marking the cliques that they touch."""
        old = self.findings
        if not old and not findings:
            return
        if self.tree.cuts is not None:
            self._cut(self.tree.cuts, findings)
            return
        slot_of = self.tree.slot_of
        for name in old:
            if name not in findings:
                self._set(slot_of[name], None)
        for name, finding in findings.items():
            if name not in old or not _same(finding, old[name]):
                self._set(slot_of[name], finding)
        self.findings = dict(findings)
        soft = [f.likelihood for f in findings.values() if f.likelihood is not None]
        self._soft_in_use = bool(soft)
        self._soft_scale = 0.0
        self._in_range = True
        for likelihood in soft:
            top = float(likelihood.max())
            if top == 0.0:
                self._soft_scale = -np.inf
                return
            self._soft_scale += log(top)
            least = float(likelihood[likelihood > 0].min())
            self._in_range &= log2(least) - log2(top) > -960.0

    def _set(self, slot: int, finding: Finding | None) -> None:
        dirty = self._dirty
        now = -1 if finding is None or finding.code is None else finding.code
        if now != self.code[slot]:
            self.code[slot] = now
            start = self.plan.section(SLOT_START)
            dirty[self.plan.section(SLOT_CLIQUES)[start[slot] : start[slot + 1]]] = 1
        soft_at = self._soft_at
        if finding is not None and finding.likelihood is not None:
            at = self._soft_base + int(self.plan.marginal_at[slot])
            weights = finding.likelihood / (finding.likelihood.max() or 1.0)
            self._floats[at : at + len(weights)] = weights
            soft_at[slot] = at
            self._floats[slot - len(self.code)] = np.log2(weights[weights > 0].min(initial=1.0))
            dirty[self.plan.home[slot]] = 1
        elif soft_at[slot] >= 0:
            soft_at[slot] = -1
            dirty[self.plan.home[slot]] = 1

    def _cut(self, cuts: Sequence[CutFactor], findings: Findings) -> None:
        """Write the factors that findings change in a tree of what they leave of a model."""
        old, self.findings = self.findings, findings
        changed = {n for n, f in findings.items() if n not in old or not _same(f, old[n])}
        if not changed:
            return
        for cut in cuts:
            if changed.isdisjoint(cut.names):
                continue
            table = self._cut_tables.table(cut, findings)
            self._cut_scale[cut.factor] = table.log_scale
            if table.log_scale != -np.inf:
                self._floats[table.at : table.at + len(table.values)] = table.values
                self._low[cut.factor] = table.low
                if table.home >= 0:
                    self._dirty[table.home] = 1
        self._factor_scale = fsum([self._uncut_scale, *self._cut_scale.values()])

    def ask(self, findings: Findings, wanted: int) -> float | None:
        """Enter hard evidence and bring one slot up to date (or `ALL`, or `NOTHING`), in one compiled call.

        Returns the log mass; None where it takes the longer way: a large tree, or evidence that is not hard.

        Raises
        ------
        OutOfRange
            If a product may leave the range of doubles.
        """
        if not self.plan.small or self.maximise or self._soft_scale != 0.0 or self._soft_in_use:
            return None
        code = np.empty(len(self.code), dtype=np.int64)
        code.fill(-1)
        if self.tree.cuts is not None:
            self._cut(self.tree.cuts, findings)
        else:
            slot_of = self.tree.slot_of
            for name, finding in findings.items():
                if finding.code is None:
                    return None
                code[slot_of[name]] = finding.code
        if self._factor_scale != self._factor_scale:
            raise OutOfRange
        if self._factor_scale == -np.inf:
            return -np.inf
        status, log_scale = self._run(
            0, self.plan.n_cliques, False, True, wanted, code, self.packed, self._own
        )
        self.findings = findings
        if status == OUT_OF_RANGE:
            raise OutOfRange
        return -np.inf if status == IMPOSSIBLE else log_scale + self._factor_scale

    # -- runs ----------------------------------------------------------------------------------------------------

    def collect(self) -> float:
        """Bring all upward messages up to date; return the log of the mass, minus infinity if there is none.

        Raises
        ------
        OutOfRange
            If a product may leave the range of doubles.
        """
        if self._factor_scale != self._factor_scale or not self._in_range:
            raise OutOfRange
        if self._factor_scale == -np.inf or self._soft_scale == -np.inf:
            return -np.inf
        status = (
            self._collect_range(0, self.plan.n_cliques, self._own)
            if self.plan.small
            else self._collect_in_parts()
        )
        if status == OUT_OF_RANGE:
            raise OutOfRange
        if status == IMPOSSIBLE:
            return -np.inf
        return fsum([*self.log_scale.tolist(), self._factor_scale, self._soft_scale])

    def _collect_in_parts(self) -> int:
        schedule = self.plan.schedule
        dirty = self._dirty
        self.tree.runs += 1
        if self.tree.runs == LIST_AT and not self.tree.supports:
            supports = _supports(self.tree)
            self.tree.listed = sorted(supports)
            self.tree.supports = supports
        tasks = [r for r in schedule.below if dirty[r[0] : r[1]].any()]
        found = in_parallel(lambda task, room: self._collect_range(*task, room), tasks, self.room)
        if not any(found):
            for first, last in schedule.above:
                if last == first + 1 and first not in self.tree.supports and self.entries(first) >= SPLIT:
                    status = self.collect_large(first) if dirty[first] else DONE
                else:
                    status = self._collect_range(first, last, self._own)
                found.append(status)
                if status != DONE:
                    break
        return max(found, default=DONE)

    def distribute(self, cliques: Sequence[int] | None = None) -> None:
        """Bring the posteriors of the named cliques' own variables up to date (all cliques by default)."""
        wanted = self._wanted
        if cliques is None:
            wanted.fill(2)
        else:
            wanted.fill(0)
            parent = self.plan.parent
            for c in cliques:
                p = c
                while p >= 0 and not wanted[p]:
                    wanted[p] = 1
                    p = int(parent[p])
            wanted[cliques] = 2
        if self.plan.small:
            self._distribute_range(0, self.plan.n_cliques, self._own)
            return
        schedule = self.plan.schedule
        for first, last in reversed(schedule.above):
            if last == first + 1 and first not in self.tree.supports and self.entries(first) >= SPLIT:
                self.distribute_large(first)
            else:
                self._distribute_range(first, last, self._own)
        tasks = [r for r in schedule.below if cliques is None or wanted[r[0] : r[1]].any()]
        in_parallel(lambda task, room: self._distribute_range(*task, room), tasks, self.room)

    # -- what came out -------------------------------------------------------------------------------------------

    def marginal(self, slot: int) -> Array:
        """Return the posterior of a slot whose home clique is up to date."""
        starts = self.plan.starts
        return self.marginals[starts[slot] : starts[slot + 1]].copy()

    def belief(self, c: int) -> Array:
        """Return an up-to-date clique's posterior over its unobserved slots, axes as in `free_slots`."""
        rows = self.rows(c)
        sep = len(rows)
        at = int(self.plan.message_at[c])
        if self.plan.parent[c] < 0:
            table = rows
        else:
            message = self._floats[at : at + sep]
            below = self._floats[self.posterior_at + at - int(self.plan.message_at[0]) :][:sep]
            ratio = np.divide(below, message, out=np.zeros(sep), where=message > 0)
            table = rows * ratio[:, None]
        return np.asarray(table / table.sum()).reshape(self.dims(c))

    def rows(self, c: int) -> Array:
        """Return a clique's table as rows, one a state of the unobserved separator."""
        dims = self.dims(c)
        size = prod(dims)
        at = int(self.plan.table_at[c])
        if at >= 0:
            table = self._floats[self.tables_at + at : self.tables_at + at + size]
        else:
            from markovia.kernels.clique_trees.clique_tables import table_of

            table = np.empty(size)
            table_of(c, self.packed, self._own, table)
        return table.reshape(self.separator_entries(c), -1)

    def walk_best(self) -> Ints:
        """Return the state of every slot in the best configuration, after maximising."""
        from markovia.kernels.clique_trees.root_to_leaf import walk_best

        fixed = np.zeros(len(self.code), dtype=np.int64)
        row = np.empty(self.plan.header[LONGEST_ROW])
        walk_best(0, self.plan.n_cliques, self.packed, self._own, fixed, row)
        return fixed

    def ranked(self, c: int, states: Ints) -> tuple[Ints, Array]:
        """Return the joint states of a clique's own variables by falling weight, and their log losses; zeros left out."""
        from markovia.kernels.clique_trees.root_to_leaf import walk_best

        row = np.empty(self.entries(c) // self.separator_entries(c))
        walk_best(c, c + 1, self.packed, self._own, states.copy(), row)
        order = np.argsort(-row, kind="stable")
        order = order[: int((row > 0).sum())]
        logs = np.log(row[order])
        return order, logs[0] - logs

    def completed(self, states: Ints, order: Sequence[int], k: int, rank: int) -> Ints:
        """Return the best configuration that agrees with `states` before clique `order[k]` and takes a rank there."""
        found = states.copy()
        for j in range(k, len(order)):
            c = order[j]
            ranked, _ = self.ranked(c, found)
            slots = self.plan.clique_slots(c)[self.plan.n_separator[c] :]
            slots = slots[self.code[slots] < 0]
            codes = np.unravel_index(int(ranked[rank if j == k else 0]), self.plan.card[slots].tolist())
            found[slots] = codes
        return found

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """Draw n configurations after summing; return the states, one row a slot."""
        from markovia.kernels.clique_trees.root_to_leaf import draw_clique

        fixed = np.zeros((len(self.code), n), dtype=np.int64)
        states = np.empty(len(self.code), dtype=np.int64)
        running = np.empty(max(KEPT, self.plan.header[LONGEST_ROW]))
        order = np.arange(n)
        for c in range(self.plan.n_cliques - 1, -1, -1):
            if self.plan.table_at[c] < 0:  # columns with the same row side by side
                above = self.plan.clique_slots(c)[: self.plan.n_separator[c]]
                order = np.lexsort(fixed[above]) if len(above) else np.arange(n)
            draw_clique(c, self.packed, self._own, rng.random(n), order, fixed, states, running)
        return fixed

    def free_slots(self, c: int) -> Ints:
        """Return the unobserved slots of a clique, separator first."""
        slots = self.plan.clique_slots(c)
        return slots[self.code[slots] < 0]

    def dims(self, c: int) -> list[int]:
        """Return the lengths of a clique's unobserved axes."""
        found: list[int] = self.plan.card[self.free_slots(c)].tolist()
        return found

    def separator_entries(self, c: int) -> int:
        """Return the number of joint states of a clique's unobserved separator."""
        slots = self.plan.clique_slots(c)[: self.plan.n_separator[c]]
        return prod(self.plan.card[slots[self.code[slots] < 0]].tolist())

    # -- inside --------------------------------------------------------------------------------------------------

    def entries(self, c: int) -> int:
        """Return the entries of a clique's table under the evidence."""
        return prod(self.dims(c))

    def room(self) -> Room:
        """Make the scratch space of one thread."""
        floats, ints = self.plan.lengths[3:]
        return np.empty(floats), np.empty(ints, dtype=np.int64)

    def _collect_range(self, first: int, last: int, room: Room) -> int:
        if not self.tree.supports:
            return self._collect(first, last, room)
        from markovia.kernels.clique_trees.sparse_cliques import collect_support

        for start, stop, support in self._pieces(first, last):
            if support is None:
                status = self._collect(start, stop, room)
            elif self._dirty[start]:
                status = collect_support(start, self.maximise, self.packed, room, support)
            else:
                continue
            if status != DONE:
                return int(status)
        return DONE

    def _collect(self, first: int, last: int, room: Room) -> int:
        up = self._run(first, last, self.maximise, True, NOTHING, _NO_CODES, self.packed, room)
        return int(up[0])

    def collect_large(self, c: int) -> int:
        """Compute one clique's upward message in threads; return a status."""
        from markovia.kernels.clique_trees.large_cliques import collect_part

        n = thread_count()
        shares = np.empty(n * self.separator_entries(c))

        def part(i: int, room: Room) -> int:
            return int(collect_part(c, i, n, self.maximise, self.packed, room, shares))

        if any(in_parallel(part, range(n), self.room)):
            return OUT_OF_RANGE
        return part(-1, self._own)

    def _distribute_range(self, first: int, last: int, room: Room) -> None:
        if not self.tree.supports:
            self._distribute(first, last, room)
            return
        from markovia.kernels.clique_trees.sparse_cliques import distribute_support

        for start, stop, support in reversed(list(self._pieces(first, last))):
            if support is None:
                self._distribute(start, stop, room)
            else:
                distribute_support(start, self.packed, room, support)

    def _distribute(self, first: int, last: int, room: Room) -> None:
        self._run(first, last, self.maximise, False, AS_MARKED, _NO_CODES, self.packed, room)

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int, NDArray[np.int32] | None]]:
        """Cut a range of cliques where one is to be run from its support: it is listed, and nothing in it is observed."""
        supports = self.tree.supports
        for c in self.tree.listed:
            if first <= c < last and not self._touched(c):
                if first < c:
                    yield first, c, None
                yield c, c + 1, supports[c]
                first = c + 1
        if first < last:
            yield first, last, None

    def _touched(self, c: int) -> bool:
        slots = self.plan.clique_slots(c)
        return bool((self.code[slots] >= 0).any() or (self._soft_at[slots] >= 0).any())

    def distribute_large(self, c: int) -> None:
        """Bring one clique's belief down in threads."""
        from markovia.kernels.clique_trees.large_cliques import distribute_part

        n = thread_count()
        nothing = np.empty(0)
        n_shares = int(distribute_part(c, -1, n, self.packed, self._own, nothing, nothing))
        if n_shares < 0:
            return
        shares = np.empty(n * n_shares)
        totals = np.empty(n * len(self.marginals))

        def part(i: int, room: Room) -> None:
            distribute_part(c, i, n, self.packed, room, shares, totals)

        in_parallel(part, range(n), self.room)
        part(n, self._own)


def _same(one: Finding, other: Finding) -> bool:
    return one.code == other.code and one.likelihood is other.likelihood


def _supports(tree: CompiledTree) -> dict[int, NDArray[np.int32]]:
    """List the non-zero entries of large cliques that are mostly zero whatever is observed."""
    from markovia.kernels.clique_trees.sparse_cliques import support_of

    plan = tree.plan
    large: list[int] = np.flatnonzero(plan.table_at < 0).tolist()
    if not large or plan.header[N_VALUES] >= 2**31:
        return {}
    state = TreeState(tree)
    try:
        if state.collect() == -np.inf:
            return {}
    except OutOfRange:
        return {}

    def one(c: int, room: Room) -> NDArray[np.int32] | None:
        entries, n_operands = support_of(c, state.packed, room, np.empty(0, dtype=np.int32))
        if n_operands == 0 or entries > LISTED * state.entries(c):
            return None
        found = np.empty(2 + (2 + n_operands) * entries, dtype=np.int32)
        support_of(c, state.packed, room, found)
        return found

    listed = in_parallel(one, large, state.room)
    return {c: s for c, s in zip(large, listed, strict=True) if s is not None}
