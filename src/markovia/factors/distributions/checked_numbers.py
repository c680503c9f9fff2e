"""Numbers as distributions take them: arrays of floats, refused in one sentence where they are anything else."""

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array


def as_numbers(values: ArrayLike, what: str) -> Array:
    """Return values as an array of floats; digits in a string are not a number."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgument(f"{what} must be a number or an array of numbers, not {values!r}")


def finite_numbers(values: ArrayLike, what: str) -> Array:
    """Return values as an array of finite floats."""
    array = as_numbers(values, what)
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{what} must hold finite numbers, not {values!r}")
    return array


def vectors(values: ArrayLike, size: int, what: str) -> Array:
    """Return a vector of a given length, or an array whose last axis has it."""
    array = as_numbers(values, what)
    if not array.ndim or array.shape[-1] != size:
        raise InvalidArgument(f"{what} must have {size} numbers along the last axis, not shape {array.shape}")
    return array


def number(value: ArrayLike, what: str) -> float:
    """Return one finite number."""
    array = finite_numbers(value, what)
    if array.ndim:
        raise InvalidArgument(f"{what} is one number, not {value!r}")
    return float(array)


def positive(value: ArrayLike, what: str) -> float:
    """Return one finite positive number."""
    array = finite_numbers(value, what)
    if array.ndim or not array > 0:
        raise InvalidArgument(f"{what} is a positive number, not {value!r}")
    return float(array)


def concentrations(values: ArrayLike, what: str) -> Array:
    """Return a read-only vector of positive numbers."""
    alpha = finite_numbers(values, "the concentration")
    if alpha.ndim != 1 or not alpha.size or not np.all(alpha > 0):
        raise InvalidArgument(f"{what} needs a vector of positive concentrations")
    alpha.setflags(write=False)
    return alpha


def whole(n: object, what: str) -> int:
    """Return a whole number, 0 or more."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidArgument(f"{what} must be a whole number >= 0, not {n!r}")
    return int(n)


def draws(n: int) -> int:
    """Return a number of draws if it is one."""
    return whole(n, "the number of draws")


def positive_definite(matrix: ArrayLike, size: int, what: str) -> tuple[Array, Array]:
    """Return a symmetric positive-definite matrix, read-only, and its Cholesky factor."""
    square = finite_numbers(matrix, f"the {what}")
    if square.shape != (size, size) or not np.allclose(square, square.T):
        raise InvalidArgument(f"the {what} is a symmetric matrix of {size} rows, not shape {square.shape}")
    square = (square + square.T) / 2.0
    square.setflags(write=False)
    try:
        return square, np.asarray(np.linalg.cholesky(square), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise InvalidArgument(f"the {what} matrix is not positive definite") from None
