"""The neighbours of a directed acyclic graph: what adding, removing or reversing each edge gains.

For each node the further parents that gain are kept in a short list, best first, and what each of its parents gives. Only
the lists of nodes whose parents changed are looked up or computed anew, when they are next asked for: what a walk through
equivalent graphs changes again in between is never scored. A reversal gains what the removal does and the addition of the
other direction; where the latter gains nothing, the removal alone is no worse, so the lists know all that a climb needs.
Cost of a step: one pass over nodes and edges, the ancestors of a few nodes as bits, and the scores of a few children with
each further parent. Compiled code (`markovia.kernels.structure.edge_steps`) does a step once it is there or worth waiting
for; plain code before gives the same answers.
"""

import sys
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.directed import DAG
from markovia.kernels.structure.structure_records import DagParents, EdgeGains
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.clock import now
from markovia.structure.scores.local_score import Family, LocalScore
from markovia.structure.task.knowledge import Rules

Parents = Sequence[Sequence[int]]

ADD, REMOVE, REVERSE = 0, 1, 2
WORDS = ("add", "remove", "reverse")
TINY = 1e-9
"""Gains below this share of the score are rounding."""
STEPS = "markovia.kernels.structure.edge_steps:best_move"
COMPILE_SECONDS = 3.0
"""What plain steps may take in a process before the compiled code is made for this and later runs."""

_plain_spent = 0.0
_steps: Any = None


class EdgeMove(NamedTuple):
    """What is done to the edge tail -> head, and what it gains."""

    gain: float
    what: int
    tail: int
    head: int


