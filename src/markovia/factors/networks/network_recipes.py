"""Recipes for networks of images and of sequences: settings, checked, that a module is made from later."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Literal, ParamSpec

from markovia.errors import InvalidArgument
from markovia.factors.networks.recipes import ACTIVATIONS, ModuleRecipe
from markovia.runtime.checks import Choice, Flag, Whole, check
from markovia.runtime.keyword_advice import unknown_argument

Settings = ParamSpec("Settings")
Direction = Literal["forward", "backward", "both"]
Image = tuple[int, int] | tuple[int, int, int]


def cnn(
    image: Image, outputs: int | str, *, channels: Sequence[int] = (16, 32), kernel: int = 3, hidden: int = 64,
    context: int = 0, activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a convolutional network from images to vectors ("scalar" for numbers).

    Parameters
    ----------
    image
        (height, width) or (channels, height, width); a vector of as many numbers is taken, too.
    channels, kernel
        Channels of the convolutions, each of which halves the image, and the odd width of their windows.
    hidden, context, activation
        The width of the hidden layer behind them, the numbers of further vectors that join there, and as in `mlp`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> mk.networks.cnn((8, 8), 3, channels=(4,), hidden=8).build(0)(np.zeros(64)).shape
    (3,)
    """
    return _of_images("cnn", (image, outputs), channels=channels, kernel=kernel, hidden=hidden, context=context,
                      activation=activation)  # fmt: skip


