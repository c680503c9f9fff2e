"""What parameters of new groups are drawn from: conjugate priors, or any distributions of any parameters.

`AlgorithmEight` asks for draws from the prior, densities, and moves of parameters given their rows. Conjugate ones are drawn
again; others walk at random on the unbounded scale, several steps of sizes that fall with the root of a group's rows.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.algorithm_8 import Params
from markovia.learning.components.conjugate import ConjugateComponents, Law
from markovia.learning.components.functions import DistributionFamily, FunctionEmission
from markovia.learning.latent.uncollapsed_gibbs import one_hot
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Kind, check
from markovia.runtime.double_precision import x64

STEPS, MANY = 6, 200
"""Steps of a walk a sweep; draws from the prior that a chain begins with the best of."""
LEAST = 16
"""Components are padded to this times a power of two, so that few programs are compiled."""


class ConjugateMeasure:
    """Components with a conjugate prior."""

    def __init__(self, component: ConjugateComponents, prior: Law, rows: Array) -> None:
        self.component, self.prior, self.rows = component, prior, rows

    def drawn(self, k: int, rng: np.random.Generator) -> Params:
        """Return parameters of k components from the prior."""
        return self.component.drawn(self.component.prior_law(self.prior, k), rng).arrays

    def log_densities(self, params: Params) -> Array:
        """Return the log density of each row in each component."""
        return self.component.with_arrays(params).log_densities(self.rows)

    def moved(self, params: Params, labels: Ints, rng: np.random.Generator) -> Params:
        """Return parameters drawn given the rows of each component."""
        belongs = one_hot(labels, len(next(iter(params.values()))))
        return self.component.redrawn(self.rows, belongs, self.prior, rng).arrays


class DistributionMeasure:
    """Components that a class of `markovia.distributions`, or a function, makes; each parameter has a distribution."""

    def __init__(self, make: Callable[..., Any], rows: Array, prior: Mapping[str, Any] | None) -> None:
        self.make, self.rows = make, rows
        self.prior = _with_defaults(make, rows, prior or {})

    def drawn(self, k: int, rng: np.random.Generator) -> Params:
        """Return parameters of k components from the prior."""
        import jax

        with x64():
            parts = [
                self._many(jax.random.key(int(rng.integers(2**31)))) for _ in range(-(-max(k, 1) // MANY))
            ]
        return {n: np.concatenate([np.asarray(part[n]) for part in parts])[:k] for n in self.prior}

    @cached_property
    def _many(self) -> Any:
        """Draws from the prior, always as many, so that they are compiled once."""
        import jax

        def draw(key: Any) -> Any:
            keys = jax.random.split(key, len(self.prior))
            laws = zip(keys, self.prior.items(), strict=True)
            return {n: d.sample(own, (MANY,)).astype(float) for own, (n, d) in laws}

        return jax.jit(draw)

    def log_densities(self, params: Params) -> Array:
        """Return the log density of each row in each component."""
        return densities(self.make, params, self.rows)

    def begun(self, labels: Ints, rng: np.random.Generator) -> Params:
        """Return for each component, of many draws from the prior, the one that suits its rows best."""
        many = self.drawn(MANY, rng)
        logs = np.maximum(self.log_densities(many), -1e300)
        best = (one_hot(labels, int(labels.max()) + 1).T @ logs).argmax(axis=1)
        found = {n: v[best] for n, v in many.items()}
        for _ in range(MANY // 10):
            found = self.moved(found, labels, rng)
        return found

    def moved(self, params: Params, labels: Ints, rng: np.random.Generator) -> Params:
        """Return parameters after some steps of a Metropolis walk."""
        k = len(next(iter(params.values())))
        more = _size(k) - k
        sizes = np.bincount(labels, minlength=k + more)
        target, to_free, to_bounded, spread = self._program
        with x64():
            free = {n: np.asarray(v) for n, v in to_free(_padded(params, more)).items()}
            now = np.asarray(target(free, self.rows, labels))
            for _ in range(STEPS):
                size = np.exp(rng.normal(0.0, 1.0, k + more)) / np.sqrt(sizes + 1.0)
                tried = {
                    n: v + rng.standard_normal(v.shape) * spread[n] * size.reshape(-1, *[1] * (v.ndim - 1))
                    for n, v in free.items()
                }
                then = np.asarray(target(tried, self.rows, labels))
                taken = np.log(rng.random(k + more)) < then - now
                now = np.where(taken, then, now)
                free = {
                    n: np.where(taken.reshape(-1, *[1] * (v.ndim - 1)), tried[n], v) for n, v in free.items()
                }
            return {n: np.array(v[:k], dtype=np.float64) for n, v in to_bounded(free).items()}

    @cached_property
    def _program(self) -> Any:
        """What JAX compiles: densities on the unbounded scale, the two scales, and how wide the prior is there."""
        import jax
        import jax.numpy as jnp
        import numpyro.distributions as theirs

        scales = {n: theirs.biject_to(d.support) for n, d in self.prior.items()}

        def to_bounded(free: Any) -> Any:
            return {n: t(free[n]) for n, t in scales.items()}

        def to_free(params: Any) -> Any:
            return {n: t.inv(params[n]) for n, t in scales.items()}

        def one(values: Any, row: Any) -> Any:
            made = self.make(**values)
            x = row[0] if row.shape == (1,) and made.event_shape == made.batch_shape == () else row
            x = x.astype(int) if made.support is not None and made.support.is_discrete else x
            return jnp.sum(jnp.where(made.support(x), made.log_prob(x), -jnp.inf))

        def target(free: Any, rows: Any, labels: Any) -> Any:
            params = to_bounded(free)
            k = len(next(iter(free.values())))
            logs = jax.vmap(one)({n: v[labels] for n, v in params.items()}, rows)
            found = jax.ops.segment_sum(logs, labels, num_segments=k)
            for n, t in scales.items():
                more = self.prior[n].log_prob(params[n]) + t.log_abs_det_jacobian(free[n], params[n])
                found = found + more.reshape(k, -1).sum(axis=1)
            return jnp.where(jnp.isnan(found), -jnp.inf, found)

        with x64():
            drawn = jax.jit(to_free)(self.drawn(MANY, np.random.default_rng(0)))
            spread = {n: np.asarray(v).std(axis=0) for n, v in drawn.items()}
        return jax.jit(target), jax.jit(to_free), jax.jit(to_bounded), spread


def _size(k: int) -> int:
    return LEAST << max(-(-k // LEAST) - 1, 0).bit_length()


def _padded(params: Params, more: int) -> Params:
    return {n: np.concatenate([v, np.repeat(v[:1], more, axis=0)]) for n, v in params.items()}


def densities(make: Callable[..., Any], params: Params, rows: Array) -> Array:
    """Return the log density of each row in each component that a function makes."""
    k = len(next(iter(params.values())))
    found = FunctionEmission(make, _padded(params, _size(k) - k)).log_densities(rows)[:, :k]
    return np.where(np.isnan(found), -np.inf, found)


def _with_defaults(make: Callable[..., Any], rows: Array, prior: Mapping[str, Any]) -> dict[str, Any]:
    """Return a distribution for each parameter; unsaid ones lie around what fits all rows as one component."""
    import numpyro.distributions as theirs

    check("prior", prior, Kind((Mapping,), "a mapping from a parameter to its distribution"))
    family = DistributionFamily(make)
    names = family.names
    for name, law in prior.items():
        if name not in names:
            raise InvalidArgument(f"prior= has {name!r}; the parameters are {', '.join(names)}")
        if not hasattr(law, "log_prob"):
            raise InvalidArgument(
                f"prior= says a distribution of markovia.distributions for {name!r}, not {law!r}"
            )
    if set(names) <= set(prior):
        return {n: prior[n] for n in names}
    from markovia.learning.components.families import separate

    seen = separate(rows, np.ones(len(rows), dtype=bool), np.array([0, len(rows)]))
    try:
        fitted = family.started(seen, 1, np.random.default_rng(0)).params
    except InvalidArgument:
        lacking = ", ".join(n for n in names if n not in prior)
        raise InvalidArgument(f"prior= needs a distribution for {lacking}") from None
    known = getattr(getattr(make, "__wrapped__", make), "arg_constraints", {})
    found = {}
    with x64():
        for name in names:
            centre = np.asarray(fitted[name][0])
            kind = known.get(name)
            if name in prior:
                found[name] = prior[name]
            elif kind is theirs.constraints.real:
                wide = np.broadcast_to(np.maximum(rows.std(axis=0), 1e-6), (rows.shape[1],))
                found[name] = theirs.Normal(centre, wide if centre.ndim else wide.mean())
            elif kind is theirs.constraints.positive:
                found[name] = theirs.LogNormal(np.log(np.maximum(centre, 1e-12)), 1.0)
            elif kind is theirs.constraints.unit_interval:
                found[name] = theirs.Beta(np.ones_like(centre), np.ones_like(centre))
            else:
                raise InvalidArgument(f"prior= needs a distribution for {name!r}")
    return found
