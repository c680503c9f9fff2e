"""Markov networks (Markov random fields): an undirected graph with potentials on its cliques."""

from typing import Any

from markovia.errors import InvalidArgument
from markovia.graphs.independencies import (
    Independence,
    all_independencies,
    local_independencies,
    pairwise_independencies,
)
from markovia.graphs.undirected import UndirectedGraph
from markovia.models.factor_model import FactorModel


class MarkovNetwork(FactorModel):
    """An undirected model: `P(x) = (1/Z) prod_c psi_c(x_c)`.

    Parameters
    ----------
    variables
        A mapping from name to states (a list, or a number for `0 ... k-1`), or `Variable` objects; variables that
        only the factors name are added after them.
    factors
        The potentials; a factor made with plain names takes over the model's states.
    name
        A name that files keep.

    Examples
    --------
    >>> from markovia import Factor
    >>> mn = MarkovNetwork({"a": 2, "b": 2}, [Factor(["a", "b"], [[30, 5], [1, 10]])])
    >>> round(mn.query("a")[0], 4)
    0.7609
    >>> mn.edges
    [('a', 'b')]
    """

    @property
    def graph(self) -> UndirectedGraph:
        """The undirected graph (a copy: edit the network, not its graph)."""
        return self.undirected_graph

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges."""
        return self._interactions().edges

    def independencies(self, kind: str = "local") -> list[Independence]:
        """Return the independencies the graph promises: "local", "pairwise" or "all" (small graphs)."""
        functions: dict[str, Any] = {
            "local": local_independencies,
            "pairwise": pairwise_independencies,
            "all": all_independencies,
        }
        if kind not in functions:
            raise InvalidArgument(f"kind= is one of {', '.join(functions)}, not {kind!r}")
        return list(functions[kind](self._interactions()))
