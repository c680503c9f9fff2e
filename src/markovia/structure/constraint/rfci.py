"""RFCI, really fast causal inference: FCI without the search in Possible-D-SEP sets.

Instead of that search, which may be exponential in a sparse graph, RFCI makes a few more tests before it orients: an
unshielded triple counts only if its edges survive conditioning on the set that separates its ends, and a discriminating
path only if its edges survive all subsets of such a set. The graph may have more edges than FCI's; what its marks say
about causes is as sound.

Paper: Colombo, Maathuis, Kalisch and Richardson, *Learning high-dimensional directed acyclic graphs with latent and
selection variables*, Annals of Statistics 40 (2012). Cost: that of PC's adjacency search, and little more. When to use
it: as FCI, with dozens of variables or more.
"""

from collections import deque
from itertools import combinations, pairwise

from markovia.runtime.array_types import Flags
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import CITest, ci_test_for
from markovia.structure.constraint.adjacency_search import adjacency_search
from markovia.structure.constraint.ancestral_rules import Ancestral, orient
from markovia.structure.constraint.fci import STOPPED, AncestralDetails, as_found, check_limits
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task

Triple = tuple[int, int, int]
UNFINISHED = (
    "stopped while triples and paths were tested: circles may be left that a rule would have replaced"
)


class _Stopped(Exception):
    """The clock ended the search within the tests of triples and paths."""


def rfci(
    task: Task, *, depth: int | None = None, stable: bool = True, selection_bias: bool = True
) -> FoundGraph:
    """Learn a partial ancestral graph by RFCI; knowledge means what it means for FCI.

    Parameters
    ----------
    task
        Data or oracle, knowledge, limits.
    depth
        The largest size of a conditioning set in the adjacency search; None for no limit.
    stable
        Whether the adjacency search is independent of the order of the variables.
    selection_bias
        Whether the rules for selected data (R5 to R7) are applied.

    Returns
    -------
    Found
        `details` is an `AncestralDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> truth = mk.graphs.DAG([("a", "c"), ("b", "c"), ("c", "d")])
    >>> mk.learn_structure(method="rfci", test=truth).graph
    MixedGraph(['a o-> c', 'b o-> c', 'c --> d'])
    """
    check_limits("rfci", task, depth=depth)
    test = ci_test_for(task)
    skeleton = adjacency_search(test, task.rules, task.clock, depth=depth, stable=stable)
    pag = Ancestral.start(skeleton.adjacent, skeleton.separators, task.rules)
    careful = _Careful(pag, test, task.rules.required_pairs, task.clock)
    notes = []
    if task.clock.over():
        notes.append(STOPPED)
    else:
        try:
            careful.orient_colliders(list(pag.unshielded()))
            orient(pag, selection_bias=selection_bias, check=careful.path_holds)
        except _Stopped:
            notes.append(UNFINISHED)
    names = task.names
    details = AncestralDetails(
        removed_by_triples=[(names[x], names[y]) for x, y in careful.by_triples],
        removed_by_paths=[(names[x], names[y]) for x, y in careful.by_paths],
    )
    return as_found(task, test, pag, notes, details)


class _Careful:
    """The tests that RFCI makes before it trusts a triple or a path."""

    def __init__(self, pag: Ancestral, test: CITest, kept: Flags, clock: Clock) -> None:
        self.pag = pag
        self.test = test
        self.clock = clock
        self.kept = kept
        self.by_triples: list[tuple[int, int]] = []
        self.by_paths: list[tuple[int, int]] = []
        self.checked: set[tuple[int, ...]] = set()

    def orient_colliders(self, triples: list[Triple]) -> None:
        """Orient the triples whose edges hold given what separates their ends; take away edges that do not hold."""
        pag = self.pag
        waiting = deque(triples)
        holding: dict[Triple, None] = {}
        while waiting:
            triple = waiting.popleft()
            a, b, c = triple
            given = pag.separator(a, c)
            if given is None or pag.marks[a, b] == 0 or pag.marks[b, c] == 0:
                continue
            rest = tuple(z for z in given if z != b)
            broken = [r for r in (a, c) if not self.kept[r, b] and self._independent(r, b, rest)]
            if not broken:
                holding[triple] = None
            for r in broken:
                self.pag.remove(r, b, self._smallest(r, b, rest))
                self.by_triples.append((min(r, b), max(r, b)))
                # what was a triangle over the edge is an unshielded triple now; triples that used it are skipped above
                waiting.extend(self._between(r, b))
        for a, b, c in holding:
            given = pag.separator(a, c)
            if given is None or b in given or pag.marks[a, b] == 0 or pag.marks[b, c] == 0:
                continue
            pag.collide(a, b, c)

    def path_holds(self, path: list[int]) -> bool:
        """Say whether every edge of a discriminating path survives all subsets of what separates its ends."""
        if tuple(path) in self.checked:
            return True
        given = self.pag.separator(path[0], path[-1]) or ()
        for r, q in pairwise(path):
            if self.kept[r, q]:
                continue
            rest = [z for z in given if z not in (r, q)]
            for size in range(len(rest) + 1):
                found = next((s for s in combinations(rest, size) if self._independent(r, q, s)), None)
                if found is not None:
                    self.pag.remove(r, q, found)
                    self.by_paths.append((min(r, q), max(r, q)))
                    self.orient_colliders(self._between(r, q))
                    return False
        self.checked.add(tuple(path))
        return True

    def _independent(self, x: int, y: int, given: tuple[int, ...]) -> bool:
        if self.clock.over():
            raise _Stopped
        return self.test.independent(x, y, given)

    def _smallest(self, x: int, y: int, given: tuple[int, ...]) -> tuple[int, ...]:
        """Return a smallest subset that separates a pair."""
        for size in range(len(given)):
            for subset in combinations(given, size):
                if self._independent(x, y, subset):
                    return subset
        return given

    def _between(self, x: int, y: int) -> list[Triple]:
        """List the triples x, b, y that are unshielded once the edge between x and y is gone."""
        x, y = min(x, y), max(x, y)
        adjacent = self.pag.adjacent
        return [(x, int(b), y) for b in (adjacent[x] & adjacent[y]).nonzero()[0]]
