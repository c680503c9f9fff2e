"""A product of tables as a circuit, by tracing the elimination of its variables.

Method: what elimination would compute as numbers is written down: each entry of a message becomes a sum over the states of
the eliminated variable, of products of the indicator of the state and the entries of the messages that came in. Weights are
normalised on the way, so that every node sums to one over what is below it, and what they lack is handed on to the next
message; at the end it is the partition function. Terms of a sum differ in the state of a variable, so maxima are exact too.
References: Darwiche (2003); Chan and Darwiche (2006) on selectivity. Cost: the entries of all tables of the elimination.
Use it where one small model answers very many questions, or as the start of a circuit that is learned on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import ImpossibleEvidence, TooLarge
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.graphs.triangulation.elimination import greedy_order
from markovia.inference.circuits.circuit import Circuit
from markovia.inference.flat_graphs.flat_tables import pointers
from markovia.runtime.array_types import Array, Ints

MOST_ENTRIES = 2**24
"""Entries of the largest table of the elimination, and of all together."""
Traced = tuple[tuple[int, ...], Array, Ints | None]
"""A table under way: its variables, the logs of its entries, and the node that each entry stands for, if it is a message."""


def compile_circuit(variables: Mapping[str, Variable], factors: Sequence[Factor]) -> Circuit:
    """Return the circuit of a product of tables, normalised."""
    names = list(variables)
    place = {name: i for i, name in enumerate(names)}
    cards = [len(v) for v in variables.values()]
    with np.errstate(divide="ignore"):
        waiting: list[Traced] = [(tuple(place[n] for n in f.names), np.log(f.values), None) for f in factors]
    trace = _Trace(cards)
    near: list[set[int]] = [set() for _ in names]
    for scope, _, _ in waiting:
        for i in scope:
            near[i].update({*scope} - {i})
    for v in greedy_order(near, "min-fill", cards):
        inputs = [one for one in waiting if v in one[0]]
        waiting = [one for one in waiting if v not in one[0]]
        waiting.append(trace.eliminate(v, inputs))
    if any(logs == -np.inf for _, logs, _ in waiting):
        raise ImpossibleEvidence({})
    roots = [int(node) for _, _, node in waiting if node is not None]
    if len(roots) > 1:
        trace.add(False, np.zeros(len(roots), np.int64), np.array(roots), np.zeros(len(roots)), 1)
    return trace.circuit(tuple(names), tuple(tuple(v.states) for v in variables.values()))


class _Trace:
    """The nodes that elimination has written down so far; the first are indicators, one a state of each variable."""

    def __init__(self, cards: list[int]) -> None:
        self.cards = cards
        self.indicators = pointers(np.array(cards))
        self.size, self.entries = int(self.indicators[-1]), 0
        self.sums: list[Array] = []
        self.edges: list[tuple[Ints, Ints, Array]] = []

    def add(self, is_sum: bool, parents: Ints, children: Ints, log_weights: Array, n: int) -> Ints:
        """Add n nodes with their edges, parents counted from 0; return their numbers."""
        self.sums.append(np.full(n, is_sum))
        self.edges.append((parents + self.size, children, log_weights))
        self.size += n
        return np.arange(self.size - n, self.size)

    def eliminate(self, v: int, inputs: Sequence[Traced]) -> Traced:
        """Write down the message that is left when a variable is summed out of the tables it is in."""
        rest = tuple(sorted({i for scope, _, _ in inputs for i in scope} - {v}))
        axes = (v, *rest)
        shape = tuple(self.cards[i] for i in axes)
        self.entries += int(np.prod(shape, dtype=object))
        if self.entries > MOST_ENTRIES:
            raise TooLarge(
                f"the circuit would have more than {MOST_ENTRIES:,} entries to trace; ask the network itself, whose engines "
                "need not write them down", bytes=64.0 * self.entries,
            )  # fmt: skip
        logs = sum((_onto(scope, own, axes) for scope, own, _ in inputs), np.zeros(shape))
        terms = np.broadcast_to(self._products(v, inputs, axes), shape).reshape(shape[0], -1)
        logs = np.broadcast_to(logs, shape).reshape(shape[0], -1)
        top = logs.max(axis=0)
        possible = np.flatnonzero(top > -np.inf)
        logs, terms, top = logs[:, possible], terms[:, possible], top[possible]
        total = top + np.log(np.exp(logs - top).sum(axis=0))
        state, entry = np.nonzero(logs > -np.inf)
        nodes = np.full(int(np.prod(shape[1:])), -1, dtype=np.int64)
        weights = (logs - total)[state, entry]
        nodes[possible] = self.add(True, entry, terms[state, entry], weights, len(possible))
        mass = np.full(len(nodes), -np.inf)
        mass[possible] = total
        return rest, mass.reshape(shape[1:]), nodes.reshape(shape[1:])

    def _products(self, v: int, inputs: Sequence[Traced], axes: tuple[int, ...]) -> Ints:
        """Return the term of each entry: the indicator of its state, times the messages that came in."""
        indicator = np.arange(self.indicators[v], self.indicators[v + 1])
        messages = [(scope, nodes) for scope, _, nodes in inputs if nodes is not None]
        parts = [_onto((v,), indicator, axes), *(_onto(scope, nodes, axes) for scope, nodes in messages)]
        if not messages:
            return np.asarray(parts[0])
        # entries that differ in variables of no message share their product
        stacked = np.stack([part.ravel() for part in np.broadcast_arrays(*parts)], axis=1)
        there = np.flatnonzero((stacked >= 0).all(axis=1))
        rows = stacked[there]
        n, wide = rows.shape
        found = np.full(len(stacked), -1, dtype=np.int64)
        found[there] = self.add(False, np.repeat(np.arange(n), wide), rows.ravel(), np.zeros(n * wide), n)
        return found.reshape(np.broadcast_shapes(*(part.shape for part in parts)))

    def circuit(self, names: tuple[str, ...], states: tuple[tuple[object, ...], ...]) -> Circuit:
        """Return the circuit of all nodes, the last of which is its root."""
        parent, child, logs = (np.concatenate(part) for part in zip(*self.edges, strict=True))
        leaves = int(self.indicators[-1])
        order = np.argsort(parent, kind="stable")
        first = pointers(np.bincount(parent - leaves, minlength=self.size - leaves))
        variable = np.repeat(np.arange(len(self.cards)), self.cards)
        probs = np.zeros((leaves, max(self.cards)))
        probs[np.arange(leaves), np.arange(leaves) - self.indicators[variable]] = 1.0
        return Circuit(
            names, states, variable, probs, np.zeros(leaves), np.ones(leaves), np.concatenate(self.sums),
            first, child[order], logs[order], selective=True,
        )  # fmt: skip


def _onto(scope: tuple[int, ...], values: Any, axes: tuple[int, ...]) -> Any:
    """Return an array with one axis for each of some variables, those that it lacks of length 1."""
    ordered = np.transpose(values, [scope.index(i) for i in axes if i in scope])
    return np.expand_dims(ordered, tuple(k for k, i in enumerate(axes) if i not in scope))
