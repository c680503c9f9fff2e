"""Laws of actions given inputs, in JAX for gradients and in NumPy to act with: states of a softmax, or normal numbers.

Both have the same functions, so that policy gradients and actor-critics are written once. Parameters are mappings with
the module "policy", and for numbers "log_scale", one for each; a law is what the module says of rows of inputs.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from markovia.learning.control.acting import log_softmax, mapped, network
from markovia.learning.control.worlds import WorldSpaces
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax, jnp

START = -0.5
"""The log scale of numbers at the start, in halves of their range."""


class ActionLaw(Protocol):
    """How actions are drawn given what a module says of inputs."""

    @property
    def log_prior(self) -> float:
        """The log probability (density) of an action where all are equally likely."""

    def begin(self, given: Any, inputs: int, seed: int, hidden: int) -> dict[str, Any]:
        """Return the parameters at the start."""

    def log_probs(self, parameters: Mapping[str, Any], inputs: Any, actions: Any) -> Any:
        """Return log probabilities (densities) of an action each."""

    def entropy(self, parameters: Mapping[str, Any], inputs: Any) -> Any:
        """Return the entropy of each row's law."""

    def divergence(self, fixed: Mapping[str, Any], parameters: Mapping[str, Any], inputs: Any) -> Any:
        """Return how far each row's law is from that of fixed parameters (Kullback and Leibler)."""

    def draw(self, said: Array, extra: Any, rng: np.random.Generator) -> Any:
        """Return an action for each row of what the module says."""

    def best(self, said: Array) -> Any:
        """Return the likeliest action for each row."""

    def log_probs_said(self, said: Array, extra: Any, actions: Any) -> Array:
        """Return log probabilities of actions given what the module said, in NumPy."""


class CountedActions(NamedTuple):
    """Actions of a softmax: the module returns a logit each."""

    n: int

    @property
    def log_prior(self) -> float:
        """The log probability of an action where all are equally likely."""
        return -float(np.log(self.n))

    def begin(self, given: Any, inputs: int, seed: int, hidden: int) -> dict[str, Any]:
        """Return the parameters at the start."""
        return {"policy": network(given, inputs, self.n, seed, hidden=hidden, activation="tanh", last=0.01)}

    def log_probs(self, parameters: Mapping[str, Any], inputs: Any, actions: Any) -> Any:
        """Return log probabilities of an action each."""
        logs = jax.nn.log_softmax(mapped(parameters["policy"], inputs))
        return jnp.take_along_axis(logs, actions[:, None], axis=1)[:, 0]

    def entropy(self, parameters: Mapping[str, Any], inputs: Any) -> Any:
        """Return the entropy of each row's law."""
        logs = jax.nn.log_softmax(mapped(parameters["policy"], inputs))
        return -jnp.sum(jnp.exp(logs) * logs, axis=1)

    def divergence(self, fixed: Mapping[str, Any], parameters: Mapping[str, Any], inputs: Any) -> Any:
        """Return how far each row's law is from that of fixed parameters."""
        old, new = (jax.nn.log_softmax(mapped(p["policy"], inputs)) for p in (fixed, parameters))
        return jnp.sum(jnp.exp(old) * (old - new), axis=1)

    def draw(self, said: Array, extra: Any, rng: np.random.Generator) -> Any:
        """Return an action for each row: the largest logit with Gumbel noise."""
        return np.argmax(said + rng.gumbel(size=said.shape), axis=1)

    def best(self, said: Array) -> Any:
        """Return the likeliest action for each row."""
        return np.argmax(said, axis=1)

    def log_probs_said(self, said: Array, extra: Any, actions: Any) -> Array:
        """Return log probabilities of actions given what the module said, in NumPy."""
        found: Array = np.take_along_axis(log_softmax(said), np.asarray(actions)[:, None], axis=1)[:, 0]
        return found


class NormalNumbers(NamedTuple):
    """Actions of independent normal numbers: the module returns locations, in halves of their range around its middle."""

    middle: Array
    half: Array

    @property
    def log_prior(self) -> float:
        """The log density of actions that are uniform over their range, in halves of it."""
        return -len(self.half) * float(np.log(2.0))

    def begin(self, given: Any, inputs: int, seed: int, hidden: int) -> dict[str, Any]:
        """Return the parameters at the start."""
        k = len(self.half)
        module = network(given, inputs, k, seed, hidden=hidden, activation="tanh", last=0.01)
        return {"policy": module, "log_scale": np.full(k, START, np.float32)}

    def log_probs(self, parameters: Mapping[str, Any], inputs: Any, actions: Any) -> Any:
        """Return log densities of an action each, in halves of the range."""
        loc, log_scale = mapped(parameters["policy"], inputs), parameters["log_scale"]
        z = ((actions - self.middle) / self.half - loc) * jnp.exp(-log_scale)
        return jnp.sum(-0.5 * z**2 - log_scale - 0.5 * np.log(2 * np.pi), axis=1)

    def entropy(self, parameters: Mapping[str, Any], inputs: Any) -> Any:
        """Return the entropy of each row's law."""
        one = jnp.sum(parameters["log_scale"] + 0.5 * (1.0 + np.log(2 * np.pi)))
        return jnp.broadcast_to(one, (len(inputs),))

    def divergence(self, fixed: Mapping[str, Any], parameters: Mapping[str, Any], inputs: Any) -> Any:
        """Return how far each row's law is from that of fixed parameters."""
        moved = mapped(fixed["policy"], inputs) - mapped(parameters["policy"], inputs)
        ratio = fixed["log_scale"] - parameters["log_scale"]
        spread = jnp.exp(2 * ratio) + moved**2 * jnp.exp(-2 * parameters["log_scale"])
        return jnp.sum(0.5 * spread - 0.5 - ratio, axis=1)

    def draw(self, said: Array, extra: Any, rng: np.random.Generator) -> Any:
        """Return an action for each row."""
        return self.middle + self.half * (said + np.exp(extra) * rng.standard_normal(said.shape))

    def best(self, said: Array) -> Any:
        """Return the likeliest action for each row."""
        return self.middle + self.half * said

    def log_probs_said(self, said: Array, extra: Any, actions: Any) -> Array:
        """Return log densities of actions given what the module said, in NumPy."""
        z = ((actions - self.middle) / self.half - said) * np.exp(-extra)
        found: Array = (-0.5 * z**2 - extra - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        return found


def law_of(spaces: WorldSpaces) -> ActionLaw:
    """Return the law that fits the actions of a world."""
    if spaces.actions is not None:
        return CountedActions(spaces.actions)
    return NormalNumbers(*middle_and_half(spaces))


def middle_and_half(spaces: WorldSpaces) -> tuple[Array, Array]:
    """Return the middle of the range of each number of an action, and half its width; 0 and 1 where it has no bounds."""
    low, high = np.asarray(spaces.low), np.asarray(spaces.high)
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    return (low + high) / 2, (high - low) / 2
