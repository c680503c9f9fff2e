"""Summing, maximising and drawing the missing cells of cases, on the clique trees of `pattern_trees`.

Each case multiplies slices of tables into its cliques (`maps` says which entry goes where), passes messages up, and
comes back down with posteriors. A table whose largest entry becomes very small or large is scaled, so nothing
underflows. Cost of a case: the entries of its cliques times the families and messages in each.
"""

from math import log

import numpy as np

from markovia.kernels.kernel import inner, kernel

SMALL, LARGE = 1e-60, 1e60


@inner
def _collect(case, cases, trees, theta, maximise, room):
    """Fill the tables and messages of one case; return the log of its mass (of its best weight), or minus infinity.

    The root's message is the sum of its table.
    """
    clique, slot, maps = trees.clique, trees.slot, trees.maps
    c0, c1 = trees.clique_at[cases.pattern[case]], trees.clique_at[cases.pattern[case] + 1]
    log_scale = 0.0
    # the offset of the first slot, as if the pattern's slots began at 0
    at = cases.at[case] - clique[c0, 4]
    # multiply the slices of tables into their cliques
    for c in range(c0, c1):
        size = clique[c, 0]
        table = room[clique[c, 6] : clique[c, 6] + size]
        first = True
        for s in range(clique[c, 4], clique[c + 1, 4]):
            b = cases.base[at + s]
            m = slot[s, 1]
            top = 0.0
            if first:
                for e in range(size):
                    x = theta[b + maps[m + e]]
                    table[e] = x
                    top = x if x > top else top
                first = False
            else:
                for e in range(size):
                    x = table[e] * theta[b + maps[m + e]]
                    table[e] = x
                    top = x if x > top else top
            if top < SMALL:
                if top == 0.0:
                    return -np.inf
                log_scale += log(top)
                for e in range(size):
                    table[e] /= top
        if first:
            for e in range(size):
                table[e] = 1.0
    # messages up, each multiplied into its parent's table
    for c in range(c0, c1):
        size = clique[c, 0]
        n_sep = clique[c, 1]
        own = size // n_sep
        table = room[clique[c, 6] : clique[c, 6] + size]
        message = room[clique[c, 6] + size : clique[c, 6] + size + n_sep]
        total = 0.0
        for i in range(n_sep):
            x = 0.0
            if maximise:
                for e in range(i * own, (i + 1) * own):
                    x = table[e] if table[e] > x else x
                total = x if x > total else total
            else:
                for e in range(i * own, (i + 1) * own):
                    x += table[e]
                total += x
            message[i] = x
        if not total > 0.0:
            return -np.inf
        if clique[c, 2] < 0:
            log_scale += log(total)
            break
        parent = c0 + clique[c, 2]
        above = room[clique[parent, 6] : clique[parent, 6] + clique[parent, 0]]
        m = clique[c, 3]
        top = 0.0
        for e in range(len(above)):
            x = above[e] * message[maps[m + e]]
            above[e] = x
            top = x if x > top else top
        if top < SMALL or top > LARGE:
            if top == 0.0:
                return -np.inf
            log_scale += log(top)
            for e in range(len(above)):
                above[e] /= top
    return log_scale


@kernel
def expect_cases(first, last, cases, trees, theta, room, counts):
    """Add the expected counts of cases `first..last` to `counts`; return their log mass and the first impossible case.

    Takes `GroupCases`, `PatternTrees`, all tables in one array and room for the tables of a pattern. On the way down a
    clique's message becomes the ratio of its separator's posterior to it.
    """
    clique, slot, maps = trees.clique, trees.slot, trees.maps
    log_mass = 0.0
    best = last < first  # never; a constant would compile `_collect` twice
    for i in range(first, last):
        found = _collect(i, cases, trees, theta, best, room)
        if found == -np.inf:
            return -np.inf, i
        log_mass += cases.weight[i] * found
        c0, c1 = trees.clique_at[cases.pattern[i]], trees.clique_at[cases.pattern[i] + 1]
        at = cases.at[i] - clique[c0, 4]
        for c in range(c1 - 1, c0 - 1, -1):
            size = clique[c, 0]
            n_sep = clique[c, 1]
            own = size // n_sep
            table = room[clique[c, 6] : clique[c, 6] + size]
            message = room[clique[c, 6] + size : clique[c, 6] + size + n_sep]
            if clique[c, 2] < 0:
                message[0] = cases.weight[i] / message[0]
            else:
                parent = c0 + clique[c, 2]
                above = room[clique[parent, 6] : clique[parent, 6] + clique[parent, 0]]
                m = clique[c, 3]
                posterior = room[len(room) - n_sep :]
                for j in range(n_sep):
                    posterior[j] = 0.0
                for e in range(len(above)):
                    posterior[maps[m + e]] += above[e]
                for j in range(n_sep):
                    message[j] = posterior[j] / message[j] if message[j] > 0.0 else 0.0
            for j in range(n_sep):
                x = message[j]
                for e in range(j * own, (j + 1) * own):
                    table[e] *= x
            for s in range(clique[c, 4], clique[c + 1, 4]):
                b = cases.base[at + s]
                m = slot[s, 1]
                for e in range(size):
                    counts[b + maps[m + e]] += table[e]
    return log_mass, -1


@kernel
def decode_cases(first, last, listed, uniform, cases, trees, theta, room, decoded):
    """Write a state for every member of the listed cases: the best joint ones, or a draw.

    `uniform` holds one random number a member for draws and is empty for the best. Item i writes to the states of
    `DecodedCases` from `at[i]`, in the order of the pattern's members, and the log of its mass or best weight to `logs`; an
    impossible item gets minus infinity and no states.
    """
    clique, axis, length = trees.clique, trees.axis, trees.length
    draw = len(uniform) > 0
    for i in range(first, last):
        p = cases.pattern[listed[i]]
        decoded.logs[i] = _collect(listed[i], cases, trees, theta, not draw, room)
        if decoded.logs[i] == -np.inf:
            continue
        at, out = decoded.at[i], decoded.states
        for c in range(trees.clique_at[p + 1] - 1, trees.clique_at[p] - 1, -1):
            # the row of the clique's table that the states of its separator leave
            own = clique[c, 0] // clique[c, 1]
            first_own = clique[c, 5] + clique[c, 7]
            row = 0
            for x in range(clique[c, 5], first_own):
                row = row * length[x] + out[at + axis[x]]
            begin = clique[c, 6] + row * own
            chosen = 0
            if draw:
                mass = 0.0
                for e in range(own):
                    mass += room[begin + e]
                u = uniform[at + axis[first_own]] * mass
                run = 0.0
                for e in range(own):
                    if room[begin + e] > 0.0:
                        chosen = e
                        run += room[begin + e]
                        if u < run:
                            break
            else:
                for e in range(own):
                    if room[begin + e] > room[begin + chosen]:
                        chosen = e
            for y in range(clique[c + 1, 5] - 1, first_own - 1, -1):
                out[at + axis[y]] = chosen % length[y]
                chosen //= length[y]
