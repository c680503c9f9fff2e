"""L1-penalised logistic regression of one spin on the others."""

from math import exp, log1p

import numpy as np

from markovia.kernels.kernel import kernel


@kernel(fastmath={"reassoc", "contract"})
def logistic_path(design, node, weights, factor, alphas, tolerance, max_steps, fits):
    """Fit one row of the design, which is +1 or -1, from the others for several penalties, each from the fit before.

    Minimises `sum_r w_r log(1 + exp(-2 y_r m_r)) + alpha * sum_j factor_j |theta_j|` with `m = sum_j theta_j design_j`, by
    Newton steps whose quadratic problems are solved by coordinate descent over the columns that are not zero or should not
    be. `design` (p, n), `weights` (n,), `factor` (p,). `SpinFits` get the results; their `thetas[0]` holds the start.
    """
    p, n = design.shape
    y = design[node]
    theta = np.empty(p)
    margin = np.empty(n)
    trial = np.empty(n)
    slope = np.empty(n)
    bend = np.empty(n)
    gradient = np.empty(p)
    live = np.empty(p, dtype=np.int64)
    hessian = np.empty((8, 8))
    move = np.empty(p)
    pull = np.empty(p)
    # the start and its margins
    for r in range(n):
        margin[r] = 0.0
    for j in range(p):
        theta[j] = fits.thetas[0, j]
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
            loss += weights[r] * ((u if u > 0.0 else 0.0) + log1p(exp(-abs(u))))
        error = np.inf
        stalled = 0
        for step in range(max_steps + 1):
            before = error
            # first and second derivatives of the loss by margins
            for r in range(n):
                q = 1.0 / (1.0 + exp(2.0 * y[r] * margin[r]))
                slope[r] = -2.0 * weights[r] * y[r] * q
                bend[r] = 4.0 * weights[r] * q * (1.0 - q)
            # the gradient, how far each column is from optimal, and the columns that are not zero or should not be
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
                    off = abs(g) - cut
                if off > error:
                    error = off
                if theta[j] != 0.0 or off > 0.0:
                    live[n_live] = j
                    n_live += 1
            stalled = stalled + 1 if error >= 0.9 * before else 0
            if error <= tolerance or step == max_steps or stalled >= 20:
                break
            # second derivatives of these columns; a small ridge keeps equal columns apart
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
                if hessian[s, s] > ridge:
                    ridge = hessian[s, s]
                move[s] = 0.0
                pull[s] = 0.0
            ridge = 1e-10 * ridge + 1e-300
            # the quadratic problem with its penalty, one coordinate at a time; `pull` is the Hessian times the move so far
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
                        if abs(d) * h > largest:
                            largest = abs(d) * h
                if sweep == 0:
                    first = largest if largest < error else error
                if largest <= 1e-3 * first or largest <= 0.01 * tolerance:
                    break
            # what the whole move gains to first order, and what it does to margins
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
            # halve the step until the objective falls as it should (Armijo)
            length = 1.0
            moved = False
            for _ in range(40):
                fresh = 0.0
                for r in range(n):
                    u = -2.0 * y[r] * (margin[r] + length * trial[r])
                    fresh += weights[r] * ((u if u > 0.0 else 0.0) + log1p(exp(-abs(u))))
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
            fits.thetas[a, j] = theta[j]
        fits.losses[a] = loss
        fits.errors[a] = error
