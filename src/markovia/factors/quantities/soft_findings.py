"""What may be found about a quantity besides its value: that it lies between two numbers, or a likelihood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

import numpy as np

from markovia.errors import InvalidEvidence


@dataclass(frozen=True)
class Interval:
    """Evidence that a quantity lies between two numbers.

    Examples
    --------
    >>> Interval(0.0, 2.5)
    Interval(low=0.0, high=2.5)
    >>> Interval(low=3).high
    inf
    """

    low: float = -inf
    high: float = inf

    def __post_init__(self) -> None:
        for side, number in (("low", self.low), ("high", self.high)):
            try:
                object.__setattr__(self, side, float(number))
            except (TypeError, ValueError):
                raise InvalidEvidence(f"Interval(low, high) takes two numbers, not {number!r}") from None
        if isnan(self.low) or isnan(self.high) or not self.low < self.high:
            raise InvalidEvidence(f"Interval({self.low:g}, {self.high:g}) is empty; low must be below high")


@dataclass(frozen=True, eq=False)
class Soft:
    """Evidence in the form of a likelihood: how probable the signal is for each value of the quantity.

    Parameters
    ----------
    distribution
        A distribution from `markovia.distributions`; its density at a value weighs that value. `Soft(dist.Normal(3, 0.1))`
        on x is the same as seeing a child of x, Normal around it with deviation 0.1, at 3.
    """

    distribution: Any

    def __post_init__(self) -> None:
        if not hasattr(self.distribution, "log_prob"):
            if isinstance(self.distribution, Mapping | Sequence | np.ndarray):
                raise InvalidEvidence(
                    f"Soft(...) is for numbers; likelihoods of states are given as they are: {self.distribution!r}, without "
                    "Soft"
                )
            raise InvalidEvidence(
                f"Soft(...) takes a distribution, such as Soft(dist.Normal(3, 0.1)), not {self.distribution!r}"
            )
