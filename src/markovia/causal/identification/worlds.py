"""Several worlds of one graph: a conjunction of counterfactual events as a sum of products over districts.

Every ancestor of an event is a variable in its own least world. Given the values of its parents there it is the same
function of the same hidden causes whatever the world, so that a conjunction over all ancestors is a product over
districts of probabilities P(V_pa(V) = v, ...). Such a factor is an ordinary effect if no variable is asked for two
values in it; then the graph's own identification decides. Reference: Correa, Lee and Bareinboim, *Nested
counterfactual identification from arbitrary surrogate experiments*, NeurIPS 34 (2021).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markovia.causal.identification.events import Event
from markovia.errors import InvalidArgument
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import mask_of, members


@dataclass(frozen=True)
class State:
    """A value that is said."""

    value: Any


@dataclass(frozen=True)
class OpenValue:
    """A value left open (an axis of the answer) or summed over."""

    number: int


Term = State | OpenValue
Key = tuple[int, frozenset[tuple[int, Term]]]
"""A variable in its least world: of what is set there, only that which reaches it."""


class Impossible(Exception):
    """Two events that exclude each other."""


@dataclass(frozen=True)
class DistrictFactor:
    """A probability P(V_pa(V) = v, ...) of one district: its members, and the term of each variable in it or above it."""

    members: int
    terms: Mapping[int, Term]


class Clash(Exception):
    """A variable that one factor needs with two values."""

    def __init__(self, variable: int, members: int) -> None:
        super().__init__(variable)
        self.variable = variable
        self.members = members


class EventWorlds:
    """The variables in all worlds that some events speak of, and the values they share."""

    def __init__(self, graph: Admg) -> None:
        self.graph = graph
        self.terms: dict[Key, Term] = {}
        self._merged: dict[OpenValue, Term] = {}
        self.slots: list[int] = []  # the variable of each
        self._open: set[OpenValue] = set()
        self._nested: dict[Event, OpenValue] = {}

    def add(self, event: Event) -> tuple[Key, Term]:
        """Take in an event; return its variable and the term of its value, an open slot if it has none."""
        if event.value is None:
            term: Term = self._slot(self._number(event.variable))
            self._open.add(term)  # type: ignore[arg-type]
        else:
            term = State(event.value)
        return self._place(event, term), term

    def _place(self, event: Event, term: Term) -> Key:
        variable = self._number(event.variable)
        world = self._world(event)
        if variable in world:
            raise InvalidArgument(
                f"{event.variable!r} is set in the world of {event}; its value is known there"
            )
        key = self.least(variable, world)
        self._equate(self.terms.setdefault(key, term), term)
        return key

    def _world(self, event: Event) -> dict[int, Term]:
        return {
            self._number(name): self._nested_slot(set_to) if isinstance(set_to, Event) else State(set_to)
            for name, set_to in event.do.items()
        }

    def _nested_slot(self, event: Event) -> OpenValue:
        if event not in self._nested:
            slot = self._nested[event] = self._slot(self._number(event.variable))
            self._place(event, slot)
        return self._nested[event]

    def least(self, variable: int, world: Mapping[int, Term]) -> Key:
        """Return a variable in the least world that it cannot tell from another: what reaches it past the rest."""
        fixed = mask_of(world)
        reaching = self.graph.ancestors(1 << variable, into=fixed & ~(1 << variable)) & fixed
        return variable, frozenset((j, self.resolved(world[j])) for j in members(reaching))

    def ancestors(self, key: Key, cut: int = 0) -> list[Key]:
        """List a variable and those above it in its world, where outgoing edges of the nodes of `cut` are gone."""
        variable, world = key
        fixed = dict(world)
        inside = ~(mask_of(fixed) | cut) | 1 << variable
        return [self.least(j, fixed) for j in members(self.graph.ancestors(1 << variable, within=inside))]

    def take(self, keys: Iterable[Key]) -> None:
        """Give variables a slot that have no value yet."""
        for key in keys:
            if key not in self.terms:
                self.terms[key] = self._slot(key[0])

    def settle(self) -> bool:
        """Equate the values of variables that are the same function of the same values; say whether any were."""
        merged = False
        while True:
            held: dict[Key, Term] = {}
            again = False
            for (variable, world), term in self.terms.items():
                key = self.least(variable, {j: self.resolved(t) for j, t in world})
                again |= self._equate(held.setdefault(key, term), term)
            self.terms = held
            same: dict[tuple[int, tuple[Term, ...]], Term] = {}
            for key, term in held.items():
                above = self.above(key)
                if above is not None:
                    again |= self._equate(same.setdefault((key[0], tuple(above.values())), term), term)
            if not again:
                return merged
            merged = True

    def above(self, key: Key) -> dict[int, Term] | None:
        """Return the terms of a variable's parents in its world; None if one of them has none."""
        variable, world = key
        fixed = dict(world)
        found = {}
        for j in members(self.graph.parents[variable]):
            term = fixed[j] if j in fixed else self.terms.get(self.least(j, fixed))
            if term is None:
                return None
            found[j] = self.resolved(term)
        return found

    def resolved(self, term: Term) -> Term:
        """Return what a term has become."""
        while isinstance(term, OpenValue) and term in self._merged:
            term = self._merged[term]
        return term

    def factors(self, keys: Iterable[Key]) -> list[DistrictFactor]:
        """Return the factors of a set of variables that holds the ancestors of its members.

        Raises
        ------
        Clash
            If one of them needs a variable with two values.
        """
        keys = list(keys)
        found = []
        for part in self.graph.districts(mask_of({key[0] for key in keys})):
            terms: dict[int, Term] = {}
            for key in keys:
                if part >> key[0] & 1:
                    above = self.above(key)
                    assert above is not None
                    for j, term in {**above, key[0]: self.resolved(self.terms[key])}.items():
                        if terms.setdefault(j, term) != term:
                            raise Clash(j, part)
            found.append(DistrictFactor(part, terms))
        return found

    def nested(self) -> list[Key]:
        """List the variables whose values others are set to."""
        return [self.least(self._number(e.variable), self._world(e)) for e in self._nested]

    def _slot(self, variable: int) -> OpenValue:
        self.slots.append(variable)
        return OpenValue(len(self.slots) - 1)

    def _number(self, name: str) -> int:
        if name not in self.graph.number:
            raise InvalidArgument(f"the graph has no variable {name!r}")
        return self.graph.number[name]

    def _equate(self, a: Term, b: Term) -> bool:
        a, b = self.resolved(a), self.resolved(b)
        if a == b:
            return False
        if isinstance(a, OpenValue) and (isinstance(b, State) or a not in self._open):
            self._merged[a] = b
        elif isinstance(b, OpenValue):
            self._merged[b] = a
        else:
            raise Impossible
        return True
