"""Functions of a density at many points, compiled once for chunks of them; and its data for compiled functions."""

from collections.abc import Callable
from math import prod
from typing import Any

from markovia.inference.densities.program.density import Density
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax
from markovia.runtime.machine_code import compiled
from markovia.runtime.seeds import random_keys

CHUNK, FEW = 1024, 8
MOST_CELLS = 2**27


def constrained(density: Density, points: Array) -> dict[str, Array]:
    """Return all quantities by name at unconstrained points; the points' leading axes come first."""
    found: dict[str, Array] = at_points(
        density, "constrain", lambda key, u, data: density.constrain(u, data), points
    )
    return found


def at_points(density: Density, name: str, function: Callable[..., Any], points: Array, seed: int = 0) -> Any:
    """Return a function's values at unconstrained points, a tree of arrays; the points' leading axes come first.

    Parameters
    ----------
    density, name
        What the compiled function is kept under.
    function
        `(key, u, data) -> tree of arrays`.
    points
        Vectors along the last axis.
    seed
        What random keys are made from, one a point.
    """
    import numpy as np

    from markovia.runtime.double_precision import x64

    lead = points.shape[:-1]
    rows = points.reshape(prod(lead), density.size)
    with x64():
        data = as_data(density)
        cells = sum(leaf.size for leaf in jax.tree.leaves(data))
        chunk = CHUNK if len(rows) > FEW and cells * CHUNK < MOST_CELLS else FEW
        keys = random_keys(seed, -(-len(rows) // chunk) * chunk)
        like = np.zeros((chunk, density.size))
        every = compiled(density, name, chunk, jax.vmap(function, (0, 0, None)), keys[:chunk], like, data)
        parts = []
        for at in range(0, len(rows), chunk):
            # the last part is filled up with repetitions
            part = np.resize(rows[at : at + chunk], (chunk, density.size))
            found = every(keys[at : at + chunk], part, data)
            left = len(rows) - at
            parts.append(jax.tree.map(lambda v, left=left: np.asarray(v)[:left], found))
    whole = jax.tree.map(lambda *v: np.concatenate(v), *parts)
    return jax.tree.map(lambda v: v.reshape(*lead, *v.shape[1:]), whole)


def as_data(density: Density) -> Any:
    """Return the data of a density as JAX arrays; call inside `x64()`."""
    return jax.tree.map(jax.numpy.asarray, density.data)
