"""Latent Dirichlet allocation: documents mix topics, topics are distributions over words.

Reference: Blei, Ng and Jordan (2003). Learned by collapsed or uncollapsed Gibbs sampling, by variational Bayes on a whole
corpus or in pieces, or by EM for the most probable topics. Cost: words x topics a pass.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.data.corpus import BATCH, Corpus, CorpusStream
from markovia.errors import ConvergenceWarning, InvalidArgument, UnknownVariable, outside
from markovia.inference.collapsed.dirichlet_priors import from_logs
from markovia.inference.collapsed.sampler_runs import digest_of, run_sampler
from markovia.inference.collapsed.topic_gibbs import CollapsedTopics
from markovia.inference.collapsed.topic_uncollapsed import UncollapsedTopics
from markovia.learning.latent.topic_documents import average_proportions, left_to_right
from markovia.learning.latent.topic_variational import BoundedTopics
from markovia.models.classifiers.input_checks import kept_on_failure
from markovia.models.topics.base import TopicModel, read_documents, seed_of
from markovia.models.topics.lda_network import plate_network
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.checks import (
    LEVEL,
    NOT_NEGATIVE,
    POSITIVE,
    SECONDS,
    Choice,
    Flag,
    Interval,
    Whole,
    check,
)
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.models.graphical.bayesian_network import BayesianNetwork

METHODS = ("gibbs", "vb", "online", "uncollapsed", "map")
SAMPLED = ("gibbs", "uncollapsed")
START = 50
"""Sweeps of the sampler from which "vb", "map" and "online" begin."""


class LDA(TopicModel):
    """Topics of documents, by latent Dirichlet allocation.

    Parameters
    ----------
    n_components
        The number of topics.
    method
        "gibbs" (collapsed), "vb" (variational Bayes), "online" (the same in pieces, for corpora beyond memory),
        "uncollapsed" (Gibbs with proportions and topics drawn too) or "map" (EM).
    max_iter
        Sweeps or passes over the documents; by default 300 for samplers, 100 for "vb" and "map", 10 for "online".
    tol
        The relative gain of the bound at which "vb", "online" and "map" stop.
    doc_topic_prior, topic_word_prior
        Parameters of the Dirichlet priors, a number or one for each topic (word); by default 1 / n_components to begin with.
    learn_priors
        Whether priors are learned (of documents one for each topic, of words one for all; Wallach et al. 2009); by default
        those that are not given, except for "online" and "map".
    seeds
        Words that lead topics: `{0: ["goal", "match"]}`; they begin there and weigh `seed_weight` more in the prior.
    seed_weight
        Words that a seed is worth.
    burn_in, n_draws
        Sweeps before draws are kept (by default half); draws that are kept, evenly, and averaged.
    learning_decay, learning_offset, batch_size, total_samples
        Of "online" and `partial_fit`, as in scikit-learn.
    max_doc_update_iter, mean_change_tol
        Steps a document at most, and the mean change at which they end.
    n_jobs
        Threads; the answer does not depend on it.
    random_state
        The seed.
    time_limit, progress
        Seconds at most; whether to show a progress bar.
    checkpoint
        A file that samplers write their state to and go on from.

    Attributes
    ----------
    components_
        Topics x words: Dirichlet parameters (expected counts and prior).
    doc_topic_prior_, topic_word_prior_
        The priors, learned or given.
    doc_topic_
        The proportions of the documents learned from (not for "online").
    history_
        The log joint probability after each sweep, the bound or the log posterior after each pass.
    n_iter_, converged_, stopped_
        Passes; whether the bound settled; "time limit" or "interrupted" where that ended the fit.

    Examples
    --------
    >>> texts = ["cat dog cat", "dog cat dog dog", "sun rain sun", "rain sun rain rain"] * 5
    >>> lda = LDA(2, doc_topic_prior=0.1, topic_word_prior=0.1, max_iter=50, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in lda.top_words(2))
    [['cat', 'dog'], ['rain', 'sun']]
    >>> lda.transform(["cat cat dog"]).max() > 0.9
    np.True_
    """

    _not_saved = ("_draws", "_offsets", "_state")

    def __init__(
        self,
        n_components: int = 10,
        *,
        method: Literal["gibbs", "vb", "online", "uncollapsed", "map"] = "gibbs",
        max_iter: int | None = None,
        tol: float = 1e-5,
        doc_topic_prior: Any = None,
        topic_word_prior: Any = None,
        learn_priors: bool | None = None,
        seeds: Mapping[int, Sequence[str]] | None = None,
        seed_weight: float = 50.0,
        burn_in: int | None = None,
        n_draws: int = 10,
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        batch_size: int = BATCH,
        total_samples: float | None = None,
        max_doc_update_iter: int = 100,
        mean_change_tol: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
        time_limit: float | None = None,
        progress: bool | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learn_priors = learn_priors
        self.seeds = seeds
        self.seed_weight = seed_weight
        self.burn_in = burn_in
        self.n_draws = n_draws
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.batch_size = batch_size
        self.total_samples = total_samples
        self.max_doc_update_iter = max_doc_update_iter
        self.mean_change_tol = mean_change_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.time_limit = time_limit
        self.progress = progress
        self.checkpoint = checkpoint

    # -- learning --------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn the topics of documents: a `Corpus` or its stream, or what `Corpus.read` takes; "online" streams a path."""
        if self.method != "online" or not isinstance(X, CorpusStream | str | os.PathLike):
            return super().fit(X, y)
        with kept_on_failure(self):
            self._check()
            stream = X if isinstance(X, CorpusStream) else Corpus.stream(X, batch_size=self.batch_size)
            n = sum(len(piece) for piece in stream)
            self._online(stream, n, generator(seed_of(self.random_state)))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from one more piece of documents, by an online variational step; the first gives the vocabulary.

        `total_samples` says how many documents there will be (by default as many as were seen).
        """
        with kept_on_failure(self):
            self._check()
            first = not hasattr(self, "components_")
            corpus = read_documents(X) if first else self._corpus(X)
            if first:
                self._begin(corpus)
                n = self.total_samples or len(corpus)
                self._start_online(corpus, n, generator(seed_of(self.random_state)))
            elif not hasattr(self, "_seen"):  # learned by another method: go on from its topics
                self.n_batch_iter_, self._seen = 1, 0
            self._seen += len(corpus)
            self._online_step(corpus, self.total_samples or max(self._seen, 1))
        return self

    def _check(self) -> None:
        check("n_components", self.n_components, Whole(1))
        check("method", self.method, Choice(METHODS))
        check("max_iter", self.max_iter, Whole(1, none=True))
        check("tol", self.tol, NOT_NEGATIVE)
        check("learn_priors", self.learn_priors, Flag(none=True))
        check("seed_weight", self.seed_weight, NOT_NEGATIVE)
        check("burn_in", self.burn_in, Whole(0, none=True))
        check("n_draws", self.n_draws, Whole(1))
        check(
            "learning_decay",
            self.learning_decay,
            Interval(0.5, 1.0, open="low", said="above 0.5 and at most 1"),
        )
        check("learning_offset", self.learning_offset, NOT_NEGATIVE)
        check("batch_size", self.batch_size, Whole(1))
        check("total_samples", self.total_samples, Interval(1.0, said="1 or more", none=True))
        check("max_doc_update_iter", self.max_doc_update_iter, Whole(1))
        check("mean_change_tol", self.mean_change_tol, POSITIVE)
        check("time_limit", self.time_limit, SECONDS)

    @property
    def _passes(self) -> int:
        usual = {"gibbs": 300, "uncollapsed": 300, "online": 10}
        return self.max_iter or usual.get(self.method, 100)

    @property
    def _threads(self) -> int | None:
        return None if self.n_jobs is None or self.n_jobs < 0 else max(int(self.n_jobs), 1)

    @property
    def _learned(self) -> tuple[bool, bool]:
        """Whether the priors of documents and of words are learned."""
        if self.method in ("online", "map"):
            if self.learn_priors:
                raise InvalidArgument(
                    f"method={self.method!r} keeps its priors; learn_priors=True is for the other methods"
                )
            return False, False
        if self.learn_priors is not None:
            return self.learn_priors, self.learn_priors and not self.seeds
        return self.doc_topic_prior is None, self.topic_word_prior is None and not self.seeds

    def _priors(self) -> tuple[Array, Array]:
        """Return the priors to begin with: (topics), and (1 or words) x topics."""
        k, v = self.n_components, self.n_features_in_
        prior = _row(self.doc_topic_prior, k, "doc_topic_prior", "topics", 1.0 / k)
        words = _row(self.topic_word_prior, v, "topic_word_prior", "words", 1.0 / k)
        table = (
            np.full((1, k), words[0]) if (words == words[0]).all() else np.repeat(words[:, None], k, axis=1)
        )
        if self.seeds:
            table = np.repeat(table, v, axis=0) if len(table) == 1 else table
            for topic, place in self._seed_places():
                table[place, topic] += self.seed_weight
        return prior, table

    def _seed_places(self) -> list[tuple[int, int]]:
        """Return the topic and the position of each word that leads one."""
        codes, found = {w: i for i, w in enumerate(self.vocabulary_)}, []
        if not isinstance(self.seeds, Mapping):
            raise InvalidArgument(f"seeds= is a mapping from topics to lists of words, not {self.seeds!r}")
        for topic, words in self.seeds.items():
            if not isinstance(topic, int | np.integer) or not 0 <= topic < self.n_components:
                raise InvalidArgument(
                    f"seeds= names topic {topic!r}; topics are 0 ... {self.n_components - 1}"
                )
            for word in [words] if isinstance(words, str) else words:
                if word not in codes:
                    raise UnknownVariable(word, self.vocabulary_, "the vocabulary")
                found.append((int(topic), codes[word]))
        return found

    def _learn(self, corpus: Corpus, rng: np.random.Generator) -> None:
        self._check()
        self._seed = [int(n) for n in rng.integers(1, 2**64, size=4, dtype=np.uint64)]
        if self.method == "online":
            self._online(corpus, len(corpus), rng)
        elif self.method in SAMPLED:
            self._sample(corpus, rng)
        else:
            self._climb(corpus, rng)

    def _sample(self, corpus: Corpus, rng: np.random.Generator) -> None:
        prior, word_prior = self._priors()
        learned = self._learned
        begin = self._begin_topics(corpus)
        kind: Any = CollapsedTopics if self.method == "gibbs" else UncollapsedTopics
        sampler = kind(
            corpus.words, corpus.offsets, self.n_features_in_, prior, word_prior, begin, threads=self._threads, learn=learned
        )  # fmt: skip
        sweeps = self._passes
        burn_in = min(sweeps // 2 if self.burn_in is None else self.burn_in, sweeps - 1)
        run = run_sampler(
            sampler, sweeps, rng, burn_in=burn_in, thin=max(1, -(-(sweeps - burn_in) // self.n_draws)),
            keep=lambda: _kept(sampler), time_limit=self.time_limit, progress=self.progress, checkpoint=self.checkpoint,
            digest=digest_of(corpus.words, corpus.offsets, prior, word_prior, self.method, learned), name="LDA",
        )  # fmt: skip
        draws = run.draws or [_kept(sampler)]
        counts = sum(d["word_counts"].astype(np.float64) for d in draws) / len(draws)
        self.doc_topic_prior_, self.topic_word_prior_ = sampler.prior, _as_rows(sampler.word_prior)
        self.components_ = np.asarray((counts + sampler.word_prior).T)
        mixed = sum(d["document_counts"].astype(np.float64) for d in draws) / len(draws) + sampler.prior
        self.doc_topic_ = mixed / mixed.sum(axis=1, keepdims=True)
        self._draws, self._offsets = draws, corpus.offsets
        self.history_, self.n_iter_, self.stopped_, self.converged_ = (
            run.history,
            run.sweeps,
            run.reason,
            True,
        )

    def _begin_topics(self, corpus: Corpus) -> Codes | None:
        """Return the topics of seeded words, -1 for others."""
        if not self.seeds:
            return None
        leads = np.full(self.n_features_in_, -1, dtype=np.int32)
        for topic, place in self._seed_places():
            leads[place] = topic
        return np.asarray(leads[corpus.words])

    def _climb(self, corpus: Corpus, rng: np.random.Generator) -> None:
        counts, (prior, word_prior) = corpus.counts(), self._priors()
        lengths = corpus.lengths.astype(np.float64)
        learned, point = self._learned, self.method == "map"
        start = self._started(corpus, rng)
        model = BoundedTopics(start, prior, word_prior, point, self._threads)
        history: list[float] = []
        state, converged = None, False
        with Clock(self.time_limit, self.progress, total=self._passes, unit="pass", name="LDA") as clock:
            while len(history) < self._passes and not (clock.over() and history):
                # proportions go on from where they were, so few steps at a time are the fastest way up
                found = model.steps(
                    counts,
                    state,
                    most=min(self.max_doc_update_iter, 5 if history else 20),
                    tol=self.mean_change_tol,
                )
                state = found.state
                history.append(model.objective(found, lengths))
                clock.advance(note=f"{history[-1]:.6g}")
                if len(history) > 1 and history[-1] - history[-2] < self.tol * abs(history[-1]):
                    converged = True
                    break
                model.set_components(found.stats + model.word_prior)
                if any(learned) and len(history) > 1:
                    _learn_priors(model, state, learned)
        self._settle(model)
        assert state is not None
        self.doc_topic_ = state / state.sum(axis=1, keepdims=True)
        self._state = state
        self._finish(history, converged, clock.reason)

    def _started(self, corpus: Corpus, rng: np.random.Generator) -> Array:
        """Return Dirichlet parameters of topics to begin with, words x topics.

        Bounds have many peaks; some sweeps of the sampler find a good one, at a small part of the cost.
        """
        prior, word_prior = self._priors()
        sampler = CollapsedTopics(
            corpus.words, corpus.offsets, self.n_features_in_, prior, word_prior, self._begin_topics(corpus),
            threads=self._threads,
        )  # fmt: skip
        for _ in range(START):
            sampler.sweep(rng)
        return np.asarray(sampler.word_counts + word_prior)

    def _online(self, pieces: Corpus | CorpusStream, n: int, rng: np.random.Generator) -> None:
        if isinstance(pieces, CorpusStream):
            self.vocabulary_, self._tokenizer = list(pieces.vocabulary), pieces.tokenizer
            self.n_features_in_ = len(self.vocabulary_)
            self.word_frequency_ = np.full(self.n_features_in_, 1.0 / max(self.n_features_in_, 1))
        self._start_online(next(self._pieces(pieces, rng)), n, rng)
        history: list[float] = []
        converged = False
        with Clock(self.time_limit, self.progress, total=self._passes, unit="pass", name="LDA") as clock:
            while len(history) < self._passes and not (clock.over() and history):
                total, heard = 0.0, 0
                for piece in self._pieces(pieces, rng):
                    total += self._online_step(piece, n)
                    heard += len(piece.words)
                    if clock.over():
                        break
                history.append(total / max(heard, 1))
                clock.advance(note=f"{history[-1]:.6g}")
                if len(history) > 1 and abs(history[-1] - history[-2]) < self.tol * abs(history[-1]):
                    converged = True
                    break
        self._finish(history, converged, clock.reason)

    def _pieces(self, pieces: Corpus | CorpusStream, rng: np.random.Generator) -> Any:
        if isinstance(pieces, CorpusStream):
            return iter(pieces)
        order = rng.permutation(len(pieces))
        return (pieces[order[i : i + self.batch_size]] for i in range(0, len(order), self.batch_size))

    def _start_online(self, piece: Corpus, n: float, rng: np.random.Generator) -> None:
        """Begin with the topics of a first piece, as if all documents were like it."""
        self._seed = [int(n) for n in rng.integers(1, 2**64, size=4, dtype=np.uint64)]
        prior, word_prior = self._priors()
        start = (self._started(piece, rng) - word_prior) * (n / max(len(piece), 1)) + word_prior
        self._settle(BoundedTopics(start, prior, word_prior))
        self.n_batch_iter_, self._seen = 1, 0
        self.n_iter_, self.converged_, self.stopped_, self.history_ = 1, False, None, []

    def _online_step(self, corpus: Corpus, n: float) -> float:
        """Move the topics towards a piece of documents, and return the piece's part of the bound."""
        model = self._bounded()
        found = model.steps(corpus.counts(), most=self.max_doc_update_iter, tol=self.mean_change_tol)
        bound = model.objective(found, corpus.lengths.astype(np.float64)) - model.topics_bound()
        step = (self.learning_offset + self.n_batch_iter_) ** -self.learning_decay
        aim = model.word_prior + found.stats * (n / max(len(corpus), 1))
        self.components_ = np.asarray(((1 - step) * model.components + step * aim).T)
        self.n_batch_iter_ += 1
        return bound

    def _bounded(self) -> BoundedTopics:
        """Return the topics as they are now, for variational steps."""
        point = self.method == "map"
        return BoundedTopics(
            np.ascontiguousarray(self.components_.T), self.doc_topic_prior_, _as_columns(self.topic_word_prior_),
            point, self._threads,
        )  # fmt: skip

    def _settle(self, model: BoundedTopics) -> None:
        self.components_ = np.ascontiguousarray(model.components.T)
        self.doc_topic_prior_, self.topic_word_prior_ = model.prior, _as_rows(model.word_prior)

    def _finish(self, history: list[float], converged: bool, reason: str | None) -> None:
        self.history_, self.n_iter_, self.converged_, self.stopped_ = history, len(history), converged, reason
        if not converged and reason is None and self.max_iter is None:
            warnings.warn(
                f"LDA did not settle in {len(history)} passes; raise max_iter= or tol=",
                ConvergenceWarning,
                stacklevel=outside(),
            )

    # -- asking ----------------------------------------------------------------------------------------------------------

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        if self.method in SAMPLED:
            table = np.ascontiguousarray(self.topic_word_.T)
            return average_proportions(corpus, table, self.doc_topic_prior_, self._seed, self._threads)
        state = self._steps(corpus).state
        return np.asarray(state / state.sum(axis=1, keepdims=True))

    def _steps(self, corpus: Corpus) -> Any:
        return self._bounded().steps(
            corpus.counts(), most=self.max_doc_update_iter, tol=self.mean_change_tol, keep=False
        )

    def perplexity(
        self,
        X: Any,  # noqa: N803
        *,
        method: Literal["completion", "left-to-right", "bound"] = "completion",
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
            predicted from those before it, with topics summed out by particles (Wallach et al. 2009). "bound": from the
            variational bound, as in scikit-learn.
        particles
            Of "left-to-right".
        seed
            Of the halves, or of the particles.
        """
        check("method", method, Choice(("completion", "left-to-right", "bound")))
        corpus = self._corpus(X)
        if method == "completion":
            total, n = self._completion(corpus, seed)
        else:
            n = len(corpus.words)
            if not n:
                raise InvalidArgument("the documents hold no known words")
            total = (
                self.bound(corpus)
                if method == "bound"
                else float(self.log_prob(corpus, particles=particles, seed=seed).sum())
            )
        return float(np.exp(-total / n))

    def log_prob(self, X: Any, *, particles: int = 20, seed: Seed = 0) -> Array:  # noqa: N803
        """Return the log probability of each document given the topics, by the left-to-right estimate."""
        corpus = self._corpus(X)
        check("particles", particles, Whole(1))
        table = np.ascontiguousarray(self.topic_word_.T)
        return left_to_right(corpus, table, self.doc_topic_prior_, particles, generator(seed), self._threads)

    def bound(self, X: Any) -> float:  # noqa: N803
        """Return the variational lower bound of the log probability of documents, the topics' own part included.

        As in scikit-learn, that part is scaled to `total_samples` documents where these are given.
        """
        corpus, model = self._corpus(X), self._bounded()
        if model.point:
            raise InvalidArgument('method="map" has no bound; ask for "completion" or "left-to-right"')
        found = model.steps(
            corpus.counts(), most=self.max_doc_update_iter, tol=self.mean_change_tol, keep=False
        )
        return model.objective(found, corpus.lengths.astype(np.float64))

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
        corpus = self._corpus(X) if hasattr(self, "vocabulary_") else read_documents(X)
        if not hasattr(self, "vocabulary_"):
            self.n_features_in_ = len(corpus.vocabulary)
            try:
                prior, words = self._priors()
            finally:
                del self.n_features_in_
        else:
            prior, words = self.doc_topic_prior_, _as_columns(self.topic_word_prior_)
        return plate_network(
            prior, np.broadcast_to(words, (len(corpus.vocabulary), len(prior))).T, len(corpus)
        )

    def plot_convergence(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the log probability or bound against the passes."""
        check_is_fitted(self, "components_")
        label = {"vb": "bound", "online": "bound a word", "map": "log posterior"}.get(
            self.method, "log joint probability"
        )
        drawn: Axes = ports.call("plot-convergence", self.history_, label=label, ax=ax, title=title)
        return drawn


def _kept(sampler: Any) -> dict[str, Array]:
    """Return what a draw leaves, in small whole numbers."""

    def small(counts: Any) -> Any:
        return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))

    return {
        "word_counts": small(sampler.word_counts),
        "document_counts": small(sampler.document_counts),
        "topics": small(sampler.topics),
    }


