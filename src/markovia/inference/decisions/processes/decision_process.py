"""Markov decision processes on numbered states, in sparse form: what all solvers of flat processes take.

Row `a * S + s` of the transitions is the law of the next state after action a in state s, so the rows of an action lie
together and one sparse product with the values gives all of Q. States that are terminal end the process: they are worth
nothing, and whatever stood in their rows is replaced by staying there without reward.

Cost: reading tables takes time and memory of their nonzeros; a dense table (A, S, S) is read once.
References: Puterman (1994), "Markov Decision Processes".
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, TooLarge, UnknownState
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import numbers
from markovia.runtime.libraries import sparse
from markovia.runtime.memory_budget import default_budget, readable

ROW_TOLERANCE = 1e-6
"""How far from one a row of transitions may sum."""
ROUNDING = 1e-14
"""How far from one a sum may be that is left as it is."""


class StateProcess(Protocol):
    """What solvers that only back values up need of a process, be its transitions one table or a product of tables."""

    @property
    def rewards(self) -> Array:
        """Expected rewards, (S, A)."""

    @property
    def allowed(self) -> Flags | None:
        """Which actions may be taken, (S, A); None for all."""

    @property
    def terminal(self) -> Flags | None:
        """Where the process is over, (S,); None for nowhere."""

    @property
    def first(self) -> Array:
        """The law of the first state."""

    @property
    def n_states(self) -> int:
        """How many states there are."""

    @property
    def n_actions(self) -> int:
        """How many actions there are."""

    def q(self, values: Array, discount: float | Array = 1.0) -> Array:
        """Return rewards plus the discounted values of what follows, (S, A)."""

    def state_name(self, s: int) -> Hashable:
        """Return the name of a state."""

    def action_name(self, a: int) -> Hashable:
        """Return the name of an action."""

    def state_at(self, name: Hashable) -> int:
        """Return the number of a state."""


@dataclass(frozen=True, eq=False, repr=False)
class DecisionProcess:
    """A process with states, actions and rewards.

    Parameters
    ----------
    transitions
        (A * S, S), the row `a * S + s` the law of the next state; rows of what is not allowed may be empty.
    rewards
        (S, A), expected.
    initial
        The law of the first state, (S,); None for uniform over the states that are not terminal.
    allowed
        (S, A), which actions may be taken; None for all.
    terminal
        (S,), where the process is over; None for nowhere.
    states, actions
        Names; 0, 1, ... where there are none.

    Examples
    --------
    >>> stay = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]]))
    >>> process = DecisionProcess(stay, np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> process
    DecisionProcess(2 states, 2 actions, 6 transitions)
    >>> process.q(np.array([1.0, 3.0]), 0.5).tolist()
    [[0.5, 2.0], [3.5, 1.0]]
    """

    transitions: sparse.csr_array
    rewards: Array
    initial: Array | None = None
    allowed: Flags | None = None
    terminal: Flags | None = None
    states: Sequence[Hashable] | None = None
    actions: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        rewards = numbers(self.rewards, "rewards are numbers, (states, actions)", InvalidTable)
        if rewards.ndim != 2 or not rewards.size:
            raise InvalidTable(f"rewards have the shape (states, actions), not {rewards.shape}")
        n, k = rewards.shape
        if self.transitions.shape != (n * k, n):
            raise InvalidTable(
                f"{n} states and {k} actions need transitions of shape ({n * k}, {n}), not {self.transitions.shape}"
            )
        _check_names("states", self.states, n)
        _check_names("actions", self.actions, k)
        keep = {"rewards": rewards, "transitions": self._own_rows(n, k)}
        if self.allowed is not None:
            allowed = np.asarray(self.allowed)
            if allowed.shape != (n, k) or allowed.dtype != np.bool_:
                raise InvalidTable(f"allowed= holds truth values of shape {(n, k)}")
            if len(stuck := np.flatnonzero(~allowed.any(axis=1) & ~self._terminal_flags(n))):
                raise InvalidTable(
                    f"no action is allowed in state {self.state_name(int(stuck[0]))!r}; allow one"
                )
            keep["allowed"] = None if allowed.all() else allowed
        if self.terminal is not None:
            ends = self._terminal_flags(n)
            keep["terminal"] = ends if ends.any() else None
            keep["transitions"] = _absorbed(keep["transitions"], ends, k)
            rewards[ends] = 0.0
            if keep.get("allowed") is not None:
                keep["allowed"] = keep["allowed"] | ends[:, None]
        counted = rewards if keep.get("allowed") is None else np.where(keep["allowed"], rewards, 0.0)
        if len(wrong := np.argwhere(~np.isfinite(counted))):
            s, a = wrong[0].tolist()
            raise InvalidTable(
                f"the reward of action {self.action_name(a)!r} in state {self.state_name(s)!r} is {rewards[s, a]}; rewards "
                "are finite (forbid actions with allowed=)"
            )
        rewards[counted != rewards] = 0.0
        keep["transitions"] = self._normalised(keep["transitions"], keep.get("allowed"))
        if self.initial is not None:
            keep["initial"] = _law(self.initial, n)
        for name, value in keep.items():
            object.__setattr__(self, name, value)

    def _own_rows(self, n: int, k: int) -> sparse.csr_array:
        rows = sparse.csr_array(self.transitions, dtype=np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return rows

    def _terminal_flags(self, n: int) -> Flags:
        if self.terminal is None:
            return np.zeros(n, dtype=bool)
        given = np.asarray(self.terminal)
        if given.shape == (n,) and given.dtype == np.bool_:
            return given
        raise InvalidTable(f"terminal= holds one truth value a state, {n} of them")

    def _normalised(self, rows: sparse.csr_array, allowed: Flags | None) -> sparse.csr_array:
        """Return rows that sum to one, or raise at the first that is no probability law; cost of the nonzeros."""
        n = rows.shape[1]
        if not np.isfinite(rows.data).all() or (rows.data < 0.0).any():
            bad = int(np.flatnonzero(~np.isfinite(rows.data) | (rows.data < 0.0))[0])
            row = int(np.searchsorted(rows.indptr, bad, side="right") - 1)
            raise InvalidTable(
                f"the transition {self._row_name(row, n)} has the probability {rows.data[bad]}"
            )
        sums = rows.sum(axis=1)
        wrong = np.abs(sums - 1.0) > ROW_TOLERANCE
        if allowed is not None:
            wrong &= allowed.T.reshape(-1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            more = int(wrong.sum()) - 1
            others = f" (and {more:,} more rows are wrong)" if more else ""
            raise InvalidTable(
                f"the transition probabilities {self._row_name(row, n)} sum to {sums[row]:.6g}, not to 1{others}"
            )
        if not (np.abs(sums - 1.0) > ROUNDING).any():
            return rows
        scale = np.divide(1.0, sums, out=np.ones_like(sums), where=np.abs(sums - 1.0) <= ROW_TOLERANCE)
        return sparse.csr_array(
            (rows.data * np.repeat(scale, np.diff(rows.indptr)), rows.indices, rows.indptr), shape=rows.shape
        )

    def _row_name(self, row: int, n: int) -> str:
        return f"of action {self.action_name(row // n)!r} in state {self.state_name(row % n)!r}"

    # -- reading tables --------------------------------------------------------------------------------------------

    @staticmethod
    def from_tables(
        transitions: Any,
        rewards: Any,
        *,
        initial: Any = None,
        allowed: Any = None,
        terminal: Any = None,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
    ) -> "DecisionProcess":
        """Read transitions and rewards in any of the usual forms.

        Parameters
        ----------
        transitions
            A dense table (A, S, S); a list of A tables (S, S), sparse or dense; a dense table (S, A, S); or the sparse
            (A * S, S) itself. Where A = S the first axis is the actions.
        rewards
            (S,) for the state that is left, (S, A), or by move, (A, S, S), dense or a list of sparse tables.
        initial
            The law of the first state, or the state's name.
        terminal
            Truth values, or names of states.

        Examples
        --------
        >>> wait, cut = [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
        >>> DecisionProcess.from_tables([wait, cut], [[0, 0], [0, 1], [4, 2]], states=["young", "middle", "old"])
        DecisionProcess(3 states, 2 actions, 9 transitions)
        """
        rows = _stacked(transitions)
        n = rows.shape[1]
        k = rows.shape[0] // n if n else 0
        named = states if states is None else list(states)
        ends = None if terminal is None else _flags(terminal, n, named)
        if initial is not None and not np.ndim(initial) and not isinstance(initial, dict):
            initial = np.eye(1, n, _position(initial, n, named))[0]
        return DecisionProcess(
            rows, _expected_rewards(rewards, rows, n, k), initial,
            None if allowed is None else np.asarray(allowed), ends, named, None if actions is None else list(actions),
        )  # fmt: skip

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return int(self.rewards.shape[0])

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return int(self.rewards.shape[1])

    @cached_property
    def first(self) -> Array:
        """The law of the first state; uniform over states that are not terminal where none was given."""
        if self.initial is not None:
            return self.initial
        open_states = np.ones(self.n_states) if self.terminal is None else 1.0 - self.terminal
        weights = open_states if open_states.any() else np.ones(self.n_states)
        return np.asarray(weights / weights.sum())

    def q(self, values: Array, discount: float | Array = 1.0) -> Array:
        """Return rewards plus the discounted values of what follows, (S, A)."""
        ahead = (self.transitions @ values).reshape(self.n_actions, self.n_states).T
        return np.asarray(self.rewards + discount * ahead)

    def under(self, policy: Array, rows: sparse.csr_array | None = None) -> tuple[sparse.csr_array, Array]:
        """Return the transitions (S, S), or what other rows make of them, and the rewards (S,) of a policy (S, A)."""
        n, k = self.rewards.shape
        picks = sparse.csr_array(
            (policy.T.reshape(-1), (np.tile(np.arange(n), k), np.arange(n * k))), shape=(n, n * k)
        )
        picks.eliminate_zeros()
        taken = sparse.csr_array(picks @ (self.transitions if rows is None else rows))
        return taken, np.where(policy > 0, policy * self.rewards, 0.0).sum(axis=1)

    def state_name(self, s: int) -> Hashable:
        """Return the name of a state."""
        return s if self.states is None else self.states[s]

    def action_name(self, a: int) -> Hashable:
        """Return the name of an action."""
        return a if self.actions is None else self.actions[a]

    def state_at(self, name: Hashable) -> int:
        """Return the number of a state."""
        return _position(name, self.n_states, self.states, self._state_places)

    @cached_property
    def _state_places(self) -> dict[Hashable, int] | None:
        return None if self.states is None else {s: i for i, s in enumerate(self.states)}

    def __repr__(self) -> str:
        return f"DecisionProcess({self.n_states:,} states, {self.n_actions} actions, {self.transitions.nnz:,} transitions)"


def require_room(entries: float, what: str, cure: str) -> None:
    """Raise `TooLarge` where so many numbers do not fit into memory.

    Examples
    --------
    >>> require_room(1e18, "Q of every step", "ask for fewer steps")
    Traceback (most recent call last):
        ...
    markovia.errors.TooLarge: Q of every step would take 6.94 EiB; ask for fewer steps
    """
    if 8.0 * entries > default_budget():
        raise TooLarge(f"{what} would take {readable(8.0 * entries)}; {cure}", bytes=8.0 * entries)


def _stacked(form: Any) -> sparse.csr_array:
    """Return transitions of any form as (A * S, S)."""
    if sparse.issparse(form):
        if not form.shape[1] or form.shape[0] % form.shape[1]:
            raise InvalidTable(
                f"sparse transitions have the shape (actions * states, states), not {form.shape}"
            )
        return sparse.csr_array(form, dtype=np.float64)
    if isinstance(form, list | tuple) and form and any(sparse.issparse(part) for part in form):
        parts = [sparse.csr_array(part, dtype=np.float64) for part in form]
        for part in parts:
            if part.shape != (parts[0].shape[0],) * 2:
                raise InvalidTable(f"each action has a table (states, states), not {part.shape}")
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    table = numbers(form, "transitions are numbers, (actions, states, states)", InvalidTable)
    if table.ndim == 2 and table.shape[0] == table.shape[1]:
        table = table[None]
    if table.ndim != 3 or not table.size or table.shape[2] not in table.shape[:2]:
        raise InvalidTable(
            f"transitions have the shape (actions, states, states) or (states, actions, states), not {table.shape}"
        )
    if table.shape[1] != table.shape[2]:
        table = table.transpose(1, 0, 2)
    return sparse.csr_array(table.reshape(-1, table.shape[2]))


def _expected_rewards(form: Any, rows: sparse.csr_array, n: int, k: int) -> Array:
    """Return rewards of any form as (S, A)."""
    by_move = isinstance(form, list | tuple) and any(sparse.issparse(part) for part in form)
    if sparse.issparse(form) or by_move:
        table = sparse.csr_array(sparse.vstack(form) if by_move else form)
        if table.shape != rows.shape:
            raise InvalidTable(
                f"rewards of moves have the shape of the transitions, {rows.shape}, not {table.shape}"
            )
        return np.asarray((rows * table).sum(axis=1)).reshape(k, n).T
    table = numbers(
        form, "rewards are numbers: (states,), (states, actions) or (actions, states, states)", InvalidTable
    )
    if table.shape == (n,):
        return np.repeat(table[:, None], k, axis=1)
    if table.shape == (n, k):
        return table
    if table.ndim == 3 and table.size == n * k * n:
        if table.shape == (n, k, n) and n != k:
            table = table.transpose(1, 0, 2)
        entries = rows.tocoo()
        worth = table.reshape(n * k, n)[entries.coords[0], entries.coords[1]]
        return (
            np.asarray(np.bincount(entries.coords[0], entries.data * worth, n * k), dtype=np.float64)
            .reshape(k, n)
            .T
        )
    raise InvalidTable(
        f"rewards have the shape ({n},), ({n}, {k}) or ({k}, {n}, {n}) for {n} states and {k} actions, not {table.shape}"
    )


def _absorbed(rows: sparse.csr_array, ends: Flags, k: int) -> sparse.csr_array:
    """Return transitions that stay for ever in states that are terminal; one pass over the nonzeros."""
    if not ends.any():
        return rows
    n = len(ends)
    places = np.flatnonzero(np.tile(ends, k))
    first, lengths = rows.indptr[places], np.diff(rows.indptr)[places]
    data, indices = rows.data.copy(), rows.indices.copy()
    data[np.repeat(np.tile(ends, k), np.diff(rows.indptr))] = 0.0
    filled = lengths > 0
    data[first[filled]], indices[first[filled]] = 1.0, places[filled] % n
    found = sparse.csr_array((data, indices, rows.indptr.copy()), shape=rows.shape)
    found.eliminate_zeros()
    if filled.all():
        return found
    bare = places[~filled]
    return sparse.csr_array(
        found + sparse.csr_array((np.ones(len(bare)), (bare, bare % n)), shape=rows.shape)
    )


def _law(initial: Any, n: int) -> Array:
    law = numbers(initial, "initial= holds one probability a state", InvalidTable)
    if law.shape != (n,) or not (law >= 0.0).all() or abs(law.sum() - 1.0) > ROW_TOLERANCE:
        raise InvalidTable(f"initial= holds {n} probabilities that sum to one")
    return law


def _check_names(what: str, names: Sequence[Hashable] | None, n: int) -> None:
    if names is not None and (len(names) != n or len({*names}) != n):
        raise InvalidArgument(f"{what}= names {n} different {what}, not {len({*names})}")


def _position(
    name: Hashable, n: int, names: Sequence[Hashable] | None, places: dict[Hashable, int] | None = None
) -> int:
    if names is not None:
        known = {s: i for i, s in enumerate(names)} if places is None else places
        if name in known:
            return known[name]
        raise UnknownState("state", name, list(names))
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < n:
        return int(name)
    raise InvalidArgument(f"a state is a whole number from 0 to {n - 1}, not {name!r}")


def _flags(terminal: Any, n: int, names: Sequence[Hashable] | None) -> Flags:
    given = np.asarray(terminal)
    if given.dtype == np.bool_ and given.shape == (n,):
        return given
    found = np.zeros(n, dtype=bool)
    listed: Ints = np.array(
        [_position(s, n, names) for s in np.atleast_1d(np.asarray(terminal, dtype=object))], dtype=np.int64
    )
    found[listed] = True
    return found
