"""What a policy is worth, from rows in which another one acted.

With weights W_t (`trajectory_weights`), rewards r_t, values Q_t(h, a) and V_t(h) = sum_a pi_t(a | h) Q_t(h, a):

| method | estimate |
|---|---|
| importance | mean of W_T sum_t r_t |
| weighted | the same over the mean of W_T (self-normalised) |
| per-decision | mean of sum_t W_t r_t: a reward is not weighted by what is decided after it |
| weighted per-decision | the same, each stage over the mean of its W_t |
| fitted Q | mean of V_1, where Q_t is the regression of r_t + V_{t+1} on history and action, last stage first |
| doubly robust | mean of V_1 + sum_t W_t (r_t + V_{t+1} - Q_t), right where the weights or the values are |

Each has an influence function, whose mean square over n is the variance. Fitted Q is linear in the rewards where Q_t is a
mean in each history ("tabular") or a linear regression for each action ("linear"): then row i counts with the weight
w_t(i) = x_i' (X_a' X_a)^-1 g_a, where g_a sums pi_t(a | h) x over the rows, each times its own weight w_{t-1}; its influence
function is the doubly robust one with these weights. Tabular fitted Q is the g-formula, and equals the doubly robust mean.
Residuals of such fits are scaled up by their leverage, as histories of few rows leave them small. Other learners are fitted
on some folds and predict the others (cross-fitting); their fitted Q has no error.

References: Precup, Sutton & Singh (2000); Murphy, van der Laan & Robins, *Marginal mean models for dynamic regimes* (2001);
Jiang & Li, *Doubly robust off-policy value evaluation for reinforcement learning* (2016); Thomas & Brunskill (2016);
Chernozhukov et al., *Double/debiased machine learning* (2018). Cost: one fit for each stage and action, times the folds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import NoOverlap
from markovia.learning.control.trajectory_weights import (
    FLOOR,
    LoggedStage,
    StageOverlap,
    check_overlap,
    check_stages,
    cumulative_weights,
    logged_probabilities,
    of_taken,
    overlap_report,
    reached,
    unshrunk,
    without_fitted,
)
from markovia.learning.regression.nuisance import fitted, learner_for, make_folds, with_intercept
from markovia.runtime.array_types import Array

METHODS = ("doubly robust", "fitted Q", "importance", "weighted", "per-decision", "weighted per-decision")
PARAMETRIC = ("tabular", "linear")
"""Learners that are fitted to all rows at once; others are cross-fitted."""


class OffPolicyEstimate(NamedTuple):
    """The mean total reward under a policy.

    Attributes
    ----------
    value
        The estimate.
    influence
        Shape (n,); NaN where the method has none with this learner.
    weights
        Shape (stages, n): the weights W_t.
    overlap
        How far the logging reaches the policy, for each stage.
    """

    value: float
    influence: Array
    weights: Array
    overlap: tuple[StageOverlap, ...]

    @property
    def standard_error(self) -> float:
        """The root of the influence function's variance over n; NaN for one row."""
        n = len(self.influence)
        return float(np.sqrt(self.influence @ self.influence / n / (n - 1))) if n > 1 else float("nan")


def off_policy_value(
    stages: Sequence[LoggedStage],
    policy: Sequence[Array],
    method: str = "doubly robust",
    *,
    learner: Any = "tabular",
    logged: Sequence[Array] | None = None,
    folds: int | None = None,
    floor: float = FLOOR,
    seed: int = 0,
) -> OffPolicyEstimate:
    """Estimate what a policy is worth.

    Parameters
    ----------
    stages
        What was logged, in order of time.
    policy
        For each stage the probabilities of the actions under the policy, shape (n, actions).
    method
        One of `METHODS`.
    learner
        "tabular", "linear", "boosting", "forest" or a scikit-learn estimator; a mapping gives one each for "outcome" and
        "treatment".
    logged
        The probabilities of the actions under the logging, where they are known; fitted otherwise.
    folds
        Parts for cross-fitting: by default 1 for "tabular" and "linear" and 5 for others.
    floor
        Logged probabilities below this are no overlap.

    Raises
    ------
    NoOverlap
        If the policy does what the logging does not.

    Examples
    --------
    >>> done, gained = np.array([0, 1, 0, 1]), np.array([0.0, 2.0, 1.0, 4.0])
    >>> stage = LoggedStage("a", ("no", "yes"), np.zeros((4, 0)), np.zeros(4, dtype=int), done, gained)
    >>> off_policy_value([stage], [np.tile([0.0, 1.0], (4, 1))]).value
    3.0
    """
    check_stages(stages)
    inside = reached(stages, policy)
    fold, known = _folds(stages, learner, folds, seed), logged is not None
    if logged is None:
        logged = _by_fold(
            fold, stages[0].n, lambda train: [logged_probabilities(s, learner, train, seed) for s in stages]
        )
    for stage, asked, p, there in zip(stages, policy, logged, inside, strict=False):
        check_overlap(stage, asked, p, there, floor)
    taken = [of_taken(stage, asked) for stage, asked in zip(stages, policy, strict=True)]
    weights = cumulative_weights(taken, [of_taken(stage, p) for stage, p in zip(stages, logged, strict=True)])
    if method in ("doubly robust", "fitted Q"):
        value, influence = _by_values(stages, policy, method, learner, fold, weights, inside, seed)
    else:
        value, influence = _by_weights(stages, weights, method)
        if not known:
            influence = without_fitted(influence, stages, logged, learner)
    return OffPolicyEstimate(value, influence, weights, overlap_report(stages, policy, logged, weights))


