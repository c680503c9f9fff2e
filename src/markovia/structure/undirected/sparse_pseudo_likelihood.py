"""Sparse pairwise Markov networks for any number of states: pseudo-likelihood with an L1 or group-L1 penalty.

Method: a pairwise log-linear model has a table for every column and for every pair; all are fitted at once by
pseudo-likelihood (Besag 1975), each pair's table with one symmetric set of parameters. Group L1 penalises the Euclidean norm
of a pair's table and so leaves whole edges out (Schmidt 2010, chapter 6; Lee, Ganapathi and Koller 2006); L1 zeroes single
entries, and an edge is absent where all are zero. Minimised by Newton steps over the pairs in use
(`markovia.structure.undirected.pairwise_newton`), along a path of penalties.
The penalty is a number; or by `choose`: "ebic" over a path, "stars", or "stability" (edges that halves of the rows choose
again and again). EBIC is the sum over columns of the one of Barber and Drton (2015): every graph is fitted again without a
penalty, and an edge is paid for by both its columns, `2 parameters log(rows) + 4 gamma log(columns)`, since the
pseudo-likelihood counts its evidence twice.
Cost: a step is two products of rows by (sum of states) squared, and a path some tens of steps: 100 columns of two states and
2,000 rows take seconds. Up to a few hundred states in all.
Use it for columns with more than two states, or where one symmetric model is wanted; for two states and many columns `ising`
needs less memory.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check_choice, penalty_given
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import undirected_graph, within_rules
from markovia.structure.undirected.lasso_path import penalty_path
from markovia.structure.undirected.pairwise_field import PairwiseField
from markovia.structure.undirected.pairwise_newton import PairwiseFit, Penalties, fit, refit, violations
from markovia.structure.undirected.penalty_choice import SUBSAMPLING, Graphs, PenaltyChoice, Subsampling
from markovia.structure.undirected.pseudo_likelihood_path import CHOICES, fitted_path

LOOSE = 1e-4
"""The tolerance on the way; the last fit is exact."""


@dataclass(frozen=True, eq=False)
class PairwiseDetails:
    """The penalty, how far the fit is from its optimum, its pseudo-likelihood, and logarithms of potentials by name."""

    alpha: float
    kkt: float
    pseudo_log_likelihood: float
    node_tables: dict[str, Array]
    edge_tables: dict[tuple[str, str], Array]
    choice: PenaltyChoice | None = None


def l1_pseudo_likelihood(
    task: Task,
    *,
    alpha: float | None = None,
    choose: str | None = None,
    penalty: str = "group",
    gamma: float = 0.25,
    n_alphas: int = 20,
    smallest: float = 0.03,
    subsampling: Subsampling = SUBSAMPLING,
    tolerance: float = 1e-6,
) -> FoundGraph:
    """Learn a sparse pairwise Markov network.

    Parameters
    ----------
    task
        Discrete data.
    alpha
        The penalty, on the mean loss of a row. Instead of it `choose`.
    choose
        "ebic" (default), "stars" or "stability".
    penalty
        "group": the norm of each pair's table; "l1": its single entries.
    gamma
        For "ebic": the weight of the number of possible edges (0 is BIC).
    n_alphas, smallest
        How many penalties are tried, and the last as a share of the first, which leaves no edge.
    subsampling
        For "stars" and "stability"; `learn_structure` takes its settings one by one: `subsamples=`, `beta=`, `pi=`,
        `false_edges=`, `complementary=`.
    tolerance
        The largest violation of the optimality conditions.

    Returns
    -------
    Found
        `weights` are the norms of the edges' tables. `details` is a `PairwiseDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 3, 500)
    >>> b = np.where(rng.random(500) < 0.7, a, rng.integers(0, 3, 500))
    >>> c = np.where(rng.random(500) < 0.7, b, rng.integers(0, 3, 500))
    >>> mk.learn_structure({"a": a, "b": b, "c": c}, method="l1-pseudo-likelihood").edges
    [('a', 'b'), ('b', 'c')]
    """
    check_choice("penalty", penalty, ("group", "l1"))
    how = penalty_given("alpha", alpha, choose, CHOICES)
    table, group = _rows(task), penalty == "group"
    names, rules, n = task.names, task.rules, len(task.names)
    cells, counts = table.distinct(names)
    codes, shares = np.ascontiguousarray(cells.T), counts / counts.sum()
    pairs = [(i, j) for i, j in combinations(range(n), 2) if rules.pairs[i, j]]
    field = PairwiseField(codes, task.rows.cards, shares, pairs, "contrasts" if group else "entries")
    begin, top = _without_edges(field, rules, group)
    if alpha is not None:
        levels = np.array([alpha])
        if alpha < top / 4:  # a path to it is quicker than a cold start
            levels = np.append(np.geomspace(top, max(alpha, top * 1e-3), 8), alpha)
    else:
        levels = penalty_path(top, n_alphas, smallest)
    whole = field if group else PairwiseField(codes, task.rows.cards, shares, pairs)

    def fit_level(level: float, among: Flags | None, start: Array, exact: float) -> PairwiseFit:
        return fit(field, _penalties(field, rules, level, group, among), start, exact)

    last, alpha, choice, stable, notes = fitted_path(
        fit_level, begin, levels, (max(LOOSE * top, tolerance), tolerance),
        how=how, cost=lambda fits, costs: _ebic(whole, field, fits, costs, table.total, gamma),
        subsampled=lambda rows: _subsampled(task, field, codes, rows, levels, group), counts=counts,
        rules=rules, task=task, subsampling=subsampling,
    )  # fmt: skip
    there = np.flatnonzero(_there(field, last.point))
    tables = {pairs[k]: field.table(last.point, k) for k in there.tolist()}
    strength, present = np.zeros((n, n)), np.zeros((n, n), dtype=bool)
    for (i, j), own in tables.items():
        strength[i, j] = strength[j, i] = float(np.linalg.norm(_centred(own)))
        present[i, j] = present[j, i] = True
    keep = within_rules(present if stable is None else stable, strength, rules)
    joined = [(i, j) for i, j in pairs if keep[i, j]]
    empty = {(i, j): np.zeros((len(field.bases[i]), len(field.bases[j]))) for i, j in joined}
    details = PairwiseDetails(
        alpha=alpha,
        kkt=last.error,
        pseudo_log_likelihood=-table.total * last.loss,
        node_tables={name: field.column_table(last.point, i) for i, name in enumerate(names)},
        edge_tables={(names[i], names[j]): tables.get((i, j), empty[i, j]) for i, j in joined},
        choice=choice,
    )
    return FoundGraph(
        undirected_graph(names, keep), weights=np.where(keep, strength, 0.0), notes=notes, details=details
    )


def _rows(task: Task) -> CodedTable:
    mixed = task.rows
    if not mixed.discrete:
        first = next(n for n, kind in zip(mixed.names, mixed.kinds, strict=True) if kind != "discrete")
        raise InvalidArgument(
            f"l1-pseudo-likelihood needs discrete columns, and {first!r} has measurements; discretise it first"
        )
    if len(task.names) < 2:
        raise InvalidArgument("l1-pseudo-likelihood needs at least two columns")
    table = mixed.codes()
    if not table.total > 0:
        raise InvalidArgument("l1-pseudo-likelihood needs rows")
    return table


def _penalties(
    field: PairwiseField, rules: Rules, alpha: float, group: bool, stable: Flags | None
) -> Penalties:
    """Return the penalties of pairs: required ones have none, and pairs that were found unstable are left out."""
    cut = np.full(len(field.pairs), alpha)
    if len(cut):
        first, second = np.array(field.pairs).T
        if stable is not None:
            cut[~stable[first, second]] = np.inf
        cut[rules.required_pairs[first, second]] = 0.0
    return Penalties(group, cut)


def _without_edges(field: PairwiseField, rules: Rules, group: bool) -> tuple[Array, float]:
    """Return the fit without edges but the required ones, and the least penalty that leaves it optimal."""
    first, second = np.array(field.pairs, dtype=np.int64).reshape(-1, 2).T
    required = rules.required_pairs[first, second]
    found = fit(
        field,
        Penalties(group, np.where(required, 0.0, np.inf)),
        np.zeros(field.n_weights),
        1e-8,
    )
    _, gradient = field(found.point)
    size = violations(field, Penalties(group, np.zeros(len(field.pairs))), found.point, gradient)
    return found.point, float(size[~required].max(initial=0.0))


def _there(field: PairwiseField, point: Array) -> NDArray[np.bool_]:
    if not field.pairs:
        return np.zeros(0, dtype=bool)
    at = field.starts[:-1] - field.n_single
    return np.asarray(np.logical_or.reduceat(point[field.n_single :] != 0, at))


def _ebic(
    whole: PairwiseField,
    field: PairwiseField,
    fits: list[PairwiseFit],
    costs: list[float],
    total: float,
    gamma: float,
) -> float:
    """Return the criterion of the last graph, fitted again without a penalty."""
    there = _there(field, fits[-1].point)
    if costs and np.array_equal(there, _there(field, fits[-2].point)):
        return costs[-1]
    start = fits[-1].point if whole is field else np.zeros(whole.n_weights)
    loss = refit(whole, start, there, 1e-3 / total).loss
    free = float(np.diff(whole.starts)[there].sum())
    many = 4 * gamma * float(there.sum()) * np.log(len(whole.cards))
    return 2 * total * loss + 2 * free * float(np.log(total)) + float(many)


def _subsampled(
    task: Task,
    field: PairwiseField,
    codes: NDArray[np.int64],
    rows: NDArray[np.int64],
    levels: Array,
    group: bool,
) -> Graphs:
    n = len(task.names)
    first, second = np.array(field.pairs, dtype=np.int64).reshape(-1, 2).T

    def graphs(chosen: NDArray[np.int64], most: float) -> Flags:
        own = np.bincount(rows[chosen], minlength=codes.shape[1])
        here = np.flatnonzero(own)
        share = own[here] / len(chosen)
        part = PairwiseField(
            codes[:, here], field.cards, share, field.pairs, "contrasts" if group else "entries"
        )
        point = np.zeros(part.n_weights)
        found = []
        for level in levels:
            point = fit(part, _penalties(part, task.rules, float(level), group, None), point, 1e-4).point
            there = _there(part, point)
            near = np.zeros((n, n), dtype=bool)
            near[first[there], second[there]] = near[second[there], first[there]] = True
            found.append(near)
            if there.sum() > most:
                break
        return np.array(found)

    return graphs


def _centred(table: Array) -> Array:
    return np.asarray(
        table - table.mean(axis=0, keepdims=True) - table.mean(axis=1, keepdims=True) + table.mean()
    )
