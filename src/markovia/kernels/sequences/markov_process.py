"""A Gaussian process that is Markov, seen in scalar observations along sorted inputs: filter, adjoint, smoother, draws.

    x[t] = A[t-1] x[t-1] + N(0, Q[t-1]),  x[0] ~ N(0, P0),  y[t] = H x[t] + N(0, noise)

The backward pass (de Jong 1989) carries r and N, the derivative of the log likelihood by the predicted mean and what is
left of its square: dL/dQ = (r r' - N) / 2 and dL/dA = r m' + (r r' - N) A P with the filtered mean m and covariance P. So
the same pass gives the gradient by any number of hyper-parameters and the smoothed moments. All are linear in the number
of rows and cubic in that of states, which is small.
"""

# ruff: noqa: N803, N806 (letters of the literature)

import numpy as np

from markovia.kernels.kernel import inner, kernel

FAR = 750.0
"""Steps beyond which exp(-a) is zero."""
NOTHING_LEFT = 1e-15
"""A part of the variance of the function; an observation whose variance, given those before it, is less says nothing new."""


@kernel(bare=True)
def matern_moves(a, F, powers, M, A, Q, dA, dQ, g, w):
    """Fill A and Q of a Matern process for steps a in units of its rate, and their derivatives by a where those have rows.

    A = exp(-a) sum_j powers_j a^j, dA = F A; Q = sum_k M_k gammainc(k + 1, 2a), dQ = 2 M_0[-1, -1] c c' with A's last
    column c.
    """
    if len(F) == 2:  # loops of a known length cost half the time
        fill_moves(2, a, F, powers, M, A, Q, dA, dQ, g, w)
    elif len(F) == 3:
        fill_moves(3, a, F, powers, M, A, Q, dA, dQ, g, w)
    else:
        fill_moves(1, a, F, powers, M, A, Q, dA, dQ, g, w)


@inner(bare=True, inline="always")
def fill_moves(s, a, F, powers, M, A, Q, dA, dQ, g, w):
    """Fill the moves of a process of s states."""
    top = 2 * s - 1
    for t in range(len(a)):
        b = min(a[t], FAR)
        e = np.exp(-b)
        x = 2.0 * b
        w[0] = e * e  # then x^k e^(-x) / k!
        for k in range(top):
            w[k + 1] = w[k] * x / (k + 1.0)
        # the incomplete gamma function of the highest order, by its series where the closed form would cancel
        if x < top + 1.0:
            total = 0.0
            term = w[top]
            order = top + 1.0
            while term > 1e-17 * total:
                total += term
                term *= x / order
                order += 1.0
        else:
            total = 1.0
            for k in range(top):
                total -= w[k]
        # and those below it, which are larger
        g[top - 1] = total
        for k in range(top - 2, -1, -1):
            g[k] = g[k + 1] + w[k + 1]
        for i in range(s):
            for j in range(s):
                total = powers[s - 1, i, j]
                for k in range(s - 2, -1, -1):
                    total = total * b + powers[k, i, j]
                A[t, i, j] = total * e
            for j in range(i + 1):
                total = 0.0
                for k in range(top - 1, -1, -1):
                    total += g[k] * M[k, i, j]
                Q[t, i, j] = total
                Q[t, j, i] = total
        if len(dA) > 0:
            for i in range(s):
                for j in range(s):
                    total = 0.0
                    for k in range(s):
                        total += F[i, k] * A[t, k, j]
                    dA[t, i, j] = total
                    dQ[t, i, j] = 2.0 * M[0, s - 1, s - 1] * A[t, i, s - 1] * A[t, j, s - 1]


