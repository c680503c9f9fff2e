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
    T, Q, Z, H, start, diffuse, start_root, noise_root, seen, offsets, first, last, root,
    slot, before, after, z, gain, variance, lower, logs,
    vague, vague_before, vague_after, vague_variance, vague_gain,
):  # fmt: skip
    """Compute the covariances and gains of some sequences, into slots that begin where the sequences do.

    `before` and `after` are the states' covariances given what was seen before and up to a step, `gain`, `variance` and
    `z` belong to the numbers taken in one at a time, `lower` is L, `logs` the log likelihood's terms without innovations.
    `vague` says how many infinite variances a slot begins with, and where it is not 0 the arrays of that name hold the parts
    of covariances that grow without bound; a number with `vague_variance` above 0 is spent on the start. With `root`, roots
    of covariances are carried from step to step. Returns the row of a singular innovation, else -1.
    """
    n, p = T.shape[1], Z.shape[1]
    steady = len(T) == 1 and len(Q) == 1 and len(Z) == 1 and len(H) == 1
    both, old, room = np.empty((2, n, n)), np.empty((n, n)), np.empty((n, n))
    P, U, S, A = both[0], both[1], np.empty((n, n)), np.empty((n, 2 * n))
    D, M, F, sizes, f = np.empty(p), np.empty((2, n)), np.empty(2), np.empty(2), np.empty(n)
    for q in range(first, last):
        rank = 0
        for i in range(n):
            if diffuse[i, i] > 0.0:
                rank += 1
            for j in range(n):
                P[i, j] = start[i, j]
                U[i, j] = diffuse[i, j]
                S[i, j] = start_root[i, j]
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
            vague[row] = rank
            rooted = root and rank == 0
            for i in range(n):
                for j in range(n):
                    before[row, i, j] = P[i, j]
                    if rank:
                        vague_before[row, i, j] = U[i, j]
            m = _decorrelate(
                seen[row], Z[t if len(Z) > 1 else 0], H[t if len(H) > 1 else 0], lower[row], D, z[row]
            )
            if m < 0:
                return row
            total = m * LOG_2PI
            for i in range(m):
                h, k = z[row, i], gain[row, i]
                F[1] = sizes[1] = 0.0
                if rooted:
                    F[0] = 0.0
                    for b in range(n):
                        f[b] = 0.0
                        for a in range(n):
                            f[b] += S[a, b] * h[a]
                        F[0] += f[b] * f[b]
                    sizes[0] = F[0]
                    for a in range(n):
                        M[0, a] = 0.0
                        for b in range(n):
                            M[0, a] += S[a, b] * f[b]
                else:
                    for w in range(2 if rank else 1):
                        F[w], sizes[w] = _times(both[w], h, M[w])
                total_variance = F[0] + D[i]
                variance[row, i] = total_variance
                spent = F[1] > max(1e-10 * sizes[1], 0.0)
                vague_variance[row, i] = F[1] if spent else 0.0
                if not spent and not total_variance > SINGULAR * (sizes[0] + D[i]):
                    return row
                whole = F[1] if spent else total_variance
                total += math.log(whole)
                for a in range(n):
                    k[a] = M[1 if spent else 0, a] / whole
                if spent:
                    for a in range(n):
                        vague_gain[row, i, a] = (M[0, a] - k[a] * total_variance) / whole
                    for a in range(n):
                        for b in range(n):
                            P[a, b] += k[a] * k[b] * total_variance - k[a] * M[0, b] - M[0, a] * k[b]
                            U[a, b] -= k[a] * M[1, b]
                    rank -= 1
                elif rooted:  # Potter's update: S S' - M M' / F
                    scale = 1.0 / (total_variance * (1.0 + math.sqrt(D[i] / total_variance)))
                    for a in range(n):
                        for b in range(n):
                            S[a, b] -= scale * M[0, a] * f[b]
                else:
                    for a in range(n):
                        for b in range(a + 1):
                            P[a, b] -= k[a] * M[0, b]
                            P[b, a] = P[a, b]
            logs[row] = total
            if rooted:
                _square(S, P)
            now, noise = T[t if len(T) > 1 else 0], Q[t if len(Q) > 1 else 0]
            for i in range(n):
                for j in range(n):
                    after[row, i, j] = P[i, j]
                    if vague[row]:
                        vague_after[row, i, j] = U[i, j] if rank else 0.0
            if rooted:
                G = noise_root[t if len(Q) > 1 else 0]
                for i in range(n):
                    for j in range(n):
                        found = 0.0
                        for k_ in range(n):
                            found += now[i, k_] * S[k_, j]
                        A[i, j] = found
                        A[i, n + j] = G[i, j]
                _triangle(A, S)
                _square(S, P)
                continue
            for w in range(2 if rank else 1):
                for i in range(n):
                    for j in range(n):
                        old[i, j] = both[w, i, j]
                        both[w, i, j] = noise[i, j] if w == 0 else 0.0
                _sandwich(now, old, room, both[w])
            if rank:
                size = 0.0
                for i in range(n):
                    size = max(size, U[i, i])
                if size < 1e-12:
                    rank = 0
            if root and rank == 0:
                _root(P, S)
    return -1


