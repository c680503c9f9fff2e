"""Pictures of functions that are known up to a Gaussian process: the mean with a band along one input, and the rows."""
# ruff: noqa: N806 (letters of the literature)

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.gaussian.function_values import FunctionValues
from markovia.models.classifiers.feature_rows import feature_names
from markovia.models.gaussian.gaussian_process import GaussianProcess
from markovia.plotting.matplotlib_axes import check_axes
from markovia.plotting.series.bands import plot_band
from markovia.runtime.checks import check_level
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = 300
"""Inputs at which a curve is drawn."""
MARGIN = 0.05
"""How far beyond the rows it goes, as a share of their range."""


@guided
def plot_function_values(
    values: FunctionValues, *, ax: "Axes | None" = None, title: str | None = None, prob: float = 0.9
) -> "Axes":
    """Draw a function at some inputs of one column: its mean, and the interval at each input.

    Parameters
    ----------
    values
        From `posterior.at(X)`.
    ax
        Where to draw; a new figure by default.
    title
        Text above; none by default.
    prob
        The probability of the interval at each input.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> gp = mk.GaussianProcess(mk.covariances.RBF(1.0), mean=0.0).fit([[0.0], [1.0]], [1.0, 2.0])
    >>> ax = gp.function().at(np.linspace(0.0, 1.0, 5)).plot(prob=0.5)
    >>> [t.get_text() for t in ax.get_legend().get_texts()]
    ['mean', '50% interval']
    """
    check_axes(ax)
    check_level("prob", prob)
    if values.X.shape[1] != 1:
        raise InvalidArgument(
            f"a curve is drawn along one input, and these have {values.X.shape[1]} columns; plot(column=) of a "
            "GaussianProcess goes along one of them"
        )
    low, high = values.interval(prob)
    ax = plot_band(
        values.X[:, 0], np.ravel(values.mean()), low, high, band=f"{prob:.0%} interval", ax=ax, title=title
    )
    ax.set_ylabel(values.names[0])
    return ax


@guided
def plot_gaussian_process(
    process: GaussianProcess,
    *,
    column: int = 0,
    ax: "Axes | None" = None,
    title: str | None = None,
    prob: float = 0.9,
) -> "Axes":
    """Draw the function of a fitted process along one column of its inputs, and its rows.

    Parameters
    ----------
    process
        A fitted `GaussianProcess` of one column of targets. Targets that are not normal are in another unit than the
        function, and not drawn.
    column
        The column to go along; others are at their medians.
    ax, title, prob
        As of `plot_function_values`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> ax = mk.GaussianProcess(mk.covariances.RBF(1.0), mean=0.0).fit([[0.0], [1.0]], [1.0, 2.0]).plot()
    >>> [t.get_text() for t in ax.get_legend().get_texts()], ax.get_xlabel()
    (['observed', 'mean', '90% interval'], 'x0')
    """
    check_axes(ax)
    check_level("prob", prob)
    X, y, d = process.X_fit_, process.targets_, process.n_features_in_
    if y.ndim > 1:
        raise InvalidArgument(
            "several columns of targets are several pictures; draw function(column).at(x).plot()"
        )
    if not 0 <= column < d:
        raise InvalidArgument(f"column= is one of {d} columns, numbered from 0, not {column}")
    low, high = X[:, column].min(), X[:, column].max()
    room = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
    places = np.tile(np.median(X, axis=0), (PLACES, 1))
    places[:, column] = np.linspace(low - room, high + room, PLACES)
    values = process.function().at(places)
    bottom, top = values.interval(prob)
    seen: dict[str, Any] = {"observed": y, "at": X[:, column]} if process.likelihood == "normal" else {}
    ax = plot_band(
        places[:, column], values.mean(), bottom, top, band=f"{prob:.0%} interval", ax=ax, title=title, **seen
    )
    ax.set(xlabel=feature_names(process)[column], ylabel="y" if seen else "f")
    return ax
