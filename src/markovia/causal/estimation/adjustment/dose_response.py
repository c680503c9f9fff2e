"""Dose-response curves: the mean outcome had everybody received a dose, for a treatment that is a number.

Doubly robust (Kennedy, Ma, McHugh & Small, 2017): each row's outcome becomes one whose mean at a dose is the curve, if
either the outcome model or the model of the doses given the covariates is right,

    xi = (Y - mu(X, A)) w(A) / pi(A | X) + m(A),   w(a) = mean of pi(a | X),   m(a) = mean of mu(X, a),

and the curve is a local polynomial of xi by the dose. The bandwidth is the best for lines by leaving one row out, and a
parabola is fitted with it, so that the bias is small beside the error (Calonico, Cattaneo & Titiunik, 2014). The density of
the doses given the covariates is that of the residuals, smoothed, around their mean. Errors come from influence functions,
that of the average over covariates among them; with a few hundred rows they are a tenth or two short where doses are rare.
Cost: `folds` fits of two learners, and rows times doses for the rest.
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate, estimate
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import CLIP, cross_fit, fitted, learner_for, make_folds
from markovia.runtime.array_types import Array

GRID = 101
"""Doses at which averages over the covariates are taken; between them they are interpolated."""


class DoseCurve(NamedTuple):
    """Mean outcomes at doses, the influence of each row on each (shape (n, doses)), and the bandwidth."""

    values: Array
    influence: Array
    bandwidth: float


def dose_response(
    dose: Array,
    outcome: Array,
    covariates: Array,
    at: Array,
    *,
    family: str = "gaussian",
    learner: Any = None,
    bandwidth: float | None = None,
    folds: int = 5,
    seed: int = 0,
) -> DoseCurve:
    """Return the mean outcome at each of some doses.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> a = x[:, 0] + rng.normal(size=2000)
    >>> found = dose_response(a, np.sin(a) + x[:, 0] + rng.normal(size=2000), x, np.array([-1.0, 1.0]))
    >>> (abs(found.values - np.sin([-1.0, 1.0])) < 0.2).tolist()
    [True, True]
    """
    centre, unit = float(dose.mean()), float(dose.std())
    if unit == 0:
        raise InvalidArgument("the dose is the same in every row, so there is no curve to draw")
    a, spots = (dose - centre) / unit, (np.asarray(at, dtype=float) - centre) / unit
    low, high = min(float(a.min()), float(spots.min())), max(float(a.max()), float(spots.max()))
    grid = np.linspace(low, high, GRID)
    fold = make_folds(np.zeros(len(a), dtype=np.int64), folds, np.random.default_rng(seed))
    own, everywhere = _outcome_model(a, outcome, covariates, grid, family, learner, fold, seed)
    ratio, density = _density_ratio(a, covariates, grid, learner, fold, seed)
    mean = everywhere.mean(axis=0)
    xi = (outcome - own) * ratio + np.interp(a, grid, mean)
    h = _bandwidth(a, xi) if bandwidth is None else float(bandwidth) / unit
    values, influence = np.empty(len(spots)), np.empty((len(a), len(spots)))
    for k, spot in enumerate(spots):
        basis, kernel = _local(a, spot, h)
        moments = (basis * kernel[:, None]).T @ basis / len(a)
        solved = np.linalg.pinv(moments, hermitian=True)
        inverse, coefficients = solved[0], solved @ ((basis * kernel[:, None]).T @ xi / len(a))
        values[k] = coefficients[0]
        # a row pulls the parabola towards itself, and its residual is too small by its leverage (HC3)
        leverage = np.einsum("ni,ij,nj->n", basis, solved, basis) * kernel / len(a)
        residual = (xi - basis @ coefficients) / np.maximum(1 - leverage, 0.1)
        # the average over covariates at the doses near this one is estimated, too
        near, weight = _local(grid, spot, h)
        pull = (near @ inverse) * weight * density * (grid[1] - grid[0])
        influence[:, k] = (basis @ inverse) * kernel * residual + (everywhere - mean) @ pull
    return DoseCurve(values, influence, h * unit)


def dose_difference(curve: DoseCurve, k: int, j: int, clusters: Any = None) -> Estimate:
    """Return the difference of the mean outcomes at two of a curve's doses."""
    return estimate(
        float(curve.values[k] - curve.values[j]),
        curve.influence[:, k] - curve.influence[:, j],
        clusters=clusters,
    )


