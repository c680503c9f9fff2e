"""Kalman filters and smoothers on flat arrays: many sequences after each other, `offsets` say where each begins.

    x[t+1] = T x[t] + c + eta,  y[t] = Z x[t] + d + eps,  eta ~ N(0, Q),  eps ~ N(0, H)

Observations are taken in one number at a time (Koopman and Durbin 2000): missing ones are left out, and nothing is inverted.
Correlated noise is first made independent by H = L D L'. Covariances do not depend on the observations, so they are computed
apart from the means, and each step points to the `slot` that holds its gains: when the recursions of a time-invariant model
have come to rest, steps share a slot and cost only their means. The smoother runs backwards in r and N (de Jong 1989), which
inverts nothing: noiseless states are no trouble. Steps of a diffuse start, before `begin`, are left to `kalman_diffuse`.

Arrays are those of `kalman_records`; offsets c and d have one row for all, or one a row of the data. Functions on matrices
take stacks of them and which one is meant. `room` is what a thread works in: a few planes of n by 2 n.
"""

# ruff: noqa: N803, N806, E741 (letters of the literature)

import math

from markovia.kernels.kernel import inner, kernel

RESTS = 1e-13
"""Covariances whose relative change from step to step is below this have come to rest."""
SINGULAR = 1e-13
"""An innovation's variance below this part of what it is made of is zero."""
LOG_2PI = math.log(2.0 * math.pi)


@inner(bare=True)
def same(n, a, i, b, j):
    """Say whether two covariance matrices differ by rounding only."""
    for k in range(n):
        for l in range(k + 1):
            if abs(a[i, k, l] - b[j, k, l]) > RESTS * math.sqrt(abs(a[i, k, k] * a[i, l, l])):
                return False
    return True


@inner(bare=True)
def repeats(row, seen, gains, P, q, rests):
    """Say whether a step's covariances are those of the step before it, where `rests` says so of that one."""
    for j in range(seen.shape[1]):
        if seen[row, j] != seen[row - 1, j]:
            return False
    return rests or same(P.shape[1], P, q, gains.before, gains.slot[row - 1])


@inner(bare=True)
def copy(n, a, i, b, j):
    """Write a matrix into another."""
    for k in range(n):
        for l in range(n):
            b[j, k, l] = a[i, k, l]


@inner(bare=True)
def decorrelate(row, t, steps, L, z):
    """Set H = L D L' and z = inverse(L) Z for numbers seen, D on L's diagonal; return how many, or -1 for a negative D."""
    Z, H, seen = steps.Z, steps.H, steps.seen
    n = Z.shape[2]
    at_z, at_h = min(t, len(Z) - 1), min(t, len(H) - 1)
    m = 0
    for j in range(Z.shape[1]):
        if seen[row, j]:
            k = 0
            for i in range(j):
                if seen[row, i]:
                    total = H[at_h, j, i]
                    for l in range(k):
                        total -= L[row, m, l] * L[row, l, l] * L[row, k, l]
                    L[row, m, k] = total / L[row, k, k] if L[row, k, k] > 0.0 else 0.0
                    k += 1
            left = H[at_h, j, j]
            for l in range(m):
                left -= L[row, m, l] * L[row, m, l] * L[row, l, l]
            if left < -SINGULAR * H[at_h, j, j]:
                return -1
            L[row, m, m] = left if left > SINGULAR * H[at_h, j, j] else 0.0
            for b in range(n):
                shown = Z[at_z, j, b]
                for l in range(m):
                    shown -= L[row, m, l] * z[row, l, b]
                z[row, m, b] = shown
            m += 1
    return m


@inner(bare=True)
def sandwich(X, x, P, p, room, sign, base, b, times, out, o):
    """Set out = times base + sign X P X', which are symmetric; out may be P or base."""
    n = X.shape[1]
    for i in range(n):
        for j in range(n):
            room[0, i, j] = 0.0
        for k in range(n):
            f = sign * X[x, i, k]
            if f != 0.0:
                for j in range(n):
                    room[0, i, j] += f * P[p, k, j]
    for i in range(n):
        for j in range(i + 1):
            total = times * base[b, i, j]
            for k in range(n):
                total += room[0, i, k] * X[x, j, k]
            out[o, i, j] = total
            out[o, j, i] = total


