"""Stationary covariances by their frequencies: spectral densities for Hilbert spaces, and draws for random features.

A stationary covariance is a mixture of cosines (Bochner): k(r) = integral of S(omega) cos(omega r) d omega / (2 pi)^d. RBF,
Matern, rational quadratic and spectral mixture have a density S, and so do their multiples and sums. All of them, cosines,
constants and products besides can be drawn from: frequencies of a product are sums of those of its parts. Draws of a seed
move smoothly with the hyper-parameters, so both have derivatives, which JAX takes.
"""

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import Constant, Product, Scaled, Sum
from markovia.factors.covariances.covariance import Covariance, Pull, by_jax, one_or_each
from markovia.factors.covariances.periodic import Cosine, SpectralMixture
from markovia.factors.covariances.radial import RBF, Matern, Radial, RationalQuadratic
from markovia.runtime.array_types import Array


class Frequencies(NamedTuple):
    """Random frequencies: k(x, z) is the mean of sum(weights * cos((x - z) @ omega.T)).

    Attributes
    ----------
    omega
        Angular frequencies, one row each, with a number for each column of the inputs.
    weights
        The share of the variance that each has.
    pull
        From derivatives by omega and by weights to those by the free hyper-parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> drawn = (2.0 * mk.covariances.RBF(0.5)).spectral_draws(1000, 3, np.random.default_rng(0))
    >>> drawn.omega.shape, drawn.weights.sum().round(6)
    ((1000, 3), np.float64(2.0))
    """

    omega: Array
    weights: Array
    pull: Callable[[Array, Array], dict[tuple[int, str], Any]]


def spectral_forward(covariance: Covariance, omega: Array) -> tuple[Array, Pull]:
    """Return the spectral density at rows of angular frequencies, and what pulls weights on it back."""
    return by_jax(covariance, lambda made, xp: _density(made, xp.asarray(omega), xp))


def spectral_draws(covariance: Covariance, n: int, d: int, rng: np.random.Generator) -> Frequencies:
    """Return n random angular frequencies for inputs of d columns."""
    (omega, weights), pull = by_jax(covariance, _mover(covariance, n, d, rng))
    return Frequencies(omega, weights, pull)


def _density(cov: Covariance, omega: Any, xp: Any) -> Any:
    d = omega.shape[1]
    if isinstance(cov, Sum):
        if len({part.columns for part in cov.parts}) > 1:
            raise InvalidArgument(
                "a sum over different columns has no spectral density; take those of its parts one by one"
            )
        return sum((_density(part, omega, xp) for part in cov.parts[1:]), _density(cov.parts[0], omega, xp))
    if isinstance(cov, Scaled):
        return cov.number("variance") * _density(cov.parts[0], omega, xp)
    if isinstance(cov, SpectralMixture):
        total: Any = 0.0
        for weight, mean, scale in cov.mixture(d, xp):
            # half of a component lies around its mean, half around minus its mean
            bells = sum(xp.exp(-0.5 * (((omega + s * mean) / scale) ** 2).sum(axis=1)) for s in (-1.0, 1.0))
            total = total + 0.5 * weight * (2.0 * pi) ** (d / 2) / xp.prod(scale) * bells
        return total
    if not isinstance(cov, RBF | Matern | RationalQuadratic):
        raise InvalidArgument(
            f"{type(cov).__name__} has no spectral density; RBF, Matern, RationalQuadratic and SpectralMixture have, and "
            "their sums and multiples"
        )
    length = xp.asarray(one_or_each(cov, "length", omega))
    w = ((length * omega) ** 2).sum(axis=1)
    volume = xp.prod(xp.broadcast_to(length, (d,))) * (2.0 * pi) ** (d / 2)
    if isinstance(cov, RBF):
        return volume * xp.exp(-0.5 * w)
    if isinstance(cov, Matern):
        nu = cov.degree + 0.5
        constant = d / 2 * log(2.0) + lgamma(nu + d / 2) - lgamma(nu) + nu * log(2.0 * nu)
        return volume * xp.exp(constant - (nu + d / 2) * xp.log(2.0 * nu + w))
    return volume * _mean_of_bells(cov.number("alpha"), w, d, xp)


def _mean_of_bells(alpha: Any, w: Any, d: int, xp: Any) -> Any:
    """Return the mean of u^(-d/2) exp(-w / (2u)) for u of the gamma law of a rational quadratic covariance.

    The trapezoid rule over log u, which is exact to rounding for functions that fall off so fast on both sides.
    """
    if xp is np:
        from scipy.special import gammaln
    else:
        from jax.scipy.special import gammaln
    p = alpha - d / 2
    w = xp.maximum(w, 1e-60)
    # where to look, around the largest value; a choice, so no derivative goes through it
    a, v = (x if xp is np else _stopped(x) for x in (alpha, w))
    c = xp.sqrt((a - d / 2) ** 2 + 2.0 * a * v)
    peak = xp.log(xp.where(a >= d / 2, (a - d / 2 + c) / (2.0 * a), v / xp.maximum(c - a + d / 2, 1e-300)))
    low = xp.maximum(peak - 40.0 / xp.sqrt(c), xp.minimum(peak, xp.log(v)) - 8.0)
    high = xp.minimum(peak + 40.0 / xp.sqrt(c), xp.maximum(peak, -xp.log(a)) + 8.0)
    t = low + (high - low) * xp.linspace(0.0, 1.0, 500)[:, None]
    f = xp.exp(alpha * xp.log(alpha) - gammaln(alpha) + p * t - alpha * xp.exp(t) - 0.5 * w * xp.exp(-t))
    return f.sum(axis=0) * (high - low) / 499.0


