"""L1-penalised logistic regression of one spin on the others, with parameters that change over time or conditions."""

from math import exp, log1p, sqrt

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def total_variation(y, lam, x):
    """Fill x with the minimiser of `sum (x - y)^2 / 2 + lam * sum |x_t - x_{t-1}|` (Condat 2013); both (times,).

    A segment begins at `start`. Its value lies between `low` and `high`, and the dual at k is `low_sum` or `high_sum` for
    these; `low_at` and `high_at` are where the dual last touched its bounds, and so where the segment would end.
    """
    n = len(y)
    if n == 1 or lam <= 0.0:
        for k in range(n):
            x[k] = y[k]
        return
    k = 0
    start = 0
    low_at = 0
    high_at = 0
    low_sum = lam
    high_sum = -lam
    low = y[0] - lam
    high = y[0] + lam
    while True:
        # at the end the dual must be zero: cut a segment off where it cannot be, else the last one takes the rest
        while k == n - 1:
            if low_sum < 0.0:
                while True:
                    x[start] = low
                    start += 1
                    if start > low_at:
                        break
                k = start
                low_at = start
                low = y[start]
                low_sum = lam
                high_sum = low + lam - high
            elif high_sum > 0.0:
                while True:
                    x[start] = high
                    start += 1
                    if start > high_at:
                        break
                k = start
                high_at = start
                high = y[start]
                high_sum = -lam
                low_sum = high - lam - low
            else:
                low += low_sum / (k - start + 1)
                while start <= k:
                    x[start] = low
                    start += 1
                return
        # one step on: even the lowest value is too high, so there is a jump down after `low_at`
        low_sum += y[k + 1] - low
        if low_sum < -lam:
            while True:
                x[start] = low
                start += 1
                if start > low_at:
                    break
            k = start
            low_at = start
            high_at = start
            low = y[start]
            high = low + 2.0 * lam
            low_sum = lam
            high_sum = -lam
            continue
        # even the highest is too low: a jump up after `high_at`
        high_sum += y[k + 1] - high
        if high_sum > lam:
            while True:
                x[start] = high
                start += 1
                if start > high_at:
                    break
            k = start
            low_at = start
            high_at = start
            high = y[start]
            low = high - 2.0 * lam
            low_sum = lam
            high_sum = -lam
            continue
        # no jump: the bounds close in where the dual touches its own
        k += 1
        if low_sum >= lam:
            low_at = k
            low += (low_sum - lam) / (low_at - start + 1)
            low_sum = lam
        if high_sum <= -lam:
            high_at = k
            high += (high_sum + lam) / (high_at - start + 1)
            high_sum = -lam


@inner(fastmath={"reassoc", "contract"})
def _loss_and_slope(spins, y, theta, live, n_live, bend, margin, gradient):
    """Return the loss of the live columns and `bend` times squared changes along edges; fill its gradient if not empty."""
    design, weights, time, edges = spins.design, spins.weights, spins.time, spins.edges
    n = design.shape[1]
    for r in range(n):
        margin[r] = 0.0
    for s in range(n_live):
        j = live[s]
        for r in range(n):
            margin[r] += design[j, r] * theta[j, time[r]]
    loss = 0.0
    for r in range(n):
        u = -2.0 * y[r] * margin[r]
        e = exp(-abs(u))
        share = 1.0 / (1.0 + e)
        loss += weights[r] * log1p(e)
        if u > 0.0:
            loss += weights[r] * u
        else:
            share *= e
        margin[r] = -2.0 * weights[r] * y[r] * share
    for s in range(n_live):
        j = live[s]
        if len(gradient):
            for t in range(theta.shape[1]):
                gradient[j, t] = 0.0
            for r in range(n):
                gradient[j, time[r]] += margin[r] * design[j, r]
        if bend > 0.0:
            for e in range(len(edges)):
                d = theta[j, edges[e, 1]] - theta[j, edges[e, 0]]
                loss += bend * d * d
                if len(gradient):
                    gradient[j, edges[e, 1]] += 2.0 * bend * d
                    gradient[j, edges[e, 0]] -= 2.0 * bend * d
    return loss


