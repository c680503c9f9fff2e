"""Sums over the tables of counts of many families at once.

What discrete scores need of a family's table is one number: the sum of x log x over its cells minus that over its parent
configurations, or the log marginal likelihood under a Dirichlet prior. Rows in memory go through compiled code
(`markovia.kernels.structure.family_scores`) that never builds the tables and shares the families between threads; few
families of few rows, and rows that are elsewhere, go through `RowSource.counts`, one call a batch. Tables with far more
cells than rows are never built.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.errors import InvalidArgument
from markovia.kernels.structure.structure_records import FamilyGroups
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now
from markovia.runtime.threads import in_parallel, thread_count
from markovia.structure.scores.local_score import Extension

LIKELIHOOD, SPREAD, ONES = 0, 1, 2
"""The kinds of sums: x log x; a Dirichlet with one sample size spread over all cells; one with a count of one a cell."""
NO_CHILD = -1
"""In place of a child: the sum over a set of columns."""
NOTHING = np.array([-1], dtype=np.int64)
"""In place of further parents: the child with its parents alone."""
LOAD_SECONDS, COMPILE_SECONDS = 0.5, 4.0
"""What the plain way may take in a process before the compiled code is loaded, or compiled for this and later runs."""
PLAIN_SECONDS, PLAIN_FAMILY = 6e-9, 6e-5
"""What the plain way takes for a cell of data, and for a family besides, about."""
DENSE_CELLS = 2**20
"""Larger tables are counted by the configurations that occur."""
BATCH_CELLS = 2**24
"""Cells of the tables that are asked for in one call."""
SHARED_WORK = 2**22
"""Rows times families from which threads share the work."""
MOST_STATES = 2**16
"""Columns with more states go the plain way."""
MERGED_ROWS = 2**15
"""From so many rows on, equal rows are put together where there can only be few different ones."""

_plain_spent = 0.0


class FamilyTables:
    """The families of one set of discrete columns.

    Parameters
    ----------
    table
        The rows.
    names
        The columns in the order of their numbers.
    """

    def __init__(self, table: RowSource, names: Sequence[str]) -> None:
        gaps = {name: k for name, k in table.missing().items() if k}
        if gaps:
            worst = max(gaps, key=lambda name: gaps[name])
            raise InvalidArgument(
                f"scores need complete rows, and {gaps[worst]:,} cells of {worst!r} are missing; leave such rows out with "
                "missing='drop'"
            )
        self.table = table
        self.names = tuple(names)
        self.cards = np.array([len(table.variables[n]) for n in names], dtype=np.int64)
        self._packed: _Packed | None = None

    def sums(self, groups: Sequence[Extension], kind: int, sample_size: float = 0.0) -> list[Array]:
        """Return for each group (child, parents, further parents) one sum a further parent.

        Parameters
        ----------
        groups
            What is asked; the child may be `NO_CHILD`, and the further parents `NOTHING`.
        kind
            `LIKELIHOOD`, `SPREAD` or `ONES`.
        sample_size
            For `SPREAD`.
        """
        if not groups:
            return []
        edges = np.cumsum([len(fresh) for _, _, fresh in groups])[:-1]
        families = sum(len(fresh) for _, _, fresh in groups)
        cells = self.table.n_rows * sum(len(fresh) * (len(base) + 2) for _, base, fresh in groups)
        kernel = self._kernel(cells * PLAIN_SECONDS + families * PLAIN_FAMILY)
        if kernel is None:
            global _plain_spent
            start = now()
            found = self._plain(groups, kind, sample_size)
            _plain_spent += now() - start
        else:
            if self._packed is None:
                self._packed = _Packed(self.table.in_memory(), self.names, self.cards)
            found = self._packed.run(kernel, groups, kind, sample_size)
        return np.split(found, edges)

    def _kernel(self, seconds: float) -> Any:
        """Return the compiled code, or None for rows elsewhere and where the plain way is done before it would be there."""
        if not isinstance(self.table, CodedTable) or self.cards.max(initial=1) > MOST_STATES:
            return None
        from markovia.kernels.compiled_code import worth_loading

        plain = _plain_spent + seconds
        if not worth_loading(
            "markovia.kernels.structure.family_scores:score_groups", plain, LOAD_SECONDS, COMPILE_SECONDS
        ):
            return None
        from markovia.kernels.structure import family_scores

        return family_scores

    def _plain(self, groups: Sequence[Extension], kind: int, sample_size: float) -> Array:
        scopes: list[list[int]] = []
        for child, base, fresh in groups:
            head = [child] if child >= 0 else []
            scopes.extend([*head, *base, *([int(v)] if v >= 0 else [])] for v in fresh)
        has_child = [child >= 0 for child, _, fresh in groups for _ in fresh]
        found = np.empty(len(scopes))
        waiting: list[int] = []
        held = 0.0

        def count() -> None:
            tables = self.table.counts([[self.names[v] for v in scopes[k]] for k in waiting])
            for k, table in zip(waiting, tables, strict=True):
                configs = table.sum(axis=0).ravel() if has_child[k] else None
                found[k] = self._reduced(table.ravel(), configs, scopes[k], kind, sample_size)

        for k, scope in enumerate(scopes):
            size = float(np.prod(self.cards[scope], dtype=np.float64))
            if size > DENSE_CELLS and size > 4 * self.table.n_rows:
                codes, weights = self.table.distinct([self.names[v] for v in scope])
                configs: Array | None = None
                if has_child[k]:
                    _, place = np.unique(codes[:, 1:], axis=0, return_inverse=True)
                    configs = np.bincount(place.ravel(), weights).astype(np.float64)
                found[k] = self._reduced(weights, configs, scope, kind, sample_size)
                continue
            if waiting and held + size > BATCH_CELLS:
                count()
                waiting, held = [], 0.0
            waiting.append(k)
            held += size
        if waiting:
            count()
        return found

    def _reduced(
        self, cells: Array, configs: Array | None, scope: Sequence[int], kind: int, sample_size: float
    ) -> float:
        own = 1.0 if configs is None else float(self.cards[scope[0]])
        a = 1.0
        if kind == SPREAD:
            a = sample_size / float(np.prod(self.cards[list(scope)], dtype=np.float64))
        total = _summed(cells, kind, a)
        return total if configs is None else total - _summed(configs, kind, a * own)


def _summed(counts: Array, kind: int, a: float) -> float:
    positive = counts[counts > 0]
    if kind == LIKELIHOOD:
        return float((positive * np.log(positive)).sum())
    from scipy.special import gammaln

    return float((gammaln(positive + a) - gammaln(a)).sum())


class _Packed:
    """Rows in memory as the compiled code reads them: small codes, and bit planes of the states where these are few."""

    def __init__(self, table: CodedTable, names: Sequence[str], cards: NDArray[np.int64]) -> None:
        from markovia.kernels.structure.bit_planes import packed_rows

        place = {name: k for k, name in enumerate(table.variables)}
        codes, weights, n_rows = table.codes[[place[n] for n in names]], table.weights, table.n_rows
        if n_rows >= MERGED_ROWS and np.prod(cards, dtype=np.float64) <= n_rows / 8:
            rows, weights = CodedTable(tuple(table.variables.values()), table.codes, weights).distinct(names)
            codes = rows.T
        self.rows = packed_rows(codes, cards, weights)

    def run(self, kernel: Any, groups: Sequence[Extension], kind: int, sample_size: float) -> Array:
        sizes = np.array([len(fresh) for _, _, fresh in groups], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(sizes)])
        further = np.concatenate([fresh for _, _, fresh in groups])
        children = np.array([child for child, _, _ in groups], dtype=np.int64)
        base_start = np.concatenate([[0], np.cumsum([len(base) for _, base, _ in groups])])
        base = np.array([v for _, own, _ in groups for v in own], dtype=np.int64)
        out = np.empty(len(further))

        def stretch(ends: tuple[int, int], room: Any) -> None:
            low, high = ends
            own = FamilyGroups(
                children[low:high], base_start[low : high + 1], base, first[low : high + 1], further
            )
            kernel.score_groups(self.rows, own, kind, sample_size, room, out)

        in_parallel(stretch, self._stretches(sizes), lambda: kernel.room_for(self.rows))
        return out

    def _stretches(self, sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Cut the groups into stretches of about equal work, one where threads would not pay."""
        work = np.cumsum(sizes + 8.0)
        if (
            len(sizes) == 1
            or work[-1] * self.rows.codes.shape[1] < SHARED_WORK
            or (threads := thread_count()) == 1
        ):
            return [(0, len(sizes))]
        parts = min(4 * threads, len(sizes))
        edges = np.unique(np.searchsorted(work, np.linspace(0.0, work[-1], parts + 1)[1:-1]) + 1)
        ends = [0, *[int(e) for e in edges if e < len(sizes)], len(sizes)]
        return list(pairwise(ends))
