"""Importance sampling of a density: weighted draws of a heavy-tailed distribution at the mode.

References: Kloek and van Dijk (1978); Vehtari, Simpson, Gelman, Yao and Gabry (2024) for the tail index that says whether
to trust it. The proposal is Student's t at the mode with the curvature there, with tails heavier than the posterior's
usually are. Cost: one mode, one Hessian, one log density a draw. It gives the log evidence without bias (on the scale of
evidence), and posteriors of a few numbers at the price of Laplace's approximation.
"""

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Annotated, ClassVar

import numpy as np

from markovia.inference.densities.draws.density_engine import DensityEngine, log_densities
from markovia.inference.densities.engines.approximation_details import judged
from markovia.inference.densities.engines.whitened_density import peak, points_of
from markovia.inference.densities.program.compiled_functions import constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.result import LogMass, Record
from markovia.inference.weighted_draws.weight_diagnostics import FEWEST_EFFECTIVE, MAX_TAIL_INDEX
from markovia.runtime.checks import POSITIVE, Count


@dataclass(frozen=True, kw_only=True)
class DensityImportance(DensityEngine):
    """Weigh draws of Student's t distribution at the mode.

    Parameters
    ----------
    draws
        How many.
    degrees
        Degrees of freedom of the proposal: fewer mean heavier tails.
    seed, time_limit, progress
        As in `NUTS`.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = DensityImportance(draws=2000).draw(standard_normal(2))
    >>> bool(abs(found.log_mass) < 0.1), found.log_weights.shape
    (True, (1, 2000))
    """

    draws: Count = 10_000
    degrees: Annotated[float, POSITIVE] = 5.0

    name: ClassVar[str] = "importance"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})

    def draw(self, density: Density) -> DensityDraws:
        """Draw from the proposal, and weigh."""
        found = peak(density, self.seed, self.name)
        rng = np.random.default_rng(self.seed)
        d, v = density.size, float(self.degrees)
        z = rng.standard_normal((1, self.draws, d))
        z /= np.sqrt(rng.chisquare(v, (1, self.draws, 1)) / v)
        points = points_of(found, z)
        heights = log_densities(density, points)
        log_q = (
            lgamma(0.5 * (v + d)) - lgamma(0.5 * v) - 0.5 * d * log(v * pi) - found.log_det
            - 0.5 * (v + d) * np.log1p((z**2).sum(axis=2) / v)
        )  # fmt: skip
        logs = np.where(np.isfinite(heights), heights - log_q, -np.inf)
        details = judged(logs)
        wrong = []
        if details.pareto_k > MAX_TAIL_INDEX:
            wrong.append(f"a few draws carry most of the weight (Pareto k {details.pareto_k:.2f})")
        if details.effective_draws < FEWEST_EFFECTIVE:
            wrong.append(f"the draws are worth {details.effective_draws:.1f} independent ones")
        record = Record(
            converged=not wrong,
            iterations=self.draws,
            error=details.log_mass_error,
            advice=f"{' and '.join(wrong)}; try more draws=, fewer degrees=, or engine='smc'"
            if wrong
            else "",
            details=details,
        )
        return DensityDraws(
            points,
            constrained(density, points),
            DrawStats(heights),
            record,
            logs,
            LogMass(details.log_mass, record),
        )
