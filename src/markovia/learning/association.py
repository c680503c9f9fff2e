"""Association between columns of data: linear measures and information measures.

Linear: covariance, Pearson correlation, and partial correlation, either by its definition (the correlation of
the residuals of two regressions) or from the precision matrix ``T`` as ``-T[i, j] / sqrt(T[i, i] T[j, j])``.
A zero correlation says that there is no *linear* dependence; it means independence only for jointly Gaussian
data.

Information: entropy and (conditional) mutual information of discrete columns by plug-in counts, which see any
dependence. Plug-in mutual information is never negative and biased upwards, under independence by about
(states of x - 1)(states of y - 1) / (2 rows); the Miller-Madow correction removes that first-order bias, and
the corrected number may be slightly negative.

Cost: ``O(rows * columns**2)`` for a matrix, ``O(rows log rows)`` for an information measure.

References: Lauritzen (1996), Graphical Models, section 5.1; Cover and Thomas (2006), Elements of Information
Theory, chapter 2; Miller (1955), Note on the bias of information estimates.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument, UnknownVariable

if TYPE_CHECKING:
    import pandas as pd

FloatArray: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
Data: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""A matrix of rows, a data frame, a mapping from names to columns, or one column."""
BiasCorrection: TypeAlias = Literal["none", "miller-madow"]

_COLLINEAR = 1e-10  # ratio of singular values below which double precision no longer separates the columns
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class AssociationMatrix:
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
    values: FloatArray
    n_rows: int

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def __getitem__(self, pair: tuple[str, str]) -> float:
        for name in pair:
            if name not in self.names:
                raise UnknownVariable(name, self.names, "the data")
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
    _need_rows(n_rows, ddof + 1, "a covariance")
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
        _same_length(len(pair), len(conditions), "x", "given")
        names, matrix = (x_name, y_name, *given_names), np.column_stack([pair, conditions])
    n_rows, n_columns = matrix.shape
    _need_rows(n_rows, n_columns + 1, f"a partial correlation among {n_columns} columns")
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


def mahalanobis(
    x: ArrayLike, mean: ArrayLike, cov: ArrayLike, *, squared: bool = False
) -> float | FloatArray:
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
    points, centre, matrix = _numbers(x, "x"), _numbers(mean, "mean"), _numbers(cov, "cov")
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
    distance: FloatArray = (whitened**2).sum(axis=0)
    if not squared:
        distance = np.sqrt(distance)
    return float(distance[0]) if points.ndim == 1 else distance


def entropy(x: Data, *, base: float = math.e, correction: BiasCorrection = "none") -> float:
    """Estimate the entropy of one discrete column, or of the rows of several.

    Parameters
    ----------
    x : data
        Strings, booleans or whole numbers; several columns count as one variable.
    base : float
        Base of the logarithm: e gives nats, 2 gives bits.
    correction : {"none", "miller-madow"}
        Bias correction; Miller-Madow adds (observed states - 1) / (2 rows).

    Returns
    -------
    float
        The entropy.

    Raises
    ------
    InvalidArgument
        If a column is continuous, has a missing value or no rows.

    Examples
    --------
    >>> entropy(["a", "b", "a", "b"], base=2)
    1.0
    """
    return joint_entropy(x, base=base, correction=correction)


def joint_entropy(*columns: Data, base: float = math.e, correction: BiasCorrection = "none") -> float:
    """Estimate the entropy of several discrete columns taken together; options as in `entropy`.

    Examples
    --------
    >>> joint_entropy(["a", "a", "b", "b"], [0, 1, 0, 1], base=2)
    2.0
    """
    if not columns:
        raise InvalidArgument("joint_entropy needs at least one column")
    joint = reduce(_paired, _aligned_codes(*((c, f"x{i}") for i, c in enumerate(columns))))
    counts = np.bincount(joint)
    bias = (len(counts) - 1) / (2 * len(joint)) if _corrects(correction) else 0.0
    # 0.0 + turns the -0.0 of a constant column into 0.0
    return 0.0 + (float(np.log(len(joint) / counts) @ counts) / len(joint) + bias) / _log_base(base)


