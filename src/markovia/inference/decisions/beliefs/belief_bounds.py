"""Bounds on what beliefs are worth that cost little: blind plans from below; the process, QMDP, fast-informed from above.

Method, from above: the value of the process whose states are seen (MDP); one step without seeing, then the states are seen
(QMDP, Littman, Cassandra and Kaelbling 1995); each step is heard, but the best choice after it is made state by state (fast
informed bound, Hauskrecht 2000), which is never above QMDP. From below: the same action for ever (Hauskrecht 1997). Every
step of these recursions from a bound is a bound again, so they may stop early; the last bounds on what is still to come
(MacQueen and Porteus) make them converge fast. Cost of a step: the triples of `BeliefSteps` times actions.

All return vectors, one an action: a belief is worth at most (at least) the greatest of them times it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from markovia.inference.decisions.beliefs.belief_steps import BeliefSteps
from markovia.runtime.array_types import Array

CLOSE = 1e-10
"""Bounds rest when they change by less than this part of the largest reward summed for ever."""
STEPS = 10_000
"""The most steps of a recursion."""


def state_values(steps: BeliefSteps, discount: float) -> Array:
    """Return an upper bound on what states are worth where they are seen, tight up to `CLOSE`.

    Examples
    --------
    >>> from scipy import sparse
    >>> one = BeliefSteps.of(sparse.csr_array(np.ones((2, 1))), np.ones((2, 1, 1)), np.array([[1.0, 3.0]]))
    >>> state_values(one, 0.5).round(6).tolist()
    [6.0]
    """
    return _to_rest(steps, discount, lambda v: seen_step(steps, v, discount).max(axis=1), np.max)


def seen_step(steps: BeliefSteps, after: Array, discount: float) -> Array:
    """Return what actions are worth in states, (S, A), where the next state is seen and worth what `after` says."""
    then = (steps.transitions @ after).reshape(steps.n_actions, steps.n_states)
    return np.asarray(steps.rewards + discount * then.T)


def informed_step(steps: BeliefSteps, after: Array, discount: float) -> Array:
    """Return the fast-informed bound of one more step from vectors (A', S); with one action's vectors, (A, S).

    For each state, action and observation the best vector is taken as if the state was known.
    """
    n, S, O = steps.n_actions, steps.n_states, steps.n_observations  # noqa: N806, E741
    span = np.searchsorted(steps.rows, np.arange(n + 1) * O)
    best = np.empty((n, S))
    for action in range(n):
        low, high = span[action], span[action + 1]
        told = (steps.rows[low:high] - action * O, steps.states[low:high])
        own = steps.transitions[action * S : (action + 1) * S]
        # (S, O) for each vector that may follow; the greatest is kept entry by entry
        most = np.full((S, O), -np.inf)
        for vector in after:
            weights = np.zeros((S, O))
            weights[told[1], told[0]] = steps.chances[low:high] * vector[told[1]]
            np.maximum(most, own @ weights, out=most)
        best[action] = steps.rewards[:, action] + discount * most.sum(axis=1)
    return best


def qmdp(steps: BeliefSteps, discount: float) -> Array:
    """Return vectors (A, S) of the QMDP bound.

    Examples
    --------
    >>> from scipy import sparse
    >>> one = BeliefSteps.of(sparse.csr_array(np.ones((2, 1))), np.ones((2, 1, 1)), np.array([[1.0, 3.0]]))
    >>> qmdp(one, 0.5).round(6).tolist()
    [[4.0], [6.0]]
    """
    return np.ascontiguousarray(seen_step(steps, state_values(steps, discount), discount).T)


def fast_informed(steps: BeliefSteps, discount: float) -> Array:
    """Return vectors (A, S) of the fast-informed bound, from QMDP downwards.

    Examples
    --------
    >>> from scipy import sparse
    >>> one = BeliefSteps.of(sparse.csr_array(np.ones((2, 1))), np.ones((2, 1, 1)), np.array([[1.0, 3.0]]))
    >>> fast_informed(one, 0.5).round(6).tolist()
    [[4.0], [6.0]]
    """
    return _to_rest(
        steps, discount, lambda v: informed_step(steps, v, discount), np.max, qmdp(steps, discount)
    )


def blind(steps: BeliefSteps, discount: float) -> Array:
    """Return vectors (A, S) of taking the same action for ever: lower bounds.

    Examples
    --------
    >>> from scipy import sparse
    >>> one = BeliefSteps.of(sparse.csr_array(np.ones((2, 1))), np.ones((2, 1, 1)), np.array([[1.0, 3.0]]))
    >>> blind(one, 0.5).round(6).tolist()
    [[2.0], [6.0]]
    """
    n, S = steps.n_actions, steps.n_states  # noqa: N806

    def once(v: Array) -> Array:
        each = [steps.transitions[a * S : (a + 1) * S] @ v[a] for a in range(n)]
        return steps.rewards.T + discount * np.array(each)

    return _to_rest(steps, discount, once, np.min, np.zeros((n, S)))


def _to_rest(
    steps: BeliefSteps,
    discount: float,
    once: Callable[[Array], Array],
    extreme: Callable[[Array], Any],
    start: Array | None = None,
) -> Array:
    """Repeat a step that is monotone and passes constants on discounted; add what is still to come at most (at least)."""
    value = np.zeros(steps.n_states) if start is None else start
    more = discount / (1.0 - discount)
    enough = CLOSE * float(np.abs(steps.rewards).max()) * more
    for _ in range(STEPS):
        before, value = value, once(value)
        change = value - before
        if more * np.ptp(change) <= enough:
            break
    return np.asarray(value + more * float(extreme(change)))
