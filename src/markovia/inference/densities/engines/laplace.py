"""Laplace's approximation: a normal distribution at the mode, with the curvature there.

References: Laplace (1774); Tierney and Kadane (1986). L-BFGS climbs from several starts, and the covariance is the inverse
of the negative Hessian. The log evidence is log p(mode) + d / 2 log 2 pi - 1/2 log det(-Hessian), with an error of order
1 / n. Cost: some tens of gradients, one Hessian (d gradients), d^3. Use it where data are many and the posterior is nearly
normal in unconstrained coordinates: it is by far the fastest. How good it is, the Pareto k of the draws' weights says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, pi
from typing import ClassVar

import numpy as np

from markovia.inference.densities.draws.density_engine import DensityEngine, log_densities
from markovia.inference.densities.engines.approximation_details import ApproximationDetails, judged, weighed
from markovia.inference.densities.engines.whitened_density import peak, points_of
from markovia.inference.densities.program.compiled_functions import constrained
from markovia.inference.densities.program.density import Density, Slot
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.result import LogMass, Record
from markovia.inference.weighted_draws.weight_diagnostics import MAX_TAIL_INDEX
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceDetails(ApproximationDetails):
    """The mode, its curvature, and how good a normal distribution with these is.

    Attributes
    ----------
    mode
        The quantities of the model by name at the mode of the unconstrained density.
    coordinates
        What the unconstrained numbers stand for, in order; a quantity that is sampled non-centred by its standard part.
    point, height
        The unconstrained mode, and the log density there.
    curvature
        The negative Hessian there; its inverse is the covariance of the approximation.
    pareto_k, log_mass, log_mass_error, effective_draws
        As in `ApproximationDetails`.
    """

    mode: Mapping[str, Array]
    coordinates: tuple[str, ...]
    point: Array
    height: float
    curvature: Array


@dataclass(frozen=True, kw_only=True)
class Laplace(DensityEngine):
    """Draw from the normal distribution at the mode.

    Parameters
    ----------
    draws
        How many.
    seed, time_limit, progress
        As in `NUTS`; it takes no longer than it takes.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = Laplace().draw(standard_normal(2))
    >>> round(float(found.log_mass), 6) + 0.0, found.record.converged
    (0.0, True)
    """

    draws: Count = 4000

    name: ClassVar[str] = "laplace"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})

    def draw(self, density: Density) -> DensityDraws:
        """Climb, and draw."""
        found = peak(density, self.seed, self.name)
        rng = np.random.default_rng(self.seed)
        z = rng.standard_normal((1, self.draws, density.size))
        points = points_of(found, z)
        heights = np.full((1, self.draws), np.nan)
        some = weighed(density, self.draws)
        heights[:, :some] = log_densities(density, points[:, :some])
        log_q = -0.5 * (z**2).sum(axis=2) - 0.5 * density.size * log(2 * pi) - found.log_det
        quality = judged((heights - log_q)[:, :some])
        details = LaplaceDetails(
            **vars(quality),
            mode={n: x[0] for n, x in constrained(density, found.point[None]).items()},
            coordinates=_coordinates(density),
            point=found.point,
            height=found.height,
            curvature=found.curvature,
        )
        wrong = []
        if not found.flat:
            wrong.append("the climb did not end at a flat point")
        if not found.definite:
            wrong.append("the mode is flat or rises in some direction")
        if details.pareto_k > MAX_TAIL_INDEX:
            wrong.append(f"the posterior is far from normal (Pareto k {details.pareto_k:.2f})")
        record = Record(
            converged=not wrong,
            iterations=self.draws,
            error=details.log_mass_error,
            advice=f"{' and '.join(wrong)}; use engine='nuts'" if wrong else "",
            details=details,
        )
        mass = found.height + 0.5 * density.size * log(2 * pi) + found.log_det
        return DensityDraws(
            points, constrained(density, points), DrawStats(heights), record, log_mass=LogMass(mass, record)
        )


def _coordinates(density: Density) -> tuple[str, ...]:
    """Return a label for each unconstrained number: the quantity that it belongs to, and its place there."""
    slots = getattr(density.source, "slots", {"u": Slot(0, density.size)})
    return tuple(f"{n}[{i}]" if s.size > 1 else n for n, s in slots.items() for i in range(s.size))
