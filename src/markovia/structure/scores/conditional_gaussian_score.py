"""BIC of conditional-Gaussian families, for discrete and continuous columns together.

A set S of columns, discrete ones D and k continuous ones C, has the likelihood of its saturated conditional-Gaussian model:
a free probability for each configuration d of D, and a normal distribution of C with its own mean and covariance in each.

    L(S) = sum over d   n_d ln(n_d / n) - n_d / 2 (k ln(2 pi) + ln det V_d + k)
    p(S) = |D| - 1 + |D| k (k + 3) / 2                                              (|D| is the number of configurations)

A family's score is the ratio of two such models, L(child, parents) - L(parents) - penalty ln(n) / 2 (p(child, parents) -
p(parents)), as in Andrews, Ramsey & Cooper (2018), "Scoring Bayesian networks of mixed variables". It is BIC where all
columns are discrete, Gaussian BIC where all are continuous, and one regression a configuration for a continuous child. For
a discrete child with continuous parents the ratio stands in for the conditional distribution: the parents' own model is one
normal distribution a configuration, not the mixture over the child's states. Equivalent graphs score the same.

A configuration with fewer than 2 k + 3 rows (or their weight), or where a continuous column is a linear function of others,
has no covariance of its own: there V_d is the covariance over all rows, with the configuration's own mean, and k is replaced
by the trace of V_d^-1 times the configuration's covariance. Configurations are those that occur; parameters count them all.
Cost: n k^2 / 2 a set; sets are remembered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.reading_mixed import DISCRETE, MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_number
from markovia.structure.scores.gaussian_scores import SINGULAR, moments
from markovia.structure.scores.local_score import Family, LocalScore


@dataclass(frozen=True)
class ConditionalGaussianBIC:
    """Bayesian information criterion of conditional-Gaussian families, for discrete and continuous columns together.

    Parameters
    ----------
    penalty
        Multiplies the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(0, 2, 500)
    >>> rows = {"group": group, "size": 2.0 * group + rng.normal(size=500), "noise": rng.normal(size=500)}
    >>> mk.learn_structure(rows, score="cg-bic").skeleton.edges
    [('group', 'size')]
    """

    penalty: float = 1.0

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        check_number("penalty", self.penalty)
        return ConditionalGaussianScore(data, self.penalty)


class ConditionalGaussianScore(LocalScore):
    """`ConditionalGaussianBIC` bound to data."""

    name = "cg-bic"

    def __init__(self, data: MixedTable, penalty: float) -> None:
        super().__init__(data)
        self.discrete = np.array([kind == DISCRETE for kind in data.kinds], dtype=bool)
        self.codes: NDArray[np.int64] = np.zeros((0, data.n_rows), dtype=np.int64)
        weights = data.weights
        if data.table is not None:
            table = data.codes()
            if not table.complete:
                raise InvalidArgument(
                    "the score cg-bic needs complete rows; leave the others out with missing='drop'"
                )
            place = {name: k for k, name in enumerate(table.variables)}
            own = [n for n, kind in zip(data.names, data.kinds, strict=True) if kind == DISCRETE]
            self.codes = table.codes[[place[n] for n in own]].astype(np.int64)
            weights = table.weights
        self.weights = np.ones(self.codes.shape[1]) if weights is None else weights
        self.total_rows = float(self.weights.sum())
        if self.total_rows <= 0:
            raise InvalidArgument("a score needs rows, and there are none")
        self.rows = np.zeros((len(self.weights), 0))
        self.log_scale = np.zeros(0)
        if data.matrix is not None:
            measured = [n for n, kind in zip(data.names, data.kinds, strict=True) if kind != DISCRETE]
            if np.isnan(data.matrix).any():
                raise InvalidArgument(
                    "the score cg-bic needs complete rows; leave the others out with missing='drop'"
                )
            _, variances, self.correlations = moments(data.matrix, self.weights, measured)
            centre = self.weights @ data.matrix / self.total_rows
            self.rows = (data.matrix - centre) / np.sqrt(variances)
            self.log_scale = np.log(variances) / 2
        self.price = penalty * np.log(self.total_rows) / 2
        self._sets: dict[tuple[int, ...], float] = {(): 0.0}

    def _compute(self, families: Sequence[Family]) -> Array:
        above = [self.of_set(tuple(sorted((child, *parents)))) for child, parents in families]
        found: Array = np.array(above) - np.array([self.of_set(parents) for _, parents in families])
        return found

    def of_set(self, scope: tuple[int, ...]) -> float:
        """Return the penalised log-likelihood of a set of columns (in increasing order) under its saturated model."""
        found = self._sets.get(scope)
        if found is None:
            found = self._sets[scope] = self._saturated(scope)
        return found

    def _saturated(self, scope: tuple[int, ...]) -> float:
        places = self.data.columns
        counted = [v for v in scope if self.discrete[v]]
        measured = [int(places[v]) for v in scope if not self.discrete[v]]
        configurations = float(np.prod(self.data.cards[counted], dtype=np.float64))
        cell, n_cells = self._cells(
            [int(places[v]) for v in counted], [int(self.data.cards[v]) for v in counted]
        )
        held = np.bincount(cell, self.weights, minlength=n_cells).astype(np.float64)
        occurs = held > 0
        likelihood = float((held[occurs] * np.log(held[occurs] / self.total_rows)).sum())
        k = len(measured)
        if k:
            likelihood += (
                self._normal(cell, held, measured) - self.total_rows * self.log_scale[measured].sum()
            )
        free = configurations - 1 + configurations * k * (k + 3) / 2
        return float(likelihood - self.price * free)

    def _cells(self, columns: Sequence[int], cards: Sequence[int]) -> tuple[NDArray[np.int64], int]:
        """Return a number for the configuration of each row, and how many numbers there are."""
        cell = np.zeros(len(self.weights), dtype=np.int64)
        size = 1
        for column, card in zip(columns, cards, strict=True):
            cell = cell * card + self.codes[column]
            size *= card
            if size > 2 * len(cell):
                known, cell = np.unique(cell, return_inverse=True)
                size = len(known)
        return cell, size

    def _normal(self, cell: NDArray[np.int64], held: Array, measured: Sequence[int]) -> float:
        """Return the log-likelihood of the scaled continuous columns given the configuration of each row."""
        k = len(measured)
        occurs = held > 0
        n = held[occurs]
        means = np.empty((len(n), k))
        for i, a in enumerate(measured):
            means[:, i] = np.bincount(cell, self.weights * self.rows[:, a], minlength=len(held))[occurs] / n
        number = np.cumsum(occurs) - 1
        centred = self.rows[:, measured] - means[number[cell]]
        spread = np.empty((len(n), k, k))
        for i in range(k):
            for j in range(i + 1):
                products = self.weights * centred[:, i] * centred[:, j]
                spread[:, i, j] = spread[:, j, i] = (
                    np.bincount(cell, products, minlength=len(held))[occurs] / n
                )
        pooled = self.correlations[np.ix_(measured, measured)]
        log_pooled = _log_determinant(pooled[None])[0]
        if np.isneginf(log_pooled):
            names = [n for n, kind in zip(self.data.names, self.data.kinds, strict=True) if kind != DISCRETE]
            raise InvalidArgument(
                f"of the columns {', '.join(repr(names[a]) for a in measured[:6])} one is a linear function of the others, "
                "so their likelihood has no largest value; leave one of them out"
            )
        log_own = np.full(len(n), -np.inf)
        enough = n >= 2 * k + 3
        log_own[enough] = _log_determinant(spread[enough])
        alone = np.isfinite(log_own)
        trace = np.einsum("ij,cji->c", np.linalg.inv(pooled), spread)
        logs = np.where(alone, log_own, log_pooled)
        distance = np.where(alone, float(k), trace)
        return float(-(n / 2 * (k * np.log(2 * np.pi) + logs + distance)).sum())


def _log_determinant(matrices: Array) -> Array:
    """Return the log determinants; minus infinity where a column is a linear function of those before it."""
    rest = matrices.copy()
    size = rest.shape[1]
    start = np.einsum("cii->ci", matrices)
    found = np.zeros(len(rest))
    for p in range(size):
        pivot = rest[:, p, p]
        useful = pivot > SINGULAR * np.maximum(start[:, p], SINGULAR)
        found = np.where(useful, found + np.log(np.where(useful, pivot, 1.0)), -np.inf)
        row = rest[:, p, p + 1 :] / np.where(useful, pivot, 1.0)[:, None]
        rest[:, p + 1 :, p + 1 :] -= row[:, :, None] * rest[:, p, None, p + 1 :]
    return found
