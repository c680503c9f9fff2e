"""Topics by bounds: variational Bayes on a whole corpus or in pieces, and EM for the most probable topics.

Variational Bayes (Blei, Ng and Jordan 2003) climbs a lower bound of the log evidence; each pass goes on from the proportions
of the last, so a few steps a document are enough. Online (Hoffman, Blei and Bach 2010), topics move a little after each
piece. EM climbs the log posterior of proportions and topics, taken in the log-ratio coordinates in which the prior's
exponents are its parameters, so that it has a maximum for any prior. Cost: distinct words x topics a step.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovia.inference.collapsed.dirichlet_priors import from_logs
from markovia.optimise.ascent import Climb, climb
from markovia.optimise.checkpoint import Checkpoint
from markovia.runtime.array_types import Array
from markovia.runtime.threads import in_parallel, thread_count

PIECE = 2_048
"""Documents of a piece of work; statistics of pieces are added in order, so the number of threads changes nothing."""


@dataclass
class DocumentSteps:
    """What a step over documents found.

    Attributes
    ----------
    state
        Documents x topics: Dirichlet parameters of proportions (point estimates: not normalised).
    stats
        Words x topics: how many words of each topic are expected.
    bound
        The sum of `count * log p(word | expected proportions and topics)`.
    """

    state: Array
    stats: Array
    bound: float


def document_posteriors(
    counts: Any, table: Array, prior: Array, state: Array | None = None, *, most: int = 100, tol: float = 1e-3,
    point: bool = False, keep: bool = True, threads: int | None = None,
) -> DocumentSteps:  # fmt: skip
    """Find the proportions of documents, given a sparse table of counts, from a state of before or from even ones.

    Parameters
    ----------
    counts
        Documents x words.
    table, prior
        Words x topics: probabilities of words, or their expected logs as exponents; prior counts of topics.
    most, tol
        Steps a document at most, and the mean change of its state at which they end.
    point
        Whether proportions are point estimates.
    keep
        Whether words' expectations are wanted.
    """
    from markovia.kernels.collapsed.topic_bounds import document_steps

    n, k = counts.shape[0], len(prior)
    starts, words = counts.indptr.astype(np.int64), counts.indices.astype(np.int64)
    often = counts.data.astype(np.float64)
    if state is None:
        state = prior + np.asarray(counts.sum(axis=1)).reshape(-1, 1) / k
    state = np.array(state, dtype=np.float64)
    bounds, rule = np.zeros(n), np.array([most, tol, float(point)])
    size = table.shape if keep else (0, k)

    def work(low: int, stats: Array, room: Array) -> None:
        document_steps(
            starts, words, often, table, prior, state, stats, bounds, low, min(low + PIECE, n), rule, room
        )

    total = summed_over_pieces(work, n, size, (2, k), threads)
    return DocumentSteps(state, total * table if keep else total, float(bounds.sum()))


def summed_over_pieces(
    work: Callable[[int, Array, Array], None], n: int, size: tuple[int, int], room: tuple[int, int], threads: int | None
) -> Array:  # fmt: skip
    """Let `work(first document, statistics, room)` add to statistics of pieces of n documents; return their sum."""

    def one(low: int, own: Array) -> Array:
        stats = np.zeros(size)
        work(low, stats, own)
        return stats

    total, pieces = np.zeros(size), range(0, n, PIECE)
    # a few pieces at a time, so that their statistics need not all be held
    group = max(threads or thread_count(), 1)
    for at in range(0, len(pieces), group):
        for part in in_parallel(one, pieces[at : at + group], lambda: np.zeros(room), threads):
            total += part
    return total


def documents_bound(found: DocumentSteps, lengths: Array, prior: Array) -> float:
    """Return the part of the bound of the log evidence that is of the documents."""
    from scipy.special import gammaln, psi

    state, sums = found.state, psi(found.state.sum(axis=1))
    total = found.bound - float((lengths * sums).sum())
    total += float(((prior - state) * (psi(state) - sums[:, None]) + gammaln(state)).sum())
    total += float(
        len(state) * (gammaln(prior.sum()) - gammaln(prior).sum()) - gammaln(state.sum(axis=1)).sum()
    )
    return total


@dataclass
class BoundedTopics:
    """Topics as Dirichlet parameters (or, with `point`, as probabilities), and how they change.

    Attributes
    ----------
    components
        Words x topics: Dirichlet parameters of topics, transposed.
    prior, word_prior
        Of topics in documents (topics); of words in topics (words x topics, or 1 x topics).
    point
        Whether proportions and topics are point estimates.
    threads
        Threads, or None.
    """

    components: Array
    prior: Array
    word_prior: Array
    point: bool = False
    threads: int | None = None
    table: Array = field(init=False)
    may_fall: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.set_components(self.components)

    def set_components(self, components: Array) -> None:
        """Take other Dirichlet parameters of topics."""
        self.components = components
        self.table = components / components.sum(axis=0) if self.point else np.exp(self.expected_logs())

    def expected_logs(self) -> Array:
        """Return the expected log probability of words in topics, words x topics."""
        from scipy.special import psi

        return np.asarray(psi(self.components) - psi(self.components.sum(axis=0)))

    def steps(self, counts: Any, state: Array | None = None, **rule: Any) -> DocumentSteps:
        """Find the proportions of documents; see `document_posteriors`."""
        rule |= {"point": self.point, "threads": self.threads}
        return document_posteriors(counts, self.table, self.prior, state, **rule)

    def objective(self, found: DocumentSteps, lengths: Array, scale: float = 1.0) -> float:
        """Return the lower bound of the log evidence, or for point estimates the log posterior up to a constant.

        scale: documents of the corpus for each document of the step.
        """
        if self.point:
            state = found.state
            theta = state / state.sum(axis=1, keepdims=True)
            words = found.bound - float((lengths * np.log(state.sum(axis=1))).sum())
            of_documents = float((self.prior * np.log(theta)).sum())
            of_topics = float((self.word_prior * np.log(self.table)).sum())
            return scale * (words + of_documents) + of_topics
        return scale * documents_bound(found, lengths, self.prior) + self.topics_bound()

    def topics_bound(self) -> float:
        """Return the part of the bound that is of the topics' words."""
        from scipy.special import gammaln

        prior = np.broadcast_to(self.word_prior, self.components.shape)
        found = float(((prior - self.components) * self.expected_logs()).sum())
        found += float((gammaln(self.components) - gammaln(prior)).sum())
        found += float((gammaln(prior.sum(axis=0)) - gammaln(self.components.sum(axis=0))).sum())
        return found

    def learn_priors(self, state: Array, learned: tuple[bool, bool]) -> None:
        """Take the most likely priors given the posteriors: of topics in documents, and one for all words."""
        from scipy.special import psi

        if learned[0]:
            logs = psi(state) - psi(state.sum(axis=1, keepdims=True))
            self.prior = from_logs(logs.mean(axis=0), self.prior, steps=20)
        if learned[1]:
            (v, k), mean = self.components.shape, self.expected_logs().mean()
            one = from_logs(np.full(v, mean), np.full(v, self.word_prior[0, 0]), symmetric=True, steps=20)[0]
            self.word_prior = np.full((1, k), one)


