"""Baselines of topic models: one distribution of words for all documents, or one topic for each document."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.models.mixtures.mixture import Mixture
from markovia.models.topics.climbing import ClimbingTopics
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive
from markovia.runtime.seeds import Seed


@dataclass(eq=False, repr=False)
class UnigramMixture(ClimbingTopics):
    """A mixture of unigrams: all words of a document are drawn from one topic, and which is not seen.

    With one topic it is the unigram model, which knows nothing but how frequent words are. It is a `Mixture` of
    multinomials over documents.

    Parameters
    ----------
    n_components
        The number of topics; 1 is the unigram model.
    smoothing
        Added to the count of each word in each topic.
    max_iter, tol
        Steps of EM at most; the gain a document below which it stops.
    n_init
        Runs from different starts, of which the best is kept.
    time_limit, progress, random_state
        As in `Mixture`.

    Attributes
    ----------
    weights_
        The probability of each topic.
    components_
        The probability of each word in each topic.
    history_, converged_, n_iter_
        The objective a document at each step, whether it settled, and how many steps there were.

    Examples
    --------
    >>> texts = ["ball goal match", "vote law", "goal ball", "law party vote"]
    >>> model = UnigramMixture(2, n_init=5, random_state=0).fit(texts)
    >>> kinds = model.predict(texts)
    >>> bool(kinds[0] == kinds[2] != kinds[1] == kinds[3])
    True
    """

    n_components: Count = 1
    _: KW_ONLY
    smoothing: Positive = 0.01
    n_init: Count = 5

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        if self.n_components > len(corpus):
            raise InvalidArgument(
                f"{self.n_components} topics, one a document, need as many documents, and there are {len(corpus)}"
            )
        mixture = Mixture(
            "multinomial", self.n_components, prior={"concentration": 1.0 + self.smoothing}, n_init=self.n_init,
            max_iter=self.max_iter, tol=self.tol * len(corpus.words) / len(corpus), random_state=rng,
            time_limit=self.time_limit, progress=self.progress,
        ).fit(corpus.counts())  # fmt: skip
        self.weights_, self.components_ = mixture.weights_, mixture.component_params_["probs"]
        self.history_, self.converged_, self.n_iter_ = mixture.history_, mixture.converged_, mixture.n_iter_

    def _joint(self, corpus: Corpus) -> Array:
        """Return log p of each document's words in their order and of each topic."""
        with np.errstate(divide="ignore"):
            return np.asarray(corpus.counts() @ np.log(self.components_.T) + np.log(self.weights_))

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        joint = self._joint(corpus)
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))

    def _draw_proportions(self, n: int, y: Any, rng: np.random.Generator) -> Array:
        return np.eye(len(self.weights_))[rng.choice(len(self.weights_), n, p=self.weights_)]

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Return the most probable topic of each document."""
        return np.asarray(self.transform(X).argmax(axis=1))

    def log_prob(self, X: Any) -> Array:  # noqa: N803
        """Return log p of the words of each document, in their order."""
        return np.asarray(np.logaddexp.reduce(self._joint(self._corpus(X)), axis=1))

    def bic(self, X: Any) -> float:  # noqa: N803
        """Return the Bayesian information criterion, which counts documents; smaller is better."""
        logs = self.log_prob(X)
        free = self.n_components * self.n_features_in_ - 1
        return free * float(np.log(len(logs))) - 2.0 * float(logs.sum())
