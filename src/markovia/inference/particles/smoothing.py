"""Smoothing from the particles that a filter kept: fixed lag, and backward simulation.

*Fixed lag* follows each particle's ancestors for some steps: what comes later than `lag` steps after a state is taken not to
matter, in return for the many different ancestors that are left (Kitagawa and Sato 2001). Cost: O(steps x particles x lag).
*Backward simulation* draws whole paths from the last step to the first, each state by its weight times the density of its
successor (Godsill, Doucet and West 2004): exact as particles grow. Cost: O(steps x particles x paths).
"""

from typing import Any

import numpy as np

from markovia.inference.particles.filtering import Kept
from markovia.inference.particles.laws import log_density
from markovia.inference.particles.model import ParticleModel, Where
from markovia.inference.particles.scan_resampling import running_sum
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

CELLS = 2**22
"""How many pairs of a path and a particle are weighed at a time."""


def fixed_lag(states: Any, weights: Array, ancestors: Ints, lag: int) -> tuple[Any, Array]:
    """Return states (steps, particles, ...) and weights of each step given the observations up to `lag` steps later.

    Parameters
    ----------
    states, weights, ancestors
        Of all steps of a filter, NumPy arrays.
    lag
        How many steps later.
    """
    steps, n = weights.shape
    last = np.minimum(np.arange(steps) + lag, steps - 1)
    place = np.broadcast_to(np.arange(n), (steps, n)).copy()
    for back in range(lag):
        # particles of step last - back, followed one step down where the state's own step is not reached
        at = last - back
        going = np.flatnonzero(at > np.arange(steps))
        place[going] = np.take_along_axis(ancestors[at[going]], place[going], axis=1)
    rows = np.arange(steps)[:, None]
    return jax.tree.map(lambda x: x[rows, place], states), weights[last]


def backward_paths(
    model: ParticleModel, key: Any, kept: Kept, count: Any, draws: int, u: Any, parameters: Any
) -> Any:
    """Return paths drawn backward, (steps, draws, ...), from the first `count` steps; call inside `x64()`."""

    def run(key: Any, kept: Kept, count: Any, u: Any, parameters: Any) -> Any:
        n = kept.log_weights.shape[1]
        each_path: Any = jax.lax.map

        def pick(log_weights: Any, u: Any) -> Any:
            sums = running_sum(jnp.exp(log_weights - log_weights.max()))
            return jnp.minimum((sums <= u * sums[-1]).sum(), n - 1)

        def at(t: Any) -> Any:
            return jax.tree.map(lambda x: x[t], (kept.states, kept.log_weights))

        def uniform(t: Any) -> Any:
            return jax.random.uniform(jax.random.fold_in(key, t), (draws,))

        states, log_weights = at(count - 1)
        first = jax.vmap(lambda u: pick(log_weights, u))(uniform(count - 1))
        x = jax.tree.map(lambda s: s[first], states)
        paths = jax.tree.map(
            lambda every, one: jnp.zeros((every.shape[0], *one.shape), one.dtype).at[count - 1].set(one),
            kept.states,
            x,
        )

        def step(i: Any, carry: Any) -> Any:
            x, paths = carry
            t = count - 1 - i
            states, log_weights = at(t)
            where = Where(t + 1, jax.tree.map(lambda v: v[t + 1], u), parameters)

            def before(given: Any) -> Any:
                after, level = given
                density: Any = jax.vmap(lambda s: log_density(model.moved(s, where), after, "transition="))
                return pick(log_weights + density(states), level)

            chosen: Any = each_path(before, (x, uniform(t)), batch_size=max(1, min(draws, CELLS // n)))
            x = jax.tree.map(lambda s: s[chosen], states)
            return x, jax.tree.map(lambda every, one: every.at[t].set(one), paths, x)

        return jax.lax.fori_loop(1, count, step, (x, paths))[1]

    args = (key, kept, count, u, parameters)
    return compiled(model, "backward simulation", draws, run, *args)(*args)