class TopicPasses(NamedTuple):
    """Topics, the states of documents, and how many passes there were."""

    topics: BoundedTopics
    documents: Array
    passes: int


def climbed(
    topics: BoundedTopics, counts: Any, lengths: Array, learned: tuple[bool, bool], *, passes: int, tol: float, most: int,
    change: float, progress: bool | None = False, checkpoint: Checkpoint | None = None,
) -> Climb[TopicPasses]:  # fmt: skip
    """Climb the bound in passes over the documents (see `climb`); a number observed is a word.

    Objectives that are no bounds may fall a little.
    """

    def one_pass(now: TopicPasses) -> tuple[TopicPasses, float]:
        # proportions go on from where they were, so few steps at a time are the fastest way up
        found = now.topics.steps(counts, now.documents, most=min(most, 5 if now.passes else 20), tol=change)
        after = replace(now.topics, components=found.stats + now.topics.word_prior)
        if any(learned) and now.passes:
            after.learn_priors(found.state, learned)
        return TopicPasses(after, found.state, now.passes + 1), now.topics.objective(found, lengths)

    start = TopicPasses(topics, topics.prior + lengths[:, None] / len(topics.prior), 0)
    return climb(
        one_pass, start, max_iter=passes, tol=tol, size=max(float(lengths.sum()), 1.0), progress=progress, name="LDA",
        unit="pass", checkpoint=checkpoint, may_fall=topics.may_fall,
    )  # fmt: skip


def online_step(
    components: Array, prior: Array, word_prior: Array, counts: Any, share: float, n: float, **rule: Any
) -> tuple[Array, float]:
    """Move topics towards a piece of documents, counted as if all n were like it; return them and the piece's bound.

    Parameters
    ----------
    components, word_prior
        Dirichlet parameters of topics, topics x words, and of their prior, topics x (1 or words).
    share
        How far to move, from 0 to 1.
    rule
        Of `document_posteriors`.
    """
    from scipy.special import psi

    there, places = np.unique(
        counts.indices, return_inverse=True
    )  # only these words' expectations are needed
    own = components.T[there]
    piece = type(counts)((counts.data, places, counts.indptr), shape=(counts.shape[0], len(there)))
    table = np.exp(psi(own) - psi(components.sum(axis=1)))
    found = document_posteriors(piece, table, prior, **rule)
    moved = (1.0 - share) * components + share * word_prior
    moved[:, there] += (share * n / max(counts.shape[0], 1)) * found.stats.T
    return moved, documents_bound(found, np.asarray(counts.sum(axis=1), dtype=np.float64).ravel(), prior)
