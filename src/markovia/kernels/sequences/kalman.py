"""Kalman filters and smoothers on flat arrays: many sequences after each other, `offsets` say where each begins.

    x[t+1] = T x[t] + c + eta,  y[t] = Z x[t] + d + eps,  eta ~ N(0, Q),  eps ~ N(0, H)

Observations are taken in one number at a time (Koopman and Durbin 2000): missing ones are left out, and the exact diffuse
start needs no special cases beyond a division. Correlated noise is first made independent by H = L D L'. Covariances do not
depend on the observations, so they are computed apart from the means, and each step points to the `slot` that holds its
gains: when the recursions of a time-invariant model have come to rest, steps share a slot and cost only their means.
The smoother runs backwards in r and N (de Jong 1989), which inverts nothing: noiseless states are no trouble.

Matrices have one entry for all steps, or one a step of a sequence; offsets c and d one for all, or one a row of the data.
"""

# ruff: noqa: N803, N806, E741 (letters of the literature)

import math

import numpy as np

from markovia.kernels.kernel import inner, kernel

RESTS = 1e-13
"""Covariances whose relative change from step to step is below this have come to rest."""
SINGULAR = 1e-13
"""An innovation's variance below this part of what it is made of is zero."""
LOG_2PI = math.log(2.0 * math.pi)


@inner
def _same(a, b):
    """Say whether two covariance matrices differ by rounding only."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1):
            if abs(a[i, j] - b[i, j]) > RESTS * math.sqrt(abs(a[i, i] * a[j, j])):
                return False
    return True


@inner
def _decorrelate(seen, Z, H, L, D, z):
    """Set H = L D L' and z = inverse(L) Z for the rows that were seen; return how many they are, or -1 if H is negative."""
    n, m = Z.shape[1], 0
    for j in range(len(seen)):
        if not seen[j]:
            continue
        k = 0
        for i in range(j):
            if seen[i]:
                total = H[j, i]
                for l in range(k):
                    total -= L[m, l] * D[l] * L[k, l]
                L[m, k] = total / D[k] if D[k] > 0.0 else 0.0
                k += 1
        total = H[j, j]
        for l in range(m):
            total -= L[m, l] * L[m, l] * D[l]
        if total < -SINGULAR * H[j, j]:
            return -1
        D[m] = total if total > SINGULAR * H[j, j] else 0.0
        for b in range(n):
            total = Z[j, b]
            for l in range(m):
                total -= L[m, l] * z[l, b]
            z[m, b] = total
        m += 1
    return m


@inner
def _times(P, z, out):
    """Set out = P z; return z' P z and the size of its terms."""
    total = size = 0.0
    for i in range(len(z)):
        found = 0.0
        for j in range(len(z)):
            found += P[i, j] * z[j]
        out[i] = found
        total += found * z[i]
        size += abs(P[i, i]) * z[i] * z[i]
    return total, size


@inner
def _sandwich(T, P, room, out):
    """Add T P T' to out; P and out are symmetric."""
    n = T.shape[0]
    for i in range(n):
        for j in range(n):
            room[i, j] = 0.0
        for k in range(n):
            f = T[i, k]
            if f != 0.0:
                for j in range(n):
                    room[i, j] += f * P[k, j]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += room[i, k] * T[j, k]
            total += out[i, j]
            out[i, j] = total
            out[j, i] = total


