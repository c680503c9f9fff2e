"""A density in coordinates in which it is roughly standard normal: centred at its mode, scaled by its curvature.

Laplace's approximation draws there, importance sampling proposes there, and stochastic Langevin steps have one size for all.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.differentiable.compiled_functions import as_data, compiled
from markovia.inference.differentiable.density import Density, Rows
from markovia.inference.differentiable.density_engine import mode
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64

MOST = 3_000
"""Numbers up to which a Hessian is computed."""


@dataclass(frozen=True)
class Peak:
    """The highest mode found, and a factor F of the covariance F F' = (-Hessian)^-1 there.

    Attributes
    ----------
    point, height, flat
        Where it is, the log density, and whether the climb ended at a flat point.
    factor, log_det
        F, and log |det F|.
    definite
        Whether the curvature is that of a maximum in every direction; where not, flat directions were given a variance of
        about one.
    """

    point: Array
    height: float
    flat: bool
    factor: Array
    log_det: float
    definite: bool


def peak(density: Density, seed: int | None, who: str) -> Peak:
    """Return the peak of a density."""
    import jax
    import jax.numpy as jnp

    if density.size > MOST:
        raise Unanswered(
            f"engine {who!r} computes a Hessian, and {density.size:,} numbers are too many for that (at most {MOST:,}); use "
            "engine='advi' or 'nuts'"
        )
    point, height, flat = mode(density, seed, jacobian=True, who=who)
    with x64():
        data = as_data(density)
        at = jnp.asarray(point)
        curvature = compiled(density, "hessian", "", jax.hessian(density.log_prob), at, data, once=True)
        negative = -np.asarray(curvature(at, data))
    values, vectors = np.linalg.eigh(0.5 * (negative + negative.T))
    largest = float(np.abs(values).max(initial=1.0))
    definite = bool(np.isfinite(values).all() and (values > 1e-10 * largest).all())
    safe = np.where(values > 1e-10 * largest, values, 1.0)
    factor = vectors / np.sqrt(safe)
    return Peak(point, height, flat, factor, float(-0.5 * np.log(safe).sum()), definite)


def independent(found: Peak) -> Peak:
    """Return the same peak with a diagonal factor: the scale of each number while the others stay."""
    scales = 1.0 / np.linalg.norm(np.linalg.inv(found.factor), axis=0)
    return replace(found, factor=np.diag(scales), log_det=float(np.log(scales).sum()))


def whitened(density: Density, found: Peak) -> Density:
    """Return the density of z where u = point + F z; `points_of` leads back."""
    import jax

    def back(z: Any, data: Any) -> Any:
        return data[1] + data[2] @ z

    def rows() -> Rows | None:
        plain = density.rows()
        if plain is None:
            return None
        return Rows(plain.count, lambda z, data, at: plain.log_likelihood(back(z, data), data[0], at))

    return Density(
        density.size,
        lambda z, data: density.log_prior(back(z, data), data[0]) + data[3],
        lambda z, data: density.log_likelihood(back(z, data), data[0]),
        lambda z, data: density.constrain(back(z, data), data[0]),
        lambda key, data: jax.random.normal(key, (density.size,)),
        (density.data, found.point, found.factor, np.asarray(found.log_det)),
        f"whitened {density.key}" if isinstance(density.key, str) else ("whitened", density.key),
        log_joint=lambda z, data: density.log_prob(back(z, data), data[0]) + data[3],
        rows=rows,
    )


def points_of(found: Peak, z: Array) -> Array:
    """Return the points of a density at whitened ones."""
    points: Array = found.point + z @ found.factor.T
    return points
