"""Reliability diagrams: observed shares against predicted probabilities, with the number of rows in each bin below."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.prediction.calibration_measures import Calibration, Reliability
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


@guided
def plot_calibration(
    calibration: Calibration,
    *,
    classes: Any = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw a reliability diagram.

    Parameters
    ----------
    calibration
        From `markovia.learning.calibration`.
    classes
        The labels to draw, one or a list; "top" draws the most probable class's probability. By default the second of
        two classes, otherwise all (the top one where there are more than eight).
    ax
        Where to draw; a new figure by default. The counts go into a strip below it.
    title
        Text above; the expected calibration error by default, "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        The axes of the diagram; its only child axes hold the counts.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> found = mk.learning.calibration([0, 1, 1, 0, 1], [0.1, 0.9, 0.9, 0.1, 0.1])
    >>> ax = found.plot()
    >>> ax.lines[1].get_ydata().round(3).tolist(), ax.child_axes[0].get_xlabel()
    ([0.333, 1.0], 'predicted probability')
    """
    check_axes(ax)
    chosen = _chosen(calibration, classes)
    ax = plain_axes(ax, 5.0, 5.4)
    ax.plot([0, 1], [0, 1], color=style.EDGE, linewidth=1.0, linestyle=(0, (4, 3)), label="calibrated")
    strip = ax.inset_axes((0.0, -0.32, 1.0, 0.24))
    for k, (label, found) in enumerate(chosen):
        colour, mark = style.series(k), MARKS[k % len(MARKS)]
        used = found.count > 0
        ax.plot(
            found.predicted[used], found.observed[used], color=colour, marker=mark, markersize=5.5,
            linewidth=1.4, label=label, clip_on=False, zorder=3,
        )  # fmt: skip
        if len(chosen) == 1:
            _bars(strip, found)
        else:
            strip.stairs(found.count, found.edges, color=colour, linewidth=1.3)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", ylabel="observed share")
    ax.tick_params(labelbottom=False)
    strip.set(xlim=(0, 1), xlabel="predicted probability", ylabel="rows")
    style.bare(strip)
    error, heading = calibration.expected_calibration_error, ""
    if len(chosen) == 1:
        error, heading = chosen[0][1].expected_error, f"{chosen[0][0]}: "
    ax.set_title(
        f"{heading}expected calibration error {error:.4f}" if title is None else title,
        parse_math=False,
        pad=10,
    )
    ax.legend(loc="upper left", frameon=False, fontsize=9)
    return ax


def _bars(strip: "Axes", found: Reliability) -> None:
    middle, width = (found.edges[1:] + found.edges[:-1]) / 2, np.diff(found.edges)
    strip.bar(middle, found.count, width=width, color=style.BAR, edgecolor=style.NODE_BORDER, linewidth=0.8)


def _chosen(calibration: Calibration, classes: Any) -> list[tuple[str, Reliability]]:
    if classes is None:
        if len(calibration.classes) == 2:
            classes = [calibration.classes[1]]
        else:
            classes = calibration.classes if len(calibration.classes) <= len(MARKS) else "top"
    if isinstance(classes, str) and classes == "top" and "top" not in calibration.by_class:
        return [("most probable class", calibration.top)]
    wanted = list(classes) if isinstance(classes, list | tuple) else [classes]
    for label in wanted:
        if label not in calibration.by_class:
            raise InvalidArgument(f"there is no class {label!r}; the classes are {calibration.classes[:12]}")
    return [(shorten(str(label), 24), calibration.by_class[label]) for label in wanted]
