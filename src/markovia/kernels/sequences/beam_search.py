"""Beam search along hidden chains: at each step only the states with the best ways there go on (`chain_records`)."""

from math import inf

from markovia.kernels.kept_best import keep_best
from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer, pointers


@kernel(bare=True)
def beam_paths(first, last, chain, into, width, room, rest, back, paths, log_probs, bounds):
    """Write a path of each sequence, log p(path, observed), and a number that no path of the sequence is above.

    `into` (m, k) is the largest entry of each table's columns. Of every step `width` states go on, at most k; `back` (2,
    steps, width) is room for them and for which of the step before each came from, in a sequence of the most steps, as
    `rest` (steps,) is. `room` is (4, k).
    """
    k, shared = len(chain.start), len(chain.moves) == 1
    c = pointers(chain)
    step_size = back.shape[1] * width
    room, rest, kept, into = pointer(room), pointer(rest), pointer(back), pointer(into)
    paths, log_probs, bounds = pointers((paths, log_probs, bounds))
    origins = beyond(kept, step_size)
    scores, came, held, heap = room, beyond(room, k), beyond(room, 2 * k), beyond(room, 3 * k)
    for s in range(first, last):
        a, n = c.offsets[s], c.offsets[s + 1] - c.offsets[s]
        # the most that the steps after each can add: their best states, whatever the ones before
        total = 0.0
        for t in range(n - 1, -1, -1):
            rest[t] = total
            own = beyond(c.logs, c.codes[a + t] * k)
            move = beyond(into, (0 if shared else c.moves[a + t]) * k)
            best = -inf
            for j in range(k):
                best = max(best, own[j] + (move[j] if t > 0 else 0.0))
            total += best
        bound, count = -inf, 0
        for t in range(n):
            own = beyond(c.logs, c.codes[a + t] * k)
            for j in range(k):
                scores[j] = c.start[j] if t == 0 else -inf
                came[j] = 0
            if t > 0:
                table = beyond(c.tables, (0 if shared else c.moves[a + t]) * k * k)
                for i in range(count):
                    row, score = beyond(table, kept[(t - 1) * width + i] * k), held[i]
                    for j in range(k):
                        if score + row[j] > scores[j]:
                            scores[j] = score + row[j]
                            came[j] = i
            count = 0
            for j in range(k):
                scores[j] += own[j]
                if scores[j] == -inf:
                    continue
                out = keep_best(scores, heap, count, width, j)
                if out < 0:
                    count += 1
                else:
                    bound = max(bound, scores[out] + rest[t])
            for i in range(count):
                j = int(heap[i])
                kept[t * width + i] = j
                origins[t * width + i] = int(came[j])
                held[i] = scores[j]
            if count == 0:
                break
        best_of, value = 0, -inf
        for i in range(count):
            if held[i] > value:
                best_of, value = i, held[i]
        log_probs[s] = value
        bounds[s] = max(bound, value)
        for t in range(n - 1, -1, -1):
            if count == 0:
                paths[a + t] = 0
            else:
                paths[a + t] = kept[t * width + best_of]
                best_of = origins[t * width + best_of]
