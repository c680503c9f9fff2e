"""What the settings of a hidden Markov model say: known values, starting values, priors, and how data is read."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Annotated, Any, Literal

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument
from markovia.learning.components.discrete import Categorical, read_symbols
from markovia.learning.components.families import (
    Components,
    Observations,
    checked_prior,
    parameter,
    probabilities,
)
from markovia.learning.components.normal_sums import CovarianceType
from markovia.learning.components.regressions import (
    LaggedCategorical,
    RegressionGaussian,
    read_lagged,
    read_regression,
)
from markovia.learning.components.tied import Tied, read_groups, untied
from markovia.learning.sequences.baum_welch import Algorithm, HiddenMarkov, Priors, started_chain, with_told
from markovia.learning.sequences.chain_laws import Driven, HigherOrder, started_order
from markovia.learning.sequences.transition_masks import Structure, fixed_moves
from markovia.models.temporal.hidden_states.emission_families import family_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import (
    Count,
    Decay,
    FromZero,
    FromZeroOrNone,
    TimeLimit,
    Tolerance,
    Whole,
    check_options,
)


@dataclass(eq=False, repr=False)
class HMMSettings:
    """The settings of models of hidden states, checked and turned into models to begin with; `HMM` says what they mean."""

    n_states: Annotated[int, Whole(1, 32_000)] = 1
    _: KW_ONLY
    emission: Any = "categorical"
    covariance_type: CovarianceType = "full"
    n_mixtures: Count = 2
    structure: Structure = "ergodic"
    band: FromZeroOrNone = None
    transition_mask: Any = None
    tied: Sequence[Sequence[int]] | None = None
    order: Annotated[int, Whole(1, 8)] = 1
    lags: FromZero = 0
    inputs_to: Literal["both", "transitions", "emissions"] = "both"
    input_penalty: Tolerance = 1e-2
    symbols: Sequence[Any] | None = None
    start: Any = None
    transition: Any = None
    emission_params: Mapping[str, Any] | None = None
    init: Literal["keep", "data"] = "keep"
    algorithm: Algorithm = "baum-welch"
    start_prior: Any = 1.0
    transition_prior: Any = 1.0
    emission_prior: Mapping[str, Any] | None = None
    batch_size: Count = 32
    learning_decay: Decay = 0.7
    max_iter: Count = 100
    tol: Tolerance = 1e-5
    n_init: Count = 1
    n_jobs: int | None = None
    random_state: Any = None
    progress: bool | None = None
    time_limit: TimeLimit = None
    checkpoint: str | PathLike[str] | None = None

    def _priors(self) -> Priors:
        return Priors(
            _concentration(self.start_prior, "start_prior"),
            _concentration(self.transition_prior, "transition_prior"),
            checked_prior(self._family().priors, self.emission_prior),
            self._fixed_moves(),
            float(self.input_penalty),
        )

    def _check(self) -> None:
        check_options(self)
        self._family()
        self._given_chain()

    def _given_chain(self) -> tuple[Array | None, Array | None]:
        k, fixed = self.n_states, self._fixed_moves()
        if self.order > 1 and fixed is not None:
            raise InvalidArgument(
                "order= above 1 has its zeros in transition=, not in structure= or transition_mask="
            )
        start = transition = None
        if self.start is not None:
            axes = (k,) if np.ndim(self.start) == 1 else (k,) * self.order
            start = parameter(self.start, "start=", axes)
            start = probabilities(start.ravel(), "start=", (start.size,)).reshape(axes)
        if self.transition is not None and self.order == 1 and np.ndim(self.transition) == 3:
            transition = parameter(self.transition, "transition=", (k, k, None))
        elif self.transition is not None:
            transition = probabilities(self.transition, "transition=", (k,) * (self.order + 1))
        if start is None and self.structure == "left-right":
            start = np.eye(k)[0]
        if transition is not None and transition.ndim == 2 and fixed is not None:
            apart = np.abs(np.where(np.isnan(fixed), transition, fixed) - transition)
            if apart.max() > 1e-6:
                i, j = np.unravel_index(int(apart.argmax()), apart.shape)
                raise InvalidArgument(
                    f"transition= has {transition[i, j]:g} for the move from state {i} to {j}, which is fixed at "
                    f"{fixed[i, j]:g}"
                )
        return start, transition

    def _fixed_moves(self) -> Array | None:
        """Return the moves whose probability is fixed, NaN for others; None where all are free."""
        if self.structure == "ergodic" and self.transition_mask is None:
            return None
        return fixed_moves(self.structure, self.n_states, self.band, self.transition_mask)

    def _family(self, inputs: int = 0) -> Any:
        """Return the family of emissions, with so many inputs."""
        named = self.emission_params if isinstance(self.emission_params, Mapping) else {}
        drives = self.inputs_to != "transitions" and (inputs > 0 or "inputs" in named)
        if self.emission == "gaussian" and (self.lags or drives):
            return RegressionGaussian
        if self.lags and self.emission != "categorical":
            raise InvalidArgument(
                f"lags= are for 'gaussian' and 'categorical' emissions, not {self._emits()}"
            )
        return LaggedCategorical if self.lags else family_of(self.emission, self.emission_params)

    def _emits(self) -> str:
        """Name the emission in a message."""
        if isinstance(self.emission, str):
            return repr(self.emission)
        return str(getattr(self.emission, "__name__", type(self.emission).__name__))

    def _given_emission(self, inputs: int = 0) -> Components | None:
        if self.emission_params is None:
            return None
        return self._emission_of(dict(self.emission_params), self.symbols, inputs)

    def _emission_of(
        self, given: dict[str, Any], symbols: Sequence[Any] | None, inputs: int = 0
    ) -> Components:
        """Return checked emissions from parameters by name."""
        family = self._family(inputs)
        needed = {"means", "covariances"} if family is RegressionGaussian else set(family.names)
        if not needed <= set(given) <= set(family.names):
            raise InvalidArgument(
                f"emission_params= of {self._emits()} has {', '.join(family.names)}, not {', '.join(given) or 'nothing'}"
            )
        groups = read_groups(self.tied, self.n_states)
        count = self.n_states if groups is None else int(groups.max()) + 1
        options = self._options(symbols)
        if family is RegressionGaussian:
            options = {**options, "p": self.lags, "q": inputs}
        elif family is LaggedCategorical:
            options = {**options, "p": self.lags}
        return self._tied(family.of(count, given, **options))

    def _tied(self, emission: Components) -> Components:
        groups = read_groups(self.tied, self.n_states)
        last = np.arange(self.n_states**self.order) % self.n_states
        if groups is None and self.order == 1:
            return emission
        return Tied(emission, last if groups is None else groups[last], last)

    def _options(self, symbols: Sequence[Any] | None, *, making: bool = False) -> dict[str, Any]:
        """Return what a family needs to be made, besides parameters."""
        if self.emission == "categorical":
            return {"symbols": symbols}
        if self.emission in ("gaussian", "gmm", "student-t"):
            more = {"parts": self.n_mixtures} if making and self.emission == "gmm" else {}
            return {"kind": self.covariance_type, **more}
        return {}

    def _observations(
        self, data: Sequences, inputs: Array | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        symbols: Sequence[Any] | None = None
        q = 0 if inputs is None else inputs.shape[1]
        family = self._family(q)
        if self.emission == "categorical":
            given = untied(self._given_emission())
            symbols = self.symbols if given is None else given.symbols
            symbols = Categorical.symbols_in(data) if symbols is None else tuple(symbols)
            seen = read_lagged(data, symbols, self.lags) if self.lags else read_symbols(data, symbols)
        elif family is RegressionGaussian:
            q = 0 if self.inputs_to == "transitions" else q
            seen = read_regression(data, inputs if q else None, self.lags)
        else:
            seen = family.read(data)
        if (seen.codes == len(seen.rows)).all():
            raise InvalidArgument("all steps of the sequences are missing")
        options = self._options(symbols, making=True)
        if family is RegressionGaussian or self.lags:
            options |= {"p": self.lags, **({"q": q} if family is RegressionGaussian else {})}
        return replace(seen, inputs=inputs), options

    def _begins(
        self,
        seen: Observations,
        options: dict[str, Any],
        priors: Priors,
        states: Ints | None,
        runs: int,
        rng: np.random.Generator,
    ) -> list[Any]:
        """Return starting values for each run."""
        start, transition = self._given_chain()
        q = 0 if seen.inputs is None else seen.inputs.shape[1]
        given = self._given_emission(q)
        if given is not None:
            counting = self.emission in ("poisson", "bernoulli", "multinomial")
            width = next(iter(given.params.values())).shape[-1] if counting else 0
            if counting and width != seen.rows.shape[1]:
                raise InvalidArgument(
                    f"the sequences have {seen.rows.shape[1]} columns, emission_params= {width}"
                )
        groups = read_groups(self.tied, self.n_states)
        count = self.n_states if groups is None else int(groups.max()) + 1
        found = []
        for i in range(runs):
            kept = given is not None and self.init == "keep" and i == 0
            emission = (
                given
                if kept and given is not None
                else self._tied(self._family(q).started(seen, count, rng, **options))
            )
            one = self._law(rng, start, transition, emission, 0 if self.inputs_to == "emissions" else q)
            found.append(one if states is None or kept else with_told(one, seen, states, priors))
        return found

    def _law(
        self,
        rng: np.random.Generator,
        start: Array | None,
        transition: Array | None,
        emission: Components,
        inputs: int = 0,
    ) -> Any:
        """Return a model to begin with, from emissions and what is given of the chain."""
        k, fixed = self.n_states, self._fixed_moves()
        if self.order > 1:
            if inputs:
                raise InvalidArgument("inputs= drive chains of order 1; say inputs_to='emissions'")
            return HigherOrder(*started_order(k, self.order, rng, start, transition), emission)
        weights = transition if transition is not None and transition.ndim == 3 else None
        if not inputs and weights is None:
            return HiddenMarkov(*started_chain(k, rng, start, transition, fixed), emission)
        if fixed is not None and (np.nan_to_num(fixed) > 0.0).any():
            raise InvalidArgument(
                "transition_mask= has fixed values, and inputs= drive all moves; give truth values"
            )
        allowed = np.ones((k, k), dtype=bool) if fixed is None else np.isnan(fixed)
        first, plain = started_chain(k, rng, start, transition if weights is None else None, fixed)
        if weights is None:
            weights = np.zeros((k, k, 1 + inputs))
            weights[..., 0] = np.where(allowed, np.log(np.where(plain > 0.0, plain, 1e-3)), 0.0)
        elif inputs and weights.shape[2] != 1 + inputs:
            raise InvalidArgument(
                f"transition= has weights of {weights.shape[2] - 1} inputs; there are {inputs}"
            )
        return Driven(first, weights, emission, allowed)


def _concentration(value: Any, name: str) -> Array:
    found = np.asarray(value, dtype=np.float64)
    if not (found > 0.0).all():
        raise InvalidArgument(f"{name}= is a concentration, above 0, not {value!r}")
    return found
