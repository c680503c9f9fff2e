"""Recipes for diffusions: a network that takes noise away, and the law that a chain of its steps is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markovia.errors import InvalidArgument
from markovia.factors.networks.recipes import ModuleRecipe, _check_activation


def denoiser(
    dims: int | Sequence[int],
    *,
    hidden: int = 128,
    layers: int = 3,
    context: int = 0,
    frequencies: int = 4,
    learned_variance: bool = False,
    activation: str = "silu",
) -> ModuleRecipe:
    """Return a recipe for a perceptron that sees a noisy element, the time between 0 and 1, and a context.

    Parameters
    ----------
    dims
        Numbers of an element, or the shape of an array.
    hidden, layers, activation
        Of the perceptron.
    context
        Numbers that it is told beside the element.
    frequencies
        How many waves of each coordinate it also sees, each twice as fine as the one before: thin shapes are learned in
        fewer steps.
    learned_variance
        Whether it also returns one number a coordinate, for `variance="learned"`.

    Examples
    --------
    >>> import markovia as mk
    >>> net = mk.networks.denoiser(2, hidden=8, layers=1).build(0)
    >>> net(__import__("numpy").zeros(2), 0.5).shape
    (2,)
    """
    _check_activation(activation)
    shape = [dims] if isinstance(dims, int) else list(dims)
    return ModuleRecipe(
        "denoiser", (shape,),
        (("hidden", hidden), ("layers", layers), ("context", context), ("frequencies", frequencies),
         ("learned_variance", learned_variance), ("activation", activation)),
    )  # fmt: skip


def diffusion(net: ModuleRecipe, *, shape: Sequence[int] | None = None, **settings: Any) -> ModuleRecipe:
    """Return a recipe for the law of a diffusion: `law.distribution(...)` in a node's function.

    `net` is a recipe for what takes noise away, `denoiser(...)` or another module of `(x, t, *context)`; `shape` that of an
    element, where the network does not say; settings are those of `DiffusionLaw`.

    Examples
    --------
    >>> import markovia as mk
    >>> law = mk.networks.diffusion(mk.networks.denoiser(2, hidden=8, layers=1), steps=10).build(0)
    >>> law.sample(__import__("jax").random.PRNGKey(0)).shape
    (2,)
    """
    if not isinstance(net, ModuleRecipe):
        raise InvalidArgument(f"diffusion takes a recipe such as mk.networks.denoiser(2), not {net!r}")
    written = [net.name, list(net.arguments), [[k, v] for k, v in net.settings]]
    said = {"shape": None if shape is None else list(shape), **settings}
    return ModuleRecipe("diffusion", (written,), tuple(said.items()))


def diffusion_distribution(net: Any, *context: Any, **settings: Any) -> Any:
    """Return the law of a diffusion as a distribution: what `mk.deep.Diffusion.distribution` is.

    `net` is a module of `(x, t, *context)`, in a node's function as the parameter comes, mapped over the node's plates; the
    context has these in front. Settings are those of `DiffusionLaw`.
    """
    from markovia.factors.networks.diffusion_laws import diffusion_law  # loads JAX

    if not hasattr(net, "lengths"):  # no parameter in a node's function, but the module itself
        return diffusion_law(net, **settings).distribution(*context)
    return replace(net, module=diffusion_law(net.module, **settings)).distribution(*context)
