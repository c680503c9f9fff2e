"""Kernel density estimates: a mixture with a component at each row (Rosenblatt 1956, Parzen 1962).

Cost: n for each row asked, in blocks; n^2 for each bandwidth that "likelihood" tries.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from math import lgamma, log, pi
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import DensityMixin

from markovia.errors import ConvergenceWarning, InvalidArgument, UnsupportedModel, warn_user
from markovia.models.classifiers.feature_rows import feature_names, numbers
from markovia.models.classifiers.input_checks import weights_of_rows
from markovia.models.gaussian.kernel_machine import BLOCK, CURE
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.mixtures.density_questions import DensityQuestions
from markovia.models.mixtures.mixture_networks import COMPONENT
from markovia.models.temporal.hidden_states.component_nodes import add_vector
from markovia.runtime.array_types import Array
from markovia.runtime.checks import POSITIVE, Choice, Either, Several, check_count
from markovia.runtime.estimator import Estimator, check_fitted, fitting
from markovia.runtime.seeds import generator

FACTORS = np.log(np.geomspace(1e-3, 10.0, 33))
"""Bandwidths that "likelihood" looks at first: logs, in units of Scott's."""
BUMPS: dict[str, Any] = {
    "gaussian": (
        lambda r: -0.5 * r * r, lambda d: (0.5 * d - 1.0) * log(2.0) + lgamma(0.5 * d),
        lambda rng, d, n: np.sqrt(rng.chisquare(d, n)),
    ),
    "exponential": (lambda r: -r, lambda d: lgamma(d), lambda rng, d, n: rng.gamma(d, size=n)),
    "epanechnikov": (
        lambda r: np.log(np.maximum(1.0 - r * r, 0.0)), lambda d: log(2.0 / (d * (d + 2.0))),
        lambda rng, d, n: np.sqrt(rng.beta(0.5 * d, 2.0, n)),
    ),
    "tophat": (
        lambda r: np.where(r < 1.0, 0.0, -np.inf), lambda d: -log(d), lambda rng, d, n: rng.beta(d, 1.0, n)
    ),
}  # fmt: skip
"""Kernels of the distance r in bandwidths: the log, the log of the integral with r^(d-1), and how r is drawn."""


