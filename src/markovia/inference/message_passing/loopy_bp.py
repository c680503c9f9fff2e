"""Loopy belief propagation: sum-product messages on a factor graph.

Method: variables and factors exchange messages until none changes; beliefs are products of incoming messages. Exact on
forests, in two passes. With loops a fixed point is a stationary point of the Bethe free energy (Yedidia, Freeman and Weiss,
2005): beliefs approximate marginals and the Bethe formula approximates log Z, often well where loops are long or
couplings weak; convergence is not guaranteed, damping and the residual schedule help.
References: Pearl (1988); Kschischang, Frey and Loeliger (2001); Elidan, McGraw and Koller (2006).
Cost of an iteration: one pass over all tables, the listed entries of sparse factors, and the parents of noisy-ors and gates.
Use it for marginals of models too wide for exact inference; it is the fastest of the approximate engines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.possibility import proved_impossible
from markovia.inference.message_passing.device_messages import GPU_FROM, device_messages, why_not_here
from markovia.inference.message_passing.message_graph import MessageGraph, message_graph, remember, remembered
from markovia.inference.message_passing.schedules import (
    LOG_SUM,
    SMALL,
    SUM,
    Messages,
    Schedule,
    ScheduleSettings,
    message_buffers,
    propagate,
    send,
)
from markovia.inference.problem import Problem
from markovia.inference.result import Course, LogMass, Ranked, Record, Tables
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Damping, FromZero, TimeLimit, WholeSeed
from markovia.runtime.devices import Device, gpu, on_device, say_instead, usable_gpu

ADVICE = "try damping=0.5, schedule='residual', or engine='generalized-bp' or 'gibbs'"


@dataclass(frozen=True)
class LoopyDetails:
    """The schedule of the messages, damping, the numbers they are in ("linear" or "log"), how far they moved, and where.

    The trace holds pairs: after how many iterations, and the largest change of a message in the last of them. `device`
    says what computed the messages.
    """

    schedule: str
    damping: float
    domain: str
    trace: tuple[tuple[int, float], ...] = ()
    device: Device = "cpu"

    @property
    def course(self) -> Course | None:
        """How the messages settled; None on a forest, where two passes are all."""
        if not self.trace:
            return None
        steps, moves = zip(*self.trace, strict=True)
        return Course(steps, moves, "largest change of a message", "iteration", falls=True)


@dataclass(frozen=True)
class LoopyBP(Approximate):
    """Loopy belief propagation.

    Parameters
    ----------
    schedule
        "sequential" (in breadth-first order and back, newest messages), "residual" (the factor with the most changed
        inputs first), or "flooding" (all messages at once; needs more rounds and oscillates more easily, but uses
        several threads on large models). A forest is always done in two passes.
    damping
        The share of the old message that is kept, from 0 up to but not 1.
    domain
        "linear" works with probabilities and repeats in logarithms if a belief vanishes; "log" starts with logarithms,
        which hold probabilities below 1e-300 too and take several times longer.
    tolerance
        The largest change of a message, in probability, that counts as none.
    max_iterations, time_limit
        When to give up: rounds over all factors, seconds.
    init, seed, restarts
        Start from "uniform" or "random" messages; after a run that did not converge, try again up to `restarts` times
        from random ones and keep the run with the smallest error.
    absorb
        Multiply tables over variables that all occur in another table into that one first: fewer loops and better
        answers. False keeps the factor graph as it is.
    device
        "cpu", "gpu", or None: the GPU where there is one and the model has 100,000 variables or more. There
        "sequential" means one colour of the edges after the other. "residual", "log", forests and models with tables over
        three variables or more stay on the processor.

    Examples
    --------
    >>> import markovia as mk
    >>> sprinkler = mk.examples.sprinkler()
    >>> found = sprinkler.query("rain", given={"cloudy": "yes"}, engine="loopy-bp")
    >>> round(found["yes"], 4), found.info.exact
    (0.8, True)
    >>> engine = mk.engines.LoopyBP(schedule="residual", damping=0.2)
    >>> bool(mk.generators.ising_grid(5, 5, 0.2).query("x2_2", engine=engine).info.converged)
    True
    """

    schedule: Schedule = "sequential"
    damping: Damping = 0.0
    domain: Literal["linear", "log"] = "linear"
    tolerance: Annotated[float, SMALL] = 1e-9
    max_iterations: Count = 1000
    time_limit: TimeLimit = None
    init: Literal["uniform", "random"] = "uniform"
    seed: WholeSeed = None
    restarts: FromZero = 0
    absorb: bool = True
    device: Device | None = None

    name: ClassVar[str] = "loopy-bp"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best"})

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return the beliefs of the targets."""
        graph = message_graph(problem, targets, absorb=self.absorb)
        found = self._beliefs(problem, graph)
        if found.log_mass == -np.inf:
            tables = [_uniform(problem, n) for n in targets]
        else:
            tables = graph.flat.tables(found.flat, targets)
        return Tables(tables, found.log_mass, self._record(graph, found))

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return the belief of a factor that holds all targets, or else condition on one after the other."""
        if len(targets) == 1:
            return self.marginals(problem, targets)
        graph = message_graph(problem, targets, absorb=self.absorb)
        found = self._beliefs(problem, graph)
        record = self._record(graph, found)
        if not targets:
            return Tables([Factor.scalar(1.0)], found.log_mass, record)
        if found.log_mass == -np.inf:
            variables = tuple(problem.variables[n] for n in targets)
            shape = [len(v) for v in variables]
            return Tables(
                [Factor.of(variables, np.full(shape, 1.0 / np.prod(shape)))], found.log_mass, record
            )
        table = _factor_belief(graph, found.messages, [graph.flat.index[n] for n in targets])
        if table is None:
            return super().joint(problem, targets)
        return Tables([table], found.log_mass, record)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the Bethe log partition function."""
        graph = message_graph(problem, absorb=self.absorb)
        found = self._beliefs(problem, graph)
        return LogMass(found.log_mass, self._record(graph, found))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the assignment that max-product messages with the same settings lead to."""
        from markovia.inference.message_passing.max_product import MaxProduct

        engine = MaxProduct(
            schedule=self.schedule,
            damping=self.damping,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            time_limit=self.time_limit,
            init=self.init,
            seed=self.seed,
            restarts=self.restarts,
            absorb=self.absorb,
        )
        return engine.best(problem, targets, m)

    def _beliefs(self, problem: Problem, graph: MessageGraph) -> "BetheBeliefs":
        kept = remembered(problem, self, graph)
        if kept is not None:
            found: BetheBeliefs = kept
            return found
        found = self.run(graph)
        doubtful = not graph.is_forest and found.log_mass > -np.inf
        if doubtful and proved_impossible(graph.flat, beliefs=found.flat):
            found = replace(found, log_mass=-np.inf)
        remember(problem, self, graph, found)
        return found

    def run(self, graph: MessageGraph) -> "BetheBeliefs":
        """Return the beliefs of a graph that is laid out already; for those who ask again with other numbers."""
        settings = ScheduleSettings(
            self.schedule,
            self.damping,
            self.tolerance,
            self.max_iterations,
            self.time_limit,
            self.init,
            self.seed,
        )
        kind = SUM if self.domain == "linear" else LOG_SUM
        best = self._propagate(graph, kind, settings)
        found = _weighed(graph, best)
        if kind == SUM and found.log_mass == -np.inf and np.isfinite(graph.log_scale):
            kind = LOG_SUM
            best = propagate(graph, kind, settings)
            found = _weighed(graph, best)
        for again in range(self.restarts):
            if found.messages.converged:
                break
            fresh = replace(settings, init="random", seed=(self.seed or 0) + 1 + again)
            other = _weighed(graph, self._propagate(graph, kind, fresh))
            if other.messages.error < found.messages.error:
                found = other
        return found

    def _propagate(self, graph: MessageGraph, kind: int, settings: ScheduleSettings) -> Messages:
        """Run messages where they run best."""

        def here() -> Messages:
            return propagate(graph, kind, settings)

        def there() -> Messages:
            return device_messages(graph, settings)

        few = self.device is None and len(graph.flat.cards) < GPU_FROM
        if few or self.device == "cpu" or graph.is_forest or not np.isfinite(graph.log_scale):
            return here()
        refused = why_not_here(graph, kind, self.schedule)
        if refused and self.device == "gpu":
            say_instead(f'device="gpu": {refused}; the processor answers')
        if refused or (usable_gpu() if self.device == "gpu" else gpu()) is None:
            return here()
        return on_device(there, here)

    def _record(self, graph: MessageGraph, found: "BetheBeliefs") -> Record:
        messages = found.messages
        return Record(
            converged=messages.converged,
            iterations=messages.iterations,
            error=messages.error,
            exact=bool(graph.is_forest and messages.converged),
            advice="" if messages.converged else ADVICE,
            details=LoopyDetails(
                "two passes" if graph.is_forest else self.schedule,
                self.damping,
                "linear" if messages.kind == SUM else "log",
                messages.trace,
                messages.device,
            ),
        )


@dataclass(frozen=True)
class BetheBeliefs:
    """Messages, the beliefs of all variables in one array, and the Bethe log partition function."""

    messages: Messages
    flat: Array
    log_mass: float


def _weighed(graph: MessageGraph, messages: Messages) -> BetheBeliefs:
    """Return beliefs and the Bethe log partition function of messages."""
    from markovia.kernels.messages.messages import beliefs

    flat = np.zeros(int(graph.flat.starts[-1]))
    if not messages.possible:
        return BetheBeliefs(messages, flat, -np.inf)
    kind, arrays = messages.kind, graph.arrays if messages.kind == SUM else graph.log_arrays
    total = float(beliefs(arrays, kind, messages.incoming, flat))
    if total == -np.inf or not graph.n_factors:
        return BetheBeliefs(messages, flat, total + graph.log_scale)
    log_z = np.empty(graph.n_factors)
    buffers = message_buffers(graph, messages.incoming, messages.outgoing)
    send(graph, kind, graph.flooding, buffers, log_z=log_z)
    total += float(log_z.sum())
    if total > -np.inf:
        total -= _log_edges(graph, messages)
    return BetheBeliefs(messages, flat, total + graph.log_scale if total < np.inf else -np.inf)


def _log_edges(graph: MessageGraph, messages: Messages) -> float:
    """Return the sum over edges of the log of the total of both messages multiplied; minus infinity if one is zero."""
    first = graph.message_ptr[:-1]
    if messages.kind == SUM:
        with np.errstate(divide="ignore"):
            return float(np.log(np.add.reduceat(messages.incoming * messages.outgoing, first)).sum())
    both = messages.incoming + messages.outgoing
    top = np.maximum.reduceat(both, first)
    if np.isneginf(top).any():
        return -np.inf
    scaled = np.exp(both - np.repeat(top, np.diff(graph.message_ptr)))
    return float((top + np.log(np.add.reduceat(scaled, first))).sum())


def _factor_belief(graph: MessageGraph, messages: Messages, targets: list[int]) -> Factor | None:
    """Return the normalised belief of the targets in the smallest factor that holds them all; None without one."""
    holders: set[int] | None = None
    for i in targets:
        edges = graph.edges[graph.edge_ptr[i] : graph.edge_ptr[i + 1]]
        mine = {int(f) for f in graph.edge_factor[edges]}
        holders = mine if holders is None else holders & mine
    if not holders:
        return None
    f = min(holders, key=lambda f: (int(graph.scope_ptr[f + 1] - graph.scope_ptr[f]), f))
    edges = np.arange(graph.scope_ptr[f], graph.scope_ptr[f + 1])
    members = graph.scope[edges]
    axes = [int(np.flatnonzero(members == i)[0]) for i in targets]
    logs = []
    for e in edges:
        message = messages.outgoing[graph.message_ptr[e] : graph.message_ptr[e + 1]]
        with np.errstate(divide="ignore"):
            logs.append(np.log(message) if messages.kind == SUM else message)
    variables = tuple(graph.flat.variables[i] for i in targets)
    shape = tuple(len(v) for v in variables)
    if f < graph.flat.n_factors:
        with np.errstate(divide="ignore"):
            total = np.log(graph.flat.table(f))
        for axis, message in enumerate(logs):
            total = total + message.reshape([-1 if a == axis else 1 for a in range(len(edges))])
        weights = np.exp(total - total.max())
        rest = tuple(a for a in range(len(edges)) if a not in axes)
        summed = weights.sum(axis=rest)
        kept = sorted(axes)
        table = summed.transpose([kept.index(a) for a in axes])
    else:
        g = f - graph.flat.n_factors
        rows = graph.codes[graph.code_ptr[g] : graph.code_ptr[g + 1]].reshape(-1, len(edges))
        total = graph.logs[graph.entry_ptr[g] : graph.entry_ptr[g + 1]].copy()
        for axis, message in enumerate(logs):
            total += message[rows[:, axis]]
        table = np.zeros(shape)
        np.add.at(table, tuple(rows[:, a] for a in axes), np.exp(total - total.max()))
    return Factor.of(variables, np.ascontiguousarray(table / table.sum()))


def _uniform(problem: Problem, name: str) -> Factor:
    variable = problem.variables[name]
    return Factor.of((variable,), np.full(len(variable), 1.0 / len(variable)))
