"""Expectation-maximisation for hidden groups, whatever their components are.

    p(x) = sum_k weights[k] p(x | k)

A step takes the probability of each group given each row, and lets components learn from rows weighted by it: in one pass
over blocks of rows where sums over rows are enough (`Components.block_pass`), on both cores; else through
`Components.learned`. Hard EM gives each row wholly to its best group. Online EM (Cappe and Moulines, 2009) moves running
averages of the sums a little towards those of each batch. Reference: Dempster, Laird and Rubin (1977). Cost of a step: one
look at every density. The objective never falls, but for the floor that Gaussians may have under their variance.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.components.block_passes import one_blas_thread
from markovia.learning.components.families import Components
from markovia.learning.components.gaussian_passes import pattern_order
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

BLOCK = 2048
"""Rows of a block: statistics and responsibilities of so many stay in the cache."""


@dataclass(frozen=True)
class Sample:
    """Rows to learn from, how much each counts, and the group of those that are told; -1 for others."""

    rows: Any
    shares: Array | None = None
    labels: Ints | None = None
    gaps: bool = False

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0]) if hasattr(self.rows, "shape") else len(self.rows)

    @property
    def total(self) -> float:
        """How much all rows count."""
        return float(self.size) if self.shares is None else float(self.shares.sum())

    def at(self, places: Any) -> "Sample":
        """Return some of the rows."""
        return replace(
            self,
            rows=rows_at(self.rows, places),
            shares=None if self.shares is None else self.shares[places],
            labels=None if self.labels is None else self.labels[places],
        )

    @property
    def few(self) -> "Sample":
        """Rows in memory to begin with: here all of them."""
        return self

    def chunks(self) -> "Iterator[Sample]":
        """Yield the rows as far as they are in memory at a time: here all of them."""
        yield self

    def batches(self, size: int, rng: np.random.Generator) -> "Iterator[Sample]":
        """Yield batches of rows in random order."""
        order = rng.permutation(self.size)
        for a in range(0, self.size, size):
            yield self.at(order[a : a + size])

    def in_patterns(self) -> "Sample":
        """Return the rows in an order in which those that miss the same cells lie together."""
        if not self.gaps or not isinstance(self.rows, np.ndarray):
            return self
        return self.at(pattern_order(self.rows))


@dataclass(frozen=True)
class Groups:
    """Components and how probable each is."""

    components: Any
    weights: Array

    @property
    def log_weights(self) -> Array:
        """The log probability of each group."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.weights))


@dataclass(frozen=True)
class LearningRule:
    """How groups are learned: priors, whether rows go wholly to their best group, and groups all weigh the same."""

    prior: Mapping[str, Any]
    concentration: float = 1.0
    hard: bool = False
    even: bool = False

    def weights(self, size: Array, before: Array) -> Array:
        """Return the most probable weights of groups with so much in them."""
        if self.even:
            return np.full(len(size), 1.0 / len(size))
        found = np.maximum(size + (self.concentration - 1.0), 0.0)
        return found / found.sum() if found.sum() > 0.0 else before

    def log_prior(self, groups: Groups) -> float:
        """Return the log density of the parameters, up to a constant."""
        from scipy.special import xlogy

        more = float(np.sum(xlogy(self.concentration - 1.0, groups.weights)))
        return more + float(groups.components.log_prior(self.prior))


def learn_groups(
    groups: Groups,
    sample: Any,
    rule: LearningRule,
    *,
    max_iter: int,
    tol: float,
    time_limit: float | None = None,
    progress: bool | None = False,
) -> Climb[Groups]:
    """Climb the objective a row (see `climb`); its history has that before each step.

    A `sample` is a `Sample`, or has `chunks` of such, `total` and `gaps` where rows are not all in memory.
    """
    total, constant = sample.total, _constant(groups.components, sample)

    def turn(now: Groups) -> tuple[Groups, float]:
        found, after = step(now, sample, rule)
        return after, (found + constant + rule.log_prior(now)) / total

    return climb(
        turn, groups, max_iter=max_iter, tol=tol, may_fall=True, time_limit=time_limit, progress=progress
    )


def learn_groups_online(
    groups: Groups,
    sample: Any,
    rule: LearningRule,
    *,
    max_iter: int,
    tol: float,
    batch_size: int,
    decay: float,
    offset: float,
    seed: int,
    progress: bool | None = False,
) -> Climb[Groups]:
    """Learn from batches of rows in random order, pass after pass, until one changes the objective a row by `tol`."""
    if groups.components.block_pass(gaps=True) is None:
        raise InvalidArgument("method='online' needs components that learn from sums over rows")
    rng = np.random.default_rng(seed)

    def one_pass(now: tuple[Groups, OnlineState | None]) -> tuple[tuple[Groups, OnlineState | None], float]:
        (learned, state), total = now, 0.0
        for batch in sample.batches(batch_size, rng):
            each, learned, state = online_step(learned, batch, rule, state, decay=decay, offset=offset)
            total += each * batch.total
        return (learned, state), total / sample.total

    start: tuple[Groups, OnlineState | None] = groups, None
    found = climb(
        one_pass,
        start,
        max_iter=max_iter,
        tol=tol,
        may_fall=True,
        progress=progress,
        name="online EM",
        unit="pass",
    )
    return Climb(found.state[0], found.history, found.reason)


