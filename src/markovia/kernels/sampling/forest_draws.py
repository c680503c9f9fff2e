"""Exact draws of whole blocks: induced forests by forward filtering and backward sampling, small blocks by enumeration.

A variable joins a forest if each of its tables then holds at most two members of the forest, and the members it is linked to
lie in different trees (union-find), so that no loop closes.
"""

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import below, uniform
from markovia.kernels.sampling.chains import LOG_WEIGHT, TINY, log_weight, note, pick, place, put

FOREST, SMALL = 0, 1


class ForestArrays(NamedTuple):
    """Working room for one chain; `member`, `touched` and `head` are clean between draws."""

    member: NDArray[np.int64]
    touched: NDArray[np.int64]
    root: NDArray[np.int64]
    stamp: NDArray[np.int64]
    head: NDArray[np.int64]
    link: NDArray[np.int64]
    up: NDArray[np.int64]
    nodes: NDArray[np.int64]
    queue: NDArray[np.int64]
    order: NDArray[np.int64]
    waiting: NDArray[np.int64]
    belief: NDArray[np.float64]
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]


@inner
def _find(root, i):
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i


@inner
def _tie(link, head, at, a, b, f, mine, theirs):
    link[at, 0], link[at, 1] = b, f
    link[at, 2], link[at, 3] = mine, theirs
    link[at, 4] = head[a]
    head[a] = at


@kernel
def grow(graph, candidates, forest):
    """Collect candidates (negative ones are skipped) that induce a forest into `nodes`; returns how many, and links."""
    edge_factor, edge_ptr, edge_stride, scope = (
        graph.edge_factor,
        graph.edge_ptr,
        graph.edge_stride,
        graph.scope,
    )
    scope_ptr, strides = graph.scope_ptr, graph.strides
    head, link, member, nodes = forest.head, forest.link, forest.member, forest.nodes
    root, stamp, touched = forest.root, forest.stamp, forest.touched
    size, links = 0, 0
    for v in candidates:
        if v < 0:
            continue
        fits = True
        stamp[v] = v
        for p in range(edge_ptr[v], edge_ptr[v + 1]):
            f = edge_factor[p]
            if touched[f] == 0:
                continue
            if touched[f] > 1:
                fits = False
                break
            for e in range(scope_ptr[f], scope_ptr[f + 1]):
                u = scope[e]
                if member[u]:
                    tree = _find(root, u)
                    if stamp[tree] == v:
                        fits = False
                    stamp[tree] = v
                    break
            if not fits:
                break
        if not fits:
            continue
        root[v] = v
        member[v] = 1
        head[v] = -1
        nodes[size] = v
        size += 1
        for p in range(edge_ptr[v], edge_ptr[v + 1]):
            f = edge_factor[p]
            if touched[f] == 1:
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    u = scope[e]
                    if u != v and member[u]:
                        root[_find(root, u)] = v
                        mine, theirs = edge_stride[p], strides[e]
                        _tie(link, head, links, v, u, f, mine, theirs)
                        _tie(link, head, links + 1, u, v, f, theirs, mine)
                        links += 2
                        break
            touched[f] += 1
    return size


@kernel
def clean(graph, size, forest):
    """Make the room ready for the next forest."""
    for q in range(size):
        v = forest.nodes[q]
        forest.member[v] = 0
        for p in range(graph.edge_ptr[v], graph.edge_ptr[v + 1]):
            forest.touched[graph.edge_factor[p]] = 0
    for v in range(len(forest.stamp)):
        forest.stamp[v] = -1


