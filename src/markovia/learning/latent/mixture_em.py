"""Mixtures of models of sequences, learned by expectation-maximisation.

    p(x) = sum_c p(c) p(x | c)

Each iteration takes the probability of each component given each sequence, and lets every component learn from all sequences
with those as weights: to the end where it counts (Markov chains), one step of Baum-Welch where it does not. The objective
never falls. Reference: Smyth (1997), "Clustering sequences with hidden Markov models". Cost: that of learning
each component.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np

from markovia.learning.components.families import Observations
from markovia.learning.sequences.baum_welch import HiddenMarkov, Priors, maximise
from markovia.runtime.array_types import Array
from markovia.runtime.progress import progress_bar


class Component(Protocol):
    """A model of some sequences."""

    def log_probs(self) -> Array:
        """Return log p of each sequence."""

    def log_prior(self) -> float:
        """Return the log prior of its parameters, up to a constant."""

    def improved(self, weights: Array) -> Self:
        """Return the component learned from weighted sequences."""


class MixtureTraining(NamedTuple):
    """What learning found: components, their probabilities, the objective before each iteration, whether it settled."""

    components: list[Component]
    weights: Array
    history: list[float]
    converged: bool


def learn_mixture(
    components: Sequence[Component],
    shares: Array,
    first: Array,
    *,
    max_iter: int,
    tol: float,
    progress: bool | None = False,
) -> MixtureTraining:
    """Learn a mixture from first probabilities of components, (sequences, components); sequences count by `shares`."""
    responsibilities = first
    parts = list(components)
    history: list[float] = []
    converged = False
    weights = np.full(len(parts), 1.0 / len(parts))
    with progress_bar(progress, max_iter, unit="iteration") as advance:
        for _ in range(max_iter + 1):
            counts = shares[:, None] * responsibilities
            parts = [p.improved(counts[:, c]) if counts[:, c].any() else p for c, p in enumerate(parts)]
            weights = counts.sum(axis=0) / shares.sum()
            total, responsibilities = assigned(parts, weights)
            history.append(float(shares @ total) + sum(p.log_prior() for p in parts))
            advance(note=f"{history[-1]:.6g}")
            if len(history) > 1 and history[-1] - history[-2] < tol:
                converged = True
                break
    return MixtureTraining(parts, weights, history, converged)


def assigned(parts: Sequence[Component], weights: Array) -> tuple[Array, Array]:
    """Return log p of each sequence, and the probability of each component given it, (sequences, components)."""
    with np.errstate(divide="ignore"):
        joint = np.column_stack([p.log_probs() for p in parts]) + np.log(weights)
    total = np.logaddexp.reduce(joint, axis=1)
    with np.errstate(invalid="ignore"):
        found = np.exp(joint - total[:, None])
    return total, np.where(np.isfinite(total)[:, None], found, weights)


@dataclass(frozen=True)
class HiddenComponent:
    """A hidden Markov model in a mixture."""

    model: HiddenMarkov
    seen: Observations
    priors: Priors

    def log_probs(self) -> Array:
        """Return log p of each sequence."""
        return self.model.chain.filter(self.seen.seen_by(self.model.emission)).log_probs

    def log_prior(self) -> float:
        """Return the log prior of its parameters, up to a constant."""
        return self.priors.log_density(self.model)

    def improved(self, weights: Array) -> "HiddenComponent":
        """Return the component after one step of Baum-Welch on weighted sequences."""
        expected = self.model.chain.expect(self.seen.seen_by(self.model.emission), weights)
        made = maximise(self.model, self.seen, expected, self.seen.weights(expected.sums), self.priors)
        return HiddenComponent(made, self.seen, self.priors)
