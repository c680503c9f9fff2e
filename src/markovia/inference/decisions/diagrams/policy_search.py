"""Branch and bound over policies of limited memory: the best there is, or how far from it one may be.

Method: with perfect recall a diagram is easily solved, and its value is a bound. Where the recalled solution chooses
differently in one row of what a decision really sees, that row is the next to be fixed, to each of its choices in turn; a
choice that is fixed holds for all histories. A solution that never does so is a policy of the drawn diagram, and best below
its node. Nodes with the largest bound come first.
References: Lauritzen and Nilsson (2001); Yuan, Wu and Hansen (2010) on branch and bound with relaxed information.
Cost: one strong elimination a node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from markovia.graphs.separation.requisite import Parents
from markovia.inference.decisions.diagrams.diagram import SAME_AMOUNT, Diagram, Restriction
from markovia.inference.decisions.diagrams.policy_structure import Numbered, spread_rule
from markovia.inference.decisions.diagrams.single_policy_updating import PolicyUpdater, Updated
from markovia.inference.decisions.diagrams.strong_elimination import (
    DecisionRule,
    StronglySolved,
    eliminate_strongly,
)
from markovia.inference.exact.decision_arithmetic import DecisionArithmetic
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.clock import Stopwatch


class Searched(NamedTuple):
    """The best policy met, a bound on all others, and how many nodes were solved."""

    best: Updated
    bound: float
    nodes: int


def search_policies(
    diagram: Diagram,
    drawn: Parents,
    more: Parents,
    order: Sequence[str],
    arithmetic: DecisionArithmetic,
    start: Updated,
    most_nodes: int,
    time_limit: float | None = None,
) -> Searched:
    """Improve on a policy until it is proved to be best, or the nodes or seconds are used up.

    Parameters
    ----------
    drawn, more
        The parents of all nodes with what decisions really see, and with what they see in the relaxation.
    order
        The decisions in the order of the relaxation.
    start
        A policy of the drawn diagram.
    """
    seen = {d: (*more[d], *(n for n in drawn[d] if n not in more[d])) for d in order}
    relaxed: Parents = {**more, **seen}
    cards = {n: len(v) for n, v in diagram.variables.items()}
    everything = {d: _permitted(diagram, d, drawn[d], cards) for d in order}
    root = replace(diagram, restrictions={d: Restriction(drawn[d], p) for d, p in everything.items()})
    plan = Numbered.of(root, relaxed).strong_plan(order)
    updater = PolicyUpdater(diagram, drawn, arithmetic)
    watch, serial = Stopwatch(), count()
    best, nodes = start, 0
    # entries: minus the bound, a number that breaks ties, what is permitted, the rules of the relaxation
    heap: list[tuple[float, int, Mapping[str, Flags], dict[str, DecisionRule]]] = []

    def enter(permitted: Mapping[str, Flags]) -> None:
        nonlocal nodes
        nodes += 1
        restricted = replace(
            diagram, restrictions={d: Restriction(drawn[d], p) for d, p in permitted.items()}
        )
        solved: StronglySolved = eliminate_strongly(restricted, relaxed, order, arithmetic.fresh(), plan)
        if solved.value > best.value + _tolerance(best.value, solved.value):
            heappush(heap, (-solved.value, next(serial), permitted, solved.rules))

    enter(everything)
    while heap:
        bound = -heap[0][0]
        if bound <= best.value + _tolerance(best.value, bound):
            return Searched(best, best.value, nodes)
        if nodes >= most_nodes or (time_limit is not None and watch.seconds > time_limit):
            return Searched(best, bound, nodes)
        _, _, permitted, rules = heappop(heap)
        weights = {d: _choice_weights(rules[d], drawn[d], cards, d) for d in order}
        # the policy that does in every row what most of its histories do
        updater.start({d: np.where(permitted[d], w, -1.0).argmax(axis=-1) for d, w in weights.items()})
        candidate = updater.climb(order[::-1])
        if candidate.value > best.value:
            best = candidate
        split = _most_divided(weights, permitted)
        if split is None:
            # no row is divided where histories have weight, yet the policy of rows is worth less than the bound: histories
            # that the relaxation tells apart by what only it sees; fix any open row
            split = _first_open(permitted)
            if split is None:
                continue
        d, row = split
        for code in np.flatnonzero(permitted[d][row]):
            fixed = permitted[d].copy()
            fixed[row] = False
            fixed[(*row, int(code))] = True
            enter({**permitted, d: fixed})
    return Searched(best, best.value, nodes)


def forgetting_rules(
    rules: Mapping[str, DecisionRule], diagram: Diagram, drawn: Parents
) -> dict[str, DecisionRule] | None:
    """Return rules of what is really seen that do the same as those of a relaxation; None if histories tell them apart."""
    cards = {n: len(v) for n, v in diagram.variables.items()}
    found = {}
    for d, rule in rules.items():
        if {*rule.seen} <= {*drawn[d]}:
            found[d] = rule
            continue
        weights = _choice_weights(rule, drawn[d], cards, d)
        if ((weights > 0).sum(axis=-1) > 1).any():
            return None
        gone = tuple([k for k, n in enumerate(rule.seen) if n not in drawn[d]])
        tied = np.asarray(rule.tied.any(axis=gone) if gone else rule.tied)
        kept = [n for n in rule.seen if n in drawn[d]]
        ties = np.array(spread_rule(tied[..., None], kept, drawn[d], cards)[..., 0])
        found[d] = DecisionRule(drawn[d], weights.argmax(axis=-1), ties, weights.sum(axis=-1))
    return found


def _permitted(diagram: Diagram, d: str, seen: tuple[str, ...], cards: Mapping[str, int]) -> Flags:
    restriction = diagram.restrictions.get(d)
    if restriction is None:
        return np.ones([*(cards[n] for n in seen), cards[d]], dtype=bool)
    return np.array(spread_rule(restriction.permitted, restriction.seen, seen, cards))


def _choice_weights(rule: DecisionRule, drawn: Sequence[str], cards: Mapping[str, int], d: str) -> Array:
    """Return how much weight the histories have that end in each choice, by row of what is really seen."""
    axes = list(rule.seen)
    one_hot = np.eye(cards[d])[rule.codes] * np.maximum(rule.mass, 0.0)[..., None]
    gone = tuple([k for k, n in enumerate(axes) if n not in drawn])
    summed = one_hot.sum(axis=gone) if gone else one_hot
    return np.array(spread_rule(summed, [n for n in axes if n in drawn], drawn, cards))


def _most_divided(
    weights: Mapping[str, Array], permitted: Mapping[str, Flags]
) -> tuple[str, tuple[int, ...]] | None:
    """Return the decision and row in which the most weight goes against the majority, None where none does."""
    best, found = 0.0, None
    for d, w in weights.items():
        against = np.where(permitted[d].sum(axis=-1) > 1, w.sum(axis=-1) - w.max(axis=-1), 0.0)
        against = against / max(float(w.sum()), 1e-300)
        top = float(against.max(initial=0.0))
        if top > best:
            best, found = (
                top,
                (d, tuple(int(i) for i in np.unravel_index(int(against.argmax()), against.shape))),
            )
    return found


def _first_open(permitted: Mapping[str, Flags]) -> tuple[str, tuple[int, ...]] | None:
    for d, p in permitted.items():
        open_rows = np.argwhere(p.sum(axis=-1) > 1)
        if len(open_rows):
            return d, tuple(int(i) for i in open_rows[0])
    return None


def _tolerance(a: float, b: float) -> float:
    return 100 * SAME_AMOUNT * max(abs(a), abs(b))
