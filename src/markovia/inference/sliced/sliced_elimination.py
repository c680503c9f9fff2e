"""Exact inference in slices, on all cores or on a GPU: for tables as large as the memory, and larger.

Method: states that the evidence or the zeros of tables rule out are removed first (`pruned_states`); an elimination order is
searched for as long as it may save (`long_order_search`); its buckets become products that never build a clique; variables
are cut where messages do not fit (`sliced_plan`), and the products run on a machine of tables (`table_machines`): NumPy for
small ones, compiled code on all cores, CUDA. Every table is held relative to its largest entry.
References: Dechter (1999), "Bucket elimination"; Darwiche (2001), "Recursive conditioning".
Cost: the entries of the plan, at some 10**8 a second on each core and 10**11 on a GPU; it is known before it is paid.
Use it where a junction tree does not fit the memory or takes minutes. `auto` does, and uses a GPU where one is there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf, log, log2, prod
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.tables.factor import Factor
from markovia.inference.exact.bucket_tree import Net
from markovia.inference.exact.junction_tree import by_logarithms
from markovia.inference.exact.long_order_search import OrderCost, long_search
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, LogMass, Ranked, Record, Tables
from markovia.inference.sliced.product_layout import TableMachine
from markovia.inference.sliced.pruned_states import Pruned, prune
from markovia.inference.sliced.sliced_plan import SlicedPlan
from markovia.inference.sliced.sliced_run import SlicedRun
from markovia.inference.sliced.slicing import Rate, Slicing, measured, sliced_to_fit
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Bytes, Positive, TimeLimit, check_options
from markovia.runtime.devices import Device, DeviceFailure, free_memory, gpu, on_device, usable_gpu
from markovia.runtime.memory_budget import default_budget, readable
from markovia.runtime.progress import progress_bar, say_once
from markovia.runtime.threads import thread_count

T = TypeVar("T")
Whole = TypeVar("Whole")

CPU_ENTRIES, CPU_PRODUCT = 2e8, 3e-5
"""Entries a second that a core gets through, about, and seconds that a product takes besides."""
ONE_CORE, GPU_RATE = Rate(CPU_ENTRIES, CPU_PRODUCT), Rate(1e11, 3e-5, 1.0)
"""What a core gets through, and a GPU, about, which takes a second to start."""
FEW_BYTES = 2.0**20
"""Bytes of tables that are written out under any budget."""
GPU_ENTRIES = 1e7
"""Table entries below which a model does not gain from a GPU: the launches of kernels take longer than a tree."""
GPU_SHARES = 0.8, 0.3
"""Parts of the GPU's memory that are filled with tables, the second where the first does not do: the rest is in pieces."""
WORTH_A_GPU = 2.0
"""Seconds of the processor above which a GPU is looked for."""
SEARCH_SHARE, LEAST_SEARCH, MOST_SEARCH, STEP_RATE = 0.2, 0.01, 60.0, 1e8
"""The part of a run's time that the search for its order may take, seconds at least and at most, and steps a second."""
OUT_OF_REACH = 4096.0
"""Times the time limit that a greedy order may take for a search to be tried; less after each."""
TOLD = 2.0
"""Seconds from which on an estimate is told, and progress is shown."""
SLACK = 1.5
"""By how much an estimate may be over the time limit: it is no better."""
KEPT_ORDERS = 8
CHUNK = 1 << 16
"""Draws that choose their states together."""


@dataclass(frozen=True)
class SlicedDetails:
    """How large an elimination in slices was, and where it ran.

    Attributes
    ----------
    width, largest_table
        The variables of the largest bucket less one, and its entries; a bucket is never a table in memory.
    entries
        Entries gone through in all.
    cut, turns
        The variables that were taken one state at a time, and their joint states.
    device
        "cpu" or "gpu".
    estimated_seconds
        What the run was estimated to take.
    precision
        Of the tables: "double", or "single" with sums in double.
    """

    width: int
    largest_table: float
    entries: float
    cut: tuple[str, ...]
    turns: int
    device: str
    estimated_seconds: float
    precision: str = "double"


