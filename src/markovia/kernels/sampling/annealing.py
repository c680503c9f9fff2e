"""Gibbs sweeps of many particles along a path of temperatures, and the weights that annealed importance sampling needs.

At temperature b a configuration x has log weight `sum of log unary + b * E(x) + z(b) * H(x)`: E sums the logs of the
positive entries of the tables at x, and H counts the zero ones, whose floor `z(b)` falls to minus infinity as b goes to one.
The particles are the rows of `codes`.
"""

from math import exp, inf
from typing import NamedTuple

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers
from markovia.kernels.random_numbers import uniform
from markovia.runtime.array_types import Ints


class Slots(NamedTuple):
    """For each edge at each variable: where its table begins, its stride, and the factor's other variables and strides."""

    table: Ints
    stride: Ints
    other_ptr: Ints
    other: Ints
    other_stride: Ints


@inner(bare=True)
def _drawn(weights, card, u):
    """Return the state that a number below the weights' sum falls on."""
    drawn = 0
    for s in range(card):
        if weights[s] > 0.0:
            drawn = s
            u -= weights[s]
            if u < 0.0:
                break
    return drawn


@kernel(bare=True)
def start(graph, state, codes):
    """Draw every variable of every particle from its own row of `unary`."""
    particles, n = codes.shape
    g, state, codes = pointers(graph), pointer(state), pointer(codes)
    for p in range(particles):
        for i in range(n):
            row = beyond(g.unary, g.starts[i])
            total = 0.0
            for s in range(g.cards[i]):
                total += row[s]
            codes[p * n + i] = _drawn(row, g.cards[i], uniform(state) * total)


@inner(bare=True)
def _measure(g, codes, particles, n, n_factors, energy, holes):
    """Compute E and H of every particle."""
    for p in range(particles):
        x = beyond(codes, p * n)
        e = 0.0
        h = 0.0
        for f in range(n_factors):
            at = g.table_ptr[f]
            for k in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                at += g.strides[k] * x[g.scope[k]]
            if g.values[at] == -inf:
                h += 1.0
            else:
                e += g.values[at]
        energy[p] = e
        holes[p] = h


@inner(bare=True)
def _scores(g, slots, x, i, tables, scores):
    """Write the weights of a variable's states given all others, largest one; return their sum (0 if none has any)."""
    card, first = g.cards[i], g.starts[i]
    for s in range(card):
        scores[s] = g.unary[first + s]
    for k in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
        at = slots.table[k]
        for j in range(slots.other_ptr[k], slots.other_ptr[k + 1]):
            at += slots.other_stride[j] * x[slots.other[j]]
        stride = slots.stride[k]
        for s in range(card):
            scores[s] += tables[at + s * stride]
    top = scores[0]
    for s in range(1, card):
        top = max(top, scores[s])
    total = 0.0
    if top > -inf:
        for s in range(card):
            scores[s] = 1.0 if scores[s] == top else exp(scores[s] - top)
            total += scores[s]
    return total


@kernel(bare=True)
def anneal(graph, slots, state, codes, log_weights, path, first, last, sweeps, backwards, room, spread):
    """Take the particles through temperatures first ... last - 1 (numbers of `betas`); the graph's tables are logs.

    Forwards, temperature k multiplies the weight by the ratio of the tempered weights at k and k - 1 and then sweeps at k.
    Backwards (k = last - 1 ... first) it sweeps at k in the opposite order and then multiplies by the ratio at k - 1 and
    k. `spread` gets the mean and variance over the particles of `E + slopes[k] H`, before the sweeps at k.
    """
    particles, n = codes.shape
    n_factors, entries = len(graph.table_ptr) - 1, len(graph.values)
    g, slots = pointers(graph), pointers(slots)
    state, codes, log_weights, spread = pointers((state, codes, log_weights, spread))
    betas, floors, slopes = pointers(path)
    heated, energy, holes, scores = pointers(room)
    for step in range(last - first):
        k = last - 1 - step if backwards else first + step
        beta, floor = betas[k], floors[k]
        if not backwards:
            _measure(g, codes, particles, n, n_factors, energy, holes)
            mean = 0.0
            square = 0.0
            for p in range(particles):
                if log_weights[p] > -inf:
                    log_weights[p] += (beta - betas[k - 1]) * energy[p]
                    if holes[p] > 0.0:
                        log_weights[p] += (floor - floors[k - 1]) * holes[p]
                slope = energy[p] + slopes[k] * holes[p]
                mean += slope
                square += slope * slope
            mean /= particles
            spread[2 * k] = mean
            spread[2 * k + 1] = max(0.0, square / particles - mean * mean)
        for t in range(entries):
            heated[t] = floor if g.values[t] == -inf else beta * g.values[t]
        for p in range(particles):
            if log_weights[p] == -inf:
                continue
            x = beyond(codes, p * n)
            for _ in range(sweeps):
                for j in range(n):
                    i = n - 1 - j if backwards else j
                    total = _scores(g, slots, x, i, heated, scores)
                    if total > 0.0:
                        x[i] = _drawn(scores, g.cards[i], uniform(state) * total)
        if backwards:
            _measure(g, codes, particles, n, n_factors, energy, holes)
            for p in range(particles):
                if log_weights[p] > -inf:
                    log_weights[p] += (betas[k - 1] - beta) * energy[p]
                    if holes[p] > 0.0:
                        log_weights[p] += (floors[k - 1] - floor) * holes[p]


@kernel(bare=True)
def conditionals(graph, slots, codes, weights, scores, a, b, c):
    """Add up `w p`, `(w p)^2` and `w^2 p`, p being each variable's distribution given all others, over the particles."""
    particles, n = codes.shape
    g, slots = pointers(graph), pointers(slots)
    codes, weights, scores, a, b, c = pointers((codes, weights, scores, a, b, c))
    for p in range(particles):
        w = weights[p]
        if not w > 0.0:
            continue
        for i in range(n):
            total = _scores(g, slots, beyond(codes, p * n), i, g.values, scores)
            for s in range(g.cards[i]):
                q = scores[s] / total
                at = g.starts[i] + s
                a[at] += w * q
                b[at] += w * q * w * q
                c[at] += w * w * q
