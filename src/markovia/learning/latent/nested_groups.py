"""Mixtures as components of a mixture: every component has groups of its own, which go one step of EM at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.learning.components.discrete import chosen
from markovia.learning.components.families import NOTHING, Components
from markovia.learning.latent.group_em import Groups, LearningRule, Sample, step
from markovia.learning.latent.group_starts import few_rows, tried_groups
from markovia.runtime.array_types import Array, Ints


@dataclass(frozen=True)
class NestedGroups(Components):
    """Groups in each component; `inside` has the family of their components, and how many there are."""

    groups: tuple[Groups, ...]
    inside: Any
    k: int
    names: ClassVar = ("groups",)
    width: ClassVar = None

    @property
    def params(self) -> dict[str, Any]:
        """Weights and parameters of the groups, one entry a component."""
        return {
            "weights": np.array([g.weights for g in self.groups]),
            "components": [g.components.params for g in self.groups],
        }

    @property
    def n_states(self) -> int:
        """The number of components."""
        return self.k

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(g.components.n_free + len(g.weights) - 1 for g in self.groups)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each component."""
        each = [g.components.log_densities(rows) + g.log_weights for g in self.groups]
        return np.column_stack([np.logaddexp.reduce(joint, axis=1) for joint in each])

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the components after a step of EM in each."""
        rule, gaps = LearningRule(prior), isinstance(rows, np.ndarray) and bool(np.isnan(rows.sum()))
        made = []
        for j, own in enumerate(np.ascontiguousarray(weights.T)):
            sample = Sample(rows, own, None, gaps)
            if own.sum() <= NOTHING and self.groups:
                made.append(self.groups[j])
            elif self.groups:
                made.append(step(self.groups[j], sample, rule)[1])
            else:
                rng = np.random.default_rng(j)
                most = Sample(rows, np.where(own >= 0.5 * own.max(), own, 0.0), None, gaps)
                few = few_rows(most, 2, rng)
                made.append(tried_groups(self.inside.inner, self.inside.inner_size, few, rule, rng, 2))
        return replace(self, groups=tuple(made))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return a row from each of some components."""
        found: Any = None
        for j in np.unique(states).tolist():
            here = np.flatnonzero(states == j)
            own = self.groups[j]
            drawn = own.components.draw(chosen(np.repeat(own.weights[None], len(here), axis=0), rng), rng)
            found = np.empty((len(states), *drawn.shape[1:]), drawn.dtype) if found is None else found
            found[here] = drawn
        return found
