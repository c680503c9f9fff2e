"""Learning a generalised linear model row by row: the LMS rule and stochastic gradients.

    theta <- theta + rho (y_n - mu_n) x_n

is stochastic gradient ascent on the log likelihood with a canonical link; for a Gaussian response it is the LMS
(Widrow-Hoff) rule. Another link multiplies by d mu / d eta / V(mu). `lms` goes through the rows in their order, one at a
time, with a constant rho; `sgd` takes shuffled small batches with a falling rho and averages the iterates (Polyak &
Juditsky, 1992). Cost: p an observation and pass. For streams and for data too large for Newton's method; otherwise IRLS is
faster and exact.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.regression.objectives import GlmObjective, SoftmaxObjective
from markovia.optimise.averaging import ByPass
from markovia.optimise.players import Player, UpdateRule
from markovia.optimise.row_batches import Batch, RowBatches
from markovia.optimise.training import Training, train
from markovia.runtime.array_types import Array


class OnlineFit(NamedTuple):
    """What passes over the rows led to: the coefficients, steps made in all, passes, and whether `stop` ended them."""

    coef: Array
    steps: int
    passes: int
    stopped: bool


def learn_by_rows(
    objective: GlmObjective | SoftmaxObjective,
    l2: Array,
    start: Array,
    rho: float,
    *,
    batch: int | None = None,
    seed: int = 0,
    passes: int = 1,
    before: int = 0,
    averaged: bool = False,
    stop: Callable[[Array], bool] | None = None,
) -> OnlineFit:
    """Go through the rows so many times; the L2 penalty is shared equally among them.

    Parameters
    ----------
    objective, l2, start
        What is learned, its penalties, and where it starts.
    rho
        The rate; with `batch` that of the first step, from which it falls.
    batch, seed
        Rows a step, in an order made from the seed; None takes row by row in their order.
    before
        Steps that were made earlier, from which the rate has fallen.
    averaged
        Whether the answer is the average of the path.
    stop
        Asked after each pass, with the coefficients.
    """
    n = len(objective.x)
    batches = RowBatches(None, batch or 1, None if batch is None else seed, np.arange(n))

    def loss(parameters: dict[str, Array], memory: None, key: Any, some: Batch) -> Any:
        rows = some.rows[some.weight > 0]
        slope = l2 * parameters["coef"] / n - objective.row_score(parameters["coef"], rows) / len(rows)
        return float(slope @ slope), memory, {"coef": slope}

    def update(slope: dict[str, Array], step: int, _: Any) -> Any:
        rate = rho if batch is None else rho / (1.0 + 0.01 * step) ** 0.6
        return {"coef": -rate * slope["coef"]}, step + 1

    with np.errstate(over="ignore", invalid="ignore"):  # a rule that diverges is refused below
        trained = train(
            [Player(loss, ("coef",), traced=False)],
            {"coef": start},
            batches,
            Training(epochs=passes, seed=seed, progress=False),
            optimiser=UpdateRule(lambda _: before, update),
            averaging=ByPass(batches.steps) if averaged else None,
            stop=None if stop is None else lambda _, parameters, __: stop(parameters["coef"]),
        )
    if trained.failed:
        raise diverged(rho)
    if trained.reason == "interrupted":
        raise KeyboardInterrupt
    return OnlineFit(
        trained.parameters["coef"], before + trained.steps, len(trained.curve), trained.reason == "settled"
    )


def diverged(rho: float) -> InvalidArgument:
    """Return the error of a rate that is too large."""
    return InvalidArgument(f"the online rule left the model with learning_rate={rho:g}; give a smaller one")


def safe_rate(x: Array, weights: Array, curvature: float) -> float:
    """Return a learning rate that is stable for rows of this size: half over the largest curvature of a row."""
    largest = float(np.max(weights * (x**2).sum(axis=1), initial=0.0))
    return 0.5 / max(curvature * largest, 1e-12)
