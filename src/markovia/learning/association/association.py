"""Linear association between columns of data.

Covariance, Pearson correlation, and partial correlation, either by its definition (the correlation of the
residuals of two regressions) or from the precision matrix ``T`` as ``-T[i, j] / sqrt(T[i, i] T[j, j])``. A
zero correlation says that there is no *linear* dependence; it means independence only for jointly Gaussian
data.

Cost: ``O(rows * columns**2)`` for a matrix. Reference: Lauritzen (1996), Graphical Models, section 5.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.tables.plain_columns import Data, need_rows, numbers, numeric_matrix, same_length
from markovia.errors import InvalidArgument, check_known
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd

_COLLINEAR = 1e-10  # ratio of singular values below which double precision no longer separates the columns


@dataclass(frozen=True, eq=False)
class AssociationMatrix(InNotebooks):
    """A symmetric matrix of one measure between every two columns; ``matrix["a", "b"]`` is a float.

    Attributes
    ----------
    measure : str
        What the numbers are, in words.
    names : tuple of str
        The columns, in the order of the matrix.
    values : ndarray
        The matrix, read-only.
    n_rows : int
        The number of rows the estimate rests on.
    """

    measure: str
    names: tuple[str, ...]
    values: Array
    n_rows: int

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def __getitem__(self, pair: tuple[str, str]) -> float:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidArgument(
                f'an entry is named by two columns, as in matrix["a", "b"], not by {pair!r}'
            )
        check_known(pair, self.names, "the data")
        row, column = pair
        return float(self.values[self.names.index(row), self.names.index(column)])

    def __str__(self) -> str:
        cells = [[f"{value:.4g}" for value in row] for row in self.values]
        width = max(len(text) for row in [*cells, self.names] for text in row)
        label = max(len(name) for name in self.names)
        lines = [f"{self.measure}, {self.n_rows} rows", " " * label]
        lines[1] += "".join(f"  {name:>{width}}" for name in self.names)
        for name, row in zip(self.names, cells, strict=True):
            lines.append(f"{name:<{label}}" + "".join(f"  {text:>{width}}" for text in row))
        return "\n".join(lines)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the matrix as a data frame with the names on both axes."""
        import pandas as pd

        return pd.DataFrame(self.values, index=list(self.names), columns=list(self.names))


@overload
def covariance(x: Data, *, ddof: int = 1) -> AssociationMatrix: ...
@overload
def covariance(x: ArrayLike, y: ArrayLike, *, ddof: int = 1) -> float: ...
def covariance(x: Data, y: ArrayLike | None = None, *, ddof: int = 1) -> AssociationMatrix | float:
    """Compute the covariance of two vectors, or of every two columns of a data set.

    Parameters
    ----------
    x : data
        A data set, or the first vector.
    y : array-like, optional
        The second vector.
    ddof : int
        The sum is divided by ``rows - ddof``: 1 is unbiased, 0 is the Gaussian maximum-likelihood estimate.

    Returns
    -------
    AssociationMatrix or float
        The matrix for a data set, a number for two vectors.

    Raises
    ------
    InvalidArgument
        If a value is missing or no number, lengths differ, or there are too few rows.

    Examples
    --------
    >>> covariance([1.0, 2.0, 3.0], [2.0, 4.0, 9.0])
    3.5
    """
    names, matrix = numeric_matrix(x, "x") if y is None else _side_by_side(x, y)
    n_rows = len(matrix)
    if ddof not in (0, 1):
        raise InvalidArgument(f"ddof must be 0 or 1, not {ddof!r}")
    need_rows(n_rows, ddof + 1, "a covariance")
    centred = matrix - matrix.mean(axis=0)
    values = centred.T @ centred / (n_rows - ddof)
    return AssociationMatrix("covariance", names, values, n_rows) if y is None else float(values[0, 1])


