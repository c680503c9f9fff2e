"""Sums and maxima of products of tables over all variables but some, for many cases at once.

Variables are eliminated one by one, cheapest next (bucket elimination); the order is found once and used for any tables of
the same scopes. A table may have a case axis in front; the answer then has one too. Reference: Dechter (1999).
Cost: the cases times the largest product of tables on the way.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from markovia.runtime.array_types import Array, Ints

Key = Hashable
Scope = tuple[Key, ...]
Part = tuple[Array, list[int]]
"""A table and the numbers of its axes."""
CASES = 63
"""Stands for the axis of cases where axes are numbered."""


class SumStep(NamedTuple):
    """Multiply some tables and take one variable (None at the end) out of their product."""

    out: Key | None
    members: tuple[int, ...]
    product: Scope
    left: Scope


class TableElimination:
    """The elimination of all variables but some from a product of tables.

    Parameters
    ----------
    scopes
        The variables of each table, in the order of its axes.
    sizes
        The number of states of each variable.
    keep
        The variables of the answer, in the order of its axes; each is in some scope.

    Examples
    --------
    >>> line = TableElimination([("a",), ("a", "b")], {"a": 2, "b": 2}, ("b",))
    >>> tables = [np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])]
    >>> line.sums(tables).round(2).tolist(), line.maxima(tables).round(2).tolist()
    ([0.62, 0.38], [0.54, 0.32])
    """

    def __init__(self, scopes: Sequence[Scope], sizes: Mapping[Key, int], keep: Scope = ()) -> None:
        self.keep = keep
        self._scopes: list[Scope] = [tuple(s) for s in scopes]
        live = list(range(len(scopes)))
        self._steps: list[SumStep] = []
        waiting = {v for s in self._scopes for v in s} - set(keep)
        weight = {v: sizes[v] for s in (*self._scopes, keep) for v in s}
        self.largest = prod(weight[v] for v in keep)
        self.work = float(self.largest)
        while waiting:
            costs = {v: self._union(live, v) for v in waiting}
            out = min(waiting, key=lambda v: (prod(weight[u] for u in costs[v]), str(v)))
            members = tuple(i for i in live if out in self._scopes[i])
            left = tuple(v for v in costs[out] if v != out)
            self._note(SumStep(out, members, costs[out], left), weight)
            live = [i for i in live if i not in members] + [len(self._scopes) - 1]
            waiting.remove(out)
        self._note(SumStep(None, tuple(live), keep, keep), weight)

    def _union(self, live: Sequence[int], out: Key) -> Scope:
        return tuple(dict.fromkeys(v for i in live if out in self._scopes[i] for v in self._scopes[i]))

    def _note(self, step: SumStep, weight: Mapping[Key, int]) -> None:
        self._steps.append(step)
        self._scopes.append(step.left)
        size = prod(weight[v] for v in step.product)
        self.largest = max(self.largest, size)
        self.work += float(size) * len(step.members)

    @property
    def n_steps(self) -> int:
        """How many products are made."""
        return sum(max(1, len(s.members) - 1) for s in self._steps)

    def sums(self, tables: Sequence[Array]) -> Array:
        """Return the sums over everything but `keep`."""
        pool: list[Array | None] = list(tables)
        for step in self._steps:
            pool.append(self._summed(step, pool))
        found = pool[-1]
        assert found is not None
        return found

    def _summed(self, step: SumStep, pool: list[Array | None]) -> Array:
        number = self._number
        parts: list[Part] = []
        for i in step.members:
            table = pool[i]
            assert table is not None
            parts.append((table, self._axes(i, table)))
            pool[i] = None
        return _contracted(parts, [number[v] for v in step.left])[0]

    def marginals(self, tables: Sequence[Array], groups: Sequence[Scope]) -> tuple[Array, list[Array]]:
        """Return the sum over everything, and the sums over all but each of some groups, in one pass there and back.

        Nothing is kept, and each group's variables are together in some table (one of ones will do). Messages go from each
        product to the next, and back again, as in a junction tree. Cost: some three times that of `sums`.

        Examples
        --------
        >>> line = TableElimination([("a",), ("a", "b")], {"a": 2, "b": 2})
        >>> total, (a, b) = line.marginals([np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])], [("a",), ("b",)])
        >>> total.round(2).tolist(), a.round(2).tolist(), b.round(2).tolist()
        (1.0, [0.6, 0.4], [0.62, 0.38])
        """
        number, first = self._number, len(tables)
        pool: list[Part] = [(table, self._axes(i, table)) for i, table in enumerate(tables)]
        for step in self._steps:
            pool.append(_contracted([pool[i] for i in step.members], [number[v] for v in step.left]))
        wanted: dict[int, list[int]] = {}
        for j, group in enumerate(groups):
            where = next(k for k, step in enumerate(self._steps) if set(group) <= set(step.product))
            wanted.setdefault(where, []).append(j)
        found: list[Array] = [np.ones(())] * len(groups)
        back: dict[int, Part] = {}
        for k in range(len(self._steps) - 1, -1, -1):
            step = self._steps[k]
            beside = [back[first + k]] if first + k in back else []
            for i in step.members:
                if i >= first:
                    others = [*(pool[m] for m in step.members if m != i), *beside]
                    known = {n for _, axes in others for n in axes}
                    kept = [number[v] for v in self._scopes[i] if number[v] in known]
                    back[i] = _contracted(others, kept)
            for j in wanted.get(k, ()):
                whole = [*(pool[m] for m in step.members), *beside]
                found[j] = _contracted(whole, [number[v] for v in groups[j]])[0]
        return pool[-1][0], found

    @cached_property
    def _number(self) -> dict[Key, int]:
        return {v: i for i, v in enumerate(dict.fromkeys(v for s in self._scopes for v in s))}

    def _axes(self, i: int, table: Array) -> list[int]:
        own = [self._number[v] for v in self._scopes[i]]
        return [CASES, *own] if table.ndim > len(own) else own

    def maxima(self, tables: Sequence[Array]) -> Array:
        """Return the maxima over everything but `keep`."""
        pool = list(tables)
        for step in self._steps:
            both = self._product(step, pool)
            if step.out is None:
                pool.append(both)
            else:
                pool.append(both.max(axis=both.ndim - len(step.product) + step.product.index(step.out)))
        return pool[-1]

    def best(self, tables: Sequence[Array], cases: int) -> dict[Key, Ints]:
        """Return the states of all variables at the largest product of each case; nothing may be kept."""
        pool = list(tables)
        origins: list[tuple[SumStep, Ints]] = []
        for step in self._steps:
            both = self._product(step, pool)
            if step.out is None:
                break
            axis = both.ndim - len(step.product) + step.product.index(step.out)
            origins.append((step, both.argmax(axis=axis)))
            pool.append(both.max(axis=axis))
        found: dict[Key, Ints] = {}
        rows = np.arange(cases)
        for step, origin in reversed(origins):
            at = tuple(found[v] for v in step.left)
            by_case = origin.ndim > len(step.left)
            picked = origin[(rows, *at)] if by_case else origin[at]
            found[step.out] = np.broadcast_to(picked, (cases,)).astype(np.int64)
        return found

    def _product(self, step: SumStep, pool: Sequence[Array]) -> Array:
        """Return the product of a step's tables, with a case axis where one has it, and the axes of `step.product`."""
        place = {v: i for i, v in enumerate(step.product)}
        found: Array = np.ones((1,) * len(step.product))
        for i in step.members:
            table, scope = pool[i], self._scopes[i]
            lead = table.ndim - len(scope)
            order = sorted(range(len(scope)), key=lambda a: place[scope[a]])
            moved = table.transpose([*range(lead), *(lead + a for a in order)])
            shape = [1] * len(step.product)
            for a in range(len(scope)):
                shape[place[scope[a]]] = table.shape[lead + a]
            found = found * moved.reshape(*table.shape[:lead], *shape)
        return found


def _contracted(parts: Sequence[Part], left: list[int]) -> Part:
    """Return the sum of a product over all axes but some (and that of the cases), with its axes."""
    einsum: Any = np.einsum
    if not parts:
        return np.ones(()), []
    parts = sorted(parts, key=lambda p: p[0].size)
    while len(parts) > 2:  # a product of two at a time, small ones first
        (a, x), (b, y), *parts = parts
        both = list(dict.fromkeys([*x, *y]))
        both.sort(key=lambda n: n != CASES)
        parts.append((einsum(a, _few(x, both), b, _few(y, both), _few(both, both)), both))
    cases = [CASES] if any(CASES in axes for _, axes in parts) else []
    every = list(dict.fromkeys(n for _, axes in parts for n in axes))
    operands = [o for table, axes in parts for o in (table, _few(axes, every))]
    return einsum(*operands, _few([*cases, *left], every)), [*cases, *left]


def _few(axes: Sequence[int], every: Sequence[int]) -> list[int]:
    """Return axes numbered anew from 0, since few can be numbered at a time."""
    return [every.index(a) for a in axes]
