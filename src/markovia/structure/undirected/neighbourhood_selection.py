"""Neighbourhood selection: the lasso of each column on all others; its support is the column's neighbourhood.

Method: for Gaussian data the regression of a column on the others has coefficients `-q_ij / q_ii`, which are zero exactly
where there is no edge; the lasso finds which are not (Meinshausen and Buhlmann 2006). The two answers about a pair are
joined by OR or by AND. Columns are scaled to variance one.
Penalty: a number; or by `choose`: "rate" (their bound: at most `level` is the chance to join two separate components), "bic"
or "ebic" for each column (of the support, fitted again by least squares), "cv" for each column, "stars" (one for all), or
"stability" (the edges that halves of the rows choose again and again: `markovia.structure.undirected.stability_selection`).
Cost: the Gram matrix once, then one lasso (or path) a column, in threads; 1,000 columns take seconds.
Use it for many columns when only the graph matters; the graphical lasso gives a whole positive definite estimate.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.moments import Moments, moments, moments_of
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check_level, penalty_given
from markovia.runtime.threads import in_parallel
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import joined, undirected_graph, within_rules
from markovia.structure.undirected.lasso_path import MAX_SWEEPS, TOLERANCE, penalty_path
from markovia.structure.undirected.penalty_choice import (
    SUBSAMPLING,
    PenaltyChoice,
    RegressionDetails,
    Subsampling,
    fold_numbers,
    regression_graphs,
    repeated_rows,
)
from markovia.structure.undirected.stability_selection import settled_by_subsamples

CHOICES = ("rate", "bic", "ebic", "cv", "stars", "stability")
CHUNK, PATIENCE = 4, 6
"""Penalties fitted in one go, and how many in a row may be worse than the best before the path ends."""
BLOCK = 64
"""Columns between two looks at the clock."""


def neighbourhood(
    task: Task,
    *,
    alpha: float | None = None,
    choose: str | None = None,
    rule: str = "or",
    level: float = 0.05,
    gamma: float = 0.5,
    n_alphas: int = 30,
    smallest: float = 0.02,
    folds: int = 5,
    subsampling: Subsampling = SUBSAMPLING,
) -> FoundGraph:
    """Join each column to those that the lasso takes to predict it.

    Parameters
    ----------
    task
        Continuous data.
    alpha
        The penalty for all columns (on columns of variance one, loss `||.||^2 / (2 rows)`). Instead of it `choose`.
    choose
        "rate" (default), "bic", "ebic", "cv", "stars" or "stability".
    rule
        "or": one of the two regressions is enough; "and": both.
    level
        For "rate": the chance to join two components that are separate.
    gamma
        For "ebic": the weight of the number of possible neighbours (0 is BIC).
    n_alphas, smallest
        For the others: how many penalties are tried, and the last as a share of the first.
    folds
        For "cv".
    subsampling
        For "stars" and "stability"; `learn_structure` takes its settings one by one: `subsamples=`, `beta=`, `pi=`,
        `false_edges=`, `complementary=`.

    Returns
    -------
    Found
        `weights[i, j]` is symmetric: the geometric mean of the two coefficients where they agree in sign (the estimate of
        the partial correlation), half their sum otherwise. `details` is a
        `RegressionDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=500)
    >>> b = a + rng.normal(size=500)
    >>> c = b + rng.normal(size=500)
    >>> found = mk.learn_structure({"a": a, "b": b, "c": c}, method="neighbourhood", rule="and")
    >>> found.edges
    [('a', 'b'), ('b', 'c')]
    """
    joined(np.zeros((1, 1)), rule)
    choose = penalty_given("alpha", alpha, choose, CHOICES)
    known = moments(task.rows, "neighbourhood selection")
    gram, n = np.ascontiguousarray(known.correlation), len(task.names)
    factors = penalty_factors(task)
    parts: list[tuple[Array, Array]] = []
    if choose == "cv":
        parts = _fold_grams(known, task, folds)
    if choose == "rate":
        check_level("level", level)
        alpha = theoretical_alpha(n, known.total, level)
    stable: Flags | None = None
    choice: PenaltyChoice | None = None
    if choose in ("stars", "stability"):
        rows = (known.rows / known.deviations)[repeated_rows(known.weights)]
        open_ones = np.isfinite(factors) & (factors > 0)
        levels = penalty_path(float(np.abs(gram[open_ones]).max(initial=0.0)), n_alphas, smallest)

        def graphs(chosen: NDArray[np.int64], limit: float) -> Flags:
            part = np.ascontiguousarray(moments_of(rows[chosen], np.ones(len(chosen))).covariance)

            def some(node: int, wanted: Array, start: Array | None) -> Array:
                return _path(part, node, factors[node], wanted, n, start, 1e-6)[0]

            return regression_graphs(some, n, levels, rule, limit)

        settled = settled_by_subsamples(choose, graphs, len(rows), levels, task.rules, task, subsampling)
        alpha, stable, choice = float(levels[settled.last]), settled.present, settled.choice
        if stable is not None:
            factors[~stable & ~task.rules.required_pairs] = np.inf
    most = max(1, int(known.total) // 3)
    each = np.log(known.total) + (2 * gamma * np.log(max(n - 1, 1)) if choose == "ebic" else 0.0)
    penalties = np.full(n, np.nan if alpha is None else alpha)

    def one(node: int, room: None) -> tuple[Array, float]:
        if alpha is not None:
            coefs, done = _path(gram, node, factors[node], np.array([alpha]), n)
            return coefs[0], alpha
        open_ones = np.isfinite(factors[node])
        top = float(np.abs(gram[node][open_ones & (factors[node] > 0)]).max(initial=0.0))
        levels = penalty_path(top, n_alphas, smallest)
        starts: list[Array | None] = [None] * (1 + len(parts))
        best, lowest, since = top, np.inf, 0
        for low in range(0, len(levels), CHUNK):
            some = levels[low : low + CHUNK]
            cost = np.zeros(len(some))
            if choose == "cv":
                for k, part in enumerate(parts):
                    coefs, done = _path(part[0], node, factors[node], some, most, starts[k], 1e-6)
                    starts[k] = coefs[-1]
                    cost += _held_out(part[1], node, coefs, done)
            else:
                coefs, done = _path(gram, node, factors[node], some, most, starts[0], 1e-6)
                starts[0] = coefs[-1]
                used = (coefs != 0).sum(axis=1)
                cost = known.total * np.log(_refitted(gram, node, coefs)) + used * each
                cost[done:] = np.inf
            since += len(some)
            if cost.min() < lowest:
                at = int(np.argmin(cost))
                lowest, best, since = float(cost[at]), float(some[at]), len(some) - 1 - at
            if since >= PATIENCE or not np.isfinite(cost).all():
                break
        return _path(gram, node, factors[node], np.append(levels[levels > best], best), n)[0][-1], best

    coefficients = np.zeros((n, n))
    notes = []
    for low in range(0, n, BLOCK):
        if task.clock.over():
            notes.append(f"stopped after {low} of {n} columns; the others have no regression of their own")
            break
        nodes = range(low, min(low + BLOCK, n))
        for node, (found, chosen) in zip(nodes, in_parallel(one, nodes, lambda: None), strict=True):
            coefficients[node], penalties[node] = found, chosen
        task.clock.advance(len(nodes))
    present = joined(coefficients, rule) if stable is None else stable
    strength = symmetric_strength(coefficients)
    keep = within_rules(present, strength, task.rules)
    return FoundGraph(
        undirected_graph(task.names, keep),
        weights=np.where(keep, strength, 0.0),
        notes=notes,
        details=RegressionDetails(coefficients, penalties, choose, rule, choice),
    )


def penalty_factors(task: Task) -> Array:
    """Return how each pair is penalised: infinitely where it is forbidden, not at all where it is required."""
    factors = np.where(task.rules.pairs, 1.0, np.inf)
    factors[task.rules.required_pairs] = 0.0
    np.fill_diagonal(factors, np.inf)
    return factors


def theoretical_alpha(n: int, total: float, level: float) -> float:
    """Return the penalty of Meinshausen and Buhlmann for n columns of variance one."""
    from scipy.special import ndtri

    return float(-ndtri(level / (2 * max(n, 2) ** 2)) / np.sqrt(total))


def symmetric_strength(coefficients: Array) -> Array:
    """Return one number a pair from two regressions: the root of their product, or half their sum where signs differ."""
    product = coefficients * coefficients.T
    half = (coefficients + coefficients.T) / 2
    return np.asarray(np.where(product > 0, np.sign(coefficients) * np.sqrt(np.abs(product)), half))


def _path(
    gram: Array,
    node: int,
    factor: Array,
    levels: Array,
    most: int,
    start: Array | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Array, int]:
    """Return the coefficients for each penalty, and for how many they are within `most` columns."""
    from markovia.kernels.structure.graphical_lasso import lasso_path

    coefs, losses = np.zeros((len(levels), len(gram))), np.zeros(len(levels))
    if start is not None:
        coefs[0] = start
    done = lasso_path(gram, node, factor, levels, tolerance, MAX_SWEEPS, most, coefs, losses)
    return coefs, int(done)


def _refitted(gram: Array, node: int, coefs: Array) -> Array:
    """Return the mean squared residual of least squares over the support of each penalty."""
    losses = np.empty(len(coefs))
    before: bytes = b"none"
    for k, beta in enumerate(coefs):
        support = np.flatnonzero(beta)
        if support.tobytes() != before:
            before = support.tobytes()
            target = gram[node, support]
            block = gram[np.ix_(support, support)]
            block[np.diag_indices_from(block)] += 1e-10  # columns may depend on each other
            fitted = np.linalg.solve(block, target)
            losses[k] = max(float(gram[node, node] - target @ fitted), 1e-12)
        else:
            losses[k] = losses[k - 1]
    return losses


def _fold_grams(known: Moments, task: Task, folds: Any) -> list[tuple[Array, Array]]:
    number = fold_numbers(len(known.rows), folds, task.rng)
    scaled = known.rows / known.deviations
    found = []
    for k in range(int(number.max()) + 1):
        inside = number == k
        train = moments_of(scaled[~inside], known.weights[~inside])
        gap = scaled[inside] - (scaled[~inside] - train.rows)[0]
        test = (gap * known.weights[inside][:, None]).T @ gap
        found.append((np.ascontiguousarray(train.covariance), test))
    return found


def _held_out(test: Array, node: int, coefs: Array, done: int) -> Array:
    """Return the sum of squared residuals of rows left out, for each penalty."""
    cost = test[node, node] - 2 * coefs @ test[node] + np.einsum("ai,ai->a", coefs @ test, coefs)
    cost[done:] = np.inf
    return np.asarray(cost)
