"""How a directed network learns its distributions: reads the data, counts or runs EM, and takes the result over at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.in_memory import cheap_columns
from markovia.data.row_sources import RowSource, read_data
from markovia.errors import IncompleteModel, InvalidArgument, UnknownVariable
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.learning.incomplete.em import as_em, fit_by_em
from markovia.learning.tables.fit_record import Fit
from markovia.learning.tables.priors import as_prior
from markovia.learning.tables.row_counts import (
    Counts,
    RowCounts,
    family_counts,
    family_log_likelihood,
    pooled,
    scaled,
)
from markovia.learning.tables.table_learner import Family, TableLearner, tied_names
from markovia.models.graphical.posterior_network import NetworkPosterior
from markovia.runtime.clock import now

if TYPE_CHECKING:
    from markovia.models.graphical.fit_verbs import LearnableNetwork


@dataclass
class Learned:
    """What a fit by counting leaves behind, good for as long as the network's tables are those it made."""

    learner: TableLearner
    counts: list[Counts]
    tables: list[Conditional]
    posterior: NetworkPosterior | None = None


def fit(
    network: "LearnableNetwork",
    data: Any,
    prior: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    fixed: str | Iterable[str],
    tied: Sequence[Sequence[str]],
    missing: Any,
    latent: str | Iterable[str] | Mapping[str, int | Sequence[State]],
) -> None:
    """Learn every node's distribution; see `BayesianNetwork.fit`."""
    start = now()
    settings = as_em(missing)
    hidden = hidden_variables(network, latent)
    for name in hidden:
        if name in cheap_columns(data):
            raise InvalidArgument(
                f"{name!r} is said to be latent, but the data have a column of that name; leave it out of latent=, or "
                "leave the column out of the data"
            )
    source = read_rows(network, data, weights, states, hidden)
    families = families_of(network, {**source.variables, **hidden}, fixed, tied)
    gaps = sum(source.missing().values())
    if hidden and settings is None:
        raise InvalidArgument(f"hidden variables are learned by EM; missing={missing!r} does not do it")
    if settings is not None and (gaps or hidden):
        learner = TableLearner(families, as_prior(prior))
        tables, expected, record = fit_by_em(learner, source.in_memory(), settings, hidden)
        install(network, families, tables)
        unseen, seconds = unseen_rows(learner, expected), now() - start
        # the source knows about all rows; in memory there may be only the distinct ones
        network.fit_ = replace(
            record, n_rows=source.n_rows, missing_cells=gaps, unseen_rows=unseen, seconds=seconds
        )
        return
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
    learn(network, learner, counts, source.n_rows, source.total, gaps, start)


def partial_fit(
    network: "LearnableNetwork",
    data: Any,
    prior: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    fixed: str | Iterable[str] | None,
    tied: Sequence[Sequence[str]] | None,
    forget: float,
) -> None:
    """Learn from more rows; see `BayesianNetwork.partial_fit`."""
    start = now()
    if not isinstance(forget, int | float | np.number) or not 0.0 <= float(forget) <= 1.0:
        raise InvalidArgument(f"forget= is a number from 0 to 1, not {forget!r}")
    past = current(network)
    if past is None and network.fit_ is not None:
        raise InvalidArgument(
            "the network has no counts to add to: its tables were changed since the last fit, or fitted otherwise; "
            "use fit(), with prior=mk.priors.Dirichlet.from_network(bn, n) to build on the present tables"
        )
    source = read_rows(network, data, weights, states, hint=False)
    gaps = sum(source.missing().values())
    if gaps:
        raise InvalidArgument(f"{gaps:,} cells are missing; partial_fit needs complete rows")
    before = past.learner.families if past else ()
    families = families_of(
        network,
        source.variables,
        [f.variable.name for f in before if f.fixed] if fixed is None else fixed,
        _listed_groups(before) if tied is None else tied,
    )
    known = past.learner.prior if past else None
    same = isinstance(prior, str) and prior == "same"
    learner = TableLearner(families, known if same else as_prior(prior))
    counts = family_counts(source, families)
    n_rows, total = source.n_rows, source.total
    if past is not None and network.fit_ is not None:
        counts = [pooled([scaled(a, forget), b]) for a, b in zip(past.counts, counts, strict=True)]
        n_rows, total = n_rows + network.fit_.n_rows, total + forget * network.fit_.total
    learn(network, learner, counts, n_rows, total, 0, start)


def posterior(network: "LearnableNetwork") -> NetworkPosterior | None:
    """Return the distribution of the tables after a fit with a prior, None if there is none."""
    learned = current(network)
    if learned is None or learned.learner.prior is None:
        return None
    if learned.posterior is None:
        twin = network.copy()
        twin._learned = None
        learned.posterior = NetworkPosterior(learned.learner, learned.counts, learned.tables, twin)
    return learned.posterior


