"""Conditional distributions with few parameters and any number of parents.

Noisy-or and its relatives, logistic regression, logical gates and sums have one thing in common: every
parent contributes a small vector that depends on its own state alone, the contributions are combined by an
associative operation (a sum, a maximum), and the combined vector decides the distribution of the child:

    P(y | x_1 ... x_n) = finish(start + c_1(x_1) + ... + c_n(x_n)).

This is *independence of causal influence* (Heckerman and Breese, 1996). The parameters take space linear
in the number of parents; the probability or a draw for one row of parent states takes time linear in it too.
The dense table, exponential in the number of parents, is built only when somebody asks for `values`.

`CausalIndependence` is the distribution, `Recipe` what a user writes before the variables are known.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, InvalidTable, check_known, did_you_mean
from markovia.factors.tables.conditional import MAX_TABLE_ENTRIES, Codes, Conditional, draw_rows, table_shape
from markovia.factors.tables.factor import MAX_AXES, Factor
from markovia.factors.tables.rendering import render_table
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array

Contribution = NDArray[Any]
_SHOWN_PARENTS = 6
_ROWS_WORK = "log_prob and sample work without it; exact inference does not"
_SHOWN_ENTRIES = 4096


class CausalIndependence(Conditional):
    """P(child | parents) where every parent contributes on its own.

    Parameters
    ----------
    variable
        The child.
    parents
        The parents in order.
    contributions
        One array a parent, shape (states of the parent, width).
    start
        The contribution of no parent at all, shape (width,).
    """

    combine: np.ufunc = np.add

    def __init__(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        contributions: Sequence[Contribution],
        start: Contribution,
    ) -> None:
        names = [p.name for p in parents]
        if len({variable.name, *names}) != len(names) + 1:
            raise InvalidTable(f"{variable.name!r} and its parents {names} must be different variables")
        self.variable = variable
        self.parents = parents
        self.contributions = tuple(_frozen(c) for c in contributions)
        self.start = _frozen(start)
        self._table: Array | None = None

    @abstractmethod
    def _finish(self, combined: Contribution) -> Array:
        """Turn combined contributions, shape (..., width), into log probabilities, shape (..., states)."""

    @property
    def values(self) -> Array:
        """The dense table, axes `(*parents, child)`, read-only; built when first asked for.

        Raises
        ------
        TooLarge
            If the table would have more than 2**28 entries or 64 axes; rows still work then.
        """
        if self._table is None:
            table_shape(self.variable, self.parents, cure=_ROWS_WORK)
            combined = self.start
            for contribution in self.contributions:
                combined = self.combine(combined[..., None, :], contribution)
            self._table = _frozen(np.exp(self._finish(combined)))
        return self._table

    def log_rows(self, parents: Sequence[Codes], size: int) -> Array:
        """Return log P(. | parents), shape (size, states of the child), without building the table.

        Parameters
        ----------
        parents
            One array of `size` state codes a parent, in the order of `parents`.
        size
            The number of rows.
        """
        combined: Contribution = np.broadcast_to(self.start, (size, *self.start.shape))
        for contribution, codes in zip(self.contributions, parents, strict=True):
            combined = self.combine(combined, contribution[codes])
        return self._finish(combined)

    def log_prob(self, child: Codes, parents: Sequence[Codes]) -> Array:
        """Return log P(child | parents), one number a row of state codes."""
        child = np.asarray(child)
        rows = self.log_rows(parents, len(child))
        result: Array = np.take_along_axis(rows, child[:, None], axis=1)[:, 0]
        return result

    def sample(self, parents: Sequence[Codes], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw one child code for each of `size` rows of parent codes."""
        return draw_rows(np.exp(self.log_rows(parents, size)), size, rng)

    def cut(self, codes: Mapping[str, int]) -> Factor:
        """Return the factor that is left when some variables are fixed; no larger table is built on the way."""
        start, contributions, parents = self.start, [], []
        for parent, contribution in zip(self.parents, self.contributions, strict=True):
            if parent.name in codes:
                start = self.combine(start, contribution[codes[parent.name]])
            else:
                contributions.append(contribution)
                parents.append(parent)
        if len(parents) == len(self.parents):
            return super().cut(codes)
        left = self.rebound(self.variable, tuple(parents))
        left.start, left.contributions, left._table = start, tuple(contributions), None
        return super(CausalIndependence, left).cut(codes)

    def row(self, /, **parents: State) -> Array:
        """Return P(child | those parent states) as an array over the child's states."""
        codes = [np.array([code]) for code in self._row_codes(parents)]
        row: Array = np.exp(self.log_rows(codes, 1)[0])
        return row

    def rebound(self, variable: Variable, parents: tuple[Variable, ...]) -> Self:
        """Return the same distribution over renamed variables or states."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.variable, twin.parents = variable, parents
        return twin

    def allclose(self, other: Conditional, *, atol: float = 1e-12) -> bool:
        """Say whether two conditionals are the same distribution up to the order of parents.

        Tables that can be built are compared entry by entry. Beyond that size two distributions of the same
        kind are compared by what their parents contribute.
        """
        if not self._too_large or type(self) is not type(other):
            return super().allclose(other, atol=atol)
        assert isinstance(other, CausalIndependence)
        if self.variable != other.variable or set(self.parents) != set(other.parents):
            return False
        place = {p: i for i, p in enumerate(other.parents)}
        mine, theirs = self._standard_form(), other._standard_form()
        pairs = [(mine[0], theirs[0])]
        pairs += [(c, theirs[1 + place[p]]) for p, c in zip(self.parents, mine[1:], strict=True)]
        return all(a.shape == b.shape and np.allclose(a, b, rtol=0.0, atol=atol) for a, b in pairs)

    def _standard_form(self) -> list[Contribution]:
        """Return the start and the contributions, moved so that first states contribute nothing."""
        if self.combine is not np.add:
            return [self.start, *self.contributions]
        start, moved = self.start.astype(np.float64), []
        for contribution in self.contributions:
            shift = np.where(np.isfinite(contribution[0]), contribution[0], 0.0)
            start = start + shift
            moved.append(contribution - shift)
        return [start, *moved]

    @property
    def _too_large(self) -> bool:
        shape = [*(len(p) for p in self.parents), len(self.variable)]
        return len(shape) > MAX_AXES or prod(shape) > MAX_TABLE_ENTRIES

    def __repr__(self) -> str:
        names = list(self.parent_names)
        if len(names) > _SHOWN_PARENTS:
            names = [*names[:_SHOWN_PARENTS], f"... {len(names) - _SHOWN_PARENTS} more"]
        head = f"{type(self).__name__} P({self.variable.name}{' | ' + ', '.join(names) if names else ''})"
        if self._too_large or self.n_rows * len(self.variable) > _SHOWN_ENTRIES:
            return f"{head}, {len(self.parents)} parents, {self.n_parameters} parameters"
        return f"{head}\n" + render_table((*self.parents, self.variable), self.values, "p")


class Recipe(ABC):
    """A conditional distribution that waits for its variables."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def parent_names(self) -> tuple[str, ...] | None:
        """The parents the recipe names, or None where any parents will do."""

    def default_states(self) -> Sequence[State] | None:
        """Return the child's states where the recipe alone implies them, else None."""
        return None

    def implied_states(self, parents: tuple[Variable, ...]) -> Sequence[State] | None:
        """Return the child's states where the recipe and the parents imply them, else None."""
        return self.default_states()

    @abstractmethod
    def bind(self, variable: Variable, parents: tuple[Variable, ...]) -> Conditional:
        """Return the distribution over the given variables."""

    def _check_parents(self, variable: Variable, parents: tuple[Variable, ...]) -> None:
        """Raise unless the parents are exactly those the recipe names."""
        names = self.parent_names
        if names is None:
            return
        known = [p.name for p in parents]
        check_known(names, known, f"the parents of {variable.name!r}")
        for name in known:
            if name not in names:
                raise InvalidArgument(
                    f"the {self.kind} of {variable.name!r} says nothing about its parent {name!r}"
                    f"{did_you_mean(name, names)}; it names {', '.join(map(repr, names))}"
                )

    def _check_binary(self, variable: Variable) -> None:
        if len(variable) != 2:
            raise InvalidArgument(
                f"a {self.kind} needs a child with two states (the second one is the effect); "
                f"{variable.name!r} has {len(variable)}"
            )


def on_code(parent: Variable, on: Mapping[str, State], kind: str, cure: str) -> int:
    """Return the code of the parent state that counts as *on*: the chosen one, else the second of two."""
    if parent.name in on:
        return parent.index(on[parent.name])
    if len(parent) != 2:
        raise InvalidArgument(
            f"a {kind} cannot tell which of the {len(parent)} states of {parent.name!r} counts as on; {cure}"
        )
    return 1


def check_mapping(value: object, kind: str, example: str) -> None:
    """Raise unless a recipe's parameters came as a mapping from parent names."""
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{kind} takes a mapping such as {example}, not {type(value).__name__}")
    for name in value:
        if not isinstance(name, str):
            raise InvalidArgument(f"{kind} names its parents by strings, not {name!r}")


def number(value: object, what: str) -> float:
    """Return a finite float, or raise `InvalidArgument` that says which parameter is none."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgument(f"{what} is {value!r}, not a number") from None
    if not np.isfinite(result):
        raise InvalidArgument(f"{what} is {result}; it must be finite")
    return result


def _frozen(array: Contribution) -> Contribution:
    array = np.asarray(array)
    array.setflags(write=False)
    return array
