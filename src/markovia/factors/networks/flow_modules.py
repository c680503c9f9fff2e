"""Normalising flows: noise through invertible layers is a law with an exact density; and what makes them of settings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.networks import flow_layers as parts
from markovia.factors.networks.density_modules import DensityModule
from markovia.factors.networks.elementwise_maps import ElementwiseMap
from markovia.factors.networks.modules import filled, numbers_of
from markovia.factors.networks.recipes import activation_of
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import eqx, jax, jnp


class InvertibleLaw(DensityModule):
    """Standard normal noise through a layer, for elements of some shape given so many numbers; `name` is the recipe's."""

    layer: Any
    shape: tuple[int, ...] = eqx.field(static=True)
    context_size: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of an element."""
        return self.shape

    def forward(self, u: Any, *context: Any) -> tuple[Any, Any]:
        """Return the element that noise becomes, and the log of the absolute determinant of the Jacobian."""
        value, *told = checked(self, u, context)
        found: tuple[Any, Any] = self.layer(value, told, False)
        return found

    def inverse(self, x: Any, *context: Any) -> tuple[Any, Any]:
        """Return the noise behind an element, and the log of the absolute determinant of the inverse's Jacobian."""
        value, *told = checked(self, x, context)
        found: tuple[Any, Any] = self.layer(value, told, True)
        return found

    def sample(self, key: Any, *context: Any) -> Any:
        """Return one element; a function of its noise that gradients go through."""
        return self.forward(jax.random.normal(key, self.shape), *context)[0]


class NormalisingFlow(InvertibleLaw):
    """A flow with an exact density."""

    def log_prob(self, value: Any, *context: Any) -> Any:
        """Return the log density of an element."""
        u, log_det = self.inverse(value, *context)
        return _standard_normal(u) + log_det


class EstimatedFlow(InvertibleLaw):
    """A continuous flow with the trace of its Jacobian estimated: for many numbers, at the cost of one product.

    It has no density, but draws whose mean is the log density: `bound(key, value, *context)`.
    """

    def bound(self, key: Any, value: Any, *context: Any) -> Any:
        """Return a draw whose mean is the log density."""
        x, *told = checked(self, value, context)
        u, log_det = self.layer(x, told, True, jax.random.rademacher(key, x.shape, x.dtype))
        return _standard_normal(u) + log_det


def _standard_normal(u: Any) -> Any:
    return -0.5 * jnp.sum(u**2) - 0.5 * np.log(2 * np.pi) * u.size


def checked(module: Any, value: Any, context: Sequence[Any]) -> tuple[Any, ...]:
    """Return an element and its context as arrays of fractions; refuse other shapes than those of the module."""
    value, told = jnp.asarray(value), [jnp.asarray(c) for c in context]
    n = sum(c.size for c in told)
    if value.shape != module.shape or n != module.context_size:
        raise InvalidArgument(
            f"{module.name} is a law of elements of shape {module.shape} given {module.context_size} numbers (context=), "
            f"and gets an element of shape {value.shape} given {n}"
        )
    kind = jnp.result_type(value, float)
    return value.astype(kind), *(c.astype(kind) for c in told)


def carried_rows(module: Any, rows: Any, context: Sequence[Any], back: bool) -> tuple[Any, Any]:
    """Return the images of rows of noise, or with `back` the noise behind rows, and log-determinants, in 64 bits."""
    with x64():
        module = jax.tree.map(lambda a: jnp.asarray(a, float) if eqx.is_inexact_array(a) else a, module)
        value, log_det = _carried_rows(module, jnp.asarray(rows), [jnp.asarray(c) for c in context], back)
        return np.asarray(value), np.asarray(log_det)


@eqx.filter_jit
def _carried_rows(module: Any, rows: Any, context: Any, back: bool) -> Any:
    return jax.vmap(module.inverse if back else module.forward)(rows, *context)


