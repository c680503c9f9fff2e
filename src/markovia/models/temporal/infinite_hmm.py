"""Hidden Markov models whose number of states is learned: the hierarchical Dirichlet process HMM, sticky or not.

References: Teh and others (2006); Van Gael, Saatci, Teh and Ghahramani (2008) for beam sampling; Fox, Sudderth, Jordan and
Willsky (2011) for the sticky model and its weak limit. Cost of a sweep: steps times states squared.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.concentrations import ConcentrationSetting, concentration_of
from markovia.inference.collapsed.partition_posterior import PartitionPosterior
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.learning.components.conjugate import ConjugateComponents
from markovia.learning.components.discrete import Categorical, read_symbols
from markovia.learning.components.families import Observations, checked_prior, clusters
from markovia.learning.components.normal_sums import column_scale
from markovia.learning.sequences.infinite_hmm import BeamSampler, InfiniteChain, InfinitePriors, WeakLimit
from markovia.models.temporal.hidden_states.emission_families import EMISSIONS
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.sequence_model import GivenSequences
from markovia.models.temporal.state_questions import ChainData, StateQuestions
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import (
    Choice,
    Count,
    Damping,
    Either,
    Flag,
    NumberRange,
    Whole,
    check_options,
)
from markovia.runtime.estimator import Estimator, check_fitted
from markovia.runtime.seeds import generator

FAMILIES = ("categorical", "gaussian", "poisson", "bernoulli", "multinomial")
STAYING = NumberRange(
    0.0, 1.0, open="high", said="the share of a state's concentration that stays, from 0 up to but not 1"
)
STICKY = (5.0, 1.0)
"""The beta prior of the share of a state's concentration that stays, where it is learned."""


