"""Tree-reweighted message passing, and exact sums over spanning forests of a factor graph.

Everything is in logs, the graph's tables too. `lam[first[e] : ...]` is the message of an edge (one variable's place in one
factor); with it the parameters of the model are `node_i = log unary_i + sum of lam at i` and `(log f - sum of its lam) /
rho_f`, which for any finite messages add up to the same model when a factor occurs with probability rho_f.
"""

from math import exp, inf, log
from typing import NamedTuple

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer, pointers
from markovia.runtime.array_types import Array, Ints


class ReweightedWork(NamedTuple):
    """Where each edge's message begins, how often each factor occurs, nodes and messages, and room for one factor."""

    first: Ints
    rho: Array
    node: Array
    lam: Array
    told: Array
    buffer: Array
    out: Array


@inner(bare=True)
def _message(g, w, f, a, inv):
    """Write to `out` the log of a table's sum over all variables but the one at place `a`, weighted by exp(told)."""
    s0, s1 = g.scope_ptr[f], g.scope_ptr[f + 1]
    t0 = g.table_ptr[f]
    base = w.first[s0]
    if s1 - s0 == 2:
        c, d = g.cards[g.scope[s0 + a]], g.cards[g.scope[s0 + 1 - a]]
        mine, other = (d, 1) if a == 0 else (1, c)
        g0 = w.first[s0 + 1 - a] - base
        for x in range(c):
            top = -inf
            for y in range(d):
                value = g.values[t0 + x * mine + y * other] * inv + w.told[g0 + y]
                w.buffer[y] = value
                if value > top:
                    top = value
            if top == -inf:
                w.out[x] = top
            else:
                total = 0.0
                for y in range(d):
                    total += exp(w.buffer[y] - top)
                w.out[x] = top + log(total)
        return
    size = g.table_ptr[f + 1] - t0
    for o in range(size):
        w.buffer[o] = g.values[t0 + o] * inv
    for step in range(s1 - s0 - 1):
        last = s1 - s0 - 1 - step
        b = last if last > a else step - (s1 - s0 - 1 - a)
        c = g.cards[g.scope[s0 + b]]
        g0 = w.first[s0 + b] - base
        size //= c
        near = 1 if last > a else size
        far = c if last > a else 1
        for o in range(size):
            top = -inf
            for y in range(c):
                value = w.buffer[o * far + y * near] + w.told[g0 + y]
                if value > top:
                    top = value
            if top > -inf:
                total = 0.0
                for y in range(c):
                    total += exp(w.buffer[o * far + y * near] + w.told[g0 + y] - top)
                top += log(total)
            w.buffer[o] = top
    for o in range(size):
        w.out[o] = w.buffer[o]


@inner(bare=True)
def _sweep(g, w, n, backward, damping):
    """Update the messages of all factors, one after the other."""
    for k in range(n):
        f = n - 1 - k if backward else k
        inv = 1.0 / w.rho[f]
        s0, s1 = g.scope_ptr[f], g.scope_ptr[f + 1]
        base = w.first[s0]
        for e in range(s0, s1):
            for x in range(g.cards[g.scope[e]]):
                w.told[w.first[e] - base + x] = w.node[g.starts[g.scope[e]] + x] - w.lam[w.first[e] + x] * inv
        for e in range(s0, s1):
            _message(g, w, f, e - s0, inv)
            c = g.cards[g.scope[e]]
            s = g.starts[g.scope[e]]
            top = -inf
            for x in range(c):
                if w.node[s + x] > -inf and w.out[x] > top:
                    top = w.out[x]
            for x in range(c):
                if w.node[s + x] > -inf and w.out[x] > -inf:
                    old = w.lam[w.first[e] + x]
                    new = w.rho[f] * (w.out[x] - top)
                    new += damping * (old - new)
                    w.node[s + x] += new - old
                    w.lam[w.first[e] + x] = new
                    w.told[w.first[e] - base + x] = w.node[s + x] - new * inv


@inner(bare=True)
def _normalise(g, n, node, belief):
    """Write the distributions proportional to exp(node); return the largest change against what was there."""
    change = 0.0
    for i in range(n):
        s = g.starts[i]
        top = -inf
        for x in range(g.cards[i]):
            top = max(top, node[s + x])
        total = 0.0
        for x in range(g.cards[i]):
            total += exp(node[s + x] - top)
        for x in range(g.cards[i]):
            p = exp(node[s + x] - top) / total
            change = max(change, abs(p - belief[s + x]))
            belief[s + x] = p
    return change


@kernel(bare=True)
def iterate(graph, work, sweeps, tolerance, damping, belief):
    """Sweep to and fro until the beliefs stop changing; return the sweeps made and the last change."""
    n, n_factors = len(graph.cards), len(graph.table_ptr) - 1
    g, w, belief = pointers(graph), pointers(work), pointer(belief)
    change = 0.0
    for k in range(sweeps):
        _sweep(g, w, n_factors, k % 2 == 1, damping)
        change = _normalise(g, n, w.node, belief)
        if change <= tolerance:
            return k + 1, change
    return sweeps, change


