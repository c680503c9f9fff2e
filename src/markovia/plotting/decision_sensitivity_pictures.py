"""What a decision depends on: the value over one number with the thresholds, and a tornado of many numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from markovia.errors import Unanswered
from markovia.plotting import style
from markovia.plotting.heat_map import inches
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.control.sensitivity import DecisionSensitivity
    from markovia.control.tornado_table import TornadoTable

POINTS = 60
"""Points of a piece that is no straight line."""
MOST_BARS = 20
"""Bars that are drawn: those of the numbers that matter most."""


@guided
def plot_decision_sensitivity(
    sensitivity: "DecisionSensitivity", *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw the value of a diagram over one of its numbers; where the advice flips there is a line.

    Parameters
    ----------
    sensitivity
        From `BayesianNetwork.decision_sensitivity`.
    ax
        Where to draw; a new figure by default.
    title
        Text above; none by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("coin", [0.5, 0.5])
    >>> bn.add("bet", mk.Decision(["no", "yes"]))
    >>> bn.add("pay", mk.Utility([[0, -1], [0, 2]]), parents=["coin", "bet"])
    >>> plot_decision_sensitivity(bn.decision_sensitivity(("coin", 0))).get_xlabel()
    'P(coin=0)'
    """
    check_axes(ax)
    ax = plain_axes(ax, 5.6, 3.4)
    for k, piece in enumerate(sensitivity.pieces):
        xs = np.linspace(piece.low, piece.high, 2 if piece.line else POINTS)
        ax.plot(xs, sensitivity.value(xs), color=style.series(k), linewidth=2, solid_capstyle="round")
    ax.set_xlim(sensitivity.low, sensitivity.high)
    _name_thresholds(ax, sensitivity.thresholds.tolist())
    if sensitivity.low <= sensitivity.current <= sensitivity.high:
        now = sensitivity.current
        ax.plot([now], [sensitivity.value(now)], "o", color=style.INK, markersize=5, zorder=3)
    ax.set_xlabel(sensitivity.label, parse_math=False)
    ax.set_ylabel("certainty equivalent" if sensitivity.risk else "expected utility")
    if title:
        ax.set_title(title, parse_math=False)
    return ax


def _name_thresholds(ax: "Axes", thresholds: Sequence[float]) -> None:
    """Draw a line at each threshold with its number at the top, lower where the one before would be in its way."""
    width, _ = inches(ax)
    low, high = ax.get_xlim()
    letter = 0.62 * style.SMALL_FONT_SIZE / 72.0 * (high - low) / width
    free: list[float] = []  # where each row of numbers has room again
    for x in thresholds:
        said = f"{x:.4g}"
        start, length = x + 0.5 * letter, (len(said) + 1) * letter
        side = "left" if start + length <= high else "right"
        start = start if side == "left" else x - 0.5 * letter - length
        row = next((k for k, end in enumerate(free) if end <= start), len(free))
        free[row : row + 1] = [start + length]
        ax.axvline(x, color=style.EDGE, linewidth=0.8, linestyle="--", zorder=0)
        ax.annotate(
            said, (x, 1.0), xycoords=("data", "axes fraction"), xytext=(3 if side == "left" else -3, -2 - 11 * row),
            textcoords="offset points", va="top", ha=side, fontsize=style.SMALL_FONT_SIZE, bbox=style.paper(),
        )  # fmt: skip


@guided
def plot_tornado(table: "TornadoTable", *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw a tornado: for each number a bar between the values at the ends of its range, the widest on top.

    Parameters
    ----------
    table
        From `mk.control.tornado`.
    ax
        Where to draw; a new figure by default.
    title
        Text above; none by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; a star stands beside numbers where the advice flips.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("coin", [0.5, 0.5])
    >>> bn.add("bet", mk.Decision(["no", "yes"]))
    >>> bn.add("pay", mk.Utility([[0, -1], [0, 2]]), parents=["coin", "bet"])
    >>> plot_tornado(mk.control.tornado(bn)).get_xlabel()
    'expected utility'
    """
    check_axes(ax)
    if not len(table):
        raise Unanswered("no number was varied; there is nothing to draw")
    bars = list(table)[:MOST_BARS]
    ax = plain_axes(ax, 6.4, 0.9 + 0.28 * len(bars))
    for k, bar in enumerate(reversed(bars)):
        for value, colour in ((bar.value_low, style.BAR), (bar.value_high, style.BAR_OBSERVED)):
            ax.barh([k], [value - table.value], left=table.value, height=0.7, color=colour)
        if bar.flips:
            right = max(bar.value_low, bar.value_high, table.value)
            ax.annotate("*", (right, k), xytext=(3, 0), textcoords="offset points", va="center")
    ax.axvline(table.value, color=style.INK, linewidth=0.8)
    labels = [f"{shorten(b.label, 36)}: {b.low:.4g} to {b.high:.4g}" for b in reversed(bars)]
    ax.set_yticks(range(len(bars)), labels, fontsize=style.SMALL_FONT_SIZE, parse_math=False)
    ax.set_ylim(-0.6, len(bars) - 0.4)
    ax.set_xlabel("certainty equivalent" if table.risk else "expected utility")
    if title:
        ax.set_title(title, parse_math=False)
    return ax
