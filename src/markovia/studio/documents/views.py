"""A model as the page draws it: boxes with positions, edges, and one node with its distribution in full."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any, Literal

from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.gaussian.linear_gaussian import GaussianConditional, LinearGaussian
from markovia.factors.local_models.noisy import NoisyAndConditional, NoisyOrConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import ConditionalTable
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.inference.choosing.auto import TREE_RATE, kernels_loaded
from markovia.inference.decisions.diagrams.open_decisions import ACTING
from markovia.inference.exact.hopeless_width import HOPELESS, hopeless
from markovia.inference.exact.junction_tree import JunctionTree
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.directed_model import DirectedModel
from markovia.models.graphical.factor_graph import FactorGraph
from markovia.models.graphical.model import Model
from markovia.runtime import ports
from markovia.studio.documents.document import Document, Point, Snapshot, dashed, kind_of
from markovia.studio.documents.messages import Cost, Node, NodeParent, View, ViewEdge, ViewNode

Kind = Literal["arrow", "line", "both", "circle", "circle-arrow", "information"]
WIDTH, TITLE, STATE, MOST_STATES = 150.0, 22.0, 16.0, 6
DENSITY = 48.0
"""Pixels of the density of a number."""
DIAMOND = 84.0
"""Pixels of a utility's height."""
MOST_ENTRIES = 65_536
"""Entries of a table that is still shown."""


def view_of(document: Document, limit: float = 30.0) -> View:
    """Return the document as it is drawn; nodes that have no position yet get one."""
    with document.lock:
        snapshot, revision = document.now, document.revision
    names, edges = graph_of(snapshot.model)
    sizes = {n: box(snapshot.model, n) for n in names}
    positions = placed(snapshot, names, edges, sizes)
    if positions is not snapshot.positions:
        with document.lock:
            if document.now is snapshot:
                document.place(positions)
    model = snapshot.model
    return View(
        id=document.id,
        name=snapshot.name,
        kind=kind_of(model),
        nodes=[
            ViewNode(
                n, labels(model, n), node_kind(model, n), *positions[n], *sizes[n], snapshot.notes.get(n, "")
            )
            for n in names
        ],
        edges=edges,
        notes=" ".join(filter(None, (document.about, class_note(model)))),
        changed=document.changed,
        undo=document.can_undo,
        redo=document.can_redo,
        file=document.file,
        cost=cost_of(model, limit),
        revision=revision,
    )


def cost_of(model: Any, limit: float) -> Cost | None:
    """Return what exact answers need; None for models without tables, or while the compiler is not there yet."""
    if not isinstance(model, Model) or model.has_quantities or not kernels_loaded():
        return None
    try:
        problem = model._problem(None)
        if hopeless(problem, None):
            return Cost(2.0**HOPELESS, exact=False)
        total = JunctionTree().plan(problem).total
    except MarkoviaError:
        return None
    return Cost(float(total), exact=3.0 * total / TREE_RATE <= limit)


def graph_of(model: Any) -> tuple[list[str], list[ViewEdge]]:
    """Return the nodes and edges that are drawn."""
    if isinstance(model, FactorGraph):
        return [*model.variables, *model.factor_names], [ViewEdge(a, b, "line") for a, b in model.edges]
    if isinstance(model, DirectedModel):
        known = model.equivalence_class
        loose = [] if known is None else known.undirected_edges()
        lines = {*loose, *((b, a) for a, b in loose)}
        seeing = {n for n in model.variables if node_kind(model, n) == "decision"}
        return model.variables, [
            ViewEdge(a, b, "line" if (a, b) in lines else "information" if b in seeing else "arrow")
            for a, b in model.edges
        ]
    if isinstance(model, GraphicalModel):
        return model.variables, [ViewEdge(a, b, "line") for a, b in model.edges]
    if isinstance(model, MixedGraph):
        return list(model.nodes), [ViewEdge(a, b, _kind(at_a, at_b)) for a, b, at_a, at_b in model.edges]
    return list(model.nodes), [ViewEdge(a, b, "line") for a, b in model.edges]


