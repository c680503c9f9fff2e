"""Sweeps of a sampler over hidden groups, with all that long runs need: a clock, a trace, draws, a file to go on from.

A file holds the whole state: what the sampler has, the random numbers' place, the trace and the draws kept so far. A run
that is cut and goes on ends exactly where one that was not cut does.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock, now

EVERY = 30.0
"""Seconds between two writings of the file."""


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

    Where the file `checkpoint` is there, the run goes on from it; `digest` (see `digest_of`) tells whether it is of the same
    model and data. Ctrl-C and the time limit end the run after a sweep.
    """
    run = SamplerRun()
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        _read(path, sampler, run, rng, digest)
    written = now()
    with Clock(time_limit, progress, total=max(sweeps - run.sweeps, 0), unit="sweep", name=name) as clock:
        while run.sweeps < sweeps and not clock.over():
            sampler.sweep(rng)
            run.history.append(float(sampler.log_prob()))
            if keep is not None and run.sweeps > burn_in and (run.sweeps - burn_in - 1) % thin == 0:
                run.draws.append(keep())
            clock.advance(note=f"{run.history[-1]:.6g}")
            if path is not None and now() - written > EVERY:
                _write(path, sampler, run, rng, digest)
                written = now()
    run.reason = clock.reason
    if path is not None:
        _write(path, sampler, run, rng, digest)
    return run


def digest_of(*parts: Any) -> str:
    """Return a short text that differs for different data and settings.

    Examples
    --------
    >>> digest_of(np.arange(3), "gibbs") == digest_of(np.arange(3), "gibbs")
    True
    >>> digest_of(np.arange(3)) == digest_of(np.arange(4))
    False
    """
    found = sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).data)
        else:
            found.update(repr(part).encode())
    return found.hexdigest()[:16]


def _write(path: Path, sampler: Sampler, run: SamplerRun, rng: np.random.Generator, digest: str) -> None:
    arrays: dict[str, Any] = {f"state.{k}": np.asarray(v) for k, v in sampler.state().items()}
    for i, draw in enumerate(run.draws):
        arrays |= {f"draw{i}.{k}": np.asarray(v) for k, v in draw.items()}
    about = {"digest": digest, "rng": rng.bit_generator.state, "draws": len(run.draws)}
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), history=np.array(run.history), **arrays)
    os.replace(beside, path)


def _read(path: Path, sampler: Sampler, run: SamplerRun, rng: np.random.Generator, digest: str) -> None:
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            history, named = file["history"].tolist(), {k: file[k] for k in file.files if "." in k}
    except (OSError, ValueError, KeyError) as error:
        raise InvalidArgument(f"checkpoint= {str(path)!r} is not a file of a sampler: {error}") from None
    if about["digest"] != digest:
        raise InvalidArgument(
            f"checkpoint= {str(path)!r} is of other data or settings; name another file, or remove it to begin anew"
        )
    sampler.restore({k.removeprefix("state."): v for k, v in named.items() if k.startswith("state.")})
    rng.bit_generator.state = about["rng"]
    run.history = history
    run.draws = [
        {k.split(".", 1)[1]: v for k, v in named.items() if k.startswith(f"draw{i}.")}
        for i in range(about["draws"])
    ]
