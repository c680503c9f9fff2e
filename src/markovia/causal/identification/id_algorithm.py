"""ID and IDC: every effect that a graph with hidden causes determines, as a formula over the observed distribution.

The effect of x on y is a sum over the other members of D, the ancestors of y once x is set, of one factor for each
district of D (a c-factor). A c-factor Q[C] is computed in the graph over the ancestors of C only, from the district
T that holds C there: Q[T] is a product of conditionals P(v | pillow of what is before v in the district), and C is
reached from T by turns of summing out what is no ancestor of C and of narrowing to the district of what is left.
Where neither helps, T and C are a hedge, which proves that no formula exists. References: Tian and Pearl, *A
general identification condition for causal effects* (2002); Shpitser and Pearl, *Identification of joint
interventional distributions* and *of conditional interventional distributions* (2006); Huang and Valtorta, *Pearl's
calculus of intervention is complete* (2006). Sound and complete; polynomial in the nodes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markovia.causal.identification.expressions import (
    ONE,
    Expression,
    P,
    ProductExpression,
    product,
    quotient,
    summed,
)
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import members


class Hedge(Exception):
    """Two nested sets, each joined by bidirected edges and rooted in the smaller, that prove an effect not identified."""

    def __init__(self, larger: int, smaller: int) -> None:
        super().__init__(larger, smaller)
        self.larger = larger
        self.smaller = smaller


class Regime(NamedTuple):
    """A distribution that is known: what was set, what was seen, in which population, and what differs there."""

    set_: int = 0
    seen: int = -1
    population: str = ""
    differs: int = 0


class FixedKernel:
    """Q[T]: what is left of the distribution when all but the nodes of T are set, as a formula.

    Attributes
    ----------
    nodes
        The mask of T.
    chain
        For each node its conditional given those before it, where the formula is such a product; else None.
    whole
        The formula.
    """

    __slots__ = ("chain", "nodes", "whole")

    def __init__(
        self, nodes: int, chain: dict[int, Expression] | None, whole: Expression | None = None
    ) -> None:
        self.nodes = nodes
        self.chain = chain
        self.whole = product((chain or {}).values()) if whole is None else whole


class Identifier:
    """Computes c-factors and effects in one graph.

    Parameters
    ----------
    graph
        The graph over the observed variables.
    available
        What is known, in order of preference; the observed distribution of all nodes if not given.
    """

    def __init__(self, graph: Admg, available: Sequence[Regime] = (Regime(),)) -> None:
        self.graph = graph
        self.available = available

    def effect(self, x: int, y: int) -> Expression:
        """Return P(y | do(x)).

        Raises
        ------
        Hedge
            If it is not identified.
        """
        g = self.graph
        relevant = g.ancestors(y, within=~x)
        factors = [self.c_factor(part) for part in g.districts(relevant)]
        body = summed(g.named(relevant & ~y), product(factors))
        return self._averaged(body, x | y)

    def conditional_effect(self, x: int, y: int, z: int) -> tuple[Expression, int]:
        """Return P(y | do(x), z), and the mask of x with those of z that may be set instead of seen."""
        x, z = self.moved(x, y, z)
        joint = self.effect(x, y | z)
        if z:
            joint = _normalised(joint, self.graph.named(y))
        return joint, x

    def moved(self, x: int, y: int, z: int) -> tuple[int, int]:
        """Return x with those of z that may be set instead of seen (rule 2), and the others."""
        g = self.graph
        moved = True
        while moved:
            moved = False
            for i in members(z):
                if g.m_separated(1 << i, y, x | z & ~(1 << i), into=x, out_of=1 << i):
                    x, z, moved = x | 1 << i, z & ~(1 << i), True
        return x, z

    def c_factor(self, c: int) -> Expression:
        """Return Q[C] for a set that bidirected edges connect."""
        failure: Hedge | None = None
        for regime in self.available:
            try:
                if not (regime.set_ | regime.differs) & c:
                    return self._from_regime(c, regime)
            except Hedge as hedge:
                failure = failure or hedge
        raise failure or Hedge(c, c)

    def _from_regime(self, c: int, regime: Regime) -> Expression:
        g = self.graph
        above = g.ancestors(c, within=~regime.set_)
        if above & ~regime.seen:
            raise Hedge(above, c)
        kernel = self._observed(g.district(c, within=above), above, regime)
        while True:
            a = g.ancestors(c, within=kernel.nodes)
            if a == kernel.nodes != c:
                raise Hedge(a, c)
            kernel = self._summed(kernel, a)
            if a == c:
                return kernel.whole
            kernel = self._narrowed(kernel, g.district(c, within=a))

    def _observed(self, t: int, within: int, regime: Regime) -> FixedKernel:
        """Return Q[T] of a district of an ancestral set: a conditional for each node, given as little as is needed."""
        g = self.graph
        chain: dict[int, Expression] = {}
        for v, given in self._blankets(t, within):
            set_ = g.named(regime.set_ & g.ancestors(1 << v | given, into=regime.set_))
            chain[v] = P((g.names[v],), g.named(given & ~regime.set_), set_, regime.population)
        return FixedKernel(t, chain)

    def _blankets(self, t: int, within: int) -> Iterator[tuple[int, int]]:
        """Yield the nodes of a set in order, each with what separates it from all others before it."""
        g = self.graph
        before = 0
        for v in g.ordered(within):
            before |= 1 << v
            if t >> v & 1:
                own = g.district(1 << v, within=before)
                yield v, (own | g.parents_of(own)) & ~(1 << v)

    def _summed(self, kernel: FixedKernel, a: int) -> FixedKernel:
        """Return Q[A] for an ancestral subset A of T: the others are summed out."""
        if a == kernel.nodes:
            return kernel
        away = self.graph.named(kernel.nodes & ~a)
        whole = summed(away, kernel.whole)
        if kernel.chain is not None:
            kept = {v: term for v, term in kernel.chain.items() if a >> v & 1}
            if all(term.free.isdisjoint(away) for term in kept.values()):
                return FixedKernel(a, kept)
        return FixedKernel(a, None, whole)

    def _narrowed(self, kernel: FixedKernel, t: int) -> FixedKernel:
        """Return Q[T] for a district T of the nodes of a kernel."""
        if t == kernel.nodes:
            return kernel
        if kernel.chain is not None:
            return FixedKernel(t, {v: term for v, term in kernel.chain.items() if t >> v & 1})
        g = self.graph
        chain: dict[int, Expression] = {}
        for v, given in self._blankets(t, kernel.nodes):
            given &= kernel.nodes
            top = summed(g.named(kernel.nodes & ~given & ~(1 << v)), kernel.whole)
            chain[v] = quotient(top, summed(g.named(kernel.nodes & ~given), kernel.whole)) if given else top
        return FixedKernel(t, chain)

    def _averaged(self, body: Expression, roles: int) -> Expression:
        """Average over names that a formula mentions though its value does not depend on them, if they were ever seen."""
        g = self.graph
        stray = g.mask(body.free) & ~roles
        for regime in self.available if stray else ():
            set_ = regime.set_ & g.ancestors(stray, into=regime.set_)
            if not stray & ~(regime.seen & ~regime.set_) and not set_ & ~roles:
                names = g.named(stray)
                return summed(names, product([P(names, (), g.named(set_), regime.population), body]))
        return body


def _normalised(joint: Expression, outcome: tuple[str, ...]) -> Expression:
    """Divide a formula by its sum over the outcomes; factors without an outcome cancel."""
    kept = [
        f
        for f in (joint.factors if isinstance(joint, ProductExpression) else (joint,))
        if not f.free.isdisjoint(outcome)
    ]
    top = product(kept)
    bottom = summed(outcome, top)
    return top if bottom == ONE else quotient(top, bottom)
