"""Two-filter smoothing: a second filter runs backward, and both meet at each step.

The backward filter follows gamma[t](x) p(y[t:] | x) for artificial priors gamma. These are Gaussians with the moments that
the model has without observations, and its kernel is the regression of a state on its successor, both estimated from
simulated states; for a linear Gaussian model that is exact. At each step the backward particles are weighed by what the
forward particles predict, with gamma taken out. Reference: Briers, Doucet and Maskell (2010). Cost: O(steps x
particles x backward particles). States are real numbers or vectors.
"""

from typing import Any

from markovia.inference.particles.filtering import Filter, Kept, effective
from markovia.inference.particles.laws import draw_all, log_density
from markovia.inference.particles.model import Where
from markovia.inference.particles.moves import SeenSteps
from markovia.inference.particles.scan_resampling import ancestors
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

WIDER = 1.2
"""The backward kernel's variances are larger than estimated by this factor, so that it covers what is not linear."""
CELLS = 2**22


def two_filter(
    filter_: Filter, key: Any, seen: SeenSteps, kept: Kept, count: Any, m: int, parameters: Any
) -> tuple[Any, Any]:
    """Return m states a step (steps, m, ...) and their log weights given the whole sequence; call inside `x64()`."""

    def run(key: Any, seen: SeenSteps, kept: Kept, count: Any, parameters: Any) -> Any:
        return _run(filter_, key, seen, kept, count, m, parameters)

    args = (key, seen, kept, count, parameters)
    found: tuple[Any, Any] = compiled(filter_.moves.model, "two filters", (filter_.settings, m), run, *args)(
        *args
    )
    return found


def _run(filter_: Filter, key: Any, seen: SeenSteps, kept: Kept, count: Any, m: int, parameters: Any) -> Any:
    from jax.flatten_util import ravel_pytree
    from jax.scipy.stats import multivariate_normal as gaussian

    model, n = filter_.moves.model, filter_.n
    one = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), filter_.moves.shape.state)
    flat, unravel = ravel_pytree(one)
    d = len(flat)

    def vectors(states: Any) -> Any:
        return jax.vmap(lambda x: ravel_pytree(x)[0])(states)

    def at(t: Any) -> SeenSteps:
        return jax.tree.map(lambda x: x[t], seen)  # type: ignore[no-any-return]

    def where(t: Any) -> Where:
        return Where(t, at(t).u, parameters)

    def safe(cov: Any) -> Any:
        return cov + 1e-10 * jnp.trace(cov) * jnp.eye(d)

    # moments without observations
    def prior(states: Any, given: Any) -> Any:
        t, key = given
        v = vectors(states)
        mean = v.mean(axis=0)
        here = where(t + 1)
        after = draw_all(lambda x: model.moved(x, here), states, key, "transition=")
        after = jax.tree.map(lambda a, b: a.astype(b.dtype), after, states)
        w = vectors(after)
        both = jnp.cov(jnp.concatenate([v, w], axis=1).T)
        return after, (mean, w.mean(axis=0), safe(both[:d, :d]), both[:d, d:], safe(both[d:, d:]))

    room = kept.log_weights.shape[0]
    keys = jax.random.split(key, 3)
    start = draw_all(lambda _: model.first(where(0)), jnp.zeros(n), keys[0], "initial=")
    start = jax.tree.map(lambda x, like: x.astype(like.dtype), start, one)
    steps = jnp.arange(room), jax.random.split(keys[1], room)
    mean, mean_after, cov, cross, cov_after = jax.lax.scan(prior, start, steps)[1]

    def gamma(t: Any, v: Any) -> Any:
        return gaussian.logpdf(v, mean[t], cov[t])

    def weigh(t: Any, v: Any) -> Any:
        here, now = where(t), at(t)
        return jax.vmap(lambda x: filter_.moves.seen(unravel(x), here, now))(v)

    # the last step: around what the forward filter found
    def last(key: Any) -> Any:
        t = count - 1
        v = vectors(jax.tree.map(lambda x: x[t], kept.states))
        weights = jnp.exp(kept.log_weights[t])
        centre = weights @ v
        spread = safe(2.0 * ((v - centre) * weights[:, None]).T @ (v - centre))
        x = jax.random.multivariate_normal(key, centre, spread, (m,))
        return x, gamma(t, x) + weigh(t, x) - gaussian.logpdf(x, centre, spread)

    def combined(t: Any, v: Any, log_weights: Any) -> Any:
        """Return log weights of backward particles given the whole sequence."""
        here = where(t)

        def from_before(x: Any) -> Any:
            states = jax.tree.map(lambda s: s[t - 1], kept.states)
            f = jax.vmap(lambda s: log_density(model.moved(s, here), unravel(x), "transition="))(states)
            return jax.nn.logsumexp(f + kept.log_weights[t - 1])

        def from_start(x: Any) -> Any:
            return log_density(model.first(here), unravel(x), "initial=")

        reached = jax.lax.cond(
            t > 0,
            lambda v: jax.lax.map(from_before, v, batch_size=max(1, min(m, CELLS // n))),
            lambda v: jax.vmap(from_start)(v),
            v,
        )
        total = log_weights - gamma(t, v) + reached
        return total - jax.nn.logsumexp(total)

    x, w = last(keys[2])
    found = jnp.zeros((room, m, d)).at[count - 1].set(x)
    worth = jnp.zeros((room, m)).at[count - 1].set(combined(count - 1, x, w))

    def step(i: Any, carry: Any) -> Any:
        x, w, found, worth = carry
        t = count - 1 - i
        choosing, moving = jax.random.split(jax.random.fold_in(keys[2], i))
        w = w - jax.nn.logsumexp(w)
        chosen = ancestors("systematic", choosing, w)
        due = effective(w) < 0.5 * m
        x, w = jnp.where(due, x[chosen], x), jnp.where(due, 0.0, w)
        gain = jnp.linalg.solve(cov_after[t], cross[t].T).T
        rest = safe(WIDER * (cov[t] - gain @ cross[t].T))
        centre = mean[t] + (x - mean_after[t]) @ gain.T
        noise = jax.random.multivariate_normal(moving, jnp.zeros(d), rest, (m,))
        before, here = centre + noise, where(t + 1)
        f = jax.vmap(lambda a, b: log_density(model.moved(unravel(a), here), unravel(b), "transition="))(
            before, x
        )
        q = gaussian.logpdf(noise, jnp.zeros(d), rest)
        w = w + gamma(t, before) + f + weigh(t, before) - gamma(t + 1, x) - q
        return before, w, found.at[t].set(before), worth.at[t].set(combined(t, before, w))

    _, _, found, worth = jax.lax.fori_loop(1, count, step, (x, w, found, worth))
    return jax.vmap(jax.vmap(unravel))(found), worth
