"""Partially observed processes by bounds at the beliefs that matter, until they meet at the first one.

Method: heuristic search (HSVI2, Smith and Simmons 2005; SARSOP, Kurniawati, Hsu and Lee 2008, chooses beliefs alike).
From the first belief a trial takes the action whose upper bound is greatest and the observation after which the most
is uncertain, until the gap there, discounted, no longer matters; on the way back every belief met gets a new vector
below (one step from the best vectors that follow) and a lower point above. Below is the greatest of the vectors, each
the value of a plan, which the policy that follows them attains; above is the least of the fast-informed bound and the
sawtooth through the points. Both hold whenever the search stops. With a horizon each step has bounds of its own.

Cost of a belief met: its futures times vectors and points; vectors that another one reaches everywhere, and points that
others reach, go as they become many.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovia.inference.decisions.beliefs.alpha_vectors import undominated
from markovia.inference.decisions.beliefs.belief_bounds import blind, fast_informed, informed_step
from markovia.inference.decisions.beliefs.belief_steps import BeliefSteps, Futures
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import Clock

DEEPER = 0.95
"""A trial goes on while a gap is above this part of that at the start of it."""
CROWDED = 1.25
"""What is no longer needed goes when there is more than this times what was left the last time."""
LOOK = "markovia.kernels.maximising.belief_points:deepest"


class BeliefValue:
    """Bounds on the value of beliefs: vectors below, planes and points above.

    Parameters
    ----------
    vectors, actions
        Values of plans, one a row, and what each begins with.
    planes
        Vectors whose greatest product with a belief is at least its value.

    Examples
    --------
    >>> value = BeliefValue(np.array([[0.0, 0.0]]), np.array([0]), np.array([[1.0, 3.0]]))
    >>> value.upper(np.array([[0.5, 0.5]])).tolist()
    [2.0]
    >>> value.add_point(np.array([0.5, 0.5]), 1.0)
    >>> value.upper(np.array([[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])).tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, vectors: Array, actions: Ints, planes: Array) -> None:
        self._vectors, self._actions, self._count = vectors.copy(), actions.copy(), len(vectors)
        self.planes, self.corners = planes, planes.max(axis=0)
        self._beliefs: dict[bytes, int] = {}
        self._offsets, self._depths = np.zeros(1, dtype=np.int64), np.empty(0)
        self._states, self._shares = np.empty(0, dtype=np.int64), np.empty(0)
        self._points = 0
        self._last = (64, 64)

    @property
    def vectors(self) -> Array:
        """The vectors below, one a row."""
        return self._vectors[: self._count]

    @property
    def actions(self) -> Ints:
        """What the plan of each vector begins with."""
        return self._actions[: self._count]

    def lower(self, weights: Array) -> tuple[Array, Ints]:
        """Return the lower bounds at some rows of weights, and which vectors give them."""
        products = weights @ self.vectors.T
        best = products.argmax(axis=1)
        return products[np.arange(len(best)), best], best

    def upper(self, weights: Array) -> Array:
        """Return the upper bounds at some rows of weights."""
        bound = (weights @ self.planes.T).max(axis=1)
        if not self._points:
            return np.asarray(bound)
        plane = weights @ self.corners
        return np.asarray(plane - self._lowered(weights, self._depths[: self._points], plane - bound))

    def _lowered(self, weights: Array, depths: Array, lowered: Array) -> Array:
        """Return how far the points are below the corners' plane at some weights, or as far as is known already."""
        n = len(depths)
        look = either(LOOK, 4.0 * len(weights) * n)
        look(
            self._offsets[: n + 1], self._states, self._shares, depths, np.ascontiguousarray(weights), lowered
        )
        return lowered

    def add_vector(self, vector: Array, action: int) -> None:
        """Put a vector below."""
        self._vectors = _with_room(self._vectors, self._count)
        self._actions = _with_room(self._actions, self._count)
        self._vectors[self._count], self._actions[self._count] = vector, action
        self._count += 1

    def add_point(self, belief: Array, value: float) -> None:
        """Put a point above, or lower the one that is there."""
        depth = float(belief @ self.corners) - value
        if not depth > 0.0:
            return
        place = self._beliefs.setdefault(belief.tobytes(), self._points)
        if place < self._points:
            self._depths[place] = max(self._depths[place], depth)
            return
        # large shares first: they tell soonest that a point is of no use
        states = np.argsort(-belief, kind="stable")[: np.count_nonzero(belief)]
        low, high = int(self._offsets[self._points]), int(self._offsets[self._points]) + len(states)
        while len(self._states) < high:
            self._states, self._shares = (
                _with_room(self._states, len(self._states)),
                _with_room(self._shares, len(self._shares)),
            )
        self._states[low:high], self._shares[low:high] = states, belief[states]
        self._depths = _with_room(self._depths, self._points)
        self._offsets = _with_room(self._offsets, self._points + 1)
        self._depths[self._points], self._offsets[self._points + 1] = depth, high
        self._points += 1

    def thin_out(self) -> None:
        """Drop vectors that another one reaches everywhere and points that others reach, where they have become many.

        Vectors that are merely best at no point stay: others may be the first step of plans that go on with them.
        """
        vectors, points = self._last
        if self._count <= CROWDED * vectors and self._points <= CROWDED * points:
            return
        beliefs = self._dense()
        depths = self._depths[: self._points].copy()
        kept = []
        for i in np.argsort(depths, kind="stable"):  # shallow ones first
            depth, depths[i] = depths[i], 0.0
            if self._lowered(beliefs[i : i + 1], depths, np.zeros(1))[0] < depth:
                depths[i] = depth
                kept.append(i)
        self._beliefs, self._points, self._offsets = {}, 0, np.zeros(1, dtype=np.int64)
        for i in sorted(kept):
            self.add_point(beliefs[i], float(beliefs[i] @ self.corners - depths[i]))
        _, different = np.unique(self.vectors, axis=0, return_index=True)
        needed = different[undominated(self.vectors[different])]
        self._vectors, self._actions, self._count = self._vectors[needed], self._actions[needed], len(needed)
        self._last = (max(64, self._count), max(64, self._points))

    def _dense(self) -> Array:
        n = self._points
        beliefs = np.zeros((n, len(self.corners)))
        rows = np.repeat(np.arange(n), np.diff(self._offsets[: n + 1]))
        beliefs[rows, self._states[: len(rows)]] = self._shares[: len(rows)]
        return beliefs


