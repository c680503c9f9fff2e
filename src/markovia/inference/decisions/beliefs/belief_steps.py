"""What one step does to a belief, on flat arrays: what may be heard after each action, and where that leaves the states.

Everything here is linear in the belief, so beliefs are weights that need not sum to one: after an action and an
observation they sum to the probability of both. Observations are kept as the triples (action, observation, state) that
may occur, so that a sensor that tells one thing per state costs as little as it says.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    from scipy import sparse


class Futures(NamedTuple):
    """What may follow a belief: for each action and observation of positive probability, the weights of states."""

    actions: Ints  # (k,)
    observations: Ints  # (k,)
    weights: Array  # (k, S), rows sum to the probability of the observation after the action


@dataclass(frozen=True)
class BeliefSteps:
    """A process whose states are heard of, as its algorithms work on it.

    Attributes
    ----------
    transitions
        Rows `a * S + s`, columns the next state.
    rewards
        (S, A).
    rows, states, chances
        For each triple that may occur: `a * O + o`, the next state, and the probability of o there; sorted by rows.
    n_observations
        How many observations there are.

    Examples
    --------
    >>> from scipy import sparse
    >>> stay = BeliefSteps.of(sparse.csr_array(np.eye(2)), np.array([[[0.9, 0.1], [0.2, 0.8]]]), np.zeros((2, 1)))
    >>> stay.futures(np.array([0.5, 0.5])).weights.round(6).tolist()
    [[0.45, 0.1], [0.05, 0.4]]
    """

    transitions: "sparse.csr_array"
    rewards: Array
    rows: Ints
    states: Ints
    chances: Array
    n_observations: int

    @staticmethod
    def of(
        transitions: "sparse.csr_array", observations: "Array | list[sparse.csr_array]", rewards: Array
    ) -> "BeliefSteps":
        """Return the steps of transitions (A * S, S), observations (A, S, O) and rewards (S, A)."""
        from scipy import sparse

        tables = [sparse.coo_array(np.asarray(o) if isinstance(o, np.ndarray) else o) for o in observations]
        n = tables[0].shape[1]
        rows = np.concatenate([a * n + t.coords[1] for a, t in enumerate(tables)]).astype(np.int64)
        states = np.concatenate([t.coords[0] for t in tables]).astype(np.int64)
        chances = np.concatenate([t.data for t in tables]).astype(np.float64)
        order = np.lexsort((states, rows))
        order = order[chances[order] > 0.0]
        return BeliefSteps(transitions, rewards, rows[order], states[order], chances[order], n)

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return int(self.rewards.shape[0])

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return int(self.rewards.shape[1])

    @cached_property
    def forward(self) -> "sparse.csr_array":
        """Transitions turned, (A * S, S): times a belief, the weights of next states after each action."""
        from scipy import sparse

        S = self.n_states  # noqa: N806
        turned = [self.transitions[a * S : (a + 1) * S].T for a in range(self.n_actions)]
        return sparse.csr_array(sparse.vstack(turned, format="csr"))

    @cached_property
    def _next(self) -> Ints:
        return self.rows // self.n_observations * self.n_states + self.states

    @cached_property
    def _spans(self) -> Ints:
        """Return where the triples of each action begin."""
        return np.searchsorted(self.rows, np.arange(self.n_actions + 1) * self.n_observations)

    def futures(self, belief: Array) -> Futures:
        """Return what may follow a belief."""
        weights = self.chances * (self.forward @ belief)[self._next]
        seen = weights > 0.0
        rows = self.rows[seen]
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        place = np.repeat(np.arange(len(first)), np.diff(first, append=len(rows)))
        spread = np.zeros((len(first), self.n_states))
        spread[place, self.states[seen]] = weights[seen]
        return Futures(rows[first] // self.n_observations, rows[first] % self.n_observations, spread)

    def heard(self, belief: Array, action: int, observation: int) -> Array:
        """Return the weights of states after an action and an observation; they sum to its probability."""
        S = self.n_states  # noqa: N806
        before = self.forward[action * S : (action + 1) * S] @ belief
        low, high = np.searchsorted(self.rows, action * self.n_observations + observation + np.arange(2))
        weights = np.zeros(S)
        weights[self.states[low:high]] = self.chances[low:high] * before[self.states[low:high]]
        return weights

    def back(self, action: int, choice: Ints, vectors: Array) -> Array:
        """Return what an action is worth in each state where each observation o is followed by the vector `choice[o]`."""
        S, span = self.n_states, slice(*self._spans[action : action + 2])  # noqa: N806
        states, heard = self.states[span], self.rows[span] - action * self.n_observations
        then = np.bincount(states, self.chances[span] * vectors[choice[heard], states], minlength=S)
        return np.asarray(self.transitions[action * S : (action + 1) * S] @ then)

    def projected(self, action: int, vectors: Array) -> list[Array]:
        """Return, for each observation that an action may be followed by, what vectors are worth before both."""
        S, span = self.n_states, slice(*self._spans[action : action + 2])  # noqa: N806
        heard, place = np.unique(self.rows[span], return_inverse=True)
        chances = np.zeros((len(heard), S))
        chances[place, self.states[span]] = self.chances[span]
        after = (chances[:, None] * vectors[None]).reshape(-1, S)
        before = self.transitions[action * S : (action + 1) * S] @ after.T
        return list(np.ascontiguousarray(before.T).reshape(len(heard), len(vectors), S))
