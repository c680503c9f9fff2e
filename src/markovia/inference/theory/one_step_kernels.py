"""Markov chain steps on any log density, one function each: to learn from, to test, and to put together by hand.

Methods: random-walk Metropolis (Metropolis et al. 1953), the unadjusted and the Metropolis-adjusted Langevin algorithm
(Roberts and Tweedie 1996), Hamiltonian Monte Carlo (Duane et al. 1987), slice sampling with stepping out (Neal 2003), the
independence sampler (Hastings 1970), and proposals that a variational fit makes (de Freitas, Hojen-Sorensen, Jordan and
Russell 2001). A log density is a function of a vector, of JAX or of plain Python; gradients are computed unless they are
given. Cost: one log density or gradient a step (HMC: one a leapfrog step). Engines that sample models are in
`markovia.engines`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.theory.black_box_vi import black_box_vi
from markovia.inference.theory.integrators import Gradient, LogDensity, gradient_of, leapfrog, total_energy
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, check, check_count, check_number
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks, html_text

MOST_STEPS_OUT = 1_000


class Move(NamedTuple):
    """Where a step led, whether a proposal was accepted, and the log of the acceptance ratio."""

    point: Array
    accepted: bool
    log_ratio: float

    def _repr_html_(self) -> str:
        return html_text(str(self))


Stepper = Callable[..., Move]


def _decide(x: Array, there: Array, log_ratio: float, rng: np.random.Generator) -> Move:
    ratio = -np.inf if np.isnan(log_ratio) else log_ratio
    taken = bool(np.log(rng.random()) < ratio)
    return Move(there if taken else x, taken, float(ratio))


def random_walk_step(log_density: LogDensity, x: Any, rng: np.random.Generator, *, scale: Any = 1.0) -> Move:
    """Propose a normal step of a given scale (a number or one a coordinate), and accept or reject it.

    Examples
    --------
    >>> chain = run_chain(partial(random_walk_step, lambda x: -0.5 * (x**2).sum(), scale=2.4), [0.0], 20_000, seed=0)
    >>> bool(abs(chain.draws.var() - 1) < 0.1)
    True
    """
    x = np.asarray(x, dtype=np.float64)
    there = x + scale * rng.standard_normal(x.shape)
    return _decide(x, there, float(log_density(there)) - float(log_density(x)), rng)


def langevin_step(
    log_density: LogDensity,
    x: Any,
    rng: np.random.Generator,
    *,
    step: float,
    gradient: Gradient | None = None,
) -> Move:
    """Step along the gradient with noise, x + (step / 2) grad + sqrt(step) noise, and never reject.

    On a standard normal target the stationary variance is 1 / (1 - step / 4) instead of 1.
    """
    check_number("step", step, positive=True)
    x = np.asarray(x, dtype=np.float64)
    slope = np.asarray((gradient or gradient_of(log_density))(x))
    return Move(x + 0.5 * step * slope + np.sqrt(step) * rng.standard_normal(x.shape), True, 0.0)


def mala_step(
    log_density: LogDensity,
    x: Any,
    rng: np.random.Generator,
    *,
    step: float,
    gradient: Gradient | None = None,
) -> Move:
    """Propose a Langevin step, and accept or reject it so that the target is kept."""
    check_number("step", step, positive=True)
    climb = gradient or gradient_of(log_density)
    x = np.asarray(x, dtype=np.float64)
    mean = x + 0.5 * step * np.asarray(climb(x))
    there = mean + np.sqrt(step) * rng.standard_normal(x.shape)
    back = there + 0.5 * step * np.asarray(climb(there))
    forward = -((there - mean) ** 2).sum() / (2.0 * step)
    backward = -((x - back) ** 2).sum() / (2.0 * step)
    return _decide(x, there, float(log_density(there)) - float(log_density(x)) + backward - forward, rng)


def hmc_step(
    log_density: LogDensity,
    x: Any,
    rng: np.random.Generator,
    *,
    step: float,
    steps: int,
    gradient: Gradient | None = None,
) -> Move:
    """Draw a momentum, follow the trajectory by leapfrog steps, and accept its end or not."""
    check_number("step", step, positive=True)
    check_count("steps", steps, 1)
    x = np.asarray(x, dtype=np.float64)
    momentum = rng.standard_normal(x.shape)
    there, end = leapfrog(x, momentum, gradient or gradient_of(log_density), step, steps)
    gap = total_energy(log_density, x, momentum) - total_energy(log_density, there, end)
    return _decide(x, there, gap, rng)


def slice_step(log_density: LogDensity, x: Any, rng: np.random.Generator, *, width: float = 1.0) -> Move:
    """Draw each coordinate in turn from a slice under the density, found by stepping out and shrinking; never rejects.

    Examples
    --------
    >>> chain = run_chain(partial(slice_step, lambda x: -abs(x[0])), [0.0], 5_000, seed=0)
    >>> bool(abs(abs(chain.draws).mean() - 1) < 0.08), chain.acceptance
    (True, 1.0)
    """
    check_number("width", width, positive=True)
    x = np.array(x, dtype=np.float64)
    for i in np.ndindex(x.shape):
        here = float(x[i])

        def along(value: float, i: Any = i) -> float:
            x[i] = value
            return float(log_density(x))

        level = along(here) - rng.exponential()
        low = here - width * rng.random()
        high = low + width
        for _ in range(MOST_STEPS_OUT):
            if along(low) < level:
                break
            low -= width
        for _ in range(MOST_STEPS_OUT):
            if along(high) < level:
                break
            high += width
        while True:
            value = rng.uniform(low, high)
            if along(value) >= level:
                break
            low, high = (value, high) if value < here else (low, value)
            if high - low < 1e-300:
                along(here)
                break
    return Move(x, True, 0.0)


def independence_step(
    log_density: LogDensity,
    x: Any,
    rng: np.random.Generator,
    *,
    draw: Callable[[np.random.Generator], Any],
    log_proposal: LogDensity,
) -> Move:
    """Propose from a fixed distribution wherever the chain is; accepted by the ratio of importance weights.

    Parameters
    ----------
    log_density, x, rng
        The target, where the chain is, and a random generator.
    draw, log_proposal
        Draws a proposal with the generator, and its log density (up to a constant).
    """
    x = np.asarray(x, dtype=np.float64)
    there = np.asarray(draw(rng), dtype=np.float64)
    weight = float(log_density(there)) - float(log_proposal(there))
    return _decide(x, there, weight - float(log_density(x)) + float(log_proposal(x)), rng)


@dataclass(frozen=True)
class SteppedChain(InNotebooks):
    """A chain made step by step.

    Attributes
    ----------
    draws
        One row a step.
    acceptance
        The share of proposals that was accepted.
    """

    draws: Array
    acceptance: float


def run_chain(step: Stepper, start: Any, n: int, seed: Seed = None, *, burn_in: int = 0) -> SteppedChain:
    """Run a step many times.

    Parameters
    ----------
    step
        Called as `step(x, rng)`; gives a `Move`. Fix the other arguments of a kernel with `functools.partial`.
    start
        The first point, a vector.
    n, burn_in
        Steps that are kept, and steps before them that are not.
    seed
        A whole number or a NumPy generator.
    """
    check_count("n", n, 1)
    check_count("burn_in", burn_in)
    rng = generator(seed)
    x = np.asarray(start, dtype=np.float64)
    if x.ndim == 0:
        raise InvalidArgument("start= is a vector; write [0.0] for one number")
    draws, taken = np.empty((n, *x.shape)), 0
    for i in range(-burn_in, n):
        x, accepted, _ = step(x, rng)
        if i >= 0:
            draws[i] = x
            taken += accepted
    return SteppedChain(draws, taken / n)


def variational_mcmc(
    log_density: LogDensity, start: Any, n: int, seed: Seed = None, *, local: float = 0.5, steps: int = 2_000
) -> SteppedChain:
    """Run a chain whose proposals come from a variational fit, mixed with local steps of its scale.

    The fit finds the bulk, from which independent proposals make long jumps; a random walk reaches the tails that the fit
    does not have. The chain is exact however poor the fit is.

    Parameters
    ----------
    log_density
        The target, which JAX can trace.
    start
        A first point.
    n, seed
        Steps that are kept, and a whole number or a NumPy generator.
    local
        The share of local steps.
    steps
        Steps of the fit (see `markovia.variational.black_box_vi`).

    Examples
    --------
    >>> chain = variational_mcmc(lambda x: -0.5 * ((x - 3) ** 2).sum(), [0.0, 0.0], 4000, seed=0)
    >>> bool(abs(chain.draws.mean() - 3) < 0.1)
    True
    """
    rng = generator(seed)
    check("local", local, NumberRange(0.0, 1.0, said="a share between 0 and 1"))
    fit = black_box_vi(log_density, start, steps=steps, gradient="reparameterised", seed=rng)

    def log_q(x: Any) -> float:
        return float(-0.5 * (((np.asarray(x) - fit.mean) / fit.sd) ** 2).sum())

    far = partial(
        independence_step,
        log_density,
        draw=lambda rng: fit.mean + fit.sd * rng.standard_normal(fit.mean.shape),
        log_proposal=log_q,
    )
    near = partial(random_walk_step, log_density, scale=fit.sd)

    def step(x: Any, rng: np.random.Generator) -> Move:
        return near(x, rng) if rng.random() < local else far(x, rng)

    return run_chain(step, fit.mean, n, rng)
