"""Users' functions that JAX compiles: one sentence where they compute with NumPy, or ask what is not known yet."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from markovia.errors import InvalidArgument
from markovia.runtime.libraries import jax


def tracing_problem(whose: str, problem: Exception) -> InvalidArgument | None:
    """Return the error of a function that cannot be compiled, in its writer's terms; None where it failed otherwise.

    Examples
    --------
    >>> tracing_problem("transition=", ValueError("no")) is None
    True
    """
    errors = jax.errors
    if isinstance(problem, errors.TracerBoolConversionError | errors.TracerIntegerConversionError):
        return InvalidArgument(
            f"{whose} branches on (or indexes a list by) a value that is not known while it is compiled; use jnp.where, or "
            "index an array, with import jax.numpy as jnp"
        )
    if isinstance(problem, errors.TracerArrayConversionError | errors.ConcretizationTypeError):
        return InvalidArgument(
            f"{whose} cannot be compiled: it calls {_called(problem)}, with import jax.numpy as jnp"
        )
    return None


def _called(problem: Exception) -> str:
    """Return what was called on an unknown value and what to call instead, by name where the line of the user shows it."""
    lines = [frame.line or "" for frame in traceback.extract_tb(problem.__traceback__)]
    names = [name for line in lines for name in re.findall(r"\b(?:np|numpy|math)\.([a-z][\w.]*)\(", line)]
    if len(set(names)) == 1:
        return f"NumPy's or math's {names[0]} on a value that is not known then; use jnp.{names[0]}"
    return "NumPy, math or float() on a value that is not known then; use jax.numpy, as jnp.sin for np.sin"


@contextmanager
def traced(whose: str) -> Iterator[None]:
    """Say what is inside cannot be compiled in one sentence about `whose` function it is."""
    try:
        yield
    except Exception as problem:
        if (said := tracing_problem(whose, problem)) is not None:
            raise said from None
        raise
