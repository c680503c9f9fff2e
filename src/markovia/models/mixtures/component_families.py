"""What a component may be, how its rows are read, and what learning begins with.

A family `read`s rows for an estimator, makes a `blank` of so many components for learning to begin with, or makes them `of`
parameters, and gives `points`, numbers that stand for rows, for first clusters. `tries` is how many starts it can afford.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovia.learning.components.discrete import Bernoulli, Multinomial, Poisson
from markovia.learning.components.families import parameter
from markovia.learning.components.gaussian import Gaussian, StudentT
from markovia.learning.components.low_rank import LowRank
from markovia.learning.latent.group_starts import TRIES
from markovia.models.classifiers.feature_rows import check_counts, numbers
from markovia.models.classifiers.input_checks import sparse_ones
from markovia.models.mixtures.base import CATEGORIES
from markovia.runtime.array_types import Array

NUMBERS: dict[str, Any] = {
    "gaussian": Gaussian,
    "student-t": StudentT,
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "multinomial": Multinomial,
}
"""Families of rows of numbers."""
COUNTS = ("bernoulli", "poisson", "multinomial")
START_PRIOR: dict[str, Any] = {"a": 1.5, "b": 1.5, "shape": 1.1, "concentration": 1.1}
"""Half a row, or less, that starts have seen of everything."""
WHOLE_NUMBERS = (*COUNTS, "categorical")


@dataclass(frozen=True)
class ComponentRows:
    """A family of rows of numbers, by its name."""

    name: str
    kind: str = "full"
    threshold: float | None = None
    rank: int = 1
    start_prior: ClassVar[dict[str, Any]] = START_PRIOR

    @property
    def tries(self) -> int:
        """How many starts it can afford: a step of Student's t takes several times one of a Gaussian."""
        return TRIES // 2 if self.name == "student-t" else TRIES

    @property
    def priors(self) -> tuple[str, ...]:
        """What a prior may say."""
        return tuple(NUMBERS[self.name].priors)

    def read(self, estimator: Any, X: Any, *, reset: bool) -> Any:  # noqa: N803
        """Return checked rows."""
        whole = self.name in ("student-t", "multinomial")
        gaps = f"{self.name} components need every cell: fill them or drop the row" if whole else None
        if self.name == "student-t":
            gaps = f"{gaps}, or name columns one by one: component={{...: 'student-t'}}"
        rows = numbers(estimator, X, reset=reset, sparse=self.name in COUNTS, gaps=gaps, text=CATEGORIES)
        if self.threshold is not None:
            rows = _binarised(rows, self.threshold)
        if self.name in COUNTS:
            ones = self.name == "bernoulli"
            cure = "; binarise the column" if ones else ""
            check_counts(estimator, rows, f"cells of {self.name} components", ones=ones, cure=cure)
        return rows

    def blank(self, rows: Any, k: int) -> Any:
        """Return components that have learned nothing yet."""
        d = rows.shape[1]
        if self.kind == "low-rank":
            eye = np.repeat(np.eye(d)[None], k, axis=0)
            return LowRank(np.zeros((k, d)), eye, "full", min(self.rank, d))
        if self.name == "gaussian":
            return Gaussian(np.zeros((k, d)), np.repeat(np.eye(d)[None], k, axis=0), self.kind)  # type: ignore[arg-type]
        if self.name == "student-t":
            eye = np.repeat(np.eye(d)[None], k, axis=0)
            return StudentT(np.zeros((k, d)), eye, np.full(k, 30.0), self.kind)  # type: ignore[arg-type]
        return NUMBERS[self.name](np.full((k, d), 0.5 if self.name != "multinomial" else 1.0 / d))

    def of(self, k: int, params: Mapping[str, Any]) -> Any:
        """Return checked components from parameters."""
        own = NUMBERS[self.name]
        if self.kind == "low-rank":
            loadings, noise = params.get("loadings"), params.get("noise")
            if loadings is not None and noise is not None:
                loadings, noise = (
                    parameter(loadings, "'loadings'", (k, None, None)),
                    parameter(noise, "'noise'", (k, None)),
                )
                full = loadings @ loadings.swapaxes(1, 2) + noise[:, :, None] * np.eye(noise.shape[1])
                params = {**params, "covariances": full}
            made = own.of(k, params, kind="full")
            return LowRank(made.means, made.covariances, "full", min(self.rank, made.width), loadings, noise)
        return own.of(k, params, **({"kind": self.kind} if self.name in ("gaussian", "student-t") else {}))

    def points(self, rows: Any) -> Array:
        """Return numbers that stand for the rows, in which near rows are near."""
        cells = rows if isinstance(rows, np.ndarray) else rows.toarray()
        if self.name == "multinomial":
            return np.asarray(np.sqrt(cells / np.maximum(cells.sum(axis=1, keepdims=True), 1.0)))
        if self.name == "poisson":
            cells = np.sqrt(cells)
        filled = np.isnan(cells)
        if filled.any():
            means = np.nanmean(np.where(filled.all(axis=0), 0.0, cells), axis=0)
            cells = np.where(filled, means, cells)
        if self.name in ("gaussian", "student-t"):
            spread = cells.std(axis=0)
            cells = (cells - cells.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        return np.asarray(cells)


def _binarised(rows: Any, threshold: float) -> Any:
    if isinstance(rows, np.ndarray):
        return np.where(np.isnan(rows), np.nan, rows > threshold)
    return sparse_ones(rows, threshold)
