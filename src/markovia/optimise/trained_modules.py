"""Modules as parameters: their numbers are trained, and all else stays as it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.optimise.players import Player
from markovia.runtime.libraries import eqx, jax


def checked_players(
    loss: Any, parameters: Any
) -> tuple[tuple[Player, ...], dict[str, Any], Callable[[Any], Any]]:
    """Return players, parameters by name, and what makes of trained ones what was given."""
    if callable(loss):
        arrays, rest = eqx.partition(parameters, _is_fraction)
        one = Player(_OfAll(loss, rest), ("all",))
        return (one,), {"all": arrays}, lambda found: eqx.combine(found["all"], rest)
    players = tuple(loss)
    if not isinstance(parameters, dict) or not players or not all(isinstance(p, Player) for p in players):
        raise InvalidArgument(
            "several losses are a list of Player, each with the names of its parameters, and parameters= is a mapping"
        )
    arrays, rest = eqx.partition(parameters, _is_fraction)
    unknown = {name for player in players for name in player.names} - set(parameters)
    if unknown:
        raise InvalidArgument(
            f"no parameter is called {min(unknown)!r}; there are {', '.join(map(repr, parameters))}"
        )
    joined = tuple(player._replace(loss=_Joined(player.loss, rest)) for player in players)
    return joined, arrays, lambda found: eqx.combine(found, rest)


@dataclass(frozen=True)
class _OfAll:
    """A loss of one tree of parameters, as one of parameters by name."""

    loss: Callable[..., Any]
    rest: Any

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        return _Joined(self.loss, self.rest)(parameters["all"], memory, key, batch)


@dataclass(frozen=True)
class _Joined:
    """A loss of parameters with those parts of modules that are no numbers."""

    loss: Callable[..., Any]
    rest: Any

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        return self.loss(eqx.combine(parameters, self.rest), memory, key, batch)


def _is_fraction(leaf: Any) -> bool:
    return isinstance(leaf, float) or (hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.floating))


def as_given(found: Any, given: Any) -> Any:
    """Return trained parameters as NumPy arrays of the types of those at the start."""
    return jax.tree.map(lambda new, old: np.asarray(new, getattr(old, "dtype", np.float64)), found, given)
