"""Linear controls of linear systems, and the agent that applies one to the mean of what it knows of the state."""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, numbers
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from markovia.inference.decisions.numbers.linear_quadratic import LinearQuadratic


@dataclass(frozen=True, eq=False, repr=False)
class Feedback(InNotebooks):
    """A control u = -gain x - push, with what it is worth.

    Attributes
    ----------
    system
        What it controls.
    value
        Minus the expected cost from the first state on; for averages, of a step in the long run.
    gain, push
        (m, n) and (m,), or with a step in front where there is a horizon.
    cost_matrix, cost_slope, cost_constant
        P, p and c: what is left to pay in state x is x'P x + 2 p'x + c; with a step in front where there is a horizon. For
        averages c is 0: costs are relative.
    info
        How it was computed; `error` is the residual of the Riccati equation, as a part of P.
    filter_cov
        What remains unknown of the state in the long run, where it is only observed.

    Examples
    --------
    >>> from markovia.inference.decisions.numbers.linear_quadratic import LinearQuadratic, regulate
    >>> feedback = regulate(LinearQuadratic(1, 1, 1, 1, noise=1), average=True)
    >>> feedback
    Feedback: value -1.61803, 1 control of 1 state
    >>> feedback.act([2.0]).round(6).tolist()
    [-1.236068]
    """

    system: "LinearQuadratic"
    value: float
    gain: Array
    push: Array
    cost_matrix: Array
    cost_slope: Array
    cost_constant: Array
    info: Info
    horizon: int | None = None
    discount: float = 1.0
    filter_cov: Array | None = None

    @property
    def bound(self) -> float:
        """What no control exceeds: the value, which is the best one."""
        return self.value

    @property
    def gap(self) -> float:
        """How much better any other control can be: nothing."""
        return 0.0

    def act(self, state: Any = None, step: int = 0) -> Array:
        """Return the control at a state, or at its mean.

        Parameters
        ----------
        state
            Its numbers, or a mapping from names; by default the mean of the first state.
        step
            The step of a horizon.
        """
        x = (
            self.system.initial_mean
            if state is None
            else self._numbers(state, self.system.states, self.system.n_states)
        )
        here: Any = self._step(step)
        return np.asarray(-(self.gain[here] @ x) - self.push[here])

    def v(self, state: Any = None, step: int = 0) -> float:
        """Return what a state that is known is worth from a step on: minus what is left to pay; for averages, relative."""
        x = (
            self.system.initial_mean
            if state is None
            else self._numbers(state, self.system.states, self.system.n_states)
        )
        here: Any = self._step(step)
        P, p, c = self.cost_matrix[here], self.cost_slope[here], self.cost_constant[here]
        return -float(x @ P @ x + 2.0 * p @ x + c)

    def stream(self) -> "LinearAgent":
        """Return an agent that acts, observes, and keeps the mean and covariance of the state."""
        return LinearAgent(self)

    def _step(self, step: int) -> Any:
        check_count("step", step)
        if self.horizon is None:
            return ...
        if step >= self.horizon:
            raise InvalidArgument(f"there are the steps 0 to {self.horizon - 1}, not {step}")
        return step

    @staticmethod
    def _numbers(given: Any, names: Sequence[str], size: int) -> Array:
        """Return given numbers in order."""
        if isinstance(given, Mapping):
            check_known(given, list(names), "the system")
            if missing := [name for name in names if name not in given]:
                raise InvalidArgument(f"{missing[0]!r} is missing; say its number")
            given = [given[name] for name in names]
        found = np.atleast_1d(numbers(given, "a state holds numbers"))
        if found.shape != (size,):
            raise InvalidArgument(f"there are {size} numbers to give, not the shape {found.shape}")
        return found

    def __str__(self) -> str:
        (m, n), steps = self.gain.shape[-2:], "" if self.horizon is None else f"{self.horizon} steps, "
        many = [f"{count} {word}{'s' * (count != 1)}" for count, word in ((m, "control"), (n, "state"))]
        return f"Feedback: {steps}value {self.value:.6g}, {' of '.join(many)}"

    __repr__ = __str__


class LinearAgent:
    """An agent that controls by the mean of what it knows of the state; made by `stream`.

    Attributes
    ----------
    mean, cov
        Of the present state, given all that was done and observed.
    step
        How many controls were applied and followed by an observation.
    """

    def __init__(self, feedback: Feedback) -> None:
        system = feedback.system
        self.feedback, self.step = feedback, 0
        self.mean, self.cov = system.initial_mean.copy(), system.initial_cov.copy()
        self._done: Array | None = None
        self._begun = False

    @property
    def belief(self) -> tuple[Array, Array]:
        """The mean and covariance of the present state."""
        return self.mean, self.cov

    def act(self) -> Array:
        """Return the control to apply now; asked again before anything is observed, the same."""
        if self._done is None:
            self._done, self._begun = self.feedback.act(self.mean, self.step), True
        return self._done

    def update(self, observed: Any = None, **named: Any) -> tuple[Array, Array]:
        """Take what was observed after the control, or before the first one; return the mean and covariance of the state.

        Parameters
        ----------
        observed
            The numbers, NaN where one is missing; of the state itself where the system has no C.
        named
            The same by name.
        """
        feedback, system = self.feedback, self.feedback.system
        if self._done is None and self._begun:
            raise InvalidArgument("this step was observed already; act() before the next one")
        whole = system.C is None
        names = system.states if whole else system.heard
        C = np.eye(system.n_states) if whole else system.C
        y = feedback._numbers(named if observed is None else observed, names, len(C))
        mean, cov = self.mean, self.cov
        if self._done is not None:
            mean = system.A @ mean + system.B @ self._done + system.offset
            cov = system.A @ cov @ system.A.T + system.noise
            self.step += 1
        seen = ~np.isnan(y)
        C, y = C[seen], y[seen]
        noise = np.zeros((len(y), len(y))) if whole else system.observation_noise[np.ix_(seen, seen)]
        more = np.zeros(len(y)) if whole else system.observation_offset[seen]
        shown = C @ cov
        # what is known beforehand has no variance, and tells nothing
        gain = np.linalg.lstsq(shown @ C.T + noise, shown, rcond=1e-14)[0].T
        self.mean = mean + gain @ (y - C @ mean - more)
        self.cov = cov - gain @ shown
        if whole:
            self.mean[seen] = y
        self._done, self._begun = None, True
        return self.mean.copy(), self.cov.copy()

    def __repr__(self) -> str:
        return f"LinearAgent(step={self.step}, mean={self.mean.round(6).tolist()})"
