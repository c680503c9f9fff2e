"""Variational steps on documents: proportions of topics that bound the probability best, and what words expect of topics."""

from math import exp, log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

LOOSE = {"reassoc", "contract"}


@inner(bare=True)
def exp_digamma(x):
    """Return exp(digamma(x)) to ten digits: shifted by eight, then its asymptotic series."""
    y = x * (x + 7.0)
    # 1/x + ... + 1/(x+7) with one division for each pair that sums to 2x+7
    shift = (2.0 * x + 7.0) * (1.0 / y + 1.0 / (y + 6.0) + 1.0 / (y + 10.0) + 1.0 / (y + 12.0))
    t = x + 7.5
    r = 1.0 / (t * t)
    series = t + (
        (1.0 / 24.0 - r * (37.0 / 5760.0 - r * (10313.0 / 2903040.0 - r * 5509121.0 / 1393459200.0))) / t
    )
    return series * exp(-shift)


@inner(bare=True, fastmath=LOOSE)
def dot(a, b, n):
    """Return the sum of products."""
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@inner(bare=True, fastmath=LOOSE)
def add(out, a, weight, n):
    """Add a weighted row."""
    for k in range(n):
        out[k] += weight * a[k]


@kernel(bare=True)
def document_steps(starts, words, counts, table, prior, state, stats, bounds, low, high, rule, room):
    """Find the topics of the documents low ... high-1 that fit words best, and add what words expect.

    starts (D+1), words, counts: rows of a sparse table. table (V, K): `exp E log` of words in topics, or probabilities.
    prior (K). state (D, K): begins as a guess, ends as the Dirichlet parameters. stats (V, K): responsibilities are added,
    without the factor of `table`; none where it has no rows. bounds (D): the sum of `count * log sum_k theta_k table_k`
    with theta not normalised. rule (3): the most steps, the mean change of state at which to stop, and 1 for point
    estimates (theta is the state itself), 0 for variational ones (its `exp E log`). room (2, K).
    """
    width = table.shape[1]
    keep = stats.shape[0] > 0
    starts, words, counts, table = pointer(starts), pointer(words), pointer(counts), pointer(table)
    prior, state, stats, bounds = pointer(prior), pointer(state), pointer(stats), pointer(bounds)
    most, tolerance, point, theta = rule[0], rule[1], rule[2] > 0.5, pointer(room)
    gathered = beyond(theta, width)
    steps = 0
    for d in range(low, high):
        gamma = beyond(state, d * width)
        begin = starts[d]
        end = starts[d + 1]
        change = 1e300
        step = 0.0
        while step < most and change > tolerance:
            for k in range(width):
                theta[k] = gamma[k] if point else exp_digamma(gamma[k])
                gathered[k] = 0.0
            for i in range(begin, end):
                row = beyond(table, words[i] * width)
                add(gathered, row, counts[i] / (dot(theta, row, width) + 1e-300), width)
            change = 0.0
            for k in range(width):
                new = prior[k] + theta[k] * gathered[k]
                change += abs(new - gamma[k])
                gamma[k] = new
            change /= width
            step += 1.0
            steps += 1
        for k in range(width):
            theta[k] = gamma[k] if point else exp_digamma(gamma[k])
        bound = 0.0
        for i in range(begin, end):
            row = beyond(table, words[i] * width)
            p = dot(theta, row, width) + 1e-300
            bound += counts[i] * log(p)
            if keep:
                add(beyond(stats, words[i] * width), theta, counts[i] / p, width)
        bounds[d] = bound
    return steps
