"""Kernel matrices of low rank: pivoted incomplete Cholesky factors of the Gaussian kernel.

K ≈ G Gᵀ with error at most `tolerance` on the diagonal (Fine, Scheinberg 2001; Bach, Jordan 2002). The kernel of one
variable with a bandwidth near its spread has a rank of some ten or twenty up to rounding, so that what costs O(n²) or
O(n³) with the whole matrix costs O(n r²).
"""

from collections.abc import Callable

import numpy as np

from markovia.runtime.array_types import Array


def gaussian_factor(
    points: Array,
    length: float,
    tolerance: float = 1e-8,
    most: int = 100,
    over: Callable[[], bool] | None = None,
) -> Array:
    """Return G with G Gᵀ near exp(-|a - b|² / (2 length²)), one row a point.

    Parameters
    ----------
    points
        One row a point.
    length
        The kernel's length.
    tolerance
        The largest error left on the diagonal.
    most
        The largest number of columns.
    over
        Says whether to stop early; who gave it throws the answer away then.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> g = gaussian_factor(x, 0.5)
    >>> bool(np.abs(g @ g.T - np.exp(-2.0 * (x - x.T) ** 2)).max() < 1e-7), g.shape[1] < 12
    (True, True)
    """
    n = len(points)
    scaled = points / (np.sqrt(2.0) * length)
    most = min(most, n)
    factor = np.empty((most, n))
    left = np.ones(n)
    used = 0
    while used < most and not (over is not None and over()):
        pivot = int(left.argmax())
        if left[pivot] <= tolerance:
            break
        gap = scaled - scaled[pivot]
        column = np.exp(-np.einsum("ij,ij->i", gap, gap))
        if used:
            column -= factor[:used, pivot] @ factor[:used]
        column /= np.sqrt(left[pivot])
        factor[used] = column
        left -= column * column
        used += 1
    return factor[:used].T


def median_distance(points: Array, most: int = 1000) -> float:
    """Return the median distance of distinct points, of at most so many evenly spaced rows; 1 where all are equal."""
    from scipy.spatial.distance import pdist

    step = -(-len(points) // most)
    distances = pdist(points[::step])
    distinct = distances[distances > 0]
    return float(np.median(distinct)) if distinct.size else 1.0
