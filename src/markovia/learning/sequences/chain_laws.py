"""Hidden chains beyond one matrix: chains of a higher order, and chains that inputs drive.

A chain of order k remembers its k last states. It is answered as a chain whose states are those k together; a step moves
them on by one, so most entries of its matrix are zero. In a driven chain the distribution of the next state is a multinomial
logit of the inputs at that step, with weights of its own for each state that is left. Reference: Bengio and Frasconi (1995).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from markovia.inference.sequences.hidden_chain import Expected, HiddenChain
from markovia.learning.components.discrete import chosen
from markovia.learning.components.families import NOTHING, Components, Observations
from markovia.learning.regression.iteratively_reweighted import fit_softmax
from markovia.learning.sequences.baum_welch import Priors, counted_rows, row_prior
from markovia.runtime.array_types import Array, Ints


class HigherOrder(NamedTuple):
    """A chain of order k: `transition (states,) * k + (states,)`, and of the first steps `starts[m] (states,) * (m + 1)`.

    A state of the answering chain counts the k last states in base `states`, the last one in the lowest place; states
    before the beginning count as 0.
    """

    starts: tuple[Array, ...]
    transition: Array
    emission: Components

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.transition.shape[-1])

    @property
    def order(self) -> int:
        """How many states are remembered."""
        return self.transition.ndim - 1

    @property
    def last(self) -> Ints | None:
        """The last state of each state of the answering chain."""
        return np.arange(self.n_states**self.order) % self.n_states

    @property
    def start(self) -> Array:
        """The joint distribution of the first k states, (states,) * k."""
        found = self.starts[0]
        for rows in self.starts[1:]:
            found = found[..., None] * rows
        return found

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        tables = (*self.starts, self.transition)
        own = sum(np.maximum((one > 0.0).sum(axis=-1) - 1, 0).sum() for one in tables)
        return int(own) + self.emission.n_free

    def chain_over(self, seen: Observations) -> HiddenChain:
        """Return the answering chain over some sequences."""
        k, order = self.n_states, self.order
        size = k**order
        tables = np.zeros((order, size, size))
        for m in range(order):
            rows = self.starts[m + 1].reshape(-1, k) if m < order - 1 else self.transition.reshape(-1, k)
            before = np.arange(len(rows))
            after = (before % k ** (order - 1) if m == order - 1 else before) * k
            tables[m, before[:, None], after[:, None] + np.arange(k)] = rows
            tables[m, len(rows) :, 0] = 1.0  # never reached at this step
        start = np.zeros(size)
        start[:k] = self.starts[0]
        return HiddenChain(start, tables, self._moves(seen.offsets))

    def _moves(self, offsets: Ints) -> Ints:
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        return np.asarray(np.clip(place - 1, 0, self.order - 1))

    def path_of(self, states: Ints, offsets: Ints) -> Ints:
        """Return known states as those of the answering chain."""
        found = np.zeros_like(states)
        place = np.arange(len(states)) - np.repeat(offsets[:-1], np.diff(offsets))
        for back in range(self.order):
            there = place >= back
            found[there] += states[np.flatnonzero(there) - back] * self.n_states**back
        return found

    def learned(
        self, seen: Observations, expected: Expected, weights: Array, priors: Priors
    ) -> "HigherOrder":
        """Return the model that makes expected counts most probable."""
        k, order = self.n_states, self.order
        starts = [counted_rows(expected.starts[:k], self.starts[0], priors.start)]
        transition = self.transition
        for m in range(order):
            old = self.starts[m + 1] if m < order - 1 else self.transition
            before = np.arange(k ** (m + 1))
            after = (before % k ** (order - 1) if m == order - 1 else before) * k
            counts = expected.pairs[m][before[:, None], after[:, None] + np.arange(k)].reshape(old.shape)
            rows = counted_rows(counts, old, priors.transition)
            if m < order - 1:
                starts.append(rows)
            else:
                transition = rows
        emission = self.emission.learned(seen.rows, weights, priors.emission)
        return HigherOrder(tuple(starts), transition, emission)

    def log_prior(self, priors: Priors) -> float:
        """Return the log prior, up to a constant."""
        rest = sum(row_prior(one, priors.transition) for one in (*self.starts[1:], self.transition))
        return row_prior(self.starts[0], priors.start) + rest + self.emission.log_prior(priors.emission)

    def ahead(self, now: Array, lengths: Ints, steps: int, inputs: Array | None = None) -> Array:
        """Return the distributions of the next steps' states of the answering chain, (sequences, steps, states)."""
        tables = self.chain_over(Observations(None, np.zeros(1, dtype=np.int64), np.array([0, 1]))).tables
        found = []
        for h in range(steps):
            now = np.einsum("ni,nij->nj", now, tables[np.clip(lengths + h - 1, 0, self.order - 1)])
            found.append(now)
        return np.stack(found, axis=1)

    def draw_states(
        self, count: int, steps: int, rng: np.random.Generator, inputs: Array | None = None
    ) -> Ints:
        """Return drawn paths (count, steps)."""
        states = np.empty((count, steps), dtype=np.int64)
        for t in range(steps):
            table = self.starts[t] if t < self.order else self.transition
            past = tuple(states[:, t - table.ndim + 1 : t].T)
            rows = table[past] if past else np.repeat(table[None], count, axis=0)
            states[:, t] = chosen(rows, rng)
        return states


