"""Following a trajectory of Hamilton's equations: the leapfrog integrator, and Euler's, which shows why it is needed.

References: Störmer (1907), Verlet (1967); Neal (2011) for their place in Monte Carlo. With position q, momentum p and energy
H = -log density(q) + p'p / (2 m), both alternate steps of q and p. A leapfrog step is a composition of shears: it keeps
volume, runs backwards when p is turned round, and its error of energy stays bounded. Euler's step does none of that, and its
energy grows without end. Cost: one gradient a step.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_number

LogDensity = Callable[[Any], Any]
Gradient = Callable[[Any], Any]
DIFFERENCE = 6e-6


def gradient_of(log_density: LogDensity) -> Gradient:
    """Return the gradient of a function of a vector: by JAX where it can trace the function, else by differences.

    Examples
    --------
    >>> gradient_of(lambda x: -0.5 * (x**2).sum())(np.array([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    >>> import math
    >>> gradient_of(lambda x: math.log(x[0]))(np.array([2.0])).round(6).tolist()  # JAX cannot trace it
    [0.5]
    """
    traced: list[Any] = []

    def gradient(x: Any) -> Array:
        from markovia.runtime.double_precision import x64

        x = np.asarray(x, dtype=np.float64)
        if not traced:
            traced.append(_by_jax(log_density, x))
        if traced[0] is None:
            return _by_differences(log_density, x)
        with x64():
            return np.asarray(traced[0](x))

    return gradient


def _by_jax(log_density: LogDensity, x: Array) -> Any:
    import jax

    from markovia.runtime.double_precision import x64

    with x64():
        compiled = jax.jit(jax.grad(lambda u: log_density(u).reshape(())))
        try:
            compiled(x)
        except Exception:  # whatever a function that is not made for tracing raises
            return None
    return compiled


def _by_differences(log_density: LogDensity, x: Array) -> Array:
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = DIFFERENCE * max(1.0, abs(float(x[i])))
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        found[i] = (float(log_density(up)) - float(log_density(down))) / (2.0 * step)
    return found


def leapfrog(
    q: Any, p: Any, gradient: Gradient, step: float, steps: int = 1, *, mass: float = 1.0
) -> tuple[Array, Array]:
    """Follow a trajectory by leapfrog steps: half a step of momentum, one of position, half a step of momentum.

    Parameters
    ----------
    q, p
        Position and momentum.
    gradient
        The gradient of the log density (minus that of the potential energy).
    step, steps
        The size of a step (negative goes back in time), and how many.
    mass
        The mass of all numbers.

    Examples
    --------
    The harmonic oscillator: a thousand steps, and the energy is still about 1/2.

    >>> q, p = leapfrog(1.0, 0.0, lambda q: -q, 0.1, 1000)
    >>> round(float(q**2 + p**2) / 2, 8)
    0.49972392
    """
    check_count("steps", steps)
    q, p = np.asarray(q, dtype=np.float64), np.asarray(p, dtype=np.float64)
    force = np.asarray(gradient(q)) if steps else np.zeros_like(q)
    for _ in range(steps):
        p = p + 0.5 * step * force
        q = q + step * p / mass
        force = np.asarray(gradient(q))
        p = p + 0.5 * step * force
    return q, p


def euler(
    q: Any, p: Any, gradient: Gradient, step: float, steps: int = 1, *, mass: float = 1.0
) -> tuple[Array, Array]:
    """Follow a trajectory by Euler's steps, in which the energy grows: for comparison only.

    Parameters
    ----------
    q, p, gradient, step, steps, mass
        As in `leapfrog`.

    Examples
    --------
    >>> q, p = euler(1.0, 0.0, lambda q: -q, 0.1, 1000)
    >>> round(float(q**2 + p**2) / 2, 3)  # from 1/2
    10479.578
    """
    check_count("steps", steps)
    q, p = np.asarray(q, dtype=np.float64), np.asarray(p, dtype=np.float64)
    for _ in range(steps):
        q, p = q + step * p / mass, p + step * np.asarray(gradient(q))
    return q, p


def total_energy(log_density: LogDensity, q: Any, p: Any, *, mass: float = 1.0) -> float:
    """Return potential plus kinetic energy.

    Examples
    --------
    >>> total_energy(lambda q: -0.5 * q**2, 1.0, 2.0)
    2.5
    """
    check_number("mass", mass, positive=True)
    return float(-np.asarray(log_density(q)) + (np.asarray(p) ** 2).sum() / (2.0 * mass))
