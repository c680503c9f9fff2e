"""A policy that was learned by trial: what it does, what it is worth, how it was learned, and its file.

A file holds arrays and names, and nothing that runs.
"""

import io
import json
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from markovia.errors import InvalidArgument, ParseError, UnsupportedModel
from markovia.inference.decisions.processes.bellman import EvaluatedOperator, HardOperator, SoftOperator
from markovia.inference.result import Info
from markovia.learning.control.acting import CompiledPass, ForwardPass, InputScale
from markovia.learning.control.actor_critic import LawActor
from markovia.learning.control.deep_q import ValueActor
from markovia.learning.control.model_based import TableActor
from markovia.learning.control.policy_laws import CountedActions, NormalNumbers
from markovia.learning.control.soft_actor_critic import SquashedActor
from markovia.learning.control.trajectories import TrialRunner
from markovia.learning.control.trial_loop import TrialHistory
from markovia.learning.control.worlds import WorldSpaces, worlds_of
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import LEVEL, check, check_count
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks
from markovia.runtime.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOGETHER = 100
"""Episodes that are evaluated side by side at most."""
KEPT = (
    ForwardPass, LawActor, ValueActor, SquashedActor, TableActor, CountedActions, NormalNumbers, HardOperator, SoftOperator,
    EvaluatedOperator, WorldSpaces, TrialHistory,
)  # fmt: skip
"""What a file may hold."""


class PolicyReturns(NamedTuple):
    """What episodes of a policy were worth.

    Attributes
    ----------
    mean, interval
        The mean return, and an interval for that of endlessly many episodes.
    returns
        The sum of rewards of each episode.
    """

    mean: float
    interval: tuple[float, float]
    returns: Array

    def __str__(self) -> str:
        low, high = self.interval
        return f"mean return {self.mean:.6g} ({low:.6g} to {high:.6g}) of {len(self.returns)} episodes"