@kernel(bare=True)
def markov_filter(A, Q, P0, H, noise, y, seen, keep, means, covs, spread, away, m, ahead, u, P, AP):
    """Fill predicted means (n, s), covariances (n, s, s), variances and errors of observations; return the log likelihood.

    Rows with `seen` 0 have no observation. Without `keep` the arrays are not filled. The second number that is returned
    is the row at which an observation without noise repeats what is known, -1 where there is none. After `away` there is
    room: three vectors and two matrices.
    """
    if len(H) == 2:
        return filtered(2, A, Q, P0, H, noise, y, seen, keep, means, covs, spread, away, m, ahead, u, P, AP)
    if len(H) == 3:
        return filtered(3, A, Q, P0, H, noise, y, seen, keep, means, covs, spread, away, m, ahead, u, P, AP)
    return filtered(len(H), A, Q, P0, H, noise, y, seen, keep, means, covs, spread, away, m, ahead, u, P, AP)


@inner(bare=True, inline="always")
def filtered(s, A, Q, P0, H, noise, y, seen, keep, means, covs, spread, away, m, ahead, u, P, AP):
    """Filter with a number of states that is a constant of the compiled code where it is one of the caller."""
    n = len(y)
    last = -1
    least = 0.0
    for i in range(s):
        m[i] = 0.0
        for j in range(s):
            P[i, j] = P0[i, j]
            least += NOTHING_LEFT * H[i] * P0[i, j] * H[j]
    logs = 0.0
    squares = 0.0
    known = 0
    for t in range(n):
        if t > 0:
            for i in range(s):
                total = 0.0
                for k in range(s):
                    total += A[t - 1, i, k] * m[k]
                ahead[i] = total
                for j in range(s):
                    total = 0.0
                    for k in range(s):
                        total += A[t - 1, i, k] * P[k, j]
                    AP[i, j] = total
            for i in range(s):
                m[i] = ahead[i]
                for j in range(i + 1):
                    total = Q[t - 1, i, j]
                    for k in range(s):
                        total += AP[i, k] * A[t - 1, j, k]
                    P[i, j] = total
                    P[j, i] = total
        if keep:
            for i in range(s):
                means[t, i] = m[i]
                for j in range(s):
                    covs[t, i, j] = P[i, j]
        if seen[t] == 0:
            continue
        S = noise
        e = y[t]
        for i in range(s):
            total = 0.0
            for j in range(s):
                total += P[i, j] * H[j]
            u[i] = total
        for i in range(s):
            S += H[i] * u[i]
            e -= H[i] * m[i]
        if not least < S:
            logs = np.inf
            last = t
            break
        for i in range(s):
            m[i] += u[i] * (e / S)
            for j in range(i + 1):
                P[i, j] -= u[i] * (u[j] / S)
                P[j, i] = P[i, j]
        if keep:
            spread[t] = S
            away[t] = e
        logs += np.log(S)
        squares += e * (e / S)
        known += 1
    return -0.5 * (logs + squares + known * np.log(2.0 * np.pi)), last


@inner(bare=True, inline="always")
def gain(s, t, H, covs, spread, K):
    """Fill K with the gain of a row that is seen."""
    for i in range(s):
        total = 0.0
        for j in range(s):
            total += covs[t, i, j] * H[j]
        K[i] = total / spread[t]


@kernel(bare=True)
def markov_backward(A, H, seen, means, covs, spread, away, r, N, WA, WQ, K, v, m, P, AP):
    """Fill r (n, s) and N (n, s, s), and the derivatives of the log likelihood by A and Q; return that by the noise.

    WA and WQ have a row a step, or none where the derivatives are not wanted. What comes after them is room: three vectors
    and two matrices.
    """
    if len(H) == 2:
        return carried_back(2, A, H, seen, means, covs, spread, away, r, N, WA, WQ, K, v, m, P, AP)
    if len(H) == 3:
        return carried_back(3, A, H, seen, means, covs, spread, away, r, N, WA, WQ, K, v, m, P, AP)
    return carried_back(len(H), A, H, seen, means, covs, spread, away, r, N, WA, WQ, K, v, m, P, AP)


