"""Two distributions to compare, read from whatever holds them: arrays, factors, posteriors, or samples."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.tables.plain_columns import Data, discrete_codes, is_continuous, numbers, read_columns
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.posterior import Posterior
from markovia.runtime.array_types import Array

Table = ArrayLike | Factor | Posterior
"""Probabilities that sum to one in an array, or any factor or posterior of discrete variables."""

_SUM_TOLERANCE = 1e-6


def probabilities(table: Table, name: str) -> Array:
    """Return a table's probabilities; an array has to sum to one, a factor is divided by its sum."""
    if isinstance(table, Factor | Posterior):
        return as_factor(table).normalize().values
    array = numbers(table, name)
    if (array < 0).any():
        raise InvalidArgument(f"{name} has a negative entry; probabilities are between 0 and 1")
    if abs(array.sum() - 1) > _SUM_TOLERANCE:
        raise InvalidArgument(f"{name} sums to {array.sum():.6g}, not 1; divide it by its sum")
    return array


def paired_probabilities(p: Table, q: Table) -> tuple[Array, Array, tuple[Variable, ...]]:
    """Return two tables of one shape, the second turned to the axes of the first, and what variables they have."""
    known = [as_factor(t) for t in (p, q) if isinstance(t, Factor | Posterior)]
    if len(known) == 2:
        if set(known[0].variables) != set(known[1].variables):
            raise InvalidArgument(
                f"p is over {list(known[0].names)} and q over {list(known[1].names)}; they must be over the same variables "
                "with the same states"
            )
        q = known[1].transpose(known[0].names)
    first, second = probabilities(p, "p"), probabilities(q, "q")
    if first.shape != second.shape:
        raise InvalidArgument(
            f"p has shape {first.shape} and q has shape {second.shape}; they must be the same"
        )
    return first, second, known[0].variables if known else ()


def paired_columns(x: Data, y: Data) -> list[tuple[str, NDArray, NDArray]]:  # type: ignore[type-arg]
    """Return the columns of two samples side by side: by name where both have the same names, else in order."""
    (names, first), (others, second) = read_columns(x, "x"), read_columns(y, "y")
    if len(names) != len(others):
        raise InvalidArgument(
            f"x has {len(names)} columns and y has {len(others)}; they must be of the same columns"
        )
    if set(names) == set(others):
        second = [second[others.index(name)] for name in names]
    return list(zip(names, first, second, strict=True))


def counted_states(x: Data, y: Data) -> tuple[Array, Array]:
    """Return how often two samples have each state (or combination of states) that either has, as shares."""
    merged = {}
    for name, a, b in paired_columns(x, y):
        both = np.concatenate(
            [a, b] if a.dtype.kind == b.dtype.kind else [a.astype(object), b.astype(object)]
        )
        if is_continuous(both):
            raise InvalidArgument(
                f"column {name!r} is continuous, and two samples of numbers share hardly a value; discretise it, or compare "
                "them by wasserstein or mmd"
            )
        merged[name] = both
    codes, n = discrete_codes(merged, "x"), len(a)
    size = int(codes.max()) + 1
    return np.bincount(codes[:n], minlength=size) / n, np.bincount(codes[n:], minlength=size) / len(b)


def as_factor(table: Factor | Posterior) -> Factor:
    """Return the table of a factor or posterior."""
    return table if isinstance(table, Factor) else table.factor()
