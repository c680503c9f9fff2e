"""How a computation settled: a bound, a log probability or the movement of messages against passes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.result import Course
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import plain_axes
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 30
"""Passes that are marked with dots."""


@guided
def plot_convergence(
    found: Any, *, label: str | None = None, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw how a computation settled.

    What rises (a bound, a log probability) is drawn on the scale of its late passes; what falls to zero (how far messages
    still move) on a logarithmic one.

    Parameters
    ----------
    found
        An answer or its `info`, the `fit_` of a model, an estimator with `history_`, or numbers, one a pass; or a mapping
        from names to several of them.
    label
        What the numbers are; known for answers.
    ax
        Where to draw; a new figure by default.
    title
        Text above; none by default.

    Raises
    ------
    InvalidArgument
        If the engine leaves no trace: exact ones do not iterate.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(3, 3, coupling=0.4, field=0.1)
    >>> mk.plotting.plot_convergence(grid.query("x0_0", engine="loopy-bp")).get_ylabel()
    'largest change of a message'
    """
    several = dict(found) if isinstance(found, Mapping) else {"": found}
    courses = [(shorten(str(name), 30), _course(one)) for name, one in several.items()]
    ax = plain_axes(ax, 5.6, 3.2)
    for k, (name, course) in enumerate(courses):
        ax.plot(
            course.steps, course.values, color=style.series(k), linewidth=1.4, label=name,
            marker="o" if len(course.values) < FEW else "", markersize=3,
        )  # fmt: skip
    first = courses[0][1]
    if first.falls:
        ax.set_yscale("log")
    else:
        _on_late_scale(ax, [np.asarray(course.values, dtype=np.float64) for _, course in courses])
    ax.set_xlabel(first.step)
    ax.set_ylabel(first.label if label is None else label)
    ax.set_title(title or "", parse_math=False)
    if len(courses) > 1:
        ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    return ax


def _course(found: Any) -> Course:
    info = getattr(found, "info", found)
    course = getattr(info, "course", None)
    if course is not None:
        drawn: Course = course
        return drawn
    values = getattr(info, "history_", getattr(info, "history", info))
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or not len(numbers):
        engine = getattr(info, "engine", None)
        what = f"engine {engine!r}" if engine else f"a {type(found).__name__}"
        raise InvalidArgument(f"{what} leaves no trace of passes to draw")
    return Course(tuple(range(1, len(numbers) + 1)), tuple(numbers), "objective")


def _on_late_scale(ax: "Axes", values: list[Any]) -> None:
    """Leave the first steep passes out of the scale."""
    late = np.concatenate([v[len(v) // 20 :] for v in values])
    low, high = float(np.nanmin(late)), float(np.nanmax(late))
    if high > low:
        ax.set_ylim(low - 0.05 * (high - low), high + 0.08 * (high - low))
