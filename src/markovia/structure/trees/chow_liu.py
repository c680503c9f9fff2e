"""The tree of largest likelihood.

Method: Chow and Liu (1968): weigh every pair of variables by its mutual information and take a maximum spanning tree.
With restricted directions it is the best branching (Chu and Liu 1965, Edmonds 1967). A forest leaves out edges whose mutual
information does not pay for its parameters (Edwards, de Abreu and Labouriau 2010).
Cost: one pass of counting over all pairs, then quadratic in the variables. Use it as a fast first picture, for many
variables, or where inference in the learned model must be cheap. Kinds of columns: `pair_information`.
"""

from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.directed import DAG
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.structure.scores.pair_information import pair_information
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task
from markovia.structure.trees.spanning_trees import maximum_branching, maximum_spanning_tree, root_place


@dataclass(frozen=True, eq=False)
class TreeDetails:
    """The mutual information of all pairs in nats, and what the tree gains over no edges."""

    mutual_information: Array
    gain: float


def chow_liu(task: Task, *, root: str | int | None = None, forest: str | None = None) -> FoundGraph:
    """Learn a tree, or a forest.

    Parameters
    ----------
    task
        Data and knowledge. Every variable has at most one parent, so no two required edges may meet in one.
    root
        Where edges point away from: a name or a position; by default the first variable. It does not change the likelihood.
    forest
        None for a tree; "bic" or "aic" leave out edges that do not raise that score.

    Returns
    -------
    Found
        `weights` has the mutual information of the edges in nats, `details` that of all pairs.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.BayesianNetwork("a->b->c", tables="random", seed=2).sample(1000, seed=1)
    >>> mk.learn_structure(rows, method="chow-liu", root="b").edges
    [('b', 'a'), ('b', 'c')]
    """
    mixed = task.rows
    check_choice("forest", forest, ("bic", "aic"), none=True)
    start = root_place(root, task.names, "variables")
    information, cost = pair_information(mixed, task.clock.over)
    total = mixed.total
    gain = information * total
    if forest is not None and total > 0:
        gain = gain - cost * (np.log(total) / 2 if forest == "bic" else 1.0)
    parents = best_tree(gain, task.rules, start, forest is not None, task.names)
    names = task.names
    edges = [(names[p], names[k]) for k, p in enumerate(parents) if p >= 0]
    weights = np.zeros_like(information)
    for k, p in enumerate(parents):
        if p >= 0:
            weights[p, k] = information[p, k]
    value = float(sum(gain[p, k] for k, p in enumerate(parents) if p >= 0))
    task.clock.advance(note=f"{len(edges)} edges")
    return FoundGraph(
        DAG(edges, nodes=names),
        path=[SearchStep(f"tree of {len(edges)} edges", value, task.clock.seconds)],
        weights=weights,
        notes=["stopped before all pairs were looked at"] if task.clock.reason else [],
        details=TreeDetails(information, value),
    )


def best_tree(gain: Array, rules: Rules, root: int | None, forest: bool, names: tuple[str, ...]) -> list[int]:
    """Return each variable's parent in the best tree that the rules allow, -1 for none.

    Parameters
    ----------
    gain
        What each edge is worth, symmetric.
    rules
        What is known; required edges are always there.
    root
        A variable without parents, or None.
    forest
        Whether edges that are worth nothing are left out; otherwise as many as possible are taken.
    names
        For messages.
    """
    n = len(gain)
    if n == 0:
        return []
    if rules.free and rules.max_parents > 0 and not forest:
        return maximum_spanning_tree(gain, root or 0)
    required = rules.required
    for k in np.flatnonzero(required.sum(axis=0) > 1).tolist():
        raise InvalidArgument(
            f"a tree gives every variable one parent, and {names[k]!r} has two required ones"
        )
    if root is not None and required[:, root].any():
        raise InvalidArgument(f"the root {names[root]!r} has a required parent")
    if rules.max_parents == 0:
        return [-1] * n
    weights = np.where(rules.allowed, gain, -np.inf)
    largest = 1.0 + float(np.abs(gain).sum())
    if not forest:
        weights = weights + largest  # more edges are better than heavy ones
    weights = np.where(weights > 0, weights, -np.inf)
    if root is not None:
        weights[:, root] = -np.inf
    else:  # of trees that are equally good, the one from the first variable
        weights[:, 0] *= 1 - 1e-12
    bonus = 2 * largest * (n + 1)
    for k in np.flatnonzero(required.any(axis=0)).tolist():
        keep = int(np.flatnonzero(required[:, k])[0])
        weights[:, k] = -np.inf
        weights[keep, k] = bonus
    return maximum_branching(weights)
