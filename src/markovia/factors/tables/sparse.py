"""Factors given by a list of entries; every configuration that is not listed has weight zero.

A table over 40 variables of two states has 2**40 entries; if only a hundred are not zero, a hundred rows say the same.
Message passing (`loopy-bp`, `max-product`) runs over the listed entries alone: time proportional to entries times
variables. To everything else a `SparseFactor` is a `Factor` whose dense table is made when `values` is first asked for,
and `TooLarge` where that table would not fit.
"""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument, InvalidTable, TooLarge
from markovia.factors.tables.factor import MAX_AXES, Factor
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers

MAX_DENSE = 2**28


class SparseFactor(Factor):
    """A non-negative table of which only some entries are listed; the others are zero.

    Parameters
    ----------
    variables
        The axes: `Variable` objects, or names (their states are then `0 ... k-1`, with k as the entries need, at least 2).
    entries
        A mapping from one state a variable to a weight, `{("yes", "no", 3): 0.5, ...}`.

    Raises
    ------
    InvalidTable
        If an entry has the wrong length, or a weight is negative or not finite.

    Examples
    --------
    >>> even = SparseFactor(["a", "b"], {(0, 0): 1.0, (1, 1): 1.0})
    >>> even.n_entries, even.values.tolist()
    (2, [[1.0, 0.0], [0.0, 1.0]])
    >>> wide = SparseFactor([f"x{i}" for i in range(40)], {(0,) * 40: 1.0, (1,) * 40: 3.0})
    >>> wide.size == 2**40, wide[(1,) * 40]
    (True, 3.0)
    """

    __slots__ = ("_dense", "codes", "weights")

    codes: NDArray[np.int64]
    weights: Array
    _dense: list[Array]

    def __init__(
        self,
        variables: Iterable[Variable | str] | Variable | str,
        entries: Mapping[tuple[State, ...], float],
    ) -> None:
        axes = [variables] if isinstance(variables, Variable | str) else list(variables)
        if not isinstance(entries, Mapping):
            raise InvalidArgument(
                "a sparse factor's entries are a mapping such as {(0, 1): 0.5}; "
                "for arrays use SparseFactor.from_arrays(variables, codes, weights)"
            )
        rows = [key if isinstance(key, tuple) else (key,) for key in entries]
        for row in rows:
            if len(row) != len(axes):
                raise InvalidTable(f"the entry {row!r} needs one state for each of {len(axes)} variables")
        own = []
        for place, axis in enumerate(axes):
            if isinstance(axis, Variable):
                own.append(axis)
                continue
            seen = [row[place] for row in rows]
            if not all(isinstance(s, int | np.integer) and not isinstance(s, bool) and s >= 0 for s in seen):
                raise InvalidTable(
                    f"the entries name states of {axis!r} that are no codes; give a Variable with its states"
                )
            own.append(Variable(axis, max(2, 1 + max(map(int, seen), default=1))))
        codes = [[v.index(s) for v, s in zip(own, row, strict=True)] for row in rows]
        self._fill(tuple(own), np.array(codes, dtype=np.int64).reshape(len(rows), len(own)), entries.values())

    @classmethod
    def from_arrays(
        cls, variables: Iterable[Variable], codes: ArrayLike, weights: ArrayLike
    ) -> "SparseFactor":
        """Build from state codes, one row an entry and one column a variable, and one weight an entry.

        Examples
        --------
        >>> a, b = Variable("a", 3), Variable("b", ["no", "yes"])
        >>> SparseFactor.from_arrays([a, b], [[2, 0], [0, 1]], [0.5, 2.0]).values.tolist()
        [[0.0, 2.0], [0.0, 0.0], [0.5, 0.0]]
        """
        own = tuple(variables)
        for v in own:
            if not isinstance(v, Variable):
                raise InvalidArgument(f"from_arrays() takes Variable objects, not {v!r}")
        table = np.array(codes)
        if table.size == 0:
            table = np.zeros((0, len(own)), dtype=np.int64)
        if table.ndim != 2 or table.shape[1] != len(own) or table.dtype.kind not in "iu":
            raise InvalidTable(f"codes are integers, one row an entry and {len(own)} columns")
        factor = object.__new__(cls)
        factor._fill(own, table.astype(np.int64), np.ravel(np.asarray(weights, dtype=np.float64)))
        return factor

    def _fill(self, variables: tuple[Variable, ...], codes: NDArray[np.int64], weights: Any) -> None:
        """Check and store."""
        names = [v.name for v in variables]
        if len(set(names)) != len(names):
            raise InvalidTable(f"a factor names each variable once, not {names}")
        values = numbers(list(weights), "the weights of a sparse factor are numbers", InvalidTable)
        if len(values) != len(codes):
            raise InvalidTable(f"there are {len(codes)} rows of codes but {len(values)} weights")
        bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if len(bad):
            raise InvalidTable(
                f"the entry {int(bad[0])} has weight {values[bad[0]]}; weights are finite and not negative"
            )
        for column, variable in zip(codes.T, variables, strict=True):
            if len(column) and not (column.min() >= 0 and column.max() < len(variable)):
                raise InvalidTable(
                    f"the codes of {variable.name!r} are 0 to {len(variable) - 1}, not {int(column.max())}"
                )
        if len(codes) and len(np.unique(codes, axis=0)) < len(codes):
            raise InvalidTable("a sparse factor lists each entry once")
        kept = values > 0
        self._put(variables, codes[kept], values[kept])

    def _put(self, variables: tuple[Variable, ...], codes: NDArray[np.int64], weights: Array) -> None:
        codes, weights = np.ascontiguousarray(codes), np.ascontiguousarray(weights)
        codes.setflags(write=False)
        weights.setflags(write=False)
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "_dense", [])

    @property
    def values(self) -> Array:  # type: ignore[override]
        """The dense table, made when first asked for.

        Raises
        ------
        TooLarge
            If it would have more than 2**28 entries or 64 axes.
        """
        if not self._dense:
            if len(self.variables) > MAX_AXES or self.size > MAX_DENSE:
                raise TooLarge(
                    f"a sparse factor over {len(self.variables)} variables has no dense table (at most "
                    f"{MAX_AXES} axes and 2**28 entries); engine='loopy-bp' and 'max-product' do without"
                )
            table = np.zeros(self.shape)
            table[tuple(self.codes.T)] = self.weights if len(self.variables) else self.weights.sum()
            table.setflags(write=False)
            self._dense.append(table)
        return self._dense[0]

    @property
    def n_entries(self) -> int:
        """The number of entries that are not zero."""
        return len(self.weights)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each axis."""
        return tuple(len(v) for v in self.variables)

    @property
    def size(self) -> int:
        """The number of entries of the dense table."""
        return prod(self.shape)

    @property
    def total(self) -> float:
        """The sum of all entries."""
        return float(self.weights.sum())

    def over(self, variables: tuple[Variable, ...]) -> "SparseFactor":
        """Return the same entries over other variables with as many states."""
        factor = object.__new__(type(self))
        factor._put(variables, self.codes, self.weights)
        return factor

    def cut(self, fixed: Mapping[str, int]) -> Factor:
        """Return the factor that is left when some variables are fixed to a state, given by code."""
        if not any(n in fixed for n in self.names):
            return self
        agree = np.ones(len(self.codes), dtype=bool)
        kept = []
        for place, v in enumerate(self.variables):
            if v.name in fixed:
                agree &= self.codes[:, place] == fixed[v.name]
            else:
                kept.append(place)
        if not kept:
            return Factor.scalar(float(self.weights[agree].sum()))
        factor = object.__new__(type(self))
        factor._put(tuple(self.variables[i] for i in kept), self.codes[agree][:, kept], self.weights[agree])
        return factor

    def reduce(self, given: Mapping[str, State]) -> Factor:
        """Fix variables to a state and drop their axes; names the factor does not have are ignored."""
        return self.cut({v.name: v.index(given[v.name]) for v in self.variables if v.name in given})

    def __getitem__(self, key: object) -> float:
        """Return the entry at one state an axis."""
        if not isinstance(key, Mapping):
            states = key if isinstance(key, tuple) else (key,)
            if len(states) != len(self.variables):
                raise InvalidArgument(f"one state a variable is needed, in the order {list(self.names)}")
            key = dict(zip(self.names, states, strict=True))
        left = self.reduce(key)
        if left.variables:
            raise InvalidArgument(f"a state is needed for {', '.join(map(repr, left.names))} too")
        return float(left.values)

    def __reduce__(self) -> tuple[Any, ...]:
        return (SparseFactor.from_arrays, (self.variables, self.codes, self.weights))

    def __repr__(self) -> str:
        if len(self.variables) <= MAX_AXES and self.size <= 4096:
            return "Sparse" + super().__repr__()
        names = ", ".join(map(repr, self.names[:6])) + (", ..." if len(self.variables) > 6 else "")
        return f"SparseFactor({names}), {len(self.variables)} variables, {self.n_entries:,} entries"
