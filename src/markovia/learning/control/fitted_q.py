"""Fitted Q: Q-functions from a batch of transitions, by regression after regression on what the last one says.

Each round regresses r + discount V(s') on what was seen, one regression for each action. With an indicator for each state as
features a regression is the mean of its cell, and the rounds are value iteration on the frequencies of the batch; any other
regressor that has `fit` and `predict`, of this library or of scikit-learn, generalises between states. The operator at the
decision says whether this is the best that can be done, a soft best, or what a given policy is worth.

References: Ormoneit and Sen (2002); Ernst, Geurts and Wehenkel (2005); Riedmiller (2005). Cost: a regression an action and
round; tables one sparse product a round.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, NoOverlap, warn_user
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.inference.decisions.processes.bellman import DecisionOperator, HardOperator
from markovia.inference.decisions.processes.decision_process import require_room
from markovia.learning.control.acting import forward_pass, mapped
from markovia.learning.control.actor_critic import Share
from markovia.learning.control.trajectories import Transitions
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import Whole, check, check_count, check_number
from markovia.runtime.clock import Clock
from markovia.runtime.libraries import jnp, sparse

ROUNDS = 200
"""Rounds with a regressor, where nothing else is said."""
TABLE_ROUNDS = 1_000_000


@dataclass(frozen=True, eq=False)
class FittedQ:
    """Q-functions of a batch.

    Attributes
    ----------
    functions
        One for each step where there is a horizon, the first step's first; else a single one.
    operator
        What is done at a decision.
    unseen
        For tables, where no transition tells anything, (S, A); None for others.
    rounds, change
        Rounds that were made, and how far Q moved in the last one.
    converged
        Whether Q moved no further than the tolerance; always with a horizon.
    """

    functions: Sequence[Any]
    operator: DecisionOperator
    unseen: Flags | None
    rounds: int
    change: float
    converged: bool

    def q(self, states: Any, step: int = 0) -> Array:
        """Return Q of each state and action."""
        check("step", step, Whole(0, len(self.functions) - 1))
        found: Array = self.functions[step](np.asarray(states))
        return found

    def v(self, states: Any, step: int = 0) -> Array:
        """Return what states are worth."""
        found: Array = self.operator.value(self.q(states, step), self._allowed(states))
        return found

    def policy(self, states: Any, step: int = 0) -> Array:
        """Return the probabilities of actions in each state."""
        found: Array = self.operator.policy(self.q(states, step), self._allowed(states))
        return found

    def act(self, states: Any, step: int = 0) -> Any:
        """Return the likeliest action in each state."""
        return self.policy(states, step).argmax(axis=-1)

    def _allowed(self, states: Any) -> Flags | None:
        if self.unseen is None:
            return None
        tried = ~self.unseen[np.asarray(states)]
        # where nothing was tried nothing is known, and all actions are the same
        found: Flags = tried | ~tried.any(axis=-1, keepdims=True)
        return found


def fitted_q(
    transitions: Transitions, *, discount: float | None = None, horizon: int | None = None, regressor: Any = None,
    operator: DecisionOperator | None = None, n_states: int | None = None, n_actions: int | None = None,
    rounds: int | None = None, tolerance: float = 1e-12, time_limit: float | None = None, progress: bool | None = None,
) -> FittedQ:  # fmt: skip
    """Return Q-functions learned from a batch of transitions.

    Parameters
    ----------
    transitions
        What was tried. Only termination stops the future; where an episode was cut the state seen last is valued.
    discount
        What is left of a reward one step later, below one; or else a horizon.
    horizon
        How many steps there are, without discount unless one is given.
    regressor
        None for a table of counted states; an object with `fit(X, y)` and `predict(X)`, which is copied for each action;
        or a recipe of `mk.networks` (or `mk.Parameter` of it) from all features to one number.
    operator
        `HardOperator()`, `SoftOperator(temperature)` or `EvaluatedOperator(policy)`.
    n_states, n_actions
        How many there are; by default those that occur.
    rounds, tolerance
        Rounds at most, and how far Q may be from its limit, relative to its size.
    time_limit, progress
        Seconds, and whether to show a bar.

    Raises
    ------
    NoOverlap
        If some action never occurs and there is a regressor, which then has nothing to learn from.

    Examples
    --------
    >>> rows = Transitions([0, 0, 1], [0, 1, 0], [0.0, 1.0, 3.0], [1, 0, 1], [False, False, True], [False] * 3)
    >>> found = fitted_q(rows, discount=0.5)
    >>> found.q([0]).round(6).tolist(), found.act([0, 1]).tolist()
    ([[1.5, 2.0]], [1, 0])
    """
    if horizon is None and discount is None:
        raise InvalidArgument("give discount=, below one, or horizon=, the number of steps")
    if discount is not None:
        check("discount", discount, Share)
    check_count("horizon", horizon, 1, none=True)
    check_count("rounds", rounds, 1, none=True)
    check_number("tolerance", tolerance)
    rows = transitions.flat()
    if not len(rows):
        raise InvalidArgument("there are no transitions to learn from")
    if rows.action.dtype.kind not in "iu" or rows.action.min() < 0:
        raise InvalidArgument("fitted Q counts actions: whole numbers from 0 on")
    k = _count_of("n_actions", int(rows.action.max()) + 1, n_actions)
    rule = HardOperator() if operator is None else operator
    share = 1.0 if discount is None else float(discount)
    rewards = rows.reward.astype(np.float64)
    backup: Any
    if regressor is None:
        backup = _TableBackup(rows, rewards, share, rule, _count_of("n_states", rows.n_states, n_states), k)
    else:
        backup = _RegressionBackup(rows, rewards, share, rule, k, regressor)
    most = rounds or (TABLE_ROUNDS if regressor is None else ROUNDS) if horizon is None else horizon
    enough = tolerance * ((1.0 - share) / share if horizon is None and share > 0.0 else 1.0)
    functions: list[Any] = []
    change, done = np.inf, 0
    with Clock(time_limit, progress, total=horizon, unit="round", name="fitted Q") as clock:
        while done < most and not (done and clock.over()):
            change = backup.advance()
            done += 1
            clock.advance(value=change)
            if horizon is not None:
                functions.insert(0, backup.function())
            elif change <= enough * max(backup.size, 1e-300):
                break
    settled = horizon is not None or change <= enough * max(backup.size, 1e-300)
    if not settled and regressor is None:
        warn_user(
            f"Q still moved by {change:.2g} in round {done}; raise rounds= or tolerance=", ConvergenceWarning
        )
    if horizon is not None and len(functions) < horizon:
        raise InvalidArgument(f"time ran out after {done} of {horizon} steps; raise time_limit=")
    unseen = backup.unseen if regressor is None else None
    return FittedQ(tuple(functions) or (backup.function(),), rule, unseen, done, float(change), settled)


class TableFunction:
    """A table of Q as a function of states."""

    def __init__(self, table: Array) -> None:
        self.table = table

    def __call__(self, states: Any) -> Array:
        """Return the rows of states."""
        found: Array = self.table[np.asarray(states)]
        return found


class _TableBackup:
    """Regression on indicators of states: the mean of each cell, summed up once as frequencies of what follows."""

    def __init__(
        self, rows: Transitions, rewards: Array, discount: float, operator: DecisionOperator, n: int, k: int
    ) -> None:
        require_room(3.0 * n * k, "a table of Q", "give a regressor= instead")
        cell: Ints = rows.state * k + rows.action
        count = np.bincount(cell, minlength=n * k)
        mean = 1.0 / np.maximum(count, 1)
        self._rewards = (np.bincount(cell, rewards, n * k) * mean).reshape(n, k)
        going = ~rows.terminated
        follows = sparse.coo_array((mean[cell[going]], (cell[going], rows.after[going])), shape=(n * k, n))
        self._follows = follows.tocsr() * discount
        self.unseen: Flags = (count == 0).reshape(n, k)
        self._tried = ~self.unseen
        self._known = self._tried.any(axis=1)
        self._operator = operator
        self._open = None if self._tried.all() else self._tried | ~self._known[:, None]
        self.q, self._value = np.zeros((n, k)), np.zeros(n)
        self.size = 0.0

    def advance(self) -> float:
        """Make a round; return how far Q moved."""
        new = self._rewards + (self._follows @ self._value).reshape(self.q.shape)
        change = float(np.abs(new - self.q).max())
        self.q, self.size = new, float(np.abs(new).max())
        self._value = np.where(self._known, self._operator.value(new, self._open), 0.0)
        return change

    def function(self) -> TableFunction:
        """Return Q as it is now."""
        return TableFunction(self.q)


class RegressedFunction:
    """Regressors, one for each action, as a function of states."""

    def __init__(self, fitted: Sequence[Any], columns: int | None) -> None:
        self.fitted, self.columns = tuple(fitted), columns

    def __call__(self, states: Any) -> Array:
        """Return what they predict, an action a column."""
        rows = features_of(states, self.columns)
        return np.stack(
            [np.asarray(f.predict(rows), np.float64).reshape(len(rows)) for f in self.fitted], axis=1
        )


class _RegressionBackup:
    """A regression for each action on numbers, or on indicators of states."""

    size = 0.0

    def __init__(
        self,
        rows: Transitions,
        rewards: Array,
        discount: float,
        operator: DecisionOperator,
        k: int,
        regressor: Any,
    ) -> None:
        counted = rows.state.dtype.kind in "iu" and rows.state.ndim == 1
        self._columns = rows.n_states if counted else None
        self._inputs, self._after = (features_of(x, self._columns) for x in (rows.state, rows.after))
        self._places = [np.flatnonzero(rows.action == a) for a in range(k)]
        if absent := [a for a, place in enumerate(self._places) if not len(place)]:
            raise NoOverlap(f"action {absent[0]} was never tried, so that nothing can be learned about it")
        given = regressor.recipe if isinstance(regressor, Parameter) and regressor.recipe else regressor
        if isinstance(given, ModuleRecipe):
            given = ModuleRegression(given)
        if not hasattr(given, "fit") or not hasattr(given, "predict"):
            raise InvalidArgument(
                f"regressor= has fit and predict, or is a recipe of mk.networks, not {regressor!r}"
            )
        self._regressors = [deepcopy(given) for _ in range(k)]
        self._rewards, self._going = rewards, discount * ~rows.terminated
        self._operator = operator
        self._last: RegressedFunction | None = None
        self._q = np.zeros((len(rows), k))

    def advance(self) -> float:
        """Make a round; return how far Q moved where agents went."""
        target = self._rewards.copy()
        if self._last is not None:
            target += self._going * self._operator.value(self._q)
        fitted = [deepcopy(r) for r in self._regressors]
        for regressor, place in zip(fitted, self._places, strict=True):
            regressor.fit(self._inputs[place], target[place])
        self._last = RegressedFunction(fitted, self._columns)
        new = np.stack([np.asarray(f.predict(self._after), np.float64).ravel() for f in fitted], axis=1)
        change = float(np.abs(new - self._q).max())
        self._q, self.size = new, float(np.abs(new).max())
        return change

    def function(self) -> RegressedFunction:
        """Return Q as it is now."""
        assert self._last is not None
        return self._last


def features_of(states: Any, columns: int | None) -> Array:
    """Return rows of features: indicators of counted states, else the numbers."""
    given = np.asarray(states)
    if columns is None:
        return given.astype(np.float64).reshape(len(given), -1)
    found = np.zeros((len(given), columns))
    found[np.arange(len(given)), given] = 1.0
    return found


class ModuleRegression:
    """A network as a regressor: squared error on standardised targets, on the one training loop.

    Parameters
    ----------
    recipe
        A recipe of `mk.networks` from the features to one number.
    training
        How it is trained in each round.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.linspace(-1, 1, 64)[:, None]
    >>> fitted = ModuleRegression(mk.networks.mlp(1, 1, hidden=16)).fit(X, X[:, 0] ** 2)
    >>> bool(abs(fitted.predict(np.array([[0.5]]))[0] - 0.25) < 0.1)
    True
    """

    def __init__(self, recipe: ModuleRecipe, training: Training | None = None) -> None:
        self.recipe = recipe
        self.training = (
            Training(epochs=300, learning_rate=1e-2, decay=0.01, seed=0) if training is None else training
        )
        self._units = (0.0, 1.0)
        self._columns: tuple[Array, Array] = (np.zeros(1), np.ones(1))
        self._predict: Any = None

    def fit(self, X: Array, y: Array) -> "ModuleRegression":  # noqa: N803
        """Learn y from the rows of X."""
        spread = X.std(axis=0)
        self._columns = X.mean(axis=0), np.where(spread > 0.0, spread, 1.0)
        self._units = float(y.mean()), float(y.std()) or 1.0
        rows = {"x": self._inputs(X), "y": ((y - self._units[0]) / self._units[1]).astype(np.float32)}
        trained = self.training.run(squared_error, self.recipe.build(0), rows)
        self._predict = forward_pass(trained.parameters)
        return self

    def predict(self, X: Array) -> Array:  # noqa: N803
        """Return what is expected for each row."""
        found: Array = self._units[0] + self._units[1] * self._predict(self._inputs(X))[:, 0].astype(
            np.float64
        )
        return found

    def _inputs(self, X: Array) -> Array:  # noqa: N803
        return ((X - self._columns[0]) / self._columns[1]).astype(np.float32)


def squared_error(module: Any, memory: Any, key: Any, batch: Any) -> Any:
    """Return the weighted mean of squared errors."""
    error = mapped(module, batch.rows["x"])[:, 0] - batch.rows["y"]
    return jnp.sum(batch.weight * error**2) / jnp.sum(batch.weight), memory


def _count_of(name: str, least: int, given: int | None) -> int:
    if given is not None:
        check(name, given, Whole(least))
    return least if given is None else int(given)
