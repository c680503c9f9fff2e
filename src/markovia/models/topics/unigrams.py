"""Baselines of topic models: one distribution of words for all documents, or one topic for each document."""

import warnings
from typing import Any, Self

import numpy as np

from markovia.data.corpus import Corpus
from markovia.errors import ConvergenceWarning, InvalidArgument, outside
from markovia.learning.latent.topic_em import learn_unigram_mixture, mixture_posterior
from markovia.models.topics.base import TopicModel
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import NOT_NEGATIVE, POSITIVE, Whole, check
from markovia.runtime.seeds import Seed


class UnigramMixture(TopicModel):
    """A mixture of unigrams: all words of a document are drawn from one topic, and which is not seen.

    With one topic it is the unigram model, which knows nothing but how frequent words are. Learned by EM on sparse
    counts.

    Parameters
    ----------
    n_components
        The number of topics; 1 is the unigram model.
    smoothing
        Added to the count of each word in each topic.
    max_iter, tol
        Steps of EM at most; the gain a word below which it stops.
    n_init
        Runs from different starts, of which the best is kept.
    random_state
        The seed of starts.

    Attributes
    ----------
    weights_
        The probability of each topic.
    components_
        The probability of each word in each topic.
    history_, converged_, n_iter_
        The objective after each step, whether it settled, and how many steps there were.

    Examples
    --------
    >>> texts = ["ball goal match", "vote law", "goal ball", "law party vote"]
    >>> model = UnigramMixture(2, n_init=5, random_state=0).fit(texts)
    >>> kinds = model.predict(texts)
    >>> bool(kinds[0] == kinds[2] != kinds[1] == kinds[3])
    True
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        smoothing: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from documents."""
        return super().fit(X, y)

    def _learn(self, corpus: Corpus, rng: np.random.Generator) -> None:
        check("n_components", self.n_components, Whole(1))
        check("smoothing", self.smoothing, POSITIVE)
        check("max_iter", self.max_iter, Whole(1))
        check("tol", self.tol, NOT_NEGATIVE)
        check("n_init", self.n_init, Whole(1))
        if self.n_components > len(corpus):
            raise InvalidArgument(
                f"{self.n_components} topics, one a document, need as many documents, and there are {len(corpus)}"
            )
        counts = corpus.counts().astype(float)
        runs = [
            learn_unigram_mixture(
                counts, rng.dirichlet(np.full(self.n_components, 0.5), len(corpus)), max_iter=self.max_iter, tol=self.tol,
                smoothing=self.smoothing,
            )
            for _ in range(self.n_init if self.n_components > 1 else 1)
        ]  # fmt: skip
        self.weights_, phi, _, self.history_, self.converged_ = max(runs, key=lambda run: run[3][-1])
        self.components_, self.n_iter_ = np.ascontiguousarray(phi.T), len(self.history_) - 1
        warn_unless(self.converged_, self.max_iter)

    def _posterior(self, corpus: Corpus) -> tuple[Array, Array]:
        return mixture_posterior(corpus.counts().astype(float), self.weights_, self.components_.T)

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return self._posterior(corpus)[1]

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Return the most probable topic of each document."""
        return np.asarray(self.transform(X).argmax(axis=1))

    def log_prob(self, X: Any) -> Array:  # noqa: N803
        """Return log p of the words of each document, in their order."""
        return self._posterior(self._corpus(X))[0]

    def bic(self, X: Any) -> float:  # noqa: N803
        """Return the Bayesian information criterion, which counts documents; smaller is better."""
        logs = self.log_prob(X)
        free = self.n_components * self.n_features_in_ - 1
        return free * float(np.log(len(logs))) - 2.0 * float(logs.sum())


def warn_unless(converged: bool, max_iter: int) -> None:
    """Warn where learning still gained at its end."""
    if not converged:
        warnings.warn(
            f"still gaining after {max_iter} steps; raise max_iter= or tol=", ConvergenceWarning, stacklevel=outside()
        )  # fmt: skip
