"""A step repeated along time: compiled by JAX, or in plain NumPy, which a short sequence does not wait for."""

from collections.abc import Callable
from typing import Any

import numpy as np


def scan(
    step: Callable[[Any, Any], Any], state: Any, inputs: Any, library: Any, *, reverse: bool = False
) -> tuple[Any, Any]:
    """Return the last state, and all that `step(state, input) -> state, output` put out, as `jax.lax.scan` does.

    Inputs, states and outputs are arrays, None, or (named) tuples of them; `library` is `numpy` or `jax.numpy`.

    Examples
    --------
    >>> total, before = scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 4.0]), np)
    >>> float(total), before.tolist()
    (7.0, [0.0, 1.0, 3.0])
    """
    if library is not np:
        import jax

        found: tuple[Any, Any] = jax.lax.scan(step, state, inputs, reverse=reverse)
        return found
    steps = range(_length(inputs))
    outputs = []
    for t in reversed(steps) if reverse else steps:
        state, output = step(state, _each(lambda part, t=t: part[t], inputs))
        outputs.append(output)
    return state, _each(lambda *parts: np.stack(parts), *(outputs[::-1] if reverse else outputs))


def _each(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply a function to the arrays at the same places of some nested tuples."""
    first = trees[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        parts = [_each(function, *part) for part in zip(*trees, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return function(*trees)


def _length(tree: Any) -> int:
    if isinstance(tree, tuple):
        return max(_length(part) for part in tree)
    return 0 if tree is None else len(tree)
