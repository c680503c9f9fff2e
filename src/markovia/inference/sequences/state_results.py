"""What filters and smoothers know about the states of sequences, and what decoding makes of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.inference.sequences.drawn_paths import DrawnPath
from markovia.inference.sequences.padded import PerSequence
from markovia.runtime.array_types import Array


@dataclass(frozen=True, repr=False)
class FilteredStates(DrawnPath):
    """The states given what was observed up to each step; one array a sequence.

    Attributes
    ----------
    mean, cov
        Of the state after the step's observation.
    predicted_mean, predicted_cov
        Of the state before the step's observation.
    expected, expected_cov
        Of the step's observation given those before.
    log_prob
        The log likelihood of each sequence, as the method approximates it.
    regimes
        The probability of each regime, where the model has some.
    components
        The weights, means and covariances of a sum of Gaussians, where the method has one: three arrays a sequence.
    """

    y: PerSequence
    mean: PerSequence
    cov: PerSequence
    predicted_mean: PerSequence
    predicted_cov: PerSequence
    expected: PerSequence
    expected_cov: PerSequence
    log_prob: Array
    regimes: PerSequence | None = None
    components: list[tuple[Any, Any, Any]] | None = None

    def __repr__(self) -> str:
        return f"FilteredStates(sequences={len(self.mean)}, log_prob={float(self.log_prob.sum()):.6g})"

    def __iter__(self) -> Iterator[PerSequence]:
        """Yield means and covariances, so that they may be taken apart as a pair."""
        yield from (self.mean, self.cov)

    @property
    def innovations(self) -> PerSequence:
        """What was observed less what was expected; NaN where nothing was observed."""
        return PerSequence(
            [y - e for y, e in zip(self.y, self.expected, strict=True)], single=self.mean.single
        )

    @property
    def standardized(self) -> PerSequence:
        """The innovations made independent with variance 1; NaN where not all of a step was observed."""
        found = [
            np.linalg.solve(np.linalg.cholesky(cov), v[:, :, None])[:, :, 0]
            for v, cov in zip(self.innovations, self.expected_cov, strict=True)
        ]
        return PerSequence(found, single=self.mean.single)


@dataclass(frozen=True, repr=False)
class SmoothedStates(DrawnPath):
    """The states given whole sequences; one array a sequence.

    Attributes
    ----------
    mean, cov
        Of each state.
    log_prob
        The log likelihood of each sequence, as the method approximates it.
    regimes
        The probability of each regime, where the model has some.
    """

    mean: PerSequence
    cov: PerSequence
    log_prob: Array
    regimes: PerSequence | None = None

    def __repr__(self) -> str:
        return f"SmoothedStates(sequences={len(self.mean)}, log_prob={float(self.log_prob.sum()):.6g})"

    def __iter__(self) -> Iterator[PerSequence]:
        """Yield means and covariances, so that they may be taken apart as a pair."""
        yield from (self.mean, self.cov)


class DecodedPaths(list[NDArray[Any]]):
    """The states of each sequence, one array each.

    Attributes
    ----------
    log_prob
        log p(states, x) of each sequence; None where states were decoded one by one, and are no path, and where it would
        take a normaliser.
    gap
        How much larger the log probability of another path can be, for each sequence: zero where the path is proved to be
        a best one. None where states were decoded one by one.
    """

    log_prob: Array | None = None
    gap: Array | None = None

    @classmethod
    def of(
        cls, paths: list[NDArray[Any]], log_prob: Array | None = None, gap: Array | None = None
    ) -> "DecodedPaths":
        """Return paths with their log probabilities and gaps."""
        found = cls(paths)
        found.log_prob, found.gap = log_prob, gap
        return found
