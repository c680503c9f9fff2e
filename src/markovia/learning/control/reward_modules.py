"""Rewards that are a module of features, learned from demonstrations through soft value iteration.

The objectives are those of `reward_objectives.py`, in JAX: a scan backs soft values up, and its derivative is taken
through all steps. Without a last step the scan has so many steps that what is left counts for nothing. A batch is of
trajectories.

Cost of a step: horizon times nonzeros of the transitions, twice; their values are kept for the way back.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.functions.parameter import Parameter
from markovia.inference.decisions.processes.bellman import SoftOperator
from markovia.learning.control.demonstrations import Demonstrations, RewardFeatures
from markovia.learning.control.inverse import InverseReward
from markovia.learning.control.reward_objectives import RewardObjective, StationaryObjective, StepsObjective
from markovia.learning.neural.parameter_fit import built
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

LEFT = 1e-9
"""The weight of what lies beyond the last backup of an endless process."""
TRAINING = Training(epochs=500, learning_rate=0.02, decay=0.05, precision="float64", seed=0)
"""How a module is trained where nothing else is said."""


def trained_reward(
    objective: RewardObjective, features: RewardFeatures, reward: Any, training: Training | None
) -> InverseReward:
    """Return rewards of a module that is trained from where it is.

    Parameters
    ----------
    objective
        Of the demonstrations.
    features
        What the module sees of each state and action.
    reward
        A module, a recipe, or a `Parameter` with one: from a vector of features to a number.
    training
        How to train.
    """
    settings = TRAINING if training is None else training
    if not isinstance(settings, Training):
        raise InvalidArgument(f"training= is an mk.Training, not {training!r:.60}")
    parameter = reward if isinstance(reward, Parameter) else Parameter(reward)
    if not parameter.is_module:
        raise InvalidArgument(
            "reward= is a module from features to one number; plain weights are found without it"
        )
    module = built({"reward": parameter}, settings.seed, go_on=True)["reward"].value
    loss = _Loss.of(objective, features.values)
    with x64():
        rows = _rows(objective.shown, objective)
    done = settings.run(loss, module, rows)
    with x64():
        table = np.asarray(loss.rewards(done.parameters), dtype=np.float64)
    return InverseReward(
        None, None, table, objective.policy(table), objective.log_likelihood(table), None, None, None,
        not done.failed and done.reason in ("patience", "settled"), done.reason, done.curve, features.names,
        objective.process, objective.model, done.parameters,
    )  # fmt: skip


@dataclass(frozen=True)
class _Loss:
    """The mean loss of a batch of trajectories, for the training loop; arrays are those of the process."""

    features: Array
    entries: tuple[Any, Any, Array]
    allowed: Any
    terminal: Flags
    temperature: float
    discount: float
    steps: int
    lucky: bool
    endless: bool

    @classmethod
    def of(cls, objective: RewardObjective, features: Array) -> "_Loss":
        process = objective.process
        coo = process.transitions.tocoo()
        endless = isinstance(objective, StationaryObjective)
        if isinstance(objective, StationaryObjective):
            discount, lucky = objective.discount, False
            steps = max(1, ceil(log(LEFT) / log(discount))) if discount > 0 else 1
        else:
            assert isinstance(objective, StepsObjective)
            discount, lucky, steps = objective.discount, objective.lucky, objective.steps
        ends: Flags = np.zeros(process.n_states, dtype=bool) if process.terminal is None else process.terminal
        return cls(
            features, (coo.coords[0], coo.coords[1], coo.data), process.allowed, ends, objective.temperature, discount,
            steps, lucky, endless,
        )  # fmt: skip

    def rewards(self, module: Any) -> Any:
        """Return what the module says of each state and action."""
        n, k, width = self.features.shape
        found = jax.vmap(module)(jnp.asarray(self.features).reshape(n * k, width))
        if found.size != n * k:
            raise InvalidArgument(f"the reward's module returns one number, not the shape {found.shape[1:]}")
        return found.reshape(n, k)

    def __call__(self, module: Any, memory: Any, key: Any, batch: Any) -> Any:
        rewards, rows = self.rewards(module), batch.rows
        operator = SoftOperator(self.temperature, entropy=True)

        def back_up(values: Any, _: Any) -> Any:
            q = rewards + self._ahead(values)
            after = jnp.where(jnp.asarray(self.terminal), 0.0, operator.value(q, self.allowed))
            return after, after

        first = jnp.zeros(self.terminal.shape, rewards.dtype)
        last, values = jax.lax.scan(back_up, first, None, self.steps)
        s, a, held = rows["state"], rows["action"], rows["held"]
        if self.endless:
            q = rewards + self._ahead(last)
            each = jnp.sum(held * (operator.value(q, self.allowed)[s] - q[s, a]), axis=1)
        else:
            each = values[rows["to_go"] - 1, rows["first"]] - jnp.sum(held * rewards[s, a], axis=1)
        return jnp.sum(batch.weight * each) / jnp.sum(batch.weight), memory

    def _ahead(self, values: Any) -> Any:
        """Return what follows each action, (S, A)."""
        n, k = self.features.shape[:2]
        row, column, chance = self.entries
        if not self.lucky:
            found = self.discount * jax.ops.segment_sum(chance * values[column], row, n * k)
            return found.reshape(k, n).T
        scaled = values[column] / self.temperature
        top = jax.lax.stop_gradient(jax.ops.segment_max(scaled, row, n * k))
        top = jnp.where(jnp.isfinite(top), top, 0.0)  # of rows without entries
        sums = jax.ops.segment_sum(chance * jnp.exp(scaled - top[row]), row, n * k)
        found = jnp.where(sums > 0, self.temperature * (top + jnp.log(jnp.where(sums > 0, sums, 1.0))), 0.0)
        return found.reshape(k, n).T


def _rows(shown: Demonstrations, objective: RewardObjective) -> dict[str, Any]:
    """Return trajectories as rows of one length; `held` is the weight of each step, 0 beyond the end."""
    n, most = len(shown), int(shown.lengths.max())
    discount = objective.discount if isinstance(objective, StepsObjective) else 1.0
    row = np.repeat(np.arange(n), shown.lengths)
    found = {name: np.zeros((n, most), dtype=np.int32) for name in ("state", "action")}
    found["state"][row, shown.ages()], found["action"][row, shown.ages()] = shown.states, shown.actions
    held = np.zeros((n, most))
    held[row, shown.ages()] = discount ** shown.ages().astype(np.float64)
    to_go = objective.to_go if isinstance(objective, StepsObjective) else shown.lengths
    return {**found, "held": held, "first": shown.first.astype(np.int32), "to_go": to_go.astype(np.int32)}
