"""Sequential Monte Carlo: a population of points goes from the prior to the posterior in small steps of temperature.

References: Neal (2001); Del Moral, Doucet and Jasra (2006); Jasra, Stephens, Doucet and Tsagaris (2011) for choosing the
temperatures; Buchholz, Chopin and Jacob (2021) for moves that adapt. From one temperature to the next, points are weighed so
that a given share of them stays effective, resampled, and moved by Hamiltonian (or random-walk) steps scaled by the
population's own covariance. The product of mean weights estimates the evidence without bias. Where the prior cannot be drawn
from, the path starts at a wide normal distribution around the starting points. Cost: temperatures (some tens) times moves
times leapfrog steps gradients a point. Use it for the log evidence, and for posteriors with several separate modes.
"""

from dataclasses import dataclass
from math import inf, log, pi
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.densities.draws.density_engine import DensityEngine, check_start
from markovia.inference.densities.program.compiled_functions import as_data, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.result import LogMass, Record
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime.array_types import Array
from markovia.runtime.checks import LEVEL, Count
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

FEWEST_MOVED = 0.05
BISECTIONS = 60
MOST_TEMPERATURES = 2_000
MOST_DENSE = 200
"""Numbers up to which moves are scaled by the whole covariance; above, by variances."""


@dataclass(frozen=True)
class TemperingDetails:
    """How a population went from the prior to the posterior.

    Attributes
    ----------
    temperatures
        The inverse temperatures, from 0 to 1.
    acceptance
        The mean probability of acceptance of the moves at each.
    log_mass_error
        A standard error of the log evidence, from the spread of the weights.
    ancestors
        How many of the first points have descendants at the end.
    """

    temperatures: tuple[float, ...]
    acceptance: tuple[float, ...]
    log_mass_error: float
    ancestors: int


