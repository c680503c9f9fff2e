"""The likelihood of autoregressive moving averages without gaps, in Harvey's state space.

Nothing disturbs the observation, so that a filtered covariance has an empty first row and column, and the next predicted one
is what is left of it, moved up by one: a step costs the square of the number of states, not its cube.
"""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def arma_log_probs(ar, weights, push, first_mean, first_cov, y, offsets, found):
    """Fill (sequences, 2) with the sums of the logs of variances and of squared standardised innovations, for unit noise.

    `ar`, `weights`, `push`, `first_mean (states,)` are the autoregression, the loadings of the noise (1, ma1, ...), what is
    added and the first mean; `first_cov (states, states)`; sequence s has the steps `offsets[s]` to `offsets[s + 1]` of `y`.
    """
    r = len(ar)
    mean, column, cov = np.empty(r), np.empty(r), np.empty((r, r))
    for s in range(len(offsets) - 1):
        mean[:], cov[:] = first_mean, first_cov
        logs = squares = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            spread, away = cov[0, 0], y[t] - mean[0]
            logs += np.log(spread)
            squares += away * away / spread
            # the filtered state begins with y itself, which is known; the others move up by one
            column[:] = cov[:, 0]
            for i in range(r):
                ahead = mean[i + 1] + column[i + 1] * away / spread if i < r - 1 else 0.0
                mean[i] = ar[i] * y[t] + ahead + push[i]
            # an entry is read before it is written: it comes from one row and column further on
            for i in range(r):
                for j in range(r):
                    left = 0.0
                    if i < r - 1 and j < r - 1:
                        left = cov[i + 1, j + 1] - column[i + 1] * column[j + 1] / spread
                    cov[i, j] = left + weights[i] * weights[j]
        found[s, 0], found[s, 1] = logs, squares
