"""Factors: non-negative tables with named axes, the algebra all discrete inference rests on.

A factor is immutable. Axes are found by name, so the order in which a product or a marginal lists them
never matters to its meaning. Products align axes by broadcasting; nothing larger than the result is made.
Cost of every operation: linear in the number of entries of its operands and result. A product or quotient has up to
64 axes and 2**30 entries (8 GiB).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, InvalidTable, TooLarge, UnknownVariable
from markovia.factors.tables.rendering import render_table, table_html
from markovia.factors.tables.variable import State, Variable
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_AXES = 64
MAX_ENTRIES = 2**30
_ROUNDING = 1e-12


class Factor:
    """A non-negative table over named discrete variables.

    Parameters
    ----------
    variables
        One entry an axis: a `Variable`, or a name (its states are then `0 ... k-1`, `k` read off the values).
    values
        Nested lists or an array, one axis a variable, finite and not negative.

    Examples
    --------
    >>> f = Factor(["a", "b"], [[30, 5], [1, 10]])
    >>> f.sum_out("b")
    Factor('a')
    a    value
    0       35
    1       11
    >>> (f * f.sum_out("b")).allclose(f.sum_out("b") * f)
    True
    """

    kind: ClassVar[str] = "table"
    """What engines have to treat to answer a model with it."""
    __slots__ = ("values", "variables")

    variables: tuple[Variable, ...]
    values: Array

    def __init__(self, variables: Iterable[Variable | str] | Variable | str, values: ArrayLike) -> None:
        if isinstance(variables, Variable | str):
            variables = [variables]
        axes = list(variables)
        rule = "a factor's values are a (nested) list of numbers, all rows equally long"
        array = numbers(values, rule, InvalidTable)
        if len(axes) > MAX_AXES:
            raise TooLarge(f"a factor has at most {MAX_AXES} axes, not {len(axes)}")
        if array.ndim != len(axes):
            raise InvalidTable(
                f"the values have {array.ndim} axes but {len(axes)} variables are named: "
                + ", ".join(repr(v.name if isinstance(v, Variable) else v) for v in axes)
            )
        own = tuple(
            v if isinstance(v, Variable) else Variable(v, k) for v, k in zip(axes, array.shape, strict=True)
        )
        names = [v.name for v in own]
        if len(set(names)) != len(names):
            raise InvalidTable(f"a factor names each variable once, not {names}")
        for axis, variable in enumerate(own):
            if array.shape[axis] != len(variable):
                raise InvalidTable(
                    f"axis {axis} of the values has {array.shape[axis]} entries but "
                    f"{variable.name!r} has {len(variable)} states"
                )
        check_non_negative(array, own)
        array.setflags(write=False)
        object.__setattr__(self, "variables", own)
        object.__setattr__(self, "values", array)

    @classmethod
    def of(cls, variables: tuple[Variable, ...], values: Array) -> "Factor":
        """Wrap an array already known to fit (no checks, no copy)."""
        if values.flags.writeable:
            values.setflags(write=False)
        factor = object.__new__(cls)
        _set_variables(factor, variables)
        _set_values(factor, values)
        return factor

    @staticmethod
    def cut_up(
        variables: Sequence[Variable], values: Array, starts: Sequence[int], stops: Sequence[int]
    ) -> "list[Factor]":
        """Wrap stretches of one read-only array as tables over one variable each (no checks, no copy)."""
        new, found = object.__new__, []
        for variable, start, stop in zip(variables, starts, stops, strict=True):
            factor = new(Factor)
            _set_variables(factor, (variable,))
            _set_values(factor, values[start:stop])
            found.append(factor)
        return found

    @staticmethod
    def many(scopes: "Iterable[tuple[Variable, ...]]", tables: Iterable[Array]) -> "list[Factor]":
        """Wrap many read-only arrays already known to fit, which several factors may share (no checks, no copy)."""
        new, found = object.__new__, []
        for scope, table in zip(scopes, tables, strict=True):
            factor = new(Factor)
            _set_variables(factor, scope)
            _set_values(factor, table)
            found.append(factor)
        return found

    @classmethod
    def from_log(cls, variables: Iterable[Variable | str], log_values: ArrayLike) -> "Factor":
        """Build `exp(log_values)`; minus infinity gives zero.

        Examples
        --------
        >>> Factor.from_log(["a"], [0.0, float("-inf")]).values.tolist()
        [1.0, 0.0]
        """
        with np.errstate(over="ignore"):
            return cls(variables, np.exp(np.asarray(log_values, dtype=np.float64)))

    def over(self, variables: tuple[Variable, ...]) -> "Factor":
        """Return the same table over other variables with as many states (no checks, no copy)."""
        return Factor.of(variables, self.values)

    @classmethod
    def scalar(cls, value: float = 1.0) -> "Factor":
        """Build a factor over no variables: one number."""
        return cls.of((), np.array(float(value)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Factor is immutable; cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Factor, (self.variables, self.values))

    # -- looking -----------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes in order."""
        return tuple(v.name for v in self.variables)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each axis."""
        return self.values.shape

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.values.size

    @property
    def total(self) -> float:
        """The sum of all entries."""
        return float(self.values.sum())

    @property
    def log_values(self) -> Array:
        """The natural logarithm of the entries; zero becomes minus infinity."""
        with np.errstate(divide="ignore"):
            return cast(Array, np.log(self.values))

    def variable(self, name: str) -> Variable:
        """Return the axis of that name."""
        return self.variables[self.axis(name)]

    def axis(self, name: str) -> int:
        """Return the position of the axis of that name."""
        for i, v in enumerate(self.variables):
            if v.name == name:
                return i
        raise UnknownVariable(name, self.names, "the factor")

    def __getitem__(self, key: object) -> float:
        """Return the entry at one state an axis: `f["yes", "no"]`, or `f[{"a": "yes", "b": "no"}]`."""
        if isinstance(key, Mapping):
            reduced = self.reduce(key)
            if reduced.variables:
                raise InvalidArgument(
                    f"a state for {reduced.names[0]!r} is missing; use reduce() to fix only some"
                )
            return float(reduced.values)
        states = key if isinstance(key, tuple) else (key,)
        if len(states) != len(self.variables):
            raise InvalidArgument(f"one state a variable is needed, in the order {list(self.names)}")
        return float(self.values[tuple(v.index(s) for v, s in zip(self.variables, states, strict=True))])

    # -- algebra -----------------------------------------------------------------------------------------

    def __mul__(self, other: "Factor | float") -> "Factor":
        if isinstance(other, int | float):
            return Factor(self.variables, self.values * other)
        if not isinstance(other, Factor):
            return NotImplemented
        return product((self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: "Factor | float") -> "Factor":
        """Divide entry by entry with 0/0 = 0; a positive number over zero is an error."""
        if isinstance(other, int | float):
            if other == 0:
                raise InvalidTable("division of a factor by zero")
            return Factor(self.variables, self.values / other)
        if not isinstance(other, Factor):
            return NotImplemented
        variables = union_of_axes((self, other))
        top = np.broadcast_to(self._aligned(variables), [len(v) for v in variables])
        bottom = np.broadcast_to(other._aligned(variables), top.shape)
        if np.any((bottom == 0) & (top != 0)):
            raise InvalidTable("division of a positive entry by zero; only 0/0 is defined (as 0)")
        quotient = np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0)
        return Factor.of(variables, quotient)

    def sum_out(self, names: str | Iterable[str]) -> "Factor":
        """Sum over the named variables."""
        return self._fold(names, np.add.reduce)

    def max_out(self, names: str | Iterable[str]) -> "Factor":
        """Maximise over the named variables."""
        return self._fold(names, np.maximum.reduce)

    def marginal(self, names: str | Iterable[str]) -> "Factor":
        """Sum over all but the named variables, and put those in the given order."""
        keep = _as_names(names)
        for name in keep:
            self.axis(name)
        return self.sum_out([n for n in self.names if n not in keep]).transpose(keep)

    def conditional(self, names: str | Iterable[str], given: str | Iterable[str]) -> "Factor":
        """Return P(names | given) of the normalised factor; a row whose condition has no mass is zero.

        Examples
        --------
        >>> p = Factor(["x", "y"], [[0.1, 0.3], [0.2, 0.4]])
        >>> p.conditional("y", given="x").values[0].round(6).tolist()
        [0.25, 0.75]
        """
        a, c = _as_names(names), _as_names(given)
        _disjoint(a, c)
        together = self.normalize().marginal([*c, *a])
        return together / together.marginal(c)

    def reduce(self, given: Mapping[str, State]) -> "Factor":
        """Fix variables to a state and drop their axes; names the factor does not have are ignored."""
        index: list[Any] = [slice(None)] * len(self.variables)
        kept = []
        for i, v in enumerate(self.variables):
            if v.name in given:
                index[i] = v.index(given[v.name])
            else:
                kept.append(v)
        return Factor.of(tuple(kept), np.asarray(self.values[tuple(index)]))

    def normalize(self, over: str | Iterable[str] | None = None) -> "Factor":
        """Scale to sum to one: the whole table, or for every state of the other variables (`over`).

        Raises
        ------
        InvalidTable
            If a sum to divide by is zero.
        """
        axes = range(len(self.variables)) if over is None else [self.axis(n) for n in _as_names(over)]
        mass = self.values.sum(axis=tuple(axes), keepdims=True)
        if not np.all(mass > 0):
            raise InvalidTable("cannot normalise: the entries sum to zero")
        return Factor.of(self.variables, self.values / mass)

    def transpose(self, names: Sequence[str]) -> "Factor":
        """Return the same factor with its axes in the given order."""
        if sorted(names) != sorted(self.names):
            raise InvalidArgument(f"an order of all axes {list(self.names)} is needed, not {list(names)}")
        order = [self.axis(n) for n in names]
        return Factor.of(tuple(self.variables[i] for i in order), self.values.transpose(order))

    def rename(self, names: Mapping[str, str]) -> "Factor":
        """Rename axes."""
        for name in names:
            self.axis(name)
        renamed = tuple(v.renamed(names[v.name]) if v.name in names else v for v in self.variables)
        if len({v.name for v in renamed}) != len(renamed):
            raise InvalidArgument(f"renaming {dict(names)} makes two axes share a name")
        return Factor.of(renamed, self.values)

    def apply(self, function: Callable[[Array], Array]) -> "Factor":
        """Apply an array function to the entries and check the result."""
        return Factor(self.variables, function(self.values))

    # -- the factor as a distribution ----------------------------------------------------------------------

    def expectation(self, function: Callable[..., float]) -> float:
        """Return the mean of `function(state, state, ...)` under the normalised factor.

        Examples
        --------
        >>> Factor(["die"], [1, 1, 1, 1, 1, 1]).expectation(lambda face: face + 1)
        3.5
        """
        weights = self.normalize().values
        states = [v.states for v in self.variables]
        return float(
            sum(
                weights[i] * function(*(s[k] for s, k in zip(states, i, strict=True)))
                for i in zip(*np.nonzero(weights), strict=True)
            )
            if states
            else function()
        )

    def entropy(self, *, base: float | None = None) -> float:
        """Return the Shannon entropy of the normalised factor, in nats unless a base is given."""
        unit = _unit(base)
        p = self.normalize().values
        p = p[p > 0]
        return float(-(p * np.log(p)).sum() / unit) + 0.0

    def conditional_entropy(
        self, x: str | Iterable[str], given: str | Iterable[str], *, base: float | None = None
    ) -> float:
        """Return H(x | given) = H(x, given) - H(given) of the normalised factor, in nats unless a base is given.

        Examples
        --------
        >>> p = Factor(["x", "y"], [[0.25, 0.25], [0.5, 0.0]])
        >>> round(p.entropy(), 6), round(p.conditional_entropy("x", given="y"), 6)
        (1.039721, 0.477386)
        """
        unit = _unit(base)
        a, b = _as_names(x), _as_names(given)
        _disjoint(a, b)
        whole = self.marginal([*a, *b]).entropy()
        return max(0.0, (whole - (self.marginal(b).entropy() if b else 0.0)) / unit)

    def kl(self, other: "Factor", *, base: float | None = None) -> float:
        """Return the Kullback-Leibler divergence from the normalised `other` to this normalised factor.

        Infinite where `other` gives zero mass to something that has mass here.
        """
        unit = _unit(base)
        turned = other.transpose(self.names)
        if turned.variables != self.variables:
            raise InvalidArgument(
                "the divergence needs two factors over the same variables with the same states"
            )
        p, q = self.normalize().values, turned.normalize().values
        support = p > 0
        if np.any(q[support] == 0):
            return float("inf")
        return max(0.0, float((p[support] * np.log(p[support] / q[support])).sum() / unit))

    def mutual_information(
        self,
        x: str | Iterable[str],
        y: str | Iterable[str],
        given: str | Iterable[str] = (),
        *,
        base: float | None = None,
    ) -> float:
        """Return the (conditional) mutual information I(x; y | given) of the normalised factor.

        Examples
        --------
        >>> p = Factor(["x", "y"], [[0.16, 0.04], [0.16, 0.64]])
        >>> round(p.mutual_information("x", "y"), 6)
        0.126467
        """
        unit = _unit(base)
        a, b, c = _as_names(x), _as_names(y), _as_names(given)
        _disjoint(a, b, c)

        def h(names: list[str]) -> float:
            return self.marginal(names).entropy() if names else 0.0

        return max(0.0, (h(a + c) + h(b + c) - h(a + b + c) - h(c)) / unit)

    def independent(
        self,
        x: str | Iterable[str],
        y: str | Iterable[str],
        given: str | Iterable[str] = (),
        *,
        tolerance: float = 1e-9,
    ) -> bool:
        """Say whether x and y are independent given the rest in the normalised factor.

        It compares `P(x,y,z) P(z)` with `P(x,z) P(y,z)` entry by entry: they may differ by a share `tolerance` of the
        larger one, so that rare events and long conditions count as much as common ones. Differences of conditional
        probabilities below 1e-12 pass as rounding.
        """
        a, b, c = _as_names(x), _as_names(y), _as_names(given)
        _disjoint(a, b, c)
        p = self.normalize().marginal(a + b + c)
        condition = p.marginal(c)
        left = (p * condition).transpose(p.names).values
        right = (p.marginal(a + c) * p.marginal(b + c)).transpose(p.names).values
        rounding = _ROUNDING * np.broadcast_to(condition._aligned(p.variables), p.shape) ** 2
        return bool(np.all(np.abs(left - right) <= np.maximum(tolerance * np.maximum(left, right), rounding)))

    def argmax(self) -> dict[str, State]:
        """Return the states at the largest entry (the first one of several)."""
        at = np.unravel_index(int(np.argmax(self.values)), self.shape)
        return {v.name: v.states[int(i)] for v, i in zip(self.variables, at, strict=True)}

    # -- comparing and showing -----------------------------------------------------------------------------

    def allclose(self, other: "Factor", *, rtol: float = 1e-9, atol: float = 1e-12) -> bool:
        """Say whether two factors agree up to the order of axes."""
        if sorted(self.names) != sorted(other.names):
            return False
        turned = other.transpose(self.names)
        return self.variables == turned.variables and bool(
            np.allclose(self.values, turned.values, rtol=rtol, atol=atol)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Factor):
            return NotImplemented
        return self.allclose(other, rtol=0.0, atol=0.0)

    __hash__ = None  # type: ignore[assignment]

    def to_pandas(self) -> "pd.Series[float]":
        """Return the entries as a Series indexed by the states."""
        import pandas as pd

        if not self.variables:
            return pd.Series([float(self.values)], name="value")
        if len(self.variables) == 1:
            only = self.variables[0]
            return pd.Series(self.values, index=pd.Index(only.states, name=only.name), name="value")
        index = pd.MultiIndex.from_product([v.states for v in self.variables], names=list(self.names))
        return pd.Series(self.values.ravel(), index=index, name="value")

    def to_dict(self) -> dict[Any, float]:
        """Return `{state: value}`, or `{(state, ...): value}` for several variables."""
        if len(self.variables) == 1:
            return dict(zip(self.variables[0].states, self.values.tolist(), strict=True))
        states = [v.states for v in self.variables]
        return {
            tuple(s[k] for s, k in zip(states, i, strict=True)): float(self.values[i])
            for i in np.ndindex(*self.shape)
        }

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the table as a heat map; see `markovia.plotting.plot_table`."""
        return ports.draw("plot-table", self, ax=ax, title=title)

    def __repr__(self) -> str:
        head = f"Factor({', '.join(repr(n) for n in self.names)})"
        return head + "\n" + render_table(self.variables, self.values, "value")

    def _repr_html_(self) -> str:
        return table_html(self.variables, self.values, "value")

    def _aligned(self, variables: Sequence[Variable]) -> Array:
        """View the values with the given axes, length one where the factor lacks an axis."""
        place = {v.name: i for i, v in enumerate(self.variables)}
        order = [place[v.name] for v in variables if v.name in place]
        shape = [len(v) if v.name in place else 1 for v in variables]
        return self.values.transpose(order).reshape(shape)

    def _fold(self, names: str | Iterable[str], reduction: Callable[..., Any]) -> "Factor":
        gone = {self.axis(n) for n in _as_names(names)}
        if not gone:
            return self
        kept = tuple(v for i, v in enumerate(self.variables) if i not in gone)
        return Factor.of(kept, np.asarray(reduction(self.values, axis=tuple(gone))))


