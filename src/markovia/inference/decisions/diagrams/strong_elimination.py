"""Decisions with perfect recall: one sweep that sums what is not seen, then chooses, then sums what was seen before.

Method: variables are eliminated in the reverse order of time, each decision after all that it does not see and before all
that it does; in the bucket of a decision the best choice is taken for every state of the others. Tables hold probabilities
beside weighted worths, so several utilities need no division. The rules are read off the buckets of the decisions.
References: Jensen, Jensen and Dittmer (1994), "From influence diagrams to junction trees"; Dechter (2000).
Cost: the tables of a constrained elimination order, once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.graphs.separation.requisite import Parents
from markovia.inference.decisions.diagrams.diagram import SAME_AMOUNT, Diagram
from markovia.inference.decisions.diagrams.policy_structure import Numbered
from markovia.inference.exact.bucket_tree import NOTHING, BucketPlan, sweep
from markovia.inference.exact.decision_arithmetic import DecisionArithmetic
from markovia.runtime.array_types import Array


class DecisionRule(NamedTuple):
    """What a decision does: a code for each row of what it sees, where others are as good, and how probable rows are.

    `mass` is up to a factor, zero only where a row cannot occur (it may also be positive there).
    """

    seen: tuple[str, ...]
    codes: NDArray[np.int64]
    tied: NDArray[np.bool_]
    mass: Array


class StronglySolved(NamedTuple):
    """A value, the log probability of what is known, and a rule for each decision."""

    value: float
    log_evidence: float
    rules: dict[str, DecisionRule]
    plan: BucketPlan


def eliminate_strongly(
    diagram: Diagram,
    parents: Parents,
    order: Sequence[str],
    arithmetic: DecisionArithmetic,
    plan: BucketPlan | None = None,
) -> StronglySolved:
    """Solve a diagram in which each decision of the order knows what the ones before it knew.

    Parameters
    ----------
    parents
        Of every node; those of decisions are their requisite observations under perfect recall.
    order
        The decisions in the order in which they are made.
    arithmetic
        Expected or exponential utility; a fresh one.
    plan
        The elimination order, where it is known from before.
    """
    numbered = Numbered.of(diagram, parents)
    ids = numbered.ids()
    plan = numbered.strong_plan(order) if plan is None else plan
    chosen = {ids[d] for d in order}
    swept = sweep(numbered.tables(arithmetic), plan, arithmetic, maximised=chosen, stored=chosen)
    if swept is NOTHING:
        return StronglySolved(np.nan, -np.inf, {}, plan)
    rules = {}
    for bucket in swept.buckets:
        name = numbered.names[bucket.variable]
        scope = [numbered.names[i] for i in bucket.scope]
        rules[name] = _rule(bucket.table, scope, parents[name], diagram, name, arithmetic)
    return StronglySolved(arithmetic.value(swept.log_scale), swept.log_scale, rules, plan)


def _rule(
    table: Array,
    scope: list[str],
    seen: Sequence[str],
    diagram: Diagram,
    name: str,
    arithmetic: DecisionArithmetic,
) -> DecisionRule:
    """Return the best choices in a bucket with axes `(decision, *scope)`, for what the decision sees alone.

    Other axes of the bucket tell nothing of the best choice, so their scores are added up.
    """
    mass = arithmetic.mass(table).max(axis=0)
    scores = np.where(mass > 0, arithmetic.scores(table), 0.0)
    own = tuple(n for n in seen if n in scope)
    extra = tuple([k for k, n in enumerate(scope) if n not in own])
    if extra:
        scores = scores.sum(axis=tuple([k + 1 for k in extra]))
        mass = mass.sum(axis=extra)
    order = [n for n in scope if n in own]
    turn = [order.index(n) for n in own]
    scores = scores.transpose([*(k + 1 for k in turn), 0])
    codes, tied = best_codes(scores)
    return DecisionRule(own, codes, tied, mass.transpose(turn))


def best_codes(scores: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the first of the best choices along the last axis, and where several are as good."""
    top = scores.max(axis=-1, keepdims=True)
    finite = np.where(np.isfinite(scores), np.abs(scores), 0.0)
    near = scores >= top - SAME_AMOUNT * np.maximum(finite.max(axis=-1, keepdims=True), 1e-300)
    return near.argmax(axis=-1), near.sum(axis=-1) > 1
