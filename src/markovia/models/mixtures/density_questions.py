"""What models of rows share that have a density: how probable rows are, and the criteria that follow from it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.runtime.array_types import Array


class DensityQuestions:
    """The verbs of models that say log p(x) of each row in `score_samples`; cells of rows may be missing."""

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {"allow_nan": True}

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return log p(x) of each row."""
        raise NotImplementedError

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean log p(x) a row, as scikit-learn's densities do; the total is `score_samples(X).sum()`."""
        return float(self.score_samples(X).mean())


class CountedDensityQuestions(DensityQuestions):
    """The verbs of models with a density whose free parameters are counted."""

    def _free(self) -> int:
        """Return the number of free parameters."""
        raise UnsupportedModel(f"{type(self).__name__} does not count its parameters")

    def bic(self, X: Any) -> float:  # noqa: N803
        """Return the Bayesian information criterion on rows; smaller is better."""
        logs = self.score_samples(X)
        return self._free() * float(np.log(len(logs))) - 2.0 * float(logs.sum())

    def aic(self, X: Any) -> float:  # noqa: N803
        """Return Akaike's information criterion on rows; smaller is better."""
        return 2.0 * self._free() - 2.0 * float(self.score_samples(X).sum())
