"""Uncollapsed Gibbs sampling of topics: proportions and topics are drawn too, and given these all words at once.

Simpler to spread over machines than the collapsed sampler, and slower to move. Each block of documents has random numbers of
its own, so the draws do not depend on the number of threads.
"""

from typing import Any

import numpy as np

from markovia.inference.collapsed.topic_gibbs import CollapsedTopics
from markovia.runtime.threads import in_parallel

PIECE = 100_000
"""Words of a piece of work."""


class UncollapsedTopics(CollapsedTopics):
    """The topics of all words; each sweep draws proportions, topics and then all words' topics.

    The log probability is that of words and topics with the rest summed out, so that both samplers' traces compare.
    """

    def _draw(self, rng: np.random.Generator) -> None:
        from markovia.kernels.collapsed.topic_documents import given_proportions

        k, n = self.n_topics, len(self._words)
        theta = np.zeros((len(self.document_topic), self._width), dtype=np.float32)
        theta[:, :k] = rng.standard_gamma(self.document_counts + self.prior) + 1e-30
        theta /= theta.sum(axis=1, keepdims=True)
        phi = np.zeros((self.n_words, self._width), dtype=np.float32)
        drawn = rng.standard_gamma(self.word_counts + self.word_prior)
        phi[:, :k] = drawn / np.maximum(drawn.sum(axis=0), 1e-300)
        phi = np.maximum(phi, np.where(np.arange(self._width) < k, 1e-30, 0.0).astype(np.float32))
        starts = range(0, n, PIECE)
        seeds = rng.integers(0, 2**64, size=(len(starts), 4), dtype=np.uint64)
        topics = np.empty_like(self._topics)

        def work(piece: int, room: Any) -> None:
            low = piece * PIECE
            given_proportions(
                self._words,
                self._owners,
                theta,
                phi,
                low,
                min(low + PIECE, n),
                k - 1,
                topics,
                seeds[piece],
                room,
            )

        in_parallel(
            work, range(len(starts)), lambda: np.zeros((2, self._width), dtype=np.float32), self.threads
        )
        self._take(topics)
