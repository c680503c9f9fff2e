"""A search with few trials: the lowest value by trial, and what its process knows along or over parameters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, did_you_mean
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, panel_each, plain_axes
from markovia.plotting.series.bands import plot_band
from markovia.runtime.checks import check_choice
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.models.bayesopt.study import Study

PLACES = 101
"""Places of a slice, and a side of a map has half of them."""
MOST_PANELS = 12
"""Slices that are drawn where none are named."""


@guided
def plot_study(
    study: "Study",
    kind: Literal["convergence", "slices", "surrogate"] = "convergence",
    *,
    parameters: Sequence[str] | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw a search: how it went, or what it knows.

    Parameters
    ----------
    study
        A `mk.bayesopt.Study` with trials.
    kind
        "convergence": values by trial and the lowest so far; crosses mark trials that failed or broke a constraint.
        "slices": for each parameter the mean of the process and its 95% band, the others as at the best point, and the
        trials. "surrogate": the same for one parameter, or the mean over two as a map.
    parameters
        Which to draw; by default those of the best point: the first two for "surrogate".
    ax
        Where to draw one picture; a new figure by default.
    title
        Text above; none by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, or the first of several.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> found = mk.bayesopt.minimize(lambda p: p["x"] ** 2, {"x": (-1.0, 2.0)}, 6, seed=0)
    >>> found.plot().get_xlabel(), found.plot("slices").get_xlabel()
    ('trial', 'x')
    """
    check_axes(ax)
    check_choice("kind", kind, ("convergence", "slices", "surrogate"))
    if not any(np.isfinite(t.value) for t in study.trials):
        raise Unanswered("no trial of this study has given a value; there is nothing to draw")
    if kind == "convergence":
        first = _convergence(study, ax)
    else:
        names = _names(study, parameters)
        if kind == "surrogate" and len(names) > 1:
            if parameters is not None and len(names) != 2:
                raise InvalidArgument(f"a map is over two parameters, not {len(names)}")
            first = _map(study, names[0], names[1], ax)
        else:
            axes = panel_each(ax, len(names), "parameters", (3.4, 2.7))
            for name, panel in zip(names, axes.flat, strict=False):
                _slice(study, name, panel)
            first = axes.flat[0]
    first.set_title(title or "", parse_math=False)
    return first


def _names(study: "Study", parameters: Sequence[str] | None) -> list[str]:
    active = list(_centre(study))
    if parameters is None:
        return active[:MOST_PANELS]
    for name in parameters:
        if name not in active:
            raise InvalidArgument(f"{name!r} is no parameter of the best point{did_you_mean(name, active)}")
    return list(parameters)


def _centre(study: "Study") -> dict[str, Any]:
    good = [t for t in study.trials if t.holds] or [t for t in study.trials if np.isfinite(t.value)]
    return min(good, key=lambda t: t.value).point


def _convergence(study: "Study", ax: "Axes | None") -> "Axes":
    ax = plain_axes(ax, 5.6, 3.2)
    values = np.array([t.value for t in study.trials])
    holds = np.array([t.holds for t in study.trials])
    number = np.arange(1, len(values) + 1)
    best = np.minimum.accumulate(np.where(holds, values, np.inf))
    ax.plot(number[holds], values[holds], "o", color=style.BAR, markersize=4, label="value")
    if not holds.all():
        top = np.nanmax(values)
        ax.plot(
            number[~holds], np.where(np.isfinite(values), values, top)[~holds], "x", color=style.series(1), markersize=5,
            label="failed, or a constraint broken",
        )  # fmt: skip
    known = np.isfinite(best)
    ax.step(
        number[known],
        best[known],
        where="post",
        color=style.NODE_BORDER,
        linewidth=1.6,
        label="lowest so far",
    )
    ax.set(xlabel="trial", ylabel="value")
    ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE)
    return ax


def _slice(study: "Study", name: str, ax: "Axes") -> None:
    centre = _centre(study)
    dimension, values = _along(study, name, PLACES)
    mean, sd = study.predict([{**centre, name: v} for v in values], fill=True)
    tried = [(t.point[name], t.value) for t in study.trials if name in t.point and np.isfinite(t.value)]
    if dimension.values is None or dimension.ordered:
        plot_band(values, mean, sd=sd, observed=[v for _, v in tried], at=[float(x) for x, _ in tried], ax=ax)
        if (legend := ax.get_legend()) is not None:
            legend.remove()
        if dimension.log:
            ax.set_xscale("log")
    else:
        style.bare(ax)
        ax.errorbar(
            range(len(values)), mean, 1.96 * sd, fmt="_", markersize=14, color=style.NODE_BORDER, capsize=3
        )
        places = [next(i for i, v in enumerate(values) if v is x or v == x) for x, _ in tried]
        ax.plot(places, [v for _, v in tried], "o", color=style.EDGE, markersize=3)
        ax.set_xticks(range(len(values)), [shorten(str(v), 14) for v in values])
    ax.axvline(
        float(centre[name]) if dimension.values is None or dimension.ordered else list(values).index(centre[name]),
        color=style.FAINT, linewidth=0.8, zorder=0,
    )  # fmt: skip
    ax.set(xlabel=name, ylabel="value")


def _map(study: "Study", first: str, second: str, ax: "Axes | None") -> "Axes":
    ax = plain_axes(ax, 5.2, 4.0)
    (a, across), (b, up) = (_along(study, name, PLACES // 2) for name in (first, second))
    for d in (a, b):
        if d.values is not None and not d.ordered:
            raise InvalidArgument(f"{d.name!r} is a choice, and a map is over two numbers; draw its slice")
    centre = _centre(study)
    points = [{**centre, first: x, second: y} for y in up for x in across]
    mean = study.predict(points, fill=True)[0].reshape(len(up), len(across))
    drawn = ax.contourf(np.array(across, float), np.array(up, float), mean, 14, cmap=style.ramp())
    bar = ax.figure.colorbar(drawn, ax=ax, label="mean")
    bar.outline.set_visible(False)
    tried = [t for t in study.trials if {first, second} <= set(t.point)]
    ax.plot(
        [t.point[first] for t in tried], [t.point[second] for t in tried], "o", color=style.BAR_OBSERVED, markersize=4,
        markeredgecolor=style.INK, markeredgewidth=0.5,
    )  # fmt: skip
    ax.plot(
        [centre[first]],
        [centre[second]],
        "*",
        color=style.BAR_OBSERVED,
        markersize=13,
        markeredgecolor=style.INK,
    )
    for d, scale in ((a, ax.set_xscale), (b, ax.set_yscale)):
        if d.log:
            scale("log")
    ax.set(xlabel=first, ylabel=second)
    return ax


def _along(study: "Study", name: str, n: int) -> tuple[Any, list[Any]]:
    """Return the dimension of a parameter as it is active at the best point, and values along it."""
    centre = _centre(study)
    units = study.space.unit(centre)
    active = study.space.active(units[None])[0]
    dimension = next(d for j, d in enumerate(study.space.dimensions) if d.name == name and active[j])
    if dimension.size <= n:
        return dimension, list(dict.fromkeys(dimension.value(u) for u in (np.arange(4 * n) + 0.5) / (4 * n)))
    return dimension, list(dict.fromkeys(dimension.value(u) for u in np.linspace(0.0, 1.0, n)))
