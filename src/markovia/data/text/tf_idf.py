"""Words in documents as numbers: term frequency times inverse document frequency.

A word that is in every document tells nothing and weighs zero; a word that is frequent here and rare elsewhere weighs
most. The natural logarithm is used: `tf * log(1 / df)`. Cost: linear in the number of words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument


def tf_idf(term_frequency: float, document_frequency: float) -> float:
    """Return the weight of one word from its share in the document and the share of documents that have it.

    Examples
    --------
    >>> tf_idf(0.07, 1.0)
    0.0
    >>> round(tf_idf(0.02, 0.0001), 4)
    0.1842
    """
    if not 0.0 <= term_frequency <= 1.0 or not 0.0 < document_frequency <= 1.0:
        raise InvalidArgument(
            "frequencies are shares: 0 <= term_frequency <= 1 and 0 < document_frequency <= 1"
        )
    return term_frequency * log(1.0 / document_frequency)


def tf_idf_weights(documents: Iterable[Sequence[str]]) -> list[dict[str, float]]:
    """Return the weight of every word of every document, given as lists of words.

    Examples
    --------
    >>> weights = tf_idf_weights([["the", "cat"], ["the", "dog", "the"]])
    >>> weights[0]["the"], round(weights[0]["cat"], 4)
    (0.0, 0.3466)
    """
    bags = [Counter(words) for words in documents]
    having = Counter(word for bag in bags for word in bag)
    return [
        {word: tf_idf(n / bag.total(), having[word] / len(bags)) for word, n in bag.items()} for bag in bags
    ]


def tf_idf_matrix(counts: Any, document_frequency: Any = None) -> Any:
    """Return the weights of a sparse matrix of counts, documents x words; documents without words weigh nothing.

    `document_frequency` is the share of documents that have each word, by default among these; words that none has
    count as in one document.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> tf_idf_matrix(csr_array([[1, 1, 0], [2, 0, 1]])).toarray().round(4).tolist()
    [[0.0, 0.3466, 0.0], [0.0, 0.0, 0.231]]
    """
    from scipy.sparse import csr_array

    if document_frequency is None:
        document_frequency = np.bincount(counts.indices[counts.data > 0], minlength=counts.shape[1])
        document_frequency = document_frequency / max(counts.shape[0], 1)
    lengths = np.repeat(np.asarray(counts.sum(axis=1)).ravel(), np.diff(counts.indptr))
    specific = -np.log(np.where(document_frequency > 0, document_frequency, 1.0))[counts.indices]
    weights = counts.data / np.maximum(lengths, 1) * specific
    return csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)
