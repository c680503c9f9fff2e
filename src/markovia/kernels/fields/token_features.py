"""Sparse features of tokens times dense weights, there and back: the two products of a tagger's gradient.

Token i has the columns `columns[ptr[i] : ptr[i + 1]]` with `values` there (all 1 where `values` is empty). Weights lie by
column, one row of k labels each, so that the inner loops run over labels. Four columns are taken at a time, which saves
three of four reads and writes of the token's own row. Cost: entries times k.
"""

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer

LOOSE = {"reassoc", "contract", "nsz"}


@kernel(bare=True, fastmath=LOOSE)
def add_scores(first, last, ptr, columns, values, weights, scores):
    """Add the weights of all columns of tokens `first : last` to their rows of scores."""
    k = weights.shape[1]
    plain = len(values) == 0
    ptr = pointer(ptr)
    columns = pointer(columns)
    values = pointer(values)
    weights = pointer(weights)
    scores = pointer(scores)
    q = 1.0
    s = 1.0
    t = 1.0
    u = 1.0
    for i in range(first, last):
        p = ptr[i]
        end = ptr[i + 1]
        row = beyond(scores, i * k)
        while p + 4 <= end:
            if not plain:
                q = values[p]
                s = values[p + 1]
                t = values[p + 2]
                u = values[p + 3]
            a = beyond(weights, columns[p] * k)
            b = beyond(weights, columns[p + 1] * k)
            c = beyond(weights, columns[p + 2] * k)
            d = beyond(weights, columns[p + 3] * k)
            for j in range(k):
                row[j] += (q * a[j] + s * b[j]) + (t * c[j] + u * d[j])
            p += 4
        while p < end:
            if not plain:
                q = values[p]
            a = beyond(weights, columns[p] * k)
            for j in range(k):
                row[j] += q * a[j]
            p += 1


@kernel(bare=True, fastmath=LOOSE)
def add_sums(first, last, ptr, columns, values, beliefs, sums):
    """Add each token's row of beliefs to the rows of its columns in `sums`."""
    k = beliefs.shape[1]
    plain = len(values) == 0
    ptr = pointer(ptr)
    columns = pointer(columns)
    values = pointer(values)
    beliefs = pointer(beliefs)
    sums = pointer(sums)
    for i in range(first, last):
        row = beyond(beliefs, i * k)
        for p in range(ptr[i], ptr[i + 1]):
            s = 1.0 if plain else values[p]
            out = beyond(sums, columns[p] * k)
            for j in range(k):
                out[j] += s * row[j]


@kernel(bare=True)
def add_few_scores(first, last, ptr, columns, values, starts, labels, weights, scores):
    """As `add_scores` where column a has weights `starts[a] : starts[a + 1]` for the listed labels alone."""
    plain = len(values) == 0
    for i in range(first, last):
        for p in range(ptr[i], ptr[i + 1]):
            a = columns[p]
            s = 1.0 if plain else values[p]
            for f in range(starts[a], starts[a + 1]):
                scores[i, labels[f]] += s * weights[f]


@kernel(bare=True)
def add_few_sums(first, last, ptr, columns, values, starts, labels, beliefs, sums):
    """As `add_sums`, for the listed labels alone."""
    plain = len(values) == 0
    for i in range(first, last):
        for p in range(ptr[i], ptr[i + 1]):
            a = columns[p]
            s = 1.0 if plain else values[p]
            for f in range(starts[a], starts[a + 1]):
                sums[f] += s * beliefs[i, labels[f]]
