"""Approximate filtering and smoothing of dynamic networks with beliefs kept apart.

Boyen-Koller: after each step the belief about the interface becomes the product of its clusters' marginals; the step itself
is exact. The error stays bounded, since each step forgets some of it. What the future says goes back in the same form: one
factor a cluster, its smoothed over its filtered marginal. Factored frontier: every variable on its own, and its marginal
comes from its parents' marginals alone, so that no product over a whole step is ever made.
References: Boyen and Koller (1998, 1999); Murphy and Weiss (2001). Cost: of a step, one elimination there and back; for the
factored frontier the sizes of the tables.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from markovia.inference.sequences.slice_sums import Key, TableElimination
from markovia.inference.sequences.slices import Place, SliceEvidence, SliceNode, Slices
from markovia.runtime.array_types import Array, Ints


class StuckError(Exception):
    """Evidence of probability zero, at `step`."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class _Frontier:
    """Goes through all sequences side by side, one step at a time."""

    def __init__(self, slices: Slices, seen: SliceEvidence) -> None:
        self.slices, self.seen = slices, seen
        self.log_probs = np.zeros(len(seen.offsets) - 1)
        self._plans: dict[tuple[object, ...], TableElimination] = {}
        self.places = slices.kinds(seen.offsets)[1]

    def _sums(
        self, scopes: Sequence[tuple[Place, ...]], keep: tuple[Place, ...], tables: Sequence[Array]
    ) -> Array:
        key = (tuple(scopes), keep)
        if key not in self._plans:
            sizes: dict[Key, int] = {p: self.slices.sizes[p[0]] for scope in scopes for p in scope}
            self._plans[key] = TableElimination(scopes, sizes, keep)
        return self._plans[key].sums(tables)

    def _add_logs(self, which: Ints, steps: Ints, size: Array) -> None:
        if (size <= 0.0).any():
            raise StuckError(int(steps[np.argmax(size <= 0.0)]))
        self.log_probs[which] += np.log(size)

    def _table(self, node: SliceNode, kind: int, steps: Ints) -> Array:
        if node.values is not None:
            return node.values
        return self.seen.densities[node.name, kind][self.places[steps]]

    def _weights(self, name: str, steps: Ints) -> Array:
        return self.seen.weights[name][self.seen.codes[name][steps]]

    def marginals(self, targets: Sequence[str]) -> dict[str, Array]:
        """Return each target's distribution at every step, given what was seen up to it."""
        self._begin(len(self.seen.offsets) - 1)
        return self._forward(targets)

    def _forward(self, targets: Sequence[str]) -> dict[str, Array]:
        offsets = self.seen.offsets
        lengths = np.diff(offsets)
        found = {n: np.empty((offsets[-1], self.slices.sizes[n])) for n in targets}
        for t in range(int(lengths.max())):
            which = np.flatnonzero(lengths > t)
            steps = offsets[which] + t
            for name, rows in self._advance(min(t, self.slices.order), which, steps, targets).items():
                found[name][steps] = rows
        if self.seen.logs is not None:
            self.log_probs += np.add.reduceat(self.seen.logs, offsets[:-1])
        return found

    def _begin(self, n: int) -> None:
        raise NotImplementedError

    def _advance(self, kind: int, which: Ints, steps: Ints, targets: Sequence[str]) -> dict[str, Array]:
        raise NotImplementedError


