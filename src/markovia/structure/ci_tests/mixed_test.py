"""A test of conditional independence for discrete and continuous variables together.

Method "regression" (Tsagris, Borboudakis, Lagani and Tsamardinos, *Constraint-based causal discovery with mixed data*,
Int. J. of Data Science and Analytics 2018): x is regressed on the given set with and without y, and y with and without
x; linear regression (F test) where the target is continuous, multinomial logistic regression (likelihood ratio) where
it is discrete. The two p-values are joined to min(2 min(p1, p2), max(p1, p2)). Questions about discrete variables only
are answered by G2, about continuous ones only by Fisher's z.

Method "degenerate-gaussian" (Andrews, Ramsey and Cooper, *Learning high-dimensional directed acyclic graphs with mixed
data-types*, 2019): discrete variables become indicators, everything is treated as jointly Gaussian, and Wilks'
likelihood ratio of the two blocks given the set is compared with chi-square. It needs only one covariance matrix, so it
is far faster, and it is less exact: what is not linear in the given set counts as dependence once there are many rows.

Effects of several given variables are added, without interactions. Weights of rows are read as how many rows each
stands for. Cost: "regression" four regressions over all rows for each test; "degenerate-gaussian" cubic in the number
of columns involved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.reading_mixed import CONTINUOUS, DISCRETE, MixedTable
from markovia.data.tables.unit_scaling import check_spread, unit_scaled
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.structure.ci_tests.ci_tests import CITest, Measured, Query, one_blas_thread
from markovia.structure.ci_tests.fisher_z_test import FisherZ
from markovia.structure.ci_tests.table_tests import G2

NEWTON = 40
"""Newton steps of one logistic regression; a target that the predictors foretell exactly needs them all."""
LEFT = 1e-9
"""A direction with less than this share of its column's length outside the others adds nothing."""


@dataclass(frozen=True)
class MixedTest:
    """A test for discrete and continuous variables together.

    Parameters
    ----------
    alpha
        Independence is accepted where the p-value is larger.
    method
        "regression", or "degenerate-gaussian", which is faster and less exact.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, 300)
    >>> rows = {"kind": kind, "size": kind + rng.normal(size=300), "other": rng.normal(size=300)}
    >>> mk.learn_structure(rows, method="pc", test=mk.ci_tests.MixedTest()).graph
    MixedGraph(['kind --- size'], nodes=['other'])
    """

    alpha: float = 0.05
    method: str = "regression"

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        if data.table is not None:
            data = MixedTable(data.names, data.kinds, data.codes(), data.matrix, data.weights)
        if self.method == "regression":
            return RegressionTest(data, self.alpha)
        if self.method == "degenerate-gaussian":
            return DegenerateGaussianTest(data, self.alpha)
        raise InvalidArgument(f"method= is 'regression' or 'degenerate-gaussian', not {self.method!r}")


class _MixedTest(CITest):
    name = "mixed"

    def __init__(self, data: MixedTable, alpha: float) -> None:
        super().__init__(data.names, alpha)
        if data.matrix is not None and np.isnan(data.matrix).any():
            raise InvalidArgument("the mixed test needs complete rows; missing='drop' leaves the others out")
        self.kinds = data.kinds
        weights = data.weights
        if data.table is not None and data.matrix is None:
            weights = data.codes().weights
        self.weights = np.ones(data.n_rows) if weights is None else weights
        self.total = float(self.weights.sum())
        self.blocks = [_block(data, k) for k in range(len(data.names))]

    def _compute(self, queries: Sequence[Query]) -> Array:
        return self._measure(queries).p_value


