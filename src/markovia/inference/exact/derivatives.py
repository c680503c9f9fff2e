"""All partial derivatives of the mass of a problem, by one sweep back through bucket elimination.

Method: the mass is a polynomial in the table entries, linear in each. Eliminating variables evaluates it; going back
through the buckets differentiates it: the adjoint of a table is the adjoint of the message its bucket sent, times the
other tables of the bucket, summed onto the table's axes. Products of "the others" come from a running prefix and
suffix, so nothing is divided and zeros are as good as other numbers. Every product is rescaled, and what leaves the
range of doubles all the same is computed again with logarithms.
References: Darwiche (2003), "A differential approach to inference in Bayesian networks"; Baur and Strassen (1983).
Cost: about four times that of one elimination in time; in memory the tables and all messages, and for each bucket in
turn a few tables of its size.
Use it for sensitivity analysis, or wherever the gradient of a log partition function with zeros is needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.graphs.triangulation.elimination import greedy_order
from markovia.inference.exact.arithmetic import Scoped, TableArithmetic, in_range
from markovia.inference.problem import Part, Problem
from markovia.runtime.array_types import Array
from markovia.runtime.memory_budget import default_budget, readable


@dataclass(frozen=True)
class MassGradient:
    """The mass of a problem and its derivatives, as logarithms (both are never negative).

    Attributes
    ----------
    log_mass
        log of the total weight that agrees with the findings.
    log_slopes
        By position of the piece in the problem: log of the derivative of the mass with respect to each entry of what
        is left of the piece under the hard findings. Entries that contradict these have derivative zero; so have
        pieces that are not in the mapping (conditionals below the targets and the evidence, which sum to one).
    width
        The width of the elimination order.
    """

    log_mass: float
    log_slopes: dict[int, Array]
    width: int


def mass_gradient(
    problem: Problem, targets: Iterable[str] | None = None, *, max_bytes: int | None = None
) -> MassGradient:
    """Differentiate the mass of a problem with respect to every table entry.

    Parameters
    ----------
    problem
        Variables, pieces and findings.
    targets
        Variables that count as asked for: conditionals below them and the findings are left out. None keeps all.
    max_bytes
        The memory budget; 80% of the free memory by default.

    Raises
    ------
    TooLarge
        Before anything is allocated.

    Examples
    --------
    >>> import markovia as mk
    >>> mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a"], [1, 2]), mk.Factor(["a", "b"], [[3, 0], [4, 5]])])
    >>> found = mass_gradient(mn._problem(None))
    >>> np.exp(found.log_slopes[0]).round(6).tolist()  # the mass is 1 (3 + 0) + 2 (4 + 5)
    [3.0, 9.0]
    >>> np.exp(found.log_slopes[1]).round(6).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    positions = _positions(problem, targets)
    parts = problem.parts(targets)
    net = _Net.of(parts)
    net.check_budget(default_budget() if max_bytes is None else max_bytes)
    tables = [part.build().values for part in parts]
    log_mass, logs = in_range(lambda arithmetic: _differentiate(net, tables, arithmetic))
    return MassGradient(log_mass, {i: logs[k] for k, i in enumerate(positions)}, net.width)


def _positions(problem: Problem, targets: Iterable[str] | None) -> list[int]:
    """Return where the relevant pieces stand among all; they come in the same order."""
    relevant = problem.relevant(targets)
    found: list[int] = []
    for i, piece in enumerate(problem.pieces):
        if len(found) < len(relevant) and piece is relevant[len(found)]:
            found.append(i)
    return found


@dataclass(frozen=True)
class _Net:
    """Scopes and an elimination order on integer ids, with the sizes they lead to."""

    cards: list[int]
    scopes: list[tuple[int, ...]]
    order: list[int]
    width: int
    entries: float

    @classmethod
    def of(cls, parts: Sequence[Part]) -> "_Net":
        ids: dict[str, int] = {}
        cards: list[int] = []
        scopes = []
        for part in parts:
            for v in part.variables:
                if v.name not in ids:
                    ids[v.name] = len(cards)
                    cards.append(len(v))
            scopes.append(tuple(ids[v.name] for v in part.variables))
        around: list[set[int]] = [set() for _ in cards]
        for scope in scopes:
            for i in scope:
                around[i].update(scope)
        for i, near in enumerate(around):
            near.discard(i)
        order = greedy_order(around, "min-fill", cards)
        return cls(cards, scopes, order, *_sizes(cards, scopes, order))

    def check_budget(self, budget: float) -> None:
        need = 8.0 * self.entries
        if need > budget or self.width > 62:
            raise TooLarge(
                f"the derivatives need {readable(need)} (width {self.width}); the budget is {readable(budget)}. "
                "Add evidence, ask a smaller model, or raise max_bytes=",
                bytes=need,
            )


def _sizes(cards: list[int], scopes: Sequence[tuple[int, ...]], order: list[int]) -> tuple[int, float]:
    """Return the width of an order, and how many entries are alive at once: all inputs, and one bucket's products."""

    def size(axes: Iterable[int]) -> float:
        return prod((float(cards[i]) for i in axes), start=1.0)

    position = {v: k for k, v in enumerate(order)}
    waiting: list[list[set[int]]] = [[] for _ in order]
    for scope in scopes:
        if scope:
            waiting[min(position[i] for i in scope)].append(set(scope))
    width, kept, largest = 0, sum(map(size, scopes)), 0.0
    for k, v in enumerate(order):
        inputs = sorted(waiting[k], key=size)
        joined: set[int] = {v}
        products = 0.0
        for axes in inputs:
            joined = joined | axes
            products += size(joined)
        message = joined - {v}
        width, kept = max(width, len(message)), kept + size(message)
        largest = max(largest, products + 3 * size(joined))
        if message:
            waiting[min(position[i] for i in message)].append(message)
    return width, 2 * kept + largest


