"""Independence statements, and the ones that a graph makes.

A statement x ⊥ y | z is about three disjoint sets of nodes. A graph states *local* independencies (a node
and the rest, given what stands next to it), *pairwise* ones (two nodes that are not adjacent) and *global*
ones (whatever is separated). For DAGs, and for undirected graphs of positive distributions, each list
implies the others. Reference: Koller and Friedman (2009), sections 3.2, 3.3 and 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from markovia.errors import InvalidArgument, TooLarge
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.named import Names, as_names, checked_name, need
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.separation.separation import reachable
from markovia.runtime.shown import InNotebooks

LARGEST_ENUMERATION = 4_000_000  # triples of sets to look at


@dataclass(frozen=True, init=False, repr=False)
class Independence(InNotebooks):
    """The statement that x and y are independent given `given`; x and y can be exchanged.

    Parameters
    ----------
    x, y
        One name or several, at least one.
    given
        One name or several, or none.

    Raises
    ------
    InvalidArgument
        If x or y is empty or the three sets are not disjoint.

    Examples
    --------
    >>> print(Independence(["b", "c"], "a", given="z"))
    a ⊥ {b, c} | z
    >>> Independence("a", "b") == Independence("b", "a")
    True
    """

    x: frozenset[str]
    y: frozenset[str]
    given: frozenset[str]

    def __init__(self, x: Names, y: Names, given: Names = ()) -> None:
        one, two = sorted((_set(x), _set(y)), key=sorted)
        condition = _set(given)
        if not one or not two:
            raise InvalidArgument("an independence is between two sets that are not empty")
        if len(one | two | condition) < len(one) + len(two) + len(condition):
            raise InvalidArgument(
                f"the three sets of an independence are disjoint, got {_text(one, two, condition)}"
            )
        object.__setattr__(self, "x", one)
        object.__setattr__(self, "y", two)
        object.__setattr__(self, "given", condition)

    @property
    def names(self) -> frozenset[str]:
        """All names in the statement."""
        return self.x | self.y | self.given

    def __str__(self) -> str:
        return _text(self.x, self.y, self.given)

    def __repr__(self) -> str:
        return f"Independence({self})"


def local_independencies(graph: DAG | UndirectedGraph) -> list[Independence]:
    """List what each node is independent of, given its parents (DAG) or its neighbours (undirected graph).

    Parameters
    ----------
    graph
        In a DAG a node is independent of its other non-descendants given its parents; in an undirected graph
        of all other nodes given its neighbours.

    Returns
    -------
    list of Independence
        In node order; nodes with nothing to state are left out.

    Examples
    --------
    >>> for statement in local_independencies(DAG([("b", "d"), ("d", "e"), ("c", "e")])):
    ...     print(statement)
    b ⊥ c
    c ⊥ d | b
    b ⊥ e | {c, d}
    {b, d} ⊥ c
    """
    _need_separation(graph)
    everything = set(graph.nodes)
    found: list[Independence] = []
    for name in graph.nodes:
        if isinstance(graph, DAG):
            given = set(graph.parents(name))
            rest = everything - given - graph.descendants(name, include_self=True)
        else:
            given = set(graph.neighbors(name))
            rest = everything - given - {name}
        if rest:
            found.append(Independence(name, rest, given))
    return found


def pairwise_independencies(graph: DAG | UndirectedGraph) -> list[Independence]:
    """List one statement for each pair of nodes that are not adjacent.

    Parameters
    ----------
    graph
        In an undirected graph the two are independent given all other nodes; in a DAG given the other
        non-descendants of the one that comes later in topological order.

    Examples
    --------
    >>> for statement in pairwise_independencies(UndirectedGraph([("a", "b"), ("b", "c")])):
    ...     print(statement)
    a ⊥ c | b
    """
    _need_separation(graph)
    found: list[Independence] = []
    if isinstance(graph, DAG):
        order = graph.topological_order()
        for k, later in enumerate(order):
            around = set(graph.neighbors(later))
            before = set(order) - graph.descendants(later, include_self=True)
            found += [
                Independence(earlier, later, before - {earlier})
                for earlier in order[:k]
                if earlier not in around
            ]
        return found
    everything = set(graph.nodes)
    return [
        Independence(a, b, everything - {a, b})
        for a, b in combinations(graph.nodes, 2)
        if not graph.has_edge(a, b)
    ]


def all_independencies(graph: DAG | UndirectedGraph, pairs_only: bool = False) -> list[Independence]:
    """List every independence that the graph states by separation (its global independencies).

    Each unordered statement is listed once, for sets x and y of any size.

    Parameters
    ----------
    graph
        A small graph: there are up to 4^nodes statements.
    pairs_only
        Whether to list only statements between single nodes, which imply the others in a graph.

    Raises
    ------
    TooLarge
        If there would be more than four million triples to look at.

    Examples
    --------
    >>> collider = DAG([("x1", "x3"), ("x2", "x3"), ("x1", "x4")])
    >>> len(all_independencies(collider)), len(all_independencies(collider, pairs_only=True))
    (9, 7)
    """
    _need_separation(graph)
    n = len(graph)
    cost = n * (n - 1) // 2 * 2 ** max(n - 2, 0) if pairs_only else 4**n
    if cost > LARGEST_ENUMERATION:
        raise TooLarge(
            f"a graph of {n} nodes has about {cost:.1e} triples of sets, over the limit of "
            f"{LARGEST_ENUMERATION:,}; ask d_separated or separated about single statements"
        )
    found: list[Independence] = []
    for size in range(max(n - 1, 0)):
        for given in combinations(graph.nodes, size):
            separated_from = _separation_masks(graph, given)
            if pairs_only:
                names = graph.nodes
                found += [
                    Independence(names[i], names[j], given)
                    for i, j in combinations(range(n), 2)
                    if separated_from[i] >> j & 1
                ]
            else:
                found += [
                    Independence(_members(graph, x), _members(graph, y), given)
                    for x, y in _set_pairs(separated_from)
                ]
    return found


def _need_separation(graph: DAG | UndirectedGraph) -> None:
    need(graph, DAG, UndirectedGraph, instead={"MixedGraph": "use its .m_separated for single questions"})


def _separation_masks(graph: DAG | UndirectedGraph, given: tuple[str, ...]) -> list[int]:
    """Return, for each node outside `given`, the bit set of the nodes outside `given` separated from it."""
    outside = (1 << len(graph)) - 1
    for i in graph._numbers(given):
        outside &= ~(1 << i)
    masks = [0] * len(graph)
    if isinstance(graph, DAG):
        for name in graph.nodes:
            if name not in given:
                masks[graph._number(name)] = outside & ~_mask(graph, reachable(graph, name, given))
    else:
        for part in graph.subgraph(n for n in graph if n not in given).connected_components():
            for name in part:
                masks[graph._number(name)] = outside & ~_mask(graph, part)
    return masks


def _set_pairs(separated_from: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the unordered pairs of disjoint sets whose members are separated one by one.

    In a graph, sets are separated as soon as their members are, so x can grow node by node while the set of
    nodes separated from all of x shrinks. The smallest node of both sets is in x, which makes pairs
    unordered.
    """
    n = len(separated_from)
    for first in range(n):
        later = -1 << (first + 1)
        stack = [(1 << first, separated_from[first] & later, first + 1)]
        while stack:
            x, common, start = stack.pop()
            y = common & ~x
            subset = y
            while subset:
                yield x, subset
                subset = (subset - 1) & y
            for node in range(start, n):
                rest = common & separated_from[node]
                if rest:
                    stack.append((x | 1 << node, rest, node + 1))


def _mask(graph: DAG | UndirectedGraph, names: Names) -> int:
    return sum(1 << i for i in graph._numbers(names))


def _members(graph: DAG | UndirectedGraph, mask: int) -> list[str]:
    return [name for i, name in enumerate(graph.nodes) if mask >> i & 1]


def _set(names: Names) -> frozenset[str]:
    return frozenset(checked_name(name) for name in as_names(names))


def _text(x: frozenset[str], y: frozenset[str], given: frozenset[str]) -> str:
    def listed(names: frozenset[str]) -> str:
        text = ", ".join(sorted(names))
        return text if len(names) == 1 else f"{{{text}}}"

    return f"{listed(x)} ⊥ {listed(y)}" + (f" | {listed(given)}" if given else "")
