"""Gibbs sweeps of many chains under log tables, counting the table entries that the chains are in."""

from math import exp

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import advance


@kernel
def run_chains(low, high, sweeps, skip, chains, layout, log_tables, room, counts):
    """Sweep chains low ... high - 1; after the first `skip` sweeps each adds one to the entries it is in.

    `chains` are states (chains, n) and those of generators (chains, 4), `layout` is a `FieldArrays`; `log_tables` and
    `counts` are pairs of single cells and cells of tables. With `skip` equal to `sweeps` only the last state is counted. The
    room is for a number a table and for the states of a variable.
    """
    states, random = chains
    offset, weights = room
    cards, starts, scope_ptr, scope, strides, table_ptr, edge_ptr, edge_factor, edge_stride = layout
    single, tables = log_tables
    single_count, table_count = counts
    n = len(cards)
    n_tables = len(table_ptr) - 1
    for c in range(low, high):
        x = states[c]
        rng = random[c]
        a, b, d, e = rng[0], rng[1], rng[2], rng[3]
        for f in range(n_tables):
            at = table_ptr[f]
            for m in range(scope_ptr[f], scope_ptr[f + 1]):
                at += strides[m] * np.int64(x[scope[m]])
            offset[f] = at
        for s in range(sweeps):
            for i in range(n):
                old = np.int64(x[i])
                card = cards[i]
                start = starts[i]
                first, last = edge_ptr[i], edge_ptr[i + 1]
                u, a, b, d, e = advance(a, b, d, e)
                new = 0
                if card == 2:
                    z = single[start + 1] - single[start]
                    for p in range(first, last):
                        stride = edge_stride[p]
                        base = offset[edge_factor[p]] - old * stride
                        z += tables[base + stride] - tables[base]
                    if u * (1.0 + exp(-z)) < 1.0:
                        new = 1
                else:
                    top = -np.inf
                    for k in range(card):
                        z = single[start + k]
                        for p in range(first, last):
                            stride = edge_stride[p]
                            z += tables[offset[edge_factor[p]] + (k - old) * stride]
                        weights[k] = z
                        top = max(top, z)
                    mass = 0.0
                    for k in range(card):
                        weights[k] = exp(weights[k] - top)
                        mass += weights[k]
                    u *= mass
                    for k in range(card):
                        if weights[k] > 0.0:
                            new = k
                            u -= weights[k]
                            if u < 0.0:
                                break
                if new != old:
                    for p in range(first, last):
                        offset[edge_factor[p]] += (new - old) * edge_stride[p]
                    x[i] = new
            if s >= skip or (s == sweeps - 1 and skip >= sweeps):
                for i in range(n):
                    single_count[starts[i] + np.int64(x[i])] += 1.0
                for f in range(n_tables):
                    table_count[offset[f]] += 1.0
        rng[0], rng[1], rng[2], rng[3] = a, b, d, e
