"""Correlated topics: proportions are the softmax of a Gaussian, so that topics may come together or avoid each other.

Variational EM. A document has q = N(mean, diag(variance)) of its logits; words' topics have their closed form, the
means take Newton's steps and the variances their fixed point, both halved where the bound would fall, so that it
rises with every step. Documents are worked on together in blocks. Cost of a step: entries x topics, and topics^3 a
document.

Reference: Blei and Lafferty (2007), "A correlated topic model of Science".
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.learning.latent.topic_em import expected, normalised
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Flags

BLOCK = 2_000_000
"""Numbers of a block of documents' Hessians."""


class Logits(NamedTuple):
    """What is known of documents' logits: means and variances, (documents, topics)."""

    mean: Array
    variance: Array


class LogisticNormal(NamedTuple):
    """The law of logits, (topics,) and (topics, topics), and the words of topics, (words, topics)."""

    mean: Array
    covariance: Array
    phi: Array


class CorrelatedLogits(NamedTuple):
    """The learned law, and the logits of documents."""

    law: LogisticNormal
    logits: Logits


def learn_correlated(
    counts: Any,
    phi: Array,
    *,
    max_iter: int,
    tol: float,
    smoothing: float,
    shrinkage: float,
    progress: bool | None = False,
) -> Climb[CorrelatedLogits]:
    """Climb from first words of topics (see `climb`); a number observed is a word.

    `smoothing` is added to each word's count in each topic, and the covariance has an inverse Wishart prior worth
    `shrinkage` documents around the unit matrix: the objective is the bound and the logs of both.
    """
    n, k = counts.shape[0], phi.shape[1]

    def step(now: CorrelatedLogits) -> tuple[CorrelatedLogits, float]:
        logits = expect_logits(counts, now.law, now.logits, steps=3)
        _, _, by_word = expected(counts, softmax(logits.mean), now.law.phi)
        off = logits.mean - logits.mean.mean(axis=0)
        scatter = off.T @ off + np.diag(logits.variance.sum(axis=0)) + shrinkage * np.eye(k)
        law = LogisticNormal(
            logits.mean.mean(axis=0), scatter / (n + shrinkage), normalised(by_word + smoothing, 0)
        )
        likelihood, _, _ = expected(counts, softmax(logits.mean), law.phi, words=False)
        bound = likelihood + float(_gaussian_part(counts, law, logits).sum())
        precision, sign = np.linalg.inv(law.covariance), np.linalg.slogdet(law.covariance)[1]
        prior = -0.5 * shrinkage * (sign + np.trace(precision)) + smoothing * np.log(law.phi).sum()
        return CorrelatedLogits(law, logits), bound + float(prior)

    logits = Logits(np.zeros((n, k)), np.full((n, k), 1.0 / 2.0))
    start, size = (
        CorrelatedLogits(LogisticNormal(np.zeros(k), np.eye(k), phi), logits),
        max(float(counts.sum()), 1.0),
    )
    return climb(
        step, start, max_iter=max_iter, tol=tol, size=size, progress=progress, name="correlated topics"
    )


def softmax(logits: Array) -> Array:
    """Return the proportions of logits, (documents, topics)."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def document_bounds(counts: Any, law: LogisticNormal, logits: Logits) -> Array:
    """Return the bound on log p of each document."""
    each = [
        expected(counts[i : i + 1], softmax(logits.mean[i : i + 1]), law.phi, words=False)[0]
        for i in range(len(logits.mean))
    ]
    return np.array(each) + _gaussian_part(counts, law, logits)


def _gaussian_part(counts: Any, law: LogisticNormal, logits: Logits) -> Array:
    """Return the bound of each document without its words' log likelihood given softmax(mean)."""
    lengths, precision = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(np.linalg.inv(law.covariance))
    mean, variance = logits
    off = mean - law.mean
    found = -0.5 * np.einsum("dk,kl,dl->d", off, precision, off) - 0.5 * variance @ np.diag(precision)
    found += 0.5 * np.log(variance).sum(axis=1) + 0.5 * mean.shape[1]
    found -= 0.5 * np.linalg.slogdet(law.covariance)[1]
    spread = _log_sum(mean + 0.5 * variance) - _log_sum(mean)  # E log sum exp is at most the first
    return np.asarray(found - lengths * spread)


