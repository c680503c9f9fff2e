"""What engines share whose answers are distributions in closed form: exact posteriors, and the best approximating ones."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovia.inference.densities.closed_forms.closed_posterior import ClosedAnswer, drawn_from
from markovia.inference.densities.draws.density_engine import DensityEngine, DrawnAnswer, pick
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws
from markovia.inference.densities.program.state_draws import StateDraws
from markovia.inference.engine import DENSITIES
from markovia.inference.problem import Problem
from markovia.inference.result import Draws, LogMass


@dataclass(frozen=True, kw_only=True)
class ClosedEngine(DensityEngine):
    """Base of engines that answer with a distribution in closed form."""

    reparameterize: Literal["none"] = "none"

    kinds: ClassVar[frozenset[str]] = DENSITIES - {"potential"}

    @abstractmethod
    def answer(self, problem: Problem) -> ClosedAnswer:
        """Return the distribution of all latent quantities."""

    def joint(self, problem: Problem, targets: Sequence[str]) -> ClosedAnswer | DrawnAnswer:  # type: ignore[override]
        """Return the posterior of everything."""
        return super().joint(problem, targets) if self._summed_out(problem) else self.answer(problem)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> ClosedAnswer | DrawnAnswer:  # type: ignore[override]
        """Return the posterior of everything."""
        return self.joint(problem, targets)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log evidence, or a bound on it."""
        if "log_mass" not in self.answers or self._summed_out(problem):
            return super().log_mass(problem)
        found = self.answer(problem)
        return LogMass(found.log_mass, found.record)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n times, independently."""
        if self._summed_out(problem):
            return super().sample(problem, n, rng)
        found = self.answer(problem)
        drawn = drawn_from(found.program, found.form, found.record, found.log_mass, rng, 1, n)
        every = found.program.finish(drawn)
        rows = pick(drawn, n, rng)
        return Draws(
            {k: (v.codes if isinstance(v, StateDraws) else v)[0][rows] for k, v in every.items()},
            found.record,
        )

    def _summed_out(self, problem: Problem) -> bool:
        """Say whether no quantity is left to have a distribution: states alone are summed out exactly."""
        return not self._program(problem).density.size

    def draw(self, density: Density) -> DensityDraws:
        """Draw independently."""
        return self.answer(density.source.problem).drawn
