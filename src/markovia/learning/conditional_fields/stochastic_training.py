"""Minimising the objective of a conditional random field by stochastic gradients.

A step takes a few instances, with AdaGrad's step sizes (Duchi, Hazan and Singer 2011), shrinks what an l1 penalty holds back
and stays above bounds; the answer is the mean of the last half of the path (Polyak and Juditsky 1992). Use it for very many
instances, and for Gibbs marginals, which are noisy; `optimise/minimise.py` reaches the optimum to many digits. With
one batch that holds all instances these are plain gradient steps with falling step sizes.
"""

from typing import Any, Protocol

import numpy as np

from markovia.optimise.averaging import SinceDoubling
from markovia.optimise.limited_memory_bfgs import dot
from markovia.optimise.minimise import Minimum
from markovia.optimise.players import Player, UpdateRule
from markovia.optimise.row_batches import Batch, RowBatches
from markovia.optimise.training import Training, train
from markovia.runtime.array_types import Array, Ints


class FieldObjective(Protocol):
    """What `descend` minimises: a sum over instances, and absolute values with weights."""

    lasso: Array

    @property
    def n_instances(self) -> int:
        """The number of instances."""

    def __call__(self, theta: Array, which: Ints | None = None) -> tuple[float, Array]:
        """Return the smooth part and its gradient, of some instances."""


def descend(
    objective: FieldObjective,
    start: Array,
    rng: np.random.Generator,
    *,
    batch_size: int = 32,
    learning_rate: float = 0.1,
    lower: Array | None = None,
    max_iter: int = 50,
    tol: float = 1e-4,
    progress: bool | None = None,
) -> Minimum:
    """Minimise the objective by stochastic gradients: `max_iter` passes over the instances in random batches.

    Converged means that the mean of the path changed by less than `tol` (largest entry) in one pass. The value is the last
    estimate, from one pass. Ctrl-C keeps the mean so far.
    """
    n = objective.n_instances
    batches = RowBatches(None, batch_size, int(rng.integers(2**32)), np.arange(n))
    last = np.array(start, dtype=np.float64)
    moved = np.inf

    def loss(parameters: dict[str, Array], memory: None, key: Any, batch: Batch) -> Any:
        theta = parameters["theta"]
        which = np.sort(batch.rows[batch.weight > 0]).astype(np.int64)
        value, gradient = objective(theta, which)
        whole = value + len(which) / n * dot(objective.lasso, np.abs(theta))
        # as if all batches were like this one: the mean over a pass is the sum over its batches
        return batches.steps * whole, memory, {"theta": gradient / len(which)}

    def settled(epoch: int, parameters: dict[str, Array], _: tuple[float, ...]) -> bool:
        nonlocal last, moved
        moved, last = float(np.abs(parameters["theta"] - last).max(initial=0.0)), parameters["theta"]
        begins = epoch & (epoch - 1) == 0  # the mean begins anew when passes double
        return not begins and moved < tol

    trained = train(
        [Player(loss, ("theta",), traced=False)],
        {"theta": last},
        batches,
        Training(epochs=max_iter, seed=batches.seed, progress=progress),
        optimiser=_proximal_adagrad(learning_rate, objective.lasso / n, lower),
        averaging=SinceDoubling(batches.steps),
        stop=settled,
        lenient=True,  # Gibbs marginals come without a value
    )
    reason = {"settled": "converged", "epochs": "steps"}.get(trained.reason, trained.reason)
    curve = trained.curve
    return Minimum(
        trained.parameters["theta"], curve[-1] if curve else np.nan, moved, reason == "converged", reason, len(curve),
        trained.steps, curve, trained.seconds,
    )  # fmt: skip


def _proximal_adagrad(rate: float, lasso: Array, lower: Array | None) -> UpdateRule:
    """Return steps of `rate` over the root of the squared gradients so far, each followed by the penalty's proximal step."""

    def update(gradient: dict[str, Array], squares: Array, parameters: dict[str, Array]) -> Any:
        theta, slope = parameters["theta"], gradient["theta"]
        squares = squares + slope**2
        own = rate / np.sqrt(squares + 1e-12)
        moved = theta - own * slope
        moved = np.sign(moved) * np.maximum(np.abs(moved) - own * lasso, 0.0)
        if lower is not None:
            moved = np.maximum(moved, lower)
        return {"theta": moved - theta}, squares

    return UpdateRule(lambda parameters: np.zeros(len(parameters["theta"])), update)
