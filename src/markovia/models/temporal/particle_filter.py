"""Particle filters: state-space models of any distributions, followed by weighted draws.

    x[0] ~ initial,  x[t] ~ transition(x[t-1]),  y[t] ~ observation(x[t])

The algorithms are in `markovia.inference.particles`. References: Gordon, Salmond and Smith (1993); Chopin and
Papaspiliopoulos, An Introduction to Sequential Monte Carlo (2020).
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np

from markovia.data.sequences.sequences import Lengths
from markovia.errors import InvalidArgument
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.particles.filtering import Filter, fresh_seeds, step_keys
from markovia.inference.particles.laws import by_name, value_of
from markovia.inference.particles.model import ParticleModel, shape_of
from markovia.inference.particles.moves import Moves
from markovia.inference.particles.parameter_chains import ParameterChains
from markovia.inference.particles.results import (
    ParticleFiltered,
    ParticleSmoothed,
    ParticleStep,
    check_trouble,
    filtered,
    forecast,
    plain,
    weighted,
)
from markovia.inference.particles.simulation import predict, simulate
from markovia.inference.particles.smoothing import backward_paths, fixed_lag
from markovia.inference.particles.two_filter import two_filter
from markovia.inference.particles.unknown_parameters import Unknown
from markovia.inference.sequences.forecast import Forecast
from markovia.inference.sequences.padded import PerSequence
from markovia.inference.weighted_draws.resampling import Scheme
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.particle_data import ParticleData, particle_data
from markovia.models.temporal.particle_network import coded, network_laws
from markovia.models.temporal.particle_state import ParticleState, after
from markovia.models.temporal.sequence_model import GivenSequences, inputs_of_steps
from markovia.models.temporal.state_space_model import StateSpaceModel
from markovia.models.temporal.state_stream import ParticleStream
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, Whole, check_choice, check_count, check_level, check_options
from markovia.runtime.double_precision import x64
from markovia.runtime.estimator import Estimator
from markovia.runtime.keyword_advice import guided_settings
from markovia.runtime.seeds import Seed

Method = Literal["bootstrap", "guided", "auxiliary", "twisted"]
Smoothing = Literal["backward", "fixed-lag", "two-filter"]


@guided_settings
@dataclass(eq=False, repr=False)
class ParticleFilter(StateSpaceModel, Estimator):
    """A state-space model of any distributions, answered by particles.

    Parameters
    ----------
    initial
        The distribution of the first state: one of `markovia.distributions`, or a mapping from names to such for a state
        of several quantities. A function of the parameters that returns one is fine too.
    transition
        A function of a state that returns the distribution of the next one. It is written for one state and runs for
        all particles at once, so it computes with `jax.numpy`. It also gets what it has an argument for: `t`, the step
        that it moves to, `u`, that step's inputs, parameters by name, and the quantities of a state by name.
    observation
        A function of a state, as above, that returns the distribution of its observation.
    n_particles
        How many particles.
    method
        "bootstrap" draws the next state from the transition; "guided" from `proposal`, or else from the best one that it
        can make itself; "auxiliary" resamples by how well a state explains the next observation; "twisted" by how well it
        explains all that come, as `twist` says, and is guided too.
    proposal, initial_proposal
        A function of the state before and of `y` that returns the distribution to draw the next state from, and one of
        `y` for the first state. Steps with missing numbers draw from the transition.
    lookahead
        For "auxiliary": a function of a state and `y`, the next observation, that returns the log of a weight; by default
        the density of `y` at the mean of the next state.
    twist
        For "twisted": a function of a state and `t` that returns the log of a weight, at best log p(y[t+1:] | x[t]).
    parameters
        By name, a number for a known parameter of the functions, or a prior for an unknown one; see `posterior`.
    resampling
        "systematic", "stratified", "residual" or "multinomial".
    ess_threshold
        Particles are resampled where their effective number is below this share; 1 resamples always, 0 never.
    random_state
        A whole number for the same answers again.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import markovia.distributions as dist
    >>> volatility = ParticleFilter(
    ...     initial=dist.Normal(0, 1),
    ...     transition=lambda x: dist.Normal(0.95 * x, 0.3),
    ...     observation=lambda x: dist.Normal(0, jnp.exp(x / 2)),
    ...     n_particles=2_000,
    ...     random_state=0,
    ... )
    >>> found = volatility.filter([0.1, -0.4, 3.0, 2.0, -2.5])
    >>> found.mean[0].shape, bool(found.mean[0][-1] > found.mean[0][0])
    ((5,), True)
    >>> bool(abs(found.log_evidence[0] + 11.9) < 0.1)
    True
    """

    initial: Any = None
    transition: Any = None
    observation: Any = None
    _: KW_ONLY
    n_particles: Annotated[int, Whole(2)] = 1_000
    method: Method = "bootstrap"
    proposal: Any = None
    initial_proposal: Any = None
    lookahead: Any = None
    twist: Any = None
    parameters: Mapping[str, Any] | None = None
    resampling: Scheme = "systematic"
    ess_threshold: Annotated[float, NumberRange(0.0, 1.0, said="a number from 0 to 1")] = 0.5
    random_state: Seed = None

    _not_saved: ClassVar[tuple[str, ...]] = ("_state", "_prepared")
    _state: ParticleState | None = field(default=None, init=False)
    _prepared: tuple[tuple[Any, ...], Filter] | None = field(default=None, init=False)

    @classmethod
    def from_network(
        cls, process: DynamicBayesianNetwork, observed: str | Sequence[str], **settings: Any
    ) -> "ParticleFilter":
        """Return the particle filter of a dynamic network; states and observations have the names of its variables.

        Parameters
        ----------
        process
            Discrete, linear Gaussian and other nodes may be mixed; each depends on its own step and the one before.
        observed
            Which variables are observed; sequences have columns of these names.
        settings
            What else the filter takes, such as `n_particles=`.

        Examples
        --------
        >>> import markovia as mk
        >>> rain = mk.DynamicBayesianNetwork()
        >>> rain.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> rain.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
        >>> pf = ParticleFilter.from_network(rain, "umbrella", n_particles=20_000, random_state=0)
        >>> found = pf.filter({"umbrella": ["yes", "yes"]})
        >>> bool(abs(found.probs[0]["rain"][1, 1] - 0.883) < 0.02)
        True
        """
        return cls(**network_laws(process, observed), **settings)

    # -- questions ---------------------------------------------------------------------------------------------

    def filter(
        self,
        sequences: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        quantiles: Sequence[float] = (),
        keep: bool = False,
    ) -> ParticleFiltered:
        """Return the states given what was observed up to each step.

        Parameters
        ----------
        sequences, lengths, by
            One array a sequence, one array with lengths, or a frame with a column of ids; NaN is missing.
        inputs
            Known inputs, in the same form, where a function has an argument `u`.
        quantiles
            Which quantiles of each number to compute, such as `(0.05, 0.95)`.
        keep
            Whether to return the particles of all steps, with their ancestors.

        Raises
        ------
        InvalidArgument
            Where all particles have weight zero, or a density is NaN; it names the step and the sequence.
        """
        for q in quantiles:
            check_level("quantiles", q)
        data, moves = self._data(self._read(sequences, lengths, by, inputs))
        return filtered(
            self._runs(data, moves, tuple(map(float, quantiles)), keep),
            data.read.lengths.tolist(),
            single=data.read.single,
        )

    def _log_prob(self, given: GivenSequences) -> Array:
        # its exponential is estimated without bias
        data, moves = self._data(given)
        return np.array([float(cloud.log_evidence) for cloud, _ in self._runs(data, moves, (), False)])

    def smooth(
        self,
        sequences: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        method: Smoothing = "backward",
        draws: int = 200,
        lag: int = 20,
    ) -> ParticleSmoothed:
        """Return the states given whole sequences.

        Parameters
        ----------
        sequences, lengths, by, inputs
            As in `filter`.
        method
            "backward" draws whole paths backward through the particles; "fixed-lag" lets observations more than `lag` steps
            later not count, which is fast and needs no density of the transition; "two-filter" joins the filter with a
            second one that runs backward, for states that are real numbers.
        draws
            How many paths, or how many particles of the second filter.
        lag
            How many later steps count in fixed-lag smoothing.

        Examples
        --------
        >>> import markovia.distributions as dist
        >>> level = ParticleFilter(
        ...     dist.Normal(0, 10), lambda x: dist.Normal(x, 1), lambda x: dist.Normal(x, 1), random_state=0
        ... )
        >>> found = level.smooth([1.0, 1.5, np.nan, 3.0])
        >>> found.paths[0].shape, bool(abs(found.mean[0][0] - 1.3) < 0.2)
        ((200, 4), True)
        """
        check_choice("method", method, get_args(Smoothing))
        check_count("draws", draws, 1)
        check_count("lag", lag, 0)
        data, moves = self._data(self._read(sequences, lengths, by, inputs))
        if method == "two-filter" and not moves.shape.real:
            raise InvalidArgument(
                "method='two-filter' is for real numbers without bounds; take 'backward' here"
            )
        runs = self._runs(data, moves, (), True)
        seeds = fresh_seeds(self.random_state, 2 * len(runs))[len(runs) :]
        found, paths = [], []
        for i, ((cloud, record), n) in enumerate(zip(runs, data.read.lengths.tolist(), strict=True)):
            if method == "fixed-lag":
                kept = filtered([(cloud, record)], [n])
                assert kept.ancestors is not None
                states, weights = fixed_lag(kept.particles[0], kept.weights[0], kept.ancestors[0], lag)
            else:
                key, steps = step_keys(seeds[i], 0, 1)[0, 0], np.asarray(n)
                with x64():
                    if method == "backward":
                        given = (key, record.kept, steps, draws, data.of(i).u, self._known())
                        states, logs = (
                            backward_paths(moves.model, *given),
                            np.full((n, draws), -np.log(draws)),
                        )
                    else:
                        ahead = self._filter(moves, (), True)
                        states, logs = two_filter(
                            ahead, key, data.of(i), record.kept, steps, draws, self._known()
                        )
                    states = value_of({k: np.asarray(v)[:n] for k, v in by_name(states).items()})
                    weights = np.exp(np.asarray(logs)[:n])
                if method == "backward":
                    paths.append(plain({k: np.moveaxis(v, 0, 1) for k, v in by_name(states).items()}))
            found.append(weighted(states, weights, moves.shape.states))
        mean, sd, cov, probs = (
            PerSequence((one[k] for one in found), single=data.read.single) for k in range(4)
        )
        evidence = np.array([float(cloud.log_evidence) for cloud, _ in runs])
        return ParticleSmoothed(mean, sd, cov, probs, paths if method == "backward" else None, evidence)

    def _forecast(self, given: GivenSequences, steps: int, ahead: Array | None, level: float) -> Forecast:
        data, moves = self._data(given)
        u = None if ahead is None else _one_or_many(ahead)
        seeds = fresh_seeds(self.random_state, 2 * len(data.read))[len(data.read) :]
        found = []
        for (cloud, _), n, seed in zip(
            self._runs(data, moves, (), False), data.read.lengths, seeds, strict=True
        ):
            with x64():
                keys = step_keys(seed, 0, steps + 1)
                states, seen = predict(self._filter(moves), keys, cloud, np.asarray(n), u, self._known())
            found.append((by_name(states), by_name(seen)))
        return forecast(found, level, single=data.read.single)

    def _draw(self, steps: int, n: int, inputs: Any, seed: Seed) -> tuple[list[Any], ...]:
        # one array a sequence, or a mapping of arrays; the seed is that of the filter by default
        u = None if inputs is None else _one_or_many(inputs_of_steps("inputs", inputs, steps))
        model = self._model()
        shape_of(model, None if u is None else u[0], self._known())
        with x64():
            keys = step_keys(fresh_seeds(self.random_state if seed is None else seed, 1)[0], 0, steps)
            states, seen = simulate(model, keys, n, u, self._known())
        parts = [{k: np.asarray(v) for k, v in by_name(x).items()} for x in (seen, states)]
        ys, xs = ([plain({k: v[:, i] for k, v in part.items()}) for i in range(n)] for part in parts)
        return ys, xs

    # -- parameters --------------------------------------------------------------------------------------------

    def posterior(
        self,
        sequences: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        inputs: Any = None,
        method: Literal["metropolis", "gibbs"] = "metropolis",
        draws: int = 1_000,
        warmup: int = 500,
        chains: int = 4,
        progress: bool | None = None,
    ) -> DrawnPosterior:
        """Return draws of the parameters that have priors, given sequences.

        Parameters
        ----------
        sequences, lengths, by, inputs
            As in `filter`.
        method
            "metropolis" walks over the parameters with the filter's likelihood (particle marginal Metropolis-Hastings);
            "gibbs" alternates between paths and parameters (particle Gibbs with ancestor sampling, by bootstrap moves):
            it needs fewer particles, and a density of the transition. Its draws hold all steps' states too, as `state`
            or by their names.
        draws, warmup, chains
            Draws of each chain, and steps before them that tune the random walk.
        progress
            Whether to show a bar; by default on a terminal if it takes long.

        Examples
        --------
        >>> import markovia.distributions as dist
        >>> model = ParticleFilter(
        ...     dist.Normal(0, 1), lambda x, phi: dist.Normal(phi * x, 0.5), lambda x: dist.Normal(x, 0.5),
        ...     parameters={"phi": dist.Uniform(-1, 1)}, n_particles=50, random_state=0,
        ... )
        >>> post = model.posterior([0.5, 1.0, 1.2, 0.9, 1.1, 0.7], draws=200, warmup=100, chains=2)
        >>> post.draws["phi"].shape, bool(0 < post.mean("phi") < 1)
        ((2, 200), True)
        """
        check_choice("method", method, ("metropolis", "gibbs"))
        for name, value in (("draws", draws), ("warmup", warmup), ("chains", chains)):
            check_count(name, value, 1)
        priors = {n: p for n, p in (self.parameters or {}).items() if hasattr(p, "log_prob")}
        if not priors:
            raise InvalidArgument("no parameter is unknown; give parameters= a prior for those to be learned")
        known = {
            n: np.asarray(v, dtype=np.float64) for n, v in (self.parameters or {}).items() if n not in priors
        }
        made_up = {n: np.zeros(p.shape()) for n, p in priors.items()}
        data, moves = self._data(self._read(sequences, lengths, by, inputs), {**known, **made_up})
        seed = int(fresh_seeds(self.random_state, 1)[0, 0] >> np.uint64(32))
        chained = ParameterChains(
            self._filter(moves), Unknown(priors, known), data.stacked, data.read.lengths
        )
        return chained.draw(method, draws, warmup, chains, seed, progress)

    # -- one observation at a time -----------------------------------------------------------------------------

    def stream(self) -> ParticleStream:
        """Return a filter that takes one observation at a time, and leaves this one as it is; `update` is this one's own.

        Examples
        --------
        >>> import markovia.distributions as dist
        >>> level = ParticleFilter(
        ...     dist.Normal(0, 10), lambda x: dist.Normal(x, 1), lambda x: dist.Normal(x, 1), random_state=0
        ... )
        >>> stream = level.stream()
        >>> [stream.update(y).t for y in (1.0, None)], stream.step, level.state
        ([0, 1], 2, None)
        """
        return ParticleStream(self)

    def update(self, y: Any, u: Any = None) -> ParticleStep:
        """Take one more observation, and return the state after it; NaN is missing.

        Examples
        --------
        >>> import markovia.distributions as dist
        >>> level = ParticleFilter(
        ...     dist.Normal(0, 10), lambda x: dist.Normal(x, 1), lambda x: dist.Normal(x, 1), random_state=0
        ... )
        >>> steps = [level.update(y) for y in (1.0, 2.0, 1.5)]
        >>> steps[-1].t, bool(abs(steps[-1].mean - 1.6) < 0.2), level.state.t
        (2, True, 3)
        """
        settings = tuple(self.get_params(deep=False).values())
        if self._prepared is None or any(
            a is not b for a, b in zip(settings, self._prepared[0], strict=True)
        ):
            check_options(self)
            model = self._model()
            moves = Moves(model, shape_of(model, u, self._known()), self.method)
            self._prepared = settings, self._filter(moves)
        with x64():
            self._state, found = after(self._prepared[1], self._known(), self._state, y, u, self.random_state)
        return found

    @property
    def state(self) -> ParticleState | None:
        """Where the on-line filter stands; None before the first observation. Set it to go on from there, or to None."""
        return self._state

    @state.setter
    def state(self, state: ParticleState | None) -> None:
        if state is not None and not isinstance(state, ParticleState):
            raise InvalidArgument(f"state is a ParticleState or None, not {type(state).__name__}")
        if state is not None and len(state.log_weights) != self.n_particles:
            raise InvalidArgument(
                f"the state has {len(state.log_weights):,} particles, but n_particles={self.n_particles:,}"
            )
        self._state = state

    # -- how ---------------------------------------------------------------------------------------------------

    def _model(self) -> ParticleModel:
        for role in ("initial", "transition", "observation"):
            if getattr(self, role) is None:
                raise InvalidArgument(
                    f"a particle filter needs {role}=, a distribution or a function that returns one"
                )
        own = (self.proposal, self.initial_proposal, self.lookahead, self.twist)
        return ParticleModel(
            self.initial, self.transition, self.observation, *own, tuple(self.parameters or ())
        )

    def _known(self) -> dict[str, Array]:
        """Return the parameters' values; refuse unknown ones."""
        known: dict[str, Array] = {}
        for name, value in (self.parameters or {}).items():
            if hasattr(value, "log_prob"):
                raise InvalidArgument(
                    f"{name!r} is unknown; give its value in parameters=, or ask posterior(...) for it"
                )
            known[name] = np.asarray(value, dtype=np.float64)
        return known

    def _data(self, given: GivenSequences, parameters: Any = None) -> tuple[ParticleData, Moves]:
        check_options(self)
        read = coded(given.rows, getattr(self.observation, "labels", None))
        model, u = self._model(), given.inputs
        one = None if u is None else _one_or_many(u)[0]
        shape = shape_of(model, one, self._known() if parameters is None else parameters)
        return particle_data(read, shape, u), Moves(model, shape, self.method)

    def _filter(self, moves: Moves, quantiles: tuple[float, ...] = (), keep: bool = False) -> Filter:
        return Filter(moves, self.n_particles, self.resampling, float(self.ess_threshold), quantiles, keep)

    def _runs(
        self, data: ParticleData, moves: Moves, quantiles: tuple[float, ...], keep: bool
    ) -> list[tuple[Any, Any]]:
        """Filter each sequence."""
        filter_ = self._filter(moves, quantiles, keep)
        seeds = fresh_seeds(self.random_state, len(data.read))
        runs = []
        with x64():
            for i, (seed, n) in enumerate(zip(seeds, data.read.lengths, strict=True)):
                keys = step_keys(seed, 0, data.room)
                cloud, record = filter_.compiled_run(keys, data.of(i), np.asarray(n), self._known())
                check_trouble(
                    np.asarray(record.trouble)[:n],
                    np.asarray(record.log_evidence)[:n],
                    partial(data.at, i),
                )
                runs.append((cloud, record))
        return runs


def _one_or_many(inputs: Array) -> Array:
    """Return the inputs of steps as functions meet them: a number a step where there is one input, a row otherwise."""
    return inputs[:, 0] if inputs.shape[1] == 1 else inputs
