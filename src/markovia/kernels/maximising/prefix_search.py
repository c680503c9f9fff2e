"""Searches that give states to one variable after the other: the best prefixes of each depth, or the best of all.

The score of a prefix bounds the log weight of every configuration that begins with it (`search_records.PrefixTables`).
Two prefixes of one depth that leave the same states behind, in all variables that later tables ask for, go on alike: the
worse of them is dropped at no loss.
"""

from math import inf

from markovia.kernels.kept_best import keep_best
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers

PROVED, FULL, GOING_ON = 0, 1, 2
SAME = 1e-13
"""A change this small beside the score is rounding: the child keeps its parent's bound, so that ties go deeper."""


@inner(bare=True)
def _place(t, table, last, codes):
    """Return where a table has the states of a prefix; its scope counts up to, without, place `last`."""
    at = t.base[table]
    for e in range(t.scope_ptr[table], last):
        at += t.strides[e] * codes[t.scope[e]]
    return at


@inner(bare=True)
def _extensions(t, depth, codes, score, found):
    """Write the scores of a prefix extended by each state of the next variable."""
    for i in range(t.leaving_ptr[depth], t.leaving_ptr[depth + 1]):
        table = t.leaving[i]
        score -= t.values[_place(t, table, t.scope_ptr[table + 1], codes)]
    card = t.cards[depth]
    for x in range(card):
        found[x] = score
    for i in range(t.joining_ptr[depth], t.joining_ptr[depth + 1]):
        table = t.joining[i]
        at = _place(t, table, t.scope_ptr[table + 1] - 1, codes)
        for x in range(card):
            found[x] += t.values[at + x]


@inner(bare=True)
def _hash(t, depth, codes, x):
    """Return a number for what a prefix leaves behind after a depth, with state x there."""
    found = depth + 1
    for i in range(t.live_ptr[depth], t.live_ptr[depth + 1]):
        slot = t.live[i]
        found = (found ^ (x if slot == t.slot[depth] else codes[slot])) * 0x9E3779B97F4A7C1
        found ^= found >> 29
    return found


@inner(bare=True)
def _leave_the_same(t, depth, codes, x, others, y):
    for i in range(t.live_ptr[depth], t.live_ptr[depth + 1]):
        slot = t.live[i]
        if slot == t.slot[depth]:
            if x != y:
                return False
        elif codes[slot] != others[slot]:
            return False
    return True


