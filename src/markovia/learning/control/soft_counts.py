"""SoftOperator values backwards in time and expected visits forwards, for demonstrations that look some steps ahead.

With k steps to go, temperature tau and entropy counted (`SoftOperator(entropy=True)`),

    Q_k(s, a) = r(s, a) + gamma M V_{k-1}(s, a),    V_k(s) = tau log sum_a exp(Q_k(s, a) / tau),    V_0 = 0,

where M is the mean over next states (causal), or tau log of the mean of exp(V / tau) (over whole trajectories: whoever
acts also counts on luck, and next states are as probable as P(s' | s, a) exp(V_{k-1}(s') / tau)). States that are
terminal are worth 0.

Cost of a pass: steps times nonzeros of the transitions; policies of all steps are kept.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.inference.decisions.processes.bellman import SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True)
class SoftPass:
    """What a backward pass leaves: values (steps + 1, S) and policies (steps, S, A), both by steps to go.

    `moves` are the laws of next states (A * S, S), with one step to go first; one for all where luck is not counted on.
    """

    values: Array
    policies: Array
    moves: "list[sparse.csr_array]"
    discount: float

    def with_steps_to_go(self, k: int) -> "tuple[Array, sparse.csr_array]":
        """Return the policy and the moves with k steps to go."""
        return self.policies[k - 1], self.moves[min(k, len(self.moves)) - 1]


def soft_pass(
    process: DecisionProcess,
    rewards: Array,
    steps: int,
    temperature: float,
    *,
    discount: float = 1.0,
    lucky: bool = False,
) -> SoftPass:
    """Return values and policies for each number of steps to go.

    Parameters
    ----------
    process
        Moves, allowed actions and terminal states; its rewards are not looked at.
    rewards
        (S, A).
    steps
        The largest number of steps to go.
    temperature
        How soft.
    discount
        What a reward one step later is worth.
    lucky
        Whether trajectories as a whole are weighed, next states included.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], np.zeros((2, 2)))  # stay, or go
    >>> soft_pass(process, np.zeros((2, 2)), 3, 1.0).values.round(4).tolist()  # log of the number of ways
    [[0.0, 0.0], [0.6931, 0.6931], [1.3863, 1.3863], [2.0794, 2.0794]]
    """
    n, k = process.rewards.shape
    copies = process.transitions.nnz if lucky else 0
    require_room(
        float(steps) * (n * k + n + copies), "the policies of all steps", "give fewer steps, or a discount"
    )
    operator = SoftOperator(temperature, entropy=True)
    ends = np.zeros(n, dtype=bool) if process.terminal is None else process.terminal
    values, policies = np.zeros((steps + 1, n)), np.zeros((steps, n, k))
    moves = [] if lucky else [process.transitions]
    for t in range(steps):
        if lucky:
            ahead, tilted = _tilted(process.transitions, values[t], temperature)
            moves.append(tilted)
        else:
            ahead = discount * (process.transitions @ values[t])
        q = rewards + ahead.reshape(k, n).T
        values[t + 1] = np.where(ends, 0.0, operator.value(q, process.allowed))
        policies[t] = operator.policy(q, process.allowed)
        policies[t][ends] = 0.0  # nothing is done where all is over
    return SoftPass(values, policies, moves, discount)


def expected_visits(found: SoftPass, starts: Array) -> Array:
    """Return how often each action is expected in each state, (S, A), discounted by when.

    Parameters
    ----------
    found
        The backward pass.
    starts
        (steps, S): how many trajectories begin in each state with 1, 2, ... steps to go.
    """
    visits: Array = np.zeros_like(found.policies[0])
    here = np.zeros(len(visits))
    for k in range(len(starts), 0, -1):
        policy, moves = found.with_steps_to_go(k)
        # a trajectory that begins now is not discounted, so its mass joins in full
        here = here + starts[k - 1]
        taken = here[:, None] * policy
        visits += taken
        here = found.discount * (moves.T @ taken.T.reshape(-1))
    return visits


def expected_features(found: SoftPass, features: Array) -> Array:
    """Return the expected discounted sums of features from each state, (steps + 1, S, F), by steps to go."""
    steps, n, k = found.policies.shape
    width = features.shape[-1]
    require_room(
        float(steps + 1) * n * width, "the expected features of all steps", "leave out the standard errors"
    )
    sums = np.zeros((steps + 1, n, width))
    for t in range(1, steps + 1):
        policy, moves = found.with_steps_to_go(t)
        ahead = (moves @ sums[t - 1]).reshape(k, n, width).transpose(1, 0, 2)
        sums[t] = np.einsum("sa,saf->sf", policy, features + found.discount * ahead)
    return sums


def _tilted(rows: "sparse.csr_array", values: Array, temperature: float) -> "tuple[Array, sparse.csr_array]":
    """Return tau log of the mean of exp(V / tau) of each row, and the next states weighed by it."""
    from scipy import sparse

    held = np.flatnonzero(np.diff(rows.indptr))
    starts, lengths = rows.indptr[held], np.diff(rows.indptr)[held]
    scaled: Any = values[rows.indices] / temperature
    top = np.maximum.reduceat(scaled, starts) if len(held) else np.zeros(0)
    weights = rows.data * np.exp(scaled - np.repeat(top, lengths))
    sums = np.add.reduceat(weights, starts) if len(held) else np.zeros(0)
    ahead = np.zeros(rows.shape[0])
    ahead[held] = temperature * (top + np.log(sums))
    return ahead, sparse.csr_array(
        (weights / np.repeat(sums, lengths), rows.indices, rows.indptr), shape=rows.shape
    )
