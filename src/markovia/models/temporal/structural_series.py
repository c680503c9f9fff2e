"""Structural models of one series: level, slope, season and cycle that change, plus weights of known inputs.

References: Harvey, Forecasting, Structural Time Series Models and the Kalman Filter (1989).
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.learning.sequences.state_space_likelihood import LikelihoodParameter
from markovia.models.temporal.parametric_series import ParametricSeries, input_parameters, variance_of
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Whole
from markovia.runtime.keyword_advice import guided_settings


@guided_settings
@dataclass(eq=False, repr=False)
class StructuralSeries(ParametricSeries):
    """A series as the sum of a trend, a season, a cycle, weighted inputs and noise.

    Parameters
    ----------
    trend
        "local level": a random walk under noise. "local linear trend": its slope walks too. "smooth trend": only the slope
        walks. "random walk": a level without noise.
    seasonal
        The number of seasons, which may change over time; None for none.
    cycle
        Whether there is a cycle, which dies out and is kept alive by noise.
    cycle_bounds
        The shortest and longest period of the cycle.
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
    """

    trend: Literal["local level", "local linear trend", "smooth trend", "random walk"] = "local level"
    _: KW_ONLY
    seasonal: Annotated[int | None, Whole(2, none=True)] = None
    cycle: bool = False
    cycle_bounds: tuple[float, float] = (2.0, 50.0)

    def _parameters(self, values: Array | None, inputs: Array | None) -> list[LikelihoodParameter]:
        names = [
            *([] if self.trend == "random walk" else ["irregular"]),
            *([] if self.trend == "smooth trend" else ["level"]),
            *(["slope"] if self.trend in ("local linear trend", "smooth trend") else []),
            *(["seasonal"] if self.seasonal else []),
            *(["cycle"] if self.cycle else []),
        ]
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
        return found + input_parameters(inputs, spread)

    def _matrices(self, params: Mapping[str, float]) -> StateSpace:
        from scipy.linalg import block_diag

        sloping = self.trend in ("local linear trend", "smooth trend")
        T = [np.array([[1.0, 1.0], [0.0, 1.0]]) if sloping else np.eye(1)]
        noise = [params.get("level", 0.0), *([params["slope"]] if sloping else [])]
        shown = [1.0, *([0.0] if sloping else [])]
        start = [np.inf] * len(shown)
        if self.seasonal:
            k = self.seasonal - 1
            season = np.eye(k, k=-1)
            season[0] = -1.0
            T.append(season)
            noise += [params["seasonal"]] + [0.0] * (k - 1)
            shown += [1.0] + [0.0] * (k - 1)
            start += [np.inf] * k
        if self.cycle:
            rho, at = params["damping"], params["frequency"]
            turn = rho * np.array([[np.cos(at), np.sin(at)], [-np.sin(at), np.cos(at)]])
            T.append(turn)
            noise += [params["cycle"]] * 2
            shown += [1.0, 0.0]
            # its own law: a diffuse start would make ever quicker damping ever more likely
            start += [params["cycle"] / (1 - rho**2)] * 2
        return state_space(
            block_diag(*T),
            np.diag(noise),
            np.array([shown]),
            params.get("irregular", 0.0),
            initial_cov=np.diag(start),
        )
