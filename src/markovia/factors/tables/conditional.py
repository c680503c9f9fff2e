"""Conditional distributions P(child | parents) of discrete networks.

`Conditional` is what a Bayesian network needs of a node: its variable, its parents, a table on request,
the probability of rows and draws given parent rows. `ConditionalTable` stores the table; structured forms
(noisy-or and its relatives) store their few parameters and answer rows without ever building the table.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, InvalidTable, TooLarge, check_known
from markovia.factors.tables.factor import Factor, check_non_negative
from markovia.factors.tables.rendering import render_table
from markovia.factors.tables.variable import State, Variable
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers
from markovia.runtime.shown import html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Codes = NDArray[np.integer[Any]]
ROW_TOLERANCE = 1e-6
MAX_TABLE_ENTRIES = 2**28
MOST_ENTRIES = 4096
"""Entries of a table that is still shown."""


class Conditional(ABC):
    """P(variable | parents). Values are indexed parents first, child last."""

    kind: ClassVar[str] = "table"
    """What engines have to treat to answer a model with it."""
    variable: Variable
    parents: tuple[Variable, ...]

    @property
    @abstractmethod
    def values(self) -> Array:
        """The dense table, axes `(*parents, child)`, read-only."""

    @abstractmethod
    def log_prob(self, child: Codes, parents: Sequence[Codes]) -> Array:
        """Return log P(child | parents), one number a row of state codes."""

    @abstractmethod
    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw one child code for each of `size` rows of parent codes."""

    @abstractmethod
    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> "Conditional":
        """Return the same distribution over renamed variables or states (cardinalities unchanged)."""

    def fixed_at(self, value: Any) -> "Conditional":
        """Return the distribution of the variable set to a value from outside, without parents."""
        row = np.zeros(len(self.variable))
        row[self.variable.index(value)] = 1.0
        return ConditionalTable.of(self.variable, (), row)

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number of free parameters."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parents, then of the child."""
        return (*(p.name for p in self.parents), self.variable.name)

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The names of the parents in table order."""
        return tuple(p.name for p in self.parents)

    @property
    def n_rows(self) -> int:
        """The number of parent configurations."""
        return prod(len(p) for p in self.parents)

    def factor(self) -> Factor:
        """Return the table as a factor over parents and child."""
        return Factor.of((*self.parents, self.variable), self.values)

    def cut(self, codes: Mapping[str, int]) -> Factor:
        """Return the factor that is left when some of the variables are fixed to a state, given by code."""
        axes = (*self.parents, self.variable)
        index = tuple(codes.get(v.name, slice(None)) for v in axes)
        return Factor.of(tuple(v for v in axes if v.name not in codes), np.asarray(self.values[index]))

    def row(self, /, **parents: State) -> Array:
        """Return P(child | those parent states) as an array over the child's states."""
        row: Array = self.values[self._row_codes(parents)]
        return row

    def _row_codes(self, states: Mapping[str, State]) -> tuple[int, ...]:
        """Return the codes of one state a parent, or say which name is unknown or missing."""
        check_known(states, self.parent_names, f"the parents of {self.variable.name!r}")
        missing = [n for n in self.parent_names if n not in states]
        if missing:
            raise InvalidArgument(f"a row of {self.variable.name!r} needs a state for {missing[0]!r} too")
        return tuple(p.index(states[p.name]) for p in self.parents)

    def to_pandas(self) -> Any:
        """Return a DataFrame: one row a parent configuration, one column a state of the child."""
        import pandas as pd

        columns = pd.Index(self.variable.states, name=self.variable.name)
        flat = self.values.reshape(-1, len(self.variable))
        if not self.parents:
            return pd.DataFrame(flat, columns=columns)
        if len(self.parents) == 1:
            index: Any = pd.Index(self.parents[0].states, name=self.parents[0].name)
        else:
            index = pd.MultiIndex.from_product([p.states for p in self.parents], names=self.parent_names)
        return pd.DataFrame(flat, index=index, columns=columns)

    def allclose(self, other: "Conditional", *, atol: float = 1e-12) -> bool:
        """Say whether two conditionals are the same distribution up to the order of parents."""
        return (
            self.kind == other.kind
            and self.variable == other.variable
            and set(self.parents) == set(other.parents)
            and self.factor().allclose(other.factor(), rtol=0.0, atol=atol)
        )

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the table as a heat map, a row for each states of the parents; see `markovia.plotting.plot_table`."""
        return ports.draw("plot-table", self, ax=ax, title=title)

    def __repr__(self) -> str:
        if self.n_rows * len(self.variable) > MOST_ENTRIES:
            return self._heading()
        return f"{self._heading()}\n" + render_table((*self.parents, self.variable), self.values, "p")

    def _repr_html_(self) -> str:
        if self.n_rows * len(self.variable) > MOST_ENTRIES:
            return html_table([], [], title=self._heading())
        given = product(*(p.states for p in self.parents))
        rows = self.values.reshape(-1, len(self.variable))
        return html_table(
            [*self.parent_names, *map(str, self.variable.states)],
            [[*states, *(f"{p:.6g}" for p in row)] for states, row in zip(given, rows, strict=True)],
            title=self._heading(),
        )

    def _heading(self) -> str:
        given = f" | {', '.join(self.parent_names)}" if self.parents else ""
        large = self.n_rows * len(self.variable) > MOST_ENTRIES
        size = f", {self.n_rows:,} rows x {len(self.variable)} states" if large else ""
        return f"{type(self).__name__} P({self.variable.name}{given}){size}"


class ConditionalTable(Conditional):
    """A conditional distribution given by its full table.

    Parameters
    ----------
    variable
        The child.
    parents
        The parents, in the order of the table's axes.
    values
        Array with axes `(*parents, child)`; every row over the child sums to one.
    tolerance
        How far from one a row may sum.
    normalise
        Whether to divide every row by its sum; otherwise values are kept as given.

    Examples
    --------
    >>> rain, wet = Variable("rain", ["no", "yes"]), Variable("wet", ["no", "yes"])
    >>> ConditionalTable(wet, [rain], [[0.9, 0.1], [0.2, 0.8]])
    ConditionalTable P(wet | rain)
    rain  wet    p
    no    no   0.9
    no    yes  0.1
    yes   no   0.2
    yes   yes  0.8
    """

    __slots__ = ("_values", "parents", "variable")

    def __init__(
        self,
        variable: Variable,
        parents: Iterable[Variable] = (),
        values: Any = (),
        *,
        tolerance: float = ROW_TOLERANCE,
        normalise: bool = False,
    ) -> None:
        self.variable = variable
        self.parents = tuple(parents)
        self._values = _checked(variable, self.parents, values, tolerance, normalise)

    @classmethod
    def of(cls, variable: Variable, parents: tuple[Variable, ...], values: Array) -> "ConditionalTable":
        """Wrap an array already known to be a valid table (no checks, no copy)."""
        table = object.__new__(cls)
        table.variable, table.parents, table._values = variable, parents, values
        values.setflags(write=False)
        return table

    @property
    def values(self) -> Array:
        """The dense table, axes `(*parents, child)`, read-only."""
        return self._values

    @property
    def n_parameters(self) -> int:
        """Rows times (states - 1)."""
        return self.n_rows * (len(self.variable) - 1)

    def log_prob(self, child: Codes, parents: Sequence[Codes]) -> Array:
        """Return log P(child | parents), one number a row of state codes."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self._values[(*parents, child)])
        return logs

    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw by inverting each row's cumulative distribution."""
        return draw_rows(self._values[tuple(parents)] if parents else self._values, size, rng)

    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> "ConditionalTable":
        """Return the same numbers over renamed variables or states."""
        return ConditionalTable.of(variable, parents, self._values)


