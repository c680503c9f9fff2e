"""What a function holds besides its arguments: read once when its node is added, and handed to JAX as arrays of its own."""

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import numpy as np


def frozen(function: Any) -> Any:
    """Return the function with the present contents of its closure: a loop's variable stays what it was.

    Examples
    --------
    >>> made = [frozen(lambda: k) for k in range(2)]
    >>> [f() for f in made]
    [0, 1]
    """
    return _with_cells(function, lambda v: v.copy() if isinstance(v, np.ndarray) else v)


def with_arrays(function: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the function with the NumPy arrays in its closure and globals converted, so that traced numbers index them."""

    def change(value: Any) -> Any:
        return convert(value) if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" else value

    made = _with_cells(function, change)
    if not isinstance(made, FunctionType):
        return made
    used = {n: made.__globals__[n] for n in made.__code__.co_names if n in made.__globals__}
    if not any(isinstance(v, np.ndarray) for v in used.values()):
        return made
    around = {**made.__globals__, **{n: change(v) for n, v in used.items()}}
    twin = FunctionType(made.__code__, around, made.__name__, made.__defaults__, made.__closure__)
    twin.__kwdefaults__ = made.__kwdefaults__
    return twin


def _with_cells(function: Any, change: Callable[[Any], Any]) -> Any:
    if not isinstance(function, FunctionType) or not (function.__closure__ or function.__defaults__):
        return function
    try:
        cells = tuple(CellType(change(cell.cell_contents)) for cell in function.__closure__ or ())
        defaults = tuple(change(v) for v in function.__defaults__ or ()) or None
    except ValueError:  # a cell that is not filled yet: a function that calls itself
        return function
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, cells or None)
    twin.__kwdefaults__, twin.__qualname__ = function.__kwdefaults__, function.__qualname__
    return twin
