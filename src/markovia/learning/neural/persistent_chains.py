"""Maximum likelihood of models known up to a constant: data pull the log weight up, draws of the model push it down.

The gradient of the log likelihood is that of the log weight at the data less its mean under the model (Hinton 2002). Draws
come from Langevin chains that go on from step to step (Tieleman 2008), in a buffer of which a few move at a time (Du and
Mordatch 2019). The Metropolis correction makes the gradient right once the chains are in equilibrium; restarts let them find
new modes. With `restart=1` they are short runs (Nijkamp et al. 2019), which learn a sampler rather than a density.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.energy_rows import EnergyRows, score
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import Count, NumberRange, Positive, check_options
from markovia.runtime.libraries import jax, jnp

ACCEPTED = 0.574
"""The share of Langevin proposals that should be accepted (Roberts and Rosenthal 1998)."""
ADAPTED = 0.5
"""How fast the size of steps follows what is accepted."""


@dataclass(frozen=True, kw_only=True)
class PersistentChains:
    """Maximum likelihood with chains of Langevin steps ("pcd").

    Parameters
    ----------
    steps, step_size
        Langevin steps of a chain before each step of the parameters, and their size in units of the data's spread; with
        `adjusted` the first size, which adapts.
    chains, buffer
        Chains that move at a time, and all that are kept.
    restart
        The share of the chains that begin again, from the distributions of the nodes without the potentials: they find
        what the model likes far from the data.
    adjusted
        Whether Langevin steps are accepted or rejected, so that the chains leave the model as it is.
    """

    steps: Count = 20
    step_size: Positive = 0.3
    chains: Count = 100
    buffer: Count = 1000
    restart: Annotated[float, NumberRange(0.0, 1.0, said="a number from 0 to 1")] = 0.02
    adjusted: bool = True
    kind: ClassVar[str] = "persistent chains"
    is_bound: ClassVar[bool] = False
    unnormalised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player; the chains are in its memory."""
        energy = EnergyRows(program, "method 'pcd'")
        kept, moved = max(self.buffer, self.chains), self.chains
        rng = np.random.default_rng(0)
        at = rng.integers(0, program.n_rows, kept)
        inputs = [n for n in program.rows if n not in energy.names]
        memory = {
            "units": energy.units(),
            "chains": rng.standard_normal((kept, energy.size)),
            "inputs": {n: program.rows[n][at] for n in inputs},  # what a chain is given
            "step": np.log(self.step_size),
        }

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters, units = values(free), memory["units"]
            first, second, third, fourth, fifth = jax.random.split(key, 5)
            picked = jax.random.choice(first, kept, (moved,), replace=False)
            fresh = jax.random.bernoulli(second, self.restart, (moved,))
            others = jax.random.randint(fourth, (moved,), 0, len(batch.weight))
            given = {n: v[others] for n, v in batch.rows.items()}
            for n, v in memory["inputs"].items():
                new = jnp.reshape(fresh, (-1, *(1,) * (v.ndim - 1)))
                given[n] = jnp.where(new, given[n], v[picked])
            fixed = jax.lax.stop_gradient(parameters)
            base = energy.vectors(program.dream(fixed, given, third), units)
            start = jnp.where(fresh[:, None], base, memory["chains"][picked])
            ends, accepted = langevin(
                lambda v: energy.log_probs(fixed, given, v, units),
                start, fifth, jnp.exp(memory["step"]), self.steps, self.adjusted,
            )  # fmt: skip
            up = energy.log_probs(parameters, batch.rows, energy.vectors(batch.rows, units), units)
            down = energy.log_probs(parameters, given, ends, units)
            held = {n: v.at[picked].set(given[n]) for n, v in memory["inputs"].items()}
            memory = {
                **memory,
                "chains": memory["chains"].at[picked].set(ends),
                "inputs": held,
                "step": memory["step"] + ADAPTED * (accepted - ACCEPTED) * self.adjusted,
            }
            return jnp.mean(down) - weighted_mean(up, batch.weight), memory

        return ObjectiveSetup([Player(loss, names)], memory=memory)


def langevin(log_probs: Any, start: Any, key: Any, size: Any, steps: int, adjusted: bool) -> tuple[Any, Any]:
    """Return where chains are after some Langevin steps, and the share of proposals that was good enough to accept."""

    def climb(points: Any) -> tuple[Any, Any]:
        return log_probs(points), score(log_probs, points)

    def step(i: Any, carry: Any) -> Any:
        points, value, slope, total = carry
        first, second, third = jax.random.split(jax.random.fold_in(key, i), 3)
        noise = jax.random.normal(first, points.shape)
        # with the correction also small steps, since chains in steep tails reject the large ones for ever
        own = size * jax.random.uniform(third, (len(points), 1), minval=0.05) if adjusted else size
        there = points + 0.5 * own**2 * slope + own * noise
        new, rise = climb(there)
        back = (points - there) / own - 0.5 * own * rise
        ratio = new - value - 0.5 * jnp.sum(back**2 - noise**2, axis=1)
        good = jnp.minimum(1.0, jnp.exp(jnp.where(jnp.isfinite(ratio), ratio, -jnp.inf)))
        taken = jax.random.uniform(second, good.shape) < good if adjusted else jnp.isfinite(new)
        points = jnp.where(taken[:, None], there, points)
        slope = jnp.where(taken[:, None], rise, slope)
        return points, jnp.where(taken, new, value), slope, total + jnp.mean(good)

    begun = (start, *climb(start), jnp.zeros((), start.dtype))
    ends, _, _, total = jax.lax.fori_loop(0, steps, step, begun)
    return jax.lax.stop_gradient(ends), total / steps
