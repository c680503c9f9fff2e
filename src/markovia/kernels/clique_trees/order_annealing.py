"""Better elimination orders by eliminating parts of the bucket tree anew.

Method: simulated annealing. An elimination order makes a tree of buckets. What connected buckets send up does not depend on
the order of their own variables, nor does what they get from below; so a connected part of the tree is a small elimination
problem of its own, whose solution replaces the old one and leaves all other buckets as they are. Each move takes a part
around a heavy bucket, between four and some hundred variables, eliminates it greedily with random tastes, and keeps the
result if it is cheaper, or not much dearer than the temperature allows. A restart of a greedy search redoes everything and
finds the average; moves keep what is good, which on pedigrees saves factors of a hundred to a thousand.
References: Kirkpatrick, Gelatt and Vecchi (1983); Kjaerulff (1992) anneals orders by exchanging two variables; such moves on
the contraction trees of tensor networks are by Gray and Kourtis (2021).
Cost: some hundred thousand moves a second, whatever the size of the graph; a step is about one operation on a word.
"""

from math import inf, log, log2

from markovia.kernels.clique_trees.annealing_records import BEST, BITS, DONE, TOTAL
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointers
from markovia.kernels.random_numbers import uniform

SMALLEST = 4.0
"""Variables of the smallest part."""
NOISE, STEEPEST = 0.5, 2.0
"""How much scores are perturbed at most, and the highest power of a table's size that the fill edges are divided by."""
FILLING, WEIGHTED = 0.95, 0.5
"""The parts of all moves that look at fill edges, and at those weighted by states; the rest looks at table sizes alone."""


@inner(bare=True)
def _count(x):
    """Return how many bits are set."""
    x -= (x >> 1) & 0x5555555555555555
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 127


@inner(bare=True)
def _bucket_cost(card, message, limit, over):
    """Return what a bucket costs: its entries, and more where its message goes beyond the limit."""
    cost = card * message
    if message > limit:
        cost *= 1.0 + over * log2(message / limit)
    return cost


@inner(bare=True)
def _score(w, v, words, filling, weighted, power):
    """Score a vertex of a part: its fill edges by the size of its table, or that size; return how many edges too."""
    fill = 0.0
    size = w.logs[v]
    for a in range(words):
        x = w.links[v * words + a]
        while x:
            lowest = x & -x
            x ^= lowest
            u = a * BITS + _count(lowest - 1)
            size += w.logs[u]
            if filling:
                missing = -1  # u itself is among those that u does not see
                for b in range(words):
                    y = w.links[v * words + b] & ~w.links[u * words + b]
                    if y:
                        missing += _count(y)
                fill += missing * w.logs[u] if weighted else missing
    w.fill[v] = fill
    return (fill + 0.1) * size**-power if filling else size