def make_coupling(
    key: Any, dims: int, *, kind: str, layers: int, hidden: int, depth: int, context: int, bins: int, reach: float,
    mixing: str, activation: str,
) -> NormalisingFlow:  # fmt: skip
    """Return a flow of couplings, each followed by a flip."""
    rule, kept, rng = ElementwiseMap(kind, bins, reach), dims // 2, numbers_of(key)

    def one() -> parts.FlowLayer:
        net = parts.Conditioner.make(
            rng, kept + context, (rule.width, dims - kept), hidden, depth, activation
        )
        mixed = _mixed(rng, dims) if mixing == "linear" else ()
        return parts.LayerChain((*mixed, parts.Coupling(net, rule, kept), parts.Flip()))

    return NormalisingFlow(parts.RepeatedLayer.of(one, layers), (dims,), context, "coupling")


def _mixed(rng: np.random.Generator, n: int) -> tuple[parts.FlowLayer, ...]:
    """Return what mixes channels before a coupling, near the identity."""
    lower, upper = 0.1 * rng.normal(size=(2, n, n)) / np.sqrt(n)
    return parts.ActNorm(np.zeros(n), np.zeros(n)), parts.LinearMixing(lower, upper, np.zeros(n))


def make_linear(key: Any, dims: int) -> NormalisingFlow:
    """Return a shift, scales and a matrix: any Gaussian."""
    return NormalisingFlow(parts.LayerChain(_mixed(numbers_of(key), dims)), (dims,), 0, "linear")


def make_glow(
    key: Any, shape: Sequence[int], *, levels: int, steps: int, hidden: int, context: int, kind: str, bins: int,
    reach: float, activation: str,
) -> NormalisingFlow:  # fmt: skip
    """Return a flow of pictures on several scales."""
    rule, rng = ElementwiseMap(kind, bins, reach), numbers_of(key)

    def level(c: int, h: int, w: int, left: int) -> parts.PictureLevel:
        def one() -> parts.FlowLayer:
            net = parts.Conditioner.make(
                rng, 2 * c + context, (rule.width, 2 * c), hidden, 2, activation, kernel=3
            )
            return parts.LayerChain((*_mixed(rng, 4 * c), parts.Coupling(net, rule, 2 * c), parts.Flip()))

        below = level(2 * c, h // 2, w // 2, left - 1) if left > 1 else None
        return parts.PictureLevel(parts.RepeatedLayer.of(one, steps), below, (c, h, w))

    c, h, w = shape if len(shape) == 3 else (1, *shape)
    return NormalisingFlow(level(c, h, w, levels), tuple(shape), context, "glow")


def make_planar(key: Any, dims: int, **settings: Any) -> NormalisingFlow:
    """Return a flow of planar layers."""
    return _bends(parts.PlanarLayer, "planar", 2 * dims + 1, key, dims, **settings)


def make_radial(key: Any, dims: int, **settings: Any) -> NormalisingFlow:
    """Return a flow of radial layers."""
    return _bends(parts.RadialLayer, "radial", dims + 2, key, dims, **settings)


def _bends(
    made: Any, name: str, n: int, key: Any, dims: int, *, layers: int, context: int
) -> NormalisingFlow:
    """Return a flow of layers that have n numbers each, linear in the context."""
    rng = numbers_of(key)

    def one() -> Any:
        net = filled(rng, eqx.nn.Linear, max(context, 1), n)
        return made(
            eqx.tree_at(lambda m: (m.weight, m.bias), net, (0.1 * net.weight, 0.5 * rng.normal(size=n)))
        )

    return NormalisingFlow(parts.RepeatedLayer.of(one, layers), (dims,), context, name)


def make_continuous(
    key: Any, dims: int, *, hidden: int, depth: int, steps: int, trace: str, context: int, activation: str
) -> InvertibleLaw:
    """Return the flow of a differential equation."""
    sizes = (dims + 1 + context, dims, hidden, depth, activation_of(activation))
    net = filled(key, eqx.nn.MLP, *sizes)
    law = NormalisingFlow if trace == "exact" else EstimatedFlow
    return law(parts.ContinuousLayer(net, steps), (dims,), context, "continuous")
