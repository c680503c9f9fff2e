"""Nonlinear state-space models: states that move by any function, seen through any function, with Gaussian noise.

    x[t+1] = f(x[t]) + N(0, Q),  y[t] = h(x[t]) + N(0, R),  x[0] ~ N(m, P)

Answers are those of extended, unscented, cubature, ensemble or Gaussian-sum filters (`markovia.inference.sequences.\
nonlinear_filter`). The functions are written with `jax.numpy`, so that they are compiled, and differentiated where needed.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.sequences.sequences import Lengths
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.sequences.forecast import Forecast, GaussianSteps
from markovia.inference.sequences.nonlinear_filter import (
    Known,
    Method,
    Rule,
    StateNoise,
    filter_program,
    sample_program,
    smoother_program,
)
from markovia.inference.sequences.padded import PerSequence, padded
from markovia.inference.sequences.state_results import FilteredStates, SmoothedStates
from markovia.inference.sequences.state_space import covariance
from markovia.models.temporal.sequence_model import GivenSequences, inputs_of_steps
from markovia.models.temporal.state_space_model import StateSpaceModel, continued
from markovia.models.temporal.state_stream import ResumedStream
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Positive, Whole, check_options
from markovia.runtime.double_precision import x64
from markovia.runtime.estimator import Estimator
from markovia.runtime.keyword_advice import guided_settings
from markovia.runtime.libraries import jax
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.traced_functions import tracing_problem

Mixture = Sequence[tuple[float, ArrayLike, ArrayLike]]


@guided_settings
@dataclass(eq=False, repr=False)
class NonlinearStateSpace(StateSpaceModel, Estimator):
    """A state-space model of two functions and Gaussian noise.

    Parameters
    ----------
    transition
        A function of a state that gives the next, without noise; of a state and the step's inputs where there are some.
    observation
        A function of a state that gives its observation, without noise; likewise.
    transition_cov, observation_cov
        The covariances of the noise.
    initial_mean, initial_cov
        Of a sequence's first state.
    method
        "extended" (derivatives), "unscented" or "cubature" (sigma points), "ensemble" (draws; for many states), or
        "gaussian-sum" (several extended filters; for laws with several modes).
    iterations
        How often "extended" and "gaussian-sum" take the derivative of an observation, each time where the last led.
    alpha, beta, kappa
        Where the points of "unscented" lie: alpha ** 2 * (states + kappa) is the square of their distance; beta weighs
        the centre.
    members, inflation, localisation
        Of "ensemble": how many draws, the factor of their distance from their mean before each observation, and a matrix
        (states, observed numbers) of factors from 0 to 1 for what an observation says about a state.
    components
        How many Gaussians "gaussian-sum" keeps.
    initial, transition_noise, observation_noise
        For "gaussian-sum", instead of covariances: mixtures, lists of (weight, mean, covariance).
    random_state
        The seed of an ensemble.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> pendulum = NonlinearStateSpace(
    ...     transition=lambda x: jnp.array([x[0] + 0.1 * x[1], x[1] - 0.98 * jnp.sin(x[0])]),
    ...     observation=lambda x: jnp.sin(x[:1]),
    ...     transition_cov=0.001 * np.eye(2),
    ...     observation_cov=0.01,
    ...     initial_mean=[1.0, 0.0],
    ...     initial_cov=0.1 * np.eye(2),
    ...     method="unscented",
    ... )
    >>> ys, xs = pendulum.sample(40, seed=0)
    >>> smoothed = pendulum.smooth(ys)
    >>> smoothed.mean[0].shape, bool(np.abs(smoothed.mean[0] - xs[0]).mean() < 0.1)
    ((40, 2), True)
    """

    transition: Callable[..., Any]
    observation: Callable[..., Any]
    transition_cov: ArrayLike = 1.0
    observation_cov: ArrayLike = 1.0
    initial_mean: ArrayLike = 0.0
    initial_cov: ArrayLike = 1.0
    _: KW_ONLY
    method: Method = "extended"
    iterations: Count = 1
    alpha: Positive = 1.0
    beta: float = 2.0
    kappa: float = 0.0
    members: Annotated[int, Whole(2)] = 500
    inflation: Positive = 1.0
    localisation: ArrayLike | None = None
    components: Count = 8
    initial: Mixture | None = None
    transition_noise: Mixture | None = None
    observation_noise: Mixture | None = None
    random_state: Seed = None

    # -- questions ---------------------------------------------------------------------------------------------

    def _log_prob(self, given: GivenSequences) -> Array:
        return self._filtered(given).log_prob

    def filter(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> FilteredStates:
        """Return the states given what was observed up to each step.

        Parameters
        ----------
        sequences, lengths, by
            One array a sequence, one array with lengths, or a frame with a column of ids; NaN is missing.
        inputs
            Known inputs, in the same form; the functions take a step's as a second argument.
        """
        return self._filtered(self._read(sequences, lengths, by, inputs))

    def smooth(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> SmoothedStates:
        """Return the states given whole sequences.

        Raises
        ------
        UnsupportedModel
            For method="gaussian-sum", which only filters.
        """
        if self.method == "gaussian-sum":
            raise UnsupportedModel("method='gaussian-sum' only filters; smooth by 'extended' or 'unscented'")
        given = self._read(sequences, lengths, by, inputs)
        mean, cov, log_prob = self._run(smoother_program, given)
        means, covs = (PerSequence.unpadded(x, given.rows.offsets, given.rows.single) for x in (mean, cov))
        return SmoothedStates(means, covs, np.asarray(log_prob))

    def _forecast(self, given: GivenSequences, steps: int, ahead: Array | None, level: float) -> Forecast:
        found = self._filtered(continued(given, steps, ahead))

        def laws(means: PerSequence, covs: PerSequence) -> list[GaussianSteps]:
            return [GaussianSteps.of(m[-steps:], c[-steps:]) for m, c in zip(means, covs, strict=True)]

        observed, states = (
            laws(found.expected, found.expected_cov),
            laws(found.predicted_mean, found.predicted_cov),
        )
        return Forecast(
            observed, states, level, given.rows.single, paths=partial(self._paths_ahead, given, steps, ahead)
        )

    def _expected(self, given: GivenSequences) -> PerSequence:
        return self._filtered(given).expected

    def _paths_ahead(
        self, given: GivenSequences, steps: int, ahead: Array | None, n: int, rng: np.random.Generator
    ) -> list[Array]:
        """Draw paths that begin in the law of each last state, which is the Gaussian that the filter has of it."""
        found, ends = self._filtered(given), given.rows.offsets[1:] - 1
        p = self._check(given.inputs)
        program = sample_program(self.transition, self.observation, steps + 1)
        drawn = []
        for mean, cov, end in zip(found.mean, found.cov, ends.tolist(), strict=True):
            begin = StateNoise(np.zeros(1), mean[-1:], cov[-1:])
            u = None if given.inputs is None else np.concatenate([given.inputs[end : end + 1], ahead])
            with x64():
                keys = jax.random.split(_key(rng), n)
                _, y = program(keys, u, self._known(p, None)._replace(start=begin))
            drawn.append(np.array(y)[:, 1:])
        return drawn

    def _draw(self, steps: int, n: int, inputs: Any, seed: Seed) -> tuple[list[Any], ...]:
        u = None if inputs is None else inputs_of_steps("inputs", inputs, steps)
        p = self._check(u)
        with x64():
            keys = jax.random.split(_key(generator(seed)), n)
            program = sample_program(self.transition, self.observation, steps)
            x, y = program(keys, u, self._known(p, None))
        return list(np.array(y)), list(np.array(x))

    # -- reading -----------------------------------------------------------------------------------------------

    def stream(self) -> ResumedStream:
        """Return a filter that takes one observation at a time.

        Raises
        ------
        UnsupportedModel
            For "ensemble" and "gaussian-sum", which keep more of a state than a mean and a covariance.

        Examples
        --------
        >>> stream = NonlinearStateSpace(lambda x: 0.5 * x, lambda x: 2.0 * x).stream()
        >>> [float(stream.update(y)[0][0].round(3)) for y in (1.0, 2.0)], stream.step
        ([0.4, 0.846], 2)
        """
        if self.method in ("ensemble", "gaussian-sum"):
            raise UnsupportedModel(
                f"a stream keeps a mean and a covariance, and method={self.method!r} more; filter() of all steps so far "
                "answers, or method='extended', 'unscented' or 'cubature'"
            )
        return ResumedStream(self, np.atleast_2d(self.observation_cov).shape[-1])

    def _resumed(
        self, law: tuple[Array, ...] | None, given: GivenSequences
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], float]:
        model = self
        if law is not None:
            model = copy(self)
            model.initial_mean, model.initial_cov = law
        found = model._filtered(given)
        now = found.mean[0][-1], found.cov[0][-1]
        return now, now, float(found.log_prob[0])

    def _filtered(self, given: GivenSequences) -> FilteredStates:
        rows, found = given.rows, self._run(filter_program, given)
        parts = [PerSequence.unpadded(part, rows.offsets, rows.single) for part in found[:6]]
        y = PerSequence.of(rows.numbers(), rows.offsets, rows.single)
        names = ("mean", "cov", "predicted_mean", "predicted_cov", "expected", "expected_cov")
        known: dict[str, Any] = dict(zip(names, parts, strict=True))
        result = FilteredStates(y=y, log_prob=np.asarray(found.log_prob), **known)
        if self.method != "gaussian-sum":
            return result
        logs, mean, cov = (PerSequence.unpadded(part, rows.offsets) for part in found.kept)
        return replace(
            result, components=[(np.exp(w), m, c) for w, m, c in zip(logs, mean, cov, strict=True)]
        )

    def _run(self, program: Any, given: GivenSequences) -> Any:
        rows, u = given
        self._check_settings()
        p = self._check(u)
        values = rows.numbers()
        if values.shape[1] != p:
            raise InvalidArgument(
                f"the sequences have {values.shape[1]} numbers a step, but observation= gives {p}"
            )
        rule = Rule(self.method)
        if self.method in ("extended", "gaussian-sum"):
            rule = rule._replace(iterations=self.iterations)
        if self.method == "gaussian-sum":
            rule = rule._replace(components=self.components)
        elif self.method == "unscented":
            rule = rule._replace(alpha=float(self.alpha), beta=float(self.beta), kappa=float(self.kappa))
        elif self.method == "ensemble":
            rule = rule._replace(members=self.members, inflation=float(self.inflation))
        with x64():
            seeds = jax.random.split(_key(generator(self.random_state)), len(rows))
            known = self._known(p, seeds)
            run = program(self.transition, self.observation, rule)
            found = run(
                padded(values, rows.offsets),
                None if u is None else padded(u, rows.offsets, 0.0),
                rows.lengths,
                known,
            )
            log_prob = np.asarray(found.log_prob)
            if not np.isfinite(log_prob).all():
                name = rows.names[int(np.argmin(np.isfinite(log_prob)))]
                raise InvalidArgument(
                    f"the filter of sequence {name!r} left the numbers that are finite; the functions grow without "
                    "bound there, or a covariance is singular: give observation_cov= more noise, or another method="
                )
        return found

    def _check_settings(self) -> None:
        check_options(self)
        if self.alpha**2 * (self._size + self.kappa) <= 0:
            raise InvalidArgument("kappa= is larger than minus the number of states")
        if self.method != "gaussian-sum" and any(
            (self.initial, self.transition_noise, self.observation_noise)
        ):
            raise InvalidArgument("mixtures are for method='gaussian-sum'")

    @property
    def _size(self) -> int:
        mean = self.initial_mean if self.initial is None else self.initial[0][1]
        return int(np.size(np.asarray(mean, dtype=np.float64)))

    def _check(self, u: Array | None) -> int:
        """Return how many numbers are observed, after a try of both functions."""

        def flat(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *given: jax.numpy.ravel(jax.numpy.asarray(function(*given)))

        n = self._size
        given = [np.zeros(n)] + ([] if u is None else [u[0]])
        sizes = []
        for name in ("transition", "observation"):
            function = getattr(self, name)
            if not callable(function):
                raise InvalidArgument(f"{name}= is a function of a state, not {type(function).__name__}")
            with x64():
                try:
                    found = jax.eval_shape(flat(function), *given)
                except (TypeError, ValueError, IndexError) as error:
                    said = str(error).splitlines()[0]
                    fails = InvalidArgument(f"{name}= fails for a state of {n} numbers: {said}")
                    raise tracing_problem(f"{name}=", error) or fails from error
            sizes.append(found.size)
        if sizes[0] != n:
            raise InvalidArgument(f"transition= gives {sizes[0]} numbers, but initial_mean= has {n}")
        return int(sizes[1])

    def _known(self, p: int, keys: Any) -> Known:
        n = self._size
        mean = np.asarray(self.initial_mean, dtype=np.float64).reshape(-1)
        start = (
            StateNoise(np.zeros(1), mean[None], covariance("initial_cov", self.initial_cov, n))
            if self.initial is None
            else _mixture("initial", self.initial, n)
        )
        noises = [
            StateNoise(
                np.zeros(1),
                np.zeros((1, size)),
                covariance(f"{name}_cov", getattr(self, f"{name}_cov"), size),
            )
            if mixture is None
            else _mixture(f"{name}_noise", mixture, size)
            for name, mixture, size in (
                ("transition", self.transition_noise, n),
                ("observation", self.observation_noise, p),
            )
        ]
        if any(len(noise.cov) != len(noise.logs) for noise in (start, *noises)):
            raise InvalidArgument("covariances of a nonlinear model are one matrix each")
        taper = (
            np.ones((n, p)) if self.localisation is None else np.asarray(self.localisation, dtype=np.float64)
        )
        if taper.shape != (n, p):
            raise InvalidArgument(f"localisation= is {n} by {p}, not of shape {taper.shape}")
        return Known(start, noises[0], noises[1], taper, keys)


def _mixture(name: str, parts: Mixture, size: int) -> StateNoise:
    weights = np.array([float(w) for w, _, _ in parts])
    if not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise InvalidArgument(f"the weights of {name}= are positive and sum to 1, not {weights.tolist()}")
    means = np.array([np.broadcast_to(np.asarray(m, dtype=np.float64), (size,)) for _, m, _ in parts])
    covs = np.array([covariance(name, c, size)[0] for _, _, c in parts])
    return StateNoise(np.log(weights / weights.sum()), means, covs)


def _key(rng: np.random.Generator) -> Any:
    return jax.random.key(int(rng.integers(2**31)))
