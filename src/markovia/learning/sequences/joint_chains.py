"""Several hidden chains that are seen together: factorial and coupled hidden Markov models as learning sees them.

They are answered exactly as one chain whose states are those of all chains together, the last chain's changing fastest.
Reference: Ghahramani and Jordan (1997); Brand, Oliver and Pentland (1997). Cost: steps times joint states squared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.inference.sequences.hidden_chain import Expected, HiddenChain
from markovia.learning.components.families import Components, Observations
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.components.normal_sums import regular
from markovia.learning.sequences.baum_welch import Priors, counted_rows, row_prior
from markovia.runtime.array_types import Array, Ints


def members(sizes: tuple[int, ...]) -> Ints:
    """Return the state of each chain in each joint state, (joint states, chains)."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)


class JointChains(NamedTuple):
    """Chains with `starts[i] (states of i,)` and `transitions[i]`, with a row for each own, or each joint, state before."""

    sizes: tuple[int, ...]
    starts: tuple[Array, ...]
    transitions: tuple[Array, ...]
    emission: Components

    @property
    def chain(self) -> HiddenChain:
        """The chain of joint states."""
        return HiddenChain(reduce(np.multiply.outer, self.starts).ravel(), self.joint)

    @property
    def joint(self) -> Array:
        """The transition of joint states."""
        of = members(self.sizes)
        found = np.ones((len(of), len(of)))
        for i, table in enumerate(self.transitions):
            rows = table[of[:, i]] if len(table) != len(of) else table
            found *= rows[:, of[:, i]]
        return found

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        tables = (*(s[None] for s in self.starts), *self.transitions)
        own = sum(np.maximum((one > 0.0).sum(axis=1) - 1, 0).sum() for one in tables)
        return int(own) + self.emission.n_free

    def chain_over(self, seen: Observations) -> HiddenChain:
        """Return the chain of joint states over some sequences."""
        return self.chain

    def learned(
        self, seen: Observations, expected: Expected, weights: Array, priors: Priors
    ) -> "JointChains":
        """Return the model that makes expected counts most probable."""
        of = members(self.sizes)
        starts, transitions = [], []
        for i, (start, table) in enumerate(zip(self.starts, self.transitions, strict=True)):
            own = np.eye(self.sizes[i])[of[:, i]]
            starts.append(counted_rows(expected.starts @ own, start, priors.start))
            counts = expected.pairs[0] @ own
            counts = own.T @ counts if len(table) != len(of) else counts
            transitions.append(counted_rows(counts, table, priors.transition))
        emission = self.emission.learned(seen.rows, weights, priors.emission)
        return self._replace(starts=tuple(starts), transitions=tuple(transitions), emission=emission)

    def log_prior(self, priors: Priors) -> float:
        """Return the log prior, up to a constant."""
        found = sum(row_prior(one, priors.start) for one in self.starts)
        found += sum(row_prior(one, priors.transition) for one in self.transitions)
        return found + self.emission.log_prior(priors.emission)


@dataclass(frozen=True)
class AdditiveGaussian(Components):
    """A normal distribution whose mean is the sum of a row of each chain's `means[i] (states of i, columns)`."""

    means: tuple[Array, ...]
    covariance: Array
    names: ClassVar = ("means", "covariance")

    @property
    def n_states(self) -> int:
        """The number of joint states."""
        return int(np.prod([len(one) for one in self.means]))

    @property
    def n_free(self) -> int:
        """The number of free parameters; a shift from one chain's means to another's is none."""
        d = len(self.covariance)
        return (sum(len(one) for one in self.means) - len(self.means) + 1) * d + d * (d + 1) // 2

    @property
    def joint(self) -> Gaussian:
        """The same as one normal distribution a joint state."""
        of = members(tuple(len(one) for one in self.means))
        means = np.sum([one[of[:, i]] for i, one in enumerate(self.means)], axis=0)
        return Gaussian(means, np.repeat(self.covariance[None], len(of), axis=0), "tied")

    def read(self, sequences: Sequences) -> Observations:
        """Return rows of numbers as observations."""
        return Gaussian.read(sequences)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each joint state."""
        return self.joint.log_densities(rows)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return weighted least squares on the states of all chains together."""
        sizes = tuple(len(one) for one in self.means)
        of = members(sizes)
        design = np.concatenate([np.eye(n)[of[:, i]] for i, n in enumerate(sizes)], axis=1)
        total = weights.sum(axis=0)
        # the means have a freedom: pinv takes the smallest of all equally good ones
        left = np.linalg.pinv(design.T @ (total[:, None] * design), hermitian=True)
        found = left @ design.T @ (weights.T @ rows)
        means = tuple(np.split(found, np.cumsum(sizes)[:-1]))
        made = replace(self, means=means)
        centre = made.joint.means
        second = rows.T @ (weights.sum(axis=1)[:, None] * rows)
        cross = centre.T @ (weights.T @ rows)
        scatter = second - cross - cross.T + centre.T @ (total[:, None] * centre)
        covariance = regular((scatter + scatter.T)[None] / (2.0 * total.sum()), lambda: rows.var(axis=0))[0]
        return replace(made, covariance=covariance)

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some joint states."""
        return self.draw_parts(members(tuple(len(one) for one in self.means))[states], rng)

    def draw_parts(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each row of states of all chains."""
        mean = sum(one[states[:, i]] for i, one in enumerate(self.means))
        root = np.linalg.cholesky(self.covariance)
        return mean + rng.normal(size=(len(states), len(root))) @ root.T


@dataclass(frozen=True)
class ByChain(Components):
    """Each chain emits a column of its own: `parts[i]` is the emission of chain i."""

    parts: tuple[Any, ...]
    names: ClassVar = ("parts",)

    @property
    def n_states(self) -> int:
        """The number of joint states."""
        return int(np.prod([one.n_states for one in self.parts]))

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return int(sum(one.n_free for one in self.parts))

    @property
    def _of(self) -> Ints:
        return members(tuple(one.n_states for one in self.parts))

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each joint state."""
        of = self._of
        each = (part.log_densities(rows[:, i : i + 1])[:, of[:, i]] for i, part in enumerate(self.parts))
        return np.asarray(sum(each))

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return each chain's emission, learned from its column."""
        of = self._of
        found = [
            part.learned(rows[:, i : i + 1], weights @ np.eye(part.n_states)[of[:, i]], prior)
            for i, part in enumerate(self.parts)
        ]
        return replace(self, parts=tuple(found))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some joint states."""
        return self.draw_parts(members(tuple(one.n_states for one in self.parts))[states], rng)

    def draw_parts(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each row of states of all chains."""
        return np.concatenate([part.draw(states[:, i], rng) for i, part in enumerate(self.parts)], axis=1)
