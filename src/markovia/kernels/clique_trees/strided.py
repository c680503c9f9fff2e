"""Products and sums of tables that share an axis order.

A table `big` lies contiguous over some axes; `small` has a stride for each of them, zero where it lacks the axis.
Neighbouring axes that `small` steps through alike are merged first, so the innermost loop runs over long stretches where
`small` is one number or a contiguous vector.
"""

import numpy as np

from markovia.kernels.kernel import inner
from markovia.kernels.pointers import beyond

LOOSE = {"reassoc", "nnan", "nsz"}
"""Sums may be regrouped, which lets them use vector instructions; tables never hold not-a-number."""
SET, MULTIPLY, ADD = np.int64(0), np.int64(1), np.int64(2)
ZERO, ONE, NO, YES = np.int64(0), np.int64(1), np.bool_(False), np.bool_(True)
"""Numbers to call with: Python's own would make Numba compile a function for each of them."""


@inner(bare=True)
def spread_rows(what, big, rows, n, small, t, s):
    """Set, or multiply into, `rows` stretches of length `n`; `small` steps by `t` a row and by `s` inside."""
    if what == SET and n == 2:
        for j in range(rows):
            a, b = small[j * t], small[j * t + s]
            big[2 * j] = a
            big[2 * j + 1] = b
    elif what == SET and n == 3:
        for j in range(rows):
            a, b, c = small[j * t], small[j * t + s], small[j * t + 2 * s]
            big[3 * j] = a
            big[3 * j + 1] = b
            big[3 * j + 2] = c
    elif what == SET:
        for _ in range(rows):
            if s == 0:
                a = small[0]
                for i in range(n):
                    big[i] = a
            elif s == 1:
                for i in range(n):
                    big[i] = small[i]
            else:
                for i in range(n):
                    big[i] = small[i * s]
            big = beyond(big, n)
            small = beyond(small, t)
    elif n == 2:
        for j in range(rows):
            a, b = small[j * t], small[j * t + s]
            big[2 * j] *= a
            big[2 * j + 1] *= b
    elif n == 3:
        for j in range(rows):
            a, b, c = small[j * t], small[j * t + s], small[j * t + 2 * s]
            big[3 * j] *= a
            big[3 * j + 1] *= b
            big[3 * j + 2] *= c
    else:
        for _ in range(rows):
            if s == 0:
                a = small[0]
                for i in range(n):
                    big[i] *= a
            elif s == 1:
                for i in range(n):
                    big[i] *= small[i]
            else:
                for i in range(n):
                    big[i] *= small[i * s]
            big = beyond(big, n)
            small = beyond(small, t)


@inner(bare=True, fastmath=LOOSE)
def add_rows(big, rows, n, small, t, s):
    """Add `rows` stretches of length `n` onto `small`, which steps by `t` a row and by `s` inside."""
    if s == 0 and n == 2:
        for j in range(rows):
            small[j * t] += big[2 * j] + big[2 * j + 1]
    elif t == 0 and n == 2:
        a = 0.0
        b = 0.0
        for j in range(rows):
            a += big[2 * j]
            b += big[2 * j + 1]
        small[0] += a
        small[s] += b
    elif t == 0 and n == 3:
        a = 0.0
        b = 0.0
        c = 0.0
        for j in range(rows):
            a += big[3 * j]
            b += big[3 * j + 1]
            c += big[3 * j + 2]
        small[0] += a
        small[s] += b
        small[2 * s] += c
    elif n == 2:
        for j in range(rows):
            a, b = big[2 * j], big[2 * j + 1]
            small[j * t] += a
            small[j * t + s] += b
    else:
        for _ in range(rows):
            if s == 0:
                a = 0.0
                for i in range(n):
                    a += big[i]
                small[0] += a
            else:
                for i in range(n):
                    small[i * s] += big[i]
            big = beyond(big, n)
            small = beyond(small, t)


@inner(bare=True)
def walk(what, big, small, n_axes, dims, strides, scratch):
    """Set `big` to `small`, multiply `small` into it, or add it onto `small`; `scratch` has three numbers an axis."""
    length, step, index = scratch, beyond(scratch, n_axes), beyond(scratch, 2 * n_axes)
    m = 0
    for a in range(n_axes):
        d, s = dims[a], strides[a]
        if d == 1:
            continue
        if m > 0 and step[m - 1] == s * d:
            length[m - 1] *= d
            step[m - 1] = s
        else:
            length[m] = d
            step[m] = s
            index[m] = 0
            m += 1
    n = 1
    s = 0
    rows = 1
    t = 0
    if m > 0:
        n, s = length[m - 1], step[m - 1]
    if m > 1:
        rows, t = length[m - 2], step[m - 2]
    outer = 1
    for a in range(m - 2):
        outer *= length[a]
    for _ in range(outer):
        if what == ADD:
            add_rows(big, rows, n, small, t, s)
        else:
            spread_rows(what, big, rows, n, small, t, s)
        big = beyond(big, rows * n)
        a = m - 3
        while a >= 0:
            index[a] += 1
            small = beyond(small, step[a])
            if index[a] < length[a]:
                break
            small = beyond(small, -step[a] * length[a])
            index[a] = 0
            a -= 1
