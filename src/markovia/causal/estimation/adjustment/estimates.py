"""What estimators return, and the one way to a standard error: influence functions, or the bootstrap.

An estimator's influence function has one number a row, with mean zero, such that the estimate minus the truth is its
average up to smaller terms; the variance of the estimate is the mean square over n. Rows of one cluster are summed first.
Ratios and odds ratios follow by the chain rule and have their intervals on the log scale.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import erfc, exp, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

MEASURES = ("difference", "ratio", "odds ratio")


class ArmMeans(NamedTuple):
    """Means of the potential outcomes, one an arm.

    Attributes
    ----------
    values, covariance
        Shapes (arms,) and (arms, arms).
    influence
        Shape (n, arms); None where the errors come another way (matching).
    weights
        How much each row counts for its own arm, for the diagnostics of balance; None where rows are not weighted.
    probabilities
        Shape (n, arms): what the treatment model that was used says, for the diagnostics of overlap; None without one.
    """

    values: Array
    covariance: Array
    influence: Array | None = None
    weights: Array | None = None
    probabilities: Array | None = None


@dataclass(frozen=True)
class Estimate(InNotebooks):
    """A number with its error.

    Attributes
    ----------
    value, standard_error
        The estimate, and its standard error (of its logarithm where `on_log_scale`).
    influence
        One number a row; None where the error comes another way.
    on_log_scale
        Whether intervals are made for the logarithm: ratios.
    weights, probabilities
        What each row counts in each arm, and the probability of each treatment that it was found from; None without.
    draws
        Values in bootstrap samples; then intervals are their quantiles.
    """

    value: float
    standard_error: float
    influence: Array | None = None
    on_log_scale: bool = False
    weights: Array | None = None
    draws: Array | None = None
    probabilities: Array | None = None

    @property
    def null(self) -> float:
        """What the value is without an effect."""
        return 1.0 if self.on_log_scale else 0.0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval: of the bootstrap's quantiles, or normal."""
        if self.draws is not None:
            # the k-th of B draws lies at k / (B + 1): other conventions leave an interval of 200 draws 1.5% short
            low, high = np.nanquantile(self.draws, [(1 - level) / 2, (1 + level) / 2], method="weibull")
            return float(low), float(high)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        if not self.on_log_scale:
            return self.value - half, self.value + half
        return self.value * exp(-half), self.value * exp(half)

    def p_value(self) -> float:
        """Return how likely an estimate so far from no effect is without one."""
        away = log(self.value) if self.on_log_scale and self.value > 0 else self.value - self.null
        if self.standard_error == 0 or not np.isfinite(self.standard_error):
            return 1.0 if away == 0 else float("nan") if self.standard_error else 0.0
        return erfc(abs(away) / self.standard_error / sqrt(2.0))


def arm_means(
    values: Array,
    influence: Array,
    weights: Array | None = None,
    clusters: Any = None,
    probabilities: Array | None = None,
) -> ArmMeans:
    """Return means with the covariance that their influence functions have."""
    summed = by_cluster(influence, clusters)
    return ArmMeans(values, summed.T @ summed / len(influence) ** 2, influence, weights, probabilities)


def estimate(
    value: float,
    influence: Array,
    *,
    weights: Array | None = None,
    clusters: Any = None,
    probabilities: Array | None = None,
) -> Estimate:
    """Return a number with the standard error that its influence function has."""
    summed = by_cluster(influence, clusters)
    error = float(np.sqrt(summed @ summed)) / len(influence)
    return Estimate(float(value), error, influence, weights=weights, probabilities=probabilities)


def by_cluster(influence: Array, clusters: Any) -> Array:
    """Return influence functions summed within clusters; unchanged where there are none."""
    if clusters is None:
        return influence
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    total = np.zeros((int(codes.max()) + 1, *influence.shape[1:]))
    np.add.at(total, codes, influence)
    groups = len(total)
    return np.asarray(total * np.sqrt(groups / max(groups - 1, 1)))


def contrast(means: ArmMeans, treated: int, control: int, measure: str = "difference") -> Estimate:
    """Return the difference, ratio or odds ratio of two arms' means, its error by the chain rule.

    Examples
    --------
    >>> two = ArmMeans(np.array([0.2, 0.4]), np.diag([1e-4, 1e-4]))
    >>> round(contrast(two, 1, 0, "odds ratio").value, 4), round(contrast(two, 1, 0).standard_error, 4)
    (2.6667, 0.0141)
    """
    a, b = float(means.values[treated]), float(means.values[control])
    slope = np.zeros(len(means.values))
    if measure == "difference":
        value, slope[treated], slope[control] = a - b, 1.0, -1.0
    else:
        odds = measure == "odds ratio"
        if min(a, b) <= 0 or (odds and max(a, b) >= 1):
            what = "means between 0 and 1" if odds else "positive means"
            raise InvalidArgument(
                f"the {measure} needs {what} in both arms, not {a:.4g} and {b:.4g}; ask for the difference"
            )
        value = a / (1 - a) / (b / (1 - b)) if odds else a / b
        slope[treated] = 1 / (a * (1 - a)) if odds else 1 / a
        slope[control] = -1 / (b * (1 - b)) if odds else -1 / b
    error = sqrt(max(float(slope @ means.covariance @ slope), 0.0))
    influence = None if means.influence is None else means.influence @ slope
    return Estimate(
        value, error, influence, measure != "difference", means.weights, probabilities=means.probabilities
    )


def bootstrap(
    again: Callable[[Any], float], n: int, repetitions: int, rng: np.random.Generator, clusters: Any = None
) -> Array:
    """Return an estimator's values in samples of the rows with replacement; of clusters where there are some.

    `again` is called with the rows' positions. A sample in which it cannot be computed counts as missing.
    """
    groups = None
    if clusters is not None:
        _, codes = np.unique(np.asarray(clusters), return_inverse=True)
        groups = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    draws = np.full(repetitions, np.nan)
    for r in range(repetitions):
        if groups is None:
            rows = rng.integers(0, n, n)
        else:
            rows = np.concatenate([groups[g] for g in rng.integers(0, len(groups), len(groups))])
        try:
            draws[r] = again(rows)
        except (MarkoviaError, np.linalg.LinAlgError):
            continue
    if np.isnan(draws).mean() > 0.5:
        raise InvalidArgument(
            "most bootstrap samples lack an arm or are degenerate; use errors='influence' or more rows"
        )
    return draws


def with_bootstrap(found: Estimate, draws: Array) -> Estimate:
    """Return an estimate whose errors are those of bootstrap draws."""
    kept = draws[np.isfinite(draws)]
    spread = np.log(kept[kept > 0]) if found.on_log_scale else kept
    return replace(found, standard_error=float(np.std(spread, ddof=1)), draws=draws)
