"""Rows and their nearest centres, with bounds that spare most rows the search (Hamerly 2010).

Of each row its cluster is known, a distance that its own centre is no further away than (`upper`), and one that no other
centre is nearer than (`lower`). When centres move, the bounds widen by how far; only rows whose bounds overlap are measured
against all centres, some at a time and turned, so that inner loops run along rows that stay in the cache.
Cost: rows searched times centres times columns.
"""

from math import sqrt

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

REORDERED = {"reassoc", "contract"}
WIDTH = 64
"""How many rows are searched at a time."""


@inner(bare=True, fastmath=REORDERED)
def _search(d, k, centres, halves, room):
    """Write the largest product, the second largest and the centre of the largest of `WIDTH` turned rows.

    A product is that of row and centre, less half the centre's squared length. They stand in the first three rows of the
    room; the turned rows begin with its fifth. Steps that are known beforehand make these loops three times as fast.
    """
    whole = d - d % 8
    for t in range(WIDTH):
        room[t] = -1e300
        room[WIDTH + t] = -1e300
        room[2 * WIDTH + t] = 0.0
    for s in range(k):
        half = halves[s]
        for t in range(WIDTH):
            room[3 * WIDTH + t] = -half
        for i in range(0, whole, 8):
            row = beyond(room, (4 + i) * WIDTH)
            c = beyond(centres, s * d + i)
            c0, c1, c2, c3, c4, c5, c6, c7 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
            for t in range(WIDTH):
                room[3 * WIDTH + t] += (
                    (c0 * row[t] + c1 * row[WIDTH + t])
                    + (c2 * row[2 * WIDTH + t] + c3 * row[3 * WIDTH + t])
                    + (c4 * row[4 * WIDTH + t] + c5 * row[5 * WIDTH + t])
                    + (c6 * row[6 * WIDTH + t] + c7 * row[7 * WIDTH + t])
                )
        for i in range(whole, d):
            row = beyond(room, (4 + i) * WIDTH)
            c0 = centres[s * d + i]
            for t in range(WIDTH):
                room[3 * WIDTH + t] += c0 * row[t]
        label = float(s)
        for t in range(WIDTH):
            found = room[3 * WIDTH + t]
            old = room[t]
            beaten = old if found > old else found
            room[WIDTH + t] = beaten if beaten > room[WIDTH + t] else room[WIDTH + t]
            room[2 * WIDTH + t] = label if found > old else room[2 * WIDTH + t]
            room[t] = found if found > old else old


@inner(bare=True)
def _settle(n, d, places, rows, weights, centres, room, labels, upper, lower, sums):
    """Give searched rows their clusters and bounds, and move their weight; return how many changed."""
    changed = 0
    for t in range(n):
        i = places[t]
        row = beyond(rows, i * d)
        new = int(room[2 * WIDTH + t])
        old = labels[i]
        square = 0.0
        length = 0.0
        for j in range(d):
            apart = row[j] - centres[new * d + j]
            square += apart * apart
            length += row[j] * row[j]
        upper[i] = sqrt(square)
        other = length - 2.0 * room[WIDTH + t]
        # products lose digits that differences keep: the bound gives way by as much
        other -= 1e-14 * (length + abs(other))
        lower[i] = sqrt(other) if other > 0.0 else 0.0
        if new != old:
            w = weights[i]
            to = beyond(sums, new * (d + 1))
            for j in range(d):
                to[j] += w * row[j]
            to[d] += w
            if old >= 0:
                away = beyond(sums, old * (d + 1))
                for j in range(d):
                    away[j] -= w * row[j]
                away[d] -= w
            labels[i] = new
            changed += 1
    return changed


@kernel(bare=True, fastmath=REORDERED)
def assign(
    first, last, rows, weights, centres, halves, moved, others, gaps, labels, upper, lower, room, places, sums
):
    """Give rows first ... last their nearest centres, move their weights between `sums`, and return how many changed.

    `rows (n, columns)`, `centres (k, columns)`, `halves (k,)` half their squared lengths, `moved` how far each centre has
    moved since the last time and `others` how far any other has, `gaps` half the distance to the nearest other centre;
    `labels` (-1 for a row without), `upper`, `lower` (n,); `room (columns + 4, WIDTH)`, `places (WIDTH,)`,
    `sums (k, columns + 1)`.
    """
    d, k = centres.shape[1], centres.shape[0]
    x, w, m, h, tile = pointer(rows), pointer(weights), pointer(centres), pointer(halves), pointer(room)
    own, near, far, at, total = (
        pointer(labels), pointer(upper), pointer(lower), pointer(places), pointer(sums),
    )  # fmt: skip
    step, rest, half_gap = pointer(moved), pointer(others), pointer(gaps)
    changed = 0
    n = 0
    for i in range(first, last):
        s = own[i]
        settled = False
        if s >= 0:
            far[i] -= rest[s]
            near[i] += step[s]
            bound = far[i] if far[i] > half_gap[s] else half_gap[s]
            settled = near[i] < bound
            if not settled:
                square = 0.0
                for j in range(d):
                    apart = x[i * d + j] - m[s * d + j]
                    square += apart * apart
                near[i] = sqrt(square)
                settled = near[i] < bound
        if not settled:
            for j in range(d):
                tile[(4 + j) * WIDTH + n] = x[i * d + j]
            at[n] = i
            n += 1
            if n == WIDTH:
                _search(d, k, m, h, tile)
                changed += _settle(n, d, at, x, w, m, tile, own, near, far, total)
                n = 0
    if n > 0:
        _search(d, k, m, h, tile)
        changed += _settle(n, d, at, x, w, m, tile, own, near, far, total)
    return changed


@kernel(bare=True)
def measure(first, last, rows, centres, labels, squares):
    """Write the squared distance of rows first ... last from the centres of their clusters into `squares`."""
    for i in range(first, last):
        s = labels[i]
        square = 0.0
        for j in range(centres.shape[1]):
            apart = rows[i, j] - centres[s, j]
            square += apart * apart
        squares[i] = square
