"""Structural EM: a directed graph from rows with missing cells, and with variables that are never observed.

Method: Friedman (1997, 1998). With the present graph and parameters the missing cells have a posterior distribution; the
rows completed by it give every family an expected score, and hill climbing from the present graph looks for a better one.
Then the parameters of the new graph are learned by EM, and so on until no graph is better. With BIC, AIC or the log
likelihood and completions in every way, the score of the observed cells (their log likelihood minus the penalty) never
falls; it is what `score` and `path` show. For other scores these show the expected score, which has no such guarantee.
Discrete rows: `table_completion`. Continuous and mixed rows: `mixed_completion`; there no edge goes from a continuous to a
discrete variable.
Cost: for each iteration an EM run and a search. The result is a local optimum; with hidden variables use `restarts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import DISCRETE, MixedTable
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.directed import DAG
from markovia.runtime.checks import check_count
from markovia.structure.dag_search.hill_climbing import hill_climb
from markovia.structure.incomplete.mixed_completion import MixedCompletion
from markovia.structure.incomplete.table_completion import TableCompletion
from markovia.structure.scores.scores import bind_score
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

PENALISED = ("bic", "aic", "log-likelihood", "gaussian-bic", "cg-bic")


@dataclass(frozen=True)
class CompletionDetails:
    """How the rows were completed.

    Attributes
    ----------
    log_likelihood
        Of the cells that were observed.
    iterations, converged
        Rounds of completing and searching, and whether the last changed nothing.
    exact
        Whether rows were completed in all ways with their probabilities, not by draws.
    latent
        The states of hidden variables by name.
    expected_score
        The score on the completed rows.
    """

    log_likelihood: float
    iterations: int
    converged: bool
    exact: bool
    latent: dict[str, list[State]]
    expected_score: float


def structural_em(
    task: Task,
    *,
    latent: Mapping[str, int | Sequence[State]] | None = None,
    start: Any = None,
    max_iterations: int = 50,
    restarts: int = 1,
    draws: int | None = None,
    tolerance: float = 1e-6,
) -> FoundGraph:
    """Learn a graph from incomplete rows.

    Parameters
    ----------
    task
        Data that may have gaps, score, knowledge, limits.
    latent
        Hidden variables with their states or how many they have. At first each points to all observed variables.
    start
        A graph to begin with, over the columns and the hidden variables: a `DAG` or a list of edges. By default the required
        edges and those of the hidden variables.
    max_iterations
        The most searches of one run.
    restarts
        Runs; all but the first begin with random parameters, and so do all runs with hidden variables.
    draws
        Completions drawn for each discrete row, instead of all with their probabilities. By default all, or 20 draws where
        there are more than a million.
    tolerance
        For EM: see `mk.EM`.

    Returns
    -------
    Found
        `details` is a `CompletionDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(1000, seed=1)
    >>> rows.loc[:100, "rain"] = None
    >>> mk.learn_structure(rows, method="structural-em").skeleton.edges
    [('cloudy', 'sprinkler'), ('cloudy', 'rain'), ('sprinkler', 'wet'), ('rain', 'wet')]
    """
    check_count("max_iterations", max_iterations, 1)
    check_count("restarts", restarts, 1)
    check_count("draws", draws, 1, none=True)
    mixed = task.rows
    hidden = _hidden(latent, mixed.names)
    names = (*mixed.names, *(v.name for v in hidden))
    rules = _wider(task.rules, len(hidden), mixed)
    if mixed.discrete:
        table = mixed.codes()
        own = [table.variables[n] for n in mixed.names]
        rows: TableCompletion | MixedCompletion = TableCompletion(
            table, [*own, *hidden], draws, task.rng, tolerance
        )
    else:
        if draws is not None:
            raise InvalidArgument(
                "draws= is for discrete columns; continuous ones are completed by their moments"
            )
        rows = MixedCompletion(mixed, hidden, task.rng, tolerance)
    first = _first_parents(start, names, rules, len(hidden))
    best: _StructuralRun | None = None
    for number in range(restarts):
        run = _StructuralRun(task, rows, names, rules)
        run.go(first, number > 0 or bool(hidden), max_iterations)
        if best is None or run.score > best.score:
            best = run
        if task.clock.over():
            break
    assert best is not None
    task.score_name = best.score_name
    notes = []
    if rows.draws is not None:
        notes.append(f"each incomplete row was completed by {rows.draws} draws, so scores are estimates")
    if not best.settled and not task.clock.over():
        notes.append(f"the graph still changed after max_iterations={max_iterations}")
    return FoundGraph(
        _dag(best.parents, names),
        score=best.score,
        path=best.path,
        notes=notes,
        details=CompletionDetails(
            best.log_likelihood,
            best.iterations,
            best.settled,
            rows.exact,
            {v.name: list(v.states) for v in hidden},
            best.expected,
        ),
    )


class _StructuralRun:
    """One run from a start."""

    def __init__(
        self, task: Task, rows: TableCompletion | MixedCompletion, names: tuple[str, ...], rules: Rules
    ) -> None:
        self.task, self.rows, self.names, self.rules = task, rows, names, rules
        self.path: list[SearchStep] = []
        self.score = self.expected = self.log_likelihood = -np.inf
        self.parents: list[tuple[int, ...]] = []
        self.iterations = 0
        self.settled = False
        self.score_name = ""

    def go(self, first: list[tuple[int, ...]], random: bool, max_iterations: int) -> None:
        """Alternate between parameters and graphs until neither changes."""
        task: Any = self.task
        rows: Any = self.rows
        now = rows.improved(rows.start(first, random))
        self.parents = first
        data = rows.completed(now)
        while True:
            bound = bind_score(task.score, data)
            self.score_name = bound.name
            self.expected = bound.total(self.parents)
            self._note(now, data, bound.name)
            if self.iterations >= max_iterations or task.clock.over():
                return
            self.iterations += 1
            inner = Task(self.names, data, self.rules, task.clock, task.rng, bound)
            found = hill_climb(inner, start=_dag(self.parents, self.names))
            after = _parents(found.graph, self.names)
            gain = bound.total(after) - self.expected
            if gain <= 1e-9 * max(1.0, abs(self.expected)):
                self.settled = True
                return
            now = rows.improved(rows.estimated(after, data))
            self.parents = after
            data = rows.completed(now)

    def _note(self, now: Any, data: MixedTable, name: str) -> None:
        rows: Any = self.rows
        self.log_likelihood = now.log_likelihood
        self.score = self.expected
        if name in PENALISED:
            penalty = rows.complete_log_likelihood(self.parents, data) - self.expected
            self.score = now.log_likelihood - penalty
        edges = sum(map(len, self.parents))
        self.path.append(SearchStep(f"graph with {edges} edges", self.score, self.task.clock.seconds))
        self.task.clock.advance(note=f"{self.score:.6g}")


def _hidden(latent: Any, names: Sequence[str]) -> list[Variable]:
    if latent is None:
        return []
    if not isinstance(latent, Mapping):
        raise InvalidArgument(
            f"latent= maps names to states or their number, such as {{'h': 2}}, not {latent!r}"
        )
    for name in latent:
        if name in names:
            raise InvalidArgument(f"{name!r} is said to be latent, but the data have a column of that name")
    return [Variable(str(name), states) for name, states in latent.items()]


def _wider(rules: Rules, more: int, mixed: MixedTable) -> Rules:
    """Return the rules with hidden variables, about which nothing is known; no discrete child of a continuous parent."""
    n = len(mixed.names)
    allowed = np.ones((n + more, n + more), dtype=bool)
    allowed[:n, :n] = rules.allowed
    np.fill_diagonal(allowed, False)
    required = np.zeros_like(allowed)
    required[:n, :n] = rules.required
    if not mixed.discrete:
        discrete = np.array([k == DISCRETE for k in mixed.kinds] + [True] * more)
        allowed &= ~(~discrete[:, None] & discrete[None, :])
        bad = np.argwhere(required & ~allowed)
        if len(bad):
            a, b = mixed.names[bad[0][0]], mixed.names[bad[0][1]]
            raise InvalidArgument(
                f"the edge {a!r} -> {b!r} is required, and structural EM has no discrete child of a continuous parent"
            )
    most = rules.max_parents if rules.max_parents < n - 1 else n + more - 1
    return Rules(allowed, required, most)


def _first_parents(start: Any, names: tuple[str, ...], rules: Rules, hidden: int) -> list[tuple[int, ...]]:
    n = len(names)
    edges = rules.required.copy()
    if start is None:
        for h in range(n - hidden, n):
            for k in range(n - hidden):
                if edges[:, k].sum() < rules.max_parents and rules.allowed[h, k]:
                    edges[h, k] = True
    else:
        graph = start if isinstance(start, DAG) else DAG(getattr(start, "graph", start), nodes=names)
        parents = _parents(graph, names)
        for k, own in enumerate(parents):
            edges[list(own), k] = True
        if (edges & ~rules.allowed).any():
            a, b = np.argwhere(edges & ~rules.allowed)[0]
            raise InvalidArgument(f"start= has the edge {names[a]!r} -> {names[b]!r}, which is not allowed")
    return [tuple(np.flatnonzero(edges[:, k]).tolist()) for k in range(n)]


def _parents(graph: Any, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    number = {name: k for k, name in enumerate(names)}
    for name in graph.nodes:
        if name not in number:
            raise InvalidArgument(f"start= has a node {name!r} that is no column and not latent")
    return [
        tuple(sorted(number[p] for p in graph.parents(name))) if name in graph.nodes else () for name in names
    ]


def _dag(parents: Sequence[Sequence[int]], names: Sequence[str]) -> DAG:
    return DAG([(names[p], names[k]) for k, own in enumerate(parents) for p in own], nodes=names)
