"""Distances of rows from the centres of Gaussians, and weighted sums of squares around them.

Rows are taken some hundred at a time and turned, so that inner loops run along rows that stay in the cache; `room` is what a
thread does that in. Of a matrix `(states, columns, columns)` only the lower triangle is looked at, or only the diagonal.
Cost: rows times states times entries looked at.
"""

from markovia.kernels.kernel import inner, kernel

REORDERED = {"reassoc", "contract"}


@inner(bare=True)
def _turned(first, n, values, room, at):
    """Write values[first ... first + n] into columns, from row `at` of the room."""
    for t in range(n):
        for i in range(values.shape[1]):
            room[at + i, t] = values[first + t, i]


@inner(bare=True, fastmath=REORDERED)
def _apart(n, s, means, room):
    """Write what is turned in the first rows of the room less the mean of state s into the rows after those."""
    d = means.shape[1]
    for i in range(d):
        mean = means[s, i]
        for t in range(n):
            room[d + i, t] = room[i, t] - mean


@kernel(bare=True, fastmath=REORDERED)
def squared_lengths(first, last, rows, means, inverses, diagonal, room, squares):
    """Write the squared length of each row less each mean, times the inverse root, into `squares (rows, states)`.

    `room` is (2 columns + 2, width).
    """
    k = means.shape[0]
    d = means.shape[1]
    width = room.shape[1]
    white = 2 * d
    total = 2 * d + 1
    for a in range(first, last, width):
        n = min(width, last - a)
        _turned(a, n, rows, room, 0)
        for s in range(k):
            _apart(n, s, means, room)
            for t in range(n):
                room[total, t] = 0.0
            for i in range(d):
                c = inverses[s, i, i]
                for t in range(n):
                    room[white, t] = c * room[d + i, t]
                for j in range(0 if diagonal else i):
                    c = inverses[s, i, j]
                    for t in range(n):
                        room[white, t] += c * room[d + j, t]
                for t in range(n):
                    room[total, t] += room[white, t] * room[white, t]
            for t in range(n):
                squares[a + t, s] = room[total, t]


@kernel(bare=True, fastmath=REORDERED)
def weighted_squares(first, last, rows, weights, means, diagonal, room, sums):
    """Add weighted products of each row less each mean to `sums (states, columns, columns)`.

    `room` is (2 columns + 1 + states, width).
    """
    k = means.shape[0]
    d = means.shape[1]
    width = room.shape[1]
    part = 2 * d
    for a in range(first, last, width):
        n = min(width, last - a)
        _turned(a, n, rows, room, 0)
        _turned(a, n, weights, room, part + 1)
        for s in range(k):
            _apart(n, s, means, room)
            for i in range(d):
                for t in range(n):
                    room[part, t] = room[part + 1 + s, t] * room[d + i, t]
                for j in range(i if diagonal else 0, i + 1):
                    found = 0.0
                    for t in range(n):
                        found += room[part, t] * room[d + j, t]
                    sums[s, i, j] += found
