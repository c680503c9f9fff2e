"""Plans for processes whose states are heard of, and the agent that follows one.

`solve` chooses the method: exact vectors for two states, else bounds at the beliefs that matter.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.inference.decisions.beliefs.alpha_vectors import backwards, for_ever
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.beliefs.point_based import BeliefValue, search
from markovia.inference.decisions.processes.value_bounds import DISCOUNT
from markovia.inference.result import Info
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import SECONDS, check, check_choice, check_count, check_number
from markovia.runtime.clock import Clock, Stopwatch
from markovia.runtime.shown import InNotebooks

TIED = 1e-12
"""Values within this part of the best one are as good."""
ROUNDING = 1e-12
"""The part of the values that rounding alone may leave between bounds."""
METHODS = ("exact", "point-based")


@dataclass(frozen=True)
class BeliefSearch:
    """How a plan was found: steps back or trials, beliefs backed up, vectors in the end."""

    rounds: int
    backups: int
    vectors: int


@dataclass(frozen=True, eq=False, repr=False)
class BeliefPlan(InNotebooks):
    """A policy over beliefs, with what it is worth.

    Attributes
    ----------
    value, bound, gap
        What following the vectors is worth from the first belief on, at least; what no policy exceeds; and the difference.
    vectors
        One a row: the value of a plan in each state; a belief is worth the greatest of them times it, at least. With a
        horizon a list, one array a step.
    actions
        The number of the action that each begins with; with a horizon a list.
    info
        How it was computed; `exact` where the gap is within the tolerance.
    process
        What it is a plan for.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> process = DecisionProcess.from_tables([np.eye(2)] * 2, [[1.0, 0.0], [0.0, 1.0]], actions=["left", "right"])
    >>> plan = solve(PartiallyObserved(process, np.array([[[0.9, 0.1], [0.2, 0.8]]] * 2)), horizon=2)
    >>> plan
    BeliefPlan: 2 steps, value 1.35, gap 0, 6 vectors
    >>> agent = plan.stream()
    >>> agent.act(), agent.update(heard=1).round(3).tolist(), agent.act()
    ('left', [0.111, 0.889], 'right')
    """

    process: PartiallyObserved
    value: float
    bound: float
    vectors: Any
    actions: Any
    info: Info
    horizon: int | None = None
    discount: float = 1.0
    spare: float = 0.0
    """By how much a belief may be worth more than its vectors say, where no points bound it."""
    values: tuple[BeliefValue, ...] = ()

    @property
    def gap(self) -> float:
        """How much better any other policy can be."""
        return max(0.0, self.bound - self.value)

    def bounds(self, belief: Any = None, step: int = 0) -> tuple[float, float]:
        """Return what a belief is worth, at least and at most.

        Parameters
        ----------
        belief
            Probabilities of states, a mapping from states, or a state; by default the first belief.
        step
            The step of a horizon.
        """
        at, here = self.process.belief(belief), self._step(step)
        low = float((self._vectors_at(here)[0] @ at).max())
        if not self.values:
            return low, low + self.spare
        return low, max(low, float(self.values[here].upper(at[None])[0]))

    def v(self, belief: Any = None, step: int = 0) -> float:
        """Return what a belief is worth under the plan, at least."""
        return self.bounds(belief, step)[0]

    def act(self, belief: Any = None, step: int = 0) -> Hashable:
        """Return what to do at a belief; among equals what comes first."""
        vectors, actions = self._vectors_at(self._step(step))
        worth = vectors @ self.process.belief(belief)
        best = worth.max()
        action = int(actions[worth >= best - TIED * max(abs(best), float(np.abs(vectors).max()))].min())
        return self.process.process.action_name(action)

    def stream(self) -> "BeliefAgent":
        """Return an agent that acts, hears, and keeps its belief."""
        return BeliefAgent(self)

    def _step(self, step: int) -> int:
        check_count("step", step)
        if self.horizon is None:
            return 0
        if step >= self.horizon:
            raise InvalidArgument(f"the plan has the steps 0 to {self.horizon - 1}, not {step}")
        return step

    def _vectors_at(self, step: int) -> tuple[Array, Ints]:
        if self.horizon is None:
            return self.vectors, self.actions
        return self.vectors[step], self.actions[step]

    def __str__(self) -> str:
        gap = self.gap if self.gap > TIED * max(1.0, abs(self.value)) else 0.0
        steps = "" if self.horizon is None else f"{self.horizon} steps, "
        count = len(self.vectors) if self.horizon is None else sum(map(len, self.vectors))
        return f"BeliefPlan: {steps}value {self.value:.6g}, gap {gap:.2g}, {count:,} vectors"

    __repr__ = __str__


class BeliefAgent:
    """An agent that follows a plan: it acts, hears, and keeps its belief; made by `stream`.

    Attributes
    ----------
    belief
        Probabilities of the present state, given all that was done and heard.
    step
        How many actions were followed by something heard.
    """

    def __init__(self, plan: BeliefPlan) -> None:
        self.plan, self.step = plan, 0
        self.belief = plan.process.first.copy()
        self._done: Hashable | None = None
        self._begun = False

    def act(self) -> Hashable:
        """Return what to do now; asked again before anything is heard, the same."""
        if self._done is None:
            self._done, self._begun = self.plan.act(self.belief, self.step), True
        return self._done

    def took(self, action: Hashable) -> None:
        """Say that another action was taken than the one advised."""
        self.plan.process.action_at(action)
        self._done, self._begun = action, True

    def update(self, **heard: Any) -> Array:
        """Take what was heard after the action, or before the first one, and return the belief.

        What is left out, or None, was not heard. What cannot be heard raises `ImpossibleEvidence` and changes nothing.
        """
        process = self.plan.process
        if self._done is not None:
            self.belief = process.updated(self.belief, self._done, **heard)
            self._done, self.step = None, self.step + 1
        elif self._begun:
            raise InvalidArgument("this step has been heard already; act() before the next one")
        else:
            self.belief = process.first_heard(**heard)
            self._begun = True
        return self.belief.copy()

    @property
    def state(self) -> dict[str, Any]:
        """What the agent knows, as plain numbers and lists; another agent of the plan can take it up."""
        return {"belief": self.belief.tolist(), "step": self.step, "done": self._done, "begun": self._begun}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        self.belief = self.plan.process.belief(value["belief"])
        self.step, self._done, self._begun = int(value["step"]), value["done"], bool(value["begun"])

    def __repr__(self) -> str:
        return f"BeliefAgent(step={self.step}, belief={self.belief.round(4).tolist()})"


def solve(
    process: PartiallyObserved,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    method: str | None = None,
    tolerance: float = 1e-8,
    time_limit: float | None = 60.0,
    progress: bool | None = None,
) -> BeliefPlan:
    """Plan for a process whose states are heard of.

    Parameters
    ----------
    process
        What to plan for.
    horizon, discount
        Exactly one: how many actions there are, or what a reward a step later is worth, below 1.
    method
        "exact" for all vectors, good at every belief, or "point-based" for bounds that meet at the first one; by default
        exact for two states.
    tolerance
        The gap that is small enough, as a part of the largest reward.
    time_limit, progress
        Seconds, and whether to show a bar. A plan that ran out of time has its honest gap.

    Returns
    -------
    BeliefPlan
        Its value is what following its vectors is worth, at least.

    Raises
    ------
    TooLarge
        Where `method="exact"` would compare too many vectors, or ran out of time within a horizon.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> listen, door = np.eye(2), np.full((2, 2), 0.5)
    >>> tiger = DecisionProcess.from_tables([listen, door, door], [[-1, -100, 10], [-1, 10, -100]])
    >>> heard = np.array([[[0.85, 0.15], [0.15, 0.85]], door, door])
    >>> plan = solve(PartiallyObserved(tiger, heard), discount=0.95)
    >>> round(plan.value, 5), plan.info.exact
    (19.37137, True)
    """
    if (horizon is None) == (discount is None):
        raise UnsupportedModel(
            "a process that is heard of is planned for with exactly one of horizon= and discount= (below 1)"
        )
    check_count("horizon", horizon, 1, none=True)
    if discount is not None:
        check("discount", discount, DISCOUNT)
    if method is not None:
        check_choice("method", method, METHODS)
    check_number("tolerance", tolerance, positive=True)
    check("time_limit", time_limit, SECONDS)
    clock = Clock(time_limit, progress, unit="round", name="beliefs")
    exact = method == "exact" or (method is None and process.process.n_states <= 2)
    job = _Job(process, horizon, 1.0 if discount is None else discount, tolerance, clock)
    with clock:
        if not exact:
            return job.by_points()
        try:
            return job.by_vectors()
        except TooLarge:
            if method == "exact":
                raise
            return job.by_points()


@dataclass
class _Job:
    """A process and what is asked of it."""

    process: PartiallyObserved
    horizon: int | None
    discount: float
    tolerance: float
    clock: Clock

    def __post_init__(self) -> None:
        self.watch = Stopwatch()
        rewards = float(np.abs(self.process.steps.rewards).max())
        ahead = float(self.horizon) if self.horizon else 1.0 / (1.0 - self.discount)
        self.enough = max(self.tolerance, ROUNDING * ahead) * rewards
        self.starts = self.process.starts

    def by_vectors(self) -> BeliefPlan:
        """Return the plan of exact vectors."""
        steps = self.process.steps
        if self.horizon is None:
            found = for_ever(steps, self.discount, self.enough, self.clock)
            value = self._worth(found.vectors)
            vectors, actions = found.vectors, self._named(found.actions)
            return self._plan(
                "alpha vectors", value, value + found.gap, vectors, actions, found.iterations, 0, found.gap
            )
        every = backwards(steps, self.horizon, self.clock)
        if len(every) < self.horizon:
            raise TooLarge(
                f'{len(every)} of {self.horizon} steps back took all the time; take method="point-based"'
            )
        value, slack = self._worth(every[0].vectors), every[0].slack
        return self._plan(
            "alpha vectors", value, value + slack, [e.vectors for e in every], [self._named(e.actions) for e in every],
            self.horizon, 0, slack,
        )  # fmt: skip

    def by_points(self) -> BeliefPlan:
        """Return the plan of bounds at beliefs."""
        found = search(
            self.process.steps,
            self.starts,
            self.enough,
            self.clock,
            discount=self.discount,
            horizon=self.horizon,
        )
        first = found.values[0]
        value, bound = self._worth(first.vectors), float(first.upper(self.starts).sum())
        vectors, actions = (
            [v.vectors.copy() for v in found.values],
            [self._named(v.actions) for v in found.values],
        )
        return self._plan(
            "point-based", value, max(value, bound), vectors if self.horizon else vectors[0],
            actions if self.horizon else actions[0], found.trials, found.backups, 0.0, tuple(found.values),
        )  # fmt: skip

    def _worth(self, vectors: Array) -> float:
        return float((self.starts @ vectors.T).max(axis=1).sum())

    def _named(self, actions: Ints) -> Ints:
        return np.asarray(self.process.open_actions[actions])

    def _plan(
        self,
        engine: str,
        value: float,
        bound: float,
        vectors: Any,
        actions: Any,
        rounds: int,
        backups: int,
        spare: float,
        values: tuple[BeliefValue, ...] = (),
    ) -> BeliefPlan:
        closed = bound - value <= self.enough
        count = len(vectors) if self.horizon is None else sum(map(len, vectors))
        info = Info(
            engine, exact=closed, converged=closed, iterations=rounds, error=bound - value, seconds=self.watch.seconds,
            compile_seconds=self.watch.compile_seconds, details=BeliefSearch(rounds, backups, count),
            advice="" if closed else "raise time_limit= or tolerance=", note="" if closed else self.clock.reason or "",
        )  # fmt: skip
        return BeliefPlan(
            self.process, value, bound, vectors, actions, info, self.horizon, self.discount, spare, values
        )
