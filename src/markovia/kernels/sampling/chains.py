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

INDICATORS, HELD, FRESH = 0, 1, 2
"""What a record adds up: states, the conditionals the sampler left in `held`, or conditionals worked out anew."""
LOG_WEIGHT, BEST, ACCEPTED, PROPOSED = 0, 1, 2, 3
"""Places in `Chain.scalars`."""
TINY = 1e-150


class Graph(NamedTuple):
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
def conditional(graph, unary, values, i, here, offset, w):
    """Write the full conditional of variable i into w, summing to one."""
    cards, edge_factor, edge_ptr, edge_stride = (
        graph.cards,
        graph.edge_factor,
        graph.edge_ptr,
        graph.edge_stride,
    )
    starts = graph.starts
    card = cards[i]
    start = starts[i]
    if card == 2:
        w0, w1 = unary[start], unary[start + 1]
        for p in range(edge_ptr[i], edge_ptr[i + 1]):
            stride = edge_stride[p]
            base = offset[edge_factor[p]] - here * stride
            w0 *= values[base]
            w1 *= values[base + stride]
            if w0 < TINY and w1 < TINY:
                w0 /= TINY
                w1 /= TINY
        total = w0 + w1
        w[0] = w0 / total
        w[1] = w1 / total
        return
    for k in range(card):
        w[k] = unary[start + k]
    for p in range(edge_ptr[i], edge_ptr[i + 1]):
        stride = edge_stride[p]
        base = offset[edge_factor[p]] - here * stride
        top = 0.0
        for k in range(card):
            w[k] *= values[base + k * stride]
            if w[k] > top:
                top = w[k]
        if top < TINY:
            for k in range(card):
                w[k] /= TINY
    total = 0.0
    for k in range(card):
        total += w[k]
    for k in range(card):
        w[k] /= total


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


@kernel
def place(graph, x, offset):
    """Work out the positions in the tables that belong to the states x."""
    scope, scope_ptr, strides, table_ptr = graph.scope, graph.scope_ptr, graph.strides, graph.table_ptr
    for f in range(len(table_ptr) - 1):
        at = table_ptr[f]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            at += x[scope[e]] * strides[e]
        offset[f] = at


@kernel
def log_weight(graph, x, offset):
    """Return the log weight of the states x, less the graph's scale."""
    log_unary, log_values, starts = graph.log_unary, graph.log_values, graph.starts
    total = 0.0
    for i in range(len(x)):
        total += log_unary[starts[i] + x[i]]
    for f in range(len(offset)):
        total += log_values[offset[f]]
    return total


@inner
def refresh(graph, x, offset, held):
    """Write the full conditionals of all variables into `held`."""
    starts, unary, values = graph.starts, graph.unary, graph.values
    edge_ptr, edge_factor, edge_stride = graph.edge_ptr, graph.edge_factor, graph.edge_stride
    for i in range(len(x)):
        start, end = starts[i], starts[i + 1]
        for s in range(start, end):
            held[s] = unary[s]
        for p in range(edge_ptr[i], edge_ptr[i + 1]):
            stride = edge_stride[p]
            at = offset[edge_factor[p]] - x[i] * stride
            top = 0.0
            for s in range(start, end):
                held[s] *= values[at]
                top = max(top, held[s])
                at += stride
            if top < TINY:
                for s in range(start, end):
                    held[s] /= TINY
        total = 0.0
        for s in range(start, end):
            total += held[s]
        for s in range(start, end):
            held[s] /= total


@kernel
def remember_best(chain):
    """Keep the current states if they are the heaviest yet."""
    if chain.scalars[LOG_WEIGHT] > chain.scalars[BEST] and len(chain.best):
        chain.scalars[BEST] = chain.scalars[LOG_WEIGHT]
        for i in range(len(chain.x)):
            chain.best[i] = chain.x[i]


@kernel
def record(graph, chain, t, draws, mode):
    """Write draw number t into the chain's record; `scalars[LOG_WEIGHT]` and `offset` must be up to date."""
    x = chain.x
    sums = chain.sums[t * len(chain.sums) // draws]
    if mode == HELD:
        for s in range(len(sums)):
            sums[s] += chain.held[s]
    elif mode == FRESH:
        refresh(graph, x, chain.offset, chain.held)
        for s in range(len(sums)):
            sums[s] += chain.held[s]
    else:
        for i in range(len(x)):
            sums[graph.starts[i] + x[i]] += 1.0
    row = chain.trace[t]
    row[0] = chain.scalars[LOG_WEIGHT]
    for q in range(len(chain.traced)):
        at, i = chain.traced[q], chain.traced_owner[q]
        if mode == INDICATORS:
            row[q + 1] = 1.0 if graph.starts[i] + x[i] == at else 0.0
        else:
            row[q + 1] = chain.held[at]
    for q in range(len(chain.kept_variables)):
        chain.kept[t, q] = x[chain.kept_variables[q]]
    n = len(chain.joint_variables)
    if n and mode == INDICATORS:
        at = 0
        for j in range(n):
            at += x[chain.joint_variables[j]] * chain.joint_strides[j]
        chain.joint[at] += 1.0
    elif n:
        at = 0
        for j in range(n):
            at += x[chain.joint_variables[j]] * chain.joint_strides[j]
        for j in range(n):
            i = chain.joint_variables[j]
            base = at - x[i] * chain.joint_strides[j]
            conditional(graph, graph.unary, graph.values, i, x[i], chain.offset, chain.room)
            for k in range(graph.cards[i]):
                chain.joint[base + k * chain.joint_strides[j]] += chain.room[k] / n