def _stopped(x: Any) -> Any:
    from jax.lax import stop_gradient

    return stop_gradient(x)


def _mover(
    cov: Covariance, n: int, d: int, rng: np.random.Generator
) -> Callable[[Covariance, Any], tuple[Any, Any]]:
    """Draw what is random, and return a function that makes frequencies and weights of it for a covariance of this form."""
    mine = list(range(d) if cov.columns is None else cov.columns)
    place = np.eye(d)[mine]  # from the columns that it looks at to all columns
    if isinstance(cov, Scaled):
        inner = _mover(cov.parts[0], n, d, rng)
        return lambda made, xp: _times(*inner(made.parts[0], xp), made.number("variance"))
    if isinstance(cov, Sum | SpectralMixture):
        # as many of each part, so that nothing jumps with their weights
        count = cov.components if isinstance(cov, SpectralMixture) else len(cov.parts)
        if n < count:
            raise InvalidArgument(
                f"{n} frequencies are too few for a covariance of {count} parts; take {count} or more"
            )
        sizes = [len(rows) for rows in np.array_split(np.arange(n), count)]
        if isinstance(cov, Sum):
            movers = [_mover(part, size, d, rng) for part, size in zip(cov.parts, sizes, strict=True)]

            def summed(made: Covariance, xp: Any) -> tuple[Any, Any]:
                found = [move(part, xp) for move, part in zip(movers, made.parts, strict=True)]
                return xp.concatenate([f[0] for f in found]), xp.concatenate([f[1] for f in found])

            return summed
        z = [rng.standard_normal((size, len(mine))) for size in sizes]

        def mixed(made: Any, xp: Any) -> tuple[Any, Any]:
            terms = made.mixture(len(mine), xp)
            omega = [(mean + scale * z[q]) @ place for q, (_, mean, scale) in enumerate(terms)]
            weights = [weight / sizes[q] * xp.ones(sizes[q]) for q, (weight, _, _) in enumerate(terms)]
            return xp.concatenate(omega), xp.concatenate(weights)

        return mixed
    if isinstance(cov, Product):
        movers = [_mover(part, n, d, rng) for part in cov.parts]
        # each in an order of its own: frequencies of a sum come one part after the other
        orders = [rng.permutation(n) for _ in movers]

        def multiplied(made: Covariance, xp: Any) -> tuple[Any, Any]:
            omega, weights = xp.zeros((n, d)), xp.ones(n) / n
            for move, order, part in zip(movers, orders, made.parts, strict=True):
                more, factor = move(part, xp)
                omega, weights = omega + more[order], weights * n * factor[order]
            return omega, weights

        return multiplied
    if isinstance(cov, Constant):
        return lambda made, xp: (xp.zeros((n, d)), made.number("variance") / n * xp.ones(n))
    if isinstance(cov, Cosine):
        ones = np.ones((n, len(mine)))
        return lambda made, xp: (
            (2.0 * pi / one_or_each(made, "period", ones) * ones) @ place,
            xp.ones(n) / n,
        )
    if not isinstance(cov, RBF | Matern | RationalQuadratic):
        raise InvalidArgument(
            f"{type(cov).__name__} has no random frequencies; RBF, Matern, RationalQuadratic, SpectralMixture, Cosine and "
            "Constant have, and their sums, products and multiples"
        )
    return _radial_mover(cov, rng.standard_normal((n, len(mine))), place, rng)


def _radial_mover(
    cov: Radial, z: Array, place: Array, rng: np.random.Generator
) -> Callable[[Covariance, Any], tuple[Any, Any]]:
    n, alpha, slope = len(z), 1.0, np.zeros(len(z))
    if isinstance(cov, Matern):  # Student's law with 2 nu degrees of freedom
        z = z / np.sqrt(rng.gamma(cov.degree + 0.5, 1.0 / (cov.degree + 0.5), n))[:, None]
    if isinstance(cov, RationalQuadratic):
        from scipy.special import gammaincinv

        alpha, at = float(cov.number("alpha")), rng.uniform(size=n)
        # quantiles of gamma laws have no closed derivative by the shape: their logs at two shapes nearby
        here, up, down = (
            np.maximum(gammaincinv(a, at) / a, 1e-300) for a in (alpha, alpha * 1.0001, alpha * 0.9999)
        )
        z, slope = z * np.sqrt(here)[:, None], np.log(up / down) / np.log(1.0001 / 0.9999)

    def move(made: Covariance, xp: Any) -> tuple[Any, Any]:
        now = made.number("alpha") if "alpha" in made.own else 1.0
        return (
            z * (now / alpha) ** (0.5 * slope)[:, None] / one_or_each(made, "length", z)
        ) @ place, xp.ones(n) / n

    return move


def _times(omega: Any, weights: Any, variance: Any) -> tuple[Any, Any]:
    return omega, variance * weights
