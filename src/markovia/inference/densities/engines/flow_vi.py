"""Variational inference with a normalising flow: a distribution that bends to the posterior's shape.

References: Rezende and Mohamed (2015); Dinh, Sohl-Dickstein and Bengio (2017) for coupling layers. A layer keeps half of the
numbers and moves the other half by a scale and a shift that small neural networks compute from the first; halves take turns,
and a full-rank affine map comes last. See `guided_fit` for how it is fitted. Cost: as `advi`, times a few for the
networks. Use it where a normal distribution is not enough (bent or skewed posteriors; see the Pareto k), and MCMC too slow.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovia.inference.densities.engines.advi import full_rank
from markovia.inference.densities.engines.guided_fit import Guide, GuidedEngine
from markovia.inference.densities.engines.whitened_density import Peak
from markovia.runtime.checks import Count, Positive
from markovia.runtime.libraries import jax, jnp

FAR = 20.0


@dataclass(frozen=True, kw_only=True)
class FlowVI(GuidedEngine):
    """Draw from a normalising flow that was fitted to the posterior.

    Parameters
    ----------
    layers, hidden
        Coupling layers, and hidden units of each one's network.
    draws, steps, step_size, samples, batch
        As in `ADVI`.
    seed, time_limit, progress
        As in `NUTS`; the time limit keeps the fit there is.

    Examples
    --------
    >>> FlowVI(layers=6).hidden
    32
    """

    layers: Count = 4
    hidden: Count = 32
    step_size: Positive = 0.02
    samples: Count = 16

    name: ClassVar[str] = "flow-vi"
    cure: ClassVar[str] = "try more layers= and steps=, or engine='nuts'"

    def guide(self, size: int) -> Guide:
        """Return the family."""
        return coupling_flow(size, self.layers, self.hidden)

    def scales(self, found: Peak) -> Peak | None:
        """Return the peak's coordinates where numbers are far from one; elsewhere the curvature at one point says little."""
        sds = np.linalg.norm(found.factor, axis=1)
        return None if sds.min() > 1 / FAR and sds.max() < FAR else found


def coupling_flow(size: int, layers: int, hidden: int) -> Guide:
    """Return flows of coupling layers, then a full-rank affine map; a new one does not bend."""
    affine = full_rank(size)

    def begin(key: Any, point: Any, sd: float) -> Any:
        made = []
        for mine in jax.random.split(key, layers):
            enter = jax.random.normal(mine, (hidden, size)) / size**0.5
            made.append((enter, jnp.zeros(hidden), jnp.zeros((2 * size, hidden)), jnp.zeros(2 * size)))
        return made, affine.begin(key, point, sd)

    def push(parameters: Any, noise: Any) -> Any:
        made, last = parameters
        x, total = noise, jnp.zeros(())
        for k, (enter, offset, leave, bias) in enumerate(made):
            kept = (jnp.arange(size) + k) % 2 == 0
            units = jax.nn.softplus(enter @ jnp.where(kept, x, 0.0) + offset)
            scale, shift = jnp.split(leave @ units + bias, 2)
            scale = jnp.where(kept, 0.0, 2.0 * jnp.tanh(0.5 * scale))
            x = x * jnp.exp(scale) + jnp.where(kept, 0.0, shift)
            total = total + jnp.sum(scale)
        x, log_det = affine.push(last, x)
        return x, total + log_det

    return Guide(begin, push)