def _log_sum(logits: Array) -> Array:
    return np.asarray(np.logaddexp.reduce(logits, axis=-1))


def expect_logits(
    counts: Any, law: LogisticNormal, logits: Logits, *, steps: int, tol: float = 0.0
) -> Logits:
    """Return logits with larger bounds after some steps, fewer where no mean changes by `tol`."""
    lengths, precision = np.asarray(counts.sum(axis=1)).ravel(), np.asarray(np.linalg.inv(law.covariance))
    for _ in range(steps):
        _, seen, _ = expected(counts, softmax(logits.mean), law.phi, words=False)
        size = max(BLOCK // law.mean.size**2, 1)
        parts = [
            _step(logits.mean[b : b + size], logits.variance[b : b + size], seen[b : b + size], lengths[b : b + size],
                  law.mean, precision)
            for b in range(0, len(seen), size)
        ]  # fmt: skip
        mean, variance = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
        change = float(np.abs(mean - logits.mean).max(initial=0.0))
        logits = Logits(mean, variance)
        if change < tol:
            break
    return logits


def _step(
    mean: Array, variance: Array, seen: Array, lengths: Array, centre: Array, precision: Array
) -> tuple[Array, Array]:
    """Return means after a step of Newton and variances after one of their fixed point, given expected counts `seen`."""

    def of_mean(m: Array) -> Array:
        off = m - centre
        quadratic = 0.5 * np.einsum("dk,kl,dl->d", off, precision, off)
        return np.asarray((seen * m).sum(axis=1) - quadratic - lengths * _log_sum(m + 0.5 * variance))

    def of_variance(v: Array) -> Array:
        return np.asarray(
            0.5 * np.log(v).sum(axis=1) - 0.5 * v @ np.diag(precision) - lengths * _log_sum(mean + 0.5 * v)
        )

    p = softmax(mean + 0.5 * variance)
    gradient = seen - lengths[:, None] * p - (mean - centre) @ precision
    curve = precision - lengths[:, None, None] * p[:, :, None] * p[:, None, :]
    diagonal = np.arange(mean.shape[1])
    curve[:, diagonal, diagonal] += lengths[:, None] * p
    mean = _halved(mean, np.asarray(np.linalg.solve(curve, gradient[..., None])[..., 0]), of_mean)
    p = softmax(mean + 0.5 * variance)
    variance = _halved(variance, 1.0 / (np.diag(precision) + lengths[:, None] * p) - variance, of_variance)
    return mean, variance


def _halved(here: Array, step: Array, objective: Any) -> Array:
    """Return rows moved by steps that are halved where the objective would fall; rows that never gain stay."""
    before, found = objective(here), here + step
    worse: Flags = ~(objective(found) >= before)
    for _ in range(20):
        if not worse.any():
            return found
        step = np.where(worse[:, None], 0.5 * step, step)
        found = here + step
        worse = ~(objective(found) >= before)
    return np.asarray(np.where(worse[:, None], here, found))


def fewest_correlations(covariance: Array) -> Array:
    """Return the covariance of logits that says the same of proportions and has the smallest sum of absolute covariances.

    Proportions know differences of logits only, which `covariance + shift_i + shift_j` leaves as they are. The shifts are
    found by reweighted least squares. Two topics come out as not correlated, as nothing can be said of them.

    Examples
    --------
    >>> apart = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> shift = np.array([0.3, -0.2, 0.5])
    >>> fewest_correlations(apart + shift + shift[:, None]).round(6).tolist()
    [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    k = len(covariance)
    rows, columns = np.triu_indices(k, 1)
    values, design = covariance[rows, columns], np.zeros((len(rows), k))
    design[np.arange(len(rows)), rows] = design[np.arange(len(rows)), columns] = 1.0
    weights = np.ones(len(rows))
    for _ in range(100):
        root = np.sqrt(weights)
        shift = np.linalg.lstsq(design * root[:, None], -values * root, rcond=None)[0]
        weights = 1.0 / np.maximum(np.abs(values + design @ shift), 1e-8)
    found = covariance + shift + shift[:, None]
    sizes, vectors = np.linalg.eigh(found)
    return np.asarray((vectors * np.maximum(sizes, 1e-3 * sizes[-1])) @ vectors.T)
