"""Recursions of hidden Markov chains over many sequences that lie one after the other in flat arrays.

Arrays are those of `chain_records`. Sums are probabilities rescaled at each step (Rabiner 1989), the backward pass goes by
filtered and predicted probabilities alone, `p(z_t | all) = f_t * (A @ (p(z_t+1 | all) / ahead_t+1))`, in which nothing
grows. A share of the mass below 1e-290 is dropped; what was dropped is bounded from then on, state by state, until it is
nothing beside what was kept in the same state, and a sequence in which it may matter is left to `log_chain`. Sequences are
independent: call the kernels from several threads for different ranges of them. Products with tables take four rows at a
time, which keeps sums of short rows in registers. Cost: steps times k squared.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers
from markovia.kernels.random_numbers import uniform

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


@kernel(bare=True)
def below_tops(first, last, logs, below, tops):
    """Write some rows less their largest entries; a row that is impossible in all states is minus infinity."""
    k = logs.shape[1]
    logs = pointer(logs)
    below = pointer(below)
    tops = pointer(tops)
    for r in range(first, last):
        row = beyond(logs, r * k)
        out = beyond(below, r * k)
        top = row[0]
        for j in range(1, k):
            if row[j] > top:
                top = row[j]
        if top == -np.inf:
            top = 0.0
        tops[r] = top
        for j in range(k):
            out[j] = row[j] - top


@inner(bare=True, fastmath=REORDERED)
def _times(k, table, x, out):
    """Write the product of a table (k, k) with a vector."""
    row = 0
    while row + 4 <= k:
        r0 = beyond(table, row * k)
        r1 = beyond(r0, k)
        r2 = beyond(r1, k)
        r3 = beyond(r2, k)
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(k):
            v = x[i]
            s0 += v * r0[i]
            s1 += v * r1[i]
            s2 += v * r2[i]
            s3 += v * r3[i]
        out[row], out[row + 1], out[row + 2], out[row + 3] = s0, s1, s2, s3
        row += 4
    while row < k:
        r0 = beyond(table, row * k)
        s0 = 0.0
        for i in range(k):
            s0 += x[i] * r0[i]
        out[row] = s0
        row += 1


@inner(bare=True, fastmath=REORDERED)
def _forward(s, a, b, k, base, shared, chain, filtered, ahead, room, log_probs, stuck):
    """Write filtered and predicted probabilities of steps a ... b-1 from row `base`, log p and an impossible step."""
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
        if t == a:
            for j in range(k):
                coming[j] = chain.start[j]
        else:
            table = beyond(chain.turned, k * k * (chain.moves[0] if shared else chain.moves[t]))
            _times(k, table, beyond(filtered, (row - 1) * k), coming)
            if losing:  # what was dropped moves along
                _times(k, table, lost, spread)
        r = chain.codes[t]
        dense = beyond(chain.dens, r * k)
        log_row = beyond(chain.logs, r * k)
        size = 0.0
        few = 0
        for j in range(k):
            v = coming[j] * dense[j]
            now[j] = v
            size += v
            few += 1 if v < SMALL else 0
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
        if few == 0 and inverse > 1e-80:
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
        coming = beyond(room, k)
        for j in range(k):
            coming[j] = chain.start[j]
        total = 0.0
        part = 0.0
        size = 1.0
        fine = True
        for t in range(a, b):
            r = chain.codes[t]
            if t > a:
                table = beyond(chain.turned, k * k * (chain.moves[0] if shared else chain.moves[t]))
                _times(k, table, room, coming)
            dense = beyond(chain.dens, r * k)
            size = 0.0
            few = 0
            for j in range(k):
                v = coming[j] * dense[j]
                room[j] = v
                size += v
                few += 1 if v < SMALL else 0
            if few > 0:  # fine only where it is a zero of the model
                log_row = beyond(chain.logs, r * k)
                for j in range(k):
                    if room[j] < SMALL and (room[j] > 0.0 or (coming[j] > 0.0 and log_row[j] > -np.inf)):
                        fine = False
            if not (fine and 0.0 < size < 1.0 / FAR):
                fine = False
                break
            part += chain.tops[r]
            if size < FAR:
                part += log(size)
                for j in range(k):
                    room[j] /= size
                size = 1.0
            if (t - a) % 1024 == 0:
                total += part
                part = 0.0
        log_probs[s] = total + (part + log(size)) if fine else np.nan


@inner(bare=True, fastmath=REORDERED)
def smooth_back(a, b, k, shared, counted, chain, filtered, ahead, room, posteriors):
    """Smooth steps a ... b-1 backwards from p(z_b-1 | all), which lies in the room; see `forward_backward`."""
    now = beyond(room, NOW * k)
    later = beyond(room, LATER * k)
    for j in range(k):
        posteriors.sums[posteriors.into[b - 1] * k + j] += now[j]
    for t in range(b - 2, a - 1, -1):
        m = chain.moves[0] if shared else chain.moves[t + 1]
        before = beyond(filtered, (t - a) * k)
        coming = beyond(ahead, (t - a + 1) * k)
        for j in range(k):
            later[j] = now[j] / coming[j] if coming[j] > TINY else 0.0
        _times(k, beyond(chain.tables, m * k * k), later, now)
        if counted:
            for i in range(k):
                f = before[i]
                both = beyond(posteriors.pairs, (m * k + i) * k)
                for j in range(k):
                    both[j] += f * later[j]
        out = beyond(posteriors.sums, posteriors.into[t] * k)
        for i in range(k):
            v = before[i] * now[i]
            now[i] = v
            out[i] += v
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
        _forward(s, a, b, k, 0 if smoothing else a, shared, chain, filtered, ahead, room, log_probs, stuck)
        if smoothing:
            if stuck[s] == STILL_LOSING:
                stuck[s] = -1
            if stuck[s] == -1:
                for j in range(k):
                    room[NOW * k + j] = filtered[(b - 1 - a) * k + j]
                smooth_back(a, b, k, shared, counted, chain, filtered, ahead, room, posteriors)


@inner(bare=True)
def _ways(t, moves_left, turn, k, shared, chain, room, scores):
    """Move best scores from step t along the chain (turn 1) or against it (turn -1); return what was taken off them.

    Scores of coming states lie in the first k places of the room; `scores[n]` gets those that the n-th move began with.
    They stay small, so that paths of a million steps are told apart; Kahan's sum keeps what is taken off.
    """
    total = 0.0
    lost = 0.0
    for n in range(moves_left):
        seen = beyond(chain.logs, chain.codes[t] * k)
        score = beyond(scores, n * k)
        top = -np.inf
        for j in range(k):
            v = room[j] + seen[j]
            score[j] = v
            top = v if v > top else top
        if -np.inf < top and not -16.0 < top < 16.0:
            for j in range(k):
                score[j] -= top
            more = top - lost
            new = total + more
            lost = (new - total) - more
            total = new
        # the best of all origins, for four states at a time; which it was is asked only along the path
        row = 0
        table = beyond(
            chain.tables, k * k * (chain.moves[0] if shared else chain.moves[t + 1 if turn > 0 else t])
        )
        while row + 4 <= k:
            r0 = beyond(table, row * k)
            r1 = beyond(r0, k)
            r2 = beyond(r1, k)
            r3 = beyond(r2, k)
            b0, b1, b2, b3 = -np.inf, -np.inf, -np.inf, -np.inf
            for i in range(k):
                v = score[i]
                w = v + r0[i]
                b0 = w if w > b0 else b0
                w = v + r1[i]
                b1 = w if w > b1 else b1
                w = v + r2[i]
                b2 = w if w > b2 else b2
                w = v + r3[i]
                b3 = w if w > b3 else b3
            room[row], room[row + 1], room[row + 2], room[row + 3] = b0, b1, b2, b3
            row += 4
        while row < k:
            r0 = beyond(table, row * k)
            b0 = -np.inf
            for i in range(k):
                w = score[i] + r0[i]
                b0 = w if w > b0 else b0
            room[row] = b0
            row += 1
        t += turn
    return total


@inner(bare=True)
def _follow(t, moves_left, turn, state, k, shared, chain, scores, paths):
    """Write the states that best ways came through, from step t, where it is `state`, back to where they began."""
    for n in range(moves_left - 1, -1, -1):
        m = chain.moves[0] if shared else chain.moves[t if turn > 0 else t + 1]
        row = beyond(chain.tables, (m * k + state) * k)
        score = beyond(scores, n * k)
        best = score[0] + row[0]
        state = 0
        for i in range(1, k):
            w = score[i] + row[i]
            if w > best:
                best = w
                state = i
        t -= turn
        paths[t] = state


@kernel(bare=True)
def best_paths(first, last, chain, room, scores, paths, log_probs):
    """Write a most probable path of each sequence and log p(path, observed) (Viterbi).

    `scores` (steps, k) is room for the longest sequence.
    """
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    room = pointer(room)
    scores = pointer(scores)
    paths = pointer(paths)
    log_probs = pointer(log_probs)
    for s in range(first, last):
        a = chain.offsets[s]
        b = chain.offsets[s + 1]
        for j in range(k):
            room[j] = chain.start[j]
        lost = _ways(a, b - 1 - a, 1, k, shared, chain, room, scores)
        seen = beyond(chain.logs, chain.codes[b - 1] * k)
        best = 0
        for j in range(k):
            room[j] += seen[j]
            if room[j] > room[best]:
                best = j
        log_probs[s] = lost + room[best]
        paths[b - 1] = best
        _follow(b - 1, b - 1 - a, 1, best, k, shared, chain, scores, paths)


@kernel(bare=True)
def best_ways(t, moves_left, turn, chain, room, scores):
    """Move best scores along the chain or against it, for a path that is found from both ends; see `_ways`."""
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    room = pointer(room)
    scores = pointer(scores)
    return _ways(t, moves_left, turn, k, shared, chain, room, scores)


@kernel(bare=True)
def follow_ways(t, moves_left, turn, state, chain, scores, paths):
    """Write the states that best ways came through; see `_follow`."""
    k = len(chain.start)
    shared = len(chain.moves) == 1
    chain = pointers(chain)
    scores = pointer(scores)
    paths = pointer(paths)
    _follow(t, moves_left, turn, state, k, shared, chain, scores, paths)


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
                        if at[i] < n and score[i, at[i]] + tables[m, j, i] > most:
                            most = score[i, at[i]] + tables[m, j, i]
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
