"""Configurations of positive weight: drawing variable by variable with a look into each table, then repair.

`draw_start` weighs a state by the part of each table that agrees with the variables drawn so far, summed over the rest.
In a Bayesian network in topological order that is forward sampling. `repair` is min-conflicts (Minton et al. 1992): a
variable of a violated table takes a state with the fewest violations, or now and then any state.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import below, uniform
from markovia.kernels.sampling.chains import pick, place, put

NOISE = 0.08


@kernel
def draw_start(graph, order, flat, rng, x, w):
    """Draw every variable in the given order into x; with `flat`, each state of positive weight alike."""
    for i in range(len(x)):
        x[i] = -1
    agreeing = np.empty(len(w))
    for i in order:
        card = graph.cards[i]
        start = graph.starts[i]
        for k in range(card):
            w[k] = graph.unary[start + k]
        for p in range(graph.edge_ptr[i], graph.edge_ptr[i + 1]):
            f = graph.edge_factor[p]
            mine = graph.edge_stride[p]
            for k in range(card):
                agreeing[k] = 0.0
            for at in range(graph.table_ptr[f + 1] - graph.table_ptr[f]):
                value = graph.values[graph.table_ptr[f] + at]
                if value == 0.0:
                    continue
                agrees = True
                for e in range(graph.scope_ptr[f], graph.scope_ptr[f + 1]):
                    j = graph.scope[e]
                    if x[j] >= 0 and (at // graph.strides[e]) % graph.cards[j] != x[j]:
                        agrees = False
                        break
                if agrees:
                    agreeing[(at // mine) % card] += value
            for k in range(card):
                w[k] *= agreeing[k]
            top = 0.0
            for k in range(card):
                top = max(top, w[k])
            if top > 0.0:
                for k in range(card):
                    w[k] /= top
        total = 0.0
        for k in range(card):
            if flat and w[k] > 0.0:
                w[k] = 1.0
            total += w[k]
        if total > 0.0:
            x[i] = pick(w, card, uniform(rng) * total)
        else:
            x[i] = below(rng, card)


@kernel
def repair(graph, rng, x, offset, flips):
    """Change x until its weight is positive; returns how many violations are left when the flips are used up."""
    n_factors = len(graph.table_ptr) - 1
    place(graph, x, offset)
    bad = np.empty(n_factors, np.int64)
    where = np.empty(n_factors, np.int64)
    n_bad = 0
    for f in range(n_factors):
        where[f] = -1
        if graph.values[offset[f]] == 0.0:
            where[f] = n_bad
            bad[n_bad] = f
            n_bad += 1
    for i in range(len(x)):
        if graph.unary[graph.starts[i] + x[i]] == 0.0:  # such a state is never chosen below
            for k in range(graph.cards[i]):
                if graph.unary[graph.starts[i] + k] > 0.0:
                    put(graph, x, offset, i, k)
            for p in range(graph.edge_ptr[i], graph.edge_ptr[i + 1]):
                n_bad = _note(graph, offset, graph.edge_factor[p], bad, where, n_bad)
    for _ in range(flips):
        if n_bad == 0:
            return 0
        f = bad[below(rng, n_bad)]
        low = graph.scope_ptr[f]
        arity = graph.scope_ptr[f + 1] - low
        chosen, state = -1, -1
        if uniform(rng) < NOISE:
            chosen = graph.scope[low + below(rng, arity)]
            state = below(rng, graph.cards[chosen])
            if graph.unary[graph.starts[chosen] + state] == 0.0:
                continue
        else:
            fewest, ties = 1 << 30, 0
            for e in range(low, low + arity):
                i = graph.scope[e]
                for k in range(graph.cards[i]):
                    if k == x[i] or graph.unary[graph.starts[i] + k] == 0.0:
                        continue
                    count = 0
                    for p in range(graph.edge_ptr[i], graph.edge_ptr[i + 1]):
                        g = graph.edge_factor[p]
                        at = offset[g] + (k - x[i]) * graph.edge_stride[p]
                        count += (graph.values[at] == 0.0) - (graph.values[offset[g]] == 0.0)
                    if count < fewest:
                        fewest, ties = count, 1
                        chosen, state = i, k
                    elif count == fewest:
                        ties += 1
                        if below(rng, ties) == 0:
                            chosen, state = i, k
        if chosen < 0:
            continue
        put(graph, x, offset, chosen, state)
        for p in range(graph.edge_ptr[chosen], graph.edge_ptr[chosen + 1]):
            n_bad = _note(graph, offset, graph.edge_factor[p], bad, where, n_bad)
    return n_bad


@inner
def _note(graph, offset, f, bad, where, n_bad):
    """Put a factor on the list of violated ones, or take it off."""
    if graph.values[offset[f]] == 0.0:
        if where[f] < 0:
            where[f] = n_bad
            bad[n_bad] = f
            n_bad += 1
    elif where[f] >= 0:
        n_bad -= 1
        last = bad[n_bad]
        bad[where[f]] = last
        where[last] = where[f]
        where[f] = -1
    return n_bad
