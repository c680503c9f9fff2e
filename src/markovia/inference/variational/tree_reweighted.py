"""Tree-reweighted belief propagation: an upper bound on log Z, and marginals from a convex problem.

Method. Take spanning forests T of the factor graph with weights w_T that sum to one, and let rho_f be the total weight of
the forests that hold factor f. Any finite messages lam split the model into parameters of single variables
a_i = log unary_i + sum_f lam_fi and of factors b_f = log f - sum_i lam_fi. Give forest T the weights

    W_T(x) = exp( sum_i a_i(x_i) + sum_{f in T} b_f(x_f) / rho_f ).

Then prod_T W_T(x)^{w_T} = exp(sum_i a_i + sum_f b_f) is the weight of x in the model, since the exponents rho_f / rho_f
and the messages cancel. Hölder's inequality gives, for *every* choice of messages, factors of any number of variables, and
zeros (where both sides only lose terms),

    Z = sum_x prod_T W_T(x)^{w_T}  <=  prod_T (sum_x W_T(x))^{w_T},    so   log Z <= D(lam) = sum_T w_T log Z_T.

Each Z_T is exact, by a pass over a forest. So the value is an upper bound whenever the run is stopped. D is convex in the
messages; its minimum is the tree-reweighted optimum. Message passing (Wainwright, Jaakkola & Willsky 2005) finds it fast and
nearly always; where its messages do not settle, L-BFGS minimises D itself, which cannot fail to converge. The gradient is
the disagreement of the forests about marginals.

Cost: a sweep reads every table once for each of its variables; a value of D does so for each forest. On a graph without
loops there is one forest and everything is exact. Use it for upper bounds and as the stable relative of loopy belief
propagation; its marginals are less sure of themselves than the true ones where couplings are strong.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs import spanning_forests
from markovia.inference.flat_graphs.consistent_states import consistent_states
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.flat_graphs.possibility import proved_impossible
from markovia.inference.flat_graphs.spanning_forests import Forests
from markovia.inference.problem import Problem
from markovia.inference.result import Course, Record, Tables
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Count, Damping, FromZero, TimeLimit, Tolerance, WholeSeed
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from markovia.kernels.messages.reweighted import ReweightedWork

SLICE = 4e6
"""Table entries one call of compiled code works through before the clock is looked at."""
CLOSE = 1e-5
"""Disagreement of the forests about a marginal that always counts as converged; the bound is then right to its square."""
ROUGH = 40
"""Sweeps, and steps of descent, for each change of rho that is tried."""
GAIN = 1e-4
"""What a change of rho has to lower the bound by, in nats."""
PATIENCE = 100
DAMPED = 0.5
"""Messages that have not settled after so many sweeps are damped by so much."""
Rho = str | Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Reweighted:
    """Where the minimisation of the bound ended.

    Attributes
    ----------
    bound
        The lowest upper bound on log Z that was seen.
    marginals
        The pseudo-marginals of all variables one after the other, averaged over the forests.
    forests
        The forests with their weights and the appearance probabilities.
    iterations, error
        Sweeps made, and the largest disagreement about a marginal at the end.
    trace
        The bound each time it was worked out.
    """

    bound: float
    marginals: Array
    forests: Forests
    iterations: int
    error: float
    trace: Array


@dataclass(frozen=True)
class ReweightedDetails:
    """The upper bound on the log mass, its course, and the forests: how many, and how often each factor is in one."""

    upper: float
    upper_trace: Array
    forests: int
    rho: Array

    @property
    def course(self) -> Course:
        """How the bound came down."""
        bounds = tuple(float(b) for b in self.upper_trace)
        return Course(tuple(range(1, len(bounds) + 1)), bounds, "upper bound on the log mass", "look")


@dataclass(frozen=True)
class TreeReweighted(Approximate):
    """Tree-reweighted sum-product; its log partition function is an upper bound, however early it stops.

    Parameters
    ----------
    rho
        Appearance probabilities of the factors: "balanced" (forests that use all factors about equally often), "uniform"
        (uniformly random spanning trees, models of pairs only), or a mapping from the names of a factor's variables to a
        number, which must be a mixture of spanning forests. On a graph without loops all are one.
    optimise
        Steps of the conditional-gradient method that improves rho: each adds the spanning forest with the largest mutual
        information (a maximum spanning tree for pairs) and is kept if the bound falls.
    damping
        Share of the old message that is kept in an update.
    max_iterations
        Sweeps of message passing; then as many steps of L-BFGS if they did not settle.
    tolerance
        Largest change of a marginal in a sweep at which messages count as settled.
    time_limit
        Seconds; the best bound by then answers.
    seed
        Seed of the forests.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(3, 3, coupling=0.5)
    >>> engine = mk.engines.TreeReweighted()
    >>> bool(grid.log_partition() <= grid.log_partition(engine=engine))
    True
    >>> grid.query("x0_0", engine=engine).info.mass_bound
    'upper'
    """

    rho: Annotated[Rho, Choice(("balanced", "uniform"), "a mapping", (Mapping,))] = "balanced"
    optimise: FromZero = 0
    damping: Damping = 0.0
    max_iterations: Count = 1000
    tolerance: Tolerance = 1e-6
    time_limit: TimeLimit = None
    seed: WholeSeed = 0

    name: ClassVar[str] = "tree-reweighted"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass"})

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return the pseudo-marginal of each target."""
        graph = flat_graph(problem, targets if isinstance(self.rho, str) else None)
        found = self.minimise(graph)
        if found is None:
            return Tables([], -np.inf)
        return Tables(graph.tables(found.marginals, targets), found.bound, self.record(graph, found))

    def record(self, graph: FlatGraph, found: Reweighted) -> Record:
        """Return what an answer says about the minimisation it came from."""
        return Record(
            converged=bool(found.error <= max(10.0 * self.tolerance, CLOSE)),
            iterations=found.iterations,
            error=found.error,
            exact=graph.is_forest,
            mass_bound="upper",
            advice="raise max_iterations, or set damping=0.5",
            details=ReweightedDetails(
                found.bound, found.trace, len(found.forests.forests), found.forests.rho
            ),
        )

    def minimise(self, graph: FlatGraph) -> Reweighted | None:
        """Return the lowest bound found and its marginals; None if no configuration has any weight."""
        end = np.inf if self.time_limit is None else now() + self.time_limit
        states = consistent_states(graph)
        if not states.possible or (not graph.is_forest and proved_impossible(graph, states)):
            return None
        node = graph.log_unary.copy()
        node[~states.alive] = -np.inf
        run = Minimisation(graph, node, self._forests(graph), end)
        if len(run.forests.forests) > 1:
            run.settle(self.max_iterations, self.tolerance, self.damping)
            step = 0.25
            for _ in range(self.optimise):
                step = run.improve_rho(step, self)
                if step == 0.0 or now() > end:
                    break
            if self.optimise and run.error > max(10.0 * self.tolerance, CLOSE) and now() < end:
                run.settle(self.max_iterations, self.tolerance, self.damping)
        return Reweighted(run.best, run.marginals, run.forests, run.sweeps, run.error, np.array(run.trace))

    def _forests(self, graph: FlatGraph) -> Forests:
        if graph.is_forest:
            return spanning_forests.whole(graph)
        rng = generator(self.seed)
        if self.rho == "balanced":
            return spanning_forests.balanced(graph, rng)
        if self.rho == "uniform":
            return spanning_forests.uniform(graph, rng)
        return spanning_forests.decomposed(graph, _given(graph, self.rho), rng)


