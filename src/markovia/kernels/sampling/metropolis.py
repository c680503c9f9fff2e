"""Metropolis moves on flat graphs: one variable to another state, or the states of two variables exchanged."""

from math import exp

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointers
from markovia.kernels.random_numbers import below, uniform
from markovia.kernels.sampling.chains import ACCEPTED, LOG_WEIGHT, PROPOSED, log_weight, note, place

FLIP, SWAP = 0, 1


@inner(bare=True)
def _shift(g, x, offset, i, new):
    """Give variable i a state; return the finite part of the log weight's change, and the number of new zeros."""
    step = new - x[i]
    before = g.log_unary[g.starts[i] + x[i]]
    after = g.log_unary[g.starts[i] + new]
    finite = 0.0
    zeros = 0
    for p in range(g.edge_ptr[i] - 1, g.edge_ptr[i + 1]):
        if p >= g.edge_ptr[i]:
            f = g.edge_factor[p]
            before = g.log_values[offset[f]]
            offset[f] += step * g.edge_stride[p]
            after = g.log_values[offset[f]]
        if before == -np.inf:
            zeros -= 1
        else:
            finite -= before
        if after == -np.inf:
            zeros += 1
        else:
            finite += after
    x[i] = new
    return finite, zeros


@kernel(bare=True)
def run_metropolis(graph, chain, move, steps, plan):
    """Make draws, each after `thin` times `steps` proposals."""
    n = len(chain.x)
    place(graph, chain.x, chain.offset)
    g, c = pointers(graph), pointers(chain)
    x, offset, rng = c.x, c.offset, c.rng
    for t in range(plan.first, plan.first + plan.number):
        for _ in range(plan.thin * steps):
            c.scalars[PROPOSED] += 1.0
            i = below(rng, n)
            j = i
            old, other = x[i], x[i]
            if move == FLIP:
                if g.cards[i] == 1:
                    continue
                other = below(rng, g.cards[i] - 1)
                if other >= old:
                    other += 1
            else:
                j = below(rng, n)
                other = x[j]
                if g.cards[i] != g.cards[j] or other == old:
                    continue
            gain, zeros = _shift(g, x, offset, i, other)
            if move == SWAP:
                more, extra = _shift(g, x, offset, j, old)
                gain += more
                zeros += extra
            if zeros == 0 and (gain >= 0.0 or uniform(rng) < exp(gain)):
                c.scalars[ACCEPTED] += 1.0
            else:  # back to where it was
                _shift(g, x, offset, i, old)
                if move == SWAP:
                    _shift(g, x, offset, j, other)
        c.scalars[LOG_WEIGHT] = log_weight(graph, chain.x, chain.offset)
        note(graph, chain, t, plan)
