"""A problem as flat arrays: what message passing, sampling and local search run on.

Hard findings are cut out of the tables and soft ones multiplied in. All tables over one variable become one row of `unary`;
a table whose variables all occur in another one is multiplied into that one, which changes no distribution and leaves
fewer loops. Every table is divided by its largest entry; the logs of the divisors add up to `log_scale`.

    log weight of a configuration x = log_scale + sum_i log unary[starts[i] + x_i] + sum_f log values_f[x of f's scope]

An *edge* is one variable's place in one factor: position `e` in `scope`. The edges of factor f are
`scope_ptr[f] : scope_ptr[f + 1]`; the edges at variable i are `edges[edge_ptr[i] : edge_ptr[i + 1]]`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.evidence import Findings
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.flat_tables import Cut, cut_tables, finished, pointers, same_pieces
from markovia.inference.problem import Piece, Problem
from markovia.kernels.flat_graph import Graph
from markovia.runtime.array_types import Array, Ints

REMEMBERED = "flat graph"


@dataclass(frozen=True)
class FlatGraph:
    """The free variables of a problem and the factors between them.

    Attributes
    ----------
    variables
        The free variables in model order; their position is their number below.
    cards, starts
        States of each variable, and where its states begin in an array over all states of all variables.
    unary
        For each state of each variable the product of the tables over that variable alone, largest 1.
    scope_ptr, scope, strides
        The variables of each factor of two or more variables, and the stride of each in the factor's table.
    table_ptr, values
        The tables one after the other, in C order, largest entry 1.
    edge_ptr, edges, edge_factor
        The edges at each variable, and the factor each edge belongs to.
    log_scale
        Log of what was divided out; minus infinity if no configuration has any weight.
    """

    variables: tuple[Variable, ...]
    cards: Ints
    starts: Ints
    unary: Array
    scope_ptr: Ints
    scope: Ints
    strides: Ints
    table_ptr: Ints
    values: Array
    edge_ptr: Ints
    edges: Ints
    edge_factor: Ints
    log_scale: float

    @cached_property
    def arrays(self) -> Graph:
        """The arrays as kernels take them."""
        return Graph(
            self.cards, self.starts, self.unary, self.scope_ptr, self.scope, self.strides, self.table_ptr, self.values,
            self.edge_ptr, self.edges, self.edge_factor,
        )  # fmt: skip

    @cached_property
    def log_arrays(self) -> Graph:
        """The arrays as kernels take them, with logs in place of weights."""
        return self.arrays._replace(unary=self.log_unary, values=self.log_values)

    @property
    def n_factors(self) -> int:
        """The number of factors over two or more variables."""
        return len(self.table_ptr) - 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each variable by name."""
        return {n: i for i, n in enumerate(self.names)}

    @cached_property
    def log_unary(self) -> Array:
        """Logs of `unary`."""
        with np.errstate(divide="ignore"):
            return np.log(self.unary)

    @cached_property
    def log_values(self) -> Array:
        """Logs of `values`."""
        with np.errstate(divide="ignore"):
            return np.log(self.values)

    @cached_property
    def arity(self) -> Ints:
        """The number of variables of each factor."""
        return np.diff(self.scope_ptr)

    def members(self, f: int) -> Ints:
        """Return the variables of a factor, by number."""
        return self.scope[self.scope_ptr[f] : self.scope_ptr[f + 1]]

    def table(self, f: int) -> Array:
        """Return a factor's table, one axis a variable."""
        flat = self.values[self.table_ptr[f] : self.table_ptr[f + 1]]
        return flat.reshape(tuple(self.cards[self.members(f)]))

    def log_weights(self, codes: NDArray[np.integer[Any]]) -> Array:
        """Return the log weight of configurations, one a row, one column a variable."""
        codes = np.asarray(codes, dtype=np.int64)
        total = np.full(len(codes), self.log_scale)
        if not len(self.variables):
            return total
        total += self.log_unary[self.starts[:-1] + codes].sum(axis=1)
        if self.n_factors:
            where = np.add.reduceat(codes[:, self.scope] * self.strides, self.scope_ptr[:-1], axis=1)
            total += self.log_values[self.table_ptr[:-1] + where].sum(axis=1)
        return total

    def log_weight(self, codes: NDArray[np.integer[Any]]) -> float:
        """Return the log weight of one configuration."""
        return float(self.log_weights(np.asarray(codes)[None, :])[0])

    def largest_states(self, numbers: Array) -> Ints:
        """Return for each variable the first of its states with the largest number."""
        if not len(self.cards):
            return np.zeros(0, dtype=np.int64)
        first = self.starts[:-1]
        top = np.repeat(np.maximum.reduceat(numbers, first), self.cards)
        places = np.flatnonzero(numbers == top)
        found: Ints = places[np.searchsorted(places, first)] - first
        return found

    def neighbours(self) -> tuple[Ints, Ints]:
        """Return for each variable the variables it shares a factor with: pointers, then numbers in order."""
        n = len(self.variables)
        arity = self.arity[self.edge_factor]
        mine = np.repeat(np.arange(len(self.scope)), arity)
        within = np.arange(len(mine)) - np.repeat(np.cumsum(arity) - arity, arity)
        theirs = self.scope_ptr[self.edge_factor][mine] + within
        a, b = self.scope[mine], self.scope[theirs]
        keys = np.unique(a[a != b] * max(n, 1) + b[a != b])
        return np.searchsorted(keys // max(n, 1), np.arange(n + 1)), keys % max(n, 1)

    @cached_property
    def is_forest(self) -> bool:
        """Whether the factor graph has no loop."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        n, m = len(self.variables), self.n_factors
        ones = np.ones(len(self.scope), dtype=np.int8)
        links = coo_matrix((ones, (self.scope, n + self.edge_factor)), shape=(n + m, n + m))
        parts = connected_components(links, directed=False, return_labels=False)
        return bool(len(self.scope) == n + m - parts)

    def tables(self, flat: Array, names: Iterable[str]) -> list[Factor]:
        """Return numbers over all states of all variables as one factor a named variable."""
        flat = flat.copy()
        flat.setflags(write=False)
        bounds = self.starts.tolist()
        listed = list(names)
        if len(listed) == len(self.variables) and tuple(listed) == self.names:
            return Factor.cut_up(self.variables, flat, bounds[:-1], bounds[1:])
        index, variables = self.index, self.variables
        chosen = [index[n] for n in listed]
        starts, stops = [bounds[i] for i in chosen], [bounds[i + 1] for i in chosen]
        return Factor.cut_up([variables[i] for i in chosen], flat, starts, stops)

    def by_name(self, flat: Array) -> dict[str, Array]:
        """Return numbers over all states of all variables as one array a variable."""
        return dict(zip(self.names, np.split(flat, self.starts[1:-1]), strict=True))

    def averaging_room(self) -> tuple[Array, Array, Array]:
        """Return arrays in which one thread averages log tables, as `kernels.expected_logs` does."""
        largest = int(np.diff(self.table_ptr).max(initial=1))
        return np.empty(largest), np.empty(int(self.cards.max(initial=1))), np.empty(largest)

    def assignment(self, codes: NDArray[np.integer[Any]]) -> dict[str, int]:
        """Return a configuration as state codes by name."""
        return dict(zip(self.names, np.asarray(codes).tolist(), strict=True))


def flat_graph(problem: Problem, targets: Iterable[str] | None = None) -> FlatGraph:
    """Return the problem as flat arrays; the model remembers the last one.

    Parameters
    ----------
    problem
        Variables, pieces and findings.
    targets
        Where only these are asked for, conditionals that cannot matter to them are left out, and so are variables that
        are then in no table and not asked for. None keeps everything.
    """
    names = None if targets is None else list(targets)
    asked = None if names is None else frozenset(names)
    memory = problem.memory
    kept = None if memory is None else memory.get(REMEMBERED)
    if kept is not None and kept[1] == asked and same_question(kept[0], kept[2], problem):
        graph: FlatGraph = kept[3]
        return graph
    made = build_flat_graph(problem, names)
    if memory is not None:
        memory[REMEMBERED] = (list(problem.pieces), asked, dict(problem.findings), made)
    return made


def same_question(pieces: Sequence[Piece], findings: Findings, problem: Problem) -> bool:
    """Say whether pieces and findings are those of a problem."""
    return same_pieces(pieces, problem.pieces) and same_findings(findings, problem.findings)


def same_findings(some: Findings, others: Findings) -> bool:
    """Say whether two sets of findings fix the same states and have the same likelihoods."""
    if some.keys() != others.keys():
        return False
    for name, one in some.items():
        other = others[name]
        if one is other or (one.code is not None and one.code == other.code):
            continue
        if one.code is not None or other.code is not None:
            return False
        if not np.array_equal(one.weights(), other.weights()):
            return False
    return True


def build_flat_graph(
    problem: Problem, targets: Sequence[str] | None = None, *, absorb: bool = True
) -> FlatGraph:
    """Return the problem as flat arrays, made anew; `absorb=False` keeps tables inside others apart."""
    parts = cut_tables(problem, targets, absorb=absorb)
    if parts is not None:
        return _graph(parts)
    if not problem.findings and all(isinstance(p, Factor) for p in problem.pieces):
        factors: list[Factor] = [*problem.pieces]  # type: ignore[list-item]
        mentioned = {v.name for f in factors for v in f.variables}
        left = [v for n, v in problem.variables.items() if n not in mentioned]
        factors.extend([Factor.of((v,), np.ones(len(v))) for v in left])
    else:
        factors = [part.build() for part in problem.parts(targets)]
    if targets is None:
        free = problem.free
    else:
        seen = {n for f in factors for n in f.names} | set(targets)
        free = [n for n in problem.free if n in seen]
    return from_factors([problem.variables[n] for n in free], factors, absorb=absorb)


def from_factors(
    variables: Sequence[Variable], factors: Sequence[Factor], *, absorb: bool = True
) -> FlatGraph:
    """Return factors over the given variables as flat arrays; `absorb=False` keeps tables inside others apart."""
    number = {v.name: i for i, v in enumerate(variables)}
    cards = np.array([len(v) for v in variables], dtype=np.int64)
    starts = pointers(cards)
    arity = np.array([len(f.variables) for f in factors], dtype=np.int64)
    scope = np.array([number[v.name] for f in factors for v in f.variables], dtype=np.int64)
    first = np.cumsum(arity) - arity
    wide = arity >= 2
    log_scale = sum([_log(float(factors[i].values)) for i in np.flatnonzero(arity == 0).tolist()], 0.0)
    owner = scope[first[arity == 1]]
    alone = [factors[i].values for i in np.flatnonzero(arity == 1).tolist()]
    tables = [factors[i].values for i in np.flatnonzero(wide).tolist()]
    scope, arity = scope[np.repeat(wide, arity)], arity[wide]
    logs = np.zeros(int(starts[-1]))
    if alone:
        flat = np.concatenate(alone)
        sizes = cards[owner]
        place = (
            np.arange(len(flat))
            - np.repeat(np.cumsum(sizes) - sizes, sizes)
            + np.repeat(starts[owner], sizes)
        )
        with np.errstate(divide="ignore"):
            np.add.at(logs, place, np.log(flat))
    sizes = np.array([t.size for t in tables], dtype=np.int64)
    return _graph(finished(
        tuple(variables), cards, starts, logs, pointers(arity), scope, pointers(sizes), _one_after_the_other(tables),
        log_scale, absorb=absorb,
    ))  # fmt: skip


def _graph(parts: Cut) -> FlatGraph:
    return FlatGraph(parts[0], *parts[1], parts[2])


def _one_after_the_other(tables: list[Array]) -> Array:
    """Return the entries of all tables in C order."""
    if not tables:
        return np.zeros(0)
    alike = len({t.shape for t in tables}) == 1
    values = np.concatenate(tables) if alike else np.concatenate([t.ravel() for t in tables])
    return np.ascontiguousarray(values.reshape(-1), dtype=np.float64)


def _log(value: float) -> float:
    return float(np.log(value)) if value > 0 else -np.inf


def codes_of(graph: FlatGraph, states: Mapping[str, int]) -> Ints:
    """Return state codes by name as a configuration."""
    return np.array([states[n] for n in graph.names], dtype=np.int64)
