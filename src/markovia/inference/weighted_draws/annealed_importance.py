"""Annealed importance sampling: log Z of any discrete model, by particles that are cooled down.

Method: start every particle in the product of the unary tables, which is drawn from exactly. Then take it through
temperatures 0 = b_0 < b_1 < ... < b_K = 1, where the tables between variables are raised to the power b: at each one
multiply its weight by the ratio of the two tempered weights of its configuration, then sweep over the variables with Gibbs
updates. The mean weight is an unbiased estimate of the ratio of the partition functions, whatever the number of sweeps;
the weighted particles estimate marginals. Reference: Neal (2001).

Temperatures are placed where a short pilot run says that the weights would spread most. An entry that is zero would cut the
path, so on the way it counts as `exp(-floor b / (1 - b))`, which is one at the start and vanishes at b = 1: only particles
that avoid all zeros keep a weight. With `reverse=True` particles are also taken back from 1 to 0 (bidirectional Monte
Carlo, Grosse, Ghahramani and Adams 2015). From exact draws their mean inverse weight would bound log Z from above in
expectation; here they start at resampled particles, so it is an estimate from above, not a bound.

Cost: particles times temperatures times sweeps times a Gibbs sweep; compiled, on all threads.
Use it for log Z of models too wide for exact inference; strong couplings need more temperatures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.inference.result import Draws, LogMass, Record, Tables
from markovia.inference.weighted_draws.annealing_path import (
    Annealing,
    Ladder,
    adapted_ladder,
    even_ladder,
    path_length,
)
from markovia.inference.weighted_draws.resampling import resample
from markovia.inference.weighted_draws.sequential_draws import Codes
from markovia.inference.weighted_draws.weight_diagnostics import FEWEST_EFFECTIVE, MAX_TAIL_INDEX, WeightSums
from markovia.inference.weighted_draws.weighted_engine import (
    Counter,
    proved_impossible,
    tables_of,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import POSITIVE, Count, Positive, TimeLimit, Whole, WholeSeed, check
from markovia.runtime.clock import now
from markovia.runtime.threads import thread_count

PARTICLES = 256
FEW_PARTICLES = 32
MOST_PARTICLES = 100_000
LEAST_TEMPERATURES = 20
FEW_TEMPERATURES = 50
MOST_TEMPERATURES = 5000
WORK = 1e8  # updates without a time limit, where there is a choice
PILOTS, PILOT_TEMPERATURES = 16, 40
PILOT_UPDATES_A_SECOND = 5e5
ADVICE = "try more temperatures, more sweeps or more particles"


@dataclass(frozen=True)
class AnnealedDetails:
    """Temperatures, particles, zero entries of tables, an upper bound on the log mass where asked for, and the weights."""

    temperatures: int = 0
    particles: int = 0
    zero_entries: int = 0
    upper_log_mass: float | None = None
    effective_particles: float = 0.0
    largest_share: float = 1.0
    pareto_k: float = np.inf
    log_mass_error: float = np.inf


@dataclass(frozen=True, kw_only=True)
class AnnealedImportance(Approximate):
    """Annealed importance sampling with Gibbs transitions.

    Parameters
    ----------
    particles
        How many; by default up to 256, fewer for large models, and with a time limit as many as it allows.
    temperatures
        How many steps, or the powers themselves, rising from 0 to 1. By default 50 to 5000, as a pilot run says that
        they are needed and the time (or about 1e8 updates) allows.
    sweeps
        Gibbs sweeps at each temperature.
    floor
        How fast zero entries vanish on the way.
    reverse
        Also estimate log Z from above by particles that go back (`info.details.upper_log_mass`).
    seed
        The same seed gives the same answer, whatever the number of threads; None takes a new one.
    tolerance
        If given, the answer counts as converged only if its error is below.
    time_limit
        Seconds.

    Notes
    -----
    `info.error` is the largest standard error of a marginal; `info.details.log_mass_error` that of log Z. The answer
    counts as converged if the particles are worth 30 independent ones and the Pareto index is at most 0.7.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[3, 1], [1, 3]])])
    >>> engine = mk.engines.AnnealedImportance(particles=500, temperatures=50)
    >>> bool(abs(grid.log_partition(engine=engine) - np.log(8)) < 0.02)
    True
    """

    particles: Annotated[int | None, Whole(2, none=True)] = None
    temperatures: int | Sequence[float] | None = None
    sweeps: Count = 1
    floor: Positive = 5.0
    reverse: bool = False
    seed: WholeSeed = 0
    tolerance: Annotated[float | None, replace(POSITIVE, none=True)] = None
    time_limit: TimeLimit = None

    name: ClassVar[str] = "annealed-importance"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "sample"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperatures is None:
            return
        if isinstance(self.temperatures, int | np.integer) or not isinstance(
            self.temperatures, Sequence | np.ndarray
        ):
            check("temperatures", self.temperatures, Whole(1))
            return
        betas = np.asarray(self.temperatures, dtype=np.float64)
        if (
            betas.ndim != 1
            or len(betas) < 2
            or betas[0] != 0
            or betas[-1] != 1
            or np.any(np.diff(betas) <= 0)
        ):
            raise InvalidArgument("temperatures= is a number of steps, or powers that rise from 0 to 1")

    # -- questions ---------------------------------------------------------------------------------------------

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together: the weights of the particles by state."""
        if len(targets) == 1:
            return self.marginals(problem, targets)
        graph, codes, logs, details = self._particles(problem, targets)
        groups = [tuple(targets)] if targets else []
        sums = Counter(graph.variables, graph.index, groups)(codes, logs)
        if sums.positive == 0:
            return self._blank(problem, groups, details)
        values, errors = sums.ratios()
        tables = tables_of(problem, groups, values) or [Factor.scalar(1.0)]
        return Tables(tables, sums.log_mean, self._record(sums, errors, details))

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target: its distribution given all others, averaged by weight."""
        graph, codes, logs, details = self._particles(problem, targets)
        groups = [(n,) for n in targets]
        sums = Annealing(graph).averaged(codes, logs)
        if sums.positive == 0:
            return self._blank(problem, groups, details)
        values, errors = sums.ratios()
        asked = np.concatenate(
            [np.zeros(0, dtype=np.int64)]
            + [np.arange(graph.starts[i], graph.starts[i + 1]) for i in (graph.index[n] for n in targets)]
        )
        record = self._record(sums, errors[asked], details)
        return Tables(tables_of(problem, groups, values[asked]), sums.log_mean, record)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of an unbiased estimate of the mass that agrees with the findings."""
        found = self.joint(problem, [])
        return LogMass(found.log_mass, found.record)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw configurations by resampling the particles; there are at least n of them."""
        seed = int(rng.integers(2**63))
        wider = replace(self, particles=max(n, self.particles or PARTICLES), seed=seed)
        graph, codes, logs, _ = wider._particles(problem, None)
        if n and not (logs > -np.inf).any():
            if proved_impossible(problem):
                raise impossible(problem, judged_log_mass)
            raise Unanswered(f"engine {self.name!r} found no configuration of positive weight; {ADVICE}")
        codes = codes[rng.permutation(resample(logs, n, rng))]
        return Draws({m: codes[:, graph.index[m]].astype(np.int64) for m in problem.free})

    # -- inside ------------------------------------------------------------------------------------------------

    def _particles(
        self, problem: Problem, targets: Sequence[str] | None
    ) -> "tuple[FlatGraph, Codes, Array, AnnealedDetails]":
        """Return the graph, the particles at the end of the path, their log weights and details."""
        begin = now()
        graph = flat_graph(problem, targets)
        entropy = np.random.SeedSequence(self.seed).entropy
        if graph.log_scale == -np.inf:
            return (
                graph,
                np.zeros((2, len(graph.variables)), dtype=np.int32),
                np.full(2, -np.inf),
                AnnealedDetails(),
            )
        run = Annealing(graph)
        ladder, n, deadline = self._plan(run, entropy, begin)
        codes, logs = run.forwards(ladder, n, self.sweeps, entropy, deadline)
        details = AnnealedDetails(len(ladder.betas) - 1, len(logs), run.zero_entries)
        if self.reverse and (logs > -np.inf).any():
            rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(2**32 - 2,)))
            back = run.backwards(ladder, codes[resample(logs, len(logs), rng)], self.sweeps, entropy)
            details = replace(details, upper_log_mass=run.log_start - back)
        return graph, codes, logs + run.log_start, details

    def _plan(self, run: Annealing, entropy: Any, begin: float) -> tuple[Ladder, int, float]:
        """Return the ladder, the number of particles and the deadline.

        The variance of a log weight is about the squared length of the path over the number of temperatures, the length
        being the integral of the standard deviation that the pilot sees. Temperatures for a variance of one half come
        first, then as many particles as the time (or a fixed amount of work) allows.
        """
        deadline = np.inf if self.time_limit is None else begin + self.time_limit
        given = self.temperatures
        if given is not None and not isinstance(given, int | np.integer):
            ladder = Ladder.of(np.asarray(given, dtype=np.float64), self.floor)
            return ladder, self.particles or PARTICLES, deadline
        cost = max(1, len(run.graph.variables)) * self.sweeps  # updates a particle and temperature
        most = np.inf if self.time_limit is None else PILOT_UPDATES_A_SECOND * self.time_limit / cost
        pilot = even_ladder(int(np.clip(most / 4, 5, PILOT_TEMPERATURES)), self.floor)
        pilots = int(np.clip(most / (len(pilot.betas) - 1), 2, PILOTS))
        spread, speed = run.spread(pilot, pilots, self.sweeps, entropy)
        work = WORK
        if self.time_limit is not None:
            work = 0.8 * speed * thread_count() * max(0.0, deadline - now())
        few = self.particles or FEW_PARTICLES
        if given is None:
            wanted = float(
                np.clip(2.0 * path_length(spread, pilot) ** 2, FEW_TEMPERATURES, MOST_TEMPERATURES)
            )
            steps = int(max(LEAST_TEMPERATURES, min(wanted, work / (few * cost))))
        else:
            steps = int(given)
        fits = int(work / (cost * steps))
        if self.time_limit is None:
            particles = self.particles or int(np.clip(fits, FEW_PARTICLES, PARTICLES))
        else:
            particles = max(8, min(fits, self.particles or MOST_PARTICLES))
        return adapted_ladder(spread, pilot, steps, self.floor), particles, deadline

    def _record(self, sums: WeightSums, errors: Array, details: AnnealedDetails) -> Record:
        weights = sums.details()
        error = float(errors.max(initial=0.0)) if len(errors) else sums.log_mean_error
        bad = []
        if weights.pareto_k > MAX_TAIL_INDEX:
            bad.append(f"a few particles carry most of the weight (Pareto k {weights.pareto_k:.2f})")
        if sums.effective < min(FEWEST_EFFECTIVE, 0.5 * sums.draws):
            bad.append(f"the particles are worth {sums.effective:.1f} independent ones")
        if self.tolerance is not None and error > self.tolerance:
            bad.append(f"the standard error is over the tolerance {self.tolerance:g}")
        said = replace(
            details,
            effective_particles=weights.effective_draws,
            largest_share=weights.largest_share,
            pareto_k=weights.pareto_k,
            log_mass_error=weights.log_mass_error,
        )
        advice = f"{' and '.join(bad)}; {ADVICE}" if bad else ""
        return Record(
            converged=not bad, iterations=details.temperatures, error=error, advice=advice, details=said
        )

    def _blank(self, problem: Problem, groups: Sequence[tuple[str, ...]], details: AnnealedDetails) -> Tables:
        size = int(sum(np.prod([len(problem.variables[n]) for n in g]) for g in groups))
        tables = [f.normalize() for f in tables_of(problem, groups, np.ones(size))] or [Factor.scalar(1.0)]
        record = Record(
            converged=False,
            iterations=details.temperatures,
            error=1.0,
            advice=f"no particle reached a configuration of positive weight, so nothing is known; {ADVICE}",
            details=details,
        )
        return Tables(tables, -np.inf if proved_impossible(problem) else np.nan, record)
