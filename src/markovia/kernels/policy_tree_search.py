"""The best tree of depth 1 to 3 for scores of actions, by trying every split.

`codes` (columns, n) ranks each column's values, `orders` (columns, n) lists the rows of a node sorted by each column, and
`scores` (n, actions) is what each action gains in each row. A tree of depth D is `columns` (2^D - 1,) and `cuts` of its
inner nodes, in the order of a heap, and `actions` (2^D,) of its leaves; rows with codes up to the cut go left, and all do
where the column is -1. A split must gain more than `slack` over what is shallower or was tried before, so ties go to the
smaller tree, then to the first column and the lowest cut.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def _leaf(orders, scores, total):
    """Sum the scores of a node's rows into `total`; return the best action and the most that any tree could gain."""
    total[:] = 0.0
    bound = 0.0
    for row in orders[0]:
        largest = -np.inf
        for a in range(len(total)):
            total[a] += scores[row, a]
            largest = max(largest, scores[row, a])
        bound += largest
    return np.argmax(total), bound


@inner
def _part(orders, codes, column, cut, left):
    """Return the sorted rows of one side of a split."""
    size = 0
    for row in orders[0]:
        if (codes[column, row] <= cut) == left:
            size += 1
    found = np.empty((len(orders), size), dtype=orders.dtype)
    for j in range(len(orders)):
        at = 0
        for row in orders[j]:
            if (codes[column, row] <= cut) == left:
                found[j, at] = row
                at += 1
    return found


@inner
def _one(orders, codes, scores, slack, columns, cuts, actions):
    """Find the best tree of depth 1; return its value and a bound on that of any tree."""
    total = np.zeros(scores.shape[1])
    best_action, bound = _leaf(orders, scores, total)
    best = total[best_action]
    columns[0], cuts[0], actions[0], actions[1] = -1, 0, best_action, best_action
    below = np.empty(len(total))
    for j in range(len(orders)):
        below[:] = 0.0
        for i in range(orders.shape[1] - 1):
            row = orders[j, i]
            for a in range(len(total)):
                below[a] += scores[row, a]
            if codes[j, row] == codes[j, orders[j, i + 1]]:
                continue
            low, high = 0, 0
            for a in range(1, len(total)):
                if below[a] > below[low]:
                    low = a
                if total[a] - below[a] > total[high] - below[high]:
                    high = a
            value = below[low] + total[high] - below[high]
            if value > best + slack:
                best = value
                columns[0], cuts[0], actions[0], actions[1] = j, codes[j, row], low, high
    return best, bound


@inner
def _two(orders, codes, scores, slack, columns, cuts, actions):
    """Find the best tree of depth 2, as `_one` does; the children of a split are the best trees of their own rows."""
    best, bound = _one(orders, codes, scores, slack, columns[:1], cuts[:1], actions[:2])
    columns[1:], cuts[1:] = -1, 0
    actions[2], actions[3] = actions[1], actions[1]
    actions[1] = actions[0]
    kids = np.empty((2, 1), dtype=columns.dtype)
    places = np.empty((2, 1), dtype=cuts.dtype)
    leaves = np.empty((2, 2), dtype=actions.dtype)
    for j in range(len(orders)):
        for i in range(orders.shape[1] - 1):
            cut = codes[j, orders[j, i]]
            if cut == codes[j, orders[j, i + 1]] or best + slack >= bound:
                continue
            low, most = _one(
                _part(orders, codes, j, cut, True), codes, scores, slack, kids[0], places[0], leaves[0]
            )
            if low + bound - most <= best + slack:
                continue
            high, most = _one(
                _part(orders, codes, j, cut, False), codes, scores, slack, kids[1], places[1], leaves[1]
            )
            if low + high > best + slack:
                best = low + high
                columns[0], cuts[0] = j, cut
                for side in range(2):
                    columns[1 + side], cuts[1 + side] = kids[side, 0], places[side, 0]
                    actions[2 * side : 2 * side + 2] = leaves[side]
    return best, bound


@inner
def _three(orders, codes, scores, slack, columns, cuts, actions):
    """Find the best tree of depth 3, as `_two` does."""
    three, at, four = (
        np.empty((2, 3), dtype=columns.dtype),
        np.empty((2, 3), dtype=cuts.dtype),
        np.empty((2, 4), dtype=actions.dtype),
    )
    best, bound = _two(orders, codes, scores, slack, three[0], at[0], four[0])
    columns[:], cuts[:] = -1, 0
    columns[0], cuts[0] = three[0, 0], at[0, 0]
    for side in range(2):  # the tree of depth 2, its leaves one level lower
        columns[1 + side], cuts[1 + side] = three[0, 1 + side], at[0, 1 + side]
        for k in range(4):
            actions[4 * side + k] = four[0, 2 * side + k // 2]
    for j in range(len(orders)):
        for i in range(orders.shape[1] - 1):
            cut = codes[j, orders[j, i]]
            if cut == codes[j, orders[j, i + 1]] or best + slack >= bound:
                continue
            low, most = _two(
                _part(orders, codes, j, cut, True), codes, scores, slack, three[0], at[0], four[0]
            )
            if low + bound - most <= best + slack:
                continue
            high, most = _two(
                _part(orders, codes, j, cut, False), codes, scores, slack, three[1], at[1], four[1]
            )
            if low + high > best + slack:
                best = low + high
                columns[0], cuts[0] = j, cut
                for side in range(2):
                    columns[1 + side], cuts[1 + side] = three[side, 0], at[side, 0]
                    for k in range(2):
                        columns[3 + 2 * side + k], cuts[3 + 2 * side + k] = (
                            three[side, 1 + k],
                            at[side, 1 + k],
                        )
                    actions[4 * side : 4 * side + 4] = four[side]
    return best, bound


@kernel
def best_tree(depth, orders, codes, scores, slack, columns, cuts, actions):
    """Fill in the best tree of depth 1, 2 or 3; return its total score."""
    if depth == 1:
        return _one(orders, codes, scores, slack, columns, cuts, actions)[0]
    if depth == 2:
        return _two(orders, codes, scores, slack, columns, cuts, actions)[0]
    return _three(orders, codes, scores, slack, columns, cuts, actions)[0]
