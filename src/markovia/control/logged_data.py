"""Frames of decisions that were logged, read as the arrays that off-policy estimators take, and policies on their rows.

A stage is a column of actions; its history is all that was known by then: the columns listed for it and for earlier stages,
and the earlier actions. A model of the data says it by itself: the parents of an action, and what its policy sees.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.tables.frames import as_frame
from markovia.errors import (
    IncompleteModel,
    InvalidArgument,
    NotIdentifiable,
    UnknownState,
    UnsupportedModel,
    check_known,
)
from markovia.graphs.kinds.named import Names, as_names
from markovia.learning.control.logged_rules import (
    acting_rule,
    history_cells,
    rows_of_answers,
    rule_probabilities,
)
from markovia.learning.control.trajectory_weights import LoggedStage
from markovia.models.graphical.directed_model import without_direction
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 10
"""Columns of numbers with more different values than this make histories that no two rows share."""


@dataclass(frozen=True)
class HistoryColumn:
    """How one column of a history becomes numbers: a number, centred and scaled, or a column for each category but one."""

    name: str
    categories: tuple[Any, ...] | None
    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, column: "pd.Series[Any]") -> "HistoryColumn":
        """Read how a column is written; truth values and numbers are numbers."""
        name = str(column.name)
        if column.dtype.kind not in "biuf":
            return cls(name, tuple(sorted(column.unique().tolist(), key=lambda v: (str(type(v)), v))))
        values = column.to_numpy(dtype=np.float64)
        scale = float(values.std())
        flat = scale <= 1e-12 * float(np.abs(values).max(initial=0.0))
        return cls(name, None, float(values.mean()), 1.0 if flat else scale)

    @property
    def names(self) -> list[str]:
        """What the columns of numbers are called."""
        if self.categories is None:
            return [self.name]
        return [f"{self.name}={value}" for value in self.categories[1:]]

    def numbers(self, column: "pd.Series[Any]") -> Array:
        """Return the columns of numbers, shape (n, columns)."""
        if self.categories is None:
            return ((column.to_numpy(dtype=np.float64) - self.centre) / self.scale)[:, None]
        if unknown := [v for v in column.unique().tolist() if v not in self.categories]:
            raise UnknownState(self.name, unknown[0], self.categories)
        values = column.to_numpy()[:, None]
        return np.asarray(values == np.array(self.categories[1:], dtype=object), dtype=np.float64)


@dataclass(frozen=True)
class LoggedData:
    """Rows read as stages.

    Attributes
    ----------
    frame
        The rows.
    stages
        Their arrays, in order of time.
    known
        For each stage the columns of its history.
    columns
        For each stage how its history became numbers.
    """

    frame: "pd.DataFrame"
    stages: tuple[LoggedStage, ...]
    known: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[HistoryColumn, ...]]

    def tabular(self) -> bool:
        """Say whether histories repeat enough for a mean in each: few values a column, five rows a history and action."""
        last = self.stages[-1]
        few = all(self.frame[n].nunique() <= MOST_LEVELS for n in self.known[last.name])
        return few and (int(last.cell.max()) + 1) * len(last.actions) * 5 <= last.n

    def probabilities(self, policy: Any) -> list[Array]:
        """Return what a policy does in each row, for each stage an array of shape (n, actions)."""
        if isinstance(policy, Mapping):
            wanted = [stage.name for stage in self.stages]
            if set(policy) != set(wanted):
                raise InvalidArgument(
                    f"the policy says what to do for {_listed(policy)}, but the stages are {_listed(wanted)}"
                )
            rules = [policy[name] for name in wanted]
        elif hasattr(policy, "actions") and callable(policy.actions):
            return [_of_choices(stage, policy.actions(stage.name, self.frame)) for stage in self.stages]
        elif hasattr(policy, "act"):
            rules = [acting_rule(policy.act, stage.name, self.known[stage.name]) for stage in self.stages]
        else:
            raise InvalidArgument(
                "a policy maps decisions to tables, functions of what is seen, or states, or has act(name, **sights); not "
                f"{policy!r:.80}"
            )
        return [
            rule_probabilities(stage.name, stage.actions, rule, self.frame, self.known[stage.name])
            for stage, rule in zip(self.stages, rules, strict=True)
        ]

    def split(self, rng: np.random.Generator, share: float) -> tuple["LoggedData", "LoggedData"]:
        """Return two parts of the rows, drawn by chance; the first has the share, and neither is empty."""
        n = len(self.frame)
        first = np.zeros(n, dtype=bool)
        first[rng.permutation(n)[: min(max(round(share * n), 1), n - 1)]] = True
        return self.part(first), self.part(~first)

    def part(self, rows: Any) -> "LoggedData":
        """Return some of the rows, their histories numbered as in all."""
        stages = tuple(stage.take(rows) for stage in self.stages)
        return LoggedData(self.frame[rows], stages, self.known, self.columns)


def read_logged(
    data: Any,
    stages: Mapping[str, Names],
    reward: str | Mapping[str, str] | Sequence[Array],
    actions: Mapping[str, Iterable[Any]] | None = None,
) -> LoggedData:
    """Read a frame.

    Parameters
    ----------
    data
        A frame, one row an individual.
    stages
        Actions in the order of time, each with the columns that are newly known before it.
    reward
        A column of numbers gained at the end; a mapping from action to the column gained after it; or numbers for each
        stage.
    actions
        Actions there are besides those that were logged.
    """
    frame = as_frame(data)
    blocks = {name: as_names(columns) for name, columns in stages.items()}
    if not blocks:
        raise InvalidArgument("stages= names one action or more, each with what is known before it")
    by_name = {next(reversed(blocks)): reward} if isinstance(reward, str) else reward
    rewards = dict(by_name) if isinstance(by_name, Mapping) else {}
    check_known(rewards, blocks, "stages=")
    used = [*blocks, *(n for block in blocks.values() for n in block), *rewards.values()]
    check_known(used, frame.columns, "the data")
    _check_complete(frame, used)
    gained = [_gained(frame, rewards[n]) if n in rewards else np.zeros(len(frame)) for n in blocks]
    if not isinstance(by_name, Mapping):
        gained = list(by_name)
    found: list[LoggedStage] = []
    known, columns = {}, {}
    so_far: list[str] = []
    for (name, block), gain in zip(blocks.items(), gained, strict=True):
        so_far += [n for n in block if n not in so_far]
        if late := next((n for n in so_far if n == name or n in list(blocks)[len(found) :]), None):
            raise InvalidArgument(
                f"{late!r} is an action that comes no earlier than {name!r}; it cannot be known before"
            )
        found.append(_stage(frame, name, so_far, gain, (actions or {}).get(name, ())))
        known[name] = tuple(so_far)
        columns[name] = tuple(HistoryColumn.of(frame[n]) for n in so_far)
        so_far = [*so_far, name]
    return LoggedData(frame, tuple(found), known, columns)


def _of_choices(stage: LoggedStage, choices: Sequence[Any]) -> Array:
    """Return the choices of all rows as probabilities."""
    import pandas as pd

    codes, distinct = pd.factorize(pd.Series(list(choices), dtype=object))
    return rows_of_answers(stage.name, stage.actions, distinct)[codes]


def history_numbers(columns: Sequence[HistoryColumn], frame: "pd.DataFrame") -> Array:
    """Return histories as numbers, shape (n, columns)."""
    parts = [column.numbers(frame[column.name]) for column in columns]
    return np.column_stack(parts) if parts else np.zeros((len(frame), 0))


def _stage(
    frame: "pd.DataFrame", name: str, known: Sequence[str], reward: Array, more: Iterable[Any]
) -> LoggedStage:
    logged, listed = frame[name].unique().tolist(), list(more)
    actions = tuple(listed or sorted(logged, key=lambda v: (str(type(v)), v)))
    place = {action: i for i, action in enumerate(actions)}
    if unknown := [v for v in logged if v not in place]:
        raise UnknownState(name, unknown[0], actions)
    codes = frame[name].map(place).to_numpy(dtype=np.int64)
    history = history_numbers([HistoryColumn.of(frame[n]) for n in known], frame)
    return LoggedStage(name, actions, history, history_cells(frame, known), codes, reward)


def _check_complete(frame: "pd.DataFrame", used: Sequence[str]) -> None:
    if not len(frame):
        raise InvalidArgument("the data have no rows")
    gaps = [n for n in dict.fromkeys(used) if frame[n].isna().any()]
    if gaps:
        raise InvalidArgument(f"cells are missing in {_listed(gaps)}; drop or fill them first")


def _gained(frame: "pd.DataFrame", name: str) -> Array:
    try:
        gained: Array = frame[name].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"the reward {name!r} is a column of numbers; give the model a mk.Utility of it, or turn it into numbers"
        ) from None
    if not np.isfinite(gained).all():
        raise InvalidArgument(f"the reward {name!r} is finite in every row")
    return gained


def stages_of_model(model: Any, policy_sees: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the actions in a model's order of time, each with what it newly depends on or is chosen by.

    The parents of an action in a model of the data are all that the logging looked at, so no common cause stays open.
    """
    order = model.graph.topological_order()
    check_known(policy_sees, order, "the model")
    known = model.equivalence_class
    if known is not None and (loose := [e for e in known.undirected_edges() if {*e} & policy_sees.keys()]):
        raise NotIdentifiable(without_direction(loose, "what the logging looked at depends on it"))
    found: dict[str, list[str]] = {}
    so_far: set[str] = set()
    for name in (n for n in order if n in policy_sees):
        if model[name].kind == "decision":
            raise UnsupportedModel(
                f"{name!r} is a decision in the model, which does not say what the logged one looked at; give stages=, or "
                "the model as it was before free()"
            )
        above = [n for n in (*model.parents(name), *policy_sees[name]) if n not in so_far]
        found[name] = list(dict.fromkeys(n for n in above if n not in policy_sees))
        so_far |= {*found[name], name}
    return found


