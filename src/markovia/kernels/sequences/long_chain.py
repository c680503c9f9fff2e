"""Smoothing one long hidden chain from both ends at once, in two threads.

The first half is filtered forwards (`hidden_chain.forward_backward`) while messages p(what follows | state), rescaled, come
back through the second; then both halves are finished at once, the first backwards from where they met, the second forwards.
That is as much work as smoothing from one end. Arrays are those of `chain_records`. Where a positive number would come near
the smallest ones, the kernels here give up (they return False or minus infinity), and the caller goes the other way.
"""

from math import log

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer, pointers
from markovia.kernels.sequences.hidden_chain import smooth_back
from markovia.kernels.sequences.state_lanes import sum_step

REORDERED = {"reassoc", "contract"}
TINY, NEAR = 1e-250, 1e-150


@kernel(bare=True, fastmath=REORDERED)
def messages_back(m, b, chain, room, messages):
    """Write the message from the steps after t to step t = m-1 ... b-1 into row `t - m + 1`; return whether all is well."""
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    messages = pointer(messages)
    later = pointer(room)
    weight = beyond(later, k)
    fine = True
    for j in range(k):
        r = chain.codes[b - 1]
        messages[(b - m) * k + j] = 1.0
        weight[j] = chain.dens[r * k + j]
        fine = fine and (weight[j] > TINY or chain.logs[r * k + j] == -np.inf)
    for t in range(b - 1, m - 1, -1):
        if not fine:
            break
        later, weight = weight, later
        r = chain.codes[t - 1]
        message = beyond(messages, (t - m) * k)
        table = beyond(chain.turned, k * k * (chain.moves[0] if shared else chain.moves[t]))
        size, least = sum_step(k, table, later, beyond(chain.dens, r * k), message, weight)
        if least < NEAR or size < NEAR:  # below what can be trusted, though possible
            fine = size > NEAR
            for j in range(k):
                fine = fine and (weight[j] > TINY or chain.logs[r * k + j] == -np.inf or message[j] == 0.0)
        inverse = 1.0 / size
        for j in range(k):
            message[j] *= inverse
            weight[j] *= inverse
    return fine


@kernel(bare=True, fastmath=REORDERED)
def finish_first(a, m, chain, filtered, ahead, room, posteriors):
    """Smooth steps a ... m-1 backwards from p(z_m-1 | all), in the room; see `hidden_chain.smooth_back`."""
    k = filtered.shape[1]
    shared = len(chain.moves) == 1
    counted = len(posteriors.pairs) > 0
    chain = pointers(chain)
    posteriors = pointers(posteriors)
    passed = pointers((filtered, ahead))
    smooth_back(a, m, k, shared, counted, chain, passed, pointer(room), posteriors)


@kernel(bare=True, fastmath=REORDERED)
def finish_second(m, b, chain, messages, room, posteriors):
    """Smooth steps m ... b-1 forwards from p(z_m-1 | what came before), in the room; return log p of their observations."""
    k = len(chain.start)
    shared = len(chain.moves) == 1
    counted = len(posteriors.pairs) > 0
    chain = pointers(chain)
    posteriors = pointers(posteriors)
    messages = pointer(messages)
    now = pointer(room)
    before = beyond(now, k)
    ahead = beyond(now, 2 * k)
    later = beyond(now, 3 * k)
    total = 0.0
    part = 0.0
    scale = 1.0
    for t in range(m, b):
        r = chain.codes[t]
        which = chain.moves[0] if shared else chain.moves[t]
        dense = beyond(chain.dens, r * k)
        before, now = now, before
        size, least = sum_step(k, beyond(chain.tables, which * k * k), before, dense, ahead, now)
        message = beyond(messages, (t - m + 1) * k)
        both = 0.0
        for j in range(k):
            later[j] = dense[j] * message[j]
            both += ahead[j] * later[j]
        if both < TINY:
            return -np.inf
        inverse = 1.0 / both
        out = beyond(posteriors.sums, posteriors.into[t] * k)
        for j in range(k):
            later[j] *= inverse
            out[j] += ahead[j] * later[j]
        if counted:
            for i in range(k):
                f = before[i]
                pair = beyond(posteriors.pairs, (which * k + i) * k)
                for j in range(k):
                    pair[j] += f * later[j]
        part += chain.tops[r]
        if t % 1024 == 0:
            total += part
            part = 0.0
        scale *= size
        if not 1e-100 < scale < 1e100:
            part += log(scale)
            scale = 1.0
        inverse = 1.0 / size
        for j in range(k):
            now[j] *= inverse
        if least * inverse <= TINY:
            for j in range(k):
                if not (now[j] > TINY or ahead[j] == 0.0 or chain.logs[r * k + j] == -np.inf):
                    return -np.inf
    return total + (part + log(scale))
