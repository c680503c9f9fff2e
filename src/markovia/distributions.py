"""Distributions for the nodes of a model: every one of NumPyro's, by its NumPyro name, and `Ordered`.

JAX and NumPyro load when the first is asked for. What is made here is NumPyro's own object, made in 64 bits.

Examples
--------
>>> import markovia.distributions as dist
>>> dist.Normal(0, 5).scale
5
>>> isinstance(dist.Beta(2, 2), dist.Beta)
True
"""

from difflib import get_close_matches
from functools import cache
from typing import Any

import numpy as np

from markovia.factors.distributions.ordered import ordered_class
from markovia.runtime.double_precision import x64
from markovia.runtime.keyword_advice import unknown_argument


class _Door:
    """A class (or function that makes distributions) of NumPyro's; what is called here computes in 64 bits."""

    def __init__(self, cls: Any) -> None:
        self._class = cls
        self.__name__, self.__doc__, self.__module__ = cls.__name__, cls.__doc__, cls.__module__
        self.__wrapped__ = cls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with x64():
            try:
                return self._class(*map(_array, args), **{k: _array(v) for k, v in kwargs.items()})
            except TypeError:
                if (advice := unknown_argument(self._class, kwargs, self.__name__)) is not None:
                    raise advice from None
                raise

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._class)

    def __subclasscheck__(self, cls: type) -> bool:
        return issubclass(cls, self._class)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._class,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._class, name)

    def __reduce__(self) -> Any:
        return _named, (self.__name__,)

    def __repr__(self) -> str:
        return f"<class markovia.distributions.{self.__name__}>"


def _array(value: Any) -> Any:
    """Return a list of numbers as an array; anything else as it is."""
    if isinstance(value, list) and value and not hasattr(value[0], "log_prob"):
        return np.asarray(value)
    return value


@cache
def _named(name: str) -> Any:
    import numpyro.distributions as theirs

    if name == "Ordered":
        return _Door(ordered_class())
    try:
        found = getattr(theirs, name)
    except AttributeError:
        near = get_close_matches(name, theirs.__all__, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise AttributeError(f"there is no distribution {name!r}{hint}") from None
    if isinstance(found, type):
        makes = issubclass(found, theirs.Distribution) and found is not theirs.Distribution
    else:
        makes = name[0].isupper() and callable(found)  # Categorical and such: functions that choose a class
    return _Door(found) if makes else found


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _named(name)


def __dir__() -> list[str]:
    import numpyro.distributions as theirs

    return sorted([*theirs.__all__, "Ordered"])
