"""Sparse features of tokens times dense weights, there and back: the two products of a tagger's gradient.

Token i has the columns `columns[ptr[i] : ptr[i + 1]]` with `values` there (all 1 where `values` is empty). Weights lie by
column, one row of k labels each, so that the inner loops run over labels. Four columns are taken at a time, which saves
three of four reads and writes of the token's own row. Cost: entries times k.
"""

from markovia.kernels.kernel import kernel

LOOSE = {"reassoc", "contract", "nsz"}


@kernel(fastmath=LOOSE)
def add_scores(first, last, ptr, columns, values, weights, scores):
    """Add the weights of all columns of tokens `first : last` to their rows of scores."""
    k = weights.shape[1]
    plain = len(values) == 0
    for i in range(first, last):
        p, end = ptr[i], ptr[i + 1]
        while p + 4 <= end:
            a, b, c, d = columns[p], columns[p + 1], columns[p + 2], columns[p + 3]
            if plain:
                for j in range(k):
                    scores[i, j] += (weights[a, j] + weights[b, j]) + (weights[c, j] + weights[d, j])
            else:
                s, t, u, v = values[p], values[p + 1], values[p + 2], values[p + 3]
                for j in range(k):
                    scores[i, j] += (s * weights[a, j] + t * weights[b, j]) + (
                        u * weights[c, j] + v * weights[d, j]
                    )
            p += 4
        while p < end:
            a = columns[p]
            s = 1.0 if plain else values[p]
            for j in range(k):
                scores[i, j] += s * weights[a, j]
            p += 1


@kernel(fastmath=LOOSE)
def add_sums(first, last, ptr, columns, values, beliefs, sums):
    """Add each token's row of beliefs to the rows of its columns in `sums`."""
    k = beliefs.shape[1]
    plain = len(values) == 0
    for i in range(first, last):
        for p in range(ptr[i], ptr[i + 1]):
            a = columns[p]
            s = 1.0 if plain else values[p]
            for j in range(k):
                sums[a, j] += s * beliefs[i, j]


@kernel
def add_few_scores(first, last, ptr, columns, values, starts, labels, weights, scores):
    """As `add_scores` where column a has weights `starts[a] : starts[a + 1]` for the listed labels alone."""
    plain = len(values) == 0
    for i in range(first, last):
        for p in range(ptr[i], ptr[i + 1]):
            a = columns[p]
            s = 1.0 if plain else values[p]
            for f in range(starts[a], starts[a + 1]):
                scores[i, labels[f]] += s * weights[f]


@kernel
def add_few_sums(first, last, ptr, columns, values, starts, labels, beliefs, sums):
    """As `add_sums`, for the listed labels alone."""
    plain = len(values) == 0
    for i in range(first, last):
        for p in range(ptr[i], ptr[i + 1]):
            a = columns[p]
            s = 1.0 if plain else values[p]
            for f in range(starts[a], starts[a + 1]):
                sums[f] += s * beliefs[i, labels[f]]
