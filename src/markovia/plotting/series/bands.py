"""A curve with a band around it: any mean with its interval."""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import plain_axes
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        Places (numbers or dates), and the curve with the ends of its intervals there; where an end is not finite there is
        no band.
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
    centre, bottom, top = (np.asarray(v, dtype=np.float64).ravel() for v in (mean, low, high))
    places: Any = np.ravel(x)
    if places.dtype.kind != "M":  # matplotlib knows what to do with dates
        places = places.astype(np.float64)
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
