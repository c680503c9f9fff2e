"""Whether predicted probabilities mean what they say: reliability tables, calibration errors, Brier score, log loss.

Predictions are put into bins; in a calibrated forecast the share of rows of a class in a bin is the mean prediction there.
Each class's Brier score is `reliability - resolution + uncertainty + within`, where the last term is what predictions
that differ inside a bin add (zero if they do not), so that the identity is exact.
References: Murphy (1973) and Stephenson, Coelho & Jolliffe (2008) for the decomposition; Guo et al. (2017) for the
expected calibration error. Cost: sorting the predictions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import row_weights
from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Whole, check, check_choice, numbers
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted against observed, bin by bin, for one class or for the most probable class.

    Attributes
    ----------
    edges
        The bins' ends, one more than bins; a bin holds its right end, the first one also its left end.
    count
        The weight of the rows in each bin.
    predicted, observed
        The mean prediction and the share of rows for which it came true; NaN in empty bins.
    brier
        The mean of `(prediction - outcome)^2`.
    reliability, resolution, uncertainty, within
        The terms of its decomposition: `brier = reliability - resolution + uncertainty + within`.
    """

    edges: Array
    count: Array
    predicted: Array
    observed: Array
    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float

    @property
    def expected_error(self) -> float:
        """The mean distance of observed and predicted, bins weighted by their rows (ECE)."""
        used = self.count > 0
        gaps = np.abs(self.observed[used] - self.predicted[used])
        return float((self.count[used] * gaps).sum() / self.count.sum())

    @property
    def maximum_error(self) -> float:
        """The largest distance of observed and predicted in a bin (MCE)."""
        return float(np.nanmax(np.abs(self.observed - self.predicted)))


