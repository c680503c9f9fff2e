"""Black-box variational inference on any log density, with its two gradients of an expectation side by side.

References: Ranganath, Gerrish and Blei (2014) for the score function with Rao-Blackwellisation and control variates; Kingma
and Welling (2014) for reparameterisation; Robbins and Monro (1951). The family is independent normal distributions. With
z ~ q, the gradient of E_q f(z) by a parameter is E f(z) d log q(z), which needs no gradient of f, or, with z = mean + sd
noise, E of f's own gradient times dz, which has far less variance where f is smooth. The first gets better by leaving out
terms of f that a coordinate does not touch (Rao-Blackwellisation) and by subtracting a multiple of the score, whose mean is
zero (a control variate). Cost: `samples` log densities (or gradients) a step. `markovia.engines.ADVI` does this for models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, pi
from typing import Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.theory.integrators import Gradient, LogDensity, gradient_of
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count, check_number
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

Terms = Sequence[tuple[LogDensity, Sequence[int]]]
MOST_NODES = 20_000


def score_gradients(
    f: Callable[[Any], Any], mean: Any, sd: Any, n: int, seed: Seed = None, *, control_variate: bool = False
) -> Array:
    """Return n unbiased estimates of the gradient of E f(z) by the mean of z ~ N(mean, sd^2): f(z) times the score.

    Parameters
    ----------
    f
        A function of a vector.
    mean, sd
        Of independent normal numbers.
    n, seed
        Estimates, each from one draw, and a whole number or a NumPy generator.
    control_variate
        Subtract from f the multiple of the score that the other draws say is best.

    Examples
    --------
    >>> found = score_gradients(lambda z: (z**2).sum(), [1.0], [1.0], 100_000, seed=0)
    >>> round(found.mean()), round(found.var() / 3)  # 2 and 30
    (2, 10)
    """
    mean, sd = _family(mean, sd)
    check_count("n", n, 3)
    noise = generator(seed).standard_normal((n, len(mean)))
    values = np.array([float(f(z)) for z in mean + sd * noise])
    score = noise / sd
    return _controlled(values[:, None] * score, score) if control_variate else values[:, None] * score


def reparameterised_gradients(
    f: Callable[[Any], Any],
    mean: Any,
    sd: Any,
    n: int,
    seed: Seed = None,
    *,
    gradient: Gradient | None = None,
) -> Array:
    """Return n unbiased estimates of the gradient of E f(z) by the mean of z ~ N(mean, sd^2): the gradient of f at z.

    Parameters
    ----------
    f, mean, sd, n, seed
        As in `score_gradients`.
    gradient
        The gradient of f; computed by default.

    Examples
    --------
    >>> found = reparameterised_gradients(lambda z: (z**2).sum(), [1.0], [1.0], 10_000, seed=0)
    >>> round(found.mean()), round(found.var())
    (2, 4)
    """
    mean, sd = _family(mean, sd)
    check_count("n", n, 1)
    climb = gradient or gradient_of(f)
    points = mean + sd * generator(seed).standard_normal((n, len(mean)))
    return np.array([np.asarray(climb(z)) for z in points])


def _controlled(estimates: Array, score: Array) -> Array:
    """Subtract a multiple of the score, whose mean is zero, chosen for each draw from all others: unbiased."""
    n = len(score)
    product, square = estimates * score, score**2
    others = (product.sum(axis=0) - product) / (n - 1), (square.sum(axis=0) - square) / (n - 1)
    controlled: Array = estimates - others[0] / np.maximum(others[1], 1e-300) * score
    return controlled


@dataclass(frozen=True)
class GaussianFit(InNotebooks):
    """Independent normal distributions, fitted to a log density.

    Attributes
    ----------
    mean, sd
        Of each coordinate.
    elbo
        The estimated evidence lower bound at every step.
    """

    mean: Array
    sd: Array
    elbo: Array

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n points."""
        return self.mean + self.sd * generator(seed).standard_normal((n, len(self.mean)))


