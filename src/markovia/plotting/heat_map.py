"""Tables as heat maps: rows and columns of states, darker where there is more, with the numbers written where they fit."""

from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.factor import Factor
from markovia.plotting import style
from markovia.plotting.labels import shorten, text_width
from markovia.plotting.matplotlib_axes import check_axes
from markovia.runtime.array_types import Array
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_LABEL = 24
MOST_WRITTEN_CELLS = 400
MOST_CELLS = 40_000
LINE = 0.18  # inches from one label to the next
SLANTED_LINE = 0.28
TITLE_SIZE = 12.0


@guided
def plot_table(table: Any, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw a factor or a conditional table as a heat map.

    Parameters
    ----------
    table
        A `Factor`, or what stands at a node of a network (`bn["wet"]`); its last variable runs across, all others down.
    ax
        Where to draw; a new figure of a fitting size by default.
    title
        Text above; what the table is by default, "" for none.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> ax = mk.examples.sprinkler()["wet"].plot()
    >>> ax.get_title(), ax.get_ylabel(), ax.get_xlabel()
    ('P(wet | sprinkler, rain)', 'sprinkler, rain', 'wet')
    """
    check_axes(ax)
    if isinstance(table, Conditional):
        variables, values = (*table.parents, table.variable), table.values
        given = f" | {', '.join(table.parent_names)}" if table.parents else ""
        said, written = f"P({table.variable.name}{given})", percentage
    elif isinstance(table, Factor):
        variables, values = table.variables, table.values
        said, written = f"factor of {', '.join(table.names)}", "{:.3g}".format
    else:
        raise InvalidArgument(
            f"a table is a Factor or a node's conditional table, not {type(table).__name__}"
        )
    if not variables or values.size > MOST_CELLS:
        raise InvalidArgument(
            f"a table of {values.size:,} entries cannot be seen; reduce it to fewer variables"
        )
    *down, across = variables
    rows = [", ".join(str(s) for s in states) for states in product(*(v.states for v in down))]
    title = shorten(said, 60) if title is None else title
    return heat_map(
        values.reshape(prod(values.shape[:-1]), -1),
        rows,
        [str(s) for s in across.states],
        (", ".join(v.name for v in down), across.name),
        ax=ax,
        title=title,
        written=written,
    )


def percentage(p: float) -> str:
    """Return a probability as it is written."""
    return f"{100 * p:.1f}%"


def heat_map(
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    names: tuple[str, str],
    *,
    ax: "Axes | None",
    title: str,
    written: Callable[[float], str],
) -> "Axes":
    """Draw a matrix with the labels of its rows and columns, and what these are labels of."""
    rows = [shorten(label, LONGEST_LABEL) for label in rows]
    columns = [shorten(label, LONGEST_LABEL) for label in columns]
    down, across = (shorten(name, LONGEST_LABEL + 16) for name in names)
    widest = max(text_width(t, style.FONT_SIZE) for t in columns)
    if ax is None:
        left = 1.0 + max(text_width(t, style.FONT_SIZE) for t in rows)
        high = max(0.5 * len(rows), text_width(down, style.FONT_SIZE))
        below = 1.2 + (0.6 * widest if widest > 0.62 else 0.0)
        wide = max(0.75 * len(columns), text_width(title, TITLE_SIZE), text_width(across, style.FONT_SIZE))
        ax, (width, height) = sized_axes(wide, high, left, below)
    else:
        width, height = inches(ax)
    cell = width / len(columns), height / len(rows)
    slanted = widest > 0.83 * cell[0]
    across_every, down_every = every(cell[0], SLANTED_LINE) if slanted else 1, every(cell[1], LINE)
    highest = float(values.max())
    colours = style.ramp()
    ax.imshow(values, cmap=colours, vmin=0.0, vmax=max(highest, 1e-12), aspect="auto")
    ax.set_xticks(range(0, len(columns), across_every), columns[::across_every], parse_math=False)
    if slanted:
        ax.tick_params(axis="x", labelrotation=40)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    ax.set_yticks(range(0, len(rows), down_every), rows[::down_every], parse_math=False)
    ax.set_xlabel(across, parse_math=False)
    ax.set_ylabel(down, parse_math=False)
    ax.tick_params(length=0)
    ax.set_title(title, parse_math=False, wrap=True)
    texts = [[written(float(v)) for v in row] for row in values] if values.size <= MOST_WRITTEN_CELLS else []
    room = max((text_width(t, 9.0) for row in texts for t in row), default=0.0) + 0.06
    if texts and cell[0] >= room and cell[1] >= LINE:
        for (i, j), value in np.ndenumerate(values):
            ink = style.ink_on(colours(value / max(highest, 1e-12)))
            ax.text(j, i, texts[i][j], ha="center", va="center", color=ink, fontsize=9)
    return ax


def every(step: float, least: float) -> int:
    """Say which labels fit: every first, every second, ... so that none touches the next."""
    return ceil(least / step)


def inches(ax: "Axes") -> tuple[float, float]:
    """Return the width and the height of given axes."""
    extent, figure = ax.get_window_extent(), ax.get_figure(root=True)
    dpi = figure.dpi if figure is not None else 72.0
    return extent.width / dpi, extent.height / dpi


def sized_axes(width: float, height: float, left: float, below: float) -> "tuple[Axes, tuple[float, float]]":
    """Return axes of about this size with room beside and below, on a figure that fits a screen, and their size."""
    from matplotlib import pyplot as plt

    wide, high = min(width + left, 16.0), min(height + below, 20.0)
    _, ax = plt.subplots(figsize=(wide, high), layout="constrained")
    return ax, (wide - left, high - below)
