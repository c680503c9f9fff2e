"""How a directed network learns its distributions: reads the data, counts or runs EM, and takes the result over at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from markovia.data.tables.in_memory import cheap_columns
from markovia.data.tables.reading import read_data
from markovia.data.tables.row_sources import RowSource
from markovia.errors import IncompleteModel, InvalidArgument, UnknownVariable
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.learning.gaussian.network_fit import NetworkStructure, fit_numbers, has_numbers
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
from markovia.learning.tables.table_learner import NodeFamily, TableLearner, tied_names
from markovia.models.graphical.directed_model import DirectedModel
from markovia.models.graphical.posterior_network import NetworkPosterior
from markovia.runtime.checks import Kind, NumberRange, check
from markovia.runtime.clock import now


@dataclass
class Learned:
    """What a fit by counting leaves behind, good for as long as the network's tables are those it made."""

    learner: TableLearner
    counts: list[Counts]
    tables: list[Conditional]
    posterior: NetworkPosterior | None = None


@dataclass
class NumbersLearned:
    """What a fit of numbers under a prior leaves behind."""

    regressions: dict[str, Any]
    alphas: dict[str, Any]
    tables: list[Conditional]


class FittedModel(NamedTuple):
    """What a network takes over from a fit."""

    variables: dict[str, Variable]
    tables: dict[str, Conditional]
    record: Fit
    learned: Learned | NumbersLearned | None = None


def fit(
    network: DirectedModel,
    data: Any,
    prior: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    fixed: str | Iterable[str],
    tied: Sequence[Sequence[str]],
    missing: Any,
    latent: str | Iterable[str] | Mapping[str, int | Sequence[State]],
) -> FittedModel:
    """Learn every node's distribution; see `BayesianNetwork.fit`."""
    start = now()
    structure = structure_of(network)
    if has_numbers(structure, data, states):
        return _fit_numbers(network, structure, data, prior, weights, states, fixed, tied, missing, latent)
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
        unseen, seconds = unseen_rows(learner, expected), now() - start
        # the source knows about all rows; in memory there may be only the distinct ones
        record = replace(
            record, n_rows=source.n_rows, missing_cells=gaps, unseen_rows=unseen, seconds=seconds
        )
        return _fitted(families, tables, record)
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
    return _estimated(learner, counts, source.n_rows, source.total, gaps, start)


def structure_of(network: DirectedModel) -> NetworkStructure:
    """Return what a fit of numbers has to know of a network."""
    names = network.variables
    return NetworkStructure(
        {n: network.variable(n) for n in names},
        {n: network.parents(n) for n in names},
        {n: network[n] if network.has_table(n) else None for n in names},
        frozenset(network.unstated()),
    )


def _fit_numbers(
    network: DirectedModel,
    structure: NetworkStructure,
    data: Any,
    prior: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    fixed: str | Iterable[str],
    tied: Sequence[Sequence[str]],
    missing: Any,
    latent: str | Iterable[str] | Mapping[str, int | Sequence[State]],
) -> FittedModel:
    """Learn a network of tables and linear Gaussians."""
    if tied:
        raise InvalidArgument("tied= is for networks of tables; nodes that are numbers are fitted one by one")
    hidden = {}
    for name in _names(latent, "latent"):
        known = isinstance(network.variable(name), Quantity)
        hidden[name] = (
            network.variable(name) if known else hidden_variables(network, _only(latent, name))[name]
        )
    held = _names(fixed, "fixed")
    for name in held:
        if not network.has_table(name):
            raise IncompleteModel(f"{name!r} cannot stay fixed: it has no distribution yet")
    found = fit_numbers(structure, data, prior, weights, states, held, missing, hidden)
    learned = None
    if prior is not None and found.record.method != "em":
        learned = NumbersLearned(found.posteriors, found.alphas, list(found.tables.values()))
    return FittedModel(found.variables, found.tables, found.record, learned)