@dataclass(eq=False, repr=False)
class KernelDensity(DensityQuestions, DensityMixin, Estimator):  # type: ignore[misc]
    """The density of rows as an average of bumps, one at each row that was learned from.

    Parameters
    ----------
    bandwidth
        How wide bumps are: a number, one a column, or a rule. "scott" and "silverman" are right for one normal hump, in
        units of each column's deviation; "likelihood" multiplies Scott's by what makes rows most probable given all others.
    kernel
        The bump, a function of the distance: "gaussian", "exponential", "epanechnikov" or "tophat".

    Attributes
    ----------
    bandwidth_
        The bandwidth of each column.

    Examples
    --------
    >>> model = KernelDensity(1.0).fit([[0.0], [2.0]])
    >>> np.exp(model.score_samples([[1.0]])).round(6).tolist(), model.network().query("x0").mean()
    ([0.241971], 1.0)
    """

    bandwidth: Annotated[
        Any,
        Either((Choice(("scott", "silverman", "likelihood")), POSITIVE, Several(POSITIVE, "one a column"))),
    ] = "scott"
    _: KW_ONLY
    kernel: Literal["gaussian", "exponential", "epanechnikov", "tophat"] = "gaussian"

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Keep the rows, and find the bandwidth."""
        with fitting(self):
            rows = numbers(self, X, reset=True, gaps=CURE)
            shares = weights_of_rows(sample_weight, len(rows))
            self.X_fit_, self._shares = rows[shares > 0.0], shares[shares > 0.0] / shares.sum()
            self.bandwidth_ = self._width(self.X_fit_, self._shares)
        return self

    def _width(self, rows: Array, w: Array) -> Array:
        d, rule = rows.shape[1], self.bandwidth
        if not isinstance(rule, str):
            if np.ndim(rule) and len(rule) != d:
                raise InvalidArgument(
                    f"bandwidth= has {len(rule)} numbers, and rows {d} columns; give one a column"
                )
            return np.full(d, rule, dtype=np.float64)
        many = 1.0 / float(w @ w)  # rows, if all weighed the same
        sd = np.sqrt(w @ (rows - w @ rows) ** 2 * many / max(many - 1.0, 0.5))
        size = np.abs(rows).max(axis=0)
        # a column that does not vary has the width of its size
        sd = np.where(sd > 1e-12 * size, sd, np.where(size > 0.0, size, 1.0)) * many ** (-1.0 / (d + 4.0))
        if rule == "silverman":
            return np.asarray(sd * (0.25 * (d + 2.0)) ** (-1.0 / (d + 4.0)))
        return np.asarray(sd * (self._likeliest(sd) if rule == "likelihood" and len(rows) > 1 else 1.0))

    def _likeliest(self, scott: Array) -> float:
        """Return the factor of Scott's bandwidth that makes rows most probable given all others."""
        from scipy.optimize import minimize_scalar

        def lost(x: float) -> float:
            return -float(self._shares @ self._log_density(self.X_fit_, np.exp(x) * scott, left_out=True))

        found = [lost(x) for x in FACTORS]
        best = int(np.argmin(found))
        if not 0 < best < len(found) - 1:
            warn_user(
                "rows are most probable at the narrowest or widest bandwidth that was tried, as where many are the same; "
                "take bandwidth='scott'", ConvergenceWarning,
            )  # fmt: skip
            return float(np.exp(FACTORS[best]))
        ends = (FACTORS[best - 1], FACTORS[best + 1])
        return float(np.exp(minimize_scalar(lost, bounds=ends, method="bounded", options={"xatol": 1e-6}).x))

    def _log_density(self, rows: Array, width: Array, left_out: bool = False) -> Array:
        from scipy.spatial.distance import cdist

        bump, log_integral, _ = BUMPS[self.kernel]
        n, d = self.X_fit_.shape
        norm = log(2.0) + 0.5 * d * log(pi) - lgamma(0.5 * d) + log_integral(d) + np.log(width).sum()
        found = np.empty(len(rows))
        for block in np.array_split(np.arange(len(rows)), -(-len(rows) * n // BLOCK)):
            with np.errstate(divide="ignore"):
                each = bump(cdist(rows[block] / width, self.X_fit_ / width)) + np.log(self._shares)
            if left_out:
                each[np.arange(len(block)), block] = -np.inf
            found[block] = np.logaddexp.reduce(each, axis=1) - norm
        return found - np.log1p(-self._shares) if left_out else found

    def score_samples(self, X: Any) -> Array:  # noqa: N803
        """Return the log density of each row."""
        check_fitted(self, "bandwidth_")
        return self._log_density(numbers(self, X, reset=False, gaps=CURE), self.bandwidth_)

    def sample(self, n_samples: int = 1, seed: Any = None) -> Array:
        """Draw rows."""
        check_fitted(self, "bandwidth_")
        check_count("n_samples", n_samples, 1)
        rng, d = generator(seed), self.X_fit_.shape[1]
        turns = rng.standard_normal((n_samples, d))
        turns *= (BUMPS[self.kernel][2](rng, d, n_samples) / np.linalg.norm(turns, axis=1))[:, None]
        which = rng.choice(len(self.X_fit_), n_samples, p=self._shares)
        return np.asarray(self.X_fit_[which] + self.bandwidth_ * turns)

    def network(self) -> BayesianNetwork:
        """Return the mixture as a network, which answers conditional questions: the row, and the columns under it."""
        check_fitted(self, "bandwidth_")
        names, network = feature_names(self), BayesianNetwork()
        if self.kernel != "gaussian" or COMPONENT in names:
            raise UnsupportedModel(f"the network needs kernel='gaussian', and no column called {COMPONENT!r}")
        n, d = self.X_fit_.shape
        network.add(COMPONENT, states=list(range(n)), p=self._shares)
        covs = np.broadcast_to(np.diag(self.bandwidth_**2), (n, d, d))
        add_vector(network, names, self.X_fit_, np.zeros((n, d, 0)), (), covs, [COMPONENT])
        return network
