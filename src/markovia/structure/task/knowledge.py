"""What is known about a graph before the data are looked at: required and forbidden edges, tiers, largest in-degree.

`Knowledge` speaks of names and is what users write; `Rules` is the same over numbered variables, checked, and is what
algorithms read. Every method obeys it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovia.errors import CycleError, InvalidArgument, check_known
from markovia.graphs.kinds.directed import DAG
from markovia.runtime.array_types import Flags
from markovia.runtime.checks import check_count

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Knowledge:
    """What is known about a graph beforehand.

    Parameters
    ----------
    required
        Edges (parent, child) that are in the graph. For undirected graphs and partial ancestral graphs: that are adjacent.
    forbidden
        Edges (parent, child) that are not. To forbid an adjacency, forbid both directions.
    tiers
        Groups of variables in the order of time: no edge points from a later group to an earlier one. A variable in no group
        is free. A mapping from names to numbers also does.
    within_tiers
        False forbids edges inside a group.
    max_parents
        The largest number of parents (for undirected graphs: neighbours), or None.

    Examples
    --------
    >>> known = Knowledge(forbidden=[("wet", "rain")], tiers=[["season"], ["rain", "wet"]])
    >>> rules = known.rules(["season", "rain", "wet"])
    >>> bool(rules.allowed[0, 1]), bool(rules.allowed[1, 0]), bool(rules.allowed[2, 1])
    (True, False, False)
    """

    required: Pairs = ()
    forbidden: Pairs = ()
    tiers: Sequence[Iterable[str]] | Mapping[str, int] = ()
    within_tiers: bool = True
    max_parents: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", _edges(self.required, "required"))
        object.__setattr__(self, "forbidden", _edges(self.forbidden, "forbidden"))
        object.__setattr__(self, "tiers", _tiers(self.tiers))
        check_count("max_parents", self.max_parents, none=True)

    def rules(self, names: Sequence[str]) -> "Rules":
        """Return the same over variables numbered in the order of their names, checked for contradictions."""
        number = {name: i for i, name in enumerate(names)}

        def place(name: str) -> int:
            check_known([name], number, "the data")
            return number[name]

        n = len(names)
        allowed = ~np.eye(n, dtype=bool)
        assert isinstance(self.tiers, tuple)
        levels = np.full(n, -1)
        for level, group in enumerate(self.tiers):
            for name in group:
                levels[place(name)] = level
        known = (levels[:, None] >= 0) & (levels[None, :] >= 0)
        late = levels[:, None] > levels[None, :] if self.within_tiers else levels[:, None] >= levels[None, :]
        allowed &= ~(known & late)
        for a, b in self.forbidden:
            allowed[place(a), place(b)] = False
        required = np.zeros((n, n), dtype=bool)
        barred = set(self.forbidden)
        for a, b in self.required:
            if a == b:
                raise InvalidArgument(
                    f"the edge {a!r} -> {b!r} is required, but no variable is its own parent"
                )
            if not allowed[place(a), place(b)]:
                inside = levels[place(a)] == levels[place(b)]
                why = (
                    "forbidden"
                    if (a, b) in barred
                    else "inside a tier, where within_tiers=False forbids edges"
                    if inside
                    else "against the order of the tiers"
                )
                raise InvalidArgument(f"the edge {a!r} -> {b!r} is required and {why}")
            required[place(a), place(b)] = True
        try:
            DAG(self.required, nodes=names)
        except CycleError as error:
            raise InvalidArgument(f"the required edges make a cycle: {error}") from None
        if self.max_parents is not None and n:
            most = int(required.sum(axis=0).argmax())
            if required[:, most].sum() > self.max_parents:
                raise InvalidArgument(
                    f"{names[most]!r} has {int(required[:, most].sum())} required parents, "
                    f"but max_parents is {self.max_parents}"
                )
        return Rules(allowed, required, n - 1 if self.max_parents is None else int(self.max_parents))


@dataclass(frozen=True)
class Rules:
    """Knowledge over numbered variables.

    Attributes
    ----------
    allowed
        `allowed[i, j]`: the edge i -> j may be there. False on the diagonal.
    required
        `required[i, j]`: the edge i -> j is there.
    max_parents
        The largest number of parents.
    """

    allowed: Flags
    required: Flags
    max_parents: int

    @cached_property
    def free(self) -> bool:
        """Whether nothing is known but perhaps the largest in-degree."""
        n = len(self.allowed)
        return not self.required.any() and int(self.allowed.sum()) == n * (n - 1)

    @cached_property
    def pairs(self) -> Flags:
        """The pairs that may be adjacent, a symmetric matrix."""
        either: Flags = self.allowed | self.allowed.T
        return either

    @cached_property
    def required_pairs(self) -> Flags:
        """The pairs that are adjacent, a symmetric matrix."""
        either: Flags = self.required | self.required.T
        return either


def as_knowledge(knowledge: Knowledge | None = None, **given: Any) -> Knowledge:
    """Return knowledge from the keyword arguments of a call; `knowledge` and the others exclude each other."""
    asked = {key: value for key, value in given.items() if value is not None}
    if knowledge is None:
        return Knowledge(**asked)
    if not isinstance(knowledge, Knowledge):
        raise InvalidArgument(f"knowledge= is a Knowledge, not {knowledge!r}")
    if asked:
        raise InvalidArgument(f"give {next(iter(asked))}= inside the Knowledge, or no knowledge=")
    return knowledge


def _pair(edge: Any, what: str) -> tuple[str, str]:
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise InvalidArgument(f"{what} edges are pairs (parent, child), not {edge!r}")
    for end in edge:
        if not isinstance(end, str):
            raise InvalidArgument(f"{what} edges are pairs of names, and {end!r} in {tuple(edge)!r} is none")
    return edge[0], edge[1]


def _edges(edges: Any, what: str) -> tuple[tuple[str, str], ...]:
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise InvalidArgument(f"{what}= is a list of edges (parent, child), not {edges!r}")
    listed = tuple(edges)
    if len(listed) == 2 and all(isinstance(end, str) for end in listed):
        raise InvalidArgument(f"{what}= is a list of edges; write {what}=[({listed[0]!r}, {listed[1]!r})]")
    return tuple(_pair(e, what) for e in listed)


def _tiers(tiers: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(tiers, str) or not isinstance(tiers, Iterable):
        raise InvalidArgument(
            f"tiers= is a list of lists of names, or a mapping from names to numbers, not {tiers!r}"
        )
    if isinstance(tiers, Mapping):
        for name, level in tiers.items():
            if isinstance(level, bool) or not isinstance(level, int | float | np.integer | np.floating):
                raise InvalidArgument(f"the tier of {name!r} is a number, not {level!r}")
            if level != level:
                raise InvalidArgument(f"the tier of {name!r} is not a number")
        levels = sorted(set(tiers.values()))
        return tuple(tuple(str(n) for n, level in tiers.items() if level == at) for at in levels)
    groups = []
    for group in tiers:
        if isinstance(group, str):
            raise InvalidArgument(f"tiers are lists of names, not {group!r}; write [[{group!r}], ...]")
        listed = tuple(group) if isinstance(group, Iterable) else ()
        if not isinstance(group, Iterable) or not all(isinstance(name, str) for name in listed):
            raise InvalidArgument(f"a tier is a list of names, not {group!r}")
        groups.append(listed)
    everyone = [name for group in groups for name in group]
    if len(set(everyone)) < len(everyone):
        twice = next(n for i, n in enumerate(everyone) if n in everyone[:i])
        raise InvalidArgument(f"{twice!r} is in two tiers")
    return tuple(groups)
