"""The topics of new documents, where the words of topics are known."""

from typing import Any

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

ROUNDS, TOL = 100, 1e-4


def topic_proportions(words: Any, offsets: Ints, topic_word: Array, prior: Array) -> Array:
    """Return the proportions of topics in each document, rows that sum to one.

    Parameters
    ----------
    words, offsets
        The words of all documents one after the other; document d has places `offsets[d]` to `offsets[d + 1]`.
    topic_word
        The probability of each word in each topic, (topics, words).
    prior
        The Dirichlet parameters of the topics of a document.

    Examples
    --------
    >>> topic_proportions([0, 0, 1], np.array([0, 2, 3]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2)).tolist()
    [[0.75, 0.25], [0.3333333333333333, 0.6666666666666666]]
    """
    k, longest = len(prior), int(np.diff(offsets).max(initial=1))
    found = np.zeros((len(offsets) - 1, k))
    work = either("markovia.kernels.collapsed.fold_in:proportions", 30 * len(words) * k)
    work(
        np.ascontiguousarray(words, dtype=np.int32), np.ascontiguousarray(offsets, dtype=np.int64),
        np.ascontiguousarray(topic_word.T), np.ascontiguousarray(prior, dtype=np.float64), ROUNDS, TOL, found,
        np.zeros((max(longest, 1), k)),
    )  # fmt: skip
    return found
