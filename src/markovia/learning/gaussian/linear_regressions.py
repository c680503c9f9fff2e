"""Linear-Gaussian nodes from sums of products: maximum likelihood, and posteriors under a normal-inverse-gamma prior.

A node's rows enter as sums of products of (1, parents, child), one matrix for each configuration of its discrete parents;
expected sums serve as well, which is what expectation-maximisation hands over.
Reference: Murphy (2012), section 7.6, for the conjugate prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.variable import Variable
from markovia.learning.tables.priors import NormalInverseGamma
from markovia.runtime.array_types import Array

NO_NOISE = 1e-13
"""Share of a column's variance below which what a regression leaves is rounding."""


@dataclass(frozen=True)
class RegressionPosterior:
    """The posterior of one regression: `variance ~ InverseGamma(shape, scale)`, coefficients Gaussian given it.

    `mean` and `precision` (in units of one over the variance) are those of (bias, weights).
    """

    mean: Array
    precision: Array
    shape: float
    scale: float
    log_evidence: float

    def variance(self) -> float:
        """Return the posterior mean of the variance, or its mode where that mean is infinite."""
        return self.scale / (self.shape - 1.0) if self.shape > 1.0 else self.scale / (self.shape + 1.0)

    def draw(self, rng: np.random.Generator) -> tuple[Array, float]:
        """Return drawn coefficients and a drawn variance."""
        variance = self.scale / rng.standard_gamma(self.shape)
        root = np.linalg.cholesky(self.precision)
        return self.mean + np.sqrt(variance) * np.linalg.solve(
            root.T, rng.standard_normal(len(self.mean))
        ), variance


def centred(products: Array) -> tuple[float, Array, Array]:
    """Return the number of rows, the means and the scatter matrix around them from sums of products with a leading 1."""
    n = float(products[0, 0])
    if n <= 0.0:
        return 0.0, np.zeros(len(products) - 1), np.zeros((len(products) - 1,) * 2)
    mean = products[0, 1:] / n
    return n, mean, products[1:, 1:] - n * np.outer(mean, mean)


def maximum_likelihood(products: Array, name: str) -> tuple[float, Array, float]:
    """Return bias, weights and variance of largest likelihood from sums of products of (1, parents, child)."""
    n, mean, scatter = centred(products)
    inside, across = scatter[:-1, :-1], scatter[:-1, -1]
    scale = np.sqrt(np.maximum(np.diag(inside), 1e-300))
    weights = np.linalg.lstsq(inside / np.outer(scale, scale), across / scale, rcond=1e-11)[0] / scale
    rest = float(scatter[-1, -1] - 2 * weights @ across + weights @ inside @ weights)
    if n <= len(weights) + 1:
        raise InvalidArgument(
            f"{name!r} has {n:g} rows for {len(weights) + 2} parameters of a regression; give prior=1, or fewer parents"
        )
    variance = rest / n if rest > NO_NOISE * max(scatter[-1, -1], n * mean[-1] ** 2) else 0.0
    return float(mean[-1] - weights @ mean[:-1]), weights, variance


def posterior(products: Array, strength: float, center: Array, spread: Array) -> RegressionPosterior:
    """Return the posterior from sums of products; the prior is in units of the columns' means and variances."""
    k = len(center) - 1
    # in coordinates around the columns' means the prior is diagonal
    shift = np.eye(k + 2)
    shift[1:, 0] = -center
    moved = shift @ products @ shift.T
    before = strength * np.diag([1.0, *spread[:-1]])
    after = before + moved[:-1, :-1]
    mean: Array = np.asarray(np.linalg.solve(after, moved[:-1, -1]), np.float64)
    n = float(products[0, 0])
    shape, shape_n = 1.0 + strength / 2, 1.0 + strength / 2 + n / 2
    scale = 0.5 * strength * float(spread[-1])
    scale_n = scale + 0.5 * max(float(moved[-1, -1] - mean @ after @ mean), 0.0)
    from scipy.special import gammaln

    log_evidence = (
        -0.5 * n * np.log(2 * np.pi)
        + 0.5 * (np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1])
        + shape * np.log(scale)
        - shape_n * np.log(scale_n)
        + gammaln(shape_n)
        - gammaln(shape)
    )
    back = np.eye(k + 1)
    back[0, 1:] = -center[:-1]
    mean = back @ mean
    mean[0] += center[-1]
    inverse = np.linalg.inv(back)
    return RegressionPosterior(mean, inverse.T @ after @ inverse, shape_n, scale_n, float(log_evidence))


def log_likelihood(products: Array, bias: float, weights: Array, variance: float) -> float:
    """Return the (expected) log likelihood of the rows behind sums of products."""
    n = float(products[0, 0])
    if n == 0.0 or variance == 0.0:
        return 0.0
    row = np.concatenate([[-bias], -weights, [1.0]])
    return float(-0.5 * (n * np.log(2 * np.pi * variance) + row @ products @ row / variance))


def fitted_node(
    variable: Variable,
    discrete: Sequence[Variable],
    continuous: Sequence[Variable],
    products: Array,
    prior: NormalInverseGamma | None,
) -> tuple[GaussianConditional, dict[tuple[int, ...], RegressionPosterior], int]:
    """Return a node from its sums of products, the posteriors of its regressions, and how many of them no row shows.

    Without a prior, a configuration of discrete parents that no row shows gets the regression of all rows together.
    """
    shape = products.shape[:-2]
    pooled = products.reshape(-1, *products.shape[-2:]).sum(axis=0)
    n, center, scatter = centred(pooled)
    spread = np.maximum(np.diag(scatter) / max(n, 1e-300), 0.0)
    spread = np.where(spread > 0.0, spread, 1.0)
    bias, variance = np.empty(shape), np.empty(shape)
    weights = np.empty((*shape, len(continuous)))
    posteriors: dict[tuple[int, ...], RegressionPosterior] = {}
    unseen = 0
    for at in np.ndindex(shape):
        own = products[at]
        unseen += bool(own[0, 0] <= 0.0)
        if prior is not None:
            found = posteriors[at] = posterior(own, prior.strength, center, spread)
            bias[at], weights[at], variance[at] = found.mean[0], found.mean[1:], found.variance()
        else:
            used = pooled if own[0, 0] <= 0.0 else own
            bias[at], weights[at], variance[at] = maximum_likelihood(used, variable.name)
    return GaussianConditional(variable, discrete, continuous, bias, weights, variance), posteriors, unseen
