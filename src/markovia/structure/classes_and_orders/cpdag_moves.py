"""The moves between equivalence classes: insert, delete and turn an edge of some member.

- Insert(x, y, T) and Delete(x, y, H): Chickering, *Optimal structure identification with greedy search*, JMLR 3 (2002).
- Turn(x, y, C): Hauser and Buehlmann, *Characterization and greedy learning of interventional Markov equivalence classes*,
  JMLR 13 (2012).

All are written the same way: C is the set of undirected neighbours of y that are its parents in the member that is changed,
and x -> y is the edge that is put in, taken out, or turned round. An operator's gain and the cliques it needs depend only on
the surroundings of y and on which of y's neighbours are adjacent to x; whether paths forbid it depends on the whole
graph, so that is looked at last.
"""

from typing import NamedTuple

import numpy as np

from markovia.graphs.masks import members
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph
from markovia.structure.scores.family_rows import FamilyRows

LEAST_GAIN = 1e-7
"""What a move has to gain, so that rounding is no gain."""


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


def inserts(graph: ClassGraph, rows: FamilyRows, y: int, sources: int, most: int) -> list[Operator]:
    """Return the insertions of edges into y from some variables that gain.

    C is a clique of neighbours of y that holds all those adjacent to x.

    Parameters
    ----------
    graph, rows
        The class and the scores.
    y
        The head.
    sources
        A mask of the tails that are looked at; those adjacent to y are left out.
    most
        The largest number of parents.
    """
    found: list[Operator] = []
    parents, joined, adjacent = graph.parents[y], graph.joined[y], graph.adjacent
    sources &= ~(adjacent[y] | 1 << y)
    room = most - 1 - parents.bit_count()
    if room < 0 or not sources:
        return found
    for clique in graph.cliques(joined, room):
        base = parents | clique
        gains = rows.row(y, base) - rows.local(y, base)
        outside = joined & ~clique
        found.extend(
            Operator(float(gains[x]), "insert", x, y, clique)
            for x in np.flatnonzero(gains > LEAST_GAIN).tolist()
            if sources >> x & 1 and not outside & adjacent[x]
        )
    return found


def deletes(graph: ClassGraph, rows: FamilyRows, y: int) -> list[Operator]:
    """Return the deletions of edges x -> y or x - y that gain; C is a clique of neighbours common to both."""
    found: list[Operator] = []
    parents, joined = graph.parents[y], graph.joined[y]
    for x in members(parents | joined):
        bit = 1 << x
        common = joined & graph.adjacent[x] & ~bit
        for clique in graph.cliques(common, graph.n):
            base = (parents | clique) & ~bit
            gain = rows.local(y, base) - rows.local(y, base | bit)
            if gain > LEAST_GAIN:
                found.append(Operator(gain, "delete", x, y, clique))
    return found


def turns(graph: ClassGraph, rows: FamilyRows, y: int, most: int) -> list[Operator]:
    """Return the edges y -> x or y - x that gain when some member of the class has them as x -> y instead.

    For y -> x, C is a clique of neighbours of y that holds those adjacent to x. For y - x, C has a member that is not
    adjacent to x, and what of it is adjacent to x parts the rest of C from the other common neighbours.
    """
    found: list[Operator] = []
    parents, joined, adjacent = graph.parents[y], graph.joined[y], graph.adjacent
    room = most - 1 - parents.bit_count()
    if room < 0:
        return found
    for x in members(graph.children[y]):
        bit = 1 << x
        needed = joined & adjacent[x]
        before = graph.parents[x]
        lost = rows.local(x, before & ~(1 << y)) - rows.local(x, before)
        for clique in graph.cliques(joined, room):
            if needed & ~clique:
                continue
            base = parents | clique
            gain = lost + rows.local(y, base | bit) - rows.local(y, base)
            if gain > LEAST_GAIN:
                found.append(Operator(gain, "turn", x, y, clique))
    for x in members(joined):
        bit = 1 << x
        common = joined & adjacent[x]
        if not joined & ~common & ~bit:
            continue
        for clique in graph.cliques(joined & ~bit, room):
            outer, inner = clique & ~common, clique & common
            if not outer:
                continue
            base, other = parents | clique, graph.parents[x] | inner
            gain = rows.local(y, base | bit) - rows.local(y, base)
            gain += rows.local(x, other) - rows.local(x, other | 1 << y)
            if gain > LEAST_GAIN and graph.separates(joined & ~bit, inner, outer, common & ~clique):
                found.append(Operator(gain, "turn", x, y, clique))
    return found


def allowed_by_paths(graph: ClassGraph, move: Operator) -> bool:
    """Say whether no path makes the new edge close a cycle in every member."""
    x, y, clique = move.x, move.y, move.clique
    if move.kind == "insert":
        return not graph.reaches(y, x, clique)
    if move.kind == "turn" and graph.children[y] >> x & 1:
        return not graph.reaches(y, x, clique | graph.joined[x], direct=False)
    return True


def after(graph: ClassGraph, move: Operator) -> list[int] | None:
    """Return a member of the class that the move leads to, as masks of parents; None if the move cannot be made."""
    x, y = move.x, move.y
    before = members(move.clique)
    together = bool(graph.joined[y] >> x & 1)
    if move.kind == "delete":
        dag = graph.member((*before, x, y)) if together else graph.member((*before, y))
    elif move.kind == "turn":
        dag = graph.member((*before, y, x)) if together else graph.member((*before, y), (x,))
    else:
        dag = graph.member((*before, y))
    if dag is None:
        return None
    if move.kind == "delete":
        dag[y] &= ~(1 << x)
        return dag
    dag[x] &= ~(1 << y)
    dag[y] |= 1 << x
    return dag
