"""The space of a search: named parameters, each a scale, a list of choices, or choices with parameters of their own.

Every parameter is a number between 0 and 1 (its unit), uniform under the law that was given; whole numbers and choices own
an interval of it. A process sees columns: the unit itself, the place of an ordered value, one column a choice otherwise. A
parameter that is not active is constant there, so it cannot influence anything (Levesque and others 2017).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import exp, inf, isfinite, log, prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, did_you_mean
from markovia.runtime.array_types import Array

TAIL = 1e-3
"""Probability at either end of an unbounded law that is not searched."""
ENUMERATED = 20_000
"""Points up to which a finite space is listed."""


@dataclass(frozen=True)
class Dimension:
    """One parameter of a space.

    Attributes
    ----------
    name
        What points call it.
    path
        Names and choices that lead to it; its name alone where it is always active.
    values
        The values that it may have, in order; None for a number on a scale.
    ordered
        Whether these lie on a line; choices that do not are all equally far from each other.
    table
        Of a number: units and the (logs of) numbers there, both rising.
    log
        Whether the table is of logs.
    whole
        Whether numbers are rounded to whole ones.
    parent, choice
        The place of the parameter that decides whether it is active, and which of its values makes it so.
    """

    name: str
    path: tuple[Any, ...]
    values: Sequence[Any] | None = None
    ordered: bool = True
    table: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0, 1.0), (0.0, 1.0))
    log: bool = False
    whole: bool = False
    parent: int | None = None
    choice: int = 0

    @property
    def size(self) -> float:
        """How many values it has."""
        if self.values is not None:
            return len(self.values)
        return self.value(1.0) - self.value(0.0) + 1 if self.whole else inf

    @property
    def columns(self) -> int:
        """How many columns a process sees of it: one a choice where three or more have no order."""
        return (
            len(self.values) if self.values is not None and not self.ordered and len(self.values) > 2 else 1
        )

    def value(self, unit: float) -> Any:
        """Return the value at a unit."""
        if self.values is not None:
            return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]
        found = float(np.interp(unit, *self.table))
        found = exp(found) if self.log else found
        low, high = (exp(e) if self.log else e for e in (self.table[1][0], self.table[1][-1]))
        if self.whole:  # the table ends half a step beyond the numbers
            return int(min(max(round(found), round(low + 0.5)), round(high - 0.5)))
        return min(max(found, low), high)

    def unit(self, value: Any) -> float:
        """Return the unit of a value: the middle of its interval for one of several.

        Raises
        ------
        InvalidArgument
            For a value that it cannot have.
        """
        if self.values is not None:
            if isinstance(self.values, range):  # may be long
                found = [self.values.index(int(value))] if _is_number(value) and value in self.values else []
            else:
                found = [i for i, known in enumerate(self.values) if _same(known, value)]
            if found:
                return (found[0] + 0.5) / len(self.values)
            shown = ", ".join(map(repr, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
            raise InvalidArgument(f"{self.name} is one of {shown}, not {value!r}")
        ends = self.table[1][0], self.table[1][-1]
        number = _is_number(value) and (value > 0 or not self.log) and isfinite(value)
        place = (log(value) if self.log else float(value)) if number else np.nan
        slack = 1e-9 * (ends[1] - ends[0])
        if (
            not number
            or not ends[0] - slack <= place <= ends[1] + slack
            or (self.whole and value != round(value))
        ):
            low, high = self.value(0.0), self.value(1.0)
            raise InvalidArgument(
                f"{self.name} is a {'whole ' if self.whole else ''}number from {low:g} to {high:g}, not {value!r}"
            )
        return float(np.interp(place, self.table[1], self.table[0]))

    def snapped(self, units: Array) -> Array:
        """Return units of the values at some units."""
        if self.values is not None:
            k = len(self.values)
            return (np.minimum(np.floor(units * k), k - 1) + 0.5) / k
        if self.whole:
            return np.array([self.unit(self.value(u)) for u in units])
        return np.clip(units, 0.0, 1.0)

    def seen(self, units: Array) -> Array:
        """Return what a process sees of snapped units, rows by columns."""
        if self.values is None:
            return units[:, None]
        k = len(self.values)
        which = np.minimum(np.floor(units * k), k - 1)
        if self.columns == 1:
            return (which / (k - 1) if k > 1 else np.full(len(units), 0.5))[:, None]
        return np.asarray((which[:, None] == np.arange(k)) / 2.0**0.5)  # two choices are at distance one

    def described(self) -> str:
        """Return what it is in words that stay the same from run to run."""
        scale = (
            (self.table[1][::20], self.table[1][-1])
            if self.values is None
            else list(map(repr, self.values))[:1000]
        )
        return repr((tuple(map(str, self.path)), scale, self.log, self.whole, self.ordered))


class Space:
    """Named parameters of a search.

    Parameters
    ----------
    parameters
        From names to what they may be: a distribution of `markovia.distributions` or `scipy.stats`; `(low, high)`, whole
        numbers if both are, and `(low, high, "log")`; a `range`; a list of choices (numbers that rise are ordered); a
        mapping from choices to the parameters that each of them has, a space of its own.

    Examples
    --------
    >>> space = Space({"kernel": {"linear": {}, "rbf": {"gamma": (1e-3, 1e3, "log")}}, "C": (1, 9)})
    >>> space.point(np.array([0.1, 0.5, 0.5]))
    {'kernel': 'linear', 'C': 5}
    >>> space.point(np.array([0.9, 0.5, 0.5]))
    {'kernel': 'rbf', 'gamma': 1.0, 'C': 5}
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InvalidArgument(
                "a space is a mapping from names to what they may be, such as {'x': (0.0, 1.0), 'kind': ['a', 'b']}"
            )
        self.dimensions: list[Dimension] = []
        self._read(parameters, (), None, 0)
        self._starts = np.cumsum([0, *(d.columns for d in self.dimensions)])

    def _read(
        self, parameters: Mapping[str, Any], path: tuple[Any, ...], parent: int | None, choice: int
    ) -> None:
        for name, said in parameters.items():
            if not isinstance(name, str):
                raise InvalidArgument(f"names of parameters are strings, not {name!r}")
            inner = isinstance(said, Mapping)
            options = _read_dimension(name, list(said) if inner else said)
            if inner:
                options["ordered"] = False
            here = len(self.dimensions)
            self.dimensions.append(Dimension(name, (*path, name), parent=parent, choice=choice, **options))
            if inner:
                for i, (value, more) in enumerate(said.items()):
                    if not isinstance(more, Mapping):
                        raise InvalidArgument(
                            f"{name}={value!r} has a mapping of parameters, {{}} for none, not {more!r}"
                        )
                    self._read(more, (*path, name, value), here, i)
        for name in {d.name for d in self.dimensions}:
            same = [d.path for d in self.dimensions if d.name == name]
            if any(_together(a, b) for i, a in enumerate(same) for b in same[:i]):
                raise InvalidArgument(f"two parameters that can be active together are called {name!r}")

    @property
    def width(self) -> int:
        """How many columns a process sees."""
        return int(self._starts[-1])

    @cached_property
    def size(self) -> float:
        """How many points there are; infinite where a parameter is a number on a scale."""

        def count(i: int) -> float:
            d = self.dimensions[i]
            inner = [j for j, other in enumerate(self.dimensions) if other.parent == i]
            if not inner:
                return d.size
            return sum(
                prod(count(j) for j in inner if self.dimensions[j].choice == c) for c in range(int(d.size))
            )

        return prod(count(i) for i, d in enumerate(self.dimensions) if d.parent is None)

    def active(self, units: Array) -> Array:
        """Say which parameters are active, rows by parameters."""
        found = np.ones(units.shape, dtype=bool)
        for j, d in enumerate(self.dimensions):
            if d.parent is not None:
                k = self.dimensions[d.parent].size
                found[:, j] = found[:, d.parent] & (
                    np.minimum(np.floor(units[:, d.parent] * k), k - 1) == d.choice
                )
        return found

    def snapped(self, units: Array) -> Array:
        """Return units of the points at some units: equal for equal points."""
        found = np.stack([d.snapped(units[:, j]) for j, d in enumerate(self.dimensions)], axis=1)
        return np.where(self.active(found), found, 0.5)

    def seen(self, units: Array) -> Array:
        """Return the columns that a process sees of snapped units; what is not active is constant."""
        active = self.active(units)
        blocks = [
            np.where(active[:, [j]], d.seen(units[:, j]), 0.5 if d.columns == 1 else 0.0)
            for j, d in enumerate(self.dimensions)
        ]
        return np.concatenate(blocks, axis=1)

    def moving(self, unit: Array) -> tuple[list[int], list[int]]:
        """Return which parameters can be moved a little at a point, and their columns: active numbers on scales."""
        active = self.active(unit[None])[0]
        some = [j for j, d in enumerate(self.dimensions) if active[j] and d.values is None and not d.whole]
        return some, [int(self._starts[j]) for j in some]

    def neighbours(self, unit: Array) -> Array:
        """Return points that differ in one parameter with several values: the next ones, or any other choice."""
        found = []
        active = self.active(unit[None])[0]
        for j, d in enumerate(self.dimensions):
            if not active[j] or not isfinite(d.size):
                continue
            if d.values is None:
                here = d.value(unit[j])
                others = [d.unit(v) for v in (here - 1, here + 1) if d.value(0.0) <= v <= d.value(1.0)]
            else:
                k, here = len(d.values), int(unit[j] * len(d.values))
                which = (here - 1, here + 1) if d.ordered else range(k)
                others = [(i + 0.5) / k for i in which if 0 <= i < k and i != here]
            for other in others:
                moved = unit.copy()
                moved[j] = other
                found.append(moved)
        return self.snapped(np.array(found)) if found else np.zeros((0, len(unit)))

    @cached_property
    def listed(self) -> Array | None:
        """Return the units of all points of a small finite space; None otherwise."""
        sizes = [d.size for d in self.dimensions]
        if prod(sizes) > ENUMERATED:
            return None
        cells = [
            np.array([d.unit(v) for v in d.values or range(d.value(0.0), d.value(1.0) + 1)])
            for d in self.dimensions
        ]
        return np.unique(self.snapped(np.array(list(product(*cells)))), axis=0)

    def point(self, unit: Array) -> dict[str, Any]:
        """Return the point at units: the active parameters by name."""
        active = self.active(np.asarray(unit)[None])[0]
        return {d.name: d.value(unit[j]) for j, d in enumerate(self.dimensions) if active[j]}

    def unit(self, point: Mapping[str, Any], *, fill: bool = False) -> Array:
        """Return the units of a point; with `fill`, what it lacks is in the middle, and what is not active is passed over.

        Raises
        ------
        InvalidArgument
            For names that are missing or not active, and values outside.
        """
        if not isinstance(point, Mapping):
            raise InvalidArgument(f"a point is a mapping from names to values, not {point!r}")
        found, used = np.full(len(self.dimensions), 0.5), set()
        for j, d in enumerate(self.dimensions):
            if not self.active(found[None])[0, j]:
                continue
            if d.name in point:
                found[j] = d.unit(point[d.name])
                used.add(d.name)
            elif not fill:
                raise InvalidArgument(f"the point lacks {d.name!r}")
        for name in point if not fill else ():
            if name not in used:
                known = {d.name for d in self.dimensions}
                why = (
                    "is not active in this point"
                    if name in known
                    else f"is no parameter{did_you_mean(name, known)}"
                )
                raise InvalidArgument(f"{name!r} {why}")
        units: Array = self.snapped(found[None])[0]
        return units

    def described(self) -> list[str]:
        """Return what the parameters are, to compare with those of a file."""
        return [d.described() for d in self.dimensions]


