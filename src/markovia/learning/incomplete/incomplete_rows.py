"""Rows with missing cells, laid out once so that every expectation over them is quick.

Method: in each row the observed variables cut the network; the missing ones fall into small components, and the expected
counts of a component depend only on its variables and on the observed states in the families that touch it. Equal
components are computed once with their summed weight. Each set of variables gets its own clique tree, so a hidden chain
of any length costs its cliques and no more. Families that a row observes whole are counted once and for all.
Reference: Lauritzen (1995), The EM algorithm for graphical association models with missing data; Lauritzen &
Spiegelhalter (1988) for the trees.
Cost: of the layout, the missing cells times the families around each; of an expectation, for each distinct case the
entries of its cliques times the families in them. A GPU takes the expectations where one is asked for, or where there is one
and the processor takes long (`markovia.learning.incomplete.device_counts`).
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable, count_shape
from markovia.errors import TooLarge
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.kernels.incomplete.incomplete_records import DecodedCases, NetworkFamilies
from markovia.kernels.plain_code import either
from markovia.learning.incomplete.device_counts import CaseSums, DeviceCounts
from markovia.learning.incomplete.missing_groups import number_cases, places_of, split_rows, starts_of
from markovia.learning.incomplete.pattern_maps import with_maps
from markovia.learning.tables.table_learner import NodeFamily
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now
from markovia.runtime.devices import Device, gpu, on_device, usable_gpu
from markovia.runtime.threads import in_parallel

LARGEST = 1 << 20
"""Entries of the largest clique that is summed exactly."""
SHARES = 16
"""Parts that the cases are split into for threads; fixed, so that sums do not depend on the number of threads."""
QUICK = 2e5
"""Work below which threads do not pay."""
GPU_SECONDS = 0.3
"""What an expectation takes the processor when the next ones go to a GPU unasked."""


class TableLayout:
    """Tables over some variables as flat arrays, one after the other: the families of a network, or any scopes.

    Parameters
    ----------
    variables
        All variables; their place is their number.
    scopes
        The variables of each table by number, in the order of its axes; every variable is in one of them.
    """

    def __init__(self, variables: Sequence[Variable], scopes: Sequence[Sequence[int]]) -> None:
        self.variables = tuple(variables)
        self.names = [v.name for v in variables]
        self.scopes = [list(scope) for scope in scopes]
        self.shapes = [count_shape([self.variables[i] for i in scope]) for scope in self.scopes]
        of: list[list[int]] = [[] for _ in variables]
        for i, scope in enumerate(self.scopes):
            for v in scope:
                of[v].append(i)
        self.arrays = NetworkFamilies(
            _ints(len(v) for v in variables),
            starts_of([*map(len, self.scopes)]),
            _ints(v for scope in self.scopes for v in scope),
            _ints(prod(shape[k + 1 :]) for shape in self.shapes for k in range(len(shape))),
            starts_of([*map(len, of)]),
            _ints(f for fs in of for f in fs),
            starts_of([*map(prod, self.shapes)]),
        )
        if self.arrays.table_at[-1] >= 2**31:
            raise TooLarge(
                f"the tables have {int(self.arrays.table_at[-1]):,} entries together; at most 2^31 fit"
            )

    @classmethod
    def of_families(cls, families: Sequence[NodeFamily]) -> "TableLayout":
        """Lay out the tables of a directed network; table i is that of variable i, its own axis last."""
        number = {f.variable.name: i for i, f in enumerate(families)}
        return cls([f.variable for f in families], [[number[n] for n in f.scope] for f in families])

    def flat(self, tables: Sequence[Conditional]) -> Array:
        """Return all tables in one array."""
        return np.concatenate([np.ravel(t.values) for t in tables])

    def split(self, flat: Array) -> list[Array]:
        """Return one array a family."""
        ends = self.arrays.table_at.tolist()
        return [
            flat[low:high].reshape(shape)
            for low, high, shape in zip(ends[:-1], ends[1:], self.shapes, strict=True)
        ]


class IncompleteRows:
    """Rows of a network with missing cells, ready for expectations under any tables.

    Parameters
    ----------
    layout
        The variables and the scopes of the tables.
    table
        The rows; variables without a column are missing in every row.
    largest
        Entries of the largest clique that is summed exactly; components that need a larger one are `wide`.
    device
        What expectations run on; by default the GPU where there is one and it pays.
    """

    def __init__(
        self,
        layout: TableLayout,
        table: CodedTable,
        largest: int = LARGEST,
        device: Device | None = None,
    ) -> None:
        self.layout, self.device = layout, device
        self.codes = full_codes(layout.variables, table)
        self.given_weights = table.weights
        self.weights = np.ones(table.n_rows) if table.weights is None else table.weights
        self.complete = self.count(self.codes)
        self.groups = split_rows(self.codes, self.weights > 0, layout.scopes)
        plan_patterns = either("markovia.kernels.incomplete.pattern_trees:plan_patterns", self._planning())
        *planned, cost = plan_patterns(
            self.groups, layout.arrays, largest, np.full(len(self.codes), -1), np.full(len(layout.scopes), -1)
        )
        self.trees = trees = with_maps(self.groups, layout.arrays, *planned)
        first_slot, family = trees.clique[trees.clique_at, 4], trees.slot[:, 0]
        self.cases = number_cases(self.codes, self.weights, self.groups, first_slot, family, layout.arrays)
        self.cost = cost[self.cases.pattern]
        self._room = self._largest_room()
        self._ends = self._shares(self.cost)

    @property
    def wide(self) -> Ints:
        """The groups of cells that no tree within the limit sums out."""
        return np.flatnonzero(self.cases.of < 0)

    def expect(self, theta: Array, counts: Array, weights: Array | None = None) -> tuple[float, int]:
        """Add the expected counts of all cases; return their log mass, and the first impossible case or -1.

        With weights, one a row, rows count by these, and cases without any weight are left alone.
        """
        weight = self.cases.weight if weights is None else self._weighed(weights)
        on_gpu = self._expect_on_gpu(theta, weight)
        start, listed, total = now(), None, 0.0
        if on_gpu is not None:
            if on_gpu.impossible >= 0:
                return -np.inf, on_gpu.impossible
            counts += on_gpu.counts
            total, listed = on_gpu.log_mass, self._there.left
        if weights is not None:
            listed = np.flatnonzero(weight > 0) if listed is None else listed[weight[listed] > 0]
        log_mass, bad = self._expect_here(theta, counts, weight, listed)
        if on_gpu is None and self.device is None and now() - start > GPU_SECONDS and gpu():
            self.device = "gpu"
        return total + log_mass, bad

    def _weighed(self, weights: Array) -> Array:
        """Return the weights of cases, given those of rows."""
        known = np.flatnonzero(self.cases.of >= 0)
        rows = weights[self.groups.row[known]]
        return np.bincount(self.cases.of[known], rows, minlength=len(self.cases.pattern)).astype(np.float64)

    def _expect_on_gpu(self, theta: Array, weight: Array) -> CaseSums | None:
        """Return what the GPU says of all cases but those that are left to the processor; None without a GPU."""
        if self.device != "gpu" or usable_gpu() is None:
            return None
        found: CaseSums | None = on_device(partial(self._there.expect, theta, weight), lambda: None)
        if found is None:
            self.device = "cpu"
        return found

    @cached_property
    def _there(self) -> DeviceCounts:
        return DeviceCounts(self.cases, self.trees)

    def _expect_here(
        self, theta: Array, counts: Array, weight: Array, listed: Ints | None
    ) -> tuple[float, int]:
        """Add the expected counts of the listed cases, by default of all, on the processor."""
        cases, ends, work = self.cases, self._ends, self.cost.sum()
        if listed is not None:
            cases = cases._replace(pattern=cases.pattern[listed], weight=weight[listed], at=cases.at[listed])
            ends, work = self._shares(self.cost[listed]), self.cost[listed].sum()
        expect_cases = either("markovia.kernels.incomplete.expected_counts:expect_cases", 3 * work)

        def part(share: tuple[int, int], room: Array) -> tuple[Array, float, int]:
            own = np.zeros(len(theta))
            log_mass, bad = expect_cases(*share, cases, self.trees, theta, room, own)
            return own, float(log_mass), int(bad)

        found = in_parallel(part, ends, lambda: np.empty(self._room), 1 if work < QUICK else None)
        total = 0.0
        for own, log_mass, bad in found:
            if bad >= 0:
                return -np.inf, bad if listed is None else int(listed[bad])
            counts += own
            total += log_mass
        return total, -1

    def decode(self, theta: Array, cases: Ints, rng: np.random.Generator | None) -> DecodedCases:
        """Return states for the members of the listed cases.

        The most probable states together, or with a generator a draw from their distribution.
        """
        steps = 2 * self.cost[cases].sum()
        decode_cases = either("markovia.kernels.incomplete.expected_counts:decode_cases", steps)
        at = starts_of(np.diff(self.groups.member_start)[self.cases.pattern[cases]])
        decoded = DecodedCases(np.zeros(int(at[-1]), dtype=np.int64), at, np.zeros(len(cases)))
        uniform = np.empty(0) if rng is None else rng.random(max(1, len(decoded.states)))

        def part(first: int, room: Array) -> None:
            last = min(len(cases), first + 1024)
            decode_cases(first, last, cases, uniform, self.cases, self.trees, theta, room, decoded)

        in_parallel(part, range(0, len(cases), 1024), lambda: np.empty(self._room))
        return decoded

    def filled(self, theta: Array, rng: np.random.Generator | None = None) -> tuple[NDArray[Any], Array]:
        """Return the codes with every missing cell filled in, and the log weight of each group of cells.

        The most probable states together, or with a generator a draw from their distribution. Cells of wide
        groups stay missing and weigh nothing; those of an impossible group are whatever they are, with minus infinity.
        """
        row, pattern, member_start, member = self.groups
        groups = np.flatnonzero(self.cases.of >= 0)
        cases = self.cases.of[groups]
        codes, logs = self.codes.copy(), np.zeros(len(row))
        if not len(groups):
            return codes, logs
        if rng is None:
            states, at, found = self.decode(theta, np.arange(len(self.cases.pattern)), None)
            begin, logs[groups] = at[cases], found[cases]
        else:
            states, at, found = self.decode(theta, cases, rng)
            begin, logs[groups] = at[:-1], found
        sizes = np.diff(member_start)[pattern[groups]]
        members = member[places_of(member_start[pattern[groups]], sizes)]
        codes[members, np.repeat(row[groups], sizes)] = states[places_of(begin, sizes)]
        return codes, logs

    def count(self, codes: NDArray[Any], weights: Array | None = None, listed: Ints | None = None) -> Array:
        """Return the counts of all families in one array; a row that misses a cell of a family is left out there.

        Rows other than those of this object bring their weights; families that are not `listed` are not counted.
        """
        layout = self.layout
        table = CodedTable(list(layout.variables), codes, self.given_weights if weights is None else weights)
        numbers = range(len(layout.scopes)) if listed is None else listed.tolist()
        asked = [tuple(layout.names[v] for v in layout.scopes[f]) for f in numbers]
        counts = table.counts(asked, self.device or "cpu")
        found = np.zeros(int(layout.arrays.table_at[-1]))
        for f, own in zip(numbers, counts, strict=True):
            found[layout.arrays.table_at[f] : layout.arrays.table_at[f + 1]] = np.ravel(own)
        return found

    def rows_of(self, case: int) -> int:
        """Return the first row that shows a case."""
        return int(self.groups.row[np.flatnonzero(self.cases.of == case)[0]])

    def _planning(self) -> float:
        """Return about how many steps the trees of all patterns take."""
        sizes, families = np.diff(self.groups.member_start), self.layout.arrays
        around = np.diff(families.of_start)[self.groups.member] * np.diff(families.scope_start).max(initial=0)
        return float((12 * sizes**2 + 60).sum() + 8 * around.sum())

    def _largest_room(self) -> int:
        """Return the room that the tables and messages of any pattern take."""
        clique = self.trees.clique[:-1]
        if not len(clique):
            return 1
        return int((clique[:, 6] + clique[:, 0] + clique[:, 1]).max() + clique[:, 1].max())

    def _shares(self, cost: Array) -> list[tuple[int, int]]:
        """Split cases into parts of about the same work."""
        n = len(cost)
        parts = int(max(1, min(SHARES, n, 2**24 // max(1, int(self.layout.arrays.table_at[-1])))))
        if n == 0 or cost.sum() < QUICK:
            parts = 1
        done = np.cumsum(cost)
        ends = np.searchsorted(done, np.arange(1, parts) * (done[-1] / parts)) if n else np.empty(0, int)
        cuts = [0, *(int(e) for e in ends), n]
        return [(a, b) for a, b in pairwise(cuts) if a < b]


def full_codes(variables: Sequence[Variable], table: CodedTable) -> NDArray[Any]:
    """Return the codes of all variables, one row a variable; those without a column are missing."""
    names = [v.name for v in variables]
    kind = np.int8 if max(map(len, variables)) < 2**7 else np.int32
    if list(table.variables) == names:
        return np.ascontiguousarray(table.codes, dtype=kind)
    codes = np.full((len(names), table.n_rows), -1, dtype=kind)
    for i, name in enumerate(names):
        if name in table.variables:
            codes[i] = table.column(name)
    return codes


def _ints(numbers: Iterable[int]) -> Ints:
    return np.array(list(numbers), dtype=np.int64)
