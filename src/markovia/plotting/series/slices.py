"""Dynamic networks as slices: one frame a step, the same places in each, arrows within a step and from step to step.

Every variable has a row of its own, so the arrow from a variable to itself a step later is level and meets no other.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.graphs.kinds.plot_options import Highlight, Positions
from markovia.inference.engine import Engine
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.plotting.edge_labels import points_along
from markovia.plotting.edge_routes import CLEARANCE, rounded
from markovia.plotting.graph_plot import draw_scene, model_scene
from markovia.plotting.layout import GraphLayout, arrange
from markovia.plotting.matplotlib_axes import check_axes
from markovia.plotting.plate_layout import Plate
from markovia.plotting.scene import Scene
from markovia.runtime.array_types import Array
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_GAP, STEP_GAP = 0.34, 1.0
BOWS = (0.0, 0.35, -0.35, 0.7, -0.7, 1.1, -1.1, 1.6, -1.6)
"""How far, in inches, the middle of an edge is moved aside to keep away from boxes, least first."""


@guided
def plot_dynamic(
    process: DynamicBayesianNetwork,
    steps: int = 2,
    *,
    ax: "Axes | None" = None,
    given: Mapping[str, Any] | str | Iterable[str] | None = None,
    posteriors: bool = False,
    layout: Positions = "auto",
    highlight: Highlight = None,
    title: str | None = None,
    engine: str | Engine = "auto",
    max_states: int = 8,
    seed: int = 0,
    progress: bool | None = None,
) -> "Axes":
    """Draw a process over some steps, a frame around each.

    Parameters
    ----------
    process
        A dynamic network.
    steps
        How many steps; two show all there is to a process that looks one step back.
    layout
        "auto" for slices side by side, or another of `plot_model` for the unrolled network without frames.
    given, posteriors, highlight, ax, title, engine, max_states, seed, progress
        As in `plot_model`, of the unrolled network, whose variables are called `"x@t"`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> rain = mk.DynamicBayesianNetwork()
    >>> rain.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
    >>> rain.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    >>> sorted(t.get_text() for t in rain.plot().texts)
    ['rain', 'rain', 'step 0', 'step 1', 'umbrella', 'umbrella']
    """
    check_axes(ax)
    unrolled = process.unroll(steps)
    scene, observed = model_scene(
        unrolled, given=given, posteriors=posteriors, engine=engine, max_states=max_states, title=title
    )
    placed = None
    if layout == "auto":
        placed = sliced(scene)
    return draw_scene(scene, ax, observed, highlight, layout, seed, progress, placed=placed)


def sliced(scene: Scene) -> GraphLayout:
    """Frame the steps of a scene whose nodes are called `"x@t"`, name the nodes without their steps, and place them."""
    parts = [node.name.rpartition("@") for node in scene.nodes]
    names = list(dict.fromkeys(name for name, _, _ in parts))
    row = np.array([names.index(name) for name, _, _ in parts])
    step = np.array([int(t) for _, _, t in parts])
    for node, (name, _, _) in zip(scene.nodes, parts, strict=True):
        node.text = name
    scene.plates = [
        Plate(f"step {t}", np.flatnonzero(step == t).tolist()) for t in range(int(step.max()) + 1)
    ]
    sizes = scene.sizes
    largest = np.array([sizes[row == r].max(axis=0) for r in range(len(names))])
    inside = sorted({(int(row[e.a]), int(row[e.b])) for e in scene.edges if step[e.a] == step[e.b]})
    at = arrange(names, largest, inside, "layered").centres
    order = np.lexsort((at[:, 0], -at[:, 1]))
    heights = largest[order, 1] + ROW_GAP
    at[order, 1] = -np.cumsum(heights) + heights / 2
    width = float((at[:, 0] + largest[:, 0] / 2).max() - (at[:, 0] - largest[:, 0] / 2).min())
    centres = at[row] + np.outer(step * (width + STEP_GAP), [1.0, 0.0])
    return GraphLayout(centres, tuple(_around(centres, sizes, e.a, e.b) for e in scene.edges))


def _around(centres: Array, sizes: Array, a: int, b: int) -> Array | None:
    """Return how an edge runs, None for straight: with the smallest bow that meets no box, or as few as can be."""
    start, end = centres[a], centres[b]
    side = np.array([start[1] - end[1], end[0] - start[0]])
    side = side / max(float(np.linalg.norm(side)), 1e-9)
    others = np.setdiff1d(np.arange(len(centres)), [a, b])
    low, high = (centres + sign * (sizes / 2 + CLEARANCE) for sign in (-1, 1))
    met: list[int] = []
    for bow in BOWS:
        way = rounded([start, (start + end) / 2 + bow * side, end]) if bow else np.stack([start, end])
        points = np.linspace(start, end, 80) if len(way) == 2 else points_along(way)
        inside = (points[:, None] > low[others]) & (points[:, None] < high[others])
        met.append(int(inside.all(axis=2).any(axis=0).sum()))
        if not met[-1]:
            break
    bow = BOWS[int(np.argmin(met))]
    return rounded([start, (start + end) / 2 + bow * side, end]) if bow else None
