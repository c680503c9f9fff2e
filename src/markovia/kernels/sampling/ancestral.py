"""Weighted draws, one variable after the other.

A *step* draws one variable given those before it, in proportion to a product of functions (tables over the variable and
earlier ones). The weight of a draw collects, where a step says so, one over the probability of what was drawn, and the
tables that are complete after the step. A draw whose weight becomes zero is given up at once.

Random numbers are xoshiro256++ (Blackman and Vigna 2019); the state is four words that the caller seeds.
"""

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import uniform


@kernel
def draw_weighted(
    state,
    codes,
    log_weights,
    base,
    fixed,
    order,
    cards,
    weigh,
    function_ptr,
    function_table,
    function_stride,
    function_scope_ptr,
    function_scope,
    function_strides,
    values,
    factor_ptr,
    factor_table,
    factor_scope_ptr,
    factor_scope,
    factor_strides,
    log_values,
    scores,
):
    """Fill rows of state codes and their log weights.

    The functions of step k are `function_ptr[k] : function_ptr[k + 1]`; a function's entry is at `function_table` plus
    `function_stride` times the state drawn plus the strides of the earlier variables in its scope. The factors that
    are complete after step k are `factor_ptr[k] : factor_ptr[k + 1]`, with all their variables in the scope.
    """
    for row in range(codes.shape[0]):
        for v in range(codes.shape[1]):
            codes[row, v] = fixed[v]
        log_weight = base
        for k in range(order.shape[0]):
            v = order[k]
            card = cards[v]
            first = function_ptr[k]
            total = 0.0
            for f in range(first, function_ptr[k + 1]):
                at = function_table[f]
                for e in range(function_scope_ptr[f], function_scope_ptr[f + 1]):
                    at += function_strides[e] * codes[row, function_scope[e]]
                stride = function_stride[f]
                total = 0.0
                if f == first:
                    for s in range(card):
                        scores[s] = values[at + s * stride]
                        total += scores[s]
                else:
                    top = 0.0
                    for s in range(card):
                        scores[s] *= values[at + s * stride]
                        if scores[s] > top:
                            top = scores[s]
                    if top > 0.0:  # keep long products inside the range of doubles
                        for s in range(card):
                            scores[s] /= top
                            total += scores[s]
            if not total > 0.0:
                log_weight = -np.inf
                break
            u = uniform(state) * total
            drawn = -1
            for s in range(card):
                if scores[s] > 0.0:
                    drawn = s
                    u -= scores[s]
                    if u < 0.0:
                        break
            codes[row, v] = drawn
            if weigh[k]:
                log_weight -= np.log(scores[drawn] / total)
            for f in range(factor_ptr[k], factor_ptr[k + 1]):
                at = factor_table[f]
                for e in range(factor_scope_ptr[f], factor_scope_ptr[f + 1]):
                    at += factor_strides[e] * codes[row, factor_scope[e]]
                log_weight += log_values[at]
            if log_weight == -np.inf:
                break
        log_weights[row] = log_weight


@kernel
def tally(codes, weights, columns, starts, sums, squares):
    """Add each row's weight, and its square, to the state that the row has in every column asked for."""
    for row in range(codes.shape[0]):
        w = weights[row]
        if w > 0.0:
            for j in range(columns.shape[0]):
                at = starts[j] + codes[row, columns[j]]
                sums[at] += w
                squares[at] += w * w
