"""Node names of a graph and the integers they stand for.

Every graph class keeps its nodes as the integers 0 ... n-1 in insertion order and its adjacency as lists
over those integers; this base class is the one place where names are checked, looked up and changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from markovia.errors import DuplicateName, InvalidArgument, UnknownVariable

Names = str | Iterable[str]


class NamedGraph:
    """What all graph classes share: an ordered set of node names."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._index: dict[str, int] = {}

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
    try:
        return list(names)
    except TypeError:
        raise InvalidArgument(f"expected a node name or several of them, got {names!r}") from None


def checked_name(name: object) -> str:
    """Return `name` if it is a string, as node names have to be."""
    if not isinstance(name, str):
        raise InvalidArgument(
            f"node names are strings, got {name!r} of type {type(name).__name__}; use {str(name)!r}"
        )
    return name


def checked_pair(edge: Any) -> tuple[str, str]:
    """Return an edge as two names; the string 'ab' is a name and not the edge from a to b."""
    if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
        raise InvalidArgument(f"an edge is a pair of node names, got {edge!r}")
    return checked_name(edge[0]), checked_name(edge[1])
