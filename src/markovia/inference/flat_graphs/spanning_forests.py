"""Distributions over spanning forests of a factor graph, and how often each factor occurs in them.

A forest is a set of factors whose factor graph has no loop. Tree-reweighted methods need forests with weights that sum to
one and together hold every factor; factor f then *appears* with probability rho_f. Here the forests are always listed, so
that rho is a valid point by construction and bounds can be checked forest by forest.

- *balanced*: forests one after the other by Kruskal's algorithm, each preferring the factors used least so far. Works for
  factors of any number of variables. Few forests make all rho_f nearly equal.
- *uniform*: all spanning trees of a graph of pairs alike. Then rho_e is the effective resistance of edge e (Kirchhoff's
  matrix-tree theorem); small graphs get exactly this, as a mixture of listed trees found by Wolfe's algorithm (nearest point
  of a polytope). Large graphs get trees drawn by Wilson's algorithm (1996) and their frequencies.
- *given*: a point of the spanning-tree polytope from the user, written as a mixture in the same way.

Cost: Kruskal and Wilson are about linear in the graph for each forest; the exact mixture solves a few hundred small
non-negative least-squares problems.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import kernel_seed

EXACT = 150
"""Factors up to which the uniform distribution over spanning trees is matched exactly."""
EFFORT = 400_000
MOST = 48
"""A graph gets so many forests that together they hold about EFFORT factors, but not more than MOST unless needed."""
CLOSE = 1e-9


@dataclass(frozen=True)
class SpanningForest:
    """One forest: its factors from the leaves to the roots, the edge of each towards the root, and the roots."""

    factors: Ints
    parents: Ints
    roots: Ints


@dataclass(frozen=True)
class Forests:
    """Forests, their weights (summing to one), and the appearance probability of every factor."""

    forests: tuple[SpanningForest, ...]
    weights: Array
    rho: Array

    @cached_property
    def flat(self) -> tuple[Any, ...]:
        """The forests one after the other: pointers, factors, parents, pointers to roots, roots, weights."""
        ends = np.cumsum([0, *(len(f.factors) for f in self.forests)])
        root_ends = np.cumsum([0, *(len(f.roots) for f in self.forests)])
        factors = np.concatenate([f.factors for f in self.forests])
        parents = np.concatenate([f.parents for f in self.forests])
        roots = np.concatenate([f.roots for f in self.forests])
        return ends, factors, parents, root_ends, roots, self.weights

    @staticmethod
    def of(graph: FlatGraph, masks: list[NDArray[np.int8]], weights: Array) -> "Forests":
        """Return the mixture of the marked factor sets; equal sets are joined."""
        joined: dict[bytes, tuple[NDArray[np.int8], float]] = {}
        for mask, weight in zip(masks, weights.tolist(), strict=True):
            if weight > 0:
                key = mask.tobytes()
                joined[key] = (mask, joined.get(key, (mask, 0.0))[1] + weight)
        share = np.array([w for _, w in joined.values()])
        share = share / share.sum()
        rho = np.zeros(graph.n_factors)
        for (mask, _), weight in zip(joined.values(), share.tolist(), strict=True):
            rho[mask > 0] += weight
        return Forests(
            tuple(oriented(graph, mask) for mask, _ in joined.values()), share, np.minimum(rho, 1.0)
        )

    def mixed(self, graph: FlatGraph, mask: NDArray[np.int8], step: float) -> "Forests":
        """Return the mixture with one more forest of weight `step`."""
        masks = [_mask(graph, forest) for forest in self.forests]
        return Forests.of(graph, [*masks, mask], np.append(self.weights * (1.0 - step), step))


def whole(graph: FlatGraph) -> Forests:
    """Return the one forest of all factors, for a graph without loops."""
    return Forests.of(graph, [np.ones(graph.n_factors, dtype=np.int8)], np.ones(1))


def balanced(graph: FlatGraph, rng: np.random.Generator) -> Forests:
    """Return forests that use all factors about equally often."""
    used = np.zeros(graph.n_factors)
    masks: list[NDArray[np.int8]] = []
    wanted = 1
    while len(masks) < wanted or used.min() == 0:
        order = np.lexsort((rng.random(graph.n_factors), used))
        masks.append(greedy(graph, order))
        used += masks[-1]
        if len(masks) == 1:
            rounds = int(np.ceil(graph.n_factors / max(1.0, used.sum())))
            wanted = max(2 * rounds, min(MOST, EFFORT // graph.n_factors))
    return Forests.of(graph, masks, np.full(len(masks), 1.0 / len(masks)))


def uniform(graph: FlatGraph, rng: np.random.Generator) -> Forests:
    """Return spanning trees whose edges appear as in a uniformly random spanning tree.

    Raises
    ------
    InvalidArgument
        If a factor has more than two variables.
    """
    if graph.arity.max(initial=2) > 2:
        raise InvalidArgument("rho='uniform' is for models of pairs; use rho='balanced'")
    if graph.n_factors <= EXACT:
        return decomposed(graph, spanning_tree_probabilities(graph), rng)
    from markovia.kernels.flat_graphs.spanning_forests import random_walk_forest

    n, state = len(graph.cards), kernel_seed(rng)
    used = np.zeros(graph.n_factors)
    masks: list[NDArray[np.int8]] = []
    for _ in range(max(4, min(MOST, EFFORT // graph.n_factors))):
        mask = np.zeros(graph.n_factors, dtype=np.int8)
        marks, room = np.zeros((2, n), dtype=np.int8), np.empty((2, n), dtype=np.int64)
        random_walk_forest(graph.arrays, state, *marks, *room, mask)
        masks.append(mask)
        used += mask
    while used.min() == 0:  # an edge that no draw has: one more tree that prefers such edges
        masks.append(greedy(graph, np.lexsort((rng.random(graph.n_factors), used))))
        used += masks[-1]
    return Forests.of(graph, masks, np.full(len(masks), 1.0 / len(masks)))


def spanning_tree_probabilities(graph: FlatGraph) -> Array:
    """Return for each pair the probability that a uniformly random spanning tree holds it.

    By the matrix-tree theorem this is the effective resistance between its ends when every pair has resistance one.
    """
    n = len(graph.cards)
    ends = graph.scope.reshape(-1, 2)
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (ends[:, 0], ends[:, 0]), 1.0)
    np.add.at(laplacian, (ends[:, 1], ends[:, 1]), 1.0)
    np.add.at(laplacian, (ends[:, 0], ends[:, 1]), -1.0)
    np.add.at(laplacian, (ends[:, 1], ends[:, 0]), -1.0)
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    a, b = ends[:, 0], ends[:, 1]
    found = inverse[a, a] + inverse[b, b] - 2.0 * inverse[a, b]
    return np.asarray(np.clip(found, 0.0, 1.0))


def decomposed(graph: FlatGraph, rho: Array, rng: np.random.Generator) -> Forests:
    """Write appearance probabilities as a mixture of listed forests.

    Raises
    ------
    InvalidArgument
        If they are no mixture of spanning forests (as far as greedy forests can tell for factors of three or more).
    """
    from scipy.optimize import nnls

    if rho.shape != (graph.n_factors,) or not np.all((rho > 0) & (rho <= 1 + CLOSE)):
        raise InvalidArgument("appearance probabilities are above 0 and at most 1, one for each factor")
    masks = [greedy(graph, np.argsort(-rho - 1e-6 * rng.random(len(rho)), kind="stable"))]
    known = {masks[0].tobytes()}
    for _ in range(4 * graph.n_factors + 20):
        columns = np.array([m.astype(np.float64) for m in masks]).T
        extended = np.vstack([columns, np.ones(len(masks))])  # the weights sum to one
        weights, distance = nnls(extended, np.append(rho, 1.0))
        rest = rho - columns @ weights
        if distance <= CLOSE:
            return Forests.of(graph, masks, weights)
        keep = [k for k, w in enumerate(weights) if w > 0]
        masks = [masks[k] for k in keep]
        mask = greedy(graph, np.argsort(-rest, kind="stable"))
        known = {m.tobytes() for m in masks}
        if mask.tobytes() in known or distance > 1e6:
            break
        masks.append(mask)
    raise InvalidArgument(
        "rho= is no mixture of spanning forests of the factor graph: on every part of the graph the probabilities of the "
        "pairs inside it sum to at most the number of its variables less one, and over all to exactly that"
    )


def greedy(graph: FlatGraph, order: NDArray[np.integer]) -> NDArray[np.int8]:
    """Mark the factors that close no loop when added in the given order."""
    from markovia.kernels.flat_graphs.spanning_forests import greedy_forest

    mask = np.zeros(graph.n_factors, dtype=np.int8)
    greedy_forest(graph.arrays, order.astype(np.int64), np.arange(len(graph.cards)), mask)
    return mask


def oriented(graph: FlatGraph, mask: NDArray[np.int8]) -> SpanningForest:
    """Return a marked factor set ordered from the leaves to the roots."""
    from markovia.kernels.flat_graphs.spanning_forests import orient

    factors, parents = np.empty((2, graph.n_factors), dtype=np.int64)
    queue, roots = np.empty((2, len(graph.cards)), dtype=np.int64)
    seen = np.zeros(len(graph.cards), dtype=np.int8)
    n_factors, n_roots = orient(graph.arrays, mask.copy(), seen, queue, factors, parents, roots)
    return SpanningForest(factors[:n_factors].copy(), parents[:n_factors].copy(), roots[:n_roots].copy())


def _mask(graph: FlatGraph, forest: SpanningForest) -> NDArray[np.int8]:
    mask = np.zeros(graph.n_factors, dtype=np.int8)
    mask[forest.factors] = 1
    return mask
