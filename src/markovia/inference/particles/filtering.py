"""The particle filter as one compiled loop over the steps of a sequence.

Weights are carried as logarithms that sum to one. What they summed to before is the likelihood of the step; the product over
the steps is unbiased for every method and scheme. Particles are resampled where their effective number falls below a
threshold. Cost: O(particles) a step with systematic or stratified resampling. Reference: Chopin and Papaspiliopoulos, An
Introduction to Sequential Monte Carlo (2020).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovia.inference.particles.laws import by_name
from markovia.inference.particles.model import Where
from markovia.inference.particles.moves import Moves, SeenSteps
from markovia.inference.particles.scan_resampling import ancestors
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled
from markovia.runtime.seeds import Seed, generator

BISECTIONS = 45


class Cloud(NamedTuple):
    """Particles after a step: states, log weights that sum to one, and the log evidence so far."""

    states: Any
    log_weights: Any
    log_evidence: Any


class Kept(NamedTuple):
    """All particles of a step, and where each came from."""

    states: Any
    log_weights: Any
    ancestors: Any


class FilterRecord(NamedTuple):
    """What is noted of a step: moments by quantity, shares of states, quantiles, and how the particles fared."""

    mean: Any
    spread: Any
    shares: Any
    quantiles: Any
    ess: Any
    log_evidence: Any
    resampled: Any
    trouble: Any
    kept: Kept | None


@dataclass(frozen=True)
class Filter:
    """A particle filter of a model: how many particles, how they move, and when and how they are resampled."""

    moves: Moves
    n: int
    scheme: str
    threshold: float
    quantiles: tuple[float, ...] = ()
    keep: bool = False

    @property
    def settings(self) -> tuple[Any, ...]:
        """What compiled code depends on besides the model's functions and shapes."""
        return (self.moves.method, self.n, self.scheme, self.threshold, self.quantiles, self.keep)

    def begin(self, keys: Any, now: SeenSteps, parameters: Any) -> tuple[Cloud, FilterRecord]:
        """Draw and weigh the first states, by the second of two random keys."""
        where = Where(jnp.asarray(0), now.u, parameters)
        states, change, trouble = self.moves.begin(keys[1], self.n, now, where)
        flat = jnp.full(self.n, -jnp.log(self.n))
        nobody = jnp.arange(self.n, dtype=jnp.int32)
        return self._after(states, flat + change, 0.0, trouble, nobody, jnp.asarray(False))

    def go_on(
        self, keys: Any, cloud: Cloud, t: Any, now: SeenSteps, parameters: Any
    ) -> tuple[Cloud, FilterRecord]:
        """Resample where that is due by one random key, move by the other, and weigh."""
        where = Where(t, now.u, parameters)
        look = self.moves.lookahead(cloud.states, now, where)
        first = cloud.log_weights if look is None else cloud.log_weights + look
        level = jax.nn.logsumexp(first)
        due = effective(first - level) < self.threshold * self.n

        def resampled(_: Any) -> Any:
            chosen = ancestors(self.scheme, keys[0], first)
            log_weights = jnp.full(self.n, -jnp.log(self.n))
            if look is not None:
                # what they were chosen by is taken back
                log_weights = log_weights + level - look[chosen]
            return jax.tree.map(lambda x: x[chosen], cloud.states), log_weights, chosen

        def as_they_are(_: Any) -> Any:
            return cloud.states, cloud.log_weights, jnp.arange(self.n, dtype=jnp.int32)

        states, log_weights, chosen = jax.lax.cond(due, resampled, as_they_are, None)
        states, change, trouble = self.moves.go_on(keys[1], states, now, where)
        return self._after(states, log_weights + change, cloud.log_evidence, trouble, chosen, due)

    def _after(
        self, states: Any, log_weights: Any, evidence: Any, trouble: Any, chosen: Any, due: Any
    ) -> tuple[Cloud, FilterRecord]:
        level = jax.nn.logsumexp(log_weights)
        log_weights = log_weights - level
        weights = jnp.exp(log_weights)
        named = by_name(states)
        shares = {
            name: jax.ops.segment_sum(weights, named[name].astype(jnp.int32), num_segments=k)
            for name, k in self.moves.shape.states.items()
        }
        mean = {name: jnp.tensordot(weights, x.astype(jnp.float64), 1) for name, x in named.items()}
        spread = {name: _spread(weights, x, mean[name]) for name, x in named.items()}
        lines = {
            name: jnp.stack([_quantile(weights, x, q) for q in self.quantiles])
            for name, x in named.items()
            if self.quantiles
        }
        kept = Kept(states, log_weights, chosen) if self.keep else None
        record = FilterRecord(mean, spread, shares, lines, effective(log_weights), level, due, trouble, kept)
        return Cloud(states, log_weights, evidence + level), record

    def run(self, keys: Any, seen: SeenSteps, count: Any, parameters: Any) -> tuple[Cloud, FilterRecord]:
        """Filter the first `count` steps of a sequence; the record has room for as many as there are keys."""

        def at(t: Any) -> SeenSteps:
            return jax.tree.map(lambda x: x[t], seen)  # type: ignore[no-any-return]

        cloud, first = self.begin(keys[0], at(0), parameters)
        records = jax.tree.map(lambda x: jnp.zeros((len(keys), *x.shape), x.dtype).at[0].set(x), first)

        def step(t: Any, carry: Any) -> Any:
            cloud, records = carry
            cloud, record = self.go_on(keys[t], cloud, t, at(t), parameters)
            return cloud, jax.tree.map(lambda every, one: every.at[t].set(one), records, record)

        return jax.lax.fori_loop(1, count, step, (cloud, records))  # type: ignore[no-any-return]

    def log_likelihood(self, keys: Any, seen: SeenSteps, count: Any, parameters: Any) -> Any:
        """Return the estimated log likelihood of the first `count` steps of a sequence."""

        def step(t: Any, cloud: Any) -> Any:
            now = jax.tree.map(lambda x: x[t], seen)
            return self.go_on(keys[t], cloud, t, now, parameters)[0]

        first, _ = self.begin(keys[0], jax.tree.map(lambda x: x[0], seen), parameters)
        return jax.lax.fori_loop(1, count, step, first).log_evidence

    def compiled_run(
        self, keys: Any, seen: SeenSteps, count: Any, parameters: Any
    ) -> tuple[Cloud, FilterRecord]:
        """Run compiled code, made once for equal functions and shapes; call inside `x64()`."""
        args = (keys, seen, count, parameters)
        found: tuple[Cloud, FilterRecord] = compiled(
            self.moves.model, "particle filter", self.settings, self.run, *args
        )(*args)
        return found


