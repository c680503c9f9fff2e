"""What a Cholesky factor will look like: elimination tree, supernodes and their rows, before any number is computed.

Method: Liu's elimination tree with path compression, a postorder, column counts by walking row subtrees, and supernodes
(columns of equal pattern, whose block is dense) that take small neighbours in where few zeros come along. A supernode with
its rows is a clique of the junction tree.
Cost: linear in the entries of the factor.
"""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def postordered(start, near, order):
    """Return the order rearranged so that every subtree of its elimination tree is contiguous, and that tree."""
    n = len(order)
    place = np.empty(n, np.int64)
    for k in range(n):
        place[order[k]] = k
    parent = np.full(n, -1, np.int64)
    top = np.full(n, -1, np.int64)
    for k in range(n):
        v = order[k]
        for i in range(start[v], start[v + 1]):
            j = place[near[i]]
            while j != -1 and j < k:
                above = top[j]
                top[j] = k
                if above == -1:
                    parent[j] = k
                j = above
    child = np.full(n, -1, np.int64)
    sibling = np.full(n, -1, np.int64)
    for k in range(n - 1, -1, -1):
        if parent[k] >= 0:
            sibling[k] = child[parent[k]]
            child[parent[k]] = k
    after = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    done = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        stack[0] = root
        depth = 1
        while depth > 0:
            k = stack[depth - 1]
            if child[k] >= 0:
                stack[depth] = child[k]
                depth += 1
                child[k] = sibling[child[k]]
            else:
                depth -= 1
                after[done] = k
                done += 1
    for k in range(n):
        stack[after[k]] = k
    moved = np.empty(n, np.int64)
    tree = np.empty(n, np.int64)
    for k in range(n):
        moved[k] = order[after[k]]
        tree[k] = stack[parent[after[k]]] if parent[after[k]] >= 0 else -1
    return moved, tree


@kernel
def supernodes(start, near, order, parent):
    """Return `(first column of each supernode, where its rows begin, rows, parent of each, size of the stack)`.

    `order` is postordered. The rows of a supernode begin with its own columns; the others come in no order.
    """
    n = len(order)
    place = np.empty(n, np.int64)
    for k in range(n):
        place[order[k]] = k
    # entries of each column of the factor: every row walks up the tree until it meets its own mark
    count = np.ones(n, np.int64)
    mark = np.full(n, -1, np.int64)
    for k in range(n):
        mark[k] = k
        v = order[k]
        for i in range(start[v], start[v + 1]):
            j = place[near[i]]
            while j < k and mark[j] != k:
                count[j] += 1
                mark[j] = k
                j = parent[j]
    # columns with the same rows below make a supernode
    first = np.empty(n + 1, np.int64)
    height = np.empty(n, np.int64)  # rows of a supernode
    zeros = np.empty(n, np.int64)
    made = 0
    for k in range(n):
        if k > 0 and parent[k - 1] == k and count[k] == count[k - 1] - 1:
            continue
        first[made] = k
        height[made] = count[k]
        zeros[made] = 0
        made += 1
    first[made] = n
    # a supernode takes in the one before it if that is its child and few zeros come along
    kept = 0
    for s in range(made):
        low, end, tall, nil = first[s], first[s + 1], height[s], zeros[s]
        while kept > 0 and parent[low - 1] >= low and parent[low - 1] < end:
            width = low - first[kept - 1]
            more = nil + zeros[kept - 1] + width * (width + tall - height[kept - 1])
            wide = end - first[kept - 1]
            entries = wide * (tall + width) - wide * (wide - 1) // 2
            share = 0.5 if wide <= 8 else 0.15 if wide <= 32 else 0.05
            if more > share * entries:
                break
            kept -= 1
            low, nil, tall = first[kept], more, tall + width
        first[kept] = low
        height[kept] = tall
        zeros[kept] = nil
        kept += 1
    first[kept] = n
    # rows of each: its columns, their neighbours, and what its children pass on; the stack holds the squares they pass
    owner = np.empty(n, np.int64)
    rows_at = np.zeros(kept + 1, np.int64)
    for s in range(kept):
        rows_at[s + 1] = rows_at[s] + height[s]
        for k in range(first[s], first[s + 1]):
            owner[k] = s
    rows = np.empty(rows_at[kept], np.int64)
    above = np.full(kept, -1, np.int64)
    child = np.full(kept, -1, np.int64)
    sibling = np.full(kept, -1, np.int64)
    mark[:] = -1
    stack = 0
    deepest = 0
    for s in range(kept):
        at = rows_at[s]
        low, high = first[s], first[s + 1]
        for k in range(low, high):
            rows[at] = k
            mark[k] = s
            at += 1
        for k in range(low, high):
            v = order[k]
            for i in range(start[v], start[v + 1]):
                j = place[near[i]]
                if j > k and mark[j] != s:
                    mark[j] = s
                    rows[at] = j
                    at += 1
        c = child[s]
        while c >= 0:
            for i in range(rows_at[c] + first[c + 1] - first[c], rows_at[c + 1]):
                if mark[rows[i]] != s:
                    mark[rows[i]] = s
                    rows[at] = rows[i]
                    at += 1
            below = rows_at[c + 1] - rows_at[c] - first[c + 1] + first[c]
            stack -= below * below
            c = sibling[c]
        if parent[high - 1] >= 0:
            above[s] = owner[parent[high - 1]]
            sibling[s] = child[above[s]]
            child[above[s]] = s
        left = at - rows_at[s] - (high - low)
        stack += left * left
        deepest = max(deepest, stack)
    return first[: kept + 1].copy(), rows_at, rows, above, deepest
