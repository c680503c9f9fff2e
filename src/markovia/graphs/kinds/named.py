"""Node names of a graph and the integers they stand for.

Every graph class keeps its nodes as the integers 0 ... n-1 in insertion order and its adjacency as lists
over those integers; this base class is the one place where names are checked, looked up and changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, ClassVar, TypeVar

from markovia.errors import DuplicateName, InvalidArgument, InvalidGraph, UnknownVariable
from markovia.graphs.kinds.drawn import Drawn

Names = str | Iterable[str]
Item = TypeVar("Item")

# what to do with a graph of one kind where another kind is needed, by (given, needed)
_CURES = {
    ("DAG", "UndirectedGraph"): "use graph.moral_graph(), or graph.skeleton() to drop the directions",
    ("DAG", "MixedGraph"): "use MixedGraph.from_dag(graph)",
    ("UndirectedGraph", "DAG"): "to_directed(graph) makes one of a chordal graph",
    ("UndirectedGraph", "MixedGraph"): "use MixedGraph.from_undirected(graph)",
    ("MixedGraph", "DAG"): "use graph.to_dag() if every edge is directed, or extend(graph)",
    ("MixedGraph", "UndirectedGraph"): "use graph.skeleton() to drop the marks",
    ("BipartiteGraph", "UndirectedGraph"): "use graph.to_undirected()",
}


class NamedGraph(Drawn):
    """What all graph classes share: an ordered set of node names."""

    _by_node: ClassVar[tuple[tuple[str, type], ...]]
    """The attributes that are lists with one entry a node, and what kind of entry."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._index: dict[str, int] = {}
        for attribute, _ in self._by_node:
            setattr(self, attribute, [])

    @property
    def nodes(self) -> list[str]:
        """The node names in insertion order."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names))

    def rename(self, mapping: Mapping[str, str]) -> None:
        """Give nodes new names, all at once, so that two names can be swapped.

        Parameters
        ----------
        mapping
            From old names to new ones; nodes that are not mentioned keep theirs.

        Raises
        ------
        UnknownVariable
            If an old name is not in the graph.
        DuplicateName
            If two nodes would end up with one name. The graph is then left as it was.
        """
        names = list(self._names)
        for old, new in mapping.items():
            names[self._number(old)] = checked_name(new)
        index = {name: i for i, name in enumerate(names)}
        if len(index) < len(names):
            taken = next(name for i, name in enumerate(names) if index[name] != i)
            raise DuplicateName(f"renaming would give two nodes the name {taken!r}; choose another name")
        self._names, self._index = names, index

    def _ensure(self, name: str) -> int:
        """Return the number of a node, which is added where it is missing."""
        number = self._index.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
            for attribute, entry in self._by_node:
                getattr(self, attribute).append(entry())
        return number

    def _number(self, name: object) -> int:
        if isinstance(name, str):
            number = self._index.get(name)
            if number is not None:
                return number
        raise UnknownVariable(name, self._names, where="the graph")

    def _numbers(self, names: Names) -> list[int]:
        """Look up one name or several; repeated names count once."""
        return list(dict.fromkeys(self._number(name) for name in as_names(names)))

    def _named(self, numbers: Iterable[int]) -> list[str]:
        names = self._names
        return [names[i] for i in numbers]


def as_names(names: Names) -> list[str]:
    """Return the names as a list; a lone string is one name, never a sequence of letters.

    Examples
    --------
    >>> as_names("smoke"), as_names(("smoke", "lung"))
    (['smoke'], ['smoke', 'lung'])
    """
    if isinstance(names, str):
        return [names]
    return listed(names, "a node name or several of them")


def listed(items: Iterable[Item], what: str) -> list[Item]:
    """Return the items as a list; `what` says what was expected if they are not iterable."""
    try:
        return list(items)
    except TypeError:
        raise InvalidArgument(f"expected {what}, got {items!r}") from None


def checked_name(name: object) -> str:
    """Return `name` if it is a string, as node names have to be."""
    if not isinstance(name, str):
        raise InvalidArgument(
            f"node names are strings, got {name!r} of type {type(name).__name__}; use {str(name)!r}"
        )
    return name


def checked_pair(edge: Any) -> tuple[str, str]:
    """Return an edge as two names; the string 'ab' is a name and not the edge from a to b."""
    if isinstance(edge, str | Set | Mapping) or not hasattr(edge, "__len__") or len(edge) != 2:
        raise InvalidArgument(f"an edge is a pair of node names, got {edge!r}")
    return checked_name(edge[0]), checked_name(edge[1])


def need(graph: object, *kinds: type[NamedGraph], instead: Mapping[str, str] | None = None) -> None:
    """Refuse a graph that is of none of the kinds a function works on.

    Parameters
    ----------
    graph
        What was passed.
    kinds
        The graph classes that will do.
    instead
        For the name of a class that will not do, what to call instead; otherwise the way to convert is shown.

    Raises
    ------
    InvalidGraph
        If the graph is of another kind, with the cure where there is one.

    Examples
    --------
    >>> from markovia.graphs import DAG, UndirectedGraph
    >>> need(DAG([("a", "b")]), UndirectedGraph)
    Traceback (most recent call last):
    ...
    markovia.errors.InvalidGraph: expected an UndirectedGraph, not a DAG; use graph.moral_graph(), ...
    """
    if isinstance(graph, kinds):
        return
    expected = " or ".join(_article(kind.__name__) for kind in kinds)
    cure = _cure(graph, kinds, instead or {})
    raise InvalidGraph(f"expected {expected}, not {_article(type(graph).__name__)}" + (cure and f"; {cure}"))


def need_networkx(graph: Any) -> None:
    """Refuse what is not a networkx graph."""
    if isinstance(graph, NamedGraph) or not hasattr(graph, "is_directed"):
        raise InvalidGraph(f"expected a networkx graph, not {_article(type(graph).__name__)}")


def _cure(graph: object, kinds: tuple[type[NamedGraph], ...], instead: Mapping[str, str]) -> str:
    first = kinds[0].__name__
    if isinstance(graph, NamedGraph):
        given = [cls.__name__ for cls in type(graph).__mro__]
        chosen = (instead[name] for name in given if name in instead)
        converted = (
            _CURES[name, kind.__name__] for name in given for kind in kinds if (name, kind.__name__) in _CURES
        )
        return next(chosen, next(converted, ""))
    if type(graph).__module__.startswith("networkx"):
        return f"use {first}.from_networkx(graph)"
    if hasattr(type(graph), "graph"):
        return "pass the model's .graph"
    return f"build one with {first}(edges)" if isinstance(graph, list | tuple) else ""


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
