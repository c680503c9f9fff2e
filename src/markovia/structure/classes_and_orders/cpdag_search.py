"""Greedy search over equivalence classes, one phase at a time: the engine of GES and of the last step of BOSS.

The operators that gain wait in a heap. After a move only those are computed again whose surroundings changed (as in fast
greedy equivalence search; Ramsey, Glymour, Sanchez-Romero and Glymour 2017); an operator that paths or knowledge forbid
waits for the next move. Scores are asked for in rows, all candidates for one child and one set of parents at once.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from markovia.graphs.equivalence import extend
from markovia.graphs.masks import mask_of, members
from markovia.graphs.mixed import MixedGraph
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph, extension
from markovia.structure.classes_and_orders.cpdag_moves import (
    Operator,
    after,
    allowed_by_paths,
    deletes,
    insert_bases,
    inserts,
    turns,
)
from markovia.structure.scores.family_rows import FamilyRows
from markovia.structure.task.result import Step
from markovia.structure.task.task import Task

Entry = tuple[float, int, int, int, int, int, float]


class ClassSearch:
    """A class that greedy moves improve.

    Parameters
    ----------
    task
        Rules, limits and names.
    rows
        The scores.
    start
        A directed graph that obeys the rules, as masks of parents: the search begins at its class.
    path
        Where steps are noted.

    Attributes
    ----------
    graph
        The class now.
    value
        Its score.
    """

    def __init__(self, task: Task, rows: FamilyRows, start: Sequence[int], path: list[Step]) -> None:
        self.task = task
        self.rows = rows
        self.rules = task.rules
        self.path = path
        self.graph = ClassGraph.of_parents(start)
        self.value = rows.total(start)
        self._pairs = [mask_of(c.nonzero()[0].tolist()) for c in self.rules.pairs]
        self._kept = [mask_of(c.nonzero()[0].tolist()) for c in self.rules.required_pairs]
        self._seen: set[tuple[int, ...]] = set()
        self._remember(self.graph)

    def forward(self) -> int:
        """Insert edges while that gains; return how many moves were made."""
        if self.graph.n and not any(self.graph.adjacent):
            self.rows.first_rows()
        return self._phase("insert")

    def backward(self) -> int:
        """Delete edges while that gains; return how many moves were made."""
        return self._phase("delete")

    def turning(self) -> int:
        """Turn edges while that gains; return how many moves were made."""
        return self._phase("turn")

    def finish(self) -> tuple[ClassGraph, list[int]]:
        """Return the class with what is known put in, and a member that obeys it as masks of parents."""
        graph = self.graph if self.rules.free else self.graph.informed(self.rules)
        assert graph is not None
        dag = extension(graph.parents, graph.joined)
        assert dag is not None
        return graph, dag

    def answer(self) -> tuple[MixedGraph, float]:
        """Return the class over names, what is known put in, and the score of the member that `extend` takes."""
        graph, dag = self.finish()
        named = graph.named(self.task.names)
        if not self.rows.score.equivalent:
            number = {name: v for v, name in enumerate(self.task.names)}
            taken = extend(named)
            dag = [mask_of([number[p] for p in taken.parents(name)]) for name in self.task.names]
        return named, self.rows.total(dag)

    def _phase(self, kind: str) -> int:
        n, watch = self.graph.n, self.task.watch
        everyone = (1 << n) - 1
        whole = [0] * n
        single: dict[tuple[int, int], int] = {}
        heap: list[Entry] = []
        if kind == "insert":
            self._fetch(range(n))
        for y in range(n):
            heap.extend(_entry(move, 0, 0) for move in self._moves(kind, y, everyone))
        heapify(heap)
        made = 0
        while heap and not watch.over():
            waiting = []
            new: ClassGraph | None = None
            while heap and new is None:
                entry = heappop(heap)
                _, x, y, clique, stamp, own, gain = entry
                if stamp != whole[y] or own != single.get((x, y), 0):
                    continue
                if kind == "insert" and self.graph.adjacent[y] >> x & 1:
                    continue
                move = Operator(gain, kind, x, y, clique)
                new = self._made(move)
                if new is None:
                    waiting.append(entry)
            if new is None:
                break
            for entry in waiting:
                heappush(heap, entry)
            old, self.graph = self.graph, new
            self._remember(new)
            self.value += move.gain
            made += 1
            names = self.task.names
            self.path.append(Step(f"{kind} {names[move.x]} -> {names[move.y]}", self.value, watch.seconds))
            watch.advance(note=f"{self.value:.6g}")
            again, pairs = _stale(old, new, kind, move.x, move.y)
            if kind == "insert":
                self._fetch(members(again))
            for y in members(again):
                whole[y] += 1
                for move in self._moves(kind, y, everyone):
                    own = single.get((move.x, y), 0)
                    heappush(heap, _entry(move, whole[y], own))
            for x, y in pairs:
                single[x, y] = single.get((x, y), 0) + 1
                for move in self._moves(kind, y, 1 << x):
                    heappush(heap, _entry(move, whole[y], single[x, y]))
        return made

    def _fetch(self, heads: Iterable[int]) -> None:
        most = self.rules.max_parents
        self.rows.fetch([base for y in heads for base in insert_bases(self.graph, y, most)])

    def _moves(self, kind: str, y: int, sources: int) -> list[Operator]:
        if kind == "insert":
            return inserts(self.graph, self.rows, y, sources & self._pairs[y], self.rules.max_parents)
        if kind == "delete":
            kept = self._kept[y]
            return [m for m in deletes(self.graph, self.rows, y) if not kept >> m.x & 1]
        return turns(self.graph, self.rows, y, self.rules.max_parents)

    def _made(self, move: Operator) -> ClassGraph | None:
        """Return the class that a move leads to; None if it may not be made now."""
        if not allowed_by_paths(self.graph, move):
            return None
        dag = after(self.graph, move)
        if dag is None:
            return None
        new = ClassGraph.of_parents(dag)
        if not self.rules.free and new.informed(self.rules) is None:
            return None
        if (*new.parents, *new.joined) in self._seen:
            return None
        return new

    def _remember(self, graph: ClassGraph) -> None:
        """Note a class: none is visited twice, even where a score tells its members apart."""
        self._seen.add((*graph.parents, *graph.joined))


def _entry(move: Operator, stamp: int, own: int) -> Entry:
    """Return a move as the heap sorts it: by its gain without the last digits, so that rounding decides no tie."""
    return -round(move.gain, 6), move.x, move.y, move.clique, stamp, own, move.gain


def _stale(old: ClassGraph, new: ClassGraph, kind: str, a: int, b: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the heads whose operators have to be computed again, and single pairs (tail, head) besides."""
    changed = 0
    for v in range(new.n):
        if new.parents[v] != old.parents[v] or new.joined[v] != old.joined[v]:
            changed |= 1 << v
    if kind != "insert":
        near = changed | 1 << a | 1 << b
        for v in members(near):
            near |= new.adjacent[v] | old.adjacent[v]
        return near, []
    pairs = []
    for y in members(new.joined[a] | new.joined[b]):
        if changed >> y & 1:
            continue
        if new.joined[y] >> a & 1 and new.joined[y] >> b & 1:
            changed |= 1 << y
        elif new.joined[y] >> b & 1:
            pairs.append((a, y))
        else:
            pairs.append((b, y))
    return changed, pairs
