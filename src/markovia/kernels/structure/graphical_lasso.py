"""Coordinate descent for the lasso on a Gram matrix, and for the Newton steps of the graphical lasso."""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel(fastmath={"reassoc", "contract"})
def lasso_path(gram, node, factor, alphas, tolerance, max_sweeps, most, coefs, losses):
    """Regress one column on the others for decreasing penalties; each fit starts from the one before.

    Minimises `b' G b / 2 - g' b + alpha * sum_i factor_i |b_i|`, with `g` the node's row of the Gram matrix. An infinite
    factor leaves a column out, a factor of zero does not penalise it. `coefs[0]` is the start. `coefs` (penalties x
    columns) and `losses` (the residual sum `G_jj - 2 g' b + b' G b`) are filled. Returns how many penalties were done: it
    stops early once more than `most` coefficients are not zero.
    """
    p = len(gram)
    beta = coefs[0].copy()
    rest = gram[node].copy()
    for i in range(p):
        if beta[i] != 0.0:
            for k in range(p):
                rest[k] -= beta[i] * gram[i, k]
    order = np.empty(p, dtype=np.int64)
    n_order = 0
    for i in range(p):
        if i != node and factor[i] < np.inf and gram[i, i] > 0.0:
            order[n_order] = i
            n_order += 1
    live = np.empty(p, dtype=np.int64)
    for a in range(len(alphas)):
        alpha = alphas[a]
        n_live = -1  # -1: a sweep over all columns
        for _ in range(max_sweeps):
            change = 0.0
            count = n_order if n_live < 0 else n_live
            for c in range(count):
                i = order[c] if n_live < 0 else live[c]
                scale = gram[i, i]
                old = beta[i]
                z = rest[i] + scale * old
                cut = alpha * factor[i]
                if z > cut:
                    new = (z - cut) / scale
                elif z < -cut:
                    new = (z + cut) / scale
                else:
                    new = 0.0
                move = new - old
                if move != 0.0:
                    beta[i] = new
                    for k in range(p):
                        rest[k] -= move * gram[i, k]
                    size = abs(move) * np.sqrt(scale)
                    change = max(change, size)
            if change <= tolerance:
                if n_live < 0:
                    break
                n_live = -1
            elif n_live < 0:
                n_live = 0
                for c in range(n_order):
                    if beta[order[c]] != 0.0:
                        live[n_live] = order[c]
                        n_live += 1
        used = 0
        loss = gram[node, node]
        for i in range(p):
            coefs[a, i] = beta[i]
            if beta[i] != 0.0:
                used += 1
                loss -= beta[i] * (gram[node, i] + rest[i])
        losses[a] = loss
        if used > most:
            return a
    return len(alphas)


@kernel(fastmath={"reassoc", "contract"})
def newton_direction(cov, inverse, precision, penalty, free, sweeps, reduction, step, product):
    """Find the Newton direction of the graphical lasso over the free entries by coordinate descent.

    Minimises over symmetric `D` the quadratic model of `-log det + tr(S .)` at the precision matrix plus the L1 penalty of
    the entries after the step. `step` (D) and `product` (D times the inverse) are zero at the start and filled. Sweeps end
    once the largest change of one is below `reduction` times that of the first.
    """
    p = len(cov)
    column = np.empty(p)
    first = 0.0
    done = 0
    for sweep in range(sweeps):
        largest = 0.0
        for j in range(p):
            for k in range(p):
                column[k] = product[k, j]
            for i in range(j + 1):
                if not free[i, j]:
                    continue
                w = inverse[i, j]
                bend = w * w
                if i != j:
                    bend += inverse[i, i] * inverse[j, j]
                slope = cov[i, j] - w
                for k in range(p):
                    slope += inverse[i, k] * column[k]
                here = precision[i, j] + step[i, j]
                z = here - slope / bend
                cut = penalty[i, j] / bend
                if z > cut:
                    move = z - cut - here
                elif z < -cut:
                    move = z + cut - here
                else:
                    move = -here
                if move == 0.0:
                    continue
                step[i, j] += move
                for k in range(p):
                    product[i, k] += move * inverse[j, k]
                column[i] += move * inverse[j, j]
                if i != j:
                    step[j, i] += move
                    for k in range(p):
                        product[j, k] += move * inverse[i, k]
                    column[j] += move * w
                largest = max(largest, abs(move))
        done += 1
        if sweep == 0:
            first = largest
        if largest <= reduction * first or largest == 0.0:
            break
    return done


@kernel(fastmath={"reassoc", "contract"})
def cholesky_inverse(matrix, inverse):
    """Fill the inverse of a positive definite matrix and return the logarithm of its determinant, or infinity if it is none.

    For a few hundred columns: the threads of LAPACK's inverse cost more than they save there, above all on a busy machine.
    """
    p = len(matrix)
    low = np.zeros((p, p))
    back = np.zeros((p, p))  # the inverse of the lower factor, transposed
    log_det = 0.0
    for i in range(p):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= low[i, k] * low[j, k]
            if i == j:
                if not total > 0.0:
                    return np.inf
                low[i, i] = np.sqrt(total)
                log_det += np.log(total)
            else:
                low[i, j] = total / low[j, j]
    for i in range(p):
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total += low[i, k] * back[j, k]
            back[j, i] = -total / low[i, i]
        back[i, i] = 1.0 / low[i, i]
    for i in range(p):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, p):
                total += back[i, k] * back[j, k]
            inverse[i, j] = total
            inverse[j, i] = total
    return log_det
