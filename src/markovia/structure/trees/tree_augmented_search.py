"""Tree-augmented naive Bayes: a class that is a parent of all others, and a tree among these.

Method: Friedman, Geiger and Goldszmidt (1997): weigh every pair of features by its mutual information given the class, take
a maximum spanning tree, direct it away from a root. It maximises the likelihood among such graphs.
Cost: one pass of counting over all pairs of features, rows times pairs; the tree is quadratic in the features. Use it for
classification when naive Bayes is overconfident because features repeat each other
(`mk.classifiers.TreeAugmentedNaiveBayes` is the classifier).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from markovia.data.tables.row_sources import RowSource
from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.directed import DAG
from markovia.runtime.array_types import Array
from markovia.structure.scores.pair_information import table_information
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task
from markovia.structure.trees.chow_liu import best_tree
from markovia.structure.trees.spanning_trees import maximum_spanning_tree, root_place


@dataclass(frozen=True, eq=False)
class AugmentedTreeDetails:
    """The edges of the tree, the target, and the mutual information of all pairs of features given it."""

    tree: list[tuple[str, str]]
    target: str
    conditional_mutual_information: Array


def tree_augmented(task: Task, *, target: str | None = None, root: str | int | None = None) -> FoundGraph:
    """Learn a tree-augmented naive Bayes graph.

    Parameters
    ----------
    task
        Discrete data and knowledge. The class points to every other variable, so those edges may not be forbidden, nor may
        edges into it be required. With `max_parents=1` there is no tree: that is naive Bayes.
    target
        The class; must be given.
    root
        The feature whose only parent is the class: a name, or a position among the features; by default the first.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.BayesianNetwork("y->a; y->b; y->c; a->b; b->c", tables="random", seed=3).sample(3000, seed=4)
    >>> mk.learn_structure(rows, method="tan", target="y").details.tree
    [('a', 'b'), ('b', 'c')]
    """
    mixed, names, rules = task.rows, task.names, task.rules
    if mixed.table is None or not mixed.discrete:
        raise InvalidArgument("tan is for discrete columns; discretise the others first")
    if target is None:
        raise InvalidArgument("tan needs the class: target='...'")
    check_known([target], names, "the data")
    y = names.index(target)
    features = [k for k in range(len(names)) if k != y]
    barred = [k for k in features if not rules.allowed[y, k]]
    if barred:
        raise InvalidArgument(
            f"in tan the class points to every variable, and {target!r} -> {names[barred[0]]!r} is forbidden"
        )
    if rules.required[:, y].any():
        first = names[int(rules.required[:, y].argmax())]
        raise InvalidArgument(f"in tan the class has no parents, and {first!r} -> {target!r} is required")
    if rules.max_parents < 1 and features:
        raise InvalidArgument("in tan every variable has a parent, and max_parents is 0")
    own = [names[k] for k in features]
    crowded = next((k for k in features if rules.required[features, k].any()), None)
    if crowded is not None and rules.max_parents < 2:
        first = names[next(p for p in features if rules.required[p, crowded])]
        raise InvalidArgument(
            f"{first!r} -> {names[crowded]!r} is required and the class is a parent too, but max_parents is 1"
        )
    start = root_place(root, own, "features")
    information = table_information(mixed.table, own, target, task.clock.over)
    inner = np.ix_(np.array(features, dtype=np.int64), np.array(features, dtype=np.int64))
    known = Rules(rules.allowed[inner], rules.required[inner], rules.max_parents - 1)
    parents = best_tree(information * mixed.total, known, start, False, tuple(own))
    tree = [(own[p], own[k]) for k, p in enumerate(parents) if p >= 0]
    weights = np.zeros((len(names), len(names)))
    for k, p in enumerate(parents):
        if p >= 0:
            weights[features[p], features[k]] = information[p, k]
    value = float(sum(information[p, k] for k, p in enumerate(parents) if p >= 0) * mixed.total)
    return FoundGraph(
        DAG([(target, n) for n in own] + tree, nodes=names),
        path=[SearchStep(f"tree of {len(tree)} edges", value, task.clock.seconds)],
        weights=weights,
        notes=["stopped before all pairs were looked at"] if task.clock.reason else [],
        details=AugmentedTreeDetails(tree, target, information),
    )


def tree_augmented_parents(
    table: RowSource, names: Sequence[str], target: str, root: str | int | None = None
) -> tuple[dict[str, list[str]], list[tuple[str, str]], Array]:
    """Return each variable's parents in the TAN graph of some features, the edges of its tree, and the matrix of weights."""
    start = root_place(root, names, "features") or 0
    information = table_information(table, names, target)
    parent = maximum_spanning_tree(information, start)
    tree = [(names[p], names[k]) for k, p in enumerate(parent) if p >= 0]
    parents = {n: [target] if p < 0 else [target, names[p]] for n, p in zip(names, parent, strict=True)}
    return {target: [], **parents}, tree, information
