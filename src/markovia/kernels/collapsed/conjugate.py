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
"""

from math import lgamma, log, sqrt

from markovia.kernels.kernel import inner


@inner(bare=True)
def add_row(kind, prior, stats, k, rows, i, room):
    """Move component k to where row i belongs to it."""
    d = rows.shape[1]
    n = stats[k, 0]
    stats[k, 0] = n + 1.0
    if kind <= 1:
        kappa = prior[0] + n
        share = kappa / (kappa + 1.0)
        for j in range(d):
            apart = rows[i, j] - stats[k, 2 + j]
            stats[k, 2 + j] += apart / (kappa + 1.0)
            if kind == 1:
                stats[k, 2 + d + j] += share * apart * apart
            else:
                room[j] = apart * sqrt(share)
        if kind == 0:
            _rank_one(stats, k, room, d, 1.0)
        _normal_constant(kind, prior, stats, k, d)
    else:
        _count(kind, prior, stats, k, rows, i, 1.0)


@inner(bare=True)
def remove_row(kind, prior, stats, k, rows, i, room):
    """Move component k to where row i no longer belongs to it."""
    d = rows.shape[1]
    n = stats[k, 0] - 1.0
    stats[k, 0] = n
    if kind <= 1:
        kappa = prior[0] + n
        share = kappa / (kappa + 1.0)
        for j in range(d):
            before = ((kappa + 1.0) * stats[k, 2 + j] - rows[i, j]) / kappa
            apart = rows[i, j] - before
            stats[k, 2 + j] = before
            if kind == 1:
                stats[k, 2 + d + j] -= share * apart * apart
            else:
                room[j] = apart * sqrt(share)
        if kind == 0:
            _rank_one(stats, k, room, d, -1.0)
        _normal_constant(kind, prior, stats, k, d)
    else:
        _count(kind, prior, stats, k, rows, i, -1.0)


@inner(bare=True)
def log_predictive(kind, prior, stats, k, rows, i, room):
    """Return the log density of row i given the rows of component k."""
    d = rows.shape[1]
    if kind == 0:
        kappa = prior[0] + stats[k, 0]
        total = 0.0
        for a in range(d):
            value = rows[i, a] - stats[k, 2 + a]
            base = 2 + d + a * d
            for b in range(a):
                value -= stats[k, base + b] * room[b]
            value /= stats[k, base + a]
            room[a] = value
            total += value * value
        df = prior[1] + stats[k, 0] + 1.0
        return stats[k, 1] - 0.5 * df * log(1.0 + total * kappa / (kappa + 1.0))
    if kind == 1:
        kappa = prior[0] + stats[k, 0]
        share = kappa / (kappa + 1.0)
        total = 0.0
        for j in range(d):
            apart = rows[i, j] - stats[k, 2 + j]
            total += log(1.0 + share * apart * apart / stats[k, 2 + d + j])
        return stats[k, 1] - 0.5 * (prior[1] + stats[k, 0] + 1.0) * total
    if kind == 2:
        total = stats[k, 1]
        for j in range(d):
            if rows[i, j] > 0.0:
                total += stats[k, 2 + d + j]
        return total
    if kind == 3:
        levels = (stats.shape[1] - 2) // 2
        total = stats[k, 1]
        for j in range(d):
            total += stats[k, 2 + levels + int(rows[i, j])]
        return total
    if kind == 4:
        total, many = 0.0, 0.0
        for j in range(d):
            x = rows[i, j]
            if x > 0.0:
                many += x
                total += lgamma(prior[2 + j] + stats[k, 2 + j] + x) - stats[k, 2 + d + j]
        whole = prior[0] + stats[k, 1]
        return total + lgamma(whole) - lgamma(whole + many)
    total = stats[k, 1]
    for j in range(d):
        x = rows[i, j]
        total += lgamma(prior[2 + j] + stats[k, 2 + j] + x) - x * stats[k, 2 + d + j]
    return total


@inner(bare=True)
def blank(kind, prior, stats, k, d):
    """Make component k empty."""
    for j in range(stats.shape[1]):
        stats[k, j] = 0.0
    if kind <= 1:
        for j in range(2, stats.shape[1]):
            stats[k, j] = prior[j]
        _normal_constant(kind, prior, stats, k, d)
    elif kind == 2 or kind == 5:
        _refresh(kind, prior, stats, k, d)
    elif kind == 3:
        levels = (stats.shape[1] - 2) // 2
        for j in range(levels):
            stats[k, 2 + levels + j] = log(prior[2 + j])
        for j in range(d):
            stats[k, 1] -= log(prior[2 + levels + j])
    else:
        for j in range(d):
            stats[k, 2 + d + j] = lgamma(prior[2 + j])


@inner(bare=True)
def _normal_constant(kind, prior, stats, k, d):
    product = 1.0
    found = prior[stats.shape[1] + int(stats[k, 0])]
    for j in range(d):
        product *= stats[k, 2 + d + (j * d + j if kind == 0 else j)]
        if j % 4 == 3:  # one logarithm for several, without running out of range
            found -= log(product) * (1.0 if kind == 0 else 0.5)
            product = 1.0
    stats[k, 1] = found - log(product) * (1.0 if kind == 0 else 0.5)


@inner(bare=True)
def _rank_one(stats, k, v, d, sign):
    """Update the Cholesky factor of component k for the product of v with itself, added or taken away."""
    base = 2 + d
    for a in range(d):
        old = stats[k, base + a * d + a]
        # rounding cannot make a factor of fewer rows singular: the prior's own scale is in it
        new = sqrt(max(old * old + sign * v[a] * v[a], 1e-24 * old * old))
        c, s = new / old, v[a] / old
        stats[k, base + a * d + a] = new
        for b in range(a + 1, d):
            at = base + b * d + a
            stats[k, at] = (stats[k, at] + sign * s * v[b]) / c
            v[b] = c * v[b] - s * stats[k, at]


@inner(bare=True)
def _count(kind, prior, stats, k, rows, i, sign):
    d = rows.shape[1]
    if kind == 3:
        levels = (stats.shape[1] - 2) // 2
        stats[k, 1] = 0.0
        for j in range(d):
            at = int(rows[i, j])
            stats[k, 2 + at] += sign
            stats[k, 2 + levels + at] = log(prior[2 + at] + stats[k, 2 + at])
            stats[k, 1] -= log(prior[2 + levels + j] + stats[k, 0])
        return
    for j in range(d):
        x = rows[i, j]
        if x > 0.0:
            stats[k, 2 + j] += sign * x
            if kind == 4:
                stats[k, 1] += sign * x
                stats[k, 2 + d + j] = lgamma(prior[2 + j] + stats[k, 2 + j])
    if kind != 4:
        _refresh(kind, prior, stats, k, d)


@inner(bare=True)
def _refresh(kind, prior, stats, k, d):
    n = stats[k, 0]
    found = 0.0
    for j in range(d):
        a, b, seen = prior[2 + j], prior[2 + d + j], stats[k, 2 + j]
        if kind == 2:
            none = log(b + n - seen)
            stats[k, 2 + d + j] = log(a + seen) - none
            found += none - log(a + b + n)
        else:
            more = log(b + n + 1.0)
            stats[k, 2 + d + j] = more
            found += (a + seen) * (log(b + n) - more) - lgamma(a + seen)
    stats[k, 1] = found
