"""The parent sets that can be in a best graph, with their scores.

Method: sets are scored size by size. A set that scores no better than one of its subsets is in no best graph that needs it
and is left out. Larger sets are not even scored where a bound shows that they and all their supersets are like that:

- BIC and AIC of tables: adding y to s raises the log likelihood by at most N min(H(x | s), H(y | s)), and for every larger s
  by no more; the penalty rises by (|y| - 1) times that of s, and for larger s by no less (de Campos, Scanagatta, Corani and
  Zaffalon 2018). With it comes the older bound, that a log likelihood of tables is at most zero, hence at most
  log2(2 N / log N) parents (de Campos and Ji 2011).
- BDeu and K2: each configuration of child and parents that occurs costs at least ln |x|, and supersets have no fewer
  (de Campos and Ji 2011, with the child's states counted too). Only for rows in memory without weights.
- Gaussian BIC: the log likelihood is at most the one with all candidates as parents.
- Other scores have no bound: all sets up to `max_parents` are scored.

Cost: one score for each set that no bound excludes: with n candidates and no bound 2^n for each variable, which is refused
beforehand where it is too much.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import Clock
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.scores.score_bounds import ScoreBound, bound_for
from markovia.structure.scores.subset_likelihoods import Stopped
from markovia.structure.task.knowledge import Rules

BATCH = 1 << 15
"""Families that are scored between two looks at the clock."""
PIECE = 1 << 20
"""Sets that are compared with their subsets at a time."""
MOST_CANDIDATES = 62


@dataclass
class ParentSets:
    """For each variable the parent sets that may be in a best graph, best first.

    Attributes
    ----------
    sets
        For each variable tuples of parents.
    scores
        For each variable their scores, decreasing.
    n_scored
        How many families were scored.
    complete
        Whether no other set can be in a best graph: False after a stop.
    """

    sets: list[list[tuple[int, ...]]]
    scores: list[Array]
    n_scored: int = 0
    complete: bool = True
    levels: list[int] = field(default_factory=list)


@dataclass
class _Level:
    """The sets of one size of one variable, as sorted masks over its candidates."""

    masks: Ints
    parents: Ints
    scores: Array
    best: Array
    """The best score of a set or its subsets."""


def scored_parent_sets(score: LocalScore, rules: Rules, clock: Clock, most: int = 20_000_000) -> ParentSets:
    """Return the parent sets that may be in a best graph under a score.

    Parameters
    ----------
    score
        Bound to data.
    rules
        Every set holds the required parents, and otherwise allowed ones.
    clock
        A stop ends with the sets found so far.
    most
        The largest number of families to score.

    Raises
    ------
    TooLarge
        If more would have to be scored.
    """
    n = score.n
    fields = [_Field(x, rules) for x in range(n)]
    bound = bound_for(score, clock.over)
    if bound is None:
        _check_count(fields, most)
    found = ParentSets([[] for _ in range(n)], [np.empty(0)] * n)
    kept: list[list[tuple[Ints, Array]]] = [[] for _ in range(n)]
    levels = {x: np.zeros(1, dtype=np.int64) for x in range(n)}
    parents = {x: fields[x].parents(levels[x]) for x in range(n)}
    inherited = {x: np.full(1, -np.inf) for x in range(n)}
    size = 0
    while levels:
        total = sum(map(len, levels.values()))
        found.levels.append(total)
        _check_total(found.n_scored + total, size, most)
        values = None if size and clock.over() else _score_all(score, bound, parents, clock, size == 0)
        if values is None:
            found.complete = False
            break
        found.n_scored += total
        after: dict[int, _Level] = {}
        for x, masks in levels.items():
            own, before = values[x], inherited[x]
            better = own > before
            kept[x].append((masks[better], own[better]))
            after[x] = _Level(masks, parents[x], own, np.maximum(own, before))
            if bound is not None:
                bound.learn(x, parents[x], own)
        size += 1
        levels, inherited, parents = {}, {}, {}
        waiting = 0
        for x, level in after.items():
            if fields[x].n_required + size > rules.max_parents or size > len(fields[x].candidates):
                continue
            pieces: list[tuple[Ints, Ints, Array]] = []
            for grown in _grown(fields[x], level):
                if clock.over():
                    found.complete = False
                    break
                pieces.append(_surviving(fields[x], level, bound, grown))
                waiting += len(pieces[-1][0])
                _check_total(found.n_scored + waiting, size, most)
            if not found.complete:
                break
            if any(len(masks) for masks, _, _ in pieces):
                masks, above, before = (np.concatenate(part) for part in zip(*pieces, strict=True))
                levels[x], parents[x], inherited[x] = masks, above, before
        if not found.complete:
            break
        clock.advance(note=f"{found.n_scored:,} families")
    for x in range(n):
        masks = np.concatenate([k[0] for k in kept[x]]) if kept[x] else np.empty(0, np.int64)
        values_x = np.concatenate([k[1] for k in kept[x]]) if kept[x] else np.empty(0)
        order = np.argsort(-values_x, kind="stable")
        found.sets[x] = fields[x].tuples(masks[order])
        found.scores[x] = values_x[order]
    return found


class _Field:
    """One variable's required parents and candidates."""

    def __init__(self, x: int, rules: Rules) -> None:
        self.x = x
        self.required = np.flatnonzero(rules.required[:, x])
        self.n_required = len(self.required)
        free = rules.allowed[:, x] & ~rules.required[:, x]
        self.candidates = np.flatnonzero(free)
        if len(self.candidates) > MOST_CANDIDATES:
            raise TooLarge(
                f"exact search takes at most {MOST_CANDIDATES} candidate parents for a variable, and one has "
                f"{len(self.candidates)}; forbid edges, or use method='order-search'"
            )
        self.limit = min(len(self.candidates), rules.max_parents - self.n_required)

    def members(self, masks: Ints) -> NDArray[np.int64]:
        """Return the candidates of masks of one size, one row a mask."""
        if not len(masks):
            return np.empty((0, 0), dtype=np.int64)
        bits = (masks[:, None] >> np.arange(len(self.candidates))) & 1
        columns = np.nonzero(bits)[1]
        width = len(columns) // len(masks)
        return self.candidates[columns].reshape(len(masks), width)

    def tuples(self, masks: Ints) -> list[tuple[int, ...]]:
        """Return the parents of each mask, sorted, required ones with them."""
        required = self.required.tolist()
        if len(masks) == 0:
            return []
        found: list[tuple[int, ...]] = []
        candidates = self.candidates.tolist()
        for mask in masks.tolist():
            chosen = [c for k, c in enumerate(candidates) if mask >> k & 1]
            found.append(tuple(sorted(chosen + required)))
        return found

    def parents(self, masks: Ints) -> Ints:
        """Return the parents for masks of one size, one row a mask, sorted, required ones with them."""
        parents = self.members(masks)
        if self.n_required:
            wide = np.broadcast_to(self.required, (len(masks), self.n_required))
            parents = np.sort(np.concatenate([parents, wide], axis=1), axis=1)
        return parents


