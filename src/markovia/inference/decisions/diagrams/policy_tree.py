"""A tree of buckets under changing policies: what each choice of one decision is worth when all others are fixed.

Method: the tables of a diagram, with a table for every decision's rule, lie in the buckets of an elimination tree; messages
between neighbours are kept, each until a rule on its own side changes. What a decision's choices are worth is the product of
all messages to its bucket, its own rule left out, summed onto its family (Shenoy and Shafer's propagation with pairs).
Reference: Lauritzen and Nilsson (2001), section 4.
Cost: all messages once; after the change of one rule, those that lead away from it and that somebody asks for.
"""

from collections.abc import Sequence

from markovia.inference.exact.arithmetic import Scoped
from markovia.inference.exact.bucket_tree import BucketPlan
from markovia.inference.exact.decision_arithmetic import DecisionArithmetic
from markovia.runtime.array_types import Array

Edge = tuple[int, int]


class PolicyTree:
    """Messages over the buckets of a plan; tables of rules can be exchanged.

    Parameters
    ----------
    plan
        An elimination order of all variables.
    arithmetic
        What tables are made of.
    tables
        The tables that stay.
    """

    def __init__(self, plan: BucketPlan, arithmetic: DecisionArithmetic, tables: Sequence[Scoped]) -> None:
        self._plan, self._arithmetic = plan, arithmetic
        self._cards = plan.cards
        n = len(plan.order)
        self._axes = [(v, *scope) for v, scope in zip(plan.order, plan.scopes, strict=True)]
        self._above = [plan.position[scope[0]] if scope else -1 for scope in plan.scopes]
        self._neighbours: list[list[int]] = [[] for _ in range(n)]
        for k, up in enumerate(self._above):
            if up >= 0:
                self._neighbours[k].append(up)
                self._neighbours[up].append(k)
        self._tables: list[list[Scoped]] = [[] for _ in range(n)]
        self._rules: dict[int, Scoped] = {}
        self._rules_in: list[list[int]] = [[] for _ in range(n)]
        self._messages: dict[Edge, tuple[Scoped, float]] = {}
        self._constants: list[Array] = []
        for scoped in tables:
            if scoped[0]:
                self._tables[self.home(scoped[0])].append(scoped)
            else:
                self._constants.append(scoped[1])

    def home(self, scope: Sequence[int]) -> int:
        """Return the bucket that a table belongs to: that of its variable that is eliminated first."""
        return min(self._plan.position[i] for i in scope)

    def set_rule(self, decision: int, scope: tuple[int, ...], table: Array) -> None:
        """Give a decision another rule; messages that tell of the old one are forgotten."""
        home = self.home(scope)
        if decision not in self._rules:
            self._rules_in[home].append(decision)
        self._rules[decision] = (scope, table)
        # what leads away from the bucket: breadth first through the tree
        stack = [(home, nxt) for nxt in self._neighbours[home]]
        while stack:
            here, there = stack.pop()
            if self._messages.pop((here, there), None) is not None:
                stack.extend((there, nxt) for nxt in self._neighbours[there] if nxt != here)

    def contributions(self, decision: int) -> tuple[tuple[int, ...], Array]:
        """Return the axes and the table of the decision's bucket, with all rules but its own."""
        home = self.home(self._rules[decision][0])
        table, _ = self._product(home, None, leave_out=decision)
        return self._axes[home], table

    def value(self) -> tuple[float, float]:
        """Return what the rules together are worth, and the log probability of what is known (or the log scale)."""
        arithmetic = self._arithmetic.fresh()
        total = sum(arithmetic.log(c) for c in self._constants)
        for k, up in enumerate(self._above):
            if up < 0:
                table, log_scale = self._product(k, None)
                axes = tuple(range(len(self._axes[k])))
                total += log_scale + arithmetic.log(arithmetic.sum_onto(table, axes))
        return arithmetic.value(total), total

    def _product(self, bucket: int, towards: int | None, leave_out: int | None = None) -> tuple[Array, float]:
        """Return the product of a bucket's tables, rules and messages, but for the one from `towards`."""
        log_scale = 0.0
        parts = list(self._tables[bucket])
        parts += [self._rules[d] for d in self._rules_in[bucket] if d != leave_out]
        for near in self._neighbours[bucket]:
            if near != towards:
                message, scale = self._message(near, bucket)
                parts.append(message)
                log_scale += scale
        table, top = self._arithmetic.multiply(parts, self._axes[bucket], self._cards)
        return table, log_scale + top

    def _message(self, source: int, target: int) -> tuple[Scoped, float]:
        """Return a message, after those that it is made of; without recursion, as chains are long."""
        stack = [(source, target)]
        while stack:
            here, there = stack[-1]
            if (here, there) in self._messages:
                stack.pop()
                continue
            missing = [
                (near, here)
                for near in self._neighbours[here]
                if near != there and (near, here) not in self._messages
            ]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            table, log_scale = self._product(here, there)
            own = self._axes[here]
            shared = set(self._axes[there])
            gone = tuple([k for k, a in enumerate(own) if a not in shared])
            kept = tuple([a for a in own if a in shared])
            self._messages[here, there] = (
                (kept, self._arithmetic.sum_onto(table, gone) if gone else table),
                log_scale,
            )
        return self._messages[source, target]
