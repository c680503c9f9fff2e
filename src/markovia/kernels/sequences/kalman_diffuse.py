"""The first steps of Kalman filters and smoothers whose states start with infinite variances, treated exactly.

A covariance is P + kappa U with kappa to infinity (Koopman and Durbin 2000), and U = A A' is carried as A, with a column for
each direction that is not told yet. A number that A says something about is spent on the start and takes a column away; with
none left, from the row `begin[q]` on, sequences are ordinary (`kalman`). In the smoother r + u / kappa, and
N[0] + N[1] / kappa + N[2] / kappa^2, run on backwards from there. Arrays are those of `kalman_records`; A is (sequences, n,
directions), `slack` (sequences, n).

Whether a number tells something is a question of zero or not, and may be asked long after what is zero came about: a gap
leaves a start half told for a season. So `slack` has a bound of the rounding in each row of A, which moves with it, and a
row within its slack is zero.
"""

# ruff: noqa: N803, N806, E741 (letters of the literature)

import math

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.sequences.kalman import (
    LOG_2PI,
    add_back,
    copy,
    decorrelate,
    moved_back,
    numbers_seen,
    sandwich,
    take_in,
)

ROUNDING = 1e-14
"""Rounding of a row of A when it is made, as a share of its length."""
MOST_ROUNDING = 1e-11
"""Rounding of any row of A, as a share of the greatest length so far: bounds that add up step by step become too wide."""


@inner(bare=True)
def spend(row, i, start, q, rank, gains, vague, room):
    """Spend a number on the start, where it tells something about that; say whether it does.

    room[1, 0] is A'z, the direction it tells, and then A A'z; room[2, 0] is P z.
    """
    P, A, slack = start
    z, gain = gains.z, gains.gain
    n = P.shape[1]
    told = 0.0
    doubt = 0.0
    for a in range(n):
        doubt += abs(z[row, i, a]) * slack[q, a]
    for j in range(rank):
        room[1, 0, j] = 0.0
        for a in range(n):
            room[1, 0, j] += A[q, a, j] * z[row, i, a]
        told += room[1, 0, j] * room[1, 0, j]
    length = math.sqrt(told)
    if not length > doubt:
        return False
    F = gains.lower[row, i, i]
    for a in range(n):
        room[1, 0, n + a] = 0.0
        room[2, 0, a] = 0.0
        for j in range(rank):
            room[1, 0, n + a] += A[q, a, j] * room[1, 0, j]
        for b in range(n):
            room[2, 0, a] += P[q, a, b] * z[row, i, b]
        F += room[2, 0, a] * z[row, i, a]
    vague.variance[row, i] = F
    vague.told[row, i] = told
    gains.weight[row, i] = 0.0
    gains.logs[row] += math.log(told)
    for a in range(n):
        gain[row, i, a] = room[1, 0, n + a] / told
        vague.gain[row, i, a] = (room[2, 0, a] - gain[row, i, a] * F) / told
    for a in range(n):
        f = gain[row, i, a] * F - room[2, 0, a]
        for b in range(n):
            P[q, a, b] += f * gain[row, i, b] - gain[row, i, a] * room[2, 0, b]
    # the reflection that turns the direction told into the last column, which then goes
    last = rank - 1
    room[1, 0, last] += math.copysign(length, room[1, 0, last])
    square = 2.0 * length * abs(room[1, 0, last])
    for a in range(n):
        f = 0.0
        for j in range(rank):
            f += A[q, a, j] * room[1, 0, j]
        left = 0.0
        for j in range(last):
            A[q, a, j] -= 2.0 * f / square * room[1, 0, j]
            left += A[q, a, j] * A[q, a, j]
        A[q, a, last] = 0.0
        slack[q, a] += abs(gain[row, i, a]) * doubt
        if left <= slack[q, a] * slack[q, a]:
            for j in range(last):
                A[q, a, j] = 0.0
            slack[q, a] = 0.0
    return True


