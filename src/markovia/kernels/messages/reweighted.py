"""Tree-reweighted message passing, and exact sums over spanning forests of a factor graph.

Everything is in logs. `lam[first[e] : ...]` is the message of an edge (one variable's place in one factor); with it the
parameters of the model are `node_i = log unary_i + sum of lam at i` and `(log f - sum of its lam) / rho_f`, which for any
finite messages add up to the same model when a factor occurs with probability rho_f.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def message(f, a, inv, cards, scope_ptr, scope, table_ptr, logs, first, g, buffer, out):
    """Write to `out` the log of a table's sum over all variables but the one at place `a`, weighted by exp(g)."""
    s0, s1 = scope_ptr[f], scope_ptr[f + 1]
    t0 = table_ptr[f]
    base = first[s0]
    if s1 - s0 == 2:
        c, d = cards[scope[s0 + a]], cards[scope[s0 + 1 - a]]
        mine, other = (d, 1) if a == 0 else (1, c)
        g0 = first[s0 + 1 - a] - base
        for x in range(c):
            top = -np.inf
            for y in range(d):
                value = logs[t0 + x * mine + y * other] * inv + g[g0 + y]
                buffer[y] = value
                if value > top:
                    top = value
            if top == -np.inf:
                out[x] = top
            else:
                total = 0.0
                for y in range(d):
                    total += np.exp(buffer[y] - top)
                out[x] = top + np.log(total)
        return
    size = table_ptr[f + 1] - t0
    for o in range(size):
        buffer[o] = logs[t0 + o] * inv
    for step in range(s1 - s0 - 1):
        last = s1 - s0 - 1 - step
        b = last if last > a else step - (s1 - s0 - 1 - a)
        c = cards[scope[s0 + b]]
        g0 = first[s0 + b] - base
        size //= c
        near = 1 if last > a else size
        far = c if last > a else 1
        for o in range(size):
            top = -np.inf
            for y in range(c):
                value = buffer[o * far + y * near] + g[g0 + y]
                if value > top:
                    top = value
            if top > -np.inf:
                total = 0.0
                for y in range(c):
                    total += np.exp(buffer[o * far + y * near] + g[g0 + y] - top)
                top += np.log(total)
            buffer[o] = top
    for o in range(size):
        out[o] = buffer[o]


@inner
def sweep(
    backward, damping, cards, starts, scope_ptr, scope, table_ptr, logs, first, rho, node, lam, g, buffer, out
):
    """Update the messages of all factors, one after the other."""
    n = len(table_ptr) - 1
    for k in range(n):
        f = n - 1 - k if backward else k
        inv = 1.0 / rho[f]
        s0, s1 = scope_ptr[f], scope_ptr[f + 1]
        base = first[s0]
        for e in range(s0, s1):
            for x in range(cards[scope[e]]):
                g[first[e] - base + x] = node[starts[scope[e]] + x] - lam[first[e] + x] * inv
        for e in range(s0, s1):
            message(f, e - s0, inv, cards, scope_ptr, scope, table_ptr, logs, first, g, buffer, out)
            c = cards[scope[e]]
            s = starts[scope[e]]
            top = -np.inf
            for x in range(c):
                if node[s + x] > -np.inf and out[x] > top:
                    top = out[x]
            for x in range(c):
                if node[s + x] > -np.inf and out[x] > -np.inf:
                    old = lam[first[e] + x]
                    new = rho[f] * (out[x] - top)
                    new += damping * (old - new)
                    node[s + x] += new - old
                    lam[first[e] + x] = new
                    g[first[e] - base + x] = node[s + x] - new * inv


@inner
def normalise(cards, starts, node, belief):
    """Write the distributions proportional to exp(node); return the largest change against what was there."""
    change = 0.0
    for i in range(len(cards)):
        s = starts[i]
        top = -np.inf
        for x in range(cards[i]):
            top = max(top, node[s + x])
        total = 0.0
        for x in range(cards[i]):
            total += np.exp(node[s + x] - top)
        for x in range(cards[i]):
            p = np.exp(node[s + x] - top) / total
            change = max(change, abs(p - belief[s + x]))
            belief[s + x] = p
    return change


@kernel
def iterate(
    sweeps,
    tolerance,
    damping,
    cards,
    starts,
    scope_ptr,
    scope,
    table_ptr,
    logs,
    first,
    rho,
    node,
    lam,
    g,
    buffer,
    out,
    belief,
):
    """Sweep to and fro until the beliefs stop changing; return the sweeps made and the last change."""
    change = 0.0
    for k in range(sweeps):
        sweep(
            k % 2 == 1,
            damping,
            cards,
            starts,
            scope_ptr,
            scope,
            table_ptr,
            logs,
            first,
            rho,
            node,
            lam,
            g,
            buffer,
            out,
        )
        change = normalise(cards, starts, node, belief)
        if change <= tolerance:
            return k + 1, change
    return sweeps, change


