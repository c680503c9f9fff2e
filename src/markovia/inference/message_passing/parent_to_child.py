"""Parent-to-child message passing on a region graph.

Method: every region believes the product of its factors and of the messages that come into it, or into a region inside
it, from outside. A message from a region to a child is multiplied by the ratio of the parent's belief, summed to the
child's variables, and the child's. At a fixed point neighbouring beliefs agree, and the region-based free energy is
stationary.

Schedule: a damped message from an outermost region to a child is followed at once by the undamped messages below that
child, so that smaller regions keep up with the larger ones around them. Where they lag behind, as in a plain sweep over all
links, strong couplings make the messages oscillate whatever the damping.
Reference: Yedidia, Freeman and Weiss (2005), section VI, "Constructing free-energy approximations and generalized belief
propagation algorithms".
Cost of a round: for every message sent the entries of both ends, times the messages they multiply.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.message_passing.cluster_tables import (
    Domain,
    Relation,
    belief_table,
    cluster_bases,
    cluster_entries,
    variable_homes,
)
from markovia.inference.message_passing.region_graph import RegionGraph
from markovia.kernels.messages.cluster_records import RegionLinks
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now

LINKS_A_SLICE = 256


class ParentToChild:
    """Beliefs and messages of a region graph."""

    def __init__(
        self, graph: FlatGraph, domain: Domain, regions: RegionGraph, outer: Sequence[Relation]
    ) -> None:
        self.graph, self.domain, self.regions = graph, domain, regions
        self.possible = graph.log_scale > -np.inf
        members: list[frozenset[int]] = [frozenset(int(v) for v in r) for r in regions.regions]
        self.relations = [
            outer[r] if r < regions.n_outer else domain.full(region) for r, region in enumerate(members)
        ]
        self.scopes = [r.scope for r in self.relations]
        below = [frozenset([r]) for r in range(len(members))]
        for r in reversed(range(len(members))):
            below[r] = below[r].union(*(below[c] for c in regions.children[r]))
        links = [(p, c) for c in range(len(members)) for p in regions.parents[c]]
        parent, child = np.array(links, dtype=np.int64).reshape(-1, 2).T.copy()
        sizes = np.array([self.relations[c].size for _, c in links], dtype=np.int64)
        message_at = (np.cumsum(sizes) - sizes).astype(np.int64)
        self.message = np.ones(int(sizes.sum()))
        into: dict[int, list[int]] = {}
        for m, (_, c) in enumerate(links):
            into.setdefault(c, []).append(m)
        slots: list[list[int]] = []
        codes: list[dict[int, Ints]] = []
        for r, relation in enumerate(self.relations):
            own = {c: domain.codes(relation, domain.strides(self.relations[c].scope)) for c in below[r]}
            codes.append(own)
            mine = [m for c in sorted(below[r]) for m in into.get(c, []) if links[m][0] not in below[r]]
            slots.append(mine)
        bases = cluster_bases(graph, domain, self.relations, everywhere=True)
        places = [[own[links[m][1]] for m in mine] for own, mine in zip(codes, slots, strict=True)]
        flat = np.array([m for s in slots for m in s], dtype=np.int64)
        self.clusters = cluster_entries(bases, places, message_at[flat])
        downs = [codes[p][c].astype(np.int32) for p, c in links]
        steps = np.array([len(d) for d in downs], dtype=np.int64)
        down_at = (np.cumsum(steps) - steps).astype(np.int64)
        down = np.concatenate(downs) if downs else np.zeros(0, dtype=np.int32)
        self.links = RegionLinks(parent, child, message_at, down_at, down)
        self.largest = max((r.size for r in self.relations), default=1)
        self.passes = _passes(links, below, {p for p in range(len(members)) if not regions.parents[p]})

    def round(self, damping: float, deadline: float | None) -> float:
        """Update every message, there and back; return the largest disagreement, -1 where nothing is possible."""
        from markovia.kernels.messages.cluster_messages import descend

        if not self.possible:
            return -1.0
        room, sums, own = (np.empty(self.largest) for _ in range(3))
        worst = 0.0
        for order, damped in self.passes:
            shares = np.where(damped, damping, 0.0)
            for at in range(0, len(order), LINKS_A_SLICE):
                part = slice(at, at + LINKS_A_SLICE)
                change = float(
                    descend(
                        order[part], self.links, self.clusters, self.message, shares[part], room, sums, own
                    )
                )
                if change < 0:
                    self.possible = False
                    return -1.0
                worst = max(worst, change)
                if deadline is not None and now() > deadline:
                    return max(worst, 1e-300)
        return worst

    def answer(self) -> tuple[Array, float]:
        """Return the marginals of all variables one after the other, and the region-based log mass."""
        from markovia.kernels.messages.cluster_messages import read

        graph = self.graph
        marginal = np.zeros(int(graph.starts[-1]))
        if not self.possible:
            return marginal, -np.inf
        homes = variable_homes(graph, self.domain, self.relations)
        counts = np.array(self.regions.counts)
        log_mass = graph.log_scale
        for count in np.unique(counts).tolist():
            chosen = np.flatnonzero(counts == count)
            worth = float(read(chosen, self.clusters, homes, self.message, np.empty(self.largest), marginal))
            if worth == -np.inf:
                self.possible = False
                return np.zeros_like(marginal), -np.inf
            log_mass += count * worth
        return marginal, log_mass

    def cluster_belief(self, r: int) -> Array:
        """Return the normalised belief of a region, one axis a variable of its scope."""
        return belief_table(self.domain, self.relations[r], self.clusters, self.message, r)


def _passes(
    links: Sequence[tuple[int, int]], below: Sequence[frozenset[int]], roots: set[int]
) -> list[tuple[Ints, NDArray[np.bool_]]]:
    """Return the links in the order in which messages are sent, there and back, and which of them are damped."""
    leaving: dict[int, list[int]] = {}
    for m, (p, _) in enumerate(links):
        leaving.setdefault(p, []).append(m)
    groups = [
        [m, *(k for r in sorted(below[c]) for k in leaving.get(r, ()))]
        for m, (p, c) in enumerate(links)
        if p in roots
    ]
    return [
        (
            np.array([m for g in turn for m in g], dtype=np.int64),
            np.array([i == 0 for g in turn for i in range(len(g))], dtype=np.bool_),
        )
        for turn in (groups, groups[::-1])
    ]
