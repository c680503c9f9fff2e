"""Kernel tests: any dependence between continuous (or mixed) variables, not only linear.

- `HSICTest`: the Hilbert-Schmidt independence criterion, tr(Kx H Ky H), with a gamma null (Gretton, Fukumizu, Teo,
  Song, Schoelkopf and Smola, *A kernel statistical test of independence*, NIPS 2007). Given a set, x and y are first
  replaced by their residuals from Gaussian process regressions on the set (Flaxman, Neill and Smola, *Gaussian
  processes for independence tests with non-iid data in causal inference*, ACM TIST 2016): right where the set acts on
  them by additive effects.
- `KCI`: the kernel conditional independence test of Zhang, Peters, Janzing and Schoelkopf (UAI 2011), for any effect of
  the set: the kernel matrices of (x, set) and y are cleared of the set by kernel ridge regression. Without a set it is
  the HSIC of that paper.

The null distribution of both is a weighted sum of chi-square variables; "gamma" fits a gamma distribution to its mean and
variance, "spectral" draws from it with the estimated weights. Kernels are Gaussian on standardised columns; the widths
of KCI are those of the authors' code (by the number of rows), those of HSIC the median distance. Discrete columns enter
by indicators.

Cost: cubic in the rows for conditional tests, quadratic otherwise, for each test. Use them with some hundred to a few
thousand rows; `n_jobs=` shares the tests out.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.data.tables.unit_scaling import check_spread, unit_scaled
from markovia.errors import InvalidArgument, TooLarge
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.structure.ci_tests.ci_tests import CITest, Measured, Query, one_blas_thread
from markovia.structure.ci_tests.gamma_hsic import log_gamma_tail

MOST_ROWS = 20_000
FEW_ROWS = 500
"""Below this linear algebra gains nothing by threads."""
RIDGE = 1e-3
"""What is added to the diagonal in KCI's regressions, as in the authors' code."""
KEPT = 2
"""Given sets whose regressions are remembered."""
SMALL = 1e-5
"""Weights of the null distribution below this share of the largest are left out."""


@dataclass(frozen=True)
class _KernelSpec:
    alpha: float = 0.05
    null: str = "gamma"
    draws: int = 5000
    seed: int = 0


@dataclass(frozen=True)
class HSICTest(_KernelSpec):
    """The Hilbert-Schmidt independence criterion; given a set, of residuals.

    Parameters
    ----------
    alpha
        Independence is accepted where the p-value is larger.
    null
        "gamma" or "spectral".
    draws, seed
        For the spectral null.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> a = np.random.default_rng(0).normal(size=200)
    >>> mk.independence_test({"a": a, "b": a**2}, "a", "b", test="hsic").independent
    False
    """

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        return BoundHSIC(data, self.alpha, self.null, self.draws, self.seed)


@dataclass(frozen=True)
class KCI(_KernelSpec):
    """The kernel conditional independence test; parameters as in `HSICTest`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> rng = np.random.default_rng(1)
    >>> z = rng.normal(size=200)
    >>> rows = {"x": np.sin(z) + 0.3 * rng.normal(size=200), "y": z**2 + 0.3 * rng.normal(size=200), "z": z}
    >>> mk.independence_test(rows, "x", "y", given="z", test="kci").independent
    True
    """

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        return BoundKCI(data, self.alpha, self.null, self.draws, self.seed)


class _KernelTest(CITest):
    costly = True

    def __init__(self, data: MixedTable, alpha: float, null: str, draws: int, seed: int) -> None:
        super().__init__(data.names, alpha)
        check_choice("null", null, ("gamma", "spectral"))
        check_count("draws", draws, 1)
        if data.table is not None:
            data = MixedTable(data.names, data.kinds, data.codes(), data.matrix, data.weights)
        if data.weights is not None or (data.table is not None and data.codes().weights is not None):
            raise InvalidArgument(f"{self.name} takes no weights of rows; repeat the rows instead")
        if data.n_rows > MOST_ROWS:
            raise TooLarge(
                f"{self.name} holds matrices of rows by rows, and there are {data.n_rows:,} rows; take {MOST_ROWS:,} at most"
            )
        if data.n_rows < 6:
            raise InvalidArgument(f"{self.name} needs six rows at least, and there are {data.n_rows}")
        self.null, self.draws, self.seed = null, draws, seed
        self.columns = [_standardised(data, k) for k in range(len(data.names))]
        self.rows = data.n_rows
        self._kept: dict[tuple[int, ...], Any] = {}

    def _compute(self, queries: Sequence[Query]) -> Array:
        return self._measure(queries).p_value

    def _measure(self, queries: Sequence[Query]) -> Measured:
        with one_blas_thread() if self.rows < FEW_ROWS else nullcontext():
            found = [self._one(*q) for q in queries]
        p, statistic = np.array([f[0] for f in found]), np.array([f[1] for f in found])
        return Measured(p, statistic, np.full(len(queries), np.nan))

    def _one(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float]:
        raise NotImplementedError

    def _stacked(self, given: tuple[int, ...]) -> Array:
        return np.concatenate([self.columns[z] for z in given], axis=1)

    def _keep(self, key: tuple[int, ...], value: Any) -> None:
        if len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = value

    def _plain(self, x: Array, y: Array, theta_x: float, theta_y: float, query: Query) -> tuple[float, float]:
        """Return the p-value and statistic of HSIC without a set; kernels are exp(-theta |d|^2 / 2)."""
        first, second = _centred(_gaussian(x, theta_x)), _centred(_gaussian(y, theta_y))
        n = len(x)
        statistic = float((first * second).sum())
        if self.null == "gamma":
            mean = np.trace(first) * np.trace(second) / n
            variance = 2.0 * (first**2).sum() * (second**2).sum() / n**2
            return exp(log_gamma_tail(statistic, float(mean), float(variance))), statistic
        weights = np.outer(_spectrum(first), _spectrum(second)).ravel() / n
        return self._spectral_p(statistic, weights, query), statistic

    def _spectral_p(self, statistic: float, weights: Array, query: Query) -> float:
        weights = weights[weights > SMALL * weights.max(initial=0.0)]
        rng = np.random.default_rng([self.seed, query[0], query[1], *query[2]])
        drawn = np.zeros(self.draws)
        for some in np.array_split(weights, max(1, len(weights) * self.draws // 2**22)):
            drawn += some @ rng.chisquare(1, (len(some), self.draws))
        return float((1 + (drawn >= statistic).sum()) / (1 + self.draws))


class BoundHSIC(_KernelTest):
    """HSIC bound to data."""

    name = "hsic"

    def _one(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float]:
        first, second = self.columns[x], self.columns[y]
        if given:
            first, second = self._residuals(first, given), self._residuals(second, given)
        return self._plain(first, second, _median_theta(first), _median_theta(second), (x, y, given))

    def _residuals(self, column: Array, given: tuple[int, ...]) -> Array:
        """Return what a Gaussian process on the set leaves of a column, its scale and noise of the largest likelihood."""
        n = self.rows
        if given not in self._kept:
            self._keep(given, [np.linalg.eigh(k) for k in _scaled_kernels(self._stacked(given))])
        best, kept = -np.inf, column
        for values, vectors in self._kept[given]:
            values = np.maximum(values, 0.0)
            turned = vectors.T @ column
            for noise in (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0):
                spread = values + noise
                fit = (turned**2 / spread[:, None]).sum() / (n * column.shape[1])
                likelihood = -0.5 * column.shape[1] * (n * np.log(fit) + np.log(spread).sum())
                if likelihood > best:
                    best = float(likelihood)
                    kept = vectors @ (turned * (noise / spread)[:, None])
        scale_left = kept.std(axis=0)
        return np.asarray((kept - kept.mean(axis=0)) / np.where(scale_left > 0, scale_left, 1.0))


class BoundKCI(_KernelTest):
    """KCI bound to data."""

    name = "kci"

    def _one(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float]:
        n, first, second = self.rows, self.columns[x], self.columns[y]
        if not given:
            theta = 1.0 / _by_rows(n, (0.8, 0.5, 0.3)) ** 2
            return self._plain(first, second, theta * first.shape[1], theta * second.shape[1], (x, y, given))
        z = self._stacked(given)
        theta = 1.0 / _by_rows(n, (1.2, 0.7, 0.4)) ** 2 / z.shape[1]
        if given not in self._kept:
            inner = _centred(_gaussian(z, theta))
            inner[np.diag_indices(n)] += RIDGE
            self._keep(given, RIDGE * _inverse(inner))
        left = self._kept[given]
        wide = _centred(_gaussian(np.concatenate([first, 0.5 * z], axis=1), theta))
        other = _centred(_gaussian(second, theta))
        product = (left @ wide @ left) * (left @ other @ left)
        statistic = float(product.sum())
        if self.null == "gamma":
            variance = 2.0 * float((product**2).sum())
            return exp(log_gamma_tail(statistic, float(np.trace(product)), variance)), statistic
        return self._spectral_p(statistic, _spectrum(product), (x, y, given)), statistic


def _standardised(data: MixedTable, number: int) -> Array:
    """Return a column as standard numbers; a discrete one as an indicator for each state, together of variance one."""
    if data.kinds[number] == "continuous":
        assert data.matrix is not None
        column = data.matrix[:, data.columns[number]]
        if np.isnan(column).any():
            raise InvalidArgument(
                f"the column {data.names[number]!r} has missing cells; missing='drop' leaves rows out"
            )
        wide = unit_scaled(column[:, None])
        check_spread(wide, wide.std(axis=0), [data.names[number]])
    else:
        codes = data.codes().column(data.names[number])
        present = np.unique(codes)
        wide = (codes[:, None] == present[None, :]).astype(np.float64)
        if len(present) == 2:
            wide = wide[:, :1]
    wide = wide - wide.mean(axis=0)
    scale = float(np.sqrt((wide**2).sum() / (len(wide) - 1)))
    if scale == 0.0:
        raise InvalidArgument(f"the column {data.names[number]!r} is constant; leave it out")
    return np.asarray(wide / scale)


def _by_rows(n: int, widths: tuple[float, float, float]) -> float:
    return widths[0] if n < 200 else widths[1] if n < 1200 else widths[2]


def _squared_distances(points: Array) -> Array:
    squares = (points**2).sum(axis=1)
    found = squares[:, None] + squares[None, :] - 2.0 * (points @ points.T)
    np.maximum(found, 0.0, out=found)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _scaled_kernels(points: Array) -> list[Array]:
    """Return Gaussian kernel matrices of five widths around the median distance."""
    distances = _squared_distances(points)
    positive = distances[distances > 0]
    middle = float(np.median(positive)) if len(positive) else 1.0
    return [np.exp(-0.5 / scale / middle * distances) for scale in (0.1, 0.3, 1.0, 3.0, 10.0)]


def _gaussian(points: Array, theta: float) -> Array:
    return np.asarray(np.exp(-0.5 * theta * _squared_distances(points)))


def _median_theta(points: Array) -> float:
    some = points[:: max(1, len(points) // 1000)]
    distances = _squared_distances(some)
    positive = distances[distances > 0]
    return 1.0 / float(np.median(positive)) if len(positive) else 1.0


def _centred(kernel: Array) -> Array:
    means = kernel.mean(axis=0)
    return np.asarray(kernel - means[None, :] - means[:, None] + means.mean())


def _inverse(matrix: Array) -> Array:
    from scipy.linalg import cho_factor, cho_solve

    return np.asarray(cho_solve(cho_factor(matrix, lower=True), np.eye(len(matrix))))


def _spectrum(matrix: Array) -> Array:
    values = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    return np.asarray(values[values > SMALL * values.max(initial=0.0)])
