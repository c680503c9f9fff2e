"""The interface algorithm: exact filtering, smoothing, best explanations and expected counts of dynamic networks.

A belief about the interface (see `slices`) goes forward through the steps, and what the future says goes back; each step
is then answered by itself from the two messages at its ends. Filtering holds one message a sequence. Smoothing holds all of
them where they fit into the memory budget; otherwise only one in every square root of the steps, and makes the others anew,
block by block. Reference: Murphy (2002), chapter 3; Binder, Murphy and Russell (1997) for the checkpoints.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, isqrt
from typing import NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.inference.sequences.interface_runs import CHUNK, InterfaceRun, Ranges, StepSums, pick_run
from markovia.inference.sequences.slices import Place, SliceEvidence, Slices
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.memory_budget import default_budget, readable


class StepBlock(NamedTuple):
    """Steps of one kind with the messages at both ends: about the past, and from the future (None while filtering)."""

    kind: int
    steps: Ints
    before: Array | None
    after: Array | None


class Interface:
    """Exact answers about sequences of a dynamic network of tables.

    Parameters
    ----------
    slices
        The network.
    seen
        What was seen.
    memory
        How many bytes messages may take; what is free by default.

    Attributes
    ----------
    log_probs
        Of each sequence, once it was run through.
    stuck
        The step at which a sequence becomes impossible, else -1.
    """

    def __init__(self, slices: Slices, seen: SliceEvidence, memory: float | None = None) -> None:
        self.slices, self.seen = slices, seen
        self.memory = default_budget() if memory is None else memory
        self.log_probs = np.zeros(len(seen.offsets) - 1)
        self.stuck = np.full(len(self.log_probs), -1, dtype=np.int64)
        self.engine = ""
        self.checkpoints = 0
        self._fits()

    def _fits(self) -> None:
        for kind in range(self.slices.order + 1):
            keep = self.slices.interface(kind)
            plan, _ = self.slices.plan(kind, keep, before=kind > 0, after=False, names=self.seen.names)
            if plan.largest * 8.0 > self.memory:
                raise TooLarge(
                    f"the beliefs about one step would be a table of {plan.largest:,} entries "
                    f"({readable(plan.largest * 8.0)}); engine='boyen-koller' or 'factored-frontier' keeps them apart",
                    bytes=plan.largest * 8.0,
                )

    # -- messages --------------------------------------------------------------------------------------------------

    def _sequence_steps(self, kind: int) -> tuple[Ints, Ints]:
        """Return the sequences that have a step of this number, and those steps."""
        lengths = np.diff(self.seen.offsets)
        which = np.flatnonzero(lengths > kind)
        return which, self.seen.offsets[which] + kind

    def _first_steps(self, sums: StepSums) -> list[Array]:
        """Return beliefs after each first step, one row a sequence; those that are over keep their last one."""
        found: list[Array] = []
        for kind in range(self.slices.order):
            which, steps = self._sequence_steps(kind)
            before = None if kind == 0 else found[-1][which]
            message, logs = sums.forward(kind, steps, before)
            here = np.zeros((len(self.log_probs), message.shape[1]))
            here[which] = message
            self.log_probs[which] += logs
            found.append(here)
        return found

    def _start(self, *, maximise: bool = False) -> tuple[StepSums, list[Array], Ints, Ranges]:
        """Return the sums, beliefs after first steps, the longer sequences, and their ranges."""
        sums = StepSums(self.slices, self.seen, maximise=maximise)
        self.log_probs = np.zeros(len(self.log_probs))
        first = self._first_steps(sums)
        which, _ = self._sequence_steps(self.slices.order)
        starts = self.seen.offsets[which] + self.slices.order - 1
        return sums, first, which, Ranges.of(starts, self.seen.offsets[which + 1])

    def _finish(self, sums: StepSums) -> None:
        self.stuck = sums.stuck
        if self.seen.logs is not None:
            self.log_probs += np.add.reduceat(self.seen.logs, self.seen.offsets[:-1])
        self.log_probs[self.stuck >= 0] = -np.inf

    def _room(self, ranges: Ranges, copies: int) -> bool:
        return float(ranges.rows[-1]) * self.slices.n_states * 8.0 * copies <= self.memory

    def forward(self) -> Iterator[StepBlock]:
        """Go through all steps with beliefs about the past alone; `log_probs` is there at the end."""
        sums, first, which, ranges = self._start()
        for kind in range(self.slices.order):
            own, steps = self._sequence_steps(kind)
            yield StepBlock(kind, steps, None if kind == 0 else first[kind - 1][own], None)
        if len(which):
            run = pick_run(sums)
            self.engine = run.name
            for part, start in self._pieces(ranges, first[-1][which]):
                message, logs = run.forward(part, start)
                self._ends = message[part.rows[1:] - 1]
                owner = sums.sequence[part.first]
                self.log_probs[owner] += logs
                inner = np.flatnonzero(part.inner)
                yield StepBlock(self.slices.order, part.steps[inner], message[inner - 1], None)
                self.last = self._ends
        self._finish(sums)

    def _pieces(self, ranges: Ranges, first: Array) -> Iterator[tuple[Ranges, Array]]:
        """Cut ranges into pieces that fit into memory, each with the beliefs at its first rows."""
        if self._room(ranges, 4):
            yield ranges, first
            return
        width = max(2, int(self.memory / (32.0 * self.slices.n_states * len(ranges.first))))
        starts, belief = ranges.first, first
        which = np.arange(len(starts))
        while len(which):
            ends = np.minimum(starts + width, ranges.last[which])
            yield Ranges.of(starts, ends), belief
            belief = self._ends
            starts = ends - 1
            more = ends < ranges.last[which]
            which, starts, belief = which[more], starts[more], belief[more]

    def run(self) -> "Interface":
        """Find the log probabilities and the beliefs after the last steps."""
        for _ in self.forward():
            pass
        return self

    def both(self) -> Iterator[StepBlock]:
        """Go through all steps with messages from past and future, not in order."""
        sums, first, which, ranges = self._start()
        n = len(self.log_probs)
        later = np.ones((n, first[-1].shape[1]))
        if len(which):
            run = pick_run(sums)
            self.engine = run.name
            if self._room(ranges, 5):
                ones = np.ones((len(which), self.slices.n_states))
                alpha, beta, logs = run.both(ranges, first[-1][which], ones)
                self.log_probs[which] += logs
                later[which] = beta[ranges.rows[:-1]]
                inner = np.flatnonzero(ranges.inner)
                yield StepBlock(self.slices.order, ranges.steps[inner], alpha[inner - 1], beta[inner])
            else:
                for i, s in enumerate(which.tolist()):
                    a, b = int(ranges.first[i]), int(ranges.last[i])
                    belief, width = first[-1][s][None], max(2, isqrt(b - a) + 1)
                    kept: list[tuple[Ranges, Array]] = []
                    for c in range(ceil((b - a - 1) / (width - 1)) if b - a > 1 else 0):
                        low = a + c * (width - 1)
                        part = Ranges.of(np.array([low]), np.array([min(b, low + width)]))
                        kept.append((part, belief))
                        message, logs = run.forward(part, belief)
                        self.log_probs[s] += logs[0]
                        belief = message[-1:]
                    self.checkpoints += len(kept)
                    future = np.ones((1, self.slices.n_states))
                    for part, belief in reversed(kept):
                        alpha, beta, _ = run.both(part, belief, future)
                        yield StepBlock(self.slices.order, part.steps[1:], alpha[:-1], beta[1:])
                        future = beta[:1]
                    later[s] = future[0]
        for kind in range(self.slices.order - 1, -1, -1):
            own, steps = self._sequence_steps(kind)
            yield StepBlock(kind, steps, None if kind == 0 else first[kind - 1][own], later[own])
            if kind:
                ahead = np.ones((n, first[kind - 1].shape[1]))
                ahead[own] = sums.backward(kind, steps, later[own])
                later = ahead
        self._finish(sums)

    # -- answers ---------------------------------------------------------------------------------------------------

    def marginals(self, targets: Sequence[str], *, smooth: bool) -> dict[str, Array]:
        """Return each target's distribution at every step, given the past (and the future), (steps, states)."""
        found = {n: np.empty((self.seen.offsets[-1], self.slices.sizes[n])) for n in targets}
        sums = StepSums(self.slices, self.seen)
        for block in self.both() if smooth else self.forward():
            for n in targets:
                rows = sums.total(block.kind, block.steps, ((n, 0),), block.before, block.after)
                size = rows.sum(axis=1, keepdims=True)
                found[n][block.steps] = np.divide(rows, size, out=np.zeros_like(rows), where=size > 0.0)
        return found

    def joint(self, places: tuple[Place, ...]) -> Iterator[tuple[Ints, Array]]:
        """Yield smoothed joint distributions of places of a step, for steps where all of them exist."""
        sums = StepSums(self.slices, self.seen)
        for block in self.both():
            if all(lag <= block.kind for _, lag in places):
                rows = sums.total(block.kind, block.steps, places, block.before, block.after)
                size = rows.reshape(len(rows), -1).sum(axis=1).reshape(-1, *(1,) * len(places))
                yield block.steps, np.divide(rows, size, out=np.zeros_like(rows), where=size > 0.0)

    def expected(self) -> list[list[Array]]:
        """Return the expected counts of all nodes, by kind of step; the axes of their scopes."""
        sums = StepSums(self.slices, self.seen)
        found = [[np.zeros(self.slices.shape(node.scope)) for node in nodes] for nodes in self.slices.steps]
        for block in self.both():
            for i, node in enumerate(self.slices.steps[block.kind]):
                rows = sums.total(block.kind, block.steps, node.scope, block.before, block.after)
                size = rows.reshape(len(rows), -1).sum(axis=1)
                share = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
                found[block.kind][i] += np.einsum("n,n...->...", share, rows)
        return found

    def best(self) -> Mapping[str, Ints]:
        """Return the states of all variables in the most probable explanation of each sequence; logs in `log_probs`."""
        sums, first, which, ranges = self._start(maximise=True)
        n, order = int(self.seen.offsets[-1]), self.slices.order
        path = {name: np.zeros(n, dtype=np.int64) for name in self.slices.sizes}
        state = np.argmax(first[-1], axis=1)
        if len(which):
            run = pick_run(sums)
            self.engine = run.name
            start = first[-1][which]
            if isinstance(run, InterfaceRun):
                codes, logs = run.best(ranges, start)
                self.log_probs[which] += logs
                state[which] = codes[ranges.rows[:-1]]
                inner = np.flatnonzero(ranges.inner)
                for a in range(0, len(inner), max(1, CHUNK // self.slices.n_states)):
                    rows = inner[a : a + max(1, CHUNK // self.slices.n_states)]
                    ends = self._one_hot(codes[rows - 1]), self._one_hot(codes[rows])
                    self._trace(sums, order, ranges.steps[rows], *ends, path)
                sums.stuck[which[np.isneginf(logs)]] = ranges.first[np.isneginf(logs)]
            else:
                self._trace_back(sums, run, which, ranges, start, path, state)
        for kind in range(order - 1, -1, -1):
            own, steps = self._sequence_steps(kind)
            last = np.diff(self.seen.offsets)[own] == kind + 1
            here = np.where(last, np.argmax(first[kind][own], axis=1), state[own])
            size = first[kind].shape[1]
            before = None if kind == 0 else first[kind - 1][own]
            state[own] = self._trace(sums, kind, steps, before, self._one_hot(here, size), path)
        self._finish(sums)
        return path

    def _trace_back(
        self,
        sums: StepSums,
        run: "object",
        which: Ints,
        ranges: Ranges,
        start: Array,
        path: dict[str, Ints],
        state: Ints,
    ) -> None:
        """Follow the maxima of a run by tables back from the last steps, in blocks that fit into memory."""
        kept = []
        whole = self._room(ranges, 2)
        for part, belief in [(ranges, start)] if whole else self._pieces(ranges, start):
            message, logs = run.forward(part, belief)  # type: ignore[attr-defined]
            self._ends = message[part.rows[1:] - 1]
            owner = sums.sequence[part.first]
            self.log_probs[owner] += logs
            state[owner] = np.argmax(self._ends, axis=1)
            kept.append((part, belief, message if whole else None))
        for part, belief, held in reversed(kept):
            message = run.forward(part, belief)[0] if held is None else held  # type: ignore[attr-defined]
            lengths = part.last - part.first
            for j in range(int(lengths.max()) - 1, 0, -1):
                active = np.flatnonzero(lengths > j)
                rows = part.rows[active] + j
                owner = sums.sequence[part.first[active]]
                after = self._one_hot(state[owner])
                steps = part.first[active] + j
                state[owner] = self._trace(sums, self.slices.order, steps, message[rows - 1], after, path)

    def _one_hot(self, codes: Ints, size: int | None = None) -> Array:
        found = np.zeros((len(codes), self.slices.n_states if size is None else size))
        found[np.arange(len(codes)), codes] = 1.0
        return found

    def _trace(
        self,
        sums: StepSums,
        kind: int,
        steps: Ints,
        before: Array | None,
        after: Array,
        path: dict[str, Ints],
    ) -> Ints:
        """Write the best states of some steps, and return the best interface before them."""
        names = self.seen.names
        plan, bare = self.slices.plan(kind, (), before=before is not None, after=True, names=names)
        found = np.zeros(len(steps), dtype=np.int64)
        past = self.slices.past(kind)
        chunk = max(1, CHUNK // plan.largest)
        for a in range(0, len(steps), chunk):
            part = slice(a, a + chunk)
            tables = self.slices.tables(
                kind,
                self.seen,
                steps[part],
                sums.places[steps[part]],
                names,
                None if before is None else before[part],
                after[part],
                None,
                bare,
            )
            states = plan.best(tables, len(steps[part]))
            for name in self.slices.sizes:
                path[name][steps[part]] = states[name, 0]
            if past:
                found[part] = np.ravel_multi_index([states[p] for p in past], self.slices.shape(past))
        return found