def fresh_seeds(seed: Seed, n: int) -> Any:
    """Return n seeds for `step_keys`, one a row."""
    return generator(seed).integers(0, 2**63, (n, 2), dtype=np.uint64)


def step_keys(seed: Any, begin: int, end: int) -> Any:
    """Return two random keys for each of some steps: the same for a step whichever steps are asked for with it.

    Made by NumPy, because making them in JAX would take longer to compile than to run.
    """
    raw = np.random.Philox(key=np.asarray(seed, dtype=np.uint64)).advance(begin).random_raw(4 * (end - begin))
    return raw.reshape(-1, 4)[:, :2].copy().view(np.uint32).reshape(-1, 2, 2)


def effective(log_weights: Any) -> Any:
    """Return the effective number of particles of weights that sum to one."""
    return 1.0 / jnp.exp(2.0 * log_weights).sum()


def _spread(weights: Any, x: Any, mean: Any) -> Any:
    """Return the covariance matrix of a vector, variances otherwise."""
    gaps = x - mean
    if mean.ndim == 1:
        return jnp.matmul((gaps * weights[:, None]).T, gaps, precision="highest")
    return jnp.tensordot(weights, gaps**2, 1)


def _quantile(weights: Any, x: Any, q: float) -> Any:
    """Return a quantile of each number by bisection, which is several times quicker than sorting."""
    x = x.astype(jnp.float64)
    heavy = (weights > 0).reshape(-1, *[1] * (x.ndim - 1))

    def halve(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        below = jnp.tensordot(weights, (x <= middle).astype(jnp.float64), 1) >= q
        return jnp.where(below, low, middle), jnp.where(below, middle, high)

    low = jnp.where(heavy, x, jnp.inf).min(axis=0)
    high = jnp.where(heavy, x, -jnp.inf).max(axis=0)
    return jax.lax.fori_loop(0, BISECTIONS, halve, (low, high))[1]
