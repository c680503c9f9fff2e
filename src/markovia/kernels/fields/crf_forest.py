"""Sum-product and max-product on many small trees at once: what a tree-shaped conditional random field needs.

Kernels take the listed graphs of `PairwiseGraphs` with `LogPotentials`. Messages are probabilities rescaled at each node
with an accumulated log scale; a tree whose messages underflow gets log mass NaN and is left to a method in logarithms.
Trees are independent: call the kernels from several threads with different lists `which`. Cost: nodes times k squared.
"""

from math import exp, isfinite, log

import numpy as np

from markovia.kernels.kernel import kernel

REORDERED = {"reassoc", "contract"}
"""Sums may be added in another order, which lets the compiler use vector instructions."""


@kernel
def root_forests(graphs, forest):
    """Order the nodes of every graph breadth first from roots, and note in `forest` (graphs,) which have no cycle."""
    node_ptr, tails, heads, _, ptr, links, order, parent, parent_edge = graphs
    seen = np.zeros(len(parent), np.bool_)
    for g in range(len(node_ptr) - 1):
        forest[g] = True
        done = last = node_ptr[g]
        for root in range(node_ptr[g], node_ptr[g + 1]):
            if seen[root]:
                continue
            seen[root] = True
            parent[root] = -1
            parent_edge[root] = -1
            order[last] = root
            last += 1
            while done < last:
                i = order[done]
                done += 1
                for at in range(ptr[i], ptr[i + 1]):
                    e = links[at]
                    if e == parent_edge[i]:
                        continue
                    j = heads[e] if tails[e] == i else tails[e]
                    if seen[j]:
                        forest[g] = False
                        continue
                    seen[j] = True
                    parent[j] = i
                    parent_edge[j] = e
                    order[last] = j
                    last += 1


@kernel(fastmath=REORDERED)
def node_scores(which, node_ptr, features, weights, scores):
    """Write `features @ weights.T` for the nodes of the listed graphs; weights have one row a label."""
    k, d = weights.shape
    for w in range(len(which)):
        for i in range(node_ptr[which[w]], node_ptr[which[w] + 1]):
            for a in range(k):
                total = 0.0
                for f in range(d):
                    total += features[i, f] * weights[a, f]
                scores[i, a] = total


@kernel(fastmath=REORDERED)
def node_sums(which, node_ptr, features, beliefs, sums):
    """Add `beliefs.T @ features` over the nodes of the listed graphs."""
    k, d = sums.shape
    for w in range(len(which)):
        for i in range(node_ptr[which[w]], node_ptr[which[w] + 1]):
            for a in range(k):
                b = beliefs[i, a]
                for f in range(d):
                    sums[a, f] += b * features[i, f]


