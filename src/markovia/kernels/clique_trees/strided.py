"""Products and sums of tables that share an axis order.

A table `big` lies contiguous over some axes; `small` has a stride for each of them, zero where it lacks the axis.
Neighbouring axes that `small` steps through alike are merged first, so the innermost loop runs over long stretches where
`small` is one number or a contiguous vector. Unsigned offsets spare the check for negative indices.
"""

import numpy as np

from markovia.kernels.kernel import kernel

U = np.uint64
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)
LOOSE = {"reassoc", "nnan", "nsz"}
"""Sums may be regrouped, which lets them use vector instructions; tables never hold not-a-number."""


@kernel(forceinline=True)
def _merge(dims, first, last, strides, row, length, step):
    """Merge axes `first..last` into runs; return how many there are."""
    m = 0
    for a in range(first, last):
        d = dims[a]
        if d == 1:
            continue
        s = strides[row, a]
        if m > 0 and step[m - 1] == s * d:
            length[m - 1] *= d
            step[m - 1] = s
        else:
            length[m] = d
            step[m] = s
            m += 1
    return m


@kernel
def rows_assign(big, b, rows, inner, small, y, s2, s):
    """Set `rows` stretches of length `inner`; `small` steps by `s2` a row and by `s` inside."""
    if inner == 2:
        z = U(y)
        u = U(s)
        w = U(s2)
        for j in range(U(rows)):
            k = b + j * TWO
            t0 = small[z]
            t1 = small[z + u]
            big[k] = t0
            big[k + ONE] = t1
            z += w
        return
    if inner == 3:
        z = U(y)
        u = U(s)
        w = U(s2)
        for j in range(U(rows)):
            k = b + j * THREE
            t0 = small[z]
            t1 = small[z + u]
            t2 = small[z + u + u]
            big[k] = t0
            big[k + ONE] = t1
            big[k + TWO] = t2
            z += w
        return
    n = U(inner)
    for _ in range(rows):
        z = U(y)
        if s == 0:
            t = small[z]
            for i in range(n):
                big[b + i] = t
        elif s == 1:
            for i in range(n):
                big[b + i] = small[z + i]
        else:
            w = U(s)
            for i in range(n):
                big[b + i] = small[z + w * i]
        b += n
        y += s2


@kernel
def rows_multiply(big, b, rows, inner, small, y, s2, s):
    """Multiply `rows` stretches of length `inner`; `small` steps by `s2` a row and by `s` inside."""
    if inner == 2:
        z = U(y)
        u = U(s)
        w = U(s2)
        for j in range(U(rows)):
            k = b + j * TWO
            t0 = small[z]
            t1 = small[z + u]
            big[k] *= t0
            big[k + ONE] *= t1
            z += w
        return
    if inner == 3:
        z = U(y)
        u = U(s)
        w = U(s2)
        for j in range(U(rows)):
            k = b + j * THREE
            t0 = small[z]
            t1 = small[z + u]
            t2 = small[z + u + u]
            big[k] *= t0
            big[k + ONE] *= t1
            big[k + TWO] *= t2
            z += w
        return
    n = U(inner)
    for _ in range(rows):
        z = U(y)
        if s == 0:
            t = small[z]
            for i in range(n):
                big[b + i] *= t
        elif s == 1:
            for i in range(n):
                big[b + i] *= small[z + i]
        else:
            w = U(s)
            for i in range(n):
                big[b + i] *= small[z + w * i]
        b += n
        y += s2


