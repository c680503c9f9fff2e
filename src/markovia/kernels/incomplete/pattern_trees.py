"""Clique trees for patterns of missing variables, one small tree a pattern, laid out by compiled code.

There may be thousands of patterns, so nothing here is done one at a time in Python. Variables are eliminated greedily, the
smallest clique first; where one table over all of a pattern's variables is cheaper than a tree, it is taken. The arrays
are those of `learning/incomplete/incomplete_rows.py`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import inner, kernel
from markovia.runtime.array_types import Ints

BIG = 2.0**40


@inner
def _longer(a, needed):
    """Return an array of at least this length that begins like `a`."""
    if needed <= len(a):
        return a
    b = np.empty(needed + len(a), np.int64)
    for i in range(len(a)):
        b[i] = a[i]
    return b


class _PatternCliques(NamedTuple):
    """The cliques of one pattern, while they are laid out."""

    sep: NDArray[np.uint8]  # (cliques, members): marks their separators
    n_sep: Ints  # members of a separator; -1 - c once its parent c is known
    of: Ints  # (members,): the clique that sums a member out
    last: Ints  # the step of a clique's last elimination


@inner
def _order(m, adjacent, card, left, best, weight, cliques):
    """Eliminate greedily, smallest clique first; return the number of cliques.

    A clique that only repeats the separator of one below it is merged with that one.
    """
    sep, n_sep = cliques.sep, cliques.n_sep
    # the entries of the clique that eliminating each member would make
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
        cliques.of[v] = home
        cliques.last[home] = step
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
def plan_patterns(groups, families, largest, local, seen):
    """Lay out a clique tree for every pattern; patterns that need a clique over `largest` entries get none.

    Takes `MissingGroups` and `NetworkFamilies`; `local` has one number a variable, `seen` one a family, -1 each. Returns the
    `clique_at`, `clique`, `axis` and `slot` of `PatternTrees`, flat and still without maps, and what running each pattern
    once costs, infinite without a tree.
    """
    start, member, card = groups.member_start, groups.member, families.card
    of_start, scope_start, scope = families.of_start, families.scope_start, families.scope
    n_patterns = len(start) - 1
    widest = 1
    for p in range(n_patterns):
        if start[p + 1] - start[p] > widest:
            widest = start[p + 1] - start[p]
    clique_at = np.empty(n_patterns + 1, np.int64)
    clique_at[0] = 0
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
    family = np.empty(len(scope_start) - 1, np.int64)
    adjacent = np.empty((widest, widest), np.uint8)
    cliques = _PatternCliques(
        np.empty((widest, widest), np.uint8), np.empty(widest, np.int64), np.empty(widest, np.int64),
        np.empty(widest, np.int64),
    )  # fmt: skip
    sep, n_sep, clique_of, last = cliques
    left = np.empty(widest, np.uint8)
    best = np.empty(widest, np.int64)
    weight = np.empty(widest)
    sizes = np.empty(widest, np.int64)
    home = np.empty(len(scope_start) - 1, np.int64)
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
        # the families around the pattern; members that one of them mentions together are joined
        n_families = 0
        for i in range(m):
            v = member[start[p] + i]
            for q in range(of_start[v], of_start[v + 1]):
                f = families.of_family[q]
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
        # one table over all members, against a tree: what either costs, and whether it fits
        n = 1
        total = whole * (n_families + 2.0) + 20.0
        tree = m > 2 or whole > largest
        if tree:
            n = _order(m, adjacent, cards, left, best, weight, cliques)
            fits = True
            total_tree = 0.0
            for c in range(n):
                w = 1.0
                for i in range(m):
                    if sep[c, i] or clique_of[i] == c:
                        w *= cards[i]
                fits = fits and w <= largest
                sizes[c] = np.int64(w if w < BIG else BIG)
                total_tree += 4.0 * w + 30.0
            # a family goes to the clique that first sums one of its members out
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
        # write the tree down, parents by their rank
        axis = _longer(axis, n_axes + n * m)
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
    # one more clique, so that lists of slots and axes have an end
    for x in range(8):
        clique[8 * n_cliques + x] = 0
    clique[8 * n_cliques + 4] = n_slots
    clique[8 * n_cliques + 5] = n_axes
    return clique_at, clique[: 8 * (n_cliques + 1)], axis[:n_axes], slot[: 2 * n_slots], cost


@kernel
def fill_maps(start, words, at, maps):
    """Fill maps from lists of the lengths and strides of their axes; map i begins at `at[i]`."""
    for i in range(len(start) - 1):
        begin = at[i]
        maps[begin] = 0
        filled = 1
        for x in range(start[i + 1] - 2, start[i] - 1, -2):
            for d in range(1, words[x]):
                for e in range(filled):
                    maps[begin + d * filled + e] = maps[begin + e] + d * words[x + 1]
            filled *= words[x]
