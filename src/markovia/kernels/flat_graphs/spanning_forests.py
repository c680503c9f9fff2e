"""Spanning forests of factor graphs: greedy by priority, uniform by loop-erased random walks, and their orientation."""

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointer, pointers
from markovia.kernels.random_numbers import below


@kernel(bare=True)
def greedy_forest(graph, order, root, kept):
    """Mark the factors that close no loop when they are added in order (Kruskal's algorithm).

    `root` is the number of each variable, `kept` zero.
    """
    n = len(order)
    g, order, root, kept = pointers(graph), pointer(order), pointer(root), pointer(kept)
    for k in range(n):
        f = order[k]
        s0, s1 = g.scope_ptr[f], g.scope_ptr[f + 1]
        fits = True
        for e in range(s0, s1):
            i = g.scope[e]
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            for d in range(s0, e):
                j = g.scope[d]
                while root[j] != j:
                    j = root[j]
                if i == j:
                    fits = False
                    break
            if not fits:
                break
        if fits:
            kept[f] = 1
            i = g.scope[s0]
            while root[i] != i:
                i = root[i]
            for e in range(s0 + 1, s1):
                j = g.scope[e]
                while root[j] != j:
                    j = root[j]
                root[j] = i


@kernel(bare=True)
def random_walk_forest(graph, rng, inside, seen, stack, step, kept):
    """Mark a uniformly random spanning forest of a graph of pairs (Wilson's algorithm).

    `inside`, `seen` and `kept` are zero, `stack` and `step` room for a number a variable.
    """
    n = len(seen)
    g = pointers(graph)
    rng, inside, seen, stack, step, kept = pointers((rng, inside, seen, stack, step, kept))
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
            for e in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
                f = g.edge_factor[g.edges[e]]
                j = g.scope[g.scope_ptr[f]] + g.scope[g.scope_ptr[f] + 1] - i
                if seen[j] == 0:
                    seen[j] = 1
                    stack[last] = j
                    last += 1
        for k in range(count):
            i = stack[k]
            while inside[i] == 0:
                degree = g.edge_ptr[i + 1] - g.edge_ptr[i]
                f = g.edge_factor[g.edges[g.edge_ptr[i] + below(rng, degree)]]
                step[i] = f
                i = g.scope[g.scope_ptr[f]] + g.scope[g.scope_ptr[f] + 1] - i
            i = stack[k]
            while inside[i] == 0:
                inside[i] = 1
                kept[step[i]] = 1
                f = step[i]
                i = g.scope[g.scope_ptr[f]] + g.scope[g.scope_ptr[f] + 1] - i


@kernel(bare=True)
def orient(graph, left, seen, queue, factors, parents, roots):
    """Order the forest of the factors `left` from the leaves to the roots; return how many factors and roots it has.

    Nothing is left in the end; `seen` is zero, `queue` room for a number a variable.
    """
    n = len(seen)
    g = pointers(graph)
    left, seen, queue, factors, parents, roots = pointers((left, seen, queue, factors, parents, roots))
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
            for k in range(g.edge_ptr[i], g.edge_ptr[i + 1]):
                e = g.edges[k]
                f = g.edge_factor[e]
                if left[f] == 0:
                    continue
                left[f] = 0
                factors[n_factors] = f
                parents[n_factors] = e
                n_factors += 1
                for d in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                    j = g.scope[d]
                    if seen[j] == 0:
                        seen[j] = 1
                        queue[tail] = j
                        tail += 1
    for k in range(n_factors // 2):
        m = n_factors - 1 - k
        factors[k], factors[m] = factors[m], factors[k]
        parents[k], parents[m] = parents[m], parents[k]
    return n_factors, n_roots
