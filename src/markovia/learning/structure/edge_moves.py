"""The neighbours of a directed acyclic graph: what adding, removing or reversing each edge gains.

Gains are kept in matrices, and a move only recomputes the columns of the nodes whose parents it changed. Which nodes reach
which is kept too, so legal moves are read off without searching the graph. Cost of a step: one pass over the n x n matrices,
and the scores of one or two children with each further parent.
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.graphs.directed import DAG
from markovia.learning.structure.knowledge import Rules
from markovia.learning.structure.scores import Family, LocalScore

Flags = NDArray[np.bool_]

ADD, REMOVE, REVERSE = 0, 1, 2
WORDS = ("add", "remove", "reverse")
TINY = 1e-9
"""Gains below this share of the score are rounding."""
MOST_KEPT = 2**24
"""Gains that are kept for parents that a node had before."""


class Move(NamedTuple):
    """What is done to the edge tail -> head, and what it gains."""

    gain: float
    what: int
    tail: int
    head: int


class EdgeMoves:
    """A graph, its score, and the gains of all moves.

    Parameters
    ----------
    score
        The score.
    rules
        What is known; moves that break it do not exist, nor do new edges at columns with a single state.
    edges
        `edges[i, j]`: the graph has the edge i -> j.

    Attributes
    ----------
    edges, parents
        The graph as a matrix, and each node's parents in increasing order.
    blocked
        `blocked[i, j]`: there is a directed path from j to i (also where i is j), so i -> j would make a cycle.
    total
        The score of the graph.
    """

    def __init__(self, score: LocalScore, rules: Rules, edges: Flags) -> None:
        self.score = score
        self.rules = rules
        self.n = score.n
        # a column with a single state gains and loses nothing by any edge
        varied = score.data.cards != 1
        self._may = np.ascontiguousarray(rules.allowed.T & varied[:, None] & varied)
        self._columns: dict[Family, tuple[float, Array, Array]] = {}
        self.restart(edges)

    def restart(self, edges: Flags) -> None:
        """Go to another graph."""
        self.edges = edges.copy()
        self.parents: list[list[int]] = [np.flatnonzero(column).tolist() for column in edges.T]
        self.now = np.zeros(self.n)
        self.gain_add = np.full((self.n, self.n), -np.inf)
        self.gain_remove = np.full((self.n, self.n), -np.inf)
        self.refresh(range(self.n))
        self._find_blocked()

    @property
    def total(self) -> float:
        """The score of the graph."""
        return float(self.now.sum())

    def refresh(self, children: Iterable[int]) -> None:
        """Recompute the gains of the moves that change the parents of some nodes."""
        asked: list[tuple[int, list[int], NDArray[np.int64]]] = []
        families = []
        for child in children:
            own = self.parents[child]
            key = (child, tuple(own))
            kept = self._columns.get(key)
            if kept is not None:
                self.now[child], self.gain_add[:, child], self.gain_remove[:, child] = kept
                continue
            room = len(own) < self.rules.max_parents
            free = (self._may[child] & ~self.edges[:, child] & room).nonzero()[0]
            asked.append((child, own, free))
            families.append(key)
            families.extend((child, tuple(own[:i] + own[i + 1 :])) for i in range(len(own)))
        if not asked:
            return
        values = iter(self.score.many(families).tolist())
        for (child, own, free), found in zip(asked, self.score.added_batch(asked), strict=True):
            now = next(values)
            add, remove = np.full(self.n, -np.inf), np.full(self.n, -np.inf)
            add[free] = found - now
            for p in own:
                after = next(values)
                if not self.rules.required[p, child]:
                    remove[p] = after - now
            self.now[child], self.gain_add[:, child], self.gain_remove[:, child] = now, add, remove
            if len(self._columns) * self.n < MOST_KEPT:
                self._columns[child, tuple(own)] = (now, add, remove)

    def gains(self) -> "Gains":
        """Return what each move gains; minus infinity where it is not legal."""
        adds = np.where(self.blocked, -np.inf, self.gain_add)
        tails, heads = np.nonzero(self.edges)
        removes = self.gain_remove[tails, heads]
        # to be reversed, an edge must be the only directed path from its tail to its head
        ways = np.count_nonzero(self.edges[tails] & self.blocked[heads], axis=1) if len(tails) else 0
        turns = np.where(ways == 1, removes + self.gain_add[heads, tails], -np.inf)
        return Gains(adds, tails, heads, removes, turns)

    def best(self) -> Move | None:
        """Return the move that gains most, or None where no move is legal; of those equal but for rounding the first."""
        return self.gains().best(self.rounding)

    @property
    def rounding(self) -> float:
        """What counts as no gain."""
        return TINY * max(1.0, abs(self.total) * 1e-3)

    def apply(self, what: int, tail: int, head: int) -> None:
        """Make a move and bring the gains up to date."""
        if what == ADD:
            self.edges[tail, head] = True
            insort(self.parents[head], tail)
            self.blocked |= self.blocked[:, head, None] & self.blocked[tail]
            self.refresh([head])
            return
        if what == REMOVE:
            self.edges[tail, head] = False
            self.parents[head].remove(tail)
            self.refresh([head])
        else:
            self._turn(tail, head)
            self.refresh([head, tail])
        self._find_blocked()

    def _turn(self, tail: int, head: int) -> None:
        self.edges[tail, head], self.edges[head, tail] = False, True
        self.parents[head].remove(tail)
        insort(self.parents[tail], head)

    def walk_in_class(self, tries: int, rng: np.random.Generator) -> int:
        """Reverse random covered edges, which leads to equivalent graphs; return how many were reversed.

        An edge is covered if its head has the same parents as its tail, and the tail.
        """
        tails, heads = np.nonzero(self.edges & self._may & ~self.rules.required)
        if not len(tails):
            return 0
        ends = list(zip(tails.tolist(), heads.tolist(), strict=True))
        sizes = [len(own) for own in self.parents]
        touched: set[int] = set()
        done = 0
        for k in rng.integers(len(ends), size=tries).tolist():
            tail, head = ends[k]
            if sizes[head] == sizes[tail] + 1:
                above = self.parents[tail].copy()
                insort(above, tail)
                if above == self.parents[head]:
                    self._turn(tail, head)
                    sizes[head], sizes[tail] = sizes[tail], sizes[head]
                    ends[k] = (head, tail)
                    touched.update((tail, head))
                    done += 1
        if touched:
            self.refresh(sorted(touched))
            self._find_blocked()
        return done

    def disturb(self, steps: int, rng: np.random.Generator) -> None:
        """Make random legal moves."""
        for _ in range(steps):
            gains = self.gains()
            ends = np.column_stack([gains.tails, gains.heads])
            choices = [
                np.argwhere(np.isfinite(gains.adds)),
                ends[np.isfinite(gains.removes)],
                ends[np.isfinite(gains.turns)],
            ]
            kinds = [k for k, own in enumerate(choices) if len(own)]
            if not kinds:
                return
            what = kinds[int(rng.integers(len(kinds)))]
            tail, head = choices[what][int(rng.integers(len(choices[what])))].tolist()
            self.apply(what, tail, head)

    def _find_blocked(self) -> None:
        n = self.n
        below: list[list[int]] = [[] for _ in range(n)]
        for node, own in enumerate(self.parents):
            for parent in own:
                below[parent].append(node)
        waiting = [len(own) for own in self.parents]
        above = [1 << node for node in range(n)]
        ready = [node for node in range(n) if not waiting[node]]
        while ready:
            node = ready.pop()
            mask = above[node]
            for child in below[node]:
                above[child] |= mask
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        size = -(-n // 8)
        packed = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in above), dtype=np.uint8)
        flags = np.unpackbits(packed.reshape(n, size), axis=1, count=n, bitorder="little")
        self.blocked: Flags = flags.astype(bool)


@dataclass
class Gains:
    """What each move gains: `adds[i, j]` for i -> j; for the edges tails -> heads what removing and reversing them does."""

    adds: Array
    tails: NDArray[np.int64]
    heads: NDArray[np.int64]
    removes: Array
    turns: Array

    def best(self, rounding: float) -> Move | None:
        """Return the move that gains most, or None where no move is legal; of those equal but for rounding the first."""
        found: Move | None = None
        for what, gains in enumerate((self.adds, self.removes, self.turns)):
            if not gains.size:
                continue
            top = float(gains.max())
            if np.isfinite(top) and (found is None or top > found.gain + rounding):
                at = int((gains.ravel() >= top - rounding).argmax())
                if what == ADD:
                    tail, head = divmod(at, len(gains))
                else:
                    tail, head = int(self.tails[at]), int(self.heads[at])
                found = Move(float(gains.flat[at]), what, tail, head)
        return found


def start_edges(names: Sequence[str], rules: Rules, start: Any) -> Flags:
    """Return the graph a search begins with as a matrix: the required edges, and those of a graph or model that is given."""
    n = len(names)
    edges: Flags = rules.required.copy()
    if start is None:
        return edges
    graph = getattr(start, "graph", start)
    if not isinstance(graph, DAG):
        raise InvalidArgument(f"start= is a directed graph or a model with one, not {start!r}")
    number = {name: i for i, name in enumerate(names)}
    for tail, head in graph.edges:
        for end in (tail, head):
            if end not in number:
                raise InvalidArgument(f"the graph of start= has the node {end!r}, which the data lack")
        if not rules.allowed[number[tail], number[head]]:
            raise InvalidArgument(f"the graph of start= has the forbidden edge {tail!r} -> {head!r}")
        edges[number[tail], number[head]] = True
    DAG([(names[i], names[j]) for i, j in np.argwhere(edges).tolist()], nodes=names)
    most = int(edges.sum(axis=0).argmax()) if n else 0
    if n and edges[:, most].sum() > rules.max_parents:
        raise InvalidArgument(
            f"{names[most]!r} has {int(edges[:, most].sum())} parents in the graph of start=, "
            f"but max_parents is {rules.max_parents}"
        )
    return edges


def as_dag(names: Sequence[str], edges: Flags) -> DAG:
    """Return a matrix of edges as a graph."""
    return DAG([(names[i], names[j]) for j, i in np.argwhere(edges.T).tolist()], nodes=names)


def check_count(name: str, value: object, least: int = 0) -> None:
    """Raise unless an option is a whole number that is large enough."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InvalidArgument(f"{name} is a whole number, {least} or more, not {value!r}")
