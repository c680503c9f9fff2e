"""Sparse undirected graphs over numbers and states together, and over nodes of several columns: penalised pseudo-likelihood.

Method: the pairwise model of `markovia.structure.undirected.mixed_field` is fitted to all columns at once, with a group-L1
penalty that takes all couplings of a pair of nodes in or out: two numbers have one, a number and three states two, vectors a
matrix (Lee and Hastie 2015). A pair is penalised in proportion to the spread of both nodes, so that pairs without a
dependence of any kind come in alike.
The penalty is a number; or by `choose`: "ebic" over a path, as in `l1-pseudo-likelihood`, "stars" or "stability".
Cost: rows x (numbers + states) squared a step, some hundred steps a penalty: 20 columns and 1,000 rows take seconds.
Use it where columns are of both kinds, or nodes are vectors; otherwise the methods for one kind are faster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from markovia.data.tables.moments import checked_moments
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import penalty_given
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import undirected_graph, within_rules
from markovia.structure.undirected.lasso_path import penalty_path
from markovia.structure.undirected.mixed_field import MixedField, fit_mixed
from markovia.structure.undirected.pairwise_newton import PairwiseFit
from markovia.structure.undirected.penalty_choice import SUBSAMPLING, Graphs, PenaltyChoice, Subsampling
from markovia.structure.undirected.pseudo_likelihood_path import CHOICES, fitted_path
from markovia.structure.undirected.vector_nodes import VectorNodes, vector_nodes

LOOSE = 1e-4
"""The tolerance on the way; the last fit is exact."""


@dataclass(frozen=True, eq=False)
class MixedDetails:
    """The penalty, how far the fit is from its optimum, its pseudo-likelihood, and what it is made of.

    `couplings` has a matrix for each edge: a row (column) for a number, of standard deviations, or for each contrast of
    states; `columns` are the columns of each node.
    """

    alpha: float
    kkt: float
    pseudo_log_likelihood: float
    couplings: Mapping[tuple[str, str], Array]
    columns: Mapping[str, Sequence[str]]
    choice: PenaltyChoice | None = None


def mixed_pseudo_likelihood(
    task: Task,
    *,
    alpha: float | None = None,
    choose: str | None = None,
    nodes: Mapping[str, Sequence[str]] | None = None,
    gamma: float = 0.25,
    n_alphas: int = 20,
    smallest: float = 0.05,
    subsampling: Subsampling = SUBSAMPLING,
    tolerance: float = 1e-6,
) -> FoundGraph:
    """Learn a sparse pairwise Markov network over numbers, states, or both.

    Parameters
    ----------
    task
        Data of any kind.
    nodes
        Columns that are one node together: `{"hand": ["hand_x", "hand_y"]}`; other columns are nodes of their own.
    alpha, choose, gamma, n_alphas, smallest, subsampling, tolerance
        As in `l1_pseudo_likelihood`.

    Returns
    -------
    Found
        `weights` are the norms of the edges' couplings. `details` is a `MixedDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 3, 600)
    >>> size = np.array([-1.0, 0.0, 1.5])[kind] + rng.normal(size=600)
    >>> price = size + rng.normal(size=600)
    >>> data = {"kind": np.array(["s", "m", "l"])[kind], "size": size, "price": price}
    >>> mk.learn_structure(data, method="mixed-pseudo-likelihood").edges
    [('kind', 'size'), ('size', 'price')]
    """
    how = penalty_given("alpha", alpha, choose, CHOICES)
    vectors = vector_nodes(nodes, task)
    model, total, log_units = _field(task, vectors)
    rules = vectors.rules
    weights, required = np.outer(model.sizes(), model.sizes()), rules.required_pairs

    def penalties(level: float, among: Flags | None = None) -> Array:
        cut = np.where(rules.pairs if among is None else rules.pairs & among, level * weights, np.inf)
        cut[required] = 0.0
        return np.asarray(cut.ravel())

    begin = fit_mixed(model, penalties(np.inf), model.start(), 1e-8)
    pulls = model.strengths(model(begin.point)[1])
    open_pairs = np.triu(rules.pairs & ~required, 1)
    top = float((pulls[open_pairs] / weights[open_pairs]).max(initial=0.0)) * (1 + 1e-7)
    levels = penalty_path(top, n_alphas, smallest) if alpha is None else np.array([alpha])

    def fit_level(level: float, among: Flags | None, start: Array, exact: float) -> PairwiseFit:
        return fit_mixed(model, penalties(level, among), start, exact)

    def subsampled(rows: Ints) -> Graphs:
        def graphs(chosen: Ints, most: float) -> Flags:
            part, found = _some_rows(model, np.bincount(rows[chosen], minlength=len(model.shares))), []
            point = part.start()
            for level in levels:
                point = fit_mixed(part, penalties(float(level)), point, 1e-3, 300).point
                found.append(part.strengths(point) > 0)
                if found[-1].sum() > 2 * most:
                    break
            return np.array(found)

        return graphs

    last, alpha, choice, stable, notes = fitted_path(
        fit_level, begin.point, levels, (max(LOOSE, tolerance), tolerance),
        how=how, cost=lambda fits, costs: _ebic(model, fits[-1], total, gamma),
        subsampled=subsampled, counts=model.shares * total, rules=rules, task=task, subsampling=subsampling,
    )  # fmt: skip
    strength = model.strengths(last.point)
    keep = within_rules(strength > 0 if stable is None else stable, strength, rules)
    graph, own = undirected_graph(vectors.names, keep), model.node_of[model.column]
    matrix = model.couplings(last.point)
    places = {name: np.flatnonzero(own == i) for i, name in enumerate(vectors.names)}
    details = MixedDetails(
        alpha=alpha,
        kkt=last.error,
        pseudo_log_likelihood=-total * (last.loss + log_units),
        couplings={(a, b): matrix[np.ix_(places[a], places[b])] for a, b in graph.edges},
        columns=vectors.columns(task.names),
        choice=choice,
    )
    return FoundGraph(graph, weights=np.where(keep, strength, 0.0), notes=notes, details=details)


def _field(task: Task, vectors: VectorNodes) -> tuple[MixedField, float, float]:
    """Return the model of the rows, how many there are, and the logarithm of the units of numbers."""
    mixed = task.rows
    if len(vectors.names) < 2:
        raise InvalidArgument("mixed-pseudo-likelihood needs at least two nodes")
    table = None if mixed.table is None else mixed.codes()
    weights = mixed.weights if table is None or mixed.matrix is not None else table.weights
    weights = np.ones(mixed.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
    if mixed.n_rows < 2 or not weights.sum() > 0:
        raise InvalidArgument("mixed-pseudo-likelihood needs at least two rows")
    numbers, log_units = np.zeros((mixed.n_rows, 0)), 0.0
    if mixed.matrix is not None:
        measured = [n for n, kind in zip(mixed.names, mixed.kinds, strict=True) if kind == "continuous"]
        known = checked_moments(mixed.matrix, weights, measured)
        numbers, log_units = known.rows / known.deviations, float(np.log(known.deviations).sum())
    states = np.array([kind == "discrete" for kind in mixed.kinds])
    order = np.where(states, -1 - mixed.columns, mixed.columns)
    codes = np.zeros((0, mixed.n_rows), dtype=int) if table is None else table.codes
    for name, k in zip(mixed.names, order.tolist(), strict=True):
        if k < 0 and not np.ptp(codes[-1 - k][weights > 0]):
            raise InvalidArgument(f"the column {name!r} has the same state in all rows; leave it out")
    cards = mixed.cards[states].tolist()
    model = MixedField(numbers, codes, cards, weights / weights.sum(), order, vectors.node_of)
    return model, float(weights.sum()), log_units


def _some_rows(model: MixedField, times: Ints) -> MixedField:
    """Return the model of rows that are there some times; numbers have variance one among them, too."""
    here = np.flatnonzero(times)
    share, numbers = times[here] / times.sum(), model.numbers[here]
    numbers = numbers - share @ numbers
    deviations = np.sqrt(share @ numbers**2)
    numbers /= np.where(deviations > 0, deviations, 1.0)
    return MixedField(numbers, model.codes[:, here], model.cards, share, model.order, model.node_of)


def _ebic(model: MixedField, found: PairwiseFit, total: float, gamma: float) -> float:
    """Return the criterion of a graph, fitted again without a penalty; an edge is paid for by both its nodes."""
    there = model.strengths(found.point) > 0
    loss = fit_mixed(model, np.where(there, 0.0, np.inf).ravel(), found.point, 1e-4, 500).loss
    many = float(there.ravel()[model.pair[model.pair >= 0]].sum())
    pairs = float(np.triu(there, 1).sum())
    paid = 2 * many * float(np.log(total)) + 4 * gamma * pairs * float(np.log(model.n_nodes))
    return 2 * total * loss + paid