@inner
def forest_pass(
    factors,
    parents,
    roots,
    cards,
    starts,
    scope_ptr,
    scope,
    table_ptr,
    logs,
    first,
    rho,
    node,
    lam,
    g,
    buffer,
    out,
    work,
    up,
    belief,
):
    """Return the log of the total weight of one forest and write its marginals.

    `factors` go from the leaves to the roots, `parents` are their edges towards the root.
    """
    for x in range(len(node)):
        work[x] = node[x]
    for k in range(len(factors)):
        f, parent = factors[k], parents[k]
        inv = 1.0 / rho[f]
        base = first[scope_ptr[f]]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if e != parent:
                for x in range(cards[scope[e]]):
                    g[first[e] - base + x] = work[starts[scope[e]] + x] - lam[first[e] + x] * inv
        message(
            f, parent - scope_ptr[f], inv, cards, scope_ptr, scope, table_ptr, logs, first, g, buffer, out
        )
        s = starts[scope[parent]]
        for x in range(cards[scope[parent]]):
            up[first[parent] + x] = out[x] - lam[first[parent] + x] * inv
            work[s + x] += up[first[parent] + x]
    total = 0.0
    for i in roots:
        top = -np.inf
        for x in range(cards[i]):
            top = max(top, work[starts[i] + x])
        if top == -np.inf:
            return top
        mass = 0.0
        for x in range(cards[i]):
            mass += np.exp(work[starts[i] + x] - top)
        total += top + np.log(mass)
    for k in range(len(factors) - 1, -1, -1):
        f, parent = factors[k], parents[k]
        inv = 1.0 / rho[f]
        base = first[scope_ptr[f]]
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            for x in range(cards[scope[e]]):
                value = work[starts[scope[e]] + x]
                if value > -np.inf:
                    value -= lam[first[e] + x] * inv
                    if e == parent:
                        value -= up[first[e] + x]
                g[first[e] - base + x] = value
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if e != parent:
                message(
                    f, e - scope_ptr[f], inv, cards, scope_ptr, scope, table_ptr, logs, first, g, buffer, out
                )
                for x in range(cards[scope[e]]):
                    work[starts[scope[e]] + x] += out[x] - lam[first[e] + x] * inv
    normalise(cards, starts, work, belief)
    return total


@kernel
def mixture_pass(
    begin,
    end,
    pointers,
    factors,
    parents,
    root_pointers,
    roots,
    weights,
    cards,
    starts,
    scope_ptr,
    scope,
    table_ptr,
    logs,
    first,
    rho,
    node,
    lam,
    g,
    buffer,
    out,
    work,
    up,
    belief,
    mean,
    inside,
):
    """Return the weighted sum of the log weights of some forests.

    Added to `mean`: the weighted marginals of all forests; to `inside`, for every edge, the marginal of its variable over
    the forests that hold its factor.
    """
    total = 0.0
    for t in range(begin, end):
        chosen = factors[pointers[t] : pointers[t + 1]]
        total += weights[t] * forest_pass(
            chosen,
            parents[pointers[t] : pointers[t + 1]],
            roots[root_pointers[t] : root_pointers[t + 1]],
            cards,
            starts,
            scope_ptr,
            scope,
            table_ptr,
            logs,
            first,
            rho,
            node,
            lam,
            g,
            buffer,
            out,
            work,
            up,
            belief,
        )
        for x in range(len(belief)):
            mean[x] += weights[t] * belief[x]
        for f in chosen:
            share = weights[t] / rho[f]
            for e in range(scope_ptr[f], scope_ptr[f + 1]):
                for x in range(cards[scope[e]]):
                    inside[first[e] + x] += share * belief[starts[scope[e]] + x]
    return total


@kernel
def information(
    cards, starts, scope_ptr, scope, strides, table_ptr, logs, first, rho, node, lam, g, buffer, found
):
    """Write for every factor how far its pseudo-marginal is from independence, in nats."""
    for f in range(len(table_ptr) - 1):
        inv = 1.0 / rho[f]
        s0, s1 = scope_ptr[f], scope_ptr[f + 1]
        t0 = table_ptr[f]
        size = table_ptr[f + 1] - t0
        base = first[s0]
        top = -np.inf
        for o in range(size):
            value = logs[t0 + o] * inv
            for e in range(s0, s1):
                x = (o // strides[e]) % cards[scope[e]]
                value += node[starts[scope[e]] + x] - lam[first[e] + x] * inv
            buffer[o] = value
            top = max(top, value)
        total = 0.0
        for o in range(size):
            buffer[o] = np.exp(buffer[o] - top)
            total += buffer[o]
        width = first[s1 - 1] - base + cards[scope[s1 - 1]]
        for x in range(width):
            g[x] = 0.0
        value = 0.0
        for o in range(size):
            p = buffer[o] / total
            if p > 0.0:
                value += p * np.log(p)
                for e in range(s0, s1):
                    g[first[e] - base + (o // strides[e]) % cards[scope[e]]] += p
        for x in range(width):
            if g[x] > 0.0:
                value -= g[x] * np.log(g[x])
        found[f] = max(value, 0.0)
