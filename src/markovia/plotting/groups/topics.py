"""Pictures of topics: their words as bars, a map of them, what documents are made of, and the way a fit went."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.learning.association.divergences import divergence_of_rows
from markovia.models.topics.base import TopicModel
from markovia.plotting import style
from markovia.plotting.labels import shorten
from markovia.plotting.matplotlib_axes import panel_each, plain_axes
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 20
MOST_DOCUMENTS = 40


def plot_topics(
    model: TopicModel,
    n: int = 8,
    *,
    topics: Sequence[int] | None = None,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> Any:
    """Draw the leading words of topics, a panel of bars each; light bars are how likely a word is anywhere.

    The topics with the largest shares come first; at most 20 are drawn unless `topics` names them. Returns an array of
    axes, or for one topic on `ax` that.
    """
    shares = model.topic_shares_
    chosen = list(np.argsort(-shares, kind="stable")[:MOST_PANELS]) if topics is None else list(topics)
    if not chosen or any(not 0 <= int(k) < len(shares) for k in chosen):
        raise InvalidArgument(f"topics= are positions from 0 to {len(shares) - 1}, not {topics!r}")
    axes = panel_each(ax, len(chosen), "topics", (2.5, 0.24 * n + 0.7))
    words = model.top_words(n, probabilities=True)
    place = {w: i for i, w in enumerate(model.vocabulary_)}
    for panel, k in zip(axes.flat, chosen, strict=False):
        names, heights = zip(*words[k], strict=True)
        anywhere = [model.word_frequency_[place[w]] for w in names]
        ys = np.arange(len(names))[::-1]
        panel.barh(ys, heights, height=0.72, color=style.NODE_BORDER)
        panel.barh(ys, np.minimum(anywhere, heights), height=0.72, color=style.BAR)
        panel.set_yticks(
            ys, [shorten(w, 16) for w in names], fontsize=style.SMALL_FONT_SIZE, parse_math=False
        )
        panel.set_title(f"topic {k}  ({shares[k]:.1%})", fontsize=style.FONT_SIZE)
        panel.locator_params(axis="x", nbins=3)
        panel.tick_params(axis="x", labelsize=style.SMALL_FONT_SIZE)
        panel.tick_params(axis="y", length=0)
        panel.spines[["top", "right", "left"]].set_visible(False)
    if title:
        axes[0, 0].figure.suptitle(title, parse_math=False)
    return axes if ax is None else ax


def plot_topic_map(model: TopicModel, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw topics as discs, their areas their shares, near each other where their words are alike.

    Places are classical scaling of the Jensen-Shannon distances.
    """
    ax = plain_axes(ax, 5.6, 4.8)
    shares = model.topic_shares_
    places = scaled_places(jensen_shannon(model.topic_word_))
    sizes = 4_000 * shares / max(shares.max(), 1e-300) / np.sqrt(len(shares)) + 20
    ax.scatter(
        places[:, 0], places[:, 1], s=sizes, color=style.NODE_BORDER, alpha=0.45, linewidths=1.0,
        edgecolors=style.NODE_BORDER,
    )  # fmt: skip
    for k, (x, y) in enumerate(places):
        ax.annotate(str(k), (x, y), ha="center", va="center", fontsize=style.FONT_SIZE, color=style.INK)
        below = -3 - float(np.sqrt(sizes[k] / np.pi))
        ax.annotate(
            " ".join(shorten(w, 12) for w in model.top_words(2)[k]), (x, y), xytext=(0, below), ha="center", va="top",
            textcoords="offset points", fontsize=style.SMALL_FONT_SIZE, color=style.EDGE, parse_math=False,
        )  # fmt: skip
    ax.margins(0.18)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal", "datalim")
    ax.spines[:].set_visible(False)
    ax.set_title(title if title is not None else "topics by the words they share", parse_math=False)
    return ax


def plot_documents(
    model: TopicModel, corpus: Corpus, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw of which topics documents are composed, as stacked bars; at most 40 documents.

    The seven topics with the largest shares there have colours of their own, the others one together.
    """
    if not len(corpus):
        raise InvalidArgument("there are no documents to draw")
    shown = corpus[:MOST_DOCUMENTS]
    ax = plain_axes(ax, 6.4, 0.9 + 0.22 * len(shown))
    parts = model.transform(shown)
    order = np.argsort(-parts.sum(axis=0), kind="stable")
    named, rest = order[:7], order[7:]
    ys = np.arange(len(shown))[::-1]
    left = np.zeros(len(shown))
    for c, k in enumerate(named):
        label = f"{k}: {' '.join(shorten(w, 10) for w in model.top_words(2)[k])}"
        ax.barh(ys, parts[:, k], left=left, height=0.8, color=style.series(c), label=label)
        left += parts[:, k]
    if len(rest):
        ax.barh(
            ys,
            parts[:, rest].sum(axis=1),
            left=left,
            height=0.8,
            color=style.FAINT,
            label=f"{len(rest)} others",
        )
    ax.set_yticks(ys, [shorten(n, 24) for n in shown.names], fontsize=style.SMALL_FONT_SIZE, parse_math=False)
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlabel("share of the document")
    ax.set_title(title or "", parse_math=False)
    style.legend_beside(ax)
    return ax


def jensen_shannon(topic_word: Array) -> Array:
    """Return the Jensen-Shannon distances (square roots of divergences) between rows of probabilities.

    Examples
    --------
    >>> jensen_shannon(np.array([[1.0, 0.0], [0.0, 1.0]])).round(4).tolist()
    [[0.0, 0.8326], [0.8326, 0.0]]
    """
    return np.asarray(np.sqrt([divergence_of_rows(own, topic_word) for own in topic_word]))


def scaled_places(distances: Array) -> Array:
    """Return places in the plane by classical scaling: the distances between them are nearly those given.

    Examples
    --------
    >>> places = scaled_places(np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))))
    >>> np.abs(np.diff(places[:, 0])).round(6).tolist()
    [1.0, 1.0]
    """
    n = len(distances)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    best = np.argsort(-values)[:2]
    places = vectors[:, best] * np.sqrt(np.maximum(values[best], 0.0))
    return np.asarray(np.pad(places, ((0, 0), (0, 2 - places.shape[1]))))
