"""Emissions from any distribution: a class of `markovia.distributions`, or a function that returns a distribution.

The parameters of each state are learned on an unbounded scale, by L-BFGS with gradients from JAX inside each iteration of
EM; a run that is cut short still raises the objective, so EM does too (Dempster, Laird and Rubin, 1977, "generalised EM").
Cost of a step of learning: a few dozen evaluations of all densities.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument, MarkoviaError
from markovia.learning.components.families import (
    NOTHING,
    Components,
    Observations,
    clusters,
    separate,
    whole_steps,
)
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import numbers
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax

STEPS = 30
"""Steps of L-BFGS in one iteration of EM."""
JITTER = 0.5


@dataclass(frozen=True)
class DistributionFamily:
    """The emissions that a class of distributions, or a function of parameters, makes.

    Parameters
    ----------
    make
        Returns a distribution, given a state's parameters by name.
    given
        Starting values by name, one entry a state; a function needs them.
    """

    make: Callable[..., Any]
    given: Mapping[str, Any] | None = None
    priors: ClassVar[tuple[str, ...]] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        known = _constraints_of(self.make)
        if known is None:
            return tuple(inspect.signature(self.make).parameters)
        if self.given is not None and set(self.given) <= set(known):
            return tuple(self.given)
        said = inspect.signature(getattr(self.make, "__wrapped__", self.make)).parameters
        return tuple(n for n in known if n in said and said[n].default is not None)

    @staticmethod
    def read(sequences: Sequences) -> Observations:
        """Return rows of numbers as observations."""
        values, there = whole_steps(sequences, what="such")
        return separate(values, there, sequences.offsets)

    def of(self, k: int, params: Mapping[str, Any]) -> "FunctionEmission":
        """Return checked emissions from parameters."""
        values = {}
        for name in self.names:
            value = numbers(params[name], f"emission_params[{name!r}] are numbers, one entry a state")
            if value.ndim == 0 or len(value) != k or not np.isfinite(value).all():
                raise InvalidArgument(f"emission_params[{name!r}] has {k} finite entries, one a state")
            values[name] = value
        return _checked(FunctionEmission(self.make, values))

    def started(self, seen: Observations, k: int, rng: np.random.Generator) -> "FunctionEmission":
        """Return emissions that begin with clusters of the rows, or near the values that are given."""
        if self.given is not None:
            return self.of(k, self.given)._moved(rng)
        blank = _checked(FunctionEmission(self.make, first_guess(self, seen.rows, k)))
        weights = np.full((len(seen.rows), k), 0.1 / k)
        weights[np.arange(len(seen.rows)), clusters(seen.rows, k, rng)] += 1.0
        return blank.learned(seen.rows, weights, {})


@dataclass(frozen=True)
class FunctionEmission(Components):
    """Distributions that a function makes of `values`, arrays with one entry a state."""

    make: Callable[..., Any]
    values: Mapping[str, Array]
    names: ClassVar = ()
    width: ClassVar = None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(self.values)

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(next(iter(self.values.values())))

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(v.size for v in self._program.free(self.values).values())

    @property
    def _program(self) -> "_FunctionProgram":
        return _program(self.make, tuple((n, v.shape[1:]) for n, v in self.values.items()))

    def read(self, sequences: Sequences) -> Observations:
        """Return rows of numbers as observations."""
        return DistributionFamily.read(sequences)

    def log_densities(self, rows: Any) -> Array:
        """Return the log density of each row in each state; minus infinity outside the distribution's support."""
        if not len(rows):
            return np.zeros((0, self.n_states))
        with x64():
            return np.asarray(self._program.densities(dict(self.values), np.asarray(rows)), dtype=np.float64)

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the emission that makes weighted rows more probable, and most probable where it is easy to find."""
        if weights.sum() <= NOTHING:
            return self
        program = self._program
        free = program.free(self.values)
        shapes = {n: v.shape for n, v in free.items()}
        begin = np.concatenate([v.ravel() for v in free.values()])
        size = float(weights.sum())
        rows = np.asarray(rows)

        def loss(flat: Array) -> tuple[float, Array]:
            with x64():
                value, slope = program.loss(_unflat(flat, shapes), rows, weights)
            return float(value), np.concatenate([np.asarray(slope[n]).ravel() for n in shapes])

        found = minimise(loss, begin, height=size, max_iter=STEPS, flat=2e-9)
        if not found.value < loss(begin)[0]:
            return self
        return replace(self, values=program.bounded(_unflat(found.point, shapes)))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return an observation from each of some states."""
        out: Any = None
        with x64():
            for k in np.unique(states).tolist():
                here = np.flatnonzero(states == k)
                made = self.make(**{n: v[k] for n, v in self.values.items()})
                key = jax.random.key(int(rng.integers(2**31)))
                drawn = np.asarray(made.sample(key, (len(here),))).reshape(len(here), -1)
                out = np.empty((len(states), drawn.shape[1]), drawn.dtype) if out is None else out
                out[here] = drawn
        return out

    def _moved(self, rng: np.random.Generator) -> "FunctionEmission":
        """Return values near by."""
        free = self._program.free(self.values)
        moved = {n: v + JITTER * rng.standard_normal(v.shape) for n, v in free.items()}
        return replace(self, values=self._program.bounded(moved))


