"""Gymnasium environments that play a process: what is seen, what is done, what it earns, and whether it is over.

A process that reaches a terminal state has *terminated*: nothing comes after. One that is cut off after so many steps
is *truncated*: its state still has a value, and learners must not take it for an end.

Reference: Towers et al. (2024), "Gymnasium: A Standard Interface for Reinforcement Learning Environments".
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count

try:
    import gymnasium
    from gymnasium.spaces import Discrete

    Environment: Any = gymnasium.Env
except ImportError:
    gymnasium = None  # type: ignore[assignment]
    Environment = object


def environment(
    process: DecisionProcess | PartiallyObserved, horizon: int | None = None
) -> "ProcessEnvironment":
    """Return an environment that plays a process.

    Parameters
    ----------
    process
        A `DecisionProcess`, whose states are seen, or a `PartiallyObserved`, whose observations are.
    horizon
        After how many steps an episode is cut off; None for never.

    Raises
    ------
    ImportError
        If Gymnasium is not installed: `pip install markovia[control]`.

    Examples
    --------
    >>> walk = DecisionProcess.from_tables([[[0, 1.0], [0, 1]]], [-1.0, 0.0], initial=0, terminal=[1])
    >>> world = environment(walk)
    >>> seen, _ = world.reset(seed=0)
    >>> world.step(0)[1:4]  # the reward, whether it is over, whether it was cut off
    (-1.0, True, False)
    """
    if gymnasium is None:
        raise ImportError(
            "environments are Gymnasium's, which is not installed; pip install 'markovia[control]'"
        )
    check_count("horizon", horizon, 1, none=True)
    return ProcessEnvironment(process, horizon)


class ProcessEnvironment(Environment):  # type: ignore[misc]
    """A process as an environment with numbered observations and actions.

    Attributes
    ----------
    process
        What is played.
    horizon
        After how many steps an episode is cut off.
    observation_space, action_space
        Numbers of states (or observations) and actions; `info` has their names, and which actions are allowed.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own attribute)
    render_mode = None

    def __init__(self, process: DecisionProcess | PartiallyObserved, horizon: int | None = None) -> None:
        self.horizon = horizon
        self.heard = process if isinstance(process, PartiallyObserved) else None
        self.process = process.process if isinstance(process, PartiallyObserved) else process
        seen = (
            self.process.n_states
            if self.heard is None
            else self.heard.n_observations + (self.heard.first_observation is None)
        )
        self.observation_space = Discrete(seen)
        self.action_space = Discrete(self.process.n_actions)
        self._state: int | None = None
        self._steps = 0
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in a state that is drawn, or `options={"state": name}`; return what is seen, and more."""
        super().reset(seed=seed)
        named = None if options is None else options.get("state")
        self._state = self._drawn(self.process.first) if named is None else self.process.state_at(named)
        self._steps, self._over = 0, self._ended()
        if self.heard is None:
            return self._seen(self._state)
        if self.heard.first_observation is None:
            return self._seen(
                self.heard.n_observations
            )  # nothing is heard yet, which has a number of its own
        return self._seen(self._drawn(self.heard.first_observation[self._state]))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do something; return what is seen then, the reward, whether it is over, whether it is cut off, and more."""
        if self._state is None or self._over:
            raise InvalidArgument("the episode has not begun or is over; reset() first")
        a, s, process = self._action(action), self._state, self.process
        rows, row = process.transitions, a * process.n_states + s
        first, last = rows.indptr[row], rows.indptr[row + 1]
        self._state = int(rows.indices[first + self._drawn(rows.data[first:last])])
        self._steps += 1
        terminated = self._ended()
        truncated = not terminated and self.horizon is not None and self._steps >= self.horizon
        self._over = terminated or truncated
        number = self._state
        if self.heard is not None:
            number = self._drawn(self.heard.observations[a][[self._state]].toarray()[0])
        seen, info = self._seen(number)
        return seen, float(process.rewards[s, a]), terminated, truncated, info

    def _action(self, action: Any) -> int:
        if not self.action_space.contains(action):
            raise InvalidArgument(
                f"an action is a whole number from 0 to {self.process.n_actions - 1}, not {action!r}"
            )
        a, s = int(action), self._state
        if self.process.allowed is not None and not self.process.allowed[s, a]:
            raise InvalidArgument(
                f"action {self.process.action_name(a)!r} is not allowed here; info['action_mask'] has those that are"
            )
        return a

    def _ended(self) -> bool:
        return self.process.terminal is not None and bool(self.process.terminal[self._state])

    def _drawn(self, law: Array) -> int:
        reach = np.cumsum(law)
        return int(np.searchsorted(reach, self.np_random.random() * reach[-1], side="right"))

    def _seen(self, number: int) -> tuple[Any, dict[str, Any]]:
        """Return an observation as the space has it, and its name with which actions are allowed."""
        info: dict[str, Any] = {}
        if self.heard is None:
            info["state"] = self.process.state_name(number)
        elif number < self.heard.n_observations:
            shape = [len(states) for states in self.heard.heard.values()]
            codes = np.unravel_index(number, shape)
            info["heard"] = {
                n: states[int(c)] for (n, states), c in zip(self.heard.heard.items(), codes, strict=True)
            }
        if self.process.allowed is not None:
            info["action_mask"] = self.process.allowed[self._state].astype(np.int8)
        return np.int64(number), info
