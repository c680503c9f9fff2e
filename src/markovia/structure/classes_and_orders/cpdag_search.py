"""Greedy search over equivalence classes, one phase at a time: the engine of GES and of the last step of BOSS.

The operators that gain wait in a heap. After a move only those are computed again whose surroundings changed (as in fast
greedy equivalence search; Ramsey, Glymour, Sanchez-Romero and Glymour 2017), and the class itself is changed only there; an
operator that paths or knowledge forbid waits for the next move. Scores are asked for in rows, all candidates for one child
and one set of parents at once, and of a row only what gains is kept.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from markovia.graphs.kinds.equivalence import extend
from markovia.graphs.kinds.masks import mask_of, masks_of, members
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.structure.classes_and_orders.cpdag_changes import Change, put
from markovia.structure.classes_and_orders.cpdag_masks import ClassGraph, extension
from markovia.structure.classes_and_orders.cpdag_moves import (
    Operator,
    after,
    closing_path,
    deletes,
    insert_bases,
    inserts,
    scored,
    turns,
)
from markovia.structure.scores.family_rows import FamilyRows
from markovia.structure.task.result import SearchStep
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

    def __init__(self, task: Task, rows: FamilyRows, start: Sequence[int], path: list[SearchStep]) -> None:
        self.task = task
        self.rows = rows
        self.rules = task.rules
        self.path = path
        self.graph = ClassGraph.of_parents(start)
        self.value = rows.total(start)
        self._kept = masks_of(self.rules.required_pairs)
        # the classes visited, each by a number that its edges make: none is visited twice, even where a score tells
        # its members apart
        self._number = 0
        self._seen = {0}

    def forward(self) -> int:
        """Insert edges while that gains; return how many moves were made."""
        if self.graph.n and not any(self.graph.adjacent):
            self.rows.first_gains()
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
        n, clock, names = self.graph.n, self.task.clock, self.task.names
        whole = [0] * n
        single: dict[tuple[int, int], int] = {}
        heap = [_entry(move, 0, 0) for move in self._moves(kind, range(n))]
        heapify(heap)
        blocked = _Blocked()
        made = 0
        while heap and not clock.over():
            waiting = []
            old: Change | None = None
            while heap and old is None:
                entry = heappop(heap)
                _, x, y, clique, stamp, own, gain = entry
                if stamp != whole[y] or own != single.get((x, y), 0):
                    continue
                if kind == "insert" and self.graph.adjacent[y] >> x & 1:
                    continue
                move = Operator(gain, kind, x, y, clique)
                path = closing_path(self.graph, move)
                if path is not None:
                    blocked.put(entry, path)
                    continue
                old = self._make(move)
                if old is None:
                    waiting.append(entry)
            if old is None:
                break
            for entry in [*waiting, *blocked.freed(self.graph, old)]:
                heappush(heap, entry)
            self.value += move.gain
            made += 1
            self.path.append(
                SearchStep(f"{kind} {names[move.x]} -> {names[move.y]}", self.value, clock.seconds)
            )
            clock.advance(note=f"{self.value:.6g}")
            again, pairs = _stale(old, self.graph, kind, move.x, move.y)
            heads = members(again)
            for y in heads:
                whole[y] += 1
            for move in self._moves(kind, heads):
                heappush(heap, _entry(move, whole[move.y], single.get((move.x, move.y), 0)))
            for x, y in pairs:
                single[x, y] = single.get((x, y), 0) + 1
                for move in inserts(self.graph, self.rows, y, self.rules.max_parents, x):
                    heappush(heap, _entry(move, whole[y], single[x, y]))
        return made

    def _moves(self, kind: str, heads: Sequence[int]) -> list[Operator]:
        """Return the moves of one kind into some variables that gain."""
        graph, most = self.graph, self.rules.max_parents
        if kind == "insert":
            self.rows.fetch_gains([base for y in heads for base in insert_bases(graph, y, most)])
            return [move for y in heads for move in inserts(graph, self.rows, y, most)]
        if kind == "delete":
            return scored(
                self.rows, [c for y in heads for c in deletes(graph, y) if not self._kept[y] >> c.x & 1]
            )
        return scored(self.rows, [c for y in heads for c in turns(graph, y, most)])

    def _make(self, move: Operator) -> Change | None:
        """Make a move; return what would put the class back, or None if it may not be made now."""
        change = after(self.graph, move)
        if change is None:
            return None
        before = put(self.graph, change)
        number = self._number ^ _number(before) ^ _number(change)
        if number in self._seen or (not self.rules.free and self.graph.informed(self.rules) is None):
            put(self.graph, before)
            return None
        self._number = number
        self._seen.add(number)
        return before


class _Blocked:
    """Operators that a path forbids: none is looked at again before its path is broken."""

    def __init__(self) -> None:
        self._paths: dict[Entry, list[int]] = {}
        self._at: dict[int, set[Entry]] = {}

    def put(self, entry: Entry, path: list[int]) -> None:
        self._paths[entry] = path
        for v in path:
            self._at.setdefault(v, set()).add(entry)

    def freed(self, graph: ClassGraph, changed: Change) -> list[Entry]:
        """Return the operators whose paths a change has broken."""
        found = [
            entry
            for entry in dict.fromkeys(entry for v in changed for entry in self._at.get(v, ()))
            if not graph.passable(self._paths[entry])
        ]
        for entry in found:
            for v in self._paths.pop(entry):
                self._at[v].discard(entry)
        return found


def _number(change: Change) -> int:
    found = 0
    for v, around in change.items():
        for w in members(around.parents):
            found ^= hash((w, v, 1))
        for w in members(around.joined):
            found ^= hash((w, v, 0))
    return found


def _entry(move: Operator, stamp: int, own: int) -> Entry:
    """Return a move as the heap sorts it: by its gain without the last digits, so that rounding decides no tie."""
    return -round(move.gain, 6), move.x, move.y, move.clique, stamp, own, move.gain


def _stale(old: Change, graph: ClassGraph, kind: str, a: int, b: int) -> tuple[int, list[tuple[int, int]]]:
    """Return the heads whose operators have to be computed again, and single pairs (tail, head) besides."""
    changed = mask_of(
        v for v, was in old.items() if (was.parents, was.joined) != (graph.parents[v], graph.joined[v])
    )
    if kind != "insert":
        near = changed | 1 << a | 1 << b
        for v in members(near):
            near |= graph.adjacent[v] | (old[v].adjacent if v in old else 0)
        return near, []
    pairs = []
    for y in members(graph.joined[a] | graph.joined[b]):
        if changed >> y & 1:
            continue
        if graph.joined[y] >> a & 1 and graph.joined[y] >> b & 1:
            changed |= 1 << y
        elif graph.joined[y] >> b & 1:
            pairs.append((a, y))
        else:
            pairs.append((b, y))
    return changed, pairs
