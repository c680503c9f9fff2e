"""The best treatment regime from logged rows: rules learned backwards in time, the last decision first.

At each stage the rule is what looks best when all later decisions follow the rules that are already learned:

- Q-learning ("q"): regress what follows on history and action, take the action with the largest mean; what follows an
  earlier decision is then the largest mean.
- A-learning ("a"): model only how actions differ, psi_a' (1, h), by g-estimation: the contrasts leave residuals that are
  unrelated to (1{A = a} - p_a(h)) (1, h), given main effects that are linear or free ("tabular"). Right where the main
  effects or the probabilities p are; an earlier decision sees what happened plus what a better action would have added.
- Outcome-weighted learning ("outcome-weighted"): classify which action was taken, each row weighted by its residual over
  the probability of what was done, with the label turned where the residual is negative; rows count only where they went
  on by the learned rules. The loss is logistic with a ridge penalty.
- Policy trees ("tree"): doubly robust scores of all actions, and the tree of small depth with the largest sum.

References: Murphy, *Optimal dynamic treatment regimes* (2003); Robins, *Optimal structural nested models* (2004); Schulte,
Tsiatis, Laber & Davidian, *Q- and A-learning methods* (2014); Zhao, Zeng, Laber & Kosorok, *New statistical learning
methods for estimating optimal dynamic treatment regimes* (2015); Zhou et al., *Residual weighted learning* (2017); Athey &
Wager, *Policy learning with observational data* (2021). Cost: one regression for each stage and action; trees as in
`policy_trees`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.control.policy_trees import TreatmentTree, policy_tree
from markovia.learning.control.trajectory_weights import (
    FLOOR,
    LoggedStage,
    check_overlap,
    check_stages,
    group_means,
    logged_probabilities,
    of_taken,
)
from markovia.learning.regression.iteratively_reweighted import fit_softmax
from markovia.learning.regression.nuisance import fit_glm, fitted, learner_for, make_folds, with_intercept
from markovia.runtime.array_types import Array, Ints

REGIME_METHODS = ("q", "a", "outcome-weighted", "tree")
RIDGE = 1.0
"""The penalty of the classifier of outcome-weighted learning, where its weights sum to the number of rows."""


class StageRule(Protocol):
    """What to do at one stage."""

    def take(self, history: Array, cell: Ints) -> Ints:
        """Return the action of each row, given its history as numbers and as a cell (-1 for one never seen)."""
        ...


@dataclass(frozen=True)
class GreedyTable:
    """The action with the largest value in each history, shape (cells, actions); -inf where an action was never taken."""

    values: Array

    def means(self, history: Array, cell: Ints) -> Array:
        """Return the values of the actions, shape (n, actions)."""
        return np.asarray(self.values[cell])

    def take(self, history: Array, cell: Ints) -> Ints:
        """Return the action of each row."""
        if (cell < 0).any():
            raise InvalidArgument(
                "a rule that is a table has no answer for a history that was never logged; learn with learner='linear'"
            )
        return np.asarray(self.values[cell].argmax(axis=1))


@dataclass(frozen=True)
class GreedyScores:
    """The action with the largest score, linear in the history: coefficients of shape (actions, 1 + columns)."""

    coef: Array

    def take(self, history: Array, cell: Ints) -> Ints:
        """Return the action of each row."""
        return np.asarray((with_intercept(history) @ self.coef.T).argmax(axis=1))


@dataclass(frozen=True)
class GreedyFits:
    """The action with the largest prediction of some learner; None for an action that was never taken."""

    predictors: tuple[Any, ...]

    def means(self, history: Array, cell: Ints) -> Array:
        """Return the predictions, shape (n, actions)."""
        away = np.full(len(history), -np.inf)
        return np.column_stack([away if f is None else f(history) for f in self.predictors])

    def take(self, history: Array, cell: Ints) -> Ints:
        """Return the action of each row."""
        return np.asarray(self.means(history, cell).argmax(axis=1))


@dataclass(frozen=True)
class GreedyTree:
    """What a policy tree says."""

    tree: TreatmentTree

    def take(self, history: Array, cell: Ints) -> Ints:
        """Return the action of each row."""
        return self.tree.take(history)


def learned_rules(
    stages: Sequence[LoggedStage],
    method: str = "q",
    *,
    learner: Any = "linear",
    depth: int = 2,
    floor: float = FLOOR,
    seed: int = 0,
) -> list[StageRule]:
    """Return the rules of the stages that together gain most.

    Parameters
    ----------
    stages
        What was logged, in order of time.
    method
        One of `REGIME_METHODS`.
    learner
        Of values and probabilities, as in `off_policy_value`; the contrasts of A-learning and the classifier of
        outcome-weighted learning are linear in any case.
    depth
        Of policy trees.
    floor
        Logged probabilities below this are refused where they are divided by.

    Examples
    --------
    >>> sick = np.repeat([0.0, 1.0], 4)
    >>> done, gained = np.tile([0, 1, 0, 1], 2), np.array([3.0, 2.0, 3.0, 2.0, 0.0, 2.0, 0.0, 2.0])
    >>> stage = LoggedStage("treat", ("no", "yes"), sick[:, None], sick.astype(int), done, gained)
    >>> learned_rules([stage])[0].take(np.array([[0.0], [1.0]]), np.array([0, 1])).tolist()
    [0, 1]
    """
    check_stages(stages)
    if method == "outcome-weighted":
        return _outcome_weighted(stages, learner, floor, seed)
    step = {"q": _q_rule, "a": _a_rule, "tree": _tree_rule}[method]
    future = np.zeros(stages[0].n)
    rules: list[StageRule] = []
    for stage in reversed(stages):
        rule, future = step(stage, stage.reward + future, learner, depth, floor, seed)
        rules.insert(0, rule)
    return rules


def _q_rule(
    stage: LoggedStage, gain: Array, learner: Any, depth: int, floor: float, seed: int
) -> tuple[StageRule, Array]:
    rule = action_means(stage, gain, learner, np.ones(stage.n, dtype=bool), seed)
    return rule, rule.means(stage.history, stage.cell).max(axis=1)


def action_means(
    stage: LoggedStage, gain: Array, learner: Any, train: Any, seed: int = 0
) -> GreedyTable | GreedyFits:
    """Return the mean gain of each action given the history, learned on some rows."""
    learner = learner_for(learner, "outcome")
    arms = len(stage.actions)
    if learner == "tabular":
        both, size = stage.cell * arms + stage.action, (int(stage.cell.max()) + 1) * arms
        counts = np.bincount(both[train], minlength=size)
        means = np.bincount(both[train], gain[train], minlength=size) / np.maximum(counts, 1)
        return GreedyTable(np.where(counts > 0, means, -np.inf).reshape(-1, arms))
    taken = [train & (stage.action == a) for a in range(arms)]
    fits = [
        fitted(learner, stage.history[rows], gain[rows], "gaussian", seed) if rows.any() else None
        for rows in taken
    ]
    return GreedyFits(tuple(fits))


def _a_rule(
    stage: LoggedStage, gain: Array, learner: Any, depth: int, floor: float, seed: int
) -> tuple[StageRule, Array]:
    p = logged_probabilities(stage, learner, np.ones(stage.n, dtype=bool), seed)
    coef = contrasts(stage, gain, p, free=learner_for(learner, "outcome") == "tabular")
    rule = GreedyScores(coef)
    scores = with_intercept(stage.history) @ coef.T
    return rule, gain + scores.max(axis=1) - of_taken(stage, scores)


def contrasts(stage: LoggedStage, gain: Array, p: Array, *, free: bool = False) -> Array:
    """Return by g-estimation how each action differs from the first that was taken, shape (actions, 1 + columns).

    Parameters
    ----------
    stage, gain
        What was logged, and what each row gained.
    p
        The probabilities of the actions, shape (n, actions).
    free
        Whether main effects are one number for each history instead of linear.

    Returns
    -------
    Array
        Coefficients of (1, history); an action that was never taken has an intercept of -inf.
    """
    arms, x = len(stage.actions), with_intercept(stage.history)
    others = np.unique(stage.action)[1:]
    coef = np.zeros((arms, x.shape[1]))
    coef[np.bincount(stage.action, minlength=arms) == 0, 0] = -np.inf
    if not len(others):
        return coef
    taken = np.column_stack([(stage.action == a)[:, None] * x for a in others])
    away = np.column_stack([((stage.action == a) - p[:, a])[:, None] * x for a in others])

    def without_main(columns: Array) -> Array:
        if free:
            parts = [c - group_means(stage.cell, c)[stage.cell] for c in columns.T]
            return np.column_stack(parts)
        return np.asarray(columns - x @ np.linalg.lstsq(x, columns, rcond=None)[0])

    left, right = without_main(taken), without_main(gain[:, None])[:, 0]
    psi = np.linalg.lstsq(away.T @ left, away.T @ right, rcond=None)[0]
    coef[others] = psi.reshape(len(others), -1)
    return coef


def _tree_rule(
    stage: LoggedStage, gain: Array, learner: Any, depth: int, floor: float, seed: int
) -> tuple[StageRule, Array]:
    scores = robust_scores(stage, gain, learner, floor, seed)
    rule = GreedyTree(policy_tree(stage.history, scores, depth))
    return rule, scores[np.arange(stage.n), rule.take(stage.history, stage.cell)]


def robust_scores(
    stage: LoggedStage, gain: Array, learner: Any, floor: float = FLOOR, seed: int = 0
) -> Array:
    """Return what each action gains in each row, doubly robust, shape (n, actions); learners are cross-fitted."""
    roles = [learner_for(learner, role) for role in ("outcome", "treatment")]
    plain = all(isinstance(one, str) and one in ("tabular", "linear") for one in roles)
    fold = np.zeros(stage.n, dtype=np.int64)
    if not plain:
        fold = make_folds(stage.action, min(5, stage.n), np.random.default_rng(seed))
    scores = np.zeros((stage.n, len(stage.actions)))
    everywhere = np.ones(stage.n, dtype=bool)
    for k in range(int(fold.max()) + 1):
        test, train = fold == k, everywhere if plain else fold != k
        p = logged_probabilities(stage, learner, train, seed)
        check_overlap(stage, np.ones(p.shape), p, test, floor)
        means = action_means(stage, gain, learner, train, seed).means(stage.history, stage.cell)
        off = (gain - of_taken(stage, means)) / of_taken(stage, p)
        means[np.arange(stage.n), stage.action] += off
        scores[test] = means[test]
    return scores


def _outcome_weighted(
    stages: Sequence[LoggedStage], learner: Any, floor: float, seed: int
) -> list[StageRule]:
    n = stages[0].n
    later, gain = np.ones(n), np.zeros(n)
    rules: list[StageRule] = []
    for stage in reversed(stages):
        p = logged_probabilities(stage, learner, np.ones(n, dtype=bool), seed)
        present = np.bincount(stage.action, minlength=len(stage.actions)) > 0
        check_overlap(stage, np.broadcast_to(present, p.shape), p, later > 0, floor)
        gain = gain + stage.reward
        rule = _classifier(stage, gain, later / of_taken(stage, p))
        rules.insert(0, rule)
        later = later * (rule.take(stage.history, stage.cell) == stage.action) / of_taken(stage, p)
        if not later.any():
            raise InvalidArgument(
                f"no row follows the rule that was learned for {stage.name!r}; take method='q' or more rows"
            )
    return rules


def _classifier(stage: LoggedStage, gain: Array, weights: Array) -> GreedyScores:
    """Return the rule that agrees most with what was done where it gained more than the history alone explains."""
    present = np.flatnonzero(np.bincount(stage.action, minlength=len(stage.actions)))
    coef = np.full((len(stage.actions), 1 + stage.history.shape[1]), 0.0)
    coef[:, 0] = -np.inf
    coef[present, 0] = 0.0
    inside = weights > 0
    left = np.where(
        inside, gain - fit_glm(stage.history, gain, "gaussian", weights).predict(stage.history), 0.0
    )
    label = np.searchsorted(present, stage.action)
    if len(present) == 2:
        label = np.where(left < 0, 1 - label, label)
        size = np.abs(left) * weights
    else:  # more actions have no other one to turn to: the smallest residual counts nothing
        size = (left - left[inside].min()) * weights
    if len(present) == 1 or not size.sum() > 0:
        return GreedyScores(coef)
    counts = np.zeros((stage.n, len(present)))
    counts[np.arange(stage.n), label] = size * (stage.n / size.sum())
    penalty = np.full(coef.shape[1], RIDGE)
    penalty[0] = 0.0
    coef[present] = fit_softmax(with_intercept(stage.history), counts, penalty).coef
    return GreedyScores(coef)
