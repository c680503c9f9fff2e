"""Documents given the words of topics: draws of their topics, and how probable they are from left to right."""

from math import log

import numpy as np

from markovia.kernels.collapsed.sixteen_lanes import draw_lane
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer
from markovia.kernels.random_numbers import uniform


@inner(bare=True)
def drawn(weight, row, product, width, last, seed):
    """Return a topic in proportion to the products of two rows; `last` is the last that is no padding."""
    new, left = draw_lane(weight, row, product, width // 16, np.float32(uniform(seed)))
    while new + 16 < width and left >= product[new]:
        left -= product[new]
        new += 16
    return min(new, last)


@kernel(bare=True)
def given_proportions(words, owners, proportions, table, low, high, last, topics, seed, room):
    """Draw the topics of the words low ... high-1, given each document's proportions (D, K') and each word's row (V, K')."""
    width = table.shape[1]
    words, owners, topics, seed = pointer(words), pointer(owners), pointer(topics), pointer(seed)
    proportions, table, room = pointer(proportions), pointer(table), pointer(room)
    for i in range(low, high):
        weight = beyond(proportions, np.int64(owners[i]) * width)
        topics[i] = drawn(weight, beyond(table, np.int64(words[i]) * width), room, width, last, seed)


@kernel(bare=True)
def average_topics(
    words, offsets, low, high, table, prior, burn_in, sweeps, last, average, topics, seeds, room
):
    """Write the mean of `counts + prior` over Gibbs sweeps of each of the documents low ... high-1 into average (D, K').

    table (V, K'): the probability of each word in each topic, float32. topics (words): room. seeds (D, 4): of documents,
    so that a document's draws do not depend on the others. room (2, K').
    """
    width = table.shape[1]
    words, offsets, table, prior = pointer(words), pointer(offsets), pointer(table), pointer(prior)
    average, topics, seeds, weight = pointer(average), pointer(topics), pointer(seeds), pointer(room)
    product = beyond(weight, width)
    one = np.float32(1.0)
    for d in range(low, high):
        seed = beyond(seeds, np.int64(4 * d))
        total = beyond(average, np.int64(d * width))
        for k in range(width):
            weight[k] = prior[k]
            total[k] = 0.0
        for step in range(burn_in + sweeps):
            for i in range(offsets[d], offsets[d + 1]):
                if step > 0:
                    weight[topics[i]] -= one
                row = beyond(table, np.int64(words[i]) * width)
                new = drawn(weight, row, product, width, last, seed)
                topics[i] = new
                weight[new] += one
            if step >= burn_in:
                for k in range(width):
                    total[k] += weight[k]
        for k in range(width):
            total[k] /= sweeps


@kernel(bare=True)
def left_to_right(words, offsets, low, high, table, prior, particles, last, topics, found, seeds, room):
    """Write the log probability of each word of the documents low ... high-1, given those before it, into found (words).

    This is the left-to-right estimate (Wallach et al. 2009): each of some particles goes through the document, draws the
    topics of the words so far anew before each next word, and gives that word a probability; the mean over particles
    counts. topics (longest document). room (2, K'). Other arrays as in `average_topics`.
    """
    width = table.shape[1]
    words, offsets, table, prior = pointer(words), pointer(offsets), pointer(table), pointer(prior)
    topics, found, seeds, weight = pointer(topics), pointer(found), pointer(seeds), pointer(room)
    product = beyond(weight, width)
    one = np.float32(1.0)
    mass = 0.0
    for k in range(width):
        mass += prior[k]
    for d in range(low, high):
        seed = beyond(seeds, np.int64(4 * d))
        start = offsets[d]
        n = offsets[d + 1] - start
        for i in range(n):
            found[start + i] = 0.0
        for _ in range(particles):
            for k in range(width):
                weight[k] = prior[k]
            for i in range(n):
                for j in range(i):
                    weight[topics[j]] -= one
                    row = beyond(table, np.int64(words[start + j]) * width)
                    new = drawn(weight, row, product, width, last, seed)
                    topics[j] = new
                    weight[new] += one
                row = beyond(table, np.int64(words[start + i]) * width)
                new = drawn(weight, row, product, width, last, seed)
                p = 0.0
                for k in range(width):
                    p += product[k]
                found[start + i] += p / (mass + i)
                topics[i] = new
                weight[new] += one
        for i in range(n):
            found[start + i] = log(found[start + i] / particles)
