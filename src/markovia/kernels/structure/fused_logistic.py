"""L1-penalised logistic regression of one spin on the others, with parameters that change over time or conditions."""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def total_variation(y, lam, x):
    """Fill x with the minimiser of `sum (x - y)^2 / 2 + lam * sum |x_t - x_{t-1}|` (Condat 2013)."""
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
        k += 1
        if low_sum >= lam:
            low_at = k
            low += (low_sum - lam) / (low_at - start + 1)
            low_sum = lam
        if high_sum <= -lam:
            high_at = k
            high += (high_sum + lam) / (high_at - start + 1)
            high_sum = -lam


@kernel(fastmath={"reassoc", "contract"})
def _loss_and_slope(design, y, weights, time, theta, live, n_live, want, gradient):
    n = design.shape[1]
    margin = np.zeros(n)
    for s in range(n_live):
        j = live[s]
        for r in range(n):
            margin[r] += design[j, r] * theta[j, time[r]]
    loss = 0.0
    for r in range(n):
        u = -2.0 * y[r] * margin[r]
        e = np.exp(-abs(u))
        loss += weights[r] * (max(u, 0.0) + np.log1p(e))
        q = 1.0 / (1.0 + e) if u > 0.0 else e / (1.0 + e)
        margin[r] = -2.0 * weights[r] * y[r] * q
    if want:
        for s in range(n_live):
            j = live[s]
            gradient[j] = 0.0
            for r in range(n):
                gradient[j, time[r]] += margin[r] * design[j, r]
    return loss


@kernel
def _smoothed(y, cut, smooth, work, x):
    # sum (x - y)^2 / 2 + cut sum |x| + smooth sum (x_t - x_{t-1})^2: guess the signs, solve the tridiagonal system of
    # those that are not zero, guess again (a primal-dual active set)
    n = len(y)
    sign = np.zeros(n)
    below = np.empty(n)
    for t in range(n):
        sign[t] = 1.0 if y[t] > cut else (-1.0 if y[t] < -cut else 0.0)
    for _ in range(60):
        for t in range(n):
            own = 1.0 + 2.0 * smooth * ((t > 0) + (t < n - 1))
            right = y[t] - cut * sign[t]
            if sign[t] == 0.0:
                below[t] = 0.0
                work[t] = 0.0
                continue
            if t > 0 and sign[t - 1] != 0.0:
                own += 2.0 * smooth * below[t - 1]
                right += 2.0 * smooth * work[t - 1]
            below[t] = -2.0 * smooth / own if t < n - 1 and sign[t + 1] != 0.0 else 0.0
            work[t] = right / own
        for t in range(n - 1, -1, -1):
            x[t] = work[t] - below[t] * x[t + 1] if t < n - 1 else work[t]
        same = True
        for t in range(n):
            pull = y[t] - x[t]
            if t > 0:
                pull -= 2.0 * smooth * (x[t] - x[t - 1])
            if t < n - 1:
                pull -= 2.0 * smooth * (x[t] - x[t + 1])
            z = x[t] + pull
            new = 1.0 if z > cut else (-1.0 if z < -cut else 0.0)
            if new != sign[t]:
                same = False
                sign[t] = new
        if same:
            return


@kernel
def _shrink(y, cut, fused, smooth, edges, chain, work, x):
    n = len(y)
    if chain and smooth > 0.0:
        _smoothed(y, cut, smooth, work, x)
        return
    if fused > 0.0 and chain:
        total_variation(y, fused, work)
    elif fused > 0.0:
        # the dual of total variation over a graph, one edge at a time
        work[:] = y
        pull = np.zeros(len(edges))
        size = 1e-300
        for t in range(n):
            size = max(size, abs(y[t]))
        for _ in range(20000):
            most = 0.0
            for e in range(len(edges)):
                a = edges[e, 0]
                b = edges[e, 1]
                new = min(max(pull[e] + 0.5 * (work[a] - work[b]), -fused), fused)
                d = new - pull[e]
                pull[e] = new
                work[a] -= d
                work[b] += d
                most = max(most, abs(d))
            if most <= 1e-11 * size:
                break
    else:
        work[:] = y
    for t in range(n):
        v = work[t]
        x[t] = v - cut if v > cut else (v + cut if v < -cut else 0.0)


