"""Bands around curves: states of a filter or smoother over time, forecasts, and any mean with its interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import panel_each, plain_axes
from markovia.plotting.series.probabilities import check_sequence, draw_probabilities
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12
"""Numbers of a state that are drawn."""
DOTS = 200
"""Observations that are drawn as dots; more are a line."""


@guided
def plot_band(
    x: Any,
    mean: Any,
    low: Any = None,
    high: Any = None,
    *,
    sd: Any = None,
    covariance: Any = None,
    level: float = 0.95,
    observed: Any = None,
    at: Any = None,
    label: str = "mean",
    band: str | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw a curve with a band around it, and what was observed.

    Parameters
    ----------
    x, mean, low, high
        Places, and the curve with the ends of its intervals there; where an end is not finite there is no band.
    sd, covariance, level
        In place of `low` and `high`, for normal distributions such as those of a Gaussian process: standard deviations,
        or the covariance matrix over the places, and the probability that the band holds at each place.
    observed, at
        What was observed, and where if not at `x`.
    label, band
        What the curve and the band are, for the legend; by default "interval", or "95% band" for standard deviations.
    ax
        Where to draw; a new figure by default.
    title
        Text above; none by default.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> x = np.linspace(0, 1, 5)
    >>> ax = mk.plotting.plot_band(x, x**2, x**2 - 0.1, x**2 + 0.1, observed=[0.3], at=[0.5])
    >>> [t.get_text() for t in ax.get_legend().get_texts()]
    ['observed', 'mean', 'interval']
    >>> ax = mk.plotting.plot_band(x, x**2, covariance=0.1 * np.exp(-((x[:, None] - x) ** 2)), level=0.5)
    >>> ax.get_legend().get_texts()[1].get_text()
    '50% band'
    """
    low, high = _ends(mean, low, high, sd, covariance, level)
    places, centre, bottom, top = (np.asarray(v, dtype=np.float64).ravel() for v in (x, mean, low, high))
    if not len(places) == len(centre) == len(bottom) == len(top):
        raise InvalidArgument("x, mean, low and high have one number a place, and their lengths differ")
    band = band or ("interval" if sd is None is covariance else f"{level:.0%} band")
    ax = plain_axes(ax, 6.4, 3.2)
    if observed is not None:
        _observations(
            ax, places if at is None else np.ravel(at), np.asarray(observed, dtype=np.float64).ravel()
        )
    order = np.argsort(places, kind="stable")
    places, centre, bottom, top = places[order], centre[order], bottom[order], top[order]
    known = np.isfinite(bottom) & np.isfinite(top)
    ax.plot(places, centre, color=style.NODE_BORDER, linewidth=1.6, label=label, zorder=3)
    ax.fill_between(
        places, bottom, top, where=known, color=style.BAR, alpha=0.3, linewidth=0, label=band, zorder=1
    )
    ax.margins(x=0.01)
    ax.set_title(title or "", parse_math=False)
    ax.legend(frameon=False, fontsize=style.SMALL_FONT_SIZE, loc="best")
    return ax


def _ends(mean: Any, low: Any, high: Any, sd: Any, covariance: Any, level: float) -> tuple[Any, Any]:
    """Return the ends of a band, however it was said how wide it is."""
    if [low is not None and high is not None, sd is not None, covariance is not None].count(True) != 1:
        raise InvalidArgument(
            "the width of a band is low= and high=, or sd=, or covariance=: one of the three"
        )
    if low is not None:
        return low, high
    from scipy.special import ndtri

    check_level("level", level)
    if covariance is not None:
        matrix = np.atleast_2d(np.asarray(covariance, dtype=np.float64))
        variance = np.diagonal(matrix)
        if len({len(mean), *matrix.shape}) > 1 or (variance < -1e-6 * np.abs(variance).max()).any():
            raise InvalidArgument(
                "covariance= is a square matrix over the places, without negative variances"
            )
        sd = np.sqrt(np.maximum(variance, 0.0))  # where a place was seen, rounding leaves a little below zero
    centre, spread = (np.asarray(v, dtype=np.float64).ravel() for v in (mean, sd))
    if len(centre) != len(spread) or (spread < 0).any():
        raise InvalidArgument("a band has one standard deviation a place, none of them negative")
    half = float(ndtri(0.5 + level / 2)) * spread
    return centre - half, centre + half