@inner(bare=True)
def move_loads(T, t, A, slack, q, rank, reach, room):
    """Set A to T A, and rows within their slack to zero; return the greatest length of a row so far, or 0 if A is zero."""
    n = T.shape[1]
    for a in range(n):
        doubt = 0.0
        for j in range(rank):
            room[1, a, j] = 0.0
        for b in range(n):
            f = T[t, a, b]
            if f != 0.0:
                doubt += abs(f) * slack[q, b]
                for j in range(rank):
                    room[1, a, j] += f * A[q, b, j]
        room[2, 0, a] = doubt
    most = 0.0
    for a in range(n):
        square = 0.0
        for j in range(rank):
            square += room[1, a, j] * room[1, a, j]
        slack[q, a] = min(room[2, 0, a], MOST_ROUNDING * reach)
        zero = square <= slack[q, a] * slack[q, a]
        for j in range(rank):
            A[q, a, j] = 0.0 if zero else room[1, a, j]
        if zero:
            slack[q, a] = 0.0
        else:
            most = max(most, math.sqrt(square))
    return max(most, reach) if most > 0.0 else 0.0


@inner(bare=True)
def squared(A, q, rank, out, o):
    """Write A A'."""
    n = A.shape[1]
    for a in range(n):
        for b in range(a + 1):
            found = 0.0
            for j in range(rank):
                found += A[q, a, j] * A[q, b, j]
            out[o, a, b] = found
            out[o, b, a] = found


@kernel(bare=True)
def diffuse_covariances(steps, gains, vague, first, last, start, room):
    """Run sequences from a `DiffuseStart` until it is told, and set `begin` to the row after; else as `covariances`."""
    P, A, slack = start
    T, Q, offsets = steps.T, steps.Q, steps.offsets
    n = T.shape[1]
    for q in range(first, last):
        rank = A.shape[2]
        reach = 0.0
        for a in range(n):
            square = 0.0
            for j in range(rank):
                square += A[q, a, j] * A[q, a, j]
            slack[q, a] = ROUNDING * math.sqrt(square)
            reach = max(reach, math.sqrt(square))
        row = offsets[q]
        while rank > 0 and row < offsets[q + 1]:
            t = row - offsets[q]
            gains.slot[row] = row
            vague.rank[row] = rank
            copy(n, P, q, gains.before, row)
            squared(A, q, rank, vague.before, row)
            m = decorrelate(row, t, steps, gains.lower, gains.z)
            if m < 0:
                return row
            gains.logs[row] = m * LOG_2PI
            for i in range(m):
                vague.told[row, i] = 0.0
                if rank > 0 and spend(row, i, start, q, rank, gains, vague, room):
                    rank -= 1
                elif not take_in(row, i, P, q, gains, room):
                    return row
            copy(n, P, q, gains.after, row)
            squared(A, q, rank, vague.after, row)
            moved = min(t, len(T) - 1)
            sandwich(T, moved, P, q, room, 1.0, Q, min(t, len(Q) - 1), 1.0, P, q)
            reach = move_loads(T, moved, A, slack, q, rank, reach, room)
            if reach == 0.0:
                rank = 0
            row += 1
        steps.begin[q] = row
    return -1


