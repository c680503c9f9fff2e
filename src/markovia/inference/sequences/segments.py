"""Exact answers about chains of labelled segments: hidden semi-Markov chains and semi-Markov random fields.

A sequence is cut into segments with a label and a length. A segmentation has a score, the sum of a start score, scores of
moves from segment to segment, of lengths, and of the steps in their segment's label; its probability is proportional to the
exponential of it. A hidden semi-Markov model has log probabilities for scores, a conditional random field any weights.
References: Sarawagi and Cohen (2004); Yu (2010). Cost of every answer: steps times labels times (labels plus the longest
length); sequences are shared out among threads.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.hidden_chain import parts_of
from markovia.kernels.plain_code import either
from markovia.kernels.sequences.segment_records import SegmentCounts, SegmentSweep, SegmentTables
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.threads import in_parallel

KERNELS = "markovia.kernels.sequences.segments"


class SegmentSums(NamedTuple):
    """Expected counts: labels by step; of all sequences, first labels, moves, lengths, and lengths of last segments.

    `log_probs` are the log normalisers, minus infinity for a sequence without a segmentation.
    """

    steps: Array
    starts: Array
    moves: Array
    lengths: Array
    last: Array
    log_probs: Array


class Segmentation(NamedTuple):
    """Labels of steps, where segments begin, and scores; several a sequence have a first axis, drawn ones no scores."""

    labels: Ints
    opens: Flags
    log_probs: Array


class SegmentChain:
    """A chain of segments, given by scores that need not be normalised; minus infinity for what may not be.

    Parameters
    ----------
    start
        Scores of the first segment's label, (labels,).
    moves
        Scores of a label (row) followed by a label (column), (labels, labels).
    lengths
        Scores of each label's lengths 1, 2, ..., D, (labels, D).
    last
        The same for the segment that ends a sequence; `lengths` by default. Where that segment may go on unseen, it has the
        logarithms of the probabilities that a segment is at least so long: `at_least(lengths)`.

    Examples
    --------
    >>> never = -np.inf
    >>> chain = SegmentChain(np.zeros(2), [[never, 0.0], [0.0, never]], np.log([[0.5, 0.5], [0.9, 0.1]]))
    >>> steps = np.array([[0.0, -3.0], [0.0, -3.0], [-3.0, 0.0], [0.0, -3.0]])
    >>> found = chain.best(steps)
    >>> found.labels.tolist(), found.opens.tolist()
    ([0, 0, 1, 0], [True, False, True, True])
    >>> expected = chain.expect(steps)
    >>> expected.steps.sum(axis=1).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, start: Any, moves: Any, lengths: Any, last: Any = None) -> None:
        self.start = np.ascontiguousarray(start, dtype=np.float64)
        self.moves = np.ascontiguousarray(moves, dtype=np.float64)
        self.lengths = np.ascontiguousarray(lengths, dtype=np.float64)
        self.last = self.lengths if last is None else np.ascontiguousarray(last, dtype=np.float64)

    def log_probs(self, scores: Any, offsets: Any = None) -> Array:
        """Return the logarithm of the sum over all segmentations of each sequence.

        `scores (steps, labels)` hold the steps of all sequences one after the other, sequence i those from `offsets[i]` to
        `offsets[i + 1]`; without offsets they are one sequence.
        """
        scores, offsets, tops = _read(scores, offsets)
        return self._forward(scores, offsets).log_probs + _totals(tops, offsets)

    def filter(self, scores: Any, offsets: Any = None) -> tuple[Array, Array]:
        """Return the distribution of each step's label given the steps up to it, and the logarithms of their normalisers.

        A segment that runs at a step has the score `last`, as if the sequence ended there.
        """
        scores, offsets, tops = _read(scores, offsets)
        now = self._forward(scores, offsets)
        running = np.empty_like(now.ends)
        fixed = (self._tables(offsets, scores), now, running)
        self._share("running_segments", offsets, lambda i: fixed)
        sums = np.logaddexp.reduce(running, axis=1, keepdims=True)
        off = now.tops + tops
        shifts = [np.cumsum(off[a:b]) for a, b in pairwise(offsets)]
        with np.errstate(invalid="ignore"):
            return np.exp(running - sums), sums[:, 0] + np.concatenate(shifts)

    def expect(self, scores: Any, offsets: Any = None) -> SegmentSums:
        """Return expected counts and the log normaliser of each sequence; impossible sequences count nothing."""
        scores, offsets, tops = _read(scores, offsets)
        now = self._forward(scores, offsets)
        k, longest = self.lengths.shape
        parts, most = len(self._parts(offsets)), int(np.diff(offsets).max())
        steps = np.zeros_like(scores)
        starts, moves = np.zeros((parts, k)), np.zeros((parts, k, k))
        counts, last = np.zeros((parts, k, longest)), np.zeros((parts, k, longest))

        def arguments(i: int) -> tuple[Any, ...]:
            rooms = (np.empty((most, k)), np.empty((most, k)), self._terms())
            expected = SegmentCounts(steps, starts[i], moves[i], counts[i], last[i])
            return (self._tables(offsets, scores), now, expected, *rooms)

        self._share("backward_segments", offsets, arguments, 2)
        log_probs = now.log_probs + _totals(tops, offsets)
        sums = [each.sum(axis=0) for each in (starts, moves, counts, last)]
        return SegmentSums(steps, sums[0], sums[1], sums[2], sums[3], log_probs)

    def best(self, scores: Any, offsets: Any = None) -> Segmentation:
        """Return a segmentation of each sequence with the largest score (Viterbi)."""
        scores, offsets, tops = _read(scores, offsets)
        labels, opens = np.zeros(len(scores), dtype=np.int64), np.zeros(len(scores), dtype=np.int64)
        log_probs = np.empty(len(offsets) - 1)
        size = (int(np.diff(offsets).max()), len(self.start))

        def arguments(i: int) -> tuple[Any, ...]:
            rooms = [np.empty(size, dtype=kind) for kind in (float, float, np.int64, np.int64)]
            room = (*rooms, np.empty(size[0]))
            return (self._tables(offsets, scores), room, labels, opens, log_probs)

        self._share("best_segments", offsets, arguments)
        return Segmentation(labels, opens.astype(bool), log_probs + _totals(tops, offsets))

    def ranked(self, scores: Any, n: int, offsets: Any = None) -> Segmentation:
        """Return the n segmentations of each sequence with the largest scores, best first, (n, steps).

        Scores have the shape (sequences, n), with minus infinity where there are fewer segmentations.
        """
        scores, offsets, tops = _read(scores, offsets)
        k, longest = self.lengths.shape
        most = int(np.diff(offsets).max())
        labels, opens = (np.zeros((n, len(scores)), dtype=np.int64) for _ in range(2))
        log_probs = np.empty((len(offsets) - 1, n))

        def arguments(i: int) -> tuple[Any, ...]:
            ways = tuple(np.empty((most, k, n), dtype=kind) for kind in (float, float, np.int64, np.int64))
            merge = (np.empty(longest), np.empty(max(k, longest), dtype=np.int64))
            return (self._tables(offsets, scores), ways, *merge, labels, opens, log_probs)

        self._share("ranked_segments", offsets, arguments, n)
        return Segmentation(labels, opens.astype(bool), log_probs + _totals(tops, offsets)[:, None])

    def draw(self, scores: Any, n: int, offsets: Any = None, seed: Seed = None) -> Segmentation:
        """Return n segmentations of each sequence drawn by their probabilities, (n, steps)."""
        scores, offsets, _ = _read(scores, offsets)
        now = self._forward(scores, offsets)
        if (now.log_probs == -np.inf).any():
            raise InvalidArgument(f"sequence {int(np.argmin(now.log_probs))} has no segmentation")
        seeds = generator(seed).integers(0, 2**64, size=(len(offsets) - 1, 4), dtype=np.uint64)
        labels, opens = (np.zeros((n, len(scores)), dtype=np.int64) for _ in range(2))
        found = (self._tables(offsets, scores), now, seeds, labels, opens)
        self._share("draw_segments", offsets, lambda i: found, n)
        return Segmentation(labels, opens.astype(bool), np.zeros(0))

    def _forward(self, scores: Array, offsets: Ints) -> SegmentSweep:
        found = SegmentSweep(
            np.empty_like(scores), np.empty_like(scores), np.empty(len(scores)), np.empty(len(offsets) - 1)
        )
        tables = self._tables(offsets, scores)
        self._share("forward_segments", offsets, lambda i: (tables, found, self._terms()))
        return found

    def _terms(self) -> Array:
        return np.empty(max(self.lengths.shape))

    def _tables(self, offsets: Ints, scores: Array) -> SegmentTables:
        return SegmentTables(offsets, self.start, self.moves, self.lengths, self.last, scores)

    def _cost(self) -> int:
        k, longest = self.lengths.shape
        return int(k * (k + longest))

    def _parts(self, offsets: Ints) -> list[tuple[int, int]]:
        return parts_of(offsets, self._cost())

    def _share(self, name: str, offsets: Ints, arguments: Callable[[int], Any], width: int = 1) -> None:
        work = either(f"{KERNELS}:{name}", 8 * width * int(offsets[-1]) * self._cost())
        parts = self._parts(offsets)
        in_parallel(lambda i, _: work(*parts[i], *arguments(i)), range(len(parts)), lambda: None)


def at_least(lengths: Any) -> Array:
    """Return the log probabilities of being at least 1, 2, ... long, from those of being so long.

    Examples
    --------
    >>> np.exp(at_least(np.log([[0.5, 0.3, 0.2]]))).round(6).tolist()
    [[1.0, 0.5, 0.2]]
    """
    logs = np.asarray(lengths, dtype=np.float64)
    return np.asarray(np.logaddexp.accumulate(logs[..., ::-1], axis=-1)[..., ::-1])


def _read(scores: Any, offsets: Any) -> tuple[Array, Ints, Array]:
    """Return scores less the largest of each step, which all segmentations share, the offsets, and what was taken off."""
    found = np.ascontiguousarray(scores, dtype=np.float64)
    tops = found.max(axis=1)
    tops[tops == -np.inf] = 0.0
    places = np.asarray([0, len(found)] if offsets is None else offsets, dtype=np.int64)
    return found - tops[:, None], places, tops


def _totals(tops: Array, offsets: Ints) -> Array:
    return np.asarray(np.add.reduceat(tops, offsets[:-1]))
