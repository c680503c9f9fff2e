"""The likelihood of labelled segmentations: semi-Markov conditional random fields.

A segmentation scores the sum of its tokens' scores `W[a] . x_t` in the labels of their segments, of `T[a, b]` for segments
that follow each other, of `s[a]` for the first one, and of `L[a, d]` for a segment of label a and d tokens. The objective is

    sum over sequences of ( log Z(x) - score(x, segmentation) )  +  ||W, T, s, L||^2 / C

with the sums of `inference/sequences/segments.py`; its gradient is expected minus observed features (Sarawagi and Cohen
2004). Cost: tokens times labels times (labels plus the longest segment plus features of a token).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.tokens import Tokens
from markovia.inference.sequences.segments import SegmentChain
from markovia.runtime.array_types import Array, Flags, Ints


@dataclass(frozen=True)
class SegmentWeights:
    """Weights of columns (one row each), of pairs of labels, of first labels, and of labels' lengths."""

    columns: Array
    moves: Array
    start: Array
    lengths: Array

    def chain(self) -> SegmentChain:
        """Return the chain of segments."""
        return SegmentChain(self.start, self.moves, self.lengths)


@dataclass(frozen=True)
class Segments:
    """The segments of all sequences: their labels, first tokens, lengths, and which begin a sequence."""

    labels: Ints
    starts: Ints
    sizes: Ints
    first: Flags

    @classmethod
    def of(cls, codes: Ints, opens: NDArray[np.bool_], offsets: Ints) -> "Segments":
        """Read them from the labels of tokens and where segments begin."""
        starts = np.flatnonzero(opens)
        first = np.zeros(len(codes) + 1, dtype=bool)
        first[offsets[:-1]] = True
        return cls(codes[starts], starts, np.diff(np.append(starts, len(codes))), first[starts])


class SegmentObjective:
    """The objective for given data: calling it gives its value and gradient."""

    def __init__(
        self,
        tokens: Tokens,
        codes: Ints,
        segments: Segments,
        k: int,
        longest: int,
        *,
        C: float,  # noqa: N803
        repeat: bool,
    ) -> None:
        self.tokens, self.k, self.longest, self.decay = tokens, k, longest, 1.0 / C
        self.barred = np.where(np.eye(k, dtype=bool) & (not repeat), -np.inf, 0.0)
        sizes = (tokens.width * k, k * k, k, k * longest)
        self.bounds = np.cumsum((0, *sizes)).tolist()
        self.size = int(self.bounds[-1])
        steps = np.zeros((len(codes), k))
        steps[np.arange(len(codes)), codes] = 1.0
        moves, starts, lengths = segment_counts(segments, k, longest)
        self._observed = self._pack(steps, moves, starts, lengths)

    def unpack(self, theta: Array) -> SegmentWeights:
        """Return the weights that a vector stands for."""
        k = self.k
        columns, moves, start, lengths = (
            theta[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        )
        return SegmentWeights(
            columns.reshape(-1, k), moves.reshape(k, k) + self.barred, start, lengths.reshape(k, self.longest)
        )

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        weights = self.unpack(theta)
        scores = self.tokens.scores(weights.columns)
        found = weights.chain().expect(scores, self.tokens.chains)
        value = float(found.log_probs.sum() - self._observed @ theta + self.decay * (theta @ theta))
        expected = self._pack(found.steps, found.moves, found.starts, found.lengths + found.last)
        return value, expected - self._observed + 2.0 * self.decay * theta

    def _pack(self, steps: Array, moves: Array, starts: Array, lengths: Array) -> Array:
        return np.concatenate([self.tokens.sums(steps).ravel(), moves.ravel(), starts, lengths.ravel()])


def segment_counts(segments: Segments, k: int, longest: int) -> tuple[Array, Array, Array]:
    """Return how often labels follow each other, are first, and have each length."""
    moves, starts, lengths = np.zeros((k, k)), np.zeros(k), np.zeros((k, longest))
    later = np.flatnonzero(~segments.first)
    np.add.at(moves, (segments.labels[later - 1], segments.labels[later]), 1.0)
    np.add.at(starts, segments.labels[segments.first], 1.0)
    np.add.at(lengths, (segments.labels, segments.sizes - 1), 1.0)
    return moves, starts, lengths
