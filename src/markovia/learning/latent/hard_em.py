"""Hard expectation-maximisation: every row belongs to its most probable component, and components learn from their rows.

    J = sum_n w_n log p(x_n | z_n) + log prior,    z_n = argmax_k log p(x_n | k)

Both turns raise J, so it ends when no row changes. With Gaussians it is k-means in Mahalanobis distances, of which plain
k-means is the case of one covariance, a multiple of the unit matrix. Reference: Celeux and Govaert (1992), "A classification
EM algorithm". Cost of a turn: log densities of all rows in all components, and what these take to learn.
"""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from markovia.learning.components.families import Components
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import Clock

Family = TypeVar("Family", bound=Components)


class HardClusters(NamedTuple, Generic[Family]):
    """Components, the one of each row, J after each turn, and whether rows stopped to change."""

    family: Family
    labels: Ints
    history: list[float]
    converged: bool


def hard_em(
    family: Family,
    rows: Any,
    weights: Array,
    labels: Ints,
    prior: Mapping[str, Any],
    *,
    max_iter: int,
    tol: float = 0.0,
    clock: Clock | None = None,
) -> HardClusters[Family]:
    """Take turns from a first component of each row until J rises by `tol` a unit of weight at most."""
    history: list[float] = []
    converged, k, each = False, family.n_states, np.arange(len(labels))
    for _ in range(max_iter):
        own = np.zeros((len(labels), k))
        own[each, labels] = weights
        family = family.learned(rows, own, prior)
        logs = family.log_densities(rows)
        found = logs.argmax(axis=1)
        history.append(float(weights @ logs[each, found] + family.log_prior(prior)))
        settled = len(history) > 1 and history[-1] - history[-2] <= tol * weights.sum()
        converged = settled or bool((found == labels).all())
        labels = found
        if converged or (clock is not None and clock.over()):
            break
    return HardClusters(family, labels, history, converged)
