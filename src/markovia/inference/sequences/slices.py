"""The steps of a dynamic network of tables as products, and what was seen of them.

A variable of a step is the pair of its name and how many steps back it lies: `("rain", 1)` is yesterday's rain. What the
future needs of the past is the *interface*: `x` and its earlier values, as far back as some later step asks. Given the
interface, past and future are independent, so beliefs about it are all that has to be carried from step to step.
Reference: Murphy (2002), Dynamic Bayesian Networks, chapter 3.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from markovia.inference.sequences.slice_sums import Key, TableElimination
from markovia.runtime.array_types import Array, Ints

Place = tuple[str, int]
"""A variable and how many steps back."""
_LAGGED = re.compile(r"(.+)@-(\d+)")


def split_name(name: str) -> tuple[str, int]:
    """Return a variable's own name and how many steps back it lies.

    Examples
    --------
    >>> split_name("rain@-2"), split_name("rain")
    (('rain', 2), ('rain', 0))
    """
    found = _LAGGED.fullmatch(name)
    return (found[1], int(found[2])) if found and int(found[2]) else (name, 0)


def lagged(name: str, lag: int) -> str:
    """Return the name of a variable some steps back.

    Examples
    --------
    >>> lagged("rain", 1), lagged("rain", 0)
    ('rain@-1', 'rain')
    """
    return f"{name}@-{lag}" if lag else name


@dataclass(frozen=True)
class SliceNode:
    """A conditional table of a step: its places (parents, then the child), and its values.

    Without values it is a density: a table over its places that is different at every step, and comes with what was seen.
    """

    name: str
    scope: tuple[Place, ...]
    values: Array | None


@dataclass(frozen=True)
class SliceEvidence:
    """What was seen of some sequences, whose steps lie one after the other.

    Attributes
    ----------
    offsets
        Sequence i has the steps `offsets[i]` to `offsets[i + 1]`.
    weights
        For each variable with evidence the different likelihoods of its states, (different ones, states).
    codes
        Which of them each step has.
    densities
        For each density and kind of step, tables for the steps of that kind in order, (steps, *states).
    logs
        What is to be added to the log probability of each step.
    numbers
        For quantities: one number a step, NaN for hidden ones.
    """

    offsets: Ints
    weights: Mapping[str, Array] = field(default_factory=dict)
    codes: Mapping[str, Ints] = field(default_factory=dict)
    densities: Mapping[tuple[str, int], Array] = field(default_factory=dict)
    logs: Array | None = None
    numbers: Mapping[str, Array] = field(default_factory=dict)

    def columns(self, names: Sequence[str]) -> Array:
        """Return the numbers of some quantities side by side, (steps, quantities); those without any are hidden."""
        hidden = np.full(int(self.offsets[-1]), np.nan)
        return np.column_stack([self.numbers.get(n, hidden) for n in names])

    @property
    def names(self) -> tuple[str, ...]:
        """The variables with evidence."""
        return tuple(self.weights)


class Slices:
    """A dynamic network of tables, ready for sums over its steps.

    Parameters
    ----------
    sizes
        The number of states of each variable.
    steps
        The nodes of the first steps, one list a step, and last those of every later step.
    """

    def __init__(self, sizes: Mapping[str, int], steps: Sequence[Sequence[SliceNode]]) -> None:
        self.sizes = dict(sizes)
        self.steps = [list(nodes) for nodes in steps]
        self.order = len(steps) - 1
        reach: dict[str, int] = {}
        for nodes in steps:
            for node in nodes:
                for name, lag in node.scope:
                    reach[name] = max(reach.get(name, 0), lag)
        self.reach = {n: reach[n] for n in sizes if reach.get(n, 0) > 0}
        self._plans: dict[tuple[object, ...], tuple[TableElimination, list[Place]]] = {}

    def interface(self, kind: int) -> tuple[Place, ...]:
        """Return what later steps need after a step of some kind: 0, 1, ... for first steps, the order for later ones."""
        return tuple((n, j) for n, reach in self.reach.items() for j in range(reach) if j <= kind)

    def past(self, kind: int) -> tuple[Place, ...]:
        """Return the interface before a step, as that step names it."""
        if kind == 0:
            return ()
        return tuple((n, j + 1) for n, j in self.interface(kind - 1))

    def shape(self, places: Sequence[Place]) -> tuple[int, ...]:
        """Return the numbers of states of some places."""
        return tuple(self.sizes[n] for n, _ in places)

    def size(self, kind: int) -> int:
        """Return the number of joint states of the interface after a step of some kind."""
        return prod(self.shape(self.interface(kind)))

    @cached_property
    def n_states(self) -> int:
        """The number of joint states of the interface."""
        return self.size(self.order)

    def kinds(self, offsets: Ints) -> tuple[Ints, Ints]:
        """Return the kind of each step, and its place among the steps of its kind."""
        starts = np.repeat(offsets[:-1], np.diff(offsets))
        kinds = np.minimum(np.arange(offsets[-1]) - starts, self.order)
        places = np.empty(len(kinds), dtype=np.int64)
        for kind in range(self.order + 1):
            here = kinds == kind
            places[here] = np.arange(np.count_nonzero(here))
        return kinds, places

    def plan(
        self,
        kind: int,
        keep: tuple[Place, ...],
        *,
        before: bool,
        after: bool,
        names: tuple[str, ...],
        nodes: tuple[int, ...] | None = None,
    ) -> tuple[TableElimination, list[Place]]:
        """Return how a step's product is summed down to some places, and the places that need a table of ones.

        Parameters
        ----------
        kind
            Of the step.
        keep
            The places of the answer.
        before, after
            Whether there is a message about the past, and one about the interface after the step.
        names
            Variables with evidence.
        nodes
            Which of the step's nodes to take; all by default.
        """
        key = (kind, keep, before, after, names, nodes)
        if key not in self._plans:
            listed = self.steps[kind] if nodes is None else [self.steps[kind][i] for i in nodes]
            scopes: list[tuple[Place, ...]] = [node.scope for node in listed]
            scopes += [((n, 0),) for n in names]
            if before:
                scopes.append(self.past(kind))
            if after:
                scopes.append(self.interface(kind))
            known = {p for scope in scopes for p in scope}
            bare = [p for p in keep if p not in known]
            scopes += [(p,) for p in bare]
            sizes: dict[Key, int] = {p: self.sizes[p[0]] for scope in scopes for p in scope}
            self._plans[key] = TableElimination(scopes, sizes, keep), bare
        return self._plans[key]

    def tables(
        self,
        kind: int,
        seen: SliceEvidence,
        steps: Ints,
        places: Ints,
        names: tuple[str, ...],
        before: Array | None = None,
        after: Array | None = None,
        nodes: tuple[int, ...] | None = None,
        bare: Sequence[Place] = (),
    ) -> list[Array]:
        """Return the tables that a plan takes, for some steps of one kind."""
        listed = self.steps[kind] if nodes is None else [self.steps[kind][i] for i in nodes]
        found: list[Array] = []
        for node in listed:
            if node.values is not None:
                found.append(node.values)
            else:
                found.append(seen.densities[node.name, kind][places])
        found += [seen.weights[n][seen.codes[n][steps]] for n in names]
        if before is not None:
            found.append(before.reshape(len(before), *self.shape(self.past(kind))))
        if after is not None:
            found.append(after.reshape(len(after), *self.shape(self.interface(kind))))
        return [*found, *(np.ones(self.sizes[n]) for n, _ in bare)]
