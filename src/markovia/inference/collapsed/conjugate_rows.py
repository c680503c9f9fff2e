"""Rows of data whose components are summed out: one protocol for six conjugate families, on compiled kernels.

A component is a row of numbers (see `kernels.collapsed.conjugate`): rows are added to it and removed from it, and it gives
the log density of the next row; what many rows are worth together is the sum of those as they come in one by one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

HOME = "markovia.kernels.collapsed.partitions:"
GAUSSIAN, DIAGONAL, BERNOULLI, CATEGORICAL, MULTINOMIAL, POISSON = range(6)


@dataclass(frozen=True)
class ConjugateRows:
    """Rows as kernels read them, with the kind of their components and the prior, `kernels.collapsed.conjugate`.

    Examples
    --------
    Two rows of one column of zeros and ones, under a uniform prior:

    >>> data = ConjugateRows(BERNOULLI, np.array([0.0, 0.0, 1.0, 1.0]), np.array([[1.0], [1.0]]))
    >>> [round(float(np.exp(data.log_marginal(np.array(groups)))), 6) for groups in ([0, 0], [0, 1])]
    [0.333333, 0.25]
    """

    kind: int
    prior: Array
    values: Array
    most: int = 0
    """How many rows a component may have, where that is more than there are here."""

    @property
    def width(self) -> int:
        """The numbers of a component."""
        d = int(self.values.shape[1])
        if self.kind == GAUSSIAN:
            return 2 + d + d * d
        return 2 + 2 * (len(self.prior) - 2 - d if self.kind == CATEGORICAL else d)

    @cached_property
    def laws(self) -> Array:
        """The prior as kernels read it, with what depends only on how many rows a component has."""
        if self.kind > DIAGONAL:
            return self.prior
        from scipy.special import gammaln

        n, d = np.arange(max(len(self.values), self.most) + 2), self.values.shape[1]
        strength, df = self.prior[0] + n, self.prior[1] + n
        less, times = (d, 1.0) if self.kind == GAUSSIAN else (1, float(d))
        gammas = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * (df + 1.0 - less))
        constants = times * gammas + 0.5 * d * np.log(strength / (strength + 1.0) / np.pi)
        return np.concatenate([self.prior, constants])

    def blank(self, components: int) -> Array:
        """Return room for components, and one that stays empty."""
        return np.zeros((components + 1, self.width))

    def fill(self, labels: Ints, stats: Array, slots: Ints) -> tuple[int, float]:
        """Add all rows to the components that labels say; return how many are in use and the rows' log density."""
        at = np.array([0, 0, len(self.values), 0, 0, 0])
        total = self.swept(labels, stats, slots, at)
        assert total is not None  # it draws nothing, so it needs no slot
        return int(at[0]), total

    def swept(
        self,
        labels: Ints,
        stats: Array,
        slots: Ints,
        at: Ints,
        law: tuple[float, float] = (0.0, 0.0),
        *,
        finite: bool = True,
        seed: Any = None,
        crowd: Array | None = None,
    ) -> float | None:
        """Run the kernel `sweep` from `at` on, and return the rows' log density; None where it needs more slots."""
        rows = self.values
        steps = rows.size * (10.0 * at[1] + 20.0) + (len(rows) - at[2]) * rows.shape[1] * 8.0 * len(slots)
        logs, members = np.zeros(len(slots) + 1), np.zeros(len(rows) if at[1] else 0, dtype=np.int64)
        done, total = either(HOME + "sweep", steps)(
            self.kind, self.laws, rows, labels, stats, slots, at, *law, finite,
            np.zeros(4, dtype=np.uint64) if seed is None else seed,
            np.zeros(rows.shape[1]), logs, logs if crowd is None else crowd, members,
        )  # fmt: skip
        return float(total) if done else None

    def statistics(self, labels: Ints, components: int | None = None) -> Array:
        """Return components that have the rows of labels 0, 1, ...; the last one is empty. A label of -1 is none."""
        stats = self.blank(int(labels.max()) + 1 if components is None else components)
        self.fill(labels.astype(np.int64), stats, np.zeros(len(stats) - 1, dtype=np.int64))
        return stats

    def log_marginal(self, labels: Ints) -> float:
        """Return the log density of the rows given their groups, parameters summed out."""
        stats = self.blank(int(labels.max()) + 1)
        return self.fill(labels.astype(np.int64), stats, np.zeros(len(stats) - 1, dtype=np.int64))[1]

    def log_predictive(self, stats: Array) -> Array:
        """Return the log density of each row as the next one of each component, (rows, components)."""
        found = np.empty((len(self.values), len(stats)))
        write = either(HOME + "predictive", self.values.size * 8.0 * len(stats))
        room = np.zeros(self.values.shape[1])
        write(self.kind, self.laws, np.ascontiguousarray(stats), self.values, room, found)
        return found
