"""States that share an emission: groups of states that look alike, so that only the chain tells them apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument
from markovia.learning.components.families import Components, Observations
from markovia.runtime.array_types import Array, Ints


@dataclass(frozen=True)
class Tied(Components):
    """Emissions of groups; state i emits what group `groups[i]` does, and is called `labels[i]`.

    Examples
    --------
    >>> from markovia.learning.components.discrete import Poisson
    >>> two = Tied(Poisson(np.array([[1.0], [9.0]])), np.array([0, 0, 1]), np.arange(3))
    >>> two.learned(np.array([[4.0]]), np.array([[1.0, 2.0, 0.0]]), {}).params["rates"].tolist()
    [[4.0], [9.0]]
    """

    inner: Any
    groups: Ints
    labels: Ints
    names: ClassVar = ()

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of groups by name."""
        found: dict[str, Any] = self.inner.params
        return found

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.groups)

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return int(self.inner.n_free)

    def read(self, sequences: Sequences) -> Observations:
        """Return sequences as observations."""
        found: Observations = self.inner.read(sequences)
        return found

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state."""
        return np.asarray(self.inner.log_densities(rows)[:, self.groups])

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows most probable."""
        return replace(self, inner=self.inner.learned(rows, self._grouped(weights), prior))

    def whole_prior(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> dict[str, Any]:
        """Return a conjugate prior of the groups with what it does not say."""
        whole: dict[str, Any] = self.inner.whole_prior(rows, self._grouped(weights), prior)
        return whole

    def redrawn(self, rows: Any, weights: Array, prior: Mapping[str, Any], rng: np.random.Generator) -> Self:
        """Return emissions drawn given rows by weight and a whole prior."""
        return replace(self, inner=self.inner.redrawn(rows, self._grouped(weights), prior, rng))

    def _grouped(self, weights: Array) -> Array:
        """Return how much of each row belongs to each group."""
        sums = np.zeros((weights.shape[0], self.inner.n_states))
        np.add.at(sums.T, self.groups, weights.T)
        return sums

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        return self.inner.draw(self.groups[states], rng)

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        """Return the log density of the parameters under a prior, up to a constant."""
        return float(self.inner.log_prior(prior))


def untied(emission: Any) -> Any:
    """Return the emissions of groups where states are tied, else the emissions themselves."""
    return emission.inner if isinstance(emission, Tied) else emission


def expanded(emission: Any) -> Any:
    """Return the same emissions with one a state, also where states are tied."""
    if not isinstance(emission, Tied):
        return emission
    return replace(
        emission.inner, **{name: value[emission.groups] for name, value in emission.inner.params.items()}
    )


def read_groups(tied: Iterable[Sequence[int]] | None, k: int) -> Ints | None:
    """Return the group of each state; states that are in none have one of their own, after the others."""
    if tied is None:
        return None
    found = np.full(k, -1, dtype=np.int64)
    groups = [np.atleast_1d(np.asarray(list(one))) for one in tied]
    for g, members in enumerate(groups):
        if members.size == 0 or members.dtype.kind not in "iu" or (members < 0).any() or (members >= k).any():
            raise InvalidArgument(f"tied= has groups of states 0 to {k - 1}, not {list(tied)[g]!r}")
        if (found[members] >= 0).any() or len(set(members.tolist())) < len(members):
            raise InvalidArgument("tied= has a state in two places; each state is in one group")
        found[members] = g
    alone = np.flatnonzero(found < 0)
    found[alone] = len(groups) + np.arange(len(alone))
    return found
