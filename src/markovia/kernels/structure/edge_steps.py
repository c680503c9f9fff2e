"""The steps of a search over directed acyclic graphs: random walks through equivalent graphs, paths, and the best move.

Parents are rows of numbers: node v has the parents `up[v, :n_up[v]]`, in increasing order. Ancestors are bits of 64-bit
words, one row of words a node. Cost: a walk looks at each edge it tries once; the best move is one pass over nodes and
edges.
"""

import numpy as np

from markovia.kernels.kernel import kernel

ONE = np.uint64(1)


@kernel(_nrt=False)
def walk(up, n_up, edges, tries, may, required):
    """Reverse the edges `tries` names in turn where they are covered; return how many were reversed.

    `edges` are the numbers i n + j of the edges i -> j, and change with them. An edge i -> j is reversed where `may[i, j]`
    (j -> i may be there) and not `required[i, j]`.
    """
    n = len(n_up)
    done = 0
    for t in range(len(tries)):
        k = tries[t]
        tail, head = edges[k] // n, edges[k] % n
        size = n_up[tail]
        if n_up[head] != size + 1 or not may[tail, head] or required[tail, head]:
            continue
        # the parents of the head without the tail are those of the tail
        skip = 0
        covered = True
        for i in range(size):
            if up[head, i + skip] == tail:
                skip = 1
            if up[head, i + skip] != up[tail, i]:
                covered = False
                break
        if not covered:
            continue
        at = size
        for i in range(size):
            up[head, i] = up[tail, i]
        while at > 0 and up[tail, at - 1] > head:
            up[tail, at] = up[tail, at - 1]
            at -= 1
        up[tail, at] = head
        n_up[head] = size
        n_up[tail] = size + 1
        edges[k] = head * n + tail
        done += 1
    return done


@kernel(_nrt=False)
def find_above(up, n_up, above, stack, next_up):
    """Fill in the ancestors of each node, itself included; `stack` and `next_up` (nodes) are room."""
    n, words = above.shape
    for v in range(n):
        next_up[v] = -1
    for start in range(n):
        if next_up[start] >= 0:
            continue
        stack[0] = start
        depth = 1
        while depth:
            node = stack[depth - 1]
            if next_up[node] < 0:
                next_up[node] = 0
                for w in range(words):
                    above[node, w] = np.uint64(0)
                above[node, node >> 6] = ONE << np.uint64(node & 63)
            k = next_up[node]
            if k == n_up[node]:
                depth -= 1
                continue
            parent = up[node, k]
            if next_up[parent] < 0:
                stack[depth] = parent
                depth += 1
                continue
            for w in range(words):
                above[node, w] |= above[parent, w]
            next_up[node] = k + 1
    return 0


@kernel(_nrt=False)
def best_move(up, n_up, removes, above, start, end, tails, gains, rounding):
    """Return gain, kind (0 add, 1 remove, 2 reverse, -1 none), tail and head of the best legal move.

    The further parents of j that gain are `tails[start[j]:end[j]]`, with what they gain in `gains`, best first; `removes[j]`
    is what removing each of its parents gains. Of moves that are equal but for rounding the first counts, additions before
    removals before reversals, each by tail and then head.
    """
    n = len(n_up)
    gain, what, tail, head = -np.inf, -1, -1, -1
    for kind in range(3):
        top = -np.inf
        # a first pass for the largest gain, a second for the first move that has it but for rounding
        for turn in range(2):
            least = top - rounding
            if turn == 1:
                if top == -np.inf or (what >= 0 and not top > gain + rounding):
                    break
                what, tail, head = kind, n, n
            for j in range(n):
                if kind == 0:
                    for k in range(start[j], end[j]):
                        if gains[k] < least or (turn == 0 and gains[k] <= top):
                            break
                        i = np.int64(tails[k])
                        if not (above[i, j >> 6] >> np.uint64(j & 63)) & ONE:
                            if turn == 0:
                                top = gains[k]
                                break
                            if i < tail or (i == tail and j < head):
                                gain, tail, head = gains[k], i, j
                    continue
                for p in range(n_up[j]):
                    value = removes[j, p]
                    i = np.int64(up[j, p])
                    if kind == 2:
                        # legal where the edge is the only directed path from its tail to its head
                        for q in range(n_up[j]):
                            if q != p and (above[up[j, q], i >> 6] >> np.uint64(i & 63)) & ONE:
                                value = -np.inf
                        more = -np.inf
                        if value > -np.inf:
                            for k in range(start[i], end[i]):
                                if tails[k] == j:
                                    more = gains[k]
                                    break
                        value += more
                    if turn == 0:
                        top = max(top, value)
                    elif value >= least and (i < tail or (i == tail and j < head)):
                        gain, tail, head = value, i, j
    return gain, what, tail, head


def load():
    """Compile the code, or load it from disk."""
    up, n_up = np.zeros((2, 4), dtype=np.int32), np.array([0, 1], dtype=np.int32)
    above, room = np.zeros((2, 1), dtype=np.uint64), np.zeros(2, dtype=np.int64)
    flags = np.zeros((2, 2), dtype=np.bool_)
    walk(up, n_up, np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64), flags, flags)
    find_above(up, n_up, above, room, room.copy())
    return best_move(up, n_up, np.zeros((2, 4)), above, room, room, np.zeros(1, np.int32), np.zeros(1), 0.0)
