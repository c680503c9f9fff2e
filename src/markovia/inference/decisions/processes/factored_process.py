"""Decision processes whose states are products of variables, backed up without the table of all moves.

The transitions are a product of tables over variables now (step 0), decisions, and variables of the next step (step 1).
A backup multiplies the values of the next step into that product and sums out all but what is seen and decided: the
backward message of the interface algorithm. Values and Q are tables over the joint states of what is seen.

References: Boutilier, Dearden and Goldszmidt (2000), "Stochastic dynamic programming with factored representations";
Dechter (1999). Cost: the largest product on the way, times the number of tables, a backup; never states times states,
unless the tables ask for it.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.tables.variable import Variable
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.sequences.slice_sums import TableElimination
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.libraries import sparse
from markovia.runtime.memory_budget import default_budget, readable

At = tuple[str, int]
"""A variable and a step: 0 now, 1 next."""
FLAT_ENTRIES = 2**22
"""Up to so many entries the table of all moves is made: solvers for flat processes know more than backups."""


class ScopedTable(NamedTuple):
    """A table and the variables of its axes."""

    scope: tuple[At, ...]
    values: Array


class JointStates(Sequence[Hashable]):
    """The joint states of some variables, the last changing first: tuples, or the states themselves of a single one.

    Examples
    --------
    >>> joint = JointStates([Variable("a", 2), Variable("b", ["no", "yes"])])
    >>> len(joint), joint[3], joint.number((1, "no"))
    (4, (1, 'yes'), 2)
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = list(variables)
        self.shape = tuple(len(v) for v in variables)

    def __len__(self) -> int:
        return prod(self.shape)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        codes = np.unravel_index(at % len(self), self.shape)
        states = tuple(v.states[int(c)] for v, c in zip(self.variables, codes, strict=True))
        return states[0] if len(states) == 1 else states

    def number(self, name: Any) -> int:
        """Return the number of a joint state."""
        states = (name,) if len(self.variables) == 1 else name
        if not isinstance(states, tuple | list) or len(states) != len(self.variables):
            raise InvalidArgument(
                f"a state is a state of each of {', '.join(v.name for v in self.variables)}, not {name!r}"
            )
        codes = [v.index(s) for v, s in zip(self.variables, states, strict=True)]
        return int(np.ravel_multi_index(codes, self.shape)) if codes else 0


