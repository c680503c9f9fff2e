"""Metropolis moves on flat graphs: one variable or a block to other states, or the states of two variables exchanged."""

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


@inner(bare=True)
def _move_block(g, m, x, offset, block, row):
    """Give the variables of a block their states in a row; return what `_shift` does, for all of them."""
    finite, zeros = 0.0, 0
    first, last = m.ptr[block], m.ptr[block + 1]
    at = m.begins[block] + (row - m.row_ptr[block]) * (last - first)
    for i in range(first, last):
        if m.rows[at] != x[m.members[i]]:
            more, extra = _shift(g, x, offset, m.members[i], m.rows[at])
            finite += more
            zeros += extra
        at += 1
    return finite, zeros


@inner(bare=True)
def _row_of(m, x, block):
    """Return the joint state that a block is in, by number; -1 if it is none of those listed, which are in order."""
    first, last = m.ptr[block], m.ptr[block + 1]
    low, high = m.row_ptr[block], m.row_ptr[block + 1]
    while low < high:
        row = (low + high) // 2
        at, order = m.begins[block] + (row - m.row_ptr[block]) * (last - first), 0
        for i in range(first, last):
            if order == 0:
                order = m.rows[at + i - first] - x[m.members[i]]
        if order == 0:
            return row
        if order < 0:
            low = row + 1
        else:
            high = row
    return -1


@kernel(bare=True)
def run_metropolis(graph, chain, move, steps, moves, plan):
    """Make draws, each after `thin` times `steps` proposals."""
    n, n_picks = len(chain.x), len(moves.picks)
    place(graph, chain.x, chain.offset)
    g, c, m = pointers(graph), pointers(chain), pointers(moves)
    x, offset, rng = c.x, c.offset, c.rng
    for t in range(plan.first, plan.first + plan.number):
        for _ in range(plan.thin * steps):
            c.scalars[PROPOSED] += 1.0
            i = m.picks[below(rng, n_picks)]
            block, row = -1 - i, 0
            j = i
            old, other, gain, zeros = 0, 0, 0.0, 0
            if (
                i < 0
            ):  # another of the block's joint states, all with equal probability, so there and back alike
                row = _row_of(m, x, block)
                count = m.row_ptr[block + 1] - m.row_ptr[block]
                if row < 0 or count == 1:
                    continue
                new = m.row_ptr[block] + below(rng, count - 1)
                if new >= row:
                    new += 1
                gain, zeros = _move_block(g, m, x, offset, block, new)
            elif move == FLIP:
                if g.cards[i] == 1:
                    continue
                old = x[i]
                other = below(rng, g.cards[i] - 1)
                if other >= old:
                    other += 1
                gain, zeros = _shift(g, x, offset, i, other)
            else:
                old = x[i]
                j = below(rng, n)
                other = x[j]
                if g.cards[i] != g.cards[j] or other == old:
                    continue
                gain, zeros = _shift(g, x, offset, i, other)
                more, extra = _shift(g, x, offset, j, old)
                gain += more
                zeros += extra
            if zeros == 0 and (gain >= 0.0 or uniform(rng) < exp(gain)):
                c.scalars[ACCEPTED] += 1.0
            elif i < 0:  # back to where it was
                _move_block(g, m, x, offset, block, row)
            else:
                _shift(g, x, offset, i, old)
                if move == SWAP:
                    _shift(g, x, offset, j, other)
        c.scalars[LOG_WEIGHT] = log_weight(graph, chain.x, chain.offset)
        note(graph, chain, t, plan)
