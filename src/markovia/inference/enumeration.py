"""Brute force: the whole joint table.

Method: multiply everything, look at the table. Cost: the product of all cardinalities in time and memory.
Use it to teach and to check other engines on small models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge
from markovia.factors.conditional import draw_rows
from markovia.factors.factor import Factor, product
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Tables


@dataclass(frozen=True)
class Enumeration:
    """Brute-force enumeration of the joint distribution.

    Parameters
    ----------
    max_entries
        The largest joint table that may be built.
    """

    max_entries: int = 2**24

    name: ClassVar[str] = "enumeration"
    exact: ClassVar[bool] = True

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        whole, log_mass = self._table(problem)
        table = whole.marginal(targets)
        return Tables([table.normalize() if np.isfinite(log_mass) else table], log_mass)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        whole, log_mass = self._table(problem)
        tables = [whole.marginal(t) for t in targets]
        return Tables([t.normalize() for t in tables] if np.isfinite(log_mass) else tables, log_mass)

    def log_mass(self, problem: Problem) -> float:
        """Return the log of the total weight that agrees with the findings."""
        return self._table(problem)[1]

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> list[Assignment]:
        """Return the m best assignments of the targets, other variables summed out."""
        whole, log_mass = self._table(problem)
        table = whole.marginal(targets)
        scale = log_mass - np.log(table.total) if np.isfinite(log_mass) else 0.0
        flat = table.values.ravel()
        ranked = np.argsort(-flat, kind="stable")[:m]
        return [
            Assignment(
                {n: int(c) for n, c in zip(targets, np.unravel_index(int(i), table.shape), strict=True)},
                float(np.log(flat[i]) + scale),
            )
            for i in ranked
            if flat[i] > 0
        ]

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw n configurations of the free variables given the findings, as state codes."""
        whole, _ = self._table(problem)
        drawn = draw_rows(whole.values.ravel(), n, rng)
        axes = np.unravel_index(drawn, whole.shape) if whole.variables else ()
        return {v.name: np.asarray(a, dtype=np.int64) for v, a in zip(whole.variables, axes, strict=True)}

    def _table(self, problem: Problem) -> tuple[Factor, float]:
        """Return the rescaled joint over the free variables and the log of its true total."""
        free = [problem.variables[n] for n in problem.free]
        entries = prod(len(v) for v in free)
        if entries > self.max_entries or len(free) > 64:
            raise TooLarge(
                f"the joint table has {entries:,} entries, over the limit of {self.max_entries:,}; "
                "engine='variable-elimination' does not need it"
            )
        table = Factor.of(tuple(free), np.ones([len(v) for v in free]))
        scale = 0.0
        for factor in problem.reduced(None):
            table = product((table, factor))
            top = float(table.values.max(initial=0.0))
            if top == 0.0:
                return table.transpose([v.name for v in free]), -np.inf
            table = table / top
            scale += np.log(top)
        return table.transpose([v.name for v in free]), float(scale + np.log(table.total))