@inner(bare=True)
def take_in(row, i, P, q, gains, room):
    """Take a number into a covariance; say whether its variance is not zero."""
    z, gain, weight = gains.z, gains.gain, gains.weight
    n = P.shape[1]
    variance = gains.lower[row, i, i]
    size = variance
    for a in range(n):
        found = 0.0
        for b in range(n):
            found += P[q, a, b] * z[row, i, b]
        room[1, 0, a] = found
        variance += found * z[row, i, a]
        size += abs(P[q, a, a]) * z[row, i, a] * z[row, i, a]
    if not variance > SINGULAR * size:
        return False
    weight[row, i] = 1.0 / variance
    gains.logs[row] += math.log(variance)
    for a in range(n):
        found = room[1, 0, a] * weight[row, i]
        gain[row, i, a] = found
        for b in range(a + 1):
            P[q, a, b] -= found * room[1, 0, b]
            P[q, b, a] = P[q, a, b]
    return True


@kernel(bare=True)
def covariances(steps, gains, first, last, P, room):
    """Compute the gains of some sequences from `begin` and P (sequences, n, n) on, into slots that begin where they do.

    Returns the row of a singular innovation, else -1.
    """
    T, Q, begin, offsets, slot = steps.T, steps.Q, steps.begin, steps.offsets, gains.slot
    n = T.shape[1]
    steady = len(T) == 1 and len(Q) == 1 and len(steps.Z) == 1 and len(steps.H) == 1
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
                    if not take_in(row, i, P, q, gains, room):
                        return row
                copy(n, P, q, gains.after, row)
                sandwich(T, min(t, len(T) - 1), P, q, room, 1.0, Q, min(t, len(Q) - 1), 1.0, P, q)
    return -1


@kernel(bare=True)
def propagate(T, push, start, offsets, first, last, x):
    """Run states x[t+1] = T x[t] + push[t] from each sequence's start."""
    n = T.shape[1]
    for q in range(first, last):
        for a in range(n):
            x[offsets[q], a] = start[q, a]
        for row in range(offsets[q], offsets[q + 1] - 1):
            t = min(row - offsets[q], len(T) - 1)
            for a in range(n):
                found = push[row, a]
                for b in range(n):
                    found += T[t, a, b] * x[row, b]
                x[row + 1, a] = found


@kernel(bare=True)
def filter_means(steps, gains, pushes, start, y, first, last, means, room):
    """Compute `FilteredMeans` of y (rows, p); `pushes` are c (1 or rows, n) and d (1 or rows, p)."""
    T, offsets = steps.T, steps.offsets
    z, gain, weight, lower = gains.z, gains.gain, gains.weight, gains.lower
    before, after, innovation, log_prob = means
    c, d = pushes
    n = T.shape[1]
    p = y.shape[1]
    for q in range(first, last):
        total = 0.0
        for a in range(n):
            before[offsets[q], a] = start[a]
        for row in range(offsets[q], offsets[q + 1]):
            s = gains.slot[row]
            m = 0
            for a in range(n):
                after[row, a] = before[row, a]
            own = min(row, len(d) - 1)
            total += gains.logs[s]
            for j in range(p):
                if steps.seen[row, j]:
                    found = y[row, j] - d[own, j]
                    for k in range(m):
                        found -= lower[s, m, k] * room[0, k]
                    room[0, m] = found
                    for a in range(n):
                        found -= z[s, m, a] * after[row, a]
                    innovation[row, m] = found
                    for a in range(n):
                        after[row, a] += gain[s, m, a] * found
                    total += found * found * weight[s, m]
                    m += 1
            if row + 1 < offsets[q + 1]:
                t = min(row - offsets[q], len(T) - 1)
                push = min(row, len(c) - 1)
                for a in range(n):
                    ahead = c[push, a]
                    for b in range(n):
                        ahead += T[t, a, b] * after[row, b]
                    before[row + 1, a] = ahead
        log_prob[q] = -0.5 * total


