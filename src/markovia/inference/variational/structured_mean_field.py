"""Structured (generalised) mean field: a product of clusters, each solved exactly.

Method: the best distribution of the form q(x) = q_1(x_C1) q_2(x_C2) ... with disjoint clusters C of variables. The optimal
q_c given the others is the model's own distribution inside the cluster, in the mean field of its Markov blanket: factors
inside stay as they are, a factor that crosses clusters enters as the expectation of its log under the other clusters. Each
update is the exact maximum over q_c, so the evidence lower bound never falls and stays below log Z. The run starts at the
best naive mean field, so the bound is at least as good. References: Saul & Jordan (1996); Xing, Jordan & Russell (2003).
Cost of a sweep: one exact inference for each cluster. Use it when naive mean field is too crude: bigger clusters, better
bound.

Zeros in factors inside a cluster cost nothing. A zero that crosses clusters forbids a state as soon as the other clusters
give the zero entry any mass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.factors.tables.evidence import Finding
from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import Approximate
from markovia.inference.choosing.auto import Auto, kernels_loaded, kernels_on_disk
from markovia.inference.engine import Engine
from markovia.inference.flat_graphs.flat_graph import FlatGraph, codes_of, flat_graph
from markovia.inference.map_bounds.certified import polished
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Record, Tables
from markovia.inference.variational.mean_field import AscentDetails, MeanField
from markovia.inference.variational.mean_field_clusters import KINDS, clusters_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, NameLists, TimeLimit, Tolerance, WholeSeed
from markovia.runtime.clock import now

Group = tuple[int, ...]


@dataclass(frozen=True)
class StructuredMeanField(Approximate):
    """Mean field over clusters that exact inference solves; its log partition function is a lower bound.

    A joint of variables of one cluster is that cluster's own; of several clusters it is P(a) P(b | a) ..., each from a run
    of its own.

    Parameters
    ----------
    clusters
        "auto", "blocks" (squares of a grid, or connected blocks), "chains", "trees", or lists of names; a variable in no
        list is a cluster of its own.
    block
        For "blocks": the side of a square; elsewhere a block has up to `block * block` variables.
    max_iterations
        Sweeps over the clusters.
    tolerance
        Converged when no marginal changes by more than this in a sweep.
    restarts, seed
        Of the naive mean field that it starts from.
    time_limit
        Seconds; the present distribution answers by then.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(4, 4, coupling=0.4, field=0.1)
    >>> naive = grid.log_partition(engine="mean-field")
    >>> blocks = grid.log_partition(engine=mk.engines.StructuredMeanField("blocks", block=2))
    >>> bool(naive < blocks < grid.log_partition())
    True
    """

    clusters: Annotated[str | Sequence[Sequence[str]], NameLists(KINDS)] = "auto"
    block: Count = 4
    max_iterations: Count = 200
    tolerance: Tolerance = 1e-6
    restarts: Count = 4
    seed: WholeSeed = 0
    time_limit: TimeLimit = None

    name: ClassVar[str] = "structured-mean-field"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best"})

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        run = self.ascend(problem, targets)
        if run is None or not run.finite or not targets:
            return super().joint(problem, targets)
        homes = {run.home[run.graph.index[t]] for t in targets}
        if len(homes) > 1:
            return super().joint(problem, targets)
        inside = run.problem(homes.pop())
        return Tables([exact_engine().joint(inside, targets).tables[0]], run.elbo, self.record(run))

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return the distribution of each target in its cluster."""
        run = self.ascend(problem, targets)
        if run is None:
            return Tables([], -np.inf)
        mass = run.elbo if run.finite else np.nan
        return Tables(run.graph.tables(run.q, targets), mass, self.record(run))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the most probable configuration of each cluster together, improved by single changes."""
        self._refuse_parts(problem, targets, m)
        run = self.ascend(problem)
        if run is None:
            return Ranked()
        if not run.finite:
            return MeanField(restarts=self.restarts, seed=self.seed).best(problem, targets, m)
        states: dict[str, int] = {}
        for c in range(len(run.clusters)):
            states.update(exact_engine().best(run.problem(c), run.names(c), 1)[0].codes)
        codes = polished(run.graph, codes_of(run.graph, states))
        found = Assignment(run.graph.assignment(codes), run.graph.log_weight(codes))
        return Ranked([found], replace(self.record(run), bound=np.inf))

    def record(self, run: "ClusterAscent") -> Record:
        """Return what an answer says about the ascent it came from."""
        clusters = tuple([tuple(run.names(c)) for c in range(len(run.clusters))])
        return Record(
            converged=bool(run.change <= self.tolerance and run.finite),
            iterations=run.sweeps,
            error=run.change,
            exact=run.exact,
            mass_bound="lower",
            advice="raise max_iterations, or use larger clusters",
            details=AscentDetails(run.elbo, np.array(run.trace), clusters),
        )

    def ascend(self, problem: Problem, targets: Sequence[str] | None = None) -> "ClusterAscent | None":
        """Return the ascent at its end; None if no configuration has any weight."""
        start = now()
        graph = flat_graph(problem, targets)
        clusters = clusters_of(graph, self.clusters, self.block, list(problem.variables))
        limit = None if self.time_limit is None else self.time_limit / 2
        naive = MeanField(restarts=self.restarts, seed=self.seed, time_limit=limit, tolerance=1e-5)
        found = naive.ascend(graph, problem)
        if found is None:
            return None
        run = ClusterAscent(graph, clusters, found.q, found.elbo)
        end = np.inf if self.time_limit is None else start + self.time_limit
        if run.finite:
            run.sweep_until(self.max_iterations, self.tolerance, end)
        return run


class ClusterAscent:
    """The clusters of a graph, their present distributions, and the mean fields between them."""

    def __init__(self, graph: FlatGraph, clusters: list[list[int]], q: Array, elbo: float) -> None:
        self.graph, self.clusters, self.q = graph, clusters, q.copy()
        self.elbo, self.sweeps, self.change = elbo, 0, 0.0
        self.trace: list[float] = []
        self.finite = bool(np.isfinite(elbo))
        self.home: Ints = np.empty(len(graph.cards), dtype=np.int64)
        for c, members in enumerate(clusters):
            self.home[members] = c
        self.pieces: list[list[Factor]] = [[] for _ in clusters]
        self.crossing: list[list[tuple[int, Group]]] = [[] for _ in clusters]
        self.tables: dict[int, _Crossing] = {}
        variables = graph.variables
        for i, c in enumerate(self.home.tolist()):
            own = graph.unary[graph.starts[i] : graph.starts[i + 1]]
            self.pieces[c].append(Factor.of((variables[i],), own.copy()))
        for f in range(graph.n_factors):
            members = graph.members(f).tolist()
            homes = list(dict.fromkeys(self.home[members].tolist()))
            if len(homes) == 1:
                factor = Factor.of(tuple(variables[i] for i in members), graph.table(f).copy())
                self.pieces[homes[0]].append(factor)
                continue
            self.tables[f] = _Crossing(graph, f, members, self.home)
            for c in homes:
                self.crossing[c].append((f, self.tables[f].groups[c]))
        self.exact = not self.tables
        self.groups: dict[Group, Array] = {}
        for crossing in self.tables.values():
            for group in crossing.groups.values():
                self.groups[group] = _product([self._single(i) for i in group])
        self.memory: list[dict[Any, Any]] = [{} for _ in clusters]
        self.log_z = np.zeros(len(clusters))
        self.fields: list[dict[Group, Array]] = [{} for _ in clusters]
        self.offset = np.zeros(len(clusters))

    def names(self, c: int) -> list[str]:
        """Return the names of a cluster's variables."""
        return [self.graph.names[i] for i in self.clusters[c]]

    def problem(self, c: int) -> Problem:
        """Return a cluster in its present mean field as a problem for an exact engine."""
        graph = self.graph
        findings, pieces = {}, self.pieces[c]
        extra, self.offset[c] = [], 0.0
        for group, field in self.fields[c].items():
            top = float(field.max())
            weights = np.exp(field - top) if np.isfinite(top) else np.zeros(field.shape)
            self.offset[c] += top
            if len(group) == 1:
                variable = graph.variables[group[0]]
                findings[variable.name] = Finding(variable, None, likelihood=weights)
            else:
                extra.append(Factor.of(tuple(graph.variables[i] for i in group), weights))
        variables = {graph.names[i]: graph.variables[i] for i in self.clusters[c]}
        return Problem(variables, [*pieces, *extra], findings, {} if extra else self.memory[c])

    def solve(self, c: int) -> float:
        """Set a cluster to its best distribution given the others; return the largest change of a marginal."""
        graph = self.graph
        fields: dict[Group, Array] = {}
        for f, group in self.crossing[c]:
            found = self.tables[f].field(c, self.groups)
            fields[group] = fields[group] + found if group in fields else found
        before = self.fields[c]
        self.fields[c] = fields
        problem = self.problem(c)
        answer = exact_engine().marginals(problem, self.names(c))
        if not np.isfinite(answer.log_mass):
            self.fields[c] = before
            return 0.0
        self.log_z[c] = answer.log_mass + self.offset[c]
        change = 0.0
        for i, table in zip(self.clusters[c], answer.tables, strict=True):
            a, b = graph.starts[i], graph.starts[i + 1]
            change = max(change, float(np.abs(self.q[a:b] - table.values).max()))
            self.q[a:b] = table.values
        for group in fields:
            if len(group) == 1:
                self.groups[group] = self._single(group[0]).copy()
            else:
                names = [graph.names[i] for i in group]
                self.groups[group] = exact_engine().joint(problem, names).tables[0].values
        return change

    def bound(self) -> float:
        """Return the evidence lower bound of the present distributions."""
        total = self.graph.log_scale + float(self.log_z.sum())
        for fields in self.fields:
            for group, field in fields.items():
                total -= _expectation(self.groups[group], field)
        for crossing in self.tables.values():
            total += crossing.energy(self.groups)
        return total

    def sweep_until(self, most: int, tolerance: float, end: float) -> None:
        """Sweep until nothing changes, the sweeps are made or the time is over (after the first sweep)."""
        while self.sweeps < most:
            self.change = max([self.solve(c) for c in range(len(self.clusters))], default=0.0)
            self.sweeps += 1
            self.elbo = self.bound()
            self.trace.append(self.elbo)
            if self.exact:
                self.change = 0.0
            if self.change <= tolerance or now() > end:
                return

    def _single(self, i: int) -> Array:
        return self.q[self.graph.starts[i] : self.graph.starts[i + 1]]


