"""Layers of normalising flows: invertible maps of one element, each with the log-determinant of its Jacobian.

A layer is called with `(value, context, back)`: it returns the image of noise, or with `back` the noise behind an element,
and log |det| of that map. The first axis of a value has the channels, which couplings cut and matrices mix; pictures have
two more. References: Rezende and Mohamed (2015) for planar and radial layers, Dinh, Sohl-Dickstein and Bengio (2017) for
couplings, Kingma and Dhariwal (2018) for the rest of GLOW, Chen, Rubanova, Bettencourt and Duvenaud (2018) and Grathwohl
and others (2019) for differential equations and estimated traces.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from markovia.factors.networks.elementwise_maps import ElementwiseMap
from markovia.factors.networks.modules import filled
from markovia.factors.networks.recipes import activation_of
from markovia.runtime.libraries import eqx, jax, jnp


class FlowLayer(eqx.Module):
    """An invertible map of one element, given its context."""

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        raise NotImplementedError


class LayerChain(FlowLayer):
    """Layers one after the other, the one next to the noise first."""

    layers: tuple[FlowLayer, ...]

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        total = jnp.zeros((), value.dtype)
        for layer in reversed(self.layers) if back else self.layers:
            value, log_det = layer(value, context, back)
            total = total + log_det
        return value, total


class RepeatedLayer(FlowLayer):
    """Layers of one kind one after the other, their numbers stacked: compiled once, however many there are."""

    stack: FlowLayer

    @classmethod
    def of(cls, make: Callable[[], FlowLayer], count: int) -> "RepeatedLayer":
        """Return so many layers, each made anew."""
        return cls(
            jax.tree.map(
                lambda *x: np.stack(x) if eqx.is_array_like(x[0]) else x[0], *(make() for _ in range(count))
            )
        )

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        held = jax.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, self.stack)
        arrays, static = eqx.partition(held, eqx.is_array)

        def one(state: Any, arrays: Any) -> tuple[Any, None]:
            value, log_det = eqx.combine(arrays, static)(state[0], context, back)
            return (value, state[1] + log_det), None

        kind = jnp.result_type(value, *jax.tree.leaves((arrays, context)))
        start = (value.astype(kind), jnp.zeros((), kind))
        return jax.lax.scan(one, start, arrays, reverse=back)[0]


class Coupling(FlowLayer):
    """A layer that keeps the first channels and bends the others by maps that a network sets from those kept."""

    network: Any
    rule: ElementwiseMap = eqx.field(static=True)
    kept: int = eqx.field(static=True)

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        kept, moved = value[: self.kept], value[self.kept :]
        moved, log_slopes = self.rule.bent(self.network(kept, *context), moved, back)
        return jnp.concatenate([kept, moved]), jnp.sum(log_slopes)


class Flip(FlowLayer):
    """Channels in the opposite order, so that the next layer moves those that were kept."""

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        return value[::-1], jnp.zeros((), value.dtype)


def quiet(layer: Any) -> Any:
    """Return a last layer that says little at the start, so that its flow starts near the identity."""
    return eqx.tree_at(lambda m: (m.weight, m.bias), layer, (0.1 * layer.weight, 0.0 * layer.bias))


class Conditioner(eqx.Module):
    """A network from channels and context to the numbers of maps: linear layers for vectors, convolutions for pictures."""

    layers: tuple[Any, ...]
    outputs: tuple[int, int] = eqx.field(static=True)
    activation: Any = eqx.field(static=True)

    @classmethod
    def make(
        cls, rng: Any, inputs: int, outputs: tuple[int, int], hidden: int, depth: int, activation: str, kernel: int = 0
    ) -> Any:  # fmt: skip
        """Return one with random numbers; `outputs` are those of one map, and the maps."""
        sizes = [max(inputs, 1), *[hidden] * depth, prod(outputs)]
        kind = partial(eqx.nn.Conv2d, kernel_size=kernel, padding=kernel // 2) if kernel else eqx.nn.Linear
        *inner, last = (filled(rng, kind, *pair) for pair in pairwise(sizes))
        return cls((*inner, quiet(last)), outputs, activation_of(activation))

    def held(self) -> tuple[Any, ...]:
        """Return the layers as they are applied."""
        return self.layers

    def __call__(self, value: Any, *context: Any) -> Any:
        """Return the numbers, those of one map along the first axis."""
        places = value.shape[1:]  # of a picture the context is in planes
        told = [
            jnp.broadcast_to(jnp.reshape(c, (-1, *[1] * len(places))), (c.size, *places)) for c in context
        ]
        hidden = jnp.concatenate([value, *told])
        # a single channel without context has nothing to be set from
        hidden = hidden if len(hidden) else jnp.zeros((1, *places), value.dtype)
        *inner, last = self.held()
        for layer in inner:
            hidden = self.activation(layer(hidden))
        return jnp.reshape(last(hidden), (*self.outputs, *places))


def joined(parts: Any) -> Any:
    """Return arrays behind each other as one vector."""
    return jnp.concatenate([jnp.ravel(part) for part in parts])


class ActNorm(FlowLayer):
    """A shift and a scale of each channel, which start at 0 and 1: elements in standard units need no other start."""

    shift: Any
    log_scale: Any

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        shift, log_scale = (
            jnp.reshape(n, (-1, *[1] * (value.ndim - 1))) for n in (self.shift, self.log_scale)
        )
        total = prod(value.shape[1:]) * jnp.sum(log_scale)
        if back:
            return (value - shift) * jnp.exp(-log_scale), -total
        return shift + jnp.exp(log_scale) * value, total


class LinearMixing(FlowLayer):
    """An invertible matrix on the channels, L times U, as a 1 x 1 convolution: its determinant is read off the diagonal.

    The matrix is that of the way back, so that densities need products and only draws need triangular equations.
    """

    lower: Any
    upper: Any
    log_diagonal: Any

    def factors(self) -> tuple[Any, Any]:
        """Return L, with ones along its diagonal, and U, with numbers above zero along its."""
        lower = jnp.tril(self.lower, -1) + jnp.eye(len(self.lower))
        return lower, jnp.triu(self.upper, 1) + jnp.diag(jnp.exp(self.log_diagonal))

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        from jax.scipy.linalg import solve_triangular

        lower, upper = self.factors()
        total = prod(value.shape[1:]) * jnp.sum(self.log_diagonal)
        flat = jnp.reshape(value, (len(value), -1))
        if back:
            return jnp.reshape(lower @ (upper @ flat), value.shape), total
        middle = solve_triangular(lower, flat, lower=True, unit_diagonal=True)
        return jnp.reshape(solve_triangular(upper, middle), value.shape), -total


class PictureLevel(FlowLayer):
    """One scale of GLOW: squares of 2 x 2 become channels, half of which go through the next scale, then all mix."""

    steps: FlowLayer
    next: FlowLayer | None
    picture: tuple[int, int, int] = eqx.field(static=True)

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        c, h, w = self.picture
        cut = jnp.reshape(value, (c, h // 2, 2, w // 2, 2))
        found = jnp.reshape(jnp.transpose(cut, (0, 2, 4, 1, 3)), (4 * c, h // 2, w // 2))
        total = jnp.zeros((), value.dtype)
        for layer in (self.steps, self.next) if back else (self.next, self.steps):
            # what does not go through the next scale is noise already
            part = found if layer is self.steps else found[: 2 * c]
            part, log_det = (part, 0.0) if layer is None else layer(part, context, back)
            found, total = jnp.concatenate([part, found[len(part) :]]), total + log_det
        spread = jnp.transpose(jnp.reshape(found, (c, 2, 2, h // 2, w // 2)), (0, 3, 1, 4, 2))
        return jnp.reshape(spread, value.shape), total


class PlanarLayer(FlowLayer):
    """A bend along one direction, x = u + v tanh(w u + b); its numbers are linear functions of the context."""

    numbers: Any

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        raw = self.numbers(joined(context) if context else jnp.zeros(1))
        (w, v), b = jnp.split(raw[:-1], 2), raw[-1]
        product = w @ v
        k = jax.nn.softplus(product) - 1  # above -1, which makes it invertible
        v = v + (k - product) * w / jnp.maximum(w @ w, 1e-12)
        y = w @ value
        if not back:
            bend = jnp.tanh(y + b)
            return value + v * bend, jnp.log1p(k * (1 - bend**2))
        a = _rising_root(*jax.lax.stop_gradient((k, b, y)))
        for _ in range(2):  # Newton steps from the root, through which first and second derivatives go
            bend = jnp.tanh(a + b)
            a = a - (a + k * bend - y) / (1 + k * (1 - bend**2))
        bend = jnp.tanh(a + b)
        return value - v * bend, -jnp.log1p(k * (1 - bend**2))


def _rising_root(k: Any, b: Any, y: Any) -> Any:
    """Return a with a + k tanh(a + b) = y, by halving."""

    def halve(_: Any, ends: Any) -> Any:
        middle = 0.5 * (ends[0] + ends[1])
        low = middle + k * jnp.tanh(middle + b) < y
        return jnp.where(low, middle, ends[0]), jnp.where(low, ends[1], middle)

    return jax.lax.fori_loop(0, 50, halve, (y - jnp.abs(k), y + jnp.abs(k)))[0]


class RadialLayer(FlowLayer):
    """A swelling or shrinking around a centre, x = u + beta (u - centre) / (alpha + |u - centre|)."""

    numbers: Any

    def __call__(self, value: Any, context: Any, back: bool) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        raw = self.numbers(joined(context) if context else jnp.zeros(1))
        centre, alpha = raw[:-2], jax.nn.softplus(raw[-2]) + 1e-3
        beta = alpha * (jax.nn.softplus(raw[-1] + np.log(np.expm1(1.0))) - 1)  # above -alpha
        r = far = jnp.sqrt(jnp.sum((value - centre) ** 2) + 1e-24)  # with a gradient where it is zero
        if back:
            b = alpha + beta - far
            root = jnp.sqrt(b**2 + 4 * alpha * far)
            r = jnp.where(b > 0, 2 * alpha * far / (b + root), 0.5 * (root - b))
        swell = 1 + beta / (alpha + r)
        total = (value.size - 1) * jnp.log(swell) + jnp.log1p(alpha * beta / (alpha + r) ** 2)
        return (
            (centre + (value - centre) / swell, -total)
            if back
            else (centre + (value - centre) * swell, total)
        )


class ContinuousLayer(FlowLayer):
    """The flow of dx/dt = field(x, t) from t = 0 to 1, in steps of Runge and Kutta; the trace adds up to the determinant.

    Errors, also of going there and back, are of the order of the fourth power of a step.
    """

    field: Any
    steps: int = eqx.field(static=True)

    def __call__(self, value: Any, context: Any, back: bool, probe: Any = None) -> tuple[Any, Any]:
        """Return the value carried, and the log-determinant."""
        h = (-1.0 if back else 1.0) / self.steps

        def slope(t: Any, z: Any) -> tuple[Any, Any]:
            def velocity(z: Any) -> Any:
                return self.field(joined((z, t, *context)))

            if probe is None:
                return velocity(z), jnp.trace(jax.jacfwd(velocity)(z))
            way, bent = jax.jvp(velocity, (z,), (probe,))
            return way, probe @ bent

        def step(state: Any, number: Any) -> Any:
            (z, total), t = state, h * number + (1.0 if back else 0.0)
            k = gain = slope(t, z)
            for part, weight in ((0.5, 2), (0.5, 2), (1.0, 1)):
                k = slope(t + part * h, z + part * h * k[0])
                gain = (gain[0] + weight * k[0], gain[1] + weight * k[1])
            return (z + h / 6 * gain[0], total + h / 6 * gain[1]), None

        numbers = jnp.arange(self.steps).astype(value.dtype)
        return jax.lax.scan(step, (value, jnp.zeros((), value.dtype)), numbers)[0]
