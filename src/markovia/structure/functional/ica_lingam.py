"""ICA-LiNGAM: a linear model with non-Gaussian noise by independent component analysis (Shimizu et al. 2006).

The components of x = Bx + e are the noises, so W = I - B up to order and scale of rows. FastICA (Hyvärinen 1999)
finds W; its rows are put so that the diagonal is large (an assignment problem), divided by the diagonal, and B = I -
W is brought to a triangular form by setting its smallest entries to zero. Coefficients along that order are then
estimated anew and pruned (`linear_effects`).

Cost: some tens to hundreds of products O(n p²) and O(p³). Faster than DirectLiNGAM for many variables, but FastICA
may stop at a local optimum: of several starts the one counts whose components are least Gaussian.
"""

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.functional.direct_lingam import linear_result
from markovia.structure.functional.independent_components import FUNCTIONS, independent_components
from markovia.structure.functional.linear_effects import (
    check_pruning,
    check_rank,
    known_before,
    triangular_order,
)
from markovia.structure.task.acyclicity import possible_edges
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task


def ica_lingam(
    task: Task,
    *,
    contrast: str = "logcosh",
    restarts: int = 4,
    max_iterations: int = 1000,
    tolerance: float = 1e-4,
    prune: str = "adaptive-lasso",
    threshold: float = 0.05,
    alpha: float = 0.05,
) -> FoundGraph:
    """Learn a linear non-Gaussian model by independent components.

    Parameters
    ----------
    task
        Data of numbers, the rules, and random numbers for where FastICA begins.
    contrast
        FastICA's function: "logcosh", "exp" or "cube".
    restarts
        How many further random starts of FastICA are tried.
    max_iterations, tolerance
        When FastICA ends.
    prune, threshold, alpha
        As in `direct_lingam`.

    Returns
    -------
    Found
        As `direct_lingam`; `details.W` is the scaled and permuted unmixing matrix.

    Examples
    --------
    >>> import markovia as mk
    >>> cause, noise = np.random.default_rng(1).laplace(size=(2, 500))
    >>> mk.learn_structure({"effect": cause + noise, "cause": cause}, method="ica-lingam", seed=0).edges
    [('cause', 'effect')]
    """
    from scipy.optimize import linear_sum_assignment

    rows = measured_columns(task, "ica-lingam")
    check_pruning(prune, threshold, alpha)
    check_rank(rows, task.names)
    check_choice("contrast", contrast, tuple(FUNCTIONS))
    check_count("restarts", restarts)
    p = rows.shape[1]
    notes = []
    spread = rows.std(axis=0)
    scaled = (rows - rows.mean(axis=0)) / spread
    best = independent_components(
        scaled, p, contrast, max_iterations, tolerance, task.rng, starts=1 + restarts, clock=task.clock
    )
    if not best.converged:
        notes.append(f"FastICA did not converge in {max_iterations} iterations; the order may be wrong")
    unmixing = best.unmixing / spread
    # sizes are compared where each column has variance 1, and below where each noise has: units of measurement do not matter
    sizes = np.abs(unmixing * spread)
    row, column = linear_sum_assignment(1.0 / np.maximum(sizes, 1e-300))
    square = np.empty_like(unmixing)
    square[column] = unmixing[row]
    noise = 1.0 / np.abs(np.diag(square))
    square /= np.diag(square)[:, None]
    order = _order((np.eye(p) - square) * noise / noise[:, None], task)
    path = [SearchStep("components", 0.0, task.clock.seconds)]
    return linear_result(task, rows, order, path, notes, prune, threshold, alpha, W=square)


def _order(effects: Array, task: Task) -> list[int]:
    """Return the triangular order of what the rules leave of B."""
    rules = task.rules
    before, _ = known_before(rules)
    left = np.where(possible_edges(rules).T, effects, 0.0)
    return triangular_order(left, before)
