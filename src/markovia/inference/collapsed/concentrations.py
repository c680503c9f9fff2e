"""Draws of concentrations given how many groups of guests sit at how many tables, and of symmetric Dirichlet parameters.

A concentration has a gamma prior, `shape` and `rate`. Auxiliary variables make its posterior a gamma law again.
References: Escobar and West (1995); Teh and others (2006), appendix A; Neal (2003) on slice sampling.
"""

from collections.abc import Callable

import numpy as np

from markovia.runtime.array_types import Array, Ints

Gamma = tuple[float, float]
"""Shape and rate of a gamma prior."""


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
