"""Ancestral graphs: what a graph says of the observed nodes where some are hidden and some were selected on.

Two observed nodes a, b are adjacent in a maximal ancestral graph exactly where an
inducing path joins them: every inner node is latent or a collider, and every collider an ancestor of a, b or a selected
node. No set of observed nodes blocks such a path. The mark at a is a tail where a is an ancestor of b or of a selected
node. Reference: Richardson and Spirtes, *Ancestral graph Markov models*, Annals of Statistics 30 (2002), sections 4.1-4.2.
Cost: one search, O(nodes + edges), for each pair of observed nodes.
"""

from itertools import combinations

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.causal.text import causal_graph, parse_graph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import reach
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.named import Names, as_names


def maximal_ancestral_graph(graph: object, latent: Names = (), selected: Names = ()) -> MixedGraph:
    """Hide the latent nodes of a graph, condition on the selected ones, and keep what that says of the others.

    The result m-separates x and y given z exactly where the graph separates them given z and the selected nodes.

    Parameters
    ----------
    graph
        A DAG, an acyclic directed mixed graph, an ancestral graph (to which the edges are added that make it maximal), or
        a text such as `"dag { u [latent]; s [selected]; u -> {a b}; {b c} -> s }"`, whose roles are read.
    latent, selected
        The nodes that are not seen, and those whose value everybody in the data shares; besides those of the text.

    Returns
    -------
    MixedGraph
        A maximal ancestral graph: `a --> b` where a leads to b or to selection, and b to neither; `a <-> b` where neither
        leads to the other or to selection; `a --- b` where both lead to selection.

    Examples
    --------
    >>> maximal_ancestral_graph(DAG([("u", "a"), ("u", "b"), ("b", "s"), ("c", "s")]), latent="u", selected="s")
    MixedGraph(['b --> a', 'b --- c'])
    """
    mixed, hidden, chosen = _read(graph, latent, selected)
    steps = mixed._anterior()
    # who is an ancestor of each observed node, or of a selected one: these ends get tails
    above = {i: set(reach([i, *chosen], steps)) for i in range(len(mixed)) if i not in hidden | chosen}
    found = MixedGraph(nodes=mixed._named(above))
    for i, j in combinations(above, 2):
        if _inducing_walk(mixed, i, j, hidden, above[i] | above[j]):
            at_i, at_j = (Mark.TAIL if one in above[two] else Mark.ARROW for one, two in ((i, j), (j, i)))
            found.add_edge(mixed._names[i], mixed._names[j], at_i, at_j)
    return found


def inducing_path(graph: object, a: str, b: str, latent: Names = (), selected: Names = ()) -> list[str]:
    """Return a shortest inducing path between two observed nodes: why no observed set separates them.

    Parameters
    ----------
    graph, latent, selected
        As for `maximal_ancestral_graph`.
    a, b
        Two nodes that are neither latent nor selected. Where there is no such path the answer is empty, and some set of the
        other observed nodes, together with the selected ones, separates the two.

    Examples
    --------
    >>> inducing_path("a -> b <- u -> c; b -> c", "a", "c", latent="u")
    ['a', 'b', 'u', 'c']
    >>> inducing_path("a -> b <- u -> c", "a", "c", latent="u")
    []
    """
    mixed, hidden, chosen = _read(graph, latent, selected)
    i, j = mixed._number(a), mixed._number(b)
    if i == j or {i, j} & (hidden | chosen):
        raise InvalidArgument(
            f"an inducing path joins two observed nodes; {a!r} and {b!r} are one, latent or selected"
        )
    return mixed._named(_inducing_walk(mixed, i, j, hidden, set(reach([i, j, *chosen], mixed._anterior()))))


def _read(graph: object, latent: Names, selected: Names) -> tuple[MixedGraph, set[int], set[int]]:
    """Return the graph over all its nodes, and the numbers of those that are latent and selected."""
    hidden, chosen = as_names(latent), as_names(selected)
    if isinstance(graph, str):
        text = parse_graph(graph)
        hidden += text.named("latent")
        chosen += text.named("selected")
        graph = text.graph
    read = causal_graph(graph)
    mixed = MixedGraph.from_dag(read) if isinstance(read, DAG) else read
    mixed._check_m_separation()
    if not mixed.is_acyclic():
        raise InvalidGraph(
            "a graph with a directed cycle has no ancestral graph; mk.graphs.sigma_separated reads it"
        )
    numbers = set(mixed._numbers(hidden)), set(mixed._numbers(chosen))
    if both := mixed._named(numbers[0] & numbers[1]):
        raise InvalidArgument(f"{both[0]!r} is both latent and selected; name it once")
    return mixed, *numbers


def _inducing_walk(mixed: MixedGraph, start: int, goal: int, hidden: set[int], opened: set[int]) -> list[int]:
    """Search breadth-first over (node, arrived at an arrowhead?); `opened` holds the colliders that may be passed.

    Where a walk meets a node twice, what lies between can be cut out (a collider made by the cut has a collider below it
    in the part cut out), so the shortest walk is a path.
    """
    first = (start, False)
    before: dict[tuple[int, bool], tuple[int, bool]] = {first: first}
    queue = [first]
    for state in queue:
        node, at_arrow = state
        if node == goal:
            walk = [node]
            while state != first:
                state = before[state]
                walk.append(state[0])
            return walk[::-1]
        for other, edges in mixed._marks[node].items():
            for here, there in edges:
                collider = at_arrow and here is Mark.ARROW
                passes = state == first or (node in opened if collider else node in hidden)
                onward = (other, there is Mark.ARROW)
                if passes and onward not in before:
                    before[onward] = state
                    queue.append(onward)
    return []