class RegressionTest(_MixedTest):
    """Likelihood ratios of regressions in both directions, bound to data."""

    costly = True

    def __init__(self, data: MixedTable, alpha: float) -> None:
        super().__init__(data, alpha)
        self.pure = {kind: _of_kind(data, kind, alpha) for kind in set(data.kinds)}
        self.places = data.columns
        self.labels = [
            np.unique(data.codes().column(n), return_inverse=True)[1] if kind == DISCRETE else None
            for n, kind in zip(data.names, data.kinds, strict=True)
        ]
        self.roots = np.sqrt(self.weights)
        self._base: dict[tuple[int, tuple[int, ...]], tuple[float, Array]] = {}

    def _measure(self, queries: Sequence[Query]) -> Measured:
        found = np.empty((3, len(queries)))
        for kind, test in self.pure.items():
            own = [
                k
                for k, (x, y, given) in enumerate(queries)
                if {self.kinds[v] for v in (x, y, *given)} == {kind}
            ]
            if own:
                at = self.places
                asked = [(int(at[x]), int(at[y]), tuple(at[list(given)].tolist())) for x, y, given in
                         (queries[k] for k in own)]  # fmt: skip
                found[:, own] = test._measure(asked)
        with one_blas_thread():
            for k, (x, y, given) in enumerate(queries):
                if len({self.kinds[v] for v in (x, y, *given)}) > 1:
                    found[:, k] = self._both_ways(x, y, given)
        return Measured(*found)

    def _both_ways(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float, float]:
        """Return the joint p-value, and the statistic and degrees of freedom of the direction that shows more."""
        first, second = self._one_way(x, y, given), self._one_way(y, x, given)
        low, high = sorted((first, second), key=lambda f: f[0])
        return min(2.0 * low[0], high[0]), low[1], low[2]

    def _one_way(self, target: int, added: int, given: tuple[int, ...]) -> tuple[float, float, float]:
        from scipy.special import chdtrc, fdtrc

        base = self._basis(given)
        extra = _orthonormal(self.roots[:, None] * self.blocks[added], base)
        more = extra.shape[1]
        if more == 0:
            return 1.0, 0.0, 0.0
        labels = self.labels[target]
        if labels is None:
            column = self.roots * self.blocks[target][:, 0]
            left = column - base @ (base.T @ column)
            gain, rest = float(((extra.T @ left) ** 2).sum()), float((left**2).sum())
            spare = self.total - base.shape[1] - more
            if spare <= 0 or rest <= LEFT * float((column**2).sum()):
                return 1.0, 0.0, float(more)
            statistic = (gain / more) / (max(rest - gain, 1e-300) / spare)
            return float(fdtrc(more, spare, statistic)), statistic, float(more)
        roots = np.where(self.roots > 0, self.roots, 1.0)[:, None]
        narrow = base / roots
        key = (target, given)
        if key not in self._base:
            self._base[key] = _softmax_fit(narrow, labels, self.weights)
        before, start = self._base[key]
        wide = np.concatenate([narrow, extra / roots], axis=1)
        start = np.concatenate([start, np.zeros((more, start.shape[1]))])
        after, _ = _softmax_fit(wide, labels, self.weights, start)
        statistic, free = max(0.0, 2.0 * (after - before)), float(more * start.shape[1])
        return (float(chdtrc(free, statistic)) if free else 1.0), statistic, free

    def _basis(self, given: tuple[int, ...]) -> Array:
        """Return orthonormal columns that span the intercept and the given set, rows times roots of weights."""
        known: dict[tuple[int, ...], Array] = self.__dict__.setdefault("_bases", {})
        if given not in known:
            ones = np.ones((len(self.weights), 1))
            design = self.roots[:, None] * np.concatenate([ones, *(self.blocks[z] for z in given)], axis=1)
            if len(known) >= 64:
                del known[next(iter(known))]
            known[given] = _orthonormal(design)
        return known[given]


class DegenerateGaussianTest(_MixedTest):
    """Wilks' likelihood ratio over indicators and numbers, bound to data."""

    batch = 16

    def __init__(self, data: MixedTable, alpha: float) -> None:
        super().__init__(data, alpha)
        wide = np.concatenate(self.blocks, axis=1)
        ends = np.cumsum([0, *(b.shape[1] for b in self.blocks)])
        self.spans = [np.arange(a, b) for a, b in pairwise(ends)]
        share = self.weights / self.total
        wide = wide - share @ wide
        self.covariance = wide.T @ (wide * share[:, None])

    def _measure(self, queries: Sequence[Query]) -> Measured:
        from scipy.special import chdtrc

        found = np.empty((3, len(queries)))
        for k, (x, y, given) in enumerate(queries):
            statistic, free = self._wilks(x, y, given)
            found[:, k] = (float(chdtrc(free, statistic)) if free else 1.0), statistic, free
        return Measured(*found)

    def _wilks(self, x: int, y: int, given: tuple[int, ...]) -> tuple[float, float]:
        own = np.concatenate([self.spans[x], self.spans[y]])
        left = self.covariance[np.ix_(own, own)]
        behind = 0
        if given:
            inner = np.concatenate([self.spans[z] for z in given])
            cross = self.covariance[np.ix_(inner, own)]
            left = (
                left
                - cross.T
                @ np.linalg.pinv(self.covariance[np.ix_(inner, inner)], rcond=1e-10, hermitian=True)
                @ cross
            )
            behind = len(inner)
        width = len(self.spans[x])
        first, second = _whitened(left[:width, :width]), _whitened(left[width:, width:])
        free = float(first.shape[1] * second.shape[1])
        spare = self.total - 1.0 - behind - 0.5 * (first.shape[1] + second.shape[1] + 1.0)
        if not free or spare <= 0:
            return 0.0, free
        canonical = np.linalg.svd(first.T @ left[:width, width:] @ second, compute_uv=False)
        return float(-spare * np.log1p(-np.minimum(canonical**2, 1 - 1e-15)).sum()), free