@kernel(fastmath=LOOSE)
def rows_add(big, b, rows, inner, small, y, s2, s):
    """Add `rows` stretches of length `inner` onto `small`."""
    n = U(inner)
    if s == 0 and inner == 2:
        z = U(y)
        w = U(s2)
        for j in range(U(rows)):
            small[z + j * w] += big[b + j * TWO] + big[b + j * TWO + ONE]
        return
    if s == 0 and inner == 3:
        z = U(y)
        w = U(s2)
        for j in range(U(rows)):
            k = b + j * THREE
            small[z + j * w] += big[k] + big[k + ONE] + big[k + TWO]
        return
    if s2 == 0 and inner == 2:
        t0 = 0.0
        t1 = 0.0
        for j in range(U(rows)):
            t0 += big[b + j * TWO]
            t1 += big[b + j * TWO + ONE]
        small[U(y)] += t0
        small[U(y + s)] += t1
        return
    if s2 == 0 and inner == 3:
        t0 = 0.0
        t1 = 0.0
        t2 = 0.0
        for j in range(U(rows)):
            k = b + j * THREE
            t0 += big[k]
            t1 += big[k + ONE]
            t2 += big[k + TWO]
        small[U(y)] += t0
        small[U(y + s)] += t1
        small[U(y + 2 * s)] += t2
        return
    if inner == 2:
        z = U(y)
        u = U(s)
        for j in range(U(rows)):
            k = b + j * TWO
            t0 = big[k]
            t1 = big[k + ONE]
            small[z] += t0
            small[z + u] += t1
            z += U(s2)
        return
    if inner == 3:
        z = U(y)
        u = U(s)
        for j in range(U(rows)):
            k = b + j * THREE
            t0 = big[k]
            t1 = big[k + ONE]
            t2 = big[k + TWO]
            small[z] += t0
            small[z + u] += t1
            small[z + u + u] += t2
            z += U(s2)
        return
    for _ in range(rows):
        z = U(y)
        if s == 0:
            t = 0.0
            for i in range(n):
                t += big[b + i]
            small[z] += t
        elif s == 1:
            for i in range(n):
                small[z + i] += big[b + i]
        else:
            w = U(s)
            for i in range(n):
                small[z + w * i] += big[b + i]
        b += n
        y += s2


@kernel
def spread(assign, big, at, dims, first, last, small, offset, strides, row, length, step, index):
    """Set `big[...] = small[...]`, or multiply it in, over axes `first..last`."""
    m = _merge(dims, first, last, strides, row, length, step)
    b = U(at)
    x = offset
    if m == 0:
        if assign:
            big[b] = small[U(x)]
        else:
            big[b] *= small[U(x)]
        return
    inner = length[m - 1]
    s = step[m - 1]
    rows = 1
    s2 = 0
    if m > 1:
        rows = length[m - 2]
        s2 = step[m - 2]
    outer = 1
    for a in range(m - 2):
        index[a] = 0
        outer *= length[a]
    move = U(rows * inner)
    for _ in range(outer):
        if assign:
            rows_assign(big, b, rows, inner, small, x, s2, s)
        else:
            rows_multiply(big, b, rows, inner, small, x, s2, s)
        b += move
        a = m - 3
        while a >= 0:
            index[a] += 1
            x += step[a]
            if index[a] < length[a]:
                break
            x -= step[a] * length[a]
            index[a] = 0
            a -= 1


@kernel
def gather(big, at, dims, first, last, small, offset, strides, row, length, step, index):
    """Add `big` onto `small` over axes `first..last`."""
    m = _merge(dims, first, last, strides, row, length, step)
    b = U(at)
    x = offset
    if m == 0:
        small[U(x)] += big[b]
        return
    inner = length[m - 1]
    s = step[m - 1]
    rows = 1
    s2 = 0
    if m > 1:
        rows = length[m - 2]
        s2 = step[m - 2]
    outer = 1
    for a in range(m - 2):
        index[a] = 0
        outer *= length[a]
    move = U(rows * inner)
    for _ in range(outer):
        rows_add(big, b, rows, inner, small, x, s2, s)
        b += move
        a = m - 3
        while a >= 0:
            index[a] += 1
            x += step[a]
            if index[a] < length[a]:
                break
            x -= step[a] * length[a]
            index[a] = 0
            a -= 1
