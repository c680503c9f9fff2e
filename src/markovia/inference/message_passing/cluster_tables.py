"""Clusters of variables as lists of their possible configurations, and mini-buckets made of them.

A *relation* is a set of configurations of a few variables: what some tables allow together. Keys are mixed-radix numbers;
the variable that is eliminated first is the last digit. No keys at all mean that everything is possible, so that
tables without zeros cost nothing to combine.

Mini-buckets (Dechter and Rish, 2003; as join graphs: Mateescu, Kask, Gogate and Dechter, 2010): go through the variables
in elimination order; the relations that mention a variable are combined into as few clusters as the bound on a
cluster's entries allows; what each cluster says about its other variables goes to the next of them. The bound is on the
entries that are possible, not on the size of a table, which lets clusters grow where tables are mostly zeros.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.kernels.messages.cluster_records import ClusterEntries, VariableHomes
from markovia.runtime.array_types import Array, Ints

DIRECT = 1 << 22
"""Code spaces up to this size are addressed directly, larger ones by sorting."""
WIDEST = 1 << 62
"""Keys are 64-bit numbers."""
NO_KEYS: Ints = np.empty(0, dtype=np.int64)


class Relation(NamedTuple):
    """Possible configurations of some variables; `keys` None stands for all of them."""

    scope: tuple[int, ...]
    keys: Ints | None
    size: int


class Domain:
    """Numbers of states, and the order in which scopes are written: the variable eliminated first comes last."""

    def __init__(self, cards: Ints, order: Ints) -> None:
        self.cards: list[int] = cards.tolist()
        self.order: list[int] = order.tolist()
        rank = np.empty(len(cards), dtype=np.int64)
        rank[order] = np.arange(len(order))
        self.rank: list[int] = rank.tolist()

    def sort(self, members: Iterable[int]) -> tuple[int, ...]:
        """Return variables in scope order."""
        return tuple(sorted(members, key=self.rank.__getitem__, reverse=True))

    def space(self, scope: Iterable[int]) -> int:
        """Return the number of configurations, possible or not."""
        return prod([self.cards[i] for i in scope])

    def strides(self, scope: Sequence[int]) -> dict[int, int]:
        """Return what one step of each variable adds to a key."""
        found, step = {}, 1
        for i in reversed(scope):
            found[i] = step
            step *= self.cards[i]
        return found

    def full(self, members: Iterable[int]) -> Relation:
        """Return the relation that allows everything."""
        scope = self.sort(members)
        return Relation(scope, None, self.space(scope))

    def codes(self, relation: Relation, strides: dict[int, int]) -> Ints:
        """Return for every entry the sum of `digit * stride` over the variables that have a stride."""
        from markovia.kernels.messages.cluster_messages import recode

        own = self.strides(relation.scope)
        divisors: list[int] = []
        cards: list[int] = []
        steps: list[int] = []
        for i in reversed(relation.scope):
            if i not in strides:
                continue
            card, step = self.cards[i], strides[i]
            if divisors and divisors[-1] * cards[-1] == own[i] and steps[-1] * cards[-1] == step:
                cards[-1] *= card  # digits that are neighbours in both are read as one
            else:
                divisors.append(own[i])
                cards.append(card)
                steps.append(step)
        keys = NO_KEYS if relation.keys is None else relation.keys
        arrays = [np.array(a, dtype=np.int64) for a in (divisors, cards, steps)]
        found = np.zeros(relation.size, dtype=np.int64)
        recode(keys, *arrays, found)
        return found

    def of_table(self, members: Sequence[int], table: Array) -> Relation:
        """Return where a table is not zero."""
        scope = self.sort(members)
        values = table.transpose([list(members).index(i) for i in scope]).ravel()
        keys = np.flatnonzero(values > 0)
        return Relation(scope, None if len(keys) == len(values) else keys, len(keys))

    def joined(self, a: Relation, b: Relation, limit: float) -> Relation | None:
        """Return the configurations that both allow, or None if they are more than the limit."""
        from markovia.kernels.messages.cluster_messages import grouped, paired

        common = set(a.scope) & set(b.scope)
        scope = a.scope if len(common) == len(b.scope) else self.sort({*a.scope, *b.scope})
        space = self.space(scope)
        if a.keys is None and b.keys is None:
            return Relation(scope, None, space) if space <= limit else None
        if space >= WIDEST:
            return None
        if len(common) == len(b.scope) and b.keys is None:
            return a
        if a.size < b.size:
            a, b = b, a
        shared = self.strides(self.sort(common))
        left, right = self.codes(a, shared), self.codes(b, shared)
        n_codes = self.space(common)
        if n_codes > DIRECT:
            known, right = np.unique(right, return_inverse=True)
            place = np.searchsorted(known, left)
            place[place == len(known)] = 0
            hit = known[place] == left if len(known) else np.zeros(len(left), dtype=bool)
            left = np.where(hit, place, len(known))
            n_codes = len(known) + 1
        start, order = grouped(right, n_codes)
        total = int((start[left + 1] - start[left]).sum())
        if total > limit and not set(b.scope) <= set(a.scope):
            return None
        target = self.strides(scope)
        new = {i: target[i] for i in b.scope if i not in common}
        keys = paired(
            left, self.codes(a, {i: target[i] for i in a.scope}), start, order, self.codes(b, new), total
        )
        return Relation(scope, None if total == space else keys, total)

    def without_last(self, relation: Relation) -> Relation:
        """Drop the last digit: the variable that is eliminated first."""
        scope = relation.scope[:-1]
        if relation.keys is None:
            return Relation(scope, None, self.space(scope))
        codes = relation.keys // self.cards[relation.scope[-1]]
        keys = distinct(codes, self.space(scope))
        return Relation(scope, None if len(keys) == self.space(scope) else keys, len(keys))


def distinct(codes: Ints, space: int) -> Ints:
    """Return the codes that occur, in order."""
    if space <= max(DIRECT, 4 * len(codes)):
        flags = np.zeros(space, dtype=bool)
        flags[codes] = True
        return np.flatnonzero(flags)
    return np.unique(codes)


def supports(graph: FlatGraph, domain: Domain) -> list[Relation]:
    """Return what each table of a model allows; tables over one variable only where they forbid something."""
    found = [domain.of_table(graph.members(f).tolist(), graph.table(f)) for f in range(graph.n_factors)]
    mentioned = set(graph.scope.tolist())
    for i in range(len(graph.variables)):
        allowed = graph.unary[graph.starts[i] : graph.starts[i + 1]] > 0
        if i not in mentioned or not allowed.all():
            found.append(domain.of_table([i], allowed.astype(np.float64)))
    return found


def mini_buckets(domain: Domain, relations: Iterable[Relation], limit: float) -> tuple[list[Relation], bool]:
    """Return clusters of at most `limit` possible entries, in elimination order, and whether no bucket was split."""
    buckets: list[list[Relation]] = [[] for _ in domain.cards]
    for r in relations:
        buckets[r.scope[-1]].append(r)
    clusters: list[Relation] = []
    whole = True
    for v in domain.order:
        groups: list[Relation] = []
        for r in sorted(buckets[v], key=lambda r: (-len(r.scope), r.scope)):
            members = set(r.scope)
            ranked = sorted(range(len(groups)), key=lambda g: (-len(members & set(groups[g].scope)), g))
            for g in ranked:
                made = domain.joined(groups[g], r, limit)
                if made is not None:
                    groups[g] = made
                    break
            else:
                groups.append(r)
        buckets[v] = []
        whole = whole and len(groups) == 1
        for g_made in groups:
            clusters.append(g_made)
            if len(g_made.scope) > 1:
                message = domain.without_last(g_made)
                buckets[message.scope[-1]].append(message)
    return clusters, whole


def maximal(clusters: Sequence[Relation]) -> list[Relation]:
    """Drop clusters whose variables all lie in another one; the order of the others stays."""
    masks = [sum([1 << i for i in c.scope]) for c in clusters]
    at: dict[int, list[int]] = {}
    kept: list[int] = []
    for c in sorted(range(len(clusters)), key=lambda c: (-len(clusters[c].scope), c)):
        fewest = min((at.get(i, []) for i in clusters[c].scope), key=len, default=[])
        if any(masks[c] & masks[h] == masks[c] for h in fewest):
            continue
        kept.append(c)
        for i in clusters[c].scope:
            at.setdefault(i, []).append(c)
    return [clusters[c] for c in sorted(kept)]


def shared_codes(code_lists: Sequence[Ints], space: int) -> NDArray[Any]:
    """Return which codes occur in all lists: one flag a code, or the sorted codes where there are too many for that."""
    if space <= max(DIRECT, 4 * max(map(len, code_lists))):
        flags = np.zeros(space, dtype=bool)
        flags[code_lists[0]] = True
        for codes in code_lists[1:]:
            more = np.zeros(space, dtype=bool)
            more[codes] = True
            flags &= more
        return flags
    known = np.unique(code_lists[0])
    for codes in code_lists[1:]:
        known = np.intersect1d(known, codes)
    return known


def contains(allowed: NDArray[Any], codes: Ints) -> NDArray[np.bool_]:
    """Say which codes are among those of `shared_codes`."""
    if allowed.dtype == np.bool_:
        flags: NDArray[np.bool_] = allowed[codes]
        return flags
    if not len(allowed):
        return np.zeros(len(codes), dtype=bool)
    place = np.minimum(np.searchsorted(allowed, codes), len(allowed) - 1)
    found: NDArray[np.bool_] = allowed[place] == codes
    return found


def numbered(code_lists: Sequence[Ints], space: int) -> tuple[list[NDArray[np.int32]], int]:
    """Return each list of codes as numbers of the codes that occur in any list, and how many those are."""
    if space <= max(DIRECT, 4 * max(map(len, code_lists))):
        flags = np.zeros(space, dtype=bool)
        for codes in code_lists:
            flags[codes] = True
        number = np.cumsum(flags, dtype=np.int32)
        return [number[codes] - np.int32(1) for codes in code_lists], int(number[-1])
    known = np.unique(np.concatenate([np.unique(codes) for codes in code_lists]))
    return [np.searchsorted(known, codes).astype(np.int32) for codes in code_lists], len(known)


def cluster_bases(
    graph: FlatGraph, domain: Domain, relations: Sequence[Relation], *, everywhere: bool
) -> list[Array]:
    """Return at each relation's entries the product of all tables it holds, or of those that no smaller one holds."""
    holding: dict[int, set[int]] = {}
    for r, relation in enumerate(relations):
        for i in relation.scope:
            holding.setdefault(i, set()).add(r)
    bases = [np.ones(r.size) for r in relations]

    def multiply(values: Array, steps: dict[int, int]) -> None:
        hosts: Iterable[int] = set.intersection(*(holding[i] for i in steps))
        for r in hosts if everywhere else [min(hosts, key=lambda r: (relations[r].size, r))]:
            bases[r] *= values[domain.codes(relations[r], steps)]

    for f in range(graph.n_factors):
        steps = graph.strides[graph.scope_ptr[f] : graph.scope_ptr[f + 1]].tolist()
        table = graph.values[graph.table_ptr[f] : graph.table_ptr[f + 1]]
        multiply(table, dict(zip(graph.members(f).tolist(), steps, strict=True)))
    for i in range(len(graph.variables)):
        own = graph.unary[graph.starts[i] : graph.starts[i + 1]]
        if (own != 1.0).any():
            multiply(own, {i: 1})
    return bases


