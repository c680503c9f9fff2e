"""What matters to decisions, read off the graph: requisite information, orders of solution, arcs of perfect recall.

The graph has chance nodes, decisions (whose parents are what they see) and utilities (leaves). An observation of a decision
is requisite if, given what else is seen and chosen, it still tells something of the utilities below the decision; all
others may be dropped without loss, one decision after the other until nothing changes. A decision is extremal if, given
its family, the utilities below it are independent of the families of all others: then its best rule does not depend on
theirs. A diagram that can be emptied by taking out extremal decisions is soluble, in that order.
References: Lauritzen and Nilsson (2001), "Representing and solving decision problems with limited information";
Nielsen and Jensen (1999) on requisite pasts; Shachter (1998) for the search behind separation.
Cost: one search of the graph for each decision and round.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.separation.separation import reachable, visited_from

Parents: TypeAlias = dict[str, tuple[str, ...]]


def requisite_parents(
    parents: Mapping[str, Sequence[str]],
    decisions: Collection[str],
    utilities: Collection[str],
    keep: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Parents:
    """Return the parents of all nodes without the observations of decisions that do not matter to any utility.

    Parameters
    ----------
    parents
        The parents of every node.
    decisions, utilities
        Which nodes are decisions and utilities.
    keep
        Observations of decisions that stay in any case.

    Examples
    --------
    >>> graph = {"x": [], "noise": [], "d": ["x", "noise"], "u": ["x", "d"]}
    >>> requisite_parents(graph, ["d"], ["u"])["d"]
    ('x',)
    """
    kept: Parents = {n: tuple(q) for n, q in parents.items()}
    dag = DAG.from_parents(kept)
    worth = {*utilities}
    later_first = [n for n in reversed(dag.topological_order()) if n in set(decisions)]
    changed = True
    while changed:
        changed = False
        for d in later_first:
            if not kept[d]:
                continue
            below = [u for u in dag.descendants([d]) if u in worth]
            visited = visited_from(dag, below, [d, *kept[d]]) if below else set()
            needed = tuple(q for q in kept[d] if q in visited or q in keep.get(d, ()))
            if needed != kept[d]:
                for q in {*kept[d]} - {*needed}:
                    dag.remove_edge(q, d)
                kept[d] = needed
                changed = True
    return kept


def solution_order(
    parents: Mapping[str, Sequence[str]], decisions: Collection[str], utilities: Collection[str]
) -> list[str] | None:
    """Return the decisions in an order in which each one's best rule does not depend on those after it; None if none is.

    Examples
    --------
    >>> solution_order({"a": [], "b": ["a"], "u": ["a", "b"]}, ["a", "b"], ["u"])
    ['b', 'a']
    >>> solution_order({"a": [], "b": [], "u": ["a", "b"]}, ["a", "b"], ["u"]) is None
    True
    """
    dag = DAG.from_parents(parents)
    worth = {*utilities}
    left = [n for n in reversed(dag.topological_order()) if n in set(decisions)]
    order: list[str] = []
    while left:
        for d in left:
            family = [d, *parents[d]]
            below = [u for u in dag.descendants([d]) if u in worth]
            others = {n for e in left if e != d for n in (e, *parents[e])}.difference(family)
            if not below or not others or others.isdisjoint(reachable(dag, below, family)):
                break
        else:
            return None
        order.append(d)
        left.remove(d)
    return order


def decision_order(
    parents: Mapping[str, Sequence[str]], decisions: Collection[str], order: Sequence[str] | None = None
) -> list[str]:
    """Return the decisions in the order in which they are made: the one that the paths through the graph leave.

    Parameters
    ----------
    parents, decisions
        As in `requisite_parents`.
    order
        An order to take, where the paths leave several; it has to agree with them.

    Raises
    ------
    InvalidArgument
        If two decisions are not joined by a path and no order is given, or if the order disagrees with the graph.
    """
    dag = DAG.from_parents(parents)
    inside = set(decisions)
    listed = [n for n in dag.topological_order() if n in inside]
    below = {d: inside & set(dag.descendants([d])) - {d} for d in listed}
    if order is not None:
        check_known(order, listed, "the decisions")
        if sorted(order) != sorted(listed):
            raise InvalidArgument(f"order= lists every decision once: {', '.join(listed)}")
        for k, d in enumerate(order):
            if wrong := below[d] & {*order[:k]}:
                raise InvalidArgument(f"order= has {min(wrong)!r} before {d!r}, but it depends on {d!r}")
        return list(order)
    listed.sort(key=lambda d: -len(below[d]))
    for a, b in pairwise(listed):
        if b not in below[a]:
            raise InvalidArgument(
                f"no path of the graph says whether {a!r} or {b!r} is decided first, and perfect recall depends on it; "
                f"say order=[...] with all decisions"
            )
    return listed


def recall_parents(parents: Mapping[str, Sequence[str]], order: Sequence[str]) -> Parents:
    """Return the parents of all nodes where each decision also sees what earlier ones saw and chose.

    Examples
    --------
    >>> recall_parents({"x": [], "a": ["x"], "b": ["a"], "c": []}, ["a", "b", "c"])["c"]
    ('x', 'a', 'b')
    """
    found: Parents = {n: tuple(q) for n, q in parents.items()}
    past: dict[str, None] = {}
    for d in order:
        own = found[d]
        found[d] = (*own, *(n for n in past if n not in own))
        past.update(dict.fromkeys([*own, d]))
    return found


def informed_parents(
    parents: Mapping[str, Sequence[str]], order: Sequence[str], hidden: Collection[str]
) -> Parents:
    """Return the parents of all nodes where each decision sees every hidden node that does not depend on it or later ones.

    No policy of the drawn diagram is worth more than the best one here: what is seen can be ignored.
    """
    dag = DAG.from_parents(recall_parents(parents, order))
    found: Parents = {n: tuple(dag.parents(n)) for n in parents}
    for k, d in enumerate(order):
        later = set(dag.descendants([*order[k:]])) | {*order[k:]}
        found[d] = (*found[d], *(n for n in hidden if n not in later and n not in found[d]))
    return found