@dataclass(frozen=True, kw_only=True)
class SMC(DensityEngine):
    """Draw by tempering a population, and estimate the log evidence.

    Parameters
    ----------
    draws
        Points in the population.
    effective
        The share of points that stays effective from one temperature to the next.
    moves, leapfrog
        Moves at every temperature, and leapfrog steps of each Hamiltonian one.
    move
        "hmc" or "random-walk".
    seed, time_limit, progress
        As in `NUTS`. A population stopped on the way is no posterior, so a time limit that is too short is an error.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = SMC(draws=500).draw(standard_normal(2))
    >>> bool(abs(found.log_mass) < 0.3)
    True
    """

    draws: Count = 2000
    effective: Annotated[float, LEVEL] = 0.5
    moves: Count = 3
    leapfrog: Count = 8
    move: Literal["hmc", "random-walk"] = "hmc"

    name: ClassVar[str] = "smc"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})

    def draw(self, density: Density) -> DensityDraws:
        """Temper the population."""
        with x64(), self._clock(100, "%") as clock:
            run = Population(self, density)
            while run.temperature < 1.0 and len(run.temperatures) < MOST_TEMPERATURES:
                clock.advance(run.step())
                if clock.over():
                    if clock.reason == "interrupted":
                        raise KeyboardInterrupt
                    break
        return self._drawn(density, run)

    def _drawn(self, density: Density, run: "Population") -> DensityDraws:
        if run.temperature < 1.0:
            raise Unanswered(
                f"the population was stopped at a temperature of {run.temperature:.3g}, before the posterior at 1; give a "
                "longer time_limit=, or fewer draws="
            )
        error = float(np.sqrt(run.variance))
        details = TemperingDetails(
            tuple(run.temperatures), tuple(run.acceptance), error, len(np.unique(run.ancestors))
        )
        wrong = []
        if min(run.acceptance, default=1.0) < FEWEST_MOVED:
            wrong.append(f"only {min(run.acceptance):.1%} of the moves were accepted at a temperature")
        if details.ancestors < min(20, self.draws // 10):
            wrong.append(f"the points descend from {details.ancestors} of {self.draws:,}")
        record = Record(
            converged=not wrong,
            iterations=len(run.temperatures),
            error=error,
            advice=f"{' and '.join(wrong)}; try more moves=, more draws= or a larger effective="
            if wrong
            else "",
            details=details,
        )
        points = run.points[None]
        stats = DrawStats(run.target[None])
        return DensityDraws(
            points, constrained(density, points), stats, record, log_mass=LogMass(run.log_mass, record)
        )


class Population:
    """Points on their way from a distribution that is easy to draw from to a density; made inside `x64()`."""

    def __init__(self, engine: SMC, density: Density) -> None:
        self.engine, self.density, self.data = engine, density, as_data(density)
        self.rng = np.random.default_rng(engine.seed)
        self.temperatures, self.acceptance = [0.0], list[float]()
        self.log_mass, self.variance, self.size = 0.0, 0.0, 0.5
        n, d = engine.draws, density.size
        self.ancestors = np.arange(n)
        self.settings = (n, engine.leapfrog, engine.move, density.prior is None)
        keys = jax.random.split(engine._key(), n)
        draw = density.start if density.prior is None else density.prior
        points = compiled(
            density, "first points", self.settings, jax.vmap(draw, (0, None)), keys, self.data, once=True
        )(keys, self.data)
        self.points = np.asarray(points, dtype=np.float64)
        self.wide = np.zeros(d), np.ones(d)
        if density.prior is None:
            self.wide = self.points.mean(axis=0), 2.0 * np.maximum(self.points.std(axis=0), 0.5)
            self.points = self.wide[0] + self.wide[1] * self.rng.standard_normal((n, d))
        self.base, self.target = self._heights()
        fine = np.isfinite(self.base) & np.isfinite(self.target)
        if not fine.any():
            check_start(density, self.points, fine, engine.name)

    @property
    def temperature(self) -> float:
        """The inverse temperature: 0 at the start, 1 at the posterior."""
        return self.temperatures[-1]

    def step(self) -> int:
        """Go to the next temperature; return how many hundredths of the way were made."""
        gap = np.where(np.isfinite(self.target) & np.isfinite(self.base), self.target - self.base, -inf)
        before = self.temperature
        after = self._next(gap)
        logs = (after - before) * gap
        top = float(logs.max())
        w = np.exp(logs - top)
        n, total = len(w), float(w.sum())
        self.log_mass += top + log(total / n)
        self.variance += max(0.0, float(w @ w) / total**2 - 1.0 / n)
        rows = resample(logs, n, self.rng)
        self.points, self.ancestors = self.points[rows], self.ancestors[rows]
        self.temperatures.append(after)
        self._move(after)
        return int(100 * after) - int(100 * before)

    def _next(self, gap: Array) -> float:
        """Return the temperature at which the weights are worth the wanted share of the points, by bisection."""
        here, n = self.temperature, len(gap)

        def worth(t: float) -> float:
            logs = (t - here) * gap
            w = np.exp(logs - logs.max())
            return float(w.sum() ** 2 / (w @ w)) / n

        if worth(1.0) >= self.engine.effective:
            return 1.0
        low, high = here, 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if worth(middle) >= self.engine.effective else (low, middle)
        return max(low, here + 1e-12)

    def _heights(self) -> tuple[Array, Array]:
        base, target = self._both(self.points)
        return np.asarray(base), np.asarray(target)

    def _both(self, points: Array) -> Any:
        density, free = self.density, self.density.prior is None

        def both(u: Any, wide: Any, data: Any) -> Any:
            return _base(density, free, u, wide, data), density.log_prob(u, data)

        every = jax.vmap(both, (0, None, None))
        args = jnp.asarray(points), tuple(map(jnp.asarray, self.wide)), self.data
        return compiled(density, "tempering heights", self.settings, every, *args)(*args)

    def _move(self, temperature: float) -> None:
        """Move all points at a temperature, and adapt the size of steps to how many moves are accepted."""
        factor = self._factor()
        target = 0.8 if self.engine.move == "hmc" else 0.25
        moved = []
        function = None
        for _ in range(self.engine.moves):
            keys = jax.random.split(jax.random.PRNGKey(int(self.rng.integers(2**31))), len(self.points))
            args = (
                keys, jnp.asarray(self.points), jnp.asarray(temperature), jnp.asarray(self.size), jnp.asarray(factor),
                tuple(map(jnp.asarray, self.wide)), self.data,
            )  # fmt: skip
            if function is None:
                function = compiled(self.density, "tempering move", self.settings, self._mover(), *args)
            points, base, high, accepted = function(*args)
            self.points, self.base, self.target = np.asarray(points), np.asarray(base), np.asarray(high)
            moved.append(float(np.asarray(accepted).mean()))
            self.size *= float(np.exp(moved[-1] - target))
        self.acceptance.append(float(np.mean(moved)))

    def _factor(self) -> Array:
        """Return a factor of the population's covariance."""
        d = self.points.shape[1]
        if d > MOST_DENSE:
            return np.asarray(np.maximum(self.points.std(axis=0), 1e-8))
        spread = np.atleast_2d(np.cov(self.points, rowvar=False)) + 1e-10 * np.eye(d)
        try:
            return np.asarray(np.linalg.cholesky(spread), dtype=np.float64)
        except np.linalg.LinAlgError:
            return np.diag(np.sqrt(np.maximum(np.diag(spread), 1e-16)))

    def _mover(self) -> Any:
        """Return a Metropolis-corrected move of every point, in coordinates scaled by the population's covariance."""
        density, engine, free = self.density, self.engine, self.density.prior is None

        def one(key: Any, u: Any, temperature: Any, size: Any, factor: Any, wide: Any, data: Any) -> Any:
            def there(z: Any) -> Any:
                return u + (factor @ z if factor.ndim == 2 else factor * z)

            def height(z: Any) -> Any:
                x = there(z)
                base, high = _base(density, free, x, wide, data), density.log_prob(x, data)
                return base + temperature * (high - base), (base, high)

            climb = jax.value_and_grad(height, has_aux=True)
            first, second, third = jax.random.split(key, 3)
            noise = jax.random.normal(first, u.shape)
            here = jnp.zeros_like(u)
            (value, both), slope = climb(here)
            if engine.move == "random-walk":
                z = 2.38 / u.shape[0] ** 0.5 * size * noise
                (new, news), _ = climb(z)
                ratio = new - value
            else:
                step = size * jax.random.uniform(third, minval=0.5, maxval=1.0)

                def leap(_: Any, carry: Any) -> Any:
                    z, p, slope, _, _ = carry
                    p = p + 0.5 * step * slope
                    z = z + step * p
                    (new, news), slope = climb(z)
                    return z, p + 0.5 * step * slope, slope, new, news

                z, p, _, new, news = jax.lax.fori_loop(
                    0, engine.leapfrog, leap, (here, noise, slope, value, both)
                )
                ratio = new - value - 0.5 * jnp.sum(p**2) + 0.5 * jnp.sum(noise**2)
            ratio = jnp.where(jnp.isnan(ratio), -jnp.inf, ratio)
            taken = jnp.log(jax.random.uniform(second)) < ratio
            kept = jnp.where(taken, there(z), u)
            base, high = (jnp.where(taken, a, b) for a, b in zip(news, both, strict=True))
            return kept, base, high, jnp.minimum(1.0, jnp.exp(ratio))

        return jax.vmap(one, (0, 0, None, None, None, None, None))


def _base(density: Density, free: bool, u: Any, wide: Any, data: Any) -> Any:
    """Return the log density of what a path starts from: a wide normal distribution, or the prior."""
    if not free:
        return density.log_prior(u, data)
    mean, sd = wide
    return jnp.sum(-0.5 * ((u - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * log(2 * pi))
