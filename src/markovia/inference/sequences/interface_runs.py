"""The two ways to carry beliefs about a dynamic network's interface from step to step.

`TableRun` multiplies one step's tables at a time (a junction tree of a slice): cost by the largest of their products.
`InterfaceRun` makes one matrix between interfaces, once, and leaves the rest to the compiled recursions of hidden
chains: cost
by the square of the interface's joint states, without a Python step. Both take ranges of steps whose first belief is known,
all sequences at once. With `maximise` sums are maxima.
"""

from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.inference.sequences.slices import Place, SliceEvidence, Slices
from markovia.runtime.array_types import Array, Flags, Ints

CHUNK = 2**22
"""Entries of the largest table of a chunk of steps."""
TABLES = 2**24
"""Entries of all matrices between interfaces."""
MOST_STATES = 2048
CALL, ENTRY, CHAIN_ENTRY = 12e-6, 3e-9, 1e-9
"""Seconds: one product of tables, one entry of it, one entry of a compiled matrix."""


class Ranges(NamedTuple):
    """Steps `first[i]` to `last[i] - 1`, one range a sequence, and where each range's rows begin in an answer."""

    first: Ints
    last: Ints
    rows: Ints

    @classmethod
    def of(cls, first: Ints, last: Ints) -> "Ranges":
        """Lay the rows of the ranges one after the other."""
        return cls(first, last, np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64))

    @property
    def steps(self) -> Ints:
        """The steps of all rows."""
        n = self.last - self.first
        return np.repeat(self.first - self.rows[:-1], n) + np.arange(self.rows[-1])

    @property
    def inner(self) -> Flags:
        """Which rows are not the first of their range."""
        found = np.ones(self.rows[-1], dtype=np.bool_)
        found[self.rows[:-1]] = False
        return found


