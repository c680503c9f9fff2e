"""Gibbs sampling: each variable in turn is drawn from its distribution given all others.

References: Geman and Geman (1984); Gelfand and Smith (1990) for averaging full conditionals ("Rao-Blackwell"); Gonzalez et
al. (2011) for updating a colour at a time. Cost of an update: one read a state in every table that mentions the variable,
whatever the table's size. Use it where exact inference is too wide and the tables are not nearly deterministic: states that
single changes cannot connect are not all visited, which shows as disagreement between chains (`info.diagnostics`). For
strong couplings use `blocks="trees"`, `SwendsenWang` or `ParallelTempering`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.flat_graphs.tied_variables import tied_blocks
from markovia.inference.markov_chains.block_gibbs import (
    Blocks,
    BlockStepper,
    check_blocks,
    make_blocks,
    two_colours,
)
from markovia.inference.markov_chains.chain_runs import ChainDetails, ChainSetUp, Stepper
from markovia.inference.markov_chains.device_chains import DeviceChainEngine, DeviceSweeps
from markovia.kernels.sampling.sampler_records import BinaryPairs, DrawPlan
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import Chain

Scan = Literal["systematic", "random", "chromatic"]
CHUNK = 32_768
TIED_STATES = 64
"""Joint states up to which tied variables are put into one block."""
MOST_LISTED, MOST_KINDS = 8, 512
"""Neighbours, and kinds of variables, up to which log odds of binary variables are looked up."""
LARGE = 100_000
"""Variables from which on the colours of a chromatic scan are updated by several threads, in chunks of a fixed size."""


@dataclass(frozen=True, kw_only=True)
class Gibbs(DeviceChainEngine):
    """Draw from the posterior one variable (or block) at a time, in several chains.

    Parameters
    ----------
    draws, burn_in, thin, chains, rao_blackwell, seed, time_limit, progress, threads
        Recorded draws and discarded sweeps of each chain, sweeps from draw to draw, number of chains,
        average full conditionals instead of states, reproducibility, seconds, progress bar, most threads.
    scan
        The order of the updates in a sweep: "systematic" (model order), "random" (as many updates of variables chosen at
        random), or "chromatic" (colour by colour, where variables of a colour share no table; on large models several
        threads update a colour together).
    blocks
        "auto" updates single variables, but together those that zeros in a table tie to each other, such as a gate and its
        inputs (with a systematic scan). None updates single variables only. "red-black" updates the two colours of a
        bipartite graph in turn. "trees" draws, each sweep, new random induced forests and samples each exactly. A list
        of lists of names samples each such block exactly given the rest, by forward filtering where it is a forest, by
        enumeration where it is small, or else by exact inference; other variables are updated singly.
    device
        "cpu", "gpu", or None: the GPU where there is one and the model has 20,000 variables or more. There a sweep
        goes colour by colour and has random numbers of its own, so the same seed gives other draws. Variables at random
        and blocks other than "red-black" stay on the processor.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.Gibbs(draws=2000, seed=1)
    >>> posterior = mk.examples.sprinkler().query("rain", given={"wet": "yes"}, engine=engine)
    >>> abs(posterior["yes"] - 0.7079) < 4 * posterior.info.error
    True
    >>> posterior.info.diagnostics.r_hat < 1.05
    True
    """

    name: ClassVar[str] = "gibbs"
    continuous: ClassVar[str] = "markovia.inference.densities.closed_forms.gibbs_blocks:BlockGibbs"

    scan: Scan = "systematic"
    blocks: Blocks = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_blocks(self.blocks)
        if self.blocks not in (None, "auto") and self.scan != "systematic":
            raise InvalidArgument("blocks= fixes the order of updates; leave scan= out, or blocks=None")

    def _stepper(self, run: ChainSetUp) -> Stepper:
        graph, blocks = run.graph, None if self.blocks in ("auto", "red-black") else self.blocks
        if self.blocks == "auto" and self.scan == "systematic":
            blocks = [[graph.names[i] for i in block] for block in tied_blocks(graph, TIED_STATES)] or None
        random = self.scan == "random"
        why = "blocks are drawn one by one" if blocks else "scan='random' draws one by one" if random else ""
        on_gpu = self._on_gpu(run, why)
        if blocks is not None:
            return make_blocks(blocks, run)
        colours: list[Ints] | None = None
        if self.blocks == "red-black":
            colours = two_colours(graph)
        elif on_gpu or self.scan == "chromatic":
            colours = colour_classes(graph)
        if on_gpu and colours:
            return DeviceSweeps(run, colours)
        settings = (run, colours, random, self.threads)
        pairs = None if run.wanted.joint else binary_pairs(graph)
        return TableStepper(*settings) if pairs is None else BinaryStepper(*settings, pairs)

    def _details(self, run: ChainDetails, stepper: Stepper, chains: "list[Chain]") -> ChainDetails:
        if isinstance(stepper, BlockStepper):
            return replace(run, blocks=stepper.drawn_by, forest_share=stepper.forest_share)
        if isinstance(stepper, DeviceSweeps):
            return replace(super()._details(run, stepper, chains), colours=len(stepper.colours))
        assert isinstance(stepper, SweepStepper)
        colours = stepper.colours
        return replace(run, kernel=stepper.kernel, colours=None if colours is None else len(colours))


class SweepStepper(Stepper):
    """Single-variable updates in turn, at random, or colour by colour: large models by several threads at once."""

    holds = True
    kernel: ClassVar[str]

    def __init__(
        self, run: ChainSetUp, colours: list[Ints] | None, random: bool, threads: int | None
    ) -> None:
        super().__init__(run)
        n = len(run.arrays.cards)
        self.colours, self.random, self.threads = colours, random, threads
        self.order, self.parts = sweep_order(n, colours)
        self.inside = colours is not None and n >= LARGE
        self.streams = chunk_streams(run.seeds, self.parts) if self.inside else []


class TableStepper(SweepStepper):
    """Single-variable updates on tables of any size."""

    kernel = "tables"

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling.chains import log_weight
        from markovia.kernels.sampling.gibbs import RANDOM, SYSTEMATIC, run, update

        g = self.arrays
        if self.random and not chain.held.any():
            update(g, g.unary, g.values, chain.x, chain.offset, chain.held, chain.rng, chain.room, self.order, 0,
                   len(self.order), SYSTEMATIC)  # fmt: skip
        if not self.inside:
            run(g, chain, self.order, RANDOM if self.random else SYSTEMATIC, plan)
            return

        def part(task: tuple[int, int, int], room: Array) -> None:
            low, high, k = task
            update(g, g.unary, g.values, chain.x, chain.offset, chain.held, self.streams[number][k], room,
                   self.order, low, high, SYSTEMATIC)  # fmt: skip

        for t in range(plan.first, plan.first + plan.number):
            for _ in range(plan.thin):
                for tasks in self.parts:
                    in_parallel(part, tasks, lambda: np.empty_like(chain.room), self.threads)
            self.record(chain, t, plan, log_weight(g, chain.x, chain.offset))


class BinaryStepper(SweepStepper):
    """Single-variable updates of binary variables with positive pairwise tables, by log odds."""

    kernel = "binary pairwise"

    def __init__(
        self,
        run: ChainSetUp,
        colours: list[Ints] | None,
        random: bool,
        threads: int | None,
        pairs: "BinaryPairs",
    ) -> None:
        super().__init__(run, colours, random, threads)
        n, chains = len(run.graph.variables), run.chains
        self.pairs = pairs
        self.bits = [c.x.astype(np.int8) for c in chains]
        self.held = [np.full(n, 0.5) for _ in chains]
        self.fresh = [True] * len(chains)
        self.recorded = [0] * len(chains)
        for c, chain in enumerate(chains):
            chains[c] = chain._replace(sums=np.zeros((len(chain.sums), n)))

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling import chains as kernel
        from markovia.kernels.sampling.gibbs import (
            RANDOM,
            SYSTEMATIC,
            record_binary,
            run_binary,
            update_binary,
            weigh_binary,
        )

        bits, held, pairs = self.bits[number], self.held[number], self.pairs
        if self.random and self.fresh[number]:
            update_binary(pairs, bits, held, chain.rng, self.order, 0, len(self.order), SYSTEMATIC)
        self.fresh[number] = False
        self.recorded[number] += 0 if len(plan.warm) else plan.number
        if not self.inside:
            run_binary(pairs, bits, held, chain, self.order, RANDOM if self.random else SYSTEMATIC, plan)
            return

        def part(task: tuple[int, int, int], _: None) -> float:
            low, high, k = task
            gained: float = update_binary(
                pairs, bits, held, self.streams[number][k], self.order, low, high, SYSTEMATIC
            )
            return gained

        total = weigh_binary(pairs, bits)
        for t in range(plan.first, plan.first + plan.number):
            for _ in range(plan.thin):
                for tasks in self.parts:
                    total += sum(in_parallel(part, tasks, lambda: None, self.threads))
            chain.scalars[kernel.LOG_WEIGHT] = total
            if len(chain.best) and total > chain.scalars[kernel.BEST]:
                chain.scalars[kernel.BEST] = total
                chain.best[:] = bits
            if len(plan.warm):
                plan.warm[t] = total
            else:
                record_binary(chain, bits, held, t, plan.draws, plan.mode)

    def finish(self, chains: "list[Chain]") -> None:
        """Spread the sums of state 1 over both states."""
        for c, chain in enumerate(chains):
            ones = chain.sums
            made = np.zeros((len(ones), 2 * ones.shape[1]))
            made[:, 1::2] = ones
            made[:, 0::2] = (
                self._recorded(number=c, batches=len(ones), draws=len(chain.trace))[:, None] - ones
            )
            chains[c] = chain._replace(sums=made, x=self.bits[c].astype(np.int64))

    def _recorded(self, number: int, batches: int, draws: int) -> Array:
        """Return how many draws each batch of a chain holds."""
        ends = -(-np.arange(batches + 1) * draws // batches)
        return np.diff(np.minimum(ends, self.recorded[number])).astype(np.float64)


def binary_pairs(graph: FlatGraph) -> BinaryPairs | None:
    """Return a graph's log odds; None unless all variables are binary and all tables positive and pairwise."""
    if not len(graph.variables) or not (graph.cards == 2).all() or not (graph.arity == 2).all():
        return None
    if not (graph.unary > 0).all() or not (graph.values > 0).all():
        return None
    logs = graph.log_values.reshape(-1, 2, 2)
    first, second = graph.scope[0::2], graph.scope[1::2]
    unary = graph.log_unary.reshape(-1, 2)
    field = unary[:, 1] - unary[:, 0]
    np.add.at(field, first, logs[:, 1, 0] - logs[:, 0, 0])
    np.add.at(field, second, logs[:, 0, 1] - logs[:, 0, 0])
    coupling = logs[:, 0, 0] + logs[:, 1, 1] - logs[:, 0, 1] - logs[:, 1, 0]
    edges = graph.edges
    couplings = np.ascontiguousarray(coupling[graph.edge_factor[edges]])
    return BinaryPairs(
        graph.edge_ptr,
        np.ascontiguousarray(graph.scope[edges ^ 1]),
        couplings,
        field,
        float(unary[:, 0].sum() + logs[:, 0, 0].sum()),
        *_listed(graph.edge_ptr, couplings, field),
    )


