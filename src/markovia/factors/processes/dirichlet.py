"""The Dirichlet law with the properties that make it a process, and the urn of Polya, whose proportions it is the limit of.

If (p_1, ..., p_K) ~ Dir(a_1, ..., a_K):

    aggregation     sums over groups of coordinates are Dirichlet, with the sums of concentrations
    splitting       p_1 split by shares ~ Dir(a_1 b) with sum(b) = 1 gives Dir(a_1 b, a_2, ..., a_K)
    renormalising   some coordinates over their sum are Dirichlet, with their own concentrations
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions import positive_families
from markovia.factors.distributions.checked_numbers import concentrations, positive
from markovia.factors.processes.law import Law, roots_of
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator


class Dirichlet(positive_families.Dirichlet):
    """Probability vectors; `mk.exponential.Dirichlet` with aggregation, splitting, renormalising, conditioning on counts.

    Examples
    --------
    >>> d = Dirichlet([1, 2, 3])
    >>> d.aggregated([[0, 1], [2]]).concentration.tolist()
    [3.0, 3.0]
    >>> d.split(2, [0.5, 0.5]).concentration.tolist()
    [1.0, 2.0, 1.5, 1.5]
    >>> d.renormalised([1, 2]).concentration.tolist()
    [2.0, 3.0]
    >>> d.posterior([0, 2, 2]).concentration.tolist()
    [2.0, 2.0, 5.0]
    """

    @classmethod
    def symmetric(cls, concentration: float, n: int) -> "Dirichlet":
        """Return Dir(concentration / n, ...) of n coordinates; as n grows, its partitions become the restaurant's."""
        check_count("n", n, 1)
        return cls(np.full(n, positive(concentration, "the concentration") / n))

    def aggregated(self, groups: list[list[int]]) -> "Dirichlet":
        """Return the law of the sums over groups of coordinates; the groups hold each coordinate once."""
        flat = [i for group in groups for i in group]
        if sorted(flat) != [*range(self.concentration.size)] or not all(groups):
            raise InvalidArgument(
                f"groups hold each of the coordinates 0 to {self.concentration.size - 1} once, not {groups!r}"
            )
        return Dirichlet(np.array([self.concentration[group].sum() for group in map(list, groups)]))

    def split(self, coordinate: int, shares: ArrayLike) -> "Dirichlet":
        """Return the law once a coordinate is split in expected shares, which stand in its place."""
        parts = concentrations(shares, "split")
        if abs(parts.sum() - 1.0) > 1e-9:
            raise InvalidArgument(f"shares sum to 1, not to {parts.sum():g}")
        at = self._places([coordinate])[0]
        alpha = self.concentration
        return Dirichlet(np.concatenate([alpha[:at], alpha[at] * parts, alpha[at + 1 :]]))

    def renormalised(self, coordinates: list[int]) -> "Dirichlet":
        """Return the law of some coordinates divided by their sum."""
        return Dirichlet(self.concentration[self._places(coordinates)])

    def posterior(self, data: ArrayLike) -> "Dirichlet":  # type: ignore[override]
        """Return the law of the probabilities after draws of states 0, 1, ... from them."""
        return Dirichlet(self.concentration + _counts(data, self.concentration.size))

    def plot(self, n: int | None = None, *, seed: Seed = 0, ax: Any = None, title: str | None = None) -> Any:
        """Draw some probability vectors as bars."""
        return ports.call("plot-process", self, n, seed=seed, ax=ax, title=title)

    def _places(self, coordinates: list[int]) -> Ints:
        found = np.asarray(coordinates)
        k = self.concentration.size
        right = found.ndim == 1 and found.size and found.dtype.kind in "iu"
        if not right or found.min() < 0 or found.max() >= k or np.unique(found).size < found.size:
            raise InvalidArgument(f"coordinates are some of 0 to {k - 1}, not {coordinates!r}")
        return found


@dataclass(frozen=True)
class PolyaUrn(Law):
    """An urn of coloured balls: each ball drawn goes back with `added` more of its colour.

    Examples
    --------
    >>> urn = PolyaUrn([1, 1])
    >>> urn.sample(8, seed=0).tolist()
    [1, 0, 0, 0, 1, 1, 1, 1]
    >>> round(float(np.exp(urn.log_prob([0, 0, 1]))) * 12, 9)
    1.0
    >>> urn.posterior([0, 0]).predictive().tolist()
    [0.75, 0.25]
    >>> urn.limit()
    Dirichlet(concentration=[1.0, 1.0])
    """

    balls: ArrayLike = (1.0, 1.0)
    added: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "balls", concentrations(self.balls, "a PolyaUrn"))
        object.__setattr__(self, "added", positive(self.added, "added"))

    def sample(self, n: int, seed: Seed = None) -> Ints:
        """Draw n balls; return their colours."""
        check_count("n", n)
        rng = generator(seed)
        start = np.asarray(self.balls)
        # a draw takes one of the first balls, or repeats the colour of an earlier draw
        first = rng.choice(start.size, n, p=start / start.sum())
        there = np.arange(n)
        old = rng.random(n) * (start.sum() + self.added * there) < self.added * there
        links = np.where(old, (rng.random(n) * there).astype(np.int64), there)
        return np.asarray(first[roots_of(links)])

    def log_prob(self, x: ArrayLike) -> float:
        """Return the log probability of colours drawn in this order; the order does not matter."""
        from scipy.special import gammaln

        alpha = np.asarray(self.balls) / self.added
        counts = _counts(x, alpha.size)
        grown = gammaln(alpha + counts).sum() - gammaln(alpha).sum()
        return float(grown - gammaln(alpha.sum() + counts.sum()) + gammaln(alpha.sum()))

    def posterior(self, data: ArrayLike) -> "PolyaUrn":
        """Return the urn after these draws."""
        balls = np.asarray(self.balls)
        return replace(self, balls=balls + self.added * _counts(data, balls.size))

    def predictive(self) -> Array:
        """Return the probability of each colour at the next draw."""
        balls = np.asarray(self.balls)
        return np.asarray(balls / balls.sum())

    def limit(self) -> Dirichlet:
        """Return the law of the proportions of colours after many draws."""
        return Dirichlet(np.asarray(self.balls) / self.added)


def _counts(states: ArrayLike, k: int) -> Array:
    found = np.asarray(states)
    if found.ndim != 1 or (
        found.size and (found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= k)
    ):
        raise InvalidArgument(f"data are states from 0 to {k - 1}, one for each draw")
    return np.bincount(found.astype(np.int64), minlength=k).astype(np.float64)