@dataclass(frozen=True, eq=False, repr=False)
class LearnedPolicy(InNotebooks):
    """A policy that was learned by trial.

    Attributes
    ----------
    actor
        What acts on inputs.
    inputs
        What makes inputs of observations.
    history
        How learning went.
    info
        Who learned it, why it ended, and how long it took.
    model
        What was learned besides the policy: the networks' modules by name, or the posterior of a process.

    Examples
    --------
    >>> import markovia as mk
    >>> line = mk.MDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[0.0, 1.0], [0, 0]], terminal=[1])
    >>> policy = mk.control.learn(line, "posterior-sampling", steps=200, horizon=5, discount=0.9, seed=0)
    >>> policy.act(0), policy.evaluate(line, episodes=10, horizon=5, seed=0).mean
    (1, 1.0)
    """

    actor: Any
    inputs: InputScale
    history: TrialHistory
    info: Info
    model: Any = None

    def act(self, observation: Any, *, explore: bool = False, seed: Seed = None) -> Any:
        """Return what to do about an observation, as the environment takes it.

        Parameters
        ----------
        observation
            What the environment returned: a state's number, or numbers.
        explore
            Whether the action is drawn from the policy; by default it is the likeliest one.
        seed
            For the draw.
        """
        spaces = self.inputs.spaces
        given = np.asarray(observation)
        if spaces.states is not None:
            if given.shape or not spaces.first_state <= int(given) < spaces.first_state + spaces.states:
                raise InvalidArgument(f"an observation is one of {spaces.states} states, not {observation!r}")
            rows = self.inputs([int(given) - spaces.first_state])
        else:
            if given.size != spaces.features or not np.isfinite(given).all():
                raise InvalidArgument(
                    f"an observation is {spaces.features} finite numbers, not {observation!r}"
                )
            rows = self.inputs(given.reshape(1, -1))
        action = self.actor.explore(rows, generator(seed), 1.0) if explore else self.actor.best(rows)
        return spaces.native(action[0])

    def evaluate(
        self, env: Any, episodes: int = 100, *, explore: bool = False, horizon: int | None = None, level: float = 0.95,
        seed: Seed = None, time_limit: float | None = None, progress: bool | None = None,
    ) -> PolicyReturns:  # fmt: skip
        """Return what episodes of the policy are worth, each agent's first ones, so that short ones do not count more.

        Parameters
        ----------
        env, horizon
            As in `mk.control.learn`.
        episodes
            How many.
        explore
            Whether actions are drawn from the policy.
        level
            How sure the interval is.
        seed
            What random numbers are made from.
        time_limit, progress
            Seconds after which episodes that ended are all there is; and whether to show a bar.
        """
        check_count("episodes", episodes, 1)
        check("level", level, LEVEL)
        check_count("horizon", horizon, 1, none=True)
        rng = generator(seed)
        runner = TrialRunner(worlds_of(env, min(episodes, TOGETHER), horizon), rng)
        if runner.worlds.spaces.features != self.inputs.spaces.features:
            raise InvalidArgument(
                f"this policy sees {self.inputs.spaces.features} numbers (or states), and the environment shows "
                f"{runner.worlds.spaces.features}"
            )
        each = -(-episodes // runner.worlds.n)
        with Clock(time_limit, progress, name="episodes") as clock:
            while min(map(len, runner.own_returns)) < each and not clock.over():
                runner.collect(lambda states, r: self._actions(states, r, explore), 10)
        found = np.array([x for own in runner.own_returns for x in own[:each]])[:episodes]
        if not len(found):
            raise InvalidArgument(
                "no episode ended; give horizon= for a process, or an environment with a time limit"
            )
        return PolicyReturns(float(found.mean()), _mean_interval(found, level), found)

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the mean return of episodes against the steps of learning."""
        return ports.draw("plot-convergence", self.history, ax=ax, title=title)

    def save(self, path: str | Path) -> None:
        """Write it to a file of arrays (.npz), which `LearnedPolicy.load` reads; networks have to be perceptrons."""
        arrays: list[Array] = []
        scale = self.inputs.running
        whole = {
            "markovia": "learned policy 1",
            "actor": _packed(self.actor, arrays),
            "spaces": _packed(self.inputs.spaces, arrays),
            "scale": [_packed(x, arrays) for x in (scale.mean, scale.spread)],
            "history": _packed(self.history, arrays),
            "engine": self.info.engine,
            "note": self.info.note,
        }
        file = io.BytesIO()
        named: dict[str, Any] = {"about": np.array(json.dumps(whole))}
        np.savez_compressed(file, **named | {f"a{i}": a for i, a in enumerate(arrays)})
        write_whole(Path(path), file.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                whole = json.loads(str(file["about"]))
                arrays = [file[f"a{i}"] for i in range(len(file.files) - 1)]
            inputs = InputScale(_unpacked(whole["spaces"], arrays))
            inputs.running.fix(*(_unpacked(x, arrays) for x in whole["scale"]))
            history = _unpacked(whole["history"], arrays)
            return cls(
                _unpacked(whole["actor"], arrays), inputs, history, Info(whole["engine"], note=whole["note"])
            )
        except (KeyError, ValueError, TypeError, IndexError, EOFError) as problem:
            raise ParseError(f"a file that LearnedPolicy.save wrote ({problem})", file=Path(path)) from None

    def _actions(self, states: Any, rng: np.random.Generator, explore: bool) -> Any:
        rows = self.inputs(states)
        return self.actor.explore(rows, rng, 1.0) if explore else self.actor.best(rows)

    def __repr__(self) -> str:
        last = next((r for r in reversed(self.history.returns) if np.isfinite(r)), None)
        steps = f"{self.history.steps[-1]:,} steps" if self.history.steps else "no steps"
        shown = "" if last is None else f", mean return {last:.6g}"
        return f"LearnedPolicy({self.info.engine}, {steps}{shown})"


def _mean_interval(values: Array, level: float) -> tuple[float, float]:
    """Return Student's interval for a mean; without an end where there is one value."""
    if len(values) < 2:
        return (-np.inf, np.inf)
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 0.5 + level / 2) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half


def _packed(value: Any, arrays: list[Array]) -> Any:
    """Return what JSON says of a value: arrays go into the list, objects are the names of their classes and their parts."""
    if isinstance(value, CompiledPass):
        raise UnsupportedModel(
            "only perceptrons of mk.networks are written; save the modules in policy.model yourself"
        )
    if isinstance(value, KEPT):
        names = [f.name for f in fields(value)] if is_dataclass(value) else list(value._fields)
        return {
            "is": type(value).__name__,
            **{n: _packed(getattr(value, n), arrays) for n in names if n[0] != "_"},
        }
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array_namespace__"):
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, list | tuple):
        return [_packed(v, arrays) for v in value]
    return value


def _unpacked(said: Any, arrays: list[Array]) -> Any:
    """Return the value that was packed; lists come back as tuples, but those of a history."""
    if isinstance(said, list):
        return tuple(_unpacked(v, arrays) for v in said)
    if not isinstance(said, dict):
        return said
    if "array" in said:
        return arrays[said["array"]]
    kind = next((k for k in KEPT if k.__name__ == said["is"]), None)
    if kind is None:
        raise ValueError(f"a {said['is']!r} is nothing that a policy is made of")
    parts = {n: _unpacked(v, arrays) for n, v in said.items() if n != "is"}
    if kind is TrialHistory:
        parts = {n: list(v) for n, v in parts.items()}
    return kind(**parts)