@dataclass(eq=False, repr=False)
class InfiniteHMM(SamplerSettings, StateQuestions, Estimator):
    """A hidden Markov model with as many states as the data asks for.

    Sequences are read, and questions about them answered, as by `HMM`.

    Parameters
    ----------
    emission
        What a state emits: "categorical", "gaussian", "poisson", "bernoulli" or "multinomial".
    method
        "beam" draws whole paths through infinitely many states; "weak-limit" through `max_states`.
    sticky
        Whether states tend to stay: False; True, and how much is learned; or the share of a state's concentration that
        stays.
    max_iter
        Sweeps; the second half is kept.
    max_states
        The states of the weak limit.
    n_start
        With how many states sampling begins.
    covariance_type
        "full", "diag" or "spherical", for "gaussian".
    symbols
        The symbols of categorical emissions, where the data may not have all.
    emission_prior
        The prior of emissions, as for `HMM`. By default weak: one observation of each symbol, or for Gaussians a covariance
        of a fraction of the data's and means that lie about the data.
    alpha, gamma
        The concentrations of rows and of the states they share: a number, or shape and rate of a gamma prior.
    min_mass
        The share of all steps from which a state counts.
    random_state, time_limit, checkpoint, progress
        The seed; seconds after which sampling ends with what it has; a file to write and to go on from; a bar.

    Attributes
    ----------
    n_states_
        The number of states with `min_mass` of the steps or more that most draws have.
    n_states_draws_
        That number in each draw.
    hmm_
        An `HMM` with the parameters of the most probable draw that has `n_states_` states.
    alpha_, gamma_, stickiness_
        The means of the draws.
    history_
        log p(path, data | parameters) after each sweep.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> states = np.repeat([0, 1, 2, 0, 2, 1], 30)
    >>> x = rng.normal([-5.0, 0.0, 5.0], 0.5, (180, 3))[np.arange(180), states]
    >>> model = InfiniteHMM("gaussian", max_iter=60, random_state=0).fit(x)
    >>> model.n_states_, len(model.predict(x))
    (3, 180)
    """

    emission: Annotated[str, Choice(FAMILIES)] = "categorical"
    _: KW_ONLY
    method: Literal["beam", "weak-limit"] = "beam"
    sticky: Annotated[bool | float, Either((Flag(), STAYING))] = False
    max_iter: Count = 400
    max_states: Annotated[int, Whole(2)] = 20
    n_start: Count = 10
    covariance_type: Literal["full", "diag", "spherical"] = "full"
    symbols: Any = None
    emission_prior: Mapping[str, Any] | None = None
    alpha: ConcentrationSetting = (1.0, 1.0)
    gamma: ConcentrationSetting = (1.0, 1.0)
    min_mass: Damping = 0.01

    def fit(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Self:
        """Draw paths and parameters given sequences, and return the model itself; on an error it stays as it was."""
        check_options(self)
        data = self._read(sequences, lengths, by).rows
        rng = generator(self.random_state)
        seen, template = self._observations(data, rng)
        rho = STICKY if self.sticky is True else float(self.sticky)
        priors = InfinitePriors(
            concentration_of(self.alpha), concentration_of(self.gamma), rho, self._prior(seen)
        )
        sampler: InfiniteChain = (
            BeamSampler(seen, template, priors)
            if self.method == "beam"
            else WeakLimit(seen, template, priors, self.max_states)
        )
        sampler.settling = self.max_iter // 2
        count = min(self.n_start, self.max_states) if self.method == "weak-limit" else self.n_start
        sampler.start(_first_path(seen, template, count, rng), rng)

        def keep() -> dict[str, Any]:
            start, transition, emission = sampler.hidden_markov(self.min_mass)
            numbers = np.array([len(start), sampler.alpha, sampler.gamma, sampler.rho, sampler.log_prob()])
            return {
                "states": sampler.states.astype(np.int32), "numbers": numbers, "start": start, "transition": transition,
                **{f"emission_{name}": value for name, value in emission.params.items()},
            }  # fmt: skip

        about = (seen.rows, seen.codes, seen.offsets, self.method, priors, self.max_iter // 2)
        run = self._sweeps(sampler, rng, keep, burn_in=self.max_iter // 2, name="infinite HMM", about=about)
        numbers = np.array([draw["numbers"] for draw in run.draws])
        self.n_states_draws_ = numbers[:, 0].astype(np.int64)
        self.n_states_ = int(np.bincount(self.n_states_draws_).argmax())
        self.alpha_, self.gamma_, self.stickiness_ = numbers[:, 1:4].mean(axis=0).tolist()
        self.states_draws_ = np.array([draw["states"] for draw in run.draws])
        self.n_features_in_ = data.values.shape[1]
        best = run.draws[int(np.argmax(np.where(numbers[:, 0] == self.n_states_, numbers[:, 4], -np.inf)))]
        self.hmm_ = self._handed_over(best, template)
        return self

    def n_states_posterior(self) -> Posterior:
        """Return the posterior of the number of states, from the draws kept."""
        check_fitted(self, "hmm_")
        info = Info(f"{self.method} sampling", iterations=self.n_iter_)
        return Posterior.of_draws("states", self.n_states_draws_, info)

    def partition_posterior(self) -> PartitionPosterior:
        """Return what the draws say of which steps share a state, whatever its name."""
        check_fitted(self, "hmm_")
        return PartitionPosterior(self.states_draws_)

    # answers are those of `hmm_`

    def _seen(self, given: GivenSequences) -> ChainData:
        check_fitted(self, "hmm_")
        return self.hmm_._seen(given)

    def _draw(self, steps: int, n: int, inputs: Any, seed: Any) -> tuple[list[Any], ...]:
        check_fitted(self, "hmm_")
        return self.hmm_._draw(steps, n, inputs, seed)

    @property
    def n_free(self) -> int:
        """The number of free parameters of `hmm_`."""
        return self.hmm_.n_free

    def _observations(
        self, data: Sequences, rng: np.random.Generator
    ) -> tuple[Observations, ConjugateComponents]:
        """Return the data as observations, and emissions of one state whose values do not matter."""
        family = EMISSIONS[self.emission]
        options: dict[str, Any] = {}
        if self.emission == "categorical":
            symbols = Categorical.symbols_in(data) if self.symbols is None else tuple(self.symbols)
            seen, options = read_symbols(data, symbols), {"symbols": symbols}
        else:
            seen = family.read(data)
            if self.emission == "gaussian":
                options = {"kind": self.covariance_type}
        if (seen.codes == len(seen.rows)).all():
            raise InvalidArgument("all steps of the sequences are missing")
        template: ConjugateComponents = family.started(seen, 1, rng, **options)
        return seen, template

    def _prior(self, seen: Observations) -> dict[str, Any]:
        """Return the prior of emissions, all that the data decides by default decided now."""
        said = checked_prior(EMISSIONS[self.emission].priors, self.emission_prior)
        if self.emission == "gaussian":
            d = seen.rows.shape[1]
            spread = column_scale(seen.rows.var(axis=0), seen.rows.mean(axis=0))
            scale = np.diag(spread) / (d + 2.0) if self.covariance_type == "full" else np.diag(spread) / 4.0
            return {"mean": seen.rows.mean(axis=0), "strength": 0.1, "scale": scale, "df": d + 2.0} | said
        if self.emission == "poisson":
            return {"shape": 1.0, "rate": 1.0 / np.maximum(seen.rows.mean(axis=0), 1e-10)} | said
        return said

    def _handed_over(self, draw: Mapping[str, Array], template: ConjugateComponents) -> HMM:
        options: dict[str, Any] = (
            {"covariance_type": self.covariance_type} if self.emission == "gaussian" else {}
        )
        params = {name: draw[f"emission_{name}"] for name in template.names}
        if self.emission == "categorical":
            options["symbols"] = template.symbols  # type: ignore[attr-defined]
        if self.emission == "gaussian" and self.covariance_type != "full":
            diagonals = np.diagonal(params["covariances"], axis1=1, axis2=2)
            params["covariances"] = diagonals if self.covariance_type == "diag" else diagonals[:, 0]
        return HMM(
            self.n_states_, emission=self.emission, start=draw["start"], transition=draw["transition"],
            emission_params=params, **options,
        )  # fmt: skip


def _first_path(seen: Observations, template: ConjugateComponents, k: int, rng: np.random.Generator) -> Ints:
    """Return states to begin with: clusters of observations, missing ones by chance; symbols begin by chance."""
    if isinstance(template, Categorical):
        return rng.integers(0, k, len(seen.codes))
    found = np.append(clusters(seen.rows, k, rng), 0)[seen.codes]
    missing = seen.codes == len(seen.rows)
    return np.where(missing, rng.integers(0, k, len(found)), found).astype(np.int64)
