"""Scores of directed graphs, for `mk.learn_structure(score=...)` and `mk.score_graph`.

Examples
--------
>>> import markovia as mk
>>> rows = mk.examples.sprinkler().sample(2000, seed=1)
>>> found = mk.learn_structure(rows, method="hill-climb", score=mk.scores.BDeu(equivalent_sample_size=5))
>>> sorted(found.skeleton.edges)[:2]
[('cloudy', 'rain'), ('cloudy', 'sprinkler')]
"""

from markovia.structure.scores.conditional_gaussian_score import ConditionalGaussianBIC
from markovia.structure.scores.gaussian_scores import GaussianBIC
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.scores.quotient_nml import QNML
from markovia.structure.scores.scores import BIC
from markovia.structure.scores.table_scores import AIC, K2, BDeu, LogLikelihood

__all__ = [
    "AIC",
    "BIC",
    "K2",
    "QNML",
    "BDeu",
    "ConditionalGaussianBIC",
    "GaussianBIC",
    "LocalScore",
    "LogLikelihood",
]
