"""Environments side by side: copies of a Gymnasium environment, or a decision process simulated for many agents at once.

All of them step together and begin anew by themselves; what an agent saw last before that is kept, since only termination
ends the future, and a time limit does not. Nothing but `reset`, `step` and the two spaces of an environment is used, so
objects of one's own do as well. A number that is none is refused where it appears.

References: Towers et al. (2024) for the interface. Cost: one call an agent and step; decision processes one search of
the cumulated transition probabilities for all agents.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.runtime.array_types import Array, Ints


@dataclass(frozen=True)
class WorldSpaces:
    """What agents see and do.

    Attributes
    ----------
    features
        Numbers of an observation, or how many states there are.
    states
        How many states there are; None where observations are numbers.
    actions
        How many actions there are; None where actions are numbers.
    low, high
        The least and the largest numbers of an action, where these are numbers.
    shape
        The shape of an action of numbers as the environment takes it.
    first_state, first_action
        What the first state and the first action are called.
    """

    features: int
    states: int | None
    actions: int | None
    low: Array | None = None
    high: Array | None = None
    shape: tuple[int, ...] = ()
    first_state: int = 0
    first_action: int = 0

    @property
    def numbers(self) -> int:
        """How many numbers an action is made of; 0 where actions are counted."""
        return 0 if self.low is None else len(self.low)

    def encoded(self, states: Any) -> Array:
        """Return observations as rows of numbers: indicators of states, or the numbers themselves."""
        if self.states is None:
            return np.asarray(states, np.float64).reshape(-1, self.features)
        found = np.zeros((np.size(states), self.states))
        found[np.arange(len(found)), np.ravel(states)] = 1.0
        return found

    def native(self, action: Any) -> Any:
        """Return an action as the environment takes it."""
        if self.actions is not None:
            return int(action) + self.first_action
        return np.clip(action, self.low, self.high).astype(np.float32).reshape(self.shape)


class WorldStep(NamedTuple):
    """What a step led to for each agent: `after` is what it saw, `state` is where it goes on (after a new beginning)."""

    reward: Array
    after: Any
    terminated: Any
    truncated: Any
    state: Any


class TrialWorlds(Protocol):
    """Some environments that step together."""

    n: int
    spaces: WorldSpaces

    def begin(self, rng: np.random.Generator) -> Any:
        """Begin all episodes; return what the agents see."""

    def step(self, actions: Any) -> WorldStep:
        """Make a step with an action each."""


class EnvironmentCopies:
    """Environments with Gymnasium's `reset` and `step`, one for each agent.

    Parameters
    ----------
    environments
        The environments, all alike.
    """

    def __init__(self, environments: list[Any]) -> None:
        self.environments = environments
        self.n = len(environments)
        first = environments[0]
        self._seen = _observations(first.observation_space)
        self.spaces = _spaces(first.observation_space, first.action_space, self._seen)
        self._steps = 0

    def begin(self, rng: np.random.Generator) -> Any:
        """Begin all episodes, each with a seed of its own."""
        seeds = rng.integers(2**31, size=self.n)
        first = [e.reset(seed=int(s))[0] for e, s in zip(self.environments, seeds, strict=True)]
        states = self._rows(first)
        _check_finite("an observation", states, 0)
        return states

    def step(self, actions: Any) -> WorldStep:
        """Make a step with an action each."""
        rewards = np.empty(self.n)
        ended, cut = np.empty(self.n, bool), np.empty(self.n, bool)
        after: list[Any] = []
        now: list[Any] = []
        for k, environment in enumerate(self.environments):
            seen, rewards[k], ended[k], cut[k], _ = environment.step(self.spaces.native(actions[k]))
            after.append(seen)
            now.append(environment.reset()[0] if ended[k] or cut[k] else seen)
        self._steps += self.n
        found = self._rows(after)
        _check_finite("a reward", rewards, self._steps)
        _check_finite("an observation", found, self._steps)
        again = ended | cut
        return WorldStep(rewards, found, ended, cut, self._rows(now) if again.any() else found)

    def _rows(self, seen: list[Any]) -> Any:
        if self.spaces.states is not None:
            return np.array(seen, np.int64) - self.spaces.first_state
        return np.array([self._seen(s) for s in seen], np.float64)


class SimulatedProcess:
    """A decision process that many agents walk through, each on its own.

    Parameters
    ----------
    process
        The process; a state that is terminal ends an episode.
    n
        How many agents there are.
    horizon
        Steps after which an episode is cut; None for never.
    """

    def __init__(self, process: DecisionProcess, n: int, horizon: int | None = None) -> None:
        if process.allowed is not None and not np.all(process.allowed):
            raise UnsupportedModel(
                "some actions are forbidden in some states, which learning from trial does not know; solve the process with "
                "decide(), or give forbidden actions a bad reward"
            )
        self.n, self.horizon = n, horizon
        self.spaces = WorldSpaces(process.n_states, process.n_states, process.n_actions)
        rows = process.transitions
        self._starts, self._targets = rows.indptr, rows.indices
        # one rising list of numbers for all rows: row k runs from k to k + 1, so that one search finds all next states
        before = np.concatenate([[0.0], np.cumsum(rows.data)])
        counts = np.diff(rows.indptr)
        own = np.repeat(np.arange(len(counts)), counts)
        share = (before[1:] - before[rows.indptr[own]]) / np.diff(before[rows.indptr])[own]
        self._cumulated = own + np.minimum(share, 1.0)
        self._rewards = process.rewards
        self._terminal = np.zeros(process.n_states, bool) if process.terminal is None else process.terminal
        if self._terminal.all():
            raise InvalidArgument("every state of the process is terminal; there is nothing to learn")
        self._initial = np.cumsum(process.first)
        self._rng = np.random.default_rng(0)
        self._state: Ints = np.zeros(n, np.int64)
        self._age: Ints = np.zeros(n, np.int64)

    def begin(self, rng: np.random.Generator) -> Ints:
        """Begin all episodes."""
        self._rng = rng
        self._state, self._age = self._first(self.n), np.zeros(self.n, np.int64)
        return self._state

    def step(self, actions: Any) -> WorldStep:
        """Make a step with an action each."""
        rows = np.asarray(actions) * self.spaces.features + self._state
        at = np.searchsorted(self._cumulated, rows + self._rng.random(self.n), side="right")
        after = self._targets[np.minimum(at, self._starts[rows + 1] - 1)].astype(np.int64)
        rewards = self._rewards[self._state, actions]
        self._age += 1
        ended = self._terminal[after]
        cut = np.zeros(self.n, bool) if self.horizon is None else (self._age >= self.horizon) & ~ended
        again = ended | cut
        self._state, self._age = after.copy(), np.where(again, 0, self._age)
        if again.any():
            self._state[again] = self._first(int(again.sum()))
        return WorldStep(rewards, after, ended, cut, self._state)

    def _first(self, n: int) -> Ints:
        found: Ints = np.searchsorted(self._initial, self._rng.random(n), side="right")
        return np.minimum(found, len(self._initial) - 1).astype(np.int64)


def worlds_of(env: Any, n: int, horizon: int | None = None) -> TrialWorlds:
    """Return environments side by side, as many as asked for where copies can be made of what is given.

    Parameters
    ----------
    env
        An environment of Gymnasium, its name, a function that makes one, a `DecisionProcess`, or a `mk.MDP`.
    n
        How many. An environment that has no name (`spec`) cannot be copied, and stays alone.
    horizon
        Steps after which the episodes of a process are cut; environments have time limits of their own.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> process = DecisionProcess(csr_array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((2, 1)))
    >>> worlds = worlds_of(process, 3)
    >>> states = worlds.begin(np.random.default_rng(0))
    >>> bool((worlds.step(np.zeros(3, int)).after == 1 - states).all())
    True
    """
    process = getattr(env, "table", env)  # an MDP holds its process
    if isinstance(process, DecisionProcess):
        return SimulatedProcess(process, n, horizon)
    if horizon is not None:
        raise InvalidArgument(
            "horizon= cuts the episodes of a process; an environment has a time limit of its own"
        )
    if isinstance(env, str):
        name = env
        return EnvironmentCopies([_gymnasium().make(name) for _ in range(n)])
    if hasattr(env, "step") and hasattr(env, "reset") and not isinstance(env, type):
        if hasattr(env, "num_envs"):
            raise InvalidArgument("give one environment, not a vector of them; copies are made of it")
        return EnvironmentCopies([env, *_copies(env, n - 1)])
    if callable(env):
        maker: Callable[[], Any] = env
        return EnvironmentCopies([maker() for _ in range(n)])
    raise InvalidArgument(
        "env= is an environment with reset and step, the name of one in Gymnasium, a function that makes one, or a "
        f"decision process, not {type(env).__name__}"
    )


def _copies(env: Any, n: int) -> list[Any]:
    """Return further environments like one, where its description is enough to make them."""
    spec = getattr(env, "spec", None)
    if spec is None or n == 0:
        return []
    try:
        return [_gymnasium().make(spec) for _ in range(n)]
    except Exception:  # a wrapper that does not say how it was made; what it raises differs between versions
        return []


def _gymnasium() -> Any:
    try:
        import gymnasium  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InvalidArgument(
            "environments by name come from Gymnasium, which is not installed; pip install 'markovia[control]'"
        ) from None
    return gymnasium


def _check_finite(what: str, values: Any, steps: int) -> None:
    if not np.isfinite(values).all():
        raise InvalidArgument(
            f"the environment returned {what} that is no finite number after {steps:,} steps; mend its step() or reset()"
        )


def _observations(space: Any) -> Callable[[Any], Array]:
    """Return what makes one vector of an observation; counted states stay as they are."""
    if hasattr(space, "n") or type(space).__name__ == "Box":
        return lambda seen: np.asarray(seen, np.float64).ravel()
    flatten = _gymnasium().spaces.utils.flatten
    return lambda seen: np.asarray(flatten(space, seen), np.float64)


def _spaces(observations: Any, actions: Any, seen: Callable[[Any], Array]) -> WorldSpaces:
    """Return what agents see and do, read off the spaces of an environment."""
    states, first_state = None, 0
    if type(observations).__name__ == "MultiBinary" or not hasattr(observations, "n"):
        features = (
            int(np.prod(observations.shape))
            if type(observations).__name__ == "Box"
            else len(seen(observations.sample()))
        )
    else:
        states = features = int(observations.n)
        first_state = int(getattr(observations, "start", 0))
    if hasattr(actions, "n") and type(actions).__name__ != "MultiBinary":
        first = int(getattr(actions, "start", 0))
        return WorldSpaces(features, states, int(actions.n), first_state=first_state, first_action=first)
    if not hasattr(actions, "low"):
        raise UnsupportedModel(
            f"actions are counted or numbers, not a {type(actions).__name__}; wrap the environment so that they are"
        )
    low, high = (np.asarray(x, np.float64).ravel() for x in (actions.low, actions.high))
    return WorldSpaces(features, states, None, low, high, tuple(actions.shape), first_state)