def _check_count(fields: Sequence[_Field], most: int) -> None:
    total = sum(comb(len(f.candidates), k) for f in fields for k in range(f.limit + 1))
    if total > most:
        raise TooLarge(
            f"this score has no bound that excludes parent sets, and there are {total:,} families, more than "
            f"max_families={most:,}; give max_parents="
        )


def _score_all(
    score: LocalScore,
    bound: ScoreBound | None,
    asked: dict[int, Ints],
    clock: Clock,
    must: bool,
) -> dict[int, Array] | None:
    """Score every set of a level, in batches; None after a stop, unless it `must` be."""
    try:
        quick = None if bound is None else bound.scores(asked, lambda: not must and clock.over())
    except Stopped:
        return None
    if quick is not None:
        return quick
    families = [(x, tuple(p)) for x, parents in asked.items() for p in parents.tolist()]
    found = np.empty(len(families))
    for low in range(0, len(families), BATCH):
        if not must and clock.over():
            return None
        found[low : low + BATCH] = score.many(families[low : low + BATCH])
    edges = np.cumsum([len(p) for p in asked.values()])[:-1]
    return dict(zip(asked, np.split(found, edges), strict=True))


def _check_total(total: int, size: int, most: int) -> None:
    if total > most:
        raise TooLarge(
            f"at least {total:,} families would have to be scored up to {size} free parents, more than "
            f"max_families={most:,}; give max_parents=, forbid edges, or use method='order-search'"
        )


def _grown(field_: _Field, level: _Level) -> Iterator[Ints]:
    """Yield the sets with one parent more, as masks in increasing order, some at a time."""
    masks = level.masks
    held: list[Ints] = []
    for k in range(len(field_.candidates)):
        end = int(np.searchsorted(masks, 1 << k))
        for low in range(0, end, PIECE):
            held.append(masks[low : min(low + PIECE, end)] | (1 << k))
            if sum(map(len, held)) >= PIECE:
                yield np.concatenate(held)
                held = []
    if held:
        yield np.concatenate(held)


def _surviving(
    field_: _Field, level: _Level, bound: ScoreBound | None, fresh: Ints
) -> tuple[Ints, Ints, Array]:
    """Return those of larger sets that no bound excludes, as masks and parents, and their subsets' best score."""
    masks = level.masks
    parents = field_.parents(fresh)
    best = np.full(len(fresh), -np.inf)
    alive = np.ones(len(fresh), dtype=bool)
    gains = None if bound is None else bound.removals(field_.x, level.parents, level.scores, parents)
    for k, y in enumerate(field_.candidates.tolist()):
        rows = np.flatnonzero((fresh >> k & 1).astype(bool) & alive)
        if not len(rows):
            continue
        under = fresh[rows] ^ (1 << k)
        at = np.minimum(np.searchsorted(masks, under), len(masks) - 1)
        there = masks[at] == under
        if not there.all():
            alive[rows[~there]] = False
            rows, at = rows[there], at[there]
        best[rows] = np.maximum(best[rows], level.best[at])
        if gains is not None:
            alive[rows[gains(y, at, rows)]] = False
    fresh, parents, best = fresh[alive], parents[alive], best[alive]
    if bound is not None and len(fresh):
        keep = bound.ceiling(field_.x, parents) > best
        fresh, parents, best = fresh[keep], parents[keep], best[keep]
    return fresh, parents, best


def most_parents(total: float) -> int:
    """Return the number of parents that no best graph under BIC exceeds (de Campos and Ji 2011)."""
    return int(np.log2(2 * total / log(total))) if total > 2 else 1
