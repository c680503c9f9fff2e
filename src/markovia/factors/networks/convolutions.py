"""Convolutional networks: from images to vectors, from vectors to images, and from images to images (U-Net).

References: LeCun, Bottou, Bengio and Haffner (1998); Odena, Dumoulin and Olah (2016) for enlarging before convolving, which
leaves no checkerboard; Ronneberger, Fischer and Brox (2015) and Ho, Jain and Abbeel (2020) for the U-Net with a time. An
image is (height, width) or (channels, height, width); a vector of as many numbers is taken for one, too.
"""

from itertools import pairwise
from math import gcd, prod
from typing import Any

from markovia.factors.networks.modules import (
    Perceptron,
    filled,
    gaussian_maker,
    misfit,
    numbers_of,
    perceptron,
    time_features,
)
from markovia.factors.networks.recipes import activation_of
from markovia.runtime.libraries import eqx, jax, jnp

TIMES = 32
"""Numbers that a time is told by."""


class ConvolutionalEncoder(eqx.Module):
    """Convolutions, each of which halves the image, then a perceptron; further arguments join before it."""

    layers: tuple[Any, ...]
    head: Perceptron
    image: tuple[int, ...] = eqx.field(static=True)
    activation: Any = eqx.field(static=True)

    def __call__(self, x: Any, *context: Any) -> Any:
        """Return the vector of an image."""
        x = as_channels(self, x, self.image)
        for layer in self.layers:
            x = self.activation(convolved(layer, x))
        return self.head(jnp.ravel(x), *context)


class ConvolutionalDecoder(eqx.Module):
    """A perceptron to a small image, which is enlarged and convolved until it has its size."""

    head: Perceptron
    layers: tuple[Any, ...]
    sizes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    image: tuple[int, ...] = eqx.field(static=True)
    activation: Any = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        """Return the image of a vector, or of several behind each other."""
        x = jnp.reshape(self.head(*arguments), (-1, *self.sizes[0]))
        for layer, size in zip(self.layers, self.sizes[1:], strict=True):
            x = convolved(layer, resized(self.activation(x), size))
        return jnp.reshape(x, self.image)


class ResidualBlock(eqx.Module):
    """Two convolutions beside the identity, shifted and scaled by what it is told."""

    norms: tuple[Any, Any]
    layers: tuple[Any, Any]
    told: Any
    across: Any
    activation: Any = eqx.field(static=True)

    def __call__(self, x: Any, about: Any) -> Any:
        """Return the image after the block."""
        scale, shift = jnp.split(self.told(about)[:, None, None], 2)
        y = convolved(self.layers[0], self.activation(self.norms[0](x)))
        y = convolved(self.layers[1], self.activation(self.norms[1](y) * (1 + scale) + shift))
        return y + convolved(self.across, x)


class UNet(eqx.Module):
    """Blocks at halved and halved sizes and back, with bridges between equal sizes; a time and context tell every block."""

    first: Any
    down: tuple[Any, ...]
    halving: tuple[Any, ...]
    middle: ResidualBlock
    up: tuple[Any, ...]
    last: Any
    about: Perceptron
    image: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, x: Any, t: Any, *context: Any) -> Any:
        """Return an image (or vector) of the shape of x, given a time between 0 and 1 and vectors of context."""
        about = self.about(time_features(t, TIMES), *context)
        y, bridges = convolved(self.first, as_channels(self, x, self.image)), []
        for block, halved in zip(self.down, self.halving, strict=True):
            y = block(y, about)
            bridges.append(y)
            y = convolved(halved, y)
        y = self.middle(y, about)
        for block in self.up:
            bridge = bridges.pop()
            y = block(jnp.concatenate([resized(y, bridge.shape[1:]), bridge]), about)
        return jnp.reshape(convolved(self.last, y), jnp.shape(x))


def as_channels(module: Any, x: Any, image: tuple[int, ...]) -> Any:
    """Return an image, or a vector of its numbers, as channels by rows by columns."""
    x = jnp.asarray(x)
    channels = image if len(image) == 3 else (1, *image)
    fits = x.shape in (image, channels, (prod(image),))
    misfit(module, f"an image of shape {image}, or its {prod(image)} numbers", (x,), fits)
    return jnp.reshape(x, channels)


