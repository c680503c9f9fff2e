"""FCI, fast causal inference: what tests of independence say when there may be hidden causes and selection.

Adjacency search as in PC, colliders, a second search in Possible-D-SEP sets, colliders again, then the ten orientation
rules. The result is a partial ancestral graph (PAG): an arrowhead at x on an edge x *-* y says that x causes neither y
nor the selection, a tail that it does cause one of them, a circle that the data do not say. x <-> y is a hidden common
cause.

Papers: Spirtes, Glymour and Scheines, *Causation, Prediction, and Search* (2000); Zhang, Artificial Intelligence 172
(2008). Cost: the Possible-D-SEP search is exponential in the size of those sets; `depth` limits it, `method="rfci"`
avoids it. When to use it: whenever a common cause of two columns may be missing from the data, which PC must exclude.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markovia.errors import InvalidArgument
from markovia.runtime.checks import check_count
from markovia.structure.ci_tests.ci_tests import CITest, ci_test_for
from markovia.structure.constraint.adjacency_search import NamedSeparators, adjacency_search
from markovia.structure.constraint.ancestral_rules import Ancestral, orient, orient_colliders
from markovia.structure.constraint.possible_d_sep import search_possible_d_sep
from markovia.structure.constraint.visible_edges import visible_edges
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task

STOPPED = "stopped before all tests were made: the orientations are only those that are known"
UNFINISHED = "stopped within the Possible-D-SEP search: edges may be left that it would have taken away"


@dataclass(frozen=True)
class AncestralDetails:
    """What FCI and RFCI found besides the graph.

    Attributes
    ----------
    visible
        Edges that no hidden common cause accompanies.
    possible_d_sep, removed_by_possible_d_sep
        Of FCI: the Possible-D-SEP set of each variable, and the edges that those sets took away; None where none were tried.
    removed_by_triples, removed_by_paths
        Of RFCI: the edges that the tests on triples and on paths took away.
    """

    visible: Sequence[tuple[str, str]] = ()
    possible_d_sep: dict[str, list[str]] | None = None
    removed_by_possible_d_sep: Sequence[tuple[str, str]] | None = None
    removed_by_triples: Sequence[tuple[str, str]] = ()
    removed_by_paths: Sequence[tuple[str, str]] = ()


def fci(
    task: Task,
    *,
    depth: int | None = None,
    stable: bool = True,
    possible_d_sep: bool = True,
    pds_depth: int | None = None,
    max_path_length: int | None = None,
    selection_bias: bool = True,
) -> FoundGraph:
    """Learn a partial ancestral graph by FCI.

    Knowledge is about causes: a required edge is an adjacency x --> y; a forbidden edge, and an edge against the tiers, says
    that x does not cause y, an arrowhead at x if they are adjacent; an edge forbidden in both directions is no adjacency.
    What is known comes before what the rules say.

    Parameters
    ----------
    task
        Data or oracle, knowledge, limits.
    depth
        The largest size of a conditioning set; None for no limit.
    stable
        Whether the adjacency search is independent of the order of the variables.
    possible_d_sep
        Whether to search the Possible-D-SEP sets too. Without, edges may stay that should go, and orientations may be wrong.
    pds_depth
        The largest size of a conditioning set in that search; `depth` by default. The sets may be large: with data, 3 or 4
        keeps the search practical and leaves the tests some power.
    max_path_length
        The longest path that makes a node part of a Possible-D-SEP set; None for no limit.
    selection_bias
        Whether the rules for selected data (R5 to R7) are applied.

    Returns
    -------
    Found
        `details` is an `AncestralDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> truth = mk.graphs.DAG([("a", "b"), ("hidden", "b"), ("hidden", "c"), ("d", "c")])
    >>> mk.learn_structure(method="fci", test=mk.ci_tests.Oracle(truth, latent=["hidden"])).graph
    MixedGraph(['a o-> b', 'b <-> c', 'd o-> c'])
    """
    check_limits("fci", task, depth=depth, pds_depth=pds_depth, max_path_length=max_path_length)
    test = ci_test_for(task)
    rules = task.rules
    skeleton = adjacency_search(test, rules, task.clock, depth=depth, stable=stable)
    pag = Ancestral.start(skeleton.adjacent, skeleton.separators, rules)
    details = AncestralDetails()
    if task.clock.over():
        return as_found(task, test, pag, [STOPPED], details)
    notes = []
    if possible_d_sep:
        task.clock.advance(note="possible-d-sep")
        orient_colliders(pag)
        sets, removed = search_possible_d_sep(
            pag,
            test,
            rules,
            task.clock,
            depth=depth if pds_depth is None else pds_depth,
            max_path_length=max_path_length,
        )
        pag.clear(rules)
        names = task.names
        details = AncestralDetails(
            possible_d_sep={name: sorted(names[v] for v in s) for name, s in zip(names, sets, strict=True)},
            removed_by_possible_d_sep=[(names[x], names[y]) for x, y in removed],
        )
        if task.clock.over():
            notes.append(UNFINISHED)
    orient_colliders(pag)
    orient(pag, selection_bias=selection_bias)
    return as_found(task, test, pag, notes, details)


def as_found(
    task: Task, test: CITest, pag: Ancestral, notes: list[str], details: AncestralDetails
) -> FoundGraph:
    """Return what FCI and RFCI hand back."""
    names = task.names
    return FoundGraph(
        graph=pag.graph(names),
        tests=test.kept(True),
        n_tests=test.n_made,
        separating_sets=NamedSeparators(pag.separators, names),
        notes=[*notes, *pag.contradictions(names)],
        details=replace(details, visible=[(names[a], names[b]) for a, b in visible_edges(pag)]),
    )


def check_limits(method: str, task: Task, **limits: int | None) -> None:
    """Refuse limits that are no numbers, and a number of parents, which a partial ancestral graph does not settle."""
    for name, value in limits.items():
        check_count(name, value, none=True)
    if task.rules.max_parents < len(task.names) - 1:
        raise InvalidArgument(
            f"{method} takes no max_parents=: the graph leaves open who is a parent; depth= limits the tests"
        )
