"""A sweep over the topics of all words of documents under a hierarchical Dirichlet process: direct assignment.

A token's topic is drawn from (n_dk + alpha beta_k) (n_kw + eta) / (n_k + V eta); a topic nobody has yet from what is left of
beta. Slots of topics that died have weight 0, so that no loop asks about them. Reference: Teh and others (2006).
"""

from math import lgamma

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer
from markovia.kernels.random_numbers import uniform

ALPHA, GAMMA, ETA, REST, LOG_PROB = range(5)
DOCUMENT, TOKEN, HIGH = range(3)


@kernel(bare=True)
def sweep(
    words,
    offsets,
    topics,
    by_word,
    totals,
    weights,
    tables,
    numbers,
    at,
    prior,
    cumulative,
    inverse,
    local,
    s,
):
    """Go on from `at` until all documents are done (True) or a topic needs a slot that is not there (False).

    words (tokens,), offsets (documents + 1,), topics (tokens,; -1 for none yet), by_word (words, slots), totals, weights and
    tables (slots,); numbers: alpha, gamma, eta, the weight of all other topics, log p(topics); at: document, token, slots
    that were ever in use; prior, cumulative, inverse and local (slots,) are rooms.
    """
    alpha, gamma, eta, rest = numbers[ALPHA], numbers[GAMMA], numbers[ETA], numbers[REST]
    documents = len(offsets) - 1
    v, slots = by_word.shape
    words, offsets, topics, by_word = pointer(words), pointer(offsets), pointer(topics), pointer(by_word)
    totals, weights, tables, s = pointer(totals), pointer(weights), pointer(tables), pointer(s)
    prior, cumulative, inverse, local = pointer(prior), pointer(cumulative), pointer(inverse), pointer(local)
    flat, high, document = eta * v, at[HIGH], at[DOCUMENT]
    log_prob = numbers[LOG_PROB]
    for k in range(slots):
        inverse[k] = 1.0 / (totals[k] + flat)
    while document < documents:
        a, b = offsets[document], offsets[document + 1]
        for k in range(high):
            local[k] = 0
        for i in range(a, b):
            if topics[i] >= 0:
                local[topics[i]] += 1
        for k in range(high):
            prior[k] = local[k] + alpha * weights[k]
        for i in range(a if a > at[TOKEN] else at[TOKEN], b):
            old = np.int64(topics[i])
            row = beyond(by_word, np.int64(words[i]) * slots)
            if old >= 0:
                row[old] -= 1
                totals[old] -= 1
                local[old] -= 1
                prior[old] -= 1.0
                inverse[old] = 1.0 / (totals[old] + flat)
                if totals[old] == 0:  # nobody has it any more: its weight goes back to what is left
                    rest += weights[old]
                    weights[old] = 0.0
                    prior[old] = 0.0
            total = 0.0
            for k in range(high):
                total += prior[k] * (row[k] + eta) * inverse[k]
                cumulative[k] = total
            u = uniform(s) * (total + alpha * rest / v)
            new = 0
            if u < total:
                while cumulative[new] <= u:
                    new += 1
            else:
                while new < high and weights[new] > 0.0:
                    new += 1
                if new == slots:  # the token waits without a topic
                    topics[i] = -1
                    at[DOCUMENT] = document
                    at[TOKEN] = i
                    at[HIGH] = high
                    numbers[REST] = rest
                    numbers[LOG_PROB] = log_prob
                    return False
                if new == high:
                    high += 1
                    row[new] = 0
                    totals[new] = 0
                # a stick of Beta(1, gamma) of what is left
                share = 1.0 - uniform(s) ** (1.0 / gamma)
                weights[new] = share * rest if share * rest > 1e-300 else 1e-300
                rest *= 1.0 - share
                local[new] = 0
                prior[new] = alpha * weights[new]
            topics[i] = new
            row[new] += 1
            totals[new] += 1
            local[new] += 1
            prior[new] += 1.0
            inverse[new] = 1.0 / (totals[new] + flat)
        at[TOKEN] = b
        log_prob += lgamma(alpha) - lgamma(alpha + (b - a))
        for k in range(high):
            if local[k] > 0:
                strength = alpha * weights[k]
                log_prob += lgamma(strength + local[k]) - lgamma(strength)
                for n in range(local[k]):  # at how many tables of the document the topic is served
                    if uniform(s) * (strength + n) < strength:
                        tables[k] += 1
        document += 1
    at[DOCUMENT] = document
    at[HIGH] = high
    numbers[REST] = rest
    numbers[LOG_PROB] = log_prob
    return True
