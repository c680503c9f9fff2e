"""The neighbours of a directed acyclic graph: what adding, removing or reversing each edge gains.

Gains are kept in matrices, and only the columns of nodes whose parents changed are computed anew, when they are next asked
for: what a walk through equivalent graphs changes again in between is never scored. Which nodes reach which is kept too, so
legal moves are read off without searching the graph. Cost of a step: one pass over the n x n matrices, and the scores of a
few children with each further parent. Compiled code (`markovia.kernels.structure.edge_steps`) does the rest of a step
once it is there or worth waiting for; plain code before gives the same answers.
"""

import sys
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.graphs.directed import DAG
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.clock import now
from markovia.structure.scores.scores import Family, LocalScore
from markovia.structure.task.acyclicity import directed_graph
from markovia.structure.task.knowledge import Rules

ADD, REMOVE, REVERSE = 0, 1, 2
WORDS = ("add", "remove", "reverse")
TINY = 1e-9
"""Gains below this share of the score are rounding."""
MOST_KEPT = 2**24
"""Gains that are kept for parents that a node had before."""
STEPS = "markovia.kernels.structure.edge_steps:best_move"
COMPILE_SECONDS = 3.0
"""What plain steps may take in a process before the compiled code is made for this and later runs."""

_plain_spent = 0.0


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
    gain_add, gain_remove
        What adding and removing i -> j gains, whether or not it makes a cycle; up to date after `settle`.
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
        if self.n and not edges.any() and rules.max_parents > 0:
            score.know_pairs(self._may.T)
        self._turn_room = np.empty((self.n, self.n))
        self.restart(edges)

    def restart(self, edges: Flags) -> None:
        """Go to another graph."""
        self.edges = edges.copy()
        self.parents: list[list[int]] = [np.flatnonzero(column).tolist() for column in edges.T]
        self.now = np.zeros(self.n)
        # one row a child
        self._add = np.full((self.n, self.n), -np.inf)
        self._remove = np.full((self.n, self.n), -np.inf)
        self.gain_add, self.gain_remove = self._add.T, self._remove.T
        self._up = _words(edges.T)
        self._above = self._up.copy()
        self._stale = set(range(self.n))
        self._lost = True
        self.settle()

    def settle(self) -> None:
        """Bring the gains and the paths up to date."""
        if self._stale:
            self._refresh(sorted(self._stale))
            self._stale.clear()
            self.total = float(self.now.sum())
        if self._lost:
            self._find_above()
            self._lost = False

    @property
    def blocked(self) -> Flags:
        """Which edges would make a cycle."""
        self.settle()
        bits = np.unpackbits(self._above.view(np.uint8), axis=1, count=self.n, bitorder="little")
        return bits.astype(bool)

    def _refresh(self, children: Iterable[int]) -> None:
        """Recompute the gains of the moves that change the parents of some nodes."""
        asked: list[tuple[int, list[int], NDArray[np.int64]]] = []
        families = []
        for child in children:
            own = self.parents[child]
            key = (child, tuple(own))
            kept = self._columns.get(key)
            if kept is not None:
                self.now[child], self._add[child], self._remove[child] = kept
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
            self.now[child], self._add[child], self._remove[child] = now, add, remove
            if len(self._columns) * self.n < MOST_KEPT:
                self._columns[child, tuple(own)] = (now, add, remove)

    def gains(self) -> "Gains":
        """Return what each move gains; minus infinity where it is not legal."""
        blocked = self.blocked
        adds = np.where(blocked, -np.inf, self.gain_add)
        tails, heads = np.nonzero(self.edges)
        removes = self.gain_remove[tails, heads]
        # to be reversed, an edge must be the only directed path from its tail to its head
        ways = np.count_nonzero(self.edges[tails] & blocked[heads], axis=1) if len(tails) else 0
        turns = np.where(ways == 1, removes + self.gain_add[heads, tails], -np.inf)
        return Gains(adds, tails, heads, removes, turns)

    def best(self) -> Move | None:
        """Return the move that gains most, or None where no move is legal; of those equal but for rounding the first."""
        self.settle()
        kernel = _kernel()
        if kernel is None:
            start = now()
            found = self.gains().best(self.rounding)
            _spend(now() - start)
            return found
        gain, what, tail, head = kernel.best_move(
            self.edges, self._above, self._add, self._remove, self.rounding, self._turn_room
        )
        return None if what < 0 else Move(gain, what, tail, head)

    @property
    def rounding(self) -> float:
        """What counts as no gain."""
        return TINY * max(1.0, abs(self.total) * 1e-3)

    def apply(self, what: int, tail: int, head: int) -> None:
        """Make a move."""
        self.settle()
        self._stale.add(head)
        if what == ADD:
            self.total += float(self.gain_add[tail, head])
            self.edges[tail, head] = True
            insort(self.parents[head], tail)
            _flip(self._up, head, tail)
            below = (self._above[:, head >> 6] >> np.uint64(head & 63)) & np.uint64(1) != 0
            self._above[below] |= self._above[tail]
            return
        self.total += float(self.gain_remove[tail, head])
        self._lost = True
        if what == REMOVE:
            self.edges[tail, head] = False
            self.parents[head].remove(tail)
            _flip(self._up, head, tail)
        else:
            self.total += float(self.gain_add[head, tail])
            self._stale.add(tail)
            self._turn(tail, head)

    def _turn(self, tail: int, head: int) -> None:
        self.edges[tail, head], self.edges[head, tail] = False, True
        self.parents[head].remove(tail)
        insort(self.parents[tail], head)
        _flip(self._up, head, tail)
        _flip(self._up, tail, head)

    def walk_in_class(self, tries: int, rng: np.random.Generator) -> int:
        """Reverse random covered edges, which leads to equivalent graphs; return how many were reversed.

        An edge is covered if its head has the same parents as its tail, and the tail.
        """
        tails, heads = np.nonzero(self.edges & self._may & ~self.rules.required)
        if not len(tails):
            return 0
        chosen = rng.integers(len(tails), size=tries)
        kernel = _kernel()
        if kernel is None:
            start = now()
            done = self._plain_walk(tails.tolist(), heads.tolist(), chosen.tolist())
            _spend(now() - start)
        else:
            done = self._compiled_walk(kernel, tails, heads, chosen)
        self._lost = self._lost or done > 0
        return done

    def _plain_walk(self, tails: list[int], heads: list[int], chosen: list[int]) -> int:
        sizes = [len(own) for own in self.parents]
        done = 0
        for k in chosen:
            tail, head = tails[k], heads[k]
            if sizes[head] == sizes[tail] + 1:
                above = self.parents[tail].copy()
                insort(above, tail)
                if above == self.parents[head]:
                    self._turn(tail, head)
                    sizes[head], sizes[tail] = sizes[tail], sizes[head]
                    tails[k], heads[k] = head, tail
                    self._stale.update((tail, head))
                    done += 1
        return done

    def _compiled_walk(
        self, kernel: Any, tails: NDArray[np.int64], heads: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> int:
        touched = np.zeros(self.n, dtype=bool)
        new_tails, new_heads = tails.copy(), heads.copy()
        done = int(kernel.walk(self._up, new_tails, new_heads, chosen, touched))
        if done:
            turned = new_tails != tails
            self.edges[tails[turned], heads[turned]] = False
            self.edges[new_tails[turned], new_heads[turned]] = True
            for node in touched.nonzero()[0].tolist():
                self.parents[node] = self.edges[:, node].nonzero()[0].tolist()
                self._stale.add(node)
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

    def _find_above(self) -> None:
        kernel = _kernel()
        if kernel is not None:
            kernel.find_above(self._up, self._above)
            return
        start = now()
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
        size = 8 * self._above.shape[1]
        packed = np.frombuffer(b"".join(bits.to_bytes(size, "little") for bits in above), dtype="<u8")
        self._above[:] = packed.reshape(self._above.shape)
        _spend(now() - start)


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
    directed_graph(edges, names)  # says so if there is a cycle
    most = int(edges.sum(axis=0).argmax()) if n else 0
    if n and edges[:, most].sum() > rules.max_parents:
        raise InvalidArgument(
            f"{names[most]!r} has {int(edges[:, most].sum())} parents in the graph of start=, "
            f"but max_parents is {rules.max_parents}"
        )
    return edges


def _words(flags: Flags) -> NDArray[np.uint64]:
    """Return each row of flags as bits of 64-bit words."""
    n, width = flags.shape
    room = np.zeros((n, 64 * max(1, -(-width // 64))), dtype=bool)
    room[:, :width] = flags
    return np.packbits(room, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def _flip(words: NDArray[np.uint64], row: int, bit: int) -> None:
    words[row, bit >> 6] ^= np.uint64(1 << (bit & 63))


def _spend(seconds: float) -> None:
    global _plain_spent
    _plain_spent += seconds


def _kernel() -> Any:
    """Return the compiled steps, or None where plain ones are done before they would be there."""
    from markovia.kernels.compiled_code import loaded, on_disk

    if loaded(STEPS) or _plain_spent > COMPILE_SECONDS or ("numba" in sys.modules and on_disk(STEPS)):
        from markovia.kernels.structure import edge_steps

        return edge_steps
    return None
