"""Trails: the ways in which two nodes of a DAG depend on each other, so that a reader sees why.

A trail is a path that visits no node twice and may follow edges in either direction. An inner node is a
*collider* where both edges point at it, a *fork* where both leave it, and part of a *chain* otherwise.
Given some observed nodes a trail is open if every collider on it is observed or has an observed descendant,
and nothing else on it is observed; two nodes are d-separated if and only if no trail between them is open.

Trails come shortest first: a best-first search is led by the exact distance to the goal in the graph of
(node, direction of arrival), which ignores only that nodes must not repeat. The number of trails can be
exponential in the size of the graph, hence `limit`. To decide separation use `d_separated`, which is
linear. Reference: Koller and Friedman (2009), section 3.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice, pairwise
from typing import Literal

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import reach
from markovia.graphs.kinds.named import Names, need
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class Junction(InNotebooks):
    """An inner node of a trail and what it does there.

    `kind` is chain, fork or collider; `open` says whether the trail passes; `witness` is the observed node
    that opens a collider (itself or a descendant) and None otherwise.
    """

    node: str
    kind: Literal["chain", "fork", "collider"]
    open: bool
    witness: str | None = None

    def __str__(self) -> str:
        if self.kind == "collider":
            if not self.open:
                return f"{self.node} is a collider, and neither it nor a descendant is observed: blocked"
            how = "observed" if self.witness == self.node else f"above the observed {self.witness}"
            return f"{self.node} is a collider and {how}: open"
        return (
            f"{self.node} is a {self.kind} and {'not observed: open' if self.open else 'observed: blocked'}"
        )


@dataclass(frozen=True)
class Trail(InNotebooks):
    """A trail through a DAG, seen with some nodes observed.

    `arrows[k]` is `"->"` or `"<-"` between `nodes[k]` and `nodes[k + 1]`; `junctions` describes the inner
    nodes; `given` is what was observed.

    Examples
    --------
    >>> g = DAG([("burglar", "alarm"), ("quake", "alarm"), ("alarm", "call")])
    >>> trail = open_trails(g, "burglar", "quake", given="call")[0]
    >>> print(trail)
    burglar -> alarm <- quake
    >>> print(trail.explain())
    burglar -> alarm <- quake (open)
      alarm is a collider and above the observed call: open
    """

    nodes: tuple[str, ...]
    arrows: tuple[str, ...]
    junctions: tuple[Junction, ...]
    given: frozenset[str]

    @property
    def blocked_by(self) -> list[str]:
        """The nodes at which the trail is blocked; an observed end blocks it too. Empty for an open trail."""
        inner = {junction.node for junction in self.junctions if not junction.open}
        ends = {node for node in (self.nodes[0], self.nodes[-1]) if node in self.given}
        return [node for node in self.nodes if node in inner or node in ends]

    @property
    def is_open(self) -> bool:
        """Whether dependence flows along the trail."""
        return not self.blocked_by

    def __str__(self) -> str:
        return self.nodes[0] + "".join(f" {a} {n}" for a, n in zip(self.arrows, self.nodes[1:], strict=True))

    def explain(self) -> str:
        """Return the trail and one line for each inner node that says why it is open or blocked."""
        lines = [f"{self} ({'open' if self.is_open else 'blocked'})"]
        ends = (self.nodes[0], self.nodes[-1])
        lines += [f"  {node} is an end and observed: blocked" for node in ends if node in self.given]
        return "\n".join(lines + [f"  {junction}" for junction in self.junctions])


def open_trails(dag: DAG, x: str, y: str, given: Names = (), limit: int = 100) -> list[Trail]:
    """List the open trails between two nodes, shortest first.

    Parameters
    ----------
    dag
        A directed acyclic graph.
    x, y
        Two different nodes.
    given
        The observed nodes.
    limit
        The largest number of trails to return; there can be exponentially many.

    Returns
    -------
    list of Trail
        Empty if and only if x and y are d-separated given `given`.

    Raises
    ------
    UnknownVariable
        If a name is not in the graph.
    InvalidArgument
        If x and y are one node.

    Examples
    --------
    >>> g = DAG([("smoke", "lung"), ("smoke", "bronc"), ("lung", "dysp"), ("bronc", "dysp")])
    >>> [str(t) for t in open_trails(g, "lung", "bronc")]
    ['lung <- smoke -> bronc']
    >>> [str(t) for t in open_trails(g, "lung", "bronc", given=["smoke", "dysp"])]
    ['lung -> dysp <- bronc']
    """
    return list(islice(every_trail(dag, x, y, given, only_open=True), limit))


def trails(dag: DAG, x: str, y: str, given: Names = (), limit: int = 1000) -> list[Trail]:
    """List the trails between two nodes, open or blocked, shortest first.

    Parameters
    ----------
    dag, x, y, given, limit
        As for `open_trails`.

    Returns
    -------
    list of Trail
        Each says at which nodes it is blocked (`blocked_by`).

    Examples
    --------
    >>> g = DAG([("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")])
    >>> for trail in trails(g, "a", "c", given="b"):
    ...     print(trail, trail.blocked_by)
    a -> b -> c ['b']
    a -> d <- c ['d']
    """
    return list(islice(every_trail(dag, x, y, given), limit))


def is_active(dag: DAG, trail: Trail | Sequence[str], given: Names = ()) -> bool:
    """Decide whether a trail, or the sequence of its nodes, is open given some observed nodes.

    Parameters
    ----------
    dag
        A directed acyclic graph.
    trail
        A `Trail`, or nodes of which each is adjacent to the next and none is repeated.
    given
        The observed nodes.

    Raises
    ------
    InvalidGraph
        If the nodes are not a trail of the graph.

    Examples
    --------
    >>> g = DAG([("a", "c"), ("b", "c")])
    >>> is_active(g, ["a", "c", "b"]), is_active(g, ["a", "c", "b"], given="c")
    (False, True)
    """
    need(dag, DAG)
    nodes = trail.nodes if isinstance(trail, Trail) else tuple(trail)
    path = [dag._number(name) for name in nodes]
    if len(path) < 2 or len(set(path)) < len(path):
        raise InvalidGraph(f"a trail visits two or more different nodes, got {', '.join(nodes)}")
    for i, j in pairwise(path):
        if not dag._linked(i, j) and not dag._linked(j, i):
            raise InvalidGraph(
                f"{dag._names[i]} and {dag._names[j]} are not adjacent, so this is not a trail"
            )
    return _described(dag, path, set(dag._numbers(given)), None).is_open


def every_trail(dag: DAG, x: str, y: str, given: Names = (), only_open: bool = False) -> Iterator[Trail]:
    """Yield the trails between two nodes one by one, shortest first, or only the open ones.

    Parameters
    ----------
    dag, x, y, given
        As for `open_trails`.
    only_open
        Whether to leave out blocked trails, which are then never walked.

    Examples
    --------
    >>> [str(trail) for trail in every_trail(DAG([("a", "b"), ("c", "b")]), "a", "c")]
    ['a -> b <- c']
    """
    need(dag, DAG)
    start, goal = dag._number(x), dag._number(y)
    observed = set(dag._numbers(given))
    if start == goal:
        raise InvalidArgument(f"a trail joins two different nodes, got {x!r} twice")
    if only_open and not observed.isdisjoint((start, goal)):
        return
    opens = set(reach(observed, dag._parents))
    # to walk any trail, a chain or fork never blocks and a collider always passes
    blocking = observed if only_open else set[int]()
    passing = opens if only_open else set(range(len(dag)))
    distance = _distances(dag, goal, blocking, passing)
    if (start, False) not in distance:
        return
    heap: list[tuple[int, tuple[int, ...], bool]] = [(distance[start, False], (start,), False)]
    while heap:
        _, path, at_arrow = heappop(heap)
        node = path[-1]
        if node == goal:
            yield _described(dag, path, observed, opens)
            continue
        steps: list[tuple[int, bool]] = []
        if node not in blocking:
            steps += [(child, True) for child in dag._children[node]]
        if (node in passing) if at_arrow else (node not in blocking):
            steps += [(parent, False) for parent in dag._parents[node]]
        for step in steps:
            if step in distance and step[0] not in path:
                heappush(heap, (len(path) + distance[step], (*path, step[0]), step[1]))


def _distances(dag: DAG, goal: int, blocking: set[int], passing: set[int]) -> dict[tuple[int, bool], int]:
    """Count the steps to the goal from each (node, did the last edge point at it?), repeats allowed."""
    distance = {(goal, True): 0, (goal, False): 0}
    queue = list(distance)
    for state in queue:
        node, at_arrow = state
        before: list[tuple[int, bool]] = []
        for other in dag._parents[node] if at_arrow else dag._children[node]:
            if other not in blocking:
                before.append((other, False))
            if (other not in blocking) if at_arrow else (other in passing):
                before.append((other, True))
        for earlier in before:
            if earlier not in distance:
                distance[earlier] = distance[state] + 1
                queue.append(earlier)
    return distance


def _described(dag: DAG, path: Sequence[int], observed: set[int], opens: set[int] | None) -> Trail:
    opens = set(reach(observed, dag._parents)) if opens is None else opens
    downwards = [dag._linked(i, j) for i, j in pairwise(path)]
    junctions: list[Junction] = []
    for node, into, out in zip(path[1:-1], downwards, downwards[1:], strict=False):
        name = dag._names[node]
        if into and not out:
            witness = dag._names[_nearest_below(dag, node, observed)] if node in opens else None
            junctions.append(Junction(name, "collider", node in opens, witness))
        else:
            junctions.append(Junction(name, "chain" if into == out else "fork", node not in observed))
    return Trail(
        tuple(dag._named(path)),
        tuple("->" if down else "<-" for down in downwards),
        tuple(junctions),
        frozenset(dag._named(observed)),
    )


def _nearest_below(dag: DAG, node: int, observed: set[int]) -> int:
    return next(i for i in reach([node], dag._children) if i in observed)
