"""Structural models of one series: level, slope, season, cycle and autoregression, plus weights of known inputs.

References: Harvey, Forecasting, Structural Time Series Models and the Kalman Filter (1989).
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.learning.sequences.state_space_likelihood import LikelihoodParameter
from markovia.models.temporal.parametric_series import ParametricSeries, input_parameters, variance_of
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Choice, FromZero, Whole
from markovia.runtime.keyword_advice import guided_settings


class Trend(NamedTuple):
    """What a trend is made of: noise of the observation, a level, noise of the level, a slope, noise of the slope."""

    irregular: bool
    level: bool
    moving_level: bool
    slope: bool
    moving_slope: bool


TRENDS = {
    "irregular": Trend(True, False, False, False, False),
    "fixed intercept": Trend(False, True, False, False, False),
    "deterministic constant": Trend(True, True, False, False, False),
    "local level": Trend(True, True, True, False, False),
    "random walk": Trend(False, True, True, False, False),
    "fixed slope": Trend(False, True, False, True, False),
    "deterministic trend": Trend(True, True, False, True, False),
    "local linear deterministic trend": Trend(True, True, True, True, False),
    "random walk with drift": Trend(False, True, True, True, False),
    "local linear trend": Trend(True, True, True, True, True),
    "smooth trend": Trend(True, True, False, True, True),
    "random trend": Trend(False, True, False, True, True),
}
SHORT = {
    "ntrend": "irregular", "dconstant": "deterministic constant", "llevel": "local level", "rwalk": "random walk",
    "dtrend": "deterministic trend", "lldtrend": "local linear deterministic trend", "rwdrift": "random walk with drift",
    "lltrend": "local linear trend", "strend": "smooth trend", "rtrend": "random trend",
}  # fmt: skip
"""The short words of statsmodels for trends."""


class TrendWord(Choice):
    """The name of a trend, or its short form."""

    def admits(self, value: Any) -> bool:
        """Say whether a value names a trend."""
        return super().admits(SHORT.get(value, value) if isinstance(value, str) else value)


@guided_settings
@dataclass(eq=False, repr=False)
class StructuralSeries(ParametricSeries):
    """A series as the sum of a trend, a season, a cycle, an autoregression, weighted inputs and noise.

    Parameters
    ----------
    trend
        "local level": a random walk under noise. "local linear trend": its slope walks too. "smooth trend": only the slope
        walks. "local linear deterministic trend": only the level walks, along a fixed slope. "deterministic trend" and
        "deterministic constant": a line and a constant under noise. "irregular": noise alone. The same without noise of
        the observation, which another part then has to have or the level itself has: "random walk", "random walk with
        drift", "random trend", "fixed slope" and "fixed intercept". The short forms of statsmodels ("lltrend") say the
        same.
    seasonal
        The number of seasons, which may change over time; None for none.
    cycle
        Whether there is a cycle, which dies out and is kept alive by noise.
    cycle_bounds
        The shortest and longest period of the cycle.
    autoregressive
        How many steps back a stationary autoregression looks that is added; 0 for none.
    params
        The parameters where they are known, by name or in the order of `parameter_names`.
    max_iter, tol
        When `fit` stops.

    Examples
    --------
    >>> y = [3.0, 3.5, 3.2, 4.1, 4.4, 4.2, 5.0, 5.3, 4.9, 6.1]
    >>> found = StructuralSeries("local linear trend").fit(y)
    >>> sorted(found.params_), found.forecast(y, 2).mean[0].shape
    (['irregular', 'level', 'slope'], (2, 1))
    >>> StructuralSeries("deterministic trend", autoregressive=1).parameter_names
    ('irregular', 'autoregressive', 'ar1')
    """

    trend: Annotated[str, TrendWord(tuple(TRENDS))] = "local level"
    _: KW_ONLY
    seasonal: Annotated[int | None, Whole(2, none=True)] = None
    cycle: bool = False
    cycle_bounds: tuple[float, float] = (2.0, 50.0)
    autoregressive: FromZero = 0

    @property
    def _trend(self) -> Trend:
        return TRENDS[SHORT.get(self.trend, self.trend)]

    def _parameters(self, values: Array | None, inputs: Array | None) -> list[LikelihoodParameter]:
        names = [
            *(["irregular"] if self._trend.irregular else []),
            *(["level"] if self._trend.moving_level else []),
            *(["slope"] if self._trend.moving_slope else []),
            *(["seasonal"] if self.seasonal else []),
            *(["cycle"] if self.cycle else []),
            *(["autoregressive"] if self.autoregressive else []),
        ]
        if not names:
            raise InvalidArgument(
                f"trend={self.trend!r} has no noise of its own; add autoregressive=, cycle= or seasonal=, or take "
                "'deterministic constant' or 'deterministic trend'"
            )
        spread = 1.0 if values is None else variance_of(np.diff(values[:, 0]), values[:, 0])
        found = [LikelihoodParameter(tuple(names), (spread / len(names),) * len(names), "positive")]
        if self.cycle:
            short, long = self.cycle_bounds
            if not 2 <= short < long:
                raise InvalidArgument(
                    f"cycle_bounds= are two periods from 2 on, the shorter first, not {self.cycle_bounds!r}"
                )
            low, high = 2 * np.pi / long, 2 * np.pi / short
            found.append(LikelihoodParameter(("frequency",), ((low * high) ** 0.5,), "interval", low, high))
            found.append(LikelihoodParameter(("damping",), (0.9,), "interval", 0.0, 1.0))
        if k := self.autoregressive:
            lags = tuple(f"ar{i + 1}" for i in range(k))
            found.append(LikelihoodParameter(lags, (0.5,) + (0.0,) * (k - 1), "stationary"))
        return found + input_parameters(inputs, spread)

    def _matrices(self, params: Mapping[str, float]) -> StateSpace:
        from scipy.linalg import block_diag, solve_discrete_lyapunov

        # the level, then the slope: as many rows and columns of this as there are of the two
        size = int(self._trend.level) + int(self._trend.slope)
        T = [np.array([[1.0, 1.0], [0.0, 1.0]])[:size, :size]]
        noise = [params.get("level", 0.0), params.get("slope", 0.0)][:size]
        shown = [1.0, 0.0][:size]
        starts = [np.diag([np.inf] * size)]
        if self.seasonal:
            k = self.seasonal - 1
            season = np.eye(k, k=-1)
            season[0] = -1.0
            T.append(season)
            noise += [params["seasonal"]] + [0.0] * (k - 1)
            shown += [1.0] + [0.0] * (k - 1)
            starts.append(np.diag([np.inf] * k))
        if self.cycle:
            rho, at = params["damping"], params["frequency"]
            turn = rho * np.array([[np.cos(at), np.sin(at)], [-np.sin(at), np.cos(at)]])
            T.append(turn)
            noise += [params["cycle"]] * 2
            shown += [1.0, 0.0]
            # its own law: a diffuse start would make ever quicker damping ever more likely
            starts.append(np.eye(2) * params["cycle"] / (1 - rho**2))
        if k := self.autoregressive:
            lags = np.eye(k, k=-1)
            lags[0] = [params[f"ar{i + 1}"] for i in range(k)]
            T.append(lags)
            own = [params["autoregressive"]] + [0.0] * (k - 1)
            noise += own
            shown += [1.0] + [0.0] * (k - 1)
            starts.append(solve_discrete_lyapunov(lags, np.diag(own)))
        if not shown:  # noise alone: a state that is always zero
            T, noise, shown, starts = [np.zeros((1, 1))], [0.0], [0.0], [np.zeros((1, 1))]
        return state_space(
            block_diag(*T),
            np.diag(noise),
            np.array([shown]),
            params.get("irregular", 0.0),
            initial_cov=block_diag(*starts),
        )
