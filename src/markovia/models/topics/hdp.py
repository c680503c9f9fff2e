"""Topics whose number is learned: the hierarchical Dirichlet process.

Documents share infinitely many topics, of which the data uses some. Draws of topics, tables and concentrations give a
posterior over how many (`inference/collapsed/hdp_topics`); online variational inference takes documents in batches.
References: Teh and others (2006); Wang, Paisley and Blei (2011).
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.concentrations import CONCENTRATION, ConcentrationSetting, concentration_of
from markovia.inference.collapsed.hdp_online import OnlineHDP
from markovia.inference.collapsed.hdp_topics import DirectAssignment, Franchise, HDPPriors
from markovia.inference.collapsed.sampler_runs import burn_in_of
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.models.topics.base import TopicModel, read_documents
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Damping, Decay, FromZeroOrNone, Positive, Whole
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import generator

SAMPLERS = {"direct": DirectAssignment, "franchise": Franchise}
ETA = 0.05
"""Where the parameter of words begins before it is learned, and what it is for "online"."""


@dataclass(eq=False, repr=False)
class HDP(SamplerSettings, TopicModel):
    """Topics of documents by a hierarchical Dirichlet process: their number is learned.

    Parameters
    ----------
    max_iter
        Sweeps over all documents.
    method
        "direct" (assignment) or "franchise", both Gibbs sampling; "online" variational inference for many documents.
    burn_in
        Sweeps before draws are kept, half of all by default. In these, topics that say the same are merged.
    n_start
        With how many topics sampling begins; by default 50, fewer for few words.
    alpha, gamma
        The concentrations of documents and of the topics they share: a number, or shape and rate of a gamma prior.
    eta
        The parameter of the Dirichlet law of a topic's words, likewise; by default it is learned ("online": 0.05).
    min_mass
        The share of all words from which a topic counts.
    truncation, document_truncation
        The most topics, and the most topics in a document, for "online".
    batch_size, learning_offset, learning_decay
        Documents of a step for "online"; step i has the share (i + learning_offset)^-learning_decay.
    random_state, time_limit, checkpoint, progress
        The seed; seconds after which sampling ends with what it has; a file to write and to go on from; a bar.

    Attributes
    ----------
    n_components_
        The number of topics over `min_mass`.
    components_
        Expected words of each of these plus `eta`, the largest topic first.
    doc_topic_prior_
        The Dirichlet parameters of a document's topics, alpha times the topics' weights.
    alpha_, gamma_, eta_
        The means of the draws.
    n_components_draws_
        The number of topics over `min_mass` in each draw; `n_topics_draws_` counts all that have a word.
    history_
        log p(words, topics) after each sweep.

    Examples
    --------
    >>> texts = ["cat dog cat dog pet", "dog pet cat", "tree leaf tree root", "leaf root tree tree"] * 10
    >>> model = HDP(max_iter=60, random_state=0).fit(texts)
    >>> model.n_components_
    2
    >>> sorted(sorted(words) for words in model.top_words(3))
    [['cat', 'dog', 'pet'], ['leaf', 'root', 'tree']]
    """

    max_iter: Count = 200
    _: KW_ONLY
    method: Literal["direct", "franchise", "online"] = "direct"
    burn_in: FromZeroOrNone = None
    n_start: FromZeroOrNone = None
    alpha: ConcentrationSetting = (1.0, 1.0)
    gamma: ConcentrationSetting = (1.0, 1.0)
    eta: Annotated[Any, replace(CONCENTRATION, none=True)] = None
    min_mass: Damping = 0.01
    truncation: Annotated[int, Whole(2)] = 100
    document_truncation: Annotated[int, Whole(2)] = 15
    batch_size: Count = 256
    learning_offset: Positive = 10.0
    learning_decay: Decay = 0.6

    def n_components_posterior(self) -> Posterior:
        """Return the posterior of the number of topics over `min_mass`, from the draws kept."""
        if not hasattr(self, "n_components_draws_"):
            raise InvalidArgument(
                "the number of topics has a posterior after fit(), by 'direct' or 'franchise'"
            )
        info = Info(f"{self.method} Gibbs sampling", iterations=self.n_iter_)
        return Posterior.of_draws("topics", self.n_components_draws_, info)

    def partial_fit(self, X: Any, y: Any = None, *, n_documents: int | None = None) -> Self:  # noqa: N803
        """Take in some more documents, for "online"; `n_documents` is how many there will be in all.

        The vocabulary is that of the first ones; give a `Corpus` with all words where they may not have them.
        """
        with fitting(self):
            if self.method != "online":
                raise InvalidArgument("partial_fit is for method='online'; fit() takes all documents")
            corpus = self._corpus(X) if hasattr(self, "vocabulary_") else read_documents(X)
            if not hasattr(self, "_online"):
                self._begin(corpus)
                self._begin_online(n_documents or len(corpus), generator(self.random_state))
            self._online.n_documents = n_documents or max(self._online.n_documents, len(corpus))
            self._take_online(self._online.update(corpus.words, corpus.offsets).sum(axis=0))
        return self

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        burn_in = burn_in_of(self.burn_in, self.max_iter)
        if self.method == "online":
            self._learn_online(corpus, rng)
            return
        eta = concentration_of((1.0, 1.0) if self.eta is None else self.eta)
        priors = HDPPriors(concentration_of(self.alpha), concentration_of(self.gamma), eta)
        sampler = SAMPLERS[self.method](corpus.words, corpus.offsets, len(corpus.vocabulary), priors)
        sampler.settling = burn_in
        sampler.start(min(50, max(len(corpus.words) // 20, 1)) if self.n_start is None else self.n_start, rng)
        if isinstance(eta, tuple):
            sampler.eta = min(ETA, sampler.eta)

        def keep() -> dict[str, Any]:
            sampler.collect()
            over = (sampler.totals > max(self.min_mass * len(corpus.words), 0.5)).sum()
            numbers = [over, (sampler.totals > 0).sum(), sampler.alpha, sampler.gamma, sampler.eta]
            return {"numbers": np.array(numbers, dtype=np.float64)}

        about = (corpus.words, corpus.offsets, self.method, priors, self.min_mass, burn_in)
        run = self._sweeps(sampler, rng, keep, burn_in=burn_in, name="HDP", about=about)
        numbers = np.array([draw["numbers"] for draw in run.draws])
        self.n_components_draws_, self.n_topics_draws_ = numbers[:, :2].T.astype(np.int64)
        self.alpha_, self.gamma_, self.eta_ = numbers[:, 2:].mean(axis=0).tolist()
        words, weights = sampler.collected()
        self._take(words, weights)

    def _take(self, words: Array, weights: Array) -> None:
        """Keep the topics with enough words, the largest first."""
        mass = words.sum(axis=0)
        order = np.argsort(-mass, kind="stable")
        over = order[mass[order] > self.min_mass * mass.sum()]
        kept = over if len(over) else order[:1]
        self.components_ = np.ascontiguousarray(words[:, kept].T) + self.eta_
        self.doc_topic_prior_ = np.maximum(self.alpha_ * weights[kept], 1e-8)
        self.n_components_ = len(kept)

    # -- online variational inference --------------------------------------------------------------------------

    def _begin_online(self, n_documents: int, rng: np.random.Generator) -> None:
        def mean(setting: Any) -> float:
            said = concentration_of(setting)
            return said[0] / said[1] if isinstance(said, tuple) else said

        self.alpha_, self.gamma_ = mean(self.alpha), mean(self.gamma)
        self.eta_ = mean(ETA if self.eta is None else self.eta)
        self._online = OnlineHDP(
            self.n_features_in_, n_documents, self.truncation, self.document_truncation, alpha=self.alpha_,
            gamma=self.gamma_, eta=self.eta_, offset=self.learning_offset, decay=self.learning_decay, rng=rng,
        )  # fmt: skip

    def _learn_online(self, corpus: Corpus, rng: np.random.Generator) -> None:
        self._begin_online(len(corpus), rng)
        mass, self.n_iter_ = np.zeros(self.truncation), 0
        with Clock(self.time_limit, self.progress, total=self.max_iter, unit="pass", name="HDP") as clock:
            while self.n_iter_ < self.max_iter and not clock.over():
                order = rng.permutation(len(corpus))
                mass = np.zeros(self.truncation)
                for first in range(0, len(corpus), self.batch_size):
                    batch = corpus[order[first : first + self.batch_size]]
                    mass += self._online.update(batch.words, batch.offsets).sum(axis=0)
                self.n_iter_ += 1
                clock.advance()
        self._take_online(mass)

    def _take_online(self, mass: Array) -> None:
        """Keep the topics that the last documents spoke of."""
        words = np.where(mass > self.min_mass * mass.sum(), self._online.by_word - self.eta_, 0.0)
        self._take(np.maximum(words, 0.0), self._online.topic_weights())

    _not_saved = ("_online",)
