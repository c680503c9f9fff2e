"""The Ising model's graph by L1-penalised logistic regression of each spin on the others.

Method: a spin's neighbours are the columns that its logistic regression takes (Ravikumar, Wainwright and Lafferty 2010);
the two answers about a pair are joined by OR or AND. The penalty is one number for all spins; or by `choose`: "ebic" for
each spin (Barber and Drton 2015; the support is fitted again, nearly without a penalty), "rate" (noise exceeds it rarely),
or "stability" (StARS, one for all).
Cost: a path of sparse logistic regressions a column, in threads; 100 columns and 500 rows take some seconds.
Use it for two-state columns and for many of them; `l1-pseudo-likelihood` fits one symmetric model and takes any states.
"""

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.inference.threads import in_parallel
from markovia.learning.structure.knowledge import Flags
from markovia.learning.structure.lasso_path import penalty_path
from markovia.learning.structure.penalty_choice import need_penalty, stars
from markovia.learning.structure.result import Found
from markovia.learning.structure.sparse_logistic import (
    Spins,
    fit_spin,
    largest_alpha,
    need_variation,
    rate_alpha,
    read_field,
    read_spins,
    spin_factors,
)
from markovia.learning.structure.task import Task
from markovia.learning.structure.undirected_edges import joined, undirected_graph, within_rules

CHOICES = ("ebic", "rate", "stability")
BLOCK = 32
"""Columns between two looks at the clock."""
CHUNK, PATIENCE = 4, 6
"""Penalties fitted in one go, and how many in a row may be worse than the best before the path ends."""


def ising(
    task: Task,
    *,
    alpha: float | None = None,
    choose: str | None = None,
    rule: str = "or",
    field: str = "free",
    gamma: float = 0.25,
    level: float = 0.05,
    n_alphas: int = 24,
    smallest: float = 0.03,
    subsamples: int = 20,
    beta: float = 0.1,
) -> Found:
    """Learn the graph of an Ising model from two-state columns.

    Parameters
    ----------
    task
        Discrete data, two states a column.
    alpha
        The penalty for all spins, on the parameters of the model in -1 and +1. Instead of it `choose`.
    choose
        "ebic" (default), "rate" or "stability".
    rule
        "or": one of the two regressions is enough; "and": both.
    field
        Whether each spin's own preference is "free", "penalised" like the couplings, or "none".
    gamma
        For "ebic": the weight of the number of possible neighbours (0 is BIC).
    level
        For "rate".
    n_alphas, smallest
        For "ebic" and "stability": how many penalties are tried, and the last as a share of the first.
    subsamples, beta
        For "stability".

    Returns
    -------
    Found
        `weights` are the couplings, the mean of the two estimates. Details: "coefficients" (row k: regression of k),
        "fields", "alpha" (one a column), "kkt".

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 500)
    >>> b = np.where(rng.random(500) < 0.85, a, 1 - a)
    >>> c = np.where(rng.random(500) < 0.85, b, 1 - b)
    >>> mk.learn_structure({"a": a, "b": b, "c": c}, method="ising").edges
    [('a', 'b'), ('b', 'c')]
    """
    joined(np.zeros((1, 1)), rule)
    how = _how(alpha, choose)
    spins = read_spins(task.study, task.rules, "the Ising model", grouped=True)
    free = read_field(field)
    need_variation(spins, free)
    factors = spin_factors(spins.rules, free)
    shares = spins.weights / spins.total
    n = len(spins.names)
    details: dict[str, object] = {"choose": how, "rule": rule}
    each = np.log(spins.total) + 2 * gamma * np.log(max(n - 1, 1))
    if how == "rate":
        alpha = rate_alpha(n, spins.total, level)
    elif how == "stability":
        alpha, about = _stable_alpha(task, spins, factors, rule, n_alphas, smallest, subsamples, beta)
        details.update(about)

    def one(node: int, room: None) -> tuple[Array, float, float]:
        if alpha is not None:
            found = fit_spin(spins.design, node, shares, factors[node], np.array([alpha]))
            return found.thetas[0], alpha, float(found.errors[0])
        top = largest_alpha(spins.design, node, shares, factors[node])
        levels = penalty_path(top, n_alphas, smallest)
        best, lowest, since = (np.zeros(n + 1), top), np.inf, 0
        start: Array | None = None
        for low in range(0, len(levels), CHUNK):
            part = levels[low : low + CHUNK]
            found = fit_spin(spins.design, node, shares, factors[node], part, start, 1e-5)
            start = found.thetas[-1]
            used = (found.thetas[:, :n] != 0).sum(axis=1)
            losses = _refitted(spins.design, node, shares, factors[node], found.thetas, part)
            cost = 2 * spins.total * losses + used * each
            since += len(part)
            if cost.min() < lowest:
                k = int(np.argmin(cost))
                lowest, since = float(cost[k]), len(part) - 1 - k
                best = found.thetas[k], float(part[k])
            if since >= PATIENCE:
                break
        exact = fit_spin(spins.design, node, shares, factors[node], np.array([best[1]]), best[0])
        return exact.thetas[0], best[1], float(exact.errors[0])

    thetas, penalties, worst, notes = np.zeros((n, n + 1)), np.full(n, np.nan), 0.0, []
    for low in range(0, n, BLOCK):
        if task.watch.over():
            notes.append(f"stopped after {low} of {n} columns; the others have no regression of their own")
            break
        nodes = range(low, min(low + BLOCK, n))
        for node, (theta, chosen, error) in zip(nodes, in_parallel(one, nodes, lambda: None), strict=True):
            thetas[node], penalties[node] = theta, chosen
            worst = max(worst, error)
        task.watch.advance(len(nodes))
    couplings = thetas[:, :n]
    strength = (couplings + couplings.T) / 2
    keep = within_rules(joined(couplings, rule), strength, spins.rules)
    details |= {"coefficients": couplings, "fields": thetas[:, n], "alpha": penalties, "kkt": worst}
    return Found(
        undirected_graph(spins.names, keep),
        weights=np.where(keep, strength, 0.0),
        notes=notes,
        details=details,
    )