def _listed(ptr: Ints, coupling: Array, field: Array) -> tuple[Ints, Array, Array]:
    """Return for each variable where its log odds and probabilities begin, and these; nothing where many differ."""
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    degree = np.diff(ptr)
    most = int(degree.max(initial=0))
    if most > MOST_LISTED:
        return nothing
    clean = np.round(field, 12) + 0.0
    kinds, kind = np.unique(clean, return_inverse=True)
    for k in range(most):
        if len(kinds) > MOST_KINDS:
            return nothing
        own = np.full(len(field), np.nan)
        own[degree > k] = np.round(coupling[ptr[:-1][degree > k] + k], 12)
        values, value = np.unique(own, return_inverse=True)
        kinds, kind = np.unique(kind.ravel() * len(values) + value.ravel(), return_inverse=True)
    if len(kinds) > MOST_KINDS:
        return nothing
    kind = kind.ravel()
    member = np.zeros(len(kinds), dtype=np.int64)
    member[kind] = np.arange(len(field))
    masks = np.arange(2**most)
    odds = np.zeros((len(kinds), len(masks)))
    for row, i in enumerate(member.tolist()):
        own = coupling[ptr[i] : ptr[i + 1]]
        odds[row] = field[i] + sum([w * (masks >> k & 1) for k, w in enumerate(own.tolist())])
    with np.errstate(over="ignore"):
        chance = 1.0 / (1.0 + np.exp(-odds))
    return (kind * len(masks)).astype(np.int64), odds.ravel(), chance.ravel()


