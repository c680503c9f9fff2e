"""Pictures of posteriors made of draws: traces, densities, ranks, forests, pairs, energies, predictions.

ArviZ draws traces, ranks, forests, pairs and energies on our axes in our colours, and estimates all densities; labels are
ours, since names of users are no mathematics.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.markov_chains.diagnostics import autocorrelation
from markovia.inference.posterior_questions import arviz
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import check_axes, panel_each, panels, plain_axes
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SCALARS, MOST_PAIRS, MOST_FOREST = 12, 6, 60
LONGEST = 24
PREDICTIONS = 50
Scalars = Sequence[tuple[str, Array]]


@guided
def plot_draws(
    posterior: DrawnPosterior,
    names: Sequence[str] | None = None,
    *,
    kind: str = "trace",
    observed: Any = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw a posterior that is made of draws.

    Parameters
    ----------
    posterior
        The answer of a sampler.
    names
        Which quantities; those asked for by default. Of many scalars the first are drawn.
    kind
        "trace" (density on the left, trace on the right), "density", "rank" (ranks of each chain's draws among all:
        level where chains agree), "forest" (90% of highest density, quartiles, median), "pair" (scatter of each pair,
        divergences marked), "energy", "autocorrelation", or "predictive" (draws of a predicted array over `observed`).
    observed
        For "predictive": the data.
    ax
        Where to draw, for kinds of one picture: "forest", "energy", "predictive", and the others for one scalar.
    title
        Text above.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        What was drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from markovia.inference.result import Info
    >>> draws = np.random.default_rng(0).normal(size=(4, 200, 2))
    >>> post = DrawnPosterior(["x"], {"x": draws}, Info("nuts"))
    >>> post.plot().shape, post.plot(kind="forest").get_title()
    ((2, 2), '90% and 50% intervals')
    """
    check_axes(ax)
    check_choice("kind", kind, tuple(KINDS))
    chosen = list(posterior.names if names is None else names)
    scalars = [(shorten(label, LONGEST), values) for label, values in posterior.scalars(chosen)]
    drawn: Any = KINDS[kind](posterior, scalars, observed, ax)
    if title is not None:
        first = drawn.ravel()[0] if isinstance(drawn, np.ndarray) else drawn
        first.set_title(title, parse_math=False)
    return drawn


@contextmanager
def _drawing() -> Iterator[Any]:
    """Give ArviZ, without warnings of few draws, and without waiting for a compiler before the first picture."""
    az = arviz()
    compiles = az.Numba.numba_flag
    az.Numba.disable_numba()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield az
    finally:
        az.Numba.numba_flag = compiles


def _numbered(scalars: Scalars) -> dict[str, Array]:
    """Return draws under names that differ, which shortened labels may not."""
    return {f"{k}": values for k, (_, values) in enumerate(scalars)}


def _curve(ax: "Axes", values: Array, **look: Any) -> None:
    """Draw a kernel density estimate; a constant is a line."""
    if np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())):
        ax.axvline(float(values.flat[0]), **look)
        return
    with _drawing() as az:
        ax.plot(*az.kde(values.ravel()), **look)


def _trace(posterior: DrawnPosterior, scalars: Scalars, observed: Any, ax: Any) -> Any:
    if ax is not None:
        raise InvalidArgument(
            "kind='trace' draws two pictures a scalar; leave ax= out, or use kind='density'"
        )
    shown = scalars[:MOST_SCALARS]
    axes = panels(len(shown), 2, 9.0, 1.7 * len(shown) + 0.4)
    colours = [style.series(c) for c in range(len(shown[0][1]))]
    with _drawing() as az:
        az.plot_trace(
            _numbered(shown), axes=axes, compact=False, divergences=None, chain_prop={"color": colours},
            plot_kwargs={"linewidth": 1.2, "alpha": 0.85}, trace_kwargs={"linewidth": 0.6, "alpha": 0.85},
        )  # fmt: skip
    for (label, _), (left, right) in zip(shown, axes, strict=True):
        left.set(title="", yticks=[])
        left.set_ylabel(label, parse_math=False)
        right.set_title("")
    axes[-1, 1].set_xlabel("draw")
    return axes


def _each(draw: Callable[["Axes", str, Array], None], xlabel: str) -> Callable[..., Any]:
    """Return a kind of picture that draws every scalar on its own axes."""

    def kind(posterior: DrawnPosterior, scalars: Scalars, observed: Any, ax: Any) -> Any:
        shown = scalars[:MOST_SCALARS]
        axes = panel_each(ax, len(shown), "scalars", (3.2, 2.3), columns=3)
        for place, (label, values) in zip(axes.ravel(), shown, strict=False):
            draw(place, label, values)
            place.set_xlabel(xlabel)
            if xlabel:
                place.set_title(label, parse_math=False, fontsize=style.FONT_SIZE)
        return ax if ax is not None else axes

    return kind


def _density(ax: "Axes", label: str, values: Array) -> None:
    _curve(ax, values, color=style.NODE_BORDER, linewidth=1.5)
    low, high = np.quantile(values, [0.05, 0.95])
    ax.axvspan(low, high, color=style.BAR, alpha=0.25, linewidth=0)
    ax.axvline(float(values.mean()), color=style.INK, linewidth=0.8)
    ax.set_yticks([])
    ax.set_title(label, parse_math=False, fontsize=style.FONT_SIZE)


