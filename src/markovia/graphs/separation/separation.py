"""Separation: which independencies a graph promises, whatever the numbers on it.

Three ways to decide d-separation in a DAG, which always agree:

- `"bayes-ball"`: one search over (node, direction of arrival), O(nodes + edges); Shachter (1998). The
  default.
- `"moral"`: undirected separation in the moral graph of the ancestors; Lauritzen et al. (1990).
- `"trails"`: look at every trail between the two sets; exponential, meant for explanation and teaching.

Minimal separating sets follow van der Zander, Liśkiewicz and Textor, *Separators and adjustment sets in
causal graphs* (2019), and cost O(nodes + edges) in the (moralised) graph.

Rules for awkward questions: a node that is given is separated from everything; a node that is in both sets
and not given is not separated from itself; the empty set is separated from everything.
"""

from collections.abc import Iterable
from itertools import combinations
from typing import Literal

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import reach
from markovia.graphs.kinds.named import Names, as_names, need
from markovia.graphs.kinds.undirected import UndirectedGraph

Method = Literal["bayes-ball", "moral", "trails"]

_OTHERS = {"DAG": "use d_separated", "UndirectedGraph": "use separated", "MixedGraph": "use its .m_separated"}


def d_separated(dag: DAG, x: Names, y: Names, given: Names = (), method: Method = "bayes-ball") -> bool:
    """Decide whether `given` blocks every trail between `x` and `y`.

    Parameters
    ----------
    dag
        A directed acyclic graph.
    x, y, given
        One name or several; see the module's rules for overlapping sets.
    method
        `"bayes-ball"`, `"moral"` or `"trails"`; the answer is the same.

    Returns
    -------
    bool
        True if x and y are independent given `given` in every distribution that factorises over the graph.

    Raises
    ------
    UnknownVariable
        If a name is not in the graph.

    Examples
    --------
    >>> alarm = DAG([("burglar", "alarm"), ("quake", "alarm"), ("alarm", "call")])
    >>> d_separated(alarm, "burglar", "quake"), d_separated(alarm, "burglar", "quake", given="call")
    (True, False)
    """
    need(dag, DAG, instead=_OTHERS)
    x, y, given = as_names(x), as_names(y), as_names(given)
    if method == "bayes-ball":
        observed = set(dag._numbers(given))
        targets = set(dag._numbers(y)) - observed
        return targets.isdisjoint(_bayes_ball(dag, dag._numbers(x), observed))
    if method == "moral":
        return separated(dag.ancestral_graph([*x, *y, *given]).moral_graph(), x, y, given)
    if method == "trails":
        from markovia.graphs.kinds.trails import every_trail

        observed = set(dag._numbers(given))
        sources, targets = set(dag._numbers(x)) - observed, set(dag._numbers(y)) - observed
        return sources.isdisjoint(targets) and not any(
            trail.is_open
            for a in dag._named(sources)
            for b in dag._named(targets)
            for trail in every_trail(dag, a, b, given)
        )
    raise InvalidArgument(f"unknown method {method!r}; use 'bayes-ball', 'moral' or 'trails'")


def reachable(dag: DAG, x: Names, given: Names = ()) -> set[str]:
    """Collect the nodes that are not d-separated from `x` given `given`, x itself among them.

    Parameters
    ----------
    dag
        A directed acyclic graph.
    x, given
        One name or several.

    Returns
    -------
    set of str
        Every node outside `given` that an open trail joins to x. O(nodes + edges).

    Examples
    --------
    >>> sorted(reachable(DAG([("a", "c"), ("b", "c"), ("c", "d")]), "a", given="d"))
    ['a', 'b', 'c']
    """
    need(dag, DAG)
    observed = set(dag._numbers(given))
    return set(dag._named(_bayes_ball(dag, dag._numbers(x), observed) - observed))


def visited_from(dag: DAG, x: Names, given: Names = ()) -> set[str]:
    """Collect the nodes that an open trail from `x` reaches, those that are given and stop it among them.

    A given node is reached if it tells something of x when all others are given.

    Examples
    --------
    >>> sorted(visited_from(DAG([("a", "c"), ("b", "c"), ("c", "d")]), "d", given=["a", "c"]))
    ['c', 'd']
    """
    need(dag, DAG)
    return set(dag._named(_bayes_ball(dag, dag._numbers(x), set(dag._numbers(given)))))


def separated(graph: UndirectedGraph, x: Names, y: Names, given: Names = ()) -> bool:
    """Decide whether every path between `x` and `y` meets `given`.

    Parameters
    ----------
    graph
        An undirected graph.
    x, y, given
        One name or several; see the module's rules for overlapping sets.

    Examples
    --------
    >>> square = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> separated(square, "a", "c", given=["b", "d"]), separated(square, "a", "c", given="b")
    (True, False)
    """
    need(graph, UndirectedGraph, instead=_OTHERS)
    observed = graph._numbers(given)
    targets = set(graph._numbers(y)).difference(observed)
    return targets.isdisjoint(reach(graph._numbers(x), graph._neighbors, blocked=observed))


