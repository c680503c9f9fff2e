"""Demonstrations: what somebody did in a process whose rewards are not known, as arrays of state and action numbers.

Cost: linear in the steps.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.learning.control.trajectories import Transitions
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import numbers

RULE = (
    "trajectories= is a list with one item for each: a list of pairs (state, action), or a pair of lists, of states and "
    "of actions (one state more than actions where the last one was seen)"
)


@dataclass(frozen=True)
class Demonstrations:
    """Steps of all trajectories behind each other.

    Attributes
    ----------
    states, actions
        Numbers of the state and the action of each step.
    offsets
        Where each trajectory begins, and one end more.
    over
        Whether each trajectory ended in a state that is terminal.
    """

    states: Ints
    actions: Ints
    offsets: Ints
    over: Flags

    def __len__(self) -> int:
        return len(self.over)

    @property
    def lengths(self) -> Ints:
        """How many steps each trajectory has."""
        return np.diff(self.offsets)

    @property
    def first(self) -> Ints:
        """The first state of each trajectory."""
        return self.states[self.offsets[:-1]]

    def ages(self) -> Ints:
        """Return for each step how many went before it in its trajectory."""
        return np.arange(len(self.states)) - np.repeat(self.offsets[:-1], self.lengths)

    def counts(self, shape: tuple[int, int], discount: float = 1.0) -> Array:
        """Return how often each action was taken in each state, (S, A), discounted by when."""
        found = np.zeros(shape)
        np.add.at(found, (self.states, self.actions), discount ** self.ages().astype(np.float64))
        return found

    @classmethod
    def read(cls, trajectories: Any, process: DecisionProcess) -> "Demonstrations":
        """Read trajectories by the names of states and actions, and check that the process can make their moves."""
        parts = (
            _of_transitions(trajectories) if isinstance(trajectories, Transitions) else _listed(trajectories)
        )
        named_states = _places(process.states, process.n_states, "state")
        named_actions = _places(process.actions, process.n_actions, "action")
        states, actions, after = [], [], []
        for i, (visited, taken) in enumerate(parts):
            if len(visited) not in (len(taken), len(taken) + 1) or not len(taken):
                raise InvalidArgument(
                    f"{RULE}; trajectory {i} has {len(visited)} states and {len(taken)} actions"
                )
            codes = np.array([named_states(s) for s in visited], dtype=np.int64)
            states.append(codes[: len(taken)])
            actions.append(np.array([named_actions(a) for a in taken], dtype=np.int64))
            after.append(np.append(codes[1 : len(taken) + 1], -1)[: len(taken)])
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in actions])]).astype(np.int64)
        ends = np.zeros(process.n_states, dtype=bool) if process.terminal is None else process.terminal
        last = np.concatenate(after)[offsets[1:] - 1]
        found = cls(np.concatenate(states), np.concatenate(actions), offsets, (last >= 0) & ends[last])
        found._check(process, np.concatenate(after), ends)
        return found

    def _check(self, process: DecisionProcess, after: Ints, ends: Flags) -> None:
        if ends[self.states].any():
            s = int(self.states[int(ends[self.states].argmax())])
            raise InvalidArgument(
                f"an action is taken in {process.state_name(s)!r}, which is terminal; end the trajectory there"
            )
        if process.allowed is not None and not process.allowed[self.states, self.actions].all():
            i = int(np.argmin(process.allowed[self.states, self.actions]))
            raise InvalidArgument(
                f"the action {process.action_name(int(self.actions[i]))!r} is not allowed in "
                f"{process.state_name(int(self.states[i]))!r}, where it was taken"
            )
        seen = np.flatnonzero(after >= 0)
        rows = self.actions[seen] * process.n_states + self.states[seen]
        possible = np.zeros(0)
        if len(seen):
            found = process.transitions[rows, after[seen]]
            possible = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        if not np.all(possible > 0):
            i = int(seen[int(np.argmin(possible > 0))])
            here, there = (process.state_name(int(codes[i])) for codes in (self.states, after))
            raise InvalidArgument(
                f"the move from {here!r} by {process.action_name(int(self.actions[i]))!r} to {there!r} has probability "
                "zero in the process, and was seen"
            )


@dataclass(frozen=True)
class RewardFeatures:
    """What rewards are made of: (S, A, F) numbers, with names."""

    values: Array
    names: list[str]

    @classmethod
    def read(cls, features: Any, process: DecisionProcess) -> "RewardFeatures":
        """Read an array (S, F) or (S, A, F), a function of state and action, or a mapping from names to such."""
        shape = process.rewards.shape
        if isinstance(features, Mapping):
            tables = [
                _table(f, process)[..., None] if callable(f) else _widened(f, shape, flat=True)
                for f in features.values()
            ]
            if not tables or any(t.shape[-1] != 1 for t in tables):
                raise InvalidArgument(
                    "features= by name have one number for each state, or for each state and action"
                )
            return cls(np.concatenate(tables, axis=-1), [str(n) for n in features])
        if callable(features):
            found = _table(features, process)
            found = found[..., None] if found.ndim == 2 else found
        else:
            found = _widened(features, shape)
        return cls(found, [f"feature {i}" for i in range(found.shape[-1])])


def _widened(features: Any, shape: tuple[int, ...], *, flat: bool = False) -> Array:
    """Return an array as (S, A, F)."""
    n, k = shape
    rule = f"features= are finite numbers of shape ({n}, F) or ({n}, {k}, F), a function of state and action, or a mapping"
    values = numbers(features, rule)
    if flat and values.shape in ((n,), (n, k)):
        values = values[..., None]
    if (
        values.ndim not in (2, 3)
        or values.shape[: values.ndim - 1] not in ((n,), (n, k))
        or not np.isfinite(values).all()
    ):
        raise InvalidArgument(f"{rule}, not the shape {values.shape}")
    if not values.shape[-1]:
        raise InvalidArgument(f"{rule}; there is not one feature")
    return np.broadcast_to(values[:, None] if values.ndim == 2 else values, (n, k, values.shape[-1])).astype(
        np.float64
    )


def _table(function: Callable[..., Any], process: DecisionProcess) -> Array:
    """Return what a function of the names of state and action gives for all of them."""
    n, k = process.rewards.shape
    rows = [[function(process.state_name(s), process.action_name(a)) for a in range(k)] for s in range(n)]
    found = numbers(rows, "a feature function returns a number, or as many for each state and action")
    if not np.isfinite(found).all():
        raise InvalidArgument("a feature function returns finite numbers")
    return found


def _places(names: Any, n: int, what: str) -> Callable[[Any], int]:
    """Return what finds the number of a state or action by its name."""
    known = {name: i for i, name in enumerate(range(n) if names is None else names)}

    def place(name: Any) -> int:
        key = name.item() if isinstance(name, np.generic) else name
        if key not in known:
            shown = ", ".join(repr(k) for k in list(known)[:12]) + (", ..." if n > 12 else "")
            raise InvalidArgument(f"unknown {what} {key!r} in a trajectory; the {what}s are {shown}")
        return known[key]

    return place


def _listed(trajectories: Any) -> list[tuple[Any, Any]]:
    parts = (
        list(trajectories)
        if isinstance(trajectories, Iterable) and not isinstance(trajectories, str | Mapping)
        else []
    )
    if not parts:
        raise InvalidArgument(f"{RULE}, not {trajectories!r:.60}")
    return [_one(part) for part in parts]


def _one(part: Any) -> tuple[Any, Any]:
    """Return states and actions of one trajectory, which may have either form."""
    if (
        isinstance(part, tuple)
        and len(part) == 2
        and all(isinstance(p, list | tuple | np.ndarray) for p in part)
    ):
        return part
    steps = list(part) if isinstance(part, Iterable) and not isinstance(part, str) else []
    if not steps or not all(isinstance(s, list | tuple | np.ndarray) and len(s) == 2 for s in steps):
        raise InvalidArgument(f"{RULE}, not {part!r:.60}")
    return [s[0] for s in steps], [s[1] for s in steps]


def _of_transitions(rows: Transitions) -> list[tuple[Any, Any]]:
    """Return the episodes of transitions, agent by agent."""
    columns = [np.asarray(c).reshape(len(rows.reward), -1) for c in (rows.state, rows.action, rows.after)]
    over = np.asarray(rows.terminated | rows.truncated).reshape(len(rows.reward), -1)
    found = []
    for agent in range(over.shape[1]):
        cuts = np.append(np.flatnonzero(over[:-1, agent]) + 1, len(over))
        for begin, end in zip(np.append(0, cuts[:-1]).tolist(), cuts.tolist(), strict=True):
            states, actions, after = (c[begin:end, agent] for c in columns)
            found.append((np.append(states, after[-1]), actions))
    return found