@inner(bare=True)
def _forest_pass(g, w, n, n_states, forests, t, room):
    """Return the log of the total weight of forest t and write its marginals.

    Its factors go from the leaves to the roots; their parents are their edges towards the root.
    """
    ends, factors, parents, root_ends, roots, _ = forests
    work, up, belief = room
    for x in range(n_states):
        work[x] = w.node[x]
    for k in range(ends[t], ends[t + 1]):
        f, parent = factors[k], parents[k]
        inv = 1.0 / w.rho[f]
        base = w.first[g.scope_ptr[f]]
        for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
            if e != parent:
                for x in range(g.cards[g.scope[e]]):
                    w.told[w.first[e] - base + x] = (
                        work[g.starts[g.scope[e]] + x] - w.lam[w.first[e] + x] * inv
                    )
        _message(g, w, f, parent - g.scope_ptr[f], inv)
        s = g.starts[g.scope[parent]]
        for x in range(g.cards[g.scope[parent]]):
            up[w.first[parent] + x] = w.out[x] - w.lam[w.first[parent] + x] * inv
            work[s + x] += up[w.first[parent] + x]
    total = 0.0
    for k in range(root_ends[t], root_ends[t + 1]):
        i = roots[k]
        top = -inf
        for x in range(g.cards[i]):
            top = max(top, work[g.starts[i] + x])
        if top == -inf:
            return top
        mass = 0.0
        for x in range(g.cards[i]):
            mass += exp(work[g.starts[i] + x] - top)
        total += top + log(mass)
    for k in range(ends[t + 1] - 1, ends[t] - 1, -1):
        f, parent = factors[k], parents[k]
        inv = 1.0 / w.rho[f]
        base = w.first[g.scope_ptr[f]]
        for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
            for x in range(g.cards[g.scope[e]]):
                value = work[g.starts[g.scope[e]] + x]
                if value > -inf:
                    value -= w.lam[w.first[e] + x] * inv
                    if e == parent:
                        value -= up[w.first[e] + x]
                w.told[w.first[e] - base + x] = value
        for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
            if e != parent:
                _message(g, w, f, e - g.scope_ptr[f], inv)
                for x in range(g.cards[g.scope[e]]):
                    work[g.starts[g.scope[e]] + x] += w.out[x] - w.lam[w.first[e] + x] * inv
    _normalise(g, n, work, belief)
    return total


@kernel(bare=True)
def mixture_pass(graph, work, begin, end, forests, room, mean, inside):
    """Return the weighted sum of the log weights of some forests.

    Added to `mean`: the weighted marginals of all forests; to `inside`, for every edge, the marginal of its variable over
    the forests that hold its factor.
    """
    n, n_states = len(graph.cards), len(mean)
    g, w, mean, inside = pointers(graph), pointers(work), pointer(mean), pointer(inside)
    forests, room = pointers(forests), pointers(room)
    ends, factors, _, _, _, weights = forests
    belief = room[2]
    total = 0.0
    for t in range(begin, end):
        total += weights[t] * _forest_pass(g, w, n, n_states, forests, t, room)
        for x in range(n_states):
            mean[x] += weights[t] * belief[x]
        for k in range(ends[t], ends[t + 1]):
            f = factors[k]
            share = weights[t] / w.rho[f]
            for e in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
                for x in range(g.cards[g.scope[e]]):
                    inside[w.first[e] + x] += share * belief[g.starts[g.scope[e]] + x]
    return total


@kernel(bare=True)
def information(graph, work, found):
    """Write for every factor how far its pseudo-marginal is from independence, in nats."""
    n = len(found)
    g, w, found = pointers(graph), pointers(work), pointer(found)
    for f in range(n):
        inv = 1.0 / w.rho[f]
        s0, s1 = g.scope_ptr[f], g.scope_ptr[f + 1]
        t0 = g.table_ptr[f]
        size = g.table_ptr[f + 1] - t0
        base = w.first[s0]
        top = -inf
        for o in range(size):
            value = g.values[t0 + o] * inv
            for e in range(s0, s1):
                x = (o // g.strides[e]) % g.cards[g.scope[e]]
                value += w.node[g.starts[g.scope[e]] + x] - w.lam[w.first[e] + x] * inv
            w.buffer[o] = value
            top = max(top, value)
        total = 0.0
        for o in range(size):
            w.buffer[o] = exp(w.buffer[o] - top)
            total += w.buffer[o]
        width = w.first[s1 - 1] - base + g.cards[g.scope[s1 - 1]]
        for x in range(width):
            w.told[x] = 0.0
        value = 0.0
        for o in range(size):
            p = w.buffer[o] / total
            if p > 0.0:
                value += p * log(p)
                for e in range(s0, s1):
                    w.told[w.first[e] - base + (o // g.strides[e]) % g.cards[g.scope[e]]] += p
        for x in range(width):
            if w.told[x] > 0.0:
                value -= w.told[x] * log(w.told[x])
        found[f] = max(value, 0.0)
