"""Laws of one state or observation: a distribution, or several named ones, drawn for all particles at once.

A law is a distribution of `markovia.distributions`, or a mapping from names to distributions; there an entry may also be a
function of quantities of the same step that stand before it: `{"s": Categorical(p), "x": lambda s: Normal(m[s], 1)}`.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from markovia.errors import InvalidArgument, did_you_mean
from markovia.runtime.libraries import jax, jnp

ALONE = ""
"""The name of the only entry of a law that is one distribution."""


def entries(law: Any, role: str) -> dict[str, Any]:
    """Return a law's distributions, or functions that make them, by name in order; `role` is for messages."""
    if isinstance(law, Mapping):
        if not law:
            raise InvalidArgument(f"{role} gives an empty mapping, not distributions")
        return {str(name): _checked(made, f"{role}, {name!r}") for name, made in law.items()}
    return {ALONE: _checked(law, role, functions=False)}


def _checked(made: Any, role: str, functions: bool = True) -> Any:
    if hasattr(made, "log_prob") and hasattr(made, "sample"):
        return made
    if functions and callable(made):
        return made
    raise InvalidArgument(
        f"{role} gives {_said(made)}, not a distribution of markovia.distributions or a mapping of names to them"
    )


def _said(value: Any) -> str:
    return f"an array of shape {value.shape}" if getattr(value, "ndim", 0) else f"a {type(value).__name__}"


def distribution(entry: Any, known: Mapping[str, Any], role: str) -> Any:
    """Return an entry's distribution of one state: batch axes are independent numbers of the same state."""
    if not hasattr(entry, "log_prob"):
        names = getattr(entry, "needs", None)
        names = tuple(inspect.signature(entry).parameters) if names is None else names
        for name in names:
            if name not in known:
                raise InvalidArgument(
                    f"{role} needs {name!r}, which is no quantity that stands before it{did_you_mean(name, known)}"
                )
        entry = _checked(entry(**{n: known[n] for n in names}), role, functions=False)
    return entry.to_event(len(entry.batch_shape)) if entry.batch_shape else entry


def value_of(found: Mapping[str, Any]) -> Any:
    """Return values by name as a state: the only one itself, or the mapping."""
    return found[ALONE] if ALONE in found else dict(found)


def by_name(value: Any) -> dict[str, Any]:
    """Return a state's quantities by name."""
    return dict(value) if isinstance(value, Mapping) else {ALONE: value}


def each(law: Any, value: Any, role: str) -> dict[str, Any]:
    """Return a law's distributions by name, with the functions called on the value's quantities."""
    known = by_name(value)
    return {name: distribution(e, known, f"{role}, {name!r}") for name, e in entries(law, role).items()}


def log_density(law: Any, value: Any, role: str) -> Any:
    """Return the log density of one value; minus infinity outside the support."""
    known = by_name(value)
    return sum(_log_prob(d, known[name]) for name, d in each(law, value, role).items())


def log_density_of_seen(law: Any, y: Any, missing: Any, role: str) -> Any:
    """Return the log density of what is not missing of one observation."""
    known, holes = by_name(y), by_name(missing)
    total: Any = 0.0
    for name, d in each(law, y, role).items():
        if elementwise(d):
            base = d.base_dist if d.event_shape else d
            total += jnp.where(holes[name], 0.0, _log_prob(base, known[name])).sum()
        else:
            total += jnp.where(holes[name].any(), 0.0, _log_prob(d, known[name]))
    return total


def elementwise(d: Any) -> bool:
    """Whether the density of an array is a product over its numbers, so that some of them may be missing."""
    base = getattr(d, "base_dist", None)
    return not d.event_shape or (
        type(d).__name__ == "Independent" and base is not None and not base.event_shape
    )


def _log_prob(d: Any, value: Any) -> Any:
    if d.support is not None and d.support.is_discrete:
        value = jnp.round(value).astype(jnp.int64)
    found = d.log_prob(value)
    return found if d.support is None else jnp.where(d.support(value), found, -jnp.inf)


def mean(law: Any, role: str) -> Any:
    """Return the mean of a law; functions of other quantities are taken at their means."""
    found: dict[str, Any] = {}
    for name, entry in entries(law, role).items():
        found[name] = distribution(entry, found, role).mean
    return value_of(found)


def draw_all(make: Callable[[Any], Any], states: Any, key: Any, role: str) -> Any:
    """Draw one value for each particle of the law that its state has.

    Parameters
    ----------
    make
        From one state to its law.
    states
        A tree of arrays, particles first.
    key
        A JAX key.
    role
        What the law is, for messages.
    """
    n = jax.tree.leaves(states)[0].shape[0]
    drawn: dict[str, Any] = {}
    first = jax.tree.map(lambda x: x[0], states)
    names = _names(make, first, role)
    keys = [key] if len(names) == 1 else jax.random.split(key, len(names))
    for name, part in zip(names, keys, strict=True):
        known = {k: v for k, v in drawn.items() if k != ALONE}

        def one(x: Any, known: Any, name: str = name) -> Any:
            return distribution(entries(make(x), role)[name], known, f"{role}, {name!r}" if name else role)

        if _batches(one, first, jax.tree.map(lambda x: x[0], known)):
            from numpyro.distributions.batch_util import promote_batch_shape

            drawn[name] = promote_batch_shape(jax.vmap(one)(states, known)).sample(part)
        else:
            own = jax.random.split(part, n)
            drawn[name] = jax.vmap(lambda k, x, known, one=one: one(x, known).sample(k))(own, states, known)
    return value_of(drawn)


def _names(make: Callable[[Any], Any], state: Any, role: str) -> tuple[str, ...]:
    found: list[str] = []
    jax.eval_shape(lambda x: found.extend(entries(make(x), role)), state)
    return tuple(found)


@cache
def _batching() -> tuple[type, ...]:
    """Return families that draw for all particles from one key: each is just its parameters, none holds another."""
    import numpyro.distributions as theirs

    return (
        theirs.Normal, theirs.MultivariateNormal, theirs.Uniform, theirs.Exponential, theirs.Laplace, theirs.Cauchy,
        theirs.Gamma, theirs.Poisson, theirs.CategoricalLogits, theirs.CategoricalProbs, theirs.BernoulliLogits,
        theirs.BernoulliProbs, theirs.Delta,
    )  # fmt: skip


def _batches(one: Callable[..., Any], *args: Any) -> bool:
    """Whether the distributions of all particles can be made one, whose draws take one key: several times faster."""
    found: list[type] = []

    def look(*args: Any) -> None:
        d = one(*args)
        inside = d.base_dist if type(d).__name__ == "Independent" else d
        found.append(type(inside))

    jax.eval_shape(look, *args)
    return found[0] in _batching()
