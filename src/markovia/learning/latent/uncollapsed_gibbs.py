"""Gibbs sampling of mixtures that keeps parameters and weights: finite mixtures, and Dirichlet processes cut short.

A sweep draws parameters given labels from their conjugate laws, weights given labels, and then all labels at once. Weights
are from a symmetric Dirichlet law, or from sticks: of what is left, component t takes a share v_t

    v_t ~ Beta(1 - discount + n_t, concentration + (t + 1) discount + n_{>t}),  the last share being all.

References: Diebolt and Robert (1994); Ishwaran and James (2001), whose error falls as exp(-components / concentration). Cost
of a sweep: rows times components times a density, all in arrays.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.inference.collapsed.concentrations import Concentration
from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.learning.components.conjugate_draws import dirichlet_rows
from markovia.learning.components.discrete import chosen
from markovia.runtime.array_types import Array, Ints


class FiniteGibbs:
    """Labels, parameters and weights of a mixture of k components."""

    def __init__(
        self, component: ConjugateComponents, prior: Law, rows: Array, labels: Ints, k: int, alpha: float
    ) -> None:
        self.component, self.prior, self.rows, self.k, self._alpha = component, prior, rows, k, alpha
        self._data = component.collapsed(rows, prior)
        self.labels = np.array(labels, dtype=np.int64)
        self.weights = np.full(k, 1.0 / k)

    def _draw_weights(self, sizes: Array, rng: np.random.Generator) -> Array:
        return np.asarray(dirichlet_rows(sizes[None] + self._alpha, rng)[0])

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw parameters and weights given labels, then labels."""
        belongs = one_hot(self.labels, self.k)
        drawn = self.component.redrawn(self.rows, belongs, self.prior, rng)
        self.weights = self._draw_weights(belongs.sum(axis=0), rng)
        self.labels = drawn_labels(drawn.log_densities(self.rows), self.weights, rng)

    def log_prob(self) -> float:
        """Return the log probability of labels and rows, parameters and weights summed out."""
        from scipy.special import gammaln

        sizes, a, k = np.bincount(self.labels, minlength=self.k), self._alpha, self.k
        found = gammaln(sizes + a).sum() - k * gammaln(a) + gammaln(k * a) - gammaln(sizes.sum() + k * a)
        return float(found) + self._data.log_marginal(self.labels)

    def state(self) -> dict[str, Any]:
        """Return the labels, on which all the rest depends."""
        return {"labels": self.labels.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        self.labels = np.array(state["labels"], dtype=np.int64)


class BlockedGibbs(FiniteGibbs):
    """The same with weights of a stick that ends after k pieces."""

    def __init__(
        self,
        component: ConjugateComponents,
        prior: Law,
        rows: Array,
        labels: Ints,
        k: int,
        law: Concentration,
    ) -> None:
        super().__init__(component, prior, rows, labels, k, 0.0)
        self.concentration = law

    def _draw_weights(self, sizes: Array, rng: np.random.Generator) -> Array:
        return stick_weights(sizes, self.concentration, rng, whole=True)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw parameters and sticks given labels, labels, and the concentration."""
        super().sweep(rng)
        self.concentration.redraw(len(self.labels), len(np.unique(self.labels)), rng)

    def log_prob(self) -> float:
        """Return the log probability of the partition, the concentration and the rows."""
        sizes = np.bincount(self.labels)
        return self._data.log_marginal(self.labels) + self.concentration.log_prob(sizes[sizes > 0])

    def state(self) -> dict[str, Any]:
        """Return labels and concentration."""
        return {**super().state(), **self.concentration.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        super().restore(state)
        self.concentration.restore(state)


def stick_weights(
    sizes: Array, law: Concentration, rng: np.random.Generator, *, whole: bool = False
) -> Array:
    """Return the first pieces of a stick given how many rows each has; with `whole` the last piece is all that is left."""
    later = sizes.sum() - np.cumsum(sizes)
    place = np.arange(1, len(sizes) + 1)
    shares = rng.beta(1.0 - law.discount + sizes, law.value + place * law.discount + later)
    if whole:
        shares[-1] = 1.0
    return np.asarray(shares * np.concatenate([[1.0], np.cumprod(1.0 - shares[:-1])]))


def one_hot(labels: Ints, k: int) -> Array:
    """Return how much each row belongs to each component: all to one."""
    found = np.zeros((len(labels), k))
    found[np.arange(len(labels)), labels] = 1.0
    return found


def drawn_labels(logs: Array, weights: Array, rng: np.random.Generator) -> Ints:
    """Return a label for each row given its log densities and the weights, of the components or of each row's."""
    with np.errstate(divide="ignore"):
        joint = logs + np.log(weights)
    joint -= joint.max(axis=1, keepdims=True)
    chances = np.exp(joint)
    return np.asarray(chosen(chances / chances.sum(axis=1, keepdims=True), rng), dtype=np.int64)
