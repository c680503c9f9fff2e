"""Newton's method for generalised linear models: iteratively reweighted least squares, with L2 and L1 penalties.

Each step solves a weighted least-squares problem (X'WX + P) d = X's - P b, where s is the score of every row and W the
expected (IRLS, Fisher scoring) or observed (Newton) curvature. With the canonical link both are the same and the
gradient is X'(y - mu); with W = I one step gives the normal equations. A step that would raise the objective is halved,
so the penalised deviance never increases (beyond rounding). With an L1 penalty the quadratic model is minimised by
coordinate descent (proximal Newton; Friedman, Hastie & Tibshirani, 2010; Lee, Sun & Saunders, 2014).

`fit_softmax` is the same for several classes: counts of K outcomes a row, K - 1 linear predictors against the first class,
or K symmetric ones under a penalty. Cost an iteration: n p^2 for one predictor, n p^2 K^2 / 2 for softmax.
References: McCullagh & Nelder (1989); Boehning (1992), Multinomial logistic regression algorithm.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import finite_numbers
from markovia.learning.regression.objectives import RegressionObjective, SoftmaxObjective
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class WeightedSolution:
    """Where the iterations ended.

    Attributes
    ----------
    coef
        The parameters.
    n_iter
        Iterations made.
    converged
        Whether the next step would change next to nothing.
    path
        The objective at the start and after each iteration; it never increases.
    """

    coef: Array
    n_iter: int
    converged: bool
    path: tuple[float, ...]


def newton(
    objective: RegressionObjective,
    start: Array,
    *,
    l1: Array | None = None,
    observed: bool = False,
    max_iter: int = 100,
    tol: float = 1e-14,
) -> WeightedSolution:
    """Minimise an objective (plus an L1 penalty) by damped Newton steps.

    Parameters
    ----------
    objective
        What to minimise.
    start
        A point where it is finite.
    l1
        The L1 penalty of each parameter; None for none.
    observed
        Whether to use the observed curvature instead of the expected one.
    max_iter
        The most iterations.
    tol
        Stop when a step promises less than this, relative to the objective.

    Returns
    -------
    Solution
        The parameters and how they were found.
    """
    penalty = None if l1 is None or not np.any(l1) else l1
    b = start

    def total(at: Array) -> float:
        return objective.value(at) + (0.0 if penalty is None else float(penalty @ np.abs(at)))

    value = total(b)
    path = [value]

    def size_of(value: float) -> float:
        """Return how large the objective is, which has the unit of the data squared: never nothing next to the start."""
        return abs(value) + 1e-8 * abs(path[0])

    for iteration in range(1, max_iter + 1):
        gradient = objective.gradient(b)
        if penalty is None:
            step = objective.step(b, observed)
            promised = -float(gradient @ step)
        else:
            step = _lasso_step(b, gradient, objective.hessian(b, False), penalty)
            promised = -float(gradient @ step) - float(penalty @ (np.abs(b + step) - np.abs(b)))
        if not np.isfinite(promised):
            return WeightedSolution(b, iteration, False, tuple(path))
        small = promised <= tol * size_of(value)
        rounding = 1e-15 * size_of(value)
        size, tried, found = 1.0, b, np.inf
        while size > 1e-10:
            tried = b + size * step
            found = total(tried)
            if found <= value - 1e-4 * size * promised + rounding:
                break
            size *= 0.5
        else:
            return WeightedSolution(
                b, iteration, bool(promised <= max(tol, 1e-8) * size_of(value)), tuple(path)
            )
        b, value = tried, found
        path.append(value)
        if small:
            return WeightedSolution(b, iteration, True, tuple(path))
    return WeightedSolution(b, max_iter, False, tuple(path))


@dataclass(frozen=True)
class SoftmaxFit(InNotebooks):
    """A multinomial logistic fit.

    Attributes
    ----------
    coef
        Shape (K, columns); the first row is zero where the first class is the reference.
    log_likelihood
        The sum of counts times log probabilities, without the penalty.
    n_iter, converged, path
        Iterations made, whether the next would change next to nothing, and the objective at the start and after each.
    """

    coef: Array
    log_likelihood: float
    n_iter: int
    converged: bool
    path: tuple[float, ...]


def fit_softmax(
    x: ArrayLike,
    counts: ArrayLike,
    l2: ArrayLike = 0.0,
    *,
    l1: ArrayLike = 0.0,
    offset: ArrayLike | None = None,
    symmetric: bool | None = None,
    start: ArrayLike | None = None,
    max_iter: int = 100,
    tol: float = 1e-14,
) -> SoftmaxFit:
    """Fit P(class k | x) proportional to exp(coef_k . x) to counts of classes, by Newton's method.

    Parameters
    ----------
    x
        Shape (n, p). Put a column of ones in for an intercept.
    counts
        Shape (n, K): how often each class was seen with each row; weights are allowed.
    l2, l1
        The penalties l2 / 2 times the squares and l1 times the absolute values of the coefficients; a number, or one a
        column (0 for the intercept).
    offset
        Shape (n, K), added to the scores.
    symmetric
        Whether every class has coefficients of its own, as scikit-learn does, instead of the first being the reference. None
        does so exactly when there is a penalty. Without one the symmetric answer is the one of least norm.
    start
        Coefficients of shape (K, p) to start from.
    max_iter, tol
        As in `newton`.

    Returns
    -------
    SoftmaxFit
        Coefficients of shape (K, p) and how they were found. On separable data without a penalty it has not converged.

    Examples
    --------
    >>> fit = fit_softmax([[1.0], [1.0]], [[1, 2, 1], [0, 2, 2]])
    >>> np.exp(fit.coef[:, 0]).round(6).tolist()
    [1.0, 4.0, 3.0]
    """
    rows = finite_numbers(x, "X")
    seen = finite_numbers(counts, "the counts")
    if rows.ndim != 2 or seen.ndim != 2 or len(rows) != len(seen) or seen.shape[1] < 1:
        raise InvalidArgument(
            f"X and counts need the same number of rows, not shapes {rows.shape} and {seen.shape}"
        )
    if not np.all(seen >= 0):
        raise InvalidArgument("the counts must not be negative")
    d, k = rows.shape[1], seen.shape[1]
    squares, absolutes = _penalty(l2, d, "l2"), _penalty(l1, d, "l1")
    penalised = bool(np.any(squares) or np.any(absolutes))
    use = penalised if symmetric is None else bool(symmetric)
    moved = np.zeros(seen.shape) if offset is None else finite_numbers(offset, "the offset")
    if moved.shape != seen.shape:
        raise InvalidArgument(f"the offset has shape {seen.shape}, not {moved.shape}")
    objective = SoftmaxObjective(rows, seen, moved, squares, use)
    begin = np.zeros((k, d)) if start is None else finite_numbers(start, "the start")
    if begin.shape != (k, d):
        raise InvalidArgument(f"the start has shape {(k, d)}, not {begin.shape}")
    if not use:
        begin = begin - begin[0]
    if objective.free == 0:
        return SoftmaxFit(np.zeros((k, d)), 0.0, 0, True, (0.0,))
    found = newton(
        objective,
        begin[objective.first :].ravel(),
        l1=np.tile(absolutes, objective.free),
        max_iter=max_iter,
        tol=tol,
    )
    log_likelihood = float((seen * objective.log_probabilities(found.coef)).sum())
    return SoftmaxFit(objective.full(found.coef), log_likelihood, found.n_iter, found.converged, found.path)


def _lasso_step(b: Array, gradient: Array, hessian: Array, l1: Array) -> Array:
    """Minimise g.d + d'Hd/2 + l1.|b + d| over d by cyclic coordinate descent on the coefficients that move."""
    diagonal = np.diag(hessian)
    d = np.zeros(b.size)
    slope = gradient.copy()  # gradient + H d
    scale = float(np.max(np.abs(gradient), initial=0.0)) + float(np.max(l1, initial=0.0)) + 1e-300
    active = np.arange(b.size)
    whole = True
    for _ in range(2000):
        worst = 0.0
        for j in active:
            h = diagonal[j]
            if h <= 0:
                continue
            centre = h * (b[j] + d[j]) - slope[j]
            new = np.sign(centre) * max(abs(centre) - l1[j], 0.0) / h
            change = new - b[j] - d[j]
            if change:
                slope += hessian[:, j] * change
                d[j] += change
                worst = max(worst, abs(change) * h)
        if worst <= 1e-12 * scale:
            if whole:
                break
            active, whole = np.arange(b.size), True
        elif whole:
            active, whole = np.flatnonzero((b + d != 0) | (l1 == 0)), False
    return d


def _penalty(value: ArrayLike, columns: int, what: str) -> Array:
    found = finite_numbers(value, what)
    if found.ndim > 1 or (found.ndim and found.shape != (columns,)) or not np.all(found >= 0):
        raise InvalidArgument(f"{what} is a number >= 0, or one for each of the {columns} columns")
    return np.broadcast_to(found, (columns,)).astype(np.float64)