@inner
def draw_forest(graph, chain, size, forest):
    """Draw the forest in `nodes` from its distribution given all other variables."""
    cards, edge_factor, edge_ptr, edge_stride = (
        graph.cards,
        graph.edge_factor,
        graph.edge_ptr,
        graph.edge_stride,
    )
    starts, unary, values = graph.starts, graph.unary, graph.values
    belief, head, link, member = forest.belief, forest.head, forest.link, forest.member
    nodes, queue, touched, up = forest.nodes, forest.queue, forest.touched, forest.up
    x, offset, room, rng = chain.x, chain.offset, chain.room, chain.rng
    n = 0
    for q in range(size):  # parents before children
        if member[nodes[q]] != 1:
            continue
        tree_root = nodes[q]
        queue[n] = tree_root
        member[tree_root] = 2
        up[tree_root, 0] = -1
        at = n
        n += 1
        while at < n:
            v = queue[at]
            at += 1
            at_link = head[v]
            while at_link >= 0:
                u = link[at_link, 0]
                if member[u] == 1:
                    member[u] = 2
                    up[u, 0], up[u, 1] = v, link[at_link, 1]
                    up[u, 2], up[u, 3] = link[at_link, 3], link[at_link, 2]
                    queue[n] = u
                    n += 1
                at_link = link[at_link, 4]
    for q in range(size):
        v = nodes[q]
        card, start = cards[v], starts[v]
        for k in range(card):
            belief[start + k] = unary[start + k]
        for p in range(edge_ptr[v], edge_ptr[v + 1]):
            f = edge_factor[p]
            if touched[f] == 1:
                stride = edge_stride[p]
                base = offset[f] - x[v] * stride
                top = 0.0
                for k in range(card):
                    belief[start + k] *= values[base + k * stride]
                    top = max(top, belief[start + k])
                if top < TINY:
                    for k in range(card):
                        belief[start + k] /= TINY
    for q in range(n - 1, -1, -1):
        v = queue[q]
        u = up[v, 0]
        if u < 0:
            continue
        card, start = cards[v], starts[v]
        above, begin = cards[u], starts[u]
        f, mine, theirs = up[v, 1], up[v, 2], up[v, 3]
        base = offset[f] - x[v] * mine - x[u] * theirs
        top = 0.0
        for j in range(above):
            total = 0.0
            for k in range(card):
                total += belief[start + k] * values[base + k * mine + j * theirs]
            belief[begin + j] *= total
            top = max(top, belief[begin + j])
        if top > 0.0:
            for j in range(above):
                belief[begin + j] /= top
    for q in range(n):
        v = queue[q]
        u = up[v, 0]
        card, start = cards[v], starts[v]
        total = 0.0
        if u < 0:
            for k in range(card):
                room[k] = belief[start + k]
                total += room[k]
        else:
            f, mine = up[v, 1], up[v, 2]
            base = offset[f] - x[v] * mine
            for k in range(card):
                room[k] = belief[start + k] * values[base + k * mine]
                total += room[k]
        new = pick(room, card, uniform(rng) * total)
        change = new - x[v]
        if change != 0:
            for p in range(edge_ptr[v], edge_ptr[v + 1]):
                offset[edge_factor[p]] += change * edge_stride[p]
            x[v] = new


@inner
def draw_small(graph, chain, block, factors, forest):
    """Draw a block of few joint states by enumerating them."""
    x, offset = chain.x, chain.offset
    for v in block:
        put(graph, x, offset, v, 0)
    states = 1
    for v in block:
        states *= graph.cards[v]
    top = -np.inf
    for s in range(states):
        total = 0.0
        for v in block:
            total += graph.log_unary[graph.starts[v] + x[v]]
        for f in factors:
            total += graph.log_values[offset[f]]
        forest.weights[s] = total
        top = max(top, total)
        for v in block:
            if x[v] + 1 < graph.cards[v]:
                put(graph, x, offset, v, x[v] + 1)
                break
            put(graph, x, offset, v, 0)
    total = 0.0
    for s in range(states):
        forest.weights[s] = exp(forest.weights[s] - top)
        total += forest.weights[s]
    chosen = pick(forest.weights, states, uniform(chain.rng) * total)
    for v in block:
        put(graph, x, offset, v, chosen % graph.cards[v])
        chosen //= graph.cards[v]


@inner
def sweep_trees(graph, chain, forest):
    """Update every variable once, in random induced forests; `shares` counts the size of the first one."""
    n = len(chain.x)
    order = forest.order
    for i in range(n - 1, 0, -1):
        j = below(chain.rng, i + 1)
        order[i], order[j] = order[j], order[i]
    left = n
    waiting = forest.waiting
    for i in range(n):
        waiting[i] = order[i]
    first = True
    while left:
        size = grow(graph, waiting, forest)
        draw_forest(graph, chain, size, forest)
        if first:
            forest.shares[0] += size / n
            forest.shares[1] += 1.0
            first = False
        for q in range(n):
            if waiting[q] >= 0 and forest.member[waiting[q]]:
                waiting[q] = -1
        clean(graph, size, forest)
        left -= size


@kernel
def sweep_blocks(graph, chain, forest, blocks):
    """Update blocks one after the other: pointers to members, members, kinds, pointers to factors, factors."""
    ptr, members, kinds, factor_ptr, factors = blocks
    for b in range(len(kinds)):
        block = members[ptr[b] : ptr[b + 1]]
        if kinds[b] == FOREST:
            size = grow(graph, block, forest)
            draw_forest(graph, chain, size, forest)
            for v in block:
                forest.member[v] = 0
                forest.stamp[v] = -1
                for p in range(graph.edge_ptr[v], graph.edge_ptr[v + 1]):
                    forest.touched[graph.edge_factor[p]] = 0
        else:
            draw_small(graph, chain, block, factors[factor_ptr[b] : factor_ptr[b + 1]], forest)


@kernel
def run_blocks(graph, chain, forest, trees, blocks, plan):
    """Make draws by block updates, as `gibbs.run` does by single ones."""
    place(graph, chain.x, chain.offset)
    for t in range(plan.first, plan.first + plan.number):
        for _ in range(plan.thin):
            if trees:
                sweep_trees(graph, chain, forest)
            else:
                sweep_blocks(graph, chain, forest, blocks)
        chain.scalars[LOG_WEIGHT] = log_weight(graph, chain.x, chain.offset)
        note(graph, chain, t, plan)
