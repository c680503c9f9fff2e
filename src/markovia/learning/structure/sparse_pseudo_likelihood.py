"""Sparse pairwise Markov networks for any number of states: pseudo-likelihood with an L1 or group-L1 penalty.

Method: a pairwise log-linear model has a table for every column and for every pair; all are fitted at once by
pseudo-likelihood (Besag 1975), each pair's table with one symmetric set of parameters. Group L1 penalises the Euclidean norm
of a pair's table and so leaves whole edges out (Schmidt 2010, chapter 6; Lee, Ganapathi and Koller 2006); L1 zeroes single
entries, and an edge is absent where all are zero. Minimised by proximal gradients with spectral steps.
The penalty is a number; or by `choose`: "ebic" over a path (each graph fitted again, nearly without a penalty), or
"stability" (StARS).
Cost: a step multiplies distinct rows by (sum of states) squared; a path takes hundreds of steps. Up to a few hundred states
in all.
Use it for columns with more than two states, or where one symmetric model is wanted; for two states and many columns `ising`
is faster.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.learning.data import CodedTable
from markovia.learning.penalties import Penalty
from markovia.learning.proximal_gradient import Minimum, minimise_composite
from markovia.learning.structure.ising_neighbourhood import repeated_rows
from markovia.learning.structure.knowledge import Flags, Rules
from markovia.learning.structure.lasso_path import penalty_path
from markovia.learning.structure.penalty_choice import need_penalty, stars
from markovia.learning.structure.result import Found
from markovia.learning.structure.task import Task
from markovia.learning.structure.undirected_edges import undirected_graph, within_rules

MAX_STEPS = 3000
PATIENCE = 5
"""How many penalties in a row may be worse than the best before no more are looked at."""


class PairwiseField:
    """The mean negative log pseudo-likelihood of a pairwise model over rows, and its gradient.

    Parameters
    ----------
    codes
        One row a column of data.
    cards
        The number of states of each.
    shares
        One number a data row; they sum to one.
    pairs
        The pairs that have a table.
    """

    def __init__(
        self,
        codes: NDArray[np.int64],
        cards: NDArray[np.int64],
        shares: Array,
        pairs: list[tuple[int, int]],
    ) -> None:
        self.cards, self.pairs, self.shares = cards, pairs, shares
        self.starts = np.concatenate([[0], np.cumsum(cards)])
        size = int(self.starts[-1])
        self.hot = np.zeros((codes.shape[1], size))
        for i in range(len(cards)):
            self.hot[np.arange(codes.shape[1]), self.starts[i] + codes[i]] = 1.0
        self.n_single = size
        own = np.repeat(np.arange(len(cards)), cards)
        number = np.full((len(cards), len(cards)), -1, dtype=np.int64)
        for k, (i, j) in enumerate(pairs):
            number[i, j] = k
        block = number[own[:, None], own[None, :]]
        self.rows, self.columns = np.nonzero(block >= 0)  # ordered by entry; the group says which pair
        self.group = np.concatenate([np.full(size, -1), block[self.rows, self.columns]])
        self.n_weights = len(self.group)

    def __call__(self, weights: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        size = self.n_single
        couplings = np.zeros((size, size))
        couplings[self.rows, self.columns] = weights[size:]
        couplings += couplings.T
        scores = self.hot @ couplings + weights[:size]
        for i in range(len(self.cards)):
            part = scores[:, self.starts[i] : self.starts[i + 1]]
            part -= part.max(axis=1, keepdims=True)
        value = -float(self.shares @ (scores * self.hot).sum(axis=1))
        np.exp(scores, out=scores)
        for i in range(len(self.cards)):
            part = scores[:, self.starts[i] : self.starts[i + 1]]
            mass = part.sum(axis=1, keepdims=True)
            value += float(self.shares @ np.log(mass[:, 0]))
            part /= mass
        scores -= self.hot
        scores *= self.shares[:, None]
        outer = self.hot.T @ scores
        outer += outer.T
        return value, np.concatenate([scores.sum(axis=0), outer[self.rows, self.columns]])

    def norms(self, weights: Array) -> Array:
        """Return the Euclidean norm of each pair's table, its mean over each axis taken out (those move to the columns)."""
        return np.array([float(np.linalg.norm(_centred(t))) for t in self.tables(weights)])

    def tables(self, weights: Array) -> list[Array]:
        """Return the log table of each pair."""
        size = self.n_single
        couplings = np.zeros((size, size))
        couplings[self.rows, self.columns] = weights[size:]
        s = self.starts
        return [couplings[s[i] : s[i + 1], s[j] : s[j + 1]].copy() for i, j in self.pairs]


