"""Modules that are distributions: one element's law, which stands in a network as a node's distribution.

A module says `sample(key, *context)` and `log_prob(value, *context)`, or `bound(key, value, *context)` where it has no
density: an unbiased draw of a lower bound on it. `ModuleDistribution` makes a distribution of it, mapped over plates.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.runtime.libraries import eqx, jax, jnp, laws


class DensityModule(eqx.Module):
    """A module that is the law of one element, given what it is told (its context)."""

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of an element."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """What elements may be."""
        return laws.constraints.independent(laws.constraints.real, len(self.event_shape))

    def sample(self, key: Any, *context: Any) -> Any:
        """Return one element."""
        raise NotImplementedError

    def distribution(self, *context: Any) -> "ModuleDistribution":
        """Return the law as a distribution, given one context."""
        return module_distribution(self, context, ())


class ModuleDistribution(laws.Distribution):  # type: ignore[misc]
    """The law of a module for every element of some plates.

    Parameters
    ----------
    module
        A `DensityModule`.
    context
        What each element is given: arrays with the batch in front.
    batch_shape
        The lengths of the plates.
    """

    def __init__(self, module: Any, context: Sequence[Any] = (), batch_shape: tuple[int, ...] = ()) -> None:
        self.module, self.context = module, tuple(context)
        super().__init__(tuple(batch_shape), tuple(module.event_shape), validate_args=False)

    @property
    def support(self) -> Any:
        """What elements may be."""
        return self.module.support

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Return draws."""
        shape = (*sample_shape, *self.batch_shape)
        keys = jax.random.split(key, prod(shape))
        return self._mapped(lambda k, _, *context: self.module.sample(k, *context), shape, keys)

    def log_prob(self, value: Any) -> Any:
        """Return the log density of elements."""
        return self._over(lambda _, v, *context: self.module.log_prob(v, *context), value, None)

    def _over(self, function: Any, value: Any, key: Any) -> Any:
        value = jnp.asarray(value)
        lead = value.shape[: value.ndim - len(self.event_shape)]
        shape = jnp.broadcast_shapes(lead, self.batch_shape)
        value = jnp.broadcast_to(value, (*shape, *self.event_shape))
        keys = None if key is None else jax.random.split(key, prod(shape))
        return self._mapped(function, shape, keys, jnp.reshape(value, (-1, *self.event_shape)))

    def _mapped(self, function: Any, shape: tuple[int, ...], keys: Any, values: Any = None) -> Any:
        """Return a function of every element: `(key, value, *context)`."""
        k = len(self.batch_shape)
        flat = [
            jnp.reshape(jnp.broadcast_to(c, (*shape, *jnp.shape(c)[k:])), (prod(shape), *jnp.shape(c)[k:]))
            for c in self.context
        ]
        none = [None if x is None else 0 for x in (keys, values)]
        found = jax.vmap(function, in_axes=(*none, *([0] * len(flat))))(keys, values, *flat)
        return jnp.reshape(found, (*shape, *jnp.shape(found)[1:]))

    def tree_flatten(self) -> Any:
        """Return the arrays, and the rest; a module's functions are no arrays."""
        arrays, static = eqx.partition(self.module, eqx.is_array)
        leaves, tree = jax.tree.flatten(static)
        return (arrays, self.context), (tuple(leaves), tree, self.batch_shape)

    @classmethod
    def tree_unflatten(cls, aux: Any, data: Any) -> "ModuleDistribution":
        """Return the distribution of its parts."""
        leaves, tree, batch = aux
        module = eqx.combine(data[0], jax.tree.unflatten(tree, leaves))
        return cls(module, data[1], batch)


class BoundedDistribution(ModuleDistribution):
    """The law of a module that has no density, but an unbiased draw of a lower bound on it."""

    def bound(self, key: Any, value: Any) -> Any:
        """Return a draw of a lower bound on the log density of each element."""
        return self._over(lambda k, v, *context: self.module.bound(k, v, *context), value, key)

    def log_prob(self, value: Any) -> Any:
        """Say that there is none."""
        raise UnsupportedModel(
            f"{type(self.module).__name__} has no density, but a lower bound on it: bound(key, value)"
        )


def module_distribution(
    module: Any, context: Sequence[Any], batch_shape: tuple[int, ...]
) -> ModuleDistribution:
    """Return a module's law over some plates."""
    whole = [jnp.asarray(c) for c in context]
    kind = ModuleDistribution if hasattr(module, "log_prob") else BoundedDistribution
    return kind(module, whole, tuple(int(np.asarray(n)) for n in batch_shape))
