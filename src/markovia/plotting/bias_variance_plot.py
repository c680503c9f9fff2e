"""Bias, variance and noise as stacked bars: one learner, or several side by side to see the trade-off."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.prediction.bias_variance_decomposition import BiasVariance
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = (("bias", "NODE_BORDER", ""), ("variance", "BAR_OBSERVED", "//"), ("noise", "FAINT", ".."))


@guided
def plot_bias_variance(
    results: BiasVariance | Mapping[Any, BiasVariance], *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw what expected errors are made of.

    A negative variance (zero-one loss, where deviating from a wrong main prediction helps) is drawn below zero; a mark
    shows the total.

    Parameters
    ----------
    results
        From `markovia.learning.bias_variance`: one, or a mapping from labels (such as a setting's values) to several
        with the same loss.
    ax
        Where to draw; a new figure by default.
    title
        Text above; the loss by default, "" for none.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from markovia.learning import squared_decomposition
    >>> found = squared_decomposition(np.array([[1.0, 4.0], [3.0, 4.0]]), [1.0, 4.0])
    >>> [t.get_text() for t in found.plot().get_xticklabels()]
    ['']
    """
    check_axes(ax)
    several = dict(results) if isinstance(results, Mapping) else {"": results}
    if not several or not all(isinstance(r, BiasVariance) for r in several.values()):
        raise InvalidArgument("results= is what bias_variance returned, or a mapping from labels to such")
    losses = {r.loss for r in several.values()}
    if len(losses) > 1:
        raise InvalidArgument("results with squared and with zero-one loss cannot share one picture")
    loss = losses.pop()
    ax = plain_axes(ax, min(3.4 + 0.7 * len(several), 14.0), 3.6)
    places = np.arange(len(several))
    up, down = np.zeros(len(several)), np.zeros(len(several))
    for part, colour, hatch in PARTS:
        heights = np.array([getattr(r, part) or 0.0 for r in several.values()])
        if part == "noise" and all(r.noise is None for r in several.values()):
            continue
        name = "bias²" if part == "bias" and loss == "squared" else part
        if part == "bias" and all(r.noise is None for r in several.values()):
            name += " and noise"
        ax.bar(
            places, heights, 0.62, bottom=np.where(heights >= 0, up, down), color=getattr(style, colour), hatch=hatch,
            edgecolor=style.BACKGROUND, linewidth=0.6, label=name,
        )  # fmt: skip
        up, down = up + np.maximum(heights, 0.0), down + np.minimum(heights, 0.0)
    totals = [r.total for r in several.values()]
    ax.plot(places, totals, linestyle="", marker="D", markersize=5, color=style.INK, label="total")
    for place, total in zip(places, totals, strict=True):
        ax.annotate(
            f"{total:.3g}", (place, max(total, up[int(place)])), xytext=(0, 5), textcoords="offset points",
            ha="center", fontsize=style.SMALL_FONT_SIZE,
        )  # fmt: skip
    ax.axhline(0.0, color=style.INK, linewidth=0.8)
    ax.set_xticks(places, [shorten(str(label), 20) for label in several], parse_math=False)
    if len(several) == 1 and "" in several:
        ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.7, len(several) - 0.3)
    ax.set_ylim(top=1.12 * max(float(up.max()), 1e-12))
    ax.set_ylabel("expected error")
    ax.set_title(f"{loss} loss" if title is None else title, parse_math=False)
    style.legend_beside(ax)
    return ax
