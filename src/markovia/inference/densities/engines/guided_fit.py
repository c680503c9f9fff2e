"""Fitting a distribution to a density by ascending the evidence lower bound: what variational engines share.

References: Kingma and Welling (2014) and Rezende, Mohamed and Wierstra (2014) for reparameterised gradients; Kucukelbir et
al. (2017) for doing it automatically; Yao, Vehtari, Simpson and Gelman (2018) for judging the result by the tail of its
weights. A guide maps standard normal noise to points, with the log determinant of the map; the bound is the mean of log p(u)
plus that, plus the entropy of the noise. Optax's Adam ascends it with steps that decay, in coordinates scaled by the
curvature at the mode; the parameters are averaged over the last quarter. With `batch`, every step looks at a few rows.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from math import log, pi
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.densities.draws.density_engine import (
    DensityEngine,
    check_start,
    log_densities,
    starting_points,
)
from markovia.inference.densities.engines.approximation_details import judged, weighed
from markovia.inference.densities.engines.whitened_density import Peak, peak, points_of, whitened
from markovia.inference.densities.program.compiled_functions import as_data, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.result import LogMass, Record
from markovia.inference.weighted_draws.weight_diagnostics import MAX_TAIL_INDEX
from markovia.optimise.averaging import SinceStep
from markovia.optimise.players import Player
from markovia.optimise.training import Training, train
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, Positive
from markovia.runtime.clock import Clock
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp, optax
from markovia.runtime.machine_code import MachineCodeKey, compiled

STARTS = 16
SHOWN = 100
NARROW = 0.1
MOST_SCALED = 300
"""Numbers up to which coordinates are scaled first."""
UNTRACED = {"draws", "seed", "time_limit", "progress"}


class Guide(NamedTuple):
    """A family of distributions.

    Attributes
    ----------
    begin
        `(key, point, sd) -> parameters`: a distribution around a point.
    push
        `(parameters, noise) -> (point, log |d point / d noise|)`.
    """

    begin: Callable[..., Any]
    push: Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class GuidedEngine(DensityEngine):
    """Settings that variational engines share.

    Parameters
    ----------
    draws
        Draws of the fitted distribution.
    steps, step_size
        Steps of the optimiser, and the size of the first; they decay to a hundredth of it.
    samples
        Points that the gradient of a step is averaged over.
    batch
        Rows of data a step; None takes all.
    seed, time_limit, progress
        As in `DensityEngine`; the time limit keeps the fit there is.
    """

    draws: Count = 4000
    steps: Count = 5000
    step_size: Positive = 0.05
    samples: Count = 8
    batch: CountOrNone = None

    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})
    cure: ClassVar[str] = "use engine='nuts'"

    @abstractmethod
    def guide(self, size: int) -> Guide:
        """Return the family that is fitted; called inside `x64()`."""

    def draw(self, density: Density) -> DensityDraws:
        """Fit, and draw."""
        if self.batch is not None and density.rows() is None:
            raise InvalidArgument(
                "batch= needs a model whose observations are rows of a plate, which those that call one function are with "
                "mk.GP(..., inducing=20) alone; leave it out for all data at once"
            )
        with x64(), self._clock(self.steps, "step") as clock:
            scaled = self._scaled(density)
            noise, points, log_det, trace = (
                self._fit(whitened(density, scaled), 1.0, clock)
                if scaled
                else self._fit(density, NARROW, clock)
            )
            stopped = clock.reason
        if scaled:
            points, log_det = points_of(scaled, points), log_det + scaled.log_det
        some = weighed(density, self.draws, self.batch)
        heights = log_densities(density, points[:, :some])
        noise, log_det = noise[:, :some], log_det[:, :some]
        log_q = -0.5 * (noise**2).sum(axis=2) - 0.5 * density.size * log(2 * pi) - log_det
        logs = heights - log_q
        every = max(1, len(trace) // SHOWN)
        details = judged(logs, tuple(trace[::every].tolist()), every)
        bound = float(np.where(np.isfinite(logs), logs, -1e300).mean())
        error = float(logs.std() / np.sqrt(logs.size))
        wrong = []
        if stopped or _still_rising(trace):
            wrong.append("the bound was still rising" if not stopped else f"the fit was stopped ({stopped})")
        if details.pareto_k > MAX_TAIL_INDEX:
            wrong.append(f"the posterior has another shape than the fit (Pareto k {details.pareto_k:.2f})")
        cure = "try more steps=" if wrong and details.pareto_k <= MAX_TAIL_INDEX else self.cure
        record = Record(
            converged=not wrong,
            iterations=len(trace),
            error=error,
            advice=f"{' and '.join(wrong)}; {cure}" if wrong else "",
            mass_bound="lower",
            details=details,
        )
        known = np.full(points.shape[:2], np.nan)
        known[:, :some] = heights
        return DensityDraws(
            points, constrained(density, points), DrawStats(known), record, log_mass=LogMass(bound, record)
        )

    def scales(self, found: Peak) -> Peak | None:
        """Return the coordinates to fit in, given the peak of the density; None for those it has."""
        return found

    def _scaled(self, density: Density) -> Peak | None:
        """Return coordinates in which steps of one size suit all numbers; None where the curvature does not tell."""
        if self.batch is not None or not 0 < density.size <= MOST_SCALED:
            return None
        found = peak(density, self.seed, self.name)
        return self.scales(found) if found.definite and found.flat else None

    def _fit(self, density: Density, sd: float, clock: Clock) -> tuple[Array, Array, Array, Array]:
        """Return noise, points, log determinants and the trace of the bound, starting from a standard deviation."""
        data = as_data(density)
        guide = cache(lambda: self.guide(density.size))  # made only where something has to be traced
        settings = (
            self.name,
            *[(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in UNTRACED],
        )

        def begin(key: Any, data: Any) -> Any:
            first, second = jax.random.split(key)
            points, values, _, fine = starting_points(density, jax.random.split(first, STARTS), data)
            best = points[jnp.argmax(jnp.where(fine, values, -jnp.inf))]
            return guide().begin(second, best, sd), points, fine

        def push(parameters: Any, noise: Any) -> Any:
            return jax.vmap(guide().push, (None, 0))(parameters, noise)

        key = self._key()
        start, points, fine = compiled(density, "fit begin", settings, begin, key, data, once=True)(key, data)
        check_start(density, points[:1], np.asarray(fine).any(keepdims=True), self.name)
        schedule = optax.exponential_decay(self.step_size, self.steps, 0.01)
        trained = train(
            [Player(self._loss(density, guide), ("guide",))],
            {"guide": start},
            data,
            Training(epochs=self.steps, seed=self.seed, precision="float64"),
            optimiser=optax.chain(optax.clip_by_global_norm(1e3), optax.adam(schedule)),
            averaging=SinceStep(self.steps - self.steps // 4),
            code=MachineCodeKey(
                f"{density.key} {settings}" if isinstance(density.key, str) else (density.key, settings)
            ),
            lenient=True,
            clock=clock,
        )
        fitted = trained.parameters["guide"]
        noise = np.random.default_rng(self.seed).standard_normal((self.draws, density.size))
        out = compiled(density, "push", (*settings, self.draws), push, fitted, noise, once=True)
        points, log_det = out(fitted, noise)
        return noise[None], np.asarray(points)[None], np.asarray(log_det)[None], -trained.values[:, 0]

    def _loss(self, density: Density, guide: Callable[[], Guide]) -> Callable[..., Any]:
        """Return minus an unbiased draw of the bound, as a player's loss."""
        rows = None if self.batch is None else density.rows()
        entropy = 0.5 * density.size * (1.0 + log(2 * pi))

        def loss(parameters: Any, memory: Any, key: Any, data: Any) -> Any:
            first, second = jax.random.split(key)
            noise = jax.random.normal(first, (self.samples, density.size))
            points, log_dets = jax.vmap(guide().push, (None, 0))(parameters["guide"], noise)
            if self.batch is None or rows is None:
                heights = jax.vmap(density.log_prob, (0, None))(points, data)
            else:
                size = min(self.batch, rows.count)
                # with repetition: no pass over all rows
                at = jax.random.randint(second, (size,), 0, rows.count)
                likelihoods = jax.vmap(rows.log_likelihood, (0, None, None))(points, data, at)
                heights = jax.vmap(density.log_prior, (0, None))(points, data)
                heights += rows.count / size * likelihoods
            return -jnp.mean(heights + log_dets) - entropy, memory

        return loss


def _still_rising(trace: Array) -> bool:
    """Say whether the last eighth of a bound is higher than the one before, beyond its noise and by a tenth of a nat."""
    n = len(trace) // 8
    if n < 10:
        return False
    before, last = trace[-2 * n : -n], trace[-n:]
    gain = float(last.mean() - before.mean())
    return bool(gain > max(0.1, 4.0 * float(np.hypot(before.std(), last.std())) / np.sqrt(n)))
