"""Dynamic factor models: many series that follow a few hidden autoregressive ones."""

# ruff: noqa: N806, E741 (letters of the literature)

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.learning.sequences.state_space_likelihood import LikelihoodParameter
from markovia.models.temporal.parametric_series import ParametricSeries, variance_of
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count
from markovia.runtime.keyword_advice import guided_settings


@guided_settings
@dataclass(eq=False, repr=False)
class DynamicFactor(ParametricSeries):
    """Series that load on a few factors, each with noise of its own; factors are a stationary vector autoregression.

    Parameters
    ----------
    n_series
        How many series there are.
    n_factors
        How many factors, with noise of variance 1.
    order
        How many steps back factors look.
    params
        The parameters where they are known, by name or in the order of `parameter_names`.
    max_iter, tol
        When `fit` stops.

    Examples
    --------
    >>> DynamicFactor(2).parameter_names
    ('loading0.0', 'loading1.0', 'variance0', 'variance1', 'ar1.0.0')
    """

    n_series: Count = 2
    n_factors: Count = 1
    order: Count = 1

    def _parameters(self, values: Array | None, inputs: Array | None) -> list[LikelihoodParameter]:
        if inputs is not None:
            raise InvalidArgument("a dynamic factor model takes no inputs")
        p, k = self.n_series, self.n_factors
        loadings, spread, size = np.ones((p, k)), np.ones(p), np.ones(p)
        if values is not None and values.shape[1] == p:
            # in units of each series: the eigenvectors of correlations
            size = np.sqrt([variance_of(one) for one in values.T])
            filled = np.where(np.isnan(values), np.nanmean(values, axis=0), values) / size
            shares, axes = np.linalg.eigh(np.cov(filled.T).reshape(p, p))
            loadings = (axes * np.sqrt(np.maximum(shares, 0)))[:, ::-1][:, :k] * 0.8
            loadings = np.hstack([loadings, np.full((p, k - loadings.shape[1]), 0.1)])
            spread = size**2 * np.maximum(1.0 - (loadings**2).sum(axis=1), 0.1)
            loadings = size[:, None] * loadings
        lag = [f"ar{l + 1}.{i}.{j}" for i in range(k) for l in range(self.order) for j in range(k)]
        start = [
            0.5 if l == 0 and i == j else 0.0 for i in range(k) for l in range(self.order) for j in range(k)
        ]
        return [
            LikelihoodParameter(
                tuple(f"loading{i}.{j}" for i in range(p) for j in range(k)),
                tuple(loadings.ravel().tolist()),
                sizes=tuple(np.repeat(size, k).tolist()),
            ),
            LikelihoodParameter(tuple(f"variance{i}" for i in range(p)), tuple(spread.tolist()), "positive"),
            LikelihoodParameter(tuple(lag), tuple(start), "stationary" if k == 1 else "real"),
        ]

    def _matrices(self, params: Mapping[str, float]) -> StateSpace:
        from scipy.linalg import solve_discrete_lyapunov

        p, k, order = self.n_series, self.n_factors, self.order
        values = np.array([params[name] for name in self.parameter_names])
        loadings, variances, lags = np.split(values, [p * k, p * k + p])
        T, Q = np.eye(k * order, k=-k), np.zeros((k * order, k * order))
        T[:k] = lags.reshape(k, order * k)
        Q[:k, :k] = np.eye(k)
        if np.abs(np.linalg.eigvals(T)).max() >= 1:
            raise InvalidArgument("the factors' autoregression is not stationary; take smaller coefficients")
        Z = np.hstack([loadings.reshape(p, k), np.zeros((p, k * (order - 1)))])
        return state_space(T, Q, Z, np.diag(variances), initial_cov=solve_discrete_lyapunov(T, Q))