@kernel(bare=True)
def beam_steps(tables, first, last, width, beam):
    """Extend the prefixes from depth `first` to `last`, keeping at most `width` of each depth; return how many went."""
    slots, most, mask = beam.codes.shape[2], beam.codes.shape[1], len(beam.hashed) - 1
    t, b = pointers(tables), pointers(beam)
    gone = 0
    for depth in range(first, last):
        card, count = t.cards[depth], int(b.ends[0])
        here, there = (depth % 2) * most, (1 - depth % 2) * most
        for p in range(count):
            _extensions(
                t, depth, beyond(b.codes, (here + p) * slots), b.scores[here + p], beyond(b.offered, p * card)
            )
        # of extensions that leave the same states behind only the best stays
        for i in range(mask + 1):
            b.hashed[i] = -1
        for c in range(count * card):
            if b.offered[c] == -inf:
                continue
            codes, x = beyond(b.codes, (here + c // card) * slots), c % card
            at = _hash(t, depth, codes, x) & mask
            while b.hashed[at] >= 0:
                other = b.hashed[at]
                theirs = beyond(b.codes, (here + other // card) * slots)
                if _leave_the_same(t, depth, codes, x, theirs, other % card):
                    break
                at = (at + 1) & mask
            if b.hashed[at] >= 0:
                other = b.hashed[at]
                if b.offered[c] <= b.offered[other]:
                    b.offered[c] = -inf
                    continue
                b.offered[other] = -inf
            b.hashed[at] = c
        kept = 0
        for c in range(count * card):
            if b.offered[c] == -inf:
                continue
            out = keep_best(b.offered, b.heap, kept, width, c)
            if out < 0:
                kept += 1
            else:
                gone += 1
                b.ends[1] = max(b.ends[1], b.offered[out])
        for i in range(kept):
            c = b.heap[i]
            p = c // card
            for s in range(slots):
                b.codes[(there + i) * slots + s] = b.codes[(here + p) * slots + s]
            b.codes[(there + i) * slots + t.slot[depth]] = c % card
            b.scores[there + i] = b.offered[c]
            b.parents[depth * most + i] = p
            b.states[depth * most + i] = c % card
        b.ends[0] = kept
    return gone


@inner(bare=True)
def _prefix(t, o, node, codes):
    """Write the states of a node's prefix by slot."""
    depth = o.depths[node]
    for d in range(depth - 1, -1, -1):
        o.path[d] = o.states[node]
        node = o.parents[node]
    for d in range(depth):  # a slot holds the last of the variables that share it
        codes[t.slot[d]] = o.path[d]


@inner(bare=True)
def _before(o, one, other):
    """Say whether an open node goes first: by its bound, then by its depth."""
    if o.bounds[one] != o.bounds[other]:
        return o.bounds[one] > o.bounds[other]
    return o.depths[one] > o.depths[other]


@kernel(bare=True)
def best_first(tables, root, steps, nodes, room):
    """Extend the open nodes of the largest bounds, so many at most; see `PROVED`, `FULL`, `GOING_ON`.

    The search begins where nothing is made, with `root` as the score of the empty prefix. `ends[3]` is a log weight that
    is known, and is raised to that of the first complete prefix, which is then the best of all.
    """
    n, most, mask, slots = len(tables.cards), len(nodes.bounds), len(nodes.hashed) - 1, nodes.codes.shape[1]
    t, o, room = pointers(tables), pointers(nodes), pointer(room)
    codes, others = o.codes, beyond(o.codes, slots)
    for _ in range(steps):
        node, bound, depth = -1, root, 0
        if o.ends[0] > 0:
            count = int(o.ends[1])
            if count == 0 or o.bounds[o.heap[0]] <= o.ends[3]:
                return PROVED
            node = o.heap[0]
            bound, depth = o.bounds[node], o.depths[node]
            if depth == n:
                o.ends[3] = bound
                o.ends[4] = node
                return PROVED
            if o.ends[0] + t.cards[depth] > most:
                return FULL
            last = o.heap[count - 1]
            at = 0
            while 2 * at + 1 < count - 1:
                child = 2 * at + 1
                if child + 1 < count - 1 and _before(o, o.heap[child + 1], o.heap[child]):
                    child += 1
                if not _before(o, o.heap[child], last):
                    break
                o.heap[at] = o.heap[child]
                at = child
            o.heap[at] = last
            o.ends[1] = count - 1
            _prefix(t, o, node, codes)
            # a node extended before that leaves the same states behind had a larger bound: this one is no better
            own = o.states[node]
            at = _hash(t, depth - 1, codes, own) & mask
            while o.hashed[at] >= 0:
                other = o.hashed[at]
                if o.depths[other] == depth:
                    _prefix(t, o, other, others)
                    if _leave_the_same(t, depth - 1, codes, own, others, o.states[other]):
                        break
                at = (at + 1) & mask
            if o.hashed[at] >= 0:
                continue
            o.hashed[at] = node
        elif t.cards[0] > most:
            return FULL
        o.ends[2] += 1
        _extensions(t, depth, codes, bound, room)
        for x in range(t.cards[depth]):
            child_bound = min(room[x], bound)
            if bound - child_bound <= SAME * (1.0 + abs(bound)):
                child_bound = bound
            if child_bound <= o.ends[3]:
                continue
            made, at = int(o.ends[0]), int(o.ends[1])
            o.bounds[made] = child_bound
            o.parents[made] = node
            o.states[made] = x
            o.depths[made] = depth + 1
            while at > 0 and _before(o, made, o.heap[(at - 1) // 2]):
                o.heap[at] = o.heap[(at - 1) // 2]
                at = (at - 1) // 2
            o.heap[at] = made
            o.ends[0] += 1
            o.ends[1] += 1
        if o.ends[0] == 0:
            return PROVED
    return GOING_ON
