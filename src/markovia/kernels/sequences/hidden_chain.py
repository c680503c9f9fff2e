"""Recursions of hidden Markov chains over many sequences that lie one after the other in flat arrays.

Arrays are those of `chain_records`. Sums are probabilities rescaled at each step (Rabiner 1989), the backward pass goes by
filtered and predicted probabilities alone, `p(z_t | all) = f_t * (A @ (p(z_t+1 | all) / ahead_t+1))`, in which nothing
grows. A share of the mass below 1e-290 is dropped; what was dropped is bounded from then on, state by state, until it is
nothing beside what was kept in the same state, and a sequence in which it may matter is left to `log_chain`. Sequences are
independent: call the kernels from several threads for different ranges of them. What happens to all states at one step is
in `state_lanes`. Cost: steps times k squared.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers
from markovia.kernels.random_numbers import uniform
from markovia.kernels.sequences.state_lanes import best_step, smooth_step, sum_step

REORDERED = {"reassoc", "contract"}
TINY = 1e-290
DROPPED = 1e-20
"""The share that dropped mass may have in a state, or in all, before it matters."""
IN_LOGS = -2
"""Stands for an impossible step where a sequence is left to logarithms."""
STILL_LOSING = -3
NOW, LATER = 2, 3
"""Rows of the room that a thread works in, where smoothing begins and goes on."""
SMALL, FAR = 1e-200, 1e-60
"""Numbers below the first need care; sums are rescaled below the second where only their product is asked for."""


@inner(bare=True, fastmath=REORDERED)
def _forward(s, k, base, shared, chain, filtered, ahead, room, ends):
    """Write filtered and predicted probabilities of sequence s from row `base`, and its log p and impossible step."""
    a, b = chain.offsets[s], chain.offsets[s + 1]
    log_probs, stuck = ends
    lost = room
    spread = beyond(room, k)
    for j in range(k):
        lost[j] = 0.0
        spread[j] = 0.0
    losing = False
    total = 0.0
    part = 0.0
    scale = 1.0
    log_probs[s] = 0.0
    stuck[s] = IN_LOGS
    for t in range(a, b):
        row = base + t - a
        now = beyond(filtered, row * k)
        coming = beyond(ahead, row * k)
        r = chain.codes[t]
        dense = beyond(chain.dens, r * k)
        log_row = beyond(chain.logs, r * k)
        if t == a:
            size = 0.0
            least = np.inf
            for j in range(k):
                v = chain.start[j] * dense[j]
                coming[j] = chain.start[j]
                now[j] = v
                size += v
                least = v if v < least else least
        else:
            table = beyond(chain.tables, k * k * (chain.moves[0] if shared else chain.moves[t]))
            size, least = sum_step(k, table, beyond(filtered, (row - 1) * k), dense, coming, now)
            if losing:  # what was dropped moves along
                sum_step(k, table, lost, lost, spread, beyond(room, NOW * k))
        top = chain.tops[r]
        if size < SMALL:
            # what was seen points to states that the chain hardly can be in: compare the others
            top = -np.inf
            for j in range(k):
                if coming[j] > TINY and log_row[j] > top:
                    top = log_row[j]
            if top == -np.inf:
                for j in range(k):
                    if log_row[j] > -np.inf and (coming[j] > 0.0 or spread[j] > 0.0):
                        return
                log_probs[s] = -np.inf
                stuck[s] = t
                return
            size = 0.0
            for j in range(k):
                now[j] = coming[j] * exp(log_row[j] - top) if coming[j] > TINY else 0.0
                size += now[j]
        part += top
        if row % 1024 == 0:  # sums of sums, so that a million steps are exact to many digits
            total += part
            part = 0.0
        scale *= size
        if not 1e-100 < scale < 1e100:
            part += log(scale)
            scale = 1.0
        inverse = 1.0 / size
        if least >= SMALL and inverse > 1e-80:
            for j in range(k):
                now[j] *= inverse
        else:  # drop what is too small, and note that something was
            for j in range(k):
                now[j] *= inverse
                if now[j] < TINY:
                    now[j] = 0.0
                    losing = losing or (coming[j] > 0.0 and log_row[j] > -np.inf)
        if losing:
            # bound what was dropped; give up where it may matter, forget it where it is nothing beside the rest
            losing = False
            for j in range(k):
                share = 0.0
                if log_row[j] > -np.inf:
                    if now[j] == 0.0 and coming[j] > 0.0:
                        share = TINY
                    if spread[j] > 0.0:
                        more = spread[j] * exp(log_row[j] - top) * inverse
                        share += more if more > TINY else TINY
                if share > DROPPED * now[j]:
                    if share > DROPPED:
                        return
                    losing = True
                else:
                    share = 0.0
                lost[j] = share
                spread[j] = 0.0
    log_probs[s] = total + (part + log(scale))
    stuck[s] = STILL_LOSING if losing else -1


@kernel(bare=True, fastmath=REORDERED)
def log_likelihoods(first, last, chain, room, log_probs):
    """Write log p of sequences alone; NaN for those with a number near the smallest ones, left to `forward_backward`."""
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    room = pointer(room)
    log_probs = pointer(log_probs)
    for s in range(first, last):
        a = chain.offsets[s]
        b = chain.offsets[s + 1]
        now = room
        before = beyond(room, k)
        coming = beyond(room, 2 * k)
        total = 0.0
        part = 0.0
        size = 1.0
        least = 1.0
        fine = True
        for t in range(a, b):
            r = chain.codes[t]
            dense = beyond(chain.dens, r * k)
            if t == a:
                size = 0.0
                for j in range(k):
                    coming[j] = chain.start[j]
                    now[j] = coming[j] * dense[j]
                    size += now[j]
                least = 0.0  # asked about below
            else:
                before, now = now, before
                table = beyond(chain.tables, k * k * (chain.moves[0] if shared else chain.moves[t]))
                size, least = sum_step(k, table, before, dense, coming, now)
            if least < SMALL:  # fine only where it is a zero of the model
                log_row = beyond(chain.logs, r * k)
                for j in range(k):
                    if now[j] < SMALL and (now[j] > 0.0 or (coming[j] > 0.0 and log_row[j] > -np.inf)):
                        fine = False
            if not (fine and 0.0 < size < 1.0 / FAR):
                fine = False
                break
            part += chain.tops[r]
            if size < FAR:
                part += log(size)
                for j in range(k):
                    now[j] /= size
                size = 1.0
            if (t - a) % 1024 == 0:
                total += part
                part = 0.0
        log_probs[s] = total + (part + log(size)) if fine else np.nan


@inner(bare=True, fastmath=REORDERED)
def smooth_back(a, b, k, shared, counted, chain, passed, room, posteriors):
    """Smooth steps a ... b-1 backwards from p(z_b-1 | all), which lies in the room; see `forward_backward`."""
    filtered, ahead = passed
    now = beyond(room, NOW * k)
    later = beyond(room, LATER * k)
    for j in range(k):
        posteriors.sums[posteriors.into[b - 1] * k + j] += now[j]
    for t in range(b - 2, a - 1, -1):
        m = chain.moves[0] if shared else chain.moves[t + 1]
        before = beyond(filtered, (t - a) * k)
        coming = beyond(ahead, (t - a + 1) * k)
        smooth_step(k, beyond(chain.turned, m * k * k), now, coming, before, later, now)
        if counted:
            for i in range(k):
                f = before[i]
                both = beyond(posteriors.pairs, (m * k + i) * k)
                for j in range(k):
                    both[j] += f * later[j]
        out = beyond(posteriors.sums, posteriors.into[t] * k)
        for i in range(k):
            out[i] += now[i]
    for j in range(k):
        posteriors.starts[j] += now[j]


@kernel(bare=True, fastmath=REORDERED)
def forward_backward(first, last, chain, filtered, ahead, room, posteriors, log_probs, stuck):
    """Filter sequences first ... last-1 and, where `posteriors` says where to, add up what smoothing finds.

    Without, `filtered` and `ahead` (n, k) get p(z_t | x_0 ... x_t) and p(z_t | x_0 ... x_t-1) of all steps. With it, they
    are room for the longest sequence.

    `stuck` gets the step at which a sequence becomes impossible, else -1; `IN_LOGS` where it is left to logarithms, and
    `STILL_LOSING`, only without smoothing, where what was dropped could matter to steps that follow.
    """
    k = len(chain.start)
    shared = len(chain.moves) == 1
    smoothing = len(posteriors.into) > 0
    counted = len(posteriors.pairs) > 0
    chain = pointers(chain)
    posteriors = pointers(posteriors)
    filtered = pointer(filtered)
    ahead = pointer(ahead)
    room = pointer(room)
    log_probs = pointer(log_probs)
    stuck = pointer(stuck)
    for s in range(first, last):
        a = chain.offsets[s]
        b = chain.offsets[s + 1]
        _forward(s, k, 0 if smoothing else a, shared, chain, filtered, ahead, room, (log_probs, stuck))
        if smoothing:
            if stuck[s] == STILL_LOSING:
                stuck[s] = -1
            if stuck[s] == -1:
                for j in range(k):
                    room[NOW * k + j] = filtered[(b - 1 - a) * k + j]
                smooth_back(a, b, k, shared, counted, chain, (filtered, ahead), room, posteriors)


@inner(bare=True)
def _ways(t, moves_left, turn, k, shared, chain, room, origins):
    """Move best scores from step t along the chain (turn 1) or against it (turn -1); return what was taken off them.

    Scores of coming states, before what is seen there, lie in the first k places of the room; `origins[n]` gets the state
    from which the best way of the n-th move leads into each. Scores stay small, so that paths of a million steps are told
    apart; Kahan's sum keeps what is taken off.
    """
    total = 0.0
    lost = 0.0
    scores = room
    ahead = beyond(room, k)
    for n in range(moves_left):
        m = chain.moves[0] if shared else chain.moves[t + 1 if turn > 0 else t]
        seen = beyond(chain.logs, chain.codes[t] * k)
        top = best_step(k, beyond(chain.tables, m * k * k), scores, seen, ahead, beyond(origins, n * k))
        if -np.inf < top and not -16.0 < top < 16.0:
            for j in range(k):
                ahead[j] -= top
            more = top - lost
            new = total + more
            lost = (new - total) - more
            total = new
        scores, ahead = ahead, scores
        t += turn
    for j in range(k):
        room[j] = scores[j]
    return total


@inner(bare=True)
def _follow(t, moves_left, turn, state, k, origins, paths):
    """Write the states that best ways came through, from step t, where it is `state`, back to where they began."""
    for n in range(moves_left - 1, -1, -1):
        state = np.int64(origins[n * k + state])
        t -= turn
        paths[t] = state


@kernel(bare=True)
def best_paths(first, last, chain, room, origins, paths, log_probs):
    """Write a most probable path of each sequence and log p(path, observed) (Viterbi).

    `origins` (steps, k) is room for the longest sequence, of whole numbers that hold k.
    """
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    room = pointer(room)
    origins = pointer(origins)
    paths = pointer(paths)
    log_probs = pointer(log_probs)
    for s in range(first, last):
        a = chain.offsets[s]
        b = chain.offsets[s + 1]
        for j in range(k):
            room[j] = chain.start[j]
        lost = _ways(a, b - 1 - a, 1, k, shared, chain, room, origins)
        seen = beyond(chain.logs, chain.codes[b - 1] * k)
        best = 0
        for j in range(k):
            room[j] += seen[j]
            if room[j] > room[best]:
                best = j
        log_probs[s] = lost + room[best]
        paths[b - 1] = best
        _follow(b - 1, b - 1 - a, 1, best, k, origins, paths)


@kernel(bare=True)
def best_ways(t, moves_left, turn, chain, room, origins):
    """Move best scores along the chain or against it, for a path that is found from both ends; see `_ways`."""
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    room = pointer(room)
    origins = pointer(origins)
    return _ways(t, moves_left, turn, k, shared, chain, room, origins)


@kernel(bare=True)
def follow_ways(t, moves_left, turn, state, origins, paths):
    """Write the states that best ways came through; see `_follow`."""
    k = origins.shape[1]
    origins = pointer(origins)
    paths = pointer(paths)
    _follow(t, moves_left, turn, state, k, origins, paths)


@kernel
def ranked_paths(first, last, chain, paths, log_probs):
    """Write the most probable paths `(n, steps)` of each sequence, best first, and `log_probs (sequences, n)`.

    Where there are fewer possible ones, the log probabilities of the rest are minus infinity. List Viterbi (Seshadri and
    Sundberg 1994): each state keeps its n best ways there, merged from the sorted ways to its predecessors.
    """
    offsets, start, tables, moves, logs, codes = chain
    k, n = len(start), len(paths)
    shared = len(moves) == 1
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    back = np.empty((longest, k, n), np.int64)
    score = np.empty((k, n))
    ahead = np.empty((k, n))
    at = np.empty(k, np.int64)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        for j in range(k):
            score[j, 0] = start[j] + logs[codes[a], j]
            for q in range(1, n):
                score[j, q] = -np.inf
        for t in range(a + 1, b):
            m = moves[0] if shared else moves[t]
            r = codes[t]
            for j in range(k):
                for i in range(k):
                    at[i] = 0
                for q in range(n):
                    best = -1
                    most = -np.inf
                    for i in range(k):
                        if at[i] < n and score[i, at[i]] + tables[m, i, j] > most:
                            most = score[i, at[i]] + tables[m, i, j]
                            best = i
                    ahead[j, q] = most + logs[r, j]
                    back[t - a, j, q] = -1
                    if best >= 0:
                        back[t - a, j, q] = best * n + at[best]
                        at[best] += 1
            for j in range(k):
                for q in range(n):
                    score[j, q] = ahead[j, q]
        for i in range(k):
            at[i] = 0
        for q in range(n):
            best = -1
            most = -np.inf
            for i in range(k):
                if at[i] < n and score[i, at[i]] > most:
                    most = score[i, at[i]]
                    best = i
            log_probs[s, q] = most
            if best < 0:
                continue
            way = best * n + at[best]
            at[best] += 1
            for t in range(b - 1, a - 1, -1):
                paths[q, t] = way // n
                if t > a:
                    way = back[t - a, way // n, way % n]


@kernel
def draw_paths(first, last, chain, filtered, seeds, paths):
    """Write paths `(n, steps)` drawn given what was observed, backwards from filtered probabilities.

    `seeds (sequences, 4)` are states of random numbers, so that draws do not depend on who makes them.
    """
    offsets, tables, moves = chain.offsets, chain.tables, chain.moves
    k = filtered.shape[1]
    shared = len(moves) == 1
    weight = np.empty(k)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        for q in range(len(paths)):
            after = 0
            for t in range(b - 1, a - 1, -1):
                total = 0.0
                for i in range(k):
                    if t == b - 1:
                        weight[i] = filtered[t, i]
                    else:
                        weight[i] = filtered[t, i] * tables[moves[0] if shared else moves[t + 1], i, after]
                    total += weight[i]
                left = uniform(seeds[s]) * total
                after = -1
                for i in range(k):
                    if weight[i] > 0.0 and (after < 0 or left >= 0.0):
                        after = i
                    left -= weight[i]
                paths[q, t] = after