def _outcome_model(
    a: Array, y: Array, x: Array, grid: Array, family: str, learner: Any, fold: Any, seed: int
) -> tuple[Array, Array]:
    """Return the predicted outcome of each row at its own dose, and at every dose of a grid, shape (n, grid)."""
    chosen = learner_for(learner, "outcome")
    linear = chosen is None or chosen == "linear"

    def rows(doses: Array, given: Array) -> Array:
        # a generalised linear model gets a curve in the dose, which may differ by the covariates
        more = [doses**2, doses**3, *(doses[:, None] * given).T] if linear else []
        return np.column_stack([doses, given, *more])

    own, everywhere = np.empty(len(a)), np.empty((len(a), len(grid)))
    for k in range(int(fold.max()) + 1):
        train, test = fold != k, fold == k
        predict = fitted(chosen, rows(a[train], x[train]), y[train], family, seed)
        own[test] = predict(rows(a[test], x[test]))
        for g, value in enumerate(grid):
            everywhere[test, g] = predict(rows(np.full(int(test.sum()), value), x[test]))
    return own, everywhere


def _density_ratio(
    a: Array, x: Array, grid: Array, learner: Any, fold: Any, seed: int
) -> tuple[Array, Array]:
    """Return each row's density of its dose over all rows to that given its covariates, and the former on the grid."""
    expected = cross_fit(learner_for(learner, "treatment"), x, a, "gaussian", fold, seed=seed)
    residual = a - expected
    spread = float(residual.std())
    if spread < 1e-6:
        raise InvalidArgument(
            "the covariates predict the dose perfectly, so nothing is left to learn its effect from"
        )
    width = 1.06 * spread * len(a) ** -0.2
    points = np.linspace(residual.min() - 4 * width, residual.max() + 4 * width, 512)
    # the density of the residuals: rows are shared out between the two nearest points, and smoothed from there
    place = (residual - points[0]) / (points[1] - points[0])
    left = np.minimum(place.astype(np.int64), len(points) - 2)
    mass = np.bincount(left, 1 - (place - left), len(points))
    mass += np.bincount(left + 1, place - left, len(points))
    kernel = np.exp(-0.5 * ((points[:, None] - points[None, :]) / width) ** 2)
    smooth = kernel @ mass / (len(a) * width * np.sqrt(2 * np.pi))

    def of(values: Array) -> Array:
        return np.asarray(np.interp(values, points, smooth, left=0.0, right=0.0))

    density = np.array([of(dose - expected).mean() for dose in grid])
    overall = np.interp(a, grid, density)
    return overall / np.maximum(of(residual), CLIP * overall), density


def _local(a: Array, spot: float, h: float, degree: int = 2) -> tuple[Array, Array]:
    """Return the powers of the distance to a dose, in bandwidths, and the weights of Epanechnikov's kernel."""
    u = (a - spot) / h
    return np.stack([u**p for p in range(degree + 1)], axis=1), 0.75 * np.maximum(1 - u**2, 0.0) / h


def _bandwidth(a: Array, xi: Array) -> float:
    """Return the bandwidth at which local lines predict the rows that they leave out best."""
    low, high = np.quantile(a, [0.025, 0.975])
    inside = np.flatnonzero((a >= low) & (a <= high))
    asked = inside[:: max(1, len(inside) // 250)]
    candidates = np.geomspace(0.25, 2.0, 8) * max(1.0, 500 / len(a)) ** 0.2
    blocks = np.array_split(asked, max(1, len(asked) * len(a) // 2**21))  # a few megabytes at a time
    scores = [sum(_left_out(a, xi, h, rows) for rows in blocks) for h in candidates]
    return float(candidates[int(np.argmin(scores))])


def _left_out(a: Array, xi: Array, h: float, rows: Any) -> float:
    """Return the sum of squared errors of local lines at some rows, each predicted without itself."""
    u = (a[None, :] - a[rows, None]) / h
    kernel = np.maximum(1 - u**2, 0.0)
    s0, s1, s2 = (np.sum(kernel * u**p, axis=1) for p in range(3))
    t0, t1 = kernel @ xi, (kernel * u) @ xi
    determinant = s0 * s2 - s1**2
    lone = determinant <= 1e-12 * s0**2  # no other row near enough for a line: the mean of those there are
    divisor = np.where(lone, 1.0, determinant)
    value = np.where(lone, t0 / s0, (s2 * t0 - s1 * t1) / divisor)
    own = np.where(
        lone, 1 / s0, s2 / divisor
    )  # how much the row itself had to say, at the kernel's height of one
    return float(np.sum(((xi[rows] - value) / np.maximum(1 - own, 0.05)) ** 2))
