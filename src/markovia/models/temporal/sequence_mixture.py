"""Mixtures of hidden Markov models or of Markov chains: sequences of several kinds."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from markovia.data.sequences import Sequences, read_sequences
from markovia.errors import ConvergenceWarning, IncompleteModel, InvalidArgument
from markovia.learning.components.discrete import chosen
from markovia.learning.latent.mixture_em import Component, HiddenComponent, MixtureTraining, learn_mixture
from markovia.learning.sequences.baum_welch import Training
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.markov_chain import MarkovChain
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import NOT_NEGATIVE, Whole, check
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.seeds import generator


class SequenceMixture(BaseEstimator):  # type: ignore[misc]
    """A mixture of sequence models: each sequence comes from one of several, and which is not seen.

    Parameters
    ----------
    template
        What a component is: an `HMM` or a `MarkovChain`, whose settings all of them have. It stays as it is.
    n_components
        How many there are.
    max_iter, tol
        Iterations at most; the gain of the objective below which learning stops.
    n_init, n_jobs
        Runs from different starting values, of which the best is kept, and in how many processes.
    random_state
        The seed of starting values.
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Attributes
    ----------
    weights_
        The probability of each component.
    components_
        The learned models.
    n_iter_, history_, converged_
        Iterations of the best run, its objective after each of them, and whether it gained less than `tol` at last.

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

    def __init__(
        self,
        template: HMM | MarkovChain,
        n_components: int = 2,
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.template = template
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from sequences by EM and return the mixture itself; on an error it stays as it was."""
        if not isinstance(self.template, HMM | MarkovChain):
            raise InvalidArgument(f"template= is an HMM or a MarkovChain, not {type(self.template).__name__}")
        check("n_components", self.n_components, Whole(1))
        check("max_iter", self.max_iter, Whole(1))
        check("tol", self.tol, NOT_NEGATIVE)
        check("n_init", self.n_init, Whole(1))
        data = read_sequences(sequences, lengths, by=by)
        shares = data.weights(sample_weight)
        if self.n_components > (shares > 0.0).sum():
            raise InvalidArgument(
                f"{self.n_components} components need as many sequences, and there are {int((shares > 0.0).sum())}; cut "
                "long ones into pieces"
            )
        rng = generator(self.random_state)
        starts = [
            (self._begun(data, rng), _spread(len(data), self.n_components, rng)) for _ in range(self.n_init)
        ]
        alone = len(starts) == 1
        run = partial(
            _run,
            shares=shares,
            max_iter=self.max_iter,
            tol=self.tol,
            progress=self.progress if alone else False,
        )
        runs = list(task_results(run, starts, n_jobs=self.n_jobs, progress=False if alone else self.progress))
        best: MixtureTraining = max(runs, key=lambda found: found.history[-1])
        self.components_ = [self._model(part, data) for part in best.components]
        self.weights_ = best.weights
        self.history_, self.converged_, self.n_iter_ = best.history, best.converged, len(best.history) - 1
        self.n_features_in_ = data.values.shape[1]
        if not best.converged and self.tol > 0.0 and self.max_iter > 1:
            warnings.warn(
                f"learning still gained after {self.max_iter} iterations; raise max_iter= or tol=",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _begun(self, data: Sequences, rng: np.random.Generator) -> list[Component]:
        """Return components that have not seen which sequences are theirs."""
        if isinstance(self.template, MarkovChain):
            symbols, codes = self.template._coded(data)
            blank = _ChainComponent(clone(self.template), codes, data.offsets, tuple(symbols))
            return [blank] * self.n_components
        seen, priors, begins = self.template._prepared(data, self.n_components, rng)
        return [HiddenComponent(model, seen, priors) for model in begins]

    def _model(self, part: Any, data: Sequences) -> Any:
        if isinstance(part, _ChainComponent):
            return part.chain
        model = clone(self.template)
        model._take(Training(part.model, [float(part.log_probs().sum())], True, []), data)
        return model

    # -- questions ---------------------------------------------------------------------------------------------

    def _joint(self, sequences: Any, lengths: Iterable[int] | None, by: str | None) -> Array:
        if not hasattr(self, "components_"):
            raise IncompleteModel("this mixture has no values yet; call fit(sequences)")
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights_)
        each = [one.log_prob(sequences, lengths, by=by) for one in self.components_]
        return np.asarray(np.column_stack(each) + logs)

    def log_prob(
        self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None
    ) -> Array:
        """Return log p(x) of each sequence."""
        return np.asarray(np.logaddexp.reduce(self._joint(sequences, lengths, by), axis=1))

    def score(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> float:
        """Return log p(x) of all sequences together."""
        return float(self.log_prob(sequences, lengths, by=by).sum())

    def predict_proba(
        self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None
    ) -> Array:
        """Return the probability of each component given each sequence, (sequences, components)."""
        joint = self._joint(sequences, lengths, by)
        total = np.logaddexp.reduce(joint, axis=1, keepdims=True)
        if (total == -np.inf).any():
            names = read_sequences(sequences, lengths, by=by).names
            raise InvalidArgument(
                f"sequence {names[int(np.argmax(total == -np.inf))]!r} is impossible under all components"
            )
        return np.asarray(np.exp(joint - total))

    def predict(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> Ints:
        """Return the most probable component of each sequence."""
        return np.asarray(self.predict_proba(sequences, lengths, by=by).argmax(axis=1))

    def sample(self, steps: int = 1, n: int = 1, *, seed: Any = None) -> tuple[list[Any], Ints]:
        """Draw n sequences and the component of each."""
        check("steps", steps, Whole(1))
        check("n", n, Whole(1))
        if not hasattr(self, "components_"):
            raise IncompleteModel("this mixture has no values yet; call fit(sequences)")
        rng = generator(seed)
        which = chosen(np.repeat(self.weights_[None], n, axis=0), rng)
        drawn = [self.components_[c].sample(steps, seed=rng) for c in which.tolist()]
        return [one[0] if isinstance(one, tuple) else one for one in drawn], which

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        each = [m.n_free if isinstance(m, MarkovChain) else m._model().n_free for m in self.components_]
        return len(each) - 1 + sum(each)

    def bic(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> float:
        """Return the Bayesian information criterion, which counts sequences; smaller is better."""
        found = self.log_prob(sequences, lengths, by=by)
        return self.n_free * float(np.log(len(found))) - 2.0 * float(found.sum())

    def aic(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> float:
        """Return Akaike's information criterion on sequences; smaller is better."""
        return 2.0 * self.n_free - 2.0 * self.score(sequences, lengths, by=by)


@dataclass(frozen=True)
class _ChainComponent:
    """A Markov chain in a mixture."""

    chain: MarkovChain
    codes: Ints
    offsets: Ints
    symbols: tuple[Any, ...]

    def log_probs(self) -> Array:
        """Return log p of each sequence."""
        return self.chain._log_probs(self.codes, self.offsets)

    def log_prior(self) -> float:
        """Return the log density of the pseudo-counts, up to a constant."""
        alpha, n, k = self.chain.smoothing, len(self.symbols), self.chain.order
        if alpha == 0.0:
            return 0.0
        found, joint = float(np.log(self.chain.table).sum()), self.chain.start.reshape((n,) * k)
        while joint.ndim:
            shorter = joint.sum(axis=-1)
            found += float(np.log(joint / shorter[..., None]).sum())
            joint = shorter
        return alpha * found

    def improved(self, weights: Array) -> "_ChainComponent":
        """Return the component counted from weighted sequences."""
        chain = clone(self.chain)
        chain._learn(self.codes, self.offsets, weights, list(self.symbols))
        return _ChainComponent(chain, self.codes, self.offsets, self.symbols)


def _spread(n: int, k: int, rng: np.random.Generator) -> Array:
    """Return first probabilities of components, mostly one for each sequence, and none without a sequence."""
    found = rng.dirichlet(np.full(k, 0.5), n)
    found[rng.permutation(n)[:k]] = np.eye(k)
    return np.asarray(found)


def _run(begin: tuple[list[Component], Array], **settings: Any) -> MixtureTraining:
    parts, first = begin
    shares = settings.pop("shares")
    return learn_mixture(parts, shares, first, **settings)
