"""Which rows belong together, as a matrix sorted by group, and how many groups there are."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.partition_posterior import PartitionPosterior
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import check_axes, plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 600
"""Rows that a matrix shows; of more, as many are taken evenly from each group."""


def plot_partition(posterior: PartitionPosterior, *, what: str = "both", ax: "Axes | None" = None) -> Any:
    """Draw the co-clustering matrix and the posterior of the number of groups; return the axes, two for "both"."""
    check_axes(ax)
    from matplotlib import pyplot as plt

    if what == "both":
        if ax is not None:
            raise InvalidArgument('ax= is for one picture; say what="matrix" or what="number" with it')
        _, pair = plt.subplots(
            1, 2, figsize=(8.4, 3.6), layout="constrained", gridspec_kw={"width_ratios": (1.0, 1.1)}
        )
        _matrix(posterior, pair[0])
        _number(posterior, pair[1])
        return pair
    ax = plain_axes(ax, 4.2, 3.6)
    (_matrix if what == "matrix" else _number)(posterior, ax)
    return ax


def _matrix(posterior: PartitionPosterior, ax: "Axes") -> None:
    point = posterior.point()
    order = np.argsort(point, kind="stable")
    if len(order) > MOST:
        order = order[np.linspace(0, len(order) - 1, MOST).astype(np.int64)]
    image = ax.imshow(
        posterior.co_clustering(order), vmin=0.0, vmax=1.0, cmap=style.ramp(), interpolation="nearest"
    )
    ends = np.flatnonzero(np.diff(point[order])) + 0.5
    for end in ends:
        ax.axhline(end, color=style.HIGHLIGHTS[0], linewidth=0.7)
        ax.axvline(end, color=style.HIGHLIGHTS[0], linewidth=0.7)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("rows, sorted by group")
    ax.set_title("probability of being together")
    ax.figure.colorbar(image, ax=ax, shrink=0.85)


def _number(posterior: PartitionPosterior, ax: "Axes") -> None:
    found = posterior.n_clusters()
    numbers = [int(k) for k in found.variables[0].states]
    ax.set_xlim(numbers[0] - 1.5, numbers[-1] + 1.5)
    ax.bar(numbers, found.values, color=style.NODE_BORDER, width=0.7)
    ax.set_xticks(numbers if len(numbers) <= 12 else numbers[:: -(-len(numbers) // 12)])
    ax.set_xlabel("number of groups")
    ax.set_ylabel("posterior probability")
    style.bare(ax)
