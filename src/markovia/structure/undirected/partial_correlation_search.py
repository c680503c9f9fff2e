"""The partial-correlation graph: an edge where two columns are correlated given all others.

Method: the partial correlation of two columns given all others is `-q_ij / sqrt(q_ii q_jj)` with `Q` the inverse covariance;
for Gaussian data it is zero exactly where the two are independent given the rest, so that the graph is the Markov network
(Lauritzen 1996, section 5.1). Fisher's z tests each pair, with a correction for their number.
Nodes of several columns have *canonical* partial correlations, the singular values of `Q_aa^-1/2 Q_ab Q_bb^-1/2`; that all
are zero is tested by Wilks' lambda with Bartlett's correction (Mardia, Kent and Bibby 1979, section 10.2).
Cost: one covariance (rows times columns squared) and one inversion (columns cubed) for all pairs, in blocks, between which
the clock is looked at. It needs more rows than columns; with few rows use the graphical lasso or neighbourhood selection.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from markovia.data.tables.moments import Moments, moments
from markovia.data.tables.plain_columns import need_rows
from markovia.errors import InvalidArgument
from markovia.learning.association.association_graphs import (
    PairCorrection,
    check_decision,
    fisher_z_p_values,
    significant,
)
from markovia.runtime.array_types import Array, Ints
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import (
    partial_correlations_of,
    undirected_graph,
    within_rules,
)
from markovia.structure.undirected.vector_nodes import vector_nodes

WORK = 1e8
"""Products of two numbers between two looks at the clock."""
DEPENDENT = 1e-12
"""The share of a column's variance that those before it may leave; with less it is a sum of them up to rounding."""


@dataclass(frozen=True, eq=False)
class CorrelationDetails:
    """The partial correlations of all pairs, the precision they come from, and where they were tested their p-values.

    Nodes of several columns have the largest canonical ones; `columns` are the columns of each node.
    """

    partial_correlations: Array
    precision: Array
    p_values: Array | None = None
    columns: Mapping[str, Sequence[str]] | None = None


