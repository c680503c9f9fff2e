"""Minimise a function under the constraint of acyclicity: the augmented Lagrangian of NOTEARS.

min f(θ) subject to h(θ) = 0 becomes a series of problems min f + ρ/2 h² + α h, each solved by L-BFGS-B within bounds; after
each, α grows by ρh, and ρ tenfold wherever h did not fall to a quarter. Zheng, Aragam, Ravikumar, Xing (2018).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.structure.task.result import SearchStep

Objective = Callable[[Array], tuple[float, Array, float, Array]]
"""θ to f, its gradient, h and its gradient."""


class LagrangianMinimum(NamedTuple):
    """Where the series ended: θ, f and h there, the steps, and whether h is as small as was asked."""

    theta: Array
    value: float
    h: float
    path: list[SearchStep]
    converged: bool


def minimise_acyclic(
    objective: Objective,
    start: Array,
    bounds: Array,
    clock: Clock,
    *,
    max_iterations: int,
    h_tolerance: float,
    rho_max: float,
    inner_iterations: int,
) -> LagrangianMinimum:
    """Solve the series of problems; where the clock ends it early, the last point is returned.

    Parameters
    ----------
    objective
        θ to f, its gradient, h and its gradient.
    start, bounds
        Where to begin; one row (lowest, highest) a parameter.
    clock
        Asked within and between the problems.
    max_iterations, inner_iterations
        The number of problems, and of steps of L-BFGS-B in each.
    h_tolerance, rho_max
        Where h falls to the one or ρ reaches the other, the series ends.
    """
    theta = start
    rho, alpha, h = 1.0, 0.0, np.inf
    value, path = np.inf, []

    for _ in range(max_iterations):
        if clock.over():
            break
        while True:

            def penalised(point: Array, rho: float = rho, alpha: float = alpha) -> tuple[float, Array]:
                f, slope, g, turn = objective(point)
                return f + (0.5 * rho * g + alpha) * g, slope + (rho * g + alpha) * turn

            found = minimise(
                penalised,
                theta,
                lower=bounds[:, 0],
                upper=bounds[:, 1],
                max_iter=inner_iterations,
                flat=2e-9,
                clock=clock,
            )
            value, _, now, _ = objective(found.point)
            if now <= 0.25 * h or rho >= rho_max or clock.over():
                break
            rho *= 10.0
        theta, h = found.point, now
        alpha += rho * h
        path.append(SearchStep(f"rho {rho:.0e}, h {h:.3e}", -value, clock.seconds))
        clock.advance(note=f"h {h:.2e}")
        if h <= h_tolerance or rho >= rho_max:
            break
    return LagrangianMinimum(theta, float(value), float(h), path, bool(h <= h_tolerance))
