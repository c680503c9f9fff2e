"""The multivariate Gaussian, and the graph that its precision matrix stands for.

A zero of the precision matrix is a conditional independence of two coordinates given all others, so a Gaussian is a
pairwise Markov field. Reference: Lauritzen (1996), Graphical Models, chapter 5. Cost: cubic in the coordinates.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import log, pi
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.distributions.standard import (
    Array,
    Distribution,
    as_numbers,
    draws,
    finite_numbers,
    vectors,
)
from markovia.graphs.directed import DAG
from markovia.graphs.undirected import UndirectedGraph
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Distribution):
    """A Gaussian over several named coordinates.

    Parameters
    ----------
    loc
        The mean vector.
    covariance_matrix
        A symmetric positive-definite matrix.
    names
        Names of the coordinates, x0, x1, ... by default; they are the nodes of its graph.

    Examples
    --------
    >>> chain = MultivariateNormal.from_precision([0, 0, 0], [[2, -1, 0], [-1, 2, -1], [0, -1, 2]])
    >>> chain.graph().edges
    [('x0', 'x1'), ('x1', 'x2')]
    >>> round(float(MultivariateNormal([0, 0], [[1, 0], [0, 4]]).mahalanobis([1, 2]) ** 2), 6)
    2.0
    """

    loc: Array
    covariance_matrix: Array
    names: tuple[str, ...] = ()
    _factor: Array = field(init=False, repr=False)

    _zero: ClassVar[float] = 1e-10

    def __post_init__(self) -> None:
        mean = finite_numbers(self.loc, "loc")
        cov = finite_numbers(self.covariance_matrix, "the covariance")
        if mean.ndim != 1 or cov.shape != (mean.size, mean.size) or not np.allclose(cov, cov.T):
            raise InvalidArgument(
                "the covariance is a symmetric matrix with one row for each entry of the mean"
            )
        try:
            factor = np.linalg.cholesky(cov)
        except np.linalg.LinAlgError:
            raise InvalidArgument("the covariance matrix is not positive definite") from None
        given = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        names = given or tuple(f"x{i}" for i in range(mean.size))
        if len(set(names)) != mean.size or not all(isinstance(name, str) for name in names):
            raise InvalidArgument(f"{mean.size} different strings are needed as names, not {self.names!r}")
        for name, value in {"loc": mean, "covariance_matrix": cov, "names": names, "_factor": factor}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_precision(cls, loc: ArrayLike, precision: ArrayLike, names: tuple[str, ...] = ()) -> Self:
        """Build from the inverse covariance matrix."""
        try:
            covariance = as_numbers(
                np.linalg.inv(finite_numbers(precision, "the precision")), "the covariance"
            )
        except np.linalg.LinAlgError:
            raise InvalidArgument("the precision is not a square matrix that has an inverse") from None
        return cls(finite_numbers(loc, "loc"), covariance, names)

    @property
    def mean(self) -> Array:
        """The mean vector."""
        return self.loc

    @property
    def variance(self) -> Array:
        """The diagonal of the covariance."""
        return np.diag(self.covariance_matrix)

    @property
    def precision(self) -> Array:
        """The inverse covariance."""
        inverse = np.asarray(np.linalg.inv(self.covariance_matrix), dtype=np.float64)
        return (inverse + inverse.T) / 2.0

    def mahalanobis(self, value: ArrayLike) -> Any:
        """Return the distance `sqrt((x - mu)' Sigma^-1 (x - mu))`; Euclidean where Sigma is the identity."""
        centred = vectors(value, self.loc.size, "a point") - self.loc
        rows = centred.reshape(-1, self.loc.size)
        return np.linalg.norm(np.linalg.solve(self._factor, rows.T), axis=0).reshape(centred.shape[:-1])[()]

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log density of a vector, or of each row."""
        log_det = 2.0 * np.log(np.diag(self._factor)).sum()
        return -0.5 * (self.mahalanobis(value) ** 2 + log_det + self.loc.size * log(2.0 * pi))

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n rows."""
        noise = generator(seed).standard_normal((draws(n), self.loc.size))
        rows: Array = self.loc + noise @ self._factor.T
        return rows

    @classmethod
    def fit(cls, data: ArrayLike, names: tuple[str, ...] = ()) -> Self:
        """Return the maximum-likelihood estimate (covariance divided by n)."""
        rows = finite_numbers(data, "the data")
        if rows.ndim != 2 or not rows.size:
            raise InvalidArgument(
                f"a fit needs rows of numbers with at least one row, not shape {rows.shape}"
            )
        return cls(rows.mean(axis=0), np.cov(rows.T, bias=True).reshape(rows.shape[1], -1), names)

    def graph(self) -> UndirectedGraph:
        """Return the Markov graph: an edge where the precision is not zero."""
        return UndirectedGraph(self._pairs(), nodes=self.names)

    def dag(self) -> DAG:
        """Return the graph of the linear regressions of each coordinate on the earlier ones.

        An edge is a coefficient that is not zero; this is the minimal directed I-map for the order of the names.
        """
        edges = []
        deviations = np.sqrt(self.variance)
        for j in range(1, self.loc.size):
            earlier = np.arange(j)
            slopes = np.linalg.solve(
                self.covariance_matrix[np.ix_(earlier, earlier)], self.covariance_matrix[earlier, j]
            )
            matters = np.abs(slopes) * deviations[earlier] > self._zero * deviations[j]
            edges += [(self.names[i], self.names[j]) for i in np.flatnonzero(matters)]
        return DAG(edges, nodes=self.names)

    def correlation(self) -> Array:
        """Return the matrix of correlations."""
        scale = np.sqrt(np.outer(self.variance, self.variance))
        return np.asarray(self.covariance_matrix / scale, dtype=np.float64)

    def partial_correlation(self) -> Array:
        """Return the matrix of correlations of pairs given all other coordinates: `-T_ij / sqrt(T_ii T_jj)`."""
        precision = self.precision
        partial = np.asarray(
            -precision / np.sqrt(np.outer(np.diag(precision), np.diag(precision))), dtype=np.float64
        )
        np.fill_diagonal(partial, 1.0)
        return partial

    def independent(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Say whether x and y are independent given the named coordinates: no covariance is left between them.

        Examples
        --------
        >>> chain = MultivariateNormal.from_precision([0, 0, 0], [[2, -1, 0], [-1, 2, -1], [0, -1, 2]])
        >>> chain.independent("x0", "x2"), chain.independent("x0", "x2", given="x1")
        (False, True)
        """
        a, b, c = (self._places(names) for names in (x, y, given))
        if len({*a, *b, *c}) != len(a) + len(b) + len(c):
            raise InvalidArgument("the sets of coordinates must not overlap")
        cov = self.covariance_matrix
        both = [*a, *b]
        left = cov[np.ix_(both, both)]
        if c:
            left = left - cov[np.ix_(both, c)] @ np.linalg.solve(cov[np.ix_(c, c)], cov[np.ix_(c, both)])
        scale = np.sqrt(np.diag(left))
        rest = np.abs(left / np.outer(scale, scale))[: len(a), len(a) :]
        return bool(np.all(rest <= self._zero))

    def __add__(self, other: "MultivariateNormal") -> "MultivariateNormal":
        """Return the distribution of the sum of two independent Gaussians over the same coordinates."""
        if not isinstance(other, MultivariateNormal):
            return NotImplemented
        if self.names != other.names:
            raise InvalidArgument(f"the sum needs the same coordinates, not {self.names} and {other.names}")
        return MultivariateNormal(
            self.loc + other.loc, self.covariance_matrix + other.covariance_matrix, self.names
        )

    def log_potentials(self, value: ArrayLike) -> dict[tuple[str, ...], float]:
        """Return the log potentials of a pairwise Gaussian Markov field at a point.

        `-T_jj (x_j - mu_j)^2 / 2` for single names and `-T_jk (x_j - mu_j)(x_k - mu_k)` for edges; their sum is the log
        density up to its normaliser.
        """
        centred = vectors(value, self.loc.size, "a point") - self.loc
        if centred.ndim != 1:
            raise InvalidArgument(f"the potentials are those of one point, not of shape {centred.shape}")
        precision = self.precision
        place = {n: i for i, n in enumerate(self.names)}
        logs: dict[tuple[str, ...], float] = {
            (n,): float(-0.5 * precision[i, i] * centred[i] ** 2) for n, i in place.items()
        }
        for a, b in self._pairs():
            i, j = place[a], place[b]
            logs[a, b] = float(-precision[i, j] * centred[i] * centred[j])
        return logs

    def _places(self, names: str | Iterable[str]) -> list[int]:
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self.names:
                raise UnknownVariable(name, self.names, "the Gaussian")
        return [self.names.index(name) for name in wanted]

    def _pairs(self) -> list[tuple[str, str]]:
        precision = self.precision
        scale = np.sqrt(np.outer(np.diag(precision), np.diag(precision)))
        rows, columns = np.nonzero(np.triu(np.abs(precision) > self._zero * scale, k=1))
        return [(self.names[i], self.names[j]) for i, j in zip(rows, columns, strict=True)]
