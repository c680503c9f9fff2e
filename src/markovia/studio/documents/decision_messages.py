"""What travels when the page asks what to decide."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from markovia.studio.documents.messages import Info, Names, Question


class AskDecide(Question):
    """The best rule for every open decision.

    Findings that depend on an open decision are no evidence for it: they only choose the rows that are `current`.
    """

    memory: Literal["drawn", "perfect"] = "drawn"
    order: Names | None = None
    risk: Annotated[float, Meta(ge=-1e6, le=1e6)] = 0.0


class RuleRow(Struct):
    """A row of a rule: the states seen, what is chosen, how probable that is, and whether another choice is as good."""

    seen: list[str]
    choice: str
    probability: float
    tie: bool = False
    current: bool = False
    """Whether the findings are what is seen here."""


class Rule(Struct):
    """What to choose for a decision, by what it sees; `left_out` counts rows that are not sent: the least probable."""

    name: str
    sees: list[str]
    rows: list[RuleRow]
    left_out: int = 0


class Decided(Struct):
    """A policy: its value, what perfect recall would be worth, and how much better another one may be."""

    value: float
    bound: float | None
    gap: float | None
    rules: list[Rule]
    later: list[str]
    """Findings that depend on an open decision."""
    info: Info
