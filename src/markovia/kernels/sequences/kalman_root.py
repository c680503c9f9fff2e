"""Kalman filters that carry roots S of covariances S S' from step to step: Potter's update, and triangles by reflections."""

# ruff: noqa: N803, N806 (letters of the literature)

import math

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.sequences.kalman import LOG_2PI, copy, decorrelate, repeats


@inner(bare=True)
def triangle(A, S, q):
    """Set S to a lower triangle with S S' = A A', by reflections of the rows of A[1], which is spoilt."""
    n = S.shape[1]
    for i in range(n):
        norm = 0.0
        for k in range(i, 2 * n):
            norm += A[1, i, k] * A[1, i, k]
        norm = math.sqrt(norm)
        if norm > 0.0:
            if A[1, i, i] > 0.0:
                norm = -norm
            head = A[1, i, i] - norm
            scale = -1.0 / (norm * head)
            for j in range(i + 1, n):
                total = A[1, j, i] * head
                for k in range(i + 1, 2 * n):
                    total += A[1, j, k] * A[1, i, k]
                total *= scale
                A[1, j, i] -= total * head
                for k in range(i + 1, 2 * n):
                    A[1, j, k] -= total * A[1, i, k]
            A[1, i, i] = norm
        for k in range(n):
            S[q, i, k] = A[1, i, k] if k <= i else 0.0


@inner(bare=True)
def square(S, q, P):
    """Set P to S S'."""
    n = P.shape[1]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += S[q, i, k] * S[q, j, k]
            P[q, i, j] = total
            P[q, j, i] = total


@inner(bare=True)
def take_into_root(row, i, S, q, gains, room):
    """Take a number into the root of a covariance; say whether its variance is not zero."""
    z, gain, weight = gains.z, gains.gain, gains.weight
    n = S.shape[1]
    noise = gains.lower[row, i, i]
    variance = noise
    for b in range(n):
        found = 0.0
        for a in range(n):
            found += S[q, a, b] * z[row, i, a]
        room[0, 0, b] = found
        variance += found * found
    if not variance > 0.0:
        return False
    weight[row, i] = 1.0 / variance
    gains.logs[row] += math.log(variance)
    scale = 1.0 / (1.0 + math.sqrt(noise * weight[row, i]))
    for a in range(n):
        found = 0.0
        for b in range(n):
            found += S[q, a, b] * room[0, 0, b]
        found *= weight[row, i]
        gain[row, i, a] = found
        for b in range(n):
            S[q, a, b] -= scale * found * room[0, 0, b]
    return True


@kernel(bare=True)
def root_covariances(steps, gains, first, last, P, S, room):
    """Do as `kalman.covariances` with roots: S of P, and G of the noise's covariances in place of Q."""
    T, G, begin, offsets, slot = steps.T, steps.Q, steps.begin, steps.offsets, gains.slot
    n = T.shape[1]
    steady = len(T) == 1 and len(G) == 1 and len(steps.Z) == 1 and len(steps.H) == 1
    for q in range(first, last):
        rests = False
        for row in range(begin[q], offsets[q + 1]):
            rests = steady and row > begin[q] and repeats(row, steps.seen, gains, P, q, rests)
            if rests:
                slot[row] = slot[row - 1]
            else:
                t = row - offsets[q]
                slot[row] = row
                copy(n, P, q, gains.before, row)
                m = decorrelate(row, t, steps, gains.lower, gains.z)
                if m < 0:
                    return row
                gains.logs[row] = m * LOG_2PI
                for i in range(m):
                    if not take_into_root(row, i, S, q, gains, room):
                        return row
                square(S, q, P)
                copy(n, P, q, gains.after, row)
                # the next root is a triangle of (T S, G): its square is T P T' + G G'
                moved = min(t, len(T) - 1)
                added = min(t, len(G) - 1)
                for i in range(n):
                    for j in range(n):
                        found = 0.0
                        for k in range(n):
                            found += T[moved, i, k] * S[q, k, j]
                        room[1, i, j] = found
                        room[1, i, n + j] = G[added, i, j]
                triangle(room, S, q)
                square(S, q, P)
    return -1