@dataclass(frozen=True)
class SlicedElimination:
    """Exact inference in slices that fit the memory of the processor or of a GPU.

    Parameters
    ----------
    device
        "cpu", "gpu", or None for the GPU where one is there and the processor would take seconds.
    max_bytes
        What tables may take at a time; by default 80% of the free memory of the processor, 90% of the GPU's.
    max_operations
        Refuse with `TooLarge` what goes through more table entries.
    time_limit
        Refuse what is estimated to take longer, in seconds.
    search
        Seconds of order search at most; by default a fifth of what the run takes, at most a minute.
    precision
        On a GPU, "single" halves the memory: numbers with 24 bits, products and sums with 53.
    progress
        Show a progress bar; by default on a terminal.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(8, 8, coupling=0.4)
    >>> small = mk.engines.SlicedElimination(max_bytes=12_000)
    >>> bool(abs(grid.log_partition(engine=small) - grid.log_partition()) < 1e-9)
    True
    >>> grid.query(grid.variables[0], engine=small).info.details.turns > 1
    True
    """

    device: Device | None = None
    max_bytes: Bytes = None
    max_operations: Positive = 1e15
    time_limit: TimeLimit = None
    search: TimeLimit = None
    precision: Literal["double", "single"] = "double"
    progress: bool | None = None

    name: ClassVar[str] = "sliced-elimination"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        shape = [len(problem.variables[t]) for t in targets]
        size, budget = 8.0 * prod(shape), self._budget()
        if size > budget:
            raise TooLarge(
                f"a table over the {len(targets)} targets has {prod(shape):,} entries ({readable(size)}); the budget is "
                f"{readable(budget)}. Ask for fewer variables at once, or for marginals",
                bytes=size,
            )
        work = _SlicedWork(self, problem, targets, keep=targets)

        def answer(run: SlicedRun) -> tuple[Array, float] | None:
            run.up()
            log_mass = sum(run.log_masses())
            if log_mass == -inf:
                return None
            if not work.keep:
                return np.ones(()), log_mass
            table, log_scale = run.answer()
            total = float(table.sum())
            return (table / total, log_mass + log_scale + log(total)) if total > 0.0 else None

        found = work.ask(answer, lambda engine: engine.joint(problem, targets))
        if isinstance(found, Tables):
            return found
        table, log_mass = np.zeros(shape), -inf
        if found[0] is not None:
            opened, log_mass = found[0][0], work.total(found[0][1])
            at = [work.pruned.kept[work.ids[t]] for t in targets]
            table[np.ix_(*at)] = opened.reshape([len(a) for a in at])  # where one state is left, one entry
        answered = Factor.of(tuple([problem.variables[t] for t in targets]), table)
        return Tables([answered], log_mass, found[1])

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        if not targets:
            return Tables([], self.log_mass(problem))
        work = _SlicedWork(self, problem, targets, beliefs=targets)

        def answer(run: SlicedRun) -> tuple[list[Array], float] | None:
            run.up(keep=True)
            log_mass = sum(run.log_masses())
            if log_mass == -inf:
                return None
            beliefs = run.down(work.beliefs)
            return [_normalised(run.machine, beliefs[v]) for v in work.beliefs], log_mass

        found = work.ask(answer, lambda engine: engine.marginals(problem, targets))
        if isinstance(found, Tables):
            return found
        if found[0] is None:
            return Tables([], -inf, found[1])
        opened, log_mass = found[0]
        tables = []
        own = dict(zip(work.beliefs, opened, strict=True))
        for t in targets:
            values = np.zeros(len(problem.variables[t]))
            v = work.ids[t]
            values[work.pruned.kept[v]] = own.get(v, 1.0)
            tables.append(Factor.of((problem.variables[t],), values))
        return Tables(tables, work.total(log_mass), found[1])

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings; minus infinity for none."""
        work = _SlicedWork(self, problem, ())

        def answer(run: SlicedRun) -> float:
            run.up()
            return sum(run.log_masses())

        found = work.ask(answer, lambda engine: engine.log_mass(problem))
        if isinstance(found, LogMass):
            return found
        return LogMass(-inf if found[0] is None else work.total(found[0]), found[1])

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out.

        The rows that the best choices are made from tell what every other choice would lose; a best-first search over
        deviations goes down once for each assignment.
        """
        work = _SlicedWork(self, problem, targets, best=targets)

        def answer(run: SlicedRun) -> list[tuple[float, Ints]]:
            run.up(keep=True)
            log_best = sum(run.log_masses())
            return [] if log_best == -inf else _ranked(run, log_best, m)

        found = work.ask(answer, lambda engine: engine.best(problem, targets, m))
        if isinstance(found, Ranked):
            return found
        ranked = Ranked(record=found[1])
        for log_weight, codes in found[0] or ():
            kept = work.pruned.kept
            named = {t: int(kept[work.ids[t]][codes[work.ids[t]]]) for t in targets}
            ranked.append(Assignment(named, work.total(log_weight)))
        return ranked

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""
        work = _SlicedWork(self, problem, None, rows=max(n, 1))
        before = rng.bit_generator.state

        def choose(v: int, logs: Array) -> Ints:
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            edges = weights.cumsum(axis=1)
            draws: Ints = (edges <= rng.random((len(logs), 1)) * edges[:, -1:]).sum(axis=1)
            return draws

        def answer(run: SlicedRun) -> Ints | None:
            rng.bit_generator.state = before  # where the processor takes over, it draws the same
            run.up(keep=True)
            if sum(run.log_masses()) == -inf:
                return None
            codes = np.zeros((n, len(work.pruned.cards)), dtype=np.int64)
            for first in range(0, n, CHUNK):
                run.choose(codes[first : first + CHUNK], choose, [True] * len(run.plan.buckets))
            return codes

        found = work.ask(answer, lambda engine: engine.sample(problem, n, rng))
        if isinstance(found, Draws):
            return found
        codes, record = found
        if codes is None:
            return Draws({}, record)
        rows = {name: work.pruned.kept[v][codes[:, v]] for name, v in work.ids.items()}
        return Draws({name: rows[name] for name in problem.free}, record)

    def _budget(self) -> float:
        return default_budget() if self.max_bytes is None else self.max_bytes


