"""Q-functions as networks, learned from a memory of transitions: the operator at a decision says of which problem.

A network is moved towards r + discount V(s'), V from a copy of it that follows slowly. With the hard operator this is deep
Q-learning; the online network chooses and the copy values, which takes away the bias of a maximum (double). With the soft
operator it is soft Q-learning, with a given policy the evaluation of that policy.

References: Watkins and Dayan (1992); Mnih et al. (2015); van Hasselt, Guez and Silver (2016) for double; Haarnoja et al.
(2017), Schulman, Chen and Abbeel (2017) for soft Q. Cost: each move two forward passes more than a gradient of the network.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.functions.parameter import is_fraction
from markovia.inference.decisions.processes.bellman import DecisionOperator, HardOperator
from markovia.learning.control.acting import forward_pass, mapped, network
from markovia.learning.control.actor_critic import Part, Share
from markovia.learning.control.replay import ReplayMemory
from markovia.learning.control.trajectories import Transitions
from markovia.learning.control.trial_loop import Beginning, TrialStream, this_move
from markovia.learning.control.worlds import WorldSpaces
from markovia.optimise.players import Player
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, FromZero, NumberRange, Positive, check_options
from markovia.runtime.libraries import eqx, jax, jnp

HUBER = 1.0
"""Errors beyond it, in units of a return, count by their size and not their square."""


@dataclass(frozen=True, kw_only=True)
class DeepQ:
    """Q-learning with a memory and a slow copy ("deep-q").

    Parameters
    ----------
    operator
        `HardOperator()`, `SoftOperator(temperature)` or `EvaluatedOperator(policy)`: what is done at a decision. The
        temperature is in units of reward, a policy has probabilities of actions, the same in all states.
    agents, stretch, warm_up
        Agents side by side, steps of all of them together between updates, and steps of random actions at the start.
    moves, batch
        Moves after each stretch, and the transitions of each.
    memory
        Transitions that are kept.
    discount
        What is left of a reward one step later.
    learning_rate
        The size of the first moves; it falls along half a cosine.
    follow
        How much of the online network the slow copy takes on at each move.
    double
        Whether the online network chooses what the copy values.
    explore, explored
        The share of random actions at the end, and the share of all steps until which it falls to that from 1.
    hidden, network
        The width of the default network, or a recipe, module or `mk.Parameter` in its place.

    Examples
    --------
    >>> DeepQ(moves=32).double
    True
    """

    operator: DecisionOperator = field(default_factory=HardOperator)
    agents: Count = 4
    stretch: Count = 64
    warm_up: FromZero = 1000
    moves: Count = 64
    batch: Count = 128
    memory: Count = 100_000
    discount: Annotated[float, Share] = 0.99
    learning_rate: Positive = 1e-3
    follow: Annotated[float, NumberRange(0.0, 1.0, open="low", said="a number above 0, up to 1")] = 0.005
    double: bool = True
    explore: Annotated[float, Part] = 0.04
    explored: Annotated[float, Part] = 0.2
    hidden: Count = 64
    network: Any = None
    name: ClassVar[str] = "deep-q"

    def __post_init__(self) -> None:
        check_options(self)

    def begin(self, spaces: WorldSpaces, epochs: int, seed: int) -> Beginning:
        """Return the network, its slow copy, and the player that moves it."""
        if spaces.actions is None:
            raise UnsupportedModel(
                "Q-learning counts actions, and these are numbers; method='soft-actor-critic' learns them"
            )
        module = network(self.network, spaces.features, spaces.actions, seed, hidden=self.hidden)
        player = Player(
            TemporalDifference(self.operator, self.discount, self.follow, self.double),
            ("q",),
            repeats=self.moves,
        )
        training = Training(learning_rate=self.learning_rate, decay=0.05, clip=10.0)
        start = {"move": np.int32(0), "slow": arrays_of(module)}
        return Beginning({"q": module}, start, [player], training.optimiser(epochs * self.moves))

    def actor(self, parameters: dict[str, Any], trial: TrialStream) -> "ValueActor":
        """Return what acts."""
        return ValueActor(
            forward_pass(parameters["q"]),
            self.operator,
            self.explore,
            self.explored,
            self._steps * reward_unit(trial),
        )

    def batches(self, trial: TrialStream, fresh: Transitions) -> dict[str, Any]:
        """Return transitions drawn from the memory."""
        return recalled(trial, fresh, self.memory, (self.moves, self.batch), self._steps)

    @property
    def _steps(self) -> float:
        """How many steps count: the network learns values in units of a return, which is easier than a hundred rewards."""
        return 1.0 / (1.0 - self.discount)


class ValueActor(NamedTuple):
    """What acts by a Q-function: as the operator says, or at random."""

    q: Any
    operator: DecisionOperator
    last: float
    until: float
    unit: float

    def explore(self, inputs: Array, rng: np.random.Generator, share: float) -> Any:
        """Return actions drawn from the operator's policy, some of them at random."""
        chances = self.probabilities(inputs)
        chosen = np.argmax(np.cumsum(chances, axis=1) > rng.random((len(chances), 1)), axis=1)
        random = 1.0 - (1.0 - self.last) * min(1.0, share / self.until if self.until else 1.0)
        return np.where(
            rng.random(len(chances)) < random, rng.integers(chances.shape[1], size=len(chances)), chosen
        )

    def best(self, inputs: Array) -> Any:
        """Return the likeliest actions."""
        return np.argmax(self.probabilities(inputs), axis=1)

    def probabilities(self, inputs: Array) -> Array:
        """Return the operator's policy for each row."""
        found: Array = self.operator.policy(self.q(inputs).astype(np.float64) * self.unit)
        return found


