"""Choosing an exact engine by estimated cost.

The choice, in this order:

- Marginal MAP (maxima over some variables, sums over others) goes to variable elimination, which knows how to do both.
- Draws depend on the engine, so their choice looks at the size of the model alone: the same seed gives the same rows.
- Once the compiled kernels are loaded, everything else goes to the junction tree: it keeps what it computed.
- Until then a first answer never waits for a compiler: variable elimination in NumPy answers, unless its own estimate says
  that it would take long. Then the kernels are loaded (a second), or compiled if they never were (a minute or more, once an
  installation), where that is still faster. Many small answers add up to the same decision.
- Where the tree does not fit the memory budget, conditioning answers if it takes minutes by its own estimate;
  otherwise `TooLarge` says what would be needed.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge
from markovia.inference.bucket_tree import Net
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Tables
from markovia.inference.variable_elimination import VariableElimination

if TYPE_CHECKING:
    from markovia.inference.conditioning import Conditioning
    from markovia.inference.junction_tree import JunctionTree

T = TypeVar("T")
Question = Literal["joint", "marginals", "log_mass", "best", "sample"]
Exact: TypeAlias = "VariableElimination | JunctionTree | Conditioning"

NUMPY_RATE = 1e8
"""Table entries a second that elimination in NumPy gets through, about."""
DRAWN = 1e7
"""Table entries above which draws come from the junction tree."""
PATIENCE = 1e11
"""Operations that conditioning may take without being asked for by name: some minutes."""
LOAD_SECONDS = 1.0
COMPILE_SECONDS = 60.0

_spent = 0.0
"""Seconds of NumPy elimination in this process so far."""


@dataclass(frozen=True)
class Auto:
    """Whatever exact engine is estimated to answer first; the answer says which it was.

    Parameters
    ----------
    max_bytes
        The memory budget; 80% of the free memory by default.
    """

    max_bytes: int | None = None

    name: ClassVar[str] = "auto"
    exact: ClassVar[bool] = True

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        engine, found = self._ask(problem, "joint", targets, lambda e: e.joint(problem, targets))
        return Tables(found.tables, found.log_mass, found.details, found.engine or engine)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        engine, found = self._ask(problem, "marginals", targets, lambda e: e.marginals(problem, targets))
        return Tables(found.tables, found.log_mass, found.details, found.engine or engine)

    def log_mass(self, problem: Problem) -> float:
        """Return the log of the total weight that agrees with the findings."""
        return self._ask(problem, "log_mass", (), lambda e: e.log_mass(problem))[1]

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> list[Assignment]:
        """Return the m best assignments of the targets, other variables summed out."""
        engine, found = self._ask(problem, "best", targets, lambda e: e.best(problem, targets, m))
        return Ranked({"engine": engine, **getattr(found, "details", {})}, found)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw n configurations of the free variables given the findings, as state codes."""
        return self._ask(problem, "sample", None, lambda e: e.sample(problem, n, rng))[1]

    def _ask(
        self,
        problem: Problem,
        question: Question,
        targets: Sequence[str] | None,
        ask: Callable[[Exact], T],
    ) -> tuple[str, T]:
        global _spent
        engine = self.choose(problem, question, targets)
        start = perf_counter()
        try:
            found = ask(engine)
        except TooLarge as too_large:
            from markovia.inference.conditioning import Conditioning

            fallback = Conditioning(max_bytes=self.max_bytes, max_operations=PATIENCE)
            try:
                return fallback.name, ask(fallback)
            except TooLarge:
                raise too_large from None
        if isinstance(engine, VariableElimination):
            _spent += perf_counter() - start
        return engine.name, found

    def choose(self, problem: Problem, question: Question, targets: Sequence[str] | None) -> Exact:
        """Return the engine that is estimated to answer first."""
        if question == "best" and targets is not None and len(targets) < len(problem.free):
            return VariableElimination(max_bytes=self.max_bytes)
        if question == "sample":  # the same seed gives the same rows, whatever is loaded
            plan = VariableElimination(max_bytes=self.max_bytes).planned(Net(problem.parts(None)))
            return self._tree() if sum(plan.sizes) > DRAWN else VariableElimination(max_bytes=self.max_bytes)
        if kernels_loaded():
            return self._tree()
        elimination = VariableElimination(max_bytes=self.max_bytes)
        if len(problem.variables) < 50:
            scopes = [len(p.names) for p in problem.pieces]
            if max(scopes, default=0) <= 3 and len(scopes) <= 50:
                wait = LOAD_SECONDS if _spent > LOAD_SECONDS and kernels_on_disk() else COMPILE_SECONDS
                return self._tree() if _spent > wait else elimination
        wait = LOAD_SECONDS if kernels_on_disk() else COMPILE_SECONDS
        if _spent > wait:
            return self._tree()
        net = Net(problem.parts(None if question == "best" else targets))
        plan = elimination.planned(net)
        seconds = sum(plan.sizes) * (3 if question == "marginals" else 1) / NUMPY_RATE
        return self._tree() if seconds > wait else elimination

    def _tree(self) -> "JunctionTree":
        from markovia.inference.junction_tree import JunctionTree

        return JunctionTree(max_bytes=self.max_bytes)


def kernels_loaded() -> bool:
    """Say whether the compiled kernels are in memory."""
    return "markovia.kernels.propagation" in sys.modules


def kernels_on_disk() -> bool:
    """Say whether compiled kernels of an earlier run are on disk for this version of Python."""
    from markovia.kernels import cache_folders

    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    pattern = f"propagation.collect-*.{version}.nbi"
    return any(next(folder.glob(pattern), None) is not None for folder in cache_folders())


def load_kernels() -> float:
    """Load the compiled kernels now, compiling them if they never were; return the seconds it took.

    Examples
    --------
    >>> load_kernels() >= 0.0
    True
    """
    start = perf_counter()
    from markovia.factors.factor import Factor
    from markovia.factors.variable import Variable
    from markovia.inference.junction_tree import JunctionTree

    a, b = Variable("a", [0, 1]), Variable("b", [0, 1])
    factors = [Factor.of((a, b), np.array([[1.0, 2.0], [3.0, 4.0]]))]
    problem = Problem({"a": a, "b": b}, factors, {}, {})
    engine = JunctionTree()
    engine.marginals(problem, ["a", "b"])
    engine.best(problem, ["a", "b"], 2)
    engine.sample(problem, 2, np.random.default_rng(0))
    _load_rare_kernels(problem)
    return perf_counter() - start


def _load_rare_kernels(problem: Problem) -> None:
    """Run what only large trees and batches of rows need."""
    from markovia.inference.junction_tree import JunctionTree
    from markovia.inference.row_programs import compile_rows
    from markovia.inference.tree_state import TreeState
    from markovia.kernels.supports import collect_support, distribute_support, support_of

    tree, _ = JunctionTree().compiled(replace(problem, memory={}), None)
    state = TreeState(tree)
    state.collect_large(0)
    state.distribute()
    state.distribute_large(0)
    support = support_of(0, 99, *state.packed, *state.room())
    collect_support(0, False, *state.packed, *state.room(), support)
    distribute_support(0, *state.packed, *state.room(), support)
    state.rows(0)
    rows = compile_rows(problem, ["a"], ["b"], [False], 1.0)
    if rows is not None:
        rows.run(np.array([[-1], [0]], dtype=np.int32))
