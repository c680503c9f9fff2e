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
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.densities.engines.approximation_details import judged, weighed
from markovia.inference.densities.engines.whitened_density import Peak, peak, points_of, whitened
from markovia.inference.densities.program.compiled_functions import as_data, compiled, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.density_engine import (
    DensityDraws,
    DensityEngine,
    check_start,
    log_densities,
    starting_points,
)
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.result import LogMass, Record
from markovia.inference.weighted_draws.weight_diagnostics import MAX_TAIL_INDEX
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, Positive
from markovia.runtime.clock import Clock
from markovia.runtime.double_precision import x64

SEGMENT = 500
SECONDS = 0.25
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
                "batch= needs a model whose observations are rows of a plate; leave it out for all data at once"
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
        import jax
        import jax.numpy as jnp
        import optax

        data = as_data(density)
        guide = cache(lambda: self.guide(density.size))
        rows = None if self.batch is None else density.rows()
        entropy = 0.5 * density.size * (1.0 + log(2 * pi))
        schedule = optax.exponential_decay(self.step_size, self.steps, 0.01)
        optimiser = optax.chain(optax.clip_by_global_norm(1e3), optax.adam(schedule))
        averaged = self.steps - self.steps // 4

        def bound(parameters: Any, key: Any, data: Any) -> Any:
            first, second = jax.random.split(key)
            noise = jax.random.normal(first, (self.samples, density.size))
            points, log_dets = jax.vmap(guide().push, (None, 0))(parameters, noise)
            if self.batch is None or rows is None:
                heights = jax.vmap(density.log_prob, (0, None))(points, data)
            else:
                size = min(self.batch, rows.count)
                at = jax.random.randint(
                    second, (size,), 0, rows.count
                )  # with repetition: no pass over all rows
                heights = jax.vmap(density.log_prior, (0, None))(points, data)
                heights += (
                    rows.count / size * jax.vmap(rows.log_likelihood, (0, None, None))(points, data, at)
                )
            return jnp.mean(heights + log_dets) + entropy

        def begin(key: Any, data: Any) -> Any:
            first, second, third = jax.random.split(key, 3)
            points, values, _, fine = starting_points(density, jax.random.split(first, STARTS), data)
            best = points[jnp.argmax(jnp.where(fine, values, -jnp.inf))]
            parameters = guide().begin(second, best, sd)
            return (jnp.asarray(0), parameters, optimiser.init(parameters), parameters, third), points, fine

        def segment(state: Any, count: Any, data: Any) -> Any:
            def step(i: Any, carry: Any) -> Any:
                (t, parameters, moments, mean, key), trace = carry
                key, mine = jax.random.split(key)
                value, slope = jax.value_and_grad(lambda p: -bound(p, mine, data))(parameters)
                slope = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), slope)
                change, moments = optimiser.update(slope, moments)
                parameters = optax.apply_updates(parameters, change)
                share = 1.0 / jnp.maximum(1, t - averaged + 1)
                mean = jax.tree.map(lambda m, p: m + share * (p - m), mean, parameters)
                return (t + 1, parameters, moments, mean, key), trace.at[i].set(-value)

            return jax.lax.fori_loop(0, count, step, (state, jnp.zeros(SEGMENT)))

        def push(parameters: Any, noise: Any) -> Any:
            return jax.vmap(guide().push, (None, 0))(parameters, noise)

        settings = (
            self.name,
            *[(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in UNTRACED],
        )
        key = self._key()
        state, points, fine = compiled(density, "fit begin", settings, begin, key, data, once=True)(key, data)
        check_start(density, points[:1], np.asarray(fine).any(keepdims=True), self.name)
        advance = compiled(density, "fit", settings, segment, state, jnp.asarray(1), data)
        traces: list[Array] = []
        done, size = 0, 20
        while done < self.steps and (not clock.over() or not done):
            count = min(size, self.steps - done)
            began = perf_counter()
            state, trace = advance(state, jnp.asarray(count), data)
            traces.append(np.asarray(trace)[:count])
            took = perf_counter() - began
            done += count
            clock.advance(count)
            size = int(min(SEGMENT, max(1, count * min(8.0, SECONDS / max(took, 1e-6)))))
        noise = np.random.default_rng(self.seed).standard_normal((self.draws, density.size))
        out = compiled(
            density, "push", (*settings, self.draws), push, state[3], jnp.asarray(noise), once=True
        )
        points, log_det = out(state[3], jnp.asarray(noise))
        return noise[None], np.asarray(points)[None], np.asarray(log_det)[None], np.concatenate(traces)


def _still_rising(trace: Array) -> bool:
    """Say whether the last eighth of a bound is higher than the one before, beyond its noise and by a tenth of a nat."""
    n = len(trace) // 8
    if n < 10:
        return False
    before, last = trace[-2 * n : -n], trace[-n:]
    gain = float(last.mean() - before.mean())
    return bool(gain > max(0.1, 4.0 * float(np.hypot(before.std(), last.std())) / np.sqrt(n)))
