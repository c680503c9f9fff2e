"""Exact answers about hidden Markov chains: filtering, smoothing, best paths, draws of paths.

A `HiddenChain` has a start and a transition matrix; `Observed` is what was seen of it, as log densities. Neither knows what
the observations were. Sums are scaled, so sequences may have millions of steps. Reference: Rabiner (1989). Cost of every
answer: steps times states squared; sequences are shared out among threads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.both_ends import (
    LONG,
    best_path,
    no_smoothing,
    origins_of,
    room_of,
    smoothed,
)
from markovia.kernels.plain_code import either
from markovia.kernels.sequences.chain_records import Posteriors, SeenChain, SeenLogChain
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.threads import in_parallel

PARTS = 8
"""In how many parts sequences are worked on; whatever the number of threads, so that sums are the same."""
BLOCK = 50_000
"""Numbers that stay in a processor's cache."""
FEW = 1024
"""Numbers whose row by row maximum is quicker than one by columns."""
SMALL = 20_000
"""Steps times states squared below which work is not shared out."""


@dataclass(frozen=True)
class Observed:
    """What was seen of some sequences.

    Attributes
    ----------
    logs
        The log density of each different observation in each state, (observations, states).
    codes
        Which of them each step has; steps of all sequences lie one after the other.
    offsets
        Sequence i has the steps `offsets[i]` to `offsets[i + 1]`.
    apart
        Whether no two steps share an observation, but for one that nobody counts.
    """

    logs: Array
    codes: Ints
    offsets: Ints
    apart: bool = False

    def __post_init__(self) -> None:
        # kernels read rows by their address, and columns that were picked out lie in another order
        object.__setattr__(self, "logs", np.ascontiguousarray(self.logs, dtype=np.float64))
        object.__setattr__(self, "codes", np.ascontiguousarray(self.codes, dtype=np.int64))
        object.__setattr__(self, "offsets", np.ascontiguousarray(self.offsets, dtype=np.int64))

    @classmethod
    def of(cls, logs: Array, offsets: Any = None) -> "Observed":
        """Return observations with one row of log densities a step."""
        logs = np.ascontiguousarray(logs, dtype=np.float64)
        n = len(logs)
        return cls(
            logs, np.arange(n), np.asarray([0, n] if offsets is None else offsets, dtype=np.int64), True
        )

    def continued(self, steps: int) -> "Observed":
        """Return the same with steps after each sequence at which nothing is seen."""
        logs = np.concatenate([self.logs, np.zeros((1, self.logs.shape[1]))])
        unseen = np.full(steps, len(self.logs))
        codes = np.concatenate([np.append(self.codes[a:b], unseen) for a, b in pairwise(self.offsets)])
        return Observed(logs, codes, self.offsets + steps * np.arange(len(self.offsets)))

    @cached_property
    def scaled(self) -> tuple[Array, Array]:
        """The densities over the largest of each row, and the logarithms of those."""
        dens, tops = np.empty_like(self.logs), np.empty(len(self.logs))
        n = self.logs.size

        def block(part: tuple[int, int], _: None) -> None:
            logs, rows, top = self.logs[slice(*part)], dens[slice(*part)], tops[slice(*part)]
            if logs.size < FEW:
                np.max(logs, axis=1, out=top)
            else:  # by column, which is many rows at once
                top[:] = logs[:, 0]
                for column in logs.T[1:]:
                    np.maximum(top, column, out=top)
            top[top == -np.inf] = 0.0  # a row that is impossible in all states stays minus infinity
            np.exp(np.subtract(logs, top[:, None], out=rows), out=rows)

        in_parallel(block, _cuts(len(self.logs), max(PARTS, n // BLOCK) if n > SMALL else 1), lambda: None)
        return dens, tops


class FilteredChain(NamedTuple):
    """p(z_t | x up to t), p(z_t | x before t), log p of each sequence, and the step where one is impossible (else -1)."""

    now: Array
    ahead: Array
    log_probs: Array
    stuck: Ints


class Expected(NamedTuple):
    """Sums of posteriors: by observation (or step), of first steps, of pairs by transition table; log p a sequence."""

    sums: Array
    starts: Array
    pairs: Array
    log_probs: Array
    stuck: Ints


class InLogs(NamedTuple):
    """All answers about one sequence, found in logarithms."""

    sequence: int
    first: int
    log_prob: float
    stuck: int
    now: Array
    ahead: Array
    smoothed: Array
    pairs: Array


IN_LOGS, STILL_LOSING = -2, -3
LARGEST_LOG = 600.0
"""Logarithms beyond this have no exponentials to work with."""
KERNELS, BEAM = "markovia.kernels.sequences.hidden_chain", "markovia.kernels.sequences.beam_search"
BEAM_ROUNDING = 1e-12
"""A gap this small beside the log probability is rounding."""


class HiddenChain:
    """A Markov chain that is seen only through densities.

    Parameters
    ----------
    start
        The distribution of the first state.
    transition
        Row i is the distribution of the state after state i; or several such matrices.
    moves
        Which matrix leads into each step, where there are several.

    Examples
    --------
    >>> chain = HiddenChain([0.8, 0.2], [[0.6, 0.4], [0.5, 0.5]])
    >>> seen = Observed.of(np.log([[0.4, 0.1], [0.2, 0.5], [0.4, 0.1]]))
    >>> float(np.exp(chain.filter(seen).log_probs[0]).round(6))
    0.028562
    >>> chain.best(seen)[0].tolist()
    [0, 1, 0]
    """

    def __init__(self, start: Any, transition: Any, moves: Any = None) -> None:
        self.start = np.ascontiguousarray(start, dtype=np.float64)
        tables = np.ascontiguousarray(transition, dtype=np.float64)
        self.tables = tables[None] if tables.ndim == 2 else tables
        self.moves = (
            np.zeros(1, dtype=np.int64) if moves is None else np.ascontiguousarray(moves, dtype=np.int64)
        )
        with np.errstate(divide="ignore"):
            self._log_start, self._log_tables = np.log(self.start), np.log(self.tables)
        self._all_in_logs = False

    @classmethod
    def of_logs(cls, start: Array, transition: Array, moves: Ints | None = None) -> "HiddenChain":
        """Return a chain of weights that need not be normalised, given by their logarithms.

        Where these differ so much that their exponentials do not, all sums are found in logarithms.
        """
        start = np.ascontiguousarray(start, dtype=np.float64)
        transition = np.ascontiguousarray(transition, dtype=np.float64)
        logs = transition[None] if transition.ndim == 2 else transition
        made = cls(np.exp(start), np.exp(logs), moves)
        made._log_start, made._log_tables = start, logs
        made._all_in_logs = any(
            float(np.abs(part).max(initial=0.0, where=np.isfinite(part))) > LARGEST_LOG
            for part in (start, logs)
        )
        return made

    def filter(self, seen: Observed) -> FilteredChain:
        """Return the distribution of each state given what was seen up to it, and of what was seen before it."""
        n, k, count = len(seen.codes), len(self.start), len(seen.offsets) - 1
        found = FilteredChain(
            np.empty((n, k)), np.empty((n, k)), np.empty(count), np.empty(count, dtype=np.int64)
        )
        if self._all_in_logs:
            found.stuck[:] = IN_LOGS
        else:
            self._forward(seen, found)
        found.stuck[found.stuck == STILL_LOSING] = -1
        for one in self._in_logs(seen, found.stuck):
            steps = slice(one.first, one.first + len(one.now))
            found.now[steps], found.ahead[steps] = one.now, one.ahead
            found.log_probs[one.sequence], found.stuck[one.sequence] = one.log_prob, one.stuck
        return found

    def log_probs(self, seen: Observed) -> Array:
        """Return log p of each sequence; minus infinity for an impossible one."""
        found, k = np.full(len(seen.offsets) - 1, np.nan), len(self.start)
        if not self._all_in_logs:
            chain = self._sums(seen)
            self._share(
                "log_likelihoods", seen, lambda i, room: (chain, room, found), make_room=lambda: room_of(k)
            )
        if np.isnan(found).any():  # numbers near the smallest ones
            found = np.where(np.isnan(found), self.filter(seen).log_probs, found)
        return found

    def _rescaled(self, seen: Observed) -> FilteredChain:
        """Return what rescaled sums find; sequences they leave to logarithms are stuck at `IN_LOGS`."""
        n, k, count = len(seen.codes), len(self.start), len(seen.offsets) - 1
        found = FilteredChain(
            np.zeros((n, k)), np.zeros((n, k)), np.empty(count), np.empty(count, dtype=np.int64)
        )
        if self._all_in_logs:
            found.stuck[:] = IN_LOGS
        else:
            self._forward(seen, found)
        found.stuck[found.stuck == STILL_LOSING] = -1
        return found

    def smooth(self, seen: Observed) -> Expected:
        """Return the distribution of each state given all that was seen, in `sums (steps, states)`, without pairs."""
        return self._backward(seen, np.arange(len(seen.codes)), len(seen.codes), own=True, counted=False)

    def expect(self, seen: Observed, weights: Array | None = None) -> Expected:
        """Return expected counts given all that was seen, those of states by observation; sequences may have weights."""
        if weights is not None:
            return self._weighed(seen, weights)
        return self._backward(seen, seen.codes, len(seen.logs), own=seen.apart, counted=True)

    def _weighed(self, seen: Observed, weights: Array) -> Expected:
        """Return expected counts of weighted sequences, from the posteriors of single steps."""
        now, ahead, _, stuck = self._rescaled(seen)
        smoothed = self.smooth(seen)
        by_step = np.repeat(weights, np.diff(seen.offsets))[:, None]
        weighed = by_step * smoothed.sums
        sums = np.column_stack([np.bincount(seen.codes, one, len(seen.logs)) for one in weighed.T])
        first = np.zeros(len(seen.codes), dtype=bool)
        first[seen.offsets[:-1]] = True
        # steps without a table of their own here: first ones, and those of sequences left to logarithms
        out = first | np.repeat(stuck == IN_LOGS, np.diff(seen.offsets))
        later = np.divide(weighed, ahead, out=np.zeros_like(ahead), where=weighed > 0.0)
        pairs = np.zeros_like(self.tables)
        which = self._table_of(0, len(seen.codes))
        for m in range(len(self.tables)):
            steps = np.flatnonzero(~out & (which == m))
            pairs[m] = self.tables[m] * (now[steps - 1].T @ later[steps])
        for one in self._in_logs(seen, stuck):
            table = self._table_of(one.first + 1, one.first + len(one.now))
            np.add.at(pairs, table, weights[one.sequence] * one.pairs)
        starts = weighed[first].sum(axis=0)
        return Expected(sums.astype(np.float64), starts, pairs, smoothed.log_probs, smoothed.stuck)

    def _backward(self, seen: Observed, into: Ints, size: int, *, own: bool, counted: bool) -> Expected:
        if self._alone(seen) and not self._all_in_logs:
            both = smoothed(self._sums(seen), into, size, own=own, counted=counted)
            if both is not None:
                fine = np.array([-1])
                pairs = both.pairs * self.tables if counted else both.pairs
                return Expected(both.sums, both.starts, pairs, np.array([both.log_prob]), fine)
        k, m, count, parts = len(self.start), len(self.tables), len(seen.offsets) - 1, len(self._parts(seen))
        sums = np.zeros((1 if own else parts, size, k))
        # where no two steps share a table, parts write into different ones
        apart = 1 < m == len(self.moves) == len(np.unique(self.moves))
        starts = np.zeros((parts, k))
        pairs = np.zeros((1 if apart else parts, m if counted else 0, k, k))
        log_probs, stuck = np.empty(count), np.empty(count, dtype=np.int64)

        longest, chain = int(np.diff(seen.offsets).max()), self._sums(seen)

        def arguments(i: int, rooms: Any) -> tuple[Any, ...]:
            added = Posteriors(into, starts[i], pairs[0 if apart else i], sums[0 if own else i])
            return (chain, *rooms, added, log_probs, stuck)

        def make_rooms() -> tuple[Array, Array, Array]:
            return np.empty((longest, k)), np.empty((longest, k)), room_of(k)

        if self._all_in_logs:
            stuck[:] = IN_LOGS
        else:
            self._share("forward_backward", seen, arguments, 2, make_rooms)
        found = Expected(
            sums[0] if len(sums) == 1 else sums.sum(axis=0),
            starts.sum(axis=0),
            pairs.sum(axis=0) * self.tables if counted else pairs[0],
            log_probs,
            stuck,
        )
        for one in self._in_logs(seen, stuck):
            log_probs[one.sequence], stuck[one.sequence] = one.log_prob, one.stuck
            if one.stuck < 0:
                last = one.first + len(one.now)
                np.add.at(found.sums, into[one.first : last], one.smoothed)
                found.starts[:] += one.smoothed[0]
                if counted:
                    np.add.at(found.pairs, self._table_of(one.first + 1, last), one.pairs)
        return found

    def _forward(self, seen: Observed, found: FilteredChain) -> None:
        k = len(self.start)
        fixed, nothing = (self._sums(seen), found.now, found.ahead), no_smoothing(k)

        def arguments(i: int, room: Any) -> tuple[Any, ...]:
            return (*fixed, room, nothing, found.log_probs, found.stuck)

        self._share("forward_backward", seen, arguments, make_room=lambda: room_of(k))

    def _table_of(self, first: int, last: int) -> Ints:
        return np.zeros(last - first, dtype=np.int64) if len(self.moves) == 1 else self.moves[first:last]

    def _in_logs(self, seen: Observed, stuck: Ints) -> Iterator[InLogs]:
        """Yield the answers about sequences that rescaled sums left to logarithms."""
        for s in np.flatnonzero(stuck == IN_LOGS).tolist():
            a, b = int(seen.offsets[s]), int(seen.offsets[s + 1])
            before, after = self._log_recursions(seen, a, b)
            with np.errstate(invalid="ignore"):
                here = before + seen.logs[seen.codes[a:b]]
                log_prob = float(np.logaddexp.reduce(here[-1]))
                gone = (here == -np.inf).all(axis=1)
                later = (seen.logs[seen.codes[a:b]] + after)[1:, None, :] - log_prob
                pairs = np.exp(here[:-1, :, None] + self._log_tables[self._table_of(a + 1, b)] + later)
                yield InLogs(
                    s,
                    a,
                    log_prob,
                    a + int(np.argmax(gone)) if gone.any() else -1,
                    np.exp(here - np.logaddexp.reduce(here, axis=1, keepdims=True)),
                    np.exp(before - np.logaddexp.reduce(before, axis=1, keepdims=True)),
                    np.exp(here + after - log_prob),
                    pairs,
                )

    def log_messages(self, seen: Observed) -> tuple[Array, Array]:
        """Return log p(x up to t, z_t) and log p(x after t | z_t) of each step, the tables of the two recursions."""
        found = [self._log_recursions(seen, int(a), int(b)) for a, b in pairwise(seen.offsets)]
        forward = np.concatenate([before for before, _ in found]) + seen.logs[seen.codes]
        return forward, np.concatenate([after for _, after in found])

    def _log_recursions(self, seen: Observed, a: int, b: int) -> tuple[Array, Array]:
        """Return log p(x before t, z_t) and log p(x after t | z_t) of steps a ... b-1, one sequence."""
        k = len(self.start)
        before, after = np.empty((b - a, k)), np.empty((b - a, k))
        work = either("markovia.kernels.sequences.log_chain:log_recursions", 6 * (b - a) * k * (k + 4))
        work(a, b, self._log_start, self._log_tables, self.moves, seen.logs, seen.codes, before, after)
        return before, after

    def pairs(self, seen: Observed) -> Array:
        """Return p(z_t-1, z_t | all) of each step, (steps, states, states); zero at first steps."""
        now, ahead, _, stuck = self._rescaled(seen)
        smoothed = self.smooth(seen).sums
        later = np.divide(smoothed, ahead, out=np.zeros_like(ahead), where=smoothed > 0.0)
        found = np.zeros((*now.shape, now.shape[1]))
        tables = self.tables[self.moves] if len(self.moves) == 1 else self.tables[self.moves[1:]]
        found[1:] = now[:-1, :, None] * tables * later[1:, None, :]
        found[seen.offsets[:-1]] = 0.0
        for one in self._in_logs(seen, stuck):
            found[one.first + 1 : one.first + len(one.now)] = one.pairs
        return found

    def best(self, seen: Observed) -> tuple[Ints, Array]:
        """Return a most probable path of each sequence, all in one array, and log p(path, seen)."""
        if self._alone(seen):
            path, log_prob = best_path(self._logs(seen))
            return path, np.array([log_prob])
        paths = np.empty(len(seen.codes), dtype=np.int64)
        log_probs = np.empty(len(seen.offsets) - 1)
        k, longest, chain = len(self.start), int(np.diff(seen.offsets).max()), self._logs(seen)

        def make_rooms() -> tuple[Array, Any]:
            return room_of(k), origins_of(longest, k)

        self._share(
            "best_paths", seen, lambda i, rooms: (chain, *rooms, paths, log_probs), make_room=make_rooms
        )
        return paths, log_probs

    def beam(self, seen: Observed, width: int) -> tuple[Ints, Array, Array]:
        """Return a path of each sequence, log p(path, seen), and how much more any other path can have at most.

        At each step the `width` states with the best ways there go on; with all of them it is `best`. What goes no further
        is bounded by the best observation and move at every later step. A sequence that no path is found for has minus
        infinity. Cost: steps times width times states.
        """
        k, width = len(self.start), min(width, len(self.start))
        paths = np.empty(len(seen.codes), dtype=np.int64)
        log_probs, bounds = (np.empty(len(seen.offsets) - 1) for _ in range(2))
        longest = int(np.diff(seen.offsets).max(initial=0))
        fixed = (self._logs(seen), np.ascontiguousarray(self._log_tables.max(axis=1)), width)

        def make_rooms() -> tuple[Array, Array, Ints]:
            return np.empty((4, k)), np.empty(longest), np.empty((2, longest, width), dtype=np.int64)

        work = either(f"{BEAM}:beam_paths", len(seen.codes) * k * (width + 30))
        parts = parts_of(seen.offsets, k * width)
        in_parallel(
            lambda i, rooms: work(*parts[i], *fixed, *rooms, paths, log_probs, bounds),
            range(len(parts)),
            make_rooms,
        )
        gaps = np.where(bounds > -np.inf, np.inf, 0.0)  # where nothing was found
        there = log_probs > -np.inf
        gaps[there] = bounds[there] - log_probs[there]
        gaps[there & (gaps <= BEAM_ROUNDING * np.maximum(1.0, np.abs(log_probs)))] = 0.0
        return paths, log_probs, gaps

    def ranked(self, seen: Observed, n: int) -> tuple[Ints, Array]:
        """Return the n most probable paths, (n, steps), and log p(path, seen), (sequences, n); minus infinity for none."""
        paths = np.zeros((n, len(seen.codes)), dtype=np.int64)
        log_probs = np.empty((len(seen.offsets) - 1, n))
        fixed = (self._logs(seen), paths, log_probs)
        self._share("ranked_paths", seen, lambda i, _: fixed, n)
        return paths, log_probs

    def draw(self, seen: Observed, n: int, seed: Seed = None) -> Ints:
        """Return n paths drawn given what was seen, (n, steps): forward filtering, backward sampling."""
        found = self._rescaled(seen)
        others = list(self._in_logs(seen, found.stuck))
        for one in others:
            found.stuck[one.sequence] = one.stuck
        if (found.stuck >= 0).any():
            raise InvalidArgument(
                f"sequence {int(np.argmax(found.stuck >= 0))} is impossible, so no path leads through it"
            )
        rng = generator(seed)
        seeds = rng.integers(0, 2**64, size=(len(seen.offsets) - 1, 4), dtype=np.uint64)
        paths = np.empty((n, len(seen.codes)), dtype=np.int64)
        fixed = (self._sums(seen), found.now, seeds, paths)
        self._share("draw_paths", seen, lambda i, _: fixed, n)
        for one in others:
            below = np.cumsum(one.smoothed[0])
            paths[:, one.first] = np.searchsorted(below, rng.random(n) * below[-1], side="right")
            for t, both in enumerate(one.pairs, one.first + 1):
                steps = np.cumsum(both[paths[:, t - 1]], axis=1)
                paths[:, t] = (rng.random((n, 1)) * steps[:, -1:] >= steps).sum(axis=1)
        return paths

    def _alone(self, seen: Observed) -> bool:
        return len(seen.offsets) == 2 and len(seen.codes) * len(self.start) ** 2 >= LONG

    def _sums(self, seen: Observed) -> SeenChain:
        return SeenChain(
            seen.offsets, self.start, self.tables, _turned(self.tables), self.moves, seen.logs, *seen.scaled, seen.codes
        )  # fmt: skip

    def _logs(self, seen: Observed) -> SeenLogChain:
        return SeenLogChain(
            seen.offsets, self._log_start, self._log_tables, self.moves, seen.logs, seen.codes
        )

    def _parts(self, seen: Observed) -> list[tuple[int, int]]:
        return parts_of(seen.offsets, len(self.start) ** 2)

    def _share(
        self,
        name: str,
        seen: Observed,
        arguments: Callable[[int, Any], Any],
        width: int = 1,
        make_room: Callable[[], Any] = lambda: None,
    ) -> None:
        k = len(self.start)
        work = either(f"{KERNELS}:{name}", width * len(seen.codes) * (10 * k + 3 * k * k))
        parts = self._parts(seen)
        in_parallel(lambda i, room: work(*parts[i], *arguments(i, room)), range(len(parts)), make_room)


def parts_of(offsets: Ints, cost: int) -> list[tuple[int, int]]:
    """Return ranges of sequences with about as many steps each, given what a step costs; one where that is little."""
    count = len(offsets) - 1
    if int(offsets[-1]) * cost < SMALL or count == 1:
        return [(0, count)]
    ends = np.searchsorted(offsets, np.linspace(0, offsets[-1], PARTS + 1)[1:-1])
    bounds = [0, *np.unique(ends[(ends > 0) & (ends < count)]).tolist(), count]
    return list(pairwise(bounds))


def _turned(tables: Array) -> Array:
    return np.ascontiguousarray(tables.swapaxes(1, 2))


def _cuts(n: int, parts: int) -> list[tuple[int, int]]:
    return [(n * i // parts, n * (i + 1) // parts) for i in range(parts)]
