"""An actor that follows the advantages a critic sees, in steps that are clipped: proximal policy optimisation.

Agents collect a stretch of steps; generalised advantages say how much better each action was than what the critic expected;
the policy is moved many times over small batches, and a ratio of probabilities gains nothing beyond 1 +- clip, which keeps
the new policy near the one that collected. Rewards are measured in units of the returns seen so far, observations in units
of their spread, so that the defaults do not depend on units.

References: Konda and Tsitsiklis (2000); Mnih et al. (2016) for advantages; Schulman et al. (2017) for clipping; Andrychowicz
et al. (2021) for what matters. Cost: `passes` looks at each step, each a forward and a backward pass of both networks.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from markovia.learning.control.acting import forward_pass, mapped, network
from markovia.learning.control.policy_laws import ActionLaw, law_of
from markovia.learning.control.returns import discounted_returns, generalised_advantages
from markovia.learning.control.trajectories import RunningScale, Transitions
from markovia.learning.control.trial_loop import Beginning, TrialStream, this_move
from markovia.learning.control.worlds import WorldSpaces
from markovia.optimise.players import Player
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NOT_NEGATIVE, Count, NumberRange, Positive, check_options
from markovia.runtime.libraries import jnp

Share = NumberRange(0.0, 1.0, open="high", said="a number from 0 up to but not 1")
Part = NumberRange(0.0, 1.0, said="a number from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class ActorCritic:
    """Advantages and clipped steps ("actor-critic").

    Parameters
    ----------
    agents, stretch
        Agents side by side, and steps of all of them together between updates.
    passes, batch
        How often each step is looked at, and the steps of a batch.
    discount, trace
        What is left of a reward one step later, and of temporal differences ahead (lambda).
    learning_rate
        The size of the first moves; it falls along half a cosine.
    clip
        How far the ratio of new to old probabilities counts.
    entropy
        The weight of the policy's entropy, in units of advantages.
    hidden, policy, critic
        The width of the default networks, or recipes, modules or `mk.Parameter` in their place.

    Examples
    --------
    >>> ActorCritic(discount=0.95).discount
    0.95
    """

    agents: Count = 8
    stretch: Count = 512
    passes: Count = 10
    batch: Count = 128
    discount: Annotated[float, Share] = 0.99
    trace: Annotated[float, Part] = 0.95
    learning_rate: Positive = 1e-3
    clip: Positive = 0.2
    entropy: Annotated[float, NOT_NEGATIVE] = 0.0
    hidden: Count = 64
    policy: Any = None
    critic: Any = None
    name: ClassVar[str] = "actor-critic"
    warm_up: ClassVar[int] = 256

    def __post_init__(self) -> None:
        check_options(self)

    def begin(self, spaces: WorldSpaces, epochs: int, seed: int) -> Beginning:
        """Return both networks and the player that moves them."""
        law = law_of(spaces)
        parameters = law.begin(self.policy, spaces.features, seed, self.hidden)
        parameters["critic"] = network(
            self.critic, spaces.features, 1, seed + 1, hidden=self.hidden, activation="tanh"
        )
        moves = self.passes * max(1, self.stretch // self.batch)
        training = Training(learning_rate=self.learning_rate, decay=0.01, clip=0.5)
        loss = ClippedLoss(law, self.clip, self.entropy)
        player = Player(loss, tuple(parameters), repeats=moves)
        return Beginning(parameters, {"move": np.int32(0)}, [player], training.optimiser(epochs * moves))

    def actor(self, parameters: dict[str, Any], trial: TrialStream) -> "LawActor":
        """Return what acts."""
        passes = forward_pass(parameters["policy"]), forward_pass(parameters["critic"])
        return LawActor(law_of(trial.spaces), *passes, parameters.get("log_scale"))

    def batches(self, trial: TrialStream, fresh: Transitions) -> dict[str, Any]:
        """Return small batches of the stretch, in a new order for each pass."""
        rows = judged(trial, fresh, self.discount, self.trace)
        n = len(rows["advantage"])
        each = max(1, self.stretch // self.batch)
        size = max(1, n // each)
        order = [trial.rng.permutation(n)[np.arange(each * size) % n] for _ in range(self.passes)]
        at = np.concatenate(order).reshape(self.passes * each, size)
        return {name: column[at] for name, column in rows.items()}


class LawActor(NamedTuple):
    """A policy that is a law of actions, with what its critic says."""

    law: ActionLaw
    policy: Any
    critic: Any
    extra: Any

    def explore(self, inputs: Array, rng: np.random.Generator, share: float) -> Any:
        """Return actions drawn from the law."""
        return self.law.draw(self.policy(inputs), self.extra, rng)

    def best(self, inputs: Array) -> Any:
        """Return the likeliest actions."""
        return self.law.best(self.policy(inputs))

    def log_probs(self, inputs: Array, actions: Any) -> Array:
        """Return log probabilities of an action each."""
        return self.law.log_probs_said(self.policy(inputs), self.extra, actions)


def judged(trial: TrialStream, fresh: Transitions, discount: float, trace: float) -> dict[str, Any]:
    """Return steps behind each other: inputs, actions, how probable these were, advantages, and targets of the critic."""
    shape = fresh.reward.shape
    flat = fresh.flat()
    inputs, after = trial.inputs(flat.state), trial.inputs(flat.after)
    scale = trial.memory.setdefault("returns", RunningScale(1))
    seen = discounted_returns(fresh.reward, fresh.terminated, fresh.truncated, discount=discount)
    scale.add((seen**2).reshape(-1, 1))
    unit = float(np.sqrt(scale.mean[0])) or 1.0
    value, value_after = (
        trial.actor.critic(x)[:, 0].reshape(shape).astype(np.float64) for x in (inputs, after)
    )
    advantage = generalised_advantages(
        fresh.reward / unit,
        value,
        value_after,
        fresh.terminated,
        fresh.truncated,
        discount=discount,
        trace=trace,
    )
    return {
        "input": inputs,
        "action": flat.action,
        "log_prob": trial.actor.log_probs(inputs, flat.action).astype(np.float32),
        "advantage": advantage.ravel().astype(np.float32),
        "target": (advantage + value).ravel().astype(np.float32),
    }


@dataclass(frozen=True)
class ClippedLoss:
    """The loss of a small batch: clipped ratios times advantages, less entropy, plus the critic's squared error."""

    law: ActionLaw
    clip: float
    entropy: float

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        """Return the loss, and the memory for the next move."""
        rows, memory = this_move(batch.rows, memory)
        advantage = rows["advantage"] - jnp.mean(rows["advantage"])
        spread = jnp.std(advantage)
        advantage = advantage / jnp.where(spread > 0.0, spread, 1.0)
        ratio = jnp.exp(self.law.log_probs(parameters, rows["input"], rows["action"]) - rows["log_prob"])
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - self.clip, 1 + self.clip) * advantage)
        loss = -jnp.mean(gain)
        if self.entropy:
            loss -= self.entropy * jnp.mean(self.law.entropy(parameters, rows["input"]))
        error = mapped(parameters["critic"], rows["input"])[:, 0] - rows["target"]
        return loss + 0.5 * jnp.mean(error**2), memory
