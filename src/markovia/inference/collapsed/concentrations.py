"""Draws of concentrations given how many groups of guests sit at how many tables, and of symmetric Dirichlet parameters.

A concentration has a gamma prior, `shape` and `rate`. Auxiliary variables make its posterior a gamma law again: with K
groups of n rows, (concentration + 1)_{n-1} in the denominator of the partition's law is a beta integral and (concentration
+ k discount) a sum of two terms. References: Escobar and West (1995); Teh (2006) for a discount; Teh and others (2006),
appendix A, for many restaurants; Neal (2003) on slice sampling.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import numpy as np

from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import POSITIVE, Either, Several

Gamma = tuple[float, float]
"""Shape and rate of a gamma prior."""
CONCENTRATION = Either((POSITIVE, Several(POSITIVE, "shape and rate of a gamma prior", 2)))
ConcentrationSetting: TypeAlias = Annotated[Any, CONCENTRATION]
"""What users say of a concentration: its value, or the gamma prior from which it is learned."""


def concentration_of(said: Any) -> float | Gamma:
    """Return a checked setting as a number, or as shape and rate."""
    return (float(said[0]), float(said[1])) if np.ndim(said) else float(said)


class Concentration:
    """A concentration, its gamma prior (shape, rate) if it is learned, and the discount of a Pitman-Yor process."""

    def __init__(self, value: float, prior: tuple[float, float] | None = None, discount: float = 0.0) -> None:
        self.value = float(value)
        self.prior = prior
        self.discount = float(discount)

    def redraw(self, n: int, groups: int, rng: np.random.Generator) -> None:
        """Draw the concentration given how many groups n rows have; one that is held stays."""
        if self.prior is None:
            return
        shape, rate = self.prior
        if n > 1:
            rate -= np.log(rng.beta(self.value + 1.0, n - 1.0))
            k = np.arange(1, groups)
            shape += float((rng.random(groups - 1) * (self.value + self.discount * k) < self.value).sum())
        self.value = max(float(rng.gamma(shape) / rate), 1e-8)

    def log_prob(self, sizes: Ints) -> float:
        """Return the log probability of a partition with groups of these sizes, and of the concentration."""
        found = ChineseRestaurant(self.value, self.discount).log_prob_of_sizes(sizes)
        if self.prior is not None:
            shape, rate = self.prior
            found += float((shape - 1.0) * np.log(self.value) - rate * self.value)
        return found

    def state(self) -> dict[str, Array]:
        """Return what a file keeps."""
        return {"concentration": np.array(self.value)}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up what `state` gave."""
        self.value = float(state["concentration"])


def drawn_concentration(
    value: float, tables: int, guests: Ints | Array, prior: Gamma, rng: np.random.Generator
) -> float:
    """Return a concentration given that restaurants with so many guests have so many tables in all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws, value = [], 1.0
    >>> for _ in range(400):
    ...     value = drawn_concentration(value, 40, np.array([100, 100]), (1.0, 1.0), rng)
    ...     draws.append(value)
    >>> bool(4.5 < np.mean(draws) < 6.0)
    True
    """
    guests = guests[guests > 0]
    shape, rate = prior
    logs = np.log(np.maximum(rng.beta(value + 1.0, guests), 1e-300))
    fewer = rng.random(len(guests)) * (guests + value) < guests
    # no shape is 0: every restaurant with guests has a table
    return max(float(rng.gamma(shape + tables - fewer.sum()) / (rate - logs.sum())), 1e-12)


def drawn_by_slice(
    value: float, log_density: Callable[[float], float], rng: np.random.Generator, width: float = 1.0
) -> float:
    """Return the next value above 0 of a slice sampler on the logarithm, whose density is `log_density(value)`."""
    x = float(np.log(value))

    def height(at: float) -> float:
        return log_density(float(np.exp(at))) + at  # a density of the logarithm

    level = height(x) - rng.exponential()
    low = x - width * rng.random()
    high = low + width
    for _ in range(50):
        if height(low) <= level:
            break
        low -= width
    for _ in range(50):
        if height(high) <= level:
            break
        high += width
    while True:
        new = float(rng.uniform(low, high))
        if height(new) > level:
            return float(np.exp(new))
        low, high = (new, high) if new < x else (low, new)


def drawn_tables(counts: Ints, strengths: Array, rng: np.random.Generator) -> Ints:
    """Return at how many tables guests sit who chose the same dish, given how strongly each restaurant draws it.

    Examples
    --------
    >>> drawn_tables(np.array([0, 1, 5]), np.array([2.0, 2.0, 1e9]), np.random.default_rng(0)).tolist()
    [0, 1, 5]
    """
    flat = counts.ravel()
    cell = np.repeat(np.arange(len(flat)), flat)
    guest = np.arange(len(cell)) - np.repeat(np.cumsum(flat) - flat, flat)
    strength = np.broadcast_to(strengths, counts.shape).ravel()[cell]
    fresh = rng.random(len(cell)) * (strength + guest) < strength
    return np.bincount(cell, fresh, len(flat)).astype(np.int64).reshape(counts.shape)