def conditional_entropy(
    x: Data, given: Data, *, base: float = math.e, correction: BiasCorrection = "none"
) -> float:
    """Estimate the entropy ``H(x | given) = H(x, given) - H(given)``; options as in `entropy`.

    Examples
    --------
    >>> conditional_entropy([0, 1, 0, 1], given=["a", "a", "b", "b"], base=2)
    1.0
    """
    joint = joint_entropy(x, given, base=base, correction=correction)
    difference = joint - joint_entropy(given, base=base, correction=correction)
    return difference if _corrects(correction) else max(difference, 0.0)


def mutual_information(
    x: Data, y: Data, *, base: float = math.e, correction: BiasCorrection = "none"
) -> float:
    """Estimate the mutual information of two discrete columns (or groups of them); options as in `entropy`.

    Raises
    ------
    InvalidArgument
        If a column is continuous (discretise it, or use `hsic`), has a missing value, or lengths differ.

    Examples
    --------
    >>> mutual_information(["no", "no", "yes", "yes"], [0, 0, 1, 1], base=2)
    1.0
    """
    x_codes, y_codes = _aligned_codes((x, "x"), (y, "y"))
    return _information(x_codes, y_codes, np.zeros_like(x_codes), base, correction)


def conditional_mutual_information(
    x: Data, y: Data, given: Data, *, base: float = math.e, correction: BiasCorrection = "none"
) -> float:
    """Estimate ``I(x; y | given)`` of discrete columns; `given` may be several, options as in `entropy`.

    Raises
    ------
    InvalidArgument
        If a column is continuous (discretise it first), has a missing value, or lengths differ.

    Examples
    --------
    Two coins are independent until their exclusive or is known:

    >>> x, y, xor = [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]
    >>> mutual_information(x, y, base=2), conditional_mutual_information(x, y, xor, base=2)
    (0.0, 1.0)
    """
    x_codes, y_codes, z_codes = _aligned_codes((x, "x"), (y, "y"), (given, "z"))
    return _information(x_codes, y_codes, z_codes, base, correction)


def kl_divergence(p: ArrayLike, q: ArrayLike, *, base: float = math.e) -> float:
    """Compute the Kullback-Leibler divergence ``sum p log(p / q)``, infinite where q = 0 < p.

    Parameters
    ----------
    p, q : array-like
        Two probability tables of one shape.
    base : float
        Base of the logarithm.

    Returns
    -------
    float
        Zero exactly when the tables are equal, positive otherwise.

    Raises
    ------
    InvalidArgument
        If the shapes differ, an entry is negative or not finite, or a table does not sum to one.

    Examples
    --------
    >>> kl_divergence([1.0, 0.0], [0.5, 0.5], base=2)
    1.0
    """
    first, second = _probabilities(p, "p"), _probabilities(q, "q")
    if first.shape != second.shape:
        raise InvalidArgument(
            f"p has shape {first.shape} and q has shape {second.shape}; they must be the same"
        )
    support = first > 0
    with np.errstate(divide="ignore"):
        terms = first[support] * np.log(first[support] / second[support])
    return max(float(terms.sum()), 0.0) / _log_base(base)


def mutual_information_of_table(table: ArrayLike, *, base: float = math.e) -> float:
    """Compute the mutual information of a two-way joint probability table, one axis a variable.

    Raises
    ------
    InvalidArgument
        If the table is not two-dimensional, has a negative entry, or does not sum to one.

    Examples
    --------
    >>> round(mutual_information_of_table([[0.64, 0.16], [0.04, 0.16]]), 6)
    0.126467
    """
    joint = _probabilities(table, "the table")
    if joint.ndim != 2:
        raise InvalidArgument(
            f"the table has {joint.ndim} axes; mutual information needs a joint table of two"
        )
    joint = joint / joint.sum()
    return kl_divergence(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0)), base=base)