def _together(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Say whether parameters with these paths can be active together: unless they need two choices of one parameter."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i % 2 == 0  # names are at even places, choices at odd ones
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _same(a: Any, b: Any) -> bool:
    """Say whether two choices are one: the same object, equal numbers, or equal and of one type."""
    alike = type(a) is type(b) or (_is_number(a) and _is_number(b))
    return a is b or (alike and bool(np.all(np.asarray(a == b))))


def _read_dimension(name: str, said: Any) -> dict[str, Any]:
    """Return the settings of the dimension that was described."""
    if isinstance(said, range):
        if not len(said):
            raise InvalidArgument(f"the range of {name} is empty")
        return {"values": said}
    if isinstance(said, list):
        return _read_choices(name, said)
    if isinstance(said, tuple):
        return _read_interval(name, said)
    if hasattr(said, "log_prob") and hasattr(said, "support"):
        return _read_law(name, said)
    if hasattr(said, "ppf") and hasattr(said, "dist"):
        return _read_scipy_law(name, said)
    raise InvalidArgument(
        f"{name} is (low, high), (low, high, 'log'), a range, a list of choices, a mapping from choices to their "
        f"parameters, or a distribution, not {said!r}"
    )


def _read_choices(name: str, said: list[Any]) -> dict[str, Any]:
    if not said:
        raise InvalidArgument(f"the list of choices of {name} is empty")
    for i, value in enumerate(said):
        if any(_same(value, other) for other in said[:i]):
            raise InvalidArgument(f"{name} has the choice {value!r} twice")
    numbers = all(_is_number(value) for value in said)
    return {"values": list(said), "ordered": numbers and all(a < b for a, b in pairwise(said))}


def _read_interval(name: str, said: tuple[Any, ...]) -> dict[str, Any]:
    logs = len(said) == 3 and said[2] == "log"
    if not (len(said) == 2 or logs) or not all(_is_number(v) and isfinite(v) for v in said[:2]):
        raise InvalidArgument(
            f"{name} is (low, high) or (low, high, 'log') with two finite numbers, not {said!r}"
        )
    low, high = said[:2]
    if not low < high:
        raise InvalidArgument(
            f"the bounds of {name} are (low, high) with low below high, not ({low!r}, {high!r})"
        )
    if logs and low <= 0:
        raise InvalidArgument(f"{name} has a log scale, so its lower bound is above 0, not {low!r}")
    whole = all(isinstance(v, int | np.integer) for v in said[:2])
    if whole and not logs:
        return {"values": range(int(low), int(high) + 1)}
    ends = (low - 0.5, high + 0.5) if whole else (float(low), float(high))
    return {"table": ((0.0, 1.0), tuple(map(log, ends)) if logs else ends), "log": logs, "whole": whole}


def _read_law(name: str, law: Any) -> dict[str, Any]:
    """Read a distribution of NumPyro: a number whose unit is its probability below, or whole numbers between bounds."""
    from markovia.runtime.double_precision import x64
    from markovia.runtime.libraries import jnp

    support, kind = law.support, type(law).__name__
    bounds = [getattr(support, end, None) for end in ("lower_bound", "upper_bound")]
    if np.shape(getattr(law, "batch_shape", ())) != (0,) or tuple(getattr(law, "event_shape", ())):
        raise InvalidArgument(f"{name} is one number; give each number of {kind} a name of its own")
    if getattr(support, "is_discrete", False):
        if "Boolean" in type(support).__name__:
            return {"values": [0, 1], "ordered": False}
        values = _whole_numbers(name, kind, bounds)
        return {
            "values": list(values) if "Categorical" in kind else values,
            "ordered": "Categorical" not in kind,
        }
    if kind in ("Uniform", "LogUniform"):
        return _read_interval(
            name, (float(law.low), float(law.high), *(["log"] if kind == "LogUniform" else []))
        )

    def quantiles(units: Array) -> Array:
        with x64():
            try:
                return np.asarray(law.icdf(jnp.asarray(units)), dtype=np.float64)
            except (NotImplementedError, ImportError):
                return _inverted(name, law, units, bounds)

    return _by_quantiles(quantiles, bounds)


def _read_scipy_law(name: str, law: Any) -> dict[str, Any]:
    """Read a frozen distribution of SciPy in the same way."""
    kind, bounds = law.dist.name, list(law.support())
    if any(np.ndim(bound) for bound in bounds):
        raise InvalidArgument(f"{name} is one number; give each number of {kind} a name of its own")
    if not hasattr(law.dist, "pdf"):
        return {"values": _whole_numbers(name, kind, bounds)}
    if kind in ("uniform", "loguniform", "reciprocal"):
        return _read_interval(name, (*map(float, bounds), *(["log"] if kind != "uniform" else [])))
    return _by_quantiles(law.ppf, bounds)


def _whole_numbers(name: str, kind: str, bounds: list[Any]) -> range:
    if None in bounds or not np.isfinite(bounds).all():
        raise InvalidArgument(f"{name} is a whole number without bounds ({kind}); give it a range")
    return range(int(bounds[0]), int(bounds[1]) + 1)


def _by_quantiles(quantiles: Callable[[Array], Array], bounds: list[Any]) -> dict[str, Any]:
    """Return the table of a law: all of a bounded one, all but the tails of others."""
    bounded = None not in bounds and bool(np.isfinite(bounds).all())
    places = np.linspace(0.0, 1.0, 201)
    numbers = np.array(quantiles(places if bounded else TAIL + (1.0 - 2.0 * TAIL) * places), dtype=np.float64)
    if bounded:
        numbers[0], numbers[-1] = map(float, bounds)
    return {"table": (tuple(places.tolist()), tuple(numbers.tolist()))}


def _inverted(name: str, law: Any, units: Array, bounds: list[Any]) -> Array:
    """Return quantiles of a law that knows its distribution function alone, by halving."""
    from markovia.runtime.libraries import jnp

    low = np.full(len(units), -1e30 if bounds[0] is None else float(bounds[0]))
    high = np.full(len(units), 1e30 if bounds[1] is None else float(bounds[1]))
    try:
        for _ in range(70):  # on signed logs at first: a wide bracket shrinks by its exponent
            middle = _between(low, high)
            above = np.asarray(law.cdf(jnp.asarray(middle))) >= units
            low, high = np.where(above, low, middle), np.where(above, middle, high)
    except (NotImplementedError, ImportError):
        raise InvalidArgument(
            f"quantiles of {type(law).__name__} are not known; give {name} as (low, high), or by another distribution"
        ) from None
    return np.asarray(0.5 * (low + high))


def _between(low: Array, high: Array) -> Array:
    """Return the middle of brackets on a scale of signed logs where they are wide."""
    a, b = np.arcsinh(low), np.arcsinh(high)
    return np.where(b - a > 1.0, np.sinh(0.5 * (a + b)), 0.5 * (low + high))