def _with_room(array: Any, used: int) -> Any:
    """Return an array with room behind what is used of it."""
    if used < len(array):
        return array
    return np.concatenate([array, np.zeros((max(16, len(array)), *array.shape[1:]), dtype=array.dtype)])


@dataclass(frozen=True)
class PointSearch:
    """What a search found: bounds of each step (one for all of them without a horizon), and how it went."""

    values: list[BeliefValue]
    trials: int
    backups: int


def search(
    steps: BeliefSteps,
    starts: Array,
    tolerance: float,
    clock: Clock,
    *,
    discount: float = 1.0,
    horizon: int | None = None,
) -> PointSearch:
    """Close the gap at some first beliefs, weighted by their sums, up to a tolerance or until time runs out.

    Parameters
    ----------
    steps
        The process.
    starts
        Weights of states after each first observation; rows sum to its probability.
    tolerance
        The gap that is small enough, of all starts together.
    discount, horizon
        Exactly one matters: a discount below 1 without a horizon, or a horizon.

    Examples
    --------
    >>> from scipy import sparse
    >>> two = BeliefSteps.of(sparse.csr_array(np.eye(2)), np.ones((1, 2, 1)), np.array([[1.0], [2.0]]))
    >>> found = search(two, np.array([[0.5, 0.5]]), 1e-6, Clock(progress=False), discount=0.5)
    >>> found.values[0].vectors.round(6).tolist()
    [[2.0, 4.0]]
    """
    return _Search(steps, starts, tolerance, discount, horizon).run(clock)


