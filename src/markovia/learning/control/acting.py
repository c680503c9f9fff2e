"""What chooses actions: the functions of an agent as modules, and a forward pass in NumPy to act with.

Modules are made from recipes of `mk.networks` (or given as modules, or `mk.Parameter`) and trained in JAX; a step in a world
asks for a few rows only, for which a call of compiled code takes ten times longer than the products of matrices. Inputs are
in units of what was seen: each number less its mean, over its spread.

Cost of acting: two small products of matrices a step for all agents.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.modules import Perceptron
from markovia.factors.networks.recipes import ACTIVATIONS, ModuleRecipe, activation_of, mlp
from markovia.learning.control.trajectories import RunningScale
from markovia.learning.control.worlds import WorldSpaces
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import eqx, jax
from markovia.runtime.seeds import random_keys

FARTHEST = 10.0
"""Inputs are cut so many spreads from their mean."""


class InputScale:
    """What makes inputs of networks of what was seen: indicators of states, or numbers in units of their spread."""

    def __init__(self, spaces: WorldSpaces) -> None:
        self.spaces = spaces
        self.running = RunningScale(spaces.features)

    def add(self, states: Any) -> None:
        """Count more observations; states have no unit."""
        if self.spaces.states is None:
            self.running.add(np.reshape(states, (-1, self.spaces.features)))

    def __call__(self, states: Any) -> Array:
        """Return inputs, one row for each observation."""
        rows = self.spaces.encoded(states)
        if self.spaces.states is None:
            rows = np.clip((rows - self.running.mean) / self.running.spread, -FARTHEST, FARTHEST)
        return rows.astype(np.float32)


class ForwardPass(NamedTuple):
    """A perceptron in NumPy: weights and biases of its layers, and what is between them."""

    layers: tuple[tuple[Array, Array], ...]
    activation: str

    def __call__(self, rows: Array) -> Array:
        """Return what the network says of each row."""
        apply = _IN_NUMPY[self.activation]
        *inner, last = self.layers
        for weight, bias in inner:
            rows = apply(rows @ weight + bias)
        return rows @ last[0] + last[1]


def _silu(x: Array) -> Array:
    return x / (1.0 + np.exp(np.minimum(-x, 80.0)))


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x**3)))


_IN_NUMPY: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "silu": _silu,
    "gelu": _gelu,
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(np.minimum(-x, 80.0))),
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
}


def forward_pass(module: Any) -> Any:
    """Return what computes a module for rows: in NumPy for perceptrons, compiled for others.

    Examples
    --------
    >>> module = mlp(2, 3, hidden=4).build(0)
    >>> forward_pass(module)(np.zeros((5, 2), np.float32)).shape
    (5, 3)
    """
    name = activation_name(module)
    if name is None:
        return CompiledPass(module)
    layers = tuple((np.asarray(x.weight).T, np.asarray(x.bias)) for x in module.layers)
    return ForwardPass(layers, name)


def activation_name(module: Any) -> str | None:
    """Return the name of a perceptron's activation; None for modules that are no perceptron with a known one."""
    if not isinstance(module, Perceptron) or module.in_size == "scalar" or module.out_size == "scalar":
        return None
    made = getattr(module.activation, "fn", module.activation)
    return next((n for n in ACTIVATIONS if made is activation_of(n)), None)


class CompiledPass:
    """A module of any kind, compiled for rows."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, rows: Array) -> Array:
        """Return what the module says of each row."""
        return np.asarray(_compiled_rows()(self.module, rows))


@cache
def _compiled_rows() -> Any:
    return eqx.filter_jit(mapped)


def network(
    given: Any,
    inputs: int,
    outputs: int,
    seed: int,
    *,
    hidden: int = 64,
    activation: str = "relu",
    last: float = 1.0,
) -> Any:
    """Return a module of so many inputs and outputs: the one that is given, or a perceptron with random numbers.

    Parameters
    ----------
    given
        A recipe of `mk.networks`, a module, a `mk.Parameter` of either, or None.
    inputs, outputs
        Numbers that go in and come out.
    seed
        What random numbers are made from.
    hidden, activation, last
        The width of the two layers of the default, what is between them, and a factor of the last weights: with a small one
        all actions are equally likely at first.
    """
    if isinstance(given, Parameter):
        given = given.recipe if given.value is None else given.value
    key = random_keys(seed, 1)[0]
    default = given is None
    made = mlp(inputs, outputs, hidden=hidden, activation=activation) if default else given
    module = made.build(key) if isinstance(made, ModuleRecipe) else made
    if not callable(module):
        raise InvalidArgument(
            f"a function of an agent is a module or a recipe of mk.networks, not {type(given).__name__}"
        )
    try:
        found = jax.eval_shape(jax.vmap(module), np.zeros((1, inputs), np.float32))
        fits = getattr(found, "shape", None) == (1, outputs)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidArgument(
            f"this function of an agent takes {inputs} numbers and returns {outputs}; {given!r} does not"
        )
    if default and last != 1.0:
        module = eqx.tree_at(lambda m: m.layers[-1].weight, module, replace_fn=lambda w: w * last)
        module = eqx.tree_at(lambda m: m.layers[-1].bias, module, replace_fn=lambda b: b * 0.0)
    return module


def mapped(module: Any, rows: Any) -> Any:
    """Return what a module says of each row, in JAX."""
    return jax.vmap(module)(rows)


def log_softmax(logits: Array) -> Array:
    """Return log probabilities of the last axis, in NumPy."""
    top = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(top - np.log(np.exp(top).sum(axis=-1, keepdims=True)))


def drawn_actions(logits: Array, rng: np.random.Generator) -> Any:
    """Return an action for each row, drawn with probabilities proportional to exp(logits): the largest with Gumbel noise."""
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=-1)