def read_columns(data: Data, prefix: str) -> tuple[tuple[str, ...], list[NDArray[Any]]]:
    """Split any two-dimensional data (or one column) into names and columns without missing values."""
    named: Any = data
    if isinstance(data, Mapping):
        labels: list[object] = list(data)
        raw = [data[label] for label in data]
    elif hasattr(data, "columns"):
        labels = list(named.columns)
        raw = [named[label] for label in labels] if len(set(labels)) == len(labels) else []
    else:
        array = _as_array(data, prefix)
        if array.ndim == 1:
            labels, raw = [getattr(data, "name", None) or prefix], [array]
        elif array.ndim == 2:
            labels, raw = [f"{prefix}{i}" for i in range(array.shape[1])], list(array.T)
        else:
            raise InvalidArgument(f"data must have one or two dimensions, not {array.ndim}")
    names = tuple(str(label) for label in labels)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"two columns are named {twice!r}; rename one of them")
    columns = [_as_array(column, name) for name, column in zip(names, raw, strict=True)]
    if not columns:
        raise InvalidArgument("the data have no columns")
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1:
            raise InvalidArgument(
                f"column {name!r} has {column.ndim} dimensions; a column is a list of values"
            )
        if not len(column):
            raise InvalidArgument(f"column {name!r} has no rows")
        _same_length(len(columns[0]), len(column), names[0], name)
        _refuse_missing(name, column)
    return names, columns


def numeric_matrix(data: Data, prefix: str) -> tuple[tuple[str, ...], FloatArray]:
    """Read data whose columns are all numbers, as names and one float matrix with a column each."""
    names, columns = read_columns(data, prefix)
    for name, column in zip(names, columns, strict=True):
        if not is_numeric(column):
            raise InvalidArgument(
                f"column {name!r} does not hold numbers; encode it, or use mutual_information"
            )
    return names, np.column_stack([column.astype(np.float64) for column in columns])


def is_numeric(column: NDArray[Any]) -> bool:
    """Tell whether a column holds real numbers or booleans (also as Python objects)."""
    if column.dtype.kind == "O":
        return all(isinstance(value, int | float | np.number | np.bool_) for value in column)
    return column.dtype.kind in "biuf"


def discrete_codes(data: Data, prefix: str) -> Codes:
    """Replace each row of discrete data by the number of its distinct value; several columns count as one."""
    names, columns = read_columns(data, prefix)
    return reduce(_paired, (_column_codes(n, c) for n, c in zip(names, columns, strict=True)))


def _column_codes(name: str, column: NDArray[Any]) -> Codes:
    kind = column.dtype.kind
    reals = [v for v in column if isinstance(v, float | np.floating)] if kind == "O" else column
    if kind == "c" or (kind in "fO" and any(np.asarray(reals, dtype=np.float64) % 1 != 0)):
        raise InvalidArgument(
            f"column {name!r} is continuous; discretise it (numpy.digitize, pandas.qcut) or use hsic"
        )
    if kind != "O":
        return np.unique(column, return_inverse=True)[1].reshape(-1)
    # Objects of several types have no common order, so np.unique cannot sort them.
    numbers: dict[Hashable, int] = {}
    try:
        return np.array([numbers.setdefault(value, len(numbers)) for value in column], dtype=np.intp)
    except TypeError:
        raise InvalidArgument(f"column {name!r} holds values that cannot be states (not hashable)") from None


def _paired(a: Codes, b: Codes) -> Codes:
    # Renumbering after each pair keeps codes below the number of rows, so the product cannot overflow.
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1].reshape(-1)


def _aligned_codes(*named: tuple[Data, str]) -> list[Codes]:
    codes = [discrete_codes(data, name) for data, name in named]
    for code, (_, name) in zip(codes, named, strict=True):
        _same_length(len(codes[0]), len(code), named[0][1], name)
    return codes


def _information(x: Codes, y: Codes, z: Codes, base: float, correction: BiasCorrection) -> float:
    xz, yz = _paired(x, z), _paired(y, z)
    xyz = _paired(xz, y)
    n_xyz, n_xz, n_yz, n_z = (np.bincount(codes) for codes in (xyz, xz, yz, z))
    # Integer products make the ratio exactly one where the counts factorise.
    ratio = (n_xyz[xyz] * n_z[z]) / (n_xz[xz] * n_yz[yz])
    value = max(float(np.log(ratio).mean()), 0.0)
    if _corrects(correction):
        value += (len(n_xz) + len(n_yz) - len(n_xyz) - len(n_z)) / (2 * len(x))
    return value / _log_base(base)


def _corrects(correction: BiasCorrection) -> bool:
    if correction not in ("none", "miller-madow"):
        raise InvalidArgument(f"correction must be 'none' or 'miller-madow', not {correction!r}")
    return correction == "miller-madow"


