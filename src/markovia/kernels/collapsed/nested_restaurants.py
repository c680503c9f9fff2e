"""A sweep over a tree of topics: a path from the root for each document, a level of its path for each of its words.

Paths have the law of the nested Chinese restaurant process; words of all nodes are summed out. Reference: Blei, Griffiths
and Jordan (2010), section 5.
"""

from math import exp, inf, log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform

TINY = 1e-200


@kernel
def sweep(
    words,
    offsets,
    levels,
    paths,
    parents,
    depths,
    guests,
    by_word,
    totals,
    alphas,
    etas,
    gamma,
    at,
    logs,
    met,
    s,
):
    """Go on from document `at[0]` until all are done (True) or there may not be room for new nodes (False).

    words and levels (tokens,), offsets (documents + 1,), paths (documents, depth; -1 for none yet), parents, depths (-1 for
    free slots), guests and totals (slots,): documents and words of nodes; by_word (words, slots), alphas and etas (depth,),
    logs (3, slots) and met (words,; zeros) are rooms.
    """
    v, slots = by_word.shape
    depth = paths.shape[1]
    chances = logs[0]
    while at[0] < len(offsets) - 1:
        d = at[0]
        free = 0
        for node in range(slots):
            free += depths[node] < 0
        if free < depth:
            return False
        path, a, b = paths[d], offsets[d], offsets[d + 1]
        if path[0] >= 0:
            for i in range(a, b):
                by_word[words[i], path[levels[i]]] -= 1
                totals[path[levels[i]]] -= 1
            for j in range(depth):
                guests[path[j]] -= 1
                if guests[path[j]] == 0 and j > 0:
                    depths[path[j]] = -1
        _draw_path(
            words, levels, a, b, path, parents, depths, guests, by_word, totals, etas, gamma, logs, met, s
        )
        for j in range(depth):
            guests[path[j]] += 1
        local = logs[1]
        for j in range(depth):
            local[j] = alphas[j]
        for i in range(a, b):
            by_word[words[i], path[levels[i]]] += 1
            totals[path[levels[i]]] += 1
            local[levels[i]] += 1.0
        for i in range(a, b):
            w, old = words[i], levels[i]
            by_word[w, path[old]] -= 1
            totals[path[old]] -= 1
            local[old] -= 1.0
            total = 0.0
            for j in range(depth):
                node = path[j]
                chances[j] = local[j] * (by_word[w, node] + etas[j]) / (totals[node] + v * etas[j])
                total += chances[j]
            u, new = uniform(s) * total, 0
            while new < depth - 1:
                u -= chances[new]
                if u < 0.0:
                    break
                new += 1
            levels[i] = new
            by_word[w, path[new]] += 1
            totals[path[new]] += 1
            local[new] += 1.0
        at[0] += 1
    return True


@inner
def _draw_path(
    words, levels, a, b, path, parents, depths, guests, by_word, totals, etas, gamma, logs, met, s
):
    """Draw the path of a document whose words and place are taken out; make the nodes that are new."""
    v, slots = by_word.shape
    depth = len(path)
    sums, products, ends = logs[0], logs[1], logs[2]
    for node in range(slots):
        sums[node] = 0.0
    unseen = 0.0  # the words of deeper levels at nodes that nobody has visited
    top, total, chosen = -inf, 0.0, 0
    # from the leaves: what words say of each node, and in `ends` what a branch of new nodes below it would say
    for level in range(depth - 1, -1, -1):
        for node in range(slots):
            products[node] = 1.0
        fresh, product, n = 0.0, 1.0, 0
        eta = etas[level]
        for i in range(a, b):
            if levels[i] != level:
                continue
            w = words[i]
            known = met[w] + eta
            met[w] += 1
            for node in range(slots):
                if depths[node] == level:
                    products[node] *= (by_word[w, node] + known) / (totals[node] + v * eta + n)
                    if products[node] < TINY:
                        sums[node] += log(products[node])
                        products[node] = 1.0
            product *= known / (v * eta + n)
            if product < TINY:
                fresh += log(product)
                product = 1.0
            n += 1
        for i in range(a, b):
            if levels[i] == level:
                met[words[i]] = 0
        for node in range(slots):
            if depths[node] == level:
                sums[node] += log(products[node])
                ends[node] = 0.0 if level == depth - 1 else unseen + log(gamma / (guests[node] + gamma))
        unseen += fresh + log(product)
    for level in range(1, depth):
        for node in range(slots):
            if depths[node] == level:
                up = parents[node]
                sums[node] += sums[up] + log(guests[node] / (guests[up] + gamma))
    for node in range(slots):
        if depths[node] >= 0:
            top = max(top, sums[node] + ends[node])
    for node in range(slots):
        if depths[node] >= 0:
            total += exp(sums[node] + ends[node] - top)
    u = uniform(s) * total
    for node in range(slots):
        if depths[node] >= 0:
            chosen = node
            u -= exp(sums[node] + ends[node] - top)
            if u < 0.0:
                break
    level = depths[chosen]
    node = chosen
    for j in range(level, -1, -1):
        path[j] = node
        node = parents[node]
    for j in range(level + 1, depth):
        node = 0
        while depths[node] >= 0:
            node += 1
        parents[node] = path[j - 1]
        depths[node] = j
        guests[node] = 0
        path[j] = node