def _kind(*marks: Mark) -> Kind:
    if Mark.CIRCLE in marks:
        return "circle-arrow" if Mark.ARROW in marks else "circle"
    return ("line", "arrow", "both")[marks.count(Mark.ARROW)]


def class_note(model: Any) -> str:
    """Say that a network is one member of a class of graphs, and what follows; nothing of other models."""
    known = model.equivalence_class if isinstance(model, DirectedModel) else None
    if known is None:
        return ""
    count = len(known.undirected_edges())
    return (
        f"The data leave {count} edge{'s' * (count > 1)} without a direction, drawn without arrow heads: "
        "causal questions are answered for all graphs of this class at once, or not at all."
    )


def labels(model: Any, name: str) -> list[str] | None:
    """Return the states as text; None for a number, a factor or a node without states."""
    if not isinstance(model, GraphicalModel) or name not in model or is_number(model.variable(name)):
        return None
    return state_labels(model.variable(name).states)


def state_labels(states: Any) -> list[str]:
    """Return states as text, by their `repr` where two would read the same."""
    told = [str(s) for s in states]
    return told if len(set(told)) == len(told) else [repr(s) for s in states]


def is_number(variable: Any) -> bool:
    """Say whether a variable is a number instead of one of some states."""
    return isinstance(variable, Quantity)


def node_kind(model: Any, name: str) -> str:
    """Return what a node is: "states", "number", "decision", "utility", "factor" or "node"."""
    if not isinstance(model, GraphicalModel):
        return "node"
    if name not in model:
        return "factor"
    if isinstance(model, DirectedModel) and model.has_table(name) and (kind := model[name].kind) in ACTING:
        return kind
    if isinstance(model.variable(name), Worth):
        return "utility"
    return "number" if is_number(model.variable(name)) else "states"


def box(model: Any, name: str) -> tuple[float, float]:
    """Return the width and height of a node's box in pixels."""
    kind = node_kind(model, name)
    if kind == "factor":
        return 26.0, 26.0
    if kind == "node":
        return WIDTH, TITLE
    if kind == "utility":
        return WIDTH, DIAMOND
    if kind == "number" or is_number(model.variable(name)):
        return WIDTH, TITLE + DENSITY
    n = len(model.variable(name))
    return WIDTH, TITLE + STATE * (n if n <= MOST_STATES else MOST_STATES + 1) + 6.0


def placed(
    snapshot: Snapshot, names: list[str], edges: list[ViewEdge], sizes: Mapping[str, Point]
) -> Mapping[str, Point]:
    """Return a position for every node: all laid out where none has one, else new ones beside their neighbours."""
    known = snapshot.positions
    missing = [n for n in names if n not in known]
    if not missing:
        return known
    directed = isinstance(snapshot.model, DirectedModel) or all(e.kind == "arrow" for e in edges)
    if len(missing) == len(names):
        number = {n: k for k, n in enumerate(names)}
        pairs = [(number[e.source], number[e.target]) for e in edges]
        found: list[Point] = ports.call("layout", [sizes[n] for n in names], pairs, directed=directed)
        return dict(zip(names, found, strict=True))
    positions = {n: p for n, p in known.items() if n in sizes}
    lowest = max((y for _, y in positions.values()), default=0.0)
    left = min((x for x, _ in positions.values()), default=0.0)
    for k, n in enumerate(missing):
        above = [positions[e.source] for e in edges if e.target == n and e.source in positions]
        if above:
            x, y = sum(p[0] for p in above) / len(above), max(p[1] for p in above) + 150.0
        else:
            x, y = left + 190.0 * k, lowest + 150.0
        while any(abs(x - a) < WIDTH + 20 and abs(y - b) < 120.0 for a, b in positions.values()):
            x += 60.0
        positions[n] = (x, y)
    return positions


