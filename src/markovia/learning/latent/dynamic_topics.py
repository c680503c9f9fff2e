"""Topics whose words drift: the logits of a topic's words take a Gaussian random walk from one time to the next.

Variational EM. Documents have Dirichlet posteriors of their proportions; the paths of logits are the most probable
ones, found by Newton's method with the curvature of a Poisson model: each step is one Kalman smoother for all words
of all topics on pseudo-observations (the iterated extended smoother), halved where the objective would fall. The
first logits have a normal prior of their own. Cost of a step: entries x topics, and times x words x topics.

Reference: Blei and Lafferty (2006), "Dynamic topic models".
"""

from math import log, pi
from typing import Any, NamedTuple

import numpy as np

from markovia.learning.latent.topic_variational import document_posteriors, documents_bound
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array


class Paths(NamedTuple):
    """Logits of words, (times, words, topics), and their posterior variances."""

    logits: Array
    variance: Array


class DriftingTopics(NamedTuple):
    """Paths of topics, and Dirichlet posteriors of documents in order of time."""

    paths: Paths
    gamma: list[Array]


def learn_dynamic(
    slices: list[Any],
    phi: Array,
    *,
    alpha: Array,
    drift: float,
    spread: float,
    max_iter: int,
    tol: float,
    progress: bool | None = False,
) -> Climb[DriftingTopics]:
    """Climb from counts of each time and first words of topics, (words, topics); a number observed is a word.

    `drift` is the variance of a step of the random walk, `spread` that of the first logits around zero.
    """
    first = np.log(np.maximum(phi, 1e-8))
    first -= first.mean(axis=0)
    logits = np.repeat(first[None], len(slices), axis=0)
    gamma = [np.tile(alpha + c.sum() / max(c.shape[0], 1) / len(alpha), (c.shape[0], 1)) for c in slices]
    lengths = [np.asarray(c.sum(axis=1), dtype=np.float64).ravel() for c in slices]

    def step(now: DriftingTopics) -> tuple[DriftingTopics, float]:
        logits = now.paths.logits
        found = [
            document_posteriors(c, np.exp(log_words(x)), alpha, g, most=20, tol=1e-5)
            for c, x, g in zip(slices, logits, now.gamma, strict=True)
        ]
        bounds = [documents_bound(one, size, alpha) for one, size in zip(found, lengths, strict=True)]
        paths = smoothed_paths(np.stack([one.stats for one in found]), logits, drift, spread)
        return DriftingTopics(paths, [one.state for one in found]), sum(bounds) + log_walk(
            logits, drift, spread
        )

    start, size = (
        DriftingTopics(Paths(logits, np.zeros_like(logits)), gamma),
        max(float(sum(map(np.sum, lengths))), 1.0),
    )
    return climb(step, start, max_iter=max_iter, tol=tol, size=size, progress=progress, name="dynamic topics")


def log_words(logits: Array) -> Array:
    """Return log probabilities of words, which lie along the last axis but one."""
    return np.asarray(logits - np.logaddexp.reduce(logits, axis=-2, keepdims=True))


def log_walk(logits: Array, drift: float, spread: float) -> float:
    """Return the log density of paths."""
    steps, first = np.diff(logits, axis=0), logits[0]
    found: float = -0.5 * float((steps**2).sum()) / drift - 0.5 * float((first**2).sum()) / spread
    found -= 0.5 * steps.size * log(2 * pi * drift) + 0.5 * first.size * log(2 * pi * spread)
    return found


def smoothed_paths(seen: Array, logits: Array, drift: float, spread: float, *, steps: int = 5) -> Paths:
    """Return more probable paths given counts (times, words, topics), and their variances by the curvature there."""

    def objective(x: Array) -> Array:
        walk = (
            0.5 * (np.diff(x, axis=0) ** 2).sum(axis=(0, 1)) / drift + 0.5 * (x[0] ** 2).sum(axis=0) / spread
        )
        return np.asarray((seen * log_words(x)).sum(axis=(0, 1)) - walk)

    for _ in range(steps):
        rate = seen.sum(axis=1, keepdims=True) * np.exp(log_words(logits))
        precision = np.maximum(rate, 1e-10)
        target, variance = smoother(logits + (seen - rate) / precision, precision, drift, spread)
        before, step = objective(logits), target - logits
        for _ in range(30):
            worse = objective(logits + step) < before
            if not worse.any():
                break
            step = np.where(worse, 0.5 * step, step)
        else:
            step = np.where(worse, 0.0, step)
        logits = logits + step
        if float(np.abs(step).max(initial=0.0)) < 1e-5:
            break
    return Paths(logits, variance)


def smoother(seen: Array, precision: Array, drift: float, spread: float) -> tuple[Array, Array]:
    """Return means and variances of random walks given noisy values of each step, all walks at once along the first axis.

    Kalman's filter forward and the smoother of Rauch, Tung and Striebel back.
    """
    mean, variance = np.empty_like(seen), np.empty_like(seen)
    m, v = np.zeros_like(seen[0]), np.full_like(seen[0], spread)
    for t in range(len(seen)):
        v = 1.0 / (1.0 / v + precision[t])
        m = m + v * precision[t] * (seen[t] - m)
        mean[t], variance[t] = m, v
        v = v + drift
    for t in range(len(seen) - 2, -1, -1):
        gain = variance[t] / (variance[t] + drift)
        mean[t] += gain * (mean[t + 1] - mean[t])
        variance[t] += gain**2 * (variance[t + 1] - variance[t] - drift)
    return mean, variance
