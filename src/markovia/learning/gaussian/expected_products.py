"""Sums of products and counts of a mixed network's families, expected where cells are missing.

Rows that miss the same cells and agree in their states share one Gaussian for every configuration of the states they miss:
given it, missing numbers have a common covariance and means linear in what is seen.
Cost: for each pattern and configuration one factor of the covariance of the numbers; linear in the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array

LISTED = 4096
"""Configurations of missing states that are listed for a row."""


@dataclass(frozen=True)
class ProductRows:
    """Complete or incomplete rows: codes (-1 is missing) of states, numbers (NaN is missing), and weights."""

    codes: dict[str, Any]
    numbers: dict[str, Array]
    weights: Array


@dataclass(frozen=True)
class NumberFamily:
    """A node that is a number, and its parents of either kind."""

    variable: Variable
    discrete: tuple[Variable, ...]
    continuous: tuple[Variable, ...]


@dataclass
class ProductSums:
    """Counts of table families, sums of products of number families, and the log likelihood of what is seen."""

    counts: dict[str, Array]
    products: dict[str, Array]
    log_likelihood: float = 0.0


class Summing:
    """Adds rows up over the families of a network."""

    def __init__(
        self, tables: Mapping[str, tuple[Variable, ...]], numbers: Mapping[str, NumberFamily]
    ) -> None:
        self.tables, self.numbers = dict(tables), dict(numbers)
        self.names = list(numbers)
        self.place = {n: k + 1 for k, n in enumerate(self.names)}

    def empty(self) -> ProductSums:
        """Return sums of no rows."""
        return ProductSums(
            {n: np.zeros(tuple(len(v) for v in scope)) for n, scope in self.tables.items()},
            {
                n: np.zeros((*(len(v) for v in f.discrete), len(f.continuous) + 2, len(f.continuous) + 2))
                for n, f in self.numbers.items()
            },
        )

    def complete(self, rows: ProductRows) -> ProductSums:
        """Add up rows without gaps."""
        found = self.empty()
        for n, scope in self.tables.items():
            np.add.at(found.counts[n], tuple(rows.codes[v.name] for v in scope), rows.weights)
        for n, f in self.numbers.items():
            x = np.column_stack(
                [np.ones(len(rows.weights)), *(rows.numbers[q.name] for q in (*f.continuous, f.variable))]
            )
            shape = found.products[n].shape
            flat = np.zeros((prod(shape[:-2]), *shape[-2:]))
            at = (
                np.ravel_multi_index(tuple(rows.codes[v.name] for v in f.discrete), shape[:-2])
                if f.discrete
                else np.zeros(len(x), np.int64)
            )
            for d in np.unique(at):
                own = x[at == d]
                flat[d] = (own * rows.weights[at == d, None]).T @ own
            found.products[n] = flat.reshape(shape)
        return found

    def expected(self, rows: ProductRows, nodes: Mapping[str, Conditional]) -> ProductSums:
        """Add up rows with gaps, each completed as the present distributions say."""
        found = self.empty()
        order = _parents_first(nodes)
        states = {n: nodes[n].variable for n in nodes if n not in self.numbers}
        gaps = np.column_stack(
            [np.zeros((len(rows.weights), 0)), *(np.isnan(rows.numbers[n]) for n in self.names)]
        )
        key = np.column_stack([gaps, *(rows.codes[n] for n in states)])
        patterns, group = np.unique(key, axis=0, return_inverse=True)
        group = group.reshape(-1)
        moments: dict[tuple[int, ...], tuple[Array, Array]] = {}
        for k in range(len(patterns)):
            mine = np.flatnonzero(group == k)
            self._pattern(rows, mine, gaps[mine[0]].astype(bool), states, nodes, order, moments, found)
        return found

    def _pattern(
        self,
        rows: ProductRows,
        mine: Any,
        lost: Any,
        states: Mapping[str, Variable],
        nodes: Mapping[str, Conditional],
        order: Sequence[str],
        moments: dict[tuple[int, ...], tuple[Array, Array]],
        found: ProductSums,
    ) -> None:
        seen = {n: int(rows.codes[n][mine[0]]) for n in states}
        open_states = [n for n, c in seen.items() if c < 0]
        count = prod(len(states[n]) for n in open_states)
        if count > LISTED:
            raise TooLarge(
                f"a row misses {len(open_states)} states with {count:,} configurations together, over {LISTED:,}; "
                "use missing='drop'"
            )
        known, gone = np.flatnonzero(~lost), np.flatnonzero(lost)
        x = (
            np.column_stack([rows.numbers[self.names[j]][mine] for j in known])
            if len(known)
            else np.zeros((len(mine), 0))
        )
        cases = []
        for combination in product(*(range(len(states[n])) for n in open_states)):
            codes = {**seen, **dict(zip(open_states, combination, strict=True))}
            log_p = _log_states(codes, states, nodes)
            if log_p == -np.inf:
                continue
            at = tuple(codes.values())
            if at not in moments:
                moments[at] = self._moments(codes, nodes, order)
            mean, covariance = moments[at]
            root = np.linalg.cholesky(covariance[np.ix_(known, known)])
            z = np.linalg.solve(root, (x - mean[known]).T)
            logs = (
                log_p
                - 0.5 * (len(known) * np.log(2 * np.pi) + (z**2).sum(axis=0))
                - np.log(np.diag(root)).sum()
            )
            half = np.linalg.solve(root, covariance[np.ix_(known, gone)])
            spread = covariance[np.ix_(gone, gone)] - half.T @ half
            cases.append((codes, logs, mean[gone][:, None] + half.T @ z, spread))
        logs = np.array([c[1] for c in cases])
        top = logs.max(axis=0)
        share = np.exp(logs - top)
        mass = share.sum(axis=0)
        found.log_likelihood += float(rows.weights[mine] @ (top + np.log(mass)))
        for (codes, _, filled, spread), part in zip(cases, share / mass, strict=True):
            weights = part * rows.weights[mine]
            total = float(weights.sum())
            if total == 0.0:
                continue
            for n, scope in self.tables.items():
                found.counts[n][tuple(codes[v.name] for v in scope)] += total
            whole = np.empty((len(mine), len(self.names) + 1))
            whole[:, 0] = 1.0
            whole[:, known + 1], whole[:, gone + 1] = x, filled.T
            sums = (whole * weights[:, None]).T @ whole
            sums[np.ix_(gone + 1, gone + 1)] += total * spread
            for n, f in self.numbers.items():
                at_f = [0, *(self.place[q.name] for q in f.continuous), self.place[n]]
                found.products[n][tuple(codes[v.name] for v in f.discrete)] += sums[np.ix_(at_f, at_f)]

    def _moments(
        self, codes: Mapping[str, int], nodes: Mapping[str, Conditional], order: Sequence[str]
    ) -> tuple[Array, Array]:
        """Return mean and covariance of all numbers given all states."""
        n = len(self.names)
        mean, covariance = np.zeros(n), np.zeros((n, n))
        for name in order:
            node = nodes[name]
            if not isinstance(node, GaussianConditional):
                continue
            i = self.place[name] - 1
            at = tuple(codes[v.name] for v in node.discrete)
            parents = [self.place[q.name] - 1 for q in node.continuous]
            w = node.weights[at]
            mean[i] = node.bias[at] + w @ mean[parents]
            covariance[i, :] = covariance[:, i] = w @ covariance[parents]
            # a deterministic node keeps a little noise, so that rows which do not fit it still count
            covariance[i, i] = (float(node.variance[at]) or 1e-9) + w @ covariance[
                np.ix_(parents, parents)
            ] @ w
        return mean, covariance


def _log_states(
    codes: Mapping[str, int], states: Mapping[str, Variable], nodes: Mapping[str, Conditional]
) -> float:
    total = 0.0
    for n in states:
        cells = [np.array([codes[q]]) for q in nodes[n].parent_names]
        total += float(nodes[n].log_prob(np.array([codes[n]]), cells)[0])
    return total


def _parents_first(nodes: Mapping[str, Conditional]) -> list[str]:
    done: dict[str, None] = {}
    for root in nodes:
        stack = [root]
        while stack:
            waiting = [q for q in nodes[stack[-1]].parent_names if q not in done]
            if waiting:
                stack.extend(waiting)
            else:
                done[stack.pop()] = None
    return list(done)
