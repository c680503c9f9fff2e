"""What a policy would be worth, from data in which decisions were made another way."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from markovia.control.logged_data import LoggedData, read_logged, rewards_of_model, stages_of_model
from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.table_forms import argument_names
from markovia.graphs.kinds.named import Names
from markovia.learning.control.off_policy import METHODS, OffPolicyEstimate, off_policy_value
from markovia.learning.control.trajectory_weights import FLOOR, StageOverlap
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NOT_NEGATIVE, Whole, check, check_choice, check_level
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks, aligned

FEW_ROWS = 30
"""Effective rows below which a normal interval is doubtful."""


@dataclass(frozen=True)
class PolicyEstimate(InNotebooks):
    """The mean total reward under a policy, as `evaluate` and `learn_regime` estimate it.

    Attributes
    ----------
    value, standard_error
        The estimate and its error; NaN where the method has none.
    level
        Of the interval.
    effective_sample_size
        How many rows that follow the policy, all of one weight, would be worth as much as the weighted ones.
    overlap
        For each stage: rows that follow the policy so far, the smallest logged probability of what it does, the largest
        weight (their mean is 1), and the effective sample size.
    influence, weights
        Shapes (n,) and (stages, n): each row's influence, and its weight up to each stage.
    method, learner, n
        What was done with how many rows.
    """

    value: float
    standard_error: float
    level: float
    overlap: tuple[StageOverlap, ...]
    influence: Array
    weights: Array
    method: str
    learner: str

    @property
    def n(self) -> int:
        """How many rows there were."""
        return len(self.influence)

    @property
    def effective_sample_size(self) -> float:
        """The effective number of rows over all stages."""
        return self.overlap[-1].effective

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval."""
        half = NormalDist().inv_cdf(0.5 + self.level / 2) * self.standard_error
        return self.value - half, self.value + half

    def __str__(self) -> str:
        low, high = self.interval
        error = f"({self.level:.0%}: {low:.4g} to {high:.4g})" if np.isfinite(low) else "(no interval)"
        header = ["decision", "rows that follow", "effective", "least logged p", "largest weight"]
        rows = [
            [s.name, f"{s.following:,}", f"{s.effective:.1f}", f"{s.least:.3g}", f"{s.largest:.3g}"]
            for s in self.overlap
        ]
        lines = [f"value {self.value:.5g} {error}", f"{self.method}, {self.learner}, {self.n:,} rows", ""]
        return "\n".join([*lines, aligned(header, rows), *(["", self.note] if self.note else [])])

    @property
    def note(self) -> str:
        """What to be careful about; empty if nothing."""
        if not np.isfinite(self.standard_error):
            if self.n < 2:
                return "one row has no error"
            return "fitted Q has an interval with learner='tabular' or 'linear' on all rows; or take 'doubly robust'"
        if self.effective_sample_size < FEW_ROWS:
            return f"only {self.effective_sample_size:.1f} effective rows follow the policy: the interval is doubtful"
        return ""


