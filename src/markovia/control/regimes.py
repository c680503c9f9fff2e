"""Treatment regimes learned from data: what to do at each stage, given all that is known by then."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.control.evaluation import PolicyEstimate, default_learner, logged_for, policy_estimate
from markovia.control.logged_data import HistoryColumn, LoggedData, history_numbers
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.named import Names
from markovia.learning.control.off_policy import off_policy_value
from markovia.learning.control.optimal_regimes import (
    REGIME_METHODS,
    GreedyScores,
    GreedyTable,
    GreedyTree,
    StageRule,
    learned_rules,
)
from markovia.learning.control.trajectory_weights import FLOOR, LoggedStage
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import NOT_NEGATIVE, NumberRange, Whole, check, check_choice, check_level
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TreatmentRegime(InNotebooks):
    """What to do at each stage, as `learn_regime` returns it.

    Attributes
    ----------
    rules
        For each action its rule, on histories as numbers.
    estimate
        What the regime is worth, estimated doubly robustly on rows it was not learned from; its fields `value` and
        `interval` are here too.
    sees
        For each action what its rule may look at.
    method
        How the rules were learned.
    """

    rules: Mapping[str, StageRule]
    estimate: PolicyEstimate
    sees: Mapping[str, tuple[str, ...]]
    method: str
    choices: Mapping[str, tuple[Any, ...]] = field(repr=False)
    columns: Mapping[str, tuple[HistoryColumn, ...]] = field(repr=False)
    cells: Mapping[str, Mapping[tuple[Any, ...], int]] = field(repr=False)

    @property
    def value(self) -> float:
        """What the regime is worth, on rows it was not learned from."""
        return self.estimate.value

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval of the value."""
        return self.estimate.interval

    def __iter__(self) -> Iterator[str]:
        return iter(self.rules)

    def act(self, name: str, /, **sights: Any) -> Any:
        """Return what to do at a stage.

        Parameters
        ----------
        name
            The action.
        sights
            All that is known by then; see `sees`.
        """
        import pandas as pd

        check_known([name], self.rules, "the regime")
        if missing := [n for n in self.sees[name] if n not in sights]:
            raise InvalidArgument(
                f"the regime looks at {', '.join(map(repr, missing))} before {name!r}; say it too"
            )
        return self.actions(name, pd.DataFrame({n: [sights[n]] for n in self.sees[name]}, index=[0]))[0]

    def actions(self, name: str, data: Any) -> list[Any]:
        """Return what to do in each row of a frame that holds what is known before an action."""
        check_known([name], self.rules, "the regime")
        frame = as_frame(data)
        check_known(self.sees[name], frame.columns, "the data")
        history = history_numbers(self.columns[name], frame)
        rule = self.rules[name]
        cells = (
            self._cells(name, frame)
            if isinstance(rule, GreedyTable)
            else np.zeros(len(frame), dtype=np.int64)
        )
        chosen = rule.take(history, cells)
        return [self.choices[name][code] for code in chosen]

    def _cells(self, name: str, frame: "pd.DataFrame") -> Ints:
        known = self.cells[name]
        rows = zip(*(frame[n].tolist() for n in self.sees[name]), strict=True) if self.sees[name] else None
        listed = [()] * len(frame) if rows is None else list(rows)
        return np.array([known.get(row, -1) for row in listed], dtype=np.int64)

    def __str__(self) -> str:
        parts = [f"a regime by {self.method}: {self.estimate}"]
        for name, rule in self.rules.items():
            names = [n for column in self.columns[name] for n in column.names]
            if isinstance(rule, GreedyTree):
                parts.append(f"{name}:\n{self._unscaled(name, rule).described(names, self.choices[name])}")
            elif isinstance(rule, GreedyScores):
                parts.append(
                    f"{name}: the action with the largest score, linear in {', '.join(names) or 'nothing'}"
                )
            else:
                parts.append(
                    f"{name}: the action with the largest mean given {', '.join(names) or 'nothing'}"
                )
        return "\n\n".join(parts)

    def _unscaled(self, name: str, rule: GreedyTree) -> Any:
        """Return a tree with thresholds in the units of the data."""
        from dataclasses import replace

        centre = [v for c in self.columns[name] for v in [c.centre] * len(c.names)]
        scale = [v for c in self.columns[name] for v in [c.scale] * len(c.names)]
        tree = rule.tree
        at = np.maximum(tree.columns, 0)
        if not centre:
            return tree
        return replace(tree, thresholds=np.array(centre)[at] + np.array(scale)[at] * tree.thresholds)


