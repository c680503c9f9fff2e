"""Gibbs sampling of numbers: blocks whose full conditionals are known are drawn from them, the rest by Metropolis steps.

A sweep has three parts. Numbers without a known conditional take a step of a random walk, one coordinate after the other,
with discrete latent variables summed out; then these are drawn, all together, given the numbers; then each block (see
`conditional_conjugacy`) is drawn given everything else. References: Geman and Geman (1984); Gelfand and Smith (1990);
Tierney (1994) for Metropolis within Gibbs; van Dyk and Park (2008) for the order when something is summed out.

Cost of a sweep: two gradients of its Markov blanket a block (a Hessian for correlated normal numbers), and one log density a
coordinate of the rest. Use it where most of the model is conditionally conjugate: sweeps need no tuning and no small steps.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.densities.closed_forms.conditional_conjugacy import find_blocks, refuse_holes
from markovia.inference.densities.engines.density_chains import ChainKernel, ChainStep, DensityChains
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.plated_elimination import draw_states
from markovia.runtime.checks import FromZero
from markovia.runtime.libraries import jax, jnp

ACCEPTED = 0.44
"""The share of steps along one coordinate that should be accepted."""


class SweepState(NamedTuple):
    """Where a chain is, and the logs of the sizes of its steps."""

    i: Any
    key: Any
    point: Any
    value: Any
    steps: Any
    acceptance: Any


@dataclass(frozen=True, kw_only=True)
class BlockGibbs(DensityChains):
    """Draw blocks with known conditionals from these, and the rest by Metropolis steps.

    Parameters
    ----------
    draws, warmup, chains, thin, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `NUTS`; the warm-up adapts the steps of what has no known conditional.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("mu", dist.Normal(0, 10))
    >>> m.add("tau", dist.Gamma(1, 1))
    >>> m.add("y", lambda mu, tau: dist.Normal(mu, tau**-0.5), plate="row")
    >>> post = m.query("mu", given={"y": [1.0, 2.0, 3.0, 2.0]}, engine="gibbs")
    >>> abs(post.mean() - 2.0) < 0.1
    True
    """

    warmup: FromZero = 200

    name: ClassVar[str] = "gibbs"
    advice: ClassVar[str] = "try more draws=, or engine='nuts'"
    reparameterize: Literal["none"] = "none"

    def kernel(self, density: Density) -> ChainKernel:
        """Return a sweep of one chain."""
        program = density.source
        if program is None:
            raise UnsupportedModel("engine 'gibbs' looks at the nodes of a model; a bare density has none")
        refuse_holes(program, self.name)
        with jax.ensure_compile_time_eval():
            found = find_blocks(program)
        terms, hidden, warmup = found.terms, program.hidden, self.warmup
        slots = [program.slots[n] for n in found.rest]
        loose = np.concatenate([np.zeros(0, int), *(np.arange(s.start, s.start + s.size) for s in slots)])

        def begin(key: Any, point: Any, value: Any, slope: Any, data: Any) -> SweepState:
            return SweepState(jnp.asarray(0), key, point, value, jnp.zeros(len(loose)), jnp.ones(()))

        def walk(state: SweepState, key: Any, data: Any) -> SweepState:
            """Take a step along each coordinate of the rest."""
            noise = jax.random.normal(key, (len(loose),))
            chances = jnp.log(jax.random.uniform(jax.random.fold_in(key, 1), (len(loose),)))
            rate = jnp.where(state.i < warmup, (state.i + 1.0) ** -0.6, 0.0)
            places = jnp.asarray(loose)

            def one(j: Any, carry: Any) -> Any:
                point, value, steps, total = carry
                there = point.at[places[j]].add(jnp.exp(steps[j]) * noise[j])
                height = density.log_prob(there, data)
                height = jnp.where(jnp.isnan(height), -jnp.inf, height)
                taken = chances[j] < height - value
                chance = jnp.minimum(1.0, jnp.exp(height - value))
                steps = steps.at[j].add(rate * (chance - ACCEPTED))
                return (
                    jnp.where(taken, there, point),
                    jnp.where(taken, height, value),
                    steps,
                    total + chance,
                )

            first = (state.point, state.value, state.steps, jnp.zeros(()))
            point, value, steps, total = jax.lax.fori_loop(0, len(loose), one, first)
            return state._replace(point=point, value=value, steps=steps, acceptance=total / len(loose))

        def advance(state: SweepState, data: Any) -> SweepState:
            key, first, second, *keys = jax.random.split(state.key, 3 + len(found.blocks))
            if len(loose):
                state = walk(state, first, data)
            env, _ = program.environment(state.point, data)
            values = {n: env[n] for n in terms.latents}
            shares: Any = {}
            if hidden:
                tables = terms.all_tables(values, data)
                codes = draw_states(second, list(tables.values()), hidden, program.layout.lengths)
                _, shares = terms.shares(tables, codes)
            for block, mine in zip(found.blocks, keys, strict=True):
                names = terms.blanket(list(block.shapes))

                def conditional(own: Any, names: Any = names, rest: Any = dict(values)) -> Any:  # noqa: B006
                    return terms.log_density({**rest, **own}, data, shares, names)

                eta = block.coefficients(conditional, {n: values[n] for n in block.shapes})
                values.update(block.draw(mine, eta))
            point = terms.free(values, data)
            return state._replace(i=state.i + 1, key=key, point=point, value=density.log_prob(point, data))

        def record(state: SweepState) -> ChainStep:
            size = jnp.exp(jnp.mean(state.steps)) if len(loose) else jnp.ones(())
            swept = jnp.asarray(float(len(loose) + len(found.blocks)))
            return ChainStep(
                state.point, state.value, state.acceptance, jnp.asarray(False), -state.value, swept, size
            )

        return ChainKernel(begin, advance, record)
