"""Two samples side by side: how far apart they are, what a classifier can tell, and which modes one of them misses.

The energy distance (Szekely and Rizzo 2013) is 2 E|X - Y| - E|X - X'| - E|Y - Y'|, zero only for equal distributions; `mmd`
is its kin with a kernel. A classifier of the samples knows the ratio of their densities (Sugiyama et al. 2012),
and its cross-entropy bounds their Jensen-Shannon divergence from below. Cost: ``O(rows**2)`` for distances.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.tables.plain_columns import Data, need_rows, numeric_matrix
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.shown import InNotebooks

BLOCK = 2_000
"""Rows whose distances are computed at once."""


def energy_distance(x: Data, y: Data, *, estimator: str = "biased") -> float:
    """Return the energy distance of two samples of rows, in the unit of the data.

    Parameters
    ----------
    x, y
        Two samples with the same columns; they may differ in size.
    estimator
        "biased" is that of the samples themselves, never negative; "unbiased" leaves out each row's distance from itself.

    Examples
    --------
    >>> energy_distance([0.0, 0.0], [3.0, 3.0])
    6.0
    """
    check_choice("estimator", estimator, ("biased", "unbiased"))
    first, second = _samples(x, y)
    less = int(estimator == "unbiased")
    if less:
        need_rows(min(len(first), len(second)), 2, "the unbiased energy distance")

    def mean(a: Array, b: Array, pairs: float) -> float:
        from scipy.spatial.distance import cdist

        return sum(float(cdist(a[i : i + BLOCK], b).sum()) for i in range(0, len(a), BLOCK)) / pairs

    n, m = len(first), len(second)
    within = mean(first, first, n * (n - less)) + mean(second, second, m * (m - less))
    return 2.0 * mean(first, second, n * m) - within


@dataclass(frozen=True)
class DensityRatio(InNotebooks):
    """What a classifier can tell of two samples.

    `log_ratio` is the log of the density of the first over that of the second, at each row of the first, then of the second,
    by classifiers that have not seen it; `accuracy` the share of rows whose sample was told; `jensen_shannon` a lower bound
    on the divergence in nats, up to chance.
    """

    log_ratio: Array
    accuracy: float
    jensen_shannon: float

    def __str__(self) -> str:
        least = f"Jensen-Shannon at least {self.jensen_shannon:.3g}"
        return f"{self.accuracy:.1%} of {len(self.log_ratio)} rows told apart, {least}"


def density_ratio(x: Data, y: Data, *, classifier: Any = None, folds: int = 5, seed: int = 0) -> DensityRatio:
    """Tell two samples apart by a classifier, and return the ratio of their densities that it stands for.

    Parameters
    ----------
    x, y
        Two samples with the same columns.
    classifier
        Any of scikit-learn's with `predict_proba`; by default a small network on standardised columns.
    folds, seed
        Parts that the rows are cut into, each of which is judged by classifiers of the others; the seed of the cut.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = density_ratio(rng.normal(0, 1, 200), rng.normal(3, 1, 200))
    >>> found.accuracy > 0.85, bool(found.log_ratio[0] > 0)
    (True, True)
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    first, second = _samples(x, y)
    check_count("folds", folds, 2)
    need_rows(min(len(first), len(second)), folds, f"a density ratio by {folds} folds")
    if classifier is None:
        small = MLPClassifier((32,), alpha=1.0, solver="lbfgs", max_iter=1000, random_state=seed)
        classifier = make_pipeline(StandardScaler(), small)
    rows, label = np.concatenate([first, second]), np.repeat([1, 0], [len(first), len(second)])
    cut = StratifiedKFold(folds, shuffle=True, random_state=seed)
    told = np.clip(
        cross_val_predict(classifier, rows, label, cv=cut, method="predict_proba")[:, 1], 1e-12, 1 - 1e-12
    )
    logs = np.log(told / (1 - told)) - np.log(len(first) / len(second))
    # samples of different sizes count the same: -E log of the share of its own sample
    bound = np.log(2) - 0.5 * sum(np.logaddexp(0, s * logs[label == k]).mean() for k, s in ((1, -1), (0, 1)))
    return DensityRatio(logs, float(((told > 0.5) == label).mean()), float(bound))


@dataclass(frozen=True)
class ModeCoverage(InNotebooks):
    """Which modes a sample has.

    `counts` are rows near each centre, `near` is the share of rows that are near any, and `covered` how many modes have
    rows enough.
    """

    counts: Ints
    near: float
    covered: int

    def __str__(self) -> str:
        return f"{self.covered} of {len(self.counts)} modes, {self.near:.1%} of the rows near one"


def mode_coverage(samples: Data, centres: Data, radius: float, *, least: float = 0.2) -> ModeCoverage:
    """Count the rows of a sample near each of some centres.

    Parameters
    ----------
    samples, centres
        Rows, and where the modes are, with the same columns.
    radius
        How near a row has to be, such as three deviations of a mode.
    least
        The share of its even part that a mode needs in order to count as covered.

    Examples
    --------
    >>> print(mode_coverage([[0.0], [0.1], [5.0]], [[0.0], [1.0]], 0.5))
    1 of 2 modes, 66.7% of the rows near one
    """
    from scipy.spatial.distance import cdist

    rows, modes = _samples(samples, centres)
    if not (radius > 0 and least > 0):
        raise InvalidArgument(f"radius= and least= are positive numbers, not {radius!r} and {least!r}")
    apart = cdist(rows, modes)
    near = apart.min(axis=1) <= radius
    counts = np.bincount(apart.argmin(axis=1)[near], minlength=len(modes)).astype(np.int64)
    return ModeCoverage(counts, float(near.mean()), int((counts >= least * len(rows) / len(modes)).sum()))


def _samples(x: Data, y: Data) -> tuple[Array, Array]:
    """Return two samples as matrices of the same columns."""
    first, second = numeric_matrix(x, "x")[1], numeric_matrix(y, "y")[1]
    if first.shape[1] != second.shape[1]:
        raise InvalidArgument(
            f"the samples have {first.shape[1]} and {second.shape[1]} columns; they need the same"
        )
    return first, second
