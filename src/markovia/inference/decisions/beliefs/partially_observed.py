"""Processes whose states are heard of, and plans that know them by their beliefs.

A step: an action is taken in a hidden state and earns its reward, the state moves on, and something is heard of the
new one, which may also depend on the action. All that was heard and done is summed up by the belief, the law of the
state (Astrom 1965), so that a plan is a function of beliefs.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import (
    ImpossibleEvidence,
    InvalidArgument,
    InvalidTable,
    UnknownState,
    UnsupportedModel,
    check_known,
)
from markovia.inference.decisions.beliefs.belief_steps import BeliefSteps
from markovia.inference.decisions.processes.decision_process import ROW_TOLERANCE, DecisionProcess
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import numbers

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True, eq=False, repr=False)
class PartiallyObserved:
    """A process whose states are not seen, and what is heard of them.

    Parameters
    ----------
    process
        States, actions and rewards; its `initial` is the first belief.
    observations
        (A, S, O): after action a has led to state s, the probability of hearing o; or a sparse table (S, O) for each action.
    heard
        What is heard, by name: its states. With several variables an observation is a state of each, the last changing
        first. By default "heard" with the states 0, 1, ...
    first_observation
        (S, O), what is heard of the first state before anything is done; None where nothing is.

    Examples
    --------
    >>> process = DecisionProcess.from_tables([np.eye(2)], [[1.0], [0.0]], initial=[0.5, 0.5])
    >>> heard = PartiallyObserved(process, np.array([[[0.9, 0.1], [0.2, 0.8]]]), {"sound": ["creak", "none"]})
    >>> heard.updated(np.array([0.5, 0.5]), 0, sound="creak").round(6).tolist()
    [0.818182, 0.181818]
    """

    process: DecisionProcess
    observations: "Array | Sequence[sparse.csr_array]"
    heard: Mapping[str, Sequence[Hashable]] = field(default_factory=dict)
    first_observation: Array | None = None

    def __post_init__(self) -> None:
        n, k = self.process.n_states, self.process.n_actions
        tables = [_law_rows(table, n, self._row_name(a)) for a, table in enumerate(self.observations)]
        if len(tables) != k or len({t.shape for t in tables}) != 1:
            raise InvalidTable(
                f"{k} actions and {n} states need observations of shape ({k}, {n}, observations)"
            )
        object.__setattr__(self, "observations", tables)
        n_heard = tables[0].shape[1]
        names = self.heard or {"heard": range(n_heard)}
        object.__setattr__(self, "heard", {name: tuple(states) for name, states in names.items()})
        if prod(map(len, self.heard.values())) != n_heard:
            sizes = " x ".join(str(len(states)) for states in self.heard.values())
            raise InvalidTable(f"there are {n_heard} observations, but heard= names {sizes}")
        if self.first_observation is not None:
            first = _law_rows(self.first_observation, n, "what is first heard in {}".format).toarray()
            if first.shape != (n, n_heard):
                raise InvalidTable(f"first_observation= has the shape {(n, n_heard)}, not {first.shape}")
            object.__setattr__(self, "first_observation", first)

    def _row_name(self, action: int) -> Any:
        return lambda s: (
            f"what is heard after action {self.process.action_name(action)!r} in state {self.process.state_name(s)!r}"
        )

    @property
    def n_observations(self) -> int:
        """How many different observations there are."""
        return int(self.observations[0].shape[1])

    @property
    def first(self) -> Array:
        """The first belief, before anything is heard."""
        return self.process.first

    @cached_property
    def open_actions(self) -> Ints:
        """The actions that may be taken, which must be the same ones in all states."""
        allowed, process = self.process.allowed, self.process
        if allowed is None:
            return np.arange(process.n_actions)
        rows = allowed if process.terminal is None else allowed[~process.terminal]
        uneven = np.flatnonzero(rows.any(axis=0) != rows.all(axis=0))
        if len(uneven):
            raise UnsupportedModel(
                f"action {process.action_name(int(uneven[0]))!r} is allowed in some states only, which are not seen; "
                "allow it everywhere, and let its reward tell where it is no good"
            )
        return np.flatnonzero(rows.all(axis=0))

    @cached_property
    def steps(self) -> BeliefSteps:
        """The steps of its beliefs, over the actions that may be taken."""
        from scipy import sparse

        chosen, n = self.open_actions, self.process.n_states
        rows = (chosen[:, None] * n + np.arange(n)).reshape(-1)
        transitions = (
            self.process.transitions
            if len(chosen) == self.process.n_actions
            else self.process.transitions[rows]
        )
        tables = [self.observations[a] for a in chosen]
        return BeliefSteps.of(sparse.csr_array(transitions), tables, self.process.rewards[:, chosen])

    @cached_property
    def starts(self) -> Array:
        """Weights of states when the first action is taken, one row for each thing that may first be heard."""
        if self.first_observation is None:
            return self.first[None]
        rows = np.ascontiguousarray((self.first[:, None] * self.first_observation).T)
        return np.asarray(rows[rows.sum(axis=1) > 0.0])

    def belief(self, given: Any = None) -> Array:
        """Return a belief: the first one, or one that is given by numbers, by a mapping from states, or as a state.

        Examples
        --------
        >>> process = DecisionProcess.from_tables([np.eye(2)], [[1.0], [0.0]], states=["left", "right"])
        >>> PartiallyObserved(process, np.ones((1, 2, 1))).belief({"left": 1.0}).tolist()
        [1.0, 0.0]
        """
        n = self.process.n_states
        if given is None:
            return self.first
        if isinstance(given, Mapping):
            law = np.zeros(n)
            for state, share in given.items():
                law[self.process.state_at(state)] = share
        elif isinstance(given, str) or (np.ndim(given) == 0 or isinstance(given, tuple)):
            law = np.eye(1, n, self.process.state_at(given))[0]
        else:
            law = numbers(given, "a belief holds one probability a state")
        if law.shape != (n,) or not (law >= 0.0).all() or not abs(law.sum() - 1.0) <= ROW_TOLERANCE:
            raise InvalidArgument(f"a belief holds {n} probabilities that sum to one")
        return np.asarray(law / law.sum())

    def heard_flags(self, heard: Mapping[str, Any]) -> Flags:
        """Return which observations agree with what was heard; what is left out, or None, may be anything."""
        check_known(heard, list(self.heard), "what is heard")
        each = []
        for name, states in self.heard.items():
            flags = np.ones(len(states), dtype=bool)
            if heard.get(name) is not None:
                if heard[name] not in states:
                    raise UnknownState(name, heard[name], states)
                flags = np.arange(len(states)) == states.index(heard[name])
            each.append(flags)
        found = each[0]
        for flags in each[1:]:
            found = np.logical_and.outer(found, flags)
        return found.reshape(-1)

    def updated(self, belief: Array, action: Hashable, **heard: Any) -> Array:
        """Return the belief after an action, given by name, and what was heard then.

        Raises
        ------
        ImpossibleEvidence
            Where this cannot be heard after that action.
        """
        a, n = self.action_at(action), self.process.n_states
        ahead = self.process.transitions[a * n : (a + 1) * n].T @ belief
        table = self.observations[a]
        weights = ahead * (table @ self.heard_flags(heard).astype(np.float64))
        return _normalised(weights, heard, f"after action {action!r}")

    def first_heard(self, **heard: Any) -> Array:
        """Return the belief after what is heard before the first action."""
        if self.first_observation is None:
            raise InvalidArgument("nothing is heard before the first action; act() first")
        flags = self.heard_flags(heard).astype(np.float64)
        return _normalised(self.first * (self.first_observation @ flags), heard, "at first")

    def action_at(self, name: Hashable) -> int:
        """Return the number of an action."""
        known = self.process.actions
        names: list[Any] = list(range(self.process.n_actions) if known is None else known)
        if name not in names:
            raise UnknownState("action", name, names)
        return names.index(name)

    def __repr__(self) -> str:
        process = self.process
        sizes = (
            f"{process.n_states:,} states, {process.n_actions} actions, {self.n_observations} observations"
        )
        return f"PartiallyObserved({sizes})"


def _law_rows(table: Any, n: int, named: Any) -> "sparse.csr_array":
    """Return a table of laws, one a state, as sparse rows that sum to one."""
    from scipy import sparse

    rows = sparse.csr_array(
        table
        if sparse.issparse(table)
        else np.atleast_2d(numbers(table, "observations are numbers", InvalidTable)),
        dtype=np.float64,
    )
    if rows.shape[0] != n:
        raise InvalidTable(f"observations have a row for each of {n} states, not {rows.shape[0]}")
    if not np.isfinite(rows.data).all() or (rows.data < 0.0).any():
        raise InvalidTable("observations have an entry that is no probability")
    sums = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > ROW_TOLERANCE)
    if len(wrong):
        raise InvalidTable(
            f"the probabilities of {named(int(wrong[0]))} sum to {sums[wrong[0]]:.6g}, not to 1"
        )
    return sparse.csr_array(sparse.diags_array(1.0 / sums) @ rows)


def _normalised(weights: Array, heard: Mapping[str, Any], when: str) -> Array:
    total = float(weights.sum())
    if not total > 0.0:
        said = ", ".join(f"{name}={state!r}" for name, state in heard.items())
        raise ImpossibleEvidence.because(f"{said} cannot be heard {when}, as far as is known", dict(heard))
    return weights / total