def _only(latent: Any, name: str) -> Any:
    return {name: latent[name]} if isinstance(latent, Mapping) else name


def partial_fit(
    network: DirectedModel,
    past: Learned | None,
    data: Any,
    prior: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    fixed: str | Iterable[str] | None,
    tied: Sequence[Sequence[str]] | None,
    forget: float,
) -> FittedModel:
    """Learn from more rows; see `BayesianNetwork.partial_fit`."""
    start = now()
    check("forget", forget, NumberRange(0.0, 1.0, said="a number from 0 to 1"))
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
    return _estimated(learner, counts, n_rows, total, 0, start)


def hidden_variables(
    network: DirectedModel, latent: str | Iterable[str] | Mapping[str, int | Sequence[State]]
) -> dict[str, Variable]:
    """Return the variables that are never observed, with their states."""
    found = {}
    assumed = network.unstated()
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
    network: DirectedModel,
    data: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    hidden: Mapping[str, Variable] = MappingProxyType({}),
    *,
    hint: bool = True,
) -> RowSource:
    """Open the data for this network's variables, hidden ones left out; `hint` tells of `latent=` if one has no column."""
    if not network.variables:
        raise IncompleteModel(
            "there is no graph to fit: give one, such as BayesianNetwork('rain->wet'), or learn it with "
            "mk.learn_structure(data).fit()"
        )
    assumed = network.unstated()
    check("states", states, Kind((Mapping,), "a mapping from names to states", none=True))
    for name in states or {}:
        if name not in assumed:
            network.variable(name)
            raise InvalidArgument(f"the states of {name!r} are already known: {network.states(name)}")
    stated = {n: network.variable(n) for n in network.variables if n not in assumed}
    names = [n for n in network.variables if n not in hidden]
    try:
        # what is hidden calls for the rows themselves
        scopes = None if hidden else [(*network.parents(n), n) for n in names]
        source = read_data(data, names, variables=stated, states=states, weights=weights, scopes=scopes)
        lacking = [n for n in names if n not in source.variables]
        if lacking:
            raise UnknownVariable(lacking[0], source.variables, "the data")
    except UnknownVariable as error:
        if hint and error.name in network:
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


def families_of(
    network: DirectedModel,
    variables: Mapping[str, Variable],
    fixed: str | Iterable[str],
    tied: Sequence[Sequence[str]] = (),
) -> list[NodeFamily]:
    """Return every node with its parents and what holds it: fixed tables, groups that share parameters."""
    held = set(_names(fixed, "fixed"))
    for name in held:
        if not network.has_table(name):
            raise IncompleteModel(f"{name!r} cannot stay fixed: it has no table yet")
    lead = tied_names(tied, dict.fromkeys(network.variables))
    return [
        NodeFamily(
            variables[n],
            tuple(variables[q] for q in network.parents(n)),
            network[n] if network.has_table(n) else None,
            n in held,
            lead.get(n),
        )
        for n in network.variables
    ]


def _estimated(
    learner: TableLearner, counts: list[Counts], n_rows: int, total: float, missing_cells: int, start: float
) -> FittedModel:
    """Estimate all distributions from counts."""
    tables = learner.estimate(counts)
    by_family = {
        f.variable.name: family_log_likelihood(n, t)
        for f, n, t in zip(learner.families, counts, tables, strict=True)
    }
    record = Fit(
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
    return _fitted(learner.families, tables, record, Learned(learner, counts, tables))


def _fitted(
    families: Sequence[NodeFamily], tables: Sequence[Conditional], record: Fit, learned: Learned | None = None
) -> FittedModel:
    names = [f.variable.name for f in families]
    variables = {f.variable.name: f.variable for f in families}
    return FittedModel(variables, dict(zip(names, tables, strict=True)), record, learned)


def _listed_groups(families: Sequence[NodeFamily]) -> list[list[str]]:
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