def started_order(
    k: int, order: int, rng: np.random.Generator, start: Array | None, transition: Array | None
) -> tuple[tuple[Array, ...], Array]:
    """Return a chain of some order to begin with, from the joint distribution of the first states where that is given."""
    if transition is None:
        transition = np.empty((k,) * (order + 1))
        transition[...] = 0.5 * np.eye(k)
        transition += 0.5 * rng.dirichlet(np.full(k, 5.0), (k,) * order)
    if start is None:
        start = np.full((k,) * order, float(k) ** -order)
    if start.ndim == 1:
        means = [transition.mean(axis=tuple(range(order - m))) for m in range(1, order)]
        return (start, *means), transition
    joint = [start.sum(axis=tuple(range(m + 1, order))) for m in range(order)]
    starts = [joint[0]]
    for shorter, longer in pairwise(joint):
        there = shorter[..., None] > 0.0
        starts.append(np.where(there, longer / np.where(there, shorter[..., None], 1.0), 1.0 / k))
    return tuple(starts), transition


class Driven(NamedTuple):
    """A chain that inputs drive: `weights (states, states, 1 + inputs)` of the move from one state to another.

    The inputs of a step drive the move into it; those of first steps drive none.
    """

    start: Array
    weights: Array
    emission: Components
    allowed: Array

    @property
    def last(self) -> Ints | None:
        """None: the chain's states are the model's."""
        return None

    @property
    def transition(self) -> Array:
        """The matrix where all inputs are zero."""
        return np.asarray(self.tables(np.zeros((1, self.weights.shape[2] - 1)))[0])

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        moves = np.maximum(self.allowed.sum(axis=1) - 1, 0).sum() * self.weights.shape[2]
        return int(moves + max((self.start > 0.0).sum() - 1, 0)) + self.emission.n_free

    def tables(self, inputs: Array) -> Array:
        """Return a matrix for each row of inputs, (rows, states, states)."""
        scores = np.einsum("nq,ijq->nij", _design(inputs), self.weights)
        scores = np.where(self.allowed, scores, -np.inf)
        found = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.asarray(found / found.sum(axis=2, keepdims=True))

    def chain_over(self, seen: Observations) -> HiddenChain:
        """Return the hidden chain over some sequences; steps with the same inputs share a matrix."""
        rows, moves = self._distinct(seen)
        return HiddenChain(self.start, self.tables(rows), moves)

    def _distinct(self, seen: Observations) -> tuple[Array, Ints]:
        inputs = np.empty((0, 0)) if seen.inputs is None else seen.inputs
        rows, moves = np.unique(inputs, axis=0, return_inverse=True)
        # a chain takes a single entry of moves for all steps
        return rows, moves.ravel()

    def learned(self, seen: Observations, expected: Expected, weights: Array, priors: Priors) -> "Driven":
        """Return the model that makes expected counts more probable: a weighted multinomial logit for each state."""
        rows = _design(self._distinct(seen)[0])
        found = self.weights.copy()
        for i, may in enumerate(self.allowed):
            counts = expected.pairs[:, i][:, may]
            if may.sum() > 1 and counts.sum() > NOTHING:
                found[i, may] = fit_softmax(
                    rows, counts, priors.penalty, start=self.weights[i, may], symmetric=True, max_iter=25
                ).coef
        emission = self.emission.learned(seen.rows, weights, priors.emission)
        start = counted_rows(expected.starts, self.start, priors.start)
        return self._replace(start=start, weights=found, emission=emission)

    def log_prior(self, priors: Priors) -> float:
        """Return the log prior, up to a constant."""
        near = -0.5 * priors.penalty * float((self.weights**2).sum())
        return near + row_prior(self.start, priors.start) + self.emission.log_prior(priors.emission)

    def ahead(self, now: Array, lengths: Ints, steps: int, inputs: Array | None = None) -> Array:
        """Return the distributions of the next steps' states; `inputs (sequences, steps, columns)` are theirs."""
        assert inputs is not None
        found = []
        for h in range(steps):
            now = np.einsum("ni,nij->nj", now, self.tables(inputs[:, h]))
            found.append(now)
        return np.stack(found, axis=1)

    def draw_states(
        self, count: int, steps: int, rng: np.random.Generator, inputs: Array | None = None
    ) -> Ints:
        """Return drawn paths (count, steps), driven by `inputs (count, steps, columns)`."""
        assert inputs is not None
        states = np.empty((count, steps), dtype=np.int64)
        states[:, 0] = chosen(np.repeat(self.start[None], count, axis=0), rng)
        for t in range(1, steps):
            rows = self.tables(inputs[:, t])[np.arange(count), states[:, t - 1]]
            states[:, t] = chosen(rows, rng)
        return states


def _design(inputs: Array) -> Array:
    return np.column_stack([np.ones(len(inputs)), inputs])
