"""Brute force: the whole joint table.

Method: multiply everything, look at the table. Cost: the product of all cardinalities in time and memory.
Use it to teach and to check other engines on small models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.tables.conditional import draw_rows
from markovia.factors.tables.factor import Factor
from markovia.inference.exact.arithmetic import Logarithmic
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, LogMass, Ranked, Tables
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, check_options


@dataclass(frozen=True)
class Enumeration:
    """Brute-force enumeration of the joint distribution.

    Parameters
    ----------
    max_entries
        The largest joint table that may be built.
    """

    max_entries: Count = 2**24

    name: ClassVar[str] = "enumeration"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        whole, log_mass = self._weights(problem)
        return Tables([whole.marginal(targets)], log_mass)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        whole, log_mass = self._weights(problem)
        return Tables([whole.marginal(t) for t in targets], log_mass)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings."""
        return LogMass(self._weights(problem)[1])

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out."""
        names, logs = self._log_table(problem)
        kept = [n for n in names if n in targets]
        others = tuple(i for i, n in enumerate(names) if n not in targets)
        summed = Logarithmic().sum_onto(logs, others).transpose([kept.index(t) for t in targets])
        flat = summed.ravel()
        ranked = np.argsort(-flat, kind="stable")[:m]
        found = [
            Assignment(
                {n: int(c) for n, c in zip(targets, np.unravel_index(int(i), summed.shape), strict=True)},
                float(flat[i]),
            )
            for i in ranked
            if np.isfinite(flat[i])
        ]
        return Ranked(found)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""
        whole, _ = self._weights(problem)
        drawn = draw_rows(whole.values.ravel(), n, rng)
        axes = np.unravel_index(drawn, whole.shape) if whole.variables else ()
        return Draws(
            {v.name: np.asarray(a, dtype=np.int64) for v, a in zip(whole.variables, axes, strict=True)}
        )

    def _weights(self, problem: Problem) -> tuple[Factor, float]:
        """Return the normalised joint over the free variables (zeros if impossible) and the log of its mass."""
        names, logs = self._log_table(problem)
        values, log_mass = Logarithmic().plain(logs)
        return Factor.of(tuple(problem.variables[n] for n in names), np.asarray(values)), log_mass

    def _log_table(self, problem: Problem) -> tuple[list[str], Array]:
        """Return the log weights of all configurations of the free variables."""
        free = problem.free
        cards = [len(problem.variables[n]) for n in free]
        if prod(cards) > self.max_entries or len(free) > 64:
            raise TooLarge(
                f"the joint table has {prod(cards):,} entries, over the limit of {self.max_entries:,}; "
                "engine='variable-elimination' does not need it"
            )
        place = {n: i for i, n in enumerate(free)}
        arithmetic = Logarithmic()
        tables = [(tuple(place[n] for n in f.names), arithmetic.of(f.values)) for f in problem.reduced(None)]
        logs, top = arithmetic.multiply(tables, range(len(free)), cards)
        return free, logs + top if np.isfinite(top) else logs
