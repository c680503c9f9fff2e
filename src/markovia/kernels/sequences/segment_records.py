"""What kernels of labelled segments work on: k labels, lengths of at most D steps, n steps of all sequences."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class SegmentTables(NamedTuple):
    """Scores of segmentations, as logarithms that need not be normalised."""

    offsets: Ints  # (sequences + 1,): where each sequence begins
    start: Array  # (k,): scores of the first label
    moves: Array  # (k, k): of a label after a label
    lengths: Array  # (k, D): of lengths
    last: Array  # (k, D): of the length of the segment that ends a sequence
    scores: Array  # (n, k): what each step adds to a segment that covers it


class SegmentSweep(NamedTuple):
    """The forward pass, less what was taken off."""

    begins: Array  # (n, k): logarithms of what leads to a segment that begins at a step
    ends: Array  # (n, k): or ends there
    tops: Array  # (n,): what is taken off the scores of each step
    log_probs: Array  # (sequences,): log sums over all segmentations


class SegmentCounts(NamedTuple):
    """Expected counts: of labels by step (n, k), first labels (k,), pairs (k, k), lengths and last lengths (k, D)."""

    steps: Array
    starts: Array
    pairs: Array
    counts: Array
    last_counts: Array