@inner(bare=True, inline="always")
def carried_back(s, A, H, seen, means, covs, spread, away, r, N, WA, WQ, K, v, m, P, AP):
    """Go back through a process of s states."""
    n = len(seen)
    by_noise = 0.0
    for t in range(n - 1, -1, -1):
        # what later rows say, moved back to after this one
        for i in range(s):
            r[t, i] = 0.0
            for j in range(s):
                N[t, i, j] = 0.0
        if t < n - 1:
            for i in range(s):
                for k in range(s):
                    r[t, i] += A[t, k, i] * r[t + 1, k]
                for j in range(s):
                    total = 0.0
                    for k in range(s):
                        total += N[t + 1, i, k] * A[t, k, j]
                    AP[i, j] = total
            for i in range(s):
                for j in range(i + 1):
                    total = 0.0
                    for k in range(s):
                        total += A[t, k, i] * AP[k, j]
                    N[t, i, j] = total
                    N[t, j, i] = total
        if seen[t] != 0:
            gain(s, t, H, covs, spread, K)
        else:
            for i in range(s):
                K[i] = 0.0
        if len(WA) > 0 and t < n - 1:
            for i in range(s):
                m[i] = means[t, i] + (K[i] * away[t] if seen[t] != 0 else 0.0)
                for j in range(s):
                    P[i, j] = covs[t, i, j] - (K[i] * K[j] * spread[t] if seen[t] != 0 else 0.0)
            for i in range(s):
                for j in range(s):
                    WQ[t, i, j] = 0.5 * (r[t + 1, i] * r[t + 1, j] - N[t + 1, i, j])
                    total = 0.0
                    for k in range(s):
                        total += A[t, i, k] * P[k, j]
                    AP[i, j] = total
            for i in range(s):
                for j in range(s):
                    total = r[t + 1, i] * m[j]
                    for k in range(s):
                        total += 2.0 * WQ[t, i, k] * AP[k, j]
                    WA[t, i, j] = total
        if seen[t] != 0:
            Kr = 0.0
            KNK = 0.0
            for i in range(s):
                Kr += K[i] * r[t, i]
                v[i] = 0.0
                for j in range(s):
                    v[i] += N[t, i, j] * K[j]
                KNK += K[i] * v[i]
            push = away[t] / spread[t] - Kr
            more = 1.0 / spread[t] + KNK
            by_noise += 0.5 * (push * push - more)
            for i in range(s):
                r[t, i] += H[i] * push
                for j in range(s):
                    N[t, i, j] += H[i] * H[j] * more - H[i] * v[j] - v[i] * H[j]
    return by_noise


@kernel(bare=True)
def markov_products(A, H, seen, covs, spread, asked, found, K, T, turned):
    """Fill (asked rows, s, s) with what carries errors of predictions from each asked row to the next one.

    K, T and turned are room: a vector and two matrices.
    """
    n = len(seen)
    s = len(H)
    at = -1
    for t in range(n):
        if asked[t] != 0:
            for i in range(s):
                for j in range(s):
                    if at >= 0:
                        found[at, i, j] = T[i, j]
                    T[i, j] = 1.0 if i == j else 0.0
            at += 1
        if t == n - 1:
            break
        if at < 0:
            continue
        if seen[t] != 0:  # errors shrink where something is seen
            gain(s, t, H, covs, spread, K)
            for j in range(s):
                total = 0.0
                for i in range(s):
                    total += H[i] * T[i, j]
                for i in range(s):
                    T[i, j] -= K[i] * total
        for i in range(s):
            for j in range(s):
                total = 0.0
                for k in range(s):
                    total += A[t, i, k] * T[k, j]
                turned[i, j] = total
        for i in range(s):
            for j in range(s):
                T[i, j] = turned[i, j]


@kernel(bare=True)
def backward_states(gains, fixed, states):
    """Add gains[t] times the next state to states (n, draws, s), from the last row to the first, unless they are fixed."""
    n = states.shape[0]
    draws = states.shape[1]
    s = states.shape[2]
    for t in range(n - 2, -1, -1):
        if fixed[t] == 0:
            for d in range(draws):
                for i in range(s):
                    for k in range(s):
                        states[t, d, i] += gains[t, i, k] * states[t + 1, d, k]
