"""Reading the parameters and the data of a generalised linear model: everything that can be wrong is found here."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from markovia.errors import InvalidArgument
from markovia.learning.regression.families import family_and_link
from markovia.learning.regression.solving import RegressionProblem, SolverSettings
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers

CLASSIFIERS = ("bernoulli", "categorical")


def link_name(model: Any) -> str:
    """Return the name of the link in use."""
    return "softmax" if model.family == "categorical" else family_and_link(model.family, model.link)[1].name


def settings_of(model: Any) -> SolverSettings:
    """Return the parameters of an estimator, which agree with each other."""
    if model.l1 and model.solver not in ("irls", "newton"):
        raise InvalidArgument(f"solver={model.solver!r} has no L1 penalty; use 'irls' or 'newton'")
    if model.family == "categorical":
        if model.link not in (None, "softmax"):
            raise InvalidArgument(f"a categorical model has the softmax link only, not {model.link!r}")
    else:
        _, link = family_and_link(model.family, model.link)
        if model.solver == "lbfgs" and link.valid is not None:
            raise InvalidArgument(f"solver='lbfgs' cannot stay inside the link {link.name!r}; use 'irls'")
    return SolverSettings(
        model.solver,
        float(model.l2),
        float(model.l1),
        model.max_iter,
        model.tol,
        model.learning_rate,
        model.batch_size,
        model.random_state,
    )


def read_rows(
    model: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    reset: bool,
    classes: ArrayLike | None = None,
    keep: bool = False,
) -> tuple[Array, Any]:
    """Return the rows as floats and the targets as the family reads them; set `classes_`."""
    if model.family == "binomial" and np.ndim(y) == 2 and np.shape(y)[1] == 2:
        rows, targets = validate_data(model, X, y, reset=reset, dtype=np.float64, multi_output=True)
        return rows, targets
    classify = model.family in CLASSIFIERS
    rows, targets = validate_data(model, X, y, reset=reset, dtype=np.float64, y_numeric=not classify)
    if not classify:
        return rows, numbers(targets, "y must be numbers")
    check_classification_targets(targets)
    if not keep and reset:
        model.classes_ = np.unique(targets if classes is None else np.asarray(classes))
        if model.family == "bernoulli" and len(model.classes_) > 2:
            raise InvalidArgument(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"it has {len(model.classes_)} classes; use family='categorical' (SoftmaxRegression)."
            )
        if len(model.classes_) < 2:
            raise InvalidArgument(
                f"a classifier needs two classes or more, but y has only one class, {model.classes_.tolist()[0]!r}"
            )
    codes = np.searchsorted(model.classes_, targets)
    codes = np.minimum(codes, len(model.classes_) - 1)
    strange = model.classes_[codes] != targets
    if np.any(strange):
        raise InvalidArgument(f"the class {targets[strange][0]!r} was not announced in classes=")
    return rows, codes


def row_offset(model: Any, offset: ArrayLike | None, exposure: ArrayLike | None, n: int) -> Array:
    """Return what is added to the linear predictor of n rows."""
    total = np.zeros(n)
    if offset is not None:
        moved = numbers(offset, "the offset must be numbers")
        if moved.shape != (n,):
            raise InvalidArgument(f"the offset is one finite number a row, {n}, not shape {moved.shape}")
        if not np.isfinite(moved).all():
            raise InvalidArgument(
                f"the offset of row {int(np.argmin(np.isfinite(moved)))} is missing or infinite"
            )
        total = total + moved
    if exposure is not None:
        if link_name(model) != "log":
            raise InvalidArgument(f"exposure needs a log link, not {link_name(model)!r}; use offset=")
        held = numbers(exposure, "the exposure must be numbers")
        if held.shape != (n,) or not (np.isfinite(held) & (held > 0)).all():
            raise InvalidArgument(f"the exposure is one positive number a row, {n}")
        total = total + np.log(held)
    return total


def problem_of(
    model: Any, rows: Array, targets: Any, sample_weight: Any, offset: Any, exposure: Any
) -> RegressionProblem:
    """Return the checked design, responses, weights and offsets."""
    weights = np.asarray(
        _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    )
    if not weights.sum() > 0:
        raise InvalidArgument("at least one row needs a positive weight")
    given = getattr(model, "feature_names_in_", None)
    names = None if given is None else tuple(str(n) for n in given)
    design = np.column_stack([np.ones(len(rows)), rows]) if model.fit_intercept else rows
    if model.family == "categorical":
        if offset is not None or exposure is not None:
            raise InvalidArgument("a categorical model takes no offset or exposure")
        counts = np.zeros((len(rows), len(model.classes_)))
        counts[np.arange(len(rows)), targets] = weights
        return RegressionProblem(
            design, counts, weights, np.zeros_like(counts), None, None, model.fit_intercept, names
        )
    y = np.asarray(targets, dtype=np.float64)
    if y.ndim == 2:  # successes and failures
        if not np.all(y >= 0):
            raise InvalidArgument("successes and failures must not be negative")
        trials = y.sum(axis=1)
        weights = weights * trials
        if not weights.sum() > 0:
            raise InvalidArgument("at least one row with a positive weight needs a success or a failure")
        y = np.where(trials > 0, y[:, 0] / np.where(trials > 0, trials, 1.0), 0.5)
    response, link = family_and_link(model.family, model.link)
    if not response.inside(y).all():
        raise InvalidArgument(
            f"y must hold {response.support} for the family {model.family!r}, not {y[~response.inside(y)][0]}"
        )
    moved = row_offset(model, offset, exposure, len(rows))
    return RegressionProblem(design, y, weights, moved, response, link, model.fit_intercept, names)


def weight_names(model: Any, classes: Iterable[Any]) -> tuple[str, ...]:
    """Return what flat weights belong to: the intercept and the columns, of each class of a categorical model."""
    given = getattr(model, "feature_names_in_", None)
    own = [str(n) for n in given] if given is not None else [f"x{j}" for j in range(model.n_features_in_)]
    names = ["intercept", *own] if model.fit_intercept else own
    return tuple(names if model.family != "categorical" else [f"{c}: {n}" for c in classes for n in names])


def weights_of(model: Any, coef: Any, intercept: Any, classes: int, columns: int) -> Array:
    """Return weights in the shapes of `coef_` and `intercept_`, or the fitted ones, as a flat array."""
    held = numbers(model.coef_ if coef is None else coef, "coef= are numbers, one a column")
    first = model.intercept_ if coef is None else np.zeros(classes) if intercept is None else intercept
    level = numbers(first, "intercept= is a number, or one a class").ravel()
    if held.shape not in ((classes, columns), *([(columns,)] if classes == 1 else [])):
        raise InvalidArgument(
            f"coef= has the shape {held.shape}, and not one number for each of {columns} columns"
            + (f" and each of {classes} classes" if classes > 1 else "")
        )
    if level.shape != (classes,):
        raise InvalidArgument(
            f"intercept= has {level.size} numbers; there is one a class, or one in all: {classes}"
        )
    if not model.fit_intercept and np.any(level):
        raise InvalidArgument("the model has fit_intercept=False, so intercept= is left out")
    if not (np.isfinite(held).all() and np.isfinite(level).all()):
        raise InvalidArgument("coef= and intercept= are finite numbers")
    table = held.reshape(classes, columns)
    return np.ascontiguousarray(np.column_stack([level, table]) if model.fit_intercept else table).ravel()
