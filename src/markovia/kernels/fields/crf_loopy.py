"""Approximate marginals of many pairwise fields at once: (tree-reweighted) belief propagation, mean field, Gibbs sweeps.

Kernels take the listed graphs of `PairwiseGraphs` with `LogPotentials` and write `FieldBeliefs`. Message 2e goes from the
tail to the head of edge e, 2e + 1 back. Belief propagation works in logarithms, node by node there and back, until no
message changes; with appearance probabilities `rho` below one it is the tree-reweighted form, whose value bounds log Z from
above. Mean field bounds it from below. Cost of a sweep: edges times k squared exponentials (mean field and Gibbs:
additions).
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform


@inner
def _distribution(logs):
    """Replace logarithms by the distribution they are proportional to; return the log normaliser."""
    top = logs[0]
    for a in range(1, len(logs)):
        if logs[a] > top:
            top = logs[a]
    size = 0.0
    for a in range(len(logs)):
        logs[a] = exp(logs[a] - top)
        size += logs[a]
    for a in range(len(logs)):
        logs[a] /= size
    return top + log(size)


@inner
def _collect(i, graphs, scores, rho, message, total):
    """Write the score of node i with all that its neighbours say, each as often as its edge appears."""
    for a in range(len(total)):
        total[a] = scores[i, a]
    for at in range(graphs.ptr[i], graphs.ptr[i + 1]):
        e = graphs.links[at]
        coming = 2 * e + 1 if graphs.tails[e] == i else 2 * e
        for a in range(len(total)):
            total[a] += rho[e] * message[coming, a]


@inner
def _given_neighbours(i, graphs, potentials, labels, total):
    """Write the score of node i where its neighbours have these labels."""
    tables = potentials.tables
    for a in range(len(total)):
        total[a] = potentials.scores[i, a]
    for at in range(graphs.ptr[i], graphs.ptr[i + 1]):
        e = graphs.links[at]
        r = graphs.row[e]
        if graphs.tails[e] == i:
            b = labels[graphs.heads[e]]
            for a in range(len(total)):
                total[a] += tables[r, a, b]
        else:
            b = labels[graphs.tails[e]]
            for a in range(len(total)):
                total[a] += tables[r, b, a]


@kernel
def propagate_fields(which, graphs, rho, potentials, damping, tolerance, sweeps, message, found):
    """Write beliefs and the (reweighted) Bethe log mass of the listed graphs; `rho` (edges,), `message` (2 edges, k)."""
    scores, tables = potentials
    ptr, links, tails, row = graphs.ptr, graphs.links, graphs.tails, graphs.row
    k = scores.shape[1]
    total = np.empty(k)
    fresh = np.empty(k)
    inner = np.empty(k)
    joint = np.empty((k, k))
    left = np.empty(k)
    right = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        first, last = graphs.node_ptr[g], graphs.node_ptr[g + 1]
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
            # nodes there and back; each sends to all neighbours
            for step in range(2 * (last - first)):
                i = first + step if step < last - first else last - 1 - (step - (last - first))
                _collect(i, graphs, scores, rho, message, total)
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    from_tail = tails[e] == i
                    going = 2 * e if from_tail else 2 * e + 1
                    coming = 2 * e + 1 if from_tail else 2 * e
                    # the sum over own labels of all but what came from there, times the table, in logarithms
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
        found.error[g] = change if last > first and sweep > 0 else 0.0
        # beliefs of nodes: their mean score and entropy
        mass = 0.0
        for i in range(first, last):
            _collect(i, graphs, scores, rho, message, total)
            _distribution(total)
            for a in range(k):
                q = total[a]
                found.beliefs[i, a] = q
                if q > 0.0:
                    mass += q * (scores[i, a] - log(q))
        # beliefs of edges: their mean score, less their mutual information as often as they appear
        for i in range(first, last):
            for at in range(ptr[i], ptr[i + 1]):
                e = links[at]
                if tails[e] != i:
                    continue
                j = graphs.heads[e]
                size = 0.0
                top = -np.inf
                for a in range(k):
                    left[a] = log(found.beliefs[i, a] + 1e-300) - message[2 * e + 1, a]
                    right[a] = log(found.beliefs[j, a] + 1e-300) - message[2 * e, a]
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
                        found.pairs[row[e], a, b] += q
                        if q > 0.0:
                            mass += q * (tables[row[e], a, b] - rho[e] * log(q / (left[a] * right[b])))
        found.log_mass[g] = mass


@kernel
def mean_fields(which, graphs, potentials, tolerance, sweeps, found):
    """Write naive mean-field beliefs and the lower bound of log Z of the listed graphs."""
    scores, tables = potentials
    ptr, links, tails, heads, row = graphs.ptr, graphs.links, graphs.tails, graphs.heads, graphs.row
    beliefs = found.beliefs
    k = scores.shape[1]
    total = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        first, last = graphs.node_ptr[g], graphs.node_ptr[g + 1]
        for i in range(first, last):
            for a in range(k):
                beliefs[i, a] = scores[i, a]
            _distribution(beliefs[i])
        change = np.inf
        sweep = 0
        while sweep < sweeps and change > tolerance:
            sweep += 1
            change = 0.0
            # nodes there and back: the mean of their score over the neighbours' beliefs
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
                            entry = tables[row[e], a, b] if from_tail else tables[row[e], b, a]
                            total[a] += beliefs[j, b] * entry
                _distribution(total)
                for a in range(k):
                    moved = abs(total[a] - beliefs[i, a])
                    if moved > change:
                        change = moved
                    beliefs[i, a] = total[a]
        found.error[g] = change if last > first else 0.0
        # mean scores and entropies
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
                        found.pairs[row[e], a, b] += q
                        mass += q * tables[row[e], a, b]
        found.log_mass[g] = mass


@kernel
def gibbs_sweeps(which, graphs, potentials, burn_in, sweeps, random, state, found):
    """Move the states of the listed graphs by sweeps of Gibbs sampling and write the mean of those after the burn-in.

    `random` (graphs, 4) holds the state of one generator a graph, `state` (nodes,) labels.
    """
    k = potentials.scores.shape[1]
    total = np.empty(k)
    share = 1.0 / sweeps
    for w in range(len(which)):
        g = which[w]
        first, last = graphs.node_ptr[g], graphs.node_ptr[g + 1]
        for i in range(first, last):
            for a in range(k):
                found.beliefs[i, a] = 0.0
        seed = random[g]
        for sweep in range(burn_in + sweeps):
            for i in range(first, last):
                _given_neighbours(i, graphs, potentials, state, total)
                _distribution(total)
                left = uniform(seed)
                a = 0
                while a < k - 1 and left >= total[a]:
                    left -= total[a]
                    a += 1
                state[i] = a
            if sweep < burn_in:
                continue
            for i in range(first, last):
                found.beliefs[i, state[i]] += share
                for at in range(graphs.ptr[i], graphs.ptr[i + 1]):
                    e = graphs.links[at]
                    if graphs.tails[e] == i:
                        found.pairs[graphs.row[e], state[i], state[graphs.heads[e]]] += share


@kernel
def pseudo_likelihoods(which, graphs, potentials, labels, found):
    """Write each node's distribution given its neighbours' labels (nodes,) and the sum of log normalisers.

    `pairs` gets every edge twice, once from each end.
    """
    k = potentials.scores.shape[1]
    total = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        mass = 0.0
        for i in range(graphs.node_ptr[g], graphs.node_ptr[g + 1]):
            _given_neighbours(i, graphs, potentials, labels, total)
            mass += _distribution(total)
            for a in range(k):
                found.beliefs[i, a] = total[a]
            for at in range(graphs.ptr[i], graphs.ptr[i + 1]):
                e = graphs.links[at]
                r = graphs.row[e]
                if graphs.tails[e] == i:
                    b = labels[graphs.heads[e]]
                    for a in range(k):
                        found.pairs[r, a, b] += total[a]
                else:
                    b = labels[graphs.tails[e]]
                    for a in range(k):
                        found.pairs[r, b, a] += total[a]
        found.log_mass[g] = mass
