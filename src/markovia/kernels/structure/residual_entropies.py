"""Entropies of regression residuals for DirectLiNGAM.

Hyvärinen's approximation needs the means of log cosh u and u exp(-u²/2) over the rows. exp is written out (range reduction
and a polynomial, relative error about 1e-14) so that the loop compiles to vector instructions, and the logarithms
are taken of products of 256 factors.
"""

import numpy as np

from markovia.kernels.kernel import kernel

_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453


@kernel(inline="always")
def _decay(t):
    """exp(t) for t at most 0, to a relative error of about 1e-14; exp(-700) below -700."""
    t = t if t > -700.0 else -700.0
    k = np.floor(t * _LOG2E + 0.5)
    r = t - k * _LN2
    p = 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power = (np.int64(np.int32(k)) + 1023) << 52
    return p * np.int64(power).view(np.float64)


@kernel(fastmath={"reassoc", "contract", "nsz", "nnan"})
def _entropy(first, second, slope, scale):
    """Return the entropy of (first - slope * second) * scale."""
    n = len(first)
    logs = 0.0
    bells = 0.0
    sizes = 0.0
    for start in range(0, n, 256):
        a = first[start : start + 256]
        b = second[start : start + 256]
        product = 1.0
        for i in range(len(a)):
            u = (a[i] - slope * b[i]) * scale
            sizes += abs(u)
            product *= 1.0 + _decay(-2.0 * abs(u))
            bells += u * _decay(-0.5 * u * u)
        logs += np.log(product)
    cosh = (sizes + logs) / n - _LN2
    bell = bells / n
    return 1.4189385332046727 - 79.047 * (cosh - 0.37457) ** 2 - 7.4129 * bell * bell


@kernel
def pair_entropies(first, second, correlation, out):
    """Write the entropies of both standardised residuals of a pair of standardised columns.

    out[0] is of the residual of `first` given `second`, out[1] of that of `second` given `first`.
    """
    scale = 1.0 / np.sqrt(max(1.0 - correlation * correlation, 1e-12))
    out[0] = _entropy(first, second, correlation, scale)
    out[1] = _entropy(second, first, correlation, scale)


@kernel
def first_cause(columns, correlations, members, candidates, evidence):
    """Return the candidate with the least evidence of being an effect of another member, and the number of comparisons.

    Columns, one row a variable, are standardised. Evidence only grows with comparisons, so the candidate that has the
    least so far is compared further, until one with all its comparisons made has the least. `evidence[a, b]`, what
    spoke against a in its last comparison with b, is kept between calls and says which comparison to make next; it
    does not change the answer.
    """
    m = len(members)
    known = np.zeros((m, m), dtype=np.bool_)
    scores = np.zeros(m)
    seen = np.zeros(m, dtype=np.int64)
    entropies = np.empty(m)
    for k in range(m):
        entropies[k] = _entropy(columns[members[k]], columns[members[k]], 0.0, 1.0)
    made = 0
    out = np.empty(2)
    while True:
        best = -1
        for k in range(m):
            if candidates[k] and (best < 0 or scores[k] < scores[best]):
                best = k
        if seen[best] == m - 1:
            return best, made
        # the next partner: the one that spoke most against it the last time, then the most correlated one
        other = -1
        strongest = -1.0
        a = members[best]
        for k in range(m):
            if k != best and not known[best, k]:
                size = 1e9 * evidence[a, members[k]] + abs(correlations[a, members[k]])
                if size > strongest:
                    strongest = size
                    other = k
        b = members[other]
        pair_entropies(columns[a], columns[b], correlations[a, b], out)
        # mutual information of b and the residual of a, less that of a and the residual of b: negative where b is the cause
        ratio = (entropies[other] + out[0]) - (entropies[best] + out[1])
        evidence[a, b] = ratio * ratio if ratio < 0.0 else 0.0
        evidence[b, a] = ratio * ratio if ratio > 0.0 else 0.0
        scores[best] += evidence[a, b]
        scores[other] += evidence[b, a]
        known[best, other] = True
        known[other, best] = True
        seen[best] += 1
        seen[other] += 1
        made += 1
