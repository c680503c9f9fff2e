"""The partition nearest on average to drawn ones: rows move between groups while the expected loss falls.

With sizes n_a of groups and n_ab of their meetings with the groups of a draw, Binder's loss and the variation of information
are, up to constants, sum g(n_a) - 2 mean over draws of sum g(n_ab); g(n) is n^2 or n log n.
"""

from markovia.kernels.kernel import kernel


@kernel(bare=True)
def improve(draws, labels, g, sizes, meetings, gains):
    """Move each row in turn to the group where the loss is least; return how many moved.

    `sizes (groups)` and `meetings (draws, groups of draws, groups)` are counted for `labels` before, and kept true.
    """
    many, rows = draws.shape
    width = len(sizes)
    moved = 0
    for i in range(rows):
        at = labels[i]
        sizes[at] -= 1
        for s in range(many):
            meetings[s, draws[s, i], at] -= 1
        empty = False  # all empty groups are alike
        for a in range(width):
            gains[a] = g[sizes[a] + 1] - g[sizes[a]]
        for s in range(many):
            b = draws[s, i]
            for a in range(width):
                m = meetings[s, b, a]
                gains[a] -= (2.0 / many) * (g[m + 1] - g[m])
        best = at
        for a in range(width):
            if sizes[a] == 0:
                if empty:
                    continue
                empty = True
            if gains[a] < gains[best] - 1e-10:
                best = a
        moved += best != at
        labels[i] = best
        sizes[best] += 1
        for s in range(many):
            meetings[s, draws[s, i], best] += 1
    return moved
