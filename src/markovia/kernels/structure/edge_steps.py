"""The steps of a search over directed acyclic graphs: random walks through equivalent graphs, paths, and the best move.

Sets of nodes are bits of 64-bit words, one row of words a node: `up` holds each node's parents, `above` its ancestors and
itself. Cost: a walk looks at each edge it tries once; the best move is one pass over the pairs of nodes.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from markovia.kernels.kernel import kernel

ONE = np.uint64(1)


@intrinsic
def _ones(context, word):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@kernel
def walk(up, tails, heads, tries, touched):
    """Reverse the edges `tries` names in turn where they are covered; return how many were reversed.

    `tails` and `heads` are the edges that may be reversed, and change with them; `touched` gets a mark for each end.
    """
    words = up.shape[1]
    done = 0
    for t in range(len(tries)):
        k = tries[t]
        tail, head = tails[k], heads[k]
        at, bit = tail >> 6, ONE << np.uint64(tail & 63)
        covered = True
        for w in range(words):
            own = up[tail, w]
            if w == at:
                own |= bit
            if up[head, w] != own:
                covered = False
                break
        if covered:
            up[head, at] ^= bit
            up[tail, head >> 6] |= ONE << np.uint64(head & 63)
            tails[k], heads[k] = head, tail
            touched[tail] = touched[head] = True
            done += 1
    return done


@kernel
def find_above(up, above):
    """Fill in the ancestors of each node, itself included."""
    n, words = up.shape
    done = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int64)
    for start in range(n):
        if done[start]:
            continue
        stack[0] = start
        depth = 1
        while depth:
            node = stack[depth - 1]
            ready = True
            for w in range(words):
                rest = up[node, w]
                while rest:
                    low = rest & (~rest + ONE)
                    parent = (w << 6) + np.int64(_ones(low - ONE))
                    if not done[parent]:
                        stack[depth] = parent
                        depth += 1
                        ready = False
                        break
                    rest ^= low
                if not ready:
                    break
            if ready:
                for w in range(words):
                    above[node, w] = np.uint64(0)
                above[node, node >> 6] = ONE << np.uint64(node & 63)
                for w in range(words):
                    rest = up[node, w]
                    while rest:
                        low = rest & (~rest + ONE)
                        parent = (w << 6) + np.int64(_ones(low - ONE))
                        for v in range(words):
                            above[node, v] |= above[parent, v]
                        rest ^= low
                done[node] = True
                depth -= 1


@kernel
def best_move(edges, above, add, remove, rounding, turns):
    """Return gain, kind (0 add, 1 remove, 2 reverse, -1 none), tail and head of the best legal move.

    `add[j, i]` and `remove[j, i]` are the gains of adding and removing i -> j. Of moves that are equal but for rounding the
    first counts, additions before removals before reversals, each by tail and then head.
    """
    n = len(edges)
    top = np.full(3, -np.inf)
    for i in range(n):
        for j in range(n):
            if not (above[i, j >> 6] >> np.uint64(j & 63)) & ONE:
                top[0] = max(top[0], add[j, i])
            if edges[i, j]:
                turns[i, j] = -np.inf
                top[1] = max(top[1], remove[j, i])
                ways = 0
                for c in range(n):
                    if edges[i, c] and (above[j, c >> 6] >> np.uint64(c & 63)) & ONE:
                        ways += 1
                if ways == 1:
                    turns[i, j] = remove[j, i] + add[i, j]
                    top[2] = max(top[2], turns[i, j])
    gain, what, tail, head = -np.inf, -1, -1, -1
    for kind in range(3):
        if top[kind] == -np.inf or (what >= 0 and not top[kind] > gain + rounding):
            continue
        least = top[kind] - rounding
        what = kind
        found = False
        for i in range(n):
            for j in range(n):
                value = -np.inf
                if kind == 0:
                    if not (above[i, j >> 6] >> np.uint64(j & 63)) & ONE:
                        value = add[j, i]
                elif edges[i, j]:
                    value = remove[j, i] if kind == 1 else turns[i, j]
                if value >= least:
                    gain, tail, head = value, i, j
                    found = True
                    break
            if found:
                break
    return gain, what, tail, head


def load():
    """Compile the code, or load it from disk."""
    up, above = np.array([[0], [1]], dtype=np.uint64), np.zeros((2, 1), dtype=np.uint64)
    edges, add = np.array([[False, True], [False, False]]), np.zeros((2, 2))
    walk(up, np.array([0]), np.array([1]), np.array([0]), np.zeros(2, dtype=np.bool_))
    find_above(up, above)
    return best_move(edges, above, add, add, 0.0, add.copy())
