"""Expectation propagation on documents: a Dirichlet law of proportions, words put into it in turn, and the evidence."""

from math import lgamma, log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

HALVINGS, MARGIN = 20, 0.1
"""How often a step is halved that would leave no law without some word, after which it waits for the others; and the least
parameters that such a law may have, as shares of the prior's."""


@inner(bare=True)
def log_beta(a, n):
    """Return the logarithm of the integral of a Dirichlet law before it is normalised."""
    total, found = 0.0, 0.0
    for k in range(n):
        total += a[k]
        found += lgamma(a[k])
    return found - lgamma(total)


@inner(bare=True)
def without(gamma, site, row, cavity, share, n):
    """Take a word out of the law (`cavity`), and return its probability there; `share` are its topics' probabilities."""
    total, mass = 0.0, 0.0
    for k in range(n):
        cavity[k] = gamma[k] - site[k]
        total += cavity[k]
        share[k] = row[k] * cavity[k]
        mass += share[k]
    mass = max(mass, 1e-300)
    for k in range(n):
        share[k] /= mass
    return mass / total


@inner(bare=True)
def matched(cavity, share, law, n):
    """Write the Dirichlet law with the means and the sum of squares of the cavity's with one word more.

    That is a mixture of Dirichlet laws with a_k + 1 in place of a_k, by the word's topics.
    """
    total, squares, second = 1.0, 0.0, 0.0
    for k in range(n):
        total += cavity[k]
    for k in range(n):
        law[k] = (cavity[k] + share[k]) / total
        squares += law[k] * law[k]
        second += (cavity[k] + 1.0) * (cavity[k] + 2.0 * share[k]) / (total * (total + 1.0))
    size = (1.0 - second) / max(second - squares, 1e-300)
    for k in range(n):
        law[k] *= size


@inner(bare=True)
def step_length(gamma, law, site, highest, prior, count, n):
    """Return how far the law may move: halved until it stays one without any word, well above all sites."""
    length = 1.0
    for _ in range(HALVINGS):
        fits = True
        for k in range(n):
            moved = length * (law[k] - gamma[k])
            most = max(highest[k], site[k] + moved / count)
            fits = fits and gamma[k] + moved > most + MARGIN * prior[k]
        if fits:
            return length
        length *= 0.5
    return 0.0


@kernel(bare=True)
def propagate(starts, words, counts, table, prior, state, stats, logs, low, high, rule, room):
    """Find the Dirichlet laws of the documents low ... high-1, their log evidence, and what words expect of topics.

    starts (D+1), words, counts: rows of a sparse table. table (V, K): probabilities of words. prior (K). state (D, K):
    Dirichlet parameters. stats (V, K): expected topics of words are added; none where it has no rows. logs (D): the log
    evidence. rule (2): the most sweeps, and the mean change of state at which to stop. room (4 + longest, K): a law
    without one word, that word's topics, the law with it, the highest of all sites, and the site of each distinct word:
    what one occurrence of it adds to the state. Returns how many documents had not settled.
    """
    width = table.shape[1]
    keep = stats.shape[0] > 0
    starts, words, counts, table = pointer(starts), pointer(words), pointer(counts), pointer(table)
    prior, state, stats, logs = pointer(prior), pointer(state), pointer(stats), pointer(logs)
    most, tolerance, cavity = rule[0], rule[1], pointer(room)
    share, law = beyond(cavity, width), beyond(cavity, 2 * width)
    highest, sites = beyond(cavity, 3 * width), beyond(cavity, 4 * width)
    unsettled = 0
    for d in range(low, high):
        gamma = beyond(state, d * width)
        begin, end = starts[d], starts[d + 1]
        for k in range((end - begin) * width):
            sites[k] = 0.0
        change, step = 1e300, 0.0
        while step < most and change > tolerance:
            # what all sites say together, without the roundings of many steps
            for k in range(width):
                gamma[k] = prior[k]
                highest[k] = 0.0
                for i in range(begin, end):
                    site_k = sites[(i - begin) * width + k]
                    gamma[k] += counts[i] * site_k
                    highest[k] = max(highest[k], site_k)
            change = 0.0
            for i in range(begin, end if width > 1 else begin):
                site = beyond(sites, (i - begin) * width)
                without(gamma, site, beyond(table, words[i] * width), cavity, share, width)
                matched(cavity, share, law, width)
                length = step_length(gamma, law, site, highest, prior, counts[i], width)
                for k in range(width):
                    # an occurrence at a time: with all of them at once sites would overshoot
                    moved = length * (law[k] - gamma[k])
                    change += abs(law[k] - gamma[k])
                    gamma[k] += moved
                    site[k] += moved / counts[i]
                    highest[k] = max(highest[k], site[k])
            change /= width
            step += 1.0
        if change > tolerance:
            unsettled += 1
        whole = log_beta(gamma, width)
        found = whole - log_beta(prior, width)
        for i in range(begin, end):
            site, row = beyond(sites, (i - begin) * width), beyond(table, words[i] * width)
            p = without(gamma, site, row, cavity, share, width)
            found += counts[i] * (log(p) + log_beta(cavity, width) - whole)
            if keep:
                out = beyond(stats, words[i] * width)
                for k in range(width):
                    out[k] += counts[i] * share[k]
        logs[d] = found
    return unsettled
