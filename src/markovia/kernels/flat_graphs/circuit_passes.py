"""Passes over circuits of sums and products, many rows at once: up, down, and from the root along one choice a sum.

Values are logarithms, (nodes, rows); leaves come first and children before their parents, the root is last. Cost of a pass:
edges times rows.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform
from markovia.runtime.array_types import Array, Flags, Ints


class CircuitTables(NamedTuple):
    """The inner nodes of a circuit, which follow its leaves."""

    leaves: int
    sums: Flags  # (inner nodes,): whether a node is a sum
    first: Ints  # (inner nodes + 1,): its edges
    child: Ints  # (edges,)
    log_weight: Array  # (edges,): 0 below products
    variable: Ints  # (leaves,): what a leaf is about


@inner
def _log_add(a, b):
    top = max(a, b)
    return top if top == -inf else top + log(exp(a - top) + exp(b - top))


@kernel
def upward(c, values, maximise):
    """Fill the values of inner nodes from those of the leaves; sums are maxima where `maximise` says so."""
    rows = values.shape[1]
    for i in range(len(c.sums)):
        here = values[c.leaves + i]
        a, b = c.first[i], c.first[i + 1]
        if not c.sums[i]:
            here[:] = 0.0
            for e in range(a, b):
                below = values[c.child[e]]
                for r in range(rows):
                    here[r] += below[r]
            continue
        for r in range(rows):
            top = -inf
            for e in range(a, b):
                top = max(top, c.log_weight[e] + values[c.child[e], r])
            if not maximise and top > -inf:
                total = 0.0
                for e in range(a, b):
                    total += exp(c.log_weight[e] + values[c.child[e], r] - top)
                top += log(total)
            here[r] = top


@kernel
def downward(c, values, slopes):
    """Fill log derivatives of the root with respect to every node; minus infinity below products that are zero.

    Those would only be needed of nodes that are zero themselves, which then count for nothing.
    """
    rows = values.shape[1]
    slopes[:] = -inf
    slopes[-1] = 0.0
    for i in range(len(c.sums) - 1, -1, -1):
        a, b = c.first[i], c.first[i + 1]
        for r in range(rows):
            slope, here = slopes[c.leaves + i, r], values[c.leaves + i, r]
            if slope == -inf or here == -inf:
                continue
            for e in range(a, b):
                k = c.child[e]
                step = c.log_weight[e] if c.sums[i] else here - values[k, r]
                slopes[k, r] = _log_add(slopes[k, r], slope + step)


@kernel
def edge_counts(c, values, slopes, weights, counts):
    """Add how often each edge below a sum is expected to be taken, rows weighted."""
    root = values[len(values) - 1]
    for i in range(len(c.sums)):
        if c.sums[i]:
            for e in range(c.first[i], c.first[i + 1]):
                for r in range(len(weights)):
                    if weights[r] > 0.0:
                        log_share = (
                            slopes[c.leaves + i, r] + c.log_weight[e] + values[c.child[e], r] - root[r]
                        )
                        counts[e] += weights[r] * exp(log_share)


@kernel
def choose_leaves(c, values, greedy, chosen, s):
    """Fill the leaf that each variable gets in each row (rows, variables): drawn, or along the largest terms."""
    stack = np.empty(len(values), np.int64)
    for r in range(len(chosen)):
        row = min(r, values.shape[1] - 1)
        stack[0], height = len(values) - 1, 1
        while height:
            height -= 1
            k = stack[height]
            if k < c.leaves:
                chosen[r, c.variable[k]] = k
                continue
            a, b = c.first[k - c.leaves], c.first[k - c.leaves + 1]
            if not c.sums[k - c.leaves]:
                for e in range(a, b):
                    stack[height] = c.child[e]
                    height += 1
                continue
            best, pick = -inf, a
            u = log(max(uniform(s), 1e-300)) + values[k, row] if not greedy else 0.0
            reached = -inf
            for e in range(a, b):
                term = c.log_weight[e] + values[c.child[e], row]
                if greedy and term > best:
                    best, pick = term, e
                if not greedy and term > -inf:
                    reached, pick = _log_add(reached, term), e
                    if reached > u:
                        break
            stack[height] = c.child[pick]
            height += 1
