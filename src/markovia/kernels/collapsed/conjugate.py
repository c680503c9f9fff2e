"""Components whose parameters are summed out, as rows of numbers: what was seen, and what the next row's density needs.

Six kinds share one layout: `prior` and every row of `stats` begin with two numbers and go on with entries of columns.

kind  family                  prior                                     a row of stats
0     normal-inverse-Wishart  strength, df, mean (d), factor (d d)      rows, constant, mean (d), factor (d d)
1     normal-gamma, a column  strength, df, mean (d), scale (d)         rows, constant, mean (d), scale (d)
2     beta-Bernoulli          -, -, a (d), b (d)                        rows, constant, ones (d), logits (d)
3     Dirichlet-categorical   -, -, weights (levels), their sums (d)    rows, constant, counts (levels), logs (levels)
4     Dirichlet-multinomial   sum of weights, -, weights (d)            rows, total, counts (d), log gammas (d)
5     gamma-Poisson           -, -, shape (d), rate (d)                 rows, constant, sums (d), logs (d)

A row of kind 3 has places among the levels of all columns; the others have the values themselves. Constants that no
parameter enters (factorials) are left out. The priors of kinds 0 and 1 go on with the part of `constant` that depends
only on how many rows there are, for 0, 1, ... of them. Adding and removing a row costs d squared for kind 0 (rank-one
updates of a Cholesky factor), d for the others.

Arrays come as pointers: components have `wide` numbers, rows d cells, the room d numbers.
"""

from math import lgamma, log, sqrt

from markovia.kernels.kernel import inner
from markovia.kernels.pointers import beyond


@inner(bare=True)
def add_row(kind, prior, stats, k, rows, i, room, d, wide):
    """Move component k to where row i belongs to it."""
    mine, row = beyond(stats, k * wide), beyond(rows, i * d)
    n = mine[0]
    mine[0] = n + 1.0
    if kind <= 1:
        kappa = prior[0] + n
        share = kappa / (kappa + 1.0)
        for j in range(d):
            apart = row[j] - mine[2 + j]
            mine[2 + j] += apart / (kappa + 1.0)
            if kind == 1:
                mine[2 + d + j] += share * apart * apart
            else:
                room[j] = apart * sqrt(share)
        if kind == 0:
            _rank_one(mine, room, d, 1.0)
        _normal_constant(kind, prior, mine, d, wide)
    else:
        _count(kind, prior, mine, row, d, wide, 1.0)


@inner(bare=True)
def remove_row(kind, prior, stats, k, rows, i, room, d, wide):
    """Move component k to where row i no longer belongs to it."""
    mine, row = beyond(stats, k * wide), beyond(rows, i * d)
    n = mine[0] - 1.0
    mine[0] = n
    if kind <= 1:
        kappa = prior[0] + n
        share = kappa / (kappa + 1.0)
        for j in range(d):
            before = ((kappa + 1.0) * mine[2 + j] - row[j]) / kappa
            apart = row[j] - before
            mine[2 + j] = before
            if kind == 1:
                mine[2 + d + j] -= share * apart * apart
            else:
                room[j] = apart * sqrt(share)
        if kind == 0:
            _rank_one(mine, room, d, -1.0)
        _normal_constant(kind, prior, mine, d, wide)
    else:
        _count(kind, prior, mine, row, d, wide, -1.0)


