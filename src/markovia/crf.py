"""Conditional random fields: labels of sequences, segments, grids and any graph, given what is seen.

Examples
--------
>>> import markovia as mk
>>> words = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
>>> tagger = mk.crf.ChainCRF().fit(words, [["D", "N", "V"], ["D", "N", "V"]])
>>> tagger.predict([["a", "dog", "sleeps"]])[0].tolist()
['D', 'N', 'V']
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
