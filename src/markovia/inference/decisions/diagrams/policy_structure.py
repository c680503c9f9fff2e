"""A diagram on integers, for one choice of what its decisions see: tables, scopes, elimination orders and their cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from markovia.errors import TooLarge
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.separation.requisite import Parents
from markovia.graphs.triangulation.elimination import eliminate
from markovia.inference.decisions.diagrams.diagram import Diagram
from markovia.inference.exact.arithmetic import Scoped
from markovia.inference.exact.bucket_tree import BucketPlan
from markovia.inference.exact.decision_arithmetic import DecisionArithmetic
from markovia.runtime.memory_budget import default_budget, readable

PAIR_BYTES = 32.0
"""Bytes an entry takes while it is worked on: two numbers, and as many in the product."""


@dataclass(frozen=True)
class Numbered:
    """The nodes of a diagram that matter, numbered, with the scopes of its tables.

    Attributes
    ----------
    names, cards
        The variables with states that are left, and how many states each has.
    parents
        The parents of all nodes, those of decisions being what they see here.
    """

    diagram: Diagram
    names: list[str]
    cards: list[int]
    parents: Parents

    @classmethod
    def of(cls, diagram: Diagram, parents: Parents) -> "Numbered":
        """Return the nodes that matter to amounts, decisions or what is known, numbered, for these parents."""
        targets = [*diagram.leaves, *(n for n in diagram.findings if n in parents), *diagram.decisions]
        kept = DAG.from_parents(parents).ancestors(targets, include_self=True)
        variables = diagram.variables
        names = [n for n in variables if n in kept]
        return cls(diagram, names, [len(variables[n]) for n in names], parents)

    def ids(self) -> dict[str, int]:
        """Return the number of each name."""
        return {n: i for i, n in enumerate(self.names)}

    def tables(self, arithmetic: DecisionArithmetic, allowed: bool = True) -> list[Scoped]:
        """Return probabilities, findings, amounts and, if asked for, what is allowed, as tables of an arithmetic."""
        ids, diagram = self.ids(), self.diagram
        found: list[Scoped] = []
        for name, node in diagram.chance.items():
            if name in ids:
                found.append((tuple([ids[n] for n in node.names]), arithmetic.chance(node.values)))
        for name, finding in diagram.findings.items():
            if name in ids:
                found.append(((ids[name],), arithmetic.chance(finding.weights())))
        found += [
            (tuple([ids[v.name] for v in amount.scope]), arithmetic.worth(amount.table))
            for amount in diagram.amounts
        ]
        for name, (seen, permitted) in diagram.restrictions.items() if allowed else ():
            found.append((tuple([ids[n] for n in (*seen, name)]), arithmetic.rule(permitted)))
        return found

    def adjacency(self, families: bool) -> list[set[int]]:
        """Return who shares a table with whom; with `families`, also each decision with what it sees."""
        ids, diagram = self.ids(), self.diagram
        scopes = [node.names for n, node in diagram.chance.items() if n in ids]
        scopes += [tuple(v.name for v in amount.scope) for amount in diagram.amounts]
        scopes += [(*rule.seen, d) for d, rule in diagram.restrictions.items()]
        if families:
            scopes += [(*seen, d) for d in diagram.decisions for seen in [self.parents[d]]]
        around: list[set[int]] = [set() for _ in self.names]
        for scope in scopes:
            members = [ids[n] for n in scope]
            for i in members:
                around[i].update(members)
        for i, near in enumerate(around):
            near.discard(i)
        return around

    def strong_plan(self, order: Sequence[str]) -> BucketPlan:
        """Return the elimination order of perfect recall: what is never seen first, then each decision and what it saw.

        Raises
        ------
        TooLarge
            If its tables would not fit.
        """
        ids, n = self.ids(), len(order)
        stage = [0] * len(self.names)
        for k in reversed(range(n)):  # the first decision that sees a node has the last word
            for seen in self.parents[order[k]]:
                stage[ids[seen]] = 2 * (n - k)
        for k, d in enumerate(order):
            stage[ids[d]] = 2 * (n - k) - 1
        weights = [float(c) for c in self.cards]
        plan = BucketPlan.of(eliminate(self.adjacency(False), weights=weights, stages=stage), self.cards)
        refuse_large(plan.need(stored=[ids[d] for d in order]), "perfect recall", plan)
        return plan

    def family_plan(self) -> BucketPlan:
        """Return an elimination order whose tree holds every decision's family in one bucket."""
        plan = BucketPlan.of(
            eliminate(self.adjacency(True), weights=[float(c) for c in self.cards]), self.cards
        )
        refuse_large(3 * sum(plan.sizes), "the policies", plan)
        return plan


def refuse_large(entries: float, what: str, plan: BucketPlan) -> None:
    """Raise `TooLarge` if so many entries do not fit into memory."""
    needed = PAIR_BYTES * entries
    if needed > default_budget() or plan.width > 62:
        raise TooLarge(
            f"{what} would take tables of {plan.largest:,.0f} entries ({readable(needed)}) over {plan.width + 1} variables; "
            "let decisions see less, or bound them with memory='drawn'",
            bytes=needed,
        )


def spread_rule(
    table: np.ndarray, seen: Sequence[str], wanted: Sequence[str], cards: Mapping[str, int]
) -> np.ndarray:
    """View a rule with axes `(*seen, choice)` with the axes of all that a decision sees."""
    order = [seen.index(n) for n in wanted if n in seen]
    shape = [cards[n] if n in seen else 1 for n in wanted]
    last = table.shape[-1]
    moved = table.transpose([*order, len(seen)]).reshape([*shape, last])
    return np.broadcast_to(moved, [*(cards[n] for n in wanted), last])
