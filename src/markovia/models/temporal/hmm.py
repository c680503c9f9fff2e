"""Hidden Markov models: a chain of states that is seen only through what each state emits.

    p(z, x) = p(z_0) prod_t p(z_t | z_t-1) prod_t p(x_t | z_t)

Learning is expectation-maximisation (`learning/sequences`), every answer an exact recursion along the sequences
(`inference/sequences`). References: Rabiner (1989); Cappe, Moulines and Ryden (2005).
Cost of an answer: steps times states squared.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from markovia.data.sequences import Sequences, read_sequences
from markovia.errors import ConvergenceWarning, IncompleteModel, InvalidArgument
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.sequences.baum_welch import (
    Algorithm,
    HiddenMarkov,
    Priors,
    Training,
    learn,
    learn_told,
    refuse,
    say_hungry,
    started,
    with_told,
)
from markovia.learning.sequences.discrete_emissions import (
    Bernoulli,
    Categorical,
    Multinomial,
    Poisson,
    chosen,
    read_symbols,
)
from markovia.learning.sequences.emissions import Emission, Observations, checked_prior, probabilities
from markovia.learning.sequences.gaussian_emissions import (
    CovarianceType,
    Gaussian,
    GaussianMixture,
    StudentT,
)
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.unrolled_hmm import two_slices, unrolled
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import NOT_NEGATIVE, Choice, Whole, check
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.seeds import generator

EMISSIONS: dict[str, Any] = {
    "categorical": Categorical,
    "gaussian": Gaussian,
    "gmm": GaussianMixture,
    "student-t": StudentT,
    "poisson": Poisson,
    "bernoulli": Bernoulli,
    "multinomial": Multinomial,
}
UNKNOWN = -1
"""The label of a step whose state is not known."""


class HMM(BaseEstimator):  # type: ignore[misc]
    """A hidden Markov model, with scikit-learn's habits.

    Sequences are a list of arrays; one array, with `lengths` where it holds several; or a frame, with `by` for the column
    that tells its sequences apart. A step that is missing in whole (None or NaN) is summed out.

    Parameters
    ----------
    n_states
        The number of hidden states.
    emission
        What a state emits: "categorical", "gaussian", "gmm", "student-t", "poisson", "bernoulli" or "multinomial".
    covariance_type
        "full", "diag", "tied" or "spherical", for Gaussians, mixtures of them and t.
    n_mixtures
        The parts of each state's mixture, for "gmm".
    symbols
        The symbols of "categorical"; by default whole numbers from 0, or what is found in the data.
    start, transition, emission_params
        Known values, or those that learning begins with. Zeros of start and transition stay zero. `emission_params` has
        {"probs": ...} for "categorical" (states, symbols), "multinomial" and "bernoulli"; {"rates"} for "poisson";
        {"means", "covariances"} for "gaussian", with {"weights"} for "gmm"; {"means", "scales", "df"} for "student-t".
    init
        "keep" begins with the values that are given and makes up the others from the data; "data" makes up the
        emissions even where some are given.
    algorithm
        "baum-welch", or "viterbi" to learn from best paths.
    start_prior, transition_prior
        Concentrations of Dirichlet priors; 1 for none, 1 more than a pseudo-count.
    emission_prior
        The prior of emissions by name: {"concentration"} for "categorical" and "multinomial", {"a", "b"} (beta) for
        "bernoulli", {"shape", "rate"} (gamma) for "poisson", {"mean", "strength", "scale", "df"} (normal-inverse-Wishart)
        for the others.
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
    startprob_, transmat_
        The learned chain.
    emission_
        The learned emissions; `emission_.params` are their values by name.
    means_, covars_, emissionprob_, rates_
        Those values under the names of hmmlearn, where the family has them; covariances in full.
    n_iter_, history_, converged_
        Iterations of the best run, its objective before each of them, and whether it gained less than `tol` at last.

    Examples
    --------
    >>> diary = HMM(2, start=[0.8, 0.2], transition=[[0.6, 0.4], [0.5, 0.5]], symbols=[1, 2, 3],
    ...     emission_params={"probs": [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]]})
    >>> float(np.exp(diary.log_prob([3, 1, 3])[0]).round(6))
    0.028562
    >>> diary.decode([3, 1, 3])[0].tolist()
    [0, 1, 0]
    >>> rng = np.random.default_rng(0)
    >>> series = np.concatenate([rng.normal(0, 1, 80), rng.normal(6, 1, 80)])
    >>> HMM(2, emission="gaussian", random_state=0).fit(series).decode(series)[0][[0, 79, 80, 159]].tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        n_states: int = 1,
        *,
        emission: str = "categorical",
        covariance_type: CovarianceType = "full",
        n_mixtures: int = 2,
        symbols: Sequence[Any] | None = None,
        start: Any = None,
        transition: Any = None,
        emission_params: Mapping[str, Any] | None = None,
        init: Literal["keep", "data"] = "keep",
        algorithm: Algorithm = "baum-welch",
        start_prior: Any = 1.0,
        transition_prior: Any = 1.0,
        emission_prior: Mapping[str, Any] | None = None,
        max_iter: int = 100,
        tol: float = 1e-2,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.covariance_type = covariance_type
        self.n_mixtures = n_mixtures
        self.symbols = symbols
        self.start = start
        self.transition = transition
        self.emission_params = emission_params
        self.init = init
        self.algorithm = algorithm
        self.start_prior = start_prior
        self.transition_prior = transition_prior
        self.emission_prior = emission_prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    # -- learning ----------------------------------------------------------------------------------------------

    def fit(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        labels: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from sequences and return the model itself; on an error it stays as it was.

        Parameters
        ----------
        sequences, lengths, by
            The sequences.
        labels
            The states of the steps, where some are known: a list of arrays of 0 ... n_states-1 or one array in the order
            of the steps, with -1 (or NaN) for unknown ones. Where all are known, learning is counting.
        sample_weight
            How much each sequence counts; all the same by default.

        Raises
        ------
        InvalidArgument
            For settings or data that do not fit; it says in which sequence and step.

        Examples
        --------
        >>> told = HMM(2).fit([[0, 1, 1], [0, 0, 1]], labels=[[0, 1, 1], [0, 0, 1]])
        >>> told.transmat_.round(3).tolist(), told.emissionprob_.tolist()
        ([[0.333, 0.667], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
        """
        self._check()
        data = read_sequences(sequences, lengths, by=by)
        seen, options = self._observations(data)
        if sample_weight is not None:
            seen = replace(seen, shares=data.weights(sample_weight))
        states = None if labels is None else self._labels(labels, data)
        priors = self._priors()
        whole = states is not None and bool((states >= 0).all())
        rng = generator(self.random_state)
        begins = self._begins(seen, options, priors, states, 1 if whole else self.n_init, rng)
        if whole and states is not None:
            runs = [learn_told(begins[0], seen, states, priors)]
        else:
            run = partial(
                learn,
                seen=seen if states is None else seen.told(states),
                priors=priors,
                algorithm=self.algorithm,
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self.progress if len(begins) == 1 else False,
                where=data.at,
            )
            alone = len(begins) == 1
            runs = list(
                task_results(run, begins, n_jobs=self.n_jobs, progress=False if alone else self.progress)
            )
        self._take(max(runs, key=lambda found: found.objective), data)
        return self

    def _priors(self) -> Priors:
        return Priors(
            _concentration(self.start_prior, "start_prior"),
            _concentration(self.transition_prior, "transition_prior"),
            checked_prior(EMISSIONS[self.emission], self.emission_prior),
        )

    def _prepared(
        self, data: Sequences, runs: int, rng: np.random.Generator
    ) -> tuple[Observations, Priors, list[HiddenMarkov]]:
        """Return sequences as observations, the priors, and starting values for some runs."""
        self._check()
        seen, options = self._observations(data)
        priors = self._priors()
        return seen, priors, self._begins(seen, options, priors, None, runs, rng)

    def _take(self, found: Training, data: Sequences) -> None:
        self.startprob_, self.transmat_, self.emission_ = found.model
        self.history_, self.converged_ = found.history, found.converged
        self.n_iter_ = len(found.history)
        self.n_features_in_ = data.values.shape[1]
        say_hungry(found.hungry)
        if not found.converged and self.tol > 0.0 and self.max_iter > 1:
            warnings.warn(
                f"learning still gained after {self.max_iter} iterations; raise max_iter= or tol=",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check(self) -> None:
        check("n_states", self.n_states, Whole(1, 32_000))
        check("emission", self.emission, Choice(tuple(EMISSIONS)))
        check("covariance_type", self.covariance_type, Choice(("full", "diag", "tied", "spherical")))
        check("n_mixtures", self.n_mixtures, Whole(1))
        check("init", self.init, Choice(("keep", "data")))
        check("algorithm", self.algorithm, Choice(("baum-welch", "viterbi")))
        check("max_iter", self.max_iter, Whole(1))
        check("tol", self.tol, NOT_NEGATIVE)
        check("n_init", self.n_init, Whole(1))
        self._given_chain()

    def _given_chain(self) -> tuple[Array | None, Array | None]:
        k = self.n_states
        start = None if self.start is None else probabilities(self.start, "start=", (k,))
        transition = (
            None if self.transition is None else probabilities(self.transition, "transition=", (k, k))
        )
        return start, transition

    def _given_emission(self) -> Emission | None:
        if self.emission_params is None:
            return None
        family = EMISSIONS[self.emission]
        given = dict(self.emission_params)
        if set(given) != set(family.names):
            raise InvalidArgument(
                f"emission_params= of {self.emission!r} has {', '.join(family.names)}, not {', '.join(given) or 'nothing'}"
            )
        made: Emission = family.of(self.n_states, given, **self._options(self.symbols))
        return made

    def _options(self, symbols: Sequence[Any] | None, *, making: bool = False) -> dict[str, Any]:
        """Return what a family needs to be made, besides parameters."""
        if self.emission == "categorical":
            return {"symbols": symbols}
        if self.emission in ("gaussian", "gmm", "student-t"):
            more = {"parts": self.n_mixtures} if making and self.emission == "gmm" else {}
            return {"kind": self.covariance_type, **more}
        return {}

    def _observations(self, data: Sequences) -> tuple[Observations, dict[str, Any]]:
        symbols: Sequence[Any] | None = None
        if self.emission == "categorical":
            given = self._given_emission()
            symbols = given.symbols if isinstance(given, Categorical) else self.symbols
            symbols = Categorical.symbols_in(data) if symbols is None else tuple(symbols)
            seen = read_symbols(data, symbols)
        else:
            seen = EMISSIONS[self.emission].read(data)
        if (seen.codes == len(seen.rows)).all():
            raise InvalidArgument("all steps of the sequences are missing")
        return seen, self._options(symbols, making=True)

    def _begins(
        self,
        seen: Observations,
        options: dict[str, Any],
        priors: Priors,
        states: Ints | None,
        runs: int,
        rng: np.random.Generator,
    ) -> list[HiddenMarkov]:
        """Return starting values for each run."""
        start, transition = self._given_chain()
        given = self._given_emission()
        if given is not None:
            width = next(iter(given.params.values())).shape[-1]
            if self.emission in ("poisson", "bernoulli", "multinomial") and width != seen.rows.shape[1]:
                raise InvalidArgument(
                    f"the sequences have {seen.rows.shape[1]} columns, emission_params= {width}"
                )
        family = EMISSIONS[self.emission]
        found = []
        for i in range(runs):
            kept = given is not None and self.init == "keep" and i == 0

            def make(rng: np.random.Generator, kept: bool = kept) -> Emission:
                made: Emission = (
                    given
                    if kept and given is not None
                    else family.started(seen, self.n_states, rng, **options)
                )
                return made

            one = started(self.n_states, seen, rng, make, start, transition)
            found.append(one if states is None or kept else with_told(one, seen, states, priors))
        return found

    def _labels(self, labels: Any, data: Sequences) -> Ints:
        """Return the state of each step, -1 where it is not known."""
        told = read_sequences(labels, None if _is_list(labels) else data.lengths)
        if told.values.shape[1] != 1 or len(told) != len(data) or (told.lengths != data.lengths).any():
            wrong = [
                name for name, a, b in zip(data.names, told.lengths, data.lengths, strict=False) if a != b
            ]
            said = f"; those of sequence {wrong[0]!r} do not" if wrong else ""
            raise InvalidArgument(f"labels= have one state for each step of each sequence{said}")
        found = told.numbers()[:, 0]
        found = np.where(np.isnan(found), UNKNOWN, found)
        wrong_at = (found != np.floor(found)) | (found < UNKNOWN) | (found >= self.n_states)
        if wrong_at.any():
            row = int(np.argmax(wrong_at))
            raise InvalidArgument(
                f"{data.at(row)} has the label {found[row]:g}; states are 0 to {self.n_states - 1}, or -1 where unknown"
            )
        return found.astype(np.int64)

    # -- questions ---------------------------------------------------------------------------------------------

    def log_prob(
        self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None
    ) -> Array:
        """Return log p(x) of each sequence; minus infinity for an impossible one."""
        _, chain, seen = self._ask(sequences, lengths, by)
        return chain.filter(seen).log_probs

    def score(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> float:
        """Return log p(x) of all sequences together."""
        return float(self.log_prob(sequences, lengths, by=by).sum())

    def filter(
        self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None
    ) -> list[Array]:
        """Return p(z_t | x_0 ... x_t) of each step, one array (steps, states) a sequence."""
        data, chain, seen = self._ask(sequences, lengths, by)
        found = chain.filter(seen)
        refuse(found.stuck, data.at)
        return data.split(found.now)

    def forecast(
        self, sequences: Any, steps: int, lengths: Iterable[int] | None = None, *, by: str | None = None
    ) -> list[Array]:
        """Return the distribution of the states of the next steps, one array (steps, states) a sequence."""
        check("steps", steps, Whole(1))
        last = np.array([one[-1] for one in self.filter(sequences, lengths, by=by)])
        found = []
        for _ in range(steps):
            last = last @ self._model().transition
            found.append(last)
        return list(np.stack(found, axis=1))

    def smooth(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        pairs: bool = False,
    ) -> list[Array]:
        """Return p(z_t | x) of each step, one array (steps, states) a sequence.

        With `pairs` it is p(z_t, z_t+1 | x), one array (steps - 1, states, states) a sequence.
        """
        data, chain, seen = self._ask(sequences, lengths, by)
        if pairs:
            refuse(chain.filter(seen).stuck, data.at)
            return [one[1:] for one in data.split(chain.pairs(seen))]
        found = chain.smooth(seen)
        refuse(found.stuck, data.at)
        return data.split(found.sums)

    def decode(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        method: Literal["viterbi", "max-marginal"] = "viterbi",
    ) -> list[Ints]:
        """Return the states of each sequence: the most probable path, or at each step the most probable state."""
        check("method", method, Choice(("viterbi", "max-marginal")))
        if method == "max-marginal":
            return [one.argmax(axis=1) for one in self.smooth(sequences, lengths, by=by)]
        data, chain, seen = self._ask(sequences, lengths, by)
        paths, log_probs = chain.best(seen)
        if (log_probs == -np.inf).any():
            refuse(chain.filter(seen).stuck, data.at)
        return data.split(paths)

    def k_best(
        self, sequences: Any, k: int, lengths: Iterable[int] | None = None, *, by: str | None = None
    ) -> list[tuple[Ints, Array]]:
        """Return the k most probable paths (paths, steps) of each sequence and their log p(z, x), best first.

        There are fewer where fewer are possible.
        """
        check("k", k, Whole(1))
        data, chain, seen = self._ask(sequences, lengths, by)
        paths, log_probs = chain.ranked(seen, k)
        if (log_probs[:, 0] == -np.inf).any():
            refuse(chain.filter(seen).stuck, data.at)
        there = log_probs > -np.inf
        return [
            (one.T[here], scores[here])
            for one, scores, here in zip(data.split(paths.T), log_probs, there, strict=True)
        ]

    def sample_paths(
        self,
        sequences: Any,
        n: int = 1,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        seed: Any = None,
    ) -> list[Ints]:
        """Return n paths (n, steps) of each sequence, drawn given what was observed."""
        check("n", n, Whole(1))
        data, chain, seen = self._ask(sequences, lengths, by)
        refuse(chain.filter(seen).stuck, data.at)
        return [one.T for one in data.split(chain.draw(seen, n, seed).T)]

    def sample(self, steps: int = 1, n: int | None = None, *, seed: Any = None) -> tuple[Any, Any]:
        """Draw a sequence: its observations and its states; lists of n of both where `n` is given.

        Examples
        --------
        >>> coin = HMM(2, start=[1, 0], transition=[[0, 1], [1, 0]], emission_params={"probs": [[1, 0], [0, 1]]})
        >>> x, z = coin.sample(4, seed=0)
        >>> x[:, 0].tolist(), z.tolist()
        ([0, 1, 0, 1], [0, 1, 0, 1])
        """
        check("steps", steps, Whole(1))
        check("n", n, Whole(1, none=True))
        model, rng = self._model(), generator(seed)
        count = 1 if n is None else n
        states = np.empty((count, steps), dtype=np.int64)
        states[:, 0] = chosen(np.repeat(model.start[None], count, axis=0), rng)
        for t in range(1, steps):
            states[:, t] = chosen(model.transition[states[:, t - 1]], rng)
        drawn = model.emission.draw(states.ravel(), rng)
        drawn = drawn.reshape(count, steps, -1)
        return (drawn[0], states[0]) if n is None else (list(drawn), list(states))

    def bic(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> float:
        """Return the Bayesian information criterion on sequences; smaller is better."""
        data = read_sequences(sequences, lengths, by=by)
        return self._model().n_free * float(np.log(data.offsets[-1])) - 2.0 * self.score(
            sequences, lengths, by=by
        )

    def aic(self, sequences: Any, lengths: Iterable[int] | None = None, *, by: str | None = None) -> float:
        """Return Akaike's information criterion on sequences; smaller is better."""
        return 2.0 * self._model().n_free - 2.0 * self.score(sequences, lengths, by=by)

    def unroll(self, T: int) -> BayesianNetwork:  # noqa: N803
        """Return the Bayesian network of T steps: states `z0`, `z1`, ... and observations `x0`, `x1`, ...

        An observation of several columns has a node each: `x0_0`, `x0_1`, ... It is for categorical, Bernoulli and
        Gaussian emissions.

        Examples
        --------
        >>> coin = HMM(2, start=[1, 0], transition=[[0.9, 0.1], [0.5, 0.5]], emission_params={"probs": [[1, 0], [0, 1]]})
        >>> coin.unroll(3).variables
        ['z0', 'x0', 'z1', 'x1', 'z2', 'x2']
        """
        model = self._model()
        return unrolled(model.start, model.transition, model.emission, T)

    def network(self) -> DynamicBayesianNetwork:
        """Return the dynamic network with states `z` and observations `x`, for categorical and Bernoulli emissions.

        Examples
        --------
        >>> coin = HMM(2, start=[1, 0], transition=[[0.9, 0.1], [0.5, 0.5]], emission_params={"probs": [[1, 0], [0, 1]]})
        >>> round(coin.network().query("z@2")[1], 6)
        0.14
        """
        model = self._model()
        return two_slices(model.start, model.transition, model.emission)

    # -- inside ------------------------------------------------------------------------------------------------

    def _model(self) -> HiddenMarkov:
        if hasattr(self, "emission_"):
            return HiddenMarkov(self.startprob_, self.transmat_, self.emission_)
        self._check()
        (start, transition), emission = self._given_chain(), self._given_emission()
        if start is None or transition is None or emission is None:
            raise IncompleteModel(
                "this HMM has no values yet; call fit(sequences), or give start=, transition= and emission_params="
            )
        return HiddenMarkov(start, transition, emission)

    def _ask(
        self, sequences: Any, lengths: Iterable[int] | None, by: str | None
    ) -> tuple[Sequences, HiddenChain, Observed]:
        model = self._model()
        data = read_sequences(sequences, lengths, by=by)
        emission: Any = model.emission
        seen = emission.read(data)
        width = data.values.shape[1]
        wanted = 1 if isinstance(emission, Categorical) else next(iter(emission.params.values())).shape[-1]
        if isinstance(emission, GaussianMixture):
            wanted = emission.means.shape[-1]
        if width != wanted:
            raise InvalidArgument(f"the sequences have {width} columns, the model's emissions {wanted}")
        return data, model.chain, seen.seen_by(emission)

    def _learned(self, name: str) -> Array:
        if not hasattr(self, "emission_") or name not in self.emission_.params:
            raise AttributeError(f"this HMM has no {name!r}: it is not fitted, or its emissions have none")
        found: Array = self.emission_.params[name]
        return found

    @property
    def means_(self) -> Array:
        """The learned means."""
        return self._learned("means")

    @property
    def covars_(self) -> Array:
        """The learned covariances, in full for every kind."""
        return self._learned("covariances")

    @property
    def emissionprob_(self) -> Array:
        """The learned probabilities of symbols."""
        return self._learned("probs")

    @property
    def rates_(self) -> Array:
        """The learned rates."""
        return self._learned("rates")


def _is_list(labels: Any) -> bool:
    return isinstance(labels, list | tuple) and len(labels) > 0 and np.ndim(labels[0]) > 0


def _concentration(value: Any, name: str) -> Array:
    found = np.asarray(value, dtype=np.float64)
    if not (found > 0.0).all():
        raise InvalidArgument(f"{name}= is a concentration, above 0, not {value!r}")
    return found