def hidden_variables(
    network: "LearnableNetwork", latent: str | Iterable[str] | Mapping[str, int | Sequence[State]]
) -> dict[str, Variable]:
    """Return the variables that are never observed, with their states."""
    found = {}
    assumed = without_states(network)
    for name in _names(latent, "latent"):
        known = network.variable(name)
        if isinstance(latent, Mapping):
            said = Variable(name, latent[name])
            if name not in assumed and said.states != known.states:
                raise InvalidArgument(f"the states of {name!r} are already known: {network.states(name)}")
            known = said
        elif name in assumed:
            raise InvalidArgument(
                f"nobody stated the states of {name!r}; say how many: latent={{{name!r}: 2}}"
            )
        found[name] = known
    return found


def read_rows(
    network: "LearnableNetwork",
    data: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    hidden: Mapping[str, Variable] = MappingProxyType({}),
    *,
    hint: bool = True,
) -> RowSource:
    """Open the data for this network's variables, hidden ones left out; `hint` tells of `latent=` if one has no column."""
    assumed = without_states(network)
    if states is not None and not isinstance(states, Mapping):
        raise InvalidArgument(f"states= is a mapping from names to states, not {states!r}")
    for name in states or {}:
        if name not in assumed:
            network.variable(name)
            raise InvalidArgument(f"the states of {name!r} are already known: {network.states(name)}")
    stated = {n: v for n, v in network._variables.items() if n not in assumed}
    names = [n for n in network._variables if n not in hidden]
    try:
        source = read_data(data, names, variables=stated, states=states, weights=weights)
        lacking = [n for n in names if n not in source.variables]
        if lacking:
            raise UnknownVariable(lacking[0], source.variables, "the data")
    except UnknownVariable as error:
        if hint and error.name in network._variables:
            error.args = (f"{error}; if it is never observed, say latent=[{error.name!r}]",)
        raise
    return source


def _names(given: object, argument: str) -> list[str]:
    """Return a name, or names, as a list."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise InvalidArgument(f"{argument}= is a name or a list of names, not {given!r}")
    return list(given)


def without_states(network: "LearnableNetwork") -> set[str]:
    """Return the variables whose states nobody stated, neither by name nor by a table."""
    used = {q for n, t in network._tables.items() if t is not None for q in (n, *network._parents[n])}
    return network._assumed - used


def families_of(
    network: "LearnableNetwork",
    variables: Mapping[str, Variable],
    fixed: str | Iterable[str],
    tied: Sequence[Sequence[str]] = (),
) -> list[Family]:
    """Return every node with its parents and what holds it: fixed tables, groups that share parameters."""
    held = set(_names(fixed, "fixed"))
    for name in held:
        if name not in network._variables:
            raise UnknownVariable(name, network._variables)
        if network._tables[name] is None:
            raise IncompleteModel(f"{name!r} cannot stay fixed: it has no table yet")
    lead = tied_names(tied, network._variables)
    return [
        Family(
            variables[n],
            tuple(variables[q] for q in network._parents[n]),
            network._tables[n],
            n in held,
            lead.get(n),
        )
        for n in network._variables
    ]


def learn(
    network: "LearnableNetwork",
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
    install(network, learner.families, tables)
    network._learned = Learned(learner, counts, tables)
    network.fit_ = Fit(
        "counting",
        n_rows,
        total,
        sum(by_family.values()),
        by_family,
        learner.n_parameters(tables),
        missing_cells,
        unseen_rows(learner, counts),
        seconds=now() - start,
        details={"prior": learner.prior, "tied": _listed_groups(learner.families)},
    )


def install(network: "LearnableNetwork", families: Sequence[Family], tables: Sequence[Conditional]) -> None:
    """Take over learned distributions, all at once."""
    network._variables = {f.variable.name: f.variable for f in families}
    network._tables = {f.variable.name: t for f, t in zip(families, tables, strict=True)}
    network._assumed = set()


def current(network: "LearnableNetwork") -> Learned | None:
    """Return what the last fit left behind, unless some table is no longer the one it made."""
    learned = network._learned
    if learned is None or len(learned.tables) != len(network._tables):
        return None
    same = all(network._tables.get(t.variable.name) is t for t in learned.tables)
    return learned if same else None


def _listed_groups(families: Sequence[Family]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for f in families:
        if f.tied is not None:
            groups.setdefault(f.tied, []).append(f.variable.name)
    return list(groups.values())


def unseen_rows(
    learner: TableLearner, counts: Sequence[Counts], names: Sequence[str] | None = None
) -> dict[str, int]:
    """Return for each table how many parent configurations have no count; those without any, and local models, are left out.

    A tied group has one table, under the name of its first node. `names` are those of the families, where they are not
    those of the variables.
    """
    unseen = {}
    for group in learner.groups:
        family = learner.families[group[0]]
        n = pooled([counts[i] for i in group])
        if isinstance(n, RowCounts) or family.local:
            continue
        lacking = prod(n.shape[:-1]) - int(np.count_nonzero(n.any(axis=-1)))
        if lacking:
            unseen[names[group[0]] if names else family.variable.name] = lacking
    return unseen