@kernel(bare=True)
def diffuse_means(steps, gains, vague, first, last, means, r, smoothed, room):
    """Go on with `smooth_means` before `begin`; r has as many rows again, of zeros, for the part without bound."""
    T, offsets, z, gain = steps.T, steps.offsets, gains.z, gains.gain
    before, _, innovation, _ = means
    n = T.shape[1]
    for q in range(first, last):
        u = len(steps.begin) + q
        for row in range(steps.begin[q] - 1, offsets[q] - 1, -1):
            s = gains.slot[row]
            if row < offsets[q + 1] - 1:
                t = min(row - offsets[q], len(T) - 1)
                moved_back(T, t, r, q, room)
                moved_back(T, t, r, u, room)
            for i in range(numbers_seen(steps.seen, row) - 1, -1, -1):
                f = innovation[row, i] * gains.weight[s, i]
                g = 0.0
                for a in range(n):
                    f -= gain[s, i, a] * r[q, a]
                    g -= gain[s, i, a] * r[u, a]
                if vague.told[s, i] > 0.0:
                    g += innovation[row, i] / vague.told[s, i]
                    for a in range(n):
                        g -= vague.gain[s, i, a] * r[q, a]
                for a in range(n):
                    r[q, a] += f * z[s, i, a]
                    r[u, a] += g * z[s, i, a]
            for a in range(n):
                found = before[row, a]
                for b in range(n):
                    found += gains.before[s, a, b] * r[q, b] + vague.before[s, a, b] * r[u, b]
                smoothed[row, a] = found


@inner(bare=True)
def cross_back(N, at, gains, g, s, i, room):
    """Add -(K' N[at - 1] g) z' and its transpose to N[at], where K = I - k z' and k is the gain."""
    k, z = gains.gain, gains.z
    n = N.shape[1]
    f = 0.0
    for a in range(n):
        found = 0.0
        for b in range(n):
            found += N[at - 1, a, b] * g[s, i, b]
        room[1, 0, a] = found
        f += 2.0 * k[s, i, a] * found
    for a in range(n):
        for b in range(n):
            w = f * z[s, i, a] - room[1, 0, a]
            N[at, a, b] += w * z[s, i, b] - z[s, i, a] * room[1, 0, b]


@inner(bare=True)
def product(a, i, b, j, out, o):
    """Write the product of two matrices."""
    n = a.shape[1]
    for k in range(n):
        for l in range(n):
            found = 0.0
            for c in range(n):
                found += a[i, k, c] * b[j, c, l]
            out[o, k, l] = found


@kernel(bare=True)
def diffuse_smooth_covariances(steps, gains, vague, first, last, N, found, room):
    """Go on with `smooth_covariances` in the rows before `begin`, with three matrices N a sequence."""
    back, offsets, before = steps.T, steps.offsets, gains.before
    place, smoothed, entering, vague_entering = found
    n = back.shape[1]
    for q in range(first, last):
        at = 3 * q
        for row in range(steps.begin[q] - 1, offsets[q] - 1, -1):
            s = gains.slot[row]
            place[row] = row
            copy(n, N, at, entering, row)
            copy(n, N, at + 1, vague_entering, row)
            if row < offsets[q + 1] - 1:
                t = min(row - offsets[q], len(back) - 1)
                for b in range(at, at + 3):
                    sandwich(back, t, N, b, room, 1.0, N, b, 0.0, N, b)
            for i in range(numbers_seen(steps.seen, row) - 1, -1, -1):
                told = vague.told[s, i]
                for b in range(2, -1, -1):
                    f = gains.weight[s, i] if b == 0 else 0.0
                    if told > 0.0 and b == 1:
                        f = 1.0 / told
                    if told > 0.0 and b == 2:
                        f = -vague.variance[s, i] / told**2
                        for c in range(n):
                            for d in range(n):
                                f += vague.gain[s, i, c] * N[at, c, d] * vague.gain[s, i, d]
                    add_back(N, at + b, gains, s, i, f, room)
                    if told > 0.0 and b > 0:
                        cross_back(N, at + b, gains, vague.gain, s, i, room)
            # before - before N[0] before - vague N[2] vague - vague N[1] before - its transpose
            sandwich(before, s, N, at, room, -1.0, before, s, 1.0, smoothed, row)
            sandwich(vague.before, s, N, at + 2, room, -1.0, smoothed, row, 1.0, smoothed, row)
            product(N, at + 1, before, s, room, 1)
            product(vague.before, s, room, 1, room, 2)
            for a in range(n):
                for b in range(n):
                    smoothed[row, a, b] -= room[2, a, b] + room[2, b, a]
