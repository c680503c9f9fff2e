"""Fitting a pairwise field with L1 or group-L1 penalties by Newton steps over the pairs in use.

Method: proximal Newton (Lee, Sun and Saunders 2014) with an active set: a step's quadratic model is made over the pairs
that are not zero, or whose gradient says that they should not be, and minimised with its penalty by spectral proximal
gradients, which need only the sparse curvature; a line search then looks at the true objective. Along a path of penalties
each fit starts from the one before, so that few pairs are ever looked at. `refit` has no penalty and solves each step
directly; where the data are separated the parameters grow without end, but the likelihood's supremum is finite and is
reached to the tolerance in a few steps, so that no ridge is put in.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.optimise.proximal_gradient import minimise_composite
from markovia.runtime.array_types import Array
from markovia.structure.undirected.pairwise_field import PairwiseField

MAX_STEPS = 60
INNER_STEPS = 400
DENSE = 1500
"""Up to so many parameters a Newton step without penalty is solved with a dense matrix."""


class PairwiseFit(NamedTuple):
    """Parameters, the mean loss without penalty, and the largest violation of the optimality conditions."""

    point: Array
    loss: float
    error: float


@dataclass(frozen=True, eq=False)
class Penalties:
    """What is penalised.

    Attributes
    ----------
    group
        Whether a pair's parameters are penalised by their norm; by their sizes one by one otherwise.
    pairs
        One number a pair, 0 or more; infinite leaves a pair out.
    """

    group: bool
    pairs: Array


def fit(field: PairwiseField, penalties: Penalties, start: Array, tolerance: float) -> PairwiseFit:
    """Minimise the loss plus the penalty; `start` must be zero on pairs that are left out."""
    point = start.copy()
    loss, gradient = field(point)
    value = loss + _size(field, penalties, point)
    error = np.inf
    for step in range(MAX_STEPS + 1):
        off = violations(field, penalties, point, gradient)
        error = max(float(off.max(initial=0.0)), float(np.abs(gradient[: field.n_single]).max(initial=0.0)))
        if error <= tolerance or step == MAX_STEPS:
            break
        used = _any(field, point)
        live = np.flatnonzero((used | (off > 0.0)) & np.isfinite(penalties.pairs))
        where = _places(field, live)
        direction = _direction(
            field, penalties, point, gradient, live, where, min(0.1, 0.3 * np.sqrt(error)) * error
        )
        fresh = point.copy()
        gain = float(gradient[where] @ direction)
        fresh[where] += direction
        gain += _size(field, penalties, fresh) - _size(field, penalties, point)
        length, moved = 1.0, False
        for _ in range(30):
            tried, slope = field(fresh)
            total = tried + _size(field, penalties, fresh)
            if total <= value + 1e-3 * length * min(gain, 0.0) + 1e-14 * (1.0 + abs(value)):
                moved = True
                break
            length *= 0.5
            fresh = point.copy()
            fresh[where] += length * direction
        if not moved:
            break
        point, loss, gradient, value = fresh, tried, slope, total
    return PairwiseFit(point, loss, error)


def refit(field: PairwiseField, start: Array, there: NDArray[np.bool_], tolerance: float) -> PairwiseFit:
    """Minimise the loss over the pairs that are there, without a penalty, until a step would gain less than tolerance."""
    live = np.flatnonzero(there)
    where = _places(field, live)
    point = np.zeros(field.n_weights)
    point[where] = start[where]
    loss, gradient = field(point)
    for _ in range(MAX_STEPS):
        bend = field.curvature(point, live)
        jitter = 1e-10 * float(bend.diagonal().max(initial=0.0)) + 1e-300
        direction = -_solved(bend, gradient[where], jitter)
        gain = float(gradient[where] @ direction)
        if -gain <= 2 * tolerance:
            break
        length, moved = 1.0, False
        for _ in range(30):
            fresh = point.copy()
            fresh[where] += length * direction
            tried, slope = field(fresh)
            if tried <= loss + 1e-3 * length * gain:
                moved = True
                break
            length *= 0.5
        if not moved:
            break
        point, loss, gradient = fresh, tried, slope
    return PairwiseFit(point, loss, float(np.abs(gradient[where]).max(initial=0.0)))


def violations(field: PairwiseField, penalties: Penalties, point: Array, gradient: Array) -> Array:
    """Return for each pair by how much the optimality conditions are violated."""
    if not len(field.pairs):
        return np.zeros(0)
    at = field.starts[:-1] - field.n_single
    slope, theta = gradient[field.n_single :], point[field.n_single :]
    cut = np.where(np.isfinite(penalties.pairs), penalties.pairs, 0.0)
    if penalties.group:
        norm = np.sqrt(np.add.reduceat(theta**2, at))
        scale = np.repeat(
            np.divide(cut, norm, out=np.zeros_like(norm), where=norm > 0), np.diff(field.starts)
        )
        inside = np.sqrt(np.add.reduceat((slope + scale * theta) ** 2, at))
        outside = np.maximum(np.sqrt(np.add.reduceat(slope**2, at)) - cut, 0.0)
        off = np.where(norm > 0, inside, outside)
    else:
        each = np.repeat(cut, np.diff(field.starts))
        entry = np.where(
            theta != 0, np.abs(slope + each * np.sign(theta)), np.maximum(np.abs(slope) - each, 0.0)
        )
        off = np.maximum.reduceat(entry, at)
    return np.asarray(np.where(np.isfinite(penalties.pairs), off, 0.0))


def _direction(
    field: PairwiseField,
    penalties: Penalties,
    point: Array,
    gradient: Array,
    live: NDArray[np.int64],
    where: NDArray[np.int64],
    tolerance: float,
) -> Array:
    """Minimise the quadratic model with its penalty over the parameters of columns and of live pairs."""
    bend = field.curvature(point, live)
    here, slope = point[where], gradient[where]
    cut = penalties.pairs[live]
    if not cut.any():
        return -_solved(bend, slope, 1e-10 * float(bend.diagonal().max()) + 1e-300)
    widths = field.starts[live + 1] - field.starts[live]
    first = field.n_single
    at = np.concatenate([[0], np.cumsum(widths)[:-1]])
    each = np.repeat(cut, widths)

    def smooth(x: Array) -> tuple[float, Array]:
        move = x - here
        pull = bend @ move
        return float(slope @ move + 0.5 * (move @ pull)), slope + pull

    def rough(x: Array) -> float:
        theta = x[first:]
        if penalties.group:
            return float(cut @ np.sqrt(np.add.reduceat(theta * theta, at)))
        return float(each @ np.abs(theta))

    def shrunk(x: Array, length: float) -> Array:
        found = x.copy()
        theta = found[first:]
        if penalties.group:
            norm = np.sqrt(np.add.reduceat(theta * theta, at))
            keep = np.maximum(1.0 - length * cut / np.maximum(norm, 1e-300), 0.0)
            theta *= np.repeat(keep, widths)
        else:
            theta[:] = np.sign(theta) * np.maximum(np.abs(theta) - length * each, 0.0)
        return found

    found = minimise_composite(smooth, rough, shrunk, here, INNER_STEPS, tolerance)
    return found.point - here


def _solved(bend: object, slope: Array, jitter: float) -> Array:
    from scipy.linalg import solve
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import spsolve

    size = len(slope)
    if size <= DENSE:
        matrix = bend.toarray()  # type: ignore[attr-defined]
        matrix[np.diag_indices(size)] += jitter
        return np.asarray(solve(matrix, slope, assume_a="sym"))
    return np.asarray(spsolve(csc_array(bend + jitter * eye_array(size)), slope))


def _size(field: PairwiseField, penalties: Penalties, point: Array) -> float:
    if not len(field.pairs):
        return 0.0
    theta = point[field.n_single :]
    cut = np.where(np.isfinite(penalties.pairs), penalties.pairs, 0.0)
    at = field.starts[:-1] - field.n_single
    if penalties.group:
        return float(cut @ np.sqrt(np.add.reduceat(theta * theta, at)))
    return float(cut @ np.add.reduceat(np.abs(theta), at))


def _any(field: PairwiseField, point: Array) -> NDArray[np.bool_]:
    if not len(field.pairs):
        return np.zeros(0, dtype=bool)
    at = field.starts[:-1] - field.n_single
    return np.asarray(np.logical_or.reduceat(point[field.n_single :] != 0, at))


def _places(field: PairwiseField, live: NDArray[np.int64]) -> NDArray[np.int64]:
    parts = [np.arange(field.n_single)]
    parts.extend(np.arange(field.starts[k], field.starts[k + 1]) for k in live)
    return np.concatenate(parts)
