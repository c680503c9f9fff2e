"""Priors of topics in documents and of words in topics as users give them: numbers, and words that lead topics."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array


def prior_counts(
    given: Any, n: int, name: str = "doc_topic_prior", of: str = "topics", usual: float | None = None
) -> Array:
    """Return a prior count for each of n things: what is given, by default 1 / n.

    Examples
    --------
    >>> prior_counts(None, 4).tolist(), prior_counts(0.5, 2).tolist()
    ([0.25, 0.25, 0.25, 0.25], [0.5, 0.5])
    """
    try:
        found = np.full(
            n, (1.0 / n if usual is None else usual) if given is None else given, dtype=np.float64
        )
    except (TypeError, ValueError):
        found = np.full(n, np.nan)
    if not (np.isfinite(found) & (found > 0)).all():
        raise InvalidArgument(f"{name}= is a number above 0, or one for each of {n} {of}, not {given!r}")
    return found


def seeded_places(seeds: Any, n_topics: int, vocabulary: list[str]) -> list[tuple[int, int]]:
    """Return the topic and the position of each word that leads one."""
    known, found = Vocabulary.of(vocabulary), []
    for topic, words in seeds.items():
        if not isinstance(topic, int | np.integer) or not 0 <= topic < n_topics:
            raise InvalidArgument(f"seeds= names topic {topic!r}; topics are 0 ... {n_topics - 1}")
        listed = [words] if isinstance(words, str) else words
        found += [(int(topic), known.position(word)) for word in listed]
    return found


def word_priors(
    given: Any,
    vocabulary: list[str],
    n_topics: int,
    seeds: Mapping[int, Sequence[str]] | None,
    weight: float,
    usual: float,
) -> Array:
    """Return prior counts of words, (1 or words) x topics; words that lead a topic weigh more there."""
    words = prior_counts(given, len(vocabulary), "topic_word_prior", "words", usual)
    alike = (words == words[0]).all() and not seeds
    table = np.repeat(words[: 1 if alike else len(words), None], n_topics, axis=1)
    for topic, place in seeded_places(seeds, n_topics, vocabulary) if seeds else ():
        table[place, topic] += weight
    return table
