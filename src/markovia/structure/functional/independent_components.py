"""Independent component analysis: directions along which rows are as far from Gaussian as can be.

FastICA (Hyvärinen 1999) may stop at a local optimum: of several starts the one counts whose components are least Gaussian.
Cost: some tens to hundreds of products O(n p²) a start.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock

FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "logcosh": (lambda u: np.logaddexp(u, -u) - np.log(2.0), 0.374567),
    "exp": (lambda u: -np.exp(-u * u / 2), -(0.5**0.5)),
    "cube": (lambda u: u**4 / 4, 0.75),
}
"""FastICA's functions by name, each with its mean over a standard normal variable."""


class UnmixedComponents(NamedTuple):
    """An unmixing matrix, how far its components are from Gaussian ones, whether and when FastICA converged."""

    unmixing: Array
    distance: float
    converged: bool
    n_iter: int


def independent_components(
    rows: Array,
    n: int,
    contrast: str,
    max_iterations: int,
    tolerance: float,
    rng: np.random.Generator,
    *,
    starts: int,
    clock: Clock,
) -> UnmixedComponents:
    """Return n components of rows whose columns have mean 0, the best of some starts."""
    best: UnmixedComponents | None = None
    for _ in range(starts):
        if best is not None and clock.over():
            break
        found = _found(rows, n, contrast, max_iterations, tolerance, int(rng.integers(2**31 - 1)))
        if best is None or (found.converged, found.distance) > (best.converged, best.distance):
            best = found
        clock.advance(note="components found")
    assert best is not None
    return best


def _found(
    rows: Array, n: int, contrast: str, max_iterations: int, tolerance: float, seed: int
) -> UnmixedComponents:
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        ica = FastICA(
            n_components=n,
            fun=contrast,
            max_iter=max_iterations,
            tol=tolerance,
            whiten="unit-variance",
            random_state=seed,
        ).fit(rows)
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in raised)
    parts = rows @ ica.components_.T
    parts /= parts.std(axis=0)
    function, of_gaussian = FUNCTIONS[contrast]
    distance = float(((function(parts).mean(axis=0) - of_gaussian) ** 2).sum())
    return UnmixedComponents(ica.components_, distance, converged, int(ica.n_iter_))
