"""Bounds on what larger parent sets can score, for the search of best graphs. The mathematics: `parent_set_scores`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from markovia.data.tables.row_sources import CodedTable
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.structure.scores.local_score import Family, LocalScore
from markovia.structure.scores.subset_likelihoods import SetSums, fits

NeverPays = Callable[[int, Ints, Ints], Flags]
MOST_COLUMNS = 62
"""Sets of so many columns fit into one number."""


class ScoreBound(ABC):
    """What excludes parent sets together with all their supersets."""

    def scores(self, asked: Mapping[int, Ints], over: Callable[[], bool]) -> dict[int, Array] | None:
        """Return the scores of children with sets of parents, if there is a faster way than to ask the score.

        Raises
        ------
        Stopped
            As soon as `over` says so.
        """
        return None

    def removals(self, x: int, parents: Ints, scores: Array, larger: Ints) -> NeverPays | None:
        """Return a function that says whether adding y to sets never pays, not to their supersets either.

        It takes y, the rows of these sets in `parents`, and the rows of the sets with y in `larger`.
        """
        return None

    def learn(self, x: int, parents: Ints, scores: Array) -> None:
        """Take note of the scores of a level."""
        return

    @abstractmethod
    def ceiling(self, x: int, parents: Ints) -> Array:
        """Return for sets of one size a bound on the scores of them and all their supersets."""


class PenalisedTables(ScoreBound):
    """Log likelihood of tables minus a weight for each free parameter."""

    def __init__(self, score: LocalScore, weight: float, over: Callable[[], bool] = lambda: False) -> None:
        self.score = score
        self.weight = weight
        self.cards = score.data.cards.astype(np.float64)
        n = score.n
        self.entropy = np.full((n, n), np.inf)
        """[y, s]: N times the entropy of y given s alone; of y by itself on the diagonal."""
        alone = score.many([(y, ()) for y in range(n)])
        self.entropy[np.diag_indices(n)] = -(alone + weight * (self.cards - 1))
        self.sums: SetSums | None = None
        self.floor = np.zeros(n)
        """N times the entropy of each variable given all others: what no parents explain."""
        table = score.data.table
        if isinstance(table, CodedTable) and 4 < n <= MOST_COLUMNS and fits(table, score.data.cards):
            self.sums = SetSums(table, score.data.names)
            for x in range(n):
                if over():
                    break
                others = np.flatnonzero(np.arange(n) != x)
                self.floor[x] = max(0.0, -self.sums.given_all(x, others) - 1e-6)

    def penalties(self, x: int, parents: Ints) -> Array:
        """Return the penalty of a child with sets of parents, one row a set."""
        states: Array = self.cards[parents].prod(axis=1)
        found: Array = self.weight * (self.cards[x] - 1) * states
        return found

    def scores(self, asked: Mapping[int, Ints], over: Callable[[], bool]) -> dict[int, Array] | None:
        """Return the scores of children with sets of parents of one size each, where the rows are in memory."""
        if self.sums is None:
            return None
        by_size: dict[int, dict[int, Ints]] = {}
        for x, parents in asked.items():
            by_size.setdefault(parents.shape[1], {})[x] = self.sums.masks(parents)
        found: dict[int, Array] = {}
        for group in by_size.values():
            found.update(self.sums.likelihoods(group, over))
        return {x: found[x] - self.penalties(x, parents) for x, parents in asked.items()}

    def learn(self, x: int, parents: Ints, scores: Array) -> None:
        """Keep the entropies given one variable."""
        if parents.shape[1] == 1:
            self.entropy[x, parents[:, 0]] = -(scores + self.penalties(x, parents))

    def removals(self, x: int, parents: Ints, scores: Array, larger: Ints) -> NeverPays | None:
        """Compare what y can tell about x at most with what it costs at least."""
        penalty = self.penalties(x, parents)
        left = -(scores + penalty) - self.floor[x]  # N H(x | s), less what stays in any case
        if self.sums is not None:
            below, above = self.sums.known(parents), self.sums.known(larger)

        def never_pays(y: int, at: Ints, rows: Ints) -> Flags:
            if self.sums is not None:
                of_y = below[at] - above[rows]
            else:
                of_y = np.full(len(at), self.entropy[y, y])
                if parents.shape[1]:
                    of_y = np.minimum(of_y, self.entropy[y][parents[at]].min(axis=1))
            gain = np.minimum(left[at], of_y - self.floor[y])
            found: Flags = gain <= (self.cards[y] - 1) * penalty[at]
            return found

        return never_pays

    def ceiling(self, x: int, parents: Ints) -> Array:
        """Return the largest log likelihood minus the penalty."""
        found: Array = -self.floor[x] - self.penalties(x, parents)
        return found


class OccupiedCells(ScoreBound):
    """Dirichlet marginal likelihoods: each state of the child costs ln |x| when it first occurs with some parents."""

    def __init__(self, table: CodedTable, score: LocalScore) -> None:
        self.cards = score.data.cards
        self.cells = SetSums(table, score.data.names, occupied=True)

    def ceiling(self, x: int, parents: Ints) -> Array:
        """Return minus ln |x| for each cell that occurs."""
        own = np.full((len(parents), 1), x, dtype=np.int64)
        cells = self.cells.sums(np.concatenate([parents, own], axis=1))
        found: Array = -np.log(float(self.cards[x])) * cells
        return found


class LinearPenalty(ScoreBound):
    """Gaussian log likelihood minus a weight for each parent: at most the likelihood with all candidates."""

    def __init__(self, top: Array, start: float, step: float) -> None:
        self.top = top
        self.start, self.step = start, step

    def ceiling(self, x: int, parents: Ints) -> Array:
        """Return the best log likelihood minus the penalty of this size."""
        return np.full(len(parents), self.top[x] - self.start - self.step * parents.shape[1])


def bound_for(score: LocalScore, over: Callable[[], bool] = lambda: False) -> ScoreBound | None:
    """Return the bound that holds for a score, or None; once `over` says so, one that took less work and excludes less."""
    data = score.data
    if data.discrete and score.name in ("bic", "aic"):
        weight = _table_weight(score)
        return None if weight is None else PenalisedTables(score, weight, over)
    table = data.table
    if score.name in ("bdeu", "k2") and isinstance(table, CodedTable) and 4 < score.n <= MOST_COLUMNS:
        counted = table.weights is None and fits(table, data.cards)
        return OccupiedCells(table, score) if counted else None
    if data.continuous and score.name == "gaussian-bic":
        return _gaussian_bound(score)
    return None


def _table_weight(score: LocalScore) -> float | None:
    """Read off the weight of a parameter from the scores of single variables; None if they contradict each other."""
    data: Any = score.data
    rows = data.table.counts([[name] for name in data.names])
    scores = score.many([(x, ()) for x in range(score.n)])
    weights = []
    for x, counts in enumerate(rows):
        seen = counts[counts > 0]
        likelihood = float((seen * np.log(seen / seen.sum())).sum())
        if len(counts) > 1:
            weights.append((likelihood - float(scores[x])) / (len(counts) - 1))
    if not weights or min(weights) < 0 or np.ptp(weights) > 1e-6 * max(1.0, max(weights)):
        return None
    return float(np.median(weights))


def _gaussian_bound(score: LocalScore) -> ScoreBound | None:
    """Read off the penalty from scores of no and of one parent; None if it is not a number for each parent."""
    data: Any = score.data
    matrix = data.matrix
    n_rows, n = matrix.shape
    weights = np.ones(n_rows) if data.weights is None else data.weights
    total = float(weights.sum())
    if n < 3 or n_rows <= n + 1:
        return None
    centred = matrix - (weights @ matrix) / total
    spread = (centred * weights[:, None]).T @ centred / total

    def likelihood(x: int, parents: Sequence[int]) -> float:
        own = spread[x, x]
        if parents:
            inner, cross = spread[np.ix_(parents, parents)], spread[list(parents), x]
            own = own - cross @ np.linalg.solve(inner, cross)
        return float(-total / 2 * (np.log(2 * np.pi * own) + 1)) if own > 0 else np.inf

    try:
        top = np.array([likelihood(x, [y for y in range(n) if y != x]) for x in range(n)])
        families: list[Family] = [(0, ()), (1, ()), (0, (1,)), (1, (2,)), (0, (1, 2)), (2, (0, 1))]
        lacks = [likelihood(x, list(p)) - s for (x, p), s in zip(families, score.many(families), strict=True)]
    except np.linalg.LinAlgError:
        return None
    start, step = lacks[0], lacks[2] - lacks[0]
    expected = [start, start, start + step, start + step, start + 2 * step, start + 2 * step]
    if not np.isfinite(top).all() or not np.allclose(lacks, expected, rtol=1e-7, atol=1e-6) or step <= 0:
        return None
    slack = 1e-6 * (1 + abs(top))  # the scores may be computed in another order
    return LinearPenalty(top + slack, start, step)
