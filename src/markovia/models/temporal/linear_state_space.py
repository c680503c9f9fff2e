"""Linear Gaussian state-space models: hidden states that move linearly, seen through linear observations.

    x[t+1] = A x[t] + b + N(0, Q),  y[t] = C x[t] + d + N(0, R),  x[0] ~ N(m, P)

Answers are the Kalman filter's and smoother's (`markovia.inference.sequences.kalman_filter`); learning is
expectation-maximisation (`markovia.learning.sequences.state_space_em`). References: Kalman (1960); Durbin and Koopman,
Time Series Analysis by State Space Methods (2012).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.sequences.sequences import Sequences, read_sequences
from markovia.errors import InvalidArgument
from markovia.inference.sequences.information_filter import FilteredInformation, information_filter
from markovia.inference.sequences.kalman_filter import FORMS, Form, KalmanFilter, offsets_by_row, simulate
from markovia.inference.sequences.kalman_results import Filtered, Smoothed
from markovia.inference.sequences.parallel_kalman import Parallel, in_parallel_time
from markovia.inference.sequences.state_results import FilteredStates, SmoothedStates
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.learning.sequences.state_space_em import LEARNED, StateSpaceFit, fit_em
from markovia.learning.sequences.state_space_gradient import fit_gradient
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.forecast import Forecast, longer, normal_forecast
from markovia.models.temporal.unrolled_gaussian import add_vector
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count, check_level, check_number
from markovia.runtime.estimator import Estimator
from markovia.runtime.keyword_advice import guided, missing_attribute
from markovia.runtime.seeds import generator

WORDS = {
    "em": "fit (max_iter= in the constructor)",
    "loglikelihood": "score",
    "loglike": "score",
    "llf": "log_likelihood_",
    "aic": "aic_",
    "bic": "bic_",
    "filter_update": "filter of all steps so far",
    "simulate": "sample",
    "simulation_smoother": "sample_states",
    "get_forecast": "forecast",
    "get_prediction": "forecast",
    "smoothed_state": "smooth(y).mean",
    "filtered_state": "filter(y).mean",
    "marginal_log_prob": "log_prob",
    "smoother": "smooth",
    "fit_em": "fit",
    "transition_matrices": "transition_",
    "transition_covariance": "transition_cov_",
    "observation_matrices": "observation_",
    "observation_covariance": "observation_cov_",
    "initial_state_mean": "initial_mean_",
    "initial_state_covariance": "initial_cov_",
}
"""What pykalman, statsmodels and dynamax call verbs and values, and what they are here."""


class LinearStateSpace(Estimator):
    """A linear Gaussian state-space model.

    Parameters
    ----------
    transition
        The matrix that moves a state to the next; like all matrices but the first state's, one for all steps or one a
        step of a sequence.
    transition_cov
        The covariance of what is added to a state on its way.
    observation
        The matrix that turns a state into its observation.
    observation_cov
        The covariance of the observation's noise.
    initial_mean, initial_cov
        Of a sequence's first state; zero, and infinite variances: a diffuse start, treated exactly. Single variances may
        be infinite too.
    transition_offset, observation_offset
        Added to the next state and to the observation.
    transition_input, observation_input
        Matrices that turn a step's `inputs=` into more of the same.
    form
        "covariance"; "square-root", which carries roots of covariances through the filter; or "information", which carries
        precisions, so that `filter` and `log_prob` may start from no knowledge at all and `filter` has `precision` and
        `information` too. Other answers are those of "covariance" then.
    learn
        What `fit` learns: names of the parameters above, or a mapping from names to masks of entries. Everything but
        offsets and inputs by default.
    method
        How `fit` learns: "em" for expectation-maximisation, or "gradient" for a quasi-Newton search of the greatest
        likelihood, for a few free entries, with standard errors.
    max_iter, tol
        `fit` stops after so many iterations, or when the log likelihood rises by less than this a number observed.
    progress
        Whether `fit` shows a progress bar; by default on a terminal if it takes long.

    Attributes
    ----------
    transition_, transition_cov_, observation_, observation_cov_, initial_mean_, initial_cov_, transition_offset_, \
