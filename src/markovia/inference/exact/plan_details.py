"""What exact engines say of the plan that gave an answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PlanDetails:
    """How large a computation was.

    Attributes
    ----------
    width
        The variables of the largest table less one.
    largest_table
        Its entries.
    cliques
        Of a junction tree: its maximal cliques.
    arithmetic
        "logarithms" where plain numbers left their range.
    marginal_map, evaluations
        For best states of some variables: "constrained" or "branch-and-bound", and the bounds that were computed.
    """

    width: int
    largest_table: int | None = None
    cliques: int | None = None
    arithmetic: str | None = None
    marginal_map: str | None = None
    evaluations: int | None = None


@dataclass(frozen=True)
class CutsetDetails:
    """How large a computation by cases was.

    Attributes
    ----------
    width, largest_table
        The variables of the largest table of a case less one, and its entries.
    cutset, cases, answered
        The variables conditioned on, their configurations, and how many of these were not ruled out at once.
    sweeps
        Targets that were answered one at a time; zero where all were answered together.
    """

    width: int
    largest_table: int
    cutset: tuple[str, ...]
    cases: int
    answered: int
    sweeps: int = 0
