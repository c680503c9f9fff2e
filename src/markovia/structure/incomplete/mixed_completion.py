"""Continuous or mixed rows with gaps, completed under a conditional-Gaussian network: what structural EM searches over.

Discrete cells that are missing are completed in every way. Given the discrete cells the continuous ones are jointly normal
(Lauritzen 1992), so those that are missing have a normal distribution given the others. It is stood for by weighted points
with exactly its mean and covariance (mean plus and minus the columns of a root of the covariance), so every score that
depends on counts, means and covariances, as Gaussian and conditional-Gaussian BIC do, takes its expected value over them.
Discrete variables have no continuous parents. A configuration of discrete parents whose rows leave less than `LEAST` of the
column's variance is given that much.
Cost: for each pattern of gaps and configuration of discrete cells a matrix inverse; twice as many points as missing cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from markovia.data.tables.reading_mixed import DISCRETE, MixedTable
from markovia.data.tables.row_sources import CodedTable
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import Variable
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array, Ints
from markovia.structure.incomplete.table_completion import MOST_ROWS, every_completion

Parents = Sequence[Sequence[int]]
LEAST = 1e-6
"""The least share of a column's variance that a regression may leave."""
ROUNDS = 200


@dataclass
class CompletingRegression:
    """A continuous variable given others: one intercept, slopes and variance for each configuration of discrete parents."""

    discrete: tuple[int, ...]
    continuous: tuple[int, ...]
    intercept: Array
    slope: Array
    variance: Array


@dataclass
class FittedMixed:
    """Parameters of a network: a table for discrete, a regression for continuous variables."""

    parents: list[tuple[int, ...]]
    pieces: list[Array | CompletingRegression]
    log_likelihood: float
    converged: bool


