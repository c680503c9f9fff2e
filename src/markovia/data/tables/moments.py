"""Means and covariances of the data of a search, with weights, as the Gaussian methods need them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class Moments:
    """What a Gaussian method reads off the rows.

    Attributes
    ----------
    rows
        The columns, each minus its mean, one row a data row.
    weights
        One number a row; they sum to `total`.
    total
        The number of rows, or the sum of their weights.
    """

    rows: Array
    weights: Array
    total: float

    @cached_property
    def covariance(self) -> Array:
        """Divided by `total` (maximum likelihood); computed when it is first asked for."""
        found = (self.rows * (self.weights / self.total)[:, None]).T @ self.rows
        return np.asarray((found + found.T) / 2)

    @cached_property
    def deviations(self) -> Array:
        """The standard deviation of each column."""
        return np.asarray(np.sqrt(self.weights @ self.rows**2 / self.total))

    @property
    def correlation(self) -> Array:
        """The covariance of the columns divided by their standard deviations."""
        scale = self.deviations
        found = self.covariance / np.outer(scale, scale)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)


def moments(mixed: MixedTable, what: str) -> Moments:
    """Return the moments of all columns, or say which column is constant."""
    matrix = mixed.numbers(what)
    weights = np.ones(len(matrix)) if mixed.weights is None else mixed.weights
    if matrix.shape[1] < 2:
        raise InvalidArgument(f"{what} needs at least two columns")
    if len(matrix) < 2 or weights.sum() <= 0:
        raise InvalidArgument(f"{what} needs at least two rows")
    return checked_moments(matrix, weights, mixed.names)


def checked_moments(matrix: Array, weights: Array | None, names: Sequence[str]) -> Moments:
    """Return the moments of a matrix without missing cells, or say which column is constant."""
    found = moments_of(matrix, np.ones(len(matrix)) if weights is None else weights)
    size = np.abs(matrix).max(axis=0, initial=0.0)
    flat = found.deviations <= 1e-13 * np.maximum(size, np.finfo(np.float64).tiny)
    if flat.any():
        raise InvalidArgument(f"the column {names[int(flat.argmax())]!r} is constant; leave it out")
    return found


def moments_of(matrix: Array, weights: Array) -> Moments:
    """Return the moments of a matrix, one row a data row."""
    total = float(weights.sum())
    return Moments(matrix - weights @ matrix / total, weights, total)
