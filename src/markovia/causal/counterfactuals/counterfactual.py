"""`counterfactual` on Bayesian networks: facts about one unit, and what would have been under an intervention.

Abduction, action and prediction in one query of the twin network. Where the network determines the answer (functions, linear
Gaussians, noisy-or, facts that tell nothing about the noises behind the targets) it is exact; otherwise the stated mechanism
decides, and without one the answer is a pair of bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log, prod
from typing import Any, NamedTuple

import numpy as np

from markovia.causal.counterfactuals.bounded_posterior import BoundedPosterior
from markovia.causal.counterfactuals.couplings import check_mechanism
from markovia.causal.counterfactuals.response_bounds import (
    MOST_CELLS,
    extreme_values,
    frechet_bounds,
    response_nodes,
    responses_of,
)
from markovia.causal.counterfactuals.twin import Twin, TwinWorlds, twin_network, two_worlds
from markovia.errors import InvalidArgument, check_known
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.inference.engine import Engine
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array

MOST_REMEMBERED = 64
"""Twin networks that a model keeps for questions of the same shape."""
SAME = 1e-9
"""Bounds this close are one number."""

Mechanism = str | Mapping[str, str] | None
Answer = Posterior | GaussianPosterior | BoundedPosterior


def counterfactual(
    model: BayesianNetwork,
    targets: str | Sequence[str],
    given: Mapping[str, Any] | None = None,
    do: Mapping[str, Any] | None = None,
    mechanism: Mechanism = None,
    engine: str | Engine = "auto",
    changed: Mapping[str, Conditional] | None = None,
) -> Answer:
    """Return the posterior of the targets in the world where `do` holds, for a unit with the given facts.

    Parameters
    ----------
    model
        A network of tables, local models and linear Gaussians.
    targets
        What is asked for in the other world.
    given
        Facts of this world: evidence as in `query`.
    do
        What is set in the other world: a state or value (or probabilities of states) by name.
    mechanism
        What functions tables come from: "monotone", "gumbel" or "independent", for all or by name; None answers with bounds
        where it matters.
    engine
        As in `query`.
    changed
        Whole new distributions in the other world, by name (soft interventions).
    """
    model.require_one_graph("what would have been differs among the graphs that it leaves")
    names, facts = model._names(targets), dict(given or {})
    if not isinstance(do or {}, Mapping):
        raise InvalidArgument(f"do= is a mapping from name to state or value, not {do!r}")
    for name in [*facts, *(do or {})]:
        model.variable(name)
    if isinstance(mechanism, Mapping):
        check_known(mechanism, model.variables, "mechanism=")
    new, values = _intervention(model, do or {}, changed or {})
    question = _Question(model, names, facts, new, values, engine)
    worlds = two_worlds(model, names, facts, new)
    chosen = _chosen(worlds.undetermined, mechanism)
    if len(chosen) < len(worlds.undetermined):
        return _bounded(question, worlds, chosen)
    return _in_words(question, _asked(question, _remembered(question, worlds, chosen)), _note(chosen))


class _Question(NamedTuple):
    """What is asked: of a model, for targets, with facts, under new distributions and codes of states that are set."""

    model: BayesianNetwork
    names: Sequence[str]
    facts: Mapping[str, Any]
    new: Mapping[str, Conditional | None]
    values: Mapping[str, int]
    engine: str | Engine


def _intervention(
    model: BayesianNetwork, do: Mapping[str, Any], changed: Mapping[str, Conditional]
) -> tuple[dict[str, Conditional | None], dict[str, int]]:
    """Return the new distributions (None for a state that is set, which comes as evidence) and the codes of those states."""
    new: dict[str, Conditional | None] = dict(changed)
    values: dict[str, int] = {}
    for name, value in do.items():
        if name in changed:
            raise InvalidArgument(f"{name!r} is both set and given a new distribution; say one of them")
        new[name] = model.do({name: value})[name]
        if not isinstance(model.variable(name), Quantity):
            finding = read_evidence({name: model.variable(name)}, {name: value})[name]
            if finding.code is not None:
                new[name], values[name] = None, finding.code
    return new, values


def _chosen(undetermined: Sequence[str], mechanism: Mechanism) -> dict[str, str]:
    if mechanism is None:
        return {}
    if isinstance(mechanism, Mapping):
        return {n: check_mechanism(mechanism[n]) for n in undetermined if n in mechanism}
    return dict.fromkeys(undetermined, check_mechanism(mechanism))


def _remembered(question: _Question, worlds: TwinWorlds, chosen: Mapping[str, str]) -> Twin:
    """Return the twin network for a question of this shape, from the model's memory where its tables are still the same."""
    model, names, facts, new = question[:4]
    if any(table is not None for table in new.values()):
        return twin_network(model, worlds, new, chosen)
    memory = model.__dict__.setdefault("_memory", {}).setdefault("twins", {})
    key = (tuple(names), tuple(sorted(facts)), tuple(sorted(new)), tuple(sorted(chosen.items())))
    pieces = model.pieces()
    made, twin = memory.get(key, ((), None))
    if twin is None or len(made) != len(pieces) or any(a is not b for a, b in zip(made, pieces, strict=True)):
        twin = twin_network(model, worlds, new, chosen)
        if len(memory) >= MOST_REMEMBERED:
            memory.pop(next(iter(memory)))
        memory[key] = (pieces, twin)
    found: Twin = twin
    return found


