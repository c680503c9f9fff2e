"""ICA-LiNGAM: a linear model with non-Gaussian noise by independent component analysis (Shimizu et al. 2006).

The components of x = Bx + e are the noises, so W = I - B up to order and scale of rows. FastICA (Hyvärinen 1999)
finds W; its rows are put so that the diagonal is large (an assignment problem), divided by the diagonal, and B = I -
W is brought to a triangular form by setting its smallest entries to zero. Coefficients along that order are then
estimated anew and pruned (`linear_effects`).

Cost: some tens to hundreds of products O(n p²) and O(p³). Faster than DirectLiNGAM for many variables, but FastICA
may stop at a local optimum: of several starts the one counts whose components are least Gaussian.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.functional.direct_lingam import linear_result
from markovia.structure.functional.linear_effects import (
    check_pruning,
    check_rank,
    known_before,
    triangular_order,
)
from markovia.structure.task.acyclicity import possible_edges
from markovia.structure.task.result import Found, Step
from markovia.structure.task.task import Task

FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "logcosh": (lambda u: np.logaddexp(u, -u) - np.log(2.0), 0.374567),
    "exp": (lambda u: -np.exp(-u * u / 2), -(0.5**0.5)),
    "cube": (lambda u: u**4 / 4, 0.75),
}
"""FastICA's functions by name, each with its mean over a standard normal variable."""


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
) -> Found:
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
    best: _Components | None = None
    for _ in range(1 + restarts):
        if best is not None and task.clock.over():
            break
        seed = int(task.rng.integers(2**31 - 1))
        found = _components(scaled, contrast, max_iterations, tolerance, seed)
        if best is None or (found.converged, found.distance) > (best.converged, best.distance):
            best = found
        task.clock.advance(note="components found")
    assert best is not None
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
    path = [Step("components", 0.0, task.clock.seconds)]
    return linear_result(task, rows, order, path, notes, prune, threshold, alpha, W=square)


class _Components(NamedTuple):
    """An unmixing matrix, how far its components are from Gaussian ones, and whether FastICA converged."""

    unmixing: Array
    distance: float
    converged: bool


def _components(
    scaled: Array, contrast: str, max_iterations: int, tolerance: float, seed: int
) -> _Components:
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        ica = FastICA(
            n_components=scaled.shape[1],
            fun=contrast,
            max_iter=max_iterations,
            tol=tolerance,
            whiten="unit-variance",
            random_state=seed,
        ).fit(scaled)
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in raised)
    parts = scaled @ ica.components_.T
    parts /= parts.std(axis=0)
    function, of_gaussian = FUNCTIONS[contrast]
    distance = float(((function(parts).mean(axis=0) - of_gaussian) ** 2).sum())
    return _Components(ica.components_, distance, converged)


def _order(effects: Array, task: Task) -> list[int]:
    """Return the triangular order of what the rules leave of B."""
    rules = task.rules
    before, _ = known_before(rules)
    left = np.where(possible_edges(rules).T, effects, 0.0)
    return triangular_order(left, before)
