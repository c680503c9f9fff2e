"""Mixtures of hidden Markov models or of Markov chains: sequences of several kinds."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import IncompleteModel, InvalidArgument
from markovia.learning.components.discrete import chosen
from markovia.learning.components.families import Components, Observations
from markovia.learning.latent.group_em import Groups, LearningRule, Sample, learn_groups
from markovia.learning.latent.group_starts import groups_of
from markovia.learning.sequences.baum_welch import HiddenMarkov, LearnedChain, Priors, maximise
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.markov_chain import MarkovChain
from markovia.models.temporal.sequence_model import CountedSequenceModel, GivenSequences
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Kind, TimeLimit, Tolerance, check_options
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import Estimator
from markovia.runtime.seeds import generator


@dataclass(eq=False, repr=False)
class SequenceMixture(CountedSequenceModel, Estimator):
    """A mixture of sequence models: each sequence comes from one of several, and which is not seen.

    Parameters
    ----------
    template
        What a component is: an `HMM` or a `MarkovChain`, whose settings all of them have. It stays as it is.
    n_components
        How many there are.
    max_iter, tol
        Iterations at most; the gain of the objective a step below which learning stops.
    n_init, n_jobs
        Runs from different starting values, of which the best is kept, and in how many processes.
    random_state
        The seed of starting values.
    progress
        Whether to show a progress bar; None for long runs on a terminal.
    time_limit
        Seconds after which learning ends with what it has; Ctrl-C does so too.

    Attributes
    ----------
    weights_
        The probability of each component.
    components_
        The learned models.
    n_iter_, history_, converged_
        Iterations of the best run, its objective before each of them, and whether it gained less than `tol` at last.

    Examples
    --------
    >>> slow, fast = MarkovChain([[0.9, 0.1], [0.1, 0.9]]), MarkovChain([[0.1, 0.9], [0.9, 0.1]])
    >>> data = slow.sample(40, 20, seed=0) + fast.sample(40, 10, seed=1)
    >>> mixture = SequenceMixture(MarkovChain(), 2, n_init=3, random_state=0).fit(data)
    >>> sorted(mixture.weights_.round(2).tolist())
    [0.33, 0.67]
    >>> kinds = mixture.predict(data)
    >>> len(set(kinds[:20].tolist())), len(set(kinds[20:].tolist()))
    (1, 1)
    """

    template: Annotated[HMM | MarkovChain, Kind((HMM, MarkovChain), "an HMM or a MarkovChain")]
    n_components: Count = 2
    _: KW_ONLY
    max_iter: Count = 100
    tol: Tolerance = 1e-6
    n_init: Count = 1
    n_jobs: int | None = None
    random_state: Any = None
    progress: bool | None = None
    time_limit: TimeLimit = None
    _takes_inputs: ClassVar[bool] = False
    _lists_draws: ClassVar[bool] = True

    def fit(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn from sequences by EM and return the mixture itself; on an error it stays as it was."""
        check_options(self)
        data = self._read(sequences, lengths, by).rows
        weights = data.weights(sample_weight)
        sample = Sample(data, weights)
        with Clock(self.time_limit, False):
            models, best = learn_sequences(
                self.template, sample, self.n_components, LearningRule({}), generator(self.random_state),
                n_init=self.n_init, n_jobs=self.n_jobs, max_iter=self.max_iter,
                tol=self.tol * float(weights @ data.lengths) / sample.total, progress=self.progress,
            )  # fmt: skip
        self.components_, self.weights_ = models, best.state.weights
        self.history_ = [found * sample.total for found in best.history]
        self.converged_, self.n_iter_ = best.converged, len(best.history)
        self.n_features_in_ = data.values.shape[1]
        best.warn(self.tol)
        return self

    # -- questions ---------------------------------------------------------------------------------------------

    def _parts(self) -> list[Any]:
        """Return the components, where there are some."""
        if not hasattr(self, "components_"):
            raise IncompleteModel("this mixture has no values yet; call fit(sequences)")
        return self.components_

    def _joint(self, given: GivenSequences) -> Array:
        """Return log p(x, component), (sequences, components)."""
        each = np.column_stack([one._log_prob(given) for one in self._parts()])
        with np.errstate(divide="ignore"):
            return np.asarray(each + np.log(self.weights_))

    def _log_prob(self, given: GivenSequences) -> Array:
        return np.asarray(np.logaddexp.reduce(self._joint(given), axis=1))

    def predict_proba(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Array:
        """Return the probability of each component given each sequence, (sequences, components)."""
        given = self._read(sequences, lengths, by)
        joint = self._joint(given)
        total = np.logaddexp.reduce(joint, axis=1, keepdims=True)
        if (total == -np.inf).any():
            which = given.rows.names[int(np.argmax(total == -np.inf))]
            raise InvalidArgument(f"sequence {which!r} is impossible under all components")
        return np.asarray(np.exp(joint - total))

    def predict(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Ints:
        """Return the most probable component of each sequence."""
        return np.asarray(self.predict_proba(sequences, lengths, by=by).argmax(axis=1))

    def _draw(self, steps: int, n: int, inputs: Any, seed: Any) -> tuple[Any, ...]:
        # what is hidden behind a sequence is its component
        parts, rng = self._parts(), generator(seed)
        which = chosen(np.repeat(self.weights_[None], n, axis=0), rng)
        return [parts[c]._draw(steps, 1, None, rng)[0][0] for c in which.tolist()], which

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return len(self._parts()) - 1 + sum(int(one.n_free) for one in self._parts())

    def _counted(self, rows: Sequences) -> int:
        return len(rows)


@dataclass(frozen=True)
class _GroupChain:
    """A Markov chain that learns from weighted sequences, which it counts to the end."""

    chain: MarkovChain
    codes: Ints
    offsets: Ints
    symbols: tuple[Any, ...]

    def log_probs(self) -> Array:
        return self.chain._log_probs(self.codes, self.offsets)

    def log_prior(self) -> float:
        alpha, n, k = self.chain.smoothing, len(self.symbols), self.chain.order
        if alpha == 0.0:
            return 0.0
        found, joint = float(np.log(self.chain.table).sum()), self.chain.start.reshape((n,) * k)
        while joint.ndim:
            shorter = joint.sum(axis=-1)
            found += float(np.log(joint / shorter[..., None]).sum())
            joint = shorter
        return alpha * found

    def improved(self, weights: Array) -> "_GroupChain":
        chain = clone(self.chain)
        chain._learn(self.codes, self.offsets, weights, list(self.symbols))
        return replace(self, chain=chain)


@dataclass(frozen=True)
class _Hidden:
    """A hidden Markov model that learns from weighted sequences, a step of Baum-Welch at a time."""

    model: HiddenMarkov
    seen: Observations
    priors: Priors

    def log_probs(self) -> Array:
        return self.model.chain.log_probs(self.seen.seen_by(self.model.emission))

    def log_prior(self) -> float:
        return self.priors.log_density(self.model)

    def improved(self, weights: Array) -> "_Hidden":
        expected = self.model.chain.expect(self.seen.seen_by(self.model.emission), weights)
        made = maximise(self.model, self.seen, expected, self.seen.weights(expected.sums), self.priors)
        return replace(self, model=made)


@dataclass(frozen=True)
class _SequenceModels(Components):
    """Models of the same sequences, one a component; the sequences are in them, coded."""

    models: tuple[Any, ...]
    names: ClassVar = ("models",)

    @property
    def n_free(self) -> int:
        raise NotImplementedError  # what is handed over counts its own

    def log_densities(self, rows: Any) -> Array:
        return np.column_stack([one.log_probs() for one in self.models])

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> "_SequenceModels":
        made = [m.improved(w) if w.any() else m for m, w in zip(self.models, weights.T, strict=True)]
        return _SequenceModels(tuple(made))

    def log_prior(self, prior: Mapping[str, Any]) -> float:
        return float(sum(one.log_prior() for one in self.models))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        raise NotImplementedError


def learn_sequences(
    template: HMM | MarkovChain,
    sample: Sample,
    k: int,
    rule: LearningRule,
    rng: np.random.Generator,
    *,
    weights: Array | None = None,
    n_init: int,
    n_jobs: int | None,
    max_iter: int,
    tol: float,
    progress: bool | None,
) -> tuple[list[Any], Climb[Groups]]:
    """Return models like a template, one for each kind of sequences, and how they were learned.

    Reference: Smyth (1997), "Clustering sequences with hidden Markov models". Cost of a step: that of learning each.
    """
    data = sample.rows
    there = len(data) if sample.shares is None else int((sample.shares > 0.0).sum())
    if k > there:
        raise InvalidArgument(
            f"{k} components need as many sequences, and there are {there}; cut long ones into pieces"
        )
    starts = []
    for _ in range(n_init):
        begun = groups_of(_begun(template, data, k, rng), sample, _spread(len(data), k, rng), rule)
        starts.append(begun if weights is None else replace(begun, weights=weights))
    run = partial(learn_groups, sample=sample, rule=rule, max_iter=max_iter, tol=tol)
    best = best_climb(run, starts, n_jobs=n_jobs, progress=progress)
    return [_model(template, one, data) for one in best.state.components.models], best


def _begun(template: HMM | MarkovChain, data: Sequences, k: int, rng: np.random.Generator) -> _SequenceModels:
    """Return components that have not seen which sequences are theirs."""
    if isinstance(template, MarkovChain):
        symbols, codes = template._coded(data)
        return _SequenceModels((_GroupChain(clone(template), codes, data.offsets, tuple(symbols)),) * k)
    seen, priors, begins = template._prepared(data, k, rng)
    return _SequenceModels(tuple(_Hidden(model, seen, priors) for model in begins))


def _model(template: HMM | MarkovChain, part: Any, data: Sequences) -> Any:
    if isinstance(part, _GroupChain):
        return part.chain
    model = clone(template)
    learned = LearnedChain(part.model, np.zeros(0, dtype=bool))
    model._take(Climb(learned, [float(part.log_probs().sum())], "converged"), data)
    return model


def _spread(n: int, k: int, rng: np.random.Generator) -> Array:
    """Return first probabilities of components, mostly one for each sequence, and none without a sequence."""
    found = rng.dirichlet(np.full(k, 0.5), n)
    found[rng.permutation(n)[:k]] = np.eye(k)
    return np.asarray(found)
