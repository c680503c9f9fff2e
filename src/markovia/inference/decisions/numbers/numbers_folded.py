"""Utilities of numbers as tables over states: what is expected of the numbers, for all states that they depend on.

Decisions that see states alone cannot tell the numbers, so a utility may be replaced by its mean given the states that its
numbers depend on.

Method: linear Gaussian numbers have, for each configuration of these states, a mean and a covariance. A quadratic utility
has a closed form; any other one of up to three numbers is integrated by Gauss-Hermite quadrature, whose order grows until
the table rests, the last change being the error that is reported (of one number, evenly spaced points follow, which suit
kinks); more numbers, or numbers of other distributions,
are averaged over draws, with the standard error.
Cost: a mean and covariance for each configuration, times the points or draws.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.quadratic import Quadratic
from markovia.factors.decisions.utility import UtilityNode, Worth, called
from markovia.factors.gaussian.linear_gaussian import GaussianConditional, LinearGaussian
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import generator

ORDERS = {1: (16, 32, 64, 128, 4096, 16384), 2: (8, 16, 32, 64), 3: (6, 12, 24)}
"""Points of quadrature in each number, by how many numbers there are."""
HERMITE = 128
"""Points up to which they are those of Gauss and Hermite; more, for functions with kinks, are evenly spaced."""
REACH = 10.0
"""Standard deviations that evenly spaced points reach to either side."""
RESTS = 1e-10
"""The change of a table, relative to its largest entry, below which the order is not doubled again."""
DRAWS = 100_000
"""Draws of linear Gaussian numbers for each configuration."""
EACH, FEWEST, MOST_DRAWS = 20_000, 1_000, 400_000
"""Draws of other numbers for a configuration, the least that will do, and for all configurations together."""
MOST_EVALUATIONS = 2**27
"""Evaluations of a utility that may be asked for."""


class FoldedNumbers(NamedTuple):
    """Pieces with states alone; estimated errors of amounts, `(name, variables, table)`; whether there are none."""

    pieces: list[Any]
    errors: list[tuple[str, tuple[Variable, ...], Array]]
    exact: bool
    note: str


class _Average(NamedTuple):
    """The mean of a utility for each configuration, an estimate of its error, and how it was taken."""

    table: Array
    error: Array
    how: str


def fold_numbers(
    pieces: Sequence[Any],
    chosen: Mapping[str, float],
    known: Collection[str],
    network_of: Callable[[Sequence[Conditional]], Any],
) -> FoldedNumbers:
    """Return the pieces of a network with all numbers averaged out of its utilities.

    Parameters
    ----------
    pieces
        Decisions among them choose and see states, or are in `chosen`.
    chosen
        Decisions that are numbers, and were made.
    known
        What there is evidence on.
    network_of
        Makes a network that can be drawn from out of conditional distributions.

    Raises
    ------
    UnsupportedModel
        If states that matter depend on numbers.
    """
    nodes: dict[str, Conditional] = {p.variable.name: p for p in pieces}
    for name, x in chosen.items():
        nodes[name] = LinearGaussian(x, {}, 0.0).bind(nodes[name].variable, ())
    utilities = {n: p for n, p in nodes.items() if isinstance(p, UtilityNode)}
    weighed = {q for p in utilities.values() if p.combines for q in p.parent_names}
    kept: dict[str, Conditional] = {
        n: p for n, p in nodes.items() if not _is_number(p.variable) and n not in utilities
    }
    errors, how = [], []
    for name in utilities:
        if name in weighed:
            continue
        whole = _Whole(name, nodes)
        if not whole.numbers:
            kept.update({n: nodes[n] for n in whole.parts})
            continue
        average = whole.averaged(network_of)
        kept[name] = UtilityNode(Worth(name), whole.scope, average.table)
        if average.how:
            errors.append((name, whole.scope, average.error))
            how.append(f"{name}: {average.how}")
    _drop_states_of_numbers(kept, known)
    return FoldedNumbers([*kept.values()], errors, not how, "; ".join(how))


def _drop_states_of_numbers(kept: dict[str, Conditional], known: Collection[str]) -> None:
    """Drop states that depend on numbers and matter to nothing that is decided or known; refuse those that do."""
    lost = {n for n, p in kept.items() if any(q not in kept for q in p.parent_names)}
    dag = DAG.from_parents({n: [q for q in p.parent_names if q in kept] for n, p in kept.items()})
    worth = [n for n, p in kept.items() if n in known or isinstance(p, UtilityNode | DecisionNode)]
    if matter := sorted(dag.ancestors(worth, include_self=True) & lost):
        number = next(q for q in kept[matter[0]].parent_names if q not in kept)
        raise UnsupportedModel(
            f"{matter[0]!r} has states that depend on {number!r}, a number; make {number!r} states with mk.Discretizer"
        )
    for n in dag.descendants(lost) | lost:
        del kept[n]


class _Whole:
    """One utility, with all that it weighs, as a function of states and numbers.

    Attributes
    ----------
    parts
        The utilities that it is made of.
    numbers
        The numbers that it depends on directly.
    above
        All numbers that these depend on, in order.
    through, scope
        The states that its numbers depend on, and all that matter to it.
    """

    def __init__(self, name: str, nodes: Mapping[str, Conditional]) -> None:
        self.name, self.nodes = name, nodes
        self.parts = self._parts(name)
        direct = dict.fromkeys(q for n in self.parts for q in nodes[n].parents if not isinstance(q, Worth))
        self.numbers = [q.name for q in direct if _is_number(q)]
        self.above = self._above()
        self.through = tuple(
            dict.fromkeys(q for n in self.above for q in nodes[n].parents if not _is_number(q))
        )
        self.scope = tuple(dict.fromkeys([*(q for q in direct if not _is_number(q)), *self.through]))
        self.shape = tuple([len(v) for v in self.scope])

    def averaged(self, network_of: Callable[[Sequence[Conditional]], Any]) -> _Average:
        """Return its mean for every configuration of the states."""
        node = self.nodes[self.name]
        linear = all(isinstance(self.nodes[n], GaussianConditional) for n in self.above)
        if not linear:
            return self._by_draws(self._network_draws(network_of))
        mean, root = self._moments()
        if isinstance(node, UtilityNode) and isinstance(node.form, Quadratic):
            return self._closed(node.form, mean, root)
        if len(self.numbers) <= max(ORDERS):
            return self._by_quadrature(mean, root)
        self._refuse_large(DRAWS)
        noise = generator(0).standard_normal(
            (DRAWS, root.shape[-1])
        )  # the same for all, so that differences are sharp
        at = [self.above.index(n) for n in self.numbers]
        return self._by_draws(
            lambda k: dict(zip(self.numbers, (mean[k] + noise @ root[k].T)[:, at].T, strict=True))
        )

    def _parts(self, name: str) -> list[str]:
        node = self.nodes[name]
        assert isinstance(node, UtilityNode)
        return [name, *(n for q in node.parent_names for n in self._parts(q))] if node.combines else [name]

    def _above(self) -> list[str]:
        """Return the numbers that matter, parents first."""
        numbers = {
            n: [q.name for q in p.parents if _is_number(q)]
            for n, p in self.nodes.items()
            if _is_number(p.variable)
        }
        dag = DAG.from_parents(numbers)
        matter = dag.ancestors(self.numbers, include_self=True) if self.numbers else set()
        return [n for n in dag.topological_order() if n in matter]

    def _moments(self) -> tuple[Array, Array]:
        """Return means (configurations, numbers), and roots of covariances (configurations, numbers, numbers)."""
        codes = np.indices(self.shape).reshape(len(self.shape), -1)
        rows, size = prod(self.shape), len(self.above)
        mean, root = np.zeros((rows, size)), np.zeros((rows, size, size))
        place = {n: k for k, n in enumerate(self.above)}
        for k, n in enumerate(self.above):
            node = cast("GaussianConditional", self.nodes[n])
            at = tuple([codes[self.scope.index(p)] for p in node.discrete])
            sees = [place[q.name] for q in node.continuous]
            weights = np.broadcast_to(node.weights[at], (rows, len(sees)))
            mean[:, k] = node.bias[at] + np.einsum("rc,rc->r", weights, mean[:, sees])
            root[:, k] = np.einsum("rc,rcn->rn", weights, root[:, sees])
            root[:, k, k] += np.sqrt(node.variance[at])
        return mean, root

    def _closed(self, form: Quadratic, mean: Array, root: Array) -> _Average:
        names = list(form.parent_names)
        if states := [n for n in names if n not in self.numbers]:
            raise InvalidArgument(
                f"the Quadratic of {self.name!r} multiplies {states[0]!r}, which has states; write a function"
            )
        at = [self.above.index(n) for n in names]
        square, slope, free = form.matrix(names)
        m, half = mean[:, at], root[:, at]
        table = (
            np.einsum("ri,ij,rj->r", m, square, m)
            + m @ slope
            + free
            + np.einsum("rin,ij,rjn->r", half, square, half)
        )
        return _Average(table.reshape(self.shape), np.zeros(self.shape), "")

    def _by_quadrature(self, mean: Array, root: Array) -> _Average:
        at = [self.above.index(n) for n in self.numbers]
        covariance = np.einsum("rin,rjn->rij", root[:, at], root[:, at])
        values, vectors = np.linalg.eigh(covariance)
        half = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        table, change, order = None, np.inf, 0
        for order in ORDERS[len(at)]:
            self._refuse_large(order ** len(at))
            points, mass = _normal_points(order, len(at))
            finer = np.array(
                [
                    self._worth(k, dict(zip(self.numbers, (mean[k, at] + points @ half[k].T).T, strict=True)))
                    @ mass
                    for k in range(len(mean))
                ]
            )
            if table is not None:
                change = np.abs(finer - table)
                table = finer
                if change.max() <= RESTS * np.abs(finer).max():
                    break
            table = finer
        assert table is not None
        error = np.asarray(change)
        how = f"quadrature with {order} points{' a number' if len(at) > 1 else ''}, last change {error.max():.2g}"
        return _Average(table.reshape(self.shape), error.reshape(self.shape), how)

    def _by_draws(self, draws_of: Callable[[int], Mapping[str, Array]]) -> _Average:
        worths = [self._worth(k, draws_of(k)) for k in range(prod(self.shape))]
        table = np.array([w.mean() for w in worths]).reshape(self.shape)
        error = np.array([w.std() / np.sqrt(len(w)) for w in worths]).reshape(self.shape)
        draws = min(map(len, worths))
        return _Average(table, error, f"{draws:,} draws each, standard error up to {error.max():.2g}")

    def _network_draws(
        self, network_of: Callable[[Sequence[Conditional]], Any]
    ) -> Callable[[int], Mapping[str, Array]]:
        """Return a function that hands out draws of the numbers for a configuration; states are drawn evenly."""
        rows = prod([len(v) for v in self.through])
        total = min(EACH * rows, MOST_DRAWS)
        if total < FEWEST * rows:
            raise TooLarge(
                f"the numbers in the utility {self.name!r} have {rows:,} different distributions, by {len(self.through)} "
                "variables, which is too many to draw from each; split it",
                bytes=8.0 * FEWEST * rows,
            )
        states = [ConditionalTable.of(v, (), np.full(len(v), 1.0 / len(v))) for v in self.through]
        frame = network_of([*states, *(self.nodes[n] for n in self.above)]).sample(total, seed=0)
        drawn = self._row_of(
            {v.name: frame[v.name].map({s: c for c, s in enumerate(v.states)}) for v in self.through}, total
        )
        at = self._row_of(
            dict(zip([v.name for v in self.scope], np.indices(self.shape), strict=True)), self.shape
        )
        numbers = {n: np.asarray(frame[n], dtype=np.float64) for n in self.numbers}
        return lambda k: {
            n: x[drawn == at.flat[k]] for n, x in numbers.items()
        }  # choices that change nothing share draws

    def _row_of(self, codes: Mapping[str, Any], shape: Any) -> NDArray[np.int64]:
        """Return the place of configurations among those that the numbers depend on."""
        row = np.zeros(shape, dtype=np.int64)
        for v in self.through:
            row = row * len(v) + np.asarray(codes[v.name], dtype=np.int64)
        return row

    def _worth(self, k: int, numbers: Mapping[str, Array]) -> Array:
        """Return what arrays of numbers are worth in a configuration; point by point where the function takes no arrays."""
        states = {
            v.name: v.states[int(c)] for v, c in zip(self.scope, np.unravel_index(k, self.shape), strict=True)
        }
        size = len(next(iter(numbers.values())))
        first = self._amount(self.name, {**states, **{n: float(x[0]) for n, x in numbers.items()}})
        try:
            worth = np.asarray(self._amount(self.name, {**states, **numbers}), dtype=np.float64)
            worth = np.broadcast_to(worth, (size,))
            taken = bool(np.isclose(worth[0], first, rtol=1e-9, atol=0.0))
        except (TypeError, ValueError):
            taken = False
        if not taken:
            rows = zip(*(x.tolist() for x in numbers.values()), strict=True)
            worth = np.array(
                [self._amount(self.name, {**states, **dict(zip(numbers, row, strict=True))}) for row in rows],
                dtype=np.float64,
            )
        if not np.isfinite(worth).all():
            raise InvalidArgument(
                f"the utility {self.name!r} is not finite for all numbers that may come; bound it"
            )
        return worth

    def _amount(self, name: str, values: Mapping[str, Any]) -> Any:
        node = self.nodes[name]
        assert isinstance(node, UtilityNode)
        if node.combines:
            return called(
                node.form, node.parent_names, {q: self._amount(q, values) for q in node.parent_names}
            )
        return node.amount(**{q: values[q] for q in node.parent_names})

    def _refuse_large(self, points: int) -> None:
        needed = prod(self.shape) * points
        if needed > MOST_EVALUATIONS:
            raise TooLarge(
                f"the utility {self.name!r} of numbers depends on {len(self.scope)} variables with {prod(self.shape):,} "
                f"combinations and would be evaluated {needed:,} times; split it",
                bytes=8.0 * needed,
            )


def _normal_points(order: int, numbers: int) -> tuple[Array, Array]:
    """Return points (order^numbers, numbers) and their weights for independent standard normal numbers."""
    if order <= HERMITE:
        nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    else:
        nodes = np.linspace(-REACH, REACH, order)
        weights = np.exp(-0.5 * nodes**2)
    weights = weights / weights.sum()
    mass = np.prod(np.array(list(product(weights, repeat=numbers))), axis=1)
    return np.array(list(product(nodes, repeat=numbers))), mass


def _is_number(variable: Variable) -> bool:
    return isinstance(variable, Quantity) and not isinstance(variable, Worth)
