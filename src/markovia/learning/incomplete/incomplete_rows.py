"""Rows with missing cells, laid out once so that every expectation over them is quick.

Method: in each row the observed variables cut the network; the missing ones fall into small components, and the expected
counts of a component depend only on its variables and on the observed states in the families that touch it. Equal
components are computed once with their summed weight. Each set of variables gets its own clique tree, so a hidden chain
of any length costs its cliques and no more. Families that a row observes whole are counted once and for all.
Reference: Lauritzen (1995), The EM algorithm for graphical association models with missing data; Lauritzen &
Spiegelhalter (1988) for the trees.
Cost: of the layout, the missing cells times the families around each; of an expectation, for each distinct case the
entries of its cliques times the families in them.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable, count_shape
from markovia.errors import TooLarge
from markovia.factors.tables.conditional import Conditional
from markovia.kernels.plain_code import either
from markovia.learning.incomplete.missing_groups import number_cases, places_of, split_rows, starts_of
from markovia.learning.incomplete.pattern_maps import pattern_maps
from markovia.learning.tables.table_learner import NodeFamily
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

LARGEST = 1 << 20
"""Entries of the largest clique that is summed exactly."""
SHARES = 16
"""Parts that the cases are split into for threads; fixed, so that sums do not depend on the number of threads."""
QUICK = 2e5
"""Work below which threads do not pay."""


class TableLayout:
    """The families of a network as flat arrays; variable i has family i."""

    def __init__(self, families: Sequence[NodeFamily]) -> None:
        self.families = tuple(families)
        number = {f.variable.name: i for i, f in enumerate(families)}
        self.names = list(number)
        self.shapes = [count_shape((*f.parents, f.variable)) for f in families]
        self.scopes = scopes = [[number[n] for n in f.scope] for f in families]
        of: list[list[int]] = [[] for _ in families]
        for i, scope in enumerate(scopes):
            for v in scope:
                of[v].append(i)
        self.card = _ints(len(f.variable) for f in families)
        self.scope_start = starts_of([*map(len, scopes)])
        self.scope = _ints(v for scope in scopes for v in scope)
        self.stride = _ints(prod(shape[k + 1 :]) for shape in self.shapes for k in range(len(shape)))
        self.of_start = starts_of([*map(len, of)])
        self.of_family = _ints(f for fs in of for f in fs)
        self.table_at = starts_of([*map(prod, self.shapes)])
        if self.table_at[-1] >= 2**31:
            raise TooLarge(f"the tables have {int(self.table_at[-1]):,} entries together; at most 2^31 fit")

    def flat(self, tables: Sequence[Conditional]) -> Array:
        """Return all tables in one array."""
        return np.concatenate([np.ravel(t.values) for t in tables])

    def split(self, flat: Array) -> list[Array]:
        """Return one array a family."""
        ends = self.table_at.tolist()
        return [
            flat[low:high].reshape(shape)
            for low, high, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]


class IncompleteRows:
    """Rows of a network with missing cells, ready for expectations under any tables.

    Parameters
    ----------
    families
        One a variable.
    table
        The rows; families' variables without a column are missing in every row.
    largest
        Entries of the largest clique that is summed exactly; components that need a larger one are `wide`.
    """

    def __init__(self, families: Sequence[NodeFamily], table: CodedTable, largest: int = LARGEST) -> None:
        self.layout = at = TableLayout(families)
        self.codes = full_codes(families, table)
        self.given_weights = table.weights
        self.weights = np.ones(table.n_rows) if table.weights is None else table.weights
        self.complete = self.count(self.codes)
        groups = split_rows(self.codes, self.weights > 0, at.scopes)
        self.group_row, self.group_pattern, self.member_start, self.member = groups
        plan_patterns = either("markovia.kernels.incomplete.pattern_trees:plan_patterns", self._planning())
        self.clique_at, clique, self.axis, slot, cost = plan_patterns(
            self.member_start, self.member, at.card, at.of_start, at.of_family, at.scope_start, at.scope, largest,
            *np.full((2, len(at.card)), -1),
        )  # fmt: skip
        self.clique, self.slot = clique.reshape(-1, 8), slot.reshape(-1, 2)
        self.maps = pattern_maps(
            self.member_start, self.member, at.card, self.clique_at, self.clique, self.axis, self.slot,
            at.scope_start, at.scope, at.stride,
        )  # fmt: skip
        first_slot, family = self.clique[self.clique_at, 4], self.slot[:, 0]
        self.case_of, self.case_pattern, self.case_weight, self.case_at, self.base = number_cases(
            self.codes,
            self.weights,
            groups,
            first_slot,
            family,
            at.scope_start,
            at.scope,
            at.stride,
            at.table_at,
        )
        self.cost = cost[self.case_pattern]
        self._room = self._largest_room()
        self._ends = self._shares()

    @property
    def wide(self) -> Ints:
        """The groups of cells that no tree within the limit sums out."""
        return np.flatnonzero(self.case_of < 0)

    def expect(self, theta: Array, counts: Array) -> tuple[float, int]:
        """Add the expected counts of all cases; return their log mass, and the first impossible case or -1."""
        expect_cases = either("markovia.kernels.incomplete.expected_counts:expect_cases", 3 * self.cost.sum())

        def part(share: tuple[int, int], room: Array) -> tuple[Array, float, int]:
            own = np.zeros(len(theta))
            log_mass, bad = expect_cases(
                *share, self.case_pattern, self.case_weight, self.case_at, self.base, self.clique_at, self.clique,
                self.slot, self.maps, theta, room, own,
            )  # fmt: skip
            return own, float(log_mass), int(bad)

        threads = 1 if self.cost.sum() < QUICK else None
        found = in_parallel(part, self._ends, lambda: np.empty(self._room), threads)
        total = 0.0
        for own, log_mass, bad in found:
            if bad >= 0:
                return -np.inf, bad
            counts += own
            total += log_mass
        return total, -1

    def decode(self, theta: Array, cases: Ints, rng: np.random.Generator | None) -> tuple[Ints, Ints, Array]:
        """Return states for the members of the listed cases, where each case's begin, and each case's log weight.

        The most probable states together, or with a generator a draw from their distribution.
        """
        steps = 2 * self.cost[cases].sum()
        decode_cases = either("markovia.kernels.incomplete.expected_counts:decode_cases", steps)
        sizes = np.diff(self.member_start)[self.case_pattern[cases]]
        out_at = starts_of(sizes)
        out = np.zeros(int(out_at[-1]), dtype=np.int64)
        logs = np.zeros(len(cases))
        uniform = np.empty(0) if rng is None else rng.random(max(1, len(out)))

        def part(first: int, room: Array) -> None:
            decode_cases(
                first, min(len(cases), first + 1024), cases, uniform, self.member_start, self.member,
                self.layout.card, self.case_pattern, self.case_at, self.base, self.clique_at, self.clique, self.axis,
                self.slot, self.maps, theta, room, out_at, out, logs,
            )  # fmt: skip

        in_parallel(part, range(0, len(cases), 1024), lambda: np.empty(self._room))
        return out, out_at, logs

    def filled(self, theta: Array, rng: np.random.Generator | None = None) -> tuple[NDArray[Any], Array]:
        """Return the codes with every missing cell filled in, and the log weight of each group of cells.

        The most probable states together, or with a generator a draw from their distribution. Cells of wide
        groups stay missing and weigh nothing; those of an impossible group are whatever they are, with minus infinity.
        """
        groups = np.flatnonzero(self.case_of >= 0)
        cases = self.case_of[groups]
        codes, logs = self.codes.copy(), np.zeros(len(self.group_row))
        if not len(groups):
            return codes, logs
        if rng is None:
            states, at, found = self.decode(theta, np.arange(len(self.case_pattern)), None)
            begin, logs[groups] = at[cases], found[cases]
        else:
            states, at, found = self.decode(theta, cases, rng)
            begin, logs[groups] = at[:-1], found
        sizes = np.diff(self.member_start)[self.group_pattern[groups]]
        members = self.member[places_of(self.member_start[self.group_pattern[groups]], sizes)]
        codes[members, np.repeat(self.group_row[groups], sizes)] = states[places_of(begin, sizes)]
        return codes, logs

    def count(self, codes: NDArray[Any]) -> Array:
        """Return the counts of all families in one array; a row that misses a cell of a family is left out there."""
        table = CodedTable([f.variable for f in self.layout.families], codes, self.given_weights)
        found = table.counts([f.scope for f in self.layout.families])
        return np.concatenate([np.ravel(n) for n in found])

    def rows_of(self, case: int) -> int:
        """Return the first row that shows a case."""
        return int(self.group_row[np.flatnonzero(self.case_of == case)[0]])

    def _planning(self) -> float:
        """Return about how many steps the trees of all patterns take."""
        sizes = np.diff(self.member_start)
        around = np.diff(self.layout.of_start)[self.member] * np.diff(self.layout.scope_start).max(initial=0)
        return float((12 * sizes**2 + 60).sum() + 8 * around.sum())

    def _largest_room(self) -> int:
        """Return the room that the tables and messages of any pattern take."""
        clique = self.clique[:-1]
        if not len(clique):
            return 1
        return int((clique[:, 6] + clique[:, 0] + clique[:, 1]).max() + clique[:, 1].max())

    def _shares(self) -> list[tuple[int, int]]:
        """Split the cases into parts of about the same work."""
        n = len(self.case_pattern)
        parts = int(max(1, min(SHARES, n, 2**24 // max(1, int(self.layout.table_at[-1])))))
        if n == 0 or self.cost.sum() < QUICK:
            parts = 1
        done = np.cumsum(self.cost)
        ends = np.searchsorted(done, np.arange(1, parts) * (done[-1] / parts)) if n else np.empty(0, int)
        cuts = [0, *(int(e) for e in ends), n]
        return [(a, b) for a, b in pairwise(cuts) if a < b]


def full_codes(families: Sequence[NodeFamily], table: CodedTable) -> NDArray[Any]:
    """Return the codes of all families' variables, one row a variable; those without a column are missing."""
    names = [f.variable.name for f in families]
    kind = np.int8 if max(len(f.variable) for f in families) < 2**7 else np.int32
    if list(table.variables) == names:
        return np.ascontiguousarray(table.codes, dtype=kind)
    codes = np.full((len(names), table.n_rows), -1, dtype=kind)
    for i, name in enumerate(names):
        if name in table.variables:
            codes[i] = table.column(name)
    return codes


def _ints(numbers: Iterable[int]) -> Ints:
    return np.array(list(numbers), dtype=np.int64)
