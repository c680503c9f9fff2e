"""Inverse reinforcement learning by maximum entropy: rewards, of features or a module, that explain demonstrations.

Whoever demonstrates is taken to act softly: the more an action is worth, the more often it is taken (`soft_counts.py`).
The reward is r = features . w. Two models of the demonstrations differ where moves are random:

    "causal"      p(actions | states as they come): local normalisation, as of a maximum-entropy Markov model. With
                  steps to go the weights maximise the mean of w . observed features - V(first state), the dual of the
                  largest causal entropy among all policies with the observed features (Ziebart, Bagnell and Dey 2010).
    "trajectory"  p(trajectory) proportional to the process's probabilities times exp(sum of rewards / tau): global
                  normalisation, as of a conditional random field; whoever acts counts on luck (Ziebart et al. 2008).
                  This is the likelihood of whole trajectories given their first states.

Both are concave, with gradient observed minus expected features, and equal where moves are certain. With a discount and
no last step the log likelihood of the actions under the stationary soft policy is maximised; it need not be concave,
and its gradient is one linear solve. Rewards are known only up to what changes no soft policy: r + h(s) - gamma E h(s')
explains everything as well (Ng, Harada and Russell 1999). `flat` says in how many directions the features leave that
open.

Cost of a step: horizon times nonzeros of the transitions; with a discount a soft value iteration and a sparse solve.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from markovia.errors import ConvergenceWarning, warn_user
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.demonstrations import RewardFeatures
from markovia.learning.control.reward_objectives import RewardObjective
from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.shown import InNotebooks, aligned

STEP = 1e-3
"""The step of differences of gradients, in units of the weights."""
FLAT = 1e-7
"""A curvature that counts as none, relative to the largest."""
NOISE = 1e-9
"""A curvature that counts as none, relative to the features that are observed: what rounding leaves of differences."""
TOLERANCE = 1e-7
"""The largest entry of the gradient at which weights count as found, features in units of their size."""
NEAR = 0.01
"""How far away, in units of the weights, a top of the objective may be that counts as reached."""


@dataclass(frozen=True)
class InverseReward(InNotebooks):
    """Rewards that explain demonstrations.

    Attributes
    ----------
    weights, standard_errors
        One a feature. Errors are NaN where the features leave directions open, or where there are fewer trajectories
        than features.
    rewards
        (S, A).
    policy
        The soft policy: (S, A), or (steps, S, A) with a horizon, the first step first.
    log_likelihood
        Of the actions given the states under that policy; for "trajectory" of the trajectories given their first
        states.
    observed, expected
        Mean features of a demonstration, and what the policy leads to from the same first states; None for a module.
    flat
        In how many directions of the weights nothing changes; None for a module.
    converged, reason
        Whether observed and expected features agree to the tolerance, and why it ended.
    history
        The mean objective after each step, which is minimised.
    module
        The trained module, where there is one.
    """

    weights: Array | None
    standard_errors: Array | None
    rewards: Array
    policy: Array
    log_likelihood: float
    observed: Array | None
    expected: Array | None
    flat: int | None
    converged: bool
    reason: str
    history: tuple[float, ...]
    names: list[str] = field(repr=False)
    process: DecisionProcess = field(repr=False)
    model: str = "causal"
    module: Any = field(default=None, repr=False)

    @property
    def solved(self) -> DecisionProcess:
        """The process with these rewards, to plan in."""
        return replace(self.process, rewards=self.rewards)

    def __str__(self) -> str:
        head = f"inverse reward ({self.model}): log likelihood {self.log_likelihood:.6g}, {self.reason}"
        if (
            self.weights is None
            or self.standard_errors is None
            or self.observed is None
            or self.expected is None
        ):
            return head
        open_ = f"; {self.flat} directions of the weights are left open" if self.flat else ""
        columns = zip(
            self.names, self.weights, self.standard_errors, self.observed, self.expected, strict=True
        )
        rows = [[name, *(f"{v:.6g}" for v in values)] for name, *values in columns]
        return f"{head}{open_}\n{aligned(['feature', 'weight', 'error', 'observed', 'expected'], rows)}"


def fitted_weights(
    objective: RewardObjective, given: RewardFeatures, *, l2: float, max_iter: int, time_limit: float | None
) -> InverseReward:
    """Return the weights of features at which the objective of demonstrations is least.

    Parameters
    ----------
    objective
        What rewards are good for.
    given
        What rewards are made of.
    l2
        Half of it times the squared weights is added, in the sum over trajectories.
    max_iter, time_limit
        Steps and seconds at most.
    """
    features, n = given.values, len(objective.shown)
    size = np.abs(features).max(axis=(0, 1))
    size = np.where(size > 0, size, 1.0)
    units = objective.temperature / size  # a weight of one unit changes a reward by up to a temperature

    def loss(w: Array) -> tuple[float, Array]:
        value, slope = objective.loss(features @ w)
        gradient = np.tensordot(slope, features, 2)
        return value + 0.5 * l2 / n * float(w @ w), gradient + l2 / n * w

    with Clock(time_limit, progress=False) as clock:
        found = minimise(
            loss, np.zeros(features.shape[-1]), convex=objective.convex, height=objective.temperature, units=units,
            max_iter=max_iter, tol=TOLERANCE, clock=clock,
        )  # fmt: skip
    w = found.point
    rewards = features @ w
    observed = np.tensordot(objective.observed, features, 2) / n
    # in units of the weights and the temperature
    bends = _curvature(loss, w, units) * np.outer(units, units) / objective.temperature
    floor = NOISE * (1.0 + float(np.abs(observed / size).max()))
    far = _distance_to_top(bends, loss(w)[1] * units / objective.temperature, floor)
    if not found.converged or far > NEAR:
        warn_user(
            f"the weights are not final: {_doubt(found)}; a penalty such as l2=1 may do", ConvergenceWarning
        )
    values = np.linalg.eigvalsh(bends)
    flat = int((values <= max(FLAT * float(values.max()), floor)).sum())
    errors = np.full(len(w), np.nan)
    if not flat:
        errors = objective.errors(rewards, features, bends * objective.temperature / np.outer(units, units))
    gap = np.tensordot(objective.loss(rewards)[1], features, 2)  # expected minus observed
    return InverseReward(
        w, errors, rewards, objective.policy(rewards), objective.log_likelihood(rewards), observed, observed + gap, flat,
        found.converged and far <= NEAR, found.reason, found.history, given.names, objective.process, objective.model,
    )  # fmt: skip


def _doubt(found: Minimum) -> str:
    """Say why the weights may go on to grow."""
    if found.reason in ("time limit", "interrupted"):
        return f"it ended by {found.reason!r}"
    return (
        "rewards grow without end where demonstrations are perfect, or where moves were luckier than any policy can "
        "expect (more trajectories help)"
    )


def _curvature(loss: Callable[[Array], tuple[float, Array]], w: Array, units: Array) -> Array:
    """Return the matrix of second derivatives by central differences of the gradient."""
    found = np.empty((len(w), len(w)))
    for i, unit in enumerate(units):
        move = np.zeros(len(w))
        move[i] = STEP * unit
        found[i] = (loss(w + move)[1] - loss(w - move)[1]) / (2.0 * STEP * unit)
    return 0.5 * (found + found.T)


def _distance_to_top(bends: Array, slope: Array, floor: float) -> float:
    """Return the largest entry of a Newton step, in directions that bend at all."""
    values, directions = np.linalg.eigh(bends)
    held = values > 0.1 * floor
    step = directions[:, held] @ ((slope @ directions[:, held]) / values[held])
    return float(np.abs(step).max(initial=0.0))
