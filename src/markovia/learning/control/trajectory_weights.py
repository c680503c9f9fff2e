"""Rows of decisions that were logged, one stage after another, and how much each row counts for another policy.

A row that the logging took from h_1 by a_1 to h_2 and so on stands for a policy pi with the weight

    W_t = prod_{s <= t} pi_s(a_s | h_s) / b_s(a_s | h_s),

where b are the probabilities of what was done (the behaviour). These are either known or fitted to the same rows, by
shares within each history ("tabular"), a logistic regression ("linear") or any classifier. Weights that are fitted by
maximum likelihood err less than known ones: what the fitted probabilities explain of an influence function is taken off
it. Where the policy acts as the logging never does, no weight helps, and the rows are refused.

References: Robins, *A new approach to causal inference in mortality studies* (1986); Precup, Sutton & Singh, *Eligibility
traces for off-policy policy evaluation* (2000); Hirano, Imbens & Ridder, *Efficient estimation of average treatment
effects* (2003). Cost: one pass over the rows a stage, and the fits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, NoOverlap
from markovia.learning.regression.iteratively_reweighted import fit_softmax
from markovia.learning.regression.nuisance import (
    as_estimator,
    few_threads,
    fitted,
    learner_for,
    softmax,
    with_intercept,
)
from markovia.runtime.array_types import Array, Ints

FLOOR = 1e-3
"""What the logging does more rarely than this does not count as overlap, unless the caller says so."""


class LoggedStage(NamedTuple):
    """One decision of every row.

    Attributes
    ----------
    name, actions
        What the decision is called, and what may be done.
    history
        Shape (n, columns): all that was known by then, as numbers.
    cell
        Shape (n,): the number of the row's history among the different ones.
    action
        Shape (n,): which of the actions was taken.
    reward
        Shape (n,): what was gained after it, before the next decision.
    """

    name: str
    actions: tuple[Any, ...]
    history: Array
    cell: Ints
    action: Ints
    reward: Array

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.action)

    def take(self, rows: Any) -> "LoggedStage":
        """Return some of the rows."""
        parts = (self.history[rows], self.cell[rows], self.action[rows], self.reward[rows])
        return LoggedStage(self.name, self.actions, *parts)


class StageOverlap(NamedTuple):
    """How far the logging reaches the policy at a stage.

    Attributes
    ----------
    name
        The decision.
    following
        Rows that have done what the policy may do, up to and with this stage.
    least
        The smallest probability with which the logging does what the policy does.
    largest, effective
        The largest weight, where their mean is one, and the effective sample size of the weights.
    """

    name: str
    following: int
    least: float
    largest: float
    effective: float


def cumulative_weights(asked: Sequence[Array], logged: Sequence[Array], floor: float = 0.0) -> Array:
    """Return products over the stages so far, shape (stages, n): what was asked for over what was logged.

    Parameters
    ----------
    asked, logged
        For each stage the probability of what was done, under the policy and under the logging.
    floor
        Smaller probabilities of the logging are raised to this.

    Examples
    --------
    >>> cumulative_weights([np.array([1.0, 0.0]), np.array([0.5, 1.0])], [np.array([0.5, 0.5])] * 2).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    ratios = [
        np.divide(a, np.maximum(b, floor), out=np.zeros_like(a, dtype=np.float64), where=a > 0)
        for a, b in zip(asked, logged, strict=True)
    ]
    return np.asarray(np.cumprod(ratios, axis=0))


