"""What scikit-learn estimators are given, checked: labels as codes, weights, cells of zeros and ones.

Importing this module imports scikit-learn; only modules of estimators do so, and they are loaded on first use.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length

from markovia.data.tables.row_sources import row_weights
from markovia.errors import ImpossibleEvidence, InvalidArgument
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.checks import Choice, check
from markovia.runtime.estimator import Estimator


class ProbabilisticClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """The verbs of a classifier that knows `log p(x, class)`; a subclass writes `_settled` and fits `classes_`."""

    classes_: Array
    n_features_in_: int
    impossible: str

    def _settled(self, X: Any) -> Array:  # noqa: N803
        """Return `log p(x, class)` up to a constant a row, in which every row is possible in some class."""
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Return `log p(class | x)`, one column a class."""
        return normalised_logs(self._settled(X))

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return `p(class | x)`, one column a class in the order of `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of each row."""
        best = self._settled(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {"allow_nan": True}


def zeros_and_ones(cells: Array, names: Sequence[str]) -> Array:
    """Return the cells, or say which column holds something else than 0, 1 or a missing cell."""
    wrong = ~((cells == 0) | (cells == 1) | np.isnan(cells)).all(axis=0)
    if wrong.any():
        raise InvalidArgument(
            f"the column {names[int(wrong.argmax())]!r} holds other numbers than 0 and 1; binarize= says from where "
            f"on a number is a one"
        )
    return cells


def sparse_ones(cells: Any, threshold: float | None) -> Any:
    """Return a sparse table of ones; what is not stored is a zero."""
    if threshold is not None and threshold < 0:
        raise InvalidArgument("a sparse X needs binarize >= 0: cells that are not stored are zeros")
    if np.isnan(cells.data).any():
        raise InvalidArgument("a sparse X cannot have missing cells (NaN); give a dense table")
    if threshold is None and not ((cells.data == 0) | (cells.data == 1)).all():
        raise InvalidArgument(
            "a sparse X holds other numbers than 0 and 1; binarize= says from where on one is a one"
        )
    ones = cells.copy()
    ones.data = (cells.data > (threshold or 0.0)).astype(np.float64)
    return ones


def labels(estimator: Any, target: Any, features: Any) -> Array:
    """Return the labels as one axis of known finite values, one a row of features."""
    if target is None:
        raise InvalidArgument(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    check_consistent_length(features, target)
    found = column_or_1d(target, warn=True)
    if found.dtype.kind == "c":
        raise InvalidArgument("Complex data not supported: labels are names or whole numbers")
    assert_all_finite(found, estimator_name=type(estimator).__name__, input_name="y")
    try:
        check_classification_targets(found)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in found})
        raise InvalidArgument(f"labels are of one type, not a mixture of {', '.join(kinds)}") from None
    return np.asarray(found)


def class_codes(target: Array, classes: Array) -> Codes:
    """Return the position of each label among the sorted classes."""
    positions = np.searchsorted(classes, target)
    if len(classes) == 0 or not np.array_equal(classes[np.minimum(positions, len(classes) - 1)], target):
        strange = np.setdiff1d(target, classes)
        raise InvalidArgument(
            f"the label {strange.tolist()[0]!r} is none of the classes {classes.tolist()[:12]}"
        )
    return positions


def sample_weights(weights: Any, n_rows: int) -> Array | None:
    """Return one weight a row, or None; they may not all be zero."""
    found = row_weights(weights, n_rows)
    if found is not None and not found.any():
        raise InvalidArgument("Sample weights must contain at least one non-zero number.")
    return found


def weights_of_rows(weights: Any, n_rows: int) -> Array:
    """Return one weight a row, ones where none are given."""
    found = sample_weights(weights, n_rows)
    return np.ones(n_rows) if found is None else found


def class_variable(name: str, classes: Array, features: Sequence[str]) -> Variable:
    """Return the class as a variable whose name no feature has."""
    if name in features:
        raise InvalidArgument(f"a feature is called {name!r}; give the class another name with target=")
    return Variable(name, classes.tolist())


def settled(
    joint: Array, prior: Callable[[], Array], impossible: str, features: Any, names: Sequence[str], cure: str
) -> Array:
    """Return joint log probabilities in which every row is possible in some class.

    A row that no class allows raises `ImpossibleEvidence`, or with impossible="prior" gets the classes' own
    probabilities.
    """
    check("impossible", impossible, Choice(("error", "prior")))
    lost = np.flatnonzero(np.isneginf(joint).all(axis=1))
    if len(lost) and impossible == "error":
        row = _row(features, int(lost[0]), names)
        shown = ", ".join(f"{n}={v!r}" for n, v in list(row.items())[:6]) + (", ..." if len(row) > 6 else "")
        raise ImpossibleEvidence.because(
            f"row {lost[0]} ({shown}) has probability zero in every class, as have {len(lost) - 1:,} other rows; "
            f"{cure}, or impossible='prior' answers with the classes' own probabilities",
            row,
        )
    if len(lost):
        with np.errstate(divide="ignore"):
            joint[lost] = np.log(prior())
    return joint


def _row(features: Any, i: int, names: Sequence[str]) -> dict[str, Any]:
    """Return the cells of one row that are not missing, by name."""
    if hasattr(features, "toarray"):
        cells = features.tocsr()[[i]].toarray()[0].tolist()
    elif hasattr(features, "iloc"):
        cells = features.iloc[i].tolist()
    else:
        cells = np.asarray(features, dtype=object)[i].tolist()
    return {n: c for n, c in zip(names, cells, strict=True) if c is not None and c == c}


def normalised_logs(joint: Array) -> Array:
    """Return each row minus the log of the sum of its exponentials."""
    peak = joint.max(axis=1, keepdims=True)
    result: Array = joint - (peak + np.log(np.exp(joint - peak).sum(axis=1, keepdims=True)))
    return result
