"""Missing entries of a diffusion's elements by particles that walk its chain back from noise.

Reference: Wu, Trippe, Naesseth, Blei and Cunningham (2023). Each step back is drawn towards what was seen, by the gradient
of how likely the network's idea of the element makes it, and weighed for that, so that the particles have the chain's own
law given what was seen (known entries put in their place on the way have not); in the last step they are given exactly. The
mean weights multiply to an unbiased estimate of the likelihood. Cost: one call and one gradient a step and particle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from markovia.errors import MarkoviaError, Unanswered, UnsupportedModel
from markovia.inference.densities.draws.density_engine import DensityEngine, DrawnAnswer
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.densities.program.layout import SEEN, Site
from markovia.inference.densities.program.program import Program, program_of
from markovia.inference.engine import without_cure
from markovia.inference.problem import Problem
from markovia.inference.result import Info, LogMass, Record
from markovia.inference.weighted_draws.weight_diagnostics import FEWEST_EFFECTIVE
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

if TYPE_CHECKING:
    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

CELLS = 20_000
"""Elements times particles that are computed at once."""


@dataclass(frozen=True)
class TwistedParticles:
    """What the particles of each element say.

    Attributes
    ----------
    log_evidence
        The log of an unbiased estimate of the density of what was seen, by element.
    effective_draws, least_effective
        How many draws the particles are worth by their weights, at the end and at the worst step.
    resampled
        At how many steps they were resampled.
    """

    log_evidence: Array
    effective_draws: Array
    least_effective: Array
    resampled: Array


class FilledAnswer(DrawnAnswer):
    """The answer of an engine that draws the missing entries themselves."""

    def posterior(self, names: Sequence[str], info: Info) -> "DrawnPosterior":
        """Return the draws of elements whose missing entries were drawn; others stay as they are."""
        from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

        return DrawnPosterior(tuple(names), dict(self.drawn.draws), info, program=self.program)


@dataclass(frozen=True, kw_only=True)
class TwistedSMC(DensityEngine):
    """Draw missing entries of a diffusion's elements, given the others.

    Parameters
    ----------
    particles
        How many walk back for each element.
    draws
        Draws of each element that are kept.
    seed, time_limit, progress
        As in `NUTS`; a walk is not cut short.
    """

    particles: Count = 1000
    draws: Count = 1000

    name: ClassVar[str] = "twisted-smc"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass"})

    def joint(self, problem: Problem, targets: Sequence[str]) -> FilledAnswer:
        """Return draws of the node with missing entries."""
        program = self._program(problem)
        return FilledAnswer(program, self.draw(program.density))

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of an estimate of the density of what was seen."""
        found = self.draw(self._program(problem).density)
        return LogMass(float(found.log_mass), found.record)

    def _program(self, problem: Problem) -> Program:
        self._refuse_tables(problem)
        program = program_of(problem, "none")
        _site(program)
        return program

    def draw(self, density: Density) -> DensityDraws:
        """Walk back, and resample each element's particles by their weights."""
        program: Program = density.source
        site = _site(program)
        with x64():
            data, key = as_data(density), self._key()

            def walk(key: Any, data: Any) -> Any:
                env, _ = program.environment(jnp.zeros(0), data)
                law = program.nodes.spread(site, program.nodes.call(site, env), site.plates)
                return self._walks(key, law, env[site.name], env[SEEN + site.name])

            settings = (self.particles, self.draws)
            run = compiled(density, self.name, settings, walk, key, data)
            values, *weighed = run(key, data)
        details = TwistedParticles(*(np.asarray(v) for v in weighed))
        worst = float(details.effective_draws.min())
        advice = f"the particles of an element are worth {worst:.1f} draws only; try more particles="
        few = worst < FEWEST_EFFECTIVE
        # of an estimated log evidence: what the last weights say, the least that it can be
        error = float(np.sqrt((1.0 / np.maximum(details.effective_draws, 1.0)).sum()))
        record = Record(
            converged=not few, iterations=self.particles, error=error, advice=advice * few, details=details
        )
        total = LogMass(float(details.log_evidence.sum()), record)
        nothing = np.zeros((1, self.draws))
        drawn = {site.name: np.asarray(values)[None]}
        return DensityDraws(nothing[..., None][..., :0], drawn, DrawStats(nothing), record, log_mass=total)

    def _walks(self, key: Any, law: Any, values: Any, seen: Any) -> Any:
        """Return draws (draws in front of plates and elements), and what `TwistedParticles` holds by element."""
        lead = law.batch_shape
        n = prod(lead)
        flat = [jnp.broadcast_to(c, (*lead, *jnp.shape(c)[len(lead) :])) for c in law.context]
        flat = [jnp.reshape(c, (n, *jnp.shape(c)[len(lead) :])) for c in flat]
        arrays = [jnp.reshape(v, (n, *law.event_shape)) for v in (values, seen)]

        def one(part: Any) -> Any:
            own, value, there, *context = part
            return self._walk(law.module, own, value, there, tuple(context))

        parts = (jax.random.split(key, n), *arrays, *flat)
        drawn, *weighed = jax.lax.map(one, parts, batch_size=max(1, CELLS // self.particles))
        drawn = jnp.moveaxis(drawn, 1, 0)
        return jnp.reshape(drawn, (self.draws, *lead, *law.event_shape)), *weighed

    def _walk(self, law: Any, key: Any, value: Any, seen: Any, context: Any) -> Any:
        """Return draws of one element, its log evidence, effective particles at the end and at worst, and resamplings."""
        context, wanted, at = law.given(context), law.inside(value), law.levels
        many, axes = self.particles, tuple(range(1, 1 + len(law.event_shape)))

        def normal(x: Any, mean: Any, variance: Any) -> Any:
            return -0.5 * ((x - mean) ** 2 / variance + jnp.log(2.0 * pi * variance))

        def twist(x: Any, i: Any) -> Any:
            """Return how likely what was seen seems at step i: exactly at step 1, before by the network's element."""
            mean, variance, element = law.reverse(x, i, context)
            a, s = jnp.asarray(at.signal)[i], jnp.asarray(at.noise)[i]
            about = jnp.where(i == 1, mean, element)
            spread = jnp.where(i == 1, variance, s**2 / (a**2 + s**2))
            return jnp.sum(jnp.where(seen, normal(wanted, about, spread), 0.0)), (mean, variance)

        looked = jax.vmap(jax.value_and_grad(twist, has_aux=True), (0, None))

        def step(carry: Any, i: Any) -> Any:
            x, logs, total, looks = carry
            key_i = jax.random.fold_in(key, i)
            effective = jnp.exp(2.0 * jax.nn.logsumexp(logs) - jax.nn.logsumexp(2.0 * logs))
            again = effective < 0.5 * many
            picked = jnp.where(again, _systematic(key_i, logs), jnp.arange(many))
            total = total + jnp.where(again, jax.nn.logsumexp(logs) - jnp.log(many), 0.0)
            logs = jnp.where(again, 0.0, logs)
            ((twisted, (mean, variance)), slope) = jax.tree.map(lambda v: v[picked], looks)
            shifted = mean + variance * slope
            shake = jax.random.normal(jax.random.fold_in(key_i, 1), mean.shape)
            x = shifted + jnp.sqrt(variance) * shake
            looks = looked(x, i - 1)
            drift = jnp.sum(normal(x, mean, variance) - normal(x, shifted, variance), axis=axes)
            logs = logs + looks[0][0] - twisted + drift
            return (x, logs, total, looks), (effective, again)

        start = law.loudest * jax.random.normal(jax.random.fold_in(key, 0), (many, *law.event_shape))
        looks = looked(start, law.steps)
        begin = (start, looks[0][0], jnp.zeros(()), looks)
        (_, logs, total, looks), (sizes, again) = jax.lax.scan(step, begin, jnp.arange(law.steps, 1, -1))
        effective = jnp.exp(2.0 * jax.nn.logsumexp(logs) - jax.nn.logsumexp(2.0 * logs))
        total = total + jax.nn.logsumexp(logs) - jnp.log(many)
        mean, variance = looks[0][1]
        last = jax.random.fold_in(key, law.steps + 1)
        picked = _systematic(last, logs, self.draws)
        shake = jax.random.normal(jax.random.fold_in(last, 1), (self.draws, *law.event_shape))
        drawn = law.outside(mean[picked] + jnp.sqrt(variance[picked]) * shake)
        total = total - jnp.sum(jnp.where(seen, law.log_units(), 0.0))
        least = jnp.minimum(effective, jnp.min(sizes, initial=many))
        return jnp.where(seen, value, drawn), total, effective, least, jnp.sum(again)


def _systematic(key: Any, logs: Any, n: int | None = None) -> Any:
    """Return positions drawn in proportion to weights, with one random number, in random order."""
    n = len(logs) if n is None else n
    ladder = jnp.cumsum(jax.nn.softmax(logs))
    rungs = (jnp.arange(n) + jax.random.uniform(key)) / n
    found = jnp.minimum(jnp.searchsorted(ladder, rungs), len(logs) - 1)
    return jax.random.permutation(jax.random.fold_in(key, 2), found)


def _site(program: Program) -> Site:
    """Return the node with missing entries; refuse models in which others depend on what is not known."""
    sites = program.layout.sites
    masked = [s for s in sites.values() if s.masked]
    if len(masked) != 1 or not masked[0].chained:
        raise without_cure(
            Unanswered,
            "engine 'twisted-smc' draws missing entries of a diffusion: one node (mk.networks.diffusion) whose array in "
            "given= has NaN, with missing='impute'",
        )
    site = masked[0]
    unknown = [s.name for s in sites.values() if s.role in ("latent", "discrete")]
    below = [s.name for s in sites.values() if site.name in s.sources]
    if unknown or below:
        raise without_cure(
            UnsupportedModel,
            f"engine 'twisted-smc' draws entries of {site.name!r} where all else is observed and nothing depends on it; "
            f"here is {(unknown + below)[0]!r}",
        )
    return site


def twisted_engine(problem: Problem, seed: int | None, time_limit: float | None) -> TwistedSMC | None:
    """Return the engine for a problem of one diffusion with missing entries; None for others."""
    try:
        _site(program_of(problem, "none"))
    except MarkoviaError:
        return None
    return TwistedSMC(seed=seed, time_limit=time_limit)