def action_values(
    stages: Sequence[LoggedStage],
    policy: Sequence[Array],
    learner: Any,
    train: Any,
    inside: Sequence[Any],
    seed: int = 0,
) -> tuple[list[Array], list[Array]]:
    """Return Q_t, shape (n, actions), and V_t, shape (n,), fitted backwards in time on some of the rows.

    Q is 0 for actions that the policy does not take; in tables also where the policy does not come. V has one entry more
    than there are stages, the last one 0.
    """
    learner = learner_for(learner, "outcome")
    values = [np.zeros(stages[0].n)]
    q: list[Array] = []
    for t in reversed(range(len(stages))):
        stage, asked = stages[t], policy[t]
        target, found = stage.reward + values[0], np.zeros(asked.shape)
        for a in range(len(stage.actions)):
            wanted, rows = regression_rows(stage, asked, inside[t], a, learner)
            if wanted.any():
                found[wanted, a] = _regression(stage, a, target, rows & train, wanted, learner, seed)
        q.insert(0, found)
        values.insert(0, (asked * found).sum(axis=1))
    return q, values


def regression_rows(
    stage: LoggedStage, asked: Array, inside: Any, a: int, learner: Any
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for which rows the mean of an action is wanted, and from which ones it is learned.

    A mean in each history needs no other histories, and there may be no rows to learn of those that the policy does not
    come to; a regression learns from all rows that took the action.
    """
    wanted, taken = asked[:, a] > 0, stage.action == a
    if learner == "tabular":
        wanted = wanted & inside
        return wanted, wanted & taken
    return wanted, taken & wanted.any()


def _regression(
    stage: LoggedStage, a: int, target: Array, rows: Any, wanted: Any, learner: Any, seed: int
) -> Array:
    """Return the mean target of an action, learned on some rows, for the wanted ones."""
    if not rows.any():
        raise NoOverlap(
            f"at {stage.name!r} the policy takes {stage.actions[a]!r}, which no row does that could be learned from; ask "
            "for a policy nearer to the data"
        )
    columns = int((np.ptp(stage.history, axis=0) > 0).sum())
    if learner == "linear" and rows.sum() <= columns:
        raise NoOverlap(
            f"at {stage.name!r} only {int(rows.sum())} rows take {stage.actions[a]!r}, too few for a regression on "
            f"{columns} columns; take fewer columns, or a policy nearer to the data"
        )
    if learner != "tabular":
        return np.asarray(
            fitted(learner, stage.history[rows], target[rows], "gaussian", seed)(stage.history[wanted])
        )
    size = int(stage.cell.max()) + 1
    counts = np.bincount(stage.cell[rows], minlength=size)
    if (bare := counts[stage.cell[wanted]] == 0).any():
        raise NoOverlap(
            f"at {stage.name!r} the policy takes {stage.actions[a]!r} in {int(bare.sum())} rows (the first at position "
            f"{int(np.flatnonzero(wanted)[bare][0])}) whose history has no row to learn from that does; take "
            "learner='linear', fewer folds, or a policy nearer to the data"
        )
    sums = np.bincount(stage.cell[rows], target[rows], minlength=size)
    return np.asarray((sums / np.maximum(counts, 1))[stage.cell[wanted]])


def _by_values(
    stages: Sequence[LoggedStage], policy: Sequence[Array], method: str, learner: Any, fold: Any, weights: Array,
    inside: Sequence[Any], seed: int,
) -> tuple[float, Array]:  # fmt: skip
    """Return the doubly robust or fitted Q estimate with its influence function."""
    times = len(stages)

    def flat(train: Any) -> list[Array]:
        q, values = action_values(stages, policy, learner, train, inside, seed)
        return [*q, *values]

    found = _by_fold(fold, stages[0].n, flat)
    q, values = found[:times], found[times:]
    outcome = learner_for(learner, "outcome")
    value = float(values[0].mean())
    if method == "fitted Q":
        if outcome not in PARAMETRIC or fold is not None:
            return value, np.full(len(values[0]), np.nan)
        weights = implied_weights(stages, policy, inside, outcome)
    few = outcome in PARAMETRIC and fold is None
    pseudo, spread = values[0].copy(), values[0].copy()
    for t, stage in enumerate(stages):
        off = stage.reward + values[t + 1] - of_taken(stage, q[t])
        part = np.where(weights[t] != 0, weights[t] * off, 0.0)
        pseudo += part
        spread += part * unshrunk(leverages(stage, policy[t], inside[t], outcome)) if few else part
    mean = value if method == "fitted Q" else float(pseudo.mean())
    return mean, spread - spread.mean()


def implied_weights(
    stages: Sequence[LoggedStage], policy: Sequence[Array], inside: Sequence[Any], learner: str
) -> Array:
    """Return how much each row's residual moves the mean of fitted Q, times n, shape (stages, n)."""
    before = np.ones(stages[0].n)
    found = []
    for t, stage in enumerate(stages):
        now = np.zeros(stage.n)
        for a in range(len(stage.actions)):
            wanted, rows = regression_rows(stage, policy[t], inside[t], a, learner)
            moved = before * policy[t][:, a] * wanted
            if not rows.any():
                continue
            if learner == "tabular":
                size = int(stage.cell.max()) + 1
                counts = np.bincount(stage.cell[rows], minlength=size)
                total = np.bincount(stage.cell, moved, minlength=size)
                now[rows] = (total / np.maximum(counts, 1))[stage.cell[rows]]
            else:
                x = with_intercept(stage.history)
                now[rows] = np.linalg.pinv(x[rows]).T @ (x.T @ moved)
        found.append(now)
        before = now
    return np.stack(found)


def leverages(stage: LoggedStage, asked: Array, inside: Any, learner: str) -> Array:
    """Return how much of its own regression each row explains alone; 0 for rows that are in none."""
    found = np.zeros(stage.n)
    for a in range(len(stage.actions)):
        _, rows = regression_rows(stage, asked, inside, a, learner)
        if learner == "tabular":
            found[rows] = 1.0 / np.bincount(stage.cell[rows])[stage.cell[rows]]
        elif rows.any():
            left = np.linalg.svd(with_intercept(stage.history[rows]), full_matrices=False)
            rank = int((left.S[0] * len(left.U) * np.finfo(float).eps < left.S).sum())
            found[rows] = (left.U[:, :rank] ** 2).sum(axis=1)
    return found


def _by_weights(stages: Sequence[LoggedStage], weights: Array, method: str) -> tuple[float, Array]:
    rewards = np.stack([stage.reward for stage in stages])
    if method in ("importance", "weighted"):
        rewards, weights = rewards.sum(axis=0, keepdims=True), weights[-1:]
    if method in ("importance", "per-decision"):
        each = (weights * rewards).sum(axis=0)
        return float(each.mean()), each - each.mean()
    size = weights.mean(axis=1, keepdims=True)
    if not (size > 0).all():
        raise NoOverlap("no row does what the policy does at all stages; ask for a policy nearer to the data")
    means = (weights * rewards).mean(axis=1, keepdims=True) / size
    return float(means.sum()), (weights * (rewards - means) / size).sum(axis=0)


def _folds(stages: Sequence[LoggedStage], learner: Any, folds: int | None, seed: int) -> Any:
    """Return each row's fold, or None where all rows are fitted at once."""
    if folds is None:
        roles = (learner_for(learner, "outcome"), learner_for(learner, "treatment"))
        folds = 1 if all(isinstance(one, str) and one in PARAMETRIC for one in roles) else 5
    if folds == 1:
        return None
    return make_folds(stages[-1].action, min(folds, stages[0].n), np.random.default_rng(seed))


def _by_fold(fold: Any, n: int, fit: Any) -> list[Array]:
    """Return what a fit on all rows says, or for each row what a fit on the other folds says."""
    if fold is None:
        return list(fit(np.ones(n, dtype=bool)))
    parts: list[Array] = []
    for k in range(int(fold.max()) + 1):
        found = fit(fold != k)
        parts = parts or [np.zeros_like(one) for one in found]
        for whole, one in zip(parts, found, strict=True):
            whole[fold == k] = one[fold == k]
    return parts
