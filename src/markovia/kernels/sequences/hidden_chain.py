"""Recursions of hidden Markov chains over many sequences that lie one after the other in flat arrays.

A chain has `start (k,)` and `tables (m, k, k)`; the move into step t goes by table `moves[t]`, or by the only one where
`moves` has one entry. Step t is seen through row `codes[t]` of `logs (r, k)`, the log density of what was observed in each
state, so that steps with equal observations share a row; a row of zeros is a step that was not observed. `dens` are the
exponentials of `logs` less each row's largest entry, `tops`.

Sums are probabilities rescaled at each step (Rabiner 1989), the backward pass goes by filtered and predicted
probabilities alone, `p(z_t | all) = f_t * (A @ (p(z_t+1 | all) / ahead_t+1))`, in which nothing grows. A share of the mass
below 1e-290 is dropped; what was dropped is bounded from then on, state by state, until it is nothing beside what was kept
in the same state, and a sequence in which it may matter is left to `log_chain`. Sequences are independent: call the kernels
from several threads for different ranges of them.
Cost: steps times k squared.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer
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
FEW = 12
"""States up to which a loop over origins is quicker than one over states at once."""


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
def _forward(
    s,
    a,
    b,
    k,
    base,
    start,
    tables,
    moves,
    shared,
    logs,
    dens,
    tops,
    codes,
    filtered,
    ahead,
    room,
    log_probs,
    stuck,
):
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
                coming[j] = start[j]
        else:
            before = beyond(filtered, (row - 1) * k)
            table = beyond(tables, k * k * (moves[0] if shared else moves[t]))
            f = before[0]
            for j in range(k):
                coming[j] = f * table[j]
            for i in range(1, k):
                f = before[i]
                line = beyond(table, i * k)
                for j in range(k):
                    coming[j] += f * line[j]
            if losing:
                for j in range(k):
                    spread[j] = 0.0
                    for i in range(k):
                        spread[j] += lost[i] * table[i * k + j]
        r = codes[t]
        dense = beyond(dens, r * k)
        log_row = beyond(logs, r * k)
        size = 0.0
        for j in range(k):
            v = coming[j] * dense[j]
            now[j] = v
            size += v
        top = tops[r]
        if size < 1e-200:
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
        for j in range(k):
            now[j] *= inverse
            if now[j] < TINY:
                now[j] = 0.0
                losing = losing or (coming[j] > 0.0 and log_row[j] > -np.inf)
        if losing:
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


@inner(bare=True, fastmath=REORDERED)
def smooth_back(a, b, k, tables, moves, shared, filtered, ahead, room, into, starts, pairs, counted, sums):
    """Smooth steps a ... b-1 backwards from p(z_b-1 | all), which lies in the room; see `forward_backward`."""
    now = beyond(room, NOW * k)
    later = beyond(room, LATER * k)
    for j in range(k):
        sums[into[b - 1] * k + j] += now[j]
    for t in range(b - 2, a - 1, -1):
        row = t - a
        m = moves[0] if shared else moves[t + 1]
        coming = beyond(ahead, (row + 1) * k)
        for j in range(k):
            later[j] = now[j] / coming[j] if coming[j] > TINY else 0.0
        out = beyond(sums, into[t] * k)
        for i in range(k):
            f = filtered[row * k + i]
            line = beyond(tables, (m * k + i) * k)
            value = 0.0
            for j in range(k):
                value += line[j] * later[j]
            if counted:
                both = beyond(pairs, (m * k + i) * k)
                for j in range(k):
                    both[j] += f * later[j]
            now[i] = f * value
            out[i] += f * value
    for j in range(k):
        starts[j] += now[j]


@kernel(bare=True, fastmath=REORDERED)
def forward_backward(
    first,
    last,
    offsets,
    start,
    tables,
    moves,
    logs,
    dens,
    tops,
    codes,
    filtered,
    ahead,
    room,
    into,
    starts,
    pairs,
    sums,
    log_probs,
    stuck,
):
    """Filter sequences first ... last-1 and, where `into` says where to, add up what smoothing finds.

    Without `into`, `filtered` and `ahead` get p(z_t | x_0 ... x_t) and p(z_t | x_0 ... x_t-1) of all steps. With it, they
    are room for the longest sequence, and p(z_t | all) is added to `sums[into[t]]`, that of first steps to `starts`, and
    sums over two slices to `pairs`: times the chain's table, which is left to the caller. Where `pairs` is empty, they are
    not.

    `stuck` gets the step at which a sequence becomes impossible, else -1; `IN_LOGS` where it is left to logarithms, and
    `STILL_LOSING`, only without `into`, where what was dropped could matter to steps that follow.
    """
    k = len(start)
    shared = len(moves) == 1
    smoothing = len(into) > 0
    counted = len(pairs) > 0
    offsets = pointer(offsets)
    start = pointer(start)
    tables = pointer(tables)
    moves = pointer(moves)
    logs = pointer(logs)
    dens = pointer(dens)
    tops = pointer(tops)
    codes = pointer(codes)
    filtered = pointer(filtered)
    ahead = pointer(ahead)
    room = pointer(room)
    into = pointer(into)
    starts = pointer(starts)
    pairs = pointer(pairs)
    sums = pointer(sums)
    log_probs = pointer(log_probs)
    stuck = pointer(stuck)
    for s in range(first, last):
        a = offsets[s]
        b = offsets[s + 1]
        base = 0 if smoothing else a
        _forward(
            s,
            a,
            b,
            k,
            base,
            start,
            tables,
            moves,
            shared,
            logs,
            dens,
            tops,
            codes,
            filtered,
            ahead,
            room,
            log_probs,
            stuck,
        )
        if smoothing:
            if stuck[s] == STILL_LOSING:
                stuck[s] = -1
            if stuck[s] == -1:
                for j in range(k):
                    room[NOW * k + j] = filtered[(b - 1 - a) * k + j]
                smooth_back(
                    a, b, k, tables, moves, shared, filtered, ahead, room, into, starts, pairs, counted, sums
                )


@inner(bare=True)
def _ways(t, moves_left, turn, k, room, tables, moves, shared, logs, codes, back):
    """Move best scores from step t along the chain (turn 1) or against it (turn -1, tables turned); return what they lost.

    Scores lie in the first k places of the room. `back[n]` gets the best origin of each state at the n-th move. Scores stay
    small, so that paths of a million steps are told apart; Kahan's sum keeps what is taken off.
    """
    score = room
    ahead = beyond(room, k)
    origin = beyond(room, 2 * k)
    total = 0.0
    lost = 0.0
    for n in range(moves_left):
        seen = beyond(logs, codes[t] * k)
        top = -np.inf
        for j in range(k):
            score[j] += seen[j]
            if score[j] > top:
                top = score[j]
        if top > -np.inf:
            for j in range(k):
                score[j] -= top
            more = top - lost
            new = total + more
            lost = (new - total) - more
            total = new
        table = beyond(tables, k * k * (moves[0] if shared else moves[t + 1 if turn > 0 else t]))
        came = beyond(back, n * k)
        if k <= FEW:
            for j in range(k):
                best = score[0] + table[j]
                which = 0
                for i in range(1, k):
                    w = score[i] + table[i * k + j]
                    if w > best:
                        best = w
                        which = i
                ahead[j] = best
                came[j] = which
            for j in range(k):
                score[j] = ahead[j]
        else:
            for j in range(k):
                ahead[j] = score[0] + table[j]
                origin[j] = 0.0
            for i in range(1, k):
                v = score[i]
                line = beyond(table, i * k)
                for j in range(k):
                    w = v + line[j]
                    better = w > ahead[j]
                    ahead[j] = w if better else ahead[j]
                    origin[j] = i if better else origin[j]
            for j in range(k):
                score[j] = ahead[j]
                came[j] = int(origin[j])
        t += turn
    return total


@kernel(bare=True)
def best_paths(first, last, offsets, start, tables, moves, logs, codes, room, back, paths, log_probs):
    """Write a most probable path of each sequence and log p(path, observed) (Viterbi); `start`, `tables` are logarithms.

    `back` has room for the origins of all steps of the longest sequence.
    """
    k = len(start)
    shared = len(moves) == 1
    offsets = pointer(offsets)
    start = pointer(start)
    tables = pointer(tables)
    moves = pointer(moves)
    logs = pointer(logs)
    codes = pointer(codes)
    room = pointer(room)
    back = pointer(back)
    paths = pointer(paths)
    log_probs = pointer(log_probs)
    for s in range(first, last):
        a = offsets[s]
        b = offsets[s + 1]
        for j in range(k):
            room[j] = start[j]
        lost = _ways(a, b - 1 - a, 1, k, room, tables, moves, shared, logs, codes, back)
        seen = beyond(logs, codes[b - 1] * k)
        best = 0
        for j in range(k):
            room[j] += seen[j]
            if room[j] > room[best]:
                best = j
        log_probs[s] = lost + room[best]
        paths[b - 1] = best
        for t in range(b - 2, a - 1, -1):
            best = int(back[(t - a) * k + best])
            paths[t] = best


@kernel(bare=True)
def best_ways(t, moves_left, turn, room, tables, moves, logs, codes, back):
    """Move best scores along the chain or against it, for a path that is found from both ends; see `_ways`."""
    k = logs.shape[1]
    shared = len(moves) == 1
    room = pointer(room)
    tables = pointer(tables)
    moves = pointer(moves)
    logs = pointer(logs)
    codes = pointer(codes)
    back = pointer(back)
    return _ways(t, moves_left, turn, k, room, tables, moves, shared, logs, codes, back)


@kernel(bare=True)
def follow_ways(t, moves_left, turn, state, back, paths):
    """Write the states that best ways came through, from step t, where it is `state`, back to where they began."""
    for n in range(moves_left - 1, -1, -1):
        state = int(back[n, state])
        t -= turn
        paths[t] = state


@kernel
def ranked_paths(first, last, offsets, start, tables, moves, logs, codes, paths, log_probs):
    """Write the most probable paths `(n, steps)` of each sequence, best first, and `log_probs (sequences, n)`.

    Where there are fewer possible ones, the log probabilities of the rest are minus infinity. `start` and `tables` are
    logarithms. List Viterbi (Seshadri and Sundberg 1994): each state keeps its n best ways there, merged from the sorted
    ways to its predecessors.
    """
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
def draw_paths(first, last, offsets, tables, moves, filtered, seeds, paths):
    """Write paths `(n, steps)` drawn given what was observed, backwards from filtered probabilities.

    `seeds (sequences, 4)` are states of random numbers, so that draws do not depend on who makes them.
    """
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
