"""Model-predictive control: at every state the best controls of some steps ahead, of which only the first is applied.

Method: the path is planned by iterated linear-quadratic regulation, begun from the path planned before, one step on;
so what the model did not foresee is answered at the next step. Reference: Mayne, Rawlings, Rao and Scokaert (2000).
Cost: a few rounds of `iterative_linear_quadratic` a step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.numbers.iterative_linear_quadratic import (
    ControlledPath,
    Dynamics,
    PathOptimiser,
    Reward,
    first_controls,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_number, numbers


class PredictiveControl:
    """A controller that plans some steps ahead, again at every state.

    Parameters
    ----------
    dynamics, reward, final
        Functions of a state and a control, written in JAX: the next state, what a step is worth; and what the last state
        that is looked ahead to is worth.
    horizon
        How many steps it looks ahead.
    controls
        How many numbers a control has, or controls to begin with, (horizon, m).
    limits
        A pair: the least and the greatest controls.
    tolerance, max_iter
        When planning stops, at each state.

    Examples
    --------
    >>> control = PredictiveControl(lambda x, u: x + u, lambda x, u: -(x @ x) - u @ u, horizon=20)
    >>> agent = control.stream([1.0])
    >>> agent.act().round(6).tolist()
    [-0.618034]
    >>> agent.update([0.5]).tolist(), agent.act().round(6).tolist()
    ([0.5], [-0.309017])
    """

    def __init__(
        self,
        dynamics: Dynamics,
        reward: Reward,
        horizon: int,
        *,
        final: Callable[[Any], Any] | None = None,
        controls: Any = 1,
        limits: Any = None,
        tolerance: float = 1e-9,
        max_iter: int = 50,
    ) -> None:
        check_count("horizon", horizon, 1)
        check_count("max_iter", max_iter, 1)
        check_number("tolerance", tolerance, positive=True)
        self.horizon, self.tolerance, self.max_iter = horizon, tolerance, max_iter
        self.controls = first_controls(controls, horizon)
        self.optimiser = PathOptimiser(dynamics, reward, final, limits)

    def plan(self, state: Any, controls: Array | None = None) -> ControlledPath:
        """Return the path from a state, looked for from some controls on."""
        x = np.atleast_1d(numbers(state, "a state holds numbers"))
        begun = self.controls if controls is None else controls
        return self.optimiser.best(x, begun, tolerance=self.tolerance, max_iter=self.max_iter, progress=False)

    def act(self, state: Any) -> Array:
        """Return what to apply at a state, planned from nothing."""
        return np.array(self.plan(state).controls[0])

    def stream(self, start: Any) -> "PredictiveAgent":
        """Return an agent that begins at a state and plans at every next one from the path before."""
        return PredictiveAgent(self, start)

    def __repr__(self) -> str:
        return f"PredictiveControl({self.horizon} steps ahead, {self.controls.shape[1]} controls)"


class PredictiveAgent:
    """An agent under predictive control; made by `stream`.

    Attributes
    ----------
    state, step
        Where it is, and how many steps were made.
    path
        What it plans from here; None before `act`.
    """

    def __init__(self, control: PredictiveControl, start: Any) -> None:
        self.control, self.step = control, 0
        self.state = np.atleast_1d(numbers(start, "a state holds numbers"))
        self.path: ControlledPath | None = None
        self._next = control.controls

    def act(self) -> Array:
        """Return what to apply now."""
        if self.path is None:
            self.path = self.control.plan(self.state, self._next)
            # the last control is kept for the step that comes into sight
            self._next = np.concatenate([self.path.controls[1:], self.path.controls[-1:]])
        return np.array(self.path.controls[0])

    def update(self, state: Any) -> Array:
        """Take the state that the control led to."""
        after = np.atleast_1d(numbers(state, "a state holds numbers"))
        if after.shape != self.state.shape:
            raise InvalidArgument(f"a state has {len(self.state)} numbers, not the shape {after.shape}")
        self.state, self.path, self.step = after, None, self.step + 1
        return np.array(after)

    def __repr__(self) -> str:
        return f"PredictiveAgent(step={self.step}, state={self.state.round(6).tolist()})"