def step(groups: Groups, sample: Any, rule: LearningRule) -> tuple[float, Groups]:
    """Return the log likelihood of groups, without what is the same in all of them, and the groups after one step."""
    passing = groups.components.block_pass(gaps=sample.gaps)
    if passing is None:
        logs = groups.components.log_densities(sample.rows).T + groups.log_weights[:, None]
        found = responsibilities(logs, sample.shares, sample.labels, hard=rule.hard)
        made = groups.components.learned(sample.rows, np.ascontiguousarray(logs.T), rule.prior)
        return found, Groups(made, rule.weights(logs.sum(axis=1), groups.weights))
    found, size, sums = summed(passing, groups.log_weights, sample, hard=rule.hard)
    return found, Groups(passing.learned(size, sums, rule.prior), rule.weights(size, groups.weights))


def summed(
    passing: Any, log_weights: Array, sample: Any, *, hard: bool = False
) -> tuple[float, Array, Array]:
    """Return the log likelihood, how much is in each group, and sums of statistics, in one pass over blocks."""
    total: Any = None
    for chunk in sample.chunks():
        found = _summed(passing, log_weights, chunk, hard)
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
    return total[0], total[1], total[2]


def _summed(passing: Any, log_weights: Array, sample: Sample, hard: bool) -> tuple[float, Array, Array]:
    shares, labels = sample.shares, sample.labels

    def work(part: slice, room: None) -> tuple[float, Array, Array]:
        logs, kept = passing.logs(rows_at(sample.rows, part))
        logs += log_weights[:, None]
        found = responsibilities(
            logs,
            None if shares is None else shares[part],
            None if labels is None else labels[part],
            hard=hard,
        )
        return found, logs.sum(axis=1), passing.sums(kept, logs)

    parts = [slice(a, min(a + BLOCK, sample.size)) for a in range(0, sample.size, BLOCK)]
    with one_blas_thread():
        done = in_parallel(work, parts, lambda: None)
    return (
        float(sum(found for found, _, _ in done)),
        np.sum([size for _, size, _ in done], axis=0),
        np.sum([sums for _, _, sums in done], axis=0),
    )


def responsibilities(logs: Array, shares: Array | None, labels: Ints | None, *, hard: bool = False) -> float:
    """Turn joint log densities, (groups, rows), into how much of each row is in each group; return the log likelihood."""
    if labels is not None:
        told = labels >= 0
        logs[(np.arange(len(logs))[:, None] != labels) & told] = -np.inf
    top = logs.max(axis=0)
    lost = np.isneginf(top)
    if lost.any():
        logs[:, lost] = 0.0  # impossible in all groups: it says nothing of them
    each = np.where(lost, 0.0, top)
    if hard:
        best = logs.argmax(axis=0)
        logs[:] = 0.0
        logs[best, np.arange(logs.shape[1])] = 1.0
        total = top
    else:
        logs -= each
        np.exp(logs, out=logs)
        sums = logs.sum(axis=0)
        logs /= sums
        total = np.where(lost, -np.inf, np.log(sums) + each)
    if shares is None:
        return float(total.sum())
    logs *= shares
    return float(shares[shares > 0.0] @ total[shares > 0.0])


def rows_at(rows: Any, places: Any) -> Any:
    """Return some of the rows, of frames too."""
    return rows.iloc[places] if hasattr(rows, "iloc") else rows[places]


def _constant(components: Components, sample: Any) -> float:
    """Return what passes leave out of the log likelihood."""
    if components.block_pass(gaps=sample.gaps) is None:
        return 0.0
    found = 0.0
    for chunk in sample.chunks():
        base = components.base(chunk.rows)
        if isinstance(base, float):
            return float(base * sample.total)
        found += float(base.sum() if chunk.shares is None else chunk.shares @ base)
    return found


@dataclass(frozen=True)
class OnlineState:
    """Running averages of sums, how many rows were seen, and in how many batches; `origin` is what sums are about."""

    size: Array
    sums: Array
    seen: float
    batches: int
    origin: Array | None


def online_step(
    groups: Groups,
    batch: Sample,
    rule: LearningRule,
    state: OnlineState | None,
    *,
    decay: float,
    offset: float,
) -> tuple[float, Groups, OnlineState]:
    """Return the log likelihood of a batch a row, and groups moved towards what the batch says."""
    origin = (
        state.origin
        if state is not None
        else groups.components.means.mean(axis=0)
        if hasattr(groups.components, "means")
        else None
    )
    whole = replace(batch, gaps=True)  # one shape of sums, whatever a batch misses
    passing = groups.components.block_pass(gaps=True, origin=origin)
    found, size, sums = summed(passing, groups.log_weights, whole, hard=rule.hard)
    total = whole.total
    found = (found + _constant(groups.components, whole)) / total
    if state is None:
        new = OnlineState(size / total, sums / total, total, 1, origin)
    else:
        rate = (state.batches + offset) ** -decay
        new = OnlineState(
            (1.0 - rate) * state.size + rate * size / total,
            (1.0 - rate) * state.sums + rate * sums / total,
            state.seen + total,
            state.batches + 1,
            origin,
        )
    made = passing.learned(new.size * new.seen, new.sums * new.seen, rule.prior)
    return found, Groups(made, rule.weights(new.size * new.seen, groups.weights)), new
