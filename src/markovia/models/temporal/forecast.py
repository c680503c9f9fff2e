"""What comes after sequences: means, covariances and intervals of the steps ahead."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.inference.sequences.drawn_paths import DrawnForecast
from markovia.inference.sequences.padded import PerSequence
from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class Forecast(DrawnForecast):
    """What comes after each sequence: one array a sequence, with one row a step ahead.

    Attributes
    ----------
    mean, cov
        Of the observations.
    lower, upper
        The ends of intervals that hold each observed number with probability `level`.
    state_mean, state_cov
        Of the states.
    regimes
        The probability of each regime, where the model has some.
    """

    mean: PerSequence
    cov: PerSequence
    lower: PerSequence
    upper: PerSequence
    state_mean: PerSequence
    state_cov: PerSequence
    level: float
    regimes: PerSequence | None = None


def normal_forecast(
    mean: Any, cov: Any, state_mean: Any, state_cov: Any, level: float, single: bool
) -> Forecast:
    """Return a forecast whose intervals are those of normal laws."""
    from scipy.special import ndtri

    width = [float(ndtri(0.5 + level / 2)) * np.sqrt(np.einsum("tii->ti", c)) for c in cov]
    lower = [m - w for m, w in zip(mean, width, strict=True)]
    upper = [m + w for m, w in zip(mean, width, strict=True)]

    def each(arrays: Any) -> PerSequence:
        return PerSequence(arrays, single=single)

    return Forecast(each(mean), each(cov), each(lower), each(upper), each(state_mean), each(state_cov), level)


def longer(rows: Sequences, values: Array, more: Array) -> Sequences:
    """Return sequences with the same steps after each."""
    parts = [np.concatenate([part, more]) for part in rows.split(values)]
    offsets = rows.offsets + len(more) * np.arange(len(rows.offsets))
    return Sequences(np.concatenate(parts), offsets, rows.names, rows.columns, rows.single)
