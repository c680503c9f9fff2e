"""A density in coordinates in which it is roughly standard normal: centred at its mode, scaled by its curvature.

Laplace's approximation draws there, importance sampling proposes there, and stochastic Langevin steps have one size for all.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.densities.draws.density_engine import mode
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.density import Density, DensityRows
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

MOST = 3_000
"""Numbers up to which a Hessian is computed."""
NEWTON_STEPS = 30
FLAT = 1e-8
"""Twice the height, in nats, that a Newton step still promises at a point that counts as the mode."""


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
    curvature
        The negative Hessian.
    """

    point: Array
    height: float
    flat: bool
    factor: Array
    log_det: float
    definite: bool
    curvature: Array


def peak(density: Density, seed: int | None, who: str) -> Peak:
    """Return the peak of a density."""
    if density.size > MOST:
        raise Unanswered(
            f"engine {who!r} computes a Hessian, and {density.size:,} numbers are too many for that (at most {MOST:,}); use "
            "engine='advi' or 'nuts'"
        )
    point, _, _ = mode(density, seed, jacobian=True, who=who)
    with x64():
        data = as_data(density)

        def looked_at(u: Any, data: Any) -> Any:
            return *jax.value_and_grad(density.log_prob)(u, data), jax.hessian(density.log_prob)(u, data)

        look = compiled(density, "hessian", "", looked_at, jnp.asarray(point), data, once=True)
        height, slope, curvature = map(np.asarray, look(jnp.asarray(point), data))
        for _ in range(NEWTON_STEPS):
            factor, log_det, definite = _factor(-curvature)
            step = factor @ (factor.T @ slope)
            flat = bool(slope @ step < FLAT)
            if flat or not np.isfinite(step).all():
                break
            for length in 0.5 ** np.arange(10):
                new = tuple(map(np.asarray, look(jnp.asarray(point + length * step), data)))
                if new[0] > height:
                    point = point + length * step
                    height, slope, curvature = new
                    break
            else:
                break
    return Peak(point, float(height), flat, factor, log_det, definite, -0.5 * (curvature + curvature.T))


def _factor(negative: Array) -> tuple[Array, float, bool]:
    """Return F with F F' the inverse of a matrix, log |det F|, and whether it is positive definite, whatever its scales."""
    diagonal = np.diag(negative)
    scales = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(0.5 * (negative + negative.T) / np.outer(scales, scales))
    largest = float(np.abs(values).max(initial=1.0))
    fine = values > 1e-10 * largest
    safe = np.where(fine, values, 1.0)
    log_det = float(-0.5 * np.log(safe).sum() - np.log(scales).sum())
    return vectors / scales[:, None] / np.sqrt(safe), log_det, bool(np.isfinite(values).all() and fine.all())


def independent(found: Peak) -> Peak:
    """Return the same peak with a diagonal factor: the scale of each number while the others stay."""
    scales = 1.0 / np.linalg.norm(np.linalg.inv(found.factor), axis=0)
    return replace(found, factor=np.diag(scales), log_det=float(np.log(scales).sum()))


def whitened(density: Density, found: Peak) -> Density:
    """Return the density of z where u = point + F z; `points_of` leads back."""

    def back(z: Any, data: Any) -> Any:
        return data[1] + data[2] @ z

    def rows() -> DensityRows | None:
        plain = density.rows()
        if plain is None:
            return None
        return DensityRows(plain.count, lambda z, data, at: plain.log_likelihood(back(z, data), data[0], at))

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
