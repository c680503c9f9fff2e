"""A counterfactual probability as a sum of products over districts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markovia.causal.identification.events import Event
from markovia.causal.identification.worlds import DistrictFactor, EventWorlds, Impossible, Key, Term
from markovia.errors import InvalidArgument
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import mask_of, members


@dataclass(frozen=True)
class CounterfactualSum:
    """The sum of a product of factors over all slots but those of the outputs.

    Attributes
    ----------
    factors
        One a district; None if the events exclude each other, so that the sum is zero.
    outputs
        For each event its variable and the term of its value.
    slots
        The variable of each slot.
    """

    factors: tuple[DistrictFactor, ...] | None
    outputs: tuple[tuple[int, Term], ...]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Written:
    """One way to write a counterfactual probability: a sum over another, or over its own sum (`normalised`)."""

    above: CounterfactualSum
    below: CounterfactualSum | None = None
    normalised: bool = False


def ways_to_write(
    graph: Admg, events: Sequence[Event], given: Sequence[Event]
) -> list[Callable[[], Written]]:
    """Return functions that write the probability of events given others, each in a way that may be the identified one.

    They raise `Clash` if a factor needs a variable with two values.

    Raises
    ------
    InvalidArgument
        If a given event has no value, or given events exclude each other.
    """
    if not given:
        return [lambda: Written(_sum(graph, events))]
    if unsaid := next((e for e in given if e.value is None), None):
        raise InvalidArgument(f"a given event needs a value: {unsaid} has none")
    if _impossible(graph, given):
        raise InvalidArgument(f"the given events exclude each other: {', '.join(map(str, given))}")
    ways = [lambda: Written(_sum(graph, [*events, *given]), _sum(graph, given))]
    if not any(isinstance(set_to, Event) for e in given for set_to in e.do.values()):
        opened = [Event(e.variable, do=e.do) for e in events]
        ways.insert(0, lambda: Written(_sum(graph, opened, given), normalised=True))
    return ways


def _impossible(graph: Admg, events: Sequence[Event]) -> bool:
    worlds = EventWorlds(graph)
    try:
        _settled(worlds, [worlds.add(e)[0] for e in events], [])
    except Impossible:
        return True
    return False


def _sum(graph: Admg, events: Sequence[Event], given: Sequence[Event] = ()) -> CounterfactualSum:
    worlds = EventWorlds(graph)
    try:
        held = [worlds.add(e)[0] for e in given]
        asked = [worlds.add(e) for e in events]
        kept = _settled(worlds, [key for key, _ in asked], held)
    except Impossible:
        return CounterfactualSum(None, (), ())
    outputs = tuple((key[0], worlds.resolved(term)) for key, term in asked)
    return CounterfactualSum(tuple(worlds.factors(kept)), outputs, tuple(worlds.slots))


def _settled(worlds: EventWorlds, asked: list[Key], given: list[Key]) -> list[Key]:
    """Return the variables that the sum is made of, after equating what is the same."""
    while True:
        asked = [worlds.least(i, dict(world)) for i, world in asked]
        given = [worlds.least(i, dict(world)) for i, world in given]
        kept = _components(worlds, asked, given)
        worlds.take(kept)
        if not worlds.settle():
            return kept


def _components(worlds: EventWorlds, asked: list[Key], given: list[Key]) -> list[Key]:
    """Return the ancestral components, given some variables, that hold the asked ones.

    Above each variable the given ones of its own world cut the way. Ancestors of two variables belong together if they share
    one, or hidden causes; what is not together with the asked ones cancels when the sum is normalised.
    """
    asked = [*asked, *worlds.nested()]
    parts: list[set[Key]] = []
    for key in dict.fromkeys([*asked, *given]):
        above = set(worlds.ancestors(key))
        cut = mask_of({other[0] for other in given if other in above and other != key})
        parts.append(set(worlds.ancestors(key, cut)))
    kept = set().union(*parts[: len(dict.fromkeys(asked))])
    while True:
        held = mask_of({key[0] for key in kept})
        for i in members(held):
            held |= worlds.graph.siblings[i]
        more = [part for part in parts if not part <= kept and any(held >> key[0] & 1 for key in part)]
        if not more:
            return _ordered(worlds, kept)
        kept = kept.union(*more)


def _ordered(worlds: EventWorlds, keys: Iterable[Key]) -> list[Key]:
    place = {i: k for k, i in enumerate(worlds.graph.order)}
    return sorted(keys, key=lambda key: (place[key[0]], sorted(map(repr, key[1]))))
