"""Probabilistic latent semantic indexing: EM on counts of words.

In PLSI a word w of document d has topic k with probability proportional to `theta[d, k] * phi[w, k]`. Tempering
raises that to a power below one before it is normalised, so that the fit follows the corpus less; each step raises
`sum of n(d, w) log sum over k of (theta phi)^power`. A new document is folded in: its proportions are learned, topics
stay. Cost of a step: entries x topics.

Reference: Hofmann (2001), "Unsupervised learning by probabilistic latent semantic analysis".
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from markovia.inference.collapsed.sampler_runs import run_sampler
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.kernels.plain_code import either
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Ints

E_STEP = "markovia.kernels.collapsed.expected_topics:expected_topics"


class TopicTables(NamedTuple):
    """Proportions (documents, topics) and words (words, topics)."""

    theta: Array
    phi: Array


def expected(counts: Any, theta: Array, phi: Array, *, words: bool = True) -> tuple[float, Array, Array]:
    """Return the log likelihood and expected counts by document and topic, and by word and topic."""
    by_document, by_word = np.empty(theta.shape), np.zeros(phi.shape if words else (0, phi.shape[1]))
    run = either(E_STEP, 9 * counts.nnz * theta.shape[1])
    data = counts.data.astype(np.float64, copy=False)
    indptr, indices = (a.astype(np.int64, copy=False) for a in (counts.indptr, counts.indices))
    found = run(
        indptr, indices, data, np.ascontiguousarray(theta), np.ascontiguousarray(phi), by_document, by_word
    )
    return float(found), by_document, by_word


def normalised(table: Array, axis: int) -> Array:
    """Return a table whose slices along an axis sum to one; slices of zeros are uniform."""
    total = table.sum(axis=axis, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0.0, table / total, 1.0 / table.shape[axis]))


def gibbs_start(
    words: Ints, offsets: Ints, n_words: int, k: int, rng: np.random.Generator, sweeps: int = 50
) -> Array:
    """Return first words of topics, (words, topics), from some sweeps of LDA's sampler."""
    sampler = TokenTopics(words, offsets, np.full(k, max(1.0 / k, 0.05)), np.full((n_words, k), 0.05))
    sampler.start(rng)
    run_sampler(sampler, sweeps, rng)
    return np.ascontiguousarray(sampler.topic_words().T)


def learn_plsi(
    counts: Any,
    theta: Array,
    phi: Array,
    *,
    max_iter: int,
    tol: float,
    power: float = 1.0,
    progress: bool | None = False,
) -> Climb[TopicTables]:
    """Climb by (tempered) EM from a start (see `climb`); a number observed is a word."""

    def step(now: TopicTables) -> tuple[TopicTables, float]:
        found, by_document, by_word = expected(counts, now.theta**power, now.phi**power)
        return TopicTables(normalised(by_document, 1), normalised(by_word, 0)), found

    start, size = TopicTables(theta, phi), max(float(counts.sum()), 1.0)
    return climb(step, start, max_iter=max_iter, tol=tol, size=size, progress=progress, name="PLSI")


def fold_in(
    counts: Any,
    phi: Array,
    *,
    power: float = 1.0,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> Array:
    """Return the most probable proportions of documents given topics."""
    theta = np.full((counts.shape[0], phi.shape[1]), 1.0 / phi.shape[1])
    for _ in range(max_iter):
        _, by_document, _ = expected(counts, theta**power, phi**power, words=False)
        new = normalised(by_document, 1)
        change = float(np.abs(new - theta).max(initial=0.0))
        theta = new
        if change < tol:
            break
    return theta


def tempering(
    counts: Any, theta: Array, phi: Array, rng: np.random.Generator, *, max_iter: int, tol: float
) -> float:
    """Return the power at which words held out, a tenth, are most probable: lowered until that no longer pays."""
    held = counts.copy()
    held.data = rng.binomial(counts.data.astype(np.int64), 0.1)
    rest = counts - held
    held.eliminate_zeros()
    rest.eliminate_zeros()

    def step(now: list[TopicTables], power: float) -> tuple[list[TopicTables], float]:
        after = learn_plsi(rest, *now[-1], max_iter=1, tol=0.0, power=power).state
        # a floor, as a word may be in no document that is learned from
        return [now[-1], after], expected(held, after.theta, after.phi + 1e-9, words=False)[0]

    now, size = TopicTables(theta, phi), max(float(held.sum()), 1.0)
    best, power, chosen = -np.inf, 1.0, 1.0
    while power > 0.5:
        run = climb(partial(step, power=power), [now], max_iter=max_iter, tol=tol, size=size)
        last = -2 if run.converged else -1  # the step that did not pay is taken back
        if run.history[last] <= best:
            break
        now, best, chosen = run.state[last], run.history[last], power
        power *= 0.9
    return chosen
