"""Modules that the recipes make, beyond those of Equinox."""

from typing import Any

from markovia.runtime.libraries import eqx, jax, jnp


class GaussianHead(eqx.Module):
    """A network of twice as many outputs, read as locations and scales."""

    network: Any

    def __call__(self, *arguments: Any) -> tuple[Any, Any]:
        """Return locations, and scales above zero."""
        joined = jnp.concatenate([jnp.ravel(a) for a in arguments]) if len(arguments) > 1 else arguments[0]
        loc, raw = jnp.split(self.network(joined), 2, axis=-1)
        return loc, jax.nn.softplus(raw) + 1e-5
