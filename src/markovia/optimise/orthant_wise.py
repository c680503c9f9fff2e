"""Minimising a smooth function plus weighted absolute values of many unknowns: orthant-wise limited-memory BFGS.

Method (OWL-QN; Andrew and Gao 2007): inside an orthant absolute values are linear, so a quasi-Newton step is made for the
smooth part, from the steepest way down of the whole, and cut off where an unknown would change its sign. Unknowns that the
penalty rules out are exactly zero. Cost of a step: one or a few values of the function and a few dozen vector operations.
"""

from collections.abc import Callable

import numpy as np

from markovia.optimise.limited_memory_bfgs import MEMORY, direction, dot
from markovia.runtime.array_types import Array


def minimise_sparse(
    function: Callable[[Array], tuple[float, Array]],
    lasso: Array,
    start: Array,
    steps: int,
    tolerance: float,
    *,
    flat: float = 0.0,
    each: Callable[[Array], object] | None = None,
) -> tuple[Array, float, float, int]:
    """Minimise `function(x) + lasso @ abs(x)`; arguments and answer as in `limited_memory_bfgs.minimise_smooth`.

    The value is that of the whole, the error the largest entry of its steepest way down.

    Examples
    --------
    >>> target = np.array([3.0, 0.4, -2.0])
    >>> def half_square(x):
    ...     return 0.5 * float((x - target) @ (x - target)), x - target
    >>> point, value, error, calls = minimise_sparse(half_square, np.array([1.0, 1.0, 0.0]), np.zeros(3), 50, 1e-9)
    >>> point.round(6).tolist(), round(value, 6)
    ([2.0, 0.0, -2.0], 2.58)
    """
    point = np.array(start, dtype=np.float64)
    smooth, gradient = function(point)
    value = smooth + dot(lasso, np.abs(point))
    calls = 1
    moves: list[tuple[Array, Array, float]] = []
    steepest = _steepest(point, gradient, lasso)
    fresh = False
    for _ in range(steps):
        if float(np.abs(steepest).max(initial=0.0)) <= tolerance:
            break
        way = direction(steepest, moves)
        way[(way * steepest >= 0.0) & (lasso > 0.0)] = 0.0
        slope = dot(steepest, way)
        if not slope < 0.0:
            moves.clear()
            way, slope = -steepest, -dot(steepest, steepest)
        side = np.where(point != 0.0, np.sign(point), -np.sign(steepest))
        size = 1.0 if moves else min(1.0, 1.0 / float(np.sqrt(-slope)))
        while True:
            tried = point + size * way
            tried[(tried * side < 0.0) & (lasso > 0.0)] = 0.0
            smooth, change = function(tried)
            calls += 1
            total = smooth + dot(lasso, np.abs(tried))
            if total <= value + 1e-4 * dot(steepest, tried - point) or size <= 1e-10:
                break
            size *= 0.5
        if not total < value:
            if not moves:
                break
            moves.clear()
            continue
        step, turn = tried - point, change - gradient
        bend = dot(step, turn)
        if bend > 1e-14 * dot(step, step):
            moves.append((step, turn, 1.0 / bend))
            del moves[:-MEMORY]
        fall = value - total
        point, value, gradient = tried, total, change
        steepest = _steepest(point, gradient, lasso)
        if each is not None:
            each(point)
        if fall <= flat * max(abs(value), abs(value + fall), 1.0) and flat > 0.0:
            if not moves or fresh:
                break
            moves.clear()  # a step cut off at many zeros may be short far from the bottom
            fresh = True
        else:
            fresh = False
    return point, value, float(np.abs(steepest).max(initial=0.0)), calls


def _steepest(point: Array, gradient: Array, lasso: Array) -> Array:
    """Return the gradient on the side to which the whole falls; zero where it rises on both."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - lasso, 0.0)
    return np.where(point != 0.0, gradient + np.sign(point) * lasso, at_zero)