def _how(alpha: float | None, choose: str | None) -> str:
    if alpha is not None:
        if choose is not None:
            raise InvalidArgument("give alpha= or choose=, not both")
        need_penalty(alpha, "alpha")
        return "fixed"
    if choose is not None and choose not in CHOICES:
        raise InvalidArgument(f"choose= is one of {', '.join(map(repr, CHOICES))}, not {choose!r}")
    return choose or "ebic"


def _refitted(design: Array, node: int, shares: Array, factor: Array, thetas: Array, levels: Array) -> Array:
    """Return the mean loss of each support, fitted again with a hundredth of the penalty (none may be unbounded)."""
    losses = np.empty(len(thetas))
    before: bytes = b"none"
    for k, theta in enumerate(thetas):
        used = theta != 0
        used[-1] = True
        if used.tobytes() != before:
            before = used.tobytes()
            own = np.where(used, factor, np.inf)
            losses[k] = fit_spin(design, node, shares, own, levels[k : k + 1] / 100, theta, 1e-5).losses[0]
        else:
            losses[k] = losses[k - 1]
    return losses


def _stable_alpha(
    task: Task,
    spins: Spins,
    factors: Array,
    rule: str,
    n_alphas: int,
    smallest: float,
    subsamples: int,
    beta: float,
) -> tuple[float, dict[str, object]]:
    """Choose one penalty for all spins by StARS; weighted rows are first repeated."""
    rows = repeated_rows(spins.weights)
    design, n = spins.design, len(spins.names)
    shares = spins.weights / spins.total
    top = max(largest_alpha(design, k, shares, factors[k]) for k in range(n))
    levels = penalty_path(top, n_alphas, smallest)

    def graphs(chosen: NDArray[np.int64]) -> Flags:
        own = np.bincount(rows[chosen], minlength=design.shape[1])
        here = np.flatnonzero(own)
        part, share = np.ascontiguousarray(design[:, here]), own[here] / len(chosen)

        def one(node: int, room: None) -> Array:
            if abs(part[node].sum()) == len(here):  # constant in the subsample: nothing to explain
                return np.zeros((len(levels), n))
            return fit_spin(part, node, share, factors[node], levels, tolerance=1e-5).thetas[:, :n]

        found = np.array(in_parallel(one, range(n), lambda: None))  # (nodes, penalties, columns)
        return np.array([joined(found[:, k], rule) for k in range(len(levels))])

    steady = stars(graphs, len(rows), len(levels), n, task.rng, task.watch, subsamples=subsamples, beta=beta)
    about: dict[str, object] = {
        "alphas": levels, "instability": steady.instability, "shares": steady.shares[steady.chosen],
        "subsamples": steady.n_subsamples,
    }  # fmt: skip
    return float(levels[steady.chosen]), about


def repeated_rows(weights: Array) -> NDArray[np.int64]:
    """Return row numbers, each as often as it counts; weights that are no whole numbers cannot be subsampled."""
    whole = np.round(weights)
    if not np.allclose(weights, whole):
        raise InvalidArgument(
            "choose='stability' draws subsamples of rows, so that weights must be whole numbers"
        )
    return np.repeat(np.arange(len(weights)), whole.astype(np.int64))
