"""From counts to conditional distributions: maximum likelihood, or posterior means under a prior.

`TableLearner` is the one place that turns counts of families into a network's distributions. Counting on complete data
calls it once; expectation-maximisation calls it in every step with expected counts.
Reference: Koller & Friedman (2009), chapter 17. Cost: linear in the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from markovia.factors.conditional import Conditional, ConditionalTable
from markovia.factors.factor import Array
from markovia.factors.variable import Variable
from markovia.learning.priors import Prior


@dataclass(frozen=True)
class Family:
    """A node, its parents, and what it had before: None, a table, or a local model that keeps its form."""

    variable: Variable
    parents: tuple[Variable, ...]
    before: Conditional | None = None
    fixed: bool = False

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the axes of its counts: parents, then the child."""
        return (*(p.name for p in self.parents), self.variable.name)


class TableLearner:
    """Estimates the distributions of all nodes from counts of their families.

    Parameters
    ----------
    families
        One a node; `fixed` ones keep what they had.
    prior
        Pseudo-counts, or None for maximum likelihood.
    """

    def __init__(self, families: Sequence[Family], prior: Prior | None = None) -> None:
        self.families = tuple(families)
        self.prior = prior
        self.pseudo = [
            None if prior is None or f.fixed else prior.pseudo_counts(f.variable, f.parents)
            for f in self.families
        ]

    def estimate(self, counts: Sequence[Array]) -> list[Conditional]:
        """Return the distributions that maximise `sum N log p + sum a log p` (N counts, a pseudo-counts).

        Under a Dirichlet prior with parameters a this is the posterior mean. A row that neither data nor prior say
        anything about is uniform.
        """
        return [
            f.before
            if f.fixed and f.before is not None
            else ConditionalTable.of(f.variable, f.parents, normalised_rows(n if a is None else n + a))
            for f, n, a in zip(self.families, counts, self.pseudo, strict=True)
        ]

    def log_prior(self, tables: Sequence[Conditional]) -> float:
        """Return `sum a log p`, which with the log likelihood is what `estimate` maximises."""
        return float(
            sum(weighted_log(a, t.values) for t, a in zip(tables, self.pseudo, strict=True) if a is not None)
        )


def normalised_rows(weights: Array) -> Array:
    """Divide each row by its sum; a row of zeros becomes uniform."""
    sums = weights.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows: Array = np.where(sums > 0, weights / sums, 1.0 / weights.shape[-1])
    return rows


def weighted_log(weights: Array, p: Array) -> float:
    """Return `sum w log p` with `0 log 0 = 0`."""
    some = weights > 0
    with np.errstate(divide="ignore"):
        return float((weights[some] * np.log(p[some])).sum())