class FactoredProcess:
    """A decision process given by tables.

    Parameters
    ----------
    sights
        The variables that are seen: their joint states are the states.
    decisions
        The variables that are decided: their joint states are the actions.
    moves
        Tables over `(name, 0)`, now, and `(name, 1)`, next, whose product, summed over what is neither seen nor
        decided, is the law of the next state.
    rewards
        Expected rewards, (S, A).
    initial
        The law of the first state.
    allowed
        (S, A); None for all.

    Examples
    --------
    >>> s, a = Variable("s", 2), Variable("a", 2)
    >>> move = ScopedTable((("s", 0), ("a", 0), ("s", 1)), np.array([[[1.0, 0], [0, 1]], [[0.5, 0.5], [0, 1]]]))
    >>> process = FactoredProcess([s], [a], [move], np.zeros((2, 2)), np.array([1.0, 0.0]))
    >>> process.q(np.array([4.0, 8.0]), 0.5).tolist(), process.flat()
    ([[2.0, 4.0], [3.0, 4.0]], DecisionProcess(2 states, 2 actions, 5 transitions))
    """

    terminal: Flags | None = None

    def __init__(
        self,
        sights: Sequence[Variable],
        decisions: Sequence[Variable],
        moves: Sequence[ScopedTable],
        rewards: Array,
        initial: Array,
        allowed: Flags | None = None,
    ) -> None:
        self.sights, self.decisions, self.moves = list(sights), list(decisions), list(moves)
        self.states, self.actions = JointStates(sights), JointStates(decisions)
        self.rewards, self.first, self.allowed = rewards, initial, allowed
        self._ahead: tuple[At, ...] = tuple((v.name, 1) for v in sights)
        self._now: tuple[At, ...] = tuple((v.name, 0) for v in [*sights, *decisions])

    @property
    def n_states(self) -> int:
        """How many joint states there are."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """How many joint actions there are."""
        return len(self.actions)

    def state_name(self, s: int) -> Hashable:
        """Return the name of a state."""
        return self.states[s]  # type: ignore[no-any-return]

    def action_name(self, a: int) -> Hashable:
        """Return the name of an action."""
        return self.actions[a]  # type: ignore[no-any-return]

    def state_at(self, name: Hashable) -> int:
        """Return the number of a state."""
        return self.states.number(name)

    def q(self, values: Array, discount: float | Array = 1.0) -> Array:
        """Return rewards plus the discounted values of what follows, (S, A)."""
        ahead = self._backward.sums([*self._tables, values.reshape(self.states.shape)])
        return np.asarray(self.rewards + discount * ahead.reshape(self.rewards.shape))

    @cached_property
    def _tables(self) -> list[Array]:
        bare = [np.ones(self._sizes[p]) for p in self._bare]
        return [*(m.values for m in self.moves), *bare]

    @cached_property
    def _sizes(self) -> dict[Any, int]:
        own = {(v.name, t): len(v) for v in self.sights for t in (0, 1)}
        own.update({(v.name, 0): len(v) for v in self.decisions})
        return {**own, **{p: n for m in self.moves for p, n in zip(m.scope, m.values.shape, strict=True)}}

    @cached_property
    def _bare(self) -> list[At]:
        known = {p for m in self.moves for p in m.scope}
        return [p for p in self._now if p not in known]

    @cached_property
    def _backward(self) -> TableElimination:
        scopes = [*(m.scope for m in self.moves), *((p,) for p in self._bare), self._ahead]
        plan = TableElimination(scopes, self._sizes, self._now)
        _require(plan, "a backup", "let the decision depend on fewer variables, or group their states")
        return plan

    @property
    def flat_entries(self) -> int:
        """How many entries the dense table of all moves has."""
        return self.n_states**2 * self.n_actions

    def flat(self) -> DecisionProcess:
        """Return the process with the table of all moves, in sparse form."""
        scopes = [*(m.scope for m in self.moves), *((p,) for p in self._bare)]
        plan = TableElimination(scopes, self._sizes, (*self._now, *self._ahead))
        _require(plan, "the table of all moves", "take method='value iteration', which does without")
        table = plan.sums(self._tables).reshape(self.n_states, self.n_actions, self.n_states)
        rows = sparse.csr_array(table.transpose(1, 0, 2).reshape(-1, self.n_states))
        return DecisionProcess(
            rows, self.rewards, self.first, self.allowed, None, list(self.states), list(self.actions)
        )

    def __repr__(self) -> str:
        return (
            f"FactoredProcess({self.n_states:,} states, {self.n_actions} actions, {len(self.moves)} tables)"
        )


def expectation(tables: Sequence[ScopedTable], keep: Sequence[At], sizes: dict[Any, int]) -> Array:
    """Return the sum of a product of tables over all but some variables.

    Examples
    --------
    >>> law = ScopedTable((("x", 0),), np.array([0.25, 0.75]))
    >>> float(expectation([law, ScopedTable((("x", 0),), np.array([4.0, 8.0]))], [], {("x", 0): 2}))
    7.0
    """
    known = {p for t in tables for p in t.scope}
    bare = [p for p in keep if p not in known]
    plan = TableElimination([*(t.scope for t in tables), *((p,) for p in bare)], sizes, tuple(keep))
    _require(plan, "the expected reward", "split the utility")
    return plan.sums([*(t.values for t in tables), *(np.ones(sizes[p]) for p in bare)])


def _require(plan: TableElimination, what: str, cure: str) -> None:
    if plan.largest * 8.0 > default_budget():
        raise TooLarge(
            f"{what} makes a table of {plan.largest:,} entries ({readable(plan.largest * 8.0)}); {cure}",
            bytes=plan.largest * 8.0,
        )