@inner(bare=True)
def numbers_seen(seen, row):
    """Return how many numbers of a row are not missing."""
    m = 0
    for j in range(seen.shape[1]):
        if seen[row, j]:
            m += 1
    return m


@inner(bare=True)
def moved_back(T, t, r, q, room):
    """Set r to T' r."""
    n = T.shape[1]
    for b in range(n):
        room[0, b] = 0.0
    for a in range(n):
        for b in range(n):
            room[0, b] += T[t, a, b] * r[q, a]
    for b in range(n):
        r[q, b] = room[0, b]


@kernel(bare=True)
def smooth_means(steps, gains, first, last, means, r, smoothed, room):
    """Compute the states' means given whole sequences, from their ends to `begin`; r (sequences, n) begins at zero."""
    T, offsets, covariance = steps.T, steps.offsets, gains.before
    z, gain, weight = gains.z, gains.gain, gains.weight
    before, _, innovation, _ = means
    n = T.shape[1]
    for q in range(first, last):
        end = offsets[q + 1] - 1
        for row in range(end, steps.begin[q] - 1, -1):
            s = gains.slot[row]
            if row < end:
                moved_back(T, min(row - offsets[q], len(T) - 1), r, q, room)
            for i in range(numbers_seen(steps.seen, row) - 1, -1, -1):
                f = innovation[row, i] * weight[s, i]
                for a in range(n):
                    f -= gain[s, i, a] * r[q, a]
                for a in range(n):
                    r[q, a] += f * z[s, i, a]
            for a in range(n):
                found = before[row, a]
                for b in range(n):
                    found += covariance[s, a, b] * r[q, b]
                smoothed[row, a] = found


@inner(bare=True)
def add_back(N, at, gains, s, i, f, room):
    """Set N to K' N K + f z z', where K = I - k z' and k is the gain."""
    k, z = gains.gain, gains.z
    n = N.shape[1]
    for a in range(n):
        found = 0.0
        for b in range(n):
            found += N[at, a, b] * k[s, i, b]
        room[1, 0, a] = found
        f += found * k[s, i, a]
    for a in range(n):
        for b in range(a + 1):
            found = N[at, a, b] - z[s, i, a] * room[1, 0, b] + (f * z[s, i, a] - room[1, 0, a]) * z[s, i, b]
            N[at, a, b] = found
            N[at, b, a] = found


@kernel(bare=True)
def smooth_covariances(steps, gains, first, last, N, found, room):
    """Compute `SmoothedCovariances`, from the ends of sequences to `begin`.

    T is turned; N (some matrices a sequence, n, n) begins at zero.
    """
    back, offsets, slot, before = steps.T, steps.offsets, gains.slot, gains.before
    place, smoothed, entering, _ = found
    n, each = back.shape[1], len(N) // len(steps.begin)
    for q in range(first, last):
        rests = False
        end = offsets[q + 1] - 1
        at = each * q
        for row in range(end, steps.begin[q] - 1, -1):
            s = slot[row]
            rests = (
                row < end - 1
                and s == slot[row + 1]
                and len(back) == 1
                and (rests or same(n, N, at, entering, row + 1))
            )
            if rests:
                place[row] = place[row + 1]
            else:
                place[row] = row
                copy(n, N, at, entering, row)
                t = min(row - offsets[q], len(back) - 1)
                if row < end:
                    sandwich(back, t, N, at, room, 1.0, N, at, 0.0, N, at)
                for i in range(numbers_seen(steps.seen, row) - 1, -1, -1):
                    add_back(N, at, gains, s, i, gains.weight[s, i], room)
                sandwich(before, s, N, at, room, -1.0, before, s, 1.0, smoothed, row)