class Minimisation:
    """Messages, the forests, and the lowest bound so far."""

    def __init__(self, graph: FlatGraph, log_unary: Array, forests: Forests, end: float) -> None:
        self.graph, self.log_unary, self.end = graph, log_unary, end
        widths = graph.cards[graph.scope]
        self.first: Ints = np.concatenate(([0], np.cumsum(widths)))[: len(widths)].astype(np.int64)
        self.places = np.repeat(graph.starts[graph.scope] - self.first, widths) + np.arange(int(widths.sum()))
        self.of_factor = np.repeat(graph.edge_factor, widths)
        self.lam = np.zeros(int(widths.sum()))
        widest = int(np.add.reduceat(widths, graph.scope_ptr[:-1]).max()) if graph.n_factors else 1
        largest = int(np.diff(graph.table_ptr).max(initial=1))
        self.room = (np.empty(widest), np.empty(largest), np.empty(largest))
        self.scratch = (np.empty(len(graph.unary)), np.empty(len(self.lam)), np.empty(len(graph.unary)))
        self.work = float((np.diff(graph.table_ptr) * graph.arity).sum()) + len(graph.unary) + 1.0
        self.forests = forests
        self.sweeps = 0
        self.trace: list[float] = []
        self.best, self.marginals, self.error = np.inf, np.empty(0), np.inf
        self.kept = self.lam
        self.look()

    def node(self, lam: Array) -> Array:
        """Return the parameters of single variables under some messages."""
        added = np.bincount(self.places, weights=lam, minlength=len(self.log_unary))
        return np.asarray(self.log_unary + added)

    def _work(self, lam: Array) -> "ReweightedWork":
        """Return what kernels work on, under some messages."""
        from markovia.kernels.messages.reweighted import ReweightedWork

        return ReweightedWork(self.first, self.forests.rho, self.node(lam), lam, *self.room)

    def bound(self, lam: Array) -> tuple[float, Array, Array]:
        """Return D, the mean marginals, and the gradient of D with respect to the messages."""
        from markovia.kernels.messages.reweighted import mixture_pass

        work = self._work(lam)
        total, n = self.graph.log_scale, len(self.forests.forests)
        mean, inside = np.zeros(len(work.node)), np.zeros(len(lam))
        at_once = int(np.clip(SLICE / self.work, 1, n))
        for begin in range(0, n, at_once):
            end = min(begin + at_once, n)
            total += mixture_pass(
                self.graph.log_arrays, work, begin, end, self.forests.flat, self.scratch, mean, inside
            )
        return float(total), mean, mean[self.places] - inside

    def look(self, sweep_error: float | None = None) -> None:
        """Work out the bound at the present messages and keep them if it is the lowest."""
        value, marginals, gradient = self.bound(self.lam)
        self.trace.append(value)
        error = float(np.abs(gradient).max(initial=0.0)) if sweep_error is None else sweep_error
        if value < self.best or not len(self.marginals):
            self.best, self.marginals, self.error = value, marginals, error
            self.kept = self.lam.copy()
        elif value <= self.best + 1e-9 * (1.0 + abs(value)):
            self.error, self.marginals = min(error, self.error), marginals

    def settle(self, max_sweeps: int, tolerance: float, damping: float) -> None:
        """Pass messages until they settle; where the forests then still disagree, minimise the bound directly."""
        from markovia.kernels.messages.reweighted import iterate

        work, belief = self._work(self.lam), np.zeros(len(self.log_unary))
        at_once = int(np.clip(SLICE / self.work, 1, 50))
        made, change = 0, np.inf
        while made < max_sweeps and change > tolerance:
            if made >= PATIENCE and damping < DAMPED:
                damping = DAMPED
            sweeps = min(at_once, max_sweeps - made)
            n, change = iterate(self.graph.log_arrays, work, sweeps, tolerance, damping, belief)
            made += n
            if now() > self.end:
                break
        self.sweeps += made
        self.look()
        enough = max(10.0 * tolerance, CLOSE)
        if self.error > enough and now() < self.end:
            self._descend(max_sweeps, enough)

    def _descend(self, steps: int, tolerance: float) -> None:
        """Minimise D by L-BFGS from the best messages."""
        alive = np.isfinite(self.log_unary)[self.places]

        class Late(Exception):
            pass

        def value(free: Array) -> tuple[float, Array]:
            lam = np.zeros(len(self.lam))
            lam[alive] = free
            found, marginals, gradient = self.bound(lam)
            if found < self.best:
                self.best, self.marginals, self.kept = found, marginals, lam
                self.error = float(np.abs(gradient).max(initial=0.0))
            self.trace.append(found)
            self.sweeps += 1
            if now() > self.end:
                raise Late
            return found, gradient[alive]

        with suppress(Late):
            minimise(value, self.kept[alive], convex=True, max_iter=steps, tol=tolerance, flat=0.0)
        self.lam = self.kept.copy()

    def improve_rho(self, step: float, settings: TreeReweighted) -> float:
        """Move rho towards the forest of largest mutual information; return the next step to try, 0 if none helps."""
        from markovia.kernels.messages.reweighted import information

        graph = self.graph
        found = np.empty(graph.n_factors)
        information(graph.log_arrays, self._work(self.kept), found)
        mask = spanning_forests.greedy(graph, np.argsort(-found, kind="stable"))
        before = (self.best, self.marginals, self.error, self.forests, self.kept)
        while step > 1e-3:
            self.forests = before[3].mixed(graph, mask, step)
            self.best, self.marginals, self.lam = np.inf, np.empty(0), before[4].copy()
            self.settle(min(ROUGH, settings.max_iterations), 10.0 * settings.tolerance, settings.damping)
            if self.best < before[0] - GAIN:
                return min(1.5 * step, 0.5)
            self.best, self.marginals, self.error, self.forests, self.kept = before
            self.lam = self.kept.copy()
            step /= 3.0
            if now() > self.end:
                break
        return 0.0


def _given(graph: FlatGraph, rho: Any) -> Array:
    """Return the user's appearance probabilities in the order of the factors."""
    by_names = {frozenset(names): float(value) for names, value in rho.items()}
    found = np.empty(graph.n_factors)
    for f in range(graph.n_factors):
        names = [graph.names[i] for i in graph.members(f)]
        if frozenset(names) not in by_names:
            raise InvalidArgument(f"rho= has no appearance probability for the factor of {names}")
        found[f] = by_names[frozenset(names)]
    return found
