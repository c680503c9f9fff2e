"""Learning the distributions of a directed network from data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument, UnknownVariable
from markovia.factors.conditional import Conditional
from markovia.factors.variable import State, Variable
from markovia.learning.data import RowSource, read_data
from markovia.learning.em import as_em, fit_by_em
from markovia.learning.fit_record import Fit
from markovia.learning.parameters import Family, TableLearner, tied_names
from markovia.learning.priors import as_prior
from markovia.learning.row_counts import (
    Counts,
    RowCounts,
    family_counts,
    family_log_likelihood,
    pooled,
    scaled,
)
from markovia.models.editing import EditableNetwork
from markovia.models.keywords import guided
from markovia.models.posterior_network import NetworkPosterior


@dataclass
class Learned:
    """What a fit by counting leaves behind, good for as long as the network's tables are those it made."""

    learner: TableLearner
    counts: list[Counts]
    tables: list[Conditional]
    posterior: NetworkPosterior | None = None


class LearnableNetwork(EditableNetwork):
    """A directed network that fits its tables to data; see `BayesianNetwork`."""

    fit_: Fit | None = None
    """What the last fit did; None before the first."""
    _learned: Learned | None = None

    @guided
    def fit(
        self,
        data: Any,
        *,
        prior: Any = None,
        weights: Any = None,
        states: Mapping[str, int | Sequence[State]] | None = None,
        fixed: str | Iterable[str] = (),
        tied: Sequence[Sequence[str]] = (),
        missing: Any = "em",
        latent: str | Iterable[str] | Mapping[str, int | Sequence[State]] = (),
    ) -> Self:
        """Learn every node's distribution from data, and return the network itself.

        A node that is a local model keeps its form: logistic and softmax nodes are fitted by Newton's method, noisy-or and
        its relatives by expectation-maximisation over their hidden effects, and gates stay as they are. To fit a full
        table instead, give the node one first (`bn.replace(name, p="uniform")`).

        Parameters
        ----------
        data
            Rows of any form that `markovia.counts` takes: frames, mappings, matrices, relations, paths to files. Columns are
            found by name, others are not looked at.
        prior
            None for maximum likelihood; "bdeu", "k2", "laplace", "dirichlet", a number of pseudo-counts a cell, or an
            object such as `mk.priors.BDeu(10)` for posterior means. The full posterior is then in `posterior_`.
        weights
            The name of a column, or one number a row.
        states
            States of variables whose states were never stated (`BayesianNetwork("a->b")`); by default they are read
            off the data.
        fixed
            Nodes that keep the distribution they have.
        tied
            Lists of nodes that share one table, such as the transitions of a Markov chain. Their tables have the same
            shape, with parents matched by position. Their counts are pooled; a prior counts once for each list.
        missing
            What to do with rows that miss a cell: "em" (expectation-maximisation: every cell is used), settings such as
            `mk.EM(restarts=5)`, "drop" (they are not used at all) or "error".
        latent
            Variables that have no column and are never observed: names, or a mapping from name to states where the
            network does not know them.

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
        >>> chain = mk.BayesianNetwork("x1->x2->x3", states={n: 2 for n in ("x1", "x2", "x3")})
        >>> chain.fit({"x1": [0, 0], "x2": [1, 0], "x3": [1, 0]}, tied=[["x2", "x3"]])["x3"].values.round(3).tolist()
        [[0.667, 0.333], [0.0, 1.0]]
        """
        start = perf_counter()
        settings = as_em(missing)
        hidden = self._hidden(latent)
        source = self._read(data, weights, states, hidden)
        families = self._families({**source.variables, **hidden}, fixed, tied)
        gaps = sum(source.missing().values())
        if hidden and settings is None:
            raise InvalidArgument(f"hidden variables are learned by EM; missing={missing!r} does not do it")
        if settings is not None and (gaps or hidden):
            learner = TableLearner(families, as_prior(prior))
            tables, expected, record = fit_by_em(learner, source.in_memory(), settings, hidden)
            self._install(families, tables)
            unseen, seconds = _unseen(learner, expected), perf_counter() - start
            self.fit_ = replace(record, unseen_rows=unseen, seconds=seconds)
            return self
        if gaps and missing == "error":
            worst = max(source.missing().items(), key=lambda item: item[1])
            raise InvalidArgument(
                f"{gaps:,} cells are missing ({worst[1]:,} of them in {worst[0]!r}); "
                "missing='em' uses every cell, 'drop' leaves such rows out"
            )
        if gaps:
            source = source.without_gaps()
        learner = TableLearner(families, as_prior(prior))
        counts = family_counts(source, families)
        self._learn(learner, counts, source.n_rows, source.total, gaps, start)
        return self

    @guided
    def partial_fit(
        self,
        data: Any,
        *,
        prior: Any = "same",
        weights: Any = None,
        states: Mapping[str, int | Sequence[State]] | None = None,
        fixed: str | Iterable[str] | None = None,
        tied: Sequence[Sequence[str]] | None = None,
        forget: float = 1.0,
    ) -> Self:
        """Learn from more rows; in pieces is the same as all at once.

        The counts of earlier calls (of `fit` or `partial_fit`) are kept, the new rows are added, and every table is
        estimated again. `fit_` is about all rows so far.

        Parameters
        ----------
        data, weights, states
            As in `fit`. Later pieces must have the states of the first; others are an error.
        prior, fixed, tied
            As in `fit`; by default those of the call before.
        forget
            What the earlier counts are multiplied by first: 1 to keep them, less to follow a process that changes (the
            counts then weigh at most `1 / (1 - forget)` pieces). Pseudo-counts are not forgotten.

        Raises
        ------
        InvalidArgument
            If cells are missing, or if the tables were changed since the last fit, so that its counts no longer
            describe them.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin", states={"coin": ["h", "t"]})
        >>> bn.partial_fit({"coin": ["h", "h"]}).partial_fit({"coin": ["t", "h"]})["coin"].values.tolist()
        [0.75, 0.25]
        >>> bn.fit_.n_rows
        4
        """
        start = perf_counter()
        if not isinstance(forget, int | float | np.number) or not 0.0 <= float(forget) <= 1.0:
            raise InvalidArgument(f"forget= is a number from 0 to 1, not {forget!r}")
        past = self._current()
        if past is None and self.fit_ is not None:
            raise InvalidArgument(
                "the network has no counts to add to: its tables were changed since the last fit, or fitted otherwise; "
                "use fit(), with prior=mk.priors.Dirichlet.from_network(bn, n) to build on the present tables"
            )
        source = self._read(data, weights, states)
        gaps = sum(source.missing().values())
        if gaps:
            raise InvalidArgument(f"{gaps:,} cells are missing; partial_fit needs complete rows")
        before = past.learner.families if past else ()
        families = self._families(
            source.variables,
            [f.variable.name for f in before if f.fixed] if fixed is None else fixed,
            _listed_groups(before) if tied is None else tied,
        )
        known = past.learner.prior if past else None
        same = isinstance(prior, str) and prior == "same"
        learner = TableLearner(families, known if same else as_prior(prior))
        counts = family_counts(source, families)
        n_rows, total = source.n_rows, source.total
        if past is not None and self.fit_ is not None:
            counts = [pooled([scaled(a, forget), b]) for a, b in zip(past.counts, counts, strict=True)]
            n_rows, total = n_rows + self.fit_.n_rows, total + forget * self.fit_.total
        self._learn(learner, counts, n_rows, total, 0, start)
        return self

    @property
    def posterior_(self) -> NetworkPosterior | None:
        """The distribution of the tables after a fit with a prior on complete data; None otherwise.

        It has the Dirichlet parameters, credible intervals, the probability of the data with the tables integrated out,
        drawn networks, and queries that average over them. Editing the network drops it; a copy keeps it.
        """
        learned = self._current()
        if learned is None or learned.learner.prior is None:
            return None
        if learned.posterior is None:
            twin = self.copy()
            twin._learned = None
            learned.posterior = NetworkPosterior(learned.learner, learned.counts, learned.tables, twin)
        return learned.posterior

    # -- inside ---------------------------------------------------------------------------------------------------

    def _hidden(
        self, latent: str | Iterable[str] | Mapping[str, int | Sequence[State]]
    ) -> dict[str, Variable]:
        """Return the variables that are never observed, with their states."""
        found = {}
        assumed = self._without_states()
        for name in [latent] if isinstance(latent, str) else latent:
            known = self.variable(name)
            if isinstance(latent, Mapping):
                said = Variable(name, latent[name])
                if name not in assumed and said.states != known.states:
                    raise InvalidArgument(f"the states of {name!r} are already known: {self.states(name)}")
                known = said
            elif name in assumed:
                raise InvalidArgument(
                    f"nobody stated the states of {name!r}; say how many: latent={{{name!r}: 2}}"
                )
            found[name] = known
        return found

    def _read(
        self,
        data: Any,
        weights: Any,
        states: Mapping[str, int | Sequence[State]] | None,
        hidden: Mapping[str, Variable] = MappingProxyType({}),
    ) -> RowSource:
        """Open the data for this network's variables, hidden ones left out."""
        assumed = self._without_states()
        for name in states or {}:
            if name not in assumed:
                self.variable(name)
                raise InvalidArgument(f"the states of {name!r} are already known: {self.states(name)}")
        stated = {n: v for n, v in self._variables.items() if n not in assumed}
        names = [n for n in self._variables if n not in hidden]
        try:
            source = read_data(data, names, variables=stated, states=states, weights=weights)
            lacking = [n for n in names if n not in source.variables]
            if lacking:
                raise UnknownVariable(lacking[0], source.variables, "the data")
        except UnknownVariable as error:
            if error.name in self._variables:
                error.args = (f"{error}; if it is never observed, say latent=[{error.name!r}]",)
            raise
        return source

    def _without_states(self) -> set[str]:
        """Return the variables whose states nobody stated, neither by name nor by a table."""
        used = {q for n, t in self._tables.items() if t is not None for q in (n, *self._parents[n])}
        return self._assumed - used

    def _families(
        self,
        variables: Mapping[str, Variable],
        fixed: str | Iterable[str],
        tied: Sequence[Sequence[str]] = (),
    ) -> list[Family]:
        held = {fixed} if isinstance(fixed, str) else set(fixed)
        for name in held:
            if name not in self._variables:
                raise UnknownVariable(name, self._variables)
            if self._tables[name] is None:
                raise IncompleteModel(f"{name!r} cannot stay fixed: it has no table yet")
        lead = tied_names(tied, self._variables)
        return [
            Family(
                variables[n],
                tuple(variables[q] for q in self._parents[n]),
                self._tables[n],
                n in held,
                lead.get(n),
            )
            for n in self._variables
        ]

    def _learn(
        self,
        learner: TableLearner,
        counts: list[Counts],
        n_rows: int,
        total: float,
        missing_cells: int,
        start: float,
    ) -> None:
        """Estimate all distributions from counts and take them over with their record."""
        tables = learner.estimate(counts)
        by_family = {
            f.variable.name: family_log_likelihood(n, t)
            for f, n, t in zip(learner.families, counts, tables, strict=True)
        }
        self._install(learner.families, tables)
        self._learned = Learned(learner, counts, tables)
        self.fit_ = Fit(
            "counting",
            n_rows,
            total,
            sum(by_family.values()),
            by_family,
            learner.n_parameters(tables),
            missing_cells,
            _unseen(learner, counts),
            seconds=perf_counter() - start,
            details={"prior": learner.prior, "tied": _listed_groups(learner.families)},
        )

    def _install(self, families: Sequence[Family], tables: Sequence[Conditional]) -> None:
        """Take over learned distributions, all at once."""
        self._variables = {f.variable.name: f.variable for f in families}
        self._tables = {f.variable.name: t for f, t in zip(families, tables, strict=True)}
        self._assumed = set()

    def _current(self) -> Learned | None:
        """Return what the last fit left behind, unless some table is no longer the one it made."""
        learned = self._learned
        if learned is None or len(learned.tables) != len(self._tables):
            return None
        same = all(self._tables.get(t.variable.name) is t for t in learned.tables)
        return learned if same else None


def _listed_groups(families: Sequence[Family]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for f in families:
        if f.tied is not None:
            groups.setdefault(f.tied, []).append(f.variable.name)
    return list(groups.values())


def _unseen(learner: TableLearner, counts: Sequence[Counts]) -> dict[str, int]:
    """Return for each table how many parent configurations have no count; those without any, and local models, are left out.

    A tied group has one table, under the name of its first node.
    """
    unseen = {}
    for group in learner.groups:
        family = learner.families[group[0]]
        n = pooled([counts[i] for i in group])
        if isinstance(n, RowCounts) or family.local:
            continue
        lacking = prod(n.shape[:-1]) - int(np.count_nonzero(n.any(axis=-1)))
        if lacking:
            unseen[family.variable.name] = lacking
    return unseen
