"""Pictures of posteriors: bars for one variable, a heat map for two."""

from math import ceil
from typing import TYPE_CHECKING

from markovia.errors import InvalidArgument
from markovia.inference.posterior import Posterior
from markovia.plotting import style
from markovia.plotting.labels import shorten, text_width
from markovia.plotting.matplotlib_axes import check_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_LABEL = 24
LONGEST_TITLE = 34
TITLE_SIZE = 12.0
MOST_WRITTEN_CELLS = 400
LINE = 0.18  # inches from one label to the next
SLANTED_LINE = 0.28
WIDEST_PERCENTAGE = 0.5


@guided
def plot_posterior(posterior: Posterior, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw a posterior: horizontal bars with percentages, or a heat map for two variables.

    Parameters
    ----------
    posterior
        The answer of `query`, over one or two variables.
    ax
        Where to draw; a new figure of a fitting size by default.
    title
        Text above; "P(names | evidence)" by default, with much evidence shortened, "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    InvalidArgument
        If the posterior is over more than two variables.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    >>> [t.get_text() for t in bn.query("rain").plot().texts]
    ['80.0%', '20.0%']
    """
    check_axes(ax)
    if len(posterior.variables) > 2:
        raise InvalidArgument(
            f"a posterior over {len(posterior.variables)} variables cannot be drawn; choose one or two of them: "
            f"posterior.marginal([{posterior.names[0]!r}, {posterior.names[1]!r}]).plot()"
        )
    title = _title(posterior) if title is None else title
    drawn = _bars if len(posterior.variables) == 1 else _heat_map
    ax = drawn(posterior, ax, text_width(title, TITLE_SIZE))
    ax.set_title(title, parse_math=False, wrap=True)
    return ax


def _title(posterior: Posterior) -> str:
    """Return what was asked and, where there is any, what was known."""
    asked = ", ".join(shorten(name, LONGEST_LABEL) for name in posterior.names)
    if not posterior.info.given:
        return f"P({asked})"
    return f"P({asked} | {posterior.info.evidence(max(LONGEST_TITLE - len(asked), LONGEST_LABEL))})"


def _bars(posterior: Posterior, ax: "Axes | None", room: float) -> "Axes":
    labels = [shorten(str(s), LONGEST_LABEL) for s in posterior.states]
    values = [float(p) for p in posterior.values]
    name = shorten(posterior.names[0], LONGEST_LABEL)
    if ax is None:
        left = 0.4 + max(text_width(t, style.FONT_SIZE) for t in labels)
        # the name stands upright beside the bars, the title lies above them
        high = max(0.3 * len(labels), text_width(name, style.FONT_SIZE))
        ax, (_, height) = _new_axes(max(3.6, room + 0.1), high, left, 0.8)
    else:
        _, height = _inches(ax)
    every = _every(height / len(labels), LINE)
    ax.barh(
        range(len(labels)), values, color=style.BAR, edgecolor=style.NODE_BORDER, linewidth=0.8, height=0.7
    )
    for place in range(0, len(labels), every):
        ax.annotate(
            f"{100 * values[place]:.1f}%",
            (values[place], place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    ax.set_yticks(range(0, len(labels), every), labels[::every], parse_math=False)
    ax.invert_yaxis()
    # room for "100.0%" behind the longest bar that can be
    ax.set_xlim(0.0, 1.18)
    ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
    ax.set_xlabel("probability")
    ax.set_ylabel(name, parse_math=False)
    style.bare(ax)
    return ax


def _heat_map(posterior: Posterior, ax: "Axes | None", room: float) -> "Axes":
    down, across = posterior.variables
    rows = [shorten(str(s), LONGEST_LABEL) for s in down.states]
    columns = [shorten(str(s), LONGEST_LABEL) for s in across.states]
    widest = max(text_width(t, style.FONT_SIZE) for t in columns)
    if ax is None:
        left = 1.0 + max(text_width(t, style.FONT_SIZE) for t in rows)
        high = max(0.5 * len(rows), text_width(shorten(down.name, LONGEST_LABEL), style.FONT_SIZE))
        below = 1.2 + (0.6 * widest if widest > 0.62 else 0.0)
        ax, (width, height) = _new_axes(max(0.75 * len(columns), room), high, left, below)
    else:
        width, height = _inches(ax)
    cell = width / len(columns), height / len(rows)
    slanted = widest > 0.83 * cell[0]
    across_every, down_every = _every(cell[0], SLANTED_LINE) if slanted else 1, _every(cell[1], LINE)
    values = posterior.values
    highest = float(values.max())
    ax.imshow(values, cmap=style.ramp(), vmin=0.0, vmax=max(highest, 1e-12), aspect="auto")
    ax.set_xticks(range(0, len(columns), across_every), columns[::across_every], parse_math=False)
    if slanted:
        ax.tick_params(axis="x", labelrotation=40)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.set_yticks(range(0, len(rows), down_every), rows[::down_every], parse_math=False)
    ax.set_xlabel(shorten(across.name, LONGEST_LABEL), parse_math=False)
    ax.set_ylabel(shorten(down.name, LONGEST_LABEL), parse_math=False)
    ax.tick_params(length=0)
    if values.size <= MOST_WRITTEN_CELLS and cell[0] >= WIDEST_PERCENTAGE and cell[1] >= LINE:
        for i in range(len(rows)):
            for j in range(len(columns)):
                p = float(values[i, j])
                ink = style.BACKGROUND if p > 0.6 * highest else style.INK
                ax.text(j, i, f"{100 * p:.1f}%", ha="center", va="center", color=ink, fontsize=9)
    return ax


def _every(step: float, least: float) -> int:
    """Say which labels fit: every first, every second, ... so that none touches the next."""
    return ceil(least / step)


def _inches(ax: "Axes") -> tuple[float, float]:
    """Return the width and the height of given axes."""
    extent, figure = ax.get_window_extent(), ax.get_figure(root=True)
    dpi = figure.dpi if figure is not None else 72.0
    return extent.width / dpi, extent.height / dpi


def _new_axes(width: float, height: float, left: float, below: float) -> "tuple[Axes, tuple[float, float]]":
    """Return axes of about this size with room beside and below, on a figure that fits a screen, and their size."""
    from matplotlib import pyplot as plt

    wide, high = min(width + left, 16.0), min(height + below, 20.0)
    _, ax = plt.subplots(figsize=(wide, high), layout="constrained")
    return ax, (wide - left, high - below)