@dataclass(frozen=True)
class TemporalDifference:
    """The loss of a batch: how far Q is from rewards plus the discounted worth of what follows."""

    operator: DecisionOperator
    discount: float
    follow: float
    double: bool

    def __call__(self, parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        """Return the mean Huber loss, and the memory with a slow copy that followed."""
        rows, memory = this_move(batch.rows, memory)
        slow = with_arrays(parameters["q"], memory["slow"])
        unit = rows["unit"]
        ahead = mapped(slow, rows["after"]) * unit
        choosing = (
            jax.lax.stop_gradient(mapped(parameters["q"], rows["after"])) * unit if self.double else ahead
        )
        target = (
            rows["reward"]
            + self.discount * rows["going"] * chosen_worth(self.operator, choosing, ahead) / unit
        )
        q = mapped(parameters["q"], rows["input"])
        error = jnp.take_along_axis(q, rows["action"][:, None], axis=1)[:, 0] - target
        size = jnp.abs(error)
        loss = jnp.mean(jnp.where(size < HUBER, 0.5 * error**2, HUBER * (size - 0.5 * HUBER)))
        return loss, {**memory, "slow": followed(memory["slow"], parameters["q"], self.follow)}


def chosen_worth(operator: DecisionOperator, choosing: Any, worth: Any) -> Any:
    """Return V where one Q chooses and another says what choices are worth; with one Q it is the operator's value.

    What a soft operator takes off for choosing (its divergence or entropy) is the difference between its value and the mean
    of Q under its policy, and comes from the Q that chooses.

    Examples
    --------
    >>> float(chosen_worth(HardOperator(), np.array([1.0, 2.0]), np.array([9.0, 4.0])))
    4.0
    """
    policy = operator.policy(choosing)
    return operator.value(choosing) + (policy * (worth - choosing)).sum(axis=-1)


def recalled(
    trial: TrialStream, fresh: Transitions, room: int, shape: tuple[int, int], steps: float = 1.0
) -> dict[str, Any]:
    """Add transitions to the memory, and return some that are drawn from it: inputs, actions, rewards in their unit.

    The unit is the root mean square of all rewards that were not 0, which sparse rewards do not make small, times `steps`.
    """
    if "replay" not in trial.memory:
        trial.memory["replay"] = ReplayMemory(room)
        fresh = Transitions.joined([*trial.older, fresh])
    memory: ReplayMemory = trial.memory["replay"]
    memory.add(fresh)
    sizes = fresh.reward[fresh.reward != 0.0]
    count, squares = trial.memory.get("sizes", (0, 0.0))
    trial.memory["sizes"] = (count + sizes.size, squares + float((sizes**2).sum()))
    drawn = memory.draw(trial.rng, shape)
    unit = steps * reward_unit(trial)
    return {
        "input": trial.inputs(drawn.state).reshape(*shape, -1),
        "after": trial.inputs(drawn.after).reshape(*shape, -1),
        "action": drawn.action,
        "reward": (drawn.reward / unit).astype(np.float32),
        "going": (~drawn.terminated).astype(np.float32),
        "unit": np.full(shape[0], unit, np.float32),
    }


def reward_unit(trial: TrialStream) -> float:
    """Return what counts as a reward of 1 in what is learned."""
    count, squares = trial.memory.get("sizes", (0, 0.0))
    return float(np.sqrt(squares / count)) if count else 1.0


def arrays_of(module: Any) -> Any:
    """Return the arrays of a module that are trained, as a tree."""
    return eqx.filter(module, is_fraction)


def with_arrays(module: Any, arrays: Any) -> Any:
    """Return a module with other arrays in the place of those that are trained."""
    return eqx.combine(arrays, eqx.filter(module, is_fraction, inverse=True))


def followed(slow: Any, module: Any, share: float) -> Any:
    """Return the arrays of a slow copy that took on a share of a module's."""
    online = jax.lax.stop_gradient(arrays_of(module))
    return jax.tree.map(lambda old, new: old + share * (new - old), slow, online)
