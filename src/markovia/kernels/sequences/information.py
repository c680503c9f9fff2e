"""The Kalman filter on precisions and information vectors, which may begin at zero: nothing is known beforehand.

A state's density is exp(c - x' L x / 2 + h' x). An observed number adds to L and h; a move is a change of variables, and
then each independent part of the noise takes from them what it blurs. Cost: steps times states cubed.
"""

# ruff: noqa: N806, E741 (letters of the literature)

import math

from markovia.kernels.kernel import kernel
from markovia.kernels.sequences.kalman import LOG_2PI, copy, decorrelate, sandwich


@kernel(bare=True)
def information(steps, y, push, first, last, state, before, after, room):
    """Run sequences from `state` on: L (sequences, n, n) and h (sequences, n).

    Transitions of `steps` are inverted and turned, Q roots of noise's covariances. `before` and `after` each step are L
    (rows, n, n) and h (rows, n), after it also c (rows,), as densities of y and x; moves leave out the determinants of
    transitions. The room is as `lower` and `z` of `KalmanGains`, and (2, n or p, twice that). Returns the row of an
    observation without noise, else -1.
    """
    L, h = state
    lower, z, room = room
    back, G, seen, offsets = steps.T, steps.Q, steps.seen, steps.offsets
    n = L.shape[1]
    for q in range(first, last):
        c = 0.0
        for row in range(offsets[q], offsets[q + 1]):
            t = row - offsets[q]
            copy(n, L, q, before[0], row)
            for a in range(n):
                before[1][row, a] = h[q, a]
            # the step's numbers, one at a time
            m = decorrelate(row, t, steps, lower, z)
            if m < 0:
                return row
            k = 0
            for j in range(seen.shape[1]):
                if seen[row, j]:
                    noise = lower[row, k, k]
                    if not noise > 0.0:
                        return row
                    found = y[row, j]
                    for l in range(k):
                        found -= lower[row, k, l] * room[1, 0, l]
                    room[1, 0, k] = found
                    c -= 0.5 * (LOG_2PI + math.log(noise) + found * found / noise)
                    for a in range(n):
                        f = z[row, k, a] / noise
                        h[q, a] += f * found
                        for b in range(n):
                            L[q, a, b] += f * z[row, k, b]
                    k += 1
            after[2][row] = c
            copy(n, L, q, after[0], row)
            for a in range(n):
                after[1][row, a] = h[q, a]
            # the move as a change of variables, first the matrix and then the push
            moved = min(t, len(back) - 1)
            sandwich(back, moved, L, q, room, 1.0, L, q, 0.0, L, q)
            for a in range(n):
                found = 0.0
                for b in range(n):
                    found += back[moved, a, b] * after[1][row, b]
                h[q, a] = found
            pushed = min(row, len(push) - 1)
            for a in range(n):
                c -= push[pushed, a] * h[q, a]
            for a in range(n):
                found = 0.0
                for b in range(n):
                    found += L[q, a, b] * push[pushed, b]
                h[q, a] += found
                c -= 0.5 * push[pushed, a] * found
            # what each column of G blurs
            added = min(t, len(G) - 1)
            for i in range(n):
                size = 1.0
                share = 0.0
                for a in range(n):
                    found = 0.0
                    for b in range(n):
                        found += L[q, a, b] * G[added, b, i]
                    room[1, 0, a] = found
                    size += found * G[added, a, i]
                    share += h[q, a] * G[added, a, i]
                c += 0.5 * (share * share / size - math.log(size))
                for a in range(n):
                    f = room[1, 0, a] / size
                    h[q, a] -= f * share
                    for b in range(n):
                        L[q, a, b] -= f * room[1, 0, b]
    return -1
