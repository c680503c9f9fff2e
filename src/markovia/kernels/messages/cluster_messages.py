"""Message passing between clusters whose tables hold only what is possible.

Arrays are those of `cluster_records`. A message costs one multiplication and one addition an entry, and impossible entries
cost nothing. `room` and `sums` are what a thread works in: as large as the largest cluster and the largest separator.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel

TINY = 1e-250
"""Totals below this are computed again with logarithms."""


@kernel(_nrt=False)
def recode(keys, divisors, cards, strides, out):
    """Add the sum over digits of `digit * stride` for every key to `out`; no keys at all stand for 0, 1, 2, ..."""
    every, n = len(keys) == 0, len(out)
    for d in range(len(divisors)):
        divisor, card, stride = divisors[d], cards[d], strides[d]
        if every:  # an odometer: no division
            digit = 0
            left = divisor
            for i in range(n):
                out[i] += digit * stride
                left -= 1
                if left == 0:
                    left = divisor
                    digit += 1
                    if digit == card:
                        digit = 0
        elif divisor == 1:
            for i in range(n):
                out[i] += (keys[i] % card) * stride
        else:
            for i in range(n):
                out[i] += (keys[i] // divisor % card) * stride


@kernel
def grouped(codes, space):
    """Sort positions by code, by counting: return where each code begins, and the positions."""
    start = np.zeros(space + 1, np.int64)
    for i in range(len(codes)):
        start[codes[i] + 1] += 1
    for c in range(space):
        start[c + 1] += start[c]
    place = start[:space].copy()
    order = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        order[place[codes[i]]] = i
        place[codes[i]] += 1
    return start, order


@kernel
def paired(codes, left, start, order, right, total):
    """Return `left + right` for every pair with the same code: the keys of a join."""
    out = np.empty(total, np.int64)
    at = 0
    for i in range(len(codes)):
        for j in range(start[codes[i]], start[codes[i] + 1]):
            out[at] = left[i] + right[order[j]]
            at += 1
    return out


@inner(_nrt=False)
def _product(c, clusters, inbox, room):
    """Multiply a cluster's weights with what it is told, up to a constant; return the total."""
    entry_ptr, base, slot_ptr, slot_at, index_at, index = clusters
    first, last = entry_ptr[c], entry_ptr[c + 1]
    s0 = slot_ptr[c]
    k = slot_ptr[c + 1] - s0
    at = index_at[c]
    total = 0.0
    for i in range(first, last):
        p = base[i]
        for j in range(k):
            p *= inbox[slot_at[s0 + j] + index[at + j]]
        at += k
        room[i - first] = p
        total += p
    if total > TINY:
        return total
    top = -np.inf
    at = index_at[c]
    for i in range(first, last):
        p = np.log(base[i])
        for j in range(k):
            p += np.log(inbox[slot_at[s0 + j] + index[at + j]])
        at += k
        room[i - first] = p
        if p > top:
            top = p
    if top == -np.inf:
        return 0.0
    total = 0.0
    for i in range(last - first):
        room[i] = np.exp(room[i] - top)
        total += room[i]
    return total


@inner(_nrt=False)
def _say(slot, c, clusters, seps, talk, damping, room, sums):
    """Sum a cluster's product for one of its separators, take out what it was told; return False if nothing is left."""
    index, slot_ptr = clusters.places, clusters.slot_ptr
    inbox, said, _, weight = talk
    sep = seps.slot_sep[slot]
    b, mine = seps.sep_at[sep], clusters.slot_at[slot]
    size = seps.sep_at[sep + 1] - b
    k = slot_ptr[c + 1] - slot_ptr[c]
    for x in range(size):
        sums[x] = 0.0
    at = clusters.places_at[c] + slot - slot_ptr[c]
    for i in range(clusters.entry_ptr[c + 1] - clusters.entry_ptr[c]):
        sums[index[at]] += room[i]
        at += k
    top = 0.0
    for x in range(size):
        told = inbox[mine + x]
        v = 0.0
        if told > 0.0:
            v = sums[x] / told * weight[b + x]
            if v > 1e300:
                v = 1e300
        sums[x] = v
        if v > top:
            top = v
    for x in range(size):
        v = sums[x] / top
        if damping > 0.0 and v > 0.0 and said[mine + x] > 0.0:
            v = np.exp((1.0 - damping) * np.log(v) + damping * np.log(said[mine + x]))
        said[mine + x] = v
    return top > 0.0


