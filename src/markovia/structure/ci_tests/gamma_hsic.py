"""HSIC with the gamma approximation of its null distribution, from kernels of low rank.

n·HSIC of two independent variables is a weighted sum of chi-squares; a gamma distribution with its mean tr(K)tr(L)/n²
and variance 2 tr(K²)tr(L²)/n⁴ (of the centred kernel matrices, times n) stands for it (Gretton et al. 2008; the
moments as in Zhang, Peters, Janzing, Schölkopf 2011). Gaussian kernels with the median distance as bandwidth have low
rank (`incomplete_cholesky`), so the test costs O(n r²): milliseconds for ten thousand rows.

`markovia.learning.hsic_test` is the permutation test: slower, exact level, p-values no smaller than one over the number
of permutations. `kernel_ci_test` has the same statistic from whole kernel matrices, as the conditional tests need them;
the gamma distribution is the one here.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array
from markovia.structure.ci_tests.incomplete_cholesky import gaussian_factor, median_distance


class HsicTest(NamedTuple):
    """The statistic (biased HSIC), its mean and standard deviation under independence, and the p-value.

    `log_p` is the logarithm of the p-value, which tells apart p-values too small for a float.
    """

    statistic: float
    null_mean: float
    null_sd: float
    p_value: float
    log_p: float


def gamma_hsic(x: Array, y: Array, *, rank: int = 100, over: Callable[[], bool] | None = None) -> HsicTest:
    """Test whether two variables, each of one or more columns, are independent.

    Parameters
    ----------
    x, y
        One row an observation.
    rank
        The largest rank of a kernel matrix.
    over
        As for `gaussian_factor`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 500))
    >>> gamma_hsic(x, y).p_value > 0.05, gamma_hsic(x, y + 0.3 * x**2).p_value < 0.001
    (True, True)
    """
    return factored_hsic(centred_factor(x, rank, over), centred_factor(y, rank, over))


def centred_factor(points: Array, rank: int = 100, over: Callable[[], bool] | None = None) -> Array:
    """Return the centred factor of the Gaussian kernel with the median distance as bandwidth."""
    matrix = points[:, None] if points.ndim == 1 else points
    factor = gaussian_factor(matrix, median_distance(matrix), 1e-6, rank, over)
    centred: Array = factor - factor.mean(axis=0)
    return centred


def factored_hsic(first: Array, second: Array) -> HsicTest:
    """Test from centred factors, which callers keep where one variable is tested against several."""
    n = len(first)
    statistic = float(((first.T @ second) ** 2).sum()) / n**2
    own, other = first.T @ first, second.T @ second
    mean = float(np.trace(own) * np.trace(other)) / n**3
    variance = 2.0 * float((own**2).sum() * (other**2).sum()) / n**6
    log_p = log_gamma_tail(statistic, mean, variance)
    return HsicTest(statistic, mean, variance**0.5, float(np.exp(log_p)), log_p)


def log_gamma_tail(statistic: float, mean: float, variance: float) -> float:
    """Return the log of the chance that a gamma variable of some mean and variance is as large.

    Without mean or variance it is 0: a constant is independent of everything.
    """
    from scipy.stats import gamma

    if mean <= 0.0 or variance <= 0.0:
        return 0.0
    return float(gamma.logsf(max(statistic, 0.0), mean**2 / variance, scale=variance / mean))
