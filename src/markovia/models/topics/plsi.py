"""Probabilistic latent semantic indexing: proportions and topics without priors, by (tempered) EM."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.learning.latent.topic_em import TopicTables, fold_in, learn_plsi, tempering
from markovia.models.topics.climbing import ClimbingTopics
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Choice, Count, Either, NumberRange, Tolerance
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed

POWER = Either(
    (NumberRange(0.0, 1.0, open="low", said="a number above 0, at most 1"), Choice(("auto",))), none=True
)


@dataclass(eq=False, repr=False)
class PLSI(ClimbingTopics):
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

    n_components: Count = 10
    _: KW_ONLY
    tempering: Annotated[float | Literal["auto"] | None, POWER] = None
    max_iter: Count = 500
    tol: Tolerance = 1e-6
    n_init: Count = 1

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        counts, k = corpus.counts(), self.n_components

        def start() -> tuple[Array, Array]:
            theta, phi = (rng.dirichlet(np.ones(n), m) for n, m in ((k, len(corpus)), (counts.shape[1], k)))
            return theta, np.ascontiguousarray(phi.T)

        self.power_ = (
            tempering(counts, *start(), rng, max_iter=self.max_iter, tol=self.tol)
            if self.tempering == "auto"
            else float(self.tempering or 1.0)
        )

        def run(begin: tuple[Array, Array], progress: bool | None) -> Climb[TopicTables]:
            how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "power": self.power_}
            return learn_plsi(counts, *begin, **how, progress=progress)

        with Clock(self.time_limit, False):
            best = best_climb(run, [start() for _ in range(self.n_init)], progress=self.progress)
        self.doc_topic_, self.components_ = best.state.theta, np.ascontiguousarray(best.state.phi.T)
        self._end(best)

    def _draw_proportions(self, n: int, y: Any, rng: np.random.Generator) -> Array:
        """Take the proportions of learned documents: there is no law of others."""
        return np.asarray(self.doc_topic_[rng.integers(len(self.doc_topic_), size=n)])

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return fold_in(corpus.counts(), np.ascontiguousarray(self.components_.T), power=self.power_)
