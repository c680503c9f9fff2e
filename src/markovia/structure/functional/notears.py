"""NOTEARS: a weighted directed graph by continuous optimisation (Zheng, Aragam, Ravikumar, Xing 2018).

min over W of loss(X, XW) + λ₁‖W‖₁ subject to h(W) = tr(exp(W∘W)) - d = 0, by an augmented Lagrangian and L-BFGS-B;
then small weights are cut. The least-squares loss needs only the covariances, so that a step costs O(d³) whatever the
number of rows; the logistic loss, for cells 0 and 1, costs O(n d²).

Use it for linear models whose noises have about equal variances. Its least squares lean on the scale of the columns: where
variances grow along the edges (as they do in most simulated data) it does well because of that, and on standardised
data far worse. `details.varsortability` and a note say how much this may have helped.
"""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_number
from markovia.structure.ci_tests.ci_tests import one_blas_thread
from markovia.structure.functional.augmented_lagrangian import LagrangianMinimum, Objective, minimise_acyclic
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.task.acyclicity import (
    acyclic_edges,
    acyclicity,
    directed_graph,
    possible_edges,
    varsortability,
)
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task

FEW_COLUMNS = 100
"""Below, products of matrices are too small to share between threads."""


@dataclass(frozen=True, eq=False)
class AcyclicDetails:
    """The weights before the cut, how cyclic they are, where they were cut, and along how many paths the variance grows.

    With `loss="logistic"` also the constants of the regressions, for "notears-mlp" the objective of each start.
    """

    W: Array
    h: float
    threshold: float
    varsortability: float
    constants: Array | None = None
    objectives: list[float] | None = None


def notears(
    task: Task,
    *,
    lambda1: float = 0.1,
    loss: str = "l2",
    threshold: float = 0.3,
    standardise: bool = False,
    max_iterations: int = 100,
    h_tolerance: float = 1e-8,
    rho_max: float = 1e16,
    inner_iterations: int = 15_000,
) -> FoundGraph:
    """Learn a linear (or logistic) model with an acyclic graph.

    Parameters
    ----------
    task
        Data of numbers, and the rules. Forbidden weights are held at zero; required edges are neither penalised nor cut.
    lambda1
        The penalty of a weight's size.
    loss
        "l2": half the mean of squared errors. "logistic": for cells 0 and 1; each variable then has a constant as well.
    threshold
        Weights smaller than this are cut. It is raised, with a note, where the rest would close a cycle.
    standardise
        Whether the columns are first brought to variance 1 (for "l2").
    max_iterations, h_tolerance, rho_max, inner_iterations
        See `augmented_lagrangian.minimise_acyclic`.

    Returns
    -------
    Found
        A `DAG`; `weights` of its edges; `score` is minus the objective; `details` is an `AcyclicDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> chain = np.cumsum(np.random.default_rng(0).normal(size=(500, 3)), axis=1)
    >>> mk.learn_structure(dict(zip("abc", chain.T)), method="notears").edges
    [('a', 'b'), ('b', 'c')]
    """
    matrix = measured_columns(task, "notears")
    check_number("lambda1", lambda1)
    check_number("threshold", threshold)
    check_choice("loss", loss, ("l2", "logistic"))
    d = matrix.shape[1]
    free = possible_edges(task.rules)
    penalty: Array = np.where(task.rules.required, 0.0, lambda1)
    rows = matrix
    objective: Objective
    if loss == "l2":
        rows = matrix - matrix.mean(axis=0)
        if standardise:
            rows = rows / rows.std(axis=0)
        objective = squares(rows.T @ rows / len(rows), penalty)
        constants = 0
    else:
        if standardise:
            raise InvalidArgument("standardise= is for loss='l2'; the cells of loss='logistic' stay 0 and 1")
        bad = ~np.isin(matrix, (0.0, 1.0)).all(axis=0)
        if bad.any():
            raise InvalidArgument(
                f"loss='logistic' needs cells 0 and 1; {task.names[int(bad.argmax())]!r} has others"
            )
        objective = logistic(matrix, penalty)
        constants = d
    highest = np.where(free.ravel(), np.inf, 0.0)
    bounds = np.zeros((2 * d * d + constants, 2))
    bounds[: 2 * d * d, 1] = np.tile(highest, 2)
    bounds[2 * d * d :] = (-np.inf, np.inf)
    with one_blas_thread() if loss == "l2" and d < FEW_COLUMNS else nullcontext():
        end = minimise_acyclic(
            objective,
            np.zeros(len(bounds)),
            bounds,
            task.clock,
            max_iterations=max_iterations,
            h_tolerance=h_tolerance,
            rho_max=rho_max,
            inner_iterations=inner_iterations,
        )
    weights = _difference(end.theta, d)
    shifts = end.theta[2 * d * d :] if constants else None
    scaled = standardise or loss == "logistic"
    return finished(task, end, weights, threshold, rows, scaled, constants=shifts)


