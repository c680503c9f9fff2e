"""The random numbers of all kernels: xoshiro256++ (Blackman and Vigna 2021).

The four words of its state lie in an array of the caller, so that a seed gives the same numbers again. A loop that draws a
number in a few nanoseconds keeps the words in variables of its own and calls `advance`.
"""

import numpy as np

from markovia.kernels.kernel import inner


@inner(bare=True)
def advance(a, b, c, d):
    """Return a number in [0, 1) and the next four words of state."""
    t = a + d
    number = np.float64((((t << np.uint64(23)) | (t >> np.uint64(41))) + a) >> np.uint64(11))
    c ^= a
    d ^= b
    e = c ^ (b << np.uint64(17))
    return number * (1.0 / 9007199254740992.0), a ^ d, b ^ c, e, (d << np.uint64(45)) | (d >> np.uint64(19))


@inner(bare=True)
def uniform(s):
    """Return a number in [0, 1) and move the state on."""
    number, s[0], s[1], s[2], s[3] = advance(s[0], s[1], s[2], s[3])
    return number


@inner(bare=True)
def below(s, n):
    """Return a whole number in 0 ... n-1; the bias is below n / 2**53."""
    return np.int64(uniform(s) * n)
