"""What to decide, for the page: policies with the rows of the current findings, and what utilities are worth on average."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.graphs.triangulation.elimination import eliminate
from markovia.inference.choosing.auto import TREE_RATE
from markovia.inference.decisions.diagrams.deciding import structure_of
from markovia.inference.decisions.diagrams.open_decisions import answerable
from markovia.inference.decisions.diagrams.policy import Policy
from markovia.inference.decisions.diagrams.policy_structure import Numbered
from markovia.inference.decisions.diagrams.utility_distribution import attribute_means
from markovia.inference.exact.bucket_tree import BucketPlan
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.studio.documents import messages as m
from markovia.studio.documents.decision_messages import AskDecide, Decided, Rule, RuleRow
from markovia.studio.documents.endpoints import Call, Costly
from markovia.studio.documents.findings import findings, setting
from markovia.studio.documents.views import state_labels

MOST_ROWS = 2_000
"""Rows of a rule that are sent."""
WORK = 20.0
"""How much longer an entry of a decision's table takes than one of a junction tree: pairs, several passes, a search."""


def is_diagram(model: Any) -> bool:
    """Say whether a network has decisions or utilities."""
    return isinstance(model, BayesianNetwork) and bool(model.decisions or model.utilities)


def before_deciding(model: BayesianNetwork, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the findings that are evidence now, and the names of those that depend on an open decision."""
    open_ones = [n for n in model.decisions if n not in given]
    below = model.graph.descendants(open_ones) if open_ones else set()
    later = [n for n in given if n in below and n not in model.utilities]
    return {n: said for n, said in given.items() if n not in later}, later


def waiting_note(model: BayesianNetwork, later: Sequence[str]) -> str:
    """Say that findings are no evidence yet."""
    if not later:
        return ""
    first = next(n for n in model.decisions if later[0] in model.graph.descendants([n]))
    return (
        f"what is known of {', '.join(later)} counts once {first} is decided; it chooses the rows of policies"
    )


def answerable_now(model: BayesianNetwork, given: Mapping[str, Any]) -> list[str]:
    """Return the variables with a posterior that no open decision changes."""
    made = [n for n in model.decisions if n in given]
    return [n for n in answerable(model.pieces(), made) if n not in given]


def utility_means(model: BayesianNetwork, given: Mapping[str, Any]) -> dict[str, m.Marginal]:
    """Return what each utility of states is worth on average, once no decision is open."""
    if model.has_quantities or any(n not in given for n in model.decisions) or not model.utilities:
        return {}
    diagram = model._diagram(given)
    return {n: m.Marginal(mean=x) for n, x in attribute_means(diagram, diagram.amounts).items() if n in model}


def decide(call: Call[AskDecide]) -> Decided:
    """Answer what to choose for every open decision, and what that is worth."""
    document, body = call.document, call.body
    model: Any = document.now.model
    if not is_diagram(model):
        raise UnsupportedModel("there is nothing to decide: this model has no decisions and utilities")
    if body.do:
        model = document.doing({n: setting(model, n, s) for n, s in body.do.items()})
    given = findings(model, body.given)
    known, later = before_deciding(model, given)
    order = body.order or None
    if not model.has_quantities:
        _check_cost(model, known, body.memory, order, call.workspace.limit)
    policy = model.decide(
        known, memory=body.memory, order=order, risk=float(body.risk), time_limit=call.workspace.limit
    )
    if not isinstance(policy, Policy):
        raise UnsupportedModel("what is chosen here are numbers; ask decide() in Python for their rules")
    seen = {n: said for n, said in {**body.do, **given}.items() if isinstance(said, str | int | float | bool)}
    return Decided(
        policy.value,
        _finite(policy.bound),
        _finite(policy.gap),
        [_rule(policy, name, seen) for name in policy],
        later,
        m.Info(
            engine=policy.info.engine,
            exact=policy.info.exact,
            converged=policy.info.converged,
            error=_finite(policy.gap),
            seconds=policy.info.seconds,
            log_evidence=_finite(policy.info.log_evidence),
            note=policy.info.note or policy.info.advice,
        ),
    )


def _rule(policy: Policy, name: str, known: Mapping[str, Any]) -> Rule:
    """Return a rule with its most probable rows, in the order of the table."""
    rule, reached, ties = policy[name], policy.reached[name], policy.ties[name]
    labels = [state_labels(p.states) for p in rule.parents]
    own = state_labels(rule.variable.states)
    shape = tuple(map(len, rule.parents))
    flat = np.asarray(reached).reshape(-1)
    kept = np.sort(np.argsort(-flat, kind="stable")[:MOST_ROWS])
    seen = [p.name in known for p in rule.parents]
    rows = []
    for k in kept:
        at = np.unravel_index(int(k), shape)
        states = [p.states[i] for p, i in zip(rule.parents, at, strict=True)]
        current = any(seen) and all(
            known[p.name] in (s, text[i])
            for p, s, text, i in zip(rule.parents, states, labels, at, strict=True)
            if p.name in known
        )
        rows.append(
            RuleRow(
                [text[i] for text, i in zip(labels, at, strict=True)],
                own[int(rule.values[at].argmax())],
                float(flat[k]),
                dict(zip(rule.parent_names, states, strict=True)) in ties,
                current or not shape,
            )
        )
    return Rule(name, list(rule.parent_names), rows, len(flat) - len(rows))


def _check_cost(
    model: Any, given: Mapping[str, Any], memory: str, order: Sequence[str] | None, limit: float
) -> None:
    """Refuse a diagram whose elimination takes longer than the limit, before it begins."""
    diagram = model._diagram(given)
    structure = structure_of(diagram, memory, order)
    if structure.remembers:
        plan = Numbered.of(diagram, structure.recalled).strong_plan(structure.order)
    else:
        numbered = Numbered.of(diagram, structure.drawn)
        graph = numbered.adjacency(False)
        plan = BucketPlan.of(eliminate(graph, weights=[float(c) for c in numbered.cards]), numbered.cards)
    entries = float(sum(plan.sizes))
    if WORK * entries / TREE_RATE > limit:
        raise Costly(
            f"deciding needs tables of {entries:,.0f} entries; let decisions see less, or ask decide() in Python",
            {"entries": entries},
        )


def _finite(x: Any) -> float | None:
    return None if x is None or not np.isfinite(x) else float(x)
