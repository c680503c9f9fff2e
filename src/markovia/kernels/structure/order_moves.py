"""Moves of single variables to their best place in an order, along grow-shrink trees (learning/structure/grow_shrink.py)."""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner(_nrt=False)
def _climb(node, limit, x, tree, room, n_wanted):
    """Follow the best branches to variables before `limit`.

    Returns the node at the end, or -1 where a branch has no node yet (it is then noted in `wanted`); how many are wanted;
    whether the climb passed a branch of x; and the first limit at which it might go elsewhere.
    """
    place, branch, follow = room.place, tree.branch, tree.follow
    passed = False
    further = place.shape[0] + 2
    while True:
        at = tree.first[node]
        end = at + tree.number[node]
        while at < end:
            variable = branch[at]
            where = place[variable]
            if where < limit:
                break
            if variable == x:
                passed = True
            elif where < further:
                further = where
            at += 1
        if at == end:
            return node, n_wanted, passed, further + 1
        node = follow[at]
        if node == -1:
            follow[at] = -2
            room.wanted[n_wanted] = at
            return -1, n_wanted + 1, passed, limit + 1
        if node == -2:
            return -1, n_wanted, passed, limit + 1


@kernel(_nrt=False)
def move_scores(x, tree, room, n_wanted, low, high):
    """Fill `totals[j]` of the room with the score of the order that has x before `others[j]`, for low <= j <= high.

    Takes `GrowShrinkBranches` and `MoveRoom`. Returns the number of branches that have to be grown first, added to the
    `n_wanted` before. Totals hold only if there are none.
    """
    place, totals = room.place, room.totals
    n = room.others.shape[0]
    # what others gain with x before them: only where a climb without x passes a branch of x
    gained = 0.0
    totals[high] = 0.0
    for k in range(high - 1, low - 1, -1):
        place[x] = n + 1
        y = room.others[k]
        node, n_wanted, passed, _ = _climb(y, k, x, tree, room, n_wanted)
        if passed:
            place[x] = -1
            other, n_wanted, _, _ = _climb(y, k, x, tree, room, n_wanted)
            if node >= 0 and other >= 0:
                gained += tree.score[other] - tree.score[node]
        totals[k] = gained
    # x's own score: the same climb serves all places up to `further`
    place[x] = n + 1
    j = low
    while j <= high:
        node, n_wanted, _, further = _climb(x, j, x, tree, room, n_wanted)
        while j <= high and j < further:
            if node >= 0:
                totals[j] += tree.score[node]
            j += 1
    return n_wanted


@kernel(_nrt=False)
def next_move(queue, begin, order, tree, room, enough, least):
    """Look at the variables of a queue in turn for one that gains by a move, and make it.

    Returns where in the queue it ended; 1 if that variable was moved (`order` is then new), 2 if branches have to be grown
    before it can be looked at, 0 at the end of the queue; and how many branches are wanted. When some are, the next
    variables are looked at too, for what they want, until there are enough to be grown together.
    """
    others, place, totals = room.others, room.place, room.totals
    n = order.shape[0]
    # typed, because the literal 0 would have the code below compiled a second time
    none = np.int64(0)
    n_wanted = none
    stopped = -1
    for q in range(begin, queue.shape[0]):
        x = queue[q]
        k = 0
        here = 0
        for i in range(n):
            if order[i] == x:
                here = i
            else:
                others[k] = order[i]
                place[order[i]] = k
                k += 1
        n_wanted = move_scores(x, tree, room, n_wanted, none, n - 1)
        if n_wanted:
            if stopped < 0:
                stopped = q
            if n_wanted >= enough:
                break
            continue
        top = totals[here]
        for j in range(n):
            if totals[j] > top:
                top = totals[j]
        if top > totals[here] + least:
            best = 0
            while totals[best] < top - least:
                best += 1
            for i in range(best):
                order[i] = others[i]
            order[best] = x
            for i in range(best, n - 1):
                order[i + 1] = others[i]
            return q, 1, 0
    if n_wanted:
        return stopped, 2, n_wanted
    return queue.shape[0], 0, 0