@dataclass(frozen=True, eq=False)
class Calibration(InNotebooks):
    """How well predicted probabilities agree with what happened; prints as a short report.

    Attributes
    ----------
    classes
        The labels, in the order of the columns of the probabilities.
    by_class
        The reliability of each label: predicted probabilities beside how often they came true.
    top
        The one of the most probable class: its probability against how often it is right.
    brier
        The mean over rows of `sum over classes of (probability - outcome)^2` (for two classes twice what is often called
        the Brier score; `by_class[label].brier` is that).
    log_loss
        The mean of minus the log probability of the true class; infinite if it was ever called impossible.
    accuracy
        How often the most probable class is the true one.
    n_rows
        Rows.
    """

    classes: list[Any]
    by_class: dict[Any, Reliability]
    top: Reliability
    brier: float
    log_loss: float
    accuracy: float
    n_rows: int

    @property
    def expected_calibration_error(self) -> float:
        """The mean distance of confidence and accuracy over bins of the most probable class's probability."""
        return self.top.expected_error

    @property
    def maximum_calibration_error(self) -> float:
        """The largest such distance in a bin."""
        return self.top.maximum_error

    @property
    def classwise_calibration_error(self) -> float:
        """The expected errors of the classes, averaged."""
        return float(np.mean([r.expected_error for r in self.by_class.values()]))

    def to_pandas(self) -> "pd.DataFrame":
        """Return the reliability table: one row a class and bin that has rows."""
        import pandas as pd

        parts = []
        for label, found in self.by_class.items():
            table = pd.DataFrame(
                {
                    "class": [label] * len(found.count),
                    "low": found.edges[:-1],
                    "high": found.edges[1:],
                    "count": found.count,
                    "predicted": found.predicted,
                    "observed": found.observed,
                }
            )
            parts.append(table[table["count"] > 0])
        return pd.concat(parts, ignore_index=True)

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} rows, {len(self.classes)} classes",
            f"expected calibration error {self.expected_calibration_error:.6f}, "
            f"largest {self.maximum_calibration_error:.6f}",
            f"accuracy {self.accuracy:.6f}, log loss {self.log_loss:.6f}, Brier score {self.brier:.6f}",
            f"{'class':<12}{'ECE':>10}{'Brier':>10}{'reliab.':>10}{'resol.':>10}{'uncert.':>10}{'within':>10}",
        ]
        for label, r in self.by_class.items():
            numbers = (r.expected_error, r.brier, r.reliability, r.resolution, r.uncertainty, r.within)
            lines.append(f"{str(label)[:11]:<12}" + "".join(f"{x:>10.5f}" for x in numbers))
        return "\n".join(lines)

    def plot(self, *, classes: Any = None, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw a reliability diagram with counts; see `markovia.plotting.calibration_plot.plot_calibration`."""
        return ports.draw("plot-calibration", self, classes=classes, ax=ax, title=title)


def calibration(
    y_true: Any,
    proba: Any,
    *,
    classes: Sequence[Any] | None = None,
    bins: int | Sequence[float] = 10,
    strategy: str = "uniform",
    sample_weight: Any = None,
) -> Calibration:
    """Compare predicted class probabilities with the classes that came true.

    Parameters
    ----------
    y_true
        The true class of each row.
    proba
        One row a case and one column a class, as `predict_proba` gives it (a DataFrame's columns name the classes); or
        one number a row, the probability of the second of two classes.
    classes
        The labels of the columns; by default the distinct labels of `y_true`, sorted.
    bins
        How many bins, or their ends from 0 to 1.
    strategy
        "uniform" for bins of equal width, "quantile" for bins with about as many rows each.
    sample_weight
        One number a row, or None.

    Returns
    -------
    Calibration
        Reliability tables, calibration errors, Brier score with its decomposition, log loss.

    Examples
    --------
    >>> found = calibration([0, 1, 1, 0, 1], [0.1, 0.9, 0.9, 0.1, 0.1])
    >>> round(found.expected_calibration_error, 4), round(found.by_class[1].brier, 4)
    (0.1, 0.17)
    >>> found.to_pandas().query("`class` == 1")[["count", "predicted", "observed"]].round(3).values.tolist()
    [[3.0, 0.1, 0.333], [2.0, 0.9, 1.0]]
    """
    check_choice("strategy", strategy, STRATEGIES)
    target = np.asarray(y_true)
    if target.ndim != 1 or not len(target):
        raise InvalidArgument(f"y_true is one label a row, not an array of shape {target.shape}")
    if classes is None and hasattr(proba, "columns"):
        classes = [c[-1] if isinstance(c, tuple) else c for c in proba.columns]
    labels = np.unique(target) if classes is None else np.asarray(classes)
    law = _law(proba, len(labels), len(target))
    known = {label: k for k, label in enumerate(labels.tolist())}
    try:
        codes = np.array([known[label] for label in target.tolist()])
    except KeyError as error:
        raise InvalidArgument(
            f"the label {error.args[0]!r} is none of the classes {list(known)[:12]}; classes= names the columns"
        ) from None
    weights = row_weights(sample_weight, len(target))
    w = np.ones(len(target)) if weights is None else weights
    if not w.sum() > 0:
        raise InvalidArgument("the weights of the rows are all zero")
    rows = np.arange(len(codes))
    true = law[rows, codes]
    best = law.argmax(axis=1)
    outcome = np.zeros_like(law)
    outcome[rows, codes] = 1.0
    with np.errstate(divide="ignore"):
        log_loss = -float((w[true < 1] * np.log(true[true < 1])).sum() / w.sum()) + 0.0
    by_class = {
        label: reliability(law[:, k], outcome[:, k], w, bins, strategy)
        for k, label in enumerate(labels.tolist())
    }
    hits = (best == codes).astype(np.float64)
    return Calibration(
        labels.tolist(),
        by_class,
        reliability(law[rows, best], hits, w, bins, strategy),
        float(sum(r.brier for r in by_class.values())),
        log_loss,
        float((w * hits).sum() / w.sum()),
        len(target),
    )


def reliability(
    predicted: Array,
    outcome: Array,
    weights: Array,
    bins: int | Sequence[float] = 10,
    strategy: str = "uniform",
) -> Reliability:
    """Return predicted probabilities of one event against its outcomes (zeros and ones), bin by bin."""
    edges = _edges(predicted, weights, bins, strategy)
    at = np.clip(np.searchsorted(edges, predicted, side="left") - 1, 0, len(edges) - 2)
    n_bins = len(edges) - 1
    count: Array = np.bincount(at, weights=weights, minlength=n_bins).astype(np.float64)
    total = count.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(at, weights=weights * predicted, minlength=n_bins) / count
        share = np.bincount(at, weights=weights * outcome, minlength=n_bins) / count
    used = count > 0
    base = float((weights * outcome).sum() / total)
    part = count[used] / total
    away, off = predicted - mean[at], outcome - share[at]
    return Reliability(
        edges,
        count,
        mean,
        share,
        float((weights * (predicted - outcome) ** 2).sum() / total),
        float((part * (mean[used] - share[used]) ** 2).sum()),
        float((part * (share[used] - base) ** 2).sum()),
        base * (1.0 - base),
        float((weights * (away * away - 2.0 * away * off)).sum() / total),
    )


def _law(proba: Any, n_classes: int, n_rows: int) -> Array:
    law = numbers(proba, "probabilities are numbers, one row a case")
    if law.ndim == 1 and n_classes == 2:
        law = np.stack([1.0 - law, law], axis=1)
    if law.shape != (n_rows, n_classes):
        raise InvalidArgument(
            f"{n_rows} rows and {n_classes} classes need probabilities of shape ({n_rows}, {n_classes}), not {law.shape}; "
            f"classes= names the columns"
        )
    if not ((law >= 0) & (law <= 1)).all():
        raise InvalidArgument("a probability lies between 0 and 1")
    worst = int(np.abs(law.sum(axis=1) - 1.0).argmax())
    if abs(law[worst].sum() - 1.0) > 1e-6:
        raise InvalidArgument(f"the probabilities of row {worst} sum to {law[worst].sum():.6g}, not to 1")
    return law


def _edges(predicted: Array, weights: Array, bins: Any, strategy: str) -> NDArray[np.float64]:
    if not isinstance(bins, int | np.integer) or isinstance(bins, bool):
        given = np.asarray(bins, dtype=np.float64)
        if (
            given.ndim != 1
            or len(given) < 2
            or given[0] != 0
            or given[-1] != 1
            or (np.diff(given) <= 0).any()
        ):
            raise InvalidArgument(f"the ends of bins increase from 0 to 1, not {bins!r}")
        return given
    check("bins", bins, Whole(1))
    if strategy == "uniform":
        return np.linspace(0.0, 1.0, int(bins) + 1)
    order = np.argsort(predicted, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    inner = predicted[order][
        np.minimum(np.searchsorted(share, np.arange(1, bins) / bins - 1e-12), len(order) - 1)
    ]
    edges = np.unique(np.concatenate([[0.0], inner, [1.0]]))
    return edges if len(edges) > 1 else np.array([0.0, 1.0])