@kernel
def propagate(T, push, start, offsets, first, last, x):
    """Run states x[t+1] = T x[t] + push[t] from each sequence's start."""
    n = T.shape[1]
    for q in range(first, last):
        for a in range(n):
            x[offsets[q], a] = start[q, a]
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
        for a in range(n):
            x[a] = start[a]
        total = 0.0
        for row in range(offsets[q], offsets[q + 1]):
            s, m = slot[row], 0
            for a in range(n):
                before[row, a] = x[a]
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
            for a in range(n):
                after[row, a] = x[a]
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
        for a in range(n):
            r[a] = 0.0
        for a in range(n):
            u[a] = 0.0
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
def _cross_back(N, k, g, z, out, w):
    """Add -(L' N g) z' and its transpose to out, where L = I - k z'."""
    n = len(z)
    _times(N, g, w)
    f = 0.0
    for a in range(n):
        f += 2.0 * k[a] * w[a]
    for a in range(n):
        for b in range(n):
            out[a, b] += f * z[a] * z[b] - w[a] * z[b] - z[a] * w[b]


@kernel
def smooth_covariances(
    T, seen, offsets, first, last, slot, z, gain, variance, vague_variance, vague_gain, vague,
    before, vague_before, place, smoothed, entering, vague_entering,
):  # fmt: skip
    """Compute the states' covariances given whole sequences; row t has its own at `place[t]`.

    `entering` is what N was when it came from the steps after, for the covariances of neighbours. In a diffuse start
    N[0], N[1] and N[2] are the parts that shrink as no, one and two powers of the infinite variance.
    """
    n, p = T.shape[1], seen.shape[1]
    N, A, B, C, w = np.empty((3, n, n)), np.empty((n, n)), np.empty((n, n)), np.empty((n, n)), np.empty(n)
    for q in range(first, last):
        for b in range(3):
            for i in range(n):
                for j in range(n):
                    N[b, i, j] = 0.0
        rests = False
        end = offsets[q + 1] - 1
        for row in range(end, offsets[q] - 1, -1):
            s, m, t = slot[row], 0, row - offsets[q]
            if row < end - 1 and s == slot[row + 1] and len(T) == 1:
                rests = rests or _same(N[0], entering[row + 1])
                if rests:
                    place[row] = place[row + 1]
                    continue
            rests = False
            place[row] = row
            for j in range(p):
                m += seen[row, j]
            now, parts = T[t if len(T) > 1 else 0], 3 if vague[s] else 1
            for i in range(n):
                for j in range(n):
                    entering[row, i, j] = N[0, i, j]
                    if vague[s]:
                        vague_entering[row, i, j] = N[1, i, j]
                    C[i, j] = now[j, i]
            if row < end:
                for b in range(parts):
                    for i in range(n):
                        for j in range(n):
                            A[i, j] = N[b, i, j]
                            N[b, i, j] = 0.0
                    _sandwich(C, A, B, N[b])
            for i in range(m - 1, -1, -1):
                k, h = gain[s, i], z[s, i]
                spent = vague_variance[s, i] > 0.0
                for b in range(parts - 1, -1, -1):
                    f = 1.0 / variance[s, i] if b == 0 and not spent else 0.0
                    if spent and b == 1:
                        f = 1.0 / vague_variance[s, i]
                    if spent and b == 2:
                        g = vague_gain[s, i]
                        f = -variance[s, i] / vague_variance[s, i] ** 2
                        for c in range(n):
                            for d in range(n):
                                f += g[c] * N[0, c, d] * g[d]
                    _add_back(N[b], k, h, f, w)
                    if spent and b > 0:
                        _cross_back(N[b - 1], k, vague_gain[s, i], h, N[b], w)
            for i in range(n):
                for j in range(n):
                    A[i, j] = 0.0
            for b in range(0, parts, 2):
                _sandwich(before[s] if b == 0 else vague_before[s], N[b], B, A)
            if vague[s]:
                for b in range(2):  # vague_before N[1] before, from the right
                    for i in range(n):
                        for j in range(n):
                            found = 0.0
                            for c in range(n):
                                found += (
                                    N[1, i, c] * before[s, c, j]
                                    if b == 0
                                    else vague_before[s, i, c] * B[c, j]
                                )
                            C[i, j] = found
                    for i in range(n):
                        for j in range(n):
                            B[i, j] = C[i, j]
                for i in range(n):
                    for j in range(n):
                        A[i, j] += B[i, j] + B[j, i]
            for i in range(n):
                for j in range(n):
                    smoothed[row, i, j] = before[s, i, j] - A[i, j]
