"""The graphical lasso: the sparse precision matrix of a Gaussian by L1-penalised maximum likelihood.

Minimises `-log det Q + tr(S Q) + rho sum_{i != j} |q_ij|` (Yuan and Lin 2007; Friedman, Hastie and Tibshirani 2008); entries
that are exactly zero are absent edges. The diagonal is penalised only on request.
Method: columns fall apart into the connected components of `|S_ij| > rho`, which are solved one by one (Witten, Friedman and
Simon 2011; Mazumder and Hastie 2012). In each, Newton steps over the entries that are not zero or should not be, the
quadratic problem of a step solved by our own compiled coordinate descent (QUIC: Hsieh et al. 2011). It converges
quadratically, so a tight tolerance costs little; among nearly collinear columns coordinate descent is slow and steps are
inexact, so that some tens are made. The optimality conditions are checked, and the duality gap bounds the error of the
objective.
Cost: a few inversions (columns cubed) and, a sweep, columns times the number of edges.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array

OWN = 300
"""Up to so many columns matrices are inverted by our own compiled code, whose one thread is faster there."""


@dataclass(frozen=True, eq=False)
class SparsePrecision:
    """The solution of one graphical lasso.

    Attributes
    ----------
    precision, covariance
        The estimate and its inverse.
    objective
        `-log det Q + tr(S Q)` plus the penalty.
    gap
        The duality gap: the objective is at most so much above its minimum.
    error
        The largest violation of the optimality conditions `W_ij - S_ij = rho sign(q_ij)` (at most rho where `q_ij = 0`).
    iterations, converged
        Newton steps of the component that took most; whether the tolerance was met.
    """

    precision: Array
    covariance: Array
    objective: float
    gap: float
    error: float
    iterations: int
    converged: bool


def sparse_precision(
    covariance: ArrayLike,
    rho: float | ArrayLike,
    *,
    penalise_diagonal: bool = False,
    start: Array | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
) -> SparsePrecision:
    """Solve the graphical lasso for a covariance matrix.

    Parameters
    ----------
    covariance
        Symmetric, divided by the number of rows (or a correlation matrix).
    rho
        The penalty: a number, or a symmetric matrix of them; infinite forbids an entry.
    penalise_diagonal
        Whether a penalty that is one number is put on the diagonal too.
    start
        A precision matrix to start from, such as the solution for a penalty nearby.
    tolerance
        The largest violation of the optimality conditions, relative to the largest variance.
    max_iterations
        Newton steps at most.

    Examples
    --------
    >>> found = sparse_precision([[1.0, 0.6], [0.6, 1.0]], 0.1)
    >>> found.covariance.round(6).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    >>> found.gap < 1e-8
    True
    """
    cov = np.asarray(covariance, dtype=np.float64)
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1] or not len(cov):
        raise InvalidArgument(f"a covariance is a square matrix, not of shape {cov.shape}")
    if not np.isfinite(cov).all() or not np.allclose(cov, cov.T, rtol=1e-8, atol=1e-12):
        raise InvalidArgument("a covariance is finite and symmetric")
    if (np.diag(cov) <= 0).any():
        raise InvalidArgument(f"column {int(np.argmax(np.diag(cov) <= 0))} has no variance; leave it out")
    cov = (cov + cov.T) / 2
    penalty = _penalties(rho, len(cov), penalise_diagonal)
    return solve(cov, penalty, start, tolerance, max_iterations)


def solve(
    cov: Array, penalty: Array, start: Array | None, tolerance: float, max_iterations: int
) -> SparsePrecision:
    """Solve for a matrix of penalties, component by component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    limit = tolerance * float(np.diag(cov).max())
    linked = np.abs(cov) > penalty
    n_parts, label = connected_components(csr_array(linked), directed=False)
    own = np.diag(cov) + np.diag(penalty)
    precision, inverse = np.diag(1 / own), np.diag(own)
    objective, dual, error, steps = 0.0, 0.0, 0.0, 0
    for part in range(n_parts):
        inside = np.flatnonzero(label == part)
        if len(inside) == 1:
            value = float(1.0 + np.log(own[inside[0]]))
            objective += value
            dual += value
            continue
        block = np.ix_(inside, inside)
        begin = None if start is None else np.ascontiguousarray(start[block])
        found = _newton(
            np.ascontiguousarray(cov[block]),
            np.ascontiguousarray(penalty[block]),
            begin,
            limit,
            max_iterations,
        )
        precision[block], inverse[block] = found.precision, found.covariance
        objective += found.objective
        dual += found.objective - found.gap
        error, steps = max(error, found.error), max(steps, found.iterations)
    return SparsePrecision(precision, inverse, objective, objective - dual, error, steps, error <= limit)


