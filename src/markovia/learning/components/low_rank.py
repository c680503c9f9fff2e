"""Gaussians whose covariance is of low rank but for independent noise: mixtures of factor analysers.

    covariance = loadings loadings' + diag(noise)

Learning takes the covariance that rows have around the new mean, and one step of EM for its factors: the objective never
falls. Reference: Ghahramani and Hinton (1996). Cost of a step: that of full covariances.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.learning.components.block_passes import BlockPass
from markovia.learning.components.families import NOTHING
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.components.gaussian_passes import gaussian_pass
from markovia.learning.components.normal_sums import pooled_variance, ridge_of
from markovia.runtime.array_types import Array

LEAST = 1e-6
"""The share of a column's variance that its noise keeps at least."""


@dataclass(frozen=True)
class LowRank(Gaussian):
    """Gaussians with `loadings (components, columns, factors)` and `noise (components, columns)`."""

    rank: int = 1
    loadings: Array | None = None
    noise: Array | None = None
    names: ClassVar[tuple[str, ...]] = ("means", "covariances", "loadings", "noise")

    @property
    def n_free(self) -> int:
        """The number of free parameters; turning the factors changes nothing."""
        k, d = self.means.shape
        return int(k * (2 * d + d * self.rank - self.rank * (self.rank - 1) // 2))

    def block_pass(self, *, gaps: bool = False, origin: Array | None = None) -> BlockPass:
        """Return a pass over blocks of rows."""
        return _Factored(self, gaussian_pass(replace(self, kind="full"), gaps=gaps, origin=origin))

    def learned(self, rows: Any, weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the components that make weighted rows more probable."""
        found = super().learned(rows, weights, {n: v for n, v in prior.items() if n != "ridge"})
        return self._factored(found, weights.sum(axis=0), prior)

    def _factored(self, found: Any, size: Array, prior: Mapping[str, Any]) -> Self:
        """Return factors of the covariances that were found, one step of EM from those before."""
        k, d = self.means.shape
        loadings, noise = np.empty((k, d, self.rank)), np.empty((k, d))
        floor = np.zeros(d)
        if "ridge" in prior:
            many, squared = (
                np.repeat(size[:, None], d, axis=1),
                np.diagonal(found.covariances, axis1=1, axis2=2),
            )
            floor = ridge_of(
                prior, lambda: pooled_variance(many, np.zeros((k, d)), many * squared, found.means)
            )
        for j, spread in enumerate(found.covariances):
            if size[j] <= NOTHING and self.loadings is not None and self.noise is not None:
                loadings[j], noise[j] = self.loadings[j], self.noise[j]
            elif self.loadings is None:
                values, vectors = np.linalg.eigh(spread)
                rest = values[: d - self.rank].mean() if d > self.rank else 0.0
                loadings[j] = vectors[:, d - self.rank :] * np.sqrt(
                    np.maximum(values[d - self.rank :] - rest, 0.0)
                )
                noise[j] = np.diag(spread) - (loadings[j] ** 2).sum(axis=1)
            else:
                before = self.loadings[j]
                pull = np.linalg.solve(self.covariances[j], before).T
                crossed = spread @ pull.T
                loadings[j] = np.linalg.solve(np.eye(self.rank) - pull @ before + pull @ crossed, crossed.T).T
                noise[j] = np.diag(spread) - (loadings[j] * crossed).sum(axis=1)
            noise[j] = np.maximum(noise[j], LEAST * np.diag(spread)) + floor
        full = loadings @ loadings.swapaxes(1, 2) + noise[:, :, None] * np.eye(d)
        return replace(self, means=found.means, covariances=full, loadings=loadings, noise=noise)


@dataclass(frozen=True)
class _Factored:
    """The pass of full covariances, whose result is factored."""

    own: LowRank
    full: Any

    @property
    def width(self) -> int:
        return int(self.full.width)

    def logs(self, block: Any) -> tuple[Array, Any]:
        found: tuple[Array, Any] = self.full.logs(block)
        return found

    def sums(self, kept: Any, shares: Array) -> Array:
        return np.asarray(self.full.sums(kept, shares))

    def learned(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        plain = {n: v for n, v in prior.items() if n != "ridge"}
        return self.own._factored(self.full.learned(size, sums, plain), size, prior)
