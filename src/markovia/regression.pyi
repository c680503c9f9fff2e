"""The names that `markovia.regression` hands out, each with its home."""

from markovia.learning.regression.glm import GLM as GLM
from markovia.learning.regression.regressions import (
    LinearRegression as LinearRegression,
    LogisticRegression as LogisticRegression,
    PoissonRegression as PoissonRegression,
    SoftmaxRegression as SoftmaxRegression,
)
