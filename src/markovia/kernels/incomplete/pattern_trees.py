"""Clique trees for patterns of missing variables, one small tree a pattern, laid out by compiled code.

There may be thousands of patterns, so nothing here is done one at a time in Python. Variables are eliminated greedily, the
smallest clique first; where one table over all of a pattern's variables is cheaper than a tree, it is taken. The arrays
are those of `missing_cells`.
"""

import numpy as np

from markovia.kernels.interned_lists import find, grown, key_of, longer, unset
from markovia.kernels.kernel import inner, kernel

BIG = 1 << 40


@inner
def _order(m, adjacent, card, left, best, weight, sep, n_sep, clique_of, last):
    """Eliminate greedily, smallest clique first; return the number of cliques and what they and all of them cost.

    `sep[c]` marks clique c's separator, `clique_of[v]` is the clique that sums v out, `last[c]` the step of its last
    elimination. A clique that only repeats the separator of one below it is merged with that one.
    """
    for v in range(m):
        left[v] = 1
        w = float(card[v])
        for u in range(m):
            if adjacent[v, u]:
                w *= card[u]
        weight[v] = w
    n = 0
    for step in range(m):
        v = -1
        for u in range(m):
            if left[u] and (v < 0 or weight[u] < weight[v]):
                v = u
        left[v] = 0
        degree = 0
        for u in range(m):
            if left[u] and adjacent[v, u]:
                best[degree] = u
                degree += 1
        home = -1
        for c in range(n):
            if sep[c, v] and n_sep[c] == degree + 1:
                home = c
                break
        if home < 0:
            home = n
            n += 1
            for u in range(m):
                sep[home, u] = 0
        else:
            sep[home, v] = 0
        for i in range(degree):
            sep[home, best[i]] = 1
        n_sep[home] = degree
        clique_of[v] = home
        last[home] = step
        for c in range(n):
            if c != home and sep[c, v] and n_sep[c] > 0:
                n_sep[c] = -1 - home  # its parent; the separator stays marked
        for i in range(degree):
            for j in range(i):
                adjacent[best[i], best[j]] = 1
                adjacent[best[j], best[i]] = 1
        for i in range(degree):
            a = best[i]
            w = float(card[a])
            for u in range(m):
                if left[u] and adjacent[a, u]:
                    w *= card[u]
            weight[a] = w
    return n


