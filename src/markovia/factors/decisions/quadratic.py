"""Quadratic forms of numbers: what an outcome is worth where costs grow with the square."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Kind, check


class Quadratic:
    """A sum of products of numbers, a linear part and a constant.

    Parameters
    ----------
    terms
        A coefficient for each square, by name, or for a product of two numbers, by pair of names.
    linear
        A coefficient for each number by itself.
    constant
        What is added.

    Examples
    --------
    >>> cost = Quadratic({"x": -1, "u": -0.5, ("x", "u"): 2}, linear={"x": 3}, constant=1)
    >>> cost.parent_names
    ('x', 'u')
    >>> cost(x=2.0, u=1.0)
    6.5
    """

    __slots__ = ("constant", "linear", "terms")

    def __init__(
        self,
        terms: Mapping[str | tuple[str, str], float],
        linear: Mapping[str, float] | None = None,
        constant: float = 0.0,
    ) -> None:
        check("terms", terms, Kind((Mapping,), "a mapping from names or pairs of names to numbers"))
        check("linear", linear, Kind((Mapping,), "a mapping from names to numbers", none=True))
        self.terms: dict[tuple[str, str], float] = {}
        for key, value in terms.items():
            pair = (key, key) if isinstance(key, str) else tuple(key)
            if len(pair) != 2 or not all(isinstance(n, str) for n in pair):
                raise InvalidArgument(f"a term is named by one name or by a pair of names, not {key!r}")
            self.terms[pair] = self.terms.get(pair, 0.0) + _finite(value, key)
        self.linear = {name: _finite(value, name) for name, value in (linear or {}).items()}
        self.constant = _finite(constant, "constant")

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The numbers that it speaks of."""
        return tuple(dict.fromkeys([n for pair in self.terms for n in pair] + [*self.linear]))

    def matrix(self, names: Sequence[str]) -> tuple[Array, Array, float]:
        """Return `(Q, q, c)` with worth `x'Qx + q'x + c` for the named numbers in order, Q symmetric."""
        place = {n: i for i, n in enumerate(names)}
        square, slope = np.zeros((len(names), len(names))), np.zeros(len(names))
        for (a, b), value in self.terms.items():
            square[place[a], place[b]] += value / 2
            square[place[b], place[a]] += value / 2
        for name, value in self.linear.items():
            slope[place[name]] += value
        return square, slope, self.constant

    def renamed(self, names: Mapping[str, str]) -> "Quadratic":
        """Return the same form of numbers under other names."""
        return Quadratic(
            {(names.get(a, a), names.get(b, b)): v for (a, b), v in self.terms.items()},
            {names.get(n, n): v for n, v in self.linear.items()},
            self.constant,
        )

    def __call__(self, **numbers: Any) -> Any:
        """Return what the numbers, or arrays of them, are worth."""
        worth: Any = self.constant
        for (a, b), value in self.terms.items():
            worth = worth + value * numbers[a] * numbers[b]
        for name, value in self.linear.items():
            worth = worth + value * numbers[name]
        return worth

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quadratic) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((tuple(self.terms.items()), tuple(self.linear.items()), self.constant))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Quadratic, (self.terms, self.linear, self.constant))

    def __repr__(self) -> str:
        terms = {a if a == b else (a, b): v for (a, b), v in self.terms.items()}
        more = f", linear={self.linear}" if self.linear else ""
        return f"Quadratic({terms}{more}{f', constant={self.constant:g}' if self.constant else ''})"


def _finite(value: Any, what: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the coefficient of {what!r} is a number, not {value!r}") from None
    if not np.isfinite(number):
        raise InvalidArgument(f"the coefficient of {what!r} is finite, not {number}")
    return number
