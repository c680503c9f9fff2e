"""Weighted draws, one variable after the other.

A *step* draws one variable given those before it, in proportion to a product of functions (tables over the variable and
earlier ones). The weight of a draw collects, where a step says so, one over the probability of what was drawn, and the
tables that are complete after the step. A draw whose weight becomes zero is given up at once.
"""

from math import inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointers
from markovia.kernels.random_numbers import uniform
from markovia.runtime.array_types import Array, Ints


class Steps(NamedTuple):
    """The steps: their variables, numbers of states, whether they weigh, the functions of each and complete factors.

    The functions of step k are `function_ptr[k] : function_ptr[k + 1]`; a function's entry is at `function_table` plus
    `function_stride` times the state drawn plus the strides of the earlier variables in its scope. The factors that
    are complete after step k are `factor_ptr[k] : factor_ptr[k + 1]`, with all their variables in the scope.
    """

    order: Ints
    cards: Ints
    weigh: NDArray[np.int8]
    function_ptr: Ints
    function_table: Ints
    function_stride: Ints
    function_scope_ptr: Ints
    function_scope: Ints
    function_strides: Ints
    values: Array
    factor_ptr: Ints
    factor_table: Ints
    factor_scope_ptr: Ints
    factor_scope: Ints
    factor_strides: Ints
    log_values: Array


@kernel(bare=True)
def draw_weighted(steps, state, codes, log_weights, base, fixed, scores):
    """Fill rows of state codes and their log weights."""
    rows, n = codes.shape
    n_steps = len(steps.order)
    s = pointers(steps)
    state, codes, log_weights, fixed, scores = pointers((state, codes, log_weights, fixed, scores))
    for row in range(rows):
        x = beyond(codes, row * n)
        for v in range(n):
            x[v] = fixed[v]
        log_weight = base
        for k in range(n_steps):
            v = s.order[k]
            card = s.cards[v]
            first = s.function_ptr[k]
            total = 0.0
            for f in range(first, s.function_ptr[k + 1]):
                at = s.function_table[f]
                for e in range(s.function_scope_ptr[f], s.function_scope_ptr[f + 1]):
                    at += s.function_strides[e] * x[s.function_scope[e]]
                stride = s.function_stride[f]
                total = 0.0
                if f == first:
                    for j in range(card):
                        scores[j] = s.values[at + j * stride]
                        total += scores[j]
                else:
                    top = 0.0
                    for j in range(card):
                        scores[j] *= s.values[at + j * stride]
                        if scores[j] > top:
                            top = scores[j]
                    if top > 0.0:  # keep long products inside the range of doubles
                        for j in range(card):
                            scores[j] /= top
                            total += scores[j]
            if not total > 0.0:
                log_weight = -inf
                break
            u = uniform(state) * total
            drawn = -1
            for j in range(card):
                if scores[j] > 0.0:
                    drawn = j
                    u -= scores[j]
                    if u < 0.0:
                        break
            x[v] = drawn
            if s.weigh[k]:
                log_weight -= log(scores[drawn] / total)
            for f in range(s.factor_ptr[k], s.factor_ptr[k + 1]):
                at = s.factor_table[f]
                for e in range(s.factor_scope_ptr[f], s.factor_scope_ptr[f + 1]):
                    at += s.factor_strides[e] * x[s.factor_scope[e]]
                log_weight += s.log_values[at]
            if log_weight == -inf:
                break
        log_weights[row] = log_weight


@kernel(bare=True)
def tally(codes, weights, columns, starts, sums, squares):
    """Add each row's weight, and its square, to the state that the row has in every column asked for."""
    (rows, n), n_columns = codes.shape, len(columns)
    codes, weights, columns, starts, sums, squares = pointers(
        (codes, weights, columns, starts, sums, squares)
    )
    for row in range(rows):
        w = weights[row]
        if w > 0.0:
            for j in range(n_columns):
                at = starts[j] + codes[row * n + columns[j]]
                sums[at] += w
                squares[at] += w * w