def _of_kind(data: MixedTable, kind: str, alpha: float) -> CITest:
    names = [n for n, own in zip(data.names, data.kinds, strict=True) if own == kind]
    if kind == DISCRETE:
        return G2(alpha).bind(MixedTable(names, [kind] * len(names), data.table, None))
    return FisherZ(alpha).bind(MixedTable(names, [kind] * len(names), None, data.matrix, data.weights))


def _block(data: MixedTable, number: int) -> Array:
    """Return a variable's columns: standard numbers, or an indicator for each state that occurs but the first."""
    if data.kinds[number] == CONTINUOUS:
        assert data.matrix is not None
        column = unit_scaled(data.matrix[:, data.columns[number]][:, None])
        scale = column.std(axis=0)
        check_spread(column, scale, [data.names[number]])
        return np.asarray((column - column.mean(axis=0)) / scale)
    codes = data.codes().column(data.names[number])
    present = np.unique(codes)[1:]
    return np.asarray(codes[:, None] == present[None, :], dtype=np.float64)


def _orthonormal(columns: Array, outside: Array | None = None) -> Array:
    """Return orthonormal columns that span what the given ones have outside others."""
    if columns.shape[1] == 0:
        return columns
    lengths = np.sqrt((columns**2).sum(axis=0))
    columns = columns[:, lengths > 0] / lengths[lengths > 0]
    if outside is not None:
        columns = columns - outside @ (outside.T @ columns)
        columns = columns - outside @ (outside.T @ columns)
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > LEFT**0.5])


def _whitened(covariance: Array) -> Array:
    """Return the directions with some variance, scaled to one."""
    values, vectors = np.linalg.eigh(covariance)
    some = values > LEFT
    return np.asarray(vectors[:, some] / np.sqrt(values[some]))


@lru_cache(maxsize=8)
def _eye(k: int) -> Array:
    return np.eye(k)


def _softmax_fit(
    design: Array, labels: NDArray[np.integer[Any]], weights: Array, start: Array | None = None
) -> tuple[float, Array]:
    """Return the largest log-likelihood of a multinomial logistic regression, and its coefficients (class 0 has none).

    Newton's method, steps halved where the likelihood would fall.
    """
    states = int(labels.max()) + 1
    p = design.shape[1]
    rest = states - 1
    theta = np.zeros((p, rest)) if start is None else start
    hot = (labels[:, None] == np.arange(1, states)[None, :]).astype(np.float64)

    def likelihood(coefficients: Array) -> tuple[float, Array]:
        linear = design @ coefficients
        top = np.maximum(linear.max(axis=1, initial=0.0), 0.0)
        norm = top + np.log(np.exp(-top) + np.exp(linear - top[:, None]).sum(axis=1))
        value = float((weights * ((hot * linear).sum(axis=1) - norm)).sum())
        return value, np.exp(linear - norm[:, None])

    now, shares = likelihood(theta)
    for _ in range(NEWTON):
        slope = design.T @ (weights[:, None] * (hot - shares))
        bend = np.empty((p * rest, p * rest))
        for a in range(rest):
            for b in range(a, rest):
                part = weights * shares[:, a] * ((1.0 if a == b else 0.0) - shares[:, b])
                block = design.T @ (part[:, None] * design)
                bend[a * p : (a + 1) * p, b * p : (b + 1) * p] = block
                bend[b * p : (b + 1) * p, a * p : (a + 1) * p] = block.T
        bend += (1e-9 * max(1e-6, float(np.diag(bend).max(initial=0.0)))) * _eye(p * rest)
        step = np.linalg.solve(bend, slope.T.ravel()).reshape(rest, p).T
        size = 1.0
        while True:
            value, tried = likelihood(theta + size * step)
            if value >= now - 1e-12 * abs(now) or size < 1e-4:
                break
            size *= 0.5
        if value < now:
            break
        theta, shares, gain, now = theta + size * step, tried, value - now, value
        if gain < 1e-7 * (1.0 + 1e-3 * abs(now)):
            break
    return now, theta
