"""Recursions of chains of labelled segments over many sequences that lie one after the other in flat arrays.

A segmentation cuts a sequence into segments, each with a label and a length of at most D steps. Its score is the sum of
`start[label]` of the first segment, `moves[before, label]` of the others, `lengths[label, length - 1]` of each (`last` for
the segment that ends the sequence, which may go on unseen) and `scores[t, label]` of all steps. Arrays are those of
`segment_records`. A shift, `tops[t]`, is taken off the scores of each step, so that the sums stay small however long a
sequence is. Cost: steps times k times (k + D).
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform

FAR = 60.0
"""Terms smaller than the largest by this factor's exponential are left out of a sum."""


@inner(bare=True)
def _log_sum(terms, n):
    top = -np.inf
    for i in range(n):
        if terms[i] > top:
            top = terms[i]
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(n):
        if terms[i] > top - FAR:
            total += exp(terms[i] - top)
    return top + log(total)


@inner(bare=True)
def _pieces(a, t, j, table, scores, sweep, terms):
    """Write the logarithms of all segments j that end at t, by length from 1 on, and return how many there are."""
    begins, tops = sweep.begins, sweep.tops
    longest = table.shape[1]
    if longest > t - a + 1:
        longest = t - a + 1
    along = 0.0
    for d in range(longest):
        along += scores[t - d, j] - tops[t - d]
        if along == -np.inf:
            return d
        terms[d] = begins[t - d, j] + along + table[j, d]
    return longest


@inner(bare=True)
def _arrive(a, t, start, moves, ends, begins, terms):
    """Write what leads to a segment that begins at t."""
    k = len(start)
    for j in range(k):
        if t == a:
            begins[t, j] = start[j]
        else:
            for i in range(k):
                terms[i] = ends[t - 1, i] + moves[i, j]
            begins[t, j] = _log_sum(terms, k)


@kernel(bare=True)
def forward_segments(first, last_one, tables, sweep, terms):
    """Write the sweep of sequences first ... last_one-1; `terms` has room for one number a label, or a length."""
    offsets, start, moves, lengths, last, scores = tables
    begins, ends, tops, log_probs = sweep
    k = len(start)
    for s in range(first, last_one):
        a = offsets[s]
        b = offsets[s + 1]
        total = 0.0
        lost = 0.0
        for t in range(a, b):
            _arrive(a, t, start, moves, ends, begins, terms)
            tops[t] = 0.0
            top = -np.inf
            for j in range(k):
                table = last if t == b - 1 else lengths
                n = _pieces(a, t, j, table, scores, sweep, terms)
                ends[t, j] = _log_sum(terms, n)
                if ends[t, j] > top:
                    top = ends[t, j]
            if top == -np.inf:  # no segment may end here
                for j in range(k):
                    if scores[t, j] > top:
                        top = scores[t, j]
                if top == -np.inf:
                    top = 0.0
            tops[t] = top
            for j in range(k):
                ends[t, j] -= top
            more = top - lost
            new = total + more
            lost = (new - total) - more
            total = new
        for j in range(k):
            terms[j] = ends[b - 1, j]
        log_probs[s] = total + _log_sum(terms, k)


@kernel
def running_segments(first, last_one, tables, sweep, running):
    """Write the logarithms of what leads to a segment j that covers step t, as if the sequence ended there."""
    offsets = tables.offsets
    k, longest = tables.last.shape
    terms = np.empty(longest)
    for s in range(first, last_one):
        a, b = offsets[s], offsets[s + 1]
        for t in range(a, b):
            for j in range(k):
                n = _pieces(a, t, j, tables.last, tables.scores, sweep, terms)
                running[t, j] = _log_sum(terms, n)