def _row(value: Any, n: int, name: str, of: str, usual: float) -> Array:
    found = np.asarray(usual if value is None else value, dtype=np.float64)
    if found.ndim > 1 or found.shape not in ((), (n,)) or not (np.isfinite(found) & (found > 0)).all():
        raise InvalidArgument(f"{name}= is a number above 0 or one for each of {n} {of}, not {value!r}")
    return np.asarray(np.full(n, found))


def _as_rows(word_prior: Array) -> Array:
    """Return a prior of words as topics x (1 or words)."""
    return np.ascontiguousarray(word_prior.T)


def _as_columns(word_prior: Array) -> Array:
    return np.ascontiguousarray(np.asarray(word_prior).T)


def _learn_priors(model: BoundedTopics, state: Array, learned: tuple[bool, bool]) -> None:
    from scipy.special import psi

    if learned[0]:
        logs = psi(state) - psi(state.sum(axis=1, keepdims=True))
        model.prior = from_logs(logs.mean(axis=0), model.prior, steps=20)
    if learned[1]:
        v, k = model.components.shape
        mean = model.expected_logs().mean()
        one = from_logs(np.full(v, mean), np.full(v, model.word_prior[0, 0]), symmetric=True, steps=20)[0]
        model.word_prior = np.full((1, k), one)