@inner
def _root(P, S):
    """Set S to a lower triangle with S S' = P, for P that may be singular."""
    n = P.shape[0]
    for j in range(n):
        total = P[j, j]
        for k in range(j):
            total -= S[j, k] * S[j, k]
        pivot = math.sqrt(total) if total > SINGULAR * P[j, j] else 0.0
        S[j, j] = pivot
        for i in range(j):
            S[i, j] = 0.0
        for i in range(j + 1, n):
            total = P[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            S[i, j] = total / pivot if pivot > 0.0 else 0.0


@inner
def _triangle(A, S):
    """Set S to a lower triangle with S S' = A A', by reflections of the rows of A, which is spoilt."""
    n, width = A.shape
    for i in range(n):
        norm = 0.0
        for k in range(i, width):
            norm += A[i, k] * A[i, k]
        norm = math.sqrt(norm)
        if norm > 0.0:
            if A[i, i] > 0.0:
                norm = -norm
            head = A[i, i] - norm
            scale = -1.0 / (norm * head)
            for j in range(i + 1, n):
                total = A[j, i] * head
                for k in range(i + 1, width):
                    total += A[j, k] * A[i, k]
                total *= scale
                A[j, i] -= total * head
                for k in range(i + 1, width):
                    A[j, k] -= total * A[i, k]
            A[i, i] = norm
        for k in range(n):
            S[i, k] = A[i, k] if k <= i else 0.0


@inner
def _square(S, P):
    n = P.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(S.shape[1]):
                total += S[i, k] * S[j, k]
            P[i, j] = total
            P[j, i] = total


@kernel
def covariances(
    T, Q, Z, H, start, diffuse, seen, offsets, first, last, root,
    slot, before, after, z, gain, variance, lower, logs,
    vague, vague_before, vague_after, vague_variance, vague_gain,
):  # fmt: skip
    """Compute the covariances and gains of some sequences, into slots that begin where the sequences do.

    `before` and `after` are the states' covariances given what was seen before and up to a step, `gain`, `variance` and
    `z` belong to the numbers taken in one at a time, `lower` is L, `logs` the log likelihood's terms without innovations.
    `vague` says how many infinite variances a slot begins with, and where it is not 0 the arrays of that name hold the parts
    of covariances that grow without bound; a number with `vague_variance` above 0 is spent on the start. Returns the row
    of a singular innovation, else -1.
    """
    n, p = T.shape[1], Z.shape[1]
    steady = len(T) == 1 and len(Q) == 1 and len(Z) == 1 and len(H) == 1
    P, room, U = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    D, M, W = np.empty(p), np.empty(n), np.empty(n)
    S, A, G = np.empty((n, n)), np.empty((n, 2 * n)), np.empty((n, n))
    for q in range(first, last):
        P[:] = start
        U[:] = diffuse
        rank = 0
        for i in range(n):
            if diffuse[i, i] > 0.0:
                rank += 1
        if root:
            _root(P, S)
        rests = False
        for row in range(offsets[q], offsets[q + 1]):
            t = row - offsets[q]
            if steady and t > 0 and vague[slot[row - 1]] == 0:
                alike = True
                for j in range(p):
                    alike = alike and seen[row, j] == seen[row - 1, j]
                rests = alike and (rests or _same(P, before[slot[row - 1]]))
                if rests:
                    slot[row] = slot[row - 1]
                    continue
            slot[row] = row
            before[row] = P
            vague[row] = rank
            m = _decorrelate(
                seen[row], Z[t if len(Z) > 1 else 0], H[t if len(H) > 1 else 0], lower[row], D, z[row]
            )
            if m < 0:
                return row
            total = m * LOG_2PI
            if rank:
                vague_before[row] = U
            for i in range(m):
                vague_variance[row, i] = 0.0
                F, size = _times(P, z[row, i], M)
                F += D[i]
                if rank:
                    Fi, sizei = _times(U, z[row, i], W)
                    if Fi > max(1e-10 * sizei, 0.0):
                        total += math.log(Fi)
                        variance[row, i] = F
                        vague_variance[row, i] = Fi
                        for a in range(n):
                            gain[row, i, a] = W[a] / Fi
                            vague_gain[row, i, a] = (M[a] - gain[row, i, a] * F) / Fi
                        for a in range(n):
                            for b in range(n):
                                k = gain[row, i, a]
                                P[a, b] += k * gain[row, i, b] * F - k * M[b] - M[a] * gain[row, i, b]
                                U[a, b] -= W[a] * W[b] / Fi
                        rank -= 1
                        if rank == 0:
                            U[:] = 0.0
                        continue
                if not SINGULAR * (size + D[i]) < F:
                    return row
                total += math.log(F)
                variance[row, i] = F
                for a in range(n):
                    gain[row, i, a] = M[a] / F
                if root and not vague[row]:
                    for b in range(n):  # Potter's update: S S' - M M' / F
                        W[b] = 0.0
                        for a in range(n):
                            W[b] += S[a, b] * z[row, i, a]
                    f = 1.0 / (F * (1.0 + math.sqrt(D[i] / F)))
                    for a in range(n):
                        for b in range(n):
                            S[a, b] -= f * M[a] * W[b]
                    _square(S, P)
                else:
                    for a in range(n):
                        for b in range(a + 1):
                            found = P[a, b] - gain[row, i, a] * M[b]
                            P[a, b] = found
                            P[b, a] = found
            logs[row] = total
            after[row] = P
            now = T[t if len(T) > 1 else 0]
            noise = Q[t if len(Q) > 1 else 0]
            if root and not vague[row]:
                _root(noise, G)
                for i in range(n):
                    for j in range(n):
                        found = 0.0
                        for k in range(n):
                            found += now[i, k] * S[k, j]
                        A[i, j] = found
                        A[i, n + j] = G[i, j]
                _triangle(A, S)
                _square(S, P)
            else:
                P[:] = noise
                _sandwich(now, after[row], room, P)
                if root:
                    _root(P, S)
            if vague[row]:
                vague_after[row] = U
                U[:] = 0.0
                _sandwich(now, vague_after[row], room, U)
                size = 0.0
                for i in range(n):
                    size = max(size, U[i, i])
                if size < 1e-12:
                    rank = 0
    return -1


@kernel
def propagate(T, push, start, offsets, first, last, x):
    """Run states x[t+1] = T x[t] + push[t] from each sequence's start."""
    n = T.shape[1]
    for q in range(first, last):
        x[offsets[q]] = start[q]
        for row in range(offsets[q], offsets[q + 1] - 1):
            t = row - offsets[q]
            now = T[t if len(T) > 1 else 0]
            for a in range(n):
                found = push[row, a]
                for b in range(n):
                    found += now[a, b] * x[row, b]
                x[row + 1, a] = found


@kernel
def filter_means(
    T, c, d, start, y, seen, offsets, first, last, slot, z, gain, variance, lower, logs, vague_variance,
    before, after, innovation, log_prob,
):  # fmt: skip
    """Compute states' means before and after each step, innovations of numbers taken in one at a time, log likelihoods."""
    n, p = T.shape[1], y.shape[1]
    x, e = np.empty(n), np.empty(p)
    for q in range(first, last):
        x[:] = start
        total = 0.0
        for row in range(offsets[q], offsets[q + 1]):
            s, m = slot[row], 0
            before[row] = x
            own = d[row if len(d) > 1 else 0]
            total += logs[s]
            for j in range(p):
                if seen[row, j]:
                    found = y[row, j] - own[j]
                    for k in range(m):
                        found -= lower[s, m, k] * e[k]
                    e[m] = found
                    for a in range(n):
                        found -= z[s, m, a] * x[a]
                    innovation[row, m] = found
                    for a in range(n):
                        x[a] += gain[s, m, a] * found
                    if not vague_variance[s, m] > 0.0:
                        total += found * found / variance[s, m]
                    m += 1
            after[row] = x
            t = row - offsets[q]
            now, push = T[t if len(T) > 1 else 0], c[row if len(c) > 1 else 0]
            for a in range(n):
                found = push[a]
                for b in range(n):
                    found += now[a, b] * after[row, b]
                x[a] = found
        log_prob[q] = -0.5 * total


@kernel
def smooth_means(
    T, seen, offsets, first, last, slot, z, gain, variance, vague_variance, vague_gain, vague,
    before, covariance, vague_before, innovation, smoothed,
):  # fmt: skip
    """Compute the states' means given whole sequences."""
    n, p = T.shape[1], seen.shape[1]
    r, u, x = np.empty(n), np.empty(n), np.empty(n)
    for q in range(first, last):
        r[:] = 0.0
        u[:] = 0.0
        for row in range(offsets[q + 1] - 1, offsets[q] - 1, -1):
            s, m = slot[row], 0
            t = row - offsets[q]
            for j in range(p):
                m += seen[row, j]
            if row < offsets[q + 1] - 1:
                _back(T[t if len(T) > 1 else 0], r, x)
                if vague[s]:
                    _back(T[t if len(T) > 1 else 0], u, x)
            for i in range(m - 1, -1, -1):
                kr = ku = lu = 0.0
                for a in range(n):
                    kr += gain[s, i, a] * r[a]
                spent = vague_variance[s, i] > 0.0
                if vague[s]:
                    for a in range(n):
                        ku += gain[s, i, a] * u[a]
                        if spent:
                            lu += vague_gain[s, i, a] * r[a]
                if spent:
                    f = innovation[row, i] / vague_variance[s, i] - ku - lu
                    for a in range(n):
                        r[a] -= kr * z[s, i, a]
                        u[a] += f * z[s, i, a]
                else:
                    f = innovation[row, i] / variance[s, i] - kr
                    for a in range(n):
                        r[a] += f * z[s, i, a]
                    if vague[s]:
                        for a in range(n):
                            u[a] -= ku * z[s, i, a]
            for a in range(n):
                found = before[row, a]
                for b in range(n):
                    found += covariance[s, a, b] * r[b]
                if vague[s]:
                    for b in range(n):
                        found += vague_before[s, a, b] * u[b]
                smoothed[row, a] = found


@inner
def _back(T, r, room):
    """Set r to T' r."""
    n = len(r)
    for b in range(n):
        room[b] = 0.0
    for a in range(n):
        for b in range(n):
            room[b] += T[a, b] * r[a]
    for b in range(n):
        r[b] = room[b]


@inner
def _add_back(N, k, z, f, w):
    """Set N to L' N L + f z z', where L = I - k z'."""
    n = len(z)
    total, _ = _times(N, k, w)
    f += total
    for a in range(n):
        for b in range(a + 1):
            found = N[a, b] - z[a] * w[b] - w[a] * z[b] + f * z[a] * z[b]
            N[a, b] = found
            N[b, a] = found


@inner
def _cross_back(N, k, l, z, add, out, w):
    """Add to out the symmetric part -(L' N l) z' and its transpose, L = I - k z', and add z z'; return l' N l."""
    n = len(z)
    total, _ = _times(N, l, w)
    f = add
    for a in range(n):
        f += 2.0 * k[a] * w[a]
    for a in range(n):
        for b in range(n):
            out[a, b] += f * z[a] * z[b] - w[a] * z[b] - z[a] * w[b]
    return total


@inner
def _multiply(A, B, out):
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[k, j]
            out[i, j] = total


@kernel
def smooth_covariances(
    T, Q, seen, offsets, first, last, slot, z, gain, variance, vague_variance, vague_gain, vague,
    before, after, vague_before, vague_after, lags, place, smoothed, lagged,
):  # fmt: skip
    """Compute the states' covariances given whole sequences; where `lags`, also those of each state with the one before.

    Row t has them at `place[t]`; `lagged` of a row is the covariance of the next state with this one.
    """
    n, p = T.shape[1], seen.shape[1]
    N, N1, N2, last_n = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    A, B, C, Tt, w = np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    for q in range(first, last):
        N[:] = 0.0
        N1[:] = 0.0
        N2[:] = 0.0
        rests = False
        end = offsets[q + 1] - 1
        for row in range(end, offsets[q] - 1, -1):
            s, m, t = slot[row], 0, row - offsets[q]
            if row < end - 1 and s == slot[row + 1] and len(T) == 1 and len(Q) == 1:
                rests = rests or _same(N, last_n)
                if rests:
                    place[row] = place[row + 1]
                    continue
            rests = False
            place[row] = row
            for j in range(p):
                m += seen[row, j]
            now = T[t if len(T) > 1 else 0]
            last_n[:] = N
            if lags and row < end:
                _multiply(now, after[s], A)
                _multiply(N, A, B)
                if vague[s]:
                    _multiply(now, vague_after[s], A)
                    _multiply(N1, A, C)
                    B += C
                _multiply(Q[t if len(Q) > 1 else 0], B, C)
            if row < end:
                for i in range(n):
                    for j in range(n):
                        Tt[i, j] = now[j, i]
                A[:] = 0.0
                _sandwich(Tt, N, B, A)
                N[:] = A
                if vague[s]:
                    A[:] = 0.0
                    _sandwich(Tt, N1, B, A)
                    N1[:] = A
                    A[:] = 0.0
                    _sandwich(Tt, N2, B, A)
                    N2[:] = A
            for i in range(m - 1, -1, -1):
                k, h = gain[s, i], z[s, i]
                if vague_variance[s, i] > 0.0:
                    f, l = 1.0 / vague_variance[s, i], vague_gain[s, i]
                    total, _ = _times(N, l, w)
                    _add_back(N2, k, h, total - variance[s, i] * f * f, w)
                    _cross_back(N1, k, l, h, 0.0, N2, w)
                    _add_back(N1, k, h, f, w)
                    _cross_back(N, k, l, h, 0.0, N1, w)
                    _add_back(N, k, h, 0.0, w)
                else:
                    _add_back(N, k, h, 1.0 / variance[s, i], w)
                    if vague[s]:
                        _add_back(N1, k, h, 0.0, w)
                        _add_back(N2, k, h, 0.0, w)
            A[:] = 0.0
            _sandwich(before[s], N, B, A)
            if vague[s]:
                _sandwich(vague_before[s], N2, B, A)
                _multiply(N1, before[s], B)
                _multiply(vague_before[s], B, Tt)
                for i in range(n):
                    for j in range(n):
                        A[i, j] += Tt[i, j] + Tt[j, i]
            for i in range(n):
                for j in range(n):
                    smoothed[row, i, j] = before[s, i, j] - A[i, j]
            if lags and row < end:
                _multiply(now, smoothed[row], A)
                for i in range(n):
                    for j in range(n):
                        lagged[row, i, j] = A[i, j] - C[i, j]
