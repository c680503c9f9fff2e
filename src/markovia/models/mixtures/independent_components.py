"""Independent component analysis, as an estimator of scikit-learn."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.models.classifiers.feature_rows import feature_names, numbers
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, CountOrNone, Positive, TimeLimit
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import generator
from markovia.runtime.transforming_estimator import TransformingEstimator
from markovia.structure.functional.independent_components import independent_components

CURE = "independent components need every cell: fill them or drop the row"


@dataclass(eq=False, repr=False)
class ICA(TransformingEstimator):
    """Rows as mixtures of independent sources that are not Gaussian: `x = mean + A s`.

    FastICA from several starts, of which the one counts whose sources are least Gaussian. The same components give causal
    directions in `learn_structure(method="ica-lingam")`.

    Parameters
    ----------
    n_components
        The number of sources; None for as many as columns.
    contrast
        What measures how far from Gaussian a source is: "logcosh", "exp" or "cube".
    n_init
        How many starts are tried.
    max_iter, tol
        When FastICA ends.
    random_state
        The seed.
    time_limit
        Seconds after which no further start is tried.

    Attributes
    ----------
    components_ : array (n_components, n_features)
        The unmixing matrix: sources, with mean 0 and variance 1, are `(x - mean) @ components_.T`.
    mixing_ : array (n_features, n_components)
        Its pseudo-inverse A.
    mean_, converged_, n_iter_
        The means of the columns; whether FastICA settled, and in how many turns.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.uniform(-1, 1, (1000, 2))
    >>> model = ICA(random_state=0).fit(sources @ [[1.0, 0.5], [0.3, 1.0]])
    >>> found = np.abs(np.corrcoef(sources.T, model.transform(sources @ [[1.0, 0.5], [0.3, 1.0]]).T)[:2, 2:])
    >>> bool((found.max(axis=0) > 0.99).all())
    True
    """

    n_components: CountOrNone = None
    _: KW_ONLY
    contrast: Literal["logcosh", "exp", "cube"] = "logcosh"
    n_init: Count = 3
    max_iter: Count = 1000
    tol: Positive = 1e-4
    random_state: Any = None
    time_limit: TimeLimit = None

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Find the sources of rows."""
        with fitting(self), Clock(self.time_limit, False) as clock:
            rows = numbers(self, X, reset=True, gaps=CURE)
            n, d = rows.shape
            if n < 2:
                raise InvalidArgument(
                    f"sources are told apart by how rows vary; n_samples={n} row is too few"
                )
            q = min(n, d) if self.n_components is None else int(self.n_components)
            if q > min(n, d):
                raise InvalidArgument(
                    f"n_components={q} is more than {n} rows of {d} columns have; ask for fewer"
                )
            mean, spread = rows.mean(axis=0), rows.std(axis=0)
            if (spread == 0.0).any():
                name = feature_names(self)[int(np.argmax(spread == 0.0))]
                raise InvalidArgument(f"the column {name!r} does not vary; leave it away")
            rng = generator(self.random_state)
            found = independent_components(
                (rows - mean) / spread,
                q,
                self.contrast,
                self.max_iter,
                self.tol,
                rng,
                starts=self.n_init,
                clock=clock,
            )
            self.components_, self.mean_, self.converged_ = found.unmixing / spread, mean, found.converged
            self.mixing_ = np.asarray(np.linalg.pinv(self.components_), dtype=np.float64)
            self.n_iter_, self._n_features_out = found.n_iter, q
            if not found.converged:
                warn_user(
                    f"FastICA did not settle in max_iter={self.max_iter} turns; sources may be Gaussian, or raise it",
                    ConvergenceWarning,
                )
        return self

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the sources of each row."""
        check_is_fitted(self, "components_")
        return np.asarray((numbers(self, X, reset=False, gaps=CURE) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the rows that sources mix to."""
        check_is_fitted(self, "components_")
        return np.asarray(self.mean_ + np.asarray(X, dtype=np.float64) @ self.mixing_.T)