@overload
def pearson(x: Data) -> AssociationMatrix: ...
@overload
def pearson(x: ArrayLike, y: ArrayLike) -> float: ...
def pearson(x: Data, y: ArrayLike | None = None) -> AssociationMatrix | float:
    """Compute the Pearson correlation of two vectors, or of every two columns of a data set.

    Parameters
    ----------
    x : data
        A data set, or the first vector.
    y : array-like, optional
        The second vector.

    Returns
    -------
    AssociationMatrix or float
        The matrix for a data set, a number in [-1, 1] for two vectors.

    Raises
    ------
    InvalidArgument
        If a value is missing or no number, a column is constant, lengths differ, or there are too few rows.

    Examples
    --------
    A parabola over a symmetric range has no linear trend:

    >>> abs(pearson([-2.0, -1.0, 0.0, 1.0, 2.0], [4.0, 1.0, 0.0, 1.0, 4.0])) < 1e-15
    True
    >>> print(pearson({"age": [3, 5, 9], "height": [95, 118, 131]}))
    Pearson correlation, 3 rows
               age  height
    age          1  0.9397
    height  0.9397       1
    """
    names, matrix = numeric_matrix(x, "x") if y is None else _side_by_side(x, y)
    unit = _standardised(names, matrix)
    values = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(values, 1.0)
    return (
        AssociationMatrix("Pearson correlation", names, values, len(unit))
        if y is None
        else float(values[0, 1])
    )


@overload
def partial_correlation(x: Data, *, method: Literal["precision", "residual"] = ...) -> AssociationMatrix: ...
@overload
def partial_correlation(
    x: ArrayLike,
    y: ArrayLike,
    given: Data | None = ...,
    *,
    method: Literal["precision", "residual"] = ...,
) -> float: ...
def partial_correlation(
    x: Data,
    y: ArrayLike | None = None,
    given: Data | None = None,
    *,
    method: Literal["precision", "residual"] = "precision",
) -> AssociationMatrix | float:
    """Compute the correlation that remains when the linear effect of other columns is taken out.

    Parameters
    ----------
    x : data
        A data set (every pair of columns given all the others), or the first vector.
    y : array-like, optional
        The second vector.
    given : data, optional
        The columns to condition on; only with two vectors.
    method : {"precision", "residual"}
        "precision" inverts the covariance once; "residual" follows the definition, two regressions with
        intercept a pair. They agree; the first is faster by a factor of about columns**2 on a matrix.

    Returns
    -------
    AssociationMatrix or float
        The matrix for a data set (ones on the diagonal), a number in [-1, 1] for two vectors.

    Raises
    ------
    InvalidArgument
        If a column is constant, columns are linearly dependent, or there are no more rows than columns.

    Examples
    --------
    >>> age = [2.0, 4.0, 6.0, 8.0, 10.0]
    >>> height, words = [85.0, 103.0, 114.0, 129.0, 139.0], [310.0, 990.0, 2110.0, 3090.0, 3990.0]
    >>> round(pearson(height, words), 3), round(partial_correlation(height, words, given=age), 3)
    (0.989, -0.677)
    """
    if method not in ("precision", "residual"):
        raise InvalidArgument(f"method must be 'precision' or 'residual', not {method!r}")
    if y is None:
        if given is not None:
            raise InvalidArgument(
                "given= needs two vectors x and y; a data set conditions on all its columns"
            )
        names, matrix = numeric_matrix(x, "x")
    elif given is None:
        return pearson(x, y)  # type: ignore[arg-type]
    else:
        (x_name, y_name), pair = _side_by_side(x, y)
        given_names, conditions = numeric_matrix(given, "z")
        same_length(len(pair), len(conditions), "x", "given")
        names, matrix = (x_name, y_name, *given_names), np.column_stack([pair, conditions])
    n_rows, n_columns = matrix.shape
    need_rows(n_rows, n_columns + 1, f"a partial correlation among {n_columns} columns")
    unit = _standardised(names, matrix)
    singular, directions = _singular_values(names, unit)
    if method == "precision":
        root = directions.T / singular
        values = _negated_and_scaled(root @ root.T)
    elif y is None:
        values = np.eye(n_columns)
        for i in range(n_columns):
            for j in range(i):
                values[i, j] = values[j, i] = _residual_correlation(unit, i, j)
    else:
        return _residual_correlation(unit, 0, 1)
    return (
        AssociationMatrix("partial correlation", names, values, n_rows) if y is None else float(values[0, 1])
    )


