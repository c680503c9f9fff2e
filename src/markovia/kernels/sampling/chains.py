"""What all Markov chains on flat graphs share: full conditionals, and the record of a run.

A chain carries for each factor the position in its table that belongs to the current states (`offset`), so a full
conditional costs one strided read a factor, whatever the factor's size, and a change costs one addition a factor.
The state of the random numbers lies in the chain. Whole arrays are copied by loops:
Numba takes seconds to compile an assignment to a slice.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers

INDICATORS, HELD, FRESH = 0, 1, 2
"""What a record adds up: states, the conditionals the sampler left in `held`, or conditionals worked out anew."""
LOG_WEIGHT, BEST, ACCEPTED, PROPOSED = 0, 1, 2, 3
"""Places in `Chain.scalars`."""
TINY = 1e-150


class ChainArrays(NamedTuple):
    """A flat graph; the edges at a variable lie one after the other."""

    cards: NDArray[np.int64]
    starts: NDArray[np.int64]
    unary: NDArray[np.float64]
    log_unary: NDArray[np.float64]
    values: NDArray[np.float64]
    log_values: NDArray[np.float64]
    table_ptr: NDArray[np.int64]
    scope_ptr: NDArray[np.int64]
    scope: NDArray[np.int64]
    strides: NDArray[np.int64]
    edge_ptr: NDArray[np.int64]
    edge_factor: NDArray[np.int64]
    edge_stride: NDArray[np.int64]


class Chain(NamedTuple):
    """One chain: where it is, and what it has recorded."""

    x: NDArray[np.int64]
    offset: NDArray[np.int64]
    held: NDArray[np.float64]
    rng: NDArray[np.uint64]
    scalars: NDArray[np.float64]
    room: NDArray[np.float64]
    sums: NDArray[np.float64]
    traced: NDArray[np.int64]
    traced_owner: NDArray[np.int64]
    trace: NDArray[np.float64]
    kept_variables: NDArray[np.int64]
    kept: NDArray[np.int32]
    joint_variables: NDArray[np.int64]
    joint_strides: NDArray[np.int64]
    joint: NDArray[np.float64]
    best: NDArray[np.int64]


@inner
def pick(w, card, u):
    """Return the state that a uniform number falls on; never one of weight zero."""
    last = 0
    for k in range(card):
        if w[k] > 0.0:
            last = k
            u -= w[k]
            if u < 0.0:
                return k
    return last


@inner
def put(graph, x, offset, i, new):
    """Give variable i a state."""
    edge_factor, edge_ptr, edge_stride = graph.edge_factor, graph.edge_ptr, graph.edge_stride
    change = new - x[i]
    if change != 0:
        for p in range(edge_ptr[i], edge_ptr[i + 1]):
            offset[edge_factor[p]] += change * edge_stride[p]
        x[i] = new


@kernel(bare=True)
def place(graph, x, offset):
    """Work out the positions in the tables that belong to the states x."""
    n_factors = len(offset)
    g, x, offset = pointers(graph), pointer(x), pointer(offset)
    for f in range(n_factors):
        at = g.table_ptr[f]
        for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
            at += x[g.scope[e]] * g.strides[e]
        offset[f] = at


@kernel(bare=True)
def log_weight(graph, x, offset):
    """Return the log weight of the states x, less the graph's scale."""
    n, n_factors = len(x), len(offset)
    g, x, offset = pointers(graph), pointer(x), pointer(offset)
    total = 0.0
    for i in range(n):
        total += g.log_unary[g.starts[i] + x[i]]
    for f in range(n_factors):
        total += g.log_values[offset[f]]
    return total


@inner(bare=True)
def _conditional(g, i, here, offset, w):
    """Write the full conditional of variable i into w, summing to one."""
    card, start = g.cards[i], g.starts[i]
    for k in range(card):
        w[k] = g.unary[start + k]
    for p in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
        stride = g.edge_stride[p]
        at = offset[g.edge_factor[p]] - here * stride
        top = 0.0
        for k in range(card):
            w[k] *= g.values[at]
            top = max(top, w[k])
            at += stride
        if top < TINY:
            for k in range(card):
                w[k] /= TINY
    total = 0.0
    for k in range(card):
        total += w[k]
    for k in range(card):
        w[k] /= total


@kernel(bare=True)
def remember_best(chain):
    """Keep the current states if they are the heaviest yet."""
    n = len(chain.best)
    c = pointers(chain)
    if c.scalars[LOG_WEIGHT] > c.scalars[BEST] and n > 0:
        c.scalars[BEST] = c.scalars[LOG_WEIGHT]
        for i in range(n):
            c.best[i] = c.x[i]


@inner(bare=True)
def note(graph, chain, t, plan):
    """Remember the heaviest states and record draw number t of a `DrawPlan`, or its weight alone."""
    remember_best(chain)
    if len(plan.warm) > 0:
        plan.warm[t] = chain.scalars[LOG_WEIGHT]
    else:
        record(graph, chain, t, plan.draws, plan.mode)


@kernel(bare=True)
def record(graph, chain, t, draws, mode):
    """Write draw number t into the chain's record; `scalars[LOG_WEIGHT]` and `offset` must be up to date."""
    variables, n_traced, n_kept, n = (
        len(chain.x),
        len(chain.traced),
        len(chain.kept_variables),
        len(chain.joint_variables),
    )
    batches, n_states = chain.sums.shape
    g, c = pointers(graph), pointers(chain)
    sums = beyond(c.sums, t * batches // draws * n_states)
    x, held = c.x, c.held
    if mode == FRESH:
        for i in range(variables):
            _conditional(g, i, x[i], c.offset, beyond(held, g.starts[i]))
    if mode == INDICATORS:
        for i in range(variables):
            sums[g.starts[i] + x[i]] += 1.0
    else:
        for s in range(n_states):
            sums[s] += held[s]
    row = beyond(c.trace, t * (n_traced + 1))
    row[0] = c.scalars[LOG_WEIGHT]
    for q in range(n_traced):
        at, i = c.traced[q], c.traced_owner[q]
        if mode == INDICATORS:
            row[q + 1] = 1.0 if g.starts[i] + x[i] == at else 0.0
        else:
            row[q + 1] = held[at]
    for q in range(n_kept):
        c.kept[t * n_kept + q] = x[c.kept_variables[q]]
    at = 0
    for j in range(n):
        at += x[c.joint_variables[j]] * c.joint_strides[j]
    if n > 0 and mode == INDICATORS:
        c.joint[at] += 1.0
    elif n > 0:
        for j in range(n):
            i, stride = c.joint_variables[j], c.joint_strides[j]
            _conditional(g, i, x[i], c.offset, c.room)
            for k in range(g.cards[i]):
                c.joint[at + (k - x[i]) * stride] += c.room[k] / n
