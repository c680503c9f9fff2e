"""Probabilities over time as stacked areas, and the hidden states of a series below it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.sequences.sequences import Lengths, read_sequences
from markovia.errors import InvalidArgument
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import panel_each, panels, plain_axes
from markovia.plotting.series.bands import plot_band
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 4
LONGEST = 16


def draw_probabilities(ax: "Axes", values: Array, labels: Sequence[str]) -> None:
    """Stack probabilities (steps, states) over the steps, with a legend at the right."""
    edges = np.cumsum(np.concatenate([np.zeros((len(values), 1)), values], axis=1), axis=1)
    t = np.arange(len(values))
    for k, label in enumerate(labels):
        # a step is half a step wide to both sides, so that one step alone is seen
        ax.fill_between(
            np.repeat(np.append(t, len(t)), 2)[1:-1] - 0.5, np.repeat(edges[:, k], 2), np.repeat(edges[:, k + 1], 2),
            color=style.series(k), linewidth=0, label=shorten(label, LONGEST),
        )  # fmt: skip
    ax.set(xlim=(-0.5, len(values) - 0.5), ylim=(0.0, 1.0), ylabel="probability")
    style.legend_beside(ax)


def check_sequence(sequence: int, several: int) -> None:
    """Refuse a sequence that is not there."""
    if not 0 <= sequence < several:
        raise InvalidArgument(f"sequence= is one of the {several} sequences, from 0, not {sequence!r}")


@guided
def plot_hidden_states(
    model: Any,
    sequences: Any,
    lengths: Lengths = None,
    *,
    by: str | None = None,
    inputs: Any = None,
    sequence: int = 0,
    names: Sequence[str] | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw a series over the most probable path of hidden states, and the probabilities of the states below.

    Parameters
    ----------
    model
        A hidden Markov model.
    sequences, lengths, by, inputs
        As in `model.smooth`.
    sequence
        Which of several sequences.
    names
        What the states are called; "state 0", ... by default.
    ax
        Where to draw the series and the path, without the probabilities; a new figure with both by default.
    title
        Text above; none by default.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        The axes of the series, shaded by the most probable path, and below those of the probabilities; or `ax`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> params = {"means": [[0.0], [4.0]], "covariances": [[[1.0]], [[1.0]]]}
    >>> hmm = mk.HMM(2, emission="gaussian", start=[1, 0], transition=[[0.9, 0.1], [0.1, 0.9]], emission_params=params)
    >>> hmm.plot([[0.1], [3.9], [4.2]]).shape
    (2, 1)
    """
    data = read_sequences(sequences, lengths, by=by)
    check_sequence(sequence, len(data.offsets) - 1)
    path = np.asarray(model.decode(sequences, lengths, by=by, inputs=inputs)[sequence])
    rows = data.split(data.values)[sequence]
    axes = np.array([[ax]]) if ax is not None else panels(2, 1, 7.0, 3.8, heights=(1.4, 1.0))
    top = plain_axes(axes[0, 0], 7.0, 2.4)
    _draw_series(top, rows, [str(c) for c in data.columns or ()])
    _shade(top, path)
    top.set_xlim(-0.5, len(rows) - 0.5)
    top.set_title(title or "", parse_math=False)
    if ax is None:
        smoothed = np.asarray(model.smooth(sequences, lengths, by=by, inputs=inputs)[sequence])
        labels = [f"state {k}" for k in range(smoothed.shape[1])] if names is None else list(names)
        if len(labels) != smoothed.shape[1]:
            raise InvalidArgument(f"names= are those of {smoothed.shape[1]} states, not {len(labels)}")
        draw_probabilities(axes[1, 0], smoothed, labels)
        top.tick_params(labelbottom=False)
    axes[-1, 0].set_xlabel("step")
    return axes if ax is None else ax


@guided
def plot_beliefs(
    beliefs: Any,
    names: str | Sequence[str] | None = None,
    *,
    sequence: int = 0,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw the distributions of variables of a dynamic network at every step, one below the other.

    Parameters
    ----------
    beliefs
        What `filter`, `smooth` or `predict` of a dynamic network returned.
    names
        Which variables; all by default.
    sequence
        Which sequence.
    ax
        Where to draw, for one variable; a new figure by default.
    title
        Text above all; none by default.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> rain = mk.DynamicBayesianNetwork()
    >>> rain.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
    >>> rain.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    >>> rain.smooth({"umbrella": ["yes", "yes", "no"]}).plot("rain")[0, 0].get_title()
    'rain'
    """
    asked = [*beliefs, *beliefs.mean] if names is None else [names] if isinstance(names, str) else list(names)
    several = [
        *(beliefs[n] for n in asked if n in beliefs),
        *(m for n, m in beliefs.mean.items() if n in asked),
    ]
    check_sequence(sequence, len(several[0]) if several else 0)
    axes = panel_each(ax, len(asked), "variables", (6.4, 1.9), columns=1)
    for place, name in zip(axes.flat, asked, strict=False):
        if name in beliefs.mean:
            mean = beliefs.mean[name][sequence]
            plot_band(np.arange(len(mean)), mean, sd=np.sqrt(beliefs.var[name][sequence]), ax=place)
        else:
            draw_probabilities(place, beliefs[name][sequence], [str(s) for s in beliefs.states(name)])
        place.set_title(shorten(name, 40), parse_math=False, fontsize=style.FONT_SIZE)
    axes.flat[-1].set_xlabel("step")
    if title:
        axes.flat[0].figure.suptitle(title, parse_math=False)
    return axes if ax is None else ax


def _draw_series(ax: "Axes", rows: Any, columns: Sequence[str]) -> None:
    """Draw numbers as lines, and anything else as dots in the rows of its values."""
    rows = np.asarray(rows)
    rows = rows.reshape(len(rows), -1)
    try:
        numbers = rows.astype(np.float64)
    except (TypeError, ValueError):
        values = sorted({str(v) for v in rows[:, 0]})
        place = {v: i for i, v in enumerate(values)}
        ax.plot([place[str(v)] for v in rows[:, 0]], "o", color=style.INK, markersize=3.5)
        ax.set_yticks(range(len(values)), [shorten(v, LONGEST) for v in values], parse_math=False)
        ax.set_ylim(-0.6, len(values) - 0.4)
        return
    shown = numbers.shape[1] if numbers.shape[1] <= MOST_COLUMNS else MOST_COLUMNS
    looks = ("-", "--", ":", "-.")
    for k in range(shown):
        label = columns[k] if k < len(columns) else f"column {k}"
        ax.plot(numbers[:, k], looks[k], color=style.INK, linewidth=0.9, label=shorten(label, LONGEST))
    if shown > 1:
        style.legend_beside(ax)
    else:
        ax.set_ylabel(shorten(columns[0], 24) if columns else "observed", parse_math=False)


def _shade(ax: "Axes", path: Ints) -> None:
    """Shade the steps of each state."""
    starts = np.flatnonzero(np.concatenate([[True], np.diff(path) != 0]))
    ends = np.append(starts[1:], len(path))
    for k in np.unique(path):
        own = path[starts] == k
        ax.broken_barh(
            [(float(a) - 0.5, float(b - a)) for a, b in zip(starts[own], ends[own], strict=True)], (0.0, 1.0),
            transform=ax.get_xaxis_transform(), color=style.series(int(k)), alpha=0.25, linewidth=0, zorder=0,
            gid=f"state:{k}",
        )  # fmt: skip
