"""Markov chains on the GPU: colour by colour (Gibbs) or cluster by cluster (Swendsen-Wang), all chains side by side.

Methods: variables of one colour share no table and are drawn at the same time, each by a thread (Gonzalez et al. 2011);
clusters are found by union-find without locks (Jaiganesh and Burtscher 2018) and drawn from their summed fields.
Random numbers are counted, not carried along (Philox 4x32-10; Salmon et al. 2011): they depend on the seed, the sweep, the
variable and the chain alone, so the same seed gives the same draws, whatever the launch. Log tables are floats; states are
bytes; log weights and fields add up in whole numbers, which is exact in any order; averages are doubles.

What is recorded stays on the device while a batch of draws is under way. After each slice of draws come back the log
weights and, of the variables that are watched, states and full conditionals; states of all variables only where draws are
asked for. Cost of an update: one row of every table that mentions the variable; a sweep is a launch a colour.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.flat_graphs.padded_links import padded_links, why_no_links
from markovia.inference.markov_chains.chain_runs import (
    ChainDetails,
    ChainEngine,
    ChainRun,
    ChainSetUp,
    Stepper,
)
from markovia.kernels.sampling.sampler_records import DrawPlan
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.devices import Device, cuda_module, gpu, on_device, say_instead, usable_gpu
from markovia.runtime.libraries import cp

if TYPE_CHECKING:
    from markovia.inference.markov_chains.swendsen_wang import Potts
    from markovia.kernels.sampling.chains import Chain

GPU_FROM = 20_000
"""Variables from which on a GPU pays, where the engine may choose."""
BLOCK, MOST_BLOCKS = 256, 2048
SLOTS = 64
"""As in `chains.cu`."""
MANY_LINKS = 32
"""Links of a variable from which on its scores are added up in double precision."""
GRAPH_FROM = 8
"""Draws from which on it pays to record their launches."""
NONE = np.uintp(0)
"""A pointer to nothing."""


@dataclass(frozen=True, kw_only=True)
class DeviceChainEngine(ChainEngine):
    """Engines whose chains may also run on a GPU.

    Parameters
    ----------
    device
        "cpu", "gpu", or None: the GPU where there is one and the model is large enough to gain. The GPU has random
        numbers of its own, so the same seed gives other draws there.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.Gibbs(draws=200, seed=1, device="cpu")
    >>> mk.generators.ising_grid(4, 4, coupling=0.3).query("x0_0", engine=engine).info.details.device
    'cpu'
    """

    device: Device | None = None

    def _run(self, *args: Any, **settings: Any) -> tuple[ChainRun, FlatGraph]:
        def here() -> tuple[ChainRun, FlatGraph]:
            return ChainEngine._run(self, *args, **settings)

        return on_device(here, lambda: replace(self, device="cpu")._run(*args, **settings))

    def _on_gpu(self, run: ChainSetUp, refused: str = "") -> bool:
        """Say whether these chains run on the GPU; `refused` says why they cannot, if they cannot."""
        if self.device == "cpu" or (self.device is None and len(run.arrays.cards) < GPU_FROM):
            return False
        refused = refused or why_no_links(run.graph)
        if refused and self.device == "gpu":
            say_instead(f'device="gpu": {refused}; the processor answers')
        return not refused and (usable_gpu() if self.device == "gpu" else gpu()) is not None

    def _details(self, run: ChainDetails, stepper: Stepper, chains: "list[Chain]") -> ChainDetails:
        """Return the details of a run, with the device that made it."""
        return replace(run, device="gpu") if isinstance(stepper, DeviceStepper) else run


class DeviceStepper(Stepper):
    """Chains on the GPU: the first one's turn moves all of them, and each takes its own records."""

    inside = True

    def __init__(self, run: ChainSetUp, order: Ints | None = None) -> None:
        super().__init__(run)
        chains, graph = run.chains, run.graph
        links = padded_links(graph, order)
        self.n, self.count, self.states = len(graph.cards), len(chains), links.states
        self.place = np.argsort(links.order)
        # as many chains a thread as registers hold the scores of
        self.lanes = next(k for k in (4, 2, 1) if self.count % k == 0 and (k == 1 or k * self.states <= 32))
        many = int(np.diff(links.ptr).max(initial=0)) > MANY_LINKS
        score = "double" if many else "float"
        wide = ["WIDE"] * (links.other_ptr is not None)
        defines = f"STATES={self.states}", f"LANES={self.lanes}", f"SCORE={score}", *wide
        self.get_kernel = cache(cuda_module("chains", defines).get_function)
        with np.errstate(divide="ignore"):
            tables, unary = (np.log(a).astype(np.float32) for a in (links.tables, links.unary))
        others = [NONE] if links.other_ptr is None else [cp.asarray(links.other_ptr)]
        rest = [cp.asarray(a) for a in (links.other, links.base, tables, unary)]
        self.links = [cp.asarray(links.ptr), *others, *rest]
        starts = np.stack([c.x for c in chains], axis=1)[links.order]
        self.x = cp.asarray(np.ascontiguousarray(starts, dtype=np.uint8))
        self.gains = cp.zeros((SLOTS, self.count), dtype=np.uint64)
        self.clock = cp.zeros(2, dtype=np.uint32)
        numbers = np.int32(self.n), np.int32(self.count), *run.seeds[0].generate_state(2, np.uint32)
        self.model = record(*self.links, self.x, self.gains, self.clock, *numbers)
        self.totals = cp.zeros(self.count, dtype=np.int64)
        self.heaviest = cp.full(self.count, np.iinfo(np.int64).min, dtype=np.int64)
        self.heavier = cp.zeros(self.count, dtype=np.int32)
        self.best = self.x.copy() if run.wanted.best else None
        # what is watched: the owners of traced states, and the variables of a joint table
        first = chains[0]
        asked = np.concatenate([first.traced_owner, first.joint_variables])
        watched, column = np.unique(asked, return_inverse=True)
        self.watch = cp.asarray(self.place[watched].astype(np.int32))
        self.traced, self.joint = np.split(column.ravel(), [len(first.traced_owner)])
        self.kept = cp.asarray(self.place[first.kept_variables])
        self.sums: Any = None
        self.batch, self.in_batch, self.sweeps = -1, 0, 0
        self.records: tuple[Array, Array, Array] | None = None

    # -- what a method has to say --------------------------------------------------------------------------------

    fresh: ClassVar[bool]
    """Whether states are weighed anew for every draw; sweeps say what they gain otherwise."""

    def sweep(self, later: int, recorded: bool, by_states: bool) -> None:
        """Move all chains by the sweep that comes so much later than the clock says, and record it or not."""
        raise NotImplementedError

    # -- draws ---------------------------------------------------------------------------------------------------

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling.chains import INDICATORS

        by_states = bool(plan.mode == INDICATORS)
        if number == 0:
            self.draw(plan, by_states)
        assert self.records is not None
        logs, seen, chances = self.records
        rows = slice(plan.first, plan.first + plan.number)
        if len(plan.warm):
            plan.warm[rows] = logs[:, number]
            return
        chain.trace[rows, 0] = logs[:, number]
        if len(chain.traced):
            state = chain.traced - self.arrays.starts[chain.traced_owner]
            told = seen[:, number, self.traced] == state
            chain.trace[rows, 1:] = told if by_states else chances[:, number, self.traced, state]
        if len(chain.joint_variables):
            self._tally(chain, seen[:, number, self.joint], chances[:, number, self.joint], by_states)

    def draw(self, plan: DrawPlan, by_states: bool) -> None:
        """Move all chains on: batch by batch of recorded draws, or at one go."""
        warming = len(plan.warm) > 0
        watched = 0 if warming else len(self.watch)
        logs = cp.empty((plan.number, self.count))
        seen = cp.empty((plan.number, self.count, watched), dtype=np.uint8)
        chances = cp.empty((plan.number, self.count, watched, self.states), dtype=np.float32)
        notes = record(
            self.totals, self.heaviest, self.heavier, logs, self.watch, seen, chances, np.int32(watched),
            np.int32(self.fresh),
        )  # fmt: skip
        self.totals.fill(0)
        self.gains.fill(0)
        self.clock[1:] = 0
        if not self.fresh:
            self.launch("weigh", self.n, self.lanes, self.model)

        def one() -> None:
            for later in range(plan.thin):
                self.sweep(later, later == plan.thin - 1 and not warming, by_states)
            if self.fresh:
                self.launch("weigh", self.n, self.lanes, self.model)
            self.launch("note", max(watched, self.count), self.lanes, self.model, notes)
            if self.best is not None:
                self.launch("keep", self.n, 0, self.model, self.heavier, self.best)
            self.launch("tick", 1, 0, self.clock, np.uint32(plan.thin))

        batches, draws = self.run.chains[0].sums.shape[0], len(self.run.chains[0].trace)
        t, end = plan.first, plan.first + plan.number
        while t < end:
            until = end
            if not warming:
                batch = t * batches // draws
                if batch != self.batch:
                    self._close_batch()
                    self.batch = batch
                # the first draw of the next batch; one by one where the states of all are asked for
                until = t + 1 if len(self.kept) else min(end, -(-(batch + 1) * draws // batches))
                self.in_batch += until - t
            repeat(one, until - t)
            if not warming and len(self.kept):
                states = cp.asnumpy(self.x[self.kept])
                for c, chain in enumerate(self.run.chains):
                    chain.kept[t] = states[:, c]
            t = until
        self.sweeps += plan.number * plan.thin
        self.records = cp.asnumpy(logs), cp.asnumpy(seen), cp.asnumpy(chances)

    def launch(self, name: str, work: int, lanes: int, *arguments: Any) -> None:
        """Start a kernel with a thread for each piece of work, for all chains in groups of `lanes`, or once with 0."""
        block = min(BLOCK, -(-work // 32) * 32)
        groups = -(-self.count // lanes) if lanes else 1
        self.get_kernel(name)((min(-(-work // block), MOST_BLOCKS), groups), (block,), arguments)

    def update(self, low: int, high: int, draws: bool, later: int, recorded: bool, by_states: bool) -> None:
        """Draw variables that share no table, or (without `draws`) record the full conditionals of any."""
        self.launch(
            "update", high - low, self.lanes, self.model, np.int32(low), np.int32(high), np.int32(draws), np.uint32(later),
            self.sums if recorded else NONE, np.int32(by_states),
        )  # fmt: skip

    # -- records -------------------------------------------------------------------------------------------------

    def _tally(self, chain: "Chain", seen: Array, chances: Array, by_states: bool) -> None:
        """Add draws to the joint table: the states, or in turn each variable's distribution given all others."""
        strides = chain.joint_strides
        codes = seen.astype(np.int64)
        at = codes @ strides
        if by_states:
            np.add.at(chain.joint, at, 1.0)
            return
        for j, i in enumerate(chain.joint_variables):
            for k in range(self.arrays.cards[i]):
                np.add.at(chain.joint, at + (k - codes[:, j]) * strides[j], chances[:, j, k] / len(strides))

    def _close_batch(self) -> None:
        """Bring the sums of a batch of draws back, state 0 from what the others leave, and begin anew."""
        if self.sums is None:
            self.sums = cp.zeros((self.states - 1, self.count, self.n))
        if self.in_batch:
            real = np.arange(self.states) < self.arrays.cards[:, None]
            every, place = bool(real.all()), cp.asarray(self.place)
            for c, chain in enumerate(self.run.chains):
                table = cp.empty((self.n, self.states))
                table[:, 1:] = self.sums[:, c, place].T
                table[:, 0] = self.in_batch - table[:, 1:].sum(axis=1)
                told = cp.asnumpy(table)
                chain.sums[self.batch] = told.ravel() if every else told[real]
            self.sums.fill(0)
        self.in_batch = 0

    def finish(self, chains: "list[Chain]") -> None:
        """Bring what is still on the device back."""
        self._close_batch()
        x, best = cp.asnumpy(self.x), None if self.best is None else cp.asnumpy(self.best)
        for c, chain in enumerate(chains):
            chain.x[:] = x[self.place, c]
            if best is not None:
                chain.best[:] = best[self.place, c]


class DeviceSweeps(DeviceStepper):
    """Single-variable updates, colour by colour."""

    holds = True
    fresh = False

    def __init__(self, run: ChainSetUp, colours: list[Ints]) -> None:
        super().__init__(run, np.concatenate(colours))
        bounds = np.cumsum([0, *map(len, colours)]).tolist()
        self.colours = list(pairwise(bounds))

    def sweep(self, later: int, recorded: bool, by_states: bool) -> None:
        """Draw all variables once."""
        for low, high in self.colours:
            self.update(low, high, True, later, recorded, by_states)


class DeviceClusters(DeviceStepper):
    """Cluster moves of Swendsen and Wang; fields add up in whole numbers, so they do not depend on the order."""

    fresh = True

    def __init__(self, run: ChainSetUp, model: "Potts") -> None:
        super().__init__(run)
        n, chains, self.edges = self.n, self.count, len(model.bond)
        ends = [cp.asarray(e.astype(np.int32)) for e in (model.first, model.second)]
        parent = cp.empty((chains, n), dtype=np.int32)
        self.clusters = cp.zeros((SLOTS, chains), dtype=np.uint64)
        field = model.field.reshape(n, -1)
        finite = np.where(np.isneginf(field), 0.0, field)
        # the sum of all fields has to fit
        unit = 2.0 ** np.floor(60.0 - np.log2(1.0 + np.abs(finite).max(axis=1).sum()))
        self.fields = bool((field != field[:, :1]).any())
        fields: list[Any] = [NONE] * 3
        if self.fields:
            cells = chains, n, self.states
            fields = [cp.asarray(field), cp.empty(cells, dtype=np.int64), cp.empty(cells, dtype=np.uint8)]
        self.held = [*ends, cp.asarray(model.bond), parent, *fields, self.clusters]
        self.bonds = record(*self.held, np.float64(unit), np.int32(self.edges))

    def sweep(self, later: int, recorded: bool, by_states: bool) -> None:
        """Bond, and give every cluster a new state."""
        both = self.model, self.bonds
        self.launch("separate", self.n, 1, *both)
        if self.edges:
            self.launch("bond", self.edges, 1, *both, np.uint32(later))
        if self.fields:
            self.launch("gather", self.n, 1, *both)
        self.launch("settle", self.n, self.lanes, *both, np.uint32(later))
        if recorded:
            self.update(0, self.n, False, later, True, by_states)

    @property
    def mean_cluster(self) -> float:
        """Variables in a cluster, on average."""
        return self.n * self.count * self.sweeps / max(1, int(self.clusters.sum()))


def record(*fields: Any) -> NDArray[Any]:
    """Return addresses of arrays and numbers as a kernel takes them in one structure; the arrays have to be kept alive.

    Examples
    --------
    >>> record(np.int32(3), np.float64(0.5)).itemsize  # where a compiler would put them
    16
    """
    kinds = [(f"f{i}", f.dtype if isinstance(f, np.generic) else np.uintp) for i, f in enumerate(fields)]
    values = tuple(f if isinstance(f, np.generic) else f.data.ptr for f in fields)
    return np.array([values], dtype=np.dtype(kinds, align=True))


def repeat(work: Callable[[], None], times: int) -> None:
    """Start kernels again and again: after the first time as a graph, which takes one call of the driver a time."""
    work()
    stream = cp.cuda.Stream(non_blocking=True)
    if times < GRAPH_FROM or not hasattr(stream, "begin_capture"):
        for _ in range(times - 1):
            work()
        return
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        work()
        graph = stream.end_capture()
        for _ in range(times - 1):
            graph.launch(stream)
    stream.synchronize()
