"""Tests of a filter's standardized innovations: independent, normal, of constant variance, if the model is right.

References: Ljung and Box (1978); Jarque and Bera (1980); Harvey (1989), section 5.4.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array


class InnovationTest(NamedTuple):
    """A test's statistic and its p-value."""

    statistic: float
    p_value: float


@dataclass(frozen=True)
class InnovationTests:
    """Three tests of one observed number's innovations; small p-values speak against the model.

    Attributes
    ----------
    ljung_box
        Of no autocorrelation.
    jarque_bera
        Of normality, by skewness and kurtosis.
    heteroskedasticity
        Of equal variance in the first and the last third, two-sided.
    """

    ljung_box: InnovationTest
    jarque_bera: InnovationTest
    heteroskedasticity: InnovationTest


def innovation_tests(errors: Array, lags: int | None = None) -> InnovationTests:
    """Test standardized innovations; missing ones are left out.

    Raises
    ------
    InvalidArgument
        For fewer than six innovations, or not enough for so many lags.

    Examples
    --------
    >>> innovation_tests(np.sin(np.arange(60.0))).ljung_box.p_value < 1e-6
    True
    """
    from scipy.special import chdtrc, fdtr, fdtrc

    e = errors[~np.isnan(errors)]
    n = len(e)
    lags = max(1, min(10, n // 5)) if lags is None else lags
    if n < 6 or not 1 <= lags < n:
        raise InvalidArgument(f"{n} innovations are too few for these tests with lags={lags}")
    centred = e - e.mean()
    power = centred @ centred
    r = np.array([centred[k:] @ centred[:-k] for k in range(1, lags + 1)]) / power
    q = n * (n + 2) * float(np.sum(r**2 / (n - np.arange(1, lags + 1))))
    skewness, kurtosis = np.mean(centred**3) / (power / n) ** 1.5, np.mean(centred**4) / (power / n) ** 2
    jb = n / 6 * float(skewness**2 + (kurtosis - 3) ** 2 / 4)
    # Each third of the steps, with its missing ones, as Harvey takes them
    h = max(1, round(len(errors) / 3))
    early, late = errors[:h], errors[-h:]
    early, late = early[~np.isnan(early)], late[~np.isnan(late)]
    if not (len(early) and len(late)):
        raise InvalidArgument("the first or the last third of the innovations is missing")
    ratio = float((late @ late / len(late)) / (early @ early / len(early)))
    tail = min(fdtr(len(late), len(early), ratio), fdtrc(len(late), len(early), ratio))
    return InnovationTests(
        InnovationTest(q, float(chdtrc(lags, q))),
        InnovationTest(jb, float(chdtrc(2, jb))),
        InnovationTest(ratio, float(min(1.0, 2 * tail))),
    )
