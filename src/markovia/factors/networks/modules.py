"""Modules that the recipes make, beyond those of Equinox."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.libraries import eqx, jax, jnp


class Perceptron(eqx.nn.MLP):
    """A multilayer perceptron of one vector, or of several that are put behind each other."""

    def __call__(self, *arguments: Any, key: Any = None) -> Any:
        """Return what the network says of the vectors."""
        if self.in_size == "scalar":
            x = jnp.asarray(arguments[0])
            misfit(self, "one number, shape ()", arguments, len(arguments) == 1 and x.shape == ())
        else:
            misfit(self, "vectors", arguments, len(arguments) > 1 or jnp.ndim(arguments[0]) < 2)
            x = joined(arguments)
            misfit(self, f"a vector of shape ({self.in_size},)", arguments, x.shape == (self.in_size,))
        # vectors times matrices, which stay in this order when rows are mapped over; the other one would be turned twice
        x = jnp.reshape(x, (-1,))
        layers: Any = self.layers
        *inner, last = layers
        for layer in inner:
            x = self.activation(x @ layer.weight.T + layer.bias)
        x = x @ last.weight.T + last.bias
        return x[0] if self.out_size == "scalar" else x


def numbers_of(key: Any, *more: int) -> np.random.Generator:
    """Return the random numbers that a key stands for, with whole numbers beside it."""
    if isinstance(key, np.random.Generator):
        return key
    return np.random.default_rng([*np.asarray(key).ravel().tolist(), *more])


def filled(
    key: Any, make: Callable[..., Any], *arguments: Any, limit: float | None = None, **settings: Any
) -> Any:
    """Return an Equinox module with numbers drawn by NumPy; JAX would compile a program for every shape of them.

    They are uniform up to a limit, which for weights and the bias behind them is one over the root of the inputs.
    """
    rng = numbers_of(key)
    like = jax.eval_shape(lambda: jnp.zeros(2, np.uint32))
    shapes = eqx.filter_eval_shape(lambda key: make(*arguments, **settings, key=key), like)
    leaves, tree = jax.tree.flatten(shapes)
    made, most = [], limit or 1.0
    for leaf in leaves:
        array = hasattr(leaf, "shape")  # or an activation
        if array and limit is None and len(leaf.shape) in (2, 4):  # weights, whose bias comes next
            most = 1 / np.sqrt(prod(leaf.shape[1:]))
        made.append(rng.uniform(-most, most, leaf.shape).astype(leaf.dtype) if array else leaf)
    return jax.tree.unflatten(tree, made)


def perceptron(key: Any, inputs: Any, outputs: Any, hidden: int, layers: int, activation: Any) -> Any:
    """Return a perceptron with random numbers."""
    return filled(key, Perceptron, inputs, outputs, hidden, layers, activation)


class GaussianHead(eqx.Module):
    """A network of twice as many outputs, read as locations and scales."""

    network: Any

    def __call__(self, *arguments: Any) -> tuple[Any, Any]:
        """Return locations, and scales above zero."""
        loc, raw = jnp.split(self.network(*arguments), 2, axis=-1)
        return loc, jax.nn.softplus(raw) + 1e-5


def gaussian_maker(maker: Any) -> Any:
    """Return what makes a network with a `GaussianHead` of what makes one."""

    def made(key: Any, inputs: Any, outputs: int, **settings: Any) -> GaussianHead:
        return GaussianHead(maker(key, inputs, 2 * outputs, **settings))

    return made


def joined(arguments: tuple[Any, ...]) -> Any:
    """Return arrays behind each other as one vector."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(a)) for a in arguments])


def misfit(module: Any, wanted: str, arguments: tuple[Any, ...], fits: bool) -> None:
    """Raise unless arguments fit, with what the module takes and the shapes that it was given."""
    if not fits:
        shapes = ", ".join(str(tuple(jnp.shape(a))) for a in arguments) or "nothing"
        raise InvalidArgument(f"{type(module).__name__} takes {wanted}, and was given {shapes}")


def time_features(t: Any, n: int) -> Any:
    """Return n waves of a time between 0 and 1, from slow ones to fast ones, which a network tells times apart by."""
    rates = 1000.0 ** jnp.linspace(0.0, 1.0, n // 2) * jnp.asarray(t)
    return jnp.concatenate([jnp.sin(rates), jnp.cos(rates)])