def _log_base(base: float) -> float:
    if not (base > 1 and math.isfinite(base)):
        raise InvalidArgument(f"the base of the logarithm must be a number above 1, not {base!r}")
    return math.log(base)


def _probabilities(table: ArrayLike, name: str) -> FloatArray:
    array = _numbers(table, name)
    if (array < 0).any():
        raise InvalidArgument(f"{name} has a negative entry; probabilities are between 0 and 1")
    if abs(array.sum() - 1) > _SUM_TOLERANCE:
        raise InvalidArgument(f"{name} sums to {array.sum():.6g}, not 1; divide it by its sum")
    return array


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name} is not an array of numbers") from None
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{name} has a missing or infinite number")
    return array


def _side_by_side(x: Data, y: ArrayLike) -> tuple[tuple[str, ...], FloatArray]:
    vectors = [numeric_matrix(x, "x"), numeric_matrix(y, "y")]
    for label, (names, matrix) in zip(("x", "y"), vectors, strict=True):
        if len(names) != 1:
            raise InvalidArgument(f"{label} has {matrix.shape[1]} columns; two single vectors are compared")
    (x_names, first), (y_names, second) = vectors
    _same_length(len(first), len(second), "x", "y")
    return x_names + y_names, np.column_stack([first, second])


def _standardised(names: Sequence[str], matrix: FloatArray) -> FloatArray:
    _need_rows(len(matrix), 2, "a correlation")
    scale = np.abs(matrix).max(axis=0)
    # Scaling first keeps sums of huge values finite; correlations do not depend on it.
    centred: FloatArray = matrix / np.where(scale > 0, scale, 1.0)
    centred -= centred.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    for name, norm in zip(names, norms, strict=True):
        if norm <= 8 * np.finfo(np.float64).eps * math.sqrt(len(matrix)):
            raise InvalidArgument(f"column {name!r} is constant, so it has no correlation; leave it out")
    centred /= norms
    return centred


def _singular_values(names: Sequence[str], unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    _, singular, directions = np.linalg.svd(unit, full_matrices=False)
    if singular[-1] < _COLLINEAR * singular[0]:
        involved = [name for name, v in zip(names, directions[-1], strict=True) if abs(v) > 1e-6]
        raise InvalidArgument(
            f"columns {', '.join(map(repr, involved))} are linearly dependent; leave one of them out"
        )
    return singular, directions


def _negated_and_scaled(precision: FloatArray) -> FloatArray:
    root = np.sqrt(np.diag(precision))
    values: FloatArray = np.clip(-precision / np.outer(root, root), -1.0, 1.0)
    np.fill_diagonal(values, 1.0)
    return values


def _residual_correlation(unit: FloatArray, i: int, j: int) -> float:
    design = np.column_stack([np.ones(len(unit)), np.delete(unit, [i, j], axis=1)])
    pair = unit[:, [i, j]]
    residuals = pair - design @ np.linalg.lstsq(design, pair, rcond=None)[0]
    residuals /= np.linalg.norm(residuals, axis=0)
    return float(np.clip(residuals[:, 0] @ residuals[:, 1], -1.0, 1.0))


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InvalidArgument(f"column {name!r} has masked values; drop or fill those rows first")
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidArgument(
            f"column {name!r} has rows of different lengths; give one value a row"
        ) from None


def _refuse_missing(name: str, column: NDArray[Any]) -> None:
    if column.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in column])
    elif column.dtype.kind in "fcmM":
        missing = ~np.isfinite(column)
    else:
        return
    if missing.any():
        row = int(missing.argmax())
        raise InvalidArgument(
            f"column {name!r} has a missing or infinite value at row {row}; drop or fill such rows first"
        )


def _is_missing(value: object) -> bool:
    if isinstance(value, float | np.floating):
        return not math.isfinite(value)
    same: object = value == value  # false for NaT, neither true nor false for pandas.NA
    return value is None or not isinstance(same, bool | np.bool_) or not same


def _same_length(expected: int, found: int, first: str, second: str) -> None:
    if expected != found:
        raise InvalidArgument(
            f"{first!r} has {expected} rows and {second!r} has {found}; they must be the same"
        )


def _need_rows(n_rows: int, needed: int, what: str) -> None:
    if n_rows < needed:
        raise InvalidArgument(f"{what} needs at least {needed} rows; the data have {n_rows}")
