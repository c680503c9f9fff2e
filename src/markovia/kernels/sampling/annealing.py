"""Gibbs sweeps of many particles along a path of temperatures, and the weights that annealed importance sampling needs.

At temperature b a configuration x has log weight `sum of log unary + b * E(x) + z(b) * H(x)`: E sums the logs of the
positive entries of the tables at x, and H counts the zero ones, whose floor `z(b)` falls to minus infinity as b goes to one.

Random numbers are xoshiro256++ (Blackman and Vigna 2019); the state is four words that the caller seeds.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform


@kernel
def start(state, codes, cards, starts, unary):
    """Draw every variable of every particle from its own row of `unary`."""
    for p in range(codes.shape[0]):
        for i in range(cards.shape[0]):
            total = 0.0
            for s in range(cards[i]):
                total += unary[starts[i] + s]
            u = uniform(state) * total
            drawn = -1
            for s in range(cards[i]):
                w = unary[starts[i] + s]
                if w > 0.0:
                    drawn = s
                    u -= w
                    if u < 0.0:
                        break
            codes[p, i] = drawn


@inner
def measure(codes, scope_ptr, scope, strides, table_ptr, logs, energy, holes):
    """Compute E and H of every particle."""
    for p in range(codes.shape[0]):
        e = 0.0
        h = 0.0
        for f in range(scope_ptr.shape[0] - 1):
            at = table_ptr[f]
            for k in range(scope_ptr[f], scope_ptr[f + 1]):
                at += strides[k] * codes[p, scope[k]]
            if logs[at] == -np.inf:
                h += 1.0
            else:
                e += logs[at]
        energy[p] = e
        holes[p] = h


@inner
def _scores(
    codes,
    p,
    i,
    cards,
    starts,
    log_unary,
    heated,
    edge_ptr,
    slot_table,
    slot_stride,
    other_ptr,
    other_variable,
    other_stride,
    scores,
):
    """Write the weights of a variable's states given all others, largest one; return their sum (0 if none has any)."""
    card = cards[i]
    for s in range(card):
        scores[s] = log_unary[starts[i] + s]
    for k in range(edge_ptr[i], edge_ptr[i + 1]):
        at = slot_table[k]
        for j in range(other_ptr[k], other_ptr[k + 1]):
            at += other_stride[j] * codes[p, other_variable[j]]
        stride = slot_stride[k]
        for s in range(card):
            scores[s] += heated[at + s * stride]
    top = scores[0]
    for s in range(1, card):
        if scores[s] > top:
            top = scores[s]
    total = 0.0
    if top > -np.inf:
        for s in range(card):
            scores[s] = 1.0 if scores[s] == top else np.exp(scores[s] - top)
            total += scores[s]
    return total


@kernel
def anneal(
    state,
    codes,
    log_weights,
    betas,
    floors,
    slopes,
    first,
    last,
    sweeps,
    backwards,
    cards,
    starts,
    log_unary,
    scope_ptr,
    scope,
    strides,
    table_ptr,
    logs,
    edge_ptr,
    slot_table,
    slot_stride,
    other_ptr,
    other_variable,
    other_stride,
    heated,
    energy,
    holes,
    scores,
    spread,
):
    """Take the particles through temperatures first ... last - 1 (numbers of `betas`).

    Forwards, temperature k multiplies the weight by the ratio of the tempered weights at k and k - 1 and then sweeps at k.
    Backwards (k = last - 1 ... first) it sweeps at k in the opposite order and then multiplies by the ratio at k - 1 and
    k. `spread` gets the mean and variance over the particles of `E + slopes[k] H`, before the sweeps at k.
    """
    n = cards.shape[0]
    for step in range(last - first):
        k = last - 1 - step if backwards else first + step
        beta, floor = betas[k], floors[k]
        if not backwards:
            measure(codes, scope_ptr, scope, strides, table_ptr, logs, energy, holes)
            mean = 0.0
            square = 0.0
            for p in range(codes.shape[0]):
                if log_weights[p] > -np.inf:
                    log_weights[p] += (beta - betas[k - 1]) * energy[p]
                    if holes[p] > 0.0:
                        log_weights[p] += (floor - floors[k - 1]) * holes[p]
                slope = energy[p] + slopes[k] * holes[p]
                mean += slope
                square += slope * slope
            mean /= codes.shape[0]
            spread[k, 0] = mean
            spread[k, 1] = max(0.0, square / codes.shape[0] - mean * mean)
        for t in range(logs.shape[0]):
            heated[t] = floor if logs[t] == -np.inf else beta * logs[t]
        for p in range(codes.shape[0]):
            if log_weights[p] == -np.inf:
                continue
            for _ in range(sweeps):
                for j in range(n):
                    i = n - 1 - j if backwards else j
                    total = _scores(
                        codes,
                        p,
                        i,
                        cards,
                        starts,
                        log_unary,
                        heated,
                        edge_ptr,
                        slot_table,
                        slot_stride,
                        other_ptr,
                        other_variable,
                        other_stride,
                        scores,
                    )
                    if not total > 0.0:
                        continue
                    u = uniform(state) * total
                    drawn = codes[p, i]
                    for s in range(cards[i]):
                        if scores[s] > 0.0:
                            drawn = s
                            u -= scores[s]
                            if u < 0.0:
                                break
                    codes[p, i] = drawn
        if backwards:
            measure(codes, scope_ptr, scope, strides, table_ptr, logs, energy, holes)
            for p in range(codes.shape[0]):
                if log_weights[p] > -np.inf:
                    log_weights[p] += (betas[k - 1] - beta) * energy[p]
                    if holes[p] > 0.0:
                        log_weights[p] += (floors[k - 1] - floor) * holes[p]


@kernel
def conditionals(
    codes,
    weights,
    cards,
    starts,
    log_unary,
    logs,
    edge_ptr,
    slot_table,
    slot_stride,
    other_ptr,
    other_variable,
    other_stride,
    scores,
    a,
    b,
    c,
):
    """Add up `w p`, `(w p)^2` and `w^2 p`, p being each variable's distribution given all others, over the particles."""
    for p in range(codes.shape[0]):
        w = weights[p]
        if not w > 0.0:
            continue
        for i in range(cards.shape[0]):
            total = _scores(
                codes,
                p,
                i,
                cards,
                starts,
                log_unary,
                logs,
                edge_ptr,
                slot_table,
                slot_stride,
                other_ptr,
                other_variable,
                other_stride,
                scores,
            )
            for s in range(cards[i]):
                q = scores[s] / total
                a[starts[i] + s] += w * q
                b[starts[i] + s] += w * q * w * q
                c[starts[i] + s] += w * w * q
