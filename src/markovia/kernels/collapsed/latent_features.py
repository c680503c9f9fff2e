"""Sweeps over the rows of a linear-Gaussian model of latent features: x = (z * v) A + noise.

Columns live in arrays with room for more: the first `size[0]` count, and a column that empties is replaced by the last one.
A sweep that finds too little room stops before a row and returns it, so that the caller can make room and go on.
"""

from math import cos, log, pi, sqrt

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer
from markovia.kernels.random_numbers import uniform


@inner(bare=True)
def normal(s):
    """Draw from the standard normal."""
    return sqrt(-2.0 * log(1.0 - uniform(s))) * cos(2.0 * pi * uniform(s))


@inner(bare=True)
def poisson(s, rate):
    """Draw from a Poisson by counting arrivals."""
    found, time = 0, -log(1.0 - uniform(s))
    while time < rate:
        found += 1
        time -= log(1.0 - uniform(s))
    return found


@inner(bare=True)
def yes(s, log_odds):
    """Draw True with given log odds."""
    u = uniform(s)
    return log(u) - log(1.0 - u) < log_odds


@kernel(bare=True)
def collapsed_rows(x, z, counts, m, mu, size, alpha, noise, ratio, s, start, mz, e):
    """Draw the features of each row with the features' values summed out (Doshi-Velez and Ghahramani 2009).

    x (rows, columns); z (rows, room); m (room, room) is (Z'Z + I / ratio)^-1 and mu (room, columns) the mean of A; noise is
    the variance of the noise, ratio that of A's entries over it; mz (room) and e (columns) are room to work in. All are
    changed in place; returns the next row.
    """
    (rows, wide), most = x.shape, z.shape[1]
    x, z, m, mu, counts, s = pointer(x), pointer(z), pointer(m), pointer(mu), pointer(counts), pointer(s)
    mz, e = pointer(mz), pointer(e)
    for n in range(start, rows):
        k, mine = size[0], beyond(z, n * most)
        if k + 8 + 8 * alpha / rows > most:
            return n
        # take the row out: counts, then m and mu by a rank-one step
        h = _forecast(beyond(x, n * wide), mine, m, mu, mz, e, k, most, wide)
        _rank_one(m, mu, mz, e, -1.0 / (1.0 - h), k, most, wide)
        single, i = 0, 0
        for j in range(k):
            counts[j] -= mine[j]
        while i < k:
            if counts[i] < 0.5:  # nobody else has it: the last column takes its place
                single += 1
                k -= 1
                counts[i] = counts[k]
                for j in range(rows):
                    z[j * most + i] = z[j * most + k]
                for j in range(k + 1):
                    m[i * most + j] = m[k * most + j]
                for j in range(k + 1):
                    m[j * most + i] = m[j * most + k]
                for d in range(wide):
                    mu[i * wide + d] = mu[k * wide + d]
            else:
                i += 1
        # given the other rows, x is normal around z mu with variance noise (1 + z m z + singles ratio)
        q = _forecast(beyond(x, n * wide), mine, m, mu, mz, e, k, most, wide)
        for i in range(k):
            on, value = mine[i] > 0.5, beyond(mu, i * wide)
            sign = -1.0 if on else 1.0  # what the other state would add
            # the variance and the squared residual here, and with the other state
            square, other = 0.0, 0.0
            for d in range(wide):
                square += e[d] * e[d]
                other += (e[d] - sign * value[d]) * (e[d] - sign * value[d])
            turned_q = q + 2.0 * sign * mz[i] + m[i * most + i]
            s0, s1 = noise * (1.0 + q + single * ratio), noise * (1.0 + turned_q + single * ratio)
            odds = sign * log(counts[i] / (rows - counts[i]))
            odds += 0.5 * wide * log(s0 / s1) + 0.5 * (square / s0 - other / s1)
            # one uniform number decides for the state 1, whichever the present one is
            if yes(s, sign * odds) != on:
                mine[i] += sign
                q = turned_q
                for j in range(k):
                    mz[j] += sign * m[j * most + i]
                for d in range(wide):
                    e[d] -= sign * value[d]
        square = 0.0
        for d in range(wide):
            square += e[d] * e[d]
        wanted = poisson(s, alpha / rows)
        s0, s1 = noise * (1.0 + q + single * ratio), noise * (1.0 + q + wanted * ratio)
        gain = 0.5 * wide * log(s0 / s1) + 0.5 * square * (1.0 / s0 - 1.0 / s1)
        if k + wanted <= most and log(1.0 - uniform(s)) < gain:
            single = wanted
        for _ in range(single):
            for j in range(rows):
                z[j * most + k] = 0.0
            mine[k] = 1.0
            counts[k] = 0.0
            for j in range(k):
                m[k * most + j] = 0.0
                m[j * most + k] = 0.0
            m[k * most + k] = ratio
            for d in range(wide):
                mu[k * wide + d] = 0.0
            mz[k] = ratio
            k += 1
        q += single * ratio
        _rank_one(m, mu, mz, e, 1.0 / (1.0 + q), k, most, wide)
        for i in range(k):
            counts[i] += mine[i]
        size[0] = k
    return rows


