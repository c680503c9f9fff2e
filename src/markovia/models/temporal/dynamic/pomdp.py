"""Processes whose states are only heard of, given by their tables."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable
from markovia.inference.decisions.beliefs.belief_plan import BeliefPlan, solve
from markovia.inference.decisions.beliefs.controllers import FiniteController, bounded_controller
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.inference.decisions.processes.value_bounds import DISCOUNT
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check, numbers

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork


class POMDP:
    """A partially observed Markov decision process: transitions, observations and rewards.

    Parameters
    ----------
    P
        Transitions: (A, S, S), or a list of A tables, sparse or dense.
    O
        Observations: (A, S, O), after an action has led to a state; (S, O) where the action does not matter; or a list of
        sparse tables.
    R
        Rewards: (S,), (S, A), or by move, (A, S, S).
    initial
        The first belief, or the name of the first state; by default uniform.
    states, actions, observations
        Names; by default numbers.
    terminal
        States in which the process is over: truth values, or their names.
    first_observation
        (S, O), what is heard before the first action; by default nothing is.
    discount
        What a reward a step later is worth, where `decide` is not told otherwise.

    Examples
    --------
    >>> import markovia as mk
    >>> door = np.full((2, 2), 0.5)
    >>> tiger = POMDP(
    ...     [np.eye(2), door, door], [[[0.85, 0.15], [0.15, 0.85]], door, door], [[-1, -100, 10], [-1, 10, -100]],
    ...     states=["left", "right"], actions=["listen", "open left", "open right"], observations=["growl", "snore"],
    ... )
    >>> tiger
    POMDP(2 states, 3 actions, 2 observations)
    >>> plan = tiger.decide(discount=0.95)
    >>> round(plan.value, 4), plan.act({"left": 0.98, "right": 0.02})
    (19.3714, 'open right')
    """

    def __init__(
        self,
        P: Any,  # noqa: N803
        O: Any,  # noqa: N803, E741
        R: Any,  # noqa: N803
        *,
        initial: Any = None,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
        observations: Sequence[Hashable] | None = None,
        terminal: Any = None,
        first_observation: Any = None,
        discount: float | None = None,
    ) -> None:
        from scipy import sparse

        if discount is not None:
            check("discount", discount, DISCOUNT)
        self.discount = discount
        flat = DecisionProcess.from_tables(
            P, R, initial=initial, terminal=terminal, states=states, actions=actions
        )
        if not any(sparse.issparse(part) for part in (O, *([] if sparse.issparse(O) else O))):
            O = numbers(O, "observations are numbers, (actions, states, observations)", InvalidTable)  # noqa: N806, E741
        tables = [O] * flat.n_actions if sparse.issparse(O) or np.ndim(O) == 2 else list(O)
        heard: Mapping[str, Sequence[Hashable]] = (
            {} if observations is None else {"heard": tuple(observations)}
        )
        self.flat = PartiallyObserved(flat, tables, heard, first_observation)

    @classmethod
    def of(cls, flat: PartiallyObserved, discount: float | None = None) -> "POMDP":
        """Return the model of a partially observed process."""
        made = cls.__new__(cls)
        made.flat, made.discount = flat, discount
        return made

    @cached_property
    def transitions(self) -> Array:
        """The law of the next state, (A, S, S)."""
        n, k = self.n_states, self.n_actions
        require_room(float(n) * n * k, "dense transitions", "ask flat.process for the sparse ones")
        return np.asarray(self.flat.process.transitions.toarray().reshape(k, n, n))

    @cached_property
    def observation_table(self) -> Array:
        """The law of what is heard, (A, S, O)."""
        require_room(
            float(self.n_states) * self.n_actions * self.flat.n_observations, "dense observations", "ask flat"
        )
        return np.array([table.toarray() for table in self.flat.observations])

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.flat.process.n_states

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return self.flat.process.n_actions

    def decide(
        self,
        *,
        horizon: int | None = None,
        discount: float | None = None,
        method: str | None = None,
        tolerance: float = 1e-8,
        time_limit: float | None = 60.0,
        progress: bool | None = None,
    ) -> BeliefPlan:
        """Return a plan over beliefs, with bounds; see `belief_plan.solve`.

        Parameters
        ----------
        horizon, discount
            Exactly one, or neither where the model has a discount of its own.
        method, tolerance, time_limit, progress
            "exact" or "point-based", the gap as a part of the largest reward, seconds, and whether to show a bar.
        """
        if horizon is None and discount is None:
            discount = self.discount
        return solve(
            self.flat, horizon=horizon, discount=discount, method=method, tolerance=tolerance, time_limit=time_limit,
            progress=progress,
        )  # fmt: skip

    def controller(
        self, nodes: int = 10, *, discount: float | None = None, time_limit: float | None = 60.0
    ) -> FiniteController:
        """Return a controller of few nodes that needs no belief, by bounded policy iteration.

        Parameters
        ----------
        nodes
            The most nodes.
        discount
            What a reward a step later is worth; by default the model's own.
        time_limit
            Seconds.
        """
        discount = self.discount if discount is None else discount
        if discount is None:
            raise InvalidArgument("give discount=, below 1")
        return bounded_controller(self.flat, discount=discount, nodes=nodes, time_limit=time_limit)

    def process(self) -> "DynamicBayesianNetwork":
        """Return the same as a dynamic network: "state", what is "heard" of it, the "action" that hears it, the "reward".

        Where nothing is heard before the first action, what stands there in the first step says nothing.

        Examples
        --------
        >>> still = POMDP([np.eye(2)], [[0.8, 0.2], [0.3, 0.7]], [1.0, 0.0])
        >>> still.process().variables
        ['state', 'heard', 'action', 'reward']
        """
        from markovia.factors.decisions.decision import Decision
        from markovia.factors.decisions.utility import Utility
        from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

        flat, process = self.flat, self.flat.process
        if len(flat.heard) > 1:
            raise InvalidArgument("several things are heard; build the network with a variable for each")
        allowed = None
        if process.allowed is not None:
            allowed = np.isin(np.arange(self.n_actions), flat.open_actions)
            allowed = np.tile(allowed, (flat.n_observations, 1))
        (name, heard) = next(iter(flat.heard.items()))
        told: list[Any] = list(heard)
        n, k = self.n_states, self.n_actions
        states: list[Any] = list(range(n)) if process.states is None else list(process.states)
        actions: list[Any] = list(range(k)) if process.actions is None else list(process.actions)
        first = flat.first_observation
        if first is None:
            first = np.full((n, flat.n_observations), 1.0 / flat.n_observations)
        made = DynamicBayesianNetwork()
        made.add(
            "state",
            self.transitions.transpose(1, 0, 2),
            states=states,
            parents=["state@-1", "action@-1"],
            initial=process.first,
        )
        made.add(
            name,
            self.observation_table.transpose(1, 0, 2),
            states=told,
            parents=["state", "action@-1"],
            initial=first,
        )
        made.add("action", Decision(actions, allowed=allowed), parents=[name])
        made.add("reward", Utility(process.rewards), parents=["state", "action"])
        return made

    def __repr__(self) -> str:
        return f"POMDP({self.n_states:,} states, {self.n_actions} actions, {self.flat.n_observations} observations)"