@kernel(bare=True)
def backward_segments(first, last_one, tables, sweep, expected, open_at, shut_at, terms):
    """Add up `SegmentCounts`; steps get p(label of step t).

    `open_at` and `shut_at` have room for the longest sequence: what follows, given a segment that begins or ends there.
    """
    offsets, _, moves, lengths, last, scores = tables
    begins, ends, tops, log_probs = sweep
    steps, starts, pairs, counts, last_counts = expected
    k = lengths.shape[0]
    longest = lengths.shape[1]
    for s in range(first, last_one):
        a = offsets[s]
        b = offsets[s + 1]
        if log_probs[s] == -np.inf:
            continue
        for j in range(k):
            terms[j] = ends[b - 1, j]
        size = _log_sum(terms, k)
        for t in range(b - 1, a - 1, -1):
            row = t - a
            for i in range(k):
                if t == b - 1:
                    shut_at[row, i] = 0.0
                else:
                    for j in range(k):
                        terms[j] = moves[i, j] + open_at[row + 1, j]
                    shut_at[row, i] = _log_sum(terms, k)
                    for j in range(k):
                        pairs[i, j] += exp(ends[t, i] + terms[j] - size)
            for j in range(k):
                along = 0.0
                n = 0
                for d in range(longest if longest < b - t else b - t):
                    along += scores[t + d, j] - tops[t + d]
                    if along == -np.inf:
                        break
                    weight = last[j, d] if t + d == b - 1 else lengths[j, d]
                    terms[d] = weight + along + shut_at[row + d, j]
                    n = d + 1
                open_at[row, j] = _log_sum(terms, n)
                if begins[t, j] + open_at[row, j] == -np.inf:
                    continue
                # a segment covers all its steps, so each step gets the sum over lengths that reach it
                reach = 0.0
                for d in range(n - 1, -1, -1):
                    p = exp(begins[t, j] + terms[d] - size)
                    reach += p
                    steps[t + d, j] += reach
                    if t + d == b - 1:
                        last_counts[j, d] += p
                    else:
                        counts[j, d] += p
                if t == a:
                    starts[j] += reach


@kernel(bare=True)
def best_segments(first, last_one, tables, room, labels, opens, log_probs):
    """Write the labels of a best segmentation of each sequence, 1 in `opens` where segments begin, and its score.

    The room is for the longest sequence: best scores of segments that begin and end at a step (steps, k), the labels before
    the first ones, the lengths of the others, and what is taken off each step.
    """
    offsets, start, moves, lengths, last, scores = tables
    begins, ends, before, long, tops = room
    k = lengths.shape[0]
    longest = lengths.shape[1]
    for s in range(first, last_one):
        a = offsets[s]
        b = offsets[s + 1]
        total = 0.0
        for t in range(a, b):
            row = t - a
            for j in range(k):
                begins[row, j] = start[j] if t == a else -np.inf
                before[row, j] = 0
                if t > a:
                    for i in range(k):
                        value = ends[row - 1, i] + moves[i, j]
                        if value > begins[row, j]:
                            begins[row, j] = value
                            before[row, j] = i
            top = -np.inf
            tops[row] = 0.0
            for j in range(k):
                ends[row, j] = -np.inf
                long[row, j] = 1
                along = 0.0
                for d in range(longest if longest < row + 1 else row + 1):
                    along += scores[t - d, j] - tops[row - d]
                    value = begins[row - d, j] + along + (last[j, d] if t == b - 1 else lengths[j, d])
                    if value > ends[row, j]:
                        ends[row, j] = value
                        long[row, j] = d + 1
                if ends[row, j] > top:
                    top = ends[row, j]
            if top == -np.inf:  # no segment may end here
                for j in range(k):
                    if scores[t, j] > top:
                        top = scores[t, j]
                if top == -np.inf:
                    top = 0.0
            tops[row] = top
            total += top
            for j in range(k):
                ends[row, j] -= top
        best = 0
        for j in range(1, k):
            if ends[b - 1 - a, j] > ends[b - 1 - a, best]:
                best = j
        log_probs[s] = total + ends[b - 1 - a, best]
        if log_probs[s] == -np.inf:
            continue
        # back along the best way
        t = b - 1
        while t >= a:
            d = long[t - a, best]
            for u in range(t - d + 1, t + 1):
                labels[u] = best
                opens[u] = 0
            opens[t - d + 1] = 1
            t -= d
            best = before[t + 1 - a, best]


