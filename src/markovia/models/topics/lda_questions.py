"""What latent Dirichlet allocation is asked: how probable documents are, which words go together, how sure it is."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.learning.latent.topic_documents import left_to_right
from markovia.learning.latent.topic_propagation import SWEEPS, propagated_documents
from markovia.learning.latent.topic_variational import BoundedTopics, DocumentSteps
from markovia.models.topics.base import TopicModel, read_documents
from markovia.models.topics.lda_network import plate_network
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import LEVEL, Choice, Whole, check
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.data.text.corpus import Corpus
    from markovia.models.graphical.bayesian_network import BayesianNetwork


class TopicQuestions(TopicModel):
    """The base of `LDA`: questions to topics with Dirichlet priors."""

    method: str
    topic_word_prior_: Array
    _draws: Sequence[Mapping[str, Any]]
    _offsets: Ints
    _state: Array

    def _priors(self, vocabulary: list[str]) -> tuple[Array, Array]:
        raise NotImplementedError

    def _bounded(self) -> BoundedTopics:
        raise NotImplementedError

    def _steps(self, corpus: "Corpus") -> DocumentSteps:
        raise NotImplementedError

    def perplexity(
        self,
        X: Any,  # noqa: N803
        *,
        method: Literal["completion", "left-to-right", "ep", "bound"] = "completion",
        particles: int = 20,
        seed: Seed = 0,
    ) -> float:
        """Return the perplexity of documents; smaller is better.

        Parameters
        ----------
        X
            Documents.
        method
            "completion": half of each document tells its topics, the other half is predicted. "left-to-right": each word is
            predicted from those before it, with topics summed out by particles (Wallach et al. 2009). "ep": the
            evidence by expectation propagation. "bound": from the variational bound, as in scikit-learn.
        particles
            Of "left-to-right".
        seed
            Of the halves, or of the particles.
        """
        check("method", method, Choice(("completion", "left-to-right", "ep", "bound")))
        corpus = self._corpus(X)
        if method == "completion":
            total, n = self._completion(corpus, seed)
        else:
            n = len(corpus.words)
            if not n:
                raise InvalidArgument("the documents hold no known words")
            if method == "bound":
                total = self.bound(corpus)
            else:
                total = float(self.log_prob(corpus, method=method, particles=particles, seed=seed).sum())
        return float(np.exp(-total / n))

    def log_prob(
        self,
        X: Any,  # noqa: N803
        *,
        method: Literal["left-to-right", "ep"] = "left-to-right",
        particles: int = 20,
        seed: Seed = 0,
    ) -> Array:
        """Return the log probability of each document given the topics: an estimate by particles, or by propagation.

        Expectation propagation ("ep") draws nothing and is near where the prior of topics is not far below one; a warning
        counts documents in which it did not settle.
        """
        check("method", method, Choice(("left-to-right", "ep")))
        corpus = self._corpus(X)
        check("particles", particles, Whole(1))
        table, prior = np.ascontiguousarray(self.topic_word_.T), self.doc_topic_prior_
        if method == "left-to-right":
            return left_to_right(corpus, table, prior, particles, generator(seed), self._threads)
        counts, most = corpus.counts(), 2 * SWEEPS
        found = propagated_documents(counts, table, prior, most=most, keep=False, threads=self._threads)
        if found.unsettled:
            warn_user(
                f"expectation propagation did not settle in {found.unsettled:,} of {len(corpus):,} documents; "
                "method='left-to-right' always has an estimate",
                ConvergenceWarning,
            )
        return found.logs

    def bound(self, X: Any) -> float:  # noqa: N803
        """Return the variational lower bound of the log probability of documents, the topics' own part included.

        As in scikit-learn, that part is scaled to `total_samples` documents where these are given.
        """
        corpus, model = self._corpus(X), self._bounded()
        if model.point:
            raise InvalidArgument(
                f'method="{self.method}" has no bound; ask for "completion" or "left-to-right"'
            )
        return model.objective(self._steps(corpus), corpus.lengths.astype(np.float64))

    def proportion_intervals(
        self,
        X: Any = None,  # noqa: N803
        *,
        level: float = 0.9,
        seed: Seed = 0,
    ) -> tuple[Array, Array]:
        """Return the ends of credible intervals of topics' proportions, two arrays documents x topics.

        Without documents, of those learned from: by the draws of a sampler, or the variational posterior. New documents are
        judged by their variational posterior.
        """
        from scipy.stats import beta

        check("level", level, LEVEL)
        check_is_fitted(self, "components_")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        if X is None and hasattr(self, "_draws"):
            rng, drawn = generator(seed), []
            for draw in self._draws:
                for _ in range(max(1, 200 // len(self._draws))):
                    g = rng.standard_gamma(draw["document_counts"] + self.doc_topic_prior_)
                    drawn.append((g / np.maximum(g.sum(axis=1, keepdims=True), 1e-300)).astype(np.float32))
            low, high = np.quantile(np.stack(drawn), tails, axis=0)
            return low, high
        if self.method == "map" or (X is None and not hasattr(self, "_state")):
            raise InvalidArgument(
                "there is no posterior of proportions here; learn by 'gibbs' or 'vb', or name documents"
            )
        state = self._state if X is None else self._steps(self._corpus(X)).state
        rest = state.sum(axis=1, keepdims=True) - state
        return np.asarray(beta.ppf(tails[0], state, rest)), np.asarray(beta.ppf(tails[1], state, rest))

    def same_topic_probability(self, i: Any, j: Any) -> float:
        """Return the probability that two words are of the same topic.

        Words as text stand for any occurrence of them; pairs (document, place) for two words of the documents learned from,
        counted in the draws of a sampler.
        """
        if isinstance(i, str) and isinstance(j, str):
            return super().same_topic_probability(i, j)
        if not hasattr(self, "_draws"):
            raise InvalidArgument(
                "places in documents are judged by draws; learn by method='gibbs', or name two words"
            )
        a, b = (self._at(place) for place in (i, j))
        return float(np.mean([d["topics"][a] == d["topics"][b] for d in self._draws]))

    def _at(self, place: Any) -> int:
        try:
            document, position = (int(p) for p in place)
            start, end = self._offsets[document], self._offsets[document + 1]
        except (TypeError, ValueError, IndexError):
            raise InvalidArgument(f"{place!r} is no pair of a document and a place in it") from None
        if not 0 <= position < end - start:
            raise InvalidArgument(
                f"document {document} has {end - start} known words; there is no place {position}"
            )
        return int(start + position)

    def network(self, X: Any) -> "BayesianNetwork":  # noqa: N803
        """Return the plate network of documents: topics `phi`, proportions `theta`, and for each word `z` and `w`.

        Ask it with `given={"w": corpus.words, "document": corpus.owners}`.
        """
        if hasattr(self, "vocabulary_"):
            corpus, prior, words = self._corpus(X), self.doc_topic_prior_, self.topic_word_prior_.T
        else:
            corpus = read_documents(X)
            prior, words = self._priors(corpus.vocabulary)
        return plate_network(
            prior, np.broadcast_to(words, (len(corpus.vocabulary), len(prior))).T, len(corpus)
        )

    def plot_convergence(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the log probability or bound against the passes."""
        check_is_fitted(self, "components_")
        label = {"vb": "bound", "online": "bound a word", "map": "log posterior", "ep": "log evidence"}.get(
            self.method, "log joint probability"
        )
        return ports.draw("plot-convergence", self.history_, label=label, ax=ax, title=title)
