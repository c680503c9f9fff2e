"""Encoders of nodes in their own units, which guides that are made for a model read their data with."""

from typing import Any

import numpy as np

from markovia.factors.networks.modules import Perceptron
from markovia.factors.networks.recipes import _mlp
from markovia.runtime.libraries import eqx, jax, jnp


class StandardisingEncoder(eqx.Module):
    """A perceptron of vectors in their own units; what is not seen is the mean. The units are kept and not learned."""

    centre: Any
    scale: Any
    network: Perceptron
    inputs: tuple[tuple[str, int], ...] = eqx.field(static=True)

    def __call__(self, x: Any, seen: Any) -> Any:
        """Return what the network says of the numbers that were seen."""
        centre, scale = jax.lax.stop_gradient((self.centre, self.scale))
        return self.network(jnp.where(seen > 0, (x - centre) / scale, 0.0))


def make_amortised(key: Any, inputs: Any, outputs: int, **settings: Any) -> StandardisingEncoder:
    """Return an encoder of nodes by name and size, before their units are known."""
    width = sum(n for _, n in inputs)
    named = tuple((str(name), int(n)) for name, n in inputs)
    return StandardisingEncoder(np.zeros(width), np.ones(width), _mlp(key, width, outputs, **settings), named)
