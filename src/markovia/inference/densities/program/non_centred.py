"""Quantities as `location + scale * standard`, with a number or a Cholesky factor as the scale: non-centred, or whitened.

What is inferred is then the standard part, whose prior has neither the unknown scale nor the correlations in it: a funnel or
a ridge becomes round where data say little (Papaspiliopoulos, Roberts and Sköld 2007; Betancourt and Girolami 2015).
"""

from math import prod
from typing import Any

from markovia.runtime.libraries import jax, jnp

LOCATION_SCALE = frozenset({"Normal", "StudentT", "Cauchy", "Laplace", "Logistic", "Gumbel"})
LOCATION_FACTOR = frozenset({"MultivariateNormal", "MultivariateStudentT"})


def standardisable(found: Any) -> bool:
    """Say whether a distribution is hard to explore as it is: a location plus a scale that is traced, or correlated."""
    base = base_of(found)
    if type(base).__name__ in LOCATION_FACTOR:
        return bool(prod(base.event_shape) > 1)
    return type(base).__name__ in LOCATION_SCALE and isinstance(base.scale, jax.core.Tracer)


def base_of(found: Any) -> Any:
    """Return the distribution itself, where it was expanded or its batch became an event."""
    while type(found).__name__ in ("ExpandedDistribution", "Independent"):
        found = found.base_dist
    return found


def from_standard(found: Any, standard: Any) -> tuple[Any, Any]:
    """Return the value at a standard part (of the value's shape), and the log determinant of the map."""
    base = base_of(found)
    loc = jnp.broadcast_to(base.loc, standard.shape)
    if type(base).__name__ in LOCATION_SCALE:
        scale = jnp.broadcast_to(base.scale, standard.shape)
        return loc + scale * standard, jnp.sum(jnp.log(scale))
    factor = base.scale_tril  # its diagonal is positive
    logs = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1))
    value = loc + jnp.einsum("...ij,...j->...i", factor, standard)
    return value, jnp.sum(jnp.broadcast_to(logs, standard.shape))


def to_standard(found: Any, value: Any) -> Any:
    """Return the standard part of a value."""
    from jax.lax.linalg import triangular_solve

    base = base_of(found)
    gap = value - base.loc
    if type(base).__name__ in LOCATION_SCALE:
        return gap / base.scale
    factor = jnp.broadcast_to(base.scale_tril, (*gap.shape, gap.shape[-1]))
    return triangular_solve(factor, gap[..., None], left_side=True, lower=True)[..., 0]