@dataclass(frozen=True)
class _FunctionProgram:
    """What JAX compiles for one function: densities, the loss of learning with its slope, and the two scales."""

    densities: Callable[..., Any]
    loss: Callable[..., Any]
    to_free: Callable[..., Any]
    to_bounded: Callable[..., Any]

    def free(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return values on the unbounded scale."""
        with x64():
            return {n: np.asarray(v) for n, v in self.to_free(dict(values)).items()}

    def bounded(self, free: Mapping[str, Array]) -> dict[str, Array]:
        """Return values of numbers on the unbounded scale."""
        with x64():
            return {n: np.asarray(v) for n, v in self.to_bounded(dict(free)).items()}


@lru_cache(maxsize=64)
def _program(make: Callable[..., Any], shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> _FunctionProgram:
    import jax.numpy as jnp
    import numpyro.distributions as theirs

    constraints = _constraints_at(make, dict(shapes))
    scales = {n: theirs.biject_to(c) for n, c in constraints.items()}

    def one(values: Any, rows: Any) -> Any:
        made = make(**values)
        plain = rows.shape[1] == 1 and made.event_shape == () and made.batch_shape == ()
        x = rows[:, 0] if plain else rows
        x = x.astype(int) if made.support is not None and made.support.is_discrete else x
        logs = jnp.where(made.support(x), made.log_prob(x), -jnp.inf)
        return logs.reshape(len(rows), -1).sum(axis=1)

    def densities(values: Any, rows: Any) -> Any:
        return jax.vmap(one, in_axes=(0, None), out_axes=1)(values, rows)

    def to_bounded(free: Any) -> Any:
        return {n: jax.vmap(scales[n])(v) for n, v in free.items()}

    def loss(free: Any, rows: Any, weights: Any) -> Any:
        logs = densities(to_bounded(free), rows)
        used = weights > 0.0
        return -jnp.sum(jnp.where(used, weights * jnp.where(used, logs, 0.0), 0.0))

    def to_free(values: Any) -> Any:
        return {n: jax.vmap(scales[n].inv)(v) for n, v in values.items()}

    return _FunctionProgram(
        jax.jit(densities), jax.jit(jax.value_and_grad(loss)), jax.jit(to_free), jax.jit(to_bounded)
    )


def _constraints_of(make: Callable[..., Any]) -> Any:
    """Return what a class of distributions says of its parameters; None for a function."""
    inner = getattr(make, "__wrapped__", make)
    return getattr(inner, "arg_constraints", None) if isinstance(inner, type) else None


def _constraints_at(make: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return where each parameter may be: as the distribution says that a function makes, else anywhere."""
    import numpyro.distributions as theirs

    known = _constraints_of(make)
    if known is None:
        import jax

        traced: list[
            Any
        ] = []  # constraints belong to the class, so that no values are needed, and none are made up
        with x64():
            jax.eval_shape(
                lambda values: traced.append(make(**values)), {n: np.empty(s) for n, s in shapes.items()}
            )
        made: Any = traced[0]
        known = {}
        while made is not None:
            known = {**getattr(made, "arg_constraints", {}), **known}
            made = getattr(made, "base_dist", None)
    return {n: known.get(n, theirs.constraints.real) for n in shapes}


def first_guess(family: DistributionFamily, rows: Array, k: int) -> dict[str, Array]:
    """Return one guess for all states: the mean and spread where names say so, else the middle of what may be."""
    import numpyro.distributions as theirs

    known = _constraints_of(family.make)
    if known is None:
        raise InvalidArgument(
            f"a function of {', '.join(family.names)} needs starting values by name, one a state: emission_params= of an "
            "HMM, params_init= of a mixture"
        )
    d = rows.shape[1]
    whole = getattr(getattr(family.make, "__wrapped__", family.make), "support", None)
    spread = getattr(whole, "event_dim", 0) == 0 and d > 1
    found = {}
    with x64():
        for name in family.names:
            deep = known[name].event_dim
            shape = (d,) * deep if deep else ((d,) if spread else ())
            scale = theirs.biject_to(known[name])
            middle = np.asarray(scale(np.zeros(scale.inverse_shape(shape))))
            if name == "loc":
                middle = np.broadcast_to(rows.mean(axis=0), shape) if shape else rows.mean()
            elif name == "scale":
                middle = np.broadcast_to(rows.std(axis=0), shape) if shape else rows.std()
                middle = np.where(middle > 0.0, middle, 1.0)
            found[name] = np.repeat(np.asarray(middle, dtype=np.float64)[None], k, axis=0)
    return found


def _checked(emission: FunctionEmission) -> FunctionEmission:
    """Return emissions whose function makes a distribution of their values, and whose values may be."""
    try:
        with x64():
            made = emission.make(**{n: v[0] for n, v in emission.values.items()})
    except MarkoviaError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise InvalidArgument(
            f"emission= makes no distribution of {', '.join(emission.values)}: {type(error).__name__}: {error}"
        ) from error
    if not hasattr(made, "log_prob") or not hasattr(made, "support"):
        raise InvalidArgument(
            f"emission= returns a {type(made).__name__}; it returns a distribution of markovia.distributions"
        )
    constraints = _constraints_at(emission.make, {n: v.shape[1:] for n, v in emission.values.items()})
    for name, value in emission.values.items():
        with x64():
            inside = np.asarray(constraints[name](value))
        if not inside.all():
            raise InvalidArgument(f"emission_params[{name!r}] has a value outside {constraints[name]}")
    return emission


def _unflat(flat: Array, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    found, at = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        found[name] = flat[at : at + size].reshape(shape)
        at += size
    return found
