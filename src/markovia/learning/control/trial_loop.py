"""Learning while trying: the world is a stream of batches for the one training loop; each epoch acts with what it learned.

An epoch collects a stretch of steps with the present policy, makes batches of them (or of a memory of older ones), and lets
the players move many times in one compiled call. The end of an epoch hands the new parameters to the agents.

Cost: a method's own; the loop adds one call of compiled code for each stretch of steps.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.inference.result import Course
from markovia.learning.control.acting import InputScale
from markovia.learning.control.trajectories import Transitions, TrialRunner
from markovia.learning.control.worlds import TrialWorlds, WorldSpaces
from markovia.optimise.players import Player
from markovia.optimise.row_batches import Batch
from markovia.optimise.trained_modules import checked_players
from markovia.optimise.training import Training, train
from markovia.runtime.array_types import Array
from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import jax
from markovia.runtime.machine_code import MachineCodeKey
from markovia.runtime.seeds import Seed, generator

RECENT = 100
"""Episodes that the return of a policy in training is averaged over."""


class Beginning(NamedTuple):
    """What a method begins with: parameters by name, what steps hand on, who moves, and an Optax transformation."""

    parameters: dict[str, Any]
    memory: dict[str, Any]
    players: Sequence[Player]
    optimiser: Any


class Actor(Protocol):
    """What acts: functions of rows of inputs, in NumPy."""

    def explore(self, inputs: Array, rng: np.random.Generator, share: float) -> Any:
        """Return actions to learn from; `share` of the learning is done."""

    def best(self, inputs: Array) -> Any:
        """Return the actions that are thought best."""


class TrialMethod(Protocol):
    """A method that learns while trying."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def agents(self) -> int:
        """How many agents there are."""

    @property
    def stretch(self) -> int:
        """Steps of all agents together between updates."""

    @property
    def warm_up(self) -> int:
        """Steps of random actions before the first update."""

    def begin(self, spaces: WorldSpaces, epochs: int, seed: int) -> Beginning:
        """Return what is trained, and how."""

    def actor(self, parameters: dict[str, Any], trial: "TrialStream") -> Any:
        """Return what acts with some parameters."""

    def batches(self, trial: "TrialStream", fresh: Transitions) -> dict[str, Any]:
        """Return what the players see, given what was collected last; axes (move, row, ...)."""


@dataclass
class TrialHistory:
    """How learning went.

    Attributes
    ----------
    steps, returns
        Steps made in the world after each epoch, and the mean return of the last hundred episodes (NaN before the first).
    losses
        The loss after each epoch.
    episode_ends, episode_returns
        After how many steps episodes ended, and their returns.
    """

    steps: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    episode_ends: list[int] = field(default_factory=list)
    episode_returns: list[float] = field(default_factory=list)

    @property
    def course(self) -> Course:
        """The mean returns, as `plotting.plot_convergence` draws them."""
        shown = [(s, r) for s, r in zip(self.steps, self.returns, strict=True) if np.isfinite(r)]
        if not shown:
            raise InvalidArgument(
                "no episode ended while learning, so there is no return to draw; give more steps="
            )
        steps, returns = zip(*shown, strict=True)
        return Course(steps, returns, "mean return", step="step in the world")


