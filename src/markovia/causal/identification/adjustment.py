"""Adjustment: which sets of variables turn what is seen into the effect of setting the treatments.

Z is a valid adjustment set for the effect of x on y, sum over z of P(y | x, z) P(z) = P(y | do(x)), exactly if

1. every path that may be causal starts with an edge that is surely so (only a class of graphs can fail this),
2. no node of Z lies on, or below a node other than x on, a proper causal path from x to y (the forbidden nodes), and
3. Z separates x from y in the proper back-door graph: the graph without the first edges of the proper causal paths.

So valid sets are separators with some nodes left out, and all questions about them are answered by
`graphs.causal.separators` in polynomial time, or with polynomial delay where many are listed. Pearl's back-door
criterion is stricter: it forbids all descendants of x.

References: Shpitser, VanderWeele and Robins (UAI 2010); van der Zander, Liskiewicz and Textor (Artificial
Intelligence 2019); Perkovic, Textor, Kalisch and Maathuis (JMLR 2018); optimal sets: Henckel, Perkovic and Maathuis,
*Graphical criteria for efficient total effect estimation via adjustment in causal linear models*, JRSS B 84 (2022);
Smucler, Sapienza and Rotnitzky, *Efficient adjustment sets in causal graphical models with hidden variables*,
Biometrika 109 (2022).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from math import isfinite
from typing import Literal, Self

from markovia.causal.identification.equivalence_classes import GraphClass, graph_class
from markovia.causal.problem import Family, Problem
from markovia.errors import InvalidArgument, check_known
from markovia.graphs.causal.admg import Admg
from markovia.graphs.causal.separators import Cuts
from markovia.graphs.kinds.masks import closed, members, turned
from markovia.graphs.kinds.named import Names, as_names

Kind = Literal["minimal", "all", "minimum", "optimal"]


def adjustment_sets(
    graph: object,
    treatment: Names,
    outcome: Names,
    *,
    kind: Kind = "minimal",
    latent: Names = (),
    costs: Mapping[str, float] | None = None,
    required: Names = (),
    forbidden: Names = (),
    limit: int | None = None,
    family: Family = "auto",
) -> list[tuple[str, ...]]:
    """List the sets of variables to adjust for, smallest first.

    Parameters
    ----------
    graph
        A `DAG`, a `MixedGraph` (ADMG, CPDAG, MAG, PAG), a text such as `"x -> y <- z -> x"`, a model, or a learned
        structure.
    treatment, outcome
        One name or several.
    kind
        - "minimal": the sets of which no member can be left out.
        - "all": every valid set.
        - "minimum": one set of least total cost; of several the one closest to the outcome, which estimates best.
        - "optimal": the set with the smallest asymptotic variance: without hidden variables the parents of the
          nodes on causal paths. If hidden causes reach those nodes, if something is required or forbidden, or if
          there is no effect, it is the best of the minimal sets, as no best of all need exist.
    latent
        Variables that are not observed.
    costs
        For "minimum", what it costs to measure a variable: positive, 1 where it is not given.
    required, forbidden
        Variables that every set has, or that none may have. What is required need not be needed.
    limit
        At most so many sets. There can be exponentially many minimal ones; `each_adjustment_set` yields them one by
        one.
    family
        "auto", or what a `MixedGraph` is: "admg", "cpdag", "mag" or "pag". In a MAG a directed edge may hide a confounder.

    Returns
    -------
    list of tuple of str
        Each set in the order of the graph; the empty tuple where nothing has to be adjusted for, and an empty list if
        the effect cannot be had by adjustment.

    Raises
    ------
    UnknownVariable, InvalidArgument
        If a name is not in the graph or has two roles.

    Examples
    --------
    >>> graph = "x1 -> x3 -> x; x1 -> x4; x2 -> x4; x2 -> x5 -> y; x4 -> x -> x6 -> y; x4 -> y"
    >>> adjustment_sets(graph, "x", "y")
    [('x1', 'x4'), ('x3', 'x4'), ('x4', 'x2'), ('x4', 'x5')]
    >>> len(adjustment_sets(graph, "x", "y", kind="all"))
    15
    >>> adjustment_sets(graph, "x", "y", kind="optimal")
    [('x4', 'x5')]
    >>> adjustment_sets("x -> y; x <-> y", "x", "y")
    []
    """
    task = BackDoor.of(graph, treatment, outcome, latent=latent, family=family)
    sets = [members(found) for found in islice(task.asked(kind, costs, required, forbidden), limit)]
    return [tuple(task.graph.names[i] for i in found) for found in sorted(sets, key=lambda s: (len(s), s))]


def each_adjustment_set(
    graph: object,
    treatment: Names,
    outcome: Names,
    *,
    kind: Kind = "minimal",
    latent: Names = (),
    costs: Mapping[str, float] | None = None,
    required: Names = (),
    forbidden: Names = (),
    family: Family = "auto",
) -> Iterator[tuple[str, ...]]:
    """Yield the sets of `adjustment_sets` one by one, with polynomial time between two of them.

    Examples
    --------
    >>> sets = each_adjustment_set("x <- a -> b -> c -> y <- x", "x", "y")
    >>> next(sets)
    ('a',)
    """
    task = BackDoor.of(graph, treatment, outcome, latent=latent, family=family)
    return map(task.graph.named, task.asked(kind, costs, required, forbidden))


def is_adjustment_set(
    graph: object,
    treatment: Names,
    outcome: Names,
    given: Names = (),
    *,
    latent: Names = (),
    family: Family = "auto",
) -> bool:
    """Say whether adjusting for some variables gives the effect of the treatments on the outcomes.

    Parameters
    ----------
    graph, treatment, outcome, latent, family
        As for `adjustment_sets`.
    given
        The set in question.

    Examples
    --------
    >>> m_bias = "a -> x; a -> m <- b; b -> y; x -> y"
    >>> is_adjustment_set(m_bias, "x", "y"), is_adjustment_set(m_bias, "x", "y", "m")
    (True, False)
    """
    task = BackDoor.of(graph, treatment, outcome, given, latent=latent, family=family)
    asked = task.mask(given, "given")
    return task.amenable and not asked & ~task.allowed and task.separates(asked)


def is_backdoor_set(
    graph: object, treatment: Names, outcome: Names, given: Names = (), *, latent: Names = ()
) -> bool:
    """Say whether a set meets Pearl's back-door criterion, which is enough for adjustment but not needed.

    No member descends from a treatment, and the set blocks every path into a treatment that ends at an outcome, for
    each pair.

    Parameters
    ----------
    graph
        A DAG or a graph with bidirected edges.
    treatment, outcome, given, latent
        As for `is_adjustment_set`.

    Examples
    --------
    >>> graph = "x -> y; x -> w"
    >>> is_adjustment_set(graph, "x", "y", "w"), is_backdoor_set(graph, "x", "y", "w")
    (True, False)
    """
    problem = Problem.of(graph, treatment, outcome, given, latent)
    admg = problem.admg
    asked = admg.mask(problem.given)
    return all(
        not admg.descendants(1 << x) & asked and admg.m_separated(1 << x, 1 << y, asked, out_of=1 << x)
        for x in members(admg.mask(problem.treatment))
        for y in members(admg.mask(problem.outcome))
    )


class BackDoor:
    """The question which sets adjust for the effect of x on y, as masks over the nodes of one member of the class.

    Attributes
    ----------
    read
        The class of graphs.
    graph
        The proper back-door graph of its member.
    x, y
        Treatments and outcomes.
    causal
        The nodes other than x on proper paths from x to y that may be causal.
    forbidden
        Those, and all that may descend from them, and x.
    amenable
        Whether all of these paths start with an edge that is surely causal.
    """

    def __init__(self, read: GraphClass, x: int, y: int) -> None:
        self.read, self.x, self.y = read, x, y
        self.causal, firsts = proper_causal(read.possible, x, y)
        self.amenable = not any(first & ~read.settled[i] for i, first in firsts.items())
        self.forbidden = closed(self.causal, read.possible) | x
        member = read.member
        parents = [own & ~x if self.causal >> i & 1 else own for i, own in enumerate(member.parents)]
        self.graph = Admg(member.names, parents, member.siblings)

    @classmethod
    def of(
        cls,
        graph: object,
        treatment: Names,
        outcome: Names,
        given: Names = (),
        *,
        latent: Names = (),
        family: Family = "auto",
    ) -> Self:
        """Read a graph and names."""
        problem = Problem.of(graph, treatment, outcome, given, latent, family)
        read = graph_class(problem.graph, problem.family if family == "auto" else family)
        return cls(read, read.member.mask(problem.treatment), read.member.mask(problem.outcome))

    @cached_property
    def allowed(self) -> int:
        """What may be adjusted for."""
        return self.graph.everything & ~(self.forbidden | self.x | self.y)

    def mask(self, names: Names, role: str) -> int:
        """Return the mask of names that must be observed nodes other than treatments and outcomes."""
        found = 0
        for name in as_names(names):
            check_known([name], self.graph.number, "the observed part of the graph")
            found |= 1 << self.graph.number[name]
        if taken := self.graph.named(found & (self.x | self.y)):
            raise InvalidArgument(f"{taken[0]!r} is {role} and also treatment or outcome; leave it out there")
        return found

    def asked(
        self, kind: Kind, costs: Mapping[str, float] | None, required: Names, forbidden: Names
    ) -> Iterator[int]:
        """Check the wishes of `adjustment_sets` and return the sets as masks."""
        if kind not in ("minimal", "all", "minimum", "optimal"):
            raise InvalidArgument(f"kind is 'minimal', 'all', 'minimum' or 'optimal', got {kind!r}")
        if costs is not None and kind != "minimum":
            raise InvalidArgument(f"costs are for kind='minimum', not for kind={kind!r}")
        must, never = self.mask(required, "required"), self.mask(forbidden, "forbidden")
        if both := self.graph.named(must & never):
            raise InvalidArgument(f"{both[0]!r} is both required and forbidden; choose one")
        prices = _prices(self.graph, costs or {})
        allowed = self.allowed & ~never
        if not self.amenable or must & ~allowed:
            return iter(())
        return self.sets(kind, allowed, must, prices)

    def separates(self, given: int) -> bool:
        """Say whether a set blocks all paths that are not causal."""
        return self.graph.m_separated(self.x, self.y, given)

    def sets(self, kind: str, allowed: int, required: int, costs: list[float]) -> Iterator[int]:
        """Yield the sets of a kind."""
        if kind == "all":
            yield from self._all(allowed, required)
            return
        cuts = Cuts.of(self.graph, self.x, self.y, allowed, required)
        if kind == "minimal":
            yield from cuts.minimal()
            return
        found = cuts.cheapest(costs) if kind == "minimum" else cuts.nearest_to_y()
        if kind == "optimal" and found is not None and not required:
            best = self._parents_of_causal()
            found = best if best is not None and not best & ~allowed else found
        if found is not None:
            yield found

    def _parents_of_causal(self) -> int | None:
        """Return the optimal set of a graph in which nothing hidden bears on the causal nodes, all outcomes among them."""
        if self.read.family in ("mag", "pag"):
            return None
        member = self.read.member
        causal, _ = proper_causal(member.children, self.x, self.y)
        if self.y & ~causal or any(member.siblings[v] for v in members(causal)):
            return None
        return member.parents_of(causal) & ~(closed(causal, member.children) | self.x)

    def _all(self, allowed: int, required: int) -> Iterator[int]:
        """Branch on each node, without it first; a branch is entered only if it holds a valid set."""

        def open_nodes(free: int, chosen: int) -> int | None:
            above = self.graph.ancestors(self.x | self.y | chosen)
            return free if self.separates(chosen | free & above) else None

        return sets_between(allowed, required, open_nodes)


def sets_between(allowed: int, required: int, open_nodes: Callable[[int, int], int | None]) -> Iterator[int]:
    """Branch on each node, without it first, and yield the sets that are left at the ends.

    `open_nodes` is given what is open and what is chosen, and says what stays open; None where no set lies between.
    """
    stack = [(allowed & ~required, required)]
    while stack:
        free, chosen = stack.pop()
        largest = open_nodes(free, chosen)
        if largest is None:
            continue
        free &= largest
        if not free:
            yield chosen
            continue
        node = free & -free
        stack.append((free ^ node, chosen | node))
        stack.append((free ^ node, chosen))


def proper_causal(children: list[int], x: int, y: int) -> tuple[int, dict[int, int]]:
    """Return the nodes on paths from x to y along `children` that meet x only at their start, and their first edges.

    The nodes do not include x; of the edges, the mask of their heads is given for each node of x.
    """
    up = closed(y, turned(children), ~x)
    firsts = {i: children[i] & up & ~x for i in members(x)}
    causal = 0
    for heads in firsts.values():
        causal |= heads
    return closed(causal, children, up & ~x), firsts


def _prices(graph: Admg, costs: Mapping[str, float]) -> list[float]:
    prices = [1.0] * len(graph.names)
    for name, cost in costs.items():
        check_known([name], graph.number, "the observed part of the graph")
        if not isinstance(cost, int | float) or not isfinite(cost) or cost <= 0:
            raise InvalidArgument(
                f"the cost of {name!r} is a positive number, got {cost!r}; forbid what must not be measured"
            )
        prices[graph.number[name]] = float(cost)
    return prices
