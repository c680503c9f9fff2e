"""Expected counts of families under a network, given rows with missing cells: the E-step of EM.

`ExpectedCounter` is laid out once for a network's graph and data, and asked again for every set of tables.
`expected_counts` is the same in one call.
Reference: Dempster, Laird & Rubin (1977); Lauritzen (1995). Method and cost: `markovia.learning.incomplete.incomplete_rows`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.tables.reading import column_names, read_data
from markovia.data.tables.row_sources import CodedTable
from markovia.errors import ImpossibleEvidence, InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.inference.engine import Engine, get_engine
from markovia.learning.incomplete.incomplete_rows import LARGEST, IncompleteRows, TableLayout
from markovia.learning.tables.table_learner import NodeFamily, weighted_log
from markovia.runtime.array_types import Array

EXACT = ("junction-tree", "variable-elimination", "enumeration", "conditioning")


@dataclass(frozen=True)
class Expectation:
    """What rows say under some tables.

    Attributes
    ----------
    counts
        The expected count of every configuration of each family, axes `(*parents, child)`.
    log_likelihood
        Of the observed cells; with approximate engines an estimate, NaN where the engine has none.
    by_family
        The expected complete log likelihood of each family.
    exact
        Whether every sum was exact.
    unconverged
        Distinct cases whose engine did not converge.
    """

    counts: Sequence[Array]
    log_likelihood: float
    by_family: Mapping[str, float]
    exact: bool = True
    unconverged: int = 0

    @property
    def entropy(self) -> float:
        """The entropy of the missing cells given the others: what the free energy adds to the expected complete one."""
        return self.log_likelihood - sum(self.by_family.values())


class ExpectedCounter:
    """Expected counts for one graph and one table of rows, under any tables.

    Parameters
    ----------
    families
        One a node; the tables are given later, in this order.
    table
        The rows. Variables without a column are missing everywhere.
    engine
        "auto" sums exactly on clique trees and asks loopy belief propagation where a clique would be too large;
        "junction-tree" never approximates; any other engine is asked for every distinct case. Exact sums run on the
        engine's `device`, by default on a GPU where there is one and the processor takes long.
    seed
        For engines that draw.
    """

    def __init__(
        self,
        families: Sequence[NodeFamily],
        table: CodedTable,
        engine: str | Engine = "auto",
        seed: Any = None,
    ) -> None:
        self.families = tuple(families)
        self.engine = get_engine(engine)
        treated = self.engine.name in ("auto", *EXACT)
        self.rows = IncompleteRows(
            TableLayout.of_families(families),
            table,
            LARGEST if treated else 0,
            getattr(self.engine, "device", None),
        )
        self._wide: Any = None
        if len(self.rows.wide):
            from markovia.learning.incomplete.approximate_counts import WideCases

            if self.engine.name == "auto":
                helper = get_engine("loopy-bp")
            elif treated:
                raise self._too_wide()
            else:
                helper = self.engine
            self._wide = WideCases(self.rows, helper, seed)

    @property
    def exact(self) -> bool:
        """Whether every sum is exact."""
        return self._wide is None

    @property
    def observed(self) -> float:
        """How many cells are there, by the weight of their rows."""
        return float((self.rows.weights * (self.rows.codes >= 0).sum(axis=0)).sum())

    def expect(self, tables: Sequence[Conditional]) -> Expectation:
        """Return the expected counts and the log likelihood under these tables.

        Raises
        ------
        ImpossibleEvidence
            If a row has probability zero.
        """
        theta = self.rows.layout.flat(tables)
        counts = self.rows.complete.copy()
        log_mass, bad = self.rows.expect(theta, counts)
        if bad >= 0:
            raise self.impossible(self.rows.rows_of(bad))
        unconverged = 0
        if self._wide is not None:
            more, unconverged = self._wide.expect(tables, counts)
            log_mass += more
        return self._expectation(theta, counts, log_mass, unconverged)

    def complete(self, tables: Sequence[Conditional]) -> Expectation:
        """Return the counts of the most probable completion of every row, and its log likelihood."""
        rows = self.rows
        if self._wide is not None:
            raise InvalidArgument(
                "the most probable completions need exact sums, and the clique trees are too wide"
            )
        theta = rows.layout.flat(tables)
        codes, logs = rows.filled(theta)
        bad = np.flatnonzero(np.isneginf(logs))
        if len(bad):
            raise self.impossible(int(rows.groups.row[bad[0]]))
        counts = rows.count(codes)
        return self._expectation(theta, counts, float(logs @ rows.weights[rows.groups.row]), 0)

    def impossible(self, row: int) -> ImpossibleEvidence:
        """Return the error for a row of probability zero."""
        codes = self.rows.codes[:, row].tolist()
        shown = {
            f.variable.name: f.variable.states[c] for f, c in zip(self.families, codes, strict=True) if c >= 0
        }
        cells = ", ".join(f"{n}={s!r}" for n, s in list(shown.items())[:8]) + (
            ", ..." if len(shown) > 8 else ""
        )
        return ImpossibleEvidence.because(
            f"row {row} has probability zero under the tables: {cells}", shown, row
        )

    def _expectation(self, theta: Array, counts: Array, log_mass: float, unconverged: int) -> Expectation:
        layout = self.rows.layout
        tables, split = layout.split(theta), layout.split(counts)
        by_family = {n: weighted_log(w, t) for n, w, t in zip(layout.names, split, tables, strict=True)}
        seen = weighted_log(self.rows.complete, theta)
        return Expectation(split, seen + log_mass, by_family, self.exact, unconverged)

    def _too_wide(self) -> Exception:
        from markovia.errors import TooLarge

        rows = self.rows
        pattern = rows.groups.pattern[rows.wide[0]]
        size = int(np.diff(rows.groups.member_start)[pattern])
        return TooLarge(
            f"row {int(rows.groups.row[rows.wide[0]])} misses {size} cells that hang together, and summing them out "
            f"needs a clique of over {LARGEST:,} entries; engine='auto' or 'loopy-bp' approximates it"
        )


def expected_counts(
    model: Any, data: Any, *, weights: Any = None, engine: str | Engine = "auto", seed: Any = None
) -> Expectation:
    """Return the expected counts of every family of a network, given rows with missing cells.

    Parameters
    ----------
    model
        A Bayesian network with tables, or its conditional distributions.
    data
        Rows as for `fit`; variables without a column count as never observed.
    weights
        The name of a column, or one number a row.
    engine, seed
        As for `mk.EM`.

    Returns
    -------
    the expectation
        `counts` in the order of the network's variables, `log_likelihood`, `by_family`, `entropy`.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.examples.sprinkler()
    >>> found = mk.learning.expected_counts(bn, {"rain": ["yes", None], "wet": ["yes", "yes"]})
    >>> [round(float(n), 4) for n in found.counts[bn.variables.index("rain")].sum(axis=0)]
    [0.2921, 1.7079]
    """
    tables: Iterable[Any] = model.pieces() if hasattr(model, "pieces") else model
    known = list(tables)
    if not all(isinstance(t, Conditional) for t in known):
        raise InvalidArgument("expected counts are those of a directed network with a table at every node")
    families = [NodeFamily(t.variable, t.parents, t) for t in known]
    variables = {t.variable.name: t.variable for t in known}
    if hasattr(data, "in_memory"):
        table = data.in_memory()
    else:
        held = set(column_names(data))
        names = [n for n in variables if n in held]
        table = read_data(data, names, variables=variables, weights=weights).in_memory()
    return ExpectedCounter(families, table, engine, seed).expect(known)