class _SlicedWork:
    """A question made ready: what is left of the tables, and what is asked of which variables."""

    def __init__(
        self,
        settings: SlicedElimination,
        problem: Problem,
        targets: Sequence[str] | None,
        keep: Sequence[str] = (),
        beliefs: Sequence[str] = (),
        best: Sequence[str] = (),
        rows: int = 0,
    ) -> None:
        self.settings, self.memory = settings, problem.memory
        net = Net(problem.parts(targets))
        self.ids, self.names = net.ids, [v.name for v in net.variables]
        size = 8.0 * sum([float(prod([net.cards[v] for v in scope])) for scope in net.scopes])
        if size > (budget := settings._budget()) and size > FEW_BYTES:  # a conditional that is no table yet
            raise TooLarge(
                f"the model's tables take {readable(size)} when they are written out; the budget is {readable(budget)}. "
                "engine='auto' keeps recipes such as NoisyOr apart",
                bytes=size,
            )
        tables = net.tables()
        # what is summed over in the end may go at once; draws need all variables
        asked = {self.ids[t] for t in (*keep, *beliefs, *best)}
        hidden = () if rows else set(range(len(net.cards))) - asked
        self.pruned: Pruned = prune([scope for scope, _ in tables], [t for _, t in tables], net.cards, hidden)
        self.keep, self.beliefs, self.maximised = (
            [self.ids[t] for t in asked if self.pruned.cards[self.ids[t]] > 1]
            for asked in (keep, beliefs, best)
        )
        self.rows = 1 if best else rows
        mentioned = {v for scope in self.pruned.scopes for v in scope}
        self.open = mentioned.difference(self.keep)
        # what is summed comes before what is maximised
        self.last = (*(self.maximised if len(self.maximised) < len(self.open) else ()), *self.keep)

    def total(self, log_mass: float) -> float:
        """Return a log mass with what fell out of the tables."""
        return float(log_mass + self.pruned.log_scale)

    def ask(
        self, answer: Callable[[SlicedRun], T], in_logs: Callable[[VariableElimination], Whole]
    ) -> tuple[T | None, Record] | Whole:
        """Run on the device that was asked for, or on the one that is faster; return the answer with its record.

        There is no answer where nothing has any mass. What leaves the range of doubles is asked of elimination with
        logarithms, whose answer comes alone.
        """
        if not self.pruned.possible:
            return None, Record(details=SlicedDetails(0, 0.0, 0.0, (), 1, "cpu", 0.0))
        if self._device() == "gpu":
            found = on_device(lambda: self._on_gpu(answer), lambda: self._answered("cpu", answer))
        else:
            found = self._answered("cpu", answer)
        if found is None:
            return by_logarithms(in_logs(VariableElimination(max_bytes=self.settings.max_bytes)))
        return found

    def _device(self) -> Device:
        """Return where to run: as asked, else on a GPU that is there if the processor would take long."""
        asked = self.settings.device
        if asked == "gpu":
            return "cpu" if usable_gpu() is None else "gpu"
        if asked == "cpu":
            return "cpu"
        order = [
            v
            for v in long_search(self.pruned.scopes, self.pruned.cards, 0.0, last=self.last)
            if v in self.open
        ]
        total = SlicedPlan(self.pruned.scopes, self.pruned.cards, order, self.keep).total
        return "gpu" if total > WORTH_A_GPU * CPU_RATE().entries and gpu() is not None else "cpu"

    def _order(self, rate: Rate) -> list[int]:
        """Search an order: longer and longer, while the search takes a small part of the run."""
        scopes, cards, settings = self.pruned.scopes, self.pruned.cards, self.settings
        last = self.last
        known: dict[Any, tuple[list[int], float]] = (
            {} if self.memory is None else self.memory.setdefault("sliced orders", {})
        )
        # the order of draws depends on no machine, nor on what was asked before: the same seed gives the same rows
        draws = self.rows > 0 and not self.maximised
        rate = ONE_CORE if draws else rate
        key = tuple(scopes), tuple(cards), last, tuple(self.keep), draws
        order, spent = known.pop(key, (None, 0.0))
        cost = OrderCost(bucket=rate.product * rate.entries)
        limit = inf if settings.time_limit is None else settings.time_limit
        reach = OUT_OF_REACH
        best = inf if order is None else SlicedPlan(scopes, cards, order, self.keep).total
        while True:
            if order is None:
                search = 0.0  # a greedy order
            else:
                seconds = rate.seconds(best, len(order))
                most = settings.search
                if most is None:
                    most = min(SEARCH_SHARE * min(seconds, limit), MOST_SEARCH)
                if most < max(2.0 * spent, LEAST_SEARCH) or seconds > reach * limit:
                    break
                search, reach = min(most, max(4.0 * spent, 1.0)), max(reach / 64.0, 4.0)
            found = long_search(
                scopes,
                cards,
                search * STEP_RATE,
                cost,
                last,
                time_limit=None if draws else 3.0 * search or None,
                progress=settings.progress if search > TOLD else False,
                searches=2 if draws else None,
            )
            spent += search
            found = [v for v in found if v in self.open]
            total = SlicedPlan(scopes, cards, found, self.keep).total
            if order is None or total < best:
                order, best = found, total
        while len(known) >= KEPT_ORDERS:
            known.pop(next(iter(known)))
        known[key] = order, spent
        return order

    def _planned(self, rate: Rate, limit: float) -> Slicing:
        """Return a plan that fits, or raise `TooLarge`."""
        settings, maximised = self.settings, frozenset(self.maximised)
        order = self._order(rate)
        plan = SlicedPlan(self.pruned.scopes, self.pruned.cards, order, self.keep, maximised)
        most = rate.seconds(settings.max_operations, 0.0)
        if settings.time_limit is not None:
            most = min(most, SLACK * settings.time_limit)
        found = sliced_to_fit(plan, limit, self.beliefs or None, rate, most, self.rows)
        if not found.fits or found.seconds > most:
            raise TooLarge(
                f"elimination in slices would go through {'at least ' * (not found.fits)}2**{log2(found.entries):.1f} "
                f"table entries in {found.turns:,} slices (width {plan.width}), about {duration(found.seconds)}, with "
                f"{readable(8.0 * found.held)} of tables at a time; the limits are {readable(8.0 * limit)} and "
                f"{duration(most)}. Add evidence, ask for fewer variables, or raise max_bytes=, "
                "max_operations= or the time limit",
                bytes=8.0 * found.held,
                operations=found.entries,
            )
        return found

    def _on_gpu(self, answer: Callable[[SlicedRun], T]) -> tuple[T, Record] | None:
        """Run on the GPU; where its memory does not do, being in pieces or shared with others, in smaller slices."""
        for share in GPU_SHARES:
            try:
                return self._answered("gpu", answer, share)
            except DeviceFailure as failure:
                if share == GPU_SHARES[-1] or "out of memory" not in str(failure).lower():
                    raise
            free_memory()
        raise AssertionError

    def _answered(
        self, device: Device, answer: Callable[[SlicedRun], T], share: float = 1.0
    ) -> tuple[T, Record] | None:
        """Run on a device; None where numbers left the range of doubles."""
        settings = self.settings
        machine: TableMachine
        if device == "gpu":
            from markovia.inference.sliced.cuda_tables import CudaTables

            machine = CudaTables(settings.precision, settings.max_bytes)
            rate, item = GPU_RATE, 4.0 if settings.precision == "single" else 8.0
        else:
            from markovia.inference.sliced.compiled_tables import CompiledTables

            machine, rate, item = CompiledTables(settings.max_bytes), CPU_RATE(), 8.0
        slicing = self._planned(rate, share * machine.budget / item)
        plan, seconds = slicing.plan, slicing.seconds
        if seconds > TOLD:
            where = "the GPU" if device == "gpu" else f"{thread_count()} threads"
            turns = f" in {slicing.turns:,} slices" if slicing.turns > 1 else ""
            say_once(
                f"exact elimination{turns}: 2**{log2(slicing.entries):.1f} entries, about {duration(seconds)} on {where}"
            )
        with progress_bar(
            settings.progress if seconds > TOLD else False,
            int(slicing.entries),
            unit="entry",
            scale=True,
            name=self.settings.name,
        ) as advance:
            run = SlicedRun(plan, machine, self.pruned.tables, lambda n: advance(int(n)))
            found = answer(run)
        if machine.lost():
            return None
        details = SlicedDetails(
            plan.width,
            plan.largest,
            slicing.entries,
            tuple([self.names[v] for v in plan.order if v in plan.cuts]),
            slicing.turns,
            device,
            seconds,
            settings.precision if device == "gpu" else "double",
        )
        return found, Record(details=details)


