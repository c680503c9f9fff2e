"""Pictures of Markov chains: a quantity against time, and its autocorrelation."""

from typing import TYPE_CHECKING

import numpy as np

from markovia.inference.markov_chains.diagnostics import Diagnostics, autocorrelation
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 2_000
MOST_NAMED = 8


@guided
def plot_trace(
    diagnostics: Diagnostics,
    quantity: str = "log weight",
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw a traced quantity against time, one line a chain.

    Long traces are drawn as averages over a few draws. For the log weight the burn-in is shown too, shaded.

    Parameters
    ----------
    diagnostics
        `posterior.info.diagnostics`.
    quantity
        "log weight" or a state such as "rain=yes".
    ax
        Where to draw; a new figure by default.
    title
        Text above; the quantity by default, "" for none.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> found = mk.examples.sprinkler().query("rain", engine=mk.engines.Gibbs(draws=200, seed=0))
    >>> len(found.info.diagnostics.plot_trace("rain=yes").lines)
    4
    """
    check_axes(ax)
    traces = diagnostics.trace(quantity)
    burned = diagnostics.warm.shape[1] if quantity == "log weight" else 0
    ax = plain_axes(ax, 7.0, 3.0)
    for c, row in enumerate(traces):
        values = np.concatenate([diagnostics.warm[c], row]) if burned else row
        window = -(-len(values) // MOST_POINTS)
        n = len(values) // window
        points = values[: n * window].reshape(n, window).mean(axis=1)
        ax.plot(
            np.arange(n) * window - burned,
            points,
            color=style.series(c),
            linewidth=0.7,
            alpha=0.85,
            label=f"chain {c + 1}",
        )
    if burned:
        ax.axvspan(-burned, 0, color=style.INK, alpha=0.08, linewidth=0)
        ax.annotate(
            "burn-in", (-burned, 1), xycoords=("data", "axes fraction"), xytext=(4, -4),
            textcoords="offset points", va="top", fontsize=9, bbox=style.paper(),
        )  # fmt: skip
    ax.margins(x=0)
    ax.set_xlabel("draw")
    return _finished(ax, len(traces), quantity, title)


@guided
def plot_autocorrelation(
    diagnostics: Diagnostics,
    quantity: str = "log weight",
    *,
    max_lag: int = 50,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw the autocorrelation of a traced quantity, one line a chain.

    Parameters
    ----------
    diagnostics, quantity, ax, title
        As in `plot_trace`.
    max_lag
        The last lag drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> found = mk.examples.sprinkler().query("rain", engine=mk.engines.Gibbs(draws=200, seed=0))
    >>> found.info.diagnostics.plot_autocorrelation("rain=yes").get_xlabel()
    'lag'
    """
    check_axes(ax)
    traces = diagnostics.trace(quantity)
    ax = plain_axes(ax, 5.0, 3.0)
    ax.axhline(0.0, color=style.INK, linewidth=0.8)
    for c, row in enumerate(traces):
        found = autocorrelation(row, max_lag)
        ax.plot(range(len(found)), found, color=style.series(c), linewidth=1.2, label=f"chain {c + 1}")
    ax.set_xlabel("lag")
    ax.set_ylabel("autocorrelation")
    return _finished(ax, len(traces), quantity, title)


def _finished(ax: "Axes", n: int, quantity: str, title: str | None) -> "Axes":
    ax.set_title(shorten(quantity, 60) if title is None else title, parse_math=False)
    if 1 < n <= MOST_NAMED:
        style.legend_beside(ax)
    return ax
