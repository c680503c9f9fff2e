"""Draws from a density, and what a sampler says of each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np

from markovia.inference.result import LogMass, Record
from markovia.runtime.array_types import Array, Flags


@dataclass(frozen=True)
class DrawStats:
    """What a sampler says of each draw, chains by draws; None for what an engine does not have.

    Attributes
    ----------
    log_density
        The log density of the unconstrained vector.
    acceptance, diverging, energy, steps, step_size
        Probability of acceptance, whether the trajectory diverged, its energy, gradients taken, and the size of a step.
    """

    log_density: Array
    acceptance: Array | None = None
    diverging: Flags | None = None
    energy: Array | None = None
    steps: Array | None = None
    step_size: Array | None = None

    @property
    def of_chains(self) -> bool:
        """Whether the draws are steps of Markov chains, which have more to say than a log density."""
        return any(x is not None for x in (self.acceptance, self.diverging, self.energy))

    @property
    def tree_depth(self) -> Array | None:
        """How often a trajectory was doubled."""
        return None if self.steps is None else np.floor(np.log2(np.maximum(self.steps, 1.0))) + 1.0

    @property
    def divergences(self) -> int:
        """How many trajectories diverged."""
        return 0 if self.diverging is None else int(self.diverging.sum())


UNKNOWN_MASS = LogMass(nan)


@dataclass(frozen=True, eq=False)
class DensityDraws:
    """Draws from a density, and how they were made.

    Attributes
    ----------
    points
        Unconstrained vectors: chains, draws, size.
    draws
        The quantities of the model by name: chains, draws, their own axes.
    stats
        What the sampler says of each draw.
    log_weights
        Logs of the draws' weights, chains by draws; None where all weigh alike.
    log_mass
        The log of the mass of the density, NaN where the engine does not know it.
    record
        How it went.
    """

    points: Array
    draws: Mapping[str, Array]
    stats: DrawStats
    record: Record
    log_weights: Array | None = None
    log_mass: LogMass = field(default=UNKNOWN_MASS)
