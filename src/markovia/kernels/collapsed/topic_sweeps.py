"""Collapsed Gibbs sweeps of topics: every word of a block draws its topic given all others.

The weights of all topics are multiplied out, sixteen at a time as processors like it. For up to some hundred topics this
beats sparse and alias sampling, and the draws are exact. Tables are padded with zeros to a multiple of sixteen topics.
"""

from math import lgamma

import numpy as np

from markovia.kernels.collapsed.sixteen_lanes import draw_lane
from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer
from markovia.kernels.random_numbers import advance


@kernel(bare=True)
def sweep(words, owners, topics, low, high, word_topic, document_topic, totals, prior, mass, seed, room):
    """Draw the topics of the words low ... high-1, those of a document one after the other.

    words, owners, topics (words): rows of word_topic and document_topic; the topic, -1 for none yet. word_topic (V, K'):
    counts with the prior added, float32. document_topic (D, K'): counts, int32. totals (K'): the sums of word_topic over
    the words of this block. prior (K'): of documents, float32, zero in the padding. mass (K'): the probability of the
    block's words in each topic. seed (4). room (3, K'), float32.
    """
    width = word_topic.shape[1]
    chunks = width // 16
    words, owners, topics = pointer(words), pointer(owners), pointer(topics)
    table, counts, prior, seed = pointer(word_topic), pointer(document_topic), pointer(prior), pointer(seed)
    totals, mass, weight = pointer(totals), pointer(mass), pointer(room)
    rate, product = beyond(weight, width), beyond(weight, 2 * width)
    one = np.float32(1.0)
    for k in range(width):
        rate[k] = np.float32(mass[k]) / np.float32(totals[k]) if prior[k] > 0.0 else np.float32(0.0)
    s0, s1, s2, s3 = seed[0], seed[1], seed[2], seed[3]
    last = np.int64(-1)
    mine = counts
    for i in range(low, high):
        owner = np.int64(owners[i])
        if owner != last:
            last = owner
            mine = beyond(counts, owner * width)
            for k in range(width):
                weight[k] = (np.float32(mine[k]) + prior[k]) * rate[k]
        row = beyond(table, np.int64(words[i]) * width)
        old = np.int64(topics[i])
        if old >= 0:
            mine[old] -= 1
            row[old] -= one
            total = totals[old] - 1.0
            totals[old] = total
            speed = np.float32(mass[old]) / np.float32(total)
            rate[old] = speed
            weight[old] = (np.float32(mine[old]) + prior[old]) * speed
        number, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
        new, left = draw_lane(weight, row, product, chunks, np.float32(number))
        if chunks <= 8:  # without a branch that cannot be foreseen
            place = new
            upto = np.float32(0.0)
            for _ in range(chunks - 1):
                upto += product[place]
                place += 16
                new += 16 if upto <= left else 0
        else:
            while new + 16 < width and left >= product[new]:
                left -= product[new]
                new += 16
        if prior[new] <= 0.0:  # rounding may lead into the padding
            new = np.int64(0)
        topics[i] = new
        mine[new] += 1
        row[new] += one
        total = totals[new] + 1.0
        totals[new] = total
        speed = np.float32(mass[new]) / np.float32(total)
        rate[new] = speed
        weight[new] = (np.float32(mine[new]) + prior[new]) * speed
    seed[0], seed[1], seed[2], seed[3] = s0, s1, s2, s3


@kernel(bare=True)
def log_gammas(counts, prior, table, rows, width, wide):
    """Return the sum of `lgamma(n + prior) - lgamma(prior)` over the cells of counts (rows, wide), of which `width` count.

    prior (rows or 1, width), table (width, 256): that term for small counts where the prior is one row.
    """
    shared = prior.shape[0] == 1
    size = table.shape[1]
    counts, prior, table = pointer(counts), pointer(prior), pointer(table)
    total = 0.0
    for i in range(rows):
        for k in range(width):
            n = np.int64(counts[i * wide + k])
            if n > 0:
                if shared and n < size:
                    total += table[k * size + n]
                else:
                    p = prior[k] if shared else prior[i * width + k]
                    total += lgamma(n + p) - lgamma(p)
    return total
