"""Distances of rows from the centres of Gaussians, and weighted sums of squares around them.

Rows are taken some hundred at a time and turned, so that inner loops run along rows that stay in the cache. Of a matrix
`(states, columns, columns)` only the lower triangle is looked at, or only the diagonal.
Cost: rows times states times entries looked at.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel

REORDERED = {"reassoc", "contract"}
WIDTH = 256


@inner
def _turned(first, n, values, turned):
    """Write values[first ... first + n] into columns."""
    for t in range(n):
        for i in range(values.shape[1]):
            turned[i, t] = values[first + t, i]


@inner(fastmath=REORDERED)
def _apart(n, turned, mean, apart):
    for i in range(len(mean)):
        for t in range(n):
            apart[i, t] = turned[i, t] - mean[i]


@kernel(fastmath=REORDERED)
def squared_lengths(first, last, rows, means, inverses, diagonal, squares):
    """Write the squared length of each row less each mean, times the inverse root, into `squares (rows, states)`."""
    k, d = means.shape
    turned, apart = np.empty((d, WIDTH)), np.empty((d, WIDTH))
    white, total = np.empty(WIDTH), np.empty(WIDTH)
    for a in range(first, last, WIDTH):
        n = min(WIDTH, last - a)
        _turned(a, n, rows, turned)
        for s in range(k):
            _apart(n, turned, means[s], apart)
            total[:n] = 0.0
            for i in range(d):
                c = inverses[s, i, i]
                for t in range(n):
                    white[t] = c * apart[i, t]
                for j in range(0 if diagonal else i):
                    c = inverses[s, i, j]
                    for t in range(n):
                        white[t] += c * apart[j, t]
                for t in range(n):
                    total[t] += white[t] * white[t]
            for t in range(n):
                squares[a + t, s] = total[t]


@kernel(fastmath=REORDERED)
def weighted_squares(first, last, rows, weights, means, diagonal, sums):
    """Add weighted products of each row less each mean to `sums (states, columns, columns)`."""
    k, d = means.shape
    turned, apart = np.empty((d, WIDTH)), np.empty((d, WIDTH))
    shares, part = np.empty((k, WIDTH)), np.empty(WIDTH)
    for a in range(first, last, WIDTH):
        n = min(WIDTH, last - a)
        _turned(a, n, rows, turned)
        _turned(a, n, weights, shares)
        for s in range(k):
            _apart(n, turned, means[s], apart)
            for i in range(d):
                for t in range(n):
                    part[t] = shares[s, t] * apart[i, t]
                for j in range(i if diagonal else 0, i + 1):
                    found = 0.0
                    for t in range(n):
                        found += part[t] * apart[j, t]
                    sums[s, i, j] += found
