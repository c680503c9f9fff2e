"""The Gaussian of vectors, the graph that its precision matrix stands for, and the normal-inverse-Wishart prior.

    eta = (S^-1 m, -vec(S^-1)/2)    T = (x, vec(x x'))    A = m'S^-1 m/2 + log|S|/2    h = (2 pi)^(-k/2)

In natural parameters A = -eta1' eta2^-1 eta1 / 4 - log|-2 eta2| / 2. There are k + k^2 numbers for k + k (k + 1) / 2 free
ones: vec(x x') names every product twice, so the form is overcomplete, and the matrix part of eta must be symmetric.
A zero of the precision matrix S^-1 is a conditional independence of two coordinates given all others, so a Gaussian is a
pairwise Markov field. Reference: Lauritzen (1996), Graphical Models, chapter 5. Cost: cubic in the coordinates.
"""

from collections.abc import Iterable
from math import log, pi
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument, check_known
from markovia.factors.distributions.checked_numbers import (
    as_numbers,
    draws,
    finite_numbers,
    positive,
    positive_definite,
    vectors,
)
from markovia.factors.distributions.conjugate_priors import StudentT
from markovia.factors.distributions.exponential_family import (
    ExponentialFamily,
    FittedFamily,
    average_statistics,
    only_known,
    weighted,
)
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

_ZERO = 1e-10
"""A correlation that rounding may leave of none."""


