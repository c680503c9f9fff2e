"""Numbers over time with their bands: the states of a filter or smoother, and forecasts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.padded import columns_by_number
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import panel_each
from markovia.plotting.series.bands import plot_band
from markovia.plotting.series.probabilities import check_sequence, draw_probabilities
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12
"""Numbers of a state that are drawn."""


@guided
def plot_state_path(
    found: Any,
    parts: Sequence[int | str] | None = None,
    *,
    sequence: int = 0,
    level: float = 0.95,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw the numbers of a state over time with their bands, and the probabilities of regimes below.

    Parameters
    ----------
    found
        What `filter` or `smooth` of a state-space model or particle filter returned.
    parts
        Which numbers of the state, by position or name; the first twelve by default.
    sequence
        Which sequence.
    level
        The probability inside the bands, which are those of normal laws.
    ax
        Where to draw, for one number; a new figure by default.
    title
        Text above all; none by default.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        One for each number, one below the other.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> walk = mk.LinearStateSpace(1, 1, 1, 1)
    >>> walk.smooth([1.0, 2.0, 4.0]).plot().shape
    (1, 1)
    """
    check_level("level", level)
    check_sequence(sequence, len(found.mean))
    means, spreads = columns_by_number(found.mean[sequence]), columns_by_number(_spread(found, sequence))
    chosen = _chosen(list(means), parts, "the state")
    regimes = getattr(found, "regimes", None)
    shares = None if regimes is None or ax is not None else np.asarray(regimes[sequence])
    axes = panel_each(ax, len(chosen) + (shares is not None), "numbers of the state", (6.4, 2.0), columns=1)
    for place, name in zip(axes.flat, chosen, strict=False):
        plot_band(np.arange(len(means[name])), means[name], sd=spreads[name], level=level, ax=place)
        place.set_ylabel(shorten(name, 24), parse_math=False)
        if place is not axes.flat[0]:
            place.get_legend().remove()
    if shares is not None:
        draw_probabilities(axes.flat[-1], shares, [f"regime {k}" for k in range(shares.shape[1])])
    axes.flat[-1].set_xlabel("step")
    if title:
        axes.flat[0].set_title(title, parse_math=False)
    return axes if ax is None else ax


@guided
def plot_forecast(
    forecast: Any,
    observed: Any = None,
    parts: Sequence[int | str] | None = None,
    *,
    sequence: int = 0,
    last: int | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw what is forecast after a sequence, with its intervals, beside what was observed before.

    Steps stand at their dates where the data, and `observed`, have some.

    Parameters
    ----------
    forecast
        What `forecast` of a state-space model or particle filter returned.
    observed
        The sequence that came before; left out by default.
    parts
        Which observed numbers, by position or name; the first twelve by default.
    sequence
        Which sequence.
    last
        How many of the last observations are drawn; all by default.
    ax
        Where to draw, for one number; a new figure by default.
    title
        Text above all; none by default.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        One for each observed number, one below the other.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> walk = mk.LinearStateSpace(1, 1, 1, 1)
    >>> y = [1.0, 2.0, 4.0]
    >>> walk.forecast(y, 3).plot(y)[0, 0].get_xlabel()
    'step'
    """
    check_sequence(sequence, len(forecast.mean))
    means, lows, highs = (
        columns_by_number(v[sequence]) for v in (forecast.mean, forecast.lower, forecast.upper)
    )
    names = list(means)
    chosen = _chosen(list(means), parts, "the forecast")
    before, days = ({}, None) if observed is None else _seen(observed, names, sequence)
    length = len(next(iter(before.values()))) if before else 0
    # dates where all that is drawn has some, numbers of steps otherwise
    dated = forecast.dates is not None and (observed is None or days is not None)
    coming = np.asarray(forecast.dates[sequence]) if dated else None
    gone: Any = days if dated and days is not None else np.arange(length)
    axes = panel_each(ax, len(chosen), "observed numbers", (6.4, 2.6), columns=1)
    for place, name in zip(axes.flat, chosen, strict=False):
        ahead = length + np.arange(len(means[name])) if coming is None else coming
        shown = slice(None) if last is None else slice(max(0, length - last), None)
        past = before.get(name)
        plot_band(
            ahead, means[name], lows[name], highs[name], label="forecast", band=f"{forecast.level:.0%} intervals",
            observed=None if past is None else past[shown], at=gone[shown], ax=place,
        )  # fmt: skip
        if past is not None:
            place.axvline(
                gone[-1] + (ahead[0] - gone[-1]) / 2,
                color=style.FAINT,
                linewidth=0.8,
                linestyle=":",
                zorder=0,
            )
        if len(names) > 1:
            place.set_ylabel(shorten(name, 24), parse_math=False)
        if dated:
            place.tick_params("x", rotation=30)
    axes.flat[-1].set_xlabel("date" if dated else "step" if before else "steps ahead")
    if title:
        axes.flat[0].set_title(title, parse_math=False)
    return axes if ax is None else ax


def _chosen(names: list[str], parts: Any, what: str) -> list[str]:
    """Return the numbers to draw, by name or by place; the first few by default."""
    chosen = names[:MOST] if parts is None else [p if isinstance(p, str) else _named(names, p) for p in parts]
    for name in chosen:
        if name not in names:
            raise InvalidArgument(f"{what} has {', '.join(names)}, and no {name!r}")
    return chosen


def _named(names: list[str], part: int) -> str:
    if not 0 <= part < len(names):
        raise InvalidArgument(f"parts= are positions from 0 to {len(names) - 1}, not {part!r}")
    return names[part]


def _spread(found: Any, sequence: int) -> Any:
    """Return the standard deviations of each step."""
    if hasattr(found, "sd"):
        return found.sd[sequence]
    with np.errstate(invalid="ignore"):
        return np.sqrt(np.einsum("tii->ti", np.asarray(found.cov[sequence])))


def _seen(observed: Any, names: list[str], sequence: int) -> tuple[dict[str, Array], Any]:
    """Return the observed columns by the names of the forecast, and the dates of their rows; None without dates."""
    from markovia.data.sequences.sequences import read_sequences

    rows = read_sequences(observed)
    check_sequence(sequence, len(rows.offsets) - 1)
    own = rows.split(rows.numbers())[sequence]
    own = own.reshape(len(own), -1)
    if own.shape[1] != len(names):
        raise InvalidArgument(
            f"the forecast is of {len(names)} numbers a step, and observed= has {own.shape[1]}"
        )
    dates = None if rows.dates is None else np.asarray(rows.split(rows.dates)[sequence])
    return dict(zip(names, own.T, strict=True)), dates
