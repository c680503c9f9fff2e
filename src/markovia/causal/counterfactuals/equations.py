"""Structural equations: a variable as a function of its parents and of noises of its own.

An equation is asked three things: its value for given parents and noises, fresh noises, and *abduction*: noises that explain
an observed value, drawn from their posterior given the parents, with the log likelihood of the value as a weight. A function
that is linear in its noise (an additive-noise model) is inverted exactly; any other function of a continuous noise (a
post-nonlinear model, say) by finding all its roots between quantiles of the noise; finitely many noises are listed.

Values are codes for variables with states and numbers for the others; the user's functions get states.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from markovia.causal.counterfactuals.affine import affine
from markovia.causal.counterfactuals.couplings import check_mechanism
from markovia.causal.counterfactuals.noises import Noise
from markovia.errors import InvalidArgument, UnknownState
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array

MOST_NOISES = 2**16
MOST_AT_ONCE = 2**20
SAME = 1e-9
Values = Mapping[str, Any]


class Explained(NamedTuple):
    """Noises that explain an observed value: one a row, the log likelihood of the value, and whether no other would do."""

    noise: Any
    log_weight: Array
    certain: bool


class Equation(ABC):
    """How a variable comes about."""

    variable: Variable
    parents: tuple[Variable, ...]

    @abstractmethod
    def draw_noise(self, n: int, rng: np.random.Generator) -> Any:
        """Draw noises for n rows."""

    @abstractmethod
    def value(self, parents: Values, noise: Any, n: int) -> Any:
        """Return the variable's values in n rows."""

    @abstractmethod
    def explain(self, seen: Any, parents: Values, n: int, rng: np.random.Generator) -> Explained:
        """Return noises under which the variable has the seen value (a code or a number)."""

    @property
    @abstractmethod
    def random(self) -> bool:
        """Whether it has a noise at all."""


