"""How the value of a diagram depends on one of its numbers: the upper envelope of lines, one for each policy.

A configuration of all nodes has one amount of a utility and one row of a table, so the expected total of a *fixed* policy
is affine in an amount; and in a probability, whose row moves in proportion (each entry of the row is affine in it). The
best value is the largest of finitely many lines, hence convex and piecewise linear, and its corners are where the advice
flips. With evidence, the value times the probability of the evidence is what is affine; under exponential utility
`E exp(risk * total)` is, in a probability, and in `exp(risk * amount)`.

Method: solve at both ends; where the lines of the two policies meet, solve again; if nothing is better there, no third
policy is better anywhere between (the value is convex, and touches the chord); otherwise both halves are done likewise.
This recursion is that of parametric linear programming (Eisner and Severance 1976).
Cost: two solutions of the diagram for each policy that is best somewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.tables.conditional import ConditionalTable
from markovia.inference.decisions.diagrams.deciding import NODES, DiagramSolution, Structure, evaluate, solve
from markovia.inference.decisions.diagrams.diagram import Diagram
from markovia.inference.decisions.diagrams.policy_tables import rule_tables

NEAR = 1e-10
"""Heights that differ by less, relative to the largest, are the same; so are places that differ by less."""
MOST_POLICIES = 2_000
"""Policies that may be best somewhere before it is refused."""
LARGEST_EXPONENT = 500.0
"""Exponential utility: how much risk times a difference of totals may be."""


class PolicyLine(NamedTuple):
    """The heights of a policy's line where the place is 0 and 1, and its rules."""

    start: float
    end: float
    rules: dict[str, ConditionalTable]

    def height(self, place: float) -> float:
        """Return the height at a place from 0 to 1."""
        return (1.0 - place) * self.start + place * self.end


class LinePiece(NamedTuple):
    """Where a line is the highest one, from one place to another."""

    first: float
    last: float
    line: PolicyLine


def upper_envelope(best_at: Callable[[float], PolicyLine], most: int = MOST_POLICIES) -> list[LinePiece]:
    """Return the pieces of the largest of some lines, from 0 to 1, asking only which one is highest at a place.

    Examples
    --------
    >>> lines = [PolicyLine(0.0, 0.0, {}), PolicyLine(-1.0, 2.0, {}), PolicyLine(-9.0, 1.0, {})]
    >>> pieces = upper_envelope(lambda place: max(lines, key=lambda line: line.height(place)))
    >>> [(round(p.first, 6), round(p.last, 6), p.line.end) for p in pieces]
    [(0.0, 0.333333, 0.0), (0.333333, 1.0, 2.0)]
    """
    lines = [best_at(0.0), best_at(1.0)]
    left = [(lines[0], lines[1])]
    while left:
        a, b = left.pop()
        place = _crossing(a, b)
        if place is None:
            continue
        third = best_at(place)
        if third.height(place) <= max(a.height(place), b.height(place)) + _close(lines):
            continue
        lines.append(third)
        if len(lines) > most:
            raise TooLarge(
                f"more than {most:,} policies are best somewhere in the range; choose a narrower one"
            )
        left += [(a, third), (third, b)]
    return _pieces(lines)


def _pieces(lines: Sequence[PolicyLine]) -> list[LinePiece]:
    """Walk along the upper envelope of lines, from left to right."""
    near = _close(lines)
    top = max(line.start for line in lines)
    here = max([line for line in lines if line.start >= top - near], key=lambda line: line.end)
    place = 0.0
    found: list[LinePiece] = []
    while True:
        steeper = [line for line in lines if line.end > here.end + near]
        meets = [(_crossing(here, line), line) for line in steeper]
        ahead = [(max(t, place), line) for t, line in meets if t is not None and t < 1.0 - NEAR]
        if not ahead:
            return [*found, LinePiece(place, 1.0, here)]
        first = min(t for t, _ in ahead)
        following = max([line for t, line in ahead if t <= first + NEAR], key=lambda line: line.end)
        if first > place + NEAR:
            found.append(LinePiece(place, first, here))
            place = first
        here = following


def _crossing(a: PolicyLine, b: PolicyLine) -> float | None:
    """Return where b, the lower one at the start, passes a; None if it never does."""
    ahead, behind = a.start - b.start, b.end - a.end
    if ahead < 0 or behind < 0 or not ahead + behind > 0:
        return None
    return ahead / (ahead + behind)


def _close(lines: Sequence[PolicyLine]) -> float:
    return NEAR * max(max(abs(line.start), abs(line.end)) for line in lines)


