"""What findings leave of a model's tables, ready to be written into a tree that was compiled for what they leave."""

from math import log, log2
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from markovia.factors.tables.evidence import Finding, Findings
from markovia.inference.problem import Piece, cut_piece
from markovia.kernels.clique_trees.program_sections import AXIS_SOURCE, AXIS_START, FACTOR_AT, FACTOR_HOME
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from markovia.inference.exact.tree_plan import TreePlan

MOST_TABLES, MOST_ENTRIES = 128, 1 << 12
"""How many tables are kept for states that are found again, and how many entries they have at most."""


class CutFactor(NamedTuple):
    """A factor of a tree, by number, that findings change: the piece or finding it comes from, and who is found in it."""

    factor: int
    source: Piece | Finding
    names: tuple[str, ...]


class CutTable(NamedTuple):
    """A factor as findings leave it.

    `values` begin at `at` among the values of a state and belong to the clique `home`. Their maximum is one; `low` is log2
    of the least positive one, and `log_scale` the log of what they were divided by.
    """

    at: int
    home: int
    values: Array
    low: float
    log_scale: float


class CutTables:
    """The factors that findings change in a tree; those of states that are found again are not cut out again."""

    def __init__(self, plan: "TreePlan") -> None:
        self._plan = plan
        self._known: dict[tuple[Any, ...], CutTable] = {}

    def table(self, cut: CutFactor, findings: Findings) -> CutTable:
        """Return a factor under findings about the same variables that the tree was compiled for."""
        key = (cut.factor, *[findings[n].code for n in cut.names])
        known = self._known.get(key)
        if known is not None:
            return known
        table = self._cut(cut, findings)
        if None not in key and len(table.values) <= MOST_ENTRIES:  # None: a likelihood, another one each time
            if len(self._known) >= MOST_TABLES:
                self._known = {}
            self._known[key] = table
        return table

    def _cut(self, cut: CutFactor, findings: Findings) -> CutTable:
        section, i = self._plan.section, cut.factor
        if isinstance(cut.source, Finding):
            (name,) = cut.names
            table = findings[name].weights()
        else:
            codes = {n: code for n in cut.names if (code := findings[n].code) is not None}
            axes = section(AXIS_SOURCE)[slice(*section(AXIS_START)[i : i + 2])]
            table = cut_piece(cut.source, codes).values.transpose(axes)
        place = int(section(FACTOR_AT)[i]), int(section(FACTOR_HOME)[i])
        top = float(table.max())
        if top == 0.0:
            return CutTable(*place, table.ravel(), 0.0, -np.inf)
        low = log2(float(table[table > 0.0].min())) - log2(top)
        return CutTable(*place, table.ravel() / top, low, log(top) if low >= -960.0 else np.nan)
