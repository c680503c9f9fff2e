"""New documents under known topics: their proportions by Gibbs sampling, and their probability from left to right."""

from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.threads import in_parallel

BURN_IN, SWEEPS = 15, 25
PIECE = 512
"""Documents of a piece of work."""
SEED = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
"""The random numbers with which every document begins: what one gets does not depend on the others."""


def average_proportions(
    words: Codes, offsets: Ints, table: Array, prior: Array, threads: int | None = None, seed: Any = SEED
) -> Array:
    """Return the expected proportions of topics of each document, given words x topics probabilities.

    Examples
    --------
    >>> table = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> average_proportions(np.array([0, 0, 0, 1]), np.array([0, 3, 4, 4]), table, np.ones(2)).argmax(axis=1).tolist()
    [0, 1, 0]
    """
    from markovia.kernels.collapsed.topic_documents import average_topics

    wide, padded = _padded(table, prior)
    k, n = len(prior), len(offsets) - 1
    average, topics = np.zeros((n, wide.shape[1])), np.zeros(len(words), dtype=np.int32)
    seeds = np.repeat(np.array(seed, dtype=np.uint64)[None], n, axis=0)
    words, offsets = (
        np.ascontiguousarray(words, dtype=np.int32),
        np.ascontiguousarray(offsets, dtype=np.int64),
    )

    def work(low: int, room: object) -> None:
        high = min(low + PIECE, n)
        average_topics(
            words, offsets, low, high, wide, padded, BURN_IN, SWEEPS, k - 1, average, topics, seeds, room
        )

    in_parallel(work, range(0, n, PIECE), lambda: np.zeros((2, wide.shape[1]), dtype=np.float32), threads)
    found = average[:, :k]
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def left_to_right(
    corpus: Corpus,
    table: Array,
    prior: Array,
    particles: int,
    rng: np.random.Generator,
    threads: int | None = None,
) -> Array:
    """Return the log probability of each document, given words x topics probabilities."""
    from markovia.kernels.collapsed.topic_documents import left_to_right as kernel

    wide, padded = _padded(table, prior)
    n, logs = len(corpus), np.zeros(len(corpus.words))
    seeds = rng.integers(0, 2**64, size=(n, 4), dtype=np.uint64)
    longest = int(corpus.lengths.max(initial=0))

    def room() -> tuple[Ints, object]:
        return np.zeros(longest, dtype=np.int64), np.zeros((2, wide.shape[1]), dtype=np.float32)

    def work(low: int, own: tuple[Ints, object]) -> None:
        high = min(low + PIECE, n)
        kernel(
            corpus.words, corpus.offsets, low, high, wide, padded, particles, len(prior) - 1, own[0], logs, seeds, own[1]
        )  # fmt: skip

    in_parallel(work, range(0, n, PIECE), room, threads)
    return np.bincount(corpus.owners, weights=logs, minlength=n).astype(np.float64)


def _padded(table: Array, prior: Array) -> tuple[Any, Any]:
    """Return both with zeros up to a multiple of sixteen topics, in single precision."""
    width = -(-len(prior) // 16) * 16
    wide: Any = np.zeros((len(table), width), dtype=np.float32)
    wide[:, : len(prior)] = table
    padded = np.zeros(width, dtype=np.float32)
    padded[: len(prior)] = prior
    return wide, padded