class TrialStream:
    """A world as a stream of batches: each epoch acts, and yields one batch of many moves.

    Attributes
    ----------
    actor
        What acts at present.
    inputs
        What makes inputs of observations.
    runner
        The agents in their worlds.
    memory
        What a method keeps from epoch to epoch.
    older
        What was collected at random before the first epoch.
    """

    digest = "trial"

    def __init__(
        self, method: TrialMethod, worlds: TrialWorlds, rng: np.random.Generator, steps: int
    ) -> None:
        self.method, self.rng, self.total = method, rng, steps
        self.runner = TrialRunner(worlds, rng)
        self.spaces = worlds.spaces
        self.inputs = InputScale(worlds.spaces)
        self.stretch = max(1, method.stretch // worlds.n)
        self.warm_up = -(-min(method.warm_up, steps) // worlds.n)
        left = steps - self.warm_up * worlds.n
        self.epochs = max(1, -(-left // (self.stretch * worlds.n)))
        self.memory: dict[str, Any] = {}
        self.older: list[Transitions] = []
        self.actor: Any = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Act for a stretch, and return what is learned from."""
        if not self.runner.steps and self.warm_up:
            first = self.runner.collect(self.runner.random_actions, self.warm_up)
            self.inputs.add(first.state)
            self.older = [first]
        fresh = self.runner.collect(self._explore, self.stretch)
        yield Batch(self.method.batches(self, fresh), np.ones(1, np.float32))
        self.inputs.add(fresh.state)

    def _explore(self, states: Any, rng: np.random.Generator) -> Any:
        return self.actor.explore(self.inputs(states), rng, min(1.0, self.runner.steps / self.total))


class TrialOutcome(NamedTuple):
    """What learning led to: what acts and how it reads observations, how it went, and why it ended."""

    actor: Any
    inputs: InputScale
    spaces: WorldSpaces
    history: TrialHistory
    parameters: dict[str, Any]
    reason: str
    steps: int
    seconds: float
    compile_seconds: float


def learn_by_trial(
    method: TrialMethod, worlds: TrialWorlds, steps: int, *, seed: Seed = None, target: float | None = None,
    time_limit: float | None = None, progress: bool | None = None,
) -> TrialOutcome:  # fmt: skip
    """Let agents learn by a method for some steps.

    Parameters
    ----------
    method
        What learns.
    worlds
        Where the agents are.
    steps
        Steps in the world, of all agents together.
    seed
        What random numbers are made from.
    target
        A mean return of the last hundred episodes at which learning ends.
    time_limit, progress
        As in `Training`.
    """
    rng = generator(seed)
    own = int(rng.integers(2**31))
    trial = TrialStream(method, worlds, rng, steps)
    start = method.begin(trial.spaces, trial.epochs, own)
    players, arrays, whole = checked_players(list(start.players), start.parameters)
    trial.actor = method.actor(start.parameters, trial)
    history = TrialHistory()

    def hand_over(epoch: int, parameters: dict[str, Any], curve: tuple[float, ...]) -> bool:
        trial.actor = method.actor(whole(jax.tree.map(np.asarray, parameters)), trial)
        recent = trial.runner.returns[-RECENT:]
        mean = float(np.mean(recent)) if recent else float("nan")
        history.steps.append(trial.runner.steps)
        history.returns.append(mean)
        history.losses.append(curve[-1])
        return target is not None and len(recent) == RECENT and mean >= target

    training = Training(epochs=trial.epochs, seed=own, time_limit=time_limit, progress=progress)
    key = hashlib.sha256(described((players, start.optimiser))).hexdigest()
    trained = train(
        players, arrays, trial, training, optimiser=start.optimiser, memory=start.memory, stop=hand_over,
        code=MachineCodeKey(key), name=method.name,
    )  # fmt: skip
    if trained.failed:
        warn_user(
            f"{trained.reason}; the policy before it is kept; try a smaller learning_rate=",
            ConvergenceWarning,
        )
    history.episode_ends, history.episode_returns = trial.runner.ends, trial.runner.returns
    learned = whole(trained.parameters)
    return TrialOutcome(
        method.actor(learned, trial), trial.inputs, trial.spaces, history, learned, trained.reason,
        trial.runner.steps, trained.seconds, trained.compile_seconds,
    )  # fmt: skip


def this_move(rows: Any, memory: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the rows of the move that is made now, and the memory with the number of the next."""
    moves = jax.tree.leaves(rows)[0].shape[0]
    return jax.tree.map(lambda x: x[memory["move"] % moves], rows), {**memory, "move": memory["move"] + 1}