def rewards_of_model(model: Any, data: Any, actions: Sequence[str]) -> list[Array]:
    """Return for each action what the model's utilities say was gained after it, row by row.

    A utility belongs to the last action above it: later ones do not change it.
    """
    frame = as_frame(data)
    nodes = {n: model[n] for n in model.graph.topological_order() if model[n].kind == "utility"}
    if not nodes:
        raise IncompleteModel(
            "the model has no utility; give reward= a column, or add(..., mk.Utility(...), parents=...)"
        )
    amounts: dict[str, Array] = {}
    for name, node in nodes.items():
        below = {p: amounts[p] if p in amounts else _values(frame, p, model) for p in node.parent_names}
        if node.worth is None:
            answer = node.amount(
                **{p: v if p in amounts else frame[p].to_numpy(dtype=np.float64) for p, v in below.items()}
            )
            amounts[name] = np.broadcast_to(np.asarray(answer, dtype=np.float64), len(frame)).copy()
        else:
            amounts[name] = np.broadcast_to(node.worth[tuple(below.values())], len(frame)).astype(np.float64)
    inner = {p for node in nodes.values() for p in node.parent_names}
    found = [np.zeros(len(frame)) for _ in actions]
    for name in nodes:
        if name not in inner:
            above = model.graph.ancestors(name)
            last = max((t for t, action in enumerate(actions) if action in above), default=0)
            found[last] += amounts[name]
    return found


def _values(frame: "pd.DataFrame", name: str, model: Any) -> Ints:
    check_known([name], frame.columns, "the data")
    _check_complete(frame, [name])
    variable = model.variable(name)
    if not hasattr(variable, "index"):
        return np.zeros(len(frame), dtype=np.int64)
    place = {value: variable.index(value) for value in frame[name].unique().tolist()}
    return frame[name].map(place).to_numpy(dtype=np.int64)


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
