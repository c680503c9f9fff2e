"""What graphs with edges between two nodes share: nodes come and go, and copies, parts and pictures are made in one way."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge
from markovia.graphs.kinds.named import NamedGraph, Names, as_names, checked_name

LARGEST_MATRIX = 10_000  # a dense integer matrix over this many nodes takes 800 MB


class EdgeGraph(NamedGraph):
    """A graph whose edges join two nodes; a kind says what its edges are and how some nodes are cut out."""

    if TYPE_CHECKING:  # what each kind has of its own

        @property
        def edges(self) -> list[Any]: ...  # noqa: D102
        @property
        def n_edges(self) -> int: ...  # noqa: D102
        def neighbors(self, name: str) -> list[str]: ...  # noqa: D102
        def _induced(self, kept: list[int]) -> Self: ...

    def __repr__(self) -> str:
        kind = type(self).__name__
        if len(self) <= 12:
            isolated = [name for name in self._names if not self.neighbors(name)]
            return f"{kind}({self._shown_edges()!r}" + (f", nodes={isolated!r})" if isolated else ")")
        return f"<{kind} with {len(self)} nodes and {self.n_edges} edges>"

    def _shown_edges(self) -> list[Any]:
        return self.edges

    def copy(self) -> Self:
        """Return an independent copy."""
        graph = type(self)()
        graph._names, graph._index = list(self._names), dict(self._index)
        for attribute, entry in self._by_node:
            setattr(graph, attribute, [entry(held) for held in getattr(self, attribute)])
        return graph

    def add_node(self, name: str) -> None:
        """Add a node; nothing happens if it is there already."""
        self._ensure(checked_name(name))

    def add_nodes(self, names: Names) -> None:
        """Add several nodes, or none if one of the names is not a string."""
        for name in [checked_name(name) for name in as_names(names)]:
            self._ensure(name)

    def remove_node(self, name: str) -> None:
        """Remove a node and its edges, in time linear in the graph."""
        self.remove_nodes([self._names[self._number(name)]])

    def remove_nodes(self, names: Names) -> None:
        """Remove several nodes and their edges, or none if one of them is not there."""
        gone = set(self._numbers(names))
        self._become(self._induced([i for i in range(len(self)) if i not in gone]))

    def subgraph(self, names: Names) -> Self:
        """Return the graph induced on some of the nodes, which keep their order."""
        return self._induced(sorted(self._numbers(names)))

    def _become(self, other: Self) -> None:
        """Take over the nodes and edges of another graph."""
        for attribute in ("_names", "_index", *(name for name, _ in self._by_node)):
            setattr(self, attribute, getattr(other, attribute))

    def _zero_matrix(self) -> NDArray[np.int_]:
        """Return a matrix of zeros, one row and column a node."""
        if len(self) > LARGEST_MATRIX:
            raise TooLarge(
                f"a dense matrix over {len(self):,} nodes is over the limit of {LARGEST_MATRIX:,}; use .edges"
            )
        return np.zeros((len(self), len(self)), dtype=np.int_)

    def _into_networkx(self, graph: Any) -> Any:
        """Return an empty networkx graph with the nodes and edges of this one."""
        graph.add_nodes_from(self._names)
        graph.add_edges_from(self.edges)
        return graph