class BoyenKoller(_Frontier):
    """Exact steps between beliefs that are products over clusters.

    Parameters
    ----------
    slices, seen
        The network, and what was seen.
    clusters
        Groups of variables; those in none are on their own.
    """

    def __init__(self, slices: Slices, seen: SliceEvidence, clusters: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(slices, seen)
        named = {n for cluster in clusters for n in cluster}
        groups = [*clusters, *([n] for n in slices.reach if n not in named)]
        self.clusters = [[n for n in group if n in slices.reach] for group in groups]
        self.clusters = [group for group in self.clusters if group]

    def _begin(self, n: int) -> None:
        self._beliefs: list[Array] = []
        self._kept: list[list[Array]] | None = None

    def _cluster(self, group: Sequence[str], kind: int) -> tuple[Place, ...]:
        own = set(group)
        return tuple(p for p in self.slices.interface(kind) if p[0] in own)

    def _past(self, group: Sequence[str], kind: int) -> tuple[Place, ...]:
        return tuple((n, j + 1) for n, j in self._cluster(group, kind - 1))

    def _step(
        self,
        kind: int,
        which: Ints,
        steps: Ints,
        before: Sequence[Array],
        after: Sequence[Array],
        groups: Sequence[tuple[Place, ...]],
    ) -> tuple[Array, list[Array]]:
        """Return a step's sum, and its marginals over groups of places, from beliefs before and messages after it."""
        nodes = self.slices.steps[kind]
        scopes = [node.scope for node in nodes] + [((n, 0),) for n in self.seen.names]
        tables = [self._table(node, kind, steps) for node in nodes]
        tables += [self._weights(n, steps) for n in self.seen.names]
        ends = [self._past(group, kind) for group in self.clusters] if kind else []
        for places, rows in [
            *zip(ends, before, strict=True),
            *zip([self._cluster(g, kind) for g in self.clusters] if after else [], after, strict=True),
        ]:
            scopes.append(places)
            tables.append(rows[which].reshape(len(which), *self.slices.shape(places)))
        for group in groups:
            scopes.append(group)
            tables.append(np.ones(self.slices.shape(group)))
        key = (tuple(scopes), ())
        if key not in self._plans:
            sizes: dict[Key, int] = {p: self.slices.sizes[p[0]] for scope in scopes for p in scope}
            self._plans[key] = TableElimination(scopes, sizes)
        total, found = self._plans[key].marginals(tables, groups)
        n = len(which)
        wide = [np.broadcast_to(x, (n, *self.slices.shape(g))) for x, g in zip(found, groups, strict=True)]
        return np.broadcast_to(total, (n,)), wide

    def _advance(self, kind: int, which: Ints, steps: Ints, targets: Sequence[str]) -> dict[str, Array]:
        own = [self._cluster(group, kind) for group in self.clusters]
        among = {p[0] for places in own for p in places if not p[1]}
        alone: list[tuple[Place, ...]] = [((n, 0),) for n in targets if n not in among]
        size, found = self._step(kind, which, steps, self._beliefs, (), [*own, *alone])
        self._add_logs(which, steps, size)
        rows = [x / size.reshape(-1, *(1,) * (x.ndim - 1)) for x in found]
        self._beliefs = [self._all(x, which) for x in rows[: len(own)]]
        if self._kept is not None:
            self._kept.append(self._beliefs)
        return self._targets(own + alone, rows, targets)

    def _all(self, rows: Array, which: Ints) -> Array:
        """Return rows of some sequences among zeros for the others."""
        found = np.zeros((len(self.log_probs), prod(rows.shape[1:])))
        found[which] = rows.reshape(len(which), -1)
        return found

    def _targets(
        self, groups: Sequence[tuple[Place, ...]], rows: Sequence[Array], targets: Sequence[str]
    ) -> dict[str, Array]:
        """Return the marginals of single variables from those of their groups."""
        found: dict[str, Array] = {}
        for places, x in zip(groups, rows, strict=True):
            for i, (name, lag) in enumerate(places):
                if name in targets and not lag:
                    found[name] = x.sum(axis=tuple(k for k in range(1, x.ndim) if k != i + 1))
        return found

    def smoothed(self, targets: Sequence[str]) -> dict[str, Array]:
        """Return each target's distribution at every step, given all that was seen of its sequence."""
        offsets, order = self.seen.offsets, self.slices.order
        lengths = np.diff(offsets)
        self._begin(len(lengths))
        kept: list[list[Array]] = []
        self._kept = kept
        found = self._forward(targets)
        later: list[Array] = []
        for t in range(int(lengths.max()) - 1, -1, -1):
            kind = min(t, order)
            own = [self._cluster(group, kind) for group in self.clusters]
            sizes = [prod(self.slices.shape(places)) for places in own]
            # sequences that end here have heard nothing from the future
            if not later or later[0].shape != (len(lengths), sizes[0]):
                later = [np.ones((len(lengths), k)) for k in sizes]
            which = np.flatnonzero(lengths > t)
            steps = offsets[which] + t
            among = {p[0] for places in own for p in places if not p[1]}
            alone: list[tuple[Place, ...]] = [((n, 0),) for n in targets if n not in among]
            past = [self._past(group, kind) for group in self.clusters] if kind else []
            before = kept[t - 1] if t else []
            size, parts = self._step(kind, which, steps, before, later, [*own, *alone, *past])
            rows = [x / size.reshape(-1, *(1,) * (x.ndim - 1)) for x in parts]
            here = len(own) + len(alone)
            for name, x in self._targets(own + alone, rows[:here], targets).items():
                found[name][steps] = x
            later = []
            for x, belief in zip(rows[here:], before, strict=True):
                message = np.ones(belief.shape)
                known = belief[which]
                message[which] = np.divide(
                    x.reshape(known.shape), known, out=np.zeros_like(known), where=known > 0
                )
                later.append(message)
        return found


class FactoredFrontier(_Frontier):
    """Beliefs about single variables, moved on by one table at a time."""

    def _begin(self, n: int) -> None:
        self._now: dict[Place, Array] = {}
        self._orders: dict[int, list[SliceNode]] = {}

    def _ordered(self, kind: int) -> list[SliceNode]:
        """Return a step's nodes, parents first."""
        if kind not in self._orders:
            left, done, found = list(self.slices.steps[kind]), set(), []
            names = {node.name for node in left}
            while left:
                ready = [
                    node
                    for node in left
                    if all(lag or n == node.name or n in done or n not in names for n, lag in node.scope)
                ]
                found += ready
                done |= {node.name for node in ready}
                left = [node for node in left if node.name not in done]
            self._orders[kind] = found
        return self._orders[kind]

    def _advance(self, kind: int, which: Ints, steps: Ints, targets: Sequence[str]) -> dict[str, Array]:
        beliefs = {(n, lag + 1): rows[which] for (n, lag), rows in self._now.items()}
        for node in self._ordered(kind):
            own: Place = (node.name, 0)
            given = [p for p in node.scope if p != own]
            scopes = [node.scope, *((p,) for p in given)]
            tables = [self._table(node, kind, steps), *(beliefs[p] for p in given)]
            if node.name in self.seen.names:
                scopes.append((own,))
                tables.append(self._weights(node.name, steps))
            told = node.values is None or node.name in self.seen.names
            fresh: dict[Place, Array] = {}
            keep = ([own] if own in node.scope else []) + ([p for p in given if not p[1]] if told else [])
            for place in keep:
                rows = self._sums(scopes, (place,), tables)
                fresh[place] = np.broadcast_to(rows, (len(which), rows.shape[-1]))
            if told:
                total = self._sums(scopes, (), tables)
                self._add_logs(which, steps, np.broadcast_to(total, (len(which),)))
            beliefs |= {p: rows / rows.sum(axis=1, keepdims=True) for p, rows in fresh.items()}
        now: dict[Place, Array] = {}
        for (n, lag), rows in beliefs.items():
            if lag < self.slices.reach.get(n, 0):
                now[n, lag] = np.zeros((len(self.log_probs), rows.shape[1]))
                now[n, lag][which] = rows
        self._now = now
        return {n: beliefs[n, 0] for n in targets}


def largest_difference(found: Mapping[str, Array], exact: Mapping[str, Array], steps: int) -> float:
    """Return the largest difference of probabilities on the first steps."""
    gaps = [np.abs(found[n][:steps] - exact[n][:steps]).max(initial=0.0) for n in found]
    return float(max(gaps, default=0.0))
