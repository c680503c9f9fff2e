"""Drawing states and observations forward, for many sequences at once."""

from typing import Any

from markovia.inference.particles.filtering import Cloud, Filter
from markovia.inference.particles.laws import draw_all
from markovia.inference.particles.model import ParticleModel, Where
from markovia.inference.particles.scan_resampling import ancestors
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled


def simulate(model: ParticleModel, keys: Any, n: int, u: Any, parameters: Any) -> tuple[Any, Any]:
    """Return n sequences of states and observations, steps first, as many as there are pairs of keys."""

    def begin(keys: Any, u: Any, parameters: Any) -> Any:
        where = Where(jnp.asarray(0), jax.tree.map(lambda x: x[0], u), parameters)
        states = draw_all(lambda _: model.first(where), jnp.zeros(n), keys[0, 0], "initial=")
        seen = draw_all(lambda x: model.seen(x, where), states, keys[0, 1], "observation=")
        later = _forward(
            model, keys[1:], states, jnp.asarray(1), jax.tree.map(lambda x: x[1:], u), parameters
        )
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), (states, seen), later)

    args = (keys, u, parameters)
    found: tuple[Any, Any] = compiled(model, "simulate", n, begin, *args)(*args)
    return found


def predict(filter_: Filter, keys: Any, cloud: Cloud, t: Any, u: Any, parameters: Any) -> tuple[Any, Any]:
    """Return states and observations of the steps from t on, one for each particle and of equal weight."""

    def ahead(keys: Any, cloud: Cloud, t: Any, u: Any, parameters: Any) -> Any:
        chosen = ancestors(filter_.scheme, keys[0, 0], cloud.log_weights)
        states = jax.tree.map(lambda x: x[chosen], cloud.states)
        return _forward(filter_.moves.model, keys[1:], states, t, u, parameters)

    args = (keys, cloud, t, u, parameters)
    found: tuple[Any, Any] = compiled(filter_.moves.model, "predict", filter_.settings, ahead, *args)(*args)
    return found


def _forward(model: ParticleModel, keys: Any, states: Any, t: Any, u: Any, parameters: Any) -> Any:
    def step(carry: Any, given: Any) -> Any:
        states, t = carry
        pair, u = given
        where = Where(t, u, parameters)
        moved = draw_all(lambda x: model.moved(x, where), states, pair[0], "transition=")
        moved = jax.tree.map(lambda new, old: new.astype(old.dtype), moved, states)
        seen = draw_all(lambda x: model.seen(x, where), moved, pair[1], "observation=")
        return (moved, t + 1), (moved, seen)

    return jax.lax.scan(step, (states, t), (keys, u))[1]
