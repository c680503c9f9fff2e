"""Taggers that learn from one sequence at a time: the structured perceptron and passive-aggressive steps.

For each sequence the best labelling is found (Viterbi) and, where it is wrong, the weights move towards the features of the
right one and away from those of the found one. The mean of all weights on the way (Collins 2002) is
`weights - drift / steps`, where `drift` adds each change times the steps before it. A passive-aggressive step (PA-I; Crammer
et al. 2006) makes a labelling with n wrong labels score n less than the right one, as far as `most` allows.
Cost of a pass: tokens times (k squared plus k times features).
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def _best(n, scores, transitions, room, ahead, back, path):
    """Write a best path through n rows of scores; return its score."""
    k = scores.shape[1]
    for j in range(k):
        room[j] = scores[0, j]
    for t in range(1, n):
        for j in range(k):
            most, origin = -np.inf, 0
            for i in range(k):
                value = room[i] + transitions[i, j]
                if value > most:
                    most, origin = value, i
            ahead[j] = most + scores[t, j]
            back[t, j] = origin
        for j in range(k):
            room[j] = ahead[j]
    at = 0
    for j in range(1, k):
        if room[j] > room[at]:
            at = j
    found = room[at]
    for t in range(n - 1, -1, -1):
        path[t] = at
        at = back[t, at] if t > 0 else at
    return found


@kernel
def online_pass(order, tokens, free, most, steps, weights, drift):
    """Go once through the sequences of `LabelledTokens` in this order; return the number of wrong labels.

    `weights`, which of them are `free` to change, and their `drift` are `ChainParameters`. `most` is the longest
    passive-aggressive step; 0 for the perceptron. `steps[0]` counts sequences. A label code of -1 is a token without label:
    the right labelling is then the best one that agrees with the others.
    """
    offsets, ptr, columns, values, codes = tokens
    transitions, base = weights.pair, weights.base
    k = len(transitions)
    longest = 1
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    scores = np.empty((longest, k))
    other = np.empty((longest, k))
    room = np.empty(k)
    ahead = np.empty(k)
    back = np.zeros((longest, k), np.int64)
    path = np.empty(longest, np.int64)
    right = np.empty(longest, np.int64)
    change = np.zeros(weights.state.shape)
    stamp = np.zeros(weights.state.shape, np.int64)
    pair_change = np.zeros((k, k))
    base_change = np.zeros((3, k))
    plain = len(values) == 0
    wrong = 0
    for q in range(len(order)):
        a = offsets[order[q]]
        n = offsets[order[q] + 1] - a
        if n == 0:
            continue
        steps[0] += 1.0
        # scores of labels at each token
        partly = False
        for t in range(n):
            for j in range(k):
                scores[t, j] = base[0, j]
            if t == 0:
                for j in range(k):
                    scores[t, j] += base[1, j]
            if t == n - 1:
                for j in range(k):
                    scores[t, j] += base[2, j]
            for p in range(ptr[a + t], ptr[a + t + 1]):
                v = 1.0 if plain else values[p]
                for j in range(k):
                    scores[t, j] += v * weights.state[columns[p], j]
            right[t] = codes[a + t]
            partly = partly or right[t] < 0
        # the right labelling and its score
        if partly:
            for t in range(n):
                for j in range(k):
                    other[t, j] = scores[t, j] if right[t] < 0 or right[t] == j else -np.inf
            aim = _best(n, other, transitions, room, ahead, back, right)
        else:
            aim = scores[0, right[0]]
            for t in range(1, n):
                aim += scores[t, right[t]] + transitions[right[t - 1], right[t]]
        # the labelling found; a passive-aggressive step looks for one that is wrong and still scores well
        if most > 0.0:
            for t in range(n):
                for j in range(k):
                    other[t, j] = scores[t, j] + (1.0 if codes[a + t] >= 0 and j != codes[a + t] else 0.0)
            found = _best(n, other, transitions, room, ahead, back, path)
        else:
            found = _best(n, scores, transitions, room, ahead, back, path)
        missed = 0
        for t in range(n):
            missed += codes[a + t] >= 0 and path[t] != right[t]
        wrong += missed
        if missed == 0:
            continue
        size = 1.0
        # three rounds: add up what differs, find its length (each entry once), make the step
        for action in range(3):
            length = 0.0
            if action == 1 and most == 0.0:
                continue
            for t in range(n):
                for side in range(2):
                    y = right[t] if side == 0 else path[t]
                    sign = 1.0 if side == 0 else -1.0
                    if right[t] != path[t]:
                        for p in range(ptr[a + t], ptr[a + t + 1]):
                            c = columns[p]
                            if not free.state[c, y]:
                                continue
                            if action == 0:
                                change[c, y] += sign * (1.0 if plain else values[p])
                            elif action == 1:
                                if stamp[c, y] != q + 1:
                                    stamp[c, y] = q + 1
                                    length += change[c, y] ** 2
                            else:
                                step = size * change[c, y]
                                weights.state[c, y] += step
                                drift.state[c, y] += (steps[0] - 1.0) * step
                                change[c, y] = 0.0
                        for b in range(3):
                            if free.base[b, y] and (b == 0 or (b == 1 and t == 0) or (b == 2 and t == n - 1)):
                                if action == 0:
                                    base_change[b, y] += sign
                                elif action == 2:
                                    step = size * base_change[b, y]
                                    base[b, y] += step
                                    drift.base[b, y] += (steps[0] - 1.0) * step
                                    base_change[b, y] = 0.0
                    if t > 0:
                        x = right[t - 1] if side == 0 else path[t - 1]
                        if free.pair[x, y]:
                            if action == 0:
                                pair_change[x, y] += sign
                            elif action == 2:
                                step = size * pair_change[x, y]
                                transitions[x, y] += step
                                drift.pair[x, y] += (steps[0] - 1.0) * step
                                pair_change[x, y] = 0.0
            if action == 1:
                for j in range(k):
                    for b in range(3):
                        length += base_change[b, j] ** 2
                    for i in range(k):
                        length += pair_change[i, j] ** 2
                size = min(most, (found - aim) / length) if length > 0.0 else 0.0
    return wrong
