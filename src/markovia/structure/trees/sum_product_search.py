"""The structure of a sum-product network from rows: columns that are independent part, rows that differ are mixed.

Method: LearnSPN. Columns that no chain of dependent pairs connects become the parts of a product; where all hang together,
the rows are cut into clusters (k-means, then steps of EM of a mixture of independent columns) that become the terms of a
sum; then each part again, until one column or few rows are left. Reference: Gens and Domingos (2013). Cost: in each node the
tests of all pairs, and a mixture of its rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.tables.mixed_table import MixedTable
from markovia.graphs.kinds.linear_searches import components
from markovia.inference.circuits.circuit import Circuit, CircuitBuilder
from markovia.learning.components.families import k_means
from markovia.learning.latent.circuit_em import best_terms, learn_circuit
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import Query, bind_test

CLUSTER_STEPS = 20
"""Steps of EM that cut rows into clusters."""
FLOOR = 1e-4
"""The least variance of a number in a leaf, as a share of its variance in all rows."""


@dataclass
class SumProductSearch:
    """Grows a circuit on rows.

    Attributes
    ----------
    data, columns, weights
        The rows: as a table for tests, by variable as a circuit takes them, and how much each counts.
    test, alpha, min_rows, n_clusters, pseudo_count
        As in `SumProductNetwork`.
    """

    data: MixedTable
    columns: dict[int, Any]
    weights: Array
    test: str
    alpha: float
    min_rows: int
    n_clusters: int
    pseudo_count: float
    rng: np.random.Generator
    clock: Clock

    def __post_init__(self) -> None:
        self.states = [
            tuple(self.data.variable(v).states) if kind == "discrete" else None
            for v, kind in enumerate(self.data.kinds)
        ]
        self.every, self.builder = np.arange(len(self.weights)), CircuitBuilder(self.states)
        self.floors = np.ones(len(self.states))
        for v, states in enumerate(self.states):
            if states is None:
                mean, variance = self._moments(v, self.every)
                least = max(1e-12 * mean**2, np.finfo(float).tiny)
                self.floors[v] = FLOOR * variance if variance > 0.0 else least

    def circuit(self) -> Circuit:
        """Grow the whole circuit."""
        self._grow(self.every, list(range(len(self.states))), whole=False)
        return self.builder.build(self.data.names)

    def _grow(self, rows: Ints, columns: list[int], *, whole: bool) -> int:
        """Return the node of some rows and columns; `whole` says that the columns are known to hang together."""
        if len(columns) == 1 or len(rows) < self.min_rows or self.clock.over():
            return self._independent(self.builder, rows, columns)
        parts = [columns] if whole else self._parts(rows, columns)
        if len(parts) > 1:
            return self.builder.node([self._grow(rows, part, whole=True) for part in parts])
        clusters = self._clusters(rows, columns)
        if len(clusters) < 2:
            return self._independent(self.builder, rows, columns)
        below = [self._grow(own, columns, whole=False) for own in clusters]
        return self.builder.node(below, self._sizes(clusters))

    def _sizes(self, groups: list[Ints]) -> list[float]:
        """Return the shares of groups of rows."""
        sizes = np.array([self.weights[own].sum() for own in groups])
        return list(sizes / sizes.sum())

    def _parts(self, rows: Ints, columns: list[int]) -> list[list[int]]:
        """Return the columns in groups that no dependent pair connects; all together where gaps leave too few rows."""
        # what is the same in all rows says nothing of others, and tests refuse it
        varied = [v for v in columns if self._varies(v, rows)]
        whole = rows[np.all([self._there(v, rows) for v in varied], axis=0)] if varied else rows
        if len(whole) < self.min_rows:
            return [columns]
        varied = [v for v in varied if self._varies(v, whole)]
        near: list[list[int]] = [[] for _ in columns]
        if len(varied) > 1:
            names = [self.data.names[v] for v in varied]
            test = bind_test((self.test, self.alpha), self.data.rows(whole).only(names), names)
            pairs: list[Query] = [(i, j, ()) for i in range(len(varied)) for j in range(i + 1, len(varied))]
            for (i, j, _), p in zip(pairs, test.p_values(pairs).tolist(), strict=True):
                if not p > self.alpha:
                    a, b = columns.index(varied[i]), columns.index(varied[j])
                    near[a].append(b)
                    near[b].append(a)
        return [[columns[k] for k in group] for group in components(near)]

    def _there(self, v: int, rows: Ints) -> Flags:
        own = self.columns[v][rows]
        return np.asarray(own >= 0 if self.states[v] is not None else ~np.isnan(own))

    def _varies(self, v: int, rows: Ints) -> bool:
        own = self.columns[v][rows[self._there(v, rows)]]
        return len(own) > 0 and bool((own != own[0]).any())

    def _clusters(self, rows: Ints, columns: list[int]) -> list[Ints]:
        """Return the rows in clusters, at least one: those of a mixture of independent columns."""
        points = np.column_stack([self._points(v, rows) for v in columns])
        weights = self.weights[rows]
        if not points.any() or not weights.any():
            return [rows]
        k = min(self.n_clusters, len(rows))
        labels = k_means(points, k, self.rng, weights, steps=20).labels_
        groups = [rows[labels == g] for g in range(k) if weights[labels == g].sum() > 0.0]
        if len(groups) < 2:
            return groups
        flat = CircuitBuilder(self.states)
        flat.node([self._independent(flat, own, columns) for own in groups], self._sizes(groups))
        evidence = {v: self.columns[v][rows] for v in columns}
        learned = learn_circuit(
            flat.build(self.data.names), evidence, weights, pseudo_count=max(self.pseudo_count, 1e-3), floors=self.floors,
            max_iter=CLUSTER_STEPS, tol=1e-4,
        ).state  # fmt: skip
        best = best_terms(learned, evidence, len(rows))
        return [rows[best == g] for g in range(len(groups)) if weights[best == g].sum() > 0.0]

    def _points(self, v: int, rows: Ints) -> Array:
        """Return a column for k-means: numbers in their standard deviation, an indicator a state; zeros for gaps."""
        own, states = self.columns[v][rows], self.states[v]
        if states is not None:
            there = own >= 0
            found = np.eye(len(states))[own] * there[:, None]
            return np.asarray((found - found.sum(axis=0) / max(1, there.sum())) * there[:, None])
        mean, variance = self._moments(v, rows)
        return np.asarray(np.nan_to_num((own - mean) / np.sqrt(variance or 1.0))[:, None])

    def _independent(self, builder: CircuitBuilder, rows: Ints, columns: list[int]) -> int:
        """Return the product of the leaves of some columns."""
        return builder.node([self._leaf(builder, v, rows) for v in columns])

    def _leaf(self, builder: CircuitBuilder, v: int, rows: Ints) -> int:
        states = self.states[v]
        if states is None:
            mean, variance = self._moments(v, rows)
            return builder.leaf(v, None, mean, max(variance, float(self.floors[v])))
        own = self.columns[v][rows]
        there = own >= 0
        counts = np.bincount(own[there], self.weights[rows][there], len(states)) + self.pseudo_count
        counts = counts if counts.any() else np.ones(len(states))
        return builder.leaf(v, counts / counts.sum())

    def _moments(self, v: int, rows: Ints) -> tuple[float, float]:
        own = self.columns[v][rows]
        there = ~np.isnan(own)
        share = self.weights[rows][there]
        if share.sum() <= 0.0:  # nothing is known of it here: as in all rows
            return (0.0, 1.0) if len(rows) == len(self.weights) else self._moments(v, self.every)
        mean = float(share @ own[there] / share.sum())
        return mean, float(share @ (own[there] - mean) ** 2 / share.sum())
