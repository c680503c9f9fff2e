"""The moves between equivalence classes: insert, delete and turn an edge of some member.

- Insert(x, y, T) and Delete(x, y, H): Chickering, *Optimal structure identification with greedy search*, JMLR 3 (2002).
- Turn(x, y, C): Hauser and Buehlmann, *Characterization and greedy learning of interventional Markov equivalence classes*,
  JMLR 13 (2012).

All are written the same way: C is the set of undirected neighbours of y that are its parents in the member that is changed,
and x -> y is the edge that is put in, taken out, or turned round. An operator's gain and the cliques it needs depend only on
the surroundings of y and on which of y's neighbours are adjacent to x; whether paths forbid it depends on the whole
graph, so that is looked at last.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markovia.graphs.kinds.masks import members
from markovia.structure.classes_and_orders.cpdag_changes import Change, LocalMember
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph
from markovia.structure.scores.family_rows import LEAST_GAIN, FamilyRows


class Operator(NamedTuple):
    """A move: what it gains, its kind, the edge x -> y, and C."""

    gain: float
    kind: str
    x: int
    y: int
    clique: int


def insert_bases(graph: ClassGraph, y: int, most: int) -> list[tuple[int, int]]:
    """Return the rows of scores (y, parents) that the insertions into y need."""
    parents = graph.parents[y]
    room = most - 1 - parents.bit_count()
    return [] if room < 0 else [(y, parents | clique) for clique in graph.cliques(graph.joined[y], room)]


def inserts(
    graph: ClassGraph, rows: FamilyRows, y: int, most: int, source: int | None = None
) -> list[Operator]:
    """Return the insertions of edges into y that gain.

    C is a clique of neighbours of y that holds all those adjacent to x.

    Parameters
    ----------
    graph, rows
        The class and the scores.
    y
        The head.
    most
        The largest number of parents.
    source
        The one tail that is looked at; None for all that may be joined to y and are not.
    """
    found: list[Operator] = []
    parents, joined, adjacent = graph.parents[y], graph.joined[y], graph.adjacent
    # tails are many and neighbours few: shifting a long mask for each tail would cost more than the rest
    near = {y, *members(adjacent[y])}
    room = most - 1 - parents.bit_count()
    if room < 0 or source in near:
        return found
    for clique in graph.cliques(joined, room):
        tails, gains = rows.gains(y, parents | clique)
        outside = joined & ~clique
        if source is not None:
            at = tails == source
            tails, gains = tails[at], gains[at]
        found.extend(
            Operator(gain, "insert", x, y, clique)
            for x, gain in zip(tails.tolist(), gains.tolist(), strict=True)
            if x not in near and not (outside and outside & adjacent[x])
        )
    return found


class Candidate(NamedTuple):
    """A move that is not scored yet: its gain is the sum of the families (child, parents) it makes less those it loses."""

    kind: str
    x: int
    y: int
    clique: int
    makes: tuple[tuple[int, int], ...]
    loses: tuple[tuple[int, int], ...]


def scored(rows: FamilyRows, candidates: Sequence[Candidate]) -> list[Operator]:
    """Return the candidates that gain, all families computed together."""
    rows.know([family for c in candidates for family in (*c.makes, *c.loses)])
    found = []
    for c in candidates:
        gain = sum(rows.local(*made) - rows.local(*lost) for made, lost in zip(c.makes, c.loses, strict=True))
        if gain > LEAST_GAIN:
            found.append(Operator(gain, c.kind, c.x, c.y, c.clique))
    return found


def deletes(graph: ClassGraph, y: int) -> list[Candidate]:
    """Return the deletions of edges x -> y or x - y; C is a clique of neighbours common to both."""
    found: list[Candidate] = []
    parents, joined = graph.parents[y], graph.joined[y]
    for x in members(parents | joined):
        bit = 1 << x
        common = joined & graph.adjacent[x] & ~bit
        for clique in graph.cliques(common, graph.n):
            base = (parents | clique) & ~bit
            found.append(Candidate("delete", x, y, clique, ((y, base),), ((y, base | bit),)))
    return found


def turns(graph: ClassGraph, y: int, most: int) -> list[Candidate]:
    """Return the edges y -> x or y - x that some member of a neighbouring class has as x -> y instead.

    For y -> x, C is a clique of neighbours of y that holds those adjacent to x. For y - x, C has a member that is not
    adjacent to x, and what of it is adjacent to x parts the rest of C from the other common neighbours.
    """
    found: list[Candidate] = []
    parents, joined, adjacent = graph.parents[y], graph.joined[y], graph.adjacent
    room = most - 1 - parents.bit_count()
    if room < 0:
        return found
    for x in members(graph.children[y]):
        bit = 1 << x
        needed = joined & adjacent[x]
        other = graph.parents[x]
        for clique in graph.cliques(joined, room):
            if needed & ~clique:
                continue
            base = parents | clique
            makes, loses = ((y, base | bit), (x, other & ~(1 << y))), ((y, base), (x, other))
            found.append(Candidate("turn", x, y, clique, makes, loses))
    for x in members(joined):
        bit = 1 << x
        common = joined & adjacent[x]
        if not joined & ~common & ~bit:
            continue
        for clique in graph.cliques(joined & ~bit, room):
            outer, inner = clique & ~common, clique & common
            if outer and graph.separates(joined & ~bit, inner, outer, common & ~clique):
                base, other = parents | clique, graph.parents[x] | inner
                makes, loses = ((y, base | bit), (x, other)), ((y, base), (x, other | 1 << y))
                found.append(Candidate("turn", x, y, clique, makes, loses))
    return found


def closing_path(graph: ClassGraph, move: Operator) -> list[int] | None:
    """Return a path that makes the new edge close a cycle in every member, or None."""
    x, y, clique = move.x, move.y, move.clique
    if move.kind == "insert":
        return graph.path(y, x, clique)
    if move.kind == "turn" and graph.children[y] >> x & 1:
        return graph.path(y, x, clique | graph.joined[x], direct=False)
    return None


def after(graph: ClassGraph, move: Operator) -> Change | None:
    """Return what the move changes in the class; None if the move cannot be made."""
    x, y = move.x, move.y
    before = members(move.clique)
    together = bool(graph.joined[y] >> x & 1)
    if move.kind == "delete":
        starts = [(*before, x, y)] if together else [(*before, y)]
    elif move.kind == "turn":
        starts = [(*before, y, x)] if together else [(*before, y), (x,)]
    else:
        starts = [(*before, y)]
    member = LocalMember(graph)
    if not all(member.orient(start) for start in starts):
        return None
    if move.kind == "delete":
        return member.changed({y: member.parents(y) & ~(1 << x)})
    families = {y: member.parents(y) | 1 << x}
    if move.kind == "turn":
        families[x] = member.parents(x) & ~(1 << y)
    return member.changed(families)
