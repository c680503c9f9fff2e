"""Generalised belief propagation: messages between regions of variables, with Kikuchi's approximation of the entropy.

Method: choose clusters of variables, take all their intersections with Kikuchi counting numbers (see
`markovia.inference.message_passing.region_graph`), and look for a stationary point of the region-based free energy.
"parent-to-child" sends messages down the region graph (Yedidia, Freeman and Weiss, 2005) and may need damping;
"double-loop" bounds the concave part of the free energy by a linear one and minimises the rest exactly, again and again
(Heskes, Albers and Kappen, 2003), which always converges but takes longer. Larger clusters are better and cost their
table sizes. Clusters that form a junction tree make the answer exact.
References: Yedidia, Freeman and Weiss (2005), "Constructing free-energy approximations and generalized belief propagation
algorithms"; Heskes, Albers and Kappen (2003), "Approximate inference and constrained optimization"; Yuille (2002).
Cost of a round: the possible entries of all clusters, times the regions inside each.
Use it where loops are short and strong, as in grids and lattices, and loopy belief propagation is off or does not
converge; for irregular models with large tables, `join-graph`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.tables.factor import Factor
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.flat_graphs.possibility import proved_impossible
from markovia.inference.message_passing.cluster_messages import ClusterMessages, OutOfTime, Separator
from markovia.inference.message_passing.cluster_tables import (
    Domain,
    Relation,
    maximal,
    mini_buckets,
    supports,
)
from markovia.inference.message_passing.join_graph import (
    elimination_order,
    joint_from_cluster,
)
from markovia.inference.message_passing.parent_to_child import ParentToChild
from markovia.inference.message_passing.region_graph import (
    RegionGraph,
    bethe_regions,
    chosen_clusters,
    join_edges,
    region_graph,
    separators,
)
from markovia.inference.problem import Problem
from markovia.inference.result import LogMass, Record, Tables
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Damping, NameLists, TimeLimit, Tolerance, Whole
from markovia.runtime.clock import now

ClusterChoice = Literal["auto", "factors", "intersections", "blocks", "loops", "join-graph"]
Variant = Literal["parent-to-child", "double-loop"]
LARGEST_CLUSTER = 1 << 26
INNER_ROUNDS = 500
COVER = 0.9
"""The share of the clusters' own entropy that may make up for negative counting numbers inside the double loop."""


class Clusters(NamedTuple):
    """Clusters, the regions they share, and whether the clusters form a junction tree."""

    relations: list[Relation]
    regions: RegionGraph
    links: list[Separator]
    tree: bool


@dataclass(frozen=True)
class RegionDetails:
    """Clusters and regions, entries of the largest cluster, counting numbers, and the course of the double loop."""

    clusters: int
    regions: int
    largest_cluster: int
    counts: tuple[int, ...] = ()
    inner_iterations: int = 0
    free_energies: tuple[float, ...] = ()


