"""Stochastic gradient descent with falling steps, scaled by feature, and an average of the last weights.

Method: `w <- prox(w - a_t * g_t / scale)`, where g_t estimates the gradient and `a_t = step / (1 + t / decay)` (Robbins and
Monro 1951). The answer is the mean of the weights over the last half of the run (Polyak and Juditsky 1992), which takes
most of the noise out; with L1 penalties it is the last point, so that zeros stay zero.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from markovia.learning.fields.penalties import Penalty
from markovia.optimise.averaging import SinceStep
from markovia.optimise.players import Player, UpdateRule
from markovia.optimise.row_batches import RowBatches
from markovia.optimise.training import Training, train
from markovia.runtime.array_types import Array

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
    steps, reason
        Steps made, and why they ended: "epochs" (all made), "time limit", or "interrupted".
    memory
        What the last step handed on.
    """

    weights: Array
    error: float
    noise: float
    norms: list[float]
    steps: int
    reason: str
    memory: Any = None


def descend(
    gradient: Callable[..., Any],
    start: Array,
    scale: Array,
    penalty: Penalty,
    *,
    steps: int,
    step: float,
    decay: float,
    memory: Any = None,
    about: Any = None,
    seed: int | None = None,
    time_limit: float | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> Descent:
    """Descend along estimates of a gradient.

    Parameters
    ----------
    gradient
        Takes weights and the number of the step, returns an estimate of the gradient of the mean loss; with `memory` it also
        takes what the last step handed on, and returns what to hand on.
    start, scale
        Weights to start from, and how curved the loss is along each, about.
    penalty
        Added to the loss.
    steps, step, decay
        How many steps, the first step's length, and the steps after which it is half as long.
    memory
        What the first step is handed: a tree of NumPy arrays.
    about, seed
        Arrays and the seed that tell the file of one run from that of another.
    time_limit, checkpoint, progress
        As in `Training`.
    """
    late = (1.0 - LAST) * steps
    first, memory_given = np.zeros(len(start)), memory is not None

    def loss(parameters: dict[str, Array], memory: Any, key: Any, batch: Any) -> Any:
        t, slope, squares, own = memory
        if memory_given:
            g, own = gradient(parameters["weights"], t, own)
        else:
            g = gradient(parameters["weights"], t)
        if t >= late:
            slope, squares = slope + g, squares + g**2
        return float(np.abs(g).max(initial=0.0)), (t + 1, slope, squares, own), {"weights": g}

    def update(slope: dict[str, Array], t: int, parameters: dict[str, Array]) -> Any:
        weights = parameters["weights"]
        length = step / (1.0 + t / decay) / scale
        moved = weights - length * (slope["weights"] + penalty.l2 * weights)
        if not penalty.smooth:
            moved = penalty.shrunk(moved, length)
        return {"weights": moved - weights}, t + 1

    trained = train(
        [Player(loss, ("weights",), traced=False)],
        {"weights": start.copy()},
        RowBatches(
            about, rows=np.zeros(1, dtype=np.int64)
        ),  # a step is a pass: `gradient` picks its own rows
        Training(epochs=steps, seed=seed, time_limit=time_limit, checkpoint=checkpoint, progress=progress),
        optimiser=UpdateRule(lambda _: 0, update),
        memory=(0, first, first, memory),
        averaging=SinceStep(-(-steps // 2)) if penalty.smooth else None,
        lenient=True,
    )
    done, slope, squares, memory = trained.memory
    if not done:
        raise KeyboardInterrupt
    weights, norms = trained.parameters["weights"], trained.values[:, 0].tolist()
    last = sum(t >= late for t in range(done))
    if not last:
        return Descent(weights, np.inf, np.inf, norms, done, trained.reason, memory)
    slope = slope / last
    noise = np.sqrt(np.maximum(squares / last - slope**2, 0.0) / last)
    error = penalty.residual(weights, slope + penalty.l2 * weights)
    return Descent(weights, error, float(noise.max(initial=0.0)), norms, done, trained.reason, memory)