def node_of(document: Document, name: str) -> Node:
    """Return one node with its distribution."""
    snapshot = document.now
    model = snapshot.model
    if not isinstance(model, GraphicalModel):
        raise UnsupportedModel("this is a graph without numbers; its nodes have no distributions")
    if isinstance(model, FactorGraph) and name not in model and name in model.factor_names:
        return _factor_node(model, name)
    variable = model.variable(name)
    own = None if is_number(variable) else state_labels(variable.states)
    note = snapshot.notes.get(name, "")
    if not isinstance(model, DirectedModel):
        text = f"{name} has no table of its own: the model is a product of {len(model.pieces())} factors"
        return Node(name, "undirected", own, [], None, None, None, text, editable=False, note=note)
    parents = [NodeParent(q, labels(model, q)) for q in model.parents(name)]
    if not model.has_table(name):
        text = f"{name} has no table yet"
        return Node(
            name, "none", own, parents, None, row_labels(parents), None, text, editable=True, note=note
        )
    piece = model[name]
    if isinstance(piece, DecisionNode | UtilityNode):
        return _acting_node(piece, own, parents, note)
    kind, form = form_of(piece)
    entries = prod([len(p.states or ()) for p in parents]) * len(own or ())
    shown = own is not None and entries <= MOST_ENTRIES and all(p.states is not None for p in parents)
    rows = piece.values.reshape(-1, len(own or ())).tolist() if shown else None
    return Node(
        name,
        kind,
        own,
        parents,
        rows,
        row_labels([p for p in parents if p.states is not None]) if entries <= MOST_ENTRIES else None,
        form,
        repr(piece) if entries <= MOST_ENTRIES else f"a table of {entries:,} entries",
        editable=kind in ("table", "noisy-or", "noisy-and", "linear-gaussian")
        and (shown or form is not None),
        note=note,
    )


def _acting_node(
    piece: DecisionNode | UtilityNode, own: list[str] | None, parents: list[NodeParent], note: str
) -> Node:
    """Return a decision, which has no table, or a utility with one amount a row."""
    rows = None
    if isinstance(piece, UtilityNode) and piece.worth is not None and piece.worth.size <= MOST_ENTRIES:
        rows = [[x] for x in piece.worth.ravel().tolist()]
    return Node(
        piece.variable.name,
        piece.kind,
        own,
        parents,
        rows,
        row_labels(parents) if rows else None,
        None,
        repr(piece)
        if rows or not isinstance(piece, UtilityNode)
        else f"worth a function of {', '.join(piece.parent_names)}",
        editable=rows is not None,
        note=note,
    )


def _factor_node(model: Any, name: str) -> Node:
    factor = model.factors[model.factor_names.index(name)]
    parents = [NodeParent(v.name, state_labels(v.states)) for v in factor.variables]
    text = f"a factor over {', '.join(v.name for v in factor.variables)}"
    rows = [[float(x)] for x in factor.values.ravel()] if factor.size <= MOST_ENTRIES else None
    return Node(
        name, "factor", None, parents, rows, row_labels(parents) if rows else None, None, text, editable=False
    )


def row_labels(parents: list[NodeParent]) -> list[list[str]]:
    """Return the states of the parents for every row, the last parent fastest."""
    return [list(states) for states in product(*(p.states or [] for p in parents))]


def form_of(piece: Any) -> tuple[str, dict[str, Any] | None]:
    """Return the kind of a distribution and its parameters where it is not a plain table."""
    if isinstance(piece, ConditionalTable):
        return "table", None
    if isinstance(piece, NoisyOrConditional):
        own = piece.parameters()
        parents = piece.parents
        return "noisy-and" if isinstance(piece, NoisyAndConditional) else "noisy-or", {
            "strengths": {p.name: float(s) for p, s in zip(parents, own.strengths, strict=True)},
            "leak": float(own.leak),
            "on": {p.name: state_labels(p.states)[c] for p, c in zip(parents, own.on, strict=True)},
        }
    if isinstance(piece, GaussianConditional):
        recipe = piece.recipe()
        regressions = [recipe] if isinstance(recipe, LinearGaussian) else list(recipe.by_state.values())
        return "linear-gaussian", {
            "discrete": [p.name for p in piece.discrete],
            "continuous": [p.name for p in piece.continuous],
            "rows": [
                {"bias": r.bias, "weights": dict(r.weights), "variance": r.variance} for r in regressions
            ],
        }
    name = type(piece).__name__.removesuffix("Conditional")
    return dashed(name).replace("function-node", "density"), None