class _Input(NamedTuple):
    """A table in a bucket: `exp(log_scale) * table`. It is a part (`source >= 0`) or a message (`~bucket`)."""

    scope: tuple[int, ...]
    table: Array
    log_scale: float
    source: int


class _ScaledTable(NamedTuple):
    scope: tuple[int, ...]
    table: Array
    log_scale: float


def _differentiate(
    net: _Net, tables: Sequence[Array], arithmetic: TableArithmetic
) -> tuple[float, list[Array]]:
    """Return the log mass and, for each part, the log of the derivative with respect to its entries."""
    buckets, roots = _forward(net, tables, arithmetic)
    log_values = [root.log_scale + arithmetic.log(root.table) for root in roots]
    nothing = [k for k, value in enumerate(log_values) if value == -np.inf]
    finite = float(sum(value for value in log_values if value > -np.inf))
    log_mass = finite if not nothing else -np.inf
    adjoints: list[_ScaledTable | None] = [None] * len(net.order)
    logs: list[Array] = [np.full(table.shape, -np.inf) for table in tables]
    one = arithmetic.of(np.ones(()))
    for k, root in enumerate(roots):
        if nothing and nothing != [k]:
            continue  # another factor of the mass is zero, and stays so
        others = finite - (log_values[k] if not nothing else 0.0)
        if root.source >= 0:
            logs[root.source] = np.array(others)
        else:
            adjoints[~root.source] = _ScaledTable((), one, others)
    for k in range(len(net.order) - 1, -1, -1):
        adjoint = adjoints[k]
        if adjoint is None:
            continue
        for source, found in _through(buckets[k], adjoint, net, arithmetic):
            if source >= 0:
                logs[source] = arithmetic.logs(found.table) + found.log_scale
            else:
                adjoints[~source] = found
        buckets[k] = []
    return log_mass, logs


def _forward(
    net: _Net, tables: Sequence[Array], arithmetic: TableArithmetic
) -> tuple[list[list[_Input]], list[_Input]]:
    """Eliminate all variables; return what each bucket held, and the numbers whose product is the mass."""
    position = {v: k for k, v in enumerate(net.order)}
    buckets: list[list[_Input]] = [[] for _ in net.order]
    roots: list[_Input] = []

    def place(item: _Input) -> None:
        (buckets[min(position[i] for i in item.scope)] if item.scope else roots).append(item)

    for k, (scope, values) in enumerate(zip(net.scopes, tables, strict=True)):
        top = float(values.max()) or 1.0
        if 1e-50 < top < 1e50:
            place(_Input(scope, arithmetic.of(values), 0.0, k))
        else:
            place(_Input(scope, arithmetic.of(values / top), float(np.log(top)), k))
    for k, v in enumerate(net.order):
        inside = {i for item in buckets[k] for i in item.scope} - {v}
        scope = tuple(sorted(inside))
        product = _times(buckets[k], (v, *scope), net, arithmetic)
        place(_Input(scope, arithmetic.sum_onto(product.table, (0,)), product.log_scale, ~k))
    return buckets, roots


def _through(
    bucket: Sequence[_Input], adjoint: _ScaledTable, net: _Net, arithmetic: TableArithmetic
) -> list[tuple[int, _ScaledTable]]:
    """Return the adjoint of every table in a bucket, given that of the message it sent."""
    inputs = sorted(bucket, key=lambda item: item.table.size)
    before: list[_ScaledTable | None] = [None]
    for item in inputs[:-1]:
        before.append(_joined([before[-1], item], net, arithmetic))
    found = []
    after: _ScaledTable | None = adjoint
    for item, prefix in zip(reversed(inputs), reversed(before), strict=True):
        factors = [f for f in (prefix, after) if f is not None]
        outside = sorted({i for f in factors for i in f.scope} - set(item.scope))
        product = _times(factors, (*outside, *item.scope), net, arithmetic)
        summed = arithmetic.sum_onto(product.table, tuple(range(len(outside))))
        found.append((item.source, _ScaledTable(item.scope, summed, product.log_scale)))
        after = _joined([after, item], net, arithmetic)
    return found


def _joined(
    factors: Sequence[_Input | _ScaledTable | None], net: _Net, arithmetic: TableArithmetic
) -> _ScaledTable:
    present = [f for f in factors if f is not None]
    return _times(present, tuple(sorted({i for f in present for i in f.scope})), net, arithmetic)


def _times(
    factors: Sequence[_Input | _ScaledTable], axes: tuple[int, ...], net: _Net, arithmetic: TableArithmetic
) -> _ScaledTable:
    """Multiply onto the axes; a product that is zero everywhere keeps its place with scale one."""
    scoped: list[Scoped] = [(f.scope, f.table) for f in factors]
    table, log_top = arithmetic.multiply(scoped, axes, net.cards)
    scale = 0.0 if log_top == -np.inf else log_top + sum(f.log_scale for f in factors)
    return _ScaledTable(axes, table, scale)
