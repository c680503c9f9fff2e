"""Stochastic gradient descent with falling steps, scaled by feature, and an average of the last weights.

Method: `w <- prox(w - a_t * g_t / scale)`, where g_t estimates the gradient and `a_t = step / (1 + t / decay)` (Robbins and
Monro 1951). The answer is the mean of the weights over the last half of the run (Polyak and Juditsky 1992), which takes
most of the noise out; with L1 penalties it is the last point, so that zeros stay zero.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from markovia.learning.fields.penalties import Penalty
from markovia.runtime.array_types import Array
from markovia.runtime.progress import progress_bar

LAST = 0.25
"""The share of the run over which the gradient is averaged at the end."""


@dataclass(frozen=True)
class Descent:
    """Where stochastic gradients ended.

    Attributes
    ----------
    weights
        The averaged weights.
    error
        The largest entry of the mean gradient over the last quarter of the run (of a proximal step with it).
    noise
        The largest standard error of that mean, as if steps were independent.
    norms
        The largest entry of each gradient estimate.
    steps
        Steps made, fewer than asked for if interrupted.
    """

    weights: Array
    error: float
    noise: float
    norms: list[float]
    steps: int


def descend(
    gradient: Callable[[Array, int], Array],
    start: Array,
    scale: Array,
    penalty: Penalty,
    *,
    steps: int,
    step: float,
    decay: float,
    progress: bool | None = None,
) -> Descent:
    """Descend along estimates of a gradient.

    Parameters
    ----------
    gradient
        Takes weights and the number of the step, returns an estimate of the gradient of the mean loss.
    start, scale
        Weights to start from, and how curved the loss is along each, about.
    penalty
        Added to the loss.
    steps, step, decay
        How many steps, the first step's length, and the steps after which it is half as long.
    """
    weights = start.copy()
    mean, kept = np.zeros(len(start)), 0
    slope, squares, last = np.zeros(len(start)), np.zeros(len(start)), 0
    norms: list[float] = []
    done = 0
    with progress_bar(progress, steps) as advance:
        try:
            for t in range(steps):
                g = gradient(weights, t)
                norms.append(float(np.abs(g).max(initial=0.0)))
                if t >= (1.0 - LAST) * steps:
                    slope += g
                    squares += g**2
                    last += 1
                length = step / (1.0 + t / decay) / scale
                moved = weights - length * (g + penalty.l2 * weights)
                weights = moved if penalty.smooth else penalty.shrunk(moved, length)
                if 2 * t >= steps:
                    mean += weights
                    kept += 1
                done = t + 1
                advance(1)
        except KeyboardInterrupt:
            if not done:
                raise
    if kept and penalty.smooth:
        weights = mean / kept
    if not last:
        return Descent(weights, np.inf, np.inf, norms, done)
    slope /= last
    noise = np.sqrt(np.maximum(squares / last - slope**2, 0.0) / last)
    error = penalty.residual(weights, slope + penalty.l2 * weights)
    return Descent(weights, error, float(noise.max(initial=0.0)), norms, done)
