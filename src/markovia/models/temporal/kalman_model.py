"""Models that the Kalman filter answers: linear Gaussian state spaces, whatever says their matrices.

    x[t+1] = A x[t] + b + N(0, Q),  y[t] = C x[t] + d + N(0, R),  x[0] ~ N(m, P)

A subclass says the matrices (`_given`), and those of known inputs (`_input_matrices`). References: Kalman (1960); Durbin and
Koopman, Time Series Analysis by State Space Methods (2012).
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import InvalidArgument
from markovia.inference.sequences.forecast import Forecast, GaussianSteps
from markovia.inference.sequences.information_filter import FilteredInformation, information_filter
from markovia.inference.sequences.kalman_filter import (
    FORMS,
    Form,
    KalmanFilter,
    offsets_by_row,
    root,
    simulate,
)
from markovia.inference.sequences.kalman_results import Filtered, Smoothed
from markovia.inference.sequences.padded import PerSequence
from markovia.inference.sequences.parallel_kalman import Parallel, in_parallel_time
from markovia.inference.sequences.state_results import FilteredStates, SmoothedStates
from markovia.inference.sequences.state_space import StateSpace
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.hidden_states.component_nodes import add_vector
from markovia.models.temporal.sequence_model import GivenSequences, inputs_of_steps
from markovia.models.temporal.state_space_model import StateSpaceModel, continued
from markovia.models.temporal.state_stream import GaussianStateStream
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.estimator import Estimator
from markovia.runtime.keyword_advice import guided, missing_attribute
from markovia.runtime.seeds import Seed, generator

WORDS = {
    "em": "fit (max_iter= in the constructor)",
    "loglikelihood": "score",
    "loglike": "score",
    "llf": "log_likelihood_",
    "aic": "aic_",
    "bic": "bic_",
    "filter_update": "stream().update",
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


class KalmanModel(StateSpaceModel, Estimator, ABC):
    """A linear Gaussian state-space model, asked about sequences."""

    form: Form
    _space_: StateSpace

    if not TYPE_CHECKING:  # a type checker is to see that a misspelt attribute is none

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise missing_attribute(self, name, WORDS)

    @abstractmethod
    def _given(self) -> StateSpace:
        """Return the matrices that settings say."""

    @abstractmethod
    def _input_matrices(self) -> dict[str, Any]:
        """Return the matrices that turn inputs into more of the next state, and of the observation; None for none."""

    @property
    def space(self) -> StateSpace:
        """The matrices: learned ones, or those given."""
        return self._space_ if hasattr(self, "_space_") else self._given()

    def _log_prob(self, given: GivenSequences) -> Array:
        return self._information(given).log_prob if self.form == "information" else self._run(given).log_prob

    @guided
    def log_prob(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        parallel: Parallel = None,
    ) -> Array:  # fmt: skip
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
        given = self._read(sequences, lengths, by, inputs)
        return self._log_prob(given) if parallel is None else self._in_parallel(given, parallel)[0].log_prob

    @guided
    def filter(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        parallel: Parallel = None,
    ) -> Filtered | FilteredStates:  # fmt: skip
        """Return the states given what was observed up to each step, with innovations and their tests.

        Examples
        --------
        >>> from markovia import LinearStateSpace
        >>> walk = LinearStateSpace(1, 1, 1, 1)
        >>> found = walk.filter([[1.0, 2.0, 4.0], [0.0, 1.0]])
        >>> found.mean[0][:, 0].round(3).tolist(), found.innovations[1][:, 0].tolist()
        ([1.0, 1.667, 3.125], [0.0, 1.0])
        >>> LinearStateSpace(1, 1, 1, 1, form="information").filter([1.0, 2.0]).precision[0].ravel().tolist()
        [1.0, 1.5]
        """
        given = self._read(sequences, lengths, by, inputs)
        if parallel is not None:
            return self._in_parallel(given, parallel)[0]
        return self._information(given) if self.form == "information" else self._run(given).filtered

    @guided
    def smooth(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        parallel: Parallel = None,
    ) -> Smoothed | SmoothedStates:  # fmt: skip
        """Return the states given whole sequences, with the covariances of neighbouring states."""
        given = self._read(sequences, lengths, by, inputs)
        if parallel is not None:
            return self._in_parallel(given, parallel, smoothing=True)[1]
        return self._run(given).smoothed

    @guided
    def sample_states(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None, draws: int = 1,
        seed: Seed = None,
    ) -> list[Array]:  # fmt: skip
        """Draw whole paths of states given the observations: for each sequence an array (draws, steps, states)."""
        check_count("draws", draws, 1)
        return self._run(self._read(sequences, lengths, by, inputs)).draw(generator(seed), draws)

    def _forecast(self, given: GivenSequences, steps: int, ahead: Array | None, level: float) -> Forecast:
        known = continued(given, steps, ahead)
        found = self._run(known).filtered
        ends = [slice(int(b) - steps, int(b)) for b in known.rows.offsets[1:]]
        predicted = zip(found.predicted_mean, found.predicted_cov, strict=True)
        return Forecast(
            [GaussianSteps.of(found.expected[e], found.expected_cov[e]) for e in ends],
            [GaussianSteps.of(m[-steps:], c[-steps:]) for m, c in predicted],
            level, given.rows.single, paths=partial(self._paths_ahead, known, steps),
        )  # fmt: skip

    def _paths_ahead(
        self, known: GivenSequences, steps: int, n: int, rng: np.random.Generator
    ) -> list[Array]:
        """Draw the last steps of sequences, which nobody saw: states given what was seen, and what they show."""
        space, run = self.space, self._run(known)
        _, d = self._offsets(*known)
        found = []
        for states, end in zip(run.draw(rng, n), known.rows.offsets[1:].tolist(), strict=True):
            t = np.arange(states.shape[1])[-steps:]
            noise = root(space.observation_cov)
            shown, spread = (
                stack[t] if len(stack) > 1 else np.repeat(stack, steps, 0)
                for stack in (space.observation, noise)
            )
            means = np.einsum("tij,ntj->nti", shown, states[:, -steps:])
            push = d if len(d) == 1 else d[end - steps : end]
            drawn = rng.standard_normal((n, steps, spread.shape[2]))
            found.append(means + push + np.einsum("tij,ntj->nti", spread, drawn))
        return found

    def _expected(self, given: GivenSequences) -> PerSequence:
        found = self._run(given).filtered
        return PerSequence.of(found.expected, given.rows.offsets, given.rows.single)

    def _draw(self, steps: int, n: int, inputs: Any, seed: Seed) -> tuple[list[Any], ...]:
        # a diffuse start is at the initial mean
        space, offsets = self.space, np.arange(0, n * steps + 1, steps)
        blank = Sequences(np.full((n * steps, space.n_observed), np.nan), offsets, tuple(range(n)))
        given = None if inputs is None else np.tile(inputs_of_steps("inputs", inputs, steps), (n, 1))
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
        >>> from markovia import LinearStateSpace
        >>> net = LinearStateSpace(1, 1, 1, 1, initial_cov=1).unroll(2)
        >>> float(round(net.query("x0@1", given={"y0@0": 1.0, "y0@1": 2.0}).mean(), 6))
        1.4
        """
        check_count("T", T, 1)
        space = self.space
        if space.diffuse.any():
            raise InvalidArgument("a network has no diffuse start; give initial_cov= finite variances")
        blank = Sequences(np.full((T, space.n_observed), np.nan), np.array([0, T]), (0,))
        c, d = self._offsets(blank, None if inputs is None else inputs_of_steps("inputs", inputs, T))
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

    def stream(self) -> GaussianStateStream:
        """Return a filter that takes one observation at a time.

        Examples
        --------
        >>> from markovia import LinearStateSpace
        >>> stream = LinearStateSpace(1, 1, 1, 1).stream()
        >>> [float(stream.update(y)[0][0].round(3)) for y in (1.0, 2.0, 4.0)], stream.step
        ([1.0, 1.667, 3.125], 3)
        """
        return GaussianStateStream(self)

    # -- running -----------------------------------------------------------------------------------------------

    def _run(self, given: GivenSequences) -> KalmanFilter:
        check_choice("form", self.form, FORMS)
        rows, (c, d) = given.rows, self._pushes(*given)
        return KalmanFilter(
            self.space, rows.numbers(), rows.offsets, form=self.form, transition_push=c, observation_push=d, at=rows.at,
            single=rows.single,
        )  # fmt: skip

    def _information(self, given: GivenSequences) -> FilteredInformation:
        rows, (c, d) = given.rows, self._offsets(*given)
        return information_filter(
            self.space, rows.numbers(), rows.offsets, c, d, at=rows.at, single=rows.single
        )

    def _in_parallel(
        self, given: GivenSequences, parallel: str, *, smoothing: bool = False
    ) -> tuple[FilteredStates, SmoothedStates]:
        check_choice("parallel", parallel, ("time",))
        rows, (c, d) = given.rows, self._offsets(*given)
        return in_parallel_time(
            self.space, rows.numbers(), rows.offsets, c, d, rows.single, smoothing=smoothing
        )

    def _offsets(self, rows: Sequences, inputs: Array | None) -> tuple[Array, Array]:
        """Return all that is added to the next states and to observations, one for all rows or one a row."""
        c, d = self._pushes(rows, inputs)
        return (
            offsets_by_row(self.space.transition_offset, c, rows.offsets),
            offsets_by_row(self.space.observation_offset, d, rows.offsets),
        )

    def _pushes(self, rows: Sequences, inputs: Array | None) -> tuple[Array | None, Array | None]:
        """Return what inputs add to the next states and to observations."""
        matrices = self._input_matrices()
        if inputs is None:
            for name, given in matrices.items():
                if given is not None:
                    raise InvalidArgument(f"the model has {name}=, so give inputs=")
            return None, None
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
