"""Belief propagation on a junction tree, written out: potentials, messages in their order, beliefs.

Every table of the model is multiplied into one clique that holds its variables. A clique sends to a neighbour the product of
its potential and of all other messages that it received, summed onto the separator; first towards a root, then back. After
that each clique's potential times its messages is its belief P(clique, evidence), neighbours agree on their separators, and
the joint is the product of the clique beliefs over that of the separators'.
References: Shafer and Shenoy (1990); Lauritzen and Spiegelhalter (1988); Koller and Friedman (2009), chapter 10.
Cost: two messages an edge, each linear in its clique's table; computed with logarithms, so that nothing under- or overflows.
This is for looking at; `query` and `marginals` answer from compiled trees that keep no messages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.factor import Factor
from markovia.graphs.triangulation.junction_tree import JunctionTree
from markovia.inference.exact.arithmetic import Logarithmic, Scoped
from markovia.inference.impossible_evidence import impossible
from markovia.inference.posterior import Posterior
from markovia.inference.problem import Problem
from markovia.inference.result import Info
from markovia.runtime.checks import Whole, check
from markovia.runtime.memory_budget import default_budget, readable
from markovia.runtime.shown import InNotebooks

SHOWN = 20
"""Cliques, or messages, that are printed."""
LOGS = Logarithmic()
Scaled = tuple[Scoped, float]
"""A table of logarithms, and the log of what was taken out of it."""


@dataclass(frozen=True, eq=False)
class CliqueTree(JunctionTree):
    """The junction tree of a model, which can be calibrated with the model's tables.

    `read` turns evidence into a problem: the model's pieces and what was found.
    """

    read: Callable[[Any], Problem] | None = field(default=None, repr=False)

    def calibrate(self, given: Mapping[str, Any] | None = None, *, root: int = 0) -> "CalibratedTree":
        """Pass messages along the tree until neighbouring cliques agree.

        Parameters
        ----------
        given
            Evidence as in `query`; variables that are fixed to a state drop out of their cliques.
        root
            The position of the clique that messages go to first.

        Examples
        --------
        >>> import markovia as mk
        >>> chain = mk.MarkovNetwork({"x1": 2, "x2": 2, "x3": 2}, [mk.Factor(["x1", "x2"], [[5, 2], [1, 4]]),
        ...     mk.Factor(["x2", "x3"], [[2, 10], [5, 3]])])
        >>> found = chain.junction_tree().calibrate()
        >>> print(found)
        cliques
          0  x1 x2
          1  x2 x3
        separators
          0 - 1  x2
        messages
          1 -> 0  on x2
          0 -> 1  on x2
        running intersection holds, cliques agree to 0, log mass 4.78749
        >>> found.messages[0].factor().values.round(6).tolist(), round(float(np.exp(found.log_mass)), 6)
        ([12.0, 8.0], 120.0)
        """
        check("root", root, Whole(0))
        if root >= max(1, len(self)):
            raise InvalidArgument(f"root= is the position of one of {len(self)} cliques, not {root}")
        if self.read is None:
            raise InvalidArgument("this tree has no tables; ask a model for its junction_tree()")
        problem = self.read(given)
        # running products of a clique's messages are held while it works
        sizes = [prod([len(problem.variables[n]) for n in clique]) for clique in self.cliques]
        need = 8.0 * sum(size * (4 + 2 * len(near)) for size, near in zip(sizes, self._around, strict=True))
        if need > default_budget():
            raise TooLarge(f"the clique tables need {readable(need)}; query() says what would do", bytes=need)
        found = _propagate(self, problem, root)
        if found.log_mass == -np.inf:
            raise impossible(problem, lambda other: _propagate(self, other, root).log_mass)
        return found


@dataclass(frozen=True)
class CliqueMessage(InNotebooks):
    """What one clique told another.

    Attributes
    ----------
    source, target
        Positions of the cliques.
    table
        The message over the free variables of the separator, scaled to sum to one.
    log_mass
        The log of what it was divided by.
    """

    source: int
    target: int
    table: Factor
    log_mass: float

    def factor(self) -> Factor:
        """Return the message unscaled: what eliminating all variables behind the separator leaves."""
        return Factor(self.table.variables, self.table.values * np.exp(self.log_mass))


@dataclass(frozen=True, eq=False)
class CalibratedTree(InNotebooks):
    """A junction tree after belief propagation.

    Attributes
    ----------
    tree
        The tree: cliques, edges, separators.
    given
        The evidence.
    potentials
        For each clique the product of the tables that it was given, evidence put in, scaled to sum to one.
    beliefs
        P(clique | evidence) of each clique, over its variables that are not fixed.
    separator_beliefs
        P(separator | evidence) of each edge.
    messages
        In the order they were sent: towards the root, then away from it.
    log_mass
        log P(evidence); of a Markov network, log of the mass that agrees with it.
    """

    tree: CliqueTree
    given: Mapping[str, Any]
    potentials: tuple[Factor, ...]
    beliefs: tuple[Factor, ...]
    separator_beliefs: tuple[Factor, ...]
    messages: tuple[CliqueMessage, ...]
    log_mass: float

    @property
    def schedule(self) -> tuple[tuple[int, int], ...]:
        """Who sent to whom, in order."""
        return tuple((m.source, m.target) for m in self.messages)

    @property
    def has_running_intersection(self) -> bool:
        """Whether every variable sits on a connected part of the tree, without which beliefs would be no marginals."""
        return self.tree.has_running_intersection()

    @property
    def disagreement(self) -> float:
        """The largest difference between what two neighbouring cliques believe about their separator."""
        gaps = [
            float(np.abs(self.beliefs[k].marginal(s.names).transpose(s.names).values - s.values).max())
            for edge, s in zip(self.tree.edges, self.separator_beliefs, strict=True)
            for k in edge
        ]
        return max(gaps, default=0.0)

    def query(self, names: str | Iterable[str]) -> Posterior:
        """Return the posterior of variables that share a clique, read off its belief.

        Raises
        ------
        InvalidArgument
            If no clique holds them all, or one of them is observed.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name in self.given and not any(name in b.names for b in self.beliefs):
                raise InvalidArgument(f"{name!r} is observed, so its posterior is what was given")
        belief = self.beliefs[self.tree.home(wanted)]
        info = Info("junction-tree", exact=True, log_evidence=self.log_mass)
        return Posterior(belief.marginal(wanted).transpose(wanted), info)

    def __str__(self) -> str:
        tree = self.tree
        cliques = [f"{k}  {' '.join(c)}" for k, c in enumerate(tree.cliques)]
        between = [f"{a} - {b}  {_named(s)}" for (a, b), s in zip(tree.edges, tree.separators, strict=True)]
        sent = [f"{m.source} -> {m.target}  on {_named(m.table.names)}" for m in self.messages]
        lines: list[str] = []
        for head, rows in (("cliques", cliques), ("separators", between), ("messages", sent)):
            more = [f"... {len(rows) - SHOWN:,} more"] if len(rows) > SHOWN else []
            lines += [head, *(f"  {row}" for row in rows[:SHOWN] + more)] if rows else []
        held = "holds" if self.has_running_intersection else "does NOT hold"
        gap = 0.0 if self.disagreement < 1e-12 else self.disagreement
        lines.append(f"running intersection {held}, cliques agree to {gap:.2g}, log mass {self.log_mass:.6g}")
        return "\n".join(lines)

    __repr__ = __str__


