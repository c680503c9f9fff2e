"""ICA-LiNGAM: a linear model with non-Gaussian noise by independent component analysis (Shimizu et al. 2006).

The components of x = Bx + e are the noises, so W = I - B up to order and scale of rows. FastICA (Hyvärinen 1999)
finds W; its rows are put so that the diagonal is large (an assignment problem), divided by the diagonal, and B = I -
W is brought to a triangular form by setting its smallest entries to zero. Coefficients along that order are then
estimated anew and pruned (`linear_effects`).

Cost: some tens to hundreds of products O(n p²) and O(p³). Faster than DirectLiNGAM for many variables, but FastICA
may stop at a local optimum: compare a few seeds, or use `direct-lingam`.
"""

import warnings

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.learning.structure.acyclicity import possible_edges
from markovia.learning.structure.direct_lingam import linear_result
from markovia.learning.structure.linear_effects import (
    check_pruning,
    check_rank,
    known_before,
    triangular_order,
)
from markovia.learning.structure.measured_columns import measured_columns
from markovia.learning.structure.result import Found, Step
from markovia.learning.structure.task import Task


def ica_lingam(
    task: Task,
    *,
    contrast: str = "logcosh",
    max_iterations: int = 1000,
    tolerance: float = 1e-4,
    prune: str = "adaptive-lasso",
    threshold: float = 0.05,
    alpha: float = 0.05,
) -> Found:
    """Learn a linear non-Gaussian model by independent components.

    Parameters
    ----------
    task
        Data of numbers, the rules, and random numbers for where FastICA begins.
    contrast
        FastICA's function: "logcosh", "exp" or "cube".
    max_iterations, tolerance
        When FastICA ends.
    prune, threshold, alpha
        As in `direct_lingam`.

    Returns
    -------
    Found
        As `direct_lingam`; `details` also has "W", the scaled and permuted unmixing matrix.
    """
    from scipy.optimize import linear_sum_assignment
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    rows = measured_columns(task, "ica-lingam")
    check_pruning(prune, threshold, alpha)
    check_rank(rows, task.names)
    if contrast not in ("logcosh", "exp", "cube"):
        raise InvalidArgument(f"contrast= is 'logcosh', 'exp' or 'cube', not {contrast!r}")
    p = rows.shape[1]
    notes = []
    spread = rows.std(axis=0)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        ica = FastICA(
            n_components=p,
            fun=contrast,
            max_iter=max_iterations,
            tol=tolerance,
            whiten="unit-variance",
            random_state=int(task.rng.integers(2**31 - 1)),
        ).fit(rows / spread)
    if any(issubclass(w.category, ConvergenceWarning) for w in raised):
        notes.append(f"FastICA did not converge in {max_iterations} iterations; the order may be wrong")
    unmixing = ica.components_ / spread
    task.watch.advance(note="components found")
    # sizes are compared where each column has variance 1, and below where each noise has: units of measurement do not matter
    sizes = np.abs(unmixing * spread)
    row, column = linear_sum_assignment(1.0 / np.maximum(sizes, 1e-300))
    square = np.empty_like(unmixing)
    square[column] = unmixing[row]
    noise = 1.0 / np.abs(np.diag(square))
    square /= np.diag(square)[:, None]
    order = _order((np.eye(p) - square) * noise / noise[:, None], task)
    path = [Step("components", 0.0, task.watch.seconds)]
    return linear_result(task, rows, order, path, notes, {"W": square}, prune, threshold, alpha)


def _order(effects: Array, task: Task) -> list[int]:
    """Return the triangular order of what the rules leave of B."""
    rules = task.rules
    before, _ = known_before(rules)
    left = np.where(possible_edges(rules).T, effects, 0.0)
    return triangular_order(left, before)
