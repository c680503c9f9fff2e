"""Stochastic gradient Langevin dynamics: noisy gradient steps on a few rows at a time, without rejection.

References: Welling and Teh (2011); Vollmer, Zygalakis and Teh (2016) for its bias; Baker, Fearnhead, Fox and Nemeth (2019)
for subtracting the batch's gradient at the mode, without which the noise of batches widens the posterior. In coordinates
scaled by the curvature at the mode, a step is x + (eps / 2) g + sqrt(eps) noise, where g is the gradient of the log prior
plus that of a batch of rows, scaled up to all of them. With all rows and a constant step it is the unadjusted Langevin
algorithm, whose stationary variance on a normal target is 1 / (1 - eps / 4) times the right one. Cost: one mode and one
Hessian on all data, then two gradients of a batch a step. Use it where a pass over the data for every gradient is too slow;
it is biased by its step: halve `step_size` and look whether the answer moves.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.densities.engines.density_chains import ChainKernel, ChainStep, DensityChains
from markovia.inference.densities.engines.whitened_density import peak, points_of, whitened
from markovia.inference.densities.program.compiled_functions import constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws
from markovia.runtime.checks import Count, CountOrNone, FromZero, NumberRange
from markovia.runtime.libraries import jax, jnp

STEPS = NumberRange(0.0, 2.0, open="both", said="a number between 0 and 2")


@dataclass(frozen=True, kw_only=True)
class SGLD(DensityChains):
    """Draw by stochastic gradient Langevin dynamics.

    Parameters
    ----------
    step_size
        The size eps of a step, in units of the posterior's own scale.
    batch
        Rows of data a step; None takes a hundredth of them, at least 32.
    decay
        Steps shrink like (1 + t / warmup)^-decay after the warm-up; 0 keeps them.
    draws, warmup, chains, thin, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `NUTS`.

    Examples
    --------
    >>> SGLD(step_size=0.05, batch=100).name
    'sgld'
    """

    thin: Count = 10
    warmup: FromZero = 500
    step_size: Annotated[float, STEPS] = 0.1
    batch: CountOrNone = None
    decay: Annotated[float, NumberRange(0.0, 1.0, said="a number from 0 to 1")] = 0.0

    name: ClassVar[str] = "sgld"
    advice: ClassVar[str] = "try more draws=, a larger thin=, or engine='nuts'"

    def draw(self, density: Density) -> DensityDraws:
        """Run the chains in scaled coordinates."""
        found = peak(density, self.seed, self.name)
        drawn = super().draw(whitened(density, found))
        points = points_of(found, drawn.points)
        return replace(drawn, points=points, draws=constrained(density, points))

    def kernel(self, density: Density) -> ChainKernel:
        """Return the transition of one chain."""
        rows = None if self._whole else density.rows()
        whole = rows is None
        if rows is None and self.batch is not None:
            raise InvalidArgument(
                "batch= needs a model whose observations are rows of a plate, which those that call one function are with "
                "mk.GP(..., inducing=20) alone; leave it out for all data at once"
            )
        count = 0 if rows is None else rows.count
        size = min(count, self.batch or max(32, count // 100))

        def climb(u: Any, data: Any, key: Any) -> Any:
            """Return the log density and its gradient; of a batch, minus its gradient at the mode, where the whole is 0."""
            if rows is None:
                return jax.value_and_grad(density.log_prob)(u, data)
            at = jax.random.randint(key, (size,), 0, count)  # with repetition: no pass over all rows

            def batch(u: Any) -> Any:
                return density.log_prior(u, data) + count / size * rows.log_likelihood(u, data, at)

            height, slope = jax.value_and_grad(batch)(u)
            return height, slope - jax.grad(batch)(jnp.zeros_like(u))

        def begin(key: Any, point: Any, value: Any, slope: Any, data: Any) -> Any:
            return jnp.asarray(0), point, value, key

        def step(state: Any, data: Any) -> Any:
            i, point, _, key = state
            key, first, second = jax.random.split(key, 3)
            height, slope = climb(point, data, first)
            late = jnp.maximum(0, i - self.warmup) / max(self.warmup, 1)
            eps = self.step_size * (1.0 + late) ** -self.decay
            noise = jax.random.normal(second, point.shape)
            return i + 1, point + 0.5 * eps * slope + jnp.sqrt(eps) * noise, height, key

        def record(state: Any) -> ChainStep:
            _, point, height, _ = state
            gradients = 1.0 if whole else size / max(count, 1)
            return ChainStep(
                point,
                height,
                jnp.ones(()),
                ~jnp.isfinite(height),
                -height,
                jnp.asarray(gradients),
                jnp.asarray(self.step_size),
            )

        return ChainKernel(begin, step, record)

    @property
    def _whole(self) -> bool:
        return False

    def _complaints(self, found: Any) -> list[str]:
        bias = self.step_size / 4.0
        wrong = [w for w in super()._complaints(replace(found, ebfmi=1.0)) if "diverged" not in w]
        if found.divergences or not np.isfinite(found.effective):
            wrong.append("the steps went astray; a smaller step_size= is needed")
        return wrong + ([f"steps this large widen the posterior by {50 * bias:.0f}%"] if bias > 0.1 else [])


@dataclass(frozen=True, kw_only=True)
class Langevin(SGLD):
    """Draw by the unadjusted Langevin algorithm: Langevin steps on all data, without rejection.

    Parameters
    ----------
    step_size, decay, draws, warmup, chains, thin, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `SGLD`.
    batch
        None: every step takes all data.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = Langevin(draws=2000, chains=4, step_size=1.0).draw(standard_normal(1))
    >>> bool(abs(found.draws["x"].var() / (1 / (1 - 1.0 / 4)) - 1) < 0.1)  # too wide, by what theory says
    True
    """

    name: ClassVar[str] = "langevin"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch is not None:
            raise InvalidArgument("engine 'langevin' takes all data; use engine='sgld' with batch=")

    @property
    def _whole(self) -> bool:
        return True
