"""The settings that estimators have in common that are learned by sweeps of a sampler, and their long run."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.inference.collapsed.sampler_runs import Sampler, SamplerRun, run_sampler
from markovia.optimise.checkpoint import digest_of
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, TimeLimit


@dataclass(eq=False, repr=False, kw_only=True)
class SamplerSettings:
    """Settings of an estimator that is learned by sweeps.

    Parameters
    ----------
    max_iter
        Sweeps.
    random_state
        The seed.
    time_limit, checkpoint, progress
        Seconds after which sweeps end; a file that keeps the state, from which an interrupted run goes on; a progress bar.
    """

    max_iter: Count = 200
    random_state: Any = None
    time_limit: TimeLimit = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | None = False

    def _sweeps(
        self,
        sampler: Sampler,
        rng: np.random.Generator,
        keep: Callable[[], dict[str, Array]] | None = None,
        *,
        name: str,
        about: tuple[Any, ...],
        sweeps: int | None = None,
        burn_in: int = 0,
        thin: int = 1,
    ) -> SamplerRun:
        """Run a sampler, as `run_sampler` does, and keep its trace; `about` tells one run's file from another's.

        A run that is cut before the first draw is due has the state that it reached for a draw.
        """
        run = run_sampler(
            sampler, self.max_iter if sweeps is None else sweeps, rng, burn_in=burn_in, thin=thin, keep=keep,
            time_limit=self.time_limit, progress=self.progress, checkpoint=self.checkpoint, digest=digest_of(*about),
            name=name,
        )  # fmt: skip
        if keep is not None and not run.draws:
            run.draws.append(keep())
        self.history_, self.n_iter_ = run.history, run.sweeps
        return run
