"""Pictures of posteriors of states: bars for one variable, a heat map for two, bounds, and panels of many."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.posterior import Posterior
from markovia.plotting import style
from markovia.plotting.heat_map import (
    LINE,
    LONGEST_LABEL,
    TITLE_SIZE,
    every,
    heat_map,
    inches,
    percentage,
    sized_axes,
)
from markovia.plotting.labels import shorten, text_width
from markovia.plotting.matplotlib_axes import check_axes, panel_each
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_TITLE = 34
MOST_PANELS = 40
MOST_BARS = 12
"""Bars in one of several panels."""


@guided
def plot_posterior(posterior: Posterior, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw a posterior: horizontal bars with percentages, or a heat map for two variables.

    The bars of an approximate answer have error bars: what its engine says it may be off (`info.error`).

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
    if len(posterior.variables) == 2:
        down, across = posterior.variables
        rows, columns = ([str(s) for s in v.states] for v in (down, across))
        return heat_map(
            posterior.values, rows, columns, (down.name, across.name), ax=ax, title=title, written=percentage
        )
    values = np.asarray(posterior.values, dtype=np.float64)
    error = 0.0 if posterior.info.exact else float(posterior.info.error)
    ends = np.clip(values - error, 0.0, 1.0), np.clip(values + error, 0.0, 1.0)
    texts = [percentage(float(p)) for p in values]
    labels = [str(s) for s in posterior.states]
    ax = _bars(labels, values, ends, texts, posterior.names[0], ax, text_width(title, TITLE_SIZE))
    ax.set_title(title, parse_math=False, wrap=True)
    return ax


@guided
def plot_bounds(found: Any, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw bounds on probabilities: for each state a bar from the lower to the upper bound.

    Parameters
    ----------
    found
        Bounds from `bn.counterfactual(...)`.
    ax, title
        As in `plot_posterior`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("drug", p=[0.5, 0.5])
    >>> bn.add("cured", parents=["drug"], p=[[0.7, 0.3], [0.4, 0.6]])
    >>> bounds = bn.counterfactual("cured", given={"drug": 0, "cured": 0}, do={"drug": 1})
    >>> [t.get_text() for t in bounds.plot().texts]
    ['14.3% to 57.1%', '42.9% to 85.7%']
    """
    check_axes(ax)
    low, high = found.lower.ravel(), found.upper.ravel()
    labels = [", ".join(map(str, states)) for states in product(*(v.states for v in found.variables))]
    texts = [f"{percentage(a)} to {percentage(b)}" for a, b in zip(low, high, strict=True)]
    said = f"bounds on P({', '.join(found.names)})"
    title = shorten(said, LONGEST_TITLE + 20) if title is None else title
    ax = _bars(
        labels, low, (low, high), texts, ", ".join(found.names), ax, text_width(title, TITLE_SIZE), spans=True
    )
    ax.set_title(title, parse_math=False, wrap=True)
    return ax