@inner(bare=True)
def _eliminate(t, w, s, inside, size, words, longest, bound, limit, over):
    """Eliminate the first `inside` vertices of a part greedily with random tastes; return the cost and the steps.

    The cost is infinite as soon as it reaches the bound.
    """
    taste = uniform(s)
    filling, weighted = taste < FILLING, taste < WEIGHTED
    power = STEEPEST * uniform(s)
    noise = uniform(s)
    noise = 1e-7 + NOISE * noise * noise
    steps = size * words
    for i in range(size * words):
        w.links[i] = w.start[i]
    for v in range(inside):
        w.left[v] = v
        score = _score(w, v, words, filling, weighted, power) * (1.0 + noise * uniform(s))
        w.key[v] = score + 1e12 * t.stage[w.member[v]]
        steps += size * words
    total = 0.0
    for k in range(inside):
        best = 0
        for i in range(1, inside - k):
            if w.key[w.left[i]] < w.key[w.left[best]]:
                best = i
        v = w.left[best]
        w.left[best] = w.left[inside - k - 1]
        w.order[k] = v
        steps += inside - k
        message = 1.0
        degree = 0
        for a in range(words):
            x = w.links[v * words + a]
            w.rings[k * words + a] = x
            w.some[a] = x
            while x:
                lowest = x & -x
                x ^= lowest
                message *= w.card[a * BITS + _count(lowest - 1)]
                degree += 1
        total += _bucket_cost(w.card[v], message, limit, over)
        if total >= bound or degree > longest:
            return inf, steps
        # join the ring and take v out of it; scores change in the ring and, where edges are new, beside it
        joining = not filling or w.fill[v] > 1e-9
        own = 1 << (v % BITS)
        for a in range(words):
            x = w.rings[k * words + a]
            while x:
                lowest = x & -x
                x ^= lowest
                u = a * BITS + _count(lowest - 1)
                if joining:
                    for b in range(words):
                        w.links[u * words + b] |= w.rings[k * words + b]
                        if filling:
                            w.some[b] |= w.links[u * words + b]
                    w.links[u * words + a] ^= lowest
                w.links[u * words + v // BITS] &= ~own
        w.some[v // BITS] &= ~own
        for a in range(words):
            x = w.some[a]
            while x:
                lowest = x & -x
                x ^= lowest
                u = a * BITS + _count(lowest - 1)
                if u < inside:
                    score = _score(w, u, words, filling, weighted, power) * (1.0 + noise * uniform(s))
                    w.key[u] = score + 1e12 * t.stage[w.member[u]]
                    steps += degree * words
    return total, steps


@inner(bare=True)
def _choose(t, w, s, n, largest):
    """Choose connected buckets around a heavy one; return their root, how many, and how many children hang below them.

    Heavy is drawn by the roots of costs: small buckets far below shape the large ones.
    """
    heavy = 0.0
    for v in range(n):
        heavy += t.cost[v] ** 0.5
    want = uniform(s) * heavy
    root = 0
    for v in range(n):
        want -= t.cost[v] ** 0.5
        if want < 0.0:
            root = v
            break
    wanted = int(SMALLEST * (largest / SMALLEST) ** uniform(s))
    up = int(uniform(s) * wanted)
    w.member[0] = root
    w.place[root] = 0
    inside = 1
    while up > 0 and t.parent[root] >= 0:
        root = t.parent[root]
        w.member[inside] = root
        w.place[root] = inside
        inside += 1
        up -= 1
    hanging = 0
    for i in range(inside):
        c = t.first[w.member[i]]
        while c >= 0:
            if w.place[c] < 0:
                w.below[hanging] = c
                hanging += 1
            c = t.after[c]
    # grow downwards, rather into the heavier of two children
    while inside < wanted and hanging > 0:
        i = int(uniform(s) * hanging)
        j = int(uniform(s) * hanging)
        if t.cost[w.below[j]] > t.cost[w.below[i]]:
            i = j
        v = w.below[i]
        hanging -= 1
        w.below[i] = w.below[hanging]
        w.member[inside] = v
        w.place[v] = inside
        inside += 1
        c = t.first[v]
        while c >= 0:
            w.below[hanging] = c
            hanging += 1
            c = t.after[c]
    return root, inside, hanging


@inner(bare=True)
def _link(t, w, root, inside, hanging, longest):
    """Write down the graph of a part and of the ring of its root; return its size, words a row, and steps."""
    size = inside
    for i in range(t.size[root]):
        u = t.ring[root * longest + i]
        w.member[size] = u
        w.place[u] = size
        size += 1
    words = (size + BITS - 1) // BITS
    steps = size * words
    for i in range(size * words):
        w.start[i] = 0
    for i in range(inside):
        v = w.member[i]
        for e in range(t.near_start[v], t.near_start[v + 1]):
            j = w.place[t.near[e]]
            if j >= 0:
                w.start[i * words + j // BITS] |= 1 << (j % BITS)
                w.start[j * words + i // BITS] |= 1 << (i % BITS)
        steps += t.near_start[v + 1] - t.near_start[v]
    # a message from below joins its variables, and those of the root's ring will be joined whatever the order
    for h in range(hanging + 1):
        c = root if h == hanging else w.below[h]
        for a in range(words):
            w.some[a] = 0
        for i in range(t.size[c]):
            j = w.place[t.ring[c * longest + i]]
            w.some[j // BITS] |= 1 << (j % BITS)
        for i in range(t.size[c]):
            j = w.place[t.ring[c * longest + i]]
            for a in range(words):
                w.start[j * words + a] |= w.some[a]
        steps += t.size[c] * (words + 1)
    for j in range(size):
        v = w.member[j]
        w.start[j * words + j // BITS] &= ~(1 << (j % BITS))
        w.card[j], w.logs[j] = t.card[v], t.logs[v]
    return size, words, steps


@inner(bare=True)
def _hang(t, v, parent):
    """Make a vertex the first child of another one."""
    t.parent[v] = parent
    t.before[v] = -1
    t.after[v] = -1
    if parent >= 0:
        t.after[v] = t.first[parent]
        if t.first[parent] >= 0:
            t.before[t.first[parent]] = v
        t.first[parent] = v


@inner(bare=True)
def _replace(t, w, root, inside, hanging, words, longest, limit, over):
    """Put the buckets of the order found in the place of the old ones."""
    above = t.parent[root]
    if above >= 0:
        if t.before[root] >= 0:
            t.after[t.before[root]] = t.after[root]
        else:
            t.first[above] = t.after[root]
        if t.after[root] >= 0:
            t.before[t.after[root]] = t.before[root]
    for k in range(inside):
        w.rank[w.order[k]] = k
        t.first[w.member[k]] = -1
    for k in range(inside):
        v = w.member[w.order[k]]
        degree = 0
        message = 1.0
        next_one = inside
        for a in range(words):
            x = w.rings[k * words + a]
            while x:
                lowest = x & -x
                x ^= lowest
                j = a * BITS + _count(lowest - 1)
                t.ring[v * longest + degree] = w.member[j]
                degree += 1
                message *= w.card[j]
                if j < inside and w.rank[j] < next_one:
                    next_one = w.rank[j]
        t.size[v] = degree
        t.cost[v] = _bucket_cost(t.card[v], message, limit, over)
        _hang(t, v, w.member[w.order[next_one]] if next_one < inside else above)
    for h in range(hanging):
        c = w.below[h]
        next_one = inside
        for i in range(t.size[c]):
            j = w.place[t.ring[c * longest + i]]
            if j < inside and w.rank[j] < next_one:
                next_one = w.rank[j]
        _hang(t, c, w.member[w.order[next_one]])


@inner(bare=True)
def _keep(t, w, n):
    """Write the order of the tree down: from the leaves to the roots."""
    found = 0
    for v in range(n):
        if t.parent[v] < 0:
            w.left[found] = v
            found += 1
    done = 0
    while done < found:
        c = t.first[w.left[done]]
        while c >= 0:
            w.left[found] = c
            found += 1
            c = t.after[c]
        done += 1
    for i in range(n):
        t.best[i] = w.left[n - 1 - i]


@kernel(bare=True)
def anneal(tree, room, random, sums, longest, end, whole, hot, cold, largest, limit, over):
    """Go on annealing until `end` steps are done, of `whole` in which the temperature falls from `hot` to `cold`.

    Temperatures are relative to the cost of the tree; `largest` is that of parts, `longest` that of rings. `sums` and all
    arrays hold what the next call goes on from.
    """
    n = len(tree.card)
    t, w = pointers(tree), pointers(room)
    s, sums = pointers((random, sums))
    while sums[DONE] < end:
        heat = hot * (cold / hot) ** (sums[DONE] / whole)
        root, inside, hanging = _choose(t, w, s, n, largest)
        size, words, steps = _link(t, w, root, inside, hanging, longest)
        old = 0.0
        for i in range(inside):
            old += t.cost[w.member[i]]
        # a part may get dearer by a little of the whole, and at most by about as much as it costs
        slack = -log(1.0 - uniform(s))
        bound = old + slack * (heat * sums[TOTAL] if heat * sums[TOTAL] < old else old)
        new, more = _eliminate(t, w, s, inside, size, words, longest, bound, limit, over)
        if new < bound:
            _replace(t, w, root, inside, hanging, words, longest, limit, over)
            total = 0.0
            for v in range(n):
                total += t.cost[v]
            sums[TOTAL] = total
            if total < sums[BEST] * (1.0 - 1e-12):
                sums[BEST] = total
                _keep(t, w, n)
        for i in range(size):
            w.place[w.member[i]] = -1
        sums[DONE] += n + steps + more
