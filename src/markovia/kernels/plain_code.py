"""Kernels as plain Python, for first answers that are there before a compiler, or Numba itself, would be.

The text of a kernel is also a Python program. `either` hands out that program while a process has asked little of a
kernel, and the compiled code as soon as what it has taken so far and the next steps would be more than loading or compiling
it. So nothing is written twice, and the numbers are the same to rounding.
"""

import builtins
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from time import process_time
from types import SimpleNamespace
from typing import Any

import numpy as np

from markovia.kernels.compiled_code import ROOT, worth_loading

STEP = 4e-7
"""Seconds that one step of an inner loop takes in plain Python."""
LOAD, COMPILE, NUMBA = 0.2, 1.0, 0.8
"""Seconds until a kernel is there, from disk and from its source, and until Numba is."""
_spent: defaultdict[str, float] = defaultdict(float)
_times: ContextVar[int] = ContextVar("times", default=1)


def either(home: str, steps: float) -> Any:
    """Return a kernel, given as "module:function", compiled or as plain Python, for about so many steps of its loops.

    Examples
    --------
    >>> score = either("markovia.kernels.fields.crf_forest:node_scores", 4)
    >>> scores = np.zeros((1, 1))
    >>> score(np.array([0]), np.array([0, 1]), np.array([[2.0]]), np.array([[3.0]]), scores)
    >>> scores.tolist()
    [[6.0]]
    """
    module, _, name = home.partition(":")
    plain, more = _spent[home] + STEP * steps * _times.get(), 0.0 if "numba" in sys.modules else NUMBA
    if worth_loading(home, plain, LOAD + more, COMPILE + more):
        return getattr(import_module(module), name)
    return plain_code(home)


@contextmanager
def repeated(times: int) -> Iterator[None]:
    """Count what is asked for while this is open so many times: compiled code of a long run pays from its first sweep."""
    token = _times.set(times)
    try:
        yield
    finally:
        _times.reset(token)


@cache
def plain_code(home: str) -> Callable[..., Any]:
    """Return a kernel, given as "module:function", as plain Python that divides by zero as kernels do."""
    module, _, name = home.partition(":")
    function = getattr(_plain_module(module), name)

    def run(*arguments: Any) -> Any:
        start = process_time()
        with np.errstate(all="ignore"):
            found = function(*arguments)
        _spent[home] += process_time() - start
        return found

    return run


@cache
def _plain_module(module: str) -> SimpleNamespace:
    path = ROOT.joinpath(*module.split(".")[2:]).with_suffix(".py")
    names: dict[str, Any] = {"__name__": module, "__builtins__": {**vars(builtins), "__import__": _import}}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return SimpleNamespace(**names)


def _import(name: str, *rest: Any) -> Any:
    """Import for plain kernels: other kernels plain too, and decorators that decorate nothing."""
    if name == "markovia.kernels.kernel":
        return SimpleNamespace(kernel=_as_it_is, inner=_as_it_is)
    if name == "markovia.kernels.pointers":
        return SimpleNamespace(
            pointer=_flat,
            beyond=lambda flat, places: flat[places:],
            pointers=_flats,
        )
    if name == "markovia.kernels.sequences.state_lanes":
        return SimpleNamespace(sum_step=_sum_step, smooth_step=_smooth_step, best_step=_best_step)
    if name == "math":  # compiled logarithms of zero are infinite and raise nothing
        import math

        return SimpleNamespace(**{**vars(math), "log": np.log, "exp": np.exp, "sqrt": np.sqrt})
    if name.startswith("markovia.kernels."):
        return _plain_module(name)
    return builtins.__import__(name, *rest)


def _as_it_is(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    return function if function is not None else _as_it_is


def _flats(arrays: Any) -> Any:
    return getattr(arrays, "_make", tuple)(map(_flat, arrays))


def _flat(array: Any) -> Any:
    if not array.flags.c_contiguous:
        raise TypeError("pointers are for contiguous arrays")
    return array.reshape(-1)


# -- one step of a hidden chain, as `kernels.sequences.state_lanes` has it -----------------------------------------


def _sum_step(k: int, table: Any, before: Any, dense: Any, ahead: Any, now: Any) -> tuple[float, float]:
    ahead[:k] = before[:k] @ table[: k * k].reshape(k, k)
    now[:k] = ahead[:k] * dense[:k]
    return now[:k].sum(), now[:k].min()


def _smooth_step(k: int, turned: Any, now: Any, ahead: Any, before: Any, later: Any, out: Any) -> None:
    later[:k] = np.where(ahead[:k] > 1e-290, now[:k] / ahead[:k], 0.0)
    out[:k] = before[:k] * (later[:k] @ turned[: k * k].reshape(k, k))


def _best_step(k: int, table: Any, scores: Any, seen: Any, out: Any, origins: Any) -> float:
    ways = (scores[:k] + seen[:k])[:, None] + table[: k * k].reshape(k, k)
    origins[:k], out[:k] = ways.argmax(axis=0), ways.max(axis=0)
    return float(out[:k].max())
