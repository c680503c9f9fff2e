"""Pseudo-likelihood: the product of each variable's probability given all others.

Method: replace the likelihood of a row by `prod_i p(x_i | x_-i)` (Besag 1975). Each term needs only the tables that mention
the variable, so there is no log Z; the objective is a sum of multinomial logistic losses that share weights: convex, smooth,
and consistent, if less efficient than maximum likelihood. It tends to overrate strong couplings where rows are few.
Cost: rows that agree on a variable's neighbours are counted together once, so on a grid a value costs a few dozen operations
a variable whatever the number of rows; where neighbours have too many joint states, one pass over the rows.
Use it for large models of any shape; it recovers the couplings of a 64 x 64 grid in a second or two.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable
from markovia.kernels.fields.field_records import FieldBlankets, FieldCases
from markovia.kernels.plain_code import either
from markovia.learning.fields.field_layout import FieldLayout, require_rows
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

FEW_STATES = 64
"""Joint states of the neighbours up to which rows are always counted by them."""
WORK = 1 << 16
CHUNKS = 16
"""Work worth a chunk, and chunks at most; they do not depend on the number of threads, so neither do the numbers."""


class PseudoLikelihood:
    """The mean negative log pseudo-likelihood of rows, with its derivatives.

    Parameters
    ----------
    layout
        The model.
    data
        Complete rows.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.learning.fields.field_layout import layout_of_features
    >>> layout = layout_of_features([mk.Feature(["a", "b"], [[1, 0], [0, 1]])])
    >>> rows = CodedTable(layout.variables, np.array([[0, 1, 1], [0, 1, 0]], dtype=np.int8))
    >>> value, slope = PseudoLikelihood(layout, rows)(np.zeros(1))
    >>> round(value, 6), slope.round(6).tolist()
    (1.386294, [-0.333333])
    """

    def __init__(self, layout: FieldLayout, data: CodedTable) -> None:
        require_rows(data)
        self.layout, self.total = layout, data.total
        self.codes = ordered_codes(layout, data)
        self.weights = np.ones(data.n_rows) if data.weights is None else data.weights
        self._arrange()

    def __call__(self, weights: Array) -> tuple[float, Array]:
        """Return the mean negative log pseudo-likelihood of a row and its gradient at some weights."""
        value, slope = self.of_tables(self.layout.log_tables(weights))
        return value, self.layout.features(slope)

    def of_tables(self, log_tables: Array) -> tuple[float, Array]:
        """Return value and derivatives with respect to all log table entries."""
        cases_value = either("markovia.kernels.fields.pseudo_likelihood:cases_value", 3 * self._steps[0])
        rows_value = either("markovia.kernels.fields.pseudo_likelihood:rows_value", 3 * self._steps[1])
        layout, k = self.layout, self.layout.n_single
        given = (log_tables[:k], log_tables[k:])
        rows = np.arange(self.codes.shape[1])

        def part(task: tuple[bool, int, int], room: tuple[Array, Ints]) -> tuple[float, Array]:
            by_cases, low, high = task
            slope = np.zeros(len(log_tables))
            slopes = (slope[:k], slope[k:])
            if by_cases:
                value = cases_value(low, high, layout.arrays, self._cases, given, room[0], slopes)
            else:
                shown = (self._direct, (self.codes, self.weights), rows)
                value = rows_value(low, high, layout.arrays, *shown, given, room, slopes)
            return float(value), slope

        done = in_parallel(part, self._tasks, self._room)
        total = sum(value for value, _ in done)
        slope = np.sum([s for _, s in done], axis=0) if done else np.zeros(len(log_tables))
        return total / self.total, np.asarray(slope) / self.total

    def of_rows(self, weights: Array, rows: Ints) -> tuple[float, Array]:
        """Return the mean over some rows, each counted once, and its gradient: what a step of stochastic gradients needs."""
        layout, k = self.layout, self.layout.n_single
        log_tables = layout.log_tables(weights)
        ones = np.ones(self.codes.shape[1])
        everyone = np.arange(len(layout.variables), dtype=np.int64)
        work = len(rows) * (1.0 + 2 * np.diff(layout.arrays.edge_ptr)) * layout.arrays.cards
        rows_value = either("markovia.kernels.fields.pseudo_likelihood:rows_value", 3 * work.sum())

        def part(task: tuple[int, int], room: tuple[Array, Ints]) -> tuple[float, Array]:
            slope = np.zeros(len(log_tables))
            given, slopes = (log_tables[:k], log_tables[k:]), (slope[:k], slope[k:])
            shown = (everyone, (self.codes, ones), rows)
            return float(rows_value(*task, layout.arrays, *shown, given, room, slopes)), slope

        done = in_parallel(part, _cut(work), self._room)
        slope = np.sum([s for _, s in done], axis=0) / len(rows)
        return sum(value for value, _ in done) / len(rows), layout.features(slope)

    def _room(self) -> tuple[Array, Ints]:
        degree = int(np.diff(self.layout.arrays.edge_ptr).max(initial=0))
        return np.empty(int(self.layout.arrays.cards.max(initial=1))), np.empty(
            max(degree, 1), dtype=np.int64
        )

    def _arrange(self) -> None:
        """Decide which variables are counted by cases, and count them."""
        layout = self.layout
        n, n_rows = len(layout.variables), self.codes.shape[1]
        ptr, other = layout.neighbours
        logs = np.concatenate(([0.0], np.cumsum(np.log(layout.arrays.cards[other]))))
        few = logs[ptr[1:]] - logs[ptr[:-1]] <= np.log(max(FEW_STATES, n_rows / 2)) + 1e-9
        listed, self._direct = np.flatnonzero(few), np.flatnonzero(~few)
        width = np.diff(ptr)[listed]
        blanket_ptr = np.concatenate(([0], np.cumsum(width))).astype(np.int64)
        inside = np.arange(blanket_ptr[-1]) + np.repeat(ptr[:-1][listed] - blanket_ptr[:-1], width)
        blanket = other[inside].astype(np.int64)
        stride = np.ones(len(blanket), dtype=np.int64)
        for k in range(int(width.max(initial=0)) - 1):
            here = blanket_ptr[:-1][width > k + 1] + k
            stride[here + 1] = stride[here] * layout.arrays.cards[blanket[here]]
        cards = layout.arrays.cards[listed]
        states = np.ones(len(listed), dtype=np.int64)
        last = blanket_ptr[1:][width > 0] - 1
        states[width > 0] = stride[last] * layout.arrays.cards[blanket[last]]
        start = np.concatenate(([0], np.cumsum(states * cards))).astype(np.int64)
        dense = np.zeros(int(start[-1]))
        blankets = FieldBlankets(listed, blanket_ptr, blanket, stride)

        steps = 5 * n_rows * (len(listed) + len(blanket))
        count_cases = either("markovia.kernels.fields.pseudo_likelihood:count_cases", steps)

        def count(task: tuple[int, int], _: None) -> None:
            count_cases(*task, self.codes, self.weights, layout.arrays.cards, blankets, start, dense)

        in_parallel(count, _cut(np.full(len(listed), float(n_rows))), lambda: None)
        # one row a joint state of the neighbours that some row shows
        first = np.cumsum(states) - states
        owner = np.repeat(np.arange(len(listed)), states)
        begin: Any = np.repeat(start[:-1], states) + (np.arange(len(owner)) - first[owner]) * cards[owner]
        seen = np.add.reduceat(dense, begin) > 0 if len(begin) else np.zeros(0, dtype=bool)
        own, begin = owner[seen], begin[seen]
        case_ptr = np.searchsorted(own, np.arange(len(listed) + 1)).astype(np.int64)
        case_state = (np.arange(len(owner)) - first[owner])[seen]
        reach = cards[own]
        ends = np.cumsum(reach)
        counts = dense[np.repeat(begin - (ends - reach), reach) + np.arange(int(reach.sum()))]
        count_ptr = np.concatenate(([0], ends))[case_ptr].astype(np.int64)
        degree = np.diff(layout.arrays.edge_ptr)[listed]
        place_ptr = np.concatenate(([0], np.cumsum(np.diff(case_ptr) * degree))).astype(np.int64)
        places = np.empty(int(place_ptr[-1]), dtype=np.int64)
        place_cases = either("markovia.kernels.fields.pseudo_likelihood:place_cases", 6 * len(places))
        place_cases(layout.arrays, blankets, case_ptr, case_state, place_ptr, places)
        self._cases = FieldCases(listed, case_ptr, place_ptr, places, count_ptr, counts)
        work = np.diff(case_ptr) * (1.0 + degree) * cards
        degrees = np.diff(layout.arrays.edge_ptr)[self._direct]
        direct = n_rows * (1.0 + 2 * degrees) * layout.arrays.cards[self._direct]
        self._steps = float(work.sum()), float(direct.sum())
        self._tasks = [(True, *t) for t in _cut(work)] + [(False, *t) for t in _cut(direct)]
        assert n == len(listed) + len(self._direct)


def ordered_codes(layout: FieldLayout, data: CodedTable) -> NDArray[Any]:
    """Return the rows' codes, one row a variable in the layout's order, in one small integer type."""
    names = [v.name for v in layout.variables]
    kind = np.int8 if layout.arrays.cards.max(initial=1) < 128 else np.int32
    if names == list(data.variables) and data.codes.dtype == kind and data.codes.flags.c_contiguous:
        return data.codes
    codes = np.empty((len(names), data.n_rows), dtype=kind)
    for i, name in enumerate(names):
        codes[i] = data.column(name)
    return codes


def _cut(work: Array) -> list[tuple[int, int]]:
    """Cut variables into ranges of about equal work."""
    if not len(work):
        return []
    done = np.cumsum(work)
    n = int(np.clip(done[-1] / WORK, 1, CHUNKS))
    ends = np.unique(np.searchsorted(done, done[-1] * np.arange(1, n + 1) / n) + 1).clip(0, len(work))
    ends[-1] = len(work)
    return [(int(a), int(b)) for a, b in zip([0, *ends[:-1]], ends, strict=True) if a < b]