@inner(bare=True)
def _forecast(x, z, m, mu, mz, e, k, most, wide):
    """Write m z and x - z mu of a row, and return z m z."""
    found = 0.0
    for i in range(k):
        mz[i] = 0.0
        for j in range(k):
            mz[i] += m[i * most + j] * z[j]
        found += z[i] * mz[i]
    _residual(x, z, mu, e, k, wide)
    return found


@inner(bare=True)
def _rank_one(m, mu, mz, e, share, k, most, wide):
    """Add a row to m and mu, or with a negative share take it away."""
    for i in range(k):
        for j in range(k):
            m[i * most + j] -= mz[i] * mz[j] * share
        for d in range(wide):
            mu[i * wide + d] += mz[i] * e[d] * share


@inner(bare=True)
def _residual(x, z, mu, e, k, wide):
    """Write x - z mu of a row."""
    for d in range(wide):
        e[d] = x[d]
    for i in range(k):
        if z[i] != 0.0:
            for d in range(wide):
                e[d] -= z[i] * mu[i * wide + d]


@kernel(bare=True)
def given_values(x, z, w, a, counts, size, chances, weighted, alpha, noise, spread, s, start, e, fresh):
    """Draw the features of each row, and their weights where they have any, given the features' values a (room, columns).

    z (rows, room) says which features a row has, w their weights (1 where not `weighted`, standard normal a priori). With
    chances[0] < 0 the chances are summed out: a feature has the odds of its counts in other rows, and features of one row
    only are proposed anew from their prior. Else features have the given chances, and a state weighs 1 over the smallest
    chance of the features in use, as slice sampling needs. e (columns) and fresh (room) are room to work in.
    """
    rows, wide = x.shape
    summed = chances[0] < 0.0
    for n in range(start, rows):
        k = size[0]
        if summed and k + 8 + 8 * alpha / rows > z.shape[1]:
            return n
        _residual(beyond(pointer(x), n * wide), beyond(pointer(w), n * w.shape[1]), pointer(a), e, k, wide)
        for i in range(k):
            others = counts[i] - z[n, i]
            if summed and others < 0.5:
                continue
            across, own = 0.0, 0.0
            for d in range(wide):
                e[d] += w[n, i] * a[i, d]
                across += e[d] * a[i, d]
                own += a[i, d] * a[i, d]
            if summed:
                odds = log(others / (rows - others))
            else:
                odds = log(chances[i] / (1.0 - chances[i]))
                if others < 0.5:
                    least = 1.0
                    for j in range(k):
                        if j != i and counts[j] > 0.5 and chances[j] < least:
                            least = chances[j]
                    if chances[i] < least:
                        odds += log(least / chances[i])
            if weighted:
                odds += 0.5 * across * across / (noise * (noise + own)) - 0.5 * log(1.0 + own / noise)
            else:
                odds += (across - 0.5 * own) / noise
            turned = yes(s, odds)
            z[n, i] = 1.0 if turned else 0.0
            counts[i] = others + z[n, i]
            w[n, i] = z[n, i]
            if turned and weighted:
                w[n, i] = across / (own + noise) + sqrt(noise / (own + noise)) * normal(s)
            for d in range(wide):
                e[d] -= w[n, i] * a[i, d]
        if summed:
            size[0] = _single_rows_features(
                z, w, a, counts, k, n, e, fresh, weighted, alpha, noise, spread, s
            )
    return rows


@inner(bare=True)
def _single_rows_features(z, w, a, counts, k, n, e, fresh, weighted, alpha, noise, spread, s):
    """Propose the features that only row n has anew, their values summed out; return the number of features."""
    rows, wide = z.shape[0], e.size
    single, old = 0, 0.0
    for i in range(k):
        if counts[i] - z[n, i] < 0.5:
            single += 1
            old += w[n, i] * w[n, i]
            for d in range(wide):
                e[d] += w[n, i] * a[i, d]
    wanted, new = poisson(s, alpha / rows), 0.0
    if k - single + wanted > z.shape[1]:
        return k
    for i in range(wanted):
        fresh[i] = normal(s) if weighted else 1.0
        new += fresh[i] * fresh[i]
    square = 0.0
    for d in range(wide):
        square += e[d] * e[d]
    s0, s1 = noise + spread * old, noise + spread * new
    gain = 0.5 * wide * log(s0 / s1) + 0.5 * square * (1.0 / s0 - 1.0 / s1)
    if log(1.0 - uniform(s)) >= gain:
        return k
    i = 0
    while i < k:
        if counts[i] - z[n, i] < 0.5:
            k -= 1
            counts[i] = counts[k]
            for j in range(rows):
                z[j, i] = z[j, k]
                w[j, i] = w[j, k]
            for d in range(wide):
                a[i, d] = a[k, d]
        else:
            i += 1
    for i in range(wanted):
        for j in range(rows):
            z[j, k + i] = 0.0
            w[j, k + i] = 0.0
        z[n, k + i] = 1.0
        w[n, k + i] = fresh[i]
        counts[k + i] = 1.0
    for d in range(wide):  # values given the row: a draw from the prior, moved by what it misses
        missed = e[d] - sqrt(noise) * normal(s)
        for i in range(wanted):
            a[k + i, d] = sqrt(spread) * normal(s)
            missed -= fresh[i] * a[k + i, d]
        for i in range(wanted):
            a[k + i, d] += spread * fresh[i] / s1 * missed
    return k + wanted
