"""Soft actor-critic: actions of numbers, learned from a memory with two critics and a temperature that tunes itself.

The policy is a normal law squashed by tanh into the range of actions. Both critics are moved towards r + discount (min of
their slow copies - temperature log pi); the policy towards what the smaller of them likes, plus entropy; the temperature
so that the entropy is what is asked for, by default minus the count of numbers. All three move in one gradient.

References: Haarnoja, Zhou, Abbeel and Levine (2018), and Haarnoja et al. (2018) for the temperature; Fujimoto, van Hoof and
Meger (2018) for twin critics. Cost: each move about ten passes through the networks for a batch.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.learning.control.acting import forward_pass, mapped, network
from markovia.learning.control.actor_critic import Share
from markovia.learning.control.deep_q import arrays_of, followed, recalled, with_arrays
from markovia.learning.control.policy_laws import middle_and_half
from markovia.learning.control.trajectories import Transitions
from markovia.learning.control.trial_loop import Beginning, TrialStream, this_move
from markovia.learning.control.worlds import WorldSpaces
from markovia.optimise.players import Player
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, FromZero, NumberRange, Positive, check_options
from markovia.runtime.libraries import jax, jnp

LOWEST, HIGHEST = -5.0, 2.0
"""The range of log scales before squashing."""


@dataclass(frozen=True, kw_only=True)
class SoftActorCritic:
    """Twin critics, a squashed normal policy and a temperature ("soft-actor-critic").

    Parameters
    ----------
    agents, stretch, warm_up
        Agents side by side, steps of all of them together between updates, and steps of random actions at the start.
    moves, batch
        Moves after each stretch, and the transitions of each.
    memory
        Transitions that are kept.
    discount
        What is left of a reward one step later.
    learning_rate
        The size of moves.
    follow
        How much of the critics their slow copies take on at each move.
    entropy
        The entropy that the temperature aims at, in halves of the actions' range; None for minus the count of numbers.
    hidden, policy, critic
        The width of the default networks, or recipes, modules or `mk.Parameter` in their place: the policy returns a
        location and a log scale for each number, a critic takes inputs and an action and returns one number.

    Examples
    --------
    >>> SoftActorCritic().moves
    64
    """

    agents: Count = 4
    stretch: Count = 64
    warm_up: FromZero = 1000
    moves: Count = 64
    batch: Count = 128
    memory: Count = 1_000_000
    discount: Annotated[float, Share] = 0.99
    learning_rate: Positive = 1e-3
    follow: Annotated[float, NumberRange(0.0, 1.0, open="low", said="a number above 0, up to 1")] = 0.01
    entropy: Annotated[float | None, NumberRange(said="a number", none=True)] = None
    hidden: Count = 64
    policy: Any = None
    critic: Any = None
    name: ClassVar[str] = "soft-actor-critic"

    def __post_init__(self) -> None:
        check_options(self)

    def begin(self, spaces: WorldSpaces, epochs: int, seed: int) -> Beginning:
        """Return policy, critics and temperature, and the player that moves all of them."""
        k = spaces.numbers
        if not k:
            raise UnsupportedModel(
                "soft actor-critic is for actions that are numbers, and these are counted; try method='deep-q'"
            )
        inputs = spaces.features
        critics = [network(self.critic, inputs + k, 1, seed + 1 + i, hidden=self.hidden) for i in range(2)]
        parameters = {
            "policy": network(self.policy, inputs, 2 * k, seed, hidden=self.hidden, last=0.01),
            "first": critics[0],
            "second": critics[1],
            "log_temperature": np.zeros((), np.float32),
        }
        middle, half = middle_and_half(spaces)
        loss = SoftActorCriticLoss(
            middle, half, self.discount, self.follow, float(-k if self.entropy is None else self.entropy)
        )
        player = Player(loss, tuple(parameters), repeats=self.moves)
        memory = {"move": np.int32(0), "slow": [arrays_of(c) for c in critics]}
        training = Training(learning_rate=self.learning_rate)
        return Beginning(parameters, memory, [player], training.optimiser(None))

    def actor(self, parameters: dict[str, Any], trial: TrialStream) -> "SquashedActor":
        """Return what acts."""
        return SquashedActor(forward_pass(parameters["policy"]), *middle_and_half(trial.spaces))

    def batches(self, trial: TrialStream, fresh: Transitions) -> dict[str, Any]:
        """Return transitions drawn from the memory."""
        rows = recalled(trial, fresh, self.memory, (self.moves, self.batch))
        return {**rows, "action": rows["action"].astype(np.float32)}


class SquashedActor(NamedTuple):
    """What acts by a normal law squashed into the range of actions."""

    policy: Any
    middle: Array
    half: Array

    def explore(self, inputs: Array, rng: np.random.Generator, share: float) -> Any:
        """Return actions drawn from the law."""
        loc, log_scale = np.split(self.policy(inputs), 2, axis=1)
        noise = rng.standard_normal(loc.shape)
        return self.middle + self.half * np.tanh(loc + np.exp(np.clip(log_scale, LOWEST, HIGHEST)) * noise)

    def best(self, inputs: Array) -> Any:
        """Return the middle of the law, squashed."""
        return self.middle + self.half * np.tanh(np.split(self.policy(inputs), 2, axis=1)[0])


@dataclass(frozen=True)
class SoftActorCriticLoss:
    """The loss of a batch: of critics, policy and temperature; each part moves its own parameters only."""

    middle: Array
    half: Array
    discount: float
    follow: float
    entropy: float

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        """Return the sum of the three losses, and the memory with slow copies that followed."""
        rows, memory = this_move(batch.rows, memory)
        ahead, now = jax.random.split(key)
        temperature = jnp.exp(jax.lax.stop_gradient(parameters["log_temperature"]))
        critics = [parameters["first"], parameters["second"]]
        slow = [with_arrays(c, s) for c, s in zip(critics, memory["slow"], strict=True)]

        after, log_after = squashed(parameters["policy"], rows["after"], ahead)
        worth = jnp.minimum(*(said(c, rows["after"], after) for c in slow)) - temperature * log_after
        target = jax.lax.stop_gradient(rows["reward"] + self.discount * rows["going"] * worth)
        action = (rows["action"] - self.middle.astype(np.float32)) / self.half.astype(np.float32)
        of_critics = sum(jnp.mean((said(c, rows["input"], action) - target) ** 2) for c in critics)

        fixed = [with_arrays(c, jax.lax.stop_gradient(arrays_of(c))) for c in critics]
        chosen, log_chosen = squashed(parameters["policy"], rows["input"], now)
        liked = jnp.minimum(*(said(c, rows["input"], chosen) for c in fixed))
        of_policy = jnp.mean(temperature * log_chosen - liked)

        missing = jax.lax.stop_gradient(jnp.mean(log_chosen)) + self.entropy
        of_temperature = -parameters["log_temperature"] * missing
        slow_arrays = [followed(s, c, self.follow) for s, c in zip(memory["slow"], critics, strict=True)]
        return 0.5 * of_critics + of_policy + of_temperature, {**memory, "slow": slow_arrays}


def said(critic: Any, inputs: Any, actions: Any) -> Any:
    """Return what a critic says of inputs with actions."""
    return mapped(critic, jnp.concatenate([inputs, actions], axis=1))[:, 0]


def squashed(policy: Any, inputs: Any, key: Any) -> tuple[Any, Any]:
    """Return actions drawn between -1 and 1, and their log densities."""
    loc, log_scale = jnp.split(mapped(policy, inputs), 2, axis=1)
    log_scale = jnp.clip(log_scale, LOWEST, HIGHEST)
    noise = jax.random.normal(key, loc.shape)
    raw = loc + jnp.exp(log_scale) * noise
    # log(1 - tanh(x)^2) without a difference of nearly equal numbers
    turned = 2 * (np.log(2.0) - raw - jax.nn.softplus(-2 * raw))
    log_density = jnp.sum(-0.5 * noise**2 - log_scale - 0.5 * np.log(2 * np.pi) - turned, axis=1)
    return jnp.tanh(raw), log_density
