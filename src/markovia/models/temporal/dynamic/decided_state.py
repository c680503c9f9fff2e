"""What makes the state of a process with decisions, and what is heard of it: read off one step of its network.

The state of a step must tell all that later steps and utilities ask: what is looked back at, what utilities are about, what
looks back itself, and whatever these have as ancestors within the step. All else only matters as far as a decision sees it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markovia.errors import UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode
from markovia.inference.sequences.slices import split_name
from markovia.models.graphical.bayesian_network import BayesianNetwork


@dataclass(frozen=True)
class DecidedState:
    """The parts of a process with decisions.

    Attributes
    ----------
    first, later
        The networks of the first step and of every later one.
    state
        The variables that make the state, parents first.
    heard
        What the decisions see, in order.
    between
        What lies between the state and what is heard, heard variables included, parents first.
    decisions, utilities
        The nodes that are chosen and that say what a step is worth.
    """

    first: BayesianNetwork
    later: BayesianNetwork
    state: tuple[str, ...]
    heard: tuple[str, ...]
    between: tuple[str, ...]
    decisions: tuple[DecisionNode, ...]
    utilities: tuple[UtilityNode, ...]

    @property
    def sees_state(self) -> bool:
        """Whether the decisions see the whole state."""
        return {*self.state} <= {*self.heard}


def decided_state(networks: Sequence[BayesianNetwork]) -> DecidedState:
    """Return the parts of a process, given by the networks of its steps.

    Raises
    ------
    UnsupportedModel
        For a process that looks back more than one step, without decisions or utilities, with decisions that see
        different things, or with variables that depend on a decision of their own step.
    """
    if len(networks) > 2:
        raise UnsupportedModel(
            "this process looks back more than one step; carry what is older along in the state"
        )
    first, later = networks[0], networks[-1]
    names = [n for n in later.graph.topological_order() if not split_name(n)[1]]
    decisions = tuple(node for n in names if isinstance(node := later[n], DecisionNode))
    utilities = tuple(node for n in names if isinstance(node := later[n], UtilityNode))
    if not decisions or not utilities:
        raise UnsupportedModel("planning needs a decision and a utility: add mk.Decision and mk.Utility")
    chosen = [d.variable.name for d in decisions]
    sights = [[n for n in d.parent_names if not _lag(n)] for d in decisions]
    if any({*seen} != {*sights[0]} for seen in sights) or {*sights[0]} & {*chosen}:
        raise UnsupportedModel(
            "decisions of a step that see different things, or one another, are not planned for together"
        )
    for node in utilities:
        if node.combines:
            raise UnsupportedModel(
                f"{node.variable.name!r} weighs utilities against each other; over time they only add"
            )
        if old := next((n for n in node.parent_names if _lag(n)), None):
            raise UnsupportedModel(
                f"{node.variable.name!r} looks back at {old!r}; let it look at its own step"
            )
    chance = [n for n in names if n not in {*chosen, *(u.variable.name for u in utilities)}]
    for n in chance:
        if own := next((p for p in later[n].parent_names if p in chosen), None):
            raise UnsupportedModel(
                f"{n!r} depends on {own!r} of its own step; let it look back at '{own}@-1'"
            )
    state = _state(later, chance, chosen, utilities)
    between = [n for n in chance if n not in state and _leads_to(later, n, sights[0])]
    return DecidedState(
        first,
        later,
        tuple(n for n in chance if n in state),
        tuple(sights[0]),
        tuple(between),
        decisions,
        utilities,
    )


def _state(
    later: BayesianNetwork, chance: Sequence[str], chosen: Sequence[str], utilities: Sequence[UtilityNode]
) -> set[str]:
    """Return the variables that make the state."""
    looked_at = {split_name(p)[0] for n in chance for p in later[n].parent_names if _lag(p)}
    state = looked_at | {p for u in utilities for p in u.parent_names}
    # what looks back at a state is one: nothing else tells what it does; what looks back at decisions only is heard of them
    state |= {
        n for n in chance if any(_lag(p) and split_name(p)[0] not in chosen for p in later[n].parent_names)
    }
    state -= {*chosen}
    for n in reversed(chance):
        if n in state:
            state |= {p for p in later[n].parent_names if not _lag(p)}
    return state


def _leads_to(network: BayesianNetwork, name: str, targets: Sequence[str]) -> bool:
    return name in targets or bool({*targets} & network.graph.descendants(name))


def _lag(name: str) -> int:
    return split_name(name)[1]
