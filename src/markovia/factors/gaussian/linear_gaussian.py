"""Linear-Gaussian nodes: N(bias + weights . parents, variance), with one such regression a state of discrete parents.

A variance of zero makes the node a deterministic linear function of its parents.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite, pi, prod
from typing import Any, ClassVar, NoReturn

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import MAX_TABLE_ENTRIES, Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Kind, check
from markovia.runtime.shown import html_table

SAME_VALUE = 1e-9
"""How far, relative to its size, a number may lie from the value that a deterministic node must have."""


class LinearGaussian:
    """A recipe for a node: Gaussian around a linear function of its parents.

    Parameters
    ----------
    bias
        The mean where all parents are zero.
    weights
        A number for each continuous parent, by name.
    variance
        Around that mean; zero for a deterministic node.

    Examples
    --------
    >>> import markovia as mk
    >>> m = mk.BayesianNetwork()
    >>> m.add("x", mk.LinearGaussian(1.0, variance=4.0))
    >>> m.add("y", mk.LinearGaussian(0.0, {"x": 2.0}, 1.0))
    >>> p = m.query("x", given={"y": 3.0})
    >>> round(p.mean(), 4), round(p.sd(), 4)
    (1.4706, 0.4851)
    >>> m.add("kind", {"a": 0.5, "b": 0.5})
    >>> m.add("z", {"a": mk.LinearGaussian(0, {"x": 1}, 1), "b": mk.LinearGaussian(5, {}, 2)}, parents=["kind"])
    >>> m["z"]
    GaussianConditional p(z | kind, x)
    kind    mean  variance
    a          x         1
    b          5         2
    """

    __slots__ = ("bias", "variance", "weights")
    domain: ClassVar[str] = "real"
    """What the values of a node made by it are."""

    def __init__(
        self, bias: float = 0.0, weights: Mapping[str, float] | None = None, variance: float = 1.0
    ) -> None:
        self.bias = _number(bias, "bias")
        check("weights", weights, Kind((Mapping,), "a mapping from parent to number", none=True))
        self.weights = {name: _number(w, f"weight of {name!r}") for name, w in (weights or {}).items()}
        self.variance = _number(variance, "variance")
        if self.variance < 0:
            raise InvalidArgument(f"the variance is {variance!r}; it is zero or positive")

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The continuous parents that have weights."""
        return tuple(self.weights)

    def default_states(self) -> None:
        """Return None: a number has no states."""
        return

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> "GaussianConditional":
        """Return the distribution over the given variables."""
        return StateRegressions({(): self}).bind(variable, parents)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearGaussian) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.bias, tuple(self.weights.items()), self.variance))

    def __reduce__(self) -> tuple[Any, ...]:
        return (LinearGaussian, (self.bias, self.weights, self.variance))

    def __repr__(self) -> str:
        weights = ", ".join(f"{n!r}: {w:.6g}" for n, w in self.weights.items())
        return f"LinearGaussian({self.bias:.6g}, {{{weights}}}, {self.variance:.6g})"