@inner(bare=True)
def log_predictive(kind, prior, stats, k, rows, i, room, d, wide):
    """Return the log density of row i given the rows of component k."""
    mine, row = beyond(stats, k * wide), beyond(rows, i * d)
    if kind == 0:
        kappa = prior[0] + mine[0]
        total = 0.0
        for a in range(d):
            value = row[a] - mine[2 + a]
            base = 2 + d + a * d
            for b in range(a):
                value -= mine[base + b] * room[b]
            value /= mine[base + a]
            room[a] = value
            total += value * value
        df = prior[1] + mine[0] + 1.0
        return mine[1] - 0.5 * df * log(1.0 + total * kappa / (kappa + 1.0))
    if kind == 1:
        kappa = prior[0] + mine[0]
        share = kappa / (kappa + 1.0)
        total = 0.0
        for j in range(d):
            apart = row[j] - mine[2 + j]
            total += log(1.0 + share * apart * apart / mine[2 + d + j])
        return mine[1] - 0.5 * (prior[1] + mine[0] + 1.0) * total
    if kind == 2:
        total = mine[1]
        for j in range(d):
            if row[j] > 0.0:
                total += mine[2 + d + j]
        return total
    if kind == 3:
        levels = (wide - 2) // 2
        total = mine[1]
        for j in range(d):
            total += mine[2 + levels + int(row[j])]
        return total
    if kind == 4:
        total, many = 0.0, 0.0
        for j in range(d):
            x = row[j]
            if x > 0.0:
                many += x
                total += lgamma(prior[2 + j] + mine[2 + j] + x) - mine[2 + d + j]
        whole = prior[0] + mine[1]
        return total + lgamma(whole) - lgamma(whole + many)
    total = mine[1]
    for j in range(d):
        x = row[j]
        total += lgamma(prior[2 + j] + mine[2 + j] + x) - x * mine[2 + d + j]
    return total


@inner(bare=True)
def blank(kind, prior, stats, k, d, wide):
    """Make component k empty."""
    mine = beyond(stats, k * wide)
    for j in range(wide):
        mine[j] = 0.0
    if kind <= 1:
        for j in range(2, wide):
            mine[j] = prior[j]
        _normal_constant(kind, prior, mine, d, wide)
    elif kind == 2 or kind == 5:
        _refresh(kind, prior, mine, d)
    elif kind == 3:
        levels = (wide - 2) // 2
        for j in range(levels):
            mine[2 + levels + j] = log(prior[2 + j])
        for j in range(d):
            mine[1] -= log(prior[2 + levels + j])
    else:
        for j in range(d):
            mine[2 + d + j] = lgamma(prior[2 + j])


@inner(bare=True)
def _normal_constant(kind, prior, mine, d, wide):
    product = 1.0
    found = prior[wide + int(mine[0])]
    for j in range(d):
        product *= mine[2 + d + (j * d + j if kind == 0 else j)]
        if j % 4 == 3:  # one logarithm for several, without running out of range
            found -= log(product) * (1.0 if kind == 0 else 0.5)
            product = 1.0
    mine[1] = found - log(product) * (1.0 if kind == 0 else 0.5)


@inner(bare=True)
def _rank_one(mine, v, d, sign):
    """Update the Cholesky factor of a component for the product of v with itself, added or taken away."""
    base = 2 + d
    for a in range(d):
        old = mine[base + a * d + a]
        square, least = old * old + sign * v[a] * v[a], 1e-24 * old * old
        # rounding cannot make a factor of fewer rows singular: the prior's own scale is in it
        new = sqrt(square if square > least else least)
        c, s = new / old, v[a] / old
        mine[base + a * d + a] = new
        for b in range(a + 1, d):
            at = base + b * d + a
            mine[at] = (mine[at] + sign * s * v[b]) / c
            v[b] = c * v[b] - s * mine[at]


@inner(bare=True)
def _count(kind, prior, mine, row, d, wide, sign):
    if kind == 3:
        levels = (wide - 2) // 2
        mine[1] = 0.0
        for j in range(d):
            at = int(row[j])
            mine[2 + at] += sign
            mine[2 + levels + at] = log(prior[2 + at] + mine[2 + at])
            mine[1] -= log(prior[2 + levels + j] + mine[0])
        return
    for j in range(d):
        x = row[j]
        if x > 0.0:
            mine[2 + j] += sign * x
            if kind == 4:
                mine[1] += sign * x
                mine[2 + d + j] = lgamma(prior[2 + j] + mine[2 + j])
    if kind != 4:
        _refresh(kind, prior, mine, d)


@inner(bare=True)
def _refresh(kind, prior, mine, d):
    n = mine[0]
    found = 0.0
    for j in range(d):
        a, b, seen = prior[2 + j], prior[2 + d + j], mine[2 + j]
        if kind == 2:
            none = log(b + n - seen)
            mine[2 + d + j] = log(a + seen) - none
            found += none - log(a + b + n)
        else:
            more = log(b + n + 1.0)
            mine[2 + d + j] = more
            found += (a + seen) * (log(b + n) - more) - lgamma(a + seen)
    mine[1] = found