def effective_sample_size(weights: Array) -> float:
    """Return (sum of weights)^2 / sum of squared weights, over the last axis: how many equal weights are worth as much.

    Examples
    --------
    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    scaled = weights / largest
    return float(scaled.sum() ** 2 / (scaled @ scaled))


def of_taken(stage: LoggedStage, probabilities: Array) -> Array:
    """Return the probability of what was done, one a row."""
    return np.asarray(probabilities[np.arange(stage.n), stage.action])


def reached(stages: Sequence[LoggedStage], policy: Sequence[Array]) -> list[Any]:
    """Return for each stage which rows come to it when they do only what the policy may do; one entry more at the end."""
    inside = np.ones(stages[0].n, dtype=bool)
    found = [inside]
    for stage, asked in zip(stages, policy, strict=True):
        inside = inside & (of_taken(stage, asked) > 0)
        found.append(inside)
    return found


def logged_probabilities(stage: LoggedStage, learner: Any, train: Any, seed: int = 0) -> Array:
    """Fit the probabilities of the actions on some of the rows; return those of all rows, shape (n, actions)."""
    learner = learner_for(learner, "treatment")
    arms = len(stage.actions)
    if learner == "tabular":
        size = (int(stage.cell.max(initial=-1)) + 1) * arms
        counts = np.bincount((stage.cell * arms + stage.action)[train], minlength=size).reshape(-1, arms)
        return np.asarray((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))[stage.cell])
    present = np.unique(stage.action[train])
    probabilities = np.zeros((stage.n, arms))
    if len(present) == 1:
        probabilities[:, present[0]] = 1.0
        return probabilities
    x, codes = stage.history, np.searchsorted(present, stage.action[train])
    if len(present) == 2:
        second = fitted(learner, x[train], codes.astype(float), "bernoulli", seed)(x)
        probabilities[:, present] = np.column_stack([1 - second, second])
    elif learner == "linear":
        hot = np.eye(len(present))[codes]
        coef = fit_softmax(with_intercept(x[train]), hot, max_iter=60).coef
        probabilities[:, present] = softmax(with_intercept(x) @ coef.T)
    else:
        with few_threads(len(codes)):
            model = as_estimator(learner, True, seed).fit(x[train], codes)
        probabilities[:, present] = model.predict_proba(x)
    return probabilities


def check_overlap(stage: LoggedStage, asked: Array, logged: Array, inside: Any, floor: float = FLOOR) -> None:
    """Refuse rows in which the policy does what the logging (almost) never does.

    Raises
    ------
    NoOverlap
        With the stage, the action and the rows.
    """
    bare = (asked > 0) & (logged < floor) & inside[:, None]
    if not bare.any():
        return
    worst = int(bare.sum(axis=0).argmax())
    rows = np.flatnonzero(bare[:, worst])
    shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    raise NoOverlap(
        f"at {stage.name!r} the policy takes {stage.actions[worst]!r} in {len(rows)} row{'s' * (len(rows) != 1)} "
        f"(positions {shown}) in which the logged probability of it is below {floor:g}; ask for a policy nearer to the "
        "data, a smoother learner, or other rows"
    )


def overlap_report(
    stages: Sequence[LoggedStage], policy: Sequence[Array], logged: Sequence[Array], weights: Array
) -> tuple[StageOverlap, ...]:
    """Return for each stage how many rows follow the policy and how unequal their weights are."""
    inside = reached(stages, policy)
    found = []
    for t, stage in enumerate(stages):
        needed = (policy[t] > 0) & inside[t][:, None]
        least = float(logged[t][needed].min()) if needed.any() else 0.0
        mean = float(weights[t].mean())
        largest = float(weights[t].max()) / mean if mean > 0 else 0.0
        following = int(inside[t + 1].sum())
        found.append(StageOverlap(stage.name, following, least, largest, effective_sample_size(weights[t])))
    return tuple(found)


def without_fitted(
    influence: Array, stages: Sequence[LoggedStage], logged: Sequence[Array], learner: Any
) -> Array:
    """Take off an influence function what probabilities explain that were fitted to all rows.

    It is projected on the scores of the fitted probabilities and the residual kept. For shares within histories the
    projection is the mean given history and action less the mean given history, and scores of different stages are
    orthogonal; what is left varies about means of few rows, and is scaled up for it. Other learners than "tabular" and
    "linear" have no scores: then nothing is taken off, which leaves intervals too wide.
    """
    learner = learner_for(learner, "treatment")
    if learner == "tabular":
        # histories are nested, so the last stage's means hold all that earlier ones are means of
        found, left = np.zeros_like(influence), influence
        for stage in reversed(stages):
            both = stage.cell * len(stage.actions) + stage.action
            found += (left - group_means(both, left)[both]) * unshrunk(1.0 / np.bincount(both)[both])
            left = group_means(stage.cell, left)[stage.cell]
        return np.asarray(found + left)
    if learner != "linear":
        return influence
    columns = []
    for stage, p in zip(stages, logged, strict=True):
        away = (np.eye(len(stage.actions))[stage.action] - p)[:, 1:]
        rows = with_intercept(stage.history)
        columns.append((away[:, :, None] * rows[:, None, :]).reshape(stage.n, -1))
    scores = np.column_stack(columns)
    return np.asarray(influence - scores @ np.linalg.lstsq(scores, influence, rcond=None)[0])


def unshrunk(leverage: Array) -> Array:
    """Return what residuals of least squares are scaled with to have the variance of errors: 1 / sqrt(1 - leverage).

    A leverage of 1 leaves no residual to scale.
    """
    return np.asarray(1.0 / np.sqrt(np.where(leverage < 1.0 - 1e-9, 1.0 - leverage, 1.0)))


def group_means(group: Ints, values: Array) -> Array:
    """Return the mean of the values in each group; 0 where a number has no row."""
    return np.asarray(np.bincount(group, values) / np.maximum(np.bincount(group), 1))


def check_stages(stages: Sequence[LoggedStage]) -> None:
    """Refuse stages without rows, or of different lengths."""
    if not stages or stages[0].n == 0:
        raise InvalidArgument("a policy is evaluated on rows of one stage or more; there are none")
    if any(stage.n != stages[0].n for stage in stages):
        raise InvalidArgument("all stages need the same rows, in the same order")
