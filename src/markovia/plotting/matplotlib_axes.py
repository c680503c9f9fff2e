"""Axes to draw on when the user gives none, and a clear word when matplotlib is missing."""

from typing import TYPE_CHECKING, Any

from markovia.errors import InvalidArgument, MarkoviaError

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
