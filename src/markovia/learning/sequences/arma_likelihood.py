"""The exact log likelihood of autoregressive moving averages without gaps, in a time that searches can spend often.

The states are Harvey's, the recursion is `markovia.kernels.sequences.arma`. Reference: Harvey (1989).
Cost: steps times the square of the longest lag.
"""

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

KERNEL = "markovia.kernels.sequences.arma:arma_log_probs"
DOUBLINGS = 60
"""Steps that a start may be away, as a power of two, until what came before it no longer counts."""


def arma_log_likelihood(
    ar: Array, ma: Array, variance: float, constant: float, y: Array, offsets: Ints
) -> float:
    """Return log p of sequences of a stationary series; minus infinity for one that is not.

    Examples
    --------
    >>> y = np.array([1.0, 0.5])
    >>> round(arma_log_likelihood(np.array([0.5]), np.empty(0), 1.0, 0.0, y, np.array([0, 2])), 6)
    -2.356718
    """
    r = max(len(ar), len(ma) + 1)
    lags, weights = np.zeros(r), np.zeros(r)
    lags[: len(ar)], weights[0], weights[1 : len(ma) + 1] = ar, 1.0, ma
    moves = np.eye(r, k=1)
    moves[:, 0] += lags
    cov = _stationary(moves, np.outer(weights, weights))
    if not variance > 0.0 or cov is None:
        return -np.inf
    push, mean = np.zeros(r), np.zeros(r)
    if constant:
        push[0] = constant
        mean[:] = np.linalg.solve(np.eye(r) - moves, push)
    found = np.empty((len(offsets) - 1, 2))
    either(KERNEL, len(y) * r * r)(lags, weights, push, mean, cov, y, offsets, found)
    logs, squares = found.sum(axis=0)
    return float(-0.5 * (len(y) * np.log(2 * np.pi * variance) + logs + squares / variance))


def _stationary(moves: Array, noise: Array) -> Array | None:
    """Return the covariance V = A V A' + Q, by doubling the number of steps it is summed over; None where it has no end."""
    cov = noise
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(DOUBLINGS):
            more = moves @ cov @ moves.T
            cov = cov + more
            if not np.isfinite(cov[0, 0]):
                return None
            if np.abs(more).max() <= 1e-15 * cov[0, 0]:
                return np.ascontiguousarray((cov + cov.T) / 2)
            moves = moves @ moves
    return None