def sweep_order(n: int, colours: list[Ints] | None) -> tuple[Ints, list[list[tuple[int, int, int]]]]:
    """Return the order of updates, and for each colour its chunks as (from, to, number)."""
    if colours is None:
        return np.arange(n, dtype=np.int64), []
    order = np.concatenate([np.zeros(0, dtype=np.int64), *colours])
    parts, low, k = [], 0, 0
    for colour in colours:
        tasks = []
        for at in range(0, len(colour), CHUNK):
            tasks.append((low + at, low + min(at + CHUNK, len(colour)), k))
            k += 1
        parts.append(tasks)
        low += len(colour)
    return order, parts


def chunk_streams(
    seeds: Sequence[np.random.SeedSequence], parts: list[list[tuple[int, int, int]]]
) -> list[Any]:
    """Return for each chain the random numbers of each chunk."""
    n = sum(len(tasks) for tasks in parts)
    return [[s.generate_state(4, np.uint64) for s in seed.spawn(n)] for seed in seeds]


def colour_classes(graph: FlatGraph) -> list[Ints]:
    """Return groups of variables that share no table, by greedy colouring in the order of most neighbours."""
    from markovia.kernels.sampling.gibbs import colour

    pairs = bool((graph.arity == 2).all())
    ptr, other = (graph.edge_ptr, graph.scope[graph.edges ^ 1]) if pairs else graph.neighbours()
    order = np.argsort(-np.diff(ptr), kind="stable")
    colours = colour(ptr.astype(np.int64), other.astype(np.int64), order)
    return [np.flatnonzero(colours == c) for c in range(int(colours.max(initial=-1)) + 1)]
