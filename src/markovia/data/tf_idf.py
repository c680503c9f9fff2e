"""Words in documents as numbers: term frequency times inverse document frequency.

A word that is in every document tells nothing and weighs zero; a word that is frequent here and rare elsewhere weighs
most. The natural logarithm is used: `tf * log(1 / df)`. Cost: linear in the number of words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

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
