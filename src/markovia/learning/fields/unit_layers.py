"""Layers of units: the distributions that the units of a Boltzmann machine have given their inputs.

A unit with value y and input x has weight base(y) exp(x y), an exponential family in x, so one function says everything: the
log normaliser A(x) = log sum_y base(y) exp(x y), whose slope is the mean of the unit. Kinds: two states (0 and 1, or -1 and
1), one of several states (softmax), counts of words of a text (replicated softmax: Salakhutdinov and Hinton 2009), numbers
(Gaussian), and positive numbers (a Gaussian cut off at zero, whose mean is a soft rectifier: Su, Liao, Chen and Carin 2017).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax, jnp

UNBOUNDED = ("gaussian", "relu")
BELOW = -1e30
NEWTON = 3


@dataclass(frozen=True)
class UnitLayer:
    """Units of one kind, as vectors of `size` numbers.

    Parameters
    ----------
    kind, size
        "binary", "spin", "softmax", "replicated softmax", "gaussian" or "relu"; and the numbers of the layer.
    states
        Of softmax units: the number of states of each; a unit is a vector as long as the largest, with a one at its state.

    Examples
    --------
    >>> UnitLayer("softmax", 6, (2, 3)).one_hot(np.array([[1, 2]])).tolist()
    [[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]
    """

    kind: str
    size: int
    states: tuple[int, ...] = ()

    def log_normaliser(self, x: Any, shape: Any = None) -> Any:
        """Return A(x), summed over units; `shape`: log precisions of Gaussian units, lengths of counted texts."""
        return jnp.sum(self._log_normalisers(x, shape), axis=-1)

    def mean(self, x: Any, shape: Any = None) -> Any:
        """Return the means of units: the slope of A."""
        return jax.grad(lambda x: jnp.sum(self._log_normalisers(x, shape)))(x)

    def log_base(self, y: Any, shape: Any = None) -> Any:
        """Return log base(y), summed over units."""
        if self.kind == "gaussian":
            return -0.5 * jnp.sum(y * y * (1.0 if shape is None else jnp.exp(shape)), axis=-1)
        if self.kind == "relu":
            return -0.5 * jnp.sum(y * y, axis=-1)
        if self.kind == "replicated softmax":  # the texts with these counts
            logs = jax.scipy.special.gammaln(y + 1.0)
            return jax.scipy.special.gammaln(jnp.sum(y, axis=-1) + 1.0) - jnp.sum(logs, axis=-1)
        return jnp.zeros(y.shape[:-1])

    def draw(self, key: Any, x: Any, shape: Any = None) -> Any:
        """Return values drawn given inputs."""
        if self.kind == "binary":
            return (_uniform(key, x) < jax.nn.sigmoid(x)).astype(x.dtype)
        if self.kind == "spin":
            return jnp.where(_uniform(key, x) < jax.nn.sigmoid(2.0 * x), 1.0, -1.0).astype(x.dtype)
        if self.kind == "gaussian":
            precision = 1.0 if shape is None else jnp.exp(shape)
            return x / precision + jax.random.normal(key, x.shape) / jnp.sqrt(precision)
        if self.kind == "relu":
            return _positive_normal(key, x)
        if self.kind == "replicated softmax":
            lengths = jnp.broadcast_to(shape, x.shape[:-1])
            return jax.random.multinomial(key, lengths, jax.nn.softmax(x), dtype=x.dtype)
        chosen = jax.random.categorical(key, self._blocks(x))
        return jax.nn.one_hot(chosen, max(self.states), dtype=x.dtype).reshape(x.shape)

    def log_prob(self, y: Any, x: Any, shape: Any = None) -> Any:
        """Return the log density of a layer given its inputs."""
        return self.log_base(y, shape) + jnp.sum(x * y, axis=-1) - self.log_normaliser(x, shape)

    @property
    def cards(self) -> tuple[int, ...] | None:
        """The numbers of states of the units; None where they are infinitely many, or texts."""
        return (2,) * self.size if self.kind in ("binary", "spin") else self.states or None

    def values(self, codes: Any) -> Any:
        """Return the vectors of states given by number."""
        if self.kind == "softmax":
            return jax.nn.one_hot(codes, max(self.states)).reshape(*codes.shape[:-1], -1)
        return 1.0 * codes if self.kind == "binary" else 2.0 * codes - 1.0

    def one_hot(self, codes: Array) -> Array:
        """Return rows of states of softmax units as vectors, in NumPy."""
        wide: Array = np.eye(max(self.states))[codes.astype(int)]
        return wide.reshape(len(codes), -1)

    def _log_normalisers(self, x: Any, shape: Any) -> Any:
        if self.kind == "binary":
            return jax.nn.softplus(x)
        if self.kind == "spin":
            return jnp.logaddexp(x, -x)
        if self.kind == "gaussian":
            log_precision = jnp.zeros(()) if shape is None else shape
            return 0.5 * (x * x * jnp.exp(-log_precision) - log_precision + np.log(2 * np.pi))
        if self.kind == "relu":
            return 0.5 * (x * x + np.log(2 * np.pi)) + jax.scipy.special.log_ndtr(x)
        if self.kind == "replicated softmax":
            return (shape * jax.nn.logsumexp(x, axis=-1))[..., None]
        return jax.nn.logsumexp(self._blocks(x), axis=-1)

    def _blocks(self, x: Any) -> Any:
        """Return inputs by unit; those of states that a unit does not have are far below all others."""
        there = np.arange(max(self.states)) < np.array(self.states)[:, None]
        return jnp.where(there, x.reshape(*x.shape[:-1], *there.shape), BELOW)


def _uniform(key: Any, like: Any) -> Any:
    """Return numbers from 0 to 1, to 24 bits: hashes of their places under a key (Salmon and others 2011).

    Block Gibbs draws more than it multiplies, and JAX's own generator takes eight times as long on a processor.
    """
    first, second = jax.random.key_data(key)

    def mixed(word: Any) -> Any:
        word = (word ^ (word >> 16)) * jnp.uint32(0x7FEB352D)
        word = (word ^ (word >> 15)) * jnp.uint32(0x846CA68B)
        return word ^ (word >> 16)

    place = jax.lax.iota(jnp.uint32, like.size) * jnp.uint32(0x9E3779B9)
    bits = mixed(mixed(place + first) ^ second)
    return ((bits >> 8).astype(like.dtype) * 2.0**-24).reshape(like.shape)


def _positive_normal(key: Any, x: Any) -> Any:
    """Return draws of a normal with mean x above zero, by inverting its survival function in logarithms."""
    smallest = np.finfo(x.dtype).tiny
    target = jnp.log(jax.random.uniform(key, x.shape, minval=smallest)) + jax.scipy.special.log_ndtr(x)
    # z with log P(Z > z) = target: near enough at first, then Newton's steps on a concave function
    far = jnp.sqrt(jnp.maximum(-2.0 * target - jnp.log(2 * np.pi * jnp.maximum(-2.0 * target, 1.0)), 1.0))
    z = jnp.where(target < -8.0, far, -jax.scipy.special.ndtri(jnp.exp(jnp.maximum(target, -8.0))))
    z = jnp.where(jnp.isfinite(z), z, -x)
    for _ in range(NEWTON):
        log_survival = jax.scipy.special.log_ndtr(-z)
        slope = jnp.exp(-0.5 * (z * z + np.log(2 * np.pi)) - log_survival)
        z = jnp.where(slope > 1e-6, z + (log_survival - target) / jnp.maximum(slope, 1e-6), z)
    return jnp.maximum(x + z, 0.0)
