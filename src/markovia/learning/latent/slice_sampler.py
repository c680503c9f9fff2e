"""Slice sampling of Dirichlet and Pitman-Yor process mixtures: infinitely many components, of which a draw needs a few.

Weights are pieces of a stick, as in `uncollapsed_gibbs`, but the stick has no end. Each row draws a level below a bound that
belongs to its component, b_j = 0.7^j; given its level it can only go to components whose bound is above it, with weight
w_j / b_j times the density. So only the pieces up to the lowest level are ever looked at, and nothing is cut off.

References: Walker (2007); Kalli, Griffin and Walker (2011), for bounds that do not depend on the weights. Cost of a sweep:
rows times the components above the lowest level, about 3 log(rows) more than are in use.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.inference.collapsed.concentrations import Concentration
from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.learning.latent.uncollapsed_gibbs import drawn_labels, one_hot, stick_weights
from markovia.runtime.array_types import Array, Ints

FALL = 0.7
"""The ratio of the bounds of one component and the one before."""


class SliceSampler:
    """Labels, parameters and weights of the components that matter."""

    def __init__(
        self, component: ConjugateComponents, prior: Law, rows: Array, labels: Ints, law: Concentration
    ) -> None:
        self.component, self.prior, self.rows, self.concentration = component, prior, rows, law
        self._data = component.collapsed(rows, prior)
        self.labels = np.array(labels, dtype=np.int64)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw levels, weights and parameters, labels, and the concentration."""
        n = len(self.labels)
        logs = self.labels * np.log(FALL) + np.log1p(-rng.random(n))  # of levels: 1 - u is never 0
        many = max(int(self.labels.max()), int(np.ceil(logs.min() / np.log(FALL)))) + 1
        belongs = one_hot(self.labels, many)
        weights = stick_weights(belongs.sum(axis=0), self.concentration, rng)
        drawn = self.component.redrawn(self.rows, belongs, self.prior, rng)
        bounds = np.arange(many) * np.log(FALL)
        shares = np.where(bounds >= logs[:, None], weights * np.exp(-bounds), 0.0)
        self.labels = drawn_labels(drawn.log_densities(self.rows), shares, rng)
        self.concentration.redraw(n, len(np.unique(self.labels)), rng)

    def log_prob(self) -> float:
        """Return the log probability of the partition, the concentration and the rows."""
        labels = np.unique(self.labels, return_inverse=True)[1]
        return self._data.log_marginal(labels) + self.concentration.log_prob(np.bincount(labels))

    def state(self) -> dict[str, Any]:
        """Return labels and concentration, on which all the rest depends."""
        return {"labels": self.labels.copy(), **self.concentration.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        self.concentration.restore(state)
        self.labels = np.array(state["labels"], dtype=np.int64)
