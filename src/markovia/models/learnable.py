"""Learning the distributions of a directed network from data."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from time import perf_counter
from typing import Any, Self

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument, UnknownVariable
from markovia.factors.conditional import Conditional
from markovia.factors.factor import Array
from markovia.factors.variable import State, Variable
from markovia.learning.data import RowSource, read_data
from markovia.learning.fit_record import Fit
from markovia.learning.parameters import Family, TableLearner, weighted_log
from markovia.learning.priors import as_prior
from markovia.models.editing import EditableNetwork
from markovia.models.keywords import guided


class LearnableNetwork(EditableNetwork):
    """A directed network that fits its tables to data; see `BayesianNetwork`."""

    fit_: Fit | None = None
    """What the last fit did; None before the first."""

    @guided
    def fit(
        self,
        data: Any,
        *,
        prior: Any = None,
        weights: Any = None,
        states: Mapping[str, int | Sequence[State]] | None = None,
        fixed: str | Iterable[str] = (),
        missing: str = "error",
    ) -> Self:
        """Learn every node's distribution from data, and return the network itself.

        Parameters
        ----------
        data
            A DataFrame, a mapping of columns or a list of mappings; columns are found by name, others are not looked at.
        prior
            None for maximum likelihood; "bdeu", "k2", "laplace", "dirichlet", a number of pseudo-counts a cell, or an
            object such as `mk.priors.BDeu(10)` for posterior means.
        weights
            The name of a column, or one number a row.
        states
            States of variables whose states were never stated (`BayesianNetwork("a->b")`); by default they are read
            off the data.
        fixed
            Nodes that keep the distribution they have.
        missing
            What to do with rows that miss a cell: "error", or "drop" (they are not used at all).

        Returns
        -------
        the network
            With `fit_`, a record of what was done. A failed fit leaves the network as it was.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("rain->wet")
        >>> rows = {"rain": ["no", "no", "no", "yes"], "wet": ["no", "no", "yes", "yes"]}
        >>> bn.fit(rows)["wet"].values.round(3).tolist()
        [[0.667, 0.333], [0.0, 1.0]]
        >>> bn.fit(rows, prior="laplace")["wet"].values.round(3).tolist()
        [[0.6, 0.4], [0.333, 0.667]]
        >>> round(bn.fit_.log_likelihood, 4)
        -4.6584
        """
        start = perf_counter()
        if missing not in ("error", "drop"):
            raise InvalidArgument(f"missing= is 'error' or 'drop', not {missing!r}")
        source = self._read(data, weights, states)
        families = self._families(source.variables, fixed)
        gaps = sum(source.missing().values())
        if gaps and missing == "error":
            worst = max(source.missing().items(), key=lambda item: item[1])
            raise InvalidArgument(
                f"{gaps:,} cells are missing ({worst[1]:,} of them in {worst[0]!r}); missing='drop' leaves such rows out"
            )
        if gaps:
            source = source.in_memory().without_gaps()
        learner = TableLearner(families, as_prior(prior))
        counts = source.counts([f.scope for f in families])
        tables = learner.estimate(counts)
        by_family = {
            f.variable.name: weighted_log(n, t.values)
            for f, n, t in zip(families, counts, tables, strict=True)
        }
        self._install(families, tables)
        self.fit_ = Fit(
            "counting",
            source.n_rows,
            source.total,
            sum(by_family.values()),
            by_family,
            sum(t.n_parameters for t, f in zip(tables, families, strict=True) if not f.fixed),
            gaps,
            _unseen(families, counts),
            seconds=perf_counter() - start,
        )
        return self

    # -- inside ---------------------------------------------------------------------------------------------------

    def _read(self, data: Any, weights: Any, states: Mapping[str, int | Sequence[State]] | None) -> RowSource:
        """Open the data for this network's variables."""
        assumed = self._without_states()
        for name in states or {}:
            if name not in assumed:
                self.variable(name)
                raise InvalidArgument(f"the states of {name!r} are already known: {self.states(name)}")
        stated = {n: v for n, v in self._variables.items() if n not in assumed}
        return read_data(data, self._variables, variables=stated, states=states, weights=weights)

    def _without_states(self) -> set[str]:
        """Return the variables whose states nobody stated, neither by name nor by a table."""
        used = {q for n, t in self._tables.items() if t is not None for q in (n, *self._parents[n])}
        return self._assumed - used

    def _families(self, variables: Mapping[str, Variable], fixed: str | Iterable[str]) -> list[Family]:
        held = {fixed} if isinstance(fixed, str) else set(fixed)
        for name in held:
            if name not in self._variables:
                raise UnknownVariable(name, self._variables)
            if self._tables[name] is None:
                raise IncompleteModel(f"{name!r} cannot stay fixed: it has no table yet")
        return [
            Family(variables[n], tuple(variables[q] for q in self._parents[n]), self._tables[n], n in held)
            for n in self._variables
        ]

    def _install(self, families: Sequence[Family], tables: Sequence[Conditional]) -> None:
        """Take over learned distributions, all at once."""
        self._variables = {f.variable.name: f.variable for f in families}
        self._tables = {f.variable.name: t for f, t in zip(families, tables, strict=True)}
        self._assumed = set()


def _unseen(families: Sequence[Family], counts: Sequence[Array]) -> dict[str, int]:
    """Return for each node how many parent configurations have no count; nodes without any are left out."""
    unseen = {}
    for family, n in zip(families, counts, strict=True):
        lacking = prod(n.shape[:-1]) - int(np.count_nonzero(n.any(axis=-1)))
        if lacking:
            unseen[family.variable.name] = lacking
    return unseen