class MixedCompletion:
    """Rows with gaps, continuous or of both kinds; hidden variables are discrete.

    Parameters
    ----------
    data
        The rows.
    hidden
        Discrete variables that are never observed, after the columns.
    rng
        For random starts.
    tolerance
        EM stops when an iteration gains no more than this a cell that is observed.
    """

    exact = True
    draws = None

    def __init__(
        self, data: MixedTable, hidden: Sequence[Variable], rng: np.random.Generator, tolerance: float
    ) -> None:
        self.names = (*data.names, *(v.name for v in hidden))
        self.kinds = (*data.kinds, *(DISCRETE for _ in hidden))
        self.rng, self.tolerance = rng, tolerance
        assert data.matrix is not None
        n_rows = len(data.matrix)
        self.matrix = data.matrix
        self.weights = np.ones(n_rows) if data.weights is None else data.weights
        own = [] if data.table is None else list(data.table.variables.values())
        self.variables: tuple[Variable, ...] = (*own, *hidden)
        self.place = np.empty(len(self.names), dtype=np.int64)
        seen = {DISCRETE: 0, "continuous": 0}
        for k, kind in enumerate(self.kinds):
            self.place[k] = seen[kind]
            seen[kind] += 1
        self.n_measured = seen["continuous"]
        codes = np.full((len(self.variables), n_rows), -1, dtype=np.int64)
        if data.table is not None:
            codes[: len(own)] = data.table.in_memory().codes
        self.cards = np.array([len(v) for v in self.variables], dtype=np.int64)
        if not len(self.variables):
            self.codes, self.owner = codes, np.arange(n_rows)
        else:
            ways = np.where(codes < 0, self.cards[:, None].astype(float), 1.0).prod(axis=0).sum()
            if ways > MOST_ROWS:
                raise InvalidArgument(
                    f"the missing discrete cells can be completed in {ways:,.0f} ways, more than {MOST_ROWS:,}"
                )
            self.codes, self.owner = every_completion(codes, self.cards)
        self.gaps = np.isnan(self.matrix)
        if self.gaps.all(axis=0).any():
            name = [n for n, k in zip(self.names, self.kinds, strict=True) if k != DISCRETE][
                int(self.gaps.all(axis=0).argmax())
            ]
            raise InvalidArgument(f"the continuous column {name!r} has no value at all")
        self.mean = np.nanmean(self.matrix, axis=0)
        self.variance = np.nanvar(self.matrix, axis=0)
        _, self.pattern = np.unique(self.gaps, axis=0, return_inverse=True)
        self.pattern = self.pattern.ravel()

    def start(self, parents: Parents, random: bool) -> FittedMixed:
        """Return parameters to begin with: gaps filled by means and equal or random weights of the completions."""
        filled = np.where(self.gaps, self.mean, self.matrix)
        share = (
            self.rng.gamma(1.0, size=len(self.owner))
            if random or len(self.variables)
            else np.ones(len(self.owner))
        )
        share /= np.bincount(self.owner, share)[self.owner]
        return self.estimated(
            parents, self._table(self.codes, filled[self.owner], share * self.weights[self.owner])
        )

    def improved(self, now: FittedMixed) -> FittedMixed:
        """Run EM from some parameters."""

        def step(now: tuple[FittedMixed, MixedTable]) -> tuple[tuple[FittedMixed, MixedTable], float]:
            after = self.estimated(now[0].parents, now[1])
            data, value = self._expected(after)
            return (after, data), value

        data, first = self._expected(now)
        size = max(1.0, float(self.weights @ (~self.gaps).sum(axis=1)))
        run = climb(step, (now, data), max_iter=ROUNDS, tol=self.tolerance, size=size, first=first)
        return replace(run.state[0], log_likelihood=run.history[-1], converged=run.converged)

    def completed(self, now: FittedMixed) -> MixedTable:
        """Return weighted complete rows with the posterior moments of the missing cells."""
        return self._expected(now)[0]

    def estimated(self, parents: Parents, data: MixedTable) -> FittedMixed:
        """Return the parameters of a graph by maximum likelihood from completed rows."""
        codes = np.empty((0, 0), dtype=np.int64) if data.table is None else data.table.in_memory().codes
        matrix, weights = data.matrix, data.weights
        assert matrix is not None
        assert weights is not None
        pieces: list[Array | CompletingRegression] = []
        for child, ps in enumerate(parents):
            split = [int(self.place[p]) for p in ps if self.kinds[p] == DISCRETE]
            shape = self.cards[split].tolist()
            size = int(np.prod(shape, dtype=np.int64))
            at = np.zeros(len(weights), dtype=np.int64)
            if split:
                at = np.ravel_multi_index(tuple(codes[k] for k in split), shape)
            if self.kinds[child] == DISCRETE:
                own = int(self.cards[self.place[child]])
                n = np.bincount(at * own + codes[self.place[child]], weights, minlength=size * own).reshape(
                    size, own
                )
                whole = n.sum(axis=1, keepdims=True)
                pieces.append(np.where(whole > 0, n / np.where(whole > 0, whole, 1.0), 1.0 / own))
            else:
                inner = [int(self.place[p]) for p in ps if self.kinds[p] != DISCRETE]
                pieces.append(
                    self._regression(
                        int(self.place[child]), tuple(split), tuple(inner), at, size, matrix, weights
                    )
                )
        return FittedMixed([tuple(p) for p in parents], pieces, -np.inf, False)

    def complete_log_likelihood(self, parents: Parents, data: MixedTable) -> float:
        """Return the log likelihood of completed rows under the parameters that fit them best."""
        now = self.estimated(parents, data)
        codes = np.empty((0, 0), dtype=np.int64) if data.table is None else data.table.in_memory().codes
        assert data.matrix is not None
        assert data.weights is not None
        total = self._log_discrete(now, codes, len(data.weights))
        for k, piece in enumerate(now.pieces):
            if isinstance(piece, CompletingRegression):
                at = self._configurations(piece.discrete, codes, len(data.weights))
                mean = piece.intercept[at] + (piece.slope[at] * data.matrix[:, list(piece.continuous)]).sum(
                    axis=1
                )
                off = data.matrix[:, int(self.place[k])] - mean
                total = total - 0.5 * (np.log(2 * np.pi * piece.variance[at]) + off**2 / piece.variance[at])
        return float(data.weights @ total)

    def _regression(
        self,
        child: int,
        split: tuple[int, ...],
        inner: tuple[int, ...],
        at: Ints,
        size: int,
        matrix: Array,
        weights: Array,
    ) -> CompletingRegression:
        found = CompletingRegression(
            split, inner, np.zeros(size), np.zeros((size, len(inner))), np.zeros(size)
        )
        for k in range(size):
            rows = at == k
            w = weights[rows]
            if not w.sum() > 0:
                found.intercept[k], found.variance[k] = self.mean[child], self.variance[child]
                continue
            x, y = matrix[rows][:, list(inner)], matrix[rows, child]
            x_mean, y_mean = w @ x / w.sum(), w @ y / w.sum()
            cross = ((x - x_mean) * w[:, None]).T
            slope = np.linalg.lstsq(cross @ (x - x_mean), cross @ (y - y_mean), rcond=1e-10)[0]
            left = float(w @ ((y - y_mean) - (x - x_mean) @ slope) ** 2 / w.sum())
            found.slope[k], found.intercept[k] = slope, y_mean - x_mean @ slope
            found.variance[k] = max(left, LEAST * self.variance[child])
        return found

    def _configurations(self, split: Sequence[int], codes: Ints, n: int) -> Ints:
        if not split:
            return np.zeros(n, dtype=np.int64)
        found: Ints = np.ravel_multi_index(tuple(codes[k] for k in split), self.cards[list(split)].tolist())
        return found

    def _log_discrete(self, now: FittedMixed, codes: Ints, n: int) -> Array:
        logs = np.zeros(n)
        for k, piece in enumerate(now.pieces):
            if not isinstance(piece, CompletingRegression):
                split = [int(self.place[p]) for p in now.parents[k]]
                with np.errstate(divide="ignore"):
                    logs += np.log(piece)[self._configurations(split, codes, n), codes[self.place[k]]]
        return logs

    def _joint(self, now: FittedMixed, codes: Ints) -> tuple[Array, Array]:
        """Return the mean and covariance of the continuous variables for one configuration of the discrete ones."""
        m = self.n_measured
        base, pull, noise = np.zeros(m), np.zeros((m, m)), np.zeros(m)
        for k, piece in enumerate(now.pieces):
            if isinstance(piece, CompletingRegression):
                at = int(self._configurations(piece.discrete, codes[:, None], 1)[0])
                c = int(self.place[k])
                base[c], noise[c] = piece.intercept[at], piece.variance[at]
                pull[c, list(piece.continuous)] = piece.slope[at]
        spread = np.linalg.inv(np.eye(m) - pull)
        return spread @ base, (spread * noise) @ spread.T

    def _expected(self, now: FittedMixed) -> tuple[MixedTable, float]:
        """Return the completed rows and the log likelihood of the observed cells."""
        n = len(self.owner)
        logs = self._log_discrete(now, self.codes, n)
        needed = sorted(
            {d for piece in now.pieces if isinstance(piece, CompletingRegression) for d in piece.discrete}
        )
        config = self._configurations(needed, self.codes, n)
        pattern = self.pattern[self.owner]
        group, where = np.unique(np.stack([config, pattern]), axis=1, return_inverse=True)
        known: dict[int, tuple[Array, Array]] = {}
        points: list[tuple[Ints, Array, float]] = []  # rows, their filled cells, share of each
        for g in range(group.shape[1]):
            rows = np.flatnonzero(where.ravel() == g)
            c = int(group[0, g])
            if c not in known:
                known[c] = self._joint(now, self.codes[:, rows[0]])
            mean, covariance = known[c]
            cells = self.matrix[self.owner[rows]]
            there = ~np.isnan(cells[0])
            gone = np.flatnonzero(~there)
            seen = np.flatnonzero(there)
            off = cells[:, seen] - mean[seen]
            inner = covariance[np.ix_(seen, seen)]
            solved = np.linalg.solve(inner, off.T).T if len(seen) else off
            if len(seen):
                _, size = np.linalg.slogdet(2 * np.pi * inner)
                logs[rows] -= 0.5 * (size + (off * solved).sum(axis=1))
            if not len(gone):
                points.append((rows, cells, 1.0))
                continue
            across = covariance[np.ix_(gone, seen)]
            centre = mean[gone] + solved @ across.T
            left = covariance[np.ix_(gone, gone)]
            if len(seen):
                left = left - across @ np.linalg.solve(inner, across.T)
            values, vectors = np.linalg.eigh((left + left.T) / 2)
            root = vectors * np.sqrt(np.maximum(values, 0.0) * len(gone))
            for j in range(len(gone)):
                for sign in (1.0, -1.0):
                    filled = cells.copy()
                    filled[:, gone] = centre + sign * root[:, j]
                    points.append((rows, filled, 0.5 / len(gone)))
        top = np.full(len(self.matrix), -np.inf)
        np.maximum.at(top, self.owner, logs)
        share = np.exp(logs - top[self.owner])
        whole = np.bincount(self.owner, share, minlength=len(top))
        share = share / whole[self.owner] * self.weights[self.owner]
        rows = np.concatenate([p[0] for p in points])
        cells = np.concatenate([p[1] for p in points])
        weights = np.concatenate([share[p[0]] * p[2] for p in points])
        keep = weights > 0
        value = float(self.weights @ (top + np.log(whole)))
        return self._table(self.codes[:, rows[keep]], cells[keep], weights[keep]), value

    def _table(self, codes: Ints, matrix: Array, weights: Array) -> MixedTable:
        table = None
        if len(self.variables):
            table = CodedTable(self.variables, codes.astype(np.int32), weights)
        return MixedTable(self.names, self.kinds, table, matrix, weights)
