"""One rule at a time: each decision takes what is best given the rules of all others.

In a soluble diagram, one pass in the order of solution finds the best policy there is. In any other the value rises until no
single rule can be improved, which is a local optimum; several starts find better ones.
Reference: Lauritzen and Nilsson (2001), "Representing and solving decision problems with limited information".
Cost: one product a decision and pass, and the messages in between.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from markovia.graphs.separation.requisite import Parents
from markovia.inference.decisions.diagrams.diagram import SAME_AMOUNT, Diagram
from markovia.inference.decisions.diagrams.policy_structure import Numbered, spread_rule
from markovia.inference.decisions.diagrams.policy_tree import PolicyTree
from markovia.inference.decisions.diagrams.strong_elimination import DecisionRule, best_codes
from markovia.inference.exact.decision_arithmetic import DecisionArithmetic
from markovia.runtime.array_types import Array, Flags, Ints

MOST_ROUNDS = 1_000


class Updated(NamedTuple):
    """What the rules are worth together, the log scale of the evidence, the rules, and how often all were gone through."""

    value: float
    log_evidence: float
    rules: dict[str, DecisionRule]
    rounds: int


class PolicyUpdater:
    """The tree of a diagram under some observations, and the rules that lie in it.

    Parameters
    ----------
    diagram, parents
        The problem, and what its decisions see.
    arithmetic
        Expected or exponential utility.
    """

    def __init__(self, diagram: Diagram, parents: Parents, arithmetic: DecisionArithmetic) -> None:
        self.diagram, self.parents, self.arithmetic = diagram, parents, arithmetic
        self._numbered = Numbered.of(diagram, parents)
        self._ids = self._numbered.ids()
        plan = self._numbered.family_plan()
        self._tree = PolicyTree(plan, arithmetic, self._numbered.tables(arithmetic, allowed=False))
        self._cards = dict(zip(self._numbered.names, self._numbered.cards, strict=True))
        self.rules: dict[str, DecisionRule] = {}
        self._allowed = {d: self._permitted(d) for d in diagram.decisions}
        for d in diagram.decisions:
            permitted = self._allowed[d]
            self._put(d, permitted / permitted.sum(axis=-1, keepdims=True))

    def start(self, codes: Mapping[str, Ints]) -> None:
        """Begin with deterministic rules: a code for each row of what a decision sees here."""
        for d, rows in codes.items():
            self._put(d, np.eye(len(self.diagram.decisions[d].variable))[rows])
            self.rules.pop(d, None)

    def random_start(self, rng: np.random.Generator) -> None:
        """Begin with rules drawn from all that are allowed."""
        self.start({d: _drawn(a, rng) for d, a in self._allowed.items()})

    def pass_once(self, order: Iterable[str]) -> bool:
        """Improve one rule after the other; return whether any has changed."""
        changed = [self._improve(d) for d in order]  # all of them
        return any(changed)

    def climb(self, order: Sequence[str]) -> Updated:
        """Go through all rules until none can be improved."""
        rounds = 1
        while self.pass_once(order) and rounds < MOST_ROUNDS:
            rounds += 1
        return self.result(rounds)

    def result(self, rounds: int = 1) -> Updated:
        """Return the rules with what they are worth."""
        value, log_evidence = self._tree.value()
        return Updated(value, log_evidence, dict(self.rules), rounds)

    def _improve(self, d: str) -> bool:
        """Choose what is best in every row of one decision; keep what is as good."""
        seen = self.parents[d]
        axes, table = self._tree.contributions(self._ids[d])
        wanted = [self._ids[n] for n in (*seen, d)]
        gone = tuple([k for k, a in enumerate(axes) if a not in wanted])
        left = [a for a in axes if a in wanted]
        table = self.arithmetic.sum_onto(table, gone) if gone else table
        turn = [left.index(a) for a in wanted]
        mass = self.arithmetic.mass(table).transpose(turn).max(axis=-1)
        scores = np.where(mass[..., None] > 0, self.arithmetic.scores(table).transpose(turn), 0.0)
        scores = np.where(self._allowed[d], scores, -np.inf)
        codes, tied = best_codes(scores)
        old = self.rules.get(d)
        if old is not None:
            kept = np.take_along_axis(scores, old.codes[..., None], axis=-1)[..., 0]
            top = np.take_along_axis(scores, codes[..., None], axis=-1)[..., 0]
            size = np.where(np.isfinite(scores), np.abs(scores), 0.0).max(axis=-1)
            codes = np.where(kept >= top - 10 * SAME_AMOUNT * np.maximum(size, 1e-300), old.codes, codes)
        self.rules[d] = DecisionRule(seen, codes, tied, mass)
        if old is not None and np.array_equal(old.codes, codes):
            return False
        self._put(d, np.eye(scores.shape[-1])[codes])
        return True

    def _put(self, d: str, table: Array) -> None:
        scope = tuple([self._ids[n] for n in (*self.parents[d], d)])
        self._tree.set_rule(self._ids[d], scope, self.arithmetic.chance(table))

    def _permitted(self, d: str) -> Flags:
        seen = self.parents[d]
        restriction = self.diagram.restrictions.get(d)
        if restriction is None:
            return np.ones([*(self._cards[n] for n in seen), self._cards[d]], dtype=bool)
        return np.asarray(spread_rule(restriction.permitted, restriction.seen, seen, self._cards))


def _drawn(permitted: Flags, rng: np.random.Generator) -> Ints:
    """Draw one of the permitted choices of each row."""
    return np.asarray(np.where(permitted, rng.random(permitted.shape), -1.0).argmax(axis=-1))
