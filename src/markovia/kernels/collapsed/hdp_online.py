"""The variational step for documents of a hierarchical Dirichlet process whose topics are known up to their posterior.

Sticks t of a document stand for topics k with the probabilities c_tk; words choose sticks. Reference: Wang, Paisley and Blei
(2011). Cost of a round: words times sticks times topics.
"""

from math import exp, inf, log

from markovia.kernels.kernel import inner, kernel

SMALL = 1e-4
"""A share of a word below which it tells nothing."""


@kernel
def documents(
    starts,
    ids,
    counts,
    log_words,
    log_topics,
    alpha,
    rounds,
    tol,
    choice,
    share,
    sticks,
    room,
    by_word,
    served,
    found,
):
    """Add what documents say to by_word (words, topics) and served (topics,); fill found (documents, topics).

    Document d has the words ids and counts from starts[d] to starts[d + 1]; log_words (words, topics) and log_topics
    (topics,) are means of logarithms. Rooms: choice (sticks, topics), share (longest, sticks), sticks (sticks, 2) and
    room (2, topics).
    """
    n_sticks, n_topics = choice.shape
    for d in range(len(starts) - 1):
        a, b = starts[d], starts[d + 1]
        _begin(a, b, ids, counts, log_words, log_topics, choice, room)
        for t in range(n_sticks):
            sticks[t, 0] = 1.0
            sticks[t, 1] = alpha
        before = -1.0
        for _ in range(rounds):
            _share_words(a, b, ids, log_words, choice, sticks, share, room)
            rest, total = 0.0, 0.0
            for t in range(n_sticks - 1, -1, -1):
                sum_ = 0.0
                for i in range(a, b):
                    sum_ += counts[i] * share[i - a, t]
                sticks[t, 0] = 1.0 + sum_
                sticks[t, 1] = alpha + rest
                rest += sum_
            for t in range(n_sticks):
                for k in range(n_topics):
                    choice[t, k] = log_topics[k]
                for i in range(a, b):
                    weight = counts[i] * share[i - a, t]
                    if weight > SMALL:
                        for k in range(n_topics):
                            choice[t, k] += weight * log_words[ids[i], k]
                _normalise(choice, t)
                total += sticks[t, 0] * sticks[t, 0]
            if abs(total - before) < tol * total:
                break
            before = total
        for k in range(n_topics):
            found[d, k] = 0.0
        for t in range(n_sticks):
            for k in range(n_topics):
                served[k] += choice[t, k]
        for i in range(a, b):
            for t in range(n_sticks):
                weight = counts[i] * share[i - a, t]
                if weight > SMALL:
                    for k in range(n_topics):
                        by_word[ids[i], k] += weight * choice[t, k]
                        found[d, k] += weight * choice[t, k]


@inner
def _begin(a, b, ids, counts, log_words, log_topics, choice, room):
    """Let each stick stand for one of the topics that would explain most words of a document by themselves."""
    n_sticks, n_topics = choice.shape
    for k in range(n_topics):
        room[0, k] = 0.0
    for i in range(a, b):
        top, total = -inf, 0.0
        for k in range(n_topics):
            top = max(top, log_words[ids[i], k] + log_topics[k])
        for k in range(n_topics):
            room[1, k] = exp(log_words[ids[i], k] + log_topics[k] - top)
            total += room[1, k]
        for k in range(n_topics):
            room[0, k] += counts[i] * room[1, k] / total
    for t in range(n_sticks):
        best = 0
        for k in range(n_topics):
            choice[t, k] = 0.0
            if room[0, k] > room[0, best]:
                best = k
        choice[t, best] = 1.0
        room[0, best] = -1.0


@inner
def _share_words(a, b, ids, log_words, choice, sticks, share, room):
    """Let the words of a document choose their sticks."""
    n_sticks, n_topics = choice.shape
    before = 0.0
    for t in range(n_sticks):
        both = _digamma(sticks[t, 0] + sticks[t, 1])
        room[1, t] = before + (_digamma(sticks[t, 0]) - both if t < n_sticks - 1 else 0.0)
        before += _digamma(sticks[t, 1]) - both
    for i in range(a, b):
        for t in range(n_sticks):
            sum_ = room[1, t]
            for k in range(n_topics):
                if choice[t, k] > SMALL:
                    sum_ += choice[t, k] * log_words[ids[i], k]
            share[i - a, t] = sum_
        _normalise(share, i - a)


@inner
def _normalise(logs, row):
    """Turn the logarithms of a row into probabilities."""
    top, total = -inf, 0.0
    for k in range(logs.shape[1]):
        top = max(top, logs[row, k])
    for k in range(logs.shape[1]):
        logs[row, k] = exp(logs[row, k] - top)
        total += logs[row, k]
    for k in range(logs.shape[1]):
        logs[row, k] /= total


@inner
def _digamma(x):
    """Return the derivative of the logarithm of the gamma function; seven digits are enough here."""
    found = 0.0
    while x < 6.0:
        found -= 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    return found + log(x) - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
