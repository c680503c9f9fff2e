"""Topics by expectation propagation: documents' proportions integrated out, not bounded.

Method: the law of a document's proportions is a Dirichlet, to which each distinct word has added a *site*. In turn each
word is taken out, put back in truth (which makes a mixture of Dirichlets), and its site becomes what gives the Dirichlet of
the same means and sum of squares (Minka and Lafferty 2002). The sites' scales give the evidence, which is not a bound; it is
much nearer than that of variational Bayes unless priors are far below one. Steps that would leave no proper law without
some word are shortened. Topics climb the evidence by EM with the words' expected topics.
Cost: sweeps (some 50) x distinct words x topics a document, ten times that of variational Bayes.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from markovia.learning.latent.topic_variational import PIECE, BoundedTopics, DocumentSteps, summed_over_pieces
from markovia.runtime.array_types import Array

SWEEPS = 50
"""Sweeps a document at most while topics are learned."""


@dataclass
class PropagatedDocuments(DocumentSteps):
    """What propagation found: Dirichlet parameters, expected topics of words, and `logs`, the log evidence of documents.

    `bound` is the sum of `logs`, and no bound; `unsettled` counts documents whose sites still moved.
    """

    logs: Array = field(default_factory=lambda: np.zeros(0))
    unsettled: int = 0


def propagated_documents(
    counts: Any, table: Array, prior: Array, *, most: int = SWEEPS, tol: float = 1e-3, keep: bool = True,
    threads: int | None = None,
) -> PropagatedDocuments:  # fmt: skip
    """Find the laws of documents' proportions, given a sparse table of counts and words x topics probabilities.

    Parameters
    ----------
    most, tol
        Sweeps a document at most, and the mean change of its parameters at which they end.
    keep
        Whether words' expectations are wanted.

    Examples
    --------
    One word has the evidence of its mean probability, exactly:

    >>> from scipy.sparse import csr_array
    >>> table = np.array([[0.9, 0.3], [0.1, 0.7]])
    >>> found = propagated_documents(csr_array([[1, 0]]), table, np.array([1.0, 2.0]))
    >>> round(float(np.exp(found.logs[0])), 12), found.unsettled  # (0.9 + 2 * 0.3) / 3
    (0.5, 0)
    """
    from markovia.kernels.collapsed.topic_propagation import propagate

    n, k = counts.shape[0], len(prior)
    starts, words = counts.indptr.astype(np.int64), counts.indices.astype(np.int64)
    often, rule = counts.data.astype(np.float64), np.array([most, tol])
    state, logs, size = np.zeros((n, k)), np.zeros(n), table.shape if keep else (0, k)
    unsettled: list[int] = []

    def work(low: int, stats: Array, room: Array) -> None:
        high = min(low + PIECE, n)
        unsettled.append(
            propagate(starts, words, often, table, prior, state, stats, logs, low, high, rule, room)
        )

    room = (4 + int(np.diff(starts).max(initial=0)), k)
    total = summed_over_pieces(work, n, size, room, threads)
    return PropagatedDocuments(state, total, float(logs.sum()), logs, sum(unsettled))


@dataclass
class PropagatedTopics(BoundedTopics):
    """Topics that are points, under the evidence of documents by expectation propagation."""

    may_fall: ClassVar[bool] = True

    def steps(self, counts: Any, state: Array | None = None, **rule: Any) -> PropagatedDocuments:
        """Find the proportions of documents anew; sites of before are not kept."""
        how = {name: rule[name] for name in ("tol", "keep") if name in rule}
        return propagated_documents(counts, self.table, self.prior, **how, threads=self.threads)

    def objective(self, found: DocumentSteps, lengths: Array, scale: float = 1.0) -> float:
        """Return the log evidence of documents and the log prior of topics, up to a constant."""
        return scale * found.bound + float((self.word_prior * np.log(self.table)).sum())