def _rank(ax: "Axes", label: str, values: Array) -> None:
    with _drawing() as az:
        az.plot_rank(
            {"x": values}, ax=ax, labels=False, colors=[style.series(c) for c in range(len(values))],
            ref_line_kwargs={"color": style.INK, "linewidth": 0.8}, bar_kwargs={"linewidth": 0.5},
        )  # fmt: skip


def _lags(ax: "Axes", label: str, values: Array) -> None:
    for c, row in enumerate(values):
        found = autocorrelation(row, min(50, len(row) - 1))
        ax.plot(range(len(found)), found, color=style.series(c), linewidth=1.2)
    ax.axhline(0.0, color=style.INK, linewidth=0.8)


def _forest(posterior: DrawnPosterior, scalars: Scalars, observed: Any, ax: Any) -> Any:
    shown = scalars[:MOST_FOREST]
    ax = plain_axes(ax, 6.0, 0.28 * len(shown) + 1.0)
    with _drawing() as az:
        az.plot_forest(
            _numbered(shown), ax=ax, combined=True, hdi_prob=0.9, colors=style.NODE_BORDER,
            textsize=style.FONT_SIZE, linewidth=1.2, markersize=5,
        )  # fmt: skip
    ax.set_yticks(ax.get_yticks(), [label for label, _ in reversed(shown)], parse_math=False)
    ax.set_title("90% and 50% intervals")
    return ax


def _pair(posterior: DrawnPosterior, scalars: Scalars, observed: Any, ax: Any) -> Any:
    if ax is not None or len(scalars) < 2:
        raise InvalidArgument("kind='pair' draws every pair of two scalars or more, on axes of its own")
    shown = scalars[:MOST_PAIRS]
    axes = panels(len(shown) - 1, len(shown) - 1, 2.2 * len(shown), 2.2 * len(shown) - 1.0)
    stats = posterior.stats
    bad = np.zeros(1) if stats is None or stats.diverging is None else stats.diverging
    marked = bool(bad.any())
    loud = style.HIGHLIGHTS[0]
    with _drawing() as az:
        data = az.from_dict(posterior=_numbered(shown), sample_stats={"diverging": bad} if marked else None)
        az.plot_pair(
            data, ax=axes if len(shown) > 2 else axes[0, 0], divergences=marked, textsize=style.FONT_SIZE,
            scatter_kwargs={"marker": ".", "s": 6, "alpha": 0.5, "color": style.NODE_BORDER},
            divergences_kwargs={"marker": "x", "color": loud, "markeredgecolor": loud, "label": "divergent"},
        )  # fmt: skip
    for k, (label, _) in enumerate(shown):
        if k:
            axes[k - 1, 0].set_ylabel(label, parse_math=False)
        if k < len(shown) - 1:
            axes[-1, k].set_xlabel(label, parse_math=False)
    if marked:
        axes[0, 0].legend(frameon=False, fontsize=style.SMALL_FONT_SIZE, loc="upper right")
    return axes


def _energy(posterior: DrawnPosterior, scalars: Scalars, observed: Any, ax: Any) -> Any:
    stats = posterior.stats
    if stats is None or stats.energy is None:
        raise InvalidArgument(
            "kind='energy' needs the energies of a Hamiltonian sampler, such as engine='nuts'"
        )
    ax = plain_axes(ax, 5.0, 3.0)
    with _drawing() as az:
        az.plot_energy(
            az.from_dict(sample_stats={"energy": stats.energy}), ax=ax, bfmi=False, textsize=style.FONT_SIZE,
            fill_color=(style.NODE_BORDER, style.HIGHLIGHTS[0]), fill_alpha=(0.6, 0.6),
        )  # fmt: skip
    return ax


def _predictive(posterior: DrawnPosterior, scalars: Scalars, observed: Any, ax: Any) -> Any:
    if observed is None:
        raise InvalidArgument("kind='predictive' shows predictions over data; give observed=")
    data = np.asarray(observed, dtype=np.float64).ravel()
    name = posterior.names[0]
    rows = posterior.draws[name]
    flat = rows.reshape(rows.shape[0] * rows.shape[1], -1)
    if flat.shape[1] != data.size:
        raise InvalidArgument(f"{name!r} has {flat.shape[1]} numbers a draw, and observed= has {data.size}")
    ax = plain_axes(ax, 5.0, 3.0)
    for row in flat[:: -(-len(flat) // PREDICTIONS)]:
        _curve(ax, row, color=style.BAR, linewidth=0.6, alpha=0.5)
    _curve(ax, data, color=style.INK, linewidth=1.8, label="observed")
    ax.set_yticks([])
    ax.set_xlabel(shorten(name, LONGEST), parse_math=False)
    ax.legend(frameon=False)
    return ax


KINDS: dict[str, Callable[..., Any]] = {
    "trace": _trace,
    "density": _each(_density, ""),
    "rank": _each(_rank, "rank"),
    "forest": _forest,
    "pair": _pair,
    "energy": _energy,
    "autocorrelation": _each(_lags, "lag"),
    "predictive": _predictive,
}