@kernel
def fused_node(
    design, node, weights, time, factor, alpha, fused, smooth, edges, chain, tolerance, max_steps, theta
):
    """Fit one spin with parameters that change over time; theta (columns x times) is the start and gets the result.

    Minimises `sum_r w_r log(1 + exp(-2 y_r m_r)) + alpha sum_jt factor_j |theta_jt| + fused sum_jst |theta_js - theta_jt|
    + smooth sum_jst (theta_js - theta_jt)^2`, with (s, t) the edges between times (`chain`: each with the next), by
    accelerated proximal gradients with restarts, over the columns that are not zero or should not be.
    Returns the optimality residual (the largest move of a proximal step of length one), the steps
    and the objective.
    """
    p = len(design)
    n_times = theta.shape[1]
    y = design[node]
    everyone = np.empty(p, dtype=np.int64)
    n_all = 0
    for j in range(p):
        if j != node and factor[j] < np.inf:
            everyone[n_all] = j
            n_all += 1
        else:
            theta[j] = 0.0
    live = np.empty(p, dtype=np.int64)
    is_live = np.zeros(p, dtype=np.bool_)
    gradient = np.zeros((p, n_times))
    ahead = theta.copy()
    fresh = theta.copy()
    room = np.empty(n_times)
    work = np.empty(n_times)
    found = np.empty(n_times)
    steps = 0
    bend = (
        0.0 if chain else smooth
    )  # along a chain the proximal step takes care of smoothness, over a graph the gradient
    even = smooth if chain else 0.0
    lipschitz = 1.0 + 8.0 * bend
    residual = np.inf
    loss = 0.0
    while True:
        # all columns: which should not be zero, and how far from optimal is the whole
        loss = _loss_and_slope(design, y, weights, time, theta, everyone, n_all, True, gradient)
        residual = 0.0
        for s in range(n_all):
            j = everyone[s]
            if bend > 0.0:
                for e in range(len(edges)):
                    d = 2.0 * bend * (theta[j, edges[e, 1]] - theta[j, edges[e, 0]])
                    gradient[j, edges[e, 1]] += d
                    gradient[j, edges[e, 0]] -= d
            for t in range(n_times):
                room[t] = theta[j, t] - gradient[j, t]
            _shrink(room, alpha * factor[j], fused, even, edges, chain, work, found)
            off = 0.0
            for t in range(n_times):
                off = max(off, abs(found[t] - theta[j, t]))
            residual = max(residual, off)
            if off > tolerance and not is_live[j]:
                is_live[j] = True
        if residual <= tolerance or steps >= max_steps:
            break
        n_live = 0
        for s in range(n_all):
            if is_live[everyone[s]]:
                live[n_live] = everyone[s]
                n_live += 1
                ahead[everyone[s]] = theta[everyone[s]]
        # accelerated proximal gradients over the live columns
        weight = 1.0
        while steps < max_steps:
            steps += 1
            value = _loss_and_slope(design, y, weights, time, ahead, live, n_live, True, gradient)
            if bend > 0.0:
                for s in range(n_live):
                    j = live[s]
                    for e in range(len(edges)):
                        d = ahead[j, edges[e, 1]] - ahead[j, edges[e, 0]]
                        value += bend * d * d
                        gradient[j, edges[e, 1]] += 2.0 * bend * d
                        gradient[j, edges[e, 0]] -= 2.0 * bend * d
            lipschitz *= 0.9
            while True:
                linear = 0.0
                square = 0.0
                for s in range(n_live):
                    j = live[s]
                    for t in range(n_times):
                        room[t] = ahead[j, t] - gradient[j, t] / lipschitz
                    _shrink(
                        room,
                        alpha * factor[j] / lipschitz,
                        fused / lipschitz,
                        even / lipschitz,
                        edges,
                        chain,
                        work,
                        fresh[j],
                    )
                    for t in range(n_times):
                        d = fresh[j, t] - ahead[j, t]
                        linear += gradient[j, t] * d
                        square += d * d
                tried = _loss_and_slope(design, y, weights, time, fresh, live, n_live, False, gradient)
                if bend > 0.0:
                    for s in range(n_live):
                        j = live[s]
                        for e in range(len(edges)):
                            d = fresh[j, edges[e, 1]] - fresh[j, edges[e, 0]]
                            tried += bend * d * d
                if tried <= value + linear + 0.5 * lipschitz * square + 1e-13 * (1.0 + abs(value)):
                    break
                lipschitz *= 1.5
            turn = 0.0
            size = 0.0
            for s in range(n_live):
                j = live[s]
                for t in range(n_times):
                    turn += (ahead[j, t] - fresh[j, t]) * (fresh[j, t] - theta[j, t])
                    size = max(size, abs(fresh[j, t] - ahead[j, t]))
            next_weight = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * weight * weight))
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
            if size * max(lipschitz, 1.0) <= 0.5 * tolerance:
                break
    objective = loss
    for s in range(n_all):
        j = everyone[s]
        for t in range(n_times):
            objective += alpha * factor[j] * abs(theta[j, t])
        for e in range(len(edges)):
            d = theta[j, edges[e, 1]] - theta[j, edges[e, 0]]
            objective += fused * abs(d) + smooth * d * d
    return residual, steps, objective
