"""Mixtures by the name of their components: `Mixture` with fewer settings."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.models.mixtures.component_families import ComponentRows
from markovia.models.mixtures.group_mixture import CovarianceKind, GroupMixture
from markovia.models.mixtures.other_families import ColumnRows
from markovia.models.temporal.markov_chain import MarkovChain
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, NumberRange, Tolerance


@dataclass(eq=False, repr=False)
class GaussianMixture(GroupMixture):
    """A mixture of Gaussians, with scikit-learn's names, weights of rows, and missing cells.

    Parameters
    ----------
    n_components
        How many there are.
    covariance_type
        "full", "tied" (one for all), "diag", "spherical", or "low-rank": `n_factors` factors and independent noise.
    tol, max_iter, n_init, n_jobs
        When learning stops; runs from different starts, of which the best is kept, and in how many processes.
    reg_covar
        The share of each column's variance that is added to variances, so that none vanishes, whatever the unit.
    init_params
        "auto" tries several clusterings on some rows and goes on with the best; "kmeans", "k-means++", "random" and
        "random_from_data" are scikit-learn's.
    weights_init, means_init, precisions_init
        Values to begin with instead.
    prior, weight_concentration
        A normal-inverse-Wishart prior ("mean", "strength", "scale", "df"), and the concentration of the weights' Dirichlet
        prior, for the most probable parameters instead of the most likely.
    method
        "em", "hard" or "online".
    random_state, warm_start, time_limit, progress
        As in `Mixture`.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_
        The parameters, in scikit-learn's shapes.
    n_iter_, converged_, lower_bound_, history_
        Steps of the best run, whether it settled, and the objective a row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.concatenate([rng.normal(-3, 1, (100, 2)), rng.normal(3, 1, (300, 2))])
    >>> mixture = GaussianMixture(2, random_state=0).fit(rows)
    >>> np.sort(mixture.weights_).round(2).tolist(), mixture.covariances_.shape
    ([0.25, 0.75], (2, 2, 2))
    """

    component = "gaussian"

    n_components: Count = 1
    _: KW_ONLY
    covariance_type: CovarianceKind = "full"
    n_factors: Count = 1
    tol: Tolerance = 1e-3
    reg_covar: Tolerance = 1e-6
    max_iter: Count = 100
    means_init: Any = None
    precisions_init: Any = None
    prior: Mapping[str, Any] | None = None
    warm_start: bool = False

    def _given(self) -> Mapping[str, Any] | None:
        found: dict[str, Any] = {}
        if self.means_init is not None:
            found["means"] = self.means_init
        if self.precisions_init is not None:
            given = np.asarray(self.precisions_init, dtype=np.float64)
            axes = {"full": 3, "tied": 2}.get(self.covariance_type)
            if axes is not None and given.ndim != axes:
                raise InvalidArgument(
                    f"precisions_init= has {axes} axes for {self.covariance_type!r}, not {given.ndim}"
                )
            found["covariances"] = np.linalg.inv(given) if axes else 1.0 / given
        return found or None

    @property
    def means_(self) -> Array:
        """The mean of each component, (components, columns)."""
        return np.asarray(self.component_params_["means"])

    @property
    def covariances_(self) -> Array:
        """The covariances, in the shape of their type."""
        return self._short(np.asarray(self.component_params_["covariances"]))

    @property
    def precisions_(self) -> Array:
        """The inverse covariances, in the shape of their type."""
        return self._short(np.linalg.inv(self.component_params_["covariances"]))

    def _short(self, full: Array) -> Array:
        if self.covariance_type == "tied":
            return np.asarray(full[0])
        if self.covariance_type in ("full", "low-rank"):
            return full
        diagonals = np.diagonal(full, axis1=1, axis2=2)
        return np.asarray(diagonals.copy() if self.covariance_type == "diag" else diagonals[:, 0].copy())


@dataclass(eq=False, repr=False)
class _Preset(GroupMixture):
    """A mixture whose components have few settings."""

    n_components: Count = 2
    _: KW_ONLY
    prior: Mapping[str, Any] | None = None
    params_init: Mapping[str, Any] | None = None
    warm_start: bool = False


@dataclass(eq=False, repr=False)
class BernoulliMixture(_Preset):
    """A mixture of rows of independent zeros and ones; `component_params_["probs"]` are those of ones.

    Its settings are those of `Mixture`; `prior` may have "a" and "b", of the beta prior of each probability, and with
    `binarize` numbers above it are ones.

    Examples
    --------
    >>> rows = [[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 1], [1, 1, 0], [np.nan, 0, 1]]
    >>> BernoulliMixture(2, random_state=0).fit(rows).predict_proba([[1, np.nan, np.nan]]).round(3).max().item()
    1.0
    """

    component = "bernoulli"

    _: KW_ONLY
    binarize: Annotated[float | None, NumberRange(said="a number", none=True)] = None

    def _family(self) -> Any:
        return ComponentRows("bernoulli", threshold=self.binarize)

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        any_numbers = {"categorical": False, "positive_only": False} if self.binarize is not None else {}
        return {**super()._input_tags, **any_numbers}


class PoissonMixture(_Preset):
    """A mixture of rows of independent counts; `component_params_["rates"]` are their means.

    Its settings are those of `Mixture`; `prior` may have "shape" and "rate", of the gamma prior of each mean.

    Examples
    --------
    >>> counts = np.random.default_rng(0).poisson([[2.0, 9.0]] * 50 + [[20.0, 1.0]] * 50)
    >>> PoissonMixture(2, random_state=0).fit(counts).weights_.round(2).tolist()
    [0.5, 0.5]
    """

    component = "poisson"


class StudentTMixture(_Preset):
    """A mixture of Student's t, which rows far away hardly move: `means`, `scales`, and degrees of freedom `df`.

    Its settings are those of `Mixture`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = np.concatenate([rng.standard_t(3, 200) - 8.0, rng.standard_t(3, 200) + 8.0, [500.0]])[:, None]
    >>> mixture = StudentTMixture(2, random_state=0).fit(rows)
    >>> np.sort(mixture.component_params_["means"].ravel()).round(0).tolist()
    [-8.0, 8.0]
    """

    component = "student-t"


class CategoricalMixture(_Preset):
    """A mixture of rows of categories, independent given the component; `component_params_` has an array a column.

    Its settings are those of `Mixture`; `prior` may have "concentration". `categories_` are the symbols of each column.

    Examples
    --------
    >>> rows = [["a", "x"], ["a", "x"], ["b", "y"], ["b", "y"], ["b", None]]
    >>> mixture = CategoricalMixture(2, random_state=0).fit(np.array(rows, dtype=object))
    >>> mixture.predict_proba(np.array([["a", None]], dtype=object)).max().round(3).item()
    1.0
    """

    component = "categorical"

    @property
    def component_params_(self) -> dict[str, Any]:
        """The probabilities of symbols: `probs`, an array (components, symbols) a column."""
        found: dict[str, Any] = next(iter(super().component_params_.values()))
        return found


@dataclass(eq=False, repr=False)
class LatentClass(GroupMixture):
    """Latent class analysis: columns of different kinds, some cells missing, independent given a hidden class.

    Parameters
    ----------
    n_components
        How many classes there are.
    columns
        A mapping from columns, or tuples of them, to names of families ("categorical", "gaussian", "poisson", ...). Without
        it text, truth values and few whole numbers are categories, and other numbers Gaussian.
    method, prior, weight_concentration, init_params, weights_init, n_init, max_iter, tol, reg_covar
        As in `Mixture`.
    warm_start, random_state, n_jobs, time_limit, progress
        As in `Mixture`.

    Attributes
    ----------
    weights_, component_params_
        The probability of each class, and what columns are like in each, by column.
    component_kinds_, categories_
        The family of each group of columns, and the symbols of those that have some.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"smokes": ["no", "yes", "no", "yes"] * 25, "cough": [0.1, 2.2, None, 2.0] * 25})
    >>> found = LatentClass(2, random_state=0).fit(rows)
    >>> found.predict_proba(pd.DataFrame({"smokes": ["yes"], "cough": [None]})).max().round(3).item()
    1.0
    """

    component = "columns"

    n_components: Count = 2
    _: KW_ONLY
    columns: Mapping[Any, str] | None = None
    prior: Mapping[str, Any] | None = None
    reg_covar: Tolerance = 1e-6
    warm_start: bool = False

    def _family(self) -> Any:
        return ColumnRows(self.columns)


@dataclass(eq=False, repr=False)
class MarkovChainMixture(GroupMixture):
    """A mixture of Markov chains: sequences of several kinds, and nobody says which.

    Parameters
    ----------
    n_components
        How many chains there are.
    order, smoothing
        How many steps each chain looks back, and what is added to each count.
    method
        "em", or "hard", which gives each sequence wholly to its best chain.
    weight_concentration, weights_init, init_params, n_init, max_iter, tol, random_state, n_jobs, time_limit, progress
        As in `Mixture`.

    Attributes
    ----------
    weights_, component_params_
        The probability of each chain; `component_params_["models"]` are the chains.

    Examples
    --------
    >>> from markovia.models.temporal.markov_chain import MarkovChain
    >>> slow, fast = MarkovChain([[0.9, 0.1], [0.1, 0.9]]), MarkovChain([[0.1, 0.9], [0.9, 0.1]])
    >>> data = slow.sample(40, 20, seed=0) + fast.sample(40, 10, seed=1)
    >>> mixture = MarkovChainMixture(2, random_state=0).fit(data)
    >>> np.sort(mixture.weights_).round(2).tolist()
    [0.33, 0.67]
    """

    n_components: Count = 2
    _: KW_ONLY
    order: Count = 1
    smoothing: Tolerance = 0.0
    max_iter: Count = 100
    tol: Tolerance = 1e-4

    @property
    def component(self) -> MarkovChain:
        """What a component is."""
        return MarkovChain(order=self.order, smoothing=self.smoothing)