def learn_regime(
    data: Any,
    model: Any = None,
    *,
    stages: Mapping[str, Names] | None = None,
    reward: str | Mapping[str, str] | None = None,
    method: str = "q",
    learner: Any = None,
    depth: int = 2,
    share: float = 0.5,
    level: float = 0.95,
    floor: float = FLOOR,
    seed: Seed = 0,
) -> TreatmentRegime:
    """Learn from data what to do at each stage, and what that is worth.

    The rules are learned on a share of the rows drawn by chance, and evaluated on the others, so the interval is honest.

    Parameters
    ----------
    data
        A frame, one row an individual.
    model
        A network whose utilities say the reward, where `reward` is not given.
    stages, reward, learner, level, floor
        As for `evaluate`.
    method
        "q" (regressions of what follows), "a" (contrasts of actions by g-estimation; right where values or probabilities
        are), "outcome-weighted" (classification weighted by what was gained), or "tree" (the best tree of small depth).
    depth
        Of trees: 1, 2 or 3.
    share
        The share of the rows that rules are learned from.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"ill": [0, 0, 1, 1] * 20, "drug": [0, 1] * 40})
    >>> rows["days"] = [7 - i - 2 * d + 4 * i * d for i, d in zip(rows.ill, rows.drug)]
    >>> regime = learn_regime(rows, stages={"drug": "ill"}, reward="days")
    >>> regime.act("drug", ill=1), regime.act("drug", ill=0)
    (1, 0)
    """
    check_choice("method", method, REGIME_METHODS)
    check_level("level", level)
    check("depth", depth, Whole(1, 3))
    check("floor", floor, NOT_NEGATIVE)
    check("share", share, NumberRange(0.0, 1.0, open="both", said="a share of the rows, between 0 and 1"))
    if stages is None:
        raise InvalidArgument(
            "learn_regime needs stages={action: what is newly known before it}, in the order of time"
        )
    logged = logged_for(None, data, model, stages, reward)
    if len(logged.frame) < 2:
        raise InvalidArgument(
            "a regime is learned on some rows and evaluated on others; there is only one row"
        )
    rng = generator(seed)
    learning, testing = logged.split(rng, share)
    chosen, number = default_learner(learner, logged), int(rng.integers(2**31))
    rules = learned_rules(learning.stages, method, learner=chosen, depth=depth, floor=floor, seed=number)
    policy = [
        np.eye(len(stage.actions))[rule.take(stage.history, _seen(stage, part))]
        for stage, part, rule in zip(testing.stages, learning.stages, rules, strict=True)
    ]
    found = off_policy_value(testing.stages, policy, learner=chosen, floor=floor, seed=number)
    names = [stage.name for stage in logged.stages]
    return TreatmentRegime(
        dict(zip(names, rules, strict=True)), policy_estimate(found, level, "doubly robust", chosen), logged.known,
        method, {stage.name: stage.actions for stage in logged.stages}, logged.columns,
        {name: _cells_of(learning, stage) for name, stage in zip(names, learning.stages, strict=True)},
    )  # fmt: skip


def _seen(stage: LoggedStage, learned: LoggedStage) -> Ints:
    """Return the histories' numbers, -1 for those that no rule was learned for."""
    return np.where(np.isin(stage.cell, learned.cell), stage.cell, -1)


def _cells_of(logged: LoggedData, stage: LoggedStage) -> dict[tuple[Any, ...], int]:
    """Return the number of each history that was learned from."""
    names = logged.known[stage.name]
    cells, first = np.unique(stage.cell, return_index=True)
    if not names:
        return {(): int(cells[0])}
    rows = zip(*(logged.frame[n].iloc[first].tolist() for n in names), strict=True)
    return {row: int(cell) for row, cell in zip(rows, cells, strict=True)}
