"""Topics of documents: corpora, LDA and its relatives, factorisations of counts.

Examples
--------
>>> import markovia as mk
>>> mk.topics.Corpus.read(["the cat sat", "the dog sat on the cat"], stop_words=["the", "on"])
Corpus(2 documents, 5 words, 3 in the vocabulary)
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