def convolved(layer: Any, x: Any) -> Any:
    """Return a convolution of an image, in the wider type of the two: JAX convolves equal ones only."""
    kind = jnp.result_type(x, layer.weight)
    return jax.tree.map(lambda a: jnp.asarray(a, kind), layer)(jnp.asarray(x, kind))


def resized(x: Any, size: tuple[int, ...]) -> Any:
    """Return an image in another size, each number that of the nearest one."""
    return jax.image.resize(x, (x.shape[0], *size), "nearest")


def _halves(size: tuple[int, int], times: int) -> list[tuple[int, int]]:
    """Return a size and what is left of it after each halving, rounded up."""
    found = [size]
    for _ in range(times):
        found.append((-(-found[-1][0] // 2), -(-found[-1][1] // 2)))
    return found


def _convolution(rng: Any, inputs: int, outputs: int, kernel: int, stride: int = 1) -> Any:
    return filled(rng, eqx.nn.Conv2d, inputs, outputs, kernel, stride, kernel // 2)


def _shape(image: Any) -> tuple[tuple[int, ...], int, tuple[int, int]]:
    """Return an image's shape, channels and size."""
    image = tuple(int(n) for n in image)
    return image, image[0] if len(image) == 3 else 1, image[-2:]


def make_cnn(
    key: Any, image: Any, outputs: Any, *, channels: Any, kernel: int, hidden: int, context: int, activation: str
) -> Any:  # fmt: skip
    """Return a convolutional encoder."""
    image, depth, size = _shape(image)
    rng, act = numbers_of(key), activation_of(activation)
    widths = [depth, *channels]
    layers = tuple(_convolution(rng, a, b, kernel, 2) for a, b in pairwise(widths))
    flat = widths[-1] * prod(_halves(size, len(channels))[-1]) + context
    head = perceptron(rng, flat, outputs, hidden, 1, act)
    return ConvolutionalEncoder(layers, head, image, act)


make_gaussian_cnn = gaussian_maker(make_cnn)


def make_cnn_decoder(
    key: Any, inputs: int, image: Any, *, channels: Any, kernel: int, hidden: int, flat: bool, activation: str
) -> Any:  # fmt: skip
    """Return a convolutional decoder."""
    image, depth, size = _shape(image)
    rng, act = numbers_of(key), activation_of(activation)
    sizes = _halves(size, len(channels))[::-1]
    widths = [*channels, depth]
    head = perceptron(rng, inputs, widths[0] * prod(sizes[0]), hidden, 1, act)
    layers = tuple(_convolution(rng, a, b, kernel) for a, b in pairwise(widths))
    return ConvolutionalDecoder(head, layers, tuple(sizes), (prod(image),) if flat else image, act)


def make_unet(
    key: Any, image: Any, *, channels: Any, kernel: int, hidden: int, context: int, activation: str
) -> Any:
    """Return a U-Net."""
    image, depth, _ = _shape(image)
    act, widths = activation_of(activation), [channels[0], *channels]
    rng = numbers_of(key)

    def block(a: int, b: int) -> ResidualBlock:
        norms = (eqx.nn.GroupNorm(gcd(8, a), a), eqx.nn.GroupNorm(gcd(8, b), b))
        layers = (_convolution(rng, a, b, kernel), _convolution(rng, b, b, kernel))
        told = filled(rng, eqx.nn.Linear, hidden, 2 * b)
        return ResidualBlock(norms, layers, told, _convolution(rng, a, b, 1), act)

    pairs = list(zip(widths, channels, strict=False))
    return UNet(
        first=_convolution(rng, depth, widths[0], kernel),
        down=tuple(block(a, b) for a, b in pairs),
        halving=tuple(_convolution(rng, b, b, kernel, 2) for b in channels),
        middle=block(widths[-1], widths[-1]),
        up=tuple(block(2 * b, a) for a, b in reversed(pairs)),
        last=_convolution(rng, widths[0], depth, 1),
        about=perceptron(rng, TIMES + context, hidden, hidden, 1, act),
        image=image,
    )  # fmt: skip
