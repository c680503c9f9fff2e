"""Choosing an engine by estimated cost: exact if it fits, otherwise approximate.

The choice, in this order:

- Marginal MAP (maxima over some variables, sums over others) goes to variable elimination, which knows how to do both.
- Draws depend on the engine, so their choice looks at the size of the model alone: the same seed gives the same rows.
- Once the compiled kernels are loaded, everything else goes to the junction tree: it keeps what it computed.
- Until then a first answer never waits for a compiler: variable elimination in NumPy answers, unless its own estimate says
  that it would take long. Then the kernels are loaded (half a second), or compiled if they never were (some seconds, once an
  installation), where that is still faster. Many small answers add up to the same decision.
- Where the tree does not fit the memory budget, elimination in slices answers if it takes minutes by its own estimate.
- Where a GPU is there, what would take the processor seconds goes to it, in slices where it does not fit; with
  `device="gpu"` everything that gains from it.
- Where no exact engine fits the memory or the time limit, approximate engines answer in turn (see `escalation`), and the
  answer says so; with `approximate=False`, `TooLarge` says what an exact answer would need.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np

from markovia.errors import ApproximateWarning, TooLarge, warn_user
from markovia.inference.engine import get_engine
from markovia.inference.exact.bucket_tree import Net
from markovia.inference.exact.hopeless_width import HOPELESS, hopeless
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.inference.result import Draws, LogMass, Ranked, Record, Tables
from markovia.kernels.compiled_code import is_awaited, loaded, on_disk
from markovia.runtime.checks import Bytes, FromZero, TimeLimit, check_options
from markovia.runtime.clock import now
from markovia.runtime.devices import Device, gpu, usable_gpu

if TYPE_CHECKING:
    from markovia.inference.choosing.escalation import SharedTime
    from markovia.inference.exact.junction_tree import JunctionTree
    from markovia.inference.sliced.sliced_elimination import SlicedElimination

T = TypeVar("T")
Question = Literal["joint", "marginals", "log_mass", "best", "sample"]
Exact: TypeAlias = "VariableElimination | JunctionTree | SlicedElimination"

NUMPY_RATE = 1e8
"""Table entries a second that elimination in NumPy gets through, about."""
DRAWN = 1e7
"""Table entries above which draws come from the junction tree."""
PATIENCE = 300.0
"""Seconds that elimination in slices may take without being asked for by name, by its estimate."""
FAR, MANY = 100.0, 3000
"""Times the time limit that a tree may take, and variables, up to which elimination in slices is tried: removing states and
searching longer save up to a thousand times, but not where both are exceeded."""
GPU_SECONDS = 3.0
"""Seconds of a tree above which a GPU is looked for."""
NO_GAIN = "the model is too small to gain from the GPU"
MOST_ANSWERED = 2**24
"""Entries of a joint answer that approximate engines fill in."""
TREE_RATE = 3e8
"""Table entries a second that a junction tree gets through in one direction, about, on two cores."""
SMALL_TREE = "auto found the tree small"
SLACK = 1.5
"""By how much the estimated time of a tree may be over the limit: the estimate is no better."""
WORTH_SEARCHING = 5e8
"""Table entries above which ten times the search for an order costs little beside the run."""
OUT_OF_REACH = 1e14
"""Operations above which no search will bring a tree down to what fits."""
RUN = "markovia.kernels.clique_trees.propagation:run"
LAST = "markovia.kernels.clique_trees.clique_tables:table_of"
"""The last kernel that `load_tree_kernels` uses."""
LOAD_SECONDS = 0.5
COMPILE_SECONDS = 10.0
HOW_DRAWN = {
    "gibbs": "come from a Markov chain (Gibbs sampling)",
    "likelihood-weighting": "are resampled from weighted draws (likelihood weighting)",
}

_spent = 0.0
"""Seconds of NumPy elimination in this process so far."""


@dataclass(frozen=True)
class Auto:
    """An exact engine that fits the memory and the time, otherwise approximate ones; the answer says which it was.

    Parameters
    ----------
    max_bytes
        The memory budget of exact engines; 80% of the free memory by default.
    time_limit
        Seconds an answer may take, about. Without a limit exact engines may take minutes, and approximate ones stop as
        soon as one has converged; with one, approximate engines use the time to get closer.
    seed
        Seed of the samplers and searches among the approximate engines.
    approximate
        Whether approximate engines may answer; otherwise `TooLarge` is raised where no exact one fits.
    device
        "gpu" asks for a GPU, "cpu" for the processor; None takes a GPU that is there for what takes the processor seconds.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.examples.sprinkler().query("wet", engine=mk.engines.Auto(time_limit=1.0)).info.exact
    True
    """

    max_bytes: Bytes = None
    time_limit: TimeLimit = None
    seed: FromZero = 0
    approximate: bool = True
    device: Device | None = None

    name: ClassVar[str] = "auto"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        entries = prod([len(problem.variables[t].states) for t in targets])
        engine, found, note = self._ask(
            problem,
            "joint",
            targets,
            lambda e: e.joint(problem, targets),
            None
            if entries > MOST_ANSWERED
            else lambda clock: _escalation().joint(problem, targets, clock, self.seed),
        )
        return _signed(engine, found, note)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        engine, found, note = self._ask(
            problem,
            "marginals",
            targets,
            lambda e: e.marginals(problem, targets),
            lambda clock: _escalation().marginals(problem, targets, clock, self.seed),
        )
        return _signed(engine, found, note)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings; warns where it is approximate."""

        def roughly(clock: "SharedTime") -> LogMass:
            found: LogMass = _escalation().log_mass(problem, clock, self.seed)
            if not found.record.exact:
                warn_user(
                    f"the log mass is approximate (by {found.record.engine}): no exact engine fits; "
                    "log_partition(bounds=True) gives bounds",
                    ApproximateWarning,
                )
            return found

        engine, found, note = self._ask(problem, "log_mass", (), lambda e: e.log_mass(problem), roughly)
        return LogMass(found, _by(engine, found.record, note))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out."""
        engine, found, note = self._ask(
            problem,
            "best",
            targets,
            lambda e: e.best(problem, targets, m),
            None if m > 1 else lambda clock: _escalation().best(problem, targets, clock, self.seed),
        )
        return Ranked(found, _by(engine, found.record, note))

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""

        def roughly(clock: "SharedTime") -> Draws:
            rows: Draws = _escalation().sample(problem, n, rng)
            warn_user(
                f"the rows {HOW_DRAWN[rows.record.engine or 'gibbs']} and are not independent: no exact engine fits",
                ApproximateWarning,
            )
            return rows

        def drawn(engine: Exact) -> Draws:
            if engine.log_mass(problem) == -np.inf:
                raise impossible(problem, engine.log_mass)
            return engine.sample(problem, n, rng)

        engine, rows, note = self._ask(problem, "sample", None, drawn, roughly)
        return Draws(rows, _by(engine, rows.record, note))

    def _ask(
        self,
        problem: Problem,
        question: Question,
        targets: Sequence[str] | None,
        ask: Callable[[Exact], T],
        roughly: "Callable[[SharedTime], T] | None",
    ) -> tuple[str, T, str]:
        global _spent
        start = now()
        note = ""
        try:
            _refuse_hopeless(problem, question, targets)
            engine: Exact | None = None
            if self.device == "gpu" and usable_gpu() is not None:
                from markovia.inference.sliced.sliced_elimination import GPU_ENTRIES

                if _entries(problem, None if question in ("best", "sample") else targets) > GPU_ENTRIES:
                    engine = self._sliced()
                else:
                    note = NO_GAIN
            chosen = self.choose(problem, question, targets) if engine is None else engine
            try:
                engine = self._affordable(chosen, problem, question, targets)
                found = ask(engine)
            except TooLarge:
                if not isinstance(chosen, VariableElimination) or _needs_elimination(
                    problem, question, targets
                ):
                    raise
                # a tree takes less memory; it would have been asked at once if it were loaded
                engine = self._affordable(self._tree(), problem, question, targets)
                found = ask(engine)
        except TooLarge as too_large:
            engine = self._sliced()
            limit = PATIENCE if self.time_limit is None else self.time_limit
            try:
                far = too_large.operations is not None and too_large.operations > FAR * TREE_RATE * limit
                if far and len(problem.variables) > MANY:
                    raise
                return engine.name, ask(engine), note
            except TooLarge:
                if roughly is None or not self.approximate:
                    raise too_large from None
            clock = _escalation().SharedTime(self.time_limit, start)
            return "approximate", roughly(clock), note
        if isinstance(engine, VariableElimination):
            _spent += now() - start
        return engine.name, found, note

    def _affordable(
        self, engine: Exact, problem: Problem, question: Question, targets: Sequence[str] | None
    ) -> Exact:
        """Return the engine, a large tree with a longer search for its order; refuse one that takes too long."""
        memory = problem.memory
        if self.time_limit is None and memory is not None and SMALL_TREE in memory:
            return engine
        from markovia.inference.exact.junction_tree import JunctionTree

        if not isinstance(engine, JunctionTree):
            return engine
        everything = question in ("best", "sample")
        asked = None if everything or targets is None else targets
        passes = {"log_mass": 1.0, "best": 4.0}.get(
            question, 3.0
        )  # the masses of a best assignment are asked for too
        try:
            plan = engine.compiled(problem, asked)[0].plan
        except TooLarge as too_large:
            if too_large.operations is None or too_large.operations > self._reach():
                raise
            plan = None
        if plan is None or self._reach() > 4 * plan.total > 4 * WORTH_SEARCHING:
            engine = replace(engine, search=10.0)
            plan = engine.compiled(problem, asked)[0].plan
        elif memory is not None:
            memory[SMALL_TREE] = True
        seconds = plan.total * passes / TREE_RATE
        if seconds > GPU_SECONDS and self.device is None and gpu() is not None:
            return self._sliced()
        if self.time_limit is not None and seconds > SLACK * self.time_limit:
            raise TooLarge(
                f"an exact answer would take about {seconds:,.0f} s, over time_limit={self.time_limit:g}",
                bytes=plan.bytes,
                operations=4 * plan.total,
            )
        return engine

    def _reach(self) -> float:
        """Return the operations above which no search brings a tree down to what fits the time."""
        return (
            OUT_OF_REACH if self.time_limit is None else min(OUT_OF_REACH, 40 * TREE_RATE * self.time_limit)
        )

    def choose(self, problem: Problem, question: Question, targets: Sequence[str] | None) -> Exact:
        """Return the engine that is estimated to answer first."""
        if question != "sample" and _needs_elimination(problem, question, targets):
            return VariableElimination(max_bytes=self.max_bytes)
        if question == "sample":  # the same seed gives the same rows, whatever is loaded
            plan = VariableElimination(max_bytes=self.max_bytes).planned(Net(problem.parts(None)))
            return self._tree() if sum(plan.sizes) > DRAWN else VariableElimination(max_bytes=self.max_bytes)
        if kernels_loaded():
            return self._tree()
        elimination = VariableElimination(max_bytes=self.max_bytes)
        if len(problem.variables) < 50 and self.time_limit is None:
            scopes = [len(p.names) for p in problem.pieces]
            if max(scopes, default=0) <= 3 and len(scopes) <= 50:
                return self._tree() if _spent > LOAD_SECONDS and _spent > _wait() else elimination
        wait = _wait()
        if _spent > wait:
            return self._tree()
        net = Net(problem.parts(None if question == "best" else targets))
        plan = elimination.planned(net)
        seconds = sum(plan.sizes) * (3 if question == "marginals" else 1) / NUMPY_RATE
        # what elimination does within the time limit the tree does too, so that what is loaded decides nothing
        limit = wait if self.time_limit is None else min(wait, self.time_limit)
        return self._tree() if seconds > limit else elimination

    def _sliced(self) -> "SlicedElimination":
        from markovia.inference.sliced.sliced_elimination import SlicedElimination

        limit = PATIENCE if self.time_limit is None else self.time_limit
        return SlicedElimination(device=self.device, max_bytes=self.max_bytes, time_limit=limit)

    def _tree(self) -> "JunctionTree":
        return _junction_tree(self.max_bytes)


@cache
def _junction_tree(max_bytes: float | None) -> "JunctionTree":
    from markovia.inference.exact.junction_tree import JunctionTree

    return JunctionTree(max_bytes=max_bytes)


def _signed(engine: str, found: Tables, note: str) -> Tables:
    """Return tables whose record says who answered."""
    if found.record.engine and not note:
        return found
    return Tables(found.tables, found.log_mass, _by(engine, found.record, note))


def _by(engine: str, record: Record, note: str) -> Record:
    """Return a record that says who answered, and why if there is something to say."""
    if note:
        record = replace(record, note=f"{record.note}; {note}" if record.note else note)
    return record if record.engine else replace(record, engine=engine)


def _entries(problem: Problem, targets: Sequence[str] | None) -> float:
    """Return the table entries of elimination in an order that is found quickly."""
    return sum(VariableElimination().planned(Net(problem.parts(targets))).sizes)


def _needs_elimination(problem: Problem, question: Question, targets: Sequence[str] | None) -> bool:
    """Say whether a question has the same engine whatever is loaded: marginal MAP, and draws."""
    some = question == "best" and targets is not None and len(targets) < len(problem.free)
    return some or question == "sample"


def _escalation() -> Any:
    """Return the module that answers where no exact engine fits."""
    from markovia.inference.choosing import escalation

    return escalation


def _refuse_hopeless(problem: Problem, question: Question, targets: Sequence[str] | None) -> None:
    """Raise `TooLarge` without any search where a junction tree is out of reach."""
    asked = None if question in ("best", "sample") else targets
    if hopeless(problem, asked):
        raise TooLarge(
            f"exact inference is out of reach: eliminating in a good order makes a table of over 2**{HOPELESS:.0f} entries",
            bytes=8 * 2.0**HOPELESS,
            operations=np.inf,
        )


def kernels_loaded() -> bool:
    """Say whether the compiled kernels are in memory."""
    return loaded(RUN)


def kernels_on_disk() -> bool:
    """Say whether compiled kernels of an earlier run are on disk for this version of Python."""
    return on_disk(RUN)


def tree_kernels_on_disk() -> bool:
    """Say whether all that `load_tree_kernels` loads is on disk, not only what small trees need."""
    return on_disk(RUN) and on_disk(LAST)


def _wait() -> float:
    """Return the seconds until the kernels would be loaded; without end while another process compiles them."""
    return inf if is_awaited() else LOAD_SECONDS if kernels_on_disk() else COMPILE_SECONDS


def load_kernels(engines: str | Sequence[str] = ()) -> float:
    """Load the compiled kernels now, compiling them if they never were; return the seconds it took.

    Parameters
    ----------
    engines
        Names of engines whose kernels are wanted besides those of the junction tree, or "all" for every engine. Compiling
        those of all engines takes some minutes, once an installation.

    Examples
    --------
    >>> load_kernels() >= 0.0
    True
    """
    from markovia.inference.choosing.kernel_loading import load_engines
    from markovia.inference.exact.row_programs import compile_rows
    from markovia.kernels.counting import load as load_counting

    start = now()
    get_engine("auto")
    rows = compile_rows(load_tree_kernels(), ["a"], ["b"], [False], 1.0)
    if rows is not None:
        rows.run(np.array([[-1], [0]], dtype=np.int32))
    load_counting()  # type: ignore[no-untyped-call]
    load_engines(engines)
    return now() - start


def load_tree_kernels() -> Problem:
    """Load what the junction tree needs for one case of evidence, in small and large models; return a tiny problem."""
    from markovia.factors.tables.factor import Factor
    from markovia.factors.tables.variable import Variable
    from markovia.inference.exact.junction_tree import JunctionTree
    from markovia.inference.exact.tree_plan import TreeStructure, plan_for
    from markovia.inference.exact.tree_state import TreeState
    from markovia.kernels.clique_trees.clique_tables import table_of
    from markovia.kernels.clique_trees.elimination import SMALL as PLAIN_ORDERS
    from markovia.kernels.clique_trees.sparse_cliques import collect_support, distribute_support, support_of

    a, b = Variable("a", [0, 1]), Variable("b", [0, 1])
    factors = [Factor.of((a, b), np.array([[1.0, 2.0], [3.0, 4.0]]))]
    problem = Problem({"a": a, "b": b}, factors, {}, {})
    engine = JunctionTree()
    engine.marginals(problem, ["a", "b"])
    engine.best(problem, ["a", "b"], 2)
    engine.sample(problem, 2, np.random.default_rng(0))
    n = PLAIN_ORDERS + 1  # with a scope that is large enough for helper cliques
    plan_for(TreeStructure([2] * n, [range(11), *([i] for i in range(n))]))
    tree, _ = JunctionTree().compiled(replace(problem, memory={}), None)
    state = TreeState(tree)
    state.collect_large(0)
    state.distribute()
    state.distribute_large(0)
    arrays = (state.packed, state.room())
    entries, operands = support_of(0, *arrays, np.empty(0, dtype=np.int32))
    support = np.empty(2 + (2 + operands) * entries, dtype=np.int32)
    support_of(0, *arrays, support)
    collect_support(0, False, *arrays, support)
    distribute_support(0, *arrays, support)
    table_of(0, *arrays, np.empty(4))
    return problem
