"""The Kalman filter on precisions and information vectors, which may begin at zero: nothing is known beforehand.

A state's density is exp(c - x' L x / 2 + h' x). An observed number adds to L and h; a move is a change of variables, and
then each independent part of the noise takes from them what it blurs. Cost: steps times states cubed.
"""

# ruff: noqa: N803, E741 (letters of the literature)

import math

from markovia.kernels.kernel import kernel
from markovia.kernels.sequences.kalman import LOG_2PI, copy, decorrelate, sandwich


@kernel(bare=True)
def information(
    back, G, Z, H, y, push, seen, offsets, first, last, L, h, before, before_h, after, after_h, constant, lower, z, room
):  # fmt: skip
    """Run sequences from L and h on, with `back` the transitions inverted and turned, G roots of noise's covariances.

    `constant` is c after each step, as densities of y and x; moves leave out the determinants of transitions. Returns
    the row of an observation without noise, else -1.
    """
    n = L.shape[1]
    for q in range(first, last):
        c = 0.0
        for row in range(offsets[q], offsets[q + 1]):
            t = row - offsets[q]
            copy(n, L, q, before, row)
            for a in range(n):
                before_h[row, a] = h[q, a]
            m = decorrelate(row, seen, Z, min(t, len(Z) - 1), H, min(t, len(H) - 1), lower, z)
            if m < 0:
                return row
            k = 0
            for j in range(Z.shape[1]):
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
            constant[row] = c
            copy(n, L, q, after, row)
            for a in range(n):
                after_h[row, a] = h[q, a]
            moved = min(t, len(back) - 1)
            sandwich(back, moved, L, q, room, 1.0, L, q, 0.0, L, q)
            for a in range(n):
                found = 0.0
                for b in range(n):
                    found += back[moved, a, b] * after_h[row, b]
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
