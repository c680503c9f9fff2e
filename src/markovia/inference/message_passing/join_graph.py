"""Iterative join-graph propagation: message passing between clusters as large as time and memory allow.

Method: mini-buckets along a good elimination order give clusters with a bounded number of possible entries; they are
linked to a join graph with separators as large as can be, and messages go there and back until they settle. With enough
room no bucket is split, the join graph is a junction tree and the answer exact after one round. Without `max_entries=`
the bound grows fourfold as long as the time allows; the last answer counts. Impossible configurations are never
stored, and symmetries of the model are broken first (see `markovia.inference.flat_graphs.symmetry`).
References: Dechter, Kask and Mateescu (2002), "Iterative join-graph propagation"; Mateescu, Kask, Gogate and Dechter
(2010), "Join-graph propagation algorithms".
Cost of a round: a few nanoseconds an entry and separator; the number of clusters is about that of the variables.
Use it for marginals where a junction tree does not fit by a factor of thousands or millions, above all where tables hold
many zeros (pedigrees, linkage analysis, diagnosis). Where loops interact strongly the log mass is an estimate without
guarantee.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import ClassVar, NamedTuple

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import Approximate, joint_by_conditioning
from markovia.inference.exact.junction_tree import JunctionTree
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.flat_graphs.possibility import plausible_mass, proved_impossible
from markovia.inference.flat_graphs.symmetry import Broken, break_symmetries
from markovia.inference.message_passing.cluster_messages import ClusterMessages, OutOfTime, Separator
from markovia.inference.message_passing.cluster_tables import Domain, maximal, mini_buckets, supports
from markovia.inference.message_passing.parent_to_child import ParentToChild
from markovia.inference.message_passing.region_graph import join_edges
from markovia.inference.problem import Problem
from markovia.inference.result import LogMass, Record, Tables
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, CountOrNone, Damping, TimeLimit, Tolerance
from markovia.runtime.clock import now
from markovia.runtime.memory_budget import default_budget

FIRST_BOUND = 1 << 10
LAST_BOUND = 1 << 16
"""The bound that growth stops at without a time limit."""
GROWTH = 4
PROBE = 4
"""Rounds on one size of clusters before the next size is tried."""
ENTRIES_A_SECOND = 1.5e6
"""A low guess of how many entries are built and run through in a second."""
WIDE = 45.0
"""log2 of the entries of a clique in a quick elimination from which on no tree is looked for."""
TREE_ENTRIES_A_SECOND = 3.2e7
"""A low guess for a junction tree with full tables."""
TRIED_BOUND = 1 << 18
"""The bound at which a junction tree is looked for before clusters grow step by step."""
BYTES_AN_ENTRY = 120
"""Memory for an entry while clusters are built: key, weight, and a few codes and positions."""
SEARCH_SHARE, SEARCH_MOST = 0.5, 4e8
"""Effort of the search for an elimination order; see `markovia.kernels.clique_trees.elimination.find_order`."""


@dataclass(frozen=True)
class JoinGraphDetails:
    """Clusters, the entries of the largest and of all, the bound on one (None for none), and symmetries broken."""

    clusters: int
    largest_cluster: int
    entries: int
    max_entries: int | None
    symmetries: int


class JoinGraphMarginals(NamedTuple):
    """Marginals over all states of all variables, the log mass, and how they were obtained."""

    marginals: Array
    log_mass: float
    record: Record
    messages: ClusterMessages


@dataclass(frozen=True)
class JoinGraph(Approximate):
    """Join-graph propagation with clusters of bounded size.

    Parameters
    ----------
    max_entries
        The most possible entries of a cluster (a single factor may have more). None takes 65,536; with a `time_limit` it
        starts at 1,024 and grows fourfold as long as the next size can be expected to make four rounds in time. A
        junction tree is taken where it is affordable; with a `time_limit`, `junction-tree` itself answers where its full
        tables surely fit.
    max_iterations
        Rounds at most for each size of the clusters. Where many loops interact, as in linkage analysis, the
        fixed point can be too sure of itself, and a few rounds closer to the truth.
    tolerance
        Messages have settled when no separator's probability changes by more than this in a round.
    damping
        The share of the old message in a new one, from 0 to below 1.
    symmetry
        Break symmetries of the model first.
    time_limit
        Seconds for everything; at least one round is made. A junction tree that was judged to fit is not interrupted,
        and takes longer than judged where its tables leave the range of doubles.

    Examples
    --------
    >>> import markovia as mk
    >>> asia = mk.examples.asia()
    >>> found = asia.query("dysp", given={"smoke": "yes"}, engine=JoinGraph())
    >>> found.info.exact
    True
    >>> grid = mk.generators.ising_grid(8, 8, coupling=0.3, seed=1)
    >>> rough = grid.query(grid.variables[0], engine=JoinGraph(max_entries=16))
    >>> rough.info.exact, rough.info.details.largest_cluster
    (False, 16)
    """

    max_entries: CountOrNone = None
    max_iterations: Count = 100
    tolerance: Tolerance = 1e-6
    damping: Damping = 0.0
    symmetry: bool = True
    time_limit: TimeLimit = None

    name: ClassVar[str] = "join-graph"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass"})

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        start = now()
        graph = flat_graph(problem, targets)
        if self._tree_is_quick(graph):
            exact = JunctionTree().marginals(problem, targets)
            record = replace(exact.record, exact=True, engine=JunctionTree.name)
            return Tables(exact.tables, exact.log_mass, record)
        found = self._run(graph, self.symmetry, start)
        return Tables(graph.tables(found.marginals, targets), found.log_mass, found.record)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the region-based estimate of the log mass."""
        start = now()
        graph = flat_graph(problem)
        if self._tree_is_quick(graph):
            return JunctionTree().log_mass(problem)
        found = self._run(graph, self.symmetry, start)
        return LogMass(found.log_mass, found.record)

    def _tree_is_quick(self, graph: FlatGraph) -> bool:
        """Say whether a junction tree with full tables surely fits the time limit and the memory."""
        if self.max_entries is not None or self.time_limit is None:
            return False
        from markovia.kernels.clique_trees.elimination import wider_than

        if wider_than(graph.scope_ptr, graph.scope, graph.cards, WIDE):
            return False
        total = elimination_order(graph)[1]
        return LAST_BOUND < total <= self.time_limit * TREE_ENTRIES_A_SECOND and 16 * total < default_budget()

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one table over all targets: from a cluster that holds them all, else by conditioning."""
        start = now()
        graph = flat_graph(problem, targets)
        if len(targets) > 1 and graph.n_factors:
            found = self._run(graph, False, start)
            table = joint_from_cluster(found.messages, [graph.index[t] for t in targets])
            if table is not None:
                factor = Factor.of(tuple(problem.variables[t] for t in targets), table)
                return Tables([factor], found.log_mass, found.record)
        if self.time_limit is None:
            return super().joint(problem, targets)
        left = max(self.time_limit - (now() - start), 0.1 * self.time_limit)
        return joint_by_conditioning(replace(self, time_limit=left), problem, targets)

    def _run(self, graph: FlatGraph, symmetry: bool, start: float) -> JoinGraphMarginals:
        deadline = None if self.time_limit is None else start + self.time_limit
        broken = Broken(graph, [])
        if symmetry:
            until = now() + (2.0 if self.time_limit is None else min(2.0, 0.1 * self.time_limit))
            broken = break_symmetries(graph, until)
        order, total = elimination_order(broken.graph)
        domain = Domain(graph.cards, order)
        relations = supports(broken.graph, domain)
        bound = self._first_bound(total, None if deadline is None else deadline - now())
        if bound == FIRST_BOUND and mini_buckets(domain, relations, TRIED_BOUND)[1]:
            bound = TRIED_BOUND  # zeros make a junction tree small
        best: JoinGraphMarginals | None = None
        while True:
            began = now()
            kept = maximal(mini_buckets(domain, relations, bound)[0])
            edges, forest = join_edges([c.scope for c in kept], domain.cards)
            links = [Separator(domain.sort(s.scope), s.clusters, s.counting) for s in edges]
            messages = ClusterMessages(broken.graph, domain, kept, links)
            growing = self.max_entries is None and deadline is not None and not forest
            settling = _Settling(self, messages, forest)
            finished = settling.run(PROBE if growing else self.max_iterations, deadline, best is not None)
            at = now()
            if growing and finished and self._may_grow(messages, at + GROWTH * (at - began), deadline):
                best = settling.answer(broken, bound)
                bound *= GROWTH
                continue
            if growing and finished:
                settling.run(self.max_iterations, deadline, True)
            if settling.rounds >= (2 if best is not None else 1) or not messages.possible or forest:
                best = settling.answer(broken, bound)
            assert best is not None
            if not best.record.exact and proved_impossible(graph):
                return best._replace(log_mass=-inf)
            if not plausible_mass(graph, best.log_mass):  # region counts can make free energies run away
                return best._replace(log_mass=nan, record=replace(best.record, converged=False))
            return best

    def _first_bound(self, total: float, seconds: float | None) -> float:
        """Return the bound to begin with: none where a junction tree is small enough."""
        if self.max_entries is not None:
            return self.max_entries
        affordable = LAST_BOUND if seconds is None else max(LAST_BOUND, 0.5 * seconds * ENTRIES_A_SECOND)
        if total <= affordable and BYTES_AN_ENTRY * total < default_budget():
            return inf
        return LAST_BOUND if seconds is None else FIRST_BOUND

    def _may_grow(self, messages: ClusterMessages, expected: float, deadline: float | None) -> bool:
        if deadline is None or expected > deadline:
            return False
        return BYTES_AN_ENTRY * GROWTH * messages.entries < default_budget()


class _Settling:
    """Rounds of messages on one join graph."""

    def __init__(self, settings: JoinGraph, messages: ClusterMessages, forest: bool) -> None:
        self.settings, self.messages, self.forest = settings, messages, forest
        self.change, self.rounds = inf, 0

    def run(self, rounds: int, deadline: float | None, interrupt: bool) -> bool:
        """Pass messages until they settle, or up to a number of rounds; say whether time was left.

        With `interrupt`, the deadline may cut a round short, and always from the second round on.
        """
        while self.messages.possible and self.rounds < rounds and self.change > self.settings.tolerance:
            try:
                damping = 0.0 if self.forest else self.settings.damping
                change = self.messages.round(damping, deadline if interrupt or self.rounds else None)
            except OutOfTime:
                return False
            self.change = 0.0 if self.forest else change
            self.rounds += 1
        return deadline is None or now() < deadline

    def answer(self, broken: Broken, bound: float) -> JoinGraphMarginals:
        """Read off the answer."""
        messages = self.messages
        marginals, log_mass = messages.answer()
        change = self.change if messages.possible else 0.0
        record = Record(
            converged=bool(change <= self.settings.tolerance),
            iterations=self.rounds,
            error=min(change, 1.0),
            exact=self.forest or not messages.possible,
            advice="more time, damping=0.5 or another max_entries= may help",
            details=JoinGraphDetails(
                clusters=len(messages.scopes),
                largest_cluster=int(messages.largest),
                entries=messages.entries,
                max_entries=None if bound == inf else int(bound),
                symmetries=len(broken.mirrors),
            ),
        )
        return JoinGraphMarginals(broken.restored(marginals), log_mass, record, messages)


def elimination_order(graph: FlatGraph) -> tuple[Ints, float]:
    """Return an elimination order and the entries of its tables; variables with one possible state come first."""
    from markovia.kernels.clique_trees.elimination import find_order

    n = len(graph.variables)
    if not n:
        return np.zeros(0, dtype=np.int64), 0.0
    states = np.add.reduceat((graph.unary > 0).astype(np.int64), graph.starts[:-1])
    stage = np.where(states > 1, 0, -1)  # a negative stage is left out
    order, total, _ = find_order(graph.scope_ptr, graph.scope, states, stage, SEARCH_SHARE, SEARCH_MOST)
    return np.concatenate((np.flatnonzero(stage < 0), order[: int((stage == 0).sum())])), total


def joint_from_cluster(messages: ClusterMessages | ParentToChild, targets: Sequence[int]) -> Array | None:
    """Return the belief over some variables from the smallest cluster that holds them all, or None."""
    wanted = set(targets)
    hosts = [c for c, scope in enumerate(messages.scopes) if wanted <= set(scope)]
    if not hosts or not messages.possible:
        return None
    c = min(hosts, key=lambda c: messages.domain.space(messages.scopes[c]))
    scope = messages.scopes[c]
    if messages.domain.space(scope) > 1 << 26:
        return None
    belief = messages.cluster_belief(c)
    summed = belief.sum(axis=tuple(k for k, i in enumerate(scope) if i not in wanted))
    left = [i for i in scope if i in wanted]
    found: Array = summed.transpose([left.index(t) for t in targets])
    return found
