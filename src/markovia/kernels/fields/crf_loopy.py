"""Approximate marginals of many pairwise fields at once: (tree-reweighted) belief propagation, mean field, Gibbs sweeps.

All nodes have k states; the log table of edge e is `tables[row[e]]`, its first axis the tail. Message 2e goes from tail to
head, 2e + 1 back. Belief propagation works in logarithms, node by node there and back, until no message changes; with
appearance probabilities `rho` below one it is the tree-reweighted form, whose value bounds log Z from above. Mean field
bounds it from below. Cost of a sweep: edges times k squared exponentials (mean field and Gibbs: additions).
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import kernel
from markovia.kernels.random_numbers import uniform


@kernel
def propagate_fields(
    which, node_ptr, ptr, links, tails, heads, row, rho, scores, tables, damping, tolerance, sweeps,
    message, beliefs, pairs, log_mass, error,
):  # fmt: skip
    """Write beliefs and the (reweighted) Bethe log mass of the listed graphs; add edge beliefs to `pairs[row[e]]`."""
    k = scores.shape[1]
    total = np.empty(k)
    fresh = np.empty(k)
    inner = np.empty(k)
    joint = np.empty((k, k))
    left = np.empty(k)
    right = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        first, last = node_ptr[g], node_ptr[g + 1]
        for i in range(first, last):
            for at in range(ptr[i], ptr[i + 1]):
                for a in range(k):
                    message[2 * links[at], a] = 0.0
                    message[2 * links[at] + 1, a] = 0.0
        change = np.inf
        sweep = 0
        while sweep < sweeps and change > tolerance:
            sweep += 1
            change = 0.0
            for step in range(2 * (last - first)):
                i = first + step if step < last - first else last - 1 - (step - (last - first))
                for a in range(k):
                    total[a] = scores[i, a]
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    coming = 2 * e + 1 if tails[e] == i else 2 * e
                    for a in range(k):
                        total[a] += rho[e] * message[coming, a]
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    from_tail = tails[e] == i
                    going = 2 * e if from_tail else 2 * e + 1
                    coming = 2 * e + 1 if from_tail else 2 * e
                    top_all = -np.inf
                    for b in range(k):
                        top = -np.inf
                        for a in range(k):
                            entry = tables[row[e], a, b] if from_tail else tables[row[e], b, a]
                            inner[a] = total[a] - message[coming, a] + entry / rho[e]
                            if inner[a] > top:
                                top = inner[a]
                        value = 0.0
                        for a in range(k):
                            value += exp(inner[a] - top)
                        fresh[b] = top + log(value)
                        if fresh[b] > top_all:
                            top_all = fresh[b]
                    for b in range(k):
                        new = (1.0 - damping) * (fresh[b] - top_all) + damping * message[going, b]
                        moved = abs(exp(new) - exp(message[going, b]))
                        if moved > change:
                            change = moved
                        message[going, b] = new
        error[g] = change if last > first and sweep > 0 else 0.0
        mass = 0.0
        for i in range(first, last):
            top = -np.inf
            for a in range(k):
                total[a] = scores[i, a]
            for at in range(ptr[i], ptr[i + 1]):
                e = links[at]
                coming = 2 * e + 1 if tails[e] == i else 2 * e
                for a in range(k):
                    total[a] += rho[e] * message[coming, a]
            for a in range(k):
                if total[a] > top:
                    top = total[a]
            size = 0.0
            for a in range(k):
                total[a] = exp(total[a] - top)
                size += total[a]
            for a in range(k):
                q = total[a] / size
                beliefs[i, a] = q
                if q > 0.0:
                    mass += q * (scores[i, a] - log(q))
        for i in range(first, last):
            for at in range(ptr[i], ptr[i + 1]):
                e = links[at]
                if tails[e] != i:
                    continue
                j = heads[e]
                size = 0.0
                top = -np.inf
                for a in range(k):
                    left[a] = log(beliefs[i, a] + 1e-300) - message[2 * e + 1, a]
                    right[a] = log(beliefs[j, a] + 1e-300) - message[2 * e, a]
                for a in range(k):
                    for b in range(k):
                        joint[a, b] = left[a] + right[b] + tables[row[e], a, b] / rho[e]
                        if joint[a, b] > top:
                            top = joint[a, b]
                for a in range(k):
                    for b in range(k):
                        joint[a, b] = exp(joint[a, b] - top)
                        size += joint[a, b]
                for a in range(k):
                    left[a] = 0.0
                    right[a] = 0.0
                for a in range(k):
                    for b in range(k):
                        joint[a, b] /= size
                        left[a] += joint[a, b]
                        right[b] += joint[a, b]
                for a in range(k):
                    for b in range(k):
                        q = joint[a, b]
                        pairs[row[e], a, b] += q
                        if q > 0.0:
                            mass += q * (tables[row[e], a, b] - rho[e] * log(q / (left[a] * right[b])))
        log_mass[g] = mass


@kernel
def mean_fields(
    which,
    node_ptr,
    ptr,
    links,
    tails,
    heads,
    row,
    scores,
    tables,
    tolerance,
    sweeps,
    beliefs,
    pairs,
    log_mass,
    error,
):
    """Write naive mean-field beliefs and the lower bound of log Z of the listed graphs."""
    k = scores.shape[1]
    total = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        first, last = node_ptr[g], node_ptr[g + 1]
        for i in range(first, last):
            top = scores[i, 0]
            for a in range(1, k):
                if scores[i, a] > top:
                    top = scores[i, a]
            size = 0.0
            for a in range(k):
                beliefs[i, a] = exp(scores[i, a] - top)
                size += beliefs[i, a]
            for a in range(k):
                beliefs[i, a] /= size
        change = np.inf
        sweep = 0
        while sweep < sweeps and change > tolerance:
            sweep += 1
            change = 0.0
            for step in range(2 * (last - first)):
                i = first + step if step < last - first else last - 1 - (step - (last - first))
                for a in range(k):
                    total[a] = scores[i, a]
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    from_tail = tails[e] == i
                    j = heads[e] if from_tail else tails[e]
                    for a in range(k):
                        for b in range(k):
                            total[a] += beliefs[j, b] * (
                                tables[row[e], a, b] if from_tail else tables[row[e], b, a]
                            )
                top = total[0]
                for a in range(1, k):
                    if total[a] > top:
                        top = total[a]
                size = 0.0
                for a in range(k):
                    total[a] = exp(total[a] - top)
                    size += total[a]
                for a in range(k):
                    moved = abs(total[a] / size - beliefs[i, a])
                    if moved > change:
                        change = moved
                    beliefs[i, a] = total[a] / size
        error[g] = change if last > first else 0.0
        mass = 0.0
        for i in range(first, last):
            for a in range(k):
                q = beliefs[i, a]
                if q > 0.0:
                    mass += q * (scores[i, a] - log(q))
            for at in range(ptr[i], ptr[i + 1]):
                e = links[at]
                if tails[e] != i:
                    continue
                for a in range(k):
                    for b in range(k):
                        q = beliefs[i, a] * beliefs[heads[e], b]
                        pairs[row[e], a, b] += q
                        mass += q * tables[row[e], a, b]
        log_mass[g] = mass


@kernel
def gibbs_sweeps(
    which,
    node_ptr,
    ptr,
    links,
    tails,
    heads,
    row,
    scores,
    tables,
    burn_in,
    sweeps,
    random,
    state,
    beliefs,
    pairs,
):
    """Move the states of the listed graphs by sweeps of Gibbs sampling and write the mean of those after the burn-in.

    `random` holds the state of one generator a graph.
    """
    k = scores.shape[1]
    total = np.empty(k)
    share = 1.0 / sweeps
    for w in range(len(which)):
        g = which[w]
        first, last = node_ptr[g], node_ptr[g + 1]
        for i in range(first, last):
            for a in range(k):
                beliefs[i, a] = 0.0
        seed = random[g]
        for sweep in range(burn_in + sweeps):
            for i in range(first, last):
                for a in range(k):
                    total[a] = scores[i, a]
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    if tails[e] == i:
                        for a in range(k):
                            total[a] += tables[row[e], a, state[heads[e]]]
                    else:
                        for a in range(k):
                            total[a] += tables[row[e], state[tails[e]], a]
                top = total[0]
                for a in range(1, k):
                    if total[a] > top:
                        top = total[a]
                size = 0.0
                for a in range(k):
                    total[a] = exp(total[a] - top)
                    size += total[a]
                left = uniform(seed) * size
                a = 0
                while a < k - 1 and left >= total[a]:
                    left -= total[a]
                    a += 1
                state[i] = a
            if sweep < burn_in:
                continue
            for i in range(first, last):
                beliefs[i, state[i]] += share
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    if tails[e] == i:
                        pairs[row[e], state[i], state[heads[e]]] += share


@kernel
def pseudo_likelihoods(
    which, node_ptr, ptr, links, tails, heads, row, scores, tables, labels, beliefs, pairs, log_mass
):
    """Write each node's distribution given its neighbours' labels and the sum of log normalisers.

    `pairs` gets every edge twice, once from each end.
    """
    k = scores.shape[1]
    total = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        mass = 0.0
        for i in range(node_ptr[g], node_ptr[g + 1]):
            for a in range(k):
                total[a] = scores[i, a]
            for at in range(ptr[i], ptr[i + 1]):
                e = links[at]
                if tails[e] == i:
                    b = labels[heads[e]]
                    for a in range(k):
                        total[a] += tables[row[e], a, b]
                else:
                    b = labels[tails[e]]
                    for a in range(k):
                        total[a] += tables[row[e], b, a]
            top = total[0]
            for a in range(1, k):
                if total[a] > top:
                    top = total[a]
            size = 0.0
            for a in range(k):
                beliefs[i, a] = exp(total[a] - top)
                size += beliefs[i, a]
            mass += top + log(size)
            for a in range(k):
                beliefs[i, a] /= size
            for at in range(ptr[i], ptr[i + 1]):
                e = links[at]
                if tails[e] == i:
                    b = labels[heads[e]]
                    for a in range(k):
                        pairs[row[e], a, b] += beliefs[i, a]
                else:
                    b = labels[tails[e]]
                    for a in range(k):
                        pairs[row[e], b, a] += beliefs[i, a]
        log_mass[g] = mass
