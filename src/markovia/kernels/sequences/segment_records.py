"""What kernels of labelled segments work on: k labels, lengths of at most D steps, n steps of all sequences."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class SegmentTables(NamedTuple):
    """Scores of segmentations, as logarithms that need not be normalised.

    | field | shape | holds |
    |---|---|---|
    | offsets | (sequences + 1,) | where each sequence begins |
    | start, moves | (k,), (k, k) | scores of the first label, and of a label after a label |
    | lengths, last | (k, D) | scores of lengths, and those of the segment that ends a sequence |
    | scores | (n, k) | what each step adds to a segment that covers it |
    """

    offsets: Ints
    start: Array
    moves: Array
    lengths: Array
    last: Array
    scores: Array


class SegmentSweep(NamedTuple):
    """The forward pass, less what was taken off.

    | field | shape | holds |
    |---|---|---|
    | begins, ends | (n, k) | logarithms of what leads to a segment that begins, or ends, at a step |
    | tops | (n,) | what is taken off the scores of each step |
    | log_probs | (sequences,) | log sums over all segmentations |
    """

    begins: Array
    ends: Array
    tops: Array
    log_probs: Array


class SegmentCounts(NamedTuple):
    """Expected counts: of labels by step (n, k), first labels (k,), pairs (k, k), lengths and last lengths (k, D)."""

    steps: Array
    starts: Array
    pairs: Array
    counts: Array
    last_counts: Array