def partial_correlations(
    task: Task,
    *,
    alpha: float = 0.05,
    correction: PairCorrection = "benjamini-hochberg",
    threshold: float | None = None,
    nodes: Mapping[str, Sequence[str]] | None = None,
) -> FoundGraph:
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
    nodes
        Columns that are one node together: `{"hand": ["hand_x", "hand_y"]}`; other columns are nodes of their own.

    Returns
    -------
    Found
        `weights` are the partial correlations, of vectors the largest canonical ones; `details` is a
        `CorrelationDetails`. Where the time is over before they are known there are only required edges, and no details.

    Examples
    --------
    >>> import markovia as mk
    >>> chain = np.cumsum(np.random.default_rng(0).normal(size=(500, 3)), axis=1)
    >>> mk.learn_structure(dict(zip("abc", chain.T)), method="partial-correlation").edges
    [('a', 'b'), ('b', 'c')]
    """
    check_decision(alpha, correction if threshold is None else "none", threshold)
    known = moments(task.rows, "partial-correlation")
    vectors = vector_nodes(nodes, task)
    names, rules, n, p_columns = vectors.names, vectors.rules, len(vectors.names), len(task.names)
    need_rows(len(known.rows), p_columns + 1, f"a partial correlation among {p_columns} columns")
    precision = _precision(known, task.names, task.clock.over)
    if precision is None:
        none = within_rules(np.zeros((n, n), dtype=bool), np.zeros((n, n)), rules)
        notes = ["stopped before the partial correlations were known; edges are only the required ones"]
        return FoundGraph(undirected_graph(names, none), weights=np.zeros((n, n)), notes=notes)
    values = partial_correlations_of(precision)
    log_lambda: Array | None = None
    if nodes is not None:
        values, log_lambda = canonical_correlations(precision, vectors.node_of)
    first, second = np.nonzero(np.triu(rules.pairs, 1))
    sizes = np.abs(values[first, second])
    matrix: Array | None = None
    if threshold is not None:
        accepted = sizes > threshold
    else:
        p = fisher_z_p_values(sizes, int(known.total), p_columns - 2)
        if log_lambda is not None:
            width = np.bincount(vectors.node_of)
            a, b = width[first], width[second]
            by_lambda = wilks_p_values(log_lambda[first, second], a, b, known.total, p_columns)
            p = np.where((a == 1) & (b == 1), p, by_lambda)
        accepted = significant(p, alpha, correction)
        matrix = np.ones((n, n))
        matrix[first, second] = matrix[second, first] = p
    present = np.zeros((n, n), dtype=bool)
    present[first[accepted], second[accepted]] = True
    keep = within_rules(present | present.T, values, rules)
    columns = None if nodes is None else vectors.columns(task.names)
    return FoundGraph(
        undirected_graph(names, keep),
        weights=np.where(keep, values, 0.0),
        n_tests=0 if threshold is not None else len(first),
        details=CorrelationDetails(values, precision, matrix, columns),
    )


def canonical_correlations(precision: Array, node_of: Ints) -> tuple[Array, Array]:
    """Return the largest canonical partial correlation of each pair of nodes, and the logarithm of Wilks' lambda.

    Nodes of one column each keep the sign. Pairs of nodes of the same sizes are decomposed together.
    """
    from scipy.linalg import block_diag, solve_triangular

    places = [np.flatnonzero(node_of == node) for node in range(int(node_of.max()) + 1)]
    order, width = np.concatenate(places), np.array([len(p) for p in places])
    own = [np.linalg.cholesky(precision[np.ix_(p, p)]) for p in places]
    white = block_diag(*(solve_triangular(root, np.eye(len(root)), lower=True) for root in own))
    blocks = -white @ precision[np.ix_(order, order)] @ white.T
    starts, n = np.cumsum(width) - width, len(places)
    largest, log_lambda = np.zeros((2, n, n))
    first, second = np.triu_indices(n, 1)
    for a, b in {*zip(width[first].tolist(), width[second].tolist(), strict=True)}:
        i, j = (side[(width[first] == a) & (width[second] == b)] for side in (first, second))
        rows, columns = starts[i][:, None] + np.arange(a), starts[j][:, None] + np.arange(b)
        some = blocks[rows[:, :, None], columns[:, None, :]]
        found = np.minimum(np.linalg.svd(some, compute_uv=False), 1.0 - 1e-16)
        largest[i, j] = some[:, 0, 0] if a == b == 1 else found[:, 0]
        log_lambda[i, j] = np.log1p(-(found**2)).sum(axis=1)
    return largest + largest.T, log_lambda + log_lambda.T


def wilks_p_values(log_lambda: Array, a: Ints, b: Ints, total: float, n_columns: int) -> Array:
    """Return the p-values of Wilks' lambda for nodes of a and b columns given all others, by Bartlett's chi-square."""
    from scipy.stats import chi2

    size = np.maximum(total - 1 - (n_columns - a - b) - (a + b + 1) / 2, 0.0)
    return np.asarray(chi2.sf(-size * log_lambda, a * b))


def _precision(known: Moments, names: Sequence[str], over: Callable[[], bool]) -> Array | None:
    """Return the inverse covariance by Cholesky factors, or None where the time is over before it is known."""
    from scipy.linalg import cho_solve, solve_triangular
    from scipy.linalg.lapack import dpotrf

    n, p = known.rows.shape
    block = max(8, int(WORK / p**2))
    scale, share = known.deviations, known.weights / known.total
    gram, lower, inverse = np.zeros((p, p)), np.zeros((p, p)), np.empty((p, p))
    for low in range(0, n, block):
        if over():
            return None
        part = known.rows[low : low + block] / scale
        gram += (part * share[low : low + block, None]).T @ part
    for low in range(0, p, block):
        if over():
            return None
        high = min(low + block, p)
        panel = gram[low:, low:high] - lower[low:, :low] @ lower[low:high, :low].T
        corner, failed = dpotrf(panel[: high - low], lower=1, clean=1)
        left = np.diag(corner)[: failed - 1 if failed else None] ** 2
        few = np.append(np.flatnonzero(left < DEPENDENT), len(left))[0]
        if failed or few < len(left):
            raise _dependent(gram, low + int(few), names)
        lower[low:high, low:high] = corner
        lower[high:, low:high] = solve_triangular(corner, panel[high - low :].T, lower=True).T
    for low in range(0, p, block):
        if over():
            return None
        inverse[:, low : low + block] = cho_solve((lower, True), np.eye(p, min(block, p - low), -low))
    return np.asarray((inverse + inverse.T) / 2 / np.outer(scale, scale))


def _dependent(gram: Array, column: int, names: Sequence[str]) -> InvalidArgument:
    """Return what to say of a column that is a sum of those before it."""
    shares = np.linalg.lstsq(gram[:column, :column], gram[:column, column], rcond=None)[0]
    involved = [names[i] for i in np.flatnonzero(np.abs(shares) > 1e-6).tolist()] + [names[column]]
    return InvalidArgument(
        f"columns {', '.join(map(repr, involved))} are linearly dependent; leave one of them out, or use the graphical lasso"
    )
