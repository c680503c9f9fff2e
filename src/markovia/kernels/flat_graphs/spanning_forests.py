"""Spanning forests of factor graphs: greedy by priority, uniform by loop-erased random walks, and their orientation."""

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import short_uniform


@kernel
def greedy_forest(order, n, scope_ptr, scope, kept):
    """Mark the factors that close no loop when they are added in order (Kruskal's algorithm)."""
    root = np.arange(n)
    for f in range(len(kept)):
        kept[f] = 0
    for f in order:
        s0, s1 = scope_ptr[f], scope_ptr[f + 1]
        fits = True
        for e in range(s0, s1):
            i = scope[e]
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            for d in range(s0, e):
                j = scope[d]
                while root[j] != j:
                    j = root[j]
                if i == j:
                    fits = False
                    break
            if not fits:
                break
        if fits:
            kept[f] = 1
            i = scope[s0]
            while root[i] != i:
                i = root[i]
            for e in range(s0 + 1, s1):
                j = scope[e]
                while root[j] != j:
                    j = root[j]
                root[j] = i


@kernel
def random_walk_forest(n, scope_ptr, scope, edge_ptr, edges, edge_factor, state, kept):
    """Mark a uniformly random spanning forest of a graph of pairs (Wilson's algorithm)."""
    for f in range(len(kept)):
        kept[f] = 0
    inside = np.zeros(n, np.int8)
    seen = np.zeros(n, np.int8)
    stack = np.empty(n, np.int64)
    step = np.empty(n, np.int64)
    for source in range(n):
        if seen[source] == 1:
            continue
        inside[source] = 1  # one root for each part
        seen[source] = 1
        stack[0] = source
        last = 1
        count = 0
        while count < last:
            i = stack[count]
            count += 1
            for e in range(edge_ptr[i], edge_ptr[i + 1]):
                f = edge_factor[edges[e]]
                j = scope[scope_ptr[f]] + scope[scope_ptr[f] + 1] - i
                if seen[j] == 0:
                    seen[j] = 1
                    stack[last] = j
                    last += 1
        for k in range(count):
            i = stack[k]
            while inside[i] == 0:
                degree = edge_ptr[i + 1] - edge_ptr[i]
                f = edge_factor[edges[edge_ptr[i] + min(int(short_uniform(state) * degree), degree - 1)]]
                step[i] = f
                i = scope[scope_ptr[f]] + scope[scope_ptr[f] + 1] - i
            i = stack[k]
            while inside[i] == 0:
                inside[i] = 1
                kept[step[i]] = 1
                f = step[i]
                i = scope[scope_ptr[f]] + scope[scope_ptr[f] + 1] - i


@kernel
def orient(kept, n, scope_ptr, scope, edge_ptr, edges, edge_factor, factors, parents, roots):
    """Order a forest from the leaves to the roots; return how many factors and roots it has."""
    seen = np.zeros(n, np.int8)
    used = np.zeros(len(kept), np.int8)
    queue = np.empty(n, np.int64)
    n_factors, n_roots = 0, 0
    for source in range(n):
        if seen[source] == 1:
            continue
        seen[source] = 1
        roots[n_roots] = source
        n_roots += 1
        queue[0] = source
        head, tail = 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(edge_ptr[i], edge_ptr[i + 1]):
                e = edges[k]
                f = edge_factor[e]
                if kept[f] == 0 or used[f] == 1:
                    continue
                used[f] = 1
                factors[n_factors] = f
                parents[n_factors] = e
                n_factors += 1
                for d in range(scope_ptr[f], scope_ptr[f + 1]):
                    j = scope[d]
                    if seen[j] == 0:
                        seen[j] = 1
                        queue[tail] = j
                        tail += 1
    for k in range(n_factors // 2):
        m = n_factors - 1 - k
        factors[k], factors[m] = factors[m], factors[k]
        parents[k], parents[m] = parents[m], parents[k]
    return n_factors, n_roots
