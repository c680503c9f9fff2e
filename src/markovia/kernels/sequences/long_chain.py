"""Smoothing one long hidden chain from both ends at once, in two threads.

The first half is filtered forwards (`hidden_chain.forward_backward`) while messages p(what follows | state), rescaled, come
back through the second; then both halves are finished at once, the first backwards from where they met, the second forwards.
That is as much work as smoothing from one end. Arrays are those of `chain_records`. Where a positive number would come near
the smallest ones, the kernels here give up (they return False or minus infinity), and the caller goes the other way.
"""

from math import log

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointer, pointers
from markovia.kernels.sequences.hidden_chain import smooth_back

REORDERED = {"reassoc", "contract"}
TINY = 1e-250


@kernel(fastmath=REORDERED)
def messages_back(m, b, chain, messages):
    """Write the message from the steps after t to step t = m-1 ... b-1 into row `t - m + 1`; return whether all is well."""
    tables, moves, logs, dens, codes = chain.tables, chain.moves, chain.logs, chain.dens, chain.codes
    k = dens.shape[1]
    shared = len(moves) == 1
    weight = np.empty(k)
    for j in range(k):
        messages[b - m, j] = 1.0
    for t in range(b - 1, m - 1, -1):
        r = codes[t]
        row = t - m + 1
        fine = True
        for j in range(k):
            weight[j] = dens[r, j] * messages[row, j]
            # below what can be trusted, though possible
            fine = fine and (weight[j] > TINY or logs[r, j] == -np.inf or messages[row, j] == 0.0)
        if not fine:
            return False
        which = moves[0] if shared else moves[t]
        size = 0.0
        for i in range(k):
            value = 0.0
            for j in range(k):
                value += tables[which, i, j] * weight[j]
            messages[row - 1, i] = value
            size += value
        if size == 0.0:
            return False
        inverse = 1.0 / size
        for i in range(k):
            messages[row - 1, i] *= inverse
    return True


@kernel(bare=True, fastmath=REORDERED)
def finish_first(a, m, chain, filtered, ahead, room, posteriors):
    """Smooth steps a ... m-1 backwards from p(z_m-1 | all), in the room; see `hidden_chain.smooth_back`."""
    k = filtered.shape[1]
    shared = len(chain.moves) == 1
    counted = len(posteriors.pairs) > 0
    chain = pointers(chain)
    posteriors = pointers(posteriors)
    filtered = pointer(filtered)
    ahead = pointer(ahead)
    room = pointer(room)
    smooth_back(a, m, k, shared, counted, chain, filtered, ahead, room, posteriors)


@kernel(fastmath=REORDERED)
def finish_second(m, b, now, chain, messages, posteriors):
    """Smooth steps m ... b-1 forwards from `now`, p(z_m-1 | what came before); return log p of their observations."""
    tables, moves, logs, dens, codes = chain.tables, chain.moves, chain.logs, chain.dens, chain.codes
    into, pairs, sums = posteriors.into, posteriors.pairs, posteriors.sums
    k = len(now)
    counted = len(pairs) > 0
    shared = len(moves) == 1
    ahead = np.empty(k)
    later = np.empty(k)
    total = 0.0
    part = 0.0
    scale = 1.0
    for t in range(m, b):
        r = codes[t]
        which = moves[0] if shared else moves[t]
        for j in range(k):
            ahead[j] = now[0] * tables[which, 0, j]
        for i in range(1, k):
            f = now[i]
            for j in range(k):
                ahead[j] += f * tables[which, i, j]
        size = 0.0
        both = 0.0
        for j in range(k):
            later[j] = dens[r, j] * messages[t - m + 1, j]
            both += ahead[j] * later[j]
        if both < TINY:
            return -np.inf
        inverse = 1.0 / both
        o = into[t]
        for j in range(k):
            later[j] *= inverse
            sums[o, j] += ahead[j] * later[j]
        if counted:
            for i in range(k):
                f = now[i]
                for j in range(k):
                    pairs[which, i, j] += f * later[j]
        for j in range(k):
            now[j] = ahead[j] * dens[r, j]
            size += now[j]
        part += chain.tops[r]
        if t % 1024 == 0:
            total += part
            part = 0.0
        scale *= size
        if not 1e-100 < scale < 1e100:
            part += log(scale)
            scale = 1.0
        inverse = 1.0 / size
        fine = True
        for j in range(k):
            now[j] *= inverse
            fine = fine and (now[j] > TINY or ahead[j] == 0.0 or logs[r, j] == -np.inf)
        if not fine:
            return -np.inf
    return total + (part + log(scale))