@dataclass(frozen=True)
class FunctionEquation(Equation):
    """`variable = function(parents, noises)`, called once with whole arrays.

    Attributes
    ----------
    variable, parents
        The variable and its parents, which are arguments of the function by name.
    function
        Called with keywords.
    noises
        By argument.
    by_code
        Whether the function takes codes and returns them, instead of states.
    root
        Whether the value is the noise itself.
    inverse
        Where it is known, the noise behind values and the log slope of that map, from values and parents by name.
    """

    variable: Variable
    parents: tuple[Variable, ...]
    function: Callable[..., Any]
    noises: Mapping[str, Noise] = field(default_factory=dict)
    by_code: bool = False
    root: bool = False
    inverse: Callable[..., tuple[Array, Array]] | None = None

    @property
    def random(self) -> bool:
        """Whether it has a noise at all."""
        return bool(self.noises)

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return isinstance(self.variable, Quantity)

    def __call__(self, **arguments: Any) -> Any:
        """Return the value for parents and noises, as the user wrote it."""
        return self.function(**arguments)

    def shifted(self, by: float) -> "FunctionEquation":
        """Return the equation with a number added to its value."""
        function, inverse = self.function, self.inverse
        back = None if inverse is None else lambda seen, **given: inverse(seen - by, **given)
        return replace(
            self, function=lambda **arguments: function(**arguments) + by, root=False, inverse=back
        )

    def draw_noise(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw noises for n rows."""
        return {name: noise.sample(n, rng) for name, noise in self.noises.items()}

    def value(self, parents: Values, noise: Values, n: int) -> Any:
        """Return the variable's values in n rows."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            found = np.asarray(self.function(**self.arguments(parents), **noise))
        found = np.broadcast_to(found, (n,))
        if self.numeric:
            if found.dtype.kind not in "biuf":
                raise InvalidArgument(
                    f"the function of {self.variable.name!r} returns {found.dtype}, not numbers"
                )
            return np.asarray(found, dtype=np.float64)
        if self.by_code:
            return np.asarray(found, dtype=np.int64)
        return _codes(self.variable, found)

    def arguments(self, parents: Values) -> dict[str, Any]:
        """Return the parents as the function takes them."""
        found = {}
        for p in self.parents:
            value = parents[p.name]
            states = not self.by_code and not isinstance(p, Quantity)
            found[p.name] = np.array(p.states)[np.asarray(value, dtype=np.int64)] if states else value
        return found

    def explain(self, seen: Any, parents: Values, n: int, rng: np.random.Generator) -> Explained:
        """Return noises under which the variable has the seen value (a code or a number)."""
        if not self.noises:
            value = self.value(parents, {}, n)
            return Explained({}, np.where(self._meets(value, seen), 0.0, -np.inf), True)
        finite = {k: f for k, e in self.noises.items() if (f := e.finite()) is not None}
        if len(finite) == len(self.noises) and np.prod([len(p) for _, p in finite.values()]) <= MOST_NOISES:
            return self._listed(seen, finite, parents, n, rng)
        if not self.numeric:
            # a state behind a continuous noise: noises from the prior, kept where they give it
            noise = self.draw_noise(n, rng)
            met = self.value(parents, noise, n) == seen
            return Explained(noise, np.where(met, 0.0, -np.inf), False)
        *others, last = sorted(self.noises, key=lambda k: k not in finite)  # the last is continuous
        noise = {k: self.noises[k].sample(n, rng) for k in others}
        return self._inverted(seen, last, noise, parents, n, rng)

    def _meets(self, value: Array, seen: Any) -> Any:
        if not self.numeric:
            return value == seen
        return np.abs(value - seen) <= SAME * np.maximum(1.0, np.abs(value))

    def _listed(
        self,
        seen: Any,
        finite: Mapping[str, tuple[Any, Array]],
        parents: Values,
        n: int,
        rng: np.random.Generator,
    ) -> Explained:
        every = np.array(list(product(*(range(len(p)) for _, p in finite.values()))))
        chance = np.prod([p[every[:, i]] for i, (_, p) in enumerate(finite.values())], axis=0)
        weights = np.zeros((len(every), n))
        for row, at in enumerate(every):
            noise = {k: np.full(n, v[at[i]]) for i, (k, (v, _)) in enumerate(finite.items())}
            value = self.value(parents, noise, n)
            weights[row] = chance[row] * self._meets(value, seen)
        total = weights.sum(axis=0)
        edges = np.cumsum(weights, axis=0)
        chosen = (rng.random(n) * total >= edges).sum(axis=0).clip(0, len(every) - 1)
        noise = {k: v[every[chosen, i]] for i, (k, (v, _)) in enumerate(finite.items())}
        with np.errstate(divide="ignore"):
            return Explained(noise, np.log(total), bool(((weights > 0).sum(axis=0) <= 1).all()))

    def _inverted(
        self,
        seen: float,
        last: str,
        noise: dict[str, Array],
        parents: Values,
        n: int,
        rng: np.random.Generator,
    ) -> Explained:
        """Solve for one continuous noise; the change of variables gives the density of the value."""
        given = {**self.arguments(parents), **noise}
        law = self.noises[last]
        if self.inverse is not None:
            root, log_slope = self.inverse(np.full(n, seen, dtype=np.float64), **given)
            return Explained({**noise, last: root}, law.log_prob(root) + log_slope, len(self.noises) == 1)
        line = affine(self.function, given, [last])
        if line is not None and last in line.terms and np.all(np.asarray(line.terms[last]) != 0):
            slope = np.broadcast_to(np.asarray(line.terms[last], dtype=np.float64), (n,))
            root = (seen - np.broadcast_to(line.constant, (n,))) / slope
            return Explained(
                {**noise, last: root}, law.log_prob(root) - np.log(np.abs(slope)), len(self.noises) == 1
            )
        row, root = self._roots(seen, last, given, law.grid(), n)
        step = 1e-6 * np.maximum(1.0, np.abs(root))
        high, low = (self._at(given, row, last, root + s * step) for s in (1, -1))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = law.log_prob(root) - np.log(np.abs(high - low) / (2 * step))
        logs = np.where(np.isnan(logs), -np.inf, logs)
        total = np.full(n, -np.inf)
        np.logaddexp.at(total, row, logs)
        # one root a row in proportion to its weight: the largest of log weight + Gumbel noise
        keys = logs + rng.gumbel(size=len(logs))
        order = np.lexsort((keys, row))
        chosen = np.zeros(n)
        chosen[row[order]] = root[order]
        one = np.bincount(row[np.isfinite(logs)], minlength=n).max(initial=0) <= 1
        return Explained({**noise, last: chosen}, total, bool(one) and len(self.noises) == 1)

    def _roots(self, seen: float, last: str, given: Values, grid: Array, n: int) -> tuple[Any, Array]:
        """Return (row, noise) of every change of sign of `function - seen`, refined by bisection."""
        sides = np.empty((len(grid), n))
        block = max(1, MOST_AT_ONCE // len(grid))
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            found = self._at(given, np.tile(rows, len(grid)), last, np.repeat(grid, len(rows)))
            sides[:, rows] = np.sign(found - seen).reshape(len(grid), len(rows))
        crossing = (sides[:-1] * sides[1:] < 0) | (sides[:-1] == 0)
        at, row = np.nonzero(crossing)
        low, high = grid[at], np.where(sides[at, row] == 0, grid[at], grid[at + 1])
        side = sides[at, row]
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not ((middle != low) & (middle != high)).any():
                break
            here = np.sign(self._at(given, row, last, middle) - seen)
            left = here == side
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        return row, 0.5 * (low + high)

    def _at(self, given: Values, rows: Any, last: str, noise: Array) -> Array:
        arguments = {k: (v[rows] if np.ndim(v) else v) for k, v in given.items()}
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            found = self.function(**{**arguments, last: noise})
        return np.broadcast_to(np.asarray(found, dtype=np.float64), noise.shape)


class _Throw(NamedTuple):
    """The noise of an independent mechanism: a uniform number, and the answer known for one configuration of the parents."""

    uniform: Array
    parents: dict[str, Any] | None
    was: Any


@dataclass(frozen=True)
class TableEquation(Equation):
    """A variable with states whose probabilities are known for all parents, and the mechanism that makes them a function.

    Attributes
    ----------
    rows
        Probabilities of the states, (rows, states), from the parents' values.
    mechanism
        "monotone", "gumbel" or "independent"; see `markovia.causal.counterfactuals.couplings`.
    """

    variable: Variable
    parents: tuple[Variable, ...]
    rows: Callable[[Values, int], Array]
    mechanism: str = "monotone"
    conditional: Any = None

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)

    @property
    def random(self) -> bool:
        """Whether it has a noise at all."""
        return True

    def draw_noise(self, n: int, rng: np.random.Generator) -> Any:
        """Draw noises for n rows."""
        if self.mechanism == "gumbel":
            return rng.gumbel(size=(n, len(self.variable)))
        uniform = rng.random(n)
        return uniform if self.mechanism == "monotone" else _Throw(uniform, None, None)

    def value(self, parents: Values, noise: Any, n: int) -> Any:
        """Return the variable's codes in n rows."""
        rows = np.broadcast_to(self.rows(parents, n), (n, len(self.variable)))
        if self.mechanism == "gumbel":
            with np.errstate(divide="ignore"):
                return np.asarray((np.log(rows) + noise).argmax(axis=1))
        if self.mechanism == "monotone":
            return _inverse(rows, noise)
        drawn = _inverse(rows, noise.uniform)
        if noise.parents is None:
            return drawn
        same = np.ones(n, dtype=bool)
        for name, before in noise.parents.items():
            same &= np.broadcast_to(np.asarray(parents[name]) == before, (n,))
        return np.where(same, noise.was, drawn)

    def explain(self, seen: Any, parents: Values, n: int, rng: np.random.Generator) -> Explained:
        """Return noises under which the variable has the seen code."""
        rows = np.broadcast_to(self.rows(parents, n), (n, len(self.variable)))
        with np.errstate(divide="ignore"):
            logs = np.log(rows)
        chance = logs[:, seen]
        if self.mechanism == "monotone":
            noise: Any = rows[:, :seen].sum(axis=1) + rng.random(n) * rows[:, seen]
        elif self.mechanism == "gumbel":
            # the largest utility is Gumbel, the others are Gumbel cut off there (Maddison and others, 2014)
            top, rest = rng.gumbel(size=(n, 1)), rng.gumbel(size=rows.shape)
            with np.errstate(invalid="ignore"):
                cut = -np.logaddexp(-top, -(logs + rest)) - logs
            noise = np.where(np.isfinite(logs), cut, rest)
            noise[:, seen] = (top[:, 0] - chance) if np.isfinite(chance).all() else rest[:, seen]
        else:
            noise = _Throw(rng.random(n), {p.name: parents[p.name] for p in self.parents}, np.full(n, seen))
        return Explained(noise, chance, bool((rows[:, seen] == 1).all()))


def _inverse(rows: Array, uniform: Array) -> Any:
    edges = np.cumsum(rows, axis=1)
    drawn = (uniform[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    last = rows.shape[1] - 1 - (rows > 0)[:, ::-1].argmax(axis=1)
    return np.minimum(drawn, last)


def _codes(variable: Variable, values: Array) -> Any:
    """Return the codes of states that a function returned."""
    distinct, inverse = np.unique(values, return_inverse=True)
    try:
        codes = [variable.index(v.item() if hasattr(v, "item") else v) for v in distinct]
    except UnknownState as error:
        raise InvalidArgument(
            f"the function of {variable.name!r} returns {error.state!r}, which is none of its states"
        ) from None
    return np.array(codes, dtype=np.int64)[inverse.reshape(-1)]
