"""Region graphs and counting numbers: which clusters of variables an approximation keeps, and how often each counts.

Method: start from clusters (the outer regions), add all their intersections, intersections of those, and so on, and
give each region the counting number one minus the sum over the regions that contain it (Kikuchi's cluster variation
method). Then every variable and every factor is counted once, and the entropy of the model is approximated by the sum
of the regions' entropies, each times its number. Join graphs are the other choice: every variable's clusters are linked
to a tree, each link counts minus one.
References: Kikuchi (1951); Yedidia, Freeman and Weiss (2005), "Constructing free-energy approximations and generalized
belief propagation algorithms"; Mateescu, Kask, Gogate and Dechter (2010), "Join-graph propagation algorithms".
Cost: pairs of clusters that share variables, for every level of intersections.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.message_passing.cluster_messages import Separator

MOST_LOOPS = 200_000


@dataclass(frozen=True)
class RegionGraph:
    """Regions, outer ones first, with counting numbers.

    Attributes
    ----------
    regions
        The variables of each region, by number or name; a region comes after those that contain it.
    counts
        The counting number of each region.
    n_outer
        How many of the regions are clusters that no other region contains.

    Examples
    --------
    >>> loop = region_graph([["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]])
    >>> loop.counts
    (1, 1, 1, 1, -1, -1, -1, -1)
    """

    regions: tuple[frozenset[int | str], ...]
    counts: tuple[int, ...]
    n_outer: int

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """For each region the smallest regions that contain it."""
        found = []
        for r, region in enumerate(self.regions):
            above = [a for a in range(r) if region < self.regions[a]]
            found.append(
                tuple(a for a in above if not any(self.regions[b] < self.regions[a] for b in above if b != a))
            )
        return tuple(found)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each region the largest regions inside it."""
        found: list[list[int]] = [[] for _ in self.regions]
        for r, above in enumerate(self.parents):
            for a in above:
                found[a].append(r)
        return tuple(map(tuple, found))

    def total(self, members: Iterable[int | str]) -> int:
        """Return the sum of the counting numbers of the regions that hold all these variables; it should be one."""
        inside = frozenset(members)
        return sum([c for c, r in zip(self.counts, self.regions, strict=True) if inside <= r])

    def check(self, scopes: Iterable[Iterable[int | str]]) -> None:
        """Raise `InvalidArgument` unless every variable and each of these scopes is counted exactly once."""
        singles = {frozenset([v]) for r in self.regions for v in r}
        for scope in (*singles, *map(frozenset, scopes)):
            if self.total(scope) != 1:
                raise InvalidArgument(
                    f"the regions count {sorted(scope, key=str)} {self.total(scope)} times, not once; "
                    "every factor needs a cluster that holds all its variables"
                )


def region_graph(clusters: Iterable[Iterable[int | str]]) -> RegionGraph:
    """Return the region graph of all intersections of some clusters, with Kikuchi counting numbers.

    Clusters inside others are dropped. Regions with counting number zero are kept: see `separators`.

    Examples
    --------
    >>> blocks = region_graph(["abde", "bcef", "degh", "efhi"])  # the 2x2 blocks of a 3x3 grid
    >>> dict(zip(map("".join, map(sorted, blocks.regions)), blocks.counts))["e"]
    1
    """
    outer = _maximal(map(frozenset, clusters))
    inner: set[frozenset[int | str]] = set()
    fresh = set(outer)
    while fresh:
        made = {m for a in fresh for b in _touching(a, outer) if (m := a & b) and m != a}
        fresh = made - inner
        inner |= fresh
    inside = sorted(inner, key=lambda r: (-len(r), sorted(r, key=str)))
    regions = [*outer, *inside]
    holding: dict[int | str, set[int]] = {}
    counts: list[int] = []
    for r, region in enumerate(regions):
        above = set.intersection(*(holding.get(v, set()) for v in region)) if region else set()
        counts.append(1 - sum([counts[a] for a in above]))
        for v in region:
            holding.setdefault(v, set()).add(r)
    return RegionGraph(tuple(regions), tuple(counts), len(outer))


def bethe_regions(n: int, scopes: Iterable[Sequence[int]]) -> RegionGraph:
    """Return the region graph of the Bethe approximation: the factors, and every variable they share."""
    outer: list[frozenset[int | str]] = _maximal(frozenset(s) for s in scopes)
    seen: dict[int | str, int] = {}
    for region in outer:
        for v in region:
            seen[v] = seen.get(v, 0) + 1
    outer += [frozenset([v]) for v in range(n) if v not in seen]
    shared = [v for v in sorted(seen, key=str) if seen[v] > 1]
    counts = [1] * len(outer) + [1 - seen[v] for v in shared]
    return RegionGraph((*outer, *(frozenset([v]) for v in shared)), tuple(counts), len(outer))


def separators(regions: RegionGraph) -> list[Separator]:
    """Return the inner regions that count, with the clusters that hold them."""
    found = []
    outer = regions.regions[: regions.n_outer]
    for region, count in zip(
        regions.regions[regions.n_outer :], regions.counts[regions.n_outer :], strict=True
    ):
        if count:
            members: tuple[int, ...] = tuple(sorted(region))  # type: ignore[arg-type]
            found.append(Separator(members, tuple(c for c, o in enumerate(outer) if region <= o), count))
    return found


def join_edges(scopes: Sequence[Sequence[int]], cards: Sequence[int]) -> tuple[list[Separator], bool]:
    """Link clusters to a join graph with separators as large as can be; say whether it is a forest.

    Pairs of clusters come in the order of how much they share. A variable is put on a link if the clusters on both
    sides were not yet linked through that variable. So each variable's links form a tree, and clusters of a
    junction tree give that tree back.
    """
    logs = [
        log(c) + 0.01 for c in cards
    ]  # positive, so that the heaviest tree of a junction tree's clusters is one
    holding: dict[int, list[int]] = {}
    for c, scope in enumerate(scopes):
        for i in scope:
            holding.setdefault(i, []).append(c)
    shared: dict[tuple[int, int], list[int]] = {}
    for i in sorted(holding):
        here = holding[i]
        for x, a in enumerate(here):
            for b in here[x + 1 :]:
                shared.setdefault((a, b), []).append(i)
    ranked = sorted(shared, key=lambda p: (-sum([logs[i] for i in shared[p]]), p[1] - p[0], p))
    leader: dict[tuple[int, int], int] = {}

    def find(i: int, c: int) -> int:
        while (up := leader.get((i, c), c)) != c:
            leader[i, c] = leader.get((i, up), up)
            c = up
        return c

    found: list[Separator] = []
    forest = True
    for a, b in ranked:
        label: list[int] = []
        for i in shared[a, b]:
            x, y = find(i, a), find(i, b)
            if x != y:
                leader[i, x] = y
                label.append(i)
        if label:
            x, y = find(-1, a), find(-1, b)
            forest = forest and x != y
            leader[-1, x] = y
            found.append(Separator(tuple(label), (a, b), -1))
    found.sort(key=lambda s: s.clusters)
    return found, forest


def chosen_clusters(
    graph: FlatGraph, clusters: "str | Sequence[Sequence[str]]", length: int
) -> list[frozenset[int]]:
    """Return clusters by name of the method, or as the user gave them, completed by the factors they leave out.

    "factors" are the factors' scopes, "blocks" the squares without diagonals (2x2 blocks of a grid), "loops" all
    cycles without chords of at most `length` variables.
    """
    scopes = [frozenset(graph.members(f).tolist()) for f in range(graph.n_factors)]
    found: list[frozenset[int]] = []
    if isinstance(clusters, str):
        if clusters == "blocks":
            found = [frozenset(c) for c in chordless_cycles(_adjacency(graph), 4) if len(c) == 4]
        elif clusters == "loops":
            found = [frozenset(c) for c in chordless_cycles(_adjacency(graph), length)]
    else:
        for cluster in clusters:
            for name in cluster:
                if name not in graph.index and name not in graph.names:
                    raise UnknownVariable(name, graph.names, "the free variables")
            found.append(frozenset(graph.index[name] for name in cluster))
    found += scopes
    found += [frozenset([i]) for i in range(len(graph.variables))]
    return _maximal(found)  # type: ignore[return-value]


def chordless_cycles(adjacency: Sequence[set[int]], length: int) -> list[tuple[int, ...]]:
    """Return all cycles of at most `length` vertices without a chord, triangles included, each once.

    Examples
    --------
    >>> chordless_cycles([{1, 3}, {0, 2}, {1, 3}, {0, 2}], 4)
    [(0, 1, 2, 3)]
    """
    found: list[tuple[int, ...]] = []

    def extend(path: list[int]) -> None:
        start, end = path[0], path[-1]
        for v in sorted(adjacency[end]):
            if v <= start or v in path:
                continue
            inside = adjacency[v].intersection(path[1:-1])
            if inside:
                continue
            if start in adjacency[v] and len(path) >= 2:
                if path[1] < v:
                    found.append((*path, v))
                    if len(found) > MOST_LOOPS:
                        raise InvalidArgument(
                            f"more than {MOST_LOOPS:,} loops of at most {length} variables; choose a smaller loop_length="
                        )
            elif len(path) + 1 < length:
                extend([*path, v])

    for v in range(len(adjacency)):
        extend([v])
    return found


def _adjacency(graph: FlatGraph) -> list[set[int]]:
    start, near = graph.neighbours()
    return [set(near[start[i] : start[i + 1]].tolist()) for i in range(len(graph.variables))]


def _maximal(clusters: Iterable[frozenset[int | str]]) -> list[frozenset[int | str]]:
    kept: list[frozenset[int | str]] = []
    at: dict[int | str, list[frozenset[int | str]]] = {}
    given = list(dict.fromkeys(c for c in clusters if c))
    place = {c: k for k, c in enumerate(given)}
    for c in sorted(given, key=lambda c: (-len(c), place[c])):
        fewest = min((at.get(v, []) for v in c), key=len)
        if any(c <= h for h in fewest):
            continue
        kept.append(c)
        for v in c:
            at.setdefault(v, []).append(c)
    return sorted(kept, key=place.__getitem__)


def _touching(
    region: frozenset[int | str], outer: Sequence[frozenset[int | str]]
) -> list[frozenset[int | str]]:
    return [o for o in outer if not region.isdisjoint(o)]
