"""Series whose state-space matrices are a function of a few parameters, which are learned by maximum likelihood."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import IncompleteModel, InvalidArgument
from markovia.inference.sequences.kalman_filter import KalmanFilter
from markovia.inference.sequences.state_space import StateSpace
from markovia.learning.sequences.state_space_likelihood import LikelihoodParameter, fit_likelihood
from markovia.models.temporal.kalman_model import KalmanModel
from markovia.models.temporal.linear_state_space import LinearStateSpace
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Tolerance, check_options


@dataclass(eq=False, repr=False, kw_only=True)
class ParametricSeries(KalmanModel):
    """A state-space model with named parameters: what presets have in common.

    Attributes
    ----------
    params_
        The parameters of greatest likelihood, by name.
    standard_errors_
        Of each, from the observed information; NaN for a variance that is zero, or what the data do not tell.
    log_likelihood_, aic_, bic_, n_seen_
        Of the data that were learned from, and how many numbers those were; `summary()` has all in a table.
    n_iter_, converged_
        How many iterations there were, and whether they settled.
    """

    form = "covariance"
    params: Mapping[str, float] | Sequence[float] | None = None
    max_iter: Count = 500
    tol: Tolerance = 1e-9

    @abstractmethod
    def _parameters(self, values: Array | None, inputs: Array | None) -> list[LikelihoodParameter]:
        """Return the parameters of series like these, with where they start and how large they are."""

    @abstractmethod
    def _matrices(self, params: Mapping[str, float]) -> StateSpace:
        """Return the matrices that parameters stand for."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the parameters, in their order, without those of inputs."""
        check_options(self)
        return tuple(name for group in self._parameters(None, None) for name in group.names)

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
        for group in self._parameters(None, None):
            if wrong := group.outside(np.array([found[name] for name in group.names])):
                raise InvalidArgument(f"params= has {wrong}")
        return found

    def _values(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return self._known(), vars(self).get("standard_errors_", {})

    def _facts(self) -> dict[str, Any]:
        known = vars(self)
        fit = {"numbers": "n_seen_", "log likelihood": "log_likelihood_", "AIC": "aic_", "BIC": "bic_"}
        return {said: known.get(name) for said, name in fit.items()} | super()._facts()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_() if "params_" in vars(self) else str(super()._repr_html_())

    def _input_matrices(self) -> dict[str, Any]:
        return {"transition_input": None, "observation_input": _weights(self._known())}

    def fit(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> Self:
        """Learn the parameters by maximum likelihood; each input gets a weight of its own.

        Raises
        ------
        InvalidArgument
            For sequences that the model cannot have.
        """
        check_options(self)
        rows, u = self._read(sequences, lengths, by, inputs)
        values, centre = self._centred(rows.numbers(), rows.offsets)
        # a missing step in between, so that no difference is that of two sequences
        apart = np.insert(values, rows.offsets[1:-1], np.nan, axis=0)
        groups = self._parameters(apart, u)
        names = [name for group in groups for name in group.names]
        start = np.concatenate([group.start for group in groups])

        def whole(params: Array) -> float:
            named = dict(zip(names, params.tolist(), strict=True))
            return float(self._filter(named, rows, values, u).log_prob.sum())

        base = whole(start)  # says what is wrong with the data
        quick = self._quick_likelihood(names, rows, values, u)
        # what the first numbers of series say of their unknown start does not depend on parameters
        rest = 0.0 if quick is None else base - quick(start)
        log_likelihood = whole if quick is None else lambda params: quick(params) + rest
        unknown = int(self._matrices(dict(zip(names, start.tolist(), strict=True))).diffuse.sum())
        seen = _numbers_beyond(values, rows.offsets, unknown, len(names))
        found = fit_likelihood(
            log_likelihood, groups, start, count=seen, max_iter=self.max_iter, tol=self.tol
        )
        params, slopes = self._uncentred(dict(zip(names, found.params.tolist(), strict=True)), centre)
        untold = np.isnan(found.covariance)
        covariance = slopes @ np.where(untold, 0.0, found.covariance) @ slopes.T
        self.params_ = params
        self.covariance_ = np.where(np.abs(slopes) @ untold @ np.abs(slopes).T > 0, np.nan, covariance)
        self.standard_errors_ = dict(zip(names, np.sqrt(np.diag(self.covariance_)).tolist(), strict=True))
        self.log_likelihood_, self.n_seen_ = whole(found.params), seen
        free = len(names) + int(self.space.diffuse.sum())  # a diffuse state is told by data as a parameter is
        self.aic_ = 2 * free - 2 * self.log_likelihood_
        self.bic_ = float(np.log(seen)) * free - 2 * self.log_likelihood_
        self.n_iter_, self.converged_ = found.iterations, found.converged
        return self

    def _quick_likelihood(
        self, names: Sequence[str], rows: Sequences, values: Array, u: Array | None
    ) -> Callable[[Array], float] | None:
        """Return a quick function with the slopes of the log likelihood, up to a constant; None where there is none."""
        return None

    def _centred(self, values: Array, offsets: Ints) -> tuple[Array, float]:
        """Return series around their mean, where a parameter takes that up, and the mean."""
        return values, 0.0

    def _uncentred(self, params: dict[str, float], centre: float) -> tuple[dict[str, float], Array]:
        """Return the parameters of series that are not centred, and their slopes by the others'."""
        return params, np.eye(len(params))

    def _filter(
        self, params: Mapping[str, float], rows: Sequences, values: Array, u: Array | None
    ) -> KalmanFilter:
        weights = _weights(params)
        push = None if u is None or weights is None else u @ weights.T
        return KalmanFilter(
            self._matrices(params), values, rows.offsets, observation_push=push, at=rows.at, times=100
        )


LinearStateSpace.register(ParametricSeries)  # type: ignore[type-abstract]  # a preset is one too, with settings of its own


def input_parameters(inputs: Array | None, spread: float) -> list[LikelihoodParameter]:
    """Return the weights of inputs as parameters, of a size that turns inputs into a series of such a variance."""
    if inputs is None:
        return []
    count = inputs.shape[1]
    sizes = tuple((spread / variance_of(u)) ** 0.5 for u in inputs.T)
    return [LikelihoodParameter(tuple(f"input{i}" for i in range(count)), (0.0,) * count, sizes=sizes)]


def variance_of(*series: Array) -> float:
    """Return the variance of the first of some series that has one, else a mean square: a number in the data's unit."""
    seen = [one[np.isfinite(one)] for one in series]
    found = [float(np.var(one)) for one in seen if len(one)] + [
        float(np.mean(one**2)) for one in seen if len(one)
    ]
    return next((v for v in found if v > 0), 1.0)


def _numbers_beyond(values: Array, offsets: Ints, unknown: int, parameters: int) -> int:
    """Return how many numbers were seen; refuse fewer than parameters, and none beyond those which tell the start."""
    each = np.add.reduceat((~np.isnan(values)).sum(axis=1), offsets[:-1])
    total, some = int(each.sum()), bool((each > unknown).any())
    if total < parameters or not some:
        spent = f", and every sequence spends {unknown} on its unknown start" if unknown else ""
        few = f"too little to learn {parameters} parameters from" if some else "nothing to learn from"
        raise InvalidArgument(
            f"there is {few}: {total or 'no'} number{'s' * (total != 1)} in all{spent}; give longer series"
            + ", or a model with fewer parameters" * some
        )
    return total


def _weights(params: Mapping[str, float]) -> Array | None:
    found = [value for name, value in params.items() if name.startswith("input")]
    return np.array([found]) if found else None
