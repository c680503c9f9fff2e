"""Restaurants in which customers choose whom to sit with, near ones first (distance-dependent CRP; Blei, Frazier 2011).

Customer i links to j with probability proportional to decay(distance from i to j), and to itself to `concentration`;
tables are what the links connect. With distance 1 to all earlier customers, infinite to later ones and no decay, it is the
Chinese restaurant process.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import as_numbers
from markovia.factors.processes.law import Law, labels_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import POSITIVE, Positive, check, check_count
from markovia.runtime.seeds import Seed, generator

LARGEST = 12
"""Items of a group whose ways to be connected are summed over subsets when links may go in circles."""


@dataclass(frozen=True)
class DistanceDependentRestaurant(Law):
    """Random partitions of items with distances between them.

    Parameters
    ----------
    distances
        (items, items); row i holds the distances from i. Infinite where i cannot link to j.
    concentration
        The weight of a link to oneself.
    decay
        "exponential": exp(-d / scale); "window": 1 up to the scale; "logistic": 1 / (1 + exp(d - scale)); or any function
        of an array of distances that is zero at infinity.
    scale
        The length of the decay.
    known
        Links of the first items; `posterior` fills it.

    Examples
    --------
    >>> times = np.array([0.0, 1.0, 1.5, 9.0])
    >>> law = DistanceDependentRestaurant(np.abs(times[:, None] - times), concentration=0.5)
    >>> law.link_probabilities()[3].round(3).tolist()
    [0.0, 0.001, 0.001, 0.998]
    >>> links = law.sample(1, seed=0)[0]
    >>> links.tolist(), law.tables(links).tolist()
    ([1, 1, 0, 3], [0, 0, 0, 1])
    """

    distances: Any = ((0.0,),)
    concentration: Positive = 1.0
    decay: Literal["exponential", "window", "logistic"] | Callable[[Array], Array] = "exponential"
    scale: float = 1.0
    known: tuple[int, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check("scale", self.scale, POSITIVE)
        d = as_numbers(self.distances, "distances")
        if d.ndim != 2 or d.shape[0] != d.shape[1] or not d.size or np.isnan(d).any() or (d < 0).any():
            raise InvalidArgument(
                "distances= is a square matrix of numbers, 0 or more, infinite where no link may be"
            )
        if not callable(self.decay) and self.decay not in ("exponential", "window", "logistic"):
            raise InvalidArgument(
                f"decay= is 'exponential', 'window', 'logistic' or a function, not {self.decay!r}"
            )
        object.__setattr__(self, "distances", d)

    def link_probabilities(self) -> Array:
        """Return p(i links to j), a row for each item i."""
        weights = self._weights()
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def sample(self, n: int = 1, seed: Seed = None) -> Ints:
        """Draw n times the links of all items: (n, items); `tables` says what they connect."""
        check_count("n", n)
        rng, p = generator(seed), self.link_probabilities()
        links = (rng.random((n, len(p), 1)) > np.cumsum(p, axis=1)[None]).sum(axis=2)
        links = np.minimum(links, len(p) - 1)
        links[:, : len(self.known)] = self.known
        return np.asarray(links)

    def tables(self, links: ArrayLike) -> Ints:
        """Return the table of each item, given the links of all items."""
        found = self._links(links)
        items = np.arange(len(self.distances))
        if found.size != items.size:
            raise InvalidArgument(
                f"tables needs the link of each of the {items.size} items, not {found.size}"
            )
        labels = items.copy()
        while True:  # the smallest number among those connected, passed along links both ways
            nearer = np.minimum(labels, labels[found])
            np.minimum.at(nearer, found, labels)
            if np.array_equal(nearer, labels):
                return labels_of(labels)
            labels = nearer

    def log_prob(self, x: ArrayLike) -> float:
        """Return the log probability of links: of all items, or, with some known, of those that follow."""
        links = self._links(x)
        after = len(self.known) + np.arange(links.size)
        if after.size and after[-1] >= len(self.distances):
            raise InvalidArgument(
                f"there are {len(self.distances)} items, {len(self.known)} of them with known links"
            )
        with np.errstate(divide="ignore"):
            return float(np.log(self.link_probabilities()[after, links]).sum())

    def partition_log_prob(self, labels: ArrayLike) -> float:
        """Return the log probability of a partition, summed over all links that connect its groups and nothing else.

        Polynomial where links only go back (later distances infinite); else groups have at most 12 items.
        """
        if self.known:
            raise InvalidArgument(
                "partition_log_prob is of all items; ask the law from before posterior(...)"
            )
        groups = labels_of(labels)
        p = self.link_probabilities()
        if groups.size != len(p):
            raise InvalidArgument(f"labels has a group for each of the {len(p)} items, not {groups.size}")
        found = 0.0
        with np.errstate(divide="ignore"):
            for k in range(int(groups.max()) + 1):
                at = np.flatnonzero(groups == k)
                found += float(np.log(_connected(p[np.ix_(at, at)])))
        return found

    def posterior(self, data: ArrayLike) -> "DistanceDependentRestaurant":
        """Return the law of the other links once the first ones are known."""
        links = (*self.known, *self._links(data).tolist())
        if len(links) > len(self.distances):
            raise InvalidArgument(f"there are only {len(self.distances)} items")
        return replace(self, known=links)

    def _weights(self) -> Array:
        d = self.distances
        if callable(self.decay):
            found = np.asarray(self.decay(d), dtype=np.float64)
        elif self.decay == "exponential":
            found = np.exp(-d / self.scale)
        elif self.decay == "window":
            found = (d <= self.scale).astype(np.float64)
        else:
            found = 1.0 / (1.0 + np.exp(np.minimum(d - self.scale, 700.0)))
        found = np.where(np.isinf(d), 0.0, found)
        np.fill_diagonal(found, self.concentration)
        return found

    def _links(self, links: ArrayLike) -> Ints:
        found, n = np.asarray(links), len(self.distances)
        right = found.ndim == 1 and (not found.size or found.dtype.kind in "iu")
        if not right or (found.size and (found.min() < 0 or found.max() >= n)):
            raise InvalidArgument(f"links are items from 0 to {n - 1}, one for each item")
        return found.astype(np.int64)


def _connected(p: Array) -> float:
    """Return the probability that links from a group stay in it and connect all of it."""
    n = len(p)
    if not np.triu(p, 1).any():  # links go back: the first links to itself, each later one to any before
        return float(np.prod([p[0, 0], *(p[i, :i].sum() for i in range(1, n))]))
    if n > LARGEST:
        raise InvalidArgument(
            f"a group of {n} items with links both ways has too many ways to be connected; at most {LARGEST}"
        )
    inside: dict[tuple[int, ...], float] = {}

    def all_ways(group: tuple[int, ...]) -> float:
        return float(np.prod(p[np.ix_(group, group)].sum(axis=1))) if group else 1.0

    def connected(group: tuple[int, ...]) -> float:
        if group not in inside:
            first, others = group[0], group[1:]
            apart = 0.0  # the part with the first item is connected, the rest does as it likes
            for size in range(len(others)):
                for part in combinations(others, size):
                    left = tuple(i for i in others if i not in part)
                    apart += connected((first, *part)) * all_ways(left)
            inside[group] = all_ways(group) - apart
        return inside[group]

    return max(connected(tuple(range(n))), 0.0)
