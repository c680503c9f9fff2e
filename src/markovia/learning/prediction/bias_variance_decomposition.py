"""The expected error of a learner, split into bias, variance and noise by training it on many data sets.

Squared loss: `E (y - g)^2 = (mean g - f)^2 + Var g + sigma^2`. Zero-one loss: the error is bias, plus variance where the
main prediction (the most frequent one) is right, minus a share of it where it is wrong, plus what noise adds.
References: Geman, Bienenstock & Doursat (1992); Domingos (2000), A unified bias-variance decomposition, for zero-one
loss. Cost: one training for each data set, run by joblib. Use it to see whether more data (variance) or a richer model
(bias) would help.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LOSSES = ("squared", "zero-one")


@dataclass(frozen=True, eq=False)
class BiasVariance(InNotebooks):
    """What a learner's expected error is made of, averaged over test points; prints as a table.

    Attributes
    ----------
    loss
        "squared" or "zero-one".
    bias
        The mean of `(mean g - f)^2`; for zero-one loss the share of points whose main prediction is wrong.
    variance
        What variance adds to the error. For zero-one loss that is `unbiased_variance - biased_variance`.
    noise
        What noise adds to the error; None where it is unknown and part of the bias.
    total
        The expected error, computed on its own; it equals `bias + variance + noise`.
    unbiased_variance, biased_variance
        Zero-one loss: how often predictions leave the main one where it is right, and how much that repairs where it
        is wrong. None for squared loss.
    main
        The main prediction for each point: the mean, or the most frequent class.
    by_point
        The summands for each point, by name.
    n_datasets
        Trainings.
    """

    loss: str
    bias: float
    variance: float
    noise: float | None
    total: float
    unbiased_variance: float | None
    biased_variance: float | None
    main: NDArray[Any]
    by_point: dict[str, Array]
    n_datasets: int

    def to_pandas(self) -> "pd.Series[float]":
        """Return the summands and their total."""
        import pandas as pd

        return pd.Series(dict(self._rows()), name=f"{self.loss} loss")

    def _rows(self) -> list[tuple[str, float]]:
        squared = self.loss == "squared"
        rows = [("bias²" if squared else "bias", self.bias), ("variance", self.variance)]
        if self.unbiased_variance is not None and self.biased_variance is not None:
            rows += [("  where unbiased", self.unbiased_variance), ("  where biased", -self.biased_variance)]
        if self.noise is not None:
            rows.append(("noise", self.noise))
        return [*rows, ("total", self.total)]

    def __str__(self) -> str:
        head = f"{self.loss} loss, {self.n_datasets} data sets, {len(self.main)} test points"
        rows = [f"{name:<16}{value:>12.6f}" for name, value in self._rows()]
        unknown = ["(the noise is unknown and part of the bias)"] if self.noise is None else []
        return "\n".join([head, *rows, *unknown])

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the summands as a stacked bar; see `markovia.plotting.bias_variance_plot.plot_bias_variance`."""
        return ports.draw("plot-bias-variance", self, ax=ax, title=title)


