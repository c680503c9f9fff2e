"""The work of annealed importance sampling: ladders of temperatures, and particles that go up and down them.

See `annealed_importance` for the method.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.weighted_draws.sequential_draws import Codes
from markovia.inference.weighted_draws.weight_diagnostics import WeightSums, summed
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now
from markovia.runtime.threads import in_parallel

CHUNK = 32
SLICE_UPDATES = 1_000_000  # between two looks at the clock


@dataclass(frozen=True)
class Ladder:
    """Powers from 0 to 1, the log floor of zero entries at each, and its slope from the one before."""

    betas: Array
    floors: Array
    slopes: Array

    @classmethod
    def of(cls, betas: Array, floor: float) -> "Ladder":
        """Return a ladder of given powers."""
        with np.errstate(divide="ignore"):
            floors = np.where(betas < 1.0, -floor * betas / np.where(betas < 1.0, 1.0 - betas, 1.0), -np.inf)
        slopes = np.zeros(len(betas))
        slopes[1:-1] = np.diff(floors[:-1]) / np.diff(betas[:-1])
        slopes[-1] = slopes[-2]
        return cls(np.ascontiguousarray(betas), floors, slopes)


def even_ladder(steps: int, floor: float) -> Ladder:
    """Return a ladder of equal steps."""
    return Ladder.of(np.linspace(0.0, 1.0, steps + 1), floor)


def adapted_ladder(spread: Array, pilot: Ladder, steps: int, floor: float) -> Ladder:
    """Place temperatures so that each step has about the same share of the standard deviation seen in a pilot run.

    A fifth of them is spread evenly, in case the pilot missed something.
    """
    deviation = np.sqrt(spread[1:, 1])
    lengths = np.diff(pilot.betas)
    total = path_length(spread, pilot)
    if not np.isfinite(total) or total <= 0.0 or steps < 2:
        return even_ladder(steps, floor)
    density = 0.8 * deviation / total + 0.2
    travelled = np.concatenate(([0.0], np.cumsum(density * lengths)))
    betas = np.interp(np.linspace(0.0, travelled[-1], steps + 1), travelled, pilot.betas)
    betas[0], betas[-1] = 0.0, 1.0
    return Ladder.of(betas, floor)


def path_length(spread: Array, pilot: Ladder) -> float:
    """Return the integral over the ladder of the standard deviation seen in a pilot run."""
    return float((np.sqrt(spread[1:, 1]) * np.diff(pilot.betas)).sum())


class Annealing:
    """A flat graph ready for the kernels."""

    def __init__(self, graph: FlatGraph) -> None:
        from markovia.kernels.sampling.annealing import Slots

        self.graph = graph
        self.zero_entries = int(np.count_nonzero(graph.values == 0.0))
        sums = np.add.reduceat(graph.unary, graph.starts[:-1]) if len(graph.variables) else np.zeros(0)
        with np.errstate(divide="ignore"):
            self.log_start = graph.log_scale + float(np.log(sums).sum())
        self.widest = int(graph.cards.max(initial=1))
        factor = graph.edge_factor[graph.edges]
        arity = graph.arity[factor]
        mine = np.repeat(np.arange(len(factor)), arity)
        within = np.arange(len(mine)) - np.repeat(np.cumsum(arity) - arity, arity)
        place = graph.scope_ptr[factor][mine] + within
        other = place[place != graph.edges[mine]]  # the factor's other places, for each edge at each variable
        self._slots = Slots(
            graph.table_ptr[factor],
            graph.strides[graph.edges],
            np.concatenate(([0], np.cumsum(arity - 1))).astype(np.int64),
            graph.scope[other],
            graph.strides[other],
        )

    def forwards(
        self, ladder: Ladder, particles: int, sweeps: int, entropy: Any, deadline: float = np.inf
    ) -> tuple[Codes, Array]:
        """Return particles at the end of the ladder, and the logs of their weights relative to the start.

        Past the deadline only chunks that are under way are finished.
        """
        chunk = min(CHUNK, max(4, particles // 8))

        def work(i: int, _: None) -> tuple[Codes, Array] | None:
            if i and now() > deadline:
                return None
            seed = np.random.SeedSequence(entropy, spawn_key=(i,))
            return self._chunk(ladder, min(chunk, particles - i * chunk), sweeps, seed)[:2]

        parts = [p for p in in_parallel(work, range(-(-particles // chunk)), lambda: None) if p is not None]
        return np.concatenate([c for c, _ in parts]), np.concatenate([w for _, w in parts])

    def spread(self, ladder: Ladder, particles: int, sweeps: int, entropy: Any) -> tuple[Array, float]:
        """Return mean and variance of the slope of the log weight at each temperature, and updates a second.

        A first call with two particles loads the compiled code.
        """
        seed = np.random.SeedSequence(entropy, spawn_key=(2**32 - 1,))
        self._chunk(even_ladder(2, 1.0), 2, 1, seed)
        begin = now()
        spread = self._chunk(ladder, particles, sweeps, seed)[2]
        updates = particles * (len(ladder.betas) - 1) * sweeps * max(1, len(self.graph.variables))
        return spread, updates / max(1e-6, now() - begin)

    def backwards(self, ladder: Ladder, codes: Codes, sweeps: int, entropy: Any) -> float:
        """Return the log of the mean weight of particles taken from the end of the ladder to its start."""

        def work(i: int, _: None) -> Array:
            seed = np.random.SeedSequence(entropy, spawn_key=(2**32 - 3, i))
            return self._back(ladder, codes[i : i + CHUNK].copy(), sweeps, seed)

        logs = np.concatenate(in_parallel(work, range(0, len(codes), CHUNK), lambda: None))
        top = float(logs.max())
        return top + float(np.log(np.exp(logs - top).mean()))

    def averaged(self, codes: Codes, log_weights: Array) -> WeightSums:
        """Return sums over the particles of each variable's distribution given all others."""
        from markovia.kernels.sampling.annealing import conditionals

        g = self.graph
        size = int(g.starts[-1])
        a, b, c = np.zeros(size), np.zeros(size), np.zeros(size)
        top = float(log_weights.max())
        if top > -np.inf:
            weights = np.exp(log_weights - top)
            scores = np.empty(self.widest)
            conditionals(g.log_arrays, self._slots, codes, weights, scores, a, b, c)
        return summed(log_weights, a, b, c, top)

    # -- inside ------------------------------------------------------------------------------------------------

    def _chunk(
        self, ladder: Ladder, particles: int, sweeps: int, seed: np.random.SeedSequence
    ) -> tuple[Codes, Array, Array]:
        from markovia.kernels.sampling.annealing import start

        state = seed.generate_state(4, np.uint64)
        codes = np.empty((particles, len(self.graph.variables)), dtype=np.int32)
        start(self.graph.arrays, state, codes)
        return codes, *self._through(ladder, codes, sweeps, state, backwards=False)

    def _back(self, ladder: Ladder, codes: Codes, sweeps: int, seed: np.random.SeedSequence) -> Array:
        state = seed.generate_state(4, np.uint64)
        return self._through(ladder, codes, sweeps, state, backwards=True)[0]

    def _through(
        self, ladder: Ladder, codes: Codes, sweeps: int, state: NDArray[Any], *, backwards: bool
    ) -> tuple[Array, Array]:
        """Take particles through the ladder; return the logs of their weights, and the spread at each temperature."""
        from markovia.kernels.sampling.annealing import anneal

        particles, n = codes.shape
        step = max(1, SLICE_UPDATES // (particles * sweeps * max(1, n)))
        logs, spread = np.zeros(particles), np.zeros((len(ladder.betas), 2))
        path = (ladder.betas, ladder.floors, ladder.slopes)
        room = (
            np.empty(len(self.graph.values)),
            np.empty(particles),
            np.empty(particles),
            np.empty(self.widest),
        )
        given = self.graph.log_arrays, self._slots, state, codes, logs, path
        slices = [(k, min(k + step, len(ladder.betas))) for k in range(1, len(ladder.betas), step)]
        for first, last in reversed(slices) if backwards else slices:
            anneal(*given, first, last, sweeps, backwards, room, spread)
        return logs, spread
