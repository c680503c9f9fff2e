"""Kernel measures of dependence and difference, and permutation tests.

The maximum mean discrepancy (MMD) is the distance between the mean embeddings of two distributions in the
feature space of a kernel; the Hilbert-Schmidt independence criterion (HSIC) is the squared MMD between a
joint distribution and the product of its marginals under the product kernel. With a characteristic kernel
("rbf" on numbers, "discrete" on states) MMD is zero exactly when the distributions are equal, and HSIC
exactly when the variables are independent; "linear" sees only means, or covariances.

Permutation tests assume only that the rows are independent draws: the p-value is (1 + number of permutations
whose statistic is at least the observed one) / (1 + number of permutations), and a test at level alpha
rejects true independence with a probability of at most alpha.

Cost: ``O(n**2)`` memory (two matrices of 8 n**2 bytes, more while they are built) and ``O(n**2)`` time a
permutation. Use these for continuous data of up to some thousands of rows; `mutual_information` is far
cheaper on discrete data.

References: Gretton, Bousquet, Smola, Schölkopf (2005), Measuring statistical dependence with Hilbert-Schmidt
norms; Gretton, Borgwardt, Rasch, Schölkopf, Smola (2012), A kernel two-sample test; Song, Smola, Gretton,
Bedo, Borgwardt (2012), Feature selection via dependence maximization (unbiased HSIC).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.tables.plain_columns import Data, discrete_codes, is_numeric, numeric_matrix, read_columns
from markovia.errors import InvalidArgument, did_you_mean
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

Kernel: TypeAlias = Literal["rbf", "linear", "discrete"] | Callable[[Array, Array], ArrayLike]
Bandwidth: TypeAlias = Literal["median"] | float
Estimator: TypeAlias = Literal["biased", "unbiased"]

MAX_POINTS = 20_000
_QUANTILES = (0.5, 0.9, 0.95, 0.99)
_TIE = 1e-12  # relative rounding below which two statistics count as equal


@dataclass(frozen=True)
class PermutationTest(InNotebooks):
    """The outcome of a permutation test.

    Attributes
    ----------
    name : str
        What was tested.
    statistic : float
        The statistic of the data as observed.
    p_value : float
        Share of permutations (the identity counts as one) that reach the statistic.
    null_quantiles : mapping of float to float
        Quantiles 0.5, 0.9, 0.95 and 0.99 of the statistic under permutation.
    n_permutations : int
        Number of random permutations.
    n_points : int
        Number of rows that were permuted.
    """

    name: str
    statistic: float
    p_value: float
    null_quantiles: Mapping[float, float]
    n_permutations: int
    n_points: int

    def __str__(self) -> str:
        return (
            f"{self.name} = {self.statistic:.6g}, p = {self.p_value:.4g} "
            f"({self.n_permutations} permutations of {self.n_points} rows; "
            f"95% of them below {self.null_quantiles[0.95]:.6g})"
        )


def hsic(
    x: Data,
    y: Data,
    *,
    kernel: Kernel | tuple[Kernel, Kernel] = "rbf",
    bandwidth: Bandwidth | tuple[Bandwidth, Bandwidth] = "median",
    estimator: Estimator = "biased",
) -> float:
    """Estimate the Hilbert-Schmidt independence criterion of two variables.

    Parameters
    ----------
    x, y : data
        Two variables with a row an observation; each may have several columns.
    kernel : {"rbf", "linear", "discrete"}, callable, or a pair of them
        "discrete" is 1 for equal states and 0 otherwise; a callable takes two arrays of points, (n, d) and
        (m, d), and returns the n by m kernel matrix. A pair gives x and y a kernel each.
    bandwidth : "median", float, or a pair of them
        The length ``s`` in the rbf kernel ``exp(-d**2 / (2 s**2))``; "median" is the median distance between
        distinct points.
    estimator : {"biased", "unbiased"}
        "biased" is the squared MMD of the empirical distributions, never negative; "unbiased" has expectation
        HSIC and may be negative.

    Returns
    -------
    float
        The estimate; zero in expectation (unbiased) or in the limit (biased) for independent variables.

    Raises
    ------
    InvalidArgument
        If lengths differ, there are too few or more than 20,000 rows, or a kernel does not fit its data.

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> round(hsic(x, x**2), 4), round(hsic(x, x**2, kernel="linear"), 4)
    (0.0316, 0.0)
    """
    first, second, scale = _dependence(x, y, kernel, bandwidth, estimator)
    value = float(np.vdot(first, second)) * scale
    return value if _is_unbiased(estimator) else max(value, 0.0)


def hsic_test(
    x: Data,
    y: Data,
    *,
    kernel: Kernel | tuple[Kernel, Kernel] = "rbf",
    bandwidth: Bandwidth | tuple[Bandwidth, Bandwidth] = "median",
    estimator: Estimator = "biased",
    n_permutations: int = 500,
    seed: Seed = 0,
) -> PermutationTest:
    """Test independence by HSIC and random permutations of one variable; data and kernels as in `hsic`.

    Parameters
    ----------
    x, y, kernel, bandwidth, estimator
        As in `hsic`.
    n_permutations : int
        More of them give a finer p-value; the smallest possible is 1 / (1 + n_permutations).
    seed : int, numpy.random.Generator, numpy.random.SeedSequence or None
        Seed of the permutations; None draws a fresh one.

    Returns
    -------
    PermutationTest
        Statistic, p-value and null quantiles.

    Raises
    ------
    InvalidArgument
        As `hsic`, and if n_permutations is not a positive whole number.

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> hsic_test(x, x**2, n_permutations=200).p_value < 0.01
    True
    """
    check_permutations(n_permutations)
    first, second, scale = _dependence(x, y, kernel, bandwidth, estimator)
    rng = generator(seed)
    null = np.empty(n_permutations)
    for i in range(n_permutations):
        order = rng.permutation(len(second))
        null[i] = np.vdot(first, second.take(order, axis=0).take(order, axis=1))
    observed = float(np.vdot(first, second)) * scale
    return _outcome("HSIC", observed, null * scale, len(second))


def mmd(
    x: Data,
    y: Data,
    *,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    estimator: Estimator = "biased",
    squared: bool = False,
) -> float:
    """Estimate the maximum mean discrepancy between two samples.

    Parameters
    ----------
    x, y : data
        Two samples with the same columns; they may differ in size.
    kernel, bandwidth
        As in `hsic`; the median distance is that of the two samples pooled.
    estimator : {"biased", "unbiased"}
        "unbiased" leaves out each point's kernel with itself; its expectation is the squared MMD and it may
        be negative, so it is available only with ``squared=True``.
    squared : bool
        Return the squared discrepancy.

    Returns
    -------
    float
        The estimate.

    Raises
    ------
    InvalidArgument
        If the samples differ in columns, are too small or too large, or a kernel does not fit its data.

    Examples
    --------
    >>> mmd([0.0, 1.0], [3.0, 4.0], kernel="linear")
    3.0
    """
    if estimator == "unbiased" and not squared:
        raise InvalidArgument("the unbiased estimate may be negative and has no root; ask for squared=True")
    gram, n_x = _pooled_gram(x, y, kernel, bandwidth)
    first = np.zeros((1, len(gram)))
    first[0, :n_x] = 1.0
    value = float(_squared_discrepancies(gram, first, estimator)[0])
    return value if squared else math.sqrt(max(value, 0.0))


def mmd_test(
    x: Data,
    y: Data,
    *,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    estimator: Estimator = "biased",
    n_permutations: int = 500,
    seed: Seed = 0,
) -> PermutationTest:
    """Test whether two samples come from one distribution, by squared MMD and random relabelling.

    Parameters
    ----------
    x, y, kernel, bandwidth, estimator
        As in `mmd`.
    n_permutations, seed
        As in `hsic_test`.

    Returns
    -------
    PermutationTest
        Squared MMD, p-value and null quantiles.

    Raises
    ------
    InvalidArgument
        As `mmd`, and if n_permutations is not a positive whole number.

    Examples
    --------
    >>> mmd_test(np.linspace(0.0, 1.0, 40), np.linspace(0.5, 1.5, 40)).p_value < 0.01
    True
    """
    check_permutations(n_permutations)
    gram, n_x = _pooled_gram(x, y, kernel, bandwidth)
    rng = generator(seed)
    first = np.zeros((1 + n_permutations, len(gram)))
    first[0, :n_x] = 1.0
    for row in first[1:]:
        row[rng.permutation(len(gram))[:n_x]] = 1.0
    values = _squared_discrepancies(gram, first, estimator)
    return _outcome("squared MMD", float(values[0]), values[1:], len(gram))


def permutation_test(
    statistic: Callable[[Any, NDArray[Any]], float],
    x: ArrayLike,
    y: ArrayLike,
    *,
    n_permutations: int = 500,
    seed: Seed = 0,
) -> PermutationTest:
    """Test independence with any statistic that grows with dependence, by permuting the rows of one variable.

    Parameters
    ----------
    statistic : callable
        Takes x and y and returns a number, such as `mutual_information`; for a signed measure pass its size,
        as in ``lambda x, y: abs(pearson(x, y))``.
    x, y : array-like
        Two variables with the same number of rows.
    n_permutations, seed
        As in `hsic_test`.

    Returns
    -------
    PermutationTest
        Statistic, p-value and null quantiles.

    Raises
    ------
    InvalidArgument
        If lengths differ or the statistic is not a finite number.

    Examples
    --------
    >>> from markovia.learning import mutual_information
    >>> x = ["a", "b", "c"] * 20
    >>> permutation_test(mutual_information, x, x, n_permutations=100).p_value < 0.01
    True
    """
    check_permutations(n_permutations)
    fixed, moved = np.asarray(x), np.asarray(y)
    if not fixed.ndim or not moved.ndim or len(fixed) != len(moved):
        raise InvalidArgument("x and y must be columns with the same number of rows")
    rng = generator(seed)
    orders = (rng.permutation(len(moved)) for _ in range(n_permutations))
    observed = float(statistic(fixed, moved))
    null = np.array([float(statistic(fixed, moved[order])) for order in orders])
    if not (math.isfinite(observed) and np.isfinite(null).all()):
        raise InvalidArgument("the statistic must return a finite number for every permutation")
    name = getattr(statistic, "__name__", "statistic")
    return _outcome("statistic" if name == "<lambda>" else name, observed, null, len(moved))


def _dependence(
    x: Data,
    y: Data,
    kernel: Kernel | tuple[Kernel, Kernel],
    bandwidth: Bandwidth | tuple[Bandwidth, Bandwidth],
    estimator: Estimator,
) -> tuple[Array, Array, float]:
    """Return a centred matrix for x, a kernel matrix for y, and the scale that makes their product HSIC.

    Centring one side is enough, and permuting the other then commutes with it.
    """
    kernels, bandwidths = _one_each(kernel), _one_each(bandwidth)
    _check_bandwidth_used(kernels, bandwidths)
    first = _gram(x, "x", kernels[0], bandwidths[0])
    second = _gram(y, "y", kernels[1], bandwidths[1])
    n = len(first)
    if n != len(second):
        raise InvalidArgument(f"x has {n} rows and y has {len(second)}; they must be the same")
    needed = 4 if _is_unbiased(estimator) else 2
    if n < needed:
        raise InvalidArgument(f"the {estimator} HSIC needs at least {needed} rows; the data have {n}")
    if not _is_unbiased(estimator):
        first -= first.mean(axis=0)
        first -= first.mean(axis=1, keepdims=True)
        return first, second, 1.0 / n**2
    np.fill_diagonal(first, 0.0)
    np.fill_diagonal(second, 0.0)
    rows = first.sum(axis=1) / (n - 2)
    first -= rows[:, None] + rows[None, :]
    first += rows.sum() / (n - 1)
    np.fill_diagonal(first, 0.0)
    return first, second, 1.0 / (n * (n - 3))


def _pooled_gram(x: Data, y: Data, kernel: Kernel, bandwidth: Bandwidth) -> tuple[Array, int]:
    _check_bandwidth_used((kernel,), (bandwidth,))
    # One prefix for both, so that unnamed columns match and named ones must.
    x_names, x_columns = read_columns(x, "x")
    y_names, y_columns = read_columns(y, "x")
    if len(x_names) != len(y_names):
        raise InvalidArgument(f"x has {len(x_names)} columns and y has {len(y_names)}; samples need the same")
    if len(x_names) > 1:
        if set(x_names) != set(y_names):
            odd = next(name for name in y_names if name not in x_names)
            raise InvalidArgument(f"y has a column {odd!r} that x does not have{did_you_mean(odd, x_names)}")
        y_columns = [y_columns[y_names.index(name)] for name in x_names]
    if min(len(x_columns[0]), len(y_columns[0])) < 2:
        raise InvalidArgument("each sample needs at least 2 rows")
    pooled = {
        # As objects where kinds differ, so that the number 1 does not become the string "1".
        name: np.concatenate(
            [a, b] if is_numeric(a) == is_numeric(b) else [a.astype(object), b.astype(object)]
        )
        for name, a, b in zip(x_names, x_columns, y_columns, strict=True)
    }
    return _gram(pooled, "x", kernel, bandwidth), len(x_columns[0])


def _squared_discrepancies(gram: Array, first: Array, estimator: Estimator) -> Array:
    """Compute the squared MMD for each row of 0/1 memberships in the first sample."""
    n_x = first[0].sum()
    n_y = first.shape[1] - n_x
    spare = 0
    if _is_unbiased(estimator):
        np.fill_diagonal(gram, 0.0)
        spare = 1
    within_x = ((first @ gram) * first).sum(axis=1)
    across = first @ gram.sum(axis=1) - within_x
    within_y = gram.sum() - within_x - 2 * across
    result: Array = (
        within_x / (n_x * (n_x - spare)) + within_y / (n_y * (n_y - spare)) - 2 * across / (n_x * n_y)
    )
    return result


def _gram(data: Data, label: str, kernel: Kernel, bandwidth: Bandwidth) -> Array:
    if kernel == "discrete":
        codes = discrete_codes(data, label)
        _check_size(len(codes))
        same: Array = (codes[:, None] == codes[None, :]).astype(np.float64)
        return same
    points = numeric_matrix(data, label)[1]
    _check_size(len(points))
    if callable(kernel):
        matrix = np.array(kernel(points, points), dtype=np.float64)
        if matrix.shape != (len(points), len(points)) or not np.isfinite(matrix).all():
            raise InvalidArgument(
                f"the kernel must return {len(points)} by {len(points)} finite numbers here; "
                f"it returned shape {matrix.shape}"
            )
        if not np.allclose(matrix, matrix.T):
            raise InvalidArgument("the kernel is not symmetric: k(a, b) must equal k(b, a)")
        return matrix
    if kernel == "linear":
        # HSIC and MMD with this kernel do not change under a shift, and rounding is least around zero.
        points = points - points.mean(axis=0)
        linear: Array = points @ points.T
        return linear
    if kernel == "rbf":
        return _rbf(points, bandwidth)
    raise InvalidArgument(f"kernel must be 'rbf', 'linear', 'discrete' or a function, not {kernel!r}")


def _rbf(points: Array, bandwidth: Bandwidth) -> Array:
    from scipy.spatial.distance import pdist, squareform

    distances = pdist(points)
    if bandwidth == "median":
        distinct = distances[distances > 0]
        # Without two distinct points every bandwidth gives the same matrix of ones.
        length = float(np.median(distinct)) if distinct.size else 1.0
    elif isinstance(bandwidth, int | float) and 0 < bandwidth < math.inf:
        length = float(bandwidth)
    else:
        raise InvalidArgument(f"bandwidth must be 'median' or a positive number, not {bandwidth!r}")
    similar = np.exp(-0.5 * (distances / length) ** 2)
    matrix: Array = squareform(similar)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _outcome(name: str, observed: float, null: Array, n_points: int) -> PermutationTest:
    reached = int(np.count_nonzero(null >= observed - _TIE * abs(observed)))
    quantiles = dict(zip(_QUANTILES, map(float, np.quantile(null, _QUANTILES)), strict=True))
    return PermutationTest(name, observed, (1 + reached) / (1 + len(null)), quantiles, len(null), n_points)


def _one_each(setting: Any) -> tuple[Any, Any]:
    if not isinstance(setting, tuple):
        return setting, setting
    if len(setting) != 2:
        raise InvalidArgument(f"give one setting, or a pair for x and y; this has {len(setting)}")
    return setting


def _check_bandwidth_used(kernels: tuple[Kernel, ...], bandwidths: tuple[Bandwidth, ...]) -> None:
    if "rbf" not in kernels and any(bandwidth != "median" for bandwidth in bandwidths):
        raise InvalidArgument("bandwidth= belongs to the rbf kernel; leave it out, or choose kernel='rbf'")


def _is_unbiased(estimator: Estimator) -> bool:
    check_choice("estimator", estimator, ("biased", "unbiased"))
    return estimator == "unbiased"


def check_permutations(n_permutations: int) -> None:
    """Refuse a number of permutations that is not a positive whole number."""
    check_count("n_permutations", n_permutations, 1)


def _check_size(n_points: int) -> None:
    if n_points > MAX_POINTS:
        gigabytes = 8e-9 * n_points**2
        raise InvalidArgument(
            f"a kernel matrix of {n_points:,} points takes {gigabytes:.1f} GB; draw a random subsample of at "
            f"most {MAX_POINTS:,} rows first"
        )
