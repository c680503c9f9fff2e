"""Sum-product on many trees side by side: the gradient of a tree-shaped conditional random field, instances innermost.

Trees are taken in blocks of `lanes`; at step t every lane of a block works on the t-th node of its own tree, so that all
inner loops run over lanes and use vector instructions whatever the number of labels. Arrays of a block have the shape
(steps, rows, lanes). Messages are rescaled at each node; what a child's siblings send is kept as running products, so that
nothing is divided. Everything before a rescaling is at most the number of labels, so that at most FLUSHED is lost to
underflow at a node: the lost share is carried to the root, and a block that lost anything that counts is left undone for
a method in logarithms. Cost: nodes times k squared, and two products with the node features.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel

LOOSE = {"reassoc", "contract", "nsz"}
"""Sums may be added in another order, which lets the compiler use vector instructions."""
LEAST = -708.0
FLUSHED = 1e-305
MAGIC = 1.5 * 2.0**52
"""A number of this size plus another one is rounded to whole numbers, and its last bits are that whole number."""


@kernel
def lane_features(features, nodes, lanes, found):
    """Copy rows of features side by side: the shape of `found` is (steps, features, lanes); slots without a node get 0."""
    d = features.shape[1]
    for t in range(len(found)):
        for z in range(lanes):
            i = nodes[t * lanes + z]
            for f in range(d):
                found[t, f, z] = features[i, f] if i >= 0 else 0.0


@inner(fastmath=LOOSE)
def _mix(out, weights, rows):
    """Write `weights @ rows`, several rows at a time."""
    n, d = len(out), len(rows)
    if d >= 5:
        w0, w1, w2, w3, w4 = weights[0], weights[1], weights[2], weights[3], weights[4]
        r0, r1, r2, r3, r4 = rows[0], rows[1], rows[2], rows[3], rows[4]
        for z in range(n):
            out[z] = w0 * r0[z] + w1 * r1[z] + w2 * r2[z] + w3 * r3[z] + w4 * r4[z]
        f = 5
    elif d == 4:
        w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
        r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
        for z in range(n):
            out[z] = w0 * r0[z] + w1 * r1[z] + w2 * r2[z] + w3 * r3[z]
        f = 4
    elif d == 3:
        w0, w1, w2 = weights[0], weights[1], weights[2]
        r0, r1, r2 = rows[0], rows[1], rows[2]
        for z in range(n):
            out[z] = w0 * r0[z] + w1 * r1[z] + w2 * r2[z]
        f = 3
    elif d == 2:
        w0, w1 = weights[0], weights[1]
        r0, r1 = rows[0], rows[1]
        for z in range(n):
            out[z] = w0 * r0[z] + w1 * r1[z]
        f = 2
    elif d == 1:
        w0, r0 = weights[0], rows[0]
        for z in range(n):
            out[z] = w0 * r0[z]
        f = 1
    else:
        out[:] = 0.0
        f = 0
    while f + 5 <= d:
        w0, w1, w2, w3, w4 = weights[f], weights[f + 1], weights[f + 2], weights[f + 3], weights[f + 4]
        r0, r1, r2, r3, r4 = rows[f], rows[f + 1], rows[f + 2], rows[f + 3], rows[f + 4]
        for z in range(n):
            out[z] += w0 * r0[z] + w1 * r1[z] + w2 * r2[z] + w3 * r3[z] + w4 * r4[z]
        f += 5
    if f + 2 < d:
        w0, w1, w2 = weights[f], weights[f + 1], weights[f + 2]
        r0, r1, r2 = rows[f], rows[f + 1], rows[f + 2]
        for z in range(n):
            out[z] += w0 * r0[z] + w1 * r1[z] + w2 * r2[z]
        f += 3
    while f < d:
        w0, r0 = weights[f], rows[f]
        for z in range(n):
            out[z] += w0 * r0[z]
        f += 1


@inner(fastmath=LOOSE)
def _add_products(left, right, sums):
    """Add `left @ right.T`, a few rows of both at a time."""
    k, n = left.shape
    d = len(right)
    a = 0
    while a + 2 <= k:
        p0, p1 = left[a], left[a + 1]
        f = 0
        while f + 4 <= d:
            r0, r1, r2, r3 = right[f], right[f + 1], right[f + 2], right[f + 3]
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = 0.0
            for z in range(n):
                s0 += p0[z] * r0[z]
                s1 += p0[z] * r1[z]
                s2 += p0[z] * r2[z]
                s3 += p0[z] * r3[z]
                t0 += p1[z] * r0[z]
                t1 += p1[z] * r1[z]
                t2 += p1[z] * r2[z]
                t3 += p1[z] * r3[z]
            sums[a, f] += s0
            sums[a, f + 1] += s1
            sums[a, f + 2] += s2
            sums[a, f + 3] += s3
            sums[a + 1, f] += t0
            sums[a + 1, f + 1] += t1
            sums[a + 1, f + 2] += t2
            sums[a + 1, f + 3] += t3
            f += 4
        while f < d:
            r0 = right[f]
            s0 = t0 = 0.0
            for z in range(n):
                s0 += p0[z] * r0[z]
                t0 += p1[z] * r0[z]
            sums[a, f] += s0
            sums[a + 1, f] += t0
            f += 1
        a += 2
    if a < k:
        p0 = left[a]
        f = 0
        while f + 4 <= d:
            r0, r1, r2, r3 = right[f], right[f + 1], right[f + 2], right[f + 3]
            s0 = s1 = s2 = s3 = 0.0
            for z in range(n):
                s0 += p0[z] * r0[z]
                s1 += p0[z] * r1[z]
                s2 += p0[z] * r2[z]
                s3 += p0[z] * r3[z]
            sums[a, f] += s0
            sums[a, f + 1] += s1
            sums[a, f + 2] += s2
            sums[a, f + 3] += s3
            f += 4
        while f < d:
            r0 = right[f]
            s0 = 0.0
            for z in range(n):
                s0 += p0[z] * r0[z]
            sums[a, f] += s0
            f += 1


@inner(fastmath={"contract"})
def _exponentials(scores, top, tops):
    """Replace each column of scores by exponentials after its largest entry was taken out and added to `tops`.

    A power of two is taken out, a polynomial of degree 10 (interpolation at Chebyshev's points, relative error 3e-16) does
    the rest; what is below exp(LEAST) becomes 0.
    """
    k, n = scores.shape
    row = scores[0]
    for z in range(n):
        top[z] = row[z]
    for a in range(1, k):
        row = scores[a]
        for z in range(n):
            top[z] = max(top[z], row[z])
    for z in range(n):
        tops[z] += top[z]
    for a in range(k):
        row = scores[a]
        for z in range(n):
            given = row[z] - top[z]
            x = max(given, LEAST)
            shifted = x * 1.4426950408889634 + MAGIC
            r = x - (shifted - MAGIC) * 0.6931471805599453
            s = r * r
            low = (1.0 + 1.0000000000000067 * r) + s * (0.5000000000000006 + 0.16666666666554314 * r)
            middle = 0.041666666666573066 + 0.008333333385699212 * r
            middle += s * (0.001388888893251478 + 0.00019841170230570286 * r)
            high = (2.480150431378554e-05 + 2.764019739169484e-06 * r) + s * 2.7626371065696354e-07
            power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
            value = (low + (s * s) * (middle + (s * s) * high)) * power
            row[z] = value if given >= LEAST else 0.0


@kernel(fastmath=LOOSE)
def lane_gradients(first, last, blocks, features, kept, x, given, found):
    """Do blocks `first : last` of `LaneBlocks` with `LaneWeights`: write `LaneSums`.

    With `kept` the features lie in `x` (steps, features, lanes) side by side; otherwise they are copied there block by block
    from `features` (nodes, features). A block that cannot be done gets masses NaN and sums of 0.
    """
    start, graphs, nodes, above, code, alike = blocks
    weights, tables, tops = given
    sums, pairs, mass = found
    lanes = graphs.shape[1]
    k = len(weights)
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    up = np.empty((longest, k, lanes))
    message = np.empty((longest, k, lanes))
    before = np.empty((longest, k, lanes))
    down = np.empty((longest, k, lanes))
    inverse = np.empty((longest, lanes))
    loss = np.empty((longest, lanes))
    room = np.empty((5, lanes))
    total, scale, size, seen, top = room[0], room[1], room[2], room[3], room[4]
    for block in range(first, last):
        n = start[block + 1] - start[block]
        begin = start[block] * lanes
        own = x[start[block] : start[block + 1]] if kept else x[:n]
        if not kept:
            lane_features(features, nodes[begin : begin + n * lanes], lanes, own)
        # exponentials of node scores, their largest entries kept in `total`
        total[:] = 0.0
        scale[:] = 1.0
        seen[:] = 0.0
        for t in range(n):
            for a in range(k):
                _mix(up[t, a], weights[a], own[t])
            _exponentials(up[t], top, total)
        loss[:n] = FLUSHED
        fine = True
        # upwards: each node is rescaled to sum to one, its lost share grows by as much
        for t in range(n - 1, -1, -1):
            here, out = up[t], message[t]
            at = begin + t * lanes
            parent, table, full = alike[start[block] + t]
            row = here[0]
            for z in range(lanes):
                size[z] = row[z]
            for a in range(1, k):
                row = here[a]
                for z in range(lanes):
                    size[z] += row[z]
            turned, lost = inverse[t], loss[t]
            for z in range(lanes):
                turned[z] = 1.0 / size[z]
                lost[z] *= turned[z]
            if not full:
                for z in range(lanes):
                    if nodes[at + z] < 0:
                        size[z] = 1.0
            # the scale is taken into `total` only where it gets out of bounds: logarithms are slow
            wild = 0
            for z in range(lanes):
                scale[z] *= size[z]
                wild += (scale[z] < 1e-100) | (scale[z] > 1e100)
            if wild:
                for z in range(lanes):
                    total[z] += np.log(scale[z])
                    scale[z] = 1.0
            for a in range(k):
                row = here[a]
                for z in range(lanes):
                    row[z] *= turned[z]
            # the message: one product where lanes share a table, else lane by lane
            if table >= 0:
                for b in range(k):
                    _mix(out[b], tables[table, b], here)
                for z in range(lanes):
                    total[z] += tops[table] if parent >= 0 or code[at + z] >= 0 else 0.0
            elif table == -2:
                for z in range(lanes):
                    r = code[at + z]
                    if r >= 0:
                        total[z] += tops[r]
                        for b in range(k):
                            value = 0.0
                            for a in range(k):
                                value += tables[r, b, a] * here[a, z]
                            out[b, z] = value
            # multiplied into the parent; what the parent had before is the product of the siblings so far
            if parent >= 0:
                for b in range(k):
                    row, sent, old = up[parent, b], out[b], before[t, b]
                    for z in range(lanes):
                        old[z] = row[z]
                        row[z] *= sent[z]
                row = loss[parent]
                for z in range(lanes):
                    row[z] += lost[z]
            else:
                for z in range(lanes):
                    p = above[at + z]
                    if p >= 0:
                        for b in range(k):
                            before[t, b, z] = up[p, b, z]
                            up[p, b, z] *= out[b, z]
                        loss[p, z] += lost[z]
                    elif not lost[z] < 1e-20:
                        fine = False
        # downwards: the cavity of an edge is what the siblings before (in `before`) and after it (in `down`) and the
        # parent say; it is multiplied by the edge's table for the node, and with the node for the edge's marginal
        for t in range(n):
            if not fine:
                break
            at = begin + t * lanes
            parent, table, full = alike[start[block] + t]
            if parent >= 0:
                for b in range(k):
                    row, sent, old = down[parent, b], message[t, b], before[t, b]
                    for z in range(lanes):
                        old[z] *= row[z]
                        row[z] *= sent[z]
            elif parent == -2:
                for z in range(lanes):
                    p = above[at + z]
                    for b in range(k):
                        if p >= 0:
                            before[t, b, z] *= down[p, b, z]
                            down[p, b, z] *= message[t, b, z]
                        else:
                            before[t, b, z] = 0.0
            cavity, below, belief = before[t], down[t], message[t]
            if table >= 0:
                for a in range(k):
                    _mix(below[a], tables[table ^ 1, a], cavity)
                _add_products(cavity, up[t], pairs[block, table])
                if parent == -2:
                    for z in range(lanes):
                        if code[at + z] < 0:
                            for a in range(k):
                                below[a, z] = 1.0 if nodes[at + z] >= 0 else 0.0
            else:
                for z in range(lanes):
                    r = code[at + z]
                    for a in range(k):
                        value = 0.0
                        if r >= 0:
                            for b in range(k):
                                value += tables[r, b, a] * cavity[b, z]
                                pairs[block, r, b, a] += cavity[b, z] * up[t, a, z]
                        elif nodes[at + z] >= 0:
                            value = 1.0
                        below[a, z] = value
            # the node's belief, and for its children what comes from above
            turned = inverse[t]
            for a in range(k):
                row, share, own_up = below[a], belief[a], up[t, a]
                for z in range(lanes):
                    value = row[z]
                    share[z] = value * own_up[z]
                    row[z] = value * turned[z]
                for z in range(lanes):
                    seen[z] += share[z]
            _add_products(belief, own[t], sums[block])
        # beliefs of all nodes sum to one where nothing went wrong
        for z in range(lanes):
            some = 0
            for t in range(n):
                some += nodes[begin + t * lanes + z] >= 0
            if graphs[block, z] >= 0:
                value = total[z] + np.log(scale[z])
                mass[graphs[block, z]] = value
                # a comparison with NaN or infinity fails
                if not (abs(value) < 1e300 and abs(seen[z] - some) < 1e-9 * (some + 1)):
                    fine = False
        if not fine:
            sums[block] = 0.0
            pairs[block] = 0.0
            for z in range(lanes):
                if graphs[block, z] >= 0:
                    mass[graphs[block, z]] = np.nan
