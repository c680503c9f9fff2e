"""Pictures of models and graphs.

Grids are drawn as grids, directed models in layers, all others with springs (see `grid_layout`, `layered_layout` and
`stress_layout`); nothing but matplotlib is needed. With `posteriors=True` every node is a monitor that shows its
distribution as bars, as in the graphical editors for Bayesian networks.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.factors.covariances.process import GP, FittedProcess
from markovia.factors.functions.function_node import FixedFunction, FunctionNode
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import Finding, Findings, read_evidence
from markovia.graphs import DAG, BipartiteGraph, JunctionTree, Mark, MixedGraph, Trail, UndirectedGraph
from markovia.graphs.kinds.plot_options import Highlight, Positions
from markovia.inference.decisions.diagrams.open_decisions import answerable
from markovia.inference.engine import Engine
from markovia.inference.posterior import Posterior
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.plotting import style
from markovia.plotting.diagram_scene import (
    diagram_note,
    expected_amounts,
    is_diagram,
    mark_decisions,
)
from markovia.plotting.drawing import draw
from markovia.plotting.labels import shorten
from markovia.plotting.layout import GraphLayout, arrange, chosen
from markovia.plotting.matplotlib_axes import check_axes
from markovia.plotting.plate_layout import Plate, plate_layout
from markovia.plotting.scene import Edge, Scene, SceneNode, monitor
from markovia.runtime.checks import Whole, check
from markovia.runtime.keyword_advice import guided
from markovia.runtime.progress import progress_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 100
"""Of the progress bar: half of them for the layout, half for the drawing."""
Graph = DAG | UndirectedGraph | MixedGraph | BipartiteGraph | JunctionTree


@guided
def plot_model(
    model: GraphicalModel,
    *,
    ax: "Axes | None" = None,
    given: Mapping[str, Any] | str | Iterable[str] | None = None,
    do: Mapping[str, Any] | None = None,
    posteriors: bool = False,
    distributions: bool = False,
    layout: Positions = "auto",
    highlight: Highlight = None,
    title: str | None = None,
    engine: str | Engine = "auto",
    max_states: int = 8,
    seed: int = 0,
    progress: bool | None = None,
) -> "Axes":
    """Draw a model's graph, with its posteriors if asked for.

    Parameters
    ----------
    model
        A Bayesian network (boxes in layers, arrows down), a Markov network (springs) or a factor graph
        (circles for variables, squares for factors). In a network with decisions these are squares, utilities are
        diamonds, all else is round, and dashed arrows lead from what a decision sees.
    ax
        Where to draw; a new figure of a fitting size by default.
    given
        Evidence as in `query`, or only the names of observed variables. Observed nodes are shaded.
    do
        Variables that are set from outside, with their states, as in `bn.do(...)`: the arrows into them are cut.
    posteriors
        Draw every variable's distribution given the evidence inside its box, as far as no decision is open; where
        none is, utilities show what they are worth on average.
    distributions
        Write under each name what the node is: the name of its distribution, or the size of its table.
    layout
        "layered", "spring", "grid", "auto" (what fits the graph), or a position (x, y) for every node.
    highlight
        A `Trail` from `open_trails` (or a list of names), or several: their edges are drawn in colour.
    title
        Text above the drawing; the model's name by default, "" for none.
    engine
        Who computes the posteriors.
    max_states
        Of a variable with more states than this, the most probable ones are shown.
    seed
        Seed of the spring drawing.
    progress
        Whether to show a progress bar; by default on a terminal if it takes long.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    IncompleteModel
        If posteriors are asked of a network without tables.
    InvalidArgument
        If the layout or the trail does not fit the graph.
    TooLarge
        If there are too many nodes to see anything.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork("rain->wet{no|yes}<-sprinkler", tables="uniform")
    >>> ax = bn.plot(given={"wet": "yes"}, posteriors=True)
    >>> sum(p.get_gid() == "edge" for p in ax.patches)
    2
    """
    check_axes(ax)
    picture, observed = model_scene(
        model, given=given, do=do, posteriors=posteriors, distributions=distributions, engine=engine,
        max_states=max_states, title=title,
    )  # fmt: skip
    return draw_scene(picture, ax, observed, highlight, layout, seed, progress)


def model_scene(
    model: GraphicalModel,
    *,
    given: Mapping[str, Any] | str | Iterable[str] | None = None,
    do: Mapping[str, Any] | None = None,
    posteriors: bool = False,
    distributions: bool = False,
    engine: str | Engine = "auto",
    max_states: int = 8,
    title: str | None = None,
) -> tuple[Scene, list[str]]:
    """Return what a picture of a model shows, and the names of the observed variables."""
    check("max_states", max_states, Whole(2))
    picture = graph_scene(getattr(model, "equivalence_class", None) or model.graph)
    picture.title = model.name if title is None else title
    findings, observed = _observed(model, given)
    after = _cut_off(picture, model, do) if do else model
    nodes = {n.name: n for n in picture.nodes if n.shape != "square"}
    if model.has_quantities:
        _note_plates(picture, model, given)
    diagram = is_diagram(after)
    if diagram:
        mark_decisions(picture, after)
    if posteriors:
        if given is not None and not isinstance(given, Mapping):
            raise InvalidArgument("posteriors=True needs the observed states: given={'name': state, ...}")
        asked = answerable(after.pieces(), given or ()) if diagram else model.variables
        if model.has_quantities:
            asked = [n for n in asked if n not in observed]
        answers = after.marginals(given=given, targets=asked, engine=engine) if len(asked) else {}
        for name, amount in expected_amounts(after, given).items() if diagram else ():
            nodes[name].note = f"{amount:.6g}"
        for name, answer in answers.items():
            if not isinstance(answer, Posterior):
                nodes[name].note, nodes[name].shape = answer.line(), "box"
                continue
            states = [str(s) for s in answer.states]
            nodes[name].shape = "box"
            nodes[name].bars = monitor(states, [float(p) for p in answer.values], max_states)
    if not posteriors or model.has_quantities:
        for name, finding in findings.items():
            nodes[name].note = _said(finding)
    if distributions:
        for name, node in nodes.items():
            node.note = node.note or form_of(model, name)
    return picture, observed


@guided
def plot_graph(
    graph: Graph,
    *,
    ax: "Axes | None" = None,
    given: str | Iterable[str] | None = None,
    layout: Positions = "auto",
    highlight: Highlight = None,
    title: str = "",
    seed: int = 0,
    progress: bool | None = None,
) -> "Axes":
    """Draw a graph: directed, undirected, mixed, bipartite, or a junction tree.

    Parameters
    ----------
    graph
        The graph. Marks of a mixed graph are drawn as arrowheads and circles, bidirected edges dashed; the cliques
        of a junction tree are ellipses and its separators small boxes on the edges.
    ax, layout, highlight, title, seed, progress
        As in `plot_model`.
    given
        Names of observed nodes, which are shaded.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import markovia as mk
    >>> dag = mk.graphs.DAG([("burglar", "alarm"), ("quake", "alarm"), ("alarm", "call")])
    >>> trail = mk.graphs.open_trails(dag, "burglar", "quake", given="call")[0]
    >>> ax = plot_graph(dag, highlight=trail)
    >>> [t.get_text() for t in ax.texts]
    ['burglar', 'alarm', 'quake', 'call']
    """
    check_axes(ax)
    if isinstance(graph, GraphicalModel):
        raise InvalidArgument("plot_graph() draws graphs; for a model use model.plot()")
    picture = graph_scene(graph)
    picture.title = title
    observed = [] if given is None else [given] if isinstance(given, str) else list(given)
    return draw_scene(picture, ax, observed, highlight, layout, seed, progress)


def draw_scene(
    picture: Scene,
    ax: "Axes | None",
    observed: list[str],
    highlight: Highlight,
    layout: Positions,
    seed: int,
    progress: bool | None,
    placed: GraphLayout | None = None,
) -> "Axes":
    """Shade and colour what is observed and highlighted, place what is not `placed`, and draw."""
    edges = [(e.a, e.b) for e in picture.edges]
    names = [n.name for n in picture.nodes]
    plated = bool(picture.plates) and layout == "auto"
    layout = chosen(layout, names, edges, downwards=picture.downwards)
    trails = _trails(highlight)
    seen = {name for trail in trails if isinstance(trail, Trail) for name in trail.given}
    number = {n.name: i for i, n in reversed(list(enumerate(picture.nodes)))}
    for name in [*observed, *seen]:
        check_known([name], number, "the graph")
        picture.nodes[number[name]].observed = True
    _colour_trails(picture, number, trails)
    with progress_bar(progress, STEPS, name="drawing") as advance:
        if placed is not None:
            arranged = placed
        elif plated:
            arranged = GraphLayout(plate_layout(picture.sizes, edges, picture.plates), (None,) * len(edges))
        else:
            arranged = arrange(
                names, picture.sizes, edges, layout, seed=seed, advance=advance, steps=STEPS // 2
            )
        return draw(picture, arranged, ax, advance, STEPS - STEPS // 2)


def _observed(
    model: GraphicalModel, given: Mapping[str, Any] | str | Iterable[str] | None
) -> tuple[Findings, list[str]]:
    if given is None or isinstance(given, Mapping):
        variables = {n: model.variable(n) for n in model.variables}
        if model.has_quantities:
            known = {n: v for n, v in (given or {}).items() if n in variables}
            frames = [v.columns for v in (given or {}).values() if hasattr(v, "columns")]
            spread = [n for columns in frames for n in columns if n in variables]
            numbers = {n: Finding(variables[n], v, value=v) for n, v in known.items() if np.ndim(v) == 0}
            return numbers, [*known, *spread]
        findings = read_evidence(variables, given)
        return findings, list(findings)
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        model.variable(name)
    return {}, names


def _cut_off(picture: Scene, model: GraphicalModel, do: Mapping[str, Any]) -> GraphicalModel:
    """Mark the nodes that are set from outside and the edges that this cuts, and return the model after it."""
    if not isinstance(model, BayesianNetwork):
        raise InvalidArgument(f"do= sets variables of a directed model, and this is a {type(model).__name__}")
    after = model.do(do)
    for node in picture.nodes:
        if node.name in do:
            node.set_from_outside = True
            said = do[node.name]
            node.note = (
                f"do({shorten(str(said), 14)})" if np.ndim(said) == 0 and not isinstance(said, dict) else "do"
            )
    for edge in picture.edges:
        edge.cut = picture.nodes[edge.b].name in do
    return after


def form_of(model: GraphicalModel, name: str) -> str:
    """Return what a node is in a few words: the name of its distribution, or the size of its table.

    Examples
    --------
    >>> import markovia as mk
    >>> form_of(mk.examples.sprinkler(), "wet")
    '4 x 2 table'
    """
    if not isinstance(model, BayesianNetwork):
        return ""
    node = model[name]
    if isinstance(node, FunctionNode):
        return _distribution_name(node.form)
    if node.kind in ("decision", "utility"):
        return diagram_note(node)
    if node.kind != "table":
        return {"gaussian": "linear Gaussian"}.get(node.kind, node.kind.replace("_", "-"))
    return f"{node.n_rows:,} x {len(node.variable)} table"


def _distribution_name(form: Any) -> str:
    """Return the name of a distribution, or those that a function names; "function" where it names none."""
    if isinstance(form, np.ndarray | FixedFunction):
        return "set"
    if isinstance(form, GP | FittedProcess) or "GP" in getattr(
        getattr(form, "__code__", None), "co_names", ()
    ):
        return "Gaussian process"
    if not callable(form) or hasattr(form, "log_prob"):
        return type(form).__name__
    import numpyro.distributions as known

    named = getattr(getattr(form, "__code__", None), "co_names", ())
    return " or ".join(n for n in named if n == "Ordered" or hasattr(known, n)) or "function"


def _said(finding: Finding) -> str:
    if not finding.hard:
        return "soft evidence"
    said = finding.said
    return f"= {said:.4g}" if isinstance(said, float) else f"= {said}"


def _note_plates(
    picture: Scene, model: GraphicalModel, given: Mapping[str, Any] | str | Iterable[str] | None
) -> None:
    """Make the nodes of quantities round, and note the plates with their lengths where these are known."""
    members: dict[str, list[int]] = {}
    lengths: dict[str, int] = {}
    for i, node in enumerate(picture.nodes):
        variable = model.variable(node.name)
        if isinstance(variable, Quantity):
            node.shape = "box" if variable.domain == "input" else "ellipse"
            lengths.update(variable.lengths)
            for plate in variable.plates:
                members.setdefault(plate, []).append(i)
    if isinstance(given, Mapping):
        for node in picture.nodes:
            variable = model.variable(node.name)
            if isinstance(variable, Quantity) and np.ndim(given.get(node.name, 0)) >= len(variable.plates):
                shape = np.shape(given.get(node.name, 0))
                lengths.update(zip(variable.plates, shape, strict=False))
        lengths.update({p: n if isinstance(n, int) else len(n) for p, n in given.items() if p in members})
    picture.plates = [Plate(f"{p} ({lengths[p]:,})" if p in lengths else p, m) for p, m in members.items()]


def _trails(highlight: Highlight) -> list[Trail | Sequence[str]]:
    if highlight is None:
        return []
    if isinstance(highlight, Trail):
        return [highlight]
    items = list(highlight)
    if items and all(isinstance(item, str) for item in items):
        return [[str(item) for item in items]]
    return items


def _colour_trails(picture: Scene, number: Mapping[str, int], trails: list[Trail | Sequence[str]]) -> None:
    joined: dict[frozenset[int], list[Edge]] = {}
    for edge in picture.edges:
        joined.setdefault(frozenset((edge.a, edge.b)), []).append(edge)
    for k, trail in enumerate(trails):
        colour = style.HIGHLIGHTS[k % len(style.HIGHLIGHTS)]
        nodes = trail.nodes if isinstance(trail, Trail) else trail
        for name in nodes:
            check_known([name], number, "the graph")
            picture.nodes[number[name]].highlight = picture.nodes[number[name]].highlight or colour
        for a, b in pairwise(nodes):
            edges = joined.get(frozenset((number[a], number[b])))
            if not edges:
                raise InvalidArgument(f"highlight= runs from {a!r} to {b!r}, but no edge joins them")
            edges[0].highlights.append(colour)


def graph_scene(graph: Any) -> Scene:
    """Return what a picture of a graph shows."""
    if isinstance(graph, DAG):
        return _plain(graph.nodes, [(a, b, Mark.TAIL, Mark.ARROW) for a, b in graph.edges], downwards=True)
    if isinstance(graph, UndirectedGraph):
        return _plain(graph.nodes, [(a, b, Mark.TAIL, Mark.TAIL) for a, b in graph.edges], downwards=False)
    if isinstance(graph, MixedGraph):
        return _mixed(graph)
    if isinstance(graph, BipartiteGraph):
        return _bipartite(graph)
    if isinstance(graph, JunctionTree):
        return _junction_tree(graph)
    raise InvalidArgument(
        f"expected a DAG, UndirectedGraph, MixedGraph, BipartiteGraph or JunctionTree, not {type(graph).__name__}"
    )


def _plain(names: Sequence[str], edges: Iterable[tuple[str, str, Mark, Mark]], *, downwards: bool) -> Scene:
    number = {name: i for i, name in enumerate(names)}
    return Scene(
        [SceneNode(name) for name in names],
        [
            Edge(number[a], number[b], at_a, at_b, dashed=at_a is at_b is Mark.ARROW)
            for a, b, at_a, at_b in edges
        ],
        downwards,
    )


def _mixed(graph: MixedGraph) -> Scene:
    """Draw along an order in which directed edges point down; edges without direction follow the order too."""
    if not graph.directed_edges() or not graph.is_acyclic():
        return _plain(graph.nodes, graph.edges, downwards=False)
    order = DAG(graph.directed_edges(), nodes=graph.nodes).topological_order()
    rank = {name: i for i, name in enumerate(order)}
    edges = [e if rank[e[0]] < rank[e[1]] else (e[1], e[0], e[3], e[2]) for e in graph.edges]
    return _plain(graph.nodes, edges, downwards=True)


def _bipartite(graph: BipartiteGraph) -> Scene:
    variables = {name: i for i, name in enumerate(graph.variables)}
    factors = {name: len(variables) + i for i, name in enumerate(graph.factors)}
    nodes = [SceneNode(name, "ellipse") for name in variables] + [
        SceneNode(name, "square") for name in factors
    ]
    return Scene(nodes, [Edge(factors[f], variables[v]) for f, v in graph.edges], downwards=False)


def _junction_tree(tree: JunctionTree) -> Scene:
    """Hang the tree up at its middle, with a small box for the separator on every edge."""
    nodes = [SceneNode(", ".join(clique), "ellipse") for clique in tree.cliques]
    near: list[list[tuple[int, int]]] = [[] for _ in tree.cliques]
    for e, (a, b) in enumerate(tree.edges):
        near[a].append((b, e))
        near[b].append((a, e))
    edges: list[Edge] = []
    seen: set[int] = set()
    for start in range(len(tree.cliques)):
        if start in seen:
            continue
        queue = [_middle(near, start)]
        seen.add(queue[0])
        for a in queue:
            for b, e in near[a]:
                if b not in seen:
                    seen.add(b)
                    queue.append(b)
                    nodes.append(SceneNode(", ".join(tree.separators[e]) or "∅", "separator"))
                    edges += [Edge(a, len(nodes) - 1), Edge(len(nodes) - 1, b)]
    return Scene(nodes, edges, downwards=True)


def _middle(near: list[list[tuple[int, int]]], start: int) -> int:
    """Return the node in the middle of a longest path, found by two searches."""
    path = [start]
    for _ in range(2):
        came: dict[int, int | None] = {path[-1]: None}
        queue = [path[-1]]
        for a in queue:
            for b, _e in near[a]:
                if b not in came:
                    came[b] = a
                    queue.append(b)
        path = []
        at: int | None = queue[-1]
        while at is not None:
            path.append(at)
            at = came[at]
        path.reverse()
    return path[len(path) // 2]
