"""What engines that run Markov chains share: settings, parallel chains in slices, and answers from their records.

Chains run in threads, each with its own random numbers, so answers do not depend on the number of threads. Compiled code
runs in slices of some milliseconds; between slices the clock is looked at and an interrupt gets through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from markovia.errors import TooLarge, Unanswered
from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.impossible_evidence import impossible
from markovia.inference.markov_chains.chain_starts import chain_starts
from markovia.inference.markov_chains.diagnostics import Diagnostics, diagnose
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, Ranked, Record, Tables
from markovia.kernels.sampling.sampler_records import DrawPlan
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, CountOrNone, TimeLimit, Whole, WholeSeed
from markovia.runtime.clock import Clock, now
from markovia.runtime.devices import Device
from markovia.runtime.threads import in_parallel

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import Chain, ChainArrays

SLICE = 0.04
FIRST_SLICE = 100_000
BATCHES = 20
FEW_BATCHES = 4
RECORD_BYTES = 2**28
MOST_TRACES = 200
TRACE_CELLS = 8_000_000
MOST_CELLS = 2**24
SAMPLE_SPACING = 10


@dataclass(frozen=True)
class Wanted:
    """What a run has to record."""

    traced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    joint: tuple[str, ...] = ()
    best: bool = False


@dataclass(frozen=True)
class ChainSetUp:
    """What a transition works on: the question and its graph, chains at their starts, and what is recorded of each draw.

    A draw is made after `thin` sweeps; `rao_blackwell` adds up conditional probabilities instead of states.
    """

    problem: Problem
    graph: FlatGraph
    arrays: "ChainArrays"
    wanted: Wanted
    chains: "list[Chain]"
    seeds: Sequence[np.random.SeedSequence]
    thin: int
    rao_blackwell: bool


class Stepper:
    """A transition: moves a chain on and records its draws."""

    inside: bool = False
    """Whether a step uses threads itself; then chains take turns."""
    holds: ClassVar[bool] = False
    """Whether sweeps hold the conditional distributions they drew from; a record computes them afresh otherwise."""

    def __init__(self, run: ChainSetUp) -> None:
        self.run, self.arrays = run, run.arrays

    def plan(self, first: int, count: int, draws: int, warm: Array) -> DrawPlan:
        """Return the draws first ... first + count - 1 as kernels take them; a non-empty `warm` gets their log weights."""
        from markovia.kernels.sampling.chains import FRESH, HELD, INDICATORS

        mode = INDICATORS if not self.run.rao_blackwell else HELD if self.holds else FRESH
        return DrawPlan(self.run.thin, first, count, draws, mode, warm)

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make the planned draws of a chain."""
        raise NotImplementedError

    def record(self, chain: "Chain", t: int, plan: DrawPlan, log_weight: float) -> None:
        """Note draw t of a chain whose sweeps are made from Python."""
        from markovia.kernels.sampling import chains as kernel

        chain.scalars[kernel.LOG_WEIGHT] = log_weight
        kernel.remember_best(chain)
        if len(plan.warm):
            plan.warm[t] = log_weight
        else:
            kernel.record(self.arrays, chain, t, plan.draws, plan.mode)

    def finish(self, chains: "list[Chain]") -> None:
        """Bring the chains' records into the common form; most are in it."""


@dataclass(frozen=True)
class ChainDetails:
    """What a run of chains has to say.

    Attributes
    ----------
    chains, draws, burn_in, thin
        Chains, draws of each, sweeps thrown away, and sweeps from one draw to the next.
    updates_per_second
        Variables updated, a second.
    acceptance
        The share of proposals (or exchanges) that was accepted, where there are any.
    kernel, colours
        Of Gibbs sampling: which compiled loop ran, and how many colours there are.
    blocks, forest_share
        Of blocked Gibbs sampling: blocks by how they are drawn, and the share of the variables in a random forest.
    temperatures, swap_acceptance
        Of parallel tempering: the ladder, and the share of exchanges accepted between neighbours.
    mean_cluster
        Of Swendsen-Wang: variables in a cluster.
    device
        What computed the draws.
    """

    chains: int
    draws: int
    burn_in: int
    thin: int
    updates_per_second: float
    acceptance: float | None = None
    kernel: str | None = None
    colours: int | None = None
    blocks: Mapping[str, int] | None = None
    forest_share: float | None = None
    temperatures: tuple[float, ...] | None = None
    swap_acceptance: tuple[float, ...] | None = None
    mean_cluster: float | None = None
    device: Device = "cpu"


