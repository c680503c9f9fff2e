"""Parameters of Dirichlet distributions from what was drawn from them (Minka 2000): counts, or means of logarithms.

Parameters learned from counts have a weak Gamma(2, 1) prior themselves: where every document is about one topic the
likelihood alone would drive them to nothing, and a sampler could no longer move. Parameters stay between 0.00001 and 1,000.
"""

import numpy as np

from markovia.runtime.array_types import Array, Codes, Ints

LEAST, MOST = 1e-5, 1e3


def from_counts(counts: Codes, prior: Array, *, symmetric: bool = False, steps: int = 500) -> Array:
    """Return the most probable parameters behind rows of counts, by fixed-point steps from `prior`.

    Parameters
    ----------
    counts
        Draws x categories.
    prior
        Where to begin, a number a category.
    symmetric
        Whether all parameters are equal.
    steps
        Steps at most.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.array([rng.multinomial(100, p) for p in rng.dirichlet([0.5, 2.0], size=2000)])
    >>> from_counts(rows, np.ones(2)).round(1).tolist()
    [0.5, 2.1]
    """
    from scipy.special import psi

    k = counts.shape[1]
    sizes, times = np.unique(counts.sum(axis=1), return_counts=True)
    cells: list[tuple[Ints, Ints]] = []
    most = int(counts.max(initial=0)) + 1
    if symmetric:
        cells.append(_tally(counts.reshape(-1)))
    elif most * k <= 4 * counts.size:
        table = np.bincount((counts + np.arange(k) * most).reshape(-1), minlength=most * k).reshape(k, most)
        cells = [(np.flatnonzero(row), row[row > 0]) for row in table]
    else:
        cells = [_tally(counts[:, j]) for j in range(k)]
    found = np.full(k, float(np.mean(prior))) if symmetric else np.array(prior, dtype=np.float64)
    for _ in range(steps):
        total = found.sum()
        below = float(((psi(sizes + total) - psi(total)) * times).sum())
        above = np.array(
            [
                float(((psi(values + found[j]) - psi(found[j])) * often).sum())
                for j, (values, often) in enumerate(cells)
            ]
        )
        if symmetric:
            new = np.full(k, (found[0] * above.sum() + 1.0) / (k * below + 1.0))
        else:
            new = (found * above + 1.0) / (below + 1.0)
        new = np.clip(new, LEAST, MOST)
        done = np.abs(new - found).max() < 1e-6 * found.max()
        found = np.asarray(new)
        if done:
            break
    return found


def _tally(values: Codes) -> tuple[Ints, Ints]:
    found, often = np.unique(values, return_counts=True)
    return found, often


def from_logs(means: Array, prior: Array, *, symmetric: bool = False, steps: int = 1_000) -> Array:
    """Return the parameters whose expected logarithms are those given, by fixed-point steps from `prior`.

    Examples
    --------
    >>> from scipy.special import psi
    >>> true = np.array([0.5, 2.0, 1.0])
    >>> from_logs(psi(true) - psi(true.sum()), np.ones(3)).round(3).tolist()
    [0.5, 2.0, 1.0]
    """
    from scipy.special import polygamma, psi

    found = np.array(prior, dtype=np.float64)
    aim = np.full_like(means, means.mean()) if symmetric else means
    for _ in range(steps):
        wanted = psi(found.sum()) + aim
        new = np.where(wanted >= -2.22, np.exp(np.minimum(wanted, 50)) + 0.5, -1.0 / (wanted - psi(1.0)))
        for _ in range(5):
            new = np.maximum(new - (psi(new) - wanted) / polygamma(1, new), LEAST)
        new = np.clip(new, LEAST, MOST)
        done = np.abs(new - found).max() < 1e-7 * found.max()
        found = np.asarray(new)
        if done:
            break
    return found
