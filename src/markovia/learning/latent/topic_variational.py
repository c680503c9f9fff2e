"""Topics by bounds: variational Bayes on a whole corpus or in pieces, and EM for the most probable topics.

Variational Bayes (Blei, Ng and Jordan 2003) climbs a lower bound of the log evidence; each pass goes on from the proportions
of the last, so a few steps a document are enough. Online (Hoffman, Blei and Bach 2010), topics move a little after each
piece. EM climbs the log posterior of proportions and topics, taken in the log-ratio coordinates in which the prior's
exponents are its parameters, so that it has a maximum for any prior. Cost: distinct words x topics a step.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

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

    def steps(
        self,
        counts: Any,
        state: Array | None = None,
        *,
        most: int = 100,
        tol: float = 1e-3,
        keep: bool = True,
    ) -> DocumentSteps:
        """Find the proportions of documents, given a sparse table of counts, from a state of before or from even ones."""
        from markovia.kernels.collapsed.topic_bounds import document_steps

        n, k = counts.shape[0], len(self.prior)
        starts, words = counts.indptr.astype(np.int64), counts.indices.astype(np.int64)
        often = counts.data.astype(np.float64)
        if state is None:
            lengths = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
            state = self.prior + lengths / k
        state = np.array(state, dtype=np.float64)
        bounds, rule = np.zeros(n), np.array([most, tol, float(self.point)])
        pieces = range(0, n, PIECE)

        def work(low: int, room: Array) -> Array | None:
            stats = np.zeros_like(self.table) if keep else np.zeros((0, k))
            high = min(low + PIECE, n)
            document_steps(
                starts, words, often, self.table, self.prior, state, stats, bounds, low, high, rule, room
            )
            return stats if keep else None

        total = np.zeros_like(self.table) if keep else np.zeros((0, k))
        # a few pieces at a time, so that their statistics need not all be held
        group = max(self.threads or thread_count(), 1)
        for at in range(0, len(pieces), group):
            for part in in_parallel(work, pieces[at : at + group], lambda: np.zeros((2, k)), self.threads):
                if part is not None:
                    total += part
        return DocumentSteps(state, total * self.table if keep else total, float(bounds.sum()))

    def objective(self, found: DocumentSteps, lengths: Array, scale: float = 1.0) -> float:
        """Return the lower bound of the log evidence, or for point estimates the log posterior up to a constant.

        scale: documents of the corpus for each document of the step.
        """
        from scipy.special import gammaln, psi

        state = found.state
        if self.point:
            theta = state / state.sum(axis=1, keepdims=True)
            words = found.bound - float((lengths * np.log(state.sum(axis=1))).sum())
            of_documents = float((self.prior * np.log(theta)).sum())
            of_topics = float((self.word_prior * np.log(self.table)).sum())
            return scale * (words + of_documents) + of_topics
        sums = psi(state.sum(axis=1))
        logs = psi(state) - sums[:, None]
        documents = found.bound - float((lengths * sums).sum())
        documents += float(
            ((self.prior - state) * logs + gammaln(state)).sum() - gammaln(state.sum(axis=1)).sum()
        )
        documents += len(state) * float(gammaln(self.prior.sum()) - gammaln(self.prior).sum())
        return scale * documents + self.topics_bound()

    def topics_bound(self) -> float:
        """Return the part of the bound that is of the topics' words."""
        from scipy.special import gammaln

        prior = np.broadcast_to(self.word_prior, self.components.shape)
        found = float(((prior - self.components) * self.expected_logs()).sum())
        found += float((gammaln(self.components) - gammaln(prior)).sum())
        found += float((gammaln(prior.sum(axis=0)) - gammaln(self.components.sum(axis=0))).sum())
        return found
