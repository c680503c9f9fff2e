"""The steps of a search over directed acyclic graphs: random walks through equivalent graphs, paths, and the best move.

Ancestors are found only for nodes that are asked about. Cost: a walk looks at each edge it tries once; the best move is one
pass over nodes and edges.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.structure.structure_records import DagParents, EdgeGains

ONE = np.uint64(1)


@kernel(_nrt=False)
def walk(up, n_up, edges, tries, may, required, touched):
    """Reverse the edges `tries` names in turn where they are covered; return how many were reversed.

    `up` and `n_up` as in `DagParents`; `edges` are the numbers i n + j of the edges i -> j, and change with them; the ends
    of those that do are marked in `touched`. An edge i -> j is reversed where `may[i, j]` (j -> i may be there) and not
    `required[i, j]`.
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
        touched[tail] = touched[head] = True
        done += 1
    return done


@inner(_nrt=False)
def _is_above(node, below, graph):
    """Say whether a node is `below` or an ancestor of it; ancestors are found where they are not known yet.

    What is asked for is few of the nodes, so a step never has to know all rows.
    """
    up, n_up, above, traced, stack = graph
    if traced[below] < n_up[below]:
        stack[0] = below
        depth = 1
        while depth:
            v = stack[depth - 1]
            if traced[v] < 0:
                traced[v] = 0
                for w in range(above.shape[1]):
                    above[v, w] = np.uint64(0)
                above[v, v >> 6] = ONE << np.uint64(v & 63)
            k = traced[v]
            if k == n_up[v]:
                depth -= 1
                continue
            parent = up[v, k]
            if traced[parent] < n_up[parent]:
                stack[depth] = parent
                depth += 1
                continue
            for w in range(above.shape[1]):
                above[v, w] |= above[parent, w]
            traced[v] = k + 1
    return (above[below, node >> 6] >> np.uint64(node & 63)) & ONE != 0


@kernel(_nrt=False)
def find_above(graph):
    """Fill in the ancestors of each node of `DagParents`."""
    for v in range(len(graph.n_up)):
        _is_above(v, v, graph)
    return 0


@kernel(_nrt=False)
def best_move(graph, moves, rounding):
    """Return gain, kind (0 add, 1 remove, 2 reverse, -1 none), tail and head of the best legal move.

    Takes `DagParents` and `EdgeGains`. Nodes that cannot win by their `tops` are passed by without a look at their lists. Of
    moves that are equal but for rounding the first counts, additions before removals before reversals, each by tail and then
    head.
    """
    tops, family, ends, removes, tails, gains = moves
    up, n_up = graph.up, graph.n_up
    n = len(n_up)
    gain, what, tail, head = -np.inf, -1, -1, -1
    for kind in range(3):
        top = -np.inf
        # what a move has to gain to count beside those of the kinds before
        floor = gain + rounding if what >= 0 else -np.inf
        # a first pass for the largest gain, a second for the first move that has it but for rounding
        for turn in range(2):
            least = top - rounding
            if turn == 1:
                if not top > floor:
                    break
                what, tail, head = kind, n, n
            for j in range(n):
                bar = max(top, floor) if turn == 0 else least
                if kind < 2 and tops[kind, j] < bar:
                    continue
                own = family[j]
                if kind == 0:
                    for k in range(ends[0, own], ends[1, own]):
                        if gains[k] < least or (turn == 0 and gains[k] <= top):
                            break
                        i = np.int64(tails[k])
                        if not _is_above(j, i, graph):
                            if turn == 0:
                                top = gains[k]
                                break
                            if i < tail or (i == tail and j < head):
                                gain, tail, head = gains[k], i, j
                    continue
                for p in range(n_up[j]):
                    i = np.int64(up[j, p])
                    if kind == 2 and tops[1, j] + tops[0, i] < bar:
                        continue
                    value = removes[own, p]
                    if kind == 2:
                        # most reversals are too poor even with the best that the tail can gain: these end here
                        if value + tops[0, i] < bar:
                            continue
                        more = -np.inf
                        for k in range(ends[0, family[i]], ends[1, family[i]]):
                            if tails[k] == j:
                                more = gains[k]
                                break
                        value += more
                    if not (value > max(top, floor) if turn == 0 else value >= least):
                        continue
                    if kind == 2:
                        # legal where the edge is the only directed path from its tail to its head
                        lone = True
                        for q in range(n_up[j]):
                            if q != p and _is_above(i, np.int64(up[j, q]), graph):
                                lone = False
                        if not lone:
                            continue
                    if turn == 0:
                        top = value
                    elif i < tail or (i == tail and j < head):
                        gain, tail, head = value, i, j
    return gain, what, tail, head


def load():
    """Compile the code, or load it from disk."""
    up, n_up = np.zeros((2, 4), dtype=np.int32), np.array([0, 1], dtype=np.int32)
    above, room = np.zeros((2, 1), dtype=np.uint64), np.zeros(2, dtype=np.int64)
    flags, ends = np.zeros((2, 2), dtype=np.bool_), np.zeros((2, 2), dtype=np.int64)
    walk(up, n_up, np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64), flags, flags, flags[0])
    graph, values = DagParents(up, n_up, above, room - 1, room), ends * 0.0
    find_above(graph)
    moves = EdgeGains(values, room, ends, values, np.zeros(1, dtype=np.int32), np.zeros(1))
    return best_move(graph, moves, 0.0)
