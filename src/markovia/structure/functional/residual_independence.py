"""Whether the noises of a linear model are independent: a test for each pair of residuals, all pairs at once.

Each residual z is standardised and passed through four functions f. Of the earlier variable of a pair, f less its
regression on z is taken; of the later one, z itself and f less its mean slope E f' times z. Under independence their
products have mean zero, and n times the sum of their squares, once both sides are whitened, is chi-square with 4·5 =
20 degrees of freedom; both corrections see to it that the estimated coefficients do not disturb this to first order.
Correlation itself is not looked at: least squares have removed it.

Cost O(n p²): use it where a kernel test (`gamma_hsic`) of every pair would take too long.
"""

from collections.abc import Sequence

import numpy as np

from markovia.runtime.array_types import Array


def independence_p_values(residuals: Array, order: Sequence[int] | None = None) -> Array:
    """Return the p-value of independence for each pair of columns, beyond correlation; 1 on the diagonal.

    Parameters
    ----------
    residuals
        One column a variable.
    order
        The columns, causes first; by default as they stand.

    Examples
    --------
    >>> e = np.random.default_rng(0).normal(size=(2000, 3))
    >>> e[:, 2] *= np.abs(e[:, 0])
    >>> p = independence_p_values(e)
    >>> bool(p[0, 1] > 0.01), bool(p[0, 2] < 1e-9)
    (True, True)
    """
    from scipy.stats import chi2

    n, p = residuals.shape
    z = residuals - residuals.mean(axis=0)
    z = z / np.maximum(z.std(axis=0), 1e-300)
    bell, steep, bowl = np.exp(-0.5 * z * z), np.tanh(2.0 * z), np.sqrt(1.0 + z * z)
    functions = [
        (bell, -z * bell),
        (z * bell, (1 - z * z) * bell),
        (steep, 2.0 * (1 - steep * steep)),
        (bowl, z / bowl),
    ]
    k = len(functions)
    earlier, later = np.empty((n, p, k)), np.empty((n, p, k + 1))
    later[:, :, k] = z
    for m, (value, slope) in enumerate(functions):
        earlier[:, :, m] = value - (value * z).mean(axis=0) * z
        later[:, :, m] = value - slope.mean(axis=0) * z
    products = (_whitened(earlier).T @ _whitened(later) / n).reshape(p, k, p, k + 1)
    statistics = n * (products**2).sum(axis=(1, 3))
    found: Array = chi2.sf(statistics, k * (k + 1))
    place = np.empty(p, dtype=np.int64)
    place[list(range(p) if order is None else order)] = np.arange(p)
    first = place[:, None] < place[None, :]
    found = np.where(first, found, found.T)
    np.fill_diagonal(found, 1.0)
    return found


def _whitened(features: Array) -> Array:
    """Return each variable's features with mean 0, variance 1 and no correlation, side by side."""
    features = features - features.mean(axis=0)
    n, p, _ = features.shape
    for j in range(p):
        spread, axes = np.linalg.eigh(features[:, j].T @ features[:, j] / n)
        scale = np.where(spread > 1e-9 * spread[-1], 1.0 / np.sqrt(np.maximum(spread, 1e-300)), 0.0)
        features[:, j] = features[:, j] @ (axes * scale)
    return features.reshape(n, -1)