class _Crossing:
    """A factor whose variables lie in several clusters."""

    def __init__(self, graph: FlatGraph, f: int, members: list[int], home: Ints) -> None:
        self.groups: dict[int, Group] = {}
        for i in members:
            c = int(home[i])
            self.groups[c] = (*self.groups.get(c, ()), i)
        self.members = members
        table = graph.table(f)
        zero = table <= 0
        self.zeros = zero.astype(np.float64) if zero.any() else None
        self.logs = np.log(np.where(zero, 1.0, table))

    def field(self, c: int, groups: dict[Group, Array]) -> Array:
        """Return the expected log table for each configuration of the variables in cluster c."""
        found = self._contract(self.logs, c, groups)
        if self.zeros is not None:
            found = np.where(self._contract(self.zeros, c, groups) > 0, -np.inf, found)
        return found

    def energy(self, groups: dict[Group, Array]) -> float:
        """Return the expected log table."""
        c, group = next(iter(self.groups.items()))
        return _expectation(groups[group], self.field(c, groups))

    def _contract(self, table: Array, c: int, groups: dict[Group, Array]) -> Array:
        left = list(self.members)
        for other, group in self.groups.items():
            if other == c:
                continue
            if len(self.members) == 2:
                return table @ groups[group] if left.index(group[0]) else groups[group] @ table
            axes = [left.index(i) for i in group]
            table = np.tensordot(table, groups[group], axes=(axes, list(range(len(group)))))
            left = [i for i in left if i not in group]
        return table  # what is left is the group of c, in order


def exact_engine() -> Engine:
    """Return the engine for clusters: the junction tree, which keeps its plan, unless its kernels were never compiled."""
    if kernels_loaded() or kernels_on_disk():
        from markovia.inference.exact.junction_tree import JunctionTree

        return JunctionTree()
    return Auto()


def _expectation(q: Array, logs: Array) -> float:
    """Return the sum of q times logs, with 0 times minus infinity = 0."""
    held = q > 0
    return float((q[held] * logs[held]).sum())


def _product(rows: list[Array]) -> Array:
    table = rows[0].copy()
    for row in rows[1:]:
        table = np.multiply.outer(table, row)
    return table
