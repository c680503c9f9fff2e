"""Two graphs side by side in one layout: what was learned, what is true, and where they differ.

Both sides place every node at the same spot. Edges that only one graph has are thick and in colour on its side; edges
with other marks are in colour on both. A legend counts them, and the side of an edge says the same as its colour.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.graphs import DAG, Mark, MixedGraph
from markovia.graphs.comparison.comparison import GraphComparison
from markovia.graphs.kinds.plot_options import Positions
from markovia.plotting import style
from markovia.plotting.drawing import (
    LARGEST_FIGURE,
    LARGEST_SCALE,
    MARGIN,
    SMALLEST_SCALE,
    USUAL_FIGURE,
    draw,
)
from markovia.plotting.labels import shorten, text_width
from markovia.plotting.layout import GraphLayout, arrange, chosen
from markovia.plotting.matplotlib_axes import check_axes
from markovia.plotting.scene import Edge, Scene, SceneNode
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 0.5
TITLE = 0.4
LONGEST_TITLE = 50
LEGEND_ROW = 0.27
ONE_ROW_FROM = 7.6  # a narrower figure has its legend in two rows


@guided
def plot_comparison(
    comparison: GraphComparison,
    *,
    axes: "Sequence[Axes] | None" = None,
    layout: Positions = "auto",
    titles: Sequence[str] = ("learned", "truth"),
    legend: bool = True,
    seed: int = 0,
) -> "tuple[Axes, Axes]":
    """Draw a learned and a true graph side by side.

    Parameters
    ----------
    comparison
        What `mk.graphs.compare_graphs` returned.
    axes
        Two axes to draw on; those of a new figure of a fitting size by default.
    layout
        "layered", "spring", "grid", "auto" (what fits the true graph), or a position (x, y) for every node; the same on
        both sides.
    titles
        The text above each side.
    legend
        Whether to say below what the colours mean, with counts.
    seed
        Seed of the spring drawing.

    Returns
    -------
    tuple of matplotlib.axes.Axes
        The left and the right side.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> from markovia.graphs.comparison.comparison import compare_graphs
    >>> found = compare_graphs(mk.graphs.DAG([("a", "b"), ("c", "b")]), mk.graphs.DAG([("a", "b"), ("b", "c")]))
    >>> left, right = plot_comparison(found)
    >>> left.get_title(), right.get_title()
    ('learned', 'truth')
    """
    check_axes(None)
    if axes is not None and len(pair := list(axes)) != 2:
        raise InvalidArgument(f"axes= are two axes, not {len(pair)}")
    if len(titles) != 2 or isinstance(titles, str):
        raise InvalidArgument("titles= are two texts, one for each side")
    names = comparison.nodes
    edges, downwards = _union(comparison)
    layout = chosen(layout, names, edges, downwards=downwards)
    nodes = [SceneNode(name) for name in names]
    whole = Scene(nodes, [], downwards)
    placed = arrange(names, whole.sizes, edges, layout, seed=seed)
    route = dict(zip(edges, placed.routes, strict=True))
    titles = [shorten(title, LONGEST_TITLE) for title in titles]
    sides = axes if axes is not None else _two_axes(whole, placed, legend, titles)
    for ax, side, title in zip(sides, (0, 1), titles, strict=True):
        check_axes(ax)
        drawn = _side(comparison, side, route)
        own = tuple(route[e.a, e.b] for e in drawn)
        # both sides show the whole layout, so that a node has the same place in each
        _draw_within(Scene(nodes, drawn, downwards, title), GraphLayout(placed.centres, own), placed, ax)
    left, right = sides
    if legend:
        _legend(comparison, left, right, own_figure=axes is None)
    return left, right


def difference_colours() -> tuple[str, str, str]:
    """Return the colours of edges that are extra, missing and reoriented."""
    colours = style.palette().SERIES
    return colours[1], colours[0], colours[3]


def _union(comparison: GraphComparison) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs that are adjacent in either graph, along an order of the true one, and whether it has one."""
    number = {name: i for i, name in enumerate(comparison.nodes)}
    pairs = [(number[a], number[b]) for a, b in comparison.edge_marks[1]]
    pairs += [
        (number[a], number[b]) for a, b in comparison.edge_marks[0] if (a, b) not in comparison.edge_marks[1]
    ]
    for graph in (comparison.truth, comparison.learned):
        if isinstance(graph, DAG):
            order = graph.topological_order()
            break
        directed = graph.directed_edges() if isinstance(graph, MixedGraph) else []
        if directed:
            try:
                order = DAG(directed, nodes=comparison.nodes).topological_order()
                break
            except MarkoviaError:
                continue
    else:
        return pairs, False
    rank = {number[name]: k for k, name in enumerate(order)}
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in pairs], True


