"""Sweeps of a sampler over hidden groups, with all that long runs need: a clock, a trace, draws, a file to go on from.

A file holds the whole state: what the sampler has, the random numbers' place, the trace and the draws kept so far. A run
that is cut and goes on ends exactly where one that was not cut does.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.kernels.plain_code import repeated
from markovia.optimise.checkpoint import Checkpoint, SavedRun
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock


class Sampler(Protocol):
    """What a run asks of a sampler."""

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw every hidden group once."""

    def log_prob(self) -> float:
        """Return the log probability of the state and the data, up to a constant."""

    def state(self) -> dict[str, Array]:
        """Return the state as arrays, without objects."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state that `state` gave."""


@dataclass
class SamplerRun:
    """What a run left.

    Attributes
    ----------
    history
        The log probability after each sweep.
    draws
        What `keep` made of the state after each kept sweep: a mapping of arrays.
    reason
        None, "time limit" or "interrupted".
    """

    history: list[float] = field(default_factory=list)
    draws: list[dict[str, Array]] = field(default_factory=list)
    reason: str | None = None

    @property
    def sweeps(self) -> int:
        """How many sweeps were done, those before a file was read included."""
        return len(self.history)


def burn_in_of(burn_in: int | None, sweeps: int, one_in: int = 2) -> int:
    """Return how many first sweeps are not kept: what is said, else one in so many; some are left to be kept."""
    if burn_in is None:
        return sweeps // one_in
    if burn_in >= sweeps:
        raise InvalidArgument(f"burn_in={burn_in} leaves no draws of max_iter={sweeps} sweeps; lower it")
    return burn_in


def run_sampler(
    sampler: Sampler,
    sweeps: int,
    rng: np.random.Generator,
    *,
    burn_in: int = 0,
    thin: int = 1,
    keep: Callable[[], dict[str, Array]] | None = None,
    time_limit: float | None = None,
    progress: bool | None = False,
    checkpoint: str | os.PathLike[str] | None = None,
    digest: str = "",
    name: str = "",
) -> SamplerRun:
    """Sweep until there are `sweeps`, keeping every `thin`-th state after `burn_in`.

    Where the file `checkpoint` is there, the run goes on from it; `digest` (see `optimise/checkpoint.py`) tells whether it
    is of the same model and data. Ctrl-C and the time limit end the run after a sweep.
    """
    run = SamplerRun()
    file = Checkpoint(checkpoint, digest)
    if (saved := file.read()) is not None:
        _read(saved, sampler, run, rng)
    left = max(sweeps - run.sweeps, 0)
    with repeated(left), Clock(time_limit, progress, total=left, unit="sweep", name=name) as clock:
        while run.sweeps < sweeps and not clock.over():
            sampler.sweep(rng)
            run.history.append(float(sampler.log_prob()))
            if keep is not None and run.sweeps > burn_in and (run.sweeps - burn_in - 1) % thin == 0:
                run.draws.append(keep())
            clock.advance(note=f"{run.history[-1]:.6g}")
            if file.due():
                _write(file, sampler, run, rng)
    run.reason = clock.reason
    _write(file, sampler, run, rng)
    return run


def _write(checkpoint: Checkpoint, sampler: Sampler, run: SamplerRun, rng: np.random.Generator) -> None:
    if checkpoint.path is None:
        return
    arrays = {f"state.{name}": x for name, x in sampler.state().items()} | {"history": np.array(run.history)}
    for i, draw in enumerate(run.draws):
        arrays |= {f"draw{i}.{name}": x for name, x in draw.items()}
    checkpoint.write(arrays, {"rng": rng.bit_generator.state, "draws": len(run.draws)})


def _read(saved: SavedRun, sampler: Sampler, run: SamplerRun, rng: np.random.Generator) -> None:
    def named(prefix: str) -> dict[str, Array]:
        return {k.removeprefix(prefix): x for k, x in saved.arrays.items() if k.startswith(prefix)}

    sampler.restore(named("state."))
    rng.bit_generator.state = saved.values["rng"]
    run.history = saved.arrays["history"].tolist()
    run.draws = [named(f"draw{i}.") for i in range(saved.values["draws"])]