@dataclass(frozen=True)
class GeneralizedBP(Approximate):
    """Generalised belief propagation.

    Parameters
    ----------
    clusters
        Lists of names, completed by the factors they leave out; or how to choose them: "factors" (the Bethe
        approximation, as loopy belief propagation), "intersections" (the factors with all their intersections), "blocks"
        (2x2 blocks of a grid: loops of four without diagonals), "loops" (loops without chords up to `loop_length`
        variables), "join-graph" (mini-buckets of at most `max_entries` entries, linked as `JoinGraph` does).
        "auto" takes a junction tree if its
        tables have at most `max_entries` entries, else loops of up to four variables.
    variant
        "parent-to-child", or "double-loop", which always converges.
    damping
        The share of the old message in a new one, from 0 to below 1 (parent-to-child; the double loop needs none).
    tolerance
        Converged when neighbouring beliefs agree up to this (for the double loop: when beliefs change by less).
    max_iterations
        Rounds at most; for the double loop, steps of the outer loop.
    loop_length
        The longest loops that "loops" takes.
    max_entries
        The bound on the tables of "auto" and "join-graph".
    time_limit
        Seconds for the messages; at least one round is made.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(5, 5, coupling=0.4)
    >>> exact = grid.log_partition()
    >>> bethe = grid.log_partition(engine=GeneralizedBP(clusters="factors"))
    >>> kikuchi = grid.log_partition(engine=GeneralizedBP(clusters="blocks"))
    >>> bool(abs(kikuchi - exact) < abs(bethe - exact))
    True
    """

    clusters: Annotated[ClusterChoice | Sequence[Sequence[str]], NameLists(get_args(ClusterChoice))] = "auto"
    variant: Variant = "parent-to-child"
    damping: Damping = 0.5
    tolerance: Tolerance = 1e-6
    max_iterations: Count = 3000
    loop_length: Annotated[int, Whole(3)] = 6
    max_entries: Count = 1 << 14
    time_limit: TimeLimit = None

    name: ClassVar[str] = "generalized-bp"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass"})

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        graph = flat_graph(problem) if not isinstance(self.clusters, str) else flat_graph(problem, targets)
        found = self._run(graph)
        return Tables(graph.tables(found.marginals, targets), found.log_mass, found.record)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the region-based estimate of the log mass."""
        found = self._run(flat_graph(problem))
        return LogMass(found.log_mass, found.record)

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one table over all targets: from a cluster that holds them all, else by conditioning."""
        if len(targets) > 1:
            graph = flat_graph(problem)
            found = self._run(graph)
            table = joint_from_cluster(found.work, [graph.index[t] for t in targets])
            if table is not None:
                factor = Factor.of(tuple(problem.variables[t] for t in targets), table)
                return Tables([factor], found.log_mass, found.record)
        return super().joint(problem, targets)

    def _run(self, graph: FlatGraph) -> "_Found":
        start = now()
        deadline = None if self.time_limit is None else start + self.time_limit
        order, total = elimination_order(graph)
        domain = Domain(graph.cards, order)
        made = self._clusters(graph, domain, total)
        if made.tree or self.variant == "double-loop" or self.clusters == "join-graph":
            found = self._double_loop(graph, domain, made, deadline, self.variant)
        else:
            found = self._descend(graph, domain, made, deadline)
        if not found.record.exact and proved_impossible(graph):
            return found._replace(log_mass=-np.inf)
        return found

    def _clusters(self, graph: FlatGraph, domain: Domain, total: float) -> Clusters:
        """Return the clusters with their possible entries, and the regions between them."""
        relations = supports(graph, domain)
        choice = self.clusters
        fits = choice == "auto" and total <= self.max_entries
        if choice == "join-graph" or fits:
            kept = maximal(mini_buckets(domain, relations, float("inf") if fits else self.max_entries)[0])
            edges, forest = join_edges([c.scope for c in kept], domain.cards)
            regions = RegionGraph(tuple(frozenset(c.scope) for c in kept), (1,) * len(kept), len(kept))
            return Clusters(kept, regions, _sorted(domain, edges), forest)
        length = 4 if choice == "auto" else self.loop_length
        outer = chosen_clusters(graph, "loops" if choice == "auto" else choice, length)
        if choice == "auto":
            factors = {frozenset(graph.members(f).tolist()) for f in range(graph.n_factors)}
            small = [c for c in outer if c in factors or domain.space(c) <= self.max_entries]
            outer = chosen_clusters(graph, [[graph.names[i] for i in c] for c in small], length)
        if choice == "factors":
            scopes = [graph.members(f).tolist() for f in range(graph.n_factors)]
            regions = bethe_regions(len(graph.variables), scopes)
        else:
            regions = region_graph(outer)
        clusters = [
            _cluster(domain, relations, frozenset(int(v) for v in r))
            for r in regions.regions[: regions.n_outer]
        ]
        edges, forest = join_edges([c.scope for c in clusters], domain.cards)
        return Clusters(clusters, regions, _sorted(domain, edges if forest else separators(regions)), forest)

    def _descend(self, graph: FlatGraph, domain: Domain, made: Clusters, deadline: float | None) -> "_Found":
        work = ParentToChild(graph, domain, made.regions, made.relations)
        change, rounds = 0.0, 0
        while work.possible and rounds < self.max_iterations:
            change = work.round(self.damping, deadline)
            rounds += 1
            if change <= self.tolerance or (deadline is not None and now() > deadline):
                break
        marginals, log_mass = work.answer()
        if not work.possible:  # either nothing is possible, or the messages ran away: the double loop tells
            return self._double_loop(graph, domain, made, deadline, "double-loop")
        record = self._record(made, change, rounds, False, counts=made.regions.counts)
        return _Found(marginals, log_mass, record, work)

    def _double_loop(
        self, graph: FlatGraph, domain: Domain, made: Clusters, deadline: float | None, variant: Variant
    ) -> "_Found":
        work = ClusterMessages(graph, domain, made.relations, made.links)
        change, rounds, inner = 0.0, 0, 0
        energies: list[float] = []
        single = made.tree or variant != "double-loop"
        if not single:
            convex = np.maximum(work.count, -_covered(made))
            work.set_counts(convex)
            exponent = (convex - work.count) / np.maximum(work.members, 1.0)
        while work.possible and rounds < self.max_iterations:
            before = work.talk.belief.copy()
            try:
                if single:
                    change = work.round(0.0 if made.tree else self.damping, deadline if rounds else None)
                else:
                    if rounds:
                        work.reweigh(exponent)
                    inner += self._inner(work, deadline)
                    change = (
                        float(np.abs(work.talk.belief - before).max(initial=0.0)) if work.possible else -1.0
                    )
                    energies.append(-work.answer()[1])
            except OutOfTime:
                break
            rounds += 1
            if made.tree:
                change = 0.0
            if change <= self.tolerance or (deadline is not None and now() > deadline):
                break
        marginals, log_mass = work.answer()
        exact = made.tree or not work.possible
        record = self._record(made, change, rounds, exact, inner=inner, energies=tuple(energies))
        return _Found(marginals, log_mass, record, work)

    def _inner(self, work: ClusterMessages, deadline: float | None) -> int:
        """Minimise the convex bound; return the rounds it took."""
        for k in range(INNER_ROUNDS):
            change = work.balance(0.0, deadline)
            if change <= 0.01 * self.tolerance:
                return k + 1
        return INNER_ROUNDS

    def _record(
        self,
        made: Clusters,
        change: float,
        rounds: int,
        exact: bool,
        *,
        counts: tuple[int, ...] = (),
        inner: int = 0,
        energies: tuple[float, ...] = (),
    ) -> Record:
        return Record(
            converged=bool(change <= self.tolerance),
            iterations=rounds,
            error=max(change, 0.0),
            exact=exact,
            advice="variant='double-loop' always converges; more damping may do"
            if self.variant == "parent-to-child"
            else "give it more time",
            details=RegionDetails(
                clusters=len(made.relations),
                regions=len(made.relations) + len(made.links),
                largest_cluster=max((c.size for c in made.relations), default=1),
                counts=counts,
                inner_iterations=inner,
                free_energies=energies,
            ),
        )