def bias_variance(
    estimator: Any,
    data: Any,
    *,
    test: Any = None,
    truth: Callable[[Any], Any] | None = None,
    noise: Any = 0.0,
    loss: str | None = None,
    classes: Sequence[Any] | None = None,
    n_datasets: int = 100,
    seed: Seed = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> BiasVariance:
    """Split the expected error of a learner into bias, variance and noise.

    Parameters
    ----------
    estimator
        A scikit-learn estimator (every training has a fresh clone, and its own `random_state` if it has one), or a
        function `(X, y, test_X) -> predictions`.
    data
        A function that draws a training set `(X, y)` from a NumPy generator; or one data set `(X, y)`, from which
        training sets are drawn with replacement (the bootstrap).
    test
        The points to predict: X if `truth` says what is right there, otherwise `(X, y)`. By default the rows of the given
        data set, each predicted by the trainings that did not draw it.
    truth
        A function from X to the expected y; for zero-one loss to the best class, or to a table of class probabilities
        (classes in sorted order). Without it the labels of the test points are taken for the truth, and noise counts as
        bias.
    noise
        Squared loss with a truth: the variance of y around it, a number or a function of X.
    loss
        "squared" or "zero-one"; by default zero-one for classifiers and for labels that are no numbers.
    classes
        Zero-one loss: all classes in sorted order; by default those that were predicted or are true.
    n_datasets
        How many trainings.
    seed, n_jobs, progress
        The seed; joblib's number of workers; whether to show a progress bar. The answer does not depend on the workers.

    Returns
    -------
    BiasVariance
        An interrupted run (Ctrl-C) gives what the trainings done so far say.

    Examples
    --------
    Half the mean of four draws of `y = 2 + noise` has squared bias 1 and variance 1/16:

    >>> draw = lambda rng: (np.zeros((4, 1)), 2.0 + rng.standard_normal(4))
    >>> half = lambda X, y, points: np.full(len(points), y.mean() / 2)
    >>> found = bias_variance(
    ...     half, draw, test=[[0.0]], truth=lambda X: [2.0], noise=1.0, loss="squared", n_datasets=4000, seed=0
    ... )
    >>> round(found.bias, 1), round(found.variance * 16, 1), found.noise, round(found.total, 1)
    (1.0, 1.0, 1.0, 2.1)
    """
    check_count("n_datasets", n_datasets, 2)
    check_choice("loss", loss, LOSSES, none=True)
    if not callable(data) and not (isinstance(data, tuple) and len(data) == 2):
        raise InvalidArgument("data= is a function that draws (X, y) from a generator, or one pair (X, y)")
    points, labels = _test_points(data, test, truth)
    streams = generator(seed).spawn(n_datasets)
    held_out = test is None
    task = partial(_train, estimator, data, points, held_out)
    rows = list(task_results(task, streams, n_jobs=n_jobs, progress=progress, unit="fit", least=2))
    predictions = [p for p, _ in rows]
    seen = np.array([s for _, s in rows]) if held_out else np.ones((len(rows), _length(points)), dtype=bool)
    if not seen.any(axis=0).all():
        raise InvalidArgument(
            f"{int((~seen.any(axis=0)).sum())} rows were drawn by all {len(rows)} trainings and cannot be tested; "
            f"n_datasets= should be larger, or test= given"
        )
    if loss is None:
        loss = _natural_loss(estimator, labels if labels is not None else predictions[0])
    right = labels if truth is None else truth(points)
    if loss == "squared":
        level = None if truth is None else _noise_level(noise, points)
        return squared_decomposition(np.array(predictions, dtype=np.float64), right, level, seen)
    return zero_one_decomposition(np.array(predictions), right, seen, truth is not None, classes)


def squared_decomposition(
    predictions: Array, truth: Any, noise: Array | None = None, seen: NDArray[np.bool_] | None = None
) -> BiasVariance:
    """Split the mean squared error of predictions (one row a training, one column a point).

    Parameters
    ----------
    predictions
        One row a training, one column a test point.
    truth
        The expected y of each point.
    noise
        Its variance at each point; None where it is unknown.
    seen
        Which predictions count; all by default.

    Examples
    --------
    >>> print(squared_decomposition(np.array([[1.0, 4.0], [3.0, 4.0]]), [1.0, 4.0]))
    squared loss, 2 data sets, 2 test points
    bias²               0.500000
    variance            0.500000
    total               1.000000
    (the noise is unknown and part of the bias)
    """
    target = np.asarray(truth, dtype=np.float64).reshape(-1)
    if predictions.ndim != 2 or target.shape != predictions.shape[1:]:
        raise InvalidArgument(
            f"there are predictions of shape {predictions.shape} for {target.size} true values; one column a point is needed"
        )
    w = np.ones(predictions.shape) if seen is None else seen.astype(np.float64)
    n = w.sum(axis=0)
    main = (w * predictions).sum(axis=0) / n
    bias = (main - target) ** 2
    variance = (w * (predictions - main) ** 2).sum(axis=0) / n
    error = (w * (predictions - target) ** 2).sum(axis=0) / n
    extra = np.zeros(len(target)) if noise is None else np.broadcast_to(noise, target.shape)
    parts = {"bias": bias, "variance": variance, "noise": extra, "total": error + extra}
    return BiasVariance(
        "squared",
        float(bias.mean()),
        float(variance.mean()),
        None if noise is None else float(extra.mean()),
        float(parts["total"].mean()),
        None,
        None,
        main,
        parts,
        len(predictions),
    )


def zero_one_decomposition(
    predictions: NDArray[Any],
    truth: Any,
    seen: NDArray[np.bool_] | None = None,
    known: bool = True,
    classes: Sequence[Any] | None = None,
) -> BiasVariance:
    """Split the expected zero-one loss of predicted classes (Domingos, 2000).

    Parameters
    ----------
    predictions
        One row a training, one column a test point.
    truth
        The best class of each point, or a table of class probabilities, one column a class.
    seen
        Which predictions count; all by default.
    known
        Whether the truth is known; otherwise the noise is part of the bias.
    classes
        All classes in sorted order; by default those that were predicted or are true.

    Examples
    --------
    >>> found = zero_one_decomposition(np.array([["a", "b"], ["a", "b"], ["b", "b"]]), ["a", "a"])
    >>> found.bias, round(found.unbiased_variance, 4), round(found.total, 4)
    (0.5, 0.1667, 0.6667)
    """
    right = np.asarray(truth)
    table = right if right.ndim == 2 else None
    found = np.unique(predictions if table is not None else np.concatenate([predictions.ravel(), right]))
    labels = found if classes is None else np.unique(np.asarray(classes))
    if not np.isin(found, labels).all():
        raise InvalidArgument(f"the class {np.setdiff1d(found, labels).tolist()[0]!r} is not among classes=")
    if table is not None and table.shape[1] != len(labels):
        raise InvalidArgument(
            f"the truth has {table.shape[1]} classes, but these are known: {labels.tolist()[:12]}; classes= names them"
        )
    if len(right) != predictions.shape[1]:
        raise InvalidArgument(f"there are {predictions.shape[1]} test points, but the truth has {len(right)}")
    codes = np.searchsorted(labels, predictions)
    w = np.ones(predictions.shape) if seen is None else seen.astype(np.float64)
    n_points = predictions.shape[1]
    votes = np.zeros((n_points, len(labels)))
    np.add.at(votes, (np.broadcast_to(np.arange(n_points), codes.shape), codes), w)
    votes /= votes.sum(axis=1, keepdims=True)
    if table is None:
        law = np.zeros((n_points, len(labels)))
        law[np.arange(n_points), np.searchsorted(labels, right)] = 1.0
    else:
        law = np.asarray(table, dtype=np.float64)
        if (law < 0).any() or not np.allclose(law.sum(axis=1), 1.0):
            raise InvalidArgument("the class probabilities of a point are not negative and sum to one")
    rows = np.arange(n_points)
    best, main = law.argmax(axis=1), votes.argmax(axis=1)
    wrong = best != main
    spread = 1.0 - votes[rows, main]
    # where the main prediction is wrong, only deviations to the best class help
    repaired = np.where(wrong, votes[rows, best], 0.0)
    unbiased = np.where(wrong, 0.0, spread)
    noisy = 1.0 - law[rows, best]
    lucky = (votes * law).sum(axis=1) - votes[rows, best] * law[rows, best]
    added = noisy * votes[rows, best] - lucky
    total = 1.0 - (votes * law).sum(axis=1)
    parts = {
        "bias": wrong.astype(np.float64),
        "variance": unbiased - repaired,
        "noise": added,
        "total": total,
        "unbiased_variance": unbiased,
        "biased_variance": repaired,
    }
    return BiasVariance(
        "zero-one",
        float(wrong.mean()),
        float(parts["variance"].mean()),
        float(added.mean()) if known else None,
        float(total.mean()),
        float(unbiased.mean()),
        float(repaired.mean()),
        labels[main],
        parts,
        len(predictions),
    )


# -- inside ----------------------------------------------------------------------------------------------------------


def _test_points(data: Any, test: Any, truth: Any) -> tuple[Any, Any]:
    """Return the points to predict, and their labels where they are the truth."""
    if test is None:
        if callable(data):
            raise InvalidArgument("data= draws training sets, so test= has to say which points are predicted")
        return data[0], np.asarray(data[1])
    if isinstance(test, tuple) and len(test) == 2:
        return test[0], np.asarray(test[1])
    if truth is None:
        raise InvalidArgument("test= is a pair (X, y) where there is no truth=")
    return test, None


def _train(
    estimator: Any, data: Any, points: Any, held_out: bool, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Draw a training set, train, predict the points; say which of them were not drawn."""
    seen = None
    if callable(data):
        x, y = data(rng)
    else:
        n = _length(data[0])
        drawn = rng.integers(0, n, n)
        x, y = _rows(data[0], drawn), _rows(data[1], drawn)
        if held_out:
            seen = np.ones(n, dtype=bool)
            seen[drawn] = False
    if hasattr(estimator, "fit"):
        from sklearn.base import clone

        model = clone(estimator)
        fresh = {
            name: int(rng.integers(2**31 - 1))
            for name in sorted(model.get_params(deep=True))
            if name == "random_state" or name.endswith("__random_state")
        }
        model.set_params(**fresh)
        predicted = model.fit(x, y).predict(points)
    elif callable(estimator):
        predicted = estimator(x, y, points)
    else:
        raise InvalidArgument(
            f"an estimator has fit and predict, or is a function (X, y, points), not {estimator!r}"
        )
    found = np.asarray(predicted).reshape(-1)
    if len(found) != _length(points):
        raise InvalidArgument(
            f"{_length(points)} points were to be predicted, but {len(found)} values came back"
        )
    return found, seen


def _natural_loss(estimator: Any, labels: Any) -> str:
    if hasattr(estimator, "fit"):
        from sklearn.base import is_classifier, is_regressor

        if is_classifier(estimator) or is_regressor(estimator):
            return "zero-one" if is_classifier(estimator) else "squared"
    return "squared" if np.asarray(labels).dtype.kind in "fiu" else "zero-one"


def _noise_level(noise: Any, points: Any) -> Array:
    level = np.asarray(noise(points) if callable(noise) else noise, dtype=np.float64)
    if not np.isfinite(level).all() or (level < 0).any() or level.shape not in ((), (_length(points),)):
        raise InvalidArgument("noise= is a variance that is not negative, one number or one a test point")
    return level


def _length(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def _rows(table: Any, chosen: NDArray[np.int64]) -> Any:
    return table.iloc[chosen] if hasattr(table, "iloc") else np.asarray(table)[chosen]
