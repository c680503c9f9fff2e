"""Annealed Langevin dynamics: Langevin steps on a family of densities, from one smoothed by much noise to one by little.

Reference: Song and Ermon (2019). The model has an input that says how much noise its data have, and was trained for several
levels (`mk.objectives.ScoreMatching(variant="denoising", noise=[...], level=...)`). Points go through the levels from large
to small, with steps in proportion to the variance of the noise, so that they find modes while these are still joined. Steps
are not corrected; each point is a draw of its own. Cost: levels times steps gradients a draw. Use it for densities that are
known by a noise-conditional energy; otherwise "smc" tempers any density, with weights.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.inference.densities.draws.density_engine import DensityEngine
from markovia.inference.densities.program.compiled_functions import as_data, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.engine import without_cure
from markovia.inference.result import Record
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Kind, Positive
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

SLACK = 0.1
"""By how much the mean of `(u - mean) . score`, which is minus the number of dimensions, may be off."""


@dataclass(frozen=True, kw_only=True)
class AnnealedLangevin(DensityEngine):
    """Draw by Langevin steps through levels of noise.

    Parameters
    ----------
    level
        The input that tells the model the noise.
    noise
        The levels, from large to small, as the model was trained with.
    steps, step_size
        Steps at each level, and their size in units of the noise there.
    unit
        What one unit of noise is in the numbers that are drawn: the spread of the data, if levels are in units of it.
    draws
        Points.
    seed, time_limit, progress
        As in `NUTS`.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("sigma", mk.Input())
    >>> m.add("x", dist.Normal(0, 10))
    >>> m.potential(lambda x, sigma: -0.5 * (x - 3) ** 2 / (1 + sigma**2))
    >>> engine = AnnealedLangevin(level="sigma", noise=(5.0, 2.0, 1.0, 0.3), steps=100, draws=400)
    >>> post = m.query("x", given={"sigma": np.array(0.3)}, engine=engine)
    >>> bool(abs(post.mean("x") - 3) < 0.3), post.info.converged
    (True, True)
    """

    level: Annotated[str, Kind((str,), said="the name of an input")] = "sigma"
    noise: tuple[float, ...] = (1.0, 0.6, 0.36, 0.2, 0.12, 0.07)
    steps: Count = 100
    step_size: Positive = 0.5
    unit: Any = 1.0
    draws: Count = 1000

    name: ClassVar[str] = "annealed-langevin"

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = np.asarray(self.noise, float)
        if levels.ndim != 1 or not levels.size or not (levels > 0).all() or not (np.diff(levels) < 0).all():
            raise InvalidArgument(
                f"noise= is a list of positive numbers that become smaller, not {self.noise!r}"
            )

    def draw(self, density: Density) -> DensityDraws:
        """Go through the levels."""
        if self.level not in density.data:
            given = f"given={{{self.level!r}: np.array(0.1)}}"
            raise without_cure(Unanswered, f"engine {self.name!r} needs {self.level!r} as an array, {given}")
        with x64(), self._clock(len(self.noise), "level") as clock:
            data = as_data(density)
            unit = jnp.broadcast_to(jnp.asarray(self.unit, float), (density.size,))
            keys = jax.random.split(self._key(), self.draws)
            begin = density.start if density.prior is None else density.prior
            points: Any = compiled(
                density, "first points", self.draws, jax.vmap(begin, (0, None)), keys, data, once=True
            )(keys, data)
            for i, sd in enumerate(self.noise):
                if clock.over():
                    raise Unanswered(
                        f"it was stopped at a noise of {sd:g}; give a longer time_limit=, or fewer steps="
                    )
                now = {**data, self.level: jnp.full_like(data[self.level], sd)}
                args = (points, jax.random.fold_in(keys[0], i), self.step_size * sd * unit, now)
                points, value, slope = compiled(density, "annealed", self.steps, self._mover(density), *args)(
                    *args
                )
                clock.advance()
        return self._drawn(density, np.asarray(points), np.asarray(value), np.asarray(slope))

    def _mover(self, density: Density) -> Any:
        def level(points: Any, key: Any, size: Any, data: Any) -> Any:
            climb = jax.vmap(jax.value_and_grad(density.log_prob), (0, None))

            def step(i: Any, points: Any) -> Any:
                noise = jax.random.normal(jax.random.fold_in(key, i), points.shape)
                return points + 0.5 * size**2 * climb(points, data)[1] + size * noise

            points = jax.lax.fori_loop(0, self.steps, step, points)
            return points, *climb(points, data)

        return level

    def _drawn(self, density: Density, points: Array, value: Array, slope: Array) -> DensityDraws:
        # at rest the mean of (u - mean) . score is minus the number of dimensions (Stein's identity)
        rest = ((points - points.mean(axis=0)) * slope).sum(axis=1) / max(density.size, 1) + 1.0
        off, error = float(rest.mean()), float(rest.std() / np.sqrt(len(rest)))
        converged = bool(np.isfinite(off) and abs(off) < SLACK + 4.0 * error)
        advice = f"the points are not at rest (off by {off:.0%} in spread); try more steps=, or a smaller step_size="
        record = Record(
            converged=converged,
            iterations=len(self.noise) * self.steps,
            error=error,
            advice="" if converged else advice,
        )
        return DensityDraws(points[None], constrained(density, points[None]), DrawStats(value[None]), record)