def _observations(ax: "Axes", at: Any, observed: Array) -> None:
    if len(at) != len(observed):
        raise InvalidArgument(f"{len(observed)} observations stand at {len(at)} places; say where with at=")
    order = np.argsort(at, kind="stable")
    at, observed = np.asarray(at)[order], observed[order]
    if len(observed) <= DOTS:
        ax.plot(at, observed, "o", color=style.EDGE, markersize=3, label="observed", zorder=2)
    else:
        ax.plot(at, observed, color=style.FAINT, linewidth=0.7, label="observed", zorder=2)


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
    means, spreads = _columns(found.mean[sequence]), _columns(_spread(found, sequence))
    names = list(means)
    chosen = names[:MOST] if parts is None else [p if isinstance(p, str) else _named(names, p) for p in parts]
    for name in chosen:
        if name not in means:
            raise InvalidArgument(f"the state has {', '.join(names)}, and no {name!r}")
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
    means, lows, highs = (_columns(v[sequence]) for v in (forecast.mean, forecast.lower, forecast.upper))
    names = list(means)
    chosen = names[:MOST] if parts is None else [p if isinstance(p, str) else _named(names, p) for p in parts]
    for name in chosen:
        if name not in means:
            raise InvalidArgument(f"the forecast has {', '.join(names)}, and no {name!r}")
    before = {} if observed is None else _seen(observed, names, sequence)
    length = len(next(iter(before.values()))) if before else 0
    axes = panel_each(ax, len(chosen), "observed numbers", (6.4, 2.6), columns=1)
    for place, name in zip(axes.flat, chosen, strict=False):
        ahead = length + np.arange(len(means[name]))
        shown = slice(None) if last is None else slice(max(0, length - last), None)
        past = before.get(name)
        plot_band(
            ahead, means[name], lows[name], highs[name], label="forecast", band=f"{forecast.level:.0%} intervals",
            observed=None if past is None else past[shown], at=np.arange(length)[shown], ax=place,
        )  # fmt: skip
        if past is not None:
            place.axvline(length - 0.5, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=0)
        if len(names) > 1:
            place.set_ylabel(shorten(name, 24), parse_math=False)
    axes.flat[-1].set_xlabel("step" if before else "steps ahead")
    if title:
        axes.flat[0].set_title(title, parse_math=False)
    return axes if ax is None else ax


def _named(names: list[str], part: int) -> str:
    if not 0 <= part < len(names):
        raise InvalidArgument(f"parts= are positions from 0 to {len(names) - 1}, not {part!r}")
    return names[part]


def _columns(values: Any, name: str = "") -> dict[str, Array]:
    """Return the columns of an array (steps, numbers) or of a mapping of such, by name."""
    if isinstance(values, Mapping):
        parts = [_columns(v, str(k)) for k, v in values.items()]
        return {k: v for part in parts for k, v in part.items()}
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim == 1:
        return {name or "number 0": rows}
    flat = rows.reshape(len(rows), -1)
    if flat.shape[1] == 1 and name:
        return {name: flat[:, 0]}
    return {f"{name or 'number '}{f'[{k}]' if name else k}": flat[:, k] for k in range(flat.shape[1])}


def _spread(found: Any, sequence: int) -> Any:
    """Return the standard deviations of each step."""
    if hasattr(found, "sd"):
        return found.sd[sequence]
    with np.errstate(invalid="ignore"):
        return np.sqrt(np.einsum("tii->ti", np.asarray(found.cov[sequence])))


def _seen(observed: Any, names: list[str], sequence: int) -> dict[str, Array]:
    """Return the observed columns by the names of the forecast."""
    from markovia.data.sequences.sequences import read_sequences

    rows = read_sequences(observed)
    check_sequence(sequence, len(rows.offsets) - 1)
    own = rows.split(rows.numbers())[sequence]
    own = own.reshape(len(own), -1)
    if own.shape[1] != len(names):
        raise InvalidArgument(
            f"the forecast is of {len(names)} numbers a step, and observed= has {own.shape[1]}"
        )
    return dict(zip(names, own.T, strict=True))