class Estimate(NamedTuple):
    """What all marginals take, in an order that is found at once: table entries, and seconds by device.

    A search finds a better order where that pays. There are no seconds for a GPU where the model is too small to gain.
    """

    entries: float
    seconds: dict[str, float]


def estimate(problem: Problem) -> Estimate:
    """Return what all marginals of a problem take, without running it.

    Examples
    --------
    >>> import markovia as mk
    >>> asia = estimate(mk.examples.asia()._problem(None))
    >>> asia.entries < 1000, list(asia.seconds)
    (True, ['cpu'])
    """
    work = _SlicedWork(SlicedElimination(), problem, None, beliefs=problem.free)
    scopes, cards = work.pruned.scopes, work.pruned.cards
    order = [v for v in long_search(scopes, cards, 0.0) if v in work.open]
    entries, products, _ = measured(SlicedPlan(scopes, cards, order), sorted(work.open))
    seconds = {"cpu": CPU_RATE().seconds(entries, products)}
    if entries > GPU_ENTRIES:
        seconds["gpu"] = GPU_RATE.seconds(entries, products)
    return Estimate(entries, seconds)


def CPU_RATE() -> Rate:  # noqa: N802
    """Return what the processor gets through, about."""
    return Rate(CPU_ENTRIES * thread_count(), CPU_PRODUCT)


