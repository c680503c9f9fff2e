"""K-means: rows in k clusters so that the squared distances from their centres add up to as little as can be.

    J = sum_n w_n |x_n - m_z(n)|^2

`lloyd` takes turns (rows to the nearest centre, centres to the mean of their rows), each of which lowers J, with bounds that
spare most rows the search (`markovia.kernels.collapsed.nearest_centres`). It ends in a local optimum, so the start decides:
`improved` lets a clustering breathe, adding centres where the error is largest and taking away those that are needed least,
until no breath helps. On a sample of a few hundred rows a cluster that costs little, and finds clusters that k-means++ has
left out. References: Arthur and Vassilvitskii (2007), Hamerly (2010), Fritzke (2020), Sculley (2010) for mini-batches.
Cost of a turn: rows searched times centres times columns.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

BLOCK = 65_536
"""Rows that a thread takes at a time; sums are added in the order of blocks, so that threads change nothing."""
COMPILED_FROM = 100_000
"""The rows times centres from which compiled loops pay."""
BREATH = 5
"""How many centres are added and taken away at first."""


class Clustering(NamedTuple):
    """Centres (k, columns), the cluster of each row, the sum J, and how the turns ended (their state left out)."""

    centres: Array
    labels: Ints
    inertia: float
    ended: Climb[None]


class Partition:
    """Rows in clusters, kept up to date while centres move; `sums (k, columns + 1)` has weighted rows, and weights."""

    def __init__(self, rows: Array, weights: Array) -> None:
        self.rows, self.weights = rows, weights
        n = len(rows)
        self.labels: Ints = np.full(n, -1, dtype=np.int64)
        self.upper, self.lower = np.zeros(n), np.zeros(n)
        self.sums = np.zeros((0, rows.shape[1] + 1))
        self._centres: Array | None = None

    def assign(self, centres: Array, *, anew: bool = False) -> int:
        """Give every row its nearest centre and return how many changed; `anew` forgets what was known."""
        k, d = centres.shape
        before = self._centres
        if anew or before is None or before.shape != centres.shape:
            self.labels[:] = -1
            self.sums, before = np.zeros((k, d + 1)), centres
        self._centres = centres
        if len(self.rows) * k < COMPILED_FROM:
            return self._assign_all(centres)
        from markovia.kernels.collapsed.nearest_centres import WIDTH, assign

        moved = np.sqrt(((centres - before) ** 2).sum(axis=1))
        furthest = np.sort(moved)[::-1]
        others = np.where(moved == furthest[0], furthest[min(1, k - 1)], furthest[0])
        halves = 0.5 * (centres**2).sum(axis=1)

        def block(first: int, room: tuple[Array, Ints]) -> tuple[int, Array]:
            sums = np.zeros((k, d + 1))
            return assign(
                first, min(first + BLOCK, len(self.rows)), self.rows, self.weights, centres, halves, moved, others,
                _half_gaps(centres), self.labels, self.upper, self.lower, *room, sums,
            ), sums  # fmt: skip

        found = in_parallel(
            block,
            range(0, len(self.rows), BLOCK),
            lambda: (np.zeros((d + 4, WIDTH)), np.zeros(WIDTH, dtype=np.int64)),
        )
        for _, sums in found:
            self.sums += sums
        return sum(changed for changed, _ in found)

    def _assign_all(self, centres: Array) -> int:
        """Do as the compiled loops, without bounds."""
        k = len(centres)
        products = self.rows @ centres.T - 0.5 * (centres**2).sum(axis=1)
        labels = products.argmax(axis=1)
        changed = int((labels != self.labels).sum())
        self.labels = labels
        self.upper = np.sqrt(self.squares())
        if k > 1:
            second = np.partition(products, k - 2, axis=1)[:, k - 2]
            self.lower = np.sqrt(np.maximum((self.rows**2).sum(axis=1) - 2.0 * second, 0.0))
        self._add_up()
        return changed

    def _add_up(self) -> None:
        for j in range(self.rows.shape[1]):
            self.sums[:, j] = np.bincount(
                self.labels, self.weights * self.rows[:, j], minlength=len(self.sums)
            )
        self.sums[:, -1] = np.bincount(self.labels, self.weights, minlength=len(self.sums))

    def squares(self) -> Array:
        """Return the squared distance of each row from the centre of its cluster."""
        assert self._centres is not None
        if len(self.rows) * len(self._centres) < COMPILED_FROM:
            return np.asarray(((self.rows - self._centres[self.labels]) ** 2).sum(axis=1))
        from markovia.kernels.collapsed.nearest_centres import measure

        squares, centres = np.empty(len(self.rows)), self._centres

        def block(first: int, _: None) -> None:
            measure(first, min(first + BLOCK, len(self.rows)), self.rows, centres, self.labels, squares)

        in_parallel(block, range(0, len(self.rows), BLOCK), lambda: None)
        return squares

    def losses(self) -> Array:
        """Return how much J would rise without each centre, right after `assign(..., anew=True)`."""
        rise = self.weights * (self.lower**2 - self.upper**2)
        return np.bincount(self.labels, rise, minlength=len(self.sums)).astype(np.float64)

    def means(self) -> Array:
        """Return the means of the clusters; an empty one gets the row that is furthest from its centre."""
        assert self._centres is not None
        if (self.sums[:, -1] <= 1e-6 * self.weights.mean()).any():
            self._add_up()  # differences leave crumbs of weights, which must not pass for rows
            empty = np.flatnonzero(self.sums[:, -1] == 0.0)
            squares = np.where(self.weights > 0.0, self.squares(), 0.0)
            furthest = np.argsort(squares, kind="stable")[::-1][: len(empty)]
            for j, row in zip(empty, furthest, strict=False):
                if squares[row] == 0.0:
                    break
                share = np.append(self.rows[row], 1.0) * self.weights[row]
                self.sums[self.labels[row]] -= share
                self.sums[j] += share
                self.labels[row], self.upper[row], self.lower[row] = j, 0.0, 0.0
        size = self.sums[:, -1:]
        fed = size > 0.0
        return np.where(fed, self.sums[:, :-1] / np.where(fed, size, 1.0), self._centres)


def _half_gaps(centres: Array) -> Array:
    """Return half the distance of each centre from the nearest other one."""
    lengths = (centres**2).sum(axis=1)
    squares = lengths[:, None] + lengths - 2.0 * (centres @ centres.T)
    np.fill_diagonal(squares, np.inf)
    nearest = squares.min(axis=1) - 1e-14 * lengths.max()
    return np.asarray(0.5 * np.sqrt(np.maximum(np.where(np.isinf(nearest), 1e300, nearest), 0.0)))


class _Turn(NamedTuple):
    """Centres, what their moves have taken off J so far, and how many rows went to another one."""

    centres: Array
    gained: float
    changed: int


def lloyd(part: Partition, centres: Array, *, max_iter: int = 300, tol: float = 0.0) -> Clustering:
    """Take turns until no row changes its cluster, or moving the centres lowers J by `tol` a row at most."""

    def turn(now: _Turn) -> tuple[_Turn, float]:
        sizes, moved = part.sums[:, -1], part.means()
        # the squared distances from a mean are less than those from any other point by the squared distance of both
        gained = now.gained + float(sizes @ ((moved - now.centres) ** 2).sum(axis=1))
        return _Turn(moved, gained, part.assign(moved)), gained

    part.assign(centres, anew=True)
    found = climb(
        turn, _Turn(centres, 0.0, -1), max_iter=max_iter, tol=tol, size=float(part.weights.sum()), first=0.0,
        settled=lambda _, after: after.changed == 0,
    )  # fmt: skip
    return clustered(part, found.state.centres, found)


def clustered(part: Partition, centres: Array, found: Climb[Any]) -> Clustering:
    """Return the clusters of rows around centres that turns ended with."""
    if found.reason == "interrupted":  # perhaps in the middle of a turn
        part.assign(centres, anew=True)
    inertia = float(part.weights @ part.squares())
    return Clustering(centres, part.labels, inertia, Climb(None, found.history, found.reason))


def plus_plus(rows: Array, weights: Array, k: int, rng: np.random.Generator) -> Array:
    """Return k rows as first centres, each drawn by its squared distance from those before: the best of some candidates."""
    candidates = 2 + int(np.log(k))
    lengths = (rows**2).sum(axis=1)
    centres = np.empty((k, rows.shape[1]))
    first = int(rng.choice(len(rows), p=weights / weights.sum()))
    centres[0] = rows[first]
    nearest = ((rows - centres[0]) ** 2).sum(axis=1)
    for j in range(1, k):
        mass = np.cumsum(weights * nearest)
        # rows that all lie on centres have no mass left: any of them will do
        drawn = np.searchsorted(mass, rng.random(candidates) * mass[-1]) if mass[-1] > 0 else [first]
        tried = np.minimum(np.asarray(drawn), len(rows) - 1)
        apart = np.maximum(lengths + lengths[tried, None] - 2.0 * (rows[tried] @ rows.T), 0.0)
        np.minimum(apart, nearest, out=apart)
        best = int((apart @ weights).argmin())
        centres[j], nearest = rows[tried[best]], apart[best]
    return centres


def improved(
    part: Partition,
    found: Clustering,
    rng: np.random.Generator,
    *,
    tol: float = 0.0,
) -> Clustering:
    """Return a clustering that is no worse, by adding and taking away centres, fewer after each time that did not help."""
    k, d = found.centres.shape
    breath = min(BREATH, k - 1)
    while breath > 0 and found.inertia > 0.0 and found.ended.stopped is None:
        part.assign(found.centres, anew=True)
        errors = np.bincount(part.labels, part.weights * part.upper**2, minlength=k)
        worst = np.argsort(errors, kind="stable")[::-1][:breath]
        spread = np.sqrt(errors[worst] / np.maximum(part.sums[worst, -1], 1e-300) / d)
        beside = found.centres[worst] + 0.1 * spread[:, None] * rng.standard_normal((breath, d))
        centres = lloyd(part, np.concatenate([found.centres, beside]), tol=tol).centres
        for _ in range(breath):
            part.assign(centres, anew=True)
            centres = np.delete(centres, int(part.losses().argmin()), axis=0)
        other = lloyd(part, centres, tol=tol)
        if other.inertia < found.inertia * (1.0 - 1e-6):
            # labels are the partition's own, and move on with it
            found = other._replace(labels=other.labels.copy())
        else:
            found = found._replace(
                ended=replace(found.ended, reason=other.ended.stopped or found.ended.reason)
            )
            breath -= 1
    return found


def mini_batches(
    rows: Array, weights: Array, centres: Array, size: int, rng: np.random.Generator, *, max_iter: int, tol: float
) -> tuple[Clustering, Array]:  # fmt: skip
    """Pass over mini-batches in random order until moves of centres gain `tol` a row at most; return their weights too."""
    k = len(centres)

    def one_pass(now: tuple[Array, Array, float]) -> tuple[tuple[Array, Array, float], float]:
        (moved, counts, gained), order = now, rng.permutation(len(rows))
        for first in range(0, len(rows), size):
            own = order[first : first + size]
            part = Partition(np.ascontiguousarray(rows[own]), weights[own])
            moved, counts = running_means(part, moved, counts)
        gained += float((counts - now[1]) @ ((moved - now[0]) ** 2).sum(axis=1))
        return (moved, counts, gained), gained

    found = climb(
        one_pass, (centres, np.zeros(k), 0.0), max_iter=max_iter, tol=tol, size=float(weights.sum()), first=0.0, unit="pass"
    )  # fmt: skip
    centres, counts, _ = found.state
    part = Partition(rows, weights)
    part.assign(centres, anew=True)
    return clustered(part, centres, found), counts


def running_means(part: Partition, centres: Array, counts: Array) -> tuple[Array, Array]:
    """Return the centres moved by the rows of a mini-batch, each a mean of all rows it ever got, and its new weights."""
    part.assign(centres, anew=True)
    gained = part.sums[:, -1]
    counts = counts + gained
    share = np.where(counts > 0.0, 1.0 / np.where(counts > 0.0, counts, 1.0), 0.0)
    return centres + share[:, None] * (part.sums[:, :-1] - gained[:, None] * centres), counts