def evaluate(
    policy: Any,
    data: Any,
    model: Any = None,
    *,
    method: str = "doubly robust",
    stages: Mapping[str, Names] | None = None,
    reward: str | Mapping[str, str] | None = None,
    behaviour: Any = None,
    learner: Any = None,
    level: float = 0.95,
    folds: int | None = None,
    floor: float = FLOOR,
    seed: Seed = 0,
) -> PolicyEstimate:
    """Estimate what a policy is worth, from rows in which decisions were made another way.

    What the logging looked at has to be among what is known at each stage: no hidden cause of an action and of what follows
    is left out (`free` checks that for a network).

    Parameters
    ----------
    policy
        What `decide` returns; a mapping from decision to a table, to a function of what is seen (which returns a state, or
        a mapping from states to probabilities) or to a state; or an object with `act(name, **sights)`.
    data
        A frame, one row an individual.
    model
        A network of the data: actions come in its order, what is known before each is its parents (and what the policy
        sees), and its utilities say the reward.
    method
        "doubly robust"; "fitted Q" (with tables: the g-formula); "importance", "weighted" (self-normalised),
        "per-decision", "weighted per-decision".
    stages
        In place of the model: the actions in the order of time, each with the columns that are newly known before it.
    reward
        The column of what was gained, or a mapping from action to the column gained after it.
    behaviour
        How decisions were made, if that is known, written like a policy; fitted otherwise.
    learner
        How values and probabilities are fitted: "tabular" (means and shares for each history), "linear" (a regression for
        each action), "boosting", "forest", a scikit-learn estimator, or a mapping with one each for "outcome" and
        "treatment". By default "tabular" where histories repeat often, else "linear".
    level
        Of the interval.
    folds
        Parts for cross-fitting: by default 1 for "tabular" and "linear", 5 for others.
    floor
        What was logged with a smaller probability is no overlap.
    seed
        Of folds and learners.

    Raises
    ------
    NoOverlap
        If the policy does what the logging does not, with the stage and the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"ill": [0, 0, 0, 0, 1, 1, 1, 1], "drug": [0, 0, 0, 1, 0, 1, 1, 1],
    ...                      "days": [9, 8, 7, 6, 2, 5, 6, 7]})
    >>> found = evaluate({"drug": lambda ill: ill}, rows, stages={"drug": "ill"}, reward="days", learner="tabular")
    >>> found.value
    7.0
    """
    check_choice("method", method, METHODS)
    check_level("level", level)
    check("floor", floor, NOT_NEGATIVE)
    check("folds", folds, Whole(1, none=True))
    logged = logged_for(policy, data, model, stages, reward)
    chosen = default_learner(learner, logged)
    probabilities = logged.probabilities(policy)
    known = None if behaviour is None else logged.probabilities(behaviour)
    found = off_policy_value(
        logged.stages, probabilities, method, learner=chosen, logged=known, folds=folds, floor=floor,
        seed=int(generator(seed).integers(2**31)),
    )  # fmt: skip
    return policy_estimate(found, level, method, chosen)


def policy_estimate(found: OffPolicyEstimate, level: float, method: str, learner: Any) -> PolicyEstimate:
    """Return an estimate with how it was come by."""
    said = learner if isinstance(learner, str) else type(learner).__name__
    if isinstance(learner, Mapping):
        said = ", ".join(f"{role} by {_named(one)}" for role, one in learner.items())
    return PolicyEstimate(
        found.value, found.standard_error, level, found.overlap, found.influence, found.weights, method, said
    )


def logged_for(
    policy: Any, data: Any, model: Any, stages: Mapping[str, Names] | None, reward: Any
) -> LoggedData:
    """Read the data of a question: stages and rewards as they are given, or as the model says."""
    if stages is None:
        if model is None:
            raise InvalidArgument(
                "what was known before each decision is not said: give the model of the data, or stages={action: columns}"
            )
        if not isinstance(policy, Mapping):
            raise InvalidArgument("this policy does not say what it decides; give stages={action: columns}")
        stages = stages_of_model(model, {name: _sights(rule) for name, rule in policy.items()})
    if reward is None:
        if model is None:
            raise InvalidArgument("give reward= a column of what was gained, or a model with a utility")
        reward = rewards_of_model(model, data, list(stages))
    actions = {}
    if model is not None:
        actions = {n: model.states(n) for n in stages if n in model.variables}
    return read_logged(data, stages, reward, actions)


def default_learner(learner: Any, logged: LoggedData) -> Any:
    """Return the learner that was asked for, or "tabular" where histories repeat often and "linear" else."""
    if isinstance(learner, Mapping):
        other = "tabular" if logged.tabular() else "linear"
        return {**dict.fromkeys(("outcome", "treatment"), other), **learner}
    return learner if learner is not None else "tabular" if logged.tabular() else "linear"


def _sights(rule: Any) -> Iterable[str]:
    if isinstance(rule, Conditional):
        return rule.parent_names
    return argument_names(rule) if callable(rule) else ()


def _named(learner: Any) -> str:
    return learner if isinstance(learner, str) else type(learner).__name__
