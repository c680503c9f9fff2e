"""The factor graph that messages run on: a flat graph, factors given by their entries, and chains for noisy-or and gates.

Numbers of variables: those of the flat graph first, auxiliary variables of chains last. Numbers of factors: tables first
(those of chains at their end), then factors given by their entries.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovia.factors.local_models.local_model import CausalIndependence
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.sparse import SparseFactor
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.causal_chains import causal_chain
from markovia.inference.flat_graphs.flat_graph import (
    FlatGraph,
    build_flat_graph,
    flat_graph,
    from_factors,
    same_question,
)
from markovia.inference.problem import Piece, Problem
from markovia.kernels.flat_graph import ListedGraph
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

REMEMBERED = "message graph"
_WORTH_IT = 4
_PLAIN = frozenset((Factor, ConditionalTable))


@dataclass(frozen=True)
class MessageGraph:
    """Tables, listed factors and the edges of both.

    Attributes
    ----------
    flat
        The variables, auxiliary ones last, and the tables.
    n_real
        The number of variables that are not auxiliary.
    n_plain
        The number of tables that are not in chains.
    scope_ptr, scope, edge_ptr, edges, edge_factor
        As in `FlatGraph`, with the listed factors after the tables.
    entry_ptr, code_ptr, codes, logs
        Of each listed factor: where its entries begin in `logs`, where their codes begin in `codes`.
    log_scale
        As in `FlatGraph`, with what was divided out of the listed factors.
    """

    flat: FlatGraph
    n_real: int
    n_plain: int
    scope_ptr: Ints
    scope: Ints
    edge_ptr: Ints
    edges: Ints
    edge_factor: Ints
    entry_ptr: Ints
    code_ptr: Ints
    codes: Ints
    logs: Array
    log_scale: float

    @property
    def n_factors(self) -> int:
        """The number of tables and listed factors."""
        return len(self.scope_ptr) - 1

    @cached_property
    def message_ptr(self) -> Ints:
        """Where the message of each edge begins."""
        found = np.zeros(len(self.scope) + 1, dtype=np.int64)
        self.flat.cards[self.scope].cumsum(out=found[1:])
        return found

    @cached_property
    def arrays(self) -> ListedGraph:
        """The arrays as kernels take them."""
        more = np.zeros(len(self.scope) - len(self.flat.strides), dtype=np.int64)
        strides = np.concatenate([self.flat.strides, more]) if len(more) else self.flat.strides
        tables = self.flat.arrays._replace(
            scope_ptr=self.scope_ptr, scope=self.scope, strides=strides,
            edge_ptr=self.edge_ptr, edges=self.edges, edge_factor=self.edge_factor,
        )  # fmt: skip
        return ListedGraph(*tables, self.message_ptr, self.entry_ptr, self.code_ptr, self.codes, self.logs)

    @cached_property
    def log_arrays(self) -> ListedGraph:
        """The arrays as kernels take them, with logs in place of weights."""
        return self.arrays._replace(unary=self.flat.log_unary, values=self.flat.log_values)

    @cached_property
    def walk(self) -> tuple[Ints, bool]:
        """All nodes in breadth-first order, and whether the graph has no loop."""
        order = np.empty(len(self.flat.cards) + self.n_factors, dtype=np.int64)
        walk = either("markovia.kernels.messages.messages:breadth_first", 8 * len(self.scope) + len(order))
        parts = walk(self.arrays, order, np.zeros(len(order), dtype=np.int8))
        return order, len(self.scope) == len(order) - parts

    @cached_property
    def flooding(self) -> Ints:
        """The nodes as a round of flooding goes: all variables, tables, listed factors, chains there and back."""
        plain = np.arange(self.n_plain)
        listed = np.arange(self.flat.n_factors, self.n_factors)
        parts = [
            np.arange(len(self.flat.cards)),
            -1 - plain,
            -1 - listed,
            self.chain_order(*self.chain_range),
        ]
        return np.concatenate(parts).astype(np.int64)

    @property
    def chain_range(self) -> tuple[int, int]:
        """The first factor of chains and the one after the last."""
        return self.n_plain, self.flat.n_factors

    def chain_order(self, first: int, last: int) -> Ints:
        """Return factors of chains there and back, each followed by the auxiliary variables that it sends to."""
        if first == last:
            return np.zeros(0, dtype=np.int64)
        edges = np.arange(self.scope_ptr[first], self.scope_ptr[last])
        edges = edges[self.scope[edges] >= self.n_real]
        factor, variable = self.edge_factor[edges], self.scope[edges]
        nodes = np.concatenate([-1 - np.arange(first, last), variable])
        owner = np.concatenate([np.arange(first, last), factor])
        there = nodes[np.argsort(2 * owner + (nodes >= 0), kind="stable")]
        back = nodes[np.argsort(-2 * owner + (nodes >= 0), kind="stable")]
        return np.concatenate([there, back]).astype(np.int64)

    @property
    def is_forest(self) -> bool:
        """Whether the graph has no loop."""
        return bool(len(self.scope) < len(self.flat.cards) + self.n_factors and self.walk[1])

    @cached_property
    def only_pairs(self) -> bool:
        """Whether every factor is a table over two variables."""
        return self.n_factors == self.flat.n_factors and bool(np.all(self.flat.arity == 2))

    @cached_property
    def room(self) -> int:
        """How many numbers of working room a kernel takes."""
        cards = self.flat.cards
        if self.only_pairs:
            most = 4 * int(cards[self.scope].reshape(-1, 2).sum(axis=1).max(initial=0)) + 4
        else:
            from markovia.kernels.messages.factor_messages import room_needed

            stack = np.empty(512, dtype=np.int64)
            most = int(room_needed(cards, self.scope_ptr, self.scope, self.flat.n_factors, stack))
        return max(most, int(cards.max(initial=1)), 8)


def message_graph(
    problem: Problem, targets: Iterable[str] | None = None, *, absorb: bool = True, maximise: bool = False
) -> MessageGraph:
    """Return the graph that messages run on; the model remembers the last one.

    Parameters
    ----------
    problem, targets
        As in `flat_graph`.
    absorb
        Multiply tables over variables that all occur in another table into that one.
    maximise
        Whether messages will maximise; then noisy factors keep their tables.
    """
    names = None if targets is None else list(targets)
    pieces = list(problem.pieces)
    special = not _PLAIN.issuperset(map(type, pieces)) and any(
        isinstance(p, CausalIndependence | SparseFactor) for p in pieces
    )
    asked = (None if names is None else frozenset(names), absorb, maximise and special)
    memory = problem.memory
    kept = None if memory is None else memory.get(REMEMBERED)
    if kept is not None and kept[1] == asked and same_question(kept[0], kept[2], problem):
        graph: MessageGraph = kept[3]
        return graph
    if special:
        relevant = pieces if names is None else problem.relevant(names)
        made = _with_structure(problem, relevant, names, absorb, maximise)
    else:
        flat = flat_graph(problem, names) if absorb else build_flat_graph(problem, names, absorb=False)
        made = _joined(flat, len(flat.variables), flat.n_factors, [])
    if memory is not None:
        memory[REMEMBERED] = (pieces, asked, dict(problem.findings), made)
    return made


def _with_structure(
    problem: Problem, pieces: list[Piece], targets: list[str] | None, absorb: bool, maximise: bool
) -> MessageGraph:
    """Build the graph with chains and listed factors."""
    fixed = {n: f.code for n, f in problem.findings.items() if f.code is not None}
    plain: list[Factor] = []
    chains: list[Factor] = []
    listed: list[SparseFactor] = []
    auxiliary: list[Variable] = []

    def fresh(states: int) -> Variable:
        name = f"\0{len(auxiliary)}"
        while name in problem.variables:
            name += "\0"
        auxiliary.append(Variable.of(name, tuple(range(states))))
        return auxiliary[-1]

    for piece in pieces:
        if isinstance(piece, CausalIndependence):
            links = causal_chain(piece, fixed, fresh, maximise)
            if links is not None:
                (plain if len(links) == 0 or not _is_chain(links) else chains).extend(links)
                continue
        factor = problem.cut(piece)
        if isinstance(factor, SparseFactor) and _worth_listing(factor):
            listed.append(factor)
        else:
            plain.append(factor)
    plain.extend([f.factor() for f in problem.findings.values() if not f.hard])
    unmentioned = [v for v in problem.unmentioned() if v.name not in fixed]
    plain.extend([Factor.of((v,), np.ones(len(v))) for v in unmentioned])
    if targets is None:
        free = problem.free
    else:
        seen = {n for f in (*plain, *chains, *listed) for n in f.names} | set(targets)
        free = [n for n in problem.free if n in seen]
    real = [problem.variables[n] for n in free]
    flat = from_factors([*real, *auxiliary], [*plain, *chains], absorb=absorb)
    return _joined(flat, len(real), flat.n_factors - len(chains), listed)


def _is_chain(links: list[Factor]) -> bool:
    return all(len(f.variables) > 1 for f in links)


def _worth_listing(factor: SparseFactor) -> bool:
    """Whether running over the entries is cheaper than over the table, and there are two variables or more."""
    arity = len(factor.variables)
    return arity > 1 and factor.size > _WORTH_IT * arity * max(1, factor.n_entries)


def _joined(flat: FlatGraph, n_real: int, n_plain: int, listed: list[SparseFactor]) -> MessageGraph:
    """Return a flat graph with listed factors after its tables."""
    none = np.zeros(0, dtype=np.int64)
    if not listed:
        zero = np.zeros(1, dtype=np.int64)
        return MessageGraph(
            flat, n_real, n_plain, flat.scope_ptr, flat.scope, flat.edge_ptr, flat.edges, flat.edge_factor,
            zero, zero.copy(), none, np.zeros(0), flat.log_scale,
        )  # fmt: skip
    number = {v.name: i for i, v in enumerate(flat.variables)}
    members = [np.array([number[n] for n in f.names], dtype=np.int64) for f in listed]
    arity = np.array([len(s) for s in members], dtype=np.int64)
    entries = np.array([f.n_entries for f in listed], dtype=np.int64)
    log_scale = flat.log_scale
    logs = []
    for f in listed:
        top = float(f.weights.max(initial=0.0))
        log_scale += np.log(top) if top > 0 else -np.inf
        logs.append(np.log(f.weights) - np.log(top) if top > 0 else np.zeros(0))
    scope = np.concatenate([flat.scope, *members])
    scope_ptr = np.concatenate([flat.scope_ptr, flat.scope_ptr[-1] + np.cumsum(arity)])
    edges = np.argsort(scope, kind="stable").astype(np.int64)
    return MessageGraph(
        flat=flat,
        n_real=n_real,
        n_plain=n_plain,
        scope_ptr=scope_ptr,
        scope=scope,
        edge_ptr=np.searchsorted(scope[edges], np.arange(len(flat.variables) + 1)).astype(np.int64),
        edges=edges,
        edge_factor=np.repeat(np.arange(len(scope_ptr) - 1, dtype=np.int64), np.diff(scope_ptr)),
        entry_ptr=np.concatenate(([0], np.cumsum(entries))).astype(np.int64),
        code_ptr=np.concatenate(([0], np.cumsum(entries * arity))).astype(np.int64),
        codes=np.concatenate([f.codes.ravel() for f in listed]),
        logs=np.concatenate(logs),
        log_scale=float(log_scale),
    )


def remembered(problem: Problem, key: Any, graph: MessageGraph) -> Any:
    """Return what was kept for this key and graph, or None."""
    kept = None if problem.memory is None else problem.memory.get("messages")
    return kept[2] if kept is not None and kept[0] is graph and kept[1] == key else None


def remember(problem: Problem, key: Any, graph: MessageGraph, what: Any) -> None:
    """Keep what belongs to this key and graph, in place of anything kept before."""
    if problem.memory is not None:
        problem.memory["messages"] = (graph, key, what)
