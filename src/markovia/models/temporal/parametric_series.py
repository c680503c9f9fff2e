"""Series whose state-space matrices are a function of a few parameters, which are learned by maximum likelihood."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from markovia.data.sequences import Sequences, read_sequences
from markovia.errors import IncompleteModel, InvalidArgument
from markovia.inference.sequences.kalman_filter import Form, KalmanFilter
from markovia.inference.sequences.state_space import StateSpace
from markovia.learning.sequences.state_space_likelihood import Parameter, fit_likelihood
from markovia.models.temporal.linear_state_space import LinearStateSpace
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_number


class ParametricSeries(LinearStateSpace):
    """A state-space model with named parameters: what presets have in common.

    Attributes
    ----------
    params_
        The parameters of greatest likelihood, by name.
    standard_errors_
        Of each, from the observed information; NaN for a variance that is zero, or what the data do not tell.
    log_likelihood_, aic_, bic_
        Of the data that were learned from.
    n_iter_, converged_
        How many iterations there were, and whether they settled.
    """

    form: Form = "covariance"
    params: Mapping[str, float] | Sequence[float] | None
    max_iter: int
    tol: float

    @abstractmethod
    def _parameters(self, values: Array | None, inputs: int) -> list[Parameter]:
        """Return the parameters of series like these, with where they start."""

    @abstractmethod
    def _matrices(self, params: Mapping[str, float]) -> StateSpace:
        """Return the matrices that parameters stand for."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters, in their order, without those of inputs."""
        return tuple(name for group in self._parameters(None, 0) for name in group.names)

    def _given(self) -> StateSpace:
        return self._matrices(self._known())

    def _known(self) -> dict[str, float]:
        if hasattr(self, "params_"):
            return dict(self.params_)
        if self.params is None:
            raise IncompleteModel("the parameters are not known; fit the model, or give params=")
        names = self.parameter_names
        if isinstance(self.params, Mapping):
            found = {str(name): float(value) for name, value in self.params.items()}
        else:
            extra = tuple(f"input{i}" for i in range(len(self.params) - len(names)))
            found = dict(zip(names + extra, map(float, self.params), strict=False))
        missing = [name for name in names if name not in found]
        if missing or any(n not in names and not n.startswith("input") for n in found):
            raise InvalidArgument(
                f"params= has one number for each of {', '.join(names)}, then input0, input1, ..."
            )
        return found

    def _input_matrices(self) -> dict[str, Any]:
        return {"transition_input": None, "observation_input": _weights(self._known())}

    def fit(
        self,
        sequences: Any,
        lengths: Iterable[int] | None = None,
        *,
        by: str | None = None,
        inputs: Any = None,
    ) -> Self:
        """Learn the parameters by maximum likelihood; each input gets a weight of its own.

        Raises
        ------
        InvalidArgument
            For sequences that the model cannot have.
        """
        check_count("max_iter", self.max_iter, 1)
        check_number("tol", self.tol)
        rows = read_sequences(sequences, lengths, by=by)
        values, u = rows.numbers(), self._read_inputs(inputs, lengths, by)
        if u is not None and len(u) != len(values):
            raise InvalidArgument(f"inputs= has {len(u):,} steps, but the sequences have {len(values):,}")
        groups = self._parameters(values, 0 if u is None else u.shape[1])
        names = [name for group in groups for name in group.names]
        start = np.concatenate([group.start for group in groups])

        def log_likelihood(params: Array) -> float:
            return float(
                self._filter(dict(zip(names, params.tolist(), strict=True)), rows, values, u).log_prob.sum()
            )

        log_likelihood(start)  # says what is wrong with the data
        found = fit_likelihood(log_likelihood, groups, start, max_iter=self.max_iter, tol=self.tol)
        self.params_ = dict(zip(names, found.params.tolist(), strict=True))
        self.standard_errors_ = dict(zip(names, found.standard_errors.tolist(), strict=True))
        self.covariance_ = found.covariance
        self.log_likelihood_ = found.log_likelihood
        seen = int((~np.isnan(values)).sum())
        free = len(names) + int(self.space.diffuse.sum())  # a diffuse state is told by data as a parameter is
        self.aic_ = 2 * free - 2 * found.log_likelihood
        self.bic_ = float(np.log(seen)) * free - 2 * found.log_likelihood
        self.n_iter_, self.converged_ = found.iterations, found.converged
        return self

    def _filter(
        self, params: Mapping[str, float], rows: Sequences, values: Array, u: Array | None
    ) -> KalmanFilter:
        weights = _weights(params)
        push = None if u is None or weights is None else u @ weights.T
        return KalmanFilter(
            self._matrices(params), values, rows.offsets, observation_push=push, at=rows.at, times=100
        )


def input_parameters(count: int) -> list[Parameter]:
    """Return the weights of inputs as parameters."""
    return [Parameter(tuple(f"input{i}" for i in range(count)), (0.0,) * count)] if count else []


def _weights(params: Mapping[str, float]) -> Array | None:
    found = [value for name, value in params.items() if name.startswith("input")]
    return np.array([found]) if found else None
