"""Switching state-space models: linear Gaussian dynamics whose matrices a hidden Markov chain of regimes chooses.

    s[t+1] ~ M[s[t]],  x[t+1] = A[s[t+1]] x[t] + b[s[t+1]] + N(0, Q[s[t+1]]),  y[t] = C[s[t]] x[t] + d[s[t]] + N(0, R[s[t]])

Answers are those of `markovia.inference.sequences.switching_filter`, learning is expectation-maximisation.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.sequences.forecast import Forecast, GaussianSteps
from markovia.inference.sequences.padded import PerSequence
from markovia.inference.sequences.state_results import FilteredStates, SmoothedStates
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.inference.sequences.switching_filter import Back, Forward, Method, Regimes
from markovia.inference.sequences.switching_runs import (
    ImpossibleSequenceError,
    all_paths,
    filter_runs,
    smoother_runs,
)
from markovia.learning.sequences.switching_em import learn_switching
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.hidden_states.component_nodes import add_vector
from markovia.models.temporal.sequence_model import GivenSequences
from markovia.models.temporal.state_space_model import (
    CountedStateSpace,
    StateSpaceModel,
    continued,
    entries_of,
)
from markovia.models.temporal.state_stream import ResumedStream
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, TimeLimit, Tolerance, check_count, check_options
from markovia.runtime.estimator import Estimator
from markovia.runtime.keyword_advice import guided_settings
from markovia.runtime.seeds import Seed, generator

MATRICES = (
    "transition", "transition_cov", "observation", "observation_cov", "initial_mean", "initial_cov", "transition_offset",
    "observation_offset",
)  # fmt: skip
STACKED = (
    "transition", "transition_offset", "transition_cov", "observation", "observation_offset", "observation_cov",
    "initial_mean", "initial_cov",
)  # fmt: skip
"""The matrices in the order of `Regimes`."""
LEARNED = (*MATRICES[:6], "regime_start", "regime_transition")


@guided_settings
@dataclass(eq=False, repr=False)
class SwitchingStateSpace(CountedStateSpace, StateSpaceModel, Estimator):
    """A linear Gaussian state-space model for each of some regimes, which follow a Markov chain.

    Parameters
    ----------
    transition, transition_cov, observation, observation_cov, initial_mean, initial_cov
        As `LinearStateSpace` has them, either once for all regimes or with one a regime along a first axis. The regime of
        a step has moved the state there.
    transition_offset, observation_offset
        Added to the next state and to the observation; likewise.
    regime_transition
        The chain: one row a regime. By default a regime stays with probability 0.95.
    regime_start
        The probability of each first regime; equal by default.
    method
        "gpb2" and "imm" (merged Gaussians), "rao-blackwell" (particles with a Kalman filter each), or "exact" (all paths
        of regimes, for some ten steps).
    particles, paths
        Of "rao-blackwell": how many paths the filter keeps, and how many are drawn backwards to smooth.
    learn
        The names of what `fit` learns; everything but offsets by default. What regimes share stays shared.
    max_iter, tol
        `fit` stops after so many iterations, or when the log likelihood changes by no more than this a number observed.
    random_state
        The seed of particles.
    progress
        Whether `fit` shows a progress bar; by default on a terminal if it takes long.
    time_limit
        Seconds after which `fit` ends with what it has; Ctrl-C does so too.

    Attributes
    ----------
    transition_, transition_cov_, observation_, observation_cov_, initial_mean_, initial_cov_, transition_offset_, \
