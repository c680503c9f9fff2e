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
def _collect(c0, c1, clique, slot, maps, base, at, theta, maximise, room):
    """Fill the tables and messages of one case; return the log of its mass (of its best weight), or minus infinity.

    `at` is where the offsets of the case's slots begin. The root's message is the sum of its table.
    """
    log_scale = 0.0
    s0 = clique[c0, 4]
    for c in range(c0, c1):
        size = clique[c, 0]
        table = room[clique[c, 6] : clique[c, 6] + size]
        first = True
        for s in range(clique[c, 4], clique[c + 1, 4]):
            b = base[at + s - s0]
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
def expect_cases(
    first, last, case_pattern, case_weight, case_at, base, clique_at, clique, slot, maps, theta, room, counts
):
    """Add the expected counts of cases `first..last` to `counts`; return their log mass and the first impossible case.

    On the way down a clique's message becomes the ratio of its separator's posterior to it.
    """
    log_mass = 0.0
    best = last < first  # never; a constant would compile `_collect` twice
    for i in range(first, last):
        p = case_pattern[i]
        c0 = clique_at[p]
        c1 = clique_at[p + 1]
        found = _collect(c0, c1, clique, slot, maps, base, case_at[i], theta, best, room)
        if found == -np.inf:
            return -np.inf, i
        log_mass += case_weight[i] * found
        s0 = clique[c0, 4]
        for c in range(c1 - 1, c0 - 1, -1):
            size = clique[c, 0]
            n_sep = clique[c, 1]
            own = size // n_sep
            table = room[clique[c, 6] : clique[c, 6] + size]
            message = room[clique[c, 6] + size : clique[c, 6] + size + n_sep]
            if clique[c, 2] < 0:
                message[0] = case_weight[i] / message[0]
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
                b = base[case_at[i] + s - s0]
                m = slot[s, 1]
                for e in range(size):
                    counts[b + maps[m + e]] += table[e]
    return log_mass, -1


@kernel
def decode_cases(
    first, last, case, uniform, member_start, member, card, case_pattern, case_at, base, clique_at, clique, axis,
    slot, maps, theta, room, out_at, out, logs,
):  # fmt: skip
    """Write a state for every member of the listed cases: the best joint ones, or a draw.

    `uniform` holds one random number a member for draws and is empty for the best. Item i writes to `out` from
    `out_at[i]`, in the order of the pattern's members, and the log of its mass or best weight to `logs`; an impossible
    item gets minus infinity and no states.
    """
    draw = len(uniform) > 0
    for i in range(first, last):
        p = case_pattern[case[i]]
        c0 = clique_at[p]
        c1 = clique_at[p + 1]
        at = case_at[case[i]]
        logs[i] = _collect(c0, c1, clique, slot, maps, base, at, theta, not draw, room)
        if logs[i] == -np.inf:
            continue
        for c in range(c1 - 1, c0 - 1, -1):
            own = clique[c, 0] // clique[c, 1]
            first_own = clique[c, 5] + clique[c, 7]
            row = 0
            for x in range(clique[c, 5], first_own):
                row = row * card[member[member_start[p] + axis[x]]] + out[out_at[i] + axis[x]]
            begin = clique[c, 6] + row * own
            chosen = 0
            if draw:
                mass = 0.0
                for e in range(own):
                    mass += room[begin + e]
                u = uniform[out_at[i] + axis[first_own]] * mass
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
                k = card[member[member_start[p] + axis[y]]]
                out[out_at[i] + axis[y]] = chosen % k
                chosen //= k