class MultivariateGaussian(FittedFamily):
    """The Gaussian of vectors with a mean vector and a covariance matrix.

    Parameters
    ----------
    mean
        The mean vector.
    cov
        A symmetric positive-definite matrix.
    names
        Names of the coordinates, x0, x1, ... by default; they are the nodes of its graph.

    Examples
    --------
    >>> g = MultivariateGaussian([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]])
    >>> g.n_parameters, g.n_free
    (6, 5)
    >>> back = g.with_natural(g.natural())
    >>> back.mean.round(9).tolist(), back.covariance_matrix.round(9).tolist()
    ([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]])
    >>> chain = MultivariateGaussian.from_precision([0, 0, 0], [[2, -1, 0], [-1, 2, -1], [0, -1, 2]])
    >>> chain.graph().edges
    [('x0', 'x1'), ('x1', 'x2')]
    """

    minimal: ClassVar[bool] = False
    _mean_space = "E[x x'] - E[x] E[x]' must be symmetric and positive definite"
    _structures = ("names",)

    def __init__(self, mean: ArrayLike, cov: ArrayLike, names: Iterable[str] = ()) -> None:
        self._m = finite_numbers(mean, "the mean")
        if self._m.ndim != 1 or not self._m.size:
            raise InvalidArgument(f"the mean is one vector, not of shape {self._m.shape}")
        self._m.setflags(write=False)
        self._s, self._factor = positive_definite(cov, self._m.size, "covariance")
        given = (names,) if isinstance(names, str) else tuple(names)
        self.names: tuple[str, ...] = given or tuple(f"x{i}" for i in range(self._m.size))
        if (
            len(self.names) != self._m.size
            or len(set(self.names)) != self._m.size
            or not all(isinstance(name, str) for name in self.names)
        ):
            raise InvalidArgument(f"{self._m.size} different strings are needed as names, not {names!r}")

    @classmethod
    def from_precision(cls, mean: ArrayLike, precision: ArrayLike, names: Iterable[str] = ()) -> Self:
        """Build from the inverse covariance matrix."""
        try:
            covariance = np.linalg.inv(finite_numbers(precision, "the precision"))
        except np.linalg.LinAlgError:
            raise InvalidArgument("the precision is not a square matrix that has an inverse") from None
        return cls(mean, covariance, names)

    @classmethod
    def conjugate_prior(
        cls,
        mean: ArrayLike,
        kappa: float = 1.0,
        dof: float | None = None,
        scale: ArrayLike | None = None,
    ) -> "NormalInverseWishart":
        """Return the normal-inverse-Wishart prior of mean and covariance; by default k + 2 and the identity."""
        m = np.atleast_1d(finite_numbers(mean, "the mean"))
        return NormalInverseWishart(
            m, kappa, m.size + 2.0 if dof is None else dof, np.eye(m.size) if scale is None else scale
        )

    @property
    def n_free(self) -> int:
        """`k + k (k + 1) / 2`."""
        return self._m.size + self._m.size * (self._m.size + 1) // 2

    @property
    def n_parameters(self) -> int:
        """`k + k^2`."""
        return int(self._m.size + self._m.size**2)

    def natural(self) -> Array:
        """Return S^-1 m followed by -vec(S^-1) / 2."""
        precision = self.precision
        return np.concatenate([precision @ self._m, -0.5 * precision.ravel()])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given natural parameters."""
        found = self._mean_and_covariance(eta)
        if found is None:
            raise InvalidArgument(
                "the matrix part of the natural parameters must be negative definite: -S^-1 / 2"
            )
        return type(self)(*found, self.names)

    def with_moments(self, mu: ArrayLike) -> Self:
        """Return the member with E[x] and E[x x']."""
        m, second = self._split(self._mu(mu))
        self.natural_from_moments(mu)
        return type(self)(m, second - np.outer(m, m), self.names)

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return m' S^-1 m / 2 + log|S| / 2."""
        found = self._mean_and_covariance(eta)
        if found is None:
            return np.inf
        m, s = found
        return 0.5 * float(m @ np.linalg.solve(s, m)) + 0.5 * float(np.linalg.slogdet(s)[1])

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return E[x] followed by vec E[x x']."""
        m, s = self._inside(eta)
        return np.concatenate([m, (s + np.outer(m, m)).ravel()])

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of (x, vec x x'), by Isserlis' theorem."""
        m, s = self._inside(eta)
        k = m.size
        third = np.einsum("ai,j->aij", s, m) + np.einsum("aj,i->aij", s, m)
        fourth = (
            np.einsum("ik,jl->ijkl", s, s)
            + np.einsum("il,jk->ijkl", s, s)
            + np.einsum("ik,j,l->ijkl", s, m, m)
            + np.einsum("il,j,k->ijkl", s, m, m)
            + np.einsum("jk,i,l->ijkl", s, m, m)
            + np.einsum("jl,i,k->ijkl", s, m, m)
        )
        cross = third.reshape(k, k * k)
        return np.block([[s, cross], [cross.T, fourth.reshape(k * k, k * k)]])

    def sufficient_statistics(self, x: Any) -> Array:
        """Return x followed by vec(x x')."""
        x = vectors(x, self._m.size, "a point")
        with np.errstate(over="ignore", invalid="ignore"):
            outer = x[..., :, None] * x[..., None, :]
        return np.concatenate([x, outer.reshape(*x.shape[:-1], -1)], axis=-1)

    def log_base_measure(self, x: Any) -> Any:
        """Return -k log(2 pi) / 2."""
        x = vectors(x, self._m.size, "a point")
        return np.where(np.isfinite(x).all(axis=-1), -0.5 * self._m.size * log(2.0 * pi), -np.inf)[()]

    def mahalanobis(self, x: Any) -> Any:
        """Return the distance `sqrt((x - m)' S^-1 (x - m))`; Euclidean where S is the identity.

        Examples
        --------
        >>> round(float(MultivariateGaussian([0, 0], [[1, 0], [0, 4]]).mahalanobis([1, 2]) ** 2), 6)
        2.0
        """
        centred = vectors(x, self._m.size, "a point") - self._m
        far = np.asarray(np.isinf(centred).any(axis=-1) & ~np.isnan(centred).any(axis=-1))
        near = np.where(far[..., None], 0.0, centred).reshape(-1, self._m.size)
        distance = np.linalg.norm(np.linalg.solve(self._factor, near.T), axis=0)
        return np.where(far, np.inf, distance.reshape(far.shape))[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log density of a vector, or of each row."""
        log_det = 2.0 * np.log(np.diag(self._factor)).sum()
        return -0.5 * (self.mahalanobis(x) ** 2 + log_det + self._m.size * log(2.0 * pi))

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n rows."""
        noise = generator(seed).standard_normal((draws(n), self._m.size))
        return np.asarray(self._m + noise @ self._factor.T)

    @property
    def mean(self) -> Array:
        """The mean vector."""
        return self._m

    @property
    def variance(self) -> Array:
        """The diagonal of the covariance matrix."""
        return np.diag(self._s)

    @property
    def covariance_matrix(self) -> Array:
        """The covariance matrix."""
        return self._s

    @property
    def precision(self) -> Array:
        """The inverse of the covariance matrix."""
        inverse = np.linalg.inv(self._s)
        return np.asarray((inverse + inverse.T) / 2.0)

    def entropy(self) -> float:
        """Return (k log(2 pi e) + log|S|) / 2."""
        log_det = 2.0 * float(np.log(np.diag(self._factor)).sum())
        return 0.5 * (self._m.size * (log(2.0 * pi) + 1.0) + log_det)

    def kl(self, other: ExponentialFamily) -> float:
        """Return KL(self || other) from means and covariances, which loses no digits when the means are large."""
        self._same_family(other)
        assert isinstance(other, MultivariateGaussian)
        factor = other._factor
        gap = np.linalg.solve(factor, self._m - other.mean)
        spread = np.linalg.solve(factor, self._factor)
        log_det = 2.0 * float(np.log(np.diag(factor)).sum() - np.log(np.diag(self._factor)).sum())
        return max(0.0, 0.5 * (float(gap @ gap) + float((spread**2).sum()) - self._m.size + log_det))

    def graph(self) -> UndirectedGraph:
        """Return the Markov graph: an edge where the precision is not zero."""
        return UndirectedGraph(self._pairs(), nodes=self.names)

    def dag(self) -> DAG:
        """Return the graph of the linear regressions of each coordinate on the earlier ones.

        An edge is a coefficient that is not zero; this is the minimal directed I-map for the order of the names.
        """
        edges = []
        deviations = np.sqrt(self.variance)
        for j in range(1, self._m.size):
            earlier = np.arange(j)
            slopes = np.linalg.solve(self._s[np.ix_(earlier, earlier)], self._s[earlier, j])
            matters = np.abs(slopes) * deviations[earlier] > _ZERO * deviations[j]
            edges += [(self.names[i], self.names[j]) for i in np.flatnonzero(matters)]
        return DAG(edges, nodes=self.names)

    def correlation(self) -> Array:
        """Return the matrix of correlations."""
        scale = np.sqrt(np.outer(self.variance, self.variance))
        return np.asarray(self._s / scale, dtype=np.float64)

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
        >>> chain = MultivariateGaussian.from_precision([0, 0, 0], [[2, -1, 0], [-1, 2, -1], [0, -1, 2]])
        >>> chain.independent("x0", "x2"), chain.independent("x0", "x2", given="x1")
        (False, True)
        """
        a, b, c = (self._places(names) for names in (x, y, given))
        if len({*a, *b, *c}) != len(a) + len(b) + len(c):
            raise InvalidArgument("the sets of coordinates must not overlap")
        cov = self._s
        both = [*a, *b]
        left = cov[np.ix_(both, both)]
        if c:
            left = left - cov[np.ix_(both, c)] @ np.linalg.solve(cov[np.ix_(c, c)], cov[np.ix_(c, both)])
        scale = np.sqrt(np.diag(left))
        rest = np.abs(left / np.outer(scale, scale))[: len(a), len(a) :]
        return bool(np.all(rest <= _ZERO))

    def __add__(self, other: "MultivariateGaussian") -> "MultivariateGaussian":
        """Return the distribution of the sum of two independent Gaussians over the same coordinates."""
        if not isinstance(other, MultivariateGaussian):
            return NotImplemented
        if self.names != other.names:
            raise InvalidArgument(f"the sum needs the same coordinates, not {self.names} and {other.names}")
        return MultivariateGaussian(self._m + other._m, self._s + other._s, self.names)

    def log_potentials(self, x: ArrayLike) -> dict[tuple[str, ...], float]:
        """Return the log potentials of a pairwise Gaussian Markov field at a point.

        `-T_jj (x_j - m_j)^2 / 2` for single names and `-T_jk (x_j - m_j)(x_k - m_k)` for edges; their sum is the log
        density up to its normaliser.
        """
        centred = vectors(x, self._m.size, "a point") - self._m
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
        check_known(wanted, self.names, "the Gaussian")
        return [self.names.index(name) for name in wanted]

    def _pairs(self) -> list[tuple[str, str]]:
        precision = self.precision
        scale = np.sqrt(np.outer(np.diag(precision), np.diag(precision)))
        rows, columns = np.nonzero(np.triu(np.abs(precision) > _ZERO * scale, k=1))
        return [(self.names[i], self.names[j]) for i, j in zip(rows, columns, strict=True)]

    def _split(self, vector: Array) -> tuple[Array, Array]:
        k = self._m.size
        matrix = vector[k:].reshape(k, k)
        if not np.allclose(matrix, matrix.T):
            raise InvalidArgument("the matrix part of the parameters must be symmetric")
        return vector[:k], (matrix + matrix.T) / 2.0

    def _mean_and_covariance(self, eta: ArrayLike | None) -> tuple[Array, Array] | None:
        """Return mean and covariance at eta; None outside the domain."""
        if eta is None:
            return self._m, self._s
        first, second = self._split(self._eta(eta))
        if np.linalg.eigvalsh(second)[-1] >= 0:
            return None
        s = np.linalg.inv(-2.0 * second)
        return s @ first, (s + s.T) / 2.0

    def _inside(self, eta: ArrayLike | None) -> tuple[Array, Array]:
        found = self._mean_and_covariance(eta)
        if found is None:
            raise InvalidArgument("the matrix part of the natural parameters must be negative definite")
        return found

    def _expected_log_base(self) -> float:
        return -0.5 * self._m.size * log(2.0 * pi)

    def _realisable(self, mu: Array) -> bool:
        m, second = self._split(mu)
        sizes = np.linalg.eigvalsh(second - np.outer(m, m))
        return bool(sizes[0] > 1e-14 * sizes[-1])

    def _to_natural(self, mu: Array) -> Array:
        m, second = self._split(mu)
        return type(self)(m, second - np.outer(m, m)).natural()

    @classmethod
    def fit(
        cls, x: ArrayLike, weights: ArrayLike | None = None, *, names: Iterable[str] = (), **structure: Any
    ) -> Self:
        """Return the maximum-likelihood member, computed around the first row."""
        data = np.atleast_2d(as_numbers(x, "the data"))
        centre = np.where(np.isfinite(data[0]), data[0], 0.0) if data.size else np.zeros(data.shape[-1])
        only_known(cls, structure)
        moved = cls._template(data - centre)
        average = average_statistics(moved, data - centre, weights)
        if np.isfinite(average).all() and not moved._realisable(average):
            raise InvalidArgument(
                "the rows vary in fewer directions than they have columns, and a MultivariateGaussian needs a positive "
                "definite covariance: give more rows, or leave out columns that are constant or depend on others"
            )
        moved = moved.with_moments(average)
        return cls(moved._m + centre, moved._s, names)

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        if data.ndim != 2 or not data.size:
            raise InvalidArgument(
                f"a multivariate Gaussian is fitted to rows of numbers, not shape {data.shape}"
            )
        return cls(np.zeros(data.shape[1]), np.eye(data.shape[1]), **structure)

    def __repr__(self) -> str:
        return (
            f"MultivariateGaussian(mean={np.round(self._m, 6).tolist()}, cov={np.round(self._s, 6).tolist()})"
        )


class NormalInverseWishart(InNotebooks):
    """The prior of a Gaussian's mean vector and covariance: S ~ IW(dof, scale), mean ~ N(mean, S / kappa).

    Examples
    --------
    >>> prior = NormalInverseWishart([0.0, 0.0], kappa=1.0, dof=4.0, scale=[[1.0, 0.0], [0.0, 1.0]])
    >>> post = prior.posterior([[1.0, 2.0], [3.0, 0.0]])
    >>> post.kappa, post.dof, post.location.round(4).tolist()
    (3.0, 6.0, [1.3333, 0.6667])
    """

    def __init__(self, mean: ArrayLike, kappa: float, dof: float, scale: ArrayLike) -> None:
        self.location = np.atleast_1d(finite_numbers(mean, "the mean"))
        self.kappa = positive(kappa, "kappa")
        self.dof = positive(dof, "dof")
        k = self.location.size
        if self.location.ndim != 1:
            raise InvalidArgument(f"the mean is one vector, not of shape {self.location.shape}")
        if self.dof <= k - 1:
            raise InvalidArgument(f"dof must be above {k - 1}, the dimension less one, not {self.dof:g}")
        self.scale, _ = positive_definite(scale, k, "scale")

    def posterior(self, x: ArrayLike, weights: ArrayLike | None = None) -> "NormalInverseWishart":
        """Return the distribution after seeing rows of numbers."""
        rows = np.atleast_2d(finite_numbers(x, "the data"))
        if rows.ndim != 2 or rows.shape[1] != self.location.size:
            raise InvalidArgument(
                f"the data are rows of {self.location.size} numbers, not shape {rows.shape}"
            )
        held = weighted(len(rows), weights)
        n = float(held.sum())
        if not n:
            return self
        average = held @ rows / n
        centred = rows - average
        kappa = self.kappa + n
        gap = average - self.location
        scale = (
            self.scale + (centred * held[:, None]).T @ centred + self.kappa * n / kappa * np.outer(gap, gap)
        )
        return NormalInverseWishart(
            (self.kappa * self.location + n * average) / kappa, kappa, self.dof + n, scale
        )

    def log_evidence(self, x: ArrayLike, weights: ArrayLike | None = None) -> float:
        """Return the log probability of the data with the parameters averaged out."""
        after = self.posterior(x, weights)
        n = after.kappa - self.kappa
        return after._log_normaliser() - self._log_normaliser() - 0.5 * n * self.location.size * log(2.0 * pi)

    def _log_normaliser(self) -> float:
        from scipy.special import multigammaln

        k = self.location.size
        return float(
            0.5 * self.dof * k * log(2.0)
            + multigammaln(0.5 * self.dof, k)
            - 0.5 * self.dof * np.linalg.slogdet(self.scale)[1]
            + 0.5 * k * log(2.0 * pi / self.kappa)
        )

    def predictive(self) -> StudentT:
        """Return the distribution of the next observation: a multivariate Student t."""
        dof = self.dof - self.location.size + 1.0
        return StudentT(dof, self.location, self.scale * (self.kappa + 1.0) / (self.kappa * dof))

    def sample(self, n: int, seed: Seed = None) -> list[MultivariateGaussian]:
        """Draw n multivariate Gaussians."""
        from scipy.stats import invwishart

        rng = generator(seed)
        found = []
        for _ in range(draws(n)):
            cov = np.atleast_2d(invwishart.rvs(self.dof, self.scale, random_state=rng))
            found.append(MultivariateGaussian(rng.multivariate_normal(self.location, cov / self.kappa), cov))
        return found

    def __repr__(self) -> str:
        mean, scale = np.round(self.location, 6).tolist(), np.round(self.scale, 6).tolist()
        return f"NormalInverseWishart(mean={mean}, kappa={self.kappa:g}, dof={self.dof:g}, scale={scale})"
