"""Principal components in the space of a covariance (Schoelkopf, Smola and Mueller 1998). Cost: n^3."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from markovia.errors import InvalidArgument
from markovia.models.gaussian.kernel_machine import Kernel, KernelMachine
from markovia.models.gaussian.kernel_regression import KernelRidge
from markovia.runtime.array_types import Array
from markovia.runtime.checks import CountOrNone
from markovia.runtime.estimator import fitting
from markovia.runtime.transforming_estimator import TransformingEstimator


@dataclass(eq=False, repr=False)
class KernelPCA(TransformingEstimator, KernelMachine):
    """The directions in which rows vary most, where a covariance is their inner product.

    Parameters
    ----------
    n_components
        How many; None for all with an eigenvalue above zero.
    covariance
        How alike rows are. Numbers that are not said are those of the data's scale, kept in `covariance_`.
    preimages
        Whether a kernel ridge regression from components to rows is learned, for `inverse_transform`.

    Attributes
    ----------
    eigenvalues_, eigenvectors_
        Of the centred matrix of all pairs; the largest entry of a vector is positive.

    Examples
    --------
    >>> import markovia as mk
    >>> found = KernelPCA(1, covariance=mk.covariances.RBF(1.0)).fit_transform([[0.0], [0.1], [5.0], [5.1]])
    >>> np.sign(found[:, 0] * found[0, 0]).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """

    n_components: CountOrNone = None
    _: KW_ONLY
    covariance: Kernel = None
    preimages: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Find the components of rows."""
        with fitting(self):
            rows = self._learned_rows(X, 4)
            self.covariance_ = self._started(np.ones(1))
            gram = self.covariance_.value(rows)
            self._means = gram.mean(axis=0)
            values, vectors = np.linalg.eigh(self._centred(gram))
            kept = np.flatnonzero(values > 1e-14 * len(rows) * np.abs(gram).max())[::-1][: self.n_components]
            if len(kept) < (self.n_components or 1):
                raise InvalidArgument(
                    f"rows vary in {len(kept)} directions (n_samples={len(rows)}), fewer than "
                    f"n_components={self.n_components or 1}; ask for fewer, or give more rows"
                )
            vectors = vectors[:, kept]
            vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(kept))])
            self.eigenvalues_, self.eigenvectors_, self._n_features_out = values[kept], vectors, len(kept)
            if self.preimages:
                self._middle = rows.mean(axis=0)
                self._unit = np.where(np.ptp(rows, axis=0) > 0.0, rows.std(axis=0), 1.0)
                self._back = KernelRidge().fit(self.transform(X), (rows - self._middle) / self._unit)
        return self

    def _centred(self, gram: Array) -> Array:
        return np.asarray(gram - gram.mean(axis=1, keepdims=True) - (self._means - self._means.mean()))

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the components of each row."""
        return self._asked(
            X, lambda _, gram: self._centred(gram) @ (self.eigenvectors_ / np.sqrt(self.eigenvalues_))
        )

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return rows that have about these components, by the regression that `preimages` asks for."""
        if not hasattr(self, "_back"):
            raise InvalidArgument("rows from components are learned in fit with preimages=True; fit so")
        return np.asarray(self._middle + self._unit * self._back.predict(X))
