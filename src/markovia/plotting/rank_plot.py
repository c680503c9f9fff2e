"""Histograms of ranks, for simulation-based calibration."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import panel_each

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12


def plot_ranks(found: Any, *, bins: int = 20, ax: "Axes | None" = None) -> Any:
    """Draw a histogram of ranks for each number (the first twelve), and the band where 99% of even bars end.

    Returns an array of axes, or `ax` if it was given, which is for one number.
    """
    from scipy.stats import binom

    names = list(found.ranks)[:MOST]
    axes = panel_each(ax, len(names), "numbers", (2.6, 2.0))
    for one, name in zip(axes.flat, names, strict=False):
        ranks = found.ranks[name]
        edges = np.linspace(0, found.draws + 1, bins + 1)
        share = np.diff(np.floor(edges)) / (found.draws + 1)
        low, high = binom.ppf(0.005, len(ranks), share.mean()), binom.ppf(0.995, len(ranks), share.mean())
        one.axhspan(low, high, color=style.SEPARATOR_FILL, zorder=0)
        one.axhline(len(ranks) / bins, color=style.EDGE, linewidth=0.8, zorder=1)
        one.hist(ranks + 0.5, edges, color=style.BAR, edgecolor=style.BACKGROUND, linewidth=0.5, zorder=2)
        one.set_title(shorten(name, 24), parse_math=False, fontsize=style.FONT_SIZE)
        one.set_yticks([])
        one.set_xlabel("rank", fontsize=style.SMALL_FONT_SIZE)
    return axes if ax is None else ax
