"""The one loop that trains by stochastic gradients: on Optax, for any number of players, in memory or streamed.

References: Robbins and Monro (1951); Kingma and Ba (2015) for Adam, the default; Polyak and Juditsky (1992) for averages.
The random numbers of a step are made from the seed and the number of the step, and so is its batch: where the work is cut
into segments, whether a bar is shown and whether it was killed and went on from its file changes no number. A segment takes
about a quarter of a second; between segments the loop looks at the clock, the bar and the file. Use it for what is noisy or
too large to be seen at once; `minimise.py` is for smooth functions of all data.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.optimise.averaging import Averaging, ExponentialAverage
from markovia.optimise.checkpoint import Checkpoint, digest_of, packed, unpacked
from markovia.optimise.players import (
    Player,
    SegmentOutcome,
    StepPlan,
    TracedSteps,
    TrainingState,
    UntracedSteps,
    begin,
    evaluator,
    is_stream,
    on_device,
)
from markovia.optimise.row_batches import RowBatches, row_count
from markovia.optimise.trained_modules import as_given, checked_players
from markovia.runtime.array_types import Array
from markovia.runtime.checks import (
    Count,
    CountOrNone,
    Kind,
    NumberRange,
    Positive,
    TimeLimit,
    WholeSeed,
    check_options,
)  # fmt: skip
from markovia.runtime.clock import Clock, now, standing_still
from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import jax, optax
from markovia.runtime.machine_code import MachineCodeKey
from markovia.runtime.seeds import random_keys

SECONDS = 0.25
"""How long a segment should take."""
STREAMED = 64
"""Streamed batches on their way to the device at most."""
HELD_OUT_KEY = 2**31 - 1
UNTRACED = {
    "epochs",
    "seed",
    "time_limit",
    "progress",
    "validation",
    "patience",
    "checkpoint",
    "device",
    "batch",
}
"""Settings that compiled code does not depend on, or that its shapes tell."""
UNSAVED = {"epochs", "time_limit", "progress", "checkpoint", "device", "patience"}
"""Settings that a run may change when it goes on."""
Share = NumberRange(0.0, 1.0, open="both", said="a number between 0 and 1", none=True)


@dataclass(frozen=True, kw_only=True)
class Training:
    """How to train: what `fit(training=...)` of models with many weights takes, and `run` for losses of one's own.

    Parameters
    ----------
    epochs
        Passes over the rows.
    batch
        Rows a step; None for all.
    learning_rate, decay
        The size of the first step, and the share of it that is left at the last (along half a cosine).
    clip
        The largest norm of a gradient; None for no limit.
    ema
        The weight of the past in an average of the parameters, such as 0.99, which is then the answer; None for the last.
    validation
        Rows that are only looked at: a share of them, or data of their own. The parameters of the epoch that is best on
        them are the answer.
    patience
        Epochs without a better one after which training stops.
    seed
        What random numbers are made from; the same seed gives the same numbers.
    time_limit, progress
        Seconds after which training stops and keeps what was learned, as Ctrl-C does; whether to show a bar.
    checkpoint
        A file that keeps the state: a run that was killed goes on from there, and ends with the same numbers.
    precision
        "float32", or "float64".
    device
        "cpu" or "gpu"; None for the fastest there is.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> rows = {"x": np.arange(6.0), "y": 3.0 * np.arange(6.0)}
    >>> def loss(slope, memory, key, batch):
    ...     error = (batch.rows["y"] - slope * batch.rows["x"]) ** 2
    ...     return jnp.sum(batch.weight * error) / jnp.sum(batch.weight), memory
    >>> trained = Training(epochs=200, batch=3, learning_rate=0.1, seed=0).run(loss, 0.0, rows)
    >>> round(float(trained.parameters), 2), trained.reason
    (3.0, 'epochs')
    """

    epochs: Count = 100
    batch: CountOrNone = None
    learning_rate: Positive = 1e-3
    decay: Annotated[float, NumberRange(0.0, 1.0, open="low", said="a number above 0, up to 1")] = 1.0
    clip: Annotated[
        float | None, NumberRange(0.0, np.inf, open="both", said="a number, above 0", none=True)
    ] = None
    ema: Annotated[float | None, Share] = None
    validation: Any = None
    patience: CountOrNone = None
    seed: WholeSeed = None
    time_limit: TimeLimit = None
    progress: bool | None = None
    checkpoint: Annotated[
        str | Path | None, Kind((str, os.PathLike), said="the path of a file", none=True)
    ] = None
    precision: Literal["float32", "float64"] = "float32"
    device: Annotated[str | None, Kind((str,), said="'cpu', 'gpu' or another of JAX", none=True)] = None

    def __post_init__(self) -> None:
        check_options(self)
        if self.patience is not None and self.validation is None:
            raise InvalidArgument("patience= needs rows to be judged by; give validation=, such as 0.1")
        if self.checkpoint is not None and self.seed is None:
            raise InvalidArgument("checkpoint= goes on with the same random numbers; give seed=, such as 0")

    def run(
        self,
        loss: Callable[..., Any] | Sequence[Player],
        parameters: Any,
        data: Any,
        *,
        memory: Any = None,
        optimiser: Any = None,
        code: str | None = None,
    ) -> "Trained":
        """Train the parameters of a loss, from where they are.

        Parameters
        ----------
        loss
            `loss(parameters, memory, key, batch) -> (value, memory)`, a JAX function: the mean over `batch.rows` by
            `batch.weight`. Or several players (`markovia.optimise.players.Player`), each with a loss and
            the names of the parameters that it moves.
        parameters
            A tree of arrays, or an Equinox module; of several players a mapping from names to such.
        data
            A tree of arrays with a row each along the first axis, or batches of `markovia.data.batches`.
        memory
            What a step hands to the next: a tree of arrays.
        optimiser
            An Optax transformation; by default Adam with the settings of this object.
        code
            What says what the loss computes, for compiled code to be kept under; by default it is read off its functions.

        Returns
        -------
        what was trained
            Its `parameters`, `memory` and `curve`; with a warning where the loss was no number any more.
        """
        players, start, whole = checked_players(loss, parameters)
        batches, held_out = self._cut(data)
        steps = None if is_stream(batches) else self.epochs * batches.steps
        optimiser = self.optimiser(steps) if optimiser is None else optimiser
        players = tuple(
            p._replace(optimiser=p.optimiser(self, steps)) if callable(p.optimiser) else p for p in players
        )
        settings = [getattr(self, f.name) for f in fields(self) if f.name not in UNTRACED]
        what = players if code is None else code
        key = hashlib.sha256(described((what, optimiser, settings, steps if self.decay < 1 else None)))
        trained = train(
            players, start, batches, self, optimiser=optimiser, memory=memory, held_out=held_out,
            averaging=None if self.ema is None else ExponentialAverage(self.ema), code=MachineCodeKey(key.hexdigest()),
        )  # fmt: skip
        if trained.failed:
            warn_user(
                f"{trained.reason}; the parameters before it are kept; try a smaller learning_rate=, or clip=",
                ConvergenceWarning,
            )
        return trained._replace(parameters=whole(trained.parameters))

    def optimiser(self, steps: int | None, betas: tuple[float, float] = (0.9, 0.999)) -> Any:
        """Return the Optax transformation of these settings, for so many steps in all: Adam, with weights of its past."""
        rate: Any = self.learning_rate
        if self.decay < 1.0:
            if steps is None:
                raise InvalidArgument(
                    "decay= needs to know how many steps there are, which batches of a stream do not say; leave it at 1"
                )
            rate = optax.cosine_decay_schedule(self.learning_rate, steps, self.decay)
        clip = [] if self.clip is None else [optax.clip_by_global_norm(self.clip)]
        return optax.chain(*clip, optax.adam(rate, *betas))

    def _cut(self, data: Any) -> tuple[Any, RowBatches | None]:
        """Return the batches to train on, and those to judge by."""
        share = self.validation if isinstance(self.validation, int | float) else None
        others = None
        if self.validation is not None and share is None:
            others = RowBatches(self.validation, self.batch)
        if isinstance(data, RowBatches) or is_stream(data):
            if share is not None:
                raise InvalidArgument("validation= of batches is data of their own; give rows, not a share")
            return data, others
        seed = int(np.random.default_rng(self.seed).integers(2**32)) if self.seed is None else self.seed
        n = row_count(data)
        rows = np.arange(n)
        if share is not None:
            most = round(share * n) if 0.0 < share < 1.0 else 0
            if not 0 < most < n:
                raise InvalidArgument(
                    f"validation= is a share of the {n} rows that leaves some on both sides, or data, not {share!r}"
                )
            # an order of its own: epochs are numbered from 0
            rows = np.random.default_rng([seed, HELD_OUT_KEY]).permutation(rows)
            others = RowBatches(data, self.batch, None, np.sort(rows[:most]))
            rows = np.sort(rows[most:])
        return RowBatches(data, self.batch, seed, rows), others


class Trained(NamedTuple):
    """What training led to.

    Attributes
    ----------
    parameters
        The answer: of the best epoch where rows were held out, else the average where one was asked for, else the last.
    memory
        What the last step handed on.
    values
        The value of each player at each step.
    curve
        The mean value of the first player in each epoch.
    validation
        The value on the held-out rows after each epoch; empty without such rows.
    steps
        Steps made, those before a file was read included.
    reason
        Why it ended: "epochs" (all made), "patience", "settled", "time limit", "interrupted", or which step has no number.
    failed
        Whether it ended at a step that has no number.
    seconds, compile_seconds
        Time of the steps, and of compiling them, in this process.
    """

    parameters: Any
    memory: Any
    values: Array
    curve: tuple[float, ...]
    validation: tuple[float, ...]
    steps: int
    reason: str
    failed: bool
    seconds: float
    compile_seconds: float

    def __repr__(self) -> str:
        last = f", value {self.curve[-1]:.6g}" if self.curve else ""
        return f"Trained({self.steps:,} steps{last}, ended by {self.reason!r})"


@dataclass
class _Run:
    """How far a run is. What its file keeps comes first."""

    state: TrainingState
    values: list[Array] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: Any = None
    reason: str = ""
    failed: bool = False
    seconds: float = 0.0
    compile_seconds: float = 0.0

    @property
    def step(self) -> int:
        return int(self.state.step)

    def curve(self) -> tuple[float, ...]:
        if not self.ends:
            return ()
        starts = [0, *self.ends[:-1]]
        first = np.concatenate([v[:, 0] for v in self.values])[: self.ends[-1]]
        return tuple((np.add.reduceat(first, starts) / np.diff([0, *self.ends])).tolist())

    def write(self, file: Checkpoint) -> None:
        if file.path is None:
            return
        arrays: dict[str, Any] = packed("state", self.state) | {
            "values": np.concatenate(self.values) if self.values else []
        }
        about = {"ends": self.ends, "validation": self.validation, "best": self.best is not None}
        file.write(arrays | packed("best", self.best), about)

    def read(self, file: Checkpoint) -> None:
        saved = file.read()
        if saved is None:
            return
        self.state = unpacked("state", saved.arrays, self.state)
        self.values = [saved.arrays["values"]] if self.step else []
        self.ends, self.validation = saved.values["ends"], saved.values["validation"]
        if saved.values["best"]:
            self.best = unpacked("best", saved.arrays, self.state.parameters)


def train(
    players: Sequence[Player],
    parameters: dict[str, Any],
    batches: Any,
    training: Training,
    *,
    optimiser: Any,
    code: MachineCodeKey | None = None,
    memory: Any = None,
    averaging: Averaging | None = None,
    held_out: RowBatches | None = None,
    stop: Callable[[int, dict[str, Any], tuple[float, ...]], bool] | None = None,
    lenient: bool = False,
    clock: Clock | None = None,
    name: str = "",
) -> Trained:
    """Let players move their parameters, step by step; what models call.

    Parameters
    ----------
    players, parameters, memory
        As in `Training.run`, parameters by name.
    batches
        `RowBatches`, a stream of batches, or any tree of arrays, which every step then sees as a whole (one step an epoch).
    training
        Settings of the loop; `learning_rate`, `decay` and `clip` are those of `Training.optimiser` alone.
    optimiser
        An Optax transformation, or an `UpdateRule` for untraced players in NumPy; a player's own comes first.
    code
        What the compiled program is kept under: it says what the functions of players and optimiser compute.
    averaging
        How parameters are averaged; None for the last ones.
    held_out
        Rows that the first player's loss is judged by after each epoch.
    stop
        Asked after each epoch with its number, the parameters (averaged) and the curve: whether they are settled.
    lenient
        Whether entries of gradients that are no numbers count as 0; otherwise such a step ends the training.
    clock
        A clock that runs already; its bar counts steps.
    """
    traced = all(player.traced for player in players)
    with _precision(training, traced), _device(training, traced):
        key: Any = random_keys(training.seed, 1)[0] if traced else None
        rules = tuple(optimiser if player.optimiser is None else player.optimiser for player in players)
        plan = StepPlan(tuple(players), rules, averaging, lenient, key)
        code = MachineCodeKey(object()) if code is None else code
        with standing_still():  # Optax's first arrays compile a little
            start, memory = (on_device(parameters), on_device(memory)) if traced else (parameters, memory)
            run = _Run(begin(plan, start, memory, code if traced else None))
        steps: Any = (
            TracedSteps(plan, batches, code) if traced else UntracedSteps(plan, batches, training.seed)
        )
        judge = None
        if held_out is not None:
            other_key = np.asarray([HELD_OUT_KEY, 0], np.uint32) ^ key
            data = steps.data if held_out.data is getattr(batches, "data", None) else on_device(held_out.data)
            judge = evaluator(players[0], start, memory, other_key, held_out, data, code)
        ended = _epoch_end(run, training, averaging is not None, judge, stop)
        file = _file(training, parameters, batches)
        run.read(file)
        run.reason = _patience_over(run, training)
        total = training.epochs * _steps_per_epoch(batches) or None
        own = Clock(training.time_limit, training.progress, total=total, name=name)
        with own if clock is None else nullcontext(clock) as running:
            _run_segments(run, steps, batches, training, file, running, ended)
        run.write(file)
        answer = _answer(run, averaging is not None)
        values = np.concatenate(run.values) if run.values else np.zeros((0, len(players)))
        return Trained(
            as_given(answer, parameters) if traced else answer, run.state.memory, values, run.curve(),
            tuple(run.validation), run.step, run.reason, run.failed, run.seconds, run.compile_seconds,
        )  # fmt: skip


def _run_segments(
    run: _Run, steps: Any, batches: Any, training: Training, file: Checkpoint, clock: Clock,
    ended: Callable[[], str] | None,
) -> None:  # fmt: skip
    """Make segments of steps until there is a reason to end."""
    streamed = is_stream(batches)
    per_epoch = _steps_per_epoch(batches)
    if streamed:
        steps.go_to(len(run.ends), run.step - (run.ends[-1] if run.ends else 0))
    clock.advance(run.step)
    size, first = 1, run.step
    while len(run.ends) < training.epochs and not run.reason:
        # one segment at least, so that there is something to keep
        if clock.over() and run.step > first:
            run.reason = str(clock.reason)
            return
        count = min(size, STREAMED)
        if per_epoch:
            to_end = per_epoch - run.step % per_epoch
            left = to_end if ended else training.epochs * per_epoch - run.step
            count = min(size, left, steps.room)
        began, real = now(), perf_counter()
        try:
            done: SegmentOutcome = steps.advance(run.state, run.step, count)
        except KeyboardInterrupt:
            run.reason = "interrupted"
            return
        took = now() - began
        run.seconds += took
        run.compile_seconds += perf_counter() - real - took
        run.state = done.state
        if len(done.values):
            run.values.append(done.values)
            clock.advance(len(done.values), note=f"{done.values[-1, 0]:.6g}")
        if done.failed:
            run.failed, run.reason = True, f"the loss is no number at step {run.step + 1:,}"
            return
        before = len(run.ends)
        if streamed and len(done.values) < count:
            if run.step == (run.ends[-1] if run.ends else 0):
                raise InvalidArgument(
                    f"epoch {before + 1} has no batch; give data that can be read again for each"
                )
            run.ends.append(run.step)
            steps.go_to(len(run.ends), 0)
        elif per_epoch:
            run.ends = list(range(per_epoch, run.step + 1, per_epoch))
        if ended and len(run.ends) > before:
            run.reason = ended()
        if file.due():
            run.write(file)
        size = max(1, int(count * min(8.0, SECONDS / max(took, 1e-6))))
    run.reason = run.reason or "epochs"


def _epoch_end(
    run: _Run, training: Training, averaged: bool, judge: Any, stop: Any
) -> Callable[[], str] | None:
    """Return what is done at the end of an epoch, and gives a reason to end or ""; None where there is nothing to do."""
    if judge is None and stop is None:
        return None

    def ended() -> str:
        current = run.state.average if averaged else run.state.parameters
        if judge is not None:
            value = judge(current, run.state.memory)
            if value < min(run.validation, default=np.inf):
                run.best = current
            run.validation.append(value)
            if reason := _patience_over(run, training):
                return reason
        return "settled" if stop is not None and stop(len(run.ends), current, run.curve()) else ""

    return ended


def _patience_over(run: _Run, training: Training) -> str:
    """Return "patience" where no epoch has been better for too long, else ""."""
    since = len(run.validation) - 1 - int(np.nanargmin([*run.validation, np.inf]))
    return "patience" if training.patience is not None and since >= training.patience else ""


def _answer(run: _Run, averaged: bool) -> Any:
    if run.best is not None:
        return run.best
    return run.state.average if averaged else run.state.parameters


def _steps_per_epoch(batches: Any) -> int:
    """Return the steps of an epoch; 0 where only its end will tell."""
    return batches.steps if isinstance(batches, RowBatches) else int(not is_stream(batches))


def _file(training: Training, parameters: Any, batches: Any) -> Checkpoint:
    """Return the file of a run: of these settings, these data and this start."""
    if training.checkpoint is None:
        return Checkpoint(None)
    # a schedule depends on how many epochs there will be
    skipped = UNSAVED if training.decay == 1.0 else UNSAVED - {"epochs"}
    settings = [(f.name, getattr(training, f.name)) for f in fields(training) if f.name not in skipped]
    rows = (
        batches.digest if is_stream(batches) else batches.data if isinstance(batches, RowBatches) else batches
    )
    leaves = jax.tree.leaves((rows, parameters))
    return Checkpoint(training.checkpoint, digest_of(settings, *leaves))


def _precision(training: Training, traced: bool) -> Any:
    if not traced:
        return nullcontext()
    return jax.enable_x64(training.precision == "float64")


def _device(training: Training, traced: bool) -> Any:
    if not traced or training.device is None:
        return nullcontext()
    try:
        return jax.default_device(jax.devices(training.device)[0])
    except RuntimeError as error:
        raise InvalidArgument(f"device= {training.device!r} is not there: {error}") from None
