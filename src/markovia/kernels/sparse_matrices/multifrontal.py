"""Sparse Cholesky factors by dense blocks, solving with them, and the entries of the inverse that belong to their pattern.

Method: multifrontal factorisation (Duff, Reid 1983): going up the tree, a supernode adds what its children left to its own
entries, factors its columns and leaves the rest to its parent. Going down the same tree, Takahashi's recursion (1973) gives
the inverse on each supernode's rows, with no entry outside them: for a Gaussian with that precision these are the
covariances inside the cliques of a junction tree, and its diagonal holds all marginal variances.
Cost: that of the factor, three times for the inverse; large blocks go through BLAS.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel

SMALL = 4096
"""Below so many products, loops are faster than a call of BLAS."""
BLOCK = 48
"""Columns that are factored before the others are brought up to date."""


@kernel
def factorise(start, near, entries, order, tree, panels_at, panels):
    """Fill `panels` with the factor of a symmetric matrix, column by column in each supernode.

    Returns half the log determinant and -1; or the position of the first pivot that is not positive. The panel of a
    supernode begins at `panels_at` and has as many columns as it owns, each as long as its list of rows. `tree` is what
    `elimination_tree.supernodes` returns.
    """
    first, rows_at, rows, above, stack_size = tree
    n = len(order)
    place = np.empty(n, np.int64)
    for k in range(n):
        place[order[k]] = k
    local = np.empty(n, np.int64)
    stack = np.empty(stack_size)
    top = 0
    tallest = 0
    for s in range(len(above)):
        tallest = max(tallest, rows_at[s + 1] - rows_at[s])
    work = np.empty(tallest * tallest)
    child = np.full(len(above), -1, np.int64)
    sibling = np.full(len(above), -1, np.int64)
    half_log = 0.0
    for s in range(len(above)):
        low, own = first[s], first[s + 1] - first[s]
        begin = rows_at[s]
        tall = rows_at[s + 1] - begin
        left = tall - own
        front = work[: tall * tall].reshape((tall, tall))
        for c in range(tall):
            local[rows[begin + c]] = c
            for r in range(c, tall):
                front[c, r] = 0.0
        for c in range(own):
            v = order[low + c]
            for i in range(start[v], start[v + 1]):
                j = place[near[i]]
                if j >= low + c:
                    front[c, local[j]] += entries[i]
        kid = child[s]
        while kid >= 0:
            inside = rows_at[kid] + first[kid + 1] - first[kid]
            size = rows_at[kid + 1] - inside
            top -= size * size
            for c in range(size):
                at = local[rows[inside + c]]
                for r in range(c, size):
                    to = local[rows[inside + r]]
                    if to >= at:
                        front[at, to] += stack[top + c * size + r]
                    else:
                        front[to, at] += stack[top + c * size + r]
            kid = sibling[kid]
        for b in range(0, own, BLOCK):
            end = min(own, b + BLOCK)
            for j in range(b, end):
                pivot = front[j, j]
                if not pivot > 0.0:
                    return 0.0, low + j
                root = np.sqrt(pivot)
                half_log += np.log(root)
                front[j, j] = root
                scale = 1.0 / root
                for r in range(j + 1, tall):
                    front[j, r] *= scale
                for c in range(j + 1, end):
                    times = front[j, c]
                    for r in range(c, tall):
                        front[c, r] -= times * front[j, r]
            if end < tall:
                _downdate(front, b, end, tall)
        at = panels_at[s]
        for c in range(own):
            for r in range(c, tall):
                panels[at + c * tall + r] = front[c, r]
        for c in range(left):
            for r in range(c, left):
                stack[top + c * left + r] = front[own + c, own + r]
        top += left * left
        if above[s] >= 0:
            sibling[s] = child[above[s]]
            child[above[s]] = s
    return half_log, -1


@inner
def _downdate(front, b, end, tall):
    """Subtract what columns b ... end of the factor say about the columns after them."""
    if (end - b) * (tall - end) * (tall - end) < SMALL:
        for j in range(b, end):
            for c in range(end, tall):
                times = front[j, c]
                for r in range(c, tall):
                    front[c, r] -= times * front[j, r]
    else:
        strip = front[b:end, end:tall].copy()
        product = np.dot(strip.T, strip)
        for c in range(tall - end):
            for r in range(c, tall - end):
                front[end + c, end + r] -= product[c, r]


@kernel
def solve(order, first, rows_at, rows, panels_at, panels, sides, forward, backward):
    """Solve with the factor in place: `L x = b` (forward), `L' x = b` (backward) or both; one row of `sides` a right side.

    Right sides are in the matrix's own order; what lies between the two steps is in the order of elimination.
    """
    n = len(order)
    moved = np.empty(n)
    for k in range(len(sides)):
        side = sides[k]
        for i in range(n):
            moved[i] = side[order[i]] if forward else side[i]
        if forward:
            for s in range(len(first) - 1):
                own, begin, at = first[s + 1] - first[s], rows_at[s], panels_at[s]
                tall = rows_at[s + 1] - begin
                for c in range(own):
                    x = moved[first[s] + c] / panels[at + c * tall + c]
                    moved[first[s] + c] = x
                    for r in range(c + 1, tall):
                        moved[rows[begin + r]] -= x * panels[at + c * tall + r]
        if backward:
            for s in range(len(first) - 2, -1, -1):
                own, begin, at = first[s + 1] - first[s], rows_at[s], panels_at[s]
                tall = rows_at[s + 1] - begin
                for c in range(own - 1, -1, -1):
                    x = moved[first[s] + c]
                    for r in range(c + 1, tall):
                        x -= panels[at + c * tall + r] * moved[rows[begin + r]]
                    moved[first[s] + c] = x / panels[at + c * tall + c]
        for i in range(n):
            if backward:
                side[order[i]] = moved[i]
            else:
                side[i] = moved[i]


@kernel
def inverse_diagonal(order, first, rows_at, rows, above, panels_at, panels):
    """Return the diagonal of the inverse of the factored matrix, in the matrix's own order."""
    n = len(order)
    count = len(above)
    found = np.empty(n)
    local = np.empty(n, np.int64)
    # what an ancestor knows is kept on a stack until its last descendant has read it
    depth = np.zeros(count, np.int64)
    deepest = 0
    children = np.zeros(count, np.int64)
    for s in range(count - 1, -1, -1):
        tall = rows_at[s + 1] - rows_at[s]
        depth[s] = (depth[above[s]] if above[s] >= 0 else 0) + tall * tall
        deepest = max(deepest, depth[s])
        if above[s] >= 0:
            children[above[s]] += 1
    stack = np.empty(deepest)
    for s in range(count - 1, -1, -1):
        own, begin, at = first[s + 1] - first[s], rows_at[s], panels_at[s]
        tall = rows_at[s + 1] - begin
        left = tall - own
        end = depth[s]
        block = stack[end - tall * tall : end].reshape((tall, tall))
        if left > 0:
            p = above[s]
            high = rows_at[p + 1] - rows_at[p]
            known = stack[depth[p] - high * high : depth[p]].reshape((high, high))
            for r in range(high):
                local[rows[rows_at[p] + r]] = r
            for c in range(left):
                i = local[rows[begin + own + c]]
                for r in range(left):
                    block[own + c, own + r] = known[i, local[rows[begin + own + r]]]
        if own * left * left < SMALL:
            # column by column from the last: entries to the right of a column are known
            for c in range(own - 1, -1, -1):
                column = at + c * tall
                root = 1.0 / panels[column + c]
                for r in range(c + 1, tall):
                    block[c, r] = 0.0
                for k in range(c + 1, tall):
                    times = panels[column + k] * root
                    for r in range(c + 1, tall):
                        block[c, r] -= times * block[k, r]
                x = root
                for r in range(c + 1, tall):
                    x -= panels[column + r] * block[c, r]
                    block[r, c] = block[c, r]
                block[c, c] = x * root
        else:
            # gain = L11'^-1 L21'; row c of it, from the last one, and the inverse of L11 L11' with it
            gain = np.empty((own, left))
            triangle = np.zeros((own, own))
            for c in range(own - 1, -1, -1):
                column = at + c * tall
                root = 1.0 / panels[column + c]
                for r in range(left):
                    gain[c, r] = panels[column + own + r]
                triangle[c, c] = 1.0
                for k in range(c + 1, own):
                    times = panels[column + k]
                    for r in range(left):
                        gain[c, r] -= times * gain[k, r]
                    for r in range(k, own):
                        triangle[c, r] -= times * triangle[k, r]
                for r in range(left):
                    gain[c, r] *= root
                for r in range(c, own):
                    triangle[c, r] *= root
            corner = block[own:, own:].copy()
            across = np.dot(gain, corner)
            inside = np.dot(triangle, triangle.T) + np.dot(across, gain.T)
            for c in range(own):
                for r in range(own):
                    block[c, r] = inside[c, r]
                for r in range(left):
                    block[c, own + r] = -across[c, r]
                    block[own + r, c] = -across[c, r]
        for c in range(own):
            found[order[first[s] + c]] = block[c, c]
    return found