@guided
def plot_marginals(
    marginals: Mapping[str, Any],
    names: str | Sequence[str] | None = None,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw the posterior of each variable in a panel of its own: bars for states, densities for numbers.

    Parameters
    ----------
    marginals
        The answer of `marginals`.
    names
        Which variables; all by default, at most forty.
    ax
        Where to draw, for one variable; a new figure by default.
    title
        Text above all; the evidence by default, "" for none.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        One for each variable.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> axes = mk.examples.asia().marginals(given={"xray": "yes"}).plot(["lung", "bronc"])
    >>> [ax.get_title() for ax in axes.flat], axes[0, 0].figure.get_suptitle()
    (['lung', 'bronc'], 'given xray=yes')
    """
    chosen = list(marginals) if names is None else [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in marginals:
            raise InvalidArgument(f"there is no answer about {name!r}; ask for it: marginals(targets=[...])")
    if not chosen or len(chosen) > MOST_PANELS:
        raise InvalidArgument(
            f"{len(chosen)} panels cannot be seen; choose 1 to {MOST_PANELS} variables with names="
        )
    states = [len(p) if isinstance(p, Posterior) else 4 for p in (marginals[n] for n in chosen)]
    axes = panel_each(ax, len(chosen), "variables", (2.9, 0.75 + 0.24 * max(3, min(MOST_BARS, max(states)))))
    for place, name in zip(axes.flat, chosen, strict=False):
        found = marginals[name]
        if isinstance(found, Posterior):
            plot_posterior(found, ax=place, title=shorten(name, 26))
            place.set(xlabel="", ylabel="")
            place.set_xticks([0.0, 0.5, 1.0])
        else:
            _one_density(found, place, shorten(name, 26))
        place.title.set_fontsize(style.FONT_SIZE)
    info = marginals[chosen[0]].info
    said = f"given {info.evidence()}" if info.given and title is None else title
    if said and ax is None:
        axes.flat[0].figure.suptitle(said, fontsize=style.FONT_SIZE, parse_math=False)
    return axes if ax is None else ax


def _one_density(found: Any, ax: "Axes", title: str) -> None:
    """Draw the posterior of one number: a curve, or for draws of an array the first number's."""
    if hasattr(found, "draws"):
        found.plot([next(iter(found.names))], kind="density", ax=ax, title=title)
    else:
        found.plot(ax=ax, title=title)
    ax.set(xlabel="", ylabel="", yticks=[])


def _title(posterior: Posterior) -> str:
    """Return what was asked and, where there is any, what was known."""
    asked = ", ".join(shorten(name, LONGEST_LABEL) for name in posterior.names)
    if not posterior.info.given:
        return f"P({asked})"
    return f"P({asked} | {posterior.info.evidence(max(LONGEST_TITLE - len(asked), LONGEST_LABEL))})"


def _bars(
    states: Sequence[str],
    values: Any,
    ends: tuple[Any, Any],
    texts: Sequence[str],
    name: str,
    ax: "Axes | None",
    room: float,
    *,
    spans: bool = False,
) -> "Axes":
    """Draw a bar a state, up to its value or over its span, with what is written behind it; ends that differ are errors."""
    labels = [shorten(s, LONGEST_LABEL) for s in states]
    name = shorten(name, LONGEST_LABEL)
    widest = max(text_width(t, style.FONT_SIZE) for t in texts)
    if ax is None:
        left = 0.4 + max(text_width(t, style.FONT_SIZE) for t in labels)
        # the name stands upright beside the bars, the title lies above them
        high = max(0.3 * len(labels), text_width(name, style.FONT_SIZE))
        ax, (_, height) = sized_axes(max(3.1 + widest, room + 0.1), high, left, 0.8)
    else:
        _, height = inches(ax)
    skip = every(height / len(labels), LINE)
    places = np.arange(len(labels))
    low, high_ends = ends
    starts, lengths = (low, high_ends - low) if spans else (0.0, values)
    ax.barh(
        places, lengths, left=starts, color=style.BAR, edgecolor=style.NODE_BORDER, linewidth=0.8, height=0.7
    )
    if not spans and bool((high_ends > low).any()):
        ax.hlines(places, low, high_ends, color=style.INK, linewidth=1.2, zorder=3)
        ax.plot(
            np.concatenate([low, high_ends]), np.tile(places, 2), "|", color=style.INK, markersize=6, zorder=3
        )
    for place in range(0, len(labels), skip):
        ax.annotate(
            texts[place],
            (float(high_ends[place]), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    ax.set_yticks(range(0, len(labels), skip), labels[::skip], parse_math=False)
    ax.invert_yaxis()
    # room for what is written behind the longest bar that can be
    wide, _ = inches(ax)
    share = min((widest + 0.15) / max(wide, 1.0), 0.45)
    ax.set_xlim(0.0, max(1.18, 1.0 / (1.0 - share)))
    ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0])
    ax.set_xlabel("probability")
    ax.set_ylabel(name, parse_math=False)
    return style.bare(ax)
