"""Decision sensitivity: how value and advice change with one number of a diagram, exactly, through a range.

The method is that of `inference.decisions.diagrams.value_lines`; all numbers at once: `markovia.control.tornado_table`.
Reference: Nielsen and Jensen (2003), "Sensitivity analysis in influence diagrams".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.control.advice_changes import changed_advice, simple_advice
from markovia.control.table_numbers import TableNumber, read_number
from markovia.control.varied_diagram import VariedDiagram
from markovia.errors import ImpossibleEvidence, InvalidArgument, UnsupportedModel
from markovia.factors.decisions.multiplicative import Multiplicative
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.tables.conditional import ConditionalTable
from markovia.inference.decisions.diagrams.diagram import Diagram
from markovia.inference.decisions.diagrams.value_lines import LinePiece, ValueLines
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, check
from markovia.runtime.seeds import generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.models.graphical.bayesian_network import BayesianNetwork

_ANY = NumberRange(open="both", said="a finite number", none=True)
BENT = 1e-9
"""How far, relative to the largest, an amount may be off a line."""
ROUNDING = 1e-14
"""Values below this part of those of the same line are zero."""


@dataclass(frozen=True)
class AdvicePiece:
    """A range of a number in which one policy is best.

    Attributes
    ----------
    low, high
        The range.
    value_low, value_high
        The value at its ends.
    line
        Intercept and slope of the value; None where it is no straight line (evidence that the number makes more or less
        probable, and exponential utility).
    policy
        The rules, as `follow` takes them.
    """

    low: float
    high: float
    value_low: float
    value_high: float
    line: tuple[float, float] | None
    policy: Mapping[str, ConditionalTable] = field(repr=False)


class DecisionSensitivity(InNotebooks):
    """The value of a diagram, and what is best, as functions of one of its numbers.

    Attributes
    ----------
    label, low, high
        The number and its range.
    current
        What the number is in the network.
    pieces
        Where which policy is best, from low to high.
    exact
        Whether these are all the pieces: every solution was proved to be best.
    gap
        Otherwise, how much better other policies may be where it was solved.
    """

    def __init__(
        self, lines: ValueLines, number: TableNumber, network: Any, given: Any, proved: bool
    ) -> None:
        self.label, self.current = number.label, number.value
        self.low, self.high = lines.low, lines.high
        self.exact, self.gap, self.risk = lines.exact and proved, lines.gap, lines.risk
        self.pieces = [_advice(lines, piece) for piece in lines.pieces]
        self._lines, self._number, self._network, self._given = lines, number, network, given
        self._changes: list[list[str]] | None = None

    @property
    def thresholds(self) -> Array:
        """Where the advice flips, ascending."""
        return np.array([piece.high for piece in self.pieces[:-1]])

    def value(self, x: Any) -> Any:
        """Return the best value for a number, or each number of an array, in the range."""
        xs = np.asarray(x, dtype=np.float64)
        if not ((xs >= self.low) & (xs <= self.high)).all():
            raise InvalidArgument(
                f"the value is known from {self.low:.6g} to {self.high:.6g}; widen low= and high="
            )
        found = np.array(
            [self._lines.value(self._lines.pieces[self._piece(v)].line, v) for v in xs.ravel().tolist()]
        )
        return float(found[0]) if xs.ndim == 0 else found.reshape(xs.shape)

    def policy(self, x: float) -> Mapping[str, ConditionalTable]:
        """Return the rules that are best for a number in the range, as `follow` takes them."""
        self.value(x)  # refuses what is outside
        return self.pieces[self._piece(x)].policy

    @property
    def changes(self) -> list[list[str]]:
        """What flips at each threshold: decisions, what they see, and the choices before and after."""
        if self._changes is None:
            pairs = zip(self.pieces, self.pieces[1:], strict=False)
            self._changes = [
                changed_advice(a.policy, b.policy, [(self._at(_middle(p)), self._given) for p in (a, b)])
                for a, b in pairs
            ]
        return self._changes

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the value over the number, with a line at each threshold and at what the number is now."""
        return ports.draw("plot-decision-sensitivity", self, ax=ax, title=title)

    def _piece(self, x: float) -> int:
        return min(int(np.searchsorted(self.thresholds, x, side="right")), len(self.pieces) - 1)

    def _at(self, x: float) -> Any:
        return type(self._network).from_conditionals(self._number.pieces_at(self._network.pieces(), x))

    def __str__(self) -> str:
        what = "certainty equivalent" if self.risk else "value"
        sure = "exact" if self.exact else f"local optima, at most {self.gap:.6g} below the best"
        now = f", now {self.current:.6g}" if self.low <= self.current <= self.high else ""
        lines = [f"{what} by {self.label} from {self.low:.6g} to {self.high:.6g}{now}; {sure}"]
        for k, piece in enumerate(self.pieces):
            lines.append(
                f"{piece.low:.6g} to {piece.high:.6g}: {what} {piece.value_low:.6g} to {piece.value_high:.6g}"
            )
            lines += ["  " + said for said in (self.changes[k - 1] if k else simple_advice(piece.policy))]
        return "\n".join(lines)

    __repr__ = __str__


