"""Hidden Markov models: a chain of states that is seen only through what each state emits.

    p(z, x) = p(z_0) prod_t p(z_t | z_t-1) prod_t p(x_t | z_t)

Learning is expectation-maximisation (`learning/sequences`), every answer an exact recursion along the sequences
(`inference/sequences`). References: Rabiner (1989); Cappe, Moulines and Ryden (2005).
Cost of an answer: steps times states squared.
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences, read_sequences
from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel
from markovia.inference.sequences.forecast import Forecast
from markovia.learning.components.families import Observations
from markovia.learning.components.regressions import LaggedCategorical, RegressionGaussian
from markovia.learning.components.tied import expanded, untied
from markovia.learning.sequences.baum_welch import (
    HiddenMarkov,
    LearnedChain,
    Priors,
    learn,
    learn_told,
    refuse,
    say_hungry,
)
from markovia.learning.sequences.chain_laws import Driven
from markovia.learning.sequences.online_em import learn_by_batches, require_sums
from markovia.learning.sequences.transition_masks import free_entries
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.hidden_states.coming_observations import (
    DRAWS,
    drawn_emissions,
    drawn_laws,
    mixed_emissions,
)
from markovia.models.temporal.hidden_states.driving_inputs import asked_inputs, coming_inputs, drawn_after
from markovia.models.temporal.hidden_states.hmm_settings import HMMSettings
from markovia.models.temporal.hidden_states.known_values import KnownValues
from markovia.models.temporal.sequence_model import GivenSequences
from markovia.models.temporal.state_learning import StateLearning
from markovia.models.temporal.state_questions import ChainData, StateQuestions
from markovia.models.temporal.state_stream import HiddenStateStream
from markovia.models.temporal.unrolled_hmm import two_slices, unrolled, unrolled_law
from markovia.optimise.ascent import Climb, best_climb
from markovia.optimise.checkpoint import Checkpoint, digest_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Whole, check, check_level
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import Estimator
from markovia.runtime.keyword_advice import guided, guided_settings
from markovia.runtime.seeds import generator

UNKNOWN = -1
"""The label of a step whose state is not known."""


@guided_settings
@dataclass(eq=False, repr=False)
class HMM(HMMSettings, KnownValues, StateLearning, StateQuestions, Estimator):
    """A hidden Markov model, with scikit-learn's habits.

    Sequences are a list of arrays; one array, with `lengths` where it holds several; or a frame, with `by` for the column
    that tells its sequences apart. A step that is missing in whole (None or NaN) is summed out.

    Parameters
    ----------
    n_states
        The number of hidden states.
    emission
        What a state emits: "categorical", "gaussian", "gmm", "student-t", "poisson", "bernoulli" or "multinomial"; a class
        of `markovia.distributions`, or a function that returns a distribution, whose parameters are then learned for each
        state; or a `BayesianNetwork`, whose variables are the columns.
    covariance_type
        "full", "diag", "tied" or "spherical", for Gaussians, mixtures of them and t.
    n_mixtures
        The parts of each state's mixture, for "gmm".
    structure, band
        Which moves between states may be: "ergodic" (all), "left-right" (to later states, beginning in the first one),
        "banded" (to neighbours on both sides) or "cyclic" (to later ones, the first after the last), by at most `band`
        places.
    transition_mask
        The moves that may be (truth values), or an array with the probabilities of moves that are fixed, NaN for free ones.
    tied
        Groups of states that share an emission, as [[0, 1], [2]]. Components parameters are then those of groups; states
        that are in no group come after them.
    order
        How many states the next one depends on. `transition` and `transmat_` then have that many axes and one more, `start`
        and `startprob_` are the joint distribution of the first `order` states.
    lags
        How many earlier observations an emission depends on, for "gaussian" (a linear regression in each state; the first
        `lags` steps are taken as given) and "categorical" (a table of the last symbols in each state).
    inputs_to, input_penalty
        What the `inputs` of `fit` drive: "both", "transitions" (a multinomial logit in each state, with this penalty on half
        the squares of its weights) or "emissions" (a linear regression in each state, for "gaussian").
    symbols
        The symbols of "categorical"; by default whole numbers from 0, or what is found in the data.
    start, transition, emission_params
        Known values, or those that learning begins with. Zeros of start and transition stay zero. `emission_params` has
        {"probs": ...} for "categorical" (states, symbols), "multinomial" and "bernoulli"; {"rates"} for "poisson";
        {"means", "covariances"} for "gaussian", with {"weights"} for "gmm"; {"means", "scales", "df"} for "student-t"; the
        arguments of a distribution or function, one entry a state; {"networks"} for a network, one a state. Regressions have
        {"lags"} (states, lags, columns, columns) and {"inputs"} (states, columns, inputs) too; lagged symbols have {"probs"}
        (states, symbols, ..., symbols), earlier symbols first, and {"first"} (states, symbols). A `transition` with three
        axes (states, states, 1 + inputs) has the weights of multinomial logits, intercepts first.
    init
        "keep" begins with the values that are given and makes up the others from the data; "data" makes up the
        emissions even where some are given.
    algorithm
        "baum-welch"; "viterbi" to learn from best paths; or "stochastic" for passes over the sequences in pieces of
        `batch_size`, where piece t counts t^-`learning_decay`.
    start_prior, transition_prior
        Concentrations of Dirichlet priors, one more than the pseudo-counts they add: 1 adds none, `transition_prior=2` one
        move of each kind, 0.5 takes half a move away.
    emission_prior
        The prior of emissions by name: {"concentration"} for "categorical" and "multinomial", {"a", "b"} (beta) for
        "bernoulli", {"shape", "rate"} (gamma) for "poisson", {"mean", "strength", "scale", "df"} (normal-inverse-Wishart)
        for the others.
    max_iter, tol
        Iterations at most; the gain of the objective a step of the sequences below which learning stops.
    n_init, n_jobs
        Runs from different starting values, of which the best is kept, and in how many processes.
    random_state
        The seed of starting values.
    progress
        Whether to show a progress bar; None for long runs on a terminal.
    time_limit
        Seconds after which learning ends with what it has; Ctrl-C does so too.
    checkpoint
        A file that a run keeps what it has learned in, and goes on from.

    Attributes
    ----------
    startprob_, transmat_
        The chain.
    emission_
        The learned emissions; `emission_.params` are their values by name.
    means_, covars_, weights_, emissionprob_, rates_
        Those values under the names of hmmlearn, where the family has them; covariances in full. They and the chain may be
        set: before learning that is giving them to the constructor, afterwards it changes what was learned.
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

    _not_saved = ("_checked_model",)
    _counts = True
    """Whether learning from sequences whose states are all known is counting moves."""

    # -- learning ----------------------------------------------------------------------------------------------

    @guided
    def fit(
        self,
        sequences: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        labels: Any = None,
        inputs: Any = None,
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
        inputs
            What drives the sequences: a list of arrays with a row for each step, or one array in the order of the steps. The
            inputs of a step drive the move into it and what it emits.
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
        data, driving = self._read(sequences, lengths, by, inputs)
        seen, options = self._observations(data, driving)
        if sample_weight is not None:
            seen = replace(seen, shares=data.weights(sample_weight))
        states = None if labels is None else self._labels(labels, data)
        priors = self._priors()
        whole = self._counts and states is not None and bool((states >= 0).all())
        rng = generator(self.random_state)
        begins = self._begins(seen, options, priors, states, 1 if whole else self.n_init, rng)
        if whole and states is not None:
            self._take(learn_told(begins[0], seen, states, priors), data)
            return self
        how: dict[str, Any] = {
            "seen": seen if states is None else seen.told(states), "priors": priors, "max_iter": self.max_iter,
            "tol": self.tol, "where": data.at,
        }  # fmt: skip
        file = self._checkpoint(how["seen"])
        if self.algorithm == "stochastic":
            require_sums(_plain(begins)[0].emission)
            run = partial(
                learn_by_batches, **how, batch_size=self.batch_size, decay=self.learning_decay, seed=rng
            )
        else:
            run = partial(learn, **how, algorithm=self.algorithm, checkpoint=file)
        # passes over pieces draw from one stream of random numbers
        jobs = None if self.algorithm == "stochastic" else self.n_jobs
        with Clock(self.time_limit, False):
            best = best_climb(run, begins, n_jobs=jobs, progress=self.progress)
        self._take(best, data)
        return self

    def _checkpoint(self, seen: Observations) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        if self.n_init > 1:
            raise InvalidArgument("checkpoint= is the file of one run; leave it out, or give n_init=1")
        if self.algorithm == "stochastic":
            raise InvalidArgument(
                "checkpoint= needs passes over all sequences; leave it out, or algorithm='stochastic'"
            )
        how = ("max_iter", "tol", "n_jobs", "progress", "time_limit", "checkpoint")
        about = {name: value for name, value in self.get_params().items() if name not in how}
        return Checkpoint(self.checkpoint, digest_of(seen.rows, seen.codes, seen.offsets, seen.shares, about))

    def _prepared(
        self, data: Sequences, runs: int, rng: np.random.Generator
    ) -> tuple[Observations, Priors, list[HiddenMarkov]]:
        """Return sequences as observations, the priors, and starting values for some runs."""
        self._check()
        seen, options = self._observations(data)
        priors = self._priors()
        return seen, priors, _plain(self._begins(seen, options, priors, None, runs, rng))

    def _take(self, found: Climb[LearnedChain], data: Sequences) -> None:
        self._keep(found.state.model)
        self.history_, self.converged_ = found.history, found.converged
        self.__dict__.pop("sums_", None)  # what pieces said before
        self.n_iter_ = len(found.history)
        self.n_features_in_ = data.values.shape[1]
        if data.columns:
            self.feature_names_in_ = np.array(data.columns, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)
        say_hungry(found.state.hungry)
        found.warn(self.tol)

    def _keep(self, model: Any) -> None:
        self._chain_law = None if isinstance(model, HiddenMarkov) else model
        self.__dict__.update(startprob_=model.start, transmat_=model.transition, emission_=model.emission)
        if isinstance(model, Driven):
            self.input_weights_ = model.weights

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

    @guided
    def forecast(
        self, sequences: Any, steps: int, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        future: Any = None, of: Literal["states", "observations"] = "states", level: float = 0.95,
    ) -> Forecast:  # fmt: skip
        """Return the law of the next steps' states: its means are probabilities, an array (steps, states) a sequence.

        Parameters
        ----------
        sequences, lengths, by, inputs
            The sequences.
        steps
            How many steps ahead.
        future
            Where inputs drive the chain, those of the next steps, one array (steps, inputs) a sequence.
        of
            "states", or "observations" for the law of what will be seen: of symbols their probabilities, of numbers means,
            intervals and quantiles. It is exact for symbols, Gaussians and mixtures of them, and by 4,000 draws for others.
        level
            The probability of the intervals.

        Examples
        --------
        >>> coin = HMM(2, start=[1, 0], transition=[[0.9, 0.1], [0.5, 0.5]], symbols=["heads", "tails"],
        ...     emission_params={"probs": [[1, 0], [0, 1]]})
        >>> coin.forecast(["heads"], 2, of="observations")[0].round(6).tolist()
        [[0.9, 0.1], [0.86, 0.14]]
        """
        check("steps", steps, Whole(1))
        check("of", of, Choice(("states", "observations")))
        check_level("level", level)
        given = self._read(sequences, lengths, by, inputs)
        asked = self._seen(given)
        found = asked.chain.filter(asked.seen)
        refuse(found.stuck, asked.data.at)
        ahead = self._ahead(asked, found.now, steps, future)
        paths = partial(self._paths_ahead, given, steps, future, of)
        if of == "states":
            probs = asked.states(ahead)
            law = Forecast.of_states(probs, range(probs.shape[2]), asked.data, hidden=True, paths=paths)
            return replace(law, level=level)
        emission = self._model().emission
        laws = mixed_emissions(emission, ahead) or drawn_laws(emission, paths(DRAWS, generator(0)))
        return Forecast(laws, [], level, asked.data.single, paths=paths).after(asked.data, steps)

    def _paths_ahead(
        self, given: GivenSequences, steps: int, future: Any, of: str, n: int, rng: np.random.Generator
    ) -> list[Any]:
        """Draw the next steps of each sequence, states or what they show: paths through steps at which nothing is seen."""
        model, asked = self._model(), self._seen(given)
        driving = coming_inputs(future, model, len(asked.data), steps, "future=")
        seen, chain = asked.seen.continued(steps), asked.chain
        if driving is not None and given.inputs is not None:
            parts = zip(asked.data.split(given.inputs), driving, strict=True)
            inputs = np.concatenate([np.concatenate(both) for both in parts])
            chain = model.chain_over(Observations(np.empty((0, 1)), seen.codes, seen.offsets, inputs=inputs))
        drawn = chain.draw(seen, n, rng)
        ends = [slice(int(b) - steps, int(b)) for b in seen.offsets[1:]]
        if of == "states":
            return [asked.path(drawn[:, end]) for end in ends]
        inner = untied(model.emission)
        rows = asked.data.values if isinstance(inner, LaggedCategorical) else None
        if rows is None and getattr(inner, "memory", False):
            rows = asked.data.numbers()
        emits = driving if isinstance(inner, RegressionGaussian) and inner.inputs.shape[2] else None
        return [
            drawn_emissions(
                model.emission, drawn[:, end], np.empty((0, 1)) if rows is None else rows[a:b],
                None if emits is None else np.repeat(emits[i][:, None], n, axis=1), rng,
            )
            for i, (end, a, b) in enumerate(zip(ends, asked.data.offsets[:-1], asked.data.offsets[1:], strict=True))
        ]  # fmt: skip

    def _ahead(self, asked: ChainData, now: Array, steps: int, future: Any) -> Array:
        model = self._model()
        driving = coming_inputs(future, model, len(asked.data), steps, "future=")
        found: Array = model.ahead(now[asked.data.offsets[1:] - 1], asked.data.lengths, steps, driving)
        return found

    def stream(self) -> HiddenStateStream:
        """Return a filter that takes one observation at a time.

        Raises
        ------
        UnsupportedModel
            For chains of higher order, emissions with lags and explicit durations, where the present state is not all
            that counts; `filter` of all steps so far answers there.

        Examples
        --------
        >>> coin = HMM(2, start=[0.5, 0.5], transition=[[0.9, 0.1], [0.5, 0.5]],
        ...     emission_params={"probs": [[0.8, 0.2], [0.1, 0.9]]})
        >>> stream = coin.stream()
        >>> [stream.update(x).round(3).tolist() for x in (0, 1)]
        [[0.889, 0.111], [0.568, 0.432]]
        """
        model = self._model()
        if not isinstance(model, HiddenMarkov | Driven) or getattr(untied(model.emission), "memory", False):
            raise UnsupportedModel(
                "a stream keeps the present state alone, and more counts here; filter() of all steps so far answers"
            )
        return HiddenStateStream(self)

    def expected_durations(self) -> Array:
        """Return how many steps a visit of each state lasts on average, 1 / (1 - p(stay)).

        Examples
        --------
        >>> HMM(2, start=[1, 0], transition=[[0.9, 0.1], [0.5, 0.5]],
        ...     emission_params={"probs": [[1, 0], [0, 1]]}).expected_durations().round(6).tolist()
        [10.0, 2.0]
        """
        if not isinstance(self._model(), HiddenMarkov):
            raise UnsupportedModel(
                "visits have no single mean duration in a chain of higher order or with inputs"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 - np.diag(self._model().transition)))

    # -- handing over ------------------------------------------------------------------------------------------

    def _draw(self, steps: int, n: int, inputs: Any, seed: Any) -> tuple[list[Any], ...]:
        # with lags of a Gaussian, zeros lie before the first step
        model, rng = self._model(), generator(seed)
        driving = coming_inputs(inputs, model, n, steps, "inputs=")
        states = model.draw_states(n, steps, rng, driving)
        if hasattr(untied(model.emission), "draw_after"):
            drawn = drawn_after(model.emission, states, driving, rng)
        else:
            drawn = model.emission.draw(states.ravel(), rng).reshape(n, steps, -1)
        return list(drawn), list(states)

    def unroll(self, T: int, *, inputs: Any = None) -> BayesianNetwork:  # noqa: N803
        """Return the Bayesian network of T steps: states `z0`, `z1`, ... and observations `x0`, `x1`, ...

        An observation of several columns has a node each: `x0_0`, `x0_1`, ... It is for categorical, Bernoulli and
        Gaussian emissions; where inputs drive the chain, those of the T steps are needed. The first steps of Gaussians with
        lags are standard normal, and are to be given.

        Examples
        --------
        >>> coin = HMM(2, start=[1, 0], transition=[[0.9, 0.1], [0.5, 0.5]], emission_params={"probs": [[1, 0], [0, 1]]})
        >>> coin.unroll(3).variables
        ['z0', 'x0', 'z1', 'x1', 'z2', 'x2']
        """
        model = self._model()
        if not isinstance(model, HiddenMarkov) or hasattr(untied(model.emission), "draw_after"):
            driving = coming_inputs(inputs, model, 1, T, "inputs=")
            return unrolled_law(model, self.n_states, None if driving is None else driving[0], T)
        return unrolled(model.start, model.transition, expanded(model.emission), T)

    def network(self) -> DynamicBayesianNetwork:
        """Return the dynamic network with states `z` and observations `x`, or `x_0`, `x_1`, ... by column.

        It is for categorical, Bernoulli and Gaussian emissions. Asked about, its variables have their step behind an at:
        `z@0`, `x@3`; `unroll(T)` has the names `z0`, `x3`.

        Examples
        --------
        >>> coin = HMM(2, start=[1, 0], transition=[[0.9, 0.1], [0.5, 0.5]], emission_params={"probs": [[1, 0], [0, 1]]})
        >>> round(coin.network().query("z@2")[1], 6)
        0.14
        """
        model = self._model()
        if not isinstance(model, HiddenMarkov):
            raise UnsupportedModel("a chain of higher order or with inputs is handed over by unroll(T)")
        return two_slices(model.start, model.transition, expanded(model.emission))

    # -- inside ------------------------------------------------------------------------------------------------

    def _model(self) -> Any:
        if "emission_" in vars(self):
            law = getattr(self, "_chain_law", None)
            if law is not None:
                return law._replace(emission=self.emission_)
            return HiddenMarkov(self.startprob_, self.transmat_, self.emission_)
        # checked once: a question asks for the values of the last one, unless a setting, or an entry of one, was changed
        settings = self._settings_by_value()
        known: tuple[bytes | None, Any] = vars(self).get("_checked_model", (None, None))
        if settings is not None and settings == known[0]:
            return known[1]
        self._check()
        (start, transition), emission = self._given_chain(), self._given_emission()
        if start is None or transition is None or emission is None:
            raise IncompleteModel(
                "this HMM has no values yet; call fit(sequences), or give start=, transition= and emission_params="
            )
        model = self._law(generator(0), start, transition, emission)
        self._checked_model = settings, model
        return model

    def _settings_by_value(self) -> bytes | None:
        """Return all settings as bytes that tell whether one changed; None where emissions are more than numbers."""
        if not isinstance(self.emission, str):
            return None
        try:
            return pickle.dumps([item for item in vars(self).items() if item[0][0] != "_"], protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError):  # symbols, or a source of random numbers
            return None

    def _values(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        model = self._model()
        chain = {"start": getattr(model, "starts", (model.start,))[-1], "transition": model.transition}
        return {**chain, **untied(model.emission).params}, {}

    def _facts(self) -> dict[str, Any]:
        history = vars(self).get("history_")
        objective = float(history[-1]) if history else None
        return {"states": self.n_states, "emission": self._emits(), "objective": objective} | super()._facts()

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        model = self._model()
        if not isinstance(model, HiddenMarkov):
            return int(model.n_free)
        start = max(int((model.start > 0.0).sum()) - 1, 0)
        return int(model.emission.n_free + start + free_entries(model.transition, self._fixed_moves()))

    def _seen(self, given: GivenSequences) -> ChainData:
        model, data = self._model(), given.rows
        emission: Any = untied(model.emission)
        driving = asked_inputs(given.inputs, model)
        seen = emission.read_with(data, driving) if hasattr(emission, "read_with") else emission.read(data)
        if driving is not None:
            seen = replace(seen, inputs=driving)
        width = data.values.shape[1]
        wanted = emission.width
        if wanted is not None and width != wanted:
            raise InvalidArgument(f"the sequences have {width} columns, the model's emissions {wanted}")
        return ChainData(data, model.chain_over(seen), seen.seen_by(model.emission), model.last)


def _plain(begins: list[Any]) -> list[HiddenMarkov]:
    """Refuse chains that are not given by one matrix."""
    if not isinstance(begins[0], HiddenMarkov):
        raise UnsupportedModel("this is for chains of order 1 that no inputs drive; fit() learns the others")
    return begins


def _is_list(labels: Any) -> bool:
    return isinstance(labels, list | tuple) and len(labels) > 0 and np.ndim(labels[0]) > 0
