"""Simulated annealing for most probable configurations.

Method: visit the variables in random order and redraw each from its conditional distribution at an inverse temperature that
rises from sweep to sweep, so that the walk freezes in a configuration of large weight; then climb by single changes.
Zeros count as a bit more than the strongest table, so that a hot walk crosses them.
References: Kirkpatrick, Gelatt and Vecchi (1983); Geman and Geman (1984), who redraw from conditionals.
Cost of a sweep: the tables around every variable. Slow schedules find better configurations.
Use it as a robust baseline; for a fixed time large neighbourhoods usually get further.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.local_search.icm import climb
from markovia.inference.local_search.local_search import LocalSearch, from_starts
from markovia.inference.local_search.search_space import BestSoFar, Outcome, SearchSpace
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, FromZero, Positive
from markovia.runtime.seeds import kernel_seed


@dataclass(frozen=True)
class SimulatedAnnealing(LocalSearch):
    """Best configurations by annealed Gibbs sweeps.

    Parameters
    ----------
    sweeps
        Sweeps over all variables for each run.
    restarts
        Runs after the first; with a time limit, runs go on until it is over.
    schedule
        How the inverse temperature rises from `beta_first` to `beta_last`: "geometric" or "linear".
    beta_first, beta_last
        Inverse temperatures at both ends. The model itself has 1.
    start
        A state for every free variable, where the first run starts; at random by default.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.SimulatedAnnealing(sweeps=100, seed=0)
    >>> mk.examples.sprinkler().map(given={"wet": "yes"}, engine=engine).to_dict()
    {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
    """

    sweeps: Count = 1000
    restarts: FromZero = 3
    schedule: Literal["geometric", "linear"] = "geometric"
    beta_first: Positive = 0.1
    beta_last: Positive = 20.0

    name: ClassVar[str] = "simulated-annealing"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta_first > self.beta_last:
            raise InvalidArgument(
                f"the inverse temperatures rise from beta_first > 0 to beta_last, not from {self.beta_first!r} "
                f"to {self.beta_last!r}"
            )

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        def run(codes: Ints) -> bool:
            return self._run(space, codes, rng, done)

        first = space.at_random(rng) if self.start is None else space.read(self.start)
        return from_starts(run, first, self.restarts if self.time_limit is None else None, rng, done)

    def _run(self, space: SearchSpace, codes: Ints, rng: np.random.Generator, done: BestSoFar) -> bool:
        """Anneal and climb from a configuration, in place; return whether the schedule was finished in time."""
        from markovia.kernels.maximising.local_search import fill_scores, sweep

        graph, state = _crossable(space).arrays, kernel_seed(rng)
        score = np.empty(len(space.unary))
        rise = np.linspace if self.schedule == "linear" else np.geomspace
        for k, beta in enumerate(rise(self.beta_first, self.beta_last, self.sweeps)):
            if k % 100 == 0:
                fill_scores(graph, codes, score)  # afresh, so that rounding does not add up
            order = rng.permutation(len(codes)).astype(np.int64)
            _, moves = sweep(graph, order, float(beta), state, codes, score)
            done.note(codes, space.score(codes), 1, moves)
            if done.over():
                return False
        return climb(space, codes, "cyclic", rng, done)


def _crossable(space: SearchSpace) -> SearchSpace:
    """Return the space with zeros that weigh a bit less than the least entry of any table."""
    least = 0.0
    for logs in (space.unary, space.values):
        finite = logs[logs > -space.penalty]
        least = min(least, float(finite.min(initial=0.0)))
    wall = min(space.penalty, 5.0 - 1.5 * least)
    return SearchSpace(space.graph, np.maximum(space.unary, -wall), np.maximum(space.values, -wall), wall)