def black_box_vi(
    log_density: LogDensity | Terms,
    start: Any,
    *,
    gradient: Literal["score", "reparameterised"] = "score",
    control_variate: bool = True,
    steps: int = 2_000,
    samples: int = 10,
    step_size: float = 0.05,
    seed: Seed = None,
) -> GaussianFit:
    """Fit independent normal distributions to a log density by stochastic gradients of the evidence lower bound.

    Parameters
    ----------
    log_density
        A function of a vector; or, for Rao-Blackwellised scores, its terms: pairs of a function of some coordinates
        (in the order given) and the positions of these.
    start
        Means to start from; the standard deviations start at 1.
    gradient
        "score" needs no gradient of the log density; "reparameterised" has less variance.
    control_variate
        Whether scores have one.
    steps, samples, step_size
        Steps of Adam, draws of each, and the size of the first step; steps shrink like t^-1/2 (Robbins-Monro).
    seed
        A whole number or a NumPy generator.

    Examples
    --------
    >>> fit = black_box_vi(lambda z: -0.5 * ((z - 3.0) ** 2).sum() / 4.0, [0.0], seed=0)
    >>> bool(abs(fit.mean[0] - 3) < 0.2), bool(abs(fit.sd[0] - 2) < 0.2)
    (True, True)
    """
    check_choice("gradient", gradient, ("score", "reparameterised"))
    check_count("steps", steps, 1)
    check_count("samples", samples, 3)
    check_number("step_size", step_size, positive=True)
    terms: Terms | None = None if callable(log_density) else list(log_density)
    if terms is not None and gradient != "score":
        raise InvalidArgument("terms of a log density are for gradient='score'; give one function instead")
    rng = generator(seed)
    mean = np.array(start, dtype=np.float64)
    if mean.ndim != 1:
        raise InvalidArgument("start= is a vector; write [0.0] for one number")
    d = len(mean)
    climb = gradient_of(log_density) if gradient == "reparameterised" and callable(log_density) else None
    x = np.concatenate([mean, np.zeros(d)])
    first, second, average, trace = np.zeros(2 * d), np.zeros(2 * d), np.zeros(2 * d), np.zeros(steps)
    for t in range(steps):
        mean, log_sd = x[:d], x[d:]
        sd = np.exp(log_sd)
        noise = rng.standard_normal((samples, d))
        points = mean + sd * noise
        log_q = -0.5 * noise**2 - log_sd - 0.5 * log(2 * pi)
        if climb is not None:
            slopes = np.array([np.asarray(climb(z)) for z in points])
            values = np.array([float(log_density(z)) for z in points])  # type: ignore[operator]
            slope = np.concatenate([slopes, slopes * sd * noise + 1.0], axis=1).mean(axis=0)
        else:
            values, local = _local_values(log_density, terms, points)
            gaps = local - (log_q if terms is not None else log_q.sum(axis=1, keepdims=True))
            score = np.concatenate([noise / sd, noise**2 - 1.0], axis=1)
            each = np.concatenate([gaps, gaps], axis=1) * score
            slope = (_controlled(each, score) if control_variate else each).mean(axis=0)
        trace[t] = values.mean() - log_q.sum(axis=1).mean()
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = step_size / np.sqrt(1.0 + 10.0 * t / steps)
        x = x + rate * (first / (1 - 0.9 ** (t + 1))) / (np.sqrt(second / (1 - 0.999 ** (t + 1))) + 1e-8)
        if t >= steps - (steps + 3) // 4:
            average += x / ((steps + 3) // 4)
    return GaussianFit(average[:d], np.exp(average[d:]), trace)


def _local_values(log_density: Any, terms: Terms | None, points: Array) -> tuple[Array, Array]:
    """Return log densities of points, and for each coordinate the sum of the terms that it is in."""
    n, d = points.shape
    if terms is None:
        values = np.array([float(log_density(z)) for z in points])
        return values, np.repeat(values[:, None], d, axis=1)
    values, local = np.zeros(n), np.zeros((n, d))
    for term, places in terms:
        at = list(places)
        found = np.array([float(term(z[at])) for z in points])
        values += found
        local[:, at] += found[:, None]
    return values, local


def gaussian_elbo(log_density: LogDensity, mean: Any, covariance: Any, *, order: int = 20) -> float:
    """Return the evidence lower bound E_q log p(z) + H(q) of a normal distribution q, by Gauss-Hermite quadrature.

    It is log Z at q = p and less elsewhere, by KL(q || p): the Gibbs variational principle.

    Parameters
    ----------
    log_density
        A function of a vector of at most about four numbers, not necessarily normalised.
    mean, covariance
        Of q.
    order
        Nodes a coordinate; exact for polynomials of degree 2 order - 1.

    Examples
    --------
    >>> round(gaussian_elbo(lambda z: -0.5 * (z**2).sum(), [0.0], [[1.0]]), 6)  # log sqrt(2 pi)
    0.918939
    """
    mean, covariance = np.atleast_1d(np.asarray(mean, float)), np.atleast_2d(np.asarray(covariance, float))
    d = len(mean)
    if order**d > MOST_NODES:
        raise InvalidArgument(
            f"{order}^{d} nodes are too many; give a smaller order=, or use markovia.engines.ADVI"
        )
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    factor = np.linalg.cholesky(covariance)
    total = 0.0
    for at in np.ndindex(*(order,) * d):
        weight = float(np.prod(weights[list(at)])) / (2 * pi) ** (d / 2)
        total += weight * float(log_density(mean + factor @ nodes[list(at)]))
    return total + 0.5 * d * (1.0 + log(2 * pi)) + float(np.log(np.diag(factor)).sum())


def gaussian_kl(mean: Any, covariance: Any, other_mean: Any, other_covariance: Any) -> float:
    """Return the Kullback-Leibler divergence of one normal distribution from another.

    Examples
    --------
    >>> round(gaussian_kl([0.1], [[0.5]], [0.4], [[0.2]]), 6)
    0.516855
    """
    m0, m1 = np.atleast_1d(np.asarray(mean, float)), np.atleast_1d(np.asarray(other_mean, float))
    s0, s1 = np.atleast_2d(np.asarray(covariance, float)), np.atleast_2d(np.asarray(other_covariance, float))
    gap = m1 - m0
    inside = np.trace(np.linalg.solve(s1, s0)) + gap @ np.linalg.solve(s1, gap) - len(m0)
    return float(0.5 * (inside + np.linalg.slogdet(s1)[1] - np.linalg.slogdet(s0)[1]))


def _family(mean: Any, sd: Any) -> tuple[Array, Array]:
    mean = np.atleast_1d(np.asarray(mean, dtype=np.float64))
    spread = np.broadcast_to(np.asarray(sd, dtype=np.float64), mean.shape)
    if mean.ndim != 1 or not (spread > 0).all():
        raise InvalidArgument("mean= is a vector, and sd= a positive number for each coordinate")
    return mean, spread
