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

from markovia.inference.collapsed.concentration import Concentration
from markovia.inference.collapsed.conjugate_rows import HOME, ConjugateRows
from markovia.kernels.plain_code import either
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
        self._room = np.zeros(self.data.values.shape[1])
        self._members = np.zeros(len(labels), dtype=np.int64)
        self._crowd = np.log(np.maximum(np.arange(len(labels) + 1) - self.concentration.discount, 1e-300))
        self._make_room(int(self.labels.max()) + 8)
        self._rebuild()

    def _make_room(self, slots: int) -> None:
        self.stats, self.slots = self.data.blank(slots), np.zeros(slots, dtype=np.int64)
        self._logs = np.zeros(slots + 1)

    def _rebuild(self) -> None:
        """Count afresh, so that rounding does not gather and a chain depends on nothing but what `state` keeps."""
        self.used, self._log_density = self.data.fill(self.labels, self.stats, self.slots)

    def sweep(self, rng: np.random.Generator) -> None:
        """Propose splits and merges, draw the group of each row, and the concentration."""
        data, law, s = self.data, self.concentration, kernel_seed(rng)
        rows = data.values
        common = (data.kind, data.laws, rows, self.labels)
        for _ in range(self.split_merges if len(rows) > 1 else 0):
            if self.used + 3 > len(self.slots):
                self._make_room(2 * len(self.slots))
                self._rebuild()
            move = either(HOME + "split_merge", rows.size * 10.0)
            self.used, what = move(
                *common,
                self.stats,
                self.slots,
                self.used,
                law.value,
                law.discount,
                s,
                self._room,
                self._members,
            )
            self.moves[what + 1] += 1
        at = 0
        while at < len(rows):
            step = either(HOME + "gibbs_sweep", rows.size * 8.0 * (self.used + 2))
            self.used, at = step(
                *common,
                self.stats,
                self.slots,
                self.used,
                at,
                law.value,
                law.discount,
                False,
                s,
                self._room,
                self._logs,
                self._crowd,
            )
            if at < len(rows):
                self._make_room(2 * len(self.slots))
                self._rebuild()
        self.labels[:] = np.unique(self.labels, return_inverse=True)[1]
        self._rebuild()
        law.redraw(len(rows), self.used, rng)

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
        self._room, self._logs = np.zeros(data.values.shape[1]), np.zeros(k + 1)
        self._crowd = np.log(np.arange(len(data.values) + 1) + self.concentration)
        self.restore({"labels": labels})

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw the component of each row given all others."""
        data, rows = self.data, self.data.values
        step = either(HOME + "gibbs_sweep", rows.size * 8.0 * self.k)
        step(
            data.kind, data.laws, rows, self.labels, self.stats, np.arange(self.k), self.k, 0, self.concentration, 0.0,
            True, kernel_seed(rng), self._room, self._logs, self._crowd,
        )  # fmt: skip
        self._log_density = data.fill(self.labels, self.stats, np.zeros(self.k, dtype=np.int64))[1]

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
