"""Cluster moves of Swendsen and Wang (all clusters) and Wolff (the cluster of one variable) for Potts models with fields.

Equal neighbours are bonded with probability 1 - r, where r is the ratio of the table off and on the diagonal. A cluster
takes a state in proportion to the product of its members' fields, which leaves the distribution as it is.
"""

from math import exp

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import below, uniform
from markovia.kernels.sampling.chains import LOG_WEIGHT, log_weight, note, place


@inner
def _root(roots, i):
    while roots[i] != i:
        roots[i] = roots[roots[i]]
        i = roots[i]
    return i


@inner
def _state(weights, at, q, rng):
    """Draw a state from q log weights that begin at `at`."""
    top = -np.inf
    for k in range(q):
        top = max(top, weights[at + k])
    total = 0.0
    for k in range(q):
        total += exp(weights[at + k] - top)
    u = uniform(rng) * total
    last = 0
    for k in range(q):
        w = exp(weights[at + k] - top)
        if w > 0.0:
            last = k
            u -= w
            if u < 0.0:
                return k
    return last


@inner
def sweep_all(x, rng, model, roots, weights, chosen):
    """Bond, and give every cluster a new state; returns how many clusters there were."""
    first, second, bond, field, q = model.first, model.second, model.bond, model.field, model.q
    n = len(x)
    for i in range(n):
        roots[i] = i
    for e in range(len(first)):
        i, j = first[e], second[e]
        if x[i] == x[j] and uniform(rng) < bond[e]:
            a, b = _root(roots, i), _root(roots, j)
            if a < b:
                roots[b] = a
            elif b < a:
                roots[a] = b
    for s in range(n * q):
        weights[s] = 0.0
    for i in range(n):
        a = _root(roots, i)
        for k in range(q):
            weights[a * q + k] += field[i * q + k]
    clusters = 0
    for i in range(n):
        if roots[i] == i:
            chosen[i] = _state(weights, i * q, q, rng)
            clusters += 1
    for i in range(n):
        x[i] = chosen[_root(roots, i)]
    return clusters


@inner
def step_one(x, rng, model, stamp, mark, queue, weights):
    """Grow the cluster of a random variable and give it a new state; returns its size."""
    ptr, other, bond_at, field, q = model.ptr, model.other, model.bond_at, model.field, model.q
    start = below(rng, len(x))
    old = x[start]
    for k in range(q):
        weights[k] = 0.0
    queue[0] = start
    stamp[start] = mark
    size, at = 1, 0
    while at < size:
        i = queue[at]
        at += 1
        for k in range(q):
            weights[k] += field[i * q + k]
        for p in range(ptr[i], ptr[i + 1]):
            j = other[p]
            if stamp[j] != mark and x[j] == old and uniform(rng) < bond_at[p]:
                stamp[j] = mark
                queue[size] = j
                size += 1
    new = _state(weights, 0, q, rng)
    for at in range(size):
        x[queue[at]] = new
    return size


@kernel
def run_clusters(graph, chain, wolff, steps, model, room, tally, plan):
    """Make draws by cluster moves; `tally` sums cluster counts (or sizes), moves, and numbers Wolff's clusters.

    `room` is for the roots (or stamps) of clusters (n,), log weights (n q,) and new states (or a queue) (n,).
    """
    x, rng = chain.x, chain.rng
    roots, weights, spare = room
    for t in range(plan.first, plan.first + plan.number):
        for _ in range(plan.thin * steps):
            if wolff:
                tally[2] += 1.0
                tally[0] += step_one(x, rng, model, roots, np.int64(tally[2]), spare, weights)
            else:
                tally[0] += sweep_all(x, rng, model, roots, weights, spare)
            tally[1] += 1.0
        place(graph, x, chain.offset)
        chain.scalars[LOG_WEIGHT] = log_weight(graph, x, chain.offset)
        note(graph, chain, t, plan)