@kernel
def plan_patterns(start, member, card, of_start, of_family, scope_start, scope, largest):
    """Lay out a clique tree for every pattern; patterns that need a clique over `largest` entries get none.

    Returns
    -------
    clique_at
        The first clique of each pattern; a pattern without a tree has none. Children come before parents, the root last.
    clique
        Eight numbers a clique: entries, entries of its separator, place of its parent in the pattern (-1), where the map
        of its message into the parent's entries begins (filled in later), its first slot, its first axis, where its
        table begins in the room of the pattern (its message follows), and the number of axes of its separator.
    axis
        Its variables, separator first: place among the pattern's members.
    slot
        The families multiplied into each clique: family, and room for where its map begins.
    cost
        Of running each pattern once; infinite without a tree.
    """
    n_patterns = len(start) - 1
    widest = 1
    for p in range(n_patterns):
        widest = max(widest, start[p + 1] - start[p])
    clique_at = np.zeros(n_patterns + 1, np.int64)
    room = 0
    for i in range(len(member)):
        room += of_start[member[i] + 1] - of_start[member[i]]
    clique = np.empty(8 * (len(member) + 1), np.int64)  # pages that are not written to take no memory
    slot = np.empty(2 * room, np.int64)
    axis = np.empty(1024, np.int64)
    cost = np.empty(n_patterns)
    n_cliques = 0
    n_axes = 0
    n_slots = 0
    local = unset(len(card))
    seen = unset(len(card))
    family = np.empty(len(card), np.int64)
    adjacent = np.zeros((widest, widest), np.uint8)
    sep = np.zeros((widest, widest), np.uint8)
    left = np.empty(widest, np.uint8)
    best = np.empty(widest, np.int64)
    weight = np.empty(widest)
    n_sep = np.empty(widest, np.int64)
    clique_of = np.empty(widest, np.int64)
    last = np.empty(widest, np.int64)
    sizes = np.empty(widest, np.int64)
    home = np.empty(len(card), np.int64)
    cards = np.empty(widest, np.int64)
    rank = np.empty(widest, np.int64)
    at_step = np.empty(widest, np.int64)
    place = np.empty(widest, np.int64)

    for p in range(n_patterns):
        m = start[p + 1] - start[p]
        whole = 1.0
        for i in range(m):
            v = member[start[p] + i]
            local[v] = i
            cards[i] = card[v]
            whole *= card[v]
            for j in range(m):
                adjacent[i, j] = 0
        n_families = 0
        for i in range(m):
            v = member[start[p] + i]
            for q in range(of_start[v], of_start[v + 1]):
                f = of_family[q]
                if seen[f] == p:
                    continue
                seen[f] = p
                family[n_families] = f
                n_families += 1
                for s in range(scope_start[f], scope_start[f + 1]):
                    a = local[scope[s]]
                    if a < 0:
                        continue
                    for t in range(scope_start[f], s):
                        b = local[scope[t]]
                        if b >= 0:
                            adjacent[a, b] = 1
                            adjacent[b, a] = 1
        n = 1
        total = whole * (n_families + 2.0) + 20.0
        tree = m > 2 or whole > largest
        if tree:
            n = _order(m, adjacent, cards, left, best, weight, sep, n_sep, clique_of, last)
            fits = True
            total_tree = 0.0
            for c in range(n):
                w = 1.0
                for i in range(m):
                    if sep[c, i] or clique_of[i] == c:
                        w *= cards[i]
                fits = fits and w <= largest
                sizes[c] = np.int64(min(w, BIG))
                total_tree += 4.0 * w + 30.0
            for k in range(n_families):
                f = family[k]
                first = -1
                for s in range(scope_start[f], scope_start[f + 1]):
                    a = local[scope[s]]
                    if a >= 0 and (first < 0 or last[clique_of[a]] < last[clique_of[first]]):
                        first = a
                home[k] = clique_of[first]
                total_tree += sizes[home[k]]
            if not fits:
                cost[p] = np.inf
                clique_at[p + 1] = n_cliques
                for i in range(m):
                    local[member[start[p] + i]] = -1
                continue
            if whole <= largest and total <= total_tree:
                tree = False
            else:
                total = total_tree
        if not tree:
            n = 1
            sizes[0] = np.int64(whole)
            n_sep[0] = 0
            last[0] = 0
            for i in range(m):
                clique_of[i] = 0
                sep[0, i] = 0
            for j in range(n_families):
                home[j] = 0
        cost[p] = total
        # cliques in the order of their last elimination: children first
        for i in range(m):
            at_step[i] = -1
        for c in range(n):
            at_step[last[c]] = c
        k = 0
        for i in range(m):
            if at_step[i] >= 0:
                rank[at_step[i]] = k
                place[k] = at_step[i]
                k += 1
        axis = longer(axis, n_axes + n * m)
        for k in range(n):
            c = place[k]
            g = n_cliques + k
            clique[8 * g + 5] = n_axes
            separator = 1
            n_separator = 0
            for i in range(m):
                if sep[c, i] and clique_of[i] != c:
                    axis[n_axes] = i
                    n_axes += 1
                    separator *= cards[i]
                    n_separator += 1
            for i in range(m):
                if clique_of[i] == c:
                    axis[n_axes] = i
                    n_axes += 1
            clique[8 * g] = sizes[c]
            clique[8 * g + 1] = separator
            clique[8 * g + 2] = rank[-1 - n_sep[c]] if n_sep[c] < 0 else -1
            clique[8 * g + 3] = -1
            clique[8 * g + 4] = n_slots
            clique[8 * g + 6] = 0 if k == 0 else clique[8 * g - 2] + clique[8 * g - 8] + clique[8 * g - 7]
            clique[8 * g + 7] = n_separator
            for j in range(n_families):
                if home[j] == c:
                    slot[2 * n_slots] = family[j]
                    n_slots += 1
        n_cliques += n
        clique_at[p + 1] = n_cliques
        for i in range(m):
            local[member[start[p] + i]] = -1
    for x in range(8):
        clique[8 * n_cliques + x] = 0
    clique[8 * n_cliques + 4] = n_slots
    clique[8 * n_cliques + 5] = n_axes
    return clique_at, clique[: 8 * (n_cliques + 1)], axis[:n_axes], slot[: 2 * n_slots], cost


