"""Sums of tables averaged over independent distributions of the variables, one each: what relaxations climb.

With distributions m_i the average is linear in each of them; its slope by m_i(s) is the table entries with state s,
weighted by the distributions of the other variables. Where each m_i is one state, it is the log weight of a
configuration, so moving one variable at a time to the state of the largest slope never loses (*rounding*). The tables of
a graph are finite logs here; `room` is that of `messages.mean_field`, whose bound less its entropies is the average.
"""

from markovia.kernels.expected_logs import slopes
from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointers


@kernel(bare=True)
def label(graph, shares, new, sweeps, room):
    """Relaxation labelling: multiply shares by slopes and normalise, all at once; return the last sweep's largest change.

    The tables must not be negative; then no sweep lowers the average (Baum and Eagon 1967).
    """
    n = len(graph.cards)
    g = pointers(graph)
    shares, new = pointers((shares, new))
    buffer, slope, out = pointers(room)
    change = 0.0
    for _ in range(sweeps):
        change = 0.0
        for i in range(n):
            slopes(g, i, shares, buffer, slope, out)
            begin, total = g.starts[i], 0.0
            for x in range(g.cards[i]):
                total += shares[begin + x] * slope[x]
            for x in range(g.cards[i]):
                old = shares[begin + x]
                new[begin + x] = old * slope[x] / total if total > 0.0 else old
                change = max(change, abs(new[begin + x] - old))
        for s in range(g.starts[n]):
            shares[s] = new[s]
    return change


@kernel(bare=True)
def concave_sweeps(graph, curvature, shares, sweeps, room):
    """Maximise the average plus the sum of curvature * shares * (1 - shares), one variable after the other.

    Given the others each has the best shares (c - level) / (2 curvature) where that is positive, with c the slope plus the
    curvature and the level at which they add up to one. Return how much more than the present value any shares could give:
    the sum over variables of the largest slope less the average one.
    """
    n = len(graph.cards)
    g = pointers(graph)
    curvature, shares = pointers((curvature, shares))
    buffer, slope, out = pointers(room)
    for _ in range(sweeps):
        for i in range(n):
            slopes(g, i, shares, buffer, slope, out)
            begin, card = g.starts[i], g.cards[i]
            for x in range(card):
                shares[begin + x] = 1.0
            going = True
            while going:  # states with shares below zero leave, and the others share anew
                width, level = 0.0, -1.0
                for x in range(card):
                    d = curvature[begin + x]
                    if shares[begin + x] > 0.0:
                        width += 0.5 / d
                        level += 0.5 * (slope[x] + d) / d
                level /= width
                going = False
                for x in range(card):
                    d = curvature[begin + x]
                    if shares[begin + x] > 0.0:
                        shares[begin + x] = 0.5 * (slope[x] + d - level) / d
                        if shares[begin + x] <= 0.0:
                            shares[begin + x] = 0.0
                            going = True
            total = 0.0
            for x in range(card):
                total += shares[begin + x]
            for x in range(card):
                shares[begin + x] /= total
    missing = 0.0
    for i in range(n):
        slopes(g, i, shares, buffer, slope, out)
        begin, best, mean = g.starts[i], 0.0, 0.0
        for x in range(g.cards[i]):
            d = curvature[begin + x]
            steep = slope[x] + d - 2.0 * d * shares[begin + x]
            best = steep if x == 0 else max(best, steep)
            mean += steep * shares[begin + x]
        missing += best - mean
    return missing


@kernel(bare=True)
def settle(graph, shares, codes, room):
    """Move one variable after the other to its state of the largest slope: shares become zeros and ones."""
    n = len(graph.cards)
    g = pointers(graph)
    shares, codes = pointers((shares, codes))
    buffer, slope, out = pointers(room)
    for i in range(n):
        slopes(g, i, shares, buffer, slope, out)
        begin, best = g.starts[i], 0
        for x in range(g.cards[i]):
            if slope[x] > slope[best]:
                best = x
        codes[i] = best
        for x in range(g.cards[i]):
            shares[begin + x] = 1.0 if x == best else 0.0
