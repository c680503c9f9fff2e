"""Members of any exponential family as components: learning is to match moments."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.components.block_passes import BlockPass, LinearPass
from markovia.learning.components.discrete import passed
from markovia.learning.components.families import NOTHING, Components
from markovia.runtime.array_types import Array, Ints


@dataclass(frozen=True)
class ExponentialMembers(Components):
    """Members of one exponential family, one a component.

    Examples
    --------
    >>> from markovia.exponential import Gamma
    >>> two = ExponentialMembers((Gamma(2.0, 1.0), Gamma(9.0, 1.0)))
    >>> np.exp(two.log_densities(np.array([[1.0]]))).round(4).tolist()
    [[0.3679, 0.0]]
    """

    members: tuple[Any, ...]
    names: ClassVar = ("members",)

    @property
    def params(self) -> dict[str, Any]:
        """The members, and their natural parameters."""
        return {"members": list(self.members), "natural": np.array([m.natural() for m in self.members])}

    @property
    def n_states(self) -> int:
        """The number of components."""
        return len(self.members)

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(m.n_free for m in self.members)

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass:
        """Return a pass over blocks of rows."""
        first = self.members[0]
        return LinearPass(
            lambda block: np.asarray(first.sufficient_statistics(values(block))).reshape(len(block), -1).T,
            np.array([m.natural() for m in self.members]),
            -np.array([m.log_partition() for m in self.members]),
            self._matched,
        )

    def _matched(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Self:
        made = []
        for member, n, total in zip(self.members, size, sums, strict=True):
            try:
                made.append(member.with_moments(total / n) if n > NOTHING else member)
            except InvalidArgument:  # on the boundary, where no member is
                made.append(member)
        return replace(self, members=tuple(made))

    def base(self, rows: Any) -> Array:
        """Return the log base measure of each row."""
        return np.asarray(self.members[0].log_base_measure(values(rows)), dtype=np.float64)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each component."""
        return passed(self, rows)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the members whose moments are those of weighted rows."""
        passing = self.block_pass()
        _, kept = passing.logs(rows)
        made: Self = passing.learned(weights.sum(axis=0), passing.sums(kept, weights.T), prior)
        return made

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return a row from each of some components."""
        found: Any = None
        for k in np.unique(states).tolist():
            here = np.flatnonzero(states == k)
            drawn = np.asarray(self.members[k].sample(len(here), seed=rng)).reshape(len(here), -1)
            found = np.empty((len(states), drawn.shape[1])) if found is None else found
            found[here] = drawn
        return found


def values(rows: Array) -> Array:
    """Return rows as a family takes them: numbers, or vectors where there are several columns."""
    return rows[:, 0] if rows.shape[1] == 1 else rows