@dataclass(frozen=True)
class _Settings:
    group: bool
    tolerance: float


def l1_pseudo_likelihood(
    task: Task,
    *,
    alpha: float | None = None,
    choose: str | None = None,
    penalty: str = "group",
    gamma: float = 0.25,
    n_alphas: int = 20,
    smallest: float = 0.03,
    subsamples: int = 20,
    beta: float = 0.1,
    tolerance: float = 1e-6,
) -> Found:
    """Learn a sparse pairwise Markov network.

    Parameters
    ----------
    task
        Discrete data.
    alpha
        The penalty, on the mean loss of a row. Instead of it `choose`.
    choose
        "ebic" (default) or "stability".
    penalty
        "group": the norm of each pair's table; "l1": its single entries.
    gamma
        For "ebic": the weight of the number of possible edges (0 is BIC).
    n_alphas, smallest
        How many penalties are tried, and the last as a share of the first, which leaves no edge.
    subsamples, beta
        For "stability".
    tolerance
        The largest violation of the optimality conditions.

    Returns
    -------
    Found
        `weights` are the norms of the edges' tables. Details: "edge_tables" and "node_tables" (logarithms of potentials, by
        name), "alpha", "kkt", "pseudo_log_likelihood".

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
    if penalty not in ("group", "l1"):
        raise InvalidArgument(f"penalty= is 'group' or 'l1', not {penalty!r}")
    if alpha is not None and choose is not None:
        raise InvalidArgument("give alpha= or choose=, not both")
    if choose not in (None, "ebic", "stability"):
        raise InvalidArgument(f"choose= is 'ebic' or 'stability', not {choose!r}")
    table, settings = _rows(task), _Settings(penalty == "group", tolerance)
    names, rules, n = task.names, task.rules, len(task.names)
    cards = task.study.cards
    cells, counts = table.distinct(names)
    codes, shares = np.ascontiguousarray(cells.T), counts / counts.sum()
    pairs = [(i, j) for i, j in combinations(range(n), 2) if rules.pairs[i, j]]
    field = PairwiseField(codes, cards, shares, pairs)
    details: dict[str, object] = {"choose": "fixed" if alpha is not None else choose or "ebic"}
    notes: list[str] = []
    begin, top = _without_edges(field, rules, settings)
    if alpha is not None:
        need_penalty(alpha, "alpha")
        levels = np.array([alpha])
        if alpha < top / 4:  # a path to it is quicker than a cold start
            levels = np.append(np.geomspace(top, max(alpha, top * 1e-3), 8), alpha)
    else:
        levels = penalty_path(top, n_alphas, smallest)
    if choose == "stability":
        chosen = _stability(task, codes, counts, pairs, levels, settings, subsamples, beta, details)
        levels = levels[: chosen + 1]
    fits = _path(field, rules, begin, levels, settings, task)
    if len(fits) < len(levels):
        notes.append(f"stopped after {len(fits)} of {len(levels)} penalties")
    if alpha is None and choose != "stability":
        free = np.array([(cards[i] - 1) * (cards[j] - 1) for i, j in pairs])
        costs: list[float] = []
        for fit, level in zip(fits, levels, strict=False):
            if len(costs) - 1 - int(np.argmin(costs or [0])) >= PATIENCE:
                break
            there = field.norms(fit.point) > 0
            loss = 2 * table.total * _refitted(field, fit.point, there, float(level), settings)
            many = 4 * gamma * there.sum() * np.log(n)
            costs.append(loss + float(free[there].sum()) * np.log(table.total) + many)
        best = int(np.argmin(costs))
        details |= {"alphas": levels[: len(costs)], "criterion": np.array(costs)}
    else:
        best = len(fits) - 1
    fit = fits[best]
    norms, tables = field.norms(fit.point), field.tables(fit.point)
    strength = np.zeros((n, n))
    for k, (i, j) in enumerate(pairs):
        strength[i, j] = strength[j, i] = norms[k]
    keep = within_rules(strength > 0, strength, rules)
    s = field.starts
    details |= {
        "alpha": float(levels[best]),
        "kkt": fit.error,
        "pseudo_log_likelihood": -table.total * field(fit.point)[0],
        "node_tables": {name: fit.point[s[i] : s[i + 1]].copy() for i, name in enumerate(names)},
        "edge_tables": {(names[i], names[j]): tables[k] for k, (i, j) in enumerate(pairs) if keep[i, j]},
    }
    return Found(
        undirected_graph(names, keep), weights=np.where(keep, strength, 0.0), notes=notes, details=details
    )


def _rows(task: Task) -> CodedTable:
    study = task.study
    if not study.discrete:
        first = next(n for n, kind in zip(study.names, study.kinds, strict=True) if kind != "discrete")
        raise InvalidArgument(
            f"l1-pseudo-likelihood needs discrete columns, and {first!r} has measurements; discretise it first"
        )
    if len(task.names) < 2:
        raise InvalidArgument("l1-pseudo-likelihood needs at least two columns")
    table = study.codes()
    if not table.total > 0:
        raise InvalidArgument("l1-pseudo-likelihood needs rows")
    return table


def _penalty(field: PairwiseField, rules: Rules, alpha: float, settings: _Settings) -> Penalty:
    """Return the penalties of all weights: columns have none, nor have pairs that are required."""
    pair = np.array([0.0 if rules.required_pairs[i, j] else alpha for i, j in field.pairs])
    single = np.zeros(field.n_weights)
    none = np.zeros(field.n_weights)
    if settings.group:
        return Penalty(none, single, field.group, pair)
    inside = field.group >= 0
    single[inside] = pair[field.group[inside]]
    return Penalty(none, single, field.group, np.zeros(len(pair)))


def _fit(field: PairwiseField, penalty: Penalty, start: Array, settings: _Settings, loose: bool) -> Minimum:
    return minimise_composite(
        field, penalty.rough, penalty.shrunk, start, MAX_STEPS, 1e-4 if loose else settings.tolerance
    )


def _without_edges(field: PairwiseField, rules: Rules, settings: _Settings) -> tuple[Array, float]:
    """Return the fit without edges but the required ones, and the least penalty that leaves it optimal."""
    huge = _fit(field, _penalty(field, rules, 1e9, settings), np.zeros(field.n_weights), settings, False)
    _, gradient = field(huge.point)
    free = np.array([not rules.required_pairs[i, j] for i, j in field.pairs], dtype=bool)
    inside = field.group >= 0
    group, slope = field.group[inside], gradient[inside]
    if settings.group:
        size = np.sqrt(np.bincount(group, slope**2, minlength=len(field.pairs)))
    else:
        size = np.zeros(len(field.pairs))
        np.maximum.at(size, group, np.abs(slope))
    return huge.point, float(size[free].max(initial=0.0))


def _path(
    field: PairwiseField, rules: Rules, start: Array, levels: Array, settings: _Settings, task: Task | None
) -> list[Minimum]:
    found: list[Minimum] = []
    for alpha in levels:
        if found and task is not None and task.watch.over():
            break
        fit = _fit(field, _penalty(field, rules, float(alpha), settings), start, settings, task is None)
        found.append(fit)
        start = fit.point
        if task is not None:
            task.watch.advance(note=f"alpha {alpha:.3g}")
    return found


def _refitted(field: PairwiseField, start: Array, there: Flags, alpha: float, settings: _Settings) -> float:
    """Return the mean loss of a graph, fitted again with a hundredth of the penalty (without any it may be unbounded)."""
    pair = np.where(there, alpha / 100, 1e9)
    none = np.zeros(field.n_weights)
    found = _fit(field, Penalty(none, none, field.group, pair), start, settings, True)
    return field(found.point)[0]


def _stability(
    task: Task,
    codes: NDArray[np.int64],
    counts: Array,
    pairs: list[tuple[int, int]],
    levels: Array,
    settings: _Settings,
    subsamples: int,
    beta: float,
    details: dict[str, object],
) -> int:
    rows = repeated_rows(counts)
    n = len(task.names)

    def graphs(chosen: NDArray[np.int64]) -> Flags:
        own = np.bincount(rows[chosen], minlength=len(counts))
        here = np.flatnonzero(own)
        share = own[here] / len(chosen)
        part = PairwiseField(codes[:, here], task.study.cards, share, pairs)
        near = np.zeros((len(levels), n, n), dtype=bool)
        start = np.zeros(part.n_weights)
        for k, fit in enumerate(_path(part, task.rules, start, levels, settings, None)):
            for (i, j), norm in zip(pairs, part.norms(fit.point), strict=True):
                near[k, i, j] = near[k, j, i] = norm > 0
        return near

    steady = stars(graphs, len(rows), len(levels), n, task.rng, task.watch, subsamples=subsamples, beta=beta)
    details |= {
        "alphas": levels, "instability": steady.instability, "shares": steady.shares[steady.chosen],
        "subsamples": steady.n_subsamples,
    }  # fmt: skip
    return steady.chosen


def _centred(table: Array) -> Array:
    if not table.any():
        return table
    return np.asarray(
        table - table.mean(axis=0, keepdims=True) - table.mean(axis=1, keepdims=True) + table.mean()
    )
