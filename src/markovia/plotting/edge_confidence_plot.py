"""Pictures of how sure edges are: each edge as wide and dark as its share of graphs, dashed below the threshold."""

from typing import TYPE_CHECKING

import numpy as np

from markovia.graphs.kinds.mixed import Mark
from markovia.graphs.kinds.plot_options import Positions
from markovia.plotting.drawing import draw
from markovia.plotting.layout import arrange, chosen
from markovia.plotting.matplotlib_axes import check_axes
from markovia.plotting.scene import Edge, Scene, SceneNode
from markovia.runtime.checks import NumberRange, check
from markovia.runtime.keyword_advice import guided
from markovia.structure.confidence.model_averaging import EdgeConfidence
from markovia.structure.task.acyclicity import is_acyclic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@guided
def plot_edge_confidence(
    confidence: EdgeConfidence,
    *,
    least: float | None = None,
    labels: bool = True,
    ax: "Axes | None" = None,
    layout: Positions = "auto",
    title: str | None = None,
    seed: int = 0,
) -> "Axes":
    """Draw edges as wide and dark as they are sure.

    Parameters
    ----------
    confidence
        From `mk.bootstrap_structure` or `mk.edge_posterior`.
    least
        The smallest strength that is drawn; by default a quarter of the threshold, at least 0.05. Edges that are not
        significant are dashed.
    labels
        Whether the strength is written on each edge that has a free place for it.
    ax
        Where to draw; a new figure by default.
    layout, seed
        As for `plot_graph`.
    title
        Text above; the number of graphs by default, "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(500, seed=1)
    >>> ax = mk.bootstrap_structure(rows, replicates=10, seed=0).plot()
    >>> any(p.get_gid() == "edge" for p in ax.patches)
    True
    """
    check_axes(ax)
    sure = confidence.threshold
    if least is None:
        least = max(0.05, sure / 4)
    check("least", least, NumberRange(0.0, 1.0))
    number = {name: i for i, name in enumerate(confidence.names)}
    edges = []
    for row in confidence._rows():
        if row[2] < least:
            continue
        a, b = number[row[0]], number[row[1]]
        pointed = row[4] > row[6] and row[4] > row[5]
        head = Mark.ARROW if pointed else Mark.TAIL
        edges.append(Edge(a, b, Mark.TAIL, head, not row[2] > sure, share=row[2], labelled=labels))
    pointing = np.zeros((len(number), len(number)), dtype=bool)
    pointing[[e.a for e in edges], [e.b for e in edges]] = True
    heading = f"{confidence.n_graphs:,} graphs" if confidence.n_graphs else "edge probabilities"
    picture = Scene(
        [SceneNode(name) for name in confidence.names],
        edges,
        downwards=is_acyclic(pointing),
        title=heading if title is None else title,
    )
    names, pairs = list(confidence.names), [(e.a, e.b) for e in edges]
    layout = chosen(layout, names, pairs, downwards=picture.downwards)
    return draw(picture, arrange(names, picture.sizes, pairs, layout, seed=seed), ax)