def mahalanobis(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, *, squared: bool = False) -> float | Array:
    """Compute the Mahalanobis distance ``sqrt((x - mean)' cov^-1 (x - mean))`` of one point or of many rows.

    Parameters
    ----------
    x : array-like
        One point of d numbers, or a matrix with a point a row.
    mean : array-like
        The centre, d numbers.
    cov : array-like
        The covariance, d by d, symmetric positive definite.
    squared : bool
        Return the squared distance.

    Returns
    -------
    float or ndarray
        A number for one point, one number a row for many.

    Raises
    ------
    InvalidArgument
        If shapes disagree, a number is not finite, or the covariance is not symmetric positive definite.

    Examples
    --------
    >>> mahalanobis([1.0, 2.0], mean=[0.0, 0.0], cov=[[1.0, 0.0], [0.0, 4.0]], squared=True)
    2.0
    """
    points, centre, matrix = numbers(x, "x"), numbers(mean, "mean"), numbers(cov, "cov")
    size = centre.size
    if (
        centre.ndim != 1
        or points.ndim not in (1, 2)
        or points.shape[-1] != size
        or matrix.shape != (size, size)
    ):
        raise InvalidArgument(
            f"shapes disagree: x {points.shape}, mean {centre.shape}, cov {matrix.shape}; "
            "for a mean of d numbers x has d columns and cov is d by d"
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=0.0):
        raise InvalidArgument("the covariance is not symmetric; average it with its transpose")
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise InvalidArgument("the covariance is not positive definite; its inverse does not exist") from None
    whitened = np.linalg.solve(lower, np.atleast_2d(points - centre).T)
    distance: Array = (whitened**2).sum(axis=0)
    if not squared:
        distance = np.sqrt(distance)
    return float(distance[0]) if points.ndim == 1 else distance


def _side_by_side(x: Data, y: ArrayLike) -> tuple[tuple[str, ...], Array]:
    vectors = [numeric_matrix(x, "x"), numeric_matrix(y, "y")]
    for label, (names, matrix) in zip(("x", "y"), vectors, strict=True):
        if len(names) != 1:
            raise InvalidArgument(f"{label} has {matrix.shape[1]} columns; two single vectors are compared")
    (x_names, first), (y_names, second) = vectors
    same_length(len(first), len(second), "x", "y")
    return x_names + y_names, np.column_stack([first, second])


def _standardised(names: Sequence[str], matrix: Array) -> Array:
    need_rows(len(matrix), 2, "a correlation")
    scale = np.abs(matrix).max(axis=0)
    # Scaling first keeps sums of huge values finite; correlations do not depend on it.
    centred: Array = matrix / np.where(scale > 0, scale, 1.0)
    centred -= centred.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    for name, norm in zip(names, norms, strict=True):
        if norm <= 8 * np.finfo(np.float64).eps * math.sqrt(len(matrix)):
            raise InvalidArgument(f"column {name!r} is constant, so it has no correlation; leave it out")
    centred /= norms
    return centred


def _singular_values(names: Sequence[str], unit: Array) -> tuple[Array, Array]:
    _, singular, directions = np.linalg.svd(unit, full_matrices=False)
    if singular[-1] < _COLLINEAR * singular[0]:
        involved = [name for name, v in zip(names, directions[-1], strict=True) if abs(v) > 1e-6]
        raise InvalidArgument(
            f"columns {', '.join(map(repr, involved))} are linearly dependent; leave one of them out"
        )
    return singular, directions


def _negated_and_scaled(precision: Array) -> Array:
    root = np.sqrt(np.diag(precision))
    values: Array = np.clip(-precision / np.outer(root, root), -1.0, 1.0)
    np.fill_diagonal(values, 1.0)
    return values


def _residual_correlation(unit: Array, i: int, j: int) -> float:
    design = np.column_stack([np.ones(len(unit)), np.delete(unit, [i, j], axis=1)])
    pair = unit[:, [i, j]]
    residuals = pair - design @ np.linalg.lstsq(design, pair, rcond=None)[0]
    residuals /= np.linalg.norm(residuals, axis=0)
    return float(np.clip(residuals[:, 0] @ residuals[:, 1], -1.0, 1.0))
