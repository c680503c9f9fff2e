"""Histograms of ranks, for simulation-based calibration."""

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 12


def plot_ranks(found: Any, *, bins: int = 20) -> "Figure":
    """Draw a histogram of ranks for each number (the first twelve), and the band where 99% of even bars end."""
    import matplotlib.pyplot as plt
    from scipy.stats import binom

    names = list(found.ranks)[:MOST]
    columns = min(4, len(names))
    rows = ceil(len(names) / columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.6 * columns, 2.0 * rows), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for ax, name in zip(axes.flat, names, strict=False):
        ranks = found.ranks[name]
        edges = np.linspace(0, found.draws + 1, bins + 1)
        share = np.diff(np.floor(edges)) / (found.draws + 1)
        low, high = binom.ppf(0.005, len(ranks), share.mean()), binom.ppf(0.995, len(ranks), share.mean())
        ax.axhspan(low, high, color=style.SEPARATOR_FILL, zorder=0)
        ax.axhline(len(ranks) / bins, color=style.EDGE, linewidth=0.8, zorder=1)
        ax.hist(ranks + 0.5, edges, color=style.BAR, edgecolor=style.BACKGROUND, linewidth=0.5, zorder=2)
        ax.set_title(name, fontsize=style.FONT_SIZE)
        ax.set_yticks([])
        ax.set_xlabel("rank", fontsize=style.SMALL_FONT_SIZE)
    return figure