@dataclass
class ChainRun:
    """A finished run."""

    graph: FlatGraph
    chains: "list[Chain]"
    draws: int
    planned: int
    burned: int
    warm: list[Array]
    seconds: float
    details: "ChainDetails"

    def means(self) -> Array:
        """Return for each state of each variable its average over all chains."""
        total: Array = np.sum([c.sums.sum(axis=0) for c in self.chains], axis=0)
        return total / max(1, self.draws * len(self.chains))

    def batch_means(self) -> Array:
        """Return the averages of the batches that are complete: chains, batches, states."""
        n = self.chains[0].sums.shape[0]
        ends = -(-np.arange(n + 1) * self.planned // n)
        sizes = np.diff(ends)
        full = (ends[1:] <= self.draws) & (sizes > 0)
        found: Array = np.stack([c.sums[full] / sizes[full][:, None] for c in self.chains])
        return found


@dataclass(frozen=True, kw_only=True)
class ChainEngine(Approximate):
    """Settings that all Markov chain engines share, and the questions they answer.

    Parameters
    ----------
    draws
        Draws that each chain records.
    burn_in
        Sweeps of each chain that are thrown away; a quarter of the draws by default, at most 5,000.
    thin
        Sweeps from one recorded draw to the next: 1 by default, 10 for `sample`.
    chains
        Independent chains; two or more are needed to see whether they agree.
    rao_blackwell
        Average full conditionals rather than states.
    seed
        Same seed, same answer. `sample` takes its seed from the model.
    time_limit
        Seconds after which chains stop and the answer is made from the draws there are; a third is for burn-in.
    progress
        Whether to show a progress bar; on a terminal if it takes long by default.
    threads
        Most threads to use; as many as there are processors by default.
    """

    answers = frozenset({"joint", "marginals", "best", "sample"})

    draws: Annotated[int, Whole(4)] = 5_000
    burn_in: Annotated[int | None, Whole(0, none=True)] = None
    thin: CountOrNone = None
    chains: Count = 4
    rao_blackwell: bool = True
    seed: WholeSeed = None
    time_limit: TimeLimit = None
    progress: bool | None = None
    threads: CountOrNone = None

    # -- what an engine has to say -------------------------------------------------------------------------------

    def _stepper(self, run: ChainSetUp) -> Stepper:
        raise NotImplementedError

    def _details(self, run: ChainDetails, stepper: Stepper, chains: "list[Chain]") -> ChainDetails:
        """Return the details of a run with what the engine has to add."""
        return run

    # -- questions -----------------------------------------------------------------------------------------------

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        if not targets:
            return Tables([], self._nothing_asked(problem), Record(exact=True))
        run, graph = self._run(problem, targets, Wanted(traced=tuple(targets)))
        return Tables(graph.tables(run.means(), targets), np.nan, self._report(run, targets))

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        if not targets:
            return Tables([Factor.scalar(1.0)], self._nothing_asked(problem), Record(exact=True))
        if len(targets) == 1:
            return self.marginals(problem, targets)
        variables = tuple(problem.variables[n] for n in targets)
        cells = prod(len(v) for v in variables)
        if cells > MOST_CELLS:
            raise TooLarge(
                f"a joint table of {cells:,} cells is over the limit of {MOST_CELLS:,}; ask for fewer variables, or "
                f"for draws: model.sample(n, engine={self.name!r})"
            )
        run, _ = self._run(problem, targets, Wanted(traced=tuple(targets), joint=tuple(targets)))
        total = np.sum([c.joint for c in run.chains], axis=0)
        table = Factor.of(variables, (total / total.sum()).reshape([len(v) for v in variables]))
        return Tables([table], np.nan, self._report(run, targets))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the heaviest configuration that any chain visited."""
        self._refuse_parts(problem, targets, m)
        run, graph = self._run(problem, None, Wanted(best=True))
        if not graph.variables:
            return Ranked([Assignment({}, graph.log_scale)], Record(bound=graph.log_scale))
        weights = [graph.log_weight(c.best) for c in run.chains]
        winner = int(np.argmax(weights))
        record = Record(bound=np.inf, iterations=run.draws * len(run.chains), details=run.details)
        found = Assignment(graph.assignment(run.chains[winner].best), weights[winner])
        return Ranked([found], record)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations, spaced by `thin` sweeps (10 by default), the chains' draws one after the other."""
        names = tuple(problem.free)
        if not names and self._nothing_asked(problem) == -np.inf:
            raise impossible(problem, judged_log_mass)
        if n == 0 or not names:
            return Draws({name: np.zeros(n, dtype=np.int64) for name in names})
        each = -(-n // self.chains)
        burn = self.burn_in if self.burn_in is not None else 1_000
        seed = int(rng.integers(2**63))
        thin = self.thin or SAMPLE_SPACING
        run, graph = self._run(problem, None, Wanted(kept=names), each, burn, thin, seed)
        if run.draws < each:
            raise Unanswered(
                f"{run.draws * self.chains:,} of {n:,} draws were made within time_limit={self.time_limit:g}; give it more "
                "seconds, or ask for fewer draws"
            )
        columns = np.concatenate([c.kept for c in run.chains])[:n]
        return Draws({name: columns[:, i].astype(np.int64) for i, name in enumerate(graph.names)})

    def _nothing_asked(self, problem: Problem) -> float:
        """Return minus infinity if the evidence is impossible, else that the mass is not known."""
        return -np.inf if judged_log_mass(problem) == -np.inf else np.nan

    # -- running -------------------------------------------------------------------------------------------------

    def _run(
        self,
        problem: Problem,
        targets: Sequence[str] | None,
        wanted: Wanted,
        draws: int | None = None,
        burn_in: int | None = None,
        thin: int | None = None,
        seed: int | None = None,
    ) -> tuple[ChainRun, FlatGraph]:
        graph = flat_graph(problem, targets)
        draws = draws or self.draws
        burn = self.burn_in if burn_in is None else burn_in
        burn = min(draws // 4, 5_000) if burn is None else burn
        thin = thin or self.thin or 1
        begun = now()
        arrays = graph_arrays(graph)
        root = np.random.SeedSequence(self.seed if seed is None else seed)
        seeds = root.spawn(2 * self.chains)
        starts = chain_starts(problem, graph, arrays, seeds[: self.chains])
        chains = [
            make_chain(graph, arrays, x, s, draws, wanted, self.chains)
            for x, s in zip(starts, seeds[self.chains :], strict=True)
        ]
        stepper = self._stepper(
            ChainSetUp(problem, graph, arrays, wanted, chains, seeds[self.chains :], thin, self.rao_blackwell)
        )
        warm = [np.zeros(burn) for _ in chains]
        bar: dict[str, Any] = {"total": (burn + draws) * self.chains, "unit": "draw", "scale": True}
        clock = Clock(self.time_limit, self.progress, start=begun, name=self.name, **bar)
        work = max(1, len(graph.variables)) * thin
        with clock:
            burned = self._slices(stepper, chains, burn, warm, clock, work, share=1 / 3)
            done = self._slices(stepper, chains, draws, None, clock, work, share=1.0)
        stepper.finish(chains)
        seconds = now() - begun
        updates = len(graph.variables) * (burned + done * thin) * self.chains
        details = ChainDetails(self.chains, done, burned, thin, updates / max(seconds, 1e-9))
        details = self._details(details, stepper, chains)
        if clock.reason == "interrupted" and wanted.kept:
            raise KeyboardInterrupt  # rows were asked for, and not all are there
        run = ChainRun(graph, chains, done, draws, burned, [w[:burned] for w in warm], seconds, details)
        return run, graph

    def _slices(
        self,
        stepper: Stepper,
        chains: "list[Chain]",
        total: int,
        warm: list[Array] | None,
        clock: Clock,
        work: int,
        share: float,
    ) -> int:
        """Advance all chains by `total` draws, or until their share of the time is over; returns how many."""
        done, count = 0, max(1, FIRST_SLICE // work)
        nothing = np.zeros(0)
        end = np.inf if self.time_limit is None else share * self.time_limit
        while done < total and not (done >= min(4, total) and (clock.over() or clock.seconds > end)):
            count = min(count, total - done)
            since = now()

            def step(c: int, _: None, first: int = done, many: int = count) -> None:
                into = nothing if warm is None else warm[c]
                stepper.advance(c, chains[c], stepper.plan(first, many, total, into))

            in_parallel(step, range(len(chains)), lambda: None, 1 if stepper.inside else self.threads)
            took = now() - since
            done += count
            clock.advance(count * len(chains))
            count = max(1, min(int(count * SLICE / max(took, 1e-6)), 4 * count))
        return done

    def _report(self, run: ChainRun, targets: Sequence[str]) -> Record:
        """Return what is said of an answer: convergence, error, advice, diagnostics."""
        found, said = self._diagnostics(run, targets), run.details
        return Record(
            converged=found.converged,
            iterations=(said.burn_in + said.draws * said.thin) * said.chains,
            error=found.error,
            advice=found.advice,
            diagnostics=found,
            details=said,
        )

    def _diagnostics(self, run: ChainRun, targets: Sequence[str]) -> Diagnostics:
        graph, first = run.graph, run.chains[0]
        labels = ["log weight"]
        for at, i in zip(first.traced.tolist(), first.traced_owner.tolist(), strict=True):
            variable = graph.variables[i]
            labels.append(f"{variable.name}={variable.states[at - int(graph.starts[i])]}")
        traces = np.stack([c.trace[: run.draws] for c in run.chains])
        traces[:, :, 0] += graph.log_scale
        asked = np.concatenate(
            [np.arange(graph.starts[i], graph.starts[i + 1]) for i in map(graph.index.__getitem__, targets)]
        )
        return diagnose(
            labels,
            traces,
            warm=np.stack(run.warm) + graph.log_scale,
            batch_means=run.batch_means()[:, :, asked],
            acceptance=run.details.acceptance,
            thin=run.details.thin,
        )


def graph_arrays(graph: FlatGraph) -> "ChainArrays":
    """Return a flat graph as the tuple that compiled chains take."""
    from markovia.kernels.sampling.chains import ChainArrays

    edges = graph.edges
    return ChainArrays(
        graph.cards,
        graph.starts,
        graph.unary,
        graph.log_unary,
        graph.values,
        graph.log_values,
        graph.table_ptr,
        graph.scope_ptr,
        graph.scope,
        graph.strides,
        graph.edge_ptr,
        np.ascontiguousarray(graph.edge_factor[edges]),
        np.ascontiguousarray(graph.strides[edges]),
    )


def make_chain(
    graph: FlatGraph,
    arrays: "ChainArrays",
    start: Ints,
    seed: np.random.SeedSequence,
    draws: int,
    wanted: Wanted,
    n_chains: int,
) -> "Chain":
    """Return a chain at its start, with room for its record."""
    from markovia.kernels.sampling.chains import Chain, place

    n_states = int(graph.starts[-1])
    batches = BATCHES if n_states * n_chains * BATCHES * 8 <= RECORD_BYTES else FEW_BATCHES
    batches = min(batches, draws)
    traced, owner = traced_states(
        graph, wanted.traced, max(1, min(MOST_TRACES, TRACE_CELLS // (draws * n_chains)))
    )
    kept = np.array([graph.index[v] for v in wanted.kept], dtype=np.int64)
    joint = np.array([graph.index[v] for v in wanted.joint], dtype=np.int64)
    sizes = graph.cards[joint]
    strides = np.ones(len(joint), dtype=np.int64)
    for j in range(len(joint) - 2, -1, -1):
        strides[j] = strides[j + 1] * sizes[j + 1]
    offset = np.zeros(graph.n_factors, dtype=np.int64)
    place(arrays, start, offset)
    return Chain(
        x=start.copy(),
        offset=offset,
        held=np.zeros(n_states),
        rng=seed.generate_state(4, np.uint64).astype(np.uint64),
        scalars=np.array([0.0, -np.inf, 0.0, 0.0]),
        room=np.empty(int(graph.cards.max(initial=1))),
        sums=np.zeros((batches, n_states)),
        traced=traced,
        traced_owner=owner,
        trace=np.zeros((draws, len(traced) + 1)),
        kept_variables=kept,
        kept=np.zeros((draws if len(kept) else 0, len(kept)), dtype=np.int32),
        joint_variables=joint,
        joint_strides=strides,
        joint=np.zeros(int(np.prod(sizes)) if len(joint) else 0),
        best=start.copy() if wanted.best else np.zeros(0, dtype=np.int64),
    )


def traced_states(graph: FlatGraph, names: Sequence[str], most: int) -> tuple[Ints, Ints]:
    """Return the states whose every draw is kept, and their variables: evenly spread where there are too many.

    The first state of a variable is left out, since the others determine it.
    """
    at: list[int] = []
    owner: list[int] = []
    for i in [graph.index[n] for n in names]:
        for k in range(1, int(graph.cards[i])):
            at.append(int(graph.starts[i]) + k)
            owner.append(i)
    chosen = np.unique(np.linspace(0, max(0, len(at) - 1), min(most, len(at))).astype(np.int64))
    return np.array(at, dtype=np.int64)[chosen], np.array(owner, dtype=np.int64)[chosen]