@inner
def _smoothed(y, cut, smooth, work, sign, below, x):
    # sum (x - y)^2 / 2 + cut sum |x| + smooth sum (x_t - x_{t-1})^2: guess the signs, solve the tridiagonal system of
    # those that are not zero, guess again (a primal-dual active set)
    n = len(y)
    for t in range(n):
        sign[t] = 1.0 if y[t] > cut else (-1.0 if y[t] < -cut else 0.0)
    for _ in range(60):
        for t in range(n):
            below[t] = 0.0
            work[t] = 0.0
            if sign[t] == 0.0:
                continue
            own = 1.0 + 2.0 * smooth * ((t > 0) + (t < n - 1))
            right = y[t] - cut * sign[t]
            if t > 0 and sign[t - 1] != 0.0:
                own += 2.0 * smooth * below[t - 1]
                right += 2.0 * smooth * work[t - 1]
            if t < n - 1 and sign[t + 1] != 0.0:
                below[t] = -2.0 * smooth / own
            work[t] = right / own
        after = 0.0
        for t in range(n - 1, -1, -1):
            after = work[t] - below[t] * after
            x[t] = after
        same = True
        for t in range(n):
            z = y[t]
            if t > 0:
                z -= 2.0 * smooth * (x[t] - x[t - 1])
            if t < n - 1:
                z -= 2.0 * smooth * (x[t] - x[t + 1])
            new = 1.0 if z > cut else (-1.0 if z < -cut else 0.0)
            if new != sign[t]:
                same = False
                sign[t] = new
        if same:
            return


@inner
def _shrink(y, cut, fused, smooth, spins, work, pull, sign, x):
    """Fill x with the proximal step from y: cut times its size, fused and smooth times its changes along edges."""
    n, edges, chain = len(y), spins.edges, spins.chain
    if chain and smooth > 0.0:
        _smoothed(y, cut, smooth, work, sign, pull, x)
        return
    if fused > 0.0 and chain:
        total_variation(y, fused, work)
    else:
        size = 1e-300
        for t in range(n):
            work[t] = y[t]
            if abs(y[t]) > size:
                size = abs(y[t])
        if fused > 0.0:  # the dual of total variation over a graph, one edge at a time
            for e in range(len(edges)):
                pull[e] = 0.0
            for _ in range(20000):
                most = 0.0
                for e in range(len(edges)):
                    a = edges[e, 0]
                    b = edges[e, 1]
                    new = pull[e] + 0.5 * (work[a] - work[b])
                    if new < -fused:
                        new = -fused
                    elif new > fused:
                        new = fused
                    d = new - pull[e]
                    pull[e] = new
                    work[a] -= d
                    work[b] += d
                    if abs(d) > most:
                        most = abs(d)
                if most <= 1e-11 * size:
                    break
    for t in range(n):
        v = work[t]
        x[t] = v - cut if v > cut else (v + cut if v < -cut else 0.0)


