"""Autoregressive integrated moving averages, with seasons, as state-space models.

States are those of the stationary part (Harvey's form), which starts from its own law, and the last values that
differencing needs, which start diffuse. References: Box and Jenkins (1970); Harvey (1989).
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from math import factorial
from typing import Annotated

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.learning.sequences.arma_likelihood import arma_log_likelihood
from markovia.learning.sequences.state_space_likelihood import LikelihoodParameter
from markovia.models.temporal.parametric_series import ParametricSeries, input_parameters, variance_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Several, Whole
from markovia.runtime.keyword_advice import guided_settings


@guided_settings
@dataclass(eq=False, repr=False)
class ARIMA(ParametricSeries):
    """An autoregressive integrated moving average, with weights of known inputs.

    Parameters
    ----------
    order
        How many autoregressive terms, differences, and moving-average terms.
    seasonal_order
        The same for seasons, and how many steps a year has.
    constant
        Whether the differenced series has a constant: a mean without differences, a drift with one.
    params
        The parameters where they are known, by name or in the order of `parameter_names`.
    max_iter, tol
        When `fit` stops.

    Examples
    --------
    >>> ARIMA((1, 0, 0), params=[0.5, 1.0]).forecast([1.0, 2.0], 2).mean[0][:, 0].tolist()
    [1.0, 0.5]
    >>> ARIMA((1, 1, 1), seasonal_order=(1, 0, 0, 12)).parameter_names
    ('ar1', 'ma1', 'seasonal_ar1', 'variance')
    """

    order: Annotated[tuple[int, int, int], Several(Whole(0), "3 whole numbers, 0 or more", 3)] = (1, 0, 0)
    _: KW_ONLY
    seasonal_order: Annotated[
        tuple[int, int, int, int], Several(Whole(0), "4 whole numbers, 0 or more", 4)
    ] = (0, 0, 0, 0)
    constant: bool = False

    def _parameters(self, values: Array | None, inputs: Array | None) -> list[LikelihoodParameter]:
        p, _, q = self.order
        sp, sd, sq, season = self.seasonal_order
        if (sp or sd or sq) and season < 2:
            raise InvalidArgument(f"seasonal_order= ends with the number of seasons, 2 or more, not {season}")
        groups = [
            ("ar", p, "stationary"), ("ma", q, "invertible"),
            ("seasonal_ar", sp, "stationary"), ("seasonal_ma", sq, "invertible"),
        ]  # fmt: skip
        spread = 1.0 if values is None else variance_of(self._differenced(values[:, 0]), values[:, 0])
        found = [LikelihoodParameter(("constant",), (0.0,), sizes=(spread**0.5,))] if self.constant else []
        for name, count, domain in groups:
            if count:
                names = tuple(f"{name}{i + 1}" for i in range(count))
                found.append(LikelihoodParameter(names, (0.0,) * count, domain))  # type: ignore[arg-type]
        return [
            *found,
            LikelihoodParameter(("variance",), (spread,), "positive"),
            *input_parameters(inputs, spread),
        ]

    def _quick_likelihood(
        self, names: Sequence[str], rows: Sequences, values: Array, u: Array | None
    ) -> Callable[[Array], float] | None:
        # with no gap, a series is its first k numbers and its differences, one to one: a stationary series without noise
        k = len(self._differencing()) - 1
        if np.isnan(values).any() or (rows.lengths <= k).any():
            return None
        offsets = rows.offsets - k * np.arange(len(rows.offsets))

        def changes(columns: Array) -> Array:
            return np.concatenate(
                [np.column_stack([*map(self._differenced, x.T)]) for x in rows.split(columns)]
            )

        y, pushes = changes(values)[:, 0], None if u is None else changes(u)

        def log_likelihood(params: Array) -> float:
            named = dict(zip(names, params.tolist(), strict=True))
            ar, ma = -self._polynomial(named, "ar", -1.0)[1:], self._polynomial(named, "ma", 1.0)[1:]
            weights = [v for name, v in named.items() if name.startswith("input")]
            left = y if pushes is None else y - pushes @ weights
            constant = named.get("constant", 0.0)
            return arma_log_likelihood(ar, ma, named["variance"], constant, left, offsets)

        return log_likelihood

    def _centred(self, values: Array, offsets: Ints) -> tuple[Array, float]:
        """Take out the polynomial whose differences are their mean: far from zero, constant and ar1 are told together."""
        found = [self._differenced(values[a:b, 0]) for a, b in pairwise(offsets.tolist())]
        changes = np.concatenate(found)
        if not self.constant or not np.isfinite(changes).any():
            return values, 0.0
        centre = float(np.nanmean(changes))
        (_, d, _), (_, sd, _, season) = self.order, self.seasonal_order
        t = np.concatenate([np.arange(size, dtype=np.float64) for size in np.diff(offsets)])
        trend = t ** (d + sd) / (factorial(d + sd) * float(season) ** sd)
        return values - centre * trend[:, None], centre

    def _uncentred(self, params: dict[str, float], centre: float) -> tuple[dict[str, float], Array]:
        slopes = np.eye(len(params))
        if centre:
            # a mean m is a constant m (1 - ar1 - ...) (1 - seasonal_ar1 - ...)
            groups = [
                np.array([k.rstrip("0123456789") == name for k in params]) for name in ("ar", "seasonal_ar")
            ]
            own, far = (1.0 - np.array(list(params.values()))[group].sum() for group in groups)
            slopes[0] -= centre * (far * groups[0] + own * groups[1])
            params = {**params, "constant": float(params["constant"] + centre * own * far)}
        return params, slopes

    def _differenced(self, y: Array) -> Array:
        kept = self._differencing()
        return np.convolve(y, kept)[len(kept) - 1 : len(y)]

    def _differencing(self) -> Array:
        found = np.ones(1)
        for _ in range(self.order[1]):
            found = np.convolve(found, [1.0, -1.0])
        _, times, _, season = self.seasonal_order
        for _ in range(times):
            found = np.convolve(found, np.r_[1.0, np.zeros(season - 1), -1.0])
        return found

    def _polynomial(self, params: Mapping[str, float], name: str, sign: float) -> Array:
        """Return one minus (or plus) the coefficients, with the seasons' multiplied in."""
        own = [1.0, *(sign * v for k, v in params.items() if k.rstrip("0123456789") == name)]
        season = self.seasonal_order[3]
        far = [sign * v for k, v in params.items() if k.rstrip("0123456789") == f"seasonal_{name}"]
        seasonal = np.zeros(len(far) * season + 1)
        seasonal[0] = 1.0
        if far:
            seasonal[season::season] = far
        return np.convolve(own, seasonal)

    def _matrices(self, params: Mapping[str, float]) -> StateSpace:
        from scipy.linalg import solve_discrete_lyapunov

        ar, ma = -self._polynomial(params, "ar", -1.0)[1:], self._polynomial(params, "ma", 1.0)
        lags = -self._differencing()[1:]
        r, k = max(len(ar), len(ma)), len(lags)
        T, shown = np.zeros((r + k, r + k)), np.zeros(r + k)
        T[: len(ar), 0] = ar
        T[:r, :r] += np.eye(r, k=1)
        weights = np.zeros(r)
        weights[: len(ma)] = ma
        Q = np.zeros((r + k, r + k))
        Q[:r, :r] = params["variance"] * np.outer(weights, weights)
        shown[0], shown[r:] = 1.0, lags
        if k:
            T[r] = shown
            T[r + 1 :, r:-1] = np.eye(k - 1)
        cov = np.diag(np.r_[np.zeros(r), np.full(k, np.inf)])
        cov[:r, :r] = solve_discrete_lyapunov(T[:r, :r], Q[:r, :r])
        push, mean = np.zeros(r + k), np.zeros(r + k)
        if self.constant:
            push[0] = params["constant"]
            mean[:r] = np.linalg.solve(np.eye(r) - T[:r, :r], push[:r])
        return state_space(T, Q, shown[None], 0.0, mean, cov, push)