@dataclass
class ValueLines:
    """The value of a diagram as a function of one of its numbers.

    Parameters
    ----------
    diagram_at
        The diagram for a value of the number.
    structure
        What its graph says; the same for every value.
    low, high
        The range.
    what
        Whether the number is a probability or an amount.
    risk, nodes, time_limit
        As in `solve`.

    Attributes
    ----------
    exact
        Whether every solution was proved to be best, so that the pieces are all there are.
    gap
        How much better a policy than the ones found may be, at the places that were solved.
    """

    diagram_at: Callable[[float], Diagram]
    structure: Structure
    low: float
    high: float
    what: Literal["probability", "amount"]
    risk: float = 0.0
    nodes: int = NODES
    time_limit: float | None = None
    exact: bool = field(default=True, init=False)
    gap: float = field(default=0.0, init=False)
    pieces: list[LinePiece] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._bent = self.risk * (self.high - self.low) if self.risk and self.what == "amount" else 0.0
        if abs(self._bent) > LARGEST_EXPONENT:
            raise InvalidArgument(
                "risk= times the range is too large for exponential utility; choose a narrower range"
            )
        self._ends = [self.diagram_at(self.low), self.diagram_at(self.high)]
        first, last = self._solved(self.low), self._solved(self.high)
        masses = [
            s.log_evidence if not self.risk else self._log_mass(d, s)
            for s, d in zip((first, last), self._ends, strict=True)
        ]
        self._masses = np.exp(np.array(masses) - max(masses))
        values = (first.value, last.value)
        self._reference = (max(values) if self.risk > 0 else min(values)) if self.risk else 0.0
        lines = {0.0: self._line(first), 1.0: self._line(last)}
        self.pieces = upper_envelope(
            lambda place: lines[place] if place in lines else self._line(self._solved(self.at(place)))
        )

    @property
    def affine(self) -> bool:
        """Whether the pieces of the value itself are straight, not only up to the probability of what is known."""
        return not self.risk and bool(abs(self._masses[0] - self._masses[1]) <= NEAR)

    def place(self, x: float) -> float:
        """Return the place, from 0 to 1, in which heights are affine."""
        share = (x - self.low) / (self.high - self.low)
        return float(np.expm1(self._bent * share) / np.expm1(self._bent)) if self._bent else share

    def at(self, place: float) -> float:
        """Return the number at a place."""
        share = float(np.log1p(place * np.expm1(self._bent)) / self._bent) if self._bent else place
        return self.low + share * (self.high - self.low)

    def value(self, line: PolicyLine, x: float) -> float:
        """Return the expected utility, or certainty equivalent, of a policy."""
        place = self.place(x)
        mass = float((1.0 - place) * self._masses[0] + place * self._masses[1])
        mean = line.height(place) / mass
        return self._reference + float(np.log(abs(mean))) / self.risk if self.risk else mean

    def _solved(self, x: float) -> DiagramSolution:
        solution = solve(self.diagram_at(x), self.structure, self.risk, self.nodes, self.time_limit)
        self.exact = self.exact and solution.exact
        self.gap = max(self.gap, solution.gap)
        return solution

    def _line(self, solution: DiagramSolution) -> PolicyLine:
        """Return the line of a policy: its heights at both ends."""
        rules, _ = rule_tables(self._ends[0], solution.rules, None)
        start, end = (
            self._height(follow_rules(diagram, rules), float(mass))
            for diagram, mass in zip(self._ends, self._masses, strict=True)
        )
        return PolicyLine(start, end, rules)

    def _height(self, diagram: Diagram, mass: float) -> float:
        value = evaluate(diagram, self.risk).value
        if not self.risk:
            return mass * value
        exponent = min(self.risk * (value - self._reference), LARGEST_EXPONENT)
        return float(np.sign(self.risk) * mass * np.exp(exponent))

    def _log_mass(self, diagram: Diagram, solution: DiagramSolution) -> float:
        """Return the log probability of what is known: with exponential utility a solution does not tell it."""
        if not diagram.findings:
            return 0.0
        rules, _ = rule_tables(diagram, solution.rules, None)
        return evaluate(follow_rules(diagram, rules)).log_evidence


def follow_rules(diagram: Diagram, rules: dict[str, ConditionalTable]) -> Diagram:
    """Return a diagram in which decisions are made by rules."""
    return Diagram({**diagram.chance, **rules}, {}, diagram.amounts, diagram.findings)
