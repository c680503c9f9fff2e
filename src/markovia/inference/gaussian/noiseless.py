"""Equations without noise: deterministic nodes, and values observed of them.

Method: Gaussian elimination. Each such equation is solved for one of its numbers, which is put into all others; an observed
sum fixes one of its terms. What is left is a Gaussian system with noise everywhere. The density of an observed deterministic
value is that of the sum, so the pivot's size counts; an equation in which nothing is left is either met, with probability
one, or impossible.
Cost: the number of such equations times the length of those they meet.
"""

from collections.abc import Callable
from math import log

import numpy as np

from markovia.inference.gaussian.linear_system import Solution, System
from markovia.runtime.array_types import Array, Ints

MET = 1e-9
"""How far, relative to its terms, an equation without unknowns may be from being met."""


def solve_noiseless(system: System, solve: Callable[[System], Solution]) -> Solution:
    """Solve a system in which some equations have variance zero; `solve` is for what is left, with noise everywhere."""
    from scipy.sparse import csr_matrix

    certain = np.flatnonzero(system.variance == 0.0)
    forms: dict[int, tuple[dict[int, float], float]] = {}  # number: sum of others, and a constant
    users: dict[int, set[int]] = {}  # which of those sums a number stands in
    log_pivots = 0.0
    for row in certain:
        inside = slice(system.start[row], system.start[row + 1])
        terms: dict[int, float] = {}
        rest, size = float(system.constant[row]), abs(float(system.constant[row]))
        for j, a in zip(system.column[inside].tolist(), system.coefficient[inside].tolist(), strict=True):
            others, fixed = forms.get(j, ({j: 1.0}, 0.0))
            rest -= a * fixed
            size = max(size, abs(a * fixed))
            for k, w in others.items():
                terms[k] = terms.get(k, 0.0) + a * w
        largest = max(map(abs, terms.values()), default=0.0)
        terms = {k: w for k, w in terms.items() if abs(w) > 1e-13 * largest}
        if not terms:
            if abs(rest) > MET * max(1.0, size):
                return Contradiction(system.n)
            continue
        # the first term is the node itself, where that is not known
        first = int(system.column[inside][0])
        pivot = (
            first if abs(terms.get(first, 0.0)) > 0.1 * largest else max(terms, key=lambda k: abs(terms[k]))
        )
        a = terms.pop(pivot)
        log_pivots += log(abs(a))
        new = {k: -w / a for k, w in terms.items()}, rest / a
        for j in users.pop(pivot, ()):
            others, fixed = forms[j]
            times = others.pop(pivot)
            for k, w in new[0].items():
                others[k] = others.get(k, 0.0) + times * w
                users.setdefault(k, set()).add(j)
            forms[j] = others, fixed + times * new[1]
        forms[pivot] = new
        for k in new[0]:
            users.setdefault(k, set()).add(pivot)
    free = np.array([j for j in range(system.n) if j not in forms], dtype=np.int64)
    place = {j: i for i, j in enumerate(free.tolist())}
    entries = [(j, place[k], w) for j, (others, _) in forms.items() for k, w in others.items()]
    rows = [*free.tolist(), *(e[0] for e in entries)]
    columns = [*range(len(free)), *(e[1] for e in entries)]
    spread = csr_matrix(
        (np.array([1.0] * len(free) + [e[2] for e in entries]), (rows, columns)), shape=(system.n, len(free))
    )
    offset = np.zeros(system.n)
    for j, (_, fixed) in forms.items():
        offset[j] = fixed
    noisy = np.flatnonzero(system.variance > 0.0)
    matrix = system.matrix()[noisy]
    reduced = (matrix @ spread).tocsr()
    inner = System(
        len(free),
        reduced.indptr.astype(np.int64),
        reduced.indices.astype(np.int64),
        reduced.data,
        system.constant[noisy] - matrix @ offset,
        system.variance[noisy],
        memory=system.memory,
        log_constant=system.log_constant,
    )
    if system.precision is not None:
        assert system.information is not None
        pushed = system.precision @ offset
        inner.precision = (spread.T @ system.precision @ spread).tocsr()
        inner.information = spread.T @ (system.information - pushed)
        inner.log_constant += float(system.information @ offset) - 0.5 * float(offset @ pushed)
    return Spread(solve(inner), spread, offset, -log_pivots)


class Spread:
    """Numbers that are linear functions of those of a smaller solution."""

    def __init__(self, inner: Solution, spread: object, offset: Array, log_more: float) -> None:
        self.inner, self.spread, self.offset = inner, spread, offset
        self.mean = np.asarray(spread @ inner.mean + offset)  # type: ignore[operator]
        self.log_mass = inner.log_mass + log_more

    def variances(self) -> Array:
        """Return all marginal variances."""
        found = np.asarray((self.spread.multiply(self.spread)) @ self.inner.variances())  # type: ignore[attr-defined]
        for j in np.flatnonzero(np.diff(self.spread.indptr) > 1):  # type: ignore[attr-defined]
            found[j] = self.covariance(np.array([j]))[0, 0]
        return found

    def covariance(self, at: Ints) -> Array:
        """Return the covariance matrix of some of the numbers."""
        part = self.spread[at]  # type: ignore[index]
        used = np.unique(part.indices)
        weights = part[:, used].toarray()
        return np.asarray(weights @ self.inner.covariance(used) @ weights.T)

    def log_peak(self) -> float:
        """Return the log density of the independent numbers at their mean."""
        return self.inner.log_peak()

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n joint draws, one a row."""
        return np.asarray((self.spread @ self.inner.draw(n, rng).T).T + self.offset)  # type: ignore[operator]


class Contradiction:
    """No solution: equations without noise contradict each other."""

    def __init__(self, n: int) -> None:
        self.mean, self.log_mass = np.full(n, np.nan), -np.inf

    def variances(self) -> Array:
        """Return nothing known."""
        return self.mean

    def covariance(self, at: Ints) -> Array:
        """Return nothing known."""
        return np.full((len(at), len(at)), np.nan)

    def log_peak(self) -> float:
        """Return minus infinity."""
        return -np.inf

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return nothing known."""
        return np.full((n, len(self.mean)), np.nan)
