"""Collapsed Gibbs sampling of the groups of rows: parameters and weights are summed out.

Each row leaves its group and draws one again given all others: with n_k rows in group k

    an old group   (n_k - discount) p(row | rows of k)
    a new group    (concentration + K discount) p(row)

or, in a mixture of K components with weights from a symmetric Dirichlet law, (n_k + concentration) p(row | rows of k). Moves
one row at a time cannot part a group that is two, so each sweep also proposes splits and merges of whole groups.

References: MacEachern (1994); Neal (2000), algorithm 3; Jain and Neal (2004) and Dahl (2005) for splits and merges. Cost
of a sweep: rows times groups times what a density costs.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.inference.collapsed.concentrations import Concentration
from markovia.inference.collapsed.conjugate_rows import ConjugateRows
from markovia.runtime.array_types import Ints
from markovia.runtime.seeds import kernel_seed


class CollapsedGibbs:
    """The groups of rows under a Chinese restaurant prior.

    Parameters
    ----------
    data
        Rows and the kind of their components.
    labels
        Where the chain begins.
    concentration
        The law of the partition.
    split_merges
        Proposals to split or merge a sweep.
    """

    def __init__(
        self, data: ConjugateRows, labels: Ints, concentration: Concentration, *, split_merges: int = 5
    ) -> None:
        self.data, self.concentration, self.split_merges = data, concentration, split_merges
        self.moves = np.zeros(3, dtype=np.int64)
        """How many merges were taken, proposals refused and splits taken."""
        self._begin(labels)

    def _begin(self, labels: Ints) -> None:
        self.labels = np.array(labels, dtype=np.int64)
        self._crowd = np.log(np.maximum(np.arange(len(labels) + 1) - self.concentration.discount, 1e-300))
        self._make_room(int(self.labels.max()) + 8)

    def _make_room(self, slots: int) -> None:
        self.stats, self.slots = self.data.blank(slots), np.zeros(slots, dtype=np.int64)
        self.used, self._log_density = self.data.fill(self.labels, self.stats, self.slots)

    def sweep(self, rng: np.random.Generator) -> None:
        """Propose splits and merges, draw the group of each row, and the concentration."""
        law, s, n = self.concentration, kernel_seed(rng), len(self.labels)
        at = np.array([self.used, self.split_merges if n > 1 else 0, 0, *self.moves])
        while True:
            total = self.data.swept(
                self.labels, self.stats, self.slots, at, (law.value, law.discount),
                finite=False, seed=s, crowd=self._crowd,
            )  # fmt: skip
            if total is not None:
                break
            self._make_room(2 * len(self.slots))
            at[0] = self.used
        self.used, self._log_density, self.moves = int(at[0]), total, at[3:]
        law.redraw(n, self.used, rng)

    def log_prob(self) -> float:
        """Return the log probability of the partition, the concentration and the rows."""
        return self._log_density + self.concentration.log_prob(np.bincount(self.labels))

    def state(self) -> dict[str, Any]:
        """Return labels and concentration."""
        return {"labels": self.labels.copy(), **self.concentration.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        self.concentration.restore(state)
        self._begin(state["labels"])


class FiniteCollapsedGibbs:
    """The components of rows, of which there are k, with weights from a symmetric Dirichlet law.

    Examples
    --------
    >>> data = ConjugateRows(2, np.array([0.0, 0.0, 1.0, 1.0]), np.array([[1.0], [1.0], [0.0]]))
    >>> chain = FiniteCollapsedGibbs(data, np.zeros(3, dtype=np.int64), 2, 1.0)
    >>> chain.sweep(np.random.default_rng(0))
    >>> round(chain.log_prob(), 6) <= 0
    True
    """

    def __init__(self, data: ConjugateRows, labels: Ints, k: int, concentration: float) -> None:
        self.data, self.k, self.concentration = data, k, float(concentration)
        self._crowd = np.log(np.arange(len(data.values) + 1) + self.concentration)
        self.restore({"labels": labels})

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw the component of each row given all others."""
        at, seed = np.array([self.k, 0, 0, 0, 0, 0]), kernel_seed(rng)
        found = self.data.swept(
            self.labels, self.stats, np.arange(self.k), at, finite=True, seed=seed, crowd=self._crowd
        )
        assert found is not None  # every component is a slot
        self._log_density = found

    def log_prob(self) -> float:
        """Return the log probability of the labels and the rows."""
        from scipy.special import gammaln

        sizes, a = np.bincount(self.labels, minlength=self.k), self.concentration
        found = (
            gammaln(sizes + a).sum()
            - self.k * gammaln(a)
            + gammaln(self.k * a)
            - gammaln(sizes.sum() + self.k * a)
        )
        return float(self._log_density + found)

    def state(self) -> dict[str, Any]:
        """Return the labels."""
        return {"labels": self.labels.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        self.labels = np.array(state["labels"], dtype=np.int64)
        self.stats = self.data.blank(self.k)
        self._log_density = self.data.fill(self.labels, self.stats, np.zeros(self.k, dtype=np.int64))[1]