@kernel(fastmath=REORDERED)
def forest_marginals(which, graphs, potentials, tops, found):
    """Write `FieldBeliefs` of the listed trees.

    The tables are exponentials of log tables without their largest entries `tops` (tables,). An edge's marginal is its table
    times what is added to `pairs`, so that edges that share a table are multiplied once, by the caller.
    """
    node_ptr, order, parent, heads = graphs.node_ptr, graphs.order, graphs.parent, graphs.heads
    scores, tables = potentials
    log_mass, beliefs, pairs, _ = found
    k = scores.shape[1]
    up = np.empty((1, k))
    message = np.empty((1, k))
    loss = np.empty(1)
    cavity = np.empty(k)
    for w in range(len(which)):
        g = which[w]
        first, last = node_ptr[g], node_ptr[g + 1]
        if last - first > len(up):
            up = np.empty((last - first, k))
            message = np.empty((last - first, k))
            loss = np.empty(last - first)
        total = 0.0
        fine = True
        for i in range(first, last):
            # the share of the mass that underflow may have taken, carried to the root
            loss[i - first] = 1e-305
            top = scores[i, 0]
            for a in range(1, k):
                if scores[i, a] > top:
                    top = scores[i, a]
            total += top
            for a in range(k):
                up[i - first, a] = exp(scores[i, a] - top)
        # messages up to the roots, rescaled at each node
        scale = 1.0
        for at in range(last - 1, first - 1, -1):
            i = order[at]
            o = i - first
            size = 0.0
            for a in range(k):
                size += up[o, a]
            scale *= size
            if not 1e-100 < scale < 1e100:
                total += log(scale)
                scale = 1.0
            inverse = 1.0 / size
            for a in range(k):
                up[o, a] *= inverse
            loss[o] *= inverse
            # the message to the parent, along the table whichever way the edge points
            p = parent[i]
            if p < 0:
                fine = fine and loss[o] < 1e-20
                continue
            p -= first
            loss[p] += loss[o]
            e = graphs.parent_edge[i]
            r = graphs.row[e]
            total += tops[r]
            if heads[e] == i:
                for b in range(k):
                    value = 0.0
                    for a in range(k):
                        value += tables[r, b, a] * up[o, a]
                    message[o, b] = value
            else:
                for b in range(k):
                    message[o, b] = tables[r, 0, b] * up[o, 0]
                for a in range(1, k):
                    for b in range(k):
                        message[o, b] += tables[r, a, b] * up[o, a]
            for b in range(k):
                up[p, b] *= message[o, b]
                if 0.0 < message[o, b] < 1e-150:
                    fine = False
        total += log(scale)
        if not (fine and isfinite(total)):
            log_mass[g] = np.nan
            for i in range(first, last):
                for a in range(k):
                    beliefs[i, a] = 0.0
            continue
        log_mass[g] = total
        # down again: a node's belief without its message is what comes back along the edge
        for at in range(first, last):
            i = order[at]
            o = i - first
            p = parent[i]
            if p < 0:
                for a in range(k):
                    beliefs[i, a] = up[o, a]
                continue
            e = graphs.parent_edge[i]
            r = graphs.row[e]
            for b in range(k):
                cavity[b] = beliefs[p, b] / message[o, b] if message[o, b] > 0.0 else 0.0
            if heads[e] == i:
                for a in range(k):
                    beliefs[i, a] = 0.0
                for b in range(k):
                    c = cavity[b]
                    for a in range(k):
                        beliefs[i, a] += c * tables[r, b, a]
                        pairs[r, b, a] += c * up[o, a]
                for a in range(k):
                    beliefs[i, a] *= up[o, a]
            else:
                for a in range(k):
                    value = 0.0
                    c = up[o, a]
                    for b in range(k):
                        value += cavity[b] * tables[r, a, b]
                        pairs[r, a, b] += cavity[b] * c
                    beliefs[i, a] = value * c


@kernel
def forest_best(which, graphs, potentials, best, weight):
    """Write a best labelling (nodes,) of the listed trees and its log weight (graphs,): Viterbi on trees."""
    node_ptr, order, parent = graphs.node_ptr, graphs.order, graphs.parent
    scores, tables = potentials
    k = scores.shape[1]
    for w in range(len(which)):
        g = which[w]
        first, last = node_ptr[g], node_ptr[g + 1]
        up = np.empty((last - first, k))
        choice = np.empty((last - first, k), np.int64)
        for i in range(first, last):
            for a in range(k):
                up[i - first, a] = scores[i, a]
        weight[g] = 0.0
        for at in range(last - 1, first - 1, -1):
            i = order[at]
            own = i - first
            p = parent[i]
            if p < 0:
                top = 0
                for a in range(1, k):
                    if up[own, a] > up[own, top]:
                        top = a
                best[i] = top
                weight[g] += up[own, top]
                continue
            e = graphs.parent_edge[i]
            r = graphs.row[e]
            forward = graphs.heads[e] == i
            for b in range(k):
                top = 0
                value = -np.inf
                for a in range(k):
                    tried = up[own, a] + (tables[r, b, a] if forward else tables[r, a, b])
                    if tried > value:
                        value = tried
                        top = a
                choice[own, b] = top
                up[p - first, b] += value
        for at in range(first, last):
            i = order[at]
            if parent[i] >= 0:
                best[i] = choice[i - first, best[parent[i]]]
