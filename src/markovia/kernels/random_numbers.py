"""Random numbers in kernels; the state lies in an array of the caller, so that a seed gives the same numbers again.

`uniform` and `below` are xoshiro256++ (Blackman and Vigna 2021) with four words of state, for long runs; `short_uniform`
is splitmix64 with one word, for the tie-breaks and orders of a search.
"""

import numpy as np

from markovia.kernels.kernel import inner


@inner
def uniform(s):
    """Return a number in [0, 1) and move the four words of state on."""
    a, b, c, d = s[0], s[1], s[2], s[3]
    t = a + d
    out = ((t << np.uint64(23)) | (t >> np.uint64(41))) + a
    t = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = (d << np.uint64(45)) | (d >> np.uint64(19))
    s[0], s[1], s[2], s[3] = a, b, c, d
    return np.float64(out >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner
def below(s, n):
    """Return a whole number in 0 ... n-1; the bias is below n / 2**53."""
    return np.int64(uniform(s) * n)


@inner
def short_uniform(s):
    """Return a number in [0, 1) and move the one word of state on."""
    s[0] += np.uint64(0x9E3779B97F4A7C15)
    z = s[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)
