"""What the decisions of a process see, and whether that is its state.

A step's variables, in the order in which they come about: *early* ones, which what is seen depends on; *sights*, what
the decisions see; the decisions; and *late* ones, which are drawn after them. The state is seen where nothing that is
not seen reaches from one step into what comes later: neither an early variable nor anything the decisions do not look
at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.inference.decisions.processes.factored_process import (
    At,
    FactoredProcess,
    ScopedTable,
    expectation,
)
from markovia.inference.sequences.slices import split_name
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array, Flags

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork


@dataclass(frozen=True)
class DecisionSteps:
    """The parts of a step of a process with decisions, by name.

    Attributes
    ----------
    networks
        Those of the first step, and of later ones.
    decisions, utilities
        In their order.
    sights
        What all decisions see, of the step itself.
    early, late
        What sights depend on, and what is drawn after the decisions.
    unseen
        Why the state is not seen, in words; empty where it is.
    """

    networks: Sequence[BayesianNetwork]
    decisions: list[str]
    utilities: list[str]
    sights: list[str]
    early: list[str]
    late: list[str]
    unseen: str

    @property
    def transition(self) -> BayesianNetwork:
        """The network of later steps."""
        return self.networks[-1]

    def variable(self, name: str) -> Variable:
        """Return a variable of the step."""
        return self.networks[0].variable(name)

    @property
    def sizes(self) -> dict[Any, int]:
        """The number of states of each variable, now and next."""
        named = [*self.sights, *self.early, *self.late, *self.decisions]
        return {(n, t): len(self.variable(n)) for n in named for t in (0, 1)}


def decision_steps(process: "DynamicBayesianNetwork") -> DecisionSteps:
    """Read what a process is made of; raises where it has no decision or utility, or numbers."""
    networks = process.ready()
    transition, names = networks[-1], process.variables
    kinds = {n: transition[n].kind for n in names}
    decisions = [n for n in names if kinds[n] == "decision"]
    utilities = [n for n in names if kinds[n] == "utility"]
    if not decisions:
        raise UnsupportedModel(
            "the process has no decision; add(name, mk.Decision(states), parents=[what it sees])"
        )
    if not utilities:
        raise UnsupportedModel("the process has no utility; add(name, mk.Utility(...), parents=[...])")
    chance = [n for n in names if n not in decisions and n not in utilities]
    for name in [*chance, *decisions]:
        if isinstance(transition.variable(name), Quantity):
            raise UnsupportedModel(f"{name!r} is a number among states; unroll(steps).decide() may know more")
    early, sights, late = _placed(transition, chance, decisions)
    steps = DecisionSteps(networks, decisions, utilities, sights, early, late, "")
    return DecisionSteps(networks, decisions, utilities, sights, early, late, _why_unseen(steps))


def _placed(
    network: BayesianNetwork, chance: Sequence[str], decisions: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """Return the early variables, the sights and the late variables."""
    seen = {q for d in decisions for q in network.parents(d)} - {*decisions}
    before: set[str] = set()
    waiting = [n for n in seen if n in chance]
    while waiting:
        for parent in network.parents(waiting.pop()):
            if parent in chance and parent not in before:
                before.add(parent)
                waiting.append(parent)
    early = [n for n in chance if n in before and n not in seen]
    return early, [n for n in chance if n in seen], [n for n in chance if n not in seen and n not in before]


def _why_unseen(steps: DecisionSteps) -> str:
    """Return why the decisions do not see the state, empty if they do."""
    network, known = steps.transition, {*steps.sights, *steps.decisions}
    for d in steps.decisions:
        lagged_sights = [q for q in network.parents(d) if split_name(q)[1]]
        if lagged_sights:
            return f"{d!r} sees {lagged_sights[0]!r}, of an earlier step"
        lacking = [n for n in steps.sights if n not in network.parents(d)]
        if lacking:
            return f"{d!r} does not see {lacking[0]!r}"
    for n in [*steps.early, *steps.sights]:
        for parent in network.parents(n):
            base, lag = split_name(parent)
            if lag > 1:
                return f"{n!r} looks {lag} steps back"
            if lag and base in steps.early:
                return f"{base!r}, which is not seen, matters to {n!r} a step later"
            if not lag and base in steps.decisions:
                return f"{n!r} is seen by a decision after another, {base!r}"
    for n in [*steps.late, *steps.utilities]:
        if n in steps.utilities and any(split_name(q)[1] for q in network.parents(n)):
            continue
        for parent in network.parents(n):
            base, lag = split_name(parent)
            if lag or (base in steps.early and base not in known):
                return f"{parent!r}, which is not seen, matters to {n!r}"
    return ""


def factored_process(steps: DecisionSteps, *, arrivals: bool = True) -> FactoredProcess:
    """Return the process whose states are the sights.

    With `arrivals` the rewards hold what utilities that look a step back are worth on arrival; they are not discounted.
    """
    _check_alike(steps)
    moves = _moves(steps)
    sights = [steps.variable(n) for n in steps.sights]
    decisions = [steps.variable(n) for n in steps.decisions]
    now = [(v.name, 0) for v in [*sights, *decisions]]
    total = np.zeros(
        (int(np.prod([len(v) for v in sights], dtype=np.int64)), int(np.prod([len(v) for v in decisions])))
    )
    for name in steps.utilities:
        node = steps.transition[name]
        assert isinstance(node, UtilityNode)
        looks_back = is_arrival(node)
        if looks_back and not arrivals:
            continue
        own = ScopedTable(_scope(node.parent_names, 1 if looks_back else 0), worth_of(node))
        parts = _relevant(moves, [*own.scope], now)
        total += expectation([*parts, own], now, steps.sizes).reshape(total.shape)
    first = expectation(
        [_scoped(steps.networks[0][n], 0) for n in [*steps.early, *steps.sights]],
        [(v.name, 0) for v in sights],
        steps.sizes,
    )
    return FactoredProcess(sights, decisions, moves, total, first.reshape(-1), _allowed(steps))


def is_arrival(node: Conditional) -> bool:
    """Say whether a utility looks a step back."""
    return any(split_name(q)[1] for q in node.parent_names)


def worth_of(node: UtilityNode) -> Array:
    """Return a utility's table, or raise where it is no table."""
    if node.worth is None:
        raise UnsupportedModel(
            f"{node.variable.name!r} weighs other utilities or numbers, which do not add up over steps; say the total "
            "as one utility of states, or ask unroll(steps).decide()"
        )
    return node.worth


