"""Documents drawn from topics: the topic of each word by its document's proportions, the word by its topic.

All words are drawn at once by inverting cumulative sums. Cost: words x log(topics), and words x log(vocabulary).
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import numbers


class DrawnWords(NamedTuple):
    """The words of documents after one another, the topic of each, documents x topics, and what else was drawn of each."""

    words: Ints
    topics: Ints
    proportions: Array
    y: Any = None


def draw_from_rows(laws: Array, rows: Ints, rng: np.random.Generator) -> Ints:
    """Draw a column by the law that a row of `laws` is, for each of some rows.

    Examples
    --------
    >>> laws = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    >>> draw_from_rows(laws, np.array([0, 0, 1, 1]), np.random.default_rng(0)).tolist()
    [1, 1, 0, 0]
    """
    sums = laws.cumsum(axis=1)
    sums /= sums[:, -1:]
    # row r ends at r + 1 in one long ascending array: one search finds the columns of all
    long = (sums + np.arange(len(laws))[:, None]).ravel()
    place = np.searchsorted(long, rows + rng.random(len(rows)), side="right") - rows * laws.shape[1]
    last = laws.shape[1] - 1 - (laws[:, ::-1] > 0.0).argmax(axis=1)  # rounding leads to no impossible column
    return np.asarray(np.minimum(place, last[rows]))


def draw_words(lengths: Ints, proportions: Array, topic_word: Array, rng: np.random.Generator) -> DrawnWords:
    """Draw documents of some lengths, given documents x topics and topics x words."""
    topics = draw_from_rows(proportions, np.repeat(np.arange(len(lengths)), lengths), rng)
    return DrawnWords(draw_from_rows(topic_word, topics, rng), topics, proportions)


def document_lengths(length: Any, n: int) -> Ints:
    """Return how many words each of n documents has: one number for all, or one each.

    Examples
    --------
    >>> document_lengths(3, 2).tolist(), document_lengths([4, 0], 2).tolist()
    ([3, 3], [4, 0])
    """
    rule = f"length= is a whole number, 0 or more, or one for each of {n} documents"
    given = numbers(length, rule)
    whole = np.isfinite(given) & (given >= 0) & (given == np.floor(given))
    if given.shape not in ((), (n,)) or not whole.all():
        raise InvalidArgument(rule)
    return np.broadcast_to(given, (n,)).astype(np.int64)