def _normalised(machine: Any, tables: Sequence[Any]) -> Array:
    """Return a belief that sums to one, from one table, or from one number for each state."""
    read = [machine.numbers(t) for t in tables]
    if len(read) == 1:
        values = np.asarray(read[0][0], dtype=float).reshape(-1)
    else:
        logs = np.array(
            [log(float(n.reshape(-1)[0])) + s if n.reshape(-1)[0] > 0.0 else -inf for n, s in read]
        )
        values = np.exp(logs - logs.max())
    return np.asarray(values / values.sum())


def _ranked(run: SlicedRun, log_best: float, m: int) -> list[tuple[float, Ints]]:
    """Return the m best assignments, best first: each is the best one that deviates from an earlier one at some choice."""
    buckets = run.plan.buckets
    chosen = [b.maximised for b in buckets]
    serial = count()
    heap: list[tuple[float, int, list[int]]] = [(0.0, next(serial), [])]
    found: list[tuple[float, Ints]] = []
    while heap and len(found) < m:
        regret, _, forced = heappop(heap)
        rows: list[Array] = []
        states: list[int] = []

        def choose(
            v: int, logs: Array, forced: list[int] = forced, rows: Any = rows, states: Any = states
        ) -> Ints:
            k = len(states)
            rows.append(logs[0])
            states.append(forced[k] if k < len(forced) else int(logs[0].argmax()))
            return np.array(states[-1:])

        codes = np.zeros((1, len(run.plan.cards)), dtype=np.int64)
        run.choose(codes, choose, chosen)
        found.append((log_best - regret, codes[0]))
        if m == 1:
            break
        for k in range(len(forced), len(states)):
            top = float(rows[k][states[k]])
            for state, value in enumerate(rows[k].tolist()):
                if state != states[k] and value > -inf:
                    loss = regret + max(0.0, top - value)
                    heappush(heap, (loss, next(serial), [*states[:k], state]))
    return found


def duration(seconds: float) -> str:
    """Return a time such as `3.5 minutes`."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"
