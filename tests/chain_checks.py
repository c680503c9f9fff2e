"""Comparisons of Markov chain answers with exact ones, at the Monte Carlo error that the chains report."""

import warnings

import numpy as np

import markovia as mk


def marginals(model, engine, given=None, targets=None):
    """The marginals of an engine without its warnings, and the info."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        found = model.marginals(given=given, targets=targets, engine=engine)
    return found, (next(iter(found.values())).info if found else None)


def assert_close(model, engine, given=None, sigmas=4.5):
    """All marginals within so many standard errors (the largest one) of the exact ones; returns the info."""
    found, info = marginals(model, engine, given)
    exact = model.marginals(given=given, engine="enumeration" if len(model) <= 10 else "auto")
    assert info.converged, info.advice
    assert 0 < info.error < 0.05
    worst = max(np.abs(found[n].values - exact[n].values).max() for n in exact)
    assert worst < sigmas * info.error, (worst, info.error)
    return info


def loop(weight=2.0):
    """Four variables of 2 and 3 states in a loop with a table over three of them: positive, not a tree."""
    rng = np.random.default_rng(7)
    cards = {"a": 2, "b": 3, "c": 2, "d": 3}
    scopes = [["a", "b"], ["b", "c", "d"], ["c", "a"], ["d", "a"], ["b"]]
    tables = [mk.Factor(s, weight ** rng.normal(size=[cards[v] for v in s])) for s in scopes]
    return mk.MarkovNetwork(cards, tables)


def chi_square(counts, p):
    """The statistic of counts against probabilities in units of its standard deviation; infinite for impossible counts."""
    n = counts.sum()
    if (counts[p == 0] > 0).any():
        return np.inf
    kept = p > 0
    statistic = ((counts[kept] - n * p[kept]) ** 2 / (n * p[kept])).sum()
    freedom = max(1, kept.sum() - 1)
    return (statistic - freedom) / np.sqrt(2 * freedom)
