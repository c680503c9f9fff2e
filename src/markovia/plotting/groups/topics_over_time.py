"""Pictures of topics over time: how words of a topic come and go, and how much of the documents each topic is."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.models.topics.base import TopicModel
from markovia.models.topics.dynamic import DynamicTopics
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 8
"""Lines that are drawn: as many as there are colours."""


def plot_words_over_time(
    model: DynamicTopics,
    topic: int,
    words: int | Sequence[str] = 6,
    *,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw the probabilities of words of a topic against time, with 95 % bands; names stand where lines end.

    A number of words takes those whose probability changes most.
    """
    laws = model.topics_over_time_
    if not 0 <= topic < laws.shape[1]:
        raise InvalidArgument(f"topic= is a position from 0 to {laws.shape[1] - 1}, not {topic!r}")
    if isinstance(words, int):
        chosen = np.argsort(-np.ptp(laws[:, topic], axis=0), kind="stable")[: min(words, MOST)]
        words = [model.vocabulary_[w] for w in chosen]
    ax = plain_axes(ax, 6.4, 3.6)
    for c, word in enumerate(words):
        path = model.word_path(word)[topic].to_numpy()
        low, high = (edge[:, topic] for edge in model.interval(word))
        colour = style.series(c)
        ax.fill_between(model.times_, low, high, color=colour, alpha=0.15, linewidth=0.0)
        ax.plot(model.times_, path, color=colour, linewidth=1.6)
    ends = {word: float(model.word_path(word)[topic].iloc[-1]) for word in words}
    _whole_times(ax, model.times_)
    _name_ends(ax, model.times_[-1], ends)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("probability of the word")
    ax.set_title(title if title is not None else f"words of topic {topic}", parse_math=False)
    return ax


def plot_topics_over_time(
    model: TopicModel, documents: Any, times: Any, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw the mean share of each topic in the documents of each time; at most eight topics, those that change most."""
    proportions = (
        model.transform(documents, times) if isinstance(model, DynamicTopics) else model.transform(documents)
    )
    given = np.asarray(times)
    if given.shape != (len(proportions),):
        raise InvalidArgument(
            f"times= is one time a document, {len(proportions)} of them, not shape {given.shape}"
        )
    steps, at = np.unique(given, return_inverse=True)
    shares = np.stack([proportions[at == t].mean(axis=0) for t in range(len(steps))])
    ax = plain_axes(ax, 6.4, 3.6)
    ends = {}
    for c, k in enumerate(np.argsort(-np.ptp(shares, axis=0), kind="stable")[:MOST]):
        ax.plot(steps, shares[:, k], color=style.series(c), linewidth=1.6)
        ends[f"{k}: {' '.join(model.top_words(2)[k])}"] = float(shares[-1, k])
    _whole_times(ax, steps)
    _name_ends(ax, steps[-1], ends)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("mean share of documents")
    ax.set_title(title if title is not None else "topics over time", parse_math=False)
    return ax


def _whole_times(ax: "Axes", times: Any) -> None:
    """Mark only whole numbers where times are whole numbers."""
    if np.issubdtype(np.asarray(times).dtype, np.integer):
        ax.locator_params(axis="x", integer=True)


def _name_ends(ax: "Axes", last: Any, ends: dict[str, float]) -> None:
    """Write names at the right, in the order and near the height of their lines, without overlap."""
    low, high = ax.get_ylim()
    gap, taken = 0.055 * (high - low), -np.inf
    colours = {name: style.series(c) for c, name in enumerate(ends)}
    for name, height in sorted(ends.items(), key=lambda item: item[1]):
        taken = max(height, taken + gap)
        ax.annotate(
            shorten(name, 24), (last, taken), xytext=(5, 0), textcoords="offset points", va="center",
            fontsize=style.SMALL_FONT_SIZE, color=colours[name], annotation_clip=False, parse_math=False,
        )  # fmt: skip
