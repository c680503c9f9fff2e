"""A sampler with running means of what its states say, kept in the same file as the states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from markovia.inference.collapsed.sampler_runs import Sampler
from markovia.runtime.array_types import Array


class SummedSampler(Sampler, Protocol):
    """A sampler whose states can be averaged."""

    def summary(self) -> dict[str, Array]:
        """Return what of the state is averaged."""


@dataclass
class AveragedDraws:
    """A sampler that adds up the summaries of every `thin`-th state after `burn_in` sweeps."""

    sampler: SummedSampler
    burn_in: int
    thin: int = 1
    done: int = 0
    kept: int = 0
    sums: dict[str, Array] = field(default_factory=dict)

    def sweep(self, rng: np.random.Generator) -> None:
        """Sweep, and add what the state says."""
        self.sampler.sweep(rng)
        self.done += 1
        if self.done > self.burn_in and (self.done - self.burn_in - 1) % self.thin == 0:
            for name, value in self.sampler.summary().items():
                self.sums[name] = self.sums[name] + value if name in self.sums else np.array(value)
            self.kept += 1

    def means(self) -> dict[str, Array]:
        """Return the means over kept states, or what the last state says where none was kept."""
        return {k: v / self.kept for k, v in self.sums.items()} if self.kept else self.sampler.summary()

    def log_prob(self) -> float:
        """Return that of the sampler's state."""
        return self.sampler.log_prob()

    def state(self) -> dict[str, Any]:
        """Return the sampler's state and the sums."""
        own = {"done": np.array(self.done), "kept": np.array(self.kept)}
        return self.sampler.state() | own | {f"sum_{k}": v for k, v in self.sums.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state and its sums."""
        self.sampler.restore(state)
        self.done, self.kept = int(state["done"]), int(state["kept"])
        self.sums = {k.removeprefix("sum_"): v for k, v in state.items() if k.startswith("sum_")}
