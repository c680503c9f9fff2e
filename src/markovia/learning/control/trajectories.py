"""Records of what was tried: transitions as arrays, and how they are collected.

A transition is a state, an action, a reward, the state it led to, and whether the episode ended there: `terminated` where
there is no future, `truncated` where somebody merely stopped looking. Records that were collected side by side have the
axes (step, agent); `flat` puts them behind each other.

Cost: collecting calls the policy once a step for all agents.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.control.worlds import TrialWorlds, worlds_of
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True)
class Transitions:
    """What was tried, and what came of it; arrays with equal first axes.

    Parameters
    ----------
    state, action
        What was seen and done: whole numbers, or numbers with one more axis.
    reward
        What it was worth.
    after
        What was seen next; for the last step of an episode, what was seen before a new one began.
    terminated, truncated
        Whether the episode ended there, and whether it was cut there.

    Examples
    --------
    >>> rows = Transitions([0, 1], [1, 0], [0.0, 1.0], [1, 2], [False, True], [False, False])
    >>> len(rows), rows.n_states
    (2, 3)
    """

    state: Any
    action: Any
    reward: Any
    after: Any
    terminated: Any
    truncated: Any

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, np.asarray(getattr(self, f.name)))
        shape = self.reward.shape
        for f in fields(self):
            array = getattr(self, f.name)
            if array.shape[: len(shape)] != shape:
                raise InvalidArgument(
                    f"{f.name!r} has the shape {array.shape}, which does not begin with that of rewards, {shape}"
                )
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InvalidArgument(
                    f"{f.name!r} of the transitions has values that are no finite numbers; leave those rows out"
                )

    def __len__(self) -> int:
        return int(self.reward.size)

    @property
    def n_states(self) -> int:
        """One more than the largest state; only for counted states."""
        if self.state.dtype.kind not in "iu":
            raise InvalidArgument("these states are numbers, and are not counted")
        return int(max(self.state.max(), self.after.max())) + 1

    def flat(self) -> Self:
        """Return the transitions behind each other, along one axis."""
        lead = self.reward.ndim
        return type(self)(
            *(getattr(self, f.name).reshape(-1, *getattr(self, f.name).shape[lead:]) for f in fields(self))
        )

    @classmethod
    def joined(cls, several: Iterable["Transitions"]) -> "Transitions":
        """Return several records as one."""
        flat = [s.flat() for s in several]
        return cls(*(np.concatenate([getattr(s, f.name) for s in flat]) for f in fields(cls)))


class TrialRunner:
    """Agents in their worlds: they go on where they stopped, and the returns of finished episodes are kept.

    Parameters
    ----------
    worlds
        Where the agents are.
    rng
        What random numbers come from.

    Attributes
    ----------
    steps
        Steps made by all agents together.
    ends, returns
        After how many steps episodes ended, and the sums of their rewards.
    own_returns
        The sums of each agent.
    """

    def __init__(self, worlds: TrialWorlds, rng: np.random.Generator) -> None:
        self.worlds, self.rng = worlds, rng
        self.steps = 0
        self.ends: list[int] = []
        self.returns: list[float] = []
        self.own_returns: list[list[float]] = [[] for _ in range(worlds.n)]
        self._state = worlds.begin(rng)
        self._total = np.zeros(worlds.n)

    def collect(self, act: Callable[[Any, np.random.Generator], Any], steps: int) -> Transitions:
        """Return what some steps of all agents led to, with axes (step, agent)."""
        states, actions, moves = [], [], []
        for _ in range(steps):
            action = act(self._state, self.rng)
            move = self.worlds.step(action)
            states.append(self._state)
            actions.append(action)
            moves.append(move)
            self._state = move.state
            self.steps += self.worlds.n
            self._total += move.reward
            over = move.terminated | move.truncated
            if over.any():
                for agent in np.flatnonzero(over):
                    self.own_returns[agent].append(float(self._total[agent]))
                    self.returns.append(float(self._total[agent]))
                    self.ends.append(self.steps)
                self._total[over] = 0.0
        reward, after, ended, cut = (np.stack([m[k] for m in moves]) for k in range(4))
        return Transitions(np.stack(states), np.stack(actions), reward, after, ended, cut)

    def random_actions(self, states: Any, rng: np.random.Generator) -> Any:
        """Return actions that all are equally likely; numbers without bounds are drawn around 0."""
        spaces = self.worlds.spaces
        if spaces.actions is not None:
            return rng.integers(spaces.actions, size=len(states))
        low, high = np.asarray(spaces.low), np.asarray(spaces.high)
        bounded = np.isfinite(low) & np.isfinite(high)
        shape = (len(states), spaces.numbers)
        drawn = rng.uniform(np.where(bounded, low, 0.0), np.where(bounded, high, 1.0), shape)
        return np.where(bounded, drawn, rng.standard_normal(shape))


def collect(
    env: Any, steps: int, *, act: Callable[[Any, np.random.Generator], Any] | None = None, agents: int = 1,
    horizon: int | None = None, seed: Seed = None,
) -> Transitions:  # fmt: skip
    """Return transitions of agents that try something.

    Parameters
    ----------
    env
        An environment of Gymnasium or its name, a function that makes one, or a `DecisionProcess`.
    steps
        Steps of each agent.
    act
        `act(states, rng)`, which returns an action for each row of states; by default all actions are equally likely.
    agents
        How many there are; each has an environment of its own.
    horizon
        Steps after which the episodes of a process are cut.
    seed
        What random numbers are made from.

    Returns
    -------
    transitions
        One behind the other, agent by agent.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> process = DecisionProcess(csr_array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [2.0]]))
    >>> rows = collect(process, 4, seed=0)
    >>> sorted(rows.reward.tolist())
    [0.0, 0.0, 2.0, 2.0]
    """
    check_count("steps", steps, 1)
    check_count("agents", agents, 1)
    check_count("horizon", horizon, 1, none=True)
    runner = TrialRunner(worlds_of(env, agents, horizon), generator(seed))
    found = runner.collect(act or runner.random_actions, steps)
    turned = (np.swapaxes(getattr(found, f.name), 0, 1) for f in fields(found))
    return Transitions(*turned).flat()


class RunningScale:
    """Mean and spread of the columns of rows that come in parts (Chan, Golub and LeVeque 1983).

    Examples
    --------
    >>> scale = RunningScale(1)
    >>> scale.add(np.array([[1.0], [3.0]]))
    >>> scale.add(np.array([[5.0]]))
    >>> scale.mean.tolist(), round(float(scale.spread[0]), 3)
    ([3.0], 1.633)
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.mean: Array = np.zeros(columns)
        self._squares: Array = np.zeros(columns)

    def add(self, rows: Array) -> None:
        """Count more rows."""
        n, mean = len(rows), rows.mean(axis=0)
        moved = mean - self.mean
        total = self.count + n
        self._squares = self._squares + ((rows - mean) ** 2).sum(axis=0) + moved**2 * (self.count * n / total)
        self.mean = self.mean + moved * (n / total)
        self.count = total

    @property
    def spread(self) -> Array:
        """The standard deviation; 1 for columns that are constant."""
        found = np.sqrt(self._squares / max(self.count, 1))
        return np.where(found > 1e-9 * np.abs(self.mean), found, 1.0)

    def fix(self, mean: Array, spread: Array) -> None:
        """Take on a mean and a spread that were written down."""
        self.count, self.mean, self._squares = 1, mean, spread**2
