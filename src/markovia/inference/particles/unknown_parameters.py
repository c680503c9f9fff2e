"""Unknown parameters of a state-space model: their priors on an unconstrained vector, and the random walk through it.

Both samplers here move the vector by an adaptive random walk (Haario, Saksman and Tamminen 2001): during the warm-up its
covariance becomes that of the draws so far, and its scale is tuned to a rate of acceptance.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import jax, jnp

ACCEPTED = 0.3
PRIOR_DRAWS = 256


class ParameterWalk(NamedTuple):
    """Where a random walk is: its vector, log density, how many steps there were, and what it has learned of the density."""

    u: Any
    log_density: Any
    i: Any
    mean: Any
    cov: Any
    log_scale: Any
    acceptance: Any


@dataclass(frozen=True)
class Unknown:
    """Priors by name, and the values of the parameters that are known."""

    priors: Mapping[str, Any]
    known: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        """A name for what the priors compute."""
        return hashlib.sha256(described(dict(self.priors))).hexdigest()

    @cached_property
    def _bijections(self) -> dict[str, Any]:
        from numpyro.distributions import biject_to

        return {name: biject_to(prior.support) for name, prior in self.priors.items()}

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(self._bijections[name].inverse_shape(prior.shape()))
            for name, prior in self.priors.items()
        }

    def _parts(self, u: Any) -> dict[str, Any]:
        found, at = {}, 0
        for name, shape in self._shapes().items():
            size = int(np.prod(shape, dtype=int))
            found[name] = u[at : at + size].reshape(shape)
            at += size
        return found

    def values(self, u: Any) -> dict[str, Any]:
        """Return all unknown parameters at an unconstrained vector."""
        return {name: self._bijections[name](part) for name, part in self._parts(u).items()}

    def log_prior(self, u: Any) -> Any:
        """Return the log density of the vector."""
        total: Any = 0.0
        for name, part in self._parts(u).items():
            there = self._bijections[name]
            value = there(part)
            total += self.priors[name].log_prob(value).sum() + there.log_abs_det_jacobian(part, value).sum()
        return total

    def draw(self, key: Any) -> Any:
        """Return a vector drawn from the prior."""
        keys = jax.random.split(key, len(self.priors))
        return jnp.concatenate(
            [
                jnp.ravel(self._bijections[name].inv(prior.sample(k)))
                for k, (name, prior) in zip(keys, self.priors.items(), strict=True)
            ]
        )

    def start(self, key: Any) -> ParameterWalk:
        """Return a walk that begins at a draw from the prior, with the spread of the prior."""
        many = jax.vmap(self.draw)(jax.random.split(key, PRIOR_DRAWS))
        many = jnp.clip(many, -50.0, 50.0)
        cov = jnp.atleast_2d(jnp.cov(many.T)) + 1e-8 * jnp.eye(many.shape[1])
        zero = jnp.asarray(0.0)
        return ParameterWalk(
            many[0], zero - jnp.inf, jnp.asarray(0), many.mean(axis=0), cov, zero - 1.0, zero
        )


def walk_on(
    walk: ParameterWalk, key: Any, log_density: Callable[[Any], Any], warm: Any
) -> tuple[ParameterWalk, Any]:
    """Make one Metropolis step, and learn from it while `warm`; return whether it was accepted too."""
    moving, choosing = jax.random.split(key)
    root = jnp.linalg.cholesky(walk.cov)
    u = walk.u + jnp.exp(walk.log_scale) * (root @ jax.random.normal(moving, walk.u.shape))
    there = log_density(u)
    there = jnp.where(jnp.isnan(there), -jnp.inf, there)
    ratio = jnp.where(jnp.isneginf(there), -jnp.inf, there - walk.log_density)
    accepted = jnp.log(jax.random.uniform(choosing)) < ratio
    rate = jnp.exp(jnp.minimum(ratio, 0.0))
    new, density = jnp.where(accepted, u, walk.u), jnp.where(accepted, there, walk.log_density)
    step = (walk.i + 1.0) ** -0.6
    gap = new - walk.mean
    learned = ParameterWalk(
        new,
        density,
        walk.i + 1,
        walk.mean + step * gap,
        (1 - step) * walk.cov + step * jnp.outer(gap, gap) + 1e-9 * jnp.eye(len(new)),
        walk.log_scale + step * (rate - ACCEPTED),
        rate,
    )
    still = walk._replace(u=new, log_density=density, i=walk.i + 1, acceptance=rate)
    # the first steps only find the place: they teach the scale, not the shape
    learned = learned._replace(cov=jnp.where(walk.i < 20, walk.cov, learned.cov))
    return jax.tree.map(lambda a, b: jnp.where(warm, a, b), learned, still), accepted