def draw_rows(rows: Array, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one index a row of unnormalised weights (or `size` indices from a single row)."""
    edges = np.cumsum(rows, axis=-1)
    u = rng.random(size) * edges[..., -1]
    drawn = np.searchsorted(edges, u, side="right") if edges.ndim == 1 else (u[:, None] >= edges).sum(axis=1)
    # rounding can put u on the last edge; a state of weight zero must never be drawn
    last = edges.shape[-1] - 1 - np.argmax((rows > 0)[..., ::-1], axis=-1)
    codes: NDArray[np.int64] = np.minimum(drawn, last).astype(np.int64)
    return codes


def uniform_table(variable: Variable, parents: tuple[Variable, ...]) -> ConditionalTable:
    """Every row gives each state the same probability."""
    shape = table_shape(variable, parents)
    return ConditionalTable.of(variable, parents, np.full(shape, 1.0 / len(variable)))


def random_table(
    variable: Variable, parents: tuple[Variable, ...], rng: np.random.Generator, concentration: float = 1.0
) -> ConditionalTable:
    """Rows drawn from a symmetric Dirichlet distribution."""
    shape = table_shape(variable, parents)
    weights = rng.standard_gamma(concentration, size=shape) + 1e-300
    return ConditionalTable.of(variable, parents, weights / weights.sum(axis=-1, keepdims=True))


def table_shape(
    variable: Variable,
    parents: Sequence[Variable],
    cure: str = "use a structured form such as NoisyOr, or fewer parents",
) -> tuple[int, ...]:
    """Return the shape of a conditional table, or raise `TooLarge` before anything is allocated."""
    shape = (*(len(p) for p in parents), len(variable))
    if len(shape) > 64 or prod(shape) > MAX_TABLE_ENTRIES:
        raise TooLarge(
            f"the table of {variable.name!r} given {len(parents)} parents would have {prod(shape):,} entries; "
            f"{cure}"
        )
    return shape


def _checked(
    variable: Variable, parents: tuple[Variable, ...], values: Any, tolerance: float, normalise: bool
) -> Array:
    names = [p.name for p in parents]
    if len({variable.name, *names}) != len(names) + 1:
        raise InvalidTable(f"{variable.name!r} and its parents {names} must be different variables")
    array = numbers(
        values, f"the table of {variable.name!r} is a regular nested list of numbers", InvalidTable
    )
    shape = table_shape(variable, parents)
    if array.shape != shape:
        raise InvalidTable(_wrong_shape(variable, parents, array, shape))
    check_non_negative(array, (*parents, variable))
    sums = array.sum(axis=-1)
    if normalise:
        array /= np.where(sums > 0, sums, 1.0)[..., None]
        sums = (sums > 0).astype(np.float64)
    off = np.abs(sums - 1.0)
    if off.size and off.max() > tolerance:
        at = np.unravel_index(int(np.argmax(off)), off.shape) if parents else ()
        where = ", ".join(f"{p.name}={p.states[int(i)]!r}" for p, i in zip(parents, at, strict=True))
        total = float(sums[at])
        raise InvalidTable(
            f"the row of {variable.name!r}{f' for {where}' if where else ''} sums to {total:.9g}, "
            f"off by {total - 1:+.3g}; it must sum to 1 (rows = parent states, columns = states of {variable.name!r})"
            + ("" if normalise or total <= 0 else ", or say normalise=True")
        )
    array.setflags(write=False)
    return array


def _wrong_shape(
    variable: Variable, parents: tuple[Variable, ...], array: Array, shape: tuple[int, ...]
) -> str:
    wanted = " x ".join([*(f"{p.name}({len(p)})" for p in parents), f"{variable.name}({len(variable)})"])
    hint = ""
    flat = (prod(shape[:-1]), shape[-1])
    if array.shape == flat[::-1] and array.shape != flat:
        hint = "; this looks transposed: parents come first, the child's states last"
    return f"the table of {variable.name!r} has shape {array.shape}, but {wanted} needs {shape}{hint}"
