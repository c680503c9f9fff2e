"""L1-penalised logistic regression of one spin on the others, and the same with parameters that change over time."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def logistic_path(design, node, weights, factor, alphas, tolerance, max_steps, thetas, losses, errors):
    """Fit one row of the design, which is +1 or -1, from the others for several penalties, each from the fit before.

    Minimises `sum_r w_r log(1 + exp(-2 y_r m_r)) + alpha * sum_j factor_j |theta_j|` with `m = sum_j theta_j design_j`, by
    Newton steps whose quadratic problems are solved by coordinate descent over the columns that are not zero or should not
    be. `thetas[0]` holds the start. `errors` gets the largest violation of the optimality conditions.
    """
    p, n = design.shape
    y = design[node]
    theta = thetas[0].copy()
    margin = np.zeros(n)
    trial = np.empty(n)
    slope = np.empty(n)
    bend = np.empty(n)
    gradient = np.empty(p)
    live = np.empty(p, dtype=np.int64)
    hessian = np.empty((8, 8))
    for j in range(p):
        if j == node or factor[j] == np.inf:
            theta[j] = 0.0
        elif theta[j] != 0.0:
            for r in range(n):
                margin[r] += theta[j] * design[j, r]
    for a in range(len(alphas)):
        alpha = alphas[a]
        loss = 0.0
        for r in range(n):
            u = -2.0 * y[r] * margin[r]
            loss += weights[r] * (max(u, 0.0) + np.log1p(np.exp(-abs(u))))
        error = np.inf
        stalled = 0
        for step in range(max_steps + 1):
            before = error
            for r in range(n):
                q = 1.0 / (1.0 + np.exp(2.0 * y[r] * margin[r]))
                slope[r] = -2.0 * weights[r] * y[r] * q
                bend[r] = 4.0 * weights[r] * q * (1.0 - q)
            error = 0.0
            n_live = 0
            for j in range(p):
                if j == node or factor[j] == np.inf:
                    continue
                g = 0.0
                for r in range(n):
                    g += slope[r] * design[j, r]
                gradient[j] = g
                cut = alpha * factor[j]
                if theta[j] > 0.0:
                    off = abs(g + cut)
                elif theta[j] < 0.0:
                    off = abs(g - cut)
                else:
                    off = max(abs(g) - cut, 0.0)
                error = max(error, off)
                if theta[j] != 0.0 or off > 0.0:
                    live[n_live] = j
                    n_live += 1
            stalled = stalled + 1 if error >= 0.9 * before else 0
            if error <= tolerance or step == max_steps or stalled >= 20:
                break
            if n_live > len(hessian):
                hessian = np.empty((2 * n_live, 2 * n_live))
            for s in range(n_live):
                for t in range(s + 1):
                    h = 0.0
                    i = live[s]
                    j = live[t]
                    for r in range(n):
                        h += bend[r] * design[i, r] * design[j, r]
                    hessian[s, t] = h
                    hessian[t, s] = h
            ridge = 0.0
            for s in range(n_live):
                ridge = max(ridge, hessian[s, s])
            ridge = 1e-10 * ridge + 1e-300
            move = np.zeros(n_live)
            pull = np.zeros(n_live)
            first = 0.0
            for sweep in range(1000):
                largest = 0.0
                for s in range(n_live):
                    j = live[s]
                    h = hessian[s, s] + ridge
                    here = theta[j] + move[s]
                    z = here - (gradient[j] + pull[s] + ridge * move[s]) / h
                    cut = alpha * factor[j] / h
                    if z > cut:
                        new = z - cut
                    elif z < -cut:
                        new = z + cut
                    else:
                        new = 0.0
                    d = new - here
                    if d != 0.0:
                        move[s] += d
                        for t in range(n_live):
                            pull[t] += d * hessian[s, t]
                        largest = max(largest, abs(d) * h)
                if sweep == 0:
                    first = largest
                if largest <= max(1e-3 * min(first, error), 0.01 * tolerance):
                    break
            gain = 0.0
            for s in range(n_live):
                j = live[s]
                gain += gradient[j] * move[s]
                gain += alpha * factor[j] * (abs(theta[j] + move[s]) - abs(theta[j]))
            for r in range(n):
                trial[r] = 0.0
            for s in range(n_live):
                if move[s] != 0.0:
                    for r in range(n):
                        trial[r] += move[s] * design[live[s], r]
            length = 1.0
            moved = False
            for _ in range(40):
                fresh = 0.0
                for r in range(n):
                    u = -2.0 * y[r] * (margin[r] + length * trial[r])
                    fresh += weights[r] * (max(u, 0.0) + np.log1p(np.exp(-abs(u))))
                change = fresh - loss
                for s in range(n_live):
                    j = live[s]
                    change += alpha * factor[j] * (abs(theta[j] + length * move[s]) - abs(theta[j]))
                if change <= 1e-4 * length * gain + 1e-13 * (1.0 + loss):
                    moved = True
                    break
                length *= 0.5
            if not moved:
                break
            for s in range(n_live):
                theta[live[s]] += length * move[s]
            for r in range(n):
                margin[r] += length * trial[r]
            loss = fresh
        for j in range(p):
            thetas[a, j] = theta[j]
        losses[a] = loss
        errors[a] = error


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
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


@njit(cache=True, nogil=True, error_model="numpy")
def _shrink(y, cut, fused, work, x):
    if fused > 0.0:
        total_variation(y, fused, work)
    else:
        work[:] = y
    for t in range(len(y)):
        v = work[t]
        x[t] = v - cut if v > cut else (v + cut if v < -cut else 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def fused_node(design, node, weights, time, factor, alpha, fused, smooth, tolerance, max_steps, theta):
    """Fit one spin with parameters that change over time; theta (columns x times) is the start and gets the result.

    Minimises `sum_r w_r log(1 + exp(-2 y_r m_r)) + alpha sum_jt factor_j |theta_jt| + fused sum_jt |theta_jt - theta_j,t-1|
    + smooth sum_jt (theta_jt - theta_j,t-1)^2` by accelerated proximal gradients with restarts, over the columns that are
    not zero or should not be. Returns the optimality residual (the largest move of a proximal step of length one), the steps
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
    lipschitz = 1.0 + 8.0 * smooth
    residual = np.inf
    loss = 0.0
    while True:
        # all columns: which should not be zero, and how far from optimal is the whole
        loss = _loss_and_slope(design, y, weights, time, theta, everyone, n_all, True, gradient)
        residual = 0.0
        for s in range(n_all):
            j = everyone[s]
            if smooth > 0.0:
                for t in range(1, n_times):
                    d = 2.0 * smooth * (theta[j, t] - theta[j, t - 1])
                    gradient[j, t] += d
                    gradient[j, t - 1] -= d
            for t in range(n_times):
                room[t] = theta[j, t] - gradient[j, t]
            _shrink(room, alpha * factor[j], fused, work, found)
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
            if smooth > 0.0:
                for s in range(n_live):
                    j = live[s]
                    for t in range(1, n_times):
                        d = ahead[j, t] - ahead[j, t - 1]
                        value += smooth * d * d
                        gradient[j, t] += 2.0 * smooth * d
                        gradient[j, t - 1] -= 2.0 * smooth * d
            lipschitz *= 0.9
            while True:
                linear = 0.0
                square = 0.0
                for s in range(n_live):
                    j = live[s]
                    for t in range(n_times):
                        room[t] = ahead[j, t] - gradient[j, t] / lipschitz
                    _shrink(room, alpha * factor[j] / lipschitz, fused / lipschitz, work, fresh[j])
                    for t in range(n_times):
                        d = fresh[j, t] - ahead[j, t]
                        linear += gradient[j, t] * d
                        square += d * d
                tried = _loss_and_slope(design, y, weights, time, fresh, live, n_live, False, gradient)
                if smooth > 0.0:
                    for s in range(n_live):
                        j = live[s]
                        for t in range(1, n_times):
                            d = fresh[j, t] - fresh[j, t - 1]
                            tried += smooth * d * d
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
            if t > 0:
                d = theta[j, t] - theta[j, t - 1]
                objective += fused * abs(d) + smooth * d * d
    return residual, steps, objective
