"""Minimising a smooth convex function of many unknowns: limited-memory BFGS.

Method: quasi-Newton steps from the last few changes of the gradient (two-loop recursion; Nocedal 1980), each shortened until
the function falls enough (Armijo). Every value is lower than the one before. Cost of a step: one or a few values of the
function and a few dozen vector operations. Written out here because the library routine calls a threaded linear-algebra
package for vectors of a few dozen numbers, which on a busy machine costs more than the function itself.
"""

from collections.abc import Callable

import numpy as np

from markovia.runtime.array_types import Array

MEMORY = 12
LONG = 20_000
"""Entries from which compiled code is faster than a call of NumPy for each operation."""


def minimise_smooth(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    steps: int,
    tolerance: float,
    *,
    flat: float = 0.0,
    each: Callable[[Array], object] | None = None,
) -> tuple[Array, float, float, int]:
    """Minimise a function given with its gradient.

    Parameters
    ----------
    function
        Returns the value and the gradient at a point.
    start
        Where to start.
    steps
        Steps at most.
    tolerance
        Stop when no entry of the gradient is larger than this.
    flat
        Stop after a step in which the value fell by no more than this share of it.
    each
        Called with the point after each step.

    Returns
    -------
    tuple
        The point, its value, the largest entry of its gradient, and the values of the function that were asked for.

    Examples
    --------
    >>> point, value, _, _ = minimise_smooth(lambda x: (float(x @ x), 2 * x), np.array([1.0, -3.0]), 50, 1e-9)
    >>> round(value, 9), bool(np.abs(point).max() < 1e-6)
    (0.0, True)
    """
    point = start.copy()
    value, gradient = function(point)
    calls = 1
    moves: list[tuple[Array, Array, float]] = []
    for _ in range(steps):
        if float(np.abs(gradient).max(initial=0.0)) <= tolerance:
            break
        way = direction(gradient, moves)
        slope = dot(gradient, way)
        if not slope < 0.0:
            moves.clear()
            way, slope = -gradient, -dot(gradient, gradient)
        size = 1.0 if moves else min(1.0, 1.0 / float(np.sqrt(-slope)))
        tried, change = function(point + size * way)
        calls += 1
        while not tried <= value + 1e-4 * size * slope and size > 1e-10:
            # the minimum of the parabola through both values, kept between a tenth and a half
            curve = tried - value - size * slope
            part = -0.5 * size * slope / curve if np.isfinite(curve) and curve > 0 else 0.1
            size *= min(0.5, max(0.1, part))
            tried, change = function(point + size * way)
            calls += 1
        if not tried < value:
            if not moves:
                break
            moves.clear()
            continue
        step, turn = size * way, change - gradient
        bend = dot(step, turn)
        if bend > 1e-14 * dot(step, step):
            moves.append((step, turn, 1.0 / bend))
            del moves[:-MEMORY]
        fall = value - tried
        point, value, gradient = point + step, tried, change
        if each is not None:
            each(point)
        if fall <= flat * max(abs(value), abs(value + fall), 1.0) and flat > 0.0:
            break
    return point, value, float(np.abs(gradient).max(initial=0.0)), calls


def dot(left: Array, right: Array) -> float:
    """Return the product of two vectors; without linear algebra, whose threads spin beside compiled work."""
    return float(np.einsum("i,i->", left, right))


def direction(gradient: Array, moves: list[tuple[Array, Array, float]]) -> Array:
    """Return minus the inverse Hessian, as the last moves suggest it, times the gradient."""
    way = -gradient
    if not moves:
        return way
    add = _add_and_multiply
    if len(way) > LONG:
        from markovia.kernels.long_vectors import add_and_multiply as add
    shares = []
    inner = add(0.0, way, way, moves[-1][0])
    for q in range(len(moves) - 1, -1, -1):
        _, turn, weight = moves[q]
        shares.append(weight * inner)
        inner = add(-shares[-1], turn, way, moves[q - 1][0] if q else turn)
    _, turn, weight = moves[-1]
    way /= weight * add(0.0, turn, turn, turn)
    inner = add(0.0, way, way, moves[0][1])
    for q, share in enumerate(reversed(shares)):
        step, _, weight = moves[q]
        inner = add(share - weight * inner, step, way, moves[q + 1][1] if q + 1 < len(moves) else step)
    return way


def _add_and_multiply(share: float, change: Array, vector: Array, other: Array) -> float:
    if share:
        vector += share * change
    return dot(vector, other)
