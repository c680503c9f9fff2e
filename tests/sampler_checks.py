"""Checks of samplers that tests share: the joint-distribution test of Geweke (2004), and distances of distributions."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np

from markovia.inference.markov_chains.diagnostics import ess


def geweke_scores(
    prior: Callable[[], Mapping[str, float]],
    step: Callable[[], Mapping[str, float]],
    n_prior: int,
    n_steps: int,
) -> dict[str, float]:
    """Return for each statistic how many standard errors two ways of drawing it are apart.

    `prior()` draws parameters and data afresh, `step()` moves parameters given data and then data given parameters.
    """
    ours = [prior() for _ in range(n_prior)]
    theirs = [step() for _ in range(n_steps)]
    found = {}
    for name in ours[0]:
        a, b = np.array([x[name] for x in ours]), np.array([x[name] for x in theirs])
        if a.var() == 0.0 and b.var() == 0.0 and a[0] == b[0]:
            continue  # known, so never drawn
        size = ess(b[None], "mean")
        found[name] = float((a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / size))
    return found


def standard_score(draws: Iterable[float], expected: float) -> float:
    """Return how many standard errors the mean of dependent draws is away from what it should be."""
    x = np.asarray(list(draws), dtype=float)
    return float((x.mean() - expected) / np.sqrt(x.var() / ess(x[None], "mean")))


def assert_moments(draws: Iterable[float], log_density: Callable[[float], float], batches: int = 30) -> None:
    """Check the first two moments of a chain of positive numbers against quadrature, within 4 standard errors.

    The errors come from batches of the chain, and have to be small: else agreement would say nothing.
    """
    from scipy.integrate import quad

    x = np.asarray(list(draws), dtype=float)
    top = max(log_density(v) for v in np.geomspace(0.01, 60.0, 300))
    points = [0.1, 1.0, 5.0, 20.0]
    whole, first, second = (
        quad(lambda v, p=p: v**p * np.exp(log_density(v) - top), 0.0, 80.0, limit=300, points=points)[0]
        for p in range(3)
    )
    for values, expected in ((x, first / whole), (x**2, second / whole)):
        error = values.reshape(batches, -1).mean(axis=1).std(ddof=1) / np.sqrt(batches)
        assert error < 0.06 * expected, (error, expected)
        assert abs(values.mean() - expected) < 4.0 * error, (values.mean(), expected, error)


def total_variation(draws: Iterable[Hashable], exact: Mapping[Hashable, float]) -> float:
    """Return half the sum of distances between frequencies of draws and probabilities."""
    seen = Counter(draws)
    n = sum(seen.values())
    return 0.5 * sum(abs(seen[x] / n - exact.get(x, 0.0)) for x in set(seen) | set(exact))


def canonical(labels: Iterable[int]) -> tuple[int, ...]:
    """Return labels by the order in which they first come."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(int(x), len(names)) for x in labels)


def set_partitions(n: int) -> list[tuple[int, ...]]:
    """Return all partitions of n things, as canonical labels."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n):
        found = [(*p, k) for p in found for k in range(max(p, default=-1) + 2)]
    return found
