"""BIC of linear-Gaussian families, from the covariance matrix alone.

A family is a linear regression with normal noise. Its score is -n/2 (ln(2 pi v) + 1) - penalty ln(n)/2 (parents + 2), where
v is the variance that the regression leaves; the parameters are slopes, intercept and v. Equivalent graphs score the same.
v comes from the correlation matrix by elimination (Cholesky), many families at a time; all further parents of one family
come from one elimination. Cost: k^3 a family with k parents, k n^2 for n further parents; the rows are read once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.moments import checked_moments
from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_number
from markovia.structure.scores.local_score import Extension, Family, LocalScore

SINGULAR = 1e-10
"""A column is determined by others if they leave less than this share of its variance."""


@dataclass(frozen=True)
class GaussianBIC:
    """Bayesian information criterion of linear-Gaussian networks.

    Parameters
    ----------
    penalty
        Multiplies the penalty; about 2 is common where variables are many.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> rows = {"x": x, "y": x + rng.normal(size=500), "z": rng.normal(size=500)}
    >>> mk.learn_structure(rows, score=mk.scores.GaussianBIC()).skeleton.edges
    [('x', 'y')]
    """

    penalty: float = 1.0

    def bind(self, data: MixedTable) -> LocalScore:
        """Return the score for these data."""
        check_number("penalty", self.penalty)
        return GaussianScore(data, self.penalty)


class GaussianScore(LocalScore):
    """`GaussianBIC` bound to data."""

    name = "gaussian-bic"

    def __init__(self, data: MixedTable, penalty: float) -> None:
        super().__init__(data)
        rows = data.numbers("the score gaussian-bic")
        self.total_rows, self.variances, self.correlations = moments(rows, data.weights, data.names)
        self.price = penalty * np.log(self.total_rows) / 2

    def _compute(self, families: Sequence[Family]) -> Array:
        found = np.empty(len(families))
        by_size: dict[int, list[int]] = {}
        for k, (_, parents) in enumerate(families):
            by_size.setdefault(len(parents), []).append(k)
        for size, places in by_size.items():
            scope = np.array([(*families[k][1], families[k][0]) for k in places], dtype=np.int64)
            left = _left_over(self.correlations[scope[:, :, None], scope[:, None, :]])
            found[places] = self._scored(left, scope[:, -1], size, [families[k][1] for k in places])
        return found

    def _extend(self, groups: Sequence[Extension]) -> list[Array]:
        results = []
        for child, base, fresh in groups:
            rest = residual_correlations(self.correlations, base)
            own, others = rest[child, child], rest[fresh, fresh]
            useful = others > SINGULAR
            gone = np.where(useful, rest[child, fresh] ** 2 / np.where(useful, others, 1.0), 0.0)
            children = np.full(len(fresh), child)
            parents = [(*base, int(v)) for v in fresh]
            results.append(self._scored(own - gone, children, len(base) + 1, parents))
        return results

    def _scored(
        self, left: Array, children: NDArray[np.int64], size: int, parents: Sequence[tuple[int, ...]]
    ) -> Array:
        bad = np.flatnonzero(left <= SINGULAR)
        if len(bad):
            child = self.data.names[int(children[bad[0]])]
            if size + 1 >= self.data.n_rows:
                raise InvalidArgument(
                    f"{self.data.n_rows} rows do not settle a regression of {child!r} on {size} parents; give max_parents="
                )
            others = ", ".join(repr(self.data.names[p]) for p in parents[int(bad[0])][:6])
            raise InvalidArgument(
                f"the column {child!r} is a linear function of {others}, so its likelihood has no largest value; leave one "
                "of them out"
            )
        variance = left * self.variances[children]
        found: Array = -self.total_rows / 2 * (np.log(2 * np.pi * variance) + 1) - self.price * (size + 2)
        return found


def moments(rows: Array, weights: Array | None, names: Sequence[str]) -> tuple[float, Array, Array]:
    """Return the number of rows (or their weight), the variances and the correlations, divided by n as likelihood has it."""
    total = float(len(rows)) if weights is None else float(weights.sum())
    if total <= 0:
        raise InvalidArgument("a score needs rows, and there are none")
    found = checked_moments(rows, weights, names)
    return total, np.diagonal(found.covariance).copy(), found.correlation


def residual_correlations(correlations: Array, given: Sequence[int]) -> Array:
    """Return what is left of the correlations after regression on some columns; columns they determine add nothing."""
    rest = correlations.copy()
    for p in given:
        pivot = rest[p, p]
        if pivot > SINGULAR:
            row = rest[p].copy()
            rest -= np.outer(row, row / pivot)
    return rest


def _left_over(blocks: Array) -> Array:
    """Return what the first columns of each correlation matrix leave of its last; the matrices are overwritten."""
    size = blocks.shape[1]
    for p in range(size - 1):
        pivot = blocks[:, p, p]
        useful = pivot > SINGULAR
        factor = np.where(useful, 1.0 / np.where(useful, pivot, 1.0), 0.0)
        row = blocks[:, p, p + 1 :].copy()
        blocks[:, p + 1 :, p + 1 :] -= factor[:, None, None] * row[:, :, None] * row[:, None, :]
    left: Array = blocks[:, -1, -1]
    return left