@kernel
def fused_node(spins, node, factor, alpha, fused, smooth, tolerance, max_steps, theta):
    """Fit one of `ChangingSpins` with parameters that change over time; theta (columns, times) is zero and gets the result.

    Minimises `sum_r w_r log(1 + exp(-2 y_r m_r)) + alpha sum_jt factor_j |theta_jt| + fused sum_jst |theta_js - theta_jt|
    + smooth sum_jst (theta_js - theta_jt)^2`, with (s, t) the edges between times and `factor` (columns,), by accelerated
    proximal gradients with restarts, over the columns that are not zero or should not be. Returns the optimality residual
    (the largest move of a proximal step of length one), the steps and the objective.
    """
    p, n_times = theta.shape
    edges = spins.edges
    y = spins.design[node]
    everyone = np.empty(p, np.int64)
    live = np.empty(p, np.int64)
    gradient = np.empty((p, n_times))
    ahead = np.empty((p, n_times))
    fresh = np.empty((p, n_times))
    nothing = np.empty((0, n_times))
    margin = np.empty(len(y))
    room = np.empty(n_times)
    work = np.empty(n_times)
    found = np.empty(n_times)
    sign = np.empty(n_times)
    pull = np.empty(n_times + len(edges))
    n_all = np.int64(0)  # of this type throughout: a literal 0 would compile what takes it twice
    n_live = np.int64(0)
    for j in range(p):
        if j != node and factor[j] < np.inf:
            everyone[n_all] = j
            n_all += 1
    steps = 0
    bend = 0.0  # along a chain the proximal step takes care of smoothness, over a graph the gradient
    even = smooth
    if not spins.chain:
        bend = smooth
        even = 0.0
    lipschitz = 1.0 + 8.0 * bend
    while True:
        # all columns: which should not be zero, and how far from optimal is the whole
        loss = _loss_and_slope(spins, y, theta, everyone, n_all, bend, margin, gradient)
        residual = 0.0
        for s in range(n_all):
            j = everyone[s]
            for t in range(n_times):
                room[t] = theta[j, t] - gradient[j, t]
            _shrink(room, alpha * factor[j], fused, even, spins, work, pull, sign, found)
            off = 0.0
            for t in range(n_times):
                ahead[j, t] = theta[j, t]
                if abs(found[t] - theta[j, t]) > off:
                    off = abs(found[t] - theta[j, t])
            if off > residual:
                residual = off
            if off > tolerance:
                known = False
                for i in range(n_live):
                    known = known or live[i] == j
                if not known:
                    live[n_live] = j
                    n_live += 1
        if residual <= tolerance or steps >= max_steps:
            break
        # accelerated proximal gradients over the live columns
        weight = 1.0
        while steps < max_steps:
            steps += 1
            value = _loss_and_slope(spins, y, ahead, live, n_live, bend, margin, gradient)
            # backtracking: shorter steps until the quadratic bound holds
            lipschitz *= 0.9
            while True:
                linear = 0.0
                square = 0.0
                for s in range(n_live):
                    j = live[s]
                    for t in range(n_times):
                        room[t] = ahead[j, t] - gradient[j, t] / lipschitz
                    cut = alpha * factor[j] / lipschitz
                    _shrink(room, cut, fused / lipschitz, even / lipschitz, spins, work, pull, sign, found)
                    for t in range(n_times):
                        fresh[j, t] = found[t]
                        d = found[t] - ahead[j, t]
                        linear += gradient[j, t] * d
                        square += d * d
                tried = _loss_and_slope(spins, y, fresh, live, n_live, bend, margin, nothing)
                if tried <= value + linear + 0.5 * lipschitz * square + 1e-13 * (1.0 + abs(value)):
                    break
                lipschitz *= 1.5
            # momentum, from the start again where it points uphill
            turn = 0.0
            size = 0.0
            for s in range(n_live):
                j = live[s]
                for t in range(n_times):
                    d = fresh[j, t] - ahead[j, t]
                    turn -= d * (fresh[j, t] - theta[j, t])
                    if abs(d) > size:
                        size = abs(d)
            next_weight = 0.5 * (1.0 + sqrt(1.0 + 4.0 * weight * weight))
            share = (weight - 1.0) / next_weight
            weight = next_weight
            if turn > 0.0:
                weight = 1.0
                share = 0.0
            for s in range(n_live):
                j = live[s]
                for t in range(n_times):
                    ahead[j, t] = fresh[j, t] + share * (fresh[j, t] - theta[j, t])
                    theta[j, t] = fresh[j, t]
            if size <= 0.5 * tolerance and size * lipschitz <= 0.5 * tolerance:
                break
    # the objective: what the penalties add to the loss
    for s in range(n_all):
        j = everyone[s]
        for t in range(n_times):
            loss += alpha * factor[j] * abs(theta[j, t])
        for e in range(len(edges)):
            d = theta[j, edges[e, 1]] - theta[j, edges[e, 0]]
            loss += fused * abs(d) + even * d * d
    return residual, steps, loss
