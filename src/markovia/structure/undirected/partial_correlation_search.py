"""The partial-correlation graph: an edge where two columns are correlated given all others.

Method: the partial correlation of two columns given all others is `-q_ij / sqrt(q_ii q_jj)` with `Q` the inverse covariance;
for Gaussian data it is zero exactly where the two are independent given the rest, so that the graph is the Markov network
(Lauritzen 1996, section 5.1). Fisher's z tests each pair, with a correction for their number.
Cost: one matrix inversion, columns cubed. It needs more rows than columns; with few rows use the graphical lasso or
neighbourhood selection.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from markovia.data.moments import Moments, moments
from markovia.errors import InvalidArgument
from markovia.learning.association.association import partial_correlation
from markovia.learning.association.association_graphs import (
    PairCorrection,
    check_decision,
    fisher_z_p_values,
    significant,
)
from markovia.runtime.array_types import Array
from markovia.structure.task.result import Found
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import (
    partial_correlations_of,
    undirected_graph,
    within_rules,
)


@dataclass(frozen=True, eq=False)
class CorrelationDetails:
    """The partial correlations of all pairs, the precision they come from, and where they were tested their p-values."""

    partial_correlations: Array
    precision: Array
    p_values: Array | None = None


def partial_correlations(
    task: Task,
    *,
    alpha: float = 0.05,
    correction: PairCorrection = "benjamini-hochberg",
    threshold: float | None = None,
) -> Found:
    """Join two columns where their partial correlation given all others differs from zero.

    Parameters
    ----------
    task
        Continuous data.
    alpha
        The level of Fisher's z test.
    correction
        "none", "bonferroni" (the chance of any false edge) or "benjamini-hochberg" (the share of false edges), over the
        pairs that may be joined.
    threshold
        Join where the absolute partial correlation is above this, instead of testing.

    Returns
    -------
    Found
        `weights` are the partial correlations; `details` is a `CorrelationDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> chain = np.cumsum(np.random.default_rng(0).normal(size=(500, 3)), axis=1)
    >>> mk.learn_structure(dict(zip("abc", chain.T)), method="partial-correlation").edges
    [('a', 'b'), ('b', 'c')]
    """
    check_decision(alpha, correction if threshold is None else "none", threshold)
    known = moments(task.rows, "partial-correlation")
    n = len(task.names)
    precision = _precision(task, known)
    values = partial_correlations_of(precision)
    pairs = np.array([(i, j) for i, j in combinations(range(n), 2) if task.rules.pairs[i, j]]).reshape(-1, 2)
    first, second = pairs[:, 0], pairs[:, 1]
    sizes = np.abs(values[first, second])
    matrix: Array | None = None
    if threshold is not None:
        accepted = sizes > threshold
    else:
        p = fisher_z_p_values(sizes, int(known.total), n - 2)
        accepted = significant(p, alpha, correction)
        matrix = np.ones((n, n))
        matrix[first, second] = matrix[second, first] = p
    present = np.zeros((n, n), dtype=bool)
    present[first[accepted], second[accepted]] = True
    keep = within_rules(present | present.T, values, task.rules)
    return Found(
        undirected_graph(task.names, keep),
        weights=np.where(keep, values, 0.0),
        n_tests=0 if threshold is not None else len(pairs),
        details=CorrelationDetails(values, precision, matrix),
    )


def _precision(task: Task, known: Moments) -> Array:
    """Return the inverse covariance; the checks of `partial_correlation` name columns that depend on each other."""
    weighted = task.rows.weights is not None
    if not weighted:
        partial_correlation(dict(zip(task.names, known.rows.T, strict=True)))
    scale = known.deviations
    if weighted and np.linalg.eigvalsh(known.correlation)[0] < 1e-12:
        raise InvalidArgument(
            "the columns are linearly dependent, or there are too few rows; use the graphical lasso"
        )
    return np.asarray(np.linalg.inv(known.correlation) / np.outer(scale, scale))
