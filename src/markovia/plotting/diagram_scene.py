"""Decisions and utilities in the picture of a network: squares and diamonds, and dashed arrows into what sees."""

from collections.abc import Mapping
from typing import Any

from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.inference.decisions.diagrams.utility_distribution import attribute_means
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.plotting.scene import Scene


def is_diagram(model: GraphicalModel) -> bool:
    """Say whether a network has decisions or utilities."""
    return isinstance(model, BayesianNetwork) and bool(model.decisions or model.utilities)


def mark_decisions(scene: Scene, model: GraphicalModel) -> None:
    """Draw decisions as squares, utilities as diamonds and what is random round; dash the arrows of information."""
    assert isinstance(model, BayesianNetwork)
    shapes = {**dict.fromkeys(model.decisions, "decision"), **dict.fromkeys(model.utilities, "utility")}
    for node in scene.nodes:
        shape = shapes.get(node.name, "ellipse")
        assert shape in ("decision", "utility", "ellipse")
        node.shape = shape  # type: ignore[assignment]
    for edge in scene.edges:
        edge.dashed = scene.nodes[edge.b].shape == "decision"


def expected_amounts(model: GraphicalModel, given: Mapping[str, Any] | None) -> dict[str, float]:
    """Return what each utility of states is worth on average, where no decision is open."""
    assert isinstance(model, BayesianNetwork)
    if model.decisions or model.has_quantities:
        return {}
    diagram = model._diagram(given)
    return attribute_means(diagram, diagram.amounts)


def diagram_note(node: Conditional) -> str:
    """Return what a decision or a utility is in a few words."""
    if isinstance(node, DecisionNode):
        return "a number" if isinstance(node.variable, Quantity) else f"{len(node.variable)} choices"
    if isinstance(node, UtilityNode) and node.worth is not None:
        return f"{node.worth.size:,} amount" + "s" * (node.worth.size != 1)
    return "weighs utilities" if isinstance(node, UtilityNode) and node.combines else "a function"