class EdgeMoves:
    """A graph, its score, and the moves that gain.

    Parameters
    ----------
    score
        The score.
    rules
        What is known; moves that break it do not exist, nor do new edges at columns with a single state.
    parents
        Each node's parents in increasing order.
    least
        Additions that gain no more are not kept; minus infinity keeps all moves, for searches that make losing ones.

    Attributes
    ----------
    total
        The score of the graph.
    """

    def __init__(self, score: LocalScore, rules: Rules, parents: Parents, least: float = 0.0) -> None:
        self.score = score
        self.rules = rules
        self.least = least
        self.n = score.n
        # a column with a single state gains and loses nothing by any edge
        varied = score.data.cards != 1
        self._may = np.ascontiguousarray(rules.allowed.T)
        self._may &= varied[:, None]
        self._may &= varied
        # of each family that was met its number; by that its score, where its further parents that gain are in the
        # pool, what removing each of its parents gains, in their order, and the most that both gain
        self._families: dict[Family, int] = {}
        self._scores, self._ends_of = np.empty(1024), np.empty((2, 1024), dtype=np.int64)
        self._removes_of, self._tops_of = np.zeros((1024, 4)), np.empty((2, 1024))
        self._pool_tails, self._pool_gains = np.empty(1024, dtype=np.int32), np.empty(1024)
        self._pool_size = 0
        if self.n and not any(map(len, parents)) and rules.max_parents > 0:
            alone = score.many([(child, ()) for child in range(self.n)]).tolist()
            for child, found in enumerate(score.gainful_pairs(self._may.T, least)):
                self._note((child, ()), alone[child], *found, np.empty(0))
        self.restart(parents)

    def restart(self, parents: Parents) -> None:
        """Go to another graph."""
        widest = max(map(len, parents), default=0)
        self._up = np.zeros((self.n, max(4, widest)), dtype=np.int32)
        self._n_up = np.array([len(own) for own in parents], dtype=np.int32)
        for node, own in enumerate(parents):
            self._up[node, : len(own)] = own
        # the edge i -> j as the number i n + j, in increasing order
        edges = [tail * self.n + head for head, own in enumerate(parents) for tail in own]
        self._edges = np.sort(np.array(edges, dtype=np.int64))
        # of each node the number of its family, and the most that an addition and a removal gain; out of date where
        # `_stale` says so
        self._family, self._tops = np.zeros(self.n, dtype=np.int64), np.zeros((2, self.n))
        self._stale = np.ones(self.n, dtype=bool)
        # of each node its ancestors, and how many of its parents they were found for; -1: out of date
        self._above = np.zeros((self.n, max(1, -(-self.n // 64))), dtype=np.uint64)
        self._traced, self._room = np.full(self.n, -1), np.empty(self.n, dtype=np.int64)
        self.total = 0.0
        self.settle()

    def settle(self) -> None:
        """Bring the gains up to date."""
        if self._stale.any():
            self._refresh(np.flatnonzero(self._stale))
            self._stale[:] = False
            self.total = float(self._scores[self._family].sum())

    @property
    def parents(self) -> list[list[int]]:
        """The graph as it is now: each node's parents in increasing order."""
        return [row[:k] for row, k in zip(self._up.tolist(), self._n_up.tolist(), strict=True)]

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return len(self._edges)

    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the tails and the heads of the edges, by tail and then head."""
        return self._edges // self.n, self._edges % self.n

    @property
    def edges(self) -> Flags:
        """`edges[i, j]`: the graph has the edge i -> j."""
        found = np.zeros((self.n, self.n), dtype=bool)
        found[self._ends()] = True
        return found

    @property
    def blocked(self) -> Flags:
        """`blocked[i, j]`: there is a directed path from j to i (also where i is j), so i -> j would make a cycle."""
        self._find_above()
        bits = np.unpackbits(self._above.view(np.uint8), axis=1, count=self.n, bitorder="little")
        return bits.astype(bool)

    def _note(
        self, family: Family, score: float, tails: NDArray[np.int64], gains: Array, removes: Array
    ) -> None:
        """Give a family its number, and put its further parents into the pool."""
        number = self._families[family] = len(self._families)
        if number == len(self._scores):
            self._scores = np.resize(self._scores, 2 * number)
            self._ends_of = np.pad(self._ends_of, ((0, 0), (0, number)))
            self._tops_of = np.pad(self._tops_of, ((0, 0), (0, number)))
            self._removes_of = np.pad(self._removes_of, ((0, number), (0, 0)))
        while len(removes) > self._removes_of.shape[1]:
            self._removes_of = np.pad(self._removes_of, ((0, 0), (0, self._removes_of.shape[1])))
        start, end = self._pool_size, self._pool_size + len(tails)
        if end > len(self._pool_tails):
            self._pool_tails = np.resize(self._pool_tails, 2 * end)
            self._pool_gains = np.resize(self._pool_gains, 2 * end)
        self._pool_tails[start:end], self._pool_gains[start:end] = tails, gains
        self._pool_size = end
        self._scores[number], self._ends_of[:, number] = score, (start, end)
        self._removes_of[number, : len(removes)] = removes
        self._tops_of[:, number] = gains[0] if len(gains) else -np.inf, removes.max(initial=-np.inf)

    def _refresh(self, nodes: NDArray[np.int64]) -> None:
        """Look up or compute the families of some nodes with their present parents."""
        ups = zip(nodes.tolist(), self._up[nodes].tolist(), self._n_up[nodes].tolist(), strict=True)
        keys = [(node, tuple(row[:k])) for node, row, k in ups]
        numbers = [self._families.get(key, -1) for key in keys]
        if -1 in numbers:
            self._compute([key for key, number in zip(keys, numbers, strict=True) if number < 0])
            numbers = [self._families[key] for key in keys]
        self._family[nodes] = numbers
        self._tops[:, nodes] = self._tops_of[:, numbers]

    def _compute(self, families: Sequence[Family]) -> None:
        asked = []
        single = list(families)
        for child, own in families:
            free = self._may[child].copy() if len(own) < self.rules.max_parents else np.zeros(self.n, bool)
            free[list(own)] = False
            asked.append((child, own, np.flatnonzero(free)))
            single.extend((child, own[:i] + own[i + 1 :]) for i in range(len(own)))
        lists = self.score.gainful(asked, self.least, single)
        values = self.score.many(single)
        at = len(families)
        for k, found in enumerate(lists):
            child, own = families[k]
            removes = values[at : at + len(own)] - values[k]
            removes[self.rules.required[list(own), child]] = -np.inf
            at += len(own)
            self._note((child, own), float(values[k]), *found, removes)

    def gains(self) -> "MoveGains":
        """Return what each move gains; minus infinity where it is not legal or gains no more than `least`."""
        self.settle()
        blocked, parents = self.blocked, self.parents
        adds = np.full((self.n, self.n), -np.inf)
        for child, (start, end) in enumerate(self._ends_of[:, self._family].T.tolist()):
            adds[self._pool_tails[start:end], child] = self._pool_gains[start:end]
        tails, heads = self._ends()
        ends = list(zip(tails.tolist(), heads.tolist(), strict=True))
        removes = self._removes_of[self._family[heads], [parents[h].index(t) for t, h in ends]]
        # to be reversed, an edge must be the only directed path from its tail to its head
        lone = [not any(blocked[p, t] for p in parents[h] if p != t) for t, h in ends]
        turns = np.where(np.array(lone, dtype=bool), removes + adds[heads, tails], -np.inf)
        adds[blocked] = -np.inf
        return MoveGains(adds, tails, heads, removes, turns)

    def best(self) -> EdgeMove | None:
        """Return the move that gains most, or None where no move is legal; of those equal but for rounding the first."""
        self.settle()
        kernel = _kernel()
        if kernel is None:
            began = now()
            found = self.gains().best(self.rounding)
            _spend(now() - began)
            return found
        gains = EdgeGains(
            self._tops, self._family, self._ends_of, self._removes_of, self._pool_tails, self._pool_gains
        )
        gain, what, tail, head = kernel.best_move(self._graph(), gains, self.rounding)
        return None if what < 0 else EdgeMove(gain, what, tail, head)

    @property
    def rounding(self) -> float:
        """What counts as no gain."""
        return TINY * max(1.0, abs(self.total) * 1e-3)

    def apply(self, move: EdgeMove) -> None:
        """Make a move."""
        self.settle()
        _, what, tail, head = move
        self.total += move.gain
        if what != ADD:
            self._set_parents(head, [p for p in self._parents_of(head) if p != tail])
            self._relink(remove=tail * self.n + head)
        if what != REMOVE:
            parent, child = (tail, head) if what == ADD else (head, tail)
            self._set_parents(child, sorted([*self._parents_of(child), parent]))
            self._relink(add=parent * self.n + child)
        self._traced[:] = -1

    def _relink(self, add: int = -1, remove: int = -1) -> None:
        """Put an edge into the list of edges, or take one out."""
        at = int(np.searchsorted(self._edges, max(add, remove)))
        kept = self._edges[at + (remove >= 0) :]
        self._edges = np.concatenate([self._edges[:at], *([[add]] if add >= 0 else []), kept])

    def _parents_of(self, node: int) -> list[int]:
        found: list[int] = self._up[node, : self._n_up[node]].tolist()
        return found

    def _set_parents(self, node: int, own: list[int]) -> None:
        if len(own) > self._up.shape[1]:
            self._up = np.pad(self._up, ((0, 0), (0, self._up.shape[1])))
        self._up[node, : len(own)] = own
        self._n_up[node] = len(own)
        self._stale[node] = True

    def walk_in_class(self, tries: int, rng: np.random.Generator) -> int:
        """Reverse random covered edges, which leads to equivalent graphs; return how many were reversed.

        An edge is covered if its head has the same parents as its tail, and the tail.
        """
        if not self.n_edges:
            return 0
        chosen = rng.integers(self.n_edges, size=tries)
        kernel = _kernel()
        if kernel is None:
            began = now()
            done = self._plain_walk(chosen.tolist())
            _spend(now() - began)
        else:
            may, required = self._may, self.rules.required
            done = kernel.walk(self._up, self._n_up, self._edges, chosen, may, required, self._stale)
        if done:
            self._edges.sort()
            self._traced[:] = -1
        return int(done)

    def _plain_walk(self, chosen: list[int]) -> int:
        up, done = self.parents, 0
        for k in chosen:
            tail, head = divmod(int(self._edges[k]), self.n)
            if not self._may[tail, head] or self.rules.required[tail, head]:
                continue
            if sorted([*up[tail], tail]) == up[head]:
                up[head].remove(tail)
                insort(up[tail], head)
                self._edges[k] = head * self.n + tail
                self._set_parents(head, up[head])
                self._set_parents(tail, up[tail])
                done += 1
        return done

    def disturb(self, steps: int, rng: np.random.Generator) -> None:
        """Make random legal moves."""
        for _ in range(steps):
            blocked, edges, parents = self.blocked, self.edges, self.parents
            room = self._n_up < self.rules.max_parents
            adds = self._may.T & room & ~blocked & ~edges
            ends = np.argwhere(edges & ~self.rules.required)
            lone = [not any(blocked[p, t] for p in parents[h] if p != t) for t, h in ends.tolist()]
            may = self._may[ends[:, 0], ends[:, 1]] & room[ends[:, 0]] & np.array(lone, dtype=bool)
            choices = [np.argwhere(adds), ends, ends[may]]
            kinds = [k for k, own in enumerate(choices) if len(own)]
            if not kinds:
                return
            what = kinds[int(rng.integers(len(kinds)))]
            tail, head = choices[what][int(rng.integers(len(choices[what])))].tolist()
            self.apply(EdgeMove(self._gain(what, tail, head), what, tail, head))

    def _gain(self, what: int, tail: int, head: int) -> float:
        own = self._parents_of(head)
        new = [*own, tail] if what == ADD else [p for p in own if p != tail]
        gain = self.score.local(head, new) - self.score.local(head, own)
        if what == REVERSE:
            own = self._parents_of(tail)
            gain += self.score.local(tail, [*own, head]) - self.score.local(tail, own)
        return gain

    def _graph(self) -> DagParents:
        return DagParents(self._up, self._n_up, self._above, self._traced, self._room)

    def _find_above(self) -> None:
        kernel = _kernel()
        if kernel is not None:
            kernel.find_above(self._graph())
            return
        began = now()
        n = self.n
        below: list[list[int]] = [[] for _ in range(n)]
        for parent, node in zip(*(ends.tolist() for ends in self._ends()), strict=True):
            below[parent].append(node)
        waiting = self._n_up.tolist()
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
        self._traced[:] = self._n_up
        _spend(now() - began)


@dataclass
class MoveGains:
    """What each move gains: `adds[i, j]` for i -> j; for the edges tails -> heads what removing and reversing them does."""

    adds: Array
    tails: NDArray[np.int64]
    heads: NDArray[np.int64]
    removes: Array
    turns: Array

    def best(self, rounding: float) -> EdgeMove | None:
        """Return the move that gains most, or None where no move is legal; of those equal but for rounding the first."""
        found: EdgeMove | None = None
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
                found = EdgeMove(float(gains.flat[at]), what, tail, head)
        return found


def start_parents(names: Sequence[str], rules: Rules, start: Any) -> list[list[int]]:
    """Return each node's parents in the graph a search begins with: the required edges, and those of `start`."""
    parents: list[set[int]] = [set() for _ in names]
    for i, j in np.argwhere(rules.required).tolist():
        parents[j].add(i)
    if start is None:
        return [sorted(own) for own in parents]
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
        parents[number[head]].add(number[tail])
    found = [sorted(own) for own in parents]
    graph_of(found, names)  # says so if there is a cycle
    most = max(range(len(found)), key=lambda v: len(found[v]), default=0)
    if found and len(found[most]) > rules.max_parents:
        raise InvalidArgument(
            f"{names[most]!r} has {len(found[most])} parents in the graph of start=, "
            f"but max_parents is {rules.max_parents}"
        )
    return found


def graph_of(parents: Parents, names: Sequence[str]) -> DAG:
    """Return the graph of each node's parents."""
    return DAG([(names[a], names[b]) for b, own in enumerate(parents) for a in own], nodes=names)


def _spend(seconds: float) -> None:
    global _plain_spent
    _plain_spent += seconds


def _kernel() -> Any:
    """Return the compiled steps, or None where plain ones are done before they would be there."""
    global _steps
    if _steps is None:
        from markovia.kernels.compiled_code import loaded, on_disk

        if loaded(STEPS) or _plain_spent > COMPILE_SECONDS or ("numba" in sys.modules and on_disk(STEPS)):
            from markovia.kernels.structure import edge_steps as _steps
    return _steps