def _side(comparison: GraphComparison, side: int, route: Mapping[tuple[int, int], Any]) -> list[Edge]:
    """Return the edges of one graph, those that differ in colour."""
    extra, missing, reoriented = difference_colours()
    number = {name: i for i, name in enumerate(comparison.nodes)}
    mine, other = comparison.edge_marks[side], comparison.edge_marks[1 - side]
    found = []
    for pair, ends in mine.items():
        a, b = number[pair[0]], number[pair[1]]
        colours = (
            [(extra, missing)[side]] if pair not in other else [reoriented] if other[pair] != ends else []
        )
        for at_a, at_b in sorted(ends, key=lambda marks: (marks[0].value, marks[1].value)):
            dashed = at_a is at_b is Mark.ARROW
            if (a, b) in route:
                found.append(Edge(a, b, at_a, at_b, dashed, list(colours)))
            else:
                found.append(Edge(b, a, at_b, at_a, dashed, list(colours)))
    return found


def _draw_within(picture: Scene, own: GraphLayout, whole: GraphLayout, ax: "Axes") -> None:
    draw(picture, own, ax)
    low, high = _box(picture, whole)
    ax.set_xlim(float(low[0]), float(high[0]))
    ax.set_ylim(float(low[1]), float(high[1]))


def _box(picture: Scene, layout: GraphLayout) -> Any:
    low, high = layout.box(picture.sizes) if picture.nodes else (np.zeros(2), np.ones(2))
    return low - MARGIN, high + MARGIN


def _two_axes(
    picture: Scene, layout: GraphLayout, legend: bool, titles: Sequence[str]
) -> "tuple[Axes, Axes]":
    """Return two axes of one new figure: beside each other, or above each other if the drawing is wide."""
    from matplotlib import pyplot as plt

    low, high = _box(picture, layout)
    width, height = (float(v) for v in high - low)
    stacked = width > 2.2 * height
    columns, rows = (1, 2) if stacked else (2, 1)
    most = (LARGEST_FIGURE[0] / columns * 1.2, LARGEST_FIGURE[1] / rows)
    scale = max(
        min(1.0, most[0] / width, most[1] / height),
        min(LARGEST_SCALE, 0.6 * USUAL_FIGURE[0] / width, 0.8 * USUAL_FIGURE[1] / height),
        SMALLEST_SCALE,
    )
    room = max(text_width(title, float(plt.rcParams["font.size"]) * 1.2) for title in titles) + 0.2
    wide, high_ = max(width * scale, room, 1.6), max(height * scale, 0.8)
    across = max(columns * wide + (columns - 1) * GAP, 4.6 if legend else 2.0)
    below = 0.12 + LEGEND_ROW * (1 if across >= ONE_ROW_FROM else 2) if legend else 0.0
    total = across, rows * (high_ + TITLE) + below
    figure = plt.figure(figsize=total)
    spare = (total[0] - columns * wide - (columns - 1) * GAP) / 2
    places = [
        (spare + (k % columns) * (wide + GAP), below + (rows - 1 - k // columns) * (high_ + TITLE))
        for k in (0, 1)
    ]
    first, second = (
        figure.add_axes((x / total[0], y / total[1], wide / total[0], high_ / total[1])) for x, y in places
    )
    return first, second


def _legend(comparison: GraphComparison, left: "Axes", right: "Axes", *, own_figure: bool) -> None:
    from matplotlib.lines import Line2D

    extra, missing, reoriented = difference_colours()
    entries = [
        (style.EDGE, 1.2, f"in both ({len(comparison.shared)})"),
        (extra, 2.4, f"extra, only learned ({len(comparison.extra)})"),
        (missing, 2.4, f"missing, only true ({len(comparison.missing)})"),
    ]
    if comparison.level != "undirected":
        word = "reversed" if comparison.level == "dag" else "other marks"
        entries.append((reoriented, 2.4, f"{word} ({len(comparison.reoriented)})"))
    handles = [Line2D([], [], color=colour, linewidth=width, label=words) for colour, width, words in entries]
    if own_figure:
        figure: Any = left.get_figure(root=True)
        columns = len(handles) if figure.get_figwidth() >= ONE_ROW_FROM else 2
        figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=9)
    else:
        right.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=9
        )