def _moves(steps: DecisionSteps) -> list[ScopedTable]:
    """Return the tables of late variables now, and of early ones and sights next."""
    now = [_scoped(steps.transition[n], 0) for n in steps.late]
    return [*now, *(_scoped(steps.transition[n], 1) for n in [*steps.early, *steps.sights])]


def _scope(names: Sequence[str], step: int) -> tuple[At, ...]:
    """Return variables of a network as what they are now and next."""
    return tuple((base, step - lag) for base, lag in map(split_name, names))


def _scoped(node: Conditional, step: int) -> ScopedTable:
    return ScopedTable(_scope(node.names, step), node.values)


def _relevant(moves: Sequence[ScopedTable], wanted: Sequence[At], given: Sequence[At]) -> list[ScopedTable]:
    """Return the tables that the law of some variables needs; each table is the law of its last variable."""
    by_child = {m.scope[-1]: m for m in moves}
    found: dict[At, ScopedTable] = {}
    waiting = [p for p in wanted if p not in given]
    while waiting:
        place = waiting.pop()
        if place in by_child and place not in found:
            found[place] = by_child[place]
            waiting += [p for p in by_child[place].scope[:-1] if p not in given]
    return list(found.values())


def _check_alike(steps: DecisionSteps) -> None:
    """Raise where the first step decides, or earns, by other rules than later ones."""
    first, later = steps.networks[0], steps.transition
    for name in [*steps.late, *steps.decisions, *steps.utilities]:
        if is_arrival(later[name]) and name in steps.utilities:
            if np.any(worth_of(first[name])):  # type: ignore[arg-type]
                raise UnsupportedModel(
                    f"{name!r} looks a step back, so that it is worth nothing at step 0; say initial=0, or ask "
                    "unroll(steps).decide()"
                )
            continue
        if not first[name].allclose(later[name]):
            raise UnsupportedModel(
                f"{name!r} is another in the first step than later; ask unroll(steps).decide()"
            )


def _allowed(steps: DecisionSteps) -> Flags | None:
    """Return which joint actions may be taken in which states."""
    axes = [*steps.sights, *steps.decisions]
    shape = [len(steps.variable(n)) for n in axes]
    found = None
    for d in steps.decisions:
        node = steps.transition[d]
        assert isinstance(node, DecisionNode)
        if node.allowed is None:
            continue
        order = sorted(range(node.allowed.ndim), key=lambda i: axes.index(node.names[i]))
        own = node.allowed.transpose(order)
        wide = own.reshape([n if name in node.names else 1 for name, n in zip(axes, shape, strict=True)])
        found = np.broadcast_to(wide, shape) if found is None else found & wide
    if found is None:
        return None
    return np.ascontiguousarray(found.reshape(int(np.prod(shape[: len(steps.sights)])), -1))
