"""A causal graph with what an effect is about: treatment, outcome, what is adjusted for, and the paths between them.

Edges of causal paths and of open paths that are not causal are in colour; what is adjusted for is shaded. Notes under
the names and a legend say the same as the colours.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markovia.causal.identification.effect_paths import EffectPaths, effect_paths
from markovia.causal.problem import Problem
from markovia.graphs.kinds.mixed import Mark
from markovia.graphs.kinds.named import Names
from markovia.graphs.kinds.plot_options import Positions
from markovia.plotting import style
from markovia.plotting.drawing import draw
from markovia.plotting.graph_plot import graph_scene
from markovia.plotting.layout import arrange, chosen
from markovia.plotting.matplotlib_axes import check_axes
from markovia.plotting.scene import Edge, Scene
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND, NARROWEST = 0.45, 2.3
"""Inches that the legend takes below a new figure, and those that it is wide."""
_MARKS = {
    "->": (Mark.TAIL, Mark.ARROW),
    "<-": (Mark.ARROW, Mark.TAIL),
    "<->": (Mark.ARROW, Mark.ARROW),
}


@guided
def plot_effect(
    graph: Any,
    treatment: Names,
    outcome: Names,
    given: Names = (),
    *,
    ax: "Axes | None" = None,
    layout: Positions = "auto",
    title: str = "",
    legend: bool = True,
    limit: int = 200,
    seed: int = 0,
) -> "Axes":
    """Draw a causal graph with the paths between treatment and outcome in colour.

    Parameters
    ----------
    graph, treatment, outcome, given, limit
        As for `mk.causal.effect_paths`; `given` is what is adjusted for.
    ax, layout, title, seed
        As for `plot_graph`.
    legend
        Whether to say below what the colours mean, with counts.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> ax = plot_effect("x -> y; x <- z -> y", "x", "y")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['causal: 1 path', 'open, not causal: 1 path']
    """
    check_axes(ax)
    problem = Problem.of(graph, treatment, outcome, given)
    paths = effect_paths(graph, treatment, outcome, given, limit=limit)
    picture = graph_scene(problem.graph)
    picture.title = title
    for node in picture.nodes:
        if node.name in problem.given:
            node.observed, node.note = True, "adjusted for"
        for role, those in (("treatment", problem.treatment), ("outcome", problem.outcome)):
            if node.name in those:
                node.note, node.shape = role, "ellipse"
    _colour(picture, paths)
    names = [node.name for node in picture.nodes]
    edges = [(edge.a, edge.b) for edge in picture.edges]
    chosen_layout = chosen(layout, names, edges, downwards=picture.downwards)
    drawn = draw(picture, arrange(names, picture.sizes, edges, chosen_layout, seed=seed), ax)
    if legend:
        _legend(drawn, paths, own_figure=ax is None)
    return drawn


def path_colours() -> tuple[str, str]:
    """Return the colours of causal paths and of open ones that are not causal."""
    colours = style.palette().SERIES
    return colours[2], colours[1]


def _colour(picture: Scene, paths: EffectPaths) -> None:
    number = {node.name: i for i, node in enumerate(picture.nodes)}
    joined: dict[tuple[int, int, Mark, Mark], Edge] = {}
    for edge in picture.edges:
        joined[edge.a, edge.b, edge.mark_a, edge.mark_b] = edge
        joined[edge.b, edge.a, edge.mark_b, edge.mark_a] = edge
    open_causal = [trail for trail in paths.causal if trail.is_open]
    for colour, trails in zip(path_colours(), (open_causal, paths.open), strict=True):
        for trail in trails:
            for (a, b), arrow in zip(pairwise(trail.nodes), trail.arrows, strict=True):
                edge = joined[number[a], number[b], *_MARKS[arrow]]
                if colour not in edge.highlights:
                    edge.highlights.append(colour)


def _legend(ax: "Axes", paths: EffectPaths, *, own_figure: bool) -> None:
    from matplotlib.lines import Line2D

    if own_figure:
        figure: Any = ax.get_figure(root=True)
        width, height = figure.get_size_inches()
        room = max(width, NARROWEST)
        old, across, up = ax.get_position(), width / room, height / (height + LEGEND)
        figure.set_size_inches(room, height + LEGEND)
        ax.set_position(
            ((1 - across) / 2 + old.x0 * across, 1 - up + old.y0 * up, old.width * across, old.height * up)
        )
    runs = [trail for trail in paths.causal if trail.is_open]
    shut = len(paths.causal) - len(runs)
    causal, biasing = path_colours()
    labels = {
        causal: f"causal: {_counted(len(runs), paths)}" + (f", {shut} blocked" if shut else ""),
        biasing: f"open, not causal: {_counted(len(paths.open), paths)}",
    }
    ax.legend(
        handles=[
            Line2D([], [], color=colour, linewidth=2.5, label=label) for colour, label in labels.items()
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        frameon=False,
        fontsize=style.SMALL_FONT_SIZE,
    )


def _counted(number: int, paths: EffectPaths) -> str:
    return f"{number}{'' if paths.complete else ' or more'} path{'' if number == 1 else 's'}"
