"""Autoregressive networks, whose output for each number looks only at numbers before it, and the laws that they are.

References: Larochelle and Murray (2011) for NADE, Germain, Gregor, Murray and Larochelle (2015) for masked perceptrons,
Papamakarios, Pavlakou and Murray (2017) and Kingma and others (2016) for flows of them, van den Oord, Kalchbrenner and
Kavukcuoglu (2016) for masked convolutions. A density is one pass; a draw is as many as there are numbers, since the same
pass, repeated with the same noise, has one more number right each time.
"""

from math import prod
from typing import Any

import numpy as np

from markovia.factors.networks.density_modules import DensityModule
from markovia.factors.networks.elementwise_maps import ElementwiseMap
from markovia.factors.networks.flow_layers import (
    Conditioner,
    Flip,
    FlowLayer,
    LayerChain,
    RepeatedLayer,
    joined,
)
from markovia.factors.networks.flow_modules import NormalisingFlow, checked
from markovia.factors.networks.modules import numbers_of
from markovia.runtime.libraries import eqx, jax, jnp, laws


class MaskedPerceptron(Conditioner):
    """A perceptron with connections cut so that output i looks at inputs before i, and at all of the context (MADE)."""

    def held(self) -> tuple[Any, ...]:
        """Return the layers with connections cut: a unit looks at the numbers up to its degree, an output at less."""
        dims = self.outputs[1]
        context = self.layers[0].in_features - dims
        # numbers have degrees 1, 2, ...; context has 0, and units of degree 0 look at it alone
        least = 0 if context or dims == 1 else 1
        seen = np.concatenate([np.arange(dims) + 1, np.zeros(context, dtype=int)])
        found = []
        for layer in self.layers[:-1]:
            units = least + np.arange(layer.out_features) % (dims - least)
            found.append(_cut(layer, units[:, None] >= seen))
            seen = units
        outputs = np.tile(np.arange(dims) + 1, self.outputs[0])
        return *found, _cut(self.layers[-1], outputs[:, None] > seen)


def _cut(layer: Any, mask: Any) -> Any:
    """Return a layer without some of its connections."""
    return eqx.tree_at(lambda m: m.weight, layer, layer.weight * mask)


class SharedPerceptron(eqx.Module):
    """One hidden layer for each number, which shares the weights of those before it (NADE): linear in their count."""

    inputs: Any
    outputs: Any
    bias: Any
    hidden: Any
    told: Any

    @classmethod
    def make(cls, rng: Any, dims: int, width: int, hidden: int, context: int) -> "SharedPerceptron":
        """Return one with `width` outputs for each number."""
        inputs = rng.normal(size=(dims, hidden)) / np.sqrt(dims)
        outputs = 0.1 * rng.normal(size=(width, dims, hidden)) / np.sqrt(hidden)
        told = rng.normal(size=(hidden, context)) / np.sqrt(max(context, 1))
        return cls(inputs, outputs, np.zeros((width, dims)), np.zeros(hidden), told)

    def __call__(self, value: Any, *context: Any) -> Any:
        """Return the numbers, those of one map along the first axis."""
        each = value[:, None] * self.inputs
        before = self.hidden + jnp.cumsum(each, axis=0) - each
        if context:
            before = before + self.told @ joined(context)
        return self.bias + jnp.einsum("wdh,dh->wd", self.outputs, jax.nn.sigmoid(before))


class MaskedConvolutions(Conditioner):
    """Convolutions that look at pixels above, and to the left in the same row (PixelCNN).

    The first leaves the pixel itself out (mask A), the others do not (mask B), since theirs has seen none of it.
    """

    def held(self) -> tuple[Any, ...]:
        """Return the convolutions with their kernels cut; context is told by planes, of which nothing is."""
        k = self.layers[0].kernel_size[0]
        before = np.arange(k * k).reshape(k, k) < k * k // 2
        itself = np.arange(k * k).reshape(k, k) <= k * k // 2
        told = np.arange(self.layers[0].in_channels)[:, None, None] >= self.outputs[0]
        return _cut(self.layers[0], before | told), *(_cut(layer, itself) for layer in self.layers[1:])

    def __call__(self, value: Any, *context: Any) -> Any:
        """Return logits of each pixel, states along the first axis."""
        planes, k = value[None], self.outputs[0]
        if k > 1:
            planes = (value[None] == jnp.arange(k)[:, None, None]).astype(value.dtype)
        return super().__call__(planes, *context)[:, 0]