@kernel(bare=True)
def ranked_segments(first, last_one, tables, ways, along, at, labels, opens, log_probs):
    """Write the best segmentations of each sequence, best first: `labels (n, steps)`, `opens`, `log_probs (sequences, n)`.

    Where there are fewer possible ones, the rest have minus infinity. Every label keeps its n best ways to begin and to end
    a segment at each step, merged from sorted ones (as in `hidden_chain.ranked_paths`): `ways` are four arrays (steps,
    labels, n), scores of both and, in whole numbers, their origins. `along` and `at` are room for one merge.
    """
    offsets, start, moves, lengths, last, scores = tables
    begins, ends, came, went = ways
    k = lengths.shape[0]
    longest = lengths.shape[1]
    n = labels.shape[0]
    for s in range(first, last_one):
        a = offsets[s]
        b = offsets[s + 1]
        for t in range(a, b):
            row = t - a
            for j in range(k):
                # ways to begin: merge the ways to end one step before
                for i in range(k):
                    at[i] = 0
                for q in range(n):
                    best = -1
                    most = -np.inf
                    if row == 0:
                        if q == 0:
                            most = start[j]
                    else:
                        for i in range(k):
                            if at[i] < n and ends[row - 1, i, at[i]] + moves[i, j] > most:
                                most = ends[row - 1, i, at[i]] + moves[i, j]
                                best = i
                    begins[row, j, q] = most
                    came[row, j, q] = -1
                    if best >= 0:
                        came[row, j, q] = best * n + at[best]
                        at[best] += 1
                # ways to end: merge the ways to begin d steps before
                total = 0.0
                for d in range(longest):
                    if d <= row:
                        total += scores[t - d, j]
                        along[d] = total + (last[j, d] if t == b - 1 else lengths[j, d])
                    at[d] = 0
                for q in range(n):
                    best = -1
                    most = -np.inf
                    for d in range(longest):
                        if d <= row and at[d] < n and begins[row - d, j, at[d]] + along[d] > most:
                            most = begins[row - d, j, at[d]] + along[d]
                            best = d
                    ends[row, j, q] = most
                    went[row, j, q] = -1
                    if best >= 0:
                        went[row, j, q] = best * n + at[best]
                        at[best] += 1
        # the best ends of the whole sequence, each walked back to its beginning
        for i in range(k):
            at[i] = 0
        for q in range(n):
            best = -1
            most = -np.inf
            for i in range(k):
                if at[i] < n and ends[b - 1 - a, i, at[i]] > most:
                    most = ends[b - 1 - a, i, at[i]]
                    best = i
            log_probs[s, q] = most
            if best >= 0:
                label = best
                rank = at[best]
                at[best] += 1
                t = b - 1
                while t >= a:
                    way = went[t - a, label, rank]
                    begun = t - way // n
                    for u in range(begun, t + 1):
                        labels[q, u] = label
                        opens[q, u] = 0
                    opens[q, begun] = 1
                    way = came[begun - a, label, way % n]
                    label = way // n
                    rank = way % n
                    t = begun - 1


@inner
def _pick(terms, n, seed):
    """Return a place in `terms`, drawn by their exponentials; n where all are minus infinity."""
    top = -np.inf
    for i in range(n):
        if terms[i] > top:
            top = terms[i]
    total = 0.0
    for i in range(n):
        total += exp(terms[i] - top)
    left = uniform(seed) * total
    found = n
    for i in range(n):
        weight = exp(terms[i] - top)
        if weight > 0.0 and (found == n or left >= 0.0):
            found = i
        left -= weight
    return found


@kernel
def draw_segments(first, last_one, tables, sweep, seeds, labels, opens):
    """Write segmentations drawn by their scores, backwards: `labels (n, steps)`, and 1 in `opens` where segments begin."""
    offsets, _, moves, lengths, last, scores = tables
    k, longest = lengths.shape
    terms = np.empty(max(k, longest))
    for s in range(first, last_one):
        a, b = offsets[s], offsets[s + 1]
        for q in range(len(labels)):
            t = b - 1
            label = 0
            while t >= a:
                for i in range(k):
                    terms[i] = sweep.ends[t, i] + (0.0 if t == b - 1 else moves[i, label])
                label = _pick(terms, k, seeds[s])
                table = last if t == b - 1 else lengths
                n = _pieces(a, t, label, table, scores, sweep, terms)
                d = _pick(terms, n, seeds[s]) + 1
                for u in range(t - d + 1, t + 1):
                    labels[q, u] = label
                    opens[q, u] = 0
                opens[q, t - d + 1] = 1
                t -= d
