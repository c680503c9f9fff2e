"""G2 and chi-square tests of conditional independence for discrete data.

Method: for each configuration of the given set (a stratum), compare the table of x against y with what independence expects;
sum the likelihood-ratio statistic G2 = 2 sum O ln(O / E), or Pearson's sum (O - E)^2 / E, over the strata; both are
chi-square distributed under independence (Agresti, *Categorical Data Analysis*; Spirtes, Glymour and Scheines,
*Causation, Prediction, and Search*).

Degrees of freedom: `dof="nonempty"` sums (rows - 1)(columns - 1) over the strata, where only rows and columns that occur in
the stratum count; a stratum that never occurs adds none. This is what causal-learn's `gsq` and `chisq` do. `dof="full"` is
(|x| - 1)(|y| - 1) times the number of configurations of the given set, from the variables' states. Without any degree
of freedom the data say nothing: the p-value is 1.

Weights of rows are read as how many rows each stands for. Cost: rows times variables for each test; rows in memory are
counted in compiled code, several tests at once in threads; other sources are asked for tables of counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.reading_mixed import MixedTable
from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.errors import InvalidArgument, TooLarge
from markovia.kernels.structure.structure_records import PackedRows, TableQuestions
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice
from markovia.runtime.clock import now
from markovia.runtime.threads import in_parallel, thread_count
from markovia.structure.ci_tests.ci_tests import CITest, Measured, Query

MOST_CELLS = 2**29
"""The largest table of one test."""
DENSE_CELLS = 2**14
"""Tables up to this size are counted cell by cell whatever the number of rows."""
PASS_CELLS = 2**24
"""Cells of the tables that one pass over rows elsewhere fills."""
FAR_BATCH = 1024
"""Tests that are asked at once where every batch is a pass over rows elsewhere."""
PART = 2**20
"""Rows times tests that are worth a thread: one or two milliseconds, many times what handing them over takes."""
LOAD_SECONDS, COMPILE_SECONDS = 0.4, 5.0
"""What NumPy may spend in a process before the compiled code is loaded, or compiled for this and later runs."""
NUMPY_SECONDS, NUMPY_TEST = 4e-9, 3e-4
"""What NumPy takes for one cell of data, and for a test besides, about."""
MANY = 64
"""From so many variables on, all pairs are tested together."""
PAIRS = 2**20
"""Pairs that are tested at a time then, about."""
MOST_STATES = 2**16
"""Columns with more states are counted by NumPy."""

_numpy_spent = 0.0


@dataclass(frozen=True)
class G2:
    """The likelihood-ratio test for discrete data.

    Parameters
    ----------
    alpha
        Independence is accepted where the p-value is larger.
    dof
        "nonempty" (rows and columns that occur in each stratum, as causal-learn counts) or "full" (all states).

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, method="pc", test=mk.ci_tests.G2(alpha=0.01)).skeleton.n_edges
    4
    """

    alpha: float = 0.05
    dof: str = "nonempty"

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        return TableTest(data, self.alpha, self.dof, chi=False)


@dataclass(frozen=True)
class ChiSquare:
    """Pearson's chi-square test for discrete data; parameters as in `G2`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.independence_test(rows, "rain", "sprinkler", given="cloudy", test=mk.ci_tests.ChiSquare()).independent
    True
    """

    alpha: float = 0.05
    dof: str = "nonempty"

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        return TableTest(data, self.alpha, self.dof, chi=True)


class TableTest(CITest):
    """G2 or chi-square, bound to discrete data."""

    batch = 32

    def __init__(self, data: MixedTable, alpha: float, dof: str, chi: bool) -> None:
        super().__init__(data.names, alpha)
        self.name = "chi2" if chi else "g2"
        check_choice("dof", dof, ("nonempty", "full"))
        self.table = discrete_table(data, self.name)
        if not isinstance(self.table, CodedTable):
            self.batch = FAR_BATCH
        self.cards = data.cards
        self.dof = dof
        self.chi = chi
        self._packed: PackedRows | None = None

    def _compute(self, queries: Sequence[Query]) -> Array:
        return self._measure(queries).p_value

    def _measure(self, queries: Sequence[Query]) -> Measured:
        statistic, free = self._statistics(queries)
        if self.dof == "full":
            cards = self.cards
            free = np.array(
                [
                    (cards[x] - 1.0) * (cards[y] - 1.0) * float(np.prod(cards[list(given)], dtype=np.float64))
                    for x, y, given in queries
                ]
            )
        return Measured(_tail(statistic, free), statistic, free)

    def pair_blocks(self) -> Iterator[tuple[int, int, Array]] | None:
        """Yield the p-values of all pairs, where compiled code is there or pays."""
        pairs = self.n * (self.n - 1) // 2
        return self._pair_blocks() if self.n >= MANY and self._kernel(pairs, 3 * pairs) is not None else None

    def _pair_blocks(self) -> Iterator[tuple[int, int, Array]]:
        step = max(1, PAIRS // self.n)
        for low in range(0, self.n, step):
            high = min(self.n, low + step)
            xs, ys = np.nonzero(np.arange(self.n) > np.arange(low, high)[:, None])
            p = np.ones((high - low, self.n))
            p[xs, ys] = self.p_array(xs + low, ys, np.empty((len(xs), 0), dtype=np.int64))
            yield low, high, p

    def p_array(self, xs: Ints, ys: Ints, given: Ints) -> Array:
        """Return the p-values of many queries straight from arrays."""
        table = self.table
        kernel = self._kernel(len(xs), len(xs) * (3 + given.shape[1]))
        if kernel is None or not isinstance(table, CodedTable):
            return super().p_array(xs, ys, given)
        xs, ys = (
            np.ascontiguousarray(xs),
            np.ascontiguousarray(ys),
        )  # `np.nonzero` returns columns of one array
        starts = np.arange(len(xs) + 1, dtype=np.int64) * given.shape[1]
        statistic, free = self._compiled(kernel, table, TableQuestions(xs, ys, starts, given.ravel()))
        if self.dof == "full":
            free = (self.cards[xs] - 1.0) * (self.cards[ys] - 1.0)
            free *= np.prod(self.cards[given], axis=1, dtype=np.float64)
        return _tail(statistic, free)

    def _kernel(self, tests: int, columns: int) -> Any:
        """Return the compiled code for tests of so many columns together; None for rows elsewhere or where it never pays."""
        if not isinstance(self.table, CodedTable) or self.cards.max(initial=1) > MOST_STATES:
            return None
        return _kernel_for(tests, columns * self.table.n_rows)

    def _statistics(self, queries: Sequence[Query]) -> tuple[Array, Array]:
        table = self.table
        kernel = self._kernel(len(queries), sum(3 + len(q[2]) for q in queries))
        if kernel is not None and isinstance(table, CodedTable):
            xs = np.array([q[0] for q in queries], dtype=np.int64)
            ys = np.array([q[1] for q in queries], dtype=np.int64)
            starts = np.cumsum([0, *(len(q[2]) for q in queries)], dtype=np.int64)
            given = np.array([z for q in queries for z in q[2]], dtype=np.int64)
            return self._compiled(kernel, table, TableQuestions(xs, ys, starts, given))
        return self._counted(table, queries)

    def _compiled(self, kernel: Any, table: CodedTable, questions: TableQuestions) -> tuple[Array, Array]:
        if self._packed is None:
            codes = np.array([table.column(n) for n in self.names])
            self._packed = kernel.packed_rows(codes, self.cards, table.weights)
        packed, (xs, ys, starts, given) = self._packed, questions
        sizes = np.append(np.log(self.cards[given], dtype=np.float64), 0.0)
        strata = np.add.reduceat(sizes, starts[:-1]) * (np.diff(starts) > 0)
        strata = np.exp(np.minimum(strata, 60.0))
        cells = np.minimum(strata, table.n_rows) * self.cards[xs] * self.cards[ys]
        worst = int(cells.argmax())
        if cells[worst] > MOST_CELLS:
            raise TooLarge(
                f"the test of {self.names[xs[worst]]!r} and {self.names[ys[worst]]!r} needs a table of "
                f"{cells[worst]:,.0f} cells; put states together, or leave one of them out"
            )
        limit = max(DENSE_CELLS, min(2 * table.n_rows, 2**24))
        statistic, free = np.empty(len(xs)), np.empty(len(xs))
        whole = strata * self.cards[xs] * self.cards[ys]
        largest = int(np.where(whole <= limit + 1, whole, cells).max()) + 2
        sparse = bool(whole.max() > limit - 1)

        def run(part: tuple[int, int], room: Any) -> None:
            kernel.test_tables(packed, questions, *part, limit, self.chi, room, statistic, free)

        n = len(xs)
        threads = self.threads or thread_count()
        parts = max(1, min(n, 4 * threads, n * table.n_rows // PART)) if threads > 1 else 1
        edges = [n * k // parts for k in range(parts + 1)]
        pieces = list(pairwise(edges))
        in_parallel(run, pieces, lambda: kernel.room_for(packed, largest, sparse), threads=threads)
        return statistic, free

    def _counted(self, table: RowSource, queries: Sequence[Query]) -> tuple[Array, Array]:
        global _numpy_spent
        start = now()
        statistic, free = np.empty(len(queries)), np.empty(len(queries))
        for place, counts in stratified(table, self.names, self.cards, queries):
            statistic[place], free[place] = table_statistic(counts, self.chi)
        _numpy_spent += now() - start
        return statistic, free


def discrete_table(data: MixedTable, what: str) -> RowSource:
    """Return the discrete columns, or say which column is not discrete."""
    if data.table is None or data.matrix is not None:
        first = next(n for n, kind in zip(data.names, data.kinds, strict=True) if kind != "discrete")
        raise InvalidArgument(
            f"{what} needs discrete data, and {first!r} is continuous; test='mixed' takes both, and mk.Discretizer cuts it "
            "into states"
        )
    return data.table


def stratified(
    table: RowSource, names: Sequence[str], cards: NDArray[np.int64], queries: Sequence[Query]
) -> Any:
    """Yield for each query its place and the counts, an array (strata, states of x, states of y).

    Tables are counted together, a limited number of cells at once; where the given set has more configurations than rows,
    only those that occur are strata.
    """
    room = min(max(2**16, 4 * table.n_rows), PASS_CELLS)
    waiting: list[int] = []
    cells = 0

    def flush() -> Any:
        scopes = [[names[k] for k in (*queries[q][2], queries[q][0], queries[q][1])] for q in waiting]
        for q, counts in zip(waiting, table.counts(scopes) if scopes else (), strict=True):
            yield q, counts.reshape(-1, cards[queries[q][0]], cards[queries[q][1]])

    for q, (x, y, given) in enumerate(queries):
        size = prod(int(cards[k]) for k in (x, y, *given))
        if size > room:
            yield q, _sparse_strata(table, names, cards, x, y, given)
            continue
        if cells + size > PASS_CELLS:
            yield from flush()
            waiting, cells = [], 0
        waiting.append(q)
        cells += size
    yield from flush()


def _sparse_strata(
    table: RowSource, names: Sequence[str], cards: NDArray[np.int64], x: int, y: int, given: tuple[int, ...]
) -> Array:
    rows, weights = table.distinct([names[k] for k in (*given, x, y)])
    strata, places = np.unique(rows[:, : len(given)], axis=0, return_inverse=True)
    counts = np.zeros((len(strata), cards[x], cards[y]))
    np.add.at(counts, (places.ravel(), rows[:, -2], rows[:, -1]), weights)
    return counts


def table_statistic(counts: Array, chi: bool = False) -> tuple[float, float]:
    """Return G2 (or chi-square) of stratified counts, and the degrees of freedom over rows and columns that occur."""
    rows, columns = counts.sum(axis=2), counts.sum(axis=1)
    total = rows.sum(axis=1)
    used_rows, used_columns = (rows > 0).sum(axis=1), (columns > 0).sum(axis=1)
    telling = (used_rows > 1) & (used_columns > 1)
    free = float(((used_rows - 1.0) * (used_columns - 1.0))[telling].sum())
    if not free:
        return 0.0, 0.0
    counts, rows, columns, total = counts[telling], rows[telling], columns[telling], total[telling]
    if chi:
        expected = rows[:, :, None] * columns[:, None, :] / total[:, None, None]
        gaps = (counts - expected) ** 2
        return float((gaps[expected > 0] / expected[expected > 0]).sum()), free
    found = _xlogx(counts) - _xlogx(rows) - _xlogx(columns) + _xlogx(total)
    return max(0.0, 2.0 * found), free


def _xlogx(values: Array) -> float:
    positive = values[values > 0]
    return float((positive * np.log(positive)).sum())


def _tail(statistic: Array, free: Array) -> Array:
    """Return the chance of more than the statistic; 1 without degrees of freedom. One and two have short formulas."""
    from scipy.special import chdtrc, erfc

    found = np.ones(len(free))
    one, two, more = free == 1, free == 2, free > 2
    found[one] = erfc(np.sqrt(statistic[one] / 2))
    found[two] = np.exp(-statistic[two] / 2)
    found[more] = chdtrc(free[more], statistic[more])
    return found


def _kernel_for(tests: int, cells: int) -> Any:
    """Return the compiled code, or None where NumPy is done with so many tests and cells before it would be there."""
    from markovia.kernels.compiled_code import worth_loading

    plain = _numpy_spent + tests * NUMPY_TEST + cells * NUMPY_SECONDS
    if not worth_loading(
        "markovia.kernels.structure.table_tests:test_tables", plain, LOAD_SECONDS, COMPILE_SECONDS
    ):
        return None
    from markovia.kernels.structure import table_tests

    return table_tests
