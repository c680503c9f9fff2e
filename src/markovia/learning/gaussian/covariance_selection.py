"""The covariance of a Gaussian whose precision has given zeros: covariance selection (Dempster 1972).

Method: block coordinate ascent of the likelihood (Hastie, Tibshirani, Friedman 2009, algorithm 17.1): regress each number on
its neighbours with the current covariance, and put what the regression says into the covariance of all others, until nothing
changes. The fitted covariance agrees with that of the data on the diagonal and on every edge, and the precision is zero
elsewhere. Cost: a sweep is `n` regressions on the neighbours, plus `n^2` times their number; chordal graphs need few sweeps.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.data.tables.moments import Moments, checked_moments
from markovia.data.tables.reading_mixed import read_mixed
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Array

SWEEPS, TOLERANCE = 1000, 1e-12


def covariance_selection(
    data: Any, names: Sequence[str], graph: UndirectedGraph, prior: float = 0.0, weights: Any = None
) -> tuple[Array, Any]:
    """Return the mean and the sparse precision of largest likelihood among those with the zeros of the graph."""
    from scipy.sparse import csr_matrix

    if not isinstance(prior, int | float) or not prior >= 0.0:
        raise InvalidArgument(
            f"prior= is a number of rows, zero or more, or mk.priors.Wishart(...), not {prior!r}"
        )
    mean, found = field_moments(data, names, weights)
    spread = found.covariance * (found.total / (found.total + prior))
    np.fill_diagonal(spread, found.covariance.diagonal())
    place = {n: i for i, n in enumerate(names)}
    near = [np.array(sorted(place[q] for q in graph.neighbors(n)), dtype=np.int64) for n in names]
    return mean, csr_matrix(selected_precision(spread, near, names))


def field_moments(data: Any, names: Sequence[str], weights: Any) -> tuple[Array, Moments]:
    """Return the means of complete rows and what else a Gaussian field reads off them."""
    mixed = read_mixed(data, names=names, continuous=True, weights=weights)
    matrix = mixed.numbers("fitting a Gaussian field")
    gaps = np.isnan(matrix)
    if gaps.any():
        worst = int(gaps.sum(axis=0).argmax())
        rows = (
            f"all {len(matrix):,}"
            if gaps[:, worst].all()
            else f"{int(gaps[:, worst].sum()):,} of {len(matrix):,}"
        )
        raise InvalidArgument(
            f"{rows} rows miss {names[worst]!r}, and a Gaussian field is fitted to complete rows; "
            + ("leave that variable out" if gaps[:, worst].all() else "drop the others first")
        )
    found = checked_moments(matrix, mixed.weights, names)
    return np.asarray(matrix.T @ found.weights / found.total), found


def selected_precision(spread: Array, near: Sequence[Any], names: Sequence[str]) -> Array:
    """Return the precision with the given neighbours whose inverse agrees with a covariance on edges and diagonal."""
    fitted, n = spread.copy(), len(spread)
    slopes: list[Array] = [np.zeros(0)] * n
    for _ in range(SWEEPS):
        change = 0.0
        for j in range(n):
            others = np.arange(n) != j
            try:
                slopes[j] = np.linalg.solve(fitted[np.ix_(near[j], near[j])], spread[near[j], j])
            except np.linalg.LinAlgError:
                raise InvalidArgument(
                    f"the neighbours of {names[j]!r} are linearly dependent in these rows; give prior=1 or more rows"
                ) from None
            new = fitted[:, near[j]] @ slopes[j]
            change = max(change, float(np.abs(fitted[others, j] - new[others]).max(initial=0.0)))
            fitted[others, j] = fitted[j, others] = new[others]
        if change <= TOLERANCE * float(np.abs(spread).max()):
            break
    precision = np.zeros((n, n))
    for j in range(n):
        rest = spread[j, j] - fitted[near[j], j] @ slopes[j]
        if not rest > 1e-13 * spread[j, j]:
            raise InvalidArgument(
                f"{names[j]!r} is a linear function of its neighbours in these rows; give prior=1 or more rows"
            )
        precision[j, j] = 1.0 / rest
        precision[near[j], j] = -slopes[j] / rest
    return np.asarray(0.5 * (precision + precision.T))
