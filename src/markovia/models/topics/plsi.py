"""Probabilistic latent semantic indexing: proportions and topics without priors, by (tempered) EM."""

from typing import Any, Literal, Self

import numpy as np

from markovia.data.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.learning.latent.topic_em import TopicTraining, fold_in, learn_plsi, tempering
from markovia.models.topics.base import TopicModel
from markovia.models.topics.sampled import ONE_TO_ONE
from markovia.models.topics.unigrams import warn_unless
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NOT_NEGATIVE, SECONDS, Whole, check
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed


class PLSI(TopicModel):
    """Probabilistic latent semantic indexing: the proportions and topics under which the words are most probable.

    It is LDA's most probable parameters under flat priors. New documents are folded in: their proportions are learned
    while topics stay. Reference: Hofmann (2001).

    Parameters
    ----------
    n_components
        The number of topics.
    tempering
        A power, at most 1, to which the probabilities of topics are raised in EM, so that the fit follows the corpus
        less; "auto" holds out a tenth of the words to find it; None is 1.
    max_iter, tol
        Steps of EM at most; the gain a word below which it stops.
    n_init
        Runs from different starts, of which the best is kept.
    time_limit, progress
        Seconds after which learning ends with the best so far; a progress bar.
    random_state
        The seed of starts.

    Attributes
    ----------
    components_
        The probability of each word in each topic.
    doc_topic_
        The proportions of topics of the documents learned from.
    power_
        The power that was used.
    history_, converged_, n_iter_
        The objective before each step, whether it settled, and how many steps there were.

    Examples
    --------
    >>> texts = ["ball goal match", "vote law party", "ball vote match law", "goal match", "party law"]
    >>> model = PLSI(2, n_init=5, random_state=0).fit(texts)
    >>> model.transform(["ball match vote goal"]).round(2).max().item()
    0.75
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        tempering: float | Literal["auto"] | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_init: int = 1,
        time_limit: float | None = None,
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.tempering = tempering
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.time_limit = time_limit
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from documents."""
        return super().fit(X, y)

    def _learn(self, corpus: Corpus, rng: np.random.Generator) -> None:
        check("n_components", self.n_components, Whole(1))
        check("max_iter", self.max_iter, Whole(1))
        check("tol", self.tol, NOT_NEGATIVE)
        check("n_init", self.n_init, Whole(1))
        check("time_limit", self.time_limit, SECONDS)
        if self.tempering is not None and self.tempering != "auto":
            check("tempering", self.tempering, ONE_TO_ONE)
        if not len(corpus.words):
            raise InvalidArgument("no document has a word, so that there is nothing to learn topics from")
        counts, k = corpus.counts(), self.n_components

        def start() -> tuple[Array, Array]:
            theta, phi = (
                rng.dirichlet(np.ones(k), len(corpus)),
                rng.dirichlet(np.ones(len(corpus.vocabulary)), k),
            )
            return theta, np.ascontiguousarray(phi.T)

        self.power_ = (
            tempering(counts, *start(), rng, max_iter=self.max_iter, tol=self.tol)
            if self.tempering == "auto"
            else float(self.tempering or 1.0)
        )
        runs: list[TopicTraining] = []
        with Clock(
            self.time_limit, self.progress, total=self.n_init * self.max_iter, unit="step", name="PLSI"
        ) as clock:
            while len(runs) < self.n_init and (not runs or not clock.over()):
                run = learn_plsi(
                    counts, *start(), max_iter=self.max_iter, tol=self.tol, power=self.power_, clock=clock
                )
                runs.append(run)
        best = max(runs, key=lambda run: run.history[-1])
        self.doc_topic_, self.components_ = best.theta, np.ascontiguousarray(best.phi.T)
        self.history_, self.converged_, self.n_iter_ = best.history, best.converged, len(best.history) - 1
        warn_unless(self.converged_ or clock.reason is not None, self.max_iter)

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return fold_in(corpus.counts(), np.ascontiguousarray(self.components_.T), power=self.power_)
