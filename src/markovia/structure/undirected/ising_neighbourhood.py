"""The Ising model's graph by L1-penalised logistic regression of each spin on the others.

Method: a spin's neighbours are the columns that its logistic regression takes (Ravikumar, Wainwright and Lafferty 2010);
the two answers about a pair are joined by OR or AND. The penalty is one number for all spins; or by `choose`: "ebic" for
each spin (Barber and Drton 2015: `-2 log likelihood + neighbours (log(rows) + 2 gamma log(columns))`, the support fitted
again without a penalty), "rate" (noise exceeds it rarely), "stars" (one for all), or "stability" (the edges that halves of
the rows choose again and again: `markovia.structure.undirected.stability_selection`).
Cost: a path of sparse logistic regressions a column, in threads; 100 columns and 500 rows take some seconds.
Use it for two-state columns and for many of them; `l1-pseudo-likelihood` fits one symmetric model and takes any states.
"""

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import penalty_given
from markovia.runtime.threads import in_parallel
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import joined, undirected_graph, within_rules
from markovia.structure.undirected.lasso_path import penalty_path
from markovia.structure.undirected.penalty_choice import (
    SUBSAMPLING,
    Graphs,
    PenaltyChoice,
    RegressionDetails,
    Subsampling,
    regression_graphs,
    repeated_rows,
)
from markovia.structure.undirected.sparse_logistic import (
    Spins,
    fit_spin,
    largest_alpha,
    need_variation,
    rate_alpha,
    read_field,
    read_spins,
    spin_factors,
)
from markovia.structure.undirected.stability_selection import settled_by_subsamples

CHOICES = ("ebic", "rate", "stars", "stability")
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
    subsampling: Subsampling = SUBSAMPLING,
) -> FoundGraph:
    """Learn the graph of an Ising model from two-state columns.

    Parameters
    ----------
    task
        Discrete data, two states a column.
    alpha
        The penalty for all spins, on the parameters of the model in -1 and +1. Instead of it `choose`.
    choose
        "ebic" (default), "rate", "stars" or "stability".
    rule
        "or": one of the two regressions is enough; "and": both.
    field
        Whether each spin's own preference is "free", "penalised" like the couplings, or "none".
    gamma
        For "ebic": the weight of the number of possible neighbours (0 is BIC).
    level
        For "rate".
    n_alphas, smallest
        How many penalties are tried (not for "rate"), and the last as a share of the first.
    subsampling
        For "stars" and "stability"; `learn_structure` takes its settings one by one: `subsamples=`, `beta=`, `pi=`,
        `false_edges=`, `complementary=`.

    Returns
    -------
    Found
        `weights` are the couplings, the mean of the two estimates. `details` is a `RegressionDetails`.

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
    how = penalty_given("alpha", alpha, choose, CHOICES)
    spins = read_spins(task.rows, task.rules, "the Ising model", grouped=True)
    free = read_field(field)
    need_variation(spins, free)
    factors = spin_factors(spins.rules, free)
    shares = spins.weights / spins.total
    n = len(spins.names)
    choice: PenaltyChoice | None = None
    each = np.log(spins.total) + 2 * gamma * np.log(max(n - 1, 1))
    if how == "rate":
        alpha = rate_alpha(n, spins.total, level)
    stable: Flags | None = None
    if how in ("stars", "stability"):
        rows = repeated_rows(spins.weights)
        levels = penalty_path(
            max(largest_alpha(spins.design, k, shares, factors[k]) for k in range(n)), n_alphas, smallest
        )
        graphs = _subsampled(spins, factors, rule, rows, levels)
        settled = settled_by_subsamples(how, graphs, len(rows), levels, spins.rules, task, subsampling)
        alpha, stable, choice = float(levels[settled.last]), settled.present, settled.choice
        if stable is not None:
            factors[:, :n][~stable & ~spins.rules.required_pairs] = np.inf

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
            losses = _refitted(spins.design, node, shares, factors[node], found.thetas)
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
        if task.clock.over():
            notes.append(f"stopped after {low} of {n} columns; the others have no regression of their own")
            break
        nodes = range(low, min(low + BLOCK, n))
        for node, (theta, chosen, error) in zip(nodes, in_parallel(one, nodes, lambda: None), strict=True):
            thetas[node], penalties[node] = theta, chosen
            worst = max(worst, error)
        task.clock.advance(len(nodes))
    couplings = thetas[:, :n]
    strength = (couplings + couplings.T) / 2
    keep = within_rules(joined(couplings, rule) if stable is None else stable, strength, spins.rules)
    return FoundGraph(
        undirected_graph(spins.names, keep),
        weights=np.where(keep, strength, 0.0),
        notes=notes,
        details=RegressionDetails(couplings, penalties, how, rule, choice, thetas[:, n], worst),
    )


def _refitted(design: Array, node: int, shares: Array, factor: Array, thetas: Array) -> Array:
    """Return the mean loss of each support, fitted again without a penalty.

    Where the support separates the two states its parameters grow without end, but the loss has a limit, which the fit
    reaches to its tolerance: no ridge is needed.
    """
    losses = np.empty(len(thetas))
    before: bytes = b"none"
    for k, theta in enumerate(thetas):
        used = theta != 0
        used[-1] = np.isfinite(factor[-1])
        if used.tobytes() != before:
            before = used.tobytes()
            own = np.where(used, 0.0, np.inf)
            losses[k] = fit_spin(design, node, shares, own, np.zeros(1), theta, 1e-5).losses[0]
        else:
            losses[k] = losses[k - 1]
    return losses


def _subsampled(spins: Spins, factors: Array, rule: str, rows: NDArray[np.int64], levels: Array) -> Graphs:
    """Return what fits subsamples of rows, one penalty for all spins."""
    design, n = spins.design, len(spins.names)

    def graphs(chosen: NDArray[np.int64], most: float) -> Flags:
        own = np.bincount(rows[chosen], minlength=design.shape[1])
        here = np.flatnonzero(own)
        part, share = np.ascontiguousarray(design[:, here]), own[here] / len(chosen)

        def one(node: int, some: Array, start: Array | None) -> Array:
            if abs(part[node].sum()) == len(here):  # constant in the subsample: nothing to explain
                return np.zeros((len(some), n + 1))
            return fit_spin(part, node, share, factors[node], some, start, 1e-5).thetas

        return regression_graphs(one, n, levels, rule, most)

    return graphs
