"""PC: a graph from tests of conditional independence, where no common cause is hidden.

Method: the adjacency search (`adjacency_search.py`) finds the skeleton and separating sets, the orientation step
(`orientation.py`) v-structures and what follows from them. Spirtes and Glymour, *An algorithm for fast recovery of
sparse causal graphs* (1991); the order-independent form, conservative and majority rules: Colombo and Maathuis, JMLR
2014. With answers from the true graph the result is exactly its completed partially directed graph.

Cost: tests grow exponentially with the largest degree. Compiled tests use threads, costly ones (kernels, permutations)
processes (`n_jobs=`). Use it where edges should mean direct dependence, graphs are sparse, and hidden common causes are
unlikely; FCI where they are not.
"""

from dataclasses import dataclass, replace

import numpy as np

from markovia.errors import InvalidGraph
from markovia.graphs.kinds.equivalence import extend
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.runtime.checks import check_choice
from markovia.structure.ci_tests.ci_tests import CITest, ci_test_for
from markovia.structure.constraint.adjacency_search import NamedSeparators, Skeleton, adjacency_search
from markovia.structure.constraint.orientation import Orientation, OrientationConflict, decide_triples
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task

NOTED = 8
"""Conflicts that get a note of their own."""


@dataclass(frozen=True)
class PCDetails:
    """For each edge the largest p-value of its tests, directions that could not be had, triples that settle nothing."""

    edge_p_values: dict[tuple[str, str], float]
    conflicts: list[OrientationConflict]
    ambiguous: list[tuple[str, ...]]


def pc(
    task: Task,
    *,
    stable: bool = True,
    orientation: str = "standard",
    depth: int | None = None,
    conflicts: str = "strongest",
    keep_tests: bool | int = True,
    parallel: bool = True,
) -> FoundGraph:
    """Learn a completed partially directed graph by the PC algorithm.

    Parameters
    ----------
    task
        Data or an oracle, and what is known.
    stable
        The order-independent search; False for the original, where the skeleton may depend on the order of the columns.
    orientation
        "standard", "conservative" or "majority": how v-structures are decided. With data the last two are more reliable and
        do not depend on the order of the columns; "standard" goes by the first separating set that was found.
    depth
        The largest conditioning set. With `max_parents=k` sets of k suffice, and no node gets more than k arrowheads.
    conflicts
        Where v-structures contradict each other: "strongest" keeps the one whose ends were separated with the larger
        p-value, "bidirected" gives the edge an arrowhead at both ends. Both are reported in `notes` and
        `details.conflicts`.
    keep_tests
        Whether the tests are in the result; a number keeps the first so many. Beyond some 67 million tests the rest is
        only counted.
    parallel
        False for a single thread.

    Returns
    -------
    Found
        `details` is a `PCDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> truth = mk.graphs.DAG([("a", "c"), ("b", "c"), ("c", "d")])
    >>> mk.learn_structure(method="pc", test=truth).graph
    MixedGraph(['a --> c', 'b --> c', 'c --> d'])
    """
    check_choice("orientation", orientation, ("standard", "conservative", "majority"))
    check_choice("conflicts", conflicts, ("strongest", "bidirected"))
    test: CITest = ci_test_for(task)
    test.threads = None if parallel else 1
    rules = task.rules
    if rules.max_parents == 0:
        rules = replace(rules, allowed=np.zeros_like(rules.allowed))
    if rules.max_parents < test.n - 1:
        depth = rules.max_parents if depth is None else min(depth, rules.max_parents)
    skeleton = adjacency_search(test, rules, task.clock, depth=depth, stable=stable, separate_forbidden=True)
    triples = decide_triples(test, skeleton, orientation, task.clock, depth)
    directed = Orientation(skeleton.adjacent, rules, task.names)
    directed.direct_colliders(triples, skeleton.p_max, conflicts == "bidirected")
    directed.follow()
    graph = directed.graph()
    names = task.names
    notes = _notes(graph, directed, len(triples.ambiguous))
    if task.clock.reason:
        notes.insert(
            0,
            "the search stopped before all sets were tried: edges may be there that some set would take away",
        )
    return FoundGraph(
        graph,
        tests=test.kept(keep_tests),
        n_tests=test.n_made,
        separating_sets=NamedSeparators(skeleton.separators, names),
        notes=notes,
        details=PCDetails(
            edge_p_values(skeleton, names),
            list(directed.conflicts),
            [tuple(names[v] for v in t) for t in sorted(triples.ambiguous)],
        ),
    )


def edge_p_values(skeleton: Skeleton, names: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Return for each edge that was tested the largest p-value seen: how near some set comes to separating it."""
    kept = np.argwhere(np.triu(skeleton.adjacent & skeleton.tested))
    return {(names[i], names[j]): float(skeleton.p_max[i, j]) for i, j in kept}


def _notes(graph: MixedGraph, directed: Orientation, ambiguous: int) -> list[str]:
    found = [
        f"conflict: {c.tail} --> {c.head} follows from the tests, but {c.why}"
        for c in directed.conflicts[:NOTED]
    ]
    if len(directed.conflicts) > NOTED:
        found.append(f"{len(directed.conflicts) - NOTED} more conflicts are in details.conflicts")
    if ambiguous:
        found.append(f"{ambiguous} triples are ambiguous; nothing is concluded from them")
    bidirected = graph.bidirected_edges()
    if bidirected:
        found.append(
            "arrowheads at both ends speak for hidden common causes: "
            + ", ".join(f"{a} <-> {b}" for a, b in bidirected[:NOTED])
            + (", ..." if len(bidirected) > NOTED else "")
            + "; FCI allows for them"
        )
    else:
        try:
            extend(graph)
        except InvalidGraph:
            found.append(
                "no directed acyclic graph agrees with all directions and v-structures that were found"
            )
    return found