def _propagate(tree: CliqueTree, problem: Problem, root: int) -> CalibratedTree:
    """Send all messages; where the log mass is minus infinity the tables mean nothing."""
    ids = {name: i for i, name in enumerate(problem.variables)}
    variables = list(problem.variables.values())
    cards = [len(v) for v in variables]
    fixed = {n for n, f in problem.findings.items() if f.hard}
    axes = [tuple(ids[n] for n in clique if n not in fixed) for clique in tree.cliques]
    shared: dict[tuple[int, int], tuple[int, ...]] = {}
    for (a, b), names in zip(tree.edges, tree.separators, strict=True):
        shared[a, b] = shared[b, a] = tuple(ids[n] for n in names if n not in fixed)

    def product(k: int, tables: Sequence[Scaled]) -> Scaled:
        values, top = LOGS.multiply([scoped for scoped, _ in tables], axes[k], cards)
        return (axes[k], values), top + fsum(taken for _, taken in tables)

    def onto(table: Scaled, scope: tuple[int, ...]) -> Scaled:
        (held, values), taken = table
        summed = LOGS.sum_onto(values, tuple(i for i, a in enumerate(held) if a not in scope))
        return (tuple(a for a in held if a in scope), summed), taken

    def shown(table: Scaled) -> tuple[Factor, float]:
        """Return a table that sums to one, and the log of what it was divided by."""
        (held, values), taken = table
        plain, mass = LOGS.plain(values)
        return Factor.of(tuple(variables[a] for a in held), plain), taken + mass

    given_to: list[list[Scaled]] = [[] for _ in tree.cliques]
    for part in problem.parts(
        None
    ):  # each to the smallest clique that holds its variables, observed ones among them
        table, source = part.build(), part.source
        whole = isinstance(source, Factor | Conditional)
        home = tree.home(source.names if whole else [v.name for v in part.variables])  # type: ignore[union-attr]
        given_to[home].append(((tuple(ids[n] for n in table.names), LOGS.of(table.values)), 0.0))
    potentials = [product(k, tables) for k, tables in enumerate(given_to)]
    order = _towards(tree, root)
    children: list[list[int]] = [[] for _ in tree.cliques]
    sent: dict[tuple[int, int], Scaled] = {}
    for k, parent in order:  # its children have sent before it does
        children[parent].append(k)
        told = [sent[j, k] for j in children[k]]
        sent[k, parent] = onto(product(k, [potentials[k], *told]), shared[k, parent])
    beliefs: dict[int, Scaled] = {}
    for k, parent in [(root, -1), *reversed(order)] if len(tree) else []:
        # products of all but one message come from running products from both ends, so nothing is divided
        told = [sent[j, k] for j in children[k]]
        above = [] if parent < 0 else [sent[parent, k]]
        before, after = [product(k, [potentials[k], *above])], list[Scaled]()
        for one in told:
            before.append(product(k, [before[-1], one]))
        for i in reversed(range(len(told))):
            j = children[k][i]
            sent[k, j] = onto(product(k, [before[i], *after]), shared[k, j])
            after = [product(k, [told[i], *after])]
        beliefs[k] = before[-1]
    both_ways = [*order, *((parent, k) for k, parent in reversed(order))]
    return CalibratedTree(
        tree,
        problem.given,
        tuple(shown(t)[0] for t in potentials),
        tuple(shown(beliefs[k])[0] for k in range(len(tree))),
        tuple(shown(onto(beliefs[a], shared[a, b]))[0] for a, b in tree.edges),
        tuple(CliqueMessage(a, b, *shown(sent[a, b])) for a, b in both_ways),
        shown(beliefs[root])[1] if len(tree) else 0.0,
    )


def _towards(tree: CliqueTree, root: int) -> list[tuple[int, int]]:
    """List each clique but the root with its neighbour on the way to the root, those farther out first."""
    found, stack = [], [(root, -1)] if len(tree) else []
    while stack:  # a clique is listed before what lies behind it, and the list is turned round
        k, parent = stack.pop()
        found.append((k, parent))
        stack.extend((j, k) for j in sorted(tree.neighbors(k)) if j != parent)
    return found[:0:-1]


def _named(names: Iterable[str]) -> str:
    return " ".join(names) or "nothing"
