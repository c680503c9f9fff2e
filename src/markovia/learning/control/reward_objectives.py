"""What rewards are good for: objectives of demonstrations, and their gradients by the rewards.

With steps to go both models are concave duals (`inverse.py`): the gradient is observed minus expected visits, one pass
backward and one forward. Without a last step it is the likelihood of the actions, and one linear solve carries the
gradient on.
"""

from dataclasses import replace

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.bellman import SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess
from markovia.inference.decisions.processes.value_iteration import value_iteration
from markovia.learning.control.demonstrations import Demonstrations
from markovia.learning.control.soft_counts import SoftPass, expected_features, expected_visits, soft_pass
from markovia.runtime.array_types import Array, Ints

ROUNDING = 1e-14
"""To what share of the largest values endless ones are found, or as far as rounding allows."""


class RewardObjective:
    """What rewards are good for: minus the mean objective of a trajectory, and its gradient by the rewards (S, A)."""

    convex = True
    observed: Array
    """How often each action was taken in each state, (S, A)."""

    def __init__(
        self, process: DecisionProcess, shown: Demonstrations, temperature: float, model: str
    ) -> None:
        self.process, self.shown, self.temperature, self.model = process, shown, temperature, model

    def loss(self, rewards: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        raise NotImplementedError

    def policy(self, rewards: Array) -> Array:
        """Return the soft policy, the first step first."""
        raise NotImplementedError

    def log_likelihood(self, rewards: Array) -> float:
        """Return that of all demonstrations."""
        raise NotImplementedError

    def errors(self, rewards: Array, features: Array, curvature: Array) -> Array:
        """Return standard errors of weights from the curvature of the mean objective (times the temperature)."""
        raise NotImplementedError


class StepsObjective(RewardObjective):
    """With steps to go: mean of w . observed - V(first), both models."""

    def __init__(
        self, process: DecisionProcess, shown: Demonstrations, temperature: float, model: str,
        horizon: int | None, discount: float,
    ) -> None:  # fmt: skip
        super().__init__(process, shown, temperature, model)
        self.discount, self.lucky = discount, model == "trajectory"
        lengths = shown.lengths
        if horizon is not None:
            short = (lengths != horizon) & ~(shown.over & (lengths < horizon))
            if short.any():
                i = int(short.argmax())
                raise InvalidArgument(
                    f"trajectory {i} has {lengths[i]} steps and does not end in a terminal state, with horizon={horizon}; "
                    "leave horizon= out for trajectories that were planned as long as they are"
                )
        self.to_go: Ints = lengths if horizon is None else np.full(len(lengths), horizon)
        self.steps = int(self.to_go.max())
        self.starts = np.zeros((self.steps, process.n_states))
        np.add.at(self.starts, (self.to_go - 1, shown.first), 1.0)
        self.observed = shown.counts(process.rewards.shape, discount)

    def loss(self, rewards: Array) -> tuple[float, Array]:
        """Return the mean of V(first) - observed rewards, and expected minus observed visits."""
        found = self._pass(rewards)
        n = len(self.shown)
        value = float((self.starts * found.values[1:]).sum() - (self.observed * rewards).sum()) / n
        return value, (expected_visits(found, self.starts) - self.observed) / n

    def _pass(self, rewards: Array) -> SoftPass:
        return soft_pass(
            self.process, rewards, self.steps, self.temperature, discount=self.discount, lucky=self.lucky
        )

    def policy(self, rewards: Array) -> Array:
        """Return the policies of the steps of the longest trajectory."""
        return self._pass(rewards).policies[::-1]

    def log_likelihood(self, rewards: Array) -> float:
        """Return that of the actions given the states; of whole trajectories for "trajectory"."""
        if self.lucky:
            return -len(self.shown) * self.loss(rewards)[0] / self.temperature
        shown, policies = self.shown, self.policy(rewards)
        now = self.steps - np.repeat(self.to_go, shown.lengths) + shown.ages()
        with np.errstate(divide="ignore"):
            return float(np.log(policies[now, shown.states, shown.actions]).sum())

    def errors(self, rewards: Array, features: Array, curvature: Array) -> Array:
        """Return the sandwich of curvature and spread of observed features, right also where moves are random."""
        found = self._pass(rewards)
        shown = self.shown
        if len(shown) <= features.shape[-1]:
            return np.full(features.shape[-1], np.nan)
        weights = self.discount ** shown.ages().astype(np.float64)
        rows = features[shown.states, shown.actions] * weights[:, None]
        sums = np.add.reduceat(rows, shown.offsets[:-1], axis=0)
        left = sums - expected_features(found, features)[self.to_go, shown.first]
        inner = left.T @ left / len(shown) ** 2
        inverted = np.linalg.inv(curvature)
        return np.asarray(np.sqrt(np.diag(inverted @ inner @ inverted)))


class StationaryObjective(RewardObjective):
    """With a discount and no last step: the log likelihood of actions, causal only."""

    convex = False

    def __init__(
        self, process: DecisionProcess, shown: Demonstrations, temperature: float, discount: float
    ) -> None:
        super().__init__(process, shown, temperature, "causal")
        self.discount = discount
        self.observed = shown.counts(process.rewards.shape)
        self.operator = SoftOperator(temperature, entropy=True)
        self._start: Array | None = None

    def loss(self, rewards: Array) -> tuple[float, Array]:
        """Return minus the mean log likelihood times the temperature.

        dQ = dr + gamma P dV and dV = pi . dQ; the counts beyond what the policy expects flow on to next states.
        """
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import spsolve

        process, n = self.process, len(self.shown)
        q = self._q(rewards)
        v, policy = np.asarray(self.operator.value(q, process.allowed)), self._policy_of(q)
        value = float((np.where(self.observed > 0, self.observed * (v[:, None] - q), 0.0)).sum()) / n
        excess = self.observed - self.observed.sum(axis=1, keepdims=True) * policy
        arrived = self.discount * (process.transitions.T @ excess.T.reshape(-1))
        if process.terminal is not None:
            arrived = np.where(process.terminal, 0.0, arrived)
        chain, _ = process.under(policy)
        flow = np.atleast_1d(
            spsolve((eye_array(process.n_states) - self.discount * chain).T.tocsc(), arrived)
        )
        return value, -(excess + flow[:, None] * policy) / n

    def policy(self, rewards: Array) -> Array:
        """Return the stationary soft policy."""
        return self._policy_of(self._q(rewards))

    def _q(self, rewards: Array) -> Array:
        scale = self.temperature + float(np.abs(rewards).max())
        plan = value_iteration(
            replace(self.process, rewards=rewards), self.discount, operator=self.operator, start=self._start,
            tolerance=ROUNDING * scale / (1.0 - self.discount), progress=False,
        )  # fmt: skip
        self._start = plan.v
        return plan.q

    def _policy_of(self, q: Array) -> Array:
        policy = np.array(self.operator.policy(q, self.process.allowed))
        if self.process.terminal is not None:
            policy[self.process.terminal] = 0.0
        return policy

    def log_likelihood(self, rewards: Array) -> float:
        """Return that of the actions given the states."""
        return -len(self.shown) * self.loss(rewards)[0] / self.temperature

    def errors(self, rewards: Array, features: Array, curvature: Array) -> Array:
        """Return those of maximum likelihood."""
        return np.sqrt(np.diag(np.linalg.inv(curvature)) * self.temperature / len(self.shown))


def reward_objective(
    process: DecisionProcess,
    shown: Demonstrations,
    model: str,
    horizon: int | None,
    discount: float | None,
    temperature: float,
) -> RewardObjective:
    """Return the objective of demonstrations with steps to go, or of endless ones."""
    if discount is not None and horizon is None:
        return StationaryObjective(process, shown, temperature, discount)
    return StepsObjective(process, shown, temperature, model, horizon, 1.0 if discount is None else discount)
