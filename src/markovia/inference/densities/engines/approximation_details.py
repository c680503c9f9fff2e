"""How good an approximation is, by the weights of its draws: the tail index, the log evidence, effective draws."""

from dataclasses import dataclass
from math import inf, log

import numpy as np

from markovia.inference.densities.program.density import Density
from markovia.inference.result import Course
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k
from markovia.runtime.array_types import Array

FEW_JUDGED = 200
MOST_CELLS = 2**26


@dataclass(frozen=True)
class ApproximationDetails:
    """What an approximation by a distribution that is easy to draw from has to say.

    Attributes
    ----------
    pareto_k
        The tail index of the weights p / q of its draws: below 0.5 the approximation is good, above 0.7 it is not.
    log_mass, log_mass_error
        The log evidence by importance sampling from it, and its standard error.
    effective_draws
        How many independent draws of the posterior its draws are worth, once weighed.
    trace
        For variational methods, the evidence lower bound along the optimisation, after every so many steps.
    """

    pareto_k: float
    log_mass: float
    log_mass_error: float
    effective_draws: float
    trace: tuple[float, ...] = ()
    every: int = 1

    @property
    def course(self) -> Course | None:
        """How the bound rose; None where there was nothing to optimise step by step."""
        if not self.trace:
            return None
        steps = tuple(range(1, 1 + self.every * len(self.trace), self.every))
        return Course(steps, self.trace, "evidence lower bound", "step")


def weighed(density: Density, draws: int, batch: int | None = None) -> int:
    """Return how many draws are weighed to judge a fit: few with many rows of data, or where batches are looked at."""
    from jax.tree_util import tree_leaves

    cells = sum(np.size(leaf) for leaf in tree_leaves(density.data))
    return min(draws, FEW_JUDGED if batch is not None else max(FEW_JUDGED, MOST_CELLS // max(1, cells)))


def judged(log_weights: Array, trace: tuple[float, ...] = (), every: int = 1) -> ApproximationDetails:
    """Return what the logs of weights p / q say of an approximation q."""
    logs = np.where(np.isfinite(log_weights), log_weights, -np.inf).ravel()
    top = float(logs.max())
    if not np.isfinite(top):
        return ApproximationDetails(inf, -inf, inf, 0.0, trace, every)
    w = np.exp(logs - top)
    n, total, squares = len(w), float(w.sum()), float(w @ w)
    error = float(np.sqrt(max(0.0, squares / total**2 - 1.0 / n)))
    return ApproximationDetails(pareto_k(logs), top + log(total / n), error, total**2 / squares, trace, every)
