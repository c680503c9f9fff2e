"""Learning a model and planning in it: Dirichlet counts of transitions, normal rewards, and draws from their posterior.

Posterior sampling draws a whole process from what is known so far, plans in it as if it were true, and follows that plan
for a stretch: actions are tried as often as they may still be best. The answer is the plan for the posterior mean. The end
of an episode is a state of its own, so that how often a move ends an episode is learned too.

References: Strens (2000); Osband, Russo and Van Roy (2013) for regret; Thompson (1933). Cost: each draw is one gamma number
for every state, action and next state, and one value iteration.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.value_iteration import value_iteration
from markovia.learning.control.actor_critic import Share
from markovia.learning.control.trajectories import Transitions, TrialRunner
from markovia.learning.control.trial_loop import RECENT, TrialHistory
from markovia.learning.control.worlds import TrialWorlds
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive, PositiveOrNone, check_count, check_options
from markovia.runtime.clock import Clock
from markovia.runtime.libraries import sparse
from markovia.runtime.seeds import Seed, generator

PRIOR_REWARDS = 0.01
"""How many rewards the prior of a mean reward stands for: few, since a small bias adds up over many steps."""
NOISE = 0.1
"""The spread of rewards of one move that the prior expects, in units of rewards; mean rewards of moves differ ten times as
much (the root of one over `PRIOR_REWARDS`), so that what was never tried may be good."""


class ProcessPosterior:
    """What transitions tell about a process: a Dirichlet law for each row, and a normal law for each mean reward.

    Parameters
    ----------
    n_states, n_actions
        How many there are; one more state is where episodes end.
    prior
        How many times each move counts as seen before; by default one over the number of states.
    reward_size
        How large a reward may be that was never seen; by default as large as those that were (root mean square). A small
        reward near at hand hides large ones far away unless this says that there may be some.

    Attributes
    ----------
    counts
        How often each move was made, (A * S, S + 1); the last column is the end of an episode.

    Examples
    --------
    >>> posterior = ProcessPosterior(2, 1)
    >>> posterior.add(Transitions([0, 0, 1], [0, 0, 0], [1.0, 1.0, 0.0], [1, 1, 0], [False] * 3, [False] * 3))
    >>> posterior.mean().rewards[:, 0].round(3).tolist(), posterior.draw(seed=0).n_states
    ([0.998, 0.007, 0.0], 3)
    """

    def __init__(
        self, n_states: int, n_actions: int, prior: float | None = None, reward_size: float | None = None
    ) -> None:
        check_count("n_states", n_states, 1)
        check_count("n_actions", n_actions, 1)
        require_room(3.0 * n_states * n_actions * (n_states + 1), "counts of all moves", "merge states")
        self.n_states, self.n_actions = n_states, n_actions
        self.prior = 1.0 / (n_states + 1) if prior is None else prior
        self.reward_size = reward_size
        self.counts: Array = np.zeros((n_actions * n_states, n_states + 1))
        self._sums: Array = np.zeros(n_actions * n_states)
        self._squares: Array = np.zeros(n_actions * n_states)
        self._paid = 0

    def add(self, transitions: Transitions) -> None:
        """Learn from more transitions."""
        rows = transitions.flat()
        if rows.state.dtype.kind not in "iu" or rows.action.dtype.kind not in "iu":
            raise InvalidArgument("a posterior of a process counts states and actions; these are numbers")
        if rows.n_states > self.n_states or int(rows.action.max()) >= self.n_actions:
            raise InvalidArgument(
                f"the transitions have states or actions beyond the {self.n_states} and {self.n_actions} that were announced"
            )
        cell: Ints = rows.action * self.n_states + rows.state
        after = np.where(rows.terminated, self.n_states, rows.after)
        size = self.counts.size
        self.counts += np.bincount(cell * (self.n_states + 1) + after, minlength=size).reshape(
            self.counts.shape
        )
        self._sums += np.bincount(cell, rows.reward, len(self._sums))
        self._squares += np.bincount(cell, rows.reward**2, len(self._sums))
        self._paid += int(np.count_nonzero(rows.reward))

    def mean(self) -> DecisionProcess:
        """Return the process of posterior means."""
        weights = self.counts + self.prior
        return self._process(weights / weights.sum(axis=1, keepdims=True), self._rewards().mean)

    def draw(self, seed: Seed = None) -> DecisionProcess:
        """Return a process drawn from the posterior."""
        rng = generator(seed)
        # gamma numbers with tiny shapes vanish: their logarithms do not (Marsaglia and Tsang's boost)
        shapes = self.counts + self.prior
        logs = np.log(rng.standard_gamma(shapes + 1.0)) + np.log(rng.random(shapes.shape)) / shapes
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        law = self._rewards()
        precision = rng.standard_gamma(law.shape) / law.rate
        rewards = law.mean + rng.standard_normal(len(law.mean)) / np.sqrt(law.weight * precision)
        return self._process(weights / weights.sum(axis=1, keepdims=True), rewards)

    def _rewards(self) -> "_RewardLaw":
        """Return normal-gamma laws of mean rewards; the prior is centred at the mean of all rewards."""
        n = self.counts.sum(axis=1)
        centre = self._sums.sum() / max(n.sum(), 1.0)
        # the root mean square of rewards that are not 0: one reward in a thousand steps has the size that it has
        unit = self.reward_size or (np.sqrt(self._squares.sum() / self._paid) if self._paid else 1.0)
        count = n + PRIOR_REWARDS
        mean = (self._sums + PRIOR_REWARDS * centre) / count
        own = np.maximum(0.0, self._squares - self._sums**2 / np.maximum(n, 1.0))
        away = PRIOR_REWARDS * n / count * (self._sums / np.maximum(n, 1.0) - centre) ** 2
        return _RewardLaw(mean, count, 1.0 + 0.5 * n, 0.5 * ((NOISE * unit) ** 2 + own + away))

    def _process(self, rows: Array, rewards: Array) -> DecisionProcess:
        n, k = self.n_states, self.n_actions
        full = np.zeros((k, n + 1, n + 1))
        full[:, :n] = rows.reshape(k, n, n + 1)
        full[:, n, n] = 1.0
        worth = np.zeros((n + 1, k))
        worth[:n] = rewards.reshape(k, n).T
        ends = np.arange(n + 1) == n
        return DecisionProcess(sparse.csr_array(full.reshape(-1, n + 1)), worth, terminal=ends)


class _RewardLaw(NamedTuple):
    """Normal-gamma laws: mean and how many observations it stands for, shape and rate of the precision."""

    mean: Array
    weight: Array
    shape: Array
    rate: Array


@dataclass(frozen=True, kw_only=True)
class PosteriorSampling:
    """Plans for processes drawn from the posterior ("posterior-sampling").

    Parameters
    ----------
    agents, stretch
        Agents side by side, which share what they learn, and steps of all of them together between draws.
    discount
        What is left of a reward one step later.
    prior, reward_size
        How many times each move counts as seen before, by default one over the number of states; and how large a reward may
        be that was never seen, by default as large as those that were.
    tolerance
        How good plans for draws are, relative to their values.

    Examples
    --------
    >>> PosteriorSampling(discount=0.9).stretch
    50
    """

    agents: Count = 1
    stretch: Count = 50
    discount: Annotated[float, Share] = 0.99
    prior: PositiveOrNone = None
    reward_size: PositiveOrNone = None
    tolerance: Positive = 1e-4
    name: ClassVar[str] = "posterior-sampling"

    def __post_init__(self) -> None:
        check_options(self)


class TableActor(NamedTuple):
    """What acts by probabilities of actions in each state; inputs are indicators of states."""

    policy: Array

    def explore(self, inputs: Array, rng: np.random.Generator, share: float) -> Any:
        """Return actions drawn from the policy."""
        chances = inputs @ self.policy
        return np.argmax(np.cumsum(chances, axis=1) > rng.random((len(chances), 1)), axis=1)

    def best(self, inputs: Array) -> Any:
        """Return the likeliest actions."""
        return np.argmax(inputs @ self.policy, axis=1)


@dataclass(frozen=True)
class PlanFollower:
    """What does as a plan says: an action for each state."""

    chosen: Ints

    def __call__(self, states: Any, rng: np.random.Generator) -> Any:
        """Return the actions."""
        return self.chosen[states]


class ModelOutcome(NamedTuple):
    """What was learned: the posterior, the plan for its mean, how it went, and why it ended."""

    posterior: ProcessPosterior
    plan: Plan
    history: TrialHistory
    reason: str
    steps: int


def posterior_sampling(
    worlds: TrialWorlds, steps: int, *, settings: PosteriorSampling | None = None, seed: Seed = None,
    target: float | None = None, time_limit: float | None = None, progress: bool | None = None,
) -> ModelOutcome:  # fmt: skip
    """Learn a process by following plans for processes drawn from the posterior.

    Parameters
    ----------
    worlds
        Where the agents are; their states and actions are counted.
    steps
        Steps of all agents together.
    settings, seed, target, time_limit, progress
        As in `mk.control.learn`.
    """
    own = PosteriorSampling() if settings is None else settings
    spaces = worlds.spaces
    if spaces.states is None or spaces.actions is None:
        raise UnsupportedModel(
            "posterior sampling counts states and actions; method='auto' learns from numbers"
        )
    rng = generator(seed)
    posterior = ProcessPosterior(spaces.states, spaces.actions, own.prior, own.reward_size)
    runner = TrialRunner(worlds, rng)
    history = TrialHistory()
    stretch = max(1, own.stretch // worlds.n)
    values: Array | None = None
    reason = "steps"
    with Clock(time_limit, progress, total=steps, name=own.name) as clock:
        while runner.steps < steps and not clock.over():
            plan = value_iteration(
                posterior.draw(rng), own.discount, tolerance=own.tolerance, start=values, progress=False
            )
            values = plan.v
            found = runner.collect(PlanFollower(np.argmax(plan.policy, axis=1)), stretch)
            posterior.add(found)
            clock.advance(len(found))
            recent = runner.returns[-RECENT:]
            history.steps.append(runner.steps)
            history.returns.append(float(np.mean(recent)) if recent else float("nan"))
            if target is not None and len(recent) == RECENT and history.returns[-1] >= target:
                reason = "settled"
                break
        reason = clock.reason or reason
    history.episode_ends, history.episode_returns = runner.ends, runner.returns
    return ModelOutcome(
        posterior,
        value_iteration(posterior.mean(), own.discount, progress=False),
        history,
        reason,
        runner.steps,
    )