def decision_sensitivity(
    network: "BayesianNetwork",
    parameter: Any,
    low: float | None,
    high: float | None,
    options: Mapping[str, Any],
) -> DecisionSensitivity:
    """Return value and best policies over the range of one number; behind `BayesianNetwork.decision_sensitivity`."""
    check("low", low, _ANY)
    check("high", high, _ANY)
    varied = VariedDiagram.of(network, options)
    number = read_number(varied.pieces, parameter)
    low, high = _range(number, low, high)
    if number.what == "probability" and not 0.0 <= low < high <= 1.0:
        raise InvalidArgument(f"a probability varies between low=0 and high=1, not from {low:g} to {high:g}")
    if not low < high:
        raise InvalidArgument(f"low= is below high=, not {low:g} and {high:g}")
    proved = _refuse_curves(varied, number, low, high)
    try:
        lines = ValueLines(
            lambda x: varied.diagram(number, x), varied.structure, low, high, number.what, varied.risk, varied.nodes,
            varied.time_limit,
        )  # fmt: skip
    except ImpossibleEvidence:
        raise InvalidArgument(
            f"what is known is impossible where {number.label} is {low:g} or {high:g}; say low= and high= between"
        ) from None
    return DecisionSensitivity(lines, number, network, varied.given, proved)


def _range(number: TableNumber, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the range of a number: what is said, else all probabilities, or from half to twice the amount."""
    if number.what == "probability":
        usual = (0.0, 1.0)
    else:
        half, twice = sorted([number.value / 2, number.value * 2])
        usual = (half, twice) if number.value else (-number.scale or -1.0, number.scale or 1.0)
    return usual[0] if low is None else float(low), usual[1] if high is None else float(high)


def _refuse_curves(varied: VariedDiagram, number: TableNumber, low: float, high: float) -> bool:
    """Refuse an amount that is weighed by a form that is not linear in it; say whether linearity is proved."""
    above = {p.variable.name: p for p in varied.pieces if isinstance(p, UtilityNode) and p.combines}
    forms = [p.form for p in above.values() if number.name in p.parent_names]
    if not forms:
        return True
    if varied.risk:
        raise UnsupportedModel(
            f"{number.name!r} is weighed by another utility; with risk= vary it with tornado()"
        )
    inside = (low + (high - low) * generator(0).random(4)).tolist()
    first, last, *others = (_amounts(varied.diagram(number, x)) for x in (low, high, *inside))
    size = max(float(np.abs(table).max(initial=0.0)) for table in [*first.values(), *last.values()])
    for x, tables in zip(inside, others, strict=True):
        share = (x - low) / (high - low)
        for key in {*first, *last, *tables}:
            line = (1 - share) * first.get(key, 0.0) + share * last.get(key, 0.0)
            if np.abs(line - tables.get(key, 0.0)).max(initial=0.0) > BENT * size:
                raise UnsupportedModel(
                    f"{number.name!r} is weighed by a form that is not linear in it, so values are no lines; "
                    "mk.control.tornado() gives them at two ends"
                )
    return all(isinstance(form, Multiplicative) for form in forms)


def _amounts(diagram: Diagram) -> dict[Any, Any]:
    """Return the amounts of a diagram by name and variables; a constant of zero may be left out of them."""
    return {(a.name, a.scope): a.table for a in diagram.amounts}


def _advice(lines: ValueLines, piece: LinePiece) -> AdvicePiece:
    low, high = lines.at(piece.first), lines.at(piece.last)
    size = max(abs(piece.line.start), abs(piece.line.end))
    values = [
        v if abs(v) > ROUNDING * size else 0.0 for v in (lines.value(piece.line, x) for x in (low, high))
    ]
    slope = (piece.line.end - piece.line.start) / (lines.high - lines.low)
    line = (piece.line.start - slope * lines.low, slope) if lines.affine else None
    return AdvicePiece(low, high, values[0], values[1], line, piece.line.rules)


def _middle(piece: AdvicePiece) -> float:
    return 0.5 * (piece.low + piece.high)
