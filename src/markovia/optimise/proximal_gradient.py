"""Minimising a smooth convex function plus a penalty with a corner: proximal gradients with spectral steps.

Method: from a point x step against the gradient and apply the penalty's proximal operator; the step length is the inverse
curvature seen in the last move (Barzilai and Borwein 1988), shortened until the objective is below the largest of the last
few values (SpaRSA: Wright, Nowak and Figueiredo 2009). Weights that the penalty rules out are exactly zero. It needs one
value and gradient a step, and far fewer steps than a fixed step length.
Use it for L1, group L1 and sign constraints; for smooth penalties L-BFGS is faster.
"""

from collections.abc import Callable

import numpy as np

from markovia.optimise.minimise import Minimum
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now

LOOK_BACK = 5
"""How many values the next one may be compared with; more allow longer steps."""


def minimise_composite(
    smooth: Callable[[Array], tuple[float, Array]],
    rough: Callable[[Array], float],
    shrink: Callable[[Array, float], Array],
    start: Array,
    steps: int,
    tolerance: float,
) -> Minimum:
    """Minimise `smooth + rough`.

    Parameters
    ----------
    smooth
        Returns value and gradient of the smooth part.
    rough, shrink
        The other part, and its proximal operator at a point for a step length.
    start, steps, tolerance
        Where to start; steps at most; stop when a proximal step of length one moves no entry by more than this.

    Examples
    --------
    >>> target = np.array([3.0, 0.4])
    >>> found = minimise_composite(
    ...     lambda x: (0.5 * float((x - target) @ (x - target)), x - target),
    ...     lambda x: float(np.abs(x).sum()),
    ...     lambda x, t: np.sign(x) * np.maximum(np.abs(x) - t, 0.0),
    ...     np.zeros(2), 50, 1e-9)
    >>> found.point.round(6).tolist()
    [2.0, 0.0]
    """
    began = now()
    point = shrink(start, 0.0)
    value, gradient = smooth(point)
    total = value + rough(point)
    recent, history = [total], [total]
    length = min(1.0, 1.0 / max(float(np.abs(gradient).max(initial=0.0)), 1e-12))
    error = float(np.abs(point - shrink(point - gradient, 1.0)).max(initial=0.0))
    best = (total, point, error)
    reason, calls = "steps", 1
    for _ in range(steps):
        if error <= tolerance:
            break
        for _ in range(60):
            fresh = shrink(point - length * gradient, length)
            move = fresh - point
            squared = float(move @ move)
            value, slope = smooth(fresh)
            calls += 1
            tried = value + rough(fresh)
            if tried <= max(recent) - 1e-4 / (2 * length) * squared or squared < 1e-300:
                break
            length *= 0.4
        turn = float(move @ (slope - gradient))
        point, gradient = fresh, slope
        recent = [*recent[1 - LOOK_BACK :], tried]
        error = float(np.abs(point - shrink(point - gradient, 1.0)).max(initial=0.0))
        if tried <= best[0]:
            best = (tried, point, error)
        history.append(best[0])
        if squared < 1e-300:
            reason = "no lower point"
            break
        length = float(np.clip(squared / turn if turn > 0 else 10.0 * length, 1e-10, 1e10))
    value, point, error = best
    converged = error <= tolerance
    reason = "converged" if converged else reason
    iterations = len(history) - 1
    return Minimum(
        point, value, error, converged, reason, iterations, calls, tuple(history[1:]), now() - began
    )
