"""Counterfactual events: what a variable would be had others been set, possibly to what they would have been themselves."""

from collections.abc import Mapping
from typing import Any

from markovia.errors import InvalidArgument
from markovia.runtime.shown import InNotebooks


class Event(InNotebooks):
    """A variable in the world where others are set from outside.

    Parameters
    ----------
    variable
        Its name.
    value
        The state it takes; None leaves it open, so that the answer is a distribution over its states.
    do
        What is set in this world: names with states, or with events whose value is the one they take in *their* world (so
        that `do={"x": 1, "m": Event("m", do={"x": 0})}` sets the mediator to what it would have been without treatment).

    Examples
    --------
    >>> Event("y", "alive", do={"x": "drug"})
    Event('y[x=drug] = alive')
    >>> Event("y", do={"x": 1, "m": Event("m", do={"x": 0})})
    Event('y[m=m[x=0], x=1]')
    """

    def __init__(self, variable: str, value: Any = None, *, do: Mapping[str, Any] | None = None) -> None:
        if not isinstance(variable, str):
            raise InvalidArgument(f"an event is about a variable by name, not {variable!r}")
        if not isinstance(do or {}, Mapping):
            raise InvalidArgument(f"do= is a mapping from names to states or events, not {do!r}")
        for name, set_to in (do or {}).items():
            if isinstance(set_to, Event) and set_to.value is not None:
                raise InvalidArgument(
                    f"the event {name!r} is set to already has the value {set_to.value!r}; set {name!r} to that state"
                )
        self.variable = variable
        self.value: Any = value
        self.do = dict(sorted((do or {}).items()))
        self._key = (variable, value, tuple(self.do.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        world = ", ".join(f"{name}={set_to}" for name, set_to in self.do.items())
        there = f"{self.variable}[{world}]" if world else self.variable
        return there if self.value is None else f"{there} = {self.value}"

    def __repr__(self) -> str:
        return f"Event({str(self)!r})"
