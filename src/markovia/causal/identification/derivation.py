"""From P(y | do(x)) to a formula in steps: rules of do-calculus with the separations they need, and of probability.

Rules, for disjoint sets and a graph in which "into a" means that the edges into a are cut (bidirected ones too):

1. P(y | do(x), z, w) = P(y | do(x), w) if y ⊥ z | x, w without the edges into x;
2. P(y | do(x), do(z), w) = P(y | do(x), z, w) if y ⊥ z | x, w without the edges into x and out of z;
3. P(y | do(x), do(z), w) = P(y | do(x), w) if y ⊥ z | x, w without the edges into x and into those of z that are
   not above w.

A c-component factorisation is many such steps at once, so it comes with many separations. Reference: Pearl,
*Causality* (2009), section 3.4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markovia.causal.identification.expressions import (
    Expression,
    P,
    ProductExpression,
    Quotient,
    SumExpression,
    product,
)
from markovia.causal.identification.id_algorithm import FixedKernel, Identifier, Regime
from markovia.graphs.causal.admg import Admg
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class SeparationRule:
    """That some nodes are m-separated from others in a graph without certain edges.

    Attributes
    ----------
    rule
        The rule of do-calculus that needs it.
    x, y, given
        What is separated from what, given what.
    into, out_of
        The nodes whose incoming, or outgoing, edges are cut.
    """

    rule: int
    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...] = ()
    into: tuple[str, ...] = ()
    out_of: tuple[str, ...] = ()

    def holds(self, graph: Admg) -> bool:
        """Say whether it is so in a graph."""
        x, y, given, into, out_of = map(graph.mask, (self.x, self.y, self.given, self.into, self.out_of))
        return graph.m_separated(x, y, given, into=into, out_of=out_of)

    def __str__(self) -> str:
        cuts = [
            f"{word} {', '.join(names)}"
            for word, names in (("into", self.into), ("out of", self.out_of))
            if names
        ]
        given = f" | {', '.join(self.given)}" if self.given else ""
        without = f" without the edges {' and '.join(cuts)}" if cuts else ""
        return f"rule {self.rule}: {', '.join(self.x)} ⊥ {', '.join(self.y)}{given}{without}"


@dataclass(frozen=True)
class DerivationStep:
    """One equation, why it holds, and the separations behind it."""

    left: Expression
    right: Expression
    reason: str
    separations: tuple[SeparationRule, ...] = ()

    def __str__(self) -> str:
        reasons = [self.reason] if self.reason else []
        return "\n".join(
            [f"{self.left} = {self.right}", *(f"   {r}" for r in (*reasons, *map(str, self.separations)))]
        )


@dataclass(frozen=True)
class Derivation(InNotebooks):
    """Steps in order; those on parts of the formula come after the step that makes the part."""

    steps: tuple[DerivationStep, ...]

    def __iter__(self) -> Iterator[DerivationStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(f"{k}. {step}" for k, step in enumerate(self.steps, 1))


def derive(estimand: Any) -> Derivation:
    """Return the derivation of an estimand."""
    x, y, z = estimand.treatment, estimand.outcome, estimand.given
    asked = estimand.question
    if (
        estimand.rule == "adjustment"
    ):  # a theorem of its own: for classes of graphs there is no one graph to cut edges in
        named = ", ".join(estimand.adjustment) or "the empty set"
        reason = f"adjustment criterion: {named} meets no causal path and nothing below one, and blocks all other paths"
        return Derivation((DerivationStep(asked, estimand.expression, reason),))
    graph = Admg.of(estimand.graph)
    steps: list[DerivationStep] = []
    if estimand.rule == "no effect":
        cut = graph.named(graph.mask(x) & ~graph.ancestors(graph.mask(z)))
        steps.append(DerivationStep(asked, P(y, z), "", (SeparationRule(3, x, y, z, into=cut),)))
    elif estimand.rule == "back-door":
        w = estimand.adjustment
        seen = (*z, *w)
        if w:
            parts = SumExpression(w, ProductExpression((P(y, seen, x), P(w, z, x))))
            steps.append(DerivationStep(asked, parts, f"sum over {', '.join(w)}"))
            steps.append(DerivationStep(P(w, z, x), P(w, z), "", (SeparationRule(3, w, x, z, into=x),)))
        steps.append(
            DerivationStep(P(y, seen, x), P(y, (*x, *seen)), "", (SeparationRule(2, x, y, seen, out_of=x),))
        )
    elif estimand.rule == "front-door":
        w = estimand.mediators
        steps += [
            DerivationStep(
                asked,
                SumExpression(w, ProductExpression((P(w, (), x), P(y, w, x)))),
                f"sum over {', '.join(w)}",
            ),
            DerivationStep(P(w, (), x), P(w, x), "", (SeparationRule(2, x, w, out_of=x),)),
            DerivationStep(
                P(y, w, x), P(y, (), (*x, *w)), "", (SeparationRule(2, w, y, x, into=x, out_of=w),)
            ),
            DerivationStep(P(y, (), (*x, *w)), P(y, (), w), "", (SeparationRule(3, x, y, w, into=(*x, *w)),)),
            DerivationStep(
                P(y, (), w),
                SumExpression(x, ProductExpression((P(x, (), w), P(y, x, w)))),
                f"sum over {', '.join(x)}",
            ),
            DerivationStep(P(x, (), w), P(x), "", (SeparationRule(3, w, x, into=w),)),
            DerivationStep(P(y, x, w), P(y, (*x, *w)), "", (SeparationRule(2, w, y, x, out_of=w),)),
        ]
    else:
        told = _Told(graph, steps, estimand.available)
        told.conditional_effect(*(graph.mask(names) for names in (x, y, z)))
        steps.append(DerivationStep(asked, estimand.expression, "put together"))
    return Derivation(tuple(step for step in steps if step.left != step.right))


class _Told(Identifier):
    """The ID algorithm that says what it does."""

    def __init__(self, graph: Admg, steps: list[DerivationStep], available: Sequence[Regime]) -> None:
        super().__init__(graph, available)
        self.steps = steps

    def _say(
        self, left: Expression, right: Expression, reason: str, separations: list[SeparationRule]
    ) -> None:
        step = DerivationStep(left, right, reason, tuple(separations))
        if left != right and step not in self.steps:
            self.steps.append(step)

    def _q(self, nodes: int) -> P:
        """Return Q[nodes] as what it stands for: the nodes after all their other parents were set."""
        g = self.graph
        return P(g.named(nodes), (), g.named(g.pillow(nodes)))

    def conditional_effect(self, x: int, y: int, z: int) -> tuple[Expression, int]:
        g = self.graph
        formula, set_ = super().conditional_effect(x, y, z)
        early: list[DerivationStep] = []
        left = z
        while (
            left & set_
        ):  # the conditions that were set instead of seen, in the order in which that was allowed
            i = next(
                i for i in g.ordered(left & set_)
                if g.m_separated(1 << i, y, x | left & ~(1 << i), into=x, out_of=1 << i)
            )  # fmt: skip
            asked = P(g.named(y), g.named(left), g.named(x))
            rest = left & ~(1 << i)
            needed = self._needed(2, 1 << i, y, x | rest, into=x, out_of=1 << i)
            x, left = x | 1 << i, rest
            early.append(DerivationStep(asked, P(g.named(y), g.named(left), g.named(x)), "", tuple(needed)))
        if left:
            joint = P(g.named(y | left), (), g.named(x))
            right = Quotient(joint, SumExpression(g.named(y), joint))
            early.append(
                DerivationStep(P(g.named(y), g.named(left), g.named(x)), right, "definition of the condition")
            )
        self.steps[:0] = early
        return formula, set_

    def effect(self, x: int, y: int) -> Expression:
        g = self.graph
        d = g.ancestors(y, within=~x)
        joint = P(g.named(d), (), g.named(x))
        if d != y:
            self._say(
                P(g.named(y), (), g.named(x)),
                SumExpression(g.named(d & ~y), joint),
                "sum over the other ancestors",
                [],
            )
        parts = g.districts(d)
        separations = [s for part in parts for s in self._factorised(part, d, x)]
        self._say(joint, product(map(self._q, parts)), "c-component factorisation", separations)
        return super().effect(x, y)

    def _factorised(self, part: int, d: int, x: int) -> Iterator[SeparationRule]:
        """Yield what turns P(v | what is before it in d, do(x)) into P(v | before in the part, do(its pillow))."""
        g = self.graph
        w = g.pillow(part)
        before = 0
        for v in g.ordered(d):
            node, pre = 1 << v, before
            before |= node
            if not part & node:
                continue
            own = pre & part
            early, late, unset = w & pre, w & d & ~pre, x & ~w
            yield from self._needed(1, node, pre & ~own & ~early, own | early | x, into=x)
            yield from self._needed(2, node, early, own | x, into=x, out_of=early)
            fixed = x | early
            cut = late & ~g.ancestors(own, into=fixed)
            yield from self._needed(3, node, late, own | fixed, into=fixed | cut)
            cut = unset & ~g.ancestors(own, into=w)
            yield from self._needed(3, node, unset, own | w, into=w | cut)

    def _needed(
        self, rule: int, x: int, y: int, given: int, into: int = 0, out_of: int = 0
    ) -> Iterator[SeparationRule]:
        if y:
            named = self.graph.named
            yield SeparationRule(rule, named(x), named(y), named(given), named(into), named(out_of))

    def _observed(self, t: int, within: int, regime: Regime) -> FixedKernel:
        g = self.graph
        kernel = super()._observed(t, within, regime)
        w, set_ = g.pillow(t), regime.set_
        separations: list[SeparationRule] = []
        before = 0
        for v, blanket in self._blankets(t, within):
            own = before & t
            before |= 1 << v
            kept, seen = own & blanket, w & blanket & ~set_
            separations += self._needed(1, 1 << v, own & ~blanket, kept | w, into=w)
            new = set_ & ~w
            cut = new & ~g.ancestors(kept, into=w)
            separations += self._needed(3, 1 << v, new, kept | w, into=w | cut)
            old, fixed = w & ~blanket & ~set_, seen | set_
            cut = old & ~g.ancestors(kept, into=fixed)
            separations += self._needed(3, 1 << v, old, kept | fixed, into=fixed | cut)
            separations += self._needed(2, 1 << v, seen, kept | set_, into=set_, out_of=seen)
        reason = "chain rule along the district"
        if regime.population:
            reason += f", in the {regime.population}"
        self._say(self._q(t), kernel.whole, reason, separations)
        return kernel

    def _summed(self, kernel: FixedKernel, a: int) -> FixedKernel:
        g = self.graph
        if a != kernel.nodes:
            less = g.pillow(kernel.nodes) & ~g.pillow(a)
            needed = self._needed(3, a, less, g.pillow(a), into=g.pillow(kernel.nodes))
            right = SumExpression(g.named(kernel.nodes & ~a), self._q(kernel.nodes))
            self._say(self._q(a), right, "sum over what is no ancestor", list(needed))
        return super()._summed(kernel, a)

    def _narrowed(self, kernel: FixedKernel, t: int) -> FixedKernel:
        g = self.graph
        if t != kernel.nodes:
            w = g.pillow(kernel.nodes)
            separations = list(self._factorised(t, kernel.nodes, w))
            terms = []
            before = 0
            for v in g.ordered(kernel.nodes):
                pre, before = before, before | 1 << v
                if t >> v & 1:
                    own = g.district(1 << v, within=before)
                    blanket = (own | g.parents_of(own)) & kernel.nodes & ~(1 << v)
                    terms.append(P((g.names[v],), g.named(blanket), g.named(w)))
                    separations += self._needed(1, 1 << v, pre & ~blanket, blanket | w, into=w)
            self._say(self._q(t), product(terms), "c-component factorisation", separations)
        return super()._narrowed(kernel, t)
