"""Nodes that are several columns each: which columns belong to which node, and what is known of pairs of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Ints
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.task import Task


@dataclass(frozen=True, eq=False)
class VectorNodes:
    """The nodes, the node of each column, and the rules over nodes."""

    names: tuple[str, ...]
    node_of: Ints
    rules: Rules

    def columns(self, column_names: Sequence[str]) -> dict[str, list[str]]:
        """Return the columns of each node."""
        found: dict[str, list[str]] = {name: [] for name in self.names}
        for column, node in zip(column_names, self.node_of.tolist(), strict=True):
            found[self.names[node]].append(column)
        return found


def vector_nodes(nodes: Any, task: Task) -> VectorNodes:
    """Read which columns are one node: a mapping from nodes to lists of columns; other columns are nodes of their own.

    A pair of nodes is forbidden where a pair of their columns is, and required where a pair of their columns is.
    """
    if nodes is None:
        return VectorNodes(task.names, np.arange(len(task.names)), task.rules)
    if not isinstance(nodes, Mapping):
        raise InvalidArgument(
            f"nodes= is a mapping from names of nodes to lists of columns, not {type(nodes).__name__}"
        )
    owner: dict[str, str] = {}
    for name, columns in nodes.items():
        listed = [columns] if isinstance(columns, str) else list(columns)
        check_known(listed, task.names, "the data")
        for column in listed:
            if owner.setdefault(column, str(name)) != str(name) or listed.count(column) > 1:
                raise InvalidArgument(f"nodes= names the column {column!r} twice; it belongs to one node")
    names = tuple(dict.fromkeys(owner.get(c, c) for c in task.names))
    for column in task.names:
        if column in nodes and column not in owner:
            raise InvalidArgument(f"{column!r} is a node and a column outside it; give the node another name")
    place = {name: i for i, name in enumerate(names)}
    node_of = np.array([place[owner.get(c, c)] for c in task.names])
    apart, required = np.zeros((2, len(names), len(names)), dtype=bool)
    for found, pairs in ((apart, ~task.rules.pairs), (required, task.rules.required_pairs)):
        found[tuple(node_of[side] for side in np.nonzero(pairs))] = True
    np.fill_diagonal(apart, True)
    np.fill_diagonal(required, False)
    limit = min(task.rules.max_parents, len(names) - 1)
    return VectorNodes(names, node_of, Rules(~apart, required, limit))


def column_graph(graph: UndirectedGraph, columns: Mapping[str, Sequence[str]]) -> UndirectedGraph:
    """Return the graph of columns that a graph of vector-valued nodes means: all pairs in a node and along its edges.

    Examples
    --------
    >>> column_graph(UndirectedGraph([("a", "b")]), {"a": ["a1", "a2"], "b": ["b"]}).edges
    [('a1', 'a2'), ('a1', 'b'), ('a2', 'b')]
    """
    inside = [pair for own in columns.values() for pair in combinations(own, 2)]
    across = [(x, y) for a, b in graph.edges for x in columns[a] for y in columns[b]]
    return UndirectedGraph([*inside, *across], nodes=[c for own in columns.values() for c in own])
