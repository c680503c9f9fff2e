"""The graph of a factor graph: variables (circles), factors (squares), and which factor mentions what.

It tells apart what an undirected graph cannot: one factor over three variables and three factors over their
pairs. Reference: Kschischang, Frey and Loeliger, *Factor graphs and the sum-product algorithm*, IEEE
Transactions on Information Theory 47 (2001).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from markovia.errors import DuplicateName, InvalidGraph, UnknownVariable
from markovia.graphs.kinds.linear_searches import components
from markovia.graphs.kinds.named import NamedGraph, Names, as_names, checked_name, listed, need_networkx
from markovia.graphs.kinds.undirected import UndirectedGraph


class BipartiteGraph(NamedGraph):
    """Variable nodes, factor nodes and the edges between them. `nodes` are the variables.

    Parameters
    ----------
    scopes
        From each factor's name to the variables it mentions; or only the scopes, and the factors are
        called `f0`, `f1`, ...
    variables
        Variables that come first, in this order, whether or not a factor mentions them.

    Raises
    ------
    DuplicateName
        If a variable occurs twice in one scope.

    Examples
    --------
    >>> pairs = BipartiteGraph([("a", "b"), ("a", "c"), ("b", "c")])
    >>> triple = BipartiteGraph([("a", "b", "c")])
    >>> pairs == triple, pairs.to_undirected() == triple.to_undirected()
    (False, True)
    >>> pairs.factors_of("a"), triple.scope("f0")
    (['f0', 'f1'], ['a', 'b', 'c'])
    """

    _by_node = (("_factors", dict),)
    _factors: list[dict[str, None]]
    """For each variable, the factors that mention it."""

    def __init__(
        self,
        scopes: Mapping[str, Iterable[str]] | Iterable[Iterable[str]] = (),
        variables: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self._scopes: dict[str, list[int]] = {}
        self.add_variables(variables)
        named = (
            scopes.items()
            if isinstance(scopes, Mapping)
            else [(f"f{k}", s) for k, s in enumerate(listed(scopes, "the scopes of factors"))]
        )
        for factor, scope in named:
            self.add_factor(factor, scope)

    @property
    def variables(self) -> list[str]:
        """The variable nodes in insertion order."""
        return list(self._names)

    @property
    def factors(self) -> list[str]:
        """The factor nodes in insertion order."""
        return list(self._scopes)

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges as (factor, variable)."""
        return [(factor, self._names[i]) for factor, scope in self._scopes.items() for i in scope]

    def __eq__(self, other: object) -> bool:
        """Compare names and scopes; the order of a scope does not matter."""
        if not isinstance(other, BipartiteGraph):
            return NotImplemented
        return (
            self._index.keys() == other._index.keys()
            and self._scopes.keys() == other._scopes.keys()
            and all(set(self.scope(f)) == set(other.scope(f)) for f in self._scopes)
        )

    def __repr__(self) -> str:
        if len(self) + len(self._scopes) <= 12:
            scopes = {factor: tuple(self._named(scope)) for factor, scope in self._scopes.items()}
            free = [name for name, factors in zip(self._names, self._factors, strict=True) if not factors]
            return f"BipartiteGraph({scopes!r}" + (f", variables={free!r})" if free else ")")
        return f"<BipartiteGraph with {len(self)} variables and {len(self._scopes)} factors>"

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)({f: self._named(s) for f, s in self._scopes.items()}, variables=self._names)

    def add_variables(self, names: Names) -> None:
        """Add several variable nodes, or none if one of the names is not a string."""
        for name in [checked_name(name) for name in as_names(names)]:
            self._ensure(name)

    def add_factor(self, factor: str, scope: Names) -> None:
        """Add a factor node over some variables, which are added where they are missing.

        Raises
        ------
        DuplicateName
            If the factor exists already or a variable occurs twice in its scope.
        """
        factor, names = checked_name(factor), [checked_name(name) for name in as_names(scope)]
        if factor in self._scopes:
            raise DuplicateName(f"there is already a factor {factor!r}; remove it or choose another name")
        if len(set(names)) < len(names):
            raise DuplicateName(f"a variable occurs twice in the scope of {factor!r}: {', '.join(names)}")
        self._scopes[factor] = [self._ensure(name) for name in names]
        for i in self._scopes[factor]:
            self._factors[i][factor] = None

    def remove_factor(self, factor: str) -> None:
        """Remove a factor node; its variables stay."""
        for i in self._scope(factor):
            del self._factors[i][factor]
        del self._scopes[factor]

    def remove_variable(self, name: str) -> None:
        """Remove a variable node.

        Raises
        ------
        InvalidGraph
            If a factor mentions it.
        """
        i = self._number(name)
        if self._factors[i]:
            raise InvalidGraph(
                f"{name!r} is in the scope of {', '.join(self._factors[i])}; remove these factors first"
            )
        rest = type(self)(
            {f: self._named(s) for f, s in self._scopes.items()},
            variables=[n for n in self._names if n != name],
        )
        self._names, self._index = rest._names, rest._index
        self._scopes, self._factors = rest._scopes, rest._factors

    def scope(self, factor: str) -> list[str]:
        """List the variables of a factor."""
        return self._named(self._scope(factor))

    def factors_of(self, variable: str) -> list[str]:
        """List the factors that mention a variable."""
        return list(self._factors[self._number(variable)])

    def markov_blanket(self, variable: str) -> set[str]:
        """Collect the variables that share a factor with a variable."""
        i = self._number(variable)
        return set(self._named(j for factor in self._factors[i] for j in self._scopes[factor] if j != i))

    def connected_components(self) -> list[list[str]]:
        """Split the variables into parts that share no factor."""
        parts = components(self._adjacency())
        n = len(self)
        return [self._named(i for i in part if i < n) for part in parts if part[0] < n]

    def is_forest(self) -> bool:
        """Tell whether the graph has no cycle, so that belief propagation is exact."""
        return len(self.edges) == len(self) + len(self._scopes) - len(components(self._adjacency()))

    def is_tree(self) -> bool:
        """Tell whether the graph is connected and has no cycle."""
        return self.is_forest() and len(components(self._adjacency())) == 1

    def to_undirected(self) -> UndirectedGraph:
        """Project onto the variables: two are joined if a factor mentions both."""
        return UndirectedGraph.from_cliques(map(self._named, self._scopes.values()), nodes=self._names)

    def to_networkx(self) -> Any:
        """Return a bipartite `networkx.Graph`: nodes ("variable", name), 0, and ("factor", name), 1."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from((("variable", name) for name in self._names), bipartite=0)
        graph.add_nodes_from((("factor", factor) for factor in self._scopes), bipartite=1)
        graph.add_edges_from((("factor", factor), ("variable", name)) for factor, name in self.edges)
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Read a networkx graph with nodes ("variable", name) and ("factor", name), like `to_networkx`."""
        need_networkx(graph)
        scopes: dict[str, list[str]] = {}
        variables: list[str] = []
        for node in graph.nodes:
            if not isinstance(node, tuple) or len(node) != 2 or node[0] not in ("variable", "factor"):
                raise InvalidGraph(f"expected nodes ('variable', name) and ('factor', name), got {node!r}")
            if node[0] == "variable":
                variables.append(node[1])
            else:
                scopes[node[1]] = [name for kind, name in graph.adj[node] if kind == "variable"]
        return cls(scopes, variables)

    def _scope(self, factor: str) -> list[int]:
        if factor not in self._scopes:
            raise UnknownVariable(factor, self._scopes, where="the factors of the graph")
        return self._scopes[factor]

    def _adjacency(self) -> list[list[int]]:
        """List neighbours, with the variables numbered 0 ... n-1 and the factors from n on."""
        n = len(self)
        number = {factor: n + k for k, factor in enumerate(self._scopes)}
        return [[number[f] for f in factors] for factors in self._factors] + list(self._scopes.values())
