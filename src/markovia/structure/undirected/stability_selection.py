"""Stability selection: keep the edges that subsamples of half the rows choose again and again.

Method (Meinshausen and Buhlmann 2010): fit a path of penalties to many halves of the rows; an edge's frequency at a penalty
is the share of halves in which it is joined, and edges whose largest frequency over the penalties is at least `pi` are kept.
If a half joins `q` pairs on average (at any of the penalties) out of `m` possible ones, then the expected number of wrong
edges is at most `q^2 / ((2 pi - 1) m)`, under exchangeability of the wrong ones. So with `false_edges` the path ends at the
smallest penalty whose `q` keeps this bound within it: the choice of a penalty is replaced by an error that one can live
with. The bound is loose, and asks for fewer edges than a graph with two neighbours a column has; without `false_edges` the
path ends where `q` is twice the columns (or half of all pairs, if that is less), and the bound is reported.
`complementary`: halves are drawn as two that share no row (Shah and Samworth 2013), who give the same bound without
exchangeability for edges that a single half chooses rarely.
Cost: a path a half, ended once a graph has far more edges than `q`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import NumberRange, check, check_number
from markovia.runtime.clock import Clock
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.task import Task
from markovia.structure.undirected.penalty_choice import (
    SUBSAMPLING,
    Graphs,
    PenaltyChoice,
    Subsampling,
    stars,
)


@dataclass(frozen=True, eq=False)
class StableEdges:
    """What stability selection found.

    Attributes
    ----------
    frequencies
        For each pair its largest share of halves over the penalties used.
    present
        The pairs whose frequency is at least `pi`.
    last
        The place of the smallest penalty used.
    selected
        The mean number of pairs a half joins at any of the penalties used (`q`).
    bound
        The expected number of wrong edges is at most this.
    n_subsamples
        How many halves were fitted.
    """

    frequencies: Array
    present: Flags
    last: int
    selected: float
    bound: float
    n_subsamples: int

    def choice(self, levels: Array) -> PenaltyChoice:
        """Return what a result tells of it."""
        return PenaltyChoice(
            "stability",
            levels[: self.last + 1],
            frequencies=self.frequencies,
            selected=self.selected,
            false_edges_bound=self.bound,
            subsamples=self.n_subsamples,
        )


def stable_edges(
    graphs: Graphs,
    n_rows: int,
    n_levels: int,
    open_pairs: Flags,
    rng: np.random.Generator,
    clock: Clock,
    settings: Subsampling = SUBSAMPLING,
) -> StableEdges:
    """Find the edges that most halves of the rows choose.

    Parameters
    ----------
    graphs
        Fits halves.
    open_pairs
        The pairs that may or may not be joined (neither forbidden nor required).
    """
    many, pi, false_edges, complementary = (
        settings.many(100), settings.pi, settings.false_edges, settings.complementary
    )  # fmt: skip
    check("pi", pi, NumberRange(0.5, 1.0, open="low", said="above 0.5 and at most 1"))
    if false_edges is not None:
        check_number("false_edges", false_edges, positive=True)
    if complementary and many % 2:
        raise InvalidArgument(f"subsamples= is even where halves come in pairs, not {many!r}")
    half = n_rows // 2
    if half < 2:
        raise InvalidArgument(f"stability selection halves the rows, and there are only {n_rows}")
    n = len(open_pairs)
    possible = max(int(np.triu(open_pairs, 1).sum()), 1)
    most = min(2.0 * n, possible / 2)
    if false_edges is not None:
        most = float(np.sqrt((2 * pi - 1) * possible * false_edges))
    counts, joined = np.zeros((n_levels, n, n)), np.zeros(n_levels)
    reached, done = n_levels, 0
    order = rng.permutation(n_rows)
    for k in range(many):
        if done >= 2 and clock.over() and not (complementary and k % 2):
            break
        if complementary and k % 2:
            chosen = order[half : 2 * half]
        else:
            order = rng.permutation(n_rows) if k else order
            chosen = order[:half]
        found = graphs(np.sort(chosen), 2 * most + 10) & open_pairs
        reached = min(reached, len(found))
        counts[:reached] += found[:reached]
        ever = np.logical_or.accumulate(found[:reached], axis=0)
        joined[:reached] += np.triu(ever, 1).sum(axis=(1, 2))
        done += 1
        clock.advance(note="half of the rows")
    union = joined[:reached] / done
    within = np.flatnonzero(union <= most)
    if not len(within):  # even the largest penalty joins too many pairs in halves: no penalty is used
        return StableEdges(np.zeros((n, n)), np.zeros((n, n), dtype=bool), 0, 0.0, 0.0, done)
    last = int(within[-1])
    frequencies = counts[: last + 1].max(axis=0) / done
    bound = float(union[last] ** 2 / ((2 * pi - 1) * possible))
    return StableEdges(frequencies, frequencies >= pi, last, float(union[last]), bound, done)


class Settled(NamedTuple):
    """What subsamples settled: the place of the last penalty, the edges that are kept (None: as it finds them), and how."""

    last: int
    present: Flags | None
    choice: PenaltyChoice


def settled_by_subsamples(
    how: str,
    graphs: Graphs,
    n_rows: int,
    levels: Array,
    rules: Rules,
    task: Task,
    settings: Subsampling,
) -> Settled:
    """Choose a penalty by StARS (`how="stars"`), or edges by stability selection ("stability"), as the methods offer both.

    Parameters
    ----------
    graphs, n_rows, levels
        Fits subsamples; the rows there are; the penalties from the largest on.
    rules, task
        Which pairs may be joined; random numbers and limits.
    """
    if how == "stars":
        n = len(rules.allowed)
        steady = stars(graphs, n_rows, len(levels), n, task.rng, task.clock, settings)
        return Settled(steady.chosen, None, steady.choice(levels))
    open_pairs = rules.pairs & ~rules.required_pairs
    kept = stable_edges(graphs, n_rows, len(levels), open_pairs, task.rng, task.clock, settings)
    return Settled(kept.last, kept.present, kept.choice(levels))
