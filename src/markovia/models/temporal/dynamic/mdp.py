"""Markov decision processes given by tables, the preset of a dynamic network whose decision sees the state."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnsupportedModel
from markovia.factors.decisions.decision import Decision
from markovia.factors.decisions.utility import Utility
from markovia.inference.decisions.processes.bellman import EvaluatedOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.inference.decisions.processes.finite_horizon import finite_horizon
from markovia.inference.decisions.processes.occupancy_program import UtilityLimit
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.planning import check_time, plan_process
from markovia.inference.decisions.processes.policy_iteration import policy_iteration
from markovia.inference.decisions.processes.soft_values import SoftValues, soft_values
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.libraries import pd, sparse
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas

    from markovia.models.temporal.dynamic.optimality import OptimalityModel

END = "over"
"""The state that a process is in once a transition has ended it, where the table does not mark such states itself."""


class MDP(InNotebooks):
    """A Markov decision process.

    Parameters
    ----------
    transitions
        P: (A, S, S), dense or a list of sparse tables; or (S, A, S).
    rewards
        R: (S,), (S, A), or by move (A, S, S).
    states, actions
        Names; 0, 1, ... by default.
    initial
        The law of the first state, or a state; uniform over states that are not terminal by default.
    terminal
        States where the process is over, by name, or as truth values.
    allowed
        (S, A), which actions may be taken; all by default.

    Examples
    --------
    >>> wait, cut = [[0.1, 0.9, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
    >>> forest = MDP([wait, cut], [[0, 0], [0, 1], [4, 2]], states=["young", "middle", "old"], actions=["wait", "cut"])
    >>> plan = forest.decide(discount=0.96)
    >>> plan.v.round(4).tolist(), plan.act("old")
    ([74.6496, 78.1056, 82.1056], 'wait')
    """

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        *,
        states: Sequence[Hashable] | None = None,
        actions: Sequence[Hashable] | None = None,
        initial: Any = None,
        terminal: Any = None,
        allowed: Any = None,
    ) -> None:
        self.table = DecisionProcess.from_tables(
            transitions,
            rewards,
            states=states,
            actions=actions,
            initial=initial,
            terminal=terminal,
            allowed=allowed,
        )

    @classmethod
    def _of(cls, table: DecisionProcess) -> "MDP":
        found = cls.__new__(cls)
        found.table = table
        return found

    @classmethod
    def from_env(cls, env: Any) -> "MDP":
        """Return the process of an environment that has its table of moves, as Gymnasium's toy_text do.

        Moves that terminate lead to a state in which the process is over. Time limits are no part of a process: say
        `horizon`.

        Parameters
        ----------
        env
            With `env.unwrapped.P[state][action]`, a list of (probability, next state, reward, terminated).

        Examples
        --------
        >>> class Coin:
        ...     P = {0: {0: [(0.5, 1, 1.0, True), (0.5, 0, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
        >>> MDP.from_env(Coin()).decide(discount=1).v.tolist()
        [1.0, 0.0]
        """
        inner = getattr(env, "unwrapped", env)
        table = getattr(inner, "P", None)
        if not isinstance(table, Mapping | Sequence):
            raise UnsupportedModel(
                f"{type(inner).__name__} has no table of moves (env.unwrapped.P), so it can only be tried, not planned for; "
                "mk.control.learn learns from trials"
            )
        return cls._of(_read_moves(table, getattr(inner, "initial_state_distrib", None)))

    @property
    def states(self) -> list[Hashable]:
        """The names of the states."""
        return [self.table.state_name(s) for s in range(self.table.n_states)]

    @property
    def actions(self) -> list[Hashable]:
        """The names of the actions."""
        return [self.table.action_name(a) for a in range(self.table.n_actions)]

    def decide(
        self,
        *,
        horizon: int | None = None,
        discount: float | Array | None = None,
        average: bool = False,
        temperature: float | None = None,
        entropy: bool = False,
        prior: Any = None,
        limits: Mapping[str, UtilityLimit] | None = None,
        final: Any = None,
        method: str = "auto",
        tolerance: float = 1e-8,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> Plan:
        """Return the best plan, with a bound on how much better any other could be.

        Parameters
        ----------
        horizon, discount, average
            Exactly one: how many decisions; what a reward a step later is worth (1 for total rewards until the process
            is over); or rewards per step in the long run.
        temperature, entropy, prior
            For a soft plan: `tau log sum p(a) exp(Q / tau)` in place of the best, p uniform or the `prior`; with
            `entropy=True` without p, the convention of actor-critic methods.
        limits
            Utilities whose discounted sums stay within limits: a mapping from names to `mk.control.UtilityLimit`. The
            plan may then be random.
        final
            With a horizon: what each state is worth after the last step.
        method
            "auto", "value iteration", "policy iteration", "modified policy iteration" or "linear program", for
            discounts below one.
        tolerance, time_limit, progress
            The gap that is small enough; seconds; whether to show a bar.

        Examples
        --------
        >>> walk = MDP([[[0, 1.0], [0, 1]], [[1.0, 0], [0, 1]]], [-1.0, 0.0], terminal=[1], actions=["go", "stay"])
        >>> walk.decide(discount=1).v.tolist(), walk.decide(horizon=3).act(0, step=2)
        ([-1.0, 0.0], 'go')
        """
        return plan_process(
            self.table, horizon=horizon, discount=discount, average=average, temperature=temperature, entropy=entropy,
            prior=prior, limits=limits, final=final, method=method, tolerance=tolerance, time_limit=time_limit,
            progress=progress,
        )  # fmt: skip

    def evaluate(self, policy: Any, *, horizon: int | None = None, discount: float | None = None) -> Plan:
        """Return what a policy is worth: a `Plan`, probabilities of actions (S, A), or an action for each state.

        Examples
        --------
        >>> coin = MDP([[[1.0]], [[1.0]]], [[1.0, 3.0]])
        >>> coin.evaluate([[0.5, 0.5]], discount=0.5).value
        4.0
        """
        check_time(horizon, discount, False)
        given = EvaluatedOperator(self._probabilities(policy))
        if horizon is not None:
            return finite_horizon(self.table, horizon, operator=given)
        assert discount is not None
        return policy_iteration(self.table, discount, operator=given)

    def _probabilities(self, policy: Any) -> Array:
        n, k = self.table.rewards.shape
        given = policy.policy if isinstance(policy, Plan) else np.asarray(policy)
        if given.shape == (n,):
            places = {name: a for a, name in enumerate(self.actions)}
            if unknown := next((a for a in given.tolist() if a not in places), None):
                raise InvalidArgument(
                    f"{unknown!r} is no action; actions are {', '.join(map(repr, self.actions))}"
                )
            return np.eye(k)[[places[a] for a in given.tolist()]]
        if given.shape != (n, k):
            raise InvalidTable(
                f"a policy is an action a state, or probabilities of shape {(n, k)}, not {given.shape}"
            )
        return np.asarray(given, dtype=np.float64)

    def soft_values(self, horizon: int, *, temperature: float, shift: bool = False) -> SoftValues:
        """Return exact and variational answers of control as inference side by side, with log p(O), ELBO and KL.

        Examples
        --------
        >>> sure = MDP([[[0, 1.0], [1.0, 0]]], [-1.0, 0.0], initial=0)
        >>> sure.soft_values(3, temperature=0.5).kl
        0.0
        """
        return soft_values(self.table, horizon, temperature=temperature, shift=shift)

    def optimality(self, temperature: float, horizon: int, *, shift: bool = False) -> "OptimalityModel":
        """Return the process given that it was optimal; see `DynamicBayesianNetwork.optimality`."""
        return self.process().optimality(temperature, horizon, shift=shift)

    def process(self) -> DynamicBayesianNetwork:
        """Return the dynamic network that it is: the state `s`, the decision `move` that sees it, and the utility `r`.

        Examples
        --------
        >>> MDP([[[1.0]], [[1.0]]], [[1.0, 3.0]]).process().variables
        ['s', 'move', 'r']
        """
        n, k = self.table.rewards.shape
        require_room(
            3.0 * n * n * k, f"the table of all moves between {n:,} states", "plan with the process itself"
        )
        moves = self.table.transitions.toarray().reshape(k, n, n).transpose(1, 0, 2)
        if self.table.allowed is not None:
            moves = np.where(self.table.allowed[..., None], moves, np.eye(n)[:, None, :])
        found = DynamicBayesianNetwork()
        states: Any = self.states
        found.add("s", moves, states=states, parents=["s@-1", "move@-1"], initial=self.table.first)
        actions: Any = self.actions
        found.add("move", Decision(actions, self.table.allowed), parents=["s"])
        found.add("r", Utility(self.table.rewards), parents=["s", "move"])
        return found

    def env(self, horizon: int | None = None) -> Any:
        """Return a Gymnasium environment that plays the process, cut off after `horizon` steps.

        Raises
        ------
        ImportError
            If Gymnasium is not installed: `pip install markovia[control]`.
        """
        return ports.call("environment", self.table, horizon=horizon)

    def sample(self, n: int = 1, *, steps: int, policy: Any = None, seed: Seed = None) -> "pandas.DataFrame":
        """Draw n episodes of at most so many steps, a row a step.

        Parameters
        ----------
        n, steps
            How many episodes, and how many steps at most; one ends where the process is over.
        policy
            A `Plan`, or as `evaluate` takes it; by default all allowed actions alike.
        seed
            For the draws.

        Examples
        --------
        >>> walk = MDP([[[0, 1.0, 0], [0, 0, 1], [0, 0, 1]]], [-1.0, -1, 0], terminal=[2], initial=0)
        >>> walk.sample(steps=5, seed=0).to_numpy().tolist()
        [[0, 0, 0, 0, -1.0, 1, False], [0, 1, 1, 0, -1.0, 2, True]]
        """
        check_count("n", n, 1)
        check_count("steps", steps, 1)
        rng, table = generator(seed), self.table
        laws = self._laws(policy, steps)
        ends: Flags = np.zeros(table.n_states, dtype=bool) if table.terminal is None else table.terminal
        cumulated = np.cumsum(table.transitions.data)
        state: Ints = rng.choice(table.n_states, size=n, p=table.first / table.first.sum())
        alive, columns = np.flatnonzero(~ends[state]), []
        for step in range(steps):
            if not len(alive):
                break
            here = state[alive]
            reach = np.cumsum(laws[step if len(laws) > 1 else 0][here], axis=1)
            action = (rng.random((len(here), 1)) * reach[:, -1:] >= reach).sum(axis=1)
            following = _drawn(table.transitions, cumulated, action * table.n_states + here, rng)
            over = ends[following]
            columns.append(
                (alive, np.full(len(here), step), here, action, table.rewards[here, action], following, over)
            )
            state[alive] = following
            alive = alive[~over]
        if not columns:
            columns.append(
                (
                    *(np.zeros(0, dtype=np.int64),) * 4,
                    np.zeros(0),
                    np.zeros(0, dtype=np.int64),
                    np.zeros(0, dtype=bool),
                )
            )
        episode, step_of, here, action, reward, following, over = map(
            np.concatenate, zip(*columns, strict=True)
        )
        order = np.lexsort((step_of, episode))
        names, moves = np.array(self.states, dtype=object), np.array(self.actions, dtype=object)
        return pd.DataFrame(
            {
                "episode": episode[order], "step": step_of[order], "state": names[here[order]],
                "action": moves[action[order]], "reward": reward[order], "next_state": names[following[order]],
                "terminated": over[order],
            }
        )  # fmt: skip

    def _laws(self, policy: Any, steps: int) -> Array:
        """Return probabilities of actions, one table a step or one for all."""
        table = self.table
        if policy is None:
            weights = (
                np.ones(table.rewards.shape) if table.allowed is None else table.allowed.astype(np.float64)
            )
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))[None]
        if isinstance(policy, Plan) and policy.horizon is not None:
            if policy.horizon < steps:
                raise InvalidArgument(f"the plan has {policy.horizon} steps, not {steps}")
            return np.asarray(policy.policy)
        return self._probabilities(policy)[None]

    def __repr__(self) -> str:
        ends = 0 if self.table.terminal is None else int(self.table.terminal.sum())
        more = f", {ends:,} terminal" if ends else ""
        return f"MDP({self.table.n_states:,} states{more}, {self.table.n_actions} actions)"


def _drawn(rows: sparse.csr_array, cumulated: Array, at: Ints, rng: np.random.Generator) -> Ints:
    """Draw a column from each of some rows that sum to one; `cumulated` are sums over all entries before and here."""
    first, last = rows.indptr[at], rows.indptr[at + 1]
    before = np.where(first > 0, cumulated[first - 1], 0.0)
    place = np.searchsorted(
        cumulated, before + rng.random(len(at)) * (cumulated[last - 1] - before), side="right"
    )
    return np.asarray(rows.indices[np.clip(place, first, last - 1)], dtype=np.int64)


def _read_moves(table: Any, initial: Any) -> DecisionProcess:
    """Return the process of a table of moves as toy_text environments have it."""
    states = sorted(table) if isinstance(table, Mapping) else list(range(len(table)))
    place = {s: i for i, s in enumerate(states)}
    actions = sorted({a for s in states for a in table[s]})
    n, k = len(states), len(actions)
    listed = [
        (a * n + place[s], p, following, reward, over)
        for s in states
        for a, action in enumerate(actions)
        for p, following, reward, over in table[s].get(action, ())
    ]
    rows, chances, followings, rewards, over = zip(*listed, strict=True)
    row, chance, worth = np.array(rows), np.array(chances, dtype=float), np.array(rewards, dtype=float)
    if len(bad := np.flatnonzero(~np.isfinite(chance) | ~np.isfinite(worth))):
        s, a = states[row[bad[0]] % n], actions[row[bad[0]] // n]
        raise InvalidTable(
            f"the environment says that action {a!r} in state {s!r} earns {worth[bad[0]]} with probability {chance[bad[0]]}"
        )
    to, ends = np.array([place[f] for f in followings]), np.array(over, dtype=bool)
    # a state is over if nothing leads to it without ending; otherwise such moves lead to a state of their own
    reached, lived = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    reached[to[ends]] = lived[to[~ends]] = True
    terminal = reached & ~lived
    apart = ends & ~terminal[to]
    size = n + int(apart.any())
    to = np.where(apart, n, to)
    full = row // n * size + row % n
    moves = sparse.coo_array((chance, (full, to)), shape=(size * k, size)).tocsr()
    earned = np.asarray(np.bincount(full, chance * worth, size * k), dtype=np.float64).reshape(k, size).T
    offered = np.zeros(size * k, dtype=bool)
    offered[full] = True
    first = None
    if initial is not None:
        first = np.append(np.asarray(initial, dtype=float), np.zeros(size - n))
    over_at = np.append(terminal, np.ones(size - n, dtype=bool))
    allowed = offered.reshape(k, size).T | over_at[:, None]
    return DecisionProcess(moves, earned, first, allowed, over_at, [*states, *([END] * (size - n))], actions)
