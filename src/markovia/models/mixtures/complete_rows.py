"""Rows of numbers for estimators that need every cell; one that is missing is named."""

from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.models.classifiers.input_checks import feature_names, numbers
from markovia.runtime.array_types import Array


def complete_rows(estimator: Any, X: Any, *, reset: bool, cure: str) -> Array:  # noqa: N803
    """Return the table of numbers, or say which cell is missing and what to do about it."""
    rows = numbers(estimator, X, reset=reset)
    gaps = np.isnan(rows)
    if gaps.any():
        i, j = (int(place) for place in np.argwhere(gaps)[0])
        raise InvalidArgument(
            f"row {i} of X misses {feature_names(estimator)[j]!r} (NaN), as do {int(gaps.sum()) - 1:,} other cells; {cure}"
        )
    return np.ascontiguousarray(rows)


def check_room(what: str, k: int, rows: Array) -> None:
    """Raise where there are more clusters or components than rows."""
    if k > len(rows):
        raise InvalidArgument(f"{what}={k} is more than the n_samples={len(rows)} rows of X; ask for fewer")
