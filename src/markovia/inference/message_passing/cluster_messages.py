"""Messages between clusters and the separators they share, over possible configurations only.

Method: every cluster holds the product of the tables assigned to it. It hears one message from each of its separators,
and says to each what its belief sums to, less what it heard. A separator with n clusters and counting number c believes
the product of what they say to the power 1 / (n + c), and tells each cluster that belief, less what the cluster said
itself (Heskes, Albers and Kappen, 2003). With two clusters a separator and c = -1 this is belief propagation in a join
graph, exact in one round there and back if the join graph is a tree.
Cost of a round: twice the possible entries of all clusters, for every separator of the cluster.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.message_passing.cluster_tables import (
    Domain,
    Relation,
    belief_table,
    cluster_bases,
    cluster_entries,
    contains,
    numbered,
    shared_codes,
    variable_homes,
)
from markovia.kernels.messages.cluster_records import ClusterTalk, SeparatorSlots
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now
from markovia.runtime.threads import in_parallel, thread_count

SLICE = 1 << 23
"""Steps after which a round looks at the clock."""
WORTH_THREADS = 1 << 17
"""Steps of independent clusters from which two threads pay."""


NONE: Ints = np.empty(0, dtype=np.int64)


class Separator(NamedTuple):
    """Variables on which clusters agree, the clusters, and the counting number."""

    scope: tuple[int, ...]
    clusters: tuple[int, ...]
    counting: int


class OutOfTime(Exception):
    """The time limit came before the end of a round."""


class ClusterMessages:
    """Clusters with tables and messages, ready to run.

    Attributes
    ----------
    possible
        Whether some configuration may have weight; False once a cluster has no entry left.
    entries
        Possible entries of all clusters together.
    """

    def __init__(
        self, graph: FlatGraph, domain: Domain, clusters: Sequence[Relation], separators: Sequence[Separator]
    ) -> None:
        self.graph, self.domain = graph, domain
        self.scopes = [c.scope for c in clusters]
        self.separators = list(separators)
        self.possible = graph.log_scale > -np.inf
        relations = list(clusters)
        bases = cluster_bases(graph, domain, relations, everywhere=False)
        relations, bases = _drop(relations, bases, [b > 0 for b in bases])
        relations, bases, places, sizes = _agree(domain, relations, bases, self.separators)
        self.possible = self.possible and all(r.size for r in relations)
        self.relations = relations
        n = len(relations)
        tops = [float(b.max(initial=0.0)) or 1.0 for b in bases]
        self.log_scale = graph.log_scale + float(np.log(tops).sum())
        scaled = [b / t for b, t in zip(bases, tops, strict=True)]
        slots: list[list[tuple[int, Any]]] = [[] for _ in range(n)]
        for s, sep in enumerate(self.separators):
            for c, place in zip(sep.clusters, places[s], strict=True):
                slots[c].append((s, place))
        slot_sep = np.array([s for x in slots for s, _ in x], dtype=np.int64)
        sep_size = np.array(sizes, dtype=np.int64)
        sep_at = np.concatenate(([0], np.cumsum(sep_size))).astype(np.int64)
        here = sep_size[slot_sep]
        slot_at = (np.cumsum(here) - here).astype(np.int64)
        self.clusters = cluster_entries(scaled, [[p for _, p in x] for x in slots], slot_at)
        entry_ptr, slot_ptr = self.clusters.entry_ptr, self.clusters.slot_ptr
        self.entries = int(entry_ptr[-1])
        slot_cluster = np.repeat(np.arange(n), np.diff(slot_ptr)).astype(np.int64)
        sep_slots = np.argsort(slot_sep, kind="stable").astype(np.int64)
        sep_ptr = np.searchsorted(slot_sep[sep_slots], np.arange(len(sep_size) + 1)).astype(np.int64)
        self.members = np.diff(sep_ptr).astype(np.float64)
        self.count = np.array([s.counting for s in self.separators], dtype=np.float64)
        self.meetings = SeparatorSlots(
            slot_sep, slot_cluster, sep_ptr, sep_slots, sep_at, self.members, self.members
        )
        self.set_counts(self.count)
        self.largest_sep = int(sep_size.max(initial=1))
        self.largest = max((r.size for r in relations), default=1)
        slot_entries, sep_entries = int(here.sum()), int(sep_at[-1])
        belief = np.ones(sep_entries) / np.repeat(np.maximum(sep_size, 1), sep_size)
        self.talk = ClusterTalk(np.ones(slot_entries), np.ones(slot_entries), belief, np.ones(sep_entries))
        self.steps = np.diff(entry_ptr) * (2 * np.diff(slot_ptr) + 1)

    def set_counts(self, count: Array) -> None:
        """Use these counting numbers for the separators."""
        power = self.members + count
        self.meetings = self.meetings._replace(power=power, slack=np.maximum(0.0, 1.0 - power))

    def _waves(self) -> list[list[Ints]]:
        """Return lists of clusters that may speak in any order, one after the other; each cut in two for threads."""
        level, ptr = np.zeros(len(self.scopes), dtype=np.int64), self.clusters.slot_ptr
        last = np.full(len(self.separators), -1, dtype=np.int64)
        for c in leaves_first(len(self.scopes), self.separators):
            mine = self.meetings.slot_sep[ptr[c] : ptr[c + 1]]
            if len(mine):
                level[c] = last[mine].max() + 1
                last[mine] = level[c]
        waves: list[list[Ints]] = []
        pending: list[Ints] = []
        held = 0
        for wave in range(int(level.max(initial=-1)) + 1):
            members = np.flatnonzero(level == wave)
            work = int(self.steps[members].sum())
            if work >= WORTH_THREADS and len(members) > 1:
                if pending:
                    waves.append([np.concatenate(pending)])
                    pending, held = [], 0
                waves.append(_halves(members, self.steps))
                continue
            pending.append(members)
            held += work
            if held >= SLICE:
                waves.append([np.concatenate(pending)])
                pending, held = [], 0
        if pending:
            waves.append([np.concatenate(pending)])
        return waves

    def round(self, damping: float, deadline: float | None) -> float:
        """Let every cluster speak, there and back; return the largest change, -1 where nothing is possible.

        Raises
        ------
        OutOfTime
            If the deadline (of `runtime.clock.now`) passes.
        """
        if not self.possible:
            return -1.0
        if not hasattr(self, "waves"):
            self.waves = self._waves()
            self.rooms = [self._room() for _ in range(min(2, thread_count()))]

        def speak(clusters: Ints, room: tuple[Array, Array]) -> float:
            return self._sweep(clusters, NONE, damping, room)

        rooms = self.rooms
        worst = 0.0
        for way in (1, -1):
            for wave in self.waves[::way]:
                if deadline is not None and now() > deadline:
                    raise OutOfTime
                if len(wave) == 1:
                    found = [speak(np.ascontiguousarray(wave[0][::way]), rooms[0])]
                else:
                    free = list(rooms)
                    found = in_parallel(speak, wave, free.pop, threads=len(rooms))
                if min(found) < 0:
                    self.possible = False
                    return -1.0
                worst = max(worst, *found)
        return worst

    def balance(self, damping: float, deadline: float | None) -> float:
        """Let every separator hear all its clusters anew, one after the other; return as `round` does.

        Where no counting number is negative, every step is a coordinate ascent, which cannot fail to converge.
        """
        if not self.possible:
            return -1.0
        worst, room = 0.0, self._room()
        at = self.meetings
        load = np.add.reduceat(self.steps[at.slot_cluster[at.sep_slots]], at.sep_ptr[:-1])
        cuts = np.flatnonzero(np.diff(np.cumsum(load) // SLICE)) + 1
        for part in np.split(np.arange(len(self.separators)), cuts):
            if deadline is not None and now() > deadline:
                raise OutOfTime
            change = self._sweep(NONE, part, damping, room)
            if change < 0:
                self.possible = False
                return -1.0
            worst = max(worst, change)
        return worst

    def reweigh(self, exponent: Array) -> None:
        """Multiply into the clusters the present beliefs of the separators, each to its power, instead of former ones."""
        talk, (slot_sep, _, _, _, sep_at, _, _) = self.talk, self.meetings
        old, sizes = talk.weight, np.diff(sep_at)
        powers = np.repeat(exponent, sizes)
        new = np.where(powers == 0.0, 1.0, talk.belief**powers)
        top = np.maximum.reduceat(new, sep_at[:-1]) if len(new) else new
        self.talk = talk._replace(weight=new / np.repeat(top, sizes))
        ratio = np.divide(self.talk.weight, old, out=np.zeros_like(old), where=old > 0)
        for slot, at in enumerate(self.clusters.slot_at):
            a, z = sep_at[slot_sep[slot] : slot_sep[slot] + 2]
            talk.inbox[at : at + z - a] *= ratio[a:z]

    def _room(self) -> tuple[Array, Array]:
        return np.empty(self.largest), np.empty(self.largest_sep)

    def _sweep(self, clusters: Ints, separators: Ints, damping: float, room: tuple[Array, Array]) -> float:
        from markovia.kernels.messages.cluster_messages import sweep

        return float(sweep(clusters, separators, self.clusters, self.meetings, self.talk, damping, *room))

    def answer(self) -> tuple[Array, float]:
        """Return the marginals of all variables one after the other, and the region-based log mass."""
        from markovia.kernels.messages.cluster_messages import read

        graph = self.graph
        marginal = np.zeros(int(graph.starts[-1]))
        if not self.possible:
            return marginal, -np.inf
        chosen, homes = np.arange(len(self.scopes)), variable_homes(graph, self.domain, self.relations)
        worth = float(read(chosen, self.clusters, homes, self.talk.inbox, np.empty(self.largest), marginal))
        if worth == -np.inf:
            self.possible = False
            return np.zeros_like(marginal), -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(self.talk.belief > 0, self.talk.belief * np.log(self.talk.belief), 0.0)
        entropy = np.add.reduceat(terms, self.meetings.sep_at[:-1]) if len(self.separators) else np.zeros(0)
        return marginal, self.log_scale + worth - float((self.count * entropy).sum())

    def cluster_belief(self, c: int) -> Array:
        """Return the normalised belief of a cluster, one axis a variable of its scope."""
        return belief_table(self.domain, self.relations[c], self.clusters, self.talk.inbox, c)


def leaves_first(n: int, links: Sequence[Separator]) -> list[int]:
    """Return the clusters in an order in which a forest needs one round only; other graphs keep their order."""
    near: list[list[int]] = [[] for _ in range(n)]
    for link in links:
        if len(link.clusters) != 2:
            return list(range(n))
        a, b = link.clusters
        near[a].append(b)
        near[b].append(a)
    found: list[int] = []
    above = [-1] * n
    seen = [False] * n
    for root in reversed(range(n)):
        if seen[root]:
            continue
        seen[root] = True
        found.append(root)
        at = len(found) - 1
        while at < len(found):
            c = found[at]
            at += 1
            for d in near[c]:
                if d == above[c]:
                    continue
                if seen[d]:
                    return list(range(n))
                seen[d], above[d] = True, c
                found.append(d)
    return found[::-1]


def _halves(members: Ints, steps: Ints) -> list[Ints]:
    """Split clusters into two lists of about the same work; the split does not depend on the number of threads."""
    parts: tuple[list[int], list[int]] = ([], [])
    load = [0, 0]
    for c in members[np.argsort(-steps[members], kind="stable")].tolist():
        side = int(load[1] < load[0])
        parts[side].append(c)
        load[side] += int(steps[c])
    return [np.array(p, dtype=np.int64) for p in parts if p]


def _drop(
    relations: Sequence[Relation], bases: Sequence[Array], kept: Iterable[Any]
) -> tuple[list[Relation], list[Array]]:
    found: list[Relation] = []
    values: list[Array] = []
    for r, b, keep in zip(relations, bases, kept, strict=True):
        if keep.all():
            found.append(r)
            values.append(b)
            continue
        keys = np.flatnonzero(keep) if r.keys is None else r.keys[keep]
        found.append(Relation(r.scope, keys, len(keys)))
        values.append(b[keep])
    return found, values


def _agree(
    domain: Domain, relations: list[Relation], bases: list[Array], separators: Sequence[Separator]
) -> tuple[list[Relation], list[Array], list[list[Any]], list[int]]:
    """Drop entries that a neighbour forbids, there and back; then number the configurations of the separators."""
    steps = [domain.strides(s.scope) for s in separators]
    spaces = [domain.space(s.scope) for s in separators]
    slots: list[list[int]] = [[] for _ in relations]
    for s, sep in enumerate(separators):
        for c in sep.clusters:
            slots[c].append(s)

    def all_codes(c: int, _: None) -> dict[int, Ints]:
        return {s: domain.codes(relations[c], steps[s]) for s in slots[c]}

    codes = in_parallel(all_codes, range(len(relations)), lambda: None)
    partial = [r.keys is not None for r in relations]
    for s in (*range(len(separators)), *reversed(range(len(separators)))):
        touching = separators[s].clusters
        if not any(partial[c] for c in touching):
            continue
        allowed = shared_codes([codes[c][s] for c in touching], spaces[s])
        for c in touching:
            keep = contains(allowed, codes[c][s])
            if not keep.all():
                partial[c] = True
                (relations[c],), (bases[c],) = _drop([relations[c]], [bases[c]], [keep])
                codes[c] = {t: own[keep] for t, own in codes[c].items()}
    found: list[list[Any]] = []
    sizes: list[int] = []
    for s, sep in enumerate(separators):
        mine = [codes[c].pop(s) for c in sep.clusters]
        if any(partial[c] for c in sep.clusters):
            places, size = numbered(mine, spaces[s])
        else:
            places, size = [m.astype(np.int32) for m in mine], spaces[s]
        found.append(places)
        sizes.append(size)
    return relations, bases, found, sizes