def minimal_separator(
    graph: DAG | UndirectedGraph, x: Names, y: Names, *, within: Names | None = None, including: Names = ()
) -> set[str] | None:
    """Find a separating set of which no proper subset (that keeps `including`) separates.

    Parameters
    ----------
    graph
        A DAG or an undirected graph.
    x, y
        The sets to separate: one name or several, without a common node.
    within
        The nodes that may be used, such as those that can be measured; all others if not given.
    including
        Nodes that must be part of the answer.

    Returns
    -------
    set of str or None
        A minimal separator, the one nearest to x among several; None if there is none.

    Examples
    --------
    >>> g = DAG([("smoke", "lung"), ("smoke", "bronc"), ("lung", "dysp"), ("bronc", "dysp")])
    >>> minimal_separator(g, "lung", "bronc")
    {'smoke'}
    >>> minimal_separator(g, "lung", "dysp") is None
    True
    """
    need(graph, DAG, UndirectedGraph)
    sources, targets = set(graph._numbers(x)), set(graph._numbers(y))
    required = set(graph._numbers(including))
    if sources & targets:
        raise InvalidArgument(
            f"x and y share {_listed(graph._named(sources & targets))}; separate distinct nodes"
        )
    if required & (sources | targets):
        raise InvalidArgument(
            f"including names {_listed(graph._named(required & (sources | targets)))} of x or y"
        )
    usable = set(range(len(graph))) if within is None else set(graph._numbers(within))
    ends = graph._named(sources), graph._named(targets)
    keep = graph._named(required)
    allowed = set(graph._named((usable | required) - sources - targets))
    if isinstance(graph, DAG):
        graph = graph.ancestral_graph([*ends[0], *ends[1], *keep]).moral_graph()
    candidates = [name for name in graph if name in allowed]
    if not separated(graph, *ends, candidates):
        return None
    # what can be reached from one side before the candidates stop it is the only part that side needs
    near_x = _frontier(graph, ends[0], candidates, keep)
    return set(_frontier(graph, ends[1], near_x, keep))


def all_minimal_separators(
    graph: DAG | UndirectedGraph,
    x: Names,
    y: Names,
    *,
    within: Names | None = None,
    largest: int | None = None,
) -> list[set[str]]:
    """List every minimal separating set of two sets of nodes, smallest first.

    Parameters
    ----------
    graph
        A DAG or an undirected graph; meant for small ones, as the number of subsets is exponential.
    x, y
        One name or several.
    within
        The nodes that may be used; all others if not given.
    largest
        The size of the largest separator to look for; no limit if not given.

    Examples
    --------
    >>> g = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "e"), ("e", "d")])
    >>> [sorted(s) for s in all_minimal_separators(g, "a", "d")]
    [['b', 'e'], ['c', 'e']]
    """
    need(graph, DAG, UndirectedGraph)
    x, y = as_names(x), as_names(y)
    ends = set(graph._numbers([*x, *y]))
    usable = range(len(graph)) if within is None else graph._numbers(within)
    candidates = graph._named(i for i in sorted(usable) if i not in ends)
    if isinstance(graph, DAG):
        # a minimal separator lies among the ancestors of x and y
        ancestors = graph.ancestors(graph._named(ends), include_self=True)
        candidates = [name for name in candidates if name in ancestors]
    found: list[set[str]] = []
    limit = len(candidates) if largest is None else min(largest, len(candidates))
    for size in range(limit + 1):
        for subset in combinations(candidates, size):
            if not any(known.issubset(subset) for known in found) and _splits(graph, x, y, subset):
                found.append(set(subset))
    return found


def _splits(graph: DAG | UndirectedGraph, x: Names, y: Names, given: Names) -> bool:
    if isinstance(graph, DAG):
        return d_separated(graph, x, y, given)
    return separated(graph, x, y, given)


def _frontier(
    graph: UndirectedGraph, start: Iterable[str], candidates: Iterable[str], keep: Iterable[str]
) -> list[str]:
    """List the candidates next to the part that they cut off around `start`, and those to keep."""
    walls = set(graph._numbers(candidates))
    inside = reach(graph._numbers(start), graph._neighbors, blocked=walls)
    touched = {j for i in inside for j in graph._neighbors[i] if j in walls}
    return graph._named(sorted(touched.union(graph._numbers(keep))))


def _bayes_ball(dag: DAG, sources: Iterable[int], observed: set[int]) -> set[int]:
    """Collect the nodes that a ball bounced from the sources visits from an open direction.

    Arriving from a child, a ball passes an unobserved node to its parents and children; arriving from a
    parent, it passes an unobserved node to the children, and turns back to the parents at a node with
    observed evidence at or below it.
    """
    parents, children = dag._parents, dag._children
    opens = bytearray(len(dag))
    for i in reach(observed, parents):
        opens[i] = 1
    from_child, from_parent = bytearray(len(dag)), bytearray(len(dag))
    queue: list[tuple[int, bool]] = []
    visited: set[int] = set()
    for i in sources:
        if i not in observed and not from_child[i]:
            from_child[i] = 1
            queue.append((i, True))
    for node, upwards in queue:
        visited.add(node)
        hidden = node not in observed
        if (upwards and hidden) or (not upwards and opens[node]):
            for i in parents[node]:
                if not from_child[i]:
                    from_child[i] = 1
                    queue.append((i, True))
        if hidden:
            for i in children[node]:
                if not from_parent[i]:
                    from_parent[i] = 1
                    queue.append((i, False))
    return visited


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
