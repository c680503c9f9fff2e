"""Twin networks: what was and what would have been in one Bayesian network (Balke and Pearl, 1994).

The second world has its own copy of every variable that the intervention can reach; all others, the root causes among them,
are the same in both worlds. A copy answers with the noise of the original: a function of its parents is simply copied, a
linear Gaussian shares an explicit noise, a noisy-or its inhibitors, and a table is coupled to its copy by a stated
mechanism. Facts are evidence in the first world, targets are asked in the second, and the engines of the library do the
abduction over all noises jointly. Variables that neither facts nor targets need are left out, so the cost is that of a query
in a network of at most twice the size.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from markovia.causal.counterfactuals.couplings import has_inhibitors, is_function, world_table
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable, uniform_table
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.models.graphical.bayesian_network import BayesianNetwork


@dataclass(frozen=True)
class TwinWorlds:
    """Which variables two worlds need.

    Attributes
    ----------
    copied
        Variables with a copy in the second world that the targets need.
    kept
        Variables of the first world that facts or targets need.
    coupled
        Copied variables whose noise the facts tell about: these need the original's noise.
    undetermined
        Those of them whose distribution does not say what function it comes from.
    """

    copied: tuple[str, ...]
    kept: tuple[str, ...]
    coupled: tuple[str, ...]
    undetermined: tuple[str, ...]


@dataclass(frozen=True)
class Twin:
    """Both worlds as one network; `star` is the name in the second world of every variable that has a copy there."""

    network: BayesianNetwork
    star: Mapping[str, str]


def two_worlds(
    model: BayesianNetwork,
    targets: Collection[str],
    facts: Collection[str],
    changed: Mapping[str, Conditional | None],
) -> TwinWorlds:
    """Return which variables both worlds need; `changed` has the new distribution of what is intervened on (None: set)."""
    parents = {n: list(model._parents[n]) for n in model.variables}
    new = {
        n: parents[n] if n not in changed else list(getattr(changed[n], "parent_names", ())) for n in parents
    }
    first, second = model._dag(), DAG.from_parents(new)
    reached = second.descendants(list(changed), include_self=True) if changed else set()
    needed = second.ancestors(list(targets), include_self=True)
    told = first.ancestors(list(facts), include_self=True) if facts else set()
    copied = [n for n in model.variables if n in needed and n in reached]
    coupled = [n for n in copied if n not in changed and n in told and not _is_function(model[n])]
    return TwinWorlds(
        tuple(copied),
        tuple(n for n in model.variables if n in told or (n in needed and n not in reached)),
        tuple(coupled),
        tuple(
            n
            for n in coupled
            if not isinstance(model[n], GaussianConditional) and not has_inhibitors(model[n])
        ),
    )


def twin_network(
    model: BayesianNetwork,
    worlds: TwinWorlds,
    changed: Mapping[str, Conditional | None],
    mechanisms: Mapping[str, str],
    responses: Mapping[str, tuple[Variable, Conditional, Conditional]] | None = None,
) -> Twin:
    """Build the network of both worlds.

    Parameters
    ----------
    model, worlds, changed
        As in `two_worlds`; a variable that is set (None) becomes a root, to be given its value as evidence.
    mechanisms
        How undetermined variables are coupled, by name.
    responses
        For undetermined variables that get an explicit response variable instead: it, and the node's conditional and
        its copy's, both with that variable as their last parent (the copy's over the variables of the first world).
    """
    star: dict[str, str] = {}
    taken = set(model.variables)
    for name in worlds.copied:
        fresh = f"{name}*"
        while fresh in taken:
            fresh += "*"
        taken.add(fresh)
        star[name] = fresh
    copies = {n: model.variable(n).renamed(s) for n, s in star.items()}

    def seen(variables: Collection[Variable]) -> tuple[Variable, ...]:
        return tuple(copies.get(v.name, v) for v in variables)

    pieces: dict[str, Conditional] = {n: model[n] for n in worlds.kept}
    for name, copy in copies.items():
        if name in changed:
            new = changed[name]
            pieces[copy.name] = (
                uniform_table(copy, ()) if new is None else new.rebound(copy, seen(new.parents))
            )
            continue
        table = model[name]
        if responses and name in responses:
            response, first, second = responses[name]
            pieces[response.name] = uniform_table(response, ())
            pieces[name] = first
            pieces[copy.name] = second.rebound(copy, seen(second.parents))
        elif name not in worlds.coupled:
            pieces[copy.name] = table.rebound(copy, seen(table.parents))
        elif isinstance(table, GaussianConditional):
            noise = Quantity(f"noise of {name}", "real")
            explicit = with_noise(table, noise)
            pieces[noise.name] = GaussianConditional(noise, (), (), np.zeros(()), np.zeros(0), np.ones(()))
            pieces[name] = explicit
            pieces[copy.name] = explicit.rebound(copy, seen(explicit.parents))
        else:
            pieces[copy.name] = _coupled(table, copy, copies, mechanisms.get(name, ""))
    return Twin(BayesianNetwork.from_conditionals(pieces.values()), star)


def with_noise(table: GaussianConditional, noise: Quantity) -> GaussianConditional:
    """Return a linear Gaussian as a function of its parents and a standard normal noise, its last parent."""
    weights = np.concatenate([table.weights, np.sqrt(table.variance)[..., None]], axis=-1)
    return GaussianConditional(
        table.variable,
        table.discrete,
        (*table.continuous, noise),
        table.bias,
        weights,
        np.zeros_like(table.variance),
    )


def _coupled(table: Conditional, copy: Variable, copies: Mapping[str, Variable], kind: str) -> Conditional:
    """Return P(v* | parents in both worlds, v)."""
    moved = [i for i, p in enumerate(table.parents) if p.name in copies]
    values = world_table(table, np.array(moved, dtype=np.int64), kind)
    same = [p for p in table.parents if p.name not in copies]
    was = [table.parents[i] for i in moved]
    parents = (*same, *was, *(copies[p.name] for p in was), table.variable)
    return ConditionalTable.of(copy, parents, np.ascontiguousarray(values))


def _is_function(table: Conditional) -> bool:
    if isinstance(table, GaussianConditional):
        return not table.variance.any()
    return not has_inhibitors(table) and is_function(table)