@inner(_nrt=False)
def _tell(sep, slot_at, seps, talk, sums):
    """Combine what clusters say at a separator, tell each what the others said; return the change, -1 if impossible."""
    sep_ptr, sep_slots, sep_at, power, slack = seps[2:]
    inbox, said, belief, weight = talk
    a, z = sep_ptr[sep], sep_ptr[sep + 1]
    b = sep_at[sep]
    size = sep_at[sep + 1] - b
    total = 0.0
    simple = z - a == 2 and power[sep] == 1.0 and slack[sep] == 0.0
    if simple:  # each is told what the other said
        one, other = slot_at[sep_slots[a]], slot_at[sep_slots[a + 1]]
        for x in range(size):
            inbox[other + x] = said[one + x] * weight[b + x]
            inbox[one + x] = said[other + x] * weight[b + x]
            sums[x] = said[one + x] * said[other + x]
            total += sums[x]
    if not total > TINY:  # in logarithms: the root of the product of all that was said
        top = -np.inf
        for x in range(size):
            v = slack[sep] * np.log(belief[b + x]) if slack[sep] > 0.0 else 0.0
            for t in range(a, z):
                v += np.log(said[slot_at[sep_slots[t]] + x])
            v /= power[sep] + slack[sep]
            sums[x] = v
            if v > top:
                top = v
        if top == -np.inf:
            return -1.0
        total = 0.0
        for x in range(size):
            sums[x] -= top
        if not simple:
            for t in range(a, z):
                at = slot_at[sep_slots[t]]
                top = -np.inf
                for x in range(size):
                    v = -np.inf
                    if sums[x] > -np.inf:
                        v = sums[x] + np.log(weight[b + x]) - np.log(said[at + x])
                    inbox[at + x] = v
                    if v > top:
                        top = v
                for x in range(size):
                    inbox[at + x] = np.exp(inbox[at + x] - top)
        for x in range(size):
            sums[x] = np.exp(sums[x])
            total += sums[x]
    change = 0.0
    for x in range(size):
        v = sums[x] / total
        apart = abs(v - belief[b + x])
        if apart > change:
            change = apart
        belief[b + x] = v
    return change


@kernel(_nrt=False)
def sweep(speakers, hearers, clusters, seps, talk, damping, room, sums):
    """Let clusters speak one after the other, or separators hear all their clusters anew; return the largest change.

    With n clusters at a separator of counting number c, the belief is the product of what they say to the power of
    1 / (n + c). Returns -1 if nothing is possible.
    """
    slot_ptr = clusters.slot_ptr
    worst = 0.0
    for c in speakers:
        if slot_ptr[c + 1] == slot_ptr[c]:
            continue
        if not _product(c, clusters, talk.inbox, room) > 0.0:
            return -1.0
        for slot in range(slot_ptr[c], slot_ptr[c + 1]):
            if not _say(slot, c, clusters, seps, talk, damping, room, sums):
                return -1.0
        for slot in range(slot_ptr[c], slot_ptr[c + 1]):
            change = _tell(seps.slot_sep[slot], clusters.slot_at, seps, talk, sums)
            if change < 0.0:
                return -1.0
            worst = max(worst, change)
    for sep in hearers:
        for t in range(seps.sep_ptr[sep], seps.sep_ptr[sep + 1]):
            slot = seps.sep_slots[t]
            c = seps.slot_cluster[slot]
            if not _product(c, clusters, talk.inbox, room) > 0.0:
                return -1.0
            if not _say(slot, c, clusters, seps, talk, damping, room, sums):
                return -1.0
        change = _tell(sep, clusters.slot_at, seps, talk, sums)
        if change < 0.0:
            return -1.0
        worst = max(worst, change)
    return worst


@kernel(_nrt=False)
def descend(order, links, clusters, message, damping, room, sums, own):
    """Update messages from regions to regions inside them; return how far the two beliefs are apart, -1 if impossible.

    A message is multiplied by the parent's belief, summed for the child, over the child's own belief. `damping` has one
    number for each of the links in `order`.
    """
    message_at, down_at, down = links.message_at, links.down_at, links.down
    entry_ptr = clusters.entry_ptr
    worst = 0.0
    for li in range(len(order)):
        m = order[li]
        p, r = links.parent[m], links.child[m]
        size = entry_ptr[r + 1] - entry_ptr[r]
        upper = _product(p, clusters, message, room)
        lower = _product(r, clusters, message, own)
        if not (upper > 0.0 and lower > 0.0):
            return -1.0
        for x in range(size):
            sums[x] = 0.0
        for i in range(entry_ptr[p + 1] - entry_ptr[p]):
            sums[down[down_at[m] + i]] += room[i]
        top = 0.0
        for x in range(size):
            here, above = own[x] / lower, sums[x] / upper
            apart = abs(here - above)
            if apart > worst:
                worst = apart
            v = 0.0
            if here > 0.0 and above > 0.0:
                v = message[message_at[m] + x] * (above / here) ** (1.0 - damping[li])
                if v > 1e300:
                    v = 1e300
            sums[x] = v
            if v > top:
                top = v
        if not top > 0.0:
            return -1.0
        for x in range(size):
            message[message_at[m] + x] = sums[x] / top
    return worst


@kernel(_nrt=False)
def read(chosen, clusters, homes, inbox, room, marginal):
    """Write the marginals of the variables that each cluster is home to; return the clusters' energy plus entropy.

    That is the sum over clusters of the expectation of log(weight / belief); -inf if some cluster has no weight.
    """
    worth = 0.0
    for c in chosen:
        first, last = clusters.entry_ptr[c], clusters.entry_ptr[c + 1]
        total = _product(c, clusters, inbox, room)
        if not total > 0.0:
            return -np.inf
        for i in range(last - first):
            p = room[i] / total
            room[i] = p
            if p > 0.0:
                worth += p * np.log(clusters.base[first + i] / p)
        for h in range(homes.ptr[c], homes.ptr[c + 1]):
            divisor, card, at = homes.divisor[h], homes.card[h], homes.at[h]
            for i in range(last - first):
                marginal[at + homes.keys[first + i] // divisor % card] += room[i]
    return worth