observation_offset_, regime_start_, regime_transition_
        What was learned, with one entry a regime.
    log_likelihoods_, n_iter_, converged_
        The log likelihood before each iteration, how many there were, and whether they settled.

    Examples
    --------
    >>> model = SwitchingStateSpace(
    ...     transition=1.0, transition_cov=[[[0.01]], [[4.0]]], observation=1.0, observation_cov=0.1,
    ...     regime_transition=[[0.9, 0.1], [0.1, 0.9]],
    ... )
    >>> found = model.smooth([0.0, 0.1, 0.0, 3.0, 5.0, 2.0])
    >>> found.regimes[0][:, 1].round(1).tolist()
    [0.3, 0.3, 0.4, 1.0, 1.0, 1.0]
    """

    transition: ArrayLike = 1.0
    transition_cov: ArrayLike = 1.0
    observation: ArrayLike = 1.0
    observation_cov: ArrayLike = 1.0
    initial_mean: ArrayLike = 0.0
    initial_cov: ArrayLike = 1.0
    _: KW_ONLY
    transition_offset: ArrayLike | None = None
    observation_offset: ArrayLike | None = None
    regime_transition: ArrayLike | None = None
    regime_start: ArrayLike | None = None
    method: Method = "gpb2"
    particles: Count = 500
    paths: Count = 100
    learn: Sequence[str] | None = None
    max_iter: Count = 100
    tol: Tolerance = 1e-6
    time_limit: TimeLimit = None
    random_state: Seed = None
    progress: bool | None = None
    _takes_inputs: ClassVar[bool] = False

    # -- the model ---------------------------------------------------------------------------------------------

    @property
    def n_regimes(self) -> int:
        """How many regimes there are."""
        if self.regime_transition is not None:
            return len(np.atleast_1d(np.asarray(self.regime_transition)))
        stacked = [len(np.asarray(v)) for name in MATRICES if (v := self._apart(name)) is not None]
        return stacked[0] if stacked else 1

    def _apart(self, name: str) -> Any:
        """Return a parameter that has one entry a regime, else None."""
        value = getattr(self, name)
        deep = 2 if name.endswith(("mean", "offset")) else 3
        return None if value is None or np.ndim(value) != deep else value

    @property
    def _regimes(self) -> Regimes:
        return self._regimes_ if hasattr(self, "_regimes_") else self._given()

    def _given(self) -> Regimes:
        K = self.n_regimes
        spaces: list[StateSpace] = []
        for k in range(K):
            own = {}
            for name in MATRICES:
                value, apart = getattr(self, name), self._apart(name)
                if apart is not None and len(np.asarray(apart)) != K:
                    raise InvalidArgument(
                        f"{name}= is there for {len(np.asarray(apart))} regimes, not for {K}"
                    )
                own[name] = value if apart is None else np.asarray(apart)[k]
            spaces.append(state_space(**own))
            if spaces[-1].diffuse.any():
                raise InvalidArgument(
                    "a switching model has no diffuse start; give initial_cov= finite variances"
                )
        stay = np.where(np.eye(K, dtype=bool), 0.95, 0.05 / max(1, K - 1)) if K > 1 else np.ones((1, 1))
        moves = (
            stay if self.regime_transition is None else np.asarray(self.regime_transition, dtype=np.float64)
        )
        start = (
            np.full(K, 1 / K)
            if self.regime_start is None
            else np.asarray(self.regime_start, dtype=np.float64)
        )
        for name, value, shape in (("regime_transition", moves, (K, K)), ("regime_start", start, (K,))):
            if value.shape != shape or (value < 0).any() or (np.abs(value.sum(axis=-1) - 1) > 1e-6).any():
                raise InvalidArgument(f"{name}= has probabilities of {K} regimes that sum to 1 in each row")
        with np.errstate(divide="ignore"):
            chain = (np.log(start / start.sum()), np.log(moves / moves.sum(axis=1, keepdims=True)))

        def every(name: str) -> Array:
            first = name.startswith("initial")
            return np.array([getattr(s, name) if first else getattr(s, name)[0] for s in spaces])

        return Regimes(
            *chain,
            *map(every, ("transition", "transition_offset", "transition_cov")),
            *map(
                every, ("observation", "observation_offset", "observation_cov", "initial_mean", "initial_cov")
            ),
        )

    # -- questions ---------------------------------------------------------------------------------------------

    def _log_prob(self, given: GivenSequences) -> Array:
        return np.array([float(one.log_prob) for one in self._forward(given.rows)])

    def filter(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> FilteredStates:
        """Return states and regimes given what was observed up to each step.

        Parameters
        ----------
        sequences, lengths, by
            One array a sequence, one array with lengths, or a frame with a column of ids; NaN is missing.
        """
        rows = self._read(sequences, lengths, by).rows
        model, found = self._regimes, self._forward(rows)
        parts: list[Any] = []
        for one in found:
            w = np.exp(one.prior_logs)
            laws = (
                GaussianSteps(np.exp(one.logs), one.mean, one.cov),
                GaussianSteps(w, one.prior_mean, one.prior_cov),
                GaussianSteps(w, *_seen(model, one)),
            )
            parts.append([*(part for law in laws for part in (law.mean, law.cov)), np.exp(one.logs)])
        names = ("mean", "cov", "predicted_mean", "predicted_cov", "expected", "expected_cov", "regimes")
        named: dict[str, Any] = {
            name: PerSequence([part[i] for part in parts], single=rows.single) for i, name in enumerate(names)
        }
        y = PerSequence.of(rows.numbers(), rows.offsets, rows.single)
        return FilteredStates(y=y, log_prob=np.array([float(one.log_prob) for one in found]), **named)

    def smooth(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> SmoothedStates:
        """Return states and regimes given whole sequences."""
        rows = self._read(sequences, lengths, by).rows
        found = self._back(rows, self._regimes)
        laws = [GaussianSteps(np.exp(one.logs), one.mean, one.cov) for one in found]
        return SmoothedStates(
            PerSequence([law.mean for law in laws], single=rows.single),
            PerSequence([law.cov for law in laws], single=rows.single),
            np.array([float(one.log_prob) for one in found]),
            PerSequence([law.weights for law in laws], single=rows.single),
        )

    def _forecast(self, given: GivenSequences, steps: int, ahead: Array | None, level: float) -> Forecast:
        # laws are the mixtures of regimes
        model, observed, states, last = self._regimes, [], [], []
        for one in self._forward(continued(given, steps, ahead).rows):
            last.append(tuple(part[-steps - 1] for part in (one.logs, one.mean, one.cov)))
            w = np.exp(one.prior_logs[-steps:])
            observed.append(GaussianSteps(w, *(part[-steps:] for part in _seen(model, one))))
            states.append(GaussianSteps(w, one.prior_mean[-steps:], one.prior_cov[-steps:]))
        regimes = PerSequence([law.weights for law in states], single=given.rows.single)
        paths = partial(self._paths_ahead, last, steps)
        return Forecast(observed, states, level, given.rows.single, regimes, paths=paths)

    def _expected(self, given: GivenSequences) -> PerSequence:
        return self.filter(given.rows).expected

    def _paths_ahead(
        self, last: list[tuple[Array, ...]], steps: int, n: int, rng: np.random.Generator
    ) -> list[Array]:
        """Draw paths that begin in the law of each last state and regime, which is a Gaussian a regime."""
        model = self._regimes
        begins = [model._replace(start=logs, mean=mean, cov=cov) for logs, mean, cov in last]
        return [self._walked(begin, steps + 1, n, rng)[0][:, 1:] for begin in begins]

    def _draw(self, steps: int, n: int, inputs: Any, seed: Seed) -> tuple[list[Any], ...]:
        # what is hidden are states and regimes
        y, x, s = self._walked(self._regimes, steps, n, generator(seed))
        return list(y), list(x), list(s)

    def _walked(
        self, model: Regimes, steps: int, n: int, rng: np.random.Generator
    ) -> tuple[Array, Array, Ints]:
        """Draw n sequences of observations, states and regimes."""
        spread, noise, first = (_roots(cov) for cov in (model.Q, model.R, model.cov))
        chain = np.cumsum(np.exp(model.moves), axis=1)
        s = np.empty((n, steps), dtype=np.int64)
        x, y = np.empty((n, steps, model.mean.shape[1])), np.empty((n, steps, model.d.shape[1]))

        def drawn(roots: Array, regimes: Array) -> Array:
            found: Array = np.einsum("nab,nb->na", roots[regimes], rng.normal(size=(n, roots.shape[-1])))
            return found

        for t in range(steps):
            edges = np.cumsum(np.exp(model.start))[None] if t == 0 else chain[s[:, t - 1]]
            s[:, t] = k = (edges[:, :-1] <= rng.random((n, 1)) * edges[:, -1:]).sum(axis=1)
            if t:
                x[:, t] = np.einsum("nab,nb->na", model.A[k], x[:, t - 1]) + model.b[k] + drawn(spread, k)
            else:
                x[:, t] = model.mean[k] + drawn(first, k)
            y[:, t] = np.einsum("nab,nb->na", model.C[k], x[:, t]) + model.d[k] + drawn(noise, k)
        return y, x, s

    def unroll(self, T: int) -> BayesianNetwork:
        """Return the network over T steps: regimes `s@0`, states `x0@0`, ... and observations `y0@0`, ....

        Examples
        --------
        >>> model = SwitchingStateSpace(1.0, [[[0.01]], [[4.0]]], 1.0, 0.1)
        >>> net = model.unroll(2)
        >>> p = net.query("s@1", given={"y0@0": 0.0, "y0@1": 4.0})[1]
        >>> bool(abs(p - model.filter([0.0, 4.0]).regimes[0][1, 1]) < 1e-8)
        True
        """
        check_count("T", T, 1)
        model, network = self._regimes, BayesianNetwork()
        K, n, p = len(model.start), model.mean.shape[1], model.d.shape[1]
        states: list[str] = []
        for t in range(T):
            regime, before = f"s@{t}", states
            if t:
                network.add(regime, states=list(range(K)), parents=[f"s@{t - 1}"], p=np.exp(model.moves))
            else:
                network.add(regime, states=list(range(K)), p=np.exp(model.start))
            states = [f"x{i}@{t}" for i in range(n)]
            none = np.zeros((K, n, 0))
            bias, matrix, cov = (model.b, model.A, model.Q) if t else (model.mean, none, model.cov)
            add_vector(network, states, bias, matrix, before, cov, [regime])
            add_vector(network, [f"y{j}@{t}" for j in range(p)], model.d, model.C, states, model.R, [regime])
        return network

    def stream(self) -> ResumedStream:
        """Return a filter that takes one observation at a time: mean and covariance of the state, and P(regime).

        Raises
        ------
        UnsupportedModel
            For "exact" and "rao-blackwell", which keep paths of regimes.

        Examples
        --------
        >>> stream = SwitchingStateSpace(transition_cov=[[[0.01]], [[4.0]]], observation_cov=0.1).stream()
        >>> [stream.update(y)[2].round(2).tolist() for y in (0.0, 0.1, 3.0)]
        [[0.5, 0.5], [0.82, 0.18], [0.0, 1.0]]
        """
        if self.method not in ("gpb2", "imm"):
            raise UnsupportedModel(
                f"a stream keeps a Gaussian a regime, and method={self.method!r} paths of regimes; filter() of all steps so "
                "far answers, or method='gpb2' or 'imm'"
            )
        return ResumedStream(self, self._regimes.d.shape[1])

    def _resumed(
        self, law: tuple[Array, ...] | None, given: GivenSequences
    ) -> tuple[tuple[Array, ...], tuple[Array, ...], float]:
        model = self._regimes
        if law is not None:
            model = model._replace(start=law[0], mean=law[1], cov=law[2])
        (one,) = self._forward(given.rows, model)
        logs, mean, cov = (np.asarray(part)[-1] for part in (one.logs, one.mean, one.cov))
        shares = np.exp(logs)
        centre = shares @ mean
        away = mean - centre
        spread = np.einsum("k,kab->ab", shares, cov + away[:, :, None] * away[:, None, :])
        return (logs, mean, cov), (centre, spread, shares), float(one.log_prob)

    # -- learning ----------------------------------------------------------------------------------------------

    def fit(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Self:
        """Learn what `learn` names by expectation-maximisation, from what is given on.

        Expectations are the method's: with "exact" the likelihood never falls, else it may by their error, and the best
        model of all iterations is taken.
        """
        check_options(self)
        learn = LEARNED if self.learn is None else tuple(self.learn)
        unknown = sorted(set(learn) - {*LEARNED, *MATRICES})
        if unknown:
            raise InvalidArgument(
                f"learn= names {unknown[0]!r}; a model learns {', '.join(dict.fromkeys((*LEARNED, *MATRICES)))}"
            )
        rows = self._read(sequences, lengths, by).rows
        found = learn_switching(
            self._given(), rows.numbers(), lambda model: self._back(rows, model, self.max_iter), learn,
            [name for name in MATRICES if self._apart(name) is None], max_iter=self.max_iter, tol=self.tol,
            time_limit=self.time_limit, progress=self.progress,
        )  # fmt: skip
        self._regimes_ = best = found.state
        for name, value in zip(STACKED, best[2:], strict=True):
            setattr(self, f"{name}_", np.asarray(value))
        self.regime_start_, self.regime_transition_ = np.exp(best.start), np.exp(best.moves)
        self.log_likelihoods_, self.n_iter_, self.converged_ = (
            found.history,
            len(found.history),
            found.converged,
        )
        self.n_seen_ = self._counted(rows)
        found.warn(self.tol)
        return self

    def _values(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        model = self._regimes
        chain = {"regime_start": np.exp(model.start), "regime_transition": np.exp(model.moves)}
        return {**chain, **{n: np.asarray(x) for n, x in zip(STACKED[:6], model[2:8], strict=True)}}, {}

    @property
    def n_free(self) -> int:
        """The number of free parameters: what `learn` names, once for all regimes where they share it."""
        model, learn = self._given(), LEARNED if self.learn is None else tuple(self.learn)
        K, total = self.n_regimes, 0
        total += (K - 1) * ("regime_start" in learn) + K * (K - 1) * ("regime_transition" in learn)
        for name, value in zip(STACKED, model[2:], strict=True):
            if name in learn:
                each = entries_of(name, np.ones(np.shape(value)[1:], dtype=bool))
                total += each * (1 if self._apart(name) is None else K)
        return total

    # -- running -----------------------------------------------------------------------------------------------

    def _check(self, rows: Sequences, model: Regimes) -> Array:
        check_options(self)
        values: Array = rows.numbers()
        if values.shape[1] != model.d.shape[1]:
            raise InvalidArgument(
                f"the sequences have {values.shape[1]} numbers a step, but the model observes {model.d.shape[1]}"
            )
        return values

    def _forward(self, rows: Sequences, begun: Regimes | None = None) -> list[Forward]:
        model = self._regimes if begun is None else begun
        values = self._check(rows, model)
        if self.method == "exact":
            return [one for one, _ in self._all_paths(rows, values, model)]
        rng = generator(self.random_state)
        return self._named(rows, filter_runs, model, values, rows.offsets, self.method, self.particles, rng)

    def _back(self, rows: Sequences, model: Regimes, times: int = 1) -> list[Back]:
        values = self._check(rows, model)
        if self.method == "exact":
            return [one for _, one in self._all_paths(rows, values, model)]
        how = (self.method, self.particles, self.paths, generator(self.random_state), times)
        return self._named(rows, smoother_runs, model, values, rows.offsets, *how)

    def _named(self, rows: Sequences, run: Callable[..., list[Any]], *given: Any) -> list[Any]:
        """Run something; say which sequence is impossible."""
        try:
            return run(*given)
        except ImpossibleSequenceError as error:
            raise InvalidArgument(
                f"sequence {rows.names[error.sequence]!r} has an observation that no regime can have, or a covariance is "
                "singular; give observation_cov= some noise"
            ) from None

    def _all_paths(self, rows: Sequences, values: Array, model: Regimes) -> list[tuple[Forward, Back]]:
        found: list[Any] = self._named(rows, all_paths, model, values, rows.offsets)
        for name, T, one in zip(rows.names, rows.lengths, found, strict=True):
            if one is None:
                raise UnsupportedModel(
                    f"sequence {name!r} has {len(model.start)}^{T} paths of regimes, too many for method='exact'; take "
                    "'gpb2' or 'rao-blackwell'"
                )
        return found


def _seen(model: Regimes, one: Forward) -> tuple[Array, Array]:
    """Return what each regime expects to be observed at each step."""
    expected = np.einsum("kab,tkb->tka", model.C, one.prior_mean) + model.d
    return expected, model.C @ one.prior_cov @ model.C.swapaxes(1, 2) + model.R


def _roots(cov: Array) -> Array:
    """Return L with L L' = V for each covariance V, which may be singular."""
    values, vectors = np.linalg.eigh(cov)
    found: Array = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return found