# `Factor.of` fills the slots past the guard against assignment
_set_variables = Factor.__dict__["variables"].__set__
_set_values = Factor.__dict__["values"].__set__


def product(factors: Iterable[Factor]) -> Factor:
    """Multiply factors; the empty product is the scalar one.

    Raises
    ------
    TooLarge
        If the result would have more than 64 axes or 2**30 entries; nothing is allocated then.
    """
    ordered = sorted(factors, key=lambda f: f.size)
    if not ordered:
        return Factor.scalar()
    variables = union_of_axes(ordered)
    result = ordered[0]
    for factor in ordered[1:]:
        axes = union_of_axes((result, factor))
        result = Factor.of(axes, result._aligned(axes) * factor._aligned(axes))
    return result.transpose([v.name for v in variables])


def union_of_axes(factors: Iterable[Factor]) -> tuple[Variable, ...]:
    """Return the variables of all factors, in order of first appearance; same name means same states."""
    seen: dict[str, Variable] = {}
    for factor in factors:
        for v in factor.variables:
            known = seen.setdefault(v.name, v)
            if known is not v and known.states != v.states:
                raise InvalidTable(
                    f"two factors disagree about {v.name!r}: states {list(known.states)} and {list(v.states)}"
                )
    if len(seen) > MAX_AXES:
        raise TooLarge(f"a product over {len(seen)} variables; a table has at most {MAX_AXES} axes")
    entries = prod(len(v) for v in seen.values())
    if entries > MAX_ENTRIES:
        raise TooLarge(
            f"a table over {', '.join(list(seen)[:6])}{', ...' if len(seen) > 6 else ''} would have "
            f"{entries:,} entries; the limit is {MAX_ENTRIES:,}"
        )
    return tuple(seen.values())


def check_non_negative(values: Array, variables: Sequence[Variable]) -> None:
    """Raise `InvalidTable` that names the first negative, infinite or undefined entry."""
    if values.size and values.min() >= 0 and values.max() < np.inf:
        return
    bad = ~((values >= 0) & (values < np.inf))
    if not bad.any():
        return
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(bad)))[: values.ndim]
    where = ", ".join(f"{v.name}={v.states[i]!r}" for v, i in zip(variables, at, strict=True))
    raise InvalidTable(f"the entry at ({where}) is {values[at]}; entries are finite and not negative")


def _as_names(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _disjoint(*groups: list[str]) -> None:
    flat = [n for group in groups for n in group]
    if len(set(flat)) != len(flat):
        raise InvalidArgument(f"the variable sets must not overlap: {[g for g in groups if g]}")


def _unit(base: float | None) -> float:
    """Return the length of one unit of information in nats."""
    if base is None:
        return 1.0
    if isinstance(base, bool) or not isinstance(base, int | float | np.number) or not 1 < base < np.inf:
        raise InvalidArgument(f"base= is a number above 1, such as 2 for bits, not {base!r}")
    return float(np.log(base))