class AutoregressiveLayer(FlowLayer):
    """Maps of each number that a network sets from those before it.

    Backward (MAF) it looks at elements: densities are one pass, draws many. Forward (IAF) it looks at the noise, and it
    is the other way round.
    """

    network: Any
    rule: ElementwiseMap = eqx.field(static=True)
    on_noise: bool = eqx.field(static=True)

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        if back != self.on_noise:
            found, log_slopes = self.rule.bent(self.network(value, *context), value, back)
            return found, jnp.sum(log_slopes)

        def again(guess: Any, _: Any) -> Any:
            found, log_slopes = self.rule.bent(self.network(guess[0], *context), value, back)
            return (found, jnp.sum(log_slopes)), None

        start = (jnp.zeros_like(value), jnp.zeros((), value.dtype))
        return jax.lax.scan(again, start, None, length=value.size)[0]


class AutoregressiveStates(DensityModule):
    """The law of a vector or a picture of states 0, 1, ...: a network has logits of each from those before it; exact."""

    network: Any
    shape: tuple[int, ...] = eqx.field(static=True)
    context_size: int = eqx.field(static=True)
    states: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of an element."""
        return self.shape

    @property
    def support(self) -> Any:
        """States."""
        constraints = laws.constraints
        one = constraints.boolean if self.states == 2 else constraints.integer_interval(0, self.states - 1)
        return constraints.independent(one, len(self.shape))

    def log_prob(self, value: Any, *context: Any) -> Any:
        """Return the log probability of an element."""
        x, *told = checked(self, value, context)
        logits = self.network(x, *told)
        if self.states == 2:
            return -jnp.sum(jax.nn.softplus(jnp.where(x > 0.5, -logits[0], logits[0])))
        picked = x[None] == jnp.reshape(jnp.arange(self.states), (-1,) + (1,) * x.ndim)
        return jnp.sum(jnp.where(picked, jax.nn.log_softmax(logits, axis=0), 0.0))

    def sample(self, key: Any, *context: Any) -> Any:
        """Return one element."""
        start, *told = checked(self, jnp.zeros(self.shape), context)
        k = 1 if self.states == 2 else self.states
        noise = (jax.random.logistic if k == 1 else jax.random.gumbel)(key, (k, *self.shape), start.dtype)

        def again(x: Any, _: Any) -> tuple[Any, None]:
            found = self.network(x, *told) + noise
            states = found[0] > 0 if k == 1 else jnp.argmax(found, axis=0)
            return states.astype(x.dtype), None

        return jax.lax.scan(again, start, None, length=prod(self.shape))[0].astype(int)


def make_autoregressive(
    key: Any, dims: int, *, kind: str, layers: int, hidden: int, depth: int, context: int, inverse: bool, bins: int,
    reach: float, activation: str,
) -> NormalisingFlow:  # fmt: skip
    """Return a flow of masked perceptrons, each followed by a flip."""
    rule, rng = ElementwiseMap(kind, bins, reach), numbers_of(key)

    def one() -> FlowLayer:
        net = MaskedPerceptron.make(rng, dims + context, (rule.width, dims), hidden, depth, activation)
        return LayerChain((AutoregressiveLayer(net, rule, inverse), Flip()))

    return NormalisingFlow(RepeatedLayer.of(one, layers), (dims,), context, "autoregressive")


def make_made(
    key: Any, dims: int, *, law: str, hidden: int, depth: int, context: int, activation: str
) -> DensityModule:
    """Return the law of a vector by a masked perceptron."""
    outputs = (1 + (law == "gaussian"), dims)
    net = MaskedPerceptron.make(numbers_of(key), dims + context, outputs, hidden, depth, activation)
    return _ordered(net, dims, law, context, "made")


def make_nade(key: Any, dims: int, *, law: str, hidden: int, context: int) -> DensityModule:
    """Return the law of a vector by a perceptron with shared weights."""
    net = SharedPerceptron.make(numbers_of(key), dims, 1 + (law == "gaussian"), hidden, context)
    return _ordered(net, dims, law, context, "nade")


def _ordered(net: Any, dims: int, law: str, context: int, name: str) -> DensityModule:
    """Return a law of numbers that are Gaussian, or Bernoulli, given those before them."""
    if law == "binary":
        return AutoregressiveStates(net, (dims,), context, 2, name)
    layer = AutoregressiveLayer(net, ElementwiseMap("affine"), False)
    return NormalisingFlow(layer, (dims,), context, name)


def make_pixel_cnn(
    key: Any, shape: Any, *, states: int, hidden: int, blocks: int, kernel: int, context: int, activation: str
) -> AutoregressiveStates:
    """Return the law of a picture of states, row by row."""
    planes = 1 if states == 2 else states
    sizes = (planes + context, (planes, 1), hidden, blocks, activation)
    net = MaskedConvolutions.make(numbers_of(key), *sizes, kernel=kernel)
    return AutoregressiveStates(net, tuple(shape), context, states, "pixel_cnn")
