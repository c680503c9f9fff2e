"""64-bit arithmetic in JAX, for as long as a block runs and in this thread only.

JAX computes in 32 bits unless told otherwise, and whether it does is part of what it compiles. Nothing is switched on by
importing markovia: every entry from Python opens this block, and converts its data inside it.
"""

from contextlib import AbstractContextManager
from typing import Any

from markovia.runtime.libraries import jax


def x64() -> AbstractContextManager[object]:
    """Return a block in which JAX computes in 64 bits.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> with x64():
    ...     jnp.asarray(0.1).dtype.name
    'float64'
    >>> jnp.asarray(0.1).dtype.name
    'float32'
    """
    block: AbstractContextManager[object] = jax.enable_x64(True)
    return block


def is_x64() -> bool:
    """Say whether JAX computes in 64 bits here and now.

    Examples
    --------
    >>> with x64():
    ...     is_x64()
    True
    """
    config: Any = jax.config
    return bool(config.jax_enable_x64)