class StepSums:
    """Sums over single steps, for all messages.

    Parameters
    ----------
    slices
        The network.
    seen
        What was seen of some sequences.
    maximise
        Whether to take maxima instead of sums.
    """

    def __init__(self, slices: Slices, seen: SliceEvidence, *, maximise: bool = False) -> None:
        self.slices, self.seen, self.maximise = slices, seen, maximise
        self.kinds, self.places = slices.kinds(seen.offsets)
        self.stuck = np.full(len(seen.offsets) - 1, -1, dtype=np.int64)

    @cached_property
    def sequence(self) -> Ints:
        """The sequence of each step."""
        return np.repeat(np.arange(len(self.stuck)), np.diff(self.seen.offsets))

    def total(
        self,
        kind: int,
        steps: Ints,
        keep: tuple[Place, ...],
        before: Array | None = None,
        after: Array | None = None,
        nodes: tuple[int, ...] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> Array:
        """Return one table over `keep` for each of some steps of one kind, (steps, *states)."""
        names = self.seen.names if names is None else names
        plan, bare = self.slices.plan(
            kind, keep, before=before is not None, after=after is not None, names=names, nodes=nodes
        )
        shape = self.slices.shape(keep)
        found = np.empty((len(steps), *shape))
        chunk = max(1, CHUNK // plan.largest)
        for a in range(0, len(steps), chunk):
            part = slice(a, a + chunk)
            tables = self.slices.tables(
                kind,
                self.seen,
                steps[part],
                self.places[steps[part]],
                names,
                None if before is None else before[part],
                None if after is None else after[part],
                nodes,
                bare,
            )
            found[part] = plan.maxima(tables) if self.maximise else plan.sums(tables)
        return found

    def forward(self, kind: int, steps: Ints, before: Array | None) -> tuple[Array, Array]:
        """Return beliefs about the interface after some steps, and the logarithms of what was taken off."""
        found = self.total(kind, steps, self.slices.interface(kind), before).reshape(
            len(steps), self.slices.size(kind)
        )
        size = found.max(axis=1) if self.maximise else found.sum(axis=1)
        gone = size <= 0.0
        if gone.any():
            for s in steps[gone].tolist():
                i = self.sequence[s]
                self.stuck[i] = s if self.stuck[i] < 0 else self.stuck[i]
            found[gone], size[gone] = 1.0 / found.shape[1], 1.0
        return found / size[:, None], np.log(size)

    def backward(self, kind: int, steps: Ints, after: Array) -> Array:
        """Return what the future says about the interface before some steps, the largest entry 1."""
        past = self.slices.past(kind)
        found = self.total(kind, steps, past, None, after).reshape(len(steps), self.slices.size(kind - 1))
        size = found.max(axis=1, keepdims=True)
        scaled: Array = np.divide(found, size, out=np.ones_like(found), where=size > 0.0)
        return scaled


class TableRun:
    """Step by step, all sequences side by side."""

    name = "interface"

    def __init__(self, sums: StepSums) -> None:
        self.sums = sums

    def forward(self, ranges: Ranges, first: Array) -> tuple[Array, Array]:
        """Return beliefs at all rows of some ranges, and the log probability of each but for its first step."""
        alpha = np.empty((ranges.rows[-1], first.shape[1]))
        logs = np.zeros(len(ranges.first))
        lengths = ranges.last - ranges.first
        order = np.argsort(-lengths, kind="stable")
        alpha[ranges.rows[:-1]] = first
        kind = self.sums.slices.order
        for j in range(1, int(lengths.max(initial=0))):
            active = order[: int(np.count_nonzero(lengths > j))]
            rows = ranges.rows[active] + j
            alpha[rows], more = self.sums.forward(kind, ranges.first[active] + j, alpha[rows - 1])
            logs[active] += more
        return alpha, logs

    def both(self, ranges: Ranges, first: Array, last: Array) -> tuple[Array, Array, Array]:
        """Return beliefs, what the future says (given for the last rows), and the log probabilities."""
        alpha, logs = self.forward(ranges, first)
        beta = np.empty_like(alpha)
        lengths = ranges.last - ranges.first
        order = np.argsort(-lengths, kind="stable")
        beta[ranges.rows[1:] - 1] = last
        kind = self.sums.slices.order
        for j in range(int(lengths.max(initial=0)) - 1, 0, -1):
            active = order[: int(np.count_nonzero(lengths > j))]
            rows = ranges.rows[active] + j
            beta[rows - 1] = self.sums.backward(kind, ranges.first[active] + j, beta[rows])
        return alpha, beta, logs


class InterfaceRun:
    """The interface as the state of a hidden chain."""

    name = "interface-chain"

    def __init__(self, sums: StepSums) -> None:
        self.sums = sums
        slices = sums.slices
        kind = slices.order
        past, now = slices.past(kind), slices.interface(kind)
        self._union = tuple(dict.fromkeys([*past, *now]))
        steps = np.flatnonzero(sums.kinds == kind)
        nodes = tuple(range(len(slices.steps[kind])))
        tables = separate(slices)
        self.code = np.zeros(len(sums.kinds), dtype=np.int64)
        if tables is None:
            distinct, self.code[steps] = distinct_rows(sums, steps)
            matrices = sums.total(kind, distinct, self._union, nodes=nodes)
            self.matrices = self._square(matrices)
            top = self.matrices.max(axis=(1, 2), initial=0.0)
            top[top == 0.0] = 1.0
            self.matrices /= top[:, None, None]
            self.logs = np.repeat(np.log(top)[:, None], slices.n_states, axis=1)
            self.moves: Ints | None = self.code
        else:
            rest = tuple(i for i in nodes if i not in tables)
            matrix = sums.total(kind, steps[:1], self._union, nodes=tables, names=())
            self.matrices = self._square(matrix)
            distinct, self.code[steps] = distinct_rows(sums, steps)
            seen_as = sums.total(kind, distinct, now, nodes=rest).reshape(len(distinct), slices.n_states)
            with np.errstate(divide="ignore"):
                self.logs = np.log(seen_as)
            self.moves = None

    def _square(self, tables: Array) -> Array:
        """Return matrices between interfaces; places that both have must agree."""
        slices, kind = self.sums.slices, self.sums.slices.order
        shape = slices.shape(self._union)
        states = np.indices(shape).reshape(len(shape), prod(shape))
        where = {p: i for i, p in enumerate(self._union)}
        ends = []
        for places in (slices.past(kind), slices.interface(kind)):
            sizes = slices.shape(places)
            codes = [states[where[p]] for p in places]
            ends.append(np.ravel_multi_index(codes, sizes) if codes else np.zeros(1, dtype=np.int64))
        n = slices.n_states
        found = np.zeros((len(tables), n, n))
        found[:, ends[0], ends[1]] = tables.reshape(len(tables), -1)
        return found

    def _chain(self, ranges: Ranges, first: Array, last: Array | None = None) -> tuple[HiddenChain, Observed]:
        steps = ranges.steps
        codes, n = self.code[steps], len(self.logs)
        codes[ranges.rows[:-1]] = n + np.arange(len(first))
        with np.errstate(divide="ignore"):
            rows = [self.logs, np.log(first)]
            if last is not None:
                ends = ranges.rows[1:] - 1
                rows.append(np.concatenate(rows)[codes[ends]] + np.log(last))
                codes[ends] = n + len(first) + np.arange(len(last))
        moves = None if self.moves is None else self.moves[steps]
        chain = HiddenChain(np.ones(first.shape[1]), self.matrices, moves)
        return chain, Observed(np.concatenate(rows), codes, ranges.rows)

    def _stuck(self, ranges: Ranges, stuck: Ints) -> None:
        for i in np.flatnonzero(stuck >= 0).tolist():
            s = self.sums.sequence[ranges.first[i]]
            if self.sums.stuck[s] < 0:
                self.sums.stuck[s] = ranges.steps[stuck[i]]

    def forward(self, ranges: Ranges, first: Array) -> tuple[Array, Array]:
        """Return beliefs at all rows of some ranges, and the log probability of each but for its first step."""
        chain, seen = self._chain(ranges, first)
        found = chain.filter(seen)
        self._stuck(ranges, found.stuck)
        return found.now, np.where(found.stuck >= 0, 0.0, found.log_probs)

    def both(self, ranges: Ranges, first: Array, last: Array) -> tuple[Array, Array, Array]:
        """Return beliefs, what the future says (given for the last rows), and the log probabilities."""
        alpha, logs = self.forward(ranges, first)
        chain, seen = self._chain(ranges, first, last)
        gamma = chain.smooth(seen).sums
        beta = np.divide(gamma, alpha, out=np.zeros_like(gamma), where=alpha > 0.0)
        size = beta.max(axis=1, keepdims=True)
        return alpha, np.divide(beta, size, out=np.ones_like(beta), where=size > 0.0), logs

    def best(self, ranges: Ranges, first: Array) -> tuple[Ints, Array]:
        """Return the best interface at all rows, and the log of its weight but for the first steps."""
        chain, seen = self._chain(ranges, first)
        return chain.best(seen)


def separate(slices: Slices) -> tuple[int, ...] | None:
    """Return the later steps' nodes that join past and present interface, where the others do not know the past."""
    kind = slices.order
    now = set(slices.interface(kind))
    both = now | set(slices.past(kind))
    joint = []
    for i, node in enumerate(slices.steps[kind]):
        if node.values is not None and set(node.scope) <= both:
            joint.append(i)
        elif set(node.scope) & (both - now):
            return None
    return tuple(joint)


def distinct_rows(sums: StepSums, steps: Ints) -> tuple[Ints, Ints]:
    """Return one step of each different evidence among some steps, and which of them each step has."""
    seen = sums.seen
    if seen.densities or not len(steps):
        return steps, np.arange(len(steps))
    if not seen.names:
        return steps[:1], np.zeros(len(steps), dtype=np.int64)
    key = np.zeros(len(steps), dtype=np.int64)
    for name in seen.names:  # numbered anew after each column, so that the numbers stay small
        key = key * len(seen.weights[name]) + seen.codes[name][steps]
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    first = np.unique(key, return_index=True)[1]
    return steps[first], key


def pick_run(sums: StepSums) -> TableRun | InterfaceRun:
    """Return the run that is estimated to be quicker."""
    slices = sums.slices
    kind, n = slices.order, slices.n_states
    steps = np.flatnonzero(sums.kinds == kind)
    if n > MOST_STATES or not len(steps):
        return TableRun(sums)
    lengths = np.diff(sums.seen.offsets)
    distinct = len(distinct_rows(sums, steps)[0])
    union = prod(slices.shape(tuple(dict.fromkeys([*slices.past(kind), *slices.interface(kind)]))))
    apart = separate(slices) is not None
    size = n * n if apart else distinct * n * n
    if size > TABLES:
        return TableRun(sums)
    plan, _ = slices.plan(kind, slices.interface(kind), before=True, after=False, names=sums.seen.names)
    loop = float(lengths.max()) * plan.n_steps * CALL + len(steps) * plan.work * ENTRY
    chain = len(steps) * n * n * CHAIN_ENTRY + (1 if apart else distinct) * union * ENTRY
    return InterfaceRun(sums) if chain < loop else TableRun(sums)