def cluster_entries(
    bases: Sequence[Array], places: Sequence[Sequence[Ints]], slot_at: Ints
) -> ClusterEntries:
    """Return clusters as kernels take them: weights of entries, and where in each message told to a cluster these are."""
    lengths = [len(p) * len(b) for p, b in zip(places, bases, strict=True)]
    tables = [np.stack(p, axis=1).ravel().astype(np.int32, copy=False) for p in places if len(p)]
    return ClusterEntries(
        np.concatenate(([0], np.cumsum([len(b) for b in bases]))).astype(np.int64),
        np.concatenate([np.zeros(0), *bases]),
        np.concatenate(([0], np.cumsum([len(p) for p in places]))).astype(np.int64),
        slot_at,
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        np.concatenate([np.zeros(0, dtype=np.int32), *tables]),
    )


def variable_homes(graph: FlatGraph, domain: Domain, relations: Sequence[Relation]) -> VariableHomes:
    """Return for each variable the smallest of the relations over it, where its marginal is read off."""
    home: dict[int, int] = {}
    for c in sorted(range(len(relations)), key=lambda c: (relations[c].size, c)):
        for i in relations[c].scope:
            home.setdefault(i, c)
    mine: list[list[int]] = [[] for _ in relations]
    for i, c in home.items():
        mine[c].append(i)
    pieces = [(domain.strides(r.scope)[i], i) for r, own in zip(relations, mine, strict=True) for i in own]
    members = np.array([i for _, i in pieces], dtype=np.int64)
    keys = [np.arange(r.size) if r.keys is None else r.keys for r in relations]
    return VariableHomes(
        np.concatenate([NO_KEYS, *keys]),
        np.concatenate(([0], np.cumsum([len(m) for m in mine]))).astype(np.int64),
        np.array([d for d, _ in pieces], dtype=np.int64),
        graph.cards[members],
        graph.starts[members],
    )


def belief_table(domain: Domain, relation: Relation, clusters: ClusterEntries, told: Array, c: int) -> Array:
    """Return the normalised belief of a cluster given what it is told, one axis a variable of its scope."""
    entry_ptr, base, slot_ptr, slot_at, index_at, index = clusters
    k = int(slot_ptr[c + 1] - slot_ptr[c])
    index = index[index_at[c] : index_at[c + 1]].reshape(relation.size, k)
    with np.errstate(divide="ignore"):
        logs = np.log(base[entry_ptr[c] : entry_ptr[c + 1]])
        for at, places in zip(slot_at[slot_ptr[c] : slot_ptr[c + 1]], index.T, strict=True):
            logs = logs + np.log(told[at + places])
    top = logs.max(initial=-np.inf)
    values = np.exp(logs - top) if top > -np.inf else np.zeros_like(logs)
    table = np.zeros(domain.space(relation.scope))
    table[slice(None) if relation.keys is None else relation.keys] = values / max(values.sum(), 1e-300)
    return table.reshape([domain.cards[i] for i in relation.scope])
