"""Co-occurrence networks: words (names, tags, species) are joined where they occur together.

What "together" means decides the graph: in the same document, the same sentence, or within so many words. An edge says that
two words share places, not that they depend on each other given the rest, as the edges of the other undirected methods do.
Weights are counts, Jaccard's index, or normalised pointwise mutual information (Bouma 2009), which is 0 for words that occur
independently. Cost: occurrences of the words, times the window; memory: words squared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import InvalidArgument
from markovia.learning.latent.topic_coherence import normalised_pmi, words_together
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Choice, Either, NumberRange, Whole, check
from markovia.runtime.clock import now
from markovia.structure.task.result import LearnedStructure
from markovia.structure.task.undirected_edges import undirected_graph

SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
"""What lies between two sentences."""


@dataclass(frozen=True, eq=False)
class CooccurrenceDetails:
    """In how many places two words are together (one word: on the diagonal), and how many places there are."""

    together: Ints
    n_places: int


def cooccurrence_network(
    documents: Any,
    words: Sequence[str] | None = None,
    *,
    within: Literal["document", "sentence"] | int = "document",
    measure: Literal["count", "jaccard", "npmi"] = "count",
    threshold: float = 0.0,
    min_count: int = 2,
) -> LearnedStructure:
    """Return the graph of words that occur together.

    Parameters
    ----------
    documents
        A `Corpus`, or what `Corpus.read` takes; for sentences texts.
    words
        The words that are nodes; all by default. Where one has a capital letter, capitals count.
    within
        "document", "sentence", or a number: windows of so many words, one beginning at each word.
    measure
        What edges weigh: "count", places that have both; "jaccard", of places that have one of them the share that has
        both; "npmi", normalised pointwise mutual information.
    threshold
        An edge weighs more than this.
    min_count
        An edge has both words in so many places at least.

    Returns
    -------
    LearnedStructure
        `weights` as `measure` says; `details` has the counts.

    Examples
    --------
    >>> texts = ["Anna met Ben. Cleo slept.", "Ben met Anna. Cleo met Dan.", "Dan met Cleo."]
    >>> people = ["Anna", "Ben", "Cleo", "Dan"]
    >>> cooccurrence_network(texts, people, within="sentence").edges
    [('Anna', 'Ben'), ('Cleo', 'Dan')]
    >>> len(cooccurrence_network(texts, people).edges)
    4
    """
    began, how = now(), f"{within} words" if isinstance(within, int) else f"a {within}"
    check("within", within, Either((Choice(("document", "sentence")), Whole(2))))
    check("measure", measure, Choice(("count", "jaccard", "npmi")))
    check("min_count", min_count, Whole(1))
    check("threshold", threshold, NumberRange(-1.0, said="a number, -1 or more"))
    if within == "sentence":
        documents = _sentences(documents)
    listed = None if words is None else list(words)
    lower = listed is None or all(w == w.lower() for w in listed)
    corpus = Corpus.read(documents, lowercase=lower) if not isinstance(documents, Corpus) else documents
    nodes = list(corpus.vocabulary) if listed is None else listed
    if len(nodes) < 2 or len(set(nodes)) < len(nodes):
        raise InvalidArgument("a co-occurrence network is of two different words or more")
    known = Vocabulary.of(corpus.vocabulary)
    places = np.array([known.position(word) for word in nodes])
    # counted in the order of the vocabulary, and put into that of the nodes
    used, order = np.unique(places, return_inverse=True)
    counted, n = words_together(corpus, used, within if isinstance(within, int) else None)
    together = counted[np.ix_(order, order)]
    alone = np.diag(together)
    if measure == "npmi":
        strength = normalised_pmi(together[None] / max(n, 1))[0]
    elif measure == "jaccard":
        strength = together / np.maximum(alone[:, None] + alone[None, :] - together, 1)
    else:
        strength = together.astype(np.float64)
    keep = (together >= min_count) & (strength > threshold)
    np.fill_diagonal(keep, False)
    return LearnedStructure(
        undirected_graph(nodes, keep),
        f"co-occurrence within {how}",
        weights=np.where(keep, strength, 0.0),
        seconds=now() - began,
        details=CooccurrenceDetails(together, n),
    )


def _sentences(documents: Any) -> list[str]:
    """Return the sentences of texts, each as a document."""
    texts = [documents] if isinstance(documents, str) else documents
    if isinstance(texts, Corpus) or not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(
            "sentences are cut from texts; give texts, or within= 'document' or a number of words"
        )
    return [part for text in texts for part in SENTENCE.split(text) if part.strip()]
