"""One decision problem for many values of its numbers: what does not depend on them is read and planned once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markovia.control.table_numbers import TableNumber
from markovia.errors import InvalidArgument, check_known
from markovia.factors.decisions.utility import Worth
from markovia.inference.decisions.diagrams.deciding import (
    NODES,
    DiagramSolution,
    Structure,
    solve,
    structure_of,
)
from markovia.inference.decisions.diagrams.diagram import Diagram, read_diagram
from markovia.models.graphical.given_values import read_given
from markovia.runtime.checks import SECONDS, Choice, NumberRange, Whole, check

if TYPE_CHECKING:
    from markovia.models.graphical.bayesian_network import BayesianNetwork

OPTIONS = ("given", "memory", "order", "risk", "nodes", "time_limit")
"""What `decide` may be told, and so may the questions here."""


@dataclass(frozen=True)
class VariedDiagram:
    """A network, what was asked of it, and what its graph says: the same for all values of its numbers.

    Attributes
    ----------
    pieces, given
        Of the network, and what is known.
    diagram_now, structure
        The decision problem as the numbers are, and how it is solved.
    risk, nodes, time_limit
        As in `decide`.
    """

    pieces: list[Any]
    given: Any
    diagram_now: Diagram
    structure: Structure
    risk: float
    nodes: int
    time_limit: float | None

    @classmethod
    def of(cls, network: "BayesianNetwork", options: Mapping[str, Any]) -> "VariedDiagram":
        """Read a network, and the options of `decide`."""
        check_known(options, OPTIONS, "the options of decide")
        memory, order, given = options.get("memory", "drawn"), options.get("order"), options.get("given")
        check("memory", memory, Choice(("drawn", "perfect")))
        check("nodes", options.get("nodes"), Whole(1, none=True))
        check("time_limit", options.get("time_limit"), SECONDS)
        if order is not None and memory == "drawn":
            raise InvalidArgument(
                "order= says what perfect recall remembers; say memory='perfect' too, or leave it out"
            )
        risk, nodes = options.get("risk", 0.0), options.get("nodes") or NODES
        check("risk", risk, NumberRange(open="both", said="a finite number"))
        pieces = list(network.pieces())
        variables = {n: network.variable(n) for n in network.variables}
        findings, _ = read_given(variables, pieces, given)
        check_known(findings, [n for n, v in variables.items() if not isinstance(v, Worth)], "the network")
        diagram = read_diagram(pieces, findings)
        structure = structure_of(diagram, memory, order)
        return cls(pieces, given, diagram, structure, float(risk), nodes, options.get("time_limit"))

    def diagram(self, number: TableNumber, x: float) -> Diagram:
        """Return the decision problem with a number set to x."""
        return read_diagram(number.pieces_at(self.pieces, x), self.diagram_now.findings)

    def solved(self, diagram: Diagram) -> DiagramSolution:
        """Return the best policy found for a diagram."""
        return solve(diagram, self.structure, self.risk, self.nodes, self.time_limit)
