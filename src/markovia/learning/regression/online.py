"""Learning a generalised linear model row by row: the LMS rule and stochastic gradients.

    theta <- theta + rho (y_n - mu_n) x_n

is stochastic gradient ascent on the log likelihood with a canonical link; for a Gaussian response it is the LMS
(Widrow-Hoff) rule. Another link multiplies by d mu / d eta / V(mu). `lms` goes through the rows in their order, one at a
time, with a constant rho; `sgd` takes shuffled small batches with a falling rho and averages the iterates (Polyak &
Juditsky, 1992). Cost: p an observation and pass. For streams and for data too large for Newton's method; otherwise IRLS is
faster and exact.
"""

import numpy as np

from markovia.learning.regression.objectives import GlmObjective, SoftmaxObjective
from markovia.runtime.array_types import Array


def lms_pass(objective: GlmObjective | SoftmaxObjective, l2: Array, b: Array, rho: float) -> Array:
    """Go once through the rows in their order; the L2 penalty is shared equally among them."""
    n = len(objective.x)
    for i in range(n):
        b = b + rho * (objective.row_score(b, slice(i, i + 1)) - l2 * b / n)
    return b


def sgd_pass(
    objective: GlmObjective | SoftmaxObjective,
    l2: Array,
    b: Array,
    rho: float,
    batch: int,
    clock: int,
    rng: np.random.Generator,
) -> tuple[Array, Array, int]:
    """Go once through the rows in a random order; return the last iterate, the average over the pass and the clock."""
    n = len(objective.x)
    order = rng.permutation(n)
    total = np.zeros_like(b)
    steps = 0
    for begin in range(0, n, batch):
        rows = order[begin : begin + batch]
        size = rho / (1.0 + 0.01 * clock) ** 0.6
        b = b + size * (objective.row_score(b, rows) / len(rows) - l2 * b / n)
        total += b
        steps += 1
        clock += 1
    return b, total / max(steps, 1), clock


def safe_rate(x: Array, weights: Array, curvature: float) -> float:
    """Return a learning rate that is stable for rows of this size: half over the largest curvature of a row."""
    largest = float(np.max(weights * (x**2).sum(axis=1), initial=0.0))
    return 0.5 / max(curvature * largest, 1e-12)