@kernel
def fill_maps(start, member, card, clique_at, clique, axis, slot, scope_start, scope, stride):
    """Make the maps of all slots and messages, note where each begins, and return them in one array.

    A map has one number for each entry of a clique: the offset in a family's table, or in a child's message. Maps with
    the same lengths and strides of axes are made once.
    """
    maps = np.empty(1 << 14, np.int32)
    n_maps = 0
    signature = np.empty(1 << 12, np.int64)
    signature_start = np.zeros(513, np.int64)
    signature_map = np.empty(512, np.int64)
    hashes = np.empty(512, np.int64)
    table = unset(np.int64(1024))
    n_known = np.int64(0)
    widest = 0
    for c in range(len(clique) - 1):
        widest = max(widest, clique[c + 1, 5] - clique[c, 5])
    words = np.empty(2 * widest, np.int64)
    for p in range(len(start) - 1):
        for c in range(clique_at[p], clique_at[p + 1]):
            n_slots = clique[c + 1, 4] - clique[c, 4]
            for j in range(n_slots + 1):
                if j < n_slots:  # a family in this clique
                    over = c
                    f = slot[clique[c, 4] + j, 0]
                elif clique[c, 2] >= 0:  # this clique's message in its parent
                    over = clique_at[p] + clique[c, 2]
                    f = -1
                else:
                    continue
                n_words = np.int64(0)
                for x in range(clique[over, 5], clique[over + 1, 5]):
                    v = member[start[p] + axis[x]]
                    step = 0
                    if f >= 0:
                        for s in range(scope_start[f], scope_start[f + 1]):
                            if scope[s] == v:
                                step = stride[s]
                    else:
                        run = 1
                        for y in range(clique[c, 5] + clique[c, 7] - 1, clique[c, 5] - 1, -1):
                            if axis[y] == axis[x]:
                                step = run
                            run *= card[member[start[p] + axis[y]]]
                    words[n_words] = card[v]
                    words[n_words + 1] = step
                    n_words += 2
                key = key_of(words, n_words, np.int64(11))
                i = find(table, hashes, key, signature_start, signature, words, n_words, n_known)
                if i < 0:
                    table[-1 - i] = n_known
                    i = n_known
                    n_known += 1
                    signature_start = longer(signature_start, n_known + 1)
                    signature_map = longer(signature_map, n_known)
                    hashes = longer(hashes, n_known)
                    hashes[i] = key
                    signature_start[i + 1] = signature_start[i] + n_words
                    signature = longer(signature, signature_start[i + 1])
                    for x in range(n_words):
                        signature[signature_start[i] + x] = words[x]
                    signature_map[i] = n_maps
                    maps = longer(maps, n_maps + clique[over, 0])
                    maps[n_maps] = 0
                    filled = 1
                    for x in range(n_words - 2, -1, -2):
                        for d in range(1, words[x]):
                            for e in range(filled):
                                maps[n_maps + d * filled + e] = maps[n_maps + e] + d * words[x + 1]
                        filled *= words[x]
                    n_maps += filled
                    if 2 * n_known > len(table):
                        table = grown(table, hashes, n_known)
                if f >= 0:
                    slot[clique[c, 4] + j, 1] = signature_map[i]
                else:
                    clique[c, 3] = signature_map[i]
    return maps[:n_maps]