class StateRegressions:
    """A recipe for a node with one linear Gaussian for every configuration of its discrete parents.

    Parameters
    ----------
    by_state
        From a state (a tuple of states for several discrete parents) to a `LinearGaussian`.
    """

    domain: ClassVar[str] = "real"

    def __init__(self, by_state: Mapping[Any, LinearGaussian]) -> None:
        self.by_state = dict(by_state)

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The continuous parents that some regression has a weight for."""
        return tuple(dict.fromkeys(n for r in self.by_state.values() for n in r.weights))

    def default_states(self) -> None:
        """Return None: a number has no states."""
        return

    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> "GaussianConditional":
        """Return the distribution over the given variables; parents without any weight get zero."""
        name = variable.name
        if not isinstance(variable, Quantity):
            raise UnsupportedModel(
                f"{name!r} has states, and a linear Gaussian is for a number; remove it and add it anew"
            )
        discrete = tuple(p for p in parents if not isinstance(p, Quantity))
        continuous = tuple(p for p in parents if isinstance(p, Quantity))
        place = {p.name: i for i, p in enumerate(continuous)}
        for parent in continuous:
            if parent.plates or parent.domain not in ("real", "number"):
                raise UnsupportedModel(
                    f"{name!r} is linear in {parent.name!r}, which is no real number without plates; write the node as a "
                    "function of its parents instead"
                )
        for parent_name in self.parent_names:
            if parent_name not in place:
                kind = "has states" if parent_name in [p.name for p in discrete] else "is no parent"
                raise InvalidArgument(
                    f"{name!r} has a weight for {parent_name!r}, which {kind}; discrete parents choose among "
                    "regressions: {state: LinearGaussian(...), ...}"
                )
        shape = tuple(len(p) for p in discrete)
        if prod(shape) * (len(continuous) + 2) > MAX_TABLE_ENTRIES:
            raise InvalidTable(
                f"{name!r} would need {prod(shape):,} regressions; give it fewer discrete parents"
            )
        bias, variance = np.full(shape, np.nan), np.empty(shape)
        weights = np.zeros((*shape, len(continuous)))
        for key, regression in self.by_state.items():
            at: Any = self._codes(name, discrete, key)
            bias[at], variance[at] = regression.bias, regression.variance
            for parent_name, weight in regression.weights.items():
                weights[(*at, place[parent_name])] = weight
        missing = np.argwhere(np.isnan(bias))
        if len(missing):
            where = ", ".join(f"{p.name}={p.states[i]!r}" for p, i in zip(discrete, missing[0], strict=True))
            raise InvalidTable(f"{name!r} has no regression for {where} ({len(missing)} missing)")
        return GaussianConditional(variable, discrete, continuous, bias, weights, variance)

    def _codes(self, name: str, discrete: tuple[Variable, ...], key: Any) -> tuple[Any, ...]:
        if key == () and len(self.by_state) == 1:
            return (Ellipsis,) if discrete else ()
        states = key if isinstance(key, tuple) else (key,)
        if len(states) != len(discrete):
            raise InvalidArgument(
                f"{name!r} has the discrete parents {[p.name for p in discrete]}, but a regression for {key!r}; "
                "a key is one state, or a tuple with one state for each of them (parents=[...] names them)"
            )
        return tuple(p.index(s) for p, s in zip(discrete, states, strict=True))


def as_recipe(form: Any) -> Any:
    """Return a recipe for a mapping from states to linear Gaussians, anything else as it is."""
    if isinstance(form, Mapping) and form and all(isinstance(r, LinearGaussian) for r in form.values()):
        return StateRegressions(form)
    return form


def continuous_parents(form: Any) -> tuple[str, ...]:
    """Return the parents that a recipe of linear Gaussians has weights for; none for any other form."""
    return form.parent_names if isinstance(form, LinearGaussian | StateRegressions) else ()


class GaussianConditional(Conditional):
    """p(x | parents) = N(bias + weights . continuous parents, variance), for every state of the discrete parents.

    Parameters
    ----------
    variable
        The child, a quantity.
    discrete, continuous
        The parents of either kind.
    bias, weights, variance
        Arrays with one axis for each discrete parent; `weights` has a last axis for the continuous parents.
    """

    kind: ClassVar[str] = "gaussian"
    __slots__ = ("bias", "continuous", "discrete", "parents", "variable", "variance", "weights")

    def __init__(
        self,
        variable: Variable,
        discrete: Sequence[Variable],
        continuous: Sequence[Variable],
        bias: Any,
        weights: Any,
        variance: Any,
    ) -> None:
        self.variable = variable
        self.discrete, self.continuous = tuple(discrete), tuple(continuous)
        self.parents = (*self.discrete, *self.continuous)
        shape = tuple([len(p) for p in self.discrete])
        self.bias = _array(variable.name, "bias", bias, shape)
        self.weights = _array(variable.name, "weights", weights, (*shape, len(self.continuous)))
        self.variance = _array(variable.name, "variance", variance, shape)
        if self.variance.size and self.variance.min() < 0:
            raise InvalidTable(f"the variance of {variable.name!r} is negative in one row")

    @property
    def values(self) -> NoReturn:
        """Refuse: a density has no table."""
        raise self._no_table()

    def factor(self) -> NoReturn:
        """Refuse: a density has no table."""
        raise self._no_table()

    def cut(self, codes: Mapping[str, int]) -> NoReturn:
        """Refuse: a density has no table."""
        raise self._no_table()

    def _no_table(self) -> UnsupportedModel:
        return UnsupportedModel(f"{self.variable.name!r} is Gaussian and has no table")

    @property
    def n_rows(self) -> int:
        """The number of configurations of the discrete parents."""
        return int(self.bias.size)

    @property
    def n_parameters(self) -> int:
        """Bias, weights and variance of every regression."""
        return self.n_rows * (len(self.continuous) + 2)

    def row(self, /, **parents: State) -> LinearGaussian:  # type: ignore[override]
        """Return the regression for the named states of the discrete parents."""
        known = [p.name for p in self.discrete]
        for name in known:
            if name not in parents:
                raise InvalidArgument(f"a row of {self.variable.name!r} needs a state for {name!r} too")
        if set(parents) != set(known):
            raise InvalidArgument(f"the discrete parents of {self.variable.name!r} are {known}")
        return self.regression(tuple(p.index(parents[p.name]) for p in self.discrete))

    def regression(self, codes: tuple[int, ...]) -> LinearGaussian:
        """Return the regression for the codes of the discrete parents."""
        weights = dict(zip([p.name for p in self.continuous], self.weights[codes].tolist(), strict=True))
        return LinearGaussian(float(self.bias[codes]), weights, float(self.variance[codes]))

    def recipe(self) -> StateRegressions | LinearGaussian:
        """Return the distribution as it is written in `add`."""
        if not self.discrete:
            return self.regression(())
        single = len(self.discrete) == 1
        return StateRegressions(
            {
                (states[0] if single else states): self.regression(codes)
                for codes, states in zip(
                    np.ndindex(self.bias.shape), product(*(p.states for p in self.discrete)), strict=True
                )
            }
        )

    def log_prob(self, child: Any, parents: Sequence[Any]) -> Array:
        """Return log p(child | parents), one number a row of codes and numbers."""
        mean, variance = self._moments(parents)
        gap = np.asarray(child, dtype=np.float64) - mean
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = -0.5 * (np.log(2 * pi * variance) + gap**2 / variance)
        certain = variance == 0.0
        if np.any(certain):  # a deterministic node has its value with probability one
            met = np.abs(gap) <= SAME_VALUE * np.maximum(1.0, np.abs(mean))
            logs = np.where(certain, np.where(met, 0.0, -np.inf), logs)
        return np.asarray(logs)

    def sample(self, parents: Sequence[Any], size: int, rng: np.random.Generator) -> Any:
        """Draw one number for each of `size` rows of the parents' codes and numbers."""
        mean, variance = self._moments(parents)
        return mean + np.sqrt(variance) * rng.standard_normal(size)

    def _moments(self, parents: Sequence[Any]) -> tuple[Any, Any]:
        codes = tuple(np.asarray(c, dtype=np.int64) for c in parents[: len(self.discrete)])
        numbers = parents[len(self.discrete) :]
        mean, weights = self.bias[codes], self.weights[codes]
        for k, x in enumerate(numbers):
            mean = mean + weights[..., k] * np.asarray(x, dtype=np.float64)
        return mean, self.variance[codes]

    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> "GaussianConditional":
        """Return the same numbers over renamed variables or states."""
        k = len(self.discrete)
        return GaussianConditional(variable, parents[:k], parents[k:], self.bias, self.weights, self.variance)

    def fixed_at(self, value: Any) -> "GaussianConditional":
        """Return the node set to a number, or to a `LinearGaussian` without weights, from outside."""
        if not isinstance(value, LinearGaussian):
            value = LinearGaussian(_number(value, f"value to set {self.variable.name!r} to"), {}, 0.0)
        if value.weights:
            raise InvalidArgument(
                f"{self.variable.name!r} is set from outside and then has no parents; leave weights out"
            )
        return GaussianConditional(self.variable, (), (), value.bias, np.zeros(0), value.variance)

    def allclose(self, other: Conditional, *, atol: float = 1e-12) -> bool:
        """Say whether two conditionals are the same distribution up to the order of parents."""
        if not isinstance(other, GaussianConditional) or self.variable != other.variable:
            return False
        if set(self.parents) != set(other.parents):
            return False
        axes = [other.discrete.index(p) for p in self.discrete]
        last = [other.continuous.index(p) for p in self.continuous]
        pairs = (
            (self.bias, other.bias.transpose(axes)),
            (self.variance, other.variance.transpose(axes)),
            (self.weights, other.weights.transpose([*axes, len(axes)])[..., last]),
        )
        return all(np.allclose(a, b, rtol=0.0, atol=atol) for a, b in pairs)

    def to_pandas(self) -> Any:
        """Return a DataFrame: one row a configuration of the discrete parents; bias, weights and variance."""
        import pandas as pd

        columns = {
            "bias": self.bias.ravel(),
            **{p.name: self.weights[..., k].ravel() for k, p in enumerate(self.continuous)},
            "variance": self.variance.ravel(),
        }
        index = (
            pd.MultiIndex.from_product(
                [p.states for p in self.discrete], names=[p.name for p in self.discrete]
            )
            if self.discrete
            else None
        )
        return pd.DataFrame(columns, index=index)

    def _lines(self) -> list[list[str]]:
        lines = []
        for codes, states in zip(
            np.ndindex(self.bias.shape), product(*(p.states for p in self.discrete)), strict=True
        ):
            r = self.regression(codes)
            lines.append([*map(str, states), _sum(r.bias, r.weights), f"{r.variance:.6g}"])
        return lines

    def __repr__(self) -> str:
        if self.n_rows > 60:
            return f"{self._heading()}, {self.n_rows:,} regressions"
        table = [[*(p.name for p in self.discrete), "mean", "variance"], *self._lines()]
        widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
        k = len(self.discrete)
        rows = [
            "  ".join(
                [cell.ljust(w) for cell, w in zip(row[:k], widths[:k], strict=True)]
                + [cell.rjust(w) for cell, w in zip(row[k:], widths[k:], strict=True)]
            )
            for row in table
        ]
        return "\n".join([self._heading(), *rows])

    def _repr_html_(self) -> str:
        header = [*(p.name for p in self.discrete), "mean", "variance"]
        return html_table(header, self._lines() if self.n_rows <= 60 else [], title=self._heading())

    def _heading(self) -> str:
        given = f" | {', '.join(self.parent_names)}" if self.parents else ""
        return f"{type(self).__name__} p({self.variable.name}{given})"


def _sum(bias: float, weights: Mapping[str, float]) -> str:
    """Return `1 + 2 x - y` for the mean of a regression."""
    parts = [f"{bias:.6g}"] if bias or not any(weights.values()) else []
    for name, w in weights.items():
        if not w:
            continue
        size = name if abs(w) == 1 else f"{abs(w):.6g} {name}"
        parts.append(f"{'- ' if w < 0 else '+ ' if parts else ''}{size}" if parts or w > 0 else f"-{size}")
    return " ".join(parts)


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the {what} is a number, not {value!r}") from None
    if not isfinite(number):
        raise InvalidArgument(f"the {what} is a finite number, not {number}")
    return number


def _array(name: str, what: str, values: Any, shape: tuple[int, ...]) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != shape:
        raise InvalidTable(f"the {what} of {name!r} has shape {found.shape}, but needs {shape}")
    if not np.isfinite(found).all():
        raise InvalidTable(f"the {what} of {name!r} has an entry that is no finite number")
    if found.flags.writeable:
        found = found.copy()
        found.setflags(write=False)
    return found
