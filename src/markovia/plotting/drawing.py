"""A scene and a layout become matplotlib artists.

Everything has one proportion: letters, line widths and arrowheads follow the size of the boxes, so a text stays
inside its box whatever the figure's size is and however it is resized later.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.graphs.kinds.mixed import Mark
from markovia.plotting import scene as sc
from markovia.plotting import style
from markovia.plotting.edge_labels import label_places, points_along
from markovia.plotting.labels import outline, text_height, text_width
from markovia.plotting.layout import GraphLayout
from markovia.plotting.matplotlib_axes import new_axes
from markovia.plotting.plate_layout import Plate, plate_boxes
from markovia.runtime.array_types import Array
from markovia.runtime.progress import Advance, paced

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MARGIN = 0.12
LARGEST_FIGURE = (14.0, 9.0)
USUAL_FIGURE = (6.0, 4.0)
LARGEST_SCALE = 1.4  # a few nodes are drawn larger
SMALLEST_SCALE = 0.6  # letters of 6 points; a figure that needs smaller ones grows instead
ARROW = 11.0
CIRCLE = 0.045
CUT = 0.09
MOST_TEXTS = 300  # letters of more nodes are outlines: matplotlib sets a thousand texts in many seconds
HALF_LETTER = 0.36 / 72.0  # from the line that letters stand on to their middle, in inches a point


def draw(
    picture: sc.Scene,
    layout: GraphLayout,
    ax: "Axes | None",
    advance: Advance = lambda n=1: None,
    steps: int = 0,
) -> "Axes":
    """Draw a scene on the axes, or on axes of a new figure of a fitting size, and tell in so many steps how far it is."""
    sizes = picture.sizes
    low, high = layout.box(sizes) if len(sizes) else (np.zeros(2), np.ones(2))
    boxes = plate_boxes(layout.centres, sizes, picture.plates)
    for _, corner, opposite in boxes:
        low, high = np.minimum(low, corner), np.maximum(high, opposite)
    low, high = low - MARGIN, high + MARGIN
    extent = high - low
    if ax is None:
        scale = max(
            min(1.0, *(most / e for most, e in zip(LARGEST_FIGURE, extent, strict=True))),
            min(LARGEST_SCALE, *(least / e for least, e in zip(USUAL_FIGURE, extent, strict=True))),
            SMALLEST_SCALE,
        )
        title = 0.35 if picture.title else 0.0
        ax = new_axes(float(extent[0]) * scale, float(extent[1]) * scale + title, top=title)
    ax.set_xlim(float(low[0]), float(high[0]))
    ax.set_ylim(float(low[1]), float(high[1]))
    ax.set_aspect("equal")
    ax.set_axis_off()
    if picture.title:
        ax.set_title(picture.title, parse_math=False)
    proportions = _proportions_class()(ax)
    proportions.outlined = len(picture.nodes) > MOST_TEXTS
    for plate, corner, opposite in boxes:
        _draw_plate(ax, proportions, plate, corner, opposite)
    half = steps // 2
    routes = _routed(picture, layout)
    for edge, route in paced(list(zip(picture.edges, routes, strict=True)), half, advance):
        _draw_edge(ax, proportions, edge, route)
    _draw_shares(ax, proportions, picture, routes, layout)
    for node, centre in paced(list(zip(picture.nodes, layout.centres, strict=True)), steps - half, advance):
        _draw_node(ax, proportions, node, centre)
    ax.add_artist(proportions)
    proportions.apply()
    if proportions.outlines:
        from matplotlib.collections import PathCollection

        paths, colours = zip(*proportions.outlines, strict=True)
        letters = PathCollection(paths, facecolors=colours, linewidths=0.0, zorder=6, gid="letters")
        letters.set_snap(False)  # or an E, all straight lines, is moved to whole pixels
        ax.add_collection(letters, autolim=False)
    return ax


@lru_cache(maxsize=1)
def _proportions_class() -> Any:
    """Define the artist that keeps letters and lines in proportion (it needs matplotlib to be imported)."""
    from matplotlib.artist import Artist

    class Proportions(Artist):
        """Drawn before all others: sets the sizes that matplotlib counts in points from the scale of the axes."""

        def __init__(self, ax: "Axes") -> None:
            super().__init__()
            self.set_zorder(-100.0)
            self.set_in_layout(False)
            self._drawn_on = ax
            self._sized: list[tuple[Any, float]] = []
            self.outlined = False
            self.outlines: list[tuple[Any, str]] = []

        def keep(self, setter: Any, points: float) -> None:
            """Call `setter` with this many points at full scale, and again whenever the scale changes."""
            self._sized.append((setter, points))

        def apply(self) -> None:
            """Set all sizes for the axes as they are now."""
            self._drawn_on.apply_aspect()
            (x0, _), (x1, _) = self._drawn_on.transData.transform([(0.0, 0.0), (1.0, 0.0)])
            figure = self._drawn_on.get_figure(root=True)
            inches = abs(float(x1 - x0)) / (figure.dpi if figure is not None else 72.0)
            for setter, points in self._sized:
                setter(max(points * inches, 0.1))

        def draw(self, renderer: Any) -> None:
            self.apply()

    return Proportions


def _draw_plate(ax: "Axes", proportions: Any, plate: Plate, low: Array, high: Array) -> None:
    from matplotlib.patches import FancyBboxPatch

    width, height = float(high[0] - low[0]), float(high[1] - low[1])
    patch = FancyBboxPatch(
        (float(low[0]), float(low[1])), width, height, boxstyle="round,pad=0,rounding_size=0.12",
        facecolor="none", edgecolor=style.EDGE, zorder=1, gid=f"plate:{plate.label}",
    )  # fmt: skip
    proportions.keep(patch.set_linewidth, 1.0)
    ax.add_artist(patch)
    wide = text_width(plate.label, style.SMALL_FONT_SIZE)
    _write(
        ax,
        proportions,
        float(high[0]) - wide / 2 - 0.08,
        float(low[1]) + 0.11,
        plate.label,
        style.SMALL_FONT_SIZE,
        style.INK,
    )


def _draw_node(ax: "Axes", proportions: Any, node: sc.SceneNode, centre: Array) -> None:
    from matplotlib.patches import Ellipse, FancyBboxPatch, Polygon, Rectangle

    width, height = node.size
    x, y = float(centre[0]), float(centre[1])
    fill, border = _colours(node)
    corner = (x - width / 2, y - height / 2)
    patch: Any
    if node.shape == "ellipse":
        patch = Ellipse((x, y), width, height)
    elif node.shape == "box":
        # the rounding of FancyBboxPatch lies inside the box it is given
        patch = FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0,rounding_size=0.09", mutation_aspect=1
        )
    elif node.shape == "utility":
        patch = Polygon(
            [(x - width / 2, y), (x, y + height / 2), (x + width / 2, y), (x, y - height / 2)], closed=True
        )
    else:
        patch = Rectangle(corner, width, height)
    patch.set(facecolor=fill, edgecolor=node.highlight or border, zorder=3, gid=f"node:{node.name}")
    strong = node.observed or node.set_from_outside or node.highlight
    proportions.keep(patch.set_linewidth, 2.2 if strong else 1.2)
    ax.add_artist(patch)
    ink = style.FACTOR_INK if node.shape == "square" else style.INK
    top = y + (height / 2 - 0.65 * sc.PADDING if node.bars else node.title_height / 2)
    line = text_height(1, node.font_size)
    for k, words in enumerate(node.lines):
        _write(ax, proportions, x, top - (k + 0.5) * line, words, node.font_size, ink, bold=bool(node.bars))
    if node.note:
        below = top - len(node.lines) * line - text_height(1, style.SMALL_FONT_SIZE) / 2
        _write(ax, proportions, x, below, node.note, style.SMALL_FONT_SIZE, ink)
    if node.bars:
        _draw_bars(ax, proportions, node, x - width / 2, top - node.title_height - 0.04)


def _draw_bars(ax: "Axes", proportions: Any, node: sc.SceneNode, left: float, top: float) -> None:
    from matplotlib.patches import Rectangle

    states, percents = node.columns
    width = node.size[0]
    # columns: states flush left, bars, percentages flush right; a wide title stretches the bars
    start = left + sc.PADDING + states + sc.COLUMN_GAP
    right = left + width - sc.PADDING
    length = right - percents - sc.COLUMN_GAP - start
    for k, bar in enumerate(node.bars):
        y = top - (k + 0.5) * sc.ROW_HEIGHT
        _write(
            ax, proportions, left + sc.PADDING, y, bar.state, style.SMALL_FONT_SIZE, style.INK, align="left"
        )
        if bar.p is None:
            continue
        thick = 0.6 * sc.ROW_HEIGHT
        track = Rectangle((start, y - thick / 2), length, thick, facecolor=style.BAR_TRACK, zorder=4)
        track.set(edgecolor=style.FAINT, gid=f"track:{node.name}")
        proportions.keep(track.set_linewidth, 0.5)
        ax.add_artist(track)
        colour = (
            style.BAR_OBSERVED if node.observed else style.SET_BORDER if node.set_from_outside else style.BAR
        )
        full = Rectangle((start, y - thick / 2), length * min(max(bar.p, 0.0), 1.0), thick, facecolor=colour)
        full.set(zorder=5, linewidth=0.0, gid=f"bar:{node.name}")
        ax.add_artist(full)
        _write(ax, proportions, right, y, bar.percent, style.SMALL_FONT_SIZE, style.INK, align="right")


def _write(
    ax: "Axes",
    proportions: Any,
    x: float,
    y: float,
    words: str,
    size: float,
    colour: str,
    *,
    align: str = "center",
    bold: bool = False,
) -> None:
    if proportions.outlined:
        from matplotlib.path import Path

        path, width = outline(words, size, bold=bold)
        start = {"left": 0.0, "center": 0.5, "right": 1.0}[align] * width
        moved = path.vertices + np.array([x - start, y - HALF_LETTER * size])
        proportions.outlines.append((Path(moved, path.codes), colour))
        return
    text = ax.text(x, y, words, ha=align, va="center_baseline", color=colour, zorder=6, parse_math=False)
    text.set(usetex=False, weight="bold" if bold else "normal", clip_on=False)
    proportions.keep(text.set_fontsize, size)


def _colours(node: sc.SceneNode) -> tuple[str, str]:
    if node.set_from_outside:
        return style.SET_FILL, style.SET_BORDER
    if node.observed:
        return style.OBSERVED_FILL, style.OBSERVED_BORDER
    if node.shape == "square":
        return style.FACTOR_FILL, style.FACTOR_FILL
    if node.shape == "separator":
        return style.SEPARATOR_FILL, style.EDGE
    if node.shape == "decision":
        return style.DECISION_FILL, style.DECISION_BORDER
    if node.shape == "utility":
        return style.UTILITY_FILL, style.UTILITY_BORDER
    return style.NODE_FILL, style.NODE_BORDER


def _draw_edge(ax: "Axes", proportions: Any, edge: sc.Edge, route: Array) -> None:
    from matplotlib.patches import Circle, FancyArrowPatch
    from matplotlib.path import Path

    route = route.copy()
    for end, inner, mark in ((0, 1, edge.mark_a), (-1, -2, edge.mark_b)):
        if mark is Mark.CIRCLE:
            towards = route[inner] - route[end]
            step = CIRCLE * towards / max(float(np.linalg.norm(towards)), 1e-9)
            circle = Circle((route[end] + step).tolist(), CIRCLE, facecolor=style.BACKGROUND, zorder=2.5)
            circle.set(edgecolor=edge.highlights[0] if edge.highlights else style.EDGE, gid="mark")
            proportions.keep(circle.set_linewidth, 1.2)
            ax.add_artist(circle)
            route[end] += 2 * step
    codes = [Path.MOVETO] + [Path.CURVE4] * (len(route) - 1) if len(route) > 2 else None
    heads = {
        (False, False): "-",
        (False, True): "-|>",
        (True, False): "<|-",
        (True, True): "<|-|>",
    }[edge.mark_a is Mark.ARROW, edge.mark_b is Mark.ARROW]
    # an edge of several highlighted trails shows all their colours side by side
    colours = edge.highlights or [style.FAINT if edge.cut else style.EDGE]
    for k, colour in reversed(list(enumerate(colours))):
        arrow = FancyArrowPatch(
            path=Path(route, codes),
            arrowstyle="-" if k else heads,
            color=colour,
            joinstyle="miter",
            capstyle="butt",
        )
        arrow.set(zorder=2.0 + 0.2 * bool(edge.highlights), gid="edge" if not k else "edge-underlay")
        if edge.dashed or edge.cut:
            arrow.set_linestyle((0, (1.2, 2.0)) if edge.cut else (0, (4, 2.5)))
        width = (2.4 if edge.highlights else 1.2) + 2.8 * k
        if edge.share is not None:
            width = 0.6 + 2.6 * edge.share
            arrow.set_alpha(0.2 + 0.8 * edge.share)
        proportions.keep(arrow.set_linewidth, width)
        proportions.keep(arrow.set_mutation_scale, ARROW)
        ax.add_artist(arrow)
    if edge.cut:
        _cross_out(ax, proportions, route)


def _cross_out(ax: "Axes", proportions: Any, route: Array) -> None:
    """Draw a bar across the middle of an edge."""
    from matplotlib.lines import Line2D

    points = points_along(route)
    k = len(points) // 2
    middle, along = (points[k - 1] + points[k]) / 2, points[k] - points[k - 1]
    across = np.array([-along[1], along[0]]) / max(float(np.linalg.norm(along)), 1e-9) * CUT
    ends = np.stack([middle - across, middle + across])
    bar = Line2D(*ends.T, color=style.SET_BORDER, zorder=2.3, gid="cut")
    proportions.keep(bar.set_linewidth, 2.0)
    ax.add_artist(bar)


def _draw_shares(
    ax: "Axes", proportions: Any, picture: sc.Scene, routes: list[Array], layout: GraphLayout
) -> None:
    """Write the share of each labelled edge on it; one without any free place is left out, its width says the same."""
    written = [
        (f"{e.share:.2f}", route)
        for e, route in zip(picture.edges, routes, strict=True)
        if e.labelled and e.share is not None
    ]
    high = text_height(1, style.SMALL_FONT_SIZE)
    room = [np.array([text_width(words, style.SMALL_FONT_SIZE) + 0.03, high]) for words, _ in written]
    half = picture.sizes / 2
    places = label_places([route for _, route in written], room, layout.centres - half, layout.centres + half)
    for (words, _), place in zip(written, places, strict=True):
        if place is not None:
            x, y = (float(v) for v in place)
            text = ax.text(x, y, words, ha="center", va="center", zorder=2.4, gid="share")
            text.set_bbox(style.paper())
            proportions.keep(text.set_fontsize, style.SMALL_FONT_SIZE)


def _routed(picture: sc.Scene, layout: GraphLayout) -> list[Array]:
    """Return where each edge runs, from border to border: two points, or Bézier curves."""
    pairs: dict[frozenset[int], int] = {}
    routes = []
    for edge, route in zip(picture.edges, layout.routes, strict=True):
        pair = frozenset((edge.a, edge.b))
        copy = pairs.get(pair, 0)
        pairs[pair] = copy + 1
        a, b = layout.centres[edge.a], layout.centres[edge.b]
        if copy:
            # a second edge between two nodes bows out to the side
            side = np.array([a[1] - b[1], b[0] - a[0]]) * 0.22 * copy
            route = np.array([a, a + (b - a) / 3 + side, a + 2 * (b - a) / 3 + side, b])
            route[0] = _border(picture.nodes[edge.a], a, route[1])
            route[-1] = _border(picture.nodes[edge.b], b, route[-2])
        elif route is None:
            route = np.array([_border(picture.nodes[edge.a], a, b), _border(picture.nodes[edge.b], b, a)])
        else:
            # the first and the last curve are straight lines that start at the centres
            route = route.copy()
            route[0] = _border(picture.nodes[edge.a], a, route[3])
            route[-1] = _border(picture.nodes[edge.b], b, route[-4])
            route[1:3] = route[0] + (route[3] - route[0]) * np.array([[1 / 3], [2 / 3]])
            route[-3:-1] = route[-4] + (route[-1] - route[-4]) * np.array([[1 / 3], [2 / 3]])
        routes.append(route)
    return routes


def _border(node: sc.SceneNode, centre: Array, towards: Array) -> Array:
    """Return the point where the line from a node's centre to another point leaves the node."""
    half = np.array(node.size) / 2
    step = towards - centre
    if not step.any():
        return centre
    scaled = step / half
    norm = {"ellipse": 2, "utility": 1}.get(node.shape, np.inf)  # their outlines are balls of these norms
    reach = 1.0 / float(np.linalg.norm(scaled, norm))
    return np.asarray(centre + step * min(reach, 1.0), dtype=np.float64)