def cnn_decoder(
    inputs: int, image: Image, *, channels: Sequence[int] = (32, 16), kernel: int = 3, hidden: int = 64,
    flat: bool = False, activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a network from a vector (or several) to an image, each layer twice as large as the last.

    `flat` returns the image as one vector; other settings are those of `cnn`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> mk.networks.cnn_decoder(3, (9, 7), channels=(4,), hidden=8).build(0)(np.zeros(3)).shape
    (9, 7)
    """
    return _of_images("cnn_decoder", (inputs, image), channels=channels, kernel=kernel, hidden=hidden, flat=flat,
                      activation=activation)  # fmt: skip


def unet(
    image: Image, *, channels: Sequence[int] = (32, 64), kernel: int = 3, hidden: int = 64, context: int = 0,
    activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a U-Net: `module(x, t, *context)` has the shape of x, an image or its numbers as a vector.

    `channels` are those at the whole size, at half of it, and so on; `hidden` numbers are what every block is told of the
    time t, between 0 and 1, and of the `context` numbers of context; other settings are those of `cnn`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> mk.networks.unet((6, 5), channels=(4, 8), hidden=8).build(0)(np.zeros(30), 0.5).shape
    (30,)
    """
    return _of_images("unet", (image,), channels=channels, kernel=kernel, hidden=hidden, context=context,
                      activation=activation)  # fmt: skip


def rnn(
    inputs: int, outputs: int | str, *, hidden: int = 64, layers: int = 1, direction: Direction = "forward"
) -> ModuleRecipe:
    """Return a recipe for a plain recurrent network from sequences (steps, inputs) to sequences (steps, outputs).

    Parameters
    ----------
    inputs, outputs, hidden, layers
        Numbers a step ("scalar" returns (steps,)), the width of the state, and how many networks stand on each other.
    direction
        Whether a step's output has seen the steps before it ("forward"), after it ("backward"), or "both".

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> mk.networks.gru(2, 3, hidden=8, direction="both").build(0)(np.zeros((5, 2))).shape
    (5, 3)
    """
    return _checked("rnn", (inputs, outputs), hidden=hidden, layers=layers, direction=direction)


def attention(
    inputs: int, outputs: int | str, *, width: int = 64, heads: int = 4, layers: int = 2, causal: bool = False,
    positions: bool = True, activation: str = "silu",
) -> ModuleRecipe:  # fmt: skip
    """Return a recipe for a transformer encoder from sequences (steps, inputs) to sequences (steps, outputs).

    Parameters
    ----------
    width, heads, layers
        Numbers a step inside, which the heads share out, and blocks; other sizes as in `rnn`.
    causal, positions
        Whether a step sees only itself and those before it, and whether steps are told where they are.
    """
    found = _checked("attention", (inputs, outputs), width=width, heads=heads, layers=layers, causal=causal,
                     positions=positions, activation=activation)  # fmt: skip
    if width % heads:
        raise InvalidArgument(f"the heads share out width=, and {width} is no multiple of {heads}")
    return found


# -- checks ------------------------------------------------------------------------------------------------------------


def _checked(name: str, arguments: tuple[Any, ...], **settings: Any) -> ModuleRecipe:
    """Return a recipe whose sizes are whole numbers and whose words are known."""
    for word, value in (*(("a size", a) for a in arguments if not isinstance(a, tuple)), *settings.items()):
        if word == "activation":
            check(word, value, Choice(ACTIVATIONS))
        elif word == "direction":
            check(word, value, Choice(("forward", "backward", "both")))
        elif word in ("flat", "causal", "positions"):
            check(word, value, Flag())
        elif not isinstance(value, tuple) and value != "scalar":
            check(
                word if word in settings else f"{name}: every size",
                value,
                Whole(0 if word == "context" else 1),
            )
    return ModuleRecipe(name, arguments, tuple(settings.items()))


def _of_images(name: str, arguments: tuple[Any, ...], **settings: Any) -> ModuleRecipe:
    settings["channels"] = _lengths("channels=", settings["channels"], range(1, 20), "(16, 32)")
    image = "(height, width) or (channels, height, width)"
    place = 1 if name == "cnn_decoder" else 0
    shape = _lengths(f"the image of {name}", arguments[place], (2, 3), image)
    found = _checked(name, (*arguments[:place], shape, *arguments[place + 1 :]), **settings)
    if settings["kernel"] % 2 == 0:
        raise InvalidArgument(f"kernel= is an odd number, so that it has a middle, not {settings['kernel']}")
    return found


def _lengths(word: str, said: Any, lengths: Any, example: str) -> tuple[int, ...]:
    found = tuple(said) if isinstance(said, Sequence) and not isinstance(said, str) else ()
    if len(found) not in lengths or not all(Whole(1).admits(n) for n in found):
        raise InvalidArgument(f"{word} is given by whole numbers, {example}, not {said!r}")
    return tuple(int(n) for n in found)


def _like(recipe: Callable[Settings, ModuleRecipe], name: str, said: str) -> Callable[Settings, ModuleRecipe]:
    """Return a function that makes recipes of another name, with the same settings."""

    @wraps(recipe)
    def made(*arguments: Settings.args, **settings: Settings.kwargs) -> ModuleRecipe:
        if (advice := unknown_argument(recipe, settings, name, arguments)) is not None:
            raise advice
        found = recipe(*arguments, **settings)
        if name.startswith("gaussian_"):
            check(f"{name}: outputs", found.arguments[1], Whole(1))
        return replace(found, name=name)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return a recipe for {said}; settings as in `{recipe.__name__}`."
    return made


lstm = _like(rnn, "lstm", "a recurrent network with long short-term memory")
gru = _like(rnn, "gru", "a recurrent network with gates")
_BOTH = "that returns locations, and scales above zero"
gaussian_cnn = _like(cnn, "gaussian_cnn", f"a convolutional network {_BOTH}")
gaussian_rnn = _like(rnn, "gaussian_rnn", f"a plain recurrent network {_BOTH}, of every step")
gaussian_lstm = _like(rnn, "gaussian_lstm", f"a network with long short-term memory {_BOTH}, of every step")
gaussian_gru = _like(rnn, "gaussian_gru", f"a recurrent network with gates {_BOTH}, of every step")
gaussian_attention = _like(attention, "gaussian_attention", f"a transformer {_BOTH}, of every step")
