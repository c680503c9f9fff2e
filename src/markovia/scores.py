"""Scores of directed graphs, for `mk.learn_structure(score=...)` and `mk.score_graph`.

Examples
--------
>>> import markovia as mk
>>> rows = mk.examples.sprinkler().sample(2000, seed=1)
>>> found = mk.learn_structure(rows, method="hill-climb", score=mk.scores.BDeu(equivalent_sample_size=5))
>>> sorted(found.skeleton.edges)[:2]
[('cloudy', 'rain'), ('cloudy', 'sprinkler')]
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
