"""Recipes for normalising flows and autoregressive laws: settings, from which `fit` makes a module with an exact density."""

from collections.abc import Sequence
from typing import Any

from markovia.errors import InvalidArgument
from markovia.factors.networks.recipes import ACTIVATIONS, ModuleRecipe
from markovia.runtime.checks import check_count, check_number

CHOICES = {
    "kind": ("affine", "additive", "spline"),
    "mixing": ("flip", "linear"),
    "trace": ("exact", "estimate"),
    "law": ("binary", "gaussian"),
    "activation": ACTIVATIONS,
}
"""What settings that are words may be."""
LEAST = {"context": 0, "depth": 0, "states": 2, "bins": 2}
"""The smallest counts; of others it is 1."""


def planar(dims: int, *, layers: int = 8, context: int = 0) -> ModuleRecipe:
    """Return a recipe for a flow of planar layers, each of which bends space along one direction; see `coupling`."""
    return _recipe("planar", (dims,), layers=layers, context=context)


def radial(dims: int, *, layers: int = 8, context: int = 0) -> ModuleRecipe:
    """Return a recipe for a flow of layers that swell or shrink space around a centre; see `coupling`."""
    return _recipe("radial", (dims,), layers=layers, context=context)


def linear(dims: int) -> ModuleRecipe:
    """Return a recipe for a flow of a shift, scales and an LU-factored matrix: the Gaussians."""
    return _recipe("linear", (dims,))


def coupling(
    dims: int, *, kind: str = "affine", layers: int = 8, hidden: int = 64, depth: int = 2, context: int = 0, bins: int = 8,
    reach: float = 5.0, mixing: str = "flip", activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a flow of coupling layers, each of which bends half of a vector by the other half.

    Parameters
    ----------
    dims, layers
        Numbers of an element, and couplings.
    kind
        What bends: "affine" (RealNVP), "additive" (NICE, volumes are kept), or "spline" (rational-quadratic pieces).
    hidden, depth, activation
        Width, hidden layers and activation of the perceptron in each.
    context
        Numbers that the law is given: `flow.distribution(c)` with vectors c of so many.
    bins, reach
        Of a spline, its pieces, and how far from zero it bends.
    mixing
        What is between couplings: "flip" swaps the halves; "linear" has a learned scale, shift and LU-factored matrix, too.

    Examples
    --------
    >>> import markovia as mk
    >>> import jax
    >>> flow = mk.flows.coupling(2, layers=2, hidden=8).build(0)
    >>> flow.sample(jax.random.PRNGKey(0)).shape
    (2,)
    """
    return _recipe("coupling", (dims,), kind=kind, layers=layers, hidden=hidden, depth=depth, context=context, bins=bins,
                   reach=reach, mixing=mixing, activation=activation)  # fmt: skip


def autoregressive(
    dims: int, *, kind: str = "affine", layers: int = 5, hidden: int = 64, depth: int = 2, context: int = 0,
    inverse: bool = False, bins: int = 8, reach: float = 5.0, activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a flow whose layers bend each number by those before it (MAF); see `coupling`.

    With `inverse` layers look at the noise instead (IAF): draws are then one pass, as guides want it, and densities as many
    as there are numbers.
    """
    return _recipe("autoregressive", (dims,), kind=kind, layers=layers, hidden=hidden, depth=depth, context=context,
                   inverse=bool(inverse), bins=bins, reach=reach, activation=activation)  # fmt: skip


def glow(
    shape: Sequence[int], *, levels: int = 2, steps: int = 4, hidden: int = 32, context: int = 0, kind: str = "affine",
    bins: int = 8, reach: float = 5.0, activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a flow of pictures, (height, width) or (channels, height, width), on several scales (GLOW).

    Each of the `levels` halves height and width, and has so many `steps`: a scale and shift of channels, a matrix that
    mixes them, and a coupling by convolutions. Other settings are those of `coupling`; the context is told to every pixel.
    """
    shape = _picture(shape, (2, 3))
    if any(side % 2**levels for side in shape[-2:]):
        raise InvalidArgument(
            f"{levels} levels halve a picture so often, so its sides are multiples of {2**levels}, not {shape[-2:]}"
        )
    return _recipe("glow", (shape,), levels=levels, steps=steps, hidden=hidden, context=context, kind=kind, bins=bins,
                   reach=reach, activation=activation)  # fmt: skip


def continuous(
    dims: int, *, hidden: int = 64, depth: int = 2, steps: int = 16, trace: str = "exact", context: int = 0,
    activation: str = "tanh",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for the flow of a differential equation whose right-hand side is a perceptron; see `coupling`.

    It is solved in so many `steps` of Runge and Kutta. The `trace` of its Jacobian is "exact", which takes dims passes, or
    an "estimate" by one: the law then has no density, but draws whose mean is the log density, and `fit` learns from those.
    """
    return _recipe("continuous", (dims,), hidden=hidden, depth=depth, steps=steps, trace=trace, context=context,
                   activation=activation)  # fmt: skip


def made(
    dims: int,
    *,
    law: str = "binary",
    hidden: int = 64,
    depth: int = 2,
    context: int = 0,
    activation: str = "silu",
) -> ModuleRecipe:
    """Return a recipe for numbers that are "binary" or "gaussian" given those before them, by a masked perceptron (MADE)."""
    return _recipe(
        "made", (dims,), law=law, hidden=hidden, depth=depth, context=context, activation=activation
    )


def nade(dims: int, *, law: str = "binary", hidden: int = 64, context: int = 0) -> ModuleRecipe:
    """Return a recipe for numbers that are "binary" or "gaussian" given those before them, with shared weights (NADE)."""
    return _recipe("nade", (dims,), law=law, hidden=hidden, context=context)


def pixel_cnn(
    shape: Sequence[int], *, states: int = 2, hidden: int = 32, blocks: int = 4, kernel: int = 3, context: int = 0,
    activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a picture (height, width) of states 0, 1, ..., each given those above and to the left (PixelCNN).

    There are so many `blocks` of masked convolutions with `hidden` planes before the last.
    """
    if kernel % 2 == 0:
        raise InvalidArgument(f"kernel= is odd, so that it has a middle, not {kernel}")
    return _recipe("pixel_cnn", (_picture(shape, (2,)),), states=states, hidden=hidden, blocks=blocks, kernel=kernel,
                   context=context, activation=activation)  # fmt: skip


def _recipe(name: str, arguments: tuple[Any, ...], **settings: Any) -> ModuleRecipe:
    """Return a recipe, its settings checked."""
    for word, value in (
        settings if isinstance(arguments[0], tuple) else {"dims": arguments[0], **settings}
    ).items():
        if word in CHOICES and value not in CHOICES[word]:
            raise InvalidArgument(f"{word}= is one of {', '.join(CHOICES[word])}, not {value!r}")
        if word == "reach":
            check_number(word, value, positive=True)
        elif word not in CHOICES and word != "inverse":
            check_count(word, value, LEAST.get(word, 1))
    return ModuleRecipe(name, arguments, tuple(settings.items()))


def _picture(shape: Sequence[int], axes: tuple[int, ...]) -> tuple[int, ...]:
    found = tuple(int(n) for n in shape)
    if len(found) not in axes or min(found) < 1:
        said = "(height, width)" + (" or (channels, height, width)" if 3 in axes else "")
        raise InvalidArgument(f"shape= of a picture is {said}, not {tuple(shape)}")
    return found