def finished(
    task: Task,
    end: LagrangianMinimum,
    weights: Array,
    threshold: float,
    rows: Array,
    scaled: bool,
    **more: Any,
) -> FoundGraph:
    """Cut small weights, and return the graph with notes about the way to it; `notears_mlp` ends the same way."""
    cut = acyclic_edges(weights, task.rules, threshold, task.names)
    notes = list(cut.notes)
    if not end.converged and task.clock.reason is None:
        notes.append(f"the optimisation ended with h = {end.h:.2g}, above the tolerance")
    share = varsortability(cut.edges, rows.var(axis=0))
    if not scaled and not math.isnan(share):
        notes.append(
            f"the data are not standardised, and the variance grows along {share:.0%} of the graph's directed paths "
            "(varsortability): near 100% the scale of the columns may have decided the directions; compare "
            "standardise=True"
        )
    return FoundGraph(
        directed_graph(cut.edges, task.names),
        score=-end.value if math.isfinite(end.value) else None,
        path=end.path,
        weights=np.where(cut.edges, weights, 0.0),
        notes=notes,
        details=AcyclicDetails(weights, end.h, cut.threshold, share, **more),
    )


def squares(covariances: Array, penalty: Array) -> Objective:
    """Return ½ tr((I-W)ᵀ S (I-W)) + Σ penalty·|W| and h as a function of W's positive and negative parts."""
    d = len(covariances)
    unit = np.eye(d)
    extra = np.tile(penalty.ravel(), 2)

    def objective(theta: Array) -> tuple[float, Array, float, Array]:
        weights = _difference(theta, d)
        turned = covariances @ (unit - weights)
        value = 0.5 * float(((unit - weights) * turned).sum()) + float(extra @ theta)
        h, turn = acyclicity(weights)
        return value, _both(-turned) + extra, h, _both(turn)

    return objective


def logistic(cells: Array, penalty: Array) -> Objective:
    """Return the mean log-loss of each cell given the others, with constants, + Σ penalty·|W|, and h, as `squares`."""
    n, d = cells.shape
    extra = np.tile(penalty.ravel(), 2)

    def objective(theta: Array) -> tuple[float, Array, float, Array]:
        weights = _difference(theta, d)
        logits = cells @ weights + theta[2 * d * d :]
        value = float((np.logaddexp(0.0, logits) - cells * logits).sum()) / n
        value += float(extra @ theta[: 2 * d * d])
        with np.errstate(over="ignore"):
            error = (1.0 / (1.0 + np.exp(-logits)) - cells) / n
        h, turn = acyclicity(weights)
        slope = np.concatenate([_both(cells.T @ error) + extra, error.sum(axis=0)])
        return value, slope, h, np.concatenate([_both(turn), np.zeros(d)])

    return objective


def _difference(theta: Array, d: int) -> Array:
    return (theta[: d * d] - theta[d * d : 2 * d * d]).reshape(d, d)


def _both(slope: Array) -> Array:
    flat = slope.ravel()
    return np.concatenate([flat, -flat])
