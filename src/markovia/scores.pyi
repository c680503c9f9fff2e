"""The names that `markovia.scores` hands out, each with its home."""

from markovia.structure.scores.conditional_gaussian_score import (
    ConditionalGaussianBIC as ConditionalGaussianBIC,
)
from markovia.structure.scores.gaussian_scores import GaussianBIC as GaussianBIC
from markovia.structure.scores.local_score import LocalScore as LocalScore
from markovia.structure.scores.quotient_nml import QNML as QNML
from markovia.structure.scores.scores import BIC as BIC
from markovia.structure.scores.table_scores import (
    AIC as AIC,
    K2 as K2,
    BDeu as BDeu,
    LogLikelihood as LogLikelihood,
)
