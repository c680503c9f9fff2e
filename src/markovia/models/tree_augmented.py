"""Tree-augmented naive Bayes (TAN): naive Bayes whose features may each have one more parent among the features.

The best such tree maximises the likelihood: weigh every pair of features by its mutual information given the class, take
a maximum spanning tree, direct it away from a root, and make the class a parent of all.
Reference: Friedman, Geiger & Goldszmidt (1997). Cost: one pass of counting over all pairs of features, rows x pairs; the
tree (Prim) is quadratic in the features. Use it when naive Bayes is overconfident because features repeat each other.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.factor import Array
from markovia.factors.variable import State
from markovia.inference.engine import Engine
from markovia.learning.data import CodedTable
from markovia.models.bayesian_network import BayesianNetwork
from markovia.models.network_classifier import NetworkClassifier

CELLS_AT_ONCE = 1 << 24
"""Tables of pairs are counted in one pass unless together they have more cells."""


class TreeAugmentedNaiveBayes(NetworkClassifier):
    """Naive Bayes with a tree over the features, learned from data.

    Parameters
    ----------
    root
        The feature that has only the class as a parent: a name, a position, or None for the first. The root does not
        change the distribution that maximum likelihood learns.
    target, prior, engine, states, missing, unseen, impossible
        As in `BayesianNetworkClassifier`.

    Attributes
    ----------
    tree_
        The edges between features, parent first.
    conditional_mutual_information_
        For every pair of features, in nats, given the class.
    network_, classes_, target_, log_likelihood_
        As in `BayesianNetworkClassifier`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.BayesianNetwork("y->a; y->b; y->c; a->b; b->c", tables="random", seed=3).sample(3000, seed=4)
    >>> model = TreeAugmentedNaiveBayes().fit(rows[["a", "b", "c"]], rows["y"])
    >>> model.tree_
    [('a', 'b'), ('b', 'c')]
    >>> model.network_.parents("c")
    ['y', 'b']
    """

    def __init__(
        self,
        *,
        root: str | int | None = None,
        target: str | None = None,
        prior: Any = "bdeu",
        engine: str | Engine = "auto",
        states: Mapping[str, int | Sequence[State]] | None = None,
        missing: str = "error",
        unseen: str = "error",
        impossible: str = "error",
    ) -> None:
        self.root = root
        self.target = target
        self.prior = prior
        self.engine = engine
        self.states = states
        self.missing = missing
        self.unseen = unseen
        self.impossible = impossible

    def _learned(self, table: CodedTable, names: list[str], target: str) -> BayesianNetwork:
        network, tree, information = tree_augmented_structure(table, names, target, self.root)
        self.tree_ = tree
        self.conditional_mutual_information_ = information
        return network


def tree_augmented_structure(
    table: CodedTable, names: Sequence[str], target: str, root: str | int | None = None
) -> tuple[BayesianNetwork, list[tuple[str, str]], Array]:
    """Return the TAN structure for coded rows, the edges of its tree, and the matrix of weights."""
    if root is None:
        start = 0
    elif isinstance(root, str):
        if root not in names:
            raise UnknownVariable(root, names, "the features")
        start = list(names).index(root)
    elif isinstance(root, int | np.integer) and not isinstance(root, bool) and 0 <= root < len(names):
        start = int(root)
    else:
        raise InvalidArgument(
            f"root= is the name or position of one of the {len(names)} features, not {root!r}"
        )
    information = pairwise_conditional_information(table, names, target)
    parent = _maximum_spanning_tree(information, start)
    tree = [(names[p], names[k]) for k, p in enumerate(parent) if p >= 0]
    parents = {n: [target] if p < 0 else [target, names[p]] for n, p in zip(names, parent, strict=True)}
    return BayesianNetwork({target: [], **parents}), tree, information


def pairwise_conditional_information(table: CodedTable, names: Sequence[str], target: str) -> Array:
    """Return the mutual information of every pair of columns given the target, from counts, in nats.

    A row that misses a cell of a pair is left out of that pair.
    """
    result = np.zeros((len(names), len(names)))
    sizes = [len(table.variables[n]) for n in names]
    classes = len(table.variables[target])
    batch: list[tuple[int, int]] = []
    cells = 0
    for i, j in combinations(range(len(names)), 2):
        batch.append((i, j))
        cells += classes * sizes[i] * sizes[j]
        if cells >= CELLS_AT_ONCE:
            _fill(result, table, names, target, batch)
            batch, cells = [], 0
    _fill(result, table, names, target, batch)
    return result


def _fill(
    result: Array, table: CodedTable, names: Sequence[str], target: str, pairs: list[tuple[int, int]]
) -> None:
    if not pairs:
        return
    counts = table.counts([(target, names[i], names[j]) for i, j in pairs])
    for (i, j), n in zip(pairs, counts, strict=True):
        total = n.sum()
        if not total:
            continue
        expected = n.sum(axis=2, keepdims=True) * n.sum(axis=1, keepdims=True)
        some = n > 0
        ratio = (n * n.sum(axis=(1, 2), keepdims=True))[some] / expected[some]
        result[i, j] = result[j, i] = max(0.0, float((n[some] * np.log(ratio)).sum() / total))


def _maximum_spanning_tree(weights: Array, root: int) -> list[int]:
    """Return each node's parent in a maximum spanning tree directed away from the root, -1 for the root (Prim)."""
    n = len(weights)
    parent = np.full(n, root)
    parent[root] = -1
    best = weights[root].copy()
    best[root] = -np.inf
    for _ in range(n - 1):
        k = int(best.argmax())
        best[k] = -np.inf
        closer = (weights[k] > best) & ~np.isneginf(best)
        best[closer] = weights[k][closer]
        parent[closer] = k
    return [int(p) for p in parent]
