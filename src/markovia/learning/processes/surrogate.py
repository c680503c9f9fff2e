"""A process that stands in for a function that is costly to evaluate: fitted to a few trials, asked at many places.

Inputs are in the unit cube, targets in standard units, so priors mean the same for every problem. The covariance is a Matern
5/2 (or 3/2, RBF) with one length a column, a constant and noise; their numbers are the most probable ones under priors. That
of a length is log-normal with a centre that grows with the square root of the number of columns, as distances in a cube do
(Hvarfner, Hellsten and Nardi 2024). Means and variances come with their derivatives by the place,
and functions are drawn whole, by random features of the prior and a correction at the trials (pathwise conditioning).
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Mapping
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.covariances.algebra import Scaled, White
from markovia.factors.covariances.covariance import Covariance
from markovia.factors.covariances.radial import RBF, Matern32, Matern52
from markovia.factors.functions.parameter import Parameter
from markovia.inference.gaussian.exact_function import ExactFunction, PathwiseDraws
from markovia.learning.processes.evidence_ascent import maximise_evidence
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.runtime.array_types import Array

KINDS = {"matern52": Matern52, "matern32": Matern32, "rbf": RBF}
"""What `covariance=` may be."""
LENGTH = (log(0.5), 0.7)
"""Centre and spread of the logs of lengths, with one column; with d columns the centre is sqrt(d) times as long."""
NOISE = (log(1e-3), 3.0)
"""The same of the variance of noise: wide, so that a smooth function is seen to be one without noise."""
LEAST_NOISE = 1e-6
"""The least variance of noise that is fitted, in units of the targets' variance."""


class LogNormal(NamedTuple):
    """A log-normal prior as the ascent reads it; NumPyro's would load JAX."""

    loc: float
    scale: float


class Surrogate:
    """What is known of a costly function after some trials.

    Parameters
    ----------
    function
        The posterior of the function in standard units.
    centre, scale
        What those units are: a target is centre + scale times its standard value.
    noise
        The variance of noise in standard units.
    """

    def __init__(self, function: ExactFunction, centre: float, scale: float, covariance: Covariance) -> None:
        self.function, self.centre, self.scale, self.covariance = function, centre, scale, covariance
        self.X, self.noise = function.X, float(function.noise)

    def scaled(self, value: float) -> float:
        """Return a value in standard units."""
        return (value - self.centre) / self.scale

    def unscaled(self, value: Any) -> Any:
        """Return standard values in the unit of the targets."""
        return self.centre + self.scale * value

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Return means and standard deviations of the function at places, in standard units."""
        found = self.function.moments(X)
        return found.means[0], np.sqrt(found.variances[0])

    def believing(self, X: Array) -> "Surrogate":
        """Return the surrogate as if places had been tried, and had given their means: for trials that are under way."""
        moved = self.function.updated(X, self.moments(X)[0]) if len(X) else self.function
        return Surrogate(moved, self.centre, self.scale, self.covariance)

    def moments_with_pull(self, X: Array) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
        """Return means, standard deviations, and what turns derivatives by means and variances into those by places.

        The covariance is stationary, so that of the prior does not depend on the place.
        """
        from scipy.linalg.lapack import dtrtrs

        f = self.function
        K = f.covariance.value(X, f.X)
        cross = dtrtrs(f.factor, K.T, lower=1)[0]
        sd = np.sqrt(np.maximum(f.covariance.diagonal(X) - np.einsum("ij,ij->j", cross, cross), 0.0))

        def pull(by_mean: Array, by_variance: Array) -> Array:
            solved = dtrtrs(f.factor, cross, lower=1, trans=1)[0]
            return f.covariance.input_gradient(
                X, f.X, np.outer(by_mean, f.alpha) - 2.0 * by_variance[:, None] * solved.T
            )

        return K @ f.alpha, sd, pull

    def covariance_between(self, X: Array, Z: Array) -> Array:
        """Return covariances of the function between places."""
        return self.function.covariances(X, Z)

    def pulled_covariance(self, X: Array, Z: Array, W: Array) -> Array:
        """Return the derivative by X of sum(W * covariances of X and Z)."""
        from scipy.linalg.lapack import dpotrs

        f = self.function
        solved = dpotrs(f.factor, f.covariance.value(f.X, Z), lower=1)[0]
        return f.covariance.input_gradient(X, Z, W) - f.covariance.input_gradient(X, f.X, W @ solved.T)

    def draw(self, rng: np.random.Generator) -> Callable[[Array], tuple[Array, Array]]:
        """Return a function drawn from the posterior: at places it returns values and derivatives."""
        paths = self.function.draws(1, rng)
        assert isinstance(paths, PathwiseDraws)

        def drawn(X: Array) -> tuple[Array, Array]:
            wave = -paths.weights[0] * np.sin(X @ paths.omega.T + paths.phases)
            moved = np.broadcast_to(paths.moved[:, 0], (len(X), len(paths.moved)))
            return paths(X)[0], wave @ paths.omega + self.function.covariance.input_gradient(X, self.X, moved)

        return drawn


def fitted_surrogate(
    X: Array,
    y: Array,
    *,
    kind: str = "matern52",
    noise: float | None = None,
    start: Mapping[str, Any] | None = None,
) -> Surrogate:
    """Return a process fitted to trials.

    Parameters
    ----------
    X, y
        Places in the unit cube, and values.
    kind
        One of `KINDS`.
    noise
        The standard deviation of the noise of values; None fits it.
    start
        The numbers of an earlier fit, a second start.

    Examples
    --------
    >>> X = np.linspace(0.0, 1.0, 6)[:, None]
    >>> found = fitted_surrogate(X, np.sin(5.0 * X[:, 0]), noise=0.0)
    >>> mean, sd = found.moments(np.array([[0.5]]))
    >>> bool(abs(found.unscaled(mean[0]) - np.sin(2.5)) < 0.05)
    True
    """
    d = X.shape[1]
    centre, scale = float(np.mean(y)), float(np.std(y))
    if scale <= 1e-14 * float(np.abs(y).max()):  # the deviation of equal numbers is not always zero
        scale = 1.0
    centred = log(sqrt(d)) + LENGTH[0]
    length = Parameter(np.full(d, exp(centred)), prior=LogNormal(centred, LENGTH[1]))
    covariance: Covariance = Scaled(Parameter(1.0, prior=LogNormal(0.0, 1.0)), KINDS[kind](length))
    if noise is None:
        covariance = covariance + White(Parameter(1e-2, prior=LogNormal(*NOISE))) + White(LEAST_NOISE)
    else:
        covariance = covariance + White(max((noise / scale) ** 2, LEAST_NOISE * 1e-2))
    method = ExactEvidence(X, (y - centre) / scale)
    fitted = maximise_evidence(
        method, covariance, starts=[start] if start else (), max_iter=60, tol=1e-2, flat=1e-8
    ).covariance
    return Surrogate(method.posterior(fitted), centre, scale, fitted)