class _Search:
    """The state of a search."""

    def __init__(
        self, steps: BeliefSteps, starts: Array, tolerance: float, discount: float, horizon: int | None
    ) -> None:
        self.steps, self.starts, self.tolerance, self.discount = steps, starts, tolerance, discount
        self.horizon, self.backups = horizon, 0
        own = np.arange(steps.n_actions)
        if horizon is None:
            self.values = [BeliefValue(blind(steps, discount), own, fast_informed(steps, discount))]
        else:
            self.values = _steps_of_horizon(steps, horizon)

    def at(self, step: int) -> BeliefValue | None:
        """Return the bounds of a step; None after the last."""
        if self.horizon is None:
            return self.values[0]
        return self.values[step] if step < self.horizon else None

    def run(self, clock: Clock) -> PointSearch:
        """Make trials until the gap is closed."""
        trials, first = 0, self.values[0]
        while True:
            gaps = first.upper(self.starts) - first.lower(self.starts)[0]
            gap = float(gaps.sum())
            if trials:
                clock.advance(note=f"gap {gap:.3g}", value=gap)
            if gap <= self.tolerance or clock.over():
                return PointSearch(self.values, trials, self.backups)
            worst = int(gaps.argmax())
            chance = float(self.starts[worst].sum())
            self.trial(
                self.starts[worst] / chance, max(self.tolerance, DEEPER * float(gaps[worst]) / chance), clock
            )
            trials += 1

    def trial(self, belief: Array, enough: float, clock: Clock) -> None:
        """Walk to where the gap no longer matters, and improve the bounds on the way back."""
        path: list[_Met] = []
        step = 0
        while not clock.over():
            after, futures = self.at(step + 1), self.steps.futures(belief)
            most = np.zeros(len(futures.weights)) if after is None else after.upper(futures.weights)
            above = self._worth(belief, futures, most)
            path.append(_Met(belief, futures, most, int(above.argmax())))
            if after is None:
                break
            enough /= self.discount
            rows = np.flatnonzero(futures.actions == above.argmax())
            weights = futures.weights[rows]
            chances = weights.sum(axis=1)
            excess = most[rows] - after.lower(weights)[0] - enough * chances
            best = int(excess.argmax())
            if excess[best] <= 0.0:
                break
            belief, step = weights[best] / chances[best], step + 1
        for step in range(len(path) - 1, -1, -1):
            self.improve(step, path[step])
            self.values[step if self.horizon else 0].thin_out()

    def improve(self, step: int, met: "_Met") -> None:
        """Back both bounds up at a belief."""
        steps, own, after = self.steps, self.values[step if self.horizon else 0], self.at(step + 1)
        belief, futures = met.belief, met.futures
        self.backups += 1
        if after is None:
            return  # the last step is known: its vectors are the rewards
        # bounds of other actions have hardly changed since, and hold as they are
        rows = futures.actions == met.action
        met.most[rows] = after.upper(futures.weights[rows])
        own.add_point(belief, float(self._worth(belief, futures, met.most).max()))
        least, which = after.lower(futures.weights)
        below = self._worth(belief, futures, least)
        action = int(below.argmax())
        if below[action] > own.lower(belief[None])[0][0]:
            taken = futures.actions == action
            choice = np.zeros(steps.n_observations, dtype=np.int64)
            choice[futures.observations[taken]] = which[taken]
            then = steps.back(action, choice, after.vectors)
            own.add_vector(steps.rewards[:, action] + self.discount * then, action)

    def _worth(self, belief: Array, futures: Futures, then: Array) -> Array:
        """Return what actions are worth at a belief, where their futures are worth so much."""
        later = np.bincount(futures.actions, then, minlength=self.steps.n_actions)
        return np.asarray(belief @ self.steps.rewards + self.discount * later)


class _Met(NamedTuple):
    """A belief on a path: what may follow it, what that is worth at most, and the action that was taken."""

    belief: Array
    futures: Futures
    most: Array
    action: int


def _steps_of_horizon(steps: BeliefSteps, horizon: int) -> list[BeliefValue]:
    """Return the first bounds of each step of a horizon."""
    n, S = steps.n_actions, steps.n_states  # noqa: N806
    planes, vectors = np.zeros((1, S)), np.zeros((n, S))
    found = []
    for _ in range(horizon):
        planes = informed_step(steps, planes, 1.0)
        moved = [steps.transitions[a * S : (a + 1) * S] @ vectors[a] for a in range(n)]
        vectors = steps.rewards.T + np.array(moved)
        found.append(BeliefValue(vectors, np.arange(n), planes))
    return found[::-1]
