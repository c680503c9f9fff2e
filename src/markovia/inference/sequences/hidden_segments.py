"""Hidden chains whose states last: the answers of `HiddenChain`, where a visit of a state is a segment with a length.

Cost of every answer: steps times states times (states plus the longest length).
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.sequences.hidden_chain import FilteredChain, Observed
from markovia.inference.sequences.segments import SegmentChain, at_least
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import Seed


class ExpectedSegments(NamedTuple):
    """Sums of posteriors as `Expected` has them; `pairs (1, states, states)` are of segments, with counts of lengths."""

    sums: Array
    starts: Array
    pairs: Array
    log_probs: Array
    stuck: Ints
    lengths: Array
    last: Array


class HiddenSegments:
    """A chain of visits that is seen only through densities.

    Parameters
    ----------
    start, transition
        The distributions of the first state, and of the state after a visit of each.
    lengths
        The distributions of the lengths 1, 2, ..., D of a visit, (states, D).
    censored
        Whether the last visit may go on after the end of the sequence.

    Examples
    --------
    >>> chain = HiddenSegments([1, 0], [[0, 1], [1, 0]], [[0, 1], [1, 0]])
    >>> chain.best(Observed.of(np.zeros((5, 2))))[0].tolist()
    [0, 0, 1, 0, 0]
    """

    def __init__(self, start: Any, transition: Any, lengths: Any, *, censored: bool = True) -> None:
        self.start = np.asarray(start, dtype=np.float64)
        with np.errstate(divide="ignore"):
            logs = np.log(np.asarray(lengths, dtype=np.float64))
            parts = np.log(self.start), np.log(np.asarray(transition, dtype=np.float64)), logs
        self._filtering = SegmentChain(*parts, at_least(logs))
        self.segments = self._filtering if censored else SegmentChain(*parts)

    def filter(self, seen: Observed) -> FilteredChain:
        """Return the distribution of each state given what was seen up to it; what was seen before it alone is not kept."""
        scores = seen.logs[seen.codes]
        now, sums = self._filtering.filter(scores, seen.offsets)
        log_probs = self.log_probs(seen)
        stuck = np.full(len(log_probs), -1, dtype=np.int64)
        for s in np.flatnonzero(log_probs == -np.inf):
            here = sums[seen.offsets[s] : seen.offsets[s + 1]] == -np.inf
            stuck[s] = seen.offsets[s] + int(np.argmax(here)) if here.any() else seen.offsets[s + 1] - 1
        return FilteredChain(now, np.empty((0, now.shape[1])), log_probs, stuck)

    def log_probs(self, seen: Observed) -> Array:
        """Return log p of each sequence; minus infinity for an impossible one."""
        return self.segments.log_probs(seen.logs[seen.codes], seen.offsets)

    def smooth(self, seen: Observed) -> ExpectedSegments:
        """Return the distribution of each state given all that was seen, in `sums (steps, states)`."""
        found = self.segments.expect(seen.logs[seen.codes], seen.offsets)
        stuck = np.full(len(found.log_probs), -1, dtype=np.int64)
        if (found.log_probs == -np.inf).any():
            stuck = self.filter(seen).stuck
        return ExpectedSegments(
            found.steps, found.starts, found.moves[None], found.log_probs, stuck, found.lengths, found.last
        )

    def expect(self, seen: Observed, weights: Array | None = None) -> ExpectedSegments:
        """Return expected counts given all that was seen, those of states by observation; sequences may have weights."""
        if weights is not None:
            return self._weighed(seen, weights)
        found = self.smooth(seen)
        if seen.apart:
            sums = np.zeros_like(seen.logs)
            sums[seen.codes] = found.sums
        else:
            n = len(seen.logs)
            sums = np.column_stack([np.bincount(seen.codes, column, n) for column in found.sums.T])
        return found._replace(sums=sums)

    def _weighed(self, seen: Observed, weights: Array) -> ExpectedSegments:
        parts = [
            self.expect(Observed(seen.logs, seen.codes[a:b], np.array([0, b - a])))
            for a, b in pairwise(seen.offsets)
        ]
        stuck = [
            int(one.stuck[0]) + (a if one.stuck[0] >= 0 else 0)
            for one, a in zip(parts, seen.offsets, strict=False)
        ]

        def total(name: str) -> Array:
            return np.tensordot(weights, np.stack([getattr(one, name) for one in parts]), 1)

        return ExpectedSegments(
            total("sums"),
            total("starts"),
            total("pairs"),
            np.concatenate([one.log_probs for one in parts]),
            np.array(stuck),
            total("lengths"),
            total("last"),
        )

    def best(self, seen: Observed) -> tuple[Ints, Array]:
        """Return the states of a most probable segmentation of each sequence and log p(segmentation, seen)."""
        found = self.segments.best(seen.logs[seen.codes], seen.offsets)
        return found.labels, found.log_probs

    def draw(self, seen: Observed, n: int, seed: Seed = None) -> Ints:
        """Return n paths drawn given what was seen, (n, steps)."""
        return self.segments.draw(seen.logs[seen.codes], n, seen.offsets, seed).labels

    def pairs(self, seen: Observed) -> Array:
        """Refuse, for states next to each other are no chain here."""
        raise UnsupportedModel(
            "neighbouring states together are not answered with explicit durations; unroll(T) gives the network that does"
        )

    def ranked(self, seen: Observed, n: int) -> tuple[Ints, Array]:
        """Return the states (n, steps) of the n most probable segmentations of each sequence, and log p of each."""
        found = self.segments.ranked(seen.logs[seen.codes], n, seen.offsets)
        return found.labels, found.log_probs
