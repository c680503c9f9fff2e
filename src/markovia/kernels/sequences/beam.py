"""Paths of a hidden chain whose moves are cut by slices: forward filtering, backward sampling over the moves that are left.

Step t may take the moves whose probability is above its slice. All moves left count the same, which is what makes the path a
draw given the slices. Reference: Van Gael and others (2008). Cost: steps times states squared at most.
"""

from math import exp, inf

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import uniform


@kernel
def draw_paths(offsets, start, transition, logs, codes, slices, filtered, path, s):
    """Fill the path (steps,); return the step at which nothing is left, or -1.

    start (states,), transition (states, states), logs (observations, states), codes and slices (steps,), filtered
    (steps, states) is a room.
    """
    k = len(start)
    for sequence in range(len(offsets) - 1):
        a, b = offsets[sequence], offsets[sequence + 1]
        for t in range(a, b):
            now, u = filtered[t], slices[t]
            if t == a:
                for j in range(k):
                    now[j] = 1.0 if start[j] > u else 0.0
            else:
                for j in range(k):
                    now[j] = 0.0
                for i in range(k):
                    before = filtered[t - 1, i]
                    if before > 0.0:
                        for j in range(k):
                            if transition[i, j] > u:
                                now[j] += before
            top, row = -inf, logs[codes[t]]
            for j in range(k):
                if now[j] > 0.0 and row[j] > top:
                    top = row[j]
            if top == -inf:
                return t
            total = 0.0
            for j in range(k):
                if now[j] > 0.0:
                    now[j] *= exp(row[j] - top)
                    total += now[j]
            for j in range(k):
                now[j] /= total
        after = -1
        for t in range(b - 1, a - 1, -1):
            total = 0.0
            for j in range(k):
                if after < 0 or transition[j, after] > slices[t + 1]:
                    total += filtered[t, j]
            u, chosen = uniform(s) * total, -1
            for j in range(k):
                if filtered[t, j] > 0.0 and (after < 0 or transition[j, after] > slices[t + 1]):
                    chosen = j
                    u -= filtered[t, j]
                    if u < 0.0:
                        break
            path[t] = chosen
            after = chosen
    return -1
