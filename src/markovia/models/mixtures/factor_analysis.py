"""Factor analysis and probabilistic principal components, as estimators of scikit-learn and as Gaussian networks."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.errors import InvalidArgument
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.latent.factor_analysis import Factors, from_covariance, from_rows, rotated
from markovia.models.classifiers.feature_rows import feature_names, numbers
from markovia.models.classifiers.input_checks import weights_of_rows
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.mixtures.density_questions import CountedDensityQuestions
from markovia.optimise.ascent import Climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, TimeLimit, Tolerance
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import generator
from markovia.runtime.transforming_estimator import TransformingEstimator


@dataclass(eq=False, repr=False)
class _FactorSettings(CountedDensityQuestions, TransformingEstimator):
    """The settings that both have."""

    n_components: CountOrNone = None
    _: KW_ONLY
    max_iter: Count = 1000
    tol: Tolerance = 1e-6
    time_limit: TimeLimit = None


class _LinearFactors(_FactorSettings):
    """What both have in common: `x = mean + W z + noise` with standard normal factors z."""

    _one_noise: bool

    components_: Array
    mean_: Array
    noise_variance_: Any
    n_iter_: int
    converged_: bool
    history_: list[float]
    n_features_in_: int

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn the loadings and the noise; missing cells (NaN) are summed out."""
        with fitting(self), Clock(self.time_limit, False):
            rows = numbers(self, X, reset=True)
            d = rows.shape[1]
            q = d if self.n_components is None else int(self.n_components)
            if q > d:
                raise InvalidArgument(f"n_components={q} is more than the {d} columns of X; ask for fewer")
            found = self._learned(rows, weights_of_rows(sample_weight, len(rows)), q)
            self._keep(found)
            found.warn(self.tol)
        return self

    def _learned(self, rows: Array, weights: Array, q: int) -> Climb[Factors]:
        there = ~np.isnan(rows)
        if not (empty := weights @ there > 0.0).all():
            name = feature_names(self)[int(np.argmin(empty))]
            raise InvalidArgument(f"the column {name!r} has no cell that is there; leave it away")
        mean = weights @ np.where(there, rows, 0.0) / (weights @ there)
        filled = np.where(there, rows - mean, 0.0)
        covariance = (weights[:, None] * filled).T @ filled / weights.sum()
        settings: dict[str, Any] = {"one_noise": self._one_noise, "max_iter": self.max_iter, "tol": self.tol}
        first = from_covariance(mean, covariance, q, **settings)
        if there.all():
            return first
        start = first.state
        if (start.loadings == 0.0).all(axis=0).any():  # EM never leaves a factor without loadings
            rng = generator(0)
            start = Factors(start.mean, start.loadings + 0.1 * rng.normal(size=(len(mean), q)) * np.sqrt(
                np.diag(covariance))[:, None], start.noise)  # fmt: skip
        return from_rows(rows, weights, start, **settings)

    def _keep(self, found: Climb[Factors]) -> None:
        made = found.state
        self.components_, self.mean_ = np.ascontiguousarray(made.loadings.T), made.mean
        self.noise_variance_ = float(made.noise[0]) if self._one_noise else made.noise
        self.n_iter_, self.converged_, self.history_ = len(found.history), found.converged, found.history
        self._n_features_out = len(self.components_)

    def _factors(self) -> Factors:
        check_is_fitted(self, "components_")
        noise = np.broadcast_to(np.asarray(self.noise_variance_, dtype=np.float64), self.mean_.shape)
        return Factors(self.mean_, self.components_.T, noise)

    def _posteriors(self, X: Any) -> tuple[Array, Array, Array]:  # noqa: N803
        made = self._factors()
        return made.posteriors(numbers(self, X, reset=False))

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the mean of the factors given each row."""
        return self._posteriors(X)[0]

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the mean of rows given their factors."""
        made = self._factors()
        return np.asarray(made.mean + np.asarray(X, dtype=np.float64) @ made.loadings.T)

    def impute(self, X: Any) -> Array:  # noqa: N803
        """Return the rows with missing cells filled by their means given the cells that are there."""
        rows = numbers(self, X, reset=False)
        return np.where(np.isnan(rows), self.inverse_transform(self._factors().posteriors(rows)[0]), rows)

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return the log density of each row; missing cells are summed out."""
        return self._posteriors(X)[2]

    def get_covariance(self) -> Array:
        """Return the covariance of rows."""
        return self._factors().covariance

    def get_precision(self) -> Array:
        """Return the inverse of the covariance of rows."""
        return np.asarray(np.linalg.inv(self.get_covariance()))

    @property
    def n_free_(self) -> int:
        """The number of free parameters; turning the factors changes nothing."""
        q, d = self.components_.shape
        return int(d + d * q - q * (q - 1) // 2 + (1 if self._one_noise else d))

    def _free(self) -> int:
        return self.n_free_

    def sample(self, n: int = 1, seed: Any = None) -> Array:
        """Return n rows drawn from the model."""
        made, rng = self._factors(), generator(seed)
        d, q = made.loadings.shape
        noise = rng.standard_normal((n, d)) * np.sqrt(made.noise)
        return np.asarray(made.mean + rng.standard_normal((n, q)) @ made.loadings.T + noise)

    def network(self) -> BayesianNetwork:
        """Return the Gaussian network that answers the same: a node for each factor, and one for each column."""
        made, names = self._factors(), feature_names(self)
        hidden = [f"z{j}" for j in range(made.loadings.shape[1])]
        if shared := set(names) & set(hidden):
            raise InvalidArgument(
                f"a column is called {min(shared)!r}, as is a factor of the network; rename it"
            )
        network = BayesianNetwork()
        for name in hidden:
            network.add(name, LinearGaussian(0.0, {}, 1.0))
        for i, name in enumerate(names):
            weights = {z: float(w) for z, w in zip(hidden, made.loadings[i], strict=True)}
            network.add(name, LinearGaussian(float(made.mean[i]), weights, float(made.noise[i])))
        return network


@dataclass(eq=False, repr=False)
class FactorAnalysis(_LinearFactors):
    """Rows that are linear in a few hidden factors, with a noise of its own in each column.

    Parameters
    ----------
    n_components
        The number of factors; None for as many as columns.
    max_iter, tol
        The most turns, and the rise of the log likelihood a row below which they end.
    rotation
        None, "varimax" or "quartimax": turn the factors so that each has few large loadings.
    time_limit
        Seconds after which the best so far is kept; so does Ctrl-C.

    Attributes
    ----------
    components_ : array (n_components, n_features)
        The loadings.
    noise_variance_ : array (n_features,)
        The variance of each column's noise.
    mean_, n_iter_, converged_, history_
        The mean, the turns, whether the likelihood stopped to rise, and the log likelihood a row after each turn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> skill = rng.normal(size=(500, 1))
    >>> marks = skill @ [[2.0, 1.0, 1.5]] + rng.normal(size=(500, 3)) * [1.0, 0.5, 2.0]
    >>> model = FactorAnalysis(1).fit(marks)
    >>> np.abs(model.components_).round(1).tolist()
    [[1.9, 1.0, 1.6]]
    >>> marks[0, 1] = np.nan
    >>> model.transform(marks).shape
    (500, 1)
    """

    _one_noise = False

    _: KW_ONLY
    rotation: Literal["varimax", "quartimax"] | None = None

    def _keep(self, found: Climb[Factors]) -> None:
        if self.rotation is not None:
            turned = rotated(found.state.loadings, 1.0 if self.rotation == "varimax" else 0.0)
            found = replace(found, state=replace(found.state, loadings=turned))
        super()._keep(found)


class ProbabilisticPCA(_LinearFactors):
    """Principal components as a model of rows: a few hidden factors, and the same noise in every column.

    From whole rows it is a closed form, and the loadings span what the leading principal components span; with missing
    cells it is learned by EM.

    Parameters
    ----------
    n_components
        The number of components; None for as many as columns.
    max_iter, tol
        With missing cells, the most turns, and the rise of the log likelihood a row below which they end.
    time_limit
        Seconds after which the best so far is kept; so does Ctrl-C.

    Attributes
    ----------
    components_ : array (n_components, n_features)
        The loadings: principal directions times the root of their variance less the noise.
    noise_variance_ : float
        The variance of the noise.
    mean_, n_iter_, converged_, history_
        As in `FactorAnalysis`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) * [3.0, 1.0, 1.0]
    >>> model = ProbabilisticPCA(1).fit(X)
    >>> bool(np.abs(model.components_[0]).argmax() == 0), 0.8 < model.noise_variance_ < 1.2
    (True, True)
    """

    _one_noise = True
