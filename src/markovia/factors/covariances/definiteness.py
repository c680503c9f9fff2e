"""Whether a covariance is one: its matrix at any rows is symmetric, and no eigenvalue of it is negative."""

# ruff: noqa: N803 (letters of the literature)

import numpy as np

from markovia.runtime.array_types import Array

SLACK = 1e-9
"""Negative eigenvalues down to this part of the largest are rounding."""


def fault_of(K: Array) -> str | None:
    """Return what keeps a matrix from being one of covariances, in words; None where nothing does.

    Examples
    --------
    >>> import numpy as np
    >>> fault_of(np.array([[1.0, 2.0], [2.0, 1.0]]))
    'its smallest eigenvalue at 2 rows is -1, beside a largest of 3'
    """
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        return f"it is {K[i, j]} between rows {i} and {j}"
    gap = np.abs(K - K.T)
    if gap.max(initial=0.0) > SLACK * np.abs(K).max(initial=0.0):
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        return f"it is not symmetric, {K[i, j]:.6g} between rows {i} and {j} and {K[j, i]:.6g} the other way round"
    values = np.linalg.eigvalsh(K)
    if len(values) and values[0] < -SLACK * max(values[-1], -values[0]):
        return f"its smallest eigenvalue at {len(K)} rows is {values[0]:.6g}, beside a largest of {values[-1]:.6g}"
    return None
