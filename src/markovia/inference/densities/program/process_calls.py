"""What stands for a function node in a child's function: something to call, which answers by what it is made of.

Calls are told apart by (child, number of the call). A `Recorder` notes the places and answers with numbers that do not
matter, or that are tried out; `Realised` has the values of every call; `Sampled` draws them as they come, each given those
before; `StandIn` is some smooth function, for checks of functions by themselves.
"""

# ruff: noqa: D102 (`answer` is said once, by the base)

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.densities.program.process_places import Conditioned, Place, read_place
from markovia.runtime.libraries import jax, jnp

Key = tuple[str, int]
"""A call: the child whose function calls, and the number of the call in it."""
MOST_CALLS = 24
"""Calls of one function in one child; more are a loop over rows."""


class CalledFunction:
    """What a child's function gets for a function node; made for each call of that function (`called_by`)."""

    def __init__(self, name: str, plated: bool = False) -> None:
        self.name, self.plated = name, plated

    def called_by(self, child: str) -> "CallsOf":
        """Return the function as a child's function gets it, which counts its calls."""
        return CallsOf(self, child)

    def answer(self, key: Key, place: Place) -> Any:
        """Return what a place asks for, a vector."""
        raise NotImplementedError


class CallsOf:
    """A function, as one call of a child's function sees it."""

    def __init__(
        self, source: CalledFunction, child: str, member: Any = None, count: list[int] | None = None
    ) -> None:
        self._source, self._child, self._member = source, child, member
        self._count = [0] if count is None else count

    def __call__(self, *x: Any) -> Any:
        """Return the values at inputs: a number, (n,) or (n, d) numbers; further arguments are columns beside."""
        return self._ask("value", x)

    def grad(self, x: Any) -> Any:
        """Return the derivative at inputs: (n,) for numbers, (n, d) for rows."""
        return self._ask("grad", (x,))

    def integral(self, a: Any, b: Any) -> Any:
        """Return the integral between two ends, for each pair of them."""
        return self._ask("integral", (a, b))

    def __getitem__(self, member: Any) -> "CallsOf":
        """Return one of the functions of a plate, or one for each row."""
        if not self._source.plated:
            raise InvalidArgument(
                f"{self._source.name!r} is one function, on no plate, so it is not indexed; call it, {self._source.name}(x)"
            )
        return CallsOf(self._source, self._child, member, self._count)

    def _ask(self, kind: str, arguments: tuple[Any, ...]) -> Any:
        name = self._source.name
        if self._source.plated and self._member is None:
            raise InvalidArgument(
                f"{name!r} is on a plate, one function for each element; say which: {name}[g](x)"
            )
        key = (self._child, self._count[0])
        self._count[0] += 1
        if self._count[0] > MOST_CALLS:
            raise InvalidArgument(
                f"the function of {self._child!r} calls {name!r} more than {MOST_CALLS} times; call it once with all rows, "
                f"{name}(x), and not in a loop"
            )
        place = read_place(kind, arguments, self._member, name)
        found = self._source.answer(key, place)
        return found.reshape(place.shape)


class StandIn(CalledFunction):
    """Some smooth function that acts row by row, for checks of the functions that call it."""

    def answer(self, key: Key, place: Place) -> Any:
        xp = np if isinstance(place.x, np.ndarray) else jnp
        waves = xp.sin(place.x) if place.kind != "grad" else xp.cos(place.x)
        return waves.reshape(-1) if place.kind == "grad" else waves.sum(axis=1)


class Recorder(CalledFunction):
    """Notes where a function is called; answers with given numbers, or with zeros."""

    def __init__(
        self, name: str, plated: bool = False, values: Mapping[Key, Any] | None = None, fill: Any = None
    ) -> None:
        super().__init__(name, plated)
        self.places: dict[Key, Place] = {}
        self.values, self.fill = values, fill

    def answer(self, key: Key, place: Place) -> Any:
        self.places.setdefault(key, place)
        if self.values is not None:
            return self.values[key]
        if self.fill is not None:
            return jnp.asarray(self.fill(place.size))
        return jnp.zeros(place.size)


class Realised(CalledFunction):
    """A function whose values at all calls are known."""

    def __init__(self, name: str, plated: bool, values: Mapping[Key, Any]) -> None:
        super().__init__(name, plated)
        self.values = values

    def answer(self, key: Key, place: Place) -> Any:
        return self.values[key]


class Sampled(CalledFunction):
    """A function that is drawn as it is called: each call given all before, so that all are of one function."""

    def __init__(self, name: str, plated: bool, process: Conditioned, key: Any) -> None:
        super().__init__(name, plated)
        self.process, self.key = process, key
        self.values: dict[Key, Any] = {}

    def answer(self, key: Key, place: Place) -> Any:
        if key not in self.values:
            self.key, mine = jax.random.split(self.key)
            place = Place(place.kind, jnp.asarray(place.x, float), place.shape, place.member, place.of)
            self.values[key] = self.process.extend(place, jax.random.normal(mine, (place.size,)))
        return self.values[key]


class Set(CalledFunction):
    """A function that was set from outside."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function

    def answer(self, key: Key, place: Place) -> Any:
        from markovia.inference.densities.program.process_places import asked_of

        def at(x: Any) -> Any:
            found = jnp.asarray(self.function(x[:, 0] if x.shape[1] == 1 else x))
            return jnp.broadcast_to(jnp.reshape(found, (-1,)), (len(x),))[:, None]

        return asked_of(place, at, 0).reshape(-1)
