"""Metropolis moves on flat graphs: one variable to another state, or the states of two variables exchanged."""

from math import exp

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import below, uniform
from markovia.kernels.sampling.chains import (
    ACCEPTED,
    LOG_WEIGHT,
    PROPOSED,
    log_weight,
    place,
    record,
    remember_best,
)

FLIP, SWAP = 0, 1


@inner
def _shift(graph, x, offset, i, new, change):
    """Give variable i a state; adds to `change` the finite part of the log weight's change, and the number of zeros."""
    edge_factor, edge_ptr, edge_stride, log_unary = (
        graph.edge_factor,
        graph.edge_ptr,
        graph.edge_stride,
        graph.log_unary,
    )
    log_values, starts = graph.log_values, graph.starts
    step = new - x[i]
    before = log_unary[starts[i] + x[i]]
    after = log_unary[starts[i] + new]
    for p in range(edge_ptr[i] - 1, edge_ptr[i + 1]):
        if p >= edge_ptr[i]:
            f = edge_factor[p]
            before = log_values[offset[f]]
            offset[f] += step * edge_stride[p]
            after = log_values[offset[f]]
        if before == -np.inf:
            change[1] -= 1.0
        else:
            change[0] -= before
        if after == -np.inf:
            change[1] += 1.0
        else:
            change[0] += after
    x[i] = new


@kernel
def run_metropolis(graph, chain, move, steps, thin, first, count, draws, mode, warm):
    """Make draws, each after `thin` times `steps` proposals."""
    x, offset, rng = chain.x, chain.offset, chain.rng
    place(graph, x, offset)
    n = len(x)
    change = np.empty(2)
    for t in range(first, first + count):
        for _ in range(thin * steps):
            chain.scalars[PROPOSED] += 1.0
            i = below(rng, n)
            j = i
            old, other = x[i], x[i]
            if move == FLIP:
                if graph.cards[i] == 1:
                    continue
                other = below(rng, graph.cards[i] - 1)
                if other >= old:
                    other += 1
            else:
                j = below(rng, n)
                other = x[j]
                if graph.cards[i] != graph.cards[j] or other == old:
                    continue
            change[0], change[1] = 0.0, 0.0
            _shift(graph, x, offset, i, other, change)
            if move == SWAP:
                _shift(graph, x, offset, j, old, change)
            if change[1] == 0.0 and (change[0] >= 0.0 or uniform(rng) < exp(change[0])):
                chain.scalars[ACCEPTED] += 1.0
            else:
                _shift(graph, x, offset, i, old, change)
                if move == SWAP:
                    _shift(graph, x, offset, j, other, change)
        chain.scalars[LOG_WEIGHT] = log_weight(graph, x, offset)
        remember_best(chain)
        if len(warm):
            warm[t] = chain.scalars[LOG_WEIGHT]
        else:
            record(graph, chain, t, draws, mode)
