"""New documents under known topics: their proportions by Gibbs sampling, and their probability from left to right."""

from typing import Any

import numpy as np

from markovia.data.corpus import Corpus
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

BURN_IN, SWEEPS = 15, 25
PIECE = 512
"""Documents of a piece of work."""


def average_proportions(
    corpus: Corpus, table: Array, prior: Array, seed: object, threads: int | None = None
) -> Array:
    """Return the expected proportions of topics of each document, given words x topics probabilities.

    All documents begin from the same random numbers, so what a document gets does not depend on the others.
    """
    from markovia.kernels.collapsed.topic_documents import average_topics

    wide, padded = _padded(table, prior)
    k, n = len(prior), len(corpus)
    average, topics = np.zeros((n, wide.shape[1])), np.zeros(len(corpus.words), dtype=np.int32)
    seeds = np.repeat(np.asarray(seed, dtype=np.uint64)[None], n, axis=0)

    def work(low: int, room: object) -> None:
        high = min(low + PIECE, n)
        average_topics(
            corpus.words, corpus.offsets, low, high, wide, padded, BURN_IN, SWEEPS, k - 1, average, topics, seeds, room
        )  # fmt: skip

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