def _newton(
    cov: Array, penalty: Array, start: Array | None, limit: float, max_iterations: int
) -> SparsePrecision:
    from markovia.kernels.structure.graphical_lasso import newton_direction

    p = len(cov)
    finite = np.where(np.isfinite(penalty), penalty, 0.0)
    banned = ~np.isfinite(penalty)
    if not finite.any() and not banned.any():
        return _unpenalised(cov)
    own = 1 / (np.diag(cov) + np.diag(finite))
    precision = np.diag(own) if start is None else np.where(banned, 0.0, start)
    root = _log_det(precision)
    if root is None:
        precision = np.diag(own)
        root = _log_det(precision)
        assert root is not None
    log_det, inverse = root
    value = -log_det + float((cov * precision).sum() + (finite * np.abs(precision)).sum())
    error = np.inf
    done = 0
    for k in range(max_iterations + 1):
        gradient = cov - inverse
        used = precision != 0
        off = np.where(
            used,
            np.abs(gradient + finite * np.sign(precision)),
            np.maximum(np.abs(gradient) - finite, 0.0),
        )
        off[banned] = 0.0
        error = float(off.max())
        done = k
        if error <= limit or k == max_iterations:
            break
        free = (used | (off > 0)) & ~banned
        step, product = np.zeros((p, p)), np.zeros((p, p))
        sweeps, reduction = (3 + 3 * k, 0.1 if k < 3 else 0.01) if k < 12 else (300, 1e-3)
        newton_direction(cov, inverse, precision, finite, free, sweeps, reduction, step, product)
        gain = float(
            (gradient * step).sum() + (finite * (np.abs(precision + step) - np.abs(precision))).sum()
        )
        length, moved = 1.0, False
        for _ in range(50):
            fresh = precision + length * step
            root = _log_det(fresh)
            if root is not None:
                tried = -root[0] + float((cov * fresh).sum() + (finite * np.abs(fresh)).sum())
                if tried <= value + 1e-3 * length * gain + 1e-13 * abs(value):
                    moved = True
                    break
            length *= 0.5
        if not moved or root is None:
            break
        precision, value = fresh, tried
        log_det, inverse = root
    gap = value - _dual(cov, inverse, finite, banned)
    if not np.isfinite(gap) and not finite.all():
        _need_minimum(precision)
    return SparsePrecision(precision, inverse, value, gap, error, done, error <= limit)


def _unpenalised(cov: Array) -> SparsePrecision:
    root = _log_det(np.ascontiguousarray(cov))
    if root is None or np.linalg.cond(cov) > 1e14:
        raise InvalidArgument(
            "the covariance is singular, so that its inverse does not exist; take rho greater than 0"
        )
    precision = root[1]
    error = float(np.abs(np.linalg.inv(precision) - cov).max())
    return SparsePrecision(precision, cov.copy(), root[0] + len(cov), 0.0, error, 0, True)


def _need_minimum(precision: Array) -> None:
    if np.linalg.cond(precision) > 1e13:
        raise InvalidArgument(
            "the likelihood has no maximum: the covariance is singular over entries without a penalty; take rho greater "
            "than 0 and require fewer edges"
        )


def _log_det(matrix: Array) -> tuple[float, Array] | None:
    """Return the logarithm of the determinant and the inverse, or None if the matrix is not positive definite."""
    if len(matrix) <= OWN:
        from markovia.kernels.structure.graphical_lasso import cholesky_inverse

        found = np.empty_like(matrix)
        log_det = float(cholesky_inverse(matrix, found))
        return (log_det, found) if np.isfinite(log_det) else None
    from scipy.linalg.lapack import dpotrf, dpotri

    lower, failed = dpotrf(matrix, lower=1)
    if failed:
        return None
    log_det = 2 * float(np.log(np.diag(lower)).sum())
    half, failed = dpotri(lower, lower=1)
    if failed or not np.isfinite(log_det):
        return None
    found = np.tril(half)
    found = found + np.tril(half, -1).T
    return log_det, np.ascontiguousarray(found)


def _dual(cov: Array, inverse: Array, finite: Array, banned: Array) -> float:
    """Return the dual value of the nearest feasible covariance; minus infinity if it is not positive definite."""
    low = np.where(banned, -np.inf, -finite)
    nearest = cov + np.clip(inverse - cov, low, -low)
    np.fill_diagonal(nearest, np.diag(cov) + np.diag(finite))
    sign, log_det = np.linalg.slogdet(nearest)
    return float(log_det) + len(cov) if sign > 0 else -np.inf


def _penalties(rho: Any, p: int, penalise_diagonal: bool) -> Array:
    found = np.asarray(rho, dtype=np.float64)
    if np.isnan(found).any() or (found < 0).any():
        raise InvalidArgument("rho is not negative")
    if found.ndim == 0:
        if not np.isfinite(found):
            raise InvalidArgument("rho as one number is finite")
        penalty = np.full((p, p), float(found))
        if not penalise_diagonal:
            np.fill_diagonal(penalty, 0.0)
        return penalty
    if found.shape != (p, p) or not np.array_equal(found, found.T) or not np.isfinite(np.diag(found)).all():
        raise InvalidArgument(
            f"rho is a number, or a symmetric matrix of shape {(p, p)} with a finite diagonal"
        )
    return found.copy()


def scaled_penalty(factors: Array, rho: float) -> Array:
    """Return the matrix of penalties: infinite stays infinite even where rho is zero."""
    return np.asarray(
        np.where(np.isfinite(factors), rho * np.where(np.isfinite(factors), factors, 0.0), np.inf)
    )
