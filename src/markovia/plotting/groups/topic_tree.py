"""Trees of topics: a box a node with its leading words, lines as wide as the documents that take them."""

from typing import TYPE_CHECKING, Any

from markovia.models.topics.hierarchical_lda import HierarchicalLDA
from markovia.plotting import style
from markovia.plotting.matplotlib_axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_topic_tree(
    model: HierarchicalLDA, n: int = 4, *, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw a tree of topics from left to right, the `n` leading words in each node."""
    places = _heights(model.parents_.tolist())
    leaves = int((model.levels_ == model.depth - 1).sum())
    if ax is None:
        ax = new_axes(3.0 * model.depth, max(0.30 * n * leaves, 2.0), top=0.4 if title else 0.0)
    words, top = model.top_words(n), float(model.documents_[0])
    for node, parent in enumerate(model.parents_.tolist()):
        x, y = float(model.levels_[node]), places[node]
        if parent >= 0:
            ax.plot(
                [x - 1.0, x], [places[parent], y], color=style.NODE_BORDER, alpha=0.5, zorder=1,
                linewidth=0.8 + 7.0 * float(model.documents_[node]) / top,
            )  # fmt: skip
        box: dict[str, Any] = {
            "boxstyle": "round,pad=0.35",
            "facecolor": style.NODE_FILL,
            "edgecolor": style.NODE_BORDER,
        }
        text = "\n".join([f"{int(model.documents_[node])} documents", *words[node]])
        ax.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            fontsize=style.SMALL_FONT_SIZE,
            parse_math=False,
            bbox=box,
            zorder=2,
        )
    ax.set_xlim(-0.45, model.depth - 0.55)
    ax.set_ylim(-0.7, max(places) + 0.7)
    ax.set_axis_off()
    if title is not None:
        ax.set_title(title, parse_math=False)
    return ax


def _heights(parents: list[int]) -> list[float]:
    """Return a height for each node: leaves one below the other, others in the middle of their children."""
    below: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        below.setdefault(parent, []).append(node)
    found, leaves = [0.0] * len(parents), 0

    def place(node: int) -> float:
        nonlocal leaves
        children = below.get(node, [])
        if children:
            heights = [place(child) for child in children]
            found[node] = (heights[0] + heights[-1]) / 2.0
        else:
            found[node] = float(leaves)
            leaves += 1
        return found[node]

    place(0)
    return [max(leaves - 1, 0) - height for height in found]
