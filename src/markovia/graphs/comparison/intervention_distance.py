"""Structural intervention distance: how many causal effects a learned graph gets wrong.

For each ordered pair (i, j) the learned graph says how to find the effect of setting i on j: adjust for the parents of
i (and no effect if j is one of them). SID counts the pairs where that is wrong in the true graph. It is not symmetric,
and zero also for a learned graph with too many edges as long as no effect is wrong. Against a class of graphs it has a
smallest and a largest value.

Paper: Peters and Bühlmann, *Structural intervention distance for evaluating causal graphs*, Neural Computation 27
(2015). Cost: one search over the true graph for each node, O(nodes x (nodes + edges)); for a class also the number of
ways to direct each undirected component.
"""

from collections.abc import Iterator
from typing import NamedTuple

from markovia.errors import TooLarge
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import extend, meek
from markovia.graphs.kinds.linear_searches import reach
from markovia.graphs.kinds.masks import PartlyDirected, mask_of, members
from markovia.graphs.kinds.mixed import Mark, MixedGraph

MOST_DIRECTED = 20_000
"""The largest number of ways to direct one undirected component that are looked at."""


class SIDBounds(NamedTuple):
    """The smallest and the largest structural intervention distance over a class of graphs."""

    lower: int
    upper: int


def intervention_distance(learned: DAG, truth: DAG) -> int:
    """Return the structural intervention distance of a DAG from the true one, over the same nodes.

    Examples
    --------
    >>> truth = DAG([("a", "b"), ("b", "c")])
    >>> intervention_distance(DAG([("a", "b"), ("b", "c"), ("a", "c")]), truth)
    0
    >>> intervention_distance(DAG([("b", "a"), ("b", "c")]), truth)
    3
    """
    return sum(len(wrong) for wrong in wrong_effects(learned, truth).values())


def wrong_effects(learned: DAG, truth: DAG) -> dict[str, list[str]]:
    """List, for each node, those on which its effect is wrong in the learned graph.

    Examples
    --------
    >>> wrong_effects(DAG([("b", "a")]), DAG([("a", "b")]))
    {'a': ['b'], 'b': ['a']}
    """
    judge = _Judge(truth)
    return {
        name: truth._named(
            judge.wrong(truth._index[name], frozenset(truth._index[p] for p in learned.parents(name)))
        )
        for name in truth.nodes
    }


def intervention_bounds(learned: MixedGraph, truth: DAG) -> SIDBounds:
    """Return the smallest and the largest distance over the DAGs of a CPDAG (or any extendable partially directed graph).

    Undirected components are directed independently of each other, so that the bounds are reached by single members.

    Raises
    ------
    TooLarge
        If a component can be directed in too many ways.

    Examples
    --------
    >>> intervention_bounds(MixedGraph(["a --- b", "b --- c"]), DAG([("a", "b"), ("b", "c")]))
    SIDBounds(lower=0, upper=6)
    """
    extend(learned)  # says so if the graph stands for no DAG
    completed = meek(learned)
    judge = _Judge(truth)
    lower = upper = 0
    undirected = MixedGraph(
        ((a, b, Mark.TAIL, Mark.TAIL) for a, b in completed.undirected_edges()), nodes=completed.nodes
    )
    for component in undirected.skeleton().connected_components():
        fixed = [frozenset(truth._index[p] for p in completed.parents(n)) for n in component]
        totals = [
            sum(
                len(judge.wrong(truth._index[n], always.union(truth._index[p] for p in parents)))
                for n, always, parents in zip(component, fixed, member, strict=True)
            )
            for member in _directed(completed, component)
        ]
        lower += min(totals)
        upper += max(totals)
    return SIDBounds(lower, upper)


class _Judge:
    """Decides which effects of a node are found by adjusting for a set, in the true graph."""

    def __init__(self, truth: DAG) -> None:
        self.parents, self.children = truth._parents, truth._children
        self.below = [set(reach([i], self.children)) for i in range(len(truth))]
        self.known: dict[tuple[int, frozenset[int]], list[int]] = {}

    def wrong(self, i: int, given: frozenset[int]) -> list[int]:
        if (i, given) not in self.known:
            self.known[i, given] = self._wrong(i, given)
        return self.known[i, given]

    def _wrong(self, i: int, given: frozenset[int]) -> list[int]:
        above = set(reach(given, self.parents))
        # adjusting for what lies below a node on the way from i to j spoils the effect on j
        spoilt = set(reach((w for w in self.below[i] if w != i and w in above), self.children))
        open_other = self._reached_otherwise(i, given, above)
        return [
            j
            for j in range(len(self.parents))
            if j != i and (j in self.below[i] if j in given else j in spoilt or j in open_other)
        ]

    def _reached_otherwise(self, i: int, given: frozenset[int], above: set[int]) -> set[int]:
        """Collect the nodes at the end of an open route from i that is not a directed path from i."""
        queue: list[tuple[int, bool, bool]] = []  # node, arrived from a child, directed from i so far
        seen: set[tuple[int, bool, bool]] = set()

        def go(node: int, upwards: bool, directed: bool) -> None:
            state = (node, upwards, directed)
            if node != i and state not in seen:
                seen.add(state)
                queue.append(state)

        for parent in self.parents[i]:
            go(parent, True, False)
        for child in self.children[i]:
            go(child, False, True)
        for node, upwards, directed in queue:
            if node not in given:
                for child in self.children[node]:
                    go(child, False, directed)
            if (node not in given) if upwards else (node in above):
                for parent in self.parents[node]:
                    go(parent, True, False)
        return {node for node, _, directed in seen if not directed}


def _directed(graph: MixedGraph, component: list[str]) -> Iterator[list[list[str]]]:
    """Yield the parents of each node for every way to direct one undirected component without a cycle or a new collider."""
    number = {name: i for i, name in enumerate(component)}
    parents, joined = (
        [mask_of(number[o] for o in others(name) if o in number) for name in component]
        for others in (graph.parents, graph.undirected_neighbors)
    )
    stack = [PartlyDirected(parents, joined)]
    seen = 0
    while stack:
        current = stack.pop()
        a = next((i for i, others in enumerate(current.joined) if others), None)
        if a is None:
            seen += 1
            if seen > MOST_DIRECTED:
                raise TooLarge(
                    f"an undirected component of {len(component)} nodes can be directed in more than "
                    f"{MOST_DIRECTED:,} ways; the structural intervention distance of one member, its .dag, is still "
                    "to be had"
                )
            yield [[component[i] for i in members(mask)] for mask in current.parents]
            continue
        b = members(current.joined[a])[0]
        for tail, head in ((a, b), (b, a)):
            choice = current.copy()
            choice.direct(tail, head)
            choice.close()
            stack.append(choice)