def _asked(question: _Question, twin: Twin, more: Sequence[str] = ()) -> Any:
    """Return the twin network's posterior of the targets (and of `more` of its variables)."""
    given, roots = dict(question.facts), 0.0
    for name, code in question.values.items():
        if name in twin.star:
            states = twin.network.states(twin.star[name])
            given[twin.star[name]] = states[code]
            roots += log(len(states))  # a state that is set is a root with uniform probabilities
    starred = [twin.star.get(n, n) for n in question.names]
    answer = twin.network.query([*starred, *more], given=given, engine=question.engine)
    mass = answer.info.log_evidence
    answer.info = replace(answer.info, log_evidence=None if mass is None else mass + roots)
    return answer


def _in_words(question: _Question, answer: Any, note: str) -> Posterior | GaussianPosterior:
    """Return the answer over the model's own variables."""
    model, names = question.model, question.names
    info: Info = replace(answer.info, given=dict(question.facts), note=note)
    if isinstance(answer, Posterior):
        return Posterior(Factor.of(tuple(model.variable(n) for n in names), answer.factor().values), info)
    back = dict(zip(answer.names, names, strict=True))
    found = answer.mixture
    numbers = tuple(back[n] for n in found.numbers)
    states = tuple(model.variable(back[v.name]) for v in found.states)
    mixture = MixtureOfGaussians(numbers, states, found.weights, found.codes, found.means, found.covariances)
    return GaussianPosterior(names, mixture, info)


def _note(chosen: Mapping[str, str]) -> str:
    if not chosen:
        return "counterfactual; the model determines it, no mechanism had to be chosen"
    kinds = sorted(set(chosen.values()))
    said = [f"{kind} for {', '.join(n for n, k in chosen.items() if k == kind)}" for kind in kinds]
    return f"counterfactual; mechanism {'; '.join(said)}"


def _bounded(question: _Question, worlds: TwinWorlds, chosen: Mapping[str, str]) -> Answer:
    """Return bounds over every function that the other tables can come from, or the one number where they meet."""
    model, names = question.model, question.names
    asked = tuple(model.variable(n) for n in names)
    rest = [n for n in worlds.undetermined if n not in chosen]
    who = ", ".join(rest)
    if any(isinstance(v, Quantity) for v in asked):
        raise InvalidArgument(
            f"the counterfactual of {', '.join(names)} depends on what functions the tables of {who} come from, and numbers "
            "have no bounds; say mechanism='monotone', 'gumbel' or 'independent'"
        )
    found = _over_responses(question, worlds, rest, chosen)
    sharp = found is not None
    low, high, info = found if found is not None else _frechet(question)
    shape = tuple(len(v) for v in asked)
    taken = _note(chosen) if chosen else "counterfactual"
    if float((high - low).max()) < SAME:
        note = f"{taken}; all functions behind the tables of {who} give this answer"
        middle = np.maximum((low + high) / 2, 0.0)
        table = Factor.of(asked, (middle / middle.sum()).reshape(shape))
        return Posterior(table, replace(info, given=dict(question.facts), note=note))
    kind = "sharp bounds over all functions behind" if sharp else "valid, not sharp, bounds (Fréchet) for"
    note = f"{taken}; {kind} the tables of {who}; mechanism= chooses one"
    info = replace(info, given=dict(question.facts), note=note, exact=info.exact and sharp)
    return BoundedPosterior(asked, low.reshape(shape), high.reshape(shape), info, sharp=sharp)


def _over_responses(
    question: _Question, worlds: TwinWorlds, rest: Sequence[str], chosen: Mapping[str, str]
) -> tuple[Array, Array, Info] | None:
    """Return sharp bounds from one query with uniform response variables, or None where they are too many."""
    model, names = question.model, question.names
    tables = {n: v for n, v in model._variables.items() if not isinstance(v, Quantity)}
    findings = read_evidence(tables, {n: v for n, v in question.facts.items() if n in tables})
    seen = {n: f.code for n, f in findings.items() if f.code is not None}
    functions = responses_of(model, rest, worlds.copied, seen, question.values)
    if functions is None:
        return None
    sizes = [len(r.functions) for r in functions.values()]
    cells = prod(len(model.variable(n)) for n in names)
    if cells * prod(sizes) > MOST_CELLS:
        return None
    nodes = response_nodes(model, functions)
    twin = twin_network(model, worlds, question.new, chosen, nodes)
    answer = _asked(question, twin, [nodes[n][0].name for n in functions])
    weights = answer.factor().values.reshape(cells, *sizes) * float(prod(sizes))
    extremes = extreme_values(weights, list(functions.values()))
    if extremes is None:
        return None
    # P(facts) is the same for all functions that have the tables; here for independent ones, relative to uniform ones
    for r in functions.values():
        weights = np.tensordot(weights, r.table[np.arange(len(r.rows)), r.functions].prod(axis=1), (1, 0))
    scale = float(weights.sum())
    info = replace(answer.info, log_evidence=answer.info.log_evidence + log(scale))
    return extremes[0] / scale, extremes[1] / scale, info


def _frechet(question: _Question) -> tuple[Array, Array, Info]:
    """Return bounds from the chance of the facts and that of the targets, both given the facts that nothing reaches."""
    model, names, facts, new = question[:4]
    reached = model._dag().descendants(list(new), include_self=True)
    free = {n: v for n, v in facts.items() if n not in reached}
    worlds = two_worlds(model, names, free, new)
    answer = _asked(question._replace(facts=free), twin_network(model, worlds, new, {}))
    mass = model.log_evidence(given=facts)
    rest = float(np.exp(mass - model.log_evidence(given=free)))
    low, high = frechet_bounds(answer.factor().values.ravel(), rest)
    return low, high, replace(answer.info, log_evidence=mass)
