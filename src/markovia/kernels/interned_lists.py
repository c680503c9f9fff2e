"""Lists of whole numbers, each stored once and found again by hashing; arrays that grow.

The lists lie one after the other in `store`, list i from `starts[i]` to `starts[i + 1]`. `table` is an open-addressed hash
table of list numbers, -1 where it is free; its length is a power of two and it is at most half full.
"""

import numpy as np

from markovia.kernels.kernel import inner


@inner
def unset(n):
    """Return n times minus one."""
    a = np.empty(n, np.int64)
    for i in range(n):
        a[i] = -1
    return a


@inner
def longer(a, needed):
    """Return an array of at least this length that begins like `a`."""
    if needed <= len(a):
        return a
    b = np.empty(max(needed, 2 * len(a)), a.dtype)
    for i in range(len(a)):
        b[i] = a[i]
    return b


@inner
def find(table, hashes, key, starts, store, words, n_words, n_known):
    """Return the number of an equal list of words, or minus one minus the place where it would go in `table`."""
    mask = len(table) - 1
    at = (key ^ (key >> 29)) & mask
    while True:
        i = table[at]
        if i < 0:
            return -1 - at
        if i < n_known and hashes[i] == key and starts[i + 1] - starts[i] == n_words:
            same = True
            for j in range(n_words):
                if store[starts[i] + j] != words[j]:
                    same = False
                    break
            if same:
                return i
        at = (at + 1) & mask


@inner
def key_of(words, n, seed):
    """Return a hash of the first n words, not negative."""
    h = np.int64(seed)
    for j in range(n):
        h = (h ^ np.int64(words[j])) * np.int64(1099511628211)
        h ^= (h >> 31) & np.int64(0x1FFFFFFFF)
    return h & np.int64(0x3FFFFFFFFFFFFFFF)


@inner
def grown(table, hashes, n):
    """Return a hash table twice as large with the first n entries."""
    bigger = unset(2 * len(table))
    mask = len(bigger) - 1
    for i in range(n):
        at = (hashes[i] ^ (hashes[i] >> 29)) & mask
        while bigger[at] >= 0:
            at = (at + 1) & mask
        bigger[at] = i
    return bigger
