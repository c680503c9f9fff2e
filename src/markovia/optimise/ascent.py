"""One loop for everything that climbs step by step: expectation-maximisation and coordinate ascent.

`climb` repeats a step `state -> (state, objective)` until the objective settles, `max_iter` steps are done, the time is over
or somebody pressed Ctrl-C; in each case it keeps what was learned. A step is a pure function of the state, so that a climb
that goes on from a state ends with the numbers of one that was never cut; a checkpoint file does that across processes.
`best_climb` keeps the best of several starts. Cost: that of the steps.

**What `tol` means, for every estimator**: an ascent has settled when a step gains no more than `tol` *per number observed*,
in the unit of the objective (nats, where that is a log likelihood or a bound on one). A number is what the estimator counts:
a row in mixtures and factor models, a word in topics, a step in hidden Markov models, each number of a step in state
spaces, a cell of a table in networks. So neither more data of the same kind nor a constant in the objective changes when
learning ends. `max_iter` counts steps,
`n_iter_` those that were done, `converged_` says whether the objective settled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.optimise.checkpoint import Checkpoint
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.parallel_tasks import task_results

S = TypeVar("S")
Reason = Literal["converged", "max_iter", "time limit", "interrupted"]
SLICE = 50
"""Steps that a search inside a climb makes at once."""


@dataclass(frozen=True)
class Climb(Generic[S]):
    """How an ascent ended.

    Attributes
    ----------
    state
        What was learned.
    history
        The objective that each step reported.
    reason
        "converged", "max_iter", "time limit" or "interrupted".
    """

    state: S
    history: list[float]
    reason: Reason

    @property
    def converged(self) -> bool:
        """Whether the objective settled."""
        return self.reason == "converged"

    @property
    def stopped(self) -> Literal["time limit", "interrupted"] | None:
        """What cut the ascent, if anything did."""
        return self.reason if self.reason in ("time limit", "interrupted") else None

    @property
    def objective(self) -> float:
        """The last objective; minus infinity where it is not a number."""
        return -np.inf if np.isnan(self.history[-1]) else self.history[-1]

    def warn(self, tol: float, names: tuple[str, str] = ("max_iter", "tol")) -> None:
        """Warn where the ascent ended before it settled, unless nobody asked it to (`tol` is 0) or it was to take no longer.

        `names` are those of the settings that would let it go on.
        """
        steps = f"{len(self.history)} step{'s' if len(self.history) != 1 else ''}"
        if self.reason == "interrupted":
            message = f"learning was interrupted after {steps}, before it settled; what was learned is kept"
        elif self.reason == "max_iter" and tol > 0.0:
            message = f"learning still gained after {steps}; raise {names[0]}= or {names[1]}="
        else:
            return
        warn_user(message, ConvergenceWarning)


def climb(
    step: Callable[[S], tuple[S, float]],
    start: S,
    *,
    max_iter: int,
    tol: float,
    size: float = 1.0,
    first: float | None = None,
    span: int = 1,
    may_fall: bool = False,
    settled: Callable[[S, S], bool] | None = None,
    time_limit: float | None = None,
    progress: bool | None = False,
    name: str = "EM",
    unit: str = "step",
    checkpoint: Checkpoint | None = None,
) -> Climb[S]:
    """Repeat a step until its objective settles.

    Parameters
    ----------
    step
        Returns the next state and an objective: that of the state it was given, or of the one it returns, always the same.
    start
        The first state.
    max_iter, tol
        Steps at most, at least one; the gain per number observed below which the ascent has settled.
    size
        How many numbers were observed.
    first
        The objective of the start, where it is known: then one step can settle.
    span
        Over how many steps together a gain is taken; more than one where they gain unevenly.
    may_fall
        Whether a step may lose: then a loss of more than `tol` is no end. Else a loss is one of rounding.
    settled
        Says of the states before and after a step whether nothing is left to gain, whatever the objective.
    time_limit, progress, name, unit
        As in `Clock`; a clock around this one ends the ascent too. At least one step is done.
    checkpoint
        A file that states are kept in, and gone on from; their arrays and numbers may change, their shapes may not.

    Examples
    --------
    >>> found = climb(lambda x: (x / 2.0, -x * x), 1.0, max_iter=100, tol=1e-6)
    >>> found.reason, len(found.history), found.state < 1e-3
    ('converged', 12, True)
    """
    state, history, saved = start, [] if first is None else [first], None
    file = checkpoint if checkpoint is not None and checkpoint.path is not None else None
    if file is not None:
        _arrays(start)  # refuses states that no file can keep before anything is learned
        saved = file.read()
    if saved is not None:
        state, history = _restored(start, saved.arrays), list(saved.values["history"])
    begun = 0 if first is None else 1

    def ended() -> Reason | None:
        """Say whether the last step was the last: a gain too small, or as many steps as there may be."""
        if len(history) > span:
            gain = history[-1] - history[-1 - span]
            if (abs(gain) if may_fall else gain) <= tol * size:
                return "converged"
        return "max_iter" if len(history) - begun >= max_iter else None

    reason = ended() if saved is not None else None
    with Clock(time_limit, progress, total=max_iter, unit=unit, name=name) as clock:
        try:
            while reason is None:
                after, objective = step(state)
                still = settled is not None and settled(state, after)
                history.append(float(objective))
                state = after
                reason = "converged" if still else ended()
                if reason is None and clock.over():
                    reason = "interrupted" if clock.reason == "interrupted" else "time limit"
                clock.advance(note=f"{objective:.6g}", value=float(objective))
                if file is not None and file.due():
                    file.write(_arrays(state), {"history": history})
        except KeyboardInterrupt:  # a second Ctrl-C, or one that the step itself was told of
            if len(history) <= begun:
                raise
            reason = "interrupted"
    if file is not None:
        file.write(_arrays(state), {"history": history})
    return Climb(state, history[begun:], reason)


def climb_in_slices(
    search: Callable[[Any, int, Clock], tuple[Any, float]],
    start: Any,
    *,
    steps: int,
    tol: float,
    at_once: int | None = None,
    **settings: Any,
) -> Climb[Any]:
    """Climb by a search that makes steps of its own, `at_once` (`SLICE`) of them between two looks at clock and file.

    `search(state, most, clock)` makes up to `most` of the `steps` there may be in all. A state has the `steps` made and its
    `error`, which leaves nothing to gain at `tol`; `settings` are those of `climb`.
    """
    size = SLICE if at_once is None else at_once

    def step(state: Any) -> tuple[Any, float]:
        with Clock(None, False) as clock:
            return search(state, min(size, max(1, steps - state.steps)), clock)

    return climb(
        step, start, max_iter=-(-steps // size), tol=0.0, settled=lambda _, after: after.error <= tol, **settings
    )  # fmt: skip


def best_climb(
    run: Callable[..., Climb[S]],
    starts: Sequence[Any],
    *,
    n_jobs: int | None = None,
    progress: bool | None = False,
) -> Climb[S]:
    """Return the best of ascents from several starts; those not begun when one is cut are left out.

    `run(start, progress=...)` climbs from a start. One after the other they show their own steps, side by side how
    many are done.

    Examples
    --------
    >>> def run(start, progress):
    ...     return climb(lambda x: (x / 2.0, start - x * x), start, max_iter=50, tol=1e-6)
    >>> round(best_climb(run, [0.5, 2.0, 1.0]).objective, 3)
    2.0
    """
    return best_of(every_climb(run, starts, n_jobs=n_jobs, progress=progress))


def every_climb(
    run: Callable[..., Climb[S]],
    starts: Sequence[Any],
    *,
    n_jobs: int | None = None,
    progress: bool | None = False,
) -> list[Climb[S]]:
    """Return the ascents that `best_climb` chooses from; the last says why those after it were left out."""
    in_turn = len(starts) == 1 or n_jobs in (None, 1)
    found: list[Climb[S]] = []
    cut: list[bool] = []
    for one in task_results(
        partial(run, progress=progress if in_turn else False), starts, n_jobs=n_jobs,
        progress=False if in_turn else progress, when_interrupted=lambda: cut.append(True),
    ):  # fmt: skip
        found.append(one)
        if one.stopped:
            break
    if cut:
        found[-1] = replace(found[-1], reason="interrupted")
    return found


def best_of(found: Sequence[Climb[S]]) -> Climb[S]:
    """Return the ascent that came highest; where the last was interrupted, others were not tried, and it has not settled."""
    best = max(found, key=lambda one: one.objective)
    return replace(best, reason="interrupted") if found[-1].reason == "interrupted" else best


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a state whose arrays and numbers were changed, in a fixed order; texts, functions and the like stay."""
    if isinstance(value, np.ndarray | np.generic | int | float):
        return change(value)
    if isinstance(value, dict):
        return {k: _mapped(v, change) for k, v in value.items()}
    if isinstance(value, tuple | list):
        parts = [_mapped(v, change) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: _mapped(getattr(value, f.name), change) for f in fields(value) if f.init}
        )
    if value is None or isinstance(value, str) or callable(value):
        return value
    raise InvalidArgument(f"checkpoint= cannot keep a {type(value).__name__}; leave it out")


def _arrays(state: Any) -> dict[str, Array]:
    found: dict[str, Array] = {}

    def keep(leaf: Any) -> Any:
        found[f"state.{len(found)}"] = np.asarray(leaf)
        return leaf

    _mapped(state, keep)
    return found


def _restored(like: Any, arrays: dict[str, Array]) -> Any:
    """Return a state of the form of another, with the arrays and numbers of a file."""
    stored = iter([arrays[f"state.{i}"] for i in range(len(arrays))])

    def change(leaf: Any) -> Any:
        kept = next(stored)
        return kept if isinstance(leaf, np.ndarray) else type(leaf)(kept.item())

    return _mapped(like, change)
