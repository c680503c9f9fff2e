"""Recipes for modules: a name and settings, from which a module is made with a random key; files keep them as they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.registry import resolve

ACTIVATIONS = ("silu", "relu", "tanh", "gelu", "softplus", "sigmoid", "elu")


@dataclass(frozen=True)
class ModuleRecipe:
    """A module that is yet to be made: what it is called and its settings.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.networks.mlp(2, 3, hidden=8)
    mlp(2, 3, hidden=8, layers=2, activation='silu')
    >>> mk.networks.mlp(2, 3, hidden=8).build(0)(__import__("numpy").zeros(2)).shape
    (3,)
    """

    name: str
    arguments: tuple[Any, ...]
    settings: tuple[tuple[str, Any], ...]

    def build(self, seed: Any) -> Any:
        """Return the module, its numbers drawn from a seed or a key."""
        key = jax.random.PRNGKey(seed) if isinstance(seed, int) else seed
        module = resolve(MAKERS[self.name])(key, *self.arguments, **dict(self.settings))
        return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, module)

    def __repr__(self) -> str:
        parts = [*map(repr, self.arguments), *(f"{k}={v!r}" for k, v in self.settings)]
        return f"{self.name}({', '.join(parts)})"


def mlp(
    inputs: int, outputs: int | str, *, hidden: int = 64, layers: int = 2, activation: str = "silu"
) -> ModuleRecipe:
    """Return a recipe for a multilayer perceptron from vectors to vectors ("scalar" for numbers).

    Called with several vectors, it takes them behind each other.
    """
    _check_activation(activation)
    return ModuleRecipe(
        "mlp", (inputs, outputs), (("hidden", hidden), ("layers", layers), ("activation", activation))
    )


def gaussian_mlp(
    inputs: int, outputs: int, *, hidden: int = 64, layers: int = 2, activation: str = "silu"
) -> ModuleRecipe:
    """Return a recipe for a perceptron that returns two vectors: locations, and scales above zero."""
    _check_activation(activation)
    settings = (("hidden", hidden), ("layers", layers), ("activation", activation))
    return ModuleRecipe("gaussian_mlp", (inputs, outputs), settings)


def _check_activation(activation: str) -> None:
    if activation not in ACTIVATIONS:
        raise InvalidArgument(f"activation= is one of {', '.join(ACTIVATIONS)}, not {activation!r}")


def activation_of(name: str) -> Any:
    """Return an activation by name."""
    return jnp.tanh if name == "tanh" else getattr(jax.nn, name)


def _mlp(key: Any, inputs: int, outputs: Any, *, hidden: int, layers: int, activation: str) -> Any:
    from markovia.factors.networks.modules import perceptron  # a class of Equinox, which loads JAX

    return perceptron(key, inputs, outputs, hidden, layers, activation_of(activation))


def _gaussian_mlp(key: Any, inputs: int, outputs: int, **settings: Any) -> Any:
    from markovia.factors.networks.modules import gaussian_maker

    return gaussian_maker(_mlp)(key, inputs, outputs, **settings)


_HOME = "markovia.factors.networks."
MAKERS = {
    "mlp": _HOME + "recipes:_mlp",
    "gaussian_mlp": _HOME + "recipes:_gaussian_mlp",
    "amortised": _HOME + "standardising_encoder:make_amortised",
    **{
        n: _HOME + f"adversarial_modules:make_{n}"
        for n in ("spectral", "pyramid_generator", "pyramid_critic")
    },
    **{n: _HOME + f"convolutions:make_{n}" for n in ("cnn", "gaussian_cnn", "cnn_decoder", "unet")},
    **{n: _HOME + f"sequence_modules:make_{n}" for n in ("rnn", "lstm", "gru", "attention")},
    **{
        f"gaussian_{n}": _HOME + f"sequence_modules:make_gaussian_{n}"
        for n in ("rnn", "lstm", "gru", "attention")
    },
    "autoregressive": _HOME + "autoregressive_modules:make_autoregressive",
    "continuous": _HOME + "flow_modules:make_continuous",
    "coupling": _HOME + "flow_modules:make_coupling",
    "glow": _HOME + "flow_modules:make_glow",
    "linear": _HOME + "flow_modules:make_linear",
    "made": _HOME + "autoregressive_modules:make_made",
    "nade": _HOME + "autoregressive_modules:make_nade",
    "pixel_cnn": _HOME + "autoregressive_modules:make_pixel_cnn",
    "planar": _HOME + "flow_modules:make_planar",
    "radial": _HOME + "flow_modules:make_radial",
    "denoiser": _HOME + "diffusion_laws:make_denoiser",
    "diffusion": _HOME + "diffusion_laws:make_diffusion",
}
"""What makes a module of a recipe, by its name: `maker(key, *arguments, **settings)`, as "module:function"."""