class _Found(NamedTuple):
    """Marginals, log mass, how they were obtained, and what gave them."""

    marginals: Array
    log_mass: float
    record: Record
    work: ClusterMessages | ParentToChild


def _covered(made: Clusters) -> Array:
    """Return how negative each separator's counting number may be in a free energy that stays convex.

    A cluster's entropy is at least that of a region inside it. So each cluster shares out its own count of one among the
    regions inside it that count negatively (Heskes, 2006, "Convexity arguments for efficient minimization").
    """
    negative = [s.counting < 0 for s in made.links]
    inside = np.zeros(len(made.relations))
    for link, needy in zip(made.links, negative, strict=True):
        inside[list(link.clusters)] += needy
    shares = [
        sum([1.0 / inside[c] for c in s.clusters]) if n else 0.0
        for s, n in zip(made.links, negative, strict=True)
    ]
    return COVER * np.array(shares)


def _sorted(domain: Domain, links: Sequence[Separator]) -> list[Separator]:
    return [Separator(domain.sort(s.scope), s.clusters, s.counting) for s in links]


def _cluster(domain: Domain, relations: Sequence[Relation], members: frozenset[int]) -> Relation:
    """Return the configurations of a cluster that the tables inside it allow."""
    if domain.space(members) > LARGEST_CLUSTER:
        raise TooLarge(
            f"a cluster of {len(members)} variables has {domain.space(members):,} configurations (at most "
            f"{LARGEST_CLUSTER:,}); choose smaller clusters"
        )
    made: Relation | None = None
    for r in relations:
        if r.keys is not None and members.issuperset(r.scope):
            made = r if made is None else domain.joined(made, r, float("inf"))
    full = domain.full(members)
    joined = full if made is None else domain.joined(full, made, float("inf"))
    assert joined is not None
    return joined
