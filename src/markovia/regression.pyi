"""The names that `markovia.regression` hands out, each with its home."""

from markovia.learning.regression.glm import GLM as GLM
from markovia.learning.regression.likelihood import GlmLikelihood as GlmLikelihood
from markovia.learning.regression.regressions import (
    LinearRegression as LinearRegression,
    LogisticRegression as LogisticRegression,
    PoissonRegression as PoissonRegression,
    SoftmaxRegression as SoftmaxRegression,
)
from markovia.structure.undirected.lasso_path import (
    lasso_conditions as lasso_conditions,
    lasso_path as lasso_path,
)
