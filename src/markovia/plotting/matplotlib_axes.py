"""Axes to draw on when the user gives none, and a clear word when matplotlib is missing."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_axes(ax: Any) -> None:
    """Make sure that matplotlib is there and that `ax` is axes or None.

    Raises
    ------
    MarkoviaError
        If matplotlib is not installed; the message has the command that installs it.
    InvalidArgument
        If `ax` is something else, such as a figure.
    """
    try:
        from matplotlib.axes import Axes
    except ImportError:
        raise MarkoviaError("plotting needs matplotlib; install it with: pip install matplotlib") from None
    if ax is not None and not isinstance(ax, Axes):
        raise InvalidArgument(f"ax= is a matplotlib Axes, not {type(ax).__name__}")


def new_axes(width: float, height: float, *, top: float = 0.0) -> "Axes":
    """Return axes that fill a new figure of a size in inches, but for `top` inches for a title.

    The figure is pyplot's, so that notebooks and `plt.show()` show it.
    """
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(max(width, 1.0), max(height, 0.6)))
    return figure.add_axes((0.0, 0.0, 1.0, 1.0 - top / max(height, 0.6)))


def plain_axes(ax: "Axes | None", width: float, height: float) -> "Axes":
    """Return the axes given, or those of a new figure of a size in inches, without lines at the top and right."""
    check_axes(ax)
    return style.bare(ax if ax is not None else panels(1, 1, width, height)[0, 0])


def panel_each(
    ax: "Axes | None", count: int, things: str, size: tuple[float, float], columns: int = 4
) -> "np.ndarray[Any, Any]":
    """Return an array of axes, one for each of some things, of a size in inches each; for one thing the axes given."""
    check_axes(ax)
    if ax is not None:
        if count != 1:
            raise InvalidArgument(f"ax= is for one picture; there are {count} {things}")
        return np.array([[ax]])
    columns = min(columns, count)
    rows = -(-count // columns)
    return panels(rows, columns, size[0] * columns, size[1] * rows, used=count)


def panels(
    rows: int,
    columns: int,
    width: float,
    height: float,
    *,
    used: int | None = None,
    heights: tuple[float, ...] | None = None,
) -> "np.ndarray[Any, Any]":
    """Return an array (rows, columns) of axes on a new figure of a size in inches; those beyond `used` are hidden."""
    check_axes(None)
    from matplotlib import pyplot as plt

    size = (width, height)
    _, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, height_ratios=heights
    )
    for k, ax in enumerate(axes.flat):
        style.bare(ax).set_visible(used is None or k < used)
    found: np.ndarray[Any, Any] = axes
    return found
