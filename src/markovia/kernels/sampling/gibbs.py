"""Gibbs sweeps on flat graphs: any tables, and a path for binary variables with positive pairwise tables.

The binary path works with log odds: that of x_i = 1 is `field[i] + sum of coupling * x_j`, with states in one byte each.
Where few variables differ in field and couplings, as on a homogeneous grid, the log odds and probabilities of all states of
the neighbours are looked up: neighbour k adds 2**k to the place.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer, pointers
from markovia.kernels.random_numbers import advance, below, uniform
from markovia.kernels.sampling.chains import INDICATORS, LOG_WEIGHT, TINY, log_weight, note, place

SYSTEMATIC, RANDOM = 0, 1


@kernel(bare=True)
def update(graph, unary, values, x, offset, held, rng, room, order, low, high, scan):
    """Draw the variables order[low:high] (or as many at random) from their full conditionals.

    Returns the change of the log weight under the tables given. The full conditional is written out here, since a call for
    every update would cost more than the work.
    """
    n = len(order)
    cards, starts = pointer(graph.cards), pointer(graph.starts)
    edge_ptr, edge_factor, edge_stride = pointers((graph.edge_ptr, graph.edge_factor, graph.edge_stride))
    unary, values, x, offset = pointers((unary, values, x, offset))
    held, rng, room, order = pointers((held, rng, room, order))
    gained = 0.0
    for at in range(low, high):
        i = order[at] if scan == SYSTEMATIC else order[below(rng, n)]
        old = x[i]
        card = cards[i]
        start = starts[i]
        first, last = edge_ptr[i], edge_ptr[i + 1]
        new = 0
        if card == 2:
            w0, w1 = unary[start], unary[start + 1]
            for p in range(first, last):
                stride = edge_stride[p]
                base = offset[edge_factor[p]] - old * stride
                w0 *= values[base]
                w1 *= values[base + stride]
                if w0 < TINY and w1 < TINY:
                    w0 /= TINY
                    w1 /= TINY
            total = w0 + w1
            w1 /= total
            w0 /= total
            held[start] = w0
            held[start + 1] = w1
            if uniform(rng) < w1:
                new = 1
            if new != old:
                gained += log(w1 / w0) if new == 1 else log(w0 / w1)
        else:
            for k in range(card):
                room[k] = unary[start + k]
            for p in range(first, last):
                stride = edge_stride[p]
                base = offset[edge_factor[p]] - old * stride
                top = 0.0
                for k in range(card):
                    w = room[k] * values[base + k * stride]
                    room[k] = w
                    if w > top:
                        top = w
                if top < TINY:
                    for k in range(card):
                        room[k] /= TINY
            total = 0.0
            for k in range(card):
                total += room[k]
            u = uniform(rng)
            searching = True
            for k in range(card):
                w = room[k] / total
                held[start + k] = w
                if searching and w > 0.0:
                    new = k
                    u -= w
                    searching = u >= 0.0
            if new != old:
                gained += log(room[new] / room[old])
        if new != old:
            change = new - old
            for p in range(first, last):
                offset[edge_factor[p]] += change * edge_stride[p]
            x[i] = new
    return gained


@kernel
def run(graph, chain, order, scan, plan):
    """Make the draws of a `DrawPlan`."""
    place(graph, chain.x, chain.offset)
    chain.scalars[LOG_WEIGHT] = log_weight(graph, chain.x, chain.offset)
    for t in range(plan.first, plan.first + plan.number):
        gained = 0.0
        for _ in range(plan.thin):
            gained += update(
                graph, graph.unary, graph.values, chain.x, chain.offset, chain.held, chain.rng, chain.room, order, 0,
                len(order), scan,
            )  # fmt: skip
        chain.scalars[LOG_WEIGHT] += gained
        if t % 64 == 0 or not np.isfinite(chain.scalars[LOG_WEIGHT]):
            chain.scalars[LOG_WEIGHT] = log_weight(graph, chain.x, chain.offset)
        note(graph, chain, t, plan)


@kernel
def update_binary(pairs, bits, held, rng, order, low, high, scan):
    """Draw binary variables from their full conditionals; `held[i]` becomes the probability of state 1."""
    ptr, other, coupling, field = pairs.ptr, pairs.other, pairs.coupling, pairs.field
    if len(pairs.first) > 0 and scan == SYSTEMATIC:
        return _update_listed(pairs, bits, held, rng, order, low, high)
    gained = 0.0
    n = len(order)
    for at in range(low, high):
        i = order[at] if scan == SYSTEMATIC else order[below(rng, n)]
        z = field[i]
        for p in range(ptr[i], ptr[i + 1]):
            z += coupling[p] * bits[other[p]]
        probability = 1.0 / (1.0 + exp(-z))
        held[i] = probability
        new = np.int8(1) if uniform(rng) < probability else np.int8(0)
        gained += z * (new - bits[i])
        bits[i] = new
    return gained


@inner
def _update_listed(pairs, bits, held, rng, order, low, high):
    """As `update_binary`, by looking up; the state of the random numbers stays in registers."""
    ptr, other, first, odds, chance = pairs.ptr, pairs.other, pairs.first, pairs.odds, pairs.chance
    a, b, c, d = rng[0], rng[1], rng[2], rng[3]
    gained = 0.0
    for at in range(low, high):
        i = order[at]
        place = first[i]
        p = ptr[i]
        if ptr[i + 1] - p == 4:
            place += (
                np.int64(bits[other[p]])
                + (np.int64(bits[other[p + 1]]) << 1)
                + (np.int64(bits[other[p + 2]]) << 2)
                + (np.int64(bits[other[p + 3]]) << 3)
            )
        else:
            for k in range(ptr[i + 1] - p):
                place += np.int64(bits[other[p + k]]) << k
        probability = chance[place]
        u, a, b, c, d = advance(a, b, c, d)
        new = np.int8(1) if u < probability else np.int8(0)
        held[i] = probability
        gained += odds[place] * (new - bits[i])
        bits[i] = new
    rng[0], rng[1], rng[2], rng[3] = a, b, c, d
    return gained


@kernel
def record_binary(chain, bits, held, t, draws, mode):
    """Write draw number t of a binary chain into its record."""
    sums = chain.sums[t * len(chain.sums) // draws]
    if mode == INDICATORS:
        for i in range(len(bits)):
            sums[i] += bits[i]
    else:
        for i in range(len(bits)):
            sums[i] += held[i]
    row = chain.trace[t]
    row[0] = chain.scalars[LOG_WEIGHT]
    for q in range(len(chain.traced)):
        at, i = chain.traced[q], chain.traced_owner[q]
        one = np.float64(bits[i]) if mode == INDICATORS else held[i]
        row[q + 1] = one if at == 2 * i + 1 else 1.0 - one
    for q in range(len(chain.kept_variables)):
        chain.kept[t, q] = bits[chain.kept_variables[q]]


@kernel
def weigh_binary(pairs, bits):
    """Return the log weight of binary states."""
    ptr, other, coupling, field = pairs.ptr, pairs.other, pairs.coupling, pairs.field
    total = pairs.base
    for i in range(len(bits)):
        if bits[i]:
            total += field[i]
            for p in range(ptr[i], ptr[i + 1]):
                total += 0.5 * coupling[p] * bits[other[p]]
    return total


@kernel
def run_binary(pairs, bits, held, chain, order, scan, plan):
    """Make draws of a binary pairwise chain, as `run` does."""
    total = weigh_binary(pairs, bits)
    for t in range(plan.first, plan.first + plan.number):
        for _ in range(plan.thin):
            total += update_binary(pairs, bits, held, chain.rng, order, 0, len(order), scan)
        chain.scalars[LOG_WEIGHT] = total
        if len(chain.best) and total > chain.scalars[1]:
            chain.scalars[1] = total
            for i in range(len(bits)):
                chain.best[i] = bits[i]
        if len(plan.warm):
            plan.warm[t] = total
        else:
            record_binary(chain, bits, held, t, plan.draws, plan.mode)


@kernel
def colour(ptr, other, order):
    """Give each node, in the given order, the smallest colour that no neighbour has."""
    n = len(ptr) - 1
    colours = np.empty(n, np.int64)
    taken = np.empty(n + 1, np.int64)
    taken[n] = -1
    for i in range(n):
        colours[i] = -1
        taken[i] = -1
    for i in order:
        for p in range(ptr[i], ptr[i + 1]):
            if colours[other[p]] >= 0:
                taken[colours[other[p]]] = i
        c = 0
        while taken[c] == i:
            c += 1
        colours[i] = c
    return colours