observation_offset_
        What was learned.
    log_likelihoods_, n_iter_, converged_
        The log likelihood before each iteration (with "gradient", at the start and at the end), how many there were, and
        whether they settled.
    standard_errors_
        With "gradient", for each learned matrix those of its entries, from the observed information; NaN where an entry is
        fixed, where a variance is zero, or where the data do not tell an entry apart from others.

    Examples
    --------
    >>> level = LinearStateSpace(transition=1, transition_cov=0.5, observation=1, observation_cov=1, initial_cov=10)
    >>> y = [1.0, 1.5, np.nan, 3.0]
    >>> level.smooth(y).mean[0][:, 0].round(3).tolist()
    [1.387, 1.65, 1.987, 2.325]
    >>> level.forecast(y, 2).mean[0][:, 0].round(3).tolist()
    [2.325, 2.325]
    """

    @guided
    def __init__(
        self,
        transition: ArrayLike = 1.0,
        transition_cov: ArrayLike = 1.0,
        observation: ArrayLike = 1.0,
        observation_cov: ArrayLike = 1.0,
        initial_mean: ArrayLike | None = None,
        initial_cov: ArrayLike | None = None,
        *,
        transition_offset: ArrayLike | None = None,
        observation_offset: ArrayLike | None = None,
        transition_input: ArrayLike | None = None,
        observation_input: ArrayLike | None = None,
        form: Form = "covariance",
        learn: Sequence[str] | Mapping[str, Any] | None = None,
        method: Literal["em", "gradient"] = "em",
        max_iter: int = 100,
        tol: float = 1e-6,
        progress: bool | None = None,
    ) -> None:
        self.transition = transition
        self.transition_cov = transition_cov
        self.observation = observation
        self.observation_cov = observation_cov
        self.initial_mean = initial_mean
        self.initial_cov = initial_cov
        self.transition_offset = transition_offset
        self.observation_offset = observation_offset
        self.transition_input = transition_input
        self.observation_input = observation_input
        self.form = form
        self.learn = learn
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.progress = progress

    if not TYPE_CHECKING:  # a type checker is to see that a misspelt attribute is none

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_attribute(self, name, WORDS)

    @property
    def space(self) -> StateSpace:
        """The matrices: learned ones, or those given."""
        return self._space_ if hasattr(self, "_space_") else self._given()

    def _given(self) -> StateSpace:
        return state_space(
            self.transition,
            self.transition_cov,
            self.observation,
            self.observation_cov,
            self.initial_mean,
            self.initial_cov,
            self.transition_offset,
            self.observation_offset,
        )

    # -- questions ---------------------------------------------------------------------------------------------

    @guided
    def log_prob(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        parallel: Parallel = None,
    ) -> Array:
        """Return the log likelihood of each sequence.

        Parameters
        ----------
        sequences, lengths, by
            One array a sequence, one array with lengths, or a frame with a column of ids; NaN is missing.
        inputs
            Known inputs, in the same form, where the model has matrices for them.
        parallel
            "time" for associative scans in JAX, for one long sequence on a GPU; the same values.
        """
        if parallel is not None:
            return self._in_parallel(sequences, lengths, by, inputs, parallel)[0].log_prob
        if self.form == "information":
            return self._information(sequences, lengths, by, inputs).log_prob
        return self._run(sequences, lengths, by, inputs).log_prob

    def score(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
    ) -> float:
        """Return the log likelihood of all sequences."""
        return float(self.log_prob(sequences, lengths, by=by, inputs=inputs).sum())

    @guided
    def filter(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        parallel: Parallel = None,
    ) -> Filtered | FilteredStates:
        """Return the states given what was observed up to each step, with innovations and their tests.

        Examples
        --------
        >>> walk = LinearStateSpace(1, 1, 1, 1)
        >>> found = walk.filter([[1.0, 2.0, 4.0], [0.0, 1.0]])
        >>> found.mean[0][:, 0].round(3).tolist(), found.innovations[1][:, 0].tolist()
        ([1.0, 1.667, 3.125], [0.0, 1.0])
        >>> LinearStateSpace(1, 1, 1, 1, form="information").filter([1.0, 2.0]).precision[0].ravel().tolist()
        [1.0, 1.5]
        """
        if parallel is not None:
            return self._in_parallel(sequences, lengths, by, inputs, parallel, smoothing=False)[0]
        if self.form == "information":
            return self._information(sequences, lengths, by, inputs)
        return self._run(sequences, lengths, by, inputs).filtered

    @guided
    def smooth(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        parallel: Parallel = None,
    ) -> Smoothed | SmoothedStates:
        """Return the states given whole sequences, with the covariances of neighbouring states."""
        if parallel is not None:
            return self._in_parallel(sequences, lengths, by, inputs, parallel, smoothing=True)[1]
        return self._run(sequences, lengths, by, inputs).smoothed

    def sample_states(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        draws: int = 1,
        seed: Any = None,
    ) -> list[Array]:
        """Draw whole paths of states given the observations: for each sequence an array (draws, steps, states)."""
        check_count("draws", draws, 1)
        return self._run(sequences, lengths, by, inputs).draw(generator(seed), draws)

    @guided
    def forecast(
        self,
        sequences: Any,
        steps: int,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        future_inputs: Any = None,
        level: float = 0.95,
    ) -> Forecast:
        """Return what comes after each sequence.

        Parameters
        ----------
        sequences, lengths, by, inputs
            As in `log_prob`.
        steps
            How many steps ahead.
        future_inputs
            The inputs of those steps: one array for all sequences, where the model has matrices for them.
        level
            The probability of the intervals.
        """
        check_count("steps", steps, 1)
        check_level("level", level)
        rows = read_sequences(sequences, lengths, by=by)
        known = longer(rows, rows.numbers(), np.full((steps, rows.values.shape[1]), np.nan))
        given = None
        if inputs is not None:
            ahead = np.asarray(future_inputs, dtype=np.float64)
            ahead = ahead[:, None] if ahead.ndim == 1 else ahead
            own = read_sequences(inputs, lengths, by=by)
            if ahead.shape != (steps, own.values.shape[1]):
                raise InvalidArgument(
                    f"future_inputs= has one row a step ahead, {steps}, and a column an input"
                )
            given = longer(own, own.numbers(missing=False), ahead).values
        found = self._run_rows(known, given).filtered
        ends = [slice(int(b) - steps, int(b)) for b in known.offsets[1:]]
        return normal_forecast(
            [found.expected[e] for e in ends],
            [found.expected_cov[e] for e in ends],
            [m[-steps:] for m in found.predicted_mean],
            [c[-steps:] for c in found.predicted_cov],
            level,
            rows.single,
        )

    @guided
    def sample(
        self, steps: int, n: int = 1, *, inputs: Any = None, seed: Any = None
    ) -> tuple[list[Array], list[Array]]:
        """Draw sequences; a diffuse start is at the initial mean.

        Parameters
        ----------
        steps
            How many steps each has.
        n
            How many sequences.
        inputs
            One row a step, for all sequences, where the model has matrices for them.
        seed
            For the same draws again.

        Returns
        -------
        tuple
            The observations and the states, lists with one array a sequence.
        """
        check_count("steps", steps, 1)
        check_count("n", n, 1)
        space, offsets = self.space, np.arange(0, n * steps + 1, steps)
        blank = Sequences(np.full((n * steps, space.n_observed), np.nan), offsets, tuple(range(n)))
        given = (
            None
            if inputs is None
            else np.tile(np.asarray(inputs, dtype=np.float64).reshape(steps, -1), (n, 1))
        )
        c, d = self._offsets(blank, given)
        x, y = simulate(space, offsets, generator(seed), c, d, space.initial_mean)
        return blank.split(y), blank.split(x)

    def unroll(self, T: int, *, inputs: Any = None) -> BayesianNetwork:  # noqa: N803
        """Return the network over T steps: states `x0@0`, `x1@0`, ... and observations `y0@0`, ..., all linear Gaussian.

        Raises
        ------
        InvalidArgument
            For a diffuse start, which no network has.

        Examples
        --------
        >>> net = LinearStateSpace(1, 1, 1, 1, initial_cov=1).unroll(2)
        >>> float(round(net.query("x0@1", given={"y0@0": 1.0, "y0@1": 2.0}).mean(), 6))
        1.4
        """
        check_count("T", T, 1)
        space = self.space
        if space.diffuse.any():
            raise InvalidArgument("a network has no diffuse start; give initial_cov= finite variances")
        blank = Sequences(np.full((T, space.n_observed), np.nan), np.array([0, T]), (0,))
        c, d = self._offsets(
            blank, None if inputs is None else np.asarray(inputs, dtype=np.float64).reshape(T, -1)
        )
        network = BayesianNetwork()

        def at(stack: Array, t: int) -> Array:
            return np.asarray(stack[t if len(stack) > 1 else 0])

        states: list[str] = []
        for t in range(T):
            before, states = states, [f"x{i}@{t}" for i in range(space.n_states)]
            law = (space.initial_mean, np.zeros((space.n_states, 0)), space.initial_cov)
            if t:
                law = (at(c, t - 1), at(space.transition, t - 1), at(space.transition_cov, t - 1))
            add_vector(network, states, law[0][None], law[1][None], before, law[2][None])
            names = [f"y{j}@{t}" for j in range(space.n_observed)]
            shown, noise = at(space.observation, t), at(space.observation_cov, t)
            add_vector(network, names, at(d, t)[None], shown[None], states, noise[None])
        return network

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the model to a file; `markovia.load` reads it back."""
        ports.call("save", self, path, format=format)

    # -- learning ----------------------------------------------------------------------------------------------

    @guided
    def fit(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
    ) -> Self:
        """Learn the matrices that `learn` names by greatest likelihood, from those given on.

        Examples
        --------
        >>> y = LinearStateSpace(0.8, 0.5, 1, 1, 0, 1).sample(500, seed=0)[0]
        >>> model = LinearStateSpace(0.5, 1, 1, 1, 0, 1, method="gradient", tol=1e-8,
        ...     learn=["transition", "transition_cov", "observation_cov"]).fit(y)
        >>> bool(abs(model.transition_[0, 0] - 0.8) < 2 * model.standard_errors_["transition"][0, 0])
        True
        """
        check_count("max_iter", self.max_iter, 1)
        check_number("tol", self.tol)
        check_choice("method", self.method, ("em", "gradient"))
        check_choice("form", self.form, FORMS)
        start = self._given()
        rows = read_sequences(sequences, lengths, by=by)
        push = self._pushes(rows, self._read_inputs(inputs, lengths, by))
        data = (start, rows.numbers(), rows.offsets, self._learned(start))
        how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "form": self.form, "at": rows.at}
        how |= {"transition_push": push[0], "observation_push": push[1]}
        if self.method == "gradient":
            found: StateSpaceFit = (best := fit_gradient(*data, **how))
            self.standard_errors_, self.n_iter_ = best.standard_errors, best.iterations
        else:
            found = fit_em(*data, progress=self.progress, **how)
            self.n_iter_ = len(found.log_likelihoods)
            self.__dict__.pop("standard_errors_", None)
        self._keep(found.space)
        self.log_likelihoods_, self.converged_ = found.log_likelihoods, found.converged
        return self

    def _keep(self, space: StateSpace) -> None:
        """Hold matrices as what was learned."""
        self._space_ = space
        for one in fields(StateSpace):
            value = getattr(space, one.name)
            if one.name == "initial_cov":
                value = value + np.diag(np.where(space.diffuse, np.inf, 0.0))
            if one.name != "diffuse":
                single = not one.name.startswith("initial") and len(value) == 1
                setattr(self, f"{one.name}_", value[0] if single else value)

    def _learned(self, space: StateSpace) -> Mapping[str, Any]:
        if isinstance(self.learn, Mapping):
            return self.learn
        if self.learn is not None:
            if isinstance(self.learn, str):
                raise InvalidArgument(
                    f"learn= is a list of names or a mapping from names to masks, not {self.learn!r}"
                )
            return dict.fromkeys(self.learn, True)
        moves = len(space.transition) == len(space.transition_cov) == len(space.transition_offset) == 1
        shows = len(space.observation) == len(space.observation_cov) == len(space.observation_offset) == 1
        return {
            name: True
            for name in LEARNED
            if name.startswith("initial") or (moves if name.startswith("transition") else shows)
        }

    # -- reading -----------------------------------------------------------------------------------------------

    def _run(
        self, sequences: Any, lengths: Iterable[int] | None, by: str | None, inputs: Any
    ) -> KalmanFilter:
        rows = read_sequences(sequences, lengths, by=by)
        return self._run_rows(rows, self._read_inputs(inputs, lengths, by))

    def _information(
        self, sequences: Any, lengths: Iterable[int] | None, by: str | None, inputs: Any
    ) -> FilteredInformation:
        rows = read_sequences(sequences, lengths, by=by)
        c, d = self._offsets(rows, self._read_inputs(inputs, lengths, by))
        return information_filter(
            self.space, rows.numbers(), rows.offsets, c, d, at=rows.at, single=rows.single
        )

    def _in_parallel(
        self,
        sequences: Any,
        lengths: Any,
        by: str | None,
        inputs: Any,
        parallel: str,
        *,
        smoothing: bool = False,
    ) -> tuple[FilteredStates, SmoothedStates]:
        check_choice("parallel", parallel, ("time",))
        rows = read_sequences(sequences, lengths, by=by)
        c, d = self._offsets(rows, self._read_inputs(inputs, lengths, by))
        return in_parallel_time(
            self.space, rows.numbers(), rows.offsets, c, d, rows.single, smoothing=smoothing
        )

    def _read_inputs(self, inputs: Any, lengths: Iterable[int] | None, by: str | None) -> Array | None:
        return None if inputs is None else read_sequences(inputs, lengths, by=by).numbers(missing=False)

    def _run_rows(self, rows: Sequences, inputs: Array | None) -> KalmanFilter:
        check_choice("form", self.form, FORMS)
        c, d = self._pushes(rows, inputs)
        return KalmanFilter(
            self.space,
            rows.numbers(),
            rows.offsets,
            form=self.form,
            transition_push=c,
            observation_push=d,
            at=rows.at,
            single=rows.single,
        )

    def _offsets(self, rows: Sequences, inputs: Array | None) -> tuple[Array, Array]:
        """Return all that is added to the next states and to observations, one for all rows or one a row."""
        c, d = self._pushes(rows, inputs)
        return (
            offsets_by_row(self.space.transition_offset, c, rows.offsets),
            offsets_by_row(self.space.observation_offset, d, rows.offsets),
        )

    def _input_matrices(self) -> dict[str, Any]:
        return {"transition_input": self.transition_input, "observation_input": self.observation_input}

    def _pushes(self, rows: Sequences, inputs: Array | None) -> tuple[Array | None, Array | None]:
        """Return what inputs add to the next states and to observations."""
        matrices = self._input_matrices()
        if inputs is None:
            for name, given in matrices.items():
                if given is not None:
                    raise InvalidArgument(f"the model has {name}=, so give inputs=")
            return None, None
        if len(inputs) != len(rows.values):
            raise InvalidArgument(
                f"inputs= has {len(inputs):,} steps, but the sequences have {len(rows.values):,}"
            )
        found: list[Array | None] = []
        for (name, given), size in zip(
            matrices.items(), (self.space.n_states, self.space.n_observed), strict=True
        ):
            if given is None:
                found.append(None)
                continue
            matrix = np.asarray(given, dtype=np.float64).reshape(size, -1)
            if matrix.shape[1] != inputs.shape[1]:
                raise InvalidArgument(
                    f"{name}= has {matrix.shape[1]} columns, but there are {inputs.shape[1]} inputs"
                )
            found.append(inputs @ matrix.T)
        return found[0], found[1]
