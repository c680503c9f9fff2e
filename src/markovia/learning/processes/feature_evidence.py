"""Processes of finite features: Bayesian linear regression on them, with the evidence's gradient by hyper-parameters.

The function is phi(x) w with w ~ N(0, 1), phi of `feature_expansions.py`; evidence and posterior are those of
`low_rank_evidence.py`. Cost: n m^2 in time and n m in memory or less. Far from the data the variance is the prior's for
random features; in gaps of the data they know too much where m is small.
"""

# ruff: noqa: N803 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.covariance import Covariance
from markovia.learning.processes.feature_expansions import (
    FeatureExpansion,
    fastfood_features,
    fourier_features,
    hilbert_features,
)
from markovia.learning.processes.low_rank_evidence import Basis, LowRankEvidence
from markovia.runtime.seeds import Seed, generator


class FourierProcess(LowRankEvidence):
    """A process of cosines and sines at random frequencies, orthogonal in groups: random Fourier features.

    Parameters
    ----------
    X, y
        Rows of inputs, and targets without their mean.
    features
        How many there are, those of all parts of a sum together.
    orthogonal
        Whether frequencies are orthogonal in groups of as many as there are columns.
    seed
        What frequencies are drawn from; the same for all covariances.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.linspace(0.0, 10.0, 200).reshape(-1, 1)
    >>> method = FourierProcess(X, np.sin(X[:, 0]), features=300)
    >>> post = method.posterior(mk.covariances.RBF(1.0) + mk.covariances.White(0.01))
    >>> bool(np.abs(post.at(X).mean() - np.sin(X[:, 0])).max() < 0.05)
    True
    """

    name: ClassVar[str] = "fourier"

    def __init__(
        self, X: Any, y: Any, *, features: int = 500, orthogonal: bool = True, seed: Seed = 0
    ) -> None:
        super().__init__(X, y)
        if isinstance(features, bool) or int(features) != features or features < 2:
            raise InvalidArgument(f"features= is how many functions there are, 2 or more, not {features!r}")
        self.count, self.orthogonal = int(features), orthogonal
        self._seed = int(generator(seed).integers(2**31))

    def expansion(self, covariance: Covariance) -> FeatureExpansion:
        """Return the functions that stand for a covariance."""
        return fourier_features(
            covariance, self.count, self.X.shape[1], self._seed, orthogonal=self.orthogonal
        )

    def basis(self, covariance: Covariance) -> Basis:
        """Return the functions that stand for a covariance, as a basis."""
        made = self.expansion(covariance)
        return Basis(made.size, made.features, made.forward, note=f"{made.size} features")


class KitchenSinks(FourierProcess):
    """A process of cosines and sines at random frequencies, each drawn on its own (Rahimi and Recht 2008).

    Parameters
    ----------
    X, y, features, seed
        As of `FourierProcess`.
    """

    name: ClassVar[str] = "kitchen-sinks"

    def __init__(self, X: Any, y: Any, *, features: int = 500, seed: Seed = 0) -> None:
        super().__init__(X, y, features=features, orthogonal=False, seed=seed)


class FastfoodProcess(FourierProcess):
    """A process of cosines and sines at structured random frequencies, for inputs of many columns."""

    name: ClassVar[str] = "fastfood"

    def __init__(self, X: Any, y: Any, *, features: int = 500, seed: Seed = 0) -> None:
        super().__init__(X, y, features=features, seed=seed)

    def expansion(self, covariance: Covariance) -> FeatureExpansion:
        """Return the functions that stand for a covariance."""
        return fastfood_features(covariance, self.count, self.X.shape[1], self._seed)


class HilbertProcess(FourierProcess):
    """A process of eigenfunctions on a box around the data; one to three columns.

    Parameters
    ----------
    X, y, features
        As of `FourierProcess`.
    boundary
        The box's width over that of the data; inputs outside it cannot be asked for. Lengths near the width of the data need
        a larger one, and short ones more features.
    """

    name: ClassVar[str] = "hilbert"

    def __init__(self, X: Any, y: Any, *, features: int = 100, boundary: float = 2.0) -> None:
        super().__init__(X, y, features=features)
        if not boundary > 1.0:
            raise InvalidArgument(
                f"boundary= is the box's width over that of the data, above 1, not {boundary!r}"
            )
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        half = np.where(high > low, 0.5 * (high - low), np.maximum(np.abs(high), 1.0))
        self.box = 0.5 * (low + high), boundary * half

    def expansion(self, covariance: Covariance) -> FeatureExpansion:
        """Return the functions that stand for a covariance."""
        return hilbert_features(covariance, self.count, *self.box)
